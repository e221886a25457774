//! Compares the equations with measurements and fits their constants.
//!
//! `network` reads tables of collective and expert-exchange timings from a folder, predicts every row through
//! `rackmath_theory::network` with the catalogue's constants, and reports how far off the rows are. It also fits the
//! constants and prints them as TOML for `catalog/networks`. Distance is |ln(predicted / measured)|, which treats twice and
//! half alike. `gemm`, `attention` and `moe` do for kernels what `network` does for collectives. [`serving`] holds whole
//! steps and whole deployments against measured ones, asks whether they fit in memory and fits the engines; `steps` does so with single steps that an engine recorded; `planner` asks
//! how good the choices are that follow. `scaling` fits a scaling law to training runs. Nothing here draws lots: the same
//! rows give the same constants.

mod accuracy;
mod against;
mod attention;
mod case;
mod deduce;
mod gemm;
mod intervals;
mod launched;
mod moe;
mod names;
mod network;
pub mod own;
mod planner;
mod recurrence;
mod replays;
mod routing;
mod rows;
mod scaling;
mod search;
pub mod serving;
mod startup;
mod steps;
mod table;
mod training;
mod truth;

use rackmath_spec::{Catalog, SpecError};
use std::path::Path;

/// Tells how far the work is: fits done, fits in all, the one that ended.
pub type Tell<'a> = &'a (dyn Fn(usize, usize, &str) + Sync);

pub const USAGE: &str = "usage: rackmath-calibrate score all FOLDER [--groups] [--rows FILE] [--against FILE]
       rackmath-calibrate score|fit|transfer network|gemm|attention|moe FOLDER
       rackmath-calibrate fit mla|power FOLDER
       rackmath-calibrate score|fit serving [ENGINE] FOLDER
       rackmath-calibrate rows serving FOLDER
       rackmath-calibrate score|fit|rows steps FOLDER
       rackmath-calibrate score|rows simulate FOLDER
       rackmath-calibrate score routing FOLDER
       rackmath-calibrate score|rows truth FOLDER
       rackmath-calibrate score training FOLDER [STACKS]
       rackmath-calibrate fit training FOLDER [STACK]
       rackmath-calibrate score|transfer|rows plan FOLDER
       rackmath-calibrate rows training FOLDER
       rackmath-calibrate score|fit deduce FOLDER
       rackmath-calibrate fits FOLDER
       rackmath-calibrate fit intervals
       rackmath-calibrate fit refits [STEP]
       rackmath-calibrate fit scaling FILE [drop N]
score     predict every measured row with the catalogue's constants and show how far off they are
fit       fit the constants anew and print them as TOML
transfer  fit on some machines and predict the others; for plan, engines are fitted without the group they are asked about
score all every table of the folder and every target on one page; --groups: what each line is made of, by chip, engine and model;
          --rows FILE: each row with its prediction, as CSV; --against FILE: another tool's predictions, as scripts/price_rows.py writes them
rows      predict every measured row and list it with its parts; for serving, the rows as tables of catalog/validation
fits      place every published deployment: what ran must fit
refits    constants of engines without each group of the carried rows; STEP: chip, generation, version, model or kind
intervals how wide 80 % intervals are by what is carried over, and what was measured: catalog/evidence, from the carried rows
--catalog DIR before the verb takes files of your own over those of the catalogue: DIR/engines/vllm.toml, DIR/kernels/moe.toml
FOLDER holds the measured tables; attention includes latent attention when it is scored
FILE holds training runs as CSV with params, tokens or FLOP, and loss; drop leaves out the N highest losses
STACKS holds files to use instead of catalog/training; STACK is one of them";

/// The whole page, with the options behind its folder; nothing where they are not understood.
fn everything(catalog: &Catalog, folder: &Path, options: &[&str]) -> Option<Result<String, SpecError>> {
    let (mut groups, mut rows, mut others) = (false, None, None);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--groups" => groups = true,
            "--rows" => rows = Some(Path::new(*words.next()?)),
            "--against" => others = Some(Path::new(*words.next()?)),
            _ => return None,
        }
    }
    Some(accuracy::score(catalog, folder).and_then(|all| {
        if let Some(path) = rows {
            std::fs::write(path, all.csv()).map_err(|e| rows::problem(path, e))?;
        }
        let beside = others.map_or_else(|| Ok(String::new()), |others| against::score(&all.cases, others))?;
        Ok(beside + &all.text(groups))
    }))
}

