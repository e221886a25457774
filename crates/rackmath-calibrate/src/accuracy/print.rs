//! The table as a person reads it, the groups behind it, and every row as CSV.

use super::lines::LINES;
use super::{Accuracy, Scored, groups};
use crate::case::Case;
use crate::planner::Chooser;
use crate::table::Errors;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Groups shown under a line.
const SHOWN: usize = 30;

impl Accuracy {
    /// The table, what was refused, and what nothing reads.
    pub fn text(&self, with_groups: bool) -> String {
        let lines = self.lines();
        let met = lines.iter().filter(|(_, l)| l.met == Some(true)).count();
        let asked = lines.iter().filter(|(_, l)| l.met.is_some()).count();
        let mut text = format!(
            "{met} of {asked} targets met; {} rows with the catalogue's constants, {} left out.\n\
             Figures are |ln(predicted / measured)|: 0.1 is off by a tenth. Signed is the middle of ln(predicted / measured):\n\
             above 0, a time is predicted too long, a rate too high.\n\n",
            self.cases.len(),
            self.refused.values().sum::<usize>()
        );
        text += &self.tables_read();
        let width = lines.iter().map(|(_, l)| l.what.chars().count()).max().unwrap_or(0);
        text += "must show\n";
        text += &heading(width);
        let mut shown = true;
        for (must, line) in &lines {
            if shown && !must {
                shown = false;
                text += "\nwhat broke, and other rows\n";
                text += &heading(width);
            }
            text += &row(line, width);
        }
        text += "\nengines fitted without the group: carried rows, by what was left out (seen: nothing)\n";
        text += &heading(width);
        for line in &self.held {
            text += &row(line, width);
        }
        if with_groups {
            text += &self.groups();
            text += &self.regrets();
        }
        text += "\nrows predicted, by table\n";
        for (file, n) in self.by_file() {
            _ = writeln!(text, "{n:>6}  {file}");
        }
        text += "\nleft out, by reason\n";
        let mut reasons: Vec<_> = self.refused.iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        for ((topic, reason), n) in reasons {
            _ = writeln!(text, "{n:>6}  {topic}: {reason}");
        }
        text
    }

    /// How many tables of the folder are read, and which are not and why.
    fn tables_read(&self) -> String {
        let mut text = format!("{} tables read, {} not", self.tables, self.unread.len());
        text += if self.unread.is_empty() { ".\n" } else { ":\n" };
        for (name, why) in &self.unread {
            _ = writeln!(text, "  {name}: {why}");
        }
        text + "\n"
    }

    /// Under each line its groups, those first that add most to its error.
    fn groups(&self) -> String {
        let mut text = String::new();
        for line in &LINES {
            let cases = self.of(line);
            let total: f64 = cases.iter().map(|case| case.error().abs()).sum();
            if cases.is_empty() {
                continue;
            }
            _ = writeln!(text, "\n{}: share of the error, rows, signed, median, p90, group", line.what);
            let far = |cases: &[&Case]| cases.iter().map(|case| case.error().abs()).sum::<f64>() / total.max(1e-12);
            let mut all: Vec<_> = groups(&cases).into_iter().map(|(name, cases)| (far(&cases), name, cases)).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (share, name, cases) in all.iter().take(SHOWN) {
                let Some(e) = Errors::of(cases.iter().map(|case| case.error())) else { continue };
                let (share, n, name) = (share * 100.0, cases.len(), name.join(" | "));
                let (signed, median, p90) = (e.bias, e.fit.median, e.fit.p90);
                _ = writeln!(text, "{share:>6.1} %{n:>7}{signed:>+8.3}{median:>8.3}{p90:>8.3}  {name}");
            }
            if all.len() > SHOWN {
                _ = writeln!(text, "        and {} more groups", all.len() - SHOWN);
            }
        }
        text
    }

    /// What each question of the tables of choices gives away by ours, the roofline and the fewest chips; worst of ours first.
    fn regrets(&self) -> String {
        let mut text = String::new();
        for ours in self.decisions.iter().filter(|d| d.chooser == Chooser::Ours) {
            let of = |chooser: Chooser, name: &str| -> f64 {
                let same = self.decisions.iter().find(|d| d.table == ours.table && d.chooser == chooser);
                let given = same.and_then(|d| d.each.iter().find(|(question, _)| question == name));
                given.map_or(f64::NAN, |(_, regret)| regret * 100.0)
            };
            let mut each: Vec<_> = ours.each.iter().filter(|(_, regret)| *regret > 0.0).collect();
            each.sort_by(|a, b| b.1.total_cmp(&a.1));
            _ = writeln!(text, "\n{}: regret of ours, roofline, fewest chips", ours.table);
            for (name, regret) in each.iter().take(SHOWN) {
                let (roofline, fewest) = (of(Chooser::Roofline, name), of(Chooser::FewestChips, name));
                _ = writeln!(text, "{:>6.1} %{roofline:>8.1} %{fewest:>8.1} %  {name}", regret * 100.0);
            }
        }
        text
    }

    /// Every row with its prediction; times in the unit of its table, kernels and steps in seconds. The number of a row in
    /// its table is 0 where it is not kept.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "file,row,metric,chip,engine,model,experts,weights,concurrency,what,measured,predicted,ln_error\n",
        );
        // Words may hold commas; nothing here needs to be read back with them.
        let word = |word: &str| word.replace([',', '"', '\n'], ";");
        for c in &self.cases {
            let words =
                [&c.file, &c.row.to_string(), &c.metric, &c.chip, &c.engine, &c.model].map(|w| word(w)).join(",");
            let concurrency = c.concurrency.map_or(String::new(), |n| n.to_string());
            let (experts, weights, what) = (c.experts, word(&c.weights), word(&c.what));
            let (measured, predicted, error) = (c.measured, c.predicted, c.error());
            _ = writeln!(
                text,
                "{words},{experts},{weights},{concurrency},{what},{measured:.6e},{predicted:.6e},{error:.4}"
            );
        }
        text
    }

    pub fn by_file(&self) -> BTreeMap<&str, usize> {
        let mut all = BTreeMap::new();
        for case in &self.cases {
            *all.entry(case.file.as_str()).or_default() += 1;
        }
        all
    }
}

fn heading(width: usize) -> String {
    format!(
        "{:width$} {:>6} {:>6} {:>7} {:>7} {:>7}  {:<20} {:<4} {}\n",
        "", "rows", "groups", "median", "p90", "signed", "target", "met", "other figures"
    )
}

fn row(line: &Scored, width: usize) -> String {
    let Scored { what, rows, groups, errors, other, target, met } = line;
    let figures = errors.map_or_else(
        || format!("{:>7} {:>7} {:>7}", "-", "-", "-"),
        |e| format!("{:>7.3} {:>7.3} {:>+7.3}", e.fit.median, e.fit.p90, e.bias),
    );
    let met = met.map_or("", |met| if met { "yes" } else { "no" });
    let text = format!("{what:width$} {rows:>6} {groups:>6} {figures}  {target:<20} {met:<4} {other}");
    text.trim_end().to_owned() + "\n"
}
