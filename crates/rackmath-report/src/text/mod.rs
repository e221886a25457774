//! Answers as text.

mod cache;
mod cost;
mod deduce;
mod estimate;
mod lifecycle;
mod pipeline;
mod plan;
mod practice;
mod price;
mod racks;
mod trace;
mod train;
mod validate;

pub use cache::{cache, fastmode};
pub use cost::{cost, fleet};
pub use estimate::{estimate, estimate_sweep};
mod reversible;
mod runs;

pub use deduce::deduce;
pub use lifecycle::{lifecycle, scaling};
pub use pipeline::pipeline;
pub use plan::plan;
pub use practice::practice;
pub use price::price;
pub use racks::{layout_view, memory_view, racks, traffic_view};
pub use reversible::{reversible, reversible_times};
pub use runs::{forensics, goodput};
pub use trace::trace;
pub use train::{mfu, train};
pub use validate::validate;
mod compare;
mod hardware;
mod outlook;
mod sides;
mod whatif;

pub use compare::{compare, frontier};
pub use hardware::hardware;
pub use outlook::outlook;
pub use whatif::whatif;

use crate::reply::{Part, Picture, Show, picture};
use crate::style::Style;
use crate::terminal;
use comfy_table::{Row, Table};
use rackmath::ask::Reply;
use rackmath::figure::{Figure, count};
use rackmath::{Error, chips, curve, explain, lecture, models, names, station, step, systems, when};
use rackmath_units::{
    ByteRate, Bytes, BytesPerToken, DollarRate, DollarsPerToken, FlopPerToken, FlopRate, Fraction, Params, Seconds,
    TokenRate, Watts, grouped_digits, significant,
};
use std::fmt::{Display, Write as _};

/// An answer as a page of text.
pub fn page(reply: &Reply, show: Show<'_>, style: Style) -> Result<String, Error> {
    let figure = || match picture(reply, show)? {
        Picture::Figure(figure) => Ok(figure),
        Picture::Scene(_) => Err(Error::said("this picture has no points")),
    };
    Ok(match reply {
        Reply::Step(a) => step(a, style),
        Reply::Curve(a) => curve(a, style),
        Reply::Explain(a) => explain(a, style),
        Reply::Models(a) => models(a, style),
        Reply::Chips(a) => chips(a, style),
        Reply::Systems(a) => systems(a, style),
        Reply::Lecture(a) => lecture(a, style),
        Reply::Station(a) => station(a, style),
        Reply::Layout(a) => match show.part {
            Part::Memory => memory_view(a, style),
            Part::Traffic => traffic_view(a, style),
            _ => layout_view(a, style),
        },
        Reply::Pipeline(a) => pipeline(a, style),
        Reply::Racks(a) => racks(a, style),
        Reply::When(a) => when(a, style),
        Reply::Estimate(a) => estimate(a, style),
        Reply::EstimateSweep(a) => estimate_sweep(a, style),
        Reply::Validate(a) => validate(a, style),
        Reply::Price(a) => price(a, style),
        Reply::Cost(a) => cost(a, style),
        Reply::Fleet(a) => fleet(a, style),
        Reply::Cache(a) => cache(a, style),
        Reply::Fastmode(a) => fastmode(a, style),
        Reply::Scaling(a) => scaling(a, figure().ok(), style),
        Reply::Lifecycle(a) => lifecycle(a, style),
        Reply::Goodput(a) => goodput(a, figure()?, style),
        Reply::Forensics(a) => forensics(a, style),
        Reply::Reversible(a) => reversible(a, figure()?, style),
        Reply::Train(a) => train(a, style),
        Reply::Mfu(a) => mfu(a, style),
        Reply::Deduce(a) => deduce(a, style),
        Reply::Plan(a) => plan(a, style),
        Reply::Whatif(a) => whatif(a, style),
        Reply::Compare(a) => compare(a, figure()?, style),
        Reply::Frontier(a) => frontier(a, figure()?, style),
        Reply::Hardware(a) => hardware(a, style),
        Reply::Outlook(a) => outlook(a, style),
        Reply::Trace(a) => trace(a, style),
        Reply::Practice(a) => practice(a, show.part == Part::Cards, show.part == Part::Worked, style),
        Reply::Names(a) => names(a, style),
    })
}

