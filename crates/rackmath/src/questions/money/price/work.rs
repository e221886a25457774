//! What is sent to a provider, checked, and its bills.

use crate::desk::prelude::*;
use rackmath_spec::file;
use rackmath_spec::price::{CacheOffer, List};
use rackmath_spec::trace::Trace;
use rackmath_theory::price::{
    Bill, CacheUse, Conversation, Pattern, Usage, When, bill, conversation, logged, pattern, trace,
};

/// What is sent: a conversation where turns are given, a trace where one is, a prefix again and again where uses are,
/// else one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Tokens of the prompt; with uses, of the prefix that comes back.
    #[schemars(extend("x-flag" = "input -i isl"))]
    pub input: Option<f64>,
    /// Tokens of the answer.
    #[schemars(extend("x-flag" = "output -o osl"))]
    pub output: f64,
    /// Of the prompt, tokens read from a cache; up to 1, a share of it, such as 80%.
    pub cached: f64,
    /// Of the prompt, tokens written to a cache; up to 1, a share of it, such as 80%.
    pub written: f64,
    /// Which cache offer they were read from or written to: `5m`, `1h`, `automatic`, `explicit`.
    #[schemars(extend("x-none" = "the first"))]
    pub offer: Option<String>,
    /// Requests with the same prefix.
    pub uses: Option<u64>,
    /// New tokens behind the prefix.
    pub suffix: f64,
    /// Time between two requests or turns.
    #[educe(Default = 60.0)]
    pub gap_s: f64,
    /// Turns of a conversation that sends all that was said before.
    pub turns: Option<u64>,
    /// Tokens of instructions and tools before the first turn.
    #[educe(Default = 10e3)]
    pub instructions: f64,
    /// New tokens of each turn.
    #[educe(Default = 500.0)]
    pub user: f64,
    /// Tokens of each turn's answer.
    #[educe(Default = 500.0)]
    pub answer: f64,
    /// A trace: JSON lines as Mooncake writes them, or CSV with time_s,input_tokens,output_tokens.
    #[schemars(extend("x-file" = "trace"))]
    pub trace: Option<String>,
    /// What to call the trace.
    pub trace_name: String,
}

pub(super) enum Prepared {
    Request { input: Tokens, output: Tokens, cached: Tokens, written: Tokens, offer: Option<String> },
    Pattern(Pattern),
    Conversation(Conversation),
    Trace(String, Trace),
}

/// The name of the policy that uses no cache.
pub(super) const NONE: &str = "none";

/// Most requests or turns.
const MOST: u64 = 100_000;

impl Prepared {
    pub(super) fn new(w: &Workload) -> Result<Self, Error> {
        let some = |field, value| tokens(field, value, 0.0);
        let gap = || {
            let gap = Seconds::checked(w.gap_s).filter(|g| g.get() <= 1e9);
            gap.ok_or_else(|| Error::value("gap", w.gap_s, "seconds from 0 to 1e9"))
        };
        Ok(match (w.turns, &w.trace, w.uses, w.input) {
            (Some(turns), None, None, None) => Self::Conversation(Conversation {
                system: some("instructions", w.instructions)?,
                user: some("user", w.user)?,
                answer: some("answer", w.answer)?,
                turns: up_to("turns", turns, MOST)?,
                gap: gap()?,
            }),
            (None, Some(text), None, None) => Self::Trace(w.trace_name.clone(), file::trace(&w.trace_name, text)?),
            (None, None, Some(uses), Some(prefix)) => Self::Pattern(Pattern {
                prefix: some("input", prefix)?,
                suffix: some("suffix", w.suffix)?,
                output: some("output", w.output)?,
                uses: up_to("uses", uses, MOST)?,
                gap: gap()?,
            }),
            (None, None, None, Some(input)) => {
                let prompt = some("input", input)?;
                // Nobody bills for a part of a token.
                let part = |field, value: f64| {
                    let share = value > 0.0 && value <= 1.0;
                    let neither = !share && value.fract() != 0.0;
                    refuse_if(
                        neither,
                        field,
                        value,
                        "a share up to 1, such as 0.8 or 80%, or whole tokens, such as 80k",
                    )?;
                    some(field, if share { (value * prompt.get()).round() } else { value })
                };
                let (input, cached, written) = (prompt, part("cached", w.cached)?, part("written", w.written)?);
                let (given, expected) = (format!("{cached} + {written}"), format!("parts of the prompt's {input}"));
                refuse_if(cached + written > input, "cached + written", given, expected)?;
                Self::Request { input, output: some("output", w.output)?, cached, written, offer: w.offer.clone() }
            }
            (None, None, _, None) => {
                return Err(Error::value("workload", "no prompt", "input, turns or a trace"));
            }
            _ => return Err(Error::value("workload", "more than one", "one of turns, a trace, or input with uses")),
        })
    }

