//! Any bytes as a scenario of recorded schedules or as a trace to simulate: a clear error or a run that ends, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath::Catalog;
use rackmath::setting::Setting;
use rackmath::simulate::{Flags, Replayed, Request, answer_on};
use rackmath_sim::replay::{self, Scenario};
use rackmath_units::Effort;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(scenario) = serde_json::from_str::<Scenario>(text) {
        // Records of long runs are only slow.
        if text.len() < 4096 {
            match replay::run(&scenario) {
                Ok(lines) => assert!(lines.len() >= 2),
                Err(error) => assert!(error.len() < 6_000),
            }
        }
        return;
    }
    let request = Request {
        setting: Setting { model: "llama-3.1-8b".into(), on: "1xh200".into(), ..Setting::default() },
        replay: Replayed { trace_name: "mine".into(), trace_text: Some(text.into()), ..Replayed::default() },
        flags: Flags { max_model_len: Some(8192), ..Flags::default() },
        ..Request::default()
    };
    match answer_on(&CATALOG, &request, &Effort::default()) {
        Ok(answer) => {
            let lines = text.lines().count() as u64;
            assert!(answer.requests <= lines && answer.unfinished == 0);
            assert!(answer.metrics.iter().all(|m| m.mean_ms.is_finite() && m.p50_ms <= m.p999_ms));
        }
        Err(error) => assert!(error.to_string().len() < 4_000),
    }
});
