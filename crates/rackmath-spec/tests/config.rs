//! A `config.json` is understood or refused, never guessed at.

use rackmath_spec::file::config_json;
use rackmath_spec::model::{Mixer, QkNorm, Span};
use rackmath_spec::{Dtype, Model};

fn read(fields: &str) -> Result<Model, String> {
    config_json("config.json", &format!("{{{fields}}}")).map_err(|e| e.to_string())
}

const LLAMA: &str = r#""model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100"#;

#[test]
fn a_field_the_family_does_not_use_but_that_speaks_of_shapes_is_refused() {
    let neox = r#""model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 100, "torch_dtype": "float16""#;
    assert!(read(neox).is_ok());
    assert!(read(&format!("{neox}, \"head_dim\": 32")).unwrap_err().contains("head_dim"));
    assert!(read(&format!("{LLAMA}, \"num_experts\": 8")).unwrap_err().contains("num_experts"));
}

#[test]
fn harmless_and_inert_fields_pass() {
    let model = read(&format!(
        "{LLAMA}, \"torch_dtype\": \"bfloat16\", \"bos_token_id\": 1, \"moe_window\": null, \"mood\": 3"
    ))
    .unwrap();
    assert_eq!(model.notes, ["fields passed over: mood"]);
    let silent = read(LLAMA).unwrap();
    assert!(silent.notes[0].contains("16-bit weights are assumed"), "{:?}", silent.notes);
}

#[test]
fn two_spellings_must_agree() {
    let mixtral = LLAMA.replace("\"llama\"", "\"mixtral\"") + ", \"num_local_experts\": 8, \"num_experts_per_tok\": 2";
    assert!(read(&mixtral).is_ok());
    assert!(read(&format!("{mixtral}, \"experts_per_token\": 4")).unwrap_err().contains("the same as"));
    assert!(
        read(&mixtral.replace("\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9"))
            .unwrap_err()
            .contains("at most")
    );
}

