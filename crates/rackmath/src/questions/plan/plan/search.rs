//! Everything an answer needs to have looked for, of the whole space or of a part of it; and the parts joined.
//!
//! A shard tabulates the whole space, which is little work, and searches its part, which is most of it. It says what it
//! found by number alone: who joins the shards tabulates the space once more, checks that it is the same one, and works out
//! every figure again, so that the answer is that of an undivided search bit for bit.

use super::{Answer, Request, Worked};
use crate::desk::prelude::*;
use rackmath_theory::plan::{Bound, Found, Limits, Near, Objective, Question, Ranked, Space, Traffic, search_part};
use std::cmp::Ordering;
use std::ops::Range;

/// A limit, or the traffic, a tenth tighter and a tenth looser.
pub(super) struct Move {
    /// The limit; none for the traffic.
    pub bound: Option<Bound>,
    pub asked: f64,
    /// Tighter, then looser.
    pub questions: [Question; 2],
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Searched {
    pub found: Found,
    /// What breaks one limit only; looked for where nothing meets them all.
    pub near: Vec<Near>,
    /// The least of each limit that no configuration meets even alone; looked for where nothing meets them all.
    pub floors: Vec<Near>,
    /// The best of each moved question, in order.
    pub moved: Vec<Option<Ranked>>,
    /// The best without limits; looked for where something meets them all.
    pub free: Option<Ranked>,
    /// The best where single chips are paid and not whole hosts; looked for where dollars decide and hosts are paid whole.
    pub single: Option<Ranked>,
}

/// Whether what is paid for a traffic decides, so that part of a host may do.
pub(super) fn by_dollars(q: &Question) -> bool {
    let dollars = matches!(q.objective, Objective::Cost | Objective::Hourly);
    dollars && matches!(q.traffic, Traffic::Rate(_) | Traffic::Users { .. })
}

/// The same space with chips bought one by one, where dollars decide on whole hosts.
pub(super) fn singly(space: &Space, q: &Question) -> Option<Space> {
    if !by_dollars(q) || space.rows.iter().all(|row| row.host <= 1.0) {
        return None;
    }
    let mut space = space.clone();
    space.rows.iter_mut().for_each(|row| row.host = 1.0);
    Some(space)
}

/// The best alone.
fn best(q: &Question) -> Question {
    Question { near: false, frontier: None, keep: 1, ..*q }
}

/// The question with each limit, and the traffic, moved.
pub(super) fn moves(q: &Question) -> Vec<Move> {
    let plain = Question { keep: 1, frontier: None, ..*q };
    let mut all = Vec::new();
    for &bound in Bound::ALL {
        let Some(limit) = q.limits.get(bound) else { continue };
        let to = |factor: f64| {
            let traffic = match (bound, q.traffic) {
                (Bound::Chips, Traffic::Fill(chips)) => Traffic::Fill((chips * factor).floor()),
                (Bound::Chips, Traffic::Within { chips, usd_s, watts }) => {
                    Traffic::Within { chips: (chips * factor).floor(), usd_s, watts }
                }
                (Bound::UsdPerHour, Traffic::Within { chips, usd_s, watts }) => {
                    Traffic::Within { chips, usd_s: usd_s * factor, watts }
                }
                (Bound::Watts, Traffic::Within { chips, usd_s, watts }) => {
                    Traffic::Within { chips, usd_s, watts: watts * factor }
                }
                (_, traffic) => traffic,
            };
            Question { limits: q.limits.with(bound, Some(limit * factor)), traffic, ..plain }
        };
        let (tight, loose) = if bound.at_least() { (1.1, 0.9) } else { (0.9, 1.1) };
        all.push(Move { bound: Some(bound), asked: limit, questions: [to(tight), to(loose)] });
    }
    let more = |factor: f64| match q.traffic {
        Traffic::Rate(rate) => Some(Traffic::Rate(rate * factor)),
        Traffic::Users { users, think } => Some(Traffic::Users { users: (users * factor).round(), think }),
        _ => None,
    };
    if let (Some(tight), Some(loose)) = (more(1.1), more(0.9)) {
        let to = |traffic| Question { traffic, ..plain };
        all.push(Move { bound: None, asked: 1.0, questions: [to(tight), to(loose)] });
    }
    all
}

impl Searched {
    /// Looks at everything. What a limit is worth is asked only where something meets them all.
    pub(super) fn whole(space: &Space, q: &Question, effort: &Effort) -> Result<Self, Cancelled> {
        Self::within(&Part { space, families: 0..space.families(), effort }, q, false)
    }

