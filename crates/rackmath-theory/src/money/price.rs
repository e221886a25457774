//! What a request, a conversation and a trace cost at a provider, and which cache offer is the cheapest.
//!
//! $$ bill = f\,p_{in} + \sum_o (w_o\,p_w + r_o\,p_r + s_o\,p_s) + y\,p_{out} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | f | fresh | tokens | prompt tokens neither written to nor read from a cache |
//! | w, r | written, read | tokens | prompt tokens by cache offer |
//! | s | kept | token s | how much was kept how long, where keeping is charged |
//! | y | output | tokens | the answer |
//! | p | - | $/token | prices of the tier the whole prompt falls into, times mode and hour |
//!
//! A prefix used n times is cheaper cached from n* = (p_w - p_r - g p_s) / (p_in - p_r - g p_s) uses on, where g is the
//! time between two uses. Two write prices at two lifetimes imply a price of keeping: (w_2 - w_1) / (T_2 - T_1).
//!
//! Assumes: a prompt's tier counts all its tokens, cached or not; cache prices rise with the tier's input price unless the
//! sheet says otherwise; an offer whose lifetime is not stated keeps its entries.
//! Source: lecture D53; each provider's documentation, cited in its sheet.

use crate::reuse;
use rackmath_spec::Moment;
use rackmath_spec::price::{CacheOffer, Factors, List, Ttl};
use rackmath_spec::trace::Trace;
use rackmath_units::{Dollars, DollarsPerToken, HoldPrice, Seconds, Tokens};

/// The tokens of one request by how they are billed.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage<'a> {
    pub fresh: Tokens,
    pub caches: Vec<CacheUse<'a>>,
    pub output: Tokens,
}

/// What one cache offer did for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheUse<'a> {
    pub offer: &'a CacheOffer,
    pub written: Tokens,
    pub read: Tokens,
    /// How long what is read was kept since its last use, where keeping is charged.
    pub kept: Seconds,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bill {
    pub prompt: f64,
    /// Requests billed at a long-context tier.
    pub long: u64,
    pub fresh: f64,
    pub written: f64,
    pub read: f64,
    pub storage: f64,
    pub output: f64,
}

impl Bill {
    pub fn total(&self) -> Dollars {
        Dollars::usd(self.fresh + self.written + self.read + self.storage + self.output)
    }

    pub fn add(&mut self, other: &Self, times: u64) {
        let n = times as f64;
        self.prompt += n * other.prompt;
        self.long += times * other.long;
        self.fresh += n * other.fresh;
        self.written += n * other.written;
        self.read += n * other.read;
        self.storage += n * other.storage;
        self.output += n * other.output;
    }
}

pub fn bill(list: &List, usage: &Usage, factors: Factors) -> Bill {
    let cached = |c: &CacheUse| c.written + c.read;
    let prompt = usage.fresh + usage.caches.iter().map(cached).sum();
    let tier = list.tier(prompt);
    let (p_in, p_out) = tier.map_or((list.input, list.output), |t| (t.input, t.output));
    // Cache prices rise with the input price of the tier.
    let rise = p_in / list.input;
    let mut bill = Bill {
        prompt: prompt.get(),
        long: u64::from(tier.is_some()),
        fresh: (p_in * usage.fresh).get() * factors.input,
        output: (p_out * usage.output).get() * factors.output,
        ..Bill::default()
    };
    for c in &usage.caches {
        let p_r = tier.and_then(|t| t.cache_read).unwrap_or(c.offer.read * rise);
        bill.read += (p_r * c.read).get() * factors.cache;
        // A write without a price of its own is ordinary input.
        bill.written += match c.offer.write {
            Some(p_w) => (p_w * rise * c.written).get() * factors.cache,
            None => (p_in * c.written).get() * factors.input,
        };
        if let Some(p_s) = c.offer.storage {
            // What is written now has not been kept yet.
            bill.storage += (p_s * c.kept * c.read).get();
        }
    }
    bill
}

