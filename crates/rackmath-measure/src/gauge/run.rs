//! Sends a schedule and stamps what comes back.
//!
//! One thread writes bodies ahead of time, one sleeps to absolute deadlines and hands each request over when its time has come; neither knows
//! of answers, so a slow server cannot slow its own load. Every read of a socket is stamped before it is looked at.

use super::chunk::{Chunk, short};
use super::http::{Client, Connection, Fault, Limits, Stop, Wait};
use super::prompt::Writing;
use super::record::{Counted, Log, Record};
use super::schedule::{Arrival, Arrivals, Follow, Schedule};
use crate::sse::Events;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

/// Bodies that are written ahead.
const AHEAD: usize = 256;
/// So many refused connections in a row, over so long, and the server counts as gone.
const GONE: (usize, f64) = (20, 3.0);

/// What a run may cost at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ceiling {
    pub tokens: Option<f64>,
    pub dollars: Option<f64>,
    /// Dollars for a million tokens, in and out.
    pub price: (f64, f64),
}

/// What was spent and is promised to requests under way: tokens and dollars.
#[derive(Debug, Default)]
struct Purse {
    spent: (f64, f64),
}

impl Ceiling {
    pub fn cost(&self, input: f64, output: f64) -> f64 {
        (input * self.price.0 + output * self.price.1) * 1e-6
    }

