//! Every sentence about evidence, refusals and head-room, as the terminal prints it: with all it may say, and with the least.

use rackmath::remark::Remark;
use rackmath_report::words::{templates, words};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Beginnings of the names of the families that are shown.
const FAMILIES: [(&str, &[&str]); 4] = [
    ("grades and what they rest on", &["grade_", "step_", "part_", "run_to_", "run_of_", "intervals"]),
    (
        "no verdict across a gap",
        &["too_close_to_call", "wins_on", "best_hardware", "first_hardware", "apart_", "shared_errors"],
    ),
    (
        "refusals",
        &["support_", "context_", "not_possible", "none_runs", "not_existing", "no_room", "nothing_fits", "too_dear"],
    ),
    ("head-room", &["trial_", "sure_", "robust", "never_robust", "spare_"]),
];

/// Names that only begin alike.
const OTHERS: [&str; 13] = [
    "step_time_of",
    "step_is",
    "step_and_ratio",
    "step_contradicts",
    "part_share",
    "part_bound",
    "part_idle",
    "part_holds",
    "part_of",
    "context_of",
    "context_of_balance",
    "intervals_of_posterior",
    "support_nearest",
];

/// A value that makes a sentence read as it would.
fn sample(name: &str, format: Option<&str>) -> Value {
    match (name, format) {
        (_, Some("count" | "grouped" | "hundredths" | "s" | "-")) => json!(4),
        (_, Some("percent" | "share" | "share2")) => json!(0.2),
        (_, Some("time")) => json!(0.05),
        (_, Some("hourly")) => json!(0.0006),
        (_, Some("mtok")) => json!(2e-6),
        (_, Some(_)) => json!(1.6),
        ("what", _) => json!("H20"),
        ("model", _) => json!("Llama 3.1 70B"),
        ("chip" | "given", _) => json!("H20"),
        ("from", _) => json!("h200"),
        ("engine" | "family", _) => json!("vLLM"),
        ("name" | "on", _) => json!("8xh200"),
        ("next" | "close" | "level", _) => json!(["8xh100"]),
        ("none", _) => json!(["8xl40s"]),
        ("measure", _) => json!("cost"),
        ("run", _) => json!({ "says": "run_to_measure", "model": "Llama 3.1 70B", "chip": "H20", "engine": "vLLM" }),
        ("steps", _) => json!([{ "says": "step_chip", "what": "H20", "from": "h200" }]),
        ("generation", _) => json!("hopper"),
        ("basis", _) => json!(["contract"]),
        ("as_of" | "now", _) => json!("2026-11"),
        ("source", _) => json!("(source)"),
        ("tokens" | "limit" | "most", _) => json!(131_072),
        ("chips" | "widest" | "n" | "replicas" | "layouts" | "requests" | "users", _) => json!(8),
        (other, _) => json!(format!("({other})")),
    }
}

/// What a template speaks of: names and formats, without what stands in brackets where that is left out.
fn said(name: &str, template: &str, brackets: bool) -> String {
    let mut text = String::new();
    for (i, part) in template.split('[').enumerate() {
        match (i, part.split_once(']')) {
            (0, _) | (_, None) => text += part,
            (_, Some((inner, rest))) => {
                if brackets {
                    text += inner;
                }
                text += rest;
            }
        }
    }
    let mut with = Map::new();
    with.insert("says".into(), name.into());
    for hole in text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(hole, _)| hole) {
        let hole = hole.split('|').next().unwrap_or(hole);
        let (hole, format) = hole.split_once(':').map_or((hole, None), |(hole, format)| (hole, Some(format)));
        // Where a value is shown once as it is and once only asked for, the first makes it.
        let value = sample(hole, format);
        if format != Some("-") || !with.contains_key(hole) {
            with.insert(hole.into(), value);
        }
    }
    words(&serde_json::from_value::<Remark>(Value::Object(with)).expect("a remark"))
}

#[test]
fn every_sentence_of_these_families() {
    let mut text = String::new();
    for (title, names) in FAMILIES {
        let _ = writeln!(text, "== {title}\n");
        let own = |name: &str| names.iter().any(|start| name.starts_with(start)) && !OTHERS.contains(&name);
        for (name, template) in templates().filter(|(name, _)| own(name)) {
            let (full, least) = (said(name, template, true), said(name, template, false));
            for line in [&full, &least] {
                assert!(!line.contains(['{', '}', '[', ']']), "{name}: {line}");
                assert!(!line.contains("null") && !line.is_empty(), "{name}: {line}");
            }
            let _ = writeln!(text, "{name}\n  {full}");
            if least != full {
                let _ = writeln!(text, "  {least}");
            }
        }
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}
