//! Rows of a planner's sweep as they come: comma-separated values, or JSON lines.
//!
//! Both are flat tables with the columns of [`COLUMNS`]. Text is made block by block, so that threads can share the work.

use rackmath::plan::sweep::{Block, COLUMNS, Column};
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    JsonLines,
}

impl Format {
    /// What stands above the rows.
    pub fn header(self) -> String {
        match self {
            Self::Csv => COLUMNS.map(|(name, _)| name).join(",") + "\n",
            Self::JsonLines => String::new(),
        }
    }

    /// The rows of a block; `words` are what the numbers of word columns stand for.
    pub fn lines(self, block: &Block, words: &[String]) -> String {
        // A line has some 250 characters, with names some 800.
        let mut out = String::with_capacity(block.rows * if self == Self::Csv { 256 } else { 800 });
        for row in 0..block.rows {
            for (at, column) in block.columns.iter().enumerate() {
                if self == Self::JsonLines {
                    let _ = write!(out, "{}\"{}\":", if at == 0 { '{' } else { ',' }, COLUMNS[at].0);
                } else if at > 0 {
                    out.push(',');
                }
                let _ = match column {
                    Column::Counts(all) => write!(out, "{}", all[row]),
                    Column::Amounts(all) if self == Self::JsonLines && !all[row].is_finite() => out.write_str("null"),
                    Column::Amounts(all) => write!(out, "{}", all[row]),
                    Column::Words(all) if self == Self::JsonLines => {
                        write!(out, "{}", serde_json::Value::from(words[all[row] as usize].as_str()))
                    }
                    Column::Words(all) => out.write_str(&words[all[row] as usize]),
                    Column::Flags(all) => write!(out, "{}", all[row]),
                };
            }
            out.push_str(if self == Self::Csv { "\n" } else { "}\n" });
        }
        out
    }
}
