//! Reversible networks as text.

use super::{Page, bytes, seconds, three};
use crate::style::Style;
use rackmath::figure::Figure;
use rackmath::reversible::Answer;
use rackmath_units::{Bytes, significant};

/// `rackmath reversible`
pub fn reversible(a: &Answer, figure: &Figure, style: Style) -> String {
    let mut out = Page::new(style);
    out.title("Reversible networks, measured");
    out.line(format!("{}\n", style.dim(&a.network)));
    let depths: Vec<String> = a.ways[0].peak_bytes.iter().map(|(d, _)| format!("{d} blocks")).collect();
    let header: Vec<&str> = ["peak activations"]
        .into_iter()
        .chain(depths.iter().map(String::as_str))
        .chain(["per block", "FLOP", "formula", "loss"])
        .collect();
    let mut table = style.table(&header);
    for w in &a.ways {
        let mut row = vec![w.way.clone()];
        row.extend(w.peak_bytes.iter().map(|(_, b)| bytes(*b as f64)));
        row.extend([
            Bytes::checked(w.slope_bytes_per_block).map_or("-".into(), |b| b.to_string()),
            format!("{}x", significant(w.flop_over_ordinary, 4)),
            format!("{}x", significant(w.formula, 4)),
            format!("{:.2} to {:.2}", w.losses.0, w.losses.1),
        ]);
        table.add_row(row);
    }
    out.finish(&table);
    out.line(format!(
        "  {}\n",
        style.dim(&format!(
            "per block, reversible over ordinary: {} %; loss over {} steps of learning to count",
            significant(a.slope_ratio * 100.0, 2),
            a.request.steps
        ))
    ));
    gradients(&mut out, a);
    drift(&mut out, a);
    avalanche(&mut out, a);
    let (start, there, back) = a.feistel;
    out.line(format!("\n  {:<22} {start:?} -> {there:?} -> {back:?} through 16 rounds of squares and back", "Feistel"));
    out.line(format!(
        "\n{}",
        style.dim(&format!(
            "the formulas for {} with {} tokens in flight",
            a.request.model,
            rackmath_units::grouped(a.request.tokens)
        ))
    ));
    for f in &a.model {
        let text = format!("{}, {} forwards per step", bytes(f.activation_bytes), significant(f.forwards, 1));
        out.field(&f.way, text);
    }
    out.gap();
    out.list("assumes", &a.assumptions);
    out.gap();
    out.draw(figure);
    out.text()
}

fn gradients(out: &mut Page, a: &Answer) {
    for g in &a.gradients {
        let text = if g.exact { "the same bits".into() } else { format!("{:.1e} off, relative", g.distance) };
        out.field(&format!("gradients, {}", g.stored), text);
    }
    out.gap();
}

fn drift(out: &mut Page, a: &Answer) {
    let mut table = out.style.table(&["rebuilt after", "f32", "bf16", "fixed point"]);
    let show = |x: f64| if x == 0.0 { "exact".to_owned() } else { format!("{x:.1e}") };
    for d in &a.drift {
        let s = if d.depth == 1 { "" } else { "s" };
        table.add_row([format!("{} coupling{s}", d.depth), show(d.f32), show(d.bf16), show(d.fixed)]);
    }
    out.finish(&table);
    out.gap();
}

fn avalanche(out: &mut Page, a: &Answer) {
    const AT: [usize; 9] = [0, 1, 2, 3, 4, 8, 16, 32, 64];
    let names: Vec<String> = AT.iter().map(ToString::to_string).collect();
    let header: Vec<&str> = ["one flip spreads to"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = out.style.table(&header);
    for m in &a.avalanche {
        let row = AT.iter().map(|i| m.share.get(*i).map_or("-".into(), |s| format!("{s:.3}")));
        table.add_row(std::iter::once(m.mixer.clone()).chain(row).collect::<Vec<_>>());
    }
    out.finish(&table);
}

/// Seconds of a step of each kind, measured by the face.
pub fn reversible_times(a: &Answer, times: &[f64], style: Style) -> String {
    let mut out = Page::new(style);
    out.line(format!("\n{}", style.dim("median time of a step on this machine, single core")));
    for (w, t) in a.ways.iter().zip(times.iter().copied()) {
        let text = format!("{}, {}x ordinary (formula {}x)", seconds(t), three(t / times[0]), three(w.formula));
        out.field(&w.way, text);
    }
    out.text()
}
