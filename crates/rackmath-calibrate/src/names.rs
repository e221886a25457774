//! Names of published tables as words of the catalogue: whole names, by `data/names.toml` or the catalogue's own aliases.

use rackmath_spec::engine::Version;
use rackmath_spec::{Catalog, Chip};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Finds names; each is looked up once.
pub struct Names<'a> {
    pub catalog: &'a Catalog,
    table: Table,
    found: RefCell<BTreeMap<(bool, String), Option<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    model: BTreeMap<String, String>,
    chip: BTreeMap<String, String>,
    engine: BTreeMap<String, String>,
    format: BTreeMap<String, String>,
    inferencex: BTreeMap<String, String>,
    may_draft: Vec<String>,
    /// Versions of vLLM by the month from which they were the newest.
    released: Vec<(String, String)>,
    /// Requests of a max-load run of TensorRT-LLM, by the lengths of prompts and answers.
    requests: BTreeMap<String, f64>,
    /// What engines of TensorRT-LLM were built for, by model and chips.
    built: BTreeMap<String, Vec<Built>>,
}

/// The most sequences and tokens of a pass that an engine was built for, for sequences of one length or of any.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Built {
    length: Option<f64>,
    pub sequences: f64,
    pub tokens: f64,
}

/// Upper and lower case, and how words are joined, do not matter.
fn key(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace(['_', ' '], "-")
}

