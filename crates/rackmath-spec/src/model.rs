//! A model as the machine sees it: what mixes tokens, what transforms them, how wide, how many, in which format.
//!
//! A model is a list of runs of identical blocks between an embedding and a head. A block is one token mixer (an attention
//! kind or a recurrence) and one feed-forward part, either of which may be absent. The lecture's presets know only totals;
//! they are the [`Body::Lump`] variant. Counting lives in `rackmath-theory`; this file only says what is there.

use crate::Dtype;
use crate::fallback;
use crate::file::noun::text;
use crate::gguf::Gguf;
use crate::tower::Tower;
use rackmath_units::{Bytes, BytesPerToken, Params};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub id: String,
    pub name: String,
    pub hf: Option<String>,
    pub body: Body,
    /// What its makers or its checkpoint say about its size.
    pub published: Option<Published>,
    /// Where the shapes were read, and when.
    pub source: String,
    pub as_of: String,
    /// Things the reader should tell the user, such as fields it passed over.
    pub notes: Vec<String>,
    /// Bytes of the weight files beside its config, where a face looked.
    pub stored: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Layers(Box<Shape>),
    /// Totals only: the lecture's presets and models whose shapes are secret.
    Lump(Lump),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lump {
    #[serde(rename = "total_params")]
    pub total: Params,
    #[serde(rename = "active_params")]
    pub active: Params,
    #[serde(deserialize_with = "text")]
    pub weights: Dtype,
    /// KV-cache bytes for each token of context, all layers.
    #[serde(rename = "kv_per_token")]
    pub kv: BytesPerToken,
}

/// A published size to check the computed one against.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    #[serde(rename = "total_params")]
    pub total: u64,
    /// Whether it is exact to the last digit, or a rounded label.
    pub exact: bool,
    pub counts: Counts,
    /// Parameters of vision or audio towers inside the count.
    #[serde(default, rename = "tower_params")]
    pub towers: u64,
    #[serde(rename = "active_params")]
    pub active: Option<u64>,
    pub source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Decoder, embeddings and head; a vision or audio tower inside the count is taken off by `towers`.
    #[serde(alias = "with-vision")]
    Main,
    /// The same and the multi-token-prediction layers.
    WithMtp,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    pub architecture: String,
    pub hidden: u64,
    pub vocab: u64,
    pub tied: bool,
    pub head_bias: bool,
    /// Whether nothing turns its vectors into words: embedding and reranking models, towers.
    pub headless: bool,
    /// Rows of a learned position table; 0 with rotary or no positions.
    pub positions: u64,
    pub norm: Norm,
    /// Hidden-wide norms outside the layers (final norm, embedding norm).
    pub outer_norms: u64,
    pub runs: Vec<Run>,
    pub mtp: Option<Mtp>,
    /// Weights outside the layers that are none of the above.
    pub side: Vec<Side>,
    /// Where several residual streams are mixed around each sublayer (hyper-connections).
    pub streams: Option<Streams>,
    pub context_max: Option<u64>,
    pub formats: Formats,
    /// What turns pictures and sound into its tokens.
    pub towers: Vec<Tower>,
    /// Towers of kinds that are not read: nothing of them is counted.
    pub unread_towers: usize,
}

/// Residual streams, and the rounds in which the matrix that mixes them is normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    pub n: u64,
    pub rounds: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub n: u64,
    pub block: Block,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub mixer: Mixer,
    pub ffn: Ffn,
    pub norms: u64,
    /// Small modules counted but not otherwise modelled.
    pub side: Vec<Side>,
}

/// A named lump of weights beside the main path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub name: &'static str,
    pub params: u64,
    pub usage: SideUse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideUse {
    /// By every token.
    Multiplied,
    /// Looked up: one row of so many.
    LookedUp { rows: u64 },
    /// Present in the checkpoint and never read.
    Unused,
}

/// How tokens see each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer {
    /// Multi-head, grouped-query or multi-query attention.
    Attention(Attention),
    /// Multi-head latent attention, with or without a sparse indexer.
    Latent(Latent),
    /// Attention over a compressed cache (DeepSeek-V4).
    Compressed(Compressed),
    /// A recurrence with a state of fixed size.
    Linear(Linear),
    None,
}

