//! Stubs of the Python package, from the schemas of the questions: `rackmath schema --python`.

use rackmath::ask::Question;
use rackmath::field::{Field, Unit};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// What is the same whatever the questions are.
const HEAD: &str = include_str!("stubs.pyi");

/// Words that Python keeps for itself.
#[rustfmt::skip] // a list
const RESERVED: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

pub fn text() -> String {
    let mut out = HEAD.to_owned();
    for question in Question::ALL {
        let mut types =
            Types { out: String::new(), prefix: camel(question.name()), defs: Value::Null, made: Vec::new() };
        let schema = question.schema().answer.to_value();
        types.defs = schema.get("$defs").cloned().unwrap_or_default();
        types.object(&format!("{}Data", camel(question.name())), &schema);
        out.push_str(&types.out);
        function(&mut out, *question);
    }
    out
}

fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split(['-', '_']).filter(|part| !part.is_empty()).map(word).collect()
}

fn argument(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A field as an argument may be given.
fn accepts(field: &Field) -> String {
    let words =
        || field.words.iter().chain(&field.also).map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let one = match field.unit {
        _ if field.file.is_some() => "str | PathLike[str] | Mapping[str, Any]".to_owned(),
        Unit::Switch => "bool".into(),
        Unit::Whole => "int | str".into(),
        Unit::Word if !field.words.is_empty() => format!("Literal[{}]", words()),
        Unit::Word => "str".into(),
        Unit::Number | Unit::Quantity(_) | Unit::Limit => "float | str".into(),
        Unit::Rounded | Unit::Exact => "float | str | Mapping[str, float]".into(),
        Unit::Gap => "str".into(),
        Unit::Group => "bool | str | Mapping[str, Any]".into(),
        Unit::Json => "Any".into(),
    };
    let one = if field.list && one != "Any" { format!("str | Sequence[{one}]") } else { one };
    if one == "Any" { one } else { format!("{one} | None") }
}

fn function(out: &mut String, question: Question) {
    let fields = question.fields();
    let mut places: Vec<&Field> = fields.iter().filter(|f| f.position.is_some()).collect();
    places.sort_by_key(|f| f.position);
    let name = question.name().replace('-', "_");
    let _ = writeln!(out, "\ndef {name}(");
    let (lists, plain): (Vec<&&Field>, Vec<&&Field>) = places.iter().partition(|f| f.list);
    for field in &plain {
        let _ = writeln!(out, "    {}: {} = ...,", argument(&field.keyword()), accepts(field));
    }
    match lists.first() {
        Some(field) => {
            let _ = writeln!(out, "    *{}: str | Sequence[str],", argument(&field.keyword()));
        }
        None => out.push_str("    *,\n"),
    }
    for field in fields.iter().filter(|f| f.position.is_none()) {
        let _ = writeln!(out, "    {}: {} = ...,", argument(&field.keyword()), accepts(field));
    }
    out.push_str("    files: Mapping[str, str | Mapping[str, Any]] | None = ...,\n    catalog: str | PathLike[str] | Catalog | None = ...,\n");
    let _ = writeln!(out, ") -> Answer[{}Data]:\n    \"\"\"{}\n", camel(question.name()), question.about());
    for field in &fields {
        let _ = writeln!(
            out,
            "    {}: {}",
            argument(&field.keyword()),
            field.doc.replace('\\', "\\\\").replace("\"\"\"", "'''")
        );
    }
    out.push_str("    \"\"\"\n");
}

/// Answers as dictionaries whose names are known.
struct Types {
    out: String,
    prefix: String,
    defs: Value,
    made: Vec<String>,
}

impl Types {
    fn object(&mut self, name: &str, schema: &Value) {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty).clone();
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut lines = Vec::new();
        for (field, property) in &properties {
            let kind = self.kind(property);
            let kind = if required.contains(&field.as_str()) { kind } else { format!("NotRequired[{kind}]") };
            lines.push(format!("        \"{field}\": {kind},\n"));
        }
        // Written as a call: some names are no names of Python.
        let _ = writeln!(self.out, "\n{name} = TypedDict(\n    \"{name}\",\n    {{\n{}    }},\n)", lines.concat());
    }

    fn kind(&mut self, schema: &Value) -> String {
        if let Some(to) = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/$defs/")) {
            let Some(target) = self.defs.get(to).cloned() else { return "Any".into() };
            if target.get("properties").is_none() {
                // Sentences name themselves: a text, or a dictionary.
                return if to == "Remark" || target.get("anyOf").is_some() { "Any".into() } else { self.kind(&target) };
            }
            let name = format!("{}{}", self.prefix, camel(to));
            if !self.made.contains(&name) {
                self.made.push(name.clone());
                self.object(&name, &target);
            }
            return name;
        }
        if let Some(Value::Array(any)) = schema.get("anyOf") {
            let kinds: Vec<String> = any.iter().map(|one| self.kind(one)).collect();
            return joined(kinds);
        }
        match schema.get("type") {
            Some(Value::String(one)) => self.plain(one, schema),
            Some(Value::Array(many)) => {
                let many: Vec<String> = many.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                joined(many.iter().map(|one| self.plain(one, schema)).collect())
            }
            _ if schema.get("enum").is_some() || schema.get("oneOf").is_some() => "Any".into(),
            _ if schema.get("const").is_some_and(Value::is_number) => "int".into(),
            _ => "Any".into(),
        }
    }

    fn plain(&mut self, kind: &str, schema: &Value) -> String {
        match kind {
            "string" => "str".into(),
            "integer" => "int".into(),
            "number" => "float".into(),
            "boolean" => "bool".into(),
            "null" => "None".into(),
            "array" => match schema.get("items") {
                Some(items) => format!("list[{}]", self.kind(items)),
                None => "list[Any]".into(),
            },
            _ => "dict[str, Any]".into(),
        }
    }
}

fn joined(mut kinds: Vec<String>) -> String {
    if kinds.iter().any(|kind| kind == "Any") {
        return "Any".into();
    }
    kinds.dedup();
    kinds.join(" | ")
}
