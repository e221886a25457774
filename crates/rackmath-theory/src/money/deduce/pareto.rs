//! How heavy the tail of the weights is: the shape of a generalised Pareto distribution fitted to the largest.
//!
//! $$ \hat k = \frac1n \sum \ln(1 - \hat\theta x_i) \qquad M = \min(0.2\,S,\ 3\sqrt S) $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | x_i | excess | by how much the M largest weights exceed the next |
//! | theta | theta | a mean over a grid, weighted by the profile likelihood |
//! | k | k | below 0.5 the mean of the weights is sound, above 0.7 it is not |
//!
//! Source: Zhang and Stephens 2009; Vehtari, Simpson, Gelman, Yao, Gabry 2024.

use rackmath_units::float;

/// The shape of the tail; the weights are put in another order. Weights that are all alike have no tail: 0.
pub fn k(weights: &mut [f64]) -> f64 {
    let size = weights.len() as f64;
    let tail = (0.2 * size).min(3.0 * size.sqrt()).ceil() as usize;
    if tail < 5 || tail >= weights.len() {
        return 0.0;
    }
    let (_, cut, largest) = weights.select_nth_unstable_by(weights.len() - tail - 1, f64::total_cmp);
    let cut = *cut;
    largest.sort_unstable_by(f64::total_cmp);
    for w in largest.iter_mut() {
        *w -= cut;
    }
    shape(largest)
}

fn shape(excess: &[f64]) -> f64 {
    let n = excess.len();
    let (last, quarter) = (excess[n - 1], excess[((n as f64 / 4.0 + 0.5) as usize).max(1) - 1]);
    if last <= 0.0 || quarter <= 0.0 {
        return 0.0;
    }
    let m = 30 + (n as f64).sqrt() as usize;
    let mean = |theta: f64| excess.iter().map(|x| float::ln_1p(-theta * x)).sum::<f64>() / n as f64;
    let grid: Vec<(f64, f64)> = (1..=m)
        .map(|j| {
            let theta = 1.0 / last + (1.0 - (m as f64 / (j as f64 - 0.5)).sqrt()) / (3.0 * quarter);
            let k = mean(theta);
            (theta, n as f64 * (float::ln(-theta / k) - k - 1.0))
        })
        .collect();
    let best = grid.iter().map(|g| g.1).fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut theta) = (0.0, 0.0);
    for (t, profile) in grid {
        let weight = float::exp(profile - best);
        if weight.is_finite() {
            sum += weight;
            theta += weight * t;
        }
    }
    // Ten imaginary points with shape one half steady a short tail.
    (n as f64 * mean(theta / sum) + 5.0) / (n as f64 + 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_known_tails() {
        // Quantiles of a generalised Pareto: ((1 - p)^-k - 1) / k.
        for truth in [0.2_f64, 0.5, 0.9] {
            let mut weights: Vec<f64> = (0..20_000)
                .map(|i| (float::pow(1.0 - (f64::from(i) + 0.5) / 20_000.0, -truth) - 1.0) / truth)
                .collect();
            let got = k(&mut weights);
            assert!((got - truth).abs() < 0.1, "{truth}: {got}");
        }
        assert_eq!(k(&mut [1.0; 1000]), 0.0);
    }
}
