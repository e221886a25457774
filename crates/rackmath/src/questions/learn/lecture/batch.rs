//! Chapter 1: batch size, latency, cost (D1 to D16).

use super::{Claim, claim, percent, preset, times};
use crate::desk::prelude::*;
use rackmath_spec::{Math, Router, VariantArray as _};
use rackmath_theory::board::closed;
use rackmath_theory::{count, roofline, sparsity, station};

fn batch(balance: Option<f64>) -> String {
    balance.map_or("none at any batch".into(), grouped)
}

pub(super) fn claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let frontier = preset(catalog, "lecture-frontier", "lecture-nvl72")?;
    let deepseek = preset(catalog, "lecture-deepseek-v3", "lecture-nvl72")?;
    let real = resolve(catalog, &Setting { kv: Some("fp8".into()), ..Setting::default() })?;
    let parts = [
        timing(&frontier, &deepseek, &real),
        pricing(&frontier),
        balance(catalog, &deepseek, &real)?,
        scheduling(catalog, &frontier)?,
        sparsity_claims(catalog)?,
    ];
    Ok(parts.concat())
}

/// D1 to D5: one table, claim by claim.
#[rustfmt::skip] // a table
fn timing(frontier: &Resolved, deepseek: &Resolved, real: &Resolved) -> Vec<Claim> {
    let step = |r: &Resolved, b: f64, l: f64| r.board.step(Tokens::new(b), Tokens::new(l), Tokens::new(1.0));
    let (f, d) = (&frontier.board, &deepseek.board);
    let balanced = step(frontier, 2812.5, 10_000.0);
    vec![
        claim("D1", "Roofline bound", "t >= max(t_compute, t_mem)", "two resources; the slower one sets the time")
            .number("1 T / 100 B FP8 on NVL72, batch 2,812.5, context 10,000", "sketch only",
                format!("{} (compute {}, memory {})", balanced.time, balanced.terms.compute, balanced.terms.memory()),
                "memory-bound at the batch that would balance without KV"),
        claim("D2", "Compute time", "t_compute = 2 B N_act / F", "linear in the batch, through the origin")
            .own("DeepSeek V3, 37 B active, FP8, NVL72 of B200, per token", d.compute_per_token(),
                "the board writes B N_act / FLOPs with multiplies/s; both agree")
            .number("DeepSeek V3 from its layers, GB200 NVL72", "37 B active",
                format!("{} multiplied per token", real.count.multiplied()),
                "37.55 B with the input embedding, which is looked up, not multiplied"),
        claim("D3", "Memory time", "t_mem = (w N_tot + B kv L) / W",
            "weights are a constant per pass; KV is linear in batch and context")
            .own("DeepSeek V3, 671 B FP8, NVL72: weights once", d.weights(),
                "671 B by count; the lecture says \"700 B\", the spoken round figure")
            .own("KV per token, 61 layers x 576, one byte", deepseek.cache.stored_per_token(),
                "MLA stores 512 + 64 values per layer"),
        claim("D4", "Latency against batch", "t(B) = max(B c, t_w + B k); floor t_w; kink t_w / (c - k)",
            "no price buys a step shorter than reading every weight once")
            .number("1 T FP8 on NVL72: floor", "sketch only", f.weights(),
                "FC's old card said active parameters; total is right (X5)")
            .number("the same, context 10,000: kink", "sketch only", batch(f.balance_batch(Tokens::new(10_000.0))),
                "KV pushes the kink beyond 2,812")
            .own("DeepSeek V3 from its layers, one sequence", real.board.latency_floor(),
                "one token touches 8 of 256 experts, so far fewer weights are read"),
        claim("D5", "Balanced context", "c = k(L*): L* = 2 N_act W / (F kv); beyond it MFU = L* / L",
            "a context where memory and compute are equally busy; past it MFU falls as 1/L")
            .exact("L* = 100 k, context 200 k", "50 %", closed::mfu_beyond(Tokens::new(1e5), Tokens::new(2e5)))
            .own("1 T / 100 B FP8, kv 2,048, NVL72", show_context(f.balanced_context()), "-")
            .own("DeepSeek V3, kv 35,136", show_context(d.balanced_context()), "without attention arithmetic")
            .own("DeepSeek V3 from its layers, GB200", show_context(real.board.balanced_context()),
                "absorbed MLA computes almost as fast as it reads, so balance comes later or never"),
    ]
}

fn show_context(context: Option<Tokens>) -> String {
    context.map_or("never memory-bound".into(), |l| format!("{l} tokens"))
}

