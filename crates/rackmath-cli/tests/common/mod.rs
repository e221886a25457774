//! Runs the command for real, as every terminal test does.
#![allow(dead_code)] // each test file uses its part

use assert_cmd::Command;
use serde_json::Value;
use std::path::PathBuf;

/// What a line prints, what it complains, and how it exits, 100 columns wide unless it says so and without colours; `~`
/// stands for a blank inside a word.
pub fn rackmath(line: &str) -> (String, String, i32) {
    let mut command = Command::cargo_bin("rackmath").expect("built");
    let words = line.split_whitespace().map(|word| word.replace('~', " "));
    let width: &[&str] = if line.contains("--width ") { &[] } else { &["--width", "100"] };
    let output = command.args(words).args(width).env("NO_COLOR", "1").output().expect("ran");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("exited"))
}

/// The output of a question that is answered.
pub fn shown(line: &str) -> String {
    let (out, err, code) = rackmath(line);
    assert_eq!(code, 0, "{line}: {err}");
    out
}

/// All of it: with its working, its assumptions and its sources.
pub fn whole(line: &str) -> String {
    shown(&format!("{line} --explain --sources"))
}

pub fn json(line: &str) -> Value {
    serde_json::from_str(&shown(&format!("{line} --json"))).expect("JSON")
}

/// The complaint about a question that is refused.
pub fn refused(line: &str) -> String {
    let (out, err, code) = rackmath(line);
    assert_eq!((out.as_str(), code), ("", 2), "{line}: {err}");
    err
}

/// Lines that are refused, and what is said of each.
pub fn said(slips: &[(&str, &str)]) {
    for (line, says) in slips {
        let error = refused(line);
        assert!(error.contains(says), "{line}: {error}");
    }
}

pub fn path(name: &str) -> String {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).to_str().expect("UTF-8").to_owned()
}

pub fn temp(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = path(name);
    std::fs::write(&path, bytes).expect("writable");
    path
}

/// An empty folder of this test run.
pub fn folder(name: &str) -> String {
    let path = path(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("writable");
    path
}

pub fn read(path: &str) -> String {
    std::fs::read_to_string(path).expect(path)
}
