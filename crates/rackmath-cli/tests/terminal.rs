//! What a person sees: the commands run for real, their output kept as snapshots.

mod common;

use common::{refused, shown, typed};
use std::io::Write as _;
use std::path::PathBuf;

fn temp(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::File::create(&path).expect("writable").write_all(bytes).expect("writable");
    path
}

#[test]
fn headline() {
    insta::assert_snapshot!(shown(&[]));
}

#[test]
fn step() {
    insta::assert_snapshot!(shown(&["step", "llama-3.1-70b", "--on", "8xh200", "--batch", "64"]));
}

#[test]
fn step_that_does_not_fit_is_an_answer() {
    insta::assert_snapshot!(shown(&["step", "deepseek-v3", "--on", "hgx-h100", "--dtype", "bf16"]));
}

#[test]
fn prefill() {
    insta::assert_snapshot!(shown(&["step", "gpt-oss-120b", "--on", "h100", "-b", "1", "-c", "0", "--pass", "8k"]));
}

#[test]
fn explain_balance() {
    insta::assert_snapshot!(shown(&["explain", "balance", "gemma-3-27b", "--on", "h100", "-c", "20k"]));
}

#[test]
fn explain_kv() {
    insta::assert_snapshot!(shown(&["explain", "kv", "deepseek-v4-pro", "--kv", "fp8", "-c", "128k"]));
}

#[test]
fn curve_over_chips() {
    insta::assert_snapshot!(shown(&["curve", "qwen3-32b", "--on", "h200", "--over", "chips", "--to", "8", "-b", "64"]));
}

#[test]
fn curve_over_context() {
    insta::assert_snapshot!(typed("curve lecture-frontier --on lecture-nvl72 --over context -b 5000"));
}

#[test]
fn model_in_full() {
    insta::assert_snapshot!(shown(&["models", "deepseek-ai/DeepSeek-V3"]));
}

#[test]
fn chips_side_by_side() {
    insta::assert_snapshot!(shown(&["chips", "a100_sxm", "h100", "h200_sxm", "b200", "mi300x", "tpu-v6e"]));
}

#[test]
fn layout() {
    insta::assert_snapshot!(shown(&["layout", "deepseek-v3", "--kv", "fp8", "-b", "8192"]));
}

#[test]
fn layout_from_the_flags_of_another_tool() {
    let line = "vllm serve x -tp 8 --enable-expert-parallel --port 8000";
    insta::assert_snapshot!(shown(&[
        "layout",
        "qwen3-235b-a22b",
        "--on",
        "hgx-h200",
        "--flags",
        line,
        "--routing",
        "power:1.2"
    ]));
}

#[test]
fn memory_that_no_pipeline_can_save() {
    insta::assert_snapshot!(typed("memory llama-3.1-70b --on hgx-h100 --chips 32 --tp 8 --pp 4 -b 512 -c 128k"));
}

#[test]
fn traffic() {
    insta::assert_snapshot!(typed(
        "traffic deepseek-v3 --on hgx-h800 --chips 128 --dp 128 --ep 128 --batch 16384 --kv fp8"
    ));
}

#[test]
fn pipeline_grid() {
    insta::assert_snapshot!(shown(&["pipeline"]));
}

#[test]
fn pipelines_compared() {
    insta::assert_snapshot!(typed("pipeline -s all --stages 8 -m 32 --input-grad 1s --weight-grad 1s"));
}

#[test]
fn racks() {
    insta::assert_snapshot!(shown(&["racks", "deepseek-v3"]));
}

#[test]
fn illegal_layouts_are_refused_with_what_would_do() {
    for (args, hint) in [
        (vec!["layout", "llama-3.1-8b", "--on", "hgx-h100", "--tp", "3"], "divisor of the 32 heads"),
        (vec!["layout", "deepseek-v3", "--dp", "72", "--ep", "72"], "divisor of the 256 experts"),
        (vec!["layout", "llama-3.1-8b", "--on", "hgx-h100", "--tp", "16"], "at most the 8"),
        (vec!["layout", "llama-3.1-70b", "--on", "16xh100", "--tp", "16"], "at most the 8 chips of a scale-up domain"),
        (vec!["layout", "deepseek-v3", "--flags", "--tensor-paralel-size 8"], "--tensor-parallel-size"),
        (vec!["layout", "deepseek-v3", "--flags", "-tp 8", "--tool", "vlm"], "vllm"),
        (vec!["pipeline", "-s", "1f2b"], "1f1b"),
        (vec!["pipeline", "-s", "dualpipe", "--stages", "3"], "even"),
        (vec!["pipeline", "--stage-factors", "1,2"], "one for each of 4 stages"),
        (vec!["layout", "deepseek-v3", "--routing", "zipf"], "uniform or power"),
        (vec!["memory", "deepseek-v3", "--gpu-memory-utilization", "90"], "0.9 or 90%"),
    ] {
        let error = refused(&args);
        assert!(error.contains(hint), "{args:?}: {error}");
    }
}

#[test]
fn station() {
    insta::assert_snapshot!(shown(&["station", "--rate", "190"]));
}

#[test]
fn lecture() {
    insta::assert_snapshot!(shown(&["lecture"]));
}

