//! Placements as text: who holds what, what is sent where, and how domains compare.

use super::{Page, byte_rate, bytes, or_dash, seconds, three, times, watts};
use crate::style::Style;
use rackmath::figure::count;
use rackmath::layout::{Answer, StageCard};
use rackmath::racks;
use rackmath_units::{Flop, Params};

fn title(out: &mut Page, a: &Answer) {
    out.title(format!("{} on {}: {}", a.model, a.system, a.layout));
    let chosen = if a.layout_chosen { ", layout chosen (one scale-up domain, no pipeline)" } else { "" };
    let used = format!(
        "{} of {} chips{chosen}; batch {}, context {}",
        a.chips,
        a.chips_available,
        count(a.batch.floor()),
        count(a.context)
    );
    out.line(format!("{}\n", out.style.dim(&used)));
}

fn fit(out: &mut Page, a: &Answer) {
    let verdict = if a.fits { out.style.good(&a.verdict) } else { out.style.bad(&a.verdict) };
    out.row("memory", verdict);
    if let Some(change) = &a.first_change {
        out.row("first change that fits", out.style.bold(change));
    }
    if let Some(warning) = &a.warning {
        out.wrapped("  warning: ", "    ", warning);
    }
    out.field("largest batch", format!("{} sequences of this context", count(a.batch_max)));
    let longest = match (a.context_max, a.fits) {
        (Some(l), _) => format!("{} tokens at this batch", count(l)),
        (None, true) => "any, at this batch".into(),
        (None, false) => "none at this batch".into(),
    };
    out.field("longest context", longest);
}

