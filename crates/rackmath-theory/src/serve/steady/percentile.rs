//! How far requests lie from the mean because they are longer or shorter than it.
//!
//! $$ \mathrm{TTFT}(I) = \overline{\mathrm{TTFT}} + t(I) - t(\bar I) \qquad
//!    \mathrm{E2E}(I, O) = \mathrm{TTFT}(I) + \mathrm{TPOT}\,(O - 1) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t(I) | own | s | the passes of a prompt of I tokens, beside what decodes anyway |
//! | I, O | input, output | tokens | lengths, drawn independently |
//! | bars | `Steady` | s | the mean request in steady state |
//!
//! Valid where lengths differ more than waits: time per token is shared by all who decode, so it has no spread of its own
//! here. Ignores: waits that vary, bursts, drafts that are accepted more or less often, a prompt and its answer being long
//! together. Queueing adds to the upper percentiles what it adds; a simulation or a load test says how much. Source: ours.

use super::{Requests, Server, Steady};
use crate::chunk::{Chunks, Rest};
use crate::lengths::Drawn;
use crate::machine::timer::{Chunk, StepTimer, Work};
use crate::stats::ranked;
use rackmath_spec::engine::Prompts;

/// Seconds of the passes that compute a prompt of `input` tokens while `steady` goes on.
pub fn own<T: StepTimer>(
    server: &Server<T>,
    requests: &Requests,
    steady: &Steady,
    input: f64,
) -> Result<f64, T::Uncovered> {
    let one = Requests { input, ..*requests };
    let new = one.new_tokens();
    let decoding = match server.schedule.prompts {
        Prompts::RideAlong => steady.decoding / server.stages,
        Prompts::First => 0.0,
    };
    let room = server.prompt_room(decoding, requests);
    let chunks = Chunks::of(new, room, Rest::Shared);
    // A short prompt shares its pass with those that came with it: it cannot be faster than the pass is.
    let size = chunks.tokens.max(steady.prompt_size.min(room));
    let prompts = (size / new).max(1.0 / chunks.passes);
    let work = Work { drafts: requests.drafts, ..Work::decode(decoding, requests.context()) };
    let work = work.with(Chunk { tokens: size, prompts, past: one.input - new + chunks.before });
    Ok(server.timer.time(&work)?.time().get() * chunks.passes)
}

/// Times to the first token and of whole requests below which the shares `p` of all lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    pub ttft: Vec<f64>,
    pub e2e: Vec<f64>,
}

/// Percentiles from lengths, given the time to the first token by length of the prompt and the time per token.
pub fn percentiles(input: &Drawn, output: &Drawn, ttft: impl Fn(f64) -> f64, tpot: f64, shares: &[f64]) -> Percentiles {
    let mut firsts: Vec<f64> = input.shares.iter().map(|i| ttft(*i)).collect();
    firsts.sort_by(f64::total_cmp);
    let rest = |o: f64| tpot * (o - 1.0).max(0.0);
    let mut all: Vec<f64> = firsts.iter().flat_map(|f| output.shares.iter().map(move |o| f + rest(*o))).collect();
    all.sort_by(f64::total_cmp);
    let of = |sorted: &[f64]| shares.iter().map(|p| ranked(sorted, *p)).collect();
    Percentiles { ttft: of(&firsts), e2e: of(&all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rackmath_spec::lengths::Lengths;

    #[test]
    fn a_straight_line_of_a_uniform_length() {
        // Prompts of 0 to 1000 tokens at 1 ms each after 1 s, answers of one token: 90 % within 1.9 s.
        let input = Drawn::of(&Lengths::Uniform { low: 1.0, high: 1000.0 });
        let p = percentiles(&input, &Drawn::of(&Lengths::Fixed(1.0)), |i| 1.0 + i * 1e-3, 0.02, &[0.5, 0.9]);
        assert!((p.ttft[1] - 1.9).abs() < 0.005 && p.ttft == p.e2e, "{p:?}");
    }

    proptest! {
        #[test]
        fn percentiles_ascend_and_without_width_are_the_mean(
            i in 2.0f64..1e5, o in 2.0f64..1e4, t in 1e-3f64..10.0, cv in 0.0f64..3.0, tpot in 1e-3f64..0.1
        ) {
            let p = percentiles(&Drawn::of(&Lengths::Fixed(i)), &Drawn::of(&Lengths::Fixed(o)), |_| t, 0.01, &[0.5, 0.99]);
            prop_assert_eq!(p.ttft, vec![t, t]);
            prop_assert_eq!(p.e2e, vec![t + 0.01 * (o - 1.0); 2]);
            let d = Drawn::of(&Lengths::Lognormal { mean: i.max(10.0), cv });
            let p = percentiles(&d, &d, |i| 0.1 + i * 1e-5, tpot, &[0.5, 0.9, 0.99]);
            prop_assert!(p.ttft.is_sorted() && p.e2e.is_sorted());
        }
    }
}
