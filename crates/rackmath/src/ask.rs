//! Any question by its name: a JSON request in, a JSON answer out.
//!
//! Every face that speaks JSON goes through here, so the same request gives the same bytes from the terminal, the server
//! and a program. A request may bring files along, by name, under `files`: a published `config.json` as an object or as
//! text, or a catalogue file of a model, chip, system or price sheet as TOML text. The request then uses that name.

use crate::{
    Error, cache, chips, compare, cost, curve, deduce, estimate, explain, fastmode, fleet, forensics, frontier,
    goodput, hardware, layout, lecture, lifecycle, mfu, models, names, outlook, pipeline, plan, practice, price, racks,
    reversible, scaling, station, step, systems, trace, train, validate, whatif,
};
use rackmath_spec::file::MAX_BYTES;
use rackmath_spec::{Catalog, Date, Kind};
use rackmath_units::Effort;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Most files one request may bring.
const MOST_FILES: usize = 8;

/// Declares every question: what it asks, its name, and the module with its `Request`, its
/// `Answer` and its `answer`; some need no catalogue, some search on several threads.
macro_rules! questions {
    ($(#[doc = $doc:literal] $name:ident $word:literal $($module:ident)::+ $(, $how:ident)?;)*) => {
        /// The questions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Question { $(#[doc = $doc] $name,)* }

        /// An answer to any of the questions.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[expect(clippy::large_enum_variant, reason = "there is one at a time")]
        pub enum Reply { $(#[doc = $doc] $name($($module)::+::Answer),)* }

        impl Question {
            /// All of them, in the order of the help.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// What it asks, in a line.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $doc.trim_ascii(),)* }
            }

            /// What goes in and what comes out, as JSON Schema.
            pub fn schema(self) -> Both {
                match self { $(Self::$name => both::<$($module)::+::Request, $($module)::+::Answer>(),)* }
            }

            /// Answers a request that brings no files.
            fn reply(self, catalog: &Catalog, request: Value, terms: &Terms) -> Result<Reply, Error> {
                match self { $(Self::$name => {
                    let request = self.read::<$($module)::+::Request>(request)?;
                    questions!(@answer catalog, &request, terms, $($module)::+ $(, $how)?).map(Reply::$name)
                })* }
            }
        }
    };
    (@answer $catalog:expr, $request:expr, $terms:expr, $($module:ident)::+) => {
        $($module)::+::answer($catalog, $request)
    };
    (@answer $catalog:expr, $request:expr, $terms:expr, $($module:ident)::+, alone) => {
        $($module)::+::answer($request)
    };
    (@answer $catalog:expr, $request:expr, $terms:expr, $($module:ident)::+, threads) => {
        $($module)::+::answer_on($catalog, $request, &$terms.effort)
    };
}

questions! {
    /// How long one step takes, what binds it, what it costs, and whether it fits
    Step "step" step;
    /// Time and cost along an axis: batch, context, pass length, chips or precision
    Curve "curve" curve;
    /// A number opened into its equation, with values and sources
    Explain "explain" explain;
    /// Models: list all, show one in full, compare several
    Models "models" models;
    /// Chips: list all, show one with every source, compare several
    Chips "chips" chips;
    /// Machines: nodes, racks and pods with their networks
    Systems "systems" systems;
    /// The lecture claim by claim: its formula, its number, ours, and why they differ
    Lecture "lecture" lecture;
    /// Trains that leave on time: waits, time to first token and fill of fixed steps
    Station "station" station, alone;
    /// One layout in full: what each chip holds and moves, and whether it fits
    Layout "layout" layout;
    /// A pipeline slot by slot: training schedules with bubble and memory, or inference
    Pipeline "pipeline" pipeline, alone;
    /// Scale-up domains compared: latency floor, memory, largest expert layer
    Racks "racks" racks;
    /// What a server delivers: speed, waiting, throughput, cost, what binds, and what would help
    Estimate "estimate" estimate;
    /// An estimate along a range of concurrencies or rates
    EstimateSweep "estimate-sweep" estimate::sweep;
    /// Published measurements against our predictions, row by row and source by source
    Validate "validate" validate;
    /// What a provider charges: lists by date, tiers, caches, modes and hours, and the bill of a workload
    Price "price" price;
    /// What a token costs to serve: dollars, joules, margins, and which assumption matters most
    Cost "cost" cost;
    /// From traffic to replicas, chips, racks, megawatts and dollars a day
    Fleet "fleet" fleet;
    /// Where to keep a prefix and for how long: hold or recompute, by memory tier
    Cache "cache" cache;
    /// What a fast mode's price says about the batch, and what else could explain it
    Fastmode "fastmode" fastmode;
    /// Scaling laws: loss of a size and its data, and the best of both for a compute or a loss
    Scaling "scaling" scaling;
    /// Pre-training, RL and serving in one budget: the rule of thumb and the exact optimum
    Lifecycle "lifecycle" lifecycle;
    /// Progress of a training run under failures: checkpoint interval, effective MFU, days, dollars
    Goodput "goodput" goodput;
    /// What a published run must have been: any of its numbers from the others
    Forensics "forensics" forensics;
    /// Reversible networks measured: memory, arithmetic, gradients, drift, and ciphers beside them
    Reversible "reversible" reversible;
    /// A training run: step time by its parts, memory by stage, days and dollars, or the best layout
    Train "train" train;
    /// One run's FLOP per second in every convention in use
    Mfu "mfu" mfu;
    /// What a price sheet says about the model behind it, with error bars
    Deduce "deduce" deduce;
    /// What to deploy for a model, traffic and latency targets: the best plan, the frontier, what each limit costs
    Plan "plan" plan, threads;
    /// A plan with something changed: before, the same deployment kept, and the new best
    Whatif "whatif" whatif, threads;
    /// Systems, models or engines side by side for one workload: best plans, ratios, who wins, flip prices
    Compare "compare" compare, threads;
    /// What users and chips can have at once: frontiers of systems, models or engines, one over the other
    Frontier "frontier" frontier, threads;
    /// The best hardware of the catalogue for a workload, and where the answer changes
    Hardware "hardware" hardware, threads;
    /// How sure a plan is and what comes next: uncertain inputs, bad ends of the intervals, the next bottleneck
    Outlook "outlook" outlook, threads;
    /// What a trace of requests says: lengths, rate, burstiness, shared prefixes
    Trace "trace" trace;
    /// Flashcards, and problems made at random with worked answers
    Practice "practice" practice;
    /// What the catalogue holds, by name: for pickers and completions
    Names "names" names;
}

/// The version of requests and answers, the first field of every answer.
pub const SCHEMA: u32 = 2;

/// What an asker brings beside the request.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Threads to search on, on which no answer depends, and until when it is wanted.
    pub effort: Effort,
    /// Today, where price sheets from the future are to be refused.
    pub today: Option<Date>,
}

impl Reply {
    /// As every face prints it, its version first.
    pub fn json(&self) -> Result<String, Error> {
        versioned(self)
    }
}

/// An answer with its version before its fields.
pub fn versioned<T: Serialize>(answer: &T) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: u32,
        #[serde(flatten)]
        answer: &'a T,
    }
    json(&Versioned { schema: SCHEMA, answer })
}

