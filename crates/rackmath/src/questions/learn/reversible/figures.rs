//! Pictures of reversible networks.

use super::{AvalancheCard, DriftCard, Way};
use crate::figure::{Axis, Figure, Role, Series, Unit};

/// The ways, in the order of [`Keep::ALL`].
const ROLES: [Role; 4] = [Role::Envelope, Role::Weights, Role::Kv, Role::Compute];

pub(super) fn memory_figure(ways: &[Way]) -> Figure {
    let series = ways.iter().zip(ROLES).map(|(w, role)| Series {
        name: w.way.clone(),
        role,
        points: w.peak_bytes.iter().map(|(d, b)| (*d as f64, *b as f64)).collect(),
    });
    Figure {
        title: "Peak activation memory against depth".into(),
        subtitle: "measured".into(),
        x: Axis::linear("blocks", Unit::Count),
        y: Axis::linear("bytes", Unit::Bytes),
        series: series.collect(),
        marks: Vec::new(),
    }
}

pub(super) fn drift_figure(drift: &[DriftCard]) -> Figure {
    let line = |name: &str, role, of: fn(&DriftCard) -> f64| Series {
        name: name.into(),
        role,
        points: drift.iter().map(|d| (d.depth as f64, of(d))).filter(|p| p.1 > 0.0).collect(),
    };
    Figure {
        title: "Error of what is rebuilt".into(),
        subtitle: "relative, after so many couplings forward and back; fixed point has none".into(),
        x: Axis::log("couplings", Unit::Count),
        y: Axis::log("relative error", Unit::Number),
        series: vec![line("bf16", Role::Weights, |d| d.bf16), line("f32", Role::Envelope, |d| d.f32)],
        marks: Vec::new(),
    }
}

pub(super) fn avalanche_figure(all: &[AvalancheCard]) -> Figure {
    let roles = [Role::Envelope, Role::Compute, Role::Weights, Role::Kv, Role::Floor];
    let series = all.iter().zip(roles).map(|(a, role)| Series {
        name: a.mixer.clone(),
        role,
        points: a.share.iter().enumerate().skip(1).map(|(i, s)| (i as f64, *s)).collect(),
    });
    Figure {
        title: "How far one flipped bit spreads".into(),
        subtitle: "share of the output that changes; one half is perfect mixing".into(),
        x: Axis::log("rounds or layers", Unit::Count),
        y: Axis::linear("share changed", Unit::Number),
        series: series.collect(),
        marks: Vec::new(),
    }
}
