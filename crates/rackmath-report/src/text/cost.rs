//! Cost of serving, fleets, cache lifetimes and fast modes as text.

use super::estimate::evidence;
use super::prelude::*;
use rackmath::cost::{Answer, BarCard};
use rackmath::serving::{Origin, RateCard, RatesCard};
use rackmath::{cache, fastmode, fleet};

/// A share that may be negative or above one.
fn signed_percent(x: f64) -> String {
    format!("{}{}%", if x < 0.0 { "-" } else { "" }, three(x.abs() * 100.0))
}

/// Both rates of a chip, and where they come from, with the intervals of predictions.
fn one_chip(out: &mut Page, (prefill, decode): (f64, f64), r: &RatesCard) {
    out.field("one chip", format!("{} prefill, {} decode", tok_s(prefill), tok_s(decode)));
    let one = |c: &RateCard| match c.source {
        Origin::Predicted => format!("predicted (80 % in {} - {})", count(c.tok_s.low), count(c.tok_s.high)),
        Origin::Board => "from the board times an efficiency".into(),
        Origin::Given => "as given".into(),
    };
    let (prefill, decode) = (one(&r.prefill), one(&r.decode));
    let same = prefill == decode;
    out.more(if same { format!("both {prefill}") } else { format!("prefill {prefill}, decode {decode}") });
    out.within(Kind::Working, |out| {
        evidence(out, r.decode.evidence.as_ref());
        out.gap();
    });
}

/// A limit that nothing keeps, beside the verdict that had to do without it.
pub(super) fn limit(out: &mut Page, r: &RatesCard) {
    r.decode.limit.iter().for_each(|said| out.further(said));
}

pub(super) fn cost(out: &mut Page, a: &Answer) {
    out.head(format!("{} on {}", a.model, a.system));
    let [output, input, cached] = [a.output_usd_per_mtok, a.input_usd_per_mtok, a.cached_usd_per_mtok].map(mtok);
    let hour = hourly(a.chip_usd_per_hour);
    let busy = only(a.utilisation < 1.0, format!(" that serves {} of the time", percent(a.utilisation)));
    let price = format!("utput costs {output}, input {input} ({cached} from the cache), at {hour} a chip{busy}");
    if let Some(why) = a.rates.nobody_serves() {
        out.judged(false, words(why));
        out.within(Kind::Verdict, |out| out.paragraph("", format!("By the board, o{price}.")));
    } else {
        out.verdict(format!("O{price}"));
        // What the price rests on where the model is not predicted.
        a.rates.because.iter().for_each(|why| out.caution(format!("{}.", words(why))));
        limit(out, &a.rates);
    }
    out.figures();
    // Whoever names a price asks for the margin.
    margins(out, a);
    out.field("chip-hour", hourly(a.chip_usd_per_hour));
    out.within(Kind::Working, |out| {
        out.wrapped("  price of a chip-hour   ", "                         ", &a.basis);
        out.gap();
    });
    if !a.hour_parts.is_empty() {
        let parts = a.hour_parts.iter().map(|(name, x)| format!("{name} {}", usd(*x)));
        out.more(parts.collect::<Vec<_>>().join(", "));
    }
    one_chip(out, (a.prefill_tok_s, a.decode_tok_s), &a.rates);
    out.more(format!("{} prefill chips for each decode chip", three(a.prefill_per_decode_chip)));
    out.gap();
    out.field("output", mtok(a.output_usd_per_mtok));
    out.field("input, computed", mtok(a.input_usd_per_mtok));
    out.field("input, cached", mtok(a.cached_usd_per_mtok));
    out.field("input, with hits", mtok(a.blended_input_usd_per_mtok));
    out.field("all tokens", mtok(a.all_usd_per_mtok));
    let [output, thousand, input] = [a.output_j_per_token, a.output_wh_per_ktok, a.input_j_per_token].map(three);
    out.field("energy", format!("{output} J an output token ({thousand} Wh a thousand), {input} J an input token"));
    out.maybe("carbon", a.output_g_per_mtok.map(|g| format!("{} g a million output tokens", three(g))));
    tornado(out, a);
    out.pictures([&a.figure]);
    out.assumes(&a.assumptions);
}

fn margins(out: &mut Page, a: &Answer) {
    if a.margins.is_empty() {
        return;
    }
    out.each(&a.margins).columns(&[
        ("price of", &|m| words(&m.what)),
        ("price", &|m| usd(m.price_usd_per_mtok)),
        ("cost", &|m| usd(m.cost_usd_per_mtok)),
        ("gross margin", &|m| signed_percent(m.gross_margin)),
        ("mark-up", &|m| times(m.markup)),
        ("profit on cost", &|m| signed_percent(m.cost_profit_margin)),
    ]);
    out.note("gross margin is a share of the price, profit on cost (\"cost profit margin\") a share of the cost");
    out.gap();
}

