//! Command lines of servers: what a person typed, read as the engine reads it.
//!
//! `words` splits a line as a shell does, `find` says which server it starts (also inside a container, a compose file or a
//! manifest), this page takes its flags apart by the list of its version, and `mean` says what they mean. Nothing is passed
//! over in silence: every flag is obeyed, known to change nothing here, not modelled, of another version, or unknown.

pub mod find;
mod mean;
pub mod pattern;
mod tables;
pub mod words;
pub mod yaml;

pub use find::{Started, chosen, find};
pub use mean::launch;
pub use tables::Means;

use crate::command::{Age, FlagList};
use crate::error::nearest;
use crate::file::flags::Tool;
use crate::launch::Start;
use crate::{Layout, SpecError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use strum::{Display, IntoStaticStr, VariantArray};
use words::Word;

/// Whose server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Program {
    Vllm,
    Sglang,
    TrtLlm,
    LlamaCpp,
}

impl Program {
    /// Its name as its makers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::TrtLlm => "TensorRT-LLM",
            Self::LlamaCpp => "llama.cpp",
        }
    }

    /// The list of flags its server takes.
    pub fn list(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TrtLlm => "trtllm",
            Self::LlamaCpp => "llama-server",
        }
    }

    /// How it cuts models, where its flags can say.
    pub fn tool(self) -> Option<Tool> {
        match self {
            Self::Vllm => Some(Tool::Vllm),
            Self::Sglang => Some(Tool::Sglang),
            Self::TrtLlm => Some(Tool::TrtLlm),
            Self::LlamaCpp => None,
        }
    }
}

/// A flag as it stands on the line or in a file of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Its name as the lists spell it, with dashes; parts of a value behind dots: `--compilation-config.cudagraph-mode`.
    pub name: String,
    pub value: Option<Value>,
    /// The word it stands in, for complaints.
    pub word: Word,
}

/// What becomes of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// It bears on the answer and is obeyed.
    Obeyed,
    /// It changes neither memory nor speed here.
    Idle,
    /// It bears on memory, layout or schedule, and is not modelled; why, where there is more to say.
    Unmodelled(Option<String>),
    /// Another version has it; what this one has in its place, where that is known.
    Other { since: Option<String>, until: Option<String>, instead: Option<String> },
    /// No version has it; the nearest that one has.
    Unknown(Option<String>),
}

/// A flag and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// As typed.
    pub flag: String,
    pub value: Option<String>,
    /// Its word on the line; 0 in a file of settings.
    pub place: usize,
    pub used: Use,
    /// What it sets, where that is more than a degree of the layout.
    pub sets: Option<Means>,
}

/// What a command line says, whatever the engine calls it.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub program: Program,
    pub version: Option<String>,
    pub image: Option<String>,
    /// Cards the container and `CUDA_VISIBLE_DEVICES` leave it; 0 where they hide all.
    pub gpus: Option<u64>,
    pub model: Option<String>,
    pub layout: Layout,
    /// Whether anything was said of the layout.
    pub cut: bool,
    pub start: Start,
    /// The longest sequence is what memory holds: `--max-model-len auto`.
    pub fit_longest: bool,
    /// The format weights are made to be in, of ours.
    pub weights: Option<String>,
    /// What the engine calls the way to it: `awq_marlin`, `fp8`.
    pub method: Option<String>,
    /// The type that is computed in, where it is named.
    pub dtype: Option<String>,
    /// The cache's format.
    pub kv: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Every flag and variable, in order.
    pub flags: Vec<Reading>,
}

/// Takes a line's own words apart by the list of the command: flags with their values, and what stands by itself.
pub fn said(list: &FlagList, words: &[Word], version: Option<&str>) -> Result<(Vec<Said>, Vec<Word>), SpecError> {
    let (mut flags, mut alone): (Vec<Said>, Vec<Word>) = (Vec::new(), Vec::new());
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if word.is("--") {
            alone.extend(words.by_ref().cloned());
            break;
        }
        if !word.is_flag() {
            alone.push(word.clone());
            continue;
        }
        let (typed, attached) = match word.text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.text.as_str(), None),
        };
        // -O3 is a flag and its value in one.
        let (typed, attached) = match typed.strip_prefix("-O") {
            Some(level) if !level.is_empty() && level.parse::<u64>().is_ok() => ("-O", Some(level.to_owned())),
            _ => (typed, attached),
        };
        let (base, inner) = match typed.split_once('.') {
            Some((base, inner)) => (spelled(list, base, version), Some(inner.replace('_', "-"))),
            None => (spelled(list, typed, version), None),
        };
        let truth = |text: &str| matches!(text, "true" | "false" | "True" | "False");
        let value = match attached {
            Some(value) => Some(Value::String(value)),
            None if list.switch(&base) && inner.is_none() => {
                let next = words.next_if(|next| truth(&next.text));
                next.map(|next| Value::String(next.text.clone()))
            }
            None => {
                let first = words.next_if(|next| !next.is_flag()).map(|next| next.text.clone());
                match first {
                    Some(first) if list.takes_many(&base) => {
                        let rest = std::iter::from_fn(|| words.next_if(|next| !next.is_flag()));
                        let all = std::iter::once(first).chain(rest.map(|next| next.text.clone()));
                        Some(Value::Array(all.map(Value::String).collect()))
                    }
                    first => first.map(Value::String),
                }
            }
        };
        match inner {
            // `--config.key` and `--config.list+` are parts of the value.
            Some(inner) => {
                let name = format!("{base}.{}", inner.trim_end_matches('+'));
                flags.push(Said { name, value, word: word.clone() });
            }
            None => flags.extend(parts(base, value, word)?),
        }
    }
    Ok((flags, alone))
}

