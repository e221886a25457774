//! What a published training run must have been: any of its numbers from the others, with intervals.

use crate::Error;
use crate::desk::check::{no_peak, within};
use rackmath_spec::{Catalog, Dtype};
use rackmath_theory::forensics::{self as theory, COUNT, Interval, Variable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A low and a high end; equal when known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

/// What is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// A published run to start from.
    #[schemars(extend("x-position" = 1))]
    pub run: Option<String>,
    /// The chip, for its dense peak.
    #[schemars(extend("x-flag" = "on chip"))]
    pub on: Option<String>,
    /// The format it computed in; bf16 unless given.
    pub format: Option<String>,
    /// Chip-hours.
    #[schemars(extend("x-flag" = "chip-hours gpu-hours", "x-unit" = "rounded"))]
    pub chip_hours: Option<Known>,
    /// Chips.
    #[schemars(extend("x-flag" = "chips gpus", "x-unit" = "exact"))]
    pub chips: Option<Known>,
    /// Days from start to end.
    #[schemars(extend("x-unit" = "rounded"))]
    pub days: Option<Known>,
    /// Active parameters.
    #[schemars(extend("x-flag" = "params -n", "x-unit" = "rounded"))]
    pub params: Option<Known>,
    /// Training tokens.
    #[schemars(extend("x-flag" = "tokens -d", "x-unit" = "rounded"))]
    pub tokens: Option<Known>,
    /// Model arithmetic, FLOP.
    #[schemars(extend("x-flag" = "flop flops", "x-unit" = "rounded"))]
    pub flop: Option<Known>,
    /// Share of the dense peak in use.
    #[schemars(extend("x-unit" = "rounded"))]
    pub mfu: Option<Known>,
    /// Dense peak of a chip, FLOP/s.
    #[schemars(extend("x-unit" = "exact"))]
    pub peak_flop_per_s: Option<Known>,
    /// Dollars per chip-hour.
    #[schemars(extend("x-unit" = "exact"))]
    pub price_usd_per_chip_hour: Option<Known>,
    /// Dollars of the run.
    #[schemars(extend("x-unit" = "rounded"))]
    pub usd: Option<Known>,
    /// FLOP per parameter and token; 6 unless attention or recompute is counted.
    pub flop_per_param: Option<f64>,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// One line per number.
    pub findings: Vec<FindingCard>,
    /// Achieved FLOP/s of a chip, where known: estimate, low and high.
    pub achieved_flop_per_s: Option<(f64, f64, f64)>,
    /// What cannot be, where the givens contradict each other.
    pub contradiction: Option<ContradictionCard>,
    /// Where given numbers come from.
    pub sources: Vec<String>,
    /// What was assumed.
    pub assumptions: Vec<String>,
}

/// One number of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindingCard {
    /// Which.
    pub what: String,
    /// As given.
    pub given: Option<Known>,
    /// Best estimate.
    pub estimate: Option<f64>,
    /// Nine in ten lie within.
    pub likely: Option<Known>,
    /// It cannot lie below, where anything says so.
    pub at_least: Option<f64>,
    /// It cannot lie above, where anything says so.
    pub at_most: Option<f64>,
}

