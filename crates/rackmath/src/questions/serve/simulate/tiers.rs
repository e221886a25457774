//! Memory below the chips' own that keeps caches: from sizes and rates to blocks and nanoseconds.

use super::Request;
use super::flags::mean_tokens;
use crate::desk::host::{host, shards};
use crate::desk::prelude::*;
use rackmath_sim::engine::Settings;
use rackmath_sim::engine::sglang::{HiCache, PrefetchPolicy, WritePolicy};
use rackmath_sim::tiers::{Counts, Tier};
use rackmath_theory::deployment::Ready;
use rackmath_theory::kv;

/// Memory below the chips' own that keeps caches of prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tiers {
    /// Host memory of a replica for caches, in GiB.
    #[schemars(extend("x-none" = "none"))]
    pub kv_offloading_size: Option<f64>,
    /// Rate from host memory to the chips of a replica, all together.
    #[schemars(extend("x-flag" = "host-bandwidth", "x-none" = "that of the chips' links"))]
    pub host_gb_per_s: Option<f64>,
    /// Time before the first byte of a fetch from host memory.
    pub host_latency_ms: f64,
    /// Disk of a replica for caches, in GiB, below host memory.
    #[schemars(extend("x-none" = "none"))]
    pub disk_gib: Option<f64>,
    /// Rate from disk to host memory.
    #[schemars(extend("x-flag" = "disk-bandwidth", "x-none" = "a replica's share of the catalogue's nvme-local"))]
    pub disk_gb_per_s: Option<f64>,
    /// Time before the first byte of a fetch from disk.
    pub disk_latency_ms: f64,
    /// Remote memory of a replica for caches, in GiB, below disk.
    #[schemars(extend("x-none" = "none"))]
    pub remote_gib: Option<f64>,
    /// Rate from remote memory to the host.
    #[schemars(extend("x-flag" = "remote-bandwidth"))]
    pub remote_gb_per_s: Option<f64>,
    /// Time before the first byte of a fetch from remote memory.
    pub remote_latency_ms: f64,
}

/// Which memory below the chips' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// Of the host.
    Host,
    /// Disks.
    Disk,
    /// Over a network.
    Remote,
}

impl Which {
    /// What its size is asked for by.
    fn field(self) -> &'static str {
        match self {
            Self::Host => "tiers.kv_offloading_size",
            Self::Disk => "tiers.disk_gib",
            Self::Remote => "tiers.remote_gib",
        }
    }
}

/// What a tier did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OfTier {
    /// Which.
    pub tier: Which,
    /// Its size, all replicas together.
    pub size_bytes: f64,
    /// Rate of its link, of a replica.
    pub gb_per_s: f64,
    /// Tokens found there and nowhere nearer.
    pub found_tokens: u64,
    /// Bytes over its link, for itself and for tiers below.
    pub fetched_bytes: f64,
    /// Bytes written to it.
    pub written_bytes: f64,
    /// Bytes that gave way.
    pub evicted_bytes: f64,
    /// Share of the time in which its link is in use, mean over replicas.
    pub link_busy: f64,
}

/// A tier that is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Asked {
    pub which: Which,
    pub gib: f64,
    /// Bytes a second.
    pub rate: f64,
    pub latency: f64,
}

const GIB: f64 = 1_073_741_824.0;
/// Chips that share the disks of a node, where a chip's host does not say.
const NODE: f64 = 8.0;

