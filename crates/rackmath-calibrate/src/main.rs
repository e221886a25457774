//! `rackmath-calibrate score|fit|transfer WHAT FOLDER`, and `rackmath-calibrate fits FOLDER`.

use rackmath_calibrate::{USAGE, answer};
use rackmath_spec::{Catalog, IntoEnumIterator as _, Kind, SpecError};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let tell = |done: usize, all: usize, what: &str| eprintln!("fit {done} of {all}: {what}");
    let (own, words) = match &words[..] {
        ["--catalog", folder, rest @ ..] => (Some(Path::new(*folder)), rest),
        all => (None, all),
    };
    let wrong = match catalog(own).map(|catalog| answer(&catalog, words, &tell)) {
        Ok(Some(Ok(text))) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Some(Err(error))) | Err(error) => format!("error: {error}"),
        Ok(None) => USAGE.to_owned(),
    };
    eprintln!("{wrong}");
    ExitCode::from(2)
}

/// What is embedded, and over it the files of a folder, so that constants can be tried without building anew.
fn catalog(own: Option<&Path>) -> Result<Catalog, SpecError> {
    let mut catalog = rackmath_catalog::embedded();
    let Some(folder) = own else { return Ok(catalog) };
    let said = |path: &Path, e: std::io::Error| SpecError::said(format!("{}: {e}", path.display()));
    if !folder.is_dir() {
        return Err(SpecError::said(format!("{} is not a folder", folder.display())));
    }
    for kind in Kind::iter() {
        let Ok(entries) = std::fs::read_dir(folder.join(kind.to_string())) else { continue };
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(|e| said(&path, e))?;
            let id = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
            catalog.add(kind, id, &text, None)?;
        }
    }
    Ok(catalog)
}
