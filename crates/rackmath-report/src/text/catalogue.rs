//! The catalogue as text: models, chips and machines, a table of many or one in full.

use super::prelude::*;
use rackmath::{chips, models, names, systems};
use rackmath_units::grouped_digits;

pub(super) fn models(out: &mut Page, a: &models::Answer) {
    if let [one] = a.models.as_slice() {
        return model(out, one, a.context);
    }
    out.uncut();
    out.each(&a.models).columns(&[
        ("model", &|m| m.id.clone()),
        ("total", &|m| params(m.total_params.parse().unwrap_or(0.0))),
        ("active", &|m| params(m.active_params)),
        ("weights", &|m| bytes(m.weights_bytes)),
        ("KV/token", &|m| bytes(m.kv_bytes_per_token)),
        ("attention", &|m| words(&m.attention)),
        ("ffn", &|m| words(&m.ffn)),
    ]);
}

fn model(out: &mut Page, m: &models::Card, context: f64) {
    let hf = or(m.hf.as_ref(), "", |hf| format!("  {hf}"));
    out.line(format!("{}{}", out.style.bold(&m.name), out.style.dim(&hf)));
    let [total, active] = [m.total_params.parse().unwrap_or(0.0), m.active_params].map(params);
    let active = only(active != total, format!(", {active} per token"));
    let (weights, kv) = (bytes(m.weights_bytes), BytesPerToken::new(m.kv_bytes_per_token));
    out.verdict(format!("{total} parameters{active}: {weights} of weights, {kv} of cache"));
    out.figures();
    out.field("parameters", format!("{} total", grouped_digits(&m.total_params)));
    let [active, multiplied, read] = [m.active_params, m.multiplied_params, m.read_params].map(params);
    out.more(format!("{active} per token with embeddings; {multiplied} multiplied, {read} read in a step"));
    if m.mtp_params != "0" {
        out.more(format!("{} more in multi-token-prediction layers", grouped_digits(&m.mtp_params)));
    }
    if let Some(p) = &m.published {
        let (kind, total) = (if p.exact { "exactly" } else { "about" }, grouped_digits(&p.total_params.to_string()));
        out.row("published", format!("{kind} {total} ({:+.2} %)", p.difference * 100.0));
        out.sources(&[format!("published: {}", p.source)]);
    }
    let architecture = m.architecture.as_deref().unwrap_or("totals only");
    let layers = or(m.layers, "", |n| format!(", {n} layers of width {}", m.hidden.unwrap_or(0)));
    out.field("architecture", format!("{architecture}{layers}"));
    out.row("attention", &m.attention);
    out.row("feed-forward", &m.ffn);
    out.field("weights", format!("{} in {}", bytes(m.weights_bytes), words(&m.formats)));
    out.field("KV cache", format!("{} in {}", BytesPerToken::new(m.kv_bytes_per_token), words(&m.kv_dtype)));
    let (at, stored, read) = (count(context), bytes(m.kv_stored_bytes), bytes(m.kv_read_bytes));
    out.more(format!("at context {at}: {stored} stored, {read} read per decoded token"));
    let [weights, attention] = [m.flop_per_token, m.attention_flop_per_token].map(FlopPerToken::new);
    out.field("arithmetic", format!("{weights} weights + {attention} attention at context {at}"));
    if let Some(longest) = m.context_max {
        out.row("longest context", count(longest as f64));
    }
    out.working();
    out.each(&m.parts).columns(&[
        ("part", &|p| p.part.clone()),
        ("total", &|p| params(p.total_params)),
        ("per token", &|p| params(p.active_params)),
        ("format", &|p| p.dtype.clone()),
    ]);
    out.gap();
    also_called(out, &m.aliases);
    out.sources(std::slice::from_ref(&m.source));
    out.list("notes", &m.notes);
}

fn also_called(out: &mut Page, aliases: &[String]) {
    if !aliases.is_empty() {
        out.list("also called", &[aliases.join(", ")]);
    }
}

/// The peak of a format, if it has one; fp16 stands in for bf16 where `or_fp16`.
fn peak<'a>(c: &'a chips::Card, math: &str, or_fp16: bool) -> Option<&'a chips::Peak> {
    let of = |math: &str| c.peaks.iter().find(|p| p.math == math);
    of(math).or_else(|| of("fp16").filter(|_| or_fp16 && math == "bf16"))
}

fn price<'a>(c: &'a chips::Card, basis: &str) -> Option<&'a chips::PriceCard> {
    c.prices.iter().find(|p| p.basis == basis)
}

