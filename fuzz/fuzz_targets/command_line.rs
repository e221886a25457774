//! Command lines, compose files and settings of servers: read or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_spec::line::{self, Program};
use std::sync::LazyLock;

static CATALOG: LazyLock<rackmath_spec::Catalog> = LazyLock::new(rackmath_catalog::embedded);

fuzz_target!(|text: &str| {
    let servers = ["", "vllm serve ", "python -m sglang.launch_server ", "trtllm-serve ", "llama-server ", "docker run "];
    for server in servers {
        let Ok(all) = line::find(&format!("{server}{text}")) else { continue };
        for started in all {
            let program = started.program.unwrap_or(Program::Vllm);
            let list = CATALOG.flag_list(started.list.unwrap_or(program.list())).expect("a list of every server");
            let _ = line::launch(&started, program, &list, Some(text), Some("0.19.0"));
            let _ = line::launch(&started, program, &list, None, None);
        }
    }
    let request = rackmath::check::Request {
        command: format!("vllm serve meta-llama/Llama-3.1-8B-Instruct {text}"),
        on: Some("h100".into()),
        ..Default::default()
    };
    let _ = rackmath::check::answer(&CATALOG, &request);
});
