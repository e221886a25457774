//! How much work one request may ask for.
//!
//! A terminal may think for an hour; a server that others reach may not. Each limit names the field it holds for, so a
//! refusal says what to change, and the interface document lists them.

use rackmath::ask::Question;
use serde_json::{Map, Value};

/// Largest body, in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// Longest list anywhere in a request.
const MOST_ITEMS: usize = 256;

/// Deepest nesting and longest text in a request, brought files aside.
const MOST_TEXT: usize = 20_000;

/// A field and the most it may say.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The question.
    pub question: Question,
    /// The field, as a JSON pointer.
    pub field: &'static str,
    /// The largest number; for a list the most items.
    pub most: f64,
    /// What is spared, for the document.
    pub why: &'static str,
}

const fn limit(question: Question, field: &'static str, most: f64, why: &'static str) -> Limit {
    Limit { question, field, most, why }
}

/// All of them.
pub const LIMITS: &[Limit] = &[
    limit(Question::Curve, "/points", 2_000.0, "points of a curve"),
    limit(Question::EstimateSweep, "/points", 200.0, "estimates of a sweep"),
    limit(Question::Station, "/requests", 200_000.0, "simulated arrivals"),
    limit(Question::Station, "/tokens", 1_000_000.0, "steps of an answer"),
    limit(Question::Pipeline, "/stages", 64.0, "rows of the grid"),
    limit(Question::Pipeline, "/micro_batches", 256.0, "columns of the grid"),
    limit(Question::Pipeline, "/virtual_stages", 8.0, "chunks of a stage"),
    limit(Question::Reversible, "/depth", 32.0, "blocks of a trained network"),
    limit(Question::Reversible, "/steps", 100.0, "training steps"),
    limit(Question::Deduce, "/log2_points", 17.0, "points of the prior, as a power of two"),
    limit(Question::Train, "/chips", 65_536.0, "layouts of a search"),
    limit(Question::Train, "/keep", 100.0, "layouts kept"),
    limit(Question::Plan, "/setting/chips", 1_024.0, "layouts of a search"),
    limit(Question::Plan, "/engines", 4.0, "engines searched"),
    limit(Question::Plan, "/weights", 4.0, "formats searched"),
    limit(Question::Plan, "/kvs", 4.0, "formats searched"),
    limit(Question::Plan, "/chunks", 8.0, "chunk sizes searched"),
    limit(Question::Plan, "/drafts", 8.0, "draft lengths searched"),
    limit(Question::Plan, "/top", 100.0, "plans kept"),
    limit(Question::Cache, "/durations_s", 200.0, "durations of the picture"),
    limit(Question::Layout, "/setting/chips", 100_000.0, "chips placed"),
];

/// Whether a request stays within its limits; else what to change.
pub fn check(question: Question, request: &Map<String, Value>) -> Result<(), String> {
    for limit in LIMITS.iter().filter(|l| l.question == question) {
        let given = request_at(request, limit.field);
        let (size, what) = match given {
            Some(Value::Number(n)) => (n.as_f64().unwrap_or(f64::INFINITY), ""),
            Some(Value::Array(items)) => (items.len() as f64, " items"),
            _ => continue,
        };
        if size > limit.most {
            let field = limit.field.trim_start_matches('/').replace('/', ".");
            return Err(format!(
                "{field} = {size}{what} is more work than this server takes; expected at most {} ({}), or ask the command line",
                limit.most, limit.why
            ));
        }
    }
    for (name, value) in request.iter().filter(|(name, _)| *name != "files") {
        small(name, value)?;
    }
    machine(question, request)
}

fn request_at<'a>(request: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let mut parts = pointer.trim_start_matches('/').split('/');
    let first = request.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// No endless list or text in any field.
fn small(name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Array(items) if items.len() > MOST_ITEMS => {
            Err(format!("{name} has {} items; expected at most {MOST_ITEMS}", items.len()))
        }
        Value::Array(items) => items.iter().try_for_each(|v| small(name, v)),
        Value::Object(fields) => fields.iter().try_for_each(|(n, v)| small(n, v)),
        Value::String(text) if text.len() > MOST_TEXT => {
            Err(format!("{name} has {} characters; expected at most {MOST_TEXT}", text.len()))
        }
        _ => Ok(()),
    }
}

/// Searches count their chips in the machine's name too: `4096xh200`, or several machines.
fn machine(question: Question, request: &Map<String, Value>) -> Result<(), String> {
    let most = match question {
        Question::Plan => 1_024,
        Question::Train => 65_536,
        _ => return Ok(()),
    };
    let on = request.get("setting").and_then(|s| s.get("on")).or_else(|| request.get("on")).and_then(Value::as_str);
    let named = on.unwrap_or_default().split(',').map(|m| {
        let digits: String = m.trim().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or(u64::from(!digits.is_empty()) * u64::MAX)
    });
    let machines = on.unwrap_or_default().split(',').count();
    match named.max() {
        Some(n) if n > most => Err(format!(
            "on = {n} chips is more work than this server takes; expected at most {most} chips, or ask the command line"
        )),
        _ if machines > 8 => Err(format!("on names {machines} machines; expected at most 8")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(question: Question, body: &str) -> Result<(), String> {
        check(question, &rackmath::ask::parse(body).expect("JSON"))
    }

    #[test]
    fn a_hostile_request_is_refused_with_its_field_and_the_most() {
        let said = checked(Question::Curve, r#"{"points": 99999}"#).expect_err("refused");
        assert!(said.contains("points = 99999") && said.contains("2000"), "{said}");
        let said = checked(Question::Plan, r#"{"setting": {"on": "100000xh200"}}"#).expect_err("refused");
        assert!(said.contains("100000 chips"), "{said}");
        assert!(checked(Question::Plan, r#"{"setting": {"on": "99999999999999999999999xh200"}}"#).is_err());
        assert!(checked(Question::Cost, &format!(r#"{{"x": [{}1]}}"#, "1,".repeat(300))).is_err());
        assert!(checked(Question::Cost, &format!(r#"{{"x": {{"y": "{}"}}}}"#, "z".repeat(30_000))).is_err());
    }

    #[test]
    fn ordinary_requests_pass_and_limits_name_real_fields() {
        for question in Question::ALL {
            assert_eq!(checked(*question, "{}"), Ok(()));
        }
        assert_eq!(checked(Question::Plan, r#"{"setting": {"on": "64xh200, 64xh100"}}"#), Ok(()));
        for limit in LIMITS {
            let schema = serde_json::to_value(limit.question.schema()).expect("JSON").to_string();
            let field = limit.field.rsplit('/').next().expect("a name");
            assert!(schema.contains(&format!("\"{field}\"")), "{limit:?}");
        }
    }
}
