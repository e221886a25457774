//! Every configuration as a row, and a plan in shards, run for real: files written, joined, and refused.

mod common;

use common::{json, path, rackmath, read, refused, said, shown, temp};
use serde_json::Value;

const QUESTION: &str = "plan llama-3.1-8b --on 4xh100 --tpot 20ms --isl 2000";

fn rows(name: &str, more: &str) -> Vec<String> {
    let path = path(name);
    shown(&format!("sweep {QUESTION} -o {path} {more}"));
    read(&path).lines().map(str::to_owned).collect()
}

#[test]
fn a_table_begins_like_this() {
    let all = rows("rows-few.csv", "--aggregated");
    insta::assert_snapshot!(all[..4].join("\n"));
    assert!(all.len() > 50, "{}", all.len());
}

#[test]
fn the_best_plan_is_a_row_and_no_row_that_meets_the_limits_is_cheaper() {
    let all = rows("rows-best.csv", "--feasible");
    let names: Vec<&str> = all[0].split(',').collect();
    let column = |line: &str, name: &str| {
        let at = names.iter().position(|n| *n == name).expect("a column");
        line.split(',').nth(at).expect("a cell").to_owned()
    };
    let best = &json(QUESTION)["plans"][0];
    let price = |line: &String| column(line, "usd_per_mtok").parse::<f64>().expect("a number");
    let cheapest = all[1..].iter().min_by(|a, b| price(a).total_cmp(&price(b))).expect("rows");
    assert_eq!(price(cheapest), best["usd_per_mtok"]["value"].as_f64().expect("a number"));
    assert!(all[1..].iter().all(|line| column(line, "meets_limits") == "true"));
    let index = best["index"].to_string();
    let row = all.iter().find(|line| column(line, "index") == index).expect("the best plan is there");
    assert_eq!(column(row, "tpot_ms"), best["tpot_ms"]["value"].to_string());
}

#[test]
fn json_lines_have_the_cells_of_the_table() {
    let (table, lines) = (rows("rows-same.csv", "--feasible"), rows("rows-same.jsonl", "--feasible"));
    assert_eq!(lines.len() + 1, table.len());
    let names: Vec<&str> = table[0].split(',').collect();
    for (line, cells) in lines.iter().zip(&table[1..]) {
        let row: Value = serde_json::from_str(line).expect("JSON");
        for (name, cell) in names.iter().zip(cells.split(',')) {
            let own = match &row[name] {
                Value::String(word) => word.clone(),
                Value::Null => String::new(),
                Value::Number(n) => n.as_f64().expect("a number").to_string(),
                other => other.to_string(),
            };
            assert_eq!(own, cell, "{name}");
        }
        assert_eq!(row.as_object().expect("an object").len(), names.len());
    }
}

