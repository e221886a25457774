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

/// A fast mode read as a smaller batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Cache over weight traffic of a standard step.
    pub x: f64,
    /// No price buys more speed than this, on the same machine.
    pub speed_limit: f64,
    /// The standard batch over the fast one.
    pub batch_ratio: f64,
    /// The most an endless batch could save, as a share of the standard price.
    pub slow_saving: f64,
}

/// A fast mode read as something other than a smaller batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instead {
    /// Chips of a replica over the standard's, at the same batch.
    pub chips: f64,
    /// Share of those chips' speed-up that arrives.
    pub scaling: f64,
    /// Tokens per step over the standard's, by drafting.
    pub accepted: f64,
    /// Work of a step over the standard's that the price would pay for.
    pub work: f64,
}

/// Reads a price and a speed multiple as a smaller batch; `None` unless both are above 1.
pub fn reading(price: f64, speed: f64) -> Option<Reading> {
    let sane = price.is_finite() && speed.is_finite() && price > 1.0 && speed > 1.0;
    sane.then(|| {
        let x = closed::fast_x(price, speed);
        Reading {
            x,
            speed_limit: 1.0 + x,
            batch_ratio: closed::fast_batch_ratio(price, speed),
            slow_saving: closed::slow_saving(x),
        }
    })
}

/// What would have to be true if chips or drafts were changed instead.
pub fn instead(price: f64, speed: f64) -> Instead {
    Instead { chips: price * speed, scaling: 1.0 / price, accepted: speed, work: price * speed }
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
        assert_eq!(reading(6.0, 2.5).unwrap().batch_ratio, 15.0);
        let i = instead(6.0, 2.5);
        assert_eq!((i.chips, i.accepted, i.work), (15.0, 2.5, 15.0));
        assert!((i.scaling - 1.0 / 6.0).abs() < 1e-15);
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