/// Bars on one scale, most important first.
fn tornado(out: &mut Page, a: &Answer) {
    out.advice();
    out.part("what matters: cost of all tokens, one assumption at a time");
    let low_end = |b: &BarCard| b.at_low_usd_per_mtok.min(b.at_high_usd_per_mtok);
    let high_end = |b: &BarCard| b.at_low_usd_per_mtok.max(b.at_high_usd_per_mtok);
    let low = a.tornado.iter().map(low_end).fold(a.all_usd_per_mtok, f64::min);
    let high = a.tornado.iter().map(high_end).fold(a.all_usd_per_mtok, f64::max);
    let room = out.style.width.clamp(80, 140) - 66;
    let column = |x: f64| if high > low { ((x - low) / (high - low) * (room - 1) as f64).round() as usize } else { 0 };
    let middle = column(a.all_usd_per_mtok);
    for b in &a.tornado {
        let (from, to) = (low_end(b), high_end(b));
        let inside = |i: usize| (column(from)..=column(to)).contains(&i);
        let bar = (0..room).map(|i| match i {
            _ if i == middle => '|',
            _ if inside(i) => '█',
            _ => ' ',
        });
        let bar = out.style.tint(39, &bar.collect::<String>());
        let end = |x: f64| if x != 0.0 && x < 0.001 { format!("{x:.1e}") } else { three(x) };
        let range = format!("{} to {}", end(b.low), end(b.high));
        out.line(format!("  {:<27} {range:<17} {bar} {} - {}", b.name, usd(from), usd(to)));
    }
}

pub(super) fn fleet(out: &mut Page, a: &fleet::Answer) {
    out.head(format!("{} on {}", a.model, a.system));
    let (chips, machines) = (count(a.chips as f64), count(a.machines as f64));
    let day = or(a.usd_per_day, "", |day| format!(", {} a day", Dollars::usd(day)));
    let pools = format!("{} for prompts, {} for answers", count(a.prefill.chips as f64), count(a.decode.chips as f64));
    let cost = or(a.usd_per_output_mtok, "", |c| format!(", {} of output", mtok(c)));
    let needs = or(a.needs.as_ref(), "", |needs| format!("; {}", words(needs)));
    let power = watts(a.power_w);
    let size = format!("{pools}{day}{cost}, {power}{needs}");
    if let Some(why) = a.rates.nobody_serves() {
        out.judged(false, words(why));
        let such = format!("At these rates it would take {chips} chips on {machines} machines: {size}.");
        out.within(Kind::Verdict, |out| out.paragraph("", such));
    } else {
        out.verdict(format!("{chips} chips on {machines} machines carry it: {size}"));
        limit(out, &a.rates);
    }
    out.figures();
    out.field("traffic", format!("{} in, {} out on average", tok_s(a.input_tok_s), tok_s(a.output_tok_s)));
    out.more(format!("{}; {} times the mean at the peak", words(&a.traffic), three(a.peak_over_mean)));
    one_chip(out, (a.rates.prefill.tok_s.value, a.rates.decode.tok_s.value), &a.rates);
    out.gap();
    out.each(&[("prefill", &a.prefill), ("decode", &a.decode)]).columns(&[
        ("pool", &|(name, _)| (*name).to_owned()),
        ("replicas", &|(_, p)| count(p.replicas as f64)),
        ("chips", &|(_, p)| count(p.chips as f64)),
        ("mean", &|(_, p)| tok_s(p.mean_tok_s)),
        ("peak", &|(_, p)| tok_s(p.peak_tok_s)),
        ("capacity", &|(_, p)| tok_s(p.capacity_tok_s)),
        ("headroom at peak", &|(_, p)| signed_percent(p.headroom)),
        ("in use", &|(_, p)| percent(p.utilisation)),
    ]);
    out.gap();
    out.field("fleet", format!("{chips} chips, {machines} machines of {}", a.system_chips));
    out.field("power", watts(a.power_w));
    out.maybe("to buy", a.capex_usd.map(|usd| Dollars::usd(usd).to_string()));
    let each = or(a.usd_per_output_mtok, "", |c| format!(", {} of output", mtok(c)));
    out.maybe("a day", a.usd_per_day.map(|day| format!("{}{each}", Dollars::usd(day))));
    let share = |x| format!("{} of the market's output, one in {}", signed_percent(x), three(1.0 / x));
    out.maybe("one machine writes", a.machine_share.map(share));
    out.pictures([&a.figure]);
    out.assumes(&a.assumptions);
}

