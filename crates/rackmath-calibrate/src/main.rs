//! `rackmath-calibrate score|fit|transfer WHAT FOLDER`, and `rackmath-calibrate fits FOLDER`.

use rackmath_calibrate::{
    CalibrateError, attention, deduce, fits, gemm, moe, network, planner, scaling, serving, training,
};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: rackmath-calibrate score|fit|transfer network|gemm|attention|moe FOLDER
       rackmath-calibrate fit mla FOLDER
       rackmath-calibrate score|fit serving [ENGINE] FOLDER
       rackmath-calibrate score training FOLDER [STACKS]
       rackmath-calibrate fit training FOLDER [STACK]
       rackmath-calibrate score|transfer|rows plan FOLDER
       rackmath-calibrate rows training FOLDER
       rackmath-calibrate score|fit deduce FOLDER
       rackmath-calibrate fits FOLDER
       rackmath-calibrate spread FOLDER
       rackmath-calibrate fit scaling FILE [drop N]
score     predict every measured row with the catalogue's constants and show how far off they are
fit       fit the constants anew and print them as TOML
transfer  fit on some machines and predict the others; for plan, engines are fitted without the group they are asked about
rows      predict every measured row and list it with its parts
fits      place every published deployment: what ran must fit
spread    the width of 80 % intervals, from rows whose model and chip were left out of the fit
FOLDER holds the measured tables; attention includes latent attention when it is scored
FILE holds training runs as CSV with params, tokens or FLOP, and loss; drop leaves out the N highest losses
STACKS holds files to use instead of catalog/training; STACK is one of them";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["fit", "serving", engine, folder] => Some(serving::fit(Path::new(folder), Some(engine))),
        ["spread", folder] => Some(serving::spread(Path::new(folder), serving::FOLD_STEPS, &|done, all, what| {
            eprintln!("fit {done} of {all}: {what}");
        })),
        ["fits", folder] => Some(fits::score(Path::new(folder)).map(|report| report.to_string())),
        ["fit", "scaling", file] => Some(scaling::fit_file(Path::new(file), 0).map(|fit| fit.to_string())),
        ["fit", "scaling", file, "drop", n] => {
            n.parse().ok().map(|n| scaling::fit_file(Path::new(file), n).map(|fit| fit.to_string()))
        }
        ["score", "training", folder, stacks] => {
            Some(training::score(Path::new(folder), Some(Path::new(stacks))).map(|r| r.to_string()))
        }
        ["fit", "training", folder, stack] => Some(training::fit(Path::new(folder), Some(stack))),
        ["rows", "plan", folder] => Some(planner::listed(Path::new(folder))),
        ["transfer", "plan", folder] => Some(
            planner::transfer(Path::new(folder), &|done, all, what| eprintln!("fit {done} of {all}: {what}"))
                .map(|report| report.to_string()),
        ),
        ["rows", "training", folder] => Some(training::score(Path::new(folder), None).map(|r| r.listed())),
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
        ("score", "serving") => serving::score(folder).map(|table| table.to_string()),
        ("fit", "serving") => serving::fit(folder, None),
        ("score", "plan") => planner::score(folder).map(|report| report.to_string()),
        ("score", "moe") => moe::score(folder).map(|table| table.to_string()),
        ("fit", "moe") => moe::fit(folder).map(|fitted| fitted.to_string()),
        ("transfer", "moe") => moe::transfer(folder).map(|table| table.to_string()),
        ("score", "training") => training::score(folder, None).map(|report| report.to_string()),
        ("fit", "training") => training::fit(folder, None),
        ("score", "deduce") => deduce::score(folder),
        ("fit", "deduce") => deduce::fit(folder),
        _ => return None,
    })
}
