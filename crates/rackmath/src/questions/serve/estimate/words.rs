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

use super::met::Met;
use super::spread::{self, Intervals};
use super::work::{Ask, Case};
use super::{Answer, Breakdown, Piece, Pools, Problem, Request, Served, Slo, Target};
use crate::desk::prelude::*;
use crate::desk::{cut, remedy};
use crate::layout;
use crate::offload;
use crate::simulate::{Percentiles, What};
use crate::support::Refusal;
use rackmath_spec::MoeMatch;
use rackmath_spec::engine::Prompts;
use rackmath_theory::deployment::Deployment;
use rackmath_theory::pass::{Assumption, Limit, Part};
use rackmath_theory::placement::{self, Fit, Load};
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::{Requests, Steady};

pub(super) fn answer(case: &Case, p: &Serving, outcome: &Outcome, met: &Met, holds: Option<f64>) -> Answer {
    let (r, on) = (&case.found, &case.ask.on);
    let (pretend, standing) = (case.request.pretend, &case.standing);
    let barred = standing.refusal.as_ref().filter(|_| !pretend);
    let fits = outcome.fits && barred.is_none() && case.held();
    let engine = says("engine_source").with("source", &on.engine.source).with("as_of", &on.engine.as_of);
    Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        engine: on.engine.name.clone(),
        engine_id: on.engine.id.clone(),
        layout: offload::layout_words(on),
        layout_chosen: case.chosen,
        chips: outcome.chips as u64,
        chips_available: p.machine() as u64,
        weights: r.format_words(),
        kv: r.kv_words(),
        load: load_words(&case.ask),
        isl: case.ask.requests.input,
        osl: case.ask.requests.output,
        pretended: standing.pretended(pretend),
        evidence: case.evidence(p).filter(|_| fits),
        solved: None,
        served: fits.then(|| served(case, p, outcome, met)),
        speculation: None,
        problem: barred.map(not_possible).or_else(|| problem(case, p, outcome, met, holds)),
        media: super::beside::brought(case, p, outcome).filter(|_| fits),
        embedding: None,
        pools: outcome.flow.as_ref().filter(|_| fits).and_then(|flow| {
            let (pool, network) = (p.split.as_ref()?, r.system.levels.last());
            Some(Pools {
                prefill_layout: cut::words(&r.model, &pool.instance.deployment.layout),
                prefill_instances: flow.instances,
                prefill_chips: flow.chips as u64,
                decode_chips: (outcome.chips - flow.chips) as u64,
                balanced_ratio: flow.ratio,
                prefill_busy: flow.busy,
                prefill_ms: flow.pass * 1e3,
                prefill_wait_ms: flow.wait * 1e3,
                transfer_bytes: pool.bytes.get(),
                transfer_ms: pool.send.get() * 1e3,
                network: network.map_or_else(|| says("no_network"), |l| l.name.as_str().into()),
            })
        }),
        offload: offload::card(
            on,
            &on.load(&case.ask.requests, outcome.steady.running.max(1.0), on.engine.schedule.chunk),
        ),
        loras: None,
        changes: Vec::new(),
        assumptions: if barred.is_none() { assumptions(case, p, outcome, met) } else { Vec::new() },
        sources: barred.map_or_else(|| [r.sources(), vec![engine]].concat(), |barred| vec![barred.origin()]),
    }
}

fn load_words(ask: &Ask) -> Remark {
    if let Some((users, think)) = ask.users {
        return says("users_who_think").with("users", users).with("think", think);
    }
    match ask.load {
        Loading::Concurrency(1.0) => says("one_in_flight"),
        Loading::Concurrency(n) => says("in_flight").with("requests", n),
        Loading::Rate(rate) => says("at_random").with("rate", rate),
        Loading::Full => says("as_many_as_held"),
    }
}

/// Means in milliseconds: until a request is scheduled, from then to its first token, of a token.
pub(super) fn means(outcome: &Outcome, met: &Met) -> [f64; 3] {
    let of = |what: What| met.run().and_then(|p| p.of(what)).map(|t| t.mean_ms);
    match (of(What::Queue), of(What::Ttft)) {
        // Where a request is its first token, no others follow.
        (Some(queue), Some(first)) => [queue, (first - queue).max(0.0), of(What::Tpot).unwrap_or(0.0)],
        _ => [outcome.queue * 1e3, outcome.ttft * 1e3, outcome.tpot() * 1e3],
    }
}

