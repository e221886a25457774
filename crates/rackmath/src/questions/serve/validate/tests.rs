use super::*;
use proptest::prelude::*;

fn asked(table: &str) -> Answer {
    answer_on(&rackmath_catalog::embedded(), &Request { tables: vec![table.into()], rows: true }, 1).unwrap()
}

#[test]
fn one_factor_takes_the_bias_of_the_roofline_away() {
    // Twice, thrice and four times the roofline: the factor is 3, its distances ln 1.5, 0, ln 4/3.
    let rows: Vec<RowCard> = [2.0, 3.0, 4.0].map(|x| card(x, x, 1.0, Some(0.1))).to_vec();
    let line = &strata(&rows)[0];
    assert!((line.constant_median - (4.0_f64 / 3.0).ln()).abs() < 1e-12);
    assert!((line.roofline_median - 3.0_f64.ln()).abs() < 1e-12);
    assert_eq!((line.median, line.bias, line.coverage), (0.0, 0.0, Some(1.0)));
}

#[test]
fn a_row_is_its_ratio_and_a_summary_is_its_rows() {
    let answer = asked("splitwise");
    let source = &answer.sources[0];
    assert_eq!(source.rows.len() + source.skipped.iter().map(|s| s.n).sum::<usize>(), source.n);
    for row in &source.rows {
        assert!((row.ratio - row.predicted / row.measured).abs() < 1e-12);
        assert!((row.error - row.ratio.ln()).abs() < 1e-9);
        let inside = row.low.unwrap() <= row.measured * 1.000_001 && row.measured <= row.high.unwrap() * 1.000_001;
        assert_eq!(row.inside, Some(inside), "{row:?}");
    }
    for line in &source.strata {
        let rows = source.rows.iter().filter(|r| r.metric == line.metric);
        let mut distances: Vec<f64> = rows.map(|r| r.ratio.ln().abs()).collect();
        distances.sort_by(f64::total_cmp);
        let n = distances.len();
        let middle = f64::midpoint(distances[(n - 1) / 2], distances[n / 2]);
        assert_eq!(n, line.n);
        assert!((line.median - middle).abs() < 1e-9, "{} against {middle}", line.median);
        assert!((0.0..=1.0).contains(&line.coverage.unwrap()));
    }
}

#[test]
fn what_cannot_be_asked_is_listed_with_its_reason() {
    let answer = asked("mlperf-4.1");
    let source = &answer.sources[0];
    let cut = source.skipped.iter().find(|s| s.reason.contains("how the model was cut")).unwrap();
    assert_eq!(cut.n, cut.rows.len());
    assert_eq!(source.rows.len() + source.skipped.iter().map(|s| s.n).sum::<usize>(), source.n);
    assert!(source.notes.iter().any(|n| n.says == "compiler_version"), "{:?}", source.notes);
}

#[test]
fn kernels_are_scored_beside_whole_steps() {
    let answer = asked("h200-torch");
    let metrics: Vec<&str> = answer.sources[0].strata.iter().map(|s| s.metric.as_str()).collect();
    assert_eq!(metrics, ["decode step", "prefill step", "gemm_us", "decode_attention_us", "prefill_attention_us"]);
    // The operator was calibrated on this machine, the data sheet was not.
    for line in &answer.sources[0].strata[2..] {
        assert!(line.median < line.roofline_median, "{line:?}");
    }
}

#[test]
fn a_chart_has_one_dot_for_each_row() {
    let source = asked("splitwise").sources.remove(0);
    let figure = scatter(&source);
    let dots = figure.series.iter().filter(|s| s.role == crate::figure::Role::Points);
    assert_eq!(dots.map(|s| s.points.len()).sum::<usize>(), source.rows.len());
}

