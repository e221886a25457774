//! How long after its last use a token of a prompt is wanted again, from a trace or from a distribution of gaps.
//!
//! $$ h(T) = \frac{1}{N}\sum_i n_i\,[g_i \le T] \qquad K(T) = \frac{1}{N}\sum_j n_j \min(T, g'_j) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | h(T) | hit_rate | 1 | share of prompt tokens found in a cache that keeps entries for T after their last use |
//! | K(T) | kept | s | token-seconds kept for each prompt token |
//! | g_i | gap | s | since the last use of a block, and of every block before it: a prefix is as old as its oldest part |
//! | g'_j | next | s | until the next use of a block, endless when there is none |
//! | n, N | tokens | tokens | of a block, of all prompts |
//!
//! Assumes: a sliding lifetime (a use starts it anew), no limit of capacity, an entry there as soon as its request came.
//! Source: method of the prefix-hit figures computed from Mooncake's released traces (FAST'25), 512-token blocks.

use rackmath_spec::trace::Trace;
use rackmath_units::{Fraction, Seconds, Tokens};
use std::collections::HashMap;

/// When tokens are wanted again.
#[derive(Clone, Debug, PartialEq)]
pub struct Reuse {
    /// Gap of each reused piece and the tokens up to it, ascending.
    hits: Vec<(f64, f64)>,
    /// Gap to the next use, tokens up to it, and their token-seconds up to it, ascending.
    next: Vec<(f64, f64, f64)>,
    /// Tokens ever kept: all whose block is known.
    known: f64,
    /// Tokens of all prompts. Sums are of whole tokens and divided last, so that they stay exact.
    total: f64,
}

impl Reuse {
    /// From a trace whose requests name their blocks.
    pub fn of(trace: &Trace) -> Self {
        let total = trace.input().get().max(1.0);
        let (mut hits, mut next) = (Vec::new(), Vec::new());
        let mut known = 0.0;
        walk(trace, |_, blocks| {
            let mut oldest = 0.0f64;
            for (tokens, gap) in blocks {
                known += tokens;
                // The gap back to the last use is the gap forward of that use.
                if let Some(gap) = gap {
                    next.push((*gap, *tokens));
                }
                oldest = gap.map_or(f64::INFINITY, |g| oldest.max(g));
                if oldest.is_finite() {
                    hits.push((oldest, *tokens));
                }
            }
        });
        Self::new(hits, next, known, total)
    }

    /// From gaps and the share of prompt tokens wanted again after each; the rest never is.
    pub fn of_gaps(gaps: &[(Seconds, Fraction)]) -> Self {
        let pairs: Vec<(f64, f64)> = gaps.iter().map(|(gap, share)| (gap.get(), share.get())).collect();
        Self::new(pairs.clone(), pairs, 1.0, 1.0)
    }

    fn new(mut hits: Vec<(f64, f64)>, mut next: Vec<(f64, f64)>, known: f64, total: f64) -> Self {
        hits.sort_by(|a, b| a.0.total_cmp(&b.0));
        next.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        for hit in &mut hits {
            sum += hit.1;
            hit.1 = sum;
        }
        let (mut share, mut seconds) = (0.0, 0.0);
        let next = next
            .into_iter()
            .map(|(gap, tokens)| {
                share += tokens;
                seconds += tokens * gap;
                (gap, share, seconds)
            })
            .collect();
        Self { hits, next, known, total }
    }

    /// Share of prompt tokens found when entries are kept so long after their last use.
    pub fn hit_rate(&self, ttl: Seconds) -> Fraction {
        let below = self.hits.partition_point(|(gap, _)| *gap <= ttl.get());
        let found = below.checked_sub(1).map_or(0.0, |i| self.hits[i].1);
        Fraction::checked(found / self.total).unwrap_or(Fraction::ONE)
    }

    /// Token-seconds kept for each prompt token.
    pub fn kept(&self, ttl: Seconds) -> f64 {
        let below = self.next.partition_point(|(gap, ..)| *gap <= ttl.get());
        let (share, seconds) = below.checked_sub(1).map_or((0.0, 0.0), |i| (self.next[i].1, self.next[i].2));
        (seconds + (self.known - share).max(0.0) * ttl.get()) / self.total
    }

    /// The gap below which so much of the reuse lies.
    pub fn quantile(&self, share: Fraction) -> Option<Seconds> {
        let all = self.hits.last()?.1;
        let at = self.hits.partition_point(|(_, sum)| *sum < share.get() * all);
        self.hits.get(at).map(|(gap, _)| Seconds::s(*gap))
    }

    /// Every lifetime at which the hit rate changes, ascending, thinned to at most so many.
    pub fn lifetimes(&self, most: usize) -> Vec<Seconds> {
        let mut gaps: Vec<f64> = self.hits.iter().map(|(gap, _)| *gap).collect();
        gaps.dedup();
        let step = gaps.len().div_ceil(most.max(1)).max(1);
        let last = gaps.last().copied();
        let mut thin: Vec<f64> = gaps.into_iter().step_by(step).collect();
        if thin.last().copied() != last {
            thin.extend(last);
        }
        thin.into_iter().map(Seconds::s).collect()
    }
}

