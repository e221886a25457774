//! Reads tables of timings into rows that the equations understand.

use crate::CalibrateError;
use rackmath_theory::network::{Collective, Launch, Phase};
use rackmath_units::{Bytes, BytesPerToken, Seconds, Tokens};
use std::collections::BTreeMap;
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

/// The rows of a folder, and how many were left out for which reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    pub rows: Vec<Row>,
    /// Reasons and counts.
    pub skipped: BTreeMap<String, usize>,
}

pub fn read(folder: &Path) -> Result<Rows, CalibrateError> {
    let mut all = Rows::default();
    let mut found = false;
    for file in FILES {
        let path = folder.join(file);
        if path.is_file() {
            found = true;
            let problem = |e: std::io::Error| CalibrateError::File { file: file.into(), problem: e.to_string() };
            parse(file, &std::fs::read_to_string(&path).map_err(problem)?, &mut all)?;
        }
    }
    let folder = || folder.display().to_string();
    if found { Ok(all) } else { Err(CalibrateError::Nothing { folder: folder(), expected: FILES.to_vec() }) }
}

/// Adds the rows of one table's text.
pub fn parse(file: &'static str, text: &str, all: &mut Rows) -> Result<(), CalibrateError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let problem = |e: csv::Error| CalibrateError::File { file: file.into(), problem: e.to_string() };
    for record in reader.deserialize::<BTreeMap<String, String>>() {
        let record = record.map_err(problem)?;
        let row = match file {
            "kernel_collectives.csv" => collective(file, &record),
            "kernel_moe_a2a.csv" => exchange(file, &record, "system", record.get("comm_dtype")),
            _ => exchange(file, &record, "hardware", record.get("dtype")),
        };
        match row {
            Ok(row) => all.rows.push(row),
            Err(reason) => *all.skipped.entry(reason).or_default() += 1,
        }
    }
    Ok(())
}

type Record = BTreeMap<String, String>;

fn collective(file: &'static str, record: &Record) -> Result<Row, String> {
    let collective = match text(record, "op_name")? {
        "all_reduce" => Collective::AllReduce,
        "all_gather" => Collective::AllGather,
        "reduce_scatter" => Collective::ReduceScatter,
        "alltoall" => Collective::AllToAll,
        other => return Err(format!("no collective \"{other}\"")),
    };
    let source = text(record, "kernel_source")?.to_ascii_lowercase();
    let launch = if source.ends_with("eager") { Launch::Eager } else { Launch::Graph };
    let engine = match source.as_str() {
        "nccl" | "rccl" | "oneccl" => None,
        s => match ["sglang", "trtllm", "vllm"].into_iter().find(|engine| s.starts_with(engine)) {
            Some(engine) => Some((engine.to_owned(), launch)),
            None => return Err(format!("no all-reduce kernel \"{s}\"")),
        },
    };
    let bytes = Bytes::b(number(record, "message_bytes")?);
    let what = What::Collective { collective, engine, n: number(record, "num_gpus")? as u64, bytes };
    Ok(Row { file, system: text(record, "system")?.into(), what, measured: measured(record)? })
}

fn exchange(file: &'static str, record: &Record, system: &str, dtype: Option<&String>) -> Result<Row, String> {
    let phase = match text(record, "phase")? {
        "dispatch" => Phase::Dispatch,
        "combine" => Phase::Combine,
        other => return Err(format!("no phase \"{other}\"")),
    };
    let kernel = kernel(record)?;
    let what = What::Exchange {
        kernel,
        phase,
        ranks: number(record, "ep_gpus").ok().map(|n| n as u64),
        nodes: number(record, "nodes").ok().map(|n| n as u64),
        tokens: Tokens::new(number(record, "tokens_per_gpu")?),
        payload: payload(number(record, "hidden_size")?, kernel, phase, dtype.map_or("", String::as_str)),
        top_k: number(record, "topk")? as u64,
        experts: number(record, "num_experts")? as u64,
    };
    Ok(Row { file, system: text(record, system)?.into(), what, measured: measured(record)? })
}

fn kernel(record: &Record) -> Result<&'static str, String> {
    let get = |column| record.get(column).map_or("", String::as_str);
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

fn text<'a>(record: &'a Record, column: &str) -> Result<&'a str, String> {
    record.get(column).map(String::as_str).ok_or_else(|| format!("no column {column}"))
}

/// A number that is not negative, as quantities must be.
fn number(record: &Record, column: &str) -> Result<f64, String> {
    let value = text(record, column)?.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    value.ok_or_else(|| format!("no number in {column}"))
}

fn measured(record: &Record) -> Result<Seconds, String> {
    let us = number(record, "latency_us")?;
    if us > 0.0 { Ok(Seconds::us(us)) } else { Err("no time measured".into()) }
}
