//! Every configuration of a space as a row of a flat table, block by block, in the order of their numbers.
//!
//! Blocks are worked out on many threads and handed over one after the other, so that the rows do not depend on how many
//! there are; a shard's rows are those of its part, and the rows of all shards one after the other are those of the whole.

use self::Kind::{Amount, Count, Flag, Word};
use super::{Entry, Request, Worked};
use crate::desk::prelude::*;
use rackmath_theory::pass::Limit;
use rackmath_theory::plan::Estimate;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Configurations looked at together.
const BLOCK: u64 = 32_768;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Count,
    /// An amount.
    Amount,
    /// One of [`Sweep::words`].
    Word,
    /// Yes or no.
    Flag,
}

/// Names and kinds of the columns. Counts of the pool of prompts are 0 where prompts and answers share their chips.
#[rustfmt::skip] // a table
pub const COLUMNS: [(&str, Kind); 36] = [
    ("index", Count), ("system", Word), ("engine", Word), ("weights", Word), ("kv", Word),
    ("tp", Count), ("pp", Count), ("dp", Count), ("ep", Count), ("expert_tp", Count), ("instances", Count),
    ("prefill_system", Word), ("prefill_tp", Count), ("prefill_pp", Count), ("prefill_dp", Count),
    ("prefill_ep", Count), ("prefill_expert_tp", Count), ("prefill_instances", Count),
    ("chunk", Count), ("drafts", Count), ("concurrency_per_group", Count), ("replicas", Count), ("chips", Count),
    ("ttft_ms", Amount), ("tpot_ms", Amount), ("e2e_ms", Amount), ("tok_s_per_user", Amount),
    ("tok_s_per_chip", Amount), ("usd_per_mtok", Amount), ("usd_per_hour", Amount), ("power_kw", Amount),
    ("sequences_that_fit", Amount), ("headroom", Amount),
    ("binding", Word), ("meets_limits", Flag), ("offload", Flag),
];

/// One column of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Counts(Vec<i64>),
    /// Amounts.
    Amounts(Vec<f64>),
    /// Numbers of words.
    Words(Vec<u32>),
    /// Yes or no.
    Flags(Vec<bool>),
}

/// Rows of neighbouring configurations, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The configurations that were looked at.
    pub range: Range<u64>,
    /// Rows: the configurations that exist.
    pub rows: usize,
    /// One for each of [`COLUMNS`].
    pub columns: Vec<Column>,
}

/// A space ready to be written down.
pub struct Sweep {
    worked: Worked,
    range: Range<u64>,
    words: Vec<String>,
    /// Words of each row: system, engine, weights, cache.
    named: Vec<[u32; 4]>,
    feasible: bool,
}

impl Sweep {
    /// Prepares shard i of n, counted from 1; only what meets the limits where that is asked for.
    pub fn new(
        catalog: &Catalog,
        request: &Request,
        (shard, of): (u64, u64),
        feasible: bool,
        effort: impl Into<Effort>,
    ) -> Result<Self, Error> {
        super::search::checked(shard, of)?;
        if let cuts @ [_, ..] = &*super::layouts::cuts(&request.dcp)? {
            return Err(Error::value("dcp", format!("{cuts:?}"), "1: rows have no column for it"));
        }
        let worked = Worked::new(catalog, request, &effort.into())?;
        let families = worked.space.part(shard - 1, of);
        let range = worked.space.first(families.start)..worked.space.first(families.end);
        // No word, then what binds, then what kinds are made of.
        let mut words = vec![String::new()];
        words.extend(Limit::ALL.iter().map(|l| l.name().to_owned()));
        let mut number = |word: String| {
            let known = words.iter().position(|w| *w == word);
            known.unwrap_or_else(|| {
                words.push(word);
                words.len() - 1
            }) as u32
        };
        let named = worked.made.rows.iter().map(|row| {
            let on = row.on();
            let words = [on.system.id.clone(), on.engine.id.clone(), on.formats.linear.to_string(), on.kv.to_string()];
            words.map(&mut number)
        });
        let named = named.collect();
        Ok(Self { worked, range, words, named, feasible })
    }

