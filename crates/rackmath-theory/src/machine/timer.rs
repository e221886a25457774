//! The one seam: how long is one pass over this work, and what binds it?
//!
//! The board ([`crate::board`]), the operator model ([`crate::pass`]) and a table of measurements ([`crate::measured`])
//! answer it; the steady state, the pools and whatever steps event by event ask it. A pass holds sequences that decode and
//! chunks of prompts, each in groups that are alike: a steady state has one group of each, a scheduler as many as it likes.
//! Nothing is allocated to ask or to answer.

use rackmath_units::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

pub trait StepTimer {
    /// Why a pass is not covered; [`std::convert::Infallible`] where every pass is.
    type Uncovered;

    fn time(&self, work: &Work) -> Result<Cost, Self::Uncovered>;

    /// What the host does for the pass while the chips may still be at the one before; nothing where it does not run ahead.
    fn host(&self, _work: &Work) -> HostTime {
        HostTime::default()
    }
}

/// What the host of an engine that runs ahead of the chips is busy with for one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostTime {
    /// From the choice of the pass to its first kernel.
    pub prepare: Seconds,
    /// From the choice to the last launch: at least `prepare`.
    pub launch: Seconds,
    /// By how much that is longer or shorter from pass to pass, evenly.
    pub varies: Seconds,
    /// From the result of the pass before, once this one is launched, to the choice of the next.
    pub choose: Seconds,
    /// To hand the tokens of the pass out, one after another.
    pub hand: Seconds,
}

impl<T: StepTimer + ?Sized> StepTimer for &T {
    type Uncovered = T::Uncovered;

    fn time(&self, work: &Work) -> Result<Cost, Self::Uncovered> {
        (**self).time(work)
    }

    fn host(&self, work: &Work) -> HostTime {
        (**self).host(work)
    }
}

/// A timer each of whose passes takes so many times as long, on the chips and on the host.
#[derive(Clone, Copy, Debug)]
pub struct Slower<T> {
    pub timer: T,
    pub by: f64,
}

impl<T: StepTimer> StepTimer for Slower<T> {
    type Uncovered = T::Uncovered;

    fn time(&self, work: &Work) -> Result<Cost, Self::Uncovered> {
        let mut slow = Cost::default();
        slow.plus(&self.timer.time(work)?, self.by);
        Ok(slow)
    }

    fn host(&self, work: &Work) -> HostTime {
        let HostTime { prepare, launch, varies, choose, hand } = self.timer.host(work);
        let [prepare, launch, varies, choose, hand] =
            [prepare, launch, varies, choose, hand].map(|t| Seconds::s(t.get() * self.by));
        HostTime { prepare, launch, varies, choose, hand }
    }
}

/// One pass of one attention group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work<'a> {
    pub decodes: Many<'a, Decodes>,
    pub chunks: Many<'a, Chunk>,
    /// Tokens guessed for each sequence that decodes, and checked together with its own.
    pub drafts: f64,
    /// The groups that take this pass together, where they differ; as many rows in each when absent.
    pub beside: Option<Beside>,
}

/// Rows of the attention groups that share their experts in one pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    pub most: f64,
    pub mean: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decodes {
    pub sequences: f64,
    pub context: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chunk {
    pub tokens: f64,
    pub prompts: f64,
    /// Tokens of each prompt that are already cached.
    pub past: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Many<'a, T> {
    One(T),
    List(&'a [T]),
}

impl<T: Default> Default for Many<'_, T> {
    fn default() -> Self {
        Self::One(T::default())
    }
}

impl<T> std::ops::Deref for Many<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::List(list) => list,
        }
    }
}

impl Chunk {
    pub fn each(&self) -> f64 {
        self.tokens / self.prompts.max(1e-9)
    }
}

