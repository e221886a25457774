//! Reads a training-stack file.

use super::parse_toml;
use crate::SpecError;
use crate::training::{
    AttentionPath, FlashShare, HostLaunch, HostTimes, MemoryRecipe, NetworkShares, ProductTimes, TrafficShares,
    TrainingStack,
};
use rackmath_units::Seconds;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    as_of: String,
    #[serde(default, rename = "aliases")]
    _aliases: Vec<String>,
    attention: String,
    launch: String,
    dropout: bool,
    fit: Option<RawFit>,
    sources: BTreeMap<String, String>,
    host: RawHost,
    traffic: RawTraffic,
    network: RawNetwork,
    memory: RawMemory,
    #[serde(default)]
    product: Vec<RawProduct>,
    #[serde(default)]
    flash: Vec<RawFlash>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFit {
    rows: u64,
    mape: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHost {
    forward: String,
    backward: String,
    rank: String,
    #[serde(default)]
    experts: Option<String>,
    head: String,
    hop: String,
    sync_hops: bool,
    step: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTraffic {
    elementwise: f64,
    scores: f64,
    score_product: f64,
    unaligned_product: f64,
    #[serde(default = "alike")]
    grouped_product: f64,
    logit_bytes: f64,
    accumulate_bytes: f64,
    optimizer_bytes: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNetwork {
    scale_up: f64,
    scale_out: f64,
    send: f64,
    scale_out_rate: Option<String>,
    unlinked_up: String,
    unlinked_out: String,
    tensor_exposed: f64,
    data_overlap: f64,
    context_exposed: f64,
    expert_exposed: f64,
    gradient_bytes: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMemory {
    weight_bytes: f64,
    gradient_bytes: f64,
    optimizer_bytes: f64,
    logit_bytes: f64,
    vocabulary_bytes: f64,
    fragmentation: f64,
    reserve: String,
    reserve_seen: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProduct {
    generation: String,
    format: String,
    times: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFlash {
    generation: String,
    forward: f64,
    backward: f64,
}

/// Grouped products as fast as others.
fn alike() -> f64 {
    1.0
}

pub fn training(id: &str, text: &str) -> Result<TrainingStack, SpecError> {
    let file = format!("training {id}");
    let raw: Raw = parse_toml(&file, text)?;
    let reader = Reader { file: &file };
    let attention = match raw.attention.as_str() {
        "scores" => AttentionPath::Scores,
        "flash" => AttentionPath::Flash,
        other => return reader.wrong("attention", other, "scores or flash"),
    };
    let launch = match raw.launch.as_str() {
        "ahead" => HostLaunch::Ahead,
        "blocking" => HostLaunch::Blocking,
        other => return reader.wrong("launch", other, "ahead or blocking"),
    };
    reader.numbers(&raw)?;
    let products = raw
        .product
        .into_iter()
        .map(|p| Ok(ProductTimes { generation: p.generation, format: p.format.parse()?, times: p.times }));
    let flash = raw.flash.into_iter().map(|f| FlashShare {
        generation: f.generation,
        forward: f.forward,
        backward: f.backward,
    });
    Ok(TrainingStack {
        id: id.to_owned(),
        name: raw.name,
        as_of: raw.as_of,
        sources: raw.sources.into_iter().map(|(what, source)| format!("{what}: {source}")).collect(),
        attention,
        launch,
        dropout: raw.dropout,
        host: HostTimes {
            forward: reader.quantity("host.forward", &raw.host.forward)?,
            backward: reader.quantity("host.backward", &raw.host.backward)?,
            rank: reader.quantity("host.rank", &raw.host.rank)?,
            experts: raw.host.experts.map_or(Ok(Seconds::ZERO), |t| reader.quantity("host.experts", &t))?,
            head: reader.quantity("host.head", &raw.host.head)?,
            hop: reader.quantity("host.hop", &raw.host.hop)?,
            sync_hops: raw.host.sync_hops,
            step: reader.quantity("host.step", &raw.host.step)?,
        },
        traffic: TrafficShares {
            elementwise: raw.traffic.elementwise,
            scores: raw.traffic.scores,
            score_product: raw.traffic.score_product,
            unaligned_product: raw.traffic.unaligned_product,
            grouped_product: raw.traffic.grouped_product,
            logit_bytes: raw.traffic.logit_bytes,
            accumulate_bytes: raw.traffic.accumulate_bytes,
            optimizer_bytes: raw.traffic.optimizer_bytes,
        },
        network: NetworkShares {
            scale_up: raw.network.scale_up,
            scale_out: raw.network.scale_out,
            send: raw.network.send,
            scale_out_rate: raw
                .network
                .scale_out_rate
                .map(|rate| reader.quantity("network.scale_out_rate", &rate))
                .transpose()?,
            unlinked_up: reader.quantity("network.unlinked_up", &raw.network.unlinked_up)?,
            unlinked_out: reader.quantity("network.unlinked_out", &raw.network.unlinked_out)?,
            tensor_exposed: raw.network.tensor_exposed,
            data_overlap: raw.network.data_overlap,
            context_exposed: raw.network.context_exposed,
            expert_exposed: raw.network.expert_exposed,
            gradient_bytes: raw.network.gradient_bytes,
        },
        memory: MemoryRecipe {
            weight_bytes: raw.memory.weight_bytes,
            gradient_bytes: raw.memory.gradient_bytes,
            optimizer_bytes: raw.memory.optimizer_bytes,
            logit_bytes: raw.memory.logit_bytes,
            vocabulary_bytes: raw.memory.vocabulary_bytes,
            fragmentation: raw.memory.fragmentation,
            reserve: reader.quantity("memory.reserve", &raw.memory.reserve)?,
            reserve_seen: raw.memory.reserve_seen,
        },
        products: products.collect::<Result<_, SpecError>>()?,
        flash: flash.collect(),
        fit: raw.fit.map(|f| (f.rows, f.mape)),
    })
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn wrong<T>(&self, field: &str, given: impl ToString, expected: &str) -> Result<T, SpecError> {
        Err(SpecError::field(self.file, field, given, expected))
    }

    fn quantity<T: FromStr<Err: fmt::Display>>(&self, field: &str, text: &str) -> Result<T, SpecError> {
        text.parse::<T>().or_else(|e| self.wrong(field, text, &e.to_string()))
    }

    /// Divisors must be positive, everything else finite and not negative.
    fn numbers(&self, raw: &Raw) -> Result<(), SpecError> {
        let (t, n, m) = (&raw.traffic, &raw.network, &raw.memory);
        let mut divisors = vec![
            ("traffic.score_product", t.score_product),
            ("traffic.unaligned_product", t.unaligned_product),
            ("traffic.grouped_product", t.grouped_product),
            ("network.scale_out", n.scale_out),
            ("network.send", n.send),
        ];
        divisors.extend(raw.product.iter().map(|p| ("product.times", p.times)));
        divisors.extend(raw.flash.iter().flat_map(|f| [("flash.forward", f.forward), ("flash.backward", f.backward)]));
        for (field, value) in divisors {
            if !(value.is_finite() && value > 0.0) {
                return self.wrong(field, value, "a positive number");
            }
        }
        let shares = [
            ("network.tensor_exposed", n.tensor_exposed),
            ("network.data_overlap", n.data_overlap),
            ("network.context_exposed", n.context_exposed),
            ("network.expert_exposed", n.expert_exposed),
        ];
        for (field, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return self.wrong(field, value, "0 to 1");
            }
        }
        let others = [
            ("traffic.elementwise", t.elementwise),
            ("traffic.scores", t.scores),
            ("traffic.logit_bytes", t.logit_bytes),
            ("traffic.accumulate_bytes", t.accumulate_bytes),
            ("traffic.optimizer_bytes", t.optimizer_bytes),
            ("network.scale_up", n.scale_up),
            ("network.gradient_bytes", n.gradient_bytes),
            ("memory.weight_bytes", m.weight_bytes),
            ("memory.gradient_bytes", m.gradient_bytes),
            ("memory.optimizer_bytes", m.optimizer_bytes),
            ("memory.logit_bytes", m.logit_bytes),
            ("memory.vocabulary_bytes", m.vocabulary_bytes),
            ("memory.fragmentation", m.fragmentation),
        ];
        for (field, value) in others {
            if !(value.is_finite() && (0.0..=1e6).contains(&value)) {
                return self.wrong(field, value, "a number from 0 to 1e6");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::TrainingFormat;

    #[test]
    fn a_share_beyond_all_and_a_word_nobody_knows_are_refused() {
        let text = include_str!("../../../rackmath-catalog/data/training/megatron-2022.toml");
        let wrong = text.replace("tensor_exposed = 1.0", "tensor_exposed = 1.5");
        assert!(super::training("x", &wrong).unwrap_err().to_string().contains("0 to 1"));
        let wrong = text.replace("attention = \"scores\"", "attention = \"magic\"");
        assert!(super::training("x", &wrong).unwrap_err().to_string().contains("scores or flash"));
        assert!("fp7".parse::<TrainingFormat>().unwrap_err().to_string().contains("fp8"));
    }
}
