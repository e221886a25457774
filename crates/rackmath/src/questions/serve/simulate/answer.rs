//! From what happened to what is said of it.

use super::Traffic;
use super::card::{
    Answer, Failed, Goodput, Happened, Held, Metric, OfClass, Part, Served, Step, Waited, Waits, What, Window,
};
use super::fleet::Kind;
use super::work::{Run, World, wanted};
use super::{flags, tiers};
use crate::desk::cut;
use crate::desk::prelude::*;
use rackmath_sim::tally::{Sample, Series as Values, Tally};

/// Percentiles of a table.
const PERCENTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Half width of a 95 % interval of the mean of batches, by Student's law; none of too few.
pub(super) fn half_width(samples: &[f64]) -> Option<f64> {
    // Quantiles of Student's law for 2 to 32 batches: 0.975, degrees of freedom one fewer. Source: NIST handbook 1.3.6.7.2.
    const T: [f64; 31] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 2.040,
    ];
    let all: Vec<f64> = samples.iter().copied().filter(|x| x.is_finite()).collect();
    if all.len() < 10 {
        return None;
    }
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let t = T[(all.len() - 2).min(T.len() - 1)];
    Some(t * (variance / n).sqrt())
}

/// Correlation of neighbouring batches: near zero where they are long enough.
fn neighbours(samples: &[f64]) -> f64 {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    let along: f64 = samples.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    if variance > 0.0 { along / variance } else { 0.0 }
}

fn metric(what: What, values: &mut Values, samples: &[(u64, Sample)], row: usize) -> Option<Metric> {
    let mean = values.mean()?;
    let found = values.percentiles(&PERCENTILES);
    let [p50, p90, p95, p99, p999] = [0, 1, 2, 3, 4].map(|i| found[i].unwrap_or(0.0) / 1e6);
    let width = |at: usize| {
        let batches: Vec<f64> = samples.iter().map(|(_, s)| s[row][at]).collect();
        // Times are whole nanoseconds, and so is what is known of them.
        Some(half_width(&batches)?.round() / 1e6)
    };
    Some(Metric {
        metric: what,
        mean_ms: mean / 1e6,
        p50_ms: p50,
        p90_ms: p90,
        p95_ms: p95,
        p99_ms: p99,
        p999_ms: p999,
        p50_plus_minus_ms: width(0),
        p90_plus_minus_ms: width(1),
        p99_plus_minus_ms: width(3),
    })
}

pub(super) fn answer(world: &World, mut run: Run) -> Answer {
    let (r, on) = (world.request, &world.main().ready.deployment);
    let tally = &mut run.tally;
    tally.samples.sort_by_key(|s| s.0);
    let samples = std::mem::take(&mut tally.samples);
    let span = tally.last_finish.saturating_sub(tally.first_arrival) as f64 / 1e9;
    let span = span.max(1e-9);
    let replicas = world.kinds.iter().filter(|k| !k.prompts).map(|k| k.replicas).sum();
    let chips = world.kinds.iter().map(Kind::chips).sum();
    let counted = tally.measured as f64;
    let arrived = arrived(world);
    let gaps = gaps(tally);
    let all = [
        metric(What::Queue, &mut tally.queue, &samples, 0),
        metric(What::Ttft, &mut tally.ttft, &samples, 1),
        metric(What::Tpot, &mut tally.tpot, &samples, 2),
        gaps,
        metric(What::E2e, &mut tally.e2e, &samples, 3),
    ];
    let metrics: Vec<Metric> = all.into_iter().flatten().collect();
    let unfinished = arrived.saturating_sub(tally.finished_all + tally.failed_all);
    let happened = happened(world, &run.incidents, tally.last_finish);
    let nodes = run.nodes as f64;
    let served = served(world, &run, span, chips);
    let warnings = warnings(world, run.tally.samples_of(&samples), unfinished, &run, &metrics);
    let tally = &mut run.tally;
    let any = world.keep.limits.any() || tally.classes.iter().any(|c| c.limits.any());
    let met = (tally.met, tally.measured, tally.failed);
    let all = [&mut tally.ttft, &mut tally.tpot, &mut tally.e2e];
    let grows = grown(&warnings);
    let goodput = any.then(|| goodput(wanted(r, None), all, met, span, grows));
    let said = verdict(&metrics, goodput.as_ref(), &warnings, (tally.failed, tally.measured + tally.failed));
    let mut assumptions = world.assumptions.clone();
    if world.kinds.iter().map(|k| k.replicas).sum::<u64>() > 1 {
        assumptions.push(says(if run.apart { "simulated_apart" } else { "simulated_coupled" }));
    }
    Answer {
        model: on.model.name.clone(),
        system: systems(world),
        engine: on.engine.name.clone(),
        layout: cut::words(&on.model, &on.layout),
        layout_chosen: world.main().layout_chosen,
        replicas,
        least_replicas: r.scaling.max_replicas.map(|_| r.fleet.replicas),
        prefill_replicas: r.fleet.prefill_replicas,
        router: r.fleet.router,
        chips,
        price_basis: basis(world),
        evidence: world.scale.card(&world.main().ready, false, Some(&world.main().price_source)),
        traffic: traffic(world),
        verdict: if said.says == "simulated_verdict_overload" {
            said.with("served", served.requests_per_s)
        } else {
            said
        },
        warnings,
        requests: tally.measured,
        warm_up: world.keep.warm,
        unfinished,
        span_s: span,
        metrics,
        classes: classes(world, tally, span, grows),
        happened,
        goodput,
        served,
        tiers: {
            let (kind, size) = (world.main(), world.main().settings.block());
            let bytes = tiers::block_bytes(r, &kind.ready, size);
            tiers::card(&kind.tiers, &run.tiers, (size, bytes), tally.last_finish as f64 / 1e9, nodes)
        },
        parts: parts(tally, counted),
        worst: tally.worst.iter().map(Waited::from).collect(),
        each: {
            tally.each.sort_by_key(|o| o.id);
            tally.each.iter().map(Waited::from).collect()
        },
        failed: {
            tally.failures.sort_by_key(|f| f.id);
            tally.failures.iter().map(Failed::from).collect()
        },
        figure: figure(tally),
        throughput: throughput(tally),
        compared: None,
        window: tally.window.take().map(|w| window(*w)),
        assumptions,
    }
}

