//! From what the search found to the page.

use super::card::{Answer, Plan, Point, PoolPlan, Relaxation, Shadow};
use super::prepare::Prepared;
use super::searched::{Searched, moves};
use super::{Ask, Machine};
use super::{demand, offload, start};
use crate::estimate::Range;
use crate::estimate::breakdown::breakdown;
use crate::figure::{Axis, Figure, Mark, Role, Series, Unit, count};
use crate::layout;
use rackmath_theory::layout::domain;
use rackmath_theory::plan::{Bound, Configuration, Estimate, Near, Objective, Question, Ranked, Traffic};
use rackmath_theory::steady::{Load, Requests, Server, steady};
use rackmath_units::{DollarRate, DollarsPerToken, Seconds, TokenRate, Watts, float, significant};

pub(super) fn answer(ask: &Ask, p: &Prepared, searched: &Searched) -> Answer {
    let (q, found) = (&ask.question, &searched.found);
    let plans: Vec<Plan> = found.top.iter().map(|r| plan(ask, p, r, found.top.first())).collect();
    let relaxations = relaxations(ask, p, &searched.near);
    let verdict = verdict(ask, p, &plans, &relaxations);
    let frontier: Vec<Point> = found.frontier.iter().map(|r| point(ask, p, r)).collect();
    Answer {
        model: ask.model.name.clone(),
        systems: ask.machines.iter().map(|m| m.system.name.clone()).collect(),
        workload: workload(ask),
        objective: ask.objective.into(),
        limits: limits(q),
        configurations: p.space.len(),
        layouts: p.layouts,
        layouts_that_fit: p.deployments.len(),
        shadow_prices: found.top.first().map_or_else(Vec::new, |best| shadows(q, best, &searched.moved)),
        figure: figure(ask, &frontier, &plans),
        frontier,
        relaxations,
        verdict,
        plans,
        assumptions: assumptions(ask, p, true),
        because: super::because::because(ask, p, searched),
    }
}

/// Limits in words.
pub(super) fn limits(q: &Question) -> Vec<String> {
    Bound::ALL.iter().filter_map(|b| Some(limit_words(*b, q.limits.get(*b)?))).collect()
}

pub(super) fn workload(ask: &Ask) -> String {
    let r = &ask.requests;
    let traffic = match ask.question.traffic {
        Traffic::Rate(rate) => format!("{} requests per second", significant(rate, 3)),
        Traffic::Fill(chips) => format!("as many requests as {} chips serve", count(chips)),
        Traffic::One => "one replica".into(),
        Traffic::Within { chips, .. } => format!("as many requests as {} chips serve within the limits", count(chips)),
    };
    let hit = if r.cached > 0.0 {
        format!(", {} % of prompts cached", significant(r.cached * 100.0, 3))
    } else {
        String::new()
    };
    format!("{traffic}; prompts {}, answers {} tokens{hit}{}", count(r.input), count(r.output), offload::share(ask))
}

/// An amount as people say it.
pub(super) fn amount(bound: Bound, value: f64) -> String {
    match bound {
        Bound::Ttft | Bound::Tpot | Bound::E2e => Seconds::checked(value).map_or_else(String::new, |s| s.to_string()),
        Bound::Throughput => TokenRate::per_s(value).to_string(),
        Bound::Headroom => format!("{} %", significant(value * 100.0, 3)),
        Bound::UsdPerHour => DollarRate::checked(value / 3600.0).map_or_else(String::new, |d| d.to_string()),
        Bound::Watts => Watts::w(value).to_string(),
        Bound::Chips => count(value),
    }
}

pub(super) fn limit_words(bound: Bound, limit: f64) -> String {
    let side = if bound.at_least() { "at least" } else { "at most" };
    format!("{} {side} {}", bound.name(), amount(bound, limit))
}

fn machine<'a>(ask: &'a Ask, p: &Prepared, row: usize) -> &'a Machine {
    &ask.machines[p.kinds[p.kind_of[p.entries[row].deployment]].machine]
}

