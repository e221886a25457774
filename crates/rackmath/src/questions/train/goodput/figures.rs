//! Pictures of progress: against the checkpoint interval, against the number of chips.

use crate::Error;
use crate::figure::{Axis, Figure, Mark, Role, Series, Unit};
use rackmath_theory::goodput::Hazard;
use rackmath_units::{Seconds, float};

fn spaced(low: f64, high: f64, n: usize) -> impl Iterator<Item = f64> {
    let (from, to) = (float::ln(low), float::ln(high));
    (0..n).map(move |i| float::exp(from + (to - from) * i as f64 / (n - 1) as f64))
}

pub(super) fn over_interval(h: &Hazard, used: Seconds) -> Figure {
    let grid: Vec<f64> = spaced(used.get() / 30.0, used.get() * 30.0, 120).collect();
    let line = |name: &str, role, f: &dyn Fn(Seconds) -> f64| Series {
        name: name.into(),
        role,
        points: grid.iter().map(|t| (*t, f(Seconds::s(*t)))).filter(|p| p.1 >= 0.0).collect(),
    };
    Figure {
        title: "Progress against the checkpoint interval".into(),
        subtitle: format!("stall {}, restart {}", h.stall, h.restart),
        x: Axis::log("work between checkpoints", Unit::Seconds),
        y: Axis::linear("progress of all time", Unit::Number),
        series: vec![
            line("first order", Role::Floor, &|t| h.first_order(t)),
            line("exact", Role::Envelope, &|t| h.goodput(t).get()),
        ],
        marks: vec![Mark { x: used.get(), y: h.goodput(used).get(), label: format!("used: {used}") }],
    }
}

pub(super) fn over_chips(chips: f64, hazard: &dyn Fn(f64) -> Result<Hazard, Error>) -> Result<Figure, Error> {
    let at = |n: f64| Ok::<_, Error>((n, hazard(n)?.best_goodput().get()));
    let points = spaced((chips / 64.0).max(1.0), chips * 64.0, 120).map(at).collect::<Result<Vec<_>, _>>()?;
    let (x, y) = at(chips)?;
    Ok(Figure {
        title: "Progress against the number of chips".into(),
        subtitle: "each at its best interval".into(),
        x: Axis::log("chips", Unit::Count),
        y: Axis::linear("progress of all time", Unit::Number),
        series: vec![Series { name: "exact".into(), role: Role::Envelope, points }],
        marks: vec![Mark { x, y, label: format!("{} chips", rackmath_units::grouped(chips)) }],
    })
}
