//! Lengths that vary: their mean, their variance, their quantiles, and what the variance does to a server.
//!
//! $$ \frac{E[(O-1)(I + O/2)]}{E[O-1]} = E I + \frac{E O}{2} + \frac{\tfrac{1}{2}\mathrm{Var}\,O + \mathrm{Cov}(I,O)}{E O - 1} \qquad
//!    \frac{E[I^2]}{E I} = E I + \frac{\mathrm{Var}\,I}{E I} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | I, O | input, output | tokens | of a prompt, of an answer, drawn for every request |
//! | first | `Spread::context` | tokens | what a sequence found decoding at random holds beyond the mean request: long answers stay longer, and are met more often |
//! | second | `Spread::prompt` | tokens | what a prompt token at random finds before it beyond the mean prompt, both sides halved: most prompt tokens are in long prompts |
//!
//! With fixed lengths every extra is exactly zero. Assumes: a step takes the same time whoever is in it. Ignores: that the
//! sum over the sequences of one batch varies too. Source: ours; length-biased sampling, the inspection paradox of renewal theory.

use crate::stats::{normal_quantile, ranked};
use crate::steady::Spread;
use rackmath_spec::lengths::Lengths;
use rackmath_units::float;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SHARES: usize = 128;

/// A distribution as what planning needs of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drawn {
    /// Mean, in tokens.
    pub mean: f64,
    /// Variance.
    pub variance: f64,
    /// The middle of each of so many equal shares, ascending; one value where all are alike.
    pub shares: Vec<f64>,
}

pub fn mean(lengths: &Lengths) -> f64 {
    match *lengths {
        Lengths::Fixed(n) => n,
        Lengths::Uniform { low, high } => f64::midpoint(low, high),
        Lengths::Exponential { mean } | Lengths::Lognormal { mean, .. } => mean,
    }
}

pub fn variance(lengths: &Lengths) -> f64 {
    match *lengths {
        Lengths::Fixed(_) => 0.0,
        // The square of a uniform step from 0 to 1 about its middle is a twelfth on average.
        Lengths::Uniform { low, high } => (high - low) * (high - low) / 12.0,
        Lengths::Exponential { mean } => mean * mean,
        Lengths::Lognormal { mean, cv } => (mean * cv) * (mean * cv),
    }
}

/// The length below which a share `p` of all lies, 0 < p < 1.
pub fn quantile(lengths: &Lengths, p: f64) -> f64 {
    match *lengths {
        Lengths::Fixed(n) => n,
        Lengths::Uniform { low, high } => low + p * (high - low),
        Lengths::Exponential { mean } => -mean * float::ln_1p(-p),
        Lengths::Lognormal { mean, cv } => {
            let sigma = float::ln_1p(cv * cv).sqrt();
            mean * float::exp(sigma * normal_quantile(p) - 0.5 * sigma * sigma)
        }
    }
}

impl Drawn {
    pub fn of(lengths: &Lengths) -> Self {
        let variance = variance(lengths);
        let n = if variance > 0.0 { SHARES } else { 1 };
        let shares = (0..n).map(|k| quantile(lengths, (k as f64 + 0.5) / n as f64)).collect();
        Self { mean: mean(lengths), variance, shares }
    }

    /// From lengths that were seen; none when there are none.
    pub fn seen(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let (first, last) = (*values.first()?, *values.last()?);
        if first >= last {
            return Some(Self { mean: first, variance: 0.0, shares: vec![first] });
        }
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        let shares = (0..SHARES).map(|k| ranked(&values, (k as f64 + 0.5) / SHARES as f64)).collect();
        Some(Self { mean, variance, shares })
    }

    pub fn cv(&self) -> f64 {
        self.variance.sqrt() / self.mean
    }
}

