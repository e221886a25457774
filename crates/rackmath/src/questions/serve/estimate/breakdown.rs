//! Where the time of the mean step goes, and how far the limit is.
//!
//! $$ t = (1 - f)\,T_d + f\,T_m \qquad t_{ideal} = (1 - f)\,R_d + f\,R_m \qquad \text{of limit} = t_{ideal} / t $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | f | prompt_share | 1 | share of passes that carry prompt tokens |
//! | T_d, T_m | decode, mixed | s | a pass that only decodes, a pass with prompt tokens |
//! | R_d, R_m | ideal | s | the roofline of each: dense peak, full bandwidth, both at once, no links |
//!
//! What lies between is lost to collectives, to launches and floors, to the host, and to kernels that
//! are slower than their roofline; the last is what the others leave. Source: ours.

use super::card::{Breakdown, Piece};
use super::words::percent;
use rackmath_theory::pass::{Limit, Part};
use rackmath_theory::steady::Steady;
use rackmath_units::Seconds;

/// The mean of the passes with and without prompt tokens.
pub(crate) fn breakdown(s: &Steady) -> Breakdown {
    let mean =
        |decode: Seconds, mixed: Seconds| (decode.get() * (1.0 - s.prompt_share) + mixed.get() * s.prompt_share) * 1e3;
    let step = s.step().get() * 1e3;
    let piece =
        |what: &str, ms: f64| Piece { what: what.to_owned(), ms, share: if step > 0.0 { ms / step } else { 0.0 } };
    let part = |p: Part| mean(s.decode.part(p), s.mixed.part(p));
    let limited = |l: Limit| mean(s.decode.limited(l), s.mixed.limited(l));
    let ideal = mean(s.decode.ideal(), s.mixed.ideal()).min(step);
    // Links carry nothing but collectives; the rest of a collective's time is latency.
    let (network, link) = (part(Part::Network), limited(Limit::Link));
    let waiting = (network - link).max(0.0);
    let floors = (limited(Limit::Latency) - waiting).max(0.0);
    let busy = limited(Limit::Compute) + limited(Limit::Memory);
    let mut losses = vec![
        piece(
            if waiting > link { "collectives, mostly latency" } else { "collectives, mostly bytes on links" },
            network,
        ),
        piece("kernel launches and floors", floors),
        piece("host", limited(Limit::Host)),
        piece("kernels slower than their roofline", (busy - ideal).max(0.0)),
    ];
    losses.retain(|l| l.ms > 0.0);
    losses.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let shown = |mut all: Vec<Piece>| {
        all.retain(|p| p.ms > 0.0);
        all
    };
    Breakdown {
        step_ms: step,
        decode_ms: s.decode.time().get() * 1e3,
        mixed_ms: s.mixed.time().get() * 1e3,
        ideal_ms: ideal,
        of_limit: if step > 0.0 { ideal / step } else { 0.0 },
        parts: shown(Part::ALL.into_iter().map(|p| piece(p.name(), part(p))).collect()),
        limits: shown(Limit::ALL.into_iter().map(|l| piece(l.name(), limited(l))).collect()),
        losses,
    }
}

/// The piece with the largest share.
pub(crate) fn largest(pieces: &[Piece]) -> Option<&Piece> {
    pieces.iter().max_by(|a, b| a.share.total_cmp(&b.share))
}

/// The distance from the limit and the two largest reasons for it.
pub(crate) fn reading(step: &Breakdown, ideal: bool) -> String {
    let limit = format!(
        "You are at {} of the limit: {} of {} per step",
        percent(step.of_limit),
        Seconds::s(step.ideal_ms / 1e3),
        Seconds::s(step.step_ms / 1e3)
    );
    match step.losses.as_slice() {
        _ if ideal => format!("{limit}; this engine is the limit itself."),
        [] => format!("{limit}."),
        [one] => format!("{limit}; {} of the step is {}.", percent(one.share), one.what),
        [one, two, ..] => {
            format!("{limit}; {} of the step is {}, {} {}.", percent(one.share), one.what, percent(two.share), two.what)
        }
    }
}
