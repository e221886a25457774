//! What runs behind an address: the model, the engine and its version, the flags and the room for the cache, as far as the server tells.

use super::http::{Client, Fault};
use super::prompt::{Endpoint, Writing, safe_ids};
use crate::prometheus::{Reading, Scrape};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Flags of a server that change its speed, under the names by which servers tell them.
const FLAGS: [&str; 22] = [
    "tp_size",
    "dp_size",
    "pp_size",
    "ep_size",
    "mem_fraction_static",
    "max_running_requests",
    "chunked_prefill_size",
    "kv_cache_dtype",
    "quantization",
    "speculative_algorithm",
    "speculative_num_draft_tokens",
    "disable_cuda_graph",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enforce_eager",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "cache_dtype",
    "enable_prefix_caching",
    "dtype",
];

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Found {
    /// The name requests must give.
    pub model: String,
    /// Path or hub id, where the server tells it.
    pub root: Option<String>,
    pub engine: Option<String>,
    pub version: Option<String>,
    pub max_context: Option<u64>,
    pub vocabulary: Option<u64>,
    /// Tokens the cache holds.
    pub kv_tokens: Option<f64>,
    /// Slots of llama.cpp.
    pub slots: Option<u64>,
    pub flags: BTreeMap<String, String>,
    pub metrics: bool,
    /// Whether `/tokenize` answers.
    pub tokenizer: bool,
    /// What was asked and what came of it.
    pub asked: Vec<String>,
}

async fn json(client: &Client, path: &str, asked: &mut Vec<String>) -> Option<Value> {
    match client.fetch("GET", path, b"").await {
        Ok(whole) => {
            asked.push(format!("{path} {}", whole.status));
            serde_json::from_slice(&whole.body).ok().filter(|_| whole.status == 200)
        }
        Err(fault) => {
            asked.push(format!("{path}: {fault}"));
            None
        }
    }
}

/// `/metrics`, where the server has it; TensorRT-LLM's stands elsewhere.
pub async fn scraped(client: &Client) -> Option<Scrape> {
    for path in ["/metrics", "/prometheus/metrics"] {
        let whole = client.fetch("GET", path, b"").await.ok().filter(|w| w.status == 200);
        let scrape = whole.map(|whole| Scrape::read(&String::from_utf8_lossy(&whole.body)));
        if let Some(scrape) = scrape.filter(|s| s.dialect().is_some()) {
            return Some(scrape);
        }
    }
    None
}

/// Asks the server for everything. `model`: the name to use, where several are served.
pub async fn discovered(client: &Client, model: Option<&str>) -> Result<Found, Fault> {
    let mut found = Found::default();
    let models = client.fetch("GET", "/v1/models", b"").await;
    match &models {
        Ok(whole) => found.asked.push(format!("/v1/models {}", whole.status)),
        // Nothing there at all.
        Err(fault @ (Fault::Connect(_) | Fault::Tls(_) | Fault::Timeout(_))) => return Err(fault.clone()),
        Err(fault) => found.asked.push(format!("/v1/models: {fault}")),
    }
    let listed = models.ok().filter(|w| w.status == 200).and_then(|w| {
        found.engine = engine_word(&w.server);
        serde_json::from_slice::<Value>(&w.body).ok()
    });
    named(&mut found, listed.as_ref(), model);
    let mut asked = std::mem::take(&mut found.asked);
    if let Some(version) = json(client, "/version", &mut asked).await {
        found.version = version.get("version").and_then(Value::as_str).map(str::to_owned);
    }
    if let Some(scrape) = scraped(client).await {
        asked.push("/metrics 200".into());
        found.metrics = true;
        if let Some(reading) = Reading::of(&scrape) {
            found.engine = Some(reading.engine);
            found.kv_tokens = reading.kv_tokens;
        }
        for label in ["cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "block_size"] {
            if let Some(value) = scrape.label("vllm:cache_config_info", label) {
                found.flags.insert(label.into(), value.into());
            }
        }
    } else {
        asked.push("/metrics: none of a known engine".into());
    }
    let engine = found.engine.clone().unwrap_or_default();
    if matches!(engine.as_str(), "sglang" | "") {
        for path in ["/get_server_info", "/server_info"] {
            if let Some(info) = json(client, path, &mut asked).await {
                flags(&mut found, &info);
                break;
            }
        }
    } else if engine == "vllm"
        && let Some(info) = json(client, "/server_info?config_format=json", &mut asked).await
    {
        flags(&mut found, &info);
    }
    if matches!(engine.as_str(), "llamacpp" | "")
        && let Some(props) = json(client, "/props", &mut asked).await
    {
        slots(&mut found, &props);
    }
    if let Ok(whole) = client.fetch("POST", "/tokenize", tokenize(&found.model, "a").as_bytes()).await {
        asked.push(format!("/tokenize {}", whole.status));
        found.tokenizer = whole.status == 200 && tokens(&whole.body).is_some();
    }
    found.asked = asked;
    Ok(found)
}

