//! Arguments: values of Python as JSON, files that are named, catalogues.

use crate::{Error, embedded};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use rackmath::ask::{Question, Reply, Terms};
use rackmath::field::{self, Field};
use rackmath::{Catalog, Kind};
use rackmath_spec::{Date, IntoEnumIterator as _};
use serde_json::{Map, Number, Value};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The fields of a question, read from its schema once.
pub fn fields(question: Question) -> &'static [Field] {
    static ALL: OnceLock<Vec<OnceLock<Vec<Field>>>> = OnceLock::new();
    let all = ALL.get_or_init(|| Question::ALL.iter().map(|_| OnceLock::new()).collect());
    let at = Question::ALL.iter().position(|q| *q == question).unwrap_or_default();
    all[at].get_or_init(|| question.fields())
}

/// An error as Python raises it, fields spelled as arguments.
pub fn raised(py: Python<'_>, error: &rackmath::Error) -> PyErr {
    let shown = error.shown(str::to_owned, |field| field.rsplit('.').next().unwrap_or(field).to_owned());
    let words = shown.hint.as_ref().map_or_else(|| shown.problem.clone(), |hint| format!("{}; {hint}", shown.problem));
    let raised = Error::new_err(words);
    let value = raised.value(py);
    // Attributes of an object that was just made can be set.
    let _ = value.setattr("problem", shown.problem);
    let _ = value.setattr("field", shown.field);
    let _ = value.setattr("hint", shown.hint);
    raised
}

/// Today, so that a price sheet from the future is refused.
pub fn today() -> Option<Date> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Date::from_days(i64::try_from(since.as_secs() / 86_400).ok()?)
}

/// Models, chips, machines and prices: those inside, and those of a folder of your own, which win.
#[pyclass(frozen, name = "Catalog", module = "rackmath")]
pub struct Shelf {
    pub catalog: Arc<Catalog>,
    folder: Option<PathBuf>,
}

