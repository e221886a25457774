//! Puts the page into the binary: every file under `ui/`, with its type and a tag of its content.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let ui = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("ui");
    println!("cargo::rerun-if-changed={}", ui.display());
    let mut files = Vec::new();
    collect(&ui, &mut files);
    files.sort();
    let mut code = String::from("pub static ASSETS: &[Asset] = &[\n");
    for file in files {
        let path = file.strip_prefix(&ui).expect("inside").to_str().expect("UTF-8").replace('\\', "/");
        let Some(mime) = mime(&path) else { panic!("{path}: a page file needs a known type") };
        let bytes = fs::read(&file).expect("readable");
        // FNV-1a: the tag only has to change when the file does.
        let tag =
            bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
        writeln!(
            code,
            "    Asset {{ path: {path:?}, mime: {mime:?}, tag: \"\\\"{tag:016x}\\\"\", bytes: include_bytes!({:?}) }},",
            file.display()
        )
        .expect("in memory");
    }
    code.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR").expect("set by cargo")).join("assets.rs"), code).expect("writable");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable").map(|e| e.expect("readable").path()) {
        if entry.is_dir() { collect(&entry, files) } else { files.push(entry) }
    }
}

fn mime(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}
