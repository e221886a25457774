//! SGLang's memory below the chip (HiCache): host memory whose contents the tree of the chip knows, and storage below it.
//!
//! What storage has of a request that came sets out for the host at once, and the request waits for it as long as the policy
//! says. What the host has comes up when the request is let in, all of it or nothing, behind the step that computes the rest.
//! Read from SGLang's main branch of August 2026 (`mem_cache/hiradix_cache.py`); not compared
//! with the engine itself.

use super::Scheduler;
use crate::Ns;
use crate::radix::Radix;
use crate::tiers::{Below, Coming, Tier, Tiers};
use rackmath_spec::engine::HostCache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When what the chip computed is copied to host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WritePolicy {
    /// As it is stored, and from there to storage.
    WriteThrough,
    /// When it is met again, and from there to storage.
    WriteThroughSelective,
    /// When the chip gives it up.
    WriteBack,
}

/// How long a request waits for what storage has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefetchPolicy {
    /// Until it could be computed.
    BestEffort,
    /// Until all has come.
    WaitComplete,
    /// Until all has come or its time is over.
    Timeout,
}

/// Host memory and storage below the chip (HiCache). Sizes and rates are those of tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct HiCache {
    pub host: Tier,
    pub storage: Option<Tier>,
    /// Tokens of a page of storage.
    pub page: u32,
    pub write: WritePolicy,
    pub prefetch: PrefetchPolicy,
    pub rules: HostCache,
}

impl HiCache {
    /// The tree of the chip with host memory and storage below it.
    pub(super) fn under(&self, blocks: Radix) -> Radix {
        let after = match self.write {
            WritePolicy::WriteThrough => Some(1),
            WritePolicy::WriteThroughSelective => Some(self.rules.selective_meetings),
            WritePolicy::WriteBack => None,
        };
        blocks.over(Tiers::under(self.host, self.storage, self.page), after)
    }

    /// How long a request waits at most for so many tokens.
    fn patience(&self, tokens: u32) -> Ns {
        let r = &self.rules;
        let s = (r.timeout_s + r.timeout_s_per_ki * f64::from(tokens) / 1024.0).min(r.timeout_s_most);
        (s * 1e9).round() as Ns
    }
}

impl Scheduler {
    /// What storage has of a request that came sets out for the host.
    pub(super) fn prefetch(&mut self, slot: u32) {
        let Some(rules) = self.settings.hicache.as_ref().map(|h| (h.rules.prefetch_tokens, h.rules.prefetch_share))
        else {
            return;
        };
        let r = &mut self.sequences[slot];
        let Some(below) = r.below.as_mut().filter(|_| r.brought == 0) else { return };
        let known = r.prompt + r.sampled;
        let Some((first, pages)) = self.blocks.pages(below, r.place, r.id, known, rules) else { return };
        let coming = Coming { at: self.now, first, pages };
        below.coming = Some(coming);
        if let Some(tiers) = self.blocks.tiers_mut() {
            tiers.set_out(r.id, coming);
        }
    }

    /// When a request stops to wait for what storage has of it.
    fn patient(&self, id: u64, below: &Below) -> Option<Ns> {
        let (h, coming) = (self.settings.hicache.as_ref()?, below.coming?);
        let end = self.blocks.tiers()?.arrives(id)?;
        Some(match h.prefetch {
            PrefetchPolicy::BestEffort => coming.at,
            PrefetchPolicy::WaitComplete => end,
            PrefetchPolicy::Timeout => end.min(coming.at + h.patience(coming.pages * h.page)),
        })
    }

    /// Whether a waiting request still waits for storage; if not, what has come is in the host.
    pub(super) fn awaits(&mut self, slot: u32) -> bool {
        let r = &self.sequences[slot];
        let Some(until) = r.below.as_ref().and_then(|b| self.patient(r.id, b)) else { return false };
        if until > self.now {
            return true;
        }
        let r = &mut self.sequences[slot];
        if let Some(below) = &mut r.below {
            self.blocks.stop(below, r.place, r.id, self.now);
            below.waited += below.coming.map_or(0, |c| until - c.at);
            below.coming = None;
        }
        false
    }

    /// When a waiting request stops to wait for storage.
    pub(crate) fn comes(&self) -> Option<Ns> {
        self.settings.hicache.as_ref()?;
        let until = |slot: &u32| {
            let r = &self.sequences[*slot];
            self.patient(r.id, r.below.as_ref()?).filter(|until| *until > self.now)
        };
        self.waiting.iter().filter_map(until).min()
    }

    /// What the host has of a request comes up behind what was found, all of it or nothing.
    pub(super) fn load(&mut self, slot: u32, node: u32) -> Option<(u32, u32)> {
        let least = self.settings.hicache.as_ref()?.rules.load_tokens;
        let tokens = self.blocks.deep();
        if tokens == 0 || tokens < least {
            return None;
        }
        let (node, over) = self.blocks.load(node, self.now);
        self.decision.loads.end = self.decision.loads.end.max(over);
        let r = &mut self.sequences[slot];
        if let Some(below) = r.below.as_mut().filter(|_| r.first_scheduled == Ns::MAX) {
            below.fetched = tokens;
        }
        Some((node, tokens))
    }
}
