//! `rackmath fit`: constants of one's own from one's own rows; and `--with`, which lays them over the catalogue's.

use crate::inputs;
use crate::menu::path;
use crate::output::{Output, print, save, tell};
use clap::{Arg, ArgMatches, value_parser};
use rackmath::remark::{Remark, says};
use rackmath::validate::measurements;
use rackmath::{Catalog, Error};
use rackmath_calibrate::own::{self, Fit};
use rackmath_report::words::words;
use rackmath_spec::constants::Constants;
use rackmath_spec::measurement::Measurement;
use rackmath_spec::{Kind, Residual};
use rackmath_units::{float, significant};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub fn arguments() -> [Arg; 2] {
    let rows = "Files of measurements, in the form of the catalogue's validation tables, or names of those";
    [
        Arg::new("rows")
            .value_name("ROWS")
            .required(true)
            .num_args(1..)
            .value_parser(value_parser!(PathBuf))
            .help(rows),
        path("save", "FILE", "Save the constants for --with (- writes them to standard output)"),
    ]
}

pub fn run(catalog: Catalog, given: &ArgMatches, output: &Output) -> Result<(), Error> {
    let mut rows: Vec<Measurement> = Vec::new();
    for path in given.get_many::<PathBuf>("rows").into_iter().flatten() {
        let (read, skipped) = measured(&catalog, path)?;
        for why in skipped {
            tell(format_args!("{}: {why}; left out", path.display()));
        }
        rows.extend(read);
    }
    if rows.is_empty() {
        return Err(Error::said("the files hold no rows that can be asked about").hint(
            "expected rows of a load and a figure, as in rackmath validate; see the README of catalog/validation",
        ));
    }
    let fits = own::fit(&catalog, &rows)?;
    let file = own::file(&fits);
    if let Some(path) = given.get_one::<PathBuf>("save") {
        // What comes out must go in again.
        let mut laid = catalog.clone();
        Constants::read("the constants", &file)
            .and_then(|c| c.lay_over("the constants", &mut laid, inputs::today()))?;
        save(path, file.as_bytes())?;
        if path == Path::new("-") {
            return Ok(());
        }
    }
    if output.json {
        return print(&rackmath::ask::json(&Answer { fits: &fits, file: &file })?);
    }
    let shown = if given.get_one::<PathBuf>("save").is_none() { format!("\n{file}") } else { String::new() };
    print(&(page(&fits) + &shown))
}

/// What was found, and the file that `--with` takes.
#[derive(Serialize)]
struct Answer<'a> {
    fits: &'a [Fit],
    file: &'a str,
}

/// What was found, as a person reads it.
fn page(fits: &[Fit]) -> String {
    // Distances are logarithms of predicted over measured.
    let off = |what: Remark, r: Residual| {
        let share = |ln: f64| float::exp(ln) - 1.0;
        let off = words(&says("fit_off").with("median", share(r.median)).with("p90", share(r.p90)));
        format!("  {:<32} {off}\n", words(&what))
    };
    let list = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>();
    let mut text = String::new();
    for fit in fits {
        let said = says("fit_of").with("engine", &fit.engine).with("vendor", fit.vendor.clone());
        let _ = writeln!(text, "{}", words(&said.with("rows", fit.rows).with("loads", &fit.loads)));
        let at_a_time = (fit.at_a_time > 1).then_some(fit.at_a_time);
        text.push_str(&off(says("fit_before"), fit.before));
        text.push_str(&off(says("fit_within"), fit.within));
        let left_out = says(if fit.at_a_time > 1 { "fit_left_out_some" } else { "fit_left_out_one" });
        text.push_str(&off(left_out.with("n", at_a_time), fit.left_out));
        for c in fit.constants.iter().filter(|_| fit.better) {
            let end = if c.at_bound { format!("  {}", words(&says("fit_at_bound"))) } else { String::new() };
            let _ = writeln!(
                text,
                "  {:<24} {:>10} -> {:>10}{end}",
                c.name,
                significant(c.before, 3),
                significant(c.after, 3)
            );
        }
        let mut rest = Vec::new();
        if !fit.better {
            rest.push(says("fit_stays"));
        }
        if !fit.untold.is_empty() {
            rest.push(says("fit_untold").with("names", fit.untold.clone()));
        }
        rest.extend(fit.alike.iter().map(|(a, b)| says("fit_alike").with("a", a).with("b", b)));
        if fit.untold.iter().any(|n| n == "skew_us") {
            rest.push(says("fit_no_links"));
        }
        if fit.unread.0 > 0 {
            rest.push(says("fit_unread").with("rows", fit.unread.0).with("why", fit.unread.1.clone()));
        }
        rest.push(says("fit_beyond").with("models", list(&fit.models)).with("chips", list(&fit.chips)));
        for said in rest {
            let _ = writeln!(text, "  {}", words(&said));
        }
    }
    text
}

/// Rows of a file, or of a table of the catalogue by its name.
fn measured(catalog: &Catalog, path: &Path) -> Result<(Vec<Measurement>, Vec<String>), Error> {
    let name = path.display().to_string();
    if !path.exists() && catalog.holds(Kind::Validation, &name) {
        let table = catalog.validation(&name)?;
        return Ok(measurements(catalog, &table));
    }
    let text = inputs::read(path)?;
    let id = id(path);
    let mut with = catalog.clone();
    with.add(Kind::Validation, &id, &text, inputs::today())?;
    let table = with.validation(&id)?;
    Ok(measurements(catalog, &table))
}

/// The name of a table that is a file of one's own.
pub fn id(path: &Path) -> String {
    path.file_stem().map_or_else(|| "own".to_owned(), |stem| format!("own-{}", stem.to_string_lossy()))
}

/// A catalogue with constants of one's own laid over it.
pub fn with(mut catalog: Catalog, file: Option<&Path>) -> Result<Catalog, Error> {
    let Some(path) = file else { return Ok(catalog) };
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let constants = Constants::read(&name, &inputs::read(path)?)?;
    if constants.engine.is_empty() {
        return Err(Error::file(&name, "no engine").hint("expected what rackmath fit prints"));
    }
    constants.lay_over(&name, &mut catalog, inputs::today())?;
    Ok(catalog)
}
