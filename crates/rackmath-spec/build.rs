//! Embeds the catalogue: one list of (file stem, text) per folder of `catalog/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../catalog");
    let mut code = String::new();
    for folder in ["models", "chips", "systems", "networks", "laws", "kernels", "deduce"] {
        let path = root.join(folder);
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(code, "pub(super) const {}: &[(&str, &str)] = &[", folder.to_uppercase()).expect("string");
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
