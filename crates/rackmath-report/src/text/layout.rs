//! Placements and pipelines as text: who holds what, what is sent where, how domains compare, who works when.

use super::prelude::*;
use crate::picture::PARTS;
use crate::style::Style;
use rackmath::layout::{Answer, EngineCard, StageCard, TrafficCard};
use rackmath::pipeline::{self, CellCard, RunCard};
use rackmath::racks;

/// `rackmath layout`, `memory` and `traffic`.
pub(super) fn layout(out: &mut Page, a: &Answer, part: Part) {
    out.title(format!("{} on {}: {}", a.model, a.system, a.layout));
    let chosen = if a.layout_chosen { ", layout chosen (one scale-up domain, no pipeline)" } else { "" };
    let (batch, context) = (count(a.batch.floor()), count(a.context));
    let filled = only(a.batch_filled && a.fits, " (what fits)");
    let used = format!("{} of {} chips{chosen}", a.chips, a.chips_available);
    out.dim(format!("{used}; batch {batch}{filled}, context {context}"));
    out.figures();
    if part == Part::Traffic {
        busiest(out, a);
        traffic(out, a);
        out.gap();
        experts(out, a);
    } else {
        fit(out, a);
        if part != Part::Memory {
            experts(out, a);
        }
        out.gap();
        per_chip(out, a);
        out.working();
        bars(out, a);
        if part != Part::Memory {
            out.gap();
            traffic(out, a);
            out.advice();
            commands(out, a);
        }
    }
    out.assumes(&a.assumptions);
}

fn fit(out: &mut Page, a: &Answer) {
    let s = if a.batch_max == 1.0 { "" } else { "s" };
    let longest = or(a.context_max, "", |l| format!(", or a context of {} at a batch of {}", count(l), count(a.batch)));
    let most = format!("; at most {} sequence{s} of this context{longest}", count(a.batch_max));
    out.judged(a.fits, format!("{}{}", words(&a.verdict), only(a.fits && a.engine.is_none() && !a.batch_filled, most)));
    if let Some(o) = &a.offload {
        let label = if o.cards.is_empty() { "in host memory" } else { "cards" };
        out.wrapped(&format!("  {label:<22} "), &" ".repeat(25), &o.says);
    }
    if let Some(engine) = &a.engine {
        counted(out, engine);
    }
    out.within(Kind::Advice, |out| {
        out.maybe("first change that fits", a.first_change.as_ref());
        out.maybe("split that fits", a.split_that_fits.as_ref());
        if let Some(warning) = &a.warning {
            out.wrapped("  warning: ", "    ", warning);
        }
    });
    out.field("largest batch", format!("{} sequences of this context", count(a.batch_max)));
    let none = if a.fits { "any, at this batch" } else { "none at this batch" };
    let alone = (a.context_max_alone, "of one sequence alone");
    let (longest, of) = if a.batch_filled { alone } else { (a.context_max, "at this batch") };
    out.field("longest context", or(longest, none, |l| format!("{} tokens {of}", count(l))));
}

/// As an engine counts it when it starts.
fn counted(out: &mut Page, e: &EngineCard) {
    let parts = [
        (e.weights_gib, "weights"),
        (e.activation_gib, "dry run"),
        (e.non_torch_gib, "past the allocator"),
        (e.graphs_gib, "graphs"),
        (e.kv_cache_gib, "cache"),
    ];
    let parts = parts.map(|(gib, what)| format!("{gib:.2} {what}")).join(", ");
    out.field(&format!("as {} counts", e.name), format!("of {:.2} GiB: {parts}", e.total_gib));
    let groups = if e.groups > 1 { format!(", {} groups of layers", e.groups) } else { String::new() };
    let blocks = format!("{} of {} tokens{groups}", grouped(e.num_gpu_blocks as f64), e.block_size);
    out.field("blocks", format!("{blocks}; {} tokens as printed", grouped(e.kv_cache_tokens as f64)));
    let shares = match (e.utilisation_from, e.utilisation_to) {
        (Some(from), Some(to)) => format!("{} taken; starts from {from:.2} to {to:.2}", significant(e.utilisation, 3)),
        _ => format!("{} taken; starts with none", significant(e.utilisation, 3)),
    };
    if e.utilisation < 1.0 {
        out.field("share of memory", shares);
    }
}

/// Stages to show: all when few, else the first, the second and the last.
fn shown(stages: &[StageCard]) -> Vec<&StageCard> {
    match stages {
        few if few.len() <= 4 => few.iter().collect(),
        [first, second, .., last] => vec![first, second, last],
        _ => Vec::new(),
    }
}