#[test]
fn quantisation_is_read_by_part_or_refused() {
    let quantised =
        |config: &str| read(&format!("{LLAMA}, \"torch_dtype\": \"bfloat16\", \"quantization_config\": {{{config}}}"));
    let formats = |config: &str| quantised(config).unwrap().formats();
    assert_eq!(formats(r#""quant_method": "fp8", "weight_block_size": [128, 128]"#).linear, Dtype::Fp8Block);
    let experts = formats(r#""quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]"#);
    assert_eq!((experts.routed, experts.linear, experts.other), (Dtype::MxFp4, Dtype::Bf16, Dtype::Bf16));
    assert_eq!(formats(r#""quant_method": "awq", "bits": 4, "group_size": 32"#).linear, Dtype::Int4G32);
    assert!(quantised(r#""quant_method": "magic""#).unwrap_err().contains("quant_method"));
}

#[test]
fn a_text_model_inside_a_wrapper_is_found() {
    let inner = LLAMA.replace("\"llama\"", "\"mistral\"");
    let model =
        read(&format!("\"model_type\": \"mistral3\", \"dtype\": \"bfloat16\", \"text_config\": {{{inner}}}")).unwrap();
    assert_eq!((model.shape().unwrap().n_layers(), model.formats().linear), (2, Dtype::Bf16));
}

#[test]
fn layers_that_share_an_indexer_keep_none_of_their_own() {
    let glm = r#""model_type": "glm_moe_dsa", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
        "num_attention_heads": 4, "vocab_size": 100, "q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 4, "v_head_dim": 4, "index_topk": 32, "index_n_heads": 2, "index_head_dim": 8,
        "index_topk_freq": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "mlp_layer_types": ["dense", "sparse", "sparse"], "torch_dtype": "bfloat16""#;
    let indexers = |types: &str| -> Result<Vec<(u64, u64)>, String> {
        let model = read(&format!("{glm}, \"indexer_types\": [{types}]"))?;
        let of = |mixer: &Mixer| match mixer {
            Mixer::Latent(a) => a.indexer.map(|i| (i.dim, i.top_k)).unwrap(),
            other => panic!("{other:?}"),
        };
        let runs = model.shape().unwrap().runs.iter();
        Ok(runs.flat_map(|run| (0..run.n).map(|_| of(&run.block.mixer))).collect())
    };
    assert_eq!(indexers(r#""full", "shared", "full""#).unwrap(), [(8, 32), (0, 32), (8, 32)]);
    assert!(indexers(r#""shared", "full", "full""#).unwrap_err().contains("shared after a full one"));
    assert!(indexers(r#""full", "half", "full""#).unwrap_err().contains("indexer_types"));
    assert!(
        read(&glm.replace("\"dense\", \"sparse\"", "\"dense\", \"spars\"")).unwrap_err().contains("mlp_layer_types")
    );
}

#[test]
fn blocks_named_in_words_are_those_named_by_letters() {
    let nemotron = r#""model_type": "nemotron_h", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 100,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "mamba_num_heads": 4, "mamba_head_dim": 8,
        "n_groups": 2, "ssm_state_size": 16, "conv_kernel": 4, "torch_dtype": "bfloat16""#;
    let letters = read(&format!("{nemotron}, \"num_hidden_layers\": 3, \"hybrid_override_pattern\": \"M-*\"")).unwrap();
    let words = read(&format!("{nemotron}, \"layers_block_type\": [\"mamba\", \"mlp\", \"attention\"]")).unwrap();
    assert_eq!(letters.shape(), words.shape());
    let error = read(&format!("{nemotron}, \"layers_block_type\": [\"mamba\", \"mlb\"]")).unwrap_err();
    assert!(error.contains("mamba, attention, mlp or moe"), "{error}");
}

/// dots.llm1 as published, whose count of 142,774,381,696 is no rounding of its label of 142B.
#[test]
fn dots_has_the_attention_of_qwen3_and_the_experts_of_deepseek() {
    let dots = r#""model_type": "dots1", "attention_bias": false, "first_k_dense_replace": 1, "hidden_size": 4096, "intermediate_size": 10944,
        "max_position_embeddings": 32768, "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 128, "n_shared_experts": 2,
        "norm_topk_prob": true, "num_attention_heads": 32, "num_experts_per_tok": 6, "num_hidden_layers": 62, "num_key_value_heads": 32,
        "scoring_func": "noaux_tc", "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 152064"#;
    let model = read(&format!("{dots}, \"sliding_window\": null")).unwrap();
    let shape = model.shape().unwrap();
    assert_eq!(shape.runs.iter().map(|run| run.n).collect::<Vec<_>>(), [1, 61]);
    let Mixer::Attention(attention) = &shape.runs[1].block.mixer else { panic!("{shape:?}") };
    assert_eq!((attention.heads, attention.kv_heads, attention.qk_dim), (32, 32, 128));
    assert_eq!((attention.qk_norm, attention.span), (QkNorm::PerHead, Span::Full));
    let moe = shape.moe().unwrap();
    assert_eq!((moe.experts, moe.top_k, moe.expert.width), (128, 6, 1408));
    assert_eq!((moe.shared.map(|mlp| mlp.width), moe.router_vectors), (Some(2 * 1408), 1));
    // A window serves the layers from `max_window_layers` on.
    let model = read(&format!("{dots}, \"sliding_window\": 4096, \"max_window_layers\": 60")).unwrap();
    let spans = model.shape().unwrap().runs.iter().map(|run| match &run.block.mixer {
        Mixer::Attention(attention) => (run.n, attention.span),
        other => panic!("{other:?}"),
    });
    assert_eq!(spans.collect::<Vec<_>>(), [(1, Span::Full), (59, Span::Full), (2, Span::Window(4096))]);
}

/// Ling-lite-1.5 is of the first generation: no norms on queries and keys, no corrections, two shared experts.
#[test]
fn norms_and_corrections_of_ling_come_with_its_second_generation() {
    let ling = r#""model_type": "bailing_moe", "first_k_dense_replace": 0, "hidden_size": 2048, "intermediate_size": 1408,
        "moe_intermediate_size": 1408, "num_experts": 64, "num_shared_experts": 2, "norm_topk_prob": true, "num_attention_heads": 16,
        "num_experts_per_tok": 6, "num_hidden_layers": 28, "num_key_value_heads": 4, "torch_dtype": "bfloat16", "use_bias": false,
        "use_qkv_bias": false, "vocab_size": 126464, "norm_head": false, "norm_softmax": false"#;
    for (class, norm, corrections) in
        [("BailingMoeForCausalLM", QkNorm::None, 0), ("BailingMoeV2ForCausalLM", QkNorm::PerHead, 1)]
    {
        let model = read(&format!("{ling}, \"architectures\": [\"{class}\"]")).unwrap();
        let shape = model.shape().unwrap();
        let Mixer::Attention(attention) = &shape.runs[0].block.mixer else { panic!("{shape:?}") };
        let moe = shape.moe().unwrap();
        assert_eq!((attention.qk_norm, moe.router_vectors), (norm, corrections), "{class}");
        assert_eq!(moe.shared.map(|mlp| mlp.width), Some(2 * 1408));
    }
}
