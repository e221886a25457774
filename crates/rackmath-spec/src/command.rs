//! What a tool's command line takes, as its published parser says; whether a line keeps to it; and how one is written.

use crate::SpecError;
use crate::file::noun::noun;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Words, each part with the facts for which it is said: names with blanks between them, `!name` where one must not hold.
pub type Template = Vec<(String, String)>;

/// What holds, by name, with its value where it has one; the values of a list stand on lines of their own.
pub type Facts = BTreeMap<&'static str, String>;

/// The flags of one command of one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagList {
    pub id: String,
    pub tool: String,
    pub command: String,
    pub version: String,
    pub source: String,
    pub as_of: String,
    /// A container image that holds it.
    pub image: Option<String>,
    /// What to install where no image does.
    pub package: Option<String>,
    pub flags: BTreeSet<String>,
    /// Names in values written `name=value,name=value`, by flag.
    #[serde(default)]
    pub fields: BTreeMap<String, BTreeSet<String>>,
    /// Names in its configuration files, where they were read.
    #[serde(default)]
    pub keys: BTreeSet<String>,
    /// How a plan starts it.
    #[serde(default)]
    pub lines: Template,
    /// What the hosts behind the first one say as well.
    #[serde(default)]
    pub behind: Template,
    /// Its configuration file.
    #[serde(default)]
    pub config: Template,
    /// Switches that stand in that file and not on the line.
    #[serde(default)]
    pub said_in_config: BTreeSet<String>,
    /// What to know before a plan is started with it.
    #[serde(default)]
    pub notes: Template,
    /// The list of what shares requests out among its servers.
    pub router: Option<String>,
    /// A variable in which a server that sends or receives caches wants its pod's address.
    pub pod_address: Option<String>,
    /// How it is started on chips of other makers than its images are built for.
    #[serde(default)]
    pub on: Vec<OfVendor>,
}

/// What a tool wants on one maker's chips.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfVendor {
    pub vendor: String,
    /// The release its image holds, and where all of this was read.
    pub version: String,
    pub source: String,
    pub image: Option<String>,
    /// Variables set before the command.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Options of the container.
    #[serde(default)]
    pub container: String,
    /// Devices that software sees in one chip where that is not one, by chip; a degree counts devices.
    #[serde(default)]
    pub devices: BTreeMap<String, u64>,
    #[serde(default)]
    pub notes: Template,
}

impl FlagList {
    /// Whether its line depends on a fact.
    pub fn says(&self, fact: &str) -> bool {
        self.lines.iter().any(|(when, _)| when.split_whitespace().any(|name| name == fact))
    }

    /// What it wants on a maker's chips, where that is something else.
    pub fn on(&self, vendor: &str) -> Option<&OfVendor> {
        self.on.iter().find(|on| on.vendor == vendor)
    }

