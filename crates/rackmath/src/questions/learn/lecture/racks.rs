//! Chapters 2 to 4: experts on racks, pipelining, and why pipelining is "not wise" (D17 to D36c).

use super::{Claim, claim, percent, preset, times};
use crate::desk::prelude::*;
use rackmath_spec::Chip;
use rackmath_theory::board::closed;
use rackmath_theory::experts::{self, ElementBytes};
use rackmath_theory::layout::stage_layers;
use rackmath_theory::network::{cross_rack_slowdown, distinct_ranks};
use rackmath_theory::placement::lecture_memory;
use rackmath_theory::{pipeline, roofline};

/// Scale-up over scale-out bandwidth of a chip.
fn beta(chip: &Chip) -> Option<f64> {
    chip.link.scale_up.as_ref().zip(chip.link.scale_out.as_ref()).map(|(u, o)| u.value / o.value)
}

pub(super) fn claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    Ok([expert_claims(catalog)?, pipeline_claims(catalog)?, memory_claims(catalog)?].concat())
}

/// D17 to D23.
#[rustfmt::skip] // a table
fn expert_claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let model = catalog.model("deepseek-v3")?;
    let moe = model.shape().and_then(|s| s.moe()).expect("DeepSeek V3 has experts");
    let (used, each) = closed::experts_on(72, moe.experts);
    let to = distinct_ranks(used, moe.experts, moe.top_k);
    let domain = |name: &str| -> Result<String, Error> { Ok(catalog.system(name)?.capacity().to_string()) };
    let ratio =
        |chip: &str| -> Result<String, Error> { Ok(beta(&*catalog.chip(chip)?).map_or("unknown".into(), times)) };
    let (rubin, ultra) = (catalog.system("vr-nvl144")?, catalog.system("rubin-ultra-nvl576")?);
    Ok(vec![
        claim("D17", "MoE layer", "router -> k of E experts -> weighted sum -> + residual",
            "dispatch and combine are two mirrored transfers")
            .number("DeepSeek V3", "\"maybe 1 in 32\"",
                format!("{} of {} = 1 in {}", moe.top_k, moe.experts, moe.experts / moe.top_k),
                "agrees; the 32 of 256 said earlier were swapped (X1)"),
        claim("D18", "Expert parallelism", "experts per GPU = ceil(E / GPUs)", "the standard and best layout")
            .number("256 experts on 72 GPUs, power of two", "64 GPUs, 4 each, 8 idle",
                format!("{used} GPUs, {each} each, {} idle", 72 - used),
                "exact; 32 redundant experts would use all 72"),
        claim("D19", "All-to-all", "k' = n (1 - C(E - E/n, k) / C(E, k)) destinations per token",
            "exactly the connectivity a switched rack offers")
            .number("8 of 256 experts over 64 GPUs", "every GPU to every other",
                format!("{} GPUs per token", significant(to, 3)), "some of a token's experts share a GPU"),
        claim("D20", "Crossing racks", "share leaving = (R - 1) / R; slowdown = beta (R - 1) / R",
            "one rack bounds the size of an expert layer")
            .exact("beta 8, 2 racks", "half leaves, 8x slower", times(cross_rack_slowdown(8.0, 2)))
            .exact("beta 8; 3, 4, 8 racks", "-",
                [3, 4, 8].map(|racks| times(cross_rack_slowdown(8.0, racks))).join(", ")),
        claim("D21", "Rack physics", "GPU -> switch -> GPU, cables proportional to GPUs",
            "limits are power, weight, cooling, connectors")
            .number("Hopper to Blackwell domain", "8 -> 72",
                format!("{} -> {}", catalog.system("hgx-h100")?.n_chips, catalog.system("gb200-nvl72")?.n_chips),
                "agrees")
            .number("Rubin", "\"500 and something\"",
                format!("{} packages of {} dies = {} dies; Ultra {} packages, {} dies",
                    rubin.n_chips, rubin.chip.dies, rubin.dies(), ultra.n_chips, ultra.dies()),
                "576 counts dies; dies grew 144 -> 576, the genuine 4x (X25)")
            .number("scale-out slower by: GB200, H100, GB300, H800", "about 8x",
                format!("{}, {}, {}, {}", ratio("gb200")?, ratio("h100")?, ratio("gb300")?, ratio("h800")?),
                "depends on the NIC (X24)"),
        claim("D22", "Domain memory history", "GPUs x HBM", "larger domains unlock larger models")
            .exact("8 x 80 GB", "640 GB", domain("lecture-h100-8")?)
            .exact("72 x 192 GB", "10 to 20 TB", domain("lecture-nvl72")?)
            .exact("72 x 288 GB", "-", Bytes::gb(288.0) * 72.0),
        claim("D23", "Two limits", "N_act is bounded by compute cost, N_tot by the scale-up domain", "a design rule")
            .own("largest FP8 model with half of an NVL72 for KV",
                format!("{} parameters", Params::new(catalog.system("lecture-nvl72")?.capacity().get() / 2.0)),
                "rackmath racks compares domains"),
    ])
}

