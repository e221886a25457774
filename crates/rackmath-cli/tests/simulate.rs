//! Simulations as a person runs them: packed traces, bad lines, comparisons, files for other tools.

mod common;

use common::{json, path, said, shown, temp, whole};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;

const ON: &str = "simulate llama-3.1-8b --on 1xh200";

fn rows(n: u64) -> String {
    let mut text = "arrival_ms,input_tokens,output_tokens,hash_ids,client\n".to_owned();
    for i in 0..n {
        let _ = writeln!(text, "{},{},{},{} {},7", i * 50, 700 + i % 300, 20 + i % 30, i % 5, 100 + i);
    }
    text
}

#[test]
fn a_packed_trace_is_the_same_trace() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(rows(300).as_bytes()).unwrap();
    let packed = temp("same.csv.gz", packer.finish().unwrap());
    let plain = temp("same.csv", rows(300));
    let [a, b] = [packed, plain].map(|file| json(&format!("{ON} --trace {file}")));
    assert_eq!(a["metrics"], b["metrics"]);
    assert!(a["served"]["cached"].as_f64().unwrap() > 0.4, "blocks are shared: {}", a["served"]);
    let broken = temp("broken.csv.gz", b"no gzip");
    said(&[(&format!("{ON} --trace {broken}"), "broken.csv.gz")]);
}

#[test]
fn what_a_trace_lacks_is_said() {
    let notes = |text: String| -> String {
        let answer = json(&format!("{ON} --trace {}", temp("notes.csv", text)));
        format!("{} {}", answer["warnings"], answer["assumptions"])
    };
    let head = "arrival_ms,input_tokens,output_tokens\n";
    let many = "0,100,10\n".repeat(50);
    for (rows, expected) in [
        ("0,100,10\n5,0,10\n7,100,0\n9,9000000,10\n", "\"trace_refused\""),
        ("500,100,10\n0,100,10\n", "\"trace_reversed\""),
        (many.as_str(), "\"trace_together\""),
        (&format!("{}3600000,10,10\n", "0,10,10\n1,10,10\n".repeat(9)), "\"trace_gap\""),
    ] {
        let said = notes(format!("{head}{rows}"));
        assert!(said.contains(expected), "{rows}: {said}");
    }
    let sessions = "session,turn,think_ms,input_tokens,output_tokens\n0,1,0,100,10\n0,2,2000,200,10\n";
    assert!(notes(sessions.into()).contains("\"trace_sessions\""));
    let bad = temp("bad.csv", format!("{head}0,10,10\n1,ten,10\n"));
    let none = temp("none.csv", format!("{head}0,0,0\n"));
    let untimed = temp("untimed-sim.csv", "input_tokens,output_tokens\n1,1\n");
    said(&[
        (&format!("{ON} --trace {bad}"), "bad.csv: line 3 input_tokens = ten"),
        (&format!("{ON} --trace {none}"), "no request that fits"),
        (&format!("{ON} --trace {untimed}"), "no column time_s"),
    ]);
}

#[test]
fn routers_are_compared_on_the_same_requests() {
    let load = "--replicas 4 --rate 30 --prefixes 30 --prefix-tokens 3000 --isl 200 --osl 40 --requests 2000";
    let out = whole(&format!("{ON} {load} --compare router=round-robin,kv"));
    for words in ["router on the same requests", "kv less round-robin, batch by batch: ttft p50", " ± "] {
        assert!(out.contains(words), "{words}: {out}");
    }
    said(&[(&format!("{ON} {load} --compare router=kv"), "2 to 16 values")]);
}

#[test]
fn a_stretch_of_a_run_is_a_chrome_trace() {
    let file = path("chrome.json");
    shown(&format!("{ON} --rate 10 --requests 200 --chrome-trace {file} --window 1..3"));
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |ph: &str| events.iter().filter(|e| e["ph"] == ph).count();
    assert!(of("X") > 10 && of("b") > 10 && of("b") == of("e") && of("M") == 3, "{events:?}");
    let steps = events.iter().filter(|e| e["ph"] == "X");
    assert!(steps.into_iter().all(|e| e["ts"].as_f64().unwrap() < 3e6 && e["dur"].as_f64().unwrap() > 0.0));
}

#[test]
fn a_table_of_requests_has_those_that_failed_with_their_reason() {
    let file = path("each.csv");
    let load = "--rate 80 --isl 3000 --requests 300 --max-queued-requests 3 --timeout 4s";
    shown(&format!("{ON} {load} --per-request {file}"));
    let text = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    let ends = |word: &str| rows.iter().filter(|row| row.ends_with(word)).count();
    assert!(text.lines().next().unwrap().ends_with(",attempts,after_ms,outcome"), "{text}");
    assert_eq!(rows.len(), 300);
    assert_eq!(ends(",answered") + ends(",timed out") + ends(",refused"), 300);
    assert!(ends(",refused") > 100 && ends(",timed out") > 0, "{text}");
    let columns = text.lines().next().unwrap().split(',').count();
    assert!(rows.iter().all(|row| row.split(',').count() == columns));
}

#[test]
fn a_slip_in_a_world_file_is_named_with_its_line_and_the_nearest() {
    for (text, expected) in [
        ("[trafic]\nrate_per_s = 3\n", "line 1 of"),
        ("[trafic]\nrate_per_s = 3\n", "did you mean \"traffic\""),
        ("[traffic]\n\nrate = 3\n", "did you mean \"rate_per_s\""),
        ("[[classes]]\nnam = \"x\"\n", "did you mean \"name\""),
        ("model = \"llama-3.1-8b\"\n", "it belongs in [setting]"),
        ("[traffic]\nreplicas = 3\n", "it belongs in [fleet]"),
        ("[traffic]\nrate_per_s = \"fast\"\n", "line 2 of"),
        ("[traffic]\nrate_per_s = \"fast\"\n", "expected a number without quotation marks"),
    ] {
        said(&[(&format!("{ON} --world {}", temp("slip.toml", text)), expected)]);
    }
    let good = temp("good.toml", "ttft_ms = \"p90=1s\"\n[traffic]\nrate_per_s = 3\nrequests = 100\n");
    assert!(shown(&format!("{ON} --world {good}")).contains("The limits on percentiles hold: p90 of"));
}
