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
//! `cargo bench -p rackmath-server --bench cost` holds it against the processor's own count. Times are those of one core of 2026, an
//! optimised build; a slower machine is slower by the same share in every lane, so that who is quick stays quick.

use crate::error::Refusal;
use axum::http::StatusCode;
use rackmath::ask::Question;
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
        usize::from(self.seconds >= 0.04) + usize::from(self.seconds >= 1.0)
    }

    pub fn room_mib(self) -> usize {
        (self.bytes / f64::from(1 << 20)).ceil().max(1.0) as usize
    }

    /// Why a question is not taken, and what would be.
    pub fn refusal(self, question: Question, most: f64) -> Refusal {
        let name = question.name();
        let problem =
            format!("{name} as asked is about {:.0} s of work; this server takes at most {most:.0} s", self.seconds);
        let hint = match self.by {
            Some((field, value)) => format!(
                "{field} of at most {:.0} would be taken; or ask the command line",
                (value * most / self.seconds).floor()
            ),
            None => "ask for less, or the command line".into(),
        };
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, problem, hint).of(self.seconds, most, "seconds of work")
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

/// Chips of the largest machine of a text, and how many machines it names.
fn machines(text: &str) -> (f64, f64) {
    let names: Vec<&str> = text.split([',', '+']).collect();
    let chips = |name: &&str| {
        let digits: String = name.trim().chars().take_while(char::is_ascii_digit).collect();
        let last = name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let counted = digits.parse::<f64>().ok().filter(|_| name.contains('x'));
        counted.or_else(|| last.parse::<f64>().ok().filter(|n| *n <= 1024.0 && name.contains("nvl"))).unwrap_or(8.0)
    };
    (names.iter().map(chips).fold(1.0, f64::max), names.len() as f64)
}

/// A search for a deployment: layouts grow with the chips, and each is tried in every format, engine and pass length.
fn search(fields: &Map<String, Value>, under: &str) -> (f64, f64) {
    let place = |name: &str| if under.is_empty() { name.to_owned() } else { format!("{under}.{name}") };
    let text = at(fields, &place("setting.on")).and_then(Value::as_str).unwrap_or("8xh200");
    let (named, count) = machines(text);
    let chips = number(fields, &place("setting.chips")).unwrap_or(named).max(1.0);
    let lists: f64 = ["engines", "weights", "kvs", "chunks", "drafts"]
        .iter()
        .map(|list| at(fields, &place(list)).and_then(Value::as_array).map_or(1.0, |l| l.len().max(1) as f64))
        .product();
    let powers = at(fields, &place("degrees")).and_then(Value::as_str) == Some("powers");
    let simulated =
        at(fields, &place("ttft_ms")).is_some_and(percentile) || at(fields, &place("tpot_ms")).is_some_and(percentile);
    let simulated = simulated || at(fields, &place("simulate")).and_then(Value::as_bool).unwrap_or(false);
    let each = if powers { 0.3 } else { 1.0 };
    (each * lists * count * (chips / 32.0).powf(0.8).max(0.25) + if simulated { 8.0 } else { 0.0 }, chips)
}

fn percentile(limit: &Value) -> bool {
    limit.as_str().is_some_and(|l| l.contains('='))
}

