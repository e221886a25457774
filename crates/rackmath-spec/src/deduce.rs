//! What the deduction of a model from its prices knows beforehand: priors, policies of vendors, prices of hosts.
//!
//! Everything here is data of `catalog/deduce`; the equations are in `rackmath_theory::deduce`.

use crate::error::one_of;
use crate::file::noun::{cited, noun, wrong};
use crate::{Chip, SpecError};
use rackmath_units::float;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::Arc;
use strum::{IntoStaticStr, VariantArray};

/// Lowest and highest price per million tokens that is believed.
pub const PRICE_RANGE: (f64, f64) = (0.001, 1000.0);

/// Two-sided 5 to 95 % range of a normal variable, in standard deviations.
const RANGE_SDS: f64 = 2.0 * 1.644_853_626_951_472_2;

/// A logarithm that is normal: its centre and its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    /// Natural logarithm of the median.
    pub centre: f64,
    /// Standard deviation, or the scale of Student's t where the field says so.
    pub scale: f64,
}

/// A logarithm that is uniform between two ends, given as natural logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogUniform {
    pub low: f64,
    pub high: f64,
}

/// A spread as files write it: a range, a median in its range, or a median and a scale.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spread {
    low: Option<f64>,
    high: Option<f64>,
    median: Option<f64>,
    scale: Option<f64>,
    #[serde(rename = "source")]
    _source: String,
}

impl<'de> Deserialize<'de> for LogUniform {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Spread::deserialize(d)? {
            Spread { low: Some(low), high: Some(high), .. } if low > 0.0 && high > low && high.is_finite() => {
                Ok(Self { low: float::ln(low), high: float::ln(high) })
            }
            _ => Err(wrong("a positive range from low to high")),
        }
    }
}

impl<'de> Deserialize<'de> for LogNormal {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let Spread { low, high, median, scale, .. } = Spread::deserialize(d)?;
        let median = median.filter(|m| *m > 0.0 && m.is_finite()).ok_or_else(|| wrong("a positive median"))?;
        let scale = match (low, high) {
            (None, None) => scale.filter(|s| *s > 0.0 && s.is_finite()),
            (Some(low), Some(high)) if low > 0.0 && low < median && median < high && high.is_finite() => {
                Some((float::ln(high) - float::ln(low)) / RANGE_SDS)
            }
            _ => None,
        };
        let scale = scale.ok_or_else(|| wrong("a positive scale, or a median between low and high"))?;
        Ok(Self { centre: float::ln(median), scale })
    }
}

/// How likely a chip is, and what an hour of it costs; files write its name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServingChip<C = Arc<Chip>> {
    #[serde(rename = "id")]
    pub chip: C,
    pub share: f64,
    pub usd_per_hour: LogNormal,
}

/// Where a cache is kept, how likely that is, and what holding a gigabyte for an hour costs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTier {
    pub name: String,
    pub share: f64,
    #[serde(deserialize_with = "value")]
    pub usd_per_gb_hour: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seller {
    /// A host of open weights, who competes with others.
    Host,
    /// The maker of a closed model.
    FirstParty,
}

/// A ratio of prices that may follow cost or policy; over the price of input unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Ratio {
    Output,
    Cached,
    /// Premium of a write that is kept longer.
    Write,
    Storage,
    /// Input above the long-context threshold over input below.
    LongInput,
    /// Output above the threshold over output below.
    LongOutput,
    Fast,
}

/// What is known of a model before its price.
#[derive(Clone, Debug, PartialEq)]
pub struct DeducePriors {
    pub architecture: Architecture,
    pub serving: Serving,
    pub chips: Vec<ServingChip>,
    pub markup: Markup,
    pub tiers: Vec<CacheTier>,
    pub ratio: RatioCosts,
    /// What each ratio looks like when it is policy.
    pub policy: BTreeMap<Ratio, LogNormal>,
    /// How prices lie above ideal cost, fitted on open-weight hosts.
    pub level: Level,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    pub active_params: LogUniform,
    #[serde(deserialize_with = "share")]
    pub dense_share: f64,
    /// Total over active parameters of expert models.
    pub sparsity: LogUniform,
    pub kv_bytes: LogUniform,
    #[serde(deserialize_with = "share")]
    pub full_read_share: f64,
    pub read_share: LogUniform,
    /// Context at which attention FLOP equal weight FLOP.
    pub attention_context: LogUniform,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serving {
    /// Bytes per weight and their shares.
    #[serde(deserialize_with = "widths")]
    pub widths: [(f64, f64); 3],
    pub context: LogNormal,
    pub batch_over_balance: LogNormal,
    pub mfu_prefill: LogNormal,
    pub mbu: LogNormal,
    /// Share of machine hours that are sold.
    pub utilisation: LogNormal,
    pub accepted: LogUniform,
}

/// Mark-up on realised cost, of hosts and of makers of closed models.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Markup {
    pub host: LogNormal,
    pub first_party: LogNormal,
}

