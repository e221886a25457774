//! From a published row to the question it answers.

use crate::desk::remark::{Remark, says};
use crate::support::not_covered;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{self, Measurement, Origin, Setup, Way};
use rackmath_spec::validation::{Engine, Load, Mode, Row, Table};
use rackmath_spec::{Catalog, Dtype, Model};

/// Requests each client of a closed loop sends, one after another, where the source does not say.
const ROUNDS: f64 = 10.0;

/// The measurement of a row with what was assumed to read it so, or why it cannot be asked about.
pub(super) fn measurement(catalog: &Catalog, table: &Table, row: &Row) -> Result<(Measurement, Vec<Remark>), String> {
    let words = |e: rackmath_spec::SpecError| e.to_string();
    let model = catalog.model(&row.model).map_err(words)?;
    let chips = catalog.system(&row.system).map_err(words)?.n_chips;
    let experts = model.shape().is_some_and(|shape| shape.moe().is_some());
    let degrees = match row.split.layout(experts)? {
        Some(layout) => layout.degrees(),
        None if chips == 1 => Degrees::default(),
        None => return Err("the source does not say how the model was cut".into()),
    };
    let mut assumed = Vec::new();
    let engine = engine(catalog, table, row, &mut assumed);
    let (known, uncovered) = catalog.engine(&engine).map_err(words)?;
    assumed.extend(uncovered.map(|version| not_covered(&known, version)));
    let (way, limit) = way(table, row, degrees, known.schedule.chunk, &mut assumed)?;
    let (drafts, accepted) = row.speculation.map_or((0.0, 1.0), |s| (s.drafted as f64, 1.0 + s.accepted));
    let load = measurement::Load {
        cached: row.prefix_hit.map_or(0.0, rackmath_units::Fraction::get),
        drafts,
        accepted,
        ..measurement::Load::of(way, row.isl.unwrap_or(1) as f64, row.osl.unwrap_or(1) as f64)
    };
    let setup = Setup {
        model: row.model.clone(),
        weights: weights(&model, row.weights),
        kv: row.kv.map(|kv| kv.to_string()),
        engine,
        system: row.system.clone(),
        degrees,
        chunk: row.max_tokens.map(|n| n as f64),
        sequences: limit.or(row.max_sequences.map(|n| n as f64)),
        ..Setup::default()
    };
    let source = Origin { name: table.source.name.clone(), part: row.metric.to_string() };
    let measured = Measurement { setup, load, metric: row.metric, value: row.value, spread: row.range, source };
    Ok((measured, assumed))
}

/// The format of the weights where it is not the checkpoint's own, which may keep some parts wider.
fn weights(model: &Model, given: Dtype) -> Option<String> {
    let own = model.formats();
    (given != own.linear && given != own.routed).then(|| given.to_string())
}

/// The engine family nearest to what ran.
fn engine(catalog: &Catalog, table: &Table, row: &Row, assumed: &mut Vec<Remark>) -> String {
    let (word, version): (&str, _) = (row.engine.into(), row.engine_version.as_deref());
    match row.engine {
        Engine::DeepSeek => {
            assumed.push(says("taken_as_sglang"));
            return "sglang".into();
        }
        Engine::Unknown => {
            assumed.push(says("taken_as_early_vllm"));
            return "vllm-0".into();
        }
        _ => {}
    }
    let release = version.filter(|v| v.starts_with(|c: char| c.is_ascii_digit()) && v.contains('.'));
    if let Some(release) = release {
        return format!("{word}@{release}");
    }
    if let (Engine::TrtLlm, Some(version)) = (row.engine, version) {
        // Our tables date release 0.9 to 2024-04 and 0.20 to 2025-07; what lies between is the family in the middle.
        let date = table.source.date.as_str();
        if ("2024-04".."2025-07").contains(&date) && catalog.engine("trtllm-0.10").is_ok() {
            assumed.push(says("compiler_version").with("version", version).with("date", date));
            return "trtllm-0.10".into();
        }
    }
    if catalog.ids(rackmath_spec::Kind::Engines).filter(|id| id.starts_with(word)).count() > 1 {
        let id = if version.is_none() { "no_version_given" } else { "no_release_number" };
        assumed.push(says(id).with("version", version).with("engine", word));
    }
    word.to_owned()
}

