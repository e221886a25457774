//! Estimates as text: numbers with their intervals, where the step goes, what would help.

use super::prelude::*;
use rackmath::estimate::{
    Answer, Breakdown, Brought, Change, Embedded, MachineCard, Piece, Pools, Problem, Range, Served, Slo, Solved,
    Speculated, sweep,
};
use rackmath::evidence::{Evidence, Grade};
use rackmath::simulate::{Percentiles, What};

pub(super) fn estimate(out: &mut Page, a: &Answer) {
    out.title(format!("{} on {}, {}", a.model, a.system, a.engine));
    let chosen = if a.layout_chosen { " (chosen)" } else { "" };
    let on = format!("{}{chosen}, {} chip{}; {}", a.layout, a.chips, plural(a.chips), words(&a.load));
    let answers = format!(", answers {} tokens", count(a.osl));
    let lengths = match &a.embedding {
        Some(_) => format!("texts {} tokens, a vector each", count(a.isl)),
        None => format!("prompts {}{answers}", count(a.isl)),
    };
    out.paragraph("", format!("{on}; {lengths}; weights {}, KV {}", words(&a.weights), words(&a.kv)));
    out.figures();
    if let Some(s) = &a.solved {
        solved(out, s);
    }
    if let Some(p) = &a.problem {
        problem(out, p);
    }
    if let Some(s) = &a.speculation {
        speculated(out, s);
    }
    if let Some(e) = &a.embedding {
        embedding(out, e, a.evidence.as_ref());
        out.working();
        evidence(out, a.evidence.as_ref());
        out.gap();
        breakdown(out, &e.step);
        out.gap();
        out.advice();
        out.paragraph("  ", &e.reading);
        out.gap();
    }
    if let Some(s) = &a.served {
        if a.solved.is_none() {
            served(out, a, s);
        }
        out.figures();
        numbers(out, s, a.evidence.as_ref(), waits_for(a));
        a.media.iter().for_each(|m| media(out, m));
        if let Some(o) = &a.offload {
            let label = if o.cards.is_empty() { "in host memory" } else { "cards" };
            out.wrapped(&format!("  {label:<22} "), &" ".repeat(25), &o.says);
        }
        if let Some(p) = &a.pools {
            pools(out, p);
        }
        a.loras.iter().for_each(|card| super::tuning::loras(out, card));
        out.working();
        if a.pools.is_none() {
            let (share, tokens) = (percent(s.prompt_share), three(s.prompt_tokens));
            out.field("prompts", format!("{share} of passes carry {tokens} tokens"));
        }
        evidence(out, a.evidence.as_ref());
        out.gap();
        breakdown(out, &s.step);
        out.gap();
        out.advice();
        out.paragraph("  ", &s.reading);
        out.paragraph("  ", format!("Bound by {}.", words(&s.binding)));
        out.gap();
    }
    if a.served.is_none() {
        a.loras.iter().for_each(|card| super::tuning::loras(out, card));
    }
    pretended(out, a.pretended.as_ref());
    out.advice();
    changes(out, &a.changes);
    out.assumes(&a.assumptions);
    out.sources(&a.sources);
}

/// What a user meets and what it costs.
fn served(out: &mut Page, a: &Answer, s: &Served) {
    let first = or(s.ttft_ms, "", |r| format!("the first token after {}, then ", ms(r.value)));
    let user = tok_s(s.output_tok_s_per_user.value);
    let all = format!("{} on {} chip{}", tok_s(s.output_tok_s.value), a.chips, plural(a.chips));
    let cost = s.usd_per_mtok_output.zip(s.usd_per_mtok_input);
    let cost = or(cost, "", |(out, prompts)| format!(", {} of output and {} of input", mtok(out), mtok(prompts)));
    let one = if first.is_empty() { "a token" } else { "one" };
    let meets = format!("{first}{one} every {} ({user})", ms(s.tpot_ms.value));
    let limits = s.slo.as_ref().map(|slo| (slo.met, words(&slo.verdict)));
    let said = format!("Each user gets {meets}; {all}{cost}");
    match limits {
        Some((met, verdict)) => out.judged(met, format!("{verdict}. {said}")),
        None => out.verdict(said),
    }
}

