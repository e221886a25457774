//! The whole run: tokens from a loss, days and dollars when machines fail.

use super::Request;
use crate::desk::prelude::*;
use crate::goodput;
use crate::laws::{self, Law, Spread};
use rackmath_spec::{Chip, Model};
use rackmath_theory::count::count;
use rackmath_theory::goodput::Hazard;
use rackmath_theory::scaling::Point;

/// The law taken unless one is named: the corrected Chinchilla fit.
const USUAL_LAW: &str = "besiroglu-2024";

/// A run from its first token to its last.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunCard {
    /// Tokens it trains on; absent where no number of them reaches the loss.
    pub tokens: Option<f64>,
    /// Their loss under the law, where one was asked.
    pub loss: Option<LossCard>,
    /// Days if nothing failed.
    pub work_days: Option<f64>,
    /// Share of all time that is progress.
    pub goodput: f64,
    /// Days from start to end, expected.
    pub wall_days: Option<f64>,
    /// Chip-hours paid for.
    pub chip_hours: Option<f64>,
    /// Dollars for them.
    pub cost_usd: Option<f64>,
    /// MFU over all time.
    pub effective_mfu: f64,
    /// What it draws, where that is known of the chip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyCard>,
    /// Bytes of a checkpoint: what is trained and what the optimizer keeps.
    pub checkpoint_bytes: f64,
    /// Bandwidth to storage at which it is written within the stall.
    pub checkpoint_bytes_per_s: Option<f64>,
    /// Hours between failures of the job.
    pub job_mtbf_hours: f64,
    /// Seconds of work between checkpoints, the best; absent where checkpoints are free.
    pub checkpoint_every_s: Option<f64>,
    /// Failures to expect.
    pub failures: Option<f64>,
    /// What was assumed.
    pub assumptions: Vec<Remark>,
}

/// What a run draws.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EnergyCard {
    /// From start to end, stops included.
    pub kwh: f64,
    /// Of a chip.
    pub chip_watts: f64,
    /// What is in that.
    pub includes: Remark,
}

/// What a scaling law says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LossCard {
    /// The law.
    pub law: String,
    /// The loss: the one asked for, or that of the tokens given.
    pub loss: f64,
    /// What the model would reach with endless data.
    pub least: f64,
    /// What the law's standard errors make of the tokens, where a loss was asked for.
    pub tokens_spread: Option<Spread>,
    /// Where this lies outside the range the law was fitted on.
    pub outside: Vec<Remark>,
}

pub(super) struct Timed {
    pub(super) seconds: f64,
    pub(super) tokens: f64,
    /// Chips that work.
    pub(super) chips: f64,
    /// Chips that are paid for: idle ones too.
    pub(super) paid: f64,
    pub(super) mfu: f64,
    pub(super) price: Option<f64>,
    pub(super) watts: Option<Watts>,
    pub(super) checkpoint_bytes: f64,
}

/// What a chip draws, and what is in it.
pub(super) struct Watts {
    each: f64,
    includes: Remark,
}

impl Watts {
    /// With its share of host and network where that is known, else the board at its limit.
    pub(super) fn of(chip: &Chip) -> Option<Self> {
        let power = &chip.power;
        let all_in = if power.facility { "draw_of_facility" } else { "draw_with_host" };
        let all_in = power.all_in.as_ref().map(|w| (w.value.get(), all_in));
        let (each, includes) = all_in.or(power.tdp.as_ref().map(|w| (w.value.get(), "draw_of_board")))?;
        Some(Self { each, includes: says(includes) })
    }
}

pub(super) fn run(
    catalog: &Catalog,
    r: &Request,
    given: Option<f64>,
    model: &Model,
    step: &Timed,
) -> Result<Option<RunCard>, Error> {
    let Some((tokens, loss, mut assumptions)) = tokens(catalog, r, given, model)? else { return Ok(None) };
    let (hazard, origin) = hazard(catalog, r, step.chips)?;
    let share = hazard.best_goodput().get();
    let work = tokens.map(|d| d / step.tokens * step.seconds);
    // A run that makes no progress never ends.
    let wall = work.filter(|_| share > 0.0).map(|s| s / share);
    let hours = wall.map(|s| s / 3600.0 * step.paid);
    let energy = hours.zip(step.watts.as_ref()).map(|(h, w)| EnergyCard {
        kwh: h * w.each / 1000.0,
        chip_watts: w.each,
        includes: w.includes.clone(),
    });
    let mtbf = hazard.mtbf.map_or(f64::MAX, Seconds::get);
    assumptions.push(origin);
    let (stall, restart) = (r.stall_s, r.restart_s);
    assumptions.push(says("run_stops").with("stall", stall).with("restart", restart));
    Ok(Some(RunCard {
        tokens,
        loss,
        work_days: work.map(|s| s / 86_400.0),
        goodput: share,
        wall_days: wall.map(|s| s / 86_400.0),
        chip_hours: hours,
        cost_usd: hours.zip(step.price).map(|(h, p)| h * p),
        effective_mfu: step.mfu * share,
        energy,
        checkpoint_bytes: step.checkpoint_bytes,
        checkpoint_bytes_per_s: Some(step.checkpoint_bytes / r.stall_s).filter(|rate| rate.is_finite()),
        job_mtbf_hours: mtbf / 3600.0,
        checkpoint_every_s: hazard.best_interval().map(Seconds::get),
        failures: wall.map(|s| s / mtbf),
        assumptions,
    }))
}

