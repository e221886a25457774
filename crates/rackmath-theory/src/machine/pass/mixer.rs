//! Attention and recurrences of one layer kind on one chip.

use super::layers::Prep;
use super::products::silicon;
use super::{Cost, Limit, Part, Stroke, Work};
use crate::kv;
use crate::operator::Silicon;
use crate::operator::attention::{DecodeWork, PrefillWork, Residency, decode, on_chip, prefill};
use crate::operator::mla;
use rackmath_spec::attention::{DecodeConstants, PrefillConstants, Wanted};
use rackmath_spec::engine::Overhead;
use rackmath_spec::model::{Indexer, Mixer, Span};
use rackmath_spec::{Dtype, Math};
use rackmath_units::{Bytes, BytesPerParam, Flop, Tokens};

/// Query rows a kernel counts to a block when it asks whether the cores are full.
const BLOCK_ROWS: f64 = 64.0;

/// Query heads that kernels of a compressed cache are padded to, where a generation pads at all (`padded_heads` of vLLM's
/// `models/deepseek_v4/attention.py`).
const PADDED_HEADS: f64 = 64.0;

#[derive(Clone, Debug)]
pub(super) struct MixerOp {
    heads: Option<HeadsOp>,
    side: Option<SideOp>,
}

#[derive(Clone, Debug)]
struct HeadsOp {
    decode: DecodeConstants,
    /// Another kernel from so many sequences times KV heads on.
    full: Option<(DecodeConstants, f64)>,
    /// The same sequences in the prompts' kernel, when the pass has prompts.
    together: Option<DecodeConstants>,
    prefill: PrefillConstants,
    decode_silicon: Silicon,
    prefill_silicon: Silicon,
    /// Seconds per FLOP at the peak of the cache's format, and per byte at full bandwidth.
    per_flop: f64,
    per_byte: f64,
    shape: HeadsShape,
    cap: f64,
    /// Query heads that the kernel of picked tokens computes at least.
    least_heads: f64,
    /// Whether a token sees those behind it too.
    both_ways: bool,
    context_shards: f64,
    /// Chips of the tensor-parallel group that each read some of the tokens, for the heads of all of them.
    joined: f64,
}

/// A compressed entry is key and value: of a window, and of at most `picked` of every `ratio`-th token beside it.
#[derive(Clone, Copy, Debug)]
enum HeadsShape {
    Grouped { heads: f64, kv_heads: f64, head: f64, kv: BytesPerParam },
    Latent { latent: mla::Latent, kv: BytesPerParam },
    Compressed { heads: f64, dim: f64, entry: f64, window: f64, ratio: f64, picked: f64 },
}

/// A state or an index: so many bytes and FLOP for a sequence and for each token of its context.
#[derive(Clone, Copy, Debug, Default)]
struct SideOp {
    fixed_bytes: f64,
    token_bytes: f64,
    fixed_flop: f64,
    token_flop: f64,
    per_flop: f64,
    per_byte: f64,
    /// Shares of both rates that are reached.
    compute: f64,
    memory: f64,
    kernels: f64,
}

