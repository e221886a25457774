//! Summaries of rows: how far, which way, in which order.

use super::cards::{RowCard, SourceCard, StratumCard};
use rackmath_units::float;
use std::collections::BTreeMap;

/// One line per metric, in the order of their first rows.
pub fn strata(rows: &[RowCard]) -> Vec<StratumCard> {
    let mut order: Vec<&str> = Vec::new();
    let mut groups: BTreeMap<&str, Vec<&RowCard>> = BTreeMap::new();
    for row in rows {
        let group = groups.entry(&row.metric).or_default();
        if group.is_empty() {
            order.push(&row.metric);
        }
        group.push(row);
    }
    order.into_iter().filter_map(|metric| stratum(metric, &groups[metric])).collect()
}

/// All rows of some sources; the one factor is still chosen for each source and metric.
pub fn total(sources: &[SourceCard]) -> Option<StratumCard> {
    let rows: Vec<&RowCard> = sources.iter().flat_map(|s| &s.rows).collect();
    let mut all = stratum("all", &rows)?;
    let mut constant = Vec::new();
    for source in sources {
        let metrics: std::collections::BTreeSet<&str> = source.rows.iter().map(|r| r.metric.as_str()).collect();
        for metric in metrics {
            let group: Vec<&RowCard> = source.rows.iter().filter(|r| r.metric == metric).collect();
            constant.extend(scaled_roofline(&group));
        }
    }
    (all.constant_median, all.constant_p90) = (quantile(&constant, 0.5)?, quantile(&constant, 0.9)?);
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
        median: quantile(&distances, 0.5)?,
        p90: quantile(&distances, 0.9)?,
        bias: quantile(&signed, 0.5)?,
        spearman: spearman(&predicted, &measured),
        coverage: (!judged.is_empty()).then(|| inside / judged.len() as f64),
        roofline_median: quantile(&roofline, 0.5)?,
        roofline_p90: quantile(&roofline, 0.9)?,
        constant_median: quantile(&constant, 0.5)?,
        constant_p90: quantile(&constant, 0.9)?,
    })
}

/// Distances of the roofline times the factor that takes its bias away.
fn scaled_roofline(rows: &[&RowCard]) -> Vec<f64> {
    let logs: Vec<f64> = rows.iter().map(|r| float::ln(r.measured / r.roofline)).collect();
    let factor = quantile(&logs, 0.5).unwrap_or(0.0);
    logs.iter().map(|log| (factor - log).abs()).collect()
}

/// A quantile, interpolated between two rows as spreadsheets do; nothing of nothing.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let (below, part) = (position.floor() as usize, position.fract());
    Some(sorted[below] * (1.0 - part) + sorted[(below + 1).min(last)] * part)
}

/// Spearman's rank correlation: that of the ranks.
pub(super) fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 3 {
        return None;
    }
    let (a, b) = (ranks(a), ranks(b));
    // Ranks of n values have this mean, ties or not.
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let (both, one, other) = (product(&a, &b), product(&a, &a), product(&b, &b));
    (one > 0.0 && other > 0.0).then(|| (both / (one * other).sqrt()).clamp(-1.0, 1.0))
}

/// Ranks from 0; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..].iter().take_while(|i| values[**i] == values[order[from]]).count();
        for i in &order[from..from + same] {
            ranks[*i] = from as f64 + (same as f64 - 1.0) / 2.0;
        }
        from += same;
    }
    ranks
}
