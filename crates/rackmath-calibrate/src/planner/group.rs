//! One group of configurations that answer the same question: frontiers, what each predictor would have chosen, and what
//! a choice costs.
//!
//! $$ M(x) = \max_{u \ge x} m(u) \qquad R(x) = 1 - \frac{M_c(x)}{\max_l M_l(x)} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | x, u | interactivity | tok/s | output tokens per second that a user sees, 1 / TPOT |
//! | m | points of a [`Frontier`] | tok/s | output tokens per second and chip, interpolated in logarithms between points |
//! | M | [`Frontier::at`] | tok/s | the most that a layout gives users who want at least x |
//! | c, l | chosen, any layout | - | the layout a predictor takes for best, and all of them |
//! | R | [`regret`] | 1 | share of the best throughput that the choice gives away |
//!
//! Source: ours.

use crate::names::Names;
use crate::rows::{Record, present, table};
use crate::serving::inferencex;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{Load, Setup, Way};
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::stats::spearman;
use rackmath_units::float;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// What a planner is asked: everything but the layout and the load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    pub model: String,
    pub precision: String,
    pub hardware: String,
    pub engine: String,
    /// Nominal tokens of a prompt and of an answer.
    pub lengths: (u64, u64),
    /// Release of the engine, where releases are told apart; empty otherwise.
    pub release: String,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, precision, hardware, engine, lengths, release } = self;
        let model = model.rsplit('/').next().unwrap_or(model);
        write!(f, "{model} {precision}, {hardware}, {engine}{release}, {}/{}", lengths.0, lengths.1)
    }
}

/// Latencies of a configuration, measured or predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// To the first token, in milliseconds.
    pub ttft: f64,
    /// Per output token, in milliseconds.
    pub tpot: f64,
}

#[derive(Clone, Debug)]
pub struct Configuration {
    pub setup: Setup,
    pub load: Load,
    pub concurrency: f64,
    pub chips: f64,
    pub measured: Seen,
}

impl Configuration {
    /// Output tokens per second and chip of latencies in a closed loop, by Little's law.
    pub fn rate(&self, seen: Seen) -> f64 {
        let output = self.load.output;
        let seconds = (seen.ttft + seen.tpot * (output - 1.0)) / 1e3;
        self.concurrency * output / seconds / self.chips
    }

    pub fn layout(&self) -> Layout {
        let Degrees { tp, pp, dp, ep, .. } = self.setup.degrees;
        Layout { chips: self.chips as u64, tp, pp, dp, ep, drafts: self.load.drafts as u64 }
    }

    /// Requests that decoded at a time, by Little's law from the measured latencies.
    pub fn decoding(&self) -> f64 {
        let Seen { ttft, tpot } = self.measured;
        let decode = tpot * (self.load.output - 1.0);
        (self.concurrency * decode / (ttft + decode)).max(1.0)
    }
}

/// Chips, degrees, and tokens drafted a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    pub chips: u64,
    pub tp: u64,
    pub pp: u64,
    pub dp: u64,
    pub ep: u64,
    pub drafts: u64,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tp{}", self.tp)?;
        for (name, n) in [("pp", self.pp), ("dp", self.dp), ("ep", self.ep)] {
            if n > 1 {
                write!(f, " {name}{n}")?;
            }
        }
        if self.drafts > 0 {
            write!(f, " drafts {}", self.drafts)?;
        }
        Ok(())
    }
}

/// Aggregated rows of tier A by question, those with drafts left out where a table states them. Repeated runs stay apart:
/// each is predicted for its own version.
pub fn groups(
    catalog: &Catalog,
    folder: &Path,
    file: &'static str,
) -> Result<BTreeMap<Question, Vec<Configuration>>, SpecError> {
    let names = Names::new(catalog);
    let mut groups: BTreeMap<Question, Vec<Configuration>> = BTreeMap::new();
    for (path, _) in present(folder, &[file], |file| file)? {
        let plain = |row: &Record| ["", "none"].contains(&row.text("spec_decoding"));
        let usual = |row: &Record| row.text("mode") == "agg" && row.text("tier") == "A" && plain(row);
        let rows = table(&path)?.into_iter().filter(usual);
        for (question, configuration) in rows.filter_map(|row| configuration(&names, &row)) {
            groups.entry(question).or_default().push(configuration);
        }
    }
    Ok(groups)
}