/// What the replicas did in a time.
fn served(world: &World, run: &Run, span: f64, chips: u64) -> Served {
    let (tally, total, nodes) = (&run.tally, run.totals, run.nodes as f64);
    let peak = tally.moments.iter().map(|m| f64::from(m.used)).fold(0.0, f64::max);
    // Replicas that are off do no work and cost nothing.
    let on_share = run.incidents.on as f64 / (tally.last_finish.max(1) as f64 * nodes);
    let elapsed = tally.last_finish as f64 * nodes * on_share;
    let dollars = world.kinds.iter().map(|k| k.price.map(|p| p * k.chips() as f64)).sum::<Option<f64>>();
    let output = tally.tokens_out as f64 / span;
    let paid = if world.request.scaling.max_replicas.is_some() { on_share } else { 1.0 };
    Served {
        requests_per_s: tally.measured as f64 / span,
        output_tok_s: output,
        output_tok_s_per_chip: output / (chips as f64 * paid),
        busy: if elapsed > 0.0 { total.busy as f64 / elapsed } else { 0.0 },
        with_prompts: if total.busy > 0 { total.mixed as f64 / total.busy as f64 } else { 0.0 },
        steps: total.steps,
        cached: if tally.tokens_in > 0 { tally.tokens_cached as f64 / tally.tokens_in as f64 } else { 0.0 },
        dummy: world
            .kinds
            .iter()
            .any(|k| k.together.is_some())
            .then(|| total.dummy as f64 / ((total.busy + total.dummy) as f64).max(1.0)),
        preemptions: total.preemptions,
        recomputed_tokens: total.recomputed,
        cache_peak: peak / (run.usable as f64 / nodes),
        usd_per_mtok_output: dollars.filter(|_| output > 0.0).map(|d| d * on_share / output * 1e6),
    }
}

/// Requests that come.
fn arrived(world: &World) -> u64 {
    world.keep.warm + world.keep.requests
}

/// Where the time of `counted` requests goes.
fn parts(tally: &Tally, counted: f64) -> Vec<Part> {
    let whole: f64 = tally.parts.iter().map(|p| *p as f64).sum();
    let causes = [
        Waits::Queue,
        Waits::Prompt,
        Waits::Decode,
        Waits::OthersPrompts,
        Waits::Evicted,
        Waits::Transfer,
        Waits::Outside,
        Waits::Retried,
        Waits::Fetch,
    ];
    let parts = causes.into_iter().zip(tally.parts).filter(|(_, ns)| *ns > 0).map(|(what, ns)| Part {
        what,
        ms: ns as f64 / counted / 1e6,
        share: ns as f64 / whole,
    });
    parts.collect()
}