/// What was solved for, before what is met there.
fn solved(out: &mut Page, s: &Solved) {
    out.judged(s.value.is_some(), words(&s.verdict));
    if let Some(binds) = &s.binds {
        out.within(Kind::Advice, |out| out.paragraph("  ", format!("What binds: {}.", words(binds))));
    }
    out.within(Kind::Working, |out| {
        out.paragraph("  ", out.style.dim(&format!("({})", words(&s.how))));
        out.gap();
    });
    if s.machines.is_empty() {
        return;
    }
    let meets = |m: &MachineCard| if m.point.meets { "yes".into() } else { joined(&m.point.misses, ", ") };
    out.each(&s.machines).columns(&[
        ("machine", &|m| m.on.clone()),
        ("$/h", &|m| or_dash(m.usd_per_hour, usd)),
        ("layout", &|m| m.layout.clone()),
        ("TPOT", &|m| or_dash(m.point.tpot_ms, ms)),
        ("TTFT", &|m| or_dash(m.point.ttft_ms, ms)),
        ("meets the targets", &meets),
    ]);
    out.gap();
}

/// Says that what follows does not exist.
pub(super) fn pretended(out: &mut Page, said: Option<&Remark>) {
    if let Some(said) = said {
        out.judged(false, words(said));
    }
}

/// What guessing ahead does, the verdict first.
fn speculated(out: &mut Page, s: &Speculated) {
    out.judged(s.speedup > 1.0 && s.request_gain >= 1.0, words(&s.verdict));
    let before = out.turn(Kind::Advice);
    if let Some(why) = &s.why {
        out.paragraph("  ", format!("Why: {}.", words(why)));
    }
    let without = format!(
        "{} per token without drafts; {} of the requests per second",
        ms(s.tpot_without_ms),
        percent_of(s.throughput_gain)
    );
    let rate =
        or(s.throughput_loses_from, "", |c| format!(", fewer than without from {} in flight on", count(c as f64)));
    out.paragraph("  ", format!("{without}{rate}."));
    out.working();
    out.paragraph("  ", out.style.dim(&format!("Acceptance: {}.", words(&s.acceptance))));
    out.gap();
    out.turn(before);
}

/// A share that may be more than one.
fn percent_of(x: f64) -> String {
    format!("{} %", three(x * 100.0))
}

fn problem(out: &mut Page, p: &Problem) {
    out.judged(false, words(&p.what));
    if let Some(change) = &p.first_change {
        out.within(Kind::Advice, |out| out.paragraph("  ", format!("would do: {}", words(change))));
    }
}

/// The ends of an interval, where it has any width.
pub(super) fn ends(r: Range, show: impl Fn(f64) -> String) -> String {
    if r.low < r.high { format!("{} to {}", show(r.low), show(r.high)) } else { String::new() }
}

fn range(out: &mut Page, label: &str, r: Range, show: impl Fn(f64) -> String, more: &str) {
    let interval = ends(r, &show);
    let interval = if interval.is_empty() { interval } else { out.style.dim(&interval) };
    let line = format!("  {label:<22} {:<14} {interval}{more}", show(r.value));
    out.line(line.trim_end());
}

/// Above the numbers: how far they can be trusted.
fn trusted(out: &mut Page, known: Option<&Evidence>) {
    let off = known.and_then(|known| known.off);
    let off = or(off, "", |off| format!("; those are off by up to a factor of {}", three(off)));
    let grade = or(known, "", |known| format!(" ({}{off})", graded(Some(known))));
    let interval = out.style.dim(&format!("80 % interval{grade}"));
    out.more(format!("{:<14} {interval}", out.style.bold("mean")));
}

