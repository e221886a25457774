//! Files that users hand in: bounded reads, then text for the catalogue.

use crate::failure::Failure;
use rackmath::Catalog;
use rackmath_spec::file::{MAX_BYTES, MAX_TRACE_BYTES};
use rackmath_spec::{Date, IntoEnumIterator as _, Kind};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads a text file of bounded size.
pub fn read(path: &Path) -> Result<String, Failure> {
    bounded(path, MAX_BYTES, "a config.json or a catalogue file of a few kilobytes")
}

/// Reads a trace, which may be larger.
pub fn trace(path: &Path) -> Result<String, Failure> {
    bounded(path, MAX_TRACE_BYTES, "a part of the trace: an hour or a day will do")
}

fn bounded(path: &Path, most: u64, expected: &str) -> Result<String, Failure> {
    let fail = |problem: &str| Failure::new(format!("{}: {problem}", path.display()));
    let file = File::open(path).map_err(|e| fail(&e.to_string()))?;
    let size = file.metadata().map_or(0, |m| m.len());
    let too_large = || fail(&format!("larger than {} MiB", most >> 20)).hint(format!("expected {expected}"));
    if size > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| fail(&e.to_string()))?;
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|_| fail("not UTF-8 text").hint("expected a JSON, TOML or CSV file"))
}

/// The catalogue, with the user's folder added.
pub fn catalog(folder: Option<&Path>) -> Result<Catalog, Failure> {
    let mut catalog = rackmath_catalog::embedded();
    let Some(folder) = folder else { return Ok(catalog) };
    if !folder.is_dir() {
        return Err(Failure::new(format!("{} is not a folder", folder.display()))
            .hint("expected one with models/, chips/, systems/ or laws/ inside"));
    }
    for kind in Kind::iter() {
        for path in toml_files(&folder.join(kind.to_string()))? {
            catalog.add(kind, &stem(&path), &read(&path)?, today())?;
        }
    }
    Ok(catalog)
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|p| p.extension().is_some_and(|x| x == "toml"));
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}

/// Whether a word means a file rather than a name of the catalogue.
pub fn looks_like_a_path(word: &str) -> bool {
    let extension = Path::new(word).extension();
    word.starts_with(['.', '/', '~']) || extension.is_some_and(|x| x == "json" || x == "toml")
}

/// Adds the model a word points at, if it is a file; returns the name to ask the catalogue for.
pub fn model(catalog: &mut Catalog, word: &str) -> Result<String, Failure> {
    let path = Path::new(word);
    let known = !looks_like_a_path(word) && catalog.model(word).is_ok();
    if known || !(looks_like_a_path(word) || path.exists()) {
        return Ok(word.to_owned());
    }
    let path = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
    let text = read(&path)?;
    let name = path.display().to_string();
    catalog.add(Kind::Models, &name, &text, None)?;
    Ok(name)
}

/// Adds the chip or system a word points at, if it is a file; returns the name to ask the catalogue for.
pub fn machine(catalog: &mut Catalog, word: &str) -> Result<String, Failure> {
    if !looks_like_a_path(word) {
        return Ok(word.to_owned());
    }
    let path = Path::new(word);
    let (id, text) = (stem(path), read(path)?);
    let kind = if Kind::of(&text) == Kind::Systems { Kind::Systems } else { Kind::Chips };
    catalog.add(kind, &id, &text, None)?;
    Ok(id)
}

/// Today, so that a price sheet from the future is refused.
pub fn today() -> Option<Date> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Date::from_days(i64::try_from(since.as_secs() / 86_400).ok()?)
}

/// Adds the price sheet a word points at, if it is a file; returns the name to ask the catalogue for.
pub fn price(catalog: &mut Catalog, word: &str) -> Result<String, Failure> {
    if !looks_like_a_path(word) {
        return Ok(word.to_owned());
    }
    let text = read(Path::new(word))?;
    catalog.add(Kind::Prices, word, &text, today())?;
    Ok(word.to_owned())
}
