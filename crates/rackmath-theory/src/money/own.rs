//! One's own machines against a provider: from how many requests a day on are they cheaper?
//!
//! $$ O(x) = K\,\max\!\left(1, \left\lceil \frac{x}{C} \right\rceil\right) \qquad P(x) = c\,x \quad\text{or}\quad K_P\,\left\lceil \frac{x}{C_P} \right\rceil
//!    \qquad x^* : O(x^*) = P(x^*) \qquad C = \frac{86400\,u\,N}{p\,t} \qquad t = \frac{(1 - h)\,I}{v_p} + \frac{O_t}{v_d} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | x | requests | 1/d | requests of a day |
//! | K, C | fixed, capacity | $/d, 1/d | a machine's day, paid whether it works or not, and the requests of a day it can take |
//! | c | each | $ | what a provider charges for a request: tokens in, found in its cache, and out |
//! | u, p | target, peak | 1 | share of a machine in use at the busiest hour; that hour over the mean |
//! | N, t | chips, chip_seconds | 1, s | chips of a machine; seconds of one chip that a request takes |
//! | h, I, O_t | hit, input, output | 1 | share of a prompt found in the cache; its tokens; tokens of the answer |
//!
//! Both sides are straight lines between steps, so that where they meet is exact. A second machine makes one's own dearer again for a while:
//! between n C and (n + 1) K / c the provider is cheaper where these overlap. Assumes: machines are held all day. Ignores: people, the risk that prices fall.
//! Source: ours; the step function is that of whole machines.

/// Seconds of a day.
pub const DAY: f64 = 86_400.0;

/// What a side costs a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// Dollars a day of one unit, paid in full; at least one unit is held.
    pub fixed: f64,
    /// Requests a day of one unit; without end where nothing is held.
    pub capacity: f64,
    /// Dollars a request beside that.
    pub each: f64,
}

impl Side {
    pub fn units(&self, requests: f64) -> f64 {
        if self.capacity.is_finite() { (requests / self.capacity).ceil().max(1.0) } else { 1.0 }
    }

    pub fn cost(&self, requests: f64) -> f64 {
        self.fixed * self.units(requests) + self.each * requests
    }
}

/// Where one side becomes the cheaper one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    pub requests: f64,
    /// Whether the first side is cheaper above it.
    pub first: bool,
    /// Whether costs are equal there; otherwise a step lies between them.
    pub equal: bool,
}

/// Every change of the cheaper side between no requests and `most`, in order.
pub fn crossings(a: &Side, b: &Side, most: f64) -> Vec<Crossing> {
    let steps = |side: &Side| {
        let n = if side.capacity.is_finite() { (most / side.capacity).floor().min(1e5) as u32 } else { 0 };
        (1..=n).map(|i| f64::from(i) * side.capacity).collect::<Vec<_>>()
    };
    let mut ends = [steps(a), steps(b), vec![most]].concat();
    ends.retain(|x| *x <= most);
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    let mut found = Vec::new();
    let (mut low, mut cheaper): (f64, Option<bool>) = (0.0, None);
    for high in ends {
        // Between two steps both are straight lines.
        let middle = f64::midpoint(low, high);
        let line = |s: &Side| (s.fixed * s.units(middle), s.each);
        let ((fa, ea), (fb, eb)) = (line(a), line(b));
        let gap = |x: f64| fa + ea * x - fb - eb * x;
        let (start, end) = (gap(low) < 0.0, gap(high) < 0.0);
        if cheaper.is_some_and(|was| was != start) {
            found.push(Crossing { requests: low, first: start, equal: false });
        }
        if start != end {
            let at = (fa - fb) / (eb - ea);
            found.push(Crossing { requests: at.clamp(low, high), first: end, equal: true });
        }
        (low, cheaper) = (high, Some(end));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use proptest::prelude::*;

    #[test]
    fn a_second_machine_moves_the_break_even() {
        // A machine of $100 a day takes 1,000 requests; a provider asks 16 cents each.
        let (own, paid) = (
            Side { fixed: 100.0, capacity: 1000.0, each: 0.0 },
            Side { fixed: 0.0, capacity: f64::INFINITY, each: 0.16 },
        );
        let found = crossings(&own, &paid, 10_000.0);
        let at: Vec<(f64, bool, bool)> =
            found.iter().map(|c| ((c.requests * 10.0).round() / 10.0, c.first, c.equal)).collect();
        assert_eq!(at, [(625.0, true, true), (1000.0, false, false), (1250.0, true, true)]);
        close(own.cost(found[0].requests), paid.cost(found[0].requests), 1e-12);
        // A provider that is cheaper than a full machine always is.
        let cheap = Side { each: 0.09, ..paid };
        assert!(crossings(&own, &cheap, 10_000.0).is_empty());
    }

    proptest! {
        #[test]
        fn sides_are_as_cheap_as_is_said(k in 1.0..1000.0_f64, c in 10.0..1e5_f64, each in 1e-4..1.0_f64, unit in 0.0..500.0_f64, takes in 10.0..1e5_f64) {
            let own = Side { fixed: k, capacity: c, each: 0.0 };
            let both = [Side { fixed: 0.0, capacity: f64::INFINITY, each }, Side { fixed: unit, capacity: takes, each: each / 10.0 }];
            for other in both {
                let most = 20.0 * c;
                let found = crossings(&own, &other, most);
                for x in &found {
                    if x.equal {
                        let (a, b) = (own.cost(x.requests), other.cost(x.requests));
                        prop_assert!((a - b).abs() <= 1e-6 * a.max(b), "{} {}", a, b);
                    }
                }
                // In the middle between two changes the cheaper one is the one that was said.
                let mut ends: Vec<f64> = found.iter().map(|x| x.requests).collect();
                ends.push(most);
                for (x, end) in found.iter().zip(ends.iter().skip(1)) {
                    let middle = f64::midpoint(x.requests, *end);
                    prop_assert_eq!(own.cost(middle) < other.cost(middle), x.first);
                }
            }
        }
    }
}
