//! Any bytes as a model, chip, system, law or run file, and as a quantity: never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_spec::{Catalog, file};
use rackmath_units::{ByteRate, Bytes, DollarRate, Fraction, Seconds, Tokens};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = file::model("mine", text);
    let _ = file::chip("mine", text);
    let _ = file::system("mine", text, |name| Catalog::embedded().chip(name));
    let _ = file::scaling_law("mine", text);
    let _ = file::training_run("mine", text);
    let _ = text.parse::<Bytes>().map(|q| q.to_string());
    let _ = text.parse::<ByteRate>().map(|q| q.to_string());
    let _ = text.parse::<Seconds>().map(|q| q.to_string());
    let _ = text.parse::<Tokens>().map(|q| q.to_string());
    let _ = text.parse::<DollarRate>().map(|q| q.to_string());
    let _ = text.parse::<Fraction>();
});
