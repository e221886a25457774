//! How often the guesses of a drafter hold, by who guesses and what is written: published figures, each with its source.

use crate::SpecError;
use crate::error::one_of;
use crate::file::noun::{cited, text};
use serde::Deserialize;
use strum::{Display, IntoStaticStr, VariantArray};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptances {
    pub as_of: String,
    pub lookup: Lookup,
    pub pass: DraftPass,
    pub head: Head,
    pub accepted: Vec<Accepted>,
}

/// What looking words up costs the host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookup {
    pub s_per_token: f64,
    pub source: String,
}

/// What a pass of a drafter costs beside its work on the chips.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftPass {
    pub host_s: f64,
    pub source: String,
}

/// A head of one layer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Words it may guess.
    pub words: u64,
    pub source: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    #[serde(deserialize_with = "text")]
    pub drafter: DrafterKind,
    /// Of any kind where none is meant.
    #[serde(deserialize_with = "text")]
    pub workload: Workload,
    /// Chance that the first guess of a step holds, and its ends over what was seen.
    pub first: f64,
    pub low: f64,
    pub high: f64,
    /// By which each later guess holds less often, given those before it.
    pub fade: f64,
    pub source: String,
    pub note: String,
}

/// Who guesses tokens ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum DrafterKind {
    /// Layers the model brings along for it.
    Mtp,
    /// A head of one layer, trained on the model.
    Eagle3,
    /// A smaller model.
    Model,
    /// A look-up in the text itself.
    Ngram,
}

/// What is written, as far as guesses care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Workload {
    Chat,
    Code,
    Math,
    Summary,
    /// Tool calls and the like.
    Agent,
    /// Answers that repeat their prompt: edits, extraction.
    Repetitive,
    /// No particular one.
    Any,
}

impl std::str::FromStr for DrafterKind {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        one_of("drafter", text)
    }
}

impl std::str::FromStr for Workload {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        one_of("workload", text)
    }
}

impl Acceptances {
    /// What was seen of a drafter on a workload; else on no particular one, else in chats. Every drafter has one of these.
    pub fn of(&self, drafter: DrafterKind, workload: Workload) -> Option<&Accepted> {
        let seen = |workload| self.accepted.iter().find(|a| a.drafter == drafter && a.workload == workload);
        [workload, Workload::Any, Workload::Chat].into_iter().find_map(seen)
    }
}

pub(crate) fn read(id: &str, text: &str) -> Result<Acceptances, SpecError> {
    let file = format!("support {id}");
    let all: Acceptances = cited(&file, id, text, &["id", "lookup.note", "pass.note"])?;
    let share = |x: f64| (0.0..=1.0).contains(&x);
    for a in &all.accepted {
        let field = format!("accepted of {} on {}", a.drafter, a.workload);
        if !(share(a.low) && share(a.high) && a.low <= a.first && a.first <= a.high) {
            return Err(SpecError::field(&file, field, a.first, "a share between the lowest and the highest seen"));
        }
        if !(a.fade > 0.0 && a.fade <= 1.0) {
            return Err(SpecError::field(&file, field, a.fade, "a fade above 0, at most 1"));
        }
    }
    if !(all.pass.host_s >= 0.0 && all.pass.host_s < 1.0) {
        return Err(SpecError::field(&file, "pass.host_s", all.pass.host_s, "a time of 0 or above"));
    }
    if !(all.lookup.s_per_token >= 0.0 && all.lookup.s_per_token < 1.0) {
        return Err(SpecError::field(&file, "lookup.s_per_token", all.lookup.s_per_token, "a time of 0 or above"));
    }
    match DrafterKind::VARIANTS.iter().find(|d| all.of(**d, Workload::Any).is_none()) {
        Some(none) => Err(SpecError::field(&file, "accepted", none, "a figure for chats or for anything")),
        None => Ok(all),
    }
}
