//! Attention: one new token against a cache (decode), or many new tokens (prefill).
//!
//! $$ t = t_0 + \big(C^p + M^p\big)^{1/p} $$
//!
//! Decode, with n = B K sequences times KV heads, each a block of work (or several, when its cache is split):
//!
//! $$ C = \frac{f}{a F} \frac{R \lceil G / R \rceil}{G} + \tau \frac{n}{N}\Big(1 + \frac{G}{G_0}\Big) \qquad
//!    M = \max\Big(m \Big[\frac{1-h}{b W} + \frac{h}{N r_2}\Big] + q \frac{m}{m + s L},\; \frac{S\,m_1}{r\,k}\Big) $$
//! $$ h = \frac{1}{1 + (m / s L)^8} \qquad
//!    k = \min\Big(\frac{N}{n \lceil G/64 \rceil},\; \frac{S}{128},\; k_{max}\Big) \ge 1 $$
//!
//! Prefill, with tiles of T query tokens:
//!
//! $$ C = \max\Big(\frac{f}{a F},\; \frac{f_1 T S}{a F / N}\Big) + \tau \frac{B H \lceil s_q / T \rceil}{N} \qquad
//!    M = m \Big[\frac{1-h}{b W} + \frac{h}{N r_2}\Big] \qquad f = f_1 B H \sum_{i=1}^{s_q} \min(s_p + i, w) $$
//!
//! On a chip other than the one its kernel was measured on (index 0), a prompt's share of peak is that of two kinds of work,
//! products on the tensor cores and exponentials, maxima and sums beside them:
//!
//! $$ \frac{1}{a} = \frac{1}{\kappa\,\hat a_0} + \Big(\frac{1}{a_0} - \frac{1}{\hat a_0}\Big)_{\ge 0} \frac{F / N}{F_0 / N_0} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t_0, p | floor, corner | s, 1 | the operator's floor and corner |
//! | B, S | sequences, context | 1 | sequences; cached tokens each attends to, at most the window |
//! | H, K, G | heads, kv_heads, group | 1 | query heads, KV heads, H / K |
//! | s_q, s_p, w | new, past, window | 1 | new tokens, cached tokens before them, window |
//! | f, f_1 | flop, token_flop or pair_flop | FLOP | all products; those of one query head with one cached token |
//! | m, m_1 | bytes, token_bytes | B | cache, queries and outputs; the cache of one token and KV head |
//! | F, W, N, L | silicon | FLOP/s, B/s, 1, B | dense peak, bandwidth, cores, last-level cache |
//! | a, b | compute, memory | 1 | shares of peak and of bandwidth reached |
//! | \hat a, kappa | products, sustained | 1 | share of peak of the products alone; what the chip's power allows ([`super::gemm`]) |
//! | tau, G_0 | block, block_rows | s, 1 | a core's time for an empty block; heads that double it |
//! | R | tile_rows | 1 | query heads of a tile of products; kernels made for prefill pad a few heads to a tile |
//! | q | ramp | s | filling and draining the memory pipeline |
//! | h, s, r_2 | hit, cache_share, cache_rate | 1, 1, B/s | share found in cache, what of it is usable, a core's rate from it |
//! | r, k | core_rate, splits | B/s, 1 | the most one core reads; parts of a sequence's cache read side by side |
//! | T | tile | 1 | query tokens of a tile |
//!
//! Causal products are counted once. The cache is read once, however many query heads share it. Without splitting, a long
//! context at batch 1 runs on K cores; k says how far the kernel spreads it. Benchmarks that repeat one call find a small
//! working set in the last-level cache ([`Residency::Cache`]); in a serving step weights and other layers pass through
//! between two calls ([`Residency::Memory`], h = 0).
//! The work beside the products is one exponential for each pair and head, on units that every core has as many of, however
//! fast its tensor cores are: an H100 needs half as long for it as for the products of 128 values, an H20 an eighth.
//! Ignores: whole waves (n / N is not rounded up), uneven lengths in a batch, page tables, switches between kernels.
//! Source: FlashAttention (arXiv 2205.14135), FlashDecoding (split caches), FlashAttention-3 (arXiv 2407.08608, section 3.1:
//! rates of products and exponentials on H100); constants fitted in `catalog/kernels`.

