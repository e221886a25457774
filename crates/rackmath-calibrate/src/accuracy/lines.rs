//! The lines of the table: which rows count in each, and what it has to reach.

use crate::case::Case;
use crate::serving::inferencex::{DUMP, NEWEST, TABLE};
use std::fmt;

/// Distances a line has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Shown for what it says, without a target.
    Open,
    Median(f64),
    /// Median and nine in ten.
    Both(f64, f64),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => Ok(()),
            Self::Median(m) => write!(f, "{m:.2}"),
            Self::Both(m, p) => write!(f, "{m:.2} / {p:.2}"),
        }
    }
}

pub struct Line {
    pub what: &'static str,
    /// Whether it is one that must be shown; the others say what broke.
    pub must: bool,
    pub target: Target,
    pub holds: fn(&Case) -> bool,
}

const fn must(what: &'static str, target: Target, holds: fn(&Case) -> bool) -> Line {
    Line { what, must: true, target, holds }
}

const fn cause(what: &'static str, holds: fn(&Case) -> bool) -> Line {
    Line { what, must: false, target: Target::Open, holds }
}

impl Case {
    /// Time per token of one pool, in a closed loop or at a rate.
    fn tpot(&self) -> bool {
        self.metric.ends_with("TPOT") && !self.pools() && !self.replayed()
    }

    fn ttft(&self) -> bool {
        self.metric.contains("TTFT") && !self.pools() && !self.replayed()
    }

    fn pools(&self) -> bool {
        self.metric.starts_with("two pools")
    }

    fn replayed(&self) -> bool {
        self.metric.starts_with("replay")
    }

    /// Time per token or output rate, whichever a table has.
    fn speed(&self) -> bool {
        self.tpot() || self.metric == "throughput"
    }

    fn few(&self) -> bool {
        self.concurrency.is_some_and(|c| c <= 16.0)
    }

    fn newest(&self) -> bool {
        self.file == NEWEST || self.file == DUMP
    }

    fn nvidia(&self) -> bool {
        self.vendor == "NVIDIA"
    }

    fn amd(&self) -> bool {
        self.vendor == "AMD"
    }

    /// Serving of AMD's chips by engines of the last two years.
    fn amd_serving(&self) -> bool {
        self.amd() && (self.newest() || self.file.starts_with("amd_tpu/serving"))
    }

    fn tpu(&self) -> bool {
        self.chip.starts_with("tpu")
    }

    fn kernel(&self) -> bool {
        ["gemm", "attention", "experts"].contains(&self.metric.as_str())
    }

    fn link(&self) -> bool {
        self.metric == "collective" || self.metric == "exchange"
    }

    fn rtx_pro(&self) -> bool {
        self.chip == "rtx-pro-6000"
    }

    /// Chips whose node is joined by the fifth NVLink.
    fn nvlink5(&self) -> bool {
        ["b200", "b300", "gb200", "gb300"].contains(&self.chip.as_str())
    }

    fn datacentre(&self) -> bool {
        self.nvidia() && !self.rtx_pro()
    }

    fn full_load(&self) -> bool {
        self.metric == "max load"
    }

    /// Posts about single deployments.
    fn posted(&self) -> bool {
        self.file == "deepseek_sglang_nodes.csv"
    }

    /// Whole steps of one H200.
    fn h200_step(&self) -> bool {
        self.file.starts_with("h200_torch/") && self.metric.ends_with("step") || self.file == "vllm_h200/steps.csv.gz"
    }

    fn llama_70b(&self) -> bool {
        ["llama-2-70b", "llama-3-70b", "llama-3.1-70b", "llama-3.3-70b"].contains(&self.model.as_str())
    }

    /// vLLM before 0.10, whose scheduler was another.
    fn early_vllm(&self) -> bool {
        let minor = self.engine.strip_prefix("vllm@0.").and_then(|v| v.split('.').next()?.parse::<u64>().ok());
        minor.is_some_and(|minor| minor < 10)
    }
}

use Target::{Both, Median};

