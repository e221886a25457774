//! A place that can keep a cache: how much it holds, how fast it reads, what it costs.

use crate::Cited;
use rackmath_units::{ByteRate, Bytes, Dollars, Seconds};

/// One device, server or service of the memory hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryTier {
    pub id: String,
    /// The device it stands for.
    pub name: String,
    /// The kind of memory: ddr, cxl, nvme, flash-pool, disk, object.
    pub kind: String,
    /// Year and month its values were checked.
    pub as_of: String,
    /// What it holds.
    pub capacity: Cited<Bytes>,
    /// How fast it reads.
    pub bandwidth: Cited<ByteRate>,
    /// What it costs; none when no public price is known.
    pub cost: Option<TierCost>,
}

/// What keeping bytes costs.
#[derive(Clone, Debug, PartialEq)]
pub enum TierCost {
    /// Bought, and used for so long.
    Bought {
        /// Price of a gigabyte.
        per_gb: Cited<Dollars>,
        /// Years of use.
        life: Seconds,
    },
    /// Rented by the gigabyte and month of 730 h.
    Rented {
        /// Price of a gigabyte and month.
        per_gb_month: Cited<Dollars>,
    },
}

impl MemoryTier {
    /// Dollars to keep a byte for a second; none when no price is known.
    pub fn hold(&self) -> Option<f64> {
        const GB: f64 = 1e9;
        const MONTH_S: f64 = 730.0 * 3600.0;
        Some(match self.cost.as_ref()? {
            TierCost::Bought { per_gb, life } => per_gb.value.get() / GB / life.get(),
            TierCost::Rented { per_gb_month } => per_gb_month.value.get() / GB / MONTH_S,
        })
    }

    /// Where the price comes from.
    pub fn cost_source(&self) -> Option<&str> {
        Some(match self.cost.as_ref()? {
            TierCost::Bought { per_gb, .. } => &per_gb.source,
            TierCost::Rented { per_gb_month } => &per_gb_month.source,
        })
    }
}
