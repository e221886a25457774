//! What a run says: figures with their definitions, over the part of it that is steady; how far the client itself can be trusted.
//!
//! | word | definition |
//! |---|---|
//! | TTFT | first chunk that carries a token - scheduled time |
//! | TPOT | (last - first)/(n - 1) of a request; its mean over tokens weighs requests by n - 1 |
//! | ITL | gap between chunks, divided over the tokens of the chunk |
//! | E2E | last chunk that carries a token - scheduled time |
//! | lag | when the client took a request up - when it was due |
//!
//! Steady is from the first time that 0.9 of the median number of requests is under way to the last scheduled arrival. The interval of a mean comes
//! from ten batches in order of time, because requests that run together are not independent. A p99 is said of a thousand values or more. Where a
//! log kept a sample, figures are the sample's and rates are scaled to the whole.

use super::record::{Counts, Log, Record};
use super::run::{Ended, Run};
use crate::judge;
use rackmath_sim::series::Histogram;
use rackmath_theory::stats::{normal_quantile, ranked};
use serde::Serialize;

/// Values that a p99 needs.
pub const FOR_P99: usize = 1_000;
const BATCHES: usize = 10;

/// A figure in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub count: u64,
    pub mean: f64,
    /// Half of the 80 % interval of the mean, where there are values enough.
    pub half_width: Option<f64>,
    pub p50: f64,
    pub p90: f64,
    /// Absent below [`FOR_P99`] values.
    pub p99: Option<f64>,
    pub max: f64,
}

impl Figure {
    /// Of values in order of time.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let half_width = (n >= 5 * BATCHES).then(|| {
            let size = n / BATCHES;
            let means: Vec<f64> =
                values.chunks(size).take(BATCHES).map(|batch| batch.iter().sum::<f64>() / batch.len() as f64).collect();
            let centre = means.iter().sum::<f64>() / BATCHES as f64;
            let variance = means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (BATCHES as f64 - 1.0);
            normal_quantile(0.9) * (variance / BATCHES as f64).sqrt()
        });
        Some(Self {
            count: n as u64,
            mean,
            half_width,
            p50: ranked(&sorted, 0.5),
            p90: ranked(&sorted, 0.9),
            p99: (n >= FOR_P99).then(|| ranked(&sorted, 0.99)),
            max: sorted[n - 1],
        })
    }

    fn counted(histogram: &Histogram) -> Option<Self> {
        let at = |p: f64| histogram.percentile(p).map(|ns| ns * 1e-9);
        Some(Self {
            count: histogram.count(),
            mean: histogram.mean()? * 1e-9,
            half_width: None,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99).filter(|_| histogram.count() >= FOR_P99 as u64),
            max: at(1.0)?,
        })
    }
}

/// The client's own doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Client {
    pub lag: Option<Figure>,
    /// 99 of 100 requests were taken up within this.
    pub lag_p99_s: f64,
    /// The most of it that does not taint the figures ([`judge::LAG_S`], [`judge::LAG_OF_TTFT`]).
    pub lag_limit_s: f64,
    pub tainted: bool,
    pub connect: Option<Figure>,
    /// Connections opened for a request, not ahead of it.
    pub opened: u64,
    /// Kept connections that the server had closed.
    pub reopened: u64,
    /// Processor time as a share of one core.
    pub cpu: Option<f64>,
}

/// What is good enough, in seconds; of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Targets {
    pub ttft: Option<f64>,
    pub tpot: Option<f64>,
    pub e2e: Option<f64>,
}

impl Targets {
    pub fn any(&self) -> bool {
        self.ttft.is_some() || self.tpot.is_some() || self.e2e.is_some()
    }

    /// An answer of one token has no time per token, and meets any.
    fn met(&self, r: &Record) -> bool {
        let within = |value: Option<f64>, most: Option<f64>| most.is_none_or(|most| value.is_some_and(|v| v <= most));
        r.ok() && within(r.ttft(), self.ttft) && within(r.tpot().or(Some(0.0)), self.tpot) && within(r.e2e(), self.e2e)
    }
}

