//! Pictures of a law: loss at equal compute, tokens at equal loss.

use super::PointCard;
use crate::figure::{Axis, Figure, Mark, Role, Series, Unit};
use rackmath_spec::ScalingLaw;
use rackmath_theory::scaling::Surface;
use rackmath_units::{Flop, Params, significant};

/// How far either side of the best size a picture shows.
const REACH: f64 = 30.0;

pub(super) fn iso_flop(best: &PointCard, s: &Surface, law: &ScalingLaw) -> Figure {
    let n = (Params::new(best.params / REACH), Params::new(best.params * REACH));
    let curve = |factor: f64, role: Role| {
        let c = Flop::flop(best.flop * factor);
        let points = s.iso_flop(c, n, 120).into_iter().map(|(p, loss)| (p.params.get(), loss)).collect();
        Series { name: format!("{:.2e} FLOP", c.get()), role, points }
    };
    let series = vec![curve(0.1, Role::Weights), curve(1.0, Role::Envelope), curve(10.0, Role::Compute)];
    let marks = [0.1, 1.0, 10.0]
        .into_iter()
        .map(|factor| {
            let p = s.compute_optimum(Flop::flop(best.flop * factor));
            let ratio = significant(p.ratio(), 3);
            let label = format!("{} on {} tokens, {ratio} per parameter", p.params, Params::new(p.tokens.get()));
            Mark { x: p.params.get(), y: s.loss(p), label }
        })
        .collect();
    Figure {
        title: "Loss at equal training compute".into(),
        subtitle: law.name.clone(),
        x: Axis::log("active parameters", Unit::Params),
        y: Axis::linear("loss, nats", Unit::Number),
        series,
        marks,
    }
}

pub(super) fn iso_loss(best: &PointCard, s: &Surface, law: &ScalingLaw) -> Figure {
    let n = (Params::new(best.params / REACH), Params::new(best.params * REACH));
    let loss = best.loss.unwrap_or_default();
    let curve = |above: f64, role: Role| {
        // Towards the least size the data needed grows without end.
        let points = s.iso_loss(loss + above, n, 240).into_iter().filter(|p| p.tokens.get() < best.tokens * 300.0);
        let points = points.map(|p| (p.params.get(), p.tokens.get())).collect();
        Series { name: format!("loss {:.3}", loss + above), role, points }
    };
    let series = vec![curve(0.05, Role::Weights), curve(0.0, Role::Envelope), curve(-0.02, Role::Compute)];
    Figure {
        title: "Tokens at equal loss".into(),
        subtitle: law.name.clone(),
        x: Axis::log("active parameters", Unit::Params),
        y: Axis::log("training tokens", Unit::Params),
        series: series.into_iter().filter(|s| s.points.len() > 1).collect(),
        marks: vec![Mark { x: best.params, y: best.tokens, label: "least compute".into() }],
    }
}
