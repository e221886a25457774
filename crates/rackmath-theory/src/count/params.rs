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
    Attention, Block, Body, Compressed, Ffn, Formats, Gate, Indexer, KvSource, Latent, Linear, Lump, Mixer, Mlp, Moe,
    Mtp, QkNorm, Shape, Side, SideUse, Span,
};
use rackmath_spec::{Dtype, Model};
use rackmath_units::{Bytes, FlopPerToken, Params};

/// Which part of a model a tensor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Attention or recurrence.
    Mixer,
    /// Dense feed-forward networks.
    Dense,
    /// Networks every token passes beside the routed experts.
    Shared,
    Routed,
    /// Routers.
    Router,
    /// The input embedding (and the head, when tied).
    Embedding,
    Head,
    /// Norms outside and inside the layers, positions, side modules.
    Other,
}

impl Part {
    /// Every part, in the order tables show them.
    pub const ALL: [Self; 8] =
        [Self::Mixer, Self::Dense, Self::Shared, Self::Routed, Self::Router, Self::Embedding, Self::Head, Self::Other];

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixer => "attention",
            Self::Dense => "dense ffn",
            Self::Shared => "shared experts",
            Self::Routed => "routed experts",
            Self::Router => "routers",
            Self::Embedding => "embedding",
            Self::Head => "head",
            Self::Other => "norms and other",
        }
    }

    /// The format its weights are stored in.
    pub fn dtype(self, formats: &Formats) -> Dtype {
        match self {
            Self::Routed => formats.routed,
            Self::Mixer | Self::Dense | Self::Shared => formats.linear,
            Self::Router | Self::Embedding | Self::Head | Self::Other => formats.other,
        }
    }
}

/// How a token uses a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Matrix,
    /// A vector: norm, bias, decay.
    Vector,
    Lookup,
    /// Stored and never read.
    Unused,
}

/// Along what a tensor can be cut over chips.
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

/// One tensor of a layer, or several equal ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// What it is called.
    pub name: &'static str,
    /// Where it belongs.
    pub part: Part,
    /// How it is used.
    pub usage: Use,
    /// Along what it can be cut.
    pub cut: Cut,
    /// Input width.
    pub d_in: u64,
    /// Output width.
    pub d_out: u64,
    /// How many there are.
    pub copies: u64,
    /// How many a token uses, on average.
    pub used: f64,
}

impl Tensor {
    pub fn params(&self) -> u128 {
        u128::from(self.d_in) * u128::from(self.d_out) * u128::from(self.copies)
    }

