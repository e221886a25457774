//! `rackmath fit`: constants of one's own from one's own rows; and `--with`, which lays them over the catalogue's.

use crate::inputs;
use crate::menu::path;
use crate::output::{Output, print, save};
use clap::{Arg, ArgMatches, value_parser};
use rackmath::validate::measurements;
use rackmath::{Catalog, Error};
use rackmath_calibrate::own;
use rackmath_spec::Kind;
use rackmath_spec::constants::Constants;
use rackmath_spec::measurement::Measurement;
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
            eprintln!("{}: {why}; left out", path.display());
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
        return if output.json || path == Path::new("-") { Ok(()) } else { print(&own::page(&fits)) };
    }
    print(&(own::page(&fits) + "\n" + &file))
}

/// Rows of a file, or of a table of the catalogue by its name.
fn measured(catalog: &Catalog, path: &Path) -> Result<(Vec<Measurement>, Vec<String>), Error> {
    let name = path.display().to_string();
    if !path.exists() && catalog.holds(Kind::Validation, &name) {
        let table = catalog.validation(&name)?;
        return Ok(measurements(catalog, &table));
    }
    let text = inputs::read(path)?;
    let id = path.file_stem().map_or_else(|| "own".to_owned(), |stem| format!("own-{}", stem.to_string_lossy()));
    let mut with = catalog.clone();
    with.add(Kind::Validation, &id, &text, inputs::today())?;
    let table = with.validation(&id)?;
    Ok(measurements(catalog, &table))
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
