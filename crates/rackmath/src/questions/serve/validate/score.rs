//! Summaries of rows: how far, which way, in which order; and predicted against measured as a chart.

use super::cards::{RowCard, SourceCard, StratumCard};
use crate::desk::prelude::*;
use rackmath_theory::stats::{median, quantile, spearman};

/// One line per metric, in the order of their first rows.
pub fn strata(rows: &[RowCard]) -> Vec<StratumCard> {
    by_metric(rows).into_iter().filter_map(|(metric, rows)| stratum(metric, &rows)).collect()
}

fn by_metric(rows: &[RowCard]) -> Vec<(&str, Vec<&RowCard>)> {
    let mut all: Vec<(&str, Vec<&RowCard>)> = Vec::new();
    for row in rows {
        match all.iter_mut().find(|(metric, _)| *metric == row.metric) {
            Some((_, known)) => known.push(row),
            None => all.push((&row.metric, vec![row])),
        }
    }
    all
}

/// All rows of some sources; the one factor is still chosen for each source and metric.
pub fn total(sources: &[SourceCard]) -> Option<StratumCard> {
    // Figures of other questions have no roofline, and speak of other things.
    let rows: Vec<&RowCard> = sources.iter().flat_map(|s| &s.rows).filter(|r| r.roofline > 0.0).collect();
    let mut all = stratum("all", &rows)?;
    let metrics = sources.iter().flat_map(|source| by_metric(&source.rows));
    let constant: Vec<f64> = metrics.flat_map(|(_, rows)| scaled_roofline(&rows)).collect();
    (all.constant_median, all.constant_p90) = (median(&constant)?, quantile(&constant, 0.9)?);
    // Milliseconds and tokens per second have no order among them.
    all.spearman = None;
    Some(all)
}

fn stratum(metric: &str, rows: &[&RowCard]) -> Option<StratumCard> {
    let signed: Vec<f64> = rows.iter().map(|r| r.error).collect();
    let distances: Vec<f64> = signed.iter().map(|e| e.abs()).collect();
    let with = rows.iter().filter(|r| r.roofline > 0.0);
    let roofline: Vec<f64> = with.map(|r| float::ln(r.roofline / r.measured).abs()).collect();
    let constant = scaled_roofline(rows);
    let judged: Vec<bool> = rows.iter().filter_map(|r| r.inside).collect();
    let inside = judged.iter().filter(|inside| **inside).count() as f64;
    let predicted: Vec<f64> = rows.iter().map(|r| r.predicted).collect();
    let measured: Vec<f64> = rows.iter().map(|r| r.measured).collect();
    Some(StratumCard {
        metric: metric.to_owned(),
        n: rows.len(),
        median: median(&distances)?,
        p90: quantile(&distances, 0.9)?,
        bias: median(&signed)?,
        spearman: spearman(&predicted, &measured),
        coverage: (!judged.is_empty()).then(|| inside / judged.len() as f64),
        roofline_median: median(&roofline).unwrap_or_default(),
        roofline_p90: quantile(&roofline, 0.9).unwrap_or_default(),
        constant_median: median(&constant).unwrap_or_default(),
        constant_p90: quantile(&constant, 0.9).unwrap_or_default(),
    })
}

/// Distances of the roofline times the factor that takes its bias away.
fn scaled_roofline(rows: &[&RowCard]) -> Vec<f64> {
    let logs: Vec<f64> = rows.iter().filter(|r| r.roofline > 0.0).map(|r| float::ln(r.measured / r.roofline)).collect();
    let factor = median(&logs).unwrap_or(0.0);
    logs.iter().map(|log| (factor - log).abs()).collect()
}

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
    let median = |s: &StratumCard| says("median_error").with("metric", &s.metric).with("median", s.median);
    let medians: Vec<Remark> = source.strata.iter().map(median).collect();
    let axes = (Axis::log("measured", Unit::Number), Axis::log("predicted", Unit::Number));
    let title = says("predicted_against_measured").with("name", &source.name);
    Figure::of(title, says("median_errors").with("medians", medians), axes, series)
}
