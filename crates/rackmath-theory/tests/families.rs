//! Families of `config.json` as published: each counts what the catalogue's file of the same shapes counts, or what was published.

use rackmath_catalog::embedded;
use rackmath_spec::file::config_json;
use rackmath_theory::count::count;

fn counted(config: &str) -> (u128, String) {
    let model = config_json("config.json", config).unwrap_or_else(|e| panic!("{e}"));
    (count(&model).total(), model.notes.join("; "))
}

fn catalogued(id: &str) -> u128 {
    count(&embedded().model(id).unwrap()).total()
}

#[test]
fn a_config_as_published_counts_what_the_catalogue_counts() {
    for (id, config) in [
        (
            "granite-3.3-8b",
            r#"{"model_type": "granite", "hidden_size": 4096, "intermediate_size": 12800, "num_hidden_layers": 40,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 49159, "tie_word_embeddings": true, "attention_multiplier": 0.0078125,
            "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 16.0, "torch_dtype": "bfloat16", "attention_bias": false, "mlp_bias": false}"#,
        ),
        (
            "ministral-3-8b",
            r#"{"model_type": "mistral3", "dtype": "bfloat16", "text_config": {"model_type": "ministral3", "hidden_size": 4096,
            "intermediate_size": 14336, "num_hidden_layers": 34, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072,
            "max_position_embeddings": 262144, "tie_word_embeddings": false, "rope_parameters": {"rope_type": "yarn"}}}"#,
        ),
        (
            "qwen2.5-vl-32b",
            r#"{"model_type": "qwen2_5_vl", "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 40,
            "num_key_value_heads": 8, "vocab_size": 152064, "tie_word_embeddings": false, "use_sliding_window": false, "max_window_layers": 64, "torch_dtype": "bfloat16"}"#,
        ),
        (
            "qwen3-vl-8b",
            r#"{"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096, "intermediate_size": 12288,
            "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "attention_bias": false,
            "dtype": "bfloat16"}, "tie_word_embeddings": false}"#,
        ),
        (
            "smollm3-3b",
            r#"{"model_type": "smollm3", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
            "num_key_value_heads": 4, "vocab_size": 128256, "no_rope_layer_interval": 4, "tie_word_embeddings": true, "use_sliding_window": false,
            "attention_bias": false, "mlp_bias": false, "torch_dtype": "bfloat16"}"#,
        ),
    ] {
        assert_eq!(counted(config).0, catalogued(id), "{id}");
    }
}

#[test]
fn layers_that_read_pictures_are_counted_and_hold_no_cache() {
    // Llama 3.1 8B and eight layers more of its own shapes, with two norms of 128 and two gates each, and eight rows of the embedding.
    let layer = 4096 * (4096 + 2 * 1024 + 4096) + 3 * 4096 * 14336 + 2 * 4096;
    let more = 8 * (layer + 2 * 128 + 2) + 8 * 4096;
    assert_eq!(catalogued("llama-3.2-11b-vision"), catalogued("llama-3.1-8b") + more);
    let (vision, text) = ("llama-3.2-11b-vision", "llama-3.1-8b");
    let cache = |id: &str| {
        let model = embedded().model(id).unwrap();
        rackmath_theory::kv::cache(&model, model.cache_dtype()).stored(rackmath_units::Tokens::new(8192.0)).get()
    };
    assert!((cache(vision) / cache(text) - 1.0).abs() < 0.001, "{} and {}", cache(vision), cache(text));
}

#[test]
fn windows_and_norms_are_where_the_family_puts_them() {
    // 4 layers: 32 x (32 + 2 x 16 + 32) + 3 x 32 x 64 = 9,216 weights each, norms apart; a head and an embedding of 100 rows, a last norm.
    let body = r#""hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": 100, "tie_word_embeddings": false, "torch_dtype": "bfloat16""#;
    let plain = 4 * (9_216 + 2 * 32) + 2 * 100 * 32 + 32;
    for (family, more, than) in [
        ("llama", "", 0),
        ("minicpm", "", 0),
        ("glm4", "", 4 * 2 * 32),
        ("glm", r#", "attention_bias": true"#, 4 * (32 + 2 * 16)),
        ("exaone4", r#", "sliding_window": 16, "sliding_window_pattern": "LLLG""#, 4 * 2 * 8),
        ("olmo3", r#", "sliding_window": 16"#, 4 * (32 + 16)),
        ("ernie4_5", r#", "use_bias": false"#, 0),
        ("seed_oss", r#", "attention_bias": true, "attention_out_bias": false"#, 4 * (32 + 2 * 16)),
    ] {
        let (n, notes) = counted(&format!(r#"{{"model_type": "{family}", {body}{more}}}"#));
        assert_eq!(n, plain + than, "{family}: {notes}");
    }
}
