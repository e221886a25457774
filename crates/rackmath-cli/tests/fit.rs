//! `rackmath fit` and `--with`, on rows of a file as a person would have them.

use assert_cmd::Command;
use std::path::PathBuf;

fn rackmath(words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rackmath").unwrap();
    command.args(words);
    command
}

fn said(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}

/// Six loads of one server that answers a quarter slower than the catalogue thinks of any.
const ROWS: &str = r#"
source.name = "my server"
source.title = "measured at home"
source.address = "own machine"
source.date = "2026-11-16"
source.licence = "own"
source.retrieved = "2026-11"
source.fitted = "no"
source.note = "by hand"

[measured]
parts = [["TPOT", "tpot_ms"]]
rounds = 10
rows = """
llama-3.1-8b - - vllm@0.19 1xh200 1/1/1/1/1
 c1 1000 1000 0:7.5
 c4 1000 1000 0:8.0
 c16 1000 1000 0:9.2
 c32 1000 1000 0:11.0
 c64 1000 1000 0:14.5
 c128 1000 1000 0:21.0
"""
"#;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("rackmath-fit-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn constants_of_own_rows_change_the_estimate_and_are_named_in_it() {
    let folder = folder("with");
    let [rows, constants] = ["rows.toml", "constants.toml"].map(|name| folder.join(name));
    std::fs::write(&rows, ROWS).unwrap();
    let words = ["fit", rows.to_str().unwrap(), "--save", constants.to_str().unwrap()];
    let page = said(&rackmath(&words).assert().success().get_output().stdout);
    assert!(
        page.contains("rows left out") && page.contains("these rows cannot tell") && page.contains("skew_us"),
        "{page}"
    );
    let text = std::fs::read_to_string(&constants).unwrap();
    assert!(text.contains("[engine.overhead]") && text.contains("chips = [\"h200\"]"), "{text}");
    let ask = [
        "estimate",
        "llama-3.1-8b",
        "--on",
        "1xh200",
        "--engine",
        "vllm@0.19",
        "--concurrency",
        "16",
        "--explain",
        "--sources",
    ];
    let plain = said(&rackmath(&ask).assert().success().get_output().stdout);
    let with = [&ask[..], &["--with", constants.to_str().unwrap()]].concat();
    let own = said(&rackmath(&with).assert().success().get_output().stdout);
    assert!(own.contains("constants of constants.toml") && !plain.contains("constants of constants.toml"), "{own}");
    let line = |page: &str| page.lines().find(|l| l.contains("time per output token")).unwrap().to_owned();
    assert_ne!(line(&plain), line(&own));
    // As JSON: the same constants, their errors before and after, and the file that --with takes.
    let json = said(&rackmath(&["fit", rows.to_str().unwrap(), "--json"]).assert().success().get_output().stdout);
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fit = &answer["fits"][0];
    assert_eq!(
        (fit["engine"].as_str(), fit["rows"].as_u64(), answer["file"].as_str()),
        (Some("vllm"), Some(6), Some(&*text))
    );
    assert!(fit["left_out"]["median"].as_f64() < fit["before"]["median"].as_f64(), "{fit}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn slips_are_refused_with_what_was_expected() {
    let folder = folder("slips");
    let file = folder.join("rows.toml");
    std::fs::write(&file, ROWS.replace("llama-3.1-8b -", "lama-3.1-8b -")).unwrap();
    let error = said(&rackmath(&["fit", file.to_str().unwrap()]).assert().code(2).get_output().stderr);
    assert!(error.contains("lama-3.1-8b") && error.contains("llama-3.1-8b"), "{error}");
    let error = said(&rackmath(&["fit", "/nowhere/rows.toml"]).assert().code(2).get_output().stderr);
    assert!(error.contains("/nowhere/rows.toml"), "{error}");
    std::fs::write(&file, "[[engine]]\nid = \"vlm\"\nrows = 1\nchips = []\nmodels = []\n").unwrap();
    let words = ["estimate", "llama-3.1-8b", "--on", "1xh200", "--with", file.to_str().unwrap()];
    let error = said(&rackmath(&words).assert().code(2).get_output().stderr);
    assert!(error.contains("vlm") && error.contains("vllm"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}
