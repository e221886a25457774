//! Where to keep a prefix and for how long: hold-or-recompute lines, their lower envelope, the drain-time rule beside it,
//! what a published lifetime could mean, and the best lifetime for a pattern of reuse.

use crate::desk::prelude::*;
use crate::serving::{RateCard, RatesRequest, rates};
use rackmath_spec::{MemoryTier, file};
pub use rackmath_theory::lifetime::Candidate as CandidateCard;
use rackmath_theory::lifetime::{self, Line, Segment, best_ttl, break_even, candidates, envelope, in_memory, in_tier};
use rackmath_theory::reuse::Reuse;
use rackmath_theory::roofline;
use rackmath_units::HoldPrice;

/// A model on a machine, the tiers beside it, and when its prefixes are wanted again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine: bytes of the cache, price and memory of a chip.
    pub setting: Setting,
    /// How fast a chip computes a prefix anew.
    pub rates: RatesRequest,
    /// Memory tiers by id; all of the catalogue when empty.
    pub tiers: Vec<String>,
    /// Published lifetimes to place.
    #[schemars(extend("x-most" = [200, "durations of the picture"]))]
    // Five minutes, an hour and a day: the lifetimes providers sell.
    #[educe(Default = vec![300.0, 3600.0, 86_400.0])]
    pub durations_s: Vec<f64>,
    /// When prefixes are wanted again, if known.
    pub reuse: Option<ReuseRequest>,
}

/// The lines and what follows from them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model.
    pub model: String,
    /// The machine.
    pub system: String,
    /// Bytes a token keeps.
    pub kv_bytes_per_token: f64,
    /// Why nobody serves the model there; rates are then those of such chips with enough memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nobody_serves: Option<Remark>,
    /// How fast a chip computes a prefix anew, and where that comes from.
    pub prefill: RateCard,
    /// Ways to have a token again, fastest first.
    pub lines: Vec<LineCard>,
    /// The cheapest way over time.
    pub envelope: Vec<SegmentCard>,
    /// Published lifetimes, with every tier each could mean.
    pub durations: Vec<DurationCard>,
    /// Hit rates and best lifetimes for the reuse given.
    pub reuse: Option<ReuseCard>,
    /// Cost against time.
    pub figure: Figure,
    /// Hit rate against lifetime.
    pub hit_figure: Option<Figure>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
    /// Where they come from.
    pub sources: Vec<Remark>,
}

/// One way to have a token again.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LineCard {
    /// `rematerialise`, `HBM`, or the tier's id.
    pub id: String,
    /// What it is.
    pub name: Remark,
    /// Getting it back once; none when no price is known.
    pub retrieve_usd_per_mtok: Option<f64>,
    /// Keeping it.
    pub hold_usd_per_mtok_hour: Option<f64>,
    /// The time to read the tier once.
    pub drain_s: Option<f64>,
    /// The time from which on computing it anew is cheaper.
    pub recompute_cheaper_after_s: Option<f64>,
}

/// A stretch of the envelope.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SegmentCard {
    /// The cheapest way.
    pub id: String,
    /// From when on.
    pub from_s: f64,
    /// Until when; none for the last.
    pub to_s: Option<f64>,
}

/// A published lifetime.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DurationCard {
    /// How long.
    pub duration_s: f64,
    /// The cheapest way to keep it that long, by cost.
    pub cheapest: String,
    /// Every tier with its drain time and the lifetime over it, nearest first.
    pub candidates: Vec<CandidateCard>,
}

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
    pub source: Remark,
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

struct Way {
    id: String,
    name: Remark,
    short: String,
    line: Option<Line>,
    drain: Option<Seconds>,
}

