//! `rackmath glossary`: the words of this field in a line each, and the command that goes into them.

use crate::output::{Output, print};
use clap::ArgMatches;
use rackmath::{Catalog, Error};
use rackmath_report::Style;
use serde::Serialize;

/// A word, what it means, and who says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    #[serde(rename = "term")]
    pub word: &'static str,
    pub meaning: &'static str,
    pub more: &'static str,
}

/// All of them, by name: `word: meaning. command`.
pub fn terms() -> impl Iterator<Item = Term> {
    include_str!("glossary.txt").lines().filter_map(|line| {
        let (term, rest) = line.split_once(": ")?;
        let (meaning, more) = rest.rsplit_once(". ")?;
        Some(Term { word: term, meaning, more })
    })
}

/// Words whose name, else whose meaning, holds what was asked for.
fn found(wanted: &str) -> Result<Vec<Term>, Error> {
    let lower = wanted.trim().to_lowercase();
    let exact: Vec<Term> = terms().filter(|t| t.word.to_lowercase() == lower).collect();
    let near: Vec<Term> = terms().filter(|t| t.word.to_lowercase().contains(&lower)).collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let meant: Vec<Term> = terms().filter(|t| t.meaning.to_lowercase().contains(&lower)).collect();
    if near.is_empty() && lower.len() > 2 && !meant.is_empty() {
        return Ok(meant);
    }
    if near.is_empty() {
        let names: Vec<String> = terms().map(|t| t.word.to_lowercase()).collect();
        let hint = rackmath_spec::nearest(&lower, names.iter().map(String::as_str));
        let hint = hint
            .first()
            .map_or_else(|| "rackmath glossary lists them all".to_owned(), |n| format!("did you mean {n}?"));
        return Err(Error::said(format!("no word \"{wanted}\" in the glossary")).hint(hint));
    }
    Ok(near)
}

pub fn run(_: Catalog, given: &ArgMatches, output: &Output) -> Result<(), Error> {
    let words: Vec<&str> = given.get_many::<String>("word").into_iter().flatten().map(String::as_str).collect();
    let list = if words.is_empty() { terms().collect() } else { found(&words.join(" "))? };
    if output.json {
        return print(&rackmath::ask::json(&list)?);
    }
    print(&page(&list, output.style))
}

/// Each word, and under it what it means, no wider than the terminal.
fn page(list: &[Term], style: Style) -> String {
    let meant = |t: &Term| style.wrapped("    ", "    ", &format!("{}. More: {}", t.meaning, t.more));
    list.iter().flat_map(|t| [t.word.to_owned(), "\n".to_owned(), meant(t)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let all: Vec<Term> = terms().collect();
        for width in [60, 80, 120] {
            let text = page(&all, Style { color: false, width });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn words_are_in_order_and_lead_to_commands() {
        let all: Vec<Term> = terms().collect();
        assert_eq!(all.len(), include_str!("glossary.txt").lines().count(), "every line is a word");
        for pair in all.windows(2) {
            assert!(
                pair[0].word.to_lowercase() < pair[1].word.to_lowercase(),
                "{} before {}",
                pair[0].word,
                pair[1].word
            );
        }
        for term in all {
            let name = term.more.strip_prefix("rackmath ").and_then(|m| m.split(' ').next()).expect("a command");
            assert!(crate::menu::find(name).is_some(), "{}: {name}", term.word);
        }
    }

    #[test]
    fn a_word_is_found_by_its_name_or_a_part_and_refused_with_the_nearest() {
        assert_eq!(found("ttft").expect("known").len(), 1);
        assert!(found("parallel").expect("known").len() >= 3);
        assert!(found("optimiser and").is_err() && found("stacked beside").expect("in a meaning").len() == 1);
        assert!(found("rigde").expect_err("no such word").to_string().contains("rigde"));
    }
}
