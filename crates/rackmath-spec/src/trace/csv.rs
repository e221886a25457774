//! Traces as comma-separated values: which columns they have says what they are.
//!
//! | format | columns | time |
//! |--------|---------|------|
//! | Azure | `TIMESTAMP,ContextTokens,GeneratedTokens` | `2023-11-16 18:15:46.6805900`, UTC |
//! | BurstGPT | `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`, also with `Session ID` and `Elapsed time` | seconds |
//! | CSV | `time_s,input_tokens,output_tokens`, or the names below such as `time,prompt,answer`; time may be missing | seconds, milliseconds with `_ms`, or a date |
//!
//! Blocks of prompts by content are whole numbers in `hash_ids`, spaces between them; a block has as many tokens
//! (a power of two) as the ids of all prompts allow. With `session` and `think_ms` rows are turns of conversations: each is sent so long after the
//! answer to the turn before, and `prefix_blocks` (of 64 tokens) or `cached_tokens_recorded` say how much of it is not new.
//!
//! A CSV that is a bill also has `cache_read_tokens`, `cache_write_tokens` and `cache_write_1h_tokens`, parts of
//! `input_tokens`. Other columns are passed over unless they look like a slip of one that matters.
//!
//! Source: Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md and 2024.md; HPMLL/BurstGPT, BurstGPT_1.csv.

use super::{Cell, Logged, Trace, TraceFormat, TraceRequest, Turn};
use crate::error::{nearest, shorten};
use crate::{Date, SpecError};
use ::csv::StringRecord;
use rackmath_units::Tokens;
use std::collections::BTreeMap;

pub(super) const EXPECTED: &str = "expected a header with time_s,input_tokens,output_tokens, or names like them \
    (time, prompt, answer; timestamp_ms, isl, osl), or one of Azure or BurstGPT";

/// Names of the columns that matter, as [`key`] writes them; our own first.
const TIME: &str = "time_s timestamp time arrival_s arrival_time arrived_at timestamp_s time_ms timestamp_ms \
    arrival_ms";
const INPUT: &str = "input_tokens contexttokens request_tokens prompt_tokens context_tokens input_length prompt_length \
    input_len input isl";
const OUTPUT: &str = "output_tokens generatedtokens response_tokens completion_tokens generated_tokens output_length \
    response_length output_len output osl";
/// Names that may also be of something else, such as the text of a prompt: taken where there is none of the above.
const PLAIN_TIME: &str = "arrival arrived request_time start_time start_s start_ms sent_at ts ts_ms date datetime created_at \
    offset_s offset_ms";
const PLAIN_INPUT: &str = "prompt question prompt_len prompt_size input_size request request_length tokens_in in_tokens \
    num_input_tokens num_prompt_tokens prompt_token_count prefill_tokens";
const PLAIN_OUTPUT: &str = "answer response completion reply generation answer_tokens answer_length answer_len output_size \
    completion_length completion_len tokens_out out_tokens num_output_tokens num_generated_tokens completion_token_count \
    generation_tokens decode_tokens";
const CACHED: [&str; 3] = ["cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens"];
/// Columns of known formats that say nothing here, so that they are not taken for slips.
const OTHER: &str = "model total_tokens log_type session_id elapsed_time id client turn agent_depth \
    t_ms api_ms blocks tool_tokens system_tokens";
const IDS: &str = "hash_ids";
const SESSION: &str = "session";
const THINK: &str = "think_ms";
const TURN: &str = "turn";
/// What a turn has in common with an earlier one, with the tokens of its unit.
const SAME: [(&str, f64); 2] = [("prefix_blocks", 64.0), ("cached_tokens_recorded", 1.0)];
/// Tokens a block may have, the largest that fits first.
const BLOCKS: [f64; 8] = [2048.0, 1024.0, 512.0, 256.0, 128.0, 64.0, 32.0, 16.0];

fn key(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace([' ', '-'], "_")
}

struct Columns {
    header: Vec<String>,
    time: Option<usize>,
    input: usize,
    output: usize,
    cached: [Option<usize>; 3],
    ids: Option<usize>,
    turns: Option<Turns>,
}

/// Columns of conversations.
struct Turns {
    session: usize,
    think: usize,
    turn: Option<usize>,
    same: Option<(usize, f64)>,
}

pub(super) fn read(name: &str, text: &str) -> Result<Trace, SpecError> {
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
    let mut sessions = BTreeMap::new();
    let (mut sizes, mut named) = (BLOCKS.to_vec(), false);
    for row in rows {
        let row = row?;
        let place = Cell { name, line: row.position().map_or(0, |at| line(&text, at)) };
        place.count(all.len())?;
        if row.len() > columns.header.len() {
            let expected = format!("{} columns, as the header has", columns.header.len());
            return Err(place.refused("columns", row.len(), &expected));
        }
        let request = columns.request(&place, &row, &mut sessions)?;
        let (ids, tokens) = (request.blocks.len(), request.input.get());
        if ids > 0 {
            // Some traces have no ids for the last tokens of a prompt.
            named = true;
            sizes.retain(|size| (tokens / size).ceil() >= ids as f64);
        }
        if sizes.is_empty() {
            let expected =
                "one id for each block of a prompt, blocks alike in all rows: 16 to 2048 tokens, a power of two";
            return Err(place.refused(IDS, format!("{ids} ids for {tokens} tokens"), expected));
        }
        all.push(request);
    }
    let own = |at: Option<usize>| at.map_or_else(String::new, |at| columns.header[at].clone());
    Ok(Trace {
        requests: all,
        block: Tokens::new(if named { sizes[0] } else { super::BLOCK }),
        format: columns.format(),
        timed: columns.time.is_some(),
        reversed: 0,
        columns: [columns.time, Some(columns.input), Some(columns.output)].map(own),
    })
}