/// A column of a table: its title, and what stands in it.
type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

/// A page in the making.
struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    fn text(self) -> String {
        self.text
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.text, "{text}");
    }

    fn gap(&mut self) {
        self.push("\n");
    }

    fn title(&mut self, text: impl Display) {
        self.line(self.style.bold(&text.to_string()));
    }

    /// A title and an empty line.
    fn head(&mut self, text: impl Display) {
        self.title(text);
        self.gap();
    }

    /// An empty line and a title.
    fn part(&mut self, text: impl Display) {
        self.gap();
        self.title(text);
    }

    /// A line in the background.
    fn note(&mut self, text: impl Display) {
        self.line(format!("  {}", self.style.dim(&text.to_string())));
    }

    /// A labelled value.
    fn row(&mut self, label: &str, value: impl Display) {
        self.line(format!("  {label:<22} {value}"));
    }

    /// A labelled value that matters.
    fn field(&mut self, label: &str, value: impl Display) {
        self.row(label, self.style.bold(&value.to_string()));
    }

    /// More about the row above.
    fn more(&mut self, value: impl Display) {
        self.row("", value);
    }

    fn wrapped(&mut self, first: &str, indent: &str, text: &str) {
        self.push(&self.style.wrapped(first, indent, text));
    }

    fn item(&mut self, text: impl AsRef<str>) {
        self.wrapped("  - ", "    ", text.as_ref());
    }

    fn list(&mut self, title: &str, items: &[String]) {
        self.line(self.style.dim(title));
        for item in items {
            self.item(item);
        }
    }

    fn table<R: Into<Row>>(&mut self, header: &[&str], rows: impl Iterator<Item = R>) {
        let mut table = self.style.table(header);
        table.add_rows(rows);
        self.finish(&table);
    }

    /// A table with a line for each thing, each column beside its title.
    fn columns<T>(&mut self, all: &[T], columns: &[Column<'_, T>]) {
        let header: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
        self.table(&header, all.iter().map(|one| columns.iter().map(|(_, cell)| cell(one)).collect::<Vec<_>>()));
    }

    fn finish(&mut self, table: &Table) {
        self.push(&self.style.finish(table));
    }

    fn draw(&mut self, figure: &Figure) {
        self.push(&terminal::draw(figure, self.style));
    }
}

fn seconds(s: f64) -> String {
    Seconds::s(s).to_string()
}

fn ms(x: f64) -> String {
    Seconds::ms(x).to_string()
}

fn bytes(x: f64) -> String {
    Bytes::b(x).to_string()
}

fn byte_rate(x: f64) -> String {
    ByteRate::b_per_s(x).to_string()
}

fn tok_s(x: f64) -> String {
    TokenRate::per_s(x).to_string()
}

fn mtok(x: f64) -> String {
    DollarsPerToken::per_mtok(x).to_string()
}

fn watts(x: f64) -> String {
    Watts::w(x).to_string()
}

/// Three digits.
fn three(x: f64) -> String {
    significant(x, 3)
}

/// A factor: "1.5x".
fn times(x: f64) -> String {
    format!("{}x", three(x))
}

fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

fn percent(share: f64) -> String {
    Fraction::checked(share).map_or_else(|| "more than 100%".into(), |f| f.to_string())
}

