//! What users meet where means are not enough, at a rate or under limits on percentiles: the deployment on the simulator's
//! stage.

use super::solve::{kept_up, rate_steps, steps_of};
use super::words::overloaded;
use super::work::{Ask, Case};
use crate::desk::prelude::*;
use crate::simulate::{self, Comes, Percentiles, Pool, SEED, SETTLED, Stage};
use rackmath_sim::workload::Length;
use rackmath_theory::deployment::Ready;
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::{Requests, yielded};

/// Most requests in flight of a run.
const MOST_INSIDE: f64 = 200_000.0;

/// What came of the wish to know it.
pub(super) enum Met {
    /// Nobody asked.
    Unasked,
    Run(Percentiles),
    /// It cannot be simulated, and why.
    Not(Remark),
}

impl Met {
    pub(super) fn run(&self) -> Option<&Percentiles> {
        if let Self::Run(p) = self { Some(p) } else { None }
    }
}

/// The chance at which so many drafts yield so many tokens a step.
fn acceptance(drafts: f64, accepted: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if yielded(drafts, middle) < accepted { low = middle } else { high = middle }
    }
    high
}

impl Case<'_> {
    /// Limits on the first token, on a token and on the whole.
    pub(super) fn limits(&self) -> [Option<AtMost>; 3] {
        [self.request.ttft_ms, self.request.tpot_ms, self.request.e2e_ms]
    }

    /// Simulates a deployment whose steady state is known, where that is asked for and it serves.
    pub(super) fn met(&self, ask: &Ask, p: &Serving, o: &Outcome, effort: &Effort) -> Result<Met, Error> {
        let limited = self.limits().iter().flatten().any(|l| l.percentile.is_some());
        let waits = matches!(ask.load, Loading::Rate(_)) || ask.users.is_some();
        if !(limited || waits) || !o.serves() {
            return Ok(Met::Unasked);
        }
        if o.encoders.is_some() {
            return Ok(Met::Not(says("encoders_not_simulated")));
        }
        let inside = (o.steady.running * o.groups).max(1.0);
        let comes = match ask.load {
            _ if let Some((users, think)) = ask.users => Comes::Users { users: users.round() as u64, think },
            Loading::Rate(rate) => Comes::Open { rate, replicas: 1 },
            Loading::Concurrency(users) => Comes::Users { users: users.round().max(1.0) as u64, think: 0.0 },
            Loading::Full => Comes::Users { users: inside.round() as u64, think: 0.0 },
        };
        let inside = if let Comes::Users { users, .. } = comes { users as f64 } else { inside };
        if inside > MOST_INSIDE {
            return Ok(Met::Not(says("too_many_inside").with("inside", inside).with("most", MOST_INSIDE)));
        }
        match self.stage(ask, p, o, inside.ceil() as u64, effort) {
            Ok(stage) => Ok(Met::Run(stage.run(comes)?)),
            Err(why) => Ok(Met::Not(why.to_string().into())),
        }
    }

    /// Requests per second that hold where those asked for do not: as `--solve rate` finds them, but for the targets.
    pub(super) fn holds(&self, p: &Serving, o: &Outcome, met: &Met, effort: &Effort) -> Result<Option<f64>, Error> {
        if !matches!(self.ask.load, Loading::Rate(_)) || !o.fits || !overloaded(o, met) {
            return Ok(None);
        }
        let (step, most) = rate_steps(self, p, &self.ask.requests);
        let (mut yes, mut no) = (0.0, most);
        while no - yes > 1.0 {
            effort.cancel.check()?;
            let middle = f64::midpoint(yes, no).floor();
            let ask = Ask { load: Loading::Rate(steps_of(middle, step)), ..self.ask.clone() };
            let then = self.under(p, &ask.requests, ask.load);
            match self.met(&ask, p, &then, effort)? {
                // Where nothing can be simulated nobody knows.
                Met::Not(_) => return Ok(None),
                met if kept_up(self, &then, &met) => yes = middle,
                _ => no = middle,
            }
        }
        Ok((yes >= 1.0).then(|| steps_of(yes, step)))
    }

    fn stage<'e>(
        &self,
        ask: &Ask,
        p: &Serving,
        o: &Outcome,
        inside: u64,
        effort: &'e Effort,
    ) -> Result<Stage<'e>, Error> {
        let r = &ask.requests;
        let mut pools = vec![self.pool(&p.main, r, p.groups(), None)?];
        let mut send = 0.0;
        if let (Some(pool), Some(flow)) = (&p.split, &o.flow) {
            let (on, prompts) = (&pool.instance.deployment, Requests { output: 1.0, drafts: 0.0, ..*r });
            // As many prompts at a time as fill a pass.
            let together = (on.engine.schedule.chunk / r.new_tokens()).ceil().max(1.0);
            let groups = on.groups() * flow.instances.ceil().max(1.0);
            pools.insert(0, self.pool(&pool.instance, &prompts, groups, Some(together as u64))?);
            send = pool.send.get() / r.input;
        }
        let tokens = |n: f64| n.round().max(1.0) as u32;
        Ok(Stage {
            pools,
            send,
            slower: 1.0,
            cached: r.cached,
            lengths: [Length::Fixed(tokens(r.input)), Length::Fixed(tokens(r.output))],
            longest: tokens(r.input + r.output).saturating_add(16),
            accepted: (r.drafts > 0.0).then(|| acceptance(r.drafts, r.accepted)),
            inside,
            limits: self.limits(),
            requests: SETTLED,
            seed: SEED,
            effort,
        })
    }

    fn pool(&self, ready: &Ready, r: &Requests, engines: f64, seqs: Option<u64>) -> Result<Pool, Error> {
        simulate::one_stage(&ready.deployment)?;
        let sglang = ready.deployment.engine.family == "sglang";
        let chunk = self.request.max_num_batched_tokens.filter(|_| sglang).map(|n| n as i64);
        let asked = simulate::Request {
            traffic: simulate::Traffic { isl: r.input, osl: r.output, ..Default::default() },
            flags: simulate::Flags {
                max_num_seqs: seqs,
                num_speculative_tokens: r.drafts as u64,
                ..Default::default()
            },
            sglang: simulate::Sglang { chunked_prefill_size: chunk, ..Default::default() },
            ..Default::default()
        };
        let settings = simulate::of_engine(&asked, ready)?;
        simulate::held(&settings, r.input, r.output)?;
        Ok(Pool { ready: ready.clone(), settings, engines: engines as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_a_draft_is_found_from_what_steps_yield() {
        // Three drafts at 0.7: 1 + 0.7 + 0.49 + 0.343 tokens a step.
        assert!((acceptance(3.0, 2.533) - 0.7).abs() < 1e-9);
        assert!(acceptance(3.0, 1.0) < 1e-9 && acceptance(3.0, 4.0) > 1.0 - 1e-4);
    }
}
