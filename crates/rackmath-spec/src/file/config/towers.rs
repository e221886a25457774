//! Towers of a `config.json`: `vision_config` and `audio_config`, by the family of the model around them.
//!
//! A field that a file leaves out has the default of that family's configuration class, as published files rely on it. What
//! stands in a `preprocessor_config.json` may be given as `processor`; without it the limits are those the makers ship.
//! Source: the tensors of each family's reference implementation in `transformers`; every tower of the catalogue is checked
//! against a published count.

use super::fields::{Fields, most};
use super::parts::{block, gated, plain};
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Mixer, Mlp, Norm, QkNorm, Run, Shape, Side, SideUse, Span};
use crate::tower::{Product, Rule, Sense, Tower, Window};
use serde_json::{Map, Value};

type Read = Result<Tower, SpecError>;

/// The towers of a model whose text part is known, and how many of them are of a kind that is not read.
pub(super) fn towers(
    file: &str,
    outer: &Map<String, Value>,
    text: &Shape,
    notes: &mut Vec<String>,
) -> Result<(Vec<Tower>, usize), SpecError> {
    let root = Fields::new(file, outer);
    let family = root.text_of("model_type")?.unwrap_or("");
    let (mut all, known) = (Vec::new(), notes.len());
    if let Some(v) = root.part("vision_config", "vision_config.")?.filter(|v| !v.is_empty()) {
        let inner = v.text_of("model_type")?.unwrap_or("");
        let read = match family {
            "qwen2_vl" => Some(qwen2(&root, &v, text)),
            "qwen2_5_vl" | "qwen2_5_omni" | "qwen2_5_omni_thinker" => Some(qwen25(&root, &v, text)),
            "qwen3_vl" | "qwen3_vl_moe" | "qwen3_5" | "qwen3_5_moe" | "qwen3_omni_moe" | "qwen3_omni_moe_thinker" => {
                Some(qwen3(&root, &v, text))
            }
            "glm4v" | "glm4v_moe" => Some(glm4v(&root, &v, text)),
            "gemma3" => Some(gemma3(&root, &v, text)),
            "gemma4" | "gemma4_unified" => Some(gemma4(&root, &v, text)),
            "mistral3" => Some(pixtral(&root, &v, text, true)),
            "llava" if inner == "pixtral" => Some(pixtral(&root, &v, text, false)),
            "llava" | "llava_next" | "llava_onevision" => Some(llava(&root, &v, text, family)),
            "llama4" => Some(llama4(&v, text)),
            "mllama" => Some(mllama(&v, text)),
            "kimi_k25" | "kimi_vl" => Some(kimi(&root, &v, text)),
            "internvl_chat" => Some(internvl(&root, &v, text)),
            _ => None,
        };
        match read {
            Some(tower) => all.push(tower?),
            None => notes.push("its tower for pictures is of a kind that is not read and counts nothing here".into()),
        }
    }
    if let Some(a) = root.part("audio_config", "audio_config.")?.filter(|a| !a.is_empty()) {
        match family {
            "qwen2_audio" => all.push(whisper(&a, text, Hears::Qwen)?),
            "voxtral" => all.push(whisper(&a, text, Hears::Voxtral)?),
            _ => notes.push("its tower for sound is of a kind that is not read and counts nothing here".into()),
        }
    }
    Ok((all, notes.len() - known))
}

/// The usual block of a vision transformer: every patch sees every other.
struct Vit {
    hidden: u64,
    heads: u64,
    mlp: Mlp,
    /// On all four projections of attention.
    bias: bool,
    norm: Norm,
}

impl Vit {
    /// Two-matrix networks, biases, layer norms.
    fn usual(hidden: u64, heads: u64, width: u64) -> Self {
        Self { hidden, heads, mlp: plain(width, true), bias: true, norm: Norm::Layer }
    }

    fn block(&self, f: &Fields, span: Span) -> Result<Block, SpecError> {
        if self.heads == 0 || !self.hidden.is_multiple_of(self.heads) {
            return Err(f.refuse("num_attention_heads", self.heads, format!("a divisor of the width {}", self.hidden)));
        }
        let bias = Bias { qkv: self.bias, out: self.bias };
        let full = Attention::full(self.heads, self.heads, self.hidden / self.heads);
        Ok(block(Mixer::Attention(Attention { bias, span, both_ways: true, ..full }), Ffn::Dense(self.mlp)))
    }

