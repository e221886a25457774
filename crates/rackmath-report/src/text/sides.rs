//! Numbers of plans side by side.

use super::{ms, mtok, three, tok_s, watts};
use rackmath::figure::count;
use rackmath::plan::Plan;
use rackmath::sides::Measure;
use rackmath_units::{DollarRate, significant};

/// A number with its unit.
pub(super) fn show(measure: Measure, value: f64) -> String {
    match measure {
        Measure::UsdPerMtok => mtok(value),
        Measure::TokSPerChip | Measure::TokSPerUser | Measure::ThroughputTokS => tok_s(value),
        Measure::TpotMs | Measure::TtftMs | Measure::E2eMs => ms(value),
        Measure::Chips | Measure::Replicas | Measure::Concurrency => count(value.round()),
        Measure::UsdPerHour => hourly(value),
        Measure::PowerKw => watts(value * 1e3),
        Measure::JoulesPerToken => format!("{} J", three(value)),
    }
}

/// Dollars per hour.
pub(super) fn hourly(value: f64) -> String {
    DollarRate::checked(value / 3600.0).map_or_else(String::new, |d| d.to_string())
}

/// A change as a person says it.
pub(super) fn change(share: f64) -> String {
    let percent = share.abs() * 100.0;
    if percent < 0.05 {
        return "same".into();
    }
    let sign = if share > 0.0 { '+' } else { '-' };
    // From a tripling on, factors read better.
    if share >= 2.0 { format!("x{}", three(share + 1.0)) } else { format!("{sign}{} %", significant(percent, 2)) }
}

pub(super) fn deployed(p: &Plan) -> String {
    let plural = if p.chips == 1 { "" } else { "s" };
    format!("{} x ({}), {} chip{plural} of {}, {}", p.replicas, p.deployment, p.chips, p.system, p.engine)
}
