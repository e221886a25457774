//! How fast a chip serves and what its hour costs: the part that cost, fleet and cache share.

mod rates;

use crate::desk::prelude::*;
pub use rates::{Origin, RateCard, RatesCard, RatesFrom, RatesRequest, Served};
pub(crate) use rates::{rates, rates_of};

use crate::setting::Resolved;
use educe::Educe;
use rackmath_theory::cost::{Owner, OwnerHour};
use rackmath_units::{DollarRate, Dollars, Fraction, Watts};

/// An owner's figures; the catalogue's price per hour is used when there is no purchase price here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct OwnerRequest {
    /// Price of a chip with its share of the machine; the catalogue's unless given.
    pub capex_usd: Option<f64>,
    /// Years it is written off over.
    #[educe(Default = 4.0)]
    pub years: f64,
    /// Cost of capital per year.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.1)]
    pub capital: f64,
    /// Price of electricity.
    #[educe(Default = 0.08)]
    pub energy_usd_per_kwh: f64,
    /// Space and cooling of one chip.
    #[educe(Default = 0.1)]
    pub colo_usd_per_hour: f64,
    /// People who keep one chip running.
    #[educe(Default = 0.05)]
    pub staff_usd_per_hour: f64,
    /// Share of hours a chip can be used.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.95)]
    pub availability: f64,
}

/// Power of a building over that of its machines, where nothing else is known.
const PUE: f64 = 1.2;

/// What a chip draws, and what the building takes for it.
pub(crate) struct Draw {
    /// As given, the catalogue's, or the machine's share.
    pub watts: Watts,
    pub from: Remark,
    /// Power of the building over that; nothing where the building is in it already.
    pub facility: Option<f64>,
}

impl Draw {
    pub fn of(r: &Resolved, given: Option<f64>, pue: Option<f64>) -> Result<Self, Error> {
        let facility = Some(within("pue", pue.unwrap_or(PUE), 1.0, 5.0)?);
        if let Some(w) = given {
            let watts = Watts::checked(w).filter(|w| w.get() > 0.0 && w.get() <= 1e6);
            let watts = watts.ok_or_else(|| Error::value("power", w, "watts, above 0 to 1e6"))?;
            return Ok(Self { watts, from: says("as_given"), facility });
        }
        let chip = &r.system.chip;
        // A factor for the building is none for a figure that has the building in it.
        if let Some(all_in) = chip.power.all_in.as_ref().filter(|_| pue.is_none() || !chip.power.facility) {
            let facility = facility.filter(|_| !chip.power.facility);
            return Ok(Self { watts: all_in.value, from: all_in.source.as_str().into(), facility });
        }
        if let Some(rack) = &r.system.power {
            let from = says("share_of_machine").with("source", &rack.source);
            return Ok(Self { watts: rack.value / r.system.n_chips as f64, from, facility });
        }
        let tdp = chip.power.tdp.as_ref();
        let tdp = tdp.ok_or_else(|| Error::value("power", "unknown for this chip", "watts, with {power}"))?;
        Ok(Self { watts: tdp.value, from: says("design_power").with("source", &tdp.source), facility })
    }

    /// What the building is fed for one chip.
    pub fn fed(&self) -> Watts {
        self.watts * self.facility.unwrap_or(1.0)
    }

    /// The sentence with what is drawn, and by what factor the building takes more.
    pub fn said(&self, id: &'static str) -> Remark {
        let said = says(id).with("power", self.watts).with("from", &self.from);
        said.with("pue", self.facility).with("within", self.facility.is_none())
    }
}

/// An owner's hour of one chip, with its parts and sources.
pub(crate) fn owner(
    r: &Resolved,
    wanted: &OwnerRequest,
    (power_w, pue): (Option<f64>, Option<f64>),
) -> Result<(Owner, OwnerHour, Vec<Remark>), Error> {
    let (capex, from) = match (wanted.capex_usd, &r.system.chip.purchase) {
        (Some(usd), _) => (Dollars::usd(within("capex", usd, 1.0, 1e9)?), says("as_given")),
        (None, Some(known)) => (known.value, known.source.as_str().into()),
        (None, None) => {
            return Err(Error::value("capex", format!("unknown for {}", r.system.chip.id), "a price, with {capex}"));
        }
    };
    let draw = Draw::of(r, power_w, pue)?;
    let share = within("availability", wanted.availability, 0.01, 1.0)?;
    let owner = Owner {
        capex,
        years: within("years", wanted.years, 0.1, 30.0)?,
        capital: within("capital", wanted.capital, 0.0, 1.0)?,
        power: draw.watts,
        pue: draw.facility.unwrap_or(1.0),
        energy_per_kwh: within("energy", wanted.energy_usd_per_kwh, 0.0, 10.0)?,
        colo: DollarRate::per_hour(within("colo", wanted.colo_usd_per_hour, 0.0, 1e4)?),
        staff: DollarRate::per_hour(within("staff", wanted.staff_usd_per_hour, 0.0, 1e4)?),
        availability: Fraction::new(share),
    };
    let words = vec![
        says("owned").with("capex", capex).with("from", from).with("years", owner.years).with("capital", owner.capital),
        draw.said("power_a_chip"),
        says("owner_assumes"),
    ];
    Ok((owner, owner.hour(), words))
}
