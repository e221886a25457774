//! The `rackmath` command.

mod args;
mod commands;
mod failure;
mod inputs;
mod output;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    match commands::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{failure}");
            // 2 is misuse: what was asked cannot be answered as asked.
            ExitCode::from(2)
        }
    }
}
