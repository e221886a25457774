//! Requests of a trace: as they were logged, or as conversations whose turns wait for each other.
//!
//! Nothing is lost silently: what is left out, put in order or spread is counted in a remark.

use super::{Request, Router};
use crate::desk::prelude::*;
use rackmath_sim::Ns;
use rackmath_sim::blocks::Segment;
use rackmath_sim::workload::{Job, Session};
use rackmath_spec::file;
use rackmath_spec::trace::{Trace, TraceFormat, TraceRequest};
use rackmath_units::Chance;

/// Requests to send.
pub(super) enum Played {
    List(Vec<Job>),
    Sessions(Vec<Session>),
}

impl Played {
    pub(super) fn requests(&self) -> u64 {
        match self {
            Self::List(all) => all.len() as u64,
            Self::Sessions(all) => all.iter().map(|s| s.turns.len() as u64).sum(),
        }
    }
}

/// Share of requests at the time of the one before, and of the span without any request, from which it is said.
const TOGETHER: f64 = 0.5;
const GAP: f64 = 0.2;
/// Contents of conversations, apart from blocks that have ids.
const OWN: u64 = 1 << 62;

/// Requests of a trace, what is assumed about them, and what to be careful about.
pub(super) fn read(
    r: &Request,
    text: &str,
    longest: u32,
    notes: &mut Vec<Remark>,
    warnings: &mut Vec<Remark>,
) -> Result<Played, Error> {
    let name = &r.replay.trace_name;
    let trace = file::workload(name, text)?;
    let trace = if trace.timed || trace.has_turns() { trace } else { file::trace(name, text)? };
    let speed = r.replay.speed_up;
    refuse_if(!(speed > 0.0 && speed <= 1e6), "replay.speed_up", speed, "above 0, at most 1,000,000")?;
    let first = r.replay.first.unwrap_or(u64::MAX);
    refuse_if(first == 0, "replay.first", first, "at least one request")?;
    let requests = &trace.requests[..trace.requests.len().min(first.min(usize::MAX as u64) as usize)];
    if trace.has_blocks() {
        notes.push(says("trace_blocks").with("size", trace.block.get()));
    }
    if trace.format == TraceFormat::Csv {
        let said = says("trace_columns").with("time", trace.columns[0].clone()).with("input", trace.columns[1].clone());
        notes.push(said.with("output", trace.columns[2].clone()));
    }
    let (mut empty, mut long) = (0, 0);
    let mut fits = |q: &TraceRequest| {
        let (prompt, output) = (q.input.get(), q.output.get());
        let (has, short) = (prompt >= 1.0 && output >= 1.0, prompt + output <= f64::from(longest));
        empty += u64::from(!has);
        long += u64::from(has && !short);
        has && short
    };
    let played = if trace.has_turns() {
        let rate = r.traffic.rate_per_s.unwrap_or(1.0);
        refuse_if(!(rate > 0.0 && rate <= 1e7), "traffic.rate_per_s", rate, "above 0, at most 10,000,000")?;
        let sessions = sessions(r, requests, rate, speed, trace.block.get(), &mut fits);
        notes.push(says("trace_sessions").with("sessions", sessions.len() as f64).with("rate", rate));
        Played::Sessions(sessions)
    } else {
        let rate = r.traffic.rate_per_s;
        let expected = "none beside a trace that says when requests come: {replay.speed_up} sends it faster or slower";
        refuse_if(rate.is_some(), "traffic.rate_per_s", rate.unwrap_or(0.0), expected)?;
        let mut times: Vec<f64> = requests.iter().map(|q| q.time.get()).collect();
        if r.replay.spread {
            spread(&mut times);
            notes.push(says("trace_spread"));
        }
        notes.extend(odd(&trace, &times));
        let jobs = requests.iter().zip(times).filter(|(q, _)| fits(q));
        let jobs = jobs.map(|(q, time)| job(q, (time / speed * 1e9) as Ns, 0, blocks(q, trace.block.get())));
        Played::List(jobs.collect())
    };
    let known = |n: u64| (n > 0).then_some(n as f64);
    if empty + long > 0 {
        let said = says("trace_refused").with("requests", (empty + long) as f64).with("all", requests.len() as f64);
        let said = said.with("empty", known(empty)).with("both", empty > 0 && long > 0).with("long", known(long));
        warnings.push(said.with("longest", f64::from(longest)));
    }
    let given = format!("no request that fits: {empty} without a prompt or an answer, {long} too long");
    let expected =
        format!("prompts and answers of at least a token, together at most {} tokens", grouped(longest.into()));
    refuse_if(played.requests() == 0, "replay.trace_text", given, expected)?;
    let alone = r.fleet.replicas.max(r.scaling.max_replicas.unwrap_or(1)) <= 1 && !r.setting.on.contains('+');
    if matches!(played, Played::List(_)) && r.fleet.router == Router::Session && !alone {
        warnings.push(says("router_without_sessions"));
    }
    Ok(played)
}