pub fn step(a: &step::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title(format!("{} on {}", a.model, a.system));
    let chosen = if a.batch_chosen { " (chosen: where compute meets memory, or what fits)" } else { "" };
    let pass = if a.pass > 1.0 { format!(", {} tokens each in this pass", count(a.pass)) } else { String::new() };
    out.line(format!("batch {}{chosen}, context {}{pass}\n", count(a.batch), count(a.context)));
    numbers(&mut out, a);
    out.gap();
    memory(&mut out, a);
    out.gap();
    out.list("assumes", &a.assumptions);
    out.list("sources", &a.sources);
    out.text()
}

fn numbers(out: &mut Page, a: &step::Answer) {
    out.field("step time", format!("{}, bound by {}", seconds(a.time_s), a.binding));
    out.more(format!(
        "multiply {}, read weights {}, read KV {}",
        seconds(a.compute_s),
        seconds(a.weights_s),
        seconds(a.kv_s)
    ));
    out.more(format!("between {} (perfect overlap) and {} (none)", seconds(a.lower_bound_s), seconds(a.upper_bound_s)));
    out.field("throughput", format!("{}, {} per user", tok_s(a.tokens_per_s), tok_s(a.tokens_per_s_user)));
    if let (Some(cost), Some(floor)) = (a.cost_usd_per_mtok, a.cost_floor_usd_per_mtok) {
        let (cost, floor) = (mtok(cost), mtok(floor));
        out.field("cost", format!("{cost} (floor {floor})"));
    }
    out.field("in use", format!("{} of the dense peak, {} of the bandwidth", percent(a.mfu), percent(a.mbu)));
    let floor =
        format!("{} for one sequence, {} to read every weight", seconds(a.latency_floor_s), seconds(a.all_weights_s));
    out.field("latency floor", floor);
    let balance = a
        .balance_batch
        .map_or("none: memory-bound at any batch".into(), |b| format!("{} sequences at this context", count(b)));
    out.field("balance batch", balance);
    let context = a
        .balanced_context
        .map_or("none: never memory-bound at a large batch".into(), |l| format!("{} tokens", count(l)));
    out.field("balanced context", context);
    let ridge = a.ridge.map_or(String::new(), |r| format!("R = {}, ", three(r)));
    out.field("ridge and sparsity", format!("{ridge}S = {}", three(a.sparsity)));
    if let Some(e) = &a.experts {
        let touched =
            format!("{} of {} touched per layer, {} tokens each", three(e.touched), e.routed, three(e.tokens_each));
        out.field("experts", touched);
    }
}

fn memory(out: &mut Page, a: &step::Answer) {
    let m = &a.memory;
    let total = format!("weights {} + KV {} of {}", bytes(m.weights_bytes), bytes(m.kv_bytes), bytes(m.capacity_bytes));
    let verdict = if m.fits {
        out.style.good("fits")
    } else {
        out.style.bad(&format!("does not fit: {} missing", bytes(m.missing_bytes)))
    };
    out.row("memory", format!("{verdict}: {total}"));
    if m.weights_bytes > m.capacity_bytes {
        out.more(format!("the weights alone need {} of these chips", m.chips_min));
    } else {
        let longest = m.context_max.map_or("any".into(), count);
        out.more(format!(
            "at most {} sequences of this context, or a context of {longest} at this batch",
            m.batch_max.map_or("any number of".into(), count)
        ));
    }
    out.more(format!(
        "{}; reading all of memory once takes {}",
        BytesPerToken::new(m.kv_bytes_per_token),
        seconds(m.drain_s)
    ));
}

/// A sweep.
pub fn curve(a: &curve::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    if a.over == curve::Over::Precision || a.rows.len() < 25 {
        rows(&mut out, a);
    } else {
        out.draw(&a.time);
        if let Some(cost) = &a.cost {
            out.gap();
            out.draw(cost);
        }
    }
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}

