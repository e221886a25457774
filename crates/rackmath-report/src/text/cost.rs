//! Cost of serving and fleets as text.

use super::{Page, mtok, percent, three, times, tok_s, watts};
use crate::style::Style;
use rackmath::cost::{Answer, BarCard};
use rackmath::figure::count;
use rackmath::fleet::{self, PoolCard};
use rackmath::serving::{RateCard, RatesCard};
use rackmath_units::{DollarRate, Dollars};

/// A share that may be negative or above one.
fn signed_percent(x: f64) -> String {
    let sign = if x < 0.0 { "-" } else { "" };
    format!("{sign}{}%", three(x.abs() * 100.0))
}

/// Where both rates come from, with the intervals of predictions.
fn rate_words(r: &RatesCard) -> String {
    let one = |c: &RateCard| match c.source.as_str() {
        "predicted" => format!("predicted (80 % in {} - {})", count(c.tok_s.low), count(c.tok_s.high)),
        "board" => "from the board times an efficiency".into(),
        _ => "as given".into(),
    };
    let (prefill, decode) = (one(&r.prefill), one(&r.decode));
    if prefill == decode { format!("both {prefill}") } else { format!("prefill {prefill}, decode {decode}") }
}

/// `rackmath cost`
pub fn cost(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{} on {}", a.model, a.system));
    out.field("chip-hour", DollarRate::per_hour(a.chip_usd_per_hour));
    out.wrapped("                         ", "                         ", &a.basis);
    if !a.hour_parts.is_empty() {
        let parts: Vec<String> = a.hour_parts.iter().map(|(name, usd)| format!("{name} ${}", three(*usd))).collect();
        out.more(parts.join(", "));
    }
    let rates = format!("{} prefill, {} decode", tok_s(a.prefill_tok_s), tok_s(a.decode_tok_s));
    out.field("one chip", rates);
    out.more(rate_words(&a.rates));
    out.more(format!("{} prefill chips for each decode chip", three(a.prefill_per_decode_chip)));
    out.gap();
    out.field("output", mtok(a.output_usd_per_mtok));
    out.field("input, computed", mtok(a.input_usd_per_mtok));
    out.field("input, cached", mtok(a.cached_usd_per_mtok));
    out.field("input, with hits", mtok(a.blended_input_usd_per_mtok));
    out.field("all tokens", mtok(a.all_usd_per_mtok));
    let energy = format!(
        "{} J an output token ({} Wh a thousand), {} J an input token",
        three(a.output_j_per_token),
        three(a.output_wh_per_ktok),
        three(a.input_j_per_token)
    );
    out.field("energy", energy);
    if let Some(g) = a.output_g_per_mtok {
        out.field("carbon", format!("{} g a million output tokens", three(g)));
    }
    margins(&mut out, a);
    tornado(&mut out, a);
    out.gap();
    out.draw(&a.figure);
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}

fn margins(out: &mut Page, a: &Answer) {
    if a.margins.is_empty() {
        return;
    }
    out.gap();
    out.columns(
        &a.margins,
        &[
            ("price of", &|m| m.what.clone()),
            ("price", &|m| format!("${}", three(m.price_usd_per_mtok))),
            ("cost", &|m| format!("${}", three(m.cost_usd_per_mtok))),
            ("gross margin", &|m| signed_percent(m.gross_margin)),
            ("mark-up", &|m| times(m.markup)),
            ("profit on cost", &|m| signed_percent(m.cost_profit_margin)),
        ],
    );
    let note = "gross margin is a share of the price, profit on cost (\"cost profit margin\") a share of the cost";
    out.note(note);
}

/// Bars on one scale, most important first.
fn tornado(out: &mut Page, a: &Answer) {
    out.part("what matters: cost of all tokens, one assumption at a time");
    let ends = |b: &BarCard| {
        (b.at_low_usd_per_mtok.min(b.at_high_usd_per_mtok), b.at_low_usd_per_mtok.max(b.at_high_usd_per_mtok))
    };
    let low = a.tornado.iter().map(|b| ends(b).0).fold(a.all_usd_per_mtok, f64::min);
    let high = a.tornado.iter().map(|b| ends(b).1).fold(a.all_usd_per_mtok, f64::max);
    let room = out.style.width.clamp(80, 140) - 66;
    let column = |x: f64| if high > low { ((x - low) / (high - low) * (room - 1) as f64).round() as usize } else { 0 };
    let middle = column(a.all_usd_per_mtok);
    for b in &a.tornado {
        let (from, to) = (column(ends(b).0), column(ends(b).1));
        let bar: String = (0..room)
            .map(|i| {
                if i == middle {
                    '|'
                } else if (from..=to).contains(&i) {
                    '█'
                } else {
                    ' '
                }
            })
            .collect();
        let end = |x: f64| if x != 0.0 && x < 0.001 { format!("{x:.1e}") } else { three(x) };
        let range = format!("{} to {}", end(b.low), end(b.high));
        let costs = format!("${} - ${}", three(ends(b).0), three(ends(b).1));
        out.line(format!("  {:<27} {range:<17} {} {costs}", b.name, out.style.tint(39, &bar)));
    }
}

/// `rackmath fleet`
pub fn fleet(a: &fleet::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{} on {}", a.model, a.system));
    let traffic = format!("{} in, {} out on average", tok_s(a.input_tok_s), tok_s(a.output_tok_s));
    out.field("traffic", traffic);
    out.more(format!("{}; {} times the mean at the peak", a.traffic, three(a.peak_over_mean)));
    let v = &a.rates;
    let rates = format!("{} prefill, {} decode", tok_s(v.prefill.tok_s.value), tok_s(v.decode.tok_s.value));
    out.field("one chip", rates);
    out.more(rate_words(v));
    out.gap();
    let mut table =
        style.table(&["pool", "replicas", "chips", "mean", "peak", "capacity", "headroom at peak", "in use"]);
    let row = |name: &str, p: &PoolCard| {
        [
            name.to_owned(),
            count(p.replicas as f64),
            count(p.chips as f64),
            tok_s(p.mean_tok_s),
            tok_s(p.peak_tok_s),
            tok_s(p.capacity_tok_s),
            signed_percent(p.headroom),
            percent(p.utilisation),
        ]
    };
    table.add_row(row("prefill", &a.prefill));
    table.add_row(row("decode", &a.decode));
    out.finish(&table);
    out.gap();
    let machines =
        format!("{} chips, {} machines of {}", count(a.chips as f64), count(a.machines as f64), a.system_chips);
    out.field("fleet", machines);
    out.field("power", watts(a.power_w));
    if let Some(capex) = a.capex_usd {
        out.field("to buy", Dollars::usd(capex));
    }
    if let Some(day) = a.usd_per_day {
        let each = a.usd_per_output_mtok.map_or(String::new(), |c| format!(", {} of output", mtok(c)));
        out.field("a day", format!("{}{each}", Dollars::usd(day)));
    }
    if let Some(share) = a.machine_share {
        let text = format!("{} of the market's output, one in {}", signed_percent(share), three(1.0 / share));
        out.field("one machine writes", text);
    }
    out.gap();
    out.draw(&a.figure);
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}
