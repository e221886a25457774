//! A space of deployments: every configuration has a number, and a number is a configuration.
//!
//! $$ i = r\,L + l \quad (i < R L) \qquad i = R L + \big((r P + p)\,Q + q\big) L + l $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | r, R | row | 1 | a prepared deployment: layout, formats, engine, chunk and drafts |
//! | p, P | prefill | 1 | a prepared deployment that computes prompts for others |
//! | q, Q | ratio | 1 | instances of prefill to instances of decode |
//! | l, L | level | 1 | concurrency of one attention group, from the grid |
//!
//! Everything a pass says is tabulated before: one configuration is a few look-ups and products, and does not allocate. With
//! two pools the one for prompts must keep up: at most [`BUSIEST`] of its time, else the configuration is none (a lower
//! level of the same pools stands for it).

use super::pools::{BUSIEST, Prompts};
use super::standby::Standby;
use super::{Estimate, Traffic};
use crate::pass::Limit;

pub const MOST_DECODE: f64 = 8.0;

/// A prepared deployment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Pools go together when their keys are equal: same model, formats and engine, and a machine that is meant to.
    pub key: u32,
    pub machine: u32,
    /// Rows of one class take equally long to send a prompt's cache to, and to receive it from.
    pub class: u32,
    pub chips: f64,
    /// Chips of the limit one chip of its machine stands for: 1, unless machines offer different numbers.
    pub scale: f64,
    /// Dollars per chip and second.
    pub usd_s: f64,
    pub watts: f64,
    /// Chips that are bought together.
    pub host: f64,
    /// Chips its machine offers.
    pub offered: f64,
}

impl Row {
    /// Chips bought beyond those used: to the next whole host, as far as the chips on offer go.
    #[inline]
    fn spare(&self, used: f64) -> f64 {
        if self.host <= 1.0 {
            return 0.0;
        }
        ((used / self.host).ceil() * self.host).min(self.offered.max(used)) - used
    }
}

/// A deployment that computes prompts for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefill {
    pub row: usize,
    pub prompts: Prompts,
}

/// One instance in steady state at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Seconds per output token.
    pub tpot: f64,
    /// Seconds to the first token.
    pub ttft: f64,
    /// Requests a second, all groups; 0 where the level does not exist.
    pub rate: f64,
    /// Share of the cache room left free.
    pub headroom: f64,
    /// What limits most of a step.
    pub binding: Limit,
}

impl State {
    /// A level that does not exist.
    pub const NONE: Self = Self { tpot: 0.0, ttft: 0.0, rate: 0.0, headroom: 0.0, binding: Limit::Compute };
}

/// States of every row, from the lowest level up; levels beyond a row's last take no memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct States {
    all: Vec<State>,
    /// Where each row begins and the one before it ends.
    starts: Vec<usize>,
}

impl States {
    pub fn push(&mut self, row: &[State]) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let n = row.iter().rposition(|s| s.rate > 0.0).map_or(0, |last| last + 1);
        self.all.extend(&row[..n]);
        self.starts.push(self.all.len());
    }

    pub fn of(&self, row: usize) -> &[State] {
        &self.all[self.starts[row]..self.starts[row + 1]]
    }

    #[inline]
    fn at(&self, row: usize, level: usize) -> Option<&State> {
        let at = self.starts[row] + level;
        if at < self.starts[row + 1] { self.all.get(at).filter(|s| s.rate > 0.0) } else { None }
    }
}

impl<'a> FromIterator<&'a [State]> for States {
    fn from_iter<I: IntoIterator<Item = &'a [State]>>(rows: I) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.push(row));
        all
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    pub rows: Vec<Row>,
    pub levels: usize,
    /// States that compute prompts and answers.
    pub whole: States,
    /// States that find every prompt in their cache.
    pub found: States,
    /// Deployments that compute prompts; none where pools are not asked for.
    pub prefills: Vec<Prefill>,
    /// Seconds to send a prompt's cache, by the class that sends, then the class that receives.
    pub send: Vec<Vec<f64>>,
    /// Instances of prefill and of decode, of the latter at most [`MOST_DECODE`].
    pub ratios: Vec<(f64, f64)>,
    /// Prompts' chips may be busy all the time: for who simulates what the means leave open.
    pub outrun: bool,
    /// Squared coefficient of variation of prompts: they wait so much longer for each other.
    pub prompt_cv2: f64,
    /// Replicas beyond those that serve.
    pub standby: Standby,
}

