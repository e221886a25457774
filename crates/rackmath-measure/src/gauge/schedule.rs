//! When requests are sent and how long they are: drawn whole before the first one goes out.
//!
//! | arrivals | gaps |
//! |---|---|
//! | constant | 1/rate |
//! | Poisson | exponential of mean 1/rate |
//! | bursts | gamma of mean 1/rate and a coefficient of variation above 1 |
//! | trace | as recorded, at a multiple of its speed |
//! | closed loop | none: so many are always under way |
//!
//! The random gaps of a run are stretched so that the last arrival falls where the mean rate puts it: a short run meets the rate it was asked for.

use rackmath_sim::workload::gamma;
use rackmath_spec::SpecError;
use rackmath_spec::trace::Trace;
use rackmath_units::Chance;
use serde::Serialize;
use std::sync::Arc;

/// More requests than one client should send.
pub const MOST_REQUESTS: usize = 4_000_000;

/// How requests come.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Requests a second; the coefficient of variation of the gaps: 0 constant, 1 Poisson, above in bursts.
    Open { rate: f64, cv: f64 },
    /// So many always under way: each answer sends the next.
    Closed { concurrency: usize },
    /// As a trace has them, so many times as fast.
    Trace { speed: f64 },
}

/// Lengths of requests in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lengths {
    pub input: u32,
    pub output: u32,
    /// Lengths are even between (1 - spread) and (1 + spread) times the mean.
    pub spread: f64,
}

/// What prompts have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sharing {
    /// Leading tokens that prompts of a group share.
    pub prefix: u32,
    pub groups: u32,
    /// Turns of a conversation, each prompt beginning with the one before; 0 and 1 are the same.
    pub turns: u32,
    /// Seconds between an answer and the next turn.
    pub think_s: f64,
}

/// One request: its prompt as segments (what they are made of, how long), and the most tokens of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Seconds after the start; for later turns and closed loops, when the one before has ended.
    pub at: f64,
    pub segments: Vec<(u64, u32)>,
    pub output: u32,
    /// Turns that follow, each so long after the answer to the one before.
    pub then: Vec<Follow>,
}

/// A later turn: what it adds to the prompt of the turn before.
#[derive(Clone, Debug, PartialEq)]
pub struct Follow {
    pub think_s: f64,
    pub segment: (u64, u32),
    pub output: u32,
}

impl Arrival {
    pub fn input(&self) -> u32 {
        self.segments.iter().map(|(_, n)| n).sum()
    }

    /// Requests of it and of its later turns.
    pub fn requests(&self) -> usize {
        1 + self.then.len()
    }

    /// Most tokens that it and its turns can cost, in and out.
    pub fn tokens(&self) -> (f64, f64) {
        let (mut prompt, mut input) = (f64::from(self.input()), f64::from(self.input()));
        let mut output = f64::from(self.output);
        for turn in &self.then {
            prompt += f64::from(turn.segment.1);
            input += prompt;
            output += f64::from(turn.output);
        }
        (input, output)
    }
}

/// Requests in order of time. Those that are drawn are drawn as they are needed: a long run takes no more memory than a short one.
#[derive(Clone, Debug)]
pub enum Schedule {
    Drawn(Drawn),
    Listed(Arc<[Arrival]>),
}

impl Schedule {
    pub fn arrivals(&self) -> Box<dyn Iterator<Item = Arrival> + Send> {
        match self {
            Self::Drawn(drawn) => Box::new(drawn.clone()),
            Self::Listed(list) => {
                let list = Arc::clone(list);
                Box::new((0..list.len()).map(move |i| list[i].clone()))
            }
        }
    }

