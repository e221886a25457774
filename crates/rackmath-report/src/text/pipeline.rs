//! Pipelines as text: a grid of slots, or a table of schedules.

use super::{Page, bytes, or_dash, percent, seconds, three};
use crate::style::Style;
use rackmath::pipeline::{Answer, CellCard, RunCard};

/// `rackmath pipeline`
pub fn pipeline(a: &Answer, style: Style) -> String {
    let r = &a.request;
    match a.runs.as_slice() {
        [one] => single(one, r.stages, r.micro_batches, style),
        many => {
            let mut out = Page::new(style);
            out.head(format!("{} stages, {} micro-batches", r.stages, r.micro_batches));
            out.columns(
                many,
                &[
                    ("schedule", &|run| run.schedule.clone()),
                    ("step", &|run| seconds(run.makespan_s)),
                    ("idle", &|run| percent(run.idle)),
                    ("bubble", &|run| seconds(run.bubble_s)),
                    ("closed form", &|run| or_dash(run.closed_bubble_s, seconds)),
                    ("behind a barrier", &|run| seconds(run.barrier_bubble_s)),
                    ("micro-batches held", &|run| three(run.peak_micro_batches)),
                ],
            );
            out.note("bubble: a stage starts its next step when it is done; behind a barrier all wait for the last");
            for why in &a.left_out {
                out.wrapped("  left out: ", "    ", why);
            }
            out.text()
        }
    }
}

fn single(run: &RunCard, stages: usize, micro_batches: usize, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{}: {stages} stages, {micro_batches} micro-batches", run.schedule));
    out.push(&grid(run, stages, style));
    out.gap();
    if run.schedule == "inference" {
        out.field("idle in steady state", percent(run.idle));
        out.more("none from as many micro-batches as stages on");
        return out.text();
    }
    out.field("step", seconds(run.makespan_s));
    out.field("idle", percent(run.idle));
    let closed = run.closed_bubble_s.map_or("no closed form applies".into(), |c| format!("closed form {}", seconds(c)));
    out.field(
        "bubble",
        format!("{}, {closed}; {} behind a barrier", seconds(run.bubble_s), seconds(run.barrier_bubble_s)),
    );
    if let Some(bound) = run.lower_bound_s {
        out.field("no schedule beats", seconds(bound));
    }
    let bytes = if run.peak_bytes > 0.0 { format!(", {}", bytes(run.peak_bytes)) } else { String::new() };
    out.field("activations held", format!("{} micro-batches at most{bytes}", three(run.peak_micro_batches)));
    out.text()
}

/// One row per device, time across; a long step is cut off on the right.
fn grid(run: &RunCard, stages: usize, style: Style) -> String {
    let shortest = run.cells.iter().map(|c| c.end_s - c.start_s).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min);
    // Each of the shortest passes gets at least two columns where there is room for it.
    let room = style.width.clamp(60, 200) - 12;
    let slot = if shortest.is_finite() { (shortest / 2.0).max(run.makespan_s / room as f64) } else { 1.0 };
    let columns = ((run.makespan_s / slot).round() as usize).clamp(1, room);
    let shown = stages.min(64);
    let mut rows = vec![vec![None; columns]; shown];
    for cell in run.cells.iter().filter(|c| c.device < shown) {
        let from = (cell.start_s / slot).round() as usize;
        let to = ((cell.end_s / slot).round() as usize).max(from + 1);
        for (i, place) in rows[cell.device].iter_mut().take(to).skip(from).enumerate() {
            *place = Some((cell, i == 0));
        }
    }
    let mut out = Page::new(style);
    for (device, row) in rows.iter().enumerate() {
        out.push(&format!("  stage {device:<3} "));
        for cell in row {
            out.push(&match cell {
                None => style.dim("·"),
                Some((cell, first)) => glyph(cell, *first, style),
            });
        }
        out.gap();
    }
    let legend = if run.schedule == "inference" {
        "digits: micro-batch, one token a pass   · idle"
    } else {
        "digits: forward of a micro-batch   b: backward   w: weight gradient   · idle"
    };
    out.note(legend);
    out.text()
}

fn glyph(cell: &CellCard, first: bool, style: Style) -> String {
    let digit = char::from_digit((cell.micro_batch % 10) as u32, 10).unwrap_or('?');
    let (color, letter) = match cell.kind.as_str() {
        "F" | "token" => (39, digit),
        "B" | "BW" => (35, 'b'),
        _ => (214, 'w'),
    };
    // The first column of a backward pass shows whose it is.
    let c = if first { digit } else { letter };
    style.tint(color, &c.to_string())
}