/// What requests that are not served at once wait for.
fn waits_for(a: &Answer) -> &'static str {
    let bound = a.served.as_ref().map(|s| &s.binding);
    if a.served.as_ref().is_some_and(|s| s.percentiles.is_some()) {
        "waiting to be scheduled"
    } else if bound.is_some_and(|b| b.with.contains_key("slots_hold")) {
        "waiting for an adapter's slot"
    } else if bound.is_some_and(|b| b.with.contains_key("engine_holds")) {
        "waiting for the sequence limit"
    } else {
        "waiting for memory"
    }
}

fn numbers(out: &mut Page, s: &Served, known: Option<&Evidence>, what: &str) {
    trusted(out, known);
    range(out, "time per output token", s.tpot_ms, ms, "");
    let waited = s.queue_ms.map(|r| r.value).filter(|queue| *queue > 0.0);
    let queue = or(waited, "", |queue| format!("; {} of it {what}", ms(queue)));
    if let Some(first) = s.ttft_ms {
        range(out, "time to first token", first, ms, &queue);
    }
    if let Some(whole) = s.e2e_ms {
        range(out, "whole request", whole, ms, "");
    }
    s.percentiles.iter().for_each(|p| percentiles(out, p));
    range(out, "throughput per chip", s.output_tok_s_per_chip, tok_s, "");
    range(out, "throughput", s.output_tok_s, tok_s, "");
    out.within(Kind::Working, |out| {
        range(out, "throughput per user", s.output_tok_s_per_user, tok_s, "");
        range(out, "requests per second", s.requests_per_s, three, "");
    });
    let cost = s.usd_per_mtok_output.zip(s.usd_per_mtok_input);
    out.maybe("cost", cost.map(|(output, input)| format!("{} output, {} input", mtok(output), mtok(input))));
    if let Some(slo) = &s.slo {
        goodput(out, slo);
    }
    let waiting = only(s.waiting > 0.0, format!(", {} wait", three(s.waiting)));
    let room = if s.room < 1e8 { count(s.room.floor()) } else { "any number".into() };
    out.field("sequences", format!("{} decode{waiting}; memory holds {room}", three(s.decoding)));
}

/// Pictures and sound: what they are in tokens, and what encoding them takes.
fn media(out: &mut Page, m: &Brought) {
    out.field("pictures and sound", words(&m.says));
    let size = format!("{} parameters", params(m.encoder_params));
    out.more(format!(
        "encoding takes {} of a request, by {size} ({} on a chip)",
        ms(m.encode_ms),
        bytes(m.encoder_bytes)
    ));
    if let Some(e) = &m.encoders {
        let chips = format!("{} chip{}", count(e.chips), plural(e.chips as u64));
        out.field(
            "encoder pool",
            format!("{chips}, {} busy; exact balance at {}", percent(e.busy), three(e.balanced_chips)),
        );
        let [wait, encode, send] = [e.wait_ms, m.encode_ms, e.send_ms].map(ms);
        out.more(format!("wait {wait}, encode {encode}, send in {send}"));
    }
}

fn embedding(out: &mut Page, e: &Embedded, known: Option<&Evidence>) {
    let rate = format!("{} texts a second, {}", three(e.requests_per_s.value), tok_s(e.input_tok_s.value));
    let cost = or(e.usd_per_mtok_input, "", |usd| format!(", {}", mtok(usd)));
    let after = or(e.latency_ms, "", |r| format!(", each after {}", ms(r.value)));
    out.verdict(format!("{rate}{cost}{after}"));
    out.figures();
    trusted(out, known);
    if let Some(latency) = e.latency_ms {
        range(out, "latency", latency, ms, "");
    }
    range(out, "requests per second", e.requests_per_s, three, "");
    range(out, "throughput", e.input_tok_s, tok_s, "");
    range(out, "throughput per chip", e.input_tok_s_per_chip, tok_s, "");
    out.maybe("cost", e.usd_per_mtok_input.map(|usd| format!("{} input", mtok(usd))));
    let first = e.percentiles.iter().flat_map(|p| &p.times).find(|t| t.metric == What::Ttft);
    if let Some(t) = first {
        let [p50, p90, p99] = [t.p50_ms, t.p90_ms, t.p99_ms].map(ms);
        out.field("text by text", format!("p50 {p50}, p90 {p90}, p99 {p99}"));
    }
    if let Some(slo) = &e.slo {
        goodput(out, slo);
    }
    out.field("passes", format!("{} texts in each, chips {} busy", three(e.together), percent(e.busy)));
}

