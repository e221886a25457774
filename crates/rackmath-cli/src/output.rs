//! Where answers go: standard output as text or JSON, and files.

use crate::failure::at;
use clap::ArgMatches;
use rackmath::Error;
use rackmath::ask::Reply;
use rackmath::plan::File as Handed;
use rackmath_report::reply::{Detail, Part, Show, page, picture, table};
use rackmath_report::{Style, png, svg};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

pub struct Output {
    pub json: bool,
    pub style: Style,
    pub detail: Detail,
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
        let detail = if given.get_flag("quiet") {
            Detail::Verdict
        } else {
            Detail::Page { explain: given.get_flag("explained"), sources: given.get_flag("sources") }
        };
        Self { json: given.get_flag("json"), style: Style { color, width }, detail }
    }

    /// Prints an answer, after saving the pictures that were asked for. Searches say what they found beside a picture;
    /// for others a picture is all that was asked for.
    pub fn reply(&self, reply: &Reply, part: Part, given: &ArgMatches) -> Result<(), Error> {
        let figure = given.try_get_one::<String>("figure").ok().flatten().map(String::as_str);
        let show = Show { figure, part, detail: self.detail };
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

/// Says a line on standard error; nobody has to listen.
pub fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn written(done: io::Result<()>) -> Result<(), Error> {
    match done {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::said(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// Writes files into a folder, or one after the other to standard output for "-"; whether they went there.
pub fn into(folder: &Path, files: &[Handed]) -> Result<bool, Error> {
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

/// Writes a file, or standard output for "-". A file is there whole or as it was before, whenever the process is killed.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if path == Path::new("-") {
        return written(io::stdout().write_all(bytes));
    }
    let mut whole = Whole::new(path)?;
    whole.file().write_all(bytes).map_err(|e| at(path, e))?;
    whole.done()?;
    tell(format_args!("wrote {}", path.display()));
    Ok(())
}

/// A file that is written beside its place and moved there when it is whole.
pub struct Whole {
    /// Where it goes; what a link there leads to, so that the link stays.
    to: PathBuf,
    /// Where it grows; nothing for what cannot be moved to, such as `/dev/stdout`, which is written as it is.
    beside: Option<PathBuf>,
    file: File,
}

impl Whole {
    pub fn new(path: &Path) -> Result<Self, Error> {
        let to = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let plain = std::fs::metadata(&to).map_or(true, |m| m.is_file());
        let name = to.file_name().filter(|_| plain && !is_link(&to));
        let Some(name) = name else {
            let file = File::create(&to).map_err(|e| at(path, e))?;
            return Ok(Self { to, beside: None, file });
        };
        // Named for this process: two that write the same file at once do not meet.
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let beside = to.with_file_name(hidden);
        let file = File::create(&beside).map_err(|e| at(path, e))?;
        if let Ok(old) = std::fs::metadata(&to) {
            // Who could read it before still can. Where the system has it otherwise, it has it otherwise.
            let _ = file.set_permissions(old.permissions());
        }
        Ok(Self { to, beside: Some(beside), file })
    }

    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// All is written: from here on it is the file.
    pub fn done(self) -> Result<(), Error> {
        self.moved()
    }

    /// What was written until it was stopped: under another name, because it is not the file.
    pub fn partial(mut self) -> Result<PathBuf, Error> {
        if self.beside.is_some() {
            self.to.as_mut_os_string().push(".partial");
        }
        let to = self.to.clone();
        self.moved()?;
        Ok(to)
    }

    fn moved(mut self) -> Result<(), Error> {
        let Some(beside) = &self.beside else { return Ok(()) };
        // On the disk before it has the name, so that a power cut leaves one or the other.
        self.file.sync_all().map_err(|e| at(&self.to, e))?;
        std::fs::rename(beside, &self.to).map_err(|e| at(&self.to, e))?;
        self.beside = None;
        Ok(())
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = std::fs::remove_file(beside);
        }
    }
}

/// A link that leads nowhere yet: what is written goes where it leads.
fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink())
}
