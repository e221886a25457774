//! Collectives and expert exchanges against measured tables.

mod fit;
#[cfg(test)]
mod tests;

use crate::case::Case;
use crate::rows::{Record, Rows, fitted_on, present};
use crate::table::Table;
use rackmath_spec::{Catalog, Level, Network, SpecError, System};
use rackmath_theory::network::{
    Collective, Exchange, Group, Launch, Phase, Port, all_reduce_time, exchange_rate, exchange_time, time,
};
use rackmath_units::{Bytes, BytesPerToken, Seconds, Tokens, float};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The only table of a rack: constants of racks are fitted on nothing else.
const RACK: &str = "nvl72_alltoall.csv";

/// The tables that are understood; columns as in the measurement notes of aiconfigurator and TensorRT-LLM's blog 18.
const FILES: [&str; 6] = [
    "kernel_collectives.csv",
    "kernel_moe_a2a.csv",
    RACK,
    "amd_tpu/collectives_rccl.csv",
    "amd_tpu/collectives_b60.csv",
    "amd_tpu/kernel_moe_a2a_mi3xx.csv",
];

pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.into_iter()
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    file: &'static str,
    system: String,
    /// In the words of tables: all-reduce, dispatch.
    operation: &'static str,
    /// The library, an engine's own kernel with who starts it, or a family of expert kernels.
    kernel: String,
    what: What,
    measured: Seconds,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// Of the whole tensor over so many ranks, by an engine's all-reduce kernel or by the library.
    Collective { collective: Collective, engine: Option<(&'static str, Launch)>, n: u64, bytes: Bytes },
    /// A dispatch or combine; its ranks, where the table says so, stand beside it.
    Exchange { ranks: Option<u64>, work: Exchange },
}

fn read(folder: &Path) -> Result<Rows<Row>, SpecError> {
    crate::rows::read(present(folder, &FILES, |file| file)?, |file, record| [row(file, record)])
}

fn row(file: &'static str, record: &Record) -> Result<Row, String> {
    match file {
        f if f.contains("collectives") => collective(file, record),
        f if f.contains("kernel_moe_a2a") => exchange(file, record, "system", "comm_dtype"),
        _ => exchange(file, record, "hardware", "dtype"),
    }
}

fn collective(file: &'static str, record: &Record) -> Result<Row, String> {
    let (collective, operation) = match record.needed("op_name")? {
        "all_reduce" => (Collective::AllReduce, "all-reduce"),
        "all_gather" => (Collective::AllGather, "all-gather"),
        "reduce_scatter" => (Collective::ReduceScatter, "reduce-scatter"),
        "alltoall" => (Collective::AllToAll, "all-to-all"),
        other => return Err(format!("no collective \"{other}\"")),
    };
    if record.degree("nodes") > 1 {
        return Err("a collective between nodes".into());
    }
    let source = record.needed("kernel_source")?.to_ascii_lowercase();
    // rccl-tests names the variant of a call instead.
    let source = if record.text("backend") == "rccl-tests" { "rccl".to_owned() } else { source };
    let own = ["sglang", "trtllm", "vllm"].into_iter().find(|engine| source.starts_with(engine));
    let (engine, kernel) = match (source.as_str(), own) {
        // Timed from Python, call by call.
        ("rccl", _) if record.text("backend") == "rccl" => {
            (Some(("library", Launch::Eager)), "library eager".to_owned())
        }
        ("nccl" | "rccl" | "oneccl", _) => (None, "library".to_owned()),
        (s, Some(engine)) if s.ends_with("eager") => (Some((engine, Launch::Eager)), format!("{engine} eager")),
        (_, Some(engine)) => (Some((engine, Launch::Graph)), format!("{engine} graph")),
        (s, None) => return Err(format!("no all-reduce kernel \"{s}\"")),
    };
    let (n, mut bytes) = (record.amount("num_gpus")? as u64, Bytes::b(record.amount("message_bytes")?));
    if record.text("backend") == "oneccl" {
        // Messages are counted at two bytes an element whatever it is, and an all-gather's is what one rank gives: only so do
        // all its collectives reach one rate.
        let gathered = if collective == Collective::AllGather { n as f64 } else { 1.0 };
        bytes = bytes * (gathered * if record.text("dtype") == "int8" { 0.5 } else { 1.0 });
    }
    let what = What::Collective { collective, engine, n, bytes };
    // The host of these rows had no peer access beyond a pair.
    let system = match record.needed("system")? {
        "l40s" => "l40s-no-peer",
        other => other,
    };
    Ok(Row { file, system: system.into(), operation, kernel, what, measured: record.latency()? })
}

fn exchange(file: &'static str, record: &Record, system: &str, dtype: &str) -> Result<Row, String> {
    let (phase, operation) = match record.needed("phase")? {
        "dispatch" => (Phase::Dispatch, "dispatch"),
        "combine" => (Phase::Combine, "combine"),
        other => return Err(format!("no phase \"{other}\"")),
    };
    let kernel = kernel(record)?;
    let tokens = Tokens::new(record.amount("tokens_per_gpu")?);
    let payload = payload(record.amount("hidden_size")?, kernel, phase, record.text(dtype));
    // A table without ranks counts servers of eight.
    let ranks = record.count("ep_gpus").or(record.count("nodes").map(|n| n * 8));
    // MORI's documents have 256 experts on 8 ranks, its tuning tables leave them out.
    let usual = ranks.filter(|_| kernel == "mori").map(|n| 32 * n);
    let experts = record.count("num_experts").or(usual).ok_or("no number of experts")?;
    let top_k = record.amount("topk")? as u64;
    let work = Exchange { phase, tokens, payload, top_k, experts, ranks: 1, ranks_per_node: 1 };
    let (kernel, what) = (kernel.to_owned(), What::Exchange { ranks, work });
    Ok(Row { file, system: record.needed(system)?.into(), operation, kernel, what, measured: record.latency()? })
}

fn kernel(record: &Record) -> Result<&'static str, String> {
    let get = |column| record.text(column);
    let (table, backend, comm) = (get("table"), get("backend"), get("comm_backend"));
    Ok(match (table, backend, comm) {
        ("mori_IntraNode" | "mori_IntraNodeLL", ..) => "mori",
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
        // Two FP4 values count as one element; scales travel apart.
        (_, "mori", "fp4" | "fp8_e4m3" | "fp8_e4m3_fnuz") => 1.0,
        (_, _, "nvfp4") => 0.5 + 1.0 / 16.0,
        (_, _, "mxfp8") => 1.0 + 1.0 / 32.0,
        (_, _, "fp8") | (_, "deepep-ll" | "deepep-normal", "") => 1.0 + 4.0 / 128.0,
        _ => 2.0,
    };
    BytesPerToken::new(hidden * width)
}

/// The machines that rows name, and the constants of their links.
#[derive(Clone, Debug)]
struct Machines {
    systems: BTreeMap<String, Arc<System>>,
    /// Constants by kind of link. A fit replaces an entry.
    networks: BTreeMap<String, Network>,
    /// The kind of link that a machine's level names.
    kinds: BTreeMap<String, String>,
}

impl Machines {
    fn of(rows: &[Row], catalog: &Catalog) -> Result<Self, SpecError> {
        let mut all = Self { systems: BTreeMap::new(), networks: BTreeMap::new(), kinds: BTreeMap::new() };
        for row in rows {
            if all.systems.contains_key(&row.system) {
                continue;
            }
            let Ok(system) = catalog.system(&row.system) else { continue };
            for level in &system.levels {
                let network = catalog.network(&level.link)?;
                all.kinds.insert(level.link.clone(), network.id.clone());
                all.networks.insert(network.id.clone(), Arc::unwrap_or_clone(network));
            }
            all.systems.insert(row.system.clone(), system);
        }
        Ok(all)
    }

    fn level(&self, system: &str, n: usize) -> Option<(&Level, &str)> {
        let level = self.systems.get(system)?.levels.get(n)?;
        Some((level, &self.kinds[&level.link]))
    }

    /// The kind of links inside a machine's node.
    fn kind(&self, system: &str) -> Option<&str> {
        self.level(system, 0).map(|(_, kind)| kind)
    }

    /// The kind of links between its nodes.
    fn kind_between(&self, system: &str) -> Option<&str> {
        self.level(system, 1).map(|(_, kind)| kind)
    }

    /// Ranks and ranks per node of an exchange.
    fn span(&self, row: &Row) -> Option<(u64, u64)> {
        let What::Exchange { ranks, .. } = row.what else { return None };
        Some((ranks?, self.level(&row.system, 0)?.0.chips))
    }

    /// Time of a row, or why it cannot be told.
    fn predict(&self, row: &Row) -> Result<Seconds, String> {
        let system = self.systems.get(&row.system).ok_or_else(|| format!("no chip \"{}\"", row.system))?;
        let (level, kind) = self.level(&row.system, 0).ok_or_else(|| format!("{}: no links", system.chip.id))?;
        let network = &self.networks[kind];
        match &row.what {
            What::Collective { collective, engine, n, bytes } => {
                let group = Group::within(level, network, *n);
                let kernel = engine.and_then(|(e, launch)| Some((network.all_reduce.get(e)?, launch)));
                let memory = system.chip.memory.bandwidth.value;
                // Engines without a kernel for these links call the library.
                let time = kernel.map_or_else(
                    || time(*collective, *bytes, &group),
                    |(kernel, launch)| all_reduce_time(*bytes, &group, kernel, launch, memory),
                );
                Ok(time.total())
            }
            What::Exchange { work, .. } => {
                let (ranks, ranks_per_node) = self.span(row).ok_or("neither ranks nor nodes given")?;
                let exchange = Exchange { ranks, ranks_per_node, ..*work };
                let kernel = network.exchange_kernel(&row.kernel).map_err(|e| e.to_string())?;
                let out = self.level(&row.system, 1).and_then(|(out, kind)| {
                    let kernel = self.networks[kind].reach.get(&kernel.copies)?;
                    Some(Port { kernel, bandwidth: out.bandwidth.value })
                });
                if exchange.nodes() > 1 && out.is_none() {
                    return Err(format!("{}: no way out of the node", system.chip.id));
                }
                let inside = Port { kernel, bandwidth: exchange_rate(level, ranks.min(ranks_per_node)) };
                Ok(exchange_time(&exchange, &inside, out.as_ref()).total)
            }
        }
    }

    fn distance(&self, row: &Row) -> Result<f64, String> {
        Ok(float::ln(self.predict(row)? / row.measured).abs())
    }
}

/// Every row beside its prediction.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let all = read(folder)?;
    let machines = Machines::of(&all.rows, catalog)?;
    Ok(all.map(|row| {
        let predicted = machines.predict(&row)?;
        let chip = &machines.systems[&row.system].chip;
        let (metric, what) = match &row.what {
            What::Collective { n, bytes, .. } => ("collective", format!("{n} ranks; {} B", bytes.get())),
            What::Exchange { ranks, work } => {
                let ranks = ranks.map_or(String::new(), |n| n.to_string());
                ("exchange", format!("{ranks} ranks; {} tokens of {} B", work.tokens.get(), work.payload.get()))
            }
        };
        let case = Case::on(chip, row.file, metric).of(&row.kernel, row.operation, what);
        Ok::<Case, String>(Case { measured: row.measured.get(), predicted: predicted.get(), ..case })
    }))
}

