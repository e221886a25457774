//! Predicted against measured as text: a line per metric, and a line per row where asked for.

use super::page::{Page, only, or_dash};
use crate::words::words;
use rackmath::validate::{Answer, CrossCard, FolderCard, RowCard, SourceCard, StratumCard};
use rackmath_units::significant;

/// From this width on the baselines have room.
const WIDE: usize = 98;

pub(super) fn validate(out: &mut Page, a: &Answer) {
    out.title("published measurements");
    sources(out, &a.sources, a.total.as_ref());
    if let Some(folder) = &a.folder {
        given(out, folder);
    }
    out.gap();
    for line in [
        "median and p90 are of |ln(predicted / measured)|: 0.1 is off by a tenth. Bias is the median with its sign; below 0 \
         is predicted too low. Rank is Spearman's correlation. Inside is the share of rows in their 80 % interval.",
        "Data sheet: full peak, full bandwidth, perfect overlap. One factor: the data sheet times a constant for each source \
         and metric, chosen on the very rows it is scored on.",
    ] {
        out.paragraph("  ", line);
    }
}

fn sources(out: &mut Page, all: &[SourceCard], total: Option<&StratumCard>) {
    let mut line = format!("{:<28}{:>5}{:>7}{:>7}{:>8}{:>6}{:>7}", "", "n", "median", "p90", "bias", "rank", "inside");
    if out.style.width >= WIDE {
        out.dim(format!("{:<68}{:>15}{:>15}", "", "data sheet", "one factor"));
        line += &format!("{:>8}{:>7}", "median", "p90").repeat(2);
    }
    out.dim(line);
    for source in all {
        one(out, source);
    }
    if let Some(total) = total {
        out.title("together");
        stratum(out, total);
    }
}

fn one(out: &mut Page, source: &SourceCard) {
    let named = if source.address.is_empty() { String::new() } else { format!(" ({})", source.id) };
    out.line(format!("{}{}", out.style.bold(&source.name), out.style.dim(&named)));
    for one in &source.strata {
        stratum(out, one);
    }
    rows(out, &source.rows);
    if !source.fitted.is_empty() {
        out.wrapped("    in the fit: ", "      ", &source.fitted);
    }
    let mut notes: Vec<_> = source.notes.iter().map(words).collect();
    notes.sort();
    for note in notes {
        out.wrapped("    assumed: ", "      ", note);
    }
    for skip in &source.skipped {
        let few = if skip.n <= 12 { format!(" ({})", skip.rows.join(", ")) } else { String::new() };
        out.wrapped("    left out ", "      ", format!("{}: {}{few}", skip.n, skip.reason));
    }
}

fn stratum(out: &mut Page, s: &StratumCard) {
    let share = or_dash(s.coverage, |c| format!("{:.0} %", c * 100.0));
    let rank = or_dash(s.spearman, |r| format!("{r:.2}"));
    // A long name has a line of its own.
    let mut name = s.metric.as_str();
    if name.chars().count() > 26 {
        out.line(format!("  {name}"));
        name = "";
    }
    let median = out.style.bold(&format!("{:>7.3}", s.median));
    let line = format!("  {name:<26}{:>5}{median}{:>7.3}{:>+8.3}{rank:>6}{share:>7}", s.n, s.p90, s.bias);
    let baselines = [(s.roofline_median, s.roofline_p90), (s.constant_median, s.constant_p90)];
    let baselines = baselines.map(|(median, p90)| format!("{median:>8.3}{p90:>7.3}")).concat();
    out.line(line + &only(out.style.width >= WIDE, baselines));
}

fn rows(out: &mut Page, rows: &[RowCard]) {
    let room = out.style.width.saturating_sub(40);
    for row in rows {
        let mark = if row.inside == Some(false) { " *" } else { "" };
        let what = format!("{}, {}", row.what, row.metric);
        let (first, rest) = split(&what, room);
        let (predicted, measured) = (significant(row.predicted, 4), significant(row.measured, 4));
        out.line(format!("    {first:<room$}{predicted:>11}{measured:>11}{:>8.3}{mark}", row.ratio));
        if !rest.is_empty() {
            out.paragraph("      ", rest);
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

fn given(out: &mut Page, folder: &FolderCard) {
    out.part(format!("measurements in {}", folder.folder));
    sources(out, &folder.sources, folder.total.as_ref());
    if !folder.unread.is_empty() {
        let title = "  not read here, as they hold no load we can ask about: ";
        out.wrapped(title, "    ", folder.unread.join(", "));
    }
    if let Some(cross) = &folder.cross {
        left_out(out, cross);
    }
}

fn left_out(out: &mut Page, cross: &CrossCard) {
    out.part(format!("each {} left out of the fit in turn ({} of them)", cross.by, cross.groups.len()));
    out.dim(format!("{:<52}{:>23}{:>23}", "", "catalogue", "left out"));
    let heads = format!("{:>7}{:>7}{:>7}", "median", "p90", "inside");
    out.dim(format!("{:<46}{:>6}  {heads}  {heads}", "", "n"));
    for s in cross.strata.iter().chain(cross.total.as_ref()) {
        let side = |median: f64, p90: f64, inside: f64| {
            format!("{median:>7.3}{p90:>7.3}{:>7}", format!("{:.0} %", inside * 100.0))
        };
        let sample = side(s.sample_median, s.sample_p90, s.sample_coverage);
        let left = side(s.median, s.p90, s.coverage);
        out.line(format!("  {:<45}{:>5}  {sample}  {left}", s.metric, s.n));
    }
    for note in &cross.notes {
        out.item(note);
    }
}
