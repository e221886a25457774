//! The memory of a host, as the chips in it see it.

use crate::Error;
use rackmath_spec::model::Mixer;
use rackmath_spec::{Catalog, Model, System, layout::Degrees};
use rackmath_theory::placement;
use rackmath_units::ByteRate;

/// The memory of a host as one chip sees it.
pub(crate) struct Host {
    pub tier: String,
    /// Bytes a second of a chip.
    pub rate: ByteRate,
    /// Bytes for a chip.
    pub capacity: f64,
}

/// The host memory of a machine; none where the chip's way to it is not known.
pub(crate) fn host(catalog: &Catalog, system: &System) -> Result<Option<Host>, Error> {
    let chip = &system.chip;
    let (Some(link), Some(tier), Some(sharers)) = (&chip.link.host, &chip.host.memory, &chip.host.sharers) else {
        return Ok(None);
    };
    let (tier, chips) = (catalog.tier(tier)?, sharers.value as f64);
    let rate = ByteRate::b_per_s(link.value.get().min(tier.bandwidth.value.get() / chips));
    Ok(Some(Host { tier: tier.name.clone(), rate, capacity: tier.capacity.value.get() / chips }))
}

/// Chips of a group that each hold another part of a cache.
pub(crate) fn shards(model: &Model, d: &Degrees) -> u64 {
    let mixers = model.shape().into_iter().flat_map(|s| s.runs.iter().map(|r| &r.block.mixer));
    mixers.filter(|m| **m != Mixer::None).map(|m| placement::cache_shards(m, d)).min().unwrap_or(1) * d.pp
}
