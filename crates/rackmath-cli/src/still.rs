//! `rackmath web --static DIR`: the blackboard as a folder of files, with the engine for browsers and the catalogue beside it.

use crate::failure::at;
use crate::output::{print, save};
use rackmath::Error;
use rackmath_server::still;
use rackmath_spec::Kind;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// Writes every file; the engine is the one given, or the one beside this program.
pub fn write(folder: &Path, engine: Option<&Path>) -> Result<(), Error> {
    let (path, engine) = found(engine)?;
    if !engine.starts_with(b"\0asm") {
        return Err(Error::said(format!("{}: not a WebAssembly file", path.display())).hint(HOW));
    }
    let mut size = 0;
    let mut put = |name: &str, bytes: &[u8]| {
        size += bytes.len();
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|e| at(parent, e))?;
        save(&path, bytes)
    };
    for (name, bytes) in still::page() {
        put(name, &bytes)?;
    }
    put("engine/rackmath.wasm.bin", &packed(&engine)?)?;
    // Measurements are as large as the rest together, and one question asks for them.
    let all = rackmath_catalog::embedded();
    let measured = |kind: Kind| kind == Kind::Validation;
    put("engine/catalogue.json.bin", &packed(all.bundle_of(|kind| !measured(kind)).as_bytes())?)?;
    put("engine/measured.json.bin", &packed(all.bundle_of(measured).as_bytes())?)?;
    print(&format!(
        "the blackboard is in {0}: {1:.1} MB, of which browsers fetch what they show\nserve it with any file host, such as: python3 -m http.server -d {0}\n",
        folder.display(),
        size as f64 / 1e6
    ))
}

const HOW: &str = "crates/rackmath-wasm/build makes target/wasm/rackmath.wasm, and releases have it beside the binary; name it with --wasm FILE";

fn found(given: Option<&Path>) -> Result<(PathBuf, Vec<u8>), Error> {
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.with_file_name("rackmath.wasm");
    // A program that cargo built stands in target/release, the engine in target/wasm.
    let built = program.ancestors().nth(2).map(|target| target.join("wasm/rackmath.wasm")).unwrap_or_default();
    let places = given.map_or_else(|| vec![beside, built], |path| vec![path.to_owned()]);
    for path in &places {
        match std::fs::read(path) {
            Ok(bytes) => return Ok((path.clone(), bytes)),
            Err(e) if given.is_some() => return Err(Error::said(format!("{}: {e}", path.display())).hint(HOW)),
            Err(_) => {}
        }
    }
    Err(Error::said("no engine for browsers is beside this program").hint(HOW))
}

/// As small as gzip gets in some seconds: it is packed once, and every visitor waits for it.
fn packed(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let options = zopfli::Options { iteration_count: NonZeroU64::MIN, ..zopfli::Options::default() };
    let mut out = Vec::new();
    let done = zopfli::compress(options, zopfli::Format::Gzip, bytes, &mut out);
    done.map(|()| out).map_err(|e| Error::said(e.to_string()))
}