/// What ratios look like when they follow cost.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioCosts {
    /// Rounding of list prices, in logarithms.
    #[serde(deserialize_with = "share")]
    pub rounding: f64,
    /// Dollars per terabyte of cache read, where the cached price follows cost.
    pub read_usd_per_tb: LogNormal,
    /// Storage price over holding cost times mark-up.
    pub hold: LogNormal,
    pub long: LogNormal,
    /// KV over weight traffic from a fast mode, over the model's.
    pub fast: LogNormal,
    /// Tokens per second and user times active bytes.
    pub speed_tb_per_s: LogNormal,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Logarithm of price over ideal cost of a dense model.
    pub offset: f64,
    /// Power of the sparsity by which expert models cost more.
    pub sparsity_exponent: f64,
    /// Power of the size by which large models cost more, or less, than in proportion.
    pub size_exponent: f64,
    /// Active parameters at which the size makes no difference, as a logarithm.
    #[serde(rename = "reference_size", deserialize_with = "ln")]
    pub ln_reference_size: f64,
    /// Power of the number of hosts with a price of their own by which prices fall.
    pub rivalry_exponent: f64,
    /// Hosts of a model at which their number makes no difference, as a logarithm.
    #[serde(rename = "usual_hosts", deserialize_with = "ln")]
    pub ln_usual_hosts: f64,
    /// Power of the sparsity by which the batch falls behind the balance batch.
    pub batch_exponent: f64,
    /// Share of the serving priors' spread that is left in a median over hosts.
    pub serving_share: f64,
    pub scale: f64,
    /// Scale of the residual between hosts of one model.
    pub host_scale: f64,
    pub ratio_offset: f64,
    pub ratio_scale: f64,
    /// Chance that prices say nothing about size at all.
    pub indifferent: f64,
    #[serde(flatten, deserialize_with = "indifferent")]
    pub indifferent_price: LogNormal,
    /// Active parameters of the models that hosts serve: the middle as a logarithm, and the spread of logarithms.
    #[serde(rename = "served_size", deserialize_with = "ln")]
    pub ln_served_size: f64,
    pub served_spread: f64,
}

impl Level {
    /// Logarithm of how many more hosts than usual sell a model. One price alone does not say how many others there are.
    pub fn ln_rivals(&self, hosts: usize) -> f64 {
        if hosts > 1 { float::ln(hosts as f64) - self.ln_usual_hosts } else { 0.0 }
    }
}

/// How often a vendor uses the same ratio: models, those at the commonest value, that value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Habit {
    pub models: u32,
    pub same: u32,
    pub value: f64,
}

impl<'de> Deserialize<'de> for Habit {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let (models, same, value) = Deserialize::deserialize(d)?;
        let sound = same <= models && models > 0 && value > 0.0;
        sound.then_some(Self { models, same, value }).ok_or_else(|| wrong("models, models at the ratio, the ratio"))
    }
}

impl Habit {
    pub fn chance(&self) -> f64 {
        (f64::from(self.same.saturating_sub(1)) / f64::from(self.models.max(2) - 1)).clamp(0.05, 0.98)
    }

