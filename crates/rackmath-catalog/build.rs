//! Lists the files of `data/`, folder by folder, as (file stem, text, packed): packed is a mark that no TOML begins with, a
//! line of the file's other names, and the same tables as JSON, which the readers take in a fifth of the time.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let data = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("data");
    println!("cargo::rerun-if-changed={}", data.display());
    let mut code = String::from("&[\n");
    for folder in sorted(&data).into_iter().filter(|p| p.is_dir()) {
        let kind = folder.file_name().expect("a folder").to_string_lossy().into_owned();
        writeln!(code, "    ({kind:?}, &[").expect("string");
        for file in sorted(&folder).into_iter().filter(|p| p.extension().is_some_and(|x| x == "toml")) {
            let stem = file.file_stem().expect("a file").to_string_lossy();
            let (path, text) = (file.display().to_string(), fs::read_to_string(&file).expect("readable"));
            // What is no TOML is left to the reader, which says why.
            // A long table of measurements is one string, which packing would only repeat.
            let packed = text.parse::<toml::Table>().ok().filter(|t| !t.contains_key("measured")).and_then(|table| {
                let aliases = table.get("aliases").and_then(toml::Value::as_array).into_iter().flatten();
                let names: Vec<_> = aliases.chain(table.get("hf")).filter_map(toml::Value::as_str).collect();
                Some(format!("\u{1}{}\n{}", names.join("\t"), serde_json::to_string(&table).ok()?))
            });
            writeln!(code, "        ({stem:?}, include_str!({path:?}), {packed:?}),").expect("string");
        }
        code.push_str("    ]),\n");
    }
    code.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("files.rs"), code).expect("OUT_DIR is writable");
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable").path()).collect();
    files.sort();
    files
}
