//! Any bytes as a `config.json`: a clear error or a model that can be counted, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_spec::{Dtype, file};
use rackmath_theory::{count, kv};
use rackmath_units::Tokens;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match file::config_json("config.json", text) {
        Ok(model) => {
            let counted = count::count(&model);
            assert!(counted.read().get() <= counted.total() as f64 * 1.000_001);
            let cache = kv::cache(&model, Dtype::Bf16);
            let _ = cache.stored(Tokens::new(1e6)).get() + cache.read(Tokens::new(1e6)).get();
        }
        Err(error) => assert!(error.to_string().len() < 4_000),
    }
});
