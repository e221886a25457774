//! Reads a network file.

use super::{Place, parse_toml};
use crate::{
    AllReduceKernel, Copies, Evidence, ExchangeKernel, Floor, Leaving, Library, Network, Reach, Residual, SpecError,
};
use rackmath_units::Fraction;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNetwork {
    name: String,
    #[serde(default)]
    #[serde(rename = "aliases")]
    _aliases: Vec<String>,
    as_of: String,
    sources: BTreeMap<String, String>,
    library: RawLibrary,
    #[serde(default)]
    all_reduce: BTreeMap<String, RawAllReduce>,
    #[serde(default)]
    exchange: BTreeMap<String, RawExchange>,
    #[serde(default)]
    reach: BTreeMap<String, RawReach>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLibrary {
    launch: String,
    hop: String,
    efficiency: f64,
    own: f64,
    half: String,
    in_network: Option<f64>,
    source: String,
    fit: Option<RawResidual>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAllReduce {
    launch: String,
    peer: String,
    second: Option<String>,
    efficiency: f64,
    limit: String,
    eager_launch: String,
    eager_extra: String,
    eager_copy: f64,
    source: String,
    fit: Option<RawResidual>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExchange {
    copies: String,
    efficiency: f64,
    loss_per_doubling: f64,
    per_copy: String,
    dispatch: RawFloor,
    combine: RawFloor,
    source: String,
    fit: Option<RawResidual>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFloor {
    start: String,
    least: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReach {
    efficiency: f64,
    overlap: f64,
    full_rate_nodes: Option<u64>,
    dispatch: RawLeaving,
    combine: RawLeaving,
    source: String,
    fit: Option<RawResidual>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLeaving {
    once: String,
    per_doubling: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawResidual {
    rows: u64,
    median: f64,
    p90: f64,
}

/// Reads a network from one of our TOML files.
pub fn network(id: &str, text: &str) -> Result<Network, SpecError> {
    let file = format!("network {id}");
    let raw: RawNetwork = parse_toml(&file, text)?;
    let reader = Reader { place: Place { file: &file, sources: &raw.sources } };
    Ok(Network {
        id: id.to_owned(),
        name: raw.name,
        as_of: raw.as_of,
        library: reader.library(raw.library)?,
        all_reduce: each(raw.all_reduce, |name, kernel| reader.all_reduce(name, kernel))?,
        exchange: each(raw.exchange, |name, kernel| reader.exchange(name, kernel))?,
        reach: raw
            .reach
            .into_iter()
            .map(|(copies, reach)| Ok((copies.parse::<Copies>()?, reader.reach(&copies, reach)?)))
            .collect::<Result<_, SpecError>>()?,
    })
}

fn each<R, T>(
    raw: BTreeMap<String, R>,
    read: impl Fn(&str, R) -> Result<T, SpecError>,
) -> Result<BTreeMap<String, T>, SpecError> {
    raw.into_iter().map(|(name, value)| Ok((name.clone(), read(&name, value)?))).collect()
}

struct Reader<'a> {
    place: Place<'a>,
}

impl Reader<'_> {
    fn library(&self, raw: RawLibrary) -> Result<Library, SpecError> {
        let at = |field: &str| format!("library.{field}");
        Ok(Library {
            launch: self.read(&at("launch"), &raw.launch)?,
            hop: self.read(&at("hop"), &raw.hop)?,
            efficiency: self.rate(&at("efficiency"), raw.efficiency)?,
            own: self.share(&at("own"), raw.own)?,
            half: self.read(&at("half"), &raw.half)?,
            in_network: raw.in_network.map(|share| self.rate(&at("in_network"), share)).transpose()?,
            evidence: self.evidence("library", raw.source, raw.fit, raw.note)?,
        })
    }

    fn all_reduce(&self, name: &str, raw: RawAllReduce) -> Result<AllReduceKernel, SpecError> {
        let at = |field: &str| format!("all_reduce.{name}.{field}");
        Ok(AllReduceKernel {
            launch: self.read(&at("launch"), &raw.launch)?,
            peer: self.read(&at("peer"), &raw.peer)?,
            second: raw.second.map(|text| self.read(&at("second"), &text)).transpose()?,
            efficiency: self.rate(&at("efficiency"), raw.efficiency)?,
            limit: self.read(&at("limit"), &raw.limit)?,
            eager_launch: self.read(&at("eager_launch"), &raw.eager_launch)?,
            eager_extra: self.read(&at("eager_extra"), &raw.eager_extra)?,
            eager_copy: self.rate(&at("eager_copy"), raw.eager_copy)?,
            evidence: self.evidence(&at("source"), raw.source, raw.fit, raw.note)?,
        })
    }

    fn exchange(&self, name: &str, raw: RawExchange) -> Result<ExchangeKernel, SpecError> {
        let at = |field: &str| format!("exchange.{name}.{field}");
        let floor = |phase: &str, raw: &RawFloor| {
            Ok::<_, SpecError>(Floor {
                start: self.read(&at(phase), &raw.start)?,
                least: self.read(&at(phase), &raw.least)?,
            })
        };
        Ok(ExchangeKernel {
            copies: raw.copies.parse()?,
            efficiency: self.rate(&at("efficiency"), raw.efficiency)?,
            loss_per_doubling: self.share(&at("loss_per_doubling"), raw.loss_per_doubling)?,
            per_copy: self.read(&at("per_copy"), &raw.per_copy)?,
            dispatch: floor("dispatch", &raw.dispatch)?,
            combine: floor("combine", &raw.combine)?,
            evidence: self.evidence(&at("source"), raw.source, raw.fit, raw.note)?,
        })
    }

    fn reach(&self, name: &str, raw: RawReach) -> Result<Reach, SpecError> {
        let at = |field: &str| format!("reach.{name}.{field}");
        let leaving = |phase: &str, raw: &RawLeaving| {
            Ok::<_, SpecError>(Leaving {
                once: self.read(&at(phase), &raw.once)?,
                per_doubling: self.read(&at(phase), &raw.per_doubling)?,
            })
        };
        if raw.full_rate_nodes == Some(0) {
            return Err(self.bad(&at("full_rate_nodes"), "0", "at least one node".into()));
        }
        Ok(Reach {
            efficiency: self.rate(&at("efficiency"), raw.efficiency)?,
            overlap: self.share(&at("overlap"), raw.overlap)?,
            full_rate_nodes: raw.full_rate_nodes,
            dispatch: leaving("dispatch", &raw.dispatch)?,
            combine: leaving("combine", &raw.combine)?,
            evidence: self.evidence(&at("source"), raw.source, raw.fit, raw.note)?,
        })
    }

    fn evidence(
        &self,
        field: &str,
        source: String,
        fit: Option<RawResidual>,
        note: Option<String>,
    ) -> Result<Evidence, SpecError> {
        let fit = fit.map(|f| Residual { rows: f.rows, median: f.median, p90: f.p90 });
        Ok(Evidence { source: self.place.source(field, source)?, fit, note })
    }

    fn read<T: FromStr<Err: std::fmt::Display>>(&self, field: &str, text: &str) -> Result<T, SpecError> {
        text.parse().map_err(|e: T::Err| self.bad(field, text, e.to_string()))
    }

    fn share(&self, field: &str, value: f64) -> Result<Fraction, SpecError> {
        Fraction::checked(value).ok_or_else(|| self.bad(field, &value.to_string(), "a share from 0 to 1".into()))
    }

    /// A share of a rate; the formulas divide by it.
    fn rate(&self, field: &str, value: f64) -> Result<Fraction, SpecError> {
        let share = self.share(field, value)?;
        if share.get() > 0.0 { Ok(share) } else { Err(self.bad(field, "0", "a share above 0".into())) }
    }

    fn bad(&self, field: &str, given: &str, expected: String) -> SpecError {
        SpecError::field(self.place.file, field, given, expected)
    }
}
