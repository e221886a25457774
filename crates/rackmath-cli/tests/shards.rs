//! A plan in shards, run for real: files written, joined, and refused.

mod common;

use common::{rackmath, refused, shown};
use std::path::PathBuf;

const QUESTION: [&str; 9] = ["plan", "qwen3-32b", "--on", "16xh200", "--tpot", "30ms", "--isl", "4000", "--ttft=1s"];

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn shard(which: &str, name: &str, more: &[&str]) -> String {
    let path = file(name).to_str().expect("UTF-8").to_owned();
    let (out, err, code) = rackmath(&[&QUESTION[..], more, &["--shard", which, "-o", &path]].concat());
    assert_eq!((out.as_str(), code), ("", 0), "{err}");
    assert!(err.starts_with("wrote "), "{err}");
    path
}

#[test]
fn shards_join_into_what_one_run_prints() {
    let parts: Vec<String> = (1..=3).map(|i| shard(&format!("{i}/3"), &format!("join-{i}.json"), &[])).collect();
    let parts = [parts[2].as_str(), parts[0].as_str(), parts[1].as_str()];
    assert_eq!(shown(&[&["merge", "--json"][..], &parts].concat()), shown(&[&QUESTION[..], &["--json"]].concat()));
    assert_eq!(shown(&[&["merge"][..], &parts].concat()), shown(&QUESTION));
}

#[test]
fn an_answer_that_nothing_fits_joins_too() {
    let tight = ["plan", "llama-3.1-8b", "--on", "2xh100", "--tpot", "0.1ms"];
    let mut parts = Vec::new();
    for i in ["1/2", "2/2"] {
        let path = file(&format!("tight-{}.json", &i[..1]));
        let path = path.to_str().expect("UTF-8").to_owned();
        let (_, err, code) = rackmath(&[&tight[..], &["--shard", i, "-o", &path]].concat());
        assert_eq!(code, 0, "{err}");
        parts.push(path);
    }
    let joined = shown(&["merge", "--json", &parts[0], &parts[1]]);
    assert_eq!(joined, shown(&[&tight[..], &["--json"]].concat()));
    assert!(joined.contains("\"limit\": \"time per output token\""));
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let one = shard("1/2", "refuse-1.json", &[]);
    let two = shard("2/2", "refuse-2.json", &[]);
    let other = shard("2/2", "refuse-other.json", &["--osl", "77"]);
    insta::assert_snapshot!(
        [
            refused(&["merge", &one]),
            refused(&["merge", &one, &one, &two]),
            refused(&["merge", &one, &other]),
            rackmath(&[&QUESTION[..], &["--shard", "3/2"]].concat()).1,
        ]
        .join("\n")
    );
    let broken = file("refuse-broken.json");
    std::fs::write(&broken, "{}").expect("written");
    let err = refused(&["merge", broken.to_str().expect("UTF-8")]);
    assert!(err.contains("rackmath plan --shard i/n -o FILE"), "{err}");
}
