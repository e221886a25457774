//! The book, built: every number computed by the command, every figure drawn by it, every problem answered, every link there.

mod common;

use common::{json, rackmath, shown};
use rackmath_units::{Bytes, DollarsPerToken, Params, Seconds, significant};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn chapters() -> Vec<(String, String)> {
    let folder = root().join("book/src");
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("the book").map(|entry| entry.expect("a file").path()).collect();
    names.sort();
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("readable");
    names.iter().map(|path| (path.file_name().expect("named").to_string_lossy().into_owned(), read(path))).collect()
}

/// A value of an answer in the way a sentence says it.
fn said(value: &Value, how: &str) -> String {
    let number = || value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    match how {
        "time" => Seconds::s(number()).show(3),
        "bytes" => Bytes::b(number()).show(3),
        "price" => DollarsPerToken::per_mtok(number()).to_string().replace('$', "\\$"),
        "count" => rackmath_units::grouped(number().round()),
        "percent" => format!("{} %", significant(number() * 100.0, 2)),
        "times" => format!("{} times", significant(number(), 3)),
        "digits" => significant(number(), 3),
        "amount" => Params::new(number()).show(3),
        "text" => value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned(),
        other => panic!("\"{other}\" is no way to say a number"),
    }
}

/// The words of a line: a text in quotes is one.
fn words(line: &str) -> String {
    let line = line.replace("examples/", &format!("{}/examples/", root().display()));
    line.split('"')
        .enumerate()
        .map(|(i, part)| if i % 2 == 1 { part.replace(' ', "~") } else { part.to_owned() })
        .collect()
}

struct Book {
    answers: HashMap<String, Value>,
    pictures: usize,
    problems: usize,
    numbers: usize,
    out: PathBuf,
}

impl Book {
    fn answer(&mut self, line: &str) -> &Value {
        self.answers.entry(line.to_owned()).or_insert_with(|| json(&words(line)))
    }

    /// `{{ step deepseek-v3 -b 64 : /time_s : time }}` and `{{ problem D9 3 }}`.
    fn filled(&mut self, chapter: &str, inner: &str) -> String {
        let parts: Vec<&str> = inner.split(" : ").map(str::trim).collect();
        match parts.as_slice() {
            [line, place, how] => {
                self.numbers += 1;
                let value = self.answer(line).pointer(place).cloned();
                said(&value.unwrap_or_else(|| panic!("{chapter}: {line} has no {place}")), how)
            }
            [problem] if problem.starts_with("problem ") => {
                let (claim, seed) = problem["problem ".len()..].split_once(' ').expect("a claim and a seed");
                let line = format!("practice --claim {claim} --seed {seed} -n 1");
                let p = self.answer(&line)["problems"][0].clone();
                // Handed back, the answer is right, and another is not.
                let right = |answer: f64| json(&format!("{line} --answers={answer}"))["right"].clone();
                let answer = p["answer"].as_f64().expect("an answer");
                assert_eq!((right(answer), right(answer * 1.1)), (1.into(), 0.into()), "{chapter}: {problem}");
                self.problems += 1;
                let steps: Vec<&str> =
                    p["working"].as_array().expect("steps").iter().filter_map(Value::as_str).collect();
                let text = |key: &str| p[key].as_str().expect("a text").to_owned();
                format!(
                    "{} ({})\n\n<details><summary>Worked answer</summary>\n\n```text\n{}\n{}\n```\n\n</details>",
                    text("question"),
                    text("unit"),
                    text("equation"),
                    steps.join("\n")
                )
            }
            _ => panic!("{chapter}: {{{{{inner}}}}} is no command, place and way to say it"),
        }
    }

