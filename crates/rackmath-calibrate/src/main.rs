//! `rackmath-calibrate score <folder>`, `fit <folder>`, `transfer <folder>` or `fits <folder>`.

use rackmath_calibrate::{CalibrateError, fits, network};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: rackmath-calibrate score|fit|transfer|fits <folder with the measured tables>";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [verb, folder] = args.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(verb, Path::new(folder)) {
        Some(Ok(text)) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        None => {
            eprintln!("error: no command \"{verb}\"\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(verb: &str, folder: &Path) -> Option<Result<String, CalibrateError>> {
    match verb {
        "score" => Some(network::score(folder).map(|table| table.to_string())),
        "fit" => Some(network::fit(folder).map(|fitted| fitted.to_string())),
        "transfer" => Some(network::transfer(folder).map(|table| table.to_string())),
        "fits" => Some(fits::score(folder).map(|report| report.to_string())),
        _ => None,
    }
}