    /// First turns.
    pub fn len(&self) -> usize {
        match self {
            Self::Drawn(drawn) => drawn.n,
            Self::Listed(list) => list.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Requests, later turns with them.
    pub fn requests(&self) -> usize {
        match self {
            Self::Drawn(drawn) => drawn.n * drawn.turns,
            Self::Listed(list) => list.iter().map(Arrival::requests).sum(),
        }
    }
}

/// A schedule of `requests` first turns.
pub fn drawn(
    arrivals: &Arrivals,
    lengths: Lengths,
    sharing: Sharing,
    requests: usize,
    seed: u64,
) -> Result<Schedule, SpecError> {
    let Lengths { input, output, spread } = lengths;
    if !(0.0..1.0).contains(&spread) {
        return Err(SpecError::value("spread", spread, "a share of the mean, 0 to below 1"));
    }
    if input == 0 || output == 0 {
        return Err(SpecError::value("isl and osl", format!("{input} and {output}"), "at least one token each"));
    }
    if sharing.prefix >= input && sharing.prefix > 0 {
        return Err(SpecError::value(
            "shared-prefix",
            sharing.prefix,
            format!("fewer than the {input} tokens of a prompt"),
        ));
    }
    let turns = sharing.turns.max(1) as usize;
    if requests == 0 || requests.saturating_mul(turns) > MOST_REQUESTS {
        return Err(SpecError::value("requests", requests, format!("1 to {} of them", MOST_REQUESTS / turns)));
    }
    let gaps = Gaps::of(arrivals, requests, seed)?;
    // All users of a closed loop begin at once: first answers of all lengths, so that later ones do not end together for ever.
    let staggered = match *arrivals {
        Arrivals::Closed { concurrency } if requests >= 8 * concurrency => concurrency,
        _ => 0,
    };
    let sizes = Chance::new(seed ^ 0x5eed);
    Ok(Schedule::Drawn(Drawn { gaps, sizes, lengths, sharing, staggered, turns, i: 0, n: requests }))
}

/// Requests as they are drawn, one after the other.
#[derive(Clone, Debug)]
pub struct Drawn {
    gaps: Gaps,
    sizes: Chance,
    lengths: Lengths,
    sharing: Sharing,
    /// So many first answers are cut to lengths of their own.
    staggered: usize,
    turns: usize,
    i: usize,
    n: usize,
}

impl Drawn {
    fn length(&mut self, mean: u32) -> u32 {
        let even = f64::from(mean) * (1.0 + self.lengths.spread * (2.0 * self.sizes.uniform() - 1.0));
        (even.round() as u32).max(1)
    }
}

impl Iterator for Drawn {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        if self.i >= self.n {
            return None;
        }
        let (i, Sharing { prefix, groups, think_s, .. }) = (self.i as u64, self.sharing);
        let Lengths { input, output, .. } = self.lengths;
        let at = self.gaps.next();
        let own = (1_u64 << 32) + (i << 8);
        let total = self.length(input).max(prefix + 1);
        let mut segments = Vec::with_capacity(2);
        if prefix > 0 {
            segments.push((i % u64::from(groups.max(1)), prefix));
        }
        segments.push((own, total - prefix));
        // A later turn adds the answer before it, and as long a message again as is not shared.
        let then = (1..self.turns as u64).map(|turn| {
            let added = self.length(output) + self.length((input - prefix).max(1));
            Follow { think_s, segment: (own + turn, added), output: self.length(output) }
        });
        let then = then.collect();
        let share = if self.i < self.staggered { (i as f64 + 0.5) / self.staggered as f64 } else { 1.0 };
        let output = (f64::from(self.length(output)) * share).ceil() as u32;
        self.i += 1;
        Some(Arrival { at, segments, output, then })
    }
}

/// Times of arrivals: gaps of one kind, stretched to end where the rate says.
#[derive(Clone, Debug)]
struct Gaps {
    chance: Chance,
    /// Absent for closed loops: all at once.
    cv: Option<f64>,
    at: f64,
    stretch: f64,
}

impl Gaps {
    fn of(arrivals: &Arrivals, n: usize, seed: u64) -> Result<Self, SpecError> {
        let chance = Chance::new(seed);
        match *arrivals {
            Arrivals::Open { rate, cv } => {
                if !(rate > 0.0 && rate.is_finite()) {
                    return Err(SpecError::value("rate", rate, "requests a second, more than 0"));
                }
                if !(0.0..=20.0).contains(&cv) {
                    return Err(SpecError::value("burstiness", cv, "a coefficient of variation, 0 to 20"));
                }
                let unit = Self { chance, cv: Some(cv), at: 0.0, stretch: 1.0 };
                let mut all = unit.clone();
                let end = (0..n).fold(0.0, |_, _| all.next());
                // n gaps of mean 1/rate end at n/rate.
                Ok(Self { stretch: n as f64 / rate / end.max(f64::MIN_POSITIVE), ..unit })
            }
            Arrivals::Closed { concurrency: 0 } => Err(SpecError::value("concurrency", 0, "at least 1")),
            Arrivals::Closed { .. } => Ok(Self { chance, cv: None, at: 0.0, stretch: 1.0 }),
            Arrivals::Trace { .. } => Err(SpecError::said("a trace brings its own times")),
        }
    }