/// The tokens each request finds in a cache that keeps entries so long after their last use.
pub fn prefix_hits(trace: &Trace, ttl: Seconds) -> Vec<Tokens> {
    let mut all = vec![Tokens::ZERO; trace.requests.len()];
    walk(trace, |i, blocks| {
        let there = blocks.iter().take_while(|(_, gap)| gap.is_some_and(|g| g <= ttl.get()));
        all[i] = Tokens::new(there.map(|(tokens, _)| tokens).sum());
    });
    all
}

/// Visits every request with the tokens of each of its blocks and the time since each block was last used.
fn walk(trace: &Trace, mut visit: impl FnMut(usize, &[(f64, Option<f64>)])) {
    // Looked up by key only, never iterated: the order of a hash map cannot show.
    let mut last: HashMap<u64, f64> = HashMap::new();
    let block = trace.block.get();
    let mut blocks = Vec::new();
    for (i, r) in trace.requests.iter().enumerate() {
        blocks.clear();
        let now = r.time.get();
        for (at, id) in r.blocks.iter().enumerate() {
            let tokens = (r.input.get() - at as f64 * block).clamp(0.0, block);
            blocks.push((tokens, last.get(id).map(|then| now - then)));
        }
        // A block that occurs twice in one prompt is used once.
        r.blocks.iter().for_each(|id| {
            last.insert(*id, now);
        });
        visit(i, &blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rackmath_spec::trace::{TraceFormat, TraceRequest};

    fn trace(rows: &[(f64, f64, &[u64])]) -> Trace {
        let request = |(time, input, blocks): &(f64, f64, &[u64])| TraceRequest {
            time: Seconds::s(*time),
            input: Tokens::new(*input),
            output: Tokens::new(1.0),
            blocks: blocks.to_vec(),
            logged: None,
            turn: None,
        };
        Trace {
            requests: rows.iter().map(request).collect(),
            block: Tokens::new(512.0),
            format: TraceFormat::Mooncake,
            timed: true,
            reversed: 0,
            columns: Default::default(),
        }
    }

    #[test]
    fn a_prefix_is_as_old_as_its_oldest_block() {
        // Blocks 1 and 2 at 0 s; block 1 alone at 50 s; both at 100 s: block 1 is 50 s old, block 2 is 100 s.
        let t = trace(&[(0.0, 1024.0, &[1, 2]), (50.0, 512.0, &[1]), (100.0, 1024.0, &[1, 2])]);
        let r = Reuse::of(&t);
        let all = 2560.0;
        assert_eq!(r.hit_rate(Seconds::s(49.0)).get(), 0.0);
        assert_eq!(r.hit_rate(Seconds::s(50.0)).get(), 1024.0 / all);
        assert!((r.hit_rate(Seconds::s(100.0)).get() - 1536.0 / all).abs() < 1e-12);
        assert_eq!(prefix_hits(&t, Seconds::s(60.0))[2].get(), 512.0);
        // Kept for 60 s at most: block 1 for 50 and 50 and 60, block 2 for 60 and 60 seconds.
        assert!((r.kept(Seconds::s(60.0)) - 512.0 * (50.0 + 50.0 + 60.0 + 60.0 + 60.0) / all).abs() < 1e-9);
        assert_eq!(r.quantile(Fraction::new(0.5)), Some(Seconds::s(50.0)));
        // A gap in the prefix hides what follows.
        let t = trace(&[(0.0, 1024.0, &[1, 2]), (10.0, 1024.0, &[3, 2])]);
        assert_eq!(Reuse::of(&t).hit_rate(Seconds::s(1e6)).get(), 0.0);
    }

    proptest! {
        #[test]
        fn longer_lives_never_hit_less_and_never_keep_less(
            gaps in prop::collection::vec((0.0f64..1e5, 0.0f64..0.05), 1..20), a in 0.0f64..1e5, b in 0.0f64..1e5
        ) {
            let gaps: Vec<_> = gaps.into_iter().map(|(g, s)| (Seconds::s(g), Fraction::new(s))).collect();
            let r = Reuse::of_gaps(&gaps);
            let (a, b) = (Seconds::s(a.min(b)), Seconds::s(a.max(b)));
            prop_assert!(r.hit_rate(a) <= r.hit_rate(b));
            prop_assert!(r.kept(a) <= r.kept(b) + 1e-9);
        }

        #[test]
        fn the_curve_and_the_request_by_request_count_agree(
            times in prop::collection::vec(0.0f64..1000.0, 1..30), seed in 0u64..1000, ttl in 0.0f64..1000.0
        ) {
            let mut times = times;
            times.sort_by(f64::total_cmp);
            let ids: Vec<Vec<u64>> =
                times.iter().enumerate().map(|(i, _)| (0..=(seed + i as u64) % 4).map(|b| b * 10 + (seed * 7 + i as u64) % (b + 1)).collect()).collect();
            let rows: Vec<(f64, f64, &[u64])> =
                times.iter().zip(&ids).map(|(t, ids)| (*t, ids.len() as f64 * 512.0 - 100.0, ids.as_slice())).collect();
            let t = trace(&rows);
            let counted: f64 = prefix_hits(&t, Seconds::s(ttl)).iter().map(|h| h.get()).sum();
            let curve = Reuse::of(&t).hit_rate(Seconds::s(ttl)).get() * t.input().get();
            prop_assert!((counted - curve).abs() < 1e-6 * t.input().get());
        }
    }
}