/// Seconds after the start between which figures are taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    pub from: f64,
    pub to: f64,
    /// Requests scheduled in it.
    pub requests: u64,
    /// The run was too short or too uneven for one: all of it is taken.
    pub whole: bool,
    /// Its length over the mean E2E; below [`judge::LENGTHS`] the ramp is felt.
    pub lengths: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub counts: Counts,
    /// Figures are of one in so many requests, chosen by chance; above 1 where a run was too long to keep all of them.
    pub one_in: u64,
    pub window: Window,
    pub ttft: Option<Figure>,
    pub tpot: Option<Figure>,
    /// Seconds per token over all tokens after the first.
    pub tpot_over_tokens: Option<f64>,
    pub itl: Option<Figure>,
    pub e2e: Option<Figure>,
    /// Mean tokens of prompts and answers as counted, and the share of prompts found in a cache.
    pub isl: f64,
    pub osl: f64,
    pub cached: Option<f64>,
    /// Tokens in a chunk, mean.
    pub per_chunk: f64,
    pub requests_per_s: f64,
    pub offered_per_s: f64,
    pub input_tok_s: f64,
    pub output_tok_s: f64,
    /// Requests under way, mean over the window.
    pub running: f64,
    /// The number under way rises through the window: no steady state.
    pub grows: bool,
    /// Scheduled requests that met the targets, as a share, and a second.
    pub good: Option<(f64, f64)>,
    pub client: Client,
    pub ended: Ended,
    pub seconds: f64,
}

/// Sums a run up.
pub fn summary(run: &Run, targets: &Targets) -> Summary {
    let log = &run.log;
    let good: Vec<&Record> = log.records.iter().filter(|r| r.ok()).collect();
    let window = window(log, &good);
    // Each kept request stands for so many.
    let weight = log.one_in() as f64;
    let inside = |at: f64| at >= window.from && at <= window.to;
    let mut taken: Vec<&Record> = good.iter().copied().filter(|r| inside(r.scheduled)).collect();
    taken.sort_by(|a, b| a.scheduled.total_cmp(&b.scheduled));
    let each = |value: fn(&Record) -> Option<f64>| taken.iter().filter_map(|r| value(r)).collect::<Vec<f64>>();
    let mean = |value: &dyn Fn(&Record) -> f64| {
        if taken.is_empty() { 0.0 } else { taken.iter().map(|r| value(r)).sum::<f64>() / taken.len() as f64 }
    };
    let ttft = Figure::of(&each(Record::ttft));
    let (span, tokens) = taken
        .iter()
        .filter_map(|r| Some((r.tpot()?, f64::from(r.output - 1))))
        .fold((0.0, 0.0), |(span, tokens), (tpot, n)| (span + tpot * n, tokens + n));
    let mut gaps = Histogram::default();
    for (gap, n) in taken.iter().flat_map(|r| r.gaps()) {
        gaps.add((gap * 1e9) as u64, u64::from(n));
    }
    let per_second = weight / (window.to - window.from).max(1e-9);
    let ended: Vec<&&Record> = good.iter().filter(|r| inside(r.end)).collect();
    let chunks: usize = taken.iter().map(|r| r.chunks.len()).sum();
    let output: u64 = taken.iter().map(|r| u64::from(r.output)).sum();
    let scheduled: Vec<&Record> = log.records.iter().filter(|r| inside(r.scheduled)).collect();
    let met = scheduled.iter().filter(|r| targets.met(r)).count() as f64;
    let known = taken.iter().filter(|r| r.cached.is_some()).count();
    let (input_sum, cached_sum) = taken.iter().fold((0.0, 0.0), |(i, c), r| {
        (i + f64::from(r.input.unwrap_or(r.asked_input)), c + f64::from(r.cached.unwrap_or(0)))
    });
    Summary {
        itl: Figure::counted(&gaps),
        tpot: Figure::of(&each(Record::tpot)),
        tpot_over_tokens: (tokens > 0.0).then(|| span / tokens),
        e2e: Figure::of(&each(Record::e2e)),
        isl: mean(&|r| f64::from(r.input.unwrap_or(r.asked_input))),
        osl: mean(&|r| f64::from(r.output)),
        cached: (known > 0 && input_sum > 0.0).then(|| cached_sum / input_sum),
        per_chunk: if chunks == 0 { 1.0 } else { output as f64 / chunks as f64 },
        requests_per_s: ended.len() as f64 * per_second,
        offered_per_s: scheduled.len() as f64 * per_second,
        input_tok_s: ended.iter().map(|r| f64::from(r.input.unwrap_or(r.asked_input))).sum::<f64>() * per_second,
        output_tok_s: produced(&good, window.from, window.to) * per_second,
        running: under_way(&log.records, window.from, window.to) * weight,
        grows: grows(&log.records, window.from, window.to),
        good: (targets.any() && !scheduled.is_empty()).then(|| (met / scheduled.len() as f64, met * per_second)),
        client: client(run, ttft.as_ref().map_or(0.0, |f| f.mean)),
        ttft,
        ended: run.ended,
        seconds: run.seconds,
        counts: log.counts.clone(),
        one_in: log.one_in(),
        window,
    }
}

