//! What goes wrong, as a person reads it: one line of error, one of hint, the fields of a question as its flags.

use rackmath::Error;
use rackmath::field::Field;
use std::fmt;
use std::path::Path;

pub fn at(path: &Path, problem: impl fmt::Display) -> Error {
    Error::file(path.display().to_string(), problem.to_string())
}

/// In the words of a command with these flags; a number as it was typed.
pub fn text(error: &Error, fields: &[Field], words: &[String]) -> String {
    let flag = |path: &str| {
        let known = find(path, fields).map(|f| format!("--{}", f.flag));
        known.unwrap_or_else(|| format!("--{}", word(path).replace('_', "-")))
    };
    let shown = error.shown(|path| named(path, fields), flag);
    let typed = error.given().and_then(|(path, given)| {
        let (name, value) = typed(find(path, fields).filter(|f| !f.list)?, words)?;
        given.parse::<f64>().ok().map(|_| format!("{name} = {value}"))
    });
    // A file's own fields have one name, whoever reads it.
    let fields = if error.is_of_file() { &[] } else { fields };
    let problem = flagged(&typed.unwrap_or(shown.problem), fields);
    let hint = shown.hint.map_or_else(String::new, |hint| format!("hint: {}\n", flagged(&hint, fields)));
    format!("error: {problem}\n{hint}")
}

/// The flag and the value of a field among the words of a command.
fn typed(field: &Field, words: &[String]) -> Option<(String, String)> {
    let names = [&field.flag].into_iter().chain(&field.aliases).chain(&field.old).map(|name| format!("--{name}"));
    let names: Vec<String> = names.chain(field.short.map(|c| format!("-{c}"))).collect();
    words.iter().enumerate().rev().find_map(|(i, word)| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            None => (word.as_str(), words.get(i + 1)?.as_str()),
        };
        names.iter().any(|known| known == name).then(|| (name.to_owned(), value.to_owned()))
    })
}

/// The field at the end of a path, or of the same name elsewhere.
fn find<'a>(path: &str, fields: &'a [Field]) -> Option<&'a Field> {
    let pointer = format!("/{}", path.replace('.', "/"));
    let last = pointer.rsplit('/').next().unwrap_or_default().to_owned();
    let same = |f: &&Field| f.path == pointer || f.path.ends_with(&pointer);
    fields.iter().find(same).or_else(|| fields.iter().find(|f| f.path.rsplit('/').next() == Some(&last)))
}

/// Fields as they are typed; words that stand at their place, and names of none, as words.
fn named(path: &str, fields: &[Field]) -> String {
    let one = |path: &str| match find(path, fields) {
        Some(f) if f.position.is_none() => format!("--{}", f.flag),
        _ => word(path).to_owned(),
    };
    let all = path.split(", ").map(|some| some.split(" and ").map(one).collect::<Vec<_>>().join(" and "));
    all.collect::<Vec<_>>().join(", ")
}

/// Names of fields that are no words, as their flags.
fn flagged(text: &str, fields: &[Field]) -> String {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !inside(c)) {
        let name = part.trim_end_matches(|c: char| !inside(c));
        // What stands in quotes is to be written as it is.
        let ours = name.contains('_') && !name.starts_with('-') && !out.ends_with(['"', '`']);
        let known = ours.then(|| find(name, fields)).flatten();
        match known {
            Some(f) => out.extend(["--", &f.flag, &part[name.len()..]]),
            None => out.push_str(part),
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath::ask::{Question, Terms};
    use rackmath_units::{Cancel, Effort};
    use serde_json::{Value, json};

    /// Every number of every question, far too large and below zero: what is refused is named as it was typed.
    #[test]
    fn a_number_that_cannot_be_is_named_by_its_flag() {
        let (catalog, mut refused) = (rackmath_catalog::embedded(), 0);
        for question in Question::ALL {
            // Sharper questions are asked where a number out of bounds is all there is to see.
            let fields = question.fields();
            for field in fields.iter().filter(|f| f.default.is_number() || f.optional).filter(|f| !f.list) {
                for wrong in [json!(-1.0), json!(1e300)] {
                    let mut request = json!({});
                    let at: Vec<&str> = field.path.split('/').skip(1).collect();
                    let (last, outer) = at.split_last().unwrap();
                    let inner = outer.iter().fold(&mut request, |v: &mut Value, name| {
                        v[*name] = json!({});
                        &mut v[*name]
                    });
                    inner[*last] = wrong.clone();
                    let Err(error) = question.answer(&catalog, as_object(&request), &soon_over()) else {
                        continue;
                    };
                    if error.given().is_none_or(|(path, _)| !path.ends_with(last)) {
                        continue;
                    }
                    refused += 1;
                    let said = text(&error, &fields, &[]);
                    let own = if field.position.is_some() { (*last).to_owned() } else { format!("--{}", field.flag) };
                    let first = said.lines().next().unwrap();
                    // Two that only go together are named together.
                    let both = first.starts_with("error: --from, --to = ");
                    assert!(both || first.starts_with(&format!("error: {own} = ")), "{}: {said}", field.path);
                    for other in fields.iter().filter_map(|f| f.path.rsplit('/').next()).filter(|n| n.contains('_')) {
                        let name = |w: &str| w.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_')) == other;
                        assert!(!said.split_whitespace().any(name), "{other} in {said}");
                    }
                }
            }
        }
        assert!(refused > 100, "{refused}");
    }

    /// What is refused is refused before there is anything to search: long work is not wanted.
    fn soon_over() -> Terms {
        Terms { effort: Effort { cancel: Cancel::after(0), ..Effort::default() }, ..Terms::default() }
    }

    fn as_object(value: &Value) -> serde_json::Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_number_is_shown_as_it_was_typed() {
        let error = Error::value("sure", 0.999_9, "less; or rate_per_s");
        for (line, first) in
            [("--sure 99.99%", "--sure = 99.99%"), ("--sure=0.9999", "--sure = 0.9999"), ("", "--sure = 0.9999")]
        {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let said = text(&error, &Question::Plan.fields(), &words);
            assert_eq!(said, format!("error: {first}\nhint: expected less; or --rate\n"));
        }
    }
}
