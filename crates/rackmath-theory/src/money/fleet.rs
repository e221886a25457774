//! From traffic to machines: how many replicas, chips, racks, megawatts and dollars serve so many tokens.
//!
//! $$ R = \left\lceil \frac{\hat\lambda}{u\,G\,v} \right\rceil \qquad \hat\lambda = \bar\lambda\,\frac{\max_t d_t}{\mathrm{mean}_t\, d_t} \qquad headroom = \frac{R\,G\,v}{\hat\lambda} - 1 $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | λ | mean | tok/s | traffic of a pool on average over the day, what misses the cache for prefill |
//! | d | curve | 1 | the shape of the day, one number per hour or any equal parts |
//! | u | target | 1 | share of a pool's capacity in use at the peak |
//! | G, v | chips, rate | 1, tok/s | chips of a replica, tokens per second of one chip |
//! | R | replicas | 1 | of a pool |
//!
//! Assumes: replicas cannot be divided, machines are not shared between pools, every hour is paid.
//! Ignores: failures beyond the target, regions, the ramp of a release day.
//! Source: lecture D14; section 5 rows 20, 21, 24 (DeepSeek: 278 nodes at peak against 226.75 on average).

use crate::cost::Rates;
use rackmath_units::{DollarRate, Dollars, Fraction, Seconds, TokenRate, Tokens, Watts};
use schemars::JsonSchema;
use serde::Serialize;

/// Days of an average month of the Gregorian calendar.
pub const DAYS_PER_MONTH: f64 = 365.2425 / 12.0;

pub fn per_month(tokens: Tokens) -> TokenRate {
    tokens / Seconds::days(DAYS_PER_MONTH)
}

#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    pub input: TokenRate,
    pub output: TokenRate,
    pub hit: Fraction,
    /// The busiest part of the day over the mean.
    pub peak: f64,
}

/// The busiest part of a day over its mean; `None` for an empty or silent day.
pub fn peak_over_mean(curve: &[f64]) -> Option<f64> {
    let sum: f64 = curve.iter().sum();
    let most = curve.iter().copied().fold(0.0, f64::max);
    (sum > 0.0 && curve.iter().all(|d| d.is_finite() && *d >= 0.0)).then(|| most * curve.len() as f64 / sum)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machines {
    pub rates: Rates,
    pub prefill_chips: u64,
    pub decode_chips: u64,
    pub rack_chips: u64,
    pub target: Fraction,
    /// Power of a chip with its share of machine and building.
    pub power: Watts,
    /// Price of a chip with its share of the machine.
    pub capex: Option<Dollars>,
    pub chip_hour: DollarRate,
}

/// Replicas that do one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Pool {
    /// Tokens per second on average.
    pub mean_tok_s: f64,
    /// At the peak.
    pub peak_tok_s: f64,
    /// What it could do.
    pub capacity_tok_s: f64,
    /// Replicas.
    pub replicas: u64,
    /// Chips.
    pub chips: u64,
    /// How much more than the peak it could do, as a share.
    pub headroom: f64,
    /// Share of its capacity in use over the day.
    pub utilisation: f64,
}

impl Pool {
    /// More replicas than this are not counted: nobody has them.
    pub const MOST: u64 = 1_000_000_000_000;

