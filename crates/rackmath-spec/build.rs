//! Embeds the catalogue: one list of (file stem, text) per folder of `catalog/`, and one for `validation/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folders of the catalogue, and the tables of published measurements beside it.
const FOLDERS: &[&str] = &[
    "models",
    "chips",
    "systems",
    "networks",
    "laws",
    "kernels",
    "engines",
    "../validation",
    "prices",
    "tiers",
    "runs",
    "training",
    "deduce",
    "scenarios",
    "flags",
];

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../catalog");
    let mut code = String::new();
    for folder in FOLDERS {
        let path = root.join(folder);
        println!("cargo::rerun-if-changed={}", path.display());
        let list = folder.trim_start_matches("../").to_uppercase();
        writeln!(code, "pub(super) const {list}: &[(&str, &str)] = &[").expect("string");
        for file in sorted(&path) {
            println!("cargo::rerun-if-changed={}", file.display());
            let stem = file.file_stem().expect("a file").to_string_lossy();
            let full = file.canonicalize().expect("exists");
            writeln!(code, "    ({stem:?}, include_str!({:?})),", full.display().to_string()).expect("string");
        }
        code.push_str("];\n");
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("embedded.rs"), code).expect("OUT_DIR is writable");
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable").path()).collect();
    files.retain(|p| p.extension().is_some_and(|x| x == "toml"));
    files.sort();
    files
}
