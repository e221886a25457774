//! From a steady state to the page: intervals, the breakdown, what binds and the sentences around them.

use super::ask::{Case, Loading};
use super::breakdown::{breakdown, largest, reading};
use super::card::{Answer, Breakdown, Pools, Problem, Range, Served, Slo};
use super::serve::{Outcome, Prepared};
use crate::figure::count;
use crate::layout;
use rackmath_theory::placement::{self, Fit};
use rackmath_units::{Fraction, float, significant};

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
pub(super) fn percent(share: f64) -> String {
    Fraction::checked(share).map_or_else(|| "more than 100%".into(), |f| f.to_string())
}

pub(super) fn answer(case: &Case, p: &Prepared, outcome: &Outcome) -> Answer {
    let (r, parts) = (&case.resolved, &case.ask.parts);
    let fits = outcome.fits;
    Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        engine: parts.engine.name.clone(),
        engine_id: parts.engine.id.clone(),
        layout: layout::words(&r.model, &parts.layout),
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
            let pool = p.split.as_ref()?;
            Some(Pools {
                prefill_layout: layout::words(&r.model, &pool.instance.deployment.layout),
                prefill_instances: flow.instances,
                prefill_chips: flow.chips as u64,
                decode_chips: (outcome.chips - flow.chips) as u64,
                balanced_ratio: flow.ratio,
                prefill_busy: flow.busy,
                prefill_ms: flow.pass * 1e3,
                prefill_wait_ms: flow.wait * 1e3,
                transfer_bytes: pool.bytes,
                transfer_ms: pool.send * 1e3,
                network: pool.network.clone(),
            })
        }),
        changes: Vec::new(),
        assumptions: assumptions(case, p, outcome),
        sources: sources(case),
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

fn served(case: &Case, p: &Prepared, outcome: &Outcome) -> Served {
    let requests = &case.ask.requests;
    let (s, engine) = (&outcome.steady, &case.ask.parts.engine);
    let spread = |of: f64| p.spread(of);
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
        reading: reading(&step, case.ask.parts.engine.ideal),
        step,
    }
}

fn slo(case: &Case, outcome: &Outcome) -> Option<Slo> {
    let r = case.request;
    if r.ttft_slo_ms.is_none() && r.tpot_slo_ms.is_none() {
        return None;
    }
    let (ttft, tpot) = ((outcome.ttft + outcome.queue) * 1e3, outcome.tpot() * 1e3);
    let mut misses = Vec::new();
    let mut judge = |what: &str, mean: f64, target: Option<f64>| {
        if let Some(target) = target.filter(|t| mean > *t) {
            misses.push(format!("{what} is {} times its target", significant(mean / target, 3)));
        }
    };
    judge("time to first token", ttft, r.ttft_slo_ms);
    judge("time per output token", tpot, r.tpot_slo_ms);
    let met = misses.is_empty() && outcome.serves();
    let share = if met { 1.0 } else { 0.0 };
    if outcome.overloaded {
        misses.push("more requests arrive than are served".into());
    }
    let verdict = if met { "the means meet the targets".into() } else { misses.join(", ") };
    Some(Slo {
        ttft_ms: r.ttft_slo_ms,
        tpot_ms: r.tpot_slo_ms,
        met,
        goodput_share: share,
        goodput_requests_per_s: share * outcome.rate,
        verdict,
    })
}

fn binding(case: &Case, p: &Prepared, outcome: &Outcome, step: &Breakdown) -> String {
    let mut words = match (largest(&step.limits), largest(&step.parts)) {
        (Some(limit), Some(part)) => {
            format!(
                "{} ({} of the step); most time goes to {} ({})",
                limit.what,
                percent(limit.share),
                part.what,
                percent(part.share)
            )
        }
        _ => "nothing".into(),
    };
    let most = (p.room * p.groups(), case.ask.parts.engine.schedule.sequences * p.main.pass.stages() * p.groups());
    if outcome.steady.waiting > 0.0 || case.ask.load == Loading::Full {
        let (what, n) = if most.0 <= most.1 { ("memory", most.0) } else { ("the engine's limit", most.1) };
        words = format!("{words}; {what} holds {} sequences", count(n.floor()));
    }
    words
}

