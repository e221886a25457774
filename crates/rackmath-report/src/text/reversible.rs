//! Reversible networks as text.

use super::page::{Page, bytes, led, or_dash, plural, seconds, times as factor};
use rackmath::figure::Figure;
use rackmath::reversible::{Answer, Way};
use rackmath_units::{Bytes, grouped, significant};

pub(super) fn reversible(out: &mut Page, a: &Answer, figure: &Figure) {
    out.title("Reversible networks, measured");
    out.dim(&a.network);
    out.gap();
    let depths = a.ways[0].peak_bytes.iter().map(|(d, _)| format!("{d} blocks"));
    let last = ["per block", "FLOP", "formula", "loss"].map(str::to_owned);
    let row = |w: &Way| {
        let peaks = w.peak_bytes.iter().map(|(_, b)| bytes(*b as f64));
        let slope = or_dash(Bytes::checked(w.slope_bytes_per_block), |b| b.to_string());
        let [flop, formula] = [w.flop_over_ordinary, w.formula].map(|x| format!("{}x", significant(x, 4)));
        let loss = format!("{:.2} to {:.2}", w.losses.0, w.losses.1);
        led(&w.way, peaks.chain([slope, flop, formula, loss]))
    };
    out.table(&led("peak activations", depths.chain(last)), a.ways.iter().map(row));
    let ratio = significant(a.slope_ratio * 100.0, 2);
    let over = format!("loss over {} steps of learning to count", a.request.steps);
    out.note(format!("per block, reversible over ordinary: {ratio} %; {over}"));
    out.gap();
    for g in &a.gradients {
        let text = if g.exact { "the same bits".into() } else { format!("{:.1e} off, relative", g.distance) };
        out.field(&format!("gradients, {}", g.stored), text);
    }
    out.gap();
    let show = |x: f64| if x == 0.0 { "exact".to_owned() } else { format!("{x:.1e}") };
    out.columns(
        &a.drift,
        &[
            ("rebuilt after", &|d| format!("{} coupling{}", d.depth, plural(d.depth as u64))),
            ("f32", &|d| show(d.f32)),
            ("bf16", &|d| show(d.bf16)),
            ("fixed point", &|d| show(d.fixed)),
        ],
    );
    out.gap();
    let at = [0, 1, 2, 3, 4, 8, 16, 32, 64];
    let shares = a.avalanche.iter().map(|m| led(&m.mixer, at.map(|i| or_dash(m.share.get(i), |s| format!("{s:.3}")))));
    out.table(&led("one flip spreads to", at.map(|i| i.to_string())), shares);
    let (start, there, back) = a.feistel;
    out.gap();
    out.row("Feistel", format!("{start:?} -> {there:?} -> {back:?} through 16 rounds of squares and back"));
    out.gap();
    let tokens = grouped(a.request.tokens);
    out.dim(format!("the formulas for {} with {tokens} tokens in flight", a.request.model));
    for f in &a.model {
        let forwards = significant(f.forwards, 1);
        out.field(&f.way, format!("{}, {forwards} forwards per step", bytes(f.activation_bytes)));
    }
    out.assumes(&a.assumptions);
    out.pictures([figure]);
}

pub(super) fn times(out: &mut Page, a: &Answer, times: &[f64]) {
    out.gap();
    out.dim("median time of a step on this machine, single core");
    for (w, t) in a.ways.iter().zip(times) {
        let [ratio, formula] = [t / times[0], w.formula].map(factor);
        out.field(&w.way, format!("{}, {ratio} ordinary (formula {formula})", seconds(*t)));
    }
}
