//! Links named by hand, and small machines that are joined by a network: laws, and what was refused before.

use rackmath::estimate::{self, Request};
use rackmath::layout::DegreesRequest;
use rackmath::setting::Setting;
use rackmath_catalog::embedded;

fn request(model: &str, on: &str, link: Option<&str>, concurrency: f64) -> Request {
    let setting = Setting { model: model.into(), on: on.into(), link: link.map(Into::into), ..Setting::default() };
    let degrees = DegreesRequest { tp: Some(2), ..DegreesRequest::default() };
    Request { setting, degrees, concurrency: Some(concurrency), changes: false, ..Request::default() }
}

/// Milliseconds per output token.
fn step(model: &str, on: &str, link: Option<&str>, concurrency: f64) -> f64 {
    let answer = estimate::answer(&embedded(), &request(model, on, link, concurrency)).unwrap();
    answer.served.expect("fits").tpot_ms.value
}

#[test]
fn a_faster_link_never_makes_a_step_longer_and_the_ideal_one_is_the_shortest() {
    for (model, on) in [("llama-3.1-8b", "2xrtx-3090"), ("gpt-oss-120b", "2xgb10"), ("llama-3.1-8b", "2xv100")] {
        for concurrency in [1.0, 32.0] {
            let best = step(model, on, Some("ideal"), concurrency);
            let mut before = f64::INFINITY;
            for rate in ["1Gb/s", "1GB/s", "10GB/s", "200Gb/s", "100GB/s", "1TB/s"] {
                let tpot = step(model, on, Some(rate), concurrency);
                assert!(
                    tpot <= before && tpot >= best,
                    "{model} on {on} over {rate}: {tpot} after {before}, ideal {best}"
                );
                before = tpot;
            }
        }
    }
}

#[test]
fn two_small_machines_share_a_model_over_the_port_they_have() {
    for on in ["2xgb10", "2xv100", "2xv100-pcie", "2xrtx-3090", "2xrtx-4090"] {
        let own = step("llama-3.1-8b", on, None, 1.0);
        let ideal = step("llama-3.1-8b", on, Some("ideal"), 1.0);
        assert!(own > ideal, "{on}: {own} with its links, {ideal} without");
    }
    // A V100 has no bf16: the checkpoint is cast, and the page says so.
    let answer = estimate::answer(&embedded(), &request("llama-3.1-8b", "2xv100", None, 1.0)).unwrap();
    let text = serde_json::to_string(&answer).unwrap();
    assert!(text.contains("fp16") && text.contains("bf16"), "{text}");
}

#[test]
fn a_bridge_joins_two_cards_and_is_refused_where_none_is_sold() {
    let catalog = embedded();
    step("llama-3.1-8b", "2xrtx-3090", Some("nvlink"), 1.0);
    let mut four = request("llama-3.1-8b", "4xrtx-3090", Some("nvlink"), 1.0);
    assert!(estimate::answer(&catalog, &four).is_ok());
    four.degrees.tp = Some(4);
    assert!(estimate::answer(&catalog, &four).unwrap_err().to_string().contains("scale-up domain"));
    four.setting.link = Some("pcie4 x8".into());
    assert!(estimate::answer(&catalog, &four).is_ok());
    for link in ["nvlink", "fast", "", "nvlink4"] {
        let error = estimate::answer(&catalog, &request("llama-3.1-8b", "2xrtx-4090", Some(link), 1.0)).unwrap_err();
        assert!(error.to_string().contains("expected"), "{link}: {error}");
    }
}

#[test]
fn tensor_parallelism_over_two_hosts_takes_longer_than_inside_one() {
    // Kimi K2 on two nodes of eight H200, as people start it.
    let line = "vllm serve moonshotai/Kimi-K2-Instruct --tensor-parallel-size 16";
    let catalog = embedded();
    let step = |on: &str, tp: u64, dp: u64| {
        let mut asked = request("llama-3.1-70b", on, None, 16.0);
        (asked.degrees.tp, asked.degrees.dp) = (Some(tp), Some(dp));
        estimate::answer(&catalog, &asked).unwrap().served.unwrap().tpot_ms.value
    };
    assert!(step("16xh200", 16, 1) > step("16xh200", 8, 1), "sums cross the network between hosts");
    let mut kimi = request("kimi-k2", "16xh200", None, 16.0);
    (kimi.flags, kimi.degrees) = (Some(line.into()), DegreesRequest::default());
    let answer = estimate::answer(&catalog, &kimi).unwrap();
    assert!(answer.served.is_some() && answer.layout.starts_with("tp16"), "{}", answer.layout);
    assert!(answer.assumptions.iter().any(|a| a.says == "reduced_over_hosts"));
}
