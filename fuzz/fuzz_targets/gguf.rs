//! Any bytes as the header of a GGUF file: an error, more to read, or a model that can be counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_spec::file;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(header)) = file::gguf::header("fuzz.gguf", bytes) {
        let _ = header.by_type();
        if let Ok(model) = file::model("fuzz.gguf", &header.carried().to_string()) {
            let _ = rackmath_theory::count::count(&model);
        }
    }
});