pub(super) fn overloaded(outcome: &Outcome, met: &Met) -> bool {
    outcome.overloaded || met.run().is_some_and(|p| p.queue_grows)
}

fn served(case: &Case, p: &Serving, outcome: &Outcome, met: &Met) -> Served {
    let (requests, s) = (&case.ask.requests, &outcome.steady);
    // Of a queue that grows, no time of a run means anything: it is as long as the run.
    let stable = !overloaded(outcome, met);
    let met = if stable { met } else { &Met::Unasked };
    let means = means(outcome, met);
    let Intervals { tpot: tpot_ms, first: ttft_unqueued_ms, queue: queue_ms, e2e: e2e_ms, rate } =
        spread::intervals(case, p, outcome, means, stable);
    let (ttft_ms, [queue, ..]) = (ttft_unqueued_ms.plus(queue_ms), means);
    // Little: so many are there as come in the time they stay.
    let there = |ms: f64| rate.value * ms / 1e3;
    let mut counts = [s.decoding, s.running, s.waiting].map(|n| n * outcome.groups);
    if case.ask.users.is_some() || (met.run().is_some() && matches!(case.ask.load, Loading::Rate(_))) {
        counts = [there(e2e_ms.value - ttft_ms.value), there(e2e_ms.value - queue), there(queue)];
    }
    let [decoding, running, waiting] = counts;
    let usd = outcome.usd_per_mtok(requests, case.ask.price);
    let step = breakdown(s);
    Served {
        tpot_ms,
        ttft_ms: stable.then_some(ttft_ms),
        ttft_unqueued_ms: stable.then_some(ttft_unqueued_ms),
        queue_ms: stable.then_some(queue_ms),
        e2e_ms: stable.then_some(e2e_ms),
        output_tok_s_per_chip: rate.times(requests.output / outcome.chips),
        output_tok_s_per_user: tpot_ms.inverse().times(1e3),
        output_tok_s: rate.times(requests.output),
        requests_per_s: rate,
        slo: slo(case, outcome, met, stable),
        percentiles: met.run().cloned(),
        decoding,
        running,
        waiting,
        room: p.room * p.groups(),
        prompt_share: s.prompt_share,
        prompt_tokens: s.prompt_size,
        usd_per_mtok_output: usd.map(|u| u.0),
        usd_per_mtok_input: usd.map(|u| u.1),
        binding: binding(case, p, waiting, &step),
        reading: reading(&step, case.ask.on.engine.ideal),
        step,
    }
}

/// Every target with what was reached.
pub(super) fn reached(case: &Case, requests: &Requests, outcome: &Outcome, met: &Met) -> Vec<Target> {
    let [queue, first, token] = means(outcome, met);
    let whole = queue + first + token * (requests.output - 1.0).max(0.0);
    let rows = [(What::Ttft, queue + first), (What::Tpot, token), (What::E2e, whole)];
    let target = |((what, mean), limit): ((What, f64), Option<AtMost>)| {
        let limit = limit?;
        let found = met.run().and_then(|p| p.of(what)).and_then(|t| t.percentile_ms);
        // A percentile that was not simulated is not known to be met.
        let value_ms = if limit.percentile.is_some() { found } else { Some(mean) };
        Some(Target { what, percentile: limit.percentile, value_ms, limit_ms: limit.ms })
    };
    rows.into_iter().zip(case.limits()).filter_map(target).collect()
}

