//! Training steps and their speed by convention as text.

use super::prelude::*;
use rackmath::mfu;
use rackmath::train::{Answer, ChangeCard, LayoutCard, PublishedCard, RunCard, StageCard};

/// Layouts of a frontier worth reading.
const FRONTIER: usize = 12;

pub(super) fn train(out: &mut Page, a: &Answer) {
    out.fold();
    out.head(format!("{} on {}", a.model, a.machine));
    if let Some(solved) = &a.solved {
        out.judged(solved.chips.is_some(), words(&solved.verdict));
    }
    let fullest = a.stages.iter().map(|s| s.total_bytes).fold(0.0, f64::max);
    let left = bytes((a.capacity_bytes - fullest).max(0.0));
    let [fullest, capacity] = [fullest, a.capacity_bytes].map(bytes);
    out.figures();
    if let Some(verdict) = &a.verdict {
        out.judged(false, words(verdict));
        let nearest = if a.search.is_some() { "comes nearest" } else { "layout" };
        out.field(nearest, format!("{} on {} chips: {fullest} of {capacity} on the fullest", a.layout, a.chips));
        out.within(Kind::Advice, |out| changes(out, &a.changes));
        // What cannot run has no speed worth reading.
        if a.search.is_some() {
            out.gap();
            stages(out, &a.stages);
            return;
        }
        out.gap();
        out.above("  if it fitted");
        out.field("step", seconds(a.step_s));
    } else if a.solved.is_none() {
        stepped(out, a);
    }
    // Constants of other chips say less than their error does.
    if a.evidence.with.contains_key("elsewhere") {
        let said = super::page::sentence(&words(&a.evidence));
        out.within(Kind::Verdict, |out| out.paragraph("", said));
    }
    out.field("layout", format!("{} on {} chips, {} micro-batches", a.layout, a.chips, a.micro_batches));
    if a.search.is_some() {
        out.wrapped("  ask for it with        ", "                         ", flags(&a.with));
    }
    out.field("program", &a.stack);
    let fits = if a.fits { format!("fits with {left} to spare") } else { "does not fit".into() };
    out.field("memory", format!("{fullest} of {capacity} on the fullest chip: {fits}"));
    let per_chip = tok_s(a.tokens_per_s / a.chips as f64);
    out.field("speed", format!("{per_chip} per chip; the products alone at full peak take {}", seconds(a.bound_s)));
    let rate = flop_rate(a.flop_per_s_per_chip);
    out.field("MFU", format!("{} {} ({rate} per chip)", percent(a.mfu), words(&a.mfu_counted)));
    if let Some(tuned) = &a.tuned {
        super::tuning::tuned(out, tuned);
    }
    if let Some(p) = &a.published {
        published(out, p);
    }
    if let Some(run) = &a.run {
        whole(out, a, run);
    }
    if let Some(others) = &a.by_others {
        out.row("MFU, counted otherwise", words(others));
    }
    out.working();
    stages(out, &a.stages);
    out.advice();
    out.each(&a.parts).columns(&[
        ("part of the step", &|part| part.name.clone()),
        ("time", &|part| seconds(part.time_s)),
        ("share", &|part| percent(part.share)),
    ]);
    out.working();
    if let Some(search) = &a.search {
        let (timed, fit) = (grouped(search.evaluated as f64), grouped(search.feasible as f64));
        out.line(format!("\n  {timed} layouts timed, {fit} fit, all others are at least twice as slow; fastest first"));
        layouts(out, &search.best);
        out.line("\n  none is better in time, memory and cost at once, up to twice the time of the fastest");
        let shown = search.frontier.len().min(FRONTIER);
        layouts(out, &search.frontier[..shown]);
        if search.frontier.len() > shown {
            out.line(format!("  {} more with --json", search.frontier.len() - shown));
        }
    }
    let assumptions: Vec<&Remark> = a.run.iter().flat_map(|r| &r.assumptions).collect();
    out.assumes(&assumptions);
    out.within(Kind::Assumption, |out| {
        out.gap();
        out.wrapped("  evidence: ", "    ", &a.evidence);
    });
}

