//! Pictures of training: memory along the pipeline, and what a layout's memory buys in time.

use super::{SearchCard, StageCard};
use crate::figure::{Axis, Figure, Mark, Role, Series, Unit};

/// The frontier of a search; nothing where nothing fits.
pub(super) fn frontier(title: &str, search: &SearchCard) -> Option<Figure> {
    let mut points: Vec<(f64, f64)> = search.frontier.iter().map(|c| (c.memory_bytes, c.step_s)).collect();
    points.sort_by(|p, q| p.0.total_cmp(&q.0));
    let fastest = search.best.first()?;
    Some(Figure {
        title: format!("{title}: time against memory"),
        subtitle: format!("{} layouts, {} fit; those no other beats", search.evaluated, search.feasible),
        x: Axis::linear("memory of the fullest chip", Unit::Bytes),
        y: Axis::linear("step", Unit::Seconds),
        series: vec![Series { name: "best layouts".into(), role: Role::Envelope, points }],
        marks: vec![Mark { x: fastest.memory_bytes, y: fastest.step_s, label: fastest.layout.clone() }],
    })
}

pub(super) fn stages(title: &str, layout: &str, capacity: f64, stages: &[StageCard]) -> Figure {
    let line = |name: &str, role, of: fn(&StageCard) -> f64| Series {
        name: name.into(),
        role,
        points: stages.iter().map(|s| (s.stage as f64, of(s))).collect(),
    };
    let states: fn(&StageCard) -> f64 = |s| s.weight_bytes + s.gradient_bytes + s.optimizer_bytes;
    let capacity = stages.iter().map(|s| (s.stage as f64, capacity)).collect();
    Figure {
        title: format!("{title}: memory by stage"),
        subtitle: layout.into(),
        x: Axis::linear("stage", Unit::Count),
        y: Axis::linear("memory of a chip", Unit::Bytes),
        series: vec![
            line("weights, gradients, optimizer", Role::Weights, states),
            line("activations", Role::Compute, |s| s.activation_bytes),
            line("all", Role::Envelope, |s| s.total_bytes),
            Series { name: "there is".into(), role: Role::Floor, points: capacity },
        ],
        marks: Vec::new(),
    }
}
