//! Runs the command for real, as every terminal test does.
#![allow(dead_code)] // each test file uses its part

use assert_cmd::Command;
use std::path::PathBuf;

/// What it prints, what it complains, and how it exits, 100 columns wide unless it says so and without colours.
pub fn rackmath(args: &[&str]) -> (String, String, i32) {
    let mut command = Command::cargo_bin("rackmath").expect("built");
    let width: &[&str] = if args.contains(&"--width") { &[] } else { &["--width", "100"] };
    let output = command.args(args).args(width).env("NO_COLOR", "1").output().expect("ran");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("exited"))
}

/// The output of a question that is answered.
pub fn shown(args: &[&str]) -> String {
    let (out, err, code) = rackmath(args);
    assert_eq!(code, 0, "{args:?}: {err}");
    out
}

/// The same for a line; `~` stands for a blank inside a word.
pub fn line(line: &str) -> String {
    let words = words(line);
    shown(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.replace('~', " ")).collect()
}

/// The complaint about a question that is refused.
pub fn refused(args: &[&str]) -> String {
    let (out, err, code) = rackmath(args);
    assert_eq!((out.as_str(), code), ("", 2), "{args:?}: {err}");
    err
}

/// A file of this test run.
pub fn temp(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("writable");
    path.to_str().expect("UTF-8").to_owned()
}
