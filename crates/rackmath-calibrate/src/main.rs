//! `rackmath-calibrate score|fit|transfer WHAT FOLDER`, and `rackmath-calibrate fits FOLDER`.

use rackmath_calibrate::{CalibrateError, attention, deduce, fits, gemm, moe, network};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: rackmath-calibrate score|fit|transfer network|gemm|attention|moe FOLDER
       rackmath-calibrate fit mla FOLDER
       rackmath-calibrate score|fit deduce FOLDER
       rackmath-calibrate fits FOLDER
score     predict every measured row with the catalogue's constants and show how far off they are
fit       fit the constants anew and print them as TOML
transfer  fit on some machines and predict the others
fits      place every published deployment: what ran must fit
FOLDER holds the measured tables; attention includes latent attention when it is scored";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["fits", folder] => Some(fits::score(Path::new(folder)).map(|report| report.to_string())),
        [verb, what, folder] => run(verb, what, Path::new(folder)),
        _ => None,
    };
    match done {
        Some(Ok(text)) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(verb: &str, what: &str, folder: &Path) -> Option<Result<String, CalibrateError>> {
    Some(match (verb, what) {
        ("score", "network") => network::score(folder).map(|table| table.to_string()),
        ("fit", "network") => network::fit(folder).map(|fitted| fitted.to_string()),
        ("transfer", "network") => network::transfer(folder).map(|table| table.to_string()),
        ("score", "gemm") => gemm::score(folder).map(|table| table.to_string()),
        ("fit", "gemm") => gemm::fit(folder),
        ("transfer", "gemm") => gemm::transfer(folder).map(|table| table.to_string()),
        ("score", "attention") => attention::score(folder).map(|table| table.to_string()),
        ("fit", "attention") => attention::fit(folder, attention::Kind::Grouped),
        ("fit", "mla") => attention::fit(folder, attention::Kind::Latent),
        ("transfer", "attention") => attention::transfer(folder).map(|table| table.to_string()),
        ("score", "moe") => moe::score(folder).map(|table| table.to_string()),
        ("fit", "moe") => moe::fit(folder).map(|fitted| fitted.to_string()),
        ("transfer", "moe") => moe::transfer(folder).map(|table| table.to_string()),
        ("score", "deduce") => deduce::score(folder),
        ("fit", "deduce") => deduce::fit(folder),
        _ => return None,
    })
}