pub(super) fn chips(out: &mut Page, a: &chips::Answer) {
    match a.chips.as_slice() {
        [one] => return chip(out, one),
        few if few.len() <= 6 => return side_by_side(out, few),
        _ => out.uncut(),
    }
    let wide = out.style.width >= 118;
    let speed =
        |c: &chips::Card, math| or_dash(peak(c, math, true), |p| flop_rate(p.flop_per_s).replace("FLOP/s", "F"));
    let ridge = |c: &chips::Card, math| or_dash(peak(c, math, true), |p| three(p.ridge));
    let contract = |c: &chips::Card| {
        let found = ["rental", "on-demand", "owner-neocloud"].iter().find_map(|b| price(c, b));
        or_dash(found, |p| three(p.usd_per_hour))
    };
    out.each(&a.chips).some(&[
        (true, ("chip", &|c| c.id.clone())),
        (true, ("memory", &|c| bytes(c.memory_bytes))),
        (true, ("bandwidth", &|c| byte_rate(c.bandwidth_bytes_per_s))),
        (true, ("drain", &|c| seconds(c.drain_s))),
        (true, ("bf16", &|c| speed(c, "bf16"))),
        (true, ("R", &|c| ridge(c, "bf16"))),
        (true, ("fp8", &|c| speed(c, "fp8"))),
        (true, ("R", &|c| ridge(c, "fp8"))),
        (true, ("fp4", &|c| speed(c, "fp4"))),
        (true, ("R", &|c| ridge(c, "fp4"))),
        (true, ("$/h", &contract)),
        (wide, ("scale-up", &|c| or_dash(c.scale_up_bytes_per_s, byte_rate))),
        (wide, ("domain", &|c| c.domain.to_string())),
    ]);
    out.note("memory as the driver reports it, drain the time to read it once; dense peaks; R = (F/2) w / W; $/h is a contract price where known; one chip's name shows its sources");
}

/// Few chips, one column each.
fn side_by_side(out: &mut Page, chips: &[chips::Card]) {
    out.uncut();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |label: &str, value: &dyn Fn(&chips::Card) -> Option<String>| {
        if chips.iter().any(|c| value(c).is_some()) {
            rows.push(led(label, chips.iter().map(|c| or_dash(value(c), |v| v))));
        }
    };
    row("memory", &|c| Some(format!("{} {}", bytes(c.memory_bytes), c.memory)));
    row("  as sold", &|c| Some(bytes(c.capacity_bytes)));
    row("bandwidth", &|c| Some(byte_rate(c.bandwidth_bytes_per_s)));
    row("drain time", &|c| Some(seconds(c.drain_s)));
    for math in ["bf16", "fp16", "fp8", "fp4", "int8"] {
        row(&format!("{math} dense"), &|c| peak(c, math, false).map(|p| flop_rate(p.flop_per_s)));
        row("  intensity", &|c| peak(c, math, false).map(|p| format!("{} FLOP/B", three(p.intensity))));
        row("  R", &|c| peak(c, math, false).map(|p| three(p.ridge)));
    }
    row("scale-up", &|c| c.scale_up_bytes_per_s.map(byte_rate));
    row("  domain", &|c| Some(crate::words::of_one(&format!("{} chips", c.domain)).into_owned()));
    row("scale-out", &|c| c.scale_out_bytes_per_s.map(byte_rate));
    row("power", &|c| c.tdp_w.map(watts));
    for basis in ["owner-hyperscaler", "owner-neocloud", "rental", "on-demand"] {
        row(basis, &|c| price(c, basis).map(|p| hourly(p.usd_per_hour)));
    }
    row("bytes per dollar", &|c| price(c, "rental").map(|p| bytes(c.bandwidth_bytes_per_s * 3600.0 / p.usd_per_hour)));
    out.table(&led("", chips.iter().map(|c| c.id.clone())), rows);
}

fn chip(out: &mut Page, c: &chips::Card) {
    let style = out.style;
    out.line(format!("{}  {}", style.bold(&c.name), style.dim(&format!("{}, {} die(s)", c.generation, c.dies))));
    let (memory, bandwidth) = (bytes(c.memory_bytes), byte_rate(c.bandwidth_bytes_per_s));
    let peak = or(peak(c, "bf16", true), "", |p| format!(", {} dense in {}", flop_rate(p.flop_per_s), p.math));
    out.verdict(format!("{memory} at {bandwidth}{peak}"));
    out.figures();
    let sold = bytes(c.capacity_bytes);
    let read = seconds(c.drain_s);
    out.field("memory", format!("{memory} {} (sold as {sold}) at {bandwidth}, read once in {read}", c.memory));
    for p in &c.peaks {
        let (rate, intensity, ridge) = (flop_rate(p.flop_per_s), three(p.intensity), three(p.ridge));
        out.field(&format!("{} dense", p.math), format!("{rate}, {intensity} FLOP/B, R = {ridge}"));
    }
    let up = or(c.scale_up_bytes_per_s, "none", |b| format!("{} one way, {} chips", byte_rate(b), c.domain));
    out.field("scale-up", format!("{up} ({})", c.link));
    let beta = or(c.beta, "", |b| format!(", {} slower", times(b)));
    out.maybe("scale-out", c.scale_out_bytes_per_s.map(|o| format!("{} one way{beta}", byte_rate(o))));
    out.maybe("power", c.tdp_w.map(watts));
    for p in &c.prices {
        let range = or(p.range_usd_per_hour, "", |(l, h)| format!(" ({l:.2} to {h:.2})"));
        out.field(&p.basis, format!("{}{range}, {}", hourly(p.usd_per_hour), p.as_of));
    }
    out.turn(Kind::Source);
    out.above(format!("every value and its source, checked {}", c.as_of));
    for f in &c.facts {
        let range = or(f.range.as_ref(), "", |(low, high)| format!(" [{low} to {high}]"));
        out.above(format!("  {:<26} {}{range}", words(&f.what), style.bold(&f.value)));
        let checked = or(f.checked.as_ref(), "", |c| format!("; agrees with {c}"));
        out.cited("      ", format!("{}{checked}", f.source));
        for (word, text) in [("note", &f.note), ("trap", &f.trap)] {
            if let Some(text) = text {
                out.wrapped(&format!("      {word}: "), "            ", text);
            }
        }
    }
    also_called(out, &c.aliases);
}