/// A row of a per-chip table: what, and where it stands in a stage.
type Row = (&'static str, fn(&StageCard) -> f64);

const ROWS: [Row; 10] = [
    ("routed experts", |s| s.routed_bytes),
    ("shared experts", |s| s.shared_bytes),
    ("attention", |s| s.attention_bytes),
    ("dense networks", |s| s.dense_bytes),
    ("embedding, head", |s| s.embedding_bytes),
    ("routers, norms", |s| s.other_bytes),
    ("KV cache", |s| s.kv_bytes),
    ("activations", |s| s.activation_bytes),
    ("buffers", |s| s.buffer_bytes),
    ("reserve", |s| s.reserve_bytes),
];

/// Stages to show: all when few, else the first, the second and the last.
fn shown(stages: &[StageCard]) -> Vec<&StageCard> {
    match stages {
        few if few.len() <= 4 => few.iter().collect(),
        [first, second, .., last] => vec![first, second, last],
        _ => Vec::new(),
    }
}

fn per_chip(a: &Answer, style: Style) -> String {
    let stages = shown(&a.stages);
    let names: Vec<String> = stages
        .iter()
        .map(|s| {
            format!("stage {} (layers {}-{})", s.stage, s.first_layer, (s.first_layer + s.layers).saturating_sub(1))
        })
        .collect();
    let mut header = vec!["each chip of"];
    header.extend(names.iter().map(String::as_str));
    let mut table = style.table(&header);
    for (what, of) in ROWS {
        if stages.iter().any(|s| of(s) > 0.0) {
            let mut row = vec![what.to_owned()];
            row.extend(stages.iter().map(|s| bytes(of(s))));
            table.add_row(row);
        }
    }
    let mut total = vec![style.bold("total")];
    total
        .extend(stages.iter().map(|s| style.bold(&format!("{} of {}", bytes(s.total_bytes), bytes(a.capacity_bytes)))));
    table.add_row(total);
    let mut flop = vec!["FLOP per step".to_owned()];
    flop.extend(stages.iter().map(|s| Flop::flop(s.flop).to_string()));
    table.add_row(flop);
    let mut out = Page::new(style);
    out.finish(&table);
    if a.stages.len() > stages.len() {
        out.note(format!("{} stages in all", a.stages.len()));
    }
    out.text()
}

/// A bar of blocks per stage: what fills a chip.
fn bars(a: &Answer, style: Style) -> String {
    const LETTERS: [(char, u8); 10] = [
        ('E', 39),
        ('S', 45),
        ('A', 35),
        ('D', 29),
        ('V', 141),
        ('n', 245),
        ('K', 214),
        ('a', 203),
        ('b', 131),
        ('.', 240),
    ];
    let wide = style.width.clamp(60, 140) - 30;
    let mut out = Page::new(style);
    for s in shown(&a.stages) {
        let scale = a.capacity_bytes.max(s.total_bytes);
        let mut bar = String::new();
        let (mut drawn, mut sum) = (0usize, 0.0);
        for ((_, of), (letter, color)) in ROWS.iter().zip(LETTERS) {
            sum += of(s);
            let upto = (sum / scale * wide as f64).round() as usize;
            let n = upto.saturating_sub(drawn);
            bar.push_str(&style.tint(color, &letter.to_string().repeat(n)));
            drawn += n;
        }
        let end = if s.total_bytes > a.capacity_bytes { style.bad(" too much") } else { String::new() };
        out.line(format!("  stage {:<3} |{bar}{}|{end}", s.stage, " ".repeat(wide.saturating_sub(drawn))));
    }
    out.note("E experts  S shared  A attention  D dense  V vocabulary  n norms  K KV cache  a activations  b buffers  . reserve");
    out.text()
}

/// `rackmath memory`
pub fn memory_view(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    title(&mut out, a);
    fit(&mut out, a);
    out.gap();
    out.push(&per_chip(a, style));
    out.gap();
    out.push(&bars(a, style));
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}

fn experts(out: &mut Page, a: &Answer) {
    let Some(e) = &a.experts else { return };
    out.field(
        "experts",
        format!(
            "{} of {} per token; {} slots, {} on each chip, {} group(s)",
            e.top_k,
            e.experts,
            e.slots,
            three(e.slots_per_chip),
            e.groups
        ),
    );
    out.field("tokens per expert", three(e.tokens_per_expert));
    out.field("a token goes to", format!("{} chips", three(e.destinations)));
    out.field(
        "busiest chip",
        format!("{}x the mean from routing, {}x from chance", three(e.imbalance), three(e.fluctuation)),
    );
    if let Some(least) = e.least_width {
        let verdict = if e.width as f64 > least { "wider than" } else { "narrower than" };
        out.field(
            "expert width",
            format!(
                "{}, {verdict} the {} that keeps compute busy on the scale-up network",
                e.width,
                count(least.round())
            ),
        );
    }
    if e.slowdown > 1.0 {
        out.row("leaves the domain", out.style.bad(&format!("all-to-all {}x slower", three(e.slowdown))));
    }
    if let Some(rho) = e.up_to_out {
        out.field(
            "scale-up : scale-out",
            format!("{} if each stage were its own domain (1 or more is good)", three(rho)),
        );
    }
}

fn traffic(out: &mut Page, a: &Answer) {
    if a.traffic.is_empty() {
        return out.line("  no traffic: one chip, or copies that do not talk");
    }
    out.columns(
        &a.traffic,
        &[
            ("traffic of the busiest chip per step", &|t| t.what.clone()),
            ("network", &|t| t.network.clone()),
            ("bytes", &|t| bytes(t.bytes)),
            ("at full bandwidth", &|t| t.seconds.map_or("unknown".into(), seconds)),
            ("predicted", &|t| or_dash(t.predicted_s, seconds)),
        ],
    );
}

/// `rackmath layout`
pub fn layout_view(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    title(&mut out, a);
    fit(&mut out, a);
    experts(&mut out, a);
    out.gap();
    out.push(&per_chip(a, style));
    out.gap();
    out.push(&bars(a, style));
    out.gap();
    traffic(&mut out, a);
    out.gap();
    for c in &a.commands {
        let text = match (&c.flags, &c.cannot) {
            (Some(flags), _) if flags.is_empty() => "(no flags: one chip)".to_owned(),
            (Some(flags), _) => flags.clone(),
            (None, why) => style.dim(&format!("cannot: {}", why.as_deref().unwrap_or("unknown"))),
        };
        out.line(format!("  {:<9} {text}", c.tool));
    }
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}

/// `rackmath traffic`
pub fn traffic_view(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    title(&mut out, a);
    traffic(&mut out, a);
    out.gap();
    experts(&mut out, a);
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}

/// `rackmath racks`
pub fn racks(a: &racks::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{}: {} of weights in one scale-up domain", a.model, bytes(a.weights_bytes)));
    let domains = |n: f64| if n <= 1.0 { "1 domain".into() } else { format!("{} domains", count(n)) };
    out.columns(
        &a.racks,
        &[
            ("domain", &|r| r.system.clone()),
            ("packages", &|r| count(r.packages as f64)),
            ("dies", &|r| count(r.dies as f64)),
            ("memory", &|r| bytes(r.capacity_bytes)),
            ("bandwidth", &|r| byte_rate(r.bandwidth_bytes_per_s)),
            ("read weights", &|r| seconds(r.weights_s)),
            ("fits in", &|r| domains(r.domains_for_weights)),
            ("largest model", &|r| Params::new(r.largest_params).to_string()),
            ("up/out", &|r| or_dash(r.beta, times)),
            ("2 domains", &|r| or_dash(r.two_domain_slowdown, |s| format!("{} slower", times(s)))),
            ("power", &|r| or_dash(r.power_w, watts)),
        ],
    );
    let notes = [
        "read weights: the latency floor of a large batch; pipelining does not lower it, a larger domain does (D36)",
        "largest model: weights in half of the domain's memory, the other half for KV",
        "up/out: scale-up over scale-out bandwidth of a chip; 2 domains: slowdown of an expert layer spread over two (D20)",
    ];
    for note in notes {
        out.note(note);
    }
    out.text()
}
