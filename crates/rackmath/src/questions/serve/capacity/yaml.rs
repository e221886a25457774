//! Values as YAML: mappings and lists by indentation, texts in quotes unless they are plain words.

use serde_json::Value;

/// Documents with a line of `---` between them, each after its comments.
pub(super) fn documents(comments: &[String], all: &[Value]) -> String {
    let head = comments.iter().map(|c| format!("# {c}\n")).collect::<Vec<_>>().concat();
    let texts: Vec<String> = all.iter().map(|value| block(value, 0)).collect();
    head + &texts.join("---\n")
}

fn block(value: &Value, depth: usize) -> String {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            let one = |(key, v): (&String, &Value)| format!("{pad}{}:{}", word(key), inner(v, depth));
            map.iter().map(one).collect::<Vec<_>>().concat()
        }
        Value::Array(all) => all
            .iter()
            .map(|v| match v {
                // The first field stands beside the dash.
                Value::Object(map) if !map.is_empty() => {
                    let text = block(v, depth + 1);
                    format!("{pad}- {}", &text[2 * (depth + 1)..])
                }
                other => format!("{pad}- {}\n", scalar(other)),
            })
            .collect(),
        other => format!("{pad}{}\n", scalar(other)),
    }
}

/// What stands behind a key.
fn inner(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => format!("\n{}", block(value, depth + 1)),
        Value::Array(all) if !all.is_empty() => format!("\n{}", block(value, depth + 1)),
        Value::String(text) if text.contains('\n') => {
            let pad = "  ".repeat(depth + 1);
            let lines: Vec<String> = text.lines().map(|line| format!("{pad}{line}\n")).collect();
            format!(" |\n{}", lines.concat())
        }
        other => format!(" {}\n", scalar(other)),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        Value::Object(_) => "{}".into(),
        Value::Array(_) => "[]".into(),
        other => other.to_string(),
    }
}

/// A text that nobody takes for something else stands for itself; others are written as in JSON, which YAML reads.
fn word(text: &str) -> String {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = first && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c));
    let other = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&text.to_lowercase().as_str());
    if plain && !other { text.into() } else { Value::from(text).to_string() }
}