/// Factors by which the states of a row are worse than predicted: 1 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower {
    pub tpot: f64,
    pub ttft: f64,
    /// The factor by which fewer requests are ended.
    pub rate: f64,
}

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    pub row: usize,
    pub level: usize,
    /// Prefill and ratio, with pools.
    pub split: Option<(usize, usize)>,
}

/// One replica before replicas are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit<'a> {
    /// Chips on each machine; the second only where prompts have one of their own.
    on: (f64, &'a Row),
    other: Option<(f64, &'a Row)>,
    pub state: &'a State,
    pub ttft: f64,
    pub rate: f64,
    pub chips: f64,
    pub taken: f64,
    pub usd_s: f64,
    pub watts: f64,
    standby: Standby,
}

/// A replica of two pools.
pub(super) struct Split<'a> {
    pub unit: Unit<'a>,
    prompts: &'a Prompts,
    /// Instances that compute prompts.
    instances: f64,
    /// Share of the time they work.
    busy: f64,
    /// Seconds to send a prompt's cache.
    send: f64,
}

impl Space {
    /// Configurations without pools.
    fn plain(&self) -> u64 {
        (self.rows.len() * self.levels) as u64
    }

    /// Configurations of one family: all that share rows.
    pub(super) fn family_size(&self, family: u64) -> u64 {
        let levels = self.levels as u64;
        if family < self.rows.len() as u64 { levels } else { levels * self.ratios.len() as u64 }
    }

    /// Families: rows, then pairs of rows.
    pub fn families(&self) -> u64 {
        (self.rows.len() * (1 + self.prefills.len())) as u64
    }

    pub fn first(&self, family: u64) -> u64 {
        let rows = self.rows.len() as u64;
        let levels = self.levels as u64;
        if family <= rows {
            family * levels
        } else {
            self.plain() + (family - rows) * levels * self.ratios.len() as u64
        }
    }

    pub fn family(&self, index: u64) -> u64 {
        let c = self.configuration(index);
        match c.split {
            None => c.row as u64,
            Some((prefill, _)) => (self.rows.len() + c.row * self.prefills.len() + prefill) as u64,
        }
    }