/// D6 to D8.
#[rustfmt::skip] // a table
fn pricing(frontier: &Resolved) -> Vec<Claim> {
    let l = Tokens::new(10_000.0);
    let one = frontier.board.step(Tokens::new(1.0), l, Tokens::new(1.0));
    let floor = frontier.board.cost_floor(l, Tokens::new(1.0));
    let x = closed::fast_x(6.0, 2.5);
    vec![
        claim("D6", "Cost per token", "cost(B) = p t(B) / B; floor p max(c, k); penalty at B = 1 is R S",
            "a hyperbola falling to a floor")
            .number("1 T / 100 B, context 10,000, $2 per GPU-hour: batch 1 over floor", "about 1000x",
                format!("{}x", grouped(one.cost / floor)), "R S = 281 x 10; 1000x is an order of magnitude")
            .own("the floor", floor, "at 100 % of the dense peak: list prices are far above (X22)")
            .number("rack of 72 GPUs at $2 per hour", "$2 per GPU-hour", DollarRate::per_hour(144.0),
                "today's prices: rackmath chips gb200"),
        claim("D7", "Fast mode",
            "B_std / B_fast = price x speed; speed(price) = 1 + x (1 - 1/price), x = B_std k / t_w",
            "paying more buys a smaller batch; gains saturate at 1 + x")
            .own("6x price, 2.5x speed: batch ratio", significant(closed::fast_batch_ratio(6.0, 2.5), 3),
                "a smaller batch, not a larger share of one (X12)")
            .own("the same: x, and the speed limit", format!("{}, {}", significant(x, 3), times(1.0 + x)),
                "no price buys more on the same machine")
            .own("4x price at that x", times(closed::fast_speed(4.0, x)), "-"),
        claim("D8", "Slow mode", "largest saving = 1 - max(c, k) / (t_w / B + k) = 1 / (1 + x) while memory-bound",
            "waiting barely helps: compute and KV are per sequence")
            .number("from the operating point of D7", "\"not much\"", percent(closed::slow_saving(x)),
                "all that is left to amortise is t_w / B"),
    ]
}

/// D9 to D11.
#[rustfmt::skip] // a table
fn balance(catalog: &Catalog, deepseek: &Resolved, real: &Resolved) -> Result<Vec<Claim>, Error> {
    let r = |chip: &str, math: Math| -> Result<String, Error> {
        let chip = catalog.chip(chip)?;
        let peak = chip.peak.get(&math).ok_or_else(|| Error::value("math", math, "an arithmetic the chip has"))?;
        Ok(significant(roofline::ridge(peak.value, math.operand(), chip.memory.bandwidth.value), 3))
    };
    let moe = real.model.shape().and_then(|s| s.moe()).expect("DeepSeek V3 has experts");
    let expert_ratio = moe.experts as f64 / moe.top_k as f64;
    Ok(vec![
        claim("D9", "Balance batch", "B* = R S (\"300 x sparsity\"); with KV: R S / (1 - L / L*), infinite from L* on",
            "depends on sparsity, not on model size; run at 2 to 3 times this")
            .number("R = 300, S = 8 (\"32 of 256\")", "about 2,400", grouped(closed::balance_batch(300.0, 8.0)),
                "the lecture's preset; the real model uses 8 of 256 (X1)")
            .own("R = 300, S = 671 / 37", grouped(closed::balance_batch(300.0, 671.0 / 37.0)), "the parameter ratio")
            .own(format!("R = 300, S = {expert_ratio} (experts alone)"),
                grouped(closed::balance_batch(300.0, expert_ratio)), "what the expert matrices themselves want (X2)")
            .own("DeepSeek V3 totals on NVL72, FP8", batch(deepseek.board.balance_batch(Tokens::ZERO)),
                "R of a B200 is 281")
            .own("DeepSeek V3 from its layers, GB200 NVL72, no context", batch(real.board.balance_batch(Tokens::ZERO)),
                "GB200 has R = 313; lookup tables are not read")
            .number("tokens per expert at B = 2,400, 8 of 256", "300",
                significant(closed::tokens_per_expert(2400.0, 8.0, 256.0), 3), "300 needs the mistaken 32 of 256 (X4)")
            .exact("L / L* = 0.5: inflation", "\"pushes it up\"",
                times(closed::balance_batch_with_cache(1.0, 1.0, 0.5).unwrap_or(0.0))),
        claim("D10", "Stability of R", "R = (F / 2) w / W", "treated as a constant near 300; it is not")
            .number("A100-80 BF16", "about 300", r("a100-80gb", Math::Bf16)?, "half of it (X23)")
            .number("H100 BF16", "about 300", r("lecture-h100", Math::Bf16)?, "agrees")
            .number("B200 FP4", "about 300", r("lecture-b200", Math::Fp4)?, "281: multiplies x half a byte over bytes")
            .own("H200 BF16", r("h200", Math::Bf16)?, "same compute, more bandwidth")
            .own("GB300 FP4", r("gb300", Math::Fp4)?, "only FP4 grew over GB200")
            .own("Rubin FP4", r("vr200", Math::Fp4)?, "dense figure disputed: 398 to 568")
            .own("TPU v6e BF16", r("tpu-v6e", Math::Bf16)?, "twice the usual"),
        claim("D11", "What the batch counts", "B = sequences each receiving one token in this pass",
            "not tokens of text, and not users")
            .number("a batch of 2,000", "2,000 sequences", "2,000 tokens per step", "one token per sequence and pass"),
    ])
}

