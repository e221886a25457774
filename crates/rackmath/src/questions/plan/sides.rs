//! Plans side by side: what is compared, and when a difference is larger than the uncertainty.
//!
//! $$ |\ln (a / b)| > \sqrt{s_a^2 + s_b^2} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | a, b | value | - | two predictions |
//! | s | spread | 1 | logarithm of the factor that holds 80 % of measurements |
//!
//! Assumes: errors of two predictions are independent. Those of one engine on one chip are not, so that a difference may be
//! real although it is called too close. Numbers without an interval (chips, dollars per hour) are compared as they stand.

use crate::desk::prelude::*;
use crate::plan::{Plan, Request};
use crate::setting::common_basis;
use rackmath_spec::Basis;

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

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::UsdPerMtok => "cost",
            Self::TokSPerChip => "throughput per chip",
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

/// A ratio of two predictions with its interval.
pub(crate) fn ratio(a: Range, b: Range) -> Range {
    let (s, t) = (spread(a), spread(b));
    Range::of(a.value / b.value, (s * s + t * t).sqrt())
}

/// Whether two predictions are within their uncertainty.
pub(crate) fn too_close(a: Range, b: Range) -> bool {
    let r = ratio(a, b);
    r.low <= 1.0 && 1.0 <= r.high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_intervals_of_a_quarter_call_a_third_too_close() {
        // sqrt(2) x 0.25 = 0.354, a factor of 1.42.
        let (a, near, far) = (Range::of(1.0, 0.25), Range::of(1.4, 0.25), Range::of(1.45, 0.25));
        assert!(too_close(a, near) && !too_close(a, far));
    }

    proptest! {
        #[test]
        fn who_is_called_first_does_not_matter(a in 0.01..100.0_f64, b in 0.01..100.0_f64, s in 0.0..1.0_f64, t in 0.0..1.0_f64) {
            prop_assert_eq!(too_close(Range::of(a, s), Range::of(b, t)), too_close(Range::of(b, t), Range::of(a, s)));
        }
    }
}
