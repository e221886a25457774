//! Recorded schedules: a scenario in, the record of its steps out, in the words of the recorder.

use crate::Ns;
use crate::blocks::{Group, Segment};
use crate::clock::Law;
use crate::engine::vllm::{Policy, Scheduler, Settings};
use crate::engine::{Sequence, Share};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the recorded schedules were made with.
pub const ENGINE: &str = "vllm 0.32.0";

/// Schedules of the real engine, by digest, against ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Same {
    pub scenarios: usize,
    pub steps: usize,
    /// Names of scenarios whose record is another.
    pub differ: Vec<String>,
}

/// Runs every scenario that is carried here, and compares its record.
pub fn recorded() -> Result<Same, String> {
    let scenarios = include_str!("../data/vllm_scenarios.jsonl").lines();
    let records = include_str!("../data/vllm_records.csv").lines().skip(1);
    let mut same = Same::default();
    for (scenario, record) in scenarios.zip(records) {
        let scenario: Scenario = serde_json::from_str(scenario).map_err(|e| e.to_string())?;
        let ours = run(&scenario)?;
        let lines = record.split(',').nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
        same.scenarios += 1;
        // A head and an end are no steps.
        same.steps += lines.saturating_sub(2);
        if format!("{},{},{:016x}", scenario.name, ours.len(), fnv1a(&ours)) != record {
            same.differ.push(scenario.name);
        }
    }
    Ok(same)
}

fn fnv1a(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    #[serde(default)]
    pub note: String,
    #[serde(default)]
    pub engine: Engine,
    #[serde(default)]
    pub clock: Law,
    pub requests: Vec<Request>,
}

/// The engine of a scenario; what is absent has vLLM's default in the recorder.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Engine {
    max_num_seqs: Option<u32>,
    max_num_active_seqs: Option<u32>,
    max_num_batched_tokens: Option<u32>,
    max_num_scheduled_tokens: Option<u32>,
    max_model_len: Option<u32>,
    enable_chunked_prefill: Option<bool>,
    enable_prefix_caching: Option<bool>,
    long_prefill_token_threshold: Option<u32>,
    long_prefill_token_threshold_adaptive: Option<bool>,
    scheduler_reserve_full_isl: Option<bool>,
    watermark: Option<f64>,
    policy: Option<Ordering>,
    async_scheduling: Option<bool>,
    block_size: Option<u32>,
    num_blocks: Option<u32>,
    groups: Option<Vec<Layers>>,
    speculative: Option<Drafts>,
    max_loras: Option<u32>,
    prefill_schedule_interval: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ordering {
    Fcfs,
    Priority,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Layers {
    Full,
    Sliding { window: u32 },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drafts {
    num_tokens: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: String,
    arrival_ns: Option<Ns>,
    after: Option<String>,
    #[serde(default)]
    think_ns: Ns,
    prompt: Vec<(u64, u64, u32)>,
    output_tokens: u32,
    output_stream: u64,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    lora: u32,
    #[serde(default)]
    accept: Vec<u32>,
}

impl Engine {
    pub fn settings(&self) -> Settings {
        let d = Settings::default();
        Settings {
            max_num_seqs: self.max_num_seqs.unwrap_or(d.max_num_seqs),
            max_num_active_seqs: self.max_num_active_seqs,
            max_num_batched_tokens: self
                .max_num_scheduled_tokens
                .or(self.max_num_batched_tokens)
                .unwrap_or(d.max_num_batched_tokens),
            max_model_len: self.max_model_len.unwrap_or(d.max_model_len),
            enable_chunked_prefill: self.enable_chunked_prefill.unwrap_or(d.enable_chunked_prefill),
            enable_prefix_caching: self.enable_prefix_caching.unwrap_or(d.enable_prefix_caching),
            long_prefill_token_threshold: self.long_prefill_token_threshold.unwrap_or(0),
            long_prefill_token_threshold_adaptive: self.long_prefill_token_threshold_adaptive.unwrap_or(false),
            scheduler_reserve_full_isl: self.scheduler_reserve_full_isl.unwrap_or(true),
            watermark: self.watermark.unwrap_or(0.0),
            policy: match self.policy {
                Some(Ordering::Priority) => Policy::Priority,
                _ => Policy::Fcfs,
            },
            async_scheduling: self.async_scheduling.unwrap_or(false),
            block_size: self.block_size.unwrap_or(d.block_size),
            num_blocks: self.num_blocks.unwrap_or(d.num_blocks),
            tiers: Vec::new(),
            groups: self.groups.as_ref().map_or(d.groups, |all| {
                all.iter()
                    .map(|g| match g {
                        Layers::Full => Group::Full,
                        Layers::Sliding { window } => Group::Window(*window),
                    })
                    .collect()
            }),
            speculative: self.speculative.map_or(0, |d| d.num_tokens),
            max_loras: self.max_loras,
            prefill_schedule_interval: self.prefill_schedule_interval.unwrap_or(1),
            ..Settings::default()
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
struct Fact<'a> {
    id: &'a str,
    arrival: Option<Ns>,
    first_scheduled: Option<Ns>,
    first_token: Option<Ns>,
    finish: Option<Ns>,
    output_tokens: u32,
    preemptions: u32,
    cached_tokens: Option<u32>,
    #[serde(skip)]
    verified: usize,
}

/// Numbers by request, in the order in which they came up.
#[derive(Clone, Debug, Default)]
struct Named<'a>(Vec<(&'a str, u32)>);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (id, n) in &self.0 {
            map.serialize_entry(id, n)?;
        }
        map.end()
    }
}

