//! Hold a cache or compute it anew: what having a token's KV again costs after some time, by where it was kept.
//!
//! $$ cost_i(T) = r_i + h_i T \qquad r_{remat} = \frac{2 N_a}{F\,mfu} p_{gpu} \quad h_{hbm} = \frac{kv}{C} p_{gpu} \quad r_i = \frac{kv}{W_i} p_i \quad h_i = \frac{kv}{C_i} p_i $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | T | hold | s | time between two uses |
//! | r, h | retrieve, hold | $/token, $/token/s | getting a token back once, keeping it |
//! | kv | kv | B/token | bytes of a token's cache |
//! | C, W, p | capacity, bandwidth, price | B, B/s, $/s | of a device |
//!
//! The cheapest way after a time is the lower envelope of these lines; neighbours swap at T = (r_j - r_i) / (h_i - h_j).
//! Beside it the rule without prices: holding and fetching take equal device time at T = C / W, the drain time.
//!
//! Assumes: a device is paid in proportion to the bytes it keeps and the time it reads; rematerialising holds nothing.
//! Ignores: writing, latency, the time a chip waits for a fetch, network between tier and chip.
//! Source: lecture D51, D52, X20; the five-minute rule generalised.

use crate::reuse::Reuse;
use crate::roofline;
use rackmath_spec::MemoryTier;
use rackmath_units::{
    Bytes, BytesPerToken, DollarRate, DollarsPerToken, FlopPerToken, FlopRate, HoldPrice, Seconds, float,
};
use schemars::JsonSchema;
use serde::Serialize;

/// One way to have a token's cache again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub retrieve: DollarsPerToken,
    pub hold: HoldPrice,
}

/// A stretch of time over which one way is the cheapest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    pub line: usize,
    pub from: Seconds,
    /// Until when; endless for the last.
    pub to: Option<Seconds>,
}

impl Line {
    /// What having a token again costs after so long.
    pub fn cost(&self, hold: Seconds) -> DollarsPerToken {
        self.retrieve + self.hold * hold
    }
}

pub fn rematerialise(flop: FlopPerToken, rate: FlopRate, chip: DollarRate) -> Line {
    Line { retrieve: chip * (flop / rate), hold: HoldPrice::ZERO }
}

/// Leaving it in the memory of the chip that will use it.
pub fn in_memory(kv: BytesPerToken, capacity: Bytes, chip: DollarRate) -> Line {
    let share = kv.get() / capacity.get();
    let hold = HoldPrice::usd_per_token_s(share * chip.get());
    Line { retrieve: DollarsPerToken::ZERO, hold }
}

/// Keeping it in a tier; `None` when its price is not known.
pub fn in_tier(kv: BytesPerToken, tier: &MemoryTier) -> Option<Line> {
    let hold = HoldPrice::usd_per_token_s(kv.get() * tier.hold()?);
    // Reading kv bytes occupies the whole device for kv / W, which costs as much as keeping them for C / W.
    Some(Line { retrieve: hold * drain(tier), hold })
}

pub fn drain(tier: &MemoryTier) -> Seconds {
    roofline::drain(tier.capacity.value, tier.bandwidth.value)
}

/// The time at which the second way becomes cheaper than the first; `None` if it never does, or always is.
pub fn break_even(first: &Line, second: &Line) -> Option<Seconds> {
    let (dr, dh) = (second.retrieve.get() - first.retrieve.get(), first.hold.get() - second.hold.get());
    (dr > 0.0 && dh > 0.0).then(|| Seconds::s(dr / dh))
}

/// The cheapest way at every time, as stretches.
pub fn envelope(lines: &[Line]) -> Vec<Segment> {
    let at_zero = |i: &usize, j: &usize| {
        let key = |k: usize| (lines[k].retrieve.get(), lines[k].hold.get());
        key(*i).0.total_cmp(&key(*j).0).then(key(*i).1.total_cmp(&key(*j).1))
    };
    let Some(mut now) = (0..lines.len()).min_by(at_zero) else { return Vec::new() };
    let (mut all, mut from) = (Vec::new(), Seconds::ZERO);
    loop {
        // The next line is the one that undercuts this one first; of several at once, the flattest.
        let next = (0..lines.len()).filter_map(|i| Some((break_even(&lines[now], &lines[i])?, i))).min_by(|a, b| {
            a.0.get().total_cmp(&b.0.get()).then(lines[a.1].hold.get().total_cmp(&lines[b.1].hold.get()))
        });
        let Some((to, line)) = next else {
            all.push(Segment { line: now, from, to: None });
            return all;
        };
        let to = to.max(from);
        if to > from {
            all.push(Segment { line: now, from, to: Some(to) });
        }
        (now, from) = (line, to);
    }
}

