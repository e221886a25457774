//! Encoders of pictures and sound: what a request's pictures take on the chips, and what their towers hold in memory.
//!
//! $$ t_{enc} = T_{tower}(n, S) + \sum_j t_g\Big(\frac{n S}{m_j}, o_j, i_j\Big) \qquad
//!    t_{pass} = T(m, s) + \frac{s}{I}\,t_{enc} \qquad \text{copied: } n \to \lceil n / p \rceil,\ T_{tower} \text{ on one chip} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | n, S | sequences, patches | 1 | pictures or tiles of one request; patches of each |
//! | T_tower | [`Pass`] | s | a pass through the tower's layers, operator by operator, every patch seeing every other of its window |
//! | t_g, i, o, m | product | s, 1 | products outside the layers: their sides, and patches that become one row |
//! | s, I | prompt tokens, prompt | 1 | prompt tokens of a pass, tokens of a prompt with its pictures |
//! | p | tp | 1 | chips that share a tower, or each keep a copy and take other pictures |
//!
//! A tower runs in the pass that carries the prompt, before the model, so that whoever decodes waits for it. Where a prompt is
//! cut its pictures are taken to lie evenly in it; what a prefix cache finds is not encoded again. Weights and arithmetic of
//! a tower are of 16 bits, whatever the model's are.
//! Ignores: that pictures of several prompts in one pass are encoded together, heads that kernels pad (72 and 80 wide),
//! resizing and decoding of files on the host. Source: ours; vLLM, multi-modal inputs and `--mm-encoder-tp-mode`.
//! Held against: ten passes of a plain PyTorch encoder on an H200 (`tests/data/encoders_h200.csv`), which took 0.3 (few
//! patches: an engine's launches are taken as long as those of the model's layers) to 1.7 times as long as said here; and one
//! published table, <https://www.lmsys.org/blog/2026-01-12-epd> (Qwen2.5-VL 72B on H20, SGLang, four pictures of a size not
//! stated): 492, 466 and 524 ms at tensor parallelism 2, 4 and 8, where this page has 312, 179 and 108 ms for 1080p. There
//! cutting a tower further did not make it faster, so that times with towers cut widely are too short here.

use super::products::{Matrix, Multiplier};
use super::{Cost, KernelSet, Part, Pass, Work};
use crate::count::towers::{Seen, tower, towers_bytes};
use crate::deployment::{Deployment, Untimed};
use rackmath_spec::layout::{Degrees, Layout};
use rackmath_spec::model::{Body, Formats};
use rackmath_spec::tower::{Sense, Tower};
use rackmath_spec::{Dtype, Model};
use rackmath_units::{Bytes, Seconds};
use std::sync::Arc;

/// What each request brings to be encoded, and who encodes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Senses {
    pub seen: Vec<(Sense, Seen)>,
    /// Tokens of a prompt, those of its pictures and sound among them.
    pub prompt: f64,
    pub spread: Spread,
    /// Chips that only encode, where towers are apart; what balances unless given.
    pub chips: Option<f64>,
}

/// How towers lie on the chips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Cut like the model.
    #[default]
    Cut,
    /// A copy on each chip, which take different pictures.
    Copied,
    /// On chips of their own.
    Apart,
}

impl Senses {
    /// Tokens of a prompt that are pictures or sound.
    pub fn tokens(&self) -> f64 {
        self.seen.iter().map(|(_, seen)| seen.tokens as f64).sum()
    }
}

/// Encoding what one request brings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoded {
    pub cost: Cost,
    /// What the towers hand to the model.
    pub bytes: Bytes,
}

impl Encoded {
    pub fn time(&self) -> Seconds {
        self.cost.time()
    }
}

