//! A run request by request: what each met as a table, and recorded schedules replayed.

use crate::failure::at;
use crate::inputs::{self, Inputs};
use crate::output::{Output, save};
use clap::ArgMatches;
use rackmath::ask::{Question, Reply};
use rackmath::{Catalog, Error};
use rackmath_report::reply::Part;
use rackmath_sim::replay::{self, Scenario};
use rackmath_units::Cancel;
use serde_json::{Map, Value};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Seconds of a run that a Chrome trace shows unless told.
const WINDOW: &str = "0..10";

pub fn run(
    catalog: &Catalog,
    inputs: &Inputs<'_>,
    mut request: Map<String, Value>,
    given: &ArgMatches,
    output: &Output,
) -> Result<(), Error> {
    let path = |id: &str| given.get_one::<PathBuf>(id);
    if let Some(scenario) = path("replay") {
        return replayed(scenario, path("steps").map(PathBuf::as_path), output);
    }
    if let Some(file) = path("world") {
        let mut whole = Value::Object(world(file)?);
        lay_over(&mut whole, Value::Object(request));
        let Value::Object(merged) = whole else { return Ok(()) };
        request = merged;
    }
    let each = path("per-request");
    if each.is_some() {
        request.insert("each".into(), Value::Bool(true));
    }
    let chrome = path("chrome-trace");
    if chrome.is_some() {
        request.entry("window").or_insert_with(|| WINDOW.into());
    }
    let all = request.get("traffic").and_then(|t| t.get("requests")).and_then(Value::as_u64);
    let mut terms = inputs::terms();
    terms.effort.cancel = Cancel::open();
    let progress = Progress::new(&terms.effort.cancel, all);
    let reply = Question::Simulate.answer(catalog, inputs.with_files(request), &terms);
    drop(progress);
    let cancel = &terms.effort.cancel;
    if reply.is_err() && cancel.check().is_err() {
        let text = format!("stopped after {} requests, before any of them counted", cancel.done());
        return Err(Error::said(text).hint("the first requests of a run only warm it up"));
    }
    let mut reply = reply?;
    if let (Some(each), Reply::Simulate(answer)) = (each, &reply) {
        save(each, rackmath_report::csv::requests(answer).as_bytes())?;
        if each == Path::new("-") {
            return Ok(());
        }
    }
    if let (Some(chrome), Reply::Simulate(answer)) = (chrome, &mut reply) {
        // The answer is as without the file.
        let window = answer.window.take();
        save(chrome, window.map_or_else(String::new, |w| rackmath_report::chrome::trace(&w)).as_bytes())?;
        if chrome == Path::new("-") {
            return Ok(());
        }
    }
    output.reply(&reply, Part::All, given)
}

/// Says on standard error how far a run is, where someone can see it, until it is dropped. The first Ctrl-C ends the run and
/// keeps what is done, the second ends the process.
struct Progress {
    ended: Option<Sender<()>>,
    told: Option<JoinHandle<()>>,
}

impl Progress {
    fn new(cancel: &Cancel, all: Option<u64>) -> Self {
        let stop = cancel.clone();
        // A handler that cannot be set leaves Ctrl-C as it is everywhere else.
        let _ = ctrlc::set_handler(move || {
            if stop.check().is_err() {
                std::process::exit(130);
            }
            stop.cancel();
        });
        if !std::io::stderr().is_terminal() {
            return Self { ended: None, told: None };
        }
        let (ended, waits) = channel();
        let cancel = cancel.clone();
        let told = std::thread::spawn(move || {
            let began = Instant::now();
            while waits.recv_timeout(Duration::from_millis(500)) == Err(RecvTimeoutError::Timeout) {
                let done = cancel.done();
                let rate = done as f64 / began.elapsed().as_secs_f64();
                let of = all.map_or(String::new(), |all| format!(" of {all}"));
                eprint!("\r{done}{of} requests met, {rate:.0} a second; Ctrl-C ends here and keeps what is done   ");
            }
            if began.elapsed() > Duration::from_millis(500) {
                eprintln!();
            }
        });
        Self { ended: Some(ended), told: Some(told) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.ended.take());
        if let Some(told) = self.told.take() {
            // What is said on the way is not worth a failure.
            let _ = told.join();
        }
    }
}

/// A world file as a request: unknown keys are refused with their line and the nearest.
fn world(path: &Path) -> Result<Map<String, Value>, Error> {
    let text = inputs::trace(path)?;
    let mut world: Map<String, Value> = toml::from_str(&text)
        .map_err(|e| at(path, e).hint("expected TOML: tables setting, traffic, fleet, mishaps"))?;
    if let Some(Value::Object(replay)) = world.get_mut("replay")
        && let Some(Value::String(trace)) = replay.remove("trace")
    {
        let trace = path.parent().unwrap_or(Path::new(".")).join(trace);
        replay.insert("trace_text".into(), Value::String(inputs::trace(&trace)?));
        replay.entry("trace_name").or_insert(Value::String(trace.display().to_string()));
    }
    let schema = serde_json::to_value(Question::Simulate.schema().request).unwrap_or_default();
    let world = Value::Object(world);
    if let Some(slip) = slip(&schema, &schema, &world, "") {
        return Err(slip.error(&schema, path, &text));
    }
    let Value::Object(world) = world else { return Ok(Map::new()) };
    Ok(world)
}