    /// How many configurations there are; some may be none.
    pub fn len(&self) -> u64 {
        self.first(self.families())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a number stands for. Numbers from [`Space::len`] on stand for nothing and must not be asked.
    pub fn configuration(&self, index: u64) -> Configuration {
        let levels = self.levels as u64;
        let (left, level) = (index / levels, (index % levels) as usize);
        if index < self.plain() {
            return Configuration { row: left as usize, level, split: None };
        }
        let left = (left - self.rows.len() as u64) as usize;
        let (pair, ratio) = (left / self.ratios.len(), left % self.ratios.len());
        let split = Some((pair % self.prefills.len(), ratio));
        Configuration { row: pair / self.prefills.len(), level, split }
    }

    pub fn index(&self, c: &Configuration) -> u64 {
        let left = match c.split {
            None => c.row,
            Some((p, q)) => self.rows.len() + (c.row * self.prefills.len() + p) * self.ratios.len() + q,
        };
        (left * self.levels + c.level) as u64
    }

    /// One configuration; none where its level does not exist, its pools do not go together or prompts cannot keep up.
    pub fn estimate(&self, index: u64, output: f64, traffic: Traffic) -> Option<Estimate> {
        let unit = self.unit(index)?;
        Some(unit.replicated(output, unit.replicas(output, traffic)))
    }

    /// The same with so many replicas that serve so many requests a second.
    pub fn replicated(&self, index: u64, output: f64, served: (f64, f64)) -> Option<Estimate> {
        Some(self.unit(index)?.replicated(output, served))
    }

    /// The same with so many replicas, whatever the traffic needs.
    pub fn with_replicas(&self, index: u64, output: f64, traffic: Traffic, replicas: f64) -> Option<Estimate> {
        let unit = self.unit(index)?;
        let (own, served) = unit.replicas(output, traffic);
        let given = matches!(traffic, Traffic::Rate(_) | Traffic::Users { .. });
        Some(unit.replicated(output, (replicas, if given { served } else { served / own * replicas })))
    }

    /// The same space where each row is so much worse than predicted.
    #[must_use]
    pub fn slower(&self, by: impl Fn(usize) -> Slower) -> Self {
        let mut space = self.clone();
        for row in 0..space.rows.len() {
            let by = by(row);
            for states in [&mut space.whole, &mut space.found] {
                for state in &mut states.all[states.starts[row]..states.starts[row + 1]] {
                    (state.tpot, state.ttft) = (state.tpot * by.tpot, state.ttft * by.ttft);
                    state.rate /= by.rate;
                }
            }
            for prefill in space.prefills.iter_mut().filter(|p| p.row == row) {
                let p = &mut prefill.prompts;
                (p.alone, p.service) = (p.alone * by.ttft, p.service / by.rate);
            }
        }
        space
    }

    #[inline]
    fn unit(&self, index: u64) -> Option<Unit<'_>> {
        let c = self.configuration(index);
        Some(match c.split {
            None => self.whole_unit(c.row, c.level)?,
            Some((p, q)) => {
                let mut split = self.split_unit(c.row, c.level, p, self.ratios[q])?;
                split.unit.ttft = self.waited(&split);
                split.unit
            }
        })
    }

    #[inline]
    fn whole_unit(&self, row: usize, level: usize) -> Option<Unit<'_>> {
        let (r, state) = (&self.rows[row], self.whole.at(row, level)?);
        Some(Unit {
            on: (r.chips, r),
            other: None,
            state,
            ttft: state.ttft,
            rate: state.rate,
            chips: r.chips,
            taken: r.chips * r.scale,
            usd_s: r.chips * r.usd_s,
            watts: r.chips * r.watts,
            standby: self.standby,
        })
    }

    /// Seconds to send a prompt's cache from a pool of prompts to a row.
    pub fn sending(&self, p: usize, row: usize) -> f64 {
        self.send[self.rows[self.prefills[p].row].class as usize][self.rows[row].class as usize]
    }

    /// The most of their time that prompts' chips may work.
    pub(super) fn busiest(&self) -> f64 {
        if self.outrun { 1.0 } else { BUSIEST }
    }

    /// Whether prompts' chips work more of the time than means can tell of.
    pub fn outruns(&self, index: u64) -> bool {
        let c = self.configuration(index);
        let split = c.split.and_then(|(p, q)| self.split_unit(c.row, c.level, p, self.ratios[q]));
        split.is_some_and(|split| split.busy > BUSIEST)
    }

    /// A ratio of a pair as if no prompt ever waited.
    #[inline]
    pub(super) fn split_unit(&self, row: usize, level: usize, p: usize, (np, nd): (f64, f64)) -> Option<Split<'_>> {
        let (r, prefill) = (&self.rows[row], &self.prefills[p]);
        let other = &self.rows[prefill.row];
        if other.key != r.key {
            return None;
        }
        let state = self.found.at(row, level)?;
        let rate = nd * state.rate;
        let busy = prefill.prompts.busy(rate, np);
        if busy > self.busiest() {
            return None;
        }
        let send = self.send[other.class as usize][r.class as usize];
        let (dc, pc) = (nd * r.chips, np * other.chips);
        let same = r.machine == other.machine;
        let unit = Unit {
            on: (if same { dc + pc } else { dc }, r),
            other: (!same).then_some((pc, other)),
            state,
            ttft: prefill.prompts.alone + send + state.ttft,
            rate,
            chips: dc + pc,
            taken: if same { (dc + pc) * r.scale } else { (dc * r.scale).max(pc * other.scale) },
            usd_s: dc * r.usd_s + pc * other.usd_s,
            watts: dc * r.watts + pc * other.watts,
            standby: self.standby,
        };
        Some(Split { unit, prompts: &prefill.prompts, instances: np, busy, send })
    }

    /// Seconds to the first token of a ratio of a pair, with waiting.
    #[inline]
    pub(super) fn waited(&self, s: &Split) -> f64 {
        let wait = s.prompts.wait(s.busy, s.instances) * (1.0 + self.prompt_cv2);
        wait + s.prompts.alone + s.send + s.unit.state.ttft
    }
}