/// D12 to D14.
#[rustfmt::skip] // a table
fn scheduling(catalog: &Catalog, frontier: &Resolved) -> Result<Vec<Claim>, Error> {
    let t = Seconds::ms(20.0);
    let drain = |chip: &str| -> Result<String, Error> {
        let chip = catalog.chip(chip)?;
        Ok(roofline::drain(chip.memory.capacity.value, chip.memory.bandwidth.value).to_string())
    };
    let rack = Tokens::new(2000.0) / Seconds::s(1.0 / 64.0);
    let racks = TokenRate::per_s(500e6) / rack;
    let real = frontier.board.step(Tokens::new(2400.0), Tokens::ZERO, Tokens::new(1.0));
    Ok(vec![
        claim("D12", "Train departures", "worst = 2 T_step, mean = 1.5 T_step; sustainable rate = B / (T_step n_out)",
            "batching adds at most one step of delay; trains leave part-full")
            .exact("T_step = 20 ms: worst", "40 ms", station::worst_latency(t))
            .own("the same: mean of even arrivals", station::mean_latency(t), "exact; the simulator agrees within 1 %")
            .own("2,000 seats, 500 tokens each",
                format!("{} requests/s", significant(station::sustainable_rate(2000.0, t, 500.0), 3)),
                "beyond this the queue grows for ever"),
        claim("D13", "HBM sweep time", "T_drain = C / W", "the longest useful memory-bound step")
            .number("Rubin, 288 GB at 20 TB/s", "about 15 ms", drain("lecture-rubin")?,
                "14.4 exactly; 22 TB/s is announced now")
            .number("B200, 192 GB at 8 TB/s", "\"20 ms\"", drain("lecture-b200")?, "-")
            .number("H100", "\"20 ms\"", drain("lecture-h100")?, "-")
            .number("H200", "\"20 ms\"", drain("h200")?, "bigger memory, longer sweep")
            .number("A100-80", "\"20 ms\"", drain("a100-80gb")?, "twice the rule")
            .number("1 T FP8 on NVL72: floor well below it", "\"faster is impossible\"", frontier.board.weights(),
                "only a full memory takes the drain time (X6)"),
        claim("D14", "Rack throughput and market share",
            "tokens/s = B / T_step; share = that / global tokens per second",
            "minimum efficient scale is about a thousandth of the largest service")
            .exact("B = 2,000 at 64 steps/s", "128,000 tok/s", format!("{} tok/s", grouped(rack.get())))
            .exact("share of 128 M tok/s", "1/1000", significant(rack / TokenRate::per_s(128e6), 3))
            .own("racks for 500 M tok/s", grouped(racks.ceil()), "3,906.25, rounded up")
            .own("B = 2,400, weight-bound step", real.rate(),
                "the 15 ms step belongs to a full memory, not to this batch (X8)"),
    ])
}

/// D15 and D16.
#[rustfmt::skip] // a table
fn sparsity_claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let laws = catalog.clark_laws()?;
    let base = Params::new(370e6);
    let of = |router: Router, n: Params| {
        let law = laws.iter().find(|l| l.router == router);
        let law = law.ok_or_else(|| Error::value("router", router, "a router of the catalogue"))?;
        Ok::<_, Error>(sparsity::effective_params(law, n, 64.0))
    };
    let mut worth = claim("D15", "Sparsity against quality",
        "log L = a log N + b log E^ + c log N log E^ + d (Clark et al. 2022)",
        "large parameter growth for a modest gain; depends on the technique");
    for &router in Router::VARIANTS {
        let effective = of(router, base)?;
        worth = worth.number(format!("370 M with 64 experts, {router} router"),
            if router == Router::SBase { "1.3 B (\"4x\")" } else { "-" },
            format!("{effective} ({})", times(effective / base)), "the paper's fitted law; 1.3 / 0.37 is 3.5 (X27)");
    }
    let big = Params::new(37e9);
    worth = worth.own("37 B with 64 experts, s-base router",
        format!("{}x", significant(of(Router::SBase, big)? / big, 4)),
        "outside the fitted range (15 M to 1.3 B); the gain shrinks with size");
    let frontier = catalog.model("lecture-frontier")?;
    let total = count::count(&frontier).total() as f64;
    let rack = catalog.system("lecture-nvl72")?;
    let room = rack.capacity().get() / total;
    Ok(vec![
        worth,
        claim("D16", "Sparsity is a systems win",
            "extra total parameters only enlarge t_w, which the batch amortises: B* = R S",
            "raise sparsity and batch together until users or memory run out")
            .exact("S doubled, R = 300: balance batch", "doubles",
                [8.0, 16.0].map(|s| grouped(closed::balance_batch(300.0, s))).join(" -> "))
            .own("memory limit: 1 T FP8 weights in one NVL72", format!("{} of {}", Bytes::b(total), rack.capacity()),
                format!("room for {}x the parameters before KV", significant(room, 3))),
    ])
}