/// A prefix used again and again, each time with something new behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub prefix: Tokens,
    pub suffix: Tokens,
    pub output: Tokens,
    pub uses: u64,
    pub gap: Seconds,
}

pub fn pattern(list: &List, pattern: &Pattern, offer: Option<&CacheOffer>, factors: Factors) -> Bill {
    let request = |at: u64| match offer.filter(|o| pattern.prefix >= o.minimum) {
        None => Usage { fresh: pattern.prefix + pattern.suffix, caches: Vec::new(), output: pattern.output },
        Some(offer) => {
            let alive = at > 0 && still_there(offer, at, pattern.gap);
            let (written, read) = if alive { (Tokens::ZERO, pattern.prefix) } else { (pattern.prefix, Tokens::ZERO) };
            let kept = if at > 0 { pattern.gap } else { Seconds::ZERO };
            let caches = vec![CacheUse { offer, written, read, kept }];
            Usage { fresh: pattern.suffix, caches, output: pattern.output }
        }
    };
    let mut all = Bill::default();
    // Every request after the second is billed like the second or like the first: two bills and a count.
    if offer.is_none_or(|o| o.restarts || !matches!(o.ttl, Ttl::Fixed(_))) {
        all.add(&bill(list, &request(0), factors), 1);
        all.add(&bill(list, &request(1), factors), pattern.uses.saturating_sub(1));
    } else {
        (0..pattern.uses).for_each(|at| all.add(&bill(list, &request(at), factors), 1));
    }
    all
}

/// Whether an entry written at the first use is there at a later one.
fn still_there(offer: &CacheOffer, at: u64, gap: Seconds) -> bool {
    match offer.ttl {
        Ttl::Fixed(ttl) if !offer.restarts && gap.get() > 0.0 => {
            // Without a restart an entry serves as many uses as fit into its life, then is written anew.
            let lives = (ttl / gap).floor() as u64;
            lives > 0 && !at.is_multiple_of(lives + 1)
        }
        ttl => ttl.covers(gap),
    }
}

/// Every policy with its bill, cheapest first; no cache is called `none`.
pub fn policies(list: &List, what: &Pattern, factors: Factors) -> Vec<(String, Bill)> {
    let mut all = vec![("none".to_owned(), pattern(list, what, None, factors))];
    all.extend(list.caches.iter().map(|o| (o.name.clone(), pattern(list, what, Some(o), factors))));
    all.sort_by(|a, b| a.1.total().get().total_cmp(&b.1.total().get()));
    all
}

/// Uses from which on caching a prefix is cheaper, not rounded; `None` when it never is.
pub fn break_even_uses(input: DollarsPerToken, offer: &CacheOffer, gap: Seconds) -> Option<f64> {
    let storage = offer.storage.map_or(0.0, |s| (s * gap).get());
    let (p_in, p_w, p_r) = (input.get(), offer.write.unwrap_or(input).get(), offer.read.get());
    let saved = p_in - p_r - storage;
    (saved > 0.0 && offer.ttl.covers(gap)).then(|| ((p_w - p_r - storage) / saved).max(1.0))
}

/// The longest time between two uses for which keeping a prefix is cheaper than sending it again.
pub fn break_even_gap(input: DollarsPerToken, read: DollarsPerToken, storage: HoldPrice) -> Seconds {
    input.less(read) / storage
}

/// The price of keeping that two write prices with two lifetimes imply, and the price of writing for no time at all.
pub fn implied_storage(
    short: (DollarsPerToken, Seconds),
    long: (DollarsPerToken, Seconds),
) -> Option<(HoldPrice, DollarsPerToken)> {
    let slope = HoldPrice::checked((long.0.get() - short.0.get()) / (long.1.get() - short.1.get()))?;
    Some((slope, DollarsPerToken::checked(short.0.get() - (slope * short.1).get())?))
}

