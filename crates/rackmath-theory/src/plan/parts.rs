//! A space in parts: threads of one machine, shards of many.
//!
//! $$ \text{part } k \text{ of } n = \{ f : F(\lfloor k N / n \rfloor) \le f < F(\lfloor (k + 1) N / n \rfloor) \} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N | [`Space::len`] | 1 | configurations |
//! | F | [`Space::family`] | 1 | the family of a configuration |
//! | k, n | part, of | 1 | the part, counted from 0, and how many there are |
//!
//! Parts are whole families, next to each other, and together everything: what is found in them merges into what is found
//! in all ([`super::Found::merged`]). A search passes over only what is strictly worse than something it has seen, so what
//! a part has not seen of the others costs it time and nothing else.

use super::bounds::Pools;
use super::search::{Found, Question, only, search_from};
use super::space::Space;
use crate::stats::Fnv;
use rackmath_units::{Cancelled, Effort};
use std::ops::Range;

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
