//! What can be typed about training.

use clap::Args as ClapArgs;
use rackmath_units::{ByteRate, DollarRate, Fraction, Seconds, Tokens};

#[derive(ClapArgs, Clone)]
pub struct TrainArgs {
    /// The model: a name, a Hugging Face id, or a config.json
    #[arg(default_value = "llama-3.1-70b")]
    pub model: String,
    /// The machine: a system, a chip, or so many chips such as 512xh100
    #[arg(long, visible_aliases = ["hw", "system"], default_value = "hgx-h100", value_name = "MACHINE")]
    pub on: String,
    /// Number of chips, instead of the machine's
    #[arg(long, visible_aliases = ["gpus", "num-gpus"], value_name = "N")]
    pub chips: Option<u64>,
    /// Training program: megatron-core composer-fsdp torchtitan maxtext megatron-2022 ... [default: one that suits the chip]
    #[arg(long, value_name = "PROGRAM")]
    pub stack: Option<String>,
    /// Format of the products: bf16 fp8 mxfp8 nvfp4
    #[arg(long, visible_alias = "dtype", default_value = "bf16", value_name = "FORMAT")]
    pub format: String,
    /// Tokens of a sequence
    #[arg(long, visible_alias = "seq-length", default_value = "4096", value_name = "TOKENS")]
    pub sequence: Tokens,
    /// Sequences of a step
    #[arg(long, visible_alias = "global-batch-size", default_value = "256", value_name = "N")]
    pub batch: u64,
    /// Tensor parallel
    #[arg(long, visible_alias = "tensor-model-parallel-size", default_value = "1", value_name = "N")]
    pub tp: u64,
    /// Context parallel
    #[arg(long, visible_alias = "context-parallel-size", default_value = "1", value_name = "N")]
    pub cp: u64,
    /// Pipeline stages
    #[arg(long, visible_alias = "pipeline-model-parallel-size", default_value = "1", value_name = "N")]
    pub pp: u64,
    /// Chunks of layers per stage
    #[arg(long, visible_alias = "vpp", default_value = "1", value_name = "N")]
    pub virtual_stages: u64,
    /// Expert parallel
    #[arg(long, visible_alias = "expert-model-parallel-size", default_value = "1", value_name = "N")]
    pub ep: u64,
    /// Shards of an expert
    #[arg(long, visible_alias = "expert-tensor-parallel-size", default_value = "1", value_name = "N")]
    pub etp: u64,
    /// Sequences of a micro-batch
    #[arg(long, visible_alias = "micro-batch-size", default_value = "1", value_name = "N")]
    pub micro_batch: u64,
    /// Order of passes [default: 1f1b, interleaved with chunks]
    #[arg(long, value_name = "SCHEDULE")]
    pub schedule: Option<String>,
    /// What copies of the model divide: none zero1 zero2 zero3 (fsdp)
    #[arg(long, visible_alias = "zero", default_value = "zero1", value_name = "WHAT")]
    pub sharding: String,
    /// What is run again: none selective full, or reversible for a model of reversible blocks
    #[arg(long, visible_alias = "recompute-granularity", default_value = "none", value_name = "WHAT")]
    pub recompute: String,
    /// What waits in the host's memory: none optimizer activations both
    #[arg(long, default_value = "none", value_name = "WHAT")]
    pub offload: String,
    /// Bandwidth from a chip to its host, one direction, such as "64 GB/s" [default: the catalogue's]
    #[arg(long, value_name = "RATE")]
    pub host_bandwidth: Option<ByteRate>,
    /// Tokens of the whole run, for its days and dollars: 15T
    #[arg(long, value_name = "TOKENS")]
    pub tokens: Option<Tokens>,
    /// A loss to reach instead of tokens, which then follow from the law
    #[arg(long, value_name = "NATS")]
    pub loss: Option<f64>,
    /// Scaling law between tokens and loss [default with --loss: besiroglu-2024]
    #[arg(long, value_name = "LAW")]
    pub law: Option<String>,
    /// Mean time between failures of one chip, such as 50000h [default: that of the Llama 3 405B run]
    #[arg(long, value_name = "TIME")]
    pub chip_mtbf: Option<Seconds>,
    /// Pause for a checkpoint
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub stall: Seconds,
    /// From a failure to work again
    #[arg(long, default_value = "480s", value_name = "TIME")]
    pub restart: Seconds,
    /// Price of a chip, such as $2.10/h
    #[arg(long, value_name = "PRICE")]
    pub price: Option<DollarRate>,
    /// Look for the best layout instead of the one given
    #[arg(long)]
    pub search: bool,
    /// With --search: context parallelism, every schedule and offloading as well
    #[arg(long, requires = "search")]
    pub wide: bool,
    /// Layouts to list
    #[arg(long, default_value = "8", value_name = "N")]
    pub keep: usize,
    #[command(flatten)]
    pub save: super::lifecycle::FigureArgs,
}

#[derive(ClapArgs, Clone)]
pub struct MfuArgs {
    /// The model: a name, a Hugging Face id, or a config.json
    #[arg(default_value = "llama-3.1-70b")]
    pub model: String,
    /// The chip
    #[arg(long, visible_aliases = ["hw", "system"], default_value = "h100-sxm", value_name = "MACHINE")]
    pub on: String,
    /// Format whose peak counts: bf16 fp8 mxfp8 nvfp4
    #[arg(long, visible_alias = "dtype", default_value = "bf16", value_name = "FORMAT")]
    pub format: String,
    /// Tokens of a sequence
    #[arg(long, visible_alias = "seq-length", default_value = "8192", value_name = "TOKENS")]
    pub sequence: Tokens,
    /// Speed: tokens per second and chip
    #[arg(long, value_name = "RATE")]
    pub tokens_per_s: Option<f64>,
    /// Speed: TFLOP per second and chip, counted as --convention says
    #[arg(long, value_name = "TFLOP/S")]
    pub tflops: Option<f64>,
    /// Speed: share of the peak such as 40%, counted as --convention says
    #[arg(long, value_name = "SHARE")]
    pub mfu: Option<Fraction>,
    /// How it was counted: full causal hardware over-count 6nd 6nd-multiplied 6nd-scores
    #[arg(long, default_value = "causal", value_name = "HOW")]
    pub convention: String,
    /// What the run computed again: none selective full
    #[arg(long, default_value = "none", value_name = "WHAT")]
    pub recompute: String,
}
