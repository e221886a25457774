//! What a published training run must have been: any of its numbers from the others, with intervals.

use crate::desk::prelude::*;
use rackmath_theory::forensics::{COUNT, infer};
pub use rackmath_theory::forensics::{Contradiction, Finding, Interval as Known, Variable};

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
    pub findings: Vec<Finding>,
    /// Achieved FLOP/s of a chip, where known: estimate, low and high.
    pub achieved_flop_per_s: Option<(f64, f64, f64)>,
    /// What MFU is a share of, and what is counted.
    pub counted: Remark,
    /// What cannot be, where the givens contradict each other.
    pub contradiction: Option<Contradiction>,
    /// What MFU the others say, where they contradict the one given.
    pub mfu_of_the_others: Option<f64>,
    /// Share of the hours that would have to be lost to stops for the MFU of steps and the hours to agree, where that could be.
    pub lost_share: Option<f64>,
    /// Where given numbers come from.
    pub sources: Vec<Remark>,
    /// What was assumed.
    pub assumptions: Vec<Remark>,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let mut r = request.clone();
    let (mut sources, mut assumptions, mut arithmetic) = (Vec::new(), Vec::new(), None);
    if let Some(name) = &r.run {
        let run = catalog.training_run(name)?;
        r.on = r.on.or_else(|| run.chip.clone());
        r.chips = r.chips.or(run.chips.map(Known::exact));
        r.chip_hours = r.chip_hours.or(run.chip_hours.map(Known::from));
        r.params = r.params.or(run.active_params.map(Known::from));
        r.tokens = r.tokens.or(run.tokens.map(Known::from));
        // Hours count stops as well, the MFU of steps does not: over all hours it is less by the share that was training.
        let printed = run.mfu.map(|(low, high)| match run.effective {
            Some((least, most)) if r.mfu.is_none() => {
                let share = says("mfu_over_all_hours").with("low", low).with("high", high);
                assumptions.push(share.with("least", least).with("most", most));
                Known { low: low * least, high: high * most }
            }
            _ => Known { low, high },
        });
        r.mfu = r.mfu.or(printed);
        r.days = r.days.or(run.days.map(Known::from));
        sources.push(says("source_of").with("of", &run.name).with("source", &run.source));
        assumptions.extend(run.notes.iter().map(Remark::from));
    }
    if let Some(name) = &r.on {
        let chip = catalog.chip(name)?;
        let format = r.format.clone().unwrap_or_else(|| "bf16".into());
        let (math, peak) = chip.peak_for(format.parse::<Dtype>()?).ok_or_else(|| no_peak(&chip, &chip.id, format))?;
        r.peak_flop_per_s = r.peak_flop_per_s.or(Some(Known::exact(peak.value.get())));
        sources.push(says("dense_peak_of").with("chip", &chip.name).with("math", math).with("source", &peak.source));
        arithmetic = Some(math);
    }
    let k = r.flop_per_param.unwrap_or(6.0);
    within("flop_per_param", k, 0.1, 1e3)?;
    assumptions.push(says("flop_per_param").with("flop", k));
    let given = given(&r)?;
    let expected =
        "a run of the catalogue such as deepseek-v3, or some of its numbers such as --tokens and --chip-hours";
    if given.iter().all(Option::is_none) {
        return Err(Error::said("nothing is known of the run").hint(format!("give {expected}")));
    }
    let (findings, contradiction) = infer(&given, k);
    let mut without = given;
    without[Variable::Mfu as usize] = None;
    let (others, at_odds) = infer(&without, k);
    let others = others[Variable::Mfu as usize].estimate.filter(|_| contradiction.is_some() && at_odds.is_none());
    let lost = others.zip(r.mfu).map(|(u, given)| 1.0 - u / given.low).filter(|lost| *lost > 0.0);
    let (mfu, peak) = (findings[Variable::Mfu as usize], findings[Variable::Peak as usize].estimate);
    let achieved = mfu.estimate.zip(mfu.likely).zip(peak);
    Ok(Answer {
        request: request.clone(),
        findings,
        counted: says("mfu_counted").with("flop", k).with("math", arithmetic),
        lost_share: lost,
        mfu_of_the_others: others.filter(|_| r.mfu.is_some()),
        achieved_flop_per_s: achieved.map(|((u, likely), f)| (u * f, likely.low * f, likely.high * f)),
        contradiction,
        sources,
        assumptions,
    })
}