    /// Refuses a line that does not begin with the command, or has a variable, flag or field the tool does not know.
    pub fn check(&self, line: &str) -> Result<(), SpecError> {
        let mut said = words(line);
        while let Some((name, _)) = said.first().and_then(|word| word.split_once('=')) {
            let known = || self.on.iter().flat_map(|on| on.env.keys()).map(String::as_str);
            if !known().any(|own| own == name) {
                return Err(SpecError::unknown("variable", name, known()));
            }
            said.remove(0);
        }
        let own = words(&self.command);
        if !said.starts_with(&own) {
            return Err(SpecError::unknown("command", line, std::iter::once(self.command.as_str())));
        }
        let mut flag = String::new();
        for word in &said[own.len()..] {
            if word.starts_with('-') && word.parse::<f64>().is_err() {
                let name = word.split('=').next().unwrap_or(word);
                if !self.flags.contains(name) {
                    return Err(SpecError::unknown("flag", name, self.flags.iter().map(String::as_str)));
                }
                name.clone_into(&mut flag);
            } else if let Some(known) = self.fields.get(&flag) {
                for name in word.split(',').filter_map(|part| part.split_once('=')).map(|(name, _)| name) {
                    if !known.contains(name) {
                        return Err(SpecError::unknown("field", name, known.iter().map(String::as_str)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses a configuration file in YAML with a name the tool was not seen to know.
    pub fn check_keys(&self, yaml: &str) -> Result<(), SpecError> {
        for line in yaml.lines().map(|l| l.trim_start().trim_start_matches("- ")).filter(|l| !l.starts_with('#')) {
            let Some((key, _)) = line.split_once(':').filter(|(key, _)| !key.contains(['"', ' ', '/'])) else {
                continue;
            };
            if !self.keys.contains(key) {
                return Err(SpecError::unknown("key", key, self.keys.iter().map(String::as_str)));
            }
        }
        Ok(())
    }
}

pub(crate) fn read(id: &str, text: &str) -> Result<FlagList, SpecError> {
    let file = format!("flags {id}");
    let list: FlagList = noun(&file, id, text, &["keys_source"])?;
    if let Some(odd) = list.flags.iter().find(|f| !f.starts_with('-') || f.contains([' ', '='])) {
        return Err(SpecError::field(&file, "flags", odd, "a flag with its dashes"));
    }
    match list.fields.keys().find(|f| !list.flags.contains(*f)) {
        Some(odd) => Err(SpecError::field(&file, "fields", odd, "one of its flags")),
        None => Ok(list),
    }
}

/// The parts of a template whose facts hold, with values for `{name}`; a part with `{each name}` once for each of a list.
pub fn filled<S: AsRef<str>>(template: &[(S, S)], facts: &Facts) -> Vec<String> {
    let holds =
        |fact: &str| fact.strip_prefix('!').map_or_else(|| facts.contains_key(fact), |not| !facts.contains_key(not));
    let mut all = Vec::new();
    for (when, words) in template.iter().map(|(when, words)| (when.as_ref(), words.as_ref())) {
        if !when.split_whitespace().all(holds) {
            continue;
        }
        match words.split_once("{each ").and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
            Some((before, (name, after))) => {
                let values = facts.get(name).into_iter().flat_map(|list| list.lines());
                all.extend(values.map(|value| format!("{before}{value}{after}")));
            }
            None => all.push(valued(words, facts)),
        }
    }
    all
}

fn valued(words: &str, facts: &Facts) -> String {
    let (mut text, mut rest) = (String::new(), words);
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let value = after.split_once('}').and_then(|(name, after)| Some((facts.get(name)?, after)));
        // Braces around anything else are the tool's own.
        let (value, after) = value.map_or(("{", after), |(value, after)| (value.as_str(), after));
        text.push_str(value);
        rest = after;
    }
    text + rest
}

/// A template as one line: a blank between words, none before a comma.
pub fn line(template: &Template, facts: &Facts) -> String {
    let mut line = String::new();
    for part in filled(template, facts) {
        for word in part.split_whitespace() {
            if !line.is_empty() && !word.starts_with(',') {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    line
}

/// The words of a command line as a shell splits them: quotes hold blanks together, a backslash ends nothing.
pub fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut word, mut open, mut quote) = (String::new(), false, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, open) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if open || !word.is_empty() {
                    all.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (None, c) => word.push(c),
        }
    }
    if open || !word.is_empty() {
        all.push(word);
    }
    all.retain(|w| w != "\\");
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let line = "vllm serve a/b --x '{\"k\": \"v w\"}' \\\n  --y \"\" z";
        assert_eq!(words(line), ["vllm", "serve", "a/b", "--x", "{\"k\": \"v w\"}", "--y", "", "z"]);
    }

    #[test]
    fn a_template_says_what_holds() {
        let parts =
            [("", "t {n} {\"k\":{n}}"), ("big", "--big"), ("!big", "--small"), ("", "-u {each urls}"), ("n", ",x={n}")];
        let parts = parts.map(|(when, words)| (when.to_owned(), words.to_owned())).to_vec();
        let facts = Facts::from([("n", "3".into()), ("urls", "a\nb".into())]);
        assert_eq!(line(&parts, &facts), "t 3 {\"k\":3} --small -u a -u b,x=3");
    }

    fn list() -> FlagList {
        let text = "tool = 'T'\ncommand = 't run'\nversion = '1'\nsource = 'a test'\nas_of = '2026-11'\n\
                    flags = ['--size', '--data', '-c']\nfields.--data = ['kind', 'n']\nkeys = ['port', 'urls']\n\
                    [[on]]\nvendor = 'V'\nversion = '1'\nsource = 'a test'\nenv = { FAST = '1' }";
        read("t", text).unwrap()
    }

    #[test]
    fn a_flag_it_does_not_know_is_refused_with_the_nearest() {
        let l = list();
        assert!(l.check("t run --size -1 -c x --data kind=a,n=3 m").is_ok());
        assert!(l.check("t run --size=3").is_ok());
        assert!(l.check("t run --sise 3").unwrap_err().to_string().contains("did you mean \"--size\""));
        assert!(l.check("t run --data kind=a,m=3").unwrap_err().to_string().contains("no field \"m\""));
        assert!(l.check("t walk --size 3").is_err());
        assert!(l.check("FAST=1 t run --size 3").is_ok());
        assert!(l.check("FAT=1 t run --size 3").unwrap_err().to_string().contains("FAST"));
        assert!(l.check_keys("# note: here\nport: 80\nurls:\n  - \"a:1\"\n").is_ok());
        assert!(l.check_keys("prt: 80\n").is_err());
    }

    proptest! {
        #[test]
        fn any_line_is_checked(line in ".{0,120}") {
            let _ = (list().check(&format!("t run {line}")), list().check_keys(&line));
        }
    }
}