    fn shape(&self, runs: Vec<Run>) -> Shape {
        let (hidden, norm) = (self.hidden, self.norm);
        Shape { architecture: "tower".into(), hidden, norm, runs, headless: true, ..Shape::default() }
    }

    fn alike(&self, f: &Fields, n: u64) -> Result<Shape, SpecError> {
        Ok(self.shape(vec![Run { n, block: self.block(f, Span::Full)? }]))
    }
}

/// `hidden_size`, `num_attention_heads` and `intermediate_size` with a family's defaults.
fn widths(v: &Fields, defaults: [u64; 3]) -> Result<[u64; 3], SpecError> {
    Ok([
        v.count_or("hidden_size", most::DIM, defaults[0])?,
        v.count_or("num_attention_heads", most::HEADS, defaults[1])?,
        v.count_or("intermediate_size", most::DIM, defaults[2])?,
    ])
}

/// The first of two spellings that is there, or a family's default.
fn either(f: &Fields, names: [&str; 2], most: u64, or: u64) -> Result<u64, SpecError> {
    Ok(f.opt_count(names[0], most)?.or(f.opt_count(names[1], most)?).unwrap_or(or))
}

/// Patches of a square picture, side by side.
fn grid(v: &Fields, image: u64, patch: u64) -> Result<(u64, u64), SpecError> {
    let patch = v.count_or("patch_size", SIDE, patch)?;
    let image = v.count_or("image_size", SIDE, image)?;
    if image < patch {
        return Err(v.refuse("image_size", image, format!("at least one patch of {patch}")));
    }
    Ok((image / patch, patch))
}

/// Most pixels along anything, patches along anything, and channels.
const SIDE: u64 = 100_000;
const AREA: u64 = 10_000_000_000;
/// Red, green and blue.
const COLOURS: u64 = 3;
/// Frames that a patch of Qwen's spans; a picture is taken twice.
const PAIR: u64 = 2;

/// Limits on pixels as `processor` gives them, or as shipped.
fn limits(root: &Fields, shipped: (u64, u64)) -> Result<(u64, u64), SpecError> {
    let Some(p) = root.part("processor", "processor.")? else { return Ok(shipped) };
    let size = p.object("size")?;
    let of = |key: &str, edge: &str, or: u64| match &size {
        Some(size) => size.count_or(edge, AREA, or),
        None => p.count_or(key, AREA, or),
    };
    let (least, most) = (of("min_pixels", "shortest_edge", shipped.0)?, of("max_pixels", "longest_edge", shipped.1)?);
    if least > most {
        return Err(p.refuse("min_pixels", least, format!("at most the {most} of max_pixels")));
    }
    Ok((least, most))
}

/// Patches of several frames, a merger of two products, and pictures rounded to whole tokens.
fn qwen(root: &Fields, v: &Fields, patch: u64, shipped: (u64, u64)) -> Result<(u64, u64, Rule), SpecError> {
    let patch = v.count_or("patch_size", SIDE, patch)?;
    let merge = v.count_or("spatial_merge_size", 64, 2)?;
    let pair = v.count_or("temporal_patch_size", 64, PAIR)?;
    let (least, most) = limits(root, shipped)?;
    let rule = Rule::Rounded { patch, merge, least, most, frames: 1, pair };
    Ok((COLOURS * pair * patch * patch, merge * merge, rule))
}

/// Four patches joined to one row, through a network to the width of the model.
fn merger(wide: u64, out: u64, patches: u64) -> [Product; 2] {
    [Product::biased(wide, wide, patches), Product::biased(wide, out, patches)]
}

