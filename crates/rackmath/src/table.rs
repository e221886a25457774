//! Flat tables too long to hold: rows in blocks, made on many threads and handed over in order.
//!
//! Blocks are worked out on many threads and taken one after the other, so that the rows do not depend on how many threads
//! there are; at most two blocks a thread are held at a time.

use crate::Error;
use rackmath_theory::stats::Fnv;
use rackmath_units::Effort;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{SyncSender, sync_channel};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A whole number.
    Count,
    /// An amount.
    Amount,
    /// One of [`Rows::words`].
    Word,
    /// Any text.
    Text,
    /// Yes or no.
    Flag,
}

/// A count that is not known.
pub const NO_COUNT: i64 = i64::MIN;

/// One column of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers; [`NO_COUNT`] where there is none.
    Counts(Vec<i64>),
    /// Amounts; not a number where there is none.
    Amounts(Vec<f64>),
    /// Numbers of words.
    Words(Vec<u32>),
    /// Texts; empty where there is none.
    Texts(Vec<String>),
    /// Yes or no.
    Flags(Vec<Option<bool>>),
}

impl Column {
    /// One without rows.
    pub fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Count => Self::Counts(Vec::new()),
            Kind::Amount => Self::Amounts(Vec::new()),
            Kind::Word => Self::Words(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
            Kind::Flag => Self::Flags(Vec::new()),
        }
    }

    /// Adds a value as JSON has it; nothing where it is of another kind.
    pub fn push(&mut self, cell: Option<&Value>) {
        match self {
            Self::Counts(all) => all.push(cell.and_then(Value::as_i64).unwrap_or(NO_COUNT)),
            Self::Amounts(all) => all.push(cell.and_then(Value::as_f64).unwrap_or(f64::NAN)),
            Self::Words(all) => all.push(0),
            Self::Flags(all) => all.push(cell.and_then(Value::as_bool)),
            Self::Texts(all) => all.push(match cell {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                // A sentence: which one it is.
                Some(Value::Object(remark)) if remark.contains_key("says") => {
                    remark["says"].as_str().unwrap_or_default().to_owned()
                }
                Some(other) => other.to_string(),
            }),
        }
    }
}

/// Neighbouring rows, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// What was looked at, by number.
    pub range: Range<u64>,
    /// Rows: of what was looked at, that which exists.
    pub rows: usize,
    /// One for each of [`Rows::columns`].
    pub columns: Vec<Column>,
}

impl Block {
    /// One without rows.
    pub fn empty(range: Range<u64>, kinds: impl Iterator<Item = Kind>) -> Self {
        Self { range, rows: 0, columns: kinds.map(Column::empty).collect() }
    }
}

/// A table that is worked out block by block.
pub trait Rows: Sync {
    /// Names and kinds of the columns.
    fn columns(&self) -> &[(String, Kind)];
    /// What the numbers of words stand for.
    fn words(&self) -> &[String];
    /// What is looked at, by number.
    fn range(&self) -> Range<u64>;
    /// How much of it together.
    fn stride(&self) -> u64;
    /// What ends it early.
    fn effort(&self) -> &Effort;
    /// The rows of a part of the range; nothing where it is not wanted any more.
    fn block(&self, range: Range<u64>) -> Option<Block>;
    /// What tells it apart from every other: question, catalogue and version.
    fn fingerprint(&self) -> String;
    /// How many numbers the whole of it has, of which the range may be a part.
    fn whole(&self) -> u64;

    /// How much is looked at, whether or not it becomes a row.
    fn looked_at(&self) -> u64 {
        let range = self.range();
        range.end - range.start
    }
}

/// Hands every block, turned into something on some thread, to `take`, in order, until it says no or fails, or nobody wants
/// them any more. How much of the range was handed over.
pub fn run<R: Rows + ?Sized, T: Send, E>(
    rows: &R,
    threads: usize,
    turn: impl Fn(Block) -> T + Sync,
    mut take: impl FnMut(T, &Range<u64>) -> Result<bool, E>,
) -> Result<u64, E> {
    let (all, stride) = (rows.range(), rows.stride().max(1));
    let blocks = (all.end - all.start).div_ceil(stride);
    let n = (threads.max(1) as u64).min(blocks.max(1));
    let work = |mine: std::iter::StepBy<Range<u64>>, send: &SyncSender<(T, Range<u64>)>| {
        for at in mine {
            if rows.effort().check().is_err() {
                return;
            }
            let first = all.start + at * stride;
            let range = first..(first + stride).min(all.end);
            let Some(block) = rows.block(range.clone()) else { return };
            if send.send((turn(block), range)).is_err() {
                return;
            }
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        let lines: Vec<_> = (0..n)
            .map(|k| {
                let (send, receive) = sync_channel(1);
                scope.spawn(move || work((k..blocks).step_by(n as usize), &send));
                receive
            })
            .collect();
        let mut done = 0;
        for at in 0..blocks {
            // A thread ends early only when nobody listens or wants more.
            let Ok((one, range)) = lines[(at % n) as usize].recv() else { break };
            let more = take(one, &range)?;
            done = range.end - all.start;
            if !more {
                break;
            }
        }
        Ok(done)
    })
}

