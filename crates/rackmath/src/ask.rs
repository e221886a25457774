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
use rackmath_spec::{Catalog, SpecError};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Most files one request may bring.
const MOST_FILES: usize = 8;

macro_rules! questions {
    ($(#[doc = $doc:literal] $name:ident $word:literal $request:ty => $answer:ty, $call:expr;)*) => {
        /// The questions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Question { $(#[doc = $doc] $name,)* }

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
                match self { $(Self::$name => both::<$request, $answer>(),)* }
            }

            /// Answers a request that brings no files.
            fn reply(self, catalog: &Catalog, request: Value) -> Result<String, Error> {
                match self { $(Self::$name => reply::<$request, $answer>(self, catalog, request, $call),)* }
            }
        }
    };
}

questions! {
    /// How long one step takes, what binds it, what it costs, and whether it fits
    Step "step" step::Request => step::Answer, step::answer;
    /// Time and cost along an axis: batch, context, pass length, chips or precision
    Curve "curve" curve::Request => curve::Answer, curve::answer;
    /// A number opened into its equation, with values and sources
    Explain "explain" explain::Request => explain::Answer, explain::answer;
    /// Models: list all, show one in full, compare several
    Models "models" models::Request => models::Answer, models::answer;
    /// Chips: list all, show one with every source, compare several
    Chips "chips" chips::Request => chips::Answer, chips::answer;
    /// Machines: nodes, racks and pods with their networks
    Systems "systems" systems::Request => systems::Answer, systems::answer;
    /// The lecture claim by claim: its formula, its number, ours, and why they differ
    Lecture "lecture" lecture::Request => lecture::Answer, lecture::answer;
    /// Trains that leave on time: waits, time to first token and fill of fixed steps
    Station "station" station::Request => station::Answer, |_, r| station::answer(r);
    /// One layout in full: what each chip holds and moves, and whether it fits
    Layout "layout" layout::Request => layout::Answer, layout::answer;
    /// A pipeline slot by slot: training schedules with bubble and memory, or inference
    Pipeline "pipeline" pipeline::Request => pipeline::Answer, |_, r| pipeline::answer(r);
    /// Scale-up domains compared: latency floor, memory, largest expert layer
    Racks "racks" racks::Request => racks::Answer, racks::answer;
    /// What a server delivers: speed, waiting, throughput, cost, what binds, and what would help
    Estimate "estimate" estimate::Request => estimate::Answer, estimate::answer;
    /// An estimate along a range of concurrencies or rates
    EstimateSweep "estimate-sweep" estimate::sweep::Request => estimate::sweep::Answer, estimate::sweep::answer;
    /// Published measurements against our predictions, row by row and source by source
    Validate "validate" validate::Request => validate::Answer, validate::answer;
    /// What a provider charges: lists by date, tiers, caches, modes and hours, and the bill of a workload
    Price "price" price::Request => price::Answer, price::answer;
    /// What a token costs to serve: dollars, joules, margins, and which assumption matters most
    Cost "cost" cost::Request => cost::Answer, cost::answer;
    /// From traffic to replicas, chips, racks, megawatts and dollars a day
    Fleet "fleet" fleet::Request => fleet::Answer, fleet::answer;
    /// Where to keep a prefix and for how long: hold or recompute, by memory tier
    Cache "cache" cache::Request => cache::Answer, cache::answer;
    /// What a fast mode's price says about the batch, and what else could explain it
    Fastmode "fastmode" fastmode::Request => fastmode::Answer, fastmode::answer;
    /// Scaling laws: loss of a size and its data, and the best of both for a compute or a loss
    Scaling "scaling" scaling::Request => scaling::Answer, scaling::answer;
    /// Pre-training, RL and serving in one budget: the rule of thumb and the exact optimum
    Lifecycle "lifecycle" lifecycle::Request => lifecycle::Answer, lifecycle::answer;
    /// Progress of a training run under failures: checkpoint interval, effective MFU, days, dollars
    Goodput "goodput" goodput::Request => goodput::Answer, goodput::answer;
    /// What a published run must have been: any of its numbers from the others
    Forensics "forensics" forensics::Request => forensics::Answer, forensics::answer;
    /// Reversible networks measured: memory, arithmetic, gradients, drift, and ciphers beside them
    Reversible "reversible" reversible::Request => reversible::Answer, reversible::answer;
    /// A training run: step time by its parts, memory by stage, days and dollars, or the best layout
    Train "train" train::Request => train::Answer, train::answer;
    /// One run's FLOP per second in every convention in use
    Mfu "mfu" mfu::Request => mfu::Answer, mfu::answer;
    /// What a price sheet says about the model behind it, with error bars
    Deduce "deduce" deduce::Request => deduce::Answer, deduce::answer;
    /// What to deploy for a model, traffic and latency targets: the best plan, the frontier, what each limit costs
    Plan "plan" plan::Request => plan::Answer, plan::answer;
    /// A plan with something changed: before, the same deployment kept, and the new best
    Whatif "whatif" whatif::Request => whatif::Answer, whatif::answer;
    /// Systems, models or engines side by side for one workload: best plans, ratios, who wins, flip prices
    Compare "compare" compare::Request => compare::Answer, compare::answer;
    /// What users and chips can have at once: frontiers of systems, models or engines, one over the other
    Frontier "frontier" frontier::Request => frontier::Answer, frontier::answer;
    /// The best hardware of the catalogue for a workload, and where the answer changes
    Hardware "hardware" hardware::Request => hardware::Answer, hardware::answer;
    /// How sure a plan is and what comes next: uncertain inputs, bad ends of the intervals, the next bottleneck
    Outlook "outlook" outlook::Request => outlook::Answer, outlook::answer;
    /// What a trace of requests says: lengths, rate, burstiness, shared prefixes
    Trace "trace" trace::Request => trace::Answer, trace::answer;
    /// Flashcards, and problems made at random with worked answers
    Practice "practice" practice::Request => practice::Answer, practice::answer;
    /// What the catalogue holds, by name: for pickers and completions
    Names "names" names::Request => names::Answer, names::answer;
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
        named.ok_or_else(|| SpecError::unknown("question", name, Self::ALL.iter().map(|q| q.name())).into())
    }

    /// Answers a JSON request.
    pub fn ask(self, catalog: &Catalog, body: &str) -> Result<String, Error> {
        self.ask_value(catalog, parse(body)?)
    }

    /// The same for a request that is read already.
    pub fn ask_value(self, catalog: &Catalog, mut body: Map<String, Value>) -> Result<String, Error> {
        let catalog = match body.remove("files") {
            None => Cow::Borrowed(catalog),
            Some(files) => Cow::Owned(with_files(catalog, files)?),
        };
        self.reply(&catalog, Value::Object(body))
    }
}

