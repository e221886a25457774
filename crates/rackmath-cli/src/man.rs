//! `rackmath man`: manual pages made from what every command declares.

use crate::menu;
use crate::output::{Output, print, save};
use clap::{ArgMatches, Command};
use rackmath::ask::Question;
use rackmath::{Catalog, Error};
use std::fmt::Write as _;
use std::path::PathBuf;

/// A text that troff takes as it stands.
fn plain(text: &str) -> String {
    let safe = text.replace('\\', "\\\\").replace('-', "\\-");
    safe.lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() })
        .collect::<Vec<_>>()
        .join("\n")
}

/// The page of a command, or the overview.
fn page(name: Option<&str>) -> Result<String, Error> {
    let typed: Vec<String> = std::iter::once("rackmath").chain(name).map(str::to_owned).collect();
    let entry = match name {
        None => None,
        Some(name) => Some(menu::find(name).ok_or_else(|| {
            let near = rackmath_spec::nearest(name, menu::all().map(|e| e.name));
            Error::said(format!("no command \"{name}\"")).hint(
                near.first().map_or_else(|| "rackmath --help lists them".into(), |n| format!("did you mean {n}?")),
            )
        })?),
    };
    let fields = entry.and_then(menu::Entry::question).map_or_else(Vec::new, Question::fields);
    let mut all = menu::command(&typed, entry, &fields);
    let command: &mut Command = match name {
        Some(name) => all.find_subcommand_mut(name).ok_or_else(|| Error::said(format!("no command \"{name}\"")))?,
        None => &mut all,
    };
    let title = name.map_or_else(|| "rackmath".to_owned(), |n| format!("rackmath-{n}"));
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    line(format!(".TH {} 1 \"\" \"rackmath {}\"", plain(&title.to_uppercase()), env!("CARGO_PKG_VERSION")));
    line(format!(".SH NAME\n{} \\- {}", plain(&title), plain(&about)));
    line(format!(".SH SYNOPSIS\n.nf\n{}\n.fi", plain(&command.render_usage().to_string().replace("Usage: ", ""))));
    if name.is_none() {
        line(format!(".SH COMMANDS\n.nf\n{}\n.fi", plain(&menu::grouped())));
    }
    line(".SH OPTIONS".to_owned());
    for arg in command.get_arguments().filter(|a| !a.is_hide_set()) {
        let value = arg
            .get_value_names()
            .and_then(|v| v.first())
            .map(|v| format!(" {v}"))
            .filter(|_| arg.get_action().takes_values());
        let flag = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long}"),
            (None, Some(long)) => format!("--{long}"),
            _ => arg.get_id().to_string().trim_start_matches('/').to_uppercase(),
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        line(format!(".TP\n.B {}\n{}", plain(&format!("{flag}{}", value.unwrap_or_default())), plain(&help)));
    }
    if let Some(examples) = command.get_after_help() {
        line(format!(".SH EXAMPLES\n.nf\n{}\n.fi", plain(&examples.to_string())));
    }
    Ok(out)
}

pub fn run(_: Catalog, given: &ArgMatches, _: &Output) -> Result<(), Error> {
    if let Some(folder) = given.get_one::<PathBuf>("into") {
        std::fs::create_dir_all(folder).map_err(|e| crate::failure::at(folder, e))?;
        save(&folder.join("rackmath.1"), page(None)?.as_bytes())?;
        for entry in menu::all() {
            save(&folder.join(format!("rackmath-{}.1", entry.name)), page(Some(entry.name))?.as_bytes())?;
        }
        return Ok(());
    }
    print(&page(given.get_one::<String>("command").map(String::as_str))?)
}