/// Most shards anything is split into.
pub const MOST_SHARDS: u64 = 1_000_000;

/// The part of `0..whole` that is shard i of n, counted from 1.
pub fn part(whole: u64, (shard, of): (u64, u64)) -> Result<Range<u64>, Error> {
    if !(1..=of).contains(&shard) || of > MOST_SHARDS {
        return Err(Error::value("shard", format!("{shard}/{of}"), "i/n with i from 1 to n, such as 1/4"));
    }
    let cut = |k: u64| (u128::from(whole) * u128::from(k) / u128::from(of)) as u64;
    Ok(cut(shard - 1)..cut(shard))
}

/// Which shard a file holds, and of what.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Version of the format.
    pub rackmath_sweep_shard: u32,
    /// What is swept, with catalogue and version.
    pub fingerprint: String,
    /// Counted from 1.
    pub shard: u64,
    /// Of so many.
    pub of: u64,
    /// Points or configurations of the whole.
    pub whole: u64,
    /// How its rows are written.
    pub format: String,
    /// Names and kinds of the columns.
    pub columns: Vec<(String, Kind)>,
}

/// What stands below the rows of a shard: a file without it is not whole.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Rows.
    pub rows: u64,
    /// Hash of their text.
    pub checksum: String,
}

impl Head {
    /// The version of the format of shards.
    pub const VERSION: u32 = 1;

    /// Of a table, or of a part of it.
    pub fn of(rows: &(impl Rows + ?Sized), (shard, of): (u64, u64), format: &str) -> Self {
        Self {
            rackmath_sweep_shard: Self::VERSION,
            fingerprint: rows.fingerprint(),
            shard,
            of,
            whole: rows.whole(),
            format: format.into(),
            columns: rows.columns().to_vec(),
        }
    }

    /// The same for equal contents, another for others.
    pub fn file_name(&self) -> String {
        let digits = self.of.to_string().len();
        format!("{}-{:0digits$}-of-{}.{}", self.fingerprint, self.shard, self.of, self.format)
    }
}

/// A hash of lines, however they are handed in: whether a file of them is whole.
#[derive(Default)]
pub struct Checksum(Fnv);

impl Checksum {
    /// More lines.
    pub fn add(&mut self, text: &str) {
        self.0.bytes(text.as_bytes());
    }

    /// As it is written.
    pub fn words(&self) -> String {
        format!("{:016x}", self.0.0)
    }
}

/// In which order shards make up the whole: every one once, those that are there twice left out.
pub fn order(heads: &[Head]) -> Result<Vec<usize>, Error> {
    let wrong = |given: String, expected: String| Err(Error::value("shards", given, expected));
    let Some(first) = heads.first() else { return wrong("none".into(), "every shard of a sweep".into()) };
    let mut found: Vec<usize> = (0..heads.len()).collect();
    for head in heads {
        let name = format!("shard {} of {}", head.shard, head.of);
        part(head.whole, (head.shard, head.of))?;
        if head.rackmath_sweep_shard != Head::VERSION {
            let given = format!("version {} of the format", head.rackmath_sweep_shard);
            return wrong(given, Head::VERSION.to_string());
        }
        if head.of != first.of {
            return wrong(name, format!("shards of {} like shard {}", first.of, first.shard));
        }
        if (Head { shard: first.shard, ..head.clone() }) != *first {
            let given = format!("{name} of another sweep ({}, {})", head.fingerprint, head.format);
            let like = format!("{}, {}", first.fingerprint, first.format);
            return wrong(
                given,
                format!("the request, catalogue, version and format of shard {} ({like})", first.shard),
            );
        }
    }
    found.sort_by_key(|i| heads[*i].shard);
    // A shard is a function of its head: those that are there twice are equal.
    found.dedup_by_key(|i| heads[*i].shard);
    let there: Vec<u64> = found.iter().map(|i| heads[*i].shard).collect();
    match missing(&there, first.of) {
        Some(which) => wrong(format!("{} of {}", there.len(), first.of), format!("also shard {which}")),
        None => Ok(found),
    }
}