    fn next(&mut self) -> f64 {
        self.at += match self.cv {
            None => 0.0,
            Some(0.0) => 1.0,
            Some(1.0) => self.chance.exponential(),
            Some(cv) => gamma(&mut self.chance, cv),
        };
        self.at * self.stretch
    }
}

/// The requests of a trace: blocks of equal content become equal segments, turns wait for each other.
pub fn replayed(trace: &Trace, speed: f64, most: usize) -> Result<Schedule, SpecError> {
    if !(speed > 0.0 && speed.is_finite()) {
        return Err(SpecError::value("speed", speed, "a multiple of the trace's own speed, more than 0"));
    }
    let block = trace.block.get() as u32;
    let requests = trace.requests.iter().take(most.min(MOST_REQUESTS)).enumerate();
    let mut all = Vec::new();
    for (i, r) in requests {
        let (mut left, mut segments) = (r.input.get().max(1.0) as u32, Vec::new());
        for id in &r.blocks {
            let n = left.min(block);
            if n == 0 {
                break;
            }
            segments.push((*id, n));
            left -= n;
        }
        if left > 0 {
            segments.push(((1 << 48) + i as u64, left));
        }
        all.push(Arrival {
            at: r.time.get() / speed,
            segments,
            output: r.output.get().max(1.0) as u32,
            then: Vec::new(),
        });
    }
    if all.is_empty() { Err(SpecError::said("a trace without requests")) } else { Ok(Schedule::Listed(all.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIXED: Lengths = Lengths { input: 100, output: 10, spread: 0.0 };

    fn listed(schedule: Result<Schedule, SpecError>) -> Vec<Arrival> {
        let schedule = schedule.expect("good");
        let all: Vec<Arrival> = schedule.arrivals().collect();
        assert_eq!((all.len(), all.iter().map(Arrival::requests).sum()), (schedule.len(), schedule.requests()));
        all
    }

    fn gaps(all: &[Arrival]) -> Vec<f64> {
        all.windows(2).map(|w| w[1].at - w[0].at).collect()
    }

    #[test]
    fn gaps_have_the_spread_they_were_asked_for() {
        for cv in [0.0, 1.0, 2.5] {
            let all = listed(drawn(&Arrivals::Open { rate: 50.0, cv }, FIXED, Sharing::default(), 40_000, 3));
            let gaps = gaps(&all);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let sd = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
            assert!((mean * 50.0 - 1.0).abs() < 0.02, "{mean}");
            assert!((sd / mean - cv).abs() < 0.05 * cv.max(0.01), "{cv}: {}", sd / mean);
        }
    }

    #[test]
    fn turns_begin_with_the_turn_before_and_groups_share_their_prefix() {
        let sharing = Sharing { prefix: 64, groups: 2, turns: 3, think_s: 1.0 };
        let all = listed(drawn(&Arrivals::Open { rate: 5.0, cv: 1.0 }, FIXED, sharing, 4, 1));
        assert_eq!(all[0].segments[0], all[2].segments[0]);
        assert_ne!(all[0].segments[0], all[1].segments[0]);
        assert_ne!(all[0].segments[1], all[2].segments[1]);
        assert_eq!((all[0].input(), all[0].requests()), (100, 3));
        // 100, then 46 more (10 of the answer, 36 of its own), twice.
        assert_eq!(all[0].tokens(), (100.0 + 146.0 + 192.0, 30.0));
    }

    #[test]
    fn a_trace_keeps_its_blocks() {
        let text = "{\"timestamp\":0,\"input_length\":700,\"output_length\":5,\"hash_ids\":[1,2]}\n{\"timestamp\":2000,\"input_length\":1100,\"output_length\":7,\"hash_ids\":[1,2,3]}\n";
        let trace = rackmath_spec::trace::read("t", text).expect("a trace");
        let all = listed(replayed(&trace, 2.0, 10));
        assert_eq!(all[0].segments, [(1, 512), (2, 188)]);
        assert_eq!((all[1].at, all[1].segments[1], all[1].input()), (1.0, (2, 512), 1100));
    }

    proptest! {
        #[test]
        fn times_rise_and_end_where_the_rate_says(rate in 0.1f64..1e4, cv in 0.0f64..5.0, n in 1usize..200, seed: u64) {
            let all = listed(drawn(&Arrivals::Open { rate, cv }, FIXED, Sharing::default(), n, seed));
            prop_assert!(all.windows(2).all(|w| w[0].at <= w[1].at));
            let end = all[n - 1].at * rate / n as f64;
            prop_assert!((end - 1.0).abs() < 1e-9, "{}", end);
            prop_assert_eq!(&all, &listed(drawn(&Arrivals::Open { rate, cv }, FIXED, Sharing::default(), n, seed)));
        }
    }
}
