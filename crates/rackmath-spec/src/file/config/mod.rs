//! Reads a Hugging Face `config.json`: finds the architecture, then asks that family's reader for the shapes.
//!
//! A family reader consumes the fields it understands. What is left over is either known to be harmless, or noted, or,
//! when its name speaks of shapes, a reason to refuse: a wrong parameter count is worse than none.

mod dense;
mod elder;
mod encoder;
mod exotic;
mod fields;
mod formats;
mod hybrid;
mod latent;
mod moe;
mod parts;
mod recent;
mod towers;

use crate::model::Shape;
use crate::{SpecError, error, error::shorten};
use fields::Fields;
use serde_json::{Map, Value};

type Reader = fn(&Fields, &mut Vec<String>) -> Result<Shape, SpecError>;

/// `model_type` as transformers spells it, those that are read alike together, and who reads it.
const FAMILIES: &[(&str, Reader)] = &[
    // Families of Llama's shapes under names of their own.
    ("llama baichuan xverse aquila solar minicpm", dense::llama),
    ("granite", dense::granite),
    ("smollm3", dense::smollm3),
    ("seed_oss", dense::seed_oss),
    ("ernie4_5", dense::ernie),
    ("mllama_text_model", dense::mllama),
    ("mistral ministral ministral3", dense::mistral),
    ("qwen2 qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text", dense::qwen2),
    ("mimo", dense::mimo),
    ("qwen3 qwen3_vl_text hunyuan_v1_dense", dense::qwen3),
    ("glm", dense::glm),
    ("glm4 glm4v_text", dense::glm4),
    ("exaone4", dense::exaone4),
    ("exaone", dense::exaone),
    ("apertus", dense::apertus),
    ("arcee", dense::arcee),
    ("stablelm", dense::stablelm),
    ("phi3", dense::phi3),
    ("internlm internlm2", dense::internlm),
    ("olmo2", dense::olmo2),
    ("olmo3", dense::olmo3),
    ("cohere", dense::cohere),
    ("cohere2", dense::cohere2),
    ("gemma", dense::gemma),
    ("gemma2", dense::gemma2),
    ("gemma3_text", dense::gemma3),
    ("qwen", dense::qwen1),
    ("bert", encoder::bert),
    ("xlm-roberta roberta", encoder::xlm_roberta),
    ("jina_embeddings_v3", encoder::jina_v3),
    ("mpnet", encoder::mpnet),
    ("modernbert", encoder::modernbert),
    ("nomic_bert", encoder::nomic_bert),
    ("gptj", elder::gptj),
    ("gpt2", elder::gpt2),
    ("gpt_neox", elder::gpt_neox),
    ("gpt_bigcode", elder::gpt_bigcode),
    ("opt", elder::opt),
    ("bloom", elder::bloom),
    ("falcon", elder::falcon),
    ("mpt", elder::mpt),
    ("phi", elder::phi),
    ("starcoder2", elder::starcoder2),
    ("mixtral", moe::mixtral),
    ("qwen2_moe", moe::qwen2_moe),
    ("qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text", moe::qwen3_moe),
    ("olmoe", moe::olmoe),
    ("gpt_oss", moe::gpt_oss),
    ("llama4_text", moe::llama4),
    ("minimax_m2", moe::minimax_m2),
    ("minimax_m3", moe::minimax_m3),
    ("glm4_moe glm4v_moe_text", moe::glm4_moe),
    ("bailing_moe bailing_moe_v2", moe::bailing),
    ("dots1", moe::dots1),
    ("mimo_v2_flash mimo_v2", moe::mimo_v2),
    ("afmoe", moe::afmoe),
    ("step3p5", moe::step3p5),
    ("dbrx", moe::dbrx),
    ("phimoe", moe::phimoe),
    ("hunyuan", moe::hunyuan),
    ("ernie4_5_moe", recent::ernie_moe),
    ("hy_v3", recent::hy3),
    ("solar_open", recent::solar_open),
    ("laguna", recent::laguna),
    ("nemotron-nas", recent::nemotron_nas),
    ("deepseek_v2 mistral4", |f, notes| latent::deepseek(f, notes, 0, 0)),
    // One correction value per expert.
    ("deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm_moe_dsa", |f, notes| latent::deepseek(f, notes, 1, 0)),
    // GLM-4.7-Flash: the extra layer repeats embedding and head.
    ("glm4_moe_lite", |f, notes| latent::deepseek(f, notes, 1, 2)),
    ("longcat_flash", latent::longcat),
    ("minicpm3", latent::minicpm3),
    ("kimi_linear", hybrid::kimi_linear),
    ("qwen3_next", hybrid::qwen3_next),
    ("qwen3_5_text qwen3_5_moe_text", hybrid::qwen3_5),
    ("nemotron_h", hybrid::nemotron_h),
    ("jamba", hybrid::jamba),
    ("mamba falcon_mamba", hybrid::mamba),
    ("mamba2", hybrid::mamba_2),
    ("mamba_ssm", hybrid::mamba_ssm),
    ("granitemoehybrid", hybrid::granite_hybrid),
    ("minimax_text_01", hybrid::minimax_text_01),
    ("deepseek_v4", exotic::deepseek_v4),
    ("gemma4_text gemma4_unified_text", exotic::gemma4),
    ("gemma3n_text", exotic::gemma3n),
];

