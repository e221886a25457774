//! Any bytes as a trace of traffic or a distribution of lengths: a clear error or numbers that can be planned with, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_spec::file;
use rackmath_spec::lengths::Lengths;
use rackmath_theory::lengths::Drawn;
use rackmath_theory::traffic::Traffic;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(lengths) = text.parse::<Lengths>() {
        assert_eq!(lengths.to_string().parse::<Lengths>(), Ok(lengths));
        assert!(Drawn::of(&lengths).shares.is_sorted());
    }
    match file::workload("mine", text) {
        Ok(trace) => {
            let Some(t) = Traffic::of(&trace) else { return };
            assert!(t.input.drawn.mean >= 1.0 && t.output.drawn.variance >= 0.0);
            assert!(t.spread().prompt >= 0.0);
            if let Some(a) = t.arrivals {
                assert!(a.peak_over_mean.is_none_or(|over| over >= 1.0));
            }
        }
        Err(error) => assert!(error.to_string().len() < 4_000),
    }
});