use super::gemm::Sustained;
use super::{Silicon, Timing, rounded};
use rackmath_spec::attention::{AttentionKernels, DecodeConstants, PrefillConstants, Products};
use rackmath_spec::{Chip, Math};
use rackmath_units::{ByteRate, Bytes, BytesPerParam, Flop, Fraction, Seconds, Watts};

/// Query heads of one matrix tile; more of them need a second block for the same cache.
const ROWS: f64 = 64.0;

/// Cached tokens below which no kernel splits a sequence further.
const CHUNK: f64 = 128.0;

/// How suddenly a working set falls out of the cache: streams of reads evict what they would need next.
const EVICTION: i32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// In memory, as in a serving step.
    Memory,
    /// In the last-level cache as far as it fits, as when a benchmark repeats a call.
    Cache,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodeWork {
    pub sequences: f64,
    pub context: f64,
    pub kv_heads: f64,
    pub group: f64,
    pub token_bytes: Bytes,
    pub token_flop: Flop,
    /// Queries read and outputs written for one sequence.
    pub query_bytes: Bytes,
}

impl DecodeWork {
    /// Grouped-query or multi-head attention of head size `head`, the cache stored in `kv`.
    pub fn grouped(sequences: f64, context: f64, heads: (f64, f64), head: f64, kv: BytesPerParam) -> Self {
        let (heads, kv_heads) = heads;
        Self {
            sequences,
            context,
            kv_heads,
            group: heads / kv_heads,
            // A key and a value.
            token_bytes: Bytes::b(2.0 * head * kv.get()),
            // A multiply-add is two, once for the score and once for the output.
            token_flop: Flop::flop(4.0 * head),
            // A query in and an output out, 16 bits each.
            query_bytes: Bytes::b(heads * head * 2.0 * 2.0),
        }
    }

    pub fn flop(&self) -> Flop {
        self.token_flop * (self.sequences * self.kv_heads * self.group * self.context)
    }

