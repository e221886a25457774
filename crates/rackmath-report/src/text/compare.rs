//! Plans side by side, and frontiers one over the other, as text.

use super::sides::{deployed, hourly, show};
use super::{Page, ms, mtok, three, tok_s};
use crate::style::Style;
use rackmath::compare::{Answer, Column};
use rackmath::figure::Figure;
use rackmath::frontier::{self, Lead};
use rackmath::sides::Measure;
use rackmath_units::significant;

/// `rackmath compare`
pub fn compare(a: &Answer, figure: &Figure, style: Style) -> String {
    let mut out = Page::new(style);
    let head = match (a.over.as_str(), a.columns.first()) {
        ("models", Some(c)) => format!("models on {}", c.curve.system),
        ("engines", Some(c)) => format!("engines with {} on {}", c.curve.model, c.curve.system),
        (_, Some(c)) => format!("{} on {} systems", c.curve.model, a.columns.len()),
        _ => String::new(),
    };
    out.title(head);
    let workload = a.columns.first().map_or("", |c| c.workload.as_str());
    out.wrapped("", "", &format!("{workload}; best {}; {}", a.objective, a.limits.join(", ")));
    out.gap();
    out.wrapped("", "", &style.bold(&format!("{}.", a.verdict)));
    for c in &a.columns {
        let words = c.plan.as_ref().map_or_else(|| c.verdict.clone(), deployed);
        out.wrapped(&format!("  {:<14} ", c.curve.name), "                 ", &words);
        for r in &c.relaxations {
            let text = format!("{}: {} instead of {}", r.limit, r.needed, r.asked);
            out.wrapped("                 - ", "                   ", &text);
        }
    }
    out.gap();
    table(&mut out, a);
    wins(&mut out, a);
    flips(&mut out, a);
    if !figure.series.is_empty() {
        out.draw(figure);
        out.gap();
    }
    out.list("assumes", &a.assumptions);
    out.text()
}

/// Rows of numbers and a column for each; the other way round where they are many.
fn table(out: &mut Page, a: &Answer) {
    let with: Vec<&Column> = a.columns.iter().filter(|c| c.plan.is_some()).collect();
    if with.is_empty() {
        return;
    }
    let cell = |c: &Column, m: Measure| {
        let Some(n) = c.numbers.iter().find(|n| n.measure == m) else { return "-".to_owned() };
        match n.ratio {
            Some(r) if (r.value - 1.0).abs() > 5e-4 => {
                format!("{} (x{})", show(m, n.value.value), significant(r.value, 2))
            }
            _ => show(m, n.value.value),
        }
    };
    let bound = |c: &Column| c.plan.as_ref().map_or_else(String::new, |p| p.bound_by.clone());
    if with.len() <= 4 {
        let names: Vec<&str> = std::iter::once("").chain(with.iter().map(|c| c.curve.name.as_str())).collect();
        let mut table = out.style.table(&names);
        for m in Measure::ALL {
            table.add_row(std::iter::once(m.name().to_owned()).chain(with.iter().map(|c| cell(c, m))));
        }
        table.add_row(std::iter::once("steps bound by".to_owned()).chain(with.iter().map(|c| bound(c))));
        out.finish(&table);
    } else {
        let shown = [Measure::UsdPerMtok, Measure::TokSPerChip, Measure::TokSPerUser, Measure::TtftMs, Measure::Chips];
        let names: Vec<&str> = std::iter::once("").chain(shown.iter().map(|m| m.name())).collect();
        out.table(
            &names,
            with.iter().map(|c| std::iter::once(c.curve.name.clone()).chain(shown.iter().map(|m| cell(c, *m)))),
        );
    }
    out.gap();
}

fn wins(out: &mut Page, a: &Answer) {
    if a.wins.is_empty() {
        return;
    }
    out.title("who wins on what");
    for w in &a.wins {
        let by = if w.by < 1.0005 {
            format!("{} level with {}", w.name, w.next)
        } else {
            let close = if w.too_close { ": too close to call" } else { "" };
            format!("{} ahead of {} by x{}{close}", w.name, w.next, three(w.by))
        };
        out.line(format!("  {:<24} {by}", w.measure.name()));
    }
    out.gap();
}

fn flips(out: &mut Page, a: &Answer) {
    if a.flips.is_empty() {
        return;
    }
    out.title("price of a chip at which the cheapest changes");
    for f in &a.flips {
        let at = f.flips_at_usd_per_chip_hour;
        let side = if f.cheapest_now { "loses above" } else { "wins below" };
        let text = format!(
            "{}: {side} {} against {} (80 %: {} to {}); now {}",
            f.name,
            hourly(at.value),
            f.against,
            hourly(at.low),
            hourly(at.high),
            hourly(f.now_usd_per_chip_hour)
        );
        out.item(&text);
    }
    out.gap();
}

/// `rackmath frontier`
pub fn frontier(a: &frontier::Answer, figure: &Figure, style: Style) -> String {
    let mut out = Page::new(style);
    if figure.series.is_empty() {
        out.title(&figure.title);
        out.wrapped("", "", &style.bad("no frontier: fewer than two points; does the model fit?"));
    } else {
        out.draw(figure);
    }
    out.gap();
    for c in &a.curves {
        out.title(format!("{}: {} on {}", c.name, c.model, c.system));
        if c.points.is_empty() {
            out.push("  nothing fits\n");
        }
        // Some points show the shape; the file has all.
        let step = c.points.len().div_ceil(if a.curves.len() > 1 { 5 } else { 16 }).max(1);
        let last = c.points.len().saturating_sub(1);
        let some = c.points.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last);
        for (_, p) in some {
            out.item(format!(
                "{} a user, {} a chip, {}, first token {}: {}",
                tok_s(p.tok_s_per_user),
                tok_s(p.tok_s_per_chip),
                mtok(p.usd_per_mtok),
                ms(p.ttft_ms),
                p.deployment
            ));
        }
    }
    out.gap();
    if a.curves.len() > 1 {
        leads(&mut out, "most tokens per chip", &a.leads_per_chip);
        leads(&mut out, "cheapest", &a.leads_per_dollar);
    }
    out.list("assumes", &a.assumptions);
    out.text()
}

fn leads(out: &mut Page, title: &str, all: &[Lead]) {
    if all.is_empty() {
        return;
    }
    out.title(format!("{title}, by the speed a user is promised"));
    for l in all {
        let (from, to) = (tok_s(l.from_tok_s_per_user), tok_s(l.to_tok_s_per_user));
        let by = match (&l.next, l.ahead) {
            (Some(next), Some((low, high))) => {
                let (low, high) = (three(low), three(high));
                let range = if low == high { low } else { format!("{low} to {high}") };
                let close = if l.too_close { ", too close to call" } else { "" };
                format!("ahead of {next} by x{range}{close}")
            }
            _ => "nobody else is that fast".into(),
        };
        out.item(format!("{from} to {to}: {}, {by}", l.name));
    }
    out.gap();
}