/// Requests under way between two times, mean.
fn under_way(records: &[Record], from: f64, to: f64) -> f64 {
    let overlap = |r: &Record| (r.end.min(to) - r.sent.max(from)).max(0.0);
    records.iter().map(overlap).sum::<f64>() / (to - from).max(1e-9)
}

/// Tokens that came between two times.
fn produced(good: &[&Record], from: f64, to: f64) -> f64 {
    let of = |r: &&Record| {
        let counted: u32 = r.chunks.iter().map(|(_, n)| u32::from(*n)).sum();
        let inside = |(us, _): &&(u32, u16)| (from..=to).contains(&(r.sent + f64::from(*us) * 1e-6));
        let tokens: u32 = r.chunks.iter().filter(inside).map(|(_, n)| u32::from(*n)).sum();
        f64::from(tokens) * f64::from(r.output) / f64::from(counted.max(1))
    };
    good.iter().map(of).sum()
}

fn window(log: &Log, good: &[&Record]) -> Window {
    let e2e = if good.is_empty() { 0.0 } else { good.iter().filter_map(|r| r.e2e()).sum::<f64>() / good.len() as f64 };
    let (last, end) = (log.last_scheduled, log.end);
    // Under way at a hundred moments of the middle half, and from when on enough of their median are.
    let n = 200;
    let mut steps: Vec<f64> = vec![0.0; n + 1];
    if last > 0.0 {
        for r in &log.records {
            let place = |t: f64| ((t / last * n as f64).ceil().max(0.0) as usize).min(n + 1);
            for step in &mut steps[place(r.sent).min(n + 1)..place(r.end).min(n + 1)] {
                *step += 1.0;
            }
        }
    }
    let mut middle = steps[n / 4..3 * n / 4].to_vec();
    middle.sort_by(f64::total_cmp);
    let median = ranked(&middle, 0.5);
    let from =
        steps.iter().position(|s| *s >= judge::STEADY * median && *s > 0.0).map_or(0.0, |i| i as f64 / n as f64 * last);
    let between = |from: f64, to: f64| log.records.iter().filter(|r| (from..=to).contains(&r.scheduled)).count();
    let whole = median == 0.0 || between(from, last) * 2 < log.records.len() || last - from < e2e;
    let (from, to) = if whole { (0.0, end) } else { (from, last) };
    let requests = if whole { log.counts.sent } else { between(from, to) as u64 * log.one_in() };
    Window { from, to, requests, whole, lengths: if e2e > 0.0 { (to - from) / e2e } else { 0.0 } }
}

/// Whether the last quarter of the window has clearly more requests under way than the second.
fn grows(records: &[Record], from: f64, to: f64) -> bool {
    let quarter = (to - from) / 4.0;
    let (early, late) =
        (under_way(records, from + quarter, from + 2.0 * quarter), under_way(records, to - quarter, to));
    // Chance moves the number by its square root; a queue that grows moves it by more.
    late > early * judge::GROWS.0 + judge::GROWS.1 * early.sqrt().max(1.0)
}

fn client(run: &Run, mean_ttft: f64) -> Client {
    let log = &run.log;
    let first_turns: Vec<f64> = log.records.iter().filter(|r| r.turn == 0).map(Record::lag).collect();
    let connect: Vec<f64> = log.records.iter().map(|r| r.connect).filter(|c| *c > 0.0).collect();
    let mut sorted = first_turns.clone();
    sorted.sort_by(f64::total_cmp);
    let lag_p99_s = if sorted.is_empty() { 0.0 } else { ranked(&sorted, 0.99) };
    let lag_limit_s = (judge::LAG_OF_TTFT * mean_ttft).max(judge::LAG_S);
    Client {
        lag: Figure::of(&first_turns),
        lag_p99_s,
        lag_limit_s,
        tainted: lag_p99_s > lag_limit_s,
        connect: Figure::of(&connect),
        opened: log.opened,
        reopened: log.reopened,
        cpu: run.cpu,
    }
}