/// How fast it is, and how long and dear the whole of it.
fn stepped(out: &mut Page, a: &Answer) {
    let speed = format!("{} a step, {} at {} MFU", seconds(a.step_s), tok_s(a.tokens_per_s), percent(a.mfu));
    let run = a.run.as_ref().and_then(|r| Some((r.tokens?, r.wall_days.or(r.work_days)?, r.cost_usd.or(a.cost_usd))));
    let whole = or(run, "", |(tokens, days, cost)| {
        let priced = or(a.priced.as_ref(), "", |p| format!(" ({})", words(p)));
        let cost = or(cost, "", |c| format!(" and {}{priced}", Dollars::usd(c)));
        format!("; {} tokens take {}{cost}", Params::new(tokens), lasting(days))
    });
    let fastest = only(a.search.is_some(), format!("{} is fastest: ", a.layout));
    let idle =
        only(a.idle_chips > 0, format!("; {} of {} chips idle and are paid for", a.idle_chips, a.chips + a.idle_chips));
    let quicker = or(a.tuned.as_ref().and_then(|t| t.quicker.as_ref()), "", |q| format!("; {}", words(q)));
    out.verdict(format!("{fastest}{speed}{whole}{idle}{quicker}"));
}

/// Days, or hours and less where it is not one.
fn lasting(days: f64) -> String {
    if days < 1.0 { seconds(days * 86_400.0) } else { format!("{} days", three(days)) }
}

/// What makes it fit, first what to try first.
fn changes(out: &mut Page, all: &[ChangeCard]) {
    if all.is_empty() {
        return;
    }
    out.gap();
    out.each(all).columns(&[
        ("fits with, computed", &|c| words(&c.what)),
        ("layout", &|c| c.layout.clone()),
        ("chips", &|c| c.chips.to_string()),
        ("step", &|c| seconds(c.step_s)),
        ("memory", &|c| bytes(c.memory_bytes)),
    ]);
}

fn published(out: &mut Page, p: &PublishedCard) {
    let range = |(low, high): (f64, f64), show: &dyn Fn(f64) -> String| {
        let [a, b] = [show(low), show(high)];
        if a == b { a } else { format!("{a} to {b}") }
    };
    let hours = |h: f64| format!("{} M", three(h / 1e6));
    let mut said: Vec<String> = Vec::new();
    if let Some((low, high)) = p.chip_hours {
        let here = or(p.computed_chip_hours, "", |h| format!(" (here {})", hours(h)));
        said.push(format!("{} chip-hours{here}", hours(f64::midpoint(low, high))));
    }
    if let Some(mfu) = p.mfu {
        said.push(format!("MFU {}", range(mfu, &percent)));
    }
    if !said.is_empty() {
        out.field("published", said.join(", "));
    }
    out.within(Kind::Source, |out| out.field("layout from", &p.source));
}

/// Fields of a request as flags.
fn flags(with: &serde_json::Map<String, serde_json::Value>) -> String {
    let flag = |(name, value): (&String, &serde_json::Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = name.replace('_', "-");
        if value == "true" { format!("--{name}") } else { format!("--{name} {value}") }
    };
    with.iter().map(flag).collect::<Vec<_>>().join(" ")
}

