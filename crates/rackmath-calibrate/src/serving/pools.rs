//! Disaggregated serving: what `estimate` says of two pools, against measured ones.
//!
//! InferenceX states the layout and the number of workers of either pool. `estimate` knows one decoding instance, so that
//! several of them share the requests and the prefill workers evenly; pools that do not divide so are left out.

use super::{case, inferencex};
use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use rackmath::estimate::{self, Disaggregated};
use rackmath::layout::DegreesRequest;
use rackmath::setting::Setting;
use rackmath_spec::measurement::{Load, Setup, Way};
use rackmath_spec::{Catalog, SpecError};
use std::path::Path;

/// Times per token, and to the first where a table has them.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let names = Names::new(catalog);
    let mut all = Rows::none();
    for file in [inferencex::NEWEST, inferencex::DUMP] {
        for row in table_or_none(&folder.join(file))?.iter().filter(|row| row.text("mode") == "disagg") {
            match both(catalog, &names, file, row) {
                Ok(found) => all.rows.extend(found),
                Err(reason) => all.skip(format!("{file}, two pools: {reason}")),
            }
        }
    }
    Ok(all)
}

fn both(catalog: &Catalog, names: &Names<'_>, file: &str, row: &Record) -> Result<Vec<Case>, String> {
    if row.text("spec_decoding") != "none" {
        return Err("drafts, whose acceptance is not published".into());
    }
    let (setup, load) = inferencex::ran(names, row).ok_or("no lengths or no concurrency")?;
    let request = request(row, &setup, &load)?;
    let answer = estimate::answer(catalog, &request).map_err(|e| e.to_string())?;
    let served = answer.served.ok_or("predicted not to fit")?;
    let mut found = Vec::new();
    for (metric, column, predicted) in
        [("TPOT", "tpot_ms", served.tpot_ms.value), ("TTFT", "ttft_ms", served.ttft_ms.map_or(f64::NAN, |t| t.value))]
    {
        let Some(measured) = row.number(column) else { continue };
        let case = case(catalog, file, &format!("two pools {metric}"), (&setup, &load)).map_err(|e| e.to_string())?;
        let what = format!(
            "{} of {}; {} of {}",
            row.degree("prefill_workers"),
            degrees(row, "prefill").1,
            row.degree("decode_workers"),
            degrees(row, "decode").1
        );
        found.push(Case { what, measured, predicted, ..case });
    }
    Ok(found)
}

/// Degrees of one worker of a pool, and its chips.
fn degrees(row: &Record, pool: &str) -> (DegreesRequest, u64) {
    let degree = |name: &str| row.degree(&format!("{pool}_{name}_size"));
    let (tp, dp, ep) = (degree("tp"), degree("attention_dp"), degree("moe_ep"));
    let chips = tp * dp;
    let ep = ep.min(chips);
    let d =
        DegreesRequest { tp: Some(tp), dp: Some(dp), ep: Some(ep), etp: Some(chips / ep), ..DegreesRequest::default() };
    (d, chips)
}

fn request(row: &Record, setup: &Setup, load: &Load) -> Result<estimate::Request, String> {
    let Way::Closed { concurrency, .. } = load.way else { return Err("no concurrency".into()) };
    let [prefills, decodes] = ["prefill_workers", "decode_workers"].map(|pool| row.degree(pool));
    if prefills % decodes != 0 {
        return Err("prefill workers that decoding ones cannot share evenly".into());
    }
    let ((prefill, prompt_chips), (own, chips)) = (degrees(row, "prefill"), degrees(row, "decode"));
    let share = prefills / decodes;
    let on = format!("{}x{}", chips + share * prompt_chips, setup.chip());
    let setting = Setting {
        model: setup.model.clone(),
        on,
        weights: setup.weights.clone(),
        kv: setup.kv.clone(),
        ..Setting::default()
    };
    Ok(estimate::Request {
        setting,
        degrees: own,
        engine: setup.engine.clone(),
        concurrency: Some((concurrency / decodes as f64).max(1.0)),
        isl: load.input,
        osl: load.output,
        disaggregated: Some(Disaggregated { prefill_chips: Some(share * prompt_chips), prefill }),
        pretend: true,
        changes: false,
        ..estimate::Request::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pools_are_asked_as_they_ran() {
        let csv = "\
model,precision,hardware,n_gpus,engine,mode,spec_decoding,isl,osl,concurrency,prefill_tp_size,prefill_attention_dp_size,prefill_moe_ep_size,prefill_workers,decode_tp_size,decode_attention_dp_size,decode_moe_ep_size,decode_workers,tpot_ms
openai/gpt-oss-120b,fp4,h200_sxm,6,vllm,disagg,none,1000,1000,32,1,1,1,4,1,1,1,2,8
openai/gpt-oss-120b,fp4,h200_sxm,6,vllm,disagg,none,1000,1000,32,1,1,1,1,1,1,1,2,8
openai/gpt-oss-120b,fp4,h200_sxm,6,vllm,disagg,mtp,1000,1000,32,1,1,1,4,1,1,1,2,8
";
        let catalog = rackmath_catalog::embedded();
        let names = Names::new(&catalog);
        let rows = crate::rows::parse(csv).unwrap();
        let (setup, load) = inferencex::ran(&names, &rows[0]).unwrap();
        let asked = request(&rows[0], &setup, &load).unwrap();
        // Four prefill workers for two decoding ones: two for each, which has half of the requests.
        assert_eq!((asked.concurrency, asked.isl), (Some(16.0), 900.0));
        assert_eq!(asked.disaggregated.unwrap().prefill_chips, Some(2));
        let found = both(&catalog, &names, "file", &rows[0]).unwrap();
        assert_eq!((found.len(), found[0].metric.as_str()), (1, "two pools TPOT"));
        assert!((1.0..100.0).contains(&found[0].predicted), "{found:?}");
        assert!(both(&catalog, &names, "file", &rows[1]).unwrap_err().contains("evenly"));
        assert!(both(&catalog, &names, "file", &rows[2]).unwrap_err().contains("drafts"));
    }
}
