//! What the cache stores and what a decode step reads, by attention kind.
//!
//! | kind | stored per layer at context L | read per layer |
//! |------|-------------------------------|----------------|
//! | full attention | h_kv (d_k + d_v) b L | the same |
//! | window w, chunk w | h_kv (d_k + d_v) b min(L, w) | the same |
//! | shared with an earlier layer | nothing | what the owner stores |
//! | latent (MLA) | (r + d_r) b L | the same |
//! | latent with an indexer (DSA) | (r + d_r) b L + index key L | index key L + (r + d_r) b min(L, k) |
//! | block-sparse | K and V and index keys | index keys L + K and V of k blocks |
//! | compressed m:1 | entry min(L, w) + entry L / m + index key L / m | window + index keys + entry min(L / m, k) |
//! | recurrence | a state of fixed size | the state, read and written |
//!
//! b is the bytes of a cache element. A chunk is counted full: a step reads between one token and the whole chunk. Index
//! keys are FP8 with one 32-bit scale per 128 values whatever the cache's format; recurrent states are FP32 and their
//! convolution windows 16-bit, as serving engines keep them.
//!
//! Source: DeepSeek-V3.2 reference and vLLM/SGLang caches (132-byte index key; 584-byte V4 entry: 448 FP8, 64 BF16, 8 of
//! scales and padding); Qwen3-Next, Kimi-Linear and Mamba-2 reference implementations.
//! Ignores: page rounding (half a block per sequence) and the compressor states of V4 among the bytes read.

use crate::count::overlap;
use crate::curve::Curve;
use rackmath_spec::model::{Attention, Body, Compressed, Indexer, KvSource, Latent, Linear, Mixer, Span};
use rackmath_spec::{Dtype, Model};
use rackmath_units::{Bytes, BytesPerToken, FlopPerToken, Tokens};

/// Cache bytes and attention arithmetic of a model as functions of the context, for one sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cache {
    stored: Curve,
    pub(crate) read: Curve,
    /// What a step reads, kind by kind: the sum of the pieces is [`Cache::read`].
    pub pieces: Vec<Piece>,
    decode_flop: Curve,
    prefill_flop: Curve,
    expand_flop: Curve,
}

/// One kind of read: so many layers, each so many bytes for each token up to a cap, or a fixed state.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub what: &'static str,
    pub layers: u64,
    pub per_token: f64,
    /// Tokens after which it stops growing; infinite when it never does.
    pub cap: f64,
    /// Bytes per layer that do not depend on the context.
    pub fixed: f64,
}

impl Cache {
    /// Arithmetic that both ways of attending do, for each token of context up to a cap.
    fn add_flop(&mut self, slope: f64, cap: f64) {
        self.decode_flop.add_ramp(slope, cap);
        self.prefill_flop.add_ramp(slope, cap);
    }

    /// An index over the whole context: one key of so many bytes for each `ratio` tokens, scored by so many products.
    fn add_index(&mut self, layers: u64, key: f64, products: u64, ratio: f64) {
        let n = layers as f64;
        self.stored.add_endless(key * n / ratio);
        self.add_read(ramp("index keys", layers, key / ratio, f64::INFINITY));
        // A multiplication and an addition for each product.
        self.add_flop((2 * products) as f64 * n / ratio, f64::INFINITY);
    }

    fn add_read(&mut self, piece: Piece) {
        let n = piece.layers as f64;
        self.read.add_ramp(piece.per_token * n, piece.cap);
        self.read.add_fixed(piece.fixed * n);
        match self.pieces.iter_mut().find(|p| Piece { layers: piece.layers, ..**p } == piece) {
            Some(p) => p.layers += piece.layers,
            None => self.pieces.push(piece),
        }
    }

    pub fn stored(&self, context: Tokens) -> Bytes {
        Bytes::b(self.stored.at(context.get()))
    }

    pub fn read(&self, context: Tokens) -> Bytes {
        Bytes::b(self.read.at(context.get()))
    }

    /// Bytes each further token adds to the cache once windows are full; where every layer has a window, before they are.
    pub fn stored_per_token(&self) -> BytesPerToken {
        let (first, last) = (self.stored.at(1.0) - self.stored.fixed(), self.stored.final_slope());
        BytesPerToken::new(if last > 0.0 { last } else { first })
    }