fn rows(out: &mut Page, a: &curve::Answer) {
    out.title(&a.time.title);
    out.columns(
        &a.rows,
        &[
            (a.over.as_ref(), &|r| r.label.clone().unwrap_or_else(|| count(r.x))),
            ("step", &|r| seconds(r.time_s)),
            ("multiply", &|r| seconds(r.compute_s)),
            ("weights", &|r| seconds(r.weights_s)),
            ("KV", &|r| seconds(r.kv_s)),
            ("$/Mtok", &|r| or_dash(r.cost_usd_per_mtok, |c| format!("${}", three(c)))),
            ("MFU", &|r| percent(r.mfu)),
            ("bound by", &|r| r.binding.clone()),
            ("fits", &|r| if r.fits { "yes".into() } else { "no".into() }),
        ],
    );
}

/// The headline: a step and its two curves.
pub fn headline(s: &step::Answer, c: &curve::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title(format!("{} on {}", s.model, s.system));
    out.line(format!(
        "{}\n",
        style.dim(&format!("context {} tokens; a lower bound from data sheets", count(s.context)))
    ));
    out.line(format!(
        "  No step is shorter than {} for one user, or {} once every weight is read.",
        style.bold(&seconds(s.latency_floor_s)),
        style.bold(&seconds(s.all_weights_s))
    ));
    let balance = s.balance_batch.map_or_else(
        || "  Memory binds at any batch: the cache takes longer to read than a token to compute.".into(),
        |b| format!("  Batches below {} are bound by memory, larger ones by arithmetic.", style.bold(&count(b))),
    );
    out.line(balance);
    if let (Some(cost), Some(floor)) = (s.cost_usd_per_mtok, s.cost_floor_usd_per_mtok) {
        let alone = c.rows.first().and_then(|r| r.cost_usd_per_mtok).unwrap_or(cost);
        out.line(format!(
            "  A token costs {} alone, {} at batch {}, and never less than {}.",
            style.bold(&mtok(alone)),
            style.bold(&mtok(cost)),
            count(s.batch),
            style.bold(&mtok(floor))
        ));
    }
    let balanced = s.balanced_context.map_or_else(
        || "  No context is too long for compute to keep up at a large batch.".into(),
        |l| format!("  Contexts beyond {} tokens leave arithmetic idle at any batch.", style.bold(&count(l))),
    );
    out.line(format!("{balanced}\n"));
    out.draw(&c.time);
    if let Some(cost) = &c.cost {
        out.gap();
        out.draw(cost);
    }
    out.line(format!(
        "\n{}",
        style.dim(
            "next: rackmath step llama-3.1-70b --on 8xh200 --batch 64    rackmath explain step    rackmath --help"
        )
    ));
    out.text()
}

/// Workings.
pub fn explain(a: &explain::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{} on {}", a.model, a.system));
    let mut cited: Vec<&str> = vec!["derived below", "the question"];
    for w in &a.workings {
        out.line(format!("{} {}", style.bold(&w.symbol), style.dim(&w.meaning)));
        out.line(format!("  = {}", w.equation));
        out.line(format!("  = {}", w.substituted));
        out.line(format!("  = {}", style.bold(&w.result)));
        for i in &w.inputs {
            out.line(format!("    {:<9} {:<18} {}", i.symbol, i.value, i.meaning));
            // A source is printed where it first appears.
            if !cited.contains(&i.source.as_str()) {
                cited.push(&i.source);
                out.push(
                    &style.dim(
                        style
                            .wrapped(
                                "                                 ",
                                "                                 ",
                                &i.source,
                            )
                            .trim_end(),
                    ),
                );
                out.gap();
            }
        }
        out.gap();
    }
    out.list("assumes", &a.assumptions);
    out.text()
}

/// Models: a table of many, or one in full.
pub fn models(a: &models::Answer, style: Style) -> String {
    match a.models.as_slice() {
        [one] => model(one, a.context, style),
        many => {
            let mut table = style.table(&["model", "total", "active", "weights", "KV/token", "attention", "ffn"]);
            for m in many {
                table.add_row([
                    m.id.clone(),
                    Params::new(m.total_params.parse().unwrap_or(0.0)).to_string(),
                    Params::new(m.active_params).to_string(),
                    bytes(m.weights_bytes),
                    bytes(m.kv_bytes_per_token),
                    m.attention.clone(),
                    m.ffn.clone(),
                ]);
            }
            style.finish(&table)
        }
    }
}