type Wanted = (Option<f64>, Option<LossCard>, Vec<Remark>);

/// Tokens as given, or those a law asks for to reach the loss.
fn tokens(catalog: &Catalog, r: &Request, given: Option<f64>, model: &Model) -> Result<Option<Wanted>, Error> {
    let given = if_given("tokens", given, 1e3, 1e21)?;
    let target = if_given("loss", r.loss, 1e-3, 100.0)?;
    match (given, target, &r.law) {
        (Some(_), Some(_), _) => {
            return Err(Error::value("tokens and loss", "both", "one of them: a law gives the other"));
        }
        (None, None, Some(law)) => {
            return Err(Error::value("law", law, "a loss to reach or tokens to train on with it; {loss} or {tokens}"));
        }
        (None, None, None) => return Ok(None),
        (Some(d), None, None) => return Ok(Some((Some(d), None, Vec::new()))),
        _ => {}
    }
    let counted = count(model);
    let n = counted.active();
    let name = r.law.as_deref().unwrap_or(USUAL_LAW);
    refuse_if(name.trim().eq_ignore_ascii_case("all"), "law", name, "one law; rackmath scaling compares all of them")?;
    let ratio = (counted.total() as f64 / n.get()).max(1.0);
    let resolved = laws::resolve(catalog, &Law { law: name.into(), sparsity: ratio, ..Law::default() })?;
    let law = resolved.laws.first().ok_or_else(|| Error::value("law", name, "a law of the catalogue"))?;
    let surface =
        resolved.surface(law).map_err(|why| Error::value("law", name, format!("a law with a loss surface: {why}")))?;
    let found = given.map(Tokens::new).or_else(|| surface.tokens_for(n, target?));
    let at = found.map(|tokens| Point { params: n, tokens });
    let least = surface.loss(Point { params: n, tokens: Tokens::new(ENDLESS) });
    let loss = target.or_else(|| at.map(|p| surface.loss(p))).unwrap_or(least);
    let card = LossCard {
        law: law.name.clone(),
        loss,
        least,
        tokens_spread: target.and_then(|l| resolved.spread(law, |s| Some(s.tokens_for(n, l)?.get()))),
        outside: at.map(|p| resolved.outside(law, p)).unwrap_or_default(),
    };
    let mut assumptions = resolved.assumptions(&Law::default().router);
    assumptions.push(says("counted_by_law").with("law", &law.name).with("params", n));
    Ok(Some((found.map(Tokens::get), Some(card), assumptions)))
}

/// More tokens than any law can tell from endless.
const ENDLESS: f64 = 1e30;

/// Failures of so many chips, at the rate of a published run unless another is given.
fn hazard(catalog: &Catalog, r: &Request, chips: f64) -> Result<(Hazard, Remark), Error> {
    let usual = goodput::Request { chip_mtbf_hours: r.chip_mtbf_hours, ..goodput::Request::default() };
    let known = usual.run.as_deref().map(|name| catalog.training_run(name)).transpose()?;
    let (chip, origin) = goodput::chip_mtbf(&usual, known.as_deref(), chips)?;
    Ok((goodput::hazard(chip, chips, r.stall_s, r.restart_s)?, origin))
}

#[cfg(test)]
mod tests {
    use super::super::{Offload, Request, answer_on};

    fn asked() -> Request {
        let (chips, model) = (Some(16_384), Some("llama-3.1-405b".into()));
        let (global_batch, sequence) = (Some(2048), Some(8192));
        let (tp, pp, virtual_stages) = (Some(8), Some(16), Some(7));
        Request { model, chips, sequence, global_batch, tp, pp, virtual_stages, ..Request::default() }
    }

