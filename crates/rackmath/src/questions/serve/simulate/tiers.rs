//! Memory below the chips' own that keeps caches: from sizes and rates to blocks and nanoseconds.

use super::Request;
use super::flags::mean_tokens;
use crate::desk::host::{host, shards};
use crate::desk::prelude::*;
use rackmath_sim::engine::Settings;
use rackmath_sim::tiers::{Counts, Tier};
use rackmath_theory::deployment::{Deployment, Ready};
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

/// The tiers of a request, the nearest first.
pub(super) fn asked(catalog: &Catalog, r: &Request, on: &Deployment) -> Result<Vec<Asked>, Error> {
    let (t, chips) = (&r.tiers, on.chips());
    let mut all = Vec::new();
    let size = |field, gib: f64| within(field, gib, 0.0, 1e9);
    let latency = |field, ms: f64| within(field, ms, 0.0, 1e6).map(|ms| ms / 1e3);
    let rate = |field, given: Option<f64>, usual: Option<f64>| -> Result<f64, Error> {
        let Some(rate) = given.map(|gb| gb * 1e9).or(usual) else {
            return Err(Error::value(field, "nothing", "a rate such as 50 GB/s: the catalogue has none for it"));
        };
        refuse_if(!(1e3..=1e18).contains(&rate), field, rate / 1e9, "above 0, at most 1,000,000,000 GB/s")?;
        Ok(rate)
    };
    if let Some(gib) = t.kv_offloading_size {
        let own = host(catalog, &on.system)?.map(|h| h.rate.get() * shards(&on.model, &on.layout.degrees()) as f64);
        all.push(Asked {
            which: Which::Host,
            gib: size("tiers.kv_offloading_size", gib)?,
            rate: rate("tiers.host_gb_per_s", t.host_gb_per_s, own)?,
            latency: latency("tiers.host_latency_ms", t.host_latency_ms)?,
        });
    }
    if let Some(gib) = t.disk_gib {
        let sharers = on.system.chip.host.sharers.as_ref().map_or(NODE, |s| s.value as f64);
        let own = catalog.tier("nvme-local")?.bandwidth.value.get() * (chips / sharers).min(1.0);
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

/// Puts tiers into the settings of an engine that has them.
pub(super) fn put(all: &[Asked], r: &Request, ready: &Ready, settings: &mut Settings) -> Result<(), Error> {
    if all.is_empty() {
        return Ok(());
    }
    let Settings::Vllm(s) = settings else {
        let expected = "nothing: tiers below the chips' memory are simulated for vLLM only";
        return Err(Error::value("tiers", &r.engine, expected));
    };
    let apart = ready.deployment.groups() > 1.0 || r.fleet.prefill_replicas > 0;
    refuse_if(apart, "tiers", "groups or pools", "replicas of one attention group, without a pool of prompts")?;
    let bytes = block_bytes(r, ready, s.block_size);
    let tier = |a: &Asked| Tier {
        blocks: (a.gib * GIB / bytes) as u64,
        block: (bytes / a.rate * 1e9 * f64::from(1_u32 << 20)).round() as i64,
        latency: (a.latency * 1e9).round() as u64,
    };
    s.tiers = all.iter().map(tier).collect();
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

/// What the tiers assume.
pub(super) fn notes(all: &[Asked]) -> Vec<Remark> {
    let one = |a: &Asked| {
        let says_what = match a.which {
            Which::Host => "simulated_host",
            Which::Disk => "simulated_disk",
            Which::Remote => "simulated_remote",
        };
        says(says_what)
            .with("size", Bytes::b(a.gib * GIB))
            .with("rate", ByteRate::b_per_s(a.rate))
            .with("latency", (a.latency > 0.0).then_some(a.latency))
    };
    let mut said: Vec<Remark> = all.iter().map(one).collect();
    if !said.is_empty() {
        said.push(says("simulated_tiers"));
    }
    said
}
