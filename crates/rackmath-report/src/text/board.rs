//! The board as text: a step, its curves, its workings, what binds.

use super::prelude::*;
use rackmath::remark::says;
use rackmath::{curve, explain, step, when};

pub(super) fn step(out: &mut Page, a: &step::Answer) {
    out.title(format!("{} on {}", a.model, a.system));
    if a.memory.fits && a.too_long.is_none() {
        let cost = or(a.cost_usd_per_mtok, "", |cost| format!(", {}", mtok(cost)));
        let users = only(a.batch > 1.0, format!(" ({} for each of {})", tok_s(a.tokens_per_s_user), count(a.batch)));
        let what = if a.pass > 1.0 { "A pass" } else { "A decode step" };
        let speed = format!("{}{users}{cost}", tok_s(a.tokens_per_s));
        out.verdict(format!("{what} takes {}, bound by {}: {speed}", seconds(a.time_s), a.binding));
    }
    let chosen = if a.batch_chosen { " (chosen: where compute meets memory, or what fits)" } else { "" };
    let chosen = if a.batch_by_speed { " (the most at which each user is as fast as asked)" } else { chosen };
    let pass = only(a.pass > 1.0, format!(", {} tokens each in this pass", count(a.pass)));
    out.line(format!("batch {}{chosen}, context {}{pass}\n", count(a.batch), count(a.context)));
    // What cannot be is said before its numbers.
    if let Some(why) = &a.too_long {
        out.judged(false, words(why));
    }
    if !a.memory.fits {
        let missing = says("step_does_not_fit").with("missing", a.memory.missing_bytes);
        out.judged(false, words(&missing.with("chips", a.memory.chips_min)));
    }
    out.figures();
    if let Some(s) = &a.sparse {
        let (n, b) = (count(s.blocks), three(s.block_tokens));
        let read = format!(
            "{} entries of {}: {n} blocks of {b} tokens and a summary of each",
            count(s.entries),
            count(a.context)
        );
        out.field("sparse attention", read);
    }
    numbers(out, a);
    out.gap();
    memory(out, &a.memory);
    out.assumes(&a.assumptions);
    out.sources(&a.sources);
}

fn numbers(out: &mut Page, a: &step::Answer) {
    let [time, multiply, weights, kv] = [a.time_s, a.compute_s, a.weights_s, a.kv_s].map(seconds);
    out.field("step time", format!("{time}, bound by {}", a.binding));
    out.more(format!("multiply {multiply}, read weights {weights}, read KV {kv}"));
    let [lower, upper] = [a.lower_bound_s, a.upper_bound_s].map(seconds);
    out.more(format!("between {lower} (perfect overlap) and {upper} (none)"));
    out.field("throughput", format!("{}, {} per user", tok_s(a.tokens_per_s), tok_s(a.tokens_per_s_user)));
    let cost = a.cost_usd_per_mtok.zip(a.cost_floor_usd_per_mtok);
    out.maybe("cost", cost.map(|(cost, floor)| format!("{} (floor {})", mtok(cost), mtok(floor))));
    out.field("in use", format!("{} of the dense peak, {} of the bandwidth", percent(a.mfu), percent(a.mbu)));
    let [floor, all] = [a.latency_floor_s, a.all_weights_s].map(seconds);
    out.field("latency floor", format!("{floor} for one sequence, {all} to read every weight"));
    let at = |b| format!("{} sequences at this context", count(b));
    out.field("balance batch", or(a.balance_batch, "none: memory-bound at any batch", at));
    let long = |l| format!("{} tokens", count(l));
    out.field("balanced context", or(a.balanced_context, "none: never memory-bound at a large batch", long));
    let ridge = or(a.ridge, "", |r| format!("R = {}, ", three(r)));
    out.field("ridge and sparsity", format!("{ridge}S = {}", three(a.sparsity)));
    let experts = a.experts.as_ref().map(|e| {
        format!("{} of {} touched per layer, {} tokens each", three(e.touched), e.routed, three(e.tokens_each))
    });
    out.maybe("experts", experts);
}