pub const LINES: [Line; 85] = [
    must("InferenceX TPOT", Both(0.08, 0.28), |c| c.file == TABLE && c.tpot()),
    must("InferenceX TTFT, concurrency up to 16", Both(0.15, 0.60), |c| c.file == TABLE && c.ttft() && c.few()),
    must("InferenceX TTFT, above 16", Both(0.20, 0.70), |c| c.file == TABLE && c.ttft() && !c.few()),
    must("newest NVIDIA rows, TPOT", Both(0.08, 0.28), |c| c.newest() && c.nvidia() && c.tpot()),
    must("newest with percentiles, all chips, TPOT", Both(0.09, 0.28), |c| c.file == NEWEST && c.tpot()),
    must("newest with percentiles, all chips, TTFT", Both(0.20, 0.80), |c| c.file == NEWEST && c.ttft()),
    must("newest without percentiles, all chips, TPOT", Both(0.12, 0.40), |c| c.file == DUMP && c.tpot()),
    must("TensorRT-LLM full load, dense", Both(0.07, 0.20), |c| c.full_load() && !c.experts),
    must("TensorRT-LLM full load, experts", Both(0.15, 0.40), |c| c.full_load() && c.experts),
    must("NVLink 5 collectives and all-to-all", Both(0.10, 0.25), |c| c.link() && c.nvlink5()),
    must("AMD serving, TPOT or throughput", Both(0.12, 0.35), |c| c.amd_serving() && c.speed()),
    must("TPU serving, TPOT or throughput", Both(0.20, 0.50), |c| c.tpu() && c.speed()),
    must("datacentre kernels", Median(0.06), |c| c.kernel() && c.datacentre()),
    must("RTX PRO kernels", Median(0.10), |c| c.kernel() && c.rtx_pro()),
    must("AMD kernels", Median(0.10), |c| c.kernel() && c.amd()),
    must("H200 whole steps, dense", Median(0.03), |c| c.h200_step() && !c.experts),
    must("H200 whole steps, experts", Median(0.04), |c| c.h200_step() && c.experts),
    must("joules per token", Both(0.15, 0.40), |c| c.metric == "joules per token"),
    must("start-up: gigabytes of cache", Both(0.04, 0.12), |c| c.metric == "cache room at start-up, GiB"),
    must("start-up: tokens of cache", Both(0.04, 0.12), |c| c.metric == "cache tokens at start-up"),
    must("start-up: weights", Median(0.01), |c| c.metric == "weights at start-up, GiB"),
    must("start-up: graphs and dry runs", Median(0.20), |c| {
        ["graphs at start-up, GiB", "dry run at start-up, GiB"].contains(&c.metric.as_str())
    }),
    cause("InferenceX TPOT, models that do not draft", |c| {
        c.file == TABLE && c.tpot() && !c.metric.contains("drafting unknown")
    }),
    cause("InferenceX TPOT, models that may have drafted", |c| {
        c.file == TABLE && c.tpot() && c.metric.contains("drafting unknown")
    }),
    cause("SGLang TTFT, NVIDIA", |c| c.ttft() && c.family() == "sglang" && c.nvidia()),
    cause("SGLang TTFT, DeepSeek on NVIDIA", |c| {
        c.ttft() && c.family() == "sglang" && c.nvidia() && c.model.starts_with("deepseek")
    }),
    cause("vLLM TTFT, NVIDIA", |c| c.ttft() && c.family() == "vllm" && c.nvidia() && (c.newest() || c.file == TABLE)),
    cause("TensorRT-LLM TTFT, NVIDIA", |c| c.ttft() && c.family() == "trtllm" && (c.newest() || c.file == TABLE)),
    cause("70B NVFP4 on B200, TensorRT-LLM TPOT", |c| {
        c.llama_70b() && c.weights == "nvfp4" && c.chip == "b200" && c.family() == "trtllm" && c.tpot()
    }),
    cause("70B NVFP4 on B200, TensorRT-LLM full load", |c| {
        c.llama_70b() && c.weights == "nvfp4" && c.chip == "b200" && c.full_load()
    }),
    cause("gpt-oss on B200, vLLM TPOT", |c| {
        c.model.starts_with("gpt-oss") && c.chip == "b200" && c.family() == "vllm" && c.tpot()
    }),
    cause("gpt-oss on B200, TensorRT-LLM TPOT", |c| {
        c.model.starts_with("gpt-oss") && c.chip == "b200" && c.family() == "trtllm" && c.tpot()
    }),
    cause("DeepSeek under TensorRT-LLM, TPOT", |c| {
        c.model.starts_with("deepseek") && c.family() == "trtllm" && c.tpot()
    }),
    cause("DeepSeek under TensorRT-LLM, full load", |c| c.model.starts_with("deepseek") && c.full_load()),
    cause("DeepSeek V4 under load, TPOT", |c| c.model.starts_with("deepseek-v4") && c.newest() && c.tpot()),
    cause("DeepSeek V4 long prompts, TTFT", |c| c.posted() && c.model.starts_with("deepseek-v4") && c.ttft()),
    cause("DeepSeek V4 long contexts, TPOT", |c| c.posted() && c.model.starts_with("deepseek-v4") && c.tpot()),
    cause("other posts, TTFT and TPOT", |c| c.posted() && !c.model.starts_with("deepseek-v4")),
    cause("MiniMax M3 on B200 and B300, TPOT", |c| c.model == "minimax-m3" && c.nvlink5() && c.tpot()),
    cause("Qwen3.5 on NVIDIA, newest, TPOT", |c| {
        c.model.starts_with("qwen3.5") && c.newest() && c.nvidia() && c.tpot()
    }),
    cause("NVLink 5 library (NCCL)", |c| c.metric == "collective" && c.nvlink5() && c.engine == "library"),
    cause("NVLink 5 engines' all-reduce", |c| c.metric == "collective" && c.nvlink5() && c.engine != "library"),
    cause("NVLink 5 expert all-to-all", |c| c.metric == "exchange" && c.nvlink5()),
    cause("NVLink 4 collectives and all-to-all", |c| c.link() && ["h100-sxm", "h200"].contains(&c.chip.as_str())),
    cause("NVLink 3 collectives", |c| c.link() && c.chip.starts_with("a100")),
    cause("PCIe collectives", |c| c.link() && ["l40s", "rtx-pro-6000", "arc-pro-b60"].contains(&c.chip.as_str())),
    cause("AMD collectives and all-to-all", |c| c.link() && c.amd()),
    cause("RTX PRO 6000 serving, full load", |c| c.rtx_pro() && c.full_load()),
    cause("vLLM 0.2 to 0.9 on NVIDIA, steps and batches", |c| {
        c.early_vllm() && c.nvidia() && !c.metric.contains("TTFT") && !c.replayed()
    }),
    cause("vLLM 0.2 to 0.9 on NVIDIA, first tokens", |c| {
        c.early_vllm() && c.nvidia() && (c.ttft() || c.metric == "prompt")
    }),
    cause("Argonne's fixed batches of 2024, NVIDIA", |c| c.file.starts_with("anl_") && c.nvidia()),
    cause("Argonne's fixed batches of 2024, AMD", |c| c.file.starts_with("anl_") && c.amd()),
    cause("llama.cpp, one stream", |c| c.file.starts_with("llamacpp") && !c.metric.contains("batched")),
    cause("llama.cpp, batched", |c| c.file.starts_with("llamacpp") && c.metric.contains("batched")),
    cause("MI300X and MI325X experts, speed", |c| c.amd_serving() && c.speed() && c.experts && c.chip != "mi355x"),
    cause("MI355X experts, speed", |c| c.amd_serving() && c.speed() && c.experts && c.chip == "mi355x"),
    cause("AMD dense, speed", |c| c.amd_serving() && c.speed() && !c.experts),
    cause("AMD TTFT", |c| c.amd_serving() && c.ttft()),
    cause("TPU TTFT", |c| c.tpu() && c.ttft()),
    cause("disaggregated, TPOT", |c| c.pools() && c.metric.ends_with("TPOT")),
    cause("disaggregated, TTFT", |c| c.pools() && c.metric.ends_with("TTFT")),
    cause("context sweep to 32k, TPOT", |c| c.file == "inferencex_context_sweep.csv"),
    cause("vLLM open loop, E2E, in closed form", |c| c.file.contains("blis") && c.metric == "E2E"),
    cause("vLLM open loop, ITL, in closed form", |c| c.file.contains("blis") && c.metric == "ITL"),
    cause("vLLM open loop, TTFT, in closed form", |c| c.file.contains("blis") && c.metric == "TTFT"),
    cause("vLLM open loop, E2E, replayed", |c| c.replayed() && !c.rtx_pro() && c.metric.contains("E2E")),
    cause("vLLM open loop, ITL and TPOT, replayed", |c| {
        c.replayed() && !c.rtx_pro() && (c.metric.contains("ITL") || c.metric.contains("TPOT"))
    }),
    cause("vLLM open loop, TTFT, replayed", |c| c.replayed() && !c.rtx_pro() && c.metric.contains("TTFT")),
    cause("RTX PRO 6000 under ShareGPT, TPOT, replayed", |c| c.replayed() && c.rtx_pro() && c.metric.contains("TPOT")),
    cause("RTX PRO 6000 under ShareGPT, TTFT and E2E, replayed", |c| {
        c.replayed() && c.rtx_pro() && !c.metric.contains("TPOT")
    }),
    cause("TensorRT-LLM known batch", |c| c.metric == "known batch"),
    cause("TensorRT-LLM first token", |c| c.metric == "first token"),
    cause("datacentre products", |c| c.metric == "gemm" && c.datacentre()),
    cause("datacentre attention", |c| c.metric == "attention" && c.datacentre()),
    cause("datacentre experts", |c| c.metric == "experts" && c.datacentre()),
    cause("NVFP4 products on B200 and B300", |c| c.metric == "gemm" && c.model == "nvfp4" && c.nvlink5()),
    cause("Intel and Ascend kernels", |c| c.kernel() && !c.nvidia() && !c.amd()),
    cause("one step of a recurrence, AMD", |c| c.metric == "recurrence, one step"),
    cause("products of 2024 with their launches", |c| c.metric == "gemm with its launch"),
    cause("MLPerf offline, 405B, prompts of 9,500", |c| c.metric == "offline rate"),
    cause("MLPerf offline, one chip over another", |c| c.metric == "offline rate over another chip's"),
    cause("concurrency at start-up", |c| c.metric == "concurrency at start-up"),
    cause("graphs estimated at start-up", |c| c.metric == "graphs estimated at start-up, GiB"),
    cause("start-up, not all stated: cache", |c| c.metric == "cache room at start-up, GiB, not all stated"),
    cause("start-up, not all stated: tokens", |c| c.metric == "cache tokens at start-up, not all stated"),
];
