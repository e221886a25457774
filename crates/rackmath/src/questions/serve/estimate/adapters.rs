//! Low-rank adapters that share one base model: what they hold, what they cost against the base model, how many fit.
//!
//! The equations stand in [`rackmath_theory::adapters`]. The base model is served beside, under the same load, so that what
//! adapters cost is a difference of two answers.

use super::work::{Ask, Case};
use crate::desk::prelude::*;
use rackmath_theory::adapters::Adapters;
use rackmath_theory::count::lora::Targets;
use rackmath_theory::deployment::Deployment;
use rackmath_theory::placement;
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::Requests;

/// The tier whose rate a disk is read at.
const DISK: &str = "nvme-local";

/// More adapters than anyone serves on one machine.
const MOST: u64 = 100_000;

/// Low-rank adapters (LoRA) served beside the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Loras {
    /// Adapters (LoRA) that a chip holds at once and a batch may mix.
    #[schemars(extend("x-flag" = "loras max-loras max-loras-per-batch"))]
    #[educe(Default = 1)]
    pub loras: u64,
    /// Largest rank of an adapter: every slot is as large.
    #[schemars(extend("x-flag" = "lora-rank max-lora-rank"))]
    #[educe(Default = 16)]
    pub lora_rank: u64,
    /// Beside which matrices they stand.
    #[schemars(extend("x-also" = ["all-linear", "attn", "ffn"]))]
    pub lora_targets: Targets,
    /// Adapters that requests ask for in all.
    #[schemars(extend("x-flag" = "lora-count adapters", "x-none" = "as many as the chips hold"))]
    pub lora_count: Option<u64>,
    /// How unevenly they are asked for: the j-th in proportion to j to the power of minus this; 0 is evenly.
    pub lora_skew: f64,
    /// Adapters kept in the host's memory; others come from disk.
    #[schemars(extend("x-flag" = "max-cpu-loras max-loaded-loras", "x-none" = "vLLM: as many as on the chips; others: all"))]
    pub max_cpu_loras: Option<u64>,
    /// Whether tensor parallelism cuts both factors of an adapter, not one.
    pub fully_sharded_loras: bool,
}

/// What adapters hold and cost.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoraCard {
    /// The verdict.
    pub says: Remark,
    /// Where published figures say that they cost more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<Remark>,
    /// Adapters on a chip at once.
    pub slots: u64,
    /// Their rank.
    pub rank: u64,
    /// Adapters asked for in all.
    pub served: u64,
    /// Parameters of one.
    pub params: f64,
    /// One as it is stored, in 16 bits.
    pub stored_bytes: f64,
    /// One on a chip, its share under tensor parallelism.
    pub chip_bytes: f64,
    /// All slots on a chip.
    pub slots_bytes: f64,
    /// Most slots with which a request of these lengths still fits; nothing where the model alone does not fit.
    pub most_slots: Option<u64>,
    /// Different adapters in the mean batch.
    pub distinct: f64,
    /// Kernels they add to a pass.
    pub launches: f64,
    /// Time per output token of the base model alone, under the same load.
    pub base_tpot_ms: f64,
    /// Output tokens per second of the base model alone.
    pub base_output_tok_s: f64,
    /// How much longer a token takes, as a share.
    pub tpot_more: f64,
    /// How much less throughput, as a share.
    pub throughput_less: f64,
    /// Sequences that memory holds without adapters.
    pub base_room: f64,
    /// Chance that a request finds its adapter on the chip.
    pub hit: f64,
    /// Bringing one from the host's memory.
    pub load_ms: f64,
    /// Bringing one from disk, the host's memory on the way.
    pub load_disk_ms: f64,
    /// Time that loading adds for each request, on average.
    pub load_per_request_ms: f64,
}

/// Puts the adapters of a request on a deployment, whose layout is decided.
pub(super) fn put(catalog: &Catalog, asked: Option<&Loras>, ask: &mut Ask) -> Result<(), Error> {
    let Some(r) = asked else { return Ok(()) };
    for (field, n, most) in [("loras", r.loras, MOST), ("lora_rank", r.lora_rank, 4096)] {
        refuse_if(n > most, field, n, format!("0 to {most}"))?;
    }
    refuse_if(!(0.0..=10.0).contains(&r.lora_skew), "lora_skew", r.lora_skew, "0 (evenly) to 10")?;
    let served = r.lora_count.unwrap_or(r.loras.max(1));
    refuse_if(!(1..=MOST).contains(&served), "lora_count", served, format!("1 to {MOST}"))?;
    let on = &mut ask.on;
    let Some(shape) = on.model.shape() else {
        return Err(Error::value("loras", r.loras, "none: this model is known by its totals only"));
    };
    let d = on.layout.degrees();
    let mut adapters = Adapters {
        slots: r.loras,
        rank: r.lora_rank,
        targets: r.lora_targets,
        sharded: r.fully_sharded_loras,
        served,
        skew: r.lora_skew,
        kernels: catalog.small_kernels()?.adapters,
        stall: 0.0,
    };
    if adapters.is_none() {
        return Ok(());
    }
    let in_flight = match ask.load {
        Loading::Concurrency(c) => c,
        Loading::Rate(_) | Loading::Full => 1.0,
    };
    let kept = host_places(r, on);
    refuse_if(kept < r.loras, "max_cpu_loras", kept, format!("at least the {} on the chips", r.loras))?;
    let host = on.system.chip.link.host.as_ref().map(|rate| rate.value);
    let (here, disk) = (host.map(|rate| adapters.load(shape, &d, rate)), catalog.tier(DISK)?.bandwidth.value);
    let from_host = adapters.loads(r.loras, in_flight) * here.map_or(0.0, Seconds::get);
    let from_disk = adapters.loads(kept, in_flight) * (adapters.stored(shape) / disk).get();
    adapters.stall = (from_host + from_disk) / ask.requests.new_tokens();
    if let Loading::Concurrency(c) = ask.load {
        // Each group is a server with slots of its own.
        let most = adapters.running(c / on.groups()) / on.stages();
        if most < on.engine.schedule.sequences && served > r.loras {
            Arc::make_mut(&mut on.engine).schedule.sequences = most.max(1.0).floor();
        }
    }
    on.adapters = Some(adapters);
    Ok(())
}