fn engine_word(server: &str) -> Option<String> {
    let lower = server.to_ascii_lowercase();
    lower.contains("llama.cpp").then(|| "llamacpp".to_owned())
}

fn named(found: &mut Found, listed: Option<&Value>, model: Option<&str>) {
    let all = listed.and_then(|v| v.get("data")).and_then(Value::as_array);
    let of = |entry: &&Value| model.is_none_or(|m| entry.get("id").and_then(Value::as_str) == Some(m));
    let Some(entry) = all.and_then(|all| all.iter().find(of)) else {
        model.unwrap_or_default().clone_into(&mut found.model);
        return;
    };
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let meta = |key: &str| entry.get("meta").and_then(|m| m.get(key)).and_then(Value::as_u64);
    found.model = text("id").unwrap_or_default();
    found.root = text("root");
    found.max_context = entry.get("max_model_len").and_then(Value::as_u64).or_else(|| meta("n_ctx"));
    found.vocabulary = meta("n_vocab");
    let known = ["vllm", "sglang", "llamacpp", "tensorrt_llm", "tgi"];
    if let Some(owner) = text("owned_by").filter(|o| known.contains(&o.as_str())) {
        found.engine = Some(if owner == "tensorrt_llm" { "trtllm".into() } else { owner });
    }
}

/// Picks flags that change speed wherever they stand.
fn flags(found: &mut Found, info: &Value) {
    fn walk(
        value: &Value,
        depth: usize,
        out: &mut BTreeMap<String, String>,
        kv: &mut Option<f64>,
        version: &mut Option<String>,
    ) {
        match value {
            Value::Object(map) if depth < 6 => {
                for (key, value) in map {
                    if FLAGS.contains(&key.as_str()) && !value.is_null() && !value.is_object() {
                        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        out.entry(key.clone()).or_insert(text);
                    }
                    if key == "max_total_num_tokens" {
                        *kv = kv.or(value.as_f64());
                    }
                    if key == "version" && version.is_none() {
                        *version = value.as_str().map(str::to_owned);
                    }
                    walk(value, depth + 1, out, kv, version);
                }
            }
            Value::Array(all) if depth < 6 => all.iter().take(8).for_each(|v| walk(v, depth + 1, out, kv, version)),
            _ => {}
        }
    }
    walk(info, 0, &mut found.flags, &mut found.kv_tokens, &mut found.version);
}

fn slots(found: &mut Found, props: &Value) {
    if props.get("total_slots").is_none() {
        return;
    }
    found.engine.get_or_insert_with(|| "llamacpp".into());
    found.slots = props.get("total_slots").and_then(Value::as_u64);
    let context = props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64);
    found.max_context = context.or(found.max_context);
    found.kv_tokens = found.slots.zip(context).map(|(slots, n)| (slots * n) as f64).or(found.kv_tokens);
    let text = |key: &str| props.get(key).and_then(Value::as_str).map(str::to_owned);
    found.root = text("model_path").or_else(|| found.root.clone());
    found.version = text("build_info").or_else(|| found.version.clone());
    if let Some(kind) = text("model_ftype") {
        found.flags.insert("model_ftype".into(), kind);
    }
}