/// Whether targets are met, and how many requests meet them.
fn goodput(out: &mut Page, slo: &Slo) {
    let good = format!("{} requests per second; {}", three(slo.goodput_requests_per_s), words(&slo.verdict));
    let good = if slo.met { out.style.good(&good) } else { out.style.bad(&good) };
    out.wrapped(&format!("  {:<22} ", "goodput"), &" ".repeat(25), good);
}

/// What an answer rests on, in a line; and a price that is too old.
pub(super) fn evidence(out: &mut Page, known: Option<&Evidence>) {
    let Some(known) = known else { return };
    let hang = " ".repeat(25);
    let said = words(&known.says);
    let said = if known.grade == Grade::NeverChecked { out.style.bad(&said) } else { said };
    out.wrapped(&format!("  {:<22} ", "evidence"), &hang, said);
    for part in known.parts.iter().filter(|part| part.says.with.contains_key("stale")) {
        out.wrapped(&format!("  {:<22} ", part.part), &hang, out.style.bad(&words(&part.says)));
    }
}

/// A grade in a word.
pub(super) fn graded(known: Option<&Evidence>) -> &'static str {
    match known.map(|known| known.grade) {
        Some(Grade::Measured) => "measured",
        Some(Grade::Transferred) => "carried over",
        Some(Grade::NeverChecked) => "never checked",
        None => "a bound",
    }
}

/// What users meet, a line for each kind of time.
pub(super) fn percentiles(out: &mut Page, p: &Percentiles) {
    for t in p.times.iter().filter(|t| t.metric != What::Queue) {
        let [p50, p90, p99] = [t.p50_ms, t.p90_ms, t.p99_ms].map(ms);
        let asked = t.percentile.zip(t.percentile_ms).filter(|(p, _)| ![50.0, 90.0, 99.0].contains(p));
        let asked = or(asked, "", |(p, time)| format!(", p{} {}", count(p), ms(time)));
        out.field(short(t.metric), format!("p50 {p50}, p90 {p90}, p99 {p99}{asked}"));
    }
}

/// A time in a word or two.
pub(super) fn short(metric: What) -> &'static str {
    match metric {
        What::Queue => "queue",
        What::Ttft => "first token",
        What::Tpot => "per token",
        What::Itl => "between tokens",
        What::E2e => "request",
    }
}

fn pools(out: &mut Page, p: &Pools) {
    let instances = format!("{} x {}", three(p.prefill_instances), p.prefill_layout);
    out.field("prefill pool", format!("{instances} on {} chips, {} decode", p.prefill_chips, p.decode_chips));
    let (busy, ratio) = (percent(p.prefill_busy), three(p.balanced_ratio));
    out.more(format!("{busy} busy; exact balance at {ratio} prefill chips for each that decodes"));
    let [wait, compute, send] = [p.prefill_wait_ms, p.prefill_ms, p.transfer_ms].map(ms);
    out.more(format!(
        "wait {wait}, compute {compute}, send {} in {send} ({})",
        bytes(p.transfer_bytes),
        words(&p.network)
    ));
}

pub(super) fn breakdown(out: &mut Page, b: &Breakdown) {
    let [step, decode, mixed] = [b.step_ms, b.decode_ms, b.mixed_ms].map(ms);
    let kinds = format!(": {decode} when all decode, {mixed} with prompt tokens");
    let kinds = only((b.mixed_ms - b.decode_ms).abs() > 1e-9, kinds);
    out.line(format!("{}{}", out.style.bold(&format!("mean step {step}")), out.style.dim(&kinds)));
    bars(out, &b.parts);
    out.note("limited by");
    bars(out, &b.limits);
    bars(out, &[Piece { what: "roofline of the step".into(), ms: b.ideal_ms, share: b.of_limit }]);
}

