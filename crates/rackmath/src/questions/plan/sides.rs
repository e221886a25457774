//! Plans side by side: what is compared, and when a difference is larger than the uncertainty.
//!
//! $$ |\ln (a / b)| > w_{ab} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | a, b | value | - | two predictions |
//! | w_ab | `apart` | 1 | logarithm of the factor that holds 80 % of the ratios of what was measured to what was predicted (`desk::evidence`) |
//!
//! Numbers without an interval (chips, dollars per hour) are compared as they stand.

use crate::desk::evidence::{Evidence, Scale};
use crate::desk::prelude::*;
use crate::desk::remark::Part;
use crate::plan::{Plan, Request};
use crate::setting::common_basis;
use rackmath_spec::Basis;
use rackmath_spec::evidence::Widths;
use rackmath_theory::plan::Objective;

/// One number of a plan; its name in JSON ends with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Dollars per million output tokens.
    UsdPerMtok,
    /// Output tokens per second and chip.
    TokSPerChip,
    /// Output tokens per second of a user.
    TokSPerUser,
    /// Time per output token.
    TpotMs,
    /// Time to first token.
    TtftMs,
    /// A whole request.
    E2eMs,
    /// Output tokens per second of all.
    ThroughputTokS,
    /// Chips of all.
    Chips,
    /// Replicas.
    Replicas,
    /// Requests in flight over all replicas.
    Concurrency,
    /// Dollars per hour.
    UsdPerHour,
    /// Power of the chips.
    PowerKw,
    /// Joules per output token.
    JoulesPerToken,
}

impl Measure {
    /// All, in the order pages show them.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// What an objective makes best.
    pub(crate) fn made_best(objective: Objective) -> Self {
        match objective {
            Objective::Cost => Self::UsdPerMtok,
            Objective::Chips => Self::Chips,
            Objective::Energy => Self::JoulesPerToken,
            Objective::Latency => Self::E2eMs,
            Objective::Throughput => Self::ThroughputTokS,
            Objective::Speed => Self::TpotMs,
            Objective::Hourly => Self::UsdPerHour,
        }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::UsdPerMtok => "cost",
            Self::TokSPerChip => "throughput of a full chip",
            Self::TokSPerUser => "throughput per user",
            Self::TpotMs => "time per output token",
            Self::TtftMs => "time to first token",
            Self::E2eMs => "whole request",
            Self::ThroughputTokS => "throughput",
            Self::Chips => "chips",
            Self::Replicas => "replicas",
            Self::Concurrency => "requests in flight",
            Self::UsdPerHour => "dollars per hour",
            Self::PowerKw => "power",
            Self::JoulesPerToken => "energy per output token",
        }
    }

    /// Whether more is better; none where neither is.
    pub fn more_is_better(self) -> Option<bool> {
        match self {
            Self::TokSPerChip | Self::TokSPerUser | Self::ThroughputTokS => Some(true),
            Self::Replicas | Self::Concurrency => None,
            _ => Some(false),
        }
    }

    /// Half width of the interval of the ratio of two plans' numbers.
    pub(crate) fn apart(self, scale: &Scale, a: &Plan, b: &Plan) -> f64 {
        let w = apart(scale, a.evidence.as_ref(), b.evidence.as_ref());
        let full = |p: &Plan| p.busy >= 1.0 - 1e-9;
        match self {
            Self::TpotMs | Self::TokSPerUser => w.tpot,
            Self::TtftMs => w.ttft,
            Self::E2eMs => w.tpot.max(w.ttft),
            Self::UsdPerMtok | Self::TokSPerChip | Self::JoulesPerToken => w.throughput,
            Self::ThroughputTokS if full(a) || full(b) => w.throughput,
            // Replicas enough for a rate are as many as throughput makes them.
            Self::UsdPerHour if !full(a) && !full(b) => w.throughput,
            _ => 0.0,
        }
    }

    /// The number of a plan, with its interval where it has one; none where it is not known.
    pub fn of(self, p: &Plan) -> Option<Range> {
        let bare = |value: f64| Range { value, low: value, high: value };
        let known = |value: f64| (value > 0.0).then(|| bare(value));
        match self {
            Self::UsdPerMtok => Some(p.usd_per_mtok).filter(|r| r.value > 0.0),
            Self::TokSPerChip => Some(p.tok_s_per_chip),
            Self::TokSPerUser => Some(p.tok_s_per_user),
            Self::TpotMs => Some(p.tpot_ms),
            Self::TtftMs => Some(p.ttft_ms),
            Self::E2eMs => Some(p.e2e_ms),
            // Full replicas deliver what they can; others what is asked of them.
            Self::ThroughputTokS if p.busy >= 1.0 - 1e-9 => {
                Some(Range::of(p.throughput_tok_s, spread(p.tok_s_per_chip)))
            }
            Self::ThroughputTokS => Some(bare(p.throughput_tok_s)),
            Self::Chips => Some(bare(p.chips as f64)),
            Self::Replicas => Some(bare(p.replicas as f64)),
            Self::Concurrency => Some(bare(p.concurrency)),
            Self::UsdPerHour => known(p.usd_per_hour),
            Self::PowerKw => known(p.power_kw),
            Self::JoulesPerToken => known(p.joules_per_token).map(|r| Range::of(r.value, spread(p.tok_s_per_chip))),
        }
    }
}

