//! Which models are known, what one is made of, and how several compare.

use crate::desk::prelude::*;
use rackmath_spec::model::{Counts, Ffn, Formats, KvSource, Linear, Mixer, Shape, Span};
use rackmath_spec::{Kind, Model};
use rackmath_theory::count::{self, Count, Part};
use rackmath_theory::kv;

/// Which models to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Names; all of the catalogue when empty.
    #[schemars(extend("x-position" = 1, "x-file" = "model"))]
    pub names: Vec<String>,
    /// Context the cache is shown at.
    #[schemars(extend("x-flag" = "context -c isl max-model-len"))]
    #[educe(Default = 8192.0)]
    pub context: f64,
    /// Cache format; each model's 16-bit type unless given.
    #[schemars(extend("x-flag" = "kv-cache-dtype kv", "x-none" = "each model's 16-bit type"))]
    pub kv: Option<String>,
}

/// The models.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// Context the cache is shown at.
    pub context: f64,
    /// One entry each.
    pub models: Vec<Card>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Card {
    /// Its catalogue id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its Hugging Face id.
    pub hf: Option<String>,
    /// Other names it answers to.
    pub aliases: Vec<String>,
    /// Its architecture as files name it.
    pub architecture: Option<String>,
    /// Layers.
    pub layers: Option<u64>,
    /// Width of the residual stream.
    pub hidden: Option<u64>,
    /// Longest context its makers state.
    pub context_max: Option<u64>,
    /// Its attention kinds, in words.
    pub attention: Remark,
    /// Its feed-forward kinds, in words.
    pub ffn: Remark,
    /// All parameters, as a decimal integer.
    pub total_params: String,
    /// Parameters one token uses, embeddings included.
    pub active_params: f64,
    /// Parameters a step reads.
    pub read_params: f64,
    /// Parameters multiplied with each token.
    pub multiplied_params: f64,
    /// Parameters of multi-token-prediction layers, not in the total.
    pub mtp_params: String,
    /// Total over active.
    pub sparsity: f64,
    /// Formats of the checkpoint.
    pub formats: Remark,
    /// Bytes of the weights.
    pub weights_bytes: f64,
    /// Format of the cache.
    pub kv_dtype: Remark,
    /// Bytes each further token of context adds to the cache.
    pub kv_bytes_per_token: f64,
    /// Cache of one sequence at the context.
    pub kv_stored_bytes: f64,
    /// Bytes a decode step reads of it (states are read and written).
    pub kv_read_bytes: f64,
    /// Weight FLOP per token.
    pub flop_per_token: f64,
    /// Attention FLOP of one decoded token at the context.
    pub attention_flop_per_token: f64,
    /// Parameters by part.
    pub parts: Vec<PartCard>,
    /// The published count and how ours differs.
    pub published: Option<PublishedCard>,
    /// Where the shapes come from.
    pub source: Remark,
    /// Things worth knowing.
    pub notes: Vec<String>,
}

/// One part of a model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartCard {
    /// Its name.
    pub part: String,
    /// Its parameters.
    pub total_params: f64,
    /// Of which a token uses.
    pub active_params: f64,
    /// Its format.
    pub dtype: String,
}

/// A published count.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PublishedCard {
    /// The count, vision and audio towers taken off.
    pub total_params: u64,
    /// Whether it is exact or a rounded label.
    pub exact: bool,
    /// Ours over theirs, less one.
    pub difference: f64,
    /// Published parameters per token.
    pub active_params: Option<u64>,
    /// Where.
    pub source: String,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let context = crate::setting::tokens("context", request.context, 0.0)?;
    let dtype = match request.kv.as_deref() {
        None | Some("auto") => None,
        Some(name) => Some(name.parse::<Dtype>()?),
    };
    let of = |model: Arc<Model>| card(&model, &catalog.names(Kind::Models, &model.id), context, dtype);
    let names = named_or_all(&request.names, catalog.ids(Kind::Models));
    let models = names.iter().map(|name| catalog.model(name).map(of)).collect::<Result<_, Error>>()?;
    Ok(Answer { context: request.context, models })
}

