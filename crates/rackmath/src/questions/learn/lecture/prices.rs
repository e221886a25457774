//! Chapter 6: reading price sheets (D44 to D53).

use super::{Claim, claim, times};
use crate::desk::prelude::*;
use rackmath_spec::price::Ttl;
use rackmath_spec::{Chip, Math};
use rackmath_theory::crossover::{
    Nsa, attention_context, block_sparse_entries, crossover_from_kv, implied_batch, implied_context, kv_from_crossover,
    kv_of_shape, mfu_ratio,
};
use rackmath_theory::lifetime::{drain, in_memory, in_tier, rematerialise};
use rackmath_theory::price::{break_even_uses, implied_storage};
use rackmath_theory::roofline;
use rackmath_units::{BytesPerParam, BytesPerToken, FlopPerToken, FlopRate};

/// The lecture's model and price: 100 billion active parameters, two dollars per chip and hour.
const ACTIVE_B: f64 = 100.0;
const CHIP_USD_PER_HOUR: f64 = 2.0;

fn peak(chip: &Chip, math: Math) -> Result<FlopRate, Error> {
    let peak = chip.peak.get(&math).map(|p| p.value);
    peak.ok_or_else(|| no_peak(chip, &chip.id, math))
}

pub(super) fn claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    Ok([context_claims(catalog)?, arithmetic_claims(catalog)?, cache_claims(catalog)?].concat())
}

/// Steps of the long-context tier at three providers.
fn steps(catalog: &Catalog) -> Result<String, Error> {
    let mut all = Vec::new();
    for name in ["gemini-3.1-pro", "sonnet-4.5", "gpt-5.5"] {
        let sheet = catalog.price(name)?;
        let list = sheet.at(sheet.as_of)?;
        if let Some(t) = list.tiers.first() {
            let (i, o) = (t.input / list.input, t.output / list.output);
            all.push(format!(
                "{} {} in, {} out at {}",
                sheet.provider,
                times(i),
                times(o),
                grouped(t.threshold().get())
            ));
        }
    }
    Ok(all.join("; "))
}

/// D44 to D47.
#[rustfmt::skip] // a table
fn context_claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let b200 = catalog.chip("lecture-b200")?;
    let (n, l, byte) = (Params::billion(ACTIVE_B), Tokens::new(200e3), BytesPerParam::new(1.0));
    let strict = |math: Math| -> Result<String, Error> {
        // The width cancels: w / R = 2 W / F.
        let ridge = roofline::ridge(peak(&b200, math)?, byte, b200.memory.bandwidth.value);
        Ok(significant(kv_from_crossover(ridge, byte, n, l).get(), 4))
    };
    let on_b200 = |model: &str, kv: &str| {
        let (model, on, kv) = (model.into(), "b200".into(), Some(kv.into()));
        resolve(catalog, &Setting { model, on, kv, ..Setting::default() })
    };
    let crossing = |model: &str| -> Result<String, Error> {
        Ok(on_b200(model, "fp8")?.board.balanced_context().map_or("never".into(), |c| c.to_string()))
    };
    let stored = |model: &str, kv: &str| on_b200(model, kv).map(|r| r.cache.stored_per_token().to_string());
    let nsa = Nsa { summary: 32.0, stride: 16.0, selected: 16.0, block: 64.0, window: 512.0 };
    let long = Tokens::new(65_536.0);
    Ok(vec![
        claim("D44", "Cost against context, a price in two steps",
            "cost(L) = max(c, t_w / B + k(L)): flat, then rising",
            "the step sits near the crossover so that the seller stays profitable")
            .number("Gemini 3.1 above 200k", "+50%", steps(catalog)?,
                "50% is the output step, input doubles; three vendors share it at two thresholds: \
                 convention as much as cost (X18)")
            .number("DeepSeek V3, Llama 3.1 70B, V4 Pro on B200", "200k",
                [crossing("deepseek-v3")?, crossing("llama-3.1-70b")?, crossing("deepseek-v4-pro")?].join(", "),
                "larger caches cross earlier; only a compressed one comes near 200k"),
        claim("D45", "KV bytes from the crossover", "kv = 2 N_act W / (F L*)", "plausible, perhaps a little small")
            .exact("100 B active, 200k, ratio 1/300", "almost 2 kB",
                format!("{} B", significant(kv_from_crossover(300.0, byte, n, l).get(), 5)))
            .own("the same on B200 in FP8, FP4, BF16",
                format!("{}, {}, {} B", strict(Math::Fp8)?, strict(Math::Fp4)?, strict(Math::Bf16)?),
                "the answer is a precision as much as a size")
            .exact("2,048 B turned round", "-",
                format!("{} tokens", crossover_from_kv(300.0, byte, n, BytesPerToken::new(2048.0)))),
        claim("D46", "KV bytes from a shape", "kv = layers x 2 x heads x d x bytes; layers with a cache of their own",
            "sharing across layers reaches it, or fewer heads")
            .exact("1 layer, 8 heads of 128, 1 byte", "2,048 B",
                format!("{} B", grouped(kv_of_shape(1.0, 8.0, 128.0, 1.0).get())))
            .own("Llama 3.1 70B in FP8 and BF16; DeepSeek V3 in FP8",
                format!("{}, {}; {}", stored("llama-3.1-70b", "fp8")?, stored("llama-3.1-70b", "bf16")?,
                    stored("deepseek-v3", "fp8")?),
                "17 to 160 times the lecture's size"),
        claim("D47", "Sparse attention", "L/b summaries + n b tokens; best b = sqrt(L/n), 2 sqrt(n L) in all",
            "a large gain but not unlimited; too sparse costs quality")
            .number("one block of the best length at 65,536", "a square root",
                format!("{} entries", significant(block_sparse_entries(long, 1.0), 4)),
                "the square root needs the block to grow with the context")
            .own("native sparse attention at 65,536",
                format!("{} entries, {} fewer", grouped(nsa.entries(long)), times(long.get() / nsa.entries(long))),
                "published form: linear in the context, with a small slope"),
    ])
}

