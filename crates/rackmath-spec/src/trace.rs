//! A trace of requests: when each came, how long it was, and which prefix it shares or what was billed.
//! It is read from JSON lines as Mooncake publishes them, or from comma-separated values with a header.
//!
//! JSON lines: `{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}`, time in
//! milliseconds, one hash per block of 512 tokens. Source: kvcache-ai/Mooncake, FAST'25 release of its traces.
//!
//! CSV: the columns decide what it is, see `csv`.

mod csv;
#[cfg(test)]
mod tests;

use crate::SpecError;
use crate::error::shorten;
use rackmath_units::{Seconds, Tokens};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub requests: Vec<TraceRequest>,
    /// Tokens of one block, where requests name the blocks of their prompts.
    pub block: Tokens,
    pub format: TraceFormat,
    /// Whether requests say when they came; if not, all times are zero.
    pub timed: bool,
    /// Requests that came before the one on the line above them; they were put in order.
    pub reversed: usize,
    /// Which columns were read as time, prompt and answer; the first is empty where there are no times.
    pub columns: [String; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    Mooncake,
    Azure,
    BurstGpt,
    /// Comma-separated values with columns of our own or common names.
    Csv,
}

impl TraceFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Mooncake => "Mooncake JSON lines",
            Self::Azure => "Azure LLM inference CSV",
            Self::BurstGpt => "BurstGPT CSV",
            Self::Csv => "CSV",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TraceRequest {
    /// When it came, from the start of the trace.
    pub time: Seconds,
    pub input: Tokens,
    pub output: Tokens,
    /// The blocks of its prompt by content, first to last; empty when not known.
    pub blocks: Vec<u64>,
    /// What was read from and written to caches, where the trace is a bill.
    pub logged: Option<Logged>,
    /// Its conversation, where it waits for the turn before.
    pub turn: Option<Turn>,
}

/// A turn of a conversation: sent so long after the answer to the turn before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Which conversation, in order of appearance.
    pub session: usize,
    pub number: f64,
    pub think: Seconds,
    /// Leading tokens that it has in common with an earlier turn, where that is said.
    pub same: Tokens,
}

/// Cache traffic as a provider reports it; the rest of the prompt is fresh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logged {
    pub read: Tokens,
    /// Written for the shortest lifetime.
    pub written: Tokens,
    pub written_1h: Tokens,
}

impl Trace {
    pub fn span(&self) -> Seconds {
        self.requests.last().map_or(Seconds::ZERO, |r| r.time)
    }

    pub fn input(&self) -> Tokens {
        self.requests.iter().map(|r| r.input).sum()
    }

    pub fn output(&self) -> Tokens {
        self.requests.iter().map(|r| r.output).sum()
    }

    /// Whether requests are turns that wait for each other.
    pub fn has_turns(&self) -> bool {
        self.requests.iter().any(|r| r.turn.is_some())
    }

    pub fn has_blocks(&self) -> bool {
        self.requests.iter().any(|r| !r.blocks.is_empty())
    }
}

/// The largest trace worth reading: a week of a busy service, or four million requests.
pub const MAX_TRACE_BYTES: u64 = 512 << 20;

/// Tokens per hash in Mooncake's traces.
const BLOCK: f64 = 512.0;
/// Requests beyond which a trace is refused.
const MOST: usize = 4_000_000;
const LONGEST: f64 = 1e9;
/// No trace lasts longer, in seconds; dates since 1970 fit.
const LATEST: f64 = 1e10;

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: f64,
    output_length: f64,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// Reads a trace whose requests say when they came, in any of the formats, told apart by its first line.
pub fn read(name: &str, text: &str) -> Result<Trace, SpecError> {
    let trace = workload(name, text)?;
    if trace.timed {
        return Ok(trace);
    }
    let said = format!("no column time_s beside {} and {}", trace.columns[1], trace.columns[2]);
    Err(SpecError::file(name, said).hint(csv::EXPECTED))
}

/// Reads a trace whether or not its requests say when they came.
pub fn workload(name: &str, text: &str) -> Result<Trace, SpecError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut trace = if text.trim_start().starts_with('{') { json_lines(name, text)? } else { csv::read(name, text)? };
    let requests = &mut trace.requests;
    if requests.is_empty() {
        return Err(SpecError::file(name, "a header and no requests").hint("expected one request per line"));
    }
    trace.reversed = requests.windows(2).filter(|w| w[1].time < w[0].time).count();
    requests.sort_by(|a, b| a.time.get().total_cmp(&b.time.get()));
    let start = requests[0].time;
    for r in requests {
        r.time = r.time.less(start);
    }
    Ok(trace)
}

fn json_lines(name: &str, text: &str) -> Result<Trace, SpecError> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let mut all = Vec::new();
    for (i, line) in lines {
        let row: Line =
            serde_json::from_str(line).map_err(|e| SpecError::file(name, format!("line {}: {e}", i + 1)))?;
        let place = Cell { name, line: i + 1 };
        place.count(all.len())?;
        all.push(TraceRequest {
            time: place.time("timestamp", row.timestamp / 1e3)?,
            input: place.tokens("input_length", row.input_length)?,
            output: place.tokens("output_length", row.output_length)?,
            blocks: row.hash_ids,
            logged: None,
            turn: None,
        });
    }
    Ok(Trace {
        requests: all,
        block: Tokens::new(BLOCK),
        format: TraceFormat::Mooncake,
        timed: true,
        reversed: 0,
        columns: ["timestamp", "input_length", "output_length"].map(str::to_owned),
    })
}

struct Cell<'a> {
    name: &'a str,
    line: usize,
}

impl Cell<'_> {
    fn wrong(&self, field: &str, given: impl std::fmt::Display) -> SpecError {
        let expected = "a number that is not negative, tokens up to 1e9, seconds up to 1e10 or a date and time in UTC";
        self.refused(field, given, expected)
    }

    fn refused(&self, field: &str, given: impl std::fmt::Display, expected: &str) -> SpecError {
        SpecError::field(self.name, format!("line {} {}", self.line, shorten(field)), given, expected)
    }

    fn count(&self, before: usize) -> Result<(), SpecError> {
        if before < MOST {
            return Ok(());
        }
        Err(self.refused("trace", format!("more than {MOST} requests"), "a part of it: any hour or day will do"))
    }

    fn time(&self, field: &str, seconds: f64) -> Result<Seconds, SpecError> {
        Seconds::checked(seconds).filter(|t| t.get() <= LATEST).ok_or_else(|| self.wrong(field, seconds))
    }

    fn tokens(&self, field: &str, value: f64) -> Result<Tokens, SpecError> {
        Tokens::checked(value).filter(|t| t.get() <= LONGEST).ok_or_else(|| self.wrong(field, value))
    }
}