pub fn spread(input: &Drawn, output: &Drawn, covariance: f64) -> Spread {
    let steps = (output.mean - 1.0).max(1.0);
    Spread {
        context: (0.5 * output.variance + covariance) / steps,
        whole: (output.variance + covariance) / steps,
        prompt: input.variance / input.mean,
        prompt_cv2: input.variance / (input.mean * input.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use proptest::prelude::*;

    #[test]
    fn moments_and_quantiles_of_the_textbook() {
        for (text, mean, variance, p90) in [
            ("4k", 4000.0, 0.0, 4000.0),
            ("uniform:1k..4k", 2500.0, 750_000.0, 3700.0),
            // -ln(0.1) means.
            ("exponential:mean=1k", 1000.0, 1e6, 2_302.585_092_994),
            // cv 1: sigma = sqrt(ln 2) = 0.83255; exp(1.28155 x 0.83255 - 0.34657) = 2.0552.
            ("lognormal:mean=1k,cv=1", 1000.0, 1e6, 2_055.230_637),
        ] {
            let d = text.parse::<Lengths>().unwrap();
            close(Drawn::of(&d).mean, mean, 1e-12);
            close(1.0 + Drawn::of(&d).variance, 1.0 + variance, 1e-9);
            close(quantile(&d, 0.9), p90, 1e-6);
        }
    }

    #[test]
    fn what_drawn_lengths_add_by_hand() {
        // Answers of 101 and 301 tokens, prompts of 1000: 100 steps at 1000 + 50.5 and 300 at 1000 + 150.5 on average,
        // so (100 x 1050.5 + 300 x 1150.5) / 400 = 1125.5; the mean request holds 1000 + 100.5.
        let output = Drawn::seen(vec![101.0, 301.0]).unwrap();
        let s = spread(&Drawn::of(&Lengths::Fixed(1000.0)), &output, 0.0);
        assert!((1000.0 + 201.0 / 2.0 + s.context - 1125.5).abs() < 1e-9, "{s:?}");
        // (I, O) = (100, 11) or (300, 31): 10 steps at 105.5, 30 at 315.5: mean (1055 + 9465) / 40 = 263.
        let (i, o) = (Drawn::seen(vec![100.0, 300.0]).unwrap(), Drawn::seen(vec![11.0, 31.0]).unwrap());
        let s = spread(&i, &o, 100.0 * 10.0);
        // Whole: 10 x 111 + 30 x 331 over 40.
        assert!((200.0 + 10.5 + s.context - 263.0).abs() < 1e-9 && (221.0 + s.whole - 276.0).abs() < 1e-9, "{s:?}");
    }

    proptest! {
        #[test]
        fn the_moments_say_what_counting_says(
            pairs in prop::collection::vec((1.0f64..1e4, 2.0f64..1e3), 1..40)
        ) {
            let n = pairs.len() as f64;
            let mean = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>() / n;
            let (i, o) = (mean(&|p| p.0), mean(&|p| p.1));
            let covariance = mean(&|p| (p.0 - i) * (p.1 - o));
            let drawn = |f: fn(&(f64, f64)) -> f64| Drawn::seen(pairs.iter().map(f).collect()).unwrap();
            let s = spread(&drawn(|p| p.0), &drawn(|p| p.1), covariance);
            let steps = mean(&|p| p.1 - 1.0);
            let held = mean(&|p| (p.1 - 1.0) * (p.0 + p.1 / 2.0)) / steps;
            prop_assert!((i + o / 2.0 + s.context - held).abs() < 1e-6 * held, "{} {held}", s.context);
            let whole = mean(&|p| (p.1 - 1.0) * (p.0 + p.1)) / steps;
            prop_assert!((i + o + s.whole - whole).abs() < 1e-6 * whole);
            // The prompt of a prompt token at random.
            let seen = mean(&|p| p.0 * p.0) / i;
            prop_assert!((i + s.prompt - seen).abs() < 1e-6 * seen);
        }

        #[test]
        fn a_distribution_without_width_adds_nothing(n in 2.0f64..1e6, m in 2.0f64..1e6, kind in 0..4u8, cv in 0.01f64..1.5) {
            let of = |n: f64| match kind {
                0 => Lengths::Fixed(n),
                1 => Lengths::Uniform { low: n, high: n },
                _ => Lengths::Lognormal { mean: n, cv: 0.0 },
            };
            let (i, o) = (Drawn::of(&of(n)), Drawn::of(&of(m)));
            prop_assert_eq!((i.mean, &i.shares, o.mean), (n, &vec![n], m));
            prop_assert_eq!(spread(&i, &o, 0.0), Spread::default());
            prop_assert_eq!(Drawn::seen(vec![n; 7]).unwrap(), i);
            // With width, shares ascend and average to the mean.
            let (mean, d) = (n, Drawn::of(&Lengths::Lognormal { mean: n, cv }));
            prop_assert!(d.shares.windows(2).all(|two| two[0] <= two[1]));
            let average = d.shares.iter().sum::<f64>() / d.shares.len() as f64;
            // The last share hides its tail.
            prop_assert!(average < mean * 1.001 && average > mean * 0.95, "{average} {mean}");
        }
    }
}
