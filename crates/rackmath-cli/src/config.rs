//! Settings to begin with: `rackmath.toml` in this folder or in the settings folder, or the file of `--config`.
//!
//! ```toml
//! [defaults]               # any flag by its name; a command takes those it has
//! on = "8xh200"
//! engine = "vllm"
//! price = "$2.10/h"
//!
//! [plan]                   # for one command only
//! tpot = "30ms"
//! ```
//!
//! What is typed wins. What was taken from the file is said on standard error, unless `--quiet`.

use crate::failure::at;
use crate::menu;
use crate::output::tell;
use rackmath::Error;
use rackmath::field::Field;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

const NAME: &str = "rackmath.toml";

/// The words that were typed, and those the settings add.
pub fn settled(mut typed: Vec<String>, fields: &[Field]) -> Result<Vec<String>, Error> {
    let given = |flag: &str| typed.iter().any(|w| w == flag || w.starts_with(&format!("{flag}=")));
    // Only a question has settings; help and tools do not wait for a file.
    let help = ["--help", "-h", "--no-config"].iter().any(|flag| given(flag));
    let Some(path) = (!fields.is_empty() && !help).then(|| place(&typed)).flatten() else { return Ok(typed) };
    let text = std::fs::read_to_string(&path).map_err(|e| at(&path, e))?;
    let table: Table = text.parse().map_err(|e: toml::de::Error| at(&path, e.message().to_owned()))?;
    let command = typed.iter().skip(1).find(|word| menu::find(word).is_some()).cloned().unwrap_or_default();
    let added = added(&table, &command, fields, &typed).map_err(|problem| at(&path, problem))?;
    if !added.is_empty() && !given("--quiet") {
        tell(format_args!("note: {}: {}", path.display(), added.join(" ")));
    }
    typed.extend(added);
    Ok(typed)
}

/// The file: as typed, here, or in the settings folder.
fn place(typed: &[String]) -> Option<PathBuf> {
    // What stands behind -- is somebody else's command line.
    let typed: Vec<&String> = typed.iter().take_while(|word| *word != "--").collect();
    let named = typed.iter().enumerate().find_map(|(i, word)| match word.strip_prefix("--config") {
        Some("") => typed.get(i + 1).map(|word| (*word).clone()),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    if let Some(named) = named {
        return Some(named.into());
    }
    let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let settings = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let places = [Some(PathBuf::from(NAME)), settings.map(|s| s.join("rackmath").join(NAME))];
    places.into_iter().flatten().find(|path: &PathBuf| Path::is_file(path))
}

/// Flags of the file that the command has and that were not typed.
fn added(table: &Table, command: &str, fields: &[Field], typed: &[String]) -> Result<Vec<String>, String> {
    let mut flags = Vec::new();
    for (name, value) in table {
        let Value::Table(section) = value else {
            return Err(format!("{name} stands outside a section; expected [defaults] or [plan]"));
        };
        if name != "defaults" && menu::find(name).is_none() {
            return Err(format!("[{name}] is no command; expected [defaults] or a command such as [plan]"));
        }
        if name != "defaults" && name != command {
            continue;
        }
        for (flag, value) in section {
            let known = fields
                .iter()
                .find(|f| f.position.is_none() && (&f.flag == flag || f.aliases.iter().any(|a| a == flag)));
            // A default of another command is no slip; in a command's own section it is.
            let Some(field) = known else {
                if name == command {
                    let near = rackmath_spec::nearest(flag, fields.iter().map(|f| f.flag.as_str()));
                    return Err(format!(
                        "[{name}] {flag}: no such option; {} has {}",
                        command,
                        near.first().map_or("others", String::as_str)
                    ));
                }
                continue;
            };
            let names = || std::iter::once(&field.flag).chain(&field.aliases).map(|n| format!("--{n}"));
            let short = field.short.map(|letter| format!("-{letter}"));
            let already = |word: &String| {
                names().any(|n| *word == n || word.starts_with(&format!("{n}=")))
                    || short.as_ref().is_some_and(|s| word.starts_with(s.as_str()) && !word.starts_with("--"))
            };
            if typed.iter().any(already) {
                continue;
            }
            let said = match value {
                Value::String(text) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                Value::Boolean(true) => {
                    flags.push(format!("--{}", field.flag));
                    continue;
                }
                Value::Boolean(false) => continue,
                other => {
                    let kind = other.type_str();
                    return Err(format!("[{name}] {flag} is of kind {kind}; expected a text, a number, true or false"));
                }
            };
            flags.retain(|f: &String| !f.starts_with(&format!("--{}=", field.flag)));
            flags.push(format!("--{}={said}", field.flag));
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath::ask::Question;

    fn asked(text: &str, command: &str, question: Question, typed: &[&str]) -> Result<Vec<String>, String> {
        let typed: Vec<String> = typed.iter().map(|w| (*w).to_owned()).collect();
        added(&text.parse().expect("TOML"), command, &question.fields(), &typed)
    }

    #[test]
    fn a_command_takes_what_it_has_and_typed_words_win() {
        let file = "[defaults]\non = \"8xh200\"\nengine = \"vllm\"\n[plan]\ntpot = \"30ms\"\n";
        let plan = asked(file, "plan", Question::Plan, &["rackmath", "plan"]).expect("read");
        assert!(plan.contains(&"--on=8xh200".to_owned()) && plan.contains(&"--tpot=30ms".to_owned()), "{plan:?}");
        let step = asked(file, "step", Question::Step, &["rackmath", "step"]).expect("read");
        assert_eq!(step, ["--on=8xh200"]);
        assert_eq!(asked(file, "step", Question::Step, &["rackmath", "step", "--on", "h100"]), Ok(vec![]));
    }

    #[test]
    fn slips_are_refused_by_name() {
        let refused = |text: &str| asked(text, "plan", Question::Plan, &["rackmath", "plan"]).expect_err("refused");
        assert!(refused("[plann]\ntpot = \"30ms\"\n").contains("plann"));
        assert!(refused("on = \"h100\"\n").contains("[defaults]"));
        assert!(refused("[plan]\ntpott = \"30ms\"\n").contains("tpot"));
    }
}
