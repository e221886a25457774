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
    match run(&words) {
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

/// The text of an answer.
fn shown<T: ToString>(answer: Result<T, CalibrateError>) -> Result<String, CalibrateError> {
    answer.map(|answer| answer.to_string())
}

fn run(words: &[&str]) -> Option<Result<String, CalibrateError>> {
    let tell = |done: usize, all: usize, what: &str| eprintln!("fit {done} of {all}: {what}");
    let (verb, rest) = words.split_first()?;
    let (what, folder) = match *rest {
        [folder] => ("", Path::new(folder)),
        [what, folder, ..] => (what, Path::new(folder)),
        [] => return None,
    };
    Some(match (*verb, what, rest.get(2..).unwrap_or_default()) {
        ("fit", "serving", [folder]) => serving::fit(Path::new(folder), Some(rest[1])),
        ("fit", "scaling", ["drop", n]) => shown(scaling::fit_file(folder, n.parse().ok()?)),
        ("score", "training", [stacks]) => shown(training::score(folder, Some(Path::new(stacks)))),
        ("fit", "training", [stack]) => training::fit(folder, Some(stack)),
        (_, _, [_, ..]) => return None,
        ("spread", "", _) => serving::spread(folder, serving::FOLD_STEPS, &tell),
        ("fits", "", _) => shown(fits::score(folder)),
        ("score", "network", _) => shown(network::score(folder)),
        ("fit", "network", _) => shown(network::fit(folder)),
        ("transfer", "network", _) => shown(network::transfer(folder)),
        ("score", "gemm", _) => shown(gemm::score(folder)),
        ("fit", "gemm", _) => gemm::fit(folder),
        ("transfer", "gemm", _) => shown(gemm::transfer(folder)),
        ("score", "attention", _) => shown(attention::score(folder)),
        ("fit", "attention", _) => attention::fit(folder, attention::Kind::Grouped),
        ("fit", "mla", _) => attention::fit(folder, attention::Kind::Latent),
        ("transfer", "attention", _) => shown(attention::transfer(folder)),
        ("score", "moe", _) => shown(moe::score(folder)),
        ("fit", "moe", _) => shown(moe::fit(folder)),
        ("transfer", "moe", _) => shown(moe::transfer(folder)),
        ("score", "serving", _) => shown(serving::score(folder)),
        ("fit", "serving", _) => serving::fit(folder, None),
        ("score", "plan", _) => shown(planner::score(folder)),
        ("transfer", "plan", _) => shown(planner::transfer(folder, &tell)),
        ("rows", "plan", _) => planner::listed(folder),
        ("score", "training", _) => shown(training::score(folder, None)),
        ("rows", "training", _) => training::score(folder, None).map(|r| r.listed()),
        ("fit", "training", _) => training::fit(folder, None),
        ("fit", "scaling", _) => shown(scaling::fit_file(folder, 0)),
        ("score", "deduce", _) => deduce::score(folder),
        ("fit", "deduce", _) => deduce::fit(folder),
        _ => return None,
    })
}