/// Multimodal wrappers and older spellings, by the text model inside.
const WRAPPERS: &[(&str, &str)] = &[
    ("gemma3", "gemma3_text"),
    ("gemma3n", "gemma3n_text"),
    ("gemma4", "gemma4_text"),
    ("gemma4_unified", "gemma4_unified_text"),
    ("llama4", "llama4_text"),
    ("mistral3", "mistral"),
    ("mllama", "mllama_text_model"),
    ("qwen2_vl", "qwen2"),
    ("qwen2_5_vl", "qwen2"),
    ("qwen3_vl", "qwen3_vl_text"),
    ("qwen3_vl_moe", "qwen3_vl_moe_text"),
    ("glm4v", "glm4v_text"),
    ("glm4v_moe", "glm4v_moe_text"),
    ("qwen3_5", "qwen3_5_text"),
    ("qwen3_5_moe", "qwen3_5_moe_text"),
    ("kimi_k3", "kimi_linear"),
    ("minimax_m3_vl", "minimax_m3"),
    ("MiniMaxM1", "minimax_text_01"),
    ("hunyuan_v1_moe", "hunyuan"),
    ("RefinedWebModel", "falcon"),
    ("RefinedWeb", "falcon"),
];

/// Fields that say nothing about shapes.
const HARMLESS: &str = "_attn_implementation_autoset _name_or_path _remove_final_layer_norm activation_function add_cross_attention \
     alibi architectures attention_dropout attention_probs_dropout_prob attention_softmax_in_fp32 \
     attn_implementation attn_logit_softcapping attn_pdrop auto_map aux_loss_alpha bos_token_id cache_implementation \
     dtype embd_pdrop eos_token_id ep_size expert_dtype final_logit_softcapping hidden_act hidden_activation \
     hidden_dropout hidden_dropout_prob id2label image_token_id image_token_index initializer_range \
     is_encoder_decoder label2id layer_norm_epsilon layer_norm_eps layerdrop logit_scale masked_softmax_fusion \
     max_length max_position_embeddings max_seq_len max_window_layers mlp_hidden_act mm_tokens_per_image \
     model_max_length model_type n_group n_positions norm_epsilon norm_topk_prob num_attention_heads_per_group \
     original_max_position_embeddings output_router_logits pad_token_id pretraining_tp processor quantization_config \
     query_pre_attn_scalar reorder_and_upcast_attn resid_pdrop rms_norm_eps rotary_dim rotary_emb_base rotary_pct \
     router_aux_loss_coef router_jitter_noise routed_scaling_factor scale_attention_softmax_in_fp32 \
     scale_attn_by_inverse_layer_idx scale_attn_weights scoring_func seq_aux seq_length slow_but_exact \
     spatial_merge_size stored summary_activation summary_first_dropout summary_proj_to_labels summary_type \
     summary_use_proj swiglu_alpha swiglu_limit task_specific_params text_config tokenizer_class topk_group \
     topk_method torch_dtype transformers_version unk_token_id use_cache use_flash_attn use_logn_attn \
     use_dynamic_ntk vision_config audio_config video_token_id vision_start_token_id vision_end_token_id vocab_size";

