//! Any bytes as a price sheet, a memory tier or a trace: a clear error or something that can be billed, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_spec::price::Factors;
use rackmath_spec::{Date, Moment, file};
use rackmath_theory::price::{Pattern, When, policies, trace};
use rackmath_theory::reuse::Reuse;
use rackmath_units::{Seconds, Tokens};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (_, moment) = (text.parse::<Date>(), text.parse::<Moment>().ok());
    match file::price("mine", text, None) {
        Ok(sheet) => {
            for list in &sheet.lists {
                let pattern = Pattern {
                    prefix: Tokens::new(1e5),
                    suffix: Tokens::new(1e3),
                    output: Tokens::new(1e3),
                    uses: 10,
                    gap: Seconds::s(60.0),
                };
                let bills = policies(list, &pattern, Factors::ONE.times(list.hour(moment)));
                assert!(bills.windows(2).all(|two| two[0].1.total() <= two[1].1.total()));
            }
        }
        Err(error) => assert!(error.to_string().len() < 4_000),
    }
    match file::trace("mine", text) {
        Ok(requests) => {
            let reuse = Reuse::of(&requests);
            assert!(reuse.hit_rate(Seconds::s(60.0)) <= reuse.hit_rate(Seconds::s(3600.0)));
            let sheet = rackmath_catalog::embedded().price("opus-4.8").expect("in the catalogue");
            let list = sheet.lists.last().expect("at least one");
            let when = When { mode: Factors::ONE, start: moment };
            let _ = trace(list, &requests, list.caches.first(), when).total();
        }
        Err(error) => assert!(error.to_string().len() < 4_000),
    }
});
