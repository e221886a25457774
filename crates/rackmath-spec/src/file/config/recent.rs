//! Later mixtures of experts with ordinary attention, and Llama with layers thinned out by a search.

use super::fields::{Fields, most};
use super::moe::{deepseek_experts, dense_first};
use super::parts::{Read, alike, biased_gqa, block, experts_of, gated, gqa, layers, runs, shape, spans};
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Gate, Mixer, Mlp, Moe, QkNorm, Shape};
use serde_json::Value;

/// ERNIE 4.5 with experts: dense layers first, shared experts, a score correction for each expert, one flag for all biases.
pub(super) fn ernie_moe(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "moe_capacity moe_gate moe_gate_act moe_norm_min moe_use_aux_free moe_use_hard_gate moe_multimodal_dispatch_use_allgather \
         moe_aux_loss_lambda moe_orthogonal_loss_lambda moe_z_loss_lambda moe_dense_experts_token_type_id",
    );
    if f.opt_count("num_nextn_predict_layers", 1000)?.is_some() {
        notes.push("the file names layers that predict ahead; they count nothing here".into());
    }
    let n = layers(f)?;
    let bias = f.flag("use_bias", false)?;
    let attention = Attention { bias: Bias { qkv: bias, out: bias }, ..gqa(f)? };
    let network = |width| Mlp { bias, ..gated(width) };
    let width = f.count("moe_intermediate_size", most::DIM)?;
    let experts = experts_of(f, ["moe_num_experts", "moe_k", "moe_intermediate_size"])?;
    let moe = Moe {
        expert: network(width),
        shared: f.opt_count("moe_num_shared_experts", 1000)?.map(|n| network(n * width)),
        router_vectors: 1,
        ..experts
    };
    let dense = network(f.count("intermediate_size", most::DIM)?);
    let first = f.opt_count("moe_layer_start_index", most::LAYERS)?.unwrap_or(0);
    let every = f.count_or("moe_layer_interval", most::LAYERS, 1)?;
    // Where it is not given, or -1, the last layer.
    let last = match f.get("moe_layer_end_index") {
        None => n,
        Some(value) if value.as_i64() == Some(-1) => n,
        Some(_) => f.opt_count("moe_layer_end_index", most::LAYERS)?.unwrap_or(0),
    };
    let runs = runs(n, |i| {
        let sparse = (first..=last).contains(&i) && (i + 1) % every == 0;
        let ffn = if sparse { Ffn::Moe(moe.clone()) } else { Ffn::Dense(dense) };
        Ok(block(Mixer::Attention(attention.clone()), ffn))
    })?;
    shape(f, notes, true, runs)
}

/// Hy3: Qwen3's attention and DeepSeek's experts, a layer that predicts ahead.
pub(super) fn hy3(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "enable_attention_fp32_softmax enable_lm_head_fp32 enable_moe_fp32_combine moe_router_enable_expert_bias \
         moe_router_use_sigmoid router_scaling_factor route_norm",
    );
    f.count_any(&["moe_intermediate_size", "expert_hidden_dim"], most::DIM)?;
    if !f.has("first_k_dense_replace") && !f.has("mlp_layer_types") {
        return Err(f.missing("first_k_dense_replace"));
    }
    let qk_norm = if f.flag("qk_norm", true)? { QkNorm::PerHead } else { QkNorm::None };
    let attention = Attention { qk_norm, ..biased_gqa(f)? };
    dense_first(f, notes, |_| Mixer::Attention(attention.clone()), deepseek_experts(f, 1)?, 0)
}

/// Solar Open: GLM-4.5 without biases and norms on queries and keys, with experts in every layer.
pub(super) fn solar_open(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("intermediate_size");
    for key in ["first_k_dense_replace", "num_nextn_predict_layers"] {
        if let Some(n) = f.opt_count(key, most::LAYERS)? {
            return Err(f.refuse(key, n, "0"));
        }
    }
    if f.flag("use_qk_norm", false)? {
        return Err(f.refuse("use_qk_norm", true, "false"));
    }
    let block = block(Mixer::Attention(biased_gqa(f)?), Ffn::Moe(deepseek_experts(f, 1)?));
    alike(f, notes, false, block)
}