fn model(m: &models::Card, context: f64, style: Style) -> String {
    let mut out = Page::new(style);
    let hf = m.hf.as_ref().map_or(String::new(), |hf| format!("  {hf}"));
    out.line(format!("{}{}\n", style.bold(&m.name), style.dim(&hf)));
    out.field("parameters", format!("{} total", grouped_digits(&m.total_params)));
    out.more(format!(
        "{} per token with embeddings; {} multiplied, {} read in a step",
        Params::new(m.active_params),
        Params::new(m.multiplied_params),
        Params::new(m.read_params)
    ));
    if m.mtp_params != "0" {
        out.more(format!("{} more in multi-token-prediction layers", grouped_digits(&m.mtp_params)));
    }
    if let Some(p) = &m.published {
        let kind = if p.exact { "exactly" } else { "about" };
        let text = format!("{kind} {} ({:+.2} %)", grouped_digits(&p.total_params.to_string()), p.difference * 100.0);
        out.row("published", text);
        out.wrapped("                         ", "                         ", &p.source);
    }
    let architecture = m.architecture.as_deref().unwrap_or("totals only");
    let layers = m.layers.map_or(String::new(), |n| format!(", {n} layers of width {}", m.hidden.unwrap_or(0)));
    out.field("architecture", format!("{architecture}{layers}"));
    out.row("attention", &m.attention);
    out.row("feed-forward", &m.ffn);
    out.field("weights", format!("{} in {}", bytes(m.weights_bytes), m.formats));
    let kv = format!("{} in {}", BytesPerToken::new(m.kv_bytes_per_token), m.kv_dtype);
    out.field("KV cache", kv);
    out.more(format!(
        "at context {}: {} stored, {} read per decoded token",
        count(context),
        bytes(m.kv_stored_bytes),
        bytes(m.kv_read_bytes)
    ));
    let flop = format!(
        "{} weights + {} attention at context {}",
        FlopPerToken::new(m.flop_per_token),
        FlopPerToken::new(m.attention_flop_per_token),
        count(context)
    );
    out.field("arithmetic", flop);
    if let Some(longest) = m.context_max {
        out.row("longest context", count(longest as f64));
    }
    out.gap();
    out.columns(
        &m.parts,
        &[
            ("part", &|p| p.part.clone()),
            ("total", &|p| Params::new(p.total_params).to_string()),
            ("per token", &|p| Params::new(p.active_params).to_string()),
            ("format", &|p| p.dtype.clone()),
        ],
    );
    out.gap();
    if !m.aliases.is_empty() {
        out.list("also called", &[m.aliases.join(", ")]);
    }
    out.list("source", std::slice::from_ref(&m.source));
    if !m.notes.is_empty() {
        out.list("notes", &m.notes);
    }
    out.text()
}