    #[test]
    fn a_run_of_llama_3s_size_loses_what_its_authors_lost() {
        // 16,384 chips fail every 3.09 h; 10 s a checkpoint and 480 s a failure leave 91.8 % of the time.
        let r = Request { tokens: Some(15.6e12), ..asked() };
        let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
        let run = a.run.unwrap();
        assert!((run.job_mtbf_hours - 3.093).abs() < 1e-3 && (run.goodput - 0.918).abs() < 5e-4, "{run:?}");
        assert!((run.wall_days.unwrap() * run.goodput / run.work_days.unwrap() - 1.0).abs() < 1e-12);
        assert!((run.effective_mfu / a.mfu - run.goodput).abs() < 1e-12);
        assert!((run.cost_usd.unwrap() * run.goodput / a.cost_usd.unwrap() - 1.0).abs() < 1e-12);
        // 16,384 chips at 38 to 43 % (Table 4 of arXiv 2407.21783) take 63 to 71 days of work for 15.6 T tokens at 6 N D.
        assert!((50.0..90.0).contains(&run.work_days.unwrap()), "{run:?}");
    }

    #[test]
    fn tokens_for_a_loss_and_the_loss_of_tokens_are_inverse() {
        let ask = |r: Request| answer_on(&rackmath_catalog::embedded(), &r, 1);
        let law = || Some("besiroglu-2024".into());
        let tokens = ask(Request { loss: Some(1.87), ..asked() }).unwrap().run.unwrap().tokens;
        let loss = ask(Request { tokens, law: law(), ..asked() }).unwrap().run.unwrap().loss.unwrap();
        assert!((loss.loss - 1.87).abs() < 1e-9, "{loss:?}");
        // E + A N^-alpha = 1.8172 + 482.01 x 405.9e9^-0.3478 = 1.8614.
        assert!((loss.least - 1.8614).abs() < 5e-4, "{loss:?}");
        // A loss out of reach is an answer, two goals are not.
        let run = ask(Request { loss: Some(1.5), ..asked() }).unwrap().run.unwrap();
        assert!(run.tokens.is_none() && run.wall_days.is_none() && run.cost_usd.is_none());
        let frontier = Request { loss: Some(1.9), law: Some("llama-3-2024".into()), ..asked() };
        assert!(ask(frontier).unwrap_err().to_string().contains("not the loss"));
        for wrong in [Request { loss: Some(1.9), tokens: Some(1e12), ..asked() }, Request { law: law(), ..asked() }] {
            assert!(ask(wrong).is_err());
        }
    }

    #[test]
    fn idle_chips_are_said_and_paid_for_and_the_price_is_named() {
        let catalog = rackmath_catalog::embedded();
        let (tokens, price) = (Some(1e12), Some(2.0));
        let r = Request { price_usd_per_chip_hour: price, tokens, dp: Some(32), ..asked() };
        let (all, some) = (
            answer_on(&catalog, &Request { chips: Some(4096), ..r.clone() }, 1).unwrap(),
            answer_on(&catalog, &Request { chips: Some(4608), ..r }, 1).unwrap(),
        );
        assert_eq!((all.idle_chips, some.idle_chips, some.chips), (0, 512, 4096));
        assert_eq!(all.step_s, some.step_s);
        assert!((some.cost_usd.unwrap() / all.cost_usd.unwrap() - 4608.0 / 4096.0).abs() < 1e-12);
        let priced = some.priced.unwrap();
        assert_eq!((priced.says.as_ref(), &priced.with["usd_per_hour"]), ("chip_hour_costs", &2.0.into()));
    }

