//! Every set of measured runs (`sim_truth`), replayed with the flags it states: how far each percentile is off, and what the flags
//! that nobody stated would change.
//!
//! A set is read with a guess for what it leaves open; each guess is then made the other way, one at a time. Nothing is fitted here.

mod sets;

use crate::names::Names;
use crate::rows::{nothing, problem, table, table_or_none};
use rackmath::validate::replay::{Compared, Latency, Run};
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::stats::{median, quantile};
use rackmath_units::{Effort, float};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// What a set leaves open: what is taken for it, and what it could be as well.
pub struct Open {
    pub flag: &'static str,
    pub taken: &'static str,
    pub other: &'static str,
}

/// Reads the runs of a set; one of the open flags the other way.
type Reader = fn(&Names<'_>, &Tables, Option<usize>) -> Result<Vec<Run>, String>;

pub struct Set {
    pub file: &'static str,
    pub name: &'static str,
    pub open: &'static [Open],
    pub read: Reader,
}

/// The rows of a set, and one row for each of its runs.
pub struct Tables {
    pub rows: Vec<crate::rows::Record>,
    pub facts: Vec<crate::rows::Record>,
}

/// All sets that a folder holds.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let mut text = String::new();
    each(catalog, folder, |set, runs, other| {
        let (mut figures, mut requests) = (Vec::new(), 0);
        for (run, all) in runs {
            requests += run.jobs.len();
            figures.extend(all);
        }
        match other {
            None => {
                _ = writeln!(
                    text,
                    "\n{}\n{} runs, {requests} requests; |ln(predicted / measured)|",
                    set.name,
                    runs.len()
                );
                text += &lines(&figures);
            }
            Some(Open { flag, taken, other }) => {
                _ = writeln!(text, "  not stated: {flag}. Taken: {taken}. With {other}: {}", short(&figures));
            }
        }
    })?;
    Ok(text)
}

/// Every figure of every run, as CSV in milliseconds.
pub fn listed(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let mut text = String::from("set,run,part,metric,measured_ms,predicted_ms\n");
    each(catalog, folder, |set, runs, other| {
        for (run, all) in runs.iter().filter(|_| other.is_none()) {
            for c in all {
                let (part, metric, at) = (c.part, c.metric, c.at.name());
                let (m, p) = (c.measured, c.predicted);
                _ = writeln!(text, "{},{},{part},{metric} {at},{m:.3},{p:.3}", set.file, run.name);
            }
        }
    })?;
    Ok(text)
}

type Told<'a> = &'a [(Run, Vec<Compared>)];

fn each(
    catalog: &Catalog,
    folder: &Path,
    mut tell: impl FnMut(&Set, Told<'_>, Option<&Open>),
) -> Result<(), SpecError> {
    let names = Names::new(catalog);
    let kernels = KernelSet::of(catalog)?;
    let facts = table_or_none(&folder.join("runs.csv"))?;
    let mut any = false;
    for set in sets::ALL.iter().filter(|set| folder.join(set.file).exists()) {
        any = true;
        let path = folder.join(set.file);
        let tables = Tables { rows: table(&path)?, facts: facts.clone() };
        let ways = std::iter::once(None).chain((0..set.open.len()).map(Some));
        for way in ways {
            let mut told = Vec::new();
            for run in (set.read)(&names, &tables, way).map_err(|e| problem(&path, e))? {
                let all = run.compared(catalog, &kernels, &Effort::from(1))?;
                told.push((run, all));
            }
            tell(set, &told, way.map(|i| &set.open[i]));
        }
    }
    if any { Ok(()) } else { Err(nothing(folder, sets::ALL.iter().map(|set| set.file))) }
}

/// Distances by metric and percentile, with the share within 15 % at the middle and 25 % above it.
fn lines(figures: &[&Compared]) -> String {
    let mut text = String::new();
    let head = ["", "n", "median", "p90", "bias", "within"];
    _ = writeln!(text, "  {:<12}{:>5}{:>8}{:>8}{:>8}  {}", head[0], head[1], head[2], head[3], head[4], head[5]);
    for ((metric, at), errors) in grouped(figures) {
        let Distances { median, p90, bias } = Distances::of(&errors);
        let near: f64 = if at == "p50" || at == "mean" { 0.15 } else { 0.25 };
        let within = errors.iter().filter(|e| e.abs() <= float::ln(1.0 + near)).count();
        let (n, share) = (errors.len(), 100.0 * within as f64 / errors.len() as f64);
        let name = format!("{metric} {at}");
        _ = writeln!(
            text,
            "  {name:<12}{n:>5}{median:>8.3}{p90:>8.3}{bias:>+8.3}  {share:.0} % within {:.0} %",
            near * 100.0
        );
    }
    text
}

/// The middle distances alone.
fn short(figures: &[&Compared]) -> String {
    let all = grouped(figures);
    let word = |((metric, at), errors): (&(Latency, String), &Vec<f64>)| {
        let Distances { median, bias, .. } = Distances::of(errors);
        format!("{metric} {at} {median:.2} ({bias:+.2})")
    };
    let told = all.iter().filter(|((_, at), _)| at == "p50" || at == "p90" || at == "p95");
    told.map(word).collect::<Vec<_>>().join(", ")
}

fn grouped(figures: &[&Compared]) -> BTreeMap<(Latency, String), Vec<f64>> {
    let mut groups: BTreeMap<(Latency, String), Vec<f64>> = BTreeMap::new();
    for c in figures {
        groups.entry((c.metric, c.at.name())).or_default().push(c.error());
    }
    groups
}

struct Distances {
    median: f64,
    p90: f64,
    bias: f64,
}

impl Distances {
    fn of(errors: &[f64]) -> Self {
        let far: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        let or = |x: Option<f64>| x.unwrap_or(f64::NAN);
        Self { median: or(median(&far)), p90: or(quantile(&far, 0.9)), bias: or(median(errors)) }
    }
}
