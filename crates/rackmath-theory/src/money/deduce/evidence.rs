//! What a price sheet says, as terms of a likelihood.
//!
//! $$ \ln P_j = \ln c_j(\theta) + \mu_{vendor} + \epsilon_j \quad \epsilon_j \sim t_4(s_j) \qquad
//!    p(\text{ratio}) = (1-\pi_v)\,t_4 + \pi_v\,p_{policy} $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | c_j | `Space` | cost of what is sold |
//! | s_j | scale | scale of the residual, with the rounding of list prices |
//! | pi_v | policy | chance that a ratio is the vendor's habit, which says nothing about the model |
//!
//! The input price sets the level; every other price enters as its ratio to the input price, because most vendors set it so.
//! With some chance even the level says nothing (`Level::indifferent`, fitted: near zero on real prices, near one on
//! shuffled ones). Every term is given relative to the peak of its t, so that a weight is about 1 at best and never overflows.

use super::space::{Decode, Draw, Factors, Space};
use crate::stats::normal::{T4_PEAK, normal_density, normal_quantile, t4, t4_relative};
use rackmath_spec::deduce::{LogNormal, Ratio, Seller};
use rackmath_units::float;
use strum::{Display, EnumCount};

/// What is known of a model's prices: US$ per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sheet {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cached: Option<f64>,
    /// Holding a million tokens for an hour, as a storage price.
    pub storage: Option<f64>,
    /// The same, from what a longer write costs more.
    pub write: Option<f64>,
    /// Tokens from which long-context prices apply, and these over those below: input, output.
    pub long: Option<(f64, Option<f64>, Option<f64>)>,
    /// Price and speed multiples of a fast mode.
    pub fast: Option<(f64, f64)>,
    /// Tokens per second one user sees.
    pub tokens_per_s: Option<f64>,
    /// Hosts whose median the prices are; 0 counts as 1.
    pub hosts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, EnumCount)]
pub enum Datum {
    #[strum(to_string = "input price")]
    Input,
    #[strum(to_string = "output price")]
    Output,
    #[strum(to_string = "cached read")]
    Cached,
    #[strum(to_string = "storage")]
    Storage,
    #[strum(to_string = "write premium")]
    Write,
    #[strum(to_string = "long-context input")]
    LongInput,
    #[strum(to_string = "long-context output")]
    LongOutput,
    #[strum(to_string = "fast mode")]
    Fast,
    #[strum(to_string = "tokens per second")]
    Speed,
}

impl Datum {
    /// The ratio a vendor may have a policy for.
    pub fn ratio(self) -> Option<Ratio> {
        match self {
            Self::Output => Some(Ratio::Output),
            Self::Cached => Some(Ratio::Cached),
            Self::Storage => Some(Ratio::Storage),
            Self::Write => Some(Ratio::Write),
            Self::LongInput => Some(Ratio::LongInput),
            Self::LongOutput => Some(Ratio::LongOutput),
            Self::Fast => Some(Ratio::Fast),
            Self::Input | Self::Speed => None,
        }
    }
}

/// Most numbers a sheet can have.
pub const DATA: usize = Datum::COUNT;

/// One term: an observed logarithm, its scale, and its policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) datum: Datum,
    pub(super) observed: f64,
    pub(super) centre: f64,
    pub(super) scale: f64,
    pub(super) policy: f64,
    pub(super) policy_shape: LogNormal,
    /// Whether the ratio to the input price, rather than the number itself, is what a policy would fix.
    pub(super) relative: bool,
    /// Density of the policy over the peak of the residual, times its chance, where it is the same for all points.
    fixed: Option<f64>,
}

impl Term {
    /// The policy's part of the likelihood at an input price.
    fn policy_part(&self, ln_input: f64) -> f64 {
        let ratio = if self.relative { self.observed - ln_input } else { self.observed };
        let density = normal_density(ratio, self.policy_shape.centre, self.policy_shape.scale);
        self.policy * density * self.scale / T4_PEAK
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub(super) terms: Vec<Term>,
    pub(super) ln_input: Option<f64>,
    pub(super) input_scale: f64,
    ln_long: f64,
    long: f64,
    pub(super) hosts: usize,
}

impl Evidence {
    /// Reads a sheet; `policy` gives the chance of policy of a ratio.
    pub fn new(space: &Space, sheet: &Sheet, policy: impl Fn(Ratio) -> f64) -> Self {
        let p = &space.priors;
        let input_scale = level_scale(space, sheet.hosts);
        let ratio_scale = hypot(p.level.ratio_scale, p.ratio.rounding);
        let none = LogNormal { centre: 0.0, scale: 1.0 };
        let ln_input = sheet.input.map(float::ln);
        let mut terms = Vec::with_capacity(DATA);
        let mut add = |datum: Datum, value: Option<f64>, centre: f64, scale: f64, relative: bool| {
            if let Some(value) = value {
                let indifferent = (p.level.indifferent, p.level.indifferent_price);
                let (policy, policy_shape) = match datum.ratio() {
                    Some(ratio) => (policy(ratio), p.policy[&ratio]),
                    None if datum == Datum::Input => indifferent,
                    None => (0.0, none),
                };
                let observed = float::ln(value);
                let mut term = Term { datum, observed, centre, scale, policy, policy_shape, relative, fixed: None };
                if ln_input.is_some() || !relative {
                    term.fixed = Some(term.policy_part(ln_input.unwrap_or(0.0)));
                }
                terms.push(term);
            }
        };
        add(Datum::Input, sheet.input, 0.0, input_scale, false);
        add(Datum::Output, sheet.output, p.level.ratio_offset, ratio_scale, true);
        let read = p.ratio.read_usd_per_tb;
        // A million tokens of so many bytes are a millionth of so many terabytes, or a thousandth of so many gigabytes.
        add(Datum::Cached, sheet.cached, read.centre + float::ln(1e-6), hypot(read.scale, p.ratio.rounding), true);
        let hold = p.ratio.hold.centre + float::ln(1e-3);
        add(Datum::Storage, sheet.storage, hold, p.ratio.hold.scale, true);
        add(Datum::Write, sheet.write, hold, p.ratio.hold.scale, true);
        add(Datum::LongInput, sheet.long.and_then(|l| l.1), p.ratio.long.centre, p.ratio.long.scale, false);
        add(Datum::LongOutput, sheet.long.and_then(|l| l.2), p.ratio.long.centre, p.ratio.long.scale, false);
        // What a fast mode tells is x = m (s - 1) / (m - 1), if the batch is the only lever.
        let x = sheet.fast.map(|(m, s)| m * (s - 1.0) / (m - 1.0));
        add(Datum::Fast, x, p.ratio.fast.centre, p.ratio.fast.scale, false);
        let speed = p.ratio.speed_tb_per_s;
        add(Datum::Speed, sheet.tokens_per_s, speed.centre + float::ln(1e12), speed.scale, false);
        let long = sheet.long.map_or(1.0, |l| l.0);
        Self { terms, ln_input, input_scale, ln_long: float::ln(long), long, hosts: sheet.hosts }
    }

