use super::*;
use crate::serving::inferencex::{NEWEST, TABLE};

fn case(file: &str, metric: &str, chip: (&str, &str), engine: &str, ratio: f64) -> Case {
    Case {
        file: file.into(),
        metric: metric.into(),
        chip: chip.0.into(),
        vendor: chip.1.into(),
        engine: engine.into(),
        model: "a model".into(),
        concurrency: Some(8.0),
        measured: 10.0,
        predicted: 10.0 * ratio,
        ..Case::default()
    }
}

fn of(cases: Vec<Case>) -> Accuracy {
    Accuracy {
        cases,
        refused: BTreeMap::new(),
        decisions: Vec::new(),
        held: Vec::new(),
        deduced: None,
        tables: 0,
        unread: Vec::new(),
    }
}

fn line<'a>(lines: &'a [(bool, Scored)], what: &str) -> &'a Scored {
    &lines.iter().find(|(_, l)| l.what == what).unwrap_or_else(|| panic!("no line {what}")).1
}

const B200: (&str, &str) = ("b200", "NVIDIA");

#[test]
fn a_line_is_the_middle_and_the_upper_tenth_of_its_own_rows() {
    let e = std::f64::consts::E;
    let times = [0.05, -0.10, 0.20].map(|x: f64| case(TABLE, "A TPOT", B200, "vllm@0.19", e.powf(x)));
    let first = case(TABLE, "A TTFT, up to 16", B200, "vllm@0.19", 2.0);
    let newer = case(NEWEST, "TPOT", ("mi355x", "AMD"), "sglang", 0.5);
    let lines = of(times.into_iter().chain([first, newer]).collect()).lines();
    let tpot = line(&lines, "InferenceX TPOT");
    let errors = tpot.errors.unwrap();
    // Distances 0.05, 0.10 and 0.20: the middle is 0.10, nine in ten 0.10 + 0.8 x 0.10; the middle signed one is 0.05.
    assert_eq!((tpot.rows, tpot.groups), (3, 1));
    assert!((errors.fit.median - 0.10).abs() < 1e-9 && (errors.fit.p90 - 0.18).abs() < 1e-9, "{errors:?}");
    assert!((errors.bias - 0.05).abs() < 1e-9);
    assert_eq!(tpot.met, Some(false), "0.10 is above 0.08");
    assert_eq!(line(&lines, "InferenceX TTFT, concurrency up to 16").rows, 1);
    let newest = line(&lines, "newest with percentiles, all chips, TPOT");
    assert_eq!((newest.rows, newest.met), (1, Some(false)));
    assert_eq!(line(&lines, "newest NVIDIA rows, TPOT").rows, 0);
    assert_eq!(line(&lines, "newest NVIDIA rows, TPOT").met, None, "nothing was measured");
    assert_eq!(line(&lines, "AMD serving, TPOT or throughput").rows, 1);
}

#[test]
fn training_is_the_mean_of_its_sources_and_none_may_be_far_off() {
    let run = |file: &str, ratio| case(file, "training step", ("h100-sxm", "NVIDIA"), "megatron-core", ratio);
    let lines =
        of(vec![run("training_a.csv", 1.10), run("training_a.csv", 0.98), run("amd_tpu/training_b.csv", 1.20)]).lines();
    // Sources are 6 % and 20 % off: 13 % in the mean, whatever the rows of each.
    let all = line(&lines, "training: mean of the sources");
    assert_eq!((all.other.as_str(), all.met), ("13.0 %, worst 20.0 %", Some(false)));
    assert_eq!(line(&lines, "training: a").met, Some(true));
    assert_eq!(line(&lines, "training: b").other, "20.0 %");
}

#[test]
fn choices_must_be_good_and_better_than_the_roofline() {
    let one = |chooser, within| planner::Decision {
        table: "t".into(),
        each: vec![("a question".into(), 0.2)],
        chooser,
        within,
        median: 0.01,
        mean: 0.02,
    };
    let choose = |ours: f64, roofline: f64| {
        let decisions = vec![one(planner::Chooser::Ours, ours), one(planner::Chooser::Roofline, roofline)];
        let all = Accuracy { decisions, ..of(Vec::new()) };
        line(&all.lines(), "t: rackmath").met
    };
    assert_eq!(choose(0.90, 0.80), Some(true));
    assert_eq!(choose(0.90, 0.95), Some(false));
    assert_eq!(choose(0.80, 0.60), Some(false));
}

