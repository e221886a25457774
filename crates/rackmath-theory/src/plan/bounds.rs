//! Estimates that no configuration of a group beats: what lets a search pass over the group.
//!
//! $$ d = \frac{c_d}{r} \qquad f = \frac{c_p}{\beta \mu} \qquad
//!    \frac{\text{chips}}{\lambda} \ge d + f \qquad \mathrm{TTFT} \ge T(1) + t_{send} + t_{first} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | c_d, c_p | chips | 1 | chips of an instance that decodes, of one that computes prompts |
//! | r, μ | rate, service | 1/s | requests an instance ends, prompts an instance computes |
//! | β | [`BUSIEST`](super::pools::BUSIEST) | 1 | most of the time prompts' chips may work |
//! | d, f | per | s | chips for one request a second: no whole numbers can do with fewer |
//!
//! Proof: a ratio of n_p to n_d has n_d r ≤ β n_p μ, so its prompts take n_p c_p ≥ f n_d r chips; replicas and instances are
//! whole, waiting is not negative, and a replica has at least one instance of each kind. A group of prompt pools is bounded
//! by the least of each of their amounts. Every bound is loosened by more than rounding can err.
//!
//! Pairs are never tabulated: the pools of prompts stand in groups that a row sees alike (same machine, same time to send),
//! and a row looks into a group only where the group's bound is of use.

use super::space::{MOST_DECODE, Space, State};
use super::{Estimate, Traffic};
use std::collections::BTreeMap;
use std::ops::Range;

/// What the chips for prompts take at least: one pool of them, or the least of several in each respect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prompts {
    /// One instance: chips, chips of the limit, dollars a second, watts.
    one: [f64; 4],
    /// The same for one request a second.
    per: [f64; 4],
    /// Seconds of a prompt alone, and of sending its cache once it is known where to.
    first: f64,
    /// Whether all run on the machine of the row that decodes.
    same: bool,
}

/// Pools of prompts of one key, machine and class.
struct Group {
    machine: u32,
    class: usize,
    least: Prompts,
    /// Their numbers, rising, each with what it takes.
    pools: Vec<(usize, Prompts)>,
}

/// All pools of prompts, by the key of the rows they go with.
pub(super) struct Pools(BTreeMap<u32, Vec<Group>>);

/// Factors that loosen a bound.
const DOWN: f64 = 1.0 - 1e-9;
const UP: f64 = 1.0 + 1e-9;

impl Prompts {
    /// The least of both in each respect.
    pub(super) fn least(self, other: Self) -> Self {
        let least = |a: [f64; 4], b: [f64; 4]| std::array::from_fn(|i| a[i].min(b[i]));
        Self {
            one: least(self.one, other.one),
            per: least(self.per, other.per),
            first: self.first.min(other.first),
            same: self.same && other.same,
        }
    }
}

impl Pools {
    pub(super) fn new(space: &Space) -> Self {
        let mut groups: BTreeMap<(u32, u32, u32), Group> = BTreeMap::new();
        for (p, prefill) in space.prefills.iter().enumerate() {
            let row = &space.rows[prefill.row];
            let one = [1.0, row.scale, row.usd_s, row.watts].map(|x| x * row.chips);
            let per = one.map(|x| x / (space.busiest() * prefill.prompts.service));
            let prompts = Prompts { one, per, first: prefill.prompts.alone, same: false };
            let group = groups.entry((row.key, row.machine, row.class)).or_insert_with(|| Group {
                machine: row.machine,
                class: row.class as usize,
                least: prompts,
                pools: Vec::new(),
            });
            group.least = group.least.least(prompts);
            group.pools.push((p, prompts));
        }
        let mut keys: BTreeMap<u32, Vec<Group>> = BTreeMap::new();
        for ((key, ..), group) in groups {
            keys.entry(key).or_default().push(group);
        }
        Self(keys)
    }