fn configuration(names: &Names<'_>, row: &Record) -> Option<(Question, Configuration)> {
    let (setup, load) = inferencex::ran(names, row)?;
    let Way::Closed { concurrency, .. } = load.way else { return None };
    // Where the first token was not timed, the time that makes throughput what was measured.
    let ttft = row.number("ttft_ms").or_else(|| row.number("derived_ttft_ms")).filter(|t| *t > 0.0)?;
    let measured = Seen { ttft, tpot: row.number("tpot_ms")? };
    let words = ["model", "precision", "hardware", "engine"].map(|key| row.text(key).to_owned());
    let ([model, precision, hardware, engine], lengths) = (words, (row.count("isl")?, row.count("osl")?));
    let question = Question { model, precision, hardware, engine, lengths, release: String::new() };
    let d = setup.degrees;
    let chips = (d.tp * d.pp * d.dp) as f64;
    Some((question, Configuration { setup, load, concurrency, chips, measured }))
}

/// The points of a layout that no other of its points beats, slowest users first.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontier(Vec<(f64, f64)>);

impl Frontier {
    /// Of (interactivity, throughput) pairs; nothing where there are none.
    pub fn of(mut points: Vec<(f64, f64)>) -> Option<Self> {
        points.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
        let mut kept: Vec<(f64, f64)> = Vec::new();
        for point in points {
            if kept.last().is_none_or(|last| point.1 > last.1) {
                kept.push(point);
            }
        }
        kept.reverse();
        (!kept.is_empty()).then_some(Self(kept))
    }

    pub fn reach(&self) -> (f64, f64) {
        (self.0[0].0, self.0[self.0.len() - 1].0)
    }

    /// The most throughput for users who want at least so much; nothing beyond its reach.
    pub fn at(&self, interactivity: f64) -> Option<f64> {
        let (low, high) = self.reach();
        // A level that is one of the points must not be lost to rounding.
        if interactivity > high * (1.0 + 1e-9) {
            return None;
        }
        if interactivity <= low || self.0.len() == 1 {
            return Some(self.0[0].1);
        }
        let above = self.0.iter().position(|p| p.0 >= interactivity).unwrap_or(self.0.len() - 1);
        let ((x0, y0), (x1, y1)) = (self.0[above - 1], self.0[above]);
        let part = ((float::ln(interactivity) - float::ln(x0)) / (float::ln(x1) - float::ln(x0))).min(1.0);
        Some(float::exp(float::ln(y0) * (1.0 - part) + float::ln(y1) * part))
    }
}

/// So many values from one to another, evenly spaced in logarithms.
pub fn ladder(low: f64, high: f64, steps: usize) -> Vec<f64> {
    if high <= low || steps < 2 {
        return vec![low.min(high)];
    }
    let step = float::ln(high / low) / (steps - 1) as f64;
    (0..steps).map(|i| low * float::exp(step * i as f64)).collect()
}

/// Share of the best that a choice gives away.
pub fn regret(chosen: f64, best: f64) -> f64 {
    if best > 0.0 { (1.0 - chosen / best).max(0.0) } else { 0.0 }
}

pub const LEVELS: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::VariantArray)]
pub enum Chooser {
    /// The estimate, as `plan` makes it.
    #[strum(to_string = "rackmath")]
    Ours,
    /// Every kernel at its roofline, links and host free.
    #[strum(to_string = "data-sheet roofline")]
    Roofline,
    #[strum(to_string = "most chips")]
    MostChips,
    #[strum(to_string = "fewest chips")]
    FewestChips,
    /// Whoever cuts layers least.
    #[strum(to_string = "smallest TP")]
    SmallestTp,
}

#[derive(Clone, Debug)]
pub struct Predicted {
    pub configuration: Configuration,
    pub ours: Seen,
    pub roofline: Seen,
}