fn memory(out: &mut Page, m: &step::Memory) {
    let [weights, kv, capacity, missing] =
        [m.weights_bytes, m.kv_bytes, m.capacity_bytes, m.missing_bytes].map(|b| Bytes::b(b).to_string());
    let missing = format!("does not fit: {missing} missing");
    let verdict = if m.fits { out.style.good("fits") } else { out.style.bad(&missing) };
    out.row("memory", format!("{verdict}: weights {weights} + KV {kv} of {capacity}"));
    if m.weights_bytes > m.capacity_bytes {
        out.more(format!("the weights alone need {} of these chips", m.chips_min));
    } else {
        let (batch, longest) = (or(m.batch_max, "any number of", count), or(m.context_max, "any", count));
        out.more(format!("at most {batch} sequences of this context, or a context of {longest} at this batch"));
    }
    let each = BytesPerToken::new(m.kv_bytes_per_token);
    out.more(format!("{each}; reading all of memory once takes {}", seconds(m.drain_s)));
}

pub(super) fn curve(out: &mut Page, a: &curve::Answer) {
    // What does not fit is drawn, and not quoted.
    let fits = a.rows.iter().any(|r| r.fits);
    let quoted = || a.rows.iter().filter(|r| r.fits || !fits);
    if let (Some(first), Some(last)) = (quoted().next(), quoted().next_back()) {
        let at = |r: &curve::Row| r.label.clone().unwrap_or_else(|| count(r.x));
        let cost = |r: &curve::Row| or(r.cost_usd_per_mtok, "", |c| format!(" and {}", mtok(c)));
        let [from, to] = [first, last].map(|r| format!("{}{} at {}", seconds(r.time_s), cost(r), at(r)));
        let turns: Vec<String> = a.kinks.iter().map(|k| format!("at {}: {}", count(k.x), words(&k.meaning))).collect();
        let turns = only(!turns.is_empty(), format!("; {}", turns.join(", ")));
        let none = only(!fits, "; none of it fits in memory");
        out.verdict(format!("Over {}, a step goes from {from} to {to}{turns}{none}", a.over.as_ref()));
    }
    out.figures();
    if a.over == curve::Over::Precision || a.rows.len() < 25 {
        rows(out, a);
    } else {
        both(out, a);
    }
    out.assumes(&a.assumptions);
}

/// Time, and cost where it is known.
fn both(out: &mut Page, a: &curve::Answer) {
    out.draw(&a.time);
    out.pictures(&a.cost);
}

fn rows(out: &mut Page, a: &curve::Answer) {
    out.title(&a.time.title);
    out.each(&a.rows).columns(&[
        (a.over.as_ref(), &|r| r.label.clone().unwrap_or_else(|| count(r.x))),
        ("step", &|r| seconds(r.time_s)),
        ("multiply", &|r| seconds(r.compute_s)),
        ("weights", &|r| seconds(r.weights_s)),
        ("KV", &|r| seconds(r.kv_s)),
        ("$/Mtok", &|r| or_dash(r.cost_usd_per_mtok, usd)),
        ("MFU", &|r| percent(r.mfu)),
        ("bound by", &|r| r.binding.clone()),
        ("fits", &|r| if r.fits { "yes".into() } else { "no".into() }),
    ]);
}

/// A step and its two curves.
pub(super) fn headline(out: &mut Page, s: &step::Answer, c: &curve::Answer) {
    let style = out.style;
    let bold = |text: String| style.bold(&text);
    let [floor, all] = [s.latency_floor_s, s.all_weights_s].map(|t| bold(seconds(t)));
    let said = format!("No step is shorter than {floor} for one user, or {all} once every weight is read.");
    out.within(Kind::Verdict, |out| out.line(said));
    let title = style.bold(&format!("{} on {}", s.model, s.system));
    let bound = style.dim(&format!("  context {} tokens; a lower bound from data sheets", count(s.context)));
    out.line(format!("{title}{bound}"));
    out.figures();
    let below = |b| format!("Batches below {} are bound by memory, larger ones by arithmetic.", bold(count(b)));
    let never = "Memory binds at any batch: the cache takes longer to read than a token to compute.";
    out.line(format!("  {}", or(s.balance_batch, never, below)));
    if let (Some(cost), Some(floor)) = (s.cost_usd_per_mtok, s.cost_floor_usd_per_mtok) {
        let alone = c.rows.first().and_then(|r| r.cost_usd_per_mtok).unwrap_or(cost);
        let ([alone, cost, floor], batch) = ([alone, cost, floor].map(|x| bold(mtok(x))), count(s.batch));
        out.line(format!("  A token costs {alone} alone, {cost} at batch {batch}, and never less than {floor}."));
    }
    let beyond = |l| format!("Contexts beyond {} tokens leave arithmetic idle at any batch.", bold(count(l)));
    let never = "No context is too long for compute to keep up at a large batch.";
    out.line(format!("  {}", or(s.balanced_context, never, beyond)));
    out.gap();
    both(out, c);
    out.advice();
    out.dim("next: rackmath step llama-3.1-70b --on 8xh200 --batch 64    rackmath explain step    rackmath --help");
}