impl<'a> Names<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        let mut table: Table = toml::from_str(include_str!("../data/names.toml")).expect("a test reads the table");
        let Table { model, chip, engine, format, inferencex, .. } = &mut table;
        for names in [model, chip, engine, format, inferencex] {
            *names = std::mem::take(names).into_iter().map(|(name, id)| (key(&name), id)).collect();
        }
        Self { catalog, table, found: RefCell::default() }
    }

    pub fn model(&self, name: &str) -> Option<String> {
        self.cached(true, name, |bare| self.catalog.model(bare).ok().map(|m| m.id.clone()))
    }

    /// The same; a name nobody knows is kept, so that whoever asks for the model is told it.
    pub fn named(&self, name: &str) -> String {
        self.model(name).unwrap_or_else(|| name.to_owned())
    }

    /// How many requests a max-load run of such lengths has; none where that is not published.
    pub fn requests(&self, input: f64, output: f64) -> Option<f64> {
        self.table.requests.get(&format!("{input}/{output}")).copied()
    }

    /// What an engine was built for; none where the table does not say.
    pub fn built(&self, model: &str, tp: u64, length: f64) -> Option<Built> {
        let all = self.table.built.get(&format!("{model}/{tp}"))?;
        all.iter().find(|built| built.length.is_none_or(|l| l == length)).copied()
    }

    /// The version of vLLM that was the newest on a date; none before all of them.
    pub fn released(&self, date: &str) -> Option<String> {
        let known = self.table.released.iter().rev().find(|(from, _)| !date.is_empty() && date >= from.as_str());
        known.map(|(_, version)| version.clone())
    }

    /// Whether its servers may have drafted tokens without saying so.
    pub fn may_draft(&self, id: &str) -> bool {
        self.table.may_draft.iter().any(|name| name == id)
    }

    pub fn chip(&self, name: &str) -> Option<String> {
        self.cached(false, name, |bare| self.catalog.chip(bare).ok().map(|c| c.id.clone()))
    }

    /// The chip a table names; one that nobody knows is looked for once.
    pub fn found(&self, name: &str) -> Result<Arc<Chip>, String> {
        let id = self.chip(name).ok_or_else(|| format!("no chip \"{name}\""))?;
        self.catalog.chip(&id).map_err(|e| e.to_string())
    }

    /// So many of a chip; a name nobody knows is kept.
    pub fn system(&self, n: u64, chip: &str) -> String {
        let chip = self.chip(chip).unwrap_or_else(|| chip.to_ascii_lowercase());
        if n == 1 { chip } else { format!("{n}x{chip}") }
    }

    /// An engine with its version where it has one. A name nobody knows is kept; one that stands for another engine has
    /// releases of its own, which say nothing.
    pub fn engine(&self, name: &str, version: &str) -> String {
        if let Some(other) = self.table.engine.get(&key(name)) {
            return other.clone();
        }
        let word = name.trim().to_ascii_lowercase();
        let first = version.split_whitespace().next().unwrap_or("");
        let numbered = first.contains('.') && first.parse::<Version>().is_ok();
        if numbered { format!("{word}@{first}") } else { word }
    }

    /// The format that a word means, nothing where weights are the checkpoint's own; an unknown word stays as it is.
    pub fn format(&self, word: &str) -> Option<String> {
        let known = self.table.format.get(&key(word)).cloned();
        Some(known.unwrap_or_else(|| word.to_ascii_lowercase())).filter(|format| !format.is_empty())
    }

    /// The same of a word of InferenceX about a model.
    pub fn inferencex_format(&self, model: &str, word: &str) -> Option<String> {
        let known = self.table.inferencex.get(&key(&format!("{model} {word}"))).cloned();
        match known {
            Some(format) => Some(format).filter(|format| !format.is_empty()),
            // The open 4-bit format is a checkpoint's own only where the table says so.
            None if key(word) == "mxfp4" => Some("mxfp4".to_owned()),
            None => self.format(word),
        }
    }

    fn cached(&self, model: bool, name: &str, find: impl Fn(&str) -> Option<String>) -> Option<String> {
        let known = self.found.borrow().get(&(model, name.to_owned())).cloned();
        known.unwrap_or_else(|| {
            let table = if model { &self.table.model } else { &self.table.chip };
            let listed = table.get(&key(name)).cloned();
            // Published names may carry an organisation.
            let bare = || name.rsplit_once('/').and_then(|(_, bare)| find(bare));
            let id = listed.or_else(|| find(name)).or_else(bare);
            self.found.borrow_mut().insert((model, name.to_owned()), id.clone());
            id
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole_or_not_at_all() {
        let catalog = rackmath_catalog::embedded();
        let names = Names::new(&catalog);
        for (name, id) in [
            ("deepseek-ai/DeepSeek-R1", Some("deepseek-v3")),
            ("nvidia/DeepSeek-V3.1-NVFP4", Some("deepseek-v3")),
            ("deepseek-ai/DeepSeek-V3.2", Some("deepseek-v3.2")),
            ("DeepSeek R1 Distill 7B", Some("qwen2.5-7b")),
            ("deepseek-something-new", None),
            ("meta-llama/Llama-3.1-70B-Instruct", Some("llama-3.1-70b")),
        ] {
            assert_eq!(names.model(name).as_deref(), id, "{name}");
        }
        assert_eq!(names.system(8, "H200-SXM-141GB"), "8xh200");
        assert_eq!(names.system(1, "Abacus"), "abacus");
        assert_eq!(names.inferencex_format("deepseek-v3", "fp8"), None);
        assert_eq!(names.inferencex_format("deepseek-v3", "nvfp4").as_deref(), Some("nvfp4"));
        assert_eq!(names.format("FP8").as_deref(), Some("fp8"));
        assert_eq!(names.format("Q4_K_M").as_deref(), Some("q4_k_m"));
        assert_eq!(names.inferencex_format("gpt-oss-120b", "mxfp4"), None);
        assert_eq!(names.inferencex_format("deepseek-v3", "mxfp4").as_deref(), Some("mxfp4"));
        assert_eq!(names.engine("vLLM", "0.10.2"), "vllm@0.10.2");
        assert_eq!(names.engine("vllm", "0.26.1rc1 rocm 7.2.3"), "vllm@0.26.1rc1");
        assert_eq!(names.engine("sglang", "2026-09"), "sglang");
        assert_eq!(names.engine("atom-vllm", "0.1.2"), "atom");
        assert_eq!(names.engine("abacus", ""), "abacus");
    }

    #[test]
    fn every_name_of_the_table_leads_into_the_catalogue() {
        let catalog = rackmath_catalog::embedded();
        let names = Names::new(&catalog);
        assert!(names.table.model.values().all(|id| catalog.model(id).is_ok()));
        assert!(names.table.chip.values().all(|id| catalog.chip(id).is_ok()));
        assert!(names.table.engine.values().all(|id| catalog.engine(id).is_ok()));
        assert!(names.table.may_draft.iter().all(|id| catalog.model(id).is_ok_and(|m| m.id == *id)));
        let formats = names.table.format.values().filter(|f| !f.is_empty());
        assert!(formats.map(|f| f.parse::<rackmath_spec::Dtype>()).all(|f| f.is_ok()));
    }
}
