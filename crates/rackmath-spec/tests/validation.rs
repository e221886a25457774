//! Every table of published measurements loads, is cited, speaks the catalogue's words and holds figures of a sane size.

use proptest::prelude::*;
use rackmath_spec::validation::{Load, Metric, Mode, Row, Split, Table};
use rackmath_spec::{VariantArray as _, file};
use std::collections::BTreeSet;
use std::sync::Arc;

fn tables() -> Vec<Arc<Table>> {
    let catalog = rackmath_catalog::embedded();
    catalog
        .ids(rackmath_spec::Kind::Validation)
        .map(|id| catalog.validation(id).unwrap_or_else(|e| panic!("{e}")))
        .collect()
}

fn row_of(id: &str, wanted: impl Fn(&Row) -> bool) -> Row {
    let table = rackmath_catalog::embedded().validation(id).unwrap();
    table.rows.iter().find(|row| wanted(row)).cloned().unwrap_or_else(|| panic!("{id} has no such row"))
}

fn near(measured: f64, published: f64) -> bool {
    (measured - published).abs() < 1e-9 * published
}

#[test]
fn every_table_loads_and_its_words_are_in_the_catalogue() {
    let tables = tables();
    assert!(tables.len() >= 10, "{}", tables.len());
    let rows: usize = tables.iter().map(|t| t.rows.len()).sum();
    assert!(rows >= 300, "{rows}");
    let modes: BTreeSet<Mode> = tables.iter().flat_map(|t| t.rows.iter().map(|r| r.mode)).collect();
    assert_eq!(modes.len(), Mode::VARIANTS.len(), "a mode without a row: {modes:?}");
}

#[test]
fn every_table_says_where_it_comes_from_and_when() {
    for table in tables() {
        let s = &table.source;
        assert!(s.address.contains('/') || s.address.starts_with("own measurement"), "{}: {}", table.id, s.address);
        assert!(s.date.starts_with("20") && s.date.len() >= 7, "{}: {}", table.id, s.date);
        assert!(["yes: ", "no: ", "partly: "].iter().any(|w| s.fitted.starts_with(w)), "{}: {}", table.id, s.fitted);
        assert!(s.retrieved.starts_with("2026-"), "{}: {}", table.id, s.retrieved);
        let texts = [&s.name, &s.title, &s.licence, &s.note];
        assert!(texts.iter().all(|text| text.len() > 2), "{}: an empty field of its source", table.id);
        let silent = table.rows.iter().any(|r| !r.assumed.is_empty()) && !s.note.contains("ssumed");
        assert!(!silent, "{}: assumes without saying how", table.id);
    }
}

/// Widest plausible figures: from a phone-class chip to a rack, per chip where the metric is of a system.
fn plausible(metric: Metric) -> (f64, f64) {
    match metric {
        Metric::TpotMs | Metric::ItlMs => (1.0, 500.0),
        Metric::TtftMs => (2.0, 120_000.0),
        Metric::E2eMs => (10.0, 1e6),
        Metric::StepMs => (0.1, 5_000.0),
        Metric::OutputTokS | Metric::OutputTokSPerGpu => (20.0, 40_000.0),
        Metric::InputTokSPerGpu => (100.0, 50_000.0),
        Metric::DecodeTokS => (1.0, 2_000.0),
        Metric::PrefillTokS => (50.0, 50_000.0),
    }
}

#[test]
fn figures_are_positive_and_of_the_size_of_their_unit() {
    let catalog = rackmath_catalog::embedded();
    for table in tables() {
        for (i, row) in table.rows.iter().enumerate() {
            let chips = if row.metric == Metric::OutputTokS { catalog.system(&row.system).unwrap().n_chips } else { 1 };
            #[allow(clippy::cast_precision_loss)]
            let value = row.value / chips as f64;
            let (low, high) = plausible(row.metric);
            assert!((low..=high).contains(&value), "{} row {}: {} = {value}", table.id, i + 1, row.metric);
            let longest = row.isl.unwrap_or(0) + row.osl.unwrap_or(0) + row.context.unwrap_or(0);
            assert!((1..=200_000).contains(&longest), "{} row {}: {longest} tokens", table.id, i + 1);
        }
        for (i, kernel) in table.kernels.iter().enumerate() {
            assert!((1.0..=1e6).contains(&kernel.time_us), "{} kernel {}: {}", table.id, i + 1, kernel.time_us);
        }
    }
}

#[test]
fn a_latency_row_and_its_load_obey_littles_law() {
    // Requests in flight are served at n / (ttft + tpot (osl - 1)); no chip here gives out more than 20,000 tokens/s.
    for table in tables() {
        for (i, row) in table.rows.iter().enumerate() {
            if let (Metric::TpotMs, Some(Load::Concurrency(n)), Some(tp)) = (row.metric, row.load, row.split.tp) {
                #[allow(clippy::cast_precision_loss)]
                let per_chip = n as f64 * 1000.0 / row.value / tp as f64;
                assert!((10.0..20_000.0).contains(&per_chip), "{} row {}: {per_chip} tok/s", table.id, i + 1);
            }
        }
    }
}

#[test]
fn no_figure_is_given_twice() {
    for table in tables() {
        let mut seen = BTreeSet::new();
        for (i, row) in table.rows.iter().enumerate() {
            let question = Row { value: 1.0, range: None, ..row.clone() };
            assert!(seen.insert(format!("{question:?}")), "{} row {} repeats an earlier one", table.id, i + 1);
        }
    }
}

