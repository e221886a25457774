//! Reads a model: one of our TOML files, a published `config.json`, or the header of a GGUF file.

use super::noun::noun;
use super::{MAX_BYTES, config};
use crate::error::{path, shorten};
use crate::model::{Body, Lump, Published};
use crate::{Model, SpecError};
use rackmath_units::Bytes;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    id: String,
    name: String,
    hf: Option<String>,
    source: String,
    as_of: String,
    note: Option<String>,
    published: Option<Published>,
    config: Option<Value>,
    lump: Option<Lump>,
}

/// Reads a model from one of our TOML files or, where it is JSON, from a published `config.json`.
pub fn model(id: &str, text: &str) -> Result<Model, SpecError> {
    if text.trim_start().starts_with('{') || id.to_ascii_lowercase().ends_with(".json") {
        return config_json(id, text);
    }
    let file = format!("model {id}");
    let RawModel { id, name, hf, source, as_of, note, published, config, lump } = noun(&file, id, text, &["released"])?;
    let mut notes: Vec<String> = note.into_iter().collect();
    let body = match (config, lump) {
        (Some(config), None) => Body::Layers(Box::new(config::shape(&file, &config, &mut notes)?)),
        (None, Some(lump)) if lump.active.get() <= 0.0 || lump.active > lump.total => {
            let expected = "more than none and at most the total";
            return Err(SpecError::field(&file, "lump.active_params", lump.active, expected));
        }
        (None, Some(lump)) => Body::Lump(lump),
        _ => return Err(SpecError::file(file, "a model has either [config] or [lump]")),
    };
    Ok(Model { id, name, hf, body, published, source, as_of, notes, stored: None })
}

/// Reads a model from the text of a `config.json`. `name` is the file's name, used in errors and as the model's id.
pub fn config_json(name: &str, text: &str) -> Result<Model, SpecError> {
    let problem = |problem: String| SpecError::file(name, problem);
    if text.len() as u64 > MAX_BYTES {
        return Err(problem(format!("larger than {} MiB", MAX_BYTES >> 20)).hint("a config.json has a few kilobytes"));
    }
    let root: Value =
        serde_json::from_str(text).map_err(|e| problem(format!("not JSON: {}", shorten_message(&e.to_string()))))?;
    if let Some(header) = root.get("gguf") {
        return super::gguf::model(name, header);
    }
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
        stored: root.pointer("/stored/total_size").and_then(Value::as_u64).map(|n| Bytes::b(n as f64)),
    })
}

/// A parser's message may quote the file; keep it short.
fn shorten_message(message: &str) -> String {
    message.chars().take(160).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