impl Prep<'_> {
    pub(super) fn mixer_measured(&self, mixer: &Mixer) -> bool {
        let kernels = match mixer {
            Mixer::Attention(_) => &*self.kernels.attention,
            Mixer::Latent(_) | Mixer::Compressed(_) => self.kernels.latent(),
            Mixer::Linear(_) | Mixer::None => return true,
        };
        let generation = kernels.generation(&self.d.system.chip);
        kernels.decode.iter().any(|k| k.generation == generation)
    }

    /// The operator of a mixer; `None` for a block without one, or a chip without a 16-bit peak.
    pub(super) fn mixer(&self, mixer: &Mixer) -> Option<MixerOp> {
        let d = self.d.layout.degrees();
        let (tp, cp, kv) = (d.tp as f64, d.cp as f64, self.d.kv.width());
        let here = |heads: u64| (heads as f64 / tp).max(1.0);
        let side = self.side()?;
        let index = |i: Indexer, ratio: f64| SideOp {
            token_bytes: kv::index_key(i.dim) / ratio / cp,
            token_flop: (2 * i.heads * i.dim) as f64 / ratio / cp,
            kernels: self.kernels.small().launches.index,
            ..self.scores(side)
        };
        Some(match mixer {
            Mixer::None => return None,
            Mixer::Attention(a) => {
                let group = a.heads / a.kv_heads.max(1);
                let shared = self.d.engine.kernels.shared_groups.as_ref().is_none_or(|all| all.contains(&group));
                let shape = HeadsShape::Grouped {
                    heads: here(a.heads),
                    // A kernel that does not share reads the cache for every query head; the chip's own cache serves half.
                    kv_heads: a.kv_heads as f64 / d.tp.min(a.kv_heads) as f64
                        * if shared { 1.0 } else { (group as f64).min(2.0) },
                    // A key and a value of different width: their mean serves both.
                    head: f64::midpoint(a.qk_dim as f64, a.v_dim as f64),
                    kv,
                };
                let (cap, side) = match a.span {
                    Span::Full => (f64::INFINITY, None),
                    Span::Window(w) | Span::Chunk(w) => (w as f64, None),
                    Span::Blocks(index) => {
                        let token_bytes = (index.kv_heads * index.dim) as f64 * kv.get() / cp;
                        let token_flop = (2 * index.heads * index.dim) as f64 / cp;
                        let kernels = self.kernels.small().launches.blocks;
                        let side = SideOp { token_bytes, token_flop, kernels, ..side };
                        ((index.block * index.top_k) as f64, Some(side))
                    }
                };
                let heads = HeadsOp { both_ways: a.both_ways, ..self.heads(shape, cap, group)? };
                MixerOp { heads: Some(heads), side }
            }
            Mixer::Latent(a) => {
                let [rank, rope, nope, value] = [a.kv_rank, a.rope_dim, a.nope_dim, a.v_dim].map(|n| n as f64);
                let latent = mla::Latent { heads: here(a.heads), rank, rope, nope, value };
                let cap = a.indexer.map_or(f64::INFINITY, |i| i.top_k as f64);
                let heads = self.heads(HeadsShape::Latent { latent, kv }, cap, a.heads)?;
                MixerOp { heads: Some(heads), side: a.indexer.filter(|i| i.own()).map(|i| index(i, 1.0)) }
            }
            Mixer::Compressed(a) => {
                let ratio = a.ratio.map_or(f64::INFINITY, |r| r as f64);
                let shape = HeadsShape::Compressed {
                    heads: here(a.heads),
                    dim: a.dim as f64,
                    entry: kv::layer(mixer, self.d.kv).pieces.first().map_or(0.0, |p| p.per_token),
                    window: a.window as f64,
                    ratio,
                    picked: a.indexer.map_or(f64::INFINITY, |i| i.top_k as f64),
                };
                let heads = self.heads(shape, f64::INFINITY, a.heads)?;
                let launches = self.kernels.small().launches;
                let compressors = a.ratio.map_or(0.0, |_| 1.0 + f64::from(u8::from(a.indexer.is_some())));
                let side = a.indexer.map_or(side, |i| index(i, ratio));
                let kernels = side.kernels + launches.compressed + compressors * launches.compressor;
                MixerOp { heads: Some(heads), side: Some(SideOp { kernels, ..side }) }
            }
            Mixer::Linear(_) => {
                let cache = kv::layer(mixer, self.d.kv);
                let fixed_bytes = cache.pieces.first().map_or(0.0, |p| p.fixed) / tp;
                let fixed_flop = cache.decode_flop(Tokens::ZERO).get() / tp;
                MixerOp { heads: None, side: Some(SideOp { fixed_bytes, fixed_flop, kernels: 4.0, ..side }) }
            }
        })
    }

    /// A state or an index of no size.
    fn side(&self) -> Option<SideOp> {
        let (chip, assumed) = (&self.d.system.chip, &self.d.engine.assumed);
        let silicon = silicon(chip, Math::Bf16)?;
        let peak = chip.peak_for(self.d.kv).map_or(silicon.peak, |(_, p)| p.value);
        let (compute, memory) = (assumed.side_compute, assumed.side_memory);
        let (per_flop, per_byte) = (1.0 / peak.get(), 1.0 / silicon.bandwidth.get());
        Some(SideOp { per_flop, per_byte, compute, memory, ..SideOp::default() })
    }

    /// An index multiplies in 8 bits whatever the format of the cache.
    fn scores(&self, side: SideOp) -> SideOp {
        let per_flop = Silicon::of(&self.d.system.chip, Math::Fp8).map_or(side.per_flop, |s| 1.0 / s.peak.get());
        let compute = self.kernels.latent().index.as_ref().map_or(side.compute, |i| i.compute.get());
        SideOp { per_flop, compute, ..side }
    }

    fn heads(&self, shape: HeadsShape, cap: f64, group: u64) -> Option<HeadsOp> {
        let (chip, engine, degrees) = (&self.d.system.chip, &self.d.engine.kernels, self.d.layout.degrees());
        let (kernels, backend, latent) = match shape {
            HeadsShape::Grouped { .. } => (&*self.kernels.attention, &engine.attention, false),
            HeadsShape::Latent { .. } | HeadsShape::Compressed { .. } => (self.kernels.latent(), &engine.latent, true),
        };
        // TensorRT-LLM multiplies prompts in the format of an eight-bit cache; latent kernels do in both phases.
        let narrow = self.d.kv.bits() < 12.0 && (latent || backend == "trtllm");
        let math = if narrow { Dtype::Fp8 } else { Dtype::Bf16 };
        let wanted = Wanted { backend, math, kv: self.d.kv, group };
        let (d, p) = (kernels.decode(chip, wanted), kernels.prefill(chip, wanted));
        let of = |eight: bool| {
            let eight = if eight { Silicon::of(chip, Math::Fp8) } else { None };
            eight.or(silicon(chip, Math::Bf16))
        };
        let decode_silicon = of(d.math8)?;
        let peak = chip.peak_for(self.d.kv).map_or(decode_silicon.peak, |(_, p)| p.value);
        let full = engine.attention_full.as_ref().map(|(backend, per_core)| {
            let kernel = kernels.decode(chip, Wanted { backend, ..wanted });
            (kernel.constants, per_core * decode_silicon.cores)
        });
        let here = |generation: &String| *generation == chip.generation;
        let together = engine.together.as_ref().filter(|t| !latent && t.generations.iter().any(here));
        let together = together.map(|t| DecodeConstants {
            tile_rows: d.constants.tile_rows.max(t.rows),
            // A block has too few turns for its loads to run ahead of its products.
            corner: 1.0,
            ..d.constants
        });
        Some(HeadsOp {
            decode: d.constants,
            full,
            together,
            prefill: on_chip(kernels, chip, p.constants),
            decode_silicon,
            prefill_silicon: of(p.math8)?,
            per_flop: 1.0 / peak.get(),
            per_byte: 1.0 / decode_silicon.bandwidth.get(),
            shape,
            cap,
            least_heads: kernels.least_heads(chip),
            both_ways: false,
            context_shards: degrees.cp as f64,
            joined: degrees.dcp as f64,
        })
    }
}

