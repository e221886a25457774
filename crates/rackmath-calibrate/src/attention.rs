//! Attention kernels: rows predicted, constants fitted, how well they carry over. The tables are
//! `kernel_attention_<chip>.csv`, `kernel_mla.csv`, and our own `h200_torch/attention.json`.
//!
//! Every chip generation was measured on one chip, so nothing here can leave a chip out within its generation, save for our
//! own H200 table, which other kernels made. [`transfer`] therefore leaves out head shapes, asks another generation's
//! constants, and holds that H200 table against H100 constants.

mod fit;

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, fitted_on, nothing, table_or_none};
use crate::table::Table;
use rackmath_spec::attention::{AttentionKernel, AttentionKernels, DecodeConstants, Heads, PrefillConstants, Wanted};
use rackmath_spec::{Catalog, Chip, Dtype, Math, SpecError};
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::attention::{DecodeWork, PrefillWork, Residency, decode, prefill};
use rackmath_theory::operator::mla::Latent;
use rackmath_units::{BytesPerParam, float};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

struct Row {
    file: String,
    chip: String,
    key: Key,
    /// Heads, head size and window.
    shape: String,
    /// The chip in the arithmetic of the kernel.
    silicon: Silicon,
    work: Work,
    measured: f64,
}

/// Which file of `catalog/kernels` a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Grouped,
    Latent,
}

/// Which kernel a row timed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: Kind,
    decode: bool,
    generation: String,
    /// Engine, or engine and library.
    backend: String,
    /// single, grouped, or nothing for both.
    heads: &'static str,
    math8: bool,
    kv8: bool,
}

/// What a row's kernel did: one new token, or many.
enum Work {
    Decode(DecodeWork),
    Prefill(PrefillWork),
}

#[derive(Clone, Copy)]
enum Constants {
    Decode(DecodeConstants),
    Prefill(PrefillConstants),
}

/// Chips with tables, as the tables call them.
const CHIPS: [&str; 9] = ["a100", "l40s", "h100", "h200", "b200", "gb200", "b300", "gb300", "rtxpro6000"];

/// Tables whose rows name their chips.
const MIXED: [&str; 3] =
    ["kernel_mla.csv", "amd_tpu/kernel_attention_mi3xx.csv", "amd_tpu/kernel_attention_ascend_b60.csv"];

pub fn tables() -> impl Iterator<Item = String> {
    CHIPS.map(|chip| format!("kernel_attention_{chip}.csv")).into_iter().chain(MIXED.map(str::to_owned))
}

/// All rows of a folder that can be used; rows above the peak of their chip cannot.
fn read(catalog: &Catalog, folder: &Path) -> Result<Rows<Row>, SpecError> {
    let mut rows = Vec::new();
    for chip in CHIPS {
        let file = format!("kernel_attention_{chip}.csv");
        let records = table_or_none(&folder.join(&file))?;
        let chip = catalog.chip(chip)?;
        let usable = records.iter().filter(|r| r.text("quality") != "over_peak");
        rows.extend(usable.map(|r| row(&chip, Kind::Grouped, r).map(|row| Row { file: file.clone(), ..row })));
    }
    let names = Names::new(catalog);
    for file in MIXED {
        let read = |record: &Record| match record.text("phase") {
            "prefill" | "decode" if file == "kernel_mla.csv" => mixed(&names, Kind::Latent, record),
            "prefill" | "decode" => mixed(&names, Kind::Grouped, record),
            // One new token of each sequence; the kernels of several are not ours.
            "mla_decode" if record.text("isl") == "1" => mixed(&names, Kind::Latent, &absorbed(record)),
            "mla_decode" => Err("several new tokens of a sequence".into()),
            other => Err(format!("no attention \"{other}\"")),
        };
        let records = table_or_none(&folder.join(file))?;
        rows.extend(records.iter().map(|r| read(r).map(|row| Row { file: file.to_owned(), ..row })));
    }
    rows.extend(h200(catalog, folder, "torch")?);
    if rows.is_empty() {
        let expected = ["kernel_attention_<chip>.csv", "kernel_mla.csv", "h200_torch/attention.json"];
        return Err(nothing(folder, expected.into_iter()));
    }
    let files = files(catalog)?;
    // Chips of a generation may have kernels of their own.
    for row in rows.iter_mut().flatten() {
        let generation = files[row.key.kind as usize].generation(&*catalog.chip(&row.chip)?).to_owned();
        row.key.generation = generation;
    }
    Ok(rows.into_iter().collect())
}