/// The text that answers words as in [`USAGE`]; nothing where they are not understood.
pub fn answer(catalog: &Catalog, words: &[&str], tell: Tell<'_>) -> Option<Result<String, SpecError>> {
    fn shown<T: ToString>(answer: Result<T, SpecError>) -> Result<String, SpecError> {
        answer.map(|answer| answer.to_string())
    }
    let (verb, rest) = words.split_first()?;
    if let (&"score", ["all", folder, options @ ..]) = (verb, rest) {
        return everything(catalog, Path::new(folder), options);
    }
    let (what, folder) = match *rest {
        ["refits"] if *verb == "fit" => return Some(intervals::refits(catalog, None, tell)),
        ["refits", step] if *verb == "fit" => {
            return Some(intervals::refits(catalog, Some(step.parse().ok()?), tell));
        }
        ["intervals"] if *verb == "fit" => return Some(intervals::fit(catalog)),
        [folder] => ("", Path::new(folder)),
        [what, folder, ..] => (what, Path::new(folder)),
        [] => return None,
    };
    Some(match (*verb, what, rest.get(2..).unwrap_or_default()) {
        ("fit", "serving", [folder]) => serving::fit(catalog, Path::new(folder), Some(rest[1])),
        ("fit", "scaling", ["drop", n]) => shown(scaling::fit_file(folder, n.parse().ok()?)),
        ("score", "training", [stacks]) => shown(training::score(catalog, folder, Some(Path::new(stacks)))),
        ("fit", "training", [stack]) => training::fit(catalog, folder, Some(stack)),
        (_, _, [_, ..]) => return None,
        ("fits", "", _) => serving::fits(catalog, folder),
        ("score", "network", _) => shown(network::score(catalog, folder)),
        ("fit", "network", _) => network::fit(catalog, folder),
        ("transfer", "network", _) => shown(network::transfer(catalog, folder)),
        ("score", "simulate", _) => shown(replays::score(catalog, folder)),
        ("score", "routing", _) => routing::score(catalog, folder),
        ("score", "truth", _) => truth::score(catalog, folder),
        ("rows", "truth", _) => truth::listed(catalog, folder),
        ("rows", "simulate", _) => replays::listed(catalog, folder),
        ("score", "gemm", _) => shown(gemm::score(catalog, folder)),
        ("fit", "gemm", _) => gemm::fit(catalog, folder),
        ("transfer", "gemm", _) => shown(gemm::transfer(catalog, folder)),
        ("score", "attention", _) => shown(attention::score(catalog, folder)),
        ("fit", "attention", _) => attention::fit(catalog, folder, attention::Kind::Grouped),
        ("fit", "mla", _) => attention::fit(catalog, folder, attention::Kind::Latent),
        ("transfer", "attention", _) => shown(attention::transfer(catalog, folder)),
        ("score", "moe", _) => shown(moe::score(catalog, folder)),
        ("fit", "moe", _) => moe::fit(catalog, folder),
        ("transfer", "moe", _) => shown(moe::transfer(catalog, folder)),
        ("score", "serving", _) => shown(serving::score(catalog, folder)),
        ("rows", "serving", _) => serving::carried(catalog, folder),
        ("fit", "power", _) => serving::fit_power(catalog, folder),
        ("fit", "serving", _) => serving::fit(catalog, folder, None),
        ("score", "steps", _) => shown(steps::score(catalog, folder)),
        ("fit", "steps", _) => steps::fit(catalog, folder),
        ("rows", "steps", _) => steps::listed(catalog, folder),
        ("score", "plan", _) => shown(planner::score(catalog, folder)),
        ("transfer", "plan", _) => shown(planner::transfer(catalog, folder, tell)),
        ("rows", "plan", _) => planner::listed(catalog, folder),
        ("score", "training", _) => shown(training::score(catalog, folder, None)),
        ("rows", "training", _) => training::score(catalog, folder, None).map(|report| report.listed),
        ("fit", "training", _) => training::fit(catalog, folder, None),
        ("fit", "scaling", _) => shown(scaling::fit_file(folder, 0)),
        ("score", "deduce", _) => deduce::score(catalog, folder),
        ("fit", "deduce", _) => deduce::fit(catalog, folder),
        _ => return None,
    })
}
