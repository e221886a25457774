//! The catalogue and the schemas as resources, and recipes as prompts.

use super::{BAD_PARAMS, FRESH_MS, Fault, NO_RESOURCE};
use rackmath::ask::{self, Question};
use rackmath::{Catalog, Error, Kind};
use serde_json::{Value, json};

/// Folders of the catalogue that are worth a look.
const FOLDERS: [Kind; 6] = [Kind::Models, Kind::Chips, Kind::Systems, Kind::Engines, Kind::Prices, Kind::Laws];
const PAGE: usize = 200;

type Recipe = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

/// Recipes: name, what for, arguments with what they are, and the words, with the arguments in braces.
#[rustfmt::skip] // a table
const RECIPES: [Recipe; 3] = [
    ("size-a-deployment", "How many chips a model, its traffic and its latency targets need",
        &[("model", "a model, such as llama-3.1-70b"), ("traffic", "requests per second, prompt and answer lengths"), ("targets", "time to first token and per token")],
        "Size a deployment of {model} for {traffic} with {targets}. Call `plan` on two or three machines of different makers (`on`), compare cost and \
        chips, check the best one with `simulate` at the same rate, and say which limit binds, what the figures rest on and how wide their intervals are."),
    ("explain-a-slow-server", "Why a server is slower than it could be, and which change helps most",
        &[("command", "the server's command line"), ("machine", "what it runs on, such as 8xh100"), ("seen", "what was measured")],
        "A server started with `{command}` on {machine} shows {seen}. Call `check` for flags it would refuse or that contradict each other, then `estimate` with \
        the same flags. Compare with what was measured, say what binds a step, and give the first three changes of the answer with their gains."),
    ("compare-clouds", "Own machines, rented machines or a provider's price list for one workload",
        &[("model", "a model"), ("workload", "requests a day, lengths, share of cached prompts")],
        "Compare ways to serve {model} for {workload}: `compare` for rented machines, `ask` with question `own` for own machines against a provider, `ask` with \
        question `price` for price lists. Give dollars per million tokens of each with the date of its prices, and where the answer flips."),
];

pub fn list(catalog: &Catalog, cursor: Option<&str>) -> Result<Value, Fault> {
    let from: usize = match cursor {
        None => 0,
        Some(text) => text.parse().map_err(|_| Fault::new(BAD_PARAMS, format!("no cursor \"{text}\"")))?,
    };
    let entries = FOLDERS.iter().flat_map(|kind| {
        catalog.ids(*kind).map(
            move |id| json!({ "uri": format!("rackmath://{kind}/{id}"), "name": id, "mimeType": "application/toml" }),
        )
    });
    let schemas = Question::ALL.iter().map(|q| {
        json!({ "uri": format!("rackmath://schema/{}", q.name()), "name": format!("schema of {}", q.name()),
            "mimeType": "application/schema+json" })
    });
    let mut rest = entries.chain(schemas).skip(from);
    let page: Vec<Value> = rest.by_ref().take(PAGE).collect();
    let mut result = json!({ "resources": page, "ttlMs": FRESH_MS, "cacheScope": "public" });
    if rest.next().is_some() {
        result["nextCursor"] = json!((from + PAGE).to_string());
    }
    Ok(result)
}

pub fn templates() -> Value {
    let folders = FOLDERS.map(|kind| {
        json!({ "uriTemplate": format!("rackmath://{kind}/{{id}}"), "name": kind.to_string(), "mimeType": "application/toml",
            "description": "A file of the catalogue, with sources" })
    });
    let schema = json!({ "uriTemplate": "rackmath://schema/{question}", "name": "schema", "mimeType": "application/schema+json",
        "description": "What goes into a question and what comes out" });
    let all: Vec<Value> = folders.into_iter().chain([schema]).collect();
    json!({ "resourceTemplates": all, "ttlMs": FRESH_MS, "cacheScope": "public" })
}

pub fn read(catalog: &Catalog, uri: &str) -> Result<Value, Fault> {
    let none = |error: Error| Fault(NO_RESOURCE, error.to_string(), Some(json!({ "uri": uri })));
    let (folder, id) = uri.strip_prefix("rackmath://").and_then(|rest| rest.split_once('/')).unwrap_or_default();
    let (text, mime) = if folder == "schema" {
        let schema = Question::find(id).and_then(|question| ask::json(&question.schema())).map_err(none)?;
        (schema, "application/schema+json")
    } else {
        let known = || FOLDERS.iter().map(|kind| (*kind).into()).chain(["schema"]);
        let kind = FOLDERS.iter().copied().find(|kind| kind.to_string() == folder);
        let kind = kind.ok_or_else(|| none(Error::unknown("folder", folder, known())))?;
        let file = catalog.files(kind).find(|(own, _)| *own == id || catalog.names(kind, own).contains(&id));
        let (_, text) = file.ok_or_else(|| none(Error::unknown("file", id, catalog.ids(kind))))?;
        (text.to_owned(), "application/toml")
    };
    let contents = json!([{ "uri": uri, "mimeType": mime, "text": text }]);
    Ok(json!({ "contents": contents, "ttlMs": FRESH_MS, "cacheScope": "public" }))
}

pub fn prompts() -> Vec<Value> {
    let all = RECIPES.iter().map(|(name, about, arguments, _)| {
        let given =
            arguments.iter().map(|(name, about)| json!({ "name": name, "description": about, "required": true }));
        json!({ "name": name, "description": about, "arguments": given.collect::<Vec<_>>() })
    });
    all.collect()
}

pub fn prompt(name: &str, given: Option<&Value>) -> Result<Value, Fault> {
    let wrong = |error: Error| Fault::new(BAD_PARAMS, error.to_string());
    let recipe = RECIPES.iter().find(|(own, ..)| *own == name);
    let (_, about, arguments, words) =
        recipe.ok_or_else(|| wrong(Error::unknown("prompt", name, RECIPES.iter().map(|(own, ..)| *own))))?;
    let mut text = (*words).to_owned();
    for (name, about) in *arguments {
        let value = given.and_then(|all| all.get(name)).and_then(Value::as_str);
        let value = value.ok_or_else(|| wrong(Error::value(*name, "nothing", *about)))?;
        text = text.replace(&format!("{{{name}}}"), value);
    }
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": about, "messages": [message] }))
}