pub(super) fn explain(out: &mut Page, a: &explain::Answer) {
    let style = out.style;
    if let Some(asked) = a.workings.first() {
        out.verdict(format!("{}: {} = {}", words(&asked.meaning), asked.symbol, words(&asked.result)));
    }
    if let Some(why) = &a.not_held {
        out.judged(false, words(why));
    }
    out.head(format!("{} on {}", a.model, a.system));
    let mut cited = Vec::new();
    for w in &a.workings {
        out.figures();
        out.title(format!("{} {}", w.symbol, style.dim(&words(&w.meaning))));
        for side in [&w.equation, &w.substituted, &style.bold(&words(&w.result))] {
            out.line(format!("  = {side}"));
        }
        out.gap();
        out.working();
        out.title(format!("{}, what stands in it", w.symbol));
        for i in &w.inputs {
            out.line(format!("    {:<9} {:<18} {}", i.symbol, i.shown, words(&i.meaning)));
            // A source is printed where it first appears.
            let own = ["derived_below", "the_question"].contains(&&*i.source.says);
            if !own && !cited.contains(&&i.source) {
                cited.push(&i.source);
                let indent = " ".repeat(33);
                out.dim(style.wrapped(&indent, &indent, &words(&i.source)).trim_end());
            }
        }
        out.gap();
    }
    out.assumes(&a.assumptions);
}

pub(super) fn when(out: &mut Page, a: &when::Answer) {
    let (point, other) = match a.over {
        when::Over::Batch => ("a batch of", "context"),
        when::Over::Context => ("a context of", "batch"),
    };
    out.verdict(match a.from {
        _ if a.regimes.is_empty() && !a.refused.is_empty() => words(&a.refused[0]),
        _ if a.regimes.is_empty() => "nothing fits: weights, or one sequence, are more than memory holds".into(),
        Some(_) => ranges(a, point),
        None => format!("{} never binds, up to {point} {}", bound(a.what), count(a.most)),
    });
    let fixed = format!("{other} {}", count(a.fixed));
    out.figures();
    out.field("decode steps of", format!("{} on {}, {}, {}; {fixed}", a.model, a.system, a.engine, a.layout));
    if let Some(sheet) = &a.sheet {
        out.within(Kind::Advice, |out| out.item(words(sheet)));
    }
    let said = usize::from(a.regimes.is_empty());
    for line in a.refused.iter().skip(said).chain(&a.supported) {
        out.within(Kind::Advice, |out| out.item(words(line)));
    }
    if !a.regimes.is_empty() {
        out.field("memory holds", format!("{point} {}", count(a.most)));
        out.gap();
        out.each(&a.regimes).columns(&[
            ("what binds", &|r| bound(r.binds).into()),
            ("from", &|r| count(r.from)),
            ("to", &|r| count(r.to)),
            ("step there", &|r| seconds(r.from_ms / 1e3)),
            ("and there", &|r| seconds(r.to_ms / 1e3)),
        ]);
    }
}

/// From where to where the thing asked for binds, and what does after it.
fn ranges(a: &when::Answer, point: &str) -> String {
    let own: Vec<_> = a.regimes.iter().filter(|r| r.binds == a.what).collect();
    let stretch = |r: &when::Regime| {
        let from = count(r.from);
        if r.to >= a.most {
            format!("from {point} {from} on")
        } else if r.to > r.from {
            format!("from {point} {from} to {}", count(r.to))
        } else {
            format!("at {point} {from}")
        }
    };
    let said = own.iter().map(|r| stretch(r)).collect::<Vec<_>>().join(" and ");
    let after = a.regimes.iter().skip_while(|r| own.last().is_some_and(|last| r.from <= last.from));
    let after: Vec<String> = after.map(|r| format!(", then {} to {}", bound(r.binds), count(r.to))).collect();
    format!("{} binds {said}{}", bound(a.what), after.concat())
}

fn bound(what: when::Bound) -> &'static str {
    match what {
        when::Bound::Compute => "arithmetic",
        when::Bound::Memory => "memory bandwidth",
        when::Bound::Latency => "kernel latency",
        when::Bound::Link => "the bandwidth of links",
        when::Bound::Host => "the host",
    }
}
