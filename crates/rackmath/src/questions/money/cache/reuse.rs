//! Hit rate against lifetime, and the lifetime that costs least in each tier.

use crate::desk::prelude::*;
use rackmath_spec::file;
use rackmath_theory::lifetime::{Line, best_ttl};
use rackmath_theory::reuse::Reuse;
use rackmath_units::{DollarsPerToken, Fraction, Seconds};

/// When prefixes are wanted again: a trace, or a distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReuseRequest {
    /// Name of the trace, for messages.
    pub trace_name: String,
    /// A trace with hash_ids: JSON lines as Mooncake writes them.
    #[schemars(extend("x-flag" = "trace", "x-file" = "trace"))]
    pub trace_text: Option<String>,
    /// Gaps and the share of prompt tokens wanted again after each: 30s:0.2,10min:0.1.
    #[schemars(extend("x-unit" = "gap"))]
    pub gaps: Vec<(f64, f64)>,
}

/// What the reuse says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReuseCard {
    /// Where it comes from.
    pub source: String,
    /// Share of prompt tokens ever wanted again.
    pub hit_rate_max: f64,
    /// The gap half of the reuse stays below.
    pub median_gap_s: Option<f64>,
    /// The gap nine tenths stay below.
    pub p90_gap_s: Option<f64>,
    /// Lifetimes and the share of prompt tokens found.
    pub hit_rates: Vec<(f64, f64)>,
    /// The best lifetime of each tier, cheapest tier first.
    pub best: Vec<BestCard>,
    /// What a prompt token costs without a cache.
    pub no_cache_usd_per_mtok: f64,
}

/// The best lifetime of a tier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BestCard {
    /// The tier.
    pub id: String,
    /// The lifetime.
    pub ttl_s: f64,
    /// Share of prompt tokens found.
    pub hit_rate: f64,
    /// What a prompt token costs with it.
    pub usd_per_mtok: f64,
}

/// Lifetimes worth a row.
const LIFETIMES_S: [f64; 9] = [10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0, 86_400.0];

pub(super) fn answer(
    wanted: &ReuseRequest,
    tiers: &[(String, Line)],
    compute: DollarsPerToken,
) -> Result<(ReuseCard, Figure), Error> {
    let (reuse, source) = read(wanted)?;
    let max = reuse.hit_rate(Seconds::s(1e12)).get();
    let mut best: Vec<BestCard> = tiers
        .iter()
        .map(|(id, line)| {
            let (ttl, cost) = best_ttl(&reuse, line, compute);
            let hit_rate = if ttl.get() > 0.0 { reuse.hit_rate(ttl).get() } else { 0.0 };
            BestCard { id: id.clone(), ttl_s: ttl.get(), hit_rate, usd_per_mtok: cost.as_per_mtok() }
        })
        .collect();
    best.sort_by(|a, b| a.usd_per_mtok.total_cmp(&b.usd_per_mtok));
    let quantile = |q: f64| reuse.quantile(Fraction::new(q)).map(Seconds::get);
    let card = ReuseCard {
        source: source.clone(),
        hit_rate_max: max,
        median_gap_s: quantile(0.5),
        p90_gap_s: quantile(0.9),
        hit_rates: LIFETIMES_S.iter().map(|&t| (t, reuse.hit_rate(Seconds::s(t)).get())).collect(),
        best,
        no_cache_usd_per_mtok: compute.as_per_mtok(),
    };
    // A hit rate is a staircase: it jumps at every gap and is level between two.
    let mut points = vec![(0.1, 0.0)];
    for t in reuse.lifetimes(200) {
        let at = t.get().max(0.1);
        let before = points.last().map_or(0.0, |p: &(f64, f64)| p.1);
        points.extend([(at, before), (at, reuse.hit_rate(t).get())]);
    }
    let end = points.last().map_or(86_400.0, |p| p.0.max(86_400.0));
    points.push((end, max));
    let figure = Figure {
        title: "share of prompt tokens found in the cache".into(),
        subtitle: source,
        x: Axis::log("lifetime after the last use", Unit::Seconds),
        y: Axis::linear("hit rate", Unit::Number),
        series: vec![
            Series::new("hit rate", Role::Envelope, points),
            Series::new("without expiry", Role::Floor, vec![(0.1, max), (end, max)]),
        ],
        marks: Vec::new(),
    };
    Ok((card, figure))
}

fn read(wanted: &ReuseRequest) -> Result<(Reuse, String), Error> {
    if let Some(text) = &wanted.trace_text {
        let trace = file::trace(&wanted.trace_name, text)?;
        if !trace.has_blocks() {
            let expected = "JSON lines with hash_ids, which say what prompts share";
            return Err(Error::value("trace", format!("\"{}\"", wanted.trace_name), expected));
        }
        let source = format!("{}: {} requests over {}", wanted.trace_name, trace.requests.len(), trace.span());
        return Ok((Reuse::of(&trace), source));
    }
    let gaps: Option<Vec<(Seconds, Fraction)>> = wanted
        .gaps
        .iter()
        .map(|&(gap, share)| Some((Seconds::checked(gap).filter(|g| g.get() <= 1e10)?, Fraction::checked(share)?)))
        .collect();
    let gaps = gaps.filter(|g| !g.is_empty() && g.iter().map(|(_, s)| s.get()).sum::<f64>() <= 1.0 + 1e-9);
    let gaps = gaps.ok_or_else(|| {
        Error::value(
            "gaps",
            format!("{:?}", wanted.gaps),
            "seconds and shares of prompt tokens that add up to at most 1",
        )
    })?;
    Ok((Reuse::of_gaps(&gaps), format!("{} gaps as given", gaps.len())))
}