/// A deployment in a few words.
pub(super) fn words(ask: &Ask, p: &Prepared, c: &Configuration) -> String {
    let of = |row: usize| layout::words(&ask.model, &p.deployments[p.entries[row].deployment].deployment.layout);
    let entry = &p.entries[c.row];
    let kind = &p.kinds[p.kind_of[entry.deployment]];
    let mut all = match c.split {
        None => of(c.row),
        Some((prefill, ratio)) => {
            let (np, nd) = p.space.ratios[ratio];
            let row = p.space.prefills[prefill].row;
            // Where the chips are others, they are named.
            let (here, there) = (machine(ask, p, c.row), machine(ask, p, row));
            let on = if std::ptr::eq(here, there) { String::new() } else { format!(" on {}", there.system.chip.id) };
            format!("{np} x {} prefill{on} + {nd} x {} decode", of(row), of(c.row))
        }
    };
    if ask.engines.len() > 1 {
        all = format!("{}: {all}", kind.engine.id);
    }
    if ask.machines.len() > 1 {
        all = format!("{}: {all}", ask.machines[kind.machine].system.id);
    }
    if ask.formats.len() > 1 {
        all = format!("{all}, {}", kind.formats.linear);
    }
    if ask.kvs.len() > 1 {
        all = format!("{all}, KV {}", kind.kv);
    }
    if ask.chunks.len() > 1 && c.split.is_none() {
        all = format!("{all}, chunk {}", count(entry.chunk));
    }
    if ask.drafts.len() > 1 {
        all = format!("{all}, {} drafts", count(entry.drafts.0));
    }
    if offload::of(p, c).is_some() {
        all += ", KV offload";
    }
    all
}

/// Concurrency of a group at a level.
pub(super) fn concurrency(p: &Prepared, c: &Configuration) -> f64 {
    let entry = &p.entries[c.row];
    let d = &p.deployments[entry.deployment];
    p.levels[c.level].min(entry.room.min(d.deployment.engine.schedule.sequences * d.pass.stages()).floor())
}

pub(super) fn plan(ask: &Ask, p: &Prepared, r: &Ranked, best: Option<&Ranked>) -> Plan {
    let (c, e) = (p.space.configuration(r.index), &r.estimate);
    let entry = &p.entries[c.row];
    let d = &p.deployments[entry.deployment];
    let kind = &p.kinds[p.kind_of[entry.deployment]];
    let m = machine(ask, p, c.row);
    let s = &kind.engine.spread;
    let range = |value: f64, spread: f64| Range::of(value, spread * d.pass.wider());
    let per_group = concurrency(p, &c);
    let instances = c.split.map_or(1.0, |(_, ratio)| p.space.ratios[ratio].1);
    let (tpot_ms, ttft_ms) = (range(e.tpot * 1e3, s.tpot), range(e.ttft * 1e3, s.ttft));
    let is_best = best.is_some_and(|b| b.index == r.index);
    Plan {
        index: r.index,
        deployment: words(ask, p, &c),
        system: m.system.name.clone(),
        engine: kind.engine.name.clone(),
        layout: layout::words(&ask.model, &d.deployment.layout),
        prefill: c.split.map(|(prefill, ratio)| {
            let row = p.space.prefills[prefill].row;
            let other = &p.deployments[p.entries[row].deployment].deployment.layout;
            let (np, nd) = p.space.ratios[ratio];
            PoolPlan {
                system: machine(ask, p, row).system.name.clone(),
                layout: layout::words(&ask.model, other),
                instances: np as u64,
                decode_instances: nd as u64,
                chips: other.chips(),
                chunk: p.entries[row].chunk,
            }
        }),
        weights: kind.formats.linear.to_string(),
        kv: kind.kv.to_string(),
        chunk: entry.chunk,
        drafts: entry.drafts.0,
        concurrency_per_group: per_group,
        concurrency: per_group * d.deployment.layout.degrees().dp as f64 * instances * e.replicas,
        tpot_ms,
        ttft_ms,
        e2e_ms: ttft_ms.plus(tpot_ms.times((ask.requests.output - 1.0).max(0.0))),
        tok_s_per_user: tpot_ms.inverse().times(1e3),
        tok_s_per_chip: range(e.rate * ask.requests.output / e.unit_chips, s.throughput),
        throughput_tok_s: e.throughput,
        busy: e.throughput / (e.rate * e.replicas * ask.requests.output),
        replicas: e.replicas as u64,
        chips_per_replica: e.unit_chips as u64,
        chips: e.chips as u64,
        domains: domains(ask, p, &c, e),
        power_kw: e.watts / 1e3,
        joules_per_token: e.joules,
        usd_per_hour: e.usd_per_hour,
        usd_per_mtok: range(e.usd_per_mtok, s.throughput),
        headroom: e.headroom,
        bound_by: e.binding.name().into(),
        why: why(ask, p, r, best),
        step: is_best.then(|| step(ask, p, &c, per_group)),
        launch: launch(ask, p, &c, per_group),
        mean_traffic: demand::at_mean(ask, p, &c, e),
        by_length: if is_best { demand::by_length(ask, p, &c, e, per_group) } else { None },
        offload: offload::card(ask, p, &c),
        handover: if is_best { start::handover(ask, p, &c, e, per_group) } else { None },
    }
}