/// Qwen2-VL; limits as in its `preprocessor_config.json`: 4 to 16,384 tokens.
fn qwen2(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let hidden = v.count_or("embed_dim", most::DIM, 1280)?;
    let ratio = v.count_or("mlp_ratio", 1000, 4)?;
    let vit = Vit::usual(hidden, v.count_or("num_heads", most::HEADS, 16)?, ratio * hidden);
    let layers = vit.alike(v, v.count_or("depth", most::LAYERS, 32)?)?;
    let (pixels, joined, rule) = qwen(root, v, 14, (3136, 12_845_056))?;
    let mut products = vec![Product::plain(pixels, hidden, 1)];
    products.extend(merger(joined * hidden, v.count_or("hidden_size", most::DIM, text.hidden)?, joined));
    Ok(Tower { sense: Sense::Sight, layers, products, vectors: 2 * hidden, rule })
}

/// Qwen2.5-VL: windows of 112 pixels in all layers but a few, gated networks, weight-only norms.
fn qwen25(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let hidden = v.count_or("hidden_size", most::DIM, 1280)?;
    let (n, heads) = (v.count_or("depth", most::LAYERS, 32)?, v.count_or("num_heads", most::HEADS, 16)?);
    let mlp = Mlp { bias: true, ..gated(v.count_or("intermediate_size", most::DIM, 3420)?) };
    let vit = Vit { mlp, norm: Norm::Rms, ..Vit::usual(hidden, heads, 1) };
    let (pixels, joined, rule) = qwen(root, v, 14, (3136, 12_845_056))?;
    let patch = v.count_or("patch_size", SIDE, 14)?;
    let side = (v.count_or("window_size", SIDE, 112)? / patch).max(1);
    let full = v.layer_set("fullatt_block_indexes")?;
    let mut runs = Vec::new();
    for i in 0..n {
        let span = if full.contains(&i) { Span::Full } else { Span::Chunk(side * side) };
        Shape::push(&mut runs, vit.block(v, span)?);
    }
    let mut products = vec![Product::plain(pixels, hidden, 1)];
    products.extend(merger(joined * hidden, v.count_or("out_hidden_size", most::DIM, text.hidden)?, joined));
    Ok(Tower { sense: Sense::Sight, layers: vit.shape(runs), products, vectors: hidden, rule })
}

/// Qwen3-VL and Qwen3.5: a position table, mergers at several depths; 64 to 16,384 tokens.
fn qwen3(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let hidden = v.count_or("hidden_size", most::DIM, 1152)?;
    let heads = v.count_or("num_heads", most::HEADS, 16)?;
    let vit = Vit::usual(hidden, heads, v.count_or("intermediate_size", most::DIM, 4304)?);
    let positions = v.count_or("num_position_embeddings", most::VOCAB, 2304)?;
    let layers = Shape { positions, ..vit.alike(v, v.count_or("depth", most::LAYERS, 27)?)? };
    let (pixels, joined, rule) = qwen(root, v, 16, (65_536, 16_777_216))?;
    let out = v.count_or("out_hidden_size", most::DIM, text.hidden)?;
    let deep = v.layer_set("deepstack_visual_indexes")?.len() as u64;
    let mut products = vec![Product::biased(pixels, hidden, 1)];
    (0..=deep).for_each(|_| products.extend(merger(joined * hidden, out, joined)));
    // The last merger norms patches, those in between four joined ones.
    let vectors = 2 * hidden + deep * 2 * joined * hidden;
    Ok(Tower { sense: Sense::Sight, layers, products, vectors, rule })
}

/// GLM-4.1V, 4.5V and 4.6V: gated networks without biases, a position table, four patches convolved into one, then a product
/// and a gated network as wide as `intermediate_size`; 112 x 112 pixels and up to 15,000 tokens of two frames.
fn glm4v(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let hidden = v.count_or("hidden_size", most::DIM, 1536)?;
    let out = v.count_or("out_hidden_size", most::DIM, text.hidden)?;
    let wide = v.count_or("intermediate_size", most::DIM, 13_696)?;
    let heads = v.count_or("num_heads", most::HEADS, 12)?;
    // The layers' own networks are as wide as what leaves the tower.
    let vit = Vit { hidden, heads, mlp: gated(out), bias: v.flag("attention_bias", false)?, norm: Norm::Rms };
    let (side, _) = grid(v, 336, 14)?;
    let layers = Shape { positions: side * side, ..vit.alike(v, v.count_or("depth", most::LAYERS, 24)?)? };
    let (pixels, joined, rule) = qwen(root, v, 14, (12_544, 11_760_000))?;
    let rule = match rule {
        Rule::Rounded { patch, merge, least, most, pair, .. } => {
            Rule::Rounded { patch, merge, least, most, frames: pair, pair }
        }
        other => other,
    };
    let products = vec![
        Product::biased(pixels, hidden, 1),
        Product::biased(joined * hidden, out, joined),
        Product::plain(out, out, joined),
        Product::plain(out, wide, joined),
        Product::plain(out, wide, joined),
        Product::plain(wide, out, joined),
    ];
    // Norms before and behind the layers, and a layer norm in the merger.
    Ok(Tower { sense: Sense::Sight, layers, products, vectors: 2 * hidden + 2 * out, rule })
}