/// Tokens, loss, days and dollars, without failures and with them.
fn whole(out: &mut Page, a: &Answer, run: &RunCard) {
    if let Some(l) = &run.loss {
        let [reach, least] = [l.loss, l.least].map(|x| significant(x, 4));
        out.field(
            "loss",
            match run.tokens {
                Some(_) => format!("{reach} under {}; with endless data {least}", l.law),
                None => format!("{reach} under {} is out of reach: endless data leaves {least}", l.law),
            },
        );
        for far in &l.outside {
            out.field("", format!("caution: {}", words(far)));
        }
        if let Some(b) = l.tokens_spread.as_ref().map(|s| s.narrow.unwrap_or(s.wide)) {
            let (low, high) = (Tokens::new(b.low), Tokens::new(b.high));
            out.field("", format!("tokens {low} to {high} in 8 of 10 draws of its standard errors"));
        }
    }
    let (Some(days), Some(tokens)) = (run.work_days, run.tokens) else { return };
    let cost = |usd: Option<f64>| or(usd, "", |c| format!(", {}", Dollars::usd(c)));
    let priced = cost(a.cost_usd);
    out.field("run", format!("{} tokens in {}{priced} if nothing fails", Params::new(tokens), lasting(days)));
    let every = Seconds::s(run.job_mtbf_hours * 3600.0);
    out.field(
        "failures",
        match (run.wall_days, run.failures) {
            (Some(_), Some(n)) => {
                let (n, [mfu, progress]) = (significant(n, 2), [run.effective_mfu, run.goodput].map(percent));
                format!("one every {every}, {n} in all: {progress} of the time is progress, MFU {mfu}")
            }
            _ => format!("one every {every}: it never ends"),
        },
    );
    let within = or(run.checkpoint_bytes_per_s, "", |rate| {
        let stall = Seconds::s(a.request.stall_s);
        format!(": a stall of {stall} asks for {} to storage", rackmath_units::ByteRate::b_per_s(rate))
    });
    out.field("checkpoint", format!("{}{within}", bytes(run.checkpoint_bytes)));
    out.maybe(
        "energy",
        run.energy.as_ref().map(|e| {
            let each = watts(e.chip_watts);
            format!("{} MWh at {each} a chip, {}", three(e.kwh / 1000.0), words(&e.includes))
        }),
    );
}

/// First, last, and the fullest stage.
fn stages(out: &mut Page, all: &[StageCard]) {
    let fullest = all.iter().max_by(|a, b| a.total_bytes.total_cmp(&b.total_bytes)).map(|s| s.stage);
    let last = all.len().saturating_sub(1) as u64;
    let worth = |s: &&StageCard| s.stage == 0 || s.stage == last || Some(s.stage) == fullest;
    out.each(&all.iter().filter(worth).collect::<Vec<_>>()).columns(&[
        ("stage", &|s| s.stage.to_string()),
        ("layers", &|s| s.layers.to_string()),
        ("weights", &|s| bytes(s.weight_bytes)),
        ("gradients", &|s| bytes(s.gradient_bytes)),
        ("optimizer", &|s| bytes(s.optimizer_bytes)),
        ("activations", &|s| bytes(s.activation_bytes)),
        ("logits", &|s| bytes(s.logit_bytes)),
        ("other", &|s| bytes(s.other_bytes)),
        ("all", &|s| bytes(s.total_bytes)),
    ]);
}

fn layouts(out: &mut Page, cards: &[LayoutCard]) {
    out.each(cards).columns(&[
        ("layout", &|c| c.layout.clone()),
        ("chips", &|c| c.chips.to_string()),
        ("step", &|c| seconds(c.step_s)),
        ("memory", &|c| bytes(c.memory_bytes)),
        ("chip-hours per Mtok", &|c| three(c.chip_hours_per_mtok)),
    ]);
}

pub(super) fn mfu(out: &mut Page, a: &mfu::Answer) {
    out.fold();
    out.head(format!("{} on {}, {} tokens a sequence", a.model, a.chip, a.request.sequence));
    let shares = a.lines.iter().map(|line| line.mfu);
    let (low, high) = (shares.clone().fold(f64::INFINITY, f64::min), shares.fold(0.0, f64::max));
    let n = a.lines.len();
    out.verdict(format!(
        "The same speed is {} of peak, by which of {n} conventions one counts",
        span(low, high, percent)
    ));
    out.figures();
    out.field("speed", format!("{} per chip", tok_s(a.tokens_per_s_per_chip)));
    out.field("peak", format!("{} dense, {}", flop_rate(a.peak_flop_per_s), a.request.format));
    out.gap();
    out.each(&a.lines).columns(&[
        ("convention", &|line| line.convention.to_string()),
        ("FLOP per token", &|line| FlopPerToken::new(line.flop_per_token).to_string()),
        ("per chip", &|line| flop_rate(line.flop_per_s_per_chip)),
        ("share of peak", &|line| percent(line.mfu)),
        ("who counts so", &|line| line.used_by.into()),
    ]);
}