/// Scale-up domains that all replicas fill; those of two machines are not shared.
fn domains(ask: &Ask, p: &Prepared, c: &Configuration, e: &Estimate) -> u64 {
    let filled = |row: usize, chips: f64| (chips / domain(&machine(ask, p, row).system) as f64).ceil();
    let Some((prefill, ratio)) = c.split else { return filled(c.row, e.chips) as u64 };
    let other = p.space.prefills[prefill].row;
    if p.space.rows[c.row].machine == p.space.rows[other].machine {
        return filled(c.row, e.chips) as u64;
    }
    let prompts = p.space.ratios[ratio].0 * p.space.rows[other].chips * e.replicas;
    (filled(other, prompts) + filled(c.row, e.chips - prompts)) as u64
}

/// The mean step of the best plan, worked out again with all its parts.
pub(super) fn step(ask: &Ask, p: &Prepared, c: &Configuration, concurrency: f64) -> crate::estimate::Breakdown {
    let entry = &p.entries[c.row];
    let d = &p.deployments[entry.deployment];
    let engine = p.engine_of(c.row);
    let server = Server { pass: &d.pass, schedule: &engine.schedule, overhead: &engine.overhead, room: entry.room };
    let own = offload::requests(ask, entry.offload);
    let cached = if c.split.is_some() { 1.0 } else { own.cached };
    let requests = Requests { cached, drafts: entry.drafts.0, accepted: entry.drafts.1, ..own };
    breakdown(&steady(&server, &requests, Load::Closed { concurrency, clump: 1.0, burst: 0.0, convoy: false }))
}

fn launch(ask: &Ask, p: &Prepared, c: &Configuration, per_group: f64) -> Vec<String> {
    let Some((site, pools)) = start::site(ask, p, c, per_group, 1.0) else { return Vec::new() };
    match pools.as_slice() {
        [one] => vec![site.shown(one)],
        [prefill, decode] => {
            vec![format!("prefill: {}", site.shown(prefill)), format!("decode: {}", site.shown(decode))]
        }
        _ => Vec::new(),
    }
}