    /// Every policy with its bill, cheapest first.
    pub(super) fn bills(&self, list: &List, when: When) -> Result<Vec<(String, Bill)>, Error> {
        if let Self::Request { cached, written, offer, .. } = self
            && *cached + *written > Tokens::ZERO
        {
            let offer = match offer {
                Some(name) => Some(list.cache(name)?),
                None => list.caches.first(),
            };
            let name = offer.map_or("no cached price", |o| &o.name);
            return Ok(vec![(name.to_owned(), self.billed(list, offer, when))]);
        }
        if let Self::Trace(_, requests) = self
            && requests.requests.iter().all(|r| r.logged.is_some())
        {
            let bill = logged(list, requests, when);
            return Ok(bill.map(|b| ("as logged".to_owned(), b)).into_iter().collect());
        }
        let mut all = vec![(NONE.to_owned(), self.billed(list, None, when))];
        let can_cache = match self {
            Self::Request { .. } => false,
            Self::Trace(_, requests) => requests.has_blocks(),
            _ => true,
        };
        if can_cache {
            all.extend(list.caches.iter().map(|o| (o.name.clone(), self.billed(list, Some(o), when))));
        }
        all.sort_by(|a, b| a.1.total().get().total_cmp(&b.1.total().get()));
        Ok(all)
    }

    fn billed(&self, list: &List, offer: Option<&CacheOffer>, when: When) -> Bill {
        let factors = when.mode.times(list.hour(when.start));
        match self {
            Self::Request { input, output, cached, written, .. } => {
                let used = offer.map(|offer| CacheUse { offer, written: *written, read: *cached, kept: Seconds::ZERO });
                let fresh = if used.is_some() { input.less(*cached + *written) } else { *input };
                bill(list, &Usage { fresh, caches: used.into_iter().collect(), output: *output }, factors)
            }
            Self::Pattern(p) => pattern(list, p, offer, factors),
            Self::Conversation(c) => conversation(list, c, offer, factors),
            Self::Trace(_, requests) => trace(list, requests, offer, when),
        }
    }

    /// What grows along a picture's axis, and how far it should go.
    pub(super) fn growth(&self) -> Option<(&'static str, u64)> {
        match self {
            Self::Pattern(p) if p.uses > 1 => Some(("requests with the same prefix", p.uses)),
            Self::Conversation(c) => Some(("turns", c.turns)),
            _ => None,
        }
    }

    /// The bill when there are so many requests or turns.
    pub(super) fn grown(&self, list: &List, offer: Option<&CacheOffer>, when: When, n: u64) -> Bill {
        let factors = when.mode.times(list.hour(when.start));
        match self {
            Self::Pattern(p) => pattern(list, &Pattern { uses: n, ..p.clone() }, offer, factors),
            Self::Conversation(c) => conversation(list, &Conversation { turns: n, ..c.clone() }, offer, factors),
            other => other.billed(list, offer, when),
        }
    }

    pub(super) fn gap(&self) -> Option<Seconds> {
        match self {
            Self::Pattern(p) => Some(p.gap),
            Self::Conversation(c) => Some(c.gap),
            _ => None,
        }
    }

    pub(super) fn words(&self) -> Remark {
        match self {
            Self::Request { input, output, cached, written, .. } => {
                let part = |n: &Tokens| Some(*n).filter(|n| n.get() > 0.0);
                let input = says("one_request").with("input", *input);
                input.with("cached", part(cached)).with("written", part(written)).with("output", *output)
            }
            Self::Pattern(p) => {
                let uses = says("requests_apart").with("uses", p.uses).with("gap", p.gap);
                uses.with("same", p.prefix).with("new", p.suffix).with("output", p.output)
            }
            Self::Conversation(c) => {
                let turns = says("turns_apart").with("turns", c.turns).with("gap", c.gap);
                turns.with("before", c.system).with("new", c.user).with("output", c.answer)
            }
            Self::Trace(name, t) => {
                let requests = says("trace_of").with("trace", name).with("requests", t.requests.len());
                requests.with("span", t.span()).with("input", t.input()).with("output", t.output())
            }
        }
    }
}
