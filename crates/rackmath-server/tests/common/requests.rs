//! Requests at random: fields of a question's schema with values of their type, or of another.

use rackmath_units::Chance;
use serde_json::{Value, json};

pub fn below(dice: &mut Chance, n: usize) -> usize {
    dice.below(n as u64) as usize
}

pub fn one<'a, T>(dice: &mut Chance, of: &'a [T]) -> &'a T {
    &of[below(dice, of.len())]
}

/// A value of a field's type, or of another.
fn value(dice: &mut Chance, schema: &Value, root: &Value, depth: usize) -> Value {
    const WORDS: &str = "|h200|8xh200|gb200-nvl72|qwen3-32b|deepseek-v3|fp8|nvfp4|vllm|sglang|max|é\u{0}|../x";
    const NUMBERS: &[f64] = &[0.0, -1.0, 1.0, 2.0, 3.5, 8.0, 64.0, 4096.0, 1e6, 1e12, 1e300, -1e300, 1e-300, 0.5];
    if below(dice, 12) == 0 {
        let others = [Value::Null, json!([]), json!({}), json!("x"), json!(-1), json!(1e308), json!(true)];
        return one(dice, &others).clone();
    }
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(to) => root.pointer(to.trim_start_matches('#')).unwrap_or(schema),
        None => schema,
    };
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let choice = one(dice, choices);
        return value(dice, choice, root, depth);
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return one(dice, words).clone();
    }
    if let Some(word) = schema.get("const") {
        return word.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => one(dice, kinds).as_str().unwrap_or("null").to_owned(),
        Some(Value::String(kind)) => kind.clone(),
        _ => "null".into(),
    };
    match kind.as_str() {
        "number" => json!(one(dice, NUMBERS)),
        "integer" => json!(*one(dice, &[0_u64, 1, 2, 3, 8, 13, 64, 200, u64::MAX])),
        "string" => json!(one(dice, &WORDS.split('|').collect::<Vec<_>>())),
        "boolean" => json!(below(dice, 2) == 0),
        "array" => {
            let items = schema.get("items").cloned().unwrap_or_default();
            Value::Array((0..below(dice, 4)).map(|_| value(dice, &items, root, depth + 1)).collect())
        }
        "object" if depth < 4 => object(dice, schema, root, depth + 1),
        _ => Value::Null,
    }
}

/// A request of a schema, a quarter of its fields set.
pub fn object(dice: &mut Chance, schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return json!({}) };
    let mut out = serde_json::Map::new();
    for (name, field) in fields {
        if below(dice, 4) == 0 {
            out.insert(name.clone(), value(dice, field, root, depth));
        }
    }
    if below(dice, 20) == 0 {
        let text = one(dice, &["{", "", "n_chips = 3", "[memory]\n", "{\"hidden_size\": 1}"]);
        out.insert("files".into(), json!({ "x.json": text }));
    }
    Value::Object(out)
}