/// Attention with a key and a value per KV head and token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attention {
    pub heads: u64,
    pub kv_heads: u64,
    pub qk_dim: u64,
    pub v_dim: u64,
    pub span: Span,
    pub kv: KvSource,
    pub bias: Bias,
    pub qk_norm: QkNorm,
    /// Whether values are the keys, so that one projection and one cache entry serve both.
    pub k_is_v: bool,
    pub gate: Gate,
    pub sinks: bool,
    /// Whether a token sees those behind it too: encoders, towers.
    pub both_ways: bool,
}

/// Which earlier tokens a token sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    #[default]
    Full,
    Window(u64),
    /// Those in its own chunk of so many.
    Chunk(u64),
    /// The best few blocks, chosen by an indexer.
    Blocks(BlockIndex),
}

/// Block selection for sparse attention: an indexer scores one summary per block and the best blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockIndex {
    pub block: u64,
    pub top_k: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub dim: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvSource {
    #[default]
    Own,
    /// An earlier layer's: nothing is stored here, but the same bytes are read again.
    Shared,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bias {
    pub qkv: bool,
    pub out: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QkNorm {
    #[default]
    None,
    /// One weight vector of head width for queries and one for keys, shared by the heads.
    PerHead,
    /// Weight vectors across all heads.
    AllHeads,
}

/// A learned gate on the attention output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    #[default]
    None,
    /// One value per output element: doubles the query projection.
    PerElement,
    /// One value per head (Step 3.5).
    PerHead,
}

/// Multi-head latent attention: keys and values of all heads come from one small vector per token.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    pub heads: u64,
    /// Rank of the query compression, if queries are compressed.
    pub q_rank: Option<u64>,
    /// Width of the cached latent.
    pub kv_rank: u64,
    /// Width of the cached rotary key, shared by the heads.
    pub rope_dim: u64,
    /// Width of a key head without rotary part.
    pub nope_dim: u64,
    pub v_dim: u64,
    /// Whether a full-rank gate multiplies the output.
    pub gate: Gate,
    pub indexer: Option<Indexer>,
}

/// The indexer of sparse latent attention: scores every cached token with a small key, then the best are read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexer {
    /// 0, as the width, in a layer that reads what the indexer of a layer before it picked (GLM-5.2).
    pub heads: u64,
    /// Width of an index head and of the cached index key.
    pub dim: u64,
    pub top_k: u64,
}

impl Indexer {
    /// The picks of another layer's indexer: as few tokens are read, nothing is scored or kept for it.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { heads: 0, dim: 0, ..self }
    }

    /// Whether the layer has an indexer of its own.
    pub fn own(self) -> bool {
        self.dim > 0
    }
}

/// Attention over a window and a cache compressed along the sequence (DeepSeek-V4).
#[derive(Clone, Debug, PartialEq)]
pub struct Compressed {
    /// Query heads; there is one KV head whose entry serves as key and value.
    pub heads: u64,
    pub dim: u64,
    pub rope_dim: u64,
    pub q_rank: u64,
    pub o_groups: u64,
    pub o_rank: u64,
    /// Uncompressed tokens always read.
    pub window: u64,
    /// Tokens folded into one entry; `None` for a layer with the window only.
    pub ratio: Option<u64>,
    /// The indexer that picks entries, where all are too many.
    pub indexer: Option<Indexer>,
}

