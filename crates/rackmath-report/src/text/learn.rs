//! The lecture's claims, practice, the station and reversible networks as text.

use super::prelude::*;
use rackmath::{lecture, practice, reversible, station};

pub(super) fn station(out: &mut Page, a: &station::Answer) {
    let r = &a.request;
    let (interval, rate) = (seconds(r.interval_s), three(r.rate_per_s));
    let (seats, tokens) = (count(r.seats as f64), count(r.tokens as f64));
    out.head(format!("A step every {interval}, {seats} seats, {rate} requests/s of {tokens} tokens"));
    let [first, p99] = [a.mean_first_token_s, a.p99_first_token_s].map(seconds);
    let most = format!("up to {} requests/s can be carried", three(a.sustainable_rate_per_s));
    let met = format!("stable: a first token after {first} in the mean, {p99} at p99; {most}");
    out.judged(a.stable, if a.stable { met } else { format!("the queue grows for ever: {most}") });
    out.figures();
    out.field("time to first token", format!("{first} mean, {p99} p99"));
    let [mean, worst] = [a.mean_with_seats_s, a.worst_with_seats_s].map(seconds);
    out.more(format!("with free seats: {mean} mean, {worst} at worst"));
    out.field("wait for a seat", format!("{} mean, {} at worst", seconds(a.mean_wait_s), seconds(a.worst_wait_s)));
    out.field("time per token", seconds(a.per_token_s));
    out.field("seats taken", format!("{} over {} steps", percent(a.fill), count(a.steps as f64)));
}

pub(super) fn lecture(out: &mut Page, a: &lecture::Answer) {
    if let [one] = a.claims.as_slice() {
        let first = one.numbers.iter().find(|n| n.lecture != "-");
        let both =
            or(first, "", |n| format!("; for {} the lecture says {}, here it is {}", n.inputs, n.lecture, n.ours));
        out.verdict(format!("{}: {}{both}", one.title, one.conclusion));
    } else {
        let numbers: usize = a.claims.iter().map(|c| c.numbers.len()).sum();
        out.verdict(format!("{} claims of the lecture, computed anew in {numbers} numbers", a.claims.len()));
    }
    out.dim(&a.source);
    if let many @ [_, _, ..] = a.claims.as_slice() {
        out.figures();
        out.each(many).columns(&[
            ("", &|c| c.id.clone()),
            ("claim", &|c| c.title.clone()),
            ("", &|c| c.conclusion.clone()),
        ]);
        out.within(Kind::Advice, |out| out.note("one of them with its numbers: rackmath lecture D1"));
        out.working();
    } else {
        out.figures();
    }
    for c in &a.claims {
        out.gap();
        let title = out.style.bold(&format!("{} {}", c.id, c.title));
        out.above(format!("{title}  {}", out.style.dim(&c.conclusion)));
        out.above(format!("  {}", c.formula));
        out.each(&c.numbers).columns(&[
            ("for", &|n| n.inputs.clone()),
            ("lecture", &|n| n.lecture.clone()),
            ("ours", &|n| n.ours.clone()),
            ("why", &|n| n.why.clone()),
        ]);
    }
}

/// `rackmath practice`: the cards, or the problems with what was answered and, where asked for, the working.
pub(super) fn practice(out: &mut Page, a: &practice::Answer, part: Part) {
    out.uncut();
    if part == Part::Cards {
        for (i, card) in a.cards.iter().enumerate() {
            out.wrapped(&format!("{:2}. ", i + 1), "    ", card.front);
            out.paragraph("    ", out.style.dim(&format!("{} ({}, {})", card.back, card.topic, card.claim)));
        }
        return;
    }
    let worked = part == Part::Worked;
    for (i, p) in a.problems.iter().enumerate() {
        out.wrapped(&format!("{:2}. ", i + 1), "    ", &p.question);
        out.line(format!("    {}", out.style.dim(&format!("answer in {}; {}, {}", p.unit, p.topic, p.claim))));
        if let Some(given) = p.given {
            let verdict = if p.right == Some(true) { "is right" } else { "is not right" };
            out.line(format!("    {}", out.style.bold(&format!("{} {verdict}", significant(given, 4)))));
        }
        if worked || p.given.is_some() {
            out.line(format!("    {}", p.equation));
            for line in &p.working {
                out.wrapped("    ", "      ", line);
            }
        }
        out.gap();
    }
    let seed = a.seed;
    out.line(match (a.answered, worked) {
        (0, false) => format!("check yours with --answers 250,2810,...; see the working with --worked; seed {seed}"),
        (0, true) => format!("seed {seed}"),
        (n, _) => format!("{} of {n} right", a.right),
    });
}

