//! Constants of one's own server from one's own rows: the search of the catalogue's fits, begun at the catalogue's constants and pulled towards them.
//!
//! A constant that hardly moves any row when it is a quarter larger cannot be told from the rows: it is not asked for, and named. Two that
//! move the rows alike can only be told together. Rows are left out and predicted by constants that never saw them; where those are no nearer
//! than the catalogue's, the catalogue's stay.

use crate::serving::fit::{self, Free, Manner, digits};
use crate::table::{Errors, left_out};
use rackmath::case::Bench;
use rackmath_spec::engine::Engine;
use rackmath_spec::measurement::{Measurement, Way};
use rackmath_spec::{Catalog, Residual, SpecError};
use rackmath_units::float;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Rows whose prediction moves by less than this, as a logarithm, when a constant is a quarter larger say nothing about it.
const TELLS: f64 = 0.01;

/// How much larger.
const MORE: f64 = 1.25;

/// From this correlation of what two constants move on, the rows do not tell them apart.
const ALIKE: f64 = 0.98;

/// Runs that are left out one by one; of more, a tenth at a time.
const ONE_BY_ONE: usize = 10;

/// Fewer rows than this say nothing that chance could not.
const FEWEST: usize = 3;

/// Of one engine, on one maker's chips.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    pub engine: String,
    /// Where the catalogue has constants of this maker's chips apart.
    pub vendor: Option<String>,
    pub rows: usize,
    /// Rows that could not be predicted, and the first reason.
    pub unread: (usize, Option<String>),
    pub chips: BTreeSet<String>,
    pub models: BTreeSet<String>,
    pub loads: String,
    /// Distances with the catalogue's constants, with those fitted on all rows, and of rows left out.
    #[serde(serialize_with = "Distances::serialize")]
    pub before: Residual,
    #[serde(serialize_with = "Distances::serialize")]
    pub within: Residual,
    #[serde(serialize_with = "Distances::serialize")]
    pub left_out: Residual,
    /// Rows left out at a time.
    pub at_a_time: usize,
    /// Whether the constants are nearer to rows they never saw.
    pub better: bool,
    /// By the name in the engine's file, in its unit: the catalogue's and the fitted.
    pub constants: Vec<Constant>,
    /// What the rows cannot tell.
    pub untold: Vec<String>,
    /// What they tell only together.
    pub alike: Vec<(String, String)>,
    #[serde(skip)]
    plain: bool,
    #[serde(skip)]
    processor: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Constant {
    pub name: String,
    pub before: f64,
    pub after: f64,
    /// At the end of what it may be.
    pub at_bound: bool,
    #[serde(skip)]
    of_plain: bool,
}

/// A residual as it is written.
#[derive(Serialize)]
#[serde(remote = "Residual")]
struct Distances {
    rows: u64,
    median: f64,
    p90: f64,
}

/// The name of a constant in an engine's file, and from seconds to its unit.
fn filed(name: &str) -> (String, f64) {
    match name {
        "small" | "skew" | "host" | "host_sequence" | "launch" | "launch_expert" | "floor" => {
            (format!("{name}_us"), 1e6)
        }
        "request" | "request_concurrent" => (format!("{name}_ms"), 1e3),
        _ => (name.to_owned(), 1.0),
    }
}

/// An engine, another maker where its constants are apart there, and whether it runs on the host's processor.
type Whose = (String, Option<String>, bool);

/// A fit for each engine the rows speak of.
pub fn fit(catalog: &Catalog, rows: &[Measurement]) -> Result<Vec<Fit>, SpecError> {
    let mut groups: BTreeMap<Whose, (Engine, Vec<&Measurement>)> = BTreeMap::new();
    for row in rows {
        let (engine, _) = catalog.engine(&row.setup.engine)?;
        let chip = catalog.system(&row.setup.system)?.chip.clone();
        let elsewhere = engine.on.iter().find(|e| e.vendor == chip.vendor);
        let processor = chip.processor && engine.processor.is_some();
        let key = (engine.id.clone(), elsewhere.map(|e| e.vendor.clone()), processor);
        let of = || match elsewhere {
            Some(e) => Engine { overhead: e.overhead, on: Vec::new(), ..(*engine).clone() },
            None => (*engine).clone(),
        };
        groups.entry(key).or_insert_with(|| (of(), Vec::new())).1.push(row);
    }
    let each = groups.into_iter().map(|((id, vendor, processor), (engine, rows))| {
        if engine.ideal {
            return Err(SpecError::said(format!("{id} has no constants: it is the roofline itself"))
                .hint("name the engine that ran"));
        }
        one(catalog, &engine, (vendor, processor), &rows)
    });
    each.collect()
}

