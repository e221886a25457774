//! Traces as comma-separated values: which columns they have says what they are.
//!
//! | format | columns | time |
//! |--------|---------|------|
//! | Azure | `TIMESTAMP,ContextTokens,GeneratedTokens` | `2023-11-16 18:15:46.6805900`, UTC |
//! | BurstGPT | `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`, also with `Session ID` and `Elapsed time` | seconds |
//! | CSV | `time_s,input_tokens,output_tokens`, or the names below; time may be missing | seconds, milliseconds with `_ms`, or a date |
//!
//! A CSV that is a bill also has `cache_read_tokens`, `cache_write_tokens` and `cache_write_1h_tokens`, parts of
//! `input_tokens`. Other columns are passed over unless they look like a slip of one that matters.
//!
//! Source: Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md and 2024.md; HPMLL/BurstGPT, BurstGPT_1.csv.

use super::Cell;
use super::clock::seconds;
use crate::SpecError;
use crate::error::nearest;
use crate::trace::{Logged, TraceFormat, TraceRequest};
use ::csv::StringRecord;

/// What a header should hold.
pub(super) const EXPECTED: &str =
    "expected a header with time_s,input_tokens,output_tokens, or one of Azure or BurstGPT";

/// Names of the columns that matter, as [`key`] writes them; our own first.
const TIME: [&str; 9] = [
    "time_s",
    "timestamp",
    "time",
    "arrival_s",
    "arrival_time",
    "arrived_at",
    "timestamp_s",
    "time_ms",
    "timestamp_ms",
];
const INPUT: [&str; 10] = [
    "input_tokens",
    "contexttokens",
    "request_tokens",
    "prompt_tokens",
    "context_tokens",
    "input_length",
    "prompt_length",
    "input_len",
    "input",
    "isl",
];
const OUTPUT: [&str; 10] = [
    "output_tokens",
    "generatedtokens",
    "response_tokens",
    "completion_tokens",
    "generated_tokens",
    "output_length",
    "response_length",
    "output_len",
    "output",
    "osl",
];
const CACHED: [&str; 3] = ["cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens"];
/// Columns of known formats that say nothing here, so that they are not taken for slips.
const OTHER: [&str; 6] = ["model", "total_tokens", "log_type", "session_id", "elapsed_time", "id"];

/// How column names are compared.
fn key(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace([' ', '-'], "_")
}

/// Where the columns that matter are.
struct Columns {
    header: Vec<String>,
    time: Option<usize>,
    input: usize,
    output: usize,
    cached: [Option<usize>; 3],
}

pub(super) fn read(name: &str, text: &str) -> Result<(Vec<TraceRequest>, TraceFormat, bool), SpecError> {
    // The reader counts the two characters of a line's end as two lines.
    let text = text.replace("\r\n", "\n");
    let mut reader = ::csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).comment(Some(b'#')).trim(::csv::Trim::All);
    let mut reader = reader.from_reader(text.as_bytes());
    let rows = reader.records().filter(|row| row.as_ref().map_or(true, |row| row.iter().any(|cell| !cell.is_empty())));
    let mut rows = rows.map(|row| row.map_err(|e| SpecError::file(name, e.to_string())));
    let header = rows.next().transpose()?.map_or(Vec::new(), |row| row.iter().map(key).collect());
    let columns = Columns::find(name, header)?;
    let mut all = Vec::new();
    for row in rows {
        let row = row?;
        let place = Cell { name, line: row.position().map_or(0, |at| at.line() as usize) };
        place.count(all.len())?;
        if row.len() > columns.header.len() {
            let expected = format!("{} columns, as the header has", columns.header.len());
            return Err(place.refused("columns", row.len(), &expected));
        }
        all.push(columns.request(&place, &row)?);
    }
    Ok((all, columns.format(), columns.time.is_some()))
}

impl Columns {
    fn find(name: &str, header: Vec<String>) -> Result<Self, SpecError> {
        let known = || TIME.into_iter().chain(INPUT).chain(OUTPUT).chain(CACHED);
        for odd in header.iter().filter(|h| !known().chain(OTHER).any(|k| k == h.as_str())) {
            if !nearest(odd, known().filter(|k| k.len() > 5 && strsim::damerau_levenshtein(odd, k) <= 2)).is_empty() {
                return Err(SpecError::unknown("column", odd, known()));
            }
        }
        let column = |names: &[&str]| -> Result<Option<usize>, SpecError> {
            let mut found = header.iter().enumerate().filter(|(_, h)| names.contains(&h.as_str())).map(|(at, _)| at);
            match (found.next(), found.next()) {
                (Some(a), Some(b)) => {
                    Err(SpecError::file(name, format!("columns {} and {} mean the same", header[a], header[b]))
                        .hint("remove one"))
                }
                (first, _) => Ok(first),
            }
        };
        let needed = |names: &[&str]| {
            column(names)?.ok_or_else(|| SpecError::file(name, format!("no column {}", names[0])).hint(EXPECTED))
        };
        let time = column(&TIME)?;
        if header.iter().all(String::is_empty) {
            return Err(SpecError::file(name, "no column time_s").hint(EXPECTED));
        }
        let (input, output) = (needed(&INPUT)?, needed(&OUTPUT)?);
        let cached = [column(&CACHED[..1])?, column(&CACHED[1..2])?, column(&CACHED[2..])?];
        Ok(Self { header, time, input, output, cached })
    }

    fn format(&self) -> TraceFormat {
        match self.header[self.input].as_str() {
            "contexttokens" => TraceFormat::Azure,
            "request_tokens" => TraceFormat::BurstGpt,
            _ => TraceFormat::Csv,
        }
    }

    fn request(&self, place: &Cell, row: &StringRecord) -> Result<TraceRequest, SpecError> {
        let cell = |at: usize| row.get(at).unwrap_or("");
        let number = |at: usize| cell(at).parse::<f64>().map_err(|_| place.wrong(&self.header[at], cell(at)));
        let part = |at: Option<usize>| at.map_or(Ok(0.0), number).and_then(|n| place.tokens("cache tokens", n));
        let input = place.tokens(&self.header[self.input], number(self.input)?)?;
        let logged =
            Logged { read: part(self.cached[0])?, written: part(self.cached[1])?, written_1h: part(self.cached[2])? };
        if logged.read + logged.written + logged.written_1h > input {
            return Err(place.wrong("cache tokens", "more than the whole prompt"));
        }
        let time = match self.time {
            None => 0.0,
            Some(at) => {
                let scale = if self.header[at].ends_with("_ms") { 1e-3 } else { 1.0 };
                let said = cell(at).parse::<f64>().ok().map(|n| n * scale).or_else(|| seconds(cell(at)));
                said.ok_or_else(|| place.wrong(&self.header[at], cell(at)))?
            }
        };
        Ok(TraceRequest {
            time: place.time(self.time.map_or("time_s", |at| &self.header[at]), time)?,
            input,
            output: place.tokens(&self.header[self.output], number(self.output)?)?,
            blocks: Vec::new(),
            logged: self.cached.iter().any(Option::is_some).then_some(logged),
        })
    }
}
