//! What can be typed about scaling laws, lifecycles, failures, published runs and reversible networks.

use clap::{Args as ClapArgs, ValueEnum};
use rackmath_units::{DollarRate, Flop, Fraction, Params, Seconds, TokenRate, Tokens};
use std::path::PathBuf;

/// Where pictures go.
#[derive(ClapArgs, Clone)]
pub struct FigureArgs {
    /// Save the picture as SVG (- writes to standard output)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Save the picture as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Save the picture's points as CSV (- writes to standard output)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Which laws, for a model of which shape.
#[derive(ClapArgs, Clone)]
pub struct LawArgs {
    /// Scaling law, or all to compare
    #[arg(long, default_value = "all", value_name = "LAW")]
    pub law: String,
    /// Total over active parameters; 1 is dense
    #[arg(long, default_value = "1", value_name = "X")]
    pub sparsity: f64,
    /// How many pieces an expert is cut into
    #[arg(long, default_value = "1", value_name = "G")]
    pub granularity: f64,
    /// Whose experts extend a dense law: s-base, rl-r, hash
    #[arg(long, default_value = "s-base", value_name = "ROUTER")]
    pub router: String,
    /// Fresh tokens available; data repeats beyond them
    #[arg(long, value_name = "TOKENS")]
    pub unique_tokens: Option<Tokens>,
    /// What parameters trained in a low precision are worth, of 16-bit ones
    #[arg(long, default_value = "1", value_name = "SHARE")]
    pub precision_worth: f64,
}

/// The machine, for dollars.
#[derive(ClapArgs, Clone)]
pub struct MachineArgs {
    /// Chip whose time is paid for
    #[arg(long, visible_alias = "chip", value_name = "CHIP")]
    pub on: Option<String>,
    /// Price of a chip, such as $2.10/h [default: the catalogue's]
    #[arg(long, value_name = "PRICE")]
    pub price: Option<DollarRate>,
    /// Share of the dense peak in use while training
    #[arg(long, default_value = "40%", value_name = "SHARE")]
    pub train_mfu: Fraction,
    /// Format trained in
    #[arg(long, default_value = "bf16", value_name = "FORMAT")]
    pub train_format: String,
}

/// Another machine for serving.
#[derive(ClapArgs, Clone)]
pub struct ServeArgs {
    /// Another chip for serving and RL
    #[arg(id = "serve_on", long = "serve-on", value_name = "CHIP", requires = "on")]
    pub chip: Option<String>,
    /// Price of a serving chip [default: the catalogue's, or --price on the same chip]
    #[arg(id = "serve_price", long = "serve-price", value_name = "PRICE", requires = "on")]
    pub price: Option<DollarRate>,
    /// Format served in
    #[arg(id = "serve_format", long = "serve-format", default_value = "bf16", value_name = "FORMAT")]
    pub format: String,
}

#[derive(ClapArgs, Clone)]
pub struct ScalingArgs {
    /// Training compute: the best model for it [default: Chinchilla's 5.76e23]
    #[arg(long, visible_aliases = ["compute", "flops"], value_name = "FLOP")]
    pub flop: Option<Flop>,
    /// Loss in nats: the least compute that reaches it
    #[arg(long, value_name = "NATS")]
    pub loss: Option<f64>,
    /// Active parameters: with --tokens a point, alone the tokens that suit them
    #[arg(long, short = 'n', value_name = "N")]
    pub params: Option<Params>,
    /// Training tokens
    #[arg(long, short = 'd', value_name = "TOKENS")]
    pub tokens: Option<Tokens>,
    #[command(flatten)]
    pub law: LawArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Which picture
    #[arg(long, default_value = "iso-flop", value_name = "WHICH")]
    pub figure: ScalingFigure,
    #[command(flatten)]
    pub save: FigureArgs,
}

/// Pictures of a law.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScalingFigure {
    /// Loss against size at equal compute.
    IsoFlop,
    /// Tokens against size at equal loss.
    IsoLoss,
}

