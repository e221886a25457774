//! The prediction beside a measurement: each figure with its interval, and where they disagree, which part is to blame.

use crate::inputs::{self, Inputs};
use rackmath::ask::{Question, Reply};
use rackmath::estimate::{self, Range};
use rackmath::field::put;
use rackmath::remark::{Remark, says};
use rackmath::{Catalog, Error};
use rackmath_measure::gauge::{Found, Measured};
use rackmath_measure::judge;
use rackmath_measure::read::{Load, Observed, Times};
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
    /// Whether a measurement outside its interval is better than predicted: a shorter time, or a higher rate.
    pub fn faster(&self) -> bool {
        let better = if self.unit == "ms" { |f: f64| f < 1.0 } else { |f: f64| f > 1.0 };
        self.inside == Some(false) && self.factor().is_some_and(better)
    }

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
    pub binds: Option<Remark>,
    /// What the prediction rests on.
    pub evidence: Option<Remark>,
    /// What cannot be first, then what is slower than predicted, what a request loses most by first, then what is faster.
    pub blame: Vec<Remark>,
    pub problem: Option<Remark>,
}

impl Beside {
    pub fn outside(&self) -> bool {
        self.rows.iter().any(|row| row.inside == Some(false))
    }

    /// Whether all that is outside is better than predicted.
    pub fn faster(&self) -> bool {
        self.outside() && self.rows.iter().filter(|row| row.inside == Some(false)).all(Row::faster)
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
) -> Result<Result<Beside, Remark>, Error> {
    let asked = asked(catalog, inputs, typed, o, seen)?;
    Ok(asked.map(|(request, answer)| {
        let limit_ms = limit(catalog, inputs, &request, &answer, o);
        compared(&answer, o, seen, limit_ms)
    }))
}

/// The roofline of a token where it is measured to be beaten: that of one request alone, which no load goes below. Nothing where it is not
/// beaten, or where steps bring more than a token.
pub fn limit(
    catalog: &Catalog,
    inputs: &Inputs<'_>,
    request: &Map<String, Value>,
    answer: &estimate::Answer,
    o: &Observed,
) -> Option<f64> {
    let tpot = o.tpot_ms.mean.filter(|_| !request.contains_key("speculation"))?;
    answer.served.as_ref().filter(|s| tpot < s.step.ideal_ms)?;
    let mut alone = request.clone();
    for key in ["rate_per_s", "max_load"] {
        alone.remove(key);
    }
    put(&mut alone, "/concurrency", json!(1.0));
    let Ok(Reply::Estimate(answer)) = Question::Estimate.answer(catalog, inputs.with_files(alone), &inputs::terms())
    else {
        return None;
    };
    Some(answer.served?.step.ideal_ms).filter(|ideal| tpot < *ideal)
}

/// A request with its answer, or why there is none.
pub type Asked = Result<(Map<String, Value>, estimate::Answer), Remark>;

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
            return Ok(Err(says("gauge_no_machine")));
        };
        put(&mut request, "/setting/on", json!(format!("{}x{chip}", o.chips.unwrap_or(1))));
    }
    if !has(&request, "/setting/model") {
        let root = seen.found.and_then(|f| f.root.clone());
        let names = [root, seen.found.map(|f| f.model.clone()), o.model.clone()];
        let names: Vec<String> = names.into_iter().flatten().filter(|n| !n.is_empty()).collect();
        let known = names.iter().find(|name| catalog.model(name).is_ok() || Path::new(name.as_str()).exists());
        let Some(name) = known else {
            let why = if names.is_empty() {
                says("gauge_model_untold")
            } else {
                says("gauge_model_unknown").with("names", names)
            };
            return Ok(Err(says("gauge_no_model").with("why", why)));
        };
        let name = inputs.named("model", name)?;
        put(&mut request, "/setting/model", json!(name));
    }
    if o.too_short() {
        return Ok(Err(says("gauge_too_short")));
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
    last.map_or_else(|| Ok(Err(says("gauge_no_prediction"))), Err)
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
    request.remove("rate_per_s");
    request.remove("concurrency");
    match o.load() {
        Load::Rate(rate) => put(request, "/rate_per_s", json!(rate)),
        Load::Concurrency(n) => put(request, "/concurrency", json!(n.max(1.0))),
        Load::Most => put(request, "/max_load", json!(true)),
    }
    if let Some(hit) = o.cached.filter(|hit| *hit > judge::HITS) {
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
        // A figure that the load decides has no interval: it is as it should be where the server keeps up.
        let within =
            |m: f64, p: Range| if p.low < p.high { m >= p.low && m <= p.high } else { m >= judge::HOLDS * p.high };
        let inside = times.mean.zip(predicted).map(|(m, p)| within(m, p));
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

pub fn compared(answer: &estimate::Answer, o: &Observed, seen: Seen<'_>, limit_ms: Option<f64>) -> Beside {
    let served = answer.served.as_ref();
    let rows = rows(o, served);
    let blame = served.map_or_else(Vec::new, |s| blame(&rows, s, o, seen, limit_ms));
    Beside {
        model: answer.model.clone(),
        machine: answer.system.clone(),
        engine: answer.engine.clone(),
        blame,
        rows,
        binds: served.map(|s| s.binding.clone()),
        evidence: answer.evidence.as_ref().map(|e| e.says.clone()),
        problem: answer.problem.as_ref().map(|p| p.what.clone()),
    }
}

/// Which part a disagreement belongs to, and what is known that would explain it.
fn blame(rows: &[Row], served: &estimate::Served, o: &Observed, seen: Seen<'_>, limit_ms: Option<f64>) -> Vec<Remark> {
    let mut off: Vec<(&Row, f64)> =
        rows.iter().filter(|r| r.inside == Some(false)).filter_map(|r| Some((r, r.factor()?))).collect();
    // What is slower has a part to blame; what is faster has none, and stands behind. Of the parts that loses most of a request comes first,
    // then what follows from them.
    let lost = |row: &Row| lost_ms(row, o).unwrap_or(0.0);
    off.sort_by(|(a, x), (b, y)| {
        let parts = lost(b).total_cmp(&lost(a));
        a.faster().cmp(&b.faster()).then(parts).then(y.ln().abs().total_cmp(&x.ln().abs()))
    });
    let all: f64 = rows.iter().map(lost).sum();
    let drafts = seen.measured.and_then(|m| m.counters).is_some_and(|c| c.drafted.is_some_and(|n| n > 0.0));
    let tpot = o.tpot_ms.mean.zip(limit_ms).filter(|_| !drafts);
    let mut out: Vec<Remark> = Vec::new();
    out.extend(tpot.map(|(tpot, limit)| says("gauge_impossible").with("tpot", tpot).with("limit", limit)));
    for (row, factor) in off.into_iter().filter(|(row, _)| tpot.is_none() || row.name != "TPOT") {
        let (said, causes) = if row.faster() {
            (says("gauge_faster"), ahead(row, o, seen))
        } else {
            (says(if factor > 1.0 { "gauge_more" } else { "gauge_less" }), causes(row, o, seen))
        };
        let said = said.with("figure", row.name).with("factor", factor).with("unit", row.unit);
        let said = said.with("measured", row.measured).with("predicted", row.predicted.map(|p| p.value));
        let share = Some(lost(row) / all).filter(|share| !row.faster() && *share > 0.0 && *share < 1.0);
        out.push(said.with("lost", share).with("causes", causes));
    }
    if let Some(kv) = seen.found.and_then(|f| f.kv_tokens) {
        let room = served.room * (o.isl.unwrap_or(0.0) + o.osl.unwrap_or(0.0));
        if room > 0.0 && kv < judge::CACHE_ROOM * room && !out.is_empty() {
            out.push(says("gauge_cache_room").with("has", kv).with("predicted", room));
        }
    }
    if let Some(m) = seen.measured.filter(|m| m.summary.client.tainted) {
        out.insert(0, says("gauge_client_late").with("ms", m.summary.client.lag_p99_s * 1e3));
    }
    out
}

/// What a request loses by one of its two parts: the wait for its first token once, the time per token with each of the others. Nothing for
/// figures that follow from these.
fn lost_ms(row: &Row, o: &Observed) -> Option<f64> {
    let late = row.measured? - row.predicted?.value;
    let times = match row.name {
        "TTFT" => 1.0,
        "TPOT" => (o.osl.unwrap_or(2.0) - 1.0).max(1.0),
        _ => return None,
    };
    Some((late * times).max(0.0))
}

/// What can make a figure better than predicted.
fn ahead(row: &Row, o: &Observed, seen: Seen<'_>) -> Vec<Remark> {
    let counters = seen.measured.and_then(|m| m.counters);
    match row.name {
        "TTFT" if o.cached.is_none() => vec![says("gauge_hits_untold")],
        "TTFT" => vec![says("gauge_faster_prompt")],
        "TPOT" => vec![match counters.and_then(|c| c.drafted.zip(c.accepted)) {
            Some((drafted, kept)) => says("gauge_drafts").with("drafted", drafted).with("kept", kept),
            None => says("gauge_faster_step"),
        }],
        "E2E" => vec![says("gauge_e2e_follows")],
        _ => vec![says("gauge_load_follows")],
    }
}

/// What can make a figure worse than predicted, as far as the server and the client tell.
fn causes(row: &Row, o: &Observed, seen: Seen<'_>) -> Vec<Remark> {
    let counters = seen.measured.and_then(|m| m.counters);
    let mut causes = Vec::new();
    match row.name {
        "TTFT" => {
            causes.push(match o.queue_ms.zip(row.measured) {
                Some((queue, ttft)) => {
                    let part = queue > judge::QUEUE_PART * ttft;
                    says(if part { "gauge_queue_is_part" } else { "gauge_queue_is_not" })
                        .with("queue", queue)
                        .with("ttft", ttft)
                }
                None => says("gauge_queue_untold"),
            });
            let connect = seen.measured.and_then(|m| m.summary.client.connect.as_ref());
            if let Some(connect) = connect.filter(|c| c.mean > judge::CONNECT_S) {
                causes.push(says("gauge_connects").with("ms", connect.mean * 1e3));
            }
        }
        "TPOT" => {
            causes.push(says("gauge_decode_step"));
            let flags = seen.found.map_or(&o.flags, |f| &f.flags);
            if flags.get("enforce_eager").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
                causes.push(says("gauge_eager"));
            }
            if let Some(n) = counters.and_then(|c| c.preempted).filter(|n| *n > 0.0) {
                causes.push(says("gauge_preempted").with("n", n));
            }
            if let Some((drafted, kept)) = counters.and_then(|c| c.drafted.zip(c.accepted)) {
                causes.push(says("gauge_drafts").with("drafted", drafted).with("kept", kept));
            }
        }
        "E2E" => causes.push(says("gauge_e2e_follows")),
        _ => causes.push(says("gauge_load_follows")),
    }
    causes
}

/// Three digits.
pub fn digits(x: f64) -> String {
    rackmath_units::significant(x, 3)
}
