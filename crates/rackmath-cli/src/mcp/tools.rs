//! The questions as tools: the usual ones with their usual fields, every other through `ask`.

use super::{BAD_PARAMS, Fault, Outcome};
use rackmath::ask::{Question, Terms};
use rackmath::field::{self, Field, Unit};
use rackmath::{Catalog, Error};
use rackmath_report::Style;
use rackmath_report::reply::{Detail, Show, page};
use rackmath_units::{Cancel, Effort};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Tools, and the flags their schemas show; the others are taken as well.
#[rustfmt::skip] // a table
pub const TOOLS: [(Question, &str); 11] = [
    (Question::Estimate, "model on tp pp dp ep engine quantization kv-cache-dtype concurrency rate isl osl prefix-hit ttft tpot solve flags"),
    (Question::Plan, "model on engine isl osl prefix-hit rate ttft tpot e2e speed objective basis top"),
    (Question::Layout, "model on chips tp pp dp ep batch context quantization kv-cache-dtype"),
    (Question::Compare, "model on models engines isl osl rate ttft tpot"),
    (Question::Check, "command on engine"),
    (Question::Cost, "model on prefill-tok-s decode-tok-s utilisation price owner"),
    (Question::Train, "model on chips tp pp dp ep batch tokens solve days"),
    (Question::Simulate, "model on tp engine rate requests isl osl replicas router seed ttft tpot"),
    (Question::Explain, "what model on batch context"),
    (Question::Models, "names context kv-cache-dtype"),
    (Question::Chips, "names"),
];

/// Most characters and lines of a short answer, and most bytes of a full one.
const SHORT: (usize, usize) = (6_000, 70);
const LONG: usize = 400_000;