    fn holds(&self, (tokens, dollars): (f64, f64)) -> bool {
        self.tokens.is_none_or(|most| tokens <= most) && self.dollars.is_none_or(|most| dollars <= most)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All was sent and answered, or ran into its time limit.
    Complete,
    /// Somebody stopped it.
    Stopped,
    /// The next request could have cost more than is allowed.
    Ceiling,
    /// The server no longer takes connections.
    Gone,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Load {
    pub arrivals: Arrivals,
    pub schedule: Schedule,
    pub writing: Writing,
    pub ceiling: Ceiling,
    /// No request begins after so many seconds; for closed loops, and for conversations.
    pub until_s: Option<f64>,
    /// What may be kept of requests, in bytes ([`KEPT_BYTES`](super::KEPT_BYTES)).
    pub keep: usize,
}

/// What was done.
#[derive(Clone, Debug)]
pub struct Run {
    pub log: Log,
    pub seconds: f64,
    pub ended: Ended,
    /// Processor time of this client as a share of one core.
    pub cpu: Option<f64>,
}

struct Shared {
    client: Arc<Client>,
    writing: Writing,
    ceiling: Ceiling,
    zero: Instant,
    until: f64,
    stop: watch::Receiver<bool>,
    gone: Stop,
    purse: Mutex<Purse>,
    done: mpsc::UnboundedSender<Record>,
}

impl Shared {
    fn now(&self) -> f64 {
        Instant::now().saturating_duration_since(self.zero).as_secs_f64()
    }

    fn over(&self) -> bool {
        *self.stop.borrow() || self.gone.stopped()
    }

    /// Promises the most a request can cost; not if that is beyond the ceiling.
    fn reserve(&self, input: f64, output: f64) -> bool {
        let mut purse = self.purse.lock().unwrap_or_else(PoisonError::into_inner);
        let then = (purse.spent.0 + input + output, purse.spent.1 + self.ceiling.cost(input, output));
        let holds = self.ceiling.holds(then);
        if holds {
            purse.spent = then;
        }
        holds
    }

    /// Takes back what an answer did not use.
    fn settle(&self, record: &Record) {
        let unused = f64::from(record.asked_output) - f64::from(record.output);
        let more = record.input.map_or(0.0, |n| f64::from(n) - f64::from(record.asked_input));
        let mut purse = self.purse.lock().unwrap_or_else(PoisonError::into_inner);
        purse.spent.0 += more - unused;
        purse.spent.1 += self.ceiling.cost(more, -unused);
    }
}

/// One that the client runs in.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Runs a load against a server and waits for its last answer. Blocks.
pub fn run(client: &Arc<Client>, load: &Load, stop: &Stop) -> std::io::Result<Run> {
    let runtime = runtime()?;
    let before = cpu_seconds();
    let open = match load.arrivals {
        Arrivals::Open { rate, .. } => (rate * 0.25).ceil() as usize,
        Arrivals::Closed { concurrency } => concurrency,
        Arrivals::Trace { .. } => 8,
    };
    runtime.block_on(client.ahead(open.clamp(1, 512).min(load.schedule.len())));
    // Time for the first bodies to be written before the first is due.
    let zero = Instant::now() + Duration::from_millis(50);
    let (done, records) = mpsc::unbounded_channel();
    let gone = Stop::default();
    let shared = Arc::new(Shared {
        client: Arc::clone(client),
        writing: load.writing.clone(),
        ceiling: load.ceiling,
        zero,
        until: load.until_s.unwrap_or(f64::INFINITY),
        stop: stop.listen(),
        gone: gone.clone(),
        purse: Mutex::default(),
        done,
    });
    let gathering = runtime.spawn(gathered(records, gone.clone(), load.keep));
    let all_sent = match load.arrivals {
        Arrivals::Closed { concurrency } => closed(&runtime, shared, &load.schedule, concurrency),
        _ => paced(runtime.handle(), shared, &load.schedule),
    };
    let mut log = runtime.block_on(gathering).map_err(std::io::Error::other)?;
    let seconds = Instant::now().saturating_duration_since(zero).as_secs_f64();
    runtime.shutdown_timeout(Duration::from_millis(100));
    log.records.sort_by_key(|r| (r.index, r.turn));
    let ended = match (stop.stopped(), gone.stopped(), all_sent) {
        (true, _, _) => Ended::Stopped,
        (_, true, _) => Ended::Gone,
        (_, _, false) => Ended::Ceiling,
        _ => Ended::Complete,
    };
    // A time limit asks for as many as it holds.
    log.counts.asked = match (ended, load.until_s) {
        (Ended::Complete, Some(_)) => log.counts.sent,
        _ => load.schedule.requests() as u64,
    };
    Ok(Run {
        log,
        seconds,
        ended,
        cpu: before.zip(cpu_seconds()).map(|(before, after)| (after - before) / seconds.max(1e-3)),
    })
}

/// Collects records until nobody can send any more, and notices that a server is gone.
async fn gathered(mut records: mpsc::UnboundedReceiver<Record>, gone: Stop, keep: usize) -> Log {
    let (mut log, mut refused, mut since) = (Log::new(keep), 0, 0.0);
    while let Some(record) = records.recv().await {
        match &record.fault {
            Some(Fault::Connect(_)) if refused == 0 => (refused, since) = (1, record.end),
            Some(Fault::Connect(_)) => refused += 1,
            _ => refused = 0,
        }
        if refused >= GONE.0 && record.end - since >= GONE.1 {
            gone.now();
        }
        log.put(record);
    }
    log
}

/// Hands each request over at its time; whether the ceiling let all of them through.
fn paced(handle: &Handle, shared: Arc<Shared>, schedule: &Schedule) -> bool {
    let (bodies, written) = sync_channel(AHEAD);
    let writing = &shared.writing;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for arrival in schedule.arrivals() {
                let body = writing.of(&arrival);
                if bodies.send((arrival, body)).is_err() {
                    break;
                }
            }
        });
        let mut all_sent = true;
        for (index, (arrival, body)) in written.iter().enumerate() {
            let due = shared.zero + Duration::from_secs_f64(arrival.at);
            if arrival.at > shared.until || !slept(due, &shared) {
                break;
            }
            let (input, output) = arrival.tokens();
            if !shared.reserve(input, output) {
                all_sent = false;
                break;
            }
            let at = Some(arrival.at);
            drop(handle.spawn(conversation(Arc::clone(&shared), index as u32, arrival, body, at)));
        }
        drop(written);
        all_sent
    })
}

/// Sleeps to a moment; not to its end once the run is over.
fn slept(due: Instant, shared: &Shared) -> bool {
    const SLICE: Duration = Duration::from_millis(50);
    loop {
        if shared.over() {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(SLICE));
    }
}