/// Flags of a file of settings: its keys are flags, or parts of them behind dots.
pub fn configured(text: &str) -> Result<Vec<Said>, SpecError> {
    let mut all = Vec::new();
    for document in yaml::documents(text)? {
        let Value::Object(map) = document else {
            return Err(
                SpecError::said("the file of settings holds no keys").hint("expected lines such as max_batch_size: 64")
            );
        };
        for (key, value) in map {
            let name = format!("--{}", key.replace('_', "-"));
            let word = Word { text: key, place: 0, quoted: true };
            inside(&name, value, &word, &mut all);
        }
    }
    Ok(all)
}

fn inside(name: &str, value: Value, word: &Word, all: &mut Vec<Said>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                inside(&format!("{name}.{}", key.replace('_', "-")), value, word, all);
            }
        }
        value => all.push(Said { name: name.to_owned(), value: Some(value), word: word.clone() }),
    }
}

/// A flag, or the parts of its value where that is written as JSON.
fn parts(base: String, value: Option<Value>, word: &Word) -> Result<Vec<Said>, SpecError> {
    let json = value.as_ref().and_then(Value::as_str).map(str::trim).filter(|text| text.starts_with('{'));
    let Some(json) = json else { return Ok(vec![Said { name: base, value, word: word.clone() }]) };
    let read: Value = serde_json::from_str(json).map_err(|error| {
        // Quotes that a shell took away leave names bare: what was meant is JSON with quotes around the words.
        let near: String = quoted(json).unwrap_or_else(|| "{\"method\": \"ngram\"}".into());
        let near: String = near.chars().take(120).collect();
        word.wrong(format!("its value is not JSON: {error}"))
            .hint(format!("write words in double quotes and the whole in single ones: '{near}'"))
    })?;
    let mut all = Vec::new();
    inside(&base, read, word, &mut all);
    Ok(all)
}

/// What a value would be with quotes around its words, where that is JSON: `{method: ngram}`.
fn quoted(text: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let (mut all, mut word) = (String::new(), String::new());
    for c in text.chars().filter(|c| !matches!(c, '"' | '\'')).chain([' ']) {
        if plain(c) {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            let bare = word.parse::<f64>().is_ok() || matches!(word.as_str(), "true" | "false" | "null");
            let sign = if bare { "" } else { "\"" };
            all.extend([sign, &word, sign]);
            word.clear();
        }
        all.push(c);
    }
    serde_json::from_str::<Value>(&all).is_ok().then(|| all.trim().to_owned())
}

/// A flag as the list spells it at a version: `_` and `-` are one to some parsers, and parsers of Python take the beginning
/// of a name for the name where no other begins so.
fn spelled(list: &FlagList, typed: &str, version: Option<&str>) -> String {
    let dashes = typed.replace('_', "-");
    let lines = format!("--{}", typed.trim_start_matches('-').replace('-', "_"));
    let forms = [typed, &dashes, &lines];
    let known = |name: &str| list.age(name, version) == Age::Known;
    if let Some(own) = forms.iter().find(|name| known(name)) {
        return (*own).to_owned();
    }
    let begins = |name: &&str| typed.len() > 3 && forms.iter().any(|form| name.starts_with(form)) && known(name);
    let whole: BTreeSet<&str> = list.all().filter(begins).collect();
    if whole.len() == 1 {
        return whole.into_iter().collect();
    }
    let other = forms.iter().find(|name| list.age(name, None) != Age::Never);
    (*other.unwrap_or(&typed)).to_owned()
}

/// What the list says of a flag at a version.
pub(crate) fn judged(list: &FlagList, flag: &str, version: Option<&str>) -> Use {
    let base = flag.split('.').next().unwrap_or(flag);
    match list.age(base, version) {
        Age::Known => Use::Idle,
        Age::Other { since, until } => {
            let instead = list.history.as_ref().and_then(|history| history.instead.get(base).cloned());
            Use::Other { since, until, instead: instead.filter(|_| version.is_none()) }
        }
        Age::Never => Use::Unknown(alike(list, base)),
    }
}

/// The flag that was meant, if one is near; the dashes that all begin with are no likeness.
fn alike(list: &FlagList, flag: &str) -> Option<String> {
    let named = list.all().map(|flag| flag.trim_start_matches('-'));
    let word = nearest(flag.trim_start_matches('-'), named).into_iter().next()?;
    list.all().find(|flag| flag.trim_start_matches('-') == word).map(str::to_owned)
}
