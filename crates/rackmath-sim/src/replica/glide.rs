//! Decodes alone at once, of engines whose other steps all go through the scheduler.
//!
//! As long as nobody ends, waits or lacks room, everybody who runs gets one token in each step and nothing else changes. The
//! state is left as the scheduler would have left it after the last of these steps.

use super::{Flight, Replica, Sink};
use crate::Ns;
use crate::clock::Clock;
use crate::engine::Share;

impl Replica {
    /// Takes the steps from this call on at once whose calls come before `to`; false when there are none.
    pub(super) fn glide(&mut self, clock: &mut impl Clock, now: Ns, to: Ns, sink: &mut impl Sink) -> bool {
        let Some(most) = self.engine.glides() else { return false };
        let running = self.engine.decoding();
        // Everybody got a token in the step before, and with overlap nobody else did in the one under way.
        let alike = |f: &Flight| f.shares.len() == running.len() && f.shares.iter().all(|s| s.decodes && s.samples);
        let together = |slot: &u32| self.engine.sequence(*slot).last_token == self.device;
        let steady = self.flights.len() == usize::from(self.lag())
            && self.open == self.lag()
            && self.flights.iter().all(alike)
            && self.bringing == 0
            && running.iter().all(together);
        if !steady {
            return false;
        }
        let context = running.iter().map(|slot| u64::from(self.engine.sequence(*slot).computed)).sum();
        let load = (running.len() as u32, context);
        let host = self.host(|| clock.host(load.0));
        let first = (self.device.max(now + host.prepare), host.choose);
        self.take_up(now + host.launch);
        let leap = self.leap(clock, load, first, (to, most.into()), sink);
        let steps = leap.steps as u32;
        (self.calm, self.least) = (self.calm.saturating_add(steps), leap.least);
        self.engine.pass(steps);
        if let Some(flight) = self.flights.back_mut().filter(|_| steps > 1) {
            flight.end = leap.last;
            for share in &mut flight.shares {
                share.before += steps - 1;
            }
        }
        let mut shares = self.spare.pop().unwrap_or_default();
        shares.clear();
        for at in 0..self.engine.decoding().len() {
            let slot = self.engine.decoding()[at];
            let r = self.engine.sequence_mut(slot);
            r.computed += steps;
            r.sampled += steps - 1;
            r.pending += 1;
            r.flying += 1;
            (r.last_token, r.stalled) = (self.device, self.totals.mixed);
            let before = r.computed - 1;
            shares.push(Share { slot, tokens: 1, before, drafts: 0, samples: true, decodes: true, admitted: false });
        }
        self.flights.push_back(Flight { end: self.device, shares });
        self.open = self.lag();
        true
    }
}
