//! Flags to change, each tried through the engine's own sum before it is named.

use super::{Case, Change, gib, prints};
use crate::desk::prelude::*;
use rackmath_spec::launch::Start;
use rackmath_spec::layout::Degrees;
use rackmath_spec::line::Program;
use rackmath_theory::budget::{Budget, Refusal};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::layout::check_shape;

/// Most that are named.
const MOST: usize = 6;

/// What a flag is called.
#[derive(Clone, Copy)]
enum Knob {
    Longest,
    Share,
    Sequences,
    Pass,
    Kv,
    Weights,
    Tp,
    Eager,
}

fn spelled(program: Program, knob: Knob) -> Option<&'static str> {
    let names = match program {
        Program::Vllm => [
            "--max-model-len",
            "--gpu-memory-utilization",
            "--max-num-seqs",
            "--max-num-batched-tokens",
            "--kv-cache-dtype fp8",
            "--quantization fp8",
            "--tensor-parallel-size",
            "--enforce-eager",
        ],
        Program::Sglang => [
            "--context-length",
            "--mem-fraction-static",
            "--max-running-requests",
            "--chunked-prefill-size",
            "--kv-cache-dtype fp8_e4m3",
            "--quantization fp8",
            "--tp-size",
            "--disable-cuda-graph",
        ],
        Program::TrtLlm => [
            "--max_seq_len",
            "--kv_cache_free_gpu_memory_fraction",
            "--max_batch_size",
            "--max_num_tokens",
            "",
            "",
            "--tp_size",
            "",
        ],
        Program::LlamaCpp => ["-c", "", "-np", "-ub", "-ctk q8_0 -ctv q8_0", "", "", ""],
    };
    Some(names[knob as usize]).filter(|name| !name.is_empty())
}

/// Changes that make it start; where it does, those that make the cache larger.
pub(super) fn tried(case: &Case, b: &Budget, starts: bool) -> Vec<Change> {
    // A model without a cache has nothing more to hold.
    if case.early.is_some() || (starts && b.tokens == 0) {
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut add = |knob: Knob, value: Option<String>, on: &Deployment, start: &Start, caution: Option<Remark>| {
        let Some(name) = spelled(case.launch.program, knob) else { return };
        let then = case.tried(on, start);
        let better =
            then.starts() && (!starts || then.cache > b.cache * 1.02 || then.concurrency > b.concurrency * 1.02);
        if better {
            all.push(Change {
                flag: value.map_or_else(|| name.to_owned(), |value| format!("{name} {value}")),
                caution,
                starts: then.starts(),
                kv_cache_gib: gib(then.cache),
                kv_cache_tokens: then.tokens,
                max_concurrency: then.concurrency,
                max_model_len: then.longest,
            });
        }
    };
    let (on, start) = (&case.on, &case.start);
    if let Some(Refusal::TooLong { possible, .. }) = b.refusal
        && possible >= 16
    {
        // Whole pages: the longest that is possible, to the last hundred where there are many.
        let step = if possible > 2000 { 100 } else { 16 };
        let longest = possible / step * step;
        add(Knob::Longest, Some(longest.to_string()), on, &Start { longest: Some(longest), ..start.clone() }, None);
    }
    if let Some(Refusal::Capture { .. }) = b.refusal {
        add(Knob::Eager, None, on, &Start { eager: true, ..start.clone() }, Some(says("check_no_graphs")));
    }
    if let Some(Refusal::NotFree { free, .. }) = b.refusal {
        let share = prints::share_below(free, b.total);
        let said = Start { utilisation: Fraction::checked(share), ..start.clone() };
        add(Knob::Share, Some(format!("{share:.2}")), on, &said, None);
    }
    let shares: &[f64] = if matches!(b.refusal, Some(Refusal::Capture { .. } | Refusal::Sampler { .. })) {
        &[0.9, 0.85, 0.8, 0.7]
    } else {
        &[0.92, 0.95, 0.97]
    };
    let lower = |share: &f64| if shares[0] > 0.9 { *share > b.utilisation.get() } else { *share < b.utilisation.get() };
    for share in shares.iter().filter(|share| lower(share)) {
        let said = Start { utilisation: Fraction::checked(*share), ..start.clone() };
        let caution = (*share > 0.92).then(|| says("check_little_spare"));
        if case.tried(on, &said).starts() {
            add(Knob::Share, Some(share.to_string()), on, &said, caution);
            break;
        }
    }
    // Buffers that are asked for: the longest context there is room for, of all slots together.
    if let (Some(Refusal::Buffers { .. }), Program::LlamaCpp) = (b.refusal, case.launch.program)
        && b.longest_possible >= 256
    {
        let slots = if start.unified { 1 } else { start.sequences.unwrap_or(1).max(1) };
        let longest = b.longest_possible.min(b.longest) / 256 * 256 * slots;
        add(Knob::Longest, Some(longest.to_string()), on, &Start { longest: Some(longest), ..start.clone() }, None);
    }
    // Fewer slots of llama.cpp share the same context.
    if b.sequences > 256 && case.launch.program != Program::LlamaCpp {
        let said = Start { sequences: Some(256), ..start.clone() };
        add(Knob::Sequences, Some("256".into()), on, &said, Some(says("check_fewer_sequences")));
    }
    if b.pass > 2048 {
        let said = Start { pass: Some(2048), sequences: Some(b.sequences.min(2048)), ..start.clone() };
        add(Knob::Pass, Some("2048".into()), on, &said, Some(says("check_slower_prompts")));
    }
    if on.kv.bits() > 12.0 {
        let format = if case.launch.program == Program::LlamaCpp {
            Dtype::named("q8_0").unwrap_or(Dtype::Fp8)
        } else {
            Dtype::Fp8
        };
        let said = Start { halves: None, ..start.clone() };
        add(Knob::Kv, None, &Deployment { kv: format, ..on.clone() }, &said, Some(says("check_narrow_cache")));
    }
    if !starts && on.formats.linear.bits() > 12.0 {
        let narrow = Deployment { formats: on.model.formats_in(Dtype::Fp8), ..on.clone() };
        add(Knob::Weights, None, &narrow, start, Some(says("check_narrow_weights")));
    }
    if !starts {
        let d = on.layout.degrees();
        for tp in [2, 4, 8, 16].into_iter().filter(|tp| *tp > d.tp) {
            let Some(wider) = widened(on, d, tp) else { continue };
            if case.tried(&wider, start).starts() {
                let chips = wider.layout.chips();
                // SGLang's degree counts the groups that attention is cut into.
                let together = case.launch.flags.iter().any(|f| f.flag.contains("enable-dp-attention"));
                let groups = if together { d.dp } else { 1 };
                add(
                    Knob::Tp,
                    Some((tp * groups).to_string()),
                    &wider,
                    start,
                    Some(says("check_more_chips").with("chips", chips)),
                );
                break;
            }
        }
    }
    all.truncate(MOST);
    all
}

fn widened(on: &Deployment, d: Degrees, tp: u64) -> Option<Deployment> {
    let etp = if d.etp >= d.tp { d.etp / d.tp * tp } else { d.etp };
    let ep = if d.ep > 1 && d.etp == 1 { d.ep / d.tp * tp } else { d.ep };
    let layout = Layout::new(Degrees { tp, etp, ep, ..d }).ok()?;
    let legal = on.model.shape().is_none_or(|shape| check_shape(shape, &layout.degrees()).is_ok());
    legal.then(|| Deployment { layout, ..on.clone() })
}