impl Named<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The first line of a record.
#[derive(Serialize)]
struct Head<'a> {
    trace: &'a str,
    engine: &'a str,
    scheduler: &'a str,
    usable_blocks: u32,
    clock: Law,
    steps: usize,
    requests: usize,
    preemptions: u32,
    cached_tokens: u64,
    end: Option<Ns>,
}

/// The last line of a record.
#[derive(Serialize)]
struct Outcome<'a> {
    requests: &'a [Fact<'a>],
}

/// A step, as the recorder writes it.
#[derive(Clone, Debug, Default, Serialize)]
struct Line<'a> {
    step: usize,
    start: Ns,
    end: Ns,
    s: Vec<(&'a str, u32, u32)>,
    waiting: usize,
    running: usize,
    free: u32,
    free_end: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_at: Option<Ns>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    preempted: Vec<&'a str>,
    #[serde(skip_serializing_if = "Named::is_empty")]
    hits: Named<'a>,
    #[serde(skip_serializing_if = "Named::is_empty")]
    drafts: Named<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    finished: Vec<&'a str>,
    #[serde(skip_serializing_if = "Named::is_empty")]
    emitted: Named<'a>,
}

/// A step in flight.
struct Step<'a> {
    end: Ns,
    shares: Vec<Share>,
    line: Line<'a>,
}

struct Replay<'a> {
    scenario: &'a Scenario,
    scheduler: Scheduler,
    facts: Vec<Fact<'a>>,
    future: BTreeSet<(Ns, usize)>,
    followers: BTreeMap<usize, Vec<usize>>,
    ranks: Vec<u64>,
    steps: Vec<String>,
}

