//! What the command is made of, as CycloneDX 1.5: `deploy/sbom > rackmath.cdx.json`.
//!
//! Reads `cargo metadata --format-version 1` on standard input and the lock file named first; writes every package that the binary needs to be
//! built and to run, with its licence, its checksum and what it needs itself. The same sources give the same bytes.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

const ROOT: &str = "rackmath-cli";

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

/// Checksums of packages by name and version.
fn sums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |line: &str, name: &str| {
        line.strip_prefix(name).and_then(|rest| Some(rest.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned()))
    };
    let mut all = BTreeMap::new();
    for block in lock.split("[[package]]").skip(1) {
        let find = |name: &str| block.lines().find_map(|line| value(line, name));
        if let (Some(name), Some(version), Some(sum)) = (find("name"), find("version"), find("checksum")) {
            all.insert((name, version), sum);
        }
    }
    all
}

fn component(package: &Value, sums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let mut one =
        json!({ "type": "library", "bom-ref": purl(package), "name": name, "version": version, "purl": purl(package) });
    // An old way to write a choice of licences.
    let licence = text(package, "license").replace('/', " OR ");
    if !licence.is_empty() {
        one["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
        one["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    one
}

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("what cargo metadata prints");
    let all: Value = serde_json::from_str(&input).expect("JSON of cargo metadata");
    let lock = std::env::args().nth(1).expect("expected the path of Cargo.lock");
    let sums = sums(&std::fs::read_to_string(lock).expect("a lock file"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&all["packages"]).into_iter().map(|p| (text(&p, "id").to_owned(), p)).collect();
    // Tests bring packages of their own; they are in no binary.
    let needed = |node: &Value| -> BTreeSet<String> {
        let used = |dep: &Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
        list(&node["deps"]).iter().filter(|d| used(d)).map(|d| text(d, "pkg").to_owned()).collect()
    };
    let needs: BTreeMap<String, BTreeSet<String>> =
        list(&all["resolve"]["nodes"]).iter().map(|n| (text(n, "id").to_owned(), needed(n))).collect();
    let root = packages.values().find(|p| text(p, "name") == ROOT).expect("the command's own package");
    let mut seen = BTreeSet::from([text(root, "id").to_owned()]);
    let mut ahead: Vec<String> = seen.iter().cloned().collect();
    while let Some(id) = ahead.pop() {
        for next in needs.get(&id).into_iter().flatten() {
            if seen.insert(next.clone()) {
                ahead.push(next.clone());
            }
        }
    }
    let mut components: Vec<Value> =
        seen.iter().filter(|id| *id != text(root, "id")).map(|id| component(&packages[id], &sums)).collect();
    components.sort_by_key(|c| text(c, "purl").to_owned());
    let mut graph: Vec<Value> = seen
        .iter()
        .map(|id| {
            let mut on: Vec<String> = needs[id].iter().map(|d| purl(&packages[d])).collect();
            on.sort();
            json!({ "ref": purl(&packages[id]), "dependsOn": on })
        })
        .collect();
    graph.sort_by_key(|d| text(d, "ref").to_owned());
    let mut command = component(root, &sums);
    command["type"] = json!("application");
    let bom = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": command },
        "components": components, "dependencies": graph,
    });
    println!("{}", serde_json::to_string_pretty(&bom).expect("plain data"));
}
