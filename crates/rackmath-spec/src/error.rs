//! What can be wrong with what a person handed in.

use thiserror::Error;

/// A name, file or value that cannot be used, with the nearest thing that can.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    /// A word that names nothing in the catalogue or in a closed list.
    #[error("no {kind} \"{given}\"{}", hint_or(nearest, valid))]
    Unknown {
        /// What kind of thing was asked for.
        kind: &'static str,
        /// The word as given, shortened.
        given: String,
        /// The closest valid words, best first.
        nearest: Vec<String>,
        /// All valid words, where they are few.
        valid: Vec<String>,
    },
    /// A file that is too large, not text, or not in its format.
    #[error("{file}: {problem}")]
    File {
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A field with a value that cannot be.
    #[error("{file}: {field} = {given}; expected {expected}")]
    Field {
        file: String,
        field: String,
        /// The value as given, shortened.
        given: String,
        /// What would be accepted.
        expected: String,
    },
    /// An architecture this reader does not know.
    #[error(
        "{file}: architecture \"{architecture}\" is not known, so its parameters and KV cache cannot be counted{}; fields not understood: {}",
        hint(nearest),
        listed(fields)
    )]
    Architecture {
        file: String,
        /// What it calls itself.
        architecture: String,
        /// Known architectures with a similar name.
        nearest: Vec<String>,
        /// Fields beyond those every architecture shares.
        fields: Vec<String>,
    },
    /// A known architecture with fields that would change its shapes in a way this reader does not know.
    #[error(
        "{file}: fields that may change the shapes of \"{architecture}\" are not understood: {}; if they do not, remove them from a copy of the file",
        listed(fields)
    )]
    Fields {
        file: String,
        /// What it calls itself.
        architecture: String,
        fields: Vec<String>,
    },
}

impl SpecError {
    /// An unknown word, with its nearest neighbours among the valid ones.
    pub fn unknown<'a>(kind: &'static str, given: &str, valid: impl Iterator<Item = &'a str>) -> Self {
        let valid: Vec<&str> = valid.collect();
        let nearest = nearest(given, valid.iter().copied());
        let few = if valid.len() <= 16 { valid.into_iter().map(str::to_owned).collect() } else { Vec::new() };
        Self::Unknown { kind, given: shorten(given), nearest, valid: few }
    }
}

/// The closest words to a mistyped one, best first: at most three, and none that is far off.
pub fn nearest<'a>(given: &str, valid: impl Iterator<Item = &'a str>) -> Vec<String> {
    let given = given.trim().to_lowercase();
    let mut scored: Vec<(f64, &str)> = valid
        .map(|word| {
            let lower = word.to_lowercase();
            // Slips of the finger count by edits; the start of a longer name counts too.
            let contained = given.len() >= 3 && lower.contains(&given);
            let score = strsim::normalized_damerau_levenshtein(&given, &lower) + if contained { 0.2 } else { 0.0 };
            (score, word)
        })
        .filter(|(score, _)| *score > 0.5)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, word)| word.to_owned()).collect()
}

/// At most forty characters of what was given, so that a hostile file cannot flood the terminal.
pub(crate) fn shorten(text: &str) -> String {
    clean(text, 40)
}

/// A file's path, whole: a person has to find the file again. Longer than any real path is cut all the same.
pub(crate) fn path(text: &str) -> String {
    clean(text, 4096)
}

fn clean(text: &str, most: usize) -> String {
    let clean: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.len() < text.len() { clean + "…" } else { clean }
}

/// The nearest words, or all of them when none is near and they are few.
fn hint_or(nearest: &[String], valid: &[String]) -> String {
    if nearest.is_empty() && !valid.is_empty() { format!("; expected {}", valid.join(", ")) } else { hint(nearest) }
}

fn hint(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        words => {
            let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
            format!("; did you mean {}?", quoted.join(" or "))
        }
    }
}

fn listed(fields: &[String]) -> String {
    if fields.is_empty() { "none".into() } else { fields.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word() {
        let words = ["deepseek-v3", "deepseek-v2", "llama-3.1-8b"];
        assert_eq!(nearest("deepsek-v3", words.into_iter())[0], "deepseek-v3");
        assert!(nearest("zzzz", words.into_iter()).is_empty());
        assert_eq!(shorten(&"x".repeat(1000)).chars().count(), 41);
        assert_eq!(path(&"x".repeat(1000)).chars().count(), 1000);
    }
}