/// Laguna: three windows with more query heads to one full layer, a gate for each head, norms on queries and keys, a dense
/// layer first.
pub(super) fn laguna(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "decoder_sparse_step moe_apply_router_weight_on_input moe_routed_scaling_factor moe_router_logit_softcapping \
         moe_router_use_sigmoid use_bidirectional_attention",
    );
    let n = layers(f)?;
    let spans = spans(f, n)?.ok_or_else(|| f.missing("layer_types"))?;
    let gate = gating(f)?;
    let attention = Attention { qk_norm: QkNorm::PerHead, gate, ..biased_gqa(f)? };
    let heads = f.counts_per_layer("num_attention_heads_per_layer", n, most::HEADS)?;
    let mlps = f.per_layer("mlp_layer_types", n)?;
    let dense_layers = f.layer_set("mlp_only_layers")?;
    let dense = gated(f.count("intermediate_size", most::DIM)?);
    let experts = experts_of(f, ["num_experts", "num_experts_per_tok", "moe_intermediate_size"])?;
    let shared = f.opt_count("shared_expert_intermediate_size", most::DIM)?.map(gated);
    let moe = Moe { shared, router_vectors: 1, ..experts };
    let runs = runs(n, |i| {
        let at = i as usize;
        let heads = heads.as_ref().map_or(attention.heads, |list| list[at]);
        if heads == 0 {
            return Err(f.refuse("num_attention_heads_per_layer", 0, "a positive whole number"));
        }
        let is_dense = match mlps.map(|list| (&list[at], list[at].as_str())) {
            None => dense_layers.contains(&i),
            Some((_, Some("dense"))) => true,
            Some((_, Some("sparse"))) => false,
            Some((other, _)) => return Err(f.bad("mlp_layer_types", other, "dense or sparse")),
        };
        let ffn = if is_dense { Ffn::Dense(dense) } else { Ffn::Moe(moe.clone()) };
        Ok(block(Mixer::Attention(Attention { heads, span: spans[at], ..attention.clone() }), ffn))
    })?;
    shape(f, notes, false, runs)
}

/// Laguna's gates: one value for each head in every layer, or none.
fn gating(f: &Fields) -> Result<Gate, SpecError> {
    let listed = match f.get("gating_types") {
        Some(Value::Array(kinds)) => kinds.as_slice(),
        _ => &[],
    };
    if let Some(other) = listed.iter().find(|kind| kind.as_str() != Some("per_head")) {
        return Err(f.bad("gating_types", other, "per_head"));
    }
    match f.get("gating") {
        None | Some(Value::Bool(true)) => Ok(Gate::PerHead),
        Some(Value::Bool(false)) => Ok(Gate::None),
        Some(Value::String(kind)) if kind.replace('_', "-") == "per-head" => Ok(Gate::PerHead),
        Some(other) => Err(f.bad("gating", other, "true, false or per-head")),
    }
}