    /// Looks at a part. It cannot know whether something elsewhere meets the limits: what they are worth is asked anyway.
    fn within(part: &Part, q: &Question, always: bool) -> Result<Self, Cancelled> {
        let found = part.search(q, None)?;
        let none = found.top.is_empty();
        Ok(Self {
            moved: if none && !always { Vec::new() } else { part.moved(q, &found)? },
            free: if none && !always { None } else { part.search(&free(q), None)?.top.first().copied() },
            single: match singly(part.space, q).filter(|_| !none || always) {
                Some(space) => Part { space: &space, ..part.clone() }.search(&best(q), None)?.top.first().copied(),
                None => None,
            },
            floors: if none { part.floors(q)? } else { Vec::new() },
            near: if none {
                part.search(&Question { near: true, frontier: None, ..*q }, None)?.near
            } else {
                Vec::new()
            },
            found,
        })
    }

    /// Both together.
    pub(super) fn merged(self, other: Self, q: &Question) -> Self {
        let nearer = |a: Vec<Near>, b: Vec<Near>| {
            let only = |near: Vec<Near>| Found { near, ..Found::default() };
            only(a).merged(only(b), q).near
        };
        let one = |(a, b): (Option<Ranked>, Option<Ranked>), q: &Question| match (a, b) {
            (Some(a), Some(b)) => Some(if q.order(&b, &a) == Ordering::Less { b } else { a }),
            (a, b) => a.or(b),
        };
        let questions = moves(q);
        let questions = questions.iter().flat_map(|m| &m.questions);
        let moved = self.moved.into_iter().zip(other.moved).zip(questions).map(|(both, q)| one(both, q)).collect();
        Self {
            found: self.found.merged(other.found, q),
            near: nearer(self.near, other.near),
            floors: nearer(self.floors, other.floors),
            moved,
            free: one((self.free, other.free), &free(q)),
            single: one((self.single, other.single), &best(q)),
        }
    }

    /// What does not belong into an answer is dropped: moves of one limit where something meets them all, and the reverse;
    /// and what a part could not know to be met elsewhere.
    pub(super) fn settled(mut self, q: &Question) -> Self {
        if self.found.top.is_empty() {
            self.moved.clear();
            self.free = None;
            self.single = None;
            self.floors.retain(|n| only(q, n.bound).limits.broken(&n.ranked.estimate) != 0);
        } else {
            self.near.clear();
            self.floors.clear();
        }
        self
    }
}

/// The question without limits, but for the chips where as much is served as they can.
fn free(q: &Question) -> Question {
    let asked = matches!(q.traffic, Traffic::Rate(_) | Traffic::Users { .. });
    let chips = q.limits.get(Bound::Chips).filter(|_| !asked);
    let traffic = unlimited(q.traffic);
    Question {
        limits: Limits::default().with(Bound::Chips, chips),
        traffic,
        near: false,
        frontier: None,
        keep: 1,
        ..*q
    }
}

/// As much as the chips serve, whatever they cost and draw, where it was as much as dollars and watts allow.
pub(super) fn unlimited(traffic: Traffic) -> Traffic {
    match traffic {
        Traffic::Within { chips, .. } => Traffic::Within { chips, usd_s: f64::INFINITY, watts: f64::INFINITY },
        other => other,
    }
}

/// The question with one limit alone.
fn only(q: &Question, bound: Bound) -> Question {
    Question { limits: Limits::default().with(bound, q.limits.get(bound)), near: true, frontier: None, keep: 1, ..*q }
}

/// Families of a space, and who looks at them.
#[derive(Clone)]
struct Part<'a> {
    space: &'a Space,
    families: Range<u64>,
    effort: &'a Effort,
}

impl Part<'_> {
    fn search(&self, q: &Question, known: Option<u64>) -> Result<Found, Cancelled> {
        search_part(self.space, q, self.families.clone(), self.effort, known)
    }

    /// For each limit, what comes nearest to it, or meets it: the first tells how far physics is from it.
    fn floors(&self, q: &Question) -> Result<Vec<Near>, Cancelled> {
        let mut all = Vec::new();
        for bound in Bound::ALL.iter().copied().filter(|b| q.limits.get(*b).is_some()) {
            let q = only(q, bound);
            // Whether it is met is soon found out; what comes nearest is asked only where it is not.
            let met = self.search(&Question { near: false, ..q }, None)?;
            match met.top.first() {
                Some(ranked) => all.push(Near { bound, ranked: *ranked }),
                None => all.extend(self.search(&q, None)?.near.first()),
            }
        }
        Ok(all)
    }

    fn moved(&self, q: &Question, found: &Found) -> Result<Vec<Option<Ranked>>, Cancelled> {
        let known = found.top.first().map(|r| r.index);
        let best = |q: &Question| Ok(self.search(q, known)?.top.first().copied());
        moves(q).iter().flat_map(|m| &m.questions).map(best).collect()
    }
}

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
    /// The best without limits.
    #[serde(default)]
    pub free: Option<u64>,
    /// The best where single chips are paid and not whole hosts.
    #[serde(default)]
    pub single: Option<u64>,
}

