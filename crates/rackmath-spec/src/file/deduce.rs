//! Reads the files of `catalog/deduce`.

use super::noun::{cited, noun};
use crate::deduce::{
    CacheTier, DeducePriors, Habit, HostPrice, HostedModel, Level, LogNormal, LogUniform, Policies, Ratio, ServingChip,
};
use crate::{Chip, SpecError};
use rackmath_units::float;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lowest and highest price per million tokens that is believed.
pub const PRICE_RANGE: (f64, f64) = (0.001, 1000.0);

/// Two-sided 5 to 95 % range of a normal variable, in standard deviations.
const RANGE_SDS: f64 = 2.0 * 1.644_853_626_951_472_2;

/// Keys for readers of the files alone.
const HEAD: [&str; 4] = ["id", "name", "form", "as_of"];
const PRIORS: [&str; 11] = [
    "id",
    "name",
    "form",
    "as_of",
    "architecture.*.note",
    "serving.*.note",
    "chip.usd_per_hour.note",
    "markup.*.note",
    "tier.usd_per_gb_hour.note",
    "ratio.*.note",
    "policy.*.note",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPriors {
    architecture: RawArchitecture,
    serving: RawServing,
    chip: Vec<RawChip>,
    markup: RawMarkup,
    tier: Vec<RawTier>,
    ratio: RawRatio,
    policy: BTreeMap<String, RawScaled>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    low: f64,
    high: f64,
    median: Option<f64>,
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScaled {
    median: f64,
    scale: f64,
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawValue {
    value: f64,
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArchitecture {
    active_params: RawRange,
    dense_share: RawValue,
    sparsity: RawRange,
    kv_bytes: RawRange,
    full_read_share: RawValue,
    read_share: RawRange,
    attention_context: RawRange,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServing {
    widths: RawWidths,
    context: RawRange,
    batch_over_balance: RawRange,
    mfu_prefill: RawRange,
    mbu: RawRange,
    utilisation: RawRange,
    accepted: RawRange,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWidths {
    bytes: [f64; 3],
    shares: [f64; 3],
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChip {
    id: String,
    share: f64,
    usd_per_hour: RawRange,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMarkup {
    host: RawRange,
    first_party: RawRange,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTier {
    name: String,
    share: f64,
    usd_per_gb_hour: RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRatio {
    rounding: RawValue,
    read_usd_per_tb: RawScaled,
    hold: RawScaled,
    long: RawScaled,
    fast: RawScaled,
    speed_tb_per_s: RawScaled,
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn field(&self, field: &str, given: impl ToString, expected: &str) -> SpecError {
        SpecError::field(self.file, field, given, expected)
    }

    fn ends(&self, field: &str, raw: &RawRange) -> Result<LogUniform, SpecError> {
        if !(raw.low > 0.0 && raw.high > raw.low && raw.high.is_finite()) {
            let given = format!("{} to {}", raw.low, raw.high);
            return Err(self.field(field, given, "a positive range from low to high"));
        }
        Ok(LogUniform { low: float::ln(raw.low), high: float::ln(raw.high) })
    }

    fn normal(&self, field: &str, raw: &RawRange) -> Result<LogNormal, SpecError> {
        let ends = self.ends(field, raw)?;
        match raw.median {
            Some(median) if median > raw.low && median < raw.high => {
                Ok(LogNormal { centre: float::ln(median), scale: (ends.high - ends.low) / RANGE_SDS })
            }
            other => Err(self.field(&format!("{field}.median"), format!("{other:?}"), "a number inside the range")),
        }
    }

    fn scaled(&self, field: &str, raw: &RawScaled) -> Result<LogNormal, SpecError> {
        if raw.median > 0.0 && raw.scale > 0.0 && raw.median.is_finite() && raw.scale.is_finite() {
            return Ok(LogNormal { centre: float::ln(raw.median), scale: raw.scale });
        }
        Err(self.field(field, raw.median, "a positive median and scale"))
    }

    fn share(&self, field: &str, raw: &RawValue) -> Result<f64, SpecError> {
        if (0.0..=1.0).contains(&raw.value) { Ok(raw.value) } else { Err(self.field(field, raw.value, "0 to 1")) }
    }

    fn whole(&self, field: &str, shares: impl Iterator<Item = f64>) -> Result<(), SpecError> {
        let (mut sum, mut sane) = (0.0, true);
        for share in shares {
            sum += share;
            sane &= share >= 0.0;
        }
        if sane && (sum - 1.0).abs() < 1e-6 { Ok(()) } else { Err(self.field(field, sum, "shares that add up to 1")) }
    }
}

/// Reads the priors; `level` was fitted.
pub fn deduce_priors(
    text: &str,
    level: Level,
    chip: impl Fn(&str) -> Result<Arc<Chip>, SpecError>,
) -> Result<DeducePriors, SpecError> {
    let file = "deduce priors";
    let raw: RawPriors = cited(file, "", text, &PRIORS)?;
    let r = Reader { file };
    let (a, s, q) = (&raw.architecture, &raw.serving, &raw.ratio);
    r.whole("serving.widths.shares", s.widths.shares.into_iter())?;
    r.whole("chip.share", raw.chip.iter().map(|c| c.share))?;
    r.whole("tier.share", raw.tier.iter().map(|t| t.share))?;
    let mut chips = Vec::new();
    for c in &raw.chip {
        let usd_per_hour = r.normal("chip.usd_per_hour", &c.usd_per_hour)?;
        chips.push(ServingChip { chip: chip(&c.id)?, share: c.share, usd_per_hour });
    }
    let mut tiers = Vec::new();
    for t in &raw.tier {
        let usd_per_gb_hour = t.usd_per_gb_hour.value;
        tiers.push(CacheTier { name: t.name.clone(), share: t.share, usd_per_gb_hour });
    }
    let mut policy = BTreeMap::new();
    for (word, raw) in &raw.policy {
        // A write premium and a storage price both say what an hour costs.
        let ratios = if word == "hold" { vec![Ratio::Write, Ratio::Storage] } else { vec![ratio(&r, word)?] };
        for ratio in ratios {
            policy.insert(ratio, r.scaled("policy", raw)?);
        }
    }
    if policy.len() != Ratio::ALL.len() {
        return Err(r.field("policy", format!("{} ratios", policy.len()), "every ratio"));
    }
    let widths = std::array::from_fn(|i| (s.widths.bytes[i], s.widths.shares[i]));
    Ok(DeducePriors {
        active: r.ends("active_params", &a.active_params)?,
        dense_share: r.share("dense_share", &a.dense_share)?,
        sparsity: r.ends("sparsity", &a.sparsity)?,
        kv: r.ends("kv_bytes", &a.kv_bytes)?,
        full_read_share: r.share("full_read_share", &a.full_read_share)?,
        read_share: r.ends("read_share", &a.read_share)?,
        attention_context: r.ends("attention_context", &a.attention_context)?,
        widths,
        context: r.normal("context", &s.context)?,
        batch: r.normal("batch_over_balance", &s.batch_over_balance)?,
        mfu: r.normal("mfu_prefill", &s.mfu_prefill)?,
        mbu: r.normal("mbu", &s.mbu)?,
        utilisation: r.normal("utilisation", &s.utilisation)?,
        accepted: r.ends("accepted", &s.accepted)?,
        chips,
        markup_host: r.normal("markup.host", &raw.markup.host)?,
        markup_first_party: r.normal("markup.first_party", &raw.markup.first_party)?,
        tiers,
        rounding: r.share("rounding", &q.rounding)?,
        read_usd_per_tb: r.scaled("read_usd_per_tb", &q.read_usd_per_tb)?,
        hold: r.scaled("hold", &q.hold)?,
        long: r.scaled("long", &q.long)?,
        fast: r.scaled("fast", &q.fast)?,
        speed_tb_per_s: r.scaled("speed_tb_per_s", &q.speed_tb_per_s)?,
        policy,
        level,
    })
}

fn ratio(r: &Reader, word: &str) -> Result<Ratio, SpecError> {
    let found = Ratio::ALL.into_iter().find(|ratio| ratio.name() == word);
    found.ok_or_else(|| r.field("ratio", word, &Ratio::ALL.map(Ratio::name).join(", ")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLevel {
    #[serde(rename = "source")]
    _source: String,
    offset: f64,
    sparsity_exponent: f64,
    size_exponent: f64,
    reference_size: f64,
    batch_exponent: f64,
    serving_share: f64,
    scale: f64,
    host_scale: f64,
    ratio_offset: f64,
    ratio_scale: f64,
    indifferent: f64,
    indifferent_median: f64,
    indifferent_scale: f64,
}

/// Reads how far prices of hosts lie above ideal cost.
pub fn deduce_level(text: &str) -> Result<Level, SpecError> {
    let raw: RawLevel = noun("deduce level", "", text, &HEAD)?;
    Ok(Level {
        offset: raw.offset,
        sparsity_exponent: raw.sparsity_exponent,
        size_exponent: raw.size_exponent,
        ln_reference_size: float::ln(raw.reference_size),
        batch_exponent: raw.batch_exponent,
        serving_share: raw.serving_share,
        scale: raw.scale,
        host_scale: raw.host_scale,
        ratio_offset: raw.ratio_offset,
        ratio_scale: raw.ratio_scale,
        indifferent: raw.indifferent,
        indifferent_price: LogNormal { centre: float::ln(raw.indifferent_median), scale: raw.indifferent_scale },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicies {
    source: String,
    vendor: BTreeMap<String, BTreeMap<String, (u32, u32, f64)>>,
    pooled: BTreeMap<String, f64>,
    host: BTreeMap<String, f64>,
}

/// Reads the policies of vendors.
pub fn deduce_policies(text: &str) -> Result<Policies, SpecError> {
    let file = "deduce policies";
    let raw: RawPolicies = noun(file, "", text, &HEAD)?;
    let r = Reader { file };
    let chances = |list: &BTreeMap<String, f64>| -> Result<BTreeMap<Ratio, f64>, SpecError> {
        list.iter().map(|(word, chance)| Ok((ratio(&r, word)?, chance.clamp(0.0, 1.0)))).collect()
    };
    let mut vendors = BTreeMap::new();
    for (vendor, habits) in &raw.vendor {
        let mut known = BTreeMap::new();
        for (word, &(models, same, value)) in habits {
            if same > models || models == 0 || value <= 0.0 {
                return Err(r.field(
                    &format!("vendor.{vendor}.{word}"),
                    models,
                    "models, models at the ratio, the ratio",
                ));
            }
            known.insert(ratio(&r, word)?, Habit { models, same, value });
        }
        vendors.insert(vendor.clone(), known);
    }
    Ok(Policies { vendors, pooled: chances(&raw.pooled)?, host: chances(&raw.host)?, source: raw.source })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHosts {
    model: Vec<RawHosted>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHosted {
    id: String,
    config: String,
    hosts: Vec<RawHost>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHost {
    host: String,
    #[serde(rename = "source")]
    _source: String,
    input: f64,
    output: f64,
    cached: Option<f64>,
    #[serde(default)]
    maker: bool,
}

/// Reads what hosts charge.
pub fn hosted_models(text: &str) -> Result<Vec<HostedModel>, SpecError> {
    let file = "deduce hosts";
    let raw: RawHosts = cited(file, "", text, &HEAD)?;
    let r = Reader { file };
    let mut models = Vec::new();
    for model in raw.model {
        let mut hosts = Vec::new();
        for h in model.hosts {
            let at = |field: &str| format!("{}.{}.{field}", model.id, h.host);
            for (field, price) in [("input", Some(h.input)), ("output", Some(h.output)), ("cached", h.cached)] {
                if price.is_some_and(|p| !(PRICE_RANGE.0..=PRICE_RANGE.1).contains(&p)) {
                    let given = price.unwrap_or_default();
                    return Err(r.field(&at(field), given, "0.001 to 1000 dollars per million tokens"));
                }
            }
            hosts.push(HostPrice { host: h.host, input: h.input, output: h.output, cached: h.cached, maker: h.maker });
        }
        models.push(HostedModel { id: model.id, config: model.config, hosts });
    }
    Ok(models)
}