/// Answers.
pub fn answer(catalog: &Catalog, q: &Request) -> Result<Answer, Error> {
    let r = resolve(catalog, &q.setting)?;
    if !r.priced() {
        return Err(no_price(&r.system.chip, "usual", "another chip"));
    }
    // The decode rate plays no part in keeping or recomputing.
    let card = rates(catalog, &q.setting, &r, &q.rates)?;
    let (nobody_serves, prefill) = (card.nobody_serves().cloned(), card.prefill);
    let mut assumptions = vec![prefill.words.clone()];
    let compute = DollarsPerToken::usd_per_token(r.chip_price.get() / prefill.tok_s.value);
    let tiers = tiers(catalog, &q.tiers)?;
    let ways = ways(&r, &tiers, compute);
    let priced: Vec<(usize, Line)> = ways.iter().enumerate().filter_map(|(i, w)| Some((i, w.line?))).collect();
    let lines: Vec<Line> = priced.iter().map(|(_, l)| *l).collect();
    let segments = envelope(&lines);
    let id = |line: usize| ways[priced[line].0].id.clone();
    let reuse = q.reuse.as_ref().map(|wanted| {
        let kept: Vec<(String, Line)> =
            priced.iter().filter(|(i, _)| *i > 0).map(|(i, l)| (ways[*i].id.clone(), *l)).collect();
        kept_for(wanted, &kept, compute)
    });
    let (reuse, hit_figure) = reuse.transpose()?.unzip();
    assumptions.extend([says("tier_is_paid"), says("chip_hour_from").with("source", r.price_source.remark())]);
    let state = r.cache.stored_fixed();
    if state.get() > 0.0 {
        assumptions.push(says("state_kept").with("state", state));
    }
    let segment = |s: &Segment| SegmentCard { id: id(s.line), from_s: s.from.get(), to_s: s.to.map(Seconds::get) };
    let source = |t: &Arc<MemoryTier>| t.cost_source().unwrap_or(&t.capacity.source).to_owned();
    let sources = tiers.iter().map(|t| says("source_of").with("of", &t.id).with("source", source(t)));
    Ok(Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        kv_bytes_per_token: r.cache.stored_per_token().get(),
        nobody_serves,
        prefill,
        lines: ways.iter().map(|w| line_card(w, &lines[0])).collect(),
        envelope: segments.iter().map(segment).collect(),
        durations: durations(&q.durations_s, &ways, &segments, id)?,
        reuse,
        figure: figure(&r, &ways, &lines, &segments),
        hit_figure,
        assumptions,
        sources: sources.collect(),
    })
}

fn tiers(catalog: &Catalog, wanted: &[String]) -> Result<Vec<Arc<MemoryTier>>, Error> {
    let ids = named_or_all(wanted, catalog.ids(rackmath_spec::Kind::Tiers));
    let mut all = ids.iter().map(|id| catalog.tier(id)).collect::<Result<Vec<_>, _>>()?;
    all.sort_by(|a, b| lifetime::drain(a).get().total_cmp(&lifetime::drain(b).get()));
    Ok(all)
}

/// Recomputing, the chip's own memory, then the tiers by drain time.
fn ways(r: &Resolved, tiers: &[Arc<MemoryTier>], compute: DollarsPerToken) -> Vec<Way> {
    let kv = r.cache.stored_per_token();
    let memory = &r.system.chip.memory;
    let remat = Line { retrieve: compute, hold: HoldPrice::ZERO };
    let way = |id: &str, name: Remark, short: &str, line, drain| {
        let (id, short) = (id.to_owned(), short.to_owned());
        Way { id, name, short, line, drain }
    };
    let hbm = says("memory_of").with("chip", &r.system.chip.name);
    let (held, drain) = (memory.size(), roofline::drain(memory.size(), memory.bandwidth.value));
    let mut all = vec![
        way("rematerialise", says("compute_anew"), "recompute", Some(remat), None),
        way("HBM", hbm, "HBM", Some(in_memory(kv, held, r.chip_price)), Some(drain)),
    ];
    all.extend(
        tiers.iter().map(|t| way(&t.id, t.name.as_str().into(), &t.id, in_tier(kv, t), Some(lifetime::drain(t)))),
    );
    all
}

fn line_card(w: &Way, remat: &Line) -> LineCard {
    LineCard {
        id: w.id.clone(),
        name: w.name.clone(),
        retrieve_usd_per_mtok: w.line.as_ref().map(|l| l.retrieve.as_per_mtok()),
        hold_usd_per_mtok_hour: w.line.as_ref().map(|l| l.hold.as_per_mtok_hour()),
        drain_s: w.drain.map(Seconds::get),
        recompute_cheaper_after_s: w.line.as_ref().and_then(|l| break_even(l, remat)).map(Seconds::get),
    }
}

fn durations(
    wanted: &[f64],
    ways: &[Way],
    segments: &[Segment],
    id: impl Fn(usize) -> String,
) -> Result<Vec<DurationCard>, Error> {
    let drains: Vec<(String, Seconds)> = ways.iter().filter_map(|w| Some((w.id.clone(), w.drain?))).collect();
    let card = |&duration_s: &f64| {
        let duration = Seconds::checked(duration_s).filter(|d| d.get() > 0.0 && d.get() <= 1e10);
        let duration = duration.ok_or_else(|| Error::value("duration", duration_s, "seconds above 0, at most 1e10"))?;
        let at = segments.iter().find(|g| g.to.is_none_or(|to| duration <= to));
        let cheapest = at.map_or_else(String::new, |g| id(g.line));
        Ok(DurationCard { duration_s, cheapest, candidates: candidates(duration, &drains) })
    };
    wanted.iter().map(card).collect()
}

