//! `rackmath plan` beyond its question: saved plans, hand-overs, shards; and what reads saved plans.

use crate::failure::at;
use crate::inputs::{self, Inputs};
use crate::output::{self, Output, tell};
use clap::ArgMatches;
use rackmath::ask::{self, Question, Reply};
use rackmath::plan::{self, Answer, File, Handover, Partial, Plan, Request};
use rackmath::planfile::PlanFile;
use rackmath::table::MOST_SHARDS;
use rackmath::whatif;
use rackmath::{Catalog, Error};
use rackmath_report::reply::Part;
use rackmath_report::words::words;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

type Fields = Map<String, Value>;

/// What was typed, and with what.
pub struct Asked<'a> {
    pub question: Question,
    pub catalog: &'a Catalog,
    pub given: &'a ArgMatches,
    pub inputs: Inputs<'a>,
}

impl Asked<'_> {
    fn path(&self, id: &str) -> Option<&PathBuf> {
        self.given.get_one::<PathBuf>(id)
    }

    fn answer(&self, request: &Fields) -> Result<Reply, Error> {
        self.question.answer(self.catalog, self.inputs.with_files(request.clone()), &inputs::terms())
    }

    /// The catalogue with the files that were brought, and the request that is left.
    fn brought(&self, request: &Fields) -> Result<(Cow<'_, Catalog>, Request), Error> {
        let mut request = self.inputs.with_files(request.clone());
        let catalog = ask::brought(self.catalog, &mut request, &inputs::terms())?;
        Ok((catalog, typed(request)?))
    }

    fn file(&self, request: &Request, answer: &Answer) -> String {
        PlanFile { files: self.inputs.machines.clone(), ..PlanFile::of(request, answer) }.text()
    }

    /// The plan of `--from`, which has the whole question.
    fn saved(&mut self, request: &Fields) -> Result<Option<PlanFile>, Error> {
        let Some(path) = self.path("from").cloned() else { return Ok(None) };
        if request.get("plan").map_or(request.keys().any(|k| k != "handover" && k != "vary"), Value::is_object) {
            return Err(Error::said("--from takes the whole question from the file")
                .hint(format!("to change it: rackmath whatif {} --set NAME=VALUE", path.display())));
        }
        self.inputs.plan(&path).map(Some)
    }
}

fn typed<T: DeserializeOwned>(request: Fields) -> Result<T, Error> {
    serde_json::from_value(Value::Object(request)).map_err(|e| Error::said(e.to_string()))
}

pub fn run(a: &mut Asked<'_>, mut request: Fields, output: &Output) -> Result<(), Error> {
    let saved = a.saved(&request)?;
    let a = &*a;
    let wanted = request.remove("handover");
    if let Some(Value::Object(of_file)) = saved.as_ref().map(|f| serde_json::to_value(&f.request).unwrap_or_default()) {
        request = of_file;
    }
    if a.path("handover").or(a.path("k8s")).is_some() || wanted.is_some() {
        let mut handover = wanted.unwrap_or_else(|| json!({}));
        replay(a.given, &mut handover)?;
        request.insert("handover".into(), handover);
    }
    if let Some(one) = a.given.get_one::<(u64, u64)>("shard") {
        return shard(a, &request, *one);
    }
    let reply = a.answer(&request)?;
    let Reply::Plan(answer) = &reply else { return Ok(()) };
    if let (Some(file), Some(path)) = (&saved, a.path("from")) {
        check(file, path, answer.plans.first())?;
    }
    let text = || Ok::<_, Error>(a.file(&typed(request.clone())?, answer));
    if let Some(path) = a.path("save") {
        output::save(path, text()?.as_bytes())?;
    }
    if handed_over(a, answer, text)? {
        return Ok(());
    }
    output.reply(&reply, Part::All, a.given)
}

pub fn outlook(a: &mut Asked<'_>, mut request: Fields, output: &Output) -> Result<(), Error> {
    if let Some(file) = a.saved(&request)? {
        request.insert("plan".into(), serde_json::to_value(file.request).unwrap_or_default());
    }
    output.reply(&a.answer(&request)?, Part::All, a.given)
}

