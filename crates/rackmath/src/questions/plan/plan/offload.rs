//! Caches kept in host memory: what a prompt fetches from there instead of computing it, and how long that takes.

use super::{Ask, Choice, Entry, Machine, Worked};
use crate::desk::host::shards;
use crate::desk::prelude::*;
use rackmath_theory::kv;
use rackmath_theory::steady::Requests;

/// Host cache over the cache memory of the chips where a size must be said: what SGLang takes unless told (`hicache_ratio`
/// in its server arguments is 2.0).
const RATIO: f64 = 2.0;

/// What a plan fetches from host memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OffloadCard {
    /// Share of a prompt's tokens found there, beyond those found on the chips.
    pub hit: f64,
    /// Time to fetch them, of one prompt alone.
    pub load_ms: f64,
    /// Their bytes.
    pub bytes_per_prompt: f64,
    /// The memory.
    pub tier: String,
}

/// What a row fetches for each prompt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub bytes: f64,
    /// Seconds over the links of a group.
    pub seconds: f64,
}

/// What a group of a layout fetches for each prompt; none where nothing is asked for or the way is not known.
pub(super) fn fetch(ask: &Ask, machine: &Machine, dtype: Dtype, layout: &Layout) -> Option<Fetch> {
    let (hit, host) = (ask.offload?, machine.host.as_ref()?);
    let r = &ask.requests;
    let cache = kv::cache(&ask.model, dtype);
    let at = |share: f64| if share > 0.0 { cache.stored(Tokens::new(r.input * share)).get() } else { 0.0 };
    let bytes = at(r.cached + hit) - at(r.cached);
    let d = layout.degrees();
    Some(Fetch { bytes, seconds: bytes / shards(&ask.model, &d) as f64 / host.rate.get() }).filter(|f| f.seconds > 0.0)
}

impl Ask {
    /// Requests as a row computes them that fetches so much.
    pub(super) fn fetching(&self, fetch: Option<Fetch>) -> Requests {
        let more = fetch.and(self.offload).unwrap_or(0.0);
        Requests { cached: (self.requests.cached + more).min(1.0), ..self.requests }
    }

    /// Prompts that a server which computes nothing else has under way: those of one pass, and of one more for each stage of a pipeline
    /// behind the first, which would wait otherwise.
    pub(super) fn prompts_at_once(&self, row: &Entry) -> f64 {
        let of_a_pass = (row.chunk / self.fetching(row.offload).new_tokens()).ceil().max(1.0);
        of_a_pass * row.on().stages()
    }
}

impl Entry {
    /// Bytes of host memory for one group of a row: some times what its chips hold, at most what the tier has.
    pub(super) fn host_cache(&self, requests: &Requests) -> Option<f64> {
        self.offload?;
        let (on, host) = (self.on(), self.of.machine.host.as_ref()?);
        let one = kv::cache(&on.model, on.kv).stored(Tokens::new(requests.context())).get();
        Some((RATIO * self.room * one).min(host.capacity * (on.chips() / on.groups())))
    }
}

impl Worked {
    /// What a configuration fetches, on the page.
    pub(super) fn offload(&self, choice: &Choice) -> Option<OffloadCard> {
        let fetch = choice.offload()?;
        Some(OffloadCard {
            hit: self.ask.offload?,
            load_ms: fetch.seconds * 1e3,
            bytes_per_prompt: fetch.bytes,
            tier: choice.first().of.machine.host.as_ref()?.tier.clone(),
        })
    }

    /// What fetching assumes.
    pub(super) fn fetching(&self) -> Vec<Remark> {
        let Some(hit) = self.ask.offload else { return Vec::new() };
        let machine = |m: &Machine| match &m.host {
            Some(h) => says("fetches_from").with("on", &m.system.name).with("tier", &h.tier).with("rate", h.rate),
            None => says("no_offload").with("on", &m.system.name),
        };
        let machines = self.ask.machines.iter().map(|m| machine(m));
        std::iter::once(says("kv_offload").with("hit", hit)).chain(machines).collect()
    }
}

/// Bytes as an engine's size in gibibytes, at least one.
pub(super) fn gib(bytes: f64) -> f64 {
    (Bytes::b(bytes).get() / (1_u64 << 30) as f64).floor().max(1.0)
}

#[cfg(test)]
mod tests {
    use crate::plan::{Best, Plan, Request, answer_on, space};
    use rackmath_theory::plan::Question;

    fn request(model: &str, on: &str) -> Request {
        Request { isl: Some(32_000.0), osl: Some(500.0), offload_hit: Some(0.5), ..Request::of(model, on) }
    }

    fn plans(r: &Request) -> Vec<Plan> {
        answer_on(&rackmath_catalog::embedded(), r, 1).unwrap().plans
    }

    #[test]
    fn long_prompts_are_fetched_at_the_rate_of_the_link() {
        let r = Request { disaggregated: false, top: 20, ..request("qwen3-32b", "8xh200") };
        let all = plans(&r);
        let best = all[0].offload.as_ref().unwrap();
        // 64 layers x 8 heads x 128 x 2 x 2 B = 262,144 B a token (config.json of Qwen3-32B), 16,000 of them.
        assert!((best.bytes_per_prompt / (262_144.0 * 16_000.0) - 1.0).abs() < 1e-12, "{best:?}");
        // At most 63 GB/s to each chip, over at most 8 of them.
        assert!(best.load_ms >= best.bytes_per_prompt / 8.0 / 63e9 * 1e3 * (1.0 - 1e-12), "{best:?}");
        assert!(all[0].deployment.with.contains_key("offload") && all[0].launch[0].contains("--kv-offloading-size"));
        // The same without is tried as well.
        assert!(all.iter().any(|p| p.offload.is_none()), "{all:?}");
        let without = &plans(&Request { offload_hit: None, ..r })[0];
        assert!(all[0].usd_per_mtok.value < 0.9 * without.usd_per_mtok.value);
    }