    pub fn data(&self) -> impl Iterator<Item = Datum> {
        self.terms.iter().map(|t| t.datum)
    }

    /// What the model predicts for a term, before its centre.
    pub(super) fn predicted(&self, space: &Space, datum: Datum, point: &Point) -> f64 {
        let (d, f) = (&point.draw, &point.factors);
        match datum {
            Datum::Input => space.expected_input(d),
            Datum::Output => point.ln_input + float::ln(point.decode.over_input(point.context)),
            Datum::Cached => d.ln_kv,
            Datum::Storage | Datum::Write => d.ln_kv + space.ln_hold(d) + f.ln_markup,
            // Attention of a prompt is half that of its last token.
            Datum::LongInput => float::ln(
                (2.0 + float::exp(self.ln_long - d.ln_attention)) / (2.0 + float::exp(d.ln_context - d.ln_attention)),
            ),
            Datum::LongOutput => {
                let decode = &point.decode;
                float::ln(decode.over_input(self.long) / decode.over_input(point.context))
            }
            // x = B k_r L / (N_t w)
            Datum::Fast => {
                let weights = d.ln_active + d.ln_sparsity + space.ln_width(d);
                space.ln_batch(d) + d.ln_kv + d.ln_read + d.ln_context - weights
            }
            Datum::Speed => -d.ln_active - space.ln_width(d),
        }
    }

    /// How likely each term is, relative to the peak of its residual.
    pub(super) fn likelihoods(&self, space: &Space, point: &Point, out: &mut [f64; DATA]) {
        for (term, out) in self.terms.iter().zip(out) {
            let q = (term.observed - self.predicted(space, term.datum, point) - term.centre) / term.scale;
            let policy = term.fixed.unwrap_or_else(|| term.policy_part(point.ln_input));
            *out = (1.0 - term.policy) * t4_relative(q) + policy;
        }
    }

    /// A point of the prior, its input price (given, or drawn where it is not known), and the factors of that price.
    pub(super) fn point(&self, space: &Space, mut u: impl FnMut(usize) -> f64) -> Point {
        let draw = space.draw(self.hosts, &mut u);
        let ln_input = self.ln_input.unwrap_or_else(|| {
            let (z, a, b) = (normal_quantile(u(15)), u(16), u(17));
            space.expected_input(&draw) + self.input_scale * t4(z, a, b)
        });
        Point::new(space, draw, ln_input)
    }
}

/// A point of the prior with its input price, and what follows from both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) draw: Draw,
    pub(super) factors: Factors,
    ln_input: f64,
    decode: Decode,
    context: f64,
}

impl Point {
    pub(super) fn new(space: &Space, draw: Draw, ln_input: f64) -> Self {
        let factors = space.factors(&draw, ln_input);
        let decode = space.decode(&draw, &factors);
        Self { draw, factors, ln_input, decode, context: float::exp(draw.ln_context) }
    }
}

/// Scale of the level's residual: between models, between hosts (a median of n has 1.57 / n of their variance), rounding.
fn level_scale(space: &Space, hosts: usize) -> f64 {
    let p = &space.priors;
    let between = match space.seller {
        Seller::Host if hosts > 1 => p.level.host_scale * (1.57 / hosts as f64).sqrt().min(1.0),
        Seller::Host => p.level.host_scale,
        // 0.836: the t whose 80 % interval is that of a normal mark-up.
        Seller::FirstParty => 0.836 * p.markup.first_party.scale,
    };
    hypot(hypot(p.level.scale, between), p.ratio.rounding)
}

fn hypot(a: f64, b: f64) -> f64 {
    (a * a + b * b).sqrt()
}
