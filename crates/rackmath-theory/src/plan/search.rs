//! The best of a space, the frontier, and what stands in the way: branch and bound over families of configurations.
//!
//! A family shares its rows. For two pools there are bounds that no configuration beats (`bounds`): of a row with all
//! pools of prompts, with a group of them, of one of its levels, of a pair at a level. Where a bound breaks a limit, or is worse than what is kept
//! and below the frontier, what it bounds is not looked at. Only what is strictly worse is dropped, so the result is that of
//! looking at everything, whatever the order and the number of threads.
//!
//! Kept are the best configuration of each of the best families (neighbouring levels of one deployment are no news), and
//! the points no other beats in both tokens per second of a user and yield.
//!
//! $$ \text{part } k \text{ of } n = \{ f : F(\lfloor k N / n \rfloor) \le f < F(\lfloor (k + 1) N / n \rfloor) \} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N | [`Space::len`] | 1 | configurations |
//! | F | [`Space::family`] | 1 | the family of a configuration |
//! | k, n | part, of | 1 | the part, counted from 0, and how many there are |
//!
//! Parts, for threads of one machine or shards of many, are whole families, next to each other, and together everything: what is
//! found in them merges into what is found in all ([`Found::merged`]).

use super::bounds::{Pools, Prompts};
use super::space::{Space, State};
use super::{Bound, Estimate, Limits, Objective, Standby, Traffic};
use crate::stats::Fnv;
use rackmath_units::{Cancel, Cancelled, Effort};
use std::cmp::Ordering;
use std::ops::Range;

/// What is asked of a space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// Tokens of an answer.
    pub output: f64,
    pub traffic: Traffic,
    pub limits: Limits,
    pub objective: Objective,
    pub keep: usize,
    /// The other axis of the frontier; none when it is not wanted.
    pub frontier: Option<Yield>,
    /// Whether to look for what breaks one limit only.
    pub near: bool,
}

/// What a frontier has against tokens per second of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// Output tokens per second and chip.
    PerChip,
    /// Output tokens per dollar.
    PerDollar,
}

/// A configuration and its estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    pub index: u64,
    pub family: u64,
    pub estimate: Estimate,
}

/// The configuration that breaks one limit only, and by the least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub bound: Bound,
    pub ranked: Ranked,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The best of each of the best families, best first.
    pub top: Vec<Ranked>,
    /// The frontier, fastest user first; limits on time per token and on whole requests do not count for it.
    pub frontier: Vec<Ranked>,
    /// For each limit, what would do if it were moved.
    pub near: Vec<Near>,
}

/// Limits that the frontier's axis stands for.
const FREE: u16 = 1 << Bound::Tpot as u16 | 1 << Bound::E2e as u16;

impl Question {
    /// Which of two comes first.
    pub fn order(&self, a: &Ranked, b: &Ranked) -> Ordering {
        let score = |r: &Ranked| self.objective.score(&r.estimate);
        // Equal scores: the quicker answer, then the smaller number.
        (score(a).total_cmp(&score(b))).then(a.estimate.e2e.total_cmp(&b.estimate.e2e)).then(a.index.cmp(&b.index))
    }

    /// Where an estimate lies: tokens per second of a user, and yield of one replica.
    pub fn point(&self, e: &Estimate) -> (f64, f64) {
        self.point_of(e.tpot, e.rate, e.unit_chips, e.unit_usd_s)
    }

    fn point_of(&self, tpot: f64, rate: f64, chips: f64, usd_s: f64) -> (f64, f64) {
        let per = if self.frontier == Some(Yield::PerDollar) { usd_s } else { chips };
        (1.0 / tpot, rate * self.output / per)
    }
}

impl Found {
    /// Both together.
    #[must_use]
    pub fn merged(mut self, other: Self, q: &Question) -> Self {
        for ranked in other.top {
            self.rank(ranked, q);
        }
        for ranked in other.frontier {
            self.extend(ranked, q);
        }
        for near in other.near {
            self.approach(near);
        }
        self
    }

    fn rank(&mut self, new: Ranked, q: &Question) {
        if let Some(at) = self.top.iter().position(|r| r.family == new.family) {
            if q.order(&new, &self.top[at]) != Ordering::Less {
                return;
            }
            self.top.remove(at);
        }
        let at = self.top.partition_point(|r| q.order(r, &new) == Ordering::Less);
        if at < q.keep {
            self.top.insert(at, new);
            self.top.truncate(q.keep);
        }
    }

