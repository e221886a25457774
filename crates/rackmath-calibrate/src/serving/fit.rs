//! Constants of an engine family from the measurements of whole deployments.
//!
//! The kernels are fitted elsewhere and stay as they are. What is left of a measured time is the engine's: small kernels,
//! waiting at collectives, the host, and how much slower kernels run in company. The loss is the mean of |ln(predicted /
//! measured)|, cut off so that rows no model explains do not steer, every (model, chip) group counting the same, with a
//! weak pull towards the first values so that a constant no row speaks of stays where it was.

use super::thinned;
use crate::search;
use crate::search::{Knob, knob};
use crate::table::{Errors, fit_line, toml as lines};
use rackmath::case::Bench;
use rackmath_spec::engine::{Engine, Overhead, Plain, Replay};
use rackmath_spec::measurement::Measurement;
use rackmath_spec::{Catalog, Residual, SpecError};
use rackmath_units::{Seconds, float};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What a fit heeds.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Beyond this distance a row says no more.
    cut: f64,
    /// Weight of times to the first token beside the rest.
    first: f64,
    /// Pull towards the first values, per squared logarithm.
    pull: f64,
    /// Steps of the search for each constant.
    pub steps: usize,
    /// Whether the rows are of one server that its owner asks about: all of them count, and every constant they tell of is asked.
    own: bool,
}

impl Manner {
    /// Of published rows, of many servers, some of which nothing explains.
    const fn published(steps: usize) -> Self {
        Self { cut: 0.5, first: 0.3, pull: 0.004, steps, own: false }
    }

    /// Of one's own.
    pub const fn own(steps: usize) -> Self {
        Self { cut: 2.0, first: 1.0, pull: 0.004, steps, own: true }
    }
}

pub const STEPS: usize = 12;

/// Most rows of one (model, chip) group that are used: evenly spaced ones.
const MOST: usize = 24;

/// The constants of a server, in order; the last one is not what a new engine is given.
pub const SERVER: [Knob<Overhead>; 10] = [
    knob("small", (0.0, 1e-4), |o| o.small.get(), |o, x| o.small = Seconds::s(x)),
    knob("skew", (0.0, 1e-3), |o| o.skew.get(), |o, x| o.skew = Seconds::s(x)),
    knob("stretch", (0.9, 2.0), |o| o.stretch, |o, x| o.stretch = x),
    knob("stretch_long", (0.9, 2.0), |o| o.stretch_long, |o, x| o.stretch_long = x),
    knob("expert_floor", (0.1, 3.0), |o| o.expert_floor, |o, x| o.expert_floor = x),
    knob("host", (0.0, 0.1), |o| o.host.get(), |o, x| o.host = Seconds::s(x)),
    knob("host_sequence", (0.0, 0.01), |o| o.host_sequence.get(), |o, x| o.host_sequence = Seconds::s(x)),
    knob("request", (0.0, 1.0), |o| o.request.get(), |o, x| o.request = Seconds::s(x)),
    knob("request_concurrent", (0.0, 0.1), |o| o.request_concurrent.get(), |o, x| o.request_concurrent = Seconds::s(x)),
    knob("small_traffic_divisor", (0.1, 5.0), |o| o.small_traffic_divisor, |o, x| o.small_traffic_divisor = x),
];

/// What expert layers have of their own, where they have.
const EXPERTS: [Knob<Overhead>; 2] = [
    knob(
        "short",
        (0.7, 4.0),
        |o| o.expert_stretch.unwrap_or_default().0,
        |o, x| {
            o.expert_stretch = o.expert_stretch.map(|(_, long)| (x, long));
        },
    ),
    knob(
        "long",
        (0.9, 4.0),
        |o| o.expert_stretch.unwrap_or_default().1,
        |o, x| {
            o.expert_stretch = o.expert_stretch.map(|(short, _)| (short, x));
        },
    ),
];

