//! Two levels of network: a fast one inside a node or rack, a slow one across.
//!
//! | collective of S over n inside and R across | time |
//! |---|---|
//! | all-reduce | reduce-scatter(S, inside) + all-reduce(S/n, across) + all-gather(S, inside) |
//! | all-gather | all-gather(S/n, across) + all-gather(S, inside) |
//! | reduce-scatter | reduce-scatter(S, inside) + reduce-scatter(S/n, across) |
//! | all-to-all | inside and across at once or one after the other, across carrying (R-1)/R of S |
//! | send | one message over the slow network |
//!
//! $$ \text{slowdown} = \beta\,\frac{R-1}{R} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | n, R | inside.n, across.n | 1 | ranks per node; nodes |
//! | beta | beta | 1 | rate inside over rate across |
//!
//! Every rank has its own adapter, so that n parts cross at once. Assumes: tokens and experts spread evenly, so that a share
//! (R-1)/R of an all-to-all leaves. Ignores: oversubscribed spines, which lower the rate across.
//! Source: lecture D20 and section 1c.3 (G38), X16 (G49).

use super::{Collective, CollectiveTime, Group, time};
use rackmath_units::{ByteRate, Bytes, Fraction, Seconds};

/// Time of a collective over two levels. `overlap` is 1 where an all-to-all uses both at once, 0 where it takes turns.
pub fn hierarchical_time(
    collective: Collective,
    bytes: Bytes,
    inside: &Group,
    across: &Group,
    overlap: Fraction,
) -> CollectiveTime {
    if across.n <= 1 {
        return time(collective, bytes, inside);
    }
    if inside.n <= 1 {
        return time(collective, bytes, across);
    }
    let part = bytes / inside.n as f64;
    match collective {
        Collective::AllReduce => {
            time(Collective::ReduceScatter, bytes, inside)
                + time(Collective::AllReduce, part, across)
                + time(Collective::AllGather, bytes, inside)
        }
        Collective::AllGather => time(Collective::AllGather, part, across) + time(Collective::AllGather, bytes, inside),
        Collective::ReduceScatter => {
            time(Collective::ReduceScatter, bytes, inside) + time(Collective::ReduceScatter, part, across)
        }
        Collective::AllToAll => {
            // A byte that stays needs the fast network; one that leaves crosses on its rail and is handed on inside.
            let (a, b) = (time(collective, bytes, inside), time(collective, bytes, across));
            CollectiveTime {
                latency: a.latency.max(b.latency) + a.latency.min(b.latency) * overlap.rest().get(),
                transfer: overlapped(a.transfer, b.transfer, overlap),
            }
        }
        Collective::SendRecv => time(collective, bytes, across),
    }
}

/// The longer of two times, and as much of the shorter as does not overlap.
pub(super) fn overlapped(a: Seconds, b: Seconds, overlap: Fraction) -> Seconds {
    a.max(b) + a.min(b) * overlap.rest().get()
}

/// How much longer an all-to-all over R racks takes than inside one, when the slow network binds.
///
/// `beta` is the rate inside a rack over the rate out of it. One rack has nothing to slow it down.
pub fn cross_rack_slowdown(beta: f64, racks: u64) -> f64 {
    let r = racks.max(1) as f64;
    (beta * (r - 1.0) / r).max(1.0)
}

/// Time to push bytes through so many adapters.
pub fn hop_serialisation(bytes: Bytes, rate: ByteRate, adapters: u64) -> Seconds {
    bytes / (rate * adapters as f64)
}