/// Which of the shards 1 to n are not there, in words; they come sorted.
pub fn missing(there: &[u64], of: u64) -> Option<String> {
    let mut gone = (1..=of).filter(|k| there.binary_search(k).is_err());
    let shown: Vec<String> = gone.by_ref().take(8).map(|k| k.to_string()).collect();
    let rest = gone.count();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    (!shown.is_empty()).then(|| shown.join(", ") + &more)
}

/// A list of an answer as a table: a column for each number, text and switch of its items, lists left out.
pub fn of_list(list: &Value) -> (Vec<(String, Kind)>, Block) {
    let items: &[Value] = list.as_array().map_or(&[], Vec::as_slice);
    let mut found: BTreeMap<Vec<&str>, Kind> = BTreeMap::new();
    for item in items {
        leaves(item, &mut Vec::new(), &mut found);
    }
    let kinds = || found.values().copied();
    let mut block = Block::empty(0..items.len() as u64, kinds());
    for item in items {
        for (column, path) in block.columns.iter_mut().zip(found.keys()) {
            column.push(path.iter().try_fold(item, |value, name| value.get(name)));
        }
        block.rows += 1;
    }
    (found.keys().map(|path| path.join(".")).zip(kinds()).collect(), block)
}

fn leaves<'v>(value: &'v Value, path: &mut Vec<&'v str>, found: &mut BTreeMap<Vec<&'v str>, Kind>) {
    let kind = match value {
        Value::Object(fields) if !fields.contains_key("says") => {
            let few = if path.len() < 6 { usize::MAX } else { 0 };
            for (name, inner) in fields.iter().take(few) {
                path.push(name);
                leaves(inner, path, found);
                path.pop();
            }
            return;
        }
        Value::Null | Value::Array(_) => return,
        Value::Bool(_) => Kind::Flag,
        Value::Number(n) if n.is_i64() => Kind::Count,
        Value::Number(_) => Kind::Amount,
        Value::String(_) | Value::Object(_) => Kind::Text,
    };
    let known = found.entry(path.clone()).or_insert(kind);
    *known = match (*known, kind) {
        (one, other) if one == other => one,
        // Whole numbers among others are amounts; anything else side by side is text.
        (Kind::Count | Kind::Amount, Kind::Count | Kind::Amount) => Kind::Amount,
        _ => Kind::Text,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(shard: u64, of: u64) -> Head {
        let columns = vec![("a".to_owned(), Kind::Count)];
        let fingerprint = "1".into();
        Head { rackmath_sweep_shard: 1, fingerprint, shard, of, whole: 10, format: "csv".into(), columns }
    }

    #[test]
    fn parts_follow_each_other_and_are_the_whole() {
        for (whole, n) in [(0, 1), (1, 3), (10, 3), (7, 7), (u64::MAX, 64), (5, 1000)] {
            let mut end = 0;
            for i in 1..=n {
                let one = part(whole, (i, n)).unwrap();
                assert_eq!(one.start, end);
                end = one.end;
            }
            assert_eq!(end, whole);
        }
        assert!(part(3, (0, 1)).is_err() && part(3, (2, 1)).is_err() && part(3, (1, MOST_SHARDS + 1)).is_err());
    }

    #[test]
    fn shards_come_in_any_order_and_twice_but_none_may_miss() {
        let all = |shards: &[u64]| order(&shards.iter().map(|i| head(*i, 3)).collect::<Vec<_>>());
        assert_eq!(all(&[3, 1, 2]), Ok(vec![1, 2, 0]));
        assert_eq!(all(&[2, 2, 3, 1]), Ok(vec![3, 0, 2]));
        assert_eq!(all(&[1, 3]).unwrap_err().to_string(), "shards = 2 of 3; expected also shard 2");
        assert!(order(&[]).is_err() && order(&[head(1, 2), head(2, 3)]).is_err());
        let other = Head { fingerprint: "2".into(), ..head(2, 2) };
        assert!(order(&[head(1, 2), other]).unwrap_err().to_string().contains("another sweep"));
    }
}