/// So many are always under way.
fn closed(runtime: &tokio::runtime::Runtime, shared: Arc<Shared>, schedule: &Schedule, concurrency: usize) -> bool {
    let queue = Arc::new(Mutex::new(schedule.arrivals().enumerate()));
    let refused = Arc::new(AtomicUsize::new(0));
    let mut slots = tokio::task::JoinSet::new();
    for _ in 0..concurrency.min(schedule.len()) {
        let (shared, queue, refused) = (Arc::clone(&shared), Arc::clone(&queue), Arc::clone(&refused));
        let slot = async move {
            tokio::time::sleep_until(shared.zero.into()).await;
            while !shared.over() && shared.now() < shared.until {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((index, arrival)) = next else { break };
                let (input, output) = arrival.tokens();
                if !shared.reserve(input, output) {
                    refused.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                let body = shared.writing.of(&arrival);
                conversation(Arc::clone(&shared), index as u32, arrival, body, None).await;
            }
        };
        slots.spawn_on(slot, runtime.handle());
    }
    drop(shared);
    runtime.block_on(async { while slots.join_next().await.is_some() {} });
    refused.load(Ordering::Relaxed) == 0
}

/// A request and the turns that follow it, each when the one before has been answered.
async fn conversation(shared: Arc<Shared>, index: u32, arrival: Arrival, body: Vec<u8>, at: Option<f64>) {
    let Arrival { mut segments, output, then, .. } = arrival;
    let begun = Record {
        index,
        scheduled: at.unwrap_or_else(|| shared.now()),
        asked_input: segments.iter().map(|(_, n)| n).sum(),
        asked_output: output,
        ..Record::default()
    };
    let mut good = asked(&shared, begun, &body).await;
    for (turn, Follow { think_s, segment, output }) in then.into_iter().enumerate() {
        segments.push(segment);
        // What is not sent costs nothing.
        let unsent = Record {
            asked_input: segments.iter().map(|(_, n)| n).sum(),
            asked_output: output,
            input: Some(0),
            ..Record::default()
        };
        if !good || shared.over() || shared.now() > shared.until {
            good = false;
            shared.settle(&unsent);
            continue;
        }
        let body = shared.writing.body(&segments, output);
        tokio::time::sleep(Duration::from_secs_f64(think_s.max(0.0))).await;
        let record = Record { index, turn: turn as u32 + 1, scheduled: shared.now(), input: None, ..unsent };
        good = asked(&shared, record, &body).await;
    }
}

/// One request from beginning to end; whether it was answered.
async fn asked(shared: &Shared, mut record: Record, body: &[u8]) -> bool {
    record.started = shared.now();
    let mut stop = shared.stop.clone();
    let total = Duration::from_secs_f64(shared.client.limits.total_s);
    let fault = tokio::select! {
        answered = tokio::time::timeout(total, exchanged(shared, &mut record, body)) => match answered {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault),
            Err(_) => Some(Fault::Timeout(Wait::Total)),
        },
        _ = stop.wait_for(|stop| *stop) => Some(Fault::Stopped),
    };
    record.end = shared.now();
    record.fault = fault;
    shared.settle(&record);
    let good = record.ok();
    let _ = shared.done.send(record);
    good
}

async fn exchanged(shared: &Shared, record: &mut Record, body: &[u8]) -> Result<(), Fault> {
    let client = &shared.client;
    let bytes = client.request("POST", shared.writing.endpoint.path(), body);
    let mut kept = client.kept();
    loop {
        let mut connection = if let Some(connection) = kept.take() {
            connection
        } else {
            let from = shared.now();
            let connection = client.open().await?;
            record.connect = shared.now() - from;
            connection
        };
        record.sent = shared.now();
        let head = async {
            connection.send(&bytes).await?;
            connection.head().await
        };
        let limits = client.limits;
        let head = tokio::time::timeout(Duration::from_secs_f64(limits.head_s), head).await;
        match head {
            Err(_) => return Err(Fault::Timeout(Wait::Head)),
            // The server closed it while it was idle; nothing of an answer has come.
            Ok(Err(Fault::Cut | Fault::Connect(_))) if connection.used && connection.left.is_empty() => {
                record.reopened = true;
            }
            Ok(Err(fault)) => return Err(fault),
            Ok(Ok(head)) => {
                record.headers = Some(shared.now());
                return answer(shared, record, connection, head, limits).await;
            }
        }
    }
}