    fn of(mean: TokenRate, over_mean: f64, chips: u64, rate: TokenRate, target: Fraction) -> Self {
        let peak = mean * over_mean;
        let each = rate * chips as f64;
        // A thousandth of a replica is rounding, not traffic.
        let replicas = ((peak / (each * target.get()) - 1e-9).ceil().max(0.0) as u64).min(Self::MOST);
        let capacity = each * replicas as f64;
        let headroom = if peak.get() > 0.0 { capacity / peak - 1.0 } else { 0.0 };
        let utilisation = if capacity.get() > 0.0 { mean / capacity } else { 0.0 };
        let (mean_tok_s, peak_tok_s, capacity_tok_s) = (mean.get(), peak.get(), capacity.get());
        Self { mean_tok_s, peak_tok_s, capacity_tok_s, replicas, chips: replicas * chips, headroom, utilisation }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    pub prefill: Pool,
    pub decode: Pool,
    pub chips: u64,
    pub racks: u64,
    pub power: Watts,
    pub capex: Option<Dollars>,
    pub day: Dollars,
}

pub fn fleet(traffic: &Traffic, machines: &Machines) -> Fleet {
    let m = machines;
    let computed = traffic.input * traffic.hit.rest().get();
    let prefill = Pool::of(computed, traffic.peak, m.prefill_chips, m.rates.prefill, m.target);
    let decode = Pool::of(traffic.output, traffic.peak, m.decode_chips, m.rates.decode, m.target);
    let chips = prefill.chips + decode.chips;
    let (racks, n) = (chips.div_ceil(m.rack_chips), chips as f64);
    let (power, capex, day) = (m.power * n, m.capex.map(|each| each * n), m.chip_hour * n * Seconds::days(1.0));
    Fleet { prefill, decode, chips, racks, power, capex, day }
}

/// Share of all traffic one rack could serve if it only wrote answers.
pub fn rack_share(decode: TokenRate, rack_chips: u64, world: TokenRate) -> f64 {
    decode * rack_chips as f64 / world
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use proptest::prelude::*;

    fn h800() -> Machines {
        Machines {
            rates: Rates { prefill: TokenRate::per_s(73.7e3 / 8.0), decode: TokenRate::per_s(14.8e3 / 8.0) },
            prefill_chips: 32,
            decode_chips: 144,
            rack_chips: 8,
            target: Fraction::ONE,
            power: Watts::w(1730.0),
            capex: None,
            chip_hour: DollarRate::per_hour(2.0),
        }
    }

    #[test]
    fn deepseeks_day_needs_about_as_many_nodes_as_it_had() {
        // 608 G in and 168 G out a day, peak 278 over mean 226.75 nodes; prefill units of 4 nodes, decode units of 18.
        let [input, output] = [608e9, 168e9].map(|n| Tokens::new(n) / Seconds::days(1.0));
        let traffic = Traffic { input, output, hit: Fraction::ZERO, peak: 278.0 / 226.75 };
        let f = fleet(&traffic, &h800());
        // 278.1 nodes are needed; units of 4 and 18 nodes round that up.
        assert_eq!((f.prefill.replicas, f.decode.replicas), (30, 9));
        assert_eq!(f.racks, 30 * 4 + 9 * 18);
        close(f.day.get(), f.racks as f64 * 8.0 * 24.0 * 2.0, 1e-12);
        assert!(f.prefill.headroom >= 0.0 && f.decode.headroom < 0.02);
    }

    #[test]
    fn months_days_and_racks() {
        // A quadrillion tokens a month over 2,629,746 s.
        close(per_month(Tokens::new(1e15)).get(), 380_264_999.0, 1e-6);
        assert_eq!(peak_over_mean(&[1.0, 1.0, 2.0]), Some(1.5));
        assert!([&[][..], &[0.0, f64::NAN]].iter().all(|day| peak_over_mean(day).is_none()));
        // G14: a rack is a thousandth of Gemini.
        close(rack_share(TokenRate::per_s(128e3 / 72.0), 72, TokenRate::per_s(128e6)), 0.001, 1e-12);
    }

    proptest! {
        #[test]
        fn more_traffic_never_needs_less(
            input in 0.0f64..1e8, output in 0.0f64..1e8, more in 1.0f64..10.0, hit in 0.0f64..1.0, peak in 1.0f64..5.0,
            target in 0.1f64..1.0
        ) {
            let machines = Machines { target: Fraction::new(target), ..h800() };
            let traffic = |k: f64| Traffic {
                input: TokenRate::per_s(input * k), output: TokenRate::per_s(output * k), hit: Fraction::new(hit), peak,
            };
            let (a, b) = (fleet(&traffic(1.0), &machines), fleet(&traffic(more), &machines));
            prop_assert!(a.chips <= b.chips && a.day <= b.day && a.racks <= b.racks);
            prop_assert!(a.prefill.headroom >= -1e-6 && a.decode.headroom >= -1e-6);
            prop_assert!(a.decode.utilisation <= target + 1e-6);
        }
    }
}
