//! A published figure that a question answers: what is asked, where the answer holds the figure, and what was printed.
//!
//! For figures that no row of a load can hold: memory of a training run, a step of reinforcement learning, what adapters cost.
//! A row is a request as the question takes it; what the rows of a file share stands under `common`, and requests are joined
//! field by field, groups inside them too.

use super::Place;
use crate::SpecError;
use crate::file::noun::{one, positive};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One figure and the request that asks for it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The question's name.
    pub question: String,
    pub request: Map<String, Value>,
    /// What was run, in words.
    pub what: String,
    /// What was measured, its unit in words.
    pub metric: String,
    /// Where the answer holds it, as a JSON pointer: of several, the first that leads to a number.
    pub reads: String,
    /// From the answer's unit to the published one.
    #[serde(default = "one", deserialize_with = "positive")]
    pub times: f64,
    pub value: f64,
    /// What the source does not say and was taken, and what else a reader must know.
    pub note: Option<String>,
}

/// What rows of this kind take of the common fields.
const SHARED: [&str; 5] = ["question", "request", "metric", "reads", "times"];

pub(super) fn read(file: &str, i: usize, common: &toml::Table, own: toml::Table) -> Result<Asked, SpecError> {
    let place = Place(format!("{file} asked {}", i + 1));
    let mut all: toml::Table = common.clone();
    all.retain(|key, _| SHARED.contains(&key));
    join(&mut all, own);
    let row: Asked = place.table(all)?;
    place.positive("value", row.value)?;
    if row.reads.split(' ').any(|pointer| !pointer.starts_with('/')) {
        return Err(place.wrong("reads", &row.reads, "JSON pointers such as /stages/0/total_bytes"));
    }
    Ok(row)
}

/// Own fields win; tables are joined.
fn join(all: &mut toml::Table, own: toml::Table) {
    for (key, value) in own {
        match (all.get_mut(&key), value) {
            (Some(toml::Value::Table(known)), toml::Value::Table(more)) => join(known, more),
            (_, value) => {
                all.insert(key, value);
            }
        }
    }
}
