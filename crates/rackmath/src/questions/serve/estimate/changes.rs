//! Single changes, tried one by one by the same function, and those that help most.

use super::ask::{Case, Loading};
use super::card::Change;
use super::ideas::{Idea, ideas};
use super::serve::{Outcome, Prepared, evaluate};
use rackmath_spec::Catalog;
use rackmath_theory::layout::check;

/// How many are kept.
const KEPT: usize = 3;

/// Gains below this share are not worth a line.
const LEAST: f64 = 0.01;

/// Requests in flight up to which users' speed counts more than throughput.
const FEW: f64 = 8.0;

/// How long a token may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slowest {
    /// As long as it likes.
    Any,
    /// No longer than today.
    Today,
    /// As long as the target says.
    Target,
}

/// By what changes are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Output tokens per second and chip, at no worse a time per token unless any will do.
    Throughput { slowest: Slowest },
    /// Time per output token.
    Speed,
    /// From arrival to the last token.
    Whole,
}

impl Goal {
    fn of(load: Loading, target: bool) -> Self {
        match load {
            _ if target && load == Loading::Full => Self::Throughput { slowest: Slowest::Target },
            Loading::Full => Self::Throughput { slowest: Slowest::Any },
            Loading::Rate(_) => Self::Whole,
            Loading::Concurrency(c) if c <= FEW => Self::Speed,
            Loading::Concurrency(_) if target => Self::Throughput { slowest: Slowest::Target },
            Loading::Concurrency(_) => Self::Throughput { slowest: Slowest::Today },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Throughput { slowest: Slowest::Today } => "output tok/s per chip, at no longer a time per token",
            Self::Throughput { slowest: Slowest::Target } => "output tok/s per chip, within the target",
            Self::Throughput { slowest: Slowest::Any } => "output tok/s per chip",
            Self::Speed => "output tok/s per user",
            Self::Whole => "time from arrival to the last token",
        }
    }
}

/// The best three.
pub(super) fn best(catalog: &Catalog, case: &Case, prepared: &Prepared, now: &Outcome) -> Vec<Change> {
    let goal = Goal::of(case.ask.load, case.request.tpot_slo_ms.is_some());
    let slo = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    let targets = (slo(case.request.ttft_slo_ms), slo(case.request.tpot_slo_ms));
    let meets = |o: &Outcome| {
        o.serves() && targets.0.is_none_or(|t| o.ttft + o.queue <= t) && targets.1.is_none_or(|t| o.tpot() <= t)
    };
    let mut tried: Vec<(bool, f64, Change)> = Vec::new();
    for idea in ideas(catalog, case, prepared) {
        let Some(then) = outcome(case, &idea, prepared) else { continue };
        let (a, b) = (&case.ask.requests, &idea.ask.requests);
        let gain = match goal {
            Goal::Throughput { slowest } => {
                let slower = then.tpot() > now.tpot() * (1.0 + 1e-9);
                if slowest == Slowest::Today && now.serves() && slower {
                    continue;
                }
                then.output_per_chip(b) / now.output_per_chip(a)
            }
            Goal::Speed => now.tpot() / then.tpot(),
            Goal::Whole => now.e2e(a) / then.e2e(b),
        } - 1.0;
        let rescues = !meets(now) && meets(&then);
        if meets(now) && !meets(&then) {
            continue;
        }
        if !rescues && (gain < LEAST || !now.serves()) {
            continue;
        }
        let engine = &idea.ask.parts.engine;
        tried.push((
            rescues,
            gain,
            Change {
                what: idea.what,
                judged_by: goal.name().into(),
                gain: now.serves().then_some(gain),
                within_interval: idea.foreign
                    && gain < rackmath_units::float::exp(prepared.spread(engine.spread.tpot)) - 1.0,
                rescues,
                chips: then.chips as u64,
                tpot_ms: then.tpot() * 1e3,
                ttft_ms: (then.ttft + then.queue) * 1e3,
                output_tok_s_per_chip: then.output_per_chip(b),
                usd_per_mtok_output: then.usd_per_mtok(b, idea.ask.price).map(|u| u.0),
                caution: idea.caution.map(str::to_owned),
            },
        ));
    }
    tried.sort_by(|x, y| y.0.cmp(&x.0).then(y.1.total_cmp(&x.1)));
    tried.into_iter().take(KEPT).map(|(_, _, change)| change).collect()
}

/// What a change would lead to; nothing when it cannot be or does not fit.
fn outcome(case: &Case, idea: &Idea, prepared: &Prepared) -> Option<Outcome> {
    let (a, b) = (&idea.ask.parts, &case.ask.parts);
    check(&a.model, &a.system, &a.layout).ok()?;
    let same = a.layout == b.layout
        && a.formats == b.formats
        && a.kv == b.kv
        && a.engine == b.engine
        && a.system.id == b.system.id;
    let then = if same {
        // Only the load or the requests differ: the passes are the same.
        evaluate(prepared, &idea.ask.requests, idea.ask.load)
    } else {
        let prepared = Prepared::new(&case.kernels, &idea.ask).ok()?;
        evaluate(&prepared, &idea.ask.requests, idea.ask.load)
    };
    then.serves().then_some(then)
}
