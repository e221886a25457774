//! From a prepared pass to the states of a row; and those that fetch part of a prompt's cache from host memory: how much longer a
//! request stays, and how many a second.
//!
//! $$ t = \frac{b}{w} \qquad R' = \max(R + t,\; N t) \qquad r' = \frac{N g}{R'} \qquad \mu' = \min(\mu,\; g / t) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | b, w | bytes, link | B, B/s | bytes one chip fetches for a prompt, and its share of the way to host memory |
//! | t | seconds | s | time of the fetch alone |
//! | N, g | concurrency, groups | 1 | requests in flight in an attention group, and groups |
//! | R, R' | stay, longer | s | time of a request in its slot without and with the fetch |
//! | r' | rate | 1/s | requests an instance ends |
//! | μ, μ' | service | 1/s | prompts an instance for prompts alone computes |
//!
//! A slot is held while its cache arrives, and a group's link carries one prompt at a time: no more than 1/t a second. Steps
//! are taken to be no faster for the slots that wait, and no slower for the bytes that arrive. Source: ours.

use super::pools::Prompts;
use super::space::State;
use crate::steady::{Load, Requests, Server, steady};

/// Concurrencies of one attention group: all up to 8, then four to a doubling.
pub fn levels(most: f64) -> Vec<f64> {
    let mut all: Vec<f64> = (1..=8).map(f64::from).collect();
    let mut step = 2.0;
    while all.last().is_some_and(|last| *last < most) {
        for _ in 0..4 {
            all.push(all.last().unwrap_or(&8.0) + step);
        }
        step *= 2.0;
    }
    all.retain(|level| *level < most);
    all.push(most);
    all
}

/// States of one row at the levels: a level above what memory or the engine holds is cut to that, those above are none.
pub fn states(server: &Server, requests: &Requests, groups: f64, levels: &[f64], out: &mut Vec<State>) {
    let most = server.most().floor();
    let mut last = 0.0;
    for level in levels {
        let concurrency = level.min(most);
        if server.room < 1.0 || concurrency <= last {
            out.push(State::NONE);
            continue;
        }
        last = concurrency;
        let Ok(s) = steady(server, requests, Load::even(concurrency));
        let main = if s.prompt_share > 0.5 { &s.mixed } else { &s.decode };
        out.push(State {
            tpot: s.tpot.get(),
            ttft: (s.ttft + s.queue).get(),
            rate: s.rate * groups,
            headroom: (1.0 - concurrency / server.room).max(0.0),
            binding: main.binding(),
        });
    }
}

/// Makes the states of a row, at levels cut to `most`, wait for a fetch of so many seconds.
pub fn wait(states: &mut [State], seconds: f64, groups: f64, levels: &[f64], most: f64) {
    for (state, level) in states.iter_mut().zip(levels).filter(|(s, _)| s.rate > 0.0) {
        let concurrency = level.min(most);
        let stay = concurrency * groups / state.rate;
        let longer = (stay + seconds).max(concurrency * seconds);
        state.ttft += longer - stay;
        state.rate = concurrency * groups / longer;
    }
}

/// Prompts with a fetch before each: the next is fetched while one is computed.
pub fn prompts(p: Prompts, seconds: f64) -> Prompts {
    Prompts { service: p.service.min(p.groups / seconds), alone: p.alone + seconds, ..p }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::Limit;

    fn state(rate: f64) -> State {
        State { tpot: 0.01, ttft: 0.5, rate, headroom: 0.5, binding: Limit::Compute }
    }

    #[test]
    fn a_slot_is_held_and_a_link_carries_one_prompt_at_a_time() {
        // Two groups of 4 requests that stay 2 s each end 4 a second; with 0.5 s more, 8 / 2.5.
        let mut one = [state(4.0), State::NONE];
        wait(&mut one, 0.5, 2.0, &[4.0, 8.0], 4.0);
        assert!((one[0].rate - 3.2).abs() < 1e-12 && (one[0].ttft - 1.0).abs() < 1e-12);
        assert_eq!((one[0].tpot, one[1]), (0.01, State::NONE));
        // With 1 s each, two links end 2 a second: 8 requests in flight stay 4 s.
        let mut bound = [state(4.0)];
        wait(&mut bound, 1.0, 2.0, &[4.0], 4.0);
        assert!((bound[0].rate - 2.0).abs() < 1e-12 && (bound[0].ttft - 2.5).abs() < 1e-12);
    }

    #[test]
    fn prompts_are_fetched_while_others_are_computed() {
        let one = Prompts { service: 10.0, alone: 0.1, groups: 1.0 };
        assert_eq!(prompts(one, 0.05), Prompts { alone: 0.1 + 0.05, ..one });
        let two = Prompts { groups: 2.0, ..one };
        assert_eq!(prompts(two, 0.5), Prompts { service: 4.0, alone: 0.6, ..two });
    }
}