/// The schemas of a question.
#[derive(Serialize)]
pub struct Both {
    /// What goes in.
    pub request: Schema,
    /// What comes out.
    pub answer: Schema,
}

impl Question {
    /// The question of a name.
    pub fn find(name: &str) -> Result<Self, Error> {
        let named = Self::ALL.iter().copied().find(|q| q.name() == name);
        named.ok_or_else(|| Error::unknown("question", name, Self::ALL.iter().map(|q| q.name())))
    }

    /// Answers a JSON request with JSON.
    pub fn ask(self, catalog: &Catalog, body: &str) -> Result<String, Error> {
        self.answer(catalog, parse(body)?, &Terms::default())?.json()
    }

    /// Answers a request: the one door for every face.
    pub fn answer(self, catalog: &Catalog, mut request: Map<String, Value>, terms: &Terms) -> Result<Reply, Error> {
        let catalog = match request.remove("files") {
            None => Cow::Borrowed(catalog),
            Some(files) => Cow::Owned(with_files(catalog, files, terms.today)?),
        };
        self.reply(&catalog, Value::Object(request), terms)
    }

    fn read<R: DeserializeOwned>(self, request: Value) -> Result<R, Error> {
        serde_path_to_error::deserialize(request).map_err(|e| {
            let path = e.path().to_string();
            let place = if path == "." { String::new() } else { format!(" at {path}") };
            let error = Error::said(format!("{}{place}: {}", self.name(), e.inner()));
            let error = error.hint(format!("see the schema of {}", self.name()));
            if path == "." { error } else { error.at(&path) }
        })
    }
}

