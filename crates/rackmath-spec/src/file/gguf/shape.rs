//! From a GGUF header to a model: layers from the sides of their tensors, formats from their types.
//!
//! Names of tensors are the same for all architectures, so that one reader does for them: what a block has says what it is.
//! Widths are exact by part: bytes over values of experts, of other networks, of attention and of the rest.
//! Ignores: towers for pictures and sound, which come in files of their own; the layers for prediction further ahead, which
//! llama.cpp leaves on the disk.

use super::{Header, Tensor};
use crate::error::{path, shorten};
use crate::ggml::{TensorType, file_type};
use crate::gguf::Mix;
use crate::model::{
    Attention, Bias, Block, Body, Counts, Ffn, Formats, Gate, Indexer, KvSource, Latent, LatentExperts, Linear, Mixer,
    Mlp, Moe, Norm, Published, QkNorm, Shape, Span,
};
use crate::{Dtype, Gguf, Model, SpecError};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most layers, heads and values of a vector that are reckoned with.
const MOST: u64 = 10_000_000;
const MOST_LAYERS: u64 = 10_000;

/// In how many layers one sees the whole context, the last of them, where the file does not say.
/// Source: `set_swa_pattern` of llama.cpp `src/llama-model.cpp` and `src/models`, read 2026-11.
const PATTERNS: [(&str, u64); 8] = [
    ("gemma2", 2),
    ("gpt-oss", 2),
    ("gemma3", 6),
    ("gemma3n", 5),
    ("cohere2", 4),
    ("exaone4", 4),
    ("olmo2", 4),
    ("afmoe", 4),
];

/// The model a header describes.
pub(in super::super) fn model(name: &str, carried: &Value) -> Result<Model, SpecError> {
    let header = Header::brought(name, carried)?;
    let reader = Reader::new(name, &header)?;
    let mut notes = Vec::new();
    let shape = reader.shape(&mut notes)?;
    let kinds: Vec<String> =
        header.by_type().iter().map(|(kind, bytes)| format!("{} {}", kind.name, gb(*bytes))).collect();
    notes.insert(
        0,
        format!(
            "read from the file's header: {} in {} tensors ({})",
            gb(header.bytes()),
            header.tensors.len(),
            kinds.join(", ")
        ),
    );
    let title = header.keys.get("general.name").and_then(Value::as_str).filter(|title| !title.is_empty());
    let values: u64 = reader.loaded().map(Tensor::values).sum();
    Ok(Model {
        id: name.to_owned(),
        name: shorten(title.unwrap_or(name)),
        hf: None,
        body: Body::Layers(Box::new(shape)),
        published: Some(Published {
            total: values,
            exact: true,
            counts: Counts::Main,
            towers: 0,
            active: None,
            source: "the tensors of the file".into(),
        }),
        source: format!("the header of {}", path(name)),
        as_of: "as given".into(),
        notes,
        stored: None,
    })
}

