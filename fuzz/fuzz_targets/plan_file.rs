//! Any bytes as a plan file and as a change to it: a clear error, or a question that reads back as itself; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath::planfile::PlanFile;
use rackmath::whatif;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match PlanFile::read("mine", text) {
        Ok(file) => {
            let set = text.split_whitespace().take(4).map(str::to_owned).collect();
            let _ = whatif::changed(&whatif::Request { plan: file.request, set });
        }
        Err(error) => assert!(error.to_string().len() < 4_000),
    }
    let request = whatif::Request { set: vec![text.to_owned()], ..whatif::Request::default() };
    if let Ok(changed) = whatif::changed(&request) {
        let json = serde_json::to_string(&changed).expect("plain data");
        assert_eq!(serde_json::from_str::<rackmath::plan::Request>(&json).expect("reads back"), changed);
    }
});