/// D48 to D50.
#[rustfmt::skip] // a table
fn arithmetic_claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let n = Params::billion(ACTIVE_B);
    let ratio = 5.0;
    let batch = 2400.0 * implied_batch(ratio, 0.0).unwrap_or(f64::NAN);
    let v3 = resolve(catalog, &Setting { kv: Some("fp8".into()), ..Setting::default() })?;
    let month = Tokens::new(100e6);
    let bytes = v3.cache.stored_per_token() * month;
    Ok(vec![
        claim("D48", "Prefill against decode", "r = max(c, m) / c; decode MFU = prefill MFU / r; q* = r",
            "prefill is bound by compute, decode by bandwidth")
            .number("output five times the input price", "3 to 5",
                format!("q* = {ratio}, decode at {}% of prefill's MFU", significant(mfu_ratio(ratio) * 100.0, 3)),
                "exact, if both prices are cost")
            .number("the same with a 200k step, B* = 2,400", "both are cost",
                format!("L = {} and an endless batch, or L = 0 and B = {}",
                    implied_context(ratio, Tokens::new(200e3)), grouped(batch)),
                "they contradict: compute binds below 200k, so output would cost what input does (X21)"),
        claim("D49", "The quadratic term", "FLOP per token = 2 N_act + 4 L sum(n_q d)",
            "noticeable only in the millions of tokens")
            .number("100 B active, 128 heads of 128: 1, 16, 100 layers", "millions",
                [1.0, 16.0, 100.0].map(|k| grouped(attention_context(n, k, 128.0, 128.0).get())).join(", "),
                "millions only with one global layer; DeepSeek V3's prefill crosses at 19 k (X19)"),
        claim("D50", "The long-context wall", "bytes = kv L; time = kv L / W",
            "bandwidth and capacity cap the context, not FLOP")
            .number("100 M tokens of DeepSeek V3 in FP8 on a GB200 rack", "needs a new idea",
                format!("{bytes}, {} for each token", bytes / v3.system.bandwidth()),
                "fits a fraction of one rack's memory, for one user"),
    ])
}

