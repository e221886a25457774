//! Reads the list of flags of a tool.

use super::parse_toml;
use crate::SpecError;
use crate::command::FlagList;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawList {
    tool: String,
    command: String,
    version: String,
    source: String,
    as_of: String,
    image: Option<String>,
    package: Option<String>,
    flags: BTreeSet<String>,
    #[serde(rename = "keys_source")]
    _keys_source: Option<String>,
    #[serde(default)]
    keys: BTreeSet<String>,
    #[serde(default)]
    fields: BTreeMap<String, BTreeSet<String>>,
}

/// Reads the flags of one command.
pub fn flag_list(id: &str, text: &str) -> Result<FlagList, SpecError> {
    let file = format!("flags {id}");
    let raw: RawList = parse_toml(&file, text)?;
    let wrong = |field: &str, given: &str, expected: &str| SpecError::field(&file, field, given, expected);
    if let Some(odd) = raw.flags.iter().find(|f| !f.starts_with('-') || f.contains([' ', '='])) {
        return Err(wrong("flags", odd, "a flag with its dashes"));
    }
    if let Some(odd) = raw.fields.keys().find(|f| !raw.flags.contains(*f)) {
        return Err(wrong("fields", odd, "one of its flags"));
    }
    Ok(FlagList {
        id: id.to_owned(),
        tool: raw.tool,
        command: raw.command,
        version: raw.version,
        source: raw.source,
        as_of: raw.as_of,
        image: raw.image,
        package: raw.package,
        flags: raw.flags,
        fields: raw.fields,
        keys: raw.keys,
    })
}
