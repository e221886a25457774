//! Constants of an engine family from the measurements of whole deployments.
//!
//! The kernels are fitted elsewhere and stay as they are. What is left of a measured time is the engine's: small kernels,
//! waiting at collectives, the host, and how much slower kernels run in company. The loss is the mean of |ln(predicted /
//! measured)|, cut off so that rows no model explains do not steer, every (model, chip) group counting the same, with a
//! weak pull towards the first values so that a constant no row speaks of stays where it was.

use super::rows::Measured;
use crate::CalibrateError;
use crate::simplex;
use crate::table::Errors;
use rackmath::case::{Bench, Metric};
use rackmath_spec::engine::Engine;
use rackmath_units::{Seconds, float};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Beyond this distance a row says no more.
const CUT: f64 = 0.5;

/// Weight of times to the first token beside the rest.
const FIRST: f64 = 0.3;

/// Pull towards the first values, per squared logarithm.
const PULL: f64 = 0.004;

/// Steps of the search for each constant.
const STEPS: usize = 12;

/// Most rows of one (model, chip) group that are used: evenly spaced ones.
const MOST: usize = 24;

/// The constants that are fitted, in order.
fn constants(engine: &Engine) -> Vec<f64> {
    let o = &engine.overhead;
    if let Some(p) = &engine.plain {
        let plain = [p.compute, p.memory, p.many_dies, p.expand, p.expand_nested, p.floor.get(), o.small.get()];
        return plain.to_vec();
    }
    vec![
        o.small.get(),
        o.skew.get(),
        o.stretch,
        o.stretch_long,
        o.expert_floor,
        o.host.get(),
        o.host_sequence.get(),
        o.request.get(),
        o.request_concurrent.get(),
        o.small_memory,
    ]
}

fn with(engine: &Engine, x: &[f64]) -> Engine {
    let mut e = engine.clone();
    let o = &mut e.overhead;
    if let Some(p) = &mut e.plain {
        p.compute = x[0].min(1.0);
        p.memory = x[1].min(1.0);
        p.many_dies = x[2].min(1.0);
        p.expand = x[3].min(1e3);
        p.expand_nested = x[4].min(1e3);
        p.floor = Seconds::s(x[5].min(1e-3));
        o.small = Seconds::s(x[6].min(1e-3));
        return e;
    }
    o.small = Seconds::s(x[0].min(1e-4));
    o.skew = Seconds::s(x[1].min(1e-3));
    o.stretch = x[2].clamp(0.9, 2.0);
    o.stretch_long = x[3].clamp(0.9, 2.0);
    o.expert_floor = x[4].clamp(0.1, 3.0);
    o.host = Seconds::s(x[5].min(0.1));
    o.host_sequence = Seconds::s(x[6].min(0.01));
    o.request = Seconds::s(x[7].min(1.0));
    o.request_concurrent = Seconds::s(x[8].min(0.1));
    o.small_memory = x[9].clamp(0.1, 5.0);
    e
}

/// At most so many rows of each group, evenly spaced in the order of the table.
fn thinned<'a>(rows: &[&'a Measured]) -> Vec<&'a Measured> {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&'a Measured>> = BTreeMap::new();
    for r in rows {
        groups.entry((&r.stratum, &r.model, &r.chip)).or_default().push(r);
    }
    let mut all = Vec::new();
    for group in groups.into_values() {
        let step = group.len().div_ceil(MOST);
        all.extend(group.into_iter().step_by(step));
    }
    all
}

/// Rows that speak of an engine: drafting must be known. Two sets of vLLM 0.12 ran unlike a server: prompts found in the
/// prefix cache (more prompt tokens a second than the peak allows), and every kernel launched by the host.
fn usable(row: &Measured) -> bool {
    let known = !row.stratum.contains("drafting unknown") && !row.stratum.contains("context sweep");
    known && row.case.engine != "vllm@0.12.0"
}

/// A fitted engine with its rows.
pub struct Fitted {
    pub engine: Engine,
    /// How near it comes, times to the first token apart.
    pub errors: Option<Errors>,
}

pub fn family(engine: &Engine, rows: &[&Measured]) -> Result<Fitted, CalibrateError> {
    family_in(engine, rows, STEPS)
}

