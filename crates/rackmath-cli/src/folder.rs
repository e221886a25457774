//! `rackmath validate`, with a folder of measurements and charts of every source.

use crate::failure::at;
use crate::output::{self, Output, tell};
use crate::{fit, inputs};
use clap::ArgMatches;
use rackmath::ask::{Question, Reply, Terms};
use rackmath::validate::{self, Answer, FolderCard};
use rackmath::{Catalog, Error};
use rackmath_calibrate::serving::{self, By};
use rackmath_report::reply::Part;
use rackmath_report::{scene, svg};
use rackmath_spec::Kind;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

pub fn run(
    catalog: &Catalog,
    mut request: Map<String, Value>,
    given: &ArgMatches,
    output: &Output,
) -> Result<(), Error> {
    let (folder, charts) = (given.get_one::<PathBuf>("folder"), given.get_one::<PathBuf>("svg"));
    let rows = request.get("rows") == Some(&Value::Bool(true));
    // Charts need the rows whether or not they are shown.
    request.insert("rows".into(), Value::Bool(rows || charts.is_some()));
    let own = with_own(catalog, &mut request)?;
    let catalog = own.as_ref().unwrap_or(catalog);
    let mut reply = Question::Validate.answer(catalog, request, &Terms::default())?;
    if let Reply::Validate(answer) = &mut reply {
        answer.request.rows = rows;
        if let Some(folder) = folder {
            answer.folder = Some(scored(catalog, folder, given.get_one::<String>("leave-out"))?);
        }
        if let Some(folder) = charts {
            drawn(answer, folder)?;
        }
        if !rows {
            answer.forget_rows();
        }
    }
    output.reply(&reply, Part::All, given)
}

/// Files among the tables, such as `gauge --save` writes, as tables of the catalogue beside the others.
fn with_own(catalog: &Catalog, request: &mut Map<String, Value>) -> Result<Option<Catalog>, Error> {
    let mut with: Option<Catalog> = None;
    for name in request.get_mut("tables").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(path) = name.as_str().map(PathBuf::from).filter(|path| path.is_file()) else { continue };
        let shown = path.display().to_string();
        if path.extension().is_some_and(|e| e == "json" || e == "jsonl") {
            return Err(Error::file(&shown, "a result file is no table of measurements")
                .hint(format!("expected a table; to hold a load generator's results against the prediction: rackmath gauge --read {shown} --on CHIP")));
        }
        let id = fit::id(&path);
        with.get_or_insert_with(|| catalog.clone()).add(
            Kind::Validation,
            &id,
            &inputs::read(&path)?,
            inputs::today(),
        )?;
        *name = id.into();
    }
    Ok(with)
}

fn scored(catalog: &Catalog, folder: &Path, leave_out: Option<&String>) -> Result<FolderCard, Error> {
    let (mut card, rows) = serving::score_folder(catalog, folder)?;
    let by = leave_out.and_then(|group| group.parse::<By>().ok());
    if let Some(by) = by {
        let said = |done: usize, all: usize, what: &str| tell(format_args!("fit {done} of {all}: {what}"));
        card.cross = Some(serving::leave_out(catalog, &rows, by, &said)?);
    }
    Ok(card)
}

/// One file per source that has rows.
fn drawn(answer: &Answer, folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|e| at(folder, e))?;
    let given = answer.folder.iter().flat_map(|f| &f.sources);
    for source in answer.sources.iter().chain(given).filter(|s| !s.rows.is_empty()) {
        let path = folder.join(format!("{}.svg", source.id));
        output::save(&path, svg::paint(&scene(&validate::scatter(source))).as_bytes())?;
    }
    Ok(())
}
