//! Recorded schedules of the real vLLM: by digest in any clone, line by line where the records are.

use rackmath_sim::replay::{self, Scenario};
use std::path::Path;

#[test]
fn recorded_schedules_are_ours_by_digest() {
    let same = replay::recorded().unwrap();
    assert_eq!((same.scenarios, same.steps), (43, 25_518));
    assert!(same.differ.is_empty(), "{:?}", same.differ);
}

fn compare(folder: &Path) -> (usize, usize, Vec<String>) {
    let (mut all, mut lines, mut wrong) = (0, 0, Vec::new());
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for path in names {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = name.strip_suffix(".scenario.json") else { continue };
        all += 1;
        let scenario: Scenario = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let truth = std::fs::read_to_string(folder.join(format!("{stem}.trace.jsonl"))).unwrap();
        let truth: Vec<&str> = truth.lines().collect();
        lines += truth.len();
        match replay::run(&scenario) {
            Err(e) => wrong.push(format!("{stem}: {e}")),
            Ok(ours) => {
                let first = ours.iter().zip(&truth).position(|(a, b)| a != b);
                let first = first.or((ours.len() != truth.len()).then(|| ours.len().min(truth.len())));
                if let Some(at) = first {
                    let (a, b) = (ours.get(at).map_or("", String::as_str), truth.get(at).unwrap_or(&""));
                    wrong.push(format!("{stem}: line {}\n  ours {a}\n  true {b}", at + 1));
                }
            }
        }
    }
    (all, lines, wrong)
}

#[test]
fn recorded_schedules_are_ours_line_by_line() {
    let Ok(folder) = std::env::var("RACKMATH_SCHEDULES") else { return };
    let (all, lines, wrong) = compare(Path::new(&folder));
    for w in &wrong {
        println!("{}", w.chars().take(900).collect::<String>());
    }
    println!("{} of {all} scenarios differ; {lines} lines", wrong.len());
    assert!(all > 0 && wrong.is_empty());
}
