//! A command line checked: whether it starts, what it prints, what to change.

use super::prelude::*;
use crate::words::Words;
use rackmath::check::{Answer, Change, Seconds3, whole_from_hundred};

pub(super) fn check(out: &mut Page, a: &Answer) {
    out.judged(a.starts, words(&a.verdict));
    if let Some(refusal) = &a.refusal {
        out.within(Kind::Verdict, |out| out.wrapped("  ", "  ", words(refusal)));
    }
    let version = a.version.as_ref().map_or_else(String::new, |v| format!(" ({v})"));
    out.row("server", format!("{} on {}, {}{version}", a.model, a.system, a.engine));
    out.row("weights, cache", format!("{}, {}; layout {}", words(&a.weights), words(&a.kv), a.layout));
    out.figures();
    let last = a.cards.last().map(|last| format!("memory of the last card, {}", last.card));
    out.title(last.unwrap_or_else(|| "memory of one card".into()));
    let gib = |x: f64| format!("{x:>8.2} GiB");
    for (at, card) in a.cards.iter().enumerate().take(a.cards.len().saturating_sub(1).min(3)) {
        let [weights, cache] = [card.weights_gib, card.kv_cache_gib].map(|x| format!("{x:.2}"));
        let held = format!("{}: {weights} GiB of weights, {cache} of cache", card.card);
        out.row(&format!("card {}", at + 1), format!("{}  {held}", gib(card.total_gib)));
    }
    let share = format!("{}, of which the engine takes {}", gib(a.total_gib), significant(a.utilisation, 3));
    out.row("found", share);
    out.row("weights", gib(a.weights_gib));
    out.row(
        "dry run",
        format!(
            "{}  {} tokens, {} sequences",
            gib(a.activation_gib),
            grouped(a.max_num_batched_tokens as f64),
            grouped(a.dry_run_seqs as f64)
        ),
    );
    out.row("outside the allocator", gib(a.non_torch_gib));
    let aside = only(a.graphs_estimate_gib > 0.0, format!("  set aside {:.2}", a.graphs_estimate_gib));
    out.row("graphs", format!("{}{aside}", gib(a.graphs_gib)));
    // Layers with windows or states take blocks of their own beside those of whole contexts.
    let alike = a.kv_cache_groups <= 1 || a.kv_cache_tokens == a.num_gpu_blocks * a.block_size;
    let groups = only(!alike, format!(", dealt to {} groups of layers", a.kv_cache_groups));
    let blocks = format!(
        "{} tokens in {} blocks of {}{groups}",
        grouped(a.kv_cache_tokens as f64),
        grouped(a.num_gpu_blocks as f64),
        a.block_size
    );
    let cached = a.kv_cache_tokens > 0 || !a.starts;
    let blocks = if cached { blocks } else { "stay free: the model keeps no cache".into() };
    out.field("cache", format!("{}  {blocks}", gib(a.kv_cache_gib)));
    out.row(
        "longest request",
        format!(
            "{:>8} tokens; the most that would start {}",
            grouped(a.max_model_len as f64),
            grouped(a.longest_context as f64)
        ),
    );
    if cached {
        out.row("at once", format!("{:>8} of the longest", significant(whole_from_hundred(a.max_concurrency), 3)));
    }
    out.gap();
    out.advice();
    changes(out, &a.changes, a.starts);
    out.working();
    out.section("what start-up prints", &a.prints);
    startup(out, &a.startup);
    flags(out, a);
    out.assumes(&a.assumptions);
}

fn changes(out: &mut Page, all: &[Change], starts: bool) {
    if all.is_empty() {
        return;
    }
    out.title(if starts { "what would hold more" } else { "what would start" });
    let rows = all.iter().map(|c| {
        let caution = c.caution.as_ref().map_or_else(String::new, words);
        [
            c.flag.clone(),
            format!("{:.2}", c.kv_cache_gib),
            grouped(c.kv_cache_tokens as f64),
            significant(c.max_concurrency, 3),
            caution,
        ]
    });
    out.table(&["change", "cache GiB", "tokens", "at once", ""], rows);
    out.gap();
}

fn startup(out: &mut Page, all: &[Seconds3]) {
    if all.is_empty() {
        return;
    }
    let sum = |of: fn(&Seconds3) -> f64| Seconds::s(all.iter().map(of).sum()).to_string();
    out.title(format!("seconds to start: about {}, {} to {}", sum(|p| p.seconds), sum(|p| p.low), sum(|p| p.high)));
    for p in all {
        let range = format!("{} to {} ({} starts)", Seconds::s(p.low), Seconds::s(p.high), p.rows);
        out.item(format!("{}: {}, {range}", words(&p.what), Seconds::s(p.seconds)));
    }
    out.gap();
}

fn flags(out: &mut Page, a: &Answer) {
    if a.obeyed.len() + a.ignored.len() + a.cautions.len() == 0 {
        return;
    }
    out.title("flags");
    if !a.obeyed.is_empty() {
        out.item(format!("obeyed: {}", a.obeyed.join(", ")));
    }
    if !a.ignored.is_empty() {
        out.item(format!("change neither memory nor speed here: {}", a.ignored.join(", ")));
    }
    for caution in &a.cautions {
        if Words::careful(caution) {
            out.caution(caution);
        } else {
            out.within(Kind::Advice, |out| out.item(caution));
        }
    }
    out.gap();
}
