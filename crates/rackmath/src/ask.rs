//! Any question by its name: a JSON request in, a JSON answer out.
//!
//! Every face that speaks JSON goes through here, so the same request gives the same bytes from the terminal, the server
//! and a program. A request may bring files along, by name, under `files`: a published `config.json` as an object or as
//! text, or a catalogue file of a model, chip, system or price sheet as TOML text. The request then uses that name.

use crate::Error;
use crate::desk::check::refuse_if;
use crate::field::{self, Field};
use rackmath_spec::file::MAX_BYTES;
use rackmath_spec::node::{self, Node, Segment, Wrong};
use rackmath_spec::{Catalog, Date, Kind};
use rackmath_units::Effort;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Most files one request may bring.
const MOST_FILES: usize = 8;

/// Declares every question: what it asks, how in a terminal, its name, and the module with its `Request`, its
/// `Answer` and its `answer`; some take long; of these some need no catalogue.
macro_rules! questions {
    ($($(#[doc = $doc:literal])+ $name:ident $word:literal $($module:ident)::+ $(, $how:ident)?;)*) => {
        /// The questions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Question { $($(#[doc = $doc])+ $name,)* }

        /// An answer to any of the questions.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[expect(clippy::large_enum_variant, reason = "there is one at a time")]
        pub enum Reply { $($(#[doc = $doc])+ $name(crate::$($module)::+::Answer),)* }

        impl Question {
            /// All of them, in the order of the help.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// What it asks, in a line.
            pub fn about(self) -> &'static str {
                self.doc().first().map_or("", |line| line.trim_ascii())
            }

            /// How it is asked in a terminal, line by line.
            pub fn examples(self) -> impl Iterator<Item = &'static str> {
                self.doc().iter().skip(1).map(|line| line.trim_ascii())
            }

            fn doc(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($doc),+],)* }
            }

            /// What goes in and what comes out, as JSON Schema.
            pub fn schema(self) -> Both {
                match self { $(Self::$name => both::<crate::$($module)::+::Request, crate::$($module)::+::Answer>(),)* }
            }

            /// The fields of its request.
            pub fn fields(self) -> Vec<Field> {
                match self { $(Self::$name => field::of::<crate::$($module)::+::Request>(),)* }
            }

            /// A request with all that it leaves out.
            pub fn filled(self, request: Map<String, Value>) -> Result<Value, Error> {
                let full = |e: serde_json::Error| Error::said(e.to_string());
                match self { $(Self::$name => {
                    let request = self.read::<crate::$($module)::+::Request>(Value::Object(request))?;
                    serde_json::to_value(request).map_err(full)
                })* }
            }

            /// Answers a request that brings no files.
            fn reply(self, catalog: &Catalog, request: Value, terms: &Terms) -> Result<Reply, Error> {
                match self { $(Self::$name => {
                    let request = self.read::<crate::$($module)::+::Request>(request)?;
                    questions!(@answer catalog, &request, terms, $($module)::+ $(, $how)?).map(Reply::$name)
                })* }
            }
        }
    };
    (@answer $catalog:expr, $request:expr, $terms:expr, $($module:ident)::+) => {
        crate::$($module)::+::answer($catalog, $request)
    };
    (@answer $catalog:expr, $request:expr, $terms:expr, $($module:ident)::+, long) => {
        crate::$($module)::+::answer_on($catalog, $request, &$terms.effort)
    };
    (@answer $catalog:expr, $request:expr, $terms:expr, $($module:ident)::+, alone) => {
        crate::$($module)::+::answer_on($request, &$terms.effort)
    };
}

