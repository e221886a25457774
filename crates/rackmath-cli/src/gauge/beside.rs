//! The prediction beside a measurement: each figure with its interval, and where they disagree, which part is to blame.

use crate::inputs::{self, Inputs};
use rackmath::ask::{Question, Reply};
use rackmath::estimate::{self, Range};
use rackmath::field::put;
use rackmath::{Catalog, Error};
use rackmath_measure::gauge::{Found, Measured};
use rackmath_measure::read::{Observed, Times};
use rackmath_report::words::words;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A figure, measured and predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub unit: &'static str,
    pub measured: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub predicted: Option<Range>,
    /// Whether the measurement lies in the 80 % interval.
    pub inside: Option<bool>,
}

impl Row {
    /// Measured over predicted.
    fn factor(&self) -> Option<f64> {
        self.measured.zip(self.predicted).map(|(m, p)| m / p.value).filter(|f| f.is_finite() && *f > 0.0)
    }
}

/// Both, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    pub model: String,
    pub machine: String,
    pub engine: String,
    pub rows: Vec<Row>,
    /// What binds by the prediction.
    pub binds: String,
    /// What the prediction rests on.
    pub evidence: Option<String>,
    /// Largest disagreement first.
    pub blame: Vec<String>,
    pub problem: Option<String>,
}

impl Beside {
    pub fn outside(&self) -> bool {
        self.rows.iter().any(|row| row.inside == Some(false))
    }
}

/// What is known of the server beyond its times.
#[derive(Clone, Copy, Default)]
pub struct Seen<'a> {
    pub found: Option<&'a Found>,
    pub measured: Option<&'a Measured>,
}

/// Figures without a prediction.
pub fn alone(o: &Observed) -> Vec<Row> {
    rows(o, None)
}

/// Both, or why there is no prediction.
pub fn beside(
    catalog: &Catalog,
    inputs: &mut Inputs<'_>,
    typed: &Map<String, Value>,
    o: &Observed,
    seen: Seen<'_>,
) -> Result<Result<Beside, String>, Error> {
    Ok(asked(catalog, inputs, typed, o, seen)?.map(|(_, answer)| compared(&answer, o, seen)))
}

/// A request with its answer, or why there is none.
pub type Asked = Result<(Map<String, Value>, estimate::Answer), String>;

/// Asks for the prediction at the load that was measured: the request and its answer; nothing where the machine or the model is not known, which is said.
pub fn asked(
    catalog: &Catalog,
    inputs: &mut Inputs<'_>,
    typed: &Map<String, Value>,
    o: &Observed,
    seen: Seen<'_>,
) -> Result<Asked, Error> {
    let mut request = typed.clone();
    let has = |request: &Map<String, Value>, path: &str| Value::Object(request.clone()).pointer(path).is_some();
    if !has(&request, "/setting/on") {
        let Some(chip) = o.chip.as_ref().filter(|chip| catalog.chip(chip).is_ok()) else {
            return Ok(Err("no prediction beside: name the machine, --on 8xh200".into()));
        };
        put(&mut request, "/setting/on", json!(format!("{}x{chip}", o.chips.unwrap_or(1))));
    }
    if !has(&request, "/setting/model") {
        let root = seen.found.and_then(|f| f.root.clone());
        let names = [root, seen.found.map(|f| f.model.clone()), o.model.clone()];
        let names: Vec<String> = names.into_iter().flatten().filter(|n| !n.is_empty()).collect();
        let known = names.iter().find(|name| catalog.model(name).is_ok() || Path::new(name.as_str()).exists());
        let Some(name) = known else {
            let said = if names.is_empty() {
                "the model is not told".to_owned()
            } else {
                format!("no model \"{}\" in the catalogue", names.join("\" or \""))
            };
            return Ok(Err(format!("no prediction beside: {said}; name it, --model NAME or its config.json")));
        };
        let name = inputs.named("model", name)?;
        put(&mut request, "/setting/model", json!(name));
    }
    loaded(&mut request, typed, o, seen);
    put(&mut request, "/changes", json!(false));
    let engines = engines(typed, o, seen.found);
    let mut last = None;
    for engine in engines {
        let mut one = request.clone();
        if let Some(engine) = engine {
            put(&mut one, "/engine", json!(engine));
        }
        match Question::Estimate.answer(catalog, inputs.with_files(one.clone()), &inputs::terms()) {
            Ok(Reply::Estimate(answer)) => return Ok(Ok((one, answer))),
            Ok(_) => {}
            Err(error) => last = Some(error),
        }
    }
    last.map_or_else(|| Ok(Err("no prediction beside".into())), Err)
}

