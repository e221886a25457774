//! Reads a trace: JSON lines as Mooncake publishes them, or comma-separated values with a header.
//!
//! JSON lines: `{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}`, time in
//! milliseconds, one hash per block of 512 tokens. Source: kvcache-ai/Mooncake, FAST'25 release of its traces.
//!
//! CSV: `time_s,input_tokens,output_tokens` and, where the trace is a bill, `cache_read_tokens`,
//! `cache_write_tokens` and `cache_write_1h_tokens`, which are parts of `input_tokens`.

use crate::SpecError;
use crate::error::{path, shorten};
use crate::trace::{Logged, Trace, TraceRequest};
use rackmath_units::{Seconds, Tokens};
use serde::Deserialize;

/// Tokens per hash in Mooncake's traces.
const BLOCK: f64 = 512.0;
/// Requests beyond which a trace is refused: they would not fit the size of a file anyway.
const MOST: usize = 4_000_000;
/// No prompt is longer.
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

/// Reads a trace in either format, told apart by its first character.
pub fn trace(name: &str, text: &str) -> Result<Trace, SpecError> {
    let requests = if text.trim_start().starts_with('{') { json_lines(name, text)? } else { csv(name, text)? };
    if requests.is_empty() {
        return Err(SpecError::File { file: path(name), problem: "no requests; expected one per line".into() });
    }
    let mut requests = requests;
    requests.sort_by(|a, b| a.time.get().total_cmp(&b.time.get()));
    let start = requests[0].time;
    for r in &mut requests {
        r.time = r.time.less(start);
    }
    Ok(Trace { requests, block: Tokens::new(BLOCK) })
}

fn json_lines(name: &str, text: &str) -> Result<Vec<TraceRequest>, SpecError> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let mut all = Vec::new();
    for (i, line) in lines {
        let row: Line = serde_json::from_str(line)
            .map_err(|e| SpecError::File { file: path(name), problem: format!("line {}: {e}", i + 1) })?;
        let place = Cell { name, line: i + 1 };
        all.push(TraceRequest {
            time: place.time("timestamp", row.timestamp / 1e3)?,
            input: place.tokens("input_length", row.input_length)?,
            output: place.tokens("output_length", row.output_length)?,
            blocks: row.hash_ids,
            logged: None,
        });
        if all.len() > MOST {
            return Err(place.wrong("trace", format!("more than {MOST} requests")));
        }
    }
    Ok(all)
}

fn csv(name: &str, text: &str) -> Result<Vec<TraceRequest>, SpecError> {
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    let header: Vec<&str> = lines.next().map_or(Vec::new(), |(_, l)| l.split(',').map(str::trim).collect());
    let known =
        ["time_s", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens"];
    if let Some(odd) = header.iter().find(|h| !known.contains(h)) {
        return Err(SpecError::unknown("column", odd, known.into_iter()));
    }
    let column = |wanted: &str| header.iter().position(|h| *h == wanted);
    let needed = |wanted: &'static str| {
        column(wanted).ok_or_else(|| SpecError::File {
            file: path(name),
            problem: format!("no column {wanted}; expected a header with time_s,input_tokens,output_tokens"),
        })
    };
    let (time, input, output) = (needed("time_s")?, needed("input_tokens")?, needed("output_tokens")?);
    let cached = ["cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens"].map(column);
    let mut all = Vec::new();
    for (i, line) in lines {
        let place = Cell { name, line: i + 1 };
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |at: usize| -> Result<f64, SpecError> {
            let text = cells.get(at).copied().unwrap_or("");
            text.parse::<f64>().map_err(|_| place.wrong(header[at], text))
        };
        let part = |at: Option<usize>| at.map_or(Ok(0.0), number).and_then(|n| place.tokens("cache tokens", n));
        let request_input = place.tokens("input_tokens", number(input)?)?;
        let logged = Logged { read: part(cached[0])?, written: part(cached[1])?, written_1h: part(cached[2])? };
        if logged.read + logged.written + logged.written_1h > request_input {
            return Err(place.wrong("cache tokens", "more than the whole prompt"));
        }
        all.push(TraceRequest {
            time: place.time("time_s", number(time)?)?,
            input: request_input,
            output: place.tokens("output_tokens", number(output)?)?,
            blocks: Vec::new(),
            logged: cached.iter().any(Option::is_some).then_some(logged),
        });
    }
    Ok(all)
}

struct Cell<'a> {
    name: &'a str,
    line: usize,
}

impl Cell<'_> {
    fn wrong(&self, field: &str, given: impl std::fmt::Display) -> SpecError {
        SpecError::Field {
            file: path(self.name),
            field: format!("line {} {field}", self.line),
            given: shorten(&given.to_string()),
            expected: "a number that is not negative, tokens up to 1e9, seconds up to 1e10".into(),
        }
    }

    fn time(&self, field: &str, seconds: f64) -> Result<Seconds, SpecError> {
        Seconds::checked(seconds).filter(|t| t.get() <= LATEST).ok_or_else(|| self.wrong(field, seconds))
    }

    fn tokens(&self, field: &str, value: f64) -> Result<Tokens, SpecError> {
        Tokens::checked(value).filter(|t| t.get() <= LONGEST).ok_or_else(|| self.wrong(field, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_formats_are_read_and_start_at_zero() {
        let lines = "{\"timestamp\": 2000, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [1, 2]}\n\
                     {\"timestamp\": 500, \"input_length\": 600, \"output_length\": 7, \"hash_ids\": [1, 3]}\n";
        let t = trace("t.jsonl", lines).unwrap();
        assert_eq!((t.requests.len(), t.requests[0].blocks[1], t.span().get()), (2, 3, 1.5));
        assert_eq!((t.input().get(), t.output().get(), t.has_blocks()), (1624.0, 12.0, true));
        let t = trace("t.csv", "time_s,input_tokens,output_tokens,cache_read_tokens\n3,100,10,80\n").unwrap();
        assert_eq!(t.requests[0].logged.unwrap().read.get(), 80.0);
    }

    #[test]
    fn a_slip_is_named_with_its_line() {
        let refused = |text: &str| trace("t.csv", text).unwrap_err().to_string();
        assert!(refused("time_s,input_tokens\n").contains("output_tokens"));
        assert!(refused("time_s,input_tokens,output_tokens\n0,-1,2\n").contains("line 2 input_tokens = -1"));
        assert!(refused("time_s,input_tokens,output_token\n0,1,2\n").contains("did you mean \"output_tokens\""));
        assert!(refused("time_s,input_tokens,output_tokens,cache_read_tokens\n0,1,2,3\n").contains("whole prompt"));
        assert!(refused("{\"timestamp\": 1}").contains("line 1"));
        assert!(refused("").contains("no column time_s"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\\n]{0,200}") {
            let _ = trace("t", &text);
        }
    }
}
