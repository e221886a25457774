//! Files that users bring and files that are written: configurations, chips, systems, sheets, traces, laws, pictures.

mod common;

use common::{folder, read, refused, said, shown, temp, whole};
use std::fmt::Write as _;

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
        said(&[(&format!("step {}", temp(name, &bytes)), expected)]);
    }
    // A sparse file: two gigabytes long, no bytes on disk.
    let path = temp("two-gigabytes.json", b"");
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(2 << 30).unwrap();
    said(&[(&format!("step {path}"), "larger than 8 MiB")]);
    std::fs::remove_file(path).unwrap();
}

fn llama(field: &str) -> Vec<u8> {
    let rest = "\"intermediate_size\": 64, \"vocab_size\": 100, \"torch_dtype\": \"bfloat16\"";
    let defaults = ["\"num_hidden_layers\": 2", "\"num_attention_heads\": 4", "\"hidden_size\": 32"];
    let key = field.split(':').next().unwrap();
    let kept: Vec<&str> = defaults.into_iter().filter(|d| !d.starts_with(key)).collect();
    format!("{{\"model_type\": \"llama\", {rest}, {}, {field}}}", kept.join(", ")).into_bytes()
}

#[test]
fn a_model_that_was_downloaded_is_read_where_it_lies() {
    let hub = std::env::temp_dir().join(format!("rackmath-hub-{}", std::process::id()));
    let snapshot = hub.join("hub/models--acme--Own-7B/snapshots/abc123");
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::write(snapshot.join("config.json"), llama("\"num_hidden_layers\": 7")).unwrap();
    let ask = |id: &str| {
        let mut command = assert_cmd::Command::cargo_bin("rackmath").unwrap();
        command.env("HF_HOME", &hub).env_remove("HF_HUB_CACHE").args(["models", id, "--json"]).output().unwrap()
    };
    let found = ask("acme/Own-7B");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert!(String::from_utf8_lossy(&found.stdout).contains("\"layers\": 7"));
    assert!(!ask("acme/Other-7B").status.success());
    std::fs::remove_dir_all(hub).unwrap();
    // A quantised fork by name alone, with what was read of it; and one that is another model.
    let out = whole("estimate RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16 --on 2xh100 --tp 2");
    assert!(out.contains("was read as Llama 3.1 70B with weights in int4"), "{out}");
    said(&[("step Qwen/Qwen3-Omni-30B-A3B-Instruct", "without \"omni\"")]);
}

#[test]
fn a_users_model_chip_and_system_are_read_by_path() {
    let config = temp(
        "config.json",
        r#"{ "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
            "tie_word_embeddings": false, "max_position_embeddings": 131072 }"#,
    );
    let chip = temp(
        "mychip.toml",
        r#"
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
    let rack = "name = \"My rack\"\nchip = \"h200\"\nn_chips = 32\nas_of = \"2026-11\"\n";
    let level = |what: &str| {
        format!("[[level]]\n{what}\nbandwidth = {{ value = \"450 GB/s\", source = \"a drawing on my desk\" }}\n")
    };
    let up = level("name = \"nvlink\"\nchips = 32\ntopology = \"switched\"");
    let out = "name = \"ethernet\"\nchips = 1024\ntopology = \"switched\"\nnics_per_chip = 0.5\noversubscription = 2";
    let system = temp("myrack.toml", format!("{rack}{up}{}", level(out)));
    let torus = level("name = \"ici\"\nchips = 32\ntopology = \"torus\"\ndims = [4, 5]");
    let torus = temp("torus.toml", format!("{rack}{torus}"));
    for (line, says) in [
        (format!("models {config}"), "8,030,261,248"),
        (format!("step llama-3.1-8b --on {chip} -b 1"), "My chip"),
        (format!("step llama-3.1-8b --on {chip} -b 1"), "price: $0/h per chip, no price is known"),
        (format!("layout deepseek-v3 --on {system} --kv fp8"), "My rack: dp32 ep32"),
    ] {
        let text = whole(&line);
        assert!(text.contains(says), "{line}: {text}");
    }
    said(&[("systems ./nothing", "no system"), (&format!("layout llama-3.1-8b --on {torus}"), "multiply to 32")]);
}

