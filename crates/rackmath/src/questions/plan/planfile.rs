//! A plan as a file: the question, the deployment that was chosen and its key numbers, so that the answer can be had again.
//!
//! The request carries a checksum, so that a change by hand is seen; to change a plan is what [`crate::whatif`] is for. The
//! numbers are worked out anew and compared with those in the file: a number that no longer follows is named.

use crate::desk::prelude::*;
use crate::plan::{Answer, Plan, Request, as_before};
use rackmath_theory::stats::Fnv;
use serde_json::Value;

/// The first field of every plan file.
pub const FORMAT: &str = "rackmath-plan-2";

/// The format before.
const BEFORE: &str = "rackmath-plan-1";

/// Who writes these files.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A plan that can be read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Always `rackmath-plan-2` when written.
    pub format: String,
    /// The version that wrote it.
    pub rackmath: String,
    /// Chip and system files that were handed in, to be read again first.
    #[serde(default)]
    pub files: Vec<String>,
    /// The question.
    pub request: Request,
    /// FNV-1a of the question, so that a change by hand is seen.
    pub request_checksum: String,
    /// The deployment that was recommended; none when nothing meets the limits.
    pub chosen: Option<Chosen>,
}

/// The recommended deployment, and the numbers it was chosen by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// Its number in the space.
    pub index: u64,
    /// What tells it from the others; text in files of before.
    pub deployment: Remark,
    /// The machine.
    pub system: String,
    /// The engine.
    pub engine: String,
    /// Weight format.
    pub weights: String,
    /// Cache format.
    pub kv: String,
    /// Requests in flight in one attention group.
    pub concurrency_per_group: f64,
    /// Replicas.
    pub replicas: u64,
    /// Chips of all.
    pub chips: u64,
    /// Mean time per output token.
    pub tpot_ms: f64,
    /// Mean time to first token.
    pub ttft_ms: f64,
    /// Output tokens per second and chip.
    pub tok_s_per_chip: f64,
    /// Output tokens per second of all.
    pub throughput_tok_s: f64,
    /// Dollars per hour.
    pub usd_per_hour: f64,
    /// Dollars per million output tokens.
    pub usd_per_mtok: f64,
    /// What limits most of a step.
    pub bound_by: String,
    /// Command lines that start it.
    pub launch: Vec<String>,
}

impl Chosen {
    /// What a file keeps of a plan.
    pub fn of(p: &Plan) -> Self {
        Self {
            index: p.index,
            deployment: p.deployment.clone(),
            system: p.system.clone(),
            engine: p.engine.clone(),
            weights: p.weights.clone(),
            kv: p.kv.clone(),
            concurrency_per_group: p.concurrency_per_group,
            replicas: p.replicas,
            chips: p.chips,
            tpot_ms: p.tpot_ms.value,
            ttft_ms: p.ttft_ms.value,
            tok_s_per_chip: p.tok_s_per_chip.value,
            throughput_tok_s: p.throughput_tok_s,
            usd_per_hour: p.usd_per_hour,
            usd_per_mtok: p.usd_per_mtok.value,
            bound_by: p.bound_by.clone(),
            launch: p.launch.clone(),
        }
    }
}

impl PlanFile {
    /// The file of an answered question.
    pub fn of(request: &Request, answer: &Answer) -> Self {
        Self {
            format: FORMAT.into(),
            rackmath: VERSION.into(),
            files: Vec::new(),
            request: request.clone(),
            request_checksum: checksum(&serde_json::to_value(request).unwrap_or(Value::Null)),
            chosen: answer.plans.first().map(Chosen::of),
        }
    }

    /// Its text.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a file, naming what is wrong with it; `name` is what errors call it.
    pub fn read(name: &str, text: &str) -> Result<Self, Error> {
        let mut raw: Value = serde_json::from_str(text).map_err(|error| unreadable(name, &error.to_string()))?;
        let found = checksum(&raw["request"]);
        let first = raw["format"] == BEFORE;
        if first {
            raw["format"] = FORMAT.into();
        }
        let request = raw.get_mut("request").and_then(Value::as_object_mut);
        let moved = request.is_some_and(|request| as_before(request, first));
        let text = if first || moved { raw.to_string() } else { text.to_owned() };
        let file: Self = serde_json::from_str(&text).map_err(|error| unreadable(name, &error.to_string()))?;
        if file.format != FORMAT {
            return Err(wrong(name, "format", &format!("\"{}\"", file.format), &format!("\"{FORMAT}\"")));
        }
        // The request as it stands in the file: fields a later version adds do not count.
        if found != file.request_checksum {
            let expected = format!(
                "{found}: the request was changed after it was saved; `rackmath whatif {name} --set` changes a plan"
            );
            return Err(wrong(name, "request_checksum", &file.request_checksum, &expected));
        }
        Ok(file)
    }