/// A row that names its chip.
fn mixed(names: &Names<'_>, kind: Kind, record: &Record) -> Result<Row, String> {
    row(&*names.found(record.needed("system")?)?, kind, record)
}

/// A step of latent attention in the words of the other tables.
fn absorbed(record: &Record) -> Record {
    let mut cells = record.0.clone();
    cells.insert("phase".to_owned(), "decode".to_owned());
    Record(cells)
}

/// Our own measurements on one H200, PyTorch's or as if an engine had run them; nothing when they are not there.
fn h200(catalog: &Catalog, folder: &Path, backend: &str) -> Result<Vec<Result<Row, String>>, SpecError> {
    let chip = catalog.chip("h200")?;
    let file = "h200_torch/attention.json";
    let read = |own: &Record| Ok(Row { file: file.to_owned(), ..row(&chip, Kind::Grouped, &torch(own, backend)?)? });
    Ok(table_or_none(&folder.join(file))?.iter().map(read).collect())
}

/// Our own row in the columns of the others.
fn torch(own: &Record, backend: &str) -> Result<Record, String> {
    let (phase, context) = (own.needed("kind")?, own.amount("S")?);
    let (isl, past) = if phase == "decode" { (1.0, context - 1.0) } else { (context, 0.0) };
    let words = [("phase", phase), ("backend", backend), ("window_size", "0")];
    let same = [("num_heads", "H"), ("num_kv_heads", "Hk"), ("head_dim", "D"), ("batch_size", "B")];
    let numbers = [("isl", isl), ("past_kv", past), ("latency_us", own.amount("s")? * 1e6)];
    let cells = words.into_iter().chain(same.map(|(column, own_column)| (column, own.text(own_column))));
    let cells = cells.map(|(column, word)| (column.to_owned(), word.to_owned()));
    Ok(Record(cells.chain(numbers.map(|(column, n)| (column.to_owned(), n.to_string()))).collect()))
}

fn row(chip: &Chip, kind: Kind, r: &Record) -> Result<Row, String> {
    let (heads, batch) = (r.amount("num_heads")?, r.amount("batch_size")?);
    let (isl, past) = (r.amount("isl")?, r.amount("past_kv")?);
    let (decode, engine, kv8) =
        (r.needed("phase")? == "decode", r.needed("backend")?, r.text("kv_cache_dtype") == "fp8");
    let width = BytesPerParam::new(if kv8 { 1.0 } else { 2.0 });
    let mut key = Key {
        kind,
        decode,
        generation: chip.generation.clone(),
        backend: engine.to_owned(),
        heads: "",
        // An 8-bit latent cache is multiplied in 8 bits where the chip can.
        math8: if kind == Kind::Latent { kv8 } else { r.text("attn_dtype") == "fp8" },
        kv8,
    };
    let (shape, work) = if kind == Kind::Latent {
        // The sizes of DeepSeek-V3, which the table measures.
        let latent = Latent { heads, rank: 512.0, rope: 64.0, nope: 128.0, value: 128.0 };
        let work = if decode {
            Work::Decode(latent.decode(batch, past + isl, width))
        } else {
            Work::Prefill(latent.prefill(batch, isl, past))
        };
        (format!("{heads} heads"), work)
    } else {
        let (kv_heads, size, window) = (r.amount("num_kv_heads")?, r.amount("head_dim")?, r.amount("window_size")?);
        let shape = format!("{heads}/{kv_heads}x{size} w{window}");
        // The one engine that brings two libraries for one chip.
        if engine == "sglang"
            && r.text("kernel_source") == "flashinfer"
            && chip.generation == "blackwell"
            && !chip.memory.kind.starts_with("GDDR")
        {
            "sglang-flashinfer".clone_into(&mut key.backend);
        }
        // One engine takes another decode kernel when heads are not shared.
        if decode && engine == "trtllm" {
            key.heads = if heads > kv_heads { "grouped" } else { "single" };
        }
        let window = (window > 0.0).then_some(window);
        let work = if decode {
            let context = window.map_or(past + isl, |w| (past + isl).min(w));
            Work::Decode(DecodeWork::grouped(batch, context, (heads, kv_heads), size, width))
        } else {
            let work = PrefillWork::grouped(batch, isl, (heads, kv_heads), size, width);
            Work::Prefill(PrefillWork { past, window, ..work })
        };
        (shape, work)
    };
    let eight = if key.math8 { Silicon::of(chip, Math::Fp8) } else { None };
    let silicon = eight.or(Silicon::of(chip, Math::Bf16)).ok_or_else(|| format!("{} has no 16-bit peak", chip.id))?;
    let (file, measured) = (String::new(), r.latency()?.get());
    Ok(Row { file, chip: chip.id.clone(), key, shape, silicon, work, measured })
}