/// SigLIP with its position table and last norm.
fn siglip(v: &Fields, image: u64, patch: u64) -> Result<(Shape, Product, u64), SpecError> {
    let [hidden, heads, width] = widths(v, [1152, 16, 4304])?;
    let (side, patch) = grid(v, image, patch)?;
    let layers = Vit::usual(hidden, heads, width).alike(v, v.count_or("num_hidden_layers", most::LAYERS, 27)?)?;
    let layers = Shape { positions: side * side, outer_norms: 1, ..layers };
    Ok((layers, Product::biased(COLOURS * patch * patch, hidden, 1), side))
}

/// Gemma 3: one size, averaged down to 256 tokens.
fn gemma3(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let (layers, entry, side) = siglip(v, 896, 14)?;
    let (patches, tokens) = (side * side, root.count_or("mm_tokens_per_image", most::TOKENS, 256)?);
    let out = Product::plain(layers.hidden, text.hidden, (patches / tokens).max(1));
    let (vectors, rule) = (layers.hidden, Rule::Fixed { patches, tokens });
    Ok(Tower { sense: Sense::Sight, layers, products: vec![entry, out], vectors, rule })
}

/// Gemma 4: gated networks, four norms, two tables of positions, three by three patches to a token.
fn gemma4(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let [hidden, heads, width] = widths(v, [768, 12, 3072])?;
    let dim = v.count_or("head_dim", most::HEADS, 64)?;
    let full = Attention::full(heads, v.count_or("num_key_value_heads", most::HEADS, heads)?, dim);
    let attention = Attention { qk_norm: QkNorm::PerHead, both_ways: true, ..full };
    let block = Block { norms: 4, ..block(Mixer::Attention(attention), Ffn::Dense(gated(width))) };
    let (patch, pool) = (v.count_or("patch_size", SIDE, 16)?, v.count_or("pooling_kernel_size", 64, 3)?);
    // Rows and columns have positions of their own.
    let positions = 2 * v.count_or("position_embedding_size", most::VOCAB, 10_240)?;
    let n = v.count_or("num_hidden_layers", most::LAYERS, 16)?;
    let layers = Shape {
        architecture: "tower".into(),
        hidden,
        positions,
        headless: true,
        runs: vec![Run { n, block }],
        ..Shape::default()
    };
    let tokens = root.part("processor", "processor.")?.map_or(Ok(None), |p| p.opt_count("max_soft_tokens", 1 << 20))?;
    let tokens = tokens.map_or_else(|| root.count_or("vision_soft_tokens_per_image", 1 << 20, 280), Ok)?;
    let products =
        vec![Product::plain(COLOURS * patch * patch, hidden, 1), Product::plain(hidden, text.hidden, pool * pool)];
    let vectors = if v.flag("standardize", true)? { 2 * hidden } else { 0 };
    Ok(Tower { sense: Sense::Sight, layers, products, vectors, rule: Rule::Filled { patch, pool, tokens } })
}