impl Work<'_> {
    pub fn decode(sequences: f64, context: f64) -> Self {
        Self { decodes: Many::One(Decodes { sequences, context }), ..Self::default() }
    }

    /// A pass over `prompts` prompts of `tokens` each.
    pub fn prefill(prompts: f64, tokens: f64, past: f64) -> Self {
        Self::default().with(Chunk { tokens: prompts * tokens, prompts, past })
    }

    #[must_use]
    pub fn with(self, chunk: Chunk) -> Self {
        Self { chunks: Many::One(chunk), ..self }
    }

    /// With so many sequences more that decode, of the same context.
    #[must_use]
    pub fn joined(self, more: f64) -> Self {
        let (sequences, context) = (self.sequences(), self.decodes.first().map_or(0.0, |d| d.context));
        Self { decodes: Many::One(Decodes { sequences: sequences + more, context }), ..self }
    }

    /// Tokens each decoding sequence checks: its own and its drafts.
    pub fn queries(&self) -> f64 {
        1.0 + self.drafts
    }

    pub fn sequences(&self) -> f64 {
        self.decodes.iter().map(|d| d.sequences).sum()
    }

    pub fn prompts(&self) -> f64 {
        self.chunks.iter().map(|c| c.prompts).sum()
    }

    pub fn prompt_tokens(&self) -> f64 {
        self.chunks.iter().map(|c| c.tokens).sum()
    }

    pub fn rows(&self) -> f64 {
        self.sequences() * self.queries() + self.prompt_tokens()
    }
}

/// What takes the time, in the order tables show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Part {
    /// Matrix products of attention and dense networks.
    #[strum(to_string = "matrix products")]
    Products,
    Experts,
    /// Attention and recurrences over the context.
    Attention,
    /// Norms, rotations, activations, cache writes.
    #[strum(to_string = "small kernels")]
    Small,
    #[strum(to_string = "collectives")]
    Network,
    #[strum(to_string = "head and sampling")]
    Head,
    #[strum(to_string = "drafting")]
    Draft,
    /// Towers that turn pictures and sound into tokens.
    Encoder,
    /// Weights in the host's memory: multiplied there, or on their way to the chip.
    #[strum(to_string = "weights in host memory")]
    Offloaded,
    /// Low-rank pairs beside the products, and waiting for those that are not there.
    Adapters,
    Host,
}

impl Part {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What can bind a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum Limit {
    /// Multiplications.
    #[serde(rename = "arithmetic")]
    #[strum(to_string = "arithmetic")]
    Compute,
    /// Memory bandwidth: weights and caches.
    #[strum(to_string = "memory bandwidth")]
    Memory,
    /// Kernel launches and floors.
    #[strum(to_string = "kernel latency")]
    Latency,
    /// Links between chips.
    #[serde(rename = "links")]
    #[strum(to_string = "links")]
    Link,
    /// The host that prepares the step.
    Host,
}

impl Limit {
    pub const ALL: [Self; 5] = [Self::Compute, Self::Memory, Self::Latency, Self::Link, Self::Host];

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Seconds of a pass by part and by limit, and its roofline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    parts: [f64; Part::ALL.len()],
    limits: [f64; Limit::ALL.len()],
    pub(crate) compute: f64,
    pub(crate) memory: f64,
}

impl Cost {
    /// A time of which no more is known than the part and the limit it is put down to.
    pub fn of(part: Part, limit: Limit, time: Seconds) -> Self {
        let mut one = Self::default();
        one.add(part, limit, time.get());
        one
    }

    /// The roofline itself: both sides at once, the longer one counts.
    pub(crate) fn ideal_of(compute: f64, memory: f64) -> Self {
        let limit = if compute >= memory { Limit::Compute } else { Limit::Memory };
        Self { compute, memory, ..Self::of(Part::Products, limit, Seconds::s(compute.max(memory))) }
    }

    /// The same time, all of it put down to one part.
    pub(crate) fn all_in(&self, part: Part) -> Self {
        let mut one = Self { parts: [0.0; Part::ALL.len()], ..*self };
        one.parts[part as usize] = self.time().get();
        one
    }

    pub(crate) fn add(&mut self, part: Part, limit: Limit, seconds: f64) {
        self.parts[part as usize] += seconds;
        self.limits[limit as usize] += seconds;
    }

    /// Takes the times of parts from another cost. What is longer is put down to links; what is shorter is taken off what limits
    /// most first.
    pub(crate) fn with_parts_of(&mut self, other: &Self, parts: &[Part]) {
        for part in parts {
            let more = other.parts[*part as usize] - self.parts[*part as usize];
            self.add(*part, Limit::Link, more.max(0.0));
            self.parts[*part as usize] += more.min(0.0);
            let mut less = (-more).max(0.0);
            while less > 0.0 {
                let most = &mut self.limits[self.binding() as usize];
                let off = less.min(*most);
                if off <= 0.0 {
                    break;
                }
                *most -= off;
                less -= off;
            }
        }
    }