/// What the family of a plan could do without limits, and which limits forbid it.
fn why(ask: &Ask, p: &Prepared, r: &Ranked, best: Option<&Ranked>) -> String {
    let q = &ask.question;
    let score = |e: &Estimate| q.objective.score(e);
    let (first, last) = (p.space.first(r.family), p.space.first(r.family + 1));
    let free = (first..last)
        .filter_map(|i| p.space.estimate(i, q.output, q.traffic))
        .min_by(|a, b| score(a).total_cmp(&score(b)));
    let held = free.filter(|e| score(e) < score(&r.estimate)).map(|e| {
        let broken = q.limits.broken(&e);
        let names: Vec<&str> =
            Bound::ALL.into_iter().filter(|b| broken & (1 << *b as u8) != 0).map(Bound::name).collect();
        (names.join(" and "), score(&e))
    });
    let change = |now: f64, then: f64| significant(((now - then) / then).abs() * 100.0, 3);
    let Some(best) = best.filter(|b| b.index != r.index) else {
        return match held {
            Some((names, free)) => {
                format!(
                    "held by {names}: without it {} would be {} % better",
                    ask.objective,
                    change(free, score(&r.estimate))
                )
            }
            None => "no limit holds it back: its own best".into(),
        };
    };
    let (mine, theirs) = (score(&r.estimate), score(&best.estimate));
    let behind = if mine == theirs { "equal, but slower".into() } else { format!("{} % worse", change(mine, theirs)) };
    match held {
        Some((names, free)) if free < theirs => format!("{behind}; would be better but for {names}"),
        Some((names, _)) => format!("{behind}; also held by {names}"),
        None => format!("{behind} at its own best"),
    }
}

fn relaxations(ask: &Ask, p: &Prepared, near: &[Near]) -> Vec<Relaxation> {
    let q = &ask.question;
    let one = |n: &Near| {
        let asked = q.limits.get(n.bound)?;
        let needed = n.bound.amount(&n.ranked.estimate);
        Some(Relaxation {
            limit: n.bound.name().into(),
            asked: amount(n.bound, asked),
            needed: amount(n.bound, needed),
            factor: needed / asked,
            by: words(ask, p, &p.space.configuration(n.ranked.index)),
        })
    };
    near.iter().filter_map(one).collect()
}

fn verdict(ask: &Ask, p: &Prepared, plans: &[Plan], relaxations: &[Relaxation]) -> String {
    if let Some(best) = plans.first() {
        return format!(
            "{} replica{} of {} chip{}: {} of output, first token after {}, then {} a token",
            best.replicas,
            if best.replicas == 1 { "" } else { "s" },
            best.chips_per_replica,
            if best.chips_per_replica == 1 { "" } else { "s" },
            DollarsPerToken::per_mtok(best.usd_per_mtok.value),
            Seconds::ms(best.ttft_ms.value),
            Seconds::ms(best.tpot_ms.value)
        );
    }
    if p.deployments.is_empty() {
        return format!(
            "nothing fits: none of {} layouts has room for the weights and one request on at most {} chips",
            p.layouts,
            ask.machines.iter().map(|m| m.chips).max().unwrap_or(0)
        );
    }
    if relaxations.is_empty() {
        return "no deployment meets the limits, and moving a single one is not enough".into();
    }
    "no deployment meets all limits; each of these moves alone would be enough".into()
}

/// The best score with each limit, and the traffic, moved by a tenth.
fn shadows(q: &Question, best: &Ranked, moved: &[Option<Ranked>]) -> Vec<Shadow> {
    let now = q.objective.score(&best.estimate);
    let change = |r: &Option<Ranked>| r.map(|r| (q.objective.score(&r.estimate) - now) / now.abs());
    let one = |(m, best): (super::searched::Move, &[Option<Ranked>])| Shadow {
        limit: match m.bound {
            Some(bound) => limit_words(bound, m.asked),
            None => format!("{} requests per second", significant(m.asked, 3)),
        },
        tighter: best.first().and_then(change),
        looser: best.last().and_then(change),
    };
    moves(q).into_iter().zip(moved.chunks(2)).map(one).collect()
}

pub(super) fn point(ask: &Ask, p: &Prepared, r: &Ranked) -> Point {
    let (c, e) = (p.space.configuration(r.index), &r.estimate);
    let tokens = e.rate * ask.requests.output;
    Point {
        index: r.index,
        deployment: words(ask, p, &c),
        concurrency_per_group: concurrency(p, &c),
        tok_s_per_user: 1.0 / e.tpot,
        tok_s_per_chip: tokens / e.unit_chips,
        usd_per_mtok: e.unit_usd_s / tokens * 1e6,
        ttft_ms: e.ttft * 1e3,
        tpot_ms: e.tpot * 1e3,
        chips_per_replica: e.unit_chips as u64,
    }
}

