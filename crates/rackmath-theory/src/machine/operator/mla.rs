//! Multi-head latent attention as work for [`super::attention`].
//!
//! Decode multiplies in the latent space (the up-projections are absorbed into the query and output projections), so that
//! all heads share one cached vector of r + d_r values; prefill expands keys and values first and is plain attention:
//!
//! $$ f_1^{decode} = 2\,(2 r + d_r) \qquad m_1 = (r + d_r)\,w \qquad f_1^{prefill} = 2\,(d_n + d_r + d_v) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | r, d_r | rank, rope | 1 | latent size, size of the shared rotary key |
//! | d_n, d_v | nope, value | 1 | sizes of a head's key without rotation and of its value |
//! | w | kv | B/param | bytes of a cached value |
//!
//! Where an index picks the tokens, prompts multiply in the latent space too, as decodes do.
//! The score takes r + d_r multiply-adds and the output r. With 128 heads that is 242 FLOP for a byte of a 16-bit cache,
//! near the ridge of a chip: decode is limited by compute where attention of other kinds never is.
//! Ignores: the up-projections of prefill, which are matrix products of their own.
//! Source: DeepSeek-V2 (arXiv 2405.04434), section 2.1 and appendix C.

use super::attention::{DecodeWork, PrefillWork};
use rackmath_units::{Bytes, BytesPerParam, Flop};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latent {
    pub heads: f64,
    pub rank: f64,
    pub rope: f64,
    pub nope: f64,
    pub value: f64,
}

impl Latent {
    pub fn decode(&self, sequences: f64, context: f64, kv: BytesPerParam) -> DecodeWork {
        DecodeWork {
            sequences,
            context,
            kv_heads: 1.0,
            group: self.heads,
            token_bytes: Bytes::b((self.rank + self.rope) * kv.get()),
            token_flop: Flop::flop(2.0 * (2.0 * self.rank + self.rope)),
            // A latent query in and a latent output out for each head, 16 bits each.
            query_bytes: Bytes::b(self.heads * (2.0 * self.rank + self.rope) * 2.0),
        }
    }

    /// Of prompts that attend to picked tokens: each query has tokens of its own, so that keys and values are not expanded.
    pub fn picked(&self, sequences: f64, new: f64, past: f64, picked: f64) -> PrefillWork {
        let (query, entry) = (2.0 * self.rank + self.rope, self.rank + self.rope);
        PrefillWork {
            sequences,
            new,
            past,
            window: Some(picked),
            heads: self.heads,
            pair_flop: Flop::flop(2.0 * query),
            // A latent query and a latent output for each head, and the entry, 16 bits each.
            new_bytes: Bytes::b(2.0 * (self.heads * query + entry)),
            past_bytes: Bytes::b(2.0 * entry),
        }
    }

    pub fn prefill(&self, sequences: f64, new: f64, past: f64) -> PrefillWork {
        let key = self.nope + self.rope;
        PrefillWork {
            sequences,
            new,
            past,
            window: None,
            heads: self.heads,
            pair_flop: Flop::flop(2.0 * (key + self.value)),
            // Query, key, value and output of every head and the latent cache, 16 bits each.
            new_bytes: Bytes::b(2.0 * (self.heads * 2.0 * (key + self.value) + self.rank + self.rope)),
            past_bytes: Bytes::b(2.0 * self.heads * (key + self.value)),
        }
    }
}
