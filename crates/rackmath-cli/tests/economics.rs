//! What a person sees when asking about money: the commands run for real, their output kept as snapshots.

mod common;

use common::{refused, shown, typed};
use std::fmt::Write as _;
use std::path::PathBuf;

fn temp(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("writable");
    path
}

#[test]
fn price_of_a_conversation() {
    insta::assert_snapshot!(shown(&["price", "opus-4.8", "--turns", "20", "--gap", "2min"]));
}

#[test]
fn price_of_a_prefix_at_three_providers() {
    insta::assert_snapshot!(typed("price opus-4.8 gpt-5.6 gemini-3.1-pro -i 100k -o 1k --uses 10 --gap 10min"));
}

#[test]
fn price_lists() {
    insta::assert_snapshot!(shown(&["price"]));
}

#[test]
fn price_at_peak_hours_and_where_sources_disagree() {
    insta::assert_snapshot!(shown(&["price", "deepseek-flash", "-i", "1M", "--at", "2026-10-27T02:30"]));
    insta::assert_snapshot!(shown(&["price", "gpt-5.5", "-i", "300k", "-o", "2k", "--mode", "priority"]));
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
    let path = path.to_str().expect("UTF-8");
    let out = shown(&["price", "opus-4.8", "--trace", path]).replace(path, "trace.jsonl");
    insta::assert_snapshot!(out);
    let out = shown(&["cache", "--trace", path, "--json"]);
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
    let out = shown(&["price", good.to_str().expect("UTF-8"), "--against", "opus-4.8"]);
    assert!(out.contains("sources disagree") && out.contains("input: $4.00/Mtok used here, $5.00/Mtok"), "{out}");
    for (right, wrong, says) in [
        ("input = \"$4/Mtok\"", "imput = \"$4/Mtok\"", "imput"),
        ("\"$4/Mtok\"", "4", "list[0].input = 4"),
        ("\"$4/Mtok\"", "\"$-4/Mtok\"", "not negative"),
        ("\"$4/Mtok\"", "\"$4000/Mtok\"", "between $0.001 and $1,000"),
        ("2026-08-01", "2999-08-01", "as_of = 2999-08-01"),
    ] {
        let bad = temp("bad.toml", &SHEET.replacen(right, wrong, 1));
        let err = refused(&["price", bad.to_str().expect("UTF-8")]);
        assert!(err.contains("bad.toml") && err.contains(says), "{err}");
    }
}

#[test]
fn cost_of_deepseeks_day() {
    insta::assert_snapshot!(typed(
        "cost deepseek-v3 --on hgx-h800 --prefill-tok-s 9212.5 --decode-tok-s 1850 -u 1 --hit 0 --sheet deepseek-reasoner --carbon 400"
    ));
}

#[test]
fn cost_to_an_owner() {
    insta::assert_snapshot!(shown(&["cost", "gpt-oss-120b", "--on", "hgx-b200", "--owner", "-b", "256"]));
}

#[test]
fn fleet_for_requests() {
    insta::assert_snapshot!(typed("fleet --requests-s 1000 --prompt 4k --answer 500 --world-tok-s 128M"));
}

#[test]
fn cache_lifetimes() {
    insta::assert_snapshot!(typed("cache deepseek-v3 --on hgx-h800 --kv bf16 --gaps 30s:0.2,10min:0.15,1d:0.05"));
}

#[test]
fn fastmode() {
    insta::assert_snapshot!(shown(&["fastmode", "opus-4.6"]));
}

#[test]
fn pictures_are_svg() {
    for args in [
        vec!["price", "opus-4.8", "--turns", "5"],
        vec!["cost"],
        vec!["fleet", "--output-tok-s", "1M"],
        vec!["cache"],
        vec!["cache", "--gaps", "30s:0.2", "--figure", "hits"],
        vec!["fastmode"],
    ] {
        let svg = shown(&[args.as_slice(), &["--svg", "-"]].concat());
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{args:?}");
    }
    assert!(refused(&["price", "opus-4.8", "--svg", "-"]).contains("no picture"));
}

#[test]
fn every_new_question_has_a_schema_and_speaks_json() {
    for question in ["price", "cost", "fleet", "cache", "fastmode"] {
        assert!(shown(&["schema", question]).contains("\"request\""));
    }
    for args in
        [vec!["price", "opus"], vec!["cost"], vec!["fleet", "--output-tok-s", "1M"], vec!["cache"], vec!["fastmode"]]
    {
        let json = shown(&[args.as_slice(), &["--json"]].concat());
        assert!(json.starts_with('{') && json.ends_with("}\n"), "{args:?}");
    }
}

#[test]
fn slips_are_refused_with_the_nearest_valid_thing() {
    for (args, says) in [
        (vec!["price", "opsu-4.8"], "opus-4.8"),
        (vec!["price", "opus-4.8", "--mode", "fsat"], "\"fast\""),
        (vec!["price", "opus-4.8", "--as-of", "yesterday"], "2026-08-05"),
        (vec!["price", "opus-4.8", "-i", "10", "--cached", "20"], "parts of the prompt"),
        (vec!["price", "opus-4.8", "-i", "10k", "--cached", "5k", "--offer", "5min"], "5m"),
        (vec!["fleet"], "output_tok_s, requests_s or tokens_per_month"),
        (vec!["cache", "--tiers", "nvme-loca"], "nvme-local"),
        (vec!["fastmode", "gpt-5"], "claims none"),
        (vec!["cost", "--sheet", "gpt-55"], "gpt-5.5"),
    ] {
        let err = refused(&args);
        assert!(err.contains(says), "{args:?}: {err}");
    }
}