async fn answer(
    shared: &Shared,
    record: &mut Record,
    mut connection: Connection,
    mut head: super::http::Head,
    limits: Limits,
) -> Result<(), Fault> {
    let stall = Duration::from_secs_f64(limits.stall_s);
    let streams = head.content_type.to_ascii_lowercase().starts_with("text/event-stream");
    let mut reading = Reading::new(record);
    let (mut events, mut plain) = (Events::default(), Vec::new());
    let (mut input, mut body) = (std::mem::take(&mut connection.left), Vec::new());
    let mut at = shared.now();
    loop {
        let used = head.framing.take(&input, &mut body)?;
        if head.status == 200 && streams {
            events
                .push(&body, |data| reading.event(&Chunk::read(data), at))
                .map_err(|_| Fault::Malformed("an event without end".into()))?;
            reading.fault()?;
        } else if plain.len() < 4096 {
            plain.extend_from_slice(&body);
        } else {
            break;
        }
        body.clear();
        if head.framing.done() {
            connection.left = input.split_off(used.min(input.len()));
            break;
        }
        input.resize(16 << 10, 0);
        let read = tokio::time::timeout(stall, connection.read(&mut input)).await;
        let n = read.map_err(|_| Fault::Timeout(Wait::Stall))??;
        at = shared.now();
        input.truncate(n);
        if n == 0 {
            if head.framing != super::http::Framing::ToEnd {
                return Err(Fault::Cut);
            }
            head.keep = false;
            break;
        }
    }
    let said = short(&String::from_utf8_lossy(&plain));
    if head.status != 200 {
        let message = serde_json::from_slice::<serde_json::Value>(&plain).ok();
        let message = message
            .and_then(|v| v.pointer("/error/message").or_else(|| v.get("message")).and_then(|m| m.as_str().map(short)));
        return Err(Fault::Status(head.status, message.unwrap_or(said)));
    }
    if !streams {
        return Err(Fault::ContentType(if head.content_type.is_empty() {
            "none".into()
        } else {
            short(&head.content_type)
        }));
    }
    reading.end()?;
    if head.keep && connection.left.is_empty() {
        shared.client.keep(connection);
    }
    Ok(())
}

/// Follows the chunks of an answer.
struct Reading<'a> {
    record: &'a mut Record,
    /// By the server, so far.
    counted: Option<u64>,
    in_chunks: u32,
    maybe: Option<f64>,
    done: bool,
    fault: Option<Fault>,
}

impl<'a> Reading<'a> {
    fn new(record: &'a mut Record) -> Self {
        Self { record, counted: None, in_chunks: 0, maybe: None, done: false, fault: None }
    }

    fn event(&mut self, chunk: &Chunk, at: f64) {
        let r = &mut *self.record;
        r.garbled += u32::from(chunk.garbled);
        if let Some(said) = &chunk.error {
            self.fault = Some(Fault::Said(said.clone()));
        } else if chunk.malformed {
            self.fault = Some(Fault::Malformed("an event that is no chunk of an answer".into()));
        }
        self.done |= chunk.done;
        r.input = chunk.input.map(|n| n as u32).or(r.input);
        r.cached = chunk.cached.map(|n| n as u32).or(r.cached);
        if chunk.finished.is_some() {
            r.finish.clone_from(&chunk.finished);
        }
        // A count that comes with content counts chunk by chunk; one that comes alone, at the end, counts all.
        let grown = chunk.output.map(|n| n.saturating_sub(self.counted.unwrap_or(0)));
        let with_choice = chunk.content || chunk.maybe;
        let all_counted = r.counted == Counted::Continuous || self.in_chunks == 0;
        let tokens = match grown {
            Some(n) if n > 0 && (with_choice || r.counted == Counted::Continuous) && all_counted => {
                r.counted = Counted::Continuous;
                n.min(u64::from(u16::MAX)) as u16
            }
            Some(_) if r.counted == Counted::Continuous => 0,
            _ => u16::from(chunk.content),
        };
        self.counted = chunk.output.or(self.counted);
        if tokens > 0 {
            self.put(at, tokens);
        } else if chunk.maybe {
            self.maybe = Some(at);
        }
        // Twice the limit and some: this does not end by itself.
        if self.in_chunks > self.record.asked_output.saturating_mul(2).saturating_add(64) {
            self.fault = Some(Fault::Endless);
        }
    }

    fn put(&mut self, at: f64, tokens: u16) {
        let r = &mut *self.record;
        r.first.get_or_insert(at);
        r.last = Some(at);
        r.chunks.push((((at - r.sent) * 1e6) as u32, tokens));
        self.in_chunks += u32::from(tokens);
        r.output = self.in_chunks;
    }

    fn fault(&self) -> Result<(), Fault> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Settles the count at the end of the stream.
    fn end(&mut self) -> Result<(), Fault> {
        let all = self.counted.map(|n| n as u32);
        // An empty last chunk was a token if one is missing without it.
        if let Some(at) = self.maybe
            && all.is_none_or(|n| n > self.in_chunks)
        {
            self.put(at, 1);
        }
        let r = &mut *self.record;
        if let Some(n) = all.filter(|_| r.counted != Counted::Continuous) {
            r.counted = Counted::Usage;
            r.output = n;
        }
        if !self.done && r.finish.is_none() {
            return Err(Fault::Cut);
        }
        if r.first.is_none() {
            return Err(Fault::Malformed("an answer without a token".into()));
        }
        Ok(())
    }
}

/// Processor time of this process, where the system tells.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name in parentheses; times are the 14th and 15th field, in hundredths of a second.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}
