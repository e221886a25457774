//! Where answers go: standard output as text or JSON, and files.

use crate::args::{Color, Common};
use crate::failure::Failure;
use rackmath_report::Style;
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Colour and width for this terminal.
pub fn style(common: &Common) -> Style {
    let color = match common.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
            io::stdout().is_terminal() && !refused && std::env::var("TERM").as_deref() != Ok("dumb")
        }
    };
    let width = match common.width {
        Some(width) => usize::from(width),
        None => terminal_size::terminal_size().map_or(100, |(w, _)| usize::from(w.0)).max(40),
    };
    Style { color, width }
}

/// Prints an answer as JSON or as text.
pub fn answer<T: Serialize>(common: &Common, answer: &T, text: impl FnOnce(Style) -> String) -> Result<(), Failure> {
    if common.json { print(&rackmath::ask::versioned(answer)?) } else { print(&text(style(common))) }
}

/// Writes to standard output; a reader that has seen enough is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// Writes a file, or standard output for "-".
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new("-") {
        return match io::stdout().write_all(bytes) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!("standard output: {e}"))),
            _ => Ok(()),
        };
    }
    std::fs::write(path, bytes).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
