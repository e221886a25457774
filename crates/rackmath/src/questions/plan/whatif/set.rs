//! Changes as people type them: a name, an equals sign, a value with its unit.

use crate::Error;
use crate::field::{self, Field, Unit, put};
use crate::plan::Request;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// What.
    pub what: String,
    /// Before, in words.
    pub from: String,
    /// After.
    pub to: String,
}

/// Makes one change: any field of a plan's request, by its flag or its own name.
pub(super) fn apply(request: &mut Request, word: &str) -> Result<Changed, Error> {
    let wrong = |expected: String| Error::value("set", format!("\"{word}\""), expected);
    let Some((key, text)) = word.split_once('=').map(|(k, v)| (k.trim().trim_start_matches("--"), v.trim())) else {
        return Err(wrong("a name and a value, such as tpot=20ms".into()));
    };
    let fields = field::of::<Request>();
    let flagged = |f: &&Field| f.flag == key || f.aliases.iter().chain(&f.old).any(|name| name == key);
    let own = |f: &&Field| f.path.rsplit('/').next() == Some(key);
    let Some(found) = fields.iter().find(flagged).or_else(|| fields.iter().find(own)) else {
        let names = fields.iter().flat_map(|f| [f.flag.as_str(), f.path.rsplit('/').next().unwrap_or_default()]);
        return Err(Error::unknown("setting to change", key, names));
    };
    // The flag of a switch that is on by default takes it away.
    let turned = found.unit == Unit::Switch && found.default == Value::Bool(true) && flagged(&found);
    let turn = |value: Value| match value {
        Value::Bool(yes) => Value::Bool(yes != turned),
        other => other,
    };
    let raw = serde_json::from_str(text).ok().filter(|_| !flagged(&found));
    let value =
        raw.map_or_else(|| found.parse(text), Ok).map_err(|e| wrong(e.trim_start_matches("expected ").to_owned()))?;
    let Value::Object(mut all) = serde_json::to_value(&*request).unwrap_or_default() else {
        return Err(wrong(word.into()));
    };
    put(&mut all, &found.path, turn(value));
    let changed: Request = serde_json::from_value(Value::Object(all)).map_err(|e| wrong(e.to_string()))?;
    let show = |r: &Request| {
        let all = serde_json::to_value(r).unwrap_or_default();
        found.show(&turn(all.pointer(&found.path).cloned().unwrap_or_default()))
    };
    let (from, to) = (show(request), show(&changed));
    *request = changed;
    Ok(Changed { what: found.flag.clone(), from, to })
}
