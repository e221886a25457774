//! How software drives a kind of link: floors in microseconds and shares of the data sheet's rate, with their evidence.
//!
//! A constant belongs to a generation of links and a family of kernels, never to a machine or a row of a table. What the
//! equations do with it stands in the theory crate's `network` chapter.

use crate::file::noun::{cited, part, share, share_or_none};
use crate::{Cited, SpecError};
use rackmath_units::{ByteRate, Bytes, Fraction, Seconds};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub id: String,
    pub name: String,
    pub as_of: String,
    /// Out of one chip, one way, where the kind alone says it.
    pub rate: Option<Cited<ByteRate>>,
    /// The vendor's collective library: NCCL, RCCL, the compiler of a TPU.
    pub library: Library,
    /// All-reduce kernels that engines bring along, by engine.
    #[serde(default)]
    pub all_reduce: BTreeMap<String, AllReduceKernel>,
    #[serde(default)]
    pub exchange: BTreeMap<String, ExchangeKernel>,
    /// What expert kernels pay when they leave the node over this link, by how they copy.
    #[serde(default)]
    pub reach: BTreeMap<Copies, Reach>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    pub launch: Seconds,
    /// One step from rank to rank.
    pub hop: Seconds,
    /// Share of the link's one-way rate that a long message reaches.
    #[serde(deserialize_with = "share")]
    pub efficiency: Fraction,
    /// What copying its own part costs a rank, as a share of sending it.
    #[serde(deserialize_with = "part")]
    pub own: Fraction,
    /// Bytes sent at which a message is halfway from half the rate to the full one.
    pub half: Bytes,
    /// Share of the rate when the switch adds up; none where switches cannot.
    #[serde(default, deserialize_with = "share_or_none")]
    pub in_network: Option<Fraction>,
    /// What the way through a host's PCIe tree makes of it; none on other links.
    pub tree: Option<Tree>,
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Cards of one host without links of their own. Short messages carry a flag with every word: they start fast and move slowly,
/// at the library's own `launch` and `hop`. Long ones are cut into chunks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Starting a long message, and one of its steps from rank to rank.
    pub launch: Seconds,
    pub hop: Seconds,
    /// How far a group reaches, nearest first: a pair below one switch or root port, one socket, both sockets.
    pub spans: Vec<Span>,
}

/// Shares of the card's one-way rate that a ring over so many cards reaches.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub chips: u64,
    #[serde(deserialize_with = "share")]
    pub short: Fraction,
    #[serde(deserialize_with = "share")]
    pub long: Fraction,
}

impl Tree {
    /// The narrowest span that holds so many cards, or the widest there is.
    pub fn span(&self, chips: u64) -> Span {
        let widest = self.spans[self.spans.len() - 1];
        self.spans.iter().find(|span| span.chips >= chips).copied().unwrap_or(widest)
    }
}

/// An engine's own all-reduce: every rank reads its peers' buffers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllReduceKernel {
    /// Starting the kernel inside a captured graph, with its barrier.
    pub launch: Seconds,
    /// Barrier time for each peer.
    pub peer: Seconds,
    /// The second barrier of the two-shot form; none where the engine has only the one-shot form.
    pub second: Option<Seconds>,
    /// Share of the link's one-way rate.
    #[serde(deserialize_with = "share")]
    pub efficiency: Fraction,
    /// Largest message; above it the library takes over.
    pub limit: Bytes,
    /// Most ranks; beyond them the library takes over. None where the engine does not ask.
    pub most: Option<u64>,
    /// Shortest time between two calls when the host launches each of them.
    pub eager_launch: Seconds,
    pub eager_extra: Seconds,
    /// Share of the memory bandwidth at which an eager call copies the message into its registered buffer.
    #[serde(deserialize_with = "share")]
    pub eager_copy: Fraction,
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// An expert dispatch and combine kernel on one kind of link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeKernel {
    pub copies: Copies,
    /// Share of the link's one-way rate, up to eight ranks.
    #[serde(deserialize_with = "share")]
    pub efficiency: Fraction,
    /// Share of that lost with each doubling of the ranks beyond eight.
    #[serde(deserialize_with = "part")]
    pub loss_per_doubling: Fraction,
    pub per_copy: Seconds,
    pub dispatch: Floor,
    pub combine: Floor,
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// The time below which a phase does not fall.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Added to the transfer: barrier, counts, first byte.
    pub start: Seconds,
    /// Not added: the host's launch or the grid's barrier, which a longer transfer hides.
    pub least: Seconds,
}

/// What an expert kernel pays for leaving the node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// Share of the adapter's one-way rate.
    #[serde(deserialize_with = "share")]
    pub efficiency: Fraction,
    /// How well the two networks overlap: 1 is perfectly, 0 not at all.
    #[serde(deserialize_with = "part")]
    pub overlap: Fraction,
    /// Nodes up to which the rate holds; beyond it falls as their number grows. None where no fall was seen.
    pub full_rate_nodes: Option<u64>,
    /// Added to dispatch when it leaves the node, and again with each doubling of the nodes.
    pub dispatch: Leaving,
    pub combine: Leaving,
    #[serde(flatten)]
    pub evidence: Evidence,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaving {
    pub once: Seconds,
    /// With each doubling of the number of nodes.
    pub per_doubling: Seconds,
}

/// What a dispatch kernel sends once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Copies {
    /// One copy for each chosen expert.
    PerExpert,
    /// One copy for each rank that holds a chosen expert, and one for each node across the slow network.
    PerRank,
}

/// Why a set of constants is believed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Evidence {
    /// The measurements, or what the constants were extrapolated from.
    pub source: String,
    pub fit: Option<Residual>,
    /// The rule of an extrapolation, or what else to know.
    pub note: Option<String>,
}

/// How far a fit is from its rows, as |ln(predicted / measured)|.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// None for constants taken from elsewhere.
    pub rows: u64,
    pub median: f64,
    pub p90: f64,
}

impl Network {
    pub fn all_reduce_kernel(&self, name: &str) -> Result<&AllReduceKernel, SpecError> {
        named("all-reduce kernel", name, &self.all_reduce)
    }

    pub fn exchange_kernel(&self, name: &str) -> Result<&ExchangeKernel, SpecError> {
        named("expert kernel", name, &self.exchange)
    }
}

fn named<'a, T>(kind: &'static str, name: &str, map: &'a BTreeMap<String, T>) -> Result<&'a T, SpecError> {
    map.get(name).ok_or_else(|| SpecError::unknown(kind, name, map.keys().map(String::as_str)))
}

pub(crate) fn read(id: &str, text: &str) -> Result<Network, SpecError> {
    let file = format!("network {id}");
    let network: Network = cited(&file, id, text, &[])?;
    if let Some((copies, _)) = network.reach.iter().find(|(_, reach)| reach.full_rate_nodes == Some(0)) {
        return Err(SpecError::field(&file, format!("reach.{copies}.full_rate_nodes"), 0, "at least one node"));
    }
    if let Some(tree) = &network.library.tree {
        let wider = |a: &Span, b: &Span| a.chips < b.chips && a.short >= b.short && a.long >= b.long;
        if tree.spans.is_empty() || !tree.spans.is_sorted_by(wider) {
            let expected = "at least one, each over more cards than the one before and at no greater share of the rate";
            return Err(SpecError::field(&file, "library.tree.spans", tree.spans.len(), expected));
        }
    }
    Ok(network)
}