pub fn whatif(a: &mut Asked<'_>, mut request: Fields, output: &Output) -> Result<(), Error> {
    let path = a.given.get_one::<String>("/plan").map_or(Path::new("plan.json"), Path::new);
    let how = "rackmath plan ... --save plan.json writes one";
    let file = a.inputs.plan(path).map_err(|e| if path.exists() { e } else { e.hint(how) })?;
    // A change whose value is a file: brought along, and named as there.
    let plan_fields = Question::Plan.fields();
    if let Some(Value::Array(changes)) = request.get_mut("set") {
        for change in changes {
            let Some((key, value)) = change.as_str().and_then(|c| c.split_once('=')) else { continue };
            let named = |n: &String| n == key;
            let found = plan_fields.iter().find(|f| named(&f.flag) || f.aliases.iter().any(named));
            let Some(kind) = found.and_then(|f| f.file.as_deref()).filter(|k| *k != "summary") else { continue };
            *change = Value::String(format!("{key}={}", a.inputs.all_named(kind, value)?.join(",")));
        }
    }
    let reply = a.answer(&request)?;
    let Reply::Whatif(answer) = &reply else { return Ok(()) };
    check(&file, path, answer.before.as_ref())?;
    if let Some(path) = a.path("save") {
        let changed = whatif::changed(&typed(request)?)?;
        let Ok(Value::Object(fields)) = serde_json::to_value(&changed) else { return Ok(()) };
        let after = Question::Plan.answer(a.catalog, a.inputs.with_files(fields), &inputs::terms())?;
        if let Reply::Plan(after) = after {
            output::save(path, a.file(&changed, &after).as_bytes())?;
        }
    }
    output.reply(&reply, Part::All, a.given)
}

/// Says what moved since an older version wrote the file; refuses numbers that do not follow.
fn check(file: &PlanFile, path: &Path, best: Option<&Plan>) -> Result<(), Error> {
    for (field, then, now) in file.check(&path.display().to_string(), best)? {
        tell(format_args!("note: written by rackmath {}: {field} was {then}, is {now}", file.rackmath));
    }
    Ok(())
}

/// Only Mooncake's format is replayed by the load tests: lines of JSON.
fn replay(given: &ArgMatches, handover: &mut Value) -> Result<(), Error> {
    let trace = given.get_one::<String>("/draws/trace");
    if let (Some(path), Value::Object(fields)) = (trace, handover)
        && inputs::trace(Path::new(path))?.trim_start().starts_with('{')
    {
        fields.entry("replay").or_insert_with(|| json!(path));
    }
    Ok(())
}

/// Writes the files of a hand-over; whether they went to standard output instead of the page.
fn handed_over(a: &Asked<'_>, answer: &Answer, plan: impl Fn() -> Result<String, Error>) -> Result<bool, Error> {
    let (folder, manifest) = (a.path("handover"), a.path("k8s"));
    if folder.or(manifest).is_none() {
        return Ok(false);
    }
    // Of a fleet every part is started; otherwise the best plan.
    let parts = if answer.parts.is_empty() { 1 } else { answer.plans.len() };
    let mut all: Vec<(String, &Handover)> = Vec::new();
    for (at, plan) in answer.plans.iter().take(parts).enumerate() {
        let Some(h) = &plan.handover else { continue };
        let named = answer.parts.iter().find(|part| part.plan == Some(at)).map(|part| part_folder(at, &part.machine));
        all.push((named.unwrap_or_default(), h));
    }
    if all.len() < parts || all.is_empty() {
        return Err(Error::said(format!("nothing to hand over: {}", words(&answer.verdict)))
            .hint("expected a plan for an engine with commands"));
    }
    let stdout = |path: &Path| path == Path::new("-");
    if let Some(path) = manifest {
        let manifests = all.iter().flat_map(|(_, h)| &h.files).filter(|f| f.name == "kubernetes.yaml");
        let text: Vec<&str> = manifests.map(|f| f.text.as_str()).collect();
        output::save(path, text.join("---\n").as_bytes())?;
    }
    if let Some(folder) = folder {
        let named = |part: &str, f: &File| Path::new(part).join(&f.name).display().to_string();
        let file = |part: &str, f: &File| File { name: named(part, f), text: f.text.clone() };
        let mut files: Vec<File> = all.iter().flat_map(|(part, h)| h.files.iter().map(|f| file(part, f))).collect();
        if !stdout(folder) {
            files.push(File { name: "plan.json".into(), text: plan()? });
        }
        output::into(folder, &files)?;
    }
    Ok([folder, manifest].into_iter().flatten().any(|p| stdout(p)))
}