    /// Configurations of this shard, whether or not they exist.
    pub fn configurations(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// What the numbers of words stand for.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Hands every block, turned into something on some thread, to `take`, in order, until it says no or fails, or nobody wants
    /// them any more. How many configurations were handed over.
    pub fn run<T: Send, E>(
        &self,
        threads: usize,
        turn: impl Fn(Block) -> T + Sync,
        mut take: impl FnMut(T, &Range<u64>) -> Result<bool, E>,
    ) -> Result<u64, E> {
        let blocks = self.configurations().div_ceil(BLOCK);
        let n = (threads.max(1) as u64).min(blocks.max(1));
        let turn = &turn;
        std::thread::scope(|scope| {
            let lines: Vec<Receiver<(T, Range<u64>)>> = (0..n)
                .map(|k| {
                    let (send, receive) = sync_channel(1);
                    scope.spawn(move || self.work((k..blocks).step_by(n as usize), turn, &send));
                    receive
                })
                .collect();
            let mut done = 0;
            for at in 0..blocks {
                // A thread ends early only when nobody listens or wants more.
                let Ok((one, range)) = lines[(at % n) as usize].recv() else { break };
                let more = take(one, &range)?;
                done = range.end - self.range.start;
                if !more {
                    break;
                }
            }
            Ok(done)
        })
    }

    fn work<T>(
        &self,
        blocks: impl Iterator<Item = u64>,
        turn: impl Fn(Block) -> T,
        send: &SyncSender<(T, Range<u64>)>,
    ) {
        for at in blocks {
            if self.worked.effort.check().is_err() {
                return;
            }
            let first = self.range.start + at * BLOCK;
            let range = first..(first + BLOCK).min(self.range.end);
            if send.send((turn(self.block(range.clone())), range)).is_err() {
                return;
            }
        }
    }

    /// The rows of a range of configurations.
    fn block(&self, range: Range<u64>) -> Block {
        let empty = |(_, kind): &(&str, Kind)| match kind {
            Count => Column::Counts(Vec::new()),
            Amount => Column::Amounts(Vec::new()),
            Word => Column::Words(Vec::new()),
            Flag => Column::Flags(Vec::new()),
        };
        let mut block = Block { range: range.clone(), rows: 0, columns: COLUMNS.iter().map(empty).collect() };
        let (space, q) = (&self.worked.space, &self.worked.question);
        for index in range {
            let Some(e) = space.estimate(index, q.output, q.traffic) else { continue };
            let meets = q.limits.broken(&e) == 0;
            if meets || !self.feasible {
                self.push(&mut block, index, &e, meets);
            }
        }
        block
    }

    fn push(&self, block: &mut Block, index: u64, e: &Estimate, meets: bool) {
        let choice = self.worked.chosen(index);
        let row = choice.row;
        let [system, engine, weights, kv] = self.named[choice.c.row];
        let degrees = |row: &Entry| {
            let d = row.on().layout.degrees();
            [d.tp, d.pp, d.dp, d.ep, d.etp].map(|n| n as i64)
        };
        let mine = degrees(row);
        let (other, theirs, np) = choice.prompts.as_ref().map_or((0, [0; 5], 0.0), |p| {
            (self.named[self.worked.space.prefills[p.at].row][0], degrees(p.row), p.instances)
        });
        let counts = [index as i64].into_iter().chain(mine).chain([choice.instances as i64]).chain(theirs).chain([
            np as i64,
            row.chunk as i64,
            row.drafts.0 as i64,
            choice.per_group as i64,
            e.replicas as i64,
            e.chips as i64,
        ]);
        let tokens = e.rate * self.worked.question.output;
        let amounts = [
            e.ttft * 1e3,
            e.tpot * 1e3,
            e.e2e * 1e3,
            1.0 / e.tpot,
            tokens / e.unit_chips,
            e.usd_per_mtok,
            e.usd_per_hour,
            e.watts / 1e3,
            row.room,
            e.headroom,
        ];
        let binding = 1 + e.binding as u32;
        let (mut counts, mut amounts) = (counts, amounts.into_iter());
        let mut flags = [meets, choice.offload().is_some()].into_iter();
        let mut words = [system, engine, weights, kv, other, binding].into_iter();
        for column in &mut block.columns {
            match column {
                Column::Counts(all) => all.extend(counts.next()),
                Column::Amounts(all) => all.extend(amounts.next()),
                Column::Words(all) => all.extend(words.next()),
                Column::Flags(all) => all.extend(flags.next()),
            }
        }
        block.rows += 1;
    }
}
