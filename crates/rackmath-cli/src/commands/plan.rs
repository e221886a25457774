//! `rackmath plan`

use crate::args::{Common, PlanArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::Catalog;
use rackmath::plan::{self, Answer, Request};
use rackmath_report::{csv, scene, svg, text};
use rackmath_units::{Fraction, Seconds, TokenRate, Tokens, Watts};
use std::path::Path;

pub fn run(common: &Common, catalog: &mut Catalog, a: &PlanArgs) -> Result<(), Failure> {
    let request = request(catalog, a)?;
    if let Some(path) = &a.rows {
        super::rows::write(catalog, &request, a.shard, path, a.feasible)?;
    }
    if let Some(one) = a.shard {
        return super::shard::run(catalog, a, &request, one);
    }
    let answer = plan::answer_on(catalog, &request, threads())?;
    show(common, a, &request, &answer)
}

/// Threads to search on.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The answer as asked for.
pub(super) fn show(common: &Common, a: &PlanArgs, request: &Request, answer: &Answer) -> Result<(), Failure> {
    files(answer, a.svg.as_deref(), a.csv.as_deref())?;
    if super::handover::save(&a.handover, || super::planfile::text(a, request, answer), answer)? {
        return Ok(());
    }
    output::answer(common, answer, |style| text::plan(answer, style))
}

/// Its picture and its table.
pub(super) fn files(answer: &Answer, picture: Option<&Path>, table: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = picture {
        output::save(path, svg::paint(&scene(&answer.figure)).as_bytes())?;
    }
    if let Some(path) = table {
        output::save(path, csv::plan_frontier(answer).as_bytes())?;
    }
    Ok(())
}

pub(super) fn request(catalog: &mut Catalog, a: &PlanArgs) -> Result<Request, Failure> {
    let on: Vec<&str> = a.machines().split(',').map(str::trim).collect();
    let mut read = |words: &[&str]| -> Result<String, Failure> {
        let all = words.iter().map(|on| inputs::machine(catalog, on)).collect::<Result<Vec<_>, _>>()?;
        Ok(all.join(","))
    };
    let machines = read(&on)?;
    let prompts = a.prefill_on.as_deref().map(|p| p.split(',').map(str::trim).collect::<Vec<_>>());
    let prefill_on = prompts.map(|p| read(&p)).transpose()?;
    let mut first = a.setting.clone();
    on[0].clone_into(&mut first.on);
    let mut setting = super::setting(catalog, &first)?;
    setting.on = machines;
    let words = |typed: &Option<String>| -> Vec<String> {
        typed.as_deref().unwrap_or("auto").split(',').map(|w| w.trim().to_owned()).collect()
    };
    let (weights, kvs) = (words(&a.setting.quantization), words(&a.setting.kv_cache_dtype));
    (setting.weights, setting.kv) = (None, None);
    let usual = Request::default();
    Ok(Request {
        setting,
        engines: a.engine.clone(),
        weights,
        kvs,
        chunks: a.chunks.iter().map(|c| c.get()).collect(),
        drafts: if a.drafts.is_empty() { usual.drafts } else { a.drafts.clone() },
        acceptance: a.acceptance.map(Fraction::get),
        disaggregated: !a.aggregated,
        isl: a.isl.map(Tokens::get),
        osl: a.osl.map(Tokens::get),
        prefix_hit: a.prefix_hit.map(Fraction::get),
        scenario: a.scenario.clone(),
        rate_per_s: a.rate,
        ttft_ms: a.ttft.map(Seconds::as_ms),
        tpot_ms: a.tpot.map(Seconds::as_ms),
        e2e_ms: a.e2e.map(Seconds::as_ms),
        user_tok_s: a.user.map(TokenRate::get),
        throughput_tok_s: a.throughput.map(TokenRate::get),
        headroom: a.headroom.map(Fraction::get),
        budget_usd_per_hour: a.budget.map(|b| b.get() * 3600.0),
        power_w: a.power.map(Watts::get),
        objective: a.objective.clone(),
        top: a.top.into(),
        handover: super::handover::request(&a.handover, &a.workload)?,
        draws: super::trace::draws(catalog, &a.workload)?,
        prefill_on,
        degrees: a.degrees.clone(),
        offload_hit: a.offload_hit.map(Fraction::get),
        dcp: a.dcp.clone(),
    })
}
