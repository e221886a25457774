//! Where answers go: standard output as text or JSON, and files.

use crate::failure::at;
use clap::ArgMatches;
use rackmath::Error;
use rackmath::ask::Reply;
use rackmath::plan::File;
use rackmath_report::reply::{Part, Show, page, picture, table};
use rackmath_report::{Style, png, svg};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

pub struct Output {
    pub json: bool,
    pub style: Style,
}

impl Output {
    /// Colour and width for this terminal.
    pub fn new(given: &ArgMatches) -> Self {
        let color = match given.get_one::<String>("color").map(String::as_str) {
            Some("always") => true,
            Some("never") => false,
            _ => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
                io::stdout().is_terminal() && !refused && std::env::var("TERM").as_deref() != Ok("dumb")
            }
        };
        let width = match given.get_one::<u16>("width") {
            Some(width) => usize::from(*width),
            None => terminal_size::terminal_size().map_or(100, |(w, _)| usize::from(w.0)).max(40),
        };
        Self { json: given.get_flag("json"), style: Style { color, width } }
    }

    /// Prints an answer, after saving the pictures that were asked for. Searches say what they found beside a picture;
    /// for others a picture is all that was asked for.
    pub fn reply(&self, reply: &Reply, part: Part, given: &ArgMatches) -> Result<(), Error> {
        let show = Show { figure: given.try_get_one::<String>("figure").ok().flatten().map(String::as_str), part };
        let saved = saved(reply, show, given)?;
        let search = matches!(reply, Reply::Plan(_) | Reply::Compare(_) | Reply::Frontier(_) | Reply::Hardware(_));
        if saved && !search && !self.json {
            return Ok(());
        }
        if self.json { print(&reply.json()?) } else { print(&page(reply, show, self.style)?) }
    }
}

/// Saves pictures and tables; whether any was asked for.
pub fn saved(reply: &Reply, show: Show<'_>, given: &ArgMatches) -> Result<bool, Error> {
    let wanted = |id| given.try_get_one::<PathBuf>(id).ok().flatten().filter(|_| !matches!(reply, Reply::Validate(_)));
    let mut any = false;
    for (path, kind) in ["svg", "png", "csv"].into_iter().filter_map(|kind| Some((wanted(kind)?, kind))) {
        let bytes = match kind {
            "svg" => svg::paint(&picture(reply, show)?.scene()).into_bytes(),
            "png" => png::paint(&picture(reply, show)?.scene()),
            _ => table(reply, show)?.into_bytes(),
        };
        save(path, &bytes)?;
        any = true;
    }
    Ok(any)
}

/// Writes to standard output; a reader that has seen enough is not an error.
pub fn print(text: &str) -> Result<(), Error> {
    written(io::stdout().write_all(text.as_bytes()))
}

fn written(done: io::Result<()>) -> Result<(), Error> {
    match done {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::said(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// Writes files into a folder, or one after the other to standard output for "-"; whether they went there.
pub fn into(folder: &Path, files: &[File]) -> Result<bool, Error> {
    let stdout = folder == Path::new("-");
    for f in files {
        if stdout {
            print(&format!("==> {} <==\n{}\n", f.name, f.text))?;
            continue;
        }
        let path = folder.join(&f.name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|e| at(parent, e))?;
        save(&path, f.text.as_bytes())?;
    }
    Ok(stdout)
}

/// Writes a file, or standard output for "-".
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if path == Path::new("-") {
        return written(io::stdout().write_all(bytes));
    }
    std::fs::write(path, bytes).map_err(|e| at(path, e))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
