//! What can be typed.

mod estimate;

pub use estimate::{DegreesArgs, EstimateArgs};

pub use crate::commands::ValidateArgs;
mod economics;

pub use economics::{
    CacheArgs, CacheFigure, CostArgs, FastmodeArgs, FleetArgs, OwnerArgs, PictureArgs, PriceArgs, RatesArgs,
};
pub mod lifecycle;
mod training;

pub use training::{MfuArgs, TrainArgs};
mod deduce;
pub use deduce::{DeduceArgs, DeduceFigure};
mod plan;
pub use plan::PlanArgs;
mod planning;
pub use planning::{HardwareArgs, OutlookArgs, PlanFileArgs, SidesArgs, SidesFigure, WhatifArgs};
mod workload;
pub use workload::{HandoverArgs, TraceArgs, WorkloadArgs};
mod shard;
pub use shard::{MergeArgs, Shard};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rackmath::ask::Question;
use rackmath::curve::Over;
use rackmath_units::{Bytes, DollarRate, Fraction, Seconds, Tokens};
use std::path::PathBuf;

/// The maths of how large language models are trained and served.
///
/// With no command: step time and cost per token against batch size for DeepSeek V3 on a GB200 NVL72 rack, where each line
/// comes from, where the kinks are, and what binds.
#[derive(Parser)]
#[command(
    name = "rackmath",
    version,
    max_term_width = 110,
    after_help = "Examples:\n  rackmath                                            the headline picture\n  rackmath step llama-3.1-70b --on 8xh200 --batch 64  one decode step\n  rackmath curve qwen3-235b-a22b --over context       time and cost against context\n  rackmath explain balance ./config.json --on h100    an equation with your numbers in it\n  rackmath chips h100 h200 b200                       chips side by side"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub common: Common,
}

/// Options of every command.
#[derive(ClapArgs, Clone)]
pub struct Common {
    /// Print the answer as JSON (its schema: rackmath schema)
    #[arg(long, global = true)]
    pub json: bool,
    /// Use colours: auto respects the terminal and NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Columns to use, instead of the terminal's
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(40..))]
    pub width: Option<u16>,
    /// Folder with your own models/, chips/, systems/ and laws/ files
    #[arg(long, global = true, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
}