/// The folder of a part of a fleet: its place and its machine, as a file may be named.
fn part_folder(at: usize, machine: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    format!("{}-{}", at + 1, machine.chars().map(clean).collect::<String>())
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardFile {
    rackmath_plan_shard: u32,
    /// Machines as typed, where they are files.
    machines: Vec<String>,
    part: Partial,
}

const VERSION: u32 = 1;

/// Where schedulers say which task of an array this is, and from what they count.
const TASKS: [(&str, u64); 5] = [
    ("JOB_COMPLETION_INDEX", 0),
    ("SLURM_ARRAY_TASK_ID", 1),
    ("AWS_BATCH_JOB_ARRAY_INDEX", 0),
    ("BATCH_TASK_INDEX", 0),
    ("PBS_ARRAY_INDEX", 1),
];

/// One shard of several, as `i/n`, or `auto/n` for the one that the scheduler of an array of tasks says.
pub fn shard_of(text: &str) -> Result<(u64, u64), String> {
    let (i, n) = text.split_once('/').unwrap_or_default();
    let n = n.trim().parse().ok();
    let i = if i.trim() == "auto" { Some(task()?) } else { i.trim().parse().ok() };
    let both = i.zip(n).filter(|(i, n)| *i >= 1 && i <= n && *n <= MOST_SHARDS);
    both.ok_or_else(|| format!("expected i/n with i from 1 to n, n at most {MOST_SHARDS}"))
}

fn task() -> Result<u64, String> {
    let number = |name: &str| std::env::var(name).ok()?.trim().parse::<u64>().ok();
    // Slurm's arrays may begin anywhere.
    let first = |name: &str, usual| {
        if name == "SLURM_ARRAY_TASK_ID" { number("SLURM_ARRAY_TASK_MIN").unwrap_or(usual) } else { usual }
    };
    let found = TASKS.iter().find_map(|(name, from)| number(name)?.checked_sub(first(name, *from)));
    let names = || TASKS.map(|(name, _)| name).join(", ");
    found.map(|at| at + 1).ok_or_else(|| format!("no scheduler says which: expected one of {}", names()))
}

fn shard(a: &Asked<'_>, request: &Fields, one: (u64, u64)) -> Result<(), Error> {
    let (catalog, request) = a.brought(request)?;
    let part = plan::shard(&catalog, &request, one, inputs::terms().effort.threads)?;
    let file = ShardFile { rackmath_plan_shard: VERSION, machines: a.inputs.machines.clone(), part };
    let to = a.path("out").map_or(Path::new("-"), PathBuf::as_path);
    output::save(to, ask::json(&file)?.as_bytes())
}

pub fn merge(catalog: Catalog, given: &ArgMatches, output: &Output) -> Result<(), Error> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in given.get_many::<PathBuf>("parts").into_iter().flatten() {
        paths.extend(if path.is_dir() { crate::sweep::parts(path)? } else { vec![path.clone()] });
    }
    if paths.first().is_some_and(|first| crate::sweep::is_part(first)) {
        return crate::sweep::merge(&paths, given.get_one::<PathBuf>("out").map(PathBuf::as_path));
    }
    let mut inputs = Inputs::new(&catalog, given);
    let mut parts = Vec::new();
    for path in &paths {
        let file: ShardFile = serde_json::from_str(&inputs::read(path)?).map_err(|e| {
            at(path, e).hint("expected a file written by rackmath plan --shard i/n -o FILE, or by rackmath sweep")
        })?;
        if file.rackmath_plan_shard != VERSION {
            let version = format!("version {} of the format", file.rackmath_plan_shard);
            return Err(at(path, version).hint(format!("expected {VERSION}")));
        }
        if parts.is_empty() {
            for machine in &file.machines {
                inputs.named("machine", machine)?;
            }
            inputs.named("model", &file.part.request.setting.model)?;
        }
        parts.push(file.part);
    }
    let whole = ask::brought(&catalog, &mut inputs.with_files(Map::new()), &inputs::terms())?.into_owned();
    let answer = plan::merge(&whole, &parts, inputs::terms().effort.threads)?;
    output.reply(&Reply::Plan(answer), Part::All, given)
}
