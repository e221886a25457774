//! Fits a program's constants to its rows.

use super::{Bench, Row, read};
use crate::search;
use crate::search::{Knob, knob};
use rackmath_spec::{Catalog, SpecError, TrainingStack};
use rackmath_units::{Seconds, float};
use std::fmt::Write as _;
use std::path::Path;

const KNOBS: &[Knob<TrainingStack>] = &[
    knob("host.forward (ms)", POSITIVE, |s| s.host.forward.get() * 1e3, |s, x| s.host.forward = Seconds::ms(x)),
    knob("host.backward (ms)", POSITIVE, |s| s.host.backward.get() * 1e3, |s, x| s.host.backward = Seconds::ms(x)),
    knob("host.rank (ms)", POSITIVE, |s| s.host.rank.get() * 1e3, |s, x| s.host.rank = Seconds::ms(x)),
    knob("host.experts (ms)", POSITIVE, |s| s.host.experts.get() * 1e3, |s, x| s.host.experts = Seconds::ms(x)),
    knob("host.head (ms)", POSITIVE, |s| s.host.head.get() * 1e3, |s, x| s.host.head = Seconds::ms(x)),
    knob("host.hop (ms)", POSITIVE, |s| s.host.hop.get() * 1e3, |s, x| s.host.hop = Seconds::ms(x)),
    knob("host.step (ms)", POSITIVE, |s| s.host.step.get() * 1e3, |s, x| s.host.step = Seconds::ms(x)),
    knob("traffic.elementwise", POSITIVE, |s| s.traffic.elementwise, |s, x| s.traffic.elementwise = x),
    knob("traffic.scores", POSITIVE, |s| s.traffic.scores, |s, x| s.traffic.scores = x),
    knob(
        "traffic.unaligned_product",
        POSITIVE,
        |s| s.traffic.unaligned_product,
        |s, x| s.traffic.unaligned_product = x,
    ),
    knob("traffic.grouped_product", POSITIVE, |s| s.traffic.grouped_product, |s, x| s.traffic.grouped_product = x),
    knob("traffic.logit_bytes", POSITIVE, |s| s.traffic.logit_bytes, |s, x| s.traffic.logit_bytes = x),
    knob("traffic.optimizer_bytes", POSITIVE, |s| s.traffic.optimizer_bytes, |s, x| s.traffic.optimizer_bytes = x),
    knob("network.scale_up", POSITIVE, |s| s.network.scale_up, |s, x| s.network.scale_up = x),
    knob("network.scale_out", POSITIVE, |s| s.network.scale_out, |s, x| s.network.scale_out = x),
    knob("network.tensor_exposed", POSITIVE, |s| s.network.tensor_exposed, |s, x| s.network.tensor_exposed = x),
    knob("network.expert_exposed", POSITIVE, |s| s.network.expert_exposed, |s, x| s.network.expert_exposed = x),
];

const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);

/// A program, and the knobs that are fitted of it besides products and fused attention.
const PLANS: [(&str, &str); 7] = [
    ("megatron-deepspeed", "host.forward host.backward host.rank host.head host.hop traffic.scores network.scale_out"),
    ("jean-zay", "host.forward traffic.unaligned_product network.scale_up network.scale_out"),
    ("composer-fsdp", "host.step traffic.elementwise traffic.logit_bytes traffic.optimizer_bytes network.scale_out"),
    ("simumax-b200", "traffic.elementwise traffic.grouped_product network.tensor_exposed"),
    ("megatron-core", "host.experts traffic.elementwise traffic.grouped_product network.expert_exposed"),
    ("megatron-bridge", "host.experts traffic.elementwise traffic.grouped_product network.expert_exposed"),
    ("maxtext", "traffic.elementwise traffic.grouped_product"),
];

