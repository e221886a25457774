//! Prompts on chips of their own: how many a second, how long one waits.
//!
//! $$ \mu = \frac{k\,d\,p}{T(k)} \qquad w = \frac{\rho^{\sqrt{2m + 2} - 1}}{m\,(1 - \rho)}\,\frac{T(1)}{2} \qquad \rho = \lambda / \mu n $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | μ, λ | service, rate | 1/s | prompts one instance computes; requests that arrive |
//! | k, T | together, pass | 1, s | prompts that share a pass, and its time |
//! | d, p | groups, stages | 1 | attention groups and pipeline stages of an instance, each busy with prompts of its own |
//! | m, n, ρ | servers, instances, busy | 1 | groups of all n instances, and the share of the time they work |
//!
//! Source: H. Sakasegawa, An approximation formula L_q = α ρ^β / (1 - ρ), Ann. Inst. Statist. Math. 29 (1977), halved because
//! a prompt's time does not vary; where it does, the wait is multiplied by 1 + its squared coefficient of variation (Allen, Cunneen).

use crate::pass::{Pass, Work};
use crate::steady::Requests;
use rackmath_units::float;

/// Beyond this share of the time a queue says more about its second moments than about its mean.
pub const BUSIEST: f64 = 0.95;

/// Prompts a second of one instance when busy, and the seconds of a prompt alone.
pub fn service(pass: &Pass, chunk: f64, request: f64, groups: f64, requests: &Requests) -> (f64, f64) {
    let new = requests.new_tokens();
    let past = requests.past();
    let chunks = (new / chunk).ceil().max(1.0);
    let time = |prompts: f64| {
        if chunks > 1.0 {
            // Later chunks see the earlier ones: half of the prompt on average.
            let before = past + new * (chunks - 1.0) / (2.0 * chunks);
            return pass.cost(&Work::prefill(1.0, new / chunks, before)).time().get() * chunks;
        }
        pass.cost(&Work::prefill(prompts, new, past)).time().get()
    };
    let together = (chunk / new).floor().max(1.0);
    (together * groups * pass.stages() / time(together), time(1.0) + request)
}

/// Mean wait for one of `servers` that are busy for a share of the time, each prompt taking `alone`.
pub fn wait(busy: f64, servers: f64, alone: f64) -> f64 {
    let busy = busy.min(BUSIEST);
    let power = (2.0 * (servers + 1.0)).sqrt() - 1.0;
    float::pow(busy, power) / (servers * (1.0 - busy)) * alone / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_busy_server_waits_as_the_textbook_says() {
        // M/D/1 at half load: rho / (2 (1 - rho)) = 0.5 service times.
        assert!((wait(0.5, 1.0, 2.0) - 1.0).abs() < 1e-12);
        assert!(wait(0.5, 8.0, 2.0) < wait(0.5, 1.0, 2.0));
        assert_eq!(wait(0.0, 4.0, 2.0), 0.0);
    }
}