    pub fn bytes(&self) -> Bytes {
        self.token_bytes * (self.sequences * self.kv_heads * self.context) + self.query_bytes * self.sequences
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefillWork {
    pub sequences: f64,
    pub new: f64,
    pub past: f64,
    pub window: Option<f64>,
    pub heads: f64,
    pub pair_flop: Flop,
    /// Queries, keys, values read, cache and outputs written for a new token.
    pub new_bytes: Bytes,
    pub past_bytes: Bytes,
}

impl PrefillWork {
    /// Grouped-query or multi-head attention of head size `head`, the cache stored in `kv`; no past, no window.
    pub fn grouped(sequences: f64, new: f64, heads: (f64, f64), head: f64, kv: BytesPerParam) -> Self {
        let (heads, kv_heads) = heads;
        let cached = kv_heads * head * 2.0 * kv.get();
        Self {
            sequences,
            new,
            past: 0.0,
            window: None,
            heads,
            pair_flop: Flop::flop(4.0 * head),
            // Query and output, key and value as they come from the projection (16 bits), and the cache.
            new_bytes: Bytes::b(heads * head * 2.0 * 2.0 + kv_heads * head * 2.0 * 2.0 + cached),
            past_bytes: Bytes::b(cached),
        }
    }

    pub fn span(&self) -> f64 {
        let all = self.past + self.new;
        self.window.map_or(all, |w| all.min(w))
    }

    pub fn pairs(&self) -> f64 {
        let w = self.window.unwrap_or(f64::INFINITY);
        // The first `ramp` queries see everything before them, the rest a full window.
        let ramp = (w - self.past).clamp(0.0, self.new);
        let full = self.new - ramp;
        let triangle = ramp * self.past + ramp * (ramp + 1.0) / 2.0;
        if full > 0.0 { triangle + full * w } else { triangle }
    }

    pub fn flop(&self) -> Flop {
        self.pair_flop * (self.sequences * self.heads * self.pairs())
    }

    pub fn bytes(&self) -> Bytes {
        let past = self.window.map_or(self.past, |w| self.past.min(w));
        (self.new_bytes * self.new + self.past_bytes * past) * self.sequences
    }
}

pub fn decode(silicon: Silicon, constants: &DecodeConstants, work: &DecodeWork, residency: Residency) -> Timing {
    let c = constants;
    let (flop, bytes, cores) = (work.flop(), work.bytes(), silicon.cores);
    let n = work.sequences * work.kv_heads;
    let blocks = c.block * (n / cores * (1.0 + work.group / c.block_rows));
    let padding = c.tile_rows * (work.group / c.tile_rows).ceil() / work.group;
    let compute = flop * padding / (silicon.peak * c.compute.get()) + blocks;

    let place = Place { silicon, residency, memory: c.memory.get(), share: c.cache_share, rate: c.cache_rate };
    let kept = silicon.l2 * c.cache_share;
    let stream = place.time(bytes) + c.ramp * (bytes / (bytes + kept));
    let splits = (cores / (n * (work.group / ROWS).ceil())).min(work.context / CHUNK).min(c.splits).max(1.0);
    let serial = work.token_bytes * work.context / (c.core_rate * splits);
    let memory = stream.max(serial);
    Timing { floor: c.floor, compute, memory, time: c.floor + rounded(compute, memory, c.corner) }
}

pub fn prefill(silicon: Silicon, constants: &PrefillConstants, work: &PrefillWork, residency: Residency) -> Timing {
    let c = constants;
    let cores = silicon.cores;
    let peak = silicon.peak * c.compute.get();
    let longest = work.pair_flop * (c.tile * work.span()) / (peak / cores);
    let blocks = c.block * (work.sequences * work.heads * (work.new / c.tile).ceil() / cores);
    let compute = (work.flop() / peak).max(longest) + blocks;
    let place = Place { silicon, residency, memory: c.memory.get(), share: c.cache_share, rate: c.cache_rate };
    let memory = place.time(work.bytes());
    Timing { floor: c.floor, compute, memory, time: c.floor + rounded(compute, memory, c.corner) }
}

/// The constants of a kernel for prompts on a chip of its generation; as they were measured where no rule says otherwise.
pub fn on_chip(kernels: &AttentionKernels, chip: &Chip, measured: PrefillConstants) -> PrefillConstants {
    let tdp = chip.power.tdp.as_ref().map(|tdp| tdp.value);
    let all = kernels.products(chip).zip(tdp).zip(Silicon::of(chip, Math::Bf16));
    all.map_or(measured, |((rule, tdp), silicon)| carried(measured, rule, silicon, tdp))
}

/// `silicon` is the chip in the arithmetic of the rule, 16 bits.
fn carried(constants: PrefillConstants, rule: &Products, silicon: Silicon, tdp: Watts) -> PrefillConstants {
    let (alone, all) = (1.0 / rule.share.get(), 1.0 / constants.compute.get());
    let per_core = (silicon.peak / silicon.cores) / (rule.power.peak / rule.cores);
    let beside = (all - alone).max(0.0);
    let power = Sustained::of(rule.power, silicon, tdp).factor;
    let share = 1.0 / ((all - beside) / power + beside * per_core);
    PrefillConstants { compute: Fraction::new(share.min(1.0)), ..constants }
}

struct Place {
    silicon: Silicon,
    residency: Residency,
    memory: f64,
    share: f64,
    rate: ByteRate,
}

impl Place {
    fn time(&self, bytes: Bytes) -> Seconds {
        let slow = bytes / (self.silicon.bandwidth * self.memory);
        // A cache that a fit found slower than memory would make a smaller cache faster.
        let fast = slow.min(bytes / (self.rate * self.silicon.cores));
        let hit = match self.residency {
            Residency::Memory => 0.0,
            Residency::Cache => 1.0 / (1.0 + (bytes / (self.silicon.l2 * self.share)).powi(EVICTION)),
        };
        slow * (1.0 - hit) + fast * hit
    }
}