    fn chapter(&mut self, name: &str, text: &str) -> String {
        let mut out = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line == "```rackmath" {
                let commands: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
                out += "```console\n";
                for command in commands {
                    let (asked, head) = command.split_once(" | head -").map_or((command, None), |(a, n)| (a, Some(n)));
                    let page =
                        shown(&format!("{} --width 90", words(asked.strip_prefix("rackmath").expect("rackmath"))));
                    let most = head.map_or(usize::MAX, |n| n.parse().expect("lines"));
                    writeln!(out, "$ {command}").expect("in memory");
                    page.lines().take(most).for_each(|l| writeln!(out, "{l}").expect("in memory"));
                }
                out += "```\n";
            } else if let Some((alt, command)) =
                line.strip_prefix("![").and_then(|rest| rest.strip_suffix(')')?.split_once("](rackmath:"))
            {
                self.pictures += 1;
                let file = format!("{}-{}.svg", name.trim_end_matches(".md"), self.pictures);
                let path = self.out.join(&file);
                let (_, err, code) = rackmath(&format!("{} --svg {}", words(command), path.display()));
                assert_eq!(code, 0, "{name}: {command}: {err}");
                assert!(std::fs::read_to_string(&path).expect("drawn").starts_with("<svg"), "{name}: {command}");
                writeln!(out, "![{alt}]({file})").expect("in memory");
            } else {
                let mut rest = line;
                while let Some((before, after)) = rest.split_once("{{") {
                    let (inner, after) = after.split_once("}}").unwrap_or_else(|| panic!("{name}: {line}"));
                    out += before;
                    out += &self.filled(name, inner.trim());
                    rest = after;
                }
                writeln!(out, "{rest}").expect("in memory");
            }
        }
        out
    }
}

#[test]
fn the_book_is_built_from_the_commands() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(out.join("src")).expect("writable");
    std::fs::copy(root().join("book/book.toml"), out.join("book.toml")).expect("copied");
    let mut book = Book { answers: HashMap::new(), pictures: 0, problems: 0, numbers: 0, out: out.join("src") };
    for (name, text) in chapters() {
        let made = book.chapter(&name, &text);
        assert!(!made.contains("{{"), "{name}");
        std::fs::write(out.join("src").join(&name), made).expect("writable");
    }
    assert!(
        book.pictures >= 8 && book.problems >= 12 && book.numbers >= 30,
        "{}, {}, {}",
        book.pictures,
        book.problems,
        book.numbers
    );
}

/// Numbers with a unit are computed, never typed, but for the few that a sentence supposes.
#[test]
fn no_sentence_of_the_lecture_has_a_typed_result() {
    for (name, text) in chapters().iter().filter(|(name, _)| name.as_bytes()[0].is_ascii_digit()) {
        let mut fenced = false;
        for line in text.lines() {
            fenced ^= line.starts_with("```");
            let plain = line.split("{{").map(|part| part.split_once("}}").map_or(part, |(_, after)| after));
            let sentence: String = if fenced || line.starts_with("![") { String::new() } else { plain.collect() };
            for unit in ["ms", "µs", "GB", "TB", "kB", "$/Mtok"] {
                let typed = sentence.split_whitespace().collect::<Vec<_>>();
                let found = typed.windows(2).any(|w| {
                    w[1].trim_end_matches(['.', ',', ';', ':', ')']) == unit
                        && w[0].ends_with(|c: char| c.is_ascii_digit())
                });
                assert!(!found, "{name}: {line}");
            }
        }
    }
}

