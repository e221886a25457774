//! A model that is not in the catalogue: its config.json with the weight files beside it, on this machine or from a hub.

use assert_cmd::Command;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;

const CONFIG: &str = r#"{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": false}"#;

const INDEX: &str = "model.safetensors.index.json";

/// 8 layers of 1024 x (1024 + 2 x 256 + 1024) + 3 x 1024 x 4096 weights and two norms, a last norm, and two tables of 32,000 rows, at 2 bytes each.
const BYTES: u64 = 2 * (8 * (1024 * 2560 + 3 * 1024 * 4096 + 2 * 1024) + 1024 + 2 * 32_000 * 1024);

fn index(bytes: u64, tensor: &str) -> String {
    format!(
        r#"{{"metadata": {{"total_size": {bytes}}}, "weight_map": {{"model.layers.0.mlp.up_proj.{tensor}": "a.safetensors"}}}}"#
    )
}

fn folder(name: &str, files: &[(&str, &[u8])]) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (file, bytes) in files {
        std::fs::write(folder.join(file), bytes).unwrap();
    }
    folder
}

fn command() -> Command {
    Command::cargo_bin("rackmath").expect("built")
}

fn asked(model: &str) -> String {
    let out = command().args(["estimate", model, "--on", "h100", "--width", "400", "--explain"]).output().unwrap();
    String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap()
}

#[test]
fn weight_files_beside_a_config_are_held_against_it_and_tell_its_format() {
    let wide = index(BYTES, "weight");
    let page = asked(folder("wide", &[("config.json", CONFIG.as_bytes()), (INDEX, wide.as_bytes())]).to_str().unwrap());
    assert!(page.contains("they agree"), "{page}");
    let other = index(3 * BYTES, "weight");
    let page =
        asked(folder("other", &[("config.json", CONFIG.as_bytes()), (INDEX, other.as_bytes())]).to_str().unwrap());
    assert!(page.contains("200 % apart"), "{page}");
    let blocks = index(BYTES / 2, "weight_scale_inv");
    let page =
        asked(folder("blocks", &[("config.json", CONFIG.as_bytes()), (INDEX, blocks.as_bytes())]).to_str().unwrap());
    assert!(page.contains("weights fp8-block"), "{page}");
    // One file without an index: its own head says the type.
    let head =
        r#"{"model.embed_tokens.weight": {"dtype": "F16", "shape": [32000, 1024], "data_offsets": [0, 65536000]}}"#;
    let file = [&(head.len() as u64).to_le_bytes()[..], head.as_bytes()].concat();
    let page =
        asked(folder("one", &[("config.json", CONFIG.as_bytes()), ("model.safetensors", &file)]).to_str().unwrap());
    assert!(page.contains("weights fp16"), "{page}");
    let page = asked(
        folder("broken", &[("config.json", CONFIG.as_bytes()), ("model.safetensors", b"short")]).to_str().unwrap(),
    );
    assert!(page.contains("error:") && page.contains("safetensors"), "{page}");
}

/// A hub that answers so many calls, and what each of them was.
fn hub(calls: usize) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (heard, calls_heard) = mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..calls {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer).unwrap_or(0);
            let call = String::from_utf8_lossy(&buffer[..n]).into_owned();
            let (status, body) = match call.split(' ').nth(1).unwrap_or("") {
                "/acme/tiny/resolve/main/config.json" => ("200 OK", CONFIG.to_owned()),
                "/acme/tiny/resolve/main/model.safetensors.index.json" => ("200 OK", index(BYTES, "weight")),
                "/acme/closed/resolve/main/config.json" => ("401 Unauthorized", String::new()),
                _ => ("404 Not Found", String::new()),
            };
            let length = body.len();
            _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            _ = heard.send(call);
        }
    });
    (address, calls_heard)
}

/// What a person sees who asks for a model of a hub.
fn fetched(model: &str, endpoint: &str, fetch: &[&str]) -> String {
    let nothing = folder("no-cache", &[]);
    let out = command()
        .args(["estimate", model, "--on", "h100", "--width", "400", "--explain"])
        .args(fetch)
        .envs([("HF_ENDPOINT", endpoint), ("HF_TOKEN", "hf_secret"), ("HF_HOME", nothing.to_str().unwrap())])
        .env_remove("HF_HUB_CACHE")
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let page = String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap();
    assert!(!page.contains("hf_secret"), "{page}");
    page
}

#[test]
fn a_hub_is_asked_only_when_told_with_a_token_that_is_never_shown() {
    let (endpoint, heard) = hub(2);
    let page = fetched("acme/tiny", &endpoint, &[]);
    assert!(page.contains("error: no model") && heard.try_recv().is_err(), "{page}");
    let page = fetched("acme/tiny", &endpoint, &["--fetch"]);
    assert!(page.contains("they agree"), "{page}");
    let first = heard.recv().unwrap();
    assert!(first.contains("Authorization: Bearer hf_secret"), "{first}");
}

#[test]
fn a_hub_that_has_no_such_model_or_is_not_there_is_said_so() {
    let (endpoint, _heard) = hub(2);
    let page = fetched("acme/none", &endpoint, &["--fetch"]);
    assert!(page.contains("acme/none has no config.json on"), "{page}");
    let page = fetched("acme/closed", &endpoint, &["--fetch"]);
    assert!(page.contains("acme/closed is closed") && page.contains("HF_TOKEN"), "{page}");
    let page = fetched("acme/tiny", "http://127.0.0.1:1", &["--fetch"]);
    assert!(page.contains("cannot be reached") && page.contains("config.json"), "{page}");
    let page = fetched("acme/tiny", "ftp://somewhere", &["--fetch"]);
    assert!(page.contains("HF_ENDPOINT is no address"), "{page}");
}