/// D24 to D30.
#[rustfmt::skip] // a table
fn pipeline_claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let idle = |m: usize| percent(pipeline::idle_fraction(4, m).get());
    let rho = |k: f64, l: f64| significant(experts::lecture_ratio(k, l, 8.0), 3);
    let deepseek = catalog.model("deepseek-v3")?;
    let layers = deepseek.shape().map_or(0, rackmath_spec::model::Shape::n_layers) as f64;
    let real = ElementBytes { dispatch: 1.0, combine: 2.0, hop: 2.0 };
    let exact = experts::scale_up_to_scale_out(real, distinct_ranks(64, 256, 8), layers / 4.0, 18.0);
    let bf16 = |chip: &str| -> Result<String, Error> {
        let chip = catalog.chip(chip)?;
        let peak = chip.peak.get(&rackmath_spec::Math::Bf16).map(|p| p.value);
        let up = chip.link.scale_up.as_ref().map(|u| u.value);
        Ok(peak.zip(up).map_or("unknown".into(), |(p, u)| significant(experts::least_width(real, p, u), 3)))
    };
    Ok(vec![
        claim("D24", "What to cut along", "layers (pipeline), experts, d_ff (tensor), sequences (data)",
            "the best layout mirrors the model")
            .number("narrowest expert that stays compute-bound on NVLink, BF16: H100, GB200", "experts are small",
                format!("{}, {}", bf16("h100")?, bf16("gb200")?), "DeepSeek's experts are 2,048 wide"),
        claim("D25", "Scale-up : scale-out ratio", "rho = (1/beta) k l_s 2; exact: (b_d + b_c) k' l_s / (b_h beta)",
            "easily above 1, so the slow network does not choke a pipeline")
            .number("beta 8, k = 8, 1 layer per stage", "\"8 by itself\"", rho(8.0, 1.0),
                "2 means scale-up takes twice as long: good")
            .exact("beta 8, k = 16, 2 layers; k = 32, 1 layer", "-", format!("{}; {}", rho(16.0, 2.0), rho(32.0, 1.0)))
            .exact("least layers per stage, beta 8: k = 1, k = 8", "-",
                format!("{}, {}", experts::least_layers(1, 8.0), experts::least_layers(8, 8.0)))
            .own("DeepSeek V3 in 4 stages on GB200 racks, FP8 out and BF16 back", significant(exact, 3),
                "beta is 18 there, and k' = 7.68"),
        claim("D26", "Rack pipeline", "stage i holds layers [i l_s, (i + 1) l_s)", "a chain of racks")
            .own("61 layers in 4 stages", format!("{:?}", stage_layers(61, 4)),
                "uneven: the last stage also has the head"),
        claim("D27", "Pipelined inference", "latency = sum of stages, unchanged; idle (P - M) / P when M < P",
            "neutral for latency; saves weight capacity only")
            .number("P = 4, one batch alone", "3/4 idle", percent(0.75), "zero idle from M = P on"),
        claim("D28", "Training bubble", "idle = (P - 1) / (M + P - 1)", "bubbles come from the optimizer barrier")
            .exact("P = 4, M = 4: slots, busy per stage", "14, 8", format!("{}, {}", pipeline::slots(4, 4), 2 * 4))
            .own("P = 4; M = 1, 4, 8, 16", format!("{}, {}, {}, {}", idle(1), idle(4), idle(8), idle(16)),
                "(d - 1) / d is the case M = 1 (X14)"),
        claim("D29", "Training batch", "smaller is better per token, worse for systems",
            "why there is a barrier at all")
            .own("M = 4 P instead of P", format!("bubble {} -> {}", idle(4), idle(16)), "at four times the batch"),
        claim("D30", "Memory surplus", "N_tot w against rack HBM", "pipelining shrinks something already small")
            .number("1 T FP8 against one NVL72", "1 TB of \"many tens\"",
                format!("{} of {}", Bytes::tb(1.0), catalog.system("lecture-nvl72")?.capacity()),
                "13.8 TB, not many tens"),
    ])
}