/// A request as it stands in a body: an object, or nothing for all defaults.
pub fn parse(body: &str) -> Result<Map<String, Value>, Error> {
    if body.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => {
            Err(Error::said(format!("the request is {}", kind(&other))).hint("expected an object of its fields"))
        }
        Err(e) => Err(Error::said(format!("the request is not JSON: {e}"))),
    }
}

/// An answer as every face prints it.
pub fn json<T: Serialize>(answer: &T) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(answer).map_err(|e| Error::said(e.to_string()))?;
    Ok(text + "\n")
}

fn both<R: JsonSchema, A: JsonSchema>() -> Both {
    let mut answer = schema_for!(A);
    if let Some(Value::Object(fields)) = answer.get_mut("properties") {
        fields.insert("schema".into(), serde_json::json!({ "const": SCHEMA, "description": "The version." }));
    }
    Both { request: schema_for!(R), answer }
}

/// The catalogue with the files a request brings. Chips come first, since systems refer to them.
fn with_files(catalog: &Catalog, files: Value, today: Option<Date>) -> Result<Catalog, Error> {
    let Value::Object(files) = files else {
        return Err(Error::value("files", kind(&files), "names with their texts"));
    };
    if files.len() > MOST_FILES {
        return Err(Error::value("files", files.len(), format!("at most {MOST_FILES}")));
    }
    let mut catalog = catalog.clone();
    let mut texts: Vec<(Kind, String, String)> = Vec::new();
    for (name, value) in files {
        let text = match value {
            Value::String(text) => text,
            Value::Object(_) => value.to_string(),
            other => {
                let expected = "a text, or a config.json as it is";
                return Err(Error::value(format!("files.{name}"), kind(&other), expected));
            }
        };
        if text.len() as u64 > MAX_BYTES {
            return Err(Error::value(format!("files.{name}"), text.len(), format!("at most {} MiB", MAX_BYTES >> 20)));
        }
        texts.push((Kind::of(&text), name, text));
    }
    texts.sort();
    for (kind, name, text) in &texts {
        catalog.add(*kind, name, text, today)?;
    }
    Ok(catalog)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_by_name_is_the_request_by_type() {
        let catalog = rackmath_catalog::embedded();
        let asked =
            Question::Step.ask(&catalog, r#"{"batch": 64, "setting": {"model": "qwen3-32b"}}"#).expect("answered");
        let request = step::Request {
            batch: Some(64.0),
            setting: crate::setting::Setting { model: "qwen3-32b".into(), ..Default::default() },
            ..Default::default()
        };
        assert_eq!(asked, Reply::Step(step::answer(&catalog, &request).expect("answered")).json().expect("JSON"));
        assert!(asked.starts_with("{\n  \"schema\": 2,"), "{asked}");
    }

    #[test]
    fn every_question_has_its_own_name_and_schema() {
        for q in Question::ALL {
            assert_eq!(Question::find(q.name()), Ok(*q));
            assert!(q.about().len() > 20, "{}", q.name());
            let both = serde_json::to_value(q.schema()).expect("JSON");
            assert!(both["request"]["type"] == "object" && both["answer"].is_object(), "{}", q.name());
        }
    }

    #[test]
    fn bad_bodies_say_what_and_where() {
        let catalog = rackmath_catalog::embedded();
        let said = |body: &str| Question::Step.ask(&catalog, body).expect_err("refused").to_string();
        assert!(said("[1]").contains("a list; expected an object"));
        assert!(said("{").contains("not JSON"));
        assert!(said(r#"{"setting": {"modle": "x"}}"#).contains("unknown field `modle`, expected one of `model`"));
        assert!(said(r#"{"batch": "many"}"#).contains("step at batch"));
        assert!(said(r#"{"files": {"c.json": 3}}"#).contains("files.c.json = a number"));
        assert!(said(r#"{"files": {"c.json": {"architectures": ["X"]}}}"#).contains("c.json"));
    }

    #[test]
    fn a_brought_chip_system_and_model_are_used() {
        let catalog = rackmath_catalog::embedded();
        let config = r#"{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,"intermediate_size":14336,
            "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"vocab_size":128256,"torch_dtype":"bfloat16"}"#;
        let body =
            format!(r#"{{"files": {{"mine/config.json": {config}}}, "setting": {{"model": "mine/config.json"}}}}"#);
        let object = Question::Step.ask(&catalog, &body).expect("answered");
        let text = serde_json::to_string(config).expect("JSON");
        let body =
            format!(r#"{{"files": {{"mine/config.json": {text}}}, "setting": {{"model": "mine/config.json"}}}}"#);
        assert_eq!(Question::Step.ask(&catalog, &body).expect("answered"), object);
    }
}
