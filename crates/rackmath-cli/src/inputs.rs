//! Files that users hand in: bounded reads, brought along with the request by name.

use crate::checkpoint::{fetched, is_id, with_stored};
use crate::failure::at;
use clap::ArgMatches;
use flate2::read::MultiGzDecoder;
use rackmath::ask::{Question, Reply, Terms};
use rackmath::field::{Field, put};
use rackmath::planfile::PlanFile;
use rackmath::setting::with_price;
use rackmath::{Catalog, Error, deduce};
use rackmath_spec::file::{MAX_BYTES, MAX_TRACE_BYTES, sheet};
use rackmath_spec::{Date, IntoEnumIterator as _, Kind, line};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub fn read(path: &Path) -> Result<String, Error> {
    bounded(path, MAX_BYTES, "a config.json or a catalogue file of a few kilobytes")
}

/// Reads a trace, which may be larger.
pub fn trace(path: &Path) -> Result<String, Error> {
    bounded(path, MAX_TRACE_BYTES, "a part of the trace: an hour or a day will do")
}

fn bounded(path: &Path, most: u64, expected: &str) -> Result<String, Error> {
    let file = File::open(path).map_err(|e| at(path, e))?;
    let packed = path.extension().is_some_and(|x| x.eq_ignore_ascii_case("gz"));
    let size = if packed { 0 } else { file.metadata().map_or(0, |m| m.len()) };
    let mut bytes = Vec::new();
    if packed {
        MultiGzDecoder::new(file).take(most + 1).read_to_end(&mut bytes).map_err(|e| at(path, e))?;
    } else if size <= most {
        file.take(most + 1).read_to_end(&mut bytes).map_err(|e| at(path, e))?;
    }
    if size.max(bytes.len() as u64) > most {
        return Err(at(path, format!("larger than {} MiB", most >> 20)).hint(format!("expected {expected}")));
    }
    String::from_utf8(bytes).map_err(|_| at(path, "not UTF-8 text").hint("expected a JSON, TOML or CSV file"))
}

pub fn catalog(folder: Option<&Path>) -> Result<Catalog, Error> {
    let mut catalog = rackmath_catalog::embedded();
    let Some(folder) = folder else { return Ok(catalog) };
    if !folder.is_dir() {
        return Err(Error::said(format!("{} is not a folder", folder.display()))
            .hint("expected one with models/, chips/, systems/ or laws/ inside"));
    }
    for kind in Kind::iter() {
        for path in toml_files(&folder.join(kind.to_string()))? {
            catalog.add(kind, &stem(&path), &read(&path)?, today())?;
        }
    }
    Ok(catalog)
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(|e| at(folder, e))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|p| p.extension().is_some_and(|x| x == "toml"));
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}

/// Whether a word means a file rather than a name of the catalogue.
fn looks_like_a_path(word: &str) -> bool {
    let extension = Path::new(word).extension();
    word.starts_with(['.', '/', '~']) || extension.is_some_and(|x| x == "json" || x == "toml" || x == "gguf")
}

/// Today, so that a price sheet from the future is refused.
pub fn today() -> Option<Date> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Date::from_days(i64::try_from(since.as_secs() / 86_400).ok()?)
}

/// All threads, and today.
pub fn terms() -> Terms {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Terms { effort: threads.into(), today: today() }
}

pub fn not_ahead(request: &Map<String, Value>) -> Result<(), Error> {
    let day = request.get("as_of").and_then(Value::as_str).filter(|day| day.parse::<Date>().is_ok());
    day.map_or(Ok(()), |day| sheet::dated("command line", day, today()).map(drop))
}

pub struct Inputs<'a> {
    catalog: &'a Catalog,
    /// How long prefixes of a trace are kept, as typed.
    keep: Option<String>,
    /// Whether a model may be looked up over the network.
    fetch: bool,
    files: Map<String, Value>,
    /// Machines that were typed as paths, for files that name them again.
    pub machines: Vec<String>,
}

impl<'a> Inputs<'a> {
    pub fn new(catalog: &'a Catalog, given: &ArgMatches) -> Self {
        let keep = given.try_get_one::<String>("keep").ok().flatten().cloned();
        let fetch = given.try_get_one::<bool>("fetch").ok().flatten().is_some_and(|fetch| *fetch);
        Self { catalog, keep, fetch, files: Map::new(), machines: Vec::new() }
    }

    pub fn with_files(&self, mut request: Map<String, Value>) -> Map<String, Value> {
        if !self.files.is_empty() {
            request.insert("files".into(), Value::Object(self.files.clone()));
        }
        request
    }