questions! {
    /// How long one step takes, what binds it, what it costs, and whether it fits
    /// rackmath step deepseek-v3 --on gb200-nvl72 --batch 4096 --context 8k --kv-cache-dtype fp8
    /// rackmath step llama-3.1-70b --on 8xh200 --batch 64 --context 8k
    Step "step" step;
    /// Time and cost along an axis: batch, context, pass length, chips or precision
    /// rackmath curve llama-3.1-405b --on hgx-b200 --over batch --svg batch.svg --csv batch.csv
    /// rackmath curve llama-3.1-70b --on 8xh200 --over context
    Curve "curve" curve;
    /// A number opened into its equation, with values and sources
    /// rackmath explain cost gpt-oss-120b --on h100 --batch 32
    /// rackmath explain balance gpt-oss-120b --on h100
    Explain "explain" explain;
    /// Models: list all, show one in full, compare several
    /// rackmath models deepseek-v3 --context 128k --kv-cache-dtype fp8
    /// rackmath models llama-3.1-70b qwen3-32b
    Models "models" models;
    /// Chips: list all, show one with every source, compare several
    /// rackmath chips h100 mi300x tpu-v7
    /// rackmath chips h200
    Chips "chips" chips;
    /// Machines: nodes, racks and pods with their networks
    /// rackmath systems gb200-nvl72
    /// rackmath systems hgx-h100 gb200-nvl72
    Systems "systems" systems;
    /// The lecture claim by claim: its formula, its number, ours, and why they differ
    /// rackmath lecture D9
    /// rackmath lecture
    Lecture "lecture" lecture;
    /// Trains that leave on time: waits, time to first token and fill of fixed steps
    /// rackmath station --interval 20ms --seats 2000 --rate 150 --tokens 500
    /// rackmath station --rate 190
    Station "station" station, alone;
    /// One layout in full: what each chip holds and moves, and whether it fits
    /// rackmath layout deepseek-v3 --on gb200-nvl72 --dp 64 --ep 64
    /// rackmath layout qwen3-235b-a22b --on hgx-h200 --flags "-tp 8 --enable-expert-parallel" --tool vllm
    /// rackmath layout llama-3.1-405b --on hgx-h100 --tp 8 --pp 2 --chips 16 --svg layout.svg
    Layout "layout" layout;
    /// A pipeline slot by slot: training schedules with bubble and memory, or inference
    /// rackmath pipeline --schedule 1f1b --stages 4 --micro-batches 8 --svg grid.svg
    /// rackmath pipeline --schedule inference --stages 4 --micro-batches 2
    /// rackmath pipeline --schedule all --stages 16 --micro-batches 64 --input-grad 1s --weight-grad 1s
    Pipeline "pipeline" pipeline, alone;
    /// Scale-up domains compared: latency floor, memory, largest expert layer
    /// rackmath racks deepseek-v3 hgx-h100 gb200-nvl72 tpu-v7-9216
    /// rackmath racks llama-3.1-405b
    Racks "racks" racks;
    /// From which batch or context on a chosen thing binds a decode step: arithmetic, memory, latency, links, the host
    /// rackmath when llama-3.1-70b --on 8xh200 --tp 8 --what arithmetic
    /// rackmath when deepseek-v3 --on gb200-nvl72 --engine ideal --what memory --over context --batch 256
    When "when" when;
    /// Whether a server starts as its command line says, what it would print, what it would refuse, and which flag to change
    /// rackmath check "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32k" --on h100 --engine vllm@0.19.0
    /// rackmath check "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2" --on h100 --json
    /// rackmath check examples/deployment.yaml --on h200
    Check "check" check;
    /// What a server delivers: speed, waiting, throughput, cost, what binds, and what would help
    /// rackmath estimate llama-3.1-70b --on 8xh200 --tp 8 --concurrency 64 --isl 1k --osl 1k --engine vllm
    /// rackmath estimate deepseek-v3 --on gb200-nvl72 --flags "--tp_size 32 --ep_size 32 --enable_attention_dp" --engine trtllm
    /// rackmath estimate qwen3-32b --on h100 --solve concurrency --tpot 30ms --ttft 1s
    /// rackmath estimate qwen3-32b --on h100,2xh100,8xh200 --solve machine --tpot 20ms --concurrency 32
    Estimate "estimate" estimate, long;
    /// The curve of an estimate over concurrency: what a user gets against what a chip yields
    /// rackmath estimate-sweep gpt-oss-120b --on 8xh200 --tp 2 --svg curve.svg --csv curve.csv
    /// rackmath estimate-sweep qwen3-32b --on h100 --to 256 --points 9
    EstimateSweep "estimate-sweep" estimate::sweep, long;
    /// What one replica carries, for autoscalers: cache, work, thresholds, and values as files
    /// rackmath capacity qwen3-32b --on h200 --isl 2k --osl 300 --ttft 1s --tpot 40ms --startup 90s
    /// rackmath capacity llama-3.1-70b --on 4xh100 --tp 4 --ttft 1s --tpot 30ms --growth 50% --files scaling/
    Capacity "capacity" capacity, long;
    /// Serving request by request, as the engine schedules: percentiles, bursts, full caches, routers
    /// rackmath simulate llama-3.1-8b --on 1xh200 --isl 512 --osl 512 --rate 3 --requests 200000 --seed 42
    /// rackmath simulate llama-3.1-8b --on 1xh200 --trace examples/trace.csv --replicas 8 --router kv --per-request each.csv
    /// rackmath simulate llama-3.1-8b --on 1xh200 --users 64 --think 2s --turns 5 --ttft 500ms --tpot 20ms
    Simulate "simulate" simulate, long;
    /// Published measurements against our predictions, row by row and source by source
    /// rackmath validate
    /// rackmath validate llamacpp --rows
    /// rackmath validate simulate  # whole runs of servers, replayed request by request
    /// rackmath validate splitwise --folder examples/measurements --leave-out chip --svg charts
    Validate "validate" validate, long;
    /// What a provider charges: lists by date, tiers, caches, modes and hours, and the bill of a workload
    /// rackmath price opus-4.8 --turns 20 --gap 2min  # a conversation, by cache offer
    /// rackmath price opus-4.8 gpt-5.6 gemini-3.1-pro -i 100k --uses 10  # a prefix that comes back
    /// rackmath price deepseek-flash -i 1M --at 2026-10-27T02:30  # at peak hours
    /// rackmath price opus-4.8 --trace examples/trace.jsonl  # a trace in Mooncake's format
    /// rackmath price examples/sheet.toml --against opus-4.8
    Price "price" price;
    /// What a token costs to serve: dollars, joules, margins, and which assumption matters most
    /// rackmath cost deepseek-v3 --on hgx-h800 --prefill-tok-s 9212.5 --decode-tok-s 1850 -u 1 --hit 0 --sheet deepseek-r1-api
    /// rackmath cost --owner --capex 48.6k --years 4 --capital 10%
    Cost "cost" cost;
    /// Own or rented machines against a provider: from which use, from how many requests a day on they are cheaper
    /// rackmath own llama-3.1-70b --on 8xh100 --provider-price 0.6/2.4/0.06 --hit 50% --isl 4k --osl 500
    /// rackmath own deepseek-v3 --on 8xh200 --provider together --requests-per-day 200k --owner
    /// rackmath own llama-3.1-70b --on 8xh100 --provider-price 0.6/2.4 --route llama-3.1-8b=60%
    Own "own" own;
    /// From traffic to replicas, chips, racks, megawatts and dollars a day
    /// rackmath fleet --requests-s 1000 --prompt 4k --answer 500
    /// rackmath fleet --tokens-per-month 1e15 --peak 1.5
    Fleet "fleet" fleet;
    /// Where to keep a prefix and for how long: hold or recompute, by memory tier
    /// rackmath cache deepseek-v3 --on hgx-h800 --kv bf16
    /// rackmath cache --trace examples/trace.jsonl --figure hits --svg hits.svg
    /// rackmath cache --gaps 30s:0.2,10min:0.15,1d:0.05
    Cache "cache" cache;
    /// What a fast mode's price says about the batch, and what else could explain it
    /// rackmath fastmode opus-4.6
    /// rackmath fastmode --price 6 --speed 2.5
    Fastmode "fastmode" fastmode;
    /// Scaling laws: loss of a size and its data, and the best of both for a compute or a loss
    /// rackmath scaling --flop 1e25  # the best model under every law
    /// rackmath scaling -n 8B -d 15T --law besiroglu-2024  # how far from compute-optimal
    /// rackmath scaling --loss 2.0 --on h100 --figure iso-loss --svg loss.svg
    Scaling "scaling" scaling, long;
    /// Pre-training, RL and serving in one budget: the rule of thumb and the exact optimum
    /// rackmath lifecycle --served 200T  # the lecture's budget under every law
    /// rackmath lifecycle -n 30B --rate 1M --model-share 100% --lifetime 180d --survives 50% --on h100
    /// rackmath lifecycle --rl 100M,16,8k,0.5 --chip-mtbf 50677h --sparsity 16 --svg cost.svg
    Lifecycle "lifecycle" lifecycle, long;
    /// Progress of a training run under failures: checkpoint interval, effective MFU, days, dollars
    /// rackmath goodput --chips 100000 --stall 30s --restart 10min --price 2/h --figure chips
    /// rackmath goodput --chips 16384
    Goodput "goodput" goodput, long;
    /// What a published run must have been: any of its numbers from the others
    /// rackmath forensics deepseek-v3 --price 2
    /// rackmath forensics --on h100 --chips 16384 -n 405B -d 15.6T --mfu 38%..43%
    Forensics "forensics" forensics;
    /// Reversible networks measured: memory, arithmetic, gradients, drift, and ciphers beside them
    /// rackmath reversible llama-3.1-405b --time --figure drift
    /// rackmath reversible llama-3.1-8b
    Reversible "reversible" reversible, long;
    /// A training run: step time by its parts, memory by stage, days and dollars, or the best layout
    /// rackmath train llama-3.1-70b --on hgx-h100 --chips 512 --tp 4 --pp 4 --batch 512 --tokens 15T
    /// rackmath train deepseek-v3 --on gb200-nvl72 --chips 2304 --batch 9216
    /// rackmath train --run deepseek-v3
    /// rackmath train llama-3.1-70b --on hgx-h100 --batch 512 --tokens 1T --days 30 --solve chips
    Train "train" train, long;
    /// Reinforcement learning: answers drawn beside training, memory of both, who waits, what a step costs
    /// rackmath rl qwen3-8b --on 16xh100 --prompts 128 --samples 16 --osl lognormal:mean=2k,cv=1 --longest 16k
    /// rackmath rl qwen3-32b --on 64xh100 --async --rollout-tp 4 --train-tp 4 --train-pp 4
    Rl "rl" rl, long;
    /// One run's FLOP per second in every convention in use
    /// rackmath mfu llama-3.1-405b --on h100-sxm --tflops 400 --convention full
    /// rackmath mfu --mfu 40%
    Mfu "mfu" mfu;
    /// What a price sheet says about the model behind it, with error bars
    /// rackmath deduce --blind deepseek-v3.1
    /// rackmath deduce --vendor anthropic --input 5$/Mtok --output 25$/Mtok --cached 0.5$/Mtok
    /// rackmath deduce gpt-5.5 --tokens-per-s 43 --figure ridge --svg ridge.svg
    Deduce "deduce" deduce, long;
    /// What to deploy for a model, traffic and latency targets: the best plan, the frontier, what each limit costs
    /// rackmath plan qwen3-32b --on 32xh200 --isl 4k --osl 500 --tpot 30ms --ttft 1s --rate 20
    /// rackmath plan deepseek-v3 --on 64xh200 --engine sglang --speed 40 --objective throughput --svg frontier.svg
    Plan "plan" plan, long;
    /// A plan with something changed: before, the same deployment kept, and the new best
    /// rackmath plan qwen3-32b --on 32xh200 --tpot 30ms --rate 20 --save plan.json
    /// rackmath whatif plan.json --set tpot=20ms --set on=64xb200
    /// rackmath whatif plan.json --set rate=40
    Whatif "whatif" whatif, long;
    /// Systems, models or engines side by side for one workload: best plans, ratios, who wins, flip prices
    /// rackmath compare llama-3.1-70b --on 8xh100,8xh200,8xb200 --isl 4k --osl 1k --tpot 30ms
    /// rackmath compare --models qwen3-32b,gpt-oss-120b --on 8xh200 --svg frontiers.svg
    /// rackmath compare deepseek-v3 --on 16xh200 --engines vllm,sglang
    Compare "compare" compare, long;
    /// What users and chips can have at once: frontiers of systems, models or engines, one over the other
    /// rackmath frontier llama-3.1-70b --on 8xh100,8xh200,8xb200 --isl 4k --osl 1k --svg frontier.svg
    /// rackmath frontier gpt-oss-120b --on 8xh200,8xmi355x --figure dollar --csv frontier.csv
    Frontier "frontier" frontier, long;
    /// The best hardware of the catalogue for a workload, and where the answer changes
    /// rackmath hardware llama-3.1-70b --chips 8 --isl 4k --osl 1k --tpot 30ms
    /// rackmath hardware gpt-oss-120b --among h100,h200,mi300x,b200 --rate 20 --basis rental --svg hardware.svg
    Hardware "hardware" hardware, long;
    /// How sure a plan is and what comes next: uncertain inputs, bad ends of the intervals, the next bottleneck
    /// rackmath outlook qwen3-32b --on 32xh200 --isl 4k --osl 500 --tpot 30ms --rate 20
    /// rackmath plan qwen3-32b --on 32xh200 --tpot 30ms --rate 20 --save plan.json
    /// rackmath outlook --from plan.json --vary 50%
    Outlook "outlook" outlook, long;
    /// What a trace of requests says: lengths, rate, burstiness, shared prefixes
    /// rackmath trace examples/trace.jsonl --keep 5min
    /// rackmath trace examples/trace.jsonl
    Trace "trace" trace;
    /// Flashcards, and problems made at random with worked answers
    /// rackmath practice --topic batch
    /// rackmath practice --seed 7 --answers 250,-,12
    /// rackmath practice --cards
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
        let catalog = brought(catalog, &mut request, terms)?;
        self.reply(&catalog, Value::Object(request), terms)
    }

    fn read<R: DeserializeOwned>(self, request: Value) -> Result<R, Error> {
        read(&request).map_err(|e| {
            if let Some(error) = self.unknown_word(&request, &e) {
                return error;
            }
            let path = e.path();
            let place = if path == "." { String::new() } else { format!(" at {path}") };
            let error = Error::said(format!("{}{place}: {}", self.name(), e.problem()));
            let error = error.hint(format!("see the schema of {}", self.name()));
            if path == "." { error } else { error.at(&path) }
        })
    }

    /// A word that is none of its field's, with the nearest of them.
    fn unknown_word(self, request: &Value, wrong: &Wrong) -> Option<Error> {
        let (mut given, mut at) = (request, String::new());
        for part in wrong.segments() {
            match part {
                Segment::Key(key) => {
                    given = given.get(key)?;
                    at = format!("{at}/{key}");
                }
                Segment::Index(index) => given = given.get(index)?,
            }
        }
        let (given, field) = (given.as_str()?, self.fields().into_iter().find(|field| field.path == at)?);
        let known = || field.words.iter().map(String::as_str);
        let name = at.rsplit('/').next().unwrap_or_default();
        (known().count() > 0).then(|| Error::unknown(name, given, known()).at(&wrong.path()))
    }
}