/// Chips: a table of many, or one in full.
pub fn chips(a: &chips::Answer, style: Style) -> String {
    match a.chips.as_slice() {
        [one] => chip(one, style),
        few if few.len() <= 6 => side_by_side(few, style),
        many => {
            let wide = style.width >= 118;
            let mut header = vec!["chip", "memory", "bandwidth", "drain", "bf16", "R", "fp8", "R", "fp4", "R", "$/h"];
            if wide {
                header.extend(["scale-up", "domain"]);
            }
            let mut table = style.table(&header);
            for c in many {
                let mut row =
                    vec![c.id.clone(), bytes(c.capacity_bytes), byte_rate(c.bandwidth_bytes_per_s), seconds(c.drain_s)];
                for math in ["bf16", "fp8", "fp4"] {
                    let peak = c
                        .peaks
                        .iter()
                        .find(|p| p.math == math)
                        .or_else(|| (math == "bf16").then(|| c.peaks.iter().find(|p| p.math == "fp16")).flatten());
                    row.push(or_dash(peak, |p| FlopRate::flop_per_s(p.flop_per_s).to_string().replace("FLOP/s", "F")));
                    row.push(or_dash(peak, |p| three(p.ridge)));
                }
                let price = ["rental", "on-demand", "owner-neocloud"]
                    .iter()
                    .find_map(|b| c.prices.iter().find(|p| p.basis == *b));
                row.push(or_dash(price, |p| three(p.usd_per_hour)));
                if wide {
                    row.push(or_dash(c.scale_up_bytes_per_s, byte_rate));
                    row.push(c.domain.to_string());
                }
                table.add_row(row);
            }
            style.finish(&table) + &style.dim("  dense peaks; R = (F/2) w / W; $/h is a contract price where known; one chip's name shows its sources\n")
        }
    }
}

/// `rackmath when`
pub fn when(a: &when::Answer, style: Style) -> String {
    let (point, other) = match a.over {
        when::Over::Batch => ("a batch of", format!("context {}", count(a.fixed))),
        when::Over::Context => ("a context of", format!("batch {}", count(a.fixed))),
    };
    let mut out = Page::new(style);
    let verdict = match a.from {
        _ if a.regimes.is_empty() => "nothing fits: weights, or one sequence, are more than memory holds".into(),
        Some(from) => format!("{} binds from {point} {} on", bound(a.what), count(from)),
        None => format!("{} never binds, up to {point} {}", bound(a.what), count(a.most)),
    };
    out.head(verdict);
    out.field("decode steps of", format!("{} on {}, {}, {}; {other}", a.model, a.system, a.engine, a.layout));
    if !a.regimes.is_empty() {
        out.field("memory holds", format!("{point} {}", count(a.most)));
        out.gap();
        let mut table = style.table(&["what binds", "from", "to", "step there", "and there"]);
        for r in &a.regimes {
            let row =
                [bound(r.binds).into(), count(r.from), count(r.to), seconds(r.from_ms / 1e3), seconds(r.to_ms / 1e3)];
            table.add_row(row);
        }
        out.line(style.finish(&table).trim_end());
    }
    out.text()
}

fn bound(what: when::Bound) -> &'static str {
    match what {
        when::Bound::Arithmetic => "arithmetic",
        when::Bound::Memory => "memory bandwidth",
        when::Bound::Latency => "kernel latency",
        when::Bound::Links => "the bandwidth of links",
        when::Bound::Host => "the host",
    }
}

/// Few chips, one column each.
fn side_by_side(chips: &[chips::Card], style: Style) -> String {
    let names: Vec<&str> = std::iter::once("").chain(chips.iter().map(|c| c.id.as_str())).collect();
    let mut table = style.table(&names);
    let mut row = |label: String, value: &dyn Fn(&chips::Card) -> Option<String>| {
        if chips.iter().any(|c| value(c).is_some()) {
            let cells = chips.iter().map(|c| value(c).unwrap_or_else(|| "-".into()));
            table.add_row(std::iter::once(label).chain(cells).collect::<Vec<_>>());
        }
    };
    row("memory".into(), &|c| Some(format!("{} {}", bytes(c.capacity_bytes), c.memory)));
    row("bandwidth".into(), &|c| Some(byte_rate(c.bandwidth_bytes_per_s)));
    row("drain time".into(), &|c| Some(seconds(c.drain_s)));
    for math in ["bf16", "fp16", "fp8", "fp4", "int8"] {
        let peak = |c: &chips::Card| c.peaks.iter().find(|p| p.math == math).cloned();
        row(format!("{math} dense"), &|c| peak(c).map(|p| FlopRate::flop_per_s(p.flop_per_s).to_string()));
        row("  intensity".into(), &|c| peak(c).map(|p| format!("{} FLOP/B", three(p.intensity))));
        row("  R".into(), &|c| peak(c).map(|p| three(p.ridge)));
    }
    row("scale-up".into(), &|c| c.scale_up_bytes_per_s.map(byte_rate));
    row("  domain".into(), &|c| Some(format!("{} chips", c.domain)));
    row("scale-out".into(), &|c| c.scale_out_bytes_per_s.map(byte_rate));
    row("power".into(), &|c| c.tdp_w.map(watts));
    for basis in ["owner-hyperscaler", "owner-neocloud", "rental", "on-demand"] {
        let price = |c: &chips::Card| {
            c.prices.iter().find(|p| p.basis == basis).map(|p| DollarRate::per_hour(p.usd_per_hour).to_string())
        };
        row(basis.into(), &price);
    }
    row("bytes per dollar".into(), &|c| {
        let rent = c.prices.iter().find(|p| p.basis == "rental")?;
        Some(bytes(c.bandwidth_bytes_per_s * 3600.0 / rent.usd_per_hour))
    });
    style.finish(&table)
}