fn systems(world: &World) -> String {
    let mut names: Vec<&str> = world.kinds.iter().map(|k| k.ready.deployment.system.name.as_str()).collect();
    names.dedup();
    names.join(" + ")
}

fn happened(world: &World, i: &rackmath_sim::cluster::Incidents, end: u64) -> Option<Happened> {
    let (m, s) = (&world.request.mishaps, &world.request.scaling);
    let can = m.max_queued_requests.is_some() || m.timeout_s.is_some() || m.mtbf_s.is_some();
    (can || !m.script.is_empty() || s.max_replicas.is_some()).then(|| Happened {
        arrived: i.arrived,
        failed: i.failed,
        timed_out: i.timed_out,
        refused: i.refused,
        lost: i.lost,
        retried: i.retried,
        deaths: i.deaths,
        starts: i.starts,
        drains: i.drains,
        replicas_paid: i.on as f64 / end.max(1) as f64,
    })
}

/// Whether more arrives than is served.
pub(super) fn grown(warnings: &[Remark]) -> bool {
    warnings.iter().any(|w| w.says == "simulated_overload")
}

/// Requests that met all limits, and limits on percentiles: of first tokens, tokens and whole requests, where so many of
/// those measured met all and so many failed.
fn goodput(
    limits: [Option<AtMost>; 3],
    times: [&mut Values; 3],
    (met, measured, failed): (u64, u64, u64),
    span: f64,
    grown: bool,
) -> Goodput {
    let all = (measured + failed) as f64;
    let mut held = Vec::new();
    for ((limit, values), metric) in limits.into_iter().zip(times).zip([What::Ttft, What::Tpot, What::E2e]) {
        let Some((limit, percentile)) = limit.and_then(|l| Some((l.ms, l.percentile?))) else { continue };
        // Of those answered, the share that makes up the percentile of all.
        let share = percentile / 100.0 * all / (measured as f64).max(1.0);
        let ms = values.percentiles(&[share.min(1.0)])[0].filter(|_| share <= 1.0).map(|ns| ns / 1e6);
        let holds = !grown && ms.is_some_and(|ms| ms <= limit);
        held.push(Held { metric, percentile, limit_ms: limit, ms, holds });
    }
    let [ttft_ms, tpot_ms, e2e_ms] = limits.map(|l| l.map(|l| l.ms));
    Goodput { ttft_ms, tpot_ms, e2e_ms, share: met as f64 / all.max(1.0), requests_per_s: met as f64 / span, held }
}

/// Kinds of prices of the machines, each once; none where one has no price.
fn basis(world: &World) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for kind in &world.kinds {
        let word = kind.price_source.kind();
        if kind.price.is_none() {
            return Vec::new();
        }
        if !all.iter().any(|known| known == word) {
            all.push(word.into());
        }
    }
    all
}

fn classes(world: &World, tally: &mut Tally, span: f64, grown: bool) -> Vec<OfClass> {
    let given = world.request.classes.iter().zip(&mut tally.classes).enumerate();
    given
        .map(|(i, (c, t))| OfClass {
            name: if c.name.is_empty() { format!("class {}", i + 1) } else { c.name.clone() },
            requests: t.measured,
            failed: t.failed,
            requests_per_s: t.measured as f64 / span,
            output_tok_s: t.tokens_out as f64 / span,
            goodput: t.limits.any().then(|| {
                let times = [&mut t.ttft, &mut t.tpot, &mut t.e2e];
                goodput(wanted(world.request, Some(c)), times, (t.met, t.measured, t.failed), span, grown)
            }),
            metrics: [
                metric(What::Queue, &mut t.queue, &[], 0),
                metric(What::Ttft, &mut t.ttft, &[], 1),
                metric(What::Tpot, &mut t.tpot, &[], 2),
                metric(What::E2e, &mut t.e2e, &[], 3),
            ]
            .into_iter()
            .flatten()
            .collect(),
        })
        .collect()
}

fn window(mut w: rackmath_sim::tally::Window) -> Window {
    let seconds = |ns: u64| ns as f64 / 1e9;
    w.requests.sort_by_key(|o| o.id);
    w.steps.sort_by_key(|s| (s.start, s.replica));
    let steps = w.steps.iter().map(|s| Step {
        replica: s.replica,
        start_s: seconds(s.start),
        end_s: seconds(s.end),
        decodes: s.decodes,
        prompt_tokens: s.prompt,
    });
    Window {
        from_s: seconds(w.from),
        to_s: seconds(w.to),
        steps: steps.collect(),
        requests: w.requests.iter().map(Waited::from).collect(),
        left_out: w.left_out,
    }
}

