//! How much of a training run is progress when machines fail, how often to checkpoint, and what it costs in days and dollars.

use crate::desk::prelude::*;
use rackmath_spec::TrainingRun;
pub use rackmath_theory::goodput::Simulated;
use rackmath_theory::goodput::{Hazard, job_mtbf, simulate};
use rackmath_theory::scaling::TRAIN_FLOP;

/// A run and its failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// A published run whose failures are taken; its chips and MFU too unless given.
    #[schemars(extend("x-position" = 1))]
    #[educe(Default = Some("llama-3-405b".into()))]
    pub run: Option<String>,
    /// Chips that train together.
    #[schemars(extend("x-flag" = "chips gpus"))]
    pub chips: Option<f64>,
    /// Mean time between failures of one chip, instead of the run's.
    pub chip_mtbf_hours: Option<f64>,
    /// Mean time between failures of the whole job, instead of its chips'.
    pub job_mtbf_hours: Option<f64>,
    /// Pause for a checkpoint.
    #[educe(Default = 10.0)]
    pub stall_s: f64,
    /// From a failure to work again.
    #[educe(Default = 480.0)]
    pub restart_s: f64,
    /// Work between checkpoints; the best when absent.
    pub interval_s: Option<f64>,
    /// Days the run would take if nothing failed.
    #[educe(Default = 54.0)]
    pub work_days: f64,
    /// Active parameters: with tokens, the work is computed from 6 N D, the chip's dense bf16 peak and the MFU.
    #[schemars(extend("x-flag" = "params -n"))]
    pub params: Option<f64>,
    /// Training tokens.
    #[schemars(extend("x-flag" = "tokens -d"))]
    pub tokens: Option<f64>,
    /// The chip; the run's unless given.
    #[schemars(extend("x-flag" = "on chip"))]
    pub on: Option<String>,
    /// MFU while it works.
    #[schemars(extend("x-unit" = "share"))]
    pub mfu: Option<f64>,
    /// Price per chip and hour.
    pub price_usd_per_chip_hour: Option<f64>,
    /// Seed of the simulated failures.
    #[educe(Default = 1)]
    pub seed: u64,
}

/// The closed forms and a simulated run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// Chips.
    pub chips: f64,
    /// Mean time between failures of the job.
    pub job_mtbf_s: f64,
    /// Chip-hours per failure.
    pub chip_hours_per_failure: f64,
    /// Young's interval, sqrt(2 stall MTBF); absent when checkpoints are free.
    pub young_interval_s: Option<f64>,
    /// The exact best interval.
    pub best_interval_s: Option<f64>,
    /// The interval used.
    pub interval_s: f64,
    /// Days of work if nothing failed.
    pub work_days: f64,
    /// Progress of all time, to first order; may be negative where failures are frequent.
    pub first_order: f64,
    /// Progress of all time, exact for failures at random times.
    pub goodput: f64,
    /// The run played event by event; absent when it would not end.
    pub simulated: Option<Simulated>,
    /// Days from start to end, expected.
    pub wall_days: f64,
    /// Chip-hours paid for.
    pub chip_hours: f64,
    /// MFU over all time.
    pub effective_mfu: Option<(f64, f64)>,
    /// Dollars, where a price is given.
    pub usd: Option<f64>,
    /// Progress against the interval.
    pub over_interval: Figure,
    /// Progress against the number of chips, each at its best interval.
    pub over_chips: Figure,
    /// What was assumed.
    pub assumptions: Vec<Remark>,
}

