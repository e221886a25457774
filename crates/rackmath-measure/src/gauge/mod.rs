//! An open-loop load against an OpenAI-compatible server: what is sent and when is drawn first, arrivals never wait for answers, and what comes
//! back is stamped chunk by chunk.
//!
//! `target` (where, and whether it may be), `schedule` (when and how long), `prompt` (exact lengths without a tokenizer), `http` and `tls` (the
//! wire), `chunk` (what an event says), `run` (sending and stamping), `record` (what is kept of it), `summary` (figures and their definitions),
//! `discover` (what runs there), `session` (all of it in order, and the ladder of rates).

mod chunk;
mod discover;
mod http;
mod prompt;
mod record;
mod run;
mod schedule;
mod session;
mod summary;
mod target;
#[cfg(feature = "tls")]
mod tls;

pub use chunk::Chunk;
pub use discover::{Found, discovered, scraped, writing};
pub use http::{Client, Fault, Limits, Stop, Wait, Whole};
pub use prompt::{Endpoint, Writing, safe_ids};
pub use record::{Counted, Counts, KEPT_BYTES, Log, Record};
pub use run::{Ceiling, Ended, Load, Run, run};
pub use schedule::{Arrival, Arrivals, Drawn, Follow, Lengths, MOST_REQUESTS, Schedule, Sharing, drawn, replayed};
pub use session::{Measured, Plan, Server, Step, knee, no_answer};
pub use summary::{Client as ClientHealth, FOR_P99, Figure, Summary, Targets, Window, summary};
pub use target::{Key, Target};
