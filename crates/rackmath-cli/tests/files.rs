//! Files that users bring and files that are written: configurations, chips, systems, sheets, traces, laws, pictures.

mod common;

use common::{line, refused, shown, temp};
use std::fmt::Write as _;
use std::path::PathBuf;

#[test]
fn a_users_config_is_read_by_path() {
    let path = temp(
        "config.json",
        br#"{
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
        "tie_word_embeddings": false, "max_position_embeddings": 131072
    }"#,
    );
    let text = shown(&["models", &path]);
    assert!(text.contains("8,030,261,248"), "{text}");
}

#[test]
fn hostile_configs_get_a_clear_error_quickly() {
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("truncated.json", b"{\"model_type\": \"llama\", \"hidden_si".to_vec(), "not JSON"),
        ("empty.json", Vec::new(), "not JSON"),
        ("negative.json", llama("\"num_hidden_layers\": -3"), "num_hidden_layers = -3"),
        ("huge.json", llama("\"num_attention_heads\": 1e30"), "num_attention_heads = 1e"),
        ("nan.json", llama("\"hidden_size\": NaN"), "not JSON"),
        ("text.json", llama("\"hidden_size\": \"wide\""), "hidden_size = \"wide\""),
        ("list.json", b"[1, 2, 3]".to_vec(), "an object of fields"),
        ("deep.json", ["[".repeat(10_000), "]".repeat(10_000)].concat().into_bytes(), "not JSON"),
        ("unknown.json", b"{\"model_type\": \"lama\", \"wormholes\": 4}".to_vec(), "wormholes"),
        ("field.json", llama("\"num_kv_shared_layers\": 9"), "num_kv_shared_layers"),
        ("binary.json", vec![0xff, 0xfe, 0x00], "not UTF-8"),
    ];
    for (name, bytes, expected) in cases {
        let path = temp(name, &bytes);
        let error = refused(&["step", &path]);
        assert!(error.contains(expected), "{name}: {error}");
    }
}

fn llama(field: &str) -> Vec<u8> {
    let rest = "\"intermediate_size\": 64, \"vocab_size\": 100, \"torch_dtype\": \"bfloat16\"";
    let defaults = ["\"num_hidden_layers\": 2", "\"num_attention_heads\": 4", "\"hidden_size\": 32"];
    let key = field.split(':').next().unwrap();
    let kept: Vec<&str> = defaults.into_iter().filter(|d| !d.starts_with(key)).collect();
    format!("{{\"model_type\": \"llama\", {rest}, {}, {field}}}", kept.join(", ")).into_bytes()
}

