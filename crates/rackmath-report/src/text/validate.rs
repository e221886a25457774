//! Predicted against measured as text: a line per metric, and a line per row where asked for.

use super::{Page, or_dash};
use crate::style::Style;
use rackmath::validate::{Answer, CrossCard, CrossStratumCard, FolderCard, RowCard, SkipCard, SourceCard, StratumCard};
use rackmath_units::significant;
use std::fmt::Write as _;

/// From this width on the baselines have room.
const WIDE: usize = 98;

/// `rackmath validate`
pub fn validate(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title("published measurements");
    header(&mut out);
    for source in &a.sources {
        one(&mut out, source);
    }
    total(&mut out, a.total.as_ref());
    if let Some(folder) = &a.folder {
        given(&mut out, folder);
    }
    out.gap();
    for line in [
        "median and p90 are of |ln(predicted / measured)|: 0.1 is off by a tenth. Bias is the median with its sign; below 0 \
         is predicted too low. Rank is Spearman's correlation. Inside is the share of rows in their 80 % interval.",
        "Data sheet: full peak, full bandwidth, perfect overlap. One factor: the data sheet times a constant for each source \
         and metric, chosen on the very rows it is scored on.",
    ] {
        out.wrapped("  ", "  ", line);
    }
    out.text()
}

fn header(out: &mut Page) {
    if out.style.width >= WIDE {
        out.line(out.style.dim(&format!("{:<68}{:>15}{:>15}", "", "data sheet", "one factor")));
    }
    let mut line = format!("{:<28}{:>5}{:>7}{:>7}{:>8}{:>6}{:>7}", "", "n", "median", "p90", "bias", "rank", "inside");
    if out.style.width >= WIDE {
        let _ = write!(line, "{:>8}{:>7}{:>8}{:>7}", "median", "p90", "median", "p90");
    }
    out.line(out.style.dim(&line));
}

fn one(out: &mut Page, source: &SourceCard) {
    let named = if source.address.is_empty() { String::new() } else { format!(" ({})", source.id) };
    out.line(format!("{}{}", out.style.bold(&source.name), out.style.dim(&named)));
    for stratum in &source.strata {
        line(out, stratum);
    }
    rows(out, &source.rows);
    if !source.fitted.is_empty() {
        out.wrapped("    in the fit: ", "      ", &source.fitted);
    }
    for note in &source.notes {
        out.wrapped("    assumed: ", "      ", note);
    }
    for SkipCard { reason, n, rows } in &source.skipped {
        let few = if *n <= 12 { format!(" ({})", rows.join(", ")) } else { String::new() };
        out.wrapped("    left out ", "      ", &format!("{n}: {reason}{few}"));
    }
}

fn line(out: &mut Page, s: &StratumCard) {
    let share = or_dash(s.coverage, |c| format!("{:.0} %", c * 100.0));
    let rank = or_dash(s.spearman, |r| format!("{r:.2}"));
    // A long name has a line of its own.
    let long = s.metric.chars().count() > 26;
    if long {
        out.line(format!("  {}", s.metric));
    }
    out.push(&format!("  {:<26}{:>5}", if long { "" } else { &s.metric }, s.n));
    out.push(&format!("{}{:>7.3}{:>+8.3}", out.style.bold(&format!("{:>7.3}", s.median)), s.p90, s.bias));
    out.push(&format!("{rank:>6}{share:>7}"));
    if out.style.width >= WIDE {
        out.push(&format!("{:>8.3}{:>7.3}", s.roofline_median, s.roofline_p90));
        out.push(&format!("{:>8.3}{:>7.3}", s.constant_median, s.constant_p90));
    }
    out.gap();
}

fn rows(out: &mut Page, rows: &[RowCard]) {
    for row in rows {
        let mark = if row.inside == Some(false) { " *" } else { "" };
        let what = format!("{}, {}", row.what, row.metric);
        let room = out.style.width.saturating_sub(40);
        let (first, rest) = split(&what, room);
        let (predicted, measured) = (significant(row.predicted, 4), significant(row.measured, 4));
        out.line(format!("    {first:<room$}{predicted:>11}{measured:>11}{:>8.3}{mark}", row.ratio));
        if !rest.is_empty() {
            out.wrapped("      ", "      ", rest);
        }
    }
    if !rows.is_empty() {
        out.line(format!("    {}", out.style.dim("predicted, measured, ratio; * outside the 80 % interval")));
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

fn total(out: &mut Page, total: Option<&StratumCard>) {
    if let Some(total) = total {
        out.title("together");
        line(out, total);
    }
}

fn given(out: &mut Page, folder: &FolderCard) {
    out.part(format!("measurements in {}", folder.folder));
    header(out);
    for source in &folder.sources {
        one(out, source);
    }
    total(out, folder.total.as_ref());
    if !folder.unread.is_empty() {
        let names = folder.unread.join(", ");
        out.wrapped("  not read here, as they hold no load we can ask about: ", "    ", &names);
    }
    if let Some(cross) = &folder.cross {
        left_out(out, cross);
    }
}

fn left_out(out: &mut Page, cross: &CrossCard) {
    let title = format!("each {} left out of the fit in turn ({} of them)", cross.by, cross.groups.len());
    out.part(title);
    out.line(out.style.dim(&format!("{:<52}{:>23}{:>23}", "", "catalogue", "left out")));
    let heads = format!("{:>7}{:>7}{:>7}", "median", "p90", "inside");
    out.line(out.style.dim(&format!("{:<46}{:>6}  {heads}  {heads}", "", "n")));
    for s in cross.strata.iter().chain(cross.total.as_ref()) {
        let CrossStratumCard { metric, n, .. } = s;
        let side = |median: f64, p90: f64, inside: f64| {
            format!("{median:>7.3}{p90:>7.3}{:>7}", format!("{:.0} %", inside * 100.0))
        };
        let sample = side(s.sample_median, s.sample_p90, s.sample_coverage);
        let left = side(s.median, s.p90, s.coverage);
        out.line(format!("  {metric:<45}{n:>5}  {sample}  {left}"));
    }
    for note in &cross.notes {
        out.item(note);
    }
}
