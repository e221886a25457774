//! Parameters, bytes and FLOP of each part of a model, counted tensor by tensor.
//!
//! $$ N = \sum_t n_t\, i_t\, o_t \qquad N_{act} = \sum_t u_t\, i_t\, o_t \qquad \mathrm{FLOP/token} = 2 \sum_{t\ \mathrm{multiplied}} u_t\, i_t\, o_t $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | n_t | copies | how many of the tensor there are (experts) |
//! | u_t | used | how many of them one token uses |
//! | i_t, o_t | d_in, d_out | its sides; a vector has one side of 1 |
//!
//! A table that is only looked up (an embedding apart from its head) counts among the parameters but is neither
//! multiplied nor read whole in a step: [`Count::multiplied`] leaves it out. The 2 is one multiplication and one addition.
//! Attention over the context is not in here; see [`crate::kv`].
//!
//! Source: the tensors of each architecture's reference implementation; every catalogue model is checked against its
//! published count.

use rackmath_spec::model::{
    Attention, Block, Body, Compressed, Ffn, Formats, Gate, Indexer, KvSource, Latent, Linear, Mixer, Mlp, Moe, QkNorm,
    Shape, Side, SideUse, Span,
};
use rackmath_spec::{Dtype, Model};
use rackmath_units::{Bytes, FlopPerToken, Params};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Part {
    #[strum(to_string = "attention")]
    Mixer,
    #[strum(to_string = "dense ffn")]
    Dense,
    #[strum(to_string = "shared experts")]
    Shared,
    #[strum(to_string = "routed experts")]
    Routed,
    #[strum(to_string = "routers")]
    Router,
    /// The input embedding (and the head, when tied).
    Embedding,
    Head,
    /// Positions and side modules too.
    #[strum(to_string = "norms and other")]
    Other,
}