#[test]
fn a_two_gigabyte_file_is_refused_without_being_read() {
    // A sparse file: two gigabytes long, no bytes on disk.
    let path = temp("two-gigabytes.json", b"");
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(2 << 30).unwrap();
    let error = refused(&["step", &path]);
    assert!(error.contains("larger than 8 MiB"), "{error}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_users_chip_and_system_are_read_by_path() {
    let chip = temp(
        "mychip.toml",
        br#"
name = "My chip"
vendor = "me"
generation = "first"
dies = 1
as_of = "2026-11"
[memory]
kind = "HBM9"
capacity = { value = "1 TB", source = "a drawing on my desk" }
bandwidth = { value = "100 TB/s", source = "a drawing on my desk" }
[peak]
bf16 = { value = "10 PFLOP/s", source = "a drawing on my desk" }
[link]
kind = "none"
domain = { value = 1, source = "a drawing on my desk" }
"#,
    );
    let text = shown(&["step", "llama-3.1-8b", "--on", &chip, "-b", "1"]);
    assert!(text.contains("My chip") && text.contains("price: $0/h per chip, no price is known"), "{text}");
}

#[test]
fn a_users_system_has_levels() {
    let system = temp(
        "myrack.toml",
        br#"
name = "My rack"
chip = "h200"
n_chips = 32
as_of = "2026-11"
[[level]]
name = "nvlink"
chips = 32
topology = "switched"
bandwidth = { value = "450 GB/s", source = "a drawing on my desk" }
[[level]]
name = "ethernet"
chips = 1024
topology = "switched"
nics_per_chip = 0.5
oversubscription = 2
bandwidth = { value = "200 Gb/s", source = "a drawing on my desk" }
"#,
    );
    let text = shown(&["layout", "deepseek-v3", "--on", &system, "--kv", "fp8"]);
    assert!(text.contains("My rack: dp32 ep32"), "{text}");
    let torus = temp("torus.toml", b"name = \"T\"\nchip = \"tpu-v5e\"\nn_chips = 16\nas_of = \"2026-11\"\n[[level]]\nname = \"ici\"\nchips = 16\ntopology = \"torus\"\ndims = [4, 5]\nbandwidth = { value = \"1 GB/s\", source = \"a drawing on my desk\" }\n");
    assert!(refused(&["systems", "./nothing"]).contains("no system"));
    assert!(refused(&["layout", "llama-3.1-8b", "--on", &torus]).contains("multiply to 16"));
}

#[test]
fn price_of_a_day_in_the_past() {
    let now = shown(&["price", "o3", "-i", "1M", "--json"]);
    let then = shown(&["price", "o3", "-i", "1M", "--as-of", "2025-05-01", "--json"]);
    assert!(now.contains("\"total_usd\": 2.0") && then.contains("\"total_usd\": 10.0"), "{then}");
}

#[test]
fn price_of_a_trace() {
    let mut text = String::new();
    for i in 0..40u64 {
        let ids: Vec<String> = (0..=i % 5).map(|b| (b + 10 * (i % 3)).to_string()).collect();
        let _ = writeln!(
            text,
            "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": 50, \"hash_ids\": [{}]}}",
            i * 9_000,
            512 * ids.len(),
            ids.join(", ")
        );
    }
    let path = temp("trace.jsonl", &text);
    let out = shown(&["price", "opus-4.8", "--trace", &path]).replace(&path, "trace.jsonl");
    insta::assert_snapshot!(out);
    let out = shown(&["cache", "--trace", &path, "--json"]);
    assert!(out.contains("\"hit_rate_max\": 0.875"), "{out}");
}

const SHEET: &str = r#"
name = "Mine"
provider = "me"
model = "mine"
as_of = "2026-08-01"
[[list]]
from = "2026-07-01"
input = "$4/Mtok"
output = "$25/Mtok"
source = "read by hand"
[[list.cache]]
name = "5m"
ttl = "5 min"
write = "$6.25/Mtok"
read = "$0.50/Mtok"
source = "read by hand"
"#;

#[test]
fn a_sheet_of_ones_own_is_read_compared_and_refused_when_wrong() {
    let good = temp("mine.toml", SHEET);
    let out = shown(&["price", &good, "--against", "opus-4.8"]);
    assert!(out.contains("sources disagree") && out.contains("input: $4.00/Mtok used here, $5.00/Mtok"), "{out}");
    for (right, wrong, says) in [
        ("input = \"$4/Mtok\"", "imput = \"$4/Mtok\"", "imput"),
        ("\"$4/Mtok\"", "4", "list[0].input = 4"),
        ("\"$4/Mtok\"", "\"$-4/Mtok\"", "not negative"),
        ("\"$4/Mtok\"", "\"$4000/Mtok\"", "between $0.001 and $1,000"),
        ("2026-08-01", "2999-08-01", "as_of = 2999-08-01"),
    ] {
        let bad = temp("bad.toml", SHEET.replacen(right, wrong, 1));
        let err = refused(&["price", &bad]);
        assert!(err.contains("bad.toml") && err.contains(says), "{err}");
    }
}

#[test]
fn a_sheet_from_a_file_with_a_price_step() {
    let text = "model = \"gemini-3.1-pro\"\nvendor = \"google\"\nas_of = \"2026-08-08\"\ninput = \"$2/Mtok\"\noutput = \"$12/Mtok\"\ncached = \"$0.2/Mtok\"\nstorage = \"$4.50/Mtok-h\"\nlong_above = \"200k\"\nlong_input = \"$4/Mtok\"\nlong_output = \"$18/Mtok\"\n";
    let path = temp("gemini.toml", text);
    insta::assert_snapshot!(shown(&["deduce", &path]));
}

#[test]
fn bad_sheets_are_refused_by_file_and_field() {
    let complaints = [
        ("typo.toml", "inptu = \"$5/Mtok\"\n"),
        ("unit.toml", "input = 5\n"),
        ("negative.toml", "input = \"$-5/Mtok\"\n"),
        ("absurd.toml", "input = \"$114000/Mtok\"\n"),
        ("future.toml", "as_of = \"2999-01-01\"\ninput = \"$5/Mtok\"\n"),
    ]
    .map(|(name, text)| refused(&["deduce", &temp(name, text)]).replace(env!("CARGO_TARGET_TMPDIR"), "DIR"));
    // Today's date is in the last one.
    let text = complaints.join("\n");
    let text: String = text.lines().map(|l| l.split("not after today").next().unwrap_or(l).to_owned() + "\n").collect();
    insta::assert_snapshot!(text);
}

#[test]
fn a_sheet_of_the_catalogue_by_name() {
    insta::assert_snapshot!(line("deduce gpt-5.5 --tokens-per-s 60"));
    let svg = shown(&["deduce", "opus-4.6", "--figure", "ridge", "--svg", "-"]);
    assert!(svg.starts_with("<svg") && svg.contains("same input price"), "{svg}");
    let err = refused(&["deduce", "gpt-55"]);
    assert!(err.contains("gpt-5.5"), "{err}");
    let path = temp(
        "listed.toml",
        "name = \"Mine\"\nprovider = \"openai\"\nmodel = \"mine\"\nas_of = \"2026-08-01\"\n[[list]]\nfrom = \"2026-07-01\"\ninput = \"$4/Mtok\"\noutput = \"$25/Mtok\"\nsource = \"read by hand\"\n",
    );
    let json = shown(&["deduce", &path, "--json"]);
    assert!(json.contains("\"input_usd_per_mtok\": 4.0") && json.contains("Mine by openai"), "{json}");
}

#[test]
fn a_users_law_is_used() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("laws-of-mine");
    std::fs::create_dir_all(folder.join("laws")).unwrap();
    let law = "name = \"Mine\"\nform = \"chinchilla\"\nas_of = \"2026-11\"\nsource = \"my own runs of 2026\"\n\
        [coefficients]\ne = 1.5\na = 400.0\nb = 2000.0\nalpha = 0.35\nbeta = 0.36\n\
        [fitted]\nparams = [\"100M\", \"7B\"]\nsource = \"my own runs of 2026\"\n";
    std::fs::write(folder.join("laws/mine.toml"), law).unwrap();
    let text = shown(&["scaling", "--law", "mine", "--catalog", folder.to_str().unwrap()]);
    assert!(text.contains("my own runs of 2026") && text.contains("outside the range"), "{text}");
}