#[derive(ClapArgs, Clone)]
pub struct LifecycleArgs {
    /// Active parameters
    #[arg(long, short = 'n', default_value = "100B", value_name = "N")]
    pub params: Params,
    /// Tokens per second of a family of models
    #[arg(long, default_value = "500M", value_name = "RATE")]
    pub rate: TokenRate,
    /// This model's share of them
    #[arg(long, default_value = "10%", value_name = "SHARE")]
    pub model_share: Fraction,
    /// How long it is served
    #[arg(long, default_value = "60d", value_name = "TIME")]
    pub lifetime: Seconds,
    /// Tokens served, instead of rate and lifetime
    #[arg(long, value_name = "TOKENS")]
    pub served: Option<Tokens>,
    /// Probability that the model is ever served
    #[arg(long, visible_alias = "ships", default_value = "100%", value_name = "SHARE")]
    pub survives: Fraction,
    /// FLOP per parameter and RL token, 2 to 6
    #[arg(long, default_value = "3", value_name = "F")]
    pub rl_factor: f64,
    /// RL in detail: prompts, samples per prompt, tokens per sample, pass rate, such as 100M,16,8k,0.5
    #[arg(long, value_name = "P,G,T,R")]
    pub rl: Option<String>,
    /// Times an RL sample is trained on (with --rl)
    #[arg(long, default_value = "1", value_name = "N")]
    pub rl_epochs: f64,
    /// Further forward passes per RL sample, such as a reference model (with --rl)
    #[arg(long, default_value = "0", value_name = "N")]
    pub rl_scoring: f64,
    /// Decode MFU over training MFU
    #[arg(long, default_value = "0.3333333333333333", value_name = "X")]
    pub eta: f64,
    /// thirds, quarters, or shares of pre-training, RL and serving such as 40/20/40
    #[arg(long, default_value = "thirds", value_name = "SPLIT")]
    pub split: String,
    /// Loss to reach, instead of the rule's
    #[arg(long, value_name = "NATS")]
    pub loss: Option<f64>,
    /// Mean time between failures of one chip while training
    #[arg(long, value_name = "TIME")]
    pub chip_mtbf: Option<Seconds>,
    /// Chips that train together (with --chip-mtbf)
    #[arg(long, default_value = "16384", value_name = "N")]
    pub chips: f64,
    /// Pause for a checkpoint (with --chip-mtbf)
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub stall: Seconds,
    /// From a failure to work again (with --chip-mtbf)
    #[arg(long, default_value = "480s", value_name = "TIME")]
    pub restart: Seconds,
    #[command(flatten)]
    pub law: LawArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub serve: ServeArgs,
    #[command(flatten)]
    pub save: FigureArgs,
}

#[derive(ClapArgs, Clone)]
pub struct GoodputArgs {
    /// Published run whose failures, chips and MFU are taken
    #[arg(default_value = "llama-3-405b")]
    pub run: String,
    /// Chips that train together
    #[arg(long, visible_alias = "gpus", value_name = "N")]
    pub chips: Option<f64>,
    /// Mean time between failures of one chip
    #[arg(long, value_name = "TIME")]
    pub chip_mtbf: Option<Seconds>,
    /// Mean time between failures of the job
    #[arg(long, value_name = "TIME", conflicts_with = "chip_mtbf")]
    pub job_mtbf: Option<Seconds>,
    /// Pause for a checkpoint
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub stall: Seconds,
    /// From a failure to work again
    #[arg(long, default_value = "480s", value_name = "TIME")]
    pub restart: Seconds,
    /// Work between checkpoints [default: the best]
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Seconds>,
    /// Time the run would take if nothing failed
    #[arg(long, default_value = "54d", value_name = "TIME")]
    pub work: Seconds,
    /// Active parameters: with --tokens, the work is computed
    #[arg(long, short = 'n', value_name = "N", requires = "tokens", conflicts_with = "work")]
    pub params: Option<Params>,
    /// Training tokens
    #[arg(long, short = 'd', value_name = "TOKENS", requires = "params")]
    pub tokens: Option<Tokens>,
    /// Chip, for its dense peak [default: the run's]
    #[arg(long, visible_alias = "chip", value_name = "CHIP")]
    pub on: Option<String>,
    /// MFU while it works
    #[arg(long, value_name = "SHARE")]
    pub mfu: Option<Fraction>,
    /// Price of a chip, such as $2.10/h
    #[arg(long, value_name = "PRICE")]
    pub price: Option<DollarRate>,
    /// Seed of the simulated failures
    #[arg(long, default_value = "1", value_name = "N")]
    pub seed: u64,
    /// Which picture
    #[arg(long, default_value = "interval", value_name = "WHICH")]
    pub figure: GoodputFigure,
    #[command(flatten)]
    pub save: FigureArgs,
}