/// Runs a scenario; the lines of its record.
pub fn run(scenario: &Scenario) -> Result<Vec<String>, String> {
    let settings = scenario.engine.settings();
    check(scenario, &settings)?;
    let overlapped = settings.async_scheduling;
    let name = if overlapped { "AsyncScheduler" } else { "Scheduler" };
    let usable = settings.num_blocks - 1;
    let mut sorted: Vec<usize> = (0..scenario.requests.len()).collect();
    sorted.sort_by(|a, b| scenario.requests[*a].id.cmp(&scenario.requests[*b].id));
    let mut ranks = vec![0; sorted.len()];
    for (rank, at) in sorted.iter().enumerate() {
        ranks[*at] = rank as u64;
    }
    let places: BTreeMap<&str, usize> = scenario.requests.iter().enumerate().map(|(i, r)| (r.id.as_str(), i)).collect();
    let mut replay = Replay {
        scenario,
        scheduler: Scheduler::new(settings),
        facts: scenario.requests.iter().map(|r| Fact { id: &r.id, ..Fact::default() }).collect(),
        future: BTreeSet::new(),
        followers: BTreeMap::new(),
        ranks,
        steps: Vec::new(),
    };
    for (at, r) in scenario.requests.iter().enumerate() {
        match (&r.after, r.arrival_ns) {
            (Some(after), None) => {
                let first =
                    places.get(after.as_str()).ok_or(format!("{}: after an unknown request \"{after}\"", r.id))?;
                replay.followers.entry(*first).or_default().push(at);
            }
            (None, Some(time)) => {
                replay.future.insert((time, at));
            }
            _ => return Err(format!("{}: expected either arrival_ns or after", r.id)),
        }
    }
    if overlapped {
        replay.overlapped()?;
    } else {
        replay.plain()?;
    }
    let facts = &replay.facts;
    if let Some(at) = facts.iter().position(|f| f.finish.is_none()) {
        return Err(format!("{} never finishes", scenario.requests[at].id));
    }
    let text = |e: serde_json::Error| e.to_string();
    let head = Head {
        trace: &scenario.name,
        engine: ENGINE,
        scheduler: name,
        usable_blocks: usable,
        clock: scenario.clock,
        steps: replay.steps.len(),
        requests: facts.len(),
        preemptions: facts.iter().map(|f| f.preemptions).sum(),
        cached_tokens: facts.iter().map(|f| u64::from(f.cached_tokens.unwrap_or(0))).sum(),
        end: facts.iter().filter_map(|f| f.finish).max(),
    };
    let mut lines = vec![serde_json::to_string(&head).map_err(text)?];
    let last = serde_json::to_string(&Outcome { requests: facts }).map_err(text)?;
    lines.append(&mut replay.steps);
    lines.push(last);
    Ok(lines)
}

/// Bounds that keep every sum in range and every run finite: no engine comes near them.
const MOST_BLOCKS: u32 = 1 << 26;
const MOST_TOKENS: u64 = 1 << 26;
const MOST_STEPS: usize = 1 << 24;
const LATEST: Ns = 1 << 58;

