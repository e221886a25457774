//! Pictures of training: memory along the pipeline, and what a layout's memory buys in time.

use super::{Answer, SearchCard, StageCard};
use crate::figure::{Axis, Figure, Mark, Role, Series, Unit};

/// The frontier of a search, else memory by stage; nothing where one point is all there is.
pub(super) fn figure(a: &Answer) -> Option<Figure> {
    match &a.search {
        Some(search) => frontier(a, search),
        None if a.stages.len() > 1 => Some(stages(a)),
        None => None,
    }
}

fn frontier(a: &Answer, search: &SearchCard) -> Option<Figure> {
    let mut points: Vec<(f64, f64)> = search.frontier.iter().map(|c| (c.memory_bytes, c.step_s)).collect();
    points.sort_by(|p, q| p.0.total_cmp(&q.0));
    let fastest = search.best.first()?;
    Some(Figure {
        title: format!("{} on {}: time against memory", a.model, a.machine),
        subtitle: format!("{} layouts, {} fit; those no other beats", search.evaluated, search.feasible),
        x: Axis::linear("memory of the fullest chip", Unit::Bytes),
        y: Axis::linear("step", Unit::Seconds),
        series: vec![Series { name: "best layouts".into(), role: Role::Envelope, points }],
        marks: vec![Mark { x: fastest.memory_bytes, y: fastest.step_s, label: fastest.layout.clone() }],
    })
}

fn stages(a: &Answer) -> Figure {
    let line = |name: &str, role, of: fn(&StageCard) -> f64| Series {
        name: name.into(),
        role,
        points: a.stages.iter().map(|s| (s.stage as f64, of(s))).collect(),
    };
    let states: fn(&StageCard) -> f64 = |s| s.weight_bytes + s.gradient_bytes + s.optimizer_bytes;
    let capacity = a.stages.iter().map(|s| (s.stage as f64, a.capacity_bytes)).collect();
    Figure {
        title: format!("{} on {}: memory by stage", a.model, a.machine),
        subtitle: a.layout.clone(),
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