    /// Whether it never or hardly ever moves, so that it says nothing about one model.
    pub fn fixed(&self) -> bool {
        self.models >= 3 && f64::from(self.same) >= 0.9 * f64::from(self.models)
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policies {
    #[serde(rename = "vendor")]
    pub vendors: BTreeMap<String, BTreeMap<Ratio, Habit>>,
    /// Chance of policy at a vendor that is not known.
    #[serde(deserialize_with = "chances")]
    pub pooled: BTreeMap<Ratio, f64>,
    /// Chance of policy at hosts of open weights.
    #[serde(deserialize_with = "chances")]
    pub host: BTreeMap<Ratio, f64>,
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

/// What a host charges, in dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPrice {
    pub host: String,
    pub source: String,
    #[serde(deserialize_with = "price")]
    pub input: f64,
    #[serde(deserialize_with = "price")]
    pub output: f64,
    #[serde(default, deserialize_with = "price_or_none")]
    pub cached: Option<f64>,
    #[serde(default)]
    pub maker: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedModel {
    pub id: String,
    /// The catalogue model with its architecture.
    pub config: String,
    pub hosts: Vec<HostPrice>,
}

const HEAD: [&str; 4] = ["id", "name", "form", "as_of"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorsFile {
    architecture: Architecture,
    serving: Serving,
    chip: Vec<ServingChip<String>>,
    markup: Markup,
    tier: Vec<CacheTier>,
    ratio: RatioCosts,
    policy: BTreeMap<String, LogNormal>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostsFile {
    model: Vec<HostedModel>,
}

pub(crate) fn read_priors(
    text: &str,
    level: Level,
    chip: impl Fn(&str) -> Result<Arc<Chip>, SpecError>,
) -> Result<DeducePriors, SpecError> {
    let file = "deduce priors";
    let notes =
        ["architecture.*", "serving.*", "chip.usd_per_hour", "markup.*", "tier.usd_per_gb_hour", "ratio.*", "policy.*"];
    let notes = notes.map(|table| format!("{table}.note"));
    let explains: Vec<&str> = HEAD.into_iter().chain(notes.iter().map(String::as_str)).collect();
    let PriorsFile { architecture, serving, chip: named, markup, tier: tiers, ratio, policy: spreads } =
        cited(file, "", text, &explains)?;
    whole(serving.widths.iter().map(|w| w.1), "serving.widths.shares")?;
    whole(named.iter().map(|c| c.share), "chip.share")?;
    whole(tiers.iter().map(|t| t.share), "tier.share")?;
    let found = |ServingChip { chip: id, share, usd_per_hour }: ServingChip<String>| {
        chip(&id).map(|chip| ServingChip { chip, share, usd_per_hour })
    };
    let chips = named.into_iter().map(found).collect::<Result<_, _>>()?;
    let mut policy = BTreeMap::new();
    for (word, spread) in spreads {
        // A write premium and a storage price both say what an hour costs.
        let hold = word == "hold";
        let ratios = if hold { vec![Ratio::Write, Ratio::Storage] } else { vec![one_of("ratio", &word)?] };
        policy.extend(ratios.into_iter().map(|ratio| (ratio, spread)));
    }
    if policy.len() != Ratio::VARIANTS.len() {
        return Err(SpecError::field(file, "policy", format!("{} ratios", policy.len()), "every ratio"));
    }
    Ok(DeducePriors { architecture, serving, chips, markup, tiers, ratio, policy, level })
}

pub(crate) fn read_level(text: &str) -> Result<Level, SpecError> {
    noun("deduce level", "", text, &["id", "name", "form", "as_of", "source"])
}

pub(crate) fn read_policies(text: &str) -> Result<Policies, SpecError> {
    noun("deduce policies", "", text, &HEAD)
}

pub(crate) fn read_hosts(text: &str) -> Result<Vec<HostedModel>, SpecError> {
    cited("deduce hosts", "", text, &HEAD).map(|file: HostsFile| file.model)
}

fn whole(shares: impl Iterator<Item = f64> + Clone, field: &str) -> Result<(), SpecError> {
    let sum: f64 = shares.clone().sum();
    if shares.clone().all(|share| share >= 0.0) && (sum - 1.0).abs() < 1e-6 {
        return Ok(());
    }
    Err(SpecError::field("deduce priors", field, sum, "shares that add up to 1"))
}

fn value<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    crate::Cited::deserialize(d).map(|cited| cited.value)
}

fn share<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    let share = value(d)?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong("0 to 1")) }
}

fn ln<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    f64::deserialize(d).map(float::ln)
}

fn widths<'de, D: Deserializer<'de>>(d: D) -> Result<[(f64, f64); 3], D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Widths {
        bytes: [f64; 3],
        shares: [f64; 3],
        #[serde(rename = "source")]
        _source: String,
    }
    let Widths { bytes, shares, .. } = Widths::deserialize(d)?;
    Ok(std::array::from_fn(|i| (bytes[i], shares[i])))
}

fn indifferent<'de, D: Deserializer<'de>>(d: D) -> Result<LogNormal, D::Error> {
    #[derive(Deserialize)]
    struct Indifferent {
        indifferent_median: f64,
        indifferent_scale: f64,
    }
    let Indifferent { indifferent_median, indifferent_scale: scale } = Indifferent::deserialize(d)?;
    Ok(LogNormal { centre: float::ln(indifferent_median), scale })
}

fn chances<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<Ratio, f64>, D::Error> {
    let all = BTreeMap::<Ratio, f64>::deserialize(d)?;
    Ok(all.into_iter().map(|(ratio, chance)| (ratio, chance.clamp(0.0, 1.0))).collect())
}

fn price<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    let price = f64::deserialize(d)?;
    let believed = (PRICE_RANGE.0..=PRICE_RANGE.1).contains(&price);
    if believed { Ok(price) } else { Err(wrong("0.001 to 1000 dollars per million tokens")) }
}

fn price_or_none<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    price(d).map(Some)
}
