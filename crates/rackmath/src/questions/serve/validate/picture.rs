//! Predicted against measured as a chart: one dot a row, the diagonal, and the band of a factor 1.5.

use super::cards::SourceCard;
use crate::figure::{Axis, Figure, Role, Series, Unit};

/// Half width of the band: dots inside are off by less than this factor.
const BAND: f64 = 1.5;

/// The chart of a source whose rows were kept; its metrics have a colour each.
pub fn scatter(source: &SourceCard) -> Figure {
    let all = source.rows.iter().flat_map(|r| [r.measured, r.predicted]);
    let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    let (low, high) = if low < high { (low / BAND, high * BAND) } else { (0.1, 10.0) };
    let line = |name: &str, role, factor: f64| Series::new(name, role, [low, high].map(|x| (x, x * factor)).to_vec());
    let mut series = vec![
        line("equal", Role::Envelope, 1.0),
        line("x 1.5", Role::Floor, BAND),
        line("/ 1.5", Role::Floor, 1.0 / BAND),
    ];
    for stratum in &source.strata {
        let rows = source.rows.iter().filter(|r| r.metric == stratum.metric);
        let points = rows.map(|r| (r.measured, r.predicted));
        series.push(Series::new(stratum.metric.clone(), Role::Points, points));
    }
    let medians: Vec<String> = source
        .strata
        .iter()
        .map(|s| format!("{}: median error {}", s.metric, rackmath_units::significant(s.median, 2)))
        .collect();
    Figure {
        title: format!("{}: predicted against measured", source.name),
        subtitle: medians.join(", "),
        x: Axis::log("measured", Unit::Number),
        y: Axis::log("predicted", Unit::Number),
        series,
        marks: Vec::new(),
    }
}
