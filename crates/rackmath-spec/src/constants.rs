//! Constants of one's own for an engine, laid over the catalogue's: what `rackmath fit` prints and `--with` takes.
//!
//! ```toml
//! [[engine]]
//! id = "sglang"
//! vendor = "AMD"                # only where the constants are those on this maker's chips
//! rows = 24
//! chips = ["mi300x"]
//! models = ["deepseek-v3"]
//! loads = "concurrency 4 to 64"
//!
//! [engine.overhead]
//! host_us = 700
//! ```
//!
//! Keys are those of the engine's file; what is not named stays. What the rows were about becomes a note of the engine, so that every answer
//! says where its constants come from.

use crate::file::parse_toml;
use crate::{Catalog, Date, Kind, SpecError};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    pub engine: Vec<EngineConstants>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineConstants {
    /// As in the catalogue.
    pub id: String,
    pub vendor: Option<String>,
    /// How many rows told them, and what they were about.
    pub rows: u64,
    pub chips: Vec<String>,
    pub models: Vec<String>,
    #[serde(default)]
    pub loads: String,
    /// Middle of |ln(predicted / measured)| of rows left out: with the catalogue's constants, and with these.
    pub error_before: Option<f64>,
    pub error_after: Option<f64>,
    #[serde(default)]
    pub overhead: BTreeMap<String, f64>,
    #[serde(default)]
    pub plain: BTreeMap<String, f64>,
    #[serde(default)]
    pub processor: BTreeMap<String, f64>,
}

impl Constants {
    pub fn read(file: &str, text: &str) -> Result<Self, SpecError> {
        parse_toml(file, text).map_err(|e| e.hint("expected what rackmath fit prints"))
    }

    /// Lays them over a catalogue.
    pub fn lay_over(&self, file: &str, catalog: &mut Catalog, today: Option<Date>) -> Result<(), SpecError> {
        for own in &self.engine {
            let id = catalog.engine(&own.id)?.0.id.clone();
            let text = catalog.files(Kind::Engines).find(|(known, _)| *known == id).map(|(_, text)| text.to_owned());
            let text = text.ok_or_else(|| SpecError::file(file, format!("engine {id} has no file")))?;
            catalog.add(Kind::Engines, &id, &own.over(file, &text)?, today)?;
        }
        Ok(())
    }
}

impl EngineConstants {
    /// What the rows were about, as a sentence.
    fn note(&self, file: &str) -> String {
        let loads = if self.loads.is_empty() { String::new() } else { format!(", {}", self.loads) };
        let (models, chips) = (self.models.join(", "), self.chips.join(", "));
        format!(
            "constants of {file}, from {} own rows of {models} on {chips}{loads}; elsewhere they are carried over",
            self.rows
        )
    }

    /// An engine's file with these constants in the place of its own.
    fn over(&self, file: &str, text: &str) -> Result<String, SpecError> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let overhead = if self.vendor.is_some() { "[on.overhead]" } else { "[overhead]" };
        let tables = [(overhead, &self.overhead), ("[plain]", &self.plain), ("[processor]", &self.processor)];
        for (heading, constants) in tables {
            for (key, value) in constants {
                let (from, to) = section(&lines, heading, self.vendor.as_deref())
                    .ok_or_else(|| SpecError::file(file, format!("engine {} has no {heading}", self.id)))?;
                let named =
                    |line: &String| line.split('=').next().is_some_and(|k| k.trim() == key) && line.contains('=');
                let written = format!("{key} = {value}");
                match lines[from..to].iter().position(named) {
                    Some(at) => lines[from + at] = written,
                    // Not written where it is nothing; a word that no engine has is refused when the file is read.
                    None => lines.insert(from, written),
                }
            }
        }
        let note = self.note(file).replace(['"', '\\'], "'");
        match lines.iter().position(|line| line.starts_with("notes = [")) {
            Some(at) => lines[at] = lines[at].replacen("notes = [", &format!("notes = [\"{note}\", "), 1),
            None => lines.insert(0, format!("notes = [\"{note}\"]")),
        }
        Ok(lines.join("\n") + "\n")
    }
}

/// Lines of a table, after its heading: of several makers' the one of this maker.
fn section(lines: &[String], heading: &str, vendor: Option<&str>) -> Option<(usize, usize)> {
    let ends = |from: usize| lines[from..].iter().position(|l| l.starts_with('[')).map_or(lines.len(), |n| from + n);
    let start = match vendor {
        Some(vendor) => {
            let named = format!("vendor = \"{vendor}\"");
            lines.iter().position(|line| line.trim() == named)?
        }
        None => 0,
    };
    let at = start + lines[start..].iter().position(|line| line.trim() == heading)?;
    Some((at + 1, ends(at + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[[engine]]\nid = \"one\"\nrows = 3\nchips = [\"h100\"]\nmodels = [\"m\"]\n\n[engine.overhead]\nhost_us = 7.5\n";

    #[test]
    fn constants_take_the_place_of_those_of_the_file_and_say_where_they_are_from() {
        let own = &Constants::read("my.toml", FILE).unwrap().engine[0];
        let text = "name = \"One\"\nnotes = [\"a\"]\n\n[overhead]\nhost_us = 500\nskew_us = 1\n\n[[on]]\nvendor = \"AMD\"\n\n[on.overhead]\nhost_us = 9\n";
        let over = own.over("my.toml", text).unwrap();
        assert!(over.contains("[overhead]\nhost_us = 7.5\nskew_us = 1\n") && over.ends_with("host_us = 9\n"), "{over}");
        assert!(over.contains(
            "notes = [\"constants of my.toml, from 3 own rows of m on h100; elsewhere they are carried over\", \"a\"]"
        ));
        let amd = EngineConstants { vendor: Some("AMD".into()), ..own.clone() };
        let over = amd.over("my.toml", text).unwrap();
        assert!(over.contains("host_us = 500") && over.ends_with("host_us = 7.5\n"), "{over}");
        let nobody = EngineConstants { vendor: Some("Intel".into()), ..own.clone() };
        assert!(nobody.over("my.toml", text).is_err());
    }

    #[test]
    fn a_slip_is_refused_with_its_place() {
        let wrong = Constants::read("my.toml", &FILE.replace("rows = 3", "rows = \"x\"")).unwrap_err().to_string();
        assert!(wrong.contains("my.toml") && wrong.contains("rows"), "{wrong}");
    }
}
