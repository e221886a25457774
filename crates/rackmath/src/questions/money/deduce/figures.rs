//! Pictures of a posterior: active parameters, and how they trade against the mark-up.

use super::{Case, Request};
use crate::figure::{Axis, Figure, Mark, Role, Series, Unit};
use rackmath_theory::deduce::{Posterior, Unknown};
use rackmath_units::{Params, float, significant};

/// Prior and posterior of the active parameters.
pub(super) fn active(subtitle: String, case: &Case, prior: &Posterior, post: &Posterior) -> Figure {
    let line = |name: &str, role: Role, p: &Posterior| {
        Series::new(name, role, p.of(Unknown::Active).curve().into_iter().map(|(x, y)| (float::exp(x), y)))
    };
    let h = post.of(Unknown::Active);
    let mark = |x: f64, label: String| Mark { x: float::exp(x), y: h.density(x), label };
    let b = |x: f64| Params::new(float::exp(x)).to_string();
    let (low, middle, high) = (h.quantile(0.1), h.quantile(0.5), h.quantile(0.9));
    let mut marks = vec![mark(middle, format!("median {}, 80 % between {} and {}", b(middle), b(low), b(high)))];
    if let Some(known) = &case.known {
        marks.push(mark(known.ln_active, format!("truth {}", b(known.ln_active))));
    }
    Figure {
        title: "active parameters".into(),
        subtitle,
        x: Axis::log("active parameters", Unit::Count),
        y: Axis::linear("density per factor e", Unit::Number),
        series: vec![line("prior", Role::Floor, prior), line("posterior", Role::Envelope, post)],
        marks,
    }
}

/// The ridge: ellipses that hold 80 % of prior and posterior if both were normal in logarithms, and the line along which
/// twice the model is half the margin.
pub(super) fn ridge(subtitle: String, prior: &Posterior, post: &Posterior) -> Figure {
    let (cx, cy) = (post.of(Unknown::Active).quantile(0.5), post.of(Unknown::Markup).quantile(0.5));
    let reach = 1.5 * post.deviation(Unknown::Active);
    let trade = [-1.0, 1.0].map(|side| (float::exp(cx + side * reach), float::exp(cy - side * reach)));
    Figure {
        title: "active parameters against mark-up".into(),
        subtitle: format!(
            "{subtitle}; correlation {}",
            significant(post.correlation(Unknown::Active, Unknown::Markup), 2)
        ),
        x: Axis::log("active parameters", Unit::Count),
        y: Axis::log("price over cost", Unit::Number),
        series: vec![
            Series::new("prior, 80 %", Role::Floor, ellipse(prior)),
            Series::new("posterior, 80 %", Role::Envelope, ellipse(post)),
            Series::new("same input price", Role::Compute, trade),
        ],
        marks: vec![Mark {
            x: float::exp(cx),
            y: float::exp(cy),
            label: format!("median {}, {}x", Params::new(float::exp(cx)), significant(float::exp(cy), 2)),
        }],
    }
}

/// Radius within which two independent standard normals lie with a chance of 80 %: the root of -2 ln 0.2.
const RADIUS: f64 = 1.794_122_577_994_101_5;

/// One turn in 96 steps by the angle-addition rule: no platform's sine is asked.
const TURN: (f64, f64) = (0.997_858_923_238_603_5, 0.065_403_129_230_143_06);

fn ellipse(p: &Posterior) -> Vec<(f64, f64)> {
    let (a, m) = (Unknown::Active, Unknown::Markup);
    let (cx, cy) = (p.of(a).quantile(0.5), p.of(m).quantile(0.5));
    let (sx, sy, rho) = (p.deviation(a), p.deviation(m), p.correlation(a, m).clamp(-1.0, 1.0));
    let other = (1.0 - rho * rho).max(0.0).sqrt();
    let (mut c, mut s) = (1.0, 0.0);
    (0..=96)
        .map(|_| {
            let at = (float::exp(cx + RADIUS * sx * c), float::exp(cy + RADIUS * sy * (rho * c + other * s)));
            (c, s) = (c * TURN.0 - s * TURN.1, c * TURN.1 + s * TURN.0);
            at
        })
        .collect()
}

/// What the pictures are about.
pub(super) fn both(request: &Request, case: &Case, prior: &Posterior, post: &Posterior) -> (Figure, Figure) {
    let subtitle = super::answer::title(request, case);
    (active(subtitle.clone(), case, prior, post), ridge(subtitle, prior, post))
}
