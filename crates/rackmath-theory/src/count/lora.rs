//! Low-rank pairs beside the matrices of a block: which matrices get one, and how large it is.
//!
//! $$ W' = W + B A \qquad A: r \times i,\; B: o \times r \qquad N = \sum_t n_t\, r\,(i_t + o_t) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | r | rank | 1 | rank of an adapter |
//! | i, o | d_in, d_out | 1 | sides of the matrix it stands beside; gate and up of a gated network are two |
//! | n | copies | 1 | experts, each with a pair of its own |
//!
//! Routers, embeddings and heads get none. Source: Hu 2021 (arXiv 2106.09685); the matrices of a block are those of
//! [`super::block_tensors`].

use super::{Cut, Part, Tensor, Use, block_tensors};
use rackmath_spec::model::{Block, Ffn, Shape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

/// Beside which matrices adapters stand.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Display,
    VariantArray,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Targets {
    /// Every matrix of attention and of the networks, experts too.
    #[default]
    #[serde(alias = "all-linear")]
    All,
    /// Attention's alone.
    #[serde(alias = "attn")]
    Attention,
    /// Queries and values alone, as the paper did.
    #[serde(alias = "q_proj,v_proj")]
    Qv,
    /// The networks' alone.
    #[serde(alias = "ffn")]
    Mlp,
}

/// One matrix with adapters beside it, or several that share their input and run as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub part: Part,
    pub cut: Cut,
    /// Whether tensor parallelism cuts what comes in rather than what goes out.
    pub by_rows: bool,
    pub d_in: f64,
    /// Of all slices together.
    pub d_out: f64,
    /// Matrices that were joined, each with a pair of its own.
    pub slices: f64,
    pub copies: f64,
    /// Copies that a token uses.
    pub used: f64,
}

impl Pair {
    pub fn params(&self, rank: f64) -> f64 {
        self.copies * rank * (self.slices * self.d_in + self.d_out)
    }

    /// Parameters on a chip when the matrix is cut into so many; with both factors cut, or one of them as most engines do.
    pub fn params_cut(&self, rank: f64, shards: f64, both: bool) -> f64 {
        let (down, up) = (rank * self.slices * self.d_in, rank * self.d_out);
        self.copies
            * match self.by_rows {
                _ if both => (down + up) / shards,
                true => down / shards + up,
                false => down + up / shards,
            }
    }
}

/// The pairs of a block.
pub fn pairs(shape: &Shape, block: &Block, targets: Targets) -> Vec<Pair> {
    let gated = |part: Part| match (&block.ffn, part) {
        (Ffn::Dense(mlp), Part::Dense) => mlp.gated,
        (Ffn::Moe(moe), Part::Routed) => moe.expert.gated,
        (Ffn::Moe(moe), Part::Shared) => moe.shared.is_some_and(|mlp| mlp.gated),
        _ => false,
    };
    let mut all: Vec<Pair> = Vec::new();
    for t in block_tensors(shape, block).iter().filter(|t| t.usage == Use::Matrix && wanted(t, targets)) {
        let by_rows = matches!(t.name, "output" | "output up" | "down");
        let (d_in, d_out) = (t.d_in as f64, t.d_out as f64);
        let slices = if t.name == "up" && gated(t.part) { 2.0 } else { 1.0 };
        // Projections of the same input run as one; keys may be cut less than queries.
        let joined = |p: &&mut Pair| p.part == t.part && !p.by_rows && p.d_in == d_in && t.part == Part::Mixer;
        match all.iter_mut().find(joined).filter(|_| !by_rows) {
            Some(pair) => {
                pair.d_out += d_out;
                pair.slices += slices;
            }
            None => all.push(Pair {
                part: t.part,
                cut: t.cut,
                by_rows,
                d_in,
                d_out,
                slices,
                copies: t.copies as f64,
                used: t.used,
            }),
        }
    }
    all
}

fn wanted(t: &Tensor, targets: Targets) -> bool {
    let network = matches!(t.part, Part::Dense | Part::Shared | Part::Routed);
    match targets {
        Targets::All => t.part == Part::Mixer || network,
        Targets::Attention => t.part == Part::Mixer,
        Targets::Qv => t.part == Part::Mixer && matches!(t.name, "query" | "value"),
        Targets::Mlp => network,
    }
}

/// Parameters of one adapter of a rank, all layers together.
pub fn params(shape: &Shape, targets: Targets, rank: f64) -> f64 {
    let of = |block: &Block| pairs(shape, block, targets).iter().map(|p| p.params(rank)).sum::<f64>();
    shape.runs.iter().map(|run| run.n as f64 * of(&run.block)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_have_as_many_parameters_as_peft_prints() {
        let catalog = rackmath_catalog::embedded();
        let of = |model: &str, targets, rank| params(catalog.model(model).unwrap().shape().unwrap(), targets, rank);
        // Rank 8 on queries and values of Llama 7B: 4,194,304 (github.com/tloen/alpaca-lora, its README and issues).
        assert_eq!(of("llama-7b", Targets::Qv, 8.0), 4_194_304.0);
        // By hand, rank 16 on all of Llama 3.1 8B: 32 layers of 16 x (8,192 + 2 x 5,120 + 8,192 + 3 x 18,432).
        assert_eq!(of("llama-3.1-8b", Targets::All, 16.0), 32.0 * 16.0 * (8192.0 + 10_240.0 + 8192.0 + 55_296.0));
        assert_eq!(of("llama-3.1-8b", Targets::All, 0.0), 0.0);
        let [all, attention, mlp] =
            [Targets::All, Targets::Attention, Targets::Mlp].map(|t| of("mixtral-8x7b", t, 16.0));
        assert_eq!(all, attention + mlp);
        // Eight experts of three matrices each: 32 x 8 x 3 x 16 x (4,096 + 14,336).
        assert_eq!(mlp, 32.0 * 8.0 * 3.0 * 16.0 * 18_432.0);
    }
}
