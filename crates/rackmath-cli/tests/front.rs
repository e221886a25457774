//! The front door in a terminal: help by who asks, examples that run, words, templates, settings, manual pages.

mod common;

use assert_cmd::Command;
use common::{folder, rackmath, refused, shown, temp};

/// Commands as the help lists them, group by group.
fn listed() -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for line in shown("--help").lines().take_while(|l| *l != "Options:") {
        if let Some(title) = line.strip_suffix(':').filter(|l| !l.starts_with([' ', 'U'])) {
            groups.push((title.to_owned(), Vec::new()));
        } else if let (Some((_, names)), Some(rest)) = (groups.last_mut(), line.strip_prefix("  "))
            && !rest.starts_with(' ')
        {
            names.extend(rest.split(' ').next().map(str::to_owned));
        }
    }
    groups
}

#[test]
fn help_is_grouped_by_who_asks_with_six_commands_first() {
    let groups = listed();
    assert_eq!(groups[0].0, "Begin here");
    assert_eq!(groups[0].1.len(), 6, "{groups:?}");
    for path in ["I serve a model", "I plan hardware", "I train", "I read prices", "I learn"] {
        assert!(groups.iter().any(|(title, names)| title == path && names.len() >= 5), "{path}: {groups:?}");
    }
    let mut all: Vec<&String> = groups.iter().flat_map(|(_, names)| names).collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "a command stands twice");
}

fn examples(command: &str) -> Vec<String> {
    let help = shown(&format!("{command} --help"));
    let (_, list) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{command} has no examples: {help}"));
    list.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect()
}

#[test]
fn the_help_of_every_command_ends_with_two_examples() {
    for command in listed().iter().flat_map(|(_, names)| names) {
        let found = examples(command);
        // Of the command itself; some need a line before: a plan is saved before it is changed.
        let names = |line: &&String| format!("{line} ").contains(&format!("rackmath {command} "));
        assert!(found.iter().filter(names).count() >= 2, "{command}: {found:?}");
    }
}

/// Examples as a shell reads them, from a folder that holds `examples/`, as a clone does: of commands that need no server and that an
/// unoptimised build answers in a few seconds.
#[cfg(unix)]
#[test]
fn examples_run_as_they_are_printed() {
    let quick = "step explain models chips systems racks memory traffic mfu goodput when fastmode glossary templates check estimate \
        layout pipeline station price cost own breakeven fleet cache trace practice forensics ask schema";
    let (binary, work) = (assert_cmd::cargo::cargo_bin("rackmath"), folder("examples-run"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let link = std::path::Path::new(&work).join("examples");
    if !link.exists() {
        std::os::unix::fs::symlink(root, link).unwrap();
    }
    let mut ran = 0;
    for command in quick.split_whitespace() {
        // Long lines are broken by the help.
        let mut lines: Vec<String> = Vec::new();
        for line in examples(command) {
            let begins = ["rackmath ", "echo ", "for ", "A ", "In "].iter().any(|word| line.starts_with(word));
            match lines.last_mut() {
                Some(last) if !begins => last.extend([" ", &line]),
                _ => lines.push(line),
            }
        }
        let named = format!("rackmath {command}");
        for line in lines.iter().filter(|line| line.contains(&named)) {
            let mut shell = Command::new("sh");
            shell.args(["-c", line.as_str()]).current_dir(&work).env("PATH", &path);
            let done = shell.output().unwrap();
            assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
            ran += 1;
        }
    }
    assert!(ran >= 60, "{ran}");
}

/// Whatever an example reads stands in the repository, or a line before it writes it.
#[test]
fn files_of_examples_are_there() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for command in listed().iter().flat_map(|(_, names)| names) {
        for word in examples(command).iter().flat_map(|line| line.split(' ')).filter(|w| w.starts_with("examples/")) {
            assert!(root.join(word).exists(), "{command}: {word}");
        }
    }
}

#[test]
fn a_word_is_explained_and_an_unknown_one_refused_with_the_nearest() {
    assert!(shown("glossary ridge").contains("multiplications in the time of reading one weight"));
    assert!(shown("glossary").lines().count() > 80);
    assert!(refused("glossary rigde").contains("ridge"));
    assert!(refused("glossary bananas").contains("no word \"bananas\""));
}

#[test]
fn a_time_without_a_unit_is_refused_with_both_readings() {
    let said = refused("estimate qwen3-32b --on h100 --tpot 30");
    assert!(said.contains("30ms or 30s"), "{said}");
    // Counts and shares are beyond doubt.
    for same in [["--isl 1k", "--isl 1000"], ["--prefix-hit 80%", "--prefix-hit 0.8"]] {
        let [a, b] = same.map(|flag| shown(&format!("estimate qwen3-32b --on h100 {flag}")));
        assert_eq!(a, b, "{same:?}");
    }
}

#[test]
fn templates_are_printed_by_name() {
    assert!(shown("templates my-chip.toml").contains("bandwidth"));
    assert_eq!(shown("templates world"), shown("templates world.toml"));
    assert!(refused("templates my-chp.toml").contains("my-chip.toml"));
    for line in shown("templates").lines() {
        let name = line.split(' ').next().expect("a name");
        assert!(!shown(&format!("templates {name}")).is_empty(), "{name}");
    }
}

#[test]
fn settings_come_from_a_file_and_typed_words_win() {
    let file = temp("settings.toml", "[defaults]\non = \"8xh200\"\n[step]\nbatch = 64\n");
    let (out, note, code) = rackmath(&format!("step llama-3.1-70b --config {file}"));
    assert_eq!((code, out), (0, shown("step llama-3.1-70b --on 8xh200 --batch 64")));
    assert!(note.contains("--on=8xh200") && note.contains("--batch=64"), "{note}");
    let (out, note, _) = rackmath(&format!("step llama-3.1-70b --on h100 --quiet --config {file}"));
    assert_eq!((out, note.as_str()), (shown("step llama-3.1-70b --on h100 --batch 64 --quiet"), ""));
    let bad = temp("bad.toml", "[step]\nbach = 64\n");
    assert!(refused(&format!("step --config {bad}")).contains("batch"));
    // A file in the folder one works in is found by itself.
    let here = folder("settings");
    std::fs::write(format!("{here}/rackmath.toml"), "[defaults]\nbatch = 7\n").expect("writable");
    let run = |more: &[&str]| {
        let mut command = Command::cargo_bin("rackmath").expect("built");
        let output =
            command.current_dir(&here).args(["step", "--width", "100"]).args(more).env("NO_COLOR", "1").output();
        String::from_utf8(output.expect("ran").stdout).expect("UTF-8")
    };
    assert_eq!(run(&[]), shown("step --batch 7"));
    assert_eq!(run(&["--no-config"]), shown("step"));
}

#[test]
fn every_command_has_a_manual_page() {
    let into = folder("man");
    let (_, err, code) = rackmath(&format!("man --into {into}"));
    assert_eq!(code, 0, "{err}");
    for command in listed().iter().flat_map(|(_, names)| names) {
        let page = std::fs::read_to_string(format!("{into}/rackmath-{command}.1")).expect("written");
        assert!(
            page.starts_with(".TH ") && page.contains(".SH OPTIONS") && page.contains(".SH EXAMPLES"),
            "{command}: {page}"
        );
    }
    assert!(shown("man step").contains("\\-\\-batch"));
    assert!(refused("man stepp").contains("step"));
}