/// The noun that a JSON value describes.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Wrong> {
    Node::deserialize(value).map_err(Wrong::custom).and_then(node::read)
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

/// The catalogue with the files a request brings, which are taken out of it.
pub fn brought<'a>(
    catalog: &'a Catalog,
    request: &mut Map<String, Value>,
    terms: &Terms,
) -> Result<Cow<'a, Catalog>, Error> {
    Ok(match request.remove("files") {
        None => Cow::Borrowed(catalog),
        Some(files) => Cow::Owned(with_files(catalog, files, terms.today)?),
    })
}

/// The catalogue with files. Chips come first, since systems refer to them.
fn with_files(catalog: &Catalog, files: Value, today: Option<Date>) -> Result<Catalog, Error> {
    let Value::Object(files) = files else {
        return Err(Error::value("files", kind(&files), "names with their texts"));
    };
    refuse_if(files.len() > MOST_FILES, "files", files.len(), format!("at most {MOST_FILES}"))?;
    let refused = |name: &str, given: &str, expected: &str| Err(Error::value(format!("files.{name}"), given, expected));
    let mut catalog = catalog.clone();
    let mut texts: Vec<(Kind, String, String)> = Vec::new();
    for (name, value) in files {
        let text = match value {
            Value::String(text) => text,
            Value::Object(_) => value.to_string(),
            other => return refused(&name, kind(&other), "a text, or a config.json as it is"),
        };
        let most = format!("at most {} MiB", MAX_BYTES >> 20);
        refuse_if(text.len() as u64 > MAX_BYTES, &format!("files.{name}"), text.len(), most)?;
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
    use crate::step;

    #[test]
    fn a_request_by_name_is_the_request_by_type() {
        let catalog = rackmath_catalog::embedded();
        let asked =
            Question::Step.ask(&catalog, r#"{"batch": 64, "setting": {"model": "qwen3-32b"}}"#).expect("answered");
        let mut request = step::Request { batch: Some(64.0), ..Default::default() };
        request.setting.model = "qwen3-32b".into();
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
        let word = Question::Plan.ask(&catalog, r#"{"objective": "throughptu"}"#).expect_err("refused");
        assert_eq!(word.to_string(), "no objective \"throughptu\"; did you mean \"throughput\"?");
        assert_eq!(word.shown(str::to_owned, str::to_owned).field.as_deref(), Some("objective"));
        assert!(said(r#"{"files": {"c.json": 3}}"#).contains("files.c.json = a number"));
        assert!(said(r#"{"files": {"c.json": {"architectures": ["X"]}}}"#).contains("c.json"));
    }

    #[test]
    fn closed_lists_are_listed_and_what_a_question_refuses_is_no_flag_of_it() {
        for (question, flag, words) in [
            (Question::Plan, "basis", "owner-hyperscaler owner-neocloud rental on-demand spot"),
            (Question::Layout, "tool", "vllm sglang trtllm megatron"),
            (Question::Estimate, "tool", "vllm sglang trtllm megatron"),
            (Question::Mfu, "format", "bf16 fp16 fp8 mxfp8 nvfp4"),
            (Question::Scaling, "router", "s-base rl-r hash"),
        ] {
            let field = question.fields().into_iter().find(|field| field.flag == flag).expect("a field");
            assert_eq!(field.words.join(" "), words);
        }
        let flags: Vec<String> = Question::When.fields().into_iter().map(|field| field.flag).collect();
        assert!(["basis", "price", "overlap"].iter().all(|flag| !flags.iter().any(|f| f == flag)), "{flags:?}");
        let given = Question::Step.ask(&rackmath_catalog::embedded(), r#"{"setting": {"basis": "Rental"}}"#);
        assert!(given.is_ok(), "{given:?}");
    }

    #[test]
    fn percent_is_read_wherever_a_share_is() {
        let mut shares = 0;
        for question in Question::ALL {
            for field in question.fields() {
                let says = field.doc.to_lowercase();
                let spoken = ["share ", "chance ", "how sure"].iter().any(|word| says.starts_with(word));
                let share = matches!(field.unit, field::Unit::Quantity(q) if q.example == "50%");
                let number = matches!(field.unit, field::Unit::Number | field::Unit::Whole);
                if !(share || spoken && number) {
                    continue;
                }
                shares += 1;
                let (percent, plain) = (field.parse("60%"), field.parse("0.6"));
                let one = |value: &Value| if field.list { value[0].as_f64() } else { value.as_f64() };
                let value = percent.as_ref().ok().and_then(one);
                assert_eq!(value, Some(0.6), "{} --{}: {percent:?}", question.name(), field.flag);
                assert_eq!(percent, plain, "{} --{}", question.name(), field.flag);
            }
        }
        assert!(shares > 40, "{shares}");
    }

    #[test]
    fn a_brought_chip_system_and_model_are_used() {
        let catalog = rackmath_catalog::embedded();
        let config = r#"{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,"intermediate_size":14336,
            "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"vocab_size":128256,"torch_dtype":"bfloat16"}"#;
        let asked = |file: &str| {
            let body = format!(r#"{{"files": {{"mine.json": {file}}}, "setting": {{"model": "mine.json"}}}}"#);
            Question::Step.ask(&catalog, &body).expect("answered")
        };
        assert_eq!(asked(&serde_json::to_string(config).expect("JSON")), asked(config));
    }
}
