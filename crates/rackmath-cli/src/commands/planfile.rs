//! `rackmath plan --save` and `--from`

use super::plan::{request, run as plain, show, threads};
use crate::args::{Args, Command, Common, PlanArgs, PlanFileArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use clap::Parser;
use rackmath::plan::{self, Answer, Plan};
use rackmath::planfile::PlanFile;
use rackmath::{Catalog, plan::Request};
use std::path::Path;

pub fn run(common: &Common, catalog: &mut Catalog, a: &PlanFileArgs) -> Result<(), Failure> {
    if let Some(path) = &a.from {
        return again(common, catalog, a, path);
    }
    let Some(path) = &a.save else { return plain(common, catalog, &a.plan) };
    let request = request(catalog, &a.plan)?;
    let answer = plan::answer_on(catalog, &request, threads())?;
    output::save(path, text(&a.plan, &request, &answer).as_bytes())?;
    show(common, &a.plan, &request, &answer)
}

/// The plan file of what was typed.
pub fn text(a: &PlanArgs, request: &Request, answer: &Answer) -> String {
    let files = a.setting.on.split(',').map(str::trim).filter(|w| inputs::looks_like_a_path(w));
    PlanFile { files: files.map(str::to_owned).collect(), ..PlanFile::of(request, answer) }.text()
}

/// Writes a plan file.
pub fn save(path: &Path, request: &Request, answer: &Answer, files: Vec<String>) -> Result<(), Failure> {
    let file = PlanFile { files, ..PlanFile::of(request, answer) };
    output::save(path, file.text().as_bytes())
}

/// Reads a plan file, and the files it needs into the catalogue.
pub fn open(catalog: &mut Catalog, path: &Path) -> Result<PlanFile, Failure> {
    let file = PlanFile::read(&path.display().to_string(), &inputs::read(path)?)?;
    for machine in &file.files {
        inputs::machine(catalog, machine)?;
    }
    inputs::model(catalog, &file.request.setting.model)?;
    Ok(file)
}

/// Says what moved since an older version wrote the file; refuses numbers that do not follow.
pub fn check(file: &PlanFile, path: &Path, best: Option<&Plan>) -> Result<(), Failure> {
    for moved in file.check(&path.display().to_string(), best)? {
        eprintln!("note: written by rackmath {}: {moved}", file.rackmath);
    }
    Ok(())
}

/// Refuses options beside a file that has the whole question.
pub fn alone(catalog: &mut Catalog, a: &PlanArgs, path: &Path) -> Result<(), Failure> {
    let asked = Request { handover: None, ..request(catalog, a)? };
    if asked == request(catalog, &nothing()?)? {
        return Ok(());
    }
    Err(Failure::new("--from takes the whole question from the file")
        .hint(format!("to change it: rackmath whatif {} --set NAME=VALUE", path.display())))
}

fn again(common: &Common, catalog: &mut Catalog, a: &PlanFileArgs, path: &Path) -> Result<(), Failure> {
    alone(catalog, &a.plan, path)?;
    let file = open(catalog, path)?;
    let mut request = file.request.clone();
    // A saved plan may be handed over later.
    if let Some(wanted) = super::handover::request(&a.plan.handover, &a.plan.workload)? {
        request.handover = Some(wanted);
    }
    let answer = plan::answer_on(catalog, &request, threads())?;
    check(&file, path, answer.plans.first())?;
    show(common, &a.plan, &request, &answer)
}

/// What `plan` means with nothing typed after it.
fn nothing() -> Result<PlanArgs, Failure> {
    match Args::try_parse_from(["rackmath", "plan"]).map(|args| args.command) {
        Ok(Some(Command::Plan(a))) => Ok(a.plan),
        _ => Err(Failure::new("plan cannot be asked without options")),
    }
}
