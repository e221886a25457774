//! What the deduction of a model from its prices knows beforehand: priors, policies of vendors, prices of hosts.
//!
//! Everything here is data of `catalog/deduce`; the equations are in `rackmath_theory::deduce`.

use crate::{Chip, SpecError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A logarithm that is normal: its centre and its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    /// Natural logarithm of the median.
    pub centre: f64,
    /// Standard deviation, or the scale of Student's t where the field says so.
    pub scale: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogUniform {
    /// Natural logarithm of the lower end.
    pub low: f64,
    /// Natural logarithm of the upper end.
    pub high: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServingChip {
    pub chip: Arc<Chip>,
    /// How likely it is.
    pub share: f64,
    pub usd_per_hour: LogNormal,
}

/// Where a cache is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheTier {
    pub name: String,
    /// How likely it is.
    pub share: f64,
    /// What holding a gigabyte for an hour costs.
    pub usd_per_gb_hour: f64,
}

/// Who sells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seller {
    /// A host of open weights, who competes with others.
    Host,
    /// The maker of a closed model.
    FirstParty,
}

/// A ratio of prices that may follow cost or policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ratio {
    /// Output over input.
    Output,
    /// Cached read over input.
    Cached,
    /// Premium of a write that is kept longer, over input.
    Write,
    /// Storage per hour over input.
    Storage,
    /// Input above the long-context threshold over input below.
    LongInput,
    /// Output above the threshold over output below.
    LongOutput,
    /// Fast mode over standard.
    Fast,
}

impl Ratio {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Output, Self::Cached, Self::Write, Self::Storage, Self::LongInput, Self::LongOutput, Self::Fast];

    /// The word used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Cached => "cached",
            Self::Write => "write",
            Self::Storage => "storage",
            Self::LongInput => "long_input",
            Self::LongOutput => "long_output",
            Self::Fast => "fast",
        }
    }
}

/// What is known of a model before its price.
#[derive(Clone, Debug, PartialEq)]
pub struct DeducePriors {
    pub active: LogUniform,
    pub dense_share: f64,
    /// Total over active parameters of expert models.
    pub sparsity: LogUniform,
    /// KV bytes stored per token.
    pub kv: LogUniform,
    pub full_read_share: f64,
    pub read_share: LogUniform,
    /// Context at which attention FLOP equal weight FLOP.
    pub attention_context: LogUniform,
    /// Bytes per weight and their shares.
    pub widths: [(f64, f64); 3],
    /// Context while decoding.
    pub context: LogNormal,
    pub batch: LogNormal,
    /// Model FLOP utilisation of prefill.
    pub mfu: LogNormal,
    /// Bandwidth utilisation of decode.
    pub mbu: LogNormal,
    /// Share of machine hours that are sold.
    pub utilisation: LogNormal,
    /// Accepted tokens per step.
    pub accepted: LogUniform,
    pub chips: Vec<ServingChip>,
    /// Mark-up of hosts.
    pub markup_host: LogNormal,
    /// Mark-up of makers of closed models.
    pub markup_first_party: LogNormal,
    pub tiers: Vec<CacheTier>,
    /// Rounding of list prices, in logarithms.
    pub rounding: f64,
    /// Dollars per terabyte of cache read, where the cached price follows cost.
    pub read_usd_per_tb: LogNormal,
    /// Storage price over holding cost times mark-up.
    pub hold: LogNormal,
    /// Long-context step over cost step.
    pub long: LogNormal,
    /// KV over weight traffic from a fast mode, over the model's.
    pub fast: LogNormal,
    /// Tokens per second and user times active bytes, in TB/s.
    pub speed_tb_per_s: LogNormal,
    /// What each ratio looks like when it is policy.
    pub policy: BTreeMap<Ratio, LogNormal>,
    /// How prices lie above ideal cost, fitted on open-weight hosts.
    pub level: Level,
}

/// How far prices of hosts lie above ideal cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Logarithm of price over ideal cost of a dense model.
    pub offset: f64,
    /// Power of the sparsity by which expert models cost more.
    pub sparsity_exponent: f64,
    /// Power of the size by which large models cost more, or less, than in proportion.
    pub size_exponent: f64,
    /// Active parameters at which the size makes no difference, as a logarithm.
    pub ln_reference_size: f64,
    /// Power of the sparsity by which the batch falls behind the balance batch.
    pub batch_exponent: f64,
    /// Share of the serving priors' spread that is left in a median over hosts.
    pub serving_share: f64,
    /// Scale of the residual between models.
    pub scale: f64,
    /// Scale of the residual between hosts of one model.
    pub host_scale: f64,
    pub ratio_offset: f64,
    pub ratio_scale: f64,
    /// Chance that prices say nothing about size at all.
    pub indifferent: f64,
    /// What prices look like then.
    pub indifferent_price: LogNormal,
}

/// How often a vendor uses the same ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Habit {
    pub models: u32,
    /// Models at the commonest value.
    pub same: u32,
    pub value: f64,
}

impl Habit {
    /// Chance that the ratio is policy.
    pub fn chance(&self) -> f64 {
        (f64::from(self.same.saturating_sub(1)) / f64::from(self.models.max(2) - 1)).clamp(0.05, 0.98)
    }

    /// Whether it never or hardly ever moves, so that it says nothing about one model.
    pub fn fixed(&self) -> bool {
        self.models >= 3 && f64::from(self.same) >= 0.9 * f64::from(self.models)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    pub vendors: BTreeMap<String, BTreeMap<Ratio, Habit>>,
    /// Chance of policy at a vendor that is not known.
    pub pooled: BTreeMap<Ratio, f64>,
    /// Chance of policy at hosts of open weights.
    pub host: BTreeMap<Ratio, f64>,
    /// Where it comes from.
    pub source: String,
}

impl Policies {
    /// A vendor's habits; a name that is not known is refused with the nearest.
    pub fn vendor(&self, name: &str) -> Result<&BTreeMap<Ratio, Habit>, SpecError> {
        self.vendors
            .get(&name.trim().to_ascii_lowercase())
            .ok_or_else(|| SpecError::unknown("vendor", name, self.vendors.keys().map(String::as_str)))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct HostPrice {
    pub host: String,
    /// Dollars per million input tokens.
    pub input: f64,
    /// Dollars per million output tokens.
    pub output: f64,
    /// Dollars per million cached tokens.
    pub cached: Option<f64>,
    pub maker: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HostedModel {
    /// Its name.
    pub id: String,
    /// The catalogue model with its architecture.
    pub config: String,
    pub hosts: Vec<HostPrice>,
}

/// One model's prices as a user hands them in: US$ per million tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceSheet {
    /// Who sells.
    pub vendor: Option<String>,
    /// What is sold.
    pub model: Option<String>,
    /// When it was so.
    pub as_of: Option<String>,
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cached: Option<f64>,
    /// Cache write kept for five minutes.
    pub write_5m: Option<f64>,
    /// Cache write kept for an hour.
    pub write_1h: Option<f64>,
    pub storage: Option<f64>,
    /// Tokens from which long-context prices apply.
    pub long_above: Option<f64>,
    pub long_input: Option<f64>,
    pub long_output: Option<f64>,
    pub fast_price: Option<f64>,
    pub fast_speed: Option<f64>,
    /// Measured tokens per second and user.
    pub tokens_per_s: Option<f64>,
    /// Hosts whose median the prices are.
    pub hosts: Option<u64>,
}