    /// The numbers of the file that an answer does not have: field, in the file, in the answer.
    pub fn moved(&self, best: Option<&Plan>) -> Vec<(String, String, String)> {
        let now = best.map(Chosen::of);
        let value = |chosen: &Option<Chosen>| serde_json::to_value(chosen).unwrap_or(Value::Null);
        let (Value::Object(then), Value::Object(now)) = (value(&self.chosen), value(&now)) else {
            let word = |some: bool| if some { "a deployment" } else { "null" }.to_owned();
            return if self.chosen.is_some() == now.is_some() {
                Vec::new()
            } else {
                vec![("chosen".into(), word(self.chosen.is_some()), word(now.is_some()))]
            };
        };
        let differs = |(field, then): (&String, &Value)| {
            let now = now.get(field).cloned().unwrap_or(Value::Null);
            // A text of before says the same in words, and its numbers stand beside it.
            if then.is_string() && now.is_object() {
                return None;
            }
            (*then != now).then(|| (format!("chosen.{field}"), then.to_string(), now.to_string()))
        };
        then.iter().filter_map(differs).collect()
    }

    /// Refuses an answer that is not the file's, naming the first field that differs. A file of another version may
    /// differ: what moved is returned.
    pub fn check(&self, name: &str, best: Option<&Plan>) -> Result<Vec<(String, String, String)>, Error> {
        let moved = self.moved(best);
        if self.rackmath == VERSION
            && let Some((field, then, now)) = moved.first()
        {
            let expected = format!("{now}, which follows from its request: the file or the catalogue was changed");
            return Err(wrong(name, field, then, &expected));
        }
        Ok(moved)
    }
}

fn wrong(file: &str, field: &str, given: &str, expected: &str) -> Error {
    let given: String = given.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    Error::value(field, given, expected).within(file)
}

/// A reader's complaint, shortened: an unknown field is named with its nearest, the others not listed.
fn unreadable(file: &str, problem: &str) -> Error {
    let mut quoted = problem.split('`').skip(1).step_by(2);
    match (problem.starts_with("unknown field"), quoted.next()) {
        (true, Some(field)) => {
            let place = problem.rsplit_once(" at ").map_or("", |(_, place)| place);
            Error::unknown("field", field, quoted).within(format!("{file} ({place})"))
        }
        _ => Error::file(file, problem.chars().take(300).collect::<String>()),
    }
}

/// FNV-1a over a value with sorted keys; numbers count by value, however they are written.
fn checksum(value: &Value) -> String {
    fn walk(hash: &mut Fnv, value: &Value) {
        match value {
            Value::Null => hash.bytes(b"n"),
            Value::Bool(b) => hash.bytes(if *b { b"t" } else { b"f" }),
            Value::Number(x) => {
                hash.bytes(b"#");
                hash.bytes(&x.as_f64().unwrap_or(0.0).to_bits().to_le_bytes());
            }
            Value::String(s) => {
                hash.bytes(b"s");
                hash.bytes(&(s.len() as u64).to_le_bytes());
                hash.bytes(s.as_bytes());
            }
            Value::Array(all) => {
                hash.bytes(b"[");
                for v in all {
                    walk(hash, v);
                }
                hash.bytes(b"]");
            }
            Value::Object(all) => {
                hash.bytes(b"{");
                for (key, v) in all {
                    walk(hash, &Value::String(key.clone()));
                    walk(hash, v);
                }
                hash.bytes(b"}");
            }
        }
    }
    let mut hash = Fnv::default();
    walk(&mut hash, value);
    format!("{:016x}", hash.0)
}

#[cfg(test)]
mod tests;
