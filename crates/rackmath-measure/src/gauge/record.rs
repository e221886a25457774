//! What a run leaves behind: one record of each request, and a log that counts all of them and keeps as many as fit into a bound.
//!
//! A log that grows past its bound forgets every second conversation, chosen by chance, and takes only such as it would have kept: what is left is
//! an even sample of the whole run, and the memory of a client does not grow with its hours. Counts are of all requests.

use super::http::Fault;
use rackmath_units::Chance;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a log keeps of requests unless told otherwise: about 200,000 short answers, or eight million chunks.
pub const KEPT_BYTES: usize = 64 << 20;
/// So many are kept whatever they hold: percentiles need them.
const LEAST: usize = super::FOR_P99;

/// How the tokens of an answer were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// In every chunk, by the server.
    Continuous,
    /// At the end, by the server.
    Usage,
    /// Chunks with content, by us.
    #[default]
    Chunks,
}

/// What one request met. Times are seconds after the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Record {
    pub index: u32,
    pub turn: u32,
    pub scheduled: f64,
    /// When the client took it up: this minus `scheduled` is the client's own lag.
    pub started: f64,
    /// How long a connection took, where none was kept.
    pub connect: f64,
    pub sent: f64,
    pub headers: Option<f64>,
    /// First and last chunk that carried a token.
    pub first: Option<f64>,
    pub last: Option<f64>,
    pub end: f64,
    /// Microseconds after `sent` and tokens of each chunk with content.
    pub chunks: Vec<(u32, u16)>,
    pub asked_input: u32,
    pub asked_output: u32,
    /// As the server counted them.
    pub input: Option<u32>,
    pub cached: Option<u32>,
    pub output: u32,
    pub counted: Counted,
    pub finish: Option<String>,
    /// Chunks with bytes that are no UTF-8.
    pub garbled: u32,
    /// A kept connection was found closed and replaced.
    pub reopened: bool,
    pub fault: Option<Fault>,
}

impl Record {
    pub fn ok(&self) -> bool {
        self.fault.is_none()
    }

    pub fn lag(&self) -> f64 {
        (self.started - self.scheduled).max(0.0)
    }

    pub fn ttft(&self) -> Option<f64> {
        Some(self.first? - self.scheduled)
    }

    /// (last - first)/(n - 1), of two tokens or more.
    pub fn tpot(&self) -> Option<f64> {
        let span = self.last? - self.first?;
        (self.output > 1).then(|| span / f64::from(self.output - 1))
    }

    pub fn e2e(&self) -> Option<f64> {
        Some(self.last? - self.scheduled)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.chunks.as_slice()) + self.finish.as_ref().map_or(0, String::len)
    }

    /// Gaps between chunks, each divided over the tokens of the chunk: seconds and tokens.
    pub fn gaps(&self) -> impl Iterator<Item = (f64, u16)> + '_ {
        let gap = |w: &[(u32, u16)]| {
            let n = w[1].1.max(1);
            (f64::from(w[1].0.saturating_sub(w[0].0)) * 1e-6 / f64::from(n), n)
        };
        self.chunks.windows(2).map(gap)
    }
}

/// What became of the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub asked: u64,
    pub sent: u64,
    pub answered: u64,
    /// Under way when the run was stopped.
    pub stopped: u64,
    pub faults: BTreeMap<String, u64>,
    /// One of each kind, in the server's words.
    pub examples: Vec<String>,
    /// Answers with fewer tokens than asked for.
    pub short: u64,
    /// Answers whose chunks carried bytes that are no UTF-8.
    pub garbled: u64,
    /// Tokens of all answers, as the server counted them.
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Prompts whose length the server counted as asked.
    pub exact_inputs: u64,
    /// Answers counted by the server, chunk by chunk or at the end.
    pub by_server: u64,
}