    /// Groups that go with a row, as it sees them: the least of each, then its pools among those of a range.
    pub(super) fn seen<'a>(
        &'a self,
        space: &'a Space,
        row: usize,
        range: Range<usize>,
    ) -> impl Iterator<Item = (Prompts, impl Iterator<Item = (usize, Prompts)> + 'a)> + 'a {
        let r = &space.rows[row];
        self.0.get(&r.key).into_iter().flatten().filter_map(move |group| {
            let send = space.send[group.class][r.class as usize];
            let seen = move |p: Prompts| Prompts { first: p.first + send, same: group.machine == r.machine, ..p };
            let at = |end: usize| group.pools.partition_point(|(p, _)| *p < end);
            let within = &group.pools[at(range.start)..at(range.end)];
            (!within.is_empty()).then(|| (seen(group.least), within.iter().map(move |(p, all)| (*p, seen(*all)))))
        })
    }
}

impl Space {
    /// At least as good, in every respect, as every ratio of a row in a state with any of the pools of prompts; and output
    /// tokens per chip and second, and per dollar, that none of them exceeds.
    pub(super) fn bound(
        &self,
        row: usize,
        state: &State,
        prompts: &Prompts,
        output: f64,
        traffic: Traffic,
    ) -> (Estimate, (f64, f64)) {
        let r = &self.rows[row];
        let mine = [1.0, r.scale, r.usd_s, r.watts].map(|x| x * r.chips);
        // Chips of two machines are not added up: the machine most used up counts.
        let both = |a: [f64; 4], b: [f64; 4]| {
            let taken = if prompts.same { a[1] + b[1] } else { a[1].max(b[1]) };
            [a[0] + b[0], taken, a[2] + b[2], a[3] + b[3]]
        };
        let least = both(mine, prompts.one);
        let per = both(mine.map(|x| x / state.rate), prompts.per);
        let most = MOST_DECODE * state.rate;
        let (served, all) = match traffic {
            Traffic::Rate(rate) => (rate, std::array::from_fn(|i| least[i].max(rate * per[i]))),
            // How long they wait for each other is not known here: one unit at least.
            Traffic::Users { users, think } => {
                let e2e = prompts.first + state.ttft + state.tpot * (output - 1.0).max(0.0);
                (users / (e2e * DOWN + think), least)
            }
            Traffic::Fill(chips) => (most.max(chips / per[1]), least),
            Traffic::One => (most, least),
            Traffic::Within { chips, usd_s, watts } => {
                let few = (chips / per[1]).min(usd_s / per[2]).min(watts / per[3]);
                (most.max(few * UP), least)
            }
        };
        let ttft = prompts.first + state.ttft;
        let estimate = Estimate {
            tpot: state.tpot,
            ttft: ttft * DOWN,
            e2e: (ttft + state.tpot * (output - 1.0).max(0.0)) * DOWN,
            rate: most,
            unit_chips: least[0],
            unit_usd_s: least[2],
            replicas: 1.0,
            standby: 0.0,
            chips: all[0] * DOWN,
            taken: all[1] * DOWN,
            throughput: served * output * UP,
            usd_per_hour: all[2] * 3600.0 * DOWN,
            usd_per_mtok: per[2] / output * 1e6 * DOWN,
            watts: all[3] * DOWN,
            joules: per[3] / output * DOWN,
            headroom: state.headroom,
            binding: state.binding,
        };
        (estimate, (output / per[0] * UP, output / per[2] * UP))
    }

    /// A state at least as good, in every respect, as all of a row that only decodes and that `keep` lets pass, if any.
    pub(super) fn best_found(&self, row: usize, keep: impl Fn(&State) -> bool) -> Option<State> {
        self.found.of(row).iter().filter(|s| s.rate > 0.0 && keep(s)).copied().reduce(|best, s| State {
            tpot: best.tpot.min(s.tpot),
            ttft: best.ttft.min(s.ttft),
            rate: best.rate.max(s.rate),
            headroom: best.headroom.max(s.headroom),
            binding: s.binding,
        })
    }
}