/// A relation the givens cannot all satisfy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ContradictionCard {
    /// The relation.
    pub relation: String,
    /// The number it was noticed at.
    pub at: String,
    /// What the relation demands of it.
    pub demanded: Known,
    /// What is known of it.
    pub known: Known,
    /// By which factor the two miss each other.
    pub gap: f64,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let mut r = request.clone();
    let (mut sources, mut assumptions) = (Vec::new(), Vec::new());
    if let Some(name) = &r.run {
        let run = catalog.training_run(name)?;
        let known = |i: Interval| Known { low: i.0, high: i.1 };
        r.on = r.on.or_else(|| run.chip.clone());
        r.chips = r.chips.or(run.chips.map(|n| Known { low: n, high: n }));
        r.chip_hours = r.chip_hours.or(run.chip_hours.map(known));
        r.params = r.params.or(run.active_params.map(known));
        r.tokens = r.tokens.or(run.tokens.map(known));
        r.mfu = r.mfu.or(run.mfu.map(known));
        r.days = r.days.or(run.days.map(known));
        sources.push(format!("{}: {}", run.name, run.source));
        assumptions.extend(run.notes.iter().cloned());
    }
    if let Some(name) = &r.on {
        let chip = catalog.chip(name)?;
        let format = r.format.clone().unwrap_or_else(|| "bf16".into());
        let (math, peak) = chip.peak_for(format.parse::<Dtype>()?).ok_or_else(|| no_peak(&chip, &chip.id, format))?;
        let value = peak.value.get();
        r.peak_flop_per_s = r.peak_flop_per_s.or(Some(Known { low: value, high: value }));
        sources.push(format!("{} {math} dense peak: {}", chip.name, peak.source));
    }
    let k = r.flop_per_param.unwrap_or(6.0);
    within("flop_per_param", k, 0.1, 1e3)?;
    assumptions.push(format!("{k} FLOP per active parameter and token"));
    let given = given(&r)?;
    if given.iter().all(Option::is_none) {
        return Err(Error::value(
            "what is known",
            "nothing",
            "a run of the catalogue such as deepseek-v3, or some of its numbers such as --tokens and --chip-hours",
        ));
    }
    let found = theory::infer(&given, k);
    let estimate = |v: Variable| found.all.iter().find(|f| f.variable == v).and_then(|f| f.estimate);
    let achieved = estimate(Variable::Mfu)
        .zip(estimate(Variable::Peak))
        .map(|((u, (low, high)), (f, _))| (u * f, low * f, high * f));
    Ok(Answer {
        achieved_flop_per_s: achieved,
        findings: found.all.iter().map(card).collect(),
        contradiction: found.contradiction.map(|c| ContradictionCard {
            relation: c.relation.into(),
            at: c.variable.to_string(),
            demanded: Known { low: c.demanded.0, high: capped(c.demanded.1) },
            known: Known { low: c.known.0, high: capped(c.known.1) },
            gap: c.gap,
        }),
        request: request.clone(),
        sources,
        assumptions,
    })
}

/// JSON has no infinity.
fn capped(x: f64) -> f64 {
    x.min(f64::MAX)
}

fn card(f: &theory::Finding) -> FindingCard {
    let known = |(low, high): Interval| Known { low, high };
    FindingCard {
        what: f.variable.to_string(),
        given: f.given.map(known),
        estimate: f.estimate.map(|e| e.0),
        likely: f.estimate.map(|e| known(e.1)),
        at_least: (f.bounds.0 > 0.0).then_some(f.bounds.0),
        at_most: f.bounds.1.is_finite().then_some(f.bounds.1),
    }
}

fn given(r: &Request) -> Result<[Option<Interval>; COUNT], Error> {
    let fields: [(&'static str, Option<Known>); COUNT] = [
        ("chip_hours", r.chip_hours),
        ("chips", r.chips),
        ("days", r.days),
        ("params", r.params),
        ("tokens", r.tokens),
        ("flop", r.flop),
        ("mfu", r.mfu),
        ("peak", r.peak_flop_per_s),
        ("price", r.price_usd_per_chip_hour),
        ("usd", r.usd),
    ];
    let mut all = [None; COUNT];
    for (slot, (field, known)) in all.iter_mut().zip(fields) {
        if let Some(k) = known {
            if !(k.low > 1e-12 && k.low <= k.high && k.high < 1e40) {
                return Err(Error::value(
                    field,
                    format!("{} to {}", k.low, k.high),
                    "a low end above 0, then a high end",
                ));
            }
            *slot = Some((k.low, k.high));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(a: &'a Answer, what: &str) -> &'a FindingCard {
        a.findings.iter().find(|f| f.what == what).unwrap()
    }

    #[test]
    fn no_published_run_contradicts_itself() {
        let catalog = rackmath_catalog::embedded();
        let ids: Vec<String> = catalog.ids(rackmath_spec::Kind::Runs).map(str::to_owned).collect();
        for id in ids {
            let a = answer(&catalog, &Request { run: Some(id.clone()), ..Request::default() }).unwrap();
            assert!(a.contradiction.is_none(), "{id}: {:?}", a.contradiction);
        }
        // Llama 3 70B: 6 x 70 B x 15 T / (6.4 M h x 989.5 TFLOP/s) = 27.6 %.
        let a = answer(&catalog, &Request { run: Some("llama-3-70b".into()), ..Request::default() }).unwrap();
        assert!((of(&a, "MFU").estimate.unwrap() - 0.276).abs() < 2e-3);
    }

    #[test]
    fn nothing_known_is_refused() {
        assert!(answer(&rackmath_catalog::embedded(), &Request::default()).is_err());
        let bad = Some(Known { low: 2.0, high: 1.0 });
        assert!(answer(&rackmath_catalog::embedded(), &Request { mfu: bad, ..Request::default() }).is_err());
    }
}