fn figure(ask: &Ask, frontier: &[Point], plans: &[Plan]) -> Figure {
    let points = frontier.iter().rev().map(|p| (p.tok_s_per_user, p.tok_s_per_chip));
    let mark = |p: &Plan| Mark { x: p.tok_s_per_user.value, y: p.tok_s_per_chip.value, label: "recommended".into() };
    let names: Vec<&str> = ask.machines.iter().map(|m| m.system.name.as_str()).collect();
    Figure {
        title: format!("What users and chips get: {} on {}", ask.model.name, names.join(", ")),
        subtitle: workload(ask),
        x: Axis::log("output tokens per second of one user", Unit::TokensPerS),
        y: Axis::log("output tokens per second and chip", Unit::TokensPerS),
        series: vec![Series::new("frontier", Role::Envelope, points)]
            .into_iter()
            .filter(|s| s.points.len() > 1)
            .collect(),
        marks: plans.first().map(mark).into_iter().collect(),
    }
}

/// What the answer assumes; prices and power of the machines are left out where they stand elsewhere.
pub(super) fn assumptions(ask: &Ask, p: &Prepared, machines: bool) -> Vec<String> {
    let mut all: Vec<String> = vec![
        "means in steady state, every replica at its level of concurrency: not valid for percentiles or bursts".into(),
        "all dollars are charged to output tokens, prompts included; replicas are whole and paid whole".into(),
        format!(
            "degrees are {}, pipelines at most 8 deep; prompts' chips are busy at most 95 % of the time",
            if ask.degrees == super::layouts::Steps::Any { "whole numbers" } else { "powers of two" }
        ),
    ];
    if !ask.cuts.is_empty() {
        let sizes: Vec<String> = ask.cuts.iter().map(u64::to_string).collect();
        all.push(format!(
            "decode context parallel {} tried with vLLM where a group would keep copies of its cache; never with prompts on chips of their own",
            sizes.join(", ")
        ));
    }
    let offers: Vec<String> = ask.machines.iter().map(|m| format!("{} of {}", m.chips, m.system.chip.id)).collect();
    if ask.machines.iter().any(|m| m.chips != ask.machines[0].chips || m.prompts_only) {
        all.push(format!("chips on offer: {}; the limit counts the machine most used up", offers.join(", ")));
    }
    if ask.split {
        all.push("a prompt's cache is sent when the prompt is done".into());
    }
    all.extend(offload::words(ask));
    all.extend(ask.workload.notes.iter().cloned());
    for m in ask.machines.iter().filter(|_| machines) {
        all.push(format!(
            "price on {}: {} per chip, {}",
            m.system.name,
            DollarRate::usd_per_s(m.usd_s),
            m.price_source
        ));
        if m.watts > 0.0 {
            let with = if m.system.chip.power.all_in.is_some() {
                "with its share of host and cooling"
            } else {
                "thermal design power"
            };
            all.push(format!("{} per chip, {with}", Watts::w(m.watts)));
        }
    }
    for d in &p.deployments {
        for note in d.pass.assumed() {
            if !all.contains(note) && all.len() < 16 {
                all.push(note.clone());
            }
        }
    }
    if let Some(engine) = ask.engines.first().filter(|e| !e.ideal && ask.question.objective != Objective::Chips) {
        all.push(format!(
            "intervals hold 80 % of measurements: times per token within a factor {}, first tokens {}, throughput {}",
            significant(float::exp(engine.spread.tpot), 3),
            significant(float::exp(engine.spread.ttft), 3),
            significant(float::exp(engine.spread.throughput), 3)
        ));
    }
    if let Some(s) = &ask.scenario {
        all.push(format!("workload {}: {} ({}, {})", s.id, s.about, s.source, s.as_of));
    }
    all.extend(ask.model.notes.iter().cloned());
    all
}