/// What keeping prefixes for so long costs for each prompt token: what misses is computed, what hits is fetched.
pub fn cost_of_ttl(reuse: &Reuse, ttl: Seconds, tier: &Line, compute: DollarsPerToken) -> DollarsPerToken {
    let hit = reuse.hit_rate(ttl);
    let kept = DollarsPerToken::usd_per_token(tier.hold.get() * reuse.kept(ttl));
    compute * hit.rest().get() + tier.retrieve * hit.get() + kept
}

/// The lifetime that costs least in a tier, and that cost.
pub fn best_ttl(reuse: &Reuse, tier: &Line, compute: DollarsPerToken) -> (Seconds, DollarsPerToken) {
    let cost = |ttl: Seconds| cost_of_ttl(reuse, ttl, tier, compute);
    let start = (Seconds::ZERO, compute);
    let cheaper =
        |best: (Seconds, DollarsPerToken), new: (Seconds, DollarsPerToken)| if new.1 < best.1 { new } else { best };
    // The cost rises between two gaps and falls at them, so the best is at a gap.
    reuse.lifetimes(4096).into_iter().map(|ttl| (ttl, cost(ttl))).fold(start, cheaper)
}

/// A tier a lifetime could mean.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// The tier.
    pub id: String,
    /// Its drain time.
    pub drain_s: f64,
    /// The lifetime over it.
    pub ratio: f64,
}