/// The name of a side and its question.
pub(crate) type Side = (String, Request);

/// Traffic and lengths of all; where each fills as many chips as it has, that.
pub(crate) fn common<'a>(workloads: impl Iterator<Item = &'a Remark> + Clone) -> Remark {
    let Some(first) = workloads.clone().next() else { return Remark::default() };
    let each = |w: &Remark| w.clone().with("traffic", says("each_filled"));
    let all = says("chips_filled").says;
    let fills = |w: &Remark| matches!(w.with.get("traffic"), Some(Part::Remark(said)) if said.says == all);
    let alike = workloads.clone().all(|w| fills(w) && each(w) == each(first));
    if alike && workloads.clone().any(|w| w != first) { each(first) } else { first.clone() }
}

/// What a comparison is over, and the question of each side by name: machines, models or engines, of which one may be
/// listed; the machines of the plan when none is.
pub(crate) fn questions(
    plan: &Request,
    systems: &[String],
    models: &[String],
    engines: &[String],
) -> Result<(&'static str, Vec<Side>), Error> {
    let lists = [systems, models, engines];
    let several = lists.iter().filter(|l| !l.is_empty()).count() > 1;
    refuse_if(several, "compare", "more than one list", "systems, models or engines: one at a time")?;
    if let Some(list) = lists.into_iter().find(|l| l.len() > MOST) {
        return Err(Error::value("compare", format!("{} names", list.len()), format!("at most {MOST}")));
    }
    let with = |list: &[String], set: fn(&mut Request, &str)| {
        let side = |name: &String| {
            let mut request = plan.clone();
            set(&mut request, name);
            (name.clone(), request)
        };
        list.iter().map(side).collect::<Vec<_>>()
    };
    if !models.is_empty() {
        return Ok(("models", with(models, |r, name| r.setting.model = name.into())));
    }
    if !engines.is_empty() {
        return Ok(("engines", with(engines, |r, name| r.engines = vec![name.into()])));
    }
    let own: Vec<String> = plan.setting.on.split(',').map(|name| name.trim().to_owned()).collect();
    let systems = if systems.is_empty() { &own } else { systems };
    Ok(("systems", with(systems, |r, name| r.setting.on = name.into())))
}

/// Machines are held against each other by one kind of price, where none is asked for and all have one; else each has its
/// usual one, and they are not ranked by dollars.
pub(crate) fn like_with_like(catalog: &Catalog, sides: &mut [Side]) -> Result<(), Error> {
    if sides.iter().any(|(_, r)| r.setting.basis.is_some() || r.setting.price_usd_per_chip_hour.is_some()) {
        return Ok(());
    }
    let all: Vec<&str> =
        sides.iter().flat_map(|(_, r)| r.setting.on.split(',')).filter(|on| !on.contains('+')).collect();
    let basis = common_basis(catalog, &all)?.map(|basis| basis.to_string());
    for (_, r) in sides {
        r.setting.basis.clone_from(&basis);
    }
    Ok(())
}