/// One line per piece: name, time, share, bar.
fn bars(out: &mut Page, pieces: &[Piece]) {
    // Eighths of a column, so that small shares show.
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let room = out.style.width.clamp(60, 140) - 46;
    for p in pieces {
        let eighths = (p.share.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
        let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
        let line =
            format!("  {:<22} {:>9} {:>6}  {}", words(&p.what), ms(p.ms), percent(p.share), out.style.tint(39, &bar));
        out.line(line.trim_end());
    }
}

fn changes(out: &mut Page, all: &[Change]) {
    let Some(first) = all.first() else { return };
    let by = out.style.dim(&format!("judged by {}", words(&first.judged_by)));
    out.over(format!("{} {by}", out.style.bold("what would help most")));
    for (i, c) in all.iter().enumerate() {
        let gain = or(c.gain, "served", signed);
        let gain = out.style.good(&format!("{gain:>7}"));
        out.wrapped(&format!("  {}. {gain}  ", i + 1), "              ", change(c));
    }
    out.gap();
}

fn change(c: &Change) -> String {
    let cost = c.usd_per_mtok_output.zip(c.usd_per_mtok_input);
    let cost = or(cost, "", |(out, prompts)| format!(", {} of output and {} of input", mtok(out), mtok(prompts)));
    let rescues = if c.rescues { "; meets what is missed today" } else { "" };
    let within =
        or(c.apart, "", |factor| format!("; within the error of the comparison, a factor of {}", three(factor)));
    let caution = or(c.caution.as_ref(), "", |c| format!("; needs {}", words(c)));
    let ([token, first], rate) = ([c.tpot_ms, c.ttft_ms].map(ms), tok_s(c.output_tok_s_per_chip));
    let speeds = format!("{token} per token, first after {first}, {rate} per chip");
    format!("{}: {speeds}{cost}{rescues}{within}{caution}", words(&c.what))
}

/// A gain with its sign: "+12%".
fn signed(gain: f64) -> String {
    format!("{}{:.0}%", if gain < 0.0 { "" } else { "+" }, gain * 100.0)
}

/// `rackmath estimate-sweep`
pub(super) fn sweep(out: &mut Page, a: &sweep::Answer) {
    if let Some(p) = &a.problem {
        problem(out, p);
    }
    if let Some(s) = &a.speculation {
        speculated(out, s);
    }
    if let (Some(first), Some(last)) = (a.rows.first(), a.rows.last()) {
        let cost = |usd: Option<f64>| or(usd, "", |usd| format!(" at {}", mtok(usd)));
        let end = |r: &sweep::Row| {
            let [user, chip] = [r.output_tok_s_per_user, r.output_tok_s_per_chip].map(tok_s);
            format!("{} in flight: {user} a user, {chip} a chip{}", count(r.concurrency), cost(r.usd_per_mtok_output))
        };
        out.verdict(format!("From {}, to {}", end(first), end(last)));
        out.title(&a.figure.title);
        out.figures();
        rows(out, a);
        out.pictures([&a.figure]);
    }
    out.assumes(&a.assumptions);
}

/// A line for each doubling.
fn rows(out: &mut Page, a: &sweep::Answer) {
    let mut next = 1.0;
    let mut rows = a.rows.clone();
    rows.retain(|r| {
        let shown = r.concurrency >= next;
        if shown {
            next = r.concurrency * 2.0 * 0.97;
        }
        shown
    });
    out.each(&rows).columns(&[
        ("concurrency", &|r| count(r.concurrency)),
        ("tok/s/user", &|r| three(r.output_tok_s_per_user)),
        ("tok/s/chip", &|r| three(r.output_tok_s_per_chip)),
        ("TPOT", &|r| ms(r.tpot_ms)),
        ("TTFT", &|r| ms(r.ttft_ms)),
        ("of the limit", &|r| percent(r.of_limit)),
        ("$/Mtok out", &|r| or_dash(r.usd_per_mtok_output, usd)),
        ("bound by", &|r| r.binding.clone()),
    ]);
}