/// Every tier by how near its drain time is to a duration, nearest first.
pub fn candidates(duration: Seconds, tiers: &[(String, Seconds)]) -> Vec<Candidate> {
    let of =
        |(id, drain): &(String, Seconds)| Candidate { id: id.clone(), drain_s: drain.get(), ratio: duration / *drain };
    let mut all: Vec<Candidate> = tiers.iter().map(of).collect();
    let far = |c: &Candidate| float::ln(c.ratio).abs();
    all.sort_by(|a, b| far(a).total_cmp(&far(b)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use proptest::prelude::*;
    use rackmath_units::{ByteRate, Fraction};

    /// Dollars for a million tokens once, and for a million tokens kept an hour.
    fn line(retrieve: f64, hold: f64) -> Line {
        let (retrieve, hold) = (DollarsPerToken::per_mtok(retrieve), HoldPrice::per_mtok_hour(hold));
        Line { retrieve, hold }
    }

    #[test]
    fn g73_to_g76_computing_holding_and_draining() {
        // 100 B active in FP8 on a B200 at $2 and full use: 44.44 us, $0.024691 per million.
        let (flop, rate, price) =
            (FlopPerToken::new(2.0 * 100e9), FlopRate::tflop_per_s(4500.0), DollarRate::per_hour(2.0));
        close((flop / rate).get() * 1e6, 44.444, 1e-4);
        close(rematerialise(flop, rate, price).retrieve.as_per_mtok(), 0.024691, 1e-4);
        close(in_memory(BytesPerToken::new(2048.0), Bytes::gb(288.0), price).hold.as_per_mtok_hour(), 0.014222, 1e-4);
        for (gb, gb_s, seconds) in [
            (1536.0, 460.8, 3.333),
            (3840.0, 7.0, 548.6),
            (15_360.0, 14.0, 1097.0),
            (61_440.0, 7.0, 8777.0),
            (14_000.0, 0.524, 7.42 * 3600.0),
            (30_000.0, 0.275, 30.3 * 3600.0),
            // 3FS: 40,320 TiB at 6.6 TiB/s.
            (40_320.0, 6.6, 6109.0),
        ] {
            close(roofline::drain(Bytes::gb(gb), ByteRate::gb_per_s(gb_s)).get(), seconds, 1e-3);
        }
        for (id, seconds) in [
            ("lpddr-grace", 0.9375),
            ("ddr5-server", 2.4414),
            ("nvme-local", 285.7),
            ("cxl-pool", 400.0),
            ("flash-pool", 4926.0),
            ("hdd", 29.76 * 3600.0),
        ] {
            close(drain(&rackmath_catalog::embedded().tier(id).unwrap()).get(), seconds, 1e-3);
        }
    }

    #[test]
    fn deepseek_holds_in_ddr_for_hours() {
        // Recompute $0.138 per million, 70.3 GB per million in BF16, DDR at $13.8 over five years: about 6 h.
        let kv = BytesPerToken::new(70_272.0);
        let ddr = in_tier(kv, &rackmath_catalog::embedded().tier("ddr5-server").unwrap()).unwrap();
        close(ddr.hold.as_per_mtok_hour(), 0.0221, 5e-3);
        let remat = line(0.138, 0.0);
        let until = break_even(&ddr, &remat).unwrap();
        close(until.get() / 3600.0, 6.23, 1e-2);
        // Flash at $0.19 lasts seventy times longer.
        let flash = in_tier(kv, &rackmath_catalog::embedded().tier("nvme-local").unwrap()).unwrap();
        close(break_even(&flash, &remat).unwrap() / until, 72.0, 2e-2);
    }

    #[test]
    fn five_minutes_is_local_flash_or_cxl_and_an_hour_is_a_flash_pool() {
        let catalog = rackmath_catalog::embedded();
        let tiers: Vec<(String, Seconds)> = catalog
            .ids(rackmath_spec::Kind::Tiers)
            .map(|id| catalog.tier(id).unwrap())
            .filter(|t| t.kind != "object")
            .map(|t| (t.id.clone(), drain(&t)))
            .collect();
        let near = |s: f64| candidates(Seconds::s(s), &tiers).into_iter().map(|c| c.id).collect::<Vec<_>>();
        assert_eq!(near(300.0)[..2], ["nvme-local", "cxl-pool"]);
        assert_eq!(near(3600.0)[0], "flash-pool");
        assert_eq!(near(86_400.0)[0], "hdd");
        assert_eq!(near(300.0).len(), tiers.len(), "all candidates are shown");
    }

    #[test]
    fn neighbours_swap_between_their_drain_times_at_equal_device_prices() {
        // Lecture: T ~ (C_i / W_{i+1}) at equal device prices, between C_i / W_i and C_{i+1} / W_{i+1}.
        let line = |c: f64, w: f64| Line {
            retrieve: DollarsPerToken::usd_per_token(1.0 / w),
            hold: HoldPrice::usd_per_token_s(1.0 / c),
        };
        let (fast, slow) = (line(1e12, 1e12), line(1e14, 1e10));
        let t = break_even(&fast, &slow).unwrap().get();
        assert!((1.0..1e4).contains(&t), "{t}");
        close(t, 1e12 / 1e10, 0.02);
    }

    #[test]
    fn the_best_lifetime_of_a_simple_reuse() {
        // Half the tokens come back after 10 s, a tenth after a day, the rest never.
        let gaps = [(Seconds::s(10.0), Fraction::new(0.5)), (Seconds::days(1.0), Fraction::new(0.1))];
        let reuse = Reuse::of_gaps(&gaps);
        let tier = |hold| line(0.001, hold);
        let compute = DollarsPerToken::per_mtok(0.1);
        assert_eq!(best_ttl(&reuse, &tier(0.01), compute).0.get(), 10.0);
        assert_eq!(best_ttl(&reuse, &tier(1e-5), compute).0.get(), 86_400.0);
        assert_eq!(best_ttl(&reuse, &tier(1e3), compute).0.get(), 0.0, "too dear to keep at all");
    }

    /// What the envelope says a token costs after a time.
    fn least(lines: &[Line], t: Seconds) -> f64 {
        let at = envelope(lines).into_iter().find(|s| s.from <= t && s.to.is_none_or(|to| t <= to)).unwrap();
        lines[at.line].cost(t).get()
    }

    fn lines() -> impl Strategy<Value = Vec<Line>> {
        prop::collection::vec((0.0f64..1.0, 0.0f64..1.0).prop_map(|(r, h)| line(r, h)), 1..9)
    }

    proptest! {
        #[test]
        fn the_envelope_lies_below_every_line_and_falls_with_them(lines in lines(), cut in 0.0f64..1.0, t in 0.0f64..1e6) {
            let segments = envelope(&lines);
            prop_assert_eq!(segments[0].from, Seconds::ZERO);
            prop_assert!(segments.windows(2).all(|w| w[0].to == Some(w[1].from)));
            prop_assert!(segments.last().unwrap().to.is_none());
            let t = Seconds::s(t);
            prop_assert!(lines.iter().all(|l| least(&lines, t) <= l.cost(t).get() * (1.0 + 1e-9)));
            let mut cheaper = lines.clone();
            cheaper[0].hold = cheaper[0].hold * cut;
            prop_assert!(least(&cheaper, t) <= least(&lines, t) * (1.0 + 1e-9));
        }

        #[test]
        fn the_best_lifetime_is_never_worse_than_none(
            gaps in prop::collection::vec((1.0f64..1e5, 0.0f64..0.1), 1..9), hold in 1e-6f64..1.0, compute in 0.001f64..1.0
        ) {
            let gaps: Vec<_> = gaps.into_iter().map(|(g, s)| (Seconds::s(g), Fraction::new(s))).collect();
            let reuse = Reuse::of_gaps(&gaps);
            let tier = line(0.0, hold);
            let compute = DollarsPerToken::per_mtok(compute);
            prop_assert!(best_ttl(&reuse, &tier, compute).1 <= compute);
        }
    }
}
