//! Everything an answer needs to have looked for, of the whole space or of a part of it.

use rackmath_theory::plan::{Bound, Found, Limits, Near, Question, Ranked, Space, Traffic, search_part};
use std::cmp::Ordering;
use std::ops::Range;

/// A limit, or the traffic, a tenth tighter and a tenth looser.
pub(super) struct Move {
    /// The limit; none for the traffic.
    pub bound: Option<Bound>,
    /// As asked.
    pub asked: f64,
    /// Tighter, then looser.
    pub questions: [Question; 2],
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Searched {
    /// The best and the frontier.
    pub found: Found,
    /// What breaks one limit only; looked for where nothing meets them all.
    pub near: Vec<Near>,
    /// The least of each limit that no configuration meets even alone; looked for where nothing meets them all.
    pub floors: Vec<Near>,
    /// The best of each moved question, in order.
    pub moved: Vec<Option<Ranked>>,
}

/// The question with each limit, and the traffic, moved.
pub(super) fn moves(q: &Question) -> Vec<Move> {
    let plain = Question { keep: 1, frontier: None, ..*q };
    let mut all = Vec::new();
    for bound in Bound::ALL {
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
    if let Traffic::Rate(rate) = q.traffic {
        let to = |factor: f64| Question { traffic: Traffic::Rate(rate * factor), ..plain };
        all.push(Move { bound: None, asked: rate, questions: [to(1.1), to(0.9)] });
    }
    all
}

impl Searched {
    /// Looks at everything. What a limit is worth is asked only where something meets them all.
    pub(super) fn whole(space: &Space, q: &Question, threads: usize) -> Self {
        let all = 0..space.families();
        let found = search_part(space, q, all.clone(), threads, None);
        let moved = if found.top.is_empty() { Vec::new() } else { moved(space, q, all.clone(), threads, &found) };
        let floors = floors(space, q, all.clone(), threads, &found);
        Self { near: near(space, q, all, threads, &found), floors, found, moved }
    }

    /// Looks at a part. It cannot know whether something elsewhere meets the limits: what they are worth is asked anyway.
    pub(super) fn part(space: &Space, q: &Question, families: Range<u64>, threads: usize) -> Self {
        let found = search_part(space, q, families.clone(), threads, None);
        let moved = moved(space, q, families.clone(), threads, &found);
        let floors = floors(space, q, families.clone(), threads, &found);
        Self { near: near(space, q, families, threads, &found), floors, found, moved }
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
        }
    }

    /// What does not belong into an answer is dropped: moves of one limit where something meets them all, and the reverse;
    /// and what a part could not know to be met elsewhere.
    pub(super) fn settled(mut self, q: &Question) -> Self {
        if self.found.top.is_empty() {
            self.moved.clear();
            self.floors.retain(|n| only(q, n.bound).limits.broken(&n.ranked.estimate) != 0);
        } else {
            self.near.clear();
            self.floors.clear();
        }
        self
    }
}

fn near(space: &Space, q: &Question, families: Range<u64>, threads: usize, found: &Found) -> Vec<Near> {
    if !found.top.is_empty() {
        return Vec::new();
    }
    search_part(space, &Question { near: true, frontier: None, ..*q }, families, threads, None).near
}

/// The question with one limit alone.
fn only(q: &Question, bound: Bound) -> Question {
    Question { limits: Limits::default().with(bound, q.limits.get(bound)), near: true, frontier: None, keep: 1, ..*q }
}

/// For each limit, what comes nearest to it, or meets it: the first tells how far physics is from it.
fn floors(space: &Space, q: &Question, families: Range<u64>, threads: usize, found: &Found) -> Vec<Near> {
    if !found.top.is_empty() {
        return Vec::new();
    }
    let one = |bound: Bound| {
        let q = only(q, bound);
        q.limits.get(bound)?;
        // Whether it is met is soon found out; what comes nearest is asked only where it is not.
        let met = search_part(space, &Question { near: false, ..q }, families.clone(), threads, None);
        match met.top.first() {
            Some(ranked) => Some(Near { bound, ranked: *ranked }),
            None => search_part(space, &q, families.clone(), threads, None).near.first().copied(),
        }
    };
    Bound::ALL.into_iter().filter_map(one).collect()
}

fn moved(space: &Space, q: &Question, families: Range<u64>, threads: usize, found: &Found) -> Vec<Option<Ranked>> {
    let known = found.top.first().map(|r| r.index);
    let best = |q: &Question| search_part(space, q, families.clone(), threads, known).top.first().copied();
    moves(q).iter().flat_map(|m| m.questions.iter().map(best).collect::<Vec<_>>()).collect()
}