fn chip(c: &chips::Card, style: Style) -> String {
    let mut out = Page::new(style);
    out.line(format!("{}  {}\n", style.bold(&c.name), style.dim(&format!("{}, {} die(s)", c.generation, c.dies))));
    let memory = format!(
        "{} {} at {}, read once in {}",
        bytes(c.capacity_bytes),
        c.memory,
        byte_rate(c.bandwidth_bytes_per_s),
        seconds(c.drain_s)
    );
    out.field("memory", memory);
    for p in &c.peaks {
        let text =
            format!("{}, {} FLOP/B, R = {}", FlopRate::flop_per_s(p.flop_per_s), three(p.intensity), three(p.ridge));
        out.field(&format!("{} dense", p.math), text);
    }
    let up = c.scale_up_bytes_per_s.map_or("none".into(), |b| format!("{} one way, {} chips", byte_rate(b), c.domain));
    out.field("scale-up", format!("{} ({})", up, c.link));
    if let Some(o) = c.scale_out_bytes_per_s {
        let beta = c.beta.map_or(String::new(), |b| format!(", {}x slower", three(b)));
        out.field("scale-out", format!("{} one way{beta}", byte_rate(o)));
    }
    if let Some(w) = c.tdp_w {
        out.field("power", watts(w));
    }
    for p in &c.prices {
        let range = p.range_usd_per_hour.map_or(String::new(), |(l, h)| format!(" ({l:.2} to {h:.2})"));
        let text = format!("{}{range}, {}", DollarRate::per_hour(p.usd_per_hour), p.as_of);
        out.field(&p.basis, text);
    }
    out.line(format!("\n{}", style.dim(&format!("every value and its source, checked {}", c.as_of))));
    for f in &c.facts {
        let range = f.range.as_ref().map_or(String::new(), |r| format!(" [{r}]"));
        out.line(format!("  {:<26} {}{range}", f.what, style.bold(&f.value)));
        let checked = f.checked.as_ref().map_or(String::new(), |c| format!("; agrees with {c}"));
        out.wrapped("      ", "      ", &format!("{}{checked}", f.source));
        for (word, text) in [("note", &f.note), ("trap", &f.trap)] {
            if let Some(text) = text {
                out.wrapped(&format!("      {word}: "), "            ", text);
            }
        }
    }
    if !c.aliases.is_empty() {
        out.list("also called", &[c.aliases.join(", ")]);
    }
    out.text()
}