/// ln(predicted / measured); the tables repeat each call, so that a small working set is in cache.
fn error(row: &Row, constants: &Constants) -> f64 {
    let timing = match (&row.work, constants) {
        (Work::Decode(w), Constants::Decode(c)) => decode(row.silicon, c, w, Residency::Cache),
        (Work::Prefill(w), Constants::Prefill(c)) => prefill(row.silicon, c, w, Residency::Cache),
        _ => unreachable!("constants are looked up by the phase of the work"),
    };
    float::ln(timing.time.get() / row.measured)
}

/// The files of `catalog/kernels`, by [`Kind`].
type Files = [Arc<AttentionKernels>; 2];

fn files(catalog: &Catalog) -> Result<Files, SpecError> {
    Ok([catalog.attention_kernels()?, catalog.mla_kernels()?])
}

/// The catalogue's constants for a key, exactly or not at all.
fn lookup(files: &Files, key: &Key) -> Option<Constants> {
    fn find<C: Copy>(kernels: &[AttentionKernel<C>], key: &Key) -> Option<C> {
        let heads = match key.heads {
            "single" => Heads::Single,
            "grouped" => Heads::Grouped,
            _ => Heads::Any,
        };
        let same = |k: &&AttentionKernel<C>| {
            (&k.generation, &k.backend, k.heads) == (&key.generation, &key.backend, heads)
                && (k.math8, k.kv8) == (key.math8, key.kv8)
        };
        kernels.iter().find(same).map(|k| k.constants)
    }
    let file = &files[key.kind as usize];
    if key.decode {
        find(&file.decode, key).map(Constants::Decode)
    } else {
        find(&file.prefill, key).map(Constants::Prefill)
    }
}

const HEADINGS: [&str; 6] = ["chip", "kernel", "backend", "heads", "math/kv", "bias"];

fn labels(row: &Row) -> Vec<String> {
    let key = &row.key;
    let kernel = match (key.kind, key.decode) {
        (Kind::Grouped, true) => "decode",
        (Kind::Grouped, false) => "prefill",
        (Kind::Latent, true) => "mla decode",
        (Kind::Latent, false) => "mla prefill",
    };
    let bits = |eight: bool| if eight { "8" } else { "16" };
    let formats = format!("{}/{}", bits(key.math8), bits(key.kv8));
    vec![row.chip.clone(), kernel.to_owned(), key.backend.clone(), key.heads.to_owned(), formats]
}

/// ln(predicted / measured) with what an answer would take: the kernel's own constants, those of its generation or of one
/// alike, else the nearest.
fn off(catalog: &Catalog, files: &Files, row: &Row) -> Result<f64, SpecError> {
    let (chip, file) = (catalog.chip(&row.chip)?, &files[row.key.kind as usize]);
    let key = Key { generation: file.generation(&chip).to_owned(), ..row.key.clone() };
    let format = |eight: bool| if eight { Dtype::Fp8 } else { Dtype::Bf16 };
    let group = if key.heads == "single" { 1 } else { 2 };
    let wanted = Wanted { backend: &key.backend, math: format(key.math8), kv: format(key.kv8), group };
    let nearest = || {
        if key.decode {
            Constants::Decode(file.decode(&chip, wanted).constants)
        } else {
            Constants::Prefill(file.prefill(&chip, wanted).constants)
        }
    };
    let constants = lookup(files, &key).unwrap_or_else(nearest);
    Ok(error(row, &constants))
}

/// Every row beside its prediction.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let files = files(catalog)?;
    Ok(read(catalog, folder)?.map(|row| {
        let (chip, labels) = (catalog.chip(&row.chip)?, labels(&row));
        let what = match &row.work {
            Work::Decode(w) => format!("{w:?}"),
            Work::Prefill(w) => format!("{w:?}"),
        };
        let shape = format!("{} {}, {}", labels[1], labels[4], row.shape);
        let case = Case::on(&chip, &row.file, "attention").of(&row.key.backend, shape, what.replace(',', ";"));
        Ok::<Case, SpecError>(case.off(row.measured, off(catalog, &files, &row)?))
    }))
}