/// D51 to D53.
#[rustfmt::skip] // a table
fn cache_claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let b200 = catalog.chip("lecture-b200")?;
    let hour = DollarRate::per_hour(CHIP_USD_PER_HOUR);
    let remat = rematerialise(FlopPerToken::new(2.0 * ACTIVE_B * 1e9), peak(&b200, Math::Fp8)?, hour);
    let kv = BytesPerToken::new(2048.0);
    let hbm = in_memory(kv, Bytes::gb(288.0), hour);
    let tier = |id: &str| catalog.tier(id);
    let ddr = in_tier(kv, &*tier("ddr5-server")?)
        .ok_or_else(|| Error::value("tier", "ddr5-server", "a tier with a price"))?;
    let drains = |ids: &[&str]| -> Result<String, Error> {
        let all = ids.iter().map(|id| Ok(drain(&*catalog.tier(id)?).to_string()));
        Ok(all.collect::<Result<Vec<_>, Error>>()?.join(", "))
    };
    let sheet = catalog.price("opus-4.8")?;
    let list = sheet.at(sheet.as_of)?;
    let (short, long) = (list.cache("5m")?, list.cache("1h")?);
    let fixed = |o: &rackmath_spec::price::CacheOffer| match o.ttl {
        Ttl::Fixed(ttl) => (o.write.unwrap_or(list.input), ttl),
        _ => (list.input, Seconds::ZERO),
    };
    let (storage, _) =
        implied_storage(fixed(short), fixed(long)).ok_or_else(|| Error::value("writes", "equal", "two prices"))?;
    let uses = |o| {
        break_even_uses(list.input, o, Seconds::s(60.0))
            .map_or("never".into(), |n| format!("{} ({})", n.ceil(), significant(n, 4)))
    };
    let gemini = catalog.price("gemini-3.1-pro")?;
    let gemini = gemini.at(gemini.as_of)?.cache("explicit")?.storage;
    Ok(vec![
        claim("D51", "Ways to have KV again",
            "retrieve + hold T; remat 2 N_act / F p, HBM kv / C p, tier kv / W p + kv / C p T",
            "the cheapest depends on how long it is held")
            .exact("rematerialise, 100 B in FP8 on B200 at $2 and full use", "-",
                format!("{} us, ${}/Mtok", significant(1e6 * 2.0 * ACTIVE_B * 1e9 / peak(&b200, Math::Fp8)?.get(), 4),
                    significant(remat.retrieve.as_per_mtok(), 5)))
            .own("hold 2,048 B in 288 GB at $2; in DDR5 over five years",
                format!("${} and ${} per Mtok-h", significant(hbm.hold.as_per_mtok_hour(), 5),
                    significant(ddr.hold.as_per_mtok_hour(), 3)),
                "rackmath cache draws all the lines"),
        claim("D52", "Which tier for which duration", "T_hold = C / W, the drain time: prices cancel",
            "match the lifetime to the drain time")
            .number("HBM of B200", "20 ms", roofline::drain(b200.memory.size(), b200.memory.bandwidth.value), "agrees")
            .number("LPDDR of Grace, DDR5 of a server, CXL module", "1 to 10 s",
                drains(&["lpddr-grace", "ddr5-server", "cxl-module"])?, "agrees")
            .number("flash: local, networked, dense", "about 1 min", drains(&["nvme-local", "flash-pool", "nvme-qlc"])?,
                "minutes to hours, by how many drives share a link (X20)")
            .number("disk of 30 TB", "about 1 h", drains(&["hdd"])?, "thirty times longer at today's capacities (X20)"),
        claim("D53", "Reading cache prices", "write = w + h T; uses to break even = (w - r) / (1 - r)",
            "flash and disk by drain time")
            .number("base, 5-minute write, 1-hour write, hit", "$5, $6.25, -, a tenth",
                format!("{}, {}, {}, {}", list.input, fixed(short).0, fixed(long).0, short.read),
                "the 1-hour price was not read out: twice the base")
            .own("price of keeping that the two writes imply",
                format!("{storage}; Google lists {}", gemini.map_or("none".into(), |s| s.to_string())),
                "near Google's; Anthropic's scales with its input price for every model, \
                 so it says nothing about bytes")
            .exact("uses to break even, 5 minutes and an hour", "-", format!("{}; {}", uses(short), uses(long)))
            .number("5 min and 1 h by drain time", "flash and disk", "local flash or CXL pool; flash pool",
                "one hour is flash, not disk (X20)")
            .number("list over raw machine cost: recompute, keep", "close to cost",
                format!("{}, {}", times(list.input / remat.retrieve), times(storage / hbm.hold)),
                "levels are prices; only ratios that move can tell (X22)"),
    ])
}