#[test]
fn prices_are_judged_by_error_and_by_coverage() {
    let all = Accuracy { deduced: Some([(10, 0.15, 0.8), (10, 0.15, 0.6)]), ..of(Vec::new()) };
    let lines = all.lines();
    assert_eq!(line(&lines, "deduce from prices, architecture left out").met, Some(true));
    assert_eq!(line(&lines, "deduce from prices, maker left out").met, Some(false));
}

#[test]
fn every_line_has_a_name_of_its_own_and_the_text_says_what_is_left_out() {
    let names: BTreeSet<&str> = LINES.iter().map(|line| line.what).collect();
    assert_eq!(names.len(), LINES.len());
    let mut all = of(vec![case(TABLE, "A TPOT", B200, "vllm@0.19", 1.5), case(TABLE, "A TPOT", B200, "sglang", 1.1)]);
    all.refused.insert(("serving", "no engine \"abacus\"".into()), 7);
    all.unread.push(("a.csv".into(), "no reader"));
    let text = all.text(true);
    assert!(text.contains("     7  serving: no engine \"abacus\"") && text.contains("a.csv: no reader"), "{text}");
    // The head says which tables were read and which were not.
    assert!(text.find("0 tables read, 1 not:\n  a.csv: no reader") < text.find("must show"), "{text}");
    // ln 1.5 of ln 1.5 + ln 1.1 is 81 %: the group that adds most stands first.
    let (first, second) = (text.find("81.0 %").unwrap(), text.find("19.0 %").unwrap());
    assert!(first < second && text[first..second].contains("b200 | vllm | a model"), "{text}");
    assert_eq!(all.csv().lines().count(), 3);
    assert_eq!(all.by_file()[TABLE], 2);
}

#[test]
fn a_folder_is_scored_whole_and_names_nobody_knows_are_counted() {
    let folder = std::env::temp_dir().join(format!("rackmath-accuracy-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("amd_tpu")).unwrap();
    let columns =
        "model,precision,hardware,n_gpus,engine,mode,spec_decoding,tier,isl,osl,concurrency,tp_size,tpot_ms,ttft_ms";
    let rows = [
        "openai/gpt-oss-120b,fp4,h200_sxm,1,vllm,agg,none,A,1000,1000,8,1,6,100",
        "openai/gpt-oss-120b,fp4,h200_sxm,1,abacus,agg,none,A,1000,1000,8,1,6,100",
        "some/model,fp4,h200_sxm,1,vllm,agg,none,A,1000,1000,8,1,6,100",
        "openai/gpt-oss-120b,fp4,slate,1,vllm,agg,none,A,1000,1000,8,1,6,100",
        "openai/gpt-oss-120b,fp4,h200_sxm,1,vllm,agg,mtp,A,1000,1000,8,1,6,100",
    ];
    std::fs::write(folder.join(NEWEST), format!("{columns}\n{}\n", rows.join("\n"))).unwrap();
    std::fs::write(folder.join("nobody.csv"), "a,b\n1,2\n").unwrap();
    let (cases, refused_rows) = cases(&rackmath_catalog::embedded(), &folder).unwrap();
    let unread = unread(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(cases.iter().map(|c| c.metric.as_str()).collect::<Vec<_>>(), ["TPOT", "TTFT, up to 16"]);
    let refused =
        |word: &str| -> usize { refused_rows.iter().filter(|((_, why), _)| why.contains(word)).map(|(_, n)| n).sum() };
    // Two figures of a row that cannot be predicted, one of a row that is not read.
    assert_eq!(["abacus", "some/model", "slate", "drafts"].map(refused), [2, 2, 2, 1], "{refused_rows:?}");
    assert_eq!(unread, [("nobody.csv".to_owned(), "no reader")]);
}