/// A size in a note: three digits.
fn gb(bytes: u64) -> String {
    match bytes {
        0..10_000_000 => format!("{:.3} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

struct Reader<'a> {
    file: &'a str,
    header: &'a Header,
    arch: &'a str,
    layers: u64,
    hidden: u64,
    tensors: BTreeMap<&'a str, &'a Tensor>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a str, header: &'a Header) -> Result<Self, SpecError> {
        let arch = header.keys.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
        if arch.is_empty() || header.tensors.is_empty() {
            let hint = "expected general.architecture and tensors; of a file in parts, name the first part";
            return Err(SpecError::file(file, "the header describes no model").hint(hint));
        }
        if matches!(arch, "clip" | "mmproj") {
            let hint = "name the file of the language model beside it";
            return Err(SpecError::file(file, "a tower for pictures or sound, and no language model").hint(hint));
        }
        let tensors = header.tensors.iter().map(|t| (t.name.as_str(), t)).collect();
        let mut reader = Self { file, header, arch, layers: 0, hidden: 0, tensors };
        let all = reader.count("block_count", MOST_LAYERS)?;
        reader.layers = all.saturating_sub(reader.number("nextn_predict_layers").unwrap_or(0)).max(1);
        reader.hidden = reader.count("embedding_length", MOST)?;
        Ok(reader)
    }

    fn value(&self, key: &str) -> Option<&'a Value> {
        self.header.keys.get(&format!("{}.{key}", self.arch))
    }

    /// A whole number above 0; the largest of a list with one for each layer.
    fn number(&self, key: &str) -> Option<u64> {
        let one = |value: &Value| value.as_u64().filter(|n| (1..=MOST).contains(n));
        match self.value(key)? {
            Value::Array(list) => list.iter().filter_map(one).max(),
            value => one(value),
        }
    }

    /// The same of a layer.
    fn number_at(&self, key: &str, layer: u64) -> Option<u64> {
        match self.value(key)? {
            Value::Array(list) => list.get(layer as usize)?.as_u64().filter(|n| *n <= MOST),
            value => value.as_u64().filter(|n| (1..=MOST).contains(n)),
        }
    }

    fn count(&self, key: &str, most: u64) -> Result<u64, SpecError> {
        let found = self.number(key).filter(|n| *n <= most);
        found.ok_or_else(|| self.lacks(&format!("{}.{key}", self.arch), &format!("a whole number from 1 to {most}")))
    }

    fn lacks(&self, what: &str, expected: &str) -> SpecError {
        SpecError::field(self.file, what, "missing or out of bounds", expected)
    }

    fn get(&self, layer: u64, name: &str) -> Option<&'a Tensor> {
        self.tensors.get(format!("blk.{layer}.{name}").as_str()).copied()
    }

    fn has(&self, layer: u64, name: &str) -> bool {
        self.get(layer, name).is_some()
    }

    /// Columns of a matrix.
    fn out(&self, layer: u64, name: &str) -> Option<u64> {
        self.get(layer, name)?.sides.get(1).copied()
    }

    /// What is loaded: all but layers for prediction further ahead.
    fn loaded(&self) -> impl Iterator<Item = &'a Tensor> {
        let layers = self.layers;
        let beyond = move |name: &str| {
            let number = name.strip_prefix("blk.").and_then(|rest| rest.split('.').next()?.parse::<u64>().ok());
            number.is_some_and(|number| number >= layers)
        };
        self.header.tensors.iter().filter(move |t| !beyond(&t.name))
    }

    fn shape(&self, notes: &mut Vec<String>) -> Result<Shape, SpecError> {
        let mut runs = Vec::new();
        for layer in 0..self.layers {
            Shape::push(&mut runs, self.block(layer)?);
        }
        let outer = |name: &str| self.tensors.get(name).copied();
        let embedding = outer("token_embd.weight").ok_or_else(|| self.lacks("token_embd.weight", "the embedding"))?;
        let vocab = embedding.sides.get(1).copied().unwrap_or(1);
        if embedding.sides.first() != Some(&self.hidden) {
            return Err(self.lacks("token_embd.weight", &format!("rows of embedding_length {}", self.hidden)));
        }
        if self.value("nextn_predict_layers").is_some() {
            let left: u64 = self.header.bytes() - self.loaded().map(Tensor::bytes).sum::<u64>();
            if left > 0 {
                notes.push(format!("{} of layers that predict further ahead stay on the disk", gb(left)));
            }
        }
        let windowed = self.number("attention.sliding_window").is_some();
        if windowed && runs.iter().all(|run| !matches!(&run.block.mixer, Mixer::Attention(a) if a.span != Span::Full)) {
            notes.push("the file names a sliding window but no layers that have it: counted as full attention".into());
        }
        let norms = ["output_norm.weight", "token_embd_norm.weight"];
        Ok(Shape {
            architecture: format!("gguf {}", self.arch),
            hidden: self.hidden,
            vocab,
            tied: outer("output.weight").is_none(),
            head_bias: outer("output.bias").is_some(),
            positions: outer("position_embd.weight").and_then(|t| t.sides.get(1).copied()).unwrap_or(0),
            norm: if outer("output_norm.bias").is_some() { Norm::Layer } else { Norm::Rms },
            outer_norms: norms.iter().filter(|name| outer(name).is_some()).count() as u64,
            runs,
            context_max: self.number("context_length"),
            formats: self.formats(),
            ..Shape::default()
        })
    }

    fn block(&self, layer: u64) -> Result<Block, SpecError> {
        let prefix = format!("blk.{layer}.");
        let own = || self.tensors.range(prefix.as_str()..).map(|(_, t)| *t).take_while(|t| t.name.starts_with(&prefix));
        let norms =
            own().filter(|t| t.sides == [self.hidden] && t.name.contains("norm") && t.name.ends_with(".weight"));
        let block =
            Block { mixer: self.mixer(layer)?, ffn: self.ffn(layer)?, norms: norms.count() as u64, side: Vec::new() };
        if block.mixer == Mixer::None && block.ffn == Ffn::None {
            let hint = "of a file in parts (-00001-of-00003), all parts must stand in one folder";
            return Err(SpecError::file(self.file, format!("layer {layer} has no tensors that are known")).hint(hint));
        }
        Ok(block)
    }

    fn mixer(&self, layer: u64) -> Result<Mixer, SpecError> {
        if self.has(layer, "attn_kv_a_mqa.weight") {
            return self.latent(layer).map(Mixer::Latent);
        }
        if self.has(layer, "attn_q.weight")
            || (self.has(layer, "attn_qkv.weight") && !self.has(layer, "ssm_conv1d.weight"))
        {
            return self.attention(layer).map(Mixer::Attention);
        }
        if self.has(layer, "ssm_conv1d.weight") {
            return self.recurrence(layer).map(Mixer::Linear);
        }
        let other = ["shortconv.conv.weight", "time_mix_key.weight", "ssm_conv1d_q.weight"];
        match other.iter().find(|name| self.has(layer, name)) {
            Some(name) => {
                let hint = "expected attention, latent attention, Mamba or gated delta nets; a config.json may do";
                Err(SpecError::file(self.file, format!("layer {layer} mixes tokens by {name}, which is not read"))
                    .hint(hint))
            }
            None => Ok(Mixer::None),
        }
    }

    fn attention(&self, layer: u64) -> Result<Attention, SpecError> {
        let heads = self.number_at("attention.head_count", layer).filter(|n| *n > 0);
        let heads = heads.ok_or_else(|| self.lacks("attention.head_count", "heads of every layer with attention"))?;
        let kv_heads = self.number_at("attention.head_count_kv", layer).filter(|n| *n > 0).unwrap_or(heads);
        let usual = self.number("attention.key_length").unwrap_or(self.hidden / heads);
        let q = self.out(layer, "attn_q.weight");
        // A gate on every element comes with the queries, and makes their matrix twice as wide.
        let doubled = q == Some(2 * heads * usual);
        let qk_dim = q.filter(|_| !doubled).map_or(usual, |columns| columns / heads).max(1);
        let v = self.out(layer, "attn_v.weight");
        let k = self.out(layer, "attn_k.weight");
        let kv_heads = k.map_or(kv_heads, |columns| (columns / qk_dim).max(1));
        let v_dim = v
            .map_or_else(|| self.number("attention.value_length").unwrap_or(qk_dim), |columns| columns / kv_heads)
            .max(1);
        if heads % kv_heads != 0 {
            return Err(
                self.lacks("attention.head_count_kv", &format!("a divisor of the {heads} heads in layer {layer}"))
            );
        }
        let norm = self.get(layer, "attn_q_norm.weight").map(Tensor::values);
        let gate = match self.out(layer, "attn_gate.weight") {
            _ if doubled => Gate::PerElement,
            Some(columns) if columns == heads => Gate::PerHead,
            Some(_) => Gate::PerElement,
            None => Gate::None,
        };
        Ok(Attention {
            heads,
            kv_heads,
            qk_dim,
            v_dim,
            span: self.span(layer),
            kv: if q.is_some() && k.is_none() && !self.has(layer, "attn_qkv.weight") {
                KvSource::Shared
            } else {
                KvSource::Own
            },
            bias: Bias {
                qkv: self.has(layer, "attn_q.bias") || self.has(layer, "attn_qkv.bias"),
                out: self.has(layer, "attn_output.bias"),
            },
            qk_norm: norm.map_or(QkNorm::None, |n| if n == qk_dim { QkNorm::PerHead } else { QkNorm::AllHeads }),
            k_is_v: k.is_some() && v.is_none(),
            gate,
            sinks: self.has(layer, "attn_sinks.weight"),
            both_ways: false,
        })
    }

    fn span(&self, layer: u64) -> Span {
        let Some(window) = self.number("attention.sliding_window") else { return Span::Full };
        let slides = |period: u64| period == 0 || layer % period < period - 1;
        let stated = match self.value("attention.sliding_window_pattern") {
            Some(Value::Array(list)) if !list.is_empty() => {
                let one = &list[layer as usize % list.len()];
                Some(one.as_bool().unwrap_or_else(|| one.as_u64() == Some(1)))
            }
            Some(value) => value.as_u64().map(slides),
            None => None,
        };
        let usual = || PATTERNS.iter().find(|(arch, _)| *arch == self.arch).is_some_and(|(_, period)| slides(*period));
        if stated.unwrap_or_else(usual) { Span::Window(window) } else { Span::Full }
    }

    fn latent(&self, layer: u64) -> Result<Latent, SpecError> {
        let heads = self.count("attention.head_count", MOST)?;
        let rope_dim = self.count("rope.dimension_count", MOST)?;
        let wide = |mla: &str, old: &str| self.number(mla).or_else(|| self.number(old));
        let qk = wide("attention.key_length_mla", "attention.key_length").unwrap_or(192);
        let index = |key: &str| self.number(&format!("attention.indexer.{key}"));
        let indexer = index("head_count").zip(index("key_length")).zip(index("top_k"));
        let indexer = indexer.map(|((heads, dim), top_k)| Indexer { heads, dim, top_k });
        Ok(Latent {
            heads,
            q_rank: self.number("attention.q_lora_rank").filter(|_| self.has(layer, "attn_q_a.weight")),
            kv_rank: self.count("attention.kv_lora_rank", MOST)?,
            rope_dim,
            nope_dim: qk.saturating_sub(rope_dim).max(1),
            v_dim: wide("attention.value_length_mla", "attention.value_length").unwrap_or(128),
            gate: Gate::None,
            indexer: indexer.filter(|_| self.has(layer, "indexer.attn_k.weight")),
        })
    }

    fn recurrence(&self, layer: u64) -> Result<Linear, SpecError> {
        let [conv, inner, state, rank] = ["ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank"]
            .map(|key| self.count(key, MOST));
        let (conv, inner, state, rank) = (conv?, inner?, state?, rank?);
        let groups = self.number("ssm.group_count").unwrap_or(1);
        let conv_bias = self.has(layer, "ssm_conv1d.bias");
        if self.has(layer, "ssm_x.weight") {
            let inner_norms = self.has(layer, "ssm_dt_norm.weight");
            let proj_bias = self.has(layer, "ssm_in.bias");
            return Ok(Linear::Mamba1 { inner, state, conv, dt_rank: rank, inner_norms, conv_bias, proj_bias });
        }
        if self.has(layer, "ssm_ba.weight") || self.has(layer, "ssm_beta.weight") || self.has(layer, "attn_gate.weight")
        {
            return Ok(Linear::GatedDelta {
                k_heads: groups,
                v_heads: rank,
                k_dim: state,
                v_dim: (inner / rank).max(1),
                conv,
                wide: true,
            });
        }
        let proj_bias = self.has(layer, "ssm_in.bias");
        Ok(Linear::Mamba2 { heads: rank, dim: (inner / rank).max(1), groups, state, conv, conv_bias, proj_bias })
    }

    fn ffn(&self, layer: u64) -> Result<Ffn, SpecError> {
        let gated = |suffix: &str| self.has(layer, &format!("ffn_gate{suffix}.weight"));
        if self.has(layer, "ffn_gate_inp.weight") {
            let joined = self.out(layer, "ffn_gate_up_exps.weight");
            let up = self.get(layer, "ffn_up_exps.weight").or_else(|| self.get(layer, "ffn_gate_up_exps.weight"));
            let up =
                up.ok_or_else(|| self.lacks(&format!("blk.{layer}.ffn_up_exps.weight"), "the experts of the layer"))?;
            let width = joined.map_or_else(|| up.sides.get(1).copied().unwrap_or(1), |both| both / 2).max(1);
            let bias = self.has(layer, "ffn_up_exps.bias") || self.has(layer, "ffn_gate_up_exps.bias");
            let experts = up.sides.get(2).copied().unwrap_or(1);
            let top_k = self.count("expert_used_count", MOST)?;
            if top_k > experts {
                return Err(self.lacks("expert_used_count", &format!("at most the {experts} experts")));
            }
            let shared = self.out(layer, "ffn_up_shexp.weight");
            let narrow = up.sides.first().copied().filter(|n| *n != self.hidden);
            let vectors = ["exp_probs_b.bias", "ffn_gate_inp.bias"];
            return Ok(Ffn::Moe(Moe {
                experts,
                top_k,
                expert: Mlp { width, gated: joined.is_some() || gated("_exps"), bias },
                shared: shared.map(|width| Mlp { width, gated: gated("_shexp"), bias: false }),
                shared_gate: self.has(layer, "ffn_gate_inp_shexp.weight"),
                zero_experts: 0,
                router_vectors: vectors.iter().filter(|name| self.has(layer, name)).count() as u64,
                latent: narrow.map(|width| LatentExperts { width, norm: false }),
            }));
        }
        let Some(up) = self.out(layer, "ffn_up.weight") else { return Ok(Ffn::None) };
        // Gate and up may be one matrix: what comes out of it is twice what goes into the next.
        let inner = self.get(layer, "ffn_down.weight").and_then(|t| t.sides.first().copied()).unwrap_or(up);
        let joined = up == 2 * inner;
        let bias = self.has(layer, "ffn_up.bias");
        Ok(Ffn::Dense(Mlp { width: if joined { inner } else { up }, gated: joined || gated(""), bias }))
    }

    /// Formats by part: the one there is, or the mean of several as exactly as bits go.
    fn formats(&self) -> Formats {
        let kind = self.header.keys.get("general.file_type").and_then(Value::as_u64).and_then(file_type);
        // Norms of the hidden vector stand by themselves; biases and other norms belong to what they follow.
        let vector = |t: &Tensor| t.sides == [self.hidden] && t.name.contains("norm");
        let routed = |t: &Tensor| t.name.contains("_exps.");
        let router = |t: &Tensor| t.name.contains("ffn_gate_inp");
        let linear = |t: &Tensor| t.name.contains(".ffn_") && !routed(t) && !router(t) && !vector(t);
        let mixer = |t: &Tensor| {
            ["attn_", "ssm_", "indexer."].iter().any(|part| t.name.contains(part))
                && t.name.starts_with("blk.")
                && !vector(t)
        };
        let other = |t: &Tensor| !routed(t) && !linear(t) && !mixer(t);
        let of = |holds: &dyn Fn(&Tensor) -> bool| self.format(kind, holds);
        let dense = of(&linear);
        let rest = of(&other).unwrap_or_default();
        let linear = dense.or_else(|| of(&routed)).unwrap_or(rest);
        Formats { routed: of(&routed).unwrap_or(linear), linear, mixer: of(&mixer).unwrap_or(linear), other: rest }
    }

    fn format(&self, file: Option<Gguf>, holds: &dyn Fn(&Tensor) -> bool) -> Option<Dtype> {
        let mut kinds: Vec<(TensorType, u64)> = Vec::new();
        let (mut values, mut bytes) = (0u64, 0u64);
        for t in self.loaded().filter(|t| holds(t)) {
            values = values.saturating_add(t.values());
            bytes = bytes.saturating_add(t.bytes());
            match kinds.iter_mut().find(|(kind, _)| *kind == t.kind) {
                Some((_, all)) => *all += t.bytes(),
                None => kinds.push((t.kind, t.bytes())),
            }
        }
        let (most, _) = kinds.iter().max_by_key(|(_, bytes)| *bytes)?;
        if let (1, Some(exact)) = (kinds.len(), most.format()) {
            return Some(exact);
        }
        let own = most.like();
        let like = if own == Some(Gguf::Mxfp4Moe) { own } else { file.or(own) }.unwrap_or(Gguf::Q8_0);
        Some(Dtype::Mixed(Mix::new(like, bytes as f64 * 8.0 / values.max(1) as f64)))
    }
}
