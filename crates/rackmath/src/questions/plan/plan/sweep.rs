//! Every configuration of a space as a row of a flat table, block by block, in the order of their numbers.
//!
//! A shard's rows are those of its part, and the rows of all shards one after the other are those of the whole.

use super::{Entry, Request, Worked};
use crate::desk::prelude::*;
use crate::table::Kind::{self, Amount, Count, Flag, Word};
use crate::table::{Block, Column, Rows};
use rackmath_theory::pass::Limit;
use rackmath_theory::plan::Estimate;
use rackmath_theory::stats::Fnv;
use std::ops::Range;

/// Configurations looked at together.
const BLOCK: u64 = 32_768;

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

/// A space ready to be written down.
pub struct Sweep {
    worked: Worked,
    range: Range<u64>,
    columns: Vec<(String, Kind)>,
    words: Vec<String>,
    /// Words of each row: system, engine, weights, cache.
    named: Vec<[u32; 4]>,
    feasible: bool,
    fingerprint: String,
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
        let columns = COLUMNS.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
        // The space is what the catalogue says; which of it is asked for, and which rows meet the limits, is the request.
        let mut hash = Fnv(worked.space.fingerprint());
        hash.bytes(serde_json::to_string(request).map_err(|e| Error::said(e.to_string()))?.as_bytes());
        hash.bytes(env!("CARGO_PKG_VERSION").as_bytes());
        hash.count(usize::from(feasible));
        let fingerprint = format!("{:016x}", hash.0);
        Ok(Self { worked, range, columns, words, named, feasible, fingerprint })
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
        let mut flags = [meets, choice.offload().is_some()].map(Some).into_iter();
        let mut words = [system, engine, weights, kv, other, binding].into_iter();
        for column in &mut block.columns {
            match column {
                Column::Counts(all) => all.extend(counts.next()),
                Column::Amounts(all) => all.extend(amounts.next()),
                Column::Words(all) => all.extend(words.next()),
                Column::Texts(_) => {}
                Column::Flags(all) => all.extend(flags.next()),
            }
        }
        block.rows += 1;
    }
}

impl Rows for Sweep {
    fn columns(&self) -> &[(String, Kind)] {
        &self.columns
    }

    fn words(&self) -> &[String] {
        &self.words
    }

    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    fn stride(&self) -> u64 {
        BLOCK
    }

    fn effort(&self) -> &Effort {
        &self.worked.effort
    }

    fn whole(&self) -> u64 {
        self.worked.space.len()
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    /// The rows of a range of configurations.
    fn block(&self, range: Range<u64>) -> Option<Block> {
        let mut block = Block::empty(range.clone(), COLUMNS.iter().map(|(_, kind)| *kind));
        let (space, q) = (&self.worked.space, &self.worked.question);
        for index in range {
            let Some(e) = space.estimate(index, q.output, q.traffic) else { continue };
            let meets = q.limits.broken(&e) == 0;
            if meets || !self.feasible {
                self.push(&mut block, index, &e, meets);
            }
        }
        Some(block)
    }
}