#[pymethods]
impl Shelf {
    #[new]
    #[pyo3(signature = (folder=None))]
    fn new(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Self> {
        let Some(folder) = folder else { return Ok(Self { catalog: embedded(), folder: None }) };
        let catalog = opened(&folder).map_err(|e| raised(py, &e))?;
        Ok(Self { catalog: Arc::new(catalog), folder: Some(folder) })
    }

    fn __repr__(&self) -> String {
        self.folder
            .as_ref()
            .map_or_else(|| "rackmath.Catalog()".into(), |f| format!("rackmath.Catalog({:?})", f.display().to_string()))
    }

    fn __reduce__(&self, py: Python<'_>) -> (Py<PyAny>, (Option<PathBuf>,)) {
        (py.get_type::<Self>().into_any().unbind(), (self.folder.clone(),))
    }
}

fn at(path: &Path, problem: impl ToString) -> rackmath::Error {
    rackmath::Error::file(path.display().to_string(), problem.to_string())
}

fn opened(folder: &Path) -> Result<Catalog, rackmath::Error> {
    if !folder.is_dir() {
        return Err(rackmath::Error::said(format!("{} is not a folder", folder.display()))
            .hint("expected one with models/, chips/, systems/ or laws/ inside"));
    }
    let mut catalog = rackmath_catalog::embedded();
    for kind in Kind::iter() {
        let inside = folder.join(kind.to_string());
        if !inside.is_dir() {
            continue;
        }
        let entries = std::fs::read_dir(&inside).map_err(|e| at(&inside, e))?;
        let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        files.retain(|path| path.extension().is_some_and(|x| x == "toml"));
        files.sort();
        for path in files {
            let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
            catalog.add(kind, &stem, &read(&path)?, today())?;
        }
    }
    Ok(catalog)
}

fn read(path: &Path) -> Result<String, rackmath::Error> {
    let most = rackmath_spec::file::MAX_TRACE_BYTES;
    let size = path.metadata().map_err(|e| at(path, e))?.len();
    if size > most {
        return Err(at(path, format!("larger than {} MiB", most >> 20)).hint("expected a smaller file"));
    }
    let bytes = std::fs::read(path).map_err(|e| at(path, e))?;
    String::from_utf8(bytes).map_err(|_| at(path, "not UTF-8 text").hint("expected a JSON, TOML or CSV file"))
}

/// The catalogue of an argument: none, a folder, or a `Catalog`.
pub fn catalog(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<Catalog>> {
    match given.filter(|given| !given.is_none()) {
        None => Ok(embedded()),
        Some(shelf) if shelf.cast::<Shelf>().is_ok() => Ok(Arc::clone(&shelf.cast::<Shelf>()?.get().catalog)),
        Some(folder) => {
            let folder: PathBuf = folder
                .extract()
                .map_err(|_| PyTypeError::new_err("catalog: expected a folder or a rackmath.Catalog"))?;
            opened(&folder).map(Arc::new).map_err(|e| raised(py, &e))
        }
    }
}

/// A value of Python as JSON.
pub fn value(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Value> {
    let py = given.py();
    let wrong = |given: String, expected: &str| raised(py, &rackmath::Error::value(name, given, expected));
    if given.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(yes) = given.cast::<PyBool>() {
        return Ok(Value::Bool(yes.is_true()));
    }
    if given.cast::<PyInt>().is_ok() {
        return match (given.extract::<u64>(), given.extract::<i64>()) {
            (Ok(n), _) => Ok(Value::from(n)),
            (_, Ok(n)) => Ok(Value::from(n)),
            _ => Err(wrong("a whole number of more than 64 bits".into(), "a smaller one")),
        };
    }
    if let Ok(x) = given.cast::<PyFloat>() {
        let x = x.extract::<f64>()?;
        return Number::from_f64(x).map(Value::Number).ok_or_else(|| wrong(x.to_string(), "a finite number"));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Value::String(text.extract()?));
    }
    if let Ok(dict) = given.cast::<PyDict>() {
        let mut all = Map::new();
        for (key, one) in dict.iter() {
            let key: String =
                key.extract().map_err(|_| PyTypeError::new_err(format!("{name}: expected names of text in a dict")))?;
            all.insert(key.clone(), value(&one, &key)?);
        }
        return Ok(Value::Object(all));
    }
    if given.cast::<PyList>().is_ok()
        || given.cast::<PyTuple>().is_ok()
        || given.hasattr("__array__")? && given.hasattr("__len__")?
    {
        return given.try_iter()?.map(|one| value(&one?, name)).collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    if given.hasattr("__fspath__")? {
        return Ok(Value::String(given.call_method0("__fspath__")?.extract()?));
    }
    // Numbers of other libraries.
    if given.hasattr("__index__")? {
        return value(&given.call_method0("__index__")?, name);
    }
    if given.hasattr("__float__")? {
        return value(&given.call_method0("__float__")?, name);
    }
    let kind = given.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("{name}: a {kind}; expected a number, a text, a list or a dict")))
}

type Given = (Arc<Catalog>, Map<String, Value>);

/// The request of a call, with the files it names, and its catalogue.
pub fn given(question: Question, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Given> {
    let py = args.py();
    let fields = fields(question);
    let mut places: Vec<&Field> = fields.iter().filter(|f| f.position.is_some()).collect();
    places.sort_by_key(|f| f.position);
    let mut arguments = Map::new();
    let mut rest = args.iter();
    for field in &places {
        let name = field.keyword();
        // A list takes what is left.
        let most = if field.list { usize::MAX } else { 1 };
        let mut all = rest.by_ref().take(most).map(|one| value(&one, &name)).collect::<PyResult<Vec<_>>>()?;
        let one = !field.list || matches!(all.as_slice(), [Value::Array(_)]);
        if !all.is_empty() {
            arguments.insert(name, if one { all.swap_remove(0) } else { Value::Array(all) });
        }
    }
    if rest.next().is_some() {
        let names: Vec<String> = places.iter().map(|f| f.keyword()).collect();
        let name = question.name().replace('-', "_");
        return Err(PyTypeError::new_err(format!(
            "{name}() takes {} by place ({}), the others by name",
            places.len(),
            names.join(", ")
        )));
    }
    let mut own = None;
    for (name, one) in kwargs.into_iter().flat_map(PyDictMethods::iter) {
        let name: String = name.extract()?;
        if name == "catalog" {
            own = Some(one);
            continue;
        }
        if arguments.contains_key(&name) {
            return Err(PyTypeError::new_err(format!("{}() got {name} by place and by name", question.name())));
        }
        let one = value(&one, &name)?;
        arguments.insert(name, one);
    }
    let catalog = catalog(py, own.as_ref())?;
    let made = brought(question, fields, &catalog, &mut arguments).and_then(|(files, beside)| {
        let mut request = field::keywords(fields, &arguments)?;
        for (path, name) in beside {
            if Value::Object(request.clone()).pointer(&path).is_none() {
                field::put(&mut request, &path, Value::String(name));
            }
        }
        if !files.is_empty() {
            let Value::Object(all) = request.entry("files").or_insert_with(|| Value::Object(Map::new())) else {
                return Ok(request);
            };
            all.extend(files);
        }
        Ok(request)
    });
    Ok((catalog, made.map_err(|e| raised(py, &e))?))
}

/// Files by name, and names of traces by the field that has them.
type Brought = (Map<String, Value>, Vec<(String, String)>);

/// Files that arguments name, or dicts given in their place, which are then asked for by a name.
fn brought(
    question: Question,
    fields: &[Field],
    catalog: &Catalog,
    arguments: &mut Map<String, Value>,
) -> Result<Brought, rackmath::Error> {
    let (mut files, mut beside) = (Map::new(), Vec::new());
    for (name, one) in arguments.iter_mut() {
        let field = field::named(fields, &name.replace('_', "-")).or_else(|| field::named(fields, name));
        let Some((field, kind)) = field.and_then(|f| Some((f, f.file.as_deref()?))) else { continue };
        match one {
            Value::Object(config) if matches!(kind, "model" | "machine") => {
                let called = format!("{name}.json");
                files.insert(called.clone(), Value::Object(config.clone()));
                *one = Value::String(called);
            }
            Value::String(word) => {
                if let Some(text) = text_of(kind, word, catalog)? {
                    match kind {
                        "model" | "machine" | "sheet" => {
                            let stem = Path::new(word.as_str())
                                .file_stem()
                                .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
                            let called = if kind == "machine" { stem } else { word.clone() };
                            files.insert(called.clone(), Value::String(text));
                            *one = Value::String(called);
                        }
                        "plan" => *one = plan_of(word, &text)?,
                        "summary" => *one = summary_of(word, text, catalog)?,
                        "trace" => {
                            // As the terminal calls it.
                            beside.push(called(field, word));
                            *one = Value::String(text);
                        }
                        _ if field.unit == field::Unit::Word => *one = Value::String(text),
                        _ => {
                            let hint =
                                format!("expected what the file says, or rackmath {} in a terminal", question.name());
                            return Err(at(Path::new(word.as_str()), "a file cannot stand here").hint(hint));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Ok((files, beside))
}

fn file_name(word: &str) -> String {
    Path::new(word).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The field that has the name of a trace, and the name.
fn called(field: &Field, word: &str) -> (String, String) {
    match field.path.rsplit_once('/').unwrap_or_default() {
        (above, "text") => (format!("{above}/name"), file_name(word)),
        (above, _) => (format!("{above}/trace_name"), word.to_owned()),
    }
}

/// What a trace says of its traffic.
fn summary_of(word: &str, text: String, catalog: &Catalog) -> Result<Value, rackmath::Error> {
    let request = Map::from_iter([("name".into(), file_name(word).into()), ("text".into(), text.into())]);
    match Question::Trace.answer(catalog, request, &Terms { today: today(), ..Terms::default() })? {
        Reply::Trace(answer) => serde_json::to_value(answer.summary).map_err(|e| rackmath::Error::said(e.to_string())),
        _ => Ok(Value::Null),
    }
}

fn plan_of(word: &str, text: &str) -> Result<Value, rackmath::Error> {
    let file = rackmath::planfile::PlanFile::read(word, text)?;
    serde_json::to_value(file.request).map_err(|e| rackmath::Error::said(e.to_string()))
}

/// The text of a file, where a word means one.
fn text_of(kind: &str, word: &str, catalog: &Catalog) -> Result<Option<String>, rackmath::Error> {
    let path = Path::new(word);
    let listed = || word.contains([',', '\n', '+']);
    match kind {
        "model" | "machine" | "sheet" => {
            let extension = path.extension().is_some_and(|x| x == "json" || x == "toml" || x == "gguf");
            let looks = word.starts_with(['.', '/', '~']) || extension;
            let there = kind == "model" && path.exists() && !catalog.holds(Kind::Models, word);
            if !(looks || there) || listed() {
                return Ok(None);
            }
            let config = path.join("config.json");
            let path = if path.is_dir() { &config } else { path };
            if path.extension().is_some_and(|x| x == "gguf") {
                return Err(at(path, "not read from Python").hint("expected a config.json; the terminal reads GGUF"));
            }
            read(path).map(Some)
        }
        _ if listed() || word.len() > 4096 => Ok(None),
        _ if path.is_file() => read(path).map(Some),
        "trace" | "text" | "plan" => Err(at(path, "no such file").hint("expected a path, or the text itself")),
        _ => Ok(None),
    }
}