/// Nemotron Super 49B and Ultra 253B: Llama of which a search has left out attentions and networks and narrowed others, layer
/// by layer.
pub(super) fn nemotron_nas(f: &Fields, notes: &mut Vec<String>) -> Read {
    let n = layers(f)?;
    let hidden = f.count("hidden_size", most::DIM)?;
    let heads = f.count("num_attention_heads", most::HEADS)?;
    let dim = match f.opt_count("head_dim", most::HEADS)? {
        Some(dim) => dim,
        None if hidden.is_multiple_of(heads) => hidden / heads,
        None => return Err(f.refuse("num_attention_heads", heads, format!("a divisor of hidden_size {hidden}"))),
    };
    let bias = f.flag("attention_bias", false)?;
    let mlp_bias = f.flag("mlp_bias", false)?;
    let blocks = f.per_layer("block_configs", n)?.ok_or_else(|| f.missing("block_configs"))?;
    let (mut runs, mut empty) = (Vec::new(), 0);
    for i in 0..n {
        let at = &blocks[i as usize];
        let (attention, ffn) = (&at["attention"], &at["ffn"]);
        let other = ["replace_with_linear", "sparsify", "window_length", "num_sink_tokens"];
        for (part, key) in [attention, ffn].into_iter().flat_map(|part| other.map(|key| (part, key))) {
            if !part[key].is_null() && part[key].as_bool() != Some(false) {
                return Err(f.bad(&format!("block_configs[{i}].{key}"), &part[key], "false or null"));
            }
        }
        let (mut norms, mut mixer, mut network) = (0, Mixer::None, Ffn::None);
        if attention["no_op"].as_bool() != Some(true) {
            let given = &attention["n_heads_in_group"];
            let Some(group) = given.as_u64().filter(|n| *n > 0 && heads.is_multiple_of(*n)) else {
                let expected = format!("a divisor of the {heads} query heads");
                return Err(f.bad(&format!("block_configs[{i}].n_heads_in_group"), given, &expected));
            };
            let full = Attention::full(heads, heads / group, dim);
            mixer = Mixer::Attention(Attention { bias: Bias { qkv: bias, out: bias }, ..full });
            norms += 1;
        }
        if ffn["no_op"].as_bool() != Some(true) {
            let given = &ffn["ffn_mult"];
            let Some(mult) = given.as_f64().filter(|m| *m > 0.0 && *m < 100.0) else {
                return Err(f.bad(&format!("block_configs[{i}].ffn_mult"), given, "a number from 0 to 100"));
            };
            // Two thirds of it, rounded up to whole tiles of 256.
            let width = ((2.0 * mult * hidden as f64 / 3.0) as u64).div_ceil(256) * 256;
            network = Ffn::Dense(Mlp { bias: mlp_bias, ..gated(width) });
            norms += 1;
        }
        if norms == 0 {
            empty += 1;
        } else {
            Shape::push(&mut runs, Block { norms, ..block(mixer, network) });
        }
    }
    if empty > 0 {
        notes.push(format!("{empty} of its {n} layers hold neither attention nor network and are left out"));
    }
    shape(f, notes, false, runs)
}

#[cfg(test)]
mod tests {
    use crate::model::{Attention, Block, Ffn, Gate, Mixer, Mlp, QkNorm, Shape, SideUse};
    use crate::tower::Rule;
    use serde_json::{Value, json};

    fn read(config: &Value) -> Shape {
        super::super::shape("config.json", config, &mut Vec::new()).unwrap()
    }

    fn network(hidden: u64, mlp: Mlp) -> u64 {
        let matrices = if mlp.gated { 3 } else { 2 };
        let bias = if mlp.bias { (matrices - 1) * mlp.width + hidden } else { 0 };
        matrices * hidden * mlp.width + bias
    }

    fn attention(hidden: u64, a: &Attention) -> u64 {
        let (queries, keys, out) = (a.heads * a.qk_dim, a.kv_heads * a.qk_dim, a.heads * a.v_dim);
        let norm = if a.qk_norm == QkNorm::PerHead { 2 * a.qk_dim } else { 0 };
        let gate = if a.gate == Gate::PerHead { a.heads * hidden } else { 0 };
        let values = a.kv_heads * a.v_dim;
        let qkv = if a.bias.qkv { queries + keys + values } else { 0 };
        let bias = qkv + if a.bias.out { hidden } else { 0 };
        hidden * (queries + keys + values + out) + norm + gate + bias
    }

    fn of(hidden: u64, norm: u64, block: &Block) -> u64 {
        let mixer = match &block.mixer {
            Mixer::Attention(a) => attention(hidden, a),
            Mixer::None => 0,
            other => panic!("{other:?}"),
        };
        let ffn = match &block.ffn {
            Ffn::None => 0,
            Ffn::Dense(mlp) => network(hidden, *mlp),
            Ffn::Moe(moe) => {
                let router = moe.experts * (hidden + moe.router_vectors);
                moe.experts * network(hidden, moe.expert) + moe.shared.map_or(0, |mlp| network(hidden, mlp)) + router
            }
        };
        let side: u64 = block.side.iter().map(|side| side.params).sum();
        mixer + ffn + block.norms * norm * hidden + side
    }

