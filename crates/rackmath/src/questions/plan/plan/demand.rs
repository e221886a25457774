//! Lengths and traffic as asked: numbers, a distribution, a trace or a named workload, in this order of precedence; and what a
//! plan is at mean traffic.

use super::answer::domains;
use super::{Request, Worked, positive, share};
use crate::desk::prelude::*;
use crate::trace::{Summary, checked};
use rackmath_spec::Scenario;
use rackmath_spec::lengths::Lengths;
use rackmath_theory::lengths::{Drawn, spread};
use rackmath_theory::plan::{Estimate, Ranked, Traffic};
use rackmath_theory::steady::Requests;

/// Requests that differ, and traffic that swells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Draws {
    /// Lengths of prompts, such as `lognormal:mean=4k,cv=0.8`, `uniform:1k..4k` or `exponential:mean=1k`.
    #[schemars(extend("x-flag" = "isl-dist"))]
    pub isl: Option<String>,
    /// Lengths of answers, the same.
    #[schemars(extend("x-flag" = "osl-dist"))]
    pub osl: Option<String>,
    /// Traffic to plan for over the mean, which `rate_per_s` is.
    #[schemars(extend("x-flag" = "peak"))]
    pub peak_over_mean: Option<f64>,
    /// What a trace says; lengths, rate and peak given elsewhere win over it.
    #[schemars(extend("x-file" = "summary"))]
    pub trace: Option<Summary>,
}

/// The same replicas at mean traffic, for those who can switch some off.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeanTraffic {
    /// Requests per second, mean.
    pub rate_per_s: f64,
    /// Requests per second planned for.
    pub peak_rate_per_s: f64,
    /// Replicas the mean needs.
    pub replicas: u64,
    /// Their chips.
    pub chips: u64,
    /// Scale-up domains they fill.
    pub domains: u64,
    /// Their kilowatts.
    pub power_kw: f64,
    /// Their dollars per hour.
    pub usd_per_hour: f64,
    /// Dollars per million output tokens when all replicas of the peak run all the time.
    pub usd_per_mtok_always_on: f64,
}

/// What is served.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub input: Drawn,
    pub output: Drawn,
    pub requests: Requests,
    pub mean_rate: Option<f64>,
    /// Users, and the seconds each takes between an answer and the next request.
    pub users: Option<(f64, f64)>,
    pub peak: f64,
    /// Share of the load kept free.
    pub headroom: f64,
    pub notes: Vec<Remark>,
}

impl Workload {
    /// Tokens of the longest prompt and the longest answer foreseen.
    pub(super) fn longest(&self) -> f64 {
        let most = |of: &Drawn| of.shares.iter().fold(of.mean, |a, b| a.max(*b));
        most(&self.input) + most(&self.output)
    }

    pub(super) fn new(r: &Request, scenario: Option<&Scenario>) -> Result<Self, Error> {
        let d = &r.draws;
        let trace = d.trace.as_ref();
        let sides = [("isl", r.isl, d.isl.as_ref()), ("osl", r.osl, d.osl.as_ref())];
        if let Some((field, ..)) = sides.into_iter().find(|(_, fixed, drawn)| fixed.is_some() && drawn.is_some()) {
            return Err(Error::value(field, "a length and a distribution", "one of them"));
        }
        let of_trace =
            trace.map(|t| Ok::<_, Error>((checked("draws", &t.input)?, checked("draws", &t.output)?))).transpose()?;
        let input = match (r.isl, &d.isl, &of_trace) {
            (None, None, Some((input, _))) => input.clone(),
            (fixed, text, _) => side("isl", fixed, text.as_deref(), scenario.map(|s| s.input), 1.0)?,
        };
        let output = match (r.osl, &d.osl, &of_trace) {
            (None, None, Some((_, output))) => output.clone(),
            (fixed, text, _) => side("osl", fixed, text.as_deref(), scenario.map(|s| s.output), 2.0)?,
        };
        refuse_if(output.mean < 2.0, "osl", output.mean, "2 tokens or more on average")?;
        // Lengths from two places know nothing of each other.
        let whole = r.isl.is_none() && d.isl.is_none() && r.osl.is_none() && d.osl.is_none();
        let covariance = trace.filter(|_| whole).map_or(0.0, |t| t.covariance);
        let bound = (input.variance * output.variance).sqrt();
        let wrong = covariance.is_nan() || covariance.abs() > bound * (1.0 + 1e-9) + 1e-9;
        refuse_if(wrong, "draws", covariance, "a covariance the variances allow")?;
        let hit = r.prefix_hit.or(trace.and_then(|t| t.prefix_hit)).or(scenario.map(|s| s.cached));
        let cached = share("prefix_hit", hit.unwrap_or(0.0))?;
        let rate = r.rate_per_s.or(trace.and_then(|t| t.rate_per_s));
        let mean_rate = rate.map(|rate| positive("rate_per_s", rate)).transpose()?;
        let users = users(r, mean_rate)?;
        let peak = d.peak_over_mean.or(trace.and_then(|t| t.peak_over_mean)).unwrap_or(1.0);
        refuse_if(!(1.0..=1e6).contains(&peak), "peak_over_mean", peak, "1 to 1e6")?;
        let headroom = r.headroom.unwrap_or(0.0);
        refuse_if(!(0.0..0.99).contains(&headroom), "headroom", headroom, "a share from 0 to 0.99")?;
        let stray = headroom > 0.0 && mean_rate.is_none();
        refuse_if(stray, "headroom", headroom, "a rate as well, whose share it is")?;
        refuse_if(users.is_some() && peak > 1.0, "peak_over_mean", peak, "a rate: of users, give those of the peak")?;
        let requests =
            Requests { cached, spread: spread(&input, &output, covariance), ..Requests::of(input.mean, output.mean) };
        let mut workload = Self { input, output, requests, mean_rate, users, peak, headroom, notes: Vec::new() };
        workload.notes = workload.words(trace);
        Ok(workload)
    }