/// A recurrence: its state has a fixed size, is read and written each token, and replaces the KV cache.
#[derive(Clone, Debug, PartialEq)]
pub enum Linear {
    /// Gated delta net (Qwen3-Next, Qwen3.5); `conv` counts the taps of a short convolution, here and below. A `wide` state is kept in
    /// 32 bits since the model says so (`mamba_ssm_dtype`); else an engine chooses.
    GatedDelta { k_heads: u64, v_heads: u64, k_dim: u64, v_dim: u64, conv: u64, wide: bool },
    /// Kimi delta attention; a full gate is one matrix instead of two of low rank.
    Kda { heads: u64, dim: u64, conv: u64, full_gate: bool },
    Mamba1 {
        inner: u64,
        state: u64,
        conv: u64,
        /// Rank of the step-size projection.
        dt_rank: u64,
        /// Whether dt, B and C are normalised with weights (Jamba).
        inner_norms: bool,
        conv_bias: bool,
        proj_bias: bool,
    },
    /// Mamba-2; groups share B and C.
    Mamba2 { heads: u64, dim: u64, groups: u64, state: u64, conv: u64, conv_bias: bool, proj_bias: bool },
    /// Lightning attention (MiniMax-01).
    Lightning { heads: u64, dim: u64 },
}

/// What happens to each token alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Ffn {
    None,
    Dense(Mlp),
    Moe(Moe),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mlp {
    pub width: u64,
    /// Whether a third matrix gates the inner layer (SwiGLU, GeGLU).
    pub gated: bool,
    pub bias: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moe {
    pub experts: u64,
    pub top_k: u64,
    pub expert: Mlp,
    /// The network every token passes besides, all shared experts as one width.
    pub shared: Option<Mlp>,
    /// Whether a one-column gate weighs the shared network.
    pub shared_gate: bool,
    /// Router outputs beyond the experts (LongCat's zero-computation experts).
    pub zero_experts: u64,
    /// Values per expert beside the router matrix: biases and score corrections.
    pub router_vectors: u64,
    pub latent: Option<LatentExperts>,
}

/// Experts working on a narrower vector, with one projection in and one out per layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentExperts {
    pub width: u64,
    /// Whether the narrow vector is normalised with weights.
    pub norm: bool,
}

/// Layers that predict tokens further ahead, run only when speculating.
#[derive(Clone, Debug, PartialEq)]
pub struct Mtp {
    pub n: u64,
    pub block: Block,
    /// Projection, norms and other weights of each.
    pub extra: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// A weight per channel.
    #[default]
    Rms,
    /// A weight and a bias per channel.
    Layer,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    pub routed: Dtype,
    /// Dense networks, shared experts.
    pub linear: Dtype,
    /// Attention and what stands in its place: some checkpoints leave it wider than the networks.
    pub mixer: Dtype,
    /// Embedding, head, router, norms.
    pub other: Dtype,
}

impl Norm {
    pub fn vectors(self) -> u64 {
        match self {
            Self::Rms => 1,
            Self::Layer => 2,
        }
    }
}

impl Formats {
    pub fn uniform(dtype: Dtype) -> Self {
        Self { routed: dtype, linear: dtype, mixer: dtype, other: dtype }
    }
}

impl Attention {
    /// Over the whole context, without biases, norms or gates.
    pub fn full(heads: u64, kv_heads: u64, dim: u64) -> Self {
        Self { heads, kv_heads, qk_dim: dim, v_dim: dim, ..Self::default() }
    }
}

impl Shape {
    /// A GPT of the Megatron papers: four times as wide inside, as many keys as queries.
    pub fn gpt(layers: u64, hidden: u64, heads: u64) -> Self {
        let bias = Bias { qkv: true, out: true };
        let mixer = Mixer::Attention(Attention { bias, ..Attention::full(heads, heads, hidden / heads) });
        let ffn = Ffn::Dense(Mlp { width: 4 * hidden, gated: false, bias: true });
        Self {
            architecture: "gpt".into(),
            hidden,
            vocab: 51_200,
            tied: true,
            positions: 2048,
            norm: Norm::Layer,
            outer_norms: 1,
            runs: vec![Run { n: layers, block: Block { mixer, ffn, norms: 2, side: Vec::new() } }],
            context_max: Some(2048),
            ..Self::default()
        }
    }

    /// Whether it writes nothing: no token waits for another.
    pub fn encodes(&self) -> bool {
        let both = |run: &Run| matches!(&run.block.mixer, Mixer::Attention(a) if a.both_ways);
        !self.runs.is_empty() && self.runs.iter().all(both)
    }

    pub fn n_layers(&self) -> u64 {
        self.runs.iter().map(|run| run.n).sum()
    }

