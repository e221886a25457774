//! What a person sees of a deduction: the command run for real, its output kept as snapshots.

mod common;

use common::{refused, shown, typed};
use std::io::Write as _;
use std::path::PathBuf;

fn sheet(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::File::create(&path).expect("writable").write_all(text.as_bytes()).expect("writable");
    path
}

/// What is said of a bad sheet, with its folder taken out.
fn complaint(name: &str, text: &str) -> String {
    let path = sheet(name, text);
    refused(&["deduce", path.to_str().expect("UTF-8")]).replace(env!("CARGO_TARGET_TMPDIR"), "DIR")
}

#[test]
fn a_hidden_model() {
    insta::assert_snapshot!(shown(&["deduce", "--blind", "qwen3-235b-a22b"]));
}

#[test]
fn a_vendor_of_policies() {
    insta::assert_snapshot!(typed(
        "deduce --vendor anthropic --input 5$/Mtok --output 25$/Mtok --cached 0.5$/Mtok --write-5m 6.25$/Mtok --write-1h 10$/Mtok --fast-price 6 --fast-speed 2.5"
    ));
}

#[test]
fn a_sheet_from_a_file_with_a_price_step() {
    let text = "model = \"gemini-3.1-pro\"\nvendor = \"google\"\nas_of = \"2026-08-08\"\ninput = \"$2/Mtok\"\noutput = \"$12/Mtok\"\ncached = \"$0.2/Mtok\"\nstorage = \"$4.50/Mtok-h\"\nlong_above = \"200k\"\nlong_input = \"$4/Mtok\"\nlong_output = \"$18/Mtok\"\n";
    let path = sheet("gemini.toml", text);
    insta::assert_snapshot!(shown(&["deduce", path.to_str().expect("UTF-8")]));
}

#[test]
fn prices_that_contradict_everything() {
    insta::assert_snapshot!(typed("deduce --input 900$/Mtok --cached 0.001$/Mtok --tokens-per-s 100000 --points 12"));
}

#[test]
fn bad_sheets_are_refused_by_file_and_field() {
    let complaints = [
        ("typo.toml", "inptu = \"$5/Mtok\"\n"),
        ("unit.toml", "input = 5\n"),
        ("negative.toml", "input = \"$-5/Mtok\"\n"),
        ("absurd.toml", "input = \"$114000/Mtok\"\n"),
        ("future.toml", "as_of = \"2999-01-01\"\ninput = \"$5/Mtok\"\n"),
    ]
    .map(|(name, text)| complaint(name, text));
    // Today's date is in the last one.
    let text = complaints.join("\n");
    let text: String = text.lines().map(|l| l.split("not after today").next().unwrap_or(l).to_owned() + "\n").collect();
    insta::assert_snapshot!(text);
}

#[test]
fn bad_flags_are_refused() {
    let text = [
        refused(&["deduce", "--input", "5"]),
        refused(&["deduce", "--input=-5$/Mtok"]),
        refused(&["deduce", "--blind", "qwen3-325b"]),
        refused(&["deduce", "--vendor", "antropic"]),
        refused(&["deduce", "--as-of", "2999-01-01"]).split("not after").next().unwrap_or_default().to_owned() + "\n",
    ]
    .concat();
    insta::assert_snapshot!(text);
}

#[test]
fn json_and_svg_are_there_and_the_same_twice() {
    let args = ["deduce", "--blind", "llama-3.1-405b", "--json"];
    let (a, b) = (shown(&args), shown(&args));
    assert_eq!(a, b);
    let json: serde_json::Value = serde_json::from_str(&a).expect("JSON");
    assert!(json["unknowns"][0]["truth"].as_f64().expect("a number") > 4e11);
    let svg = shown(&["deduce", "--blind", "llama-3.1-405b", "--svg", "-"]);
    assert!(svg.starts_with("<svg") && svg.contains("posterior"));
}

#[test]
fn a_sheet_of_the_catalogue_by_name() {
    insta::assert_snapshot!(shown(&["deduce", "gpt-5.5", "--tokens-per-s", "60"]));
    let svg = shown(&["deduce", "opus-4.6", "--figure", "ridge", "--svg", "-"]);
    assert!(svg.starts_with("<svg") && svg.contains("same input price"), "{svg}");
    let err = refused(&["deduce", "gpt-55"]);
    assert!(err.contains("gpt-5.5"), "{err}");
    let path = sheet(
        "listed.toml",
        "name = \"Mine\"\nprovider = \"openai\"\nmodel = \"mine\"\nas_of = \"2026-08-01\"\n[[list]]\nfrom = \"2026-07-01\"\ninput = \"$4/Mtok\"\noutput = \"$25/Mtok\"\nsource = \"read by hand\"\n",
    );
    let json = shown(&["deduce", path.to_str().expect("UTF-8"), "--json"]);
    assert!(json.contains("\"input_usd_per_mtok\": 4.0") && json.contains("Mine by openai"), "{json}");
}
