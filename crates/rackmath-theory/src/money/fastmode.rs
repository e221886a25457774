//! Speed for money: what a fast mode's price says about the batch, and what else could explain it.
//!
//! $$ m(s) = \frac{x}{1 + x - s} \qquad x = \frac{m (s - 1)}{m - 1} \qquad s < 1 + x $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | s | speed | 1 | tokens per second of a user over the standard mode's |
//! | m | price | 1 | price over the standard price |
//! | x | x | 1 | cache bytes over weight bytes read in a standard step |
//!
//! The closed forms stand in `board::closed`; here they are read both ways. If the batch is the only lever, it shrinks by
//! m s. If chips are the lever instead, m s times as many serve the same batch, of whose speed-up only 1/m arrives. If
//! drafting is, a step must yield s times as many tokens, and its work may grow by m s before the price is exceeded.
//!
//! Assumes: price follows cost, decode is bound by memory, the same machine, no mark-up on impatience.
//! Source: lecture D7, D8; the published price and speed of fast modes.

use crate::board::closed;
use schemars::JsonSchema;
use serde::Serialize;

/// A price and a speed multiple, read as a smaller batch and as what else they could be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reading {
    /// Cache over weight traffic of a standard step, if the batch is the only lever.
    pub x: f64,
    /// The most speed any price buys on the same machine.
    pub speed_limit: f64,
    /// The standard batch over the fast one.
    pub batch_ratio: f64,
    /// The most a slower mode could save.
    pub slow_saving: f64,
    /// If chips were changed instead: how many times as many.
    pub chips_instead: f64,
    /// And what share of their speed-up arrives.
    pub scaling_instead: f64,
    /// If drafts were changed instead: tokens per step over the standard's.
    pub accepted_instead: f64,
    /// And how much more work a step could do for that price.
    pub work_instead: f64,
}

/// Reads a price and a speed multiple; `None` unless both are above 1.
pub fn reading(price: f64, speed: f64) -> Option<Reading> {
    let sane = price.is_finite() && speed.is_finite() && price > 1.0 && speed > 1.0;
    let x = closed::fast_x(price, speed);
    sane.then(|| Reading {
        x,
        speed_limit: 1.0 + x,
        batch_ratio: closed::fast_batch_ratio(price, speed),
        slow_saving: closed::slow_saving(x),
        chips_instead: price * speed,
        scaling_instead: 1.0 / price,
        accepted_instead: speed,
        work_instead: price * speed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_fast_modes() {
        // Opus 4.6: 6x for 2.5x; Opus 4.8: 2x for 2.5x; DeepSeek R1 on B200 as measured by SemiAnalysis: $0.56 to $4.
        for (price, x) in [(6.0, 1.8), (2.0, 3.0), (4.0 / 0.56, 1.744)] {
            let r = reading(price, 2.5).unwrap();
            assert!((r.x / x - 1.0).abs() < 1e-3, "{}", r.x);
            assert_eq!(r.speed_limit, 1.0 + r.x);
        }
        let r = reading(6.0, 2.5).unwrap();
        assert_eq!((r.batch_ratio, r.chips_instead, r.accepted_instead, r.work_instead), (15.0, 15.0, 2.5, 15.0));
        assert!((r.scaling_instead - 1.0 / 6.0).abs() < 1e-15);
        assert!(reading(1.0, 2.5).is_none() && reading(2.0, 0.5).is_none());
    }

    proptest! {
        #[test]
        fn the_reading_gives_the_price_back(price in 1.01f64..100.0, speed in 1.01f64..50.0) {
            let r = reading(price, speed).unwrap();
            prop_assert!(speed < r.speed_limit);
            prop_assert!((closed::fast_price(speed, r.x).unwrap() / price - 1.0).abs() < 1e-6);
        }
    }
}
