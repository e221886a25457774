//! The score as a person reads it.

use super::Decision;
use super::group::{Among, Choice, Chooser, Group, Predicted, Question};
use rackmath_theory::stats::median;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use strum::VariantArray as _;

/// A group's mean regret up to which its choice counts as good.
const GOOD: f64 = 0.1;

/// Layouts from which a group counts as rich.
const RICH: usize = 5;

const WORST: usize = 12;

const NAMED: usize = 12;

#[derive(Clone, Debug)]
pub struct Report {
    pub title: &'static str,
    pub groups: Vec<Group>,
    /// Configurations left out, and why.
    pub left: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Regret of each group with a choice to make.
    pub regrets: Vec<f64>,
    /// Of those, groups with five layouts or more.
    pub rich: Vec<f64>,
    pub choices: Vec<f64>,
    /// Rank correlation of throughput, by group.
    pub rates: Vec<f64>,
    /// Rank correlation of time per token, by group.
    pub tpots: Vec<f64>,
}

impl Figures {
    pub fn of<'a>(groups: impl Iterator<Item = &'a Group>, chooser: Chooser, among: Among) -> Self {
        let mut figures = Self::default();
        for group in groups {
            let choices: Vec<f64> = group.choices(chooser, among).iter().map(Choice::regret).collect();
            if let Some(mean) = mean(&choices) {
                figures.regrets.push(mean);
                if group.layouts() >= RICH {
                    figures.rich.push(mean);
                }
            }
            figures.choices.extend(choices);
            let (rate, tpot) = group.correlations(chooser);
            figures.rates.extend(rate);
            figures.tpots.extend(tpot);
        }
        figures
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> Option<f64> {
    mean(&values.iter().map(|v| f64::from(u8::from(holds(*v)))).collect::<Vec<f64>>())
}

impl Report {
    /// The figures of the three tables for those a choice is held against.
    pub fn decisions(&self) -> Vec<Decision> {
        let apart = self.releases_apart();
        let tables = [
            ("all that reach a level", self, Among::Reaching),
            ("measured on both sides", self, Among::Spanning),
            ("releases apart", &apart, Among::Reaching),
        ];
        let choosers = [Chooser::Ours, Chooser::Roofline, Chooser::FewestChips];
        let one = |(name, report, among): (&str, &Self, Among), chooser| {
            let given = |group: &Group| {
                let choices: Vec<f64> = group.choices(chooser, among).iter().map(Choice::regret).collect();
                Some((group.question.to_string(), mean(&choices)?))
            };
            let each: Vec<(String, f64)> = report.groups.iter().filter_map(given).collect();
            let regrets: Vec<f64> = each.iter().map(|(_, regret)| *regret).collect();
            let within = share(&regrets, |r| r <= GOOD)?;
            let (median, mean) = (median(&regrets)?, mean(&regrets)?);
            let table = format!("layouts, {}, {name}", self.title);
            Some(Decision { table, each, chooser, within, median, mean })
        };
        tables.into_iter().flat_map(|table| choosers.into_iter().filter_map(move |c| one(table, c))).collect()
    }

    /// The same with releases of an engine told apart.
    fn releases_apart(&self) -> Self {
        let mut groups: BTreeMap<Question, Vec<Predicted>> = BTreeMap::new();
        for (group, row) in self.groups.iter().flat_map(|group| group.rows.iter().map(move |row| (group, row))) {
            let engine = &row.configuration.setup.engine;
            let release = engine.find('@').map_or("", |at| &engine[at..]).to_owned();
            groups.entry(Question { release, ..group.question.clone() }).or_default().push(row.clone());
        }
        let groups = groups.into_iter().map(|(question, rows)| Group { question, rows }).collect();
        Self { title: self.title, groups, left: Vec::new() }
    }

    fn block(&self, f: &mut fmt::Formatter<'_>, title: &str, among: Among) -> fmt::Result {
        heading(f, title)?;
        Chooser::VARIANTS.iter().try_for_each(|chooser| {
            line(f, &chooser.to_string(), &Figures::of(self.groups.iter(), *chooser, among), *chooser)
        })
    }

    fn parts(&self, f: &mut fmt::Formatter<'_>, among: Among) -> fmt::Result {
        heading(f, "rackmath, by engine and hardware")?;
        let keys: [fn(&Group) -> &str; 2] = [|g| &g.question.engine, |g| &g.question.hardware];
        for key in keys {
            for name in self.groups.iter().map(key).collect::<BTreeSet<&str>>() {
                let some = self.groups.iter().filter(|g| key(g) == name);
                line(f, name, &Figures::of(some, Chooser::Ours, among), Chooser::Ours)?;
            }
        }
        Ok(())
    }

    fn worst(&self, f: &mut fmt::Formatter<'_>, among: Among) -> fmt::Result {
        let mut scored: Vec<(f64, &Group, Vec<Choice>)> = Vec::new();
        for group in &self.groups {
            let choices = group.choices(Chooser::Ours, among);
            let regrets: Vec<f64> = choices.iter().map(Choice::regret).collect();
            if let Some(mean) = mean(&regrets).filter(|m| *m > 0.0) {
                scored.push((mean, group, choices));
            }
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        writeln!(f, "\nworst groups: mean regret, then the costliest choice")?;
        for (mean, group, choices) in scored.iter().take(WORST) {
            let Some(worst) = choices.iter().max_by(|a, b| a.regret().total_cmp(&b.regret())) else { continue };
            let (n, layouts) = (group.rows.len(), group.layouts());
            writeln!(f, "{:>5.1} %  {}; {n} configurations, {layouts} layouts", mean * 100.0, group.question)?;
            let Choice { interactivity: at, chosen: (took, rate), best: (best, most) } = worst;
            writeln!(
                f,
                "         at {at:.0} tok/s/user took {took} ({rate:.0} tok/s/chip measured), best {best} ({most:.0})"
            )?;
            for (word, layout) in [("took", *took), ("best", *best)] {
                let rows = group.rows.iter().filter(|r| r.configuration.layout() == layout);
                let errors: Vec<f64> = rows.map(|r| r.ours.tpot / r.configuration.measured.tpot).collect();
                let ends = errors.iter().copied().fold((f64::INFINITY, 0.0f64), |e, x| (e.0.min(x), e.1.max(x)));
                let middle = median(&errors).unwrap_or(f64::NAN);
                write!(f, "         {word}: predicted over measured TPOT {:.2} to {:.2}", ends.0, ends.1)?;
                writeln!(f, ", median {middle:.2}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n: usize = self.groups.iter().map(|g| g.rows.len()).sum();
        writeln!(f, "InferenceX tier A, {}: {} groups, {n} configurations", self.title, self.groups.len())?;
        self.block(f, "every layout that reaches a level competes", Among::Reaching)?;
        self.block(f, "only layouts measured on both sides of a level", Among::Spanning)?;
        self.releases_apart().block(f, "releases of an engine apart", Among::Reaching)?;
        self.parts(f, Among::Reaching)?;
        self.worst(f, Among::Reaching)?;
        if !self.left.is_empty() {
            writeln!(f, "\nleft out: {}", self.left.len())?;
            self.left.iter().take(NAMED).try_for_each(|what| writeln!(f, "  {what}"))?;
            if self.left.len() > NAMED {
                writeln!(f, "  and {} more", self.left.len() - NAMED)?;
            }
        }
        Ok(())
    }
}

fn heading(f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
    writeln!(f, "\n{title}")?;
    columns(f, ["chooser", "groups", "in 10 %", "choices", "regret", "5+ layouts", "Spearman", ">= 0.9", "TPOT"])
}

fn columns(f: &mut fmt::Formatter<'_>, cells: [&str; 9]) -> fmt::Result {
    let [name, n, good, choices, regret, rich, rate, high, tpot] = cells;
    writeln!(f, "{name:20} {n:>6} {good:>9} {choices:>9} {regret:>9} {rich:>14} {rate:>14} {high:>7} {tpot:>7}")
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, figures: &Figures, chooser: Chooser) -> fmt::Result {
    let Figures { regrets, rich, choices, rates, tpots } = figures;
    let none = || "-".to_owned();
    let percent = |x: Option<f64>| x.map_or_else(none, |x| format!("{:.1} %", x * 100.0));
    let rich = median(rich).map_or_else(none, |m| format!("{:.1} % ({})", m * 100.0, rich.len()));
    let predicts = matches!(chooser, Chooser::Ours | Chooser::Roofline);
    let rank = |values: &[f64]| median(values).filter(|_| predicts);
    let cells = [
        name.to_owned(),
        regrets.len().to_string(),
        percent(share(regrets, |r| r <= GOOD)),
        percent(share(choices, |r| r <= GOOD)),
        percent(median(regrets)),
        rich,
        rank(rates).map_or_else(none, |m| format!("{m:.3} ({})", rates.len())),
        percent(share(rates, |r| r >= 0.9).filter(|_| predicts)),
        rank(tpots).map_or_else(none, |m| format!("{m:.3}")),
    ];
    columns(f, cells.each_ref().map(String::as_str))
}
