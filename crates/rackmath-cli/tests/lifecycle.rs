//! What a person sees of scaling laws, lifecycles, failures, published runs and reversible networks.

mod common;

use common::{refused, shown, typed};
use std::path::PathBuf;

fn temp(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn scaling() {
    insta::assert_snapshot!(shown(&["scaling"]));
}

#[test]
fn scaling_of_a_point_under_one_law_with_dollars() {
    let args = ["scaling", "-n", "8B", "-d", "15T", "--law", "besiroglu-2024", "--on", "h100", "--price", "$2/h"];
    insta::assert_snapshot!(shown(&[&args[..], &["--figure", "iso-loss"]].concat()));
}

#[test]
fn what_experts_are_worth() {
    insta::assert_snapshot!(shown(&["scaling", "-n", "370M", "--sparsity", "64", "--law", "clark-2022"]));
}

#[test]
fn lifecycle_of_the_lecture() {
    insta::assert_snapshot!(shown(&["lifecycle", "--served", "200T"]));
}

#[test]
fn lifecycle_with_everything() {
    insta::assert_snapshot!(typed(
        "lifecycle -n 30B --rate 20M --lifetime 180d --survives 60% --rl 100M,16,8k,0.5 --chip-mtbf 50677h --sparsity 16 --unique-tokens 30T --on b200 --train-format fp8 --serve-format nvfp4"
    ));
}

#[test]
fn goodput() {
    insta::assert_snapshot!(shown(&["goodput", "--price", "$2/h"]));
}

#[test]
fn forensics() {
    insta::assert_snapshot!(shown(&["forensics", "deepseek-v3", "--price", "2"]));
}

#[test]
fn forensics_of_figures_that_cannot_be() {
    insta::assert_snapshot!(shown(&["forensics", "deepseek-v3", "--chip-hours", "266.4k"]));
}

#[test]
fn reversible() {
    insta::assert_snapshot!(shown(&["reversible", "--depth", "8", "--steps", "10", "--figure", "drift"]));
}

#[test]
fn pictures_and_points_are_written() {
    let (svg, png, csv) = (temp("life.svg"), temp("life.png"), temp("life.csv"));
    for question in [
        &["scaling"][..],
        &["lifecycle"],
        &["goodput", "--figure", "chips"],
        &["reversible", "--depth", "4", "--steps", "2", "--figure", "avalanche"],
    ] {
        let save = ["--svg", svg.to_str().unwrap(), "--png", png.to_str().unwrap(), "--csv", csv.to_str().unwrap()];
        shown(&[question, &save].concat());
        assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg"));
        assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
        assert!(std::fs::read_to_string(&csv).unwrap().lines().count() > 50);
    }
}

#[test]
fn json_is_an_object_with_the_request_in_it() {
    for question in [&["scaling"][..], &["lifecycle"], &["goodput"], &["forensics", "deepseek-v3"]] {
        let json = shown(&[question, &["--json"]].concat());
        assert!(json.starts_with("{\n  \"request\": {"), "{json}");
        assert!(!json.contains("NaN") && !json.contains("null,\n  null"));
    }
    for question in ["scaling", "lifecycle", "goodput", "forensics", "reversible"] {
        assert!(shown(&["schema", question]).contains("\"answer\""));
    }
}

#[test]
fn a_users_law_is_used() {
    let folder = temp("laws-of-mine");
    std::fs::create_dir_all(folder.join("laws")).unwrap();
    let law = "name = \"Mine\"\nform = \"chinchilla\"\nas_of = \"2026-11\"\nsource = \"my own runs of 2026\"\n\
        [coefficients]\ne = 1.5\na = 400.0\nb = 2000.0\nalpha = 0.35\nbeta = 0.36\n\
        [fitted]\nparams = [\"100M\", \"7B\"]\nsource = \"my own runs of 2026\"\n";
    std::fs::write(folder.join("laws/mine.toml"), law).unwrap();
    let text = shown(&["scaling", "--law", "mine", "--catalog", folder.to_str().unwrap()]);
    assert!(text.contains("my own runs of 2026") && text.contains("outside the range"), "{text}");
}

#[test]
fn slips_are_answered_with_the_nearest_valid_thing() {
    for (args, says) in [
        (&["scaling", "--law", "besirglu"][..], "did you mean \"besiroglu\""),
        (&["scaling", "--flop", "1e24", "--loss", "2"], "one of flop, loss"),
        (&["scaling", "--price", "$2/h"], "give one with --on"),
        (&["lifecycle", "--split", "third"], "did you mean thirds?"),
        (&["lifecycle", "--rl", "many"], "such as 100M,16,8k,0.5"),
        (&["lifecycle", "--eta", "0"], "eta = 0"),
        (&["lifecycle", "--survives", "0"], "more than none"),
        (&["goodput", "deepseek-v3"], "--chip-mtbf"),
        (&["goodput", "lama-3-405b"], "did you mean \"llama-3-405b\""),
        (&["forensics"], "a run of the catalogue"),
        (&["forensics", "--mfu", "high"], "--mfu high"),
        (&["reversible", "--depth", "1000"], "2 to 128"),
        (&["reversible", "lama-3.1-70b"], "did you mean \"llama-3.1-70b\""),
    ] {
        let error = refused(args);
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

#[test]
fn help_teaches_with_an_example() {
    for command in ["scaling", "lifecycle", "goodput", "forensics", "reversible"] {
        assert!(shown(&[command, "--help"]).contains("Example: rackmath"), "{command}");
    }
}
