//! What a question costs, reckoned from its request before anybody works on it.
//!
//! $$ t = t_q \prod_i \frac{x_i}{x_{i0}} $$
//!
//! | symbol | meaning |
//! |--------|---------|
//! | t_q | processor time of the question as it stands by default, measured |
//! | x_i | what its work grows with: requests simulated, points of a curve, machines and formats searched |
//! | x_i0 | the same by default |
//!
//! `cargo bench -p rackmath-server --bench cost -- 500` holds it against the processor's own count. Times are those of one core of 2026, an
//! optimised build; a slower machine is slower by the same share in every lane, so that who is quick stays quick.
//!
//! What a search goes through is counted from its request, model and machine first (`rackmath::extent`), and costs so much each:
//!
//! $$ t = t_0 + l L + f F + a P + b W + c R + d N $$
//!
//! | symbol | meaning |
//! |--------|---------|
//! | L, F | layouts that are looked at, and deployments that fit and are made ready |
//! | P, W | what is prepared and what is weighed: states and pairs of a plan, slices and pipelines of a training run |
//! | R, N | requests that are simulated for a plan, and tokens that are stepped over |
//!
//! Ignores: which of the deployments under limits on percentiles fail soon, and how far a bound reaches: the worst of it.

use crate::answers::WORK;
use crate::error::Refusal;
use axum::http::StatusCode;
use rackmath::Catalog;
use rackmath::ask::Question;
use rackmath::extent::Extent;
use serde_json::{Map, Value};

/// Work of one thread, memory held meanwhile, and the field that most of it grows with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub seconds: f64,
    pub bytes: f64,
    pub by: Option<(&'static str, f64)>,
}

impl Cost {
    /// Small work that is not a question: words put together, a picture drawn.
    pub const SMALL: Self = Self { seconds: 0.005, bytes: 1e6, by: None };

    /// 0 quick, 1 middle, 2 heavy.
    pub fn lane(self) -> usize {
        let large = self.bytes > WORK[0] as f64;
        if large { 2 } else { usize::from(self.seconds >= 0.04) + usize::from(self.seconds >= 1.0) }
    }

    /// Why a question is not taken, and what would be.
    pub fn refusal(self, question: Question, most: f64) -> Refusal {
        let problem = format!(
            "{} as asked is about {:.0} s of work; this server takes at most {most:.0} s",
            question.name(),
            self.seconds
        );
        self.smaller(problem, (self.seconds, most, "seconds of work"))
    }

    /// The same of one that would take too much memory.
    pub fn too_large(self, question: Question, most: f64) -> Refusal {
        let problem = format!(
            "{} as asked may need {:.0} MB of memory; this server gives one question at most {:.0} MB",
            question.name(),
            self.bytes / 1e6,
            most / 1e6
        );
        self.smaller(problem, (self.bytes, most, "bytes of memory"))
    }

    /// With the nearest smaller request, where one number makes most of the work.
    fn smaller(self, problem: String, (asked, allowed, of): (f64, f64, &'static str)) -> Refusal {
        let new = |hint: String| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, problem, hint).of(asked, allowed, of);
        match self.by.map(|(field, value)| (field, (value * allowed / asked).floor())) {
            Some((field, fits)) if fits >= 1.0 => {
                new(format!("{field} of at most {fits} would be taken; or ask the command line")).fits(field, fits)
            }
            _ => new("ask for less, or the command line".into()),
        }
    }
}

/// A number of a request, by its place.
fn number(fields: &Map<String, Value>, place: &str) -> Option<f64> {
    at(fields, place)?.as_f64().filter(|x| x.is_finite())
}

fn at<'a>(fields: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let mut parts = place.split('.');
    let first = fields.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// A request, read for what its work grows with.
struct Read<'a> {
    fields: &'a Map<String, Value>,
    /// Where the part that counts stands: `plan.`, `estimate.`.
    under: &'static str,
}

