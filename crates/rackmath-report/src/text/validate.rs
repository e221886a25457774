//! Predicted against measured as text: a line per metric, and a line per row where asked for.

use crate::style::Style;
use rackmath::validate::{Answer, CrossCard, CrossStratumCard, FolderCard, RowCard, SkipCard, SourceCard, StratumCard};
use rackmath_units::significant;
use std::fmt::Write as _;

/// From this width on the baselines have room.
const WIDE: usize = 98;

/// `rackmath validate`
pub fn validate(a: &Answer, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold("published measurements"));
    header(&mut out, style);
    for source in &a.sources {
        one(&mut out, source, style);
    }
    total(&mut out, a.total.as_ref(), style);
    if let Some(folder) = &a.folder {
        given(&mut out, folder, style);
    }
    out.push('\n');
    for line in [
        "median and p90 are of |ln(predicted / measured)|: 0.1 is off by a tenth. Bias is the median with its sign; below 0 \
         is predicted too low. Rank is Spearman's correlation. Inside is the share of rows in their 80 % interval.",
        "Data sheet: full peak, full bandwidth, perfect overlap. One factor: the data sheet times a constant for each source \
         and metric, chosen on the very rows it is scored on.",
    ] {
        out.push_str(&style.wrapped("  ", "  ", line));
    }
    out
}

fn header(out: &mut String, style: Style) {
    if style.width >= WIDE {
        let _ = writeln!(out, "{}", style.dim(&format!("{:<68}{:>15}{:>15}", "", "data sheet", "one factor")));
    }
    let mut line = format!("{:<28}{:>5}{:>7}{:>7}{:>8}{:>6}{:>7}", "", "n", "median", "p90", "bias", "rank", "inside");
    if style.width >= WIDE {
        let _ = write!(line, "{:>8}{:>7}{:>8}{:>7}", "median", "p90", "median", "p90");
    }
    let _ = writeln!(out, "{}", style.dim(&line));
}

fn one(out: &mut String, source: &SourceCard, style: Style) {
    let named = if source.address.is_empty() { String::new() } else { format!(" ({})", source.id) };
    let _ = writeln!(out, "{}{}", style.bold(&source.name), style.dim(&named));
    for stratum in &source.strata {
        line(out, stratum, style);
    }
    rows(out, &source.rows, style);
    if !source.fitted.is_empty() {
        out.push_str(&style.wrapped("    in the fit: ", "      ", &source.fitted));
    }
    for note in &source.notes {
        out.push_str(&style.wrapped("    assumed: ", "      ", note));
    }
    for SkipCard { reason, n, rows } in &source.skipped {
        let few = if *n <= 12 { format!(" ({})", rows.join(", ")) } else { String::new() };
        out.push_str(&style.wrapped("    left out ", "      ", &format!("{n}: {reason}{few}")));
    }
}

fn line(out: &mut String, s: &StratumCard, style: Style) {
    let share = s.coverage.map_or("-".into(), |c| format!("{:.0} %", c * 100.0));
    let rank = s.spearman.map_or("-".into(), |r| format!("{r:.2}"));
    // A long name has a line of its own.
    let long = s.metric.chars().count() > 26;
    if long {
        let _ = writeln!(out, "  {}", s.metric);
    }
    let _ = write!(out, "  {:<26}{:>5}", if long { "" } else { &s.metric }, s.n);
    let _ = write!(out, "{}{:>7.3}{:>+8.3}", style.bold(&format!("{:>7.3}", s.median)), s.p90, s.bias);
    let _ = write!(out, "{rank:>6}{share:>7}");
    if style.width >= WIDE {
        let _ = write!(out, "{:>8.3}{:>7.3}", s.roofline_median, s.roofline_p90);
        let _ = write!(out, "{:>8.3}{:>7.3}", s.constant_median, s.constant_p90);
    }
    out.push('\n');
}

fn rows(out: &mut String, rows: &[RowCard], style: Style) {
    for row in rows {
        let mark = if row.inside == Some(false) { " *" } else { "" };
        let what = format!("{}, {}", row.what, row.metric);
        let room = style.width.saturating_sub(40);
        let (first, rest) = split(&what, room);
        let (predicted, measured) = (significant(row.predicted, 4), significant(row.measured, 4));
        let _ = writeln!(out, "    {first:<room$}{predicted:>11}{measured:>11}{:>8.3}{mark}", row.ratio);
        if !rest.is_empty() {
            out.push_str(&style.wrapped("      ", "      ", rest));
        }
    }
    if !rows.is_empty() {
        let _ = writeln!(out, "    {}", style.dim("predicted, measured, ratio; * outside the 80 % interval"));
    }
}

/// As many whole words as fit.
fn split(text: &str, room: usize) -> (&str, &str) {
    if text.chars().count() < room {
        return (text, "");
    }
    let end = text.char_indices().nth(room.saturating_sub(1)).map_or(text.len(), |(i, _)| i);
    let cut = text[..end].rfind(' ').unwrap_or(end);
    (&text[..cut], text[cut..].trim_start())
}

fn total(out: &mut String, total: Option<&StratumCard>, style: Style) {
    if let Some(total) = total {
        let _ = writeln!(out, "{}", style.bold("together"));
        line(out, total, style);
    }
}

fn given(out: &mut String, folder: &FolderCard, style: Style) {
    let _ = writeln!(out, "\n{}", style.bold(&format!("measurements in {}", folder.folder)));
    header(out, style);
    for source in &folder.sources {
        one(out, source, style);
    }
    total(out, folder.total.as_ref(), style);
    if !folder.unread.is_empty() {
        let names = folder.unread.join(", ");
        out.push_str(&style.wrapped("  not read here, as they hold no load we can ask about: ", "    ", &names));
    }
    if let Some(cross) = &folder.cross {
        left_out(out, cross, style);
    }
}

fn left_out(out: &mut String, cross: &CrossCard, style: Style) {
    let title = format!("each {} left out of the fit in turn ({} of them)", cross.by, cross.groups.len());
    let _ = writeln!(out, "\n{}", style.bold(&title));
    let _ = writeln!(out, "{}", style.dim(&format!("{:<52}{:>23}{:>23}", "", "catalogue", "left out")));
    let heads = format!("{:>7}{:>7}{:>7}", "median", "p90", "inside");
    let _ = writeln!(out, "{}", style.dim(&format!("{:<46}{:>6}  {heads}  {heads}", "", "n")));
    for s in cross.strata.iter().chain(cross.total.as_ref()) {
        let CrossStratumCard { metric, n, .. } = s;
        let side = |median: f64, p90: f64, inside: f64| {
            format!("{median:>7.3}{p90:>7.3}{:>7}", format!("{:.0} %", inside * 100.0))
        };
        let sample = side(s.sample_median, s.sample_p90, s.sample_coverage);
        let left = side(s.median, s.p90, s.coverage);
        let _ = writeln!(out, "  {metric:<45}{n:>5}  {sample}  {left}");
    }
    for note in &cross.notes {
        out.push_str(&style.wrapped("  - ", "    ", note));
    }
}