/// A conversation in which every turn sends all that was said before.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Tokens of instructions and tools before the first turn.
    pub system: Tokens,
    pub turns: u64,
    pub user: Tokens,
    pub answer: Tokens,
    pub gap: Seconds,
}

/// The bill of a conversation, without a cache or with one offer marked at the end of every prompt.
pub fn conversation(list: &List, talk: &Conversation, offer: Option<&CacheOffer>, factors: Factors) -> Bill {
    let mut all = Bill::default();
    for turn in 0..talk.turns {
        let said = talk.system + (talk.user + talk.answer) * turn as f64;
        let prompt = said + talk.user;
        let usage = match offer.filter(|o| prompt >= o.minimum) {
            None => Usage { fresh: prompt, caches: Vec::new(), output: talk.answer },
            Some(offer) => {
                // The prompt of the turn before is in the cache; its answer is new to it.
                let before = said.less(talk.answer);
                let known = turn > 0 && before >= offer.minimum && offer.ttl.covers(talk.gap);
                let read = if known { before } else { Tokens::ZERO };
                let kept = if turn > 0 { talk.gap } else { Seconds::ZERO };
                let used = CacheUse { offer, written: prompt.less(read), read, kept };
                Usage { fresh: Tokens::ZERO, caches: vec![used], output: talk.answer }
            }
        };
        all.add(&bill(list, &usage, factors), 1);
    }
    all
}

/// A mode, and the moment a trace begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct When {
    pub mode: Factors,
    /// The moment of the first request; without it no hours are applied.
    pub start: Option<Moment>,
}

impl When {
    fn factors(&self, list: &List, time: Seconds) -> Factors {
        self.mode.times(list.hour(self.start.map(|s| s.plus(time))))
    }
}

/// The bill of a trace whose prompts name their blocks, without a cache or with one offer.
pub fn trace(list: &List, requests: &Trace, offer: Option<&CacheOffer>, when: When) -> Bill {
    let ttl = offer.map(|o| match o.ttl {
        Ttl::Fixed(ttl) => ttl,
        Ttl::Chosen | Ttl::Unstated => requests.span(),
    });
    let reads = ttl.map_or(Vec::new(), |ttl| reuse::prefix_hits(requests, ttl));
    let mut all = Bill::default();
    for (i, r) in requests.requests.iter().enumerate() {
        let usage = match offer.filter(|o| r.input >= o.minimum) {
            None => Usage { fresh: r.input, caches: Vec::new(), output: r.output },
            Some(offer) => {
                let hit = reads[i];
                let used = CacheUse { offer, written: r.input.less(hit), read: hit, kept: Seconds::ZERO };
                Usage { fresh: Tokens::ZERO, caches: vec![used], output: r.output }
            }
        };
        all.add(&bill(list, &usage, when.factors(list, r.time)), 1);
    }
    if let Some(storage) = offer.and_then(|o| o.storage) {
        // What was kept is kept once, however many requests read it.
        let kept = reuse::Reuse::of(requests).kept(requests.span());
        all.storage = kept * requests.input().get() * storage.get();
    }
    all
}

/// The bill of a trace that says what was read and written; writes for an hour take the offer `1h`.
pub fn logged(list: &List, requests: &Trace, when: When) -> Option<Bill> {
    let short = list.caches.first()?;
    let hour = list.caches.iter().find(|o| o.name == "1h").unwrap_or(short);
    let mut all = Bill::default();
    for r in &requests.requests {
        let l = r.logged?;
        let caches = vec![
            CacheUse { offer: short, written: l.written, read: l.read, kept: Seconds::ZERO },
            CacheUse { offer: hour, written: l.written_1h, read: Tokens::ZERO, kept: Seconds::ZERO },
        ];
        let fresh = r.input.less(l.read + l.written + l.written_1h);
        all.add(&bill(list, &Usage { fresh, caches, output: r.output }, when.factors(list, r.time)), 1);
    }
    Some(all)
}

#[cfg(test)]
mod tests;
