//! Rows of a sweep as they come: comma-separated values, or JSON lines.
//!
//! Both are flat tables. Text is made block by block, so that threads can share the work. What is not known is empty between
//! commas and null in JSON; a text with a comma, a quote or a new line in it stands in quotes.

use rackmath::table::{Block, Column, Kind, NO_COUNT};
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    JsonLines,
}

impl Format {
    /// The end of the names of such files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    /// What stands above the rows.
    pub fn header(self, columns: &[(String, Kind)]) -> String {
        match self {
            Self::Csv => columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",") + "\n",
            Self::JsonLines => String::new(),
        }
    }

    /// The rows of a block; `words` are what the numbers of word columns stand for.
    pub fn lines(self, block: &Block, columns: &[(String, Kind)], words: &[String]) -> String {
        let json = self == Self::JsonLines;
        let none = if json { "null" } else { "" };
        let names: Vec<String> =
            columns.iter().map(|(name, _)| serde_json::Value::from(name.as_str()).to_string()).collect();
        // A cell has some 7 characters, with its name some 22.
        let mut out = String::with_capacity(block.rows * block.columns.len() * if json { 22 } else { 7 });
        for row in 0..block.rows {
            for (at, column) in block.columns.iter().enumerate() {
                if json {
                    let _ = write!(out, "{}{}:", if at == 0 { '{' } else { ',' }, names[at]);
                } else if at > 0 {
                    out.push(',');
                }
                let _ = match column {
                    Column::Counts(all) if all[row] == NO_COUNT => out.write_str(none),
                    Column::Counts(all) => write!(out, "{}", all[row]),
                    Column::Amounts(all) if all[row].is_nan() || json && !all[row].is_finite() => out.write_str(none),
                    Column::Amounts(all) => write!(out, "{}", all[row]),
                    Column::Words(all) => text(&mut out, &words[all[row] as usize], json),
                    Column::Texts(all) => text(&mut out, &all[row], json),
                    Column::Flags(all) => match all[row] {
                        Some(yes) => write!(out, "{yes}"),
                        None => out.write_str(none),
                    },
                };
            }
            out.push_str(if json { "}\n" } else { "\n" });
        }
        out
    }
}

/// A text as a cell.
fn text(out: &mut String, text: &str, json: bool) -> std::fmt::Result {
    match (json, text) {
        (true, "") => out.write_str("null"),
        (true, _) => write!(out, "{}", serde_json::Value::from(text)),
        (false, _) if text.contains([',', '"', '\n', '\r']) => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        (false, _) => out.write_str(text),
    }
}