/// Those that recorded steps tell (`crate::steps`), where an engine's were recorded.
const STEPS_TELL: [&str; 4] = ["small", "stretch", "stretch_long", "small_traffic_divisor"];

/// The constants of a single process without tuned kernels; the time of a small kernel comes last.
const PLAIN: [Knob<Plain>; 7] = [
    knob("compute", (0.0, 1.0), |p| p.compute, |p, x| p.compute = x),
    knob("memory", (0.0, 1.0), |p| p.memory, |p, x| p.memory = x),
    knob("many_dies", (0.0, 1.0), |p| p.many_dies, |p, x| p.many_dies = x),
    knob("dies_floor", (1.0, 100.0), |p| p.dies_floor, |p, x| p.dies_floor = x),
    knob("expand_flop", (0.0, 1e3), |p| p.expand, |p, x| p.expand = x),
    knob("expand_nested_flop", (0.0, 1e3), |p| p.expand_nested, |p, x| p.expand_nested = x),
    knob("floor", (0.0, 1e-3), |p| p.floor.get(), |p, x| p.floor = Seconds::s(x)),
];

/// What prompts cost where nothing is captured; asked for of one's own rows alone, since published ones are of many servers.
const LAUNCH: [Knob<Overhead>; 2] = [
    knob("launch", (0.0, 1e-2), |o| o.launch.get(), |o, x| o.launch = Seconds::s(x)),
    knob("launch_expert", (0.0, 0.1), |o| o.launch_expert.get(), |o, x| o.launch_expert = Seconds::s(x)),
];

/// The time of a small kernel of a single process.
const PLAIN_SMALL: [Knob<Overhead>; 1] =
    [knob("small", (0.0, 1e-3), |o| o.small.get(), |o, x| o.small = Seconds::s(x))];

/// The constants that a fit turns.
#[derive(Clone)]
pub struct Free {
    plain: Vec<&'static Knob<Plain>>,
    server: Vec<&'static Knob<Overhead>>,
    /// Whether the rule is that of the host's processor.
    processor: bool,
}

impl Free {
    /// What whole deployments are asked for: what single steps told already stays.
    fn of(engine: &Engine, processor: bool, own: bool) -> Self {
        let rule = if processor { engine.processor.as_ref().or(engine.plain.as_ref()) } else { engine.plain.as_ref() };
        if rule.is_some() {
            return Self { plain: PLAIN.iter().collect(), server: PLAIN_SMALL.iter().collect(), processor };
        }
        // Steps were recorded on one maker's chips; an engine that is fitted for another's alone comes without the list of them.
        let told = engine.schedule.graph_prompts == Replay::Pieces && !engine.on.is_empty() && !own;
        // What experts have of their own is a pair in the file, and stays.
        let experts = engine.overhead.expert_stretch.is_some() && !own;
        let server = SERVER.iter().filter(move |k| !told || !STEPS_TELL.contains(&k.name));
        let server = server.chain(EXPERTS.iter().filter(move |_| experts));
        Self { plain: Vec::new(), server: server.chain(LAUNCH.iter().filter(|_| own)).collect(), processor }
    }

    fn rule(engine: &Engine, processor: bool) -> Option<&Plain> {
        engine.processor.as_ref().filter(|_| processor).or(engine.plain.as_ref())
    }

    /// Names and values, in order.
    pub fn constants(&self, engine: &Engine) -> Vec<(&'static str, f64)> {
        let rule = Self::rule(engine, self.processor);
        let plain = self.plain.iter().filter_map(|k| Some((k.name, (k.get)(rule?))));
        plain.chain(self.server.iter().map(|k| (k.name, (k.get)(&engine.overhead)))).collect()
    }

    fn most(&self) -> impl Iterator<Item = f64> {
        self.plain.iter().map(|k| k.high).chain(self.server.iter().map(|k| k.high))
    }