#[test]
fn pictures_and_points_are_written() {
    let (svg, png, csv) = (temp("a.svg", ""), temp("a.png", ""), temp("a.csv", ""));
    for question in [
        "curve",
        "scaling",
        "lifecycle",
        "goodput --figure chips",
        "reversible --depth 4 --steps 2 --figure avalanche",
        "cost",
        "fleet --output-tok-s 1M",
        "cache --gaps 30s:0.2 --figure hits",
        "fastmode",
        "price opus-4.8 --turns 5",
        "deduce opus-4.6 --figure ridge",
        "train llama-3.1-70b --tp 8 --pp 4 --chips 64",
        "estimate llama-3.1-8b --on h100 --sweep",
        "plan llama-3.1-8b --on 8xh100 --aggregated",
        "frontier llama-3.1-8b --on h100,h200 --aggregated",
    ] {
        line(&format!("{question} --svg {svg} --png {png} --csv {csv}"));
        assert!(std::fs::read_to_string(&svg).expect("written").starts_with("<svg"), "{question}");
        assert!(std::fs::read(&png).expect("written").starts_with(b"\x89PNG"), "{question}");
        assert!(std::fs::read_to_string(&csv).expect("written").lines().count() > 2, "{question}");
    }
    for question in ["layout", "memory", "traffic", "pipeline"] {
        line(&format!("{question} --svg {svg} --png {png}"));
        assert!(std::fs::read_to_string(&svg).expect("written").starts_with("<svg"), "{question}");
    }
    let rows = line("estimate llama-3.1-8b --on h100 --sweep --csv -");
    assert!(rows.starts_with("concurrency,output_tok_s_per_user,output_tok_s_per_chip,tpot_ms,"), "{rows}");
    let rows = line("frontier llama-3.1-8b --on h100,h200 --aggregated --csv -");
    assert!(rows.starts_with("curve,model,system,index,tok_s_per_user,") && rows.contains("\n\"h200\","), "{rows}");
    let rows = line("hardware llama-3.1-8b --among h100,l40s --chips 1 --aggregated --no-flips --csv -");
    assert!(rows.starts_with("name,system,usd_per_chip_hour,"), "{rows}");
}
