//! Replicas that stand by: a number of them, or as many as an availability takes.

use super::{Request, as_percent, positive};
use crate::desk::prelude::*;
use rackmath_theory::plan::{Estimate, Standby, standby};

/// Replicas beside those that the traffic needs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpareCard {
    /// How many.
    pub replicas: u64,
    /// Replicas that the traffic needs.
    pub needed: u64,
    /// Share of the time a replica is up.
    pub up: f64,
    /// Share of the time all that are needed are up.
    pub available: f64,
    /// The same without any that stand by.
    pub available_without: f64,
    /// Whether their number follows from an availability.
    pub by_target: bool,
}

impl SpareCard {
    /// In a few words.
    pub(super) fn words(&self) -> Remark {
        let id = if self.by_target { "spare_available" } else { "spare_stands_by" };
        says(id)
            .with("n", Some(self.replicas).filter(|n| *n > 0))
            .with("none", self.replicas == 0)
            .with("needed", self.needed)
            .with("available", self.available)
    }
}

/// What was asked for, with the rates it rests on.
pub(super) struct Asked {
    pub standby: Standby,
    /// Failures of a chip a second times the seconds of a repair.
    down: f64,
    assumes: Option<Remark>,
}

const HOURS: f64 = 365.0 * 24.0;
/// More spares than these are not stated.
const MOST: u64 = 100_000;

impl Asked {
    pub(super) fn new(catalog: &Catalog, r: &Request) -> Result<Self, Error> {
        let (stated, both) =
            (r.failures_per_chip_year.or(r.repair_hours), r.spare.is_some() && r.availability.is_some());
        refuse_if(both, "spare", r.spare.unwrap_or(0), "spare or availability, not both")?;
        if r.spare.is_none() && r.availability.is_none() {
            let expected = "a number of spares or an availability as well, which it is for";
            refuse_if(stated.is_some(), "availability", "none, but a rate of failures or a repair", expected)?;
            return Ok(Self { standby: Standby::None, down: 0.0, assumes: None });
        }
        let known = catalog.failures()?;
        let rate = r.failures_per_chip_year.map(|x| positive("failures_per_chip_year", x)).transpose()?;
        let hours = r.repair_hours.map(|x| positive("repair_hours", x)).transpose()?;
        let [rate_source, repair_source] = known.sources();
        let (per_year, repair) = (rate.unwrap_or(known.chip.per_year), hours.unwrap_or(known.repair.hours));
        let down = per_year / HOURS * repair;
        let standby = match (r.spare, r.availability) {
            (Some(n), _) => {
                refuse_if(n > MOST, "spare", n, format!("at most {MOST}"))?;
                Standby::Replicas(n as f64)
            }
            (None, target) => {
                let target = target.unwrap_or_default();
                let sound = (0.5..=0.999_999_9).contains(&target);
                refuse_if(!sound, "availability", as_percent(target), "a share from 50% to 99.99999%, such as 99.9%")?;
                Standby::Available { target, down }
            }
        };
        let source = |stated: bool, source: &str| if stated { says("as_stated") } else { Remark::from(source) };
        let assumes = says("spare_assumes").with("per_year", per_year).with("repair", repair).with("down", down);
        let assumes = assumes.with("rate_source", source(rate.is_some(), rate_source));
        Ok(Self { standby, down, assumes: Some(assumes.with("repair_source", source(hours.is_some(), repair_source))) })
    }

    pub(super) fn assumes(&self) -> Option<Remark> {
        self.assumes.clone()
    }

    /// What the spares of a plan are good for.
    pub(super) fn card(&self, e: &Estimate) -> Option<SpareCard> {
        self.assumes.as_ref()?;
        let up = standby::up(e.unit_chips, self.down);
        Some(SpareCard {
            replicas: e.standby as u64,
            needed: e.replicas as u64,
            up,
            available: standby::available(e.replicas, e.standby, up),
            available_without: standby::available(e.replicas, 0.0, up),
            by_target: matches!(self.standby, Standby::Available { .. }),
        })
    }
}
