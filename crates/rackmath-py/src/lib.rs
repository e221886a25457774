//! The questions as functions of Python: arguments in, an answer out. Nothing is worked out here.
//!
//! | file | what |
//! |------|------|
//! | `lib.rs` | functions, and the work behind them on a thread of its own, so that Ctrl-C is heard |
//! | `give.rs` | arguments: values of Python as JSON, files that are named, catalogues |
//! | `answer.rs` | an answer as an object |
//! | `table.rs` | rows as an object, `arrow.rs` their memory |

mod answer;
#[expect(unsafe_code, reason = "memory is handed to other libraries by a C interface")]
mod arrow;
mod give;
mod table;

use answer::Answer;
use give::{Shelf, fields, given, raised};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rackmath::ask::{self, Question, Terms};
use rackmath::{Catalog, plan};
use rackmath_units::{Cancel, Effort};
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use table::Table;

create_exception!(
    rackmath,
    Error,
    PyValueError,
    "What cannot be: `problem` (what was given), `field` (of the request), `hint` (what would do)."
);

/// How often it is looked whether somebody pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// For so long an answer, or the next question, is waited for without sleep.
const AWAKE: Duration = Duration::from_micros(500);
/// As the main thread of a program has.
const STACK: usize = 8 << 20;
/// Threads that are kept.
const KEPT: usize = 8;

/// Some work, and what hands its result over.
type Job = Box<dyn FnOnce() -> Box<dyn FnOnce()> + Send>;

/// Threads that wait for work: to wake one takes a fraction of what it takes to make one. A process that was forked has none of its
/// parent's.
struct Idle {
    process: u32,
    waiting: Vec<Sender<Job>>,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, waiting: Vec::new() });

fn idle() -> MutexGuard<'static, Idle> {
    let mut all = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if all.process != std::process::id() {
        all.process = std::process::id();
        all.waiting.clear();
    }
    all
}