/// The numbers as given, in the order of [`Variable`].
fn given(r: &Request) -> Result<[Option<Known>; COUNT], Error> {
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
    for (field, known) in fields {
        let Some(Known { low, high }) = known else { continue };
        let sound = low > 1e-12 && low <= high && high < 1e40;
        refuse_if(!sound, field, format!("{low} to {high}"), "a low end above 0, then a high end")?;
        // Rounded as it is typed, 50 is 49.5 to 50.5.
        let given = f64::midpoint(low, high);
        let expected = format!("a share of at most 1: {}, or {given}%", given / 100.0);
        refuse_if(field == "mfu" && low > 1.0, field, format!("{given}, which is {} %", given * 100.0), expected)?;
    }
    Ok(fields.map(|(_, known)| known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hours_of_llama_3_agree_with_its_steps_and_its_stops() {
        // 6 x 405 B x 15.6 T / (30.84 M h x 989.4 TFLOP/s) = 34.5 % of all hours; 38 % of steps in 90 % of the hours are 34.2 %.
        let request = Request { run: Some("llama-3-405b".into()), ..Request::default() };
        let a = answer(&rackmath_catalog::embedded(), &request).unwrap();
        assert!(a.contradiction.is_none(), "{a:?}");
        assert!((a.findings[Variable::Mfu as usize].estimate.unwrap() - 0.345).abs() < 5e-3, "{a:?}");
        // Who gives the MFU of steps for that of all hours is told what share of them must have been lost: 1 - 34.5 / 38.
        let given = Request { mfu: Some(Known { low: 0.38, high: 0.43 }), ..request };
        let a = answer(&rackmath_catalog::embedded(), &given).unwrap();
        let c = a.contradiction.as_ref().expect("the hours and the steps differ");
        assert!((a.mfu_of_the_others.unwrap() - 0.345).abs() < 1e-3 && (1.05..1.15).contains(&c.gap), "{a:?}");
        assert!((a.lost_share.unwrap() - 0.092).abs() < 2e-3, "{a:?}");
    }

    #[test]
    fn no_published_run_contradicts_itself_and_nothing_known_is_refused() {
        let catalog = rackmath_catalog::embedded();
        for id in catalog.ids(rackmath_spec::Kind::Runs) {
            let a = answer(&catalog, &Request { run: Some(id.to_owned()), ..Request::default() }).unwrap();
            assert!(a.contradiction.is_none(), "{id}: {:?}", a.contradiction);
            if id == "llama-3-70b" {
                // 6 x 70 B x 15 T / (6.4 M h x 989.5 TFLOP/s) = 27.6 %.
                assert!((a.findings[Variable::Mfu as usize].estimate.unwrap() - 0.276).abs() < 2e-3);
            }
        }
        let bad = Some(Known { low: 2.0, high: 1.0 });
        for wrong in [Request::default(), Request { mfu: bad, ..Request::default() }] {
            assert!(answer(&catalog, &wrong).is_err());
        }
    }

    #[test]
    fn nothing_likely_lies_where_nothing_can_be() {
        let catalog = rackmath_catalog::embedded();
        let rounded = |low: f64, high: f64| Some(Known { low, high });
        let typed = Request {
            on: Some("h100".into()),
            chips: rounded(24_000.0, 24_000.0),
            params: rounded(399.5e9, 400.5e9),
            tokens: rounded(29.5e12, 30.5e12),
            usd: rounded(99.5e6, 100.5e6),
            price_usd_per_chip_hour: rounded(2.0, 2.0),
            ..Request::default()
        };
        let runs = catalog.ids(rackmath_spec::Kind::Runs);
        let runs = runs.map(|id| Request { run: Some(id.to_owned()), ..Request::default() });
        for request in runs.chain([typed]) {
            for f in answer(&catalog, &request).unwrap().findings {
                let Some(Known { low, high }) = f.likely else { continue };
                assert!(f.at_least.is_none_or(|least| low >= least), "{f:?}");
                assert!(f.at_most.is_none_or(|most| high <= most), "{f:?}");
                assert!(f.estimate.is_some_and(|x| low <= x * (1.0 + 1e-12) && x <= high * (1.0 + 1e-12)), "{f:?}");
            }
        }
    }

    #[test]
    fn a_percentage_without_its_sign_is_refused_with_both_readings() {
        let mfu = Some(Known { low: 49.5, high: 50.5 });
        let error = answer(&rackmath_catalog::embedded(), &Request { mfu, ..Request::default() }).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(said.contains("5000 %") && said.contains("50%") && said.contains("0.5"), "{said}");
    }
}