/// Parts of a field's name that speak of shapes.
const SHAPE_WORDS: &str = "head layer expert rank dim hidden intermediate ffn mlp attn attention kv conv state window chunk moe mtp nextn \
     index compress latent share ssm mamba linear expand embd embedding";

/// Reads the shapes, and notes what the user should know.
pub(super) fn shape(file: &str, root: &Value, notes: &mut Vec<String>) -> Result<Shape, SpecError> {
    let Value::Object(outer) = root else {
        return Err(SpecError::file(file, "a config.json is an object of fields"));
    };
    // Models that also speak keep what reads and answers in a part of its own.
    let outer = outer.get("thinker_config").and_then(Value::as_object).unwrap_or(outer);
    let text = ["text_config", "llm_config", "language_config"].iter().find_map(|key| outer.get(*key)?.as_object());
    let (fields, inner) = match text {
        Some(text) => (Fields::text(file, text, outer), text),
        None => (Fields::new(file, outer), outer),
    };
    let (architecture, reader) = family(file, inner, outer)?;
    let shape = reader(&fields, notes)?;
    sound(&fields, &shape)?;
    leftovers(&fields, &architecture, notes)?;
    let (towers, unread_towers) = towers::towers(file, outer, &shape, notes)?;
    // Published without a head, to give vectors.
    let class = outer.get("architectures").and_then(|a| a.get(0)).and_then(Value::as_str).unwrap_or("");
    let headless = shape.headless || HEADLESS.contains(&class);
    Ok(Shape { architecture, headless, towers, unread_towers, ..shape })
}

/// The `model_type` of the text model and its reader.
fn family(file: &str, inner: &Map<String, Value>, outer: &Map<String, Value>) -> Result<(String, Reader), SpecError> {
    let named = |map: &Map<String, Value>| map.get("model_type").and_then(Value::as_str).map(str::to_owned);
    let from_class = || {
        let class = outer.get("architectures")?.get(0)?.as_str()?;
        CLASSES.iter().find(|(name, _)| *name == class).map(|(_, family)| (*family).to_owned())
    };
    // The original state-space releases name no type but carry their settings in `ssm_cfg`.
    let ssm = || outer.contains_key("ssm_cfg").then(|| "mamba_ssm".to_owned());
    let given = named(inner).or_else(|| named(outer)).or_else(from_class).or_else(ssm);
    let given = given.unwrap_or_else(|| {
        let class = outer.get("architectures").and_then(|a| a.get(0)).and_then(Value::as_str);
        class.unwrap_or("unnamed").to_owned()
    });
    let key = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == given).map_or(given.as_str(), |(_, inside)| inside);
    if let Some((_, reader)) = FAMILIES.iter().find(|(names, _)| names.split(' ').any(|name| name == key)) {
        Ok((key.to_owned(), *reader))
    } else {
        let families = FAMILIES.iter().flat_map(|(names, _)| names.split(' '));
        let known = families.chain(WRAPPERS.iter().map(|(name, _)| *name));
        let two = |map: &Map<String, Value>| map.get("is_encoder_decoder").and_then(Value::as_bool) == Some(true);
        if two(inner) || two(outer) {
            let problem = format!("\"{}\" {}", shorten(&given), crate::name::TWO_STACKS);
            return Err(SpecError::file(file, problem)
                .hint("models of one stack are known, with or without an encoder of sound before it"));
        }
        let mut fields: Vec<String> = inner.keys().filter(|k| !harmless(k)).take(40).map(|k| shorten(k)).collect();
        fields.sort();
        let problem = format!(
            "architecture \"{}\" is not known, so its parameters and KV cache cannot be counted",
            shorten(&given)
        );
        let near = error::did_you_mean(&error::nearest(&given, known)).map_or(String::new(), |near| near + "; ");
        let fields = if fields.is_empty() { "none".into() } else { fields.join(", ") };
        Err(SpecError::file(file, problem).hint(format!("{near}fields not understood: {fields}")))
    }
}

