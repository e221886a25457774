//! Reads a model: one of our TOML files, or a published `config.json`.

use super::{MAX_BYTES, config, parse_toml};
use crate::error::{path, shorten};
use crate::model::{Body, Counts, Lump, Published};
use crate::{Dtype, Model, SpecError};
use rackmath_units::{BytesPerToken, Params};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    name: String,
    hf: Option<String>,
    #[serde(default)]
    #[serde(rename = "aliases")]
    _aliases: Vec<String>,
    #[serde(rename = "released")]
    _released: Option<String>,
    source: String,
    as_of: String,
    note: Option<String>,
    published: Option<RawPublished>,
    config: Option<Value>,
    lump: Option<RawLump>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublished {
    total_params: u64,
    exact: bool,
    counts: String,
    #[serde(default)]
    tower_params: u64,
    active_params: Option<u64>,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLump {
    total_params: String,
    active_params: String,
    weights: String,
    kv_per_token: String,
}

/// Reads a model from one of our TOML files or, where it is JSON, from a published `config.json`.
pub fn model(id: &str, text: &str) -> Result<Model, SpecError> {
    if text.trim_start().starts_with('{') || id.to_ascii_lowercase().ends_with(".json") {
        return config_json(id, text);
    }
    let file = format!("model {id}");
    let raw: RawModel = parse_toml(&file, text)?;
    let mut notes: Vec<String> = raw.note.into_iter().collect();
    let body = match (raw.config, raw.lump) {
        (Some(config), None) => Body::Layers(Box::new(config::shape(&file, &config, &mut notes)?)),
        (None, Some(raw)) => Body::Lump(lump(&file, &raw)?),
        _ => {
            return Err(SpecError::file(file, "a model has either [config] or [lump]"));
        }
    };
    let published = raw.published.map(|p| published(&file, p)).transpose()?;
    Ok(Model {
        id: id.to_owned(),
        name: raw.name,
        hf: raw.hf,
        body,
        published,
        source: raw.source,
        as_of: raw.as_of,
        notes,
    })
}

/// Reads a model from the text of a `config.json`. `name` is the file's name, used in errors and as the model's id.
pub fn config_json(name: &str, text: &str) -> Result<Model, SpecError> {
    let problem = |problem: String| SpecError::file(name, problem);
    if text.len() as u64 > MAX_BYTES {
        return Err(problem(format!("larger than {} MiB", MAX_BYTES >> 20)).hint("a config.json has a few kilobytes"));
    }
    let root: Value =
        serde_json::from_str(text).map_err(|e| problem(format!("not JSON: {}", shorten_message(&e.to_string()))))?;
    let mut notes = Vec::new();
    let shape = config::shape(name, &root, &mut notes)?;
    let title = root.get("_name_or_path").and_then(Value::as_str).filter(|n| !n.is_empty());
    Ok(Model {
        id: name.to_owned(),
        name: shorten(title.unwrap_or(name)),
        hf: None,
        body: Body::Layers(Box::new(shape)),
        published: None,
        source: format!("the file {}", path(name)),
        as_of: "as given".into(),
        notes,
    })
}

/// A parser's message may quote the file; keep it short.
fn shorten_message(message: &str) -> String {
    message.chars().take(160).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn lump(file: &str, raw: &RawLump) -> Result<Lump, SpecError> {
    let bad =
        |field: &str, given: &str, expected: String| SpecError::field(file, format!("lump.{field}"), given, expected);
    let params = |field: &str, text: &str| text.parse::<Params>().map_err(|e| bad(field, text, e.to_string()));
    let (total, active) = (params("total_params", &raw.total_params)?, params("active_params", &raw.active_params)?);
    if active.get() <= 0.0 || active > total {
        return Err(bad("active_params", &raw.active_params, "more than none and at most the total".into()));
    }
    Ok(Lump {
        total,
        active,
        weights: raw.weights.parse::<Dtype>()?,
        kv: raw
            .kv_per_token
            .parse::<BytesPerToken>()
            .map_err(|e| bad("kv_per_token", &raw.kv_per_token, e.to_string()))?,
    })
}

fn published(file: &str, raw: RawPublished) -> Result<Published, SpecError> {
    let counts = match raw.counts.as_str() {
        // A vision or audio tower inside the count is taken off by `tower_params`.
        "main" | "with-vision" => Counts::Main,
        "with-mtp" => Counts::WithMtp,
        other => {
            return Err(SpecError::field(file, "published.counts", other, "main, with-mtp or with-vision"));
        }
    };
    Ok(Published {
        total: raw.total_params,
        exact: raw.exact,
        counts,
        towers: raw.tower_params,
        active: raw.active_params,
        source: raw.source,
    })
}