    /// Whether a constant has come to the end of what it may be.
    pub fn at_bound(&self, name: &str, x: f64) -> bool {
        let near = |low: f64, high: f64| x >= high * 0.999 || (low > 0.0 && x <= low * 1.001);
        self.plain.iter().any(|k| k.name == name && near(k.low, k.high))
            || self.server.iter().any(|k| k.name == name && near(k.low, k.high))
    }

    pub fn with(&self, engine: &Engine, x: &[f64]) -> Engine {
        let mut e = engine.clone();
        let (rules, servers) = x.split_at(self.plain.len());
        let on_processor = self.processor && e.processor.is_some();
        let rule = if on_processor { &mut e.processor } else { &mut e.plain };
        if let Some(rule) = rule {
            for (knob, x) in self.plain.iter().zip(rules) {
                (knob.set)(rule, x.clamp(knob.low, knob.high));
            }
        }
        for (knob, x) in self.server.iter().zip(servers) {
            (knob.set)(&mut e.overhead, x.clamp(knob.low, knob.high));
        }
        e
    }

    /// Only those of these names.
    pub fn only(&self, kept: impl Fn(&str) -> bool) -> Self {
        let (mut plain, mut server) = (self.plain.clone(), self.server.clone());
        plain.retain(|k| kept(k.name));
        server.retain(|k| kept(k.name));
        Self { plain, server, processor: self.processor }
    }
}

/// The constants that one's own rows are asked for, of a server or a single process.
pub fn own(engine: &Engine, processor: bool) -> Free {
    Free::of(engine, processor, true)
}

/// Rows that speak of an engine: drafting must be known. Two sets of vLLM 0.12 ran unlike a server: prompts found in the
/// prefix cache (more prompt tokens a second than the peak allows), and every kernel launched by the host.
fn usable(row: &Measurement) -> bool {
    let known = !row.source.part.contains("drafting unknown") && !row.source.name.contains("context sweep");
    known && row.setup.engine != "vllm@0.12.0"
}

/// Fits in so many steps for each constant; how near it comes, times to the first token apart.
pub fn family(
    catalog: &Catalog,
    engine: &Engine,
    rows: &[&Measurement],
    steps: usize,
) -> Result<(Engine, Option<Residual>), SpecError> {
    let free = Free::of(engine, false, false);
    fitted(catalog, engine, rows, &free, Manner::published(steps))
}

/// The same for some of the constants, in a manner.
pub fn fitted(
    catalog: &Catalog,
    engine: &Engine,
    rows: &[&Measurement],
    free: &Free,
    manner: Manner,
) -> Result<(Engine, Option<Residual>), SpecError> {
    let rows: Vec<&Measurement> = rows.iter().copied().filter(|r| manner.own || usable(r)).collect();
    let rows = thinned(&rows, MOST);
    let bench = RefCell::new(Bench::new(catalog.clone())?);
    let mut groups: BTreeMap<(bool, &str, &str), usize> = BTreeMap::new();
    let key = |r: &Measurement| r.metric.is_first_token();
    for r in &rows {
        *groups.entry((key(r), &r.setup.model, r.setup.chip())).or_default() += 1;
    }
    let known: Vec<f64> = free.constants(engine).into_iter().map(|(_, x)| x).collect();
    // Searched by logarithms: nothing cannot grow, so of one's own rows it begins at next to nothing.
    let least = |(x, most): (&f64, f64)| if manner.own { x.max(most * 1e-4) } else { *x };
    let start: Vec<f64> = known.iter().zip(free.most()).map(least).collect();
    let distance = |x: &[f64]| -> f64 {
        let mut bench = bench.borrow_mut();
        bench.replace(free.with(engine, x));
        let (mut sum, mut weights) = (0.0, 0.0);
        for r in &rows {
            let Ok(p) = bench.predict(r) else { continue };
            let first = key(r);
            let weight = if first { manner.first } else { 1.0 }
                / (groups[&(first, &*r.setup.model, r.setup.chip())] as f64).sqrt();
            sum += weight * float::ln(p / r.value).abs().min(manner.cut);
            weights += weight;
        }
        let pull: f64 =
            x.iter().zip(&known).filter(|(_, b)| **b > 0.0).map(|(a, b)| float::ln(a / b)).map(|l| l * l).sum();
        sum / weights.max(1e-9) + manner.pull * pull
    };
    let best = search::near(&start, manner.steps, distance);
    let engine = free.with(engine, &best);
    let mut bench = bench.into_inner();
    bench.replace(engine.clone());
    let errors = rows.iter().filter(|r| !key(r)).filter_map(|r| Some(float::ln(bench.predict(r).ok()? / r.value)));
    let fit = Errors::of(errors).map(|errors| errors.fit);
    Ok((engine, fit))
}

