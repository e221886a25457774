//! `rackmath whatif`

use super::plan::threads;
use super::planfile;
use crate::args::{Common, WhatifArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::Catalog;
use rackmath::plan;
use rackmath::whatif::{self, Request};
use rackmath_report::text;

pub fn run(common: &Common, catalog: &mut Catalog, a: &WhatifArgs) -> Result<(), Failure> {
    let file = planfile::open(catalog, &a.file)?;
    let mut files = file.files.clone();
    let set = a.set.iter().map(|word| named(catalog, word, &mut files)).collect::<Result<Vec<_>, _>>()?;
    let request = Request { plan: file.request.clone(), set };
    let answer = whatif::answer_on(catalog, &request, threads())?;
    planfile::check(&file, &a.file, answer.before.as_ref())?;
    if let Some(path) = &a.save {
        let changed = whatif::changed(&request)?;
        let after = plan::answer_on(catalog, &changed, threads())?;
        planfile::save(path, &changed, &after, files)?;
    }
    output::answer(common, &answer, |style| text::whatif(&answer, style))
}

/// A change whose value is a file: read into the catalogue, and named as there.
fn named(catalog: &mut Catalog, word: &str, files: &mut Vec<String>) -> Result<String, Failure> {
    match word.split_once('=') {
        Some(("model", value)) => Ok(format!("model={}", inputs::model(catalog, value)?)),
        Some((key @ ("on" | "system" | "hardware"), value)) => {
            let words: Vec<&str> = value.split(',').map(str::trim).collect();
            files.extend(words.iter().filter(|w| inputs::looks_like_a_path(w)).map(ToString::to_string));
            let names = words.iter().map(|w| inputs::machine(catalog, w)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("{key}={}", names.join(",")))
        }
        _ => Ok(word.to_owned()),
    }
}
