//! Predicted against measured as text: a line per metric, and a line per row where asked for.

use super::compose::Kind;
use super::page::{Page, only, or_dash};
use crate::words::words;
use rackmath::validate::coverage::CoverageCard;
use rackmath::validate::{
    Answer, CrossCard, FolderCard, ReplayCard, RowCard, RunCard, SimulateCard, SourceCard, StratumCard,
};
use rackmath_units::{grouped, significant};

/// From this width on the baselines have room.
const WIDE: usize = 98;

/// Characters of a name in a table of numbers.
const NAME: usize = 34;

/// More sources than these are shown by their largest parts.
const FEW: usize = 3;

pub(super) fn validate(out: &mut Page, a: &Answer) {
    if let Some(simulate) = &a.simulate {
        simulated(out, simulate);
        if a.sources.is_empty() && a.folder.is_none() {
            return;
        }
    }
    if let Some(t) = &a.total {
        let inside = or_dash(t.coverage, |c| format!("{:.0} %", c * 100.0));
        let (median, sheet) = (off(t.median), off(t.roofline_median));
        let against = only(t.roofline_p90 > 0.0, format!("; the data sheet alone is off by {sheet}"));
        let n = grouped(t.n as f64);
        out.verdict(format!("Half of {n} published figures are predicted within {median}{against}; {inside} lie inside their 80 % interval"));
    }
    out.figures();
    if a.sources.len() > FEW {
        largest(out, &a.sources);
        out.working();
    }
    out.title("published measurements");
    sources(out, &a.sources, a.total.as_ref());
    out.within(Kind::Working, |out| covered(out, &a.coverage));
    if let Some(folder) = &a.folder {
        given(out, folder);
    }
    out.working();
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

/// An error as a person says it: by what factor, as a share.
fn off(ln: f64) -> String {
    match rackmath_units::float::exp(ln) {
        factor if factor < 2.0 => format!("{} %", significant((factor - 1.0) * 100.0, 2)),
        factor => format!("a factor {}", significant(factor, 2)),
    }
}

fn simulated(out: &mut Page, card: &SimulateCard) {
    let (runs, of): (usize, usize) = (card.sources.iter().map(|s| s.runs.len()).sum(), card.sources.len());
    let medians = card.sources.iter().flat_map(|s| s.latencies.iter().map(|l| l.median));
    let (low, high) = medians.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
    let s = &card.schedules;
    let alike =
        format!("{} of {} recorded schedules are the same in every step", s.scenarios - s.differ.len(), s.scenarios);
    let medians = format!("median errors from {} to {} by kind of time", off(low), off(high));
    out.verdict(format!("{runs} runs of real servers from {of} sources, replayed: {medians}; {alike}"));
    out.figures();
    out.title("runs of real servers, replayed request by request");
    for source in &card.sources {
        replayed(out, source);
    }
    out.title("recorded schedules");
    let steps = grouped(s.steps as f64);
    let line = format!(
        "{} scenarios, {steps} steps of the scheduler of {}: {} scenarios differ in who ran, how many tokens, who was \
         preempted or how many blocks were free, in any step.",
        s.scenarios,
        s.engine,
        s.differ.len()
    );
    out.paragraph("  ", line);
    if !s.differ.is_empty() {
        out.wrapped("  differ: ", "    ", s.differ.join(", "));
    }
    out.working();
    out.paragraph(
        "  ",
        "median and p90 over runs are of |ln(predicted / measured)|: 0.1 is off by a tenth. Bias is the median with its sign; \
         below 0 is predicted too low. A step's time is the operator model's, its content the scheduler's; schedules are \
         compared under a stated clock, apart from times.",
    );
}

fn replayed(out: &mut Page, source: &ReplayCard) {
    out.gap();
    out.above(format!("{}{}", out.style.bold(&source.name), out.style.dim(&format!(" ({})", source.id))));
    out.above(format!("  {:<12}{:>5}{:>8}{:>8}{:>8}", "", "runs", "median", "p90", "bias"));
    for l in &source.latencies {
        let name = format!("{} {}", l.metric, l.at);
        let median = out.style.bold(&format!("{:>8.3}", l.median));
        out.line(format!("  {name:<12}{:>5}{median}{:>8.3}{:>+8.3}", l.n, l.p90, l.bias));
    }
    let before = out.turn(Kind::Working);
    out.title(&source.name);
    out.wrapped("    in the fit: ", "      ", &source.fitted);
    out.wrapped("    assumed: ", "      ", &source.assumed);
    out.dim("  each run, ms: predicted / measured".to_owned());
    for run in &source.runs {
        figures(out, run);
    }
    out.gap();
    out.turn(before);
}

fn figures(out: &mut Page, run: &RunCard) {
    out.line(format!("  {}, {} requests", run.name, grouped(run.requests as f64)));
    for of in run.figures.chunk_by(|a, b| a.metric == b.metric) {
        let pair = |at: &str, predicted: f64, measured: f64| {
            format!("{at:>6} {:>7} /{:>7}", significant(predicted, 3), significant(measured, 3))
        };
        let pairs: String = of.iter().map(|f| pair(&f.at, f.predicted_ms, f.measured_ms)).collect();
        out.line(format!("    {:<5}{pairs}", of[0].metric));
    }
}

fn sources(out: &mut Page, all: &[SourceCard], total: Option<&StratumCard>) {
    let mut line = format!("{:<28}{:>5}{:>7}{:>7}{:>8}{:>6}{:>7}", "", "n", "median", "p90", "bias", "rank", "inside");
    if out.style.width >= WIDE {
        out.above(format!("{:<68}{:>15}{:>15}", "", "data sheet", "one factor"));
        line += &format!("{:>8}{:>7}", "median", "p90").repeat(2);
    }
    out.above(line);
    if let Some(total) = total {
        stratum(out, &StratumCard { metric: "together".into(), ..total.clone() });
    }
    for source in all {
        one(out, source);
    }
}

/// Every metric of every source, most rows first.
fn largest(out: &mut Page, all: &[SourceCard]) {
    let mut parts: Vec<(&SourceCard, &StratumCard)> =
        all.iter().flat_map(|source| source.strata.iter().map(move |part| (source, part))).collect();
    parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.n));
    let three = |x: f64| format!("{x:.3}");
    let baseline = |part: &StratumCard, x: f64| if part.roofline_p90 > 0.0 { three(x) } else { "-".to_owned() };
    // Numbers are not broken for a long name, which stands in full with its source.
    let named = |source: &SourceCard, part: &StratumCard| {
        let name = format!("{}: {}", source.id, part.metric);
        if name.chars().count() > NAME { name.chars().take(NAME - 3).collect::<String>() + "..." } else { name }
    };
    out.each(&parts).columns(&[
        ("measured", &|(source, part)| named(source, part)),
        ("rows", &|(_, part)| grouped(part.n as f64)),
        ("median", &|(_, part)| three(part.median)),
        ("p90", &|(_, part)| three(part.p90)),
        ("bias", &|(_, part)| format!("{:+.3}", part.bias)),
        ("inside", &|(_, part)| or_dash(part.coverage, |c| format!("{:.0} %", c * 100.0))),
        ("data sheet", &|(_, part)| baseline(part, part.roofline_median)),
        ("one factor", &|(_, part)| baseline(part, part.constant_median)),
    ]);
}