    /// Layers with experts.
    pub fn moe_layers(&self) -> u64 {
        self.runs.iter().filter(|run| matches!(run.block.ffn, Ffn::Moe(_))).map(|run| run.n).sum()
    }

    /// Layers of latent attention.
    pub fn latent_layers(&self) -> u64 {
        let latent = |run: &&Run| matches!(run.block.mixer, Mixer::Latent(_) | Mixer::Compressed(_));
        self.runs.iter().filter(latent).map(|run| run.n).sum()
    }

    pub fn moe(&self) -> Option<&Moe> {
        self.runs.iter().find_map(|run| match &run.block.ffn {
            Ffn::Moe(moe) => Some(moe),
            _ => None,
        })
    }

    /// Appends a block, extending the last run when it is the same.
    pub(crate) fn push(runs: &mut Vec<Run>, block: Block) {
        match runs.last_mut() {
            Some(run) if run.block == block => run.n += 1,
            _ => runs.push(Run { n: 1, block }),
        }
    }
}

impl Moe {
    /// Parameters of one expert with the given widths of its input and inside.
    pub fn expert_params(&self, hidden: u64, inter: u64) -> f64 {
        // Up, down, and a gate where there is one.
        let matrices = if self.expert.gated { 3 } else { 2 };
        (matrices * hidden * inter) as f64
    }
}

impl Model {
    pub fn formats(&self) -> Formats {
        match &self.body {
            Body::Layers(shape) => shape.formats,
            Body::Lump(lump) => Formats::uniform(lump.weights),
        }
    }

    /// One format for every matrix, with embeddings and norms left as they are save for formats of whole files. Files of llama.cpp leave
    /// experts in MXFP4 that were trained in it, whatever they are called, and where a row is no whole number of blocks a wider type.
    ///
    /// Source: the card of bartowski/openai_gpt-oss-20b-GGUF ("All quants keep the feed forward networks at mxfp4", 2025-08), and the
    /// sizes of unsloth/gpt-oss-120b-GGUF: 58.3 GiB in Q2_K, 58.5 in Q4_K_M, 59.0 in Q8_0, 60.9 in F16. What is called MXFP4 keeps the
    /// rest in 8 bits: "type q8_0: 146 tensors", "type mxfp4: 108 tensors", 59.02 GiB (gpt-oss-120b, ggml-org/llama.cpp issue 15253).
    pub fn formats_in(&self, dtype: Dtype) -> Formats {
        let sparse = self.shape().is_some_and(|shape| shape.moe().is_some());
        if dtype == Dtype::Gguf(Gguf::Mxfp4Moe) && sparse {
            let (own, rest) = (self.formats().routed, Dtype::Gguf(Gguf::Q8_0));
            let routed = if own == Dtype::MxFp4 { own } else { dtype };
            return Formats { routed, linear: rest, mixer: rest, other: rest };
        }
        let whole = dtype.covers_embedding() || matches!(self.body, Body::Lump(_));
        let other = if whole { dtype } else { self.formats().other };
        let kept = self.formats().routed == Dtype::MxFp4 && dtype.gguf().is_some_and(|file| !file.is_mlx());
        let file = if let Dtype::Gguf(mix) = dtype { Some(mix) } else { None };
        let shorter = self.shape().zip(file).and_then(|(shape, mix)| fallback::formats(shape, mix));
        let all = shorter.unwrap_or(Formats { routed: dtype, linear: dtype, mixer: dtype, other });
        Formats { routed: if kept { Dtype::MxFp4 } else { all.routed }, ..all }
    }

    /// The cache format engines choose by themselves: the model's 16-bit type.
    pub fn cache_dtype(&self) -> Dtype {
        let own = self.formats().other;
        if own.bits() >= 16.0 && own.gguf().is_none() { own } else { Dtype::Bf16 }
    }

    /// The layers, unless the model is known by totals only.
    pub fn shape(&self) -> Option<&Shape> {
        match &self.body {
            Body::Layers(shape) => Some(shape),
            Body::Lump(_) => None,
        }
    }
}
