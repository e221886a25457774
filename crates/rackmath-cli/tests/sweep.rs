//! A question over axes of its fields as rows, run for real: written, split, joined, and refused.

mod common;

use common::{folder, json, path, rackmath, read, said, shown};
use serde_json::Value;

const SPACE: &str = "sweep plan llama-3.1-8b --on 4xh100 --tpot 20ms --isl 2000";
const POINTS: &str = "sweep estimate llama-3.1-8b --on 8xh100 --over concurrency=1..6 --over tp=1,2,3";

/// Shards of a sweep, in a folder.
fn parts(line: &str, n: u64, name: &str) -> Vec<String> {
    let folder = folder(name);
    for i in 1..=n {
        shown(&format!("{line} --shard {i}/{n} -o {folder}/"));
    }
    let mut all: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path().to_str().expect("UTF-8").to_owned())
        .collect();
    all.sort();
    assert_eq!(all.len() as u64, n, "{all:?}");
    all
}

#[test]
fn shards_joined_are_the_rows_of_the_whole() {
    for (line, name) in [(SPACE, "space"), (POINTS, "points")] {
        for format in ["csv", "jsonl"] {
            let whole = shown(&format!("{line} --format {format}"));
            for n in [1, 3] {
                let mut all = parts(&format!("{line} --format {format}"), n, &format!("shards-{name}-{format}-{n}"));
                all.reverse();
                // One that is there twice does no harm.
                let joined = shown(&format!("merge {} {}", all.join(" "), all[0]));
                assert!(joined == whole, "{line} in {n}");
                let path = path(&format!("merged-{name}-{n}.{format}"));
                shown(&format!("merge {} -o {path}", all.join(" ")));
                assert!(read(&path) == whole, "{line} in {n}");
            }
        }
    }
}

#[test]
fn a_shard_that_is_there_is_not_made_again_and_a_broken_one_is_refused() {
    let all = parts(POINTS, 2, "shards-again");
    let again = |i: u64| rackmath(&format!("{POINTS} --shard {i}/2 -o {}", path("shards-again/"))).1;
    assert!(again(1).contains("is there already"));
    let text = read(&all[1]);
    // Killed halfway, or a number changed.
    for broken in [text[..text.len() - 30].to_owned(), text.replacen("0.", "9.", 1)] {
        std::fs::write(&all[1], broken).expect("writable");
        said(&[(&format!("merge {}", all.join(" ")), "not whole, or changed")]);
        assert!(again(2).starts_with("wrote "));
        assert_eq!(read(&all[1]), text);
    }
    said(&[(&format!("merge {}", all[1]), "also shard 1")]);
    let other = parts(&format!("{POINTS} --isl 77"), 2, "shards-other");
    said(&[(&format!("merge {} {}", all[0], other[1]), "of another sweep")]);
}

#[test]
fn points_of_a_question_are_rows() {
    let chosen = "--columns served.tpot_ms.value,served.output_tok_s_per_chip.value,problem.what";
    insta::assert_snapshot!(shown(&format!("{POINTS} {chosen}")));
    // The figures are those of the question itself.
    let rows = shown(&format!("{POINTS} --format jsonl --columns served.tpot_ms"));
    let row: Value = serde_json::from_str(rows.lines().nth(4).expect("a row")).expect("JSON");
    let own = json("estimate llama-3.1-8b --on 8xh100 --concurrency 2 --tp 2");
    assert_eq!((row["concurrency"].as_f64(), row["tp"].as_u64()), (Some(2.0), Some(2)));
    assert_eq!(row["served.tpot_ms.value"], own["served"]["tpot_ms"]["value"]);
}

#[test]
fn what_cannot_be_swept_is_said() {
    said(&[
        ("sweep estimate --over concurency=1..4", "did you mean \"concurrency\""),
        ("sweep estimate --over tp=1..4 --columns tpt", "no column \"tpt\""),
        ("sweep estimate --over tp=4..1", "the smaller end first"),
        ("sweep estimate --over tp=1,2 --over tp=4", "more than once"),
        ("sweep estimate", "--over"),
        ("sweep estmate --over tp=1", "estimate"),
        ("sweep step --over batch=1..4 --shard 5/4", "i/n with i from 1 to n"),
        ("estimate --sweep", "rackmath sweep estimate"),
        ("plan --rows x.csv", "rackmath sweep plan"),
    ]);
    assert!(shown("sweep step --over batch=1,2 --columns time_s --json").starts_with("{\"batch\":1"));
    // A flag of the question that a sweep has for itself is reached as an axis.
    let rows = shown("sweep curve --over over=batch --over points=5,7 --columns model");
    assert_eq!(rows.lines().count(), 3, "{rows}");
}