    pub(crate) fn plus(&mut self, other: &Self, times: f64) {
        for (a, b) in self.parts.iter_mut().zip(&other.parts) {
            *a += b * times;
        }
        for (a, b) in self.limits.iter_mut().zip(&other.limits) {
            *a += b * times;
        }
        self.compute += other.compute * times;
        self.memory += other.memory * times;
    }

    pub fn time(&self) -> Seconds {
        Seconds::s(self.parts.iter().sum())
    }

    pub fn part(&self, part: Part) -> Seconds {
        Seconds::s(self.parts[part as usize])
    }

    pub fn limited(&self, limit: Limit) -> Seconds {
        Seconds::s(self.limits[limit as usize])
    }

    pub fn binding(&self) -> Limit {
        let of = |limit: Limit| self.limits[limit as usize];
        Limit::ALL.into_iter().fold(Limit::Compute, |best, limit| if of(limit) > of(best) { limit } else { best })
    }

    /// The roofline of the same pass: FLOP at the dense peak and bytes at full bandwidth, both at once, no links.
    pub fn ideal(&self) -> Seconds {
        Seconds::s(self.compute.max(self.memory))
    }

    pub fn roofline(&self) -> (Seconds, Seconds) {
        (Seconds::s(self.compute), Seconds::s(self.memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 s of products (3 s of arithmetic, 2 s of memory), 4 s of attention from memory, 1 s of small kernels.
    fn step() -> Cost {
        let mut cost = Cost::default();
        cost.add(Part::Products, Limit::Compute, 3.0);
        cost.add(Part::Products, Limit::Memory, 2.0);
        cost.add(Part::Attention, Limit::Memory, 4.0);
        cost.add(Part::Small, Limit::Latency, 1.0);
        cost
    }

    #[test]
    fn a_part_that_takes_longer_elsewhere_waits_for_links_and_one_that_is_shorter_relieves_what_binds() {
        let of = |part, seconds| Cost::of(part, Limit::Compute, Seconds::s(seconds));
        let mut longer = step();
        longer.with_parts_of(&of(Part::Attention, 7.0), &[Part::Attention]);
        assert_eq!(longer.limits, [3.0, 6.0, 1.0, 3.0, 0.0]);
        // Without its 5 s of products the step has 5 s left: the 6 s of memory give 5 s.
        let mut shorter = step();
        shorter.with_parts_of(&Cost::default(), &[Part::Products]);
        assert_eq!((shorter.time(), &shorter.limits[..]), (Seconds::s(5.0), &[3.0, 1.0, 1.0, 0.0, 0.0][..]));
        // 9.5 s taken off: 6 of memory, then 3 of arithmetic, then half of the floors; nothing falls below none.
        let mut least = step();
        least.with_parts_of(&of(Part::Small, 0.5), &[Part::Products, Part::Attention, Part::Small]);
        assert_eq!((least.time(), &least.limits[..]), (Seconds::s(0.5), &[0.0, 0.0, 0.5, 0.0, 0.0][..]));
    }

    const SECONDS: [std::ops::Range<f64>; 4] = [0.0..10.0, 0.0..10.0, 0.0..10.0, 0.0..10.0];

    proptest::proptest! {
        #[test]
        fn limits_and_parts_keep_one_sum_and_none_is_below_none(from in SECONDS, to in SECONDS) {
            let parts = [Part::Products, Part::Attention, Part::Small, Part::Network];
            let cost = |seconds: [f64; 4]| {
                let mut cost = Cost::default();
                for (n, part) in parts.into_iter().enumerate() {
                    cost.add(part, Limit::ALL[n], seconds[n]);
                }
                cost
            };
            let (mut mine, other) = (cost(from), cost(to));
            mine.with_parts_of(&other, &parts);
            let sum = |of: &[f64]| of.iter().sum::<f64>();
            proptest::prop_assert!((sum(&mine.parts) - sum(&other.parts)).abs() < 1e-9);
            proptest::prop_assert!((sum(&mine.limits) - sum(&mine.parts)).abs() < 1e-9);
            proptest::prop_assert!(mine.limits.iter().chain(&mine.parts).all(|s| *s >= -1e-12));
        }
    }
}
