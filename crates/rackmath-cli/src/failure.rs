//! What goes wrong, as a person reads it: one line of error, one of hint, the fields of a question as its flags.

use rackmath::Error;
use rackmath::field::Field;
use std::fmt;
use std::path::Path;

pub fn at(path: &Path, problem: impl fmt::Display) -> Error {
    Error::file(path.display().to_string(), problem.to_string())
}

/// In the words of a command with these flags.
pub fn text(error: &Error, fields: &[Field]) -> String {
    let flag = |path: &str| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let same = |f: &&Field| f.path == pointer || f.path.ends_with(&pointer);
        let found = fields.iter().find(same).or_else(|| {
            let last = pointer.rsplit('/').next().unwrap_or_default();
            fields.iter().find(|f| f.path.rsplit('/').next() == Some(last))
        });
        found.map_or_else(|| format!("--{}", word(path).replace('_', "-")), |f| format!("--{}", f.flag))
    };
    let shown = error.shown(|path| word(path).to_owned(), flag);
    let hint = shown.hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
    format!("error: {}\n{hint}", shown.problem)
}

/// A field of a request in a sentence.
fn word(path: &str) -> &str {
    const GROUPS: [&str; 10] =
        ["setting.", "traffic.", "fleet.", "flags.", "sglang.", "trtllm.", "mishaps.", "scaling.", "replay.", "tiers."];
    match GROUPS.iter().find_map(|group| path.strip_prefix(group)).unwrap_or(path) {
        "price_usd_per_chip_hour" => "price",
        other => other,
    }
}
