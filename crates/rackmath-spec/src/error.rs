//! What can be wrong with what a person handed in: the problem, the field it is about, and what would do instead.

use rackmath_units::Cancelled;
use std::fmt;

/// A name, file or value that cannot be used, with the nearest thing that can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The file or command line it was found in.
    file: Option<String>,
    /// The path of the field: of the request such as `setting.chips`, or inside the file.
    field: Option<String>,
    problem: Problem,
    /// A field it advises to give stands in braces, by its path.
    hint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Value(String),
    Said(String),
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Shown {
    pub problem: String,
    pub field: Option<String>,
    pub hint: Option<String>,
}

impl SpecError {
    /// A problem of which there is nothing more to say than a sentence.
    pub fn said(problem: impl Into<String>) -> Self {
        Self { file: None, field: None, problem: Problem::Said(problem.into()), hint: None }
    }

    /// A field of a request with a value that cannot be, and what would be accepted.
    pub fn value(field: impl Into<String>, given: impl ToString, expected: impl Into<String>) -> Self {
        let hint = Some(format!("expected {}", expected.into()));
        Self { file: None, field: Some(field.into()), problem: Problem::Value(given.to_string()), hint }
    }

    /// A field of a file with a value that cannot be.
    pub fn field(
        file: impl AsRef<str>,
        field: impl Into<String>,
        given: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        Self::value(field, shorten(&given.to_string()), expected).within(file)
    }

    /// A file that is too large, not text, or not in its format.
    pub fn file(file: impl AsRef<str>, problem: impl Into<String>) -> Self {
        Self::said(problem).within(file)
    }

    /// A word that names nothing in the catalogue or in a closed list, with its nearest neighbours among the valid ones.
    pub fn unknown<'a>(kind: &str, given: &str, valid: impl Iterator<Item = &'a str>) -> Self {
        Self::unknown_near(kind, given, given, valid)
    }

    /// The same where only a part of what was given is to be compared with the valid words.
    pub fn unknown_near<'a>(kind: &str, given: &str, part: &str, valid: impl Iterator<Item = &'a str>) -> Self {
        let valid: Vec<&str> = valid.collect();
        let hint = did_you_mean(&nearest(part, valid.iter().copied()));
        let few = (1..=40).contains(&valid.len()).then(|| format!("expected {}", valid.join(", ")));
        Self { hint: hint.or(few), ..Self::said(format!("no {kind} \"{}\"", shorten(given))) }
    }

    /// Whether there is nothing wrong but that the answer is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.problem == Problem::Cancelled
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Whether it says already what would do.
    pub(crate) fn hinted(&self) -> bool {
        self.hint.is_some()
    }

    /// The same, of a field, unless it names one already.
    #[must_use]
    pub fn at(self, field: &str) -> Self {
        Self { field: self.field.or_else(|| Some(field.into())), ..self }
    }

    /// The same, found in a file.
    #[must_use]
    pub fn within(self, file: impl AsRef<str>) -> Self {
        let file = path(file.as_ref());
        Self { file: Some(self.file.map_or(file.clone(), |inner| format!("{file}: {inner}"))), ..self }
    }

    /// The same without the file it was found in, where that goes without saying.
    #[must_use]
    pub fn without_file(self) -> Self {
        Self { file: None, ..self }
    }

    /// The field of a request with a value that cannot be, and the value.
    pub fn given(&self) -> Option<(&str, &str)> {
        match (&self.problem, &self.field, &self.file) {
            (Problem::Value(given), Some(field), None) => Some((field, given)),
            _ => None,
        }
    }

    /// Whether it was found in a file, whose fields are called as they are there.
    pub fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    /// The error in a face's words: how it names a field, and how it says which one to give.
    pub fn shown(&self, name: impl Fn(&str) -> String, give: impl Fn(&str) -> String) -> Shown {
        // A file's own fields have one name, whoever reads it.
        let field = self.field.as_deref().map(|path| if self.file.is_some() { path.to_owned() } else { name(path) });
        let problem = match (&self.problem, &field) {
            (Problem::Value(given), Some(field)) => format!("{field} = {given}"),
            (Problem::Value(said) | Problem::Said(said), _) => said.clone(),
            (Problem::Cancelled, _) => Cancelled.to_string(),
        };
        let problem = self.file.as_ref().map_or(problem.clone(), |file| format!("{file}: {problem}"));
        let spelled = |hint: &String| {
            // Braces around anything but the name of a field are a text's own, such as those of JSON.
            let named = |field: &str| {
                !field.is_empty() && field.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
            };
            let mut parts = hint.split('{');
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |text, part| match part.split_once('}') {
                Some((field, rest)) if named(field) => text + &give(field) + rest,
                _ => text + "{" + part,
            })
        };
        Shown { problem, field, hint: self.hint.as_ref().map(spelled) }
    }
}

impl From<Cancelled> for SpecError {
    fn from(_: Cancelled) -> Self {
        Self { problem: Problem::Cancelled, ..Self::said("") }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.shown(str::to_owned, str::to_owned);
        f.write_str(&shown.problem)?;
        shown.hint.map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for SpecError {}

/// A word of a closed list; without regard to what stands around it, and with the nearest words on a miss.
pub fn word<T>(kind: &'static str, text: &str) -> Result<T, SpecError>
where
    T: std::str::FromStr + strum::VariantArray + Copy + Into<&'static str>,
{
    let words = || T::VARIANTS.iter().map(|v| (*v).into());
    text.trim().parse().map_err(|_| SpecError::unknown(kind, text, words()))
}

/// The word of a closed list that is written so, in any case; with the nearest words on a miss.
pub(crate) fn one_of<T: strum::VariantArray + Copy + Into<&'static str>>(
    kind: &str,
    text: &str,
) -> Result<T, SpecError> {
    let words = || T::VARIANTS.iter().map(|v| (*v).into());
    let found = words().position(|word| word.eq_ignore_ascii_case(text.trim()));
    found.map(|at| T::VARIANTS[at]).ok_or_else(|| SpecError::unknown(kind, text, words()))
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

/// A question that names the nearest words, where there are any.
pub(crate) fn did_you_mean(nearest: &[String]) -> Option<String> {
    let quoted: Vec<String> = nearest.iter().map(|w| format!("\"{w}\"")).collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
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

    #[test]
    fn each_face_names_the_field_in_its_own_way() {
        let error = SpecError::value("setting.price", "a; b", "dollars, with {price}");
        let flag = |path: &str| format!("--{path}");
        let shown = error.shown(|path| path.rsplit('.').next().expect("a part").to_owned(), flag);
        assert_eq!((shown.problem.as_str(), shown.field.as_deref()), ("price = a; b", Some("price")));
        assert_eq!(shown.hint.as_deref(), Some("expected dollars, with --price"));
        assert_eq!(error.within("x.toml").to_string(), "x.toml: setting.price = a; b; expected dollars, with price");
    }
}