impl Read<'_> {
    fn at(&self, place: &str) -> Option<&Value> {
        at(self.fields, &format!("{}{place}", self.under)).filter(|v| !v.is_null())
    }

    fn number(&self, place: &str) -> Option<f64> {
        number(self.fields, &format!("{}{place}", self.under))
    }

    fn said(&self, place: &str) -> bool {
        self.at(place).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether a limit holds for a share of the requests, which are then simulated.
    fn percentile(&self) -> bool {
        let share = |limit: &Value| limit.as_str().is_some_and(|l| l.contains('='));
        ["ttft_ms", "tpot_ms", "e2e_ms"].iter().any(|l| self.at(l).is_some_and(share))
    }

    /// Chips, where the request counts them: as `chips`, or before the name of a machine, as in `64xh200`.
    fn chips(&self) -> Option<f64> {
        let named = || self.at("setting.on")?.as_str()?.split_once('x')?.0.trim().parse::<f64>().ok();
        self.number("setting.chips").or_else(named)
    }
}

/// A request that is simulated, and each token of its answer, in milliseconds: 34 runs of 200 to 40,000 requests with answers of 11 to 915
/// tokens took 10 to 100 microseconds a request.
const REQUEST_MS: f64 = 0.012;
const TOKEN_MS: f64 = 0.000_1;

/// What a search of a model that is brought along may come to.
const UNKNOWN: Extent = Extent { layouts: 2e3, made: 1e3, prepared: 1e4, weighed: 1e6, simulated: 0.0, tokens: 0.0 };

/// Bytes of a state and of a layout while a plan is looked for.
const STATE_BYTES: f64 = 330.0;
const LAYOUT_BYTES: f64 = 3000.0;

/// Bytes of a simulated deployment with what it remembers of its requests.
const RUN_BYTES: f64 = 20e6;

/// Prompts and answers in pools of their own are simulated step by step.
const POOLS: f64 = 15.0;

fn simulated(requests: f64, osl: f64) -> f64 {
    requests * (REQUEST_MS + TOKEN_MS * osl)
}

/// Whether what a question has to look through is counted first, which takes some milliseconds.
pub fn counts(question: Question) -> bool {
    use Question as Q;
    matches!(question, Q::Plan | Q::Whatif | Q::Frontier | Q::Compare | Q::Outlook | Q::Hardware | Q::Train)
}

/// Microseconds of a search: of a layout that is looked at, of a deployment that is made ready, of what is prepared, and of what is weighed.
struct Search {
    layout: f64,
    made: f64,
    prepared: f64,
    weighed: f64,
}

const PLANS: Search = Search { layout: 2.0, made: 100.0, prepared: 10.0, weighed: 0.08 };
const RUNS: Search = Search { layout: 0.0, made: 0.0, prepared: 3.0, weighed: 4.0 };

/// A request that a search simulates, and a token that it steps over, in milliseconds.
const TRIED_MS: f64 = 0.004;
const STEPPED_MS: f64 = 0.000_25;

impl Search {
    fn ms(&self, e: &Extent) -> f64 {
        let us = self.layout * e.layouts + self.made * e.made + self.prepared * e.prepared + self.weighed * e.weighed;
        us / 1e3 + TRIED_MS * e.simulated + STEPPED_MS * e.tokens
    }
}

pub fn of(catalog: &Catalog, question: Question, fields: &Map<String, Value>) -> Cost {
    let asked = Asked::new(catalog, question, fields);
    let (ms, by) = asked.time();
    // Files are read and looked through: as values they are many times their length.
    let brought = fields.get("files").map_or(0, |files| files.to_string().len()) as f64;
    Cost { seconds: (ms + brought / 1e4) / 1e3, bytes: asked.memory() + 20.0 * brought, by }
}