/// As a table of an engine's file; of another maker's chips where one is named.
pub fn toml((engine, fit): &(Engine, Option<Residual>), (vendor, until): (&str, &str)) -> String {
    let o = &engine.overhead;
    let (us, ms) = (|s: Seconds| digits(s.get() * 1e6), |s: Seconds| digits(s.get() * 1e3));
    let plain = engine.plain.as_ref().map_or(String::new(), |p| {
        let constants = [
            ("compute", digits(p.compute)),
            ("memory", digits(p.memory)),
            ("many_dies", digits(p.many_dies)),
            ("dies_floor", digits(p.dies_floor)),
            ("expand_flop", digits(p.expand)),
            ("expand_nested_flop", digits(p.expand_nested)),
            ("floor_us", us(p.floor)),
        ];
        lines("[plain]", &constants) + "\n"
    });
    let constants = [
        ("small_us", us(o.small)),
        ("mixer_kernels", o.mixer_kernels.to_string()),
        ("ffn_kernels", o.ffn_kernels.to_string()),
        ("hidden_passes", o.hidden_passes.to_string()),
        ("inner_passes", o.inner_passes.to_string()),
        ("small_traffic_divisor", digits(o.small_traffic_divisor)),
        ("skew_us", us(o.skew)),
        ("stretch", digits(o.stretch)),
        ("stretch_long", digits(o.stretch_long)),
        (
            "expert_stretch",
            o.expert_stretch.map_or(String::new(), |(short, long)| format!("[{}, {}]", digits(short), digits(long))),
        ),
        ("expert_floor", digits(o.expert_floor)),
        ("host_us", us(o.host)),
        ("host_sequence_us", us(o.host_sequence)),
        ("host_overlaps", o.host_overlaps.to_string()),
        ("launch_us", us(o.launch)),
        ("launch_expert_us", if o.launch_expert > Seconds::ZERO { us(o.launch_expert) } else { String::new() }),
        ("launch_latent_us", if o.launch_latent > Seconds::ZERO { us(o.launch_latent) } else { String::new() }),
        ("launch_piece_us", if o.launch_piece > Seconds::ZERO { us(o.launch_piece) } else { String::new() }),
        ("request_ms", ms(o.request)),
        ("request_concurrent_ms", ms(o.request_concurrent)),
        ("cold_latent_s", if o.cold_latent > Seconds::ZERO { digits(o.cold_latent.get()) } else { String::new() }),
    ];
    let fit = fit.map_or(String::new(), fit_line);
    if !vendor.is_empty() {
        let table = lines("[on.overhead]", &constants);
        let until = if until.is_empty() { String::new() } else { format!("until = \"{until}\"\n") };
        return format!("# {}\n[[on]]\nvendor = \"{vendor}\"\n{until}{fit}\n{table}", engine.id);
    }
    format!("# {}\n{plain}{}{fit}", engine.id, lines("[overhead]", &constants))
}

pub fn digits(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let places = (2.0 - float::log10(x).floor()).clamp(0.0, 9.0) as usize;
    format!("{x:.places$}")
}