fn check(scenario: &Scenario, s: &Settings) -> Result<(), String> {
    let within = |what: &str, n: u64, low: u64, high: u64| {
        let fits = (low..=high).contains(&n);
        fits.then_some(()).ok_or_else(|| format!("{what} = {n}; expected {low} to {high}"))
    };
    within("block_size", s.block_size.into(), 1, 1 << 20)?;
    within("num_blocks", s.num_blocks.into(), 2, MOST_BLOCKS.into())?;
    within("max_num_batched_tokens", s.max_num_batched_tokens.into(), 1, MOST_TOKENS)?;
    within("max_num_seqs", s.max_num_seqs.into(), 1, 1 << 20)?;
    within("max_model_len", s.max_model_len.into(), 2, MOST_TOKENS)?;
    within("long_prefill_token_threshold", s.long_prefill_token_threshold.into(), 0, MOST_TOKENS)?;
    within("prefill_schedule_interval", s.prefill_schedule_interval.into(), 1, 1 << 20)?;
    within("speculative", s.speculative.into(), 0, 1024)?;
    within("groups", s.groups.len() as u64, 1, 64)?;
    for group in &s.groups {
        if let Group::Window(window) = group {
            within("window", (*window).into(), 1, MOST_TOKENS)?;
        }
    }
    if !(0.0..=1.0).contains(&s.watermark) {
        return Err(format!("watermark = {}; expected a share from 0 to 1", s.watermark));
    }
    let c = &scenario.clock;
    let (seqs, longest) = (u128::from(s.max_num_seqs), u128::from(s.max_model_len));
    let step = u128::from(c.base_ns)
        + u128::from(c.token_ns) * (u128::from(s.max_num_batched_tokens) + seqs * (1 + u128::from(s.speculative)))
        + u128::from(c.seq_ns) * seqs
        + u128::from(c.context_ns) * seqs * longest;
    if step > u128::from(LATEST) {
        return Err(format!("the longest step takes {step} ns; expected at most {LATEST}"));
    }
    let mut all = 0;
    for r in &scenario.requests {
        let prompt: u64 = r.prompt.iter().map(|p| u64::from(p.2)).sum();
        if prompt == 0 || r.output_tokens == 0 || prompt >= u64::from(s.max_model_len) {
            return Err(format!("{}: expected 1 to {} prompt tokens and an output", r.id, s.max_model_len - 1));
        }
        all += prompt + u64::from(r.output_tokens);
        within(&format!("{}: arrival_ns", r.id), r.arrival_ns.unwrap_or(0), 0, LATEST)?;
        within(&format!("{}: think_ns", r.id), r.think_ns, 0, LATEST)?;
        if r.prompt.iter().any(|p| p.1 > 1 << 48) {
            return Err(format!("{}: expected offsets up to 2^48", r.id));
        }
    }
    within("tokens of all requests", all, 0, MOST_TOKENS)
}

impl<'a> Replay<'a> {
    fn arrive(&mut self, now: Ns) {
        while let Some((at, index)) = self.future.first().copied().filter(|f| f.0 <= now) {
            self.future.pop_first();
            let r = &self.scenario.requests[index];
            let segment = |(stream, offset, tokens): &(u64, u64, u32)| Segment {
                stream: *stream,
                offset: *offset,
                tokens: *tokens,
            };
            let answer = Segment { stream: r.output_stream, offset: 0, tokens: r.output_tokens };
            let content = r.prompt.iter().map(segment).chain([answer]);
            let place = self.scheduler.blocks.place(r.lora.into(), content);
            self.facts[index].arrival = Some(at);
            let prompt = r.prompt.iter().map(|p| p.2).sum();
            let plain = Sequence::new(index as u64, at, prompt, r.output_tokens);
            let rank = self.ranks[index];
            self.scheduler.add(Sequence { priority: r.priority, rank, adapter: r.lora, place, ..plain });
        }
    }

    fn index(&self, slot: u32) -> usize {
        self.scheduler.sequences[slot].id as usize
    }

