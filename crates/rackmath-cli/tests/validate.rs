//! `rackmath validate` as a person and a script see it.

mod common;

use common::{folder, json, read, said};

/// A folder with two rows of a published table, four figures.
fn measured(name: &str) -> String {
    let path = folder(name);
    let table = "model,hardware,tensor_parallel,prompt_size,batch_size,token_size,prompt_time_ms,token_time_ms\n\
                 llama2-70b,a100-80gb,4,512,1,128,127,45\n\
                 llama2-70b,h100-80gb,4,512,1,128,88,31\n";
    std::fs::write(format!("{path}/splitwise_llama2_bloom.csv"), table).expect("writable");
    path
}

#[test]
fn a_script_can_read_every_row() {
    let answer = json("validate splitwise --rows");
    let source = &answer["sources"][0];
    let rows = source["rows"].as_array().expect("rows");
    assert_eq!(rows.len() as u64, source["n"].as_u64().expect("a count"));
    for row in rows {
        let number = |key: &str| row[key].as_f64().expect("a number");
        assert!((number("ratio") * number("measured") / number("predicted") - 1.0).abs() < 1e-9);
    }
    let without = json("validate splitwise");
    assert_eq!(without["sources"][0]["rows"].as_array().map(Vec::len), Some(0));
    assert_eq!(without["sources"][0]["strata"], source["strata"]);
}

#[test]
fn a_chart_is_well_formed_and_has_one_mark_for_each_row() {
    let charts = folder("validate-charts");
    let answer = json(&format!("validate splitwise --rows --svg {charts}"));
    let svg = read(&format!("{charts}/splitwise.svg"));
    let rows = answer["sources"][0]["rows"].as_array().expect("rows").len();
    assert_eq!(svg.matches("<circle").count(), rows);
    well_formed(&svg);
}

/// Every element is closed in order, and no text holds a bare < or &.
fn well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml.trim();
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "{text}");
        assert!(text.split('&').skip(1).all(|after| after.contains(';')), "{text}");
        let end = rest[start..].find('>').expect("an end of the tag") + start;
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a name"));
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
}

#[test]
fn a_folder_is_scored_like_the_tables() {
    let path = measured("validate-folder");
    let answer = json(&format!("validate deepseek-production-day --folder {path} --rows"));
    let source = &answer["folder"]["sources"][0];
    assert_eq!((source["name"].as_str(), source["n"].as_u64()), (Some("Splitwise"), Some(4)));
    let metrics: Vec<&str> =
        source["strata"].as_array().expect("lines").iter().filter_map(|s| s["metric"].as_str()).collect();
    assert_eq!(metrics, ["prompt", "token"]);
    assert_eq!(answer["folder"]["total"]["n"].as_u64(), Some(4));
}

#[test]
fn a_group_left_out_is_predicted_without_it() {
    let path = measured("validate-leave-out");
    let args = format!("validate deepseek-production-day --folder {path} --leave-out chip");
    let answer = json(&args);
    let cross = &answer["folder"]["cross"];
    assert_eq!(cross["groups"], serde_json::json!(["a100-80gb", "h100-sxm"]));
    assert_eq!(cross["total"]["n"].as_u64(), Some(4));
    let inside = cross["total"]["coverage"].as_f64().expect("a share");
    assert!((0.0..=1.0).contains(&inside));
    assert_eq!(answer, json(&args), "the same question, the same answer");
}

#[test]
fn runs_are_replayed_from_what_is_carried() {
    let card = &json("validate simulate")["simulate"];
    let counts = ["scenarios", "steps"].map(|key| card["schedules"][key].as_u64());
    assert_eq!(counts, [Some(43), Some(25_518)]);
    assert_eq!(card["schedules"]["differ"], serde_json::json!([]));
    for source in card["sources"].as_array().expect("sources") {
        let runs = source["runs"].as_array().expect("runs").len() as u64;
        for line in source["latencies"].as_array().expect("lines") {
            assert_eq!(line["n"].as_u64(), Some(runs));
            assert!(line["median"].as_f64() <= line["p90"].as_f64());
        }
        assert!(["fitted", "assumed"].iter().all(|key| !source[*key].as_str().expect("words").is_empty()));
    }
    assert!(json("validate splitwise").get("simulate").is_none());
}

#[test]
fn an_empty_folder_says_what_it_should_hold() {
    let empty = folder("validate-empty");
    said(&[(&format!("validate splitwise --folder {empty}"), "splitwise_llama2_bloom.csv")]);
}

#[test]
fn rows_of_ones_own_are_scored_and_a_result_file_is_sent_to_gauge() {
    let path = folder("validate-own");
    let row = "source.name = \"mine\"\nsource.title = \"mine\"\nsource.address = \"own measurement\"\nsource.date = \"2026-11\"\nsource.licence = \"own\"\nsource.retrieved = \"2026-11\"\nsource.fitted = \"no\"\nsource.note = \"\"\ncommon.model = \"llama-3.1-8b\"\ncommon.system = \"1xh200\"\ncommon.weights = \"bf16\"\ncommon.engine = \"vllm\"\nrow = [{ mode = \"closed\", concurrency = 8, isl = 1000, osl = 200, metric = \"tpot_ms\", value = 8.0 }]\n";
    std::fs::write(format!("{path}/row.toml"), row).expect("writable");
    let answer = json(&format!("validate {path}/row.toml --rows"));
    assert_eq!((answer["sources"][0]["name"].as_str(), answer["total"]["n"].as_u64()), (Some("mine"), Some(1)));
    assert!(answer["sources"][0]["rows"][0]["predicted"].as_f64().is_some_and(|p| p > 1.0), "{answer}");
    std::fs::write(format!("{path}/bench.json"), "{}").expect("writable");
    said(&[(&format!("validate {path}/bench.json"), &format!("rackmath gauge --read {path}/bench.json"))]);
}