/// Kinds of price that are not ranked together: those of the catalogue, where they differ. What is given is ranked with any.
pub(crate) fn unranked<'a>(kinds: impl Iterator<Item = &'a str>) -> Option<Vec<&'a str>> {
    kinds_differ(kinds.filter(|kind| *kind != GIVEN))
}

/// Kinds of price in words, each once.
pub(crate) fn price_words(kinds: &[&str]) -> Vec<String> {
    let word = |kind: &&str| match *kind {
        GIVEN => "given".to_owned(),
        listed => listed.parse::<Basis>().map_or_else(|_| listed.to_owned(), |basis| basis.words().to_owned()),
    };
    kinds.iter().map(word).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// The kind of a price that is given.
pub(crate) const GIVEN: &str = "as given";

/// What the prices or powers of sides count, where they differ in it.
pub(crate) fn kinds_differ<'a>(kinds: impl Iterator<Item = &'a str>) -> Option<Vec<&'a str>> {
    let kinds: Vec<&str> = kinds.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    Some(kinds).filter(|kinds| kinds.len() > 1)
}

/// As many as a page holds.
const MOST: usize = 16;

/// The logarithm of the factor that holds 80 % of measurements.
pub(crate) fn spread(r: Range) -> f64 {
    if r.high > r.value && r.value > 0.0 { float::ln(r.high / r.value) } else { 0.0 }
}

/// Whether two predictions cannot be told apart within a width.
pub(crate) fn too_close(a: f64, b: f64, width: f64) -> bool {
    float::ln(a / b).abs() <= width
}

/// Half widths of the ratio of two predictions; of a bound and a prediction, those of the prediction.
pub(crate) fn apart(scale: &Scale, a: Option<&Evidence>, b: Option<&Evidence>) -> Widths {
    match (a, b) {
        (Some(a), Some(b)) => scale.apart(a, b),
        (Some(one), None) | (None, Some(one)) => one.widths(),
        (None, None) => Widths::default(),
    }
}

/// Plans on other chips or under other engines that cannot be told apart from the first; the best of each.
pub(crate) fn gaps(scale: &Scale, objective: Objective, plans: &[Plan]) -> Vec<Remark> {
    let measure = Measure::made_best(objective);
    let Some((best, others)) = plans.split_first() else { return Vec::new() };
    let sort = |p: &Plan| p.evidence.as_ref().map(|e| (e.chip.clone(), e.engine.clone()));
    let mut seen = vec![sort(best)];
    let mut all = Vec::new();
    for plan in others {
        if seen.contains(&sort(plan)) {
            continue;
        }
        seen.push(sort(plan));
        let Some((a, b)) = measure.of(best).zip(measure.of(plan)) else { continue };
        let width = measure.apart(scale, best, plan);
        let by = (a.value / b.value).max(b.value / a.value);
        if by > 1.0 && too_close(a.value, b.value, width) {
            let said = says("apart_plan").with("name", &plan.system).with("engine", &plan.engine).with("by", by);
            let said = said.with("measure", measure.name()).with("within", float::exp(width));
            all.push(said.with("run", decider(best.evidence.as_ref(), plan.evidence.as_ref())));
        }
    }
    all
}

/// Which run would tell two predictions apart.
pub(crate) fn decider(a: Option<&Evidence>, b: Option<&Evidence>) -> Option<Remark> {
    match (a, b) {
        // What was measured, but not precisely enough, is measured under the load of the question.
        (Some(a), Some(b)) if a.missing(b).rows > 0 => Some(says("run_of_both")),
        (Some(a), Some(b)) => Some(a.missing(b).run()),
        (one, other) => one.or(other).map(Evidence::run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_width_of_a_third_calls_a_third_too_close() {
        // exp(0.354) = 1.42.
        assert!(too_close(1.0, 1.4, 0.354) && !too_close(1.0, 1.45, 0.354));
    }

    proptest! {
        #[test]
        fn who_is_called_first_does_not_matter(a in 0.01..100.0_f64, b in 0.01..100.0_f64, w in 0.0..1.0_f64) {
            prop_assert_eq!(too_close(a, b, w), too_close(b, a, w));
        }
    }
}
