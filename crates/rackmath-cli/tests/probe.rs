//! `rackmath probe` on the machine the tests run on: no figure is expected of it, only that what it says holds together.

use assert_cmd::Command;
use serde_json::Value;

fn rackmath(words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rackmath").unwrap();
    command.args(words);
    command
}

#[test]
fn a_probed_processor_can_be_estimated_on_at_once() {
    let folder = std::env::temp_dir().join(format!("rackmath-probe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("my.toml");
    let path = file.to_str().unwrap();
    let picture = folder.join("roof.svg");
    let words = ["probe", "--quick", "--processor", "--json", "--save", path, "--svg", picture.to_str().unwrap()];
    let output = rackmath(&words).assert().success().get_output().stdout.clone();
    let probe: Value = serde_json::from_slice(&output).unwrap();
    let processor = &probe["processor"];
    let one = |list: &str, key: &str, word: &str| {
        processor[list].as_array().unwrap().iter().find(|x| x[key] == word).cloned().unwrap_or_default()
    };
    let read = one("bandwidth", "kernel", "read")["rate"]["median"].as_f64().unwrap();
    let peak = one("peaks", "math", "fp32")["rate"]["median"].as_f64().unwrap();
    assert!(read > 0.0 && peak > 0.0);
    // Whether it lies below what the units can do is a matter of what else runs: `rackmath probe` on a quiet machine.
    assert!(processor["matmul"]["rate"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("</svg>"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("probe of this machine") && text.contains("processor = true"), "{text}");
    let words =
        ["estimate", "llama-3.1-8b", "--weights", "q4_k_m", "--engine", "llamacpp", "--concurrency", "1", "--on", path];
    let page = rackmath(&words).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(page).unwrap().contains("time per output token"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_not_there_is_said_in_words() {
    // Folders without libraries: whatever this machine has, a page comes out.
    let page =
        rackmath(&["probe", "--quick", "--processor", "--width", "100"]).assert().success().get_output().stdout.clone();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("Not measured") && page.contains("only the processor was asked for"), "{page}");
    assert!(page.contains("roofline"), "{page}");
}

#[test]
fn a_folder_that_cannot_be_written_leaves_nothing_behind() {
    let error = rackmath(&["probe", "--quick", "--processor", "--save", "/nowhere/at/all.toml"]).assert().code(2);
    let error = String::from_utf8(error.get_output().stderr.clone()).unwrap();
    assert!(error.contains("/nowhere/at/all.toml"), "{error}");
}

#[test]
fn a_quiet_probe_says_only_what_it_comes_to() {
    let out = rackmath(&["probe", "--quick", "--processor", "--quiet"]).assert().success().get_output().clone();
    assert_eq!(String::from_utf8(out.stderr).unwrap(), "");
}
