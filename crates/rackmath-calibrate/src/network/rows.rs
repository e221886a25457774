//! Reads tables of timings into rows that the equations understand.

use crate::CalibrateError;
use crate::rows::{Record, Rows, csv, present};
use rackmath_theory::network::{Collective, Launch, Phase};
use rackmath_units::{Bytes, BytesPerToken, Seconds, Tokens};
use std::path::Path;

/// The tables that are understood; columns as in the measurement notes of aiconfigurator and TensorRT-LLM's blog 18.
pub const FILES: [&str; 3] = ["kernel_collectives.csv", "kernel_moe_a2a.csv", "nvl72_alltoall.csv"];

/// One timing.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The table it stands in.
    pub file: &'static str,
    /// The machine, as the table calls it.
    pub system: String,
    /// What was timed.
    pub what: What,
    /// How long it took.
    pub measured: Seconds,
}

/// What was timed.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Collective {
        collective: Collective,
        /// An engine's all-reduce kernel, or the library.
        engine: Option<(String, Launch)>,
        /// Ranks.
        n: u64,
        /// The whole tensor.
        bytes: Bytes,
    },
    /// A dispatch or combine.
    Exchange {
        kernel: &'static str,
        /// Which way.
        phase: Phase,
        /// Ranks, where the table says so.
        ranks: Option<u64>,
        /// Nodes, where the table says so.
        nodes: Option<u64>,
        tokens: Tokens,
        payload: BytesPerToken,
        /// Experts of a token.
        top_k: u64,
        experts: u64,
    },
}

impl What {
    /// The operation's name, for tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Collective { collective, .. } => match collective {
                Collective::AllReduce => "all-reduce",
                Collective::AllGather => "all-gather",
                Collective::ReduceScatter => "reduce-scatter",
                Collective::AllToAll => "all-to-all",
                Collective::SendRecv => "send",
            },
            Self::Exchange { phase: Phase::Dispatch, .. } => "dispatch",
            Self::Exchange { phase: Phase::Combine, .. } => "combine",
        }
    }

    /// The kernel family's name, for tables.
    pub fn kernel(&self) -> String {
        match self {
            Self::Collective { engine: None, .. } => "library".into(),
            Self::Collective { engine: Some((engine, Launch::Graph)), .. } => format!("{engine} graph"),
            Self::Collective { engine: Some((engine, Launch::Eager)), .. } => format!("{engine} eager"),
            Self::Exchange { kernel, .. } => (*kernel).into(),
        }
    }
}

pub fn read(folder: &Path) -> Result<Rows<Row>, CalibrateError> {
    let mut all = Rows::default();
    for (path, file) in present(folder, &FILES, |file| file)? {
        take(file, &csv(&path)?, &mut all);
    }
    Ok(all)
}

/// Adds the rows of one table.
pub fn take(file: &'static str, table: &[Record], all: &mut Rows<Row>) {
    for record in table {
        all.take(match file {
            "kernel_collectives.csv" => collective(file, record),
            "kernel_moe_a2a.csv" => exchange(file, record, "system", "comm_dtype"),
            _ => exchange(file, record, "hardware", "dtype"),
        });
    }
}

fn collective(file: &'static str, record: &Record) -> Result<Row, String> {
    let collective = match record.needed("op_name")? {
        "all_reduce" => Collective::AllReduce,
        "all_gather" => Collective::AllGather,
        "reduce_scatter" => Collective::ReduceScatter,
        "alltoall" => Collective::AllToAll,
        other => return Err(format!("no collective \"{other}\"")),
    };
    let source = record.needed("kernel_source")?.to_ascii_lowercase();
    let launch = if source.ends_with("eager") { Launch::Eager } else { Launch::Graph };
    let engine = match source.as_str() {
        "nccl" | "rccl" | "oneccl" => None,
        s => match ["sglang", "trtllm", "vllm"].into_iter().find(|engine| s.starts_with(engine)) {
            Some(engine) => Some((engine.to_owned(), launch)),
            None => return Err(format!("no all-reduce kernel \"{s}\"")),
        },
    };
    let bytes = Bytes::b(record.amount("message_bytes")?);
    let what = What::Collective { collective, engine, n: record.amount("num_gpus")? as u64, bytes };
    Ok(Row { file, system: record.needed("system")?.into(), what, measured: record.latency()? })
}

fn exchange(file: &'static str, record: &Record, system: &str, dtype: &str) -> Result<Row, String> {
    let phase = match record.needed("phase")? {
        "dispatch" => Phase::Dispatch,
        "combine" => Phase::Combine,
        other => return Err(format!("no phase \"{other}\"")),
    };
    let kernel = kernel(record)?;
    let what = What::Exchange {
        kernel,
        phase,
        ranks: record.count("ep_gpus"),
        nodes: record.count("nodes"),
        tokens: Tokens::new(record.amount("tokens_per_gpu")?),
        payload: payload(record.amount("hidden_size")?, kernel, phase, record.text(dtype)),
        top_k: record.amount("topk")? as u64,
        experts: record.amount("num_experts")? as u64,
    };
    Ok(Row { file, system: record.needed(system)?.into(), what, measured: record.latency()? })
}

fn kernel(record: &Record) -> Result<&'static str, String> {
    let get = |column| record.text(column);
    let (table, backend, comm) = (get("table"), get("backend"), get("comm_backend"));
    Ok(match (table, backend, comm) {
        ("wideep_deepep_ll", ..) => "deepep-ll",
        ("wideep_deepep_normal", ..) => "deepep-normal",
        (_, _, "trtllm_deepep_ll") => "trtllm-deepep-ll",
        (_, _, "trtllm_deepep_ht") => "trtllm-deepep-ht",
        (_, _, "deepep_ll") => "vllm-deepep-ll",
        (_, _, "deepep_ht") => "vllm-deepep-ht",
        (_, _, c) if c.starts_with("deepep_v2") => "vllm-deepep-v2",
        (_, _, c) if c.contains("nvlink") || c.contains("one_sided") || c.contains("mnnvl") => "one-sided",
        ("", ..) if get("engine").contains("one-sided") => "one-sided",
        (t, _, c) => return Err(format!("no expert kernel \"{t} {c}\"")),
    })
}

/// Bytes of one copy, scales included. Combine returns BF16; SGLang dispatches FP8 with a four-byte scale per 128 elements.
fn payload(hidden: f64, kernel: &str, phase: Phase, dtype: &str) -> BytesPerToken {
    let width = match (phase, kernel, dtype) {
        (Phase::Combine, ..) => 2.0,
        (_, _, "nvfp4") => 0.5 + 1.0 / 16.0,
        (_, _, "mxfp8") => 1.0 + 1.0 / 32.0,
        (_, _, "fp8") | (_, "deepep-ll" | "deepep-normal", "") => 1.0 + 4.0 / 128.0,
        _ => 2.0,
    };
    BytesPerToken::new(hidden * width)
}
