//! Plans nobody can have: each gets an answer with what stands in the way, or is refused with what was expected.

mod common;

use common::{refused, shown};

/// The part of a page that says why.
fn why(args: &[&str]) -> String {
    let page = shown(&[&["plan"], args].concat());
    let from = page.find("no deployment").into_iter().chain(page.find("nothing fits")).min().expect("it says so");
    let to = page.find("\nWhat users").into_iter().chain(page.find("\nassumes")).min().expect("the page goes on");
    page[from..to].trim_end().to_owned()
}

#[test]
fn a_token_below_the_latency_floor() {
    insta::assert_snapshot!(why(&["qwen3-32b", "--on", "8xh200", "--tpot", "0.1ms"]));
}

#[test]
fn a_user_faster_than_any_chip() {
    insta::assert_snapshot!(why(&["deepseek-v3", "--on", "16xh200", "--user", "100000", "--aggregated"]));
}

#[test]
fn limits_that_cannot_be_met_even_one_by_one() {
    insta::assert_snapshot!(why(&["qwen3-32b", "--on", "8xh200", "--tpot", "0.1ms", "--ttft", "1ms"]));
}

#[test]
fn a_model_larger_than_the_fleet() {
    insta::assert_snapshot!(why(&["deepseek-v3", "--on", "2xh200"]));
}

#[test]
fn a_request_larger_than_the_fleet() {
    insta::assert_snapshot!(why(&["qwen3-32b", "--on", "8xh200", "--isl", "10M"]));
}

#[test]
fn more_traffic_than_the_chips_serve() {
    insta::assert_snapshot!(why(&["qwen3-32b", "--on", "8xh200", "--rate", "1000"]));
}

#[test]
fn a_budget_below_one_chip() {
    insta::assert_snapshot!(why(&["qwen3-32b", "--on", "8xh200", "--budget", "$1/h"]));
}

#[test]
fn a_budget_of_some_chips_is_spent_on_those() {
    let page = shown(&["plan", "llama-3.1-8b", "--on", "8xh200", "--budget", "$5/h", "--aggregated"]);
    assert!(page.contains("3 x 1 = 3 chips"), "{page}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let of = |args: &[&str]| refused(&[&["plan", "qwen3-32b"], args].concat());
    let all = [
        of(&["--on", "8xh2000"]),
        of(&["--on", "0xh200"]),
        of(&["--on", "h200", "--chips", "0"]),
        of(&["--on", "8xh200", "--prefill-on", "2xh2"]),
        of(&["--on", "8xh200", "--tpot=-5ms"]),
        of(&["--on", "8xh200", "--tpot", "0ms"]),
        of(&["--on", "8xh200", "--rate=-3"]),
        of(&["--on", "8xh200", "--degrees", "odd"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}