impl Predicted {
    fn by(&self, chooser: Chooser) -> Seen {
        if chooser == Chooser::Roofline { self.roofline } else { self.ours }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Output tokens a second that a user wants at least.
    pub interactivity: f64,
    /// What was chosen, and its measured throughput.
    pub chosen: (Layout, f64),
    /// What was best, and its measured throughput.
    pub best: (Layout, f64),
}

impl Choice {
    pub fn regret(&self) -> f64 {
        regret(self.chosen.1, self.best.1)
    }
}

/// Which layouts compete at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// All that were measured at this interactivity or a higher one.
    Reaching,
    /// Those measured on both sides of it.
    Spanning,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub question: Question,
    pub rows: Vec<Predicted>,
}

impl Group {
    fn frontiers(&self, of: impl Fn(&Predicted) -> Seen) -> BTreeMap<Layout, Frontier> {
        let mut points: BTreeMap<Layout, Vec<(f64, f64)>> = BTreeMap::new();
        for row in &self.rows {
            let seen = of(row);
            points.entry(row.configuration.layout()).or_default().push((1e3 / seen.tpot, row.configuration.rate(seen)));
        }
        points.into_iter().filter_map(|(layout, points)| Some((layout, Frontier::of(points)?))).collect()
    }

    pub fn layouts(&self) -> usize {
        self.frontiers(|row| row.configuration.measured).len()
    }

    /// Choices down the ladder; none where fewer than two layouts compete.
    pub fn choices(&self, chooser: Chooser, among: Among) -> Vec<Choice> {
        let measured = self.frontiers(|row| row.configuration.measured);
        if measured.len() < 2 {
            return Vec::new();
        }
        let predicted = self.frontiers(|row| row.by(chooser));
        let mut tops: Vec<f64> = measured.values().map(|f| f.reach().1).collect();
        tops.sort_by(f64::total_cmp);
        let low = measured.values().map(|f| f.reach().0).fold(f64::INFINITY, f64::min);
        let levels = ladder(low, tops[tops.len() - 2], LEVELS);
        levels.into_iter().filter_map(|level| choice(level, chooser, among, &measured, &predicted)).collect()
    }

    /// Rank correlation of throughput per chip, and of time per token, over all configurations.
    pub fn correlations(&self, chooser: Chooser) -> (Option<f64>, Option<f64>) {
        let correlation = |of: fn(&Configuration, Seen) -> f64| {
            let column = |seen: &dyn Fn(&Predicted) -> Seen| -> Vec<f64> {
                self.rows.iter().map(|row| of(&row.configuration, seen(row))).collect()
            };
            spearman(&column(&|row| row.configuration.measured), &column(&|row| row.by(chooser)))
        };
        (correlation(Configuration::rate), correlation(|_, seen| seen.tpot))
    }
}

fn choice(
    level: f64,
    chooser: Chooser,
    among: Among,
    measured: &BTreeMap<Layout, Frontier>,
    predicted: &BTreeMap<Layout, Frontier>,
) -> Option<Choice> {
    let competing = |f: &&Frontier| among == Among::Reaching || level >= f.reach().0 * (1.0 - 1e-9);
    let there: Vec<(Layout, f64)> =
        measured.iter().filter_map(|(layout, f)| Some((*layout, Some(f).filter(competing)?.at(level)?))).collect();
    if there.len() < 2 {
        return None;
    }
    // Who is thought unable to serve this fast comes after all who can, the fastest of them first.
    let worth = |layout: &Layout| -> (bool, f64) {
        let chips = layout.chips as f64;
        match chooser {
            Chooser::Ours | Chooser::Roofline => {
                let Some(f) = predicted.get(layout) else { return (false, 0.0) };
                f.at(level).map_or((false, f.reach().1), |rate| (true, rate))
            }
            Chooser::MostChips => (true, chips),
            Chooser::FewestChips => (true, -chips),
            Chooser::SmallestTp => (true, -(layout.tp as f64)),
        }
    };
    let better = |a: (bool, f64), b: (bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    let chosen = there.iter().copied().reduce(|a, b| if better(worth(&b.0), worth(&a.0)).is_gt() { b } else { a })?;
    let best = there.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    Some(Choice { interactivity: level, chosen, best })
}