/// Classes of decoders without a head.
const HEADLESS: [&str; 5] = ["MistralModel", "LlamaModel", "Qwen2Model", "Qwen3Model", "Gemma3TextModel"];

/// Classes of files that carry no `model_type`.
const CLASSES: &[(&str, &str)] = &[
    ("LlamaForCausalLM", "llama"),
    ("MistralForCausalLM", "mistral"),
    ("MixtralForCausalLM", "mixtral"),
    ("Qwen2ForCausalLM", "qwen2"),
    ("Qwen3ForCausalLM", "qwen3"),
    ("Qwen3MoeForCausalLM", "qwen3_moe"),
    ("DeepseekV3ForCausalLM", "deepseek_v3"),
    ("DeepseekV32ForCausalLM", "deepseek_v32"),
    ("MiniMaxM3SparseForConditionalGeneration", "minimax_m3"),
];

fn harmless(key: &str) -> bool {
    HARMLESS.split(' ').any(|word| word == key)
        || key.starts_with("rope")
        || key.ends_with("_token_id")
        || key.ends_with("_dropout")
        || key.contains("rotary")
        || key.contains("_theta")
        || key.contains("_eps")
        || key.contains("initializer")
}

/// Refuses unread fields that speak of shapes, notes the others.
fn leftovers(fields: &Fields, architecture: &str, notes: &mut Vec<String>) -> Result<(), SpecError> {
    let unread: Vec<&str> = fields.unread().into_iter().filter(|key| !harmless(key)).collect();
    let speaks = |key: &str| SHAPE_WORDS.split(' ').any(|word| key.contains(word));
    let inert = |key: &str| match fields.get(key) {
        None => true,
        Some(value) => {
            value.as_bool() == Some(false) || value.as_u64() == Some(0) || value.as_array().is_some_and(Vec::is_empty)
        }
    };
    let (shapes, others): (Vec<&str>, Vec<&str>) = unread.into_iter().partition(|key| speaks(key) && !inert(key));
    if !shapes.is_empty() {
        let shapes: Vec<String> = shapes.into_iter().take(40).map(shorten).collect();
        let shapes = shapes.join(", ");
        let problem = format!("fields that may change the shapes of \"{architecture}\" are not understood: {shapes}");
        return Err(SpecError::file(fields.file, problem).hint("if they do not, remove them from a copy of the file"));
    }
    if !others.is_empty() {
        let listed: Vec<String> = others.into_iter().take(20).map(shorten).collect();
        notes.push(format!("fields passed over: {}", listed.join(", ")));
    }
    Ok(())
}

/// What every model must satisfy, whoever read it.
fn sound(fields: &Fields, shape: &Shape) -> Result<(), SpecError> {
    use crate::model::{Ffn, Mixer};
    for run in &shape.runs {
        if let Mixer::Attention(a) = &run.block.mixer
            && a.heads % a.kv_heads != 0
        {
            let expected = format!("a divisor of the {} query heads", a.heads);
            return Err(fields.refuse("num_key_value_heads", a.kv_heads, expected));
        }
        if let Ffn::Moe(moe) = &run.block.ffn
            && moe.top_k > moe.experts + moe.zero_experts
        {
            let expected = format!("at most the {} experts", moe.experts + moe.zero_experts);
            return Err(fields.refuse("num_experts_per_tok", moe.top_k, expected));
        }
    }
    Ok(())
}