/// Events a simulation may have: beyond them the run makes too little progress to be worth playing.
const MOST_EVENTS: u64 = 2_000_000;

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    let r = request;
    let run = r.run.as_deref().map(|name| catalog.training_run(name)).transpose()?;
    let chips = match (r.chips, run.as_deref().and_then(|run| run.chips)) {
        (Some(n), _) | (None, Some(n)) => within("chips", n, 1.0, 1e9)?,
        (None, None) => return Err(Error::value("chips", "nothing", "a number of chips, or a run that has one")),
    };
    let (chip_mtbf, origin) = chip_mtbf(r, run.as_deref(), chips)?;
    let h = hazard(chip_mtbf, chips, r.stall_s, r.restart_s)?;
    let mtbf = job_mtbf(chip_mtbf, chips);
    let interval = match r.interval_s {
        Some(t) => Seconds::s(within("interval", t, 1e-3, 1e9)?),
        // Free checkpoints have no best interval; a thousandth of the time between failures loses nothing to speak of.
        None => h.best_interval().unwrap_or(mtbf / 1000.0),
    };
    let goodput = h.goodput(interval).get();
    let mfu = match r.mfu {
        Some(u) => Some((within("mfu", u, 1e-6, 1.0)?, u)),
        None => run.as_deref().and_then(|run| run.mfu),
    };
    let (work_days, work_origin) = work(catalog, r, run.as_deref(), chips, mfu)?;
    let work = Seconds::s(work_days * 86_400.0);
    let simulated = simulate(&h, interval, work, r.seed, MOST_EVENTS, &cancel)?;
    let wall_days = if goodput > 0.0 { work_days / goodput } else { f64::MAX };
    let chip_hours = wall_days * 24.0 * chips;
    let price = if_given("price", r.price_usd_per_chip_hour, 0.0, 1e6)?;
    Ok(Answer {
        request: r.clone(),
        chips,
        job_mtbf_s: mtbf.get(),
        chip_hours_per_failure: chip_mtbf.get() / 3600.0,
        young_interval_s: h.young_interval().map(Seconds::get),
        best_interval_s: h.best_interval().map(Seconds::get),
        interval_s: interval.get(),
        work_days,
        first_order: h.first_order(interval),
        goodput,
        simulated,
        wall_days,
        chip_hours,
        effective_mfu: mfu.map(|(low, high)| (low * goodput, high * goodput)),
        usd: price.map(|p| p * chip_hours),
        over_interval: over_interval(&h, interval),
        over_chips: over_chips(chips, |n| Hazard { mtbf: Some(job_mtbf(chip_mtbf, n)), ..h }),
        assumptions: vec![origin, work_origin, says("failures_at_random"), says("no_spares")],
    })
}

/// Days of work without failures, and where they come from.
fn work(
    catalog: &Catalog,
    r: &Request,
    run: Option<&TrainingRun>,
    chips: f64,
    mfu: Option<(f64, f64)>,
) -> Result<(f64, Remark), Error> {
    let (Some(n), Some(d)) = (r.params, r.tokens) else {
        refuse_if(r.params.is_some() || r.tokens.is_some(), "work", "one of params and tokens", "both, or neither")?;
        let days = within("work_days", r.work_days, 1e-3, 1e5)?;
        return Ok((days, says("days_as_given").with("days", days)));
    };
    let (n, d) = (within("params", n, 1e3, 1e18)?, within("tokens", d, 1e3, 1e21)?);
    let name = r.on.as_deref().or(run.and_then(|run| run.chip.as_deref()));
    let chip = catalog.chip(name.ok_or_else(|| Error::value("chip", "nothing", "a chip of the catalogue; {on}"))?)?;
    let (math, peak) = chip.peak_for(Dtype::Bf16).ok_or_else(|| no_peak(&chip, &chip.id, "bf16"))?;
    let (low, high) = mfu.ok_or_else(|| Error::value("mfu", "nothing", "the MFU while it works; {mfu}"))?;
    let u = low.midpoint(high);
    let days = TRAIN_FLOP * n * d / (peak.value.get() * u * chips) / 86_400.0;
    let origin = says("work_is").with("chip", &chip.name).with("mfu", u).with("peak", peak.value).with("math", math);
    Ok((within("work_days", days, 1e-6, 1e7)?, origin))
}

/// What failures of so many chips and checkpoints cost a job.
pub(crate) fn hazard(chip_mtbf: Seconds, chips: f64, stall_s: f64, restart_s: f64) -> Result<Hazard, Error> {
    Ok(Hazard {
        mtbf: Some(job_mtbf(chip_mtbf, chips)),
        stall: Seconds::s(within("stall", stall_s, 0.0, 1e6)?),
        restart: Seconds::s(within("restart", restart_s, 0.0, 1e7)?),
    })
}