/// A request as it stands in a body: an object, or nothing for all defaults.
pub fn parse(body: &str) -> Result<Map<String, Value>, Error> {
    if body.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(Error::Body(format!("the request is {}; expected an object of its fields", kind(&other)))),
        Err(e) => Err(Error::Body(format!("the request is not JSON: {e}"))),
    }
}

/// An answer as every face prints it.
pub fn json<T: Serialize>(answer: &T) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(answer).map_err(|e| Error::Body(e.to_string()))?;
    Ok(text + "\n")
}

fn both<R: JsonSchema, A: JsonSchema>() -> Both {
    Both { request: schema_for!(R), answer: schema_for!(A) }
}

fn reply<R: DeserializeOwned, A: Serialize>(
    question: Question,
    catalog: &Catalog,
    request: Value,
    answer: impl Fn(&Catalog, &R) -> Result<A, Error>,
) -> Result<String, Error> {
    let request: R = serde_path_to_error::deserialize(request).map_err(|e| {
        let path = e.path().to_string();
        let place = if path == "." { String::new() } else { format!(" at {path}") };
        Error::Body(format!("{}{place}: {}; see the schema of {0}", question.name(), e.inner()))
    })?;
    json(&answer(catalog, &request)?)
}

/// The catalogue with the files a request brings. Chips come first, since systems refer to them.
fn with_files(catalog: &Catalog, files: Value) -> Result<Catalog, Error> {
    let Value::Object(files) = files else {
        return Err(Error::Body(format!("files is {}; expected names with their texts", kind(&files))));
    };
    if files.len() > MOST_FILES {
        return Err(Error::Body(format!("{} files; expected at most {MOST_FILES}", files.len())));
    }
    let mut catalog = catalog.clone();
    let mut texts: Vec<(Kind, String, String)> = Vec::new();
    for (name, value) in files {
        let text = match value {
            Value::String(text) => text,
            Value::Object(_) => value.to_string(),
            other => {
                let given = kind(&other);
                return Err(Error::Body(format!(
                    "files: {name} is {given}; expected a text, or a config.json as it is"
                )));
            }
        };
        if text.len() as u64 > MAX_BYTES {
            return Err(Error::Body(format!("files: {name} is larger than {} MiB", MAX_BYTES >> 20)));
        }
        texts.push((Kind::of(&name, &text), name, text));
    }
    texts.sort();
    for (kind, name, text) in &texts {
        match kind {
            Kind::Chip => catalog.add_chip(name, text)?,
            Kind::System => catalog.add_system(name, text)?,
            Kind::Price => catalog.add_price(name, text, None)?,
            Kind::Model => catalog.add_model(name, text)?,
            Kind::Config => catalog.add_config(name, text)?,
        }
    }
    Ok(catalog)
}

/// What a file holds, told by what only such a file has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Chip,
    System,
    Price,
    Model,
    Config,
}

impl Kind {
    fn of(name: &str, text: &str) -> Self {
        let has = |key: &str| text.lines().any(|l| l.trim_start().starts_with(key));
        let json = std::path::Path::new(name).extension().is_some_and(|x| x.eq_ignore_ascii_case("json"));
        if json || text.trim_start().starts_with('{') {
            Self::Config
        } else if has("n_chips") {
            Self::System
        } else if has("[[list]]") {
            Self::Price
        } else if has("[memory]") {
            Self::Chip
        } else {
            Self::Model
        }
    }
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
        let catalog = Catalog::embedded();
        let asked =
            Question::Step.ask(&catalog, r#"{"batch": 64, "setting": {"model": "qwen3-32b"}}"#).expect("answered");
        let request = step::Request {
            batch: Some(64.0),
            setting: crate::setting::Setting { model: "qwen3-32b".into(), ..Default::default() },
            ..Default::default()
        };
        assert_eq!(asked, json(&step::answer(&catalog, &request).expect("answered")).expect("JSON"));
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
        let catalog = Catalog::embedded();
        let said = |body: &str| Question::Step.ask(&catalog, body).expect_err("refused").to_string();
        assert!(said("[1]").contains("a list; expected an object"));
        assert!(said("{").contains("not JSON"));
        assert!(said(r#"{"setting": {"modle": "x"}}"#).contains("unknown field `modle`, expected one of `model`"));
        assert!(said(r#"{"batch": "many"}"#).contains("step at batch"));
        assert!(said(r#"{"files": {"c.json": 3}}"#).contains("c.json is a number"));
        assert!(said(r#"{"files": {"c.json": {"architectures": ["X"]}}}"#).contains("c.json"));
    }

    #[test]
    fn a_brought_chip_system_and_model_are_used() {
        let catalog = Catalog::embedded();
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
