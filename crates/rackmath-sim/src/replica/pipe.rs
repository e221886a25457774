//! A replica of several pipeline stages: as many batches are under way, each in a stage of its own.
//!
//! $$ e_{i,s} = \max(e_{i,s-1},\ e_{i-1,s}) + t_i / p $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | e_{i,s} | `pipe` | ns | when batch i leaves stage s |
//! | t_i, p | took, stages | ns, 1 | a batch's time through all stages by itself; how many they are |
//!
//! A batch is chosen as soon as fewer than p are under way and something can be given; otherwise when the first of them has
//! ended. Who is in a batch is given nothing before its token has come, but the next chunk of a prompt may follow the one before.
//! Assumes: stages take equal shares of a batch's time, with its hops. Ignores: drafts; steps chosen ahead.
//! Source: vLLM `v1/engine/core.py` (`step_with_batch_queue`: filling the queue of `max_concurrent_batches` goes before results)
//! and `v1/core/sched/scheduler.py`. Not compared with the engine itself.

use super::{Replica, Sink, Timing};
use crate::Ns;
use crate::clock::{Clock, Host, single, whole};

impl Replica {
    /// The batch that was chosen sets out.
    pub(super) fn pass_on(&mut self, clock: &mut impl Clock, now: Ns, sink: &mut impl Sink) {
        let all = self.composed();
        let took = if all.tokens == 0 {
            whole(clock.run(all.decodes, all.context).first)
        } else {
            // Hosts launch the layers of their stages: no batch is through before it is launched.
            let mixed = clock.mixed(all.decodes, all.context, all.each(), &self.chunks);
            mixed.step.max(mixed.host.launch)
        };
        let stages = self.pipe.len() as u64;
        let start = now.max(self.pipe[0]).max(self.engine.decision().loads.start);
        let mut end = start;
        for (at, free) in self.pipe.iter_mut().enumerate() {
            let at = at as u64;
            // Parts of whole nanoseconds that add up.
            end = end.max(*free) + (took * (at + 1) / stages - took * at / stages);
            *free = end;
        }
        let counted = took.div_ceil(stages);
        let mixed = all.tokens > 0;
        self.totals.steps += 1;
        self.count_mixed(counted, all.tokens);
        // Who had a token when the batch before ended waited since then.
        let gap = single(end - self.device.min(end));
        let timing = Timing { start, end, gap, host: Host::default(), mixed, counted };
        self.take(now, &timing, sink);
        self.device = end;
        let full = self.flights.len() >= self.pipe.len();
        self.due = if full { self.flights.front().map(|f| f.end) } else { Some(now) };
    }
}
