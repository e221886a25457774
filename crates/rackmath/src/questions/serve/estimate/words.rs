//! From a steady state to the page: intervals, where the time of the mean step goes, what binds, and the sentences.
//!
//! $$ t = (1 - f)\,T_d + f\,T_m \qquad t_{ideal} = (1 - f)\,R_d + f\,R_m \qquad \text{of limit} = t_{ideal} / t $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | f | prompt_share | 1 | share of passes that carry prompt tokens |
//! | T_d, T_m | decode, mixed | s | a pass that only decodes, a pass with prompt tokens |
//! | R_d, R_m | ideal | s | the roofline of each: dense peak, full bandwidth, both at once, no links |
//!
//! What lies between is lost to collectives, to launches and floors, to the host, and to kernels that
//! are slower than their roofline; the last is what the others leave. Source: ours.

use super::work::Case;
use super::{Answer, Breakdown, Piece, Pools, Problem, Range, Request, Served, Slo};
use crate::desk::prelude::*;
use crate::layout;
use rackmath_spec::engine::Prompts;
use rackmath_theory::pass::{Limit, Part};
use rackmath_theory::placement::{self, Fit};
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::Steady;

impl Range {
    /// The interval of a prediction that is off by a factor of at most exp(spread) in 80 % of cases.
    pub(crate) fn of(value: f64, spread: f64) -> Self {
        let factor = float::exp(spread);
        Self { value, low: value / factor, high: value * factor }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, low: self.low + other.low, high: self.high + other.high }
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    pub(crate) fn inverse(self) -> Self {
        Self { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

/// A share as a person says it.
fn percent(share: f64) -> String {
    Fraction::checked(share).map_or_else(|| "more than 100%".into(), |f| f.to_string())
}

pub(super) fn answer(case: &Case, p: &Serving, outcome: &Outcome) -> Answer {
    let (r, on) = (&case.found, &case.ask.on);
    let fits = outcome.fits;
    Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        engine: on.engine.name.clone(),
        engine_id: on.engine.id.clone(),
        layout: layout::words(&r.model, &on.layout),
        layout_chosen: case.chosen,
        chips: outcome.chips as u64,
        chips_available: r.system.n_chips,
        weights: r.format_words(),
        kv: r.kv_words(),
        load: load_words(case.ask.load),
        isl: case.ask.requests.input,
        osl: case.ask.requests.output,
        served: fits.then(|| served(case, p, outcome)),
        problem: problem(case, p, outcome),
        pools: outcome.flow.as_ref().filter(|_| fits).and_then(|flow| {
            let (pool, network) = (p.split.as_ref()?, r.system.levels.last());
            Some(Pools {
                prefill_layout: layout::words(&r.model, &pool.instance.deployment.layout),
                prefill_instances: flow.instances,
                prefill_chips: flow.chips as u64,
                decode_chips: (outcome.chips - flow.chips) as u64,
                balanced_ratio: flow.ratio,
                prefill_busy: flow.busy,
                prefill_ms: flow.pass * 1e3,
                prefill_wait_ms: flow.wait * 1e3,
                transfer_bytes: pool.bytes.get(),
                transfer_ms: pool.send.get() * 1e3,
                network: network.map_or_else(|| "none known: sending counts nothing".into(), |l| l.name.clone()),
            })
        }),
        changes: Vec::new(),
        assumptions: assumptions(case, p, outcome),
        sources: [r.sources(), vec![format!("engine: {} ({})", on.engine.source, on.engine.as_of)]].concat(),
    }
}

fn load_words(load: Loading) -> String {
    match load {
        Loading::Concurrency(1.0) => "one request in flight".into(),
        Loading::Concurrency(c) => format!("{} requests in flight", count(c)),
        Loading::Rate(r) => format!("{} requests per second at random", significant(r, 3)),
        Loading::Full => "as many requests as memory and the engine hold".into(),
    }
}

fn served(case: &Case, p: &Serving, outcome: &Outcome) -> Served {
    let requests = &case.ask.requests;
    let (s, engine) = (&outcome.steady, &case.ask.on.engine);
    let spread = |of: f64| p.main.spread(of);
    let tpot_ms = Range::of(outcome.tpot() * 1e3, spread(engine.spread.tpot));
    let ttft_unqueued_ms = Range::of(outcome.ttft * 1e3, spread(engine.spread.ttft));
    let queue_ms = Range::of(outcome.queue * 1e3, spread(engine.spread.throughput));
    let ttft_ms = ttft_unqueued_ms.plus(queue_ms);
    let rate = match case.ask.load {
        // What arrives leaves, however long it takes.
        Loading::Rate(rate) if !outcome.overloaded => Range { value: rate, low: rate, high: rate },
        _ => Range::of(outcome.rate, spread(engine.spread.throughput)),
    };
    let usd = outcome.usd_per_mtok(requests, case.ask.price);
    let step = breakdown(s);
    Served {
        tpot_ms,
        ttft_ms,
        ttft_unqueued_ms,
        queue_ms,
        e2e_ms: ttft_ms.plus(tpot_ms.times((requests.output - 1.0).max(0.0))),
        output_tok_s_per_chip: rate.times(requests.output / outcome.chips),
        output_tok_s_per_user: tpot_ms.inverse().times(1e3),
        output_tok_s: rate.times(requests.output),
        requests_per_s: rate,
        slo: slo(case, outcome),
        decoding: s.decoding * outcome.groups,
        running: s.running * outcome.groups,
        waiting: s.waiting * outcome.groups,
        room: p.room * p.groups(),
        prompt_share: s.prompt_share,
        prompt_tokens: s.prompt_size,
        usd_per_mtok_output: usd.map(|u| u.0),
        usd_per_mtok_input: usd.map(|u| u.1),
        binding: binding(case, p, outcome, &step),
        reading: reading(&step, case.ask.on.engine.ideal),
        step,
    }
}

fn slo(case: &Case, outcome: &Outcome) -> Option<Slo> {
    let r = case.request;
    // Without a target there is nothing to meet.
    r.ttft_ms.or(r.tpot_ms).or(r.e2e_ms)?;
    let (ttft, tpot) = ((outcome.ttft + outcome.queue) * 1e3, outcome.tpot() * 1e3);
    let whole = outcome.e2e(&case.ask.requests) * 1e3;
    let means = [("time to first token", ttft), ("time per output token", tpot), ("whole request", whole)];
    let missed = |((what, mean), target): ((&str, f64), Option<f64>)| {
        let times = mean / target.filter(|t| mean > *t)?;
        Some(format!("{what} is {} times its target", significant(times, 3)))
    };
    let mut misses: Vec<_> = means.into_iter().zip([r.ttft_ms, r.tpot_ms, r.e2e_ms]).filter_map(missed).collect();
    let met = misses.is_empty() && outcome.serves();
    let share = if met { 1.0 } else { 0.0 };
    if outcome.overloaded {
        misses.push("more requests arrive than are served".into());
    }
    let verdict = if met { "the means meet the targets".into() } else { misses.join(", ") };
    let Request { ttft_ms, tpot_ms, e2e_ms, .. } = *r;
    let goodput_requests_per_s = share * outcome.rate;
    Some(Slo { ttft_ms, tpot_ms, e2e_ms, met, goodput_share: share, goodput_requests_per_s, verdict })
}

fn binding(case: &Case, p: &Serving, outcome: &Outcome, step: &Breakdown) -> String {
    let largest = |pieces: &[Piece]| {
        let most = pieces.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        most.map(|piece| (piece.what.clone(), percent(piece.share)))
    };
    let words = match (largest(&step.limits), largest(&step.parts)) {
        (Some((limit, share)), Some((part, of))) => {
            format!("{limit} ({share} of the step); most time goes to {part} ({of})")
        }
        _ => "nothing".into(),
    };
    if outcome.steady.waiting <= 0.0 && case.ask.load != Loading::Full {
        return words;
    }
    let (memory, stages) = (p.room * p.groups(), p.main.deployment.stages());
    let engine = case.ask.on.engine.schedule.sequences * stages * p.groups();
    let what = if memory <= engine { "memory" } else { "the engine's limit" };
    format!("{words}; {what} holds {} sequences", count(memory.min(engine).floor()))
}

fn problem(case: &Case, p: &Serving, outcome: &Outcome) -> Option<Problem> {
    if !outcome.fits {
        let requests = &case.ask.requests;
        let pool = p.split.as_ref().filter(|pool| pool.room < 1.0 && p.room >= 1.0);
        let on = pool.map_or(&case.ask.on, |pool| &pool.instance.deployment);
        let load = on.load(requests, on.groups(), on.engine.schedule.chunk);
        let placed = placement::place(on, &load);
        let missing = match placed.fit {
            Fit::TooLarge { missing, .. } => Some(missing.get()),
            Fit::Fits { .. } => None,
        };
        return Some(Problem {
            what: layout::verdict(&placed),
            missing_bytes: missing,
            most_requests_per_s: None,
            first_change: layout::first_change(on, &load, 0.0),
        });
    }
    outcome.overloaded.then(|| Problem {
        what: format!(
            "more requests arrive than are served: the queue grows without end; at most {} a second are sustained",
            significant(outcome.rate, 3)
        ),
        missing_bytes: None,
        most_requests_per_s: Some(outcome.rate),
        first_change: None,
    })
}

fn assumptions(case: &Case, p: &Serving, outcome: &Outcome) -> Vec<String> {
    let (r, ask, assumed) = (&case.found, &case.ask, &p.main.pass.assumed);
    let (engine, s) = (&ask.on.engine, &ask.on.engine.schedule);
    let (name, as_of, given, chips) = (&engine.name, &engine.as_of, &case.request.engine, r.system.n_chips);
    let version = if given.contains('@') {
        format!("{given} is taken as {name}, as known in {as_of}")
    } else {
        format!("no engine version given: {name}, as known in {as_of}")
    };
    let pool = p.split.iter().flat_map(|pool| &pool.instance.pass.assumed).filter(|a| !assumed.contains(a));
    let sent = p.split.is_some().then(|| "the cache is sent when the prompt is done; sending is not hidden".into());
    let more = (p.split.is_some() && outcome.chips > chips as f64).then(|| {
        format!("both pools need more than the {chips} chips of {}: further ones of the same kind", r.system.name)
    });
    let together = match s.prompts {
        Prompts::RideAlong => "prompts ride along with decoding sequences",
        Prompts::First => "prompts have passes of their own",
    };
    let (chunk, sequences, memory) = (count(s.chunk), count(s.sequences), s.memory);
    let mtp = ask.on.model.shape().is_some_and(|shape| shape.mtp.is_some());
    let by = if mtp { "the model's own extra layer" } else { "one extra layer like the model's last" };
    let (drafts, accepted) = (count(ask.requests.drafts), significant(ask.requests.accepted, 3));
    let used = ask.on.layout.chips();
    let [tpot, ttft, throughput] = [engine.spread.tpot, engine.spread.ttft, engine.spread.throughput]
        .map(|of| significant(float::exp(p.main.spread(of)), 3));
    let wider = p.main.pass.wider > 1.0;
    let why = if wider { "; wider than usual because constants were borrowed" } else { "" };
    let targets = [case.request.ttft_ms, case.request.tpot_ms, case.request.e2e_ms].iter().any(Option::is_some);
    let load = [
        Some(format!("{name}: at most {chunk} tokens in a pass, {sequences} sequences per group, {memory} of the memory; {together}")),
        (ask.requests.drafts > 0.0).then(|| format!("{drafts} drafts a step by {by}, {accepted} tokens accepted")),
        (ask.split.is_none() && used < chips)
            .then(|| format!("one instance on {used} of {chips} chips; figures per chip are of those it uses")),
        (outcome.groups < p.groups())
            .then(|| format!("{} of {} groups have a request", count(outcome.groups.floor()), count(p.groups()))),
        matches!(ask.load, Loading::Concurrency(_)).then(|| {
            "a long run in which a finished request is replaced at once, lengths spread so that prompts come evenly".into()
        }),
        (!engine.ideal).then(|| {
            format!("intervals hold 80 % of measurements: times per token within a factor {tpot}, first tokens {ttft}, throughput {throughput}{why}")
        }),
        Some("means in steady state: not valid for percentiles, for bursts, or near the saturation of an open loop".into()),
        targets.then(|| "goodput counts all requests or none, as the means meet the targets".into()),
        Some(format!("price: {} per chip, {}; split by the time prompts take", r.chip_price, r.price_source)),
    ];
    let first = [format!("weights in {}, KV cache {}", r.format_words(), r.kv_words())];
    let version = case.version_note.clone().unwrap_or(version);
    let deployed =
        first.into_iter().chain([version]).chain(assumed.iter().chain(pool).cloned()).chain(sent).chain(more);
    let notes = engine.notes.iter().chain(&r.model.notes).cloned();
    deployed.chain(load.into_iter().flatten()).chain(notes).collect()
}

/// The mean of the passes with and without prompt tokens.
pub(crate) fn breakdown(s: &Steady) -> Breakdown {
    let mean =
        |decode: Seconds, mixed: Seconds| (decode.get() * (1.0 - s.prompt_share) + mixed.get() * s.prompt_share) * 1e3;
    let step = s.step().get() * 1e3;
    let piece =
        |what: &str, ms: f64| Piece { what: what.to_owned(), ms, share: if step > 0.0 { ms / step } else { 0.0 } };
    let part = |p: Part| mean(s.decode.part(p), s.mixed.part(p));
    let limited = |l: Limit| mean(s.decode.limited(l), s.mixed.limited(l));
    let ideal = mean(s.decode.ideal(), s.mixed.ideal()).min(step);
    // Links carry nothing but collectives; the rest of a collective's time is latency.
    let (network, link) = (part(Part::Network), limited(Limit::Link));
    let waiting = (network - link).max(0.0);
    let floors = (limited(Limit::Latency) - waiting).max(0.0);
    let busy = limited(Limit::Compute) + limited(Limit::Memory);
    let collectives = if waiting > link { "collectives, mostly latency" } else { "collectives, mostly bytes on links" };
    let shown = |all: Vec<Piece>| all.into_iter().filter(|p| p.ms > 0.0).collect::<Vec<_>>();
    let mut losses = shown(vec![
        piece(collectives, network),
        piece("kernel launches and floors", floors),
        piece("host", limited(Limit::Host)),
        piece("kernels slower than their roofline", (busy - ideal).max(0.0)),
    ]);
    losses.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    Breakdown {
        step_ms: step,
        decode_ms: s.decode.time().get() * 1e3,
        mixed_ms: s.mixed.time().get() * 1e3,
        ideal_ms: ideal,
        of_limit: if step > 0.0 { ideal / step } else { 0.0 },
        parts: shown(Part::ALL.iter().map(|p| piece(p.name(), part(*p))).collect()),
        limits: shown(Limit::ALL.into_iter().map(|l| piece(l.name(), limited(l))).collect()),
        losses,
    }
}

/// The distance from the limit and the two largest reasons for it.
fn reading(step: &Breakdown, ideal: bool) -> String {
    let [ideal_time, time] = [step.ideal_ms, step.step_ms].map(|ms| Seconds::s(ms / 1e3));
    let limit = format!("You are at {} of the limit: {ideal_time} of {time} per step", percent(step.of_limit));
    match step.losses.as_slice() {
        _ if ideal => format!("{limit}; this engine is the limit itself."),
        [] => format!("{limit}."),
        [one] => format!("{limit}; {} of the step is {}.", percent(one.share), one.what),
        [one, two, ..] => {
            format!("{limit}; {} of the step is {}, {} {}.", percent(one.share), one.what, percent(two.share), two.what)
        }
    }
}