pub(crate) fn chip_mtbf(r: &Request, run: Option<&TrainingRun>, chips: f64) -> Result<(Seconds, Remark), Error> {
    let both = r.job_mtbf_hours.filter(|_| r.chip_mtbf_hours.is_some());
    refuse_if(
        both.is_some(),
        "job_mtbf_hours",
        both.unwrap_or_default(),
        "one of {job_mtbf} and {chip_mtbf}: one follows from the other",
    )?;
    if let Some(hours) = r.job_mtbf_hours {
        let job = within("job_mtbf", hours, 1e-6, 1e12)?;
        return Ok((Seconds::s(job * 3600.0 * chips), says("job_mtbf_as_given")));
    }
    if let Some(hours) = r.chip_mtbf_hours {
        let chip = within("chip_mtbf", hours, 1e-3, 1e15)?;
        return Ok((Seconds::s(chip * 3600.0), says("chip_mtbf_as_given")));
    }
    let known = run.and_then(|run| Some((run, run.stops?, run.chips?)));
    let expected = "a mean time between failures (--chip-mtbf or --job-mtbf), or a run that says";
    let (run, (count, days), n) =
        known.ok_or_else(|| Error::said("nothing is known of failures").hint(format!("give {expected}")))?;
    let stops = says("stops_in_days").with("stops", count).with("days", days).with("chips", n);
    let origin = stops.with("run", &run.name).with("source", &run.source);
    Ok((Seconds::s(days * 86_400.0 * n / count), origin))
}

const PROGRESS: &str = "progress of all time";

fn over_interval(h: &Hazard, used: Seconds) -> Figure {
    let grid: Vec<f64> = float::spaced(used.get() / 30.0, used.get() * 30.0, 120).collect();
    let line = |name: &str, role, f: &dyn Fn(Seconds) -> f64| {
        Series::new(name, role, grid.iter().map(|t| (*t, f(Seconds::s(*t)))).filter(|p| p.1 >= 0.0))
    };
    let first = line("first order", Role::Floor, &|t| h.first_order(t));
    let series = [first, line("exact", Role::Envelope, &|t| h.goodput(t).get())];
    let subtitle = says("stall_and_restart").with("stall", h.stall).with("restart", h.restart);
    let axes = (Axis::log("work between checkpoints", Unit::Seconds), Axis::linear(PROGRESS, Unit::Number));
    let figure = Figure::of("Progress against the checkpoint interval", subtitle, axes, series);
    figure.marked([Mark::at(used.get(), h.goodput(used).get(), says("interval_used").with("time", used))])
}

fn over_chips(chips: f64, hazard: impl Fn(f64) -> Hazard) -> Figure {
    let at = |n: f64| (n, hazard(n).best_goodput().get());
    let points = float::spaced((chips / 64.0).max(1.0), chips * 64.0, 120).map(at);
    let (x, y) = at(chips);
    let axes = (Axis::log("chips", Unit::Count), Axis::linear(PROGRESS, Unit::Number));
    let series = [Series::new("exact", Role::Envelope, points)];
    let figure = Figure::of("Progress against the number of chips", "each at its best interval", axes, series);
    figure.marked([Mark::at(x, y, says("so_many_chips").with("chips", chips))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_follows_from_size_tokens_and_mfu() {
        let ask = |r: &Request| answer_on(&rackmath_catalog::embedded(), r, 1);
        let a = ask(&Request { params: Some(405e9), tokens: Some(15.6e12), ..Request::default() }).unwrap();
        // 6 x 405 B x 15.6 T / (16,384 x 989.5 TFLOP/s x 40.5 %) = 66.8 days.
        assert!((a.work_days - 66.8).abs() < 0.2, "{}", a.work_days);
        assert!(ask(&Request { params: Some(1e9), ..Request::default() }).is_err());
        // A run that makes no progress is an answer.
        let slow = Request { job_mtbf_hours: Some(0.001), interval_s: Some(3600.0), ..Request::default() };
        assert!(ask(&slow).is_ok_and(|a| a.goodput < 1e-6 && a.simulated.is_none()));
    }
}