    #[test]
    fn a_choice_more_is_never_worse() {
        let most = Request { disaggregated: true, ttft_ms: Some(4000.0.into()), ..request("qwen3-32b", "4xh200") };
        for (objective, hit) in [(Best::Cost, 0.05), (Best::Latency, 0.5), (Best::Energy, 0.9), (Best::Goodput, 1.0)] {
            let r = Request { objective, prefix_hit: Some(0.2), offload_hit: Some(hit), ..most.clone() };
            let (with, without) = (plans(&r), plans(&Request { offload_hit: None, ..r.clone() }));
            let score = |p: &Plan| match objective {
                Best::Cost => p.usd_per_mtok.value,
                Best::Latency => p.e2e_ms.value,
                Best::Energy => p.joules_per_token,
                _ => -p.throughput_tok_s,
            };
            assert!(score(&with[0]) <= score(&without[0]), "{objective} {hit}");
            assert!(with.iter().filter_map(|p| p.offload.as_ref()).all(|o| o.hit <= 0.8));
        }
    }

    #[test]
    fn the_best_is_the_best_of_all_looked_at_one_by_one() {
        let catalog = rackmath_catalog::embedded();
        let r = Request { tpot_ms: Some(40.0.into()), ttft_ms: Some(3000.0.into()), ..request("qwen3-32b", "4xh200") };
        let (space, q): (_, Question) = space(&catalog, &r, 1).unwrap();
        let every = (0..space.len()).filter_map(|i| space.estimate(i, q.output, q.traffic));
        let least = every.filter(|e| q.limits.broken(e) == 0).map(|e| e.usd_per_mtok).min_by(f64::total_cmp).unwrap();
        assert_eq!(plans(&r)[0].usd_per_mtok.value, least);
    }

    #[test]
    fn a_prompt_sooner_computed_than_fetched_is_computed() {
        let (isl, osl, engines) = (Some(4000.0), Some(2.0), vec!["ideal".into()]);
        let all = plans(&Request { isl, osl, engines, disaggregated: false, ..request("qwen3-0.6b", "b200") });
        assert!(all[0].offload.is_none() && all.iter().any(|p| p.offload.is_some()), "{all:?}");
    }

    #[test]
    fn nothing_found_in_host_memory_changes_nothing() {
        let r = Request { isl: Some(4000.0), ..request("qwen3-32b", "2xh200") };
        let none = plans(&Request { offload_hit: None, ..r.clone() });
        assert_eq!(plans(&Request { offload_hit: Some(0.0), ..r.clone() }), none);
        // All of it is on the chips already.
        let full = Request { prefix_hit: Some(1.0), ..r };
        assert_eq!(plans(&full), plans(&Request { offload_hit: None, ..full.clone() }));
    }

    #[test]
    fn shares_that_are_none_are_refused_and_unknown_links_are_said() {
        let catalog = rackmath_catalog::embedded();
        for hit in [-0.1, 1.1, f64::NAN] {
            let wrong = Request { offload_hit: Some(hit), ..request("qwen3-32b", "h200") };
            assert!(answer_on(&catalog, &wrong, 1).unwrap_err().to_string().contains("offload_hit"));
        }
        let unknown =
            answer_on(&catalog, &Request { isl: Some(1000.0), ..request("llama-3.1-8b", "l40s") }, 1).unwrap();
        assert!(unknown.plans.iter().all(|p| p.offload.is_none()));
        assert!(unknown.assumptions.iter().any(|a| a.says == "no_offload"), "{:?}", unknown.assumptions);
    }

    #[test]
    fn pools_of_prompts_fetch_and_grace_is_nearer() {
        let r = |on: &str| Request { engines: vec!["sglang".into()], top: 100, ..request("qwen3-32b", on) };
        let load = |on: &str| {
            let all = plans(&Request { disaggregated: false, ..r(on) });
            let one = all.iter().find(|p| p.offload.is_some() && p.chips_per_replica == 1);
            one.and_then(|p| p.offload.clone()).unwrap()
        };
        let (grace, server) = (load("gb200"), load("b200"));
        // Half of 512 GB/s against 63 GB/s.
        assert!((server.load_ms / grace.load_ms - 256.0 / 63.0).abs() < 1e-9, "{grace:?} {server:?}");
        let split = plans(&Request { ttft_ms: Some(1500.0.into()), ..r("8xh200") });
        let pools = split.iter().find(|p| p.prefill.is_some() && p.offload.is_some()).unwrap();
        assert!(pools.launch[0].contains("--enable-hierarchical-cache"), "{:?}", pools.launch);
        assert!(!pools.launch[1].contains("--enable-hierarchical-cache"), "{:?}", pools.launch);
    }

    #[test]
    fn goodput_is_throughput_by_its_name() {
        let r = Request {
            isl: Some(2000.0),
            offload_hit: None,
            tpot_ms: Some(30.0.into()),
            ..request("qwen3-32b", "2xh200")
        };
        let one = |objective| answer_on(&rackmath_catalog::embedded(), &Request { objective, ..r.clone() }, 1).unwrap();
        let (goodput, throughput) = (one(Best::Goodput), one(Best::Throughput));
        assert_eq!((goodput.objective, goodput.plans[0].index), (Best::Goodput, throughput.plans[0].index));
    }
}