#[test]
fn answers_as_json_follow_their_schema() {
    for (question, args) in [
        ("step", vec!["step"]),
        ("curve", vec!["curve", "--points", "10"]),
        ("explain", vec!["explain", "all"]),
        ("models", vec!["models", "gpt-oss-20b"]),
        ("chips", vec!["chips", "h200"]),
        ("systems", vec!["systems", "gb200-nvl72"]),
        ("lecture", vec!["lecture"]),
        ("station", vec!["station"]),
        ("layout", vec!["layout"]),
        ("racks", vec!["racks"]),
        ("pipeline", vec!["pipeline"]),
    ] {
        let schema: serde_json::Value = serde_json::from_str(&shown(&["schema", question])).expect("JSON");
        let required = schema["answer"]["required"].as_array().expect("an object").clone();
        let mut with_json = args.clone();
        with_json.push("--json");
        let answer: serde_json::Value = serde_json::from_str(&shown(&with_json)).expect("JSON");
        let properties = schema["answer"]["properties"].as_object().expect("an object");
        for field in &required {
            assert!(answer.get(field.as_str().unwrap()).is_some(), "{question} lacks {field}");
        }
        for field in answer.as_object().unwrap().keys() {
            assert!(properties.contains_key(field), "{question}: {field} is not in the schema");
        }
    }
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    for args in
        [vec![], vec!["step", "--json"], vec!["curve", "--csv", "-"], vec!["curve", "--svg", "-"], vec!["lecture"]]
    {
        assert_eq!(shown(&args), shown(&args));
    }
}

#[test]
fn mistyped_names_get_the_nearest() {
    assert_eq!(
        refused(&["step", "deepsek-v3"]),
        "error: no model \"deepsek-v3\"\nhint: did you mean \"deepseek-v3\" or \"deepseek-v2\" or \"deepseek-v4\"?\n"
    );
    assert!(refused(&["step", "--on", "gb200-nvl27"]).contains("\"gb200-nvl72\""));
    assert!(refused(&["chips", "h2000"]).contains("\"h200\""));
    assert!(refused(&["explain", "blance"]).contains("\"balance\""));
    assert!(refused(&["step", "-q", "nvpf4"]).contains("\"nvfp4\""));
    assert!(refused(&["stpe"]).contains("step"));
    assert!(refused(&["curve", "--over", "batches"]).contains("did you mean batch?"));
    assert!(refused(&["lecture", "D99"]).contains("D1 to D57"));
}

#[test]
fn impossible_values_are_refused_with_a_hint() {
    for (args, hint) in [
        (vec!["step", "--context", "-5"], "unexpected argument"),
        (vec!["step", "--context", "lots"], "128k"),
        (vec!["step", "--batch", "0"], "from 1 to"),
        (vec!["step", "--price", "2.10"], "$2.10/h"),
        (vec!["step", "--price", "2 EUR"], "$2.10/h"),
        (vec!["step", "--chips", "0"], "1 to"),
        (vec!["step", "--overlap", "1.5"], "max, sum, kv+max"),
        (vec!["step", "--counting", "loose"], "strict or lecture"),
        (vec!["step", "--math", "fp4", "--on", "h100"], "it has"),
        (vec!["step", "--basis", "stolen"], "rental"),
        (vec!["curve", "--from", "100", "--to", "10"], "rising range"),
        (vec!["curve", "--points", "1"], "2 to 100,000"),
        (vec!["step", "./no-such-config.json"], "No such file"),
    ] {
        let error = refused(&args);
        assert!(error.contains(hint), "{args:?}: {error}");
    }
}

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
    let text = shown(&["models", path.to_str().unwrap()]);
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
        let error = refused(&["step", path.to_str().unwrap()]);
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
    let error = refused(&["step", path.to_str().unwrap()]);
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
    let text = shown(&["step", "llama-3.1-8b", "--on", chip.to_str().unwrap(), "-b", "1"]);
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
    let text = shown(&["layout", "deepseek-v3", "--on", system.to_str().unwrap(), "--kv", "fp8"]);
    assert!(text.contains("My rack: dp32 ep32"), "{text}");
    let torus = temp("torus.toml", b"name = \"T\"\nchip = \"tpu-v5e\"\nn_chips = 16\nas_of = \"2026-11\"\n[[level]]\nname = \"ici\"\nchips = 16\ntopology = \"torus\"\ndims = [4, 5]\nbandwidth = { value = \"1 GB/s\", source = \"a drawing on my desk\" }\n");
    assert!(refused(&["systems", "./nothing"]).contains("no system"));
    assert!(refused(&["layout", "llama-3.1-8b", "--on", torus.to_str().unwrap()]).contains("multiply to 16"));
}

#[test]
fn chips_may_be_counted_either_way() {
    let tail = ["--tp", "8", "--kv", "fp8", "-b", "32"];
    let ask = |machine: &[&str]| shown(&[&["layout", "llama-3.1-70b"], machine, &tail].concat());
    let answer = ask(&["--on", "8xh200"]);
    assert_eq!(answer, ask(&["--on", "h200", "--chips", "8"]));
    assert_eq!(answer, ask(&["--on", "h200x8"]));
    assert!(answer.contains("tensor-parallel reductions"), "{answer}");
}

#[test]
fn pictures_are_written() {
    let (svg, png) = (temp("a.svg", b""), temp("a.png", b""));
    for question in ["curve", "layout", "memory", "traffic", "pipeline"] {
        shown(&[question, "--svg", svg.to_str().unwrap(), "--png", png.to_str().unwrap()]);
    }
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
    assert!(std::fs::read(png).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = shown(&["completions", shell]);
        assert!(["step", "curve", "explain", "lecture"].iter().all(|c| script.contains(c)), "{shell}");
    }
}

#[test]
fn help_teaches_with_an_example() {
    for command in [
        "step",
        "curve",
        "explain",
        "models",
        "chips",
        "systems",
        "lecture",
        "memory",
        "layout",
        "traffic",
        "pipeline",
        "racks",
        "station",
        "schema",
        "completions",
    ] {
        assert!(shown(&[command, "--help"]).contains("Example: rackmath"), "{command}");
    }
}
