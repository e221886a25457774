//! Runs the command for real, as every terminal test does.
#![allow(dead_code)] // each test file uses its part

use assert_cmd::Command;

/// What it prints, what it complains, and how it exits, 100 columns wide and without colours.
pub fn rackmath(args: &[&str]) -> (String, String, i32) {
    let mut command = Command::cargo_bin("rackmath").expect("built");
    let output = command.args(args).args(["--width", "100"]).env("NO_COLOR", "1").output().expect("ran");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("exited"))
}

/// The output of a question that is answered.
pub fn shown(args: &[&str]) -> String {
    let (out, err, code) = rackmath(args);
    assert_eq!(code, 0, "{err}");
    out
}

/// The same of a line as it is typed.
pub fn typed(line: &str) -> String {
    shown(&line.split(' ').collect::<Vec<_>>())
}

/// The complaint about a question that is refused.
pub fn refused(args: &[&str]) -> String {
    let (out, err, code) = rackmath(args);
    assert_eq!((out.as_str(), code), ("", 2), "{err}");
    err
}