/// When to use colours.
#[derive(Clone, Copy, ValueEnum)]
pub enum Color {
    /// When writing to a terminal and NO_COLOR is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Subcommand)]
pub enum Command {
    /// How long one step takes, what binds it, what it costs, and whether it fits
    #[command(
        after_help = "Example: rackmath step deepseek-v3 --on gb200-nvl72 --batch 4096 --context 8k --kv-cache-dtype fp8"
    )]
    Step(StepArgs),
    /// Time and cost along an axis: batch, context, pass length, chips or precision
    #[command(
        after_help = "Example: rackmath curve llama-3.1-405b --on hgx-b200 --over batch --svg batch.svg --csv batch.csv"
    )]
    Curve(CurveArgs),
    /// A number opened into its equation, with values and sources
    #[command(
        after_help = "Example: rackmath explain cost gpt-oss-120b --on h100 --batch 32\nTopics: step weights compute kv cost balance context ridge sparsity drain rate all"
    )]
    Explain(ExplainArgs),
    /// Models: list all, show one in full, compare several
    #[command(after_help = "Example: rackmath models deepseek-v3 --context 128k --kv-cache-dtype fp8")]
    Models(ModelsArgs),
    /// Chips: list all, show one with every source, compare several
    #[command(after_help = "Example: rackmath chips h100 mi300x tpu-v7")]
    Chips(NamesArgs),
    /// Machines: nodes, racks and pods with their networks
    #[command(after_help = "Example: rackmath systems gb200-nvl72")]
    Systems(NamesArgs),
    /// The lecture claim by claim: its formula, its number, ours, and why they differ
    #[command(after_help = "Example: rackmath lecture D9")]
    Lecture {
        /// One claim, such as D9; all when left out
        claim: Option<String>,
    },
    /// What each chip holds, and whether it fits
    #[command(after_help = "Example: rackmath memory deepseek-v3 --on hgx-h200 --tp 8 --batch 64 --context 32k")]
    Memory(LayoutArgs),
    /// One layout in full: stages, experts, traffic, and its flags in four tools
    #[command(
        after_help = "Examples:\n  rackmath layout deepseek-v3 --on gb200-nvl72 --dp 64 --ep 64\n  rackmath layout qwen3-235b-a22b --on hgx-h200 --flags \"-tp 8 --enable-expert-parallel\" --tool vllm\nExample: rackmath layout llama-3.1-405b --on hgx-h100 --tp 8 --pp 2 --chips 16 --svg layout.svg"
    )]
    Layout(LayoutArgs),
    /// Where the traffic of a decode step goes, by network
    #[command(
        after_help = "Example: rackmath traffic deepseek-v3 --on hgx-h800 --chips 128 --dp 128 --ep 128 --batch 16384"
    )]
    Traffic(LayoutArgs),
    /// A pipeline slot by slot: training schedules with bubble and memory, or inference
    #[command(
        after_help = "Examples:\n  rackmath pipeline --schedule 1f1b --stages 4 --micro-batches 8 --svg grid.svg\n  rackmath pipeline --schedule inference --stages 4 --micro-batches 2\nExample: rackmath pipeline --schedule all --stages 16 --micro-batches 64 --input-grad 1s --weight-grad 1s"
    )]
    Pipeline(PipelineArgs),
    /// Scale-up domains compared: latency floor, memory, largest expert layer
    #[command(after_help = "Example: rackmath racks deepseek-v3 hgx-h100 gb200-nvl72 tpu-v7-9216")]
    Racks(RacksArgs),
    /// Trains that leave on time: waits, time to first token and fill of fixed steps
    #[command(after_help = "Example: rackmath station --interval 20ms --seats 2000 --rate 150 --tokens 500")]
    Station(StationArgs),
    /// What a server delivers: speed, waiting, throughput, cost, what binds, and what would help
    #[command(
        after_help = "Examples:\n  rackmath estimate llama-3.1-70b --on 8xh200 --tp 8 --concurrency 64 --isl 1k --osl 1k --engine vllm\n  rackmath estimate deepseek-v3 --on gb200-nvl72 --flags \"--tp_size 32 --ep_size 32 --enable_attention_dp\" --engine trtllm\nExample: rackmath estimate gpt-oss-120b --on 8xh200 --tp 2 --sweep --svg curve.svg --csv curve.csv"
    )]
    Estimate(Box<EstimateArgs>),
    /// Published measurements against our predictions, row by row and source by source
    #[command(
        after_help = "Examples:\n  rackmath validate\n  rackmath validate llamacpp --rows\n  rackmath validate --folder measurements --leave-out chip --svg charts"
    )]
    Validate(ValidateArgs),
    /// What a provider charges: lists by date, tiers, caches, modes and hours, and the bill of a workload
    #[command(
        after_help = "Examples:\n  rackmath price opus-4.8 --turns 20 --gap 2min             a conversation, by cache offer\n  rackmath price opus-4.8 gpt-5.6 gemini-3.1-pro -i 100k --uses 10  a prefix that comes back\n  rackmath price deepseek-flash -i 1M --at 2026-10-27T02:30  at peak hours\n  rackmath price opus-4.8 --trace requests.jsonl            a trace in Mooncake's format\nExample: rackmath price ./mine.toml --against opus-4.8"
    )]
    Price(Box<PriceArgs>),
    /// What a token costs to serve: dollars, joules, margins, and which assumption matters most
    #[command(
        after_help = "Examples:\n  rackmath cost deepseek-v3 --on hgx-h800 --prefill-tok-s 9212.5 --decode-tok-s 1850 -u 1 --hit 0 --sheet deepseek-r1-api\n  rackmath cost --owner --capex $48.6k --years 4 --capital 10%"
    )]
    Cost(Box<CostArgs>),
    /// From traffic to replicas, chips, racks, megawatts and dollars a day
    #[command(
        after_help = "Examples:\n  rackmath fleet --requests-s 1000 --prompt 4k --answer 500\n  rackmath fleet --tokens-per-month 1e15 --peak 1.5"
    )]
    Fleet(Box<FleetArgs>),
    /// Where to keep a prefix and for how long: hold or recompute, by memory tier
    #[command(
        after_help = "Examples:\n  rackmath cache deepseek-v3 --on hgx-h800 --kv bf16\n  rackmath cache --trace conversation_trace.jsonl --figure hits --svg hits.svg\n  rackmath cache --gaps 30s:0.2,10min:0.15,1d:0.05"
    )]
    Cache(Box<CacheArgs>),
    /// What a fast mode's price says about the batch, and what else could explain it
    #[command(after_help = "Examples:\n  rackmath fastmode opus-4.6\n  rackmath fastmode --price 6 --speed 2.5")]
    Fastmode(FastmodeArgs),
    /// Scaling laws: loss of a size and its data, and the best of both for a compute or a loss
    #[command(
        after_help = "Examples:\n  rackmath scaling --flop 1e25                          the best model under every law\n  rackmath scaling -n 8B -d 15T --law besiroglu-2024    how far from compute-optimal\nExample: rackmath scaling --loss 2.0 --on h100 --figure iso-loss --svg loss.svg"
    )]
    Scaling(lifecycle::ScalingArgs),
    /// Pre-training, RL and serving in one budget: the rule of thumb and the exact optimum
    #[command(
        after_help = "Examples:\n  rackmath lifecycle --served 200T                      the lecture's budget under every law\n  rackmath lifecycle -n 30B --rate 1M --model-share 100% --lifetime 180d --survives 50% --on h100\nExample: rackmath lifecycle --rl 100M,16,8k,0.5 --chip-mtbf 50677h --sparsity 16 --svg cost.svg"
    )]
    Lifecycle(lifecycle::LifecycleArgs),
    /// Progress of a training run under failures: checkpoint interval, effective MFU, days, dollars
    #[command(
        after_help = "Example: rackmath goodput --chips 100000 --stall 30s --restart 10min --price '$2/h' --figure chips"
    )]
    Goodput(lifecycle::GoodputArgs),
    /// What a published run must have been: any of its numbers from the others
    #[command(
        after_help = "Examples:\n  rackmath forensics deepseek-v3 --price 2\nExample: rackmath forensics --on h100 --chips 16384 -n 405B -d 15.6T --mfu 38%..43%"
    )]
    Forensics(lifecycle::ForensicsArgs),
    /// Reversible networks measured: memory, arithmetic, gradients, drift, and ciphers beside them
    #[command(after_help = "Example: rackmath reversible llama-3.1-405b --time --figure drift")]
    Reversible(lifecycle::ReversibleArgs),
    /// A training run: step time by its parts, memory by stage, days and dollars, or the best layout
    #[command(
        after_help = "Examples:\n  rackmath train llama-3.1-70b --on hgx-h100 --chips 512 --tp 4 --pp 4 --batch 512 --tokens 15T\n  rackmath train deepseek-v3 --on gb200-nvl72 --chips 2304 --batch 9216 --search"
    )]
    Train(TrainArgs),
    /// One run's FLOP per second in every convention in use
    #[command(after_help = "Example: rackmath mfu llama-3.1-405b --on h100-sxm --tflops 400 --convention full")]
    Mfu(MfuArgs),
    /// What a price sheet says about the model behind it, with error bars
    #[command(
        after_help = "Examples:\n  rackmath deduce --blind deepseek-v3.1\n  rackmath deduce --vendor anthropic --input 5$/Mtok --output 25$/Mtok --cached 0.5$/Mtok\n  rackmath deduce gpt-5.5 --tokens-per-s 43 --figure ridge --svg ridge.svg"
    )]
    Deduce(Box<DeduceArgs>),
    /// What to deploy for a model, traffic and latency targets: the best plan, the frontier, what each limit costs
    #[command(
        after_help = "Examples:\n  rackmath plan qwen3-32b --on 32xh200 --isl 4k --osl 500 --tpot 30ms --ttft 1s --rate 20\n  rackmath plan deepseek-v3 --on 64xh200 --engine sglang --user 40 --objective throughput --svg frontier.svg"
    )]
    Plan(Box<PlanFileArgs>),
    /// A saved plan with something changed: before, the same deployment kept, and the new best
    #[command(
        after_help = "Examples:\n  rackmath plan qwen3-32b --on 32xh200 --tpot 30ms --rate 20 --save plan.json\n  rackmath whatif plan.json --set tpot=20ms --set on=64xb200"
    )]
    Whatif(WhatifArgs),
    /// Systems, models or engines side by side for one workload: best plans, ratios, who wins, flip prices
    #[command(
        after_help = "Examples:\n  rackmath compare llama-3.1-70b --on 8xh100,8xh200,8xb200 --isl 4k --osl 1k --tpot 30ms\n  rackmath compare --models qwen3-32b,gpt-oss-120b --on 8xh200 --svg frontiers.svg\nExample: rackmath compare deepseek-v3 --on 16xh200 --engines vllm,sglang"
    )]
    Compare(Box<SidesArgs>),
    /// What users and chips can have at once: frontiers of systems, models or engines, one over the other
    #[command(
        after_help = "Examples:\n  rackmath frontier llama-3.1-70b --on 8xh100,8xh200,8xb200 --isl 4k --osl 1k --svg frontier.svg\n  rackmath frontier gpt-oss-120b --on 8xh200,8xmi355x --figure dollar --csv frontier.csv"
    )]
    Frontier(Box<SidesArgs>),
    /// The best hardware of the catalogue for a workload, and where the answer changes: speed, traffic, length, price
    #[command(
        after_help = "Examples:\n  rackmath hardware llama-3.1-70b --chips 8 --isl 4k --osl 1k --tpot 30ms\n  rackmath hardware gpt-oss-120b --among h100,h200,mi300x,b200 --rate 20 --basis rental --svg hardware.svg"
    )]
    Hardware(Box<HardwareArgs>),
    /// How sure a plan is and what comes next: uncertain inputs, bad ends of the intervals, the next bottleneck
    #[command(
        after_help = "Examples:\n  rackmath outlook qwen3-32b --on 32xh200 --isl 4k --osl 500 --tpot 30ms --rate 20\n  rackmath outlook --from plan.json --vary 50%"
    )]
    Outlook(Box<OutlookArgs>),
    /// Flashcards, and problems made at random with worked answers
    #[command(
        after_help = "Examples:\n  rackmath practice --topic batch\n  rackmath practice --seed 7 --answers 250,-,12\n  rackmath practice --cards"
    )]
    Practice(PracticeArgs),
    /// What a trace of requests says: lengths, rate, burstiness, shared prefixes
    #[command(after_help = "Example: rackmath trace conversation_trace.jsonl --keep 5min")]
    Trace(TraceArgs),
    /// Join the shards of a plan into the answer of the whole
    #[command(
        after_help = "Example:\n  for i in 1 2 3 4; do rackmath plan deepseek-v3 --on 64xh200 --shard $i/4 -o part-$i.json; done\n  rackmath merge part-*.json"
    )]
    Merge(MergeArgs),
    /// JSON Schema of a question's request and answer
    #[command(after_help = "Example: rackmath schema step")]
    Schema {
        /// Which question
        #[arg(value_parser = questions())]
        question: Question,
    },
    /// Any question as JSON: a request in, the answer out, byte for byte as the server gives it
    #[command(
        after_help = "Examples:\n  echo '{\"batch\": 64}' | rackmath ask step\n  rackmath ask plan request.json\n\nA request may bring files by name: {\"files\": {\"config.json\": {...}}, \"setting\": {\"model\": \"config.json\"}}"
    )]
    Ask {
        /// Which question
        #[arg(value_parser = questions())]
        question: Question,
        /// File with the request, or - for standard input
        #[arg(default_value = "-", value_name = "FILE")]
        request: PathBuf,
    },
    /// The blackboard in a browser: every chapter live, the tools, and the questions over HTTP
    #[command(after_help = "Examples:\n  rackmath web\n  rackmath web --port 9000 --open")]
    Web(WebArgs),
    /// Shell completions
    #[command(after_help = "Example: rackmath completions bash > ~/.local/share/bash-completion/completions/rackmath")]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// Which problems.