#[test]
fn an_unknown_kind_of_table_is_refused_before_anything_is_done() {
    let mut kinds = vec![("rows.xlsx", "hint: expected .csv, .jsonl or .parquet")];
    if cfg!(not(feature = "parquet")) {
        kinds.push(("refused.parquet", "cargo install --path crates/rackmath-cli --features parquet"));
    }
    for (name, says) in kinds {
        let path = path(name);
        said(&[(&format!("sweep {QUESTION} -o {path}"), says)]);
        assert!(!std::fs::exists(path).expect("known"));
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_its_magic_at_both_ends() {
    let path = path("rows.parquet");
    shown(&format!("sweep {QUESTION} -o {path}"));
    let bytes = std::fs::read(&path).expect("written");
    assert!(bytes.len() > 1000 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[cfg(unix)]
#[test]
fn a_sweep_that_is_stopped_leaves_a_whole_file() {
    use std::process::{Command, Stdio};
    let path = temp("rows-stopped.csv", "");
    // Large enough that nobody waits for its end.
    let long = "sweep plan qwen3-32b --on 32xh200 --engine vllm,sglang,trtllm --chunks 2k,4k,8k,16k -o";
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackmath"));
    command.args(long.split(' ')).arg(&path).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("started");
    let grows = beside(&path, child.id());
    while std::fs::metadata(&grows).map_or(0, |m| m.len()) < 100_000 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("sent");
    assert!(sent.success());
    let output = child.wait_with_output().expect("ended");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert_eq!(read(&path), "", "a table under its name is whole");
    let text = read(&format!("{path}.partial"));
    let cells = text.lines().next().expect("a header").split(',').count();
    assert!(text.ends_with('\n') && text.lines().all(|line| line.split(',').count() == cells));
    let said = text.lines().count() - 1;
    assert!(err.contains(&format!("is whole and holds the {said} rows")), "{said}: {err}");
    assert!(!grows.exists());
}

/// Where a file grows until it is whole.
fn beside(path: &str, process: u32) -> std::path::PathBuf {
    let path = std::path::Path::new(path);
    let name = path.file_name().expect("a name").to_string_lossy();
    path.with_file_name(format!(".{name}.{process}.part"))
}

/// A process that is killed without a word leaves every file as it was or whole: tables, plans, shards, hand-overs.
#[cfg(unix)]
#[test]
fn a_process_that_is_killed_leaves_nothing_half_written() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let started = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackmath"));
        command.args(line.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("started")
    };
    // A long table, killed while it grows.
    let table = temp("killed.csv", "as it was\n");
    let mut child = started(&format!(
        "sweep plan qwen3-32b --on 32xh200 --engine vllm,sglang,trtllm --chunks 2k,4k,8k,16k -o {table}"
    ));
    let grows = beside(&table, child.id());
    while std::fs::metadata(&grows).map_or(0, |m| m.len()) < 100_000 {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("killed");
    let _ = child.wait();
    assert_eq!(read(&table), "as it was\n");
    std::fs::remove_file(grows).expect("what grew is beside it");
    // Short files, killed at whatever moment: the later ones when all is written.
    let small = "plan qwen3-0.6b --on 1xh200 --isl 1000 --osl 100";
    let (plan, part, folder) = (path("killed.json"), path("killed-1.json"), path("killed-handover"));
    for line in [
        format!("{small} --save {plan}"),
        format!("{small} --shard 1/2 -o {part}"),
        format!("{small} --handover {folder}"),
    ] {
        let whole = std::time::Instant::now();
        let _ = started(&line).wait();
        let usual = whole.elapsed();
        for eighth in 1..8 {
            for old in [&plan, &part] {
                let _ = std::fs::remove_file(old);
            }
            let _ = std::fs::remove_dir_all(&folder);
            let mut child = started(&line);
            std::thread::sleep(usual * eighth / 8);
            let _ = child.kill();
            let _ = child.wait();
            let files = std::fs::read_dir(&folder).into_iter().flatten().filter_map(|f| Some(f.ok()?.path()));
            for file in files.chain([&plan, &part].map(std::path::PathBuf::from)) {
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                let name = file.file_name().expect("a name").to_string_lossy().into_owned();
                if name.starts_with('.') {
                    continue;
                }
                assert!(text.ends_with('\n'), "{name}: {text:?}");
                let json = !name.ends_with("json") || serde_json::from_str::<serde_json::Value>(&text).is_ok();
                assert!(json, "{name}: {text}");
            }
        }
    }
}

const SHARDED: &str = "plan qwen3-32b --on 16xh200 --tpot 30ms --isl 4000 --ttft=1s";

fn shard(question: &str, which: &str, name: &str) -> String {
    let path = path(name);
    let (out, err, code) = rackmath(&format!("{question} --shard {which} -o {path}"));
    assert_eq!((out.as_str(), code), ("", 0), "{err}");
    assert!(err.starts_with("wrote "), "{err}");
    path
}

#[test]
fn shards_join_into_what_one_run_prints() {
    // The second is one that nothing fits.
    for (question, n) in [(SHARDED, 3), ("plan llama-3.1-8b --on 2xh100 --tpot 0.1ms", 2)] {
        let parts: Vec<String> =
            (1..=n).rev().map(|i| shard(question, &format!("{i}/{n}"), &format!("join-{n}-{i}.json"))).collect();
        for json in ["", "--json"] {
            let joined = shown(&format!("merge {json} {}", parts.join(" ")));
            assert_eq!(joined, shown(&format!("{question} {json}")), "{question}");
        }
    }
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let (one, two) = (shard(SHARDED, "1/2", "refuse-1.json"), shard(SHARDED, "2/2", "refuse-2.json"));
    let other = shard(&format!("{SHARDED} --osl 77"), "2/2", "refuse-other.json");
    let lines = [
        format!("merge {one}"),
        format!("merge {one} {one} {two}"),
        format!("merge {one} {other}"),
        format!("{SHARDED} --shard 3/2"),
    ];
    insta::assert_snapshot!(lines.map(|line| refused(&line)).join("\n"));
    let broken = temp("refuse-broken.json", "{}");
    said(&[(&format!("merge {broken}"), "rackmath plan --shard i/n -o FILE")]);
}
