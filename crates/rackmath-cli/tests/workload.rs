//! What a person sees of traces and of lengths that vary: the command run for real, its output kept as snapshots.

mod common;

use common::{json, said, shown, temp, whole};
use std::fmt::Write as _;

/// Two requests a second for five minutes, ten a second in the third minute; every fourth prompt is long.
fn arrivals() -> Vec<(f64, u64, u64)> {
    let mut all = Vec::new();
    for second in 0..300_u32 {
        let n = if (120..180).contains(&second) { 10 } else { 2 };
        for k in 0..n {
            let long = (second + k) % 4 == 0;
            all.push((
                f64::from(second) + f64::from(k) / f64::from(n),
                if long { 6000 } else { 800 },
                100 + 50 * u64::from(k % 5),
            ));
        }
    }
    all
}

fn mooncake() -> String {
    let mut text = String::new();
    for (i, (t, input, output)) in arrivals().into_iter().enumerate() {
        // A shared system prompt of one block, then blocks of a conversation that comes back every 50 requests.
        let blocks: Vec<String> = (0..input.div_ceil(512))
            .map(|b| if b == 0 { "0".into() } else { (b * 1000 + (i as u64) % 50).to_string() })
            .collect();
        let (ms, ids) = ((t * 1000.0) as u64, blocks.join(", "));
        let _ = writeln!(
            text,
            "{{\"timestamp\": {ms}, \"input_length\": {input}, \"output_length\": {output}, \"hash_ids\": [{ids}]}}"
        );
    }
    text
}

fn azure() -> String {
    let mut text = "TIMESTAMP,ContextTokens,GeneratedTokens\n".to_owned();
    for (t, input, output) in arrivals() {
        let (minute, second) = (15 + (t / 60.0) as u64, t % 60.0);
        let _ = writeln!(text, "2023-11-16 18:{minute:02}:{second:010.7},{input},{output}");
    }
    text
}

fn burst() -> String {
    let mut text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n".to_owned();
    for (i, (t, input, output)) in arrivals().into_iter().enumerate() {
        let output = if i % 20 == 0 { 0 } else { output };
        let _ = writeln!(text, "{t},ChatGPT,{input},{output},{},Conversation log", input + output);
    }
    text
}

#[test]
fn traces() {
    let untimed = "prompt_tokens,completion_tokens\n100,10\n900,40\n".to_owned();
    for (name, file, text, more) in [
        ("a_trace_with_prefixes", "mooncake.jsonl", mooncake(), "--keep 5~min"),
        ("a_trace_with_failures", "burst.csv", burst(), ""),
        ("a_table_without_times", "untimed.csv", untimed, ""),
    ] {
        insta::assert_snapshot!(name, shown(&format!("trace {} {more}", temp(file, text))));
    }
}

#[test]
fn every_format_of_the_same_requests_says_the_same() {
    let [a, m] = [("same.csv", azure()), ("same.jsonl", mooncake())]
        .map(|(name, text)| json(&format!("trace {}", temp(name, text))));
    assert_eq!(a["input"], m["input"]);
    assert_eq!(a["output"], m["output"]);
    // Mooncake's milliseconds are whole.
    let rate = |v: &serde_json::Value| v["arrivals"]["rate_per_s"].as_f64().expect("a rate");
    assert!((rate(&a) / rate(&m) - 1.0).abs() < 1e-4);
}

#[test]
fn a_plan_for_a_trace_at_its_peak_and_mean() {
    let path = temp("plan.csv", azure());
    let out =
        whole(&format!("plan llama-3.1-8b --on 16xh100 --trace {path} --rate 20 --tpot 30ms --top 1 --no-whole-hosts"));
    let first = out.split("mean step").next().expect("text");
    let assumes = &out[out.find("assumes").expect("assumptions")..];
    insta::assert_snapshot!(format!("{first}\n{assumes}"));
}

#[test]
fn a_plan_for_drawn_lengths() {
    let lengths = "--isl-dist lognormal:mean=4k,cv=0.8 --osl-dist uniform:100..900";
    let out = shown(&format!("plan llama-3.1-8b --on 8xh100 {lengths} --rate 4 --aggregated --top 1 --no-whole-hosts"));
    insta::assert_snapshot!(out.split("mean step").next().expect("text"));
}

#[test]
fn slips_are_named() {
    let path = temp("slip.csv", azure().replacen("2023-11-16 18:16", "2023-11-36 18:16", 1));
    said(&[(&format!("trace {path}"), "slip.csv: line 122 timestamp = 2023-11-36")]);
}
