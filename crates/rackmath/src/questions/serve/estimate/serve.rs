//! A deployment under a load: the steady state of one group, as a whole machine's numbers.

use super::ask::{Ask, Loading};
use super::split::{self, Flow};
use crate::Error;
use crate::setting::ready;
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::steady::{Load, Requests, Steady, steady};

/// Passes ready to be asked.
pub(super) struct Prepared {
    /// The deployment, or the pool that decodes.
    pub main: Ready,
    /// Sequences one group holds.
    pub room: f64,
    /// The pool that computes prompts.
    pub split: Option<split::Pool>,
}

impl Prepared {
    pub(super) fn new(kernels: &KernelSet, ask: &Ask) -> Result<Self, Error> {
        let main = ready(kernels, ask.parts.clone())?;
        let split = match ask.split {
            None => None,
            Some(s) if s.layout == ask.parts.layout => Some(split::Pool::new(main.clone(), s.instances, ask)),
            Some(s) => {
                let parts = Deployment { layout: s.layout, ..ask.parts.clone() };
                Some(split::Pool::new(ready(kernels, parts)?, s.instances, ask))
            }
        };
        let room = main.room(&ask.requests);
        Ok(Self { main, room, split })
    }

    /// Groups with their own sequences.
    pub(super) fn groups(&self) -> f64 {
        self.main.deployment.groups()
    }

    /// Half width of an interval of the engine, as a natural logarithm.
    pub(super) fn spread(&self, of: f64) -> f64 {
        of * self.main.pass.wider()
    }
}

/// The machine in steady state.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// One group.
    pub steady: Steady,
    /// Groups that are busy.
    pub groups: f64,
    /// Seconds to the first token, without waiting for memory.
    pub ttft: f64,
    /// Seconds of waiting.
    pub queue: f64,
    /// Requests a second, all groups.
    pub rate: f64,
    /// All chips.
    pub chips: f64,
    /// The pool of prompts.
    pub flow: Option<Flow>,
    /// Whether anything fits at all.
    pub fits: bool,
    /// Whether arrivals outrun the server.
    pub overloaded: bool,
}

impl Outcome {
    /// Seconds per output token.
    pub(super) fn tpot(&self) -> f64 {
        self.steady.tpot.get()
    }

    /// Seconds from arrival to the last token.
    pub(super) fn e2e(&self, requests: &Requests) -> f64 {
        self.queue + self.ttft + self.tpot() * (requests.output - 1.0).max(0.0)
    }

    /// Output tokens a second and chip.
    pub(super) fn output_per_chip(&self, requests: &Requests) -> f64 {
        self.rate * requests.output / self.chips
    }

    /// Whether it can be offered at all.
    pub(super) fn serves(&self) -> bool {
        self.fits && !self.overloaded
    }

    /// Share of the chips' time that prompts take.
    pub(super) fn prompt_time(&self) -> f64 {
        if let Some(flow) = &self.flow {
            return flow.chips / self.chips;
        }
        let s = &self.steady;
        let step = s.step().get();
        let more = (s.mixed.time().get() - s.decode.time().get()).max(0.0) * s.prompt_share;
        if step > 0.0 { more / step } else { 0.0 }
    }

    /// Dollars per million output and input tokens.
    pub(super) fn usd_per_mtok(&self, requests: &Requests, price: Option<f64>) -> Option<(f64, f64)> {
        let dollars = price? * self.chips;
        let prompt = self.prompt_time();
        let mtok = |tokens: f64, share: f64| dollars * share / (self.rate * tokens) * 1e6;
        (self.rate > 0.0).then(|| (mtok(requests.output, 1.0 - prompt), mtok(requests.input, prompt)))
    }
}

/// The load of one group, and how many groups share it.
pub(super) fn of_group(load: Loading, groups: f64) -> (Load, f64) {
    match load {
        Loading::Concurrency(c) => {
            // Fewer requests than groups leave groups without any.
            let busy = groups.min(c.max(1.0));
            (Load::Closed { concurrency: c / busy, clump: 1.0, burst: 0.0, convoy: false }, busy)
        }
        Loading::Rate(rate) => (Load::Open { rate: rate / groups }, groups),
        Loading::Full => (Load::Full, groups),
    }
}

/// The steady state under a load.
pub(super) fn evaluate(p: &Prepared, requests: &Requests, load: Loading) -> Outcome {
    if let Some(pool) = &p.split {
        return split::evaluate(p, pool, requests, load);
    }
    let (one, groups) = of_group(load, p.groups());
    let s = steady(&p.main.server(p.room), requests, one);
    Outcome {
        ttft: s.ttft.get(),
        queue: s.queue.get(),
        rate: s.rate * groups,
        groups,
        chips: p.main.deployment.chips(),
        flow: None,
        fits: p.room >= 1.0,
        overloaded: s.overloaded,
        steady: s,
    }
}