/// What to know about the times of a trace.
fn odd(trace: &Trace, times: &[f64]) -> Vec<Remark> {
    let mut all = Vec::new();
    if trace.reversed > 0 {
        all.push(says("trace_reversed").with("requests", trace.reversed as f64));
    }
    let together = times.windows(2).filter(|w| w[0] == w[1]).count() as f64 / times.len() as f64;
    if together > TOGETHER {
        all.push(says("trace_together").with("share", together));
    }
    let span = times.last().copied().unwrap_or(0.0);
    let gap = times.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
    if times.len() > 10 && gap > GAP * span {
        all.push(says("trace_gap").with("gap", gap).with("span", span));
    }
    all
}

fn job(q: &TraceRequest, arrival: Ns, session: u64, content: Vec<Segment>) -> Job {
    let (prompt, output) = (q.input.get() as u32, q.output.get() as u32);
    Job { arrival, prompt, output, session, content, ..Job::default() }
}

/// Equal blocks are equal prefixes: each whole one is a stream of its own.
fn blocks(q: &TraceRequest, size: f64) -> Vec<Segment> {
    let whole = (q.input.get() / size) as usize;
    q.blocks.iter().take(whole).map(|id| Segment { stream: id % OWN, offset: 0, tokens: size as u32 }).collect()
}

/// Conversations that begin at random; a turn has its first tokens in common with the latest turn that is long enough.
fn sessions(
    r: &Request,
    requests: &[TraceRequest],
    rate: f64,
    speed: f64,
    block: f64,
    fits: &mut impl FnMut(&TraceRequest) -> bool,
) -> Vec<Session> {
    let mut by: Vec<Vec<&TraceRequest>> = Vec::new();
    for q in requests {
        let Some(turn) = &q.turn else { continue };
        by.resize_with(by.len().max(turn.session + 1), Vec::new);
        by[turn.session].push(q);
    }
    let (mut chance, mut start, mut own) = (Chance::new(r.traffic.seed ^ 0x7365_7373), 0.0, OWN);
    let mut all = Vec::new();
    for (number, mut turns) in by.into_iter().enumerate() {
        turns.sort_by(|a, b| order(a).total_cmp(&order(b)));
        let mut before: Vec<Vec<Segment>> = Vec::new();
        let mut session = Session { start: (start / speed * 1e9) as Ns, turns: Vec::new() };
        for q in turns.into_iter().filter(|q| fits(q)) {
            let Some(turn) = &q.turn else { continue };
            let content = if q.blocks.is_empty() {
                let same = (turn.same.get() as u32).min(q.input.get() as u32);
                let earlier = before.iter().rev().find(|c| tokens(c) >= same).map_or(&[][..], |c| c);
                own += 1;
                let mut content = cut(earlier, same);
                let rest = q.input.get() as u32 - tokens(&content);
                content.push(Segment { stream: own, offset: 0, tokens: rest });
                content.retain(|s| s.tokens > 0);
                before.push(content.clone());
                content
            } else {
                blocks(q, block)
            };
            let think = (turn.think.get() / speed * 1e9) as Ns;
            session.turns.push((think, job(q, 0, number as u64 + 1, content)));
        }
        start += chance.exponential() / rate;
        if !session.turns.is_empty() {
            all.push(session);
        }
    }
    all
}

fn order(q: &TraceRequest) -> f64 {
    q.turn.as_ref().map_or(0.0, |t| t.number)
}

fn tokens(content: &[Segment]) -> u32 {
    content.iter().map(|s| s.tokens).sum()
}

/// The first tokens of a content.
fn cut(content: &[Segment], mut left: u32) -> Vec<Segment> {
    let parts = content.iter().map(|s| {
        let tokens = s.tokens.min(left);
        left -= tokens;
        Segment { tokens, ..*s }
    });
    parts.filter(|s| s.tokens > 0).collect()
}

/// Spreads equal times evenly until the next.
fn spread(times: &mut [f64]) {
    let mut at = 0;
    while at < times.len() {
        let same = times[at..].iter().take_while(|t| **t == times[at]).count();
        let until = times.get(at + same).copied().unwrap_or(times[at]);
        let from = times[at];
        for (i, time) in times[at..at + same].iter_mut().enumerate() {
            *time = from + (until - from) * i as f64 / same as f64;
        }
        at += same;
    }
}
