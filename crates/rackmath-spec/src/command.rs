//! What a tool's command line takes, as its published parser says; whether a line keeps to it; and how one is written.

use crate::SpecError;
use crate::file::noun::noun;
use crate::line::words::split;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Words, each part with the facts for which it is said: names with blanks between them, `!name` where one must not hold.
pub type Template = Vec<(String, String)>;

/// What holds, by name, with its value where it has one; the values of a list stand on lines of their own.
pub type Facts = BTreeMap<&'static str, String>;

/// The flags of one command of one version.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
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
    /// When its flags came and went, where several versions were read.
    pub history: Option<History>,
    /// How long it takes to start.
    pub startup: Option<Startup>,
}

/// How long a server takes to start, part by part; three numbers are the tenth, the middle and the ninetieth of a hundred.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Startup {
    pub source: String,
    pub as_of: String,
    /// Gigabytes of weights that a host reads in a second, all its ranks together.
    pub load_gb_per_s: [f64; 3],
    pub load_rows: u64,
    /// Compiling: so much, and more for each layer; how far starts lie from it.
    pub compile_s: f64,
    pub compile_layer_s: f64,
    pub compile_spread: [f64; 2],
    pub compile_rows: u64,
    /// Capturing graphs, for each layer and size.
    pub graph_layer_size_s: [f64; 3],
    pub graph_rows: u64,
    /// The dry run, the cache and warming up.
    pub rest_s: [f64; 3],
    pub rest_rows: u64,
    pub held: Held,
}

/// How answers about starts were found to lie from published ones.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    pub source: String,
    /// Starts with a cache that was printed, the middle of the errors, and the share within 12 %.
    pub rows: u64,
    pub median: f64,
    pub within: f64,
    /// Shares of starts and of refusals that are called right, and how many refusals there were.
    pub starts: f64,
    pub refusals: f64,
    pub refused: u64,
}

/// The flags of one command over its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    pub source: String,
    pub as_of: String,
    /// Versions that were read, oldest first.
    pub read: Vec<String>,
    /// Flags that stand alone.
    #[serde(default)]
    pub switches: BTreeSet<String>,
    /// Flags that take several words.
    #[serde(default)]
    pub many: BTreeSet<String>,
    /// Flags by the first version read that has them.
    pub since: BTreeMap<String, BTreeSet<String>>,
    /// Flags by the last version read that has them, where that is not the newest.
    #[serde(default)]
    pub until: BTreeMap<String, BTreeSet<String>>,
    /// What the newest version has in the place of flags that went.
    #[serde(default)]
    pub instead: BTreeMap<String, String>,
}

/// What the versions of a command know of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Age {
    Known,
    /// Another version has it: the first and the last that was read and does, where that is not the oldest or the newest.
    Other {
        since: Option<String>,
        until: Option<String>,
    },
    Never,
}

impl History {
    fn at(&self, table: &BTreeMap<String, BTreeSet<String>>, flag: &str) -> Option<usize> {
        let (version, _) = table.iter().find(|(_, flags)| flags.contains(flag))?;
        self.read.iter().position(|v| v == version)
    }

    /// Whether a version has a flag. Between two versions that were read it has what either has; none means the newest.
    fn age(&self, flag: &str, version: Option<&str>) -> Age {
        let newest = self.read.len().saturating_sub(1);
        let Some(first) = self.at(&self.since, flag) else { return Age::Never };
        let last = self.at(&self.until, flag).unwrap_or(newest);
        let (below, above) = match version.map(numbers) {
            None => (newest, newest),
            Some(own) => {
                let below = self.read.iter().rposition(|v| numbers(v) <= own).unwrap_or(0);
                (below, self.read.iter().position(|v| numbers(v) >= own).unwrap_or(newest))
            }
        };
        if first <= above && last >= below {
            return Age::Known;
        }
        let name = |at: usize, edge: usize| (at != edge).then(|| self.read[at].clone());
        Age::Other { since: name(first, 0), until: name(last, newest) }
    }
}

/// The numbers of a version, as far as they are numbers: 0.19.2rc1 is 0, 19, 2.
fn numbers(version: &str) -> Vec<u64> {
    let version = version.trim_start_matches(['v', 'b']);
    let part = |part: &str| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().ok()
    };
    version.split('.').map_while(part).collect()
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

    /// Whether a version knows a flag, spelled as its list spells it; `--no-NAME` is as old as `--NAME`.
    pub fn age(&self, flag: &str, version: Option<&str>) -> Age {
        let positive = flag.strip_prefix("--no-").map(|name| format!("--{name}"));
        let known = |flag: &str| match &self.history {
            Some(history) => history.age(flag, version),
            None if self.flags.contains(flag) => Age::Known,
            None => Age::Never,
        };
        match (known(flag), positive.map(|flag| known(&flag))) {
            (Age::Never, Some(age)) if self.switch(&format!("--{}", flag.trim_start_matches("--no-"))) => age,
            (Age::Never, _) if self.flags.contains(flag) => Age::Known,
            (age, _) => age,
        }
    }

    /// Whether a flag stands alone.
    pub fn switch(&self, flag: &str) -> bool {
        let known = |flag: &str| self.history.as_ref().is_some_and(|h| h.switches.contains(flag));
        known(flag) || flag.strip_prefix("--no-").is_some_and(|name| known(&format!("--{name}")))
    }

    /// Whether a flag takes several words.
    pub fn takes_many(&self, flag: &str) -> bool {
        self.history.as_ref().is_some_and(|h| h.many.contains(flag))
    }

    /// Every flag of any version.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let old = self.history.iter().flat_map(|h| h.since.values().flatten());
        old.chain(&self.flags).map(String::as_str)
    }

    /// Refuses a line that does not begin with the command, or has a variable, flag or field the tool does not know.
    pub fn check(&self, line: &str) -> Result<(), SpecError> {
        let texts = |line: &str| -> Result<Vec<String>, SpecError> {
            Ok(split(line)?.into_iter().map(|word| word.text).collect())
        };
        let mut said = texts(line)?;
        while let Some((name, _)) = said.first().and_then(|word| word.split_once('=')) {
            let known = || self.on.iter().flat_map(|on| on.env.keys()).map(String::as_str);
            if !known().any(|own| own == name) {
                return Err(SpecError::unknown("variable", name, known()));
            }
            said.remove(0);
        }
        let own = texts(&self.command)?;
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
    let read = |h: &History| h.since.keys().chain(h.until.keys()).find(|v| !h.read.contains(v)).cloned();
    if let Some(odd) = list.history.as_ref().and_then(read) {
        return Err(SpecError::field(&file, "history", odd, "a version that was read"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