/// Pixtral: gated networks without biases, rows ended by a token; four patches merged where Mistral merges.
fn pixtral(root: &Fields, v: &Fields, text: &Shape, merges: bool) -> Read {
    let [hidden, heads, width] = widths(v, [1024, 16, 4096])?;
    let (_, patch) = grid(v, 1024, 16)?;
    let vit = Vit { hidden, heads, mlp: gated(width), bias: false, norm: Norm::Rms };
    let layers = Shape { outer_norms: 1, ..vit.alike(v, v.count_or("num_hidden_layers", most::LAYERS, 24)?)? };
    let mut products = vec![Product::plain(COLOURS * patch * patch, hidden, 1)];
    let merge = if merges { root.count_or("spatial_merge_size", 64, 2)? } else { 1 };
    let (joined, bias) = (merge * merge, root.flag("multimodal_projector_bias", !merges)?);
    let product = |d_in, d_out| Product { bias, ..Product::plain(d_in, d_out, joined) };
    if merges {
        products.push(Product::plain(joined * hidden, hidden, joined));
    }
    products.extend([product(hidden, text.hidden), product(text.hidden, text.hidden)]);
    let longest = v.count_or("image_size", SIDE, 1024)?;
    let vectors = if merges { hidden } else { 0 };
    Ok(Tower { sense: Sense::Sight, layers, products, vectors, rule: Rule::Rows { patch, merge, longest } })
}

/// LLaVA 1.5, LLaVA-NeXT (CLIP) and LLaVA-OneVision (SigLIP).
fn llava(root: &Fields, v: &Fields, text: &Shape, family: &str) -> Read {
    let one = family == "llava_onevision";
    let (layers, entry, side, vectors) = if one {
        let (layers, entry, side) = siglip(v, 384, 14)?;
        (layers, entry, side, 0)
    } else {
        let [hidden, heads, width] = widths(v, [1024, 16, 4096])?;
        let (side, patch) = grid(v, 336, 14)?;
        let layers = Vit::usual(hidden, heads, width).alike(v, v.count_or("num_hidden_layers", most::LAYERS, 24)?)?;
        // A class token with a position, and norms before and behind the layers.
        let layers = Shape { positions: side * side + 1, outer_norms: 2, ..layers };
        (layers, Product::plain(COLOURS * patch * patch, hidden, 1), side, hidden)
    };
    let products =
        vec![entry, Product::biased(layers.hidden, text.hidden, 1), Product::biased(text.hidden, text.hidden, 1)];
    let patches = side * side + u64::from(!one);
    if family == "llava" {
        return Ok(Tower {
            sense: Sense::Sight,
            layers,
            products,
            vectors,
            rule: Rule::Fixed { patches, tokens: side * side },
        });
    }
    let tile = v.count_or("image_size", SIDE, if one { 384 } else { 336 })?;
    let most = root.text_of("vision_aspect_ratio")?.and_then(|t| t.strip_prefix("anyres_max_")?.parse().ok());
    let rule = Rule::AnyRes { tile, side, patches, grids: grids(root, tile)?, most: most.or(one.then_some(9)) };
    // A vector that ends a row.
    Ok(Tower { sense: Sense::Sight, layers, products, vectors: vectors + text.hidden, rule })
}

/// `image_grid_pinpoints`: heights and widths.
fn grids(root: &Fields, tile: u64) -> Result<Vec<(u64, u64)>, SpecError> {
    let expected = "pairs of a height and a width, multiples of the tile";
    match root.get("image_grid_pinpoints") {
        // As LLaVA-NeXT was published.
        None => Ok([(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)].map(|(h, w)| (h * tile, w * tile)).to_vec()),
        Some(Value::Array(all)) if !all.is_empty() && all.len() <= 1000 => {
            let pair = |one: &Value| {
                let (h, w) = (one.get(0)?.as_u64()?, one.get(1)?.as_u64()?);
                ((tile..=SIDE).contains(&h) && (tile..=SIDE).contains(&w)).then_some((h, w))
            };
            let pairs: Option<Vec<_>> = all.iter().map(pair).collect();
            pairs.ok_or_else(|| root.refuse("image_grid_pinpoints", "something else", expected))
        }
        Some(other) => Err(root.bad("image_grid_pinpoints", other, expected)),
    }
}