impl Counts {
    fn add(&mut self, r: &Record) {
        self.sent += 1;
        match &r.fault {
            None => {
                self.answered += 1;
                self.short += u64::from(r.output < r.asked_output);
                self.exact_inputs += u64::from(r.input == Some(r.asked_input));
                self.by_server += u64::from(r.counted != Counted::Chunks);
                self.input_tokens += u64::from(r.input.unwrap_or(r.asked_input));
                self.cached_tokens += u64::from(r.cached.unwrap_or(0));
                self.output_tokens += u64::from(r.output);
            }
            Some(Fault::Stopped) => self.stopped += 1,
            Some(fault) => {
                let n = self.faults.entry(fault.kind()).or_default();
                *n += 1;
                if *n == 1 {
                    self.examples.push(fault.to_string());
                }
            }
        }
        self.garbled += u64::from(r.garbled > 0);
    }
}

/// The requests of a run: all of them counted, a sample of them kept.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub records: Vec<Record>,
    pub counts: Counts,
    /// Connections that were opened for a request, and kept ones that the server had closed.
    pub opened: u64,
    pub reopened: u64,
    /// When the last request was to be sent, and when the last one ended.
    pub last_scheduled: f64,
    pub end: f64,
    halved: u32,
    bytes: usize,
    most: usize,
}

impl Log {
    /// One that keeps at most so many bytes, and a thousand requests at least.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// One in so many requests is kept.
    pub fn one_in(&self) -> u64 {
        1 << self.halved
    }

    pub fn put(&mut self, mut record: Record) {
        self.counts.add(&record);
        self.opened += u64::from(record.connect > 0.0);
        self.reopened += u64::from(record.reopened);
        self.last_scheduled = self.last_scheduled.max(record.scheduled);
        self.end = self.end.max(record.end);
        if !kept(&record, self.halved) {
            return;
        }
        record.chunks.shrink_to_fit();
        self.bytes += record.bytes();
        self.records.push(record);
        while self.bytes > self.most && self.records.len() > LEAST && self.halved < 32 {
            self.halved += 1;
            self.records.retain(|r| kept(r, self.halved));
            self.bytes = self.records.iter().map(Record::bytes).sum();
        }
    }
}

/// Whether a conversation is among one in 2^`halved`; the same ones for its every turn, and fewer of them each time.
fn kept(record: &Record, halved: u32) -> bool {
    Chance::new(u64::from(record.index)).bits().trailing_zeros() >= halved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(n: u32, chunks: usize, most: usize) -> (Log, usize) {
        let (mut log, mut peak) = (Log::new(most), 0);
        for index in 0..n {
            let at = f64::from(index);
            let (scheduled, end) = (at, at + 1.0);
            let record = Record { index, scheduled, end, output: 3, chunks: vec![(0, 1); chunks], ..Record::default() };
            log.put(record);
            peak = peak.max(log.records.iter().map(Record::bytes).sum());
        }
        (log, peak)
    }

    #[test]
    fn a_log_counts_all_and_keeps_an_even_sample_within_its_bound() {
        let most = 2_000 * Record::default().bytes();
        let (log, peak) = filled(40_000, 0, most);
        assert!(peak <= most, "{peak} of {most}");
        assert_eq!((log.counts.sent, log.counts.answered, log.counts.output_tokens), (40_000, 40_000, 120_000));
        assert_eq!((log.last_scheduled, log.end), (39_999.0, 40_000.0));
        // What is kept stands for the whole, and for each part of it.
        for part in 0..4 {
            let inside = |r: &&Record| (part * 10_000..(part + 1) * 10_000).contains(&r.index);
            let stands_for = log.records.iter().filter(inside).count() as u64 * log.one_in();
            assert!((8_000..12_000).contains(&stands_for), "{part}: {stands_for}");
        }
        assert!(log.records.iter().all(|r| kept(r, log.halved)));
    }

    #[test]
    fn a_short_run_is_kept_whole_and_long_answers_leave_enough_for_percentiles() {
        let (log, _) = filled(5_000, 8, KEPT_BYTES);
        assert_eq!((log.records.len(), log.one_in()), (5_000, 1));
        let (log, _) = filled(3_000, 1_000, 1 << 20);
        assert!(log.one_in() > 1 && log.records.len() > LEAST / 3, "{} of {}", log.records.len(), log.one_in());
    }
}
