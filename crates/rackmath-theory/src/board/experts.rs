//! Experts on chips: who gets how many tokens, how uneven that is, and whether the network can feed them.
//!
//! $$ \rho = \frac{(b_d + b_c)\,k'\,l_s}{b_h\,\beta} \qquad F_x > \frac{b_d + b_c}{6}\,\frac{C}{W} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | E, k, n | experts, top_k, ranks | 1 | routed experts, of which a token uses k, spread over n chips |
//! | k' | destinations | 1 | different chips a token is sent to, on average ([`crate::network::distinct_ranks`]) |
//! | b_d, b_c, b_h | bytes | B | element size of dispatch, combine and stage hop |
//! | l_s | layers | 1 | expert layers per pipeline stage |
//! | beta | beta | 1 | scale-up over scale-out bandwidth of a chip |
//! | rho | ratio | 1 | time on the scale-up network over time on the scale-out network; 1 or more is good |
//! | F_x | width | 1 | width of an expert; C and W are a chip's compute peak and link bandwidth |
//!
//! With k' = k, 2-byte elements everywhere and one hop, rho is the lecture's 2 k l / beta. The last test asks whether
//! sending a token takes less time than an expert's three matrix products on it; batch, k and E cancel.
//! Source: lecture D18, D20, D25, X4; section 5 rows 10 and 12.

use rackmath_units::{ByteRate, FlopRate, float};

#[derive(Clone, Debug, PartialEq)]
pub enum Routing {
    Uniform,
    /// The i-th most popular expert is chosen in proportion to i^-alpha.
    PowerLaw(f64),
    /// Measured: tokens each expert got.
    Histogram(Vec<f64>),
}

/// Share of the choices each of so many experts gets; sums to 1.
pub fn popularity(routing: &Routing, experts: u64) -> Vec<f64> {
    let raw: Vec<f64> = match routing {
        Routing::Uniform => vec![1.0; experts as usize],
        Routing::PowerLaw(alpha) => (1..=experts).map(|i| float::pow(i as f64, -alpha)).collect(),
        Routing::Histogram(tokens) => tokens.clone(),
    };
    let total: f64 = raw.iter().sum();
    if total > 0.0 { raw.iter().map(|x| x / total).collect() } else { vec![1.0 / raw.len().max(1) as f64; raw.len()] }
}

/// Load of the busiest rank over the mean: each redundant copy goes to the expert with the most load per copy, then slots
/// are dealt, heaviest first, to the least loaded rank. Chance comes on top: [`fluctuation`].
pub fn imbalance(popularity: &[f64], ranks: u64, redundant: u64) -> f64 {
    let slots = popularity.len() as u64 + redundant;
    let per_rank = slots.div_ceil(ranks) as usize;
    let mut copies = vec![1u64; popularity.len()];
    for _ in 0..redundant {
        let hottest = (0..popularity.len())
            .max_by(|a, b| (popularity[*a] / copies[*a] as f64).total_cmp(&(popularity[*b] / copies[*b] as f64)))
            .unwrap_or(0);
        copies[hottest] += 1;
    }
    let mut loads: Vec<f64> =
        popularity.iter().zip(&copies).flat_map(|(p, c)| std::iter::repeat_n(p / *c as f64, *c as usize)).collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    let mut rank_load = vec![0.0f64; ranks as usize];
    let mut rank_slots = vec![0usize; ranks as usize];
    for load in loads {
        let least = (0..ranks as usize)
            .filter(|r| rank_slots[*r] < per_rank)
            .min_by(|a, b| rank_load[*a].total_cmp(&rank_load[*b]))
            .unwrap_or(0);
        rank_load[least] += load;
        rank_slots[least] += 1;
    }
    rank_load.iter().copied().fold(0.0, f64::max) * ranks as f64
}

/// Busiest over mean load from chance alone: about `sqrt(2 mu ln n)` tokens above a mean of `mu`.
pub fn fluctuation(mean_tokens: f64, ranks: u64) -> f64 {
    if mean_tokens <= 0.0 || ranks < 2 { 1.0 } else { 1.0 + (2.0 * float::ln(ranks as f64) / mean_tokens).sqrt() }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementBytes {
    pub dispatch: f64,
    pub combine: f64,
    pub hop: f64,
}

/// D25: time on the scale-up network over time on the scale-out network for a stage of so many expert layers.
pub fn scale_up_to_scale_out(bytes: ElementBytes, destinations: f64, layers: f64, beta: f64) -> f64 {
    (bytes.dispatch + bytes.combine) * destinations * layers / (bytes.hop * beta)
}

/// D25 with the lecture's simplifications: two equal transfers, one per expert.
pub fn lecture_ratio(top_k: f64, layers: f64, beta: f64) -> f64 {
    let same = ElementBytes { dispatch: 1.0, combine: 1.0, hop: 1.0 };
    scale_up_to_scale_out(same, top_k, layers, beta)
}

/// Fewest layers per stage for which the slow network is not the bottleneck.
pub fn least_layers(top_k: u64, beta: f64) -> u64 {
    (beta / (2.0 * top_k as f64)).ceil().max(1.0) as u64
}

/// Narrowest expert that computes for longer than its tokens travel.
pub fn least_width(bytes: ElementBytes, peak: FlopRate, link: ByteRate) -> f64 {
    // Three products of 2 FLOP per parameter: 6 per element of the hidden vector and of the expert's width.
    (bytes.dispatch + bytes.combine) / 6.0 * peak.get() / link.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use proptest::prelude::*;

    #[test]
    fn ratios_layers_and_widths_of_the_rack() {
        // G39.
        for (k, l, expected) in
            [(8.0, 1.0, 2.0), (16.0, 2.0, 8.0), (32.0, 1.0, 8.0), (4.0, 1.0, 1.0), (3.0, 1.0, 0.75), (1.0, 1.0, 0.25)]
        {
            close(lecture_ratio(k, l, 8.0), expected, 1e-12);
        }
        // G40.
        assert_eq!((least_layers(1, 8.0), least_layers(8, 8.0)), (4, 1));
        // Section 5 row 12: H100 NVLink 1,100 (BF16, 450 GB/s); GB200 1,390 in BF16... and 2,780 with FP8 compute.
        let bf16 = ElementBytes { dispatch: 1.0, combine: 2.0, hop: 2.0 };
        for (tflop, gb, width) in
            [(989.5, 450.0, 1100.0), (2500.0, 900.0, 1390.0), (5000.0, 900.0, 2780.0), (989.5, 50.0, 9900.0)]
        {
            close(least_width(bf16, FlopRate::tflop_per_s(tflop), ByteRate::gb_per_s(gb)), width, 0.01);
        }
    }

    #[test]
    fn redundant_experts_even_out_a_power_law() {
        let skewed = popularity(&Routing::PowerLaw(1.0), 256);
        let (none, some) = (imbalance(&skewed, 32, 0), imbalance(&skewed, 32, 32));
        assert!(none > 4.0 && (1.0..1.5).contains(&some), "{none} {some}");
        close(imbalance(&popularity(&Routing::Uniform, 256), 32, 0), 1.0, 1e-9);
    }

    proptest! {
        #[test]
        fn imbalance_is_at_least_one(alpha in 0.0f64..1.5, ranks in 1u64..32, redundant in 0u64..64) {
            let p = popularity(&Routing::PowerLaw(alpha), 128);
            prop_assert!(imbalance(&p, ranks, redundant) >= 1.0 - 1e-9);
        }
    }
}
