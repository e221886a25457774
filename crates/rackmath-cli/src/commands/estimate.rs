//! `rackmath estimate`

use super::setting;
use crate::args::{Common, EstimateArgs};
use crate::failure::Failure;
use crate::output;
use rackmath::Catalog;
use rackmath::estimate::{self, Disaggregated, Request, Speculation, sweep};
use rackmath::layout::DegreesRequest;
use rackmath_report::{csv, png, scene, svg, text};
use rackmath_units::{Fraction, Seconds, Tokens};

pub fn run(common: &Common, catalog: &mut Catalog, a: &EstimateArgs) -> Result<(), Failure> {
    let request = request(catalog, a)?;
    if a.sweep {
        return swept(common, catalog, a, request);
    }
    let answer = estimate::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::estimate(&answer, style))
}

fn request(catalog: &mut Catalog, a: &EstimateArgs) -> Result<Request, Failure> {
    let (cut, split) = (&a.cut, &a.split);
    let prefill = DegreesRequest {
        tp: split.prefill_tp,
        pp: split.prefill_pp,
        dp: split.prefill_dp,
        ep: split.prefill_ep,
        ..DegreesRequest::default()
    };
    Ok(Request {
        setting: setting(catalog, &a.setting)?,
        degrees: cut.degrees.request(),
        flags: cut.flags.clone(),
        tool: cut.tool.clone(),
        engine: a.engine.clone(),
        concurrency: a.concurrency.map(Tokens::get),
        rate_per_s: a.request_rate,
        max_load: a.max_load,
        isl: a.isl.get(),
        osl: a.osl.get(),
        prefix_hit: a.prefix_hit.get(),
        speculation: a.drafts.map(|drafts| Speculation { drafts, accepted: a.accepted, acceptance: a.acceptance }),
        max_num_batched_tokens: a.max_num_batched_tokens.map(Tokens::get),
        max_num_seqs: a.max_num_seqs.map(Tokens::get),
        memory_utilisation: a.gpu_memory_utilization.map(Fraction::get),
        ttft_slo_ms: a.ttft_slo.map(Seconds::as_ms),
        tpot_slo_ms: a.tpot_slo.map(Seconds::as_ms),
        disaggregated: split.disaggregated.then_some(Disaggregated { prefill_chips: split.prefill_chips, prefill }),
        changes: !a.no_changes,
    })
}

fn swept(common: &Common, catalog: &Catalog, a: &EstimateArgs, request: Request) -> Result<(), Failure> {
    let answer = sweep::answer(catalog, &sweep::Request { estimate: request, ..sweep::Request::default() })?;
    if let Some(path) = &a.svg {
        output::save(path, svg::paint(&scene(&answer.figure)).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene(&answer.figure)))?;
    }
    if let Some(path) = &a.csv {
        output::save(path, csv::estimate_sweep(&answer).as_bytes())?;
    }
    let saved = a.svg.is_some() || a.png.is_some() || a.csv.is_some();
    if saved && !common.json {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::estimate_sweep(&answer, style))
}