    /// Puts what was typed for a field into the request, and the files it names beside it.
    pub fn bring(&mut self, field: &Field, words: &[&str], request: &mut Map<String, Value>) -> Result<(), Error> {
        let kind = field.file.as_deref().unwrap_or_default();
        let word = words.first().copied().unwrap_or_default();
        let path = Path::new(word);
        let value = match kind {
            "trace" => {
                let text = trace(path)?;
                let (above, name) = field.path.rsplit_once('/').unwrap_or_default();
                let (sibling, called) = match name {
                    "text" => ("name", file_name(path)),
                    _ => ("trace_name", path.display().to_string()),
                };
                let sibling = format!("{above}/{sibling}");
                if Value::Object(request.clone()).pointer(&sibling).is_none() {
                    put(request, &sibling, Value::String(called));
                }
                Value::String(text)
            }
            "command" => return self.command(field, word, request),
            "text" => Value::String(read(path)?),
            "summary" => self.summary(path)?,
            "plan" => serde_json::to_value(self.plan(path)?.request).unwrap_or_default(),
            "numbers" if path.is_file() => {
                let beside = field.path.replace("routing", "histogram");
                put(request, &beside, counts(path)?);
                return Ok(());
            }
            "sheet" if looks_like_a_path(word) && !read(path)?.contains("[[list]]") => {
                return filled(word, request);
            }
            _ => {
                let names =
                    words.iter().map(|list| self.all_named(kind, list)).collect::<Result<Vec<_>, _>>()?.concat();
                if field.list { json!(names) } else { json!(names.join(",")) }
            }
        };
        put(request, &field.path, value);
        Ok(())
    }

    /// A command line, or a file that holds one, with the files it names: the model's `config.json` and settings.
    fn command(&mut self, field: &Field, word: &str, request: &mut Map<String, Value>) -> Result<(), Error> {
        let path = Path::new(word);
        let file = path.is_file() || path.extension().is_some_and(|x| x == "yaml" || x == "yml") && !word.contains(' ');
        let text = if file { read(path)? } else { word.to_owned() };
        let started = line::find(&text).ok().and_then(|mut all| if all.len() == 1 { all.pop() } else { None });
        let launch = started.and_then(|started| {
            let list = self.catalog.flag_list(started.list?).ok()?;
            line::launch(&started, started.program?, &list, None, None).ok()
        });
        if let Some(launch) = launch {
            let own = launch.model.filter(|model| !looks_like_a_path(model) || Path::new(model).exists());
            if let Some(model) = own.filter(|_| !request.contains_key("model")) {
                let name = self.named("model", &model)?;
                if self.files.contains_key(&name) {
                    request.insert("model".into(), Value::String(name));
                }
            }
            let names = |flag: &str| flag.contains("config") || flag.contains("extra_llm_api_options");
            let settings = launch.flags.iter().filter(|f| names(&f.flag)).filter_map(|f| f.value.as_deref());
            let file = settings.map(Path::new).find(|file| file.is_file());
            if let Some(file) = file.filter(|_| !request.contains_key("settings")) {
                request.insert("settings".into(), Value::String(read(file)?));
            }
        }
        put(request, &field.path, Value::String(text));
        Ok(())
    }

    /// The name to ask for what a word points at; a file is brought along.
    pub fn named(&mut self, kind: &str, word: &str) -> Result<String, Error> {
        if kind == "machine" && word.contains('+') {
            let parts: Vec<String> =
                word.split('+').map(|one| self.named(kind, one.trim())).collect::<Result<_, _>>()?;
            return Ok(parts.join("+"));
        }
        if let ("machine", (file, Some(price))) = (kind, with_price(word)) {
            return Ok(format!("{}@{price}", self.named(kind, file)?));
        }
        let path = Path::new(word);
        let is_path =
            looks_like_a_path(word) || (kind == "model" && path.exists() && !self.catalog.holds(Kind::Models, word));
        if !is_path || kind.is_empty() {
            let own = kind != "model" || self.catalog.holds(Kind::Models, word);
            if let Some(config) = Some(word).filter(|_| !own).and_then(|word| downloaded(word, &hub()?)) {
                self.files.insert(word.to_owned(), Value::String(with_stored(&config)?));
            } else if self.fetch && kind == "model" && is_id(word) {
                self.files.insert(word.to_owned(), Value::String(fetched(word)?));
            }
            return Ok(word.to_owned());
        }
        let path = match path.join("config.json") {
            config if kind == "model" && path.is_dir() => Some(config)
                .filter(|c| c.is_file())
                .or_else(|| crate::gguf::in_folder(path))
                .unwrap_or_else(|| path.join("config.json")),
            _ => path.to_owned(),
        };
        let name = if kind == "machine" { stem(&path) } else { path.display().to_string() };
        if kind == "machine" && !self.machines.iter().any(|m| m == word) {
            self.machines.push(word.to_owned());
        }
        let text = match kind {
            _ if crate::gguf::is(&path) => crate::gguf::read(&path)?,
            "model" => with_stored(&path)?,
            _ => read(&path)?,
        };
        self.files.insert(name.clone(), Value::String(text));
        Ok(name)
    }

