//! Summaries of rows: how far, which way, in which order.

use super::cards::{RowCard, SourceCard, StratumCard};
use rackmath_theory::stats::{median, quantile, spearman};
use rackmath_units::float;

/// One line per metric, in the order of their first rows.
pub fn strata(rows: &[RowCard]) -> Vec<StratumCard> {
    metrics(rows).into_iter().filter_map(|metric| stratum(metric, &of_metric(rows, metric))).collect()
}

fn metrics(rows: &[RowCard]) -> Vec<&str> {
    let mut order: Vec<&str> = Vec::new();
    for row in rows {
        if !order.contains(&row.metric.as_str()) {
            order.push(&row.metric);
        }
    }
    order
}

fn of_metric<'a>(rows: &'a [RowCard], metric: &str) -> Vec<&'a RowCard> {
    rows.iter().filter(|row| row.metric == metric).collect()
}

/// All rows of some sources; the one factor is still chosen for each source and metric.
pub fn total(sources: &[SourceCard]) -> Option<StratumCard> {
    let rows: Vec<&RowCard> = sources.iter().flat_map(|s| &s.rows).collect();
    let mut all = stratum("all", &rows)?;
    let mut constant = Vec::new();
    for source in sources {
        for metric in metrics(&source.rows) {
            constant.extend(scaled_roofline(&of_metric(&source.rows, metric)));
        }
    }
    (all.constant_median, all.constant_p90) = (median(&constant)?, quantile(&constant, 0.9)?);
    // Milliseconds and tokens per second have no order among them.
    all.spearman = None;
    Some(all)
}

fn stratum(metric: &str, rows: &[&RowCard]) -> Option<StratumCard> {
    let signed: Vec<f64> = rows.iter().map(|r| r.error).collect();
    let distances: Vec<f64> = signed.iter().map(|e| e.abs()).collect();
    let roofline: Vec<f64> = rows.iter().map(|r| float::ln(r.roofline / r.measured).abs()).collect();
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
        roofline_median: median(&roofline)?,
        roofline_p90: quantile(&roofline, 0.9)?,
        constant_median: median(&constant)?,
        constant_p90: quantile(&constant, 0.9)?,
    })
}

/// Distances of the roofline times the factor that takes its bias away.
fn scaled_roofline(rows: &[&RowCard]) -> Vec<f64> {
    let logs: Vec<f64> = rows.iter().map(|r| float::ln(r.measured / r.roofline)).collect();
    let factor = median(&logs).unwrap_or(0.0);
    logs.iter().map(|log| (factor - log).abs()).collect()
}