/// Milliseconds, and the field that most of them grow with.
type Time = (f64, Option<(&'static str, f64)>);

/// A question with what is counted of its request.
struct Asked<'a> {
    catalog: &'a Catalog,
    question: Question,
    extent: Extent,
    /// The request, and the part of it that counts.
    own: Read<'a>,
    read: Read<'a>,
}

impl<'a> Asked<'a> {
    fn new(catalog: &'a Catalog, question: Question, fields: &'a Map<String, Value>) -> Self {
        use Question as Q;
        // What is refused is soon said; what is brought along is not known yet, and taken for large.
        let unknown = if fields.contains_key("files") { UNKNOWN } else { Extent::default() };
        let extent = question.extent(catalog, fields).unwrap_or(unknown);
        let under = match question {
            Q::Whatif | Q::Frontier | Q::Compare | Q::Outlook | Q::Hardware => "plan.",
            Q::EstimateSweep | Q::Capacity => "estimate.",
            _ => "",
        };
        Self { catalog, question, extent, own: Read { fields, under: "" }, read: Read { fields, under } }
    }

    fn named(&self, place: &str) -> Option<&str> {
        self.own.at(place).or_else(|| self.read.at(place)).and_then(Value::as_str)
    }

    fn experts(&self, place: &str, usual: bool) -> bool {
        match self.named(place).map(|name| self.catalog.model(name)) {
            None => usual,
            Some(model) => model.is_ok_and(|m| m.shape().is_some_and(|shape| shape.moe().is_some())),
        }
    }

    /// Groups that share experts are simulated step by step, others leap from event to event. Such groups are what a scale-up domain of
    /// many chips is for, and the usual machine is one; on hosts they are what a latent cache asks for.
    fn stepped(&self, on_rack: f64, latent: f64, with: f64, without: f64) -> f64 {
        let many = |name: &str| self.catalog.system(name).is_ok_and(|s| s.racked());
        let cut = |name: &str| {
            self.catalog.model(name).is_ok_and(|m| m.shape().is_some_and(|shape| shape.latent_layers() > 0))
        };
        match self.experts("setting.model", true) {
            true if self.named("setting.on").is_none_or(many) => on_rack,
            true if self.named("setting.model").is_none_or(cut) => latent,
            true => with,
            false => without,
        }
    }

    fn solved(&self) -> Option<&str> {
        self.read.at("seek.solve").and_then(Value::as_str)
    }

    /// Whether requests are simulated.
    fn rated(&self) -> bool {
        self.read.number("rate_per_s").is_some() || self.read.percentile() || self.solved() == Some("rate")
    }

    /// Requests of a simulation, and how many runs of them.
    fn runs(&self) -> (f64, f64) {
        let runs = self.own.at("compare").and_then(Value::as_str).map_or(1.0, |c| c.split(',').count() as f64);
        (self.own.number("traffic.requests").unwrap_or(10_000.0), runs)
    }

    /// Points of a posterior, as a power of two.
    fn log2_points(&self) -> f64 {
        self.own.number("log2_points").unwrap_or(14.0)
    }

    /// Cells of pipelines, and what each takes: milliseconds and bytes.
    fn cells(&self) -> (f64, f64, f64) {
        // Of all six schedules, those that are searched for take most of the time.
        let (schedules, ms, bytes) = match self.own.at("schedule").and_then(Value::as_str) {
            Some("all") => (6.0, 1e-3, 1100.0),
            // Gradients of weights are put where there is room.
            Some(name) if name.starts_with("zb") => (1.0, 3e-4, 400.0),
            _ => (1.0, 3e-4, 400.0),
        };
        let count = |place, usual| self.own.number(place).unwrap_or(usual);
        let one = count("stages", 4.0) * count("virtual_stages", 1.0) * count("micro_batches", 4.0);
        (3.0 * schedules * one, ms, bytes)
    }

    /// Bytes: the most that was seen of each, and some more (`benches/cost.rs`).
    fn memory(&self) -> f64 {
        use Question as Q;
        match self.question {
            Q::Validate => 110e6,
            // Layouts of a model with experts, whatever is searched for.
            Q::Train => 112e6,
            Q::Reversible => 36e6,
            // States of every layout in each format and engine; what is dropped early is not held.
            Q::Plan | Q::Whatif | Q::Frontier | Q::Hardware | Q::Outlook | Q::Compare => {
                let runs = if self.extent.simulated > 0.0 { RUN_BYTES } else { 0.0 };
                11e6 + runs + STATE_BYTES * self.extent.prepared + LAYOUT_BYTES * self.extent.layouts
            }
            Q::Lecture => 14e6,
            Q::Capacity => RUN_BYTES,
            Q::Estimate if self.rated() => RUN_BYTES,
            Q::Rl if self.experts("model", false) => 12e6,
            Q::Estimate | Q::EstimateSweep | Q::Station | Q::Rl => 9e6,
            Q::Simulate if self.own.said("each") || self.own.at("window").is_some() => {
                let (requests, runs) = self.runs();
                6e6 + 600.0 * requests * runs
            }
            Q::Simulate | Q::Models => 6e6,
            Q::Chips => 8e6,
            Q::Deduce => 3e6 + 64.0 * self.log2_points().min(40.0).exp2(),
            Q::Pipeline => {
                let (cells, _, bytes) = self.cells();
                3e6 + cells * bytes
            }
            _ => 3e6,
        }
    }

    fn time(&self) -> Time {
        use Question as Q;
        let own = &self.own;
        let driven = |ms: f64, place: &'static str, usual: f64| {
            let given = own.number(place).unwrap_or(usual);
            (ms * (given.max(0.0) / usual).max(0.02), Some((place, given)))
        };
        match self.question {
            Q::Simulate => {
                let (requests, runs) = self.runs();
                let slow = if own.said("step_by_step") { 30.0 } else { 1.0 };
                let pools = if own.at("fleet.prefill_replicas").is_some() { POOLS } else { 1.0 };
                let osl = own.number("traffic.osl").unwrap_or(250.0);
                (1.0 + simulated(requests * runs, osl) * slow * pools, Some(("traffic.requests", requests)))
            }
            Q::Station if own.number("requests").is_some() => driven(0.1, "requests", 1000.0),
            Q::EstimateSweep => driven(1.0, "points", 41.0),
            Q::Plan | Q::Whatif | Q::Frontier | Q::Compare | Q::Outlook | Q::Hardware => {
                (2.0 + PLANS.ms(&self.extent), self.read.chips().map(|n| ("chips", n)))
            }
            Q::Pipeline => {
                let (cells, ms, _) = self.cells();
                (0.5 + ms * cells, Some(("micro_batches", own.number("micro_batches").unwrap_or(4.0))))
            }
            _ => (self.fixed(), None),
        }
    }

    /// Milliseconds of a question that no single number of its request makes longer.
    fn fixed(&self) -> f64 {
        use Question as Q;
        let own = &self.own;
        // Rooflines and closed forms of the lecture are quick beside predictions.
        let lecture = self.named("rates.rates") == Some("board") || self.named("setting.counting") == Some("lecture");
        match self.question {
            Q::Validate => 3500.0,
            // Two networks are made and held against each other, however few the steps.
            Q::Reversible => 1800.0 + 21.0 * own.number("steps").unwrap_or(20.0),
            Q::Lecture => 430.0,
            Q::Lifecycle => 90.0,
            Q::Scaling => 20.0,
            Q::Cache | Q::Cost | Q::Own if lecture => 1.0,
            Q::Cache | Q::Cost | Q::Own if self.named("setting.model").is_some() => 6.0,
            Q::Cache | Q::Cost | Q::Own => 13.0,
            // Closed forms, and lines that are read.
            Q::Explain | Q::Practice | Q::Step | Q::Racks | Q::When | Q::Layout | Q::Curve | Q::Goodput => 1.0,
            Q::Check | Q::Price | Q::Trace | Q::Systems | Q::Fastmode => 1.0,
            Q::Names => 2.5,
            Q::Models | Q::Chips => 6.0,
            Q::Station => 4.0,
            Q::Train => 5.0 + RUNS.ms(&self.extent),
            // Half of it is there however few the points.
            Q::Deduce => 14.0 + 13.0 * (self.log2_points() - 14.0).exp2(),
            Q::Rl if self.experts("model", false) => 500.0,
            Q::Rl => 12.0,
            Q::Capacity => self.stepped(13_000.0, 3500.0, 600.0, 300.0),
            Q::Estimate if self.read.said("embed") => 2.0,
            Q::Estimate if self.solved().is_some() && self.rated() => self.stepped(20_000.0, 8000.0, 3000.0, 300.0),
            Q::Estimate if self.solved().is_some() => 60.0,
            // At a rate it is simulated, the changes that would help are too, and the rate that holds is looked for.
            Q::Estimate if self.rated() => {
                self.stepped(5.5, 3.0, 1.6, 0.25) * simulated(10_000.0, self.read.number("osl").unwrap_or(1000.0))
            }
            Q::Estimate => 2.0,
            _ => 8.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(question: Question, body: &str) -> Cost {
        of(&rackmath_catalog::embedded(), question, &rackmath::ask::parse(body).expect("JSON"))
    }

    #[test]
    fn more_work_costs_more_and_stands_in_a_slower_lane() {
        assert_eq!(cost(Question::Step, "{}").lane(), 0);
        assert_eq!(cost(Question::Plan, "{}").lane(), 1);
        let (small, large) = (
            cost(Question::Plan, r#"{"setting":{"on":"8xh200"}}"#),
            cost(Question::Plan, r#"{"setting":{"on":"512xh200"}}"#),
        );
        assert!(small.seconds < large.seconds, "{small:?} {large:?}");
        let wide = cost(
            Question::Plan,
            r#"{"setting":{"on":"512xh200"},"engines":["vllm","sglang"],"weights":["fp8","auto"]}"#,
        );
        assert!(wide.seconds > 2.0 * large.seconds && wide.lane() == 2, "{wide:?} {large:?}");
        let fewer = cost(Question::Simulate, r#"{"traffic": {"requests": 1000}}"#);
        assert!(fewer.seconds < cost(Question::Simulate, r#"{"traffic": {"requests": 1000000}}"#).seconds);
    }

    #[test]
    fn a_refusal_says_what_was_asked_what_is_allowed_and_what_would_fit() {
        let asked = cost(Question::Simulate, r#"{"traffic": {"requests": 100000000}}"#);
        let refusal = asked.refusal(Question::Simulate, 30.0);
        let said = refusal.error.to_string();
        let number = |text: &str| {
            let rest = said.split_once(text).unwrap_or_else(|| panic!("{text} in {said}")).1;
            rest.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or_else(|| panic!("{said}"))
        };
        assert!(number("simulate as asked is about ") > 30.0 && said.contains("at most 30 s"), "{said}");
        assert_eq!(refusal.limit.as_ref().map(|l| l.allowed), Some(30.0));
        let fits = number("traffic.requests of at most ");
        let fits = cost(Question::Simulate, &format!(r#"{{"traffic": {{"requests": {fits}}}}}"#));
        assert!(fits.seconds <= 30.01 && fits.seconds > 29.0, "{fits:?}");
        let held = cost(Question::Simulate, r#"{"traffic": {"requests": 2000000}, "each": true}"#);
        let said = held.too_large(Question::Simulate, 64e6).error.to_string();
        assert!(
            said.contains("MB of memory") && said.contains("at most 64 MB") && said.contains("traffic.requests"),
            "{said}"
        );
    }
}
