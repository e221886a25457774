//! A trace of requests: when each came, how long it was, and which prefix it shares or what was billed.

use rackmath_units::{Seconds, Tokens};

#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub requests: Vec<TraceRequest>,
    /// Tokens of one block, where requests name the blocks of their prompts.
    pub block: Tokens,
    pub format: TraceFormat,
    /// Whether requests say when they came; if not, all times are zero.
    pub timed: bool,
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

    pub fn has_blocks(&self) -> bool {
        self.requests.iter().any(|r| !r.blocks.is_empty())
    }
}
