//! One price sheet on one day, with what it charges for a workload.

use super::work::Prepared;
use crate::desk::prelude::*;
use rackmath_spec::price::{Factors, List, Sheet, Ttl};
use rackmath_spec::{Date, Moment};
use rackmath_theory::price::{Bill, break_even_gap, break_even_uses, implied_storage};
use rackmath_units::{DollarsPerToken, Seconds};

/// One sheet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Card {
    /// Its id.
    pub id: String,
    /// The model's name.
    pub name: String,
    /// Who charges.
    pub provider: String,
    /// The day asked for.
    pub day: String,
    /// The first day of the list.
    pub list_from: String,
    /// When the sheet was checked.
    pub checked: String,
    /// Where the list comes from.
    pub source: String,
    /// What to know about it.
    pub note: Option<String>,
    /// An input token.
    pub input_usd_per_mtok: f64,
    /// An output token.
    pub output_usd_per_mtok: f64,
    /// Multiples of mode and hour together: input, output, cache.
    pub factors: [f64; 3],
    /// The window of hours that applies.
    pub window: Option<String>,
    /// Cache offers.
    pub caches: Vec<CacheCard>,
    /// Long-context tiers.
    pub tiers: Vec<TierCard>,
    /// Modes and their multiples of input and output.
    pub modes: Vec<(String, f64, f64)>,
    /// Price of keeping that two write prices imply.
    pub implied_storage_usd_per_mtok_hour: Option<f64>,
    /// Where sources disagree.
    pub conflicts: Vec<String>,
    /// Policies with their bills, cheapest first; empty without a workload.
    pub policies: Vec<PolicyCard>,
}

/// A cache offer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheCard {
    /// Its name.
    pub name: String,
    /// For how long, in words.
    pub lifetime: String,
    /// Writing a token.
    pub write_usd_per_mtok: f64,
    /// Reading a token.
    pub read_usd_per_mtok: f64,
    /// Keeping a token.
    pub storage_usd_per_mtok_hour: Option<f64>,
    /// Uses from which on it is cheaper, at the workload's gap or at once; none when it never is.
    pub break_even_uses: Option<f64>,
    /// Longest gap for which keeping is cheaper than sending again, where keeping is charged.
    pub break_even_gap_s: Option<f64>,
    /// Where the rules come from.
    pub source: String,
}

/// A long-context tier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TierCard {
    /// Tokens of the prompt.
    pub threshold: f64,
    /// Whether that length itself is already dearer.
    pub reached: bool,
    /// An input token.
    pub input_usd_per_mtok: f64,
    /// An output token.
    pub output_usd_per_mtok: f64,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PolicyCard {
    /// `none`, or the cache offer.
    pub policy: String,
    /// All of it.
    pub total_usd: f64,
    /// Fresh input.
    pub fresh_usd: f64,
    /// Cache writes.
    pub written_usd: f64,
    /// Cache reads.
    pub read_usd: f64,
    /// Keeping.
    pub storage_usd: f64,
    /// Output.
    pub output_usd: f64,
    /// Requests billed at a long-context tier.
    pub long_requests: u64,
    /// Whether the provider does not say for how long entries are kept, so that every use is assumed to find them.
    pub lifetime_assumed: bool,
}

pub(super) fn card(
    sheet: &Sheet,
    list: &List,
    day: Date,
    at: Option<Moment>,
    factors: Factors,
    bills: Vec<(String, Bill)>,
    work: Option<&Prepared>,
) -> Card {
    let gap = work.and_then(Prepared::gap).unwrap_or(Seconds::ZERO);
    let caches = list.caches.iter().map(|o| CacheCard {
        name: o.name.clone(),
        lifetime: if o.restarts { format!("{}, restarted by a use", o.ttl) } else { o.ttl.to_string() },
        write_usd_per_mtok: o.write.unwrap_or(list.input).as_per_mtok(),
        read_usd_per_mtok: o.read.as_per_mtok(),
        storage_usd_per_mtok_hour: o.storage.map(rackmath_units::HoldPrice::as_per_mtok_hour),
        break_even_uses: break_even_uses(list.input, o, gap),
        break_even_gap_s: o.storage.map(|s| break_even_gap(list.input, o.read, s).get()),
        source: o.source.clone(),
    });
    Card {
        id: sheet.id.clone(),
        name: sheet.name.clone(),
        provider: sheet.provider.clone(),
        day: day.to_string(),
        list_from: list.from.to_string(),
        checked: sheet.as_of.to_string(),
        source: list.source.clone(),
        note: list.note.clone(),
        input_usd_per_mtok: list.input.as_per_mtok(),
        output_usd_per_mtok: list.output.as_per_mtok(),
        factors: [factors.input, factors.output, factors.cache],
        window: at.and_then(|at| list.windows.iter().find(|w| w.holds(at))).map(|w| w.name.clone()),
        caches: caches.collect(),
        tiers: list
            .tiers
            .iter()
            .map(|t| TierCard {
                threshold: t.threshold().get(),
                reached: t.reached(),
                input_usd_per_mtok: t.input.as_per_mtok(),
                output_usd_per_mtok: t.output.as_per_mtok(),
            })
            .collect(),
        modes: list.modes.iter().map(|m| (m.name.clone(), m.factors.input, m.factors.output)).collect(),
        implied_storage_usd_per_mtok_hour: implied(list),
        conflicts: list
            .conflicts
            .iter()
            .map(|c| {
                let note = c.note.as_ref().map_or(String::new(), |n| format!(" ({n})"));
                format!("{}: {} used here, {} in {}{note}", c.field, c.used, c.other, c.source)
            })
            .collect(),
        policies: bills.into_iter().map(|(policy, b)| policy_card(list, policy, &b)).collect(),
    }
}

fn policy_card(list: &List, policy: String, b: &Bill) -> PolicyCard {
    let unstated = list.caches.iter().any(|o| o.name == policy && o.ttl == Ttl::Unstated);
    PolicyCard {
        lifetime_assumed: unstated && b.read > 0.0,
        policy,
        total_usd: b.total().get(),
        fresh_usd: b.fresh,
        written_usd: b.written,
        read_usd: b.read,
        storage_usd: b.storage,
        output_usd: b.output,
        long_requests: b.long,
    }
}

/// The storage price two priced writes with two lifetimes imply.
fn implied(list: &List) -> Option<f64> {
    let fixed = |o: &rackmath_spec::price::CacheOffer| match (o.ttl, o.write) {
        (Ttl::Fixed(ttl), Some(write)) => Some((write, ttl)),
        _ => None,
    };
    let both: Vec<(DollarsPerToken, Seconds)> = list.caches.iter().filter_map(fixed).collect();
    match both.as_slice() {
        [short, long] if short.1 < long.1 => implied_storage(*short, *long).map(|(slope, _)| slope.as_per_mtok_hour()),
        _ => None,
    }
}