fn card(model: &Model, known: &[&str], context: Tokens, dtype: Option<Dtype>) -> Card {
    let count = count::count(model);
    let shape = model.shape();
    let formats = model.formats();
    let kv_dtype = dtype.unwrap_or(model.cache_dtype());
    let cache = kv::cache(model, kv_dtype);
    Card {
        id: model.id.clone(),
        name: model.name.clone(),
        hf: model.hf.clone(),
        aliases: known.iter().filter(|a| Some(**a) != model.hf.as_deref()).map(ToString::to_string).collect(),
        architecture: shape.map(|s| s.architecture.clone()),
        layers: shape.map(Shape::n_layers),
        hidden: shape.map(|s| s.hidden),
        context_max: shape.and_then(|s| s.context_max),
        attention: shape.map_or_else(|| says("totals_only"), attention_words),
        ffn: shape.map_or_else(|| says("totals_only"), ffn_words),
        total_params: count.total().to_string(),
        active_params: count.active().get(),
        read_params: count.read().get(),
        multiplied_params: count.multiplied().get(),
        mtp_params: count.mtp.to_string(),
        sparsity: count.total() as f64 / count.active().get(),
        formats: if count.part(Part::Routed).total > 0 && formats.routed != formats.linear {
            says("formats_of_experts").with("experts", formats.routed).with("matrices", formats.linear)
        } else {
            formats.linear.to_string().into()
        },
        weights_bytes: count.stored_bytes(&formats).get(),
        kv_dtype: if shape.is_some() { kv_dtype.to_string().into() } else { says("as_given") },
        kv_bytes_per_token: cache.stored_per_token().get(),
        kv_stored_bytes: cache.stored(context).get(),
        kv_read_bytes: cache.read(context).get(),
        flop_per_token: count.flop_per_token().get(),
        attention_flop_per_token: cache.decode_flop(context).get(),
        parts: Part::ALL.into_iter().filter_map(|p| part(p, &count, formats)).collect(),
        published: published(model, &count),
        source: says("cited").with("source", &model.source).with("as_of", &model.as_of),
        notes: model.notes.clone(),
    }
}

fn part(p: Part, count: &Count, formats: Formats) -> Option<PartCard> {
    let (part, dtype, params) = (p.name().into(), p.dtype(&formats).to_string(), count.part(p));
    let card = PartCard { part, total_params: params.total as f64, active_params: params.active, dtype };
    (params.total > 0).then_some(card)
}

fn published(model: &Model, count: &Count) -> Option<PublishedCard> {
    let p = model.published.as_ref()?;
    let ours = count.total() + if p.counts == Counts::WithMtp { count.mtp } else { 0 };
    let theirs = p.total - p.towers;
    Some(PublishedCard {
        total_params: theirs,
        exact: p.exact,
        difference: ours as f64 / theirs as f64 - 1.0,
        active_params: p.active,
        source: p.source.clone(),
    })
}

/// The mixers of a model: "12 full GQA 40/8, 36 chunk 8192 GQA 40/8".
fn attention_words(shape: &Shape) -> Remark {
    tally(shape, |block| match &block.mixer {
        Mixer::None => None,
        Mixer::Attention(a) => {
            let kind = match (a.kv_heads, a.heads) {
                (k, h) if k == h => "MHA",
                (1, _) => "MQA",
                _ => "GQA",
            };
            let span = match a.span {
                Span::Full => says("full_attention"),
                Span::Window(tokens) => says("window_attention").with("tokens", tokens),
                Span::Chunk(tokens) => says("chunk_attention").with("tokens", tokens),
                Span::Blocks(i) => says("block_attention").with("top_k", i.top_k).with("block", i.block),
            };
            let heads = span.with("kind", kind).with("heads", a.heads).with("kv_heads", a.kv_heads);
            Some(heads.with("shared", a.kv == KvSource::Shared))
        }
        Mixer::Latent(a) => {
            let ranks = says("latent_attention").with("rank", a.kv_rank).with("rope", a.rope_dim);
            Some(ranks.with("top_k", a.indexer.map(|i| i.top_k)))
        }
        Mixer::Compressed(a) => Some(match a.ratio {
            None => says("only_window").with("tokens", a.window),
            Some(ratio) => says("compressed").with("ratio", ratio).with("top_k", a.indexer.map(|i| i.top_k)),
        }),
        Mixer::Linear(Linear::GatedDelta { .. }) => Some("gated delta net".into()),
        Mixer::Linear(Linear::Kda { .. }) => Some("Kimi delta attention".into()),
        Mixer::Linear(Linear::Mamba1 { .. }) => Some("Mamba".into()),
        Mixer::Linear(Linear::Mamba2 { .. }) => Some("Mamba-2".into()),
        Mixer::Linear(Linear::Lightning { .. }) => Some("lightning attention".into()),
    })
}

fn ffn_words(shape: &Shape) -> Remark {
    tally(shape, |block| match &block.ffn {
        Ffn::None => None,
        Ffn::Dense(mlp) => Some(says("dense_ffn").with("width", mlp.width)),
        Ffn::Moe(moe) => {
            let chosen = says("moe_ffn").with("top_k", moe.top_k).with("experts", moe.experts);
            Some(chosen.with("shared", moe.shared.is_some()))
        }
    })
}

/// Counts layers by a description, in order of first appearance.
fn tally(shape: &Shape, describe: impl Fn(&rackmath_spec::model::Block) -> Option<Remark>) -> Remark {
    let mut counts: Vec<(Remark, u64)> = Vec::new();
    for run in &shape.runs {
        if let Some(kind) = describe(&run.block) {
            match counts.iter_mut().find(|(k, _)| *k == kind) {
                Some((_, n)) => *n += run.n,
                None => counts.push((kind, run.n)),
            }
        }
    }
    let of = |(kind, n): (Remark, u64)| says("layers_of").with("layers", n).with("kind", kind);
    let kinds: Vec<Remark> = counts.into_iter().map(of).collect();
    if kinds.is_empty() { says("no_layers") } else { says("layers_by_kind").with("kinds", kinds) }
}