#[test]
fn price_of_a_day_in_the_past() {
    let now = shown("price o3 -i 1M --json");
    let then = shown("price o3 -i 1M --as-of 2025-05-01 --json");
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
    let out = shown(&format!("price opus-4.8 --trace {path}")).replace(&path, "trace.jsonl");
    insta::assert_snapshot!(out);
    let out = shown(&format!("cache --trace {path} --json"));
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
    let out = shown(&format!("price {good} --against opus-4.8"));
    assert!(out.contains("sources disagree") && out.contains("input: $4.00/Mtok used here, $5.00/Mtok"), "{out}");
    for (right, wrong, says) in [
        ("input = \"$4/Mtok\"", "imput = \"$4/Mtok\"", "imput"),
        ("\"$4/Mtok\"", "4", "list[0].input = 4"),
        ("\"$4/Mtok\"", "\"$-4/Mtok\"", "not negative"),
        ("\"$4/Mtok\"", "\"$4000/Mtok\"", "between $0.001 and $1,000"),
        ("2026-08-01", "2999-08-01", "as_of = 2999-08-01"),
    ] {
        let bad = temp("bad.toml", SHEET.replacen(right, wrong, 1));
        let err = refused(&format!("price {bad}"));
        assert!(err.contains("bad.toml") && err.contains(says), "{err}");
    }
}

#[test]
fn a_sheet_from_a_file_with_a_price_step() {
    let text = "model = \"gemini-3.1-pro\"\nvendor = \"google\"\nas_of = \"2026-08-08\"\ninput = \"$2/Mtok\"\noutput = \"$12/Mtok\"\ncached = \"$0.2/Mtok\"\nstorage = \"$4.50/Mtok-h\"\nlong_above = \"200k\"\nlong_input = \"$4/Mtok\"\nlong_output = \"$18/Mtok\"\n";
    let path = temp("gemini.toml", text);
    insta::assert_snapshot!(shown(&format!("deduce {path}")));
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
    .map(|(name, text)| refused(&format!("deduce {}", temp(name, text))).replace(env!("CARGO_TARGET_TMPDIR"), "DIR"));
    // Today's date is in the last one.
    let text = complaints.join("\n");
    let text: String = text.lines().map(|l| l.split("not after today").next().unwrap_or(l).to_owned() + "\n").collect();
    insta::assert_snapshot!(text);
}

#[test]
fn a_sheet_of_the_catalogue_by_name() {
    insta::assert_snapshot!(shown("deduce gpt-5.5 --tokens-per-s 60"));
    let svg = shown("deduce opus-4.6 --figure ridge --svg -");
    assert!(svg.starts_with("<svg") && svg.contains("same input price"), "{svg}");
    let path = temp("listed.toml", SHEET.replace("provider = \"me\"", "provider = \"openai\""));
    let json = shown(&format!("deduce {path} --json"));
    assert!(json.contains("\"input_usd_per_mtok\": 4.0") && json.contains("\"model\": \"Mine\""), "{json}");
}

#[test]
fn a_users_law_is_used() {
    let folder = folder("laws-of-mine/laws");
    let law = "name = \"Mine\"\nform = \"chinchilla\"\nas_of = \"2026-11\"\nsource = \"my own runs of 2026\"\n\
        [coefficients]\ne = 1.5\na = 400.0\nb = 2000.0\nalpha = 0.35\nbeta = 0.36\n\
        [fitted]\nparams = [\"100M\", \"7B\"]\nsource = \"my own runs of 2026\"\n";
    std::fs::write(format!("{folder}/mine.toml"), law).unwrap();
    let text = whole(&format!("scaling --law mine --catalog {folder}/.."));
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
        "estimate-sweep llama-3.1-8b --on h100",
        "plan llama-3.1-8b --on 8xh100 --aggregated",
        "frontier llama-3.1-8b --on h100,h200 --aggregated",
    ] {
        shown(&format!("{question} --svg {svg} --png {png} --csv {csv}"));
        assert!(read(&svg).starts_with("<svg"), "{question}");
        assert!(std::fs::read(&png).expect("written").starts_with(b"\x89PNG"), "{question}");
        assert!(read(&csv).lines().count() > 2, "{question}");
    }
    for question in ["layout", "memory", "traffic", "pipeline"] {
        shown(&format!("{question} --svg {svg} --png {png}"));
        assert!(read(&svg).starts_with("<svg"), "{question}");
    }
    for (line, begins) in [
        ("estimate-sweep llama-3.1-8b --on h100", "concurrency,output_tok_s_per_user,output_tok_s_per_chip,tpot_ms,"),
        ("frontier llama-3.1-8b --on h100,h200 --aggregated", "curve,model,system,index,tok_s_per_user,"),
        (
            "hardware llama-3.1-8b --among h100,l40s --chips 1 --aggregated --no-flips",
            "name,system,usd_per_chip_hour,price_basis,usd_per_mtok,",
        ),
    ] {
        let rows = shown(&format!("{line} --csv -"));
        assert!(rows.starts_with(begins), "{rows}");
        let cells = |n| rows.lines().nth(n).map_or(0, |row| row.split(',').filter(|cell| !cell.is_empty()).count());
        assert!(cells(1) >= cells(0), "{rows}");
    }
}
