//! Which assumption moves the cost of a token most, and the cost against utilisation.

use super::BarCard;
use crate::figure::{Axis, Figure, Role, Series, Unit};
use crate::serving::{RateCard, RatesCard};
use crate::setting::Resolved;
use rackmath_theory::cost::{Serving, TokenCost, tornado};
use rackmath_units::{DollarRate, DollarsPerToken, Fraction, TokenRate};

/// Each assumption between two ends; the chip's hour between the cheapest and dearest price known for it, a predicted rate
/// between the ends of its interval.
pub(super) fn bars(r: &Resolved, s: &Serving, rates: &RatesCard, all: impl Fn(&Serving) -> f64) -> Vec<BarCard> {
    let hour = s.chip_hour.as_per_hour();
    let known = r.system.chip.prices.iter().flat_map(|p| {
        let (low, high) = p.range.unwrap_or((p.value, p.value));
        [low.as_per_hour(), high.as_per_hour()]
    });
    let (low, high) = known.fold((hour, hour), |(l, h), p| (l.min(p), h.max(p)));
    let (low, high) = if low < high { (low, high) } else { (hour * 0.7, hour * 1.3) };
    let around = |x: f64, d: f64, floor: f64| ((x - d).max(floor), (x + d).min(1.0));
    let (u, h) = (around(s.utilisation.get(), 0.2, 0.05), around(s.hit.get(), 0.2, 0.0));
    let c = s.read.as_per_mtok();
    let ends = |card: &RateCard| match &card.tok_s {
        v if v.low < v.high => (v.low, v.high),
        v => (v.value / 1.5, v.value * 1.5),
    };
    let (vp, vd) = (ends(&rates.prefill), ends(&rates.decode));
    let inputs = [
        ("$ per chip-hour".to_owned(), low, high),
        ("prefill tok/s per chip".to_owned(), vp.0, vp.1),
        ("decode tok/s per chip".to_owned(), vd.0, vd.1),
        ("utilisation".to_owned(), u.0, u.1),
        ("cache hit rate".to_owned(), h.0, h.1),
        ("tokens accepted per step".to_owned(), 1.0, s.accepted.max(2.5)),
        ("$ per Mtok read from cache".to_owned(), c / 3.0, c * 3.0),
    ];
    let result = |i: usize, x: f64| {
        let mut s = *s;
        match i {
            0 => s.chip_hour = DollarRate::per_hour(x),
            1 => s.rates.prefill = TokenRate::per_s(x),
            2 => s.rates.decode = TokenRate::per_s(x),
            3 => s.utilisation = Fraction::new(x),
            4 => s.hit = Fraction::new(x),
            5 => s.accepted = x,
            _ => s.read = DollarsPerToken::per_mtok(x),
        }
        all(&s)
    };
    let bars = tornado(&inputs, result).into_iter().map(|b| BarCard {
        name: b.name,
        low: b.ends.0,
        high: b.ends.1,
        at_low_usd_per_mtok: b.results.0,
        at_high_usd_per_mtok: b.results.1,
    });
    bars.collect()
}

pub(super) fn figure(r: &Resolved, s: &Serving) -> Figure {
    let line = |name: &str, role: Role, of: fn(&TokenCost) -> DollarsPerToken| {
        Series::new(
            name,
            role,
            (5..=100)
                .map(|i| {
                    let u = f64::from(i) / 100.0;
                    let at = Serving { utilisation: Fraction::new(u), ..*s };
                    (u, of(&at.cost()).as_per_mtok())
                })
                .filter(|p| p.1 > 0.0),
        )
    };
    Figure {
        title: format!("{} on {}: cost of a token against utilisation", r.model.name, r.system.name),
        subtitle: format!("{} a chip and hour", s.chip_hour),
        x: Axis::linear("share of held chip time that serves", Unit::Number),
        y: Axis::log("dollars per million tokens", Unit::UsdPerMtok),
        series: vec![
            line("output", Role::Envelope, |c| c.output),
            line("input, computed", Role::Compute, |c| c.input),
            line("input, with hits", Role::Kv, |c| c.blended),
        ],
        marks: Vec::new(),
    }
}
