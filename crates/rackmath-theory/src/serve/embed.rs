//! Embedding and reranking: requests of one pass, no answer to write.
//!
//! $$ k = \min\Big(c,\ \Big\lfloor \frac{C}{I} \Big\rfloor,\ K\Big) \ge 1 \qquad \lambda = \frac{k}{T(k, I)} \qquad
//!    R = \max\Big(1, \frac{c}{k}\Big)\,T(k, I) + t_{req} \qquad \text{at a rate: } k = \lambda\,T(k, I),\quad R = \tfrac{3}{2}\,T(k, I) + t_{req} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | c, λ | concurrency, rate | 1, 1/s | requests in flight in one group; requests that end |
//! | I | input | 1 | tokens of a text |
//! | C, K | chunk, sequences | 1 | tokens and texts that the engine takes in a pass |
//! | k, T | together, pass | 1, s | texts of a pass, and its time |
//! | R, t_req | latency, request | s | from arrival to the vector, and what of it is outside the passes |
//!
//! At a rate a text waits half of the pass under way and takes the next; the more come during a pass the more the next
//! holds, up to what the engine takes. Assumes: texts of one length, so that nothing is padded. Source: ours; Little's law.

use crate::machine::timer::{Cost, StepTimer, Work};
use crate::pools::Loading;
use crate::steady::{Requests, Server};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embedded {
    /// Texts per second of one group.
    pub rate: f64,
    pub latency: f64,
    pub together: f64,
    pub pass: Cost,
    /// Share of the time that passes run.
    pub busy: f64,
    /// The most texts per second.
    pub most: f64,
    pub overloaded: bool,
}

const ROUNDS: usize = 60;

/// One attention group under its share of a load.
pub fn embed<T: StepTimer>(server: &Server<T>, requests: &Requests, load: Loading) -> Result<Embedded, T::Uncovered> {
    let (new, past) = (requests.new_tokens(), requests.past());
    // A text longer than a pass takes several.
    let pieces = (new / server.schedule.chunk).ceil().max(1.0);
    let room = server.schedule.sequences.min(server.room.max(1.0));
    let most = (server.schedule.chunk / new).floor().clamp(1.0, room.max(1.0));
    let pass =
        |k: f64| server.timer.time(&Work::prefill(k, new / pieces, past + new * (pieces - 1.0) / (2.0 * pieces)));
    let time = |cost: &Cost| cost.time().get() * pieces;
    let request = server.overhead.request.get();
    let full = pass(most)?;
    let able = most * server.stages / time(&full);
    let of = |k: f64, cost: Cost, rate: f64, latency: f64| Embedded {
        rate,
        latency,
        together: k,
        pass: cost,
        busy: (rate / able).min(1.0),
        most: able,
        overloaded: false,
    };
    Ok(match load {
        Loading::Concurrency(c) => {
            let c = c.max(1.0);
            let k = c.min(most);
            let cost = pass(k)?;
            let waves = (c / k).max(1.0);
            let latency = waves * time(&cost) / server.stages.min(waves) + request;
            of(k, cost, (c / latency).min(able), latency.max(c / able))
        }
        Loading::Rate(rate) if rate >= able => {
            Embedded { overloaded: true, ..of(most, full, able, time(&full) + request) }
        }
        Loading::Rate(rate) => {
            let (mut low, mut high) = (1.0, most);
            for _ in 0..ROUNDS {
                let k = f64::midpoint(low, high);
                if rate * time(&pass(k)?) > k { low = k } else { high = k }
            }
            let cost = pass(high)?;
            let alone = rate * time(&cost) / high;
            of(high, cost, rate, time(&cost) * (1.0 + 0.5 * alone.min(1.0)) + request)
        }
        Loading::Full => of(most, full, able, time(&full) + request),
    })
}
