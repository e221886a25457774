//! Rows as an object of Python, in Arrow's memory.

use crate::arrow::{self, Columns, Released, Values};
use crate::give::{given, raised, value};
use crate::{all_threads, give, work};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyTuple};
use rackmath::ask::{self, Question, Terms};
use rackmath::table::{Head, Kind, Rows, order, run};
use rackmath::{plan, sweep as swept};
use rackmath_report::rows::Format;
use rackmath_units::Effort;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows: taken by pyarrow, polars, pandas and others without a copy.
#[pyclass(frozen, module = "rackmath")]
pub struct Table {
    columns: Arc<Columns>,
    /// Which part of a sweep it is.
    head: Option<Head>,
}

impl Table {
    pub fn of(columns: Columns) -> Self {
        Self { columns: Arc::new(columns), head: None }
    }

    /// Shards in any order as the whole.
    pub fn merged(parts: &[&Self]) -> Result<Self, rackmath::Error> {
        let heads: Vec<Head> = parts.iter().filter_map(|part| part.head.clone()).collect();
        if heads.len() < parts.len() {
            return Err(
                rackmath::Error::said("a table that is no shard").hint("expected tables of sweep(shard=(i, n))")
            );
        }
        let order = order(&heads)?;
        let mut all = Columns::new(heads[0].columns.clone());
        for i in order {
            all.join(&parts[i].columns);
        }
        Ok(Self::of(all))
    }

    fn text(&self, format: Format) -> String {
        let mut out = format.header(&self.columns.names);
        let mut from = 0;
        while from < self.columns.rows {
            let to = (from + 4096).min(self.columns.rows);
            out.push_str(&format.lines(&self.columns.block(from, to), &self.columns.names, &[]));
            from = to;
        }
        out
    }
}

/// A struct of Arrow in a capsule that releases it unless somebody took it over.
pub fn capsule<T: Released + Send + 'static>(py: Python<'_>, one: T) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyCapsule::new_with_value_and_destructor(py, one, T::NAME, |mut one, _| one.end())?.into_any())
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = requested_schema;
        capsule(py, arrow::stream(&self.columns))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        capsule(py, arrow::schema(&self.columns))
    }

    fn __len__(&self) -> usize {
        self.columns.rows
    }

    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.columns.names.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// A column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let known = || self.columns.names.iter().map(|(name, _)| name.as_str());
        let at = known().position(|own| own == name);
        let at =
            at.ok_or_else(|| PyKeyError::new_err(rackmath::Error::unknown("column", name, known()).to_string()))?;
        let one = Columns {
            names: vec![self.columns.names[at].clone()],
            values: vec![self.columns.values[at].clone()],
            rows: self.columns.rows,
        };
        let cells = match one.block(0, one.rows).columns.pop() {
            Some(rackmath::table::Column::Counts(all)) => {
                all.into_iter().map(|n| if n == rackmath::table::NO_COUNT { Value::Null } else { n.into() }).collect()
            }
            Some(rackmath::table::Column::Amounts(all)) => all.into_iter().map(Value::from).collect(),
            Some(rackmath::table::Column::Flags(all)) => {
                all.into_iter().map(|yes| yes.map_or(Value::Null, Value::Bool)).collect()
            }
            Some(rackmath::table::Column::Texts(all)) => {
                all.into_iter().map(|text| if text.is_empty() { Value::Null } else { text.into() }).collect()
            }
            _ => Vec::new(),
        };
        crate::answer::object(py, &Value::Array(cells))
    }

    /// The rows as comma-separated values, byte for byte as `rackmath sweep` writes them.
    fn csv(&self, py: Python<'_>) -> String {
        py.detach(|| self.text(Format::Csv))
    }

    /// The rows as JSON lines, byte for byte as `rackmath sweep --format jsonl` writes them.
    fn jsonl(&self, py: Python<'_>) -> String {
        py.detach(|| self.text(Format::JsonLines))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.columns == other.columns
    }

    fn __repr__(&self) -> String {
        let part = self.head.as_ref().map_or_else(String::new, |head| format!(", shard {} of {}", head.shard, head.of));
        format!("<rackmath table: {} rows of {} columns{part}>", self.columns.rows, self.columns.names.len())
    }

    fn _repr_html_(&self) -> String {
        let cell = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
        let names: String =
            self.columns.names.iter().map(|(name, _)| ["<th>", &cell(name), "</th>"].concat()).collect();
        let shown = self.columns.rows.min(20);
        let block = self.columns.block(0, shown);
        let text = Format::JsonLines.lines(&block, &self.columns.names, &[]);
        let row = |line: &str| {
            let row: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
            let cells = self.columns.names.iter().map(|(name, _)| match row.get(name) {
                None | Some(Value::Null) => "<td></td>".to_owned(),
                Some(Value::String(text)) => format!("<td>{}</td>", cell(text)),
                Some(other) => format!("<td>{other}</td>"),
            });
            format!("<tr>{}</tr>", cells.collect::<String>())
        };
        let rows: String = text.lines().map(row).collect();
        let more =
            if shown < self.columns.rows { format!("<p>{} rows in all</p>", self.columns.rows) } else { String::new() };
        format!("<table><tr>{names}</tr>{rows}</table>{more}")
    }

    /// From protocol 5 on columns travel beside the stream: an object store keeps them as they are.
    fn __reduce_ex__<'py>(&self, py: Python<'py>, protocol: i32) -> PyResult<Pickled<'py>> {
        let beside = py.import("pickle")?.getattr("PickleBuffer")?;
        let kept = |bytes: &[u8]| {
            let bytes = PyBytes::new(py, bytes).into_any();
            if protocol >= 5 { beside.call1((bytes,)) } else { Ok(bytes) }
        };
        let made = py.import("rackmath._rackmath")?.getattr("table_of")?;
        let head = serde_json::to_string(&(&self.head, &self.columns.names)).unwrap_or_default();
        let parts = self.columns.values.iter().map(|v| {
            let ends: Vec<u8> = v.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
            Ok((kept(&v.valid)?, v.nulls, kept(&v.data)?, kept(&ends)?))
        });
        Ok((made, (head, self.columns.rows, parts.collect::<PyResult<_>>()?)))
    }
}