/// The load on one replica, and the most sequences of an attention group where that is what a row states.
fn way(
    table: &Table,
    row: &Row,
    degrees: Degrees,
    chunk: f64,
    assumed: &mut Vec<Remark>,
) -> Result<(Way, Option<f64>), String> {
    let replicas = row.split.replicas() as f64;
    let (isl, osl) = (row.isl.unwrap_or(0) as f64, row.osl.unwrap_or(0) as f64);
    let batch = match row.load {
        Some(Load::Batch(n)) => Some(n as f64 / replicas),
        _ => None,
    };
    let groups = degrees.dp as f64;
    let prompt = row.metric.is_first_token() || row.metric.is_input_rate();
    let context = row.context.unwrap_or(0) as f64;
    let stated = || batch.ok_or_else(|| format!("mode {} states no batch", row.mode));
    let way = match (row.mode, row.load) {
        (Mode::Closed, Some(Load::Concurrency(n))) => {
            Way::Closed { concurrency: n as f64 / replicas, rounds: ROUNDS, fixed: !drawn(table, row) }
        }
        (Mode::Open, Some(Load::RatePerS(rate))) => Way::Open { rate: rate / replicas },
        (Mode::MaxLoad, _) => return Ok((Way::Full, batch.map(|n| (n / groups).max(1.0)))),
        (Mode::Static, _) => Way::Static { batch: stated()? },
        (Mode::StepDecode, _) => Way::DecodeStep { batch: stated()?, context },
        (Mode::StepPrefill, _) => Way::PrefillStep { batch: stated()?, tokens: isl },
        (Mode::SingleStream, _) if prompt => Way::PrefillStep { batch: 1.0, tokens: isl },
        // On average half of what is generated lies in the cache.
        (Mode::SingleStream, _) => Way::DecodeStep { batch: 1.0, context: context + osl / 2.0 },
        (Mode::Disaggregated, _) if prompt => {
            let batch = batch.unwrap_or_else(|| {
                assumed.push(says("prompts_fill_passes").with("chunk", chunk));
                let new = isl * (1.0 - row.prefix_hit.map_or(0.0, rackmath_units::Fraction::get));
                groups * (chunk / new.max(1.0)).max(1.0)
            });
            Way::PrefillStep { batch, tokens: isl }
        }
        (Mode::Disaggregated, _) => Way::DecodeStep { batch: stated()?, context },
        (mode, _) => return Err(format!("mode {mode} states no load")),
    };
    Ok((way, None))
}

/// Whether lengths were drawn at random: InferenceX does, and dates its runs; other runs of its database do not.
fn drawn(table: &Table, row: &Row) -> bool {
    let dated = row.note.as_deref().is_some_and(|note| note.starts_with(|c: char| c.is_ascii_digit()));
    table.source.name == "InferenceX" && dated
}

/// The row in words.
pub(super) fn what(row: &Row) -> String {
    let s = &row.split;
    let degrees = [("tp", s.tp), ("pp", s.pp), ("dp", s.dp), ("ep", s.ep), ("adp", s.attention_dp)];
    let split: String =
        degrees.iter().filter_map(|(name, n)| n.filter(|n| *n > 1).map(|n| format!(" {name}{n}"))).collect();
    let version = row.engine_version.as_deref().map_or(String::new(), |v| format!(" {v}"));
    let load = match row.load {
        Some(Load::Concurrency(n)) => format!(" {n}"),
        Some(Load::RatePerS(rate)) => format!(" {rate}/s"),
        Some(Load::Batch(n)) => format!(" {n}"),
        None => String::new(),
    };
    let lengths = [("in", row.isl), ("out", row.osl), ("at", row.context.filter(|n| *n > 0))];
    let lengths: String = lengths.iter().filter_map(|(word, n)| n.map(|n| format!(", {word} {n}"))).collect();
    let Row { model, weights, engine, system, mode, .. } = row;
    format!("{model} {weights} on {system}{split}, {engine}{version}, {mode}{load}{lengths}")
}

/// A measurement in words.
pub fn ran(row: &Measurement) -> String {
    let Setup { model, engine, system, degrees: d, .. } = &row.setup;
    let weights = row.setup.weights.as_deref().map_or(String::new(), |w| format!(" {w}"));
    let degrees = [("tp", d.tp), ("pp", d.pp), ("dp", d.dp), ("ep", d.ep)];
    let cut = degrees.iter().filter(|(_, n)| *n > 1);
    let split = cut.fold(String::new(), |text, (name, n)| text + " " + name + &n.to_string());
    let lengths = format!("in {:.0}, out {:.0}", row.load.input, row.load.output);
    let load = match row.load.way {
        Way::Closed { concurrency, .. } => format!("closed {concurrency}, {lengths}"),
        Way::Open { rate } => format!("open {rate}/s, {lengths}"),
        Way::Full => format!("max-load, {lengths}"),
        Way::Queue { requests } => format!("max-load of {requests}, {lengths}"),
        Way::Static { batch } => format!("static {batch}, {lengths}"),
        Way::DecodeStep { batch, context } => format!("step-decode {batch}, at {context}"),
        Way::PrefillStep { batch, tokens } => format!("step-prefill {batch}, in {tokens}"),
    };
    format!("{model}{weights} on {system}{split}, {engine}, {load}")
}
