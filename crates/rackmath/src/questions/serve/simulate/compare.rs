//! Several ways to serve the same requests: one thing changes, the requests do not, and differences are taken batch by batch.

use super::answer::{grown, half_width};
use super::card::{Answer, Compared, Difference, Variant, What};
use super::{Request, work};
use crate::desk::prelude::*;
use rackmath_sim::tally::Sample;

/// Most ways of one comparison.
const MOST: usize = 16;
/// Rows of a sample and percentiles that are compared.
const METRICS: [(What, usize); 3] = [(What::Ttft, 1), (What::Tpot, 2), (What::E2e, 3)];
const PERCENTILES: [(f64, usize); 2] = [(0.5, 0), (0.99, 3)];
const EXPECTED: &str = "a setting and its values: router=round-robin,kv or max-num-seqs=64,256";

pub(super) fn answer(catalog: &Catalog, request: &Request, said: &str, effort: &Effort) -> Result<Answer, Error> {
    let (what, all) = variants(request, said)?;
    let mut answers = Vec::new();
    for (value, request) in &all {
        let world = work::World::new(catalog, request)?;
        let run = world.run(effort)?;
        let mut samples = run.tally.samples.clone();
        samples.sort_by_key(|s| s.0);
        answers.push((value.clone(), super::answer::answer(&world, run), samples));
    }
    let mut variants = Vec::new();
    for (value, answer, samples) in &answers {
        let differences = differences(&answers[0].2, samples);
        variants.push(Variant {
            value: value.clone(),
            metrics: answer.metrics.clone(),
            output_tok_s: answer.served.output_tok_s,
            cached: answer.served.cached,
            goodput: answer.goodput.as_ref().map(|g| g.share),
            queue_grows: grown(&answer.warnings),
            failed: answer.happened.map_or(0.0, |h| h.failed as f64 / (h.arrived as f64).max(1.0)),
            differences: if variants.is_empty() { Vec::new() } else { differences },
        });
    }
    let (_, mut first, _) = answers.swap_remove(0);
    let waits = request.traffic.users.is_some() || request.traffic.turns > 1;
    let verdict = verdict(&variants);
    first.compared = Some(Compared { what, same_times: !waits, variants, verdict });
    Ok(first)
}

/// The requests that `said` asks for: the setting's name, and each value with its request.
fn variants(request: &Request, said: &str) -> Result<(String, Vec<(String, Request)>), Error> {
    let wrong = |given: &str| Error::value("compare", format!("\"{given}\""), EXPECTED);
    let (what, values) = said.split_once('=').ok_or_else(|| wrong(said))?;
    let key = what.trim().trim_start_matches("--").replace('-', "_");
    // A trace may be long: it is carried past the values.
    let text = request.replay.trace_text.clone();
    let mut plain = request.clone();
    (plain.compare, plain.replay.trace_text) = (None, None);
    let plain = serde_json::to_value(plain).map_err(|e| Error::said(e.to_string()))?;
    let sections = ["/fleet", "/flags", "/sglang", "/trtllm", "/tiers", "/degrees", ""];
    let found = sections.iter().map(|section| format!("{section}/{key}"));
    let path = found.into_iter().find(|path| plain.pointer(path).is_some_and(|v| !v.is_object()));
    let path = path.ok_or_else(|| wrong(what))?;
    let values: Vec<&str> = values.split(',').map(str::trim).filter(|v| !v.is_empty()).collect();
    refuse_if(!(2..=MOST).contains(&values.len()), "compare", values.len(), format!("2 to {MOST} values"))?;
    let mut all = Vec::new();
    for value in values {
        let mut changed = plain.clone();
        let typed = serde_json::from_str(value).ok().filter(|v: &serde_json::Value| v.is_number() || v.is_boolean());
        if let Some(place) = changed.pointer_mut(&path) {
            *place = typed.unwrap_or_else(|| value.into());
        }
        let mut changed: Request = crate::ask::read(&changed)
            .map_err(|e| Error::value("compare", format!("\"{what}={value}\""), e.to_string()))?;
        changed.replay.trace_text.clone_from(&text);
        all.push((value.to_owned(), changed));
    }
    Ok((what.trim().to_owned(), all))
}

/// By how much batches of the second differ from the same batches of the first.
fn differences(first: &[(u64, Sample)], second: &[(u64, Sample)]) -> Vec<Difference> {
    let mut all = Vec::new();
    for (metric, row) in METRICS {
        for (percentile, column) in PERCENTILES {
            let pairs = first.iter().filter_map(|(which, a)| {
                let (_, b) = second.iter().find(|s| s.0 == *which)?;
                Some((b[row][column] - a[row][column]) / 1e6)
            });
            let pairs: Vec<f64> = pairs.filter(|d| d.is_finite()).collect();
            if pairs.is_empty() {
                continue;
            }
            let mean = pairs.iter().sum::<f64>() / pairs.len() as f64;
            all.push(Difference { metric, percentile, ms: mean, plus_minus_ms: half_width(&pairs) });
        }
    }
    all
}

/// Shares of failed requests that differ by more than this are not the same service.
const FAILED: f64 = 0.001;

/// Which is best by the 99th percentile of first tokens, where that is sure; none where queues grow, whose percentiles only
/// say how long the run was, and none that answers fewer.
fn verdict(variants: &[Variant]) -> Remark {
    let names = |grows: bool| -> Vec<String> {
        variants.iter().filter(|v| v.queue_grows == grows).map(|v| v.value.clone()).collect()
    };
    let (grow, keep_up) = (names(true), names(false));
    if !grow.is_empty() {
        let keep_up = Some(keep_up).filter(|all| !all.is_empty());
        return says("compared_unstable").with("grow", grow).with("keep_up", keep_up);
    }
    let shares = || variants.iter().map(|v| v.failed);
    let (least, most) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
    if most > least + FAILED {
        let each = |v: &Variant| says("compared_share").with("value", v.value.clone()).with("share", v.failed);
        return says("compared_failed").with("all", variants.iter().map(each).collect::<Vec<_>>());
    }
    let late = |v: &Variant| {
        v.differences.iter().find(|d| d.metric == What::Ttft && d.percentile == 0.99).copied().filter(Difference::sure)
    };
    let base = variants.first().map_or_else(String::new, |v| v.value.clone());
    let better = variants.iter().filter_map(|v| Some((v, late(v)?))).filter(|(_, d)| d.ms < 0.0);
    let best = better.min_by(|a, b| a.1.ms.total_cmp(&b.1.ms));
    if let Some((v, d)) = best {
        return says("compared_better")
            .with("best", v.value.clone())
            .with("base", base)
            .with("less", -d.ms / 1e3)
            .with("width", d.plus_minus_ms.map(|w| w / 1e3));
    }
    let all_worse = variants.iter().skip(1).all(|v| late(v).is_some());
    says(if all_worse { "compared_base" } else { "compared_even" }).with("base", base)
}