/// Llama 4: tiles of 336 pixels with a class token, four patches shuffled into one, two products, then the projector.
fn llama4(v: &Fields, text: &Shape) -> Read {
    let [hidden, heads, width] = widths(v, [1408, 16, 5632])?;
    let (side, patch) = grid(v, 336, 14)?;
    let layers = Vit::usual(hidden, heads, width).alike(v, v.count_or("num_hidden_layers", most::LAYERS, 34)?)?;
    let layers = Shape { positions: side * side + 1, outer_norms: 2, ..layers };
    let (wide, out) =
        (v.count_or("projector_input_dim", most::DIM, 4096)?, v.count_or("vision_output_dim", most::DIM, 4096)?);
    // Half of the patches in each direction remain.
    let joined = 4;
    let products = vec![
        Product::plain(COLOURS * patch * patch, hidden, 1),
        Product::plain(joined * hidden, wide, joined),
        Product::plain(wide, out, joined),
        Product::plain(out, text.hidden, joined),
    ];
    let (tile, patches, tokens) = (side * patch, side * side + 1, side * side / joined);
    Ok(Tower {
        sense: Sense::Sight,
        layers,
        products,
        vectors: hidden,
        rule: Rule::Canvas { tile, most: 16, patches, tokens },
    })
}

/// Llama 3.2's: layers over all tiles of a picture at once, padded to the most there can be, then gated ones; what leaves are the
/// last states beside those of some layers before.
/// Ignores: that the text reads them in layers of its own, which alone keep keys and values of a picture; here they count as tokens.
fn mllama(v: &Fields, text: &Shape) -> Read {
    let [hidden, _, width] = widths(v, [1280, 16, 5120])?;
    let heads = either(v, ["attention_heads", "num_attention_heads"], most::HEADS, 16)?;
    let (side, patch) = grid(v, 448, 14)?;
    let tiles = v.count_or("max_num_tiles", 64, 4)?;
    let global = v.count_or("num_global_layers", most::LAYERS, 8)?;
    let n = v.count_or("num_hidden_layers", most::LAYERS, 32)? + global;
    let vit = Vit { bias: false, ..Vit::usual(hidden, heads, width) };
    // One table for a tile, and one of all tiles for each way they can lie, eight as shipped, and for none.
    let (of_tile, ways) = (side * side + 1, 8 + 1);
    let layers = Shape { positions: of_tile * (1 + ways * tiles), outer_norms: 2, ..vit.alike(v, n)? };
    let out = v.count_or("vision_output_dim", most::DIM, 7680)?;
    let products = vec![Product::plain(COLOURS * patch * patch, hidden, 1), Product::biased(out, text.hidden, 1)];
    // The class token, a vector for each tile before the layers and behind them, and gates: of these tables and twice of a global layer.
    let vectors = hidden + 2 * ways * tiles * hidden + 3 + 2 * global;
    let rule = Rule::Fixed { patches: tiles * of_tile, tokens: tiles * of_tile };
    Ok(Tower { sense: Sense::Sight, layers, products, vectors, rule })
}

/// Kimi's MoonViT: SigLIP's layers for any size, two by two patches merged.
fn kimi(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let of = |long, short, or| either(v, [long, short], most::DIM, or);
    let hidden = of("vt_hidden_size", "hidden_size", 1152)?;
    let heads = of("vt_num_attention_heads", "num_attention_heads", 16)?;
    let vit = Vit::usual(hidden, heads, of("vt_intermediate_size", "intermediate_size", 4304)?);
    let patch = v.count_or("patch_size", SIDE, 14)?;
    let positions = v.count_or("init_pos_emb_height", SIDE, 64)? * v.count_or("init_pos_emb_width", SIDE, 64)?;
    let layers = vit.alike(v, of("vt_num_hidden_layers", "num_hidden_layers", 27)?)?;
    let layers = Shape { positions, outer_norms: 1, ..layers };
    let merge = 2;
    let joined = merge * merge;
    let mut products = vec![Product::biased(COLOURS * patch * patch, hidden, 1)];
    products.extend(merger(joined * hidden, text.hidden, joined));
    // As shipped: K2.5 up to 16,384 patches, Kimi-VL up to 4,096; 512 along a side.
    let shipped = if root.text_of("model_type")? == Some("kimi_vl") { 4096 } else { 16_384 };
    let given = root.part("processor", "processor.")?;
    let limit = given.as_ref().map_or(Ok(shipped), |p| p.count_or("in_patch_limit", AREA, shipped))?;
    let rule = Rule::Padded { patch, merge, most: limit, side: 512 };
    Ok(Tower { sense: Sense::Sight, layers, products, vectors: 2 * hidden, rule })
}