/// Machines.
pub fn systems(a: &systems::Answer, style: Style) -> String {
    let link = |s: &systems::Card, at: usize| {
        let topology = |l: &systems::LevelCard| if at == 0 { format!(" {}", l.topology) } else { String::new() };
        let words = |l: &systems::LevelCard| format!("{}{}", byte_rate(l.bandwidth_bytes_per_s), topology(l));
        s.levels.get(at).map_or("-".into(), words)
    };
    let mut out = Page::new(style);
    out.columns(
        &a.systems,
        &[
            ("system", &|s| s.id.clone()),
            ("chips", &|s| format!("{} x {}", s.chips, s.chip)),
            ("dies", &|s| s.dies.to_string()),
            ("memory", &|s| bytes(s.capacity_bytes)),
            ("bandwidth", &|s| byte_rate(s.bandwidth_bytes_per_s)),
            ("drain", &|s| seconds(s.drain_s)),
            ("peak", &|s| format!("{} {}", FlopRate::flop_per_s(s.peak_flop_per_s), s.peak_math)),
            ("scale-up", &|s| link(s, 0)),
            ("scale-out", &|s| link(s, 1)),
            ("power", &|s| or_dash(s.power_w, watts)),
        ],
    );
    if let [one] = a.systems.as_slice() {
        for l in &one.levels {
            out.wrapped(&format!("  {}: ", l.name), "    ", &format!("{} chips, {}", l.chips, l.source));
        }
        for (what, value, source) in &one.facts {
            out.wrapped(&format!("  {what}: "), "    ", &format!("{value} ({source})"));
        }
    }
    out.text()
}

pub fn names(a: &names::Answer, style: Style) -> String {
    let ids = |all: &[names::Entry]| all.iter().map(|e| e.id.clone()).collect::<Vec<_>>();
    let kinds = [
        ("models", ids(&a.models)),
        ("systems", ids(&a.systems)),
        ("chips", ids(&a.chips)),
        ("prices", ids(&a.prices)),
        ("engines", a.engines.clone()),
        ("laws", a.laws.clone()),
        ("runs", a.runs.clone()),
        ("stacks", a.stacks.clone()),
        ("tiers", a.tiers.clone()),
        ("scenarios", a.scenarios.clone()),
        ("vendors", a.vendors.clone()),
        ("hosted", a.hosted.clone()),
    ];
    kinds.iter().map(|(kind, all)| style.wrapped(&format!(" {kind:<10} "), &" ".repeat(12), &all.join(" "))).collect()
}

pub fn station(a: &station::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    let r = &a.request;
    let title = format!(
        "A step every {}, {} seats, {} requests/s of {} tokens",
        seconds(r.interval_s),
        count(r.seats as f64),
        three(r.rate_per_s),
        count(r.tokens as f64)
    );
    out.head(title);
    let verdict = if a.stable { style.good("stable") } else { style.bad("the queue grows for ever") };
    out.row("load", format!("{verdict}: up to {} requests/s can be carried", three(a.sustainable_rate_per_s)));
    out.field(
        "time to first token",
        format!("{} mean, {} p99", seconds(a.mean_first_token_s), seconds(a.p99_first_token_s)),
    );
    out.more(format!(
        "with free seats: {} mean, {} at worst",
        seconds(a.mean_with_seats_s),
        seconds(a.worst_with_seats_s)
    ));
    out.field("wait for a seat", format!("{} mean, {} at worst", seconds(a.mean_wait_s), seconds(a.worst_wait_s)));
    out.field("time per token", seconds(a.per_token_s));
    out.field("seats taken", format!("{} over {} steps", percent(a.fill), count(a.steps as f64)));
    out.text()
}

/// The lecture's claims.
pub fn lecture(a: &lecture::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.line(style.dim(&a.source));
    for c in &a.claims {
        out.line(format!("\n{}  {}", style.bold(&format!("{} {}", c.id, c.title)), style.dim(&c.conclusion)));
        out.line(format!("  {}", c.formula));
        out.columns(
            &c.numbers,
            &[
                ("for", &|n| n.inputs.clone()),
                ("lecture", &|n| n.lecture.clone()),
                ("ours", &|n| n.ours.clone()),
                ("why", &|n| n.why.clone()),
            ],
        );
    }
    out.text()
}
