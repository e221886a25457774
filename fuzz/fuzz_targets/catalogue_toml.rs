//! Any bytes as a file of any kind of the catalogue, and as a quantity: never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_spec::{Catalog, IntoEnumIterator as _, Kind};
use rackmath_units::{ByteRate, Bytes, DollarRate, Fraction, Seconds, Tokens};

fuzz_target!(|data: &[u8]| {
    if let Ok(catalog) = Catalog::from_bundle(data) {
        assert!(Catalog::from_bundle(catalog.bundle().as_bytes()).is_ok());
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut catalog = rackmath_catalog::embedded();
    for kind in Kind::iter() {
        let ids: Vec<String> = catalog.ids(kind).take(4).map(str::to_owned).collect();
        for id in ids.iter().map(String::as_str).chain(["mine"]) {
            let _ = catalog.add(kind, id, text, None);
        }
    }
    let _ = text.parse::<Bytes>().map(|q| q.to_string());
    let _ = text.parse::<ByteRate>().map(|q| q.to_string());
    let _ = text.parse::<Seconds>().map(|q| q.to_string());
    let _ = text.parse::<Tokens>().map(|q| q.to_string());
    let _ = text.parse::<DollarRate>().map(|q| q.to_string());
    let _ = text.parse::<Fraction>();
});