    /// The first point of the frontier that is not faster, in falling order of speed and rising order of yield.
    fn place(&self, x: f64, q: &Question) -> usize {
        self.frontier.partition_point(|r| q.point(&r.estimate).0 > x)
    }

    fn beaten(&self, (x, y): (f64, f64), q: &Question) -> bool {
        let at = self.place(x, q);
        let point = |i: usize| q.point(&self.frontier[i].estimate);
        // The point before is strictly faster and has the most of all faster ones; one at the same speed may have more.
        (at > 0 && point(at - 1).1 >= y) || (at < self.frontier.len() && point(at).0 == x && point(at).1 > y)
    }

    fn extend(&mut self, new: Ranked, q: &Question) {
        let (x, y) = q.point(&new.estimate);
        if self.beaten((x, y), q) {
            return;
        }
        let at = self.place(x, q);
        let mut end = at;
        while end < self.frontier.len() && q.point(&self.frontier[end].estimate).1 <= y {
            let (x1, y1) = q.point(&self.frontier[end].estimate);
            if x1 == x && y1 == y && self.frontier[end].index < new.index {
                return;
            }
            end += 1;
        }
        self.frontier.splice(at..end, [new]);
    }

    fn approach(&mut self, new: Near) {
        let far = |n: &Near| n.bound.signed(n.bound.amount(&n.ranked.estimate));
        match self.near.iter_mut().find(|n| n.bound == new.bound) {
            None => {
                self.near.push(new);
                self.near.sort_by_key(|n| n.bound);
            }
            Some(old) => {
                let order = far(&new).total_cmp(&far(old)).then(new.ranked.index.cmp(&old.ranked.index));
                if order == Ordering::Less {
                    *old = new;
                }
            }
        }
    }

    fn look(&mut self, ranked: Ranked, q: &Question) {
        let broken = q.limits.broken(&ranked.estimate);
        if broken == 0 {
            self.rank(ranked, q);
        }
        if q.frontier.is_some() && broken & !FREE == 0 {
            self.extend(ranked, q);
        }
        if q.near && broken.is_power_of_two() {
            self.approach(Near { bound: Bound::ALL[broken.trailing_zeros() as usize], ranked });
        }
    }

    /// Whether nothing that an optimistic estimate bounds can be of use.
    fn useless(&self, best: &Estimate, point: (f64, f64), q: &Question) -> bool {
        let broken = q.limits.broken(best);
        if q.near && self.nearer(best, broken, q) {
            return false;
        }
        let in_front = || q.frontier.is_some() && broken & !FREE == 0 && !self.beaten(point, q);
        let full = self.top.len() >= q.keep;
        let worse = full && self.top.last().is_none_or(|r| q.objective.score(best) > q.objective.score(&r.estimate));
        (broken != 0 || worse) && !in_front()
    }

    /// The same, where so many tokens a second and the point tell already.
    fn outdone(&self, throughput: f64, point: (f64, f64), q: &Question) -> bool {
        let full = q.objective == Objective::Throughput && !q.near && self.top.len() >= q.keep;
        full && self.top.last().is_none_or(|r| throughput < r.estimate.throughput)
            && (q.frontier.is_none() || self.beaten(point, q))
    }

    /// Whether something, which breaks at least what its bound `best` breaks, may break one limit by less than what is known.
    fn nearer(&self, best: &Estimate, broken: u16, q: &Question) -> bool {
        let closer = |bound: Bound| {
            let known = self.near.iter().find(|n| n.bound == bound);
            let amount = |e: &Estimate| bound.signed(bound.amount(e));
            q.limits.get(bound).is_some() && known.is_none_or(|n| amount(best) <= amount(&n.ranked.estimate))
        };
        match broken.count_ones() {
            0 => Bound::ALL.iter().copied().any(closer),
            1 => closer(Bound::ALL[broken.trailing_zeros() as usize]),
            _ => false,
        }
    }
}

/// What is found when nothing but one configuration was looked at.
fn only(space: &Space, q: &Question, index: u64) -> Found {
    let mut found = Found::default();
    if let Some(estimate) = space.estimate(index, q.output, q.traffic) {
        found.look(Ranked { index, family: space.family(index), estimate }, q);
    }
    found
}