    #[test]
    fn a_checkpoint_is_what_is_trained_and_energy_is_chips_times_hours() {
        let catalog = rackmath_catalog::embedded();
        let a = answer_on(&catalog, &Request { tokens: Some(1e12), ..asked() }, 1).unwrap();
        let run = a.run.unwrap();
        // 2 bytes of a weight, 12 of master copy and both moments: 14 x 405.9 B, written in 10 s.
        assert!((run.checkpoint_bytes / 14.0 / 405.9e9 - 1.0).abs() < 1e-3, "{}", run.checkpoint_bytes);
        assert!((run.checkpoint_bytes_per_s.unwrap() * 10.0 / run.checkpoint_bytes - 1.0).abs() < 1e-12);
        let energy = run.energy.unwrap();
        // 1.73 kW of an H100 with its share of the building.
        assert_eq!((energy.chip_watts, energy.includes.says.as_ref()), (1730.0, "draw_of_facility"));
        assert!((energy.kwh / (run.chip_hours.unwrap() * 1.73) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_speed_is_the_same_mfu_in_the_question_of_conventions() {
        let catalog = rackmath_catalog::embedded();
        let (model, on) = (Some("llama-3.1-8b".into()), Some("64xh100".into()));
        let a = answer_on(&catalog, &Request { model, on, ..Request::default() }, 1).unwrap();
        let with = a.by_others.unwrap().with;
        let number = |name: &str| match &with[name] {
            crate::remark::Part::Number(x) => *x,
            other => panic!("{other:?}"),
        };
        let there = crate::mfu::Request {
            model: "llama-3.1-8b".into(),
            on: "h100-sxm".into(),
            sequence: number("sequence") as u64,
            tokens_per_s_per_chip: Some(number("rate")),
            ..crate::mfu::Request::default()
        };
        let there = crate::mfu::answer(&catalog, &there).unwrap();
        assert!(there.lines.iter().any(|line| (line.mfu / a.mfu - 1.0).abs() < 1e-9), "{} {:?}", a.mfu, there.lines);
    }

    #[test]
    fn layers_are_dealt_evenly_where_the_program_deals_them_so() {
        let catalog = rackmath_catalog::embedded();
        for (model, chips) in [("llama-3.1-405b", 512), ("qwen3-235b-a22b", 1024), ("llama-3.1-70b", 64)] {
            let r = Request { model: Some(model.into()), chips: Some(chips), ..Request::default() };
            let a = answer_on(&catalog, &r, 1).unwrap();
            for one in a.search.unwrap().best {
                let number = |name: &str| one.with.get(name).and_then(serde_json::Value::as_u64).unwrap_or(1);
                let layers = match model {
                    "llama-3.1-405b" => 126,
                    "qwen3-235b-a22b" => 94,
                    _ => 80,
                } + if one.with.contains_key("lighter_ends") { 2 } else { 0 };
                assert_eq!(layers % (number("pp") * number("virtual_stages")), 0, "{model}: {}", one.layout);
            }
        }
    }

    #[test]
    fn a_format_needs_tensor_units_that_have_it() {
        let catalog = rackmath_catalog::embedded();
        let ask = |on: &str, format: &str| {
            let (on, format) = (Some(on.into()), Some(format.into()));
            answer_on(&catalog, &Request { model: Some("llama-3.1-8b".into()), on, format, ..Request::default() }, 1)
        };
        // Blocks with scales came with Blackwell and CDNA 4.
        for (on, format) in [("8xh100", "mxfp8"), ("8xl40s", "mxfp8"), ("8xmi300x", "mxfp8"), ("8xh100", "nvfp4")] {
            assert!(ask(on, format).is_err_and(|e| e.to_string().contains(format)), "{on} {format}");
        }
        for (on, format) in [("8xh100", "fp8"), ("8xb200", "mxfp8"), ("8xmi355x", "mxfp8")] {
            assert!(ask(on, format).is_ok(), "{on} {format}");
        }
    }

    #[test]
    fn cards_on_pcie_reach_their_host_by_it_and_who_has_no_known_way_is_told() {
        let catalog = rackmath_catalog::embedded();
        let on = |on: &str, wide: bool| {
            let (model, on) = (Some("llama-3.1-70b".into()), Some(on.into()));
            let (global_batch, sequence) = (Some(8), Some(2048));
            let r = Request { model, on, global_batch, sequence, wide, qlora: true, ..Request::default() };
            answer_on(&catalog, &r, 1).unwrap()
        };
        assert!(on("2xrtx-3090", true).fits);
        let none = on("1xv100-16gb", true);
        let said = none.verdict.unwrap();
        assert!(!none.fits && said.with.contains_key("untried"), "{said:?}");
    }

    #[test]
    fn offloading_needs_a_link_to_the_host() {
        let catalog = rackmath_catalog::embedded();
        let (model, on) = (Some("llama-3.1-8b".into()), Some("tpu-v5p".into()));
        let (offload, chips, dp) = (Some(Offload::Optimizer), Some(64), Some(64));
        let r = Request { model, on, chips, dp, offload, ..Request::default() };
        assert!(answer_on(&catalog, &r, 1).unwrap_err().to_string().contains("host_bandwidth"));
        let a = answer_on(&catalog, &Request { host_gb_per_s: Some(16.0), ..r }, 1).unwrap();
        assert!(a.stages.iter().all(|s| s.optimizer_bytes == 0.0) && a.parts.iter().any(|p| p.name.contains("host")));
    }
}