/// Bytes of host memory for caches that a request asks for, for one group, as its engine names it; none where it asks for none.
fn host_bytes(r: &Request, ready: &Ready, settings: &Settings) -> Result<Option<f64>, Error> {
    let (on, own) = (&ready.deployment, shards(&ready.deployment.model, &ready.deployment.layout.degrees()) as f64);
    let mut all = Vec::new();
    if let Some(gib) = r.tiers.kv_offloading_size {
        let gib = within("tiers.kv_offloading_size", gib, 0.0, 1e9)?;
        all.push(("tiers.kv_offloading_size", gib * GIB / on.groups()));
    }
    if let Settings::Sglang(s) = settings {
        let usual = on.engine.host_cache.map(|h| h.ratio).filter(|_| r.sglang.enable_hierarchical_cache);
        let ratio = r.sglang.hicache_ratio.or(usual);
        if let Some(gb) = r.sglang.hicache_size {
            all.push(("sglang.hicache_size", within("sglang.hicache_size", gb, 0.0, 1e6)? * 1e9 * own));
        } else if let Some(ratio) = ratio.filter(|_| all.is_empty()) {
            let ratio = within("sglang.hicache_ratio", ratio, 0.0, 1e6)?;
            all.push(("sglang.hicache_ratio", ratio * f64::from(s.max_total_tokens) * block_bytes(r, ready, 1)));
        }
        let unused = all.is_empty() && r.sglang.hicache_write_policy != WritePolicy::WriteThrough;
        refuse_if(unused, "sglang.hicache_write_policy", "without host memory", "{sglang.enable_hierarchical_cache}")?;
    }
    if let Some(bytes) = r.trtllm.host_cache_size {
        all.push(("trtllm.host_cache_size", bytes as f64 * own));
    }
    if let [_, (field, _), ..] = all[..] {
        return Err(Error::value(field, "a size", "one size of host memory, not two"));
    }
    Ok(all.first().map(|(_, bytes)| *bytes))
}

/// The tiers of a request, of one group, the nearest first.
pub(super) fn asked(catalog: &Catalog, r: &Request, ready: &Ready, settings: &Settings) -> Result<Vec<Asked>, Error> {
    let on = &ready.deployment;
    let (t, chips, groups) = (&r.tiers, on.chips(), on.groups());
    let mut all = Vec::new();
    let size = |field, gib: f64| within(field, gib, 0.0, 1e9).map(|gib| gib / groups);
    let latency = |field, ms: f64| within(field, ms, 0.0, 1e6).map(|ms| ms / 1e3);
    let rate = |field, given: Option<f64>, usual: Option<f64>| -> Result<f64, Error> {
        let Some(rate) = given.map(|gb| gb * 1e9 / groups).or(usual) else {
            return Err(Error::value(field, "nothing", "a rate such as 50 GB/s: the catalogue has none for it"));
        };
        refuse_if(!(1e3..=1e18).contains(&rate), field, rate / 1e9, "above 0, at most 1,000,000,000 GB/s")?;
        Ok(rate)
    };
    if let Some(bytes) = host_bytes(r, ready, settings)? {
        let own = host(catalog, &on.system)?.map(|h| h.rate.get() * shards(&on.model, &on.layout.degrees()) as f64);
        all.push(Asked {
            which: Which::Host,
            gib: bytes / GIB,
            rate: rate("tiers.host_gb_per_s", t.host_gb_per_s, own)?,
            latency: latency("tiers.host_latency_ms", t.host_latency_ms)?,
        });
    }
    if let Some(gib) = t.disk_gib {
        let sharers = on.system.chip.host.sharers.as_ref().map_or(NODE, |s| s.value as f64);
        let own = catalog.tier("nvme-local")?.bandwidth.value.get() * (chips / sharers).min(1.0) / groups;
        all.push(Asked {
            which: Which::Disk,
            gib: size("tiers.disk_gib", gib)?,
            rate: rate("tiers.disk_gb_per_s", t.disk_gb_per_s, Some(own))?,
            latency: latency("tiers.disk_latency_ms", t.disk_latency_ms)?,
        });
    }
    if let Some(gib) = t.remote_gib {
        all.push(Asked {
            which: Which::Remote,
            gib: size("tiers.remote_gib", gib)?,
            rate: rate("tiers.remote_gb_per_s", t.remote_gb_per_s, None)?,
            latency: latency("tiers.remote_latency_ms", t.remote_latency_ms)?,
        });
    }
    let first = all.first().is_none_or(|first| first.which == Which::Host);
    refuse_if(
        !first,
        "tiers.kv_offloading_size",
        "nothing",
        "host memory above disk and remote: caches pass through it",
    )?;
    Ok(all)
}

/// Bytes of a block, of requests as long as the mean.
pub(super) fn block_bytes(r: &Request, ready: &Ready, size: u32) -> f64 {
    let on = &ready.deployment;
    let whole = mean_tokens(r, on, size);
    kv::cache(&on.model, on.kv).stored(Tokens::new(whole)).get() / (whole / f64::from(size))
}