/// The line of a row: the reader counts empty lines and comments before it as its own.
fn line(text: &str, at: &::csv::Position) -> usize {
    let passed = text[at.byte() as usize..].lines().take_while(|l| l.is_empty() || l.starts_with('#')).count();
    at.line() as usize + passed
}

impl Columns {
    fn find(name: &str, header: Vec<String>) -> Result<Self, SpecError> {
        let known = || [TIME, INPUT, OUTPUT].into_iter().flat_map(|all| all.split(' ')).chain(CACHED);
        let plain = [OTHER, PLAIN_TIME, PLAIN_INPUT, PLAIN_OUTPUT];
        let passed = || known().chain(plain.into_iter().flat_map(|all| all.split(' ')));
        for odd in header.iter().filter(|h| !passed().any(|k| k == h.as_str())) {
            if !nearest(odd, known().filter(|k| k.len() > 5 && strsim::damerau_levenshtein(odd, k) <= 2)).is_empty() {
                return Err(SpecError::unknown("column", odd, known()));
            }
        }
        let column = |names: &str| -> Result<Option<usize>, SpecError> {
            let mut found =
                header.iter().enumerate().filter(|(_, h)| names.split(' ').any(|n| n == h.as_str())).map(|(at, _)| at);
            match (found.next(), found.next()) {
                (Some(a), Some(b)) => {
                    Err(SpecError::file(name, format!("columns {} and {} mean the same", header[a], header[b]))
                        .hint("remove one"))
                }
                (first, _) => Ok(first),
            }
        };
        let either = |names: &str, plain: &str| column(names)?.map_or_else(|| column(plain), |at| Ok(Some(at)));
        let needed = |names: &str, plain: &str| {
            let own = names.split(' ').next().unwrap_or_default();
            let said = || format!("no column {own} among {}", shorten(&header.join(",")));
            either(names, plain)?.ok_or_else(|| SpecError::file(name, said()).hint(EXPECTED))
        };
        if header.iter().all(String::is_empty) {
            return Err(SpecError::file(name, "the trace is empty: not even a header").hint(EXPECTED));
        }
        let time = either(TIME, PLAIN_TIME)?;
        let (input, output) = (needed(INPUT, PLAIN_INPUT)?, needed(OUTPUT, PLAIN_OUTPUT)?);
        let one = |name: &str| header.iter().position(|h| h == name);
        let same = SAME.iter().find_map(|(name, unit)| Some((one(name)?, *unit)));
        // With times, conversations are replayed as they were logged.
        let turns = match (time, one(SESSION), one(THINK)) {
            (None, Some(session), Some(think)) => Some(Turns { session, think, turn: one(TURN), same }),
            _ => None,
        };
        let ids = one(IDS);
        let cached = [column(CACHED[0])?, column(CACHED[1])?, column(CACHED[2])?];
        Ok(Self { header, time, input, output, cached, ids, turns })
    }

    fn format(&self) -> TraceFormat {
        match self.header[self.input].as_str() {
            "contexttokens" => TraceFormat::Azure,
            "request_tokens" => TraceFormat::BurstGpt,
            _ => TraceFormat::Csv,
        }
    }

    fn request(
        &self,
        place: &Cell,
        row: &StringRecord,
        sessions: &mut BTreeMap<String, usize>,
    ) -> Result<TraceRequest, SpecError> {
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
        let id =
            |word: &str| word.parse::<u64>().map_err(|_| place.refused(IDS, word, "whole numbers, spaces between"));
        let blocks = self.ids.map_or(Ok(Vec::new()), |at| cell(at).split_whitespace().map(id).collect())?;
        let turn = |t: &Turns| -> Result<Turn, SpecError> {
            let n = sessions.len();
            let same = t.same.map_or(Ok(0.0), |(at, unit)| number(at).map(|n| n * unit))?;
            Ok(Turn {
                session: *sessions.entry(cell(t.session).to_owned()).or_insert(n),
                number: place.tokens(TURN, t.turn.map_or(Ok(0.0), number)?)?.get(),
                think: place.time(THINK, number(t.think)? / 1e3)?,
                same: place.tokens("tokens in common", same)?,
            })
        };
        Ok(TraceRequest {
            turn: self.turns.as_ref().map(turn).transpose()?,
            time: place.time(self.time.map_or("time_s", |at| &self.header[at]), time)?,
            input,
            output: place.tokens(&self.header[self.output], number(self.output)?)?,
            blocks,
            logged: self.cached.iter().any(Option::is_some).then_some(logged),
        })
    }
}

/// Reads "2023-11-16 18:15:46.6805900", with a T for the space, with Z or an offset from UTC such as +00:00 behind it.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(['T', ' '])?;
    let date: Date = (date.len() == 10).then(|| date.parse().ok())??;
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        None => (time, 0.0),
        Some(at) if matches!(&time[at..], "Z" | "z") => (&time[..at], 0.0),
        Some(at) => {
            let sign = if time[at..].starts_with('-') { -1.0 } else { 1.0 };
            let (hours, minutes) = time[at + 1..].split_once(':')?;
            (&time[..at], sign * (part(hours, 14.0)? * 3600.0 + part(minutes, 59.0)? * 60.0))
        }
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let day = part(hour, 23.0)? * 3600.0 + part(minute, 59.0)? * 60.0 + part(second, 60.999_999_999)?;
    Some(date.days() as f64 * 86_400.0 + day - offset)
}

/// Digits, with a fraction or without, up to a bound.
fn part(text: &str, most: f64) -> Option<f64> {
    let plain = !text.is_empty() && text.len() <= 16 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    plain.then(|| text.parse::<f64>().ok()).flatten().filter(|n| *n <= most)
}
