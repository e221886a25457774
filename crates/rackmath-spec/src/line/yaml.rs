//! YAML as a tree of values, bounded: compose files, manifests of Kubernetes and the settings of engines.

use crate::SpecError;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Most values of a file, those that aliases repeat included, and how deep they may stand in each other.
const MOST: usize = 100_000;
const DEEPEST: usize = 64;

/// A value that is being filled, with the key that waits for one.
enum Open {
    List(Vec<Value>, usize),
    Map(Map<String, Value>, Option<String>, usize),
}

/// Every document of a text.
pub fn documents(text: &str) -> Result<Vec<Value>, SpecError> {
    let wrong = |why: String| SpecError::file("the YAML file", why);
    let (mut all, mut open): (Vec<Value>, Vec<Open>) = (Vec::new(), Vec::new());
    let mut known: BTreeMap<usize, (Value, usize)> = BTreeMap::new();
    let mut count = 0_usize;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| wrong(e.to_string()))?;
        let (value, anchor, size) = match event {
            Event::Scalar(text, style, anchor, _) => (scalar(&text, style == ScalarStyle::Plain), anchor, 1),
            Event::Alias(anchor) => {
                let line = span.start.line();
                let (value, size) =
                    known.get(&anchor).cloned().ok_or_else(|| wrong(format!("line {line}: an alias of nothing")))?;
                (value, 0, size)
            }
            Event::SequenceStart(anchor, _) => {
                open.push(Open::List(Vec::new(), anchor));
                if open.len() > DEEPEST {
                    return Err(wrong(format!("deeper than {DEEPEST} levels")));
                }
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push(Open::Map(Map::new(), None, anchor));
                if open.len() > DEEPEST {
                    return Err(wrong(format!("deeper than {DEEPEST} levels")));
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list, anchor)) => (Value::Array(list), anchor, 1),
                Some(Open::Map(map, _, anchor)) => (Value::Object(map), anchor, 1),
                None => continue,
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                continue;
            }
        };
        count += size;
        if count > MOST {
            return Err(wrong(format!("more than {MOST} values")));
        }
        if anchor > 0 {
            known.insert(anchor, (value.clone(), weight(&value)));
        }
        match open.last_mut() {
            None => all.push(value),
            Some(Open::List(list, _)) => list.push(value),
            Some(Open::Map(map, key, _)) => match key.take() {
                None => *key = Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
                // A merge key brings what another map has.
                Some(merge) if merge == "<<" => merged(map, &value),
                Some(name) => {
                    map.insert(name, value);
                }
            },
        }
    }
    Ok(all)
}

fn merged(map: &mut Map<String, Value>, value: &Value) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| merged(map, one)),
        Value::Object(other) => {
            for (key, value) in other {
                map.entry(key).or_insert_with(|| value.clone());
            }
        }
        _ => {}
    }
}

fn weight(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(weight).sum(),
        Value::Object(map) => map.values().map(weight).sum(),
        _ => 0,
    }
}

/// A bare word that is a number or a truth value is one; in quotes everything is text.
fn scalar(text: &str, plain: bool) -> Value {
    if !plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => {
            let whole = text.parse::<i64>().ok().map(Value::from);
            let sign = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
            let real = || text.parse::<f64>().ok().filter(|_| text.starts_with(sign)).map(Value::from);
            whole.or_else(real).unwrap_or_else(|| Value::String(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn values_lists_maps_anchors_and_merges() {
        let text = "a: &x {n: 1, s: \"2\"}\nb:\n  - true\n  - 0.5\n  - -tp\nc:\n  <<: *x\n  n: 3\nd: |\n  one\n  two\n---\n- ~\n";
        let all = documents(text).unwrap();
        assert_eq!(all[0]["a"], json!({"n": 1, "s": "2"}));
        assert_eq!(all[0]["b"], json!([true, 0.5, "-tp"]));
        assert_eq!(all[0]["c"]["s"], "2");
        assert_eq!(all[0]["d"], "one\ntwo\n");
        assert_eq!(all[1], json!([null]));
        assert!(documents("a: [1").is_err());
    }

    #[test]
    fn a_file_that_would_fill_memory_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let of = vec![format!("*a{}", n - 1); 10].join(", ");
            bomb = format!("{bomb}a{n}: &a{n} [{of}]\n");
        }
        assert!(documents(&bomb).unwrap_err().to_string().contains("more than 100000 values"));
        assert!(documents(&"[".repeat(1000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,200}") {
            let _ = documents(&text);
        }
    }
}
