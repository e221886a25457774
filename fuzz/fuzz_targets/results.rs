//! Result files of load generators, and metrics of servers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_measure::prometheus::{Reading, Scrape};
use rackmath_measure::read::read;
use rackmath_measure::watch::{replayed, view};

fuzz_target!(|text: &str| {
    if let Ok(all) = read("fuzz", text) {
        assert!(all.iter().all(|o| o.ttft_ms.mean.is_none_or(|t| t.is_finite() && t >= 0.0)));
    }
    let _ = Reading::of(&Scrape::read(text));
    if let Ok(taken) = replayed("fuzz", text, 0.0) {
        let _ = view(&taken);
    }
});