#[test]
fn runs_are_carried_as_they_were_measured() {
    let table = rackmath_catalog::embedded().validation("vllm-h200").unwrap();
    let runs = replay::carried(&table);
    let facts: Vec<(&str, usize)> = runs.iter().map(|run| (run.name.as_str(), run.jobs.len())).collect();
    assert_eq!(facts, [("poisson_60", 153), ("prefix_100", 298)]);
    // Medians that were published with the runs: TTFT and TPOT in milliseconds, E2E in seconds.
    for (run, [ttft, tpot, e2e]) in runs.iter().zip([[52.0, 9.18, 1.78], [57.0, 14.2, 3.16]]) {
        let at = |i: usize| run.measured[i].ms;
        assert!((at(0) - ttft).abs() < 0.5 && (at(3) - tpot).abs() < 0.05 && (at(6) / 1e3 - e2e).abs() < 0.005);
        assert!(run.jobs.iter().all(|job| job.content.iter().map(|s| s.tokens).sum::<u32>() == job.prompt));
    }
    // A conversation begins with one of eight segments of 1,024 tokens.
    let first: std::collections::BTreeSet<u64> = runs[1].jobs.iter().map(|job| job.content[0].stream).collect();
    assert!(first.len() <= 8 && runs[1].jobs.iter().all(|job| job.content[0].tokens == 1024));
    // Requests of which nothing was recorded are sent and not judged; a TTFT that was published with its run.
    let sweep = replay::carried(&rackmath_catalog::embedded().validation("vllm-405b").unwrap());
    let judged = |run: &replay::Run| run.jobs.iter().filter(|job| job.class == 0).count();
    let facts: Vec<(usize, usize)> = sweep.iter().map(|run| (run.jobs.len(), judged(run))).collect();
    assert_eq!(facts, [(1000, 622), (1000, 622), (848, 572), (1000, 623)]);
    assert!((sweep[0].measured[0].ms - 27_605.78).abs() < 1.0);
    let stated = replay::carried(&rackmath_catalog::embedded().validation("vllm-blis").unwrap());
    assert_eq!((stated.len(), stated[0].jobs.len()), (23, 600 * 17 / 2));
}

#[test]
fn a_table_with_a_typo_gets_the_nearest() {
    let request = Request { tables: vec!["spiltwise".into()], rows: false };
    let error = answer_on(&rackmath_catalog::embedded(), &request, 1).unwrap_err().to_string();
    assert!(error.contains("spiltwise") && error.contains("did you mean \"splitwise\""), "{error}");
}

#[test]
fn no_measured_row_beats_the_data_sheet() {
    // Full peak, full bandwidth, perfect overlap: what runs faster was not what the row says. Prompts found in a cache that the source
    // does not mention, tokens drafted unsaid, batches cut by a limit nobody wrote down: such rows are in the tables, and counted.
    let answer = answer_on(&rackmath_catalog::embedded(), &Request { tables: Vec::new(), rows: true }, 2).unwrap();
    let rate =
        |metric: &str| metric.contains("tok_s") || ["max load", "known batch", "decode", "prefill"].contains(&metric);
    let rows = answer.sources.iter().flat_map(|s| &s.rows).filter(|r| !r.metric.contains("drafting unknown"));
    let (mut all, mut faster) = (0, Vec::new());
    for row in rows.filter(|r| !r.metric.ends_with("_us") && !r.metric.contains("batched")) {
        all += 1;
        let over = if rate(&row.metric) { row.measured / row.roofline } else { row.roofline / row.measured };
        if over > 1.02 {
            faster.push(format!("{over:.2} {} {}", row.what, row.metric));
        }
    }
    assert!(
        all > 9_000 && faster.len() * 100 < all,
        "{} of {all}: {:#?}",
        faster.len(),
        &faster[..faster.len().min(40)]
    );
    // Intervals hold with whole groups left out: all together, for every step, and for nearly every metric of each.
    let all = answer.coverage.last().unwrap();
    assert_eq!((all.step.as_str(), all.holds), ("all", Some(true)), "{all:?}");
    let broken: Vec<_> = answer.coverage.iter().filter(|c| c.holds == Some(false)).collect();
    assert!(broken.len() <= 2 && broken.iter().all(|c| !c.what.is_empty()), "{broken:#?}");
    assert!(answer.coverage.iter().all(|c| c.n >= 1 && (0.0..=1.0).contains(&c.inside) && c.median <= c.p90));
}

proptest! {
    #[test]
    fn summaries_are_sane_for_any_rows(rows in prop::collection::vec((1e-3_f64..1e3, 1e-3_f64..1e3, 1e-3_f64..1e3, 0.01_f64..2.0), 1..40)) {
        let cards: Vec<RowCard> = rows.iter().map(|(p, x, r, w)| card(*p, *x, *r, Some(*w))).collect();
        let line = &strata(&cards)[0];
        prop_assert!(line.median <= line.p90 && line.roofline_median <= line.roofline_p90);
        prop_assert!((0.0..=1.0).contains(&line.coverage.unwrap()));
        prop_assert!(line.bias.abs() <= line.p90.max(cards.iter().map(|c| c.error.abs()).fold(0.0, f64::max)));
        prop_assert!(line.spearman.is_none_or(|r| (-1.0..=1.0).contains(&r)));
    }
}