/// D31 to D36c.
#[rustfmt::skip] // a table
fn memory_claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let per_sequence = Bytes::b(100_000.0 * 2048.0);
    let shown = |pp: f64| {
        let (w, kv) = lecture_memory(Bytes::tb(1.0), 64.0, pp, 2400.0, per_sequence);
        format!("{} + {}", w.show(4), kv.show(3))
    };
    let frontier = |on: &str| preset(catalog, "lecture-frontier", on);
    let (hopper, blackwell) = (frontier("lecture-h100-8")?, frontier("lecture-nvl72")?);
    let (t8, t72) = (hopper.board.weights(), blackwell.board.weights());
    let activations = Bytes::b(2400.0 * 7168.0 * 2.0);
    let nic = ByteRate::gb_per_s(50.0);
    let demand = Bytes::tb(1.0) + per_sequence * 2400.0;
    let drain = roofline::drain(blackwell.system.capacity(), blackwell.system.bandwidth());
    Ok(vec![
        claim("D31", "Memory demand", "C_mem = N_tot w + B L kv", "weights and KV")
            .own("1 T FP8, B 2,400, L 100 k, kv 2,048", demand, "fits one NVL72"),
        claim("D32", "Demand per GPU", "c_mem = (N_tot w + B L kv) / (E P)", "assumes perfect sharding")
            .own("the same, E = 64, P = 1", shown(1.0),
                "attention and embeddings are copied in practice: rackmath memory"),
        claim("D33", "P cancels for KV", "fill the pipe: B = P b => c_mem = N w / (E P) + b L kv / E",
            "weights shrink with P, KV per GPU does not")
            .number("P = 1, 2", "M = P = 4 drawn", format!("{}; {}", shown(1.0), shown(2.0)),
                "exact: 7.68 GB of KV always")
            .exact("P = 4, 8", "-", format!("{}; {}", shown(4.0), shown(8.0))),
        claim("D34", "Serving recipe", "E = G_up, P = 1 or 2", "stay in one scale-up domain")
            .number("DeepSeek V3 on GB200 NVL72", "large EP, little PP",
                crate::layout::usual(&*catalog.model("deepseek-v3")?, &*catalog.system("gb200-nvl72")?),
                "what rackmath layout chooses by itself"),
        claim("D35", "Hop latency", "t_token = t + n_hops h", "acceptable for few stages")
            .exact("20 ms + 4 hops of 2.5 ms", "about 30 ms", Seconds::ms(20.0) + Seconds::ms(2.5) * 4.0)
            .number("2,400 x 7,168 BF16 values through one NIC, through 64", "a few ms",
                format!("{}, {}", (activations / nic).show(5), (activations / (nic * 64.0)).show(5)),
                "plus about 10 us of fabric latency (X16)"),
        claim("D36", "Why scale-up size matters", "t_w = N w / (G_up W_gpu); stages do not help",
            "pipelining solves capacity, scale-up solves bandwidth")
            .exact("1 T FP8: 8 x H100, NVL72", "-", format!("{}, {}", t8.show(5), t72.show(5)))
            .number("ratio", "x8 from Hopper, x1.5-2 per generation",
                format!("{} = 9 x {}", significant(t8 / t72, 4), significant(t8 / t72 / 9.0, 4)),
                "nine times the GPUs, 2.39 times the bandwidth of each"),
        claim("D36B", "Memory-wall claims", "-", "why surplus HBM is surprising; the answer is bandwidth, and KV")
            .own("time to read all of a full NVL72", drain,
                "capacity beyond what a step can read in time is only useful for caching"),
        claim("D36C", "Architecture constraints", "stages want equal layers",
            "cross-layer attention and interleaved layers unbalance stages")
            .number("Gemma 3 27B in 4 stages: full-attention layers per stage", "interleaved local/global",
                interleaved(catalog)?, "uneven: the reads of long contexts are too"),
    ])
}

/// Full-attention layers in each of four stages of an interleaved model.
fn interleaved(catalog: &Catalog) -> Result<String, Error> {
    use rackmath_spec::model::{Mixer, Span};
    let model = catalog.model("gemma-3-27b")?;
    let Some(shape) = model.shape() else { return Ok("unknown".into()) };
    let layers = shape.runs.iter().flat_map(|run| std::iter::repeat_n(&run.block.mixer, run.n as usize));
    let full: Vec<bool> = layers.map(|m| matches!(m, Mixer::Attention(a) if a.span == Span::Full)).collect();
    let mut first = 0;
    let counts = stage_layers(shape.n_layers(), 4);
    let per_stage: Vec<String> = counts
        .iter()
        .map(|n| {
            let end = first + *n as usize;
            let here = full[first..end].iter().filter(|f| **f).count();
            first = end;
            here.to_string()
        })
        .collect();
    Ok(per_stage.join(", "))
}