pub(super) fn cache(out: &mut Page, a: &cache::Answer) {
    let each = BytesPerToken::new(a.kv_bytes_per_token);
    let place =
        |s: &cache::SegmentCard| or(s.to_s, &format!("then {}", s.id), |t| format!("{} up to {}", s.id, seconds(t)));
    let places: Vec<String> = a.envelope.iter().map(place).collect();
    out.verdict(format!("Cheapest by the time until its next use: {}", places.join(", ")));
    out.head(format!("{} on {}: {each} of cache", a.model, a.system));
    a.nobody_serves.iter().for_each(|why| out.caution(format!("{}.", words(why))));
    out.figures();
    out.each(&a.lines).columns(&[
        ("kept in", &|l| l.id.clone()),
        ("get back $/Mtok", &|l| or(l.retrieve_usd_per_mtok, "not known", usd)),
        ("keep $/Mtok-h", &|l| or(l.hold_usd_per_mtok_hour, "not known", usd)),
        ("drain time", &|l| or_dash(l.drain_s, seconds)),
        ("recompute is cheaper after", &|l| or_dash(l.recompute_cheaper_after_s, seconds)),
    ]);
    out.part("cheapest by time between two uses");
    for s in &a.envelope {
        let to = or(s.to_s, "on", |t| format!("to {}", seconds(t)));
        out.line(format!("  from {:<10} {to:<14} {}", seconds(s.from_s), out.style.bold(&s.id)));
    }
    out.working();
    out.part("what a published lifetime could mean, by drain time");
    for d in &a.durations {
        let all = d.candidates.iter().map(|c| {
            let (drain, ratio) = (seconds(c.drain_s), significant(c.ratio, 2));
            format!("{} ({drain}, {ratio}x)", c.id)
        });
        let all = all.collect::<Vec<_>>().join(", ");
        let line = format!("{all}; cheapest by cost: {}", d.cheapest);
        out.wrapped(&format!("  {:<8} ", seconds(d.duration_s)), "           ", line);
    }
    out.note("nearest first; a lifetime alone cannot name the tier");
    if let Some(r) = &a.reuse {
        out.within(Kind::Figures, |out| reuse(out, r));
    }
    out.pictures([&a.figure].into_iter().chain(&a.hit_figure));
    out.assumes(&a.assumptions);
    out.sources(&a.sources);
}

fn reuse(out: &mut Page, r: &cache::ReuseCard) {
    out.part(format!("reuse: {}", words(&r.source)));
    let gaps = or(r.median_gap_s.zip(r.p90_gap_s), "nothing comes back", |(m, p)| {
        format!("half of it within {}, nine tenths within {}", seconds(m), seconds(p))
    });
    out.field("wanted again", format!("{} of prompt tokens; {gaps}", percent(r.hit_rate_max)));
    let rates: Vec<String> = r.hit_rates.iter().map(|(t, h)| format!("{} {}", seconds(*t), percent(*h))).collect();
    out.wrapped("  hit rate by lifetime   ", "                         ", rates.join(", "));
    out.each(&r.best).columns(&[
        ("kept in", &|b| b.id.clone()),
        ("best lifetime", &|b| if b.ttl_s > 0.0 { seconds(b.ttl_s) } else { "do not keep".into() }),
        ("hit rate", &|b| percent(b.hit_rate)),
        ("$/Mtok of prompt", &|b| usd(b.usd_per_mtok)),
        ("saved", &|b| percent(1.0 - b.usd_per_mtok / r.no_cache_usd_per_mtok)),
    ]);
}

pub(super) fn fastmode(out: &mut Page, a: &fastmode::Answer) {
    out.head(format!("{}: {} the price for {} the speed", words(&a.of), times(a.price), times(a.speed)));
    let r = &a.reading;
    let batch = format!("a batch {} times smaller", three(r.batch_ratio));
    let limit = format!("no price buys more than {} the speed", times(r.speed_limit));
    out.verdict(format!("{} the price buys {} the speed by {batch}; {limit}", times(a.price), times(a.speed)));
    out.figures();
    out.title("if the batch is the only lever, and price follows cost");
    out.field("cache over weights", format!("x = {}", three(r.x)));
    out.field("fast batch", format!("{} times smaller", three(r.batch_ratio)));
    out.field("speed limit", format!("{}, however much is paid", times(r.speed_limit)));
    out.field("slow mode", format!("could save at most {}", percent(r.slow_saving)));
    out.advice();
    out.part("what would have to be true instead");
    let (chips, arrives) = (three(r.chips_instead), percent(r.scaling_instead));
    out.field("more chips", format!("{chips} times as many, of whose speed-up {arrives} arrives"));
    let [tokens, work] = [r.accepted_instead, r.work_instead].map(three);
    let paid = format!("the price would pay for {work} times the work of a step");
    out.field("better drafts", format!("{tokens} times the tokens per step; {paid}"));
    out.field("policy", "the multiple says nothing about the machine");
    out.pictures([&a.figure]);
    if !a.known.is_empty() {
        out.working();
        out.gap();
        out.each(&a.known).columns(&[
            ("sheet", &|k| k.sheet.clone()),
            ("mode", &|k| k.mode.clone()),
            ("price", &|k| times(k.price)),
            ("claimed speed", &|k| times(k.speed)),
            ("x", &|k| three(k.x)),
        ]);
        out.note("the same vendor's same speed at another price gives another x: at most one of them is cost");
    }
}
