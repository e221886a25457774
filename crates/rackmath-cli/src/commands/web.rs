//! `rackmath web`

use crate::args::WebArgs;
use crate::failure::Failure;
use rackmath::Catalog;
use rackmath_server::{Options, serve};
use std::process::{Command, Stdio};

pub fn run(catalog: Catalog, a: &WebArgs) -> Result<(), Failure> {
    let options = Options { host: a.host, port: a.port, log: !a.quiet, ..Options::default() };
    let ready = |address: std::net::SocketAddr| {
        let url = format!("http://{address}/");
        eprintln!(
            "the blackboard is at {url}  (the questions under {url}api, their document at {url}docs.html; Ctrl-C stops)"
        );
        if a.open && !opened(&url) {
            eprintln!("no browser could be opened; open {url} yourself");
        }
    };
    serve(catalog, options, ready).map_err(|e| {
        let said = Failure::new(e.to_string());
        match e.hint() {
            Some(hint) => said.hint(hint),
            None => said,
        }
    })
}

fn opened(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}