fn slo(case: &Case, outcome: &Outcome, met: &Met, stable: bool) -> Option<Slo> {
    let limits = case.limits();
    // Without a target there is nothing to meet.
    limits.iter().flatten().next()?;
    let mut held = outcome.serves() && stable;
    let (mut misses, mut all) = (Vec::new(), Vec::new());
    for r in reached(case, &case.ask.requests, outcome, met).iter().filter(|_| stable) {
        held &= r.holds();
        misses.extend(r.value_ms.filter(|v| *v > r.limit_ms).map(|v| says(r.missed()).with("times", v / r.limit_ms)));
        all.push((r.holds(), r.words()));
    }
    if !stable {
        misses.push(says("more_than_served"));
    }
    let share = met.run().and_then(|p| p.goodput).unwrap_or_else(|| f64::from(held));
    let told = stable && (met.run().is_some() || limits.iter().flatten().any(|l| l.percentile.is_some()));
    let verdict = match (held, told) {
        (true, false) => says("targets_met"),
        (false, false) => says("targets_missed").with("misses", misses),
        (held, true) => says(if held { "targets_kept" } else { "targets_broken" })
            .with("all", all.iter().filter(|(holds, _)| *holds == held).map(|(_, r)| r.clone()).collect::<Vec<_>>())
            .with("share", met.run().map(|_| share)),
    };
    let [ttft_ms, tpot_ms, e2e_ms] = limits.map(|l| l.map(|l| l.ms));
    let goodput_requests_per_s = share * outcome.rate;
    Some(Slo { ttft_ms, tpot_ms, e2e_ms, met: held, goodput_share: share, goodput_requests_per_s, verdict })
}

fn binding(case: &Case, p: &Serving, waiting: f64, step: &Breakdown) -> Remark {
    let largest = |pieces: &[Piece]| pieces.iter().max_by(|a, b| a.share.total_cmp(&b.share)).cloned();
    let said = match (largest(&step.limits), largest(&step.parts)) {
        (Some(limit), Some(part)) => {
            let most = says("bound_by").with("limit", limit.what).with("limit_share", limit.share);
            most.with("part", part.what).with("part_share", part.share)
        }
        _ => says("bound_by_nothing"),
    };
    if (waiting <= 0.0 && case.ask.load != Loading::Full) || matches!(case.ask.load, Loading::Rate(_)) {
        return said;
    }
    let (memory, stages) = (p.room * p.groups(), p.main.deployment.stages());
    let engine = case.ask.on.engine.schedule.sequences * stages * p.groups();
    let holder = if memory <= engine {
        "memory_holds"
    } else if super::adapters::waits_for_slot(case) {
        "slots_hold"
    } else {
        "engine_holds"
    };
    said.with(holder, memory.min(engine).floor())
}

/// What no engine would start.
fn not_possible(refusal: &Refusal) -> Problem {
    Problem {
        what: refusal.why.clone(),
        missing_bytes: None,
        most_requests_per_s: None,
        holds_requests_per_s: None,
        first_change: refusal.nearest.clone(),
    }
}

fn problem(case: &Case, p: &Serving, outcome: &Outcome, met: &Met, holds: Option<f64>) -> Option<Problem> {
    let on = &case.ask.on;
    let at = on.load(&case.ask.requests, 1.0, on.engine.schedule.chunk);
    if let Some((card, missing)) = offload::card_lacks(on, &at) {
        return Some(Problem {
            what: says("card_too_small").with("card", card).with("missing", missing),
            missing_bytes: Some(missing.get()),
            most_requests_per_s: None,
            holds_requests_per_s: None,
            first_change: Some(says("other_shares")),
        });
    }
    if let Some(missing) = offload::host_lacks(on, &at).filter(|_| outcome.fits) {
        return Some(Problem {
            what: says("host_too_small").with("missing", missing),
            missing_bytes: Some(missing.get()),
            most_requests_per_s: None,
            holds_requests_per_s: None,
            first_change: Some(says("disk_instead")),
        });
    }
    if outcome.chips > p.machine() && p.room >= 1.0 {
        return Some(too_few(case, p, outcome));
    }
    if !outcome.fits {
        let requests = &case.ask.requests;
        let pool = p.split.as_ref().filter(|pool| pool.room < 1.0 && p.room >= 1.0);
        let on = pool.map_or(&case.ask.on, |pool| &pool.instance.deployment);
        // Where prompts leave when they are done, no answer is held.
        let held = Requests { output: pool.map_or(requests.output, |_| 1.0), ..*requests };
        let load = on.least(&held, on.engine.schedule.chunk);
        let placed = placement::place(on, &load);
        let missing = match placed.fit {
            Fit::TooLarge { missing, .. } => Some(missing.get()),
            Fit::Fits { .. } => None,
        };
        let longest = placement::longest_context(on, &load).map(f64::floor).filter(|n| *n >= 1.0);
        let long = |most: f64| {
            let said = says("request_too_long").with("tokens", load.context).with("most", most);
            said.with("answer", Some(held.output).filter(|n| *n > 1.0)).with("missing", missing)
        };
        return Some(Problem {
            what: longest.map_or_else(|| layout::verdict(&placed), long),
            missing_bytes: missing,
            most_requests_per_s: None,
            holds_requests_per_s: None,
            first_change: split_first(case, on, &load)
                .or_else(|| remedy::first_change(on, &load, 0.0, |on| case.runs(on))),
        });
    }
    if !overloaded(outcome, met) {
        return None;
    }
    let most = most(case, p);
    let Loading::Rate(offered) = case.ask.load else { return None };
    // The steady state serves a little more than random arrivals let it: where only these are too many, nobody knows by how much.
    let grows = (offered > most).then_some(offered - most);
    let said = says(if grows.is_some() { "overloaded" } else { "nearly_full" }).with("offered", offered);
    Some(Problem {
        what: said.with("most", most).with("grows", grows).with("holds", holds),
        missing_bytes: None,
        most_requests_per_s: Some(most),
        holds_requests_per_s: holds,
        first_change: None,
    })
}