/// Every row against the catalogue: per chip, kernel, engine and format, then in all.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let (Rows { rows, skipped }, files) = (read(catalog, folder)?, files(catalog)?);
    let mut table = Table::new(&HEADINGS, &skipped);
    let scored = table.scored(&rows, |row| off(catalog, &files, row));
    table.group(scored.iter().map(|(row, e)| (labels(row), *e)));
    table.group(scored.iter().map(|(row, e)| (["all", &labels(row)[1], "", "", ""].map(str::to_owned), *e)));
    Ok(table)
}

/// The constants of one file, fitted on a folder's rows and printed as TOML.
pub fn fit(catalog: &Catalog, folder: &Path, kind: Kind) -> Result<String, SpecError> {
    let mut rows = read(catalog, folder)?.rows;
    rows.retain(|row| row.key.backend == "torch" || fitted_on(&row.chip));
    Ok(fit::file(&rows, kind))
}

/// How the constants carry over: left-out head shapes, the neighbouring generation, and our H200 table.
pub fn transfer(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let (rows, files) = (read(catalog, folder)?.rows, files(catalog)?);
    let mut table = Table::new(&["test", "chip", "kernel", "backend", "heads", "math/kv", "bias"], &BTreeMap::new());
    let name = |test: &str, row: &Row| [vec![test.to_owned()], labels(row)].concat();
    let mut errors = Vec::new();
    let mut add = |test: &str, row: &Row, key: &Key| {
        errors.extend(lookup(&files, key).map(|constants| (name(test, row), error(row, &constants))));
    };
    for row in &rows {
        let other = match row.key.generation.as_str() {
            "ampere" => "ada",
            "ada" => "ampere",
            "hopper" => "blackwell",
            _ => "hopper",
        };
        add(&format!("from {other}"), row, &Key { generation: other.to_owned(), ..row.key.clone() });
    }
    for (backend, heads) in [("sglang", ""), ("vllm", ""), ("trtllm", "grouped")] {
        for row in h200(catalog, folder, backend)?.into_iter().flatten() {
            let heads = if row.key.decode { heads } else { "" };
            add("torch from h100", &row, &Key { heads, ..row.key.clone() });
        }
    }
    // The engine whose tables have enough shapes to leave one out.
    errors.extend(fit::without_each_shape(&rows)?.into_iter().map(|(row, e)| (name("shape left out", row), e)));
    table.group(errors);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_their_chip_and_an_unknown_one_is_refused() {
        let csv = "\
system,phase,backend,kernel_source,attn_dtype,kv_cache_dtype,num_heads,num_kv_heads,head_dim,window_size,batch_size,isl,past_kv,latency_us
mi300x,prefill,aiter,fa,bfloat16,bfloat16,32,8,128,0,1,2048,0,300
gfx950,mla_decode,aiter,asm,bfloat16,bfloat16,16,1,576,0,64,1,4096,80
abacus,decode,aiter,fa,bfloat16,bfloat16,32,8,128,0,1,1,2048,20
";
        let catalog = rackmath_catalog::embedded();
        let (names, files) = (Names::new(&catalog), files(&catalog).unwrap());
        let rows = crate::rows::parse(csv).unwrap();
        let prefill = mixed(&names, Kind::Grouped, &rows[0]).unwrap();
        assert_eq!((prefill.chip.as_str(), prefill.key.decode), ("mi300x", false));
        let latent = mixed(&names, Kind::Latent, &absorbed(&rows[1])).unwrap();
        assert_eq!((latent.chip.as_str(), latent.key.decode), ("mi355x", true));
        for row in [prefill, latent] {
            // Nobody timed these kernels: they are predicted with the nearest, as an answer is.
            assert!(off(&catalog, &files, &row).unwrap().is_finite());
        }
        assert!(mixed(&names, Kind::Grouped, &rows[2]).is_err_and(|why| why == "no chip \"abacus\""));
    }

    #[test]
    fn every_fit_of_the_catalogue_is_as_good_as_it_says() {
        for kernels in super::files(&rackmath_catalog::embedded()).unwrap() {
            let fits = kernels.decode.iter().map(|k| k.fit).chain(kernels.prefill.iter().map(|k| k.fit));
            for fit in fits.flatten() {
                // PyTorch's prefill was timed at 18 shapes, every other kernel at many more.
                assert!(fit.rows >= 18 && fit.median <= 0.13 && fit.median <= fit.p90, "{fit:?}");
            }
        }
    }
}
