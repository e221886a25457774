//! What a person sees of training questions.

use assert_cmd::Command;

fn typed(line: &str) -> String {
    let output =
        Command::cargo_bin("rackmath").unwrap().args(line.split(' ')).args(["--width", "110"]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}")
}

#[test]
fn a_training_step_by_its_parts() {
    insta::assert_snapshot!(typed(
        "train llama-3.1-70b --on hgx-h100 --chips 128 --tp 4 --pp 4 --batch 128 --sequence 8192 --tokens 15T"
    ));
}

#[test]
fn the_best_layout_of_a_model_with_experts() {
    insta::assert_snapshot!(typed("train qwen3-30b-a3b --on hgx-b200 --chips 64 --batch 512 --search --keep 3"));
}

#[test]
fn one_speed_in_every_convention() {
    insta::assert_snapshot!(typed("mfu llama-3.1-70b --on h100-sxm --tflops 400 --convention full"));
}

#[test]
fn a_batch_that_does_not_come_out_even_is_refused_with_one_that_does() {
    insta::assert_snapshot!(typed("train llama-3.1-8b --on hgx-h100 --batch 100"));
}

#[test]
fn a_program_nobody_knows_is_refused_with_the_nearest() {
    insta::assert_snapshot!(typed("train llama-3.1-8b --stack megatron-cor"));
}

#[test]
fn where_nothing_fits_the_leanest_layout_answers() {
    let seen = typed("train llama-3.1-405b --on hgx-h100 --batch 8 --search");
    assert!(seen.contains("does not fit"), "{seen}");
    assert!(seen.contains(" 0 fit"), "{seen}");
}

#[test]
fn json_has_the_parts_and_the_stages() {
    let seen = typed("train llama-3.1-8b --json");
    for key in ["step_s", "parts", "stages", "mfu", "capacity_bytes", "sources"] {
        assert!(seen.contains(&format!("\"{key}\"")), "{key}: {seen}");
    }
}

#[test]
fn one_answer_from_loss_to_dollars() {
    insta::assert_snapshot!(typed(
        "train llama-3.1-70b --chips 1024 --tp 8 --pp 4 --batch 512 --loss 1.94 --offload optimizer --recompute full"
    ));
}

#[test]
fn a_loss_out_of_reach_says_what_is_left() {
    let seen = typed("train llama-3.1-8b --loss 1.7");
    assert!(seen.contains("out of reach: endless data leaves 1.99"), "{seen}");
}

#[test]
fn reversible_blocks_and_a_wide_search() {
    insta::assert_snapshot!(typed(
        "train llama-3.1-8b --chips 16 --batch 32 --sequence 32k --recompute reversible --search --wide --keep 3"
    ));
}

#[test]
fn what_nobody_offloads_is_refused_with_the_nearest() {
    let seen = typed("train llama-3.1-8b --offload optimiser");
    assert!(seen.contains("did you mean \"optimizer\""), "{seen}");
    let seen = typed("train llama-3.1-8b --wide");
    assert!(seen.contains("--search"), "{seen}");
}