    /// Bytes kept for a sequence however short: recurrent states.
    pub fn stored_fixed(&self) -> Bytes {
        Bytes::b(self.stored.fixed())
    }

    /// Attention FLOP of one decoded token, with the cheapest way to read a latent cache.
    pub fn decode_flop(&self, context: Tokens) -> FlopPerToken {
        FlopPerToken::new(self.decode_flop.at(context.get()))
    }

    /// The longest context whose cache fits in so many bytes; `None` when any fits.
    pub fn longest(&self, room: Bytes) -> Option<Tokens> {
        self.stored.crossing(&Curve::default(), room.get()).map(Tokens::new)
    }

    /// Absorbed and materialised arithmetic per token, and the arithmetic of materialising a whole context once.
    pub(crate) fn flop_curves(&self) -> [&Curve; 3] {
        [&self.decode_flop, &self.prefill_flop, &self.expand_flop]
    }
}

/// The cache of a model whose entries have the given format. A lump knows only its own bytes per token.
pub fn cache(model: &Model, dtype: Dtype) -> Cache {
    let mut all = Cache::default();
    match &model.body {
        Body::Layers(shape) => shape.runs.iter().for_each(|run| add(&mut all, &run.block.mixer, dtype, run.n)),
        Body::Lump(lump) => {
            all.stored.add_endless(lump.kv.get());
            all.add_read(ramp("all layers", 1, lump.kv.get(), f64::INFINITY));
        }
    }
    all
}

pub fn layer(mixer: &Mixer, dtype: Dtype) -> Cache {
    let mut one = Cache::default();
    add(&mut one, mixer, dtype, 1);
    one
}

fn add(all: &mut Cache, mixer: &Mixer, dtype: Dtype, n: u64) {
    match mixer {
        Mixer::Attention(a) => attention(all, a, dtype, n),
        Mixer::Latent(a) => latent(all, a, dtype, n),
        Mixer::Compressed(a) => compressed(all, a, dtype, n),
        Mixer::Linear(a) => linear(all, a, n),
        Mixer::None => {}
    }
}

fn ramp(what: &'static str, layers: u64, per_token: f64, cap: f64) -> Piece {
    Piece { what, layers, per_token, cap, fixed: 0.0 }
}

/// Bytes of an index key: FP8 values and one FP32 scale per 128 of them.
pub(crate) fn index_key(dim: u64) -> f64 {
    dim as f64 + 4.0 * dim.div_ceil(128) as f64
}

fn attention(all: &mut Cache, a: &Attention, dtype: Dtype, layers: u64) {
    // Who sees in both directions is computed at once, and nothing is kept.
    if a.both_ways {
        return;
    }
    let n = layers as f64;
    let entry = (a.kv_heads * (a.qk_dim + a.v_dim)) as f64 * dtype.width().get();
    let (what, cap) = match a.span {
        Span::Full => ("full attention", f64::INFINITY),
        Span::Window(w) => ("windowed attention", w as f64),
        Span::Chunk(w) => ("chunked attention", w as f64),
        Span::Blocks(index) => ("selected blocks", (index.block * index.top_k) as f64),
    };
    if let Span::Blocks(index) = a.span {
        let key = (index.kv_heads * index.dim) as f64 * dtype.width().get();
        all.add_index(layers, key, index.heads * index.dim, 1.0);
        // Sparse selection shortens reads, not storage.
        all.stored.add_endless(entry * n);
    } else if a.kv == KvSource::Own {
        all.stored.add_ramp(entry * n, cap);
    }
    all.add_read(ramp(what, layers, entry, cap));
    // A multiplication and an addition for each query-key product, and again for each weighted value.
    all.add_flop((2 * a.heads * (a.qk_dim + a.v_dim)) as f64 * n, cap);
}