    /// The same for words with commas between them.
    pub fn all_named(&mut self, kind: &str, words: &str) -> Result<Vec<String>, Error> {
        words.split(',').map(|word| self.named(kind, word.trim())).collect()
    }

    /// A plan file, with the files it needs.
    pub fn plan(&mut self, path: &Path) -> Result<PlanFile, Error> {
        let file = PlanFile::read(&path.display().to_string(), &read(path)?)?;
        for machine in &file.files {
            self.named("machine", machine)?;
        }
        self.named("model", &file.request.setting.model)?;
        Ok(file)
    }

    /// What a trace says of its traffic.
    fn summary(&self, path: &Path) -> Result<Value, Error> {
        let mut request = Map::new();
        request.insert("name".into(), json!(file_name(path)));
        request.insert("text".into(), Value::String(trace(path)?));
        if let Some((keep, fields)) = self.keep.as_ref().map(|keep| (keep, Question::Trace.fields())) {
            let value = fields.iter().find(|f| f.flag == "keep").map_or(Ok(Value::Null), |f| f.parse(keep));
            request.insert("keep_s".into(), value.map_err(|e| Error::said(format!("--keep: {e}")))?);
        }
        match Question::Trace.answer(self.catalog, request, &terms())? {
            Reply::Trace(answer) => Ok(serde_json::to_value(answer.summary).unwrap_or_default()),
            _ => Ok(Value::Null),
        }
    }
}

/// Where Hugging Face's tools keep what they downloaded.
fn hub() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || folder("HF_HOME").or_else(|| Some(folder("HOME")?.join(".cache/huggingface")));
    folder("HF_HUB_CACHE").or_else(|| Some(home()?.join("hub")))
}

/// The config.json of a Hugging Face id among them: of its main branch, or of the one snapshot there is.
fn downloaded(id: &str, hub: &Path) -> Option<PathBuf> {
    let (owner, name) = id.split_once('/').filter(|(owner, name)| !owner.is_empty() && !name.contains(['/', '\\']))?;
    let model = hub.join(format!("models--{owner}--{name}"));
    let main = std::fs::read_to_string(model.join("refs/main")).ok();
    let snapshots = std::fs::read_dir(model.join("snapshots")).ok()?;
    let mut there: Vec<PathBuf> = snapshots.flatten().map(|entry| entry.path().join("config.json")).collect();
    there.retain(|path| path.is_file());
    let of_main =
        main.and_then(|commit| there.iter().find(|path| path.parent().is_some_and(|p| p.ends_with(commit.trim()))));
    of_main.or(there.first().filter(|_| there.len() == 1)).cloned()
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// One number per expert.
fn counts(path: &Path) -> Result<Value, Error> {
    let text = read(path)?;
    let numbers = text.split(|c: char| c.is_whitespace() || c == ',' || c == '[' || c == ']').filter(|w| !w.is_empty());
    let wrong = |w: &str| at(path, format!("\"{w}\" is not a number")).hint("expected one count per expert");
    let read = numbers.map(|w| w.parse::<f64>().map(|x| json!(x)).map_err(|_| wrong(w)));
    read.collect::<Result<_, _>>().map(Value::Array)
}

/// A price sheet of plain numbers fills what was not typed.
fn filled(word: &str, request: &mut Map<String, Value>) -> Result<(), Error> {
    let sheet = sheet::price_sheet(word, &read(Path::new(word))?, today())?;
    let mut typed: deduce::Request =
        serde_json::from_value(Value::Object(request.clone())).map_err(|e| Error::said(e.to_string()))?;
    typed.fill(sheet);
    if let Ok(Value::Object(filled)) = serde_json::to_value(typed) {
        *request = filled;
    }
    Ok(())
}