    /// Everything in the checkpoint, written out once more.
    fn params(s: &Shape) -> u64 {
        let norm = s.norm.vectors();
        let tables = if s.tied || s.headless { 1 } else { 2 };
        let layers: u64 = s.runs.iter().map(|run| run.n * of(s.hidden, norm, &run.block)).sum();
        let ahead = s.mtp.as_ref().map_or(0, |mtp| mtp.n * (of(s.hidden, norm, &mtp.block) + mtp.extra));
        let side: u64 = s.side.iter().map(|side| side.params).sum();
        tables * s.vocab * s.hidden + (s.outer_norms * norm + s.positions) * s.hidden + layers + ahead + side
    }

    /// Tencent's Hy3: 298,786,155,776 values in its safetensors, a layer that predicts ahead among them.
    #[test]
    fn hy3_counts_as_published() {
        let hy3 = json!({
            "model_type": "hy_v3", "hidden_size": 4096, "intermediate_size": 13312, "num_hidden_layers": 80, "num_attention_heads": 64,
            "num_key_value_heads": 8, "head_dim": 128, "qk_norm": true, "vocab_size": 120_832, "first_k_dense_replace": 1, "num_experts": 192,
            "num_experts_per_tok": 8, "num_shared_experts": 1, "expert_hidden_dim": 1536, "moe_intermediate_size": 1536,
            "num_nextn_predict_layers": 1, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
        });
        assert_eq!(params(&read(&hy3)), 298_786_155_776);
    }

    /// Poolside's Laguna XS.2 and S 2.1: 33,442,617,088 and 117,561,977,600.
    #[test]
    fn laguna_counts_as_published() {
        let laguna = |hidden: u64, dense: u64, width: u64, n: usize, many: u64, gating: Value| {
            let every = |full: Value, other: Value| -> Vec<Value> {
                (0..n).map(|i| if i % 4 == 0 { full.clone() } else { other.clone() }).collect()
            };
            let mlps: Vec<&str> = (0..n).map(|i| if i == 0 { "dense" } else { "sparse" }).collect();
            json!({
                "model_type": "laguna", "vocab_size": 100_352, "hidden_size": hidden, "intermediate_size": dense, "num_hidden_layers": n,
                "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 256, "num_experts_per_tok": 8,
                "moe_intermediate_size": width, "shared_expert_intermediate_size": width, "gating": gating, "sliding_window": 512,
                "layer_types": every("full_attention".into(), "sliding_attention".into()), "mlp_layer_types": mlps,
                "num_attention_heads_per_layer": every(48.into(), many.into()), "tie_word_embeddings": false, "torch_dtype": "bfloat16"
            })
        };
        assert_eq!(params(&read(&laguna(2048, 8192, 512, 40, 64, true.into()))), 33_442_617_088);
        assert_eq!(params(&read(&laguna(3072, 12288, 1024, 48, 72, "per-head".into()))), 117_561_977_600);
        let mut other = laguna(2048, 8192, 512, 40, 64, "per-element".into());
        let refused = super::super::shape("config.json", &other, &mut Vec::new()).unwrap_err().to_string();
        assert!(refused.contains("gating"), "{refused}");
        other["gating"] = true.into();
        other["mlp_layer_types"][3] = "spare".into();
        let refused = super::super::shape("config.json", &other, &mut Vec::new()).unwrap_err().to_string();
        assert!(refused.contains("mlp_layer_types"), "{refused}");
    }