/// The engine that was found, with its version if that is known; what was typed wins.
fn engines(typed: &Map<String, Value>, o: &Observed, found: Option<&Found>) -> Vec<Option<String>> {
    if typed.contains_key("engine") || typed.contains_key("flags") {
        return vec![None];
    }
    let family = found.and_then(|f| f.engine.clone()).or_else(|| o.engine.clone());
    let version = found.and_then(|f| f.version.clone()).or_else(|| o.engine_version.clone());
    let plain = |v: &String| {
        v.split(['+', '-']).next().is_some_and(|v| !v.is_empty() && v.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    match family {
        Some(family) => {
            let exact =
                version.filter(plain).map(|v| format!("{family}@{}", v.split(['+', '-']).next().unwrap_or_default()));
            [exact.map(Some), Some(Some(family)), Some(None)].into_iter().flatten().collect()
        }
        None => vec![None],
    }
}

fn loaded(request: &mut Map<String, Value>, typed: &Map<String, Value>, o: &Observed, seen: Seen<'_>) {
    for (path, value) in [("/isl", o.isl), ("/osl", o.osl)] {
        if let Some(value) = value {
            put(request, path, json!(value));
        }
    }
    let typed_load = typed.contains_key("rate_per_s") || typed.contains_key("concurrency");
    if !typed_load || seen.measured.is_some() {
        request.remove("rate_per_s");
        request.remove("concurrency");
        match (o.rate, o.concurrency) {
            (Some(rate), _) => put(request, "/rate_per_s", json!(rate)),
            (None, Some(n)) => put(request, "/concurrency", json!(n.max(1.0))),
            (None, None) => put(request, "/max_load", json!(true)),
        }
    }
    if let Some(hit) = o.cached.filter(|hit| *hit > 0.005) {
        put(request, "/prefix_hit", json!(hit.min(0.999)));
    }
    // Targets are held against the measurement, not against the prediction.
    for key in ["ttft_ms", "tpot_ms", "e2e_ms"] {
        request.remove(key);
    }
    let flags = seen.found.map_or(&o.flags, |f| &f.flags);
    let whole = |names: &[&str]| {
        names.iter().find_map(|n| flags.get(*n)).and_then(|v| v.parse::<u64>().ok()).filter(|n| *n > 0)
    };
    let known = typed.contains_key("degrees") || typed.contains_key("flags");
    if let Some(tp) = whole(&["tp_size", "tensor_parallel_size", "tp"]).filter(|tp| *tp > 1 && !known) {
        put(request, "/degrees/tp", json!(tp));
    }
    if let Some(n) = whole(&["max_num_seqs", "max_running_requests"]).filter(|_| !typed.contains_key("max_num_seqs")) {
        put(request, "/max_num_seqs", json!(n));
    }
    if flags
        .get("enforce_eager")
        .or_else(|| flags.get("disable_cuda_graph"))
        .is_some_and(|v| v.eq_ignore_ascii_case("true"))
    {
        put(request, "/enforce_eager", json!(true));
    }
}

fn rows(o: &Observed, served: Option<&estimate::Served>) -> Vec<Row> {
    let row = |name, unit, times: Times, predicted: Option<Range>| {
        let inside = times.mean.zip(predicted).map(|(m, p)| m >= p.low && m <= p.high);
        Row { name, unit, measured: times.mean, p50: times.p50, p99: times.p99, predicted, inside }
    };
    let mean = |value| Times { mean: value, ..Times::default() };
    vec![
        row("TTFT", "ms", o.ttft_ms, served.and_then(|s| s.ttft_ms)),
        row("TPOT", "ms", o.tpot_ms, served.map(|s| s.tpot_ms)),
        row("E2E", "ms", o.e2e_ms, served.and_then(|s| s.e2e_ms)),
        row("output", "tok/s", mean(o.output_tok_s), served.map(|s| s.output_tok_s)),
        row("requests", "1/s", mean(o.requests_per_s), served.map(|s| s.requests_per_s)),
    ]
}

pub fn compared(answer: &estimate::Answer, o: &Observed, seen: Seen<'_>) -> Beside {
    let served = answer.served.as_ref();
    let rows = rows(o, served);
    let blame = served.map_or_else(Vec::new, |s| blame(&rows, s, o, seen));
    Beside {
        model: answer.model.clone(),
        machine: answer.system.clone(),
        engine: answer.engine.clone(),
        blame,
        rows,
        binds: served.map_or_else(String::new, |s| words(&s.binding)),
        evidence: answer.evidence.as_ref().map(|e| words(&e.says)),
        problem: answer.problem.as_ref().map(|p| words(&p.what)),
    }
}

/// Which part a disagreement belongs to, and what is known that would explain it.
fn blame(rows: &[Row], served: &estimate::Served, o: &Observed, seen: Seen<'_>) -> Vec<String> {
    let mut off: Vec<(&Row, f64)> =
        rows.iter().filter(|r| r.inside == Some(false)).filter_map(|r| Some((r, r.factor()?))).collect();
    off.sort_by(|a, b| b.1.ln().abs().total_cmp(&a.1.ln().abs()));
    let counters = seen.measured.and_then(|m| m.counters);
    let mut out = Vec::new();
    for (row, factor) in off {
        let side = if factor > 1.0 {
            format!("{factor:.2} times the prediction")
        } else {
            format!("{factor:.2} of the prediction")
        };
        let mut causes: Vec<String> = Vec::new();
        match row.name {
            "TTFT" => {
                let queue = counters.and_then(|c| c.queue).map(|q| q * 1e3);
                match (queue, row.measured) {
                    (Some(queue), Some(ttft)) if queue > 0.3 * ttft => causes.push(format!("waiting in the server is {queue:.1} of {ttft:.1} ms: the part is the queue")),
                    (Some(queue), Some(ttft)) => causes.push(format!("waiting in the server is only {queue:.1} of {ttft:.1} ms: the part is the prompt's pass or what stands before the engine")),
                    _ => causes.push("the server does not tell its queue: either waiting or the prompt's pass".into()),
                }
                if factor < 1.0 && o.cached.is_none() {
                    causes.push("hits of the prefix cache, which this server does not tell, would shorten it".into());
                }
                if let Some(connect) =
                    seen.measured.and_then(|m| m.summary.client.connect.as_ref()).filter(|c| c.mean > 2e-3)
                {
                    causes.push(format!("new connections took {:.1} ms each", connect.mean * 1e3));
                }
            }
            "TPOT" => {
                causes.push("the part is the decode step".into());
                let flags = seen.found.map_or(&o.flags, |f| &f.flags);
                if flags.get("enforce_eager").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
                    causes.push("the server runs without graphs (enforce_eager), which was taken into account".into());
                }
                if let Some(n) = counters.and_then(|c| c.preempted).filter(|n| *n > 0.0) {
                    causes.push(format!("{n:.0} requests were pushed out of the cache and begun again"));
                }
                if let Some((drafted, kept)) = counters.and_then(|c| c.drafted.zip(c.accepted)) {
                    causes.push(format!("the server drafts {drafted:.1} tokens a step and keeps {kept:.2}: tell the prediction with --speculation"));
                }
            }
            "E2E" => causes.push("follows from TTFT and TPOT".into()),
            _ => causes.push("follows from the load and the times above".into()),
        }
        let unit = row.unit;
        let predicted = row.predicted.map_or(0.0, |p| p.value);
        out.push(format!(
            "{} {} ({} {unit} against {}): {}",
            row.name,
            side,
            digits(row.measured.unwrap_or(0.0)),
            digits(predicted),
            causes.join("; ")
        ));
    }
    if let Some(kv) = seen.found.and_then(|f| f.kv_tokens) {
        let room = served.room * (o.isl.unwrap_or(0.0) + o.osl.unwrap_or(0.0));
        if room > 0.0 && kv < 0.7 * room && !out.is_empty() {
            out.push(format!("the server has room for {} tokens of KV cache, the prediction for {}: another share of the memory, or another format of the cache", digits(kv), digits(room)));
        }
    }
    if let Some(m) = seen.measured.filter(|m| m.summary.client.tainted) {
        out.insert(
            0,
            format!("the client itself was late ({:.2} ms at p99): no verdict", m.summary.client.lag_p99_s * 1e3),
        );
    }
    out
}

/// Three digits.
pub fn digits(x: f64) -> String {
    rackmath_units::significant(x, 3)
}
