//! From a prepared pass to the states of a row.

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
