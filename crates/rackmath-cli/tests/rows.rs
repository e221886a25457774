//! Every configuration as a row, run for real.

mod common;

use common::{rackmath, refused, shown};
use std::path::PathBuf;

const QUESTION: [&str; 8] = ["plan", "llama-3.1-8b", "--on", "4xh100", "--tpot", "20ms", "--isl", "2000"];

fn file(name: &str) -> String {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).to_str().expect("UTF-8").to_owned()
}

fn rows(name: &str, more: &[&str]) -> Vec<String> {
    let path = file(name);
    let (_, err, code) = rackmath(&[&QUESTION[..], &["--rows", &path], more].concat());
    assert_eq!(code, 0, "{err}");
    std::fs::read_to_string(&path).expect("written").lines().map(str::to_owned).collect()
}

#[test]
fn a_table_begins_like_this() {
    let all = rows("rows-few.csv", &["--aggregated"]);
    insta::assert_snapshot!(all[..4].join("\n"));
    assert!(all.len() > 50, "{}", all.len());
}

#[test]
fn the_best_plan_is_a_row_and_no_row_that_meets_the_limits_is_cheaper() {
    let all = rows("rows-best.csv", &["--feasible"]);
    let names: Vec<&str> = all[0].split(',').collect();
    let column = |line: &str, name: &str| {
        let at = names.iter().position(|n| *n == name).expect("a column");
        line.split(',').nth(at).expect("a cell").to_owned()
    };
    let answer: serde_json::Value = serde_json::from_str(&shown(&[&QUESTION[..], &["--json"]].concat())).expect("JSON");
    let best = &answer["plans"][0];
    let price = |line: &String| column(line, "usd_per_mtok").parse::<f64>().expect("a number");
    let cheapest = all[1..].iter().min_by(|a, b| price(a).total_cmp(&price(b))).expect("rows");
    assert_eq!(price(cheapest), best["usd_per_mtok"]["value"].as_f64().expect("a number"));
    assert!(all[1..].iter().all(|line| column(line, "meets_limits") == "true"));
    let index = best["index"].to_string();
    let row = all.iter().find(|line| column(line, "index") == index).expect("the best plan is there");
    assert_eq!(column(row, "tpot_ms"), best["tpot_ms"]["value"].to_string());
}

#[test]
fn rows_of_shards_one_after_the_other_are_the_rows_of_the_whole() {
    let whole = rows("rows-whole.csv", &[]);
    let mut joined = vec![whole[0].clone()];
    for i in 1..=3 {
        let part = rows(&format!("rows-{i}.csv"), &["--shard", &format!("{i}/3"), "-o", &file("rows-part.json")]);
        assert_eq!(part[0], whole[0]);
        joined.extend_from_slice(&part[1..]);
    }
    assert_eq!(joined, whole);
}

#[test]
fn json_lines_have_the_cells_of_the_table() {
    let table = rows("rows-same.csv", &["--feasible"]);
    let lines = rows("rows-same.jsonl", &["--feasible"]);
    assert_eq!(lines.len() + 1, table.len());
    let names: Vec<&str> = table[0].split(',').collect();
    for (line, cells) in lines.iter().zip(&table[1..]) {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for (name, cell) in names.iter().zip(cells.split(',')) {
            let own = match &row[name] {
                serde_json::Value::String(word) => word.clone(),
                serde_json::Value::Number(n) => n.as_f64().expect("a number").to_string(),
                other => other.to_string(),
            };
            assert_eq!(own, cell, "{name}");
        }
        assert_eq!(row.as_object().expect("an object").len(), names.len());
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_with_the_build_that_has_it() {
    let path = file("rows-refused.parquet");
    let err = refused(&[&QUESTION[..], &["--rows", &path]].concat());
    assert!(err.contains("cargo install --path crates/rackmath-cli --features parquet"), "{err}");
    assert!(!PathBuf::from(path).exists());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_its_magic_at_both_ends() {
    let path = file("rows.parquet");
    shown(&[&QUESTION[..], &["--rows", &path]].concat());
    let bytes = std::fs::read(&path).expect("written");
    assert!(bytes.len() > 1000 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn an_unknown_kind_of_table_is_refused_before_anything_is_done() {
    let path = file("rows.xlsx");
    let err = refused(&[&QUESTION[..], &["--rows", &path]].concat());
    assert!(err.contains("hint: expected .csv, .jsonl or .parquet"), "{err}");
    assert!(!PathBuf::from(path).exists());
}

#[cfg(unix)]
#[test]
fn a_sweep_that_is_stopped_leaves_a_whole_file() {
    use std::process::{Command, Stdio};
    let path = file("rows-stopped.csv");
    let _ = std::fs::remove_file(&path);
    // Large enough that nobody waits for its end.
    let long = ["plan", "qwen3-32b", "--on", "32xh200", "--engine", "vllm,sglang,trtllm", "--chunks", "2k,4k,8k,16k"];
    let child = Command::new(env!("CARGO_BIN_EXE_rackmath"))
        .args(long)
        .args(["--rows", &path])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    while std::fs::metadata(&path).map_or(0, |m| m.len()) < 100_000 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("sent");
    assert!(sent.success());
    let output = child.wait_with_output().expect("ended");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("is whole and holds the"), "{err}");
    let text = std::fs::read_to_string(&path).expect("written");
    let cells = text.lines().next().expect("a header").split(',').count();
    assert!(text.ends_with('\n') && text.lines().all(|line| line.split(',').count() == cells));
    let said = text.lines().count() - 1;
    assert!(err.contains(&format!("the {said} rows")), "{said}: {err}");
}