impl MixerOp {
    pub(super) fn add(&self, work: &Work, times: f64, overhead: &Overhead, cost: &mut Cost) {
        if let Some(heads) = &self.heads {
            let (sequences, prompts) = (work.sequences(), work.prompts());
            if sequences > 0.0 {
                heads.decodes(work, sequences).add(Part::Attention, times, overhead.stretch, cost);
            }
            if work.prompt_tokens() > 0.0 {
                let mut one = heads.prefills(work, prompts);
                if sequences > 0.0 && heads.together.is_some() {
                    // One launch for both has one floor.
                    (one.time, one.floor) = (one.time - one.floor, 0.0);
                }
                one.add(Part::Attention, times, overhead.stretch_long, cost);
            }
        }
        if let Some(side) = &self.side {
            side.add(work, times, overhead, cost);
        }
    }
}

impl HeadsOp {
    /// Sequences of different context share one launch: each group counts as if all were like it, by its share of them.
    fn decodes(&self, work: &Work, sequences: f64) -> Stroke {
        match &*work.decodes {
            [alike] => self.decode(sequences, alike.context, work),
            many => {
                Stroke::mean(many.iter().map(|g| (g.sequences / sequences, self.decode(sequences, g.context, work))))
            }
        }
    }

    fn prefills(&self, work: &Work, prompts: f64) -> Stroke {
        match &*work.chunks {
            [alike] => self.prefill(prompts.max(1e-9), alike.each(), alike.past),
            many => Stroke::mean(many.iter().map(|c| (c.prompts / prompts, self.prefill(prompts, c.each(), c.past)))),
        }
    }

