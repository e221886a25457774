//! One surface of loss over parameters and tokens, and the curves on it.

use super::TRAIN_FLOP;
use rackmath_units::{Flop, Params, Tokens, float};

/// A model of so many parameters trained on so many tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub params: Params,
    pub tokens: Tokens,
}

impl Point {
    pub fn flop(self) -> Flop {
        Flop::flop(TRAIN_FLOP * self.params.get() * self.tokens.get())
    }

    pub fn ratio(self) -> f64 {
        self.tokens.get() / self.params.get()
    }
}

/// A resource that is worth ever less beyond a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    /// Up to here it counts in full.
    pub unique: f64,
    /// Repeats after which a further one is worth 1/e.
    pub star: f64,
}

impl Repeats {
    fn worth(self, x: f64) -> f64 {
        let repeats = x / self.unique - 1.0;
        if repeats <= 0.0 { x } else { self.unique * (1.0 - self.star * float::exp_m1(-repeats / self.star)) }
    }

    /// d ln worth / d ln x.
    fn slope(self, x: f64) -> f64 {
        let repeats = x / self.unique - 1.0;
        if repeats <= 0.0 { 1.0 } else { float::exp(-repeats / self.star) * x / self.worth(x) }
    }

    /// The x that is worth `worth`, or nothing when no x is.
    fn inverse(self, worth: f64) -> Option<f64> {
        if worth <= self.unique {
            return Some(worth);
        }
        let left = (worth / self.unique - 1.0) / self.star;
        (left < 1.0).then(|| self.unique * (1.0 - self.star * float::ln_1p(-left)))
    }
}

/// L(N, D) = e + sum a N^-alpha + b D^-beta, each of N and D possibly worth less than it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    pub e: f64,
    /// Weight and exponent of each term of the parameters.
    pub terms: Vec<(f64, f64)>,
    /// Weight and exponent of the data.
    pub b: (f64, f64),
    pub data: Option<Repeats>,
    pub size: Option<Repeats>,
}

/// Points are searched between these: beyond them no model was ever thought of.
const SMALLEST: f64 = 1.0;
const LARGEST: f64 = 1e30;

impl Surface {
    pub fn new(e: f64, terms: Vec<(f64, f64)>, b: (f64, f64)) -> Self {
        Self { e, terms, b, data: None, size: None }
    }

    pub fn loss(&self, at: Point) -> f64 {
        self.e + self.size_loss(at.params.get()) + self.data_loss(at.tokens.get())
    }

    fn size_loss(&self, n: f64) -> f64 {
        let n = self.size.map_or(n, |r| r.worth(n));
        self.terms.iter().map(|(a, alpha)| a * float::pow(n, -alpha)).sum()
    }

    fn data_loss(&self, d: f64) -> f64 {
        self.data_loss_at_worth(self.data.map_or(d, |r| r.worth(d)))
    }

    /// -dL/d ln N.
    pub fn size_pull(&self, params: Params) -> f64 {
        let n = params.get();
        let (worth, slope) = self.size.map_or((n, 1.0), |r| (r.worth(n), r.slope(n)));
        slope * self.terms.iter().map(|(a, alpha)| alpha * a * float::pow(worth, -alpha)).sum::<f64>()
    }

    /// -dL/d ln D.
    pub fn data_pull(&self, tokens: Tokens) -> f64 {
        self.data.map_or(1.0, |r| r.slope(tokens.get())) * self.b.1 * self.data_loss(tokens.get())
    }

    pub fn compute_optimum(&self, flop: Flop) -> Point {
        let nd = flop.get() / TRAIN_FLOP;
        let at = |ln_n: f64| {
            let n = float::exp(ln_n);
            Point { params: Params::new(n), tokens: Tokens::new(nd / n) }
        };
        // With more parameters, and so fewer tokens, parameters pull less and data pulls more.
        let balance = |ln_n: f64| {
            let p = at(ln_n);
            self.data_pull(p.tokens) - self.size_pull(p.params)
        };
        let (low, high) = (float::ln(nd / LARGEST), float::ln(nd / SMALLEST));
        let (low, high) = (low.max(float::ln(SMALLEST)), high.min(float::ln(LARGEST)));
        // Where the surface is so lopsided that no balance exists the optimum lies at an end.
        at(float::root(low, high, balance).unwrap_or(if balance(low) > 0.0 { low } else { high }))
    }

    /// The compute-optimal point with so many parameters: the data at which both pull alike.
    pub fn optimal_tokens(&self, params: Params) -> Option<Tokens> {
        self.tokens_at_share(params, 1.0)
    }

    /// Tokens at which the training share of the cost is `share`, were this point an optimum: eps_D / eps_N = share.
    pub fn tokens_at_share(&self, params: Params, share: f64) -> Option<Tokens> {
        let (pull, tokens) = (self.size_pull(params) * share, |ln_d: f64| Tokens::new(float::exp(ln_d)));
        let rising = |ln_d: f64| pull - self.data_pull(tokens(ln_d));
        float::root(float::ln(SMALLEST), float::ln(LARGEST), rising).map(tokens)
    }

    /// Tokens with which so many parameters reach a loss; nothing when no number of tokens does.
    pub fn tokens_for(&self, params: Params, loss: f64) -> Option<Tokens> {
        let left = loss - self.e - self.size_loss(params.get());
        if left <= 0.0 {
            return None;
        }
        let worth = float::pow(self.b.0 / left, 1.0 / self.b.1);
        let d = self.data.map_or(Some(worth), |r| r.inverse(worth))?;
        (d.is_finite() && d <= LARGEST).then(|| Tokens::new(d))
    }

    /// The fewest parameters that reach a loss with unlimited data; nothing when none do.
    pub fn least_params(&self, loss: f64) -> Option<Params> {
        // With data limited, even endless repetition leaves this.
        let data = self.data.map_or(0.0, |r| self.data_loss_at_worth(r.unique * (1.0 + r.star)));
        let over = |ln_n: f64| loss - self.e - data - self.size_loss(float::exp(ln_n));
        let found = float::root(float::ln(SMALLEST), float::ln(LARGEST), over)?;
        Some(Params::new(float::exp(found)))
    }

    fn data_loss_at_worth(&self, worth: f64) -> f64 {
        self.b.0 * float::pow(worth, -self.b.1)
    }

    /// Points of equal loss, from the fewest parameters on, over so many factors of e in N.
    pub fn iso_loss(&self, loss: f64, params: (Params, Params), points: usize) -> Vec<Point> {
        float::spaced(params.0.get(), params.1.get(), points)
            .filter_map(|n| {
                let params = Params::new(n);
                Some(Point { params, tokens: self.tokens_for(params, loss)? })
            })
            .collect()
    }

    pub fn iso_flop(&self, flop: Flop, params: (Params, Params), points: usize) -> Vec<(Point, f64)> {
        float::spaced(params.0.get(), params.1.get(), points)
            .map(|n| {
                let tokens = Tokens::new(flop.get() / TRAIN_FLOP / n);
                let point = Point { params: Params::new(n), tokens };
                (point, self.loss(point))
            })
            .collect()
    }
}