#[derive(ClapArgs, Clone)]
pub struct PracticeArgs {
    /// batch racks pipeline lifecycle prices reversible [default: all]
    #[arg(long, value_name = "TOPIC")]
    pub topic: Option<String>,
    /// Names the set of problems
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Problems
    #[arg(long, short = 'n', default_value_t = 6, value_name = "N")]
    pub number: usize,
    /// Answers to check, in order, - for one left open
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_name = "NUMBERS")]
    pub answers: Vec<String>,
    /// Show the working
    #[arg(long)]
    pub worked: bool,
    /// The flashcards instead
    #[arg(long)]
    pub cards: bool,
}

/// Where the server listens.
#[derive(ClapArgs, Clone)]
pub struct WebArgs {
    /// Address to listen on; another than the loopback lets other machines in
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub host: std::net::IpAddr,
    /// Port to listen on; 0 takes any that is free
    #[arg(long, default_value_t = 7225, value_name = "PORT")]
    pub port: u16,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// Do not log requests
    #[arg(long)]
    pub quiet: bool,
}

/// The questions by name.
fn questions() -> impl TypedValueParser<Value = Question> {
    PossibleValuesParser::new(Question::ALL.iter().map(|q| q.name())).try_map(|name| Question::find(&name))
}

/// Which model on which machine.
#[derive(ClapArgs, Clone)]
pub struct SettingArgs {
    /// Catalogue name, Hugging Face id, or path of a config.json, a folder holding one, or a model .toml
    #[arg(default_value = "deepseek-v3")]
    pub model: String,
    /// System, chip, so many chips such as 8xh200, or path of a chip or system .toml
    #[arg(long, visible_aliases = ["system", "hardware"], default_value = "gb200-nvl72", value_name = "MACHINE")]
    pub on: String,
    /// Number of chips, instead of all of the machine's
    #[arg(long, visible_aliases = ["gpus", "num-gpus"], value_name = "N")]
    pub chips: Option<u64>,
    /// Weight format: bf16 fp8 mxfp8 nvfp4 mxfp4 int4 ... [default: the checkpoint's]
    #[arg(long, short = 'q', visible_aliases = ["dtype", "weights"], value_name = "FORMAT")]
    pub quantization: Option<String>,
    /// KV-cache format [default: the model's 16-bit type]
    #[arg(long, visible_alias = "kv", value_name = "FORMAT")]
    pub kv_cache_dtype: Option<String>,
    /// Arithmetic to compute in: bf16 fp8 fp4 int8 ... [default: the best the chip has for the weights]
    #[arg(long, visible_alias = "math", value_name = "MATH")]
    pub compute_dtype: Option<String>,
    /// strict, or lecture: no attention arithmetic, every weight read in every step
    #[arg(long, default_value = "strict", value_name = "HOW")]
    pub counting: String,
    /// max, sum, kv+max (scaling book), or a share from 0 to 1
    #[arg(long, default_value = "max", value_name = "HOW")]
    pub overlap: String,
    /// Price of a chip, such as $2.10/h
    #[arg(long, value_name = "PRICE")]
    pub price: Option<DollarRate>,
    /// Whose price: owner-hyperscaler owner-neocloud rental on-demand
    #[arg(long, value_name = "BASIS")]
    pub basis: Option<String>,
}