    /// Requests per second planned for.
    pub(super) fn peak_rate(&self) -> Option<f64> {
        self.mean_rate.map(|rate| rate * self.peak / (1.0 - self.headroom))
    }

    /// Whether requests differ.
    pub(super) fn varies(&self) -> bool {
        self.input.variance > 0.0 || self.output.variance > 0.0
    }

    fn words(&self, trace: Option<&Summary>) -> Vec<Remark> {
        let mut all = Vec::new();
        if let Some(t) = trace {
            all.push(says("traffic_of").with("trace", &t.name).with("requests", t.requests));
            if t.prefix_hit.is_some_and(|hit| hit == self.requests.cached && hit > 0.0) {
                all.push(says("cached_as_traced"));
            }
        }
        if self.varies() {
            let varied = says("lengths_vary").with("input_cv", self.input.cv()).with("output_cv", self.output.cv());
            // Negative where long answers go with short prompts.
            let more = self.requests.spread.context;
            let varied = varied.with("more", Some(more).filter(|n| *n >= 0.0));
            all.push(varied.with("fewer", Some(-more).filter(|n| *n > 0.0)));
        }
        all.extend(self.users.map(|(_, think)| says("users_ask_again").with("think", think)));
        if self.headroom > 0.0 {
            all.push(says("kept_free").with("share", self.headroom));
        }
        if self.peak > 1.0 {
            all.push(says("planned_for_peak").with("peak", self.peak));
        }
        all
    }
}

/// Users and their pause; neither with a rate.
fn users(r: &Request, rate: Option<f64>) -> Result<Option<(f64, f64)>, Error> {
    let think = within("think_s", r.think_s.unwrap_or(0.0), 0.0, 1e8)?;
    let Some(users) = r.users else {
        refuse_if(r.think_s.is_some(), "think_s", think, "users as well, whose pause it is")?;
        return Ok(None);
    };
    refuse_if(rate.is_some(), "users", users, "users or a rate, not both")?;
    let whole = users.fract() == 0.0 && (1.0..=1e9).contains(&users);
    refuse_if(!whole, "users", users, "a whole number from 1 to 1e9")?;
    Ok(Some((users, think)))
}

fn side(
    field: &'static str,
    fixed: Option<f64>,
    text: Option<&str>,
    named: Option<f64>,
    least: f64,
) -> Result<Drawn, Error> {
    if let Some(text) = text {
        return Ok(Drawn::of(&text.parse::<Lengths>()?));
    }
    let n = tokens(field, fixed.or(named).unwrap_or(1000.0), least)?.get();
    Ok(Drawn { mean: n, variance: 0.0, shares: vec![n] })
}

impl Worked {
    /// Requests a second that come to a plan: the rate at its peak, or what its users ask; none where as many come as are
    /// served.
    pub(super) fn coming(&self, e: &Estimate) -> Option<f64> {
        let w = &self.ask.workload;
        w.mean_rate.map(|rate| rate * w.peak).or(w.users.map(|_| e.throughput / w.requests.output))
    }

    /// The same deployment, of which no more is served than comes: what is kept free is paid for all the same.
    pub(super) fn coming_to(&self, e: Estimate) -> Estimate {
        let Some(rate) = self.ask.workload.mean_rate else { return e };
        let tokens = rate * self.ask.workload.peak * self.ask.workload.requests.output;
        if tokens >= e.throughput {
            return e;
        }
        let per = e.throughput / tokens;
        Estimate { throughput: tokens, usd_per_mtok: e.usd_per_mtok * per, joules: e.joules * per, ..e }
    }

    /// Replicas for mean traffic; none where peak and mean are one.
    pub(super) fn at_mean(&self, r: &Ranked) -> Option<MeanTraffic> {
        let w = &self.ask.workload;
        let rate = w.mean_rate.filter(|_| w.peak > 1.0)?;
        // As few as the means need, or as get no more each than at the peak, which they are known to hold.
        let by_means = self.space.estimate(r.index, w.requests.output, Traffic::Rate(rate))?.replicas;
        let as_busy = (r.estimate.replicas / w.peak * (1.0 - 1e-12)).ceil().max(1.0);
        let mean = self.space.replicated(r.index, w.requests.output, (by_means.min(as_busy), rate))?;
        Some(MeanTraffic {
            rate_per_s: rate,
            peak_rate_per_s: rate * w.peak,
            replicas: mean.replicas as u64,
            chips: mean.chips as u64,
            domains: domains(&self.chosen(r.index), &mean),
            power_kw: mean.watts / 1e3,
            usd_per_hour: mean.usd_per_hour,
            usd_per_mtok_always_on: r.estimate.usd_per_hour / 3600.0 / (rate * w.requests.output) * 1e6,
        })
    }
}
