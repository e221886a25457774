//! Our predictions beside another tool's, on the rows that both price.
//!
//! `scripts/price_rows.py` writes what aiconfigurator says of a folder's rows. Only times per token are held against each
//! other. Where a group of 25 rows or more is nearer by more than 0.02 in the middle with the other tool, it is named.

use crate::accuracy::groups;
use crate::case::Case;
use crate::rows::table;
use crate::serving::inferencex::{DUMP, NEWEST, TABLE};
use crate::table::Errors;
use rackmath_spec::SpecError;
use rackmath_units::float;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Rows from which a group counts, and how much nearer the other may be in the middle.
const FEWEST: usize = 25;
const NEARER: f64 = 0.02;

/// What has to be reached on the newest rows: median and nine in ten.
const TARGET: (f64, f64) = (0.08, 0.28);

pub fn score(cases: &[Case], others: &Path) -> Result<String, SpecError> {
    let mut theirs: BTreeMap<(String, usize), f64> = BTreeMap::new();
    for record in table(others)? {
        if let (Some(row), Some(tpot)) = (record.count("row"), record.number("tpot_ms").filter(|t| *t > 0.0)) {
            theirs.insert((record.text("file").to_owned(), row as usize), tpot);
        }
    }
    Ok(text(cases, &theirs))
}

/// A row that both price, with the other's ln(predicted / measured).
type Both<'a> = (&'a Case, f64);

fn text(cases: &[Case], theirs: &BTreeMap<(String, usize), f64>) -> String {
    let mut text =
        String::from("time per token on the rows that both price: |ln(predicted / measured)|, ours then theirs\n");
    let tables: [(&str, &[&str]); 4] = [
        ("newest rows", &[NEWEST, DUMP]),
        ("  with percentiles", &[NEWEST]),
        ("  without percentiles", &[DUMP]),
        ("InferenceX", &[TABLE]),
    ];
    for (name, files) in tables {
        let timed = |c: &&Case| files.contains(&c.file.as_str()) && c.metric.ends_with("TPOT") && c.row > 0;
        let other = |c: &Case| theirs.get(&(c.file.clone(), c.row)).map(|t| float::ln(t / c.measured));
        let both: Vec<Both<'_>> = cases.iter().filter(timed).filter_map(|c| Some((c, other(c)?))).collect();
        let ours = Errors::of(both.iter().map(|(c, _)| c.error()));
        let (Some(ours), Some(them)) = (ours, Errors::of(both.iter().map(|(_, e)| *e))) else { continue };
        let of = |e: &Errors| format!("{:.3} / {:.3} ({:+.3})", e.fit.median, e.fit.p90, e.bias);
        _ = writeln!(text, "{name:<24}{:>6} rows  {}   {}", both.len(), of(&ours), of(&them));
        let lost = lost(&both);
        for (group, n, ours, theirs) in &lost {
            _ = writeln!(text, "    nearer with the other: {group}, {n} rows, {ours:.3} against {theirs:.3}");
        }
        if files.len() > 1 {
            let reached = ours.fit.median <= TARGET.0 && ours.fit.p90 <= TARGET.1 && lost.is_empty();
            let (median, p90) = TARGET;
            let met = if reached { "met" } else { "not met" };
            _ = writeln!(text, "    target {median:.2} / {p90:.2} and no such group: {met}");
        }
    }
    text + "\n"
}

/// Groups where the other tool is nearer: name, rows, our middle distance and theirs; the worst first.
fn lost(both: &[Both<'_>]) -> Vec<(String, usize, f64, f64)> {
    let cases: Vec<&Case> = both.iter().map(|(c, _)| *c).collect();
    let mut lost = Vec::new();
    for name in groups(&cases).into_keys() {
        let rows = || both.iter().filter(|(c, _)| c.group() == name);
        let ours = Errors::of(rows().map(|(c, _)| c.error()));
        let (Some(ours), Some(them)) = (ours, Errors::of(rows().map(|(_, e)| *e))) else { continue };
        let (a, b) = (ours.fit.median, them.fit.median);
        if rows().count() >= FEWEST && b < a - NEARER {
            lost.push((name.join(" | "), rows().count(), a, b));
        }
    }
    lost.sort_by(|a, b| (b.2 - b.3).total_cmp(&(a.2 - a.3)));
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_lost_where_the_other_tool_is_nearer_by_more_than_a_little() {
        let row = |row: usize, model: &str, predicted: f64| Case {
            file: NEWEST.into(),
            row,
            metric: "TPOT".into(),
            chip: "b200".into(),
            engine: "vllm@0.19".into(),
            model: model.into(),
            measured: 10.0,
            predicted,
            ..Case::default()
        };
        // Thirty rows of one model 20 % high, thirty of another right, ten of a third far off.
        let mut cases: Vec<Case> = (1..=30).map(|n| row(n, "high", 12.0)).collect();
        cases.extend((31..=60).map(|n| row(n, "right", 10.0)));
        cases.extend((61..=70).map(|n| row(n, "few", 30.0)));
        cases.push(row(71, "unpriced", 99.0));
        let theirs = (1..=70).map(|n| ((NEWEST.to_owned(), n), 10.5)).collect();
        let text = text(&cases, &theirs);
        assert!(text.contains("    70 rows"), "{text}");
        // ln 1.2 against ln 1.05; the group of ten rows does not count, the right one is ours.
        assert!(text.contains("b200 | vllm | high, 30 rows, 0.182 against 0.049"), "{text}");
        assert!(!text.contains("few") && !text.contains("| right") && text.contains("not met"), "{text}");
    }
}