/// From a millisecond to a year.
fn figure(r: &Resolved, ways: &[Way], lines: &[Line], segments: &[Segment]) -> Figure {
    let times: Vec<f64> = (0..=200).map(|i| float::pow(10.0, -3.0 + 10.5 * f64::from(i) / 200.0)).collect();
    let points = |l: &Line| -> Vec<(f64, f64)> {
        let all = times.iter().map(|&t| (t, l.cost(Seconds::s(t)).as_per_mtok()));
        all.filter(|p| p.1 > 1e-9).collect()
    };
    let priced = ways.iter().zip(0..).filter_map(|(w, i)| Some((w, i, w.line.as_ref()?)));
    let mut series: Vec<Series> =
        priced.map(|(w, i, line)| Series::new(w.short.clone(), Role::Choice(i), points(line))).collect();
    let least = |t: f64| lines.iter().map(|l| l.cost(Seconds::s(t)).as_per_mtok()).fold(f64::INFINITY, f64::min);
    let envelope = times.iter().map(|&t| (t, least(t))).filter(|p| p.1 > 1e-9);
    series.push(Series::new("cheapest", Role::Envelope, envelope));
    let ends = segments.iter().filter_map(|s| s.to).filter(|t| t.get() >= 1e-3 && t.get() <= 3e7);
    let marks = ends.map(|t| Mark::at(t.get(), least(t.get()), says("a_time").with("x", t)));
    let subtitle = says("of_cache").with("bytes", r.cache.stored_per_token());
    let y = Axis::log("dollars per million tokens", Unit::UsdPerMtok);
    let axes = (Axis::log("time between two uses", Unit::Seconds), y);
    Figure::of(r.titled("prefix_again"), subtitle, axes, series).marked(marks)
}

/// Lifetimes worth a row.
const LIFETIMES_S: [f64; 9] = [10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0, 86_400.0];

/// Hit rate against lifetime, and the lifetime that costs least in each tier.
fn kept_for(
    wanted: &ReuseRequest,
    tiers: &[(String, Line)],
    compute: DollarsPerToken,
) -> Result<(ReuseCard, Figure), Error> {
    let (reuse, source) = read(wanted)?;
    let max = reuse.hit_rate(Seconds::s(1e12)).get();
    let card = |(id, line): &(String, Line)| {
        let (ttl, cost) = best_ttl(&reuse, line, compute);
        let hit_rate = if ttl.get() > 0.0 { reuse.hit_rate(ttl).get() } else { 0.0 };
        BestCard { id: id.clone(), ttl_s: ttl.get(), hit_rate, usd_per_mtok: cost.as_per_mtok() }
    };
    let mut best: Vec<BestCard> = tiers.iter().map(card).collect();
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
    let axes = (Axis::log("lifetime after the last use", Unit::Seconds), Axis::linear("hit rate", Unit::Number));
    let without = Series::new("without expiry", Role::Floor, [(0.1, max), (end, max)]);
    let series = [Series::new("hit rate", Role::Envelope, points), without];
    Ok((card, Figure::of("Share of prompt tokens found in the cache", source, axes, series)))
}

fn read(wanted: &ReuseRequest) -> Result<(Reuse, Remark), Error> {
    if let Some(text) = &wanted.trace_text {
        let trace = file::trace(&wanted.trace_name, text)?;
        let expected = "JSON lines with hash_ids, which say what prompts share";
        refuse_if(!trace.has_blocks(), "trace", format!("\"{}\"", wanted.trace_name), expected)?;
        let source = says("requests_over").with("trace", &wanted.trace_name).with("requests", trace.requests.len());
        return Ok((Reuse::of(&trace), source.with("span", trace.span())));
    }
    let one = |&(gap, share)| Some((Seconds::checked(gap).filter(|g| g.get() <= 1e10)?, Fraction::checked(share)?));
    let gaps: Option<Vec<(Seconds, Fraction)>> = wanted.gaps.iter().map(one).collect();
    let gaps = gaps.filter(|g| !g.is_empty() && g.iter().map(|(_, s)| s.get()).sum::<f64>() <= 1.0 + 1e-9);
    let expected = "seconds and shares of prompt tokens that add up to at most 1";
    let gaps = gaps.ok_or_else(|| Error::value("gaps", format!("{:?}", wanted.gaps), expected))?;
    Ok((Reuse::of_gaps(&gaps), says("gaps_as_given").with("gaps", gaps.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        let catalog = rackmath_catalog::embedded();
        let shares = ReuseRequest { gaps: vec![(10.0, 0.9), (20.0, 0.9)], ..ReuseRequest::default() };
        for (wrong, word) in [
            (Request { durations_s: vec![-1.0], ..Request::default() }, "duration"),
            (Request { reuse: Some(shares), ..Request::default() }, "add up to at most 1"),
            (Request { tiers: vec!["hd".into()], ..Request::default() }, "hdd"),
        ] {
            assert!(answer(&catalog, &wrong).unwrap_err().to_string().contains(word));
        }
    }
}