pub(super) fn systems(out: &mut Page, a: &systems::Answer) {
    out.uncut();
    // What a line has room for without breaking words, the rest where the terminal is wider.
    let (wide, usual) = (out.style.width >= 140, out.style.width >= 96);
    let link = |l: &systems::LevelCard| byte_rate(l.bandwidth_bytes_per_s);
    out.verdict(in_short(&a.systems));
    out.each(&a.systems).some(&[
        (true, ("system", &|s| s.id.clone())),
        (true, ("chips", &|s| format!("{} x {}", s.chips, s.chip))),
        (wide, ("dies", &|s| s.dies.to_string())),
        (true, ("memory", &|s| bytes(s.capacity_bytes))),
        (wide, ("bandwidth", &|s| byte_rate(s.bandwidth_bytes_per_s))),
        (usual, ("drain", &|s| seconds(s.drain_s))),
        (true, ("peak", &|s| format!("{} {}", flop_rate(s.peak_flop_per_s).replace("FLOP/s", "F"), s.peak_math))),
        (true, ("scale-up", &|s| or_dash(s.levels.first(), link))),
        (wide, ("by", &|s| or_dash(s.levels.first(), |l| l.topology.clone()))),
        (wide, ("scale-out", &|s| or_dash(s.levels.get(1), link))),
        (usual, ("power", &|s| or_dash(s.power_w, watts))),
    ]);
    if let [one] = a.systems.as_slice() {
        let [drain, all] = [seconds(one.drain_s), byte_rate(one.bandwidth_bytes_per_s)];
        out.field("memory", format!("read at {all}, once in {drain}; {} dies", one.dies));
        for l in &one.levels {
            let joined = format!("{} chips, {} {}, {}", l.chips, link(l), l.topology, l.source);
            out.wrapped(&format!("  {}: ", l.name), "    ", joined);
        }
        for (what, value, source) in &one.facts {
            out.wrapped(&format!("  {what}: "), "    ", format!("{value} ({source})"));
        }
    } else if !wide {
        let rest = "dense peaks of all chips; a machine by itself, or --width 140, shows bandwidth, dies, topology and scale-out";
        out.paragraph("  ", out.style.dim(rest));
    }
}

/// How many machines, and from which memory to which.
fn in_short(all: &[systems::Card]) -> String {
    let by = |a: &&systems::Card, b: &&systems::Card| a.capacity_bytes.total_cmp(&b.capacity_bytes);
    let said = |s: &systems::Card| format!("{} ({})", bytes(s.capacity_bytes), s.id);
    match (all, all.iter().min_by(by), all.iter().max_by(by)) {
        ([one], ..) => format!("{} x {}, {} of memory in all", one.chips, one.chip, bytes(one.capacity_bytes)),
        (_, Some(least), Some(most)) => {
            format!("{} machines, memory from {} to {}", all.len(), said(least), said(most))
        }
        _ => String::new(),
    }
}

pub(super) fn names(out: &mut Page, a: &names::Answer) {
    out.uncut();
    let ids = |all: &[names::Entry]| all.iter().map(|e| e.id.clone()).collect::<Vec<_>>();
    for (kind, all) in [
        ("models", &ids(&a.models)),
        ("systems", &ids(&a.systems)),
        ("chips", &ids(&a.chips)),
        ("prices", &ids(&a.prices)),
        ("engines", &a.engines),
        ("laws", &a.laws),
        ("runs", &a.runs),
        ("stacks", &a.stacks),
        ("tiers", &a.tiers),
        ("scenarios", &a.scenarios),
        ("vendors", &a.vendors),
        ("hosted", &a.hosted),
    ] {
        out.wrapped(&format!(" {kind:<10} "), "            ", all.join(" "));
    }
}