/// Puts tiers into the settings of an engine.
pub(super) fn put(all: &[Asked], r: &Request, ready: &Ready, settings: &mut Settings) -> Result<(), Error> {
    let Some(last) = all.last() else { return Ok(()) };
    let bytes = block_bytes(r, ready, settings.block());
    let tier = |a: &Asked| Tier {
        blocks: (a.gib * GIB / bytes) as u64,
        block: (bytes / a.rate * 1e9 * f64::from(1_u32 << 20)).round() as i64,
        latency: (a.latency * 1e9).round() as u64,
    };
    let most = |n: usize, expected: &str| refuse_if(all.len() > n, last.which.field(), last.gib, expected);
    match settings {
        Settings::Vllm(s) => s.tiers = all.iter().map(tier).collect(),
        Settings::Sglang(s) => {
            most(2, "disk or remote memory, not both: SGLang has one storage below host memory")?;
            let rules = ready.deployment.engine.host_cache.ok_or_else(|| {
                Error::value("engine", format!("\"{}\"", r.engine), "an engine file with a table [host_cache]")
            })?;
            s.hicache = Some(HiCache {
                host: tier(&all[0]),
                storage: all.get(1).map(tier),
                page: rules.page_tokens,
                write: r.sglang.hicache_write_policy,
                prefetch: r.sglang.hicache_storage_prefetch_policy,
                rules,
            });
        }
        Settings::Trtllm(s) => {
            most(1, "host memory alone: TensorRT-LLM's storage below it is not simulated")?;
            s.host = all.first().map(tier);
        }
    }
    Ok(())
}

/// What the tiers did, in bytes; `span` is the time of the run and `replicas` how many have such tiers.
pub(super) fn card(all: &[Asked], counts: &[Counts], block: (u32, f64), span: f64, replicas: f64) -> Vec<OfTier> {
    let (size, bytes) = block;
    let of = |(a, c): (&Asked, &Counts)| OfTier {
        tier: a.which,
        size_bytes: a.gib * GIB * replicas,
        gb_per_s: a.rate / 1e9,
        found_tokens: c.found * u64::from(size),
        fetched_bytes: c.carried as f64 * bytes,
        written_bytes: c.stored as f64 * bytes,
        evicted_bytes: c.evicted as f64 * bytes,
        link_busy: c.busy as f64 / 1e9 / (span * replicas).max(1e-9),
    };
    all.iter().zip(counts).map(of).collect()
}

/// What the tiers assume: of a replica, all its groups together.
pub(super) fn notes(all: &[Asked], groups: usize, settings: &Settings) -> Vec<Remark> {
    let groups = groups as f64;
    let one = |a: &Asked| {
        let says_what = match a.which {
            Which::Host => "simulated_host",
            Which::Disk => "simulated_disk",
            Which::Remote => "simulated_remote",
        };
        says(says_what)
            .with("size", Bytes::b(a.gib * GIB * groups))
            .with("rate", ByteRate::b_per_s(a.rate * groups))
            .with("latency", (a.latency > 0.0).then_some(a.latency))
    };
    let mut said: Vec<Remark> = all.iter().map(one).collect();
    if said.is_empty() {
        return said;
    }
    match settings {
        Settings::Vllm(_) => said.push(says("simulated_tiers")),
        Settings::Sglang(s) => {
            let Some(h) = &s.hicache else { return said };
            said.push(says(match h.write {
                WritePolicy::WriteThrough => "simulated_write_through",
                WritePolicy::WriteThroughSelective => "simulated_write_selective",
                WritePolicy::WriteBack => "simulated_write_back",
            }));
            if h.storage.is_some() {
                let waits = match h.prefetch {
                    PrefetchPolicy::BestEffort => "simulated_best_effort",
                    PrefetchPolicy::WaitComplete => "simulated_wait_complete",
                    PrefetchPolicy::Timeout => "simulated_prefetch_timeout",
                };
                let r = &h.rules;
                said.push(
                    says(waits)
                        .with("page", f64::from(h.page))
                        .with("least", f64::from(r.prefetch_tokens))
                        .with("base", r.timeout_s)
                        .with("more", r.timeout_s_per_ki)
                        .with("most", r.timeout_s_most),
                );
            }
            said.push(says("simulated_hicache").with("least", f64::from(h.rules.load_tokens)));
        }
        Settings::Trtllm(_) => said.push(says("simulated_moved_down")),
    }
    said
}
