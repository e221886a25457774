//! A cost as a function of the rows of a pass: nodes, straight lines between them, never falling.

use super::{Cost, Limit, Part};

/// Rows at which costs are worked out: dense where tiles and experts fill up, then a few to each doubling.
const NODES: [f64; 44] = [
    1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 80.0, 96.0, 112.0, 128.0, 160.0, 192.0, 224.0,
    256.0, 320.0, 384.0, 448.0, 512.0, 640.0, 768.0, 896.0, 1024.0, 1280.0, 1536.0, 1792.0, 2048.0, 2560.0, 3072.0,
    3584.0, 4096.0, 5120.0, 6144.0, 8192.0, 12288.0, 16384.0, 24576.0, 32768.0, 65536.0,
];

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    costs: Vec<Cost>,
}

impl Table {
    /// Works out every node. A node that would be cheaper than the one before it costs the same.
    pub(super) fn new(cost: impl Fn(f64) -> Cost) -> Self {
        let mut costs: Vec<Cost> = Vec::with_capacity(NODES.len());
        for rows in NODES {
            let mut next = cost(rows);
            if let Some(last) = costs.last() {
                let (now, before) = (next.time().get(), last.time().get());
                if now < before {
                    next.add(Part::Products, Limit::Latency, before - now);
                }
            }
            costs.push(next);
        }
        Self { costs }
    }

    /// Adds the cost of so many rows; beyond the last node the last line goes on, below the first rows cost their share of
    /// the arithmetic and all of the rest.
    pub(super) fn add(&self, rows: f64, cost: &mut Cost) {
        if rows <= 0.0 || self.costs.is_empty() {
            return;
        }
        let rows = rows.max(1.0);
        let above = NODES.partition_point(|n| *n < rows).clamp(1, NODES.len() - 1);
        let (x0, x1) = (NODES[above - 1], NODES[above]);
        let share = (rows - x0) / (x1 - x0);
        cost.plus(&self.costs[above - 1], 1.0 - share);
        cost.plus(&self.costs[above], share);
    }
}