pub fn score(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    score_rows(&read(folder)?, catalog)
}

/// How far a catalogue is from rows: per file, system, operation and kernel; then per file; then the two headlines.
fn score_rows(rows: &Rows<Row>, catalog: &Catalog) -> Result<Table, SpecError> {
    let machines = Machines::of(&rows.rows, catalog)?;
    let mut table = Table::new(&["file", "system", "operation", "kernel"], &rows.skipped);
    let scored = table.scored(&rows.rows, |row| machines.distance(row));
    table.group(scored.iter().map(|(row, d)| ([row.file, &row.system, row.operation, &row.kernel], *d)));
    table.group(scored.iter().map(|(row, d)| ([row.file, "all"], *d)));
    for (headline, keep) in [
        ("all-reduce and all-gather from 16 KiB", is_long_gather_or_reduce as fn(&What) -> bool),
        ("dispatch and combine", |what| matches!(what, What::Exchange { .. })),
    ] {
        table.push([headline], scored.iter().filter(|(row, _)| keep(&row.what)).map(|(_, d)| *d));
    }
    Ok(table)
}

fn is_long_gather_or_reduce(what: &What) -> bool {
    matches!(what, What::Collective { collective: Collective::AllReduce | Collective::AllGather, bytes, .. }
        if *bytes >= Bytes::b(16.0 * 1024.0))
}

/// Constants fitted to the tables of a folder, one set per kind of link, as the tables of catalogue files.
pub fn fit(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let mut rows = read(folder)?.rows;
    // B200 and B300 have the same links, B60 its own; no rack is timed beside them but in one table.
    let own = |row: &Row| row.system.starts_with("b300") || row.system.ends_with("b60") || row.file == RACK;
    rows.retain(|row| fitted_on(&row.system) || own(row));
    Ok(fit::toml(&fit::all(&rows, &Machines::of(&rows, catalog)?)))
}

/// How far constants fitted to a part of the tables are from the rest: another machine, more ranks, more nodes.
pub fn transfer(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let rows = read(folder)?.rows;
    Ok(fit::transfer(&rows, &Machines::of(&rows, catalog)?))
}