/// InternVL: scaled residuals, tiles of 448 pixels, each 256 tokens.
fn internvl(root: &Fields, v: &Fields, text: &Shape) -> Read {
    let [hidden, heads, width] = widths(v, [1024, 16, 4096])?;
    let (side, patch) = grid(v, 448, 14)?;
    let rms = v.text_of("norm_type")? == Some("rms_norm");
    let vit = Vit { norm: if rms { Norm::Rms } else { Norm::Layer }, ..Vit::usual(hidden, heads, width) };
    let mut block = vit.block(v, Span::Full)?;
    if let Mixer::Attention(a) = &mut block.mixer {
        a.bias.qkv = v.flag("qkv_bias", true)?;
        a.qk_norm = if v.flag("qk_normalization", false)? { QkNorm::AllHeads } else { QkNorm::None };
    }
    block.side.push(Side { name: "scaled residuals", params: 2 * hidden, usage: SideUse::Multiplied });
    let n = v.count_or("num_hidden_layers", most::LAYERS, 24)?;
    let layers = Shape { positions: side * side + 1, ..vit.shape(vec![Run { n, block }]) };
    // Pixels are shuffled so that half remain in each direction.
    let joined = 4;
    let products = vec![
        Product::biased(COLOURS * patch * patch, hidden, 1),
        Product::biased(joined * hidden, text.hidden, joined),
        Product::biased(text.hidden, text.hidden, joined),
    ];
    let most = root.count_or("max_dynamic_patch", 1000, 12)?;
    let (tile, patches, tokens) = (side * patch, side * side + 1, side * side / joined);
    // The class token, and the norm before the projector.
    let vectors = hidden + 2 * joined * hidden;
    let rule = Rule::Tiles { tile, most, patches, tokens, around: 2 };
    Ok(Tower { sense: Sense::Sight, layers, products, vectors, rule })
}

/// Who listens through Whisper's encoder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hears {
    Qwen,
    Voxtral,
}

/// Whisper's encoder: two convolutions over a spectrogram, 1,500 positions for thirty seconds, keys without a bias.
fn whisper(a: &Fields, text: &Shape, who: Hears) -> Read {
    let [hidden, heads, width, n] = [
        (["d_model", "hidden_size"], most::DIM, 1280),
        (["encoder_attention_heads", "num_attention_heads"], most::HEADS, 20),
        (["encoder_ffn_dim", "intermediate_size"], most::DIM, 5120),
        (["encoder_layers", "num_hidden_layers"], most::LAYERS, 32),
    ]
    .map(|(names, most, or)| either(a, names, most, or));
    let (hidden, heads, width, n) = (hidden?, heads?, width?, n?);
    let mels = a.count_or("num_mel_bins", 10_000, 128)?;
    let positions = a.count_or("max_source_positions", most::VOCAB, 1500)?;
    let vit = Vit { bias: false, ..Vit::usual(hidden, heads, width) };
    let mut block = vit.block(a, Span::Full)?;
    if let Mixer::Attention(attention) = &mut block.mixer {
        attention.bias.out = true;
    }
    block.side.push(Side { name: "query and value bias", params: 2 * hidden, usage: SideUse::Multiplied });
    let layers = Shape { positions, outer_norms: 1, ..vit.shape(vec![Run { n, block }]) };
    // Three neighbours each.
    let mut products = vec![Product::biased(3 * mels, hidden, 1), Product::biased(3 * hidden, hidden, 1)];
    let (pool, window) = match who {
        Hears::Qwen => {
            products.push(Product::biased(hidden, text.hidden, 2));
            (2, Window::Cut)
        }
        Hears::Voxtral => {
            products.push(Product::plain(4 * hidden, text.hidden, 4));
            products.push(Product::plain(text.hidden, text.hidden, 4));
            (4, Window::Padded)
        }
    };
    Ok(Tower { sense: Sense::Hearing, layers, products, vectors: 0, rule: Rule::Sound { pool, window } })
}