/// The same in so many steps for each constant.
pub fn family_in(engine: &Engine, rows: &[&Measured], steps: usize) -> Result<Fitted, CalibrateError> {
    let rows: Vec<&Measured> = rows.iter().copied().filter(|r| usable(r)).collect();
    let rows = thinned(&rows);
    let bench = RefCell::new(Bench::new(rackmath_catalog::embedded())?);
    let mut groups: BTreeMap<(bool, &str, &str), usize> = BTreeMap::new();
    let key = |r: &Measured| r.case.metric == Metric::Ttft;
    for r in &rows {
        *groups.entry((key(r), &r.model, &r.chip)).or_default() += 1;
    }
    let start = constants(engine);
    let distance = |x: &[f64]| -> f64 {
        let mut bench = bench.borrow_mut();
        bench.replace(with(engine, x));
        let (mut sum, mut weights) = (0.0, 0.0);
        for r in &rows {
            let Ok(p) = bench.predict(&r.case) else { continue };
            let first = key(r);
            let weight = if first { FIRST } else { 1.0 } / (groups[&(first, &*r.model, &*r.chip)] as f64).sqrt();
            sum += weight * float::ln(p / r.case.measured).abs().min(CUT);
            weights += weight;
        }
        let pull: f64 =
            x.iter().zip(&start).filter(|(_, b)| **b > 0.0).map(|(a, b)| float::ln(a / b)).map(|l| l * l).sum();
        sum / weights.max(1e-9) + PULL * pull
    };
    let best = simplex::near(&start, steps, distance);
    let engine = with(engine, &best);
    let mut bench = bench.into_inner();
    bench.replace(engine.clone());
    let errors: Vec<f64> = rows
        .iter()
        .filter(|r| !key(r))
        .filter_map(|r| bench.predict(&r.case).ok().map(|p| float::ln(p / r.case.measured).abs()))
        .collect();
    Ok(Fitted { engine, errors: Errors::of(&errors) })
}

/// The fitted table of an engine file.
pub fn toml(fitted: &Fitted) -> String {
    let o = &fitted.engine.overhead;
    let us = |s: Seconds| digits(s.get() * 1e6);
    let mut t = format!("# {}\n", fitted.engine.id);
    if let Some(p) = &fitted.engine.plain {
        let _ = writeln!(t, "[plain]\ncompute = {}\nmemory = {}", digits(p.compute), digits(p.memory));
        let _ = writeln!(t, "many_dies = {}\nexpand_flop = {}", digits(p.many_dies), digits(p.expand));
        let _ = writeln!(t, "expand_nested_flop = {}\nfloor_us = {}\n", digits(p.expand_nested), us(p.floor));
    }
    t.push_str("[overhead]\n");
    let _ = writeln!(t, "small_us = {}", us(o.small));
    let _ = writeln!(t, "mixer_kernels = {}", o.mixer_kernels);
    let _ = writeln!(t, "ffn_kernels = {}", o.ffn_kernels);
    let _ = writeln!(t, "hidden_passes = {}", o.hidden_passes);
    let _ = writeln!(t, "inner_passes = {}", o.inner_passes);
    let _ = writeln!(t, "small_memory = {}", digits(o.small_memory));
    let _ = writeln!(t, "skew_us = {}", us(o.skew));
    let _ = writeln!(t, "stretch = {}", digits(o.stretch));
    let _ = writeln!(t, "stretch_long = {}", digits(o.stretch_long));
    let _ = writeln!(t, "expert_floor = {}", digits(o.expert_floor));
    let _ = writeln!(t, "host_us = {}", us(o.host));
    let _ = writeln!(t, "host_sequence_us = {}", us(o.host_sequence));
    let _ = writeln!(t, "host_overlaps = {}", o.host_overlaps);
    let _ = writeln!(t, "launch_us = {}", us(o.launch));
    let _ = writeln!(t, "request_ms = {}", digits(o.request.get() * 1e3));
    let _ = writeln!(t, "request_concurrent_ms = {}", digits(o.request_concurrent.get() * 1e3));
    if let Some(e) = fitted.errors {
        let _ = writeln!(t, "fit = {{ rows = {}, median = {:.3}, p90 = {:.3} }}", e.n, e.median, e.p90);
    }
    t
}

fn digits(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let places = (2.0 - float::log10(x).floor()).clamp(0.0, 9.0) as usize;
    format!("{x:.places$}")
}
