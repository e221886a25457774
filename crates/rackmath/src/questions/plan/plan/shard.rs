//! A plan in shards: each looks at its part of the space, and what they found joins into the answer of the whole.
//!
//! A shard tabulates the whole space, which is little work, and searches its part, which is most of it. It says what it
//! found by number alone: who joins the shards tabulates the space once more, checks that it is the same one, and works out
//! every figure again, so that the answer is that of an undivided search bit for bit.

use super::searched::Searched;
use super::{Answer, Ask, Request, answer, prepare};
use crate::Error;
use rackmath_spec::Catalog;
use rackmath_theory::pass::KernelSet;
use rackmath_theory::plan::{Bound, Found, Near, Question, Ranked, Space};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one shard found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Partial {
    /// Which shard, from 1.
    pub shard: u64,
    /// Of how many.
    pub of: u64,
    /// What was asked.
    pub request: Request,
    /// Configurations in the whole space.
    pub configurations: u64,
    /// Tells this space from others: catalogue, version and request.
    pub fingerprint: String,
    /// The best of each of the best deployments, by number.
    pub top: Vec<u64>,
    /// The frontier.
    pub frontier: Vec<u64>,
    /// What breaks one limit only: the limit's word, and the number.
    pub near: Vec<(String, u64)>,
    /// What comes nearest to each limit alone, or meets it.
    pub floors: Vec<(String, u64)>,
    /// The best with each limit moved.
    pub moved: Vec<Option<u64>>,
}

/// Most shards of a plan.
pub const MOST_SHARDS: u64 = 1_000_000;

/// Looks at shard `shard` of `of`, counted from 1.
pub fn shard(catalog: &Catalog, request: &Request, (shard, of): (u64, u64), threads: usize) -> Result<Partial, Error> {
    checked(shard, of)?;
    let ask = Ask::new(catalog, request)?;
    let space = prepare::Prepared::new(&KernelSet::of(catalog)?, &ask, threads)?.space;
    let s = Searched::part(&space, &ask.question, space.part(shard - 1, of), threads);
    let number = |r: &Ranked| r.index;
    let named = |n: &Near| (n.bound.name().to_owned(), n.ranked.index);
    Ok(Partial {
        shard,
        of,
        request: request.clone(),
        configurations: space.len(),
        fingerprint: words(&space),
        top: s.found.top.iter().map(number).collect(),
        frontier: s.found.frontier.iter().map(number).collect(),
        near: s.near.iter().map(named).collect(),
        floors: s.floors.iter().map(named).collect(),
        moved: s.moved.iter().map(|r| r.as_ref().map(number)).collect(),
    })
}

/// The answer of the whole from all its shards, in any order.
pub fn merge(catalog: &Catalog, parts: &[Partial], threads: usize) -> Result<Answer, Error> {
    let request = complete(parts)?;
    let ask = Ask::new(catalog, request)?;
    let prepared = prepare::Prepared::new(&KernelSet::of(catalog)?, &ask, threads)?;
    let (space, q) = (&prepared.space, &ask.question);
    let fingerprint = words(space);
    let mut all: Option<Searched> = None;
    for part in parts {
        if part.fingerprint != fingerprint || part.configurations != space.len() {
            let given = format!("shard {} of another space ({})", part.shard, part.fingerprint);
            return Err(Error::value(
                "shards",
                given,
                format!("the same catalogue and version as here ({fingerprint})"),
            ));
        }
        let one = searched(space, q, part)?;
        all = Some(match all {
            None => one,
            Some(all) => all.merged(one, q),
        });
    }
    Ok(answer::answer(&ask, &prepared, &all.unwrap_or_default().settled(q)))
}

pub(super) fn checked(shard: u64, of: u64) -> Result<(), Error> {
    let good = (1..=of).contains(&shard) && of <= MOST_SHARDS;
    let given = || format!("{shard}/{of}");
    if good { Ok(()) } else { Err(Error::value("shard", given(), "i/n with i from 1 to n, such as 1/4")) }
}

fn words(space: &Space) -> String {
    format!("{:016x}", space.fingerprint())
}

/// Every shard once, all of one request; the request.
fn complete(parts: &[Partial]) -> Result<&Request, Error> {
    let Some(first) = parts.first() else {
        return Err(Error::value("shards", "none", "every shard of a plan, once"));
    };
    for part in parts {
        checked(part.shard, part.of)?;
        let name = format!("shard {} of {}", part.shard, part.of);
        if part.of != first.of {
            let other = format!("shards of {} like shard {}", first.of, first.shard);
            return Err(Error::value("shards", name, other));
        }
        if part.request != first.request {
            let given = format!("{name}, of another request");
            return Err(Error::value("shards", given, format!("the request of shard {}", first.shard)));
        }
    }
    let mut seen: Vec<u64> = parts.iter().map(|p| p.shard).collect();
    seen.sort_unstable();
    if let Some([twice, ..]) = seen.windows(2).find(|w| w[0] == w[1]) {
        let given = format!("shard {} of {} more than once", twice, first.of);
        return Err(Error::value("shards", given, "every shard once"));
    }
    if seen.len() as u64 != first.of {
        let missing: Vec<u64> = (1..=first.of).filter(|k| seen.binary_search(k).is_err()).collect();
        let shown: Vec<String> = missing.iter().take(8).map(u64::to_string).collect();
        let more = if missing.len() > 8 { format!(" and {} more", missing.len() - 8) } else { String::new() };
        let given = format!("{} of {}", seen.len(), first.of);
        return Err(Error::value("shards", given, format!("also shard {}{more}", shown.join(", "))));
    }
    Ok(&first.request)
}

/// The numbers of a shard with their figures worked out again.
fn searched(space: &Space, q: &Question, part: &Partial) -> Result<Searched, Error> {
    let wrong = |what: String| Error::value("shards", format!("shard {} with {what}", part.shard), "an untouched file");
    let ranked = |index: &u64| {
        let estimate = if *index < space.len() { space.estimate(*index, q.output, q.traffic) } else { None };
        let estimate = estimate.ok_or_else(|| wrong(format!("configuration {index}, which is none")))?;
        Ok::<_, Error>(Ranked { index: *index, family: space.family(*index), estimate })
    };
    let near = |(word, index): &(String, u64)| {
        let bound = Bound::ALL.into_iter().find(|b| b.name() == word);
        let bound = bound.ok_or_else(|| wrong(format!("a limit on \"{word}\"")))?;
        Ok::<_, Error>(Near { bound, ranked: ranked(index)? })
    };
    let questions = super::searched::moves(q);
    let questions: Vec<&Question> = questions.iter().flat_map(|m| &m.questions).collect();
    if questions.len() != part.moved.len() {
        return Err(wrong(format!("{} moved limits", part.moved.len())));
    }
    let moved = |(index, q): (&Option<u64>, &&Question)| {
        let Some(index) = index else { return Ok(None) };
        let plain = ranked(index)?;
        // The traffic may have moved too.
        let estimate = space.estimate(*index, q.output, q.traffic);
        Ok::<_, Error>(estimate.map(|estimate| Ranked { estimate, ..plain }))
    };
    Ok(Searched {
        found: Found {
            top: part.top.iter().map(ranked).collect::<Result<_, _>>()?,
            frontier: part.frontier.iter().map(ranked).collect::<Result<_, _>>()?,
            near: Vec::new(),
        },
        near: part.near.iter().map(near).collect::<Result<_, _>>()?,
        floors: part.floors.iter().map(near).collect::<Result<_, _>>()?,
        moved: part.moved.iter().zip(&questions).map(moved).collect::<Result<_, _>>()?,
    })
}
