//! Pipelines as text: a grid of slots, or a table of schedules.

use super::page::{Page, bytes, only, or, or_dash, percent, seconds, three};
use crate::style::Style;
use rackmath::pipeline::{Answer, CellCard, RunCard};

pub(super) fn pipeline(out: &mut Page, a: &Answer) {
    let size = format!("{} stages, {} micro-batches", a.request.stages, a.request.micro_batches);
    if let [one] = a.runs.as_slice() {
        out.head(format!("{}: {size}", one.schedule));
        return single(out, one, a.request.stages);
    }
    out.head(size);
    out.each(&a.runs).columns(&[
        ("schedule", &|run| run.schedule.clone()),
        ("step", &|run| seconds(run.makespan_s)),
        ("idle", &|run| percent(run.idle)),
        ("bubble", &|run| seconds(run.bubble_s)),
        ("closed form", &|run| or_dash(run.closed_bubble_s, seconds)),
        ("behind a barrier", &|run| seconds(run.barrier_bubble_s)),
        ("micro-batches held", &|run| three(run.peak_micro_batches)),
    ]);
    out.note("bubble: a stage starts its next step when it is done; behind a barrier all wait for the last");
    for why in &a.left_out {
        out.wrapped("  left out: ", "    ", why);
    }
}

fn single(out: &mut Page, run: &RunCard, stages: usize) {
    grid(out, run, stages);
    let inference = run.schedule == "inference";
    let training = "digits: forward of a micro-batch   b: backward   w: weight gradient   · idle";
    out.note(if inference { "digits: micro-batch, one token a pass   · idle" } else { training });
    out.gap();
    if inference {
        out.field("idle in steady state", percent(run.idle));
        return out.more("none from as many micro-batches as stages on");
    }
    out.field("step", seconds(run.makespan_s));
    out.field("idle", percent(run.idle));
    let closed = or(run.closed_bubble_s, "no closed form applies", |c| format!("closed form {}", seconds(c)));
    let [bubble, barrier] = [run.bubble_s, run.barrier_bubble_s].map(seconds);
    out.field("bubble", format!("{bubble}, {closed}; {barrier} behind a barrier"));
    out.maybe("no schedule beats", run.lower_bound_s.map(seconds));
    let bytes = only(run.peak_bytes > 0.0, format!(", {}", bytes(run.peak_bytes)));
    out.field("activations held", format!("{} micro-batches at most{bytes}", three(run.peak_micro_batches)));
}

/// One row per device, time across; a long step is cut off on the right.
fn grid(out: &mut Page, run: &RunCard, stages: usize) {
    let shortest = run.cells.iter().map(|c| c.end_s - c.start_s).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min);
    // Each of the shortest passes gets at least two columns where there is room for it.
    let room = out.style.width.clamp(60, 200) - 12;
    let slot = if shortest.is_finite() { (shortest / 2.0).max(run.makespan_s / room as f64) } else { 1.0 };
    let columns = ((run.makespan_s / slot).round() as usize).clamp(1, room);
    let mut rows = vec![vec![out.style.dim("·"); columns]; stages.min(64)];
    for cell in run.cells.iter().filter(|c| c.device < stages.min(64)) {
        let from = (cell.start_s / slot).round() as usize;
        let to = ((cell.end_s / slot).round() as usize).max(from + 1);
        for (i, place) in rows[cell.device].iter_mut().take(to).skip(from).enumerate() {
            *place = glyph(cell, i == 0, out.style);
        }
    }
    for (device, row) in rows.iter().enumerate() {
        out.line(format!("  stage {device:<3} {}", row.concat()));
    }
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