fn per_chip(out: &mut Page, a: &Answer) {
    let (stages, style) = (shown(&a.stages), out.style);
    let name = |s: &&StageCard| {
        format!("stage {} (layers {}-{})", s.stage, s.first_layer, (s.first_layer + s.layers).saturating_sub(1))
    };
    // Less than a byte is what a subtraction leaves.
    let held = PARTS.iter().filter(|p| stages.iter().any(|s| (p.of)(s) >= 1.0));
    let mut rows: Vec<Vec<String>> = held.map(|p| led(p.name, stages.iter().map(|s| bytes((p.of)(s))))).collect();
    let total = |s: &&StageCard| style.bold(&format!("{} of {}", bytes(s.total_bytes), bytes(a.capacity_bytes)));
    rows.push(led(style.bold("total"), stages.iter().map(total)));
    rows.push(led("FLOP per step", stages.iter().map(|s| Flop::flop(s.flop).to_string())));
    out.table(&led("each chip of", stages.iter().map(name)), rows);
    if a.stages.len() > stages.len() {
        out.note(format!("{} stages in all", a.stages.len()));
    }
}

/// A bar of blocks per stage: what fills a chip.
fn bars(out: &mut Page, a: &Answer) {
    let style = out.style;
    let wide = style.width.clamp(60, 140) - 30;
    for s in shown(&a.stages) {
        let scale = a.capacity_bytes.max(s.total_bytes);
        let mut bar = String::new();
        let (mut drawn, mut sum) = (0usize, 0.0);
        for part in &PARTS {
            sum += (part.of)(s);
            let n = ((sum / scale * wide as f64).round() as usize).saturating_sub(drawn);
            bar.push_str(&style.tint(part.tint, &part.letter.to_string().repeat(n)));
            drawn += n;
        }
        let end = if s.total_bytes > a.capacity_bytes { style.bad(" too much") } else { String::new() };
        out.line(format!("  stage {:<3} |{bar}{}|{end}", s.stage, " ".repeat(wide.saturating_sub(drawn))));
    }
    out.note("E experts  S shared  A attention  D dense  V vocabulary  n norms  K KV cache  a activations  b buffers  . reserve");
}

fn experts(out: &mut Page, a: &Answer) {
    let Some(e) = &a.experts else { return };
    let each = three(e.slots_per_chip);
    let held = format!("{} slots, {each} on each chip, {} groups", e.slots, e.groups);
    out.field("experts", format!("{} of {} per token; {held}", e.top_k, e.experts));
    out.field("tokens per expert", three(e.tokens_per_expert));
    out.field("a token goes to", format!("{} chips", three(e.destinations)));
    let [routing, chance] = [e.imbalance, e.fluctuation].map(times);
    out.field("busiest chip", format!("{routing} the mean from routing, {chance} from chance"));
    let width = e.least_width.map(|least| {
        let verdict = if e.width as f64 > least { "wider than" } else { "narrower than" };
        let least = count(least.round());
        format!("{}, {verdict} the {least} that keeps compute busy on the scale-up network", e.width)
    });
    out.maybe("expert width", width);
    if e.slowdown > 1.0 {
        out.row("leaves the domain", out.style.bad(&format!("all-to-all {} slower", times(e.slowdown))));
    }
    let ratio = |rho| format!("{} if each stage were its own domain (1 or more is good)", three(rho));
    out.maybe("scale-up : scale-out", e.up_to_out.map(ratio));
}

/// The most that goes over one network.
fn busiest(out: &mut Page, a: &Answer) {
    let time = |t: &TrafficCard| t.predicted_s.or(t.seconds).unwrap_or(0.0);
    match a.traffic.iter().max_by(|a, b| time(a).total_cmp(&time(b))) {
        Some(most) => {
            let all: f64 = a.traffic.iter().map(time).sum();
            let takes = only(time(most) > 0.0, format!(", {} of {} in all", seconds(time(most)), seconds(all)));
            let sent = format!("{} over {}{takes}", bytes(most.bytes), most.network);
            out.verdict(format!("Most of a step's sending is {}: {sent}", most.what));
        }
        None => out.verdict("no traffic: one chip, or copies that do not talk"),
    }
}

fn traffic(out: &mut Page, a: &Answer) {
    if a.traffic.is_empty() {
        return out.line("  no traffic: one chip, or copies that do not talk");
    }
    out.each(&a.traffic).columns(&[
        ("traffic of the busiest chip per step", &|t| t.what.clone()),
        ("network", &|t| t.network.clone()),
        ("bytes", &|t| bytes(t.bytes)),
        ("at full bandwidth", &|t| or(t.seconds, "unknown", seconds)),
        ("predicted", &|t| or_dash(t.predicted_s, seconds)),
    ]);
}

fn commands(out: &mut Page, a: &Answer) {
    for c in &a.commands {
        let text = match (&c.flags, &c.cannot) {
            (Some(flags), _) if flags.is_empty() => "(no flags: one chip)".to_owned(),
            (Some(flags), _) => flags.clone(),
            (None, why) => out.style.dim(&format!("cannot: {}", why.as_deref().unwrap_or("unknown"))),
        };
        out.line(format!("  {:<9} {text}", c.tool));
    }
}

