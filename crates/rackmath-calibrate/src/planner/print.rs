//! The score as a person reads it.

use super::group::{Among, Choice, Chooser, Group};
use rackmath_theory::stats::median;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A group's mean regret up to which its choice counts as good.
const GOOD: f64 = 0.1;

/// Layouts from which a group counts as rich.
const RICH: usize = 5;

/// Groups shown as the worst.
const WORST: usize = 12;

/// Rows named as left out.
const NAMED: usize = 12;

/// Groups with their predictions.
#[derive(Clone, Debug)]
pub struct Report {
    /// With which constants.
    pub title: &'static str,
    pub groups: Vec<Group>,
    /// Configurations left out, and why.
    pub left: Vec<String>,
}

/// The figures of one chooser over some groups.
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

    /// Share of groups whose regret is at most a tenth.
    pub fn good(&self) -> Option<f64> {
        let good: Vec<f64> = self.regrets.iter().map(|r| f64::from(u8::from(*r <= GOOD))).collect();
        mean(&good)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Report {
    /// The same with releases of an engine told apart.
    fn releases_apart(&self) -> Self {
        let mut groups = BTreeMap::new();
        for group in &self.groups {
            for row in &group.rows {
                let engine = &row.configuration.setup.engine;
                let release = engine.find('@').map_or("", |at| &engine[at..]).to_owned();
                let question = super::Question { release, ..group.question.clone() };
                groups.entry(question).or_insert_with(Vec::new).push(row.clone());
            }
        }
        let groups = groups.into_iter().map(|(question, rows)| Group { question, rows }).collect();
        Self { title: self.title, groups, left: Vec::new() }
    }

    fn block(&self, f: &mut fmt::Formatter<'_>, title: &str, among: Among) -> fmt::Result {
        writeln!(f, "\n{title}")?;
        heading(f)?;
        for chooser in Chooser::ALL {
            line(f, chooser.name(), &Figures::of(self.groups.iter(), chooser, among), chooser)?;
        }
        Ok(())
    }

    fn parts(&self, f: &mut fmt::Formatter<'_>, among: Among) -> fmt::Result {
        writeln!(f, "\nrackmath, by engine and hardware")?;
        heading(f)?;
        let keys: [fn(&Group) -> &str; 2] = [|g| &g.question.engine, |g| &g.question.hardware];
        for key in keys {
            let names: BTreeSet<&str> = self.groups.iter().map(key).collect();
            for name in names {
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
            writeln!(
                f,
                "         at {:.0} tok/s/user took {} ({:.0} tok/s/chip measured), best {} ({:.0})",
                worst.interactivity, worst.chosen.0, worst.chosen.1, worst.best.0, worst.best.1
            )?;
            for (word, layout) in [("took", worst.chosen.0), ("best", worst.best.0)] {
                let mut errors: Vec<f64> = Vec::new();
                for row in group.rows.iter().filter(|r| r.configuration.layout() == layout) {
                    errors.push(row.ours.tpot / row.configuration.measured.tpot);
                }
                let ends = errors.iter().copied().fold((f64::INFINITY, 0.0f64), |e, x| (e.0.min(x), e.1.max(x)));
                writeln!(
                    f,
                    "         {word}: predicted over measured TPOT {:.2} to {:.2}, median {:.2}",
                    ends.0,
                    ends.1,
                    median(&errors).unwrap_or(f64::NAN)
                )?;
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
            for what in self.left.iter().take(NAMED) {
                writeln!(f, "  {what}")?;
            }
            if self.left.len() > NAMED {
                writeln!(f, "  and {} more", self.left.len() - NAMED)?;
            }
        }
        Ok(())
    }
}

fn heading(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "{:20} {:>6} {:>9} {:>9} {:>9} {:>14} {:>14} {:>7} {:>7}",
        "chooser", "groups", "in 10 %", "choices", "regret", "5+ layouts", "Spearman", ">= 0.9", "TPOT"
    )
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, figures: &Figures, chooser: Chooser) -> fmt::Result {
    let percent = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{:.1} %", x * 100.0));
    let good = figures.choices.iter().filter(|r| **r <= GOOD).count() as f64 / figures.choices.len().max(1) as f64;
    let rich = median(&figures.rich).map_or("-".to_owned(), |m| format!("{:.1} % ({})", m * 100.0, figures.rich.len()));
    let high: Vec<f64> = figures.rates.iter().map(|r| f64::from(u8::from(*r >= 0.9))).collect();
    let predicts = matches!(chooser, Chooser::Ours | Chooser::Roofline);
    let rank = |values: &[f64]| median(values).filter(|_| predicts).map(|m| format!("{m:.3}"));
    let rate = rank(&figures.rates).map_or("-".to_owned(), |m| format!("{m} ({})", figures.rates.len()));
    writeln!(
        f,
        "{name:20} {:>6} {:>9} {:>9} {:>9} {rich:>14} {rate:>14} {:>7} {:>7}",
        figures.regrets.len(),
        percent(figures.good()),
        percent(Some(good).filter(|_| !figures.choices.is_empty())),
        percent(median(&figures.regrets)),
        percent(mean(&high).filter(|_| predicts)),
        rank(&figures.tpots).unwrap_or("-".to_owned()),
    )
}