/// Pictures of progress.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GoodputFigure {
    /// Against the checkpoint interval.
    Interval,
    /// Against the number of chips.
    Chips,
}

#[derive(ClapArgs, Clone)]
pub struct ForensicsArgs {
    /// Published run to start from, such as deepseek-v3
    pub run: Option<String>,
    /// Chip, for its dense peak
    #[arg(long, visible_alias = "chip", value_name = "CHIP")]
    pub on: Option<String>,
    /// Format it computed in [default: bf16]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Chip-hours: 2.664M (stands for what rounds to it) or 2.6M..2.7M
    #[arg(long, visible_alias = "gpu-hours", value_name = "H")]
    pub chip_hours: Option<String>,
    /// Chips
    #[arg(long, visible_alias = "gpus", value_name = "N")]
    pub chips: Option<String>,
    /// Days from start to end
    #[arg(long, value_name = "D")]
    pub days: Option<String>,
    /// Active parameters
    #[arg(long, short = 'n', value_name = "N")]
    pub params: Option<String>,
    /// Training tokens
    #[arg(long, short = 'd', value_name = "TOKENS")]
    pub tokens: Option<String>,
    /// Model arithmetic
    #[arg(long, visible_alias = "flops", value_name = "FLOP")]
    pub flop: Option<String>,
    /// Share of the dense peak in use: 0.41 or 38%..43%
    #[arg(long, value_name = "SHARE")]
    pub mfu: Option<String>,
    /// Dense peak of a chip, instead of the catalogue's
    #[arg(long, value_name = "FLOP/s")]
    pub peak: Option<String>,
    /// Price of a chip-hour: 2 or 2..3 dollars
    #[arg(long, value_name = "USD")]
    pub price: Option<String>,
    /// Cost of the run in dollars: 5.5M
    #[arg(long, value_name = "USD")]
    pub usd: Option<String>,
    /// FLOP per parameter and token
    #[arg(long, default_value = "6", value_name = "K")]
    pub flop_per_param: f64,
}

#[derive(ClapArgs, Clone)]
pub struct ReversibleArgs {
    /// Model to apply the formulas to
    #[arg(default_value = "llama-3.1-70b")]
    pub model: String,
    /// Tokens in flight per chip while training it
    #[arg(long, default_value = "8192", value_name = "TOKENS")]
    pub tokens: Tokens,
    /// Deepest network to measure
    #[arg(long, default_value = "32", value_name = "BLOCKS")]
    pub depth: usize,
    /// Training steps to run
    #[arg(long, default_value = "60", value_name = "N")]
    pub steps: usize,
    /// Seed of weights and batches
    #[arg(long, default_value = "1", value_name = "N")]
    pub seed: u64,
    /// Time a step of each kind on this machine as well
    #[arg(long)]
    pub time: bool,
    /// Which picture
    #[arg(long, default_value = "memory", value_name = "WHICH")]
    pub figure: ReversibleFigure,
    #[command(flatten)]
    pub save: FigureArgs,
}

/// Pictures of reversible networks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReversibleFigure {
    /// Peak memory against depth.
    Memory,
    /// Error of what is rebuilt against depth.
    Drift,
    /// How far a flipped bit spreads.
    Avalanche,
}