fn tokenize(model: &str, text: &str) -> String {
    // vLLM and SGLang read `prompt`, llama.cpp `content`, TGI `inputs`.
    serde_json::json!({ "model": model, "prompt": text, "content": text, "inputs": text }).to_string()
}

/// How many tokens a `/tokenize` counted.
fn tokens(body: &[u8]) -> Option<f64> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let list = value.get("tokens").and_then(Value::as_array).or_else(|| value.as_array());
    value.get("count").and_then(Value::as_f64).or_else(|| list.map(|l| l.len() as f64))
}

/// Prompts of exact length for this server: token numbers where it takes them; else words, of which it has been asked how many tokens they are.
pub async fn writing(client: &Client, found: &Found, endpoint: Option<Endpoint>, seed: u64) -> Result<Writing, Fault> {
    let engine = found.engine.as_deref().unwrap_or_default();
    let open = matches!(engine, "vllm" | "sglang" | "llamacpp" | "trtllm");
    let endpoint = endpoint.unwrap_or(if open { Endpoint::Tokens } else { Endpoint::Chat });
    let mut writing = Writing {
        endpoint,
        model: found.model.clone(),
        ids: safe_ids(found.vocabulary),
        words: (0.0, 1.0),
        continuous: matches!(engine, "vllm" | "sglang"),
        ignore_eos: open,
        seed,
    };
    if endpoint != Endpoint::Tokens {
        // Two lengths give the template and the word.
        let mut counted = [0.0; 2];
        for (count, n) in counted.iter_mut().zip([16_u32, 80]) {
            let body = writing.written(&[(9, n)], 1, false);
            let whole = client.fetch("POST", endpoint.path(), &body).await?;
            if whole.status != 200 {
                return Err(Fault::Status(whole.status, super::chunk::short(&String::from_utf8_lossy(&whole.body))));
            }
            let value: Value = serde_json::from_slice(&whole.body).unwrap_or_default();
            let usage = value.pointer("/usage/prompt_tokens").and_then(Value::as_f64);
            *count = usage.ok_or_else(|| Fault::Malformed("an answer without usage.prompt_tokens".into()))?;
        }
        let word = (counted[1] - counted[0]) / 64.0;
        if !(0.2..=8.0).contains(&word) {
            return Err(Fault::Malformed(format!(
                "prompts of 16 and 80 words counted as {} and {} tokens",
                counted[0], counted[1]
            )));
        }
        writing.words = (counted[0] - 16.0 * word, word);
    }
    Ok(writing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_servers_are_recognised() {
        let mut found = Found::default();
        let text = include_str!("../../tests/data/vllm_0.32.0_v1_models.json");
        named(&mut found, serde_json::from_str(text).ok().as_ref(), None);
        assert_eq!(
            (found.engine.as_deref(), found.max_context, found.model.as_str()),
            (Some("vllm"), Some(2048), "tiny-random")
        );
        let mut found = Found::default();
        let text = include_str!("../../tests/data/llamacpp_v1_models.json");
        named(&mut found, serde_json::from_str(text).ok().as_ref(), None);
        assert_eq!((found.engine.as_deref(), found.vocabulary), (Some("llamacpp"), Some(320)));
        let props = include_str!("../../tests/data/llamacpp_props.json");
        slots(&mut found, &serde_json::from_str(props).expect("json"));
        assert_eq!((found.slots, found.kv_tokens, found.max_context), (Some(4), Some(4096.0), Some(1024)));
    }

    #[test]
    fn flags_are_found_wherever_they_stand() {
        let mut found = Found::default();
        let info = serde_json::json!({"tp_size": 8, "x": {"quantization": "fp8", "kv_cache_dtype": null}, "internal_states": [{"max_total_num_tokens": 1000}], "version": "0.5.18"});
        flags(&mut found, &info);
        assert_eq!(found.flags.len(), 2);
        assert_eq!(
            (found.flags["tp_size"].as_str(), found.kv_tokens, found.version.as_deref()),
            ("8", Some(1000.0), Some("0.5.18"))
        );
    }
}