    /// Parameters one token uses.
    pub fn used_params(&self) -> f64 {
        if self.usage == Use::Unused { 0.0 } else { self.d_in as f64 * self.d_out as f64 * self.used }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartCount {
    /// All parameters, exact.
    pub total: u128,
    /// Parameters one token uses, lookups included.
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

    pub fn multiplied_in(&self, part: Part) -> Params {
        let p = self.part(part);
        Params::new(p.active - p.looked_up)
    }

    pub fn stored_bytes(&self, formats: &Formats) -> Bytes {
        Part::ALL.into_iter().map(|p| p.dtype(formats).width() * Params::new(self.part(p).total as f64)).sum()
    }

    pub fn read_bytes_in(&self, part: Part, formats: &Formats) -> Bytes {
        let p = self.part(part);
        part.dtype(formats).width() * Params::new((p.total - p.idle) as f64)
    }

    /// Bytes of weights a step reads when every expert is touched.
    pub fn read_bytes(&self, formats: &Formats) -> Bytes {
        Part::ALL.into_iter().map(|p| self.read_bytes_in(p, formats)).sum()
    }

    /// Weight FLOP for each token: a multiplication and an addition per multiplied parameter.
    pub fn flop_per_token(&self) -> FlopPerToken {
        FlopPerToken::new(2.0 * self.multiplied().get())
    }
}

pub fn count(model: &Model) -> Count {
    match &model.body {
        Body::Layers(shape) => count_shape(shape),
        Body::Lump(lump) => count_lump(lump),
    }
}

/// A lump has no parts: what is active is dense, the rest are experts.
fn count_lump(lump: &Lump) -> Count {
    let mut parts = [PartCount::default(); Part::ALL.len()];
    let (total, active) = (lump.total.get(), lump.active.get());
    parts[Part::Dense as usize] = PartCount { total: active as u128, active, ..PartCount::default() };
    parts[Part::Routed as usize] = PartCount { total: (total - active) as u128, ..PartCount::default() };
    Count { parts, mtp: 0 }
}

fn count_shape(shape: &Shape) -> Count {
    let mut parts = [PartCount::default(); Part::ALL.len()];
    let mut add = |tensor: Tensor, times: u64| {
        let p = &mut parts[tensor.part as usize];
        let (params, used) = (tensor.params() * u128::from(times), tensor.used_params() * times as f64);
        p.total += params;
        p.active += used;
        match tensor.usage {
            Use::Lookup => {
                p.idle += params;
                p.looked_up += used;
            }
            Use::Unused => p.idle += params,
            Use::Matrix | Use::Vector => {}
        }
    };
    for run in &shape.runs {
        for tensor in block_tensors(shape, &run.block) {
            add(tensor, run.n);
        }
    }
    for tensor in outer_tensors(shape) {
        add(tensor, 1);
    }
    Count { parts, mtp: shape.mtp.as_ref().map_or(0, |mtp| mtp_params(shape, mtp)) }
}

fn mtp_params(shape: &Shape, mtp: &Mtp) -> u128 {
    let block: u128 = block_tensors(shape, &mtp.block).iter().map(Tensor::params).sum();
    (block + u128::from(mtp.extra)) * u128::from(mtp.n)
}

fn matrix(name: &'static str, part: Part, d_in: u64, d_out: u64) -> Tensor {
    Tensor { name, part, usage: Use::Matrix, cut: Cut::Tensor, d_in, d_out, copies: 1, used: 1.0 }
}

fn vector(name: &'static str, part: Part, width: u64) -> Tensor {
    Tensor { usage: Use::Vector, cut: Cut::Whole, ..matrix(name, part, 1, width) }
}

/// A matrix every chip of a tensor-parallel group keeps whole.
fn whole(name: &'static str, part: Part, d_in: u64, d_out: u64) -> Tensor {
    Tensor { cut: Cut::Whole, ..matrix(name, part, d_in, d_out) }
}

/// Embedding, head, positions, outer norms, side modules: all that is outside the layers.
pub fn outer_tensors(shape: &Shape) -> Vec<Tensor> {
    let (h, v) = (shape.hidden, shape.vocab);
    let mut all = Vec::new();
    if shape.tied {
        // The same matrix is looked up and multiplied: it is read whole, once.
        all.push(matrix("embedding and head", Part::Embedding, h, v));
    } else {
        // The published active counts take in the whole table, so it is "used" whole; nothing multiplies it.
        all.push(Tensor { usage: Use::Lookup, ..matrix("embedding", Part::Embedding, h, v) });
        all.push(matrix("head", Part::Head, h, v));
    }
    if shape.head_bias {
        all.push(vector("head bias", Part::Head, v));
    }
    if shape.positions > 0 {
        all.push(Tensor { usage: Use::Lookup, ..matrix("positions", Part::Other, h, shape.positions) });
    }
    all.push(vector("norms", Part::Other, h * shape.norm.vectors() * shape.outer_norms));
    all.extend(shape.side.iter().map(side_tensor));
    all
}

fn side_tensor(side: &Side) -> Tensor {
    let (usage, used) = match side.usage {
        SideUse::Multiplied => (Use::Vector, 1.0),
        SideUse::LookedUp { rows } => (Use::Lookup, 1.0 / rows as f64),
        SideUse::Unused => (Use::Unused, 0.0),
    };
    Tensor { usage, used, cut: Cut::Whole, ..matrix(side.name, Part::Other, 1, side.params) }
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
    all.push(vector("norms", Part::Other, h * shape.norm.vectors() * block.norms));
    all.extend(block.side.iter().map(side_tensor));
    all
}

fn attention_tensors(h: u64, a: &Attention) -> Vec<Tensor> {
    let m = |name, d_in, d_out| matrix(name, Part::Mixer, d_in, d_out);
    let v = |name, width| vector(name, Part::Mixer, width);
    let (q, k, value) = (a.heads * a.qk_dim, a.kv_heads * a.qk_dim, a.kv_heads * a.v_dim);
    let mut all = vec![m("query", h, q), m("output", a.heads * a.v_dim, h)];
    let own = a.kv == KvSource::Own;
    if own {
        let kv = Cut::KvHeads(a.kv_heads);
        all.push(Tensor { cut: kv, ..m("key", h, k) });
        if !a.k_is_v {
            all.push(Tensor { cut: kv, ..m("value", h, value) });
        }
    }
    match a.gate {
        Gate::None => {}
        Gate::PerElement => all.push(m("output gate", h, a.heads * a.v_dim)),
    }
    if a.bias.qkv {
        all.push(v("query bias", q));
        if own {
            all.push(v("key and value bias", k + value));
        }
    }
    if a.bias.out {
        all.push(v("output bias", h));
    }
    match a.qk_norm {
        QkNorm::None => {}
        QkNorm::PerHead => all.push(v("query and key norm", 2 * a.qk_dim)),
        QkNorm::AllHeads => all.push(v("query and key norm", q + k)),
    }
    if a.sinks {
        all.push(v("sinks", a.heads));
    }
    if let Span::Blocks(index) = a.span {
        all.push(whole("index query", Part::Mixer, h, index.heads * index.dim));
        all.push(whole("index key", Part::Mixer, h, index.kv_heads * index.dim));
        all.push(v("index norm", 2 * index.dim));
    }
    all
}

fn latent_tensors(h: u64, a: &Latent) -> Vec<Tensor> {
    let m = |name, d_in, d_out| matrix(name, Part::Mixer, d_in, d_out);
    let v = |name, width| vector(name, Part::Mixer, width);
    // The latent is one for all heads: what makes it is copied, what unfolds it per head is cut.
    let w = |name, d_in, d_out| whole(name, Part::Mixer, d_in, d_out);
    let q = a.heads * (a.nope_dim + a.rope_dim);
    let mut all = match a.q_rank {
        Some(rank) => vec![w("query down", h, rank), v("query norm", rank), m("query up", rank, q)],
        None => vec![m("query", h, q)],
    };
    all.push(w("kv down", h, a.kv_rank + a.rope_dim));
    all.push(v("kv norm", a.kv_rank));
    all.push(m("kv up", a.kv_rank, a.heads * (a.nope_dim + a.v_dim)));
    all.push(m("output", a.heads * a.v_dim, h));
    match a.gate {
        Gate::None => {}
        Gate::PerElement => all.push(m("output gate", h, a.heads * a.v_dim)),
    }
    if let Some(index) = a.indexer {
        all.extend([
            w("index query", a.q_rank.unwrap_or(h), index.heads * index.dim),
            w("index key", h, index.dim),
            v("index norm", 2 * index.dim),
            w("index weights", h, index.heads),
        ]);
    }
    all
}

/// Windows of the compressor overlap when the ratio is small: each entry then draws on two windows.
pub(crate) fn overlap(a: &Compressed) -> u64 {
    if a.indexer.is_some() { 2 } else { 1 }
}

fn compressed_tensors(h: u64, a: &Compressed) -> Vec<Tensor> {
    let m = |name, d_in, d_out| matrix(name, Part::Mixer, d_in, d_out);
    let v = |name, width| vector(name, Part::Mixer, width);
    let w = |name, d_in, d_out| whole(name, Part::Mixer, d_in, d_out);
    let wide = a.heads * a.dim;
    let groups =
        Tensor { copies: a.o_groups, used: a.o_groups as f64, ..m("output down", wide / a.o_groups, a.o_rank) };
    let mut all = vec![
        w("query down", h, a.q_rank),
        v("query norm", a.q_rank),
        m("query up", a.q_rank, wide),
        w("kv", h, a.dim),
        v("kv norm", a.dim),
        v("sinks", a.heads),
        groups,
        m("output up", a.o_groups * a.o_rank, h),
    ];
    let compressor = |dim: u64, ratio: u64, overlap: u64| {
        [
            w("compressor values", h, overlap * dim),
            w("compressor gate", h, overlap * dim),
            v("compressor positions", ratio * overlap * dim),
            v("compressor norm", dim),
        ]
    };
    if let Some(ratio) = a.ratio {
        all.extend(compressor(a.dim, ratio, overlap(a)));
        if let Some(Indexer { heads, dim, .. }) = a.indexer {
            all.extend(compressor(dim, ratio, overlap(a)));
            all.push(w("index query", a.q_rank, heads * dim));
            all.push(w("index weights", h, heads));
        }
    }
    all
}

fn linear_tensors(h: u64, a: &Linear) -> Vec<Tensor> {
    let m = |name, d_in, d_out| matrix(name, Part::Mixer, d_in, d_out);
    let v = |name, width| vector(name, Part::Mixer, width);
    match *a {
        Linear::GatedDelta { k_heads, v_heads, k_dim, v_dim, conv } => {
            let (k, value) = (k_heads * k_dim, v_heads * v_dim);
            vec![
                m("query, key, value and gate", h, 2 * k + 2 * value),
                m("beta and decay", h, 2 * v_heads),
                v("convolution", (2 * k + value) * conv),
                v("decay", 2 * v_heads),
                v("norm", v_dim),
                m("output", value, h),
            ]
        }
        Linear::Kda { heads, dim, conv, full_gate } => {
            let p = heads * dim;
            let mut all = vec![
                m("query, key and value", h, 3 * p),
                v("convolution", 3 * p * conv),
                m("decay down", h, dim),
                m("decay up", dim, p),
                m("beta", h, heads),
                v("decay", heads + p),
                v("norm", dim),
                m("output", p, h),
            ];
            if full_gate {
                all.push(m("output gate", h, p));
            } else {
                all.extend([m("gate down", h, dim), m("gate up", dim, p)]);
            }
            all
        }
        Linear::Mamba1 { inner, state, conv, dt_rank, inner_norms, conv_bias, proj_bias } => {
            let mut all = vec![
                m("input", h, 2 * inner),
                v("convolution", inner * conv + if conv_bias { inner } else { 0 }),
                m("step, B and C", inner, dt_rank + 2 * state),
                m("step up", dt_rank, inner),
                v("step bias", inner),
                v("decay", inner * state),
                v("skip", inner),
                m("output", inner, h),
            ];
            if inner_norms {
                all.push(v("inner norms", dt_rank + 2 * state));
            }
            if proj_bias {
                all.push(v("projection bias", 2 * inner + h));
            }
            all
        }
        Linear::Mamba2 { heads, dim, groups, state, conv, conv_bias, proj_bias } => {
            let inner = heads * dim;
            let channels = inner + 2 * groups * state;
            let mut all = vec![
                m("input", h, inner + channels + heads),
                v("convolution", channels * conv + if conv_bias { channels } else { 0 }),
                v("decay, skip and step bias", 3 * heads),
                v("norm", inner),
                m("output", inner, h),
            ];
            if proj_bias {
                all.push(v("projection bias", inner + channels + heads + h));
            }
            all
        }
        Linear::Lightning { heads, dim } => {
            let p = heads * dim;
            vec![m("query, key and value", h, 3 * p), m("output gate", h, p), v("norm", p), m("output", p, h)]
        }
    }
}

/// `copies` equal networks of which a token uses `used`.
fn mlp_tensors(h: u64, mlp: Mlp, part: Part, copies: u64, used: f64) -> Vec<Tensor> {
    let up = mlp.width * if mlp.gated { 2 } else { 1 };
    let cut = if part == Part::Routed { Cut::Experts } else { Cut::Tensor };
    let t = |tensor: Tensor| Tensor { cut, copies, used, ..tensor };
    let mut all = vec![t(matrix("up", part, h, up)), t(matrix("down", part, mlp.width, h))];
    if mlp.bias {
        all.push(t(vector("bias", part, up + h)));
    }
    all
}

/// Routed experts a token really runs: zero-computation experts take their share of the choices.
pub fn experts_run(moe: &Moe) -> f64 {
    moe.top_k as f64 * moe.experts as f64 / (moe.experts + moe.zero_experts) as f64
}

fn moe_tensors(h: u64, moe: &Moe) -> Vec<Tensor> {
    let outputs = moe.experts + moe.zero_experts;
    let mut all = vec![
        whole("router", Part::Router, h, outputs),
        vector("router vectors", Part::Router, moe.router_vectors * outputs),
    ];
    let inner = moe.latent.map_or(h, |latent| latent.width);
    all.extend(mlp_tensors(inner, moe.expert, Part::Routed, moe.experts, experts_run(moe)));
    if let Some(latent) = moe.latent {
        all.push(whole("latent down", Part::Shared, h, latent.width));
        all.push(whole("latent up", Part::Shared, latent.width, h));
        if latent.norm {
            all.push(vector("latent norm", Part::Shared, latent.width));
        }
    }
    if let Some(shared) = moe.shared {
        all.extend(mlp_tensors(h, shared, Part::Shared, 1, 1.0));
    }
    if moe.shared_gate {
        all.push(whole("shared gate", Part::Shared, h, 1));
    }
    all
}