impl Part {
    pub const ALL: [Self; 8] =
        [Self::Mixer, Self::Dense, Self::Shared, Self::Routed, Self::Router, Self::Embedding, Self::Head, Self::Other];

    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn dtype(self, formats: &Formats) -> Dtype {
        match self {
            Self::Routed => formats.routed,
            Self::Mixer => formats.mixer,
            Self::Dense | Self::Shared => formats.linear,
            Self::Router | Self::Embedding | Self::Head | Self::Other => formats.other,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Matrix,
    Vector,
    Lookup,
    Unused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Not at all: every chip of a tensor-parallel group has its own copy.
    Whole,
    /// Into as many shards as the tensor-parallel degree: query heads, network widths, vocabulary.
    Tensor,
    /// The same, but into at most so many shards: key-value heads, copied beyond.
    KvHeads(u64),
    /// Into groups of experts, and each expert into shards.
    Experts,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    pub name: &'static str,
    pub part: Part,
    pub usage: Use,
    pub cut: Cut,
    pub d_in: u64,
    pub d_out: u64,
    pub copies: u64,
    pub used: f64,
}

impl Tensor {
    fn of(self, part: Part) -> Self {
        Self { part, ..self }
    }

    pub fn params(&self) -> u128 {
        u128::from(self.d_in) * u128::from(self.d_out) * u128::from(self.copies)
    }

    pub fn used_params(&self) -> f64 {
        if self.usage == Use::Unused { 0.0 } else { self.d_in as f64 * self.d_out as f64 * self.used }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartCount {
    pub total: u128,
    pub active: f64,
    /// Of the total, those only looked up or never read.
    pub idle: u128,
    /// Of the active, those only looked up.
    pub looked_up: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    parts: [PartCount; Part::ALL.len()],
    /// Parameters of the multi-token-prediction layers, not part of the totals.
    pub mtp: u128,
}

impl Count {
    pub fn part(&self, part: Part) -> PartCount {
        self.parts[part as usize]
    }

    /// All parameters, exact, multi-token prediction apart.
    pub fn total(&self) -> u128 {
        self.parts.iter().map(|p| p.total).sum()
    }

    /// Parameters one token uses, lookups included: the published convention.
    pub fn active(&self) -> Params {
        Params::new(self.parts.iter().map(|p| p.active).sum())
    }

    /// Parameters a step reads when every expert is touched: all but lookup tables.
    pub fn read(&self) -> Params {
        Params::new(self.parts.iter().map(|p| (p.total - p.idle) as f64).sum())
    }

    /// Parameters multiplied with each token: the N_act of the compute term.
    pub fn multiplied(&self) -> Params {
        Params::new(self.parts.iter().map(|p| p.active - p.looked_up).sum())
    }

    pub fn stored_bytes(&self, formats: &Formats) -> Bytes {
        Part::ALL.into_iter().map(|p| p.dtype(formats).width() * Params::new(self.part(p).total as f64)).sum()
    }

    pub fn read_bytes_in(&self, part: Part, formats: &Formats) -> Bytes {
        let p = self.part(part);
        part.dtype(formats).width() * Params::new((p.total - p.idle) as f64)
    }

    /// Weight FLOP for each token: a multiplication and an addition per multiplied parameter.
    pub fn flop_per_token(&self) -> FlopPerToken {
        FlopPerToken::new(2.0 * self.multiplied().get())
    }
}

pub fn count(model: &Model) -> Count {
    let mut parts = [PartCount::default(); Part::ALL.len()];
    let shape = match &model.body {
        Body::Layers(shape) => shape,
        // A lump has no parts: what is active is dense, the rest are experts.
        Body::Lump(lump) => {
            let (total, active) = (lump.total.get(), lump.active.get());
            parts[Part::Dense as usize] = PartCount { total: active as u128, active, ..PartCount::default() };
            parts[Part::Routed as usize].total = (total - active) as u128;
            return Count { parts, mtp: 0 };
        }
    };
    let blocks = shape.runs.iter().flat_map(|run| block_tensors(shape, &run.block).into_iter().map(|t| (t, run.n)));
    for (tensor, times) in blocks.chain(outer_tensors(shape).into_iter().map(|t| (t, 1))) {
        let p = &mut parts[tensor.part as usize];
        let (params, used) = (tensor.params() * u128::from(times), tensor.used_params() * times as f64);
        p.total += params;
        p.active += used;
        if matches!(tensor.usage, Use::Lookup | Use::Unused) {
            p.idle += params;
            // Nothing of an unused tensor is used.
            p.looked_up += used;
        }
    }
    let mtp = shape.mtp.as_ref().map_or(0, |mtp| {
        let block: u128 = block_tensors(shape, &mtp.block).iter().map(Tensor::params).sum();
        (block + u128::from(mtp.extra)) * u128::from(mtp.n)
    });
    Count { parts, mtp }
}

/// A matrix of the mixer that tensor parallelism cuts.
fn matrix(name: &'static str, d_in: u64, d_out: u64) -> Tensor {
    Tensor { name, part: Part::Mixer, usage: Use::Matrix, cut: Cut::Tensor, d_in, d_out, copies: 1, used: 1.0 }
}

/// A matrix that every chip of a tensor-parallel group keeps whole.
fn whole(name: &'static str, d_in: u64, d_out: u64) -> Tensor {
    Tensor { cut: Cut::Whole, ..matrix(name, d_in, d_out) }
}

fn vector(name: &'static str, width: u64) -> Tensor {
    Tensor { usage: Use::Vector, ..whole(name, 1, width) }
}

/// A width where the model has the tensor; a tensor of no width is left out of the lists.
fn where_has(has: bool, width: u64) -> u64 {
    if has { width } else { 0 }
}

/// Embedding, head, positions, outer norms, side modules: all that is outside the layers.
pub fn outer_tensors(shape: &Shape) -> Vec<Tensor> {
    let (h, v) = (shape.hidden, shape.vocab);
    let (embedding, head) = if shape.headless {
        (Tensor { usage: Use::Lookup, ..matrix("embedding", h, v) }, 0)
    } else if shape.tied {
        // The same matrix is looked up and multiplied: it is read whole, once.
        (matrix("embedding and head", h, v), 0)
    } else {
        // The published active counts take in the whole table, so it is "used" whole; nothing multiplies it.
        (Tensor { usage: Use::Lookup, ..matrix("embedding", h, v) }, v)
    };
    let mut all = vec![
        embedding.of(Part::Embedding),
        matrix("head", h, head).of(Part::Head),
        vector("head bias", where_has(shape.head_bias && !shape.headless, v)).of(Part::Head),
        Tensor { usage: Use::Lookup, ..matrix("positions", h, shape.positions) }.of(Part::Other),
        vector("norms", h * shape.norm.vectors() * shape.outer_norms).of(Part::Other),
    ];
    all.extend(shape.side.iter().map(side_tensor));
    all.retain(|t| t.params() > 0);
    all
}

fn side_tensor(side: &Side) -> Tensor {
    let (usage, used) = match side.usage {
        SideUse::Multiplied => (Use::Vector, 1.0),
        SideUse::LookedUp { rows } => (Use::Lookup, 1.0 / rows as f64),
        SideUse::Unused => (Use::Unused, 0.0),
    };
    Tensor { usage, used, ..whole(side.name, 1, side.params) }.of(Part::Other)
}

pub fn block_tensors(shape: &Shape, block: &Block) -> Vec<Tensor> {
    let h = shape.hidden;
    let mut all = match &block.mixer {
        Mixer::Attention(a) => attention_tensors(h, a),
        Mixer::Latent(a) => latent_tensors(h, a),
        Mixer::Compressed(a) => compressed_tensors(h, a),
        Mixer::Linear(a) => linear_tensors(h, a),
        Mixer::None => Vec::new(),
    };
    match &block.ffn {
        Ffn::None => {}
        Ffn::Dense(mlp) => all.extend(mlp_tensors(h, *mlp, Part::Dense, 1, 1.0)),
        Ffn::Moe(moe) => all.extend(moe_tensors(h, moe)),
    }
    all.push(vector("norms", h * shape.norm.vectors() * block.norms).of(Part::Other));
    all.extend(block.side.iter().map(side_tensor));
    all.retain(|t| t.params() > 0);
    all
}

fn attention_tensors(h: u64, a: &Attention) -> Vec<Tensor> {
    let (q, k, value, out) = (a.heads * a.qk_dim, a.kv_heads * a.qk_dim, a.kv_heads * a.v_dim, a.heads * a.v_dim);
    let (own, cut) = (a.kv == KvSource::Own, Cut::KvHeads(a.kv_heads));
    let norm = match a.qk_norm {
        QkNorm::None => 0,
        QkNorm::PerHead => 2 * a.qk_dim,
        QkNorm::AllHeads => q + k,
    };
    let (index_q, index_k, index_norm) = match a.span {
        Span::Blocks(index) => (index.heads * index.dim, index.kv_heads * index.dim, 2 * index.dim),
        _ => (0, 0, 0),
    };
    vec![
        matrix("query", h, q),
        matrix("output", out, h),
        Tensor { cut, ..matrix("key", h, where_has(own, k)) },
        Tensor { cut, ..matrix("value", h, where_has(own && !a.k_is_v, value)) },
        matrix("output gate", h, gate(a.gate, a.heads, out)),
        vector("query bias", where_has(a.bias.qkv, q)),
        vector("key and value bias", where_has(a.bias.qkv && own, k + value)),
        vector("output bias", where_has(a.bias.out, h)),
        vector("query and key norm", norm),
        vector("sinks", where_has(a.sinks, a.heads)),
        whole("index query", h, index_q),
        whole("index key", h, index_k),
        vector("index norm", index_norm),
    ]
}

/// Values of the gate on the output.
fn gate(gate: Gate, heads: u64, out: u64) -> u64 {
    match gate {
        Gate::None => 0,
        Gate::PerElement => out,
        Gate::PerHead => heads,
    }
}

fn latent_tensors(h: u64, a: &Latent) -> Vec<Tensor> {
    let (q, out) = (a.heads * (a.nope_dim + a.rope_dim), a.heads * a.v_dim);
    let rank = a.q_rank.unwrap_or(0);
    let index = a.indexer.map_or((0, 0), |index| (index.heads, index.dim));
    // The latent is one for all heads: what makes it is copied, what unfolds it per head is cut.
    vec![
        whole("query down", h, rank),
        vector("query norm", rank),
        matrix(if rank > 0 { "query up" } else { "query" }, a.q_rank.unwrap_or(h), q),
        whole("kv down", h, a.kv_rank + a.rope_dim),
        vector("kv norm", a.kv_rank),
        matrix("kv up", a.kv_rank, a.heads * (a.nope_dim + a.v_dim)),
        matrix("output", out, h),
        matrix("output gate", h, gate(a.gate, a.heads, out)),
        whole("index query", a.q_rank.unwrap_or(h), index.0 * index.1),
        whole("index key", h, index.1),
        vector("index norm", 2 * index.1),
        whole("index weights", h, index.0),
    ]
}

/// Windows of the compressor overlap when the ratio is small: each entry then draws on two windows.
pub(crate) fn overlap(a: &Compressed) -> u64 {
    if a.indexer.is_some() { 2 } else { 1 }
}

fn compressed_tensors(h: u64, a: &Compressed) -> Vec<Tensor> {
    let wide = a.heads * a.dim;
    let down = matrix("output down", wide / a.o_groups, a.o_rank);
    let mut all = vec![
        whole("query down", h, a.q_rank),
        vector("query norm", a.q_rank),
        matrix("query up", a.q_rank, wide),
        whole("kv", h, a.dim),
        vector("kv norm", a.dim),
        vector("sinks", a.heads),
        Tensor { copies: a.o_groups, used: a.o_groups as f64, ..down },
        matrix("output up", a.o_groups * a.o_rank, h),
    ];
    let Some(ratio) = a.ratio else { return all };
    let overlap = overlap(a);
    let mut compressor = |dim: u64| {
        all.push(whole("compressor values", h, overlap * dim));
        all.push(whole("compressor gate", h, overlap * dim));
        all.push(vector("compressor positions", ratio * overlap * dim));
        all.push(vector("compressor norm", dim));
    };
    compressor(a.dim);
    if let Some(Indexer { heads, dim, .. }) = a.indexer {
        compressor(dim);
        all.push(whole("index query", a.q_rank, heads * dim));
        all.push(whole("index weights", h, heads));
    }
    all
}

fn linear_tensors(h: u64, a: &Linear) -> Vec<Tensor> {
    match *a {
        Linear::GatedDelta { k_heads, v_heads, k_dim, v_dim, conv, .. } => {
            let (k, value) = (k_heads * k_dim, v_heads * v_dim);
            vec![
                matrix("query, key, value and gate", h, 2 * k + 2 * value),
                matrix("beta and decay", h, 2 * v_heads),
                vector("convolution", (2 * k + value) * conv),
                vector("decay", 2 * v_heads),
                vector("norm", v_dim),
                matrix("output", value, h),
            ]
        }
        Linear::Kda { heads, dim, conv, full_gate } => {
            let p = heads * dim;
            let mut all = vec![
                matrix("query, key and value", h, 3 * p),
                vector("convolution", 3 * p * conv),
                matrix("decay down", h, dim),
                matrix("decay up", dim, p),
                matrix("beta", h, heads),
                vector("decay", heads + p),
                vector("norm", dim),
                matrix("output", p, h),
            ];
            if full_gate {
                all.push(matrix("output gate", h, p));
            } else {
                all.extend([matrix("gate down", h, dim), matrix("gate up", dim, p)]);
            }
            all
        }
        Linear::Mamba1 { inner, state, conv, dt_rank, inner_norms, conv_bias, proj_bias } => vec![
            matrix("input", h, 2 * inner),
            vector("convolution", inner * conv + where_has(conv_bias, inner)),
            matrix("step, B and C", inner, dt_rank + 2 * state),
            matrix("step up", dt_rank, inner),
            vector("step bias", inner),
            vector("decay", inner * state),
            vector("skip", inner),
            matrix("output", inner, h),
            vector("inner norms", where_has(inner_norms, dt_rank + 2 * state)),
            vector("projection bias", where_has(proj_bias, 2 * inner + h)),
        ],
        Linear::Mamba2 { heads, dim, groups, state, conv, conv_bias, proj_bias } => {
            let inner = heads * dim;
            let channels = inner + 2 * groups * state;
            vec![
                matrix("input", h, inner + channels + heads),
                vector("convolution", channels * conv + where_has(conv_bias, channels)),
                vector("decay, skip and step bias", 3 * heads),
                vector("norm", inner),
                matrix("output", inner, h),
                vector("projection bias", where_has(proj_bias, inner + channels + heads + h)),
            ]
        }
        Linear::Lightning { heads, dim } => {
            let p = heads * dim;
            vec![
                matrix("query, key and value", h, 3 * p),
                matrix("output gate", h, p),
                vector("norm", p),
                matrix("output", p, h),
            ]
        }
    }
}

/// `copies` equal networks of which a token uses `used`.
fn mlp_tensors(h: u64, mlp: Mlp, part: Part, copies: u64, used: f64) -> [Tensor; 3] {
    let up = mlp.width * if mlp.gated { 2 } else { 1 };
    let cut = if part == Part::Routed { Cut::Experts } else { Cut::Tensor };
    let bias = vector("bias", where_has(mlp.bias, up + h));
    [matrix("up", h, up), matrix("down", mlp.width, h), bias].map(|t| Tensor { part, cut, copies, used, ..t })
}

/// Routed experts a token really runs: zero-computation experts take their share of the choices.
pub fn experts_run(moe: &Moe) -> f64 {
    moe.top_k as f64 * moe.experts as f64 / (moe.experts + moe.zero_experts) as f64
}

fn moe_tensors(h: u64, moe: &Moe) -> Vec<Tensor> {
    let outputs = moe.experts + moe.zero_experts;
    let (latent, normed) = moe.latent.map_or((0, false), |latent| (latent.width, latent.norm));
    let inner = if latent > 0 { latent } else { h };
    let mut all = vec![
        whole("router", h, outputs).of(Part::Router),
        vector("router vectors", moe.router_vectors * outputs).of(Part::Router),
    ];
    all.extend(mlp_tensors(inner, moe.expert, Part::Routed, moe.experts, experts_run(moe)));
    all.push(whole("latent down", h, latent).of(Part::Shared));
    all.push(whole("latent up", latent, h).of(Part::Shared));
    all.push(vector("latent norm", where_has(normed, latent)).of(Part::Shared));
    all.extend(moe.shared.into_iter().flat_map(|shared| mlp_tensors(h, shared, Part::Shared, 1, 1.0)));
    all.push(whole("shared gate", h, where_has(moe.shared_gate, 1)).of(Part::Shared));
    all
}