fn one(out: &mut Page, source: &SourceCard) {
    let named = if source.address.is_empty() { String::new() } else { format!(" ({})", source.id) };
    out.line(format!("{}{}", out.style.bold(&source.name), out.style.dim(&named)));
    for one in &source.strata {
        stratum(out, one);
    }
    rows(out, &source.rows);
    let before = out.turn(Kind::Working);
    if !source.fitted.is_empty() || !source.notes.is_empty() || !source.skipped.is_empty() {
        out.title(&source.name);
    }
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
    out.gap();
    out.turn(before);
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
    out.line(line + &only(out.style.width >= WIDE && s.roofline_p90 > 0.0, baselines));
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

/// Whether intervals hold with whole groups left out.
fn covered(out: &mut Page, all: &[CoverageCard]) {
    if all.is_empty() {
        return;
    }
    out.part("80 % intervals, with whole groups left out");
    let heads =
        format!("{:>6}{:>7}{:>8}{:>7}{:>9}{:>8}{:>7}", "rows", "groups", "median", "p90", "factor", "inside", "+-");
    out.dim(format!("  {:<34}{heads}", "carried over"));
    for c in all {
        let name = if c.what.is_empty() { carried(&c.step).to_owned() } else { format!("  {}", c.what) };
        let holds = match c.holds {
            Some(true) => "",
            Some(false) => " *",
            None => " (few)",
        };
        let points = |share: f64| format!("{:.0} %", share * 100.0);
        let numbers = format!("{:>6}{:>7}{:>8.3}{:>7.3}{:>9.2}", c.n, c.groups, c.median, c.p90, c.factor);
        out.line(format!("  {name:<34}{numbers}{:>8}{:>7}{holds}", points(c.inside), points(c.error)));
    }
    out.paragraph(
        "  ",
        out.style.dim(
            "Inside: the share of rows within an interval estimated from the other groups alone, times 1.06 where constants were \
             not fitted anew without their own; +- its standard error counted over groups. It should be 80 % within the larger of 5 points and two \
             standard errors, all together within 3 points: * where it is not, (few) where fewer than 30 rows cannot tell.",
        ),
    );
}

/// What is carried over, in words.
fn carried(step: &str) -> &'static str {
    match step {
        "chip" => "another chip of the generation",
        "generation" => "another generation",
        "vendor" => "a vendor without timed kernels",
        "version" => "another version of the engine",
        "model" => "another model of the kind",
        "kind" => "another kind of model",
        "all" => "all together",
        _ => "nothing",
    }
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