/// Fits every program with a plan and prints what changed; each also on one half and scored on the other.
pub fn fit(catalog: &Catalog, folder: &Path, only: Option<&str>) -> Result<String, SpecError> {
    let rows = read(folder, catalog)?.rows;
    let bench = Bench::new(catalog, &rows)?;
    let mut out = String::new();
    for (id, names) in PLANS.into_iter().filter(|(id, _)| only.is_none_or(|wanted| wanted == *id)) {
        let knobs: Vec<&Knob<TrainingStack>> =
            KNOBS.iter().filter(|k| names.split(' ').any(|name| k.name.split(' ').next() == Some(name))).collect();
        let own: Vec<(&Row, f64)> = rows
            .iter()
            .filter(|r| r.source.stack == id && !r.out_of_memory())
            .filter_map(|r| Some((r, bench.measured(r)?)))
            .collect();
        let Some(start) = bench.stacks.get(id).filter(|_| !own.is_empty()) else { continue };
        let fitted = one(&bench, &own, start, &knobs);
        let [now, was] = [&fitted, &**start].map(|stack| 100.0 * mape(&bench, &own, stack));
        let _ = writeln!(out, "{id}: {} rows, mean error {now:.2} % (was {was:.2} %)", own.len());
        for knob in &knobs {
            let _ = writeln!(out, "  {} = {:.4} (was {:.4})", knob.name, (knob.get)(&fitted), (knob.get)(start));
        }
        for (new, old) in fitted.products.iter().zip(&start.products) {
            let (generation, format) = (&new.generation, new.format);
            let _ = writeln!(out, "  product {generation} {format} times = {:.4} (was {:.4})", new.times, old.times);
        }
        for (new, old) in fitted.flash.iter().zip(&start.flash) {
            let _ = write!(out, "  flash {} = {:.4}, {:.4}", new.generation, new.forward, new.backward);
            let _ = writeln!(out, " (was {:.4}, {:.4})", old.forward, old.backward);
        }
        let half = |odd: usize| own.iter().skip(odd).step_by(2).copied().collect::<Vec<_>>();
        let (even, odd) = (half(0), half(1));
        let crossed = mape(&bench, &odd, &one(&bench, &even, start, &knobs))
            + mape(&bench, &even, &one(&bench, &odd, start, &knobs));
        let _ = writeln!(out, "  fitted on one half, scored on the other: {:.2} %", 50.0 * crossed);
    }
    Ok(out)
}

fn one(bench: &Bench, rows: &[(&Row, f64)], start: &TrainingStack, knobs: &[&Knob<TrainingStack>]) -> TrainingStack {
    let used = |generation: &str, format| {
        rows.iter().any(|(r, _)| (generation == "any" || bench.generation(r) == generation) && r.format == format)
    };
    let products: Vec<usize> =
        (0..start.products.len()).filter(|i| used(&start.products[*i].generation, start.products[*i].format)).collect();
    let flash: Vec<usize> = (0..start.flash.len())
        .filter(|i| rows.iter().any(|(r, _)| bench.generation(r) == start.flash[*i].generation))
        .collect();
    let build = |x: &[f64]| {
        let mut stack = start.clone();
        let mut values = x.iter().copied();
        for knob in knobs {
            (knob.set)(&mut stack, values.next().unwrap_or(1.0));
        }
        for i in &products {
            stack.products[*i].times = values.next().unwrap_or(1.0);
        }
        for i in &flash {
            // One share for both passes: the backward one in the proportion the file has.
            let share = values.next().unwrap_or(1.0);
            let f = &mut stack.flash[*i];
            f.backward *= share / f.forward;
            f.forward = share;
        }
        stack
    };
    let mut x: Vec<f64> = knobs.iter().map(|k| (k.get)(start).max(1e-6)).collect();
    x.extend(products.iter().map(|i| start.products[*i].times));
    x.extend(flash.iter().map(|i| start.flash[*i].forward));
    // A multi-node table of a few dozen rows weighs as much as its single-node sibling of hundreds.
    let multi = rows.iter().filter(|(r, _)| r.many_nodes()).count();
    let weight = |row: &Row| {
        if multi > 0 && row.many_nodes() { (rows.len() - multi) as f64 / multi as f64 * 2.0 } else { 1.0 }
    };
    let loss = |x: &[f64]| {
        let stack = build(x);
        rows.iter()
            .map(|(row, measured)| {
                let Ok(p) = bench.predict(row, &stack) else { return 0.0 };
                // Absolute, rounded at the bottom: rows that no equation meets do not pull.
                let e = float::ln(p.seconds / measured);
                weight(row) * ((1.0 + (e / 0.03) * (e / 0.03)).sqrt() - 1.0)
            })
            .sum::<f64>()
    };
    build(&search::minimum(&x, loss))
}

fn mape(bench: &Bench, rows: &[(&Row, f64)], stack: &TrainingStack) -> f64 {
    let errors = rows.iter().filter_map(|(r, m)| Some((bench.predict(r, stack).ok()?.seconds / m - 1.0).abs()));
    errors.sum::<f64>() / rows.len().max(1) as f64
}