    /// ERNIE 4.5 21B A3B and Solar Open 100B: 21.8B and 102.6B.
    #[test]
    fn ernie_and_solar_count_as_published() {
        let ernie = json!({
            "model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
            "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 103_424, "tie_word_embeddings": true, "use_bias": false,
            "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_k": 6, "moe_intermediate_size": 1536, "moe_layer_start_index": 1,
            "moe_layer_end_index": -1, "moe_layer_interval": 1, "torch_dtype": "bfloat16"
        });
        let shape = read(&ernie);
        assert_eq!(params(&shape), 21_825_437_888);
        assert_eq!(shape.runs.iter().map(|run| run.n).collect::<Vec<_>>(), [1, 27]);
        let mut ended = ernie;
        ended["moe_layer_end_index"] = 26.into();
        assert_eq!(read(&ended).runs.iter().map(|run| run.n).collect::<Vec<_>>(), [1, 26, 1]);
        let solar = json!({
            "model_type": "solar_open", "vocab_size": 196_608, "hidden_size": 4096, "num_hidden_layers": 48, "num_attention_heads": 64,
            "num_key_value_heads": 8, "head_dim": 128, "moe_intermediate_size": 1280, "num_experts_per_tok": 8, "n_shared_experts": 1,
            "n_routed_experts": 128, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
        });
        assert_eq!(params(&read(&solar)), 102_651_799_552);
    }