fn gaps(tally: &Tally) -> Option<Metric> {
    let at = |p: f64| tally.gaps.percentile(p).map(|ns| ns / 1e6);
    Some(Metric {
        metric: What::Itl,
        mean_ms: tally.gaps.mean()? / 1e6,
        p50_ms: at(0.5)?,
        p90_ms: at(0.9)?,
        p95_ms: at(0.95)?,
        p99_ms: at(0.99)?,
        p999_ms: at(0.999)?,
        p50_plus_minus_ms: None,
        p90_plus_minus_ms: None,
        p99_plus_minus_ms: None,
    })
}

/// What users met; first of all who was not answered, where `failed` of so many were not.
fn verdict(metrics: &[Metric], goodput: Option<&Goodput>, warnings: &[Remark], (failed, all): (u64, u64)) -> Remark {
    if failed == 0 {
        return met(metrics, goodput, warnings);
    }
    let answered = (failed < all).then(|| met(metrics, goodput, warnings));
    let share = failed as f64 / all as f64;
    says("simulated_verdict_failed").with("share", share).with("failed", failed).with("all", all).with("met", answered)
}

fn met(metrics: &[Metric], goodput: Option<&Goodput>, warnings: &[Remark]) -> Remark {
    let of = |what: What| metrics.iter().find(|m| m.metric == what);
    let seconds = |what: What, pick: fn(&Metric) -> f64| of(what).map(|m| pick(m) / 1e3);
    let id = match goodput {
        _ if grown(warnings) => "simulated_verdict_overload",
        Some(_) => "simulated_verdict_goodput",
        None => "simulated_verdict",
    };
    says(id)
        .with("targets", goodput.and_then(targets))
        .with("share", goodput.map(|g| g.share))
        .with("rate", goodput.map(|g| g.requests_per_s))
        .with("ttft50", seconds(What::Ttft, |m| m.p50_ms))
        .with("ttft99", seconds(What::Ttft, |m| m.p99_ms))
        .with("tpot50", seconds(What::Tpot, |m| m.p50_ms))
        .with("tpot99", seconds(What::Tpot, |m| m.p99_ms))
        .with("e2e99", seconds(What::E2e, |m| m.p99_ms))
}

/// Limits on percentiles, and whether all hold.
fn targets(g: &Goodput) -> Option<Remark> {
    let name = |what: What| match what {
        What::Tpot => "tpot_name",
        What::E2e => "e2e_name",
        _ => "ttft_name",
    };
    let one = |h: &Held| {
        let said = says("target_of").with("percentile", h.percentile).with("what", says(name(h.metric)));
        let said = said.with("value", h.ms.map(|ms| ms / 1e3)).with("unknown", h.ms.is_none());
        said.with("limit", h.limit_ms / 1e3)
    };
    let all: Vec<Remark> = g.held.iter().map(one).collect();
    let id = if g.held.iter().all(|h| h.holds) { "simulated_limits_hold" } else { "simulated_limits_broken" };
    (!all.is_empty()).then(|| says(id).with("all", all))
}

/// Longest-lasting requests of the last third of a run, over those of the first, beyond which a queue grows.
const GROWS: f64 = 2.0;

/// Mean waits in the first and the last third of a run's batches where they grow; `e2e` is the mean time of a request.
/// They do where nearly every batch waits longer than the one before, or where every third does and most of the time is
/// waiting.
pub(super) fn grows(queues: &[f64], e2e: f64) -> Option<(f64, f64)> {
    let n = queues.len();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let (early, middle, late) = (mean(&queues[..n / 3]), mean(&queues[n / 3..n - n / 3]), mean(&queues[n - n / 3..]));
    let rising = queues.windows(2).filter(|w| w[1] > w[0]).count() as f64 / n.saturating_sub(1).max(1) as f64;
    let batches = rising > 0.75 && late > e2e / 10.0;
    let thirds = middle > 1.25 * early && late > 1.15 * middle && late > e2e / 2.0;
    (n >= 9 && late > early * GROWS && (batches || thirds)).then_some((early, late))
}

