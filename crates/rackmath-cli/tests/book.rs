//! The book, built: every number computed by the command, every figure drawn by it, every problem answered, every link there.

mod common;

use common::{json, rackmath, shown};
use rackmath_units::{Bytes, DollarsPerToken, Params, Seconds, significant};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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
        // Files beside the book are not among its pages.
        let beside = format!("]({}/blob/main/", env!("CARGO_PKG_REPOSITORY"));
        let made = book.chapter(&name, &text).replace("](../../", &beside);
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
    let Some(mdbook) = mdbook() else { return };
    let pages = out.join("html");
    let made = Command::new(&mdbook).arg("build").arg(&out).arg("--dest-dir").arg(&pages).output().expect("ran");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && !said.to_lowercase().contains("warn"), "{said}");
    let checked = linked(&pages);
    eprintln!("{}: {checked} links lead somewhere", pages.join("index.html").display());
    assert!(checked > 300, "{checked}");
}

/// `RACKMATH_MDBOOK`, the one that `book/mdbook` put into the target folder, or one that is installed.
fn mdbook() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_rackmath")).ancestors().nth(2).expect("target");
    let named = std::env::var_os("RACKMATH_MDBOOK").map(PathBuf::from);
    let own = target.join("mdbook/bin/mdbook");
    let program = named.unwrap_or_else(|| if own.is_file() { own } else { "mdbook".into() });
    let found = Command::new(&program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("skipped: no pages of the book, since there is no {}; book/mdbook installs it", program.display());
    }
    found.then_some(program)
}

/// What stands in an attribute, as often as it is there.
fn attributes(page: &str, name: &str) -> Vec<String> {
    let opening = format!(" {name}=\"");
    let values = page.split(&opening).skip(1).filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&amp;", "&").replace("&#39;", "'").replace("%20", " ")).collect()
}

/// Every link and picture of every page leads to a file of the book, and to a place in it; how many were looked at.
fn linked(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).expect("pages").map(|entry| entry.expect("a file").path());
    let pages: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "html")).collect();
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut places: HashMap<PathBuf, HashSet<String>> = HashMap::new();
    let mut checked = 0;
    for page in &pages {
        let read = text(page);
        for link in ["href", "src"].into_iter().flat_map(|name| attributes(&read, name)) {
            if link.contains(':') || link.starts_with("//") || link.is_empty() {
                continue;
            }
            let (path, place) = link.split_once('#').unwrap_or((&link, ""));
            let to = if path.is_empty() { page.clone() } else { folder.join(path.trim_start_matches('/')) };
            let to = if to.is_dir() { to.join("index.html") } else { to };
            assert!(to.is_file(), "{}: {link} leads nowhere", page.display());
            if !place.is_empty() {
                let there =
                    places.entry(to.clone()).or_insert_with(|| attributes(&text(&to), "id").into_iter().collect());
                assert!(there.contains(place), "{}: {link}: no such place", page.display());
            }
            checked += 1;
        }
    }
    checked
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

/// What each of the fifty has to say, in its first lines unless it is a list: what was asked, not just anything.
const SAID: [&[&str]; 50] = [
    &["Starts: vLLM", "32,688 tokens"],
    &["the first token after", "one every", "on 8 chips"],
    &["At most 21 requests in flight meet the targets"],
    &["Starts: vLLM keeps", "tokens"],
    &["the first token after", "min"],
    &["A token comes", "as fast with", "Qwen3 0.6B"],
    &["First tokens come after", "at p99"],
    &["Start another replica when"],
    &["Each user gets", "on 1 chip"],
    &["Adapters (LoRA)", "16"],
    &["Deploy", "first token after", "/Mtok of output"],
    &["Deploy", "x NVIDIA H100", "/Mtok of output"],
    &["8xh200", "8xb200", "cost"],
    &["best on cost"],
    &["h100", "h200", "b200", "mi355x", "bandwidth"],
    &["Arithmetic never binds, up to a batch of 678"],
    &["domains hold the weights", "gb200-nvl72 reads them fastest"],
    &["Fits", "dp64 ep64"],
    &["chips on", "machines", "a day", "MW"],
    &["matters most"],
    &["15.0 T", "tokens take 290 days"],
    &["Fine-tuning", "all weights train in"],
    &["14.8 T tokens take", "days"],
    &["The figures agree", "MFU"],
    &["Fastest is", "idle"],
    &["Best by the middle of 10 laws", "parameters on", "tokens"],
    &["Pre-train on 200 T tokens", "Chinchilla"],
    &["of all time is progress", "days become"],
    &["of peak", "conventions"],
    &["A reversible block keeps", "% of the activations"],
    &["6.00x the price buys 2.50x the speed", "a batch 15.0 times smaller"],
    &["for all of it", "Claude Opus 4.8"],
    &["Output costs", "input"],
    &["is cheaper than a provider", "requests a day, on"],
    &["active parameters", "total parameters"],
    &["active parameters", "in truth 37"],
    &["Cheapest by the time until its next use", "HBM"],
    &["Over context", "/Mtok at 12,300"],
    &["1.80x the speed", "the price buys"],
    &["sheet", "anthropic-claude-opus-4-8", "openai-gpt-5.5"],
    &["No step is shorter than", "once every weight is read"],
    &["A decode step takes 7.99 ms, bound by memory (KV)"],
    &["batch at which compute takes as long as memory: B* ="],
    &["Balance batch", "the lecture says about 2,400, here it is 2,400"],
    &["answer in", "batch"],
    &["B = R S", "answer in"],
    &["671 B parameters", "per token", "of cache"],
    &["Stable: a first token after 30.0 ms", "up to 200 requests/s"],
    &["multiplications in the time of reading one weight"],
    &["published figures are predicted within", "the data sheet alone"],
];

/// A verdict stands in the first lines; in lists what is asked for stands anywhere.
const FIRST: usize = 3;
const LISTS: [usize; 6] = [15, 40, 45, 46, 49, 18];

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
    for (at, line) in lines.into_iter().enumerate() {
        if cfg!(debug_assertions) && LONG.iter().any(|long| line.trim().starts_with(long)) {
            eprintln!("rackmath{line}: only in an optimised build");
            continue;
        }
        let page = shown(&words(line));
        let most = if LISTS.contains(&(at + 1)) { usize::MAX } else { FIRST };
        let head = page.lines().take(most).collect::<Vec<_>>().join(" ").to_lowercase();
        for said in SAID[at] {
            assert!(head.contains(&said.to_lowercase()), "{}. rackmath{line}: {said}: {page}", at + 1);
        }
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
        let width = if line.contains("--width ") { "" } else { " --width 90" };
        let page = shown(&format!("{}{width}", words(line)));
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
    assert!(compared >= 2, "the README shows an answer and how near answers are");
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
    // Dollars of a command stand behind the number: before it a shell would read a variable.
    let typed = text.split('`').skip(1).step_by(2).filter(|l| !l.contains('\n'));
    let mut typed = typed.chain(text.lines().filter_map(|l| l.strip_prefix("$ ")));
    assert!(!typed.any(|l| ["$0", "$1", "$2"].iter().any(|d| l.contains(d))), "a dollar before digits");
}