/// What makes a table again, and of what.
type Pickled<'py> = (Bound<'py, PyAny>, (String, usize, Vec<Parts<'py>>));
type Parts<'py> = (Bound<'py, PyAny>, usize, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// A table from what `pickle` kept of it.
#[pyfunction]
pub fn table_of(py: Python<'_>, head: &str, rows: usize, parts: Vec<Parts<'_>>) -> PyResult<Table> {
    let wrong = || PyTypeError::new_err("not a pickled table of rackmath");
    let (head, names): (Option<Head>, Vec<(String, Kind)>) = serde_json::from_str(head).map_err(|_| wrong())?;
    let values: Vec<Values> = parts
        .iter()
        .map(|(valid, nulls, data, ends)| {
            let bytes = |of: &Bound<'_, PyAny>| PyBuffer::<u8>::get(of)?.to_vec(py);
            let ends = bytes(ends)?.as_chunks::<8>().0.iter().map(|end| i64::from_le_bytes(*end)).collect();
            Ok(Values { valid: bytes(valid)?, nulls: *nulls, data: bytes(data)?, ends })
        })
        .collect::<PyResult<_>>()?;
    let sound = |(values, (_, kind)): (&Values, &(String, Kind))| {
        let bits = rows.div_ceil(8);
        values.valid.len() == bits
            && match kind {
                Kind::Count | Kind::Amount => rows.checked_mul(8) == Some(values.data.len()),
                Kind::Flag => values.data.len() == bits,
                Kind::Word | Kind::Text => {
                    let ends = &values.ends;
                    ends.len().checked_sub(1) == Some(rows)
                        && ends[0] == 0
                        && ends.is_sorted()
                        && ends[rows] == values.data.len() as i64
                }
            }
    };
    if values.len() != names.len() || !values.iter().zip(&names).all(sound) {
        return Err(wrong());
    }
    Ok(Table { columns: Arc::new(Columns { names, values, rows }), head })
}

/// The axes of a call: a dict of names with texts or lists.
fn axes(over: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<String>> {
    let mut all = Vec::new();
    for (name, values) in over.into_iter().flat_map(PyDictMethods::iter) {
        let name: String = name.extract()?;
        let text = match value(&values, &name)? {
            Value::Array(items) => {
                let word = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                items.iter().map(word).collect::<Vec<_>>().join(",")
            }
            Value::String(text) => text,
            other => other.to_string(),
        };
        all.push(format!("{}={text}", name.trim_end_matches('_').replace('_', "-")));
    }
    Ok(all)
}

/// Whether somebody sees standard error: a terminal, or a notebook.
fn watched(py: Python<'_>) -> PyResult<bool> {
    let sys = py.import("sys")?;
    let notebook = sys.getattr("modules")?.contains("ipykernel")?;
    let out = sys.getattr("stderr")?;
    Ok(!out.is_none() && (notebook || out.call_method0("isatty")?.is_truthy()?))
}

fn say(py: Python<'_>, text: &str) -> PyResult<()> {
    let out = py.import("sys")?.getattr("stderr")?;
    out.call_method1("write", (text,))?;
    out.call_method0("flush").map(drop)
}

/// One question over axes of its fields, a row for every point. `over` is a dict such as `{"concurrency": "1..512*2", "tp": [1, 2, 4]}`,
/// the last axis running fastest; a plan without axes gives every configuration. `shard=(i, n)` gives a part for `merge`; `progress` is
/// called with points done and all of them; True and False show a line on standard error or none, which is shown where somebody sees it
/// otherwise.
#[pyfunction]
#[pyo3(signature = (question, *args, over=None, columns=None, shard=None, threads=None, progress=None, feasible=false, **kwargs))]
#[expect(clippy::too_many_arguments, reason = "they are those of the function in Python")]
pub fn sweep(
    py: Python<'_>,
    question: &str,
    args: &Bound<'_, PyTuple>,
    over: Option<&Bound<'_, PyDict>>,
    columns: Option<Vec<String>>,
    shard: Option<(u64, u64)>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    feasible: bool,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Table> {
    let question = Question::find(&question.replace('_', "-")).map_err(|e| raised(py, &e))?;
    let (catalog, request) = given(question, args, kwargs)?;
    let over = axes(over)?;
    let threads = threads.unwrap_or_else(all_threads).max(1);
    let (done, all) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (doing, known) = (Arc::clone(&done), Arc::clone(&all));
    let (mut told, mut shown) = (0, false);
    let seen = progress.map_or_else(|| watched(py), PyAnyMethods::is_truthy)?;
    let call = progress.filter(|given| given.is_callable());
    let tell = |py: Python<'_>| {
        let (done, all) = (done.load(Ordering::Relaxed), all.load(Ordering::Relaxed));
        if !seen || all == 0 || done <= told {
            return Ok(());
        }
        told = done;
        if let Some(call) = call {
            return call.call1((done, all)).map(drop);
        }
        shown = true;
        say(py, &format!("\r{done} of {all} points ({:.0} %) ", done as f64 / all as f64 * 100.0))
    };
    let made = work(py, tell, move |cancel| {
        let terms = Terms { effort: Effort { threads, cancel }, today: give::today() };
        let one = shard.unwrap_or((1, 1));
        let collect = |rows: &dyn Rows| {
            known.store(rows.looked_at(), Ordering::Relaxed);
            let mut columns = Columns::new(rows.columns().to_vec());
            let looked = run(
                rows,
                threads,
                |block| block,
                |block, range| {
                    columns.add(&block, rows.words());
                    doing.store(range.end - rows.range().start, Ordering::Relaxed);
                    Ok::<_, rackmath::Error>(true)
                },
            )?;
            if looked < rows.looked_at() {
                terms.effort.check()?;
            }
            let head = shard.map(|one| Head::of(rows, one, "arrow"));
            Ok(Table { columns: Arc::new(columns), head })
        };
        if question == Question::Plan && over.is_empty() {
            let mut request = request;
            let catalog = ask::brought(&catalog, &mut request, &terms)?;
            let asked: plan::Request =
                serde_json::from_value(Value::Object(request)).map_err(|e| rackmath::Error::said(e.to_string()))?;
            return collect(&plan::sweep::Sweep::new(&catalog, &asked, one, feasible, &terms.effort)?);
        }
        let asked =
            swept::Request { question: question.name().into(), request, over, columns: columns.unwrap_or_default() };
        collect(&swept::Sweep::new(&catalog, &asked, one, &terms)?)
    })?;
    if shown {
        say(py, "\n")?;
    }
    made.map_err(|e| raised(py, &e))
}