/// Has a thread do it.
fn start(job: Job) -> std::io::Result<()> {
    let waiting = idle().waiting.pop();
    let job = match waiting {
        Some(to) => match to.send(job) {
            Ok(()) => return Ok(()),
            Err(back) => back.0,
        },
        None => job,
    };
    let (send, receive) = channel::<Job>();
    let run = move || {
        let mut job = job;
        loop {
            let hand_over = job();
            // Before it is handed over, so that who comes next finds this one.
            let kept = {
                let mut all = idle();
                let room = all.waiting.len() < KEPT;
                if room {
                    all.waiting.push(send.clone());
                }
                room
            };
            hand_over();
            if !kept {
                return;
            }
            match awake(&receive).map_or_else(|| receive.recv(), Ok) {
                Ok(next) => job = next,
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().name("rackmath".into()).stack_size(STACK).spawn(run).map(drop)
}

/// What comes while one stays awake, which is sooner than a thread that sleeps is woken; nothing where it takes longer.
fn awake<T>(receive: &Receiver<T>) -> Option<T> {
    let began = Instant::now();
    while began.elapsed() < AWAKE {
        match receive.try_recv() {
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            done => return done.ok(),
        }
    }
    None
}

/// Works on a thread of its own, other threads of Python running meanwhile, until it is done or Ctrl-C is pressed; `tell` is
/// called from time to time.
fn work<T: Send + 'static>(
    py: Python<'_>,
    mut tell: impl FnMut(Python<'_>) -> PyResult<()>,
    job: impl FnOnce(Cancel) -> T + Send + 'static,
) -> PyResult<T> {
    let cancel = Cancel::open();
    let (send, receive) = channel();
    let token = cancel.clone();
    start(Box::new(move || {
        let done = catch_unwind(AssertUnwindSafe(|| job(token)));
        Box::new(move || drop(send.send(done)))
    }))
    .map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let receive: Mutex<Receiver<_>> = Mutex::new(receive);
    let early = || awake(&receive.lock().unwrap_or_else(PoisonError::into_inner));
    if let Some(Ok(done)) = py.detach(early) {
        return Ok(done);
    }
    let wait =
        |py: Python<'_>, time| py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time));
    loop {
        match wait(py, LOOK) {
            Ok(Ok(done)) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(stopped) = py.check_signals().and_then(|()| tell(py)) {
                    cancel.cancel();
                    // What is under way ends at its next look.
                    let _ = wait(py, Duration::from_mins(1));
                    return Err(stopped);
                }
            }
            _ => return Err(PyRuntimeError::new_err("rackmath failed; the message stands on standard error")),
        }
    }
}

/// Asked once: the system answers from files, which takes longer than many a question.
fn all_threads() -> usize {
    static ALL: OnceLock<usize> = OnceLock::new();
    *ALL.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// A question as a function.
#[pyclass(frozen, name = "Question", module = "rackmath")]
struct Asked(Question);

#[pymethods]
impl Asked {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Answer> {
        let question = self.0;
        let (catalog, request) = given(question, args, kwargs)?;
        let reply = work(
            py,
            |_| Ok(()),
            move |cancel| {
                let effort = Effort { threads: all_threads(), cancel };
                question.answer(&catalog, request, &Terms { effort, today: give::today() })
            },
        )?;
        Ok(Answer::new(question, reply.map_err(|e| raised(py, &e))?))
    }

    #[getter]
    fn __name__(&self) -> String {
        self.0.name().replace('-', "_")
    }

    #[getter]
    fn __doc__(&self) -> String {
        let lines = fields(self.0).iter().map(|f| format!("    {}: {}", f.keyword(), f.doc));
        format!("{}\n\n{}\n", self.0.about(), lines.collect::<Vec<_>>().join("\n"))
    }

    fn __repr__(&self) -> String {
        format!("<rackmath question {}: {}>", self.0.name(), self.0.about())
    }

    /// What goes in and what comes out, as JSON Schema.
    fn schema(&self, py: Python<'_>) -> PyResult<String> {
        ask::json(&self.0.schema()).map_err(|e| raised(py, &e))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((py.import("rackmath._rackmath")?.getattr("question")?.unbind(), (self.0.name().to_owned(),)))
    }
}

/// The function of a question, by the question's name.
#[pyfunction]
fn question(py: Python<'_>, name: &str) -> PyResult<Asked> {
    Question::find(&name.replace('_', "-")).map(Asked).map_err(|e| raised(py, &e))
}

/// Any question by its name: a JSON request in, as text, bytes or a dict, its JSON answer out, byte for byte as every face gives it.
#[pyfunction]
#[pyo3(name = "ask", signature = (name, request=None, *, catalog=None))]
fn ask_(
    py: Python<'_>,
    name: &str,
    request: Option<&Bound<'_, PyAny>>,
    catalog: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let question = Question::find(name).map_err(|e| raised(py, &e))?;
    let catalog = give::catalog(py, catalog)?;
    let request = match request {
        None => Map::new(),
        Some(text) if text.extract::<&str>().is_ok() => ask::parse(text.extract()?).map_err(|e| raised(py, &e))?,
        Some(bytes) if bytes.extract::<&[u8]>().is_ok() => {
            let text = std::str::from_utf8(bytes.extract()?).map_err(|e| PyValueError::new_err(e.to_string()))?;
            ask::parse(text).map_err(|e| raised(py, &e))?
        }
        Some(other) => match give::value(other, "request")? {
            Value::Object(request) => request,
            _ => return Err(pyo3::exceptions::PyTypeError::new_err("request: expected a dict, a text or bytes")),
        },
    };
    let reply = work(
        py,
        |_| Ok(()),
        move |cancel| {
            let terms = Terms { effort: Effort { threads: all_threads(), cancel }, ..Terms::default() };
            question.answer(&catalog, request, &terms).and_then(|reply| reply.json())
        },
    )?;
    reply.map_err(|e| raised(py, &e))
}

/// A part of a plan's space: shard i of n as a text for `merge`.
#[pyfunction]
#[pyo3(signature = (shard, *args, **kwargs))]
fn plan_shard(
    py: Python<'_>,
    shard: (u64, u64),
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<String> {
    let (catalog, mut request) = given(Question::Plan, args, kwargs)?;
    let files = request.get("files").cloned().unwrap_or_else(|| json!({}));
    let made = work(
        py,
        |_| Ok(()),
        move |cancel| {
            let terms = Terms { effort: Effort { threads: 1, cancel }, today: give::today() };
            let catalog = ask::brought(&catalog, &mut request, &terms)?;
            let asked: plan::Request =
                serde_json::from_value(Value::Object(request)).map_err(|e| rackmath::Error::said(e.to_string()))?;
            let part = plan::shard(&catalog, &asked, shard, &terms.effort)?;
            ask::json(&json!({ "files": files, "part": serde_json::to_value(part).unwrap_or_default() }))
        },
    )?;
    made.map_err(|e| raised(py, &e))
}

/// Joins shards into the whole: tables of `sweep(shard=...)` into a table, texts of `plan_shard` into an answer. In any order; one that is
/// there twice does no harm.
#[pyfunction]
#[pyo3(signature = (parts, *, catalog=None))]
fn merge(py: Python<'_>, parts: Vec<Bound<'_, PyAny>>, catalog: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
    if parts.iter().all(|part| part.cast::<Table>().is_ok()) {
        let tables: Vec<PyRef<'_, Table>> =
            parts.iter().map(|part| Ok(part.cast::<Table>()?.borrow())).collect::<PyResult<_>>()?;
        let tables: Vec<&Table> = tables.iter().map(|table| &**table).collect();
        let whole = Table::merged(&tables).map_err(|e| raised(py, &e))?;
        return Ok(Py::new(py, whole)?.into_any());
    }
    let catalog = give::catalog(py, catalog)?;
    let texts: Vec<String> = parts.iter().map(PyAnyMethods::extract::<String>).collect::<PyResult<_>>()?;
    let reply =
        work(py, |_| Ok(()), move |cancel| merged(&catalog, &texts, Effort { threads: all_threads(), cancel }))?;
    let answer = Answer::new(Question::Plan, reply.map_err(|e| raised(py, &e))?);
    Ok(Py::new(py, answer)?.into_any())
}

fn merged(catalog: &Catalog, texts: &[String], effort: Effort) -> Result<ask::Reply, rackmath::Error> {
    let wrong =
        |e: serde_json::Error| rackmath::Error::said(format!("not a shard: {e}")).hint("expected texts of plan_shard");
    let mut parts: Vec<plan::Partial> = Vec::new();
    let mut files = Map::new();
    for text in texts {
        let mut one: Map<String, Value> = serde_json::from_str(text).map_err(wrong)?;
        if let Some(Value::Object(own)) = one.remove("files") {
            files.extend(own);
        }
        let part: plan::Partial = serde_json::from_value(one.remove("part").unwrap_or_default()).map_err(wrong)?;
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let mut request = Map::new();
    if !files.is_empty() {
        request.insert("files".into(), Value::Object(files));
    }
    let terms = Terms { effort, today: give::today() };
    let catalog = ask::brought(catalog, &mut request, &terms)?;
    plan::merge(&catalog, &parts, &terms.effort).map(ask::Reply::Plan)
}

#[pymodule]
fn _rackmath(py: Python<'_>, m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__doc__", "The maths of how large language models are trained and served.")?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let error = py.get_type::<Error>();
    error.setattr("__module__", "rackmath")?;
    m.add("Error", error)?;
    m.add_class::<Answer>()?;
    m.add_class::<Asked>()?;
    m.add_class::<Shelf>()?;
    m.add_class::<Table>()?;
    for function in [
        wrap_pyfunction!(ask_, m)?,
        wrap_pyfunction!(question, m)?,
        wrap_pyfunction!(plan_shard, m)?,
        wrap_pyfunction!(merge, m)?,
        wrap_pyfunction!(table::sweep, m)?,
        wrap_pyfunction!(table::table_of, m)?,
    ] {
        m.add_function(function)?;
    }
    let mut names =
        vec!["Answer", "Catalog", "Error", "Question", "Table", "ask", "merge", "plan_shard", "question", "sweep"];
    let questions: Vec<String> = Question::ALL.iter().map(|q| q.name().replace('-', "_")).collect();
    for (question, name) in Question::ALL.iter().zip(&questions) {
        m.add(name.as_str(), Asked(*question))?;
        names.push(name);
    }
    m.add("__all__", PyList::new(py, names)?)?;
    Ok(())
}

/// What is shared by all: the catalogue inside.
fn embedded() -> Arc<Catalog> {
    static ALL: OnceLock<Arc<Catalog>> = OnceLock::new();
    Arc::clone(ALL.get_or_init(|| Arc::new(rackmath_catalog::embedded())))
}