fn warnings(world: &World, queues: Vec<f64>, unfinished: u64, run: &Run, metrics: &[Metric]) -> Vec<Remark> {
    let mut all = world.warnings.clone();
    if run.cut {
        all.push(says("simulated_cut"));
    } else if unfinished > 0 {
        all.push(says("simulated_unfinished").with("requests", unfinished as f64));
    }
    let n = queues.len();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let open = world.played.is_none() && world.request.traffic.users.is_none();
    if open && n >= 9 {
        let e2e = metrics.iter().find(|m| m.metric == What::E2e).map_or(0.0, |m| m.mean_ms * 1e6);
        if let Some((early, late)) = grows(&queues, e2e) {
            all.push(says("simulated_overload").with("early", early / 1e9).with("late", late / 1e9));
        } else if neighbours(&queues) > 0.4 && mean(&queues) > e2e / 20.0 {
            all.push(says("simulated_short"));
        }
    }
    if run.shortened > 0 {
        let conversations = world.request.traffic.turns > 1 || world.request.classes.iter().any(|c| c.turns > 1);
        let said = says("simulated_shortened").with("requests", run.shortened as f64).with("turns", conversations);
        all.push(said.with("all", arrived(world) as f64).with("longest", f64::from(world.longest())));
    }
    if !flags::checked(&world.main().settings) {
        all.push(says("simulated_unchecked").with("engine", world.main().ready.deployment.engine.name.clone()));
    }
    if world.keep.requests < 1000 {
        all.push(says("simulated_few").with("requests", world.keep.requests as f64));
    }
    all
}

fn traffic(world: &World) -> Remark {
    let (r, requests) = (world.request, world.keep.requests + world.keep.warm);
    let t: &Traffic = &r.traffic;
    if r.replay.trace_text.is_some() {
        return says("simulated_trace")
            .with("name", r.replay.trace_name.clone())
            .with("requests", requests as f64)
            .with("speed", (r.replay.speed_up != 1.0).then_some(r.replay.speed_up));
    }
    if !r.classes.is_empty() {
        return says("simulated_classes")
            .with("classes", r.classes.len() as f64)
            .with("rate", r.classes.iter().map(|c| c.rate_per_s).sum::<f64>())
            .with("requests", requests as f64);
    }
    let said = match (t.users, t.spike) {
        (Some(users), _) => {
            says("simulated_users").with("users", users as f64).with("think", (t.think_s > 0.0).then_some(t.think_s))
        }
        (None, Some(times)) => {
            says("simulated_spikes").with("times", times).with("period", t.period_s).with("length", t.spike_length_s)
        }
        (None, None) if t.swing > 0.0 => says("simulated_swing").with("swing", t.swing).with("period", t.period_s),
        (None, None) if t.cv == 1.0 => says("simulated_poisson"),
        (None, None) => says("simulated_gamma").with("cv", t.cv),
    };
    let said = said
        .with("rate", t.rate_per_s.unwrap_or(1.0))
        .with("requests", requests as f64)
        .with("isl", t.isl)
        .with("osl", t.osl);
    let said = said
        .with("prefixes", (t.prefixes > 0).then_some(t.prefixes as f64))
        .with("prefix", (t.prefixes > 0).then_some(t.prefix_tokens));
    said.with("turns", (t.turns > 1).then_some(t.turns as f64)).with("seed", t.seed as f64)
}

fn over_time(tally: &Tally, value: impl Fn(&rackmath_sim::tally::Moment) -> f64) -> Vec<(f64, f64)> {
    let width = tally.width as f64 / 1e9;
    tally.moments.iter().enumerate().map(|(i, m)| (i as f64 * width, value(m))).collect()
}

fn figure(tally: &Tally) -> Figure {
    let series = [
        Series::new(
            says("simulated_running"),
            Role::Envelope,
            over_time(tally, |m| m.running as f64 / tally.width as f64),
        ),
        Series::new(says("simulated_waiting"), Role::Kv, over_time(tally, |m| m.waiting as f64 / tally.width as f64)),
    ];
    let axes = (Axis::linear("time", Unit::Seconds), Axis::linear("requests", Unit::Count));
    Figure::of(says("simulated_figure"), says("simulated_figure_sub"), axes, series)
}

fn throughput(tally: &Tally) -> Figure {
    let width = tally.width as f64 / 1e9;
    let points = over_time(tally, |m| m.tokens as f64 / width);
    let axes = (Axis::linear("time", Unit::Seconds), Axis::linear("output tokens per second", Unit::TokensPerS));
    Figure::of(
        says("simulated_tokens"),
        says("simulated_tokens_sub"),
        axes,
        [Series::new(says("simulated_output"), Role::Envelope, points)],
    )
}