/// A batch and a context.
#[derive(ClapArgs, Clone)]
pub struct LoadArgs {
    /// Sequences in the batch [default: where compute meets memory]
    #[arg(long, short = 'b', visible_aliases = ["max-num-seqs", "batch-size"], value_name = "N")]
    pub batch: Option<Tokens>,
    /// Tokens of context of each sequence: 4096, 128k, 128Ki
    #[arg(long, short = 'c', visible_aliases = ["isl", "max-model-len", "context-length"], default_value = "4096", value_name = "TOKENS")]
    pub context: Tokens,
}

#[derive(ClapArgs, Clone)]
pub struct StepArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    /// Tokens of each sequence in this pass: 1 decodes, a prompt's length prefills
    #[arg(long, short = 'p', visible_alias = "chunk", default_value = "1", value_name = "TOKENS")]
    pub pass: Tokens,
}

#[derive(ClapArgs, Clone)]
pub struct CurveArgs {
    #[command(flatten)]
    pub step: StepArgs,
    /// What to sweep
    #[arg(long, short = 'o', default_value = "batch", value_parser = over, value_name = "AXIS")]
    pub over: Over,
    /// Where to start
    #[arg(long, value_name = "X")]
    pub from: Option<Tokens>,
    /// Where to end
    #[arg(long, value_name = "X")]
    pub to: Option<Tokens>,
    /// How many points
    #[arg(long, default_value = "200", value_name = "N")]
    pub points: usize,
    /// Which picture to save
    #[arg(long, default_value = "time", value_name = "WHICH")]
    pub figure: Which,
    /// Save the picture as SVG (- writes to standard output)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Save the picture as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Save the points as CSV (- writes to standard output)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Which picture of a sweep.
#[derive(Clone, Copy, ValueEnum)]
pub enum Which {
    /// Step time.
    Time,
    /// Cost per token.
    Cost,
}

#[derive(ClapArgs, Clone)]
pub struct ExplainArgs {
    /// step, weights, compute, kv, cost, balance, context, ridge, sparsity, drain, rate or all
    #[arg(default_value = "step")]
    pub what: String,
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(ClapArgs, Clone)]
pub struct ModelsArgs {
    /// Names or paths; all when left out
    pub names: Vec<String>,
    /// Context the cache is shown at
    #[arg(long, short = 'c', visible_aliases = ["isl", "max-model-len"], default_value = "8192", value_name = "TOKENS")]
    pub context: Tokens,
    /// KV-cache format [default: the model's 16-bit type]
    #[arg(long, visible_alias = "kv", value_name = "FORMAT")]
    pub kv_cache_dtype: Option<String>,
}

#[derive(ClapArgs, Clone)]
pub struct LayoutArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    /// Sequences in flight [default: what fits, at most 1,024 per group]
    #[arg(long, short = 'b', visible_aliases = ["max-num-seqs", "batch-size"], value_name = "N")]
    pub batch: Option<Tokens>,
    /// Tokens of context of each sequence
    #[arg(long, short = 'c', visible_aliases = ["isl", "max-model-len", "context-length"], default_value = "4096", value_name = "TOKENS")]
    pub context: Tokens,
    #[command(flatten)]
    pub degrees: DegreesArgs,
    /// Read the layout from a command line of another tool
    #[arg(long, value_name = "LINE", allow_hyphen_values = true, conflicts_with_all = ["tp", "pp", "dp", "cp", "ep", "etp", "redundant_experts", "dcp"])]
    pub flags: Option<String>,
    /// Whose command line: vllm, sglang, trtllm, megatron
    #[arg(long, value_name = "TOOL", default_value = "vllm")]
    pub tool: String,
    /// Most tokens in one pass
    #[arg(long, visible_alias = "max-num-tokens", default_value = "8192", value_name = "N")]
    pub max_num_batched_tokens: Tokens,
    /// Share of a chip's memory the engine may use
    #[arg(long, visible_aliases = ["mem-fraction-static", "kv-cache-free-gpu-memory-fraction"], default_value = "0.9", value_name = "SHARE")]
    pub gpu_memory_utilization: Fraction,
    /// How tokens choose experts: uniform, power:1.2, or path of a file with one count per expert
    #[arg(long, default_value = "uniform", value_name = "HOW")]
    pub routing: String,
    /// Save the picture as SVG (- writes to standard output)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Save the picture as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

#[derive(ClapArgs, Clone)]
pub struct PipelineArgs {
    /// gpipe, 1f1b, interleaved, zb-h1, zb-h2, zbv, v-half, v-min, dualpipe, dualpipev, inference, or all to compare
    #[arg(long, short = 's', default_value = "gpipe", value_name = "NAME")]
    pub schedule: String,
    /// Pipeline stages
    #[arg(long, visible_aliases = ["pp", "pipeline-parallel-size"], default_value = "4", value_name = "N")]
    pub stages: usize,
    /// Micro-batches
    #[arg(long, short = 'm', default_value = "4", value_name = "N")]
    pub micro_batches: usize,
    /// Chunks of the model per stage (interleaved)
    #[arg(long, visible_alias = "vpp", default_value = "2", value_name = "N")]
    pub virtual_stages: usize,
    /// Forward time of a stage and micro-batch
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub forward: Seconds,
    /// Backward time to the input
    #[arg(long, default_value = "500ms", value_name = "TIME")]
    pub input_grad: Seconds,
    /// Backward time to the weights
    #[arg(long, default_value = "500ms", value_name = "TIME")]
    pub weight_grad: Seconds,
    /// Time of a hop between stages
    #[arg(long, default_value = "0s", value_name = "TIME")]
    pub hop: Seconds,
    /// How much longer each stage takes, one factor per stage: 1,1,1,1.2
    #[arg(long, value_delimiter = ',', value_name = "X")]
    pub stage_factors: Vec<f64>,
    /// Activation memory of a stage and micro-batch
    #[arg(long, default_value = "0 B", value_name = "BYTES")]
    pub activation: Bytes,
    /// Hidden share of an overlapped forward and backward pair (dualpipe)
    #[arg(long, default_value = "0", value_name = "SHARE")]
    pub hidden: Fraction,
    /// Save the grid as SVG (- writes to standard output)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Save the grid as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

#[derive(ClapArgs, Clone)]
pub struct RacksArgs {
    /// The model
    #[arg(default_value = "lecture-frontier")]
    pub model: String,
    /// Machines; a tour from Hopper to pods when left out
    pub systems: Vec<String>,
    /// Weight format [default: the checkpoint's]
    #[arg(long, short = 'q', visible_aliases = ["dtype", "weights"], value_name = "FORMAT")]
    pub quantization: Option<String>,
}

#[derive(ClapArgs, Clone)]
pub struct StationArgs {
    /// Time of one step
    #[arg(long, default_value = "20ms", value_name = "TIME")]
    pub interval: Seconds,
    /// Sequences a step can hold
    #[arg(long, visible_alias = "max-num-seqs", default_value = "2000", value_name = "N")]
    pub seats: u64,
    /// Requests per second
    #[arg(long, visible_alias = "request-rate", default_value = "150", value_name = "R")]
    pub rate: f64,
    /// Output tokens of each request
    #[arg(long, visible_alias = "osl", default_value = "500", value_name = "TOKENS")]
    pub tokens: u64,
    /// Requests to simulate
    #[arg(long, visible_alias = "num-prompts", default_value = "100000", value_name = "N")]
    pub requests: u64,
    /// Arrive at equal gaps instead of at random
    #[arg(long)]
    pub even: bool,
    /// Seed of random arrivals
    #[arg(long, default_value = "1", value_name = "N")]
    pub seed: u64,
}

#[derive(ClapArgs, Clone)]
pub struct NamesArgs {
    /// Names; all when left out
    pub names: Vec<String>,
}

fn over(word: &str) -> Result<Over, String> {
    Over::ALL.into_iter().find(|o| o.name() == word).ok_or_else(|| {
        let all: Vec<&str> = Over::ALL.iter().map(|o| o.name()).collect();
        let near = rackmath_spec::nearest(word, all.iter().copied());
        let near = near.first().map_or(String::new(), |n| format!("; did you mean {n}?"));
        format!("expected {}{near}", all.join(", "))
    })
}