fn latent(all: &mut Cache, a: &Latent, dtype: Dtype, layers: u64) {
    let n = layers as f64;
    let entry = (a.kv_rank + a.rope_dim) as f64 * dtype.width().get();
    // Absorbed: queries meet the latent itself, r + d_r wide for scores and r wide for values.
    let absorbed = (2 * a.heads * (2 * a.kv_rank + a.rope_dim)) as f64 * n;
    // Materialised: keys and values are expanded per head first, then attention is of ordinary width.
    let materialised = (2 * a.heads * (a.nope_dim + a.rope_dim + a.v_dim)) as f64 * n;
    let expand = (2 * a.heads * (a.nope_dim + a.v_dim) * a.kv_rank) as f64 * n;
    let cap = a.indexer.map_or(f64::INFINITY, |i| i.top_k as f64);
    all.stored.add_endless(entry * n);
    all.add_read(ramp("latent attention", layers, entry, cap));
    all.decode_flop.add_ramp(absorbed, cap);
    all.prefill_flop.add_ramp(materialised, cap);
    all.expand_flop.add_endless(expand);
    if let Some(Indexer { heads, dim, .. }) = a.indexer.filter(|i| i.own()) {
        all.add_index(layers, index_key(dim), heads * dim, 1.0);
    }
}

/// Bytes of one entry of the compressed cache: the rotary part stays 16-bit when the rest is narrower.
pub(crate) fn entry_bytes(a: &Compressed, dtype: Dtype) -> f64 {
    if dtype.bits() >= 16.0 {
        return a.dim as f64 * dtype.width().get();
    }
    // One scale byte per 64 values, padded to eight.
    let scales = ((a.dim - a.rope_dim).div_ceil(64)).next_multiple_of(8);
    (a.dim - a.rope_dim) as f64 * dtype.width().get() + 2.0 * a.rope_dim as f64 + scales as f64
}

/// Tokens whose values and scores wait to be folded, in FP32, and the bytes of one of them.
pub(crate) fn unfolded(a: &Compressed, ratio: u64) -> (u64, f64) {
    (overlap(a) * ratio, (2 * overlap(a) * a.dim * 4) as f64)
}

fn compressed(all: &mut Cache, a: &Compressed, dtype: Dtype, layers: u64) {
    let n = layers as f64;
    let entry = entry_bytes(a, dtype);
    // The entry serves as key and as value.
    let flop = (2 * a.heads * 2 * a.dim) as f64 * n;
    let window = a.window as f64;
    all.stored.add_ramp(entry * n, window);
    all.add_read(ramp("window", layers, entry, window));
    all.add_flop(flop, window);
    let Some(ratio) = a.ratio else { return };
    let m = ratio as f64;
    let (waiting, each) = unfolded(a, ratio);
    let state = |dim: u64| waiting as f64 * each * dim as f64 / a.dim as f64 * n;
    let cap = a.indexer.map_or(f64::INFINITY, |i| i.top_k as f64 * m);
    all.stored.add_endless(entry * n / m);
    all.stored.add_fixed(state(a.dim));
    all.add_read(ramp("compressed entries", layers, entry / m, cap));
    all.add_flop(flop / m, cap);
    if let Some(Indexer { heads, dim, .. }) = a.indexer {
        all.stored.add_fixed(state(dim));
        all.add_index(layers, index_key(dim), heads * dim, m);
    }
}

/// Values of a state, and channels of the convolution before it with the taps that look back.
fn state_of(a: &Linear) -> (u64, u64, u64) {
    match *a {
        Linear::GatedDelta { k_heads, v_heads, k_dim, v_dim, conv, .. } => {
            (v_heads * k_dim * v_dim, 2 * k_heads * k_dim + v_heads * v_dim, conv - 1)
        }
        Linear::Kda { heads, dim, conv, .. } => (heads * dim * dim, 3 * heads * dim, conv - 1),
        Linear::Mamba1 { inner, state, conv, .. } => (inner * state, inner, conv - 1),
        Linear::Mamba2 { heads, dim, groups, state, conv, .. } => {
            (heads * dim * state, heads * dim + 2 * groups * state, conv - 1)
        }
        Linear::Lightning { heads, dim } => (heads * dim * dim, 0, 0),
    }
}

/// Bytes of a state: 32-bit values, and 16-bit windows that are as much longer as tokens are drafted.
pub(crate) fn state(a: &Linear, drafts: u64) -> f64 {
    state_in(a, drafts, 4)
}

/// The same of a state with values of so many bytes.
pub(crate) fn state_in(a: &Linear, drafts: u64, bytes: u64) -> f64 {
    let (state, channels, taps) = state_of(a);
    (bytes * state + 2 * channels * (taps + drafts)) as f64
}