impl Deployment {
    /// Weights on every chip beside the model's: what was put there, adapters, towers, and what they keep of pictures.
    pub fn beside(&self) -> Bytes {
        let put = self.side + self.slots();
        let Some(shape) = self.model.shape().filter(|shape| !shape.towers.is_empty()) else { return put };
        let senses = self.senses.as_deref();
        let weights = match senses.map_or(Spread::Cut, |s| s.spread) {
            Spread::Cut => towers_bytes(shape) / self.layout.degrees().tp as f64,
            Spread::Copied => towers_bytes(shape),
            Spread::Apart => Bytes::ZERO,
        };
        // As many encoded tokens as a pass takes are kept, and no fewer than one request has.
        let kept = senses.map_or(0.0, |s| s.tokens().max(self.engine.schedule.chunk.min(1e6)));
        put + weights + Bytes::b(kept * shape.hidden as f64 * WIDE)
    }
}

/// Bytes of an encoded value.
const WIDE: f64 = 2.0;

/// What encoding takes for each token of a prompt; nothing where prompts are text, or encoded elsewhere.
pub(super) fn per_token(d: &Deployment, kernels: &KernelSet) -> Result<Option<Cost>, Untimed> {
    let Some(senses) = d.senses.as_deref().filter(|s| s.spread != Spread::Apart && s.tokens() > 0.0) else {
        return Ok(None);
    };
    let mut each = Cost::default();
    each.plus(&encoding(d, kernels)?.cost, 1.0 / senses.prompt.max(1.0));
    Ok(Some(each))
}

/// What one request brings, encoded by the chips of a deployment; on one chip where towers have chips of their own.
pub fn encoding(d: &Deployment, kernels: &KernelSet) -> Result<Encoded, Untimed> {
    let shape = d.model.shape().ok_or(Untimed::NoLayers)?;
    let (mut cost, mut tokens) = (Cost::default(), 0.0);
    let senses = d.senses.as_deref();
    for (sense, seen) in senses.into_iter().flat_map(|s| &s.seen) {
        if let Some(tower) = tower(shape, *sense) {
            cost.plus(&one_tower(d, kernels, tower, *seen)?, 1.0);
            tokens += seen.tokens as f64;
        }
    }
    Ok(Encoded { cost, bytes: Bytes::b(tokens * shape.hidden as f64 * WIDE) })
}

fn one_tower(d: &Deployment, kernels: &KernelSet, tower: &Tower, seen: Seen) -> Result<Cost, Untimed> {
    let spread = d.senses.as_deref().map_or(Spread::Cut, |s| s.spread);
    let tp = d.layout.degrees().tp;
    let (shards, sequences) = match spread {
        Spread::Cut => (tp, seen.sequences),
        Spread::Copied => (1, seen.sequences.div_ceil(tp)),
        Spread::Apart => (1, seen.sequences),
    };
    let layout = Layout::new(Degrees { tp: shards, etp: shards, ..Degrees::default() }).unwrap_or(Layout::single());
    let formats = Formats::uniform(Dtype::Bf16);
    let model = Model {
        id: "tower".into(),
        name: d.model.name.clone(),
        hf: None,
        body: Body::Layers(Box::new(tower.layers.clone())),
        published: None,
        source: d.model.source.clone(),
        as_of: d.model.as_of.clone(),
        notes: Vec::new(),
        stored: None,
    };
    let on = Deployment { model: Arc::new(model), formats, kv: Dtype::Bf16, layout, senses: None, ..d.clone() };
    let pass = Pass::prepare(&on, kernels, false, None)?;
    let mut cost = pass.cost(&Work::prefill(sequences as f64, seen.patches as f64, 0.0));
    let multiplier = Multiplier::of(&on, &kernels.gemm, Dtype::Bf16).ok_or(Untimed::NoPeak)?;
    let (patches, stretch) = ((sequences * seen.patches) as f64, on.overhead().stretch_long);
    for product in &tower.products {
        let columns = (product.d_out as f64 / shards as f64).max(1.0);
        let matrix = Matrix { columns, depth: product.d_in as f64, dtype: Dtype::Bf16 };
        let rows = (patches / product.patches.max(1) as f64).max(1.0);
        multiplier.add(rows, &matrix, Part::Products, 1.0, stretch, &mut cost);
    }
    Ok(cost.all_in(Part::Encoder))
}
