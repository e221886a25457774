//! Cost of serving and fleets as text.

use super::{Page, percent};
use crate::style::Style;
use rackmath::cost::{Answer, BarCard};
use rackmath::figure::count;
use rackmath::fleet::{self, PoolCard};
use rackmath::serving::{RateCard, RatesCard};
use rackmath_units::{DollarRate, Dollars, DollarsPerToken, TokenRate, Watts, significant};

fn mtok(usd: f64) -> String {
    DollarsPerToken::per_mtok(usd).to_string()
}

/// A share that may be negative or above one.
fn signed_percent(x: f64) -> String {
    let sign = if x < 0.0 { "-" } else { "" };
    format!("{sign}{}%", significant(x.abs() * 100.0, 3))
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
        let parts: Vec<String> =
            a.hour_parts.iter().map(|(name, usd)| format!("{name} ${}", significant(*usd, 3))).collect();
        out.more(parts.join(", "));
    }
    let rates = format!("{} prefill, {} decode", TokenRate::per_s(a.prefill_tok_s), TokenRate::per_s(a.decode_tok_s));
    out.field("one chip", rates);
    out.more(rate_words(&a.rates));
    out.more(format!("{} prefill chips for each decode chip", significant(a.prefill_per_decode_chip, 3)));
    out.gap();
    out.field("output", mtok(a.output_usd_per_mtok));
    out.field("input, computed", mtok(a.input_usd_per_mtok));
    out.field("input, cached", mtok(a.cached_usd_per_mtok));
    out.field("input, with hits", mtok(a.blended_input_usd_per_mtok));
    out.field("all tokens", mtok(a.all_usd_per_mtok));
    let energy = format!(
        "{} J an output token ({} Wh a thousand), {} J an input token",
        significant(a.output_j_per_token, 3),
        significant(a.output_wh_per_ktok, 3),
        significant(a.input_j_per_token, 3)
    );
    out.field("energy", energy);
    if let Some(g) = a.output_g_per_mtok {
        out.field("carbon", format!("{} g a million output tokens", significant(g, 3)));
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
    out.table(
        &["price of", "price", "cost", "gross margin", "mark-up", "profit on cost"],
        a.margins.iter().map(|m| {
            [
                m.what.clone(),
                format!("${}", significant(m.price_usd_per_mtok, 3)),
                format!("${}", significant(m.cost_usd_per_mtok, 3)),
                signed_percent(m.gross_margin),
                format!("{}x", significant(m.markup, 3)),
                signed_percent(m.cost_profit_margin),
            ]
        }),
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
        let end = |x: f64| if x != 0.0 && x < 0.001 { format!("{x:.1e}") } else { significant(x, 3) };
        let range = format!("{} to {}", end(b.low), end(b.high));
        let costs = format!("${} - ${}", significant(ends(b).0, 3), significant(ends(b).1, 3));
        out.line(format!("  {:<27} {range:<17} {} {costs}", b.name, out.style.tint(39, &bar)));
    }
}

/// `rackmath fleet`
pub fn fleet(a: &fleet::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{} on {}", a.model, a.system));
    let traffic =
        format!("{} in, {} out on average", TokenRate::per_s(a.input_tok_s), TokenRate::per_s(a.output_tok_s));
    out.field("traffic", traffic);
    out.more(format!("{}; {} times the mean at the peak", a.traffic, significant(a.peak_over_mean, 3)));
    let v = &a.rates;
    let rates = format!(
        "{} prefill, {} decode",
        TokenRate::per_s(v.prefill.tok_s.value),
        TokenRate::per_s(v.decode.tok_s.value)
    );
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
            TokenRate::per_s(p.mean_tok_s).to_string(),
            TokenRate::per_s(p.peak_tok_s).to_string(),
            TokenRate::per_s(p.capacity_tok_s).to_string(),
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
    out.field("power", Watts::w(a.power_w));
    if let Some(capex) = a.capex_usd {
        out.field("to buy", Dollars::usd(capex));
    }
    if let Some(day) = a.usd_per_day {
        let each = a.usd_per_output_mtok.map_or(String::new(), |c| format!(", {} of output", mtok(c)));
        out.field("a day", format!("{}{each}", Dollars::usd(day)));
    }
    if let Some(share) = a.machine_share {
        let text = format!("{} of the market's output, one in {}", signed_percent(share), significant(1.0 / share, 3));
        out.field("one machine writes", text);
    }
    out.gap();
    out.draw(&a.figure);
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}