fn one(
    catalog: &Catalog,
    engine: &Engine,
    (vendor, processor): (Option<String>, bool),
    rows: &[&Measurement],
) -> Result<Fit, SpecError> {
    let mut bench = Bench::new(catalog.clone())?;
    bench.replace(engine.clone());
    let mut error = |row: &Measurement| distance(&mut bench, row);
    let (mut known, mut unread) = (Vec::new(), (0, None));
    for row in rows {
        match error(row) {
            Ok(_) => known.push(*row),
            Err(why) => {
                unread.0 += 1;
                unread.1.get_or_insert_with(|| why.to_string());
            }
        }
    }
    if known.len() < FEWEST {
        let why = unread.1.map_or(String::new(), |why| format!(" ({} could not be predicted: {why})", unread.0));
        return Err(SpecError::said(format!("{} rows of {}{why}", known.len(), engine.id))
            .hint(format!("expected at least {FEWEST} that can be predicted; more loads, or several repeats")));
    }
    let all = fit::own(engine, processor);
    let moves = moves(catalog, engine, &all, &known)?;
    let told = |name: &str| moves.iter().any(|(n, by)| *n == name && by.iter().any(|x| x.abs() >= TELLS));
    let untold: Vec<String> = moves.iter().filter(|(n, _)| !told(n)).map(|(n, _)| filed(n).0).collect();
    let free = all.only(told);
    let mut before = |rows: &[&Measurement]| Errors::of(rows.iter().filter_map(|r| error(r).ok())).map(|e| e.fit);
    let before = before(&known).ok_or_else(|| SpecError::said("no row can be predicted"))?;
    let (fitted, _) = fit::fitted(catalog, engine, &known, &free, Manner::own(fit::STEPS))?;
    let within = errors(catalog, &fitted, &known)?;
    // Figures of one run go together: its time to the first token would tell of its time per token.
    let mut runs: Vec<String> = Vec::new();
    let mut run = |row: &Measurement| {
        let name = format!("{:?} {:?}", row.setup, row.load);
        runs.iter().position(|known| *known == name).unwrap_or_else(|| {
            runs.push(name);
            runs.len() - 1
        })
    };
    let of_run: Vec<usize> = known.iter().map(|row| run(row)).collect();
    let folds = runs.len().clamp(1, ONE_BY_ONE);
    let at_a_time = known.len().div_ceil(folds);
    let places: Vec<usize> = (0..known.len()).collect();
    let refs: Vec<&usize> = places.iter().collect();
    let left = left_out(
        &refs,
        // Dealt out, not in runs: rows beside each other are of one setup as a rule.
        |at| of_run[*at] % folds,
        |kept| {
            let rows: Vec<&Measurement> = kept.iter().map(|at| known[**at]).collect();
            let (engine, _) = fit::fitted(catalog, engine, &rows, &free, Manner::own(super::serving::FOLD_STEPS))?;
            let mut bench = Bench::new(catalog.clone())?;
            bench.replace(engine);
            Ok(RefCell::new(bench))
        },
        |bench, at| distance(&mut bench.borrow_mut(), known[*at]),
    )?;
    let left_out = Errors::of(left.iter().map(|(_, e)| *e)).map_or(before, |e| e.fit);
    let mean = |errors: &mut dyn Iterator<Item = f64>| -> f64 {
        let all: Vec<f64> = errors.map(f64::abs).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let mut bench = Bench::new(catalog.clone())?;
    bench.replace(engine.clone());
    let was = mean(&mut known.iter().filter_map(|row| distance(&mut bench, row).ok()));
    let now = mean(&mut left.iter().map(|(_, e)| *e));
    // Both the middle and the mean: a fit that mends a few rows at the cost of the others is none.
    let better = left_out.median <= before.median && now < was;
    Ok(Fit {
        engine: engine.id.clone(),
        vendor,
        rows: known.len(),
        unread,
        chips: known.iter().map(|r| r.setup.chip().to_owned()).collect(),
        models: known.iter().map(|r| r.setup.model.clone()).collect(),
        loads: loads(&known),
        before,
        within,
        left_out,
        at_a_time,
        better,
        constants: constants(engine, &fitted, &free),
        untold,
        alike: alike(&moves, told),
        plain: engine.plain.is_some(),
        processor,
    })
}

/// ln(predicted / measured).
fn distance(bench: &mut Bench, row: &Measurement) -> Result<f64, SpecError> {
    let predicted = bench.predict(row)?;
    if predicted > 0.0 && predicted.is_finite() {
        return Ok(float::ln(predicted / row.value));
    }
    Err(SpecError::said("predicted not to fit"))
}

fn errors(catalog: &Catalog, engine: &Engine, rows: &[&Measurement]) -> Result<Residual, SpecError> {
    let mut bench = Bench::new(catalog.clone())?;
    bench.replace(engine.clone());
    let all = Errors::of(rows.iter().filter_map(|row| distance(&mut bench, row).ok()));
    all.map(|e| e.fit).ok_or_else(|| SpecError::said("no row can be predicted with the fitted constants"))
}

/// By how much each row's prediction moves, as a logarithm, when a constant is a quarter larger.
fn moves(
    catalog: &Catalog,
    engine: &Engine,
    free: &Free,
    rows: &[&Measurement],
) -> Result<Vec<(&'static str, Vec<f64>)>, SpecError> {
    let mut bench = Bench::new(catalog.clone())?;
    let names = free.constants(engine);
    let mut predicted = |x: &[f64]| -> Vec<f64> {
        bench.replace(free.with(engine, x));
        rows.iter().map(|row| distance(&mut bench, row).unwrap_or(f64::NAN)).collect()
    };
    let start: Vec<f64> = names.iter().map(|(_, x)| *x).collect();
    let first = predicted(&start);
    let moved = names.iter().enumerate().map(|(i, (name, _))| {
        let mut x = start.clone();
        // Nothing is tried as a hundredth of a millisecond: whether it would matter at all.
        x[i] = if x[i] > 0.0 { x[i] * MORE } else { 1e-5 };
        let now = predicted(&x);
        let by = now.iter().zip(&first).map(|(a, b)| a - b).map(|d| if d.is_finite() { d } else { 0.0 });
        (*name, by.collect())
    });
    Ok(moved.collect())
}

fn alike(moves: &[(&'static str, Vec<f64>)], told: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let size = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let told: Vec<&(&str, Vec<f64>)> = moves.iter().filter(|(n, _)| told(n)).collect();
    let mut pairs = Vec::new();
    for (i, (a, x)) in told.iter().enumerate() {
        for (b, y) in &told[i + 1..] {
            let product: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
            if product / (size(x) * size(y)).max(1e-300) >= ALIKE {
                pairs.push((filed(a).0, filed(b).0));
            }
        }
    }
    pairs
}

fn constants(before: &Engine, after: &Engine, free: &Free) -> Vec<Constant> {
    let (old, new) = (free.constants(before), free.constants(after));
    let both = old.iter().zip(&new).map(|((name, a), (_, b))| {
        let (filed, unit) = filed(name);
        let of_plain = ["compute", "memory", "many_dies", "dies_floor", "expand_flop", "expand_nested_flop", "floor"]
            .contains(name);
        Constant { name: filed, before: a * unit, after: b * unit, at_bound: free.at_bound(name, *b), of_plain }
    });
    both.collect()
}

/// What the rows' loads were, in words of a file.
fn loads(rows: &[&Measurement]) -> String {
    let span = |name: &str, all: &mut dyn Iterator<Item = f64>| {
        let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        let shown = |x: f64| digits(x).trim_end_matches('0').trim_end_matches('.').to_owned();
        match (low.is_finite(), low == high) {
            (false, _) => String::new(),
            (_, true) => format!("{name} {}, ", if low >= 100.0 { format!("{low:.0}") } else { shown(low) }),
            _ => format!("{name} {low:.0} to {high:.0}, "),
        }
    };
    let users = |r: &&Measurement| match r.load.way {
        Way::Closed { concurrency, .. } => Some(concurrency),
        Way::Static { batch } | Way::DecodeStep { batch, .. } | Way::PrefillStep { batch, .. } => Some(batch),
        _ => None,
    };
    let text = span("concurrency", &mut rows.iter().filter_map(users))
        + &span("prompts of", &mut rows.iter().map(|r| r.load.input))
        + &span("answers of", &mut rows.iter().map(|r| r.load.output));
    text.trim_end_matches(", ").to_owned()
}

/// The small file that `--with` takes; nothing where no engine's constants came nearer.
pub fn file(fits: &[Fit]) -> String {
    let mut text =
        String::from("# Constants of one's own, by rackmath fit; lay them over the catalogue's with --with.\n");
    let list = |all: &BTreeSet<String>| all.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(", ");
    for fit in fits.iter().filter(|fit| fit.better) {
        let _ = writeln!(text, "\n[[engine]]\nid = {:?}", fit.engine);
        if let Some(vendor) = &fit.vendor {
            let _ = writeln!(text, "vendor = {vendor:?}");
        }
        let _ = writeln!(text, "rows = {}\nchips = [{}]\nmodels = [{}]", fit.rows, list(&fit.chips), list(&fit.models));
        let _ = writeln!(text, "loads = {:?}", fit.loads);
        let _ = writeln!(text, "error_before = {:.3}\nerror_after = {:.3}", fit.before.median, fit.left_out.median);
        let rule = if fit.processor { "processor" } else { "plain" };
        for (heading, of_plain) in [("overhead", false), (rule, true)] {
            let own: Vec<&Constant> = fit.constants.iter().filter(|c| (c.of_plain && fit.plain) == of_plain).collect();
            if !own.is_empty() {
                let _ = writeln!(text, "\n[engine.{heading}]");
            }
            for c in own {
                let _ = writeln!(text, "{} = {}", c.name, digits(c.after));
            }
        }
    }
    text
}