/// Looks at shard `shard` of `of`, counted from 1.
pub fn shard(
    catalog: &Catalog,
    request: &Request,
    (shard, of): (u64, u64),
    effort: impl Into<Effort>,
) -> Result<Partial, Error> {
    checked(shard, of)?;
    let effort = &effort.into();
    let worked = Worked::any(catalog, request, effort)?;
    let space = &*worked.space;
    let s = Searched::within(&Part { space, families: space.part(shard - 1, of), effort }, &worked.question, true)?;
    let number = |r: &Ranked| r.index;
    let named = |n: &Near| (n.bound.name().to_owned(), n.ranked.index);
    Ok(Partial {
        shard,
        of,
        request: request.clone(),
        configurations: space.len(),
        fingerprint: words(space),
        top: s.found.top.iter().map(number).collect(),
        frontier: s.found.frontier.iter().map(number).collect(),
        near: s.near.iter().map(named).collect(),
        floors: s.floors.iter().map(named).collect(),
        moved: s.moved.iter().map(|r| r.as_ref().map(number)).collect(),
        free: s.free.as_ref().map(number),
        single: s.single.as_ref().map(number),
    })
}

/// The answer of the whole from all its shards, in any order.
pub fn merge(catalog: &Catalog, parts: &[Partial], effort: impl Into<Effort>) -> Result<Answer, Error> {
    let worked = Worked::any(catalog, complete(parts)?, &effort.into())?;
    let (space, q) = (&*worked.space, &worked.question);
    let fingerprint = words(space);
    let mut all: Option<Searched> = None;
    let single = singly(space, q);
    for part in parts {
        let other = part.fingerprint != fingerprint || part.configurations != space.len();
        let given = format!("shard {} of another space ({})", part.shard, part.fingerprint);
        refuse_if(other, "shards", given, format!("the same catalogue and version as here ({fingerprint})"))?;
        let one = searched(space, single.as_ref(), q, part)?;
        all = Some(match all {
            None => one,
            Some(all) => all.merged(one, q),
        });
    }
    worked.simulate(worked.met(worked.card(&all.unwrap_or_default().settled(q)))?)
}

pub(super) fn checked(shard: u64, of: u64) -> Result<(), Error> {
    crate::table::part(0, (shard, of)).map(drop)
}

fn words(space: &Space) -> String {
    format!("{:016x}", space.fingerprint())
}

/// Every shard once, all of one request; the request.
fn complete(parts: &[Partial]) -> Result<&Request, Error> {
    let wrong = |given: &str, expected: String| Err(Error::value("shards", given, expected));
    let Some(first) = parts.first() else { return wrong("none", "every shard of a plan, once".into()) };
    for part in parts {
        checked(part.shard, part.of)?;
        let name = format!("shard {} of {}", part.shard, part.of);
        if part.of != first.of {
            return wrong(&name, format!("shards of {} like shard {}", first.of, first.shard));
        }
        if part.request != first.request {
            return wrong(&format!("{name}, of another request"), format!("the request of shard {}", first.shard));
        }
    }
    let mut seen: Vec<u64> = parts.iter().map(|p| p.shard).collect();
    seen.sort_unstable();
    if let Some([twice, ..]) = seen.windows(2).find(|w| w[0] == w[1]) {
        return wrong(&format!("shard {twice} of {} more than once", first.of), "every shard once".into());
    }
    match crate::table::missing(&seen, first.of) {
        None => Ok(&first.request),
        Some(which) => wrong(&format!("{} of {}", seen.len(), first.of), format!("also shard {which}")),
    }
}

/// The numbers of a shard with their figures worked out again.
fn searched(space: &Space, single: Option<&Space>, q: &Question, part: &Partial) -> Result<Searched, Error> {
    let wrong = |what: String| Error::value("shards", format!("shard {} with {what}", part.shard), "an untouched file");
    let ranked_in = |space: &Space, index: &u64| {
        let estimate = if *index < space.len() { space.estimate(*index, q.output, q.traffic) } else { None };
        let estimate = estimate.ok_or_else(|| wrong(format!("configuration {index}, which is none")))?;
        Ok::<_, Error>(Ranked { index: *index, family: space.family(*index), estimate })
    };
    let ranked = |index: &u64| ranked_in(space, index);
    let near = |(word, index): &(String, u64)| {
        let bound = Bound::ALL.iter().copied().find(|b| b.name() == word);
        let bound = bound.ok_or_else(|| wrong(format!("a limit on \"{word}\"")))?;
        Ok::<_, Error>(Near { bound, ranked: ranked(index)? })
    };
    let questions = moves(q);
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
        free: part.free.as_ref().map(ranked).transpose()?,
        single: single.zip(part.single.as_ref()).map(|(space, index)| ranked_in(space, index)).transpose()?,
    })
}