/// Looks at the families of a range, with something found before: the better it is the more is passed over.
fn search_from(
    space: &Space,
    pools: &Pools,
    q: &Question,
    families: Range<u64>,
    mut found: Found,
    cancel: &Cancel,
) -> Result<Found, Cancelled> {
    let rows = space.rows.len() as u64;
    for family in families.start..families.end.min(rows) {
        cancel.check()?;
        for index in space.first(family)..space.first(family) + space.family_size(family) {
            if let Some(estimate) = space.estimate(index, q.output, q.traffic) {
                found.look(Ranked { index, family, estimate }, q);
            }
        }
    }
    let n = space.prefills.len() as u64;
    let (mut at, end) = (families.start.max(rows) - rows, families.end.max(rows) - rows);
    let mut kept = Vec::new();
    while at < end {
        cancel.check()?;
        let next = ((at / n + 1) * n).min(end);
        pairs(space, pools, q, at..next, &mut kept, &mut found);
        at = next;
    }
    Ok(found)
}

/// Pairs of one row with some pools of prompts: bounds for the row, for a group, then for a level, then for a pair at a level.
fn pairs(
    space: &Space,
    pools: &Pools,
    q: &Question,
    pairs: Range<u64>,
    kept: &mut Vec<(usize, Prompts)>,
    found: &mut Found,
) {
    let n = space.prefills.len() as u64;
    let (row, first) = ((pairs.start / n) as usize, (pairs.start % n) as usize);
    let range = first..first + (pairs.end - pairs.start) as usize;
    // Where only the best is wanted, what the row can do within the limits on its own state bounds all its levels.
    let (tpot, headroom) = (q.limits.get(Bound::Tpot), q.limits.get(Bound::Headroom));
    let within = |s: &State| tpot.is_none_or(|t| s.tpot <= t) && headroom.is_none_or(|h| s.headroom >= h);
    let all_levels = q.frontier.is_some() || q.near;
    let Some(state) = space.best_found(row, |s| all_levels || within(s)) else { return };
    let dull = |state: &State, prompts: &Prompts, found: &Found| {
        // Matched in place: to move an estimate as soon as it is written takes longer than to work it out.
        let bound = space.bound(row, state, prompts, q.output, q.traffic);
        let (best, (per_chip, per_dollar)) = &bound;
        let y = if q.frontier == Some(Yield::PerDollar) { *per_dollar } else { *per_chip };
        found.useless(best, (1.0 / best.tpot, y), q)
    };
    let seen = || pools.seen(space, row, range.clone());
    let Some(all) = seen().map(|(least, _)| least).reduce(Prompts::least) else { return };
    if dull(&state, &all, found) {
        return;
    }
    kept.clear();
    for (_, pools) in seen().filter(|(least, _)| !dull(&state, least, found)) {
        kept.extend(pools.filter(|(_, prompts)| !dull(&state, prompts, found)));
    }
    let Some(all) = kept.iter().map(|(_, prompts)| *prompts).reduce(Prompts::least) else { return };
    for (level, state) in space.found.of(row).iter().enumerate() {
        if state.rate <= 0.0 || dull(state, &all, found) {
            continue;
        }
        for (p, prompts) in kept.iter() {
            if !dull(state, prompts, found) {
                ratios(space, q, (row, level, *p), found);
            }
        }
    }
}

/// Every ratio of a pair at a level. How long prompts wait takes longer to find out than all the rest, so it comes last.
fn ratios(space: &Space, q: &Question, (row, level, p): (usize, usize, usize), found: &mut Found) {
    let family = (space.rows.len() + row * space.prefills.len() + p) as u64;
    for (ratio, instances) in space.ratios.iter().enumerate() {
        let mut made = space.split_unit(row, level, p, *instances);
        let Some(split) = &mut made else { continue };
        // Users who wait longer ask less often: how many replicas they take is known only with the wait.
        if matches!(q.traffic, Traffic::Users { .. }) {
            split.unit.ttft = space.waited(split);
        }
        let unit = &split.unit;
        let point = q.point_of(unit.state.tpot, unit.rate, unit.chips, unit.usd_s);
        let (replicas, served) = unit.replicas(q.output, q.traffic);
        if found.outdone(served * q.output, point, q) {
            continue;
        }
        let mut estimate = unit.replicated(q.output, (replicas, served));
        if found.useless(&estimate, point, q) {
            continue;
        }
        estimate.wait_until(space.waited(split), q.output);
        let index = space.first(family) + (ratio * space.levels + level) as u64;
        found.look(Ranked { index, family, estimate }, q);
    }
}

