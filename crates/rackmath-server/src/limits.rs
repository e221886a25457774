//! How much work one request may ask for.
//!
//! A terminal may think for an hour; a server that others reach may not. Each limit names the field it holds for, so a
//! refusal says what to change, and the interface document lists them.

use crate::error::Refusal;
use rackmath::Error;
use rackmath::ask::Question;
use serde_json::{Map, Value};
use std::sync::LazyLock;

pub const MOST_BYTES: usize = 1 << 20;

/// Longest list anywhere in a request.
const MOST_ITEMS: usize = 256;

/// Deepest nesting and longest text in a request, brought files aside.
const MOST_TEXT: usize = 20_000;

/// Most chips in the name of a machine, where the field for chips itself does not allow more.
const CHIPS: f64 = 1024.0;

/// A field, as a JSON pointer, the most it may say, for a list the most items, and what that bounds.
pub type Limit = (String, f64, String);

/// Every limit of a question, as it stands at the field.
pub fn of(question: Question) -> &'static [Limit] {
    static ALL: LazyLock<Vec<Vec<Limit>>> = LazyLock::new(|| Question::ALL.iter().map(|q| found(*q)).collect());
    Question::ALL.iter().position(|q| *q == question).map_or(&[], |i| &ALL[i])
}

fn found(question: Question) -> Vec<Limit> {
    let own = |q: Question| q.fields().into_iter().filter_map(|f| f.most.map(|(most, why)| (f.path, most, why)));
    let plan = (question == Question::Whatif).then(|| own(Question::Plan)).into_iter().flatten();
    own(question).chain(plan.map(|(path, most, why)| (format!("/plan{path}"), most, why))).collect()
}

/// Whether a request stays within its limits; else what to change.
pub fn check(question: Question, request: &Map<String, Value>) -> Result<(), Refusal> {
    let limits = of(question);
    for (field, most, why) in limits {
        let given = request_at(request, field);
        let (size, what) = match given {
            Some(Value::Number(n)) => (n.as_f64().unwrap_or(f64::INFINITY), ""),
            Some(Value::Array(items)) => (items.len() as f64, " items"),
            _ => continue,
        };
        if size > *most {
            let field = field.trim_start_matches('/').replace('/', ".");
            let given = format!("{size}{what} is more work than this server takes");
            let error = Error::value(&field, given, format!("at most {most} ({why}), or ask the command line"));
            return Err(Refusal::from(error).of(size, *most, why).fits(field, *most));
        }
    }
    let own = || request.iter().filter(|(name, _)| *name != "files");
    own().try_for_each(|(name, value)| every(name, value, &small))?;
    // Searches find chips in names as well: `4096xh200`, several machines, `chips=4096`.
    let chips = limits.iter().find(|(field, ..)| field.ends_with("/chips") && question != Question::Layout);
    let Some(most) = chips.map(|(_, most, _)| most.max(CHIPS)) else { return Ok(()) };
    own().try_for_each(|(name, value)| every(name, value, &|_, value| named(value, most as u64)))
}

fn request_at<'a>(request: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let mut parts = pointer.trim_start_matches('/').split('/');
    let first = request.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// Checks a value and all that is in it, each by the name of its field.
fn every(name: &str, value: &Value, check: &impl Fn(&str, &Value) -> Result<(), Refusal>) -> Result<(), Refusal> {
    check(name, value)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|v| every(name, v, check)),
        Value::Object(fields) => fields.iter().try_for_each(|(n, v)| every(n, v, check)),
        _ => Ok(()),
    }
}

/// No endless list or text in any field.
fn small(name: &str, value: &Value) -> Result<(), Refusal> {
    let (n, what, most) = match value {
        Value::Array(items) => (items.len(), "items", MOST_ITEMS),
        Value::String(text) => (text.len(), "characters", MOST_TEXT),
        _ => return Ok(()),
    };
    let refused = || Error::said(format!("{name} has {n} {what}")).at(name).hint(format!("expected at most {most}"));
    if n > most { Err(Refusal::from(refused()).of(n as f64, most as f64, what)) } else { Ok(()) }
}

fn named(value: &Value, most: u64) -> Result<(), Refusal> {
    let Value::String(text) = value else { return Ok(()) };
    let words = || text.split([',', '=']).map(str::trim);
    let machines = words().count();
    if machines > 9 {
        let error = Error::said(format!("{machines} machines in one name")).hint("expected at most 8");
        return Err(Refusal::from(error).of(machines as f64, 8.0, "machines"));
    }
    let counted = |word: &str| {
        let digits = word.chars().take_while(char::is_ascii_digit).count();
        let rest = &word[digits..];
        let chips = digits > 0 && (rest.starts_with(['x', 'X']) || (rest.is_empty() && text.starts_with("chips")));
        chips.then(|| word[..digits].parse().unwrap_or(u64::MAX))
    };
    match words().filter_map(counted).max() {
        Some(n) if n > most => {
            let error = Error::said(format!("{n} chips are more work than this server takes"))
                .hint(format!("expected at most {most} chips, or ask the command line"));
            Err(Refusal::from(error).of(n as f64, most as f64, "chips").fits("chips", most as f64))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(question: Question, body: &str) -> Result<(), String> {
        check(question, &rackmath::ask::parse(body).expect("JSON")).map_err(|e| e.error.to_string())
    }

    #[test]
    fn a_hostile_request_is_refused_with_its_field_and_the_most() {
        let (items, text) = ("1,".repeat(300), "z".repeat(30_000));
        for (question, body, says) in [
            (Question::Curve, r#"{"points": 99999}"#, "points = 99999"),
            (Question::Curve, r#"{"points": 99999}"#, "2000"),
            (Question::Plan, r#"{"setting": {"on": "100000xh200"}}"#, "100000 chips"),
            (Question::Whatif, r#"{"set": ["on=5000xb200"]}"#, "5000 chips"),
            (Question::Whatif, r#"{"set": ["chips=5000"]}"#, "5000 chips"),
            (Question::Compare, r#"{"systems": ["h200", "5000xb200"]}"#, "5000 chips"),
            (Question::Outlook, r#"{"plan": {"setting": {"chips": 5000}}}"#, "chips = 5000"),
            (Question::Plan, r#"{"setting": {"on": "99999999999999999999999xh200"}}"#, "chips"),
            (Question::Cost, &format!(r#"{{"x": [{items}1]}}"#), "301 items"),
            (Question::Cost, &format!(r#"{{"x": {{"y": "{text}"}}}}"#), "y has 30000 characters"),
        ] {
            let said = checked(question, body).expect_err(body);
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn ordinary_requests_pass_and_limits_name_real_fields() {
        for question in Question::ALL {
            assert_eq!(checked(*question, "{}"), Ok(()));
        }
        assert_eq!(checked(Question::Plan, r#"{"setting": {"on": "64xh200, 64xh100"}}"#), Ok(()));
        assert_eq!(checked(Question::Whatif, r#"{"set": ["tpot=20ms", "rate=5000"]}"#), Ok(()));
        for &question in Question::ALL {
            let schema = serde_json::to_value(question.schema()).expect("JSON").to_string();
            for (field, ..) in of(question) {
                let name = field.rsplit('/').next().expect("a name");
                assert!(schema.contains(&format!("\"{name}\"")), "{} {field}", question.name());
            }
        }
    }
}
