//! Cost of serving and fleets as text.

use super::page::{Page, hourly, mtok, or, percent, three, times, tok_s, usd, watts};
use rackmath::cost::{Answer, BarCard};
use rackmath::figure::count;
use rackmath::fleet;
use rackmath::serving::{Origin, RateCard, RatesCard};
use rackmath_units::Dollars;

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
}

pub(super) fn cost(out: &mut Page, a: &Answer) {
    out.head(format!("{} on {}", a.model, a.system));
    out.field("chip-hour", hourly(a.chip_usd_per_hour));
    out.below(&a.basis);
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
    margins(out, a);
    tornado(out, a);
    out.pictures([&a.figure]);
    out.assumes(&a.assumptions);
}

fn margins(out: &mut Page, a: &Answer) {
    if a.margins.is_empty() {
        return;
    }
    out.gap();
    out.each(&a.margins).columns(&[
        ("price of", &|m| m.what.clone()),
        ("price", &|m| usd(m.price_usd_per_mtok)),
        ("cost", &|m| usd(m.cost_usd_per_mtok)),
        ("gross margin", &|m| signed_percent(m.gross_margin)),
        ("mark-up", &|m| times(m.markup)),
        ("profit on cost", &|m| signed_percent(m.cost_profit_margin)),
    ]);
    out.note("gross margin is a share of the price, profit on cost (\"cost profit margin\") a share of the cost");
}

/// Bars on one scale, most important first.
fn tornado(out: &mut Page, a: &Answer) {
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
    out.field("traffic", format!("{} in, {} out on average", tok_s(a.input_tok_s), tok_s(a.output_tok_s)));
    out.more(format!("{}; {} times the mean at the peak", a.traffic, three(a.peak_over_mean)));
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
    let (chips, machines) = (count(a.chips as f64), count(a.machines as f64));
    out.field("fleet", format!("{chips} chips, {machines} machines of {}", a.system_chips));
    out.field("power", watts(a.power_w));
    out.maybe("to buy", a.capex_usd.map(Dollars::usd));
    let each = or(a.usd_per_output_mtok, "", |c| format!(", {} of output", mtok(c)));
    out.maybe("a day", a.usd_per_day.map(|day| format!("{}{each}", Dollars::usd(day))));
    let share = |x| format!("{} of the market's output, one in {}", signed_percent(x), three(1.0 / x));
    out.maybe("one machine writes", a.machine_share.map(share));
    out.pictures([&a.figure]);
    out.assumes(&a.assumptions);
}