fn linear(all: &mut Cache, a: &Linear, layers: u64) {
    let n = layers as f64;
    let (bytes, state) = (self::state(a, 0), state_of(a).0);
    // Three multiply-adds per state element: decay and look-up of the key, update, read-out.
    let flop = 6.0 * state as f64 * n;
    all.stored.add_fixed(bytes * n);
    // Read and written back.
    all.add_read(Piece { what: "recurrent state", layers, per_token: 0.0, cap: f64::INFINITY, fixed: 2.0 * bytes });
    all.decode_flop.add_fixed(flop);
    all.prefill_flop.add_fixed(flop);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;

    fn of(model: &str, dtype: Dtype) -> Cache {
        cache(&rackmath_catalog::embedded().model(model).unwrap(), dtype)
    }

    #[test]
    fn bytes_per_token_of_known_models() {
        for (model, dtype, bytes) in [
            // G65 and V1: Llama-3-70B 80 x 2 x 8 x 128; DeepSeek-V3 61 x 576.
            ("llama-3.1-70b", Dtype::Fp8, 163_840.0),
            ("llama-3.1-70b", Dtype::Bf16, 327_680.0),
            ("deepseek-v3", Dtype::Fp8, 35_136.0),
            ("lecture-frontier", Dtype::Bf16, 2_048.0),
            // Section 5, row 6 of the lecture: DSA stores about 43 kB per token.
            ("deepseek-v3.2", Dtype::Fp8, 61.0 * (576.0 + 132.0)),
            // V4-Pro, one-byte cache: 30 layers 4:1 with a 132-byte key, 31 layers 128:1, entries of 584 bytes.
            ("deepseek-v4-pro", Dtype::Fp8, 30.0 * (584.0 + 132.0) / 4.0 + 31.0 * 584.0 / 128.0),
            ("qwen3.5-397b-a17b", Dtype::Bf16, 15.0 * 2.0 * 2.0 * 256.0 * 2.0),
            // Every layer has a window of 4,096: what a token adds until it is full.
            ("mistral-7b", Dtype::Bf16, 32.0 * 2.0 * 8.0 * 128.0 * 2.0),
        ] {
            close(of(model, dtype).stored_per_token().get(), bytes, 1e-14);
        }
        // 45 delta layers of 64 x 128 x 128 = 47.2 M elements (FP32), plus 16-bit convolution windows.
        let window = 45.0 * (2.0 * 16.0 * 128.0 + 64.0 * 128.0) * 3.0 * 2.0;
        let fixed = of("qwen3.5-397b-a17b", Dtype::Bf16).stored_fixed().get();
        assert_eq!(fixed, 45.0 * 64.0 * 128.0 * 128.0 * 4.0 + window);
    }

    #[test]
    fn bytes_at_a_context() {
        // V11 (scaling book): 6.711 GB at 8 k.
        close(of("llama-2-13b", Dtype::Bf16).stored(Tokens::new(8192.0)).as_gb(), 6.711, 1e-4);
        // Section 5, row 6: at 128 k sparse attention reads 1.1 GB instead of 4.6 GB.
        for (model, gb) in [("deepseek-v3.2", 1.13), ("deepseek-v3", 4.6)] {
            let read = of(model, Dtype::Fp8).read(Tokens::new(131_072.0));
            assert!((read.as_gb() - gb).abs() < 0.01, "{read}");
        }
        // Layers that share a cache read what they do not store.
        let (shared, context) = (of("hunyuan-large", Dtype::Bf16), Tokens::new(1000.0));
        assert_eq!(shared.read(context).get(), 2.0 * shared.stored(context).get());
    }

    #[test]
    fn attention_flop_of_deepseek_v3() {
        // 61 x 2 x 128 x (128 + 64 + 128) materialised; 61 x 2 x 128 x (2 x 512 + 64) absorbed, per token of context.
        let c = of("deepseek-v3", Dtype::Fp8);
        assert_eq!(c.prefill_flop.at(1.0), 4_997_120.0);
        assert_eq!(c.decode_flop(Tokens::new(1.0)).get(), 61.0 * 2.0 * 128.0 * 1088.0);
    }
}
