//! A measurement as rows in the form of `validation/`, written whole or not at all.

use crate::{inputs, output};
use rackmath::{Catalog, Error};
use rackmath_measure::gauge::Found;
use rackmath_measure::judge;
use rackmath_measure::read::{Load, Observed};
use rackmath_spec::validation;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::path::Path;

pub fn save(
    path: &Path,
    catalog: &Catalog,
    typed: &Map<String, Value>,
    o: &Observed,
    found: Option<&Found>,
) -> Result<(), Error> {
    let text = rows(catalog, typed, o, found)?;
    let stem = path.file_stem().map_or_else(|| "row".into(), |s| s.to_string_lossy().into_owned());
    let table = validation::read(&stem, &text)?;
    table.check(|model| catalog.model(model).map(drop), |system| catalog.system(system).map(|s| s.n_chips))?;
    output::save(path, text.as_bytes())
}

fn rows(catalog: &Catalog, typed: &Map<String, Value>, o: &Observed, found: Option<&Found>) -> Result<String, Error> {
    let typed = Value::Object(typed.clone());
    let word = |at: &str| typed.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let needed = |what: &str, flag: &str| Error::said(format!("a row needs {what}")).hint(format!("expected {flag}"));
    let system = word("/setting/on")
        .or_else(|| Some(format!("{}x{}", o.chips?, o.chip.clone()?)))
        .ok_or_else(|| needed("the machine", "--on 8xh200"))?;
    let names = [word("/setting/model"), found.and_then(|f| f.root.clone()), o.model.clone()];
    let model = names
        .into_iter()
        .flatten()
        .find_map(|name| catalog.model(&name).ok())
        .ok_or_else(|| needed("a model of the catalogue", "--model llama-3.1-8b"))?;
    let weights = word("/setting/weights").unwrap_or_else(|| model.formats().linear.to_string());
    let engine = word("/engine")
        .or_else(|| found.and_then(|f| f.engine.clone()))
        .or_else(|| o.engine.clone())
        .unwrap_or_default();
    let family = engine.split('@').next().unwrap_or_default();
    let family = if ["vllm", "sglang", "trtllm", "torch", "llamacpp"].contains(&family) { family } else { "unknown" };
    let version = engine
        .split_once('@')
        .map(|(_, v)| v.to_owned())
        .or_else(|| found.and_then(|f| f.version.clone()))
        .or_else(|| o.engine_version.clone());
    let (isl, osl) = o.isl.zip(o.osl).ok_or_else(|| needed("the lengths of prompts and answers", "--isl and --osl"))?;
    // What the server had, not what was offered: a prediction is held against these rows as it is against the measurement.
    let load = match o.load() {
        Load::Rate(rate) => format!("mode = \"open\", rate_per_s = {rate:?}"),
        Load::Concurrency(n) => format!("mode = \"closed\", concurrency = {}", n.round().max(1.0)),
        Load::Most => "mode = \"max-load\"".to_owned(),
    };
    let date = inputs::today().map_or_else(|| "unknown".into(), |d| d.to_string());
    let month: String = date.chars().take(7).collect();
    // Without control characters, a string of JSON is one of TOML.
    let quoted = |text: &str| Value::String(text.chars().filter(|c| !c.is_control()).collect()).to_string();
    let mut out = format!(
        "# A measurement of one's own, by {}.\nsource.name = {}\nsource.title = {}\nsource.address = \"own measurement, {}\"\nsource.date = \"{month}\"\nsource.licence = \"own\"\nsource.retrieved = \"{month}\"\nsource.fitted = \"no\"\nsource.note = {}\n\n",
        o.tool,
        quoted(&format!("{} on {system}", model.name)),
        quoted(&format!("{} on {system} under {family}, measured {date}", model.name)),
        o.tool,
        quoted(&format!(
            "{} requests answered, {} failed. TTFT and E2E from the scheduled time where rackmath measured, from sending otherwise; TPOT is (last - first)/(n - 1). {}",
            o.completed,
            o.failed,
            o.notes.join(". ")
        )),
    );
    let _ = writeln!(
        out,
        "common.model = {}\ncommon.system = {}\ncommon.weights = {}\ncommon.engine = \"{family}\"",
        quoted(&model.id),
        quoted(&system),
        quoted(&weights)
    );
    if let Some(version) = version {
        let _ = writeln!(out, "common.engine_version = {}", quoted(&version));
    }
    for key in ["tp", "pp", "dp", "ep"] {
        if let Some(n) = typed.pointer(&format!("/degrees/{key}")).and_then(Value::as_u64) {
            let _ = writeln!(out, "common.{key} = {n}");
        }
    }
    if let Some(hit) = o.cached.filter(|hit| *hit > judge::HITS) {
        let _ = writeln!(out, "common.prefix_hit = {hit:?}");
    }
    out.push_str("\nrow = [\n");
    let figures = [
        ("ttft_ms", o.ttft_ms.mean),
        ("ttft_p50_ms", o.ttft_ms.p50),
        ("tpot_ms", o.tpot_ms.mean),
        ("e2e_ms", o.e2e_ms.mean),
        ("output_tok_s", o.output_tok_s),
    ];
    for (metric, value) in figures {
        if let Some(value) = value.filter(|v| v.is_finite() && *v > 0.0) {
            let _ = writeln!(
                out,
                "  {{ {load}, isl = {}, osl = {}, metric = \"{metric}\", value = {value:?} }},",
                isl.round().max(1.0),
                osl.round().max(1.0)
            );
        }
    }
    out.push_str("]\n");
    Ok(out)
}