    fn decode(&self, sequences: f64, context: f64, work: &Work) -> Stroke {
        let q = work.queries();
        let context = context / (self.context_shards * self.joined);
        let one = match self.shape {
            HeadsShape::Grouped { heads, kv_heads, head, kv } => {
                let seen = context.min(self.cap);
                let one = DecodeWork::grouped(sequences, seen, (heads * self.joined, kv_heads), head, kv);
                // Tokens checked together share the cache like further query heads.
                DecodeWork { group: one.group * q, query_bytes: one.query_bytes * q, ..one }
            }
            HeadsShape::Latent { latent, kv } => {
                let latent = mla::Latent { heads: latent.heads * self.joined, ..latent };
                let one = latent.decode(sequences, context.min(self.cap), kv);
                DecodeWork { group: one.group * q, query_bytes: one.query_bytes * q, ..one }
            }
            HeadsShape::Compressed { heads, dim, entry, window, ratio, picked } => {
                let heads = heads.max(self.least_heads.min(PADDED_HEADS));
                DecodeWork {
                    sequences,
                    context: context.min(window) + (context / ratio).min(picked),
                    kv_heads: 1.0,
                    group: heads * q,
                    token_bytes: Bytes::b(entry),
                    // A multiply-add is two, once for the score and once for the output.
                    token_flop: Flop::flop(4.0 * dim),
                    query_bytes: Bytes::b(heads * q * dim * 2.0 * 2.0),
                }
            }
        };
        let constants = match (&self.full, &self.together) {
            (_, Some(together)) if work.prompt_tokens() > 0.0 => together,
            (Some((full, from)), _) if one.sequences * one.kv_heads * (one.group / BLOCK_ROWS).ceil() >= *from => full,
            _ => &self.decode,
        };
        let timing = decode(self.decode_silicon, constants, &one, Residency::Memory);
        // The roofline counts the cache and not the queries.
        let bytes = one.token_bytes.get() * one.sequences * one.kv_heads * one.context;
        Stroke::of(&timing, one.flop().get() * self.per_flop, bytes * self.per_byte)
    }

    fn prefill(&self, prompts: f64, new: f64, past: f64) -> Stroke {
        let window = self.cap.is_finite().then_some(self.cap);
        let one = match self.shape {
            HeadsShape::Grouped { heads, kv_heads, head, kv } if self.both_ways => {
                // Windows are sequences of their own. That half of the tokens a token sees lie behind it is as if they had come before all.
                let each = new.min(self.cap).max(1.0);
                let one = PrefillWork::grouped(prompts * new / each, each, (heads, kv_heads), head, kv);
                PrefillWork { past: (each - 1.0) / 2.0, past_bytes: Bytes::ZERO, ..one }
            }
            HeadsShape::Grouped { heads, kv_heads, head, kv } => {
                let one = PrefillWork::grouped(prompts, new, (heads, kv_heads), head, kv);
                PrefillWork { past, window, ..one }
            }
            // Engines expand keys and values while all of them are picked.
            HeadsShape::Latent { latent, .. } if past + new <= self.cap => latent.prefill(prompts, new, past),
            HeadsShape::Latent { latent, .. } => {
                let heads = latent.heads.max(self.least_heads);
                mla::Latent { heads, ..latent }.picked(prompts, new, past, self.cap)
            }
            HeadsShape::Compressed { heads, dim, entry, window, ratio, picked } => {
                let heads = heads.max(self.least_heads.min(PADDED_HEADS));
                let seen = window + ((past + new) / ratio).min(picked);
                PrefillWork {
                    sequences: prompts,
                    new,
                    past: past.min(seen),
                    window: Some(seen),
                    heads,
                    pair_flop: Flop::flop(4.0 * dim),
                    new_bytes: Bytes::b(heads * dim * 2.0 * 2.0 + entry),
                    past_bytes: Bytes::b(entry),
                }
            }
        };
        // Context parallelism shares out the pairs.
        let one = PrefillWork { sequences: one.sequences / self.context_shards, ..one };
        let timing = prefill(self.prefill_silicon, &self.prefill, &one, Residency::Memory);
        let past = one.past_bytes.get() * one.window.map_or(one.past, |w| one.past.min(w)) * one.sequences;
        Stroke::of(&timing, one.flop().get() * self.per_flop, past * self.per_byte)
    }
}

impl SideOp {
    fn add(&self, work: &Work, times: f64, overhead: &Overhead, cost: &mut Cost) {
        let q = work.queries();
        let (mut bytes, mut flop) = (0.0, 0.0);
        for d in work.decodes.iter() {
            bytes += d.sequences * (self.fixed_bytes + self.token_bytes * d.context);
            flop += d.sequences * q * (self.fixed_flop + self.token_flop * d.context);
        }
        for c in work.chunks.iter() {
            let new = c.each();
            bytes += c.prompts * (self.fixed_bytes + self.token_bytes * (c.past + new));
            // A prompt meets half of itself on average, and all that was before it.
            flop += c.tokens * (self.fixed_flop + self.token_flop * (c.past + new / 2.0));
        }
        let (compute, memory) = (flop * self.per_flop, bytes * self.per_byte);
        let (busy, read) = (compute / self.compute, memory / self.memory);
        let time = busy.max(read);
        let limit = if busy > read { Limit::Compute } else { Limit::Memory };
        cost.add(Part::Attention, Limit::Latency, self.kernels * overhead.small.get() * times);
        cost.add(Part::Attention, limit, time * times);
        cost.compute += compute * times;
        cost.memory += memory * times;
    }
}