pub fn of(question: Question, fields: &Map<String, Value>) -> Cost {
    use Question as Q;
    let times = |place: &'static str, usual: f64| number(fields, place).unwrap_or(usual) / usual;
    let driven = |ms: f64, place: &'static str, usual: f64| {
        (ms * times(place, usual).max(0.02), Some((place, number(fields, place).unwrap_or(usual))))
    };
    let searched = |ms: f64, under: &str| {
        let (work, chips) = search(fields, under);
        (ms * work, Some(("chips", chips)))
    };
    let rated = number(fields, "rate_per_s").is_some()
        || ["ttft_ms", "tpot_ms", "e2e_ms"].iter().any(|l| at(fields, l).is_some_and(percentile));
    let (ms, by) = match question {
        Q::Validate => (3500.0, None),
        Q::Reversible => driven(1500.0, "steps", 20.0),
        Q::Lecture => (430.0, None),
        Q::Lifecycle => (90.0, None),
        Q::Scaling | Q::Goodput => (20.0, None),
        Q::Simulate => driven(60.0, "requests", 10_000.0),
        Q::Station => driven(2.0, "requests", 1000.0),
        Q::Train => (if at(fields, "layout").is_some() { 80.0 } else { 1200.0 }, None),
        Q::Deduce => {
            let doubled = number(fields, "log2_points").unwrap_or(14.0) - 14.0;
            (40.0 * doubled.exp2(), None)
        }
        Q::Plan => searched(150.0, ""),
        Q::Whatif => searched(400.0, "plan.request"),
        Q::Frontier | Q::Compare => searched(150.0, "plan"),
        Q::Outlook => searched(800.0, "plan"),
        Q::Hardware => searched(4000.0, "plan"),
        Q::Estimate if at(fields, "seek.solve").is_some_and(|v| !v.is_null()) => {
            (if rated { 4000.0 } else { 800.0 }, None)
        }
        Q::Capacity => (2000.0, None),
        Q::Rl => (300.0, None),
        Q::Own => (50.0, None),
        Q::Estimate => (if rated { 400.0 } else { 6.0 }, None),
        Q::EstimateSweep => driven(if rated { 4000.0 } else { 12.0 }, "points", 20.0),
        Q::Pipeline => (
            2.0 * times("stages", 4.0) * times("micro_batches", 8.0) / 8.0,
            Some(("micro_batches", number(fields, "micro_batches").unwrap_or(8.0))),
        ),
        _ => (8.0, None),
    };
    let brought: usize = fields.get("files").map_or(0, |files| files.to_string().len());
    // Files are read and looked through; answers and what they are made of are a few megabytes, more where much is searched.
    Cost { seconds: (ms + brought as f64 / 1e4) / 1e3, bytes: 4e6 + 4e4 * ms.min(2000.0) + 10.0 * brought as f64, by }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(question: Question, body: &str) -> Cost {
        of(question, &rackmath::ask::parse(body).expect("JSON"))
    }

    #[test]
    fn more_work_costs_more_and_stands_in_a_slower_lane() {
        assert_eq!(cost(Question::Step, "{}").lane(), 0);
        assert_eq!(cost(Question::Plan, "{}").lane(), 1);
        let (small, large) = (
            cost(Question::Plan, r#"{"setting":{"on":"8xh200"}}"#),
            cost(Question::Plan, r#"{"setting":{"on":"512xh200"}}"#),
        );
        assert!(small.seconds < large.seconds && large.lane() == 2, "{small:?} {large:?}");
        let wide = cost(
            Question::Plan,
            r#"{"setting":{"on":"512xh200"},"engines":["vllm","sglang"],"weights":["fp8","auto"]}"#,
        );
        assert!((wide.seconds / large.seconds - 4.0).abs() < 0.01);
        let fewer = cost(Question::Simulate, r#"{"requests": 1000}"#);
        assert!(fewer.seconds < cost(Question::Simulate, r#"{"requests": 1000000}"#).seconds);
    }

    #[test]
    fn a_refusal_says_what_was_asked_what_is_allowed_and_what_would_fit() {
        let asked = cost(Question::Simulate, r#"{"requests": 100000000}"#);
        let refusal = asked.refusal(Question::Simulate, 30.0);
        let said = refusal.error.to_string();
        assert!(
            said.contains("600 s of work")
                && said.contains("at most 30 s")
                && said.contains("requests of at most 5000000"),
            "{said}"
        );
        assert_eq!(refusal.limit.map(|l| l.1), Some(30.0));
        let fits = cost(Question::Simulate, r#"{"requests": 5000000}"#);
        assert!(fits.seconds <= 30.01, "{fits:?}");
    }
}