impl Unit<'_> {
    /// Chips bought beyond those that so many replicas use, their dollars a second and their watts.
    #[inline]
    fn spare(&self, replicas: f64) -> [f64; 3] {
        let of = |(chips, row): (f64, &Row)| {
            let n = row.spare(replicas * chips);
            [n, n * row.usd_s, n * row.watts]
        };
        let own = of(self.on);
        self.other.map(of).map_or(own, |other| std::array::from_fn(|i| own[i] + other[i]))
    }

    /// How many there are of it, and the requests a second they serve.
    #[inline]
    pub(super) fn replicas(&self, output: f64, traffic: Traffic) -> (f64, f64) {
        let serving = |all: f64| {
            let n = self.standby.within(all, self.chips);
            (n, n * self.rate)
        };
        match traffic {
            // Exactly full is enough, whatever the last bit says.
            Traffic::Rate(rate) => ((rate / self.rate * (1.0 - 1e-12)).ceil().max(1.0), rate),
            Traffic::Users { users, think } => {
                let e2e = self.ttft + self.state.tpot * (output - 1.0).max(0.0);
                let rate = users / (e2e + think);
                ((rate / self.rate * (1.0 - 1e-12)).ceil().max(1.0), rate)
            }
            Traffic::Fill(chips) => serving((chips / self.taken).floor().max(1.0)),
            Traffic::One => (1.0, self.rate),
            Traffic::Within { chips, usd_s, watts } => {
                // What costs nothing is limited by the rest.
                let few = (chips / self.taken).min(usd_s / self.usd_s).min(watts / self.watts);
                let mut n = (few * (1.0 + 1e-12)).floor().max(1.0);
                let over = |n: f64| {
                    let [spare, usd, w] = self.spare(n);
                    let limits = [(n * self.usd_s + usd, usd_s), (n * self.watts + w, watts)];
                    spare > 0.0 && limits.iter().any(|(takes, limit)| *takes > limit * (1.0 + 1e-12))
                };
                // Whole hosts may cost more than the replicas that fit: a few less do.
                while n > 1.0 && usd_s.min(watts).is_finite() && over(n) {
                    n -= 1.0;
                }
                serving(n)
            }
        }
    }

    #[inline]
    pub(super) fn replicated(&self, output: f64, (replicas, served): (f64, f64)) -> Estimate {
        let standby = self.standby.beside(replicas, self.chips);
        let all = replicas + standby;
        let [spare, spare_usd_s, spare_watts] = self.spare(all);
        let (usd_s, watts) = (all * self.usd_s + spare_usd_s, all * self.watts + spare_watts);
        let s = &self.state;
        let tokens = served * output;
        Estimate {
            tpot: s.tpot,
            ttft: self.ttft,
            e2e: self.ttft + s.tpot * (output - 1.0).max(0.0),
            rate: self.rate,
            unit_chips: self.chips,
            unit_usd_s: self.usd_s,
            replicas,
            standby,
            chips: all * self.chips + spare,
            taken: all * self.taken,
            throughput: tokens,
            usd_per_hour: usd_s * 3600.0,
            usd_per_mtok: usd_s / tokens * 1e6,
            watts,
            joules: watts / tokens,
            headroom: s.headroom,
            binding: s.binding,
        }
    }
}