/// Pools that take more chips than there are: at least so many would do, or as many as were asked for.
fn too_few(case: &Case, p: &Serving, outcome: &Outcome) -> Problem {
    let (d, each) = (&case.ask.on.layout, p.split.as_ref().map(|pool| pool.instance.deployment.chips()));
    let prompts = outcome.flow.map(|flow| flow.chips);
    let what = says("too_few_chips").with("decode", d.chips()).with("prompts", prompts);
    let what = what.with("encode", outcome.encoders.map(|e| e.chips)).with("chips", outcome.chips);
    let taken = outcome.chips - prompts.unwrap_or(0.0);
    // Fewer for prompts where more were asked for than are left.
    let fewer = each.map(|each| ((p.machine() - taken) / each).floor() * each).filter(|n| *n > 0.0);
    Problem {
        what: what.with("machine", p.machine()).with("system", &case.found.system.name),
        missing_bytes: None,
        most_requests_per_s: None,
        holds_requests_per_s: None,
        first_change: Some(says("more_chips").with("chips", p.fewest()).with("prompts", fewer)),
    }
}

/// A split over card and host that fits, where the engine computes on both.
fn split_first(case: &Case, on: &Deployment, load: &Load) -> Option<Remark> {
    on.engine.offload.as_ref().filter(|o| o.computes && !on.engine.ideal)?;
    let whole = |offload: &offload::Offloaded| {
        let request = Request { offload: offload.clone(), ..case.request.clone() };
        let then = Case::new(case.catalog, &request).ok()?;
        let outcome = then.ready(&then.ask).ok()?.under(&then.ask.requests, then.ask.load);
        outcome.serves().then(|| outcome.e2e(&then.ask.requests))
    };
    offload::would_fit(case.catalog, &case.request.offload, on, load, whole)
}

/// Requests per second that are served when always full.
pub(super) fn most(case: &Case, p: &Serving) -> f64 {
    case.under(p, &case.ask.requests, Loading::Full).rate
}

/// Where the queue of a run grows although means would balance, the state that it grows into: a full server.
pub(super) fn saturated(case: &Case, p: &Serving, outcome: &Outcome, met: &Met) -> Outcome {
    let Loading::Rate(offered) = case.ask.load else { return *outcome };
    if outcome.overloaded || !overloaded(outcome, met) {
        return *outcome;
    }
    let full = case.under(p, &case.ask.requests, Loading::Full);
    Outcome { overloaded: true, rate: full.rate.min(offered), ..full }
}