/// Something in a world file that its schema does not know.
struct Slip {
    table: String,
    key: String,
    what: Wrong,
}

enum Wrong {
    /// The key, among those that are known there.
    Key(Vec<String>),
    /// Its value is text where only such kinds are read.
    Text(String, String),
}

impl Slip {
    /// The error: where it is, and the nearest key or the table that has it.
    fn error(&self, schema: &Value, path: &Path, text: &str) -> Error {
        let line = text.lines().position(|line| line.trim_start().trim_start_matches('[').starts_with(&self.key));
        let place = line.map_or(String::new(), |line| format!("line {} of ", line + 1));
        let place = format!("{place}{}", path.display());
        match &self.what {
            Wrong::Text(given, kinds) => {
                let said = format!("{place}: {} = \"{given}\"", self.key);
                Error::said(said).hint(format!("expected {kinds} without quotation marks"))
            }
            Wrong::Key(known) => {
                let table = if self.table.is_empty() { "the world" } else { &self.table };
                let kind = format!("key of {table}, {place},");
                let error = Error::unknown(&kind, &self.key, known.iter().map(String::as_str));
                let owners = owners(schema, &self.key);
                if owners.is_empty() || known.iter().any(|k| begins(k, &self.key)) {
                    return error;
                }
                error.hint(format!("it belongs in {}", owners.join(" or ")))
            }
        }
    }
}

/// Whether one word is the other with something more.
fn begins(a: &str, b: &str) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// What a schema refers to.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let named = |s: &Value| root.pointer(s.get("$ref")?.as_str()?.strip_prefix('#')?);
    named(schema).or_else(|| schema.get("allOf")?.get(0).and_then(named)).unwrap_or(schema)
}

/// Tables at the top that have a key.
fn owners(root: &Value, key: &str) -> Vec<String> {
    let tables = root.get("properties").and_then(Value::as_object).into_iter().flatten();
    let has = |schema: &Value| {
        let inner = resolved(root, schema);
        let inner = inner.get("items").map_or(inner, |items| resolved(root, items));
        inner.pointer("/properties").is_some_and(|fields| fields.get(key).is_some())
    };
    let written = |(name, schema): (&String, &Value)| {
        if resolved(root, schema).get("items").is_some() { format!("[[{name}]]") } else { format!("[{name}]") }
    };
    tables.filter(|(_, schema)| has(schema)).map(written).collect()
}

/// The first thing that a schema does not know.
fn slip(root: &Value, schema: &Value, given: &Value, table: &str) -> Option<Slip> {
    let schema = resolved(root, schema);
    match given {
        Value::Array(all) => all.iter().find_map(|one| slip(root, schema.get("items")?, one, table)),
        Value::Object(fields) => {
            let known = schema.get("properties")?.as_object()?;
            fields.iter().find_map(|(key, value)| {
                let wrong = |what| Slip { table: table.to_owned(), key: key.clone(), what };
                let Some(inner) = known.get(key) else {
                    return Some(wrong(Wrong::Key(known.keys().cloned().collect())));
                };
                let text = value.as_str().zip(not_text(resolved(root, inner)));
                let text = text.map(|(text, kinds)| wrong(Wrong::Text(text.to_owned(), kinds.to_owned())));
                text.or_else(|| slip(root, inner, value, key))
            })
        }
        _ => None,
    }
}

/// What a schema takes where it takes no text.
fn not_text(schema: &Value) -> Option<&'static str> {
    let kinds = schema.get("type")?;
    let has = |kind: &str| kinds == kind || kinds.as_array().is_some_and(|all| all.iter().any(|k| k == kind));
    match () {
        () if has("string") => None,
        () if has("number") => Some("a number"),
        () if has("integer") => Some("a whole number"),
        () if has("boolean") => Some("true or false"),
        () => None,
    }
}

/// Puts what is given on top of what is there, field by field.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

/// Runs a scenario and writes its record, or says what it came to.
fn replayed(path: &Path, steps: Option<&Path>, output: &Output) -> Result<(), Error> {
    let text = inputs::trace(path)?;
    let wrong = |e: String| at(path, e).hint("expected a scenario: engine, clock and requests as JSON");
    let scenario: Scenario = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let lines = replay::run(&scenario).map_err(wrong)?;
    if let Some(steps) = steps {
        return save(steps, (lines.join("\n") + "\n").as_bytes());
    }
    let head = lines.first().map_or("", String::as_str);
    if output.json {
        return crate::output::print(&format!("{head}\n"));
    }
    crate::output::print(&format!(
        "{}: {} steps; write them with --steps FILE\n{head}\n",
        scenario.name,
        lines.len().saturating_sub(2)
    ))
}