    fn id(&self, slot: u32) -> &'a str {
        &self.scenario.requests[self.index(slot)].id
    }

    /// One call of the scheduler; the step starts at `start` or later.
    fn schedule(&mut self, now: Ns, start: Ns) -> Step<'a> {
        self.scheduler.schedule();
        let decision = std::mem::take(&mut self.scheduler.decision);
        let (mut tokens, mut context) = (0, 0);
        let mut line = Line { start, scheduled_at: (now != start).then_some(now), ..Line::default() };
        for share in &decision.shares {
            tokens += u64::from(share.tokens);
            context += u64::from(share.before);
            line.s.push((self.id(share.slot), share.tokens, share.before));
            let index = self.index(share.slot);
            let hit = decision.hits.iter().find(|h| h.0 == share.slot).map_or(0, |h| h.1);
            let fact = &mut self.facts[index];
            if fact.first_scheduled.is_none() {
                (fact.first_scheduled, fact.cached_tokens) = (Some(now), Some(hit));
            }
        }
        line.waiting = self.scheduler.waiting();
        line.running = self.scheduler.running.len();
        line.free = self.scheduler.blocks.free();
        line.preempted = decision.preempted.iter().map(|s| self.id(*s)).collect();
        line.hits = Named(decision.hits.iter().map(|(slot, n)| (self.id(*slot), *n)).collect());
        let drafting = decision.shares.iter().filter(|s| s.drafts > 0);
        line.drafts = Named(drafting.map(|s| (self.id(s.slot), s.drafts)).collect());
        for slot in &decision.preempted {
            let index = self.index(*slot);
            self.facts[index].preemptions += 1;
        }
        line.end = start + self.scenario.clock.time(tokens, decision.shares.len() as u64, context);
        let shares = decision.shares.clone();
        self.scheduler.decision = decision;
        Step { end: line.end, shares, line }
    }

    fn finish(&mut self, step: Step<'a>) -> Result<(), String> {
        let mut line = step.line;
        for share in &step.shares {
            let index = self.index(share.slot);
            let r = &self.scenario.requests[index];
            let fact = &mut self.facts[index];
            let mut accepted = 0;
            if share.samples && share.drafts > 0 {
                let pattern = if r.accept.is_empty() { &[0][..] } else { &r.accept };
                accepted = share.drafts.min(pattern[fact.verified % pattern.len()]);
                fact.verified += 1;
            }
            let got = self.scheduler.receive(share, accepted);
            if got.tokens > 0 {
                fact.output_tokens += got.tokens;
                fact.first_token.get_or_insert(step.end);
                if got.tokens != 1 {
                    line.emitted.0.push((&r.id, got.tokens));
                }
            }
            if got.finished {
                fact.finish = Some(step.end);
                line.finished.push(&r.id);
                for next in self.followers.get(&index).into_iter().flatten() {
                    self.future.insert((step.end + self.scenario.requests[*next].think_ns, *next));
                }
            }
        }
        if self.steps.len() > MOST_STEPS || step.end > 8 * LATEST {
            return Err(format!("more than {MOST_STEPS} steps, or later than {} ns", 8 * LATEST));
        }
        if !step.shares.is_empty() {
            line.step = self.steps.len();
            line.free_end = self.scheduler.blocks.free();
            self.steps.push(serde_json::to_string(&line).map_err(|e| e.to_string())?);
        }
        Ok(())
    }

    fn next(&self) -> Option<Ns> {
        self.future.first().map(|f| f.0)
    }

    fn plain(&mut self) -> Result<(), String> {
        let (mut now, mut idle) = (0, 0);
        loop {
            self.arrive(now);
            if self.scheduler.is_empty() {
                let Some(next) = self.next() else { return Ok(()) };
                now = next;
                continue;
            }
            let step = self.schedule(now, now);
            let mut end = step.end;
            self.finish(step)?;
            idle = if end == now { idle + 1 } else { 0 };
            if idle > 3 && !self.scheduler.is_empty() {
                end = self.next().ok_or("the engine cannot make progress")?;
            }
            now = end;
        }
    }

    fn overlapped(&mut self) -> Result<(), String> {
        let (mut now, mut device, mut stuck) = (0, 0, 0);
        let mut queue: VecDeque<Step> = VecDeque::new();
        loop {
            self.arrive(now);
            if self.scheduler.is_empty() && queue.is_empty() {
                let Some(next) = self.next() else { return Ok(()) };
                now = now.max(next);
                continue;
            }
            if !self.scheduler.is_empty() {
                let step = self.schedule(now, now.max(device));
                device = step.end;
                let executed = !step.shares.is_empty();
                queue.push_back(step);
                stuck = if executed { 0 } else { stuck + 1 };
                if stuck > 8 {
                    return Err("the engine cannot make progress".into());
                }
                if queue.len() < 2 && (executed || !self.scheduler.is_empty()) {
                    continue;
                }
            }
            if let Some(step) = queue.pop_front() {
                now = now.max(step.end);
                self.finish(step)?;
            }
        }
    }
}