pub fn list() -> Vec<Value> {
    let hints = json!({ "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false });
    let detail = json!({ "type": "string", "enum": ["brief", "full"], "default": "brief",
        "description": "full: every figure and the working, as structured content" });
    let mut all: Vec<Value> = TOOLS
        .iter()
        .map(|(question, shown)| {
            let fields = question.fields();
            let mut properties: Map<String, Value> = shown
                .split(' ')
                .filter_map(|flag| field::named(&fields, flag))
                .map(|field| (field.keyword(), property(field)))
                .collect();
            properties.insert("detail".into(), detail.clone());
            let schema = json!({ "type": "object", "properties": properties,
                "description": format!("Every other flag of rackmath {} is taken too: see rackmath://schema/{0}", question.name()) });
            json!({ "name": question.name(), "description": question.about(), "inputSchema": schema, "annotations": hints })
        })
        .collect();
    let names: Vec<&str> = others().map(Question::name).collect();
    let lines: Vec<String> = others().map(|q| format!("{}: {}", q.name(), q.about())).collect();
    let schema = json!({ "type": "object", "required": ["question"], "properties": {
        "question": { "type": "string", "enum": names, "description": lines.join("; ") },
        "arguments": { "type": "object", "description": "Its flags, as in a terminal, with _ for -; or its request as in rackmath://schema/QUESTION" },
        "detail": detail } });
    all.push(
        json!({ "name": "ask", "description": "Any other question of rackmath, by its name", "inputSchema": schema,
        "annotations": hints }),
    );
    all
}

fn others() -> impl Iterator<Item = Question> {
    Question::ALL.iter().copied().filter(|q| TOOLS.iter().all(|(tool, _)| tool != q))
}

/// A field as a model fills it in: a number, or a text as it is typed.
fn property(field: &Field) -> Value {
    let kind = match field.unit {
        _ if field.list => json!(["string", "array"]),
        Unit::Switch => json!("boolean"),
        Unit::Whole => json!(["integer", "string"]),
        Unit::Number => json!(["number", "string"]),
        Unit::Quantity(_) | Unit::Limit | Unit::Rounded | Unit::Exact | Unit::Gap => json!(["string", "number"]),
        Unit::Group => json!(["boolean", "string", "object"]),
        Unit::Word => json!("string"),
        Unit::Json => json!(["string", "object", "number", "array"]),
    };
    let example = match field.unit {
        Unit::Quantity(quantity) => format!(", such as {}", quantity.example),
        Unit::Limit => ", such as 30ms or p90=1s".into(),
        _ => String::new(),
    };
    let mut made = json!({ "type": kind, "description": format!("{}{example}", field.doc.trim_end_matches('.')) });
    if !field.words.is_empty() && !field.list && field.also.is_empty() {
        made["enum"] = json!(field.words);
    }
    made
}

/// A result that says what is wrong, so that whoever called can correct it.
pub fn refused(words: &str) -> Map<String, Value> {
    let result = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
    result.as_object().cloned().unwrap_or_default()
}

pub fn call(catalog: &Catalog, params: &Map<String, Value>, cancel: &Cancel, patience: Duration) -> Outcome {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut arguments = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(Fault::new(BAD_PARAMS, "arguments: expected an object")),
    };
    let detail = arguments.remove("detail");
    let question = if name == "ask" {
        let asked = arguments.remove("question");
        let inner = arguments.remove("arguments").or_else(|| arguments.remove("request"));
        if let Some(Value::Object(inner)) = inner {
            arguments.extend(inner);
        }
        Question::find(asked.as_ref().and_then(Value::as_str).unwrap_or_default())
    } else if let Some((question, _)) = TOOLS.iter().find(|(question, _)| question.name() == name) {
        Ok(*question)
    } else {
        let known = TOOLS.iter().map(|(question, _)| question.name()).chain(["ask"]);
        return Err(Fault::new(BAD_PARAMS, Error::unknown("tool", name, known).to_string()));
    };
    let full = match detail.as_ref().map(Value::as_str) {
        None | Some(Some("brief")) => Ok(false),
        Some(Some("full")) => Ok(true),
        _ => Err(Error::value("detail", detail.clone().unwrap_or_default(), "brief or full")),
    };
    let answered = full.and_then(|full| answered(catalog, question?, &arguments, full, cancel, patience));
    Ok(answered.unwrap_or_else(|error| {
        let late = error.is_cancelled();
        let words = format!("took more than {:.0} s; ask for less, or the command line", patience.as_secs_f64());
        refused(&if late { words } else { error.to_string() })
    }))
}

fn answered(
    catalog: &Catalog,
    question: Question,
    arguments: &Map<String, Value>,
    full: bool,
    cancel: &Cancel,
    patience: Duration,
) -> Result<Map<String, Value>, Error> {
    let request = field::keywords(&question.fields(), arguments)?;
    rackmath_server::taken(catalog, question, &request, patience)?;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let terms = Terms { effort: Effort { threads, cancel: cancel.clone() }, today: crate::inputs::today() };
    let reply = question.answer(catalog, request, &terms)?;
    let show = Show { detail: if full { Detail::FULL } else { Detail::default() }, ..Show::default() };
    let text = page(&reply, show, Style { color: false, width: 100 })?;
    let mut result = Map::new();
    let text = if full { text } else { brief(&text) };
    result.insert("content".into(), json!([{ "type": "text", "text": text }]));
    if full {
        let json = reply.json()?;
        if json.len() > LONG {
            return Err(Error::said(format!("the full answer has {} bytes, more than {LONG}", json.len()))
                .hint("ask for fewer rows or points, or for detail brief"));
        }
        let value = serde_json::from_str(&json).map_err(|e| Error::said(e.to_string()))?;
        result.insert("structuredContent".into(), value);
    }
    result.insert("isError".into(), Value::Bool(false));
    Ok(result)
}

/// A short page, or the beginning of a list, by whole lines; what more there is, is asked for here by another word.
fn brief(text: &str) -> String {
    let (mut end, mut lines) = (0, 0);
    if let Some((page, _)) = text.rsplit_once("\nmore: ") {
        return format!("{page}(more with detail: full)\n");
    }
    for line in text.split_inclusive('\n') {
        if lines == SHORT.1 || end + line.len() > SHORT.0 {
            return format!("{}(more with detail: full)\n", &text[..end]);
        }
        (end, lines) = (end + line.len(), lines + 1);
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_shows_fields_that_exist_in_words_that_are_short() {
        for (question, shown) in TOOLS {
            let fields = question.fields();
            for flag in shown.split(' ') {
                assert!(field::named(&fields, flag).is_some(), "{} --{flag}", question.name());
            }
        }
        let all = list();
        assert!((8..=13).contains(&all.len()));
        for tool in &all {
            assert!(tool["description"].as_str().is_some_and(|words| words.len() < 200), "{tool}");
        }
        let size = Value::Array(all).to_string().len();
        assert!(size < 40_000, "{size}: every conversation carries it");
    }
}
