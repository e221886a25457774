//! The interface as an OpenAPI 3.1 document, whose schemas are those of the requests and answers themselves.

use crate::limits::{self, MOST_BYTES};
use rackmath::ask::Question;
use serde_json::{Map, Value, json};

pub fn document() -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for &question in Question::ALL {
        paths.insert(format!("/api/{}", question.name()), json!({ "post": operation(question, &mut schemas) }));
    }
    let list = |of: &str| json!({ "application/json": { "schema": { "type": "array", "items": { "type": of } } } });
    paths.insert("/api/words".into(), json!({ "post": {
        "operationId": "words",
        "summary": "Sentences of answers in words",
        "description": "A sentence of an answer (an object with `says` and its values) is a value; this gives the words of each.",
        "requestBody": { "content": list("object") },
        "responses": { "200": { "description": "The words, in the same order", "content": list("string") } }
    } }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "rackmath",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!("The maths of how large language models are trained and served. Every question takes a JSON request, \
                all of whose fields have defaults, and gives the answer that `rackmath ask QUESTION` prints, byte for byte. \
                Bodies are at most {MOST_BYTES} bytes. A request may bring files by name under `files`."),
            "license": { "name": "Apache-2.0 OR MIT" }
        },
        "paths": paths,
        "components": { "schemas": schemas }
    })
}

fn operation(question: Question, schemas: &mut Map<String, Value>) -> Value {
    let both = serde_json::to_value(question.schema()).unwrap_or_default();
    let (request, answer) = (format!("{}.request", question.name()), format!("{}.answer", question.name()));
    for (name, part) in [(&request, "request"), (&answer, "answer")] {
        let mut schema = both[part].clone();
        lift(&mut schema, name, schemas);
        schemas.insert(name.clone(), schema);
    }
    let name = |field: &str| field.trim_start_matches('/').replace('/', ".");
    let limit = |(field, most, why): &limits::Limit| format!("{} at most {most} ({why})", name(field));
    let limits: Vec<String> = limits::of(question).iter().map(limit).collect();
    let limits = if limits.is_empty() { String::new() } else { format!(" Limits: {}.", limits.join("; ")) };
    let refusal = |about: &str| {
        json!({ "description": about, "content": { "application/json": { "schema": {
        "type": "object", "properties": {
            "problem": { "type": "string" }, "field": { "type": ["string", "null"] }, "hint": { "type": ["string", "null"] },
            "limit": limit_schema() } } } } })
    };
    json!({
        "operationId": question.name(),
        "summary": question.about(),
        "description": format!("{}.{limits}", question.about()),
        "parameters": parameters(),
        "requestBody": { "content": { "application/json": {
            "schema": { "$ref": format!("#/components/schemas/{request}") }, "example": {} } } },
        "responses": {
            "200": { "description": "The answer", "content": { "application/json": {
                "schema": { "$ref": format!("#/components/schemas/{answer}") } } } },
            "400": refusal("Not a JSON object"),
            "422": refusal("A request that cannot be asked: what was given, what was expected, the nearest valid thing"),
            "413": refusal("A request of too many bytes"),
            "429": refusal("Too many requests of one caller at once; Retry-After says when to ask again"),
            "503": refusal("Too many requests at once, or no answer in time; Retry-After says when to ask again"),
        }
    })
}

/// What a refusal says for programs.
fn limit_schema() -> Value {
    let fits = json!({ "type": "object", "description": "The nearest smaller request: a field and the most it may be",
        "properties": { "field": { "type": "string" }, "most": { "type": "number" } } });
    json!({ "type": "object", "description": "What was asked, what is allowed, of what, and what would fit", "properties": {
        "asked": { "type": "number" }, "allowed": { "type": "number" }, "of": { "type": "string" }, "fits": fits } })
}

/// What may be said beside the request: how long the caller waits, and which part of a long answer it wants.
fn parameters() -> Value {
    let query = |name: &str, kind: &str, about: &str| json!({ "name": name, "in": "query", "description": about, "schema": { "type": kind } });
    json!([
        query("of", "string", "Only rows of this list of the answer, as a JSON pointer: {of, from, all, next, rows}"),
        query("from", "integer", "The first of these rows, from 0"),
        query("rows", "integer", "How many of them, 1000 unless given"),
        { "name": "prefer", "in": "header", "description": "wait=5 ends the work after five seconds", "schema": { "type": "string" } },
    ])
}

/// Moves a schema's own definitions to the components and turns its references there.
fn lift(schema: &mut Value, owner: &str, schemas: &mut Map<String, Value>) {
    let defs = schema.as_object_mut().and_then(|s| {
        s.remove("$schema");
        s.remove("$defs")
    });
    turn(schema, owner);
    if let Some(Value::Object(defs)) = defs {
        for (name, mut def) in defs {
            turn(&mut def, owner);
            schemas.insert(format!("{owner}.{name}"), def);
        }
    }
}

fn turn(value: &mut Value, owner: &str) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get_mut("$ref")
                && let Some(name) = to.strip_prefix("#/$defs/")
            {
                *to = format!("#/components/schemas/{owner}.{name}");
            }
            fields.values_mut().for_each(|v| turn(v, owner));
        }
        Value::Array(items) => items.iter_mut().for_each(|v| turn(v, owner)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|v| references(v, found));
            }
            Value::Array(items) => items.iter().for_each(|v| references(v, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 2 * Question::ALL.len());
        for to in found {
            let name = to.strip_prefix("#/components/schemas/").expect("lifted");
            assert!(document["components"]["schemas"].get(name).is_some(), "{to}");
        }
        for question in Question::ALL {
            assert!(document["paths"].get(format!("/api/{}", question.name())).is_some(), "{}", question.name());
        }
        assert!(document["paths"]["/api/curve"].to_string().contains("points at most 2000"));
    }
}