pub(super) fn reversible(out: &mut Page, a: &reversible::Answer, figure: &Figure) {
    let ratio = significant(a.slope_ratio * 100.0, 2);
    let exact = a.gradients.iter().filter(|g| g.exact).count();
    out.verdict(format!(
        "A reversible block keeps {ratio} % of the activations an ordinary one keeps; its gradients are the same bits in {exact} \
         of {} ways of storing them",
        a.gradients.len()
    ));
    out.title("Reversible networks, measured");
    out.dim(&a.network);
    out.figures();
    let depths = a.ways[0].peak_bytes.iter().map(|(d, _)| format!("{d} blocks"));
    let last = ["per block", "FLOP", "formula", "loss"].map(str::to_owned);
    let row = |w: &reversible::Way| {
        let peaks = w.peak_bytes.iter().map(|(_, b)| bytes(*b as f64));
        let slope = or_dash(Bytes::checked(w.slope_bytes_per_block), |b| b.to_string());
        let [flop, formula] = [w.flop_over_ordinary, w.formula].map(|x| format!("{}x", significant(x, 4)));
        let loss = format!("{:.2} to {:.2}", w.losses.0, w.losses.1);
        led(&w.way, peaks.chain([slope, flop, formula, loss]))
    };
    out.table(&led("peak activations", depths.chain(last)), a.ways.iter().map(row));
    let over = format!("loss over {} steps of learning to count", a.request.steps);
    out.note(format!("per block, reversible over ordinary: {ratio} %; {over}"));
    out.gap();
    for g in &a.gradients {
        let text = if g.exact { "the same bits".into() } else { format!("{:.1e} off, relative", g.distance) };
        out.field(&format!("gradients, {}", g.stored), text);
    }
    out.gap();
    let show = |x: f64| if x == 0.0 { "exact".to_owned() } else { format!("{x:.1e}") };
    out.each(&a.drift).columns(&[
        ("rebuilt after", &|d| format!("{} coupling{}", d.depth, plural(d.depth as u64))),
        ("f32", &|d| show(d.f32)),
        ("bf16", &|d| show(d.bf16)),
        ("fixed point", &|d| show(d.fixed)),
    ]);
    out.gap();
    let at = [0, 1, 2, 3, 4, 8, 16, 32, 64];
    let shares = a.avalanche.iter().map(|m| led(&m.mixer, at.map(|i| or_dash(m.share.get(i), |s| format!("{s:.3}")))));
    out.table(&led("one flip spreads to", at.map(|i| i.to_string())), shares);
    let (start, there, back) = a.feistel;
    out.gap();
    out.row("Feistel", format!("{start:?} -> {there:?} -> {back:?} through 16 rounds of squares and back"));
    out.gap();
    let tokens = grouped(a.request.tokens);
    out.above(format!("the formulas for {} with {tokens} tokens in flight", a.request.model));
    for f in &a.model {
        let forwards = significant(f.forwards, 1);
        out.field(&f.way, format!("{}, {forwards} forwards per step", bytes(f.activation_bytes)));
    }
    out.assumes(&a.assumptions);
    out.pictures([figure]);
}

pub(super) fn times(out: &mut Page, a: &reversible::Answer, times: &[f64]) {
    out.gap();
    out.dim("median time of a step on this machine, single core");
    for (w, t) in a.ways.iter().zip(times) {
        let [ratio, formula] = [t / times[0], w.formula].map(super::page::times);
        out.field(&w.way, format!("{}, {ratio} ordinary (formula {formula})", seconds(*t)));
    }
}