fn assumptions(case: &Case, p: &Serving, outcome: &Outcome, met: &Met) -> Vec<Remark> {
    let (r, ask, assumed) = (&case.found, &case.ask, &p.main.pass.assumed);
    let (engine, s) = (&ask.on.engine, &ask.on.engine.schedule);
    let (given, chips) = (&case.request.engine, r.system.n_chips);
    let as_known = |id| says(id).with("name", &engine.name).with("as_of", &engine.as_of);
    // Of a version that nobody looked at, the standing speaks.
    let version = match case.uncovered {
        Some(_) => None,
        None if given.contains('@') => Some(as_known("version_taken_as").with("given", given)),
        None => Some(as_known("no_version")),
    };
    let pool = p.split.iter().flat_map(|pool| &pool.instance.pass.assumed).filter(|a| !assumed.contains(a));
    let more = outcome
        .flow
        .filter(|flow| flow.ratio * ask.on.chips() > flow.chips && case.ask.split.is_some_and(|(_, n)| n.is_none()))
        .map(|flow| says("no_more_for_prompts").with("prompts", flow.chips).with("chips", chips));
    let together = match s.prompts {
        Prompts::RideAlong => "prompts_ride_along",
        Prompts::First => "prompts_apart",
    };
    let mtp = ask.on.model.shape().is_some_and(|shape| shape.mtp.is_some());
    let drafts = says(if mtp { "drafts_by_own_layer" } else { "drafts_by_extra_layer" });
    let used = ask.on.layout.chips();
    let w = case.scale.widths(&p.main);
    let intervals = says("intervals").with("tpot", float::exp(w.tpot)).with("ttft", float::exp(w.ttft));
    let targets = [case.request.ttft_ms, case.request.tpot_ms, case.request.e2e_ms].iter().any(Option::is_some);
    // The engine's own limit, not what adapters' slots leave of it.
    let sequences = r.deployment.engine.schedule.sequences;
    let schedule = says(together).with("name", &engine.name).with("chunk", s.chunk).with("sequences", sequences);
    let taken = ask.on.utilisation(&ask.on.load(&ask.requests, ask.on.groups(), s.chunk));
    let load = [
        Some(schedule.with("memory", taken)),
        (ask.requests.drafts > 0.0).then(|| {
            let said = drafts.with("drafts", ask.requests.drafts).with("accepted", ask.requests.accepted);
            case.guess.as_ref().and_then(|guess| guess.assumed(&ask.requests)).unwrap_or(said)
        }),
        (ask.split.is_none() && used < chips).then(|| says("instance_on_part").with("used", used).with("chips", chips)),
        (outcome.groups < p.groups())
            .then(|| says("groups_in_use").with("used", outcome.groups.floor()).with("groups", p.groups())),
        (ask.users.is_none() && matches!(ask.load, Loading::Concurrency(_))).then(|| says("replaced_at_once")),
        ask.users.map(|(_, think)| says("users_think").with("think", think)),
        (!engine.ideal).then(|| intervals.with("throughput", float::exp(w.throughput))),
        Some(simulated(met)),
        ask.on.split.is_some().then(|| says("split_checked")),
        (met.run().is_some() && engine.overhead.launch_spread > 0.0)
            .then(|| says("launches_vary").with("name", &engine.name).with("spread", engine.overhead.launch_spread)),
        (met.run().is_some() && !matches!(engine.family.as_str(), "vllm" | "ideal"))
            .then(|| says("simulated_unchecked").with("engine", &engine.name)),
        (targets && met.run().is_none()).then(|| says("goodput_all_or_none")),
        met.run().filter(|p| in_step(p)).map(|_| says("percentiles_in_step")),
        Some(r.at_price("price_split")),
    ];
    let first = [Some(r.in_formats("weights_and_cache")), version];
    // That weights are expanded is said once, with the engine's reason where the chip could do otherwise.
    let (supported, widened) = (&case.standing.remarks, case.standing.widens());
    let assumed = assumed.iter().chain(pool).filter(|a| !widened || !matches!(a, Assumption::Expanded { .. }));
    let deployed = first.into_iter().flatten().chain(supported.iter().cloned()).chain(assumed.map(assumption));
    let notes = engine.notes.iter().chain(&r.model.notes).map(Into::into);
    let sent = p.split.is_some().then(|| says("cache_sent_at_end"));
    deployed
        .chain(super::beside::assumed(case))
        .chain(sent)
        .chain(more)
        .chain(load.into_iter().flatten())
        .chain(notes)
        .collect()
}

/// Whether all requests meet the same: those of one length that follow each other at once fall in step.
fn in_step(p: &Percentiles) -> bool {
    p.of(What::Ttft).is_some_and(|t| t.p99_ms < t.p50_ms * 1.001)
}