#[test]
fn figures_are_as_published() {
    // DeepSeek: "~14.8k tokens/s output during decoding" per node of 8.
    let decode = row_of("deepseek-production-day", |r| r.metric == Metric::OutputTokSPerGpu);
    assert!(near(decode.value * 8.0, 14_800.0) && decode.context == Some(4_989));
    assert_eq!(decode.split.layout(true).unwrap().unwrap().chips(), 144);
    // SGLang post: prefill 57,674 tokens/s per node at 1K.
    let prefill = row_of("sglang-large-scale-ep", |r| r.isl == Some(1_024));
    assert!(near(prefill.value * 8.0, 57_674.0));
    // mac-m2-ultra.md: gpt-oss 20B, tg32 @ d32768, 98.25 t/s.
    let deep = row_of("llamacpp", |r| r.model == "gpt-oss-20b" && r.context == Some(32_768));
    assert!(near(deep.value, 98.25));
    // Run log of GH200 144GB, llama2-70b Server: 13.33 samples/s.
    let server = row_of("mlperf-4.1", |r| {
        r.model == "llama-2-70b" && r.system == "gh200-144gb" && matches!(r.load, Some(Load::RatePerS(_)))
    });
    assert_eq!(server.load, Some(Load::RatePerS(13.33)));
    // error_records.csv: Scout on two H100, stage 0, mean TTFT 57.80 ms.
    let scout = row_of("vllm-blis", |r| r.model == "llama-4-scout" && r.metric == Metric::TtftMs);
    assert!((scout.value - 57.8).abs() < 0.01 && scout.load == Some(Load::RatePerS(2.5)));
}

const HEAD: &str = "source = { name = 'a', title = 'b', address = 'c/d', date = '2026', licence = 'e', retrieved = '2026-11', fitted = 'no: never', note = 'f' }\n\
    common = { model = 'llama-3.1-8b', weights = 'bf16', engine = 'vllm', system = '2xh100', tp = 2, mode = 'closed', isl = 10, osl = 10, metric = 'tpot_ms' }\n";

fn refusal(row: &str) -> String {
    let text = format!("{HEAD}row = [ {{ concurrency = 1, value = 1 }}, {{ {row} }} ]");
    file::validation("mine", &text).expect_err(row).to_string()
}

#[test]
fn a_refusal_names_the_file_the_row_and_the_field() {
    let cases = [
        ("concurrency = 1, value = 1, metric = 'tpot'", "metric: unknown variant `tpot`", "tpot_ms"),
        ("concurrency = 1, value = 1, kv = 'nvpf4'", "kv: no number format", "nvfp4"),
        ("concurrency = 1, value = 1, mode = 'zzz'", "mode: unknown variant `zzz`", "max-load"),
        ("concurrency = 1, value = -1", "value = -1", "positive"),
        ("concurrency = 0, value = 1", "concurrency = 0", "positive"),
        ("value = 1", "concurrency = nothing", "mode closed needs one"),
        ("concurrency = 1, batch = 1, value = 1", "several", "at most one"),
        ("concurrency = 1, value = 5, range = [1, 2]", "range = [1, 2]", "around 5"),
        ("concurrency = 1, value = 1, prefix_hit = 2", "prefix_hit: 2", "0 to 1"),
        ("concurrency = 1, value = 1, ep = 3", "ep = ", "divisor"),
        ("concurrency = 1, value = 1, assumed = ['mode']", "assumed = mode", "names of fields"),
        ("concurrency = 1, value = 1, speculation = { drafted = 1, accepted = 2 }", "accepted = 2", "drafted"),
        ("concurrency = 1, value = 1, batchs = 1", "batchs", "unknown field"),
        ("concurrency = 1, value = 'fast'", "fast", "value"),
    ];
    for (row, field, expected) in cases {
        let error = refusal(row);
        assert!(error.starts_with("validation mine row 2"), "{row}: {error}");
        assert!(error.contains(field) && error.contains(expected), "{row}: {error}");
    }
}

#[test]
fn names_of_no_thing_and_splits_that_do_not_fill_the_machine_are_refused() {
    let catalog = rackmath_catalog::embedded();
    let check = |row: &str| {
        let table =
            file::validation("mine", &format!("{HEAD}row = [ {{ concurrency = 1, value = 1{row} }} ]")).unwrap();
        table.check(|m| catalog.model(m).map(drop), |s| catalog.system(s).map(|s| s.n_chips))
    };
    assert!(check("").is_ok());
    for (row, field, hint) in [
        (", model = 'llama-3.1-8c'", "model", "llama-3.1-8b"),
        (", system = '2xh10'", "system", "h100"),
        (", system = '4xh100'", "system", "expected 4 chips"),
    ] {
        let error = check(row).unwrap_err().to_string();
        assert!(error.contains("mine row 1") && error.contains(field) && error.contains(hint), "{row}: {error}");
    }
}

proptest! {
    #[test]
    fn replicas_of_a_layout_are_all_the_chips(tp in 1_u64..9, pp in 1_u64..5, dp in 1_u64..5, groups in 1_u64..9, cut in 1_u64..9) {
        let split = |ep| Split { tp: Some(tp), pp: Some(pp), dp: Some(dp), attention_dp: Some(groups), ep: Some(ep), ..Split::default() };
        // Experts spread over the stage, and each cut by what is left of it, exist once.
        let layout = split(tp * groups).layout(true).unwrap().unwrap();
        prop_assert_eq!(layout.chips() * split(1).replicas(), split(1).chips());
        prop_assert_eq!(layout.expert_copies(), 1);
        prop_assert_eq!(split(cut).layout(true).is_ok(), (tp * groups).is_multiple_of(cut));
        prop_assert!(split(cut).layout(false).is_ok(), "a dense model has no experts to cut");
    }
}
