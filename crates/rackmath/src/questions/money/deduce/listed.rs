//! A price sheet of the catalogue as evidence: the numbers of one day's list that say something about a model.

use crate::desk::prelude::*;
use rackmath_spec::Date;
use rackmath_spec::file::sheet::{PriceSheet, plain};
use rackmath_spec::price::{List, Ttl};

/// The numbers of a sheet by name, on a day; the day it was checked unless given.
pub fn listed(catalog: &Catalog, name: &str, day: Option<Date>) -> Result<PriceSheet, Error> {
    let sheet = catalog.price(name)?;
    let day = day.unwrap_or(sheet.as_of);
    let list = sheet.at(day)?;
    // A seller whose habits nobody has counted is taken for a host of open weights.
    let vendor = catalog.policies()?.vendor(&sheet.provider).is_ok().then(|| sheet.provider.clone());
    let step = list.tiers.first();
    // Modes without a speed are discounts and queues; they say nothing about batches.
    let fast = list.modes.iter().find_map(|m| Some((m.factors.output, m.speed.filter(|s| *s > 1.0)?)));
    let lowest = list.caches.iter().map(|c| per_mtok(c.read)).reduce(f64::min);
    Ok(PriceSheet {
        vendor,
        model: Some(sheet.name.clone()),
        as_of: Some(day.to_string()),
        input: Some(per_mtok(list.input)),
        output: Some(per_mtok(list.output)),
        cached: lowest.filter(|p| *p > 0.0),
        write_5m: write(list, 300.0),
        write_1h: write(list, 3600.0),
        storage: list.caches.iter().find_map(|c| c.storage).map(|h| plain(h.as_per_mtok_hour())),
        long_above: step.map(|t| t.threshold().get()),
        long_input: step.map(|t| per_mtok(t.input)),
        long_output: step.map(|t| per_mtok(t.output)),
        fast_price: fast.map(|f| f.0),
        fast_speed: fast.map(|f| f.1),
        tokens_per_s: None,
        hosts: None,
    })
}

fn per_mtok(price: DollarsPerToken) -> f64 {
    plain(price.as_per_mtok())
}

/// What writing to a cache of so many seconds costs, where it costs anything.
fn write(list: &List, seconds: f64) -> Option<f64> {
    let lasts = |ttl: Ttl| matches!(ttl, Ttl::Fixed(t) if (t.get() - seconds).abs() < 1.0);
    let offer = list.caches.iter().find(|c| lasts(c.ttl))?;
    offer.write.map(per_mtok).filter(|p| *p > per_mtok(list.input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_becomes_evidence() {
        let catalog = rackmath_catalog::embedded();
        let s = listed(&catalog, "opus-4.6", None).unwrap();
        assert_eq!(
            (s.vendor.as_deref(), s.input, s.output, s.cached),
            (Some("anthropic"), Some(5.0), Some(25.0), Some(0.5))
        );
        assert_eq!((s.write_5m, s.write_1h), (Some(6.25), Some(10.0)));
        assert_eq!((s.fast_price, s.fast_speed), (Some(6.0), Some(2.5)));
        let s = listed(&catalog, "gpt-5.5", None).unwrap();
        assert_eq!(s.long_above, Some(272_000.0));
        assert!(listed(&catalog, "opsu-4.6", None).unwrap_err().to_string().contains("opus-4.6"));
        for id in catalog.ids(rackmath_spec::Kind::Prices) {
            let s = listed(&catalog, id, None).unwrap();
            assert!(s.input.is_some() && s.fast_price.is_some() == s.fast_speed.is_some(), "{id}");
        }
    }
}
