//! `rackmath-calibrate score|fit|transfer WHAT FOLDER`, and `rackmath-calibrate fits FOLDER`.

use rackmath_calibrate::{USAGE, answer};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let tell = |done: usize, all: usize, what: &str| eprintln!("fit {done} of {all}: {what}");
    let wrong = match answer(&rackmath_catalog::embedded(), &words, &tell) {
        Some(Ok(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Some(Err(error)) => format!("error: {error}"),
        None => USAGE.to_owned(),
    };
    eprintln!("{wrong}");
    ExitCode::from(2)
}
