//! What the binary is made of: licences that may be, sources that are known, no `unsafe` of our own where it is not needed.
//!
//! `cargo deny check` says the same and knows published faults besides; this needs no network and no tool.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace")
}

/// Everything that Cargo knows of the workspace; nothing where it cannot know all of it without a network.
fn metadata() -> Option<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    let host = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline"]).args(host).current_dir(root());
    let output = cargo.output().expect("runs");
    if !output.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Whether a licence expression is allowed: one of the alternatives of each part.
fn allowed(expression: &str, list: &[&str]) -> bool {
    let text = expression.replace('/', " OR ").replace(['(', ')'], " ");
    let parts: Vec<&str> = text.split(" AND ").map(str::trim).collect();
    let any = |part: &str| part.split(" OR ").any(|one| list.contains(&one.trim()));
    // Brackets are only ever written around alternatives; a choice of several parts would be refused, not let through.
    parts.iter().all(|part| any(part))
}

#[test]
fn an_expression_is_allowed_if_each_part_is() {
    let list = ["MIT", "Apache-2.0", "Unicode-3.0"];
    for yes in ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(allowed(yes, &list), "{yes}");
    }
    for no in ["GPL-3.0", "MIT AND GPL-3.0", "", "(MIT OR Apache-2.0) AND OpenSSL"] {
        assert!(!allowed(no, &list), "{no}");
    }
}

#[test]
fn every_package_has_a_licence_that_may_be_and_a_source_that_is_known() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).expect("rules");
    let line = deny.lines().find(|l| l.starts_with("allow = ")).expect("a list of licences");
    let list: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    let Some(all) = metadata() else { return };
    let packages = all["packages"].as_array().expect("packages");
    assert!(packages.len() > 50, "{}", packages.len());
    for package in packages {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or_default());
        assert!(allowed(licence, &list), "{name} is under {licence:?}; allowed are {list:?}");
        let source = package["source"].as_str();
        assert!(source.is_none_or(|s| s.starts_with("registry+")), "{name} comes from {source:?}");
        let own = package["dependencies"].as_array().filter(|_| source.is_none()).into_iter().flatten();
        for needs in own.filter(|d| d["path"].is_null()) {
            assert_ne!(needs["req"], "*", "{name} takes any version of {}", needs["name"]);
        }
    }
}

/// Crates whose work cannot be done without it, each in its own words at its top.
const UNSAFE: [&str; 3] = ["rackmath-measure", "rackmath-py", "rackmath-wasm"];

#[test]
fn unsafe_code_is_forbidden_where_it_is_not_needed() {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(read(&root().join("Cargo.toml")).contains("unsafe_code = \"forbid\""));
    for entry in std::fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("a folder").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let manifest = path.join("Cargo.toml");
        if UNSAFE.contains(&name.as_str()) || !manifest.exists() {
            continue;
        }
        let own = read(&manifest).replace(' ', "");
        assert!(own.contains("[lints]\nworkspace=true"), "{name} does not take the workspace's lints");
    }
}
