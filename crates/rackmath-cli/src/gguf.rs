//! GGUF files that are named: of each part its header, and nothing of the data behind it.

use crate::failure::at;
use rackmath::Error;
use rackmath_spec::file::gguf::{self, Header, MAX_HEADER};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub fn is(path: &Path) -> bool {
    path.extension().is_some_and(|x| x.eq_ignore_ascii_case("gguf"))
}

/// The one model in a folder of GGUF files: the first part of it, and no projector.
pub fn in_folder(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.filter_map(|e| e.ok().map(|e| e.path()));
    let mut all: Vec<PathBuf> = files.filter(|p| is(p) && !name(p).contains("mmproj")).collect();
    all.retain(|p| gguf::parts(&name(p)).is_none_or(|parts| parts.first() == Some(&name(p))));
    if all.len() == 1 { all.pop() } else { None }
}

/// What the header says, as a request carries it.
pub fn read(path: &Path) -> Result<String, Error> {
    let mut whole = header(path)?;
    if let Some(parts) = gguf::parts(&name(path)) {
        let mut all = parts.iter().map(|part| path.with_file_name(part));
        if let Some(first) = all.next() {
            whole = header(&first)?;
        }
        for part in all {
            whole.join(header(&part).map_err(|e| e.hint("all parts of a file must stand in one folder"))?);
        }
    } else if let Some(n) = whole.parts() {
        let hint = format!("parts are called NAME-00001-of-{n:05}.gguf");
        return Err(at(path, format!("one part of {n}, but its name does not say which")).hint(hint));
    }
    if let Some(n) = whole.tensors_of_all().filter(|n| *n != whole.tensors.len() as u64) {
        return Err(at(path, format!("its parts have {} tensors and should have {n}", whole.tensors.len())));
    }
    Ok(whole.carried().to_string())
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}

/// The header of one file, from as many of its first bytes as it takes.
fn header(path: &Path) -> Result<Header, Error> {
    let mut file = File::open(path).map_err(|e| at(path, e))?;
    let mut bytes = Vec::new();
    let mut step = 1 << 20;
    loop {
        let before = bytes.len();
        file.by_ref().take(step).read_to_end(&mut bytes).map_err(|e| at(path, e))?;
        if let Some(header) = gguf::header(&path.display().to_string(), &bytes)? {
            return Ok(header);
        }
        if bytes.len() == before {
            return Err(at(path, "the file ends before its header does").hint("was it downloaded in full?"));
        }
        if bytes.len() >= MAX_HEADER {
            return Err(at(path, format!("a header of more than {} MiB", MAX_HEADER >> 20)));
        }
        step = bytes.len() as u64;
    }
}