pub(super) fn racks(out: &mut Page, a: &racks::Answer) {
    out.head(format!("{}: {} of weights in one scale-up domain", a.model, bytes(a.weights_bytes)));
    let fitting = a.racks.iter().filter(|r| r.domains_for_weights <= 1.0);
    if let Some(best) = fitting.clone().min_by(|a, b| a.weights_s.total_cmp(&b.weights_s)) {
        let (n, all) = (fitting.count(), a.racks.len());
        let floor = seconds(best.weights_s);
        out.verdict(format!("{n} of {all} domains hold the weights; {} reads them fastest, in {floor}", best.system));
    } else {
        out.judged(false, "no domain holds the weights by itself");
    }
    let full = |r: &&racks::Rack| r.domains_for_weights > 1.0 && r.capacity_bytes >= a.weights_bytes;
    let full: Vec<&str> = a.racks.iter().filter(full).map(|r| r.system.as_str()).collect();
    if !full.is_empty() {
        let share = percent(a.memory_share);
        let held = format!("{}: enough bytes for the weights, but an engine takes {share} of them", full.join(", "));
        out.within(Kind::Advice, |out| out.item(held));
    }
    out.figures();
    out.each(&a.racks).columns(&[
        ("domain", &|r| r.system.clone()),
        ("chips", &|r| count(r.packages as f64)),
        ("memory", &|r| bytes(r.capacity_bytes)),
        ("bandwidth", &|r| byte_rate(r.bandwidth_bytes_per_s)),
        ("read", &|r| seconds(r.weights_s)),
        ("takes", &|r| count(r.domains_for_weights.max(1.0))),
        ("largest", &|r| params(r.largest_params)),
        ("up/out", &|r| or_dash(r.beta, times)),
        ("over two", &|r| or_dash(r.two_domain_slowdown, times)),
        ("power", &|r| or_dash(r.power_w, watts)),
    ]);
    for note in [
        "read: all weights once, the latency floor of a large batch; pipelining does not lower it, a larger domain does (D36)",
        "takes: domains that the weights fill; largest: a model with weights in half of the domain's memory, the other half for KV",
        "up/out: scale-up over scale-out bandwidth of a chip; over two: slowdown of an expert layer spread over two domains (D20)",
    ] {
        out.within(Kind::Working, |out| out.note(note));
    }
}

pub(super) fn pipeline(out: &mut Page, a: &pipeline::Answer) {
    let size = format!("{} stages, {} micro-batches", a.request.stages, a.request.micro_batches);
    if let [one] = a.runs.as_slice() {
        out.head(format!("{}: {size}", one.schedule));
        single(out, one, a.request.stages as usize);
        return out.assumes(&a.assumptions);
    }
    out.head(size);
    let least = a.runs.iter().filter(|r| r.schedule != "inference");
    if let Some(best) = least.min_by(|a, b| a.makespan_s.total_cmp(&b.makespan_s)) {
        let (step, idle) = (seconds(best.makespan_s), percent(best.idle));
        let held = three(best.peak_micro_batches);
        out.verdict(format!("Fastest is {}: a step of {step}, {idle} idle, {held} micro-batches held", best.schedule));
    }
    out.figures();
    out.each(&a.runs).columns(&[
        ("schedule", &|run| run.schedule.clone()),
        ("step", &|run| seconds(run.makespan_s)),
        ("idle", &|run| percent(run.idle)),
        ("bubble", &|run| seconds(run.bubble_s)),
        ("closed form", &|run| or_dash(run.closed_bubble_s, seconds)),
        ("behind a barrier", &|run| seconds(run.barrier_bubble_s)),
        ("micro-batches held", &|run| three(run.peak_micro_batches)),
    ]);
    out.note("bubble: a stage starts its next step when it is done");
    out.note("step, idle, behind a barrier: all wait for the last");
    a.assumptions.iter().for_each(|said| out.wrapped("  ", "  ", said));
    for why in &a.left_out {
        out.wrapped("  left out: ", "    ", why);
    }
}

fn single(out: &mut Page, run: &RunCard, stages: usize) {
    let inference = run.schedule == "inference";
    let (step, idle) = (seconds(run.makespan_s), percent(run.idle));
    if inference {
        out.verdict(format!("Stages are idle {idle} of the time in steady state"));
    } else {
        out.verdict(format!("A step takes {step}; stages are idle {idle} of it"));
    }
    out.figures();
    grid(out, run, stages);
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
    let less = "in any order; split backward passes or chunks can take less";
    out.maybe("least for these passes", run.lower_bound_s.map(|s| format!("{} {less}", seconds(s))));
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