    /// Jina's embeddings v3: 572,310,396 with the adapters of five tasks, four of which a request leaves alone.
    #[test]
    fn jinas_adapters_count_as_published() {
        let jina = json!({
            "model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"], "vocab_size": 250_002, "hidden_size": 1024,
            "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 8194,
            "type_vocab_size": 1, "position_embedding_type": "rotary", "lora_rank": 4, "lora_alpha": 1,
            "lora_adaptations": ["retrieval.query", "retrieval.passage", "separation", "classification", "text-matching"],
            "torch_dtype": "bfloat16"
        });
        let shape = read(&jina);
        assert_eq!(params(&shape), 572_310_396);
        let idle: u64 = shape.side.iter().filter(|side| side.usage == SideUse::Unused).map(|side| side.params).sum();
        assert_eq!((idle, shape.context_max), (4 * 12_946_300 / 5, Some(8192)));
    }

    /// all-mpnet-base-v2: 109,486,978 in its files, of which 514 number positions.
    #[test]
    fn mpnet_counts_as_published() {
        let mpnet = json!({
            "model_type": "mpnet", "architectures": ["MPNetModel"], "vocab_size": 30_527, "hidden_size": 768, "num_hidden_layers": 12,
            "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 514, "relative_attention_num_buckets": 32,
            "torch_dtype": "float32"
        });
        let shape = read(&mpnet);
        assert_eq!((params(&shape), shape.context_max), (109_486_464, Some(512)));
    }

    /// Gemma 3n: 6.87B and 4.46B of text as llama.cpp counts them; EmbeddingGemma: 302,863,104.
    #[test]
    fn small_gemmas_count_as_published() {
        let gemma = |n: u64, width: u64, shared: u64| {
            json!({
                "model_type": "gemma3n_text", "vocab_size": 262_400, "hidden_size": 2048, "intermediate_size": vec![width; n as usize],
                "num_hidden_layers": n, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "sliding_window": 512,
                "vocab_size_per_layer_input": 262_144, "hidden_size_per_layer_input": 256, "altup_num_inputs": 4,
                "num_kv_shared_layers": shared, "laurel_rank": 64, "torch_dtype": "bfloat16"
            })
        };
        // The tests' count has keys and values in every layer, of which late ones keep theirs unread beside.
        let all = |shape: &Shape| params(shape) - shape.runs.iter().map(|run| run.n * twice(&run.block)).sum::<u64>();
        assert_eq!(all(&read(&gemma(35, 16_384, 15))), 6_866_696_688);
        assert_eq!(all(&read(&gemma(30, 8192, 10))), 4_456_156_768);
        let embedding = json!({
            "model_type": "gemma3_text", "architectures": ["Gemma3TextModel"], "_sliding_window_pattern": 6, "head_dim": 256,
            "hidden_size": 768, "intermediate_size": 1152, "num_attention_heads": 3, "num_hidden_layers": 24, "num_key_value_heads": 1,
            "sliding_window": 512, "use_bidirectional_attention": true, "vocab_size": 262_144, "torch_dtype": "float32"
        });
        let shape = read(&embedding);
        assert_eq!((params(&shape), shape.encodes(), shape.headless), (302_863_104, true, true));
    }

    /// What a layer that reads another's keys is counted twice for.
    fn twice(block: &Block) -> u64 {
        block.side.iter().filter(|side| side.usage == SideUse::Unused).map(|side| side.params).sum()
    }

    /// GLM-4.5V: 106,852,251,264 of text and a tower of 858,681,856, whose pictures are two frames.
    #[test]
    fn glms_with_pictures_count_as_published() {
        let glm = json!({
            "model_type": "glm4v_moe", "torch_dtype": "bfloat16",
            "text_config": {
                "model_type": "glm4v_moe_text", "attention_bias": true, "first_k_dense_replace": 1, "head_dim": 128, "hidden_size": 4096,
                "intermediate_size": 10_944, "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 1,
                "num_attention_heads": 96, "num_experts_per_tok": 8, "num_hidden_layers": 46, "num_key_value_heads": 8,
                "vocab_size": 151_552, "tie_word_embeddings": false, "use_qk_norm": false
            },
            "vision_config": {
                "depth": 24, "hidden_size": 1536, "intermediate_size": 10_944, "num_heads": 12, "image_size": 336, "out_hidden_size": 4096,
                "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2
            }
        });
        let shape = read(&glm);
        assert_eq!(params(&shape), 106_852_251_264);
        let tower = &shape.towers[0];
        // A tower has neither words nor a last norm of its own.
        let products: u64 = tower.products.iter().map(|p| p.d_in * p.d_out + if p.bias { p.d_out } else { 0 }).sum();
        assert_eq!(params(&tower.layers) + products + tower.vectors, 858_681_856);
        assert!(matches!(tower.rule, Rule::Rounded { frames: 2, pair: 2, most: 11_760_000, .. }), "{:?}", tower.rule);
    }

    /// A layer without attention, one with nothing, and networks of two widths.
    #[test]
    fn a_search_leaves_out_parts_of_layers() {
        let part = |group: Value, mult: Value| {
            json!({
                "attention": { "n_heads_in_group": group, "no_op": group.is_null(), "replace_with_linear": false, "sparsify": null },
                "ffn": { "ffn_mult": mult, "no_op": mult.is_null(), "replace_with_linear": false }
            })
        };
        let blocks = [
            part(8.into(), 2.625.into()),
            part(Value::Null, 5.25.into()),
            part(Value::Null, Value::Null),
            part(8.into(), 5.25.into()),
        ];
        let mut config = json!({
            "model_type": "nemotron-nas", "hidden_size": 8192, "intermediate_size": null, "num_key_value_heads": null,
            "num_attention_heads": 64, "num_hidden_layers": 4, "vocab_size": 128_256, "attention_bias": false, "mlp_bias": false,
            "tie_word_embeddings": false, "torch_dtype": "bfloat16", "block_configs": blocks
        });
        let mut notes = Vec::new();
        let shape = super::super::shape("config.json", &config, &mut notes).unwrap();
        assert_eq!(shape.runs.len(), 3, "{shape:?}");
        assert!(notes.iter().any(|note| note.contains("1 of its 4 layers")), "{notes:?}");
        // Widths of 14,336 and twice 28,672; two attentions of 8 keys.
        let (h, inner) = (8192, 128 * (64 + 8 + 8 + 64));
        assert_eq!(params(&shape), 2 * 128_256 * h + h + 2 * h * inner + 3 * h * (14_336 + 2 * 28_672) + 5 * h);
        config["block_configs"][1]["ffn"]["replace_with_linear"] = true.into();
        let refused = super::super::shape("config.json", &config, &mut Vec::new()).unwrap_err().to_string();
        assert!(refused.contains("replace_with_linear"), "{refused}");
    }
}