/// Where a link of a text leads, if to a file.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter(|t| !t.starts_with("http") && !t.starts_with("rackmath:")).map(str::to_owned).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let anchor = |text: &str| -> Vec<String> {
        let heads =
            text.lines().filter_map(|l| l.strip_prefix('#')).map(|l| l.trim_start_matches('#').trim().to_lowercase());
        heads
            .map(|h| {
                h.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
            })
            .collect()
    };
    let docs = [
        "README.md",
        "ARCHITECTURE.md",
        "STYLE.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "book/README.md",
    ];
    let book = chapters().into_iter().map(|(name, _)| format!("book/src/{name}"));
    let mut checked = 0;
    for file in docs.iter().map(|d| (*d).to_owned()).chain(book).filter(|f| root().join(f).exists()) {
        let text = std::fs::read_to_string(root().join(&file)).expect("readable");
        let folder = root().join(&file).parent().expect("in a folder").to_owned();
        for link in links(&text) {
            let (path, part) = link.split_once('#').unwrap_or((&link, ""));
            let to = if path.is_empty() { root().join(&file) } else { folder.join(path) };
            assert!(to.exists(), "{file}: {link} leads nowhere");
            if !part.is_empty() {
                let there = anchor(&std::fs::read_to_string(&to).expect("readable"));
                assert!(there.iter().any(|a| a == part), "{file}: {link}: no such heading");
            }
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
    // Every chapter is in the summary.
    let summary = std::fs::read_to_string(root().join("book/src/SUMMARY.md")).expect("readable");
    for (name, _) in chapters().iter().filter(|(name, _)| name != "SUMMARY.md") {
        assert!(summary.contains(&format!("({name})")), "{name} is not in the summary");
    }
}

/// Answered in seconds by a build that is optimised, in minutes by one that is not.
const LONG: [&str; 6] = ["plan qwen3-32b --on 32xh200", "reversible", "capacity", "lifecycle", "deduce", "lecture"];

#[test]
fn fifty_questions_are_answered() {
    let (_, text) = chapters().into_iter().find(|(name, _)| name == "ask.md").expect("the chapter");
    let mut numbers = 0;
    for part in text.split("## ").skip(1) {
        let asked: Vec<&str> = part.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(asked.len(), 10, "ten for each path: {part}");
        for question in asked {
            numbers += 1;
            assert!(question.starts_with(&format!("{numbers}. ")), "{question}");
        }
    }
    assert_eq!(numbers, 50);
    let lines: Vec<&str> = text.lines().filter_map(|l| l.trim().strip_prefix("`rackmath")?.strip_suffix('`')).collect();
    assert_eq!(lines.len(), 50);
    for line in lines {
        if cfg!(debug_assertions) && LONG.iter().any(|long| line.trim().starts_with(long)) {
            eprintln!("rackmath{line}: only in an optimised build");
            continue;
        }
        assert!(shown(&words(line)).lines().count() >= 2, "{line}");
    }
}

/// What the README shows of a command is what the command prints; its other commands are known, with their flags.
#[test]
fn the_readme_shows_what_is_printed() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("readable");
    let (mut fenced, mut asked, mut compared): (bool, Option<(String, Vec<&str>)>, usize) = (false, None, 0);
    let mut check = |asked: Option<(String, Vec<&str>)>| {
        let Some((line, said)) = asked else { return };
        let (line, most) =
            line.split_once(" | head -").map_or((line.as_str(), usize::MAX), |(l, n)| (l, n.parse().expect("lines")));
        let page = shown(&format!("{} --width 90", words(line)));
        assert_eq!(page.lines().take(most).collect::<Vec<_>>(), said, "rackmath {line}");
        compared += 1;
    };
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = line == "```console";
            check(asked.take());
        } else if let Some(command) = line.strip_prefix("$ rackmath").filter(|_| fenced) {
            check(asked.replace((command.to_owned(), Vec::new())));
        } else if let Some((_, said)) = asked.as_mut() {
            said.push(line);
        }
    }
    assert!(compared >= 1, "the README shows no output");
    let drawn = std::fs::read_to_string(root().join("book/step.svg")).expect("the picture");
    assert!(
        shown("curve --over batch --svg -") == drawn,
        "rackmath curve --over batch --svg book/step.svg draws it anew"
    );
    assert!(text.lines().count() <= 135, "{} lines", text.lines().count());
    let mut known = 0;
    for line in
        text.split('`').skip(1).step_by(2).filter_map(|l| l.strip_prefix("rackmath ")).filter(|l| !l.contains("..."))
    {
        // A sweep has the flags of its question.
        let first = if line.starts_with("sweep ") { 2 } else { 1 };
        let command = &line.split_whitespace().take(first).collect::<Vec<_>>().join(" ");
        let (help, err, code) = rackmath(&format!("{command} --help"));
        assert_eq!(code, 0, "{line}: {err}");
        let flags = line.split_whitespace().filter(|w| w.starts_with("--") && command != "check");
        for flag in flags.map(|w| w.split('=').next().expect("a flag")) {
            assert!(help.contains(flag), "{line}: {command} has no {flag}");
        }
        known += 1;
    }
    assert!(known >= 25, "{known}");
    // Dollars stand behind the number: before it a shell would read a variable.
    assert!(
        !text.split('`').skip(1).step_by(2).any(|l| l.contains("$0") || l.contains("$1") || l.contains("$2")),
        "a dollar before digits"
    );
}