/// What the times rest on.
fn simulated(met: &Met) -> Remark {
    match met {
        Met::Unasked => says("means_in_steady_state"),
        Met::Run(p) => says("percentiles_simulated").with("requests", p.requests).with("seed", p.seed),
        Met::Not(why) => says("percentiles_not").with("why", why.clone()),
    }
}

/// What a pass had to assume.
pub(crate) fn assumption(of: &Assumption) -> Remark {
    match of {
        Assumption::Expanded { chip, math, format } => {
            says("weights_expanded").with("chip", chip).with("math", *math).with("format", *format)
        }
        Assumption::Products { format, generation } => {
            says("products_borrowed").with("format", *format).with("generation", generation)
        }
        Assumption::Attention { generation } => says("attention_borrowed").with("generation", generation),
        Assumption::Experts { family, format, generation, from } => {
            let id = match from {
                MoeMatch::Generation => "experts_of_another_generation",
                MoeMatch::Format => "experts_of_another_format",
                _ => "experts_of_the_median",
            };
            says(id).with("family", family).with("format", format.to_string()).with("generation", generation)
        }
        Assumption::Links { kind } => says("links_unknown").with("kind", kind),
        Assumption::Hosts { hosts } => says("reduced_over_hosts").with("hosts", *hosts),
    }
}

/// The mean of the passes with and without prompt tokens.
pub(crate) fn breakdown(s: &Steady) -> Breakdown {
    let mean =
        |decode: Seconds, mixed: Seconds| (decode.get() * (1.0 - s.prompt_share) + mixed.get() * s.prompt_share) * 1e3;
    let step = s.step().get() * 1e3;
    let piece = |what: Remark, ms: f64| Piece { what, ms, share: if step > 0.0 { ms / step } else { 0.0 } };
    let part = |p: Part| mean(s.decode.part(p), s.mixed.part(p));
    let limited = |l: Limit| mean(s.decode.limited(l), s.mixed.limited(l));
    let ideal = mean(s.decode.ideal(), s.mixed.ideal()).min(step);
    // Links carry nothing but collectives; the rest of a collective's time is latency.
    let (network, link) = (part(Part::Network), limited(Limit::Link));
    let waiting = (network - link).max(0.0);
    let floors = (limited(Limit::Latency) - waiting).max(0.0);
    let busy = limited(Limit::Compute) + limited(Limit::Memory);
    let collectives = if waiting > link { "collectives_wait" } else { "collectives_send" };
    let shown = |all: Vec<Piece>| all.into_iter().filter(|p| p.ms > 0.0).collect::<Vec<_>>();
    let mut losses = shown(vec![
        piece(says(collectives), network),
        piece(says("launches_and_floors"), floors),
        piece("host".into(), limited(Limit::Host)),
        piece(says("slow_kernels"), (busy - ideal).max(0.0)),
    ]);
    losses.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    Breakdown {
        step_ms: step,
        decode_ms: s.decode.time().get() * 1e3,
        mixed_ms: s.mixed.time().get() * 1e3,
        ideal_ms: ideal,
        of_limit: if step > 0.0 { ideal / step } else { 0.0 },
        parts: shown(Part::ALL.iter().map(|p| piece(p.name().into(), part(*p))).collect()),
        limits: shown(Limit::ALL.into_iter().map(|l| piece(l.name().into(), limited(l))).collect()),
        losses,
    }
}

/// The distance from the limit and the two largest reasons for it.
pub(super) fn reading(step: &Breakdown, ideal: bool) -> Remark {
    let [ideal_time, time] = [step.ideal_ms, step.step_ms].map(|ms| ms / 1e3);
    let id = if ideal { "at_the_limit" } else { "below_the_limit" };
    let said = says(id).with("of_limit", step.of_limit).with("ideal", ideal_time).with("step", time);
    let mut losses = step.losses.iter().filter(|_| !ideal);
    let said =
        losses.next().into_iter().fold(said, |s, loss| s.with("first", &loss.what).with("first_share", loss.share));
    losses.next().into_iter().fold(said, |s, loss| s.with("second", &loss.what).with("second_share", loss.share))
}