fn host_places(r: &Loras, on: &Deployment) -> u64 {
    let usual = if on.engine.family == "vllm" { r.loras } else { MOST };
    r.max_cpu_loras.unwrap_or(usual)
}

/// Sequences that fit when nothing stands beside the weights, and slots that leave room for one in each group.
fn most_slots(on: &Deployment, requests: &Requests, one: f64) -> Option<u64> {
    let load = on.load(requests, on.groups(), on.engine.schedule.chunk);
    match placement::place(on, &load).fit {
        placement::Fit::Fits { spare } if one > 0.0 => Some((spare.get() / one) as u64),
        _ => None,
    }
}

/// Whether slots hold fewer requests than the engine would run.
pub(super) fn waits_for_slot(case: &Case) -> bool {
    case.ask.on.engine.schedule.sequences < case.found.deployment.engine.schedule.sequences
}

/// Whether memory holds no more than the engine would run.
pub(super) fn memory_binds(case: &Case, p: &Serving) -> bool {
    p.room <= case.ask.on.engine.schedule.sequences * p.main.deployment.stages()
}

fn says_old(engine: &str) -> Remark {
    says("loras_old_engine").with("engine", engine)
}

/// What adapters cost against the model alone.
pub(super) fn card(catalog: &Catalog, case: &Case, serving: &Serving, outcome: &Outcome) -> Option<LoraCard> {
    let (r, on) = (case.request.loras.as_ref()?, &case.ask.on);
    let (a, shape) = (on.adapters?, on.model.shape()?);
    let d = on.layout.degrees();
    // The engine as it would be without adapters, which may run more sequences.
    let engine = case.found.deployment.engine.clone();
    let alone = Deployment { adapters: None, engine, ..on.clone() };
    let base = Ask { on: alone, ..case.ask.clone() };
    let plain = case.ready(&base).ok()?;
    let then = plain.under(&base.requests, base.load);
    let [one, all] = [a.one(shape, &d), a.held(shape, &d)].map(Bytes::get);
    let in_flight = if let Loading::Concurrency(c) = case.ask.load { c } else { 1.0 };
    let host = on.system.chip.link.host.as_ref().map_or(0.0, |rate| a.load(shape, &d, rate.value).get());
    let disk = catalog.tier(DISK).ok().map_or(0.0, |tier| (a.stored(shape) / tier.bandwidth.value).get());
    let tokens = |o: &Outcome| o.rate * case.ask.requests.output;
    let (tpot_more, less) = (outcome.tpot() / then.tpot() - 1.0, 1.0 - tokens(outcome) / tokens(&then));
    let s = &outcome.steady;
    let most = most_slots(&base.on, &base.requests, one);
    let fits = outcome.fits;
    // Of those that wait for a slot, the ones that run are served faster than all would be.
    let fewer = tpot_more < 0.0 && waits_for_slot(case);
    let (memory, waiting) = (memory_binds(case, serving), s.waiting * outcome.groups);
    let says = says(if fits { "loras_cost" } else { "loras_do_not_fit" })
        .with("slots", a.slots)
        .with("rank", a.rank)
        .with("bytes", all)
        .with("one", one)
        .with("slower", (!fewer).then_some(tpot_more.max(0.0)))
        .with("quicker", fewer.then_some(-tpot_more))
        .with("less", less.max(0.0))
        .with("most", most)
        .with("others", (a.served > a.slots).then_some(a.served))
        .with("wait", (waits_for_slot(case) && !memory && s.waiting > 0.0).then_some(waiting))
        .with("wait_memory", (memory && s.waiting > 0.0).then_some(waiting));
    let bandwidth = on.system.chip.memory.bandwidth.value;
    // Families of versions before the kernels of vllm-project/vllm PR 13096 (0.8).
    let old = ["vllm-0", "vllm-0.3", "vllm-0.6"].contains(&&*on.engine.id);
    Some(LoraCard {
        says,
        caution: old.then(|| says_old(&on.engine.name)),
        slots: a.slots,
        rank: a.rank,
        served: a.served,
        params: rackmath_theory::count::lora::params(shape, a.targets, a.rank as f64),
        stored_bytes: a.stored(shape).get(),
        chip_bytes: one,
        slots_bytes: all,
        most_slots: most,
        distinct: a.distinct(s.decoding + s.prompts_per_pass),
        launches: a.pass(shape, &d, bandwidth, 1.0).launches,
        base_tpot_ms: then.tpot() * 1e3,
        base_output_tok_s: tokens(&then),
        tpot_more,
        throughput_less: less,
        base_room: plain.room * plain.groups(),
        hit: a.hit(a.slots),
        load_ms: host * 1e3,
        load_disk_ms: (host + disk) * 1e3,
        load_per_request_ms: (a.loads(a.slots, in_flight) * host + a.loads(host_places(r, on), in_flight) * disk) * 1e3,
    })
    .filter(|_| serving.room >= 0.0)
}