fn problem(case: &Case, p: &Prepared, outcome: &Outcome) -> Option<Problem> {
    if !outcome.fits {
        let requests = &case.ask.requests;
        let pool = p.split.as_ref().filter(|pool| pool.room < 1.0 && p.room >= 1.0);
        let parts = pool.map_or(&case.ask.parts, |pool| &pool.instance.deployment);
        let load = parts.load(requests, parts.groups(), parts.engine.schedule.chunk);
        let placed = placement::place(parts, &load);
        let missing = match placed.fit {
            Fit::TooLarge { missing, .. } => Some(missing.get()),
            Fit::Fits { .. } => None,
        };
        return Some(Problem {
            what: layout::verdict(&placed),
            missing_bytes: missing,
            most_requests_per_s: None,
            first_change: layout::first_change(parts, &load, 0.0),
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

fn assumptions(case: &Case, p: &Prepared, outcome: &Outcome) -> Vec<String> {
    let (r, ask) = (&case.resolved, &case.ask);
    let (engine, s) = (&ask.parts.engine, &ask.parts.engine.schedule);
    let mut all = vec![format!("weights in {}, KV cache {}", r.format_words(), r.kv_words())];
    all.push(match &case.version_note {
        Some(note) => note.clone(),
        None if case.request.engine.contains('@') => {
            format!("{} is taken as {}, as known in {}", case.request.engine, engine.name, engine.as_of)
        }
        None => format!("no engine version given: {}, as known in {}", engine.name, engine.as_of),
    });
    all.extend(p.main.pass.assumed().iter().cloned());
    if let Some(pool) = &p.split {
        all.extend(pool.instance.pass.assumed().iter().filter(|a| !p.main.pass.assumed().contains(a)).cloned());
        all.push("the cache is sent when the prompt is done; sending is not hidden".into());
        if outcome.chips > r.system.n_chips as f64 {
            all.push(format!(
                "both pools need more than the {} chips of {}: further ones of the same kind",
                r.system.n_chips, r.system.name
            ));
        }
    }
    let together =
        if s.mixed { "prompts ride along with decoding sequences" } else { "prompts have passes of their own" };
    all.push(format!(
        "{}: at most {} tokens in a pass, {} sequences per group, {} of the memory; {together}",
        engine.name,
        count(s.chunk),
        count(s.sequences),
        s.memory
    ));
    if ask.requests.drafts > 0.0 {
        let mtp = ask.parts.model.shape().is_some_and(|shape| shape.mtp.is_some());
        let by = if mtp { "the model's own extra layer" } else { "one extra layer like the model's last" };
        all.push(format!(
            "{} drafts a step by {by}, {} tokens accepted",
            count(ask.requests.drafts),
            significant(ask.requests.accepted, 3)
        ));
    }
    let used = ask.parts.layout.chips();
    if ask.split.is_none() && used < r.system.n_chips {
        all.push(format!(
            "one instance on {used} of {} chips; figures per chip are of those it uses",
            r.system.n_chips
        ));
    }
    if outcome.groups < p.groups() {
        all.push(format!("{} of {} groups have a request", count(outcome.groups.floor()), count(p.groups())));
    }
    if let Loading::Concurrency(_) = ask.load {
        all.push(
            "a long run in which a finished request is replaced at once, lengths spread so that prompts come evenly"
                .into(),
        );
    }
    if !engine.ideal {
        all.push(format!(
            "intervals hold 80 % of measurements: times per token within a factor {}, first tokens {}, throughput {}{}",
            significant(float::exp(p.spread(engine.spread.tpot)), 3),
            significant(float::exp(p.spread(engine.spread.ttft)), 3),
            significant(float::exp(p.spread(engine.spread.throughput)), 3),
            if p.main.pass.wider() > 1.0 { "; wider than usual because constants were borrowed" } else { "" }
        ));
    }
    all.push(
        "means in steady state: not valid for percentiles, for bursts, or near the saturation of an open loop".into(),
    );
    if case.request.ttft_slo_ms.is_some() || case.request.tpot_slo_ms.is_some() {
        all.push("goodput counts all requests or none, as the means meet the targets".into());
    }
    all.push(format!("price: {} per chip, {}; split by the time prompts take", r.chip_price, r.price_source));
    all.extend(engine.notes.iter().cloned());
    all.extend(r.model.notes.iter().cloned());
    all
}

fn sources(case: &Case) -> Vec<String> {
    let mut all = case.resolved.sources();
    let engine = &case.ask.parts.engine;
    all.push(format!("engine: {} ({})", engine.source, engine.as_of));
    all
}