impl Space {
    /// The families of one part of `of`, counted from 0: about equal numbers of configurations.
    pub fn part(&self, part: u64, of: u64) -> Range<u64> {
        self.part_within(0..self.families(), part, of)
    }

    /// The same of a range of families.
    fn part_within(&self, all: Range<u64>, part: u64, of: u64) -> Range<u64> {
        let (first, last) = (self.first(all.start), self.first(all.end));
        let cut = |k: u64| {
            if k == 0 {
                return all.start;
            }
            // Products of two counts do not fit into 64 bits.
            let wanted = first + (u128::from(last - first) * u128::from(k) / u128::from(of.max(1))) as u64;
            if k >= of || wanted >= last { all.end } else { self.family(wanted) }
        };
        cut(part)..cut(part + 1)
    }

    /// A number that tells spaces apart: two that differ in anything differ in it, but for one chance in 2^64.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.count(self.rows.len());
        hash.count(self.levels);
        for (at, row) in self.rows.iter().enumerate() {
            for n in [row.key, row.machine, row.class] {
                hash.word(n.into());
            }
            hash.amounts([row.chips, row.scale, row.usd_s, row.watts, row.host, row.offered]);
            for states in [self.whole.of(at), self.found.of(at)] {
                hash.count(states.len());
                for state in states {
                    hash.amounts([state.tpot, state.ttft, state.rate, state.headroom]);
                    hash.count(state.binding as usize);
                }
            }
        }
        hash.count(self.prefills.len());
        for p in &self.prefills {
            hash.count(p.row);
            hash.amounts([p.prompts.service, p.prompts.alone, p.prompts.groups]);
        }
        hash.amounts([self.prompt_cv2]);
        match self.standby {
            Standby::None => {}
            Standby::Replicas(n) => hash.amounts([n]),
            Standby::Available { target, down } => hash.amounts([target, down]),
        }
        hash.amounts(self.send.iter().flatten().copied());
        hash.amounts(self.ratios.iter().flat_map(|(p, d)| [*p, *d]));
        hash.0
    }
}

/// Pairs of rows that are worth a thread of their own; in tests, where spaces are small, any.
const FEWEST: u64 = if cfg!(test) { 1 } else { 256 };

/// Looks at everything; the result does not depend on the number of threads.
pub fn search_all(space: &Space, q: &Question, effort: &Effort) -> Result<Found, Cancelled> {
    search_part(space, q, 0..space.families(), effort, None)
}

/// Looks at a range of families, knowing a configuration of it that may be good; the result is the same with any or none.
pub fn search_part(
    space: &Space,
    q: &Question,
    families: Range<u64>,
    effort: &Effort,
    known: Option<u64>,
) -> Result<Found, Cancelled> {
    // Rows are few and quick, and what they do lets every thread pass over most pairs.
    let rows = (space.rows.len() as u64).clamp(families.start, families.end);
    let known = known.map_or_else(Found::default, |index| only(space, q, index));
    let pools = &Pools::new(space);
    let search = |families, found| search_from(space, pools, q, families, found, &effort.cancel);
    let known = search(families.start..rows, known)?;
    let pairs = rows..families.end;
    let n = (effort.threads.max(1) as u64).min((pairs.end - pairs.start) / FEWEST).max(1);
    if n == 1 {
        return search(pairs, known);
    }
    let (known, search) = (&known, &search);
    std::thread::scope(|scope| {
        let part = |k: u64| space.part_within(pairs.clone(), k, n);
        let spawn = |part| scope.spawn(move || search(part, known.clone()));
        let parts: Vec<_> = (0..n).map(part).map(spawn).collect();
        let mut done = parts.into_iter().map(|part| part.join().expect("a search does not panic"));
        done.try_fold(Found::default(), |all, part| Ok(all.merged(part?, q)))
    })
}
