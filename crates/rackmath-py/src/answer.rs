//! An answer as an object: its text, its JSON, its picture, and its figures by name.

use crate::arrow::{self, Columns};
use crate::give::raised;
use crate::table::{Table, capsule};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rackmath::ask::{Question, Reply};
use rackmath_report::reply::{Show, page, picture, pictures, table};
use rackmath_report::{Style, svg};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// An answer of a question.
#[pyclass(frozen, module = "rackmath", mapping)]
pub struct Answer {
    question: Question,
    reply: Reply,
    value: OnceLock<Value>,
}

impl Answer {
    pub fn new(question: Question, reply: Reply) -> Self {
        Self { question, reply, value: OnceLock::new() }
    }

    fn value(&self) -> &Value {
        // The version comes first in every face, and a reply that was answered can be written.
        self.value.get_or_init(|| {
            self.reply.json().ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
        })
    }

    fn rows(&self, name: Option<&str>) -> Result<Columns, rackmath::Error> {
        let Value::Object(all) = self.value() else { return Err(rackmath::Error::said("no rows")) };
        let lists =
            || all.iter().filter(|(_, v)| v.as_array().is_some_and(|l| l.first().is_some_and(Value::is_object)));
        let found = match name {
            Some(name) => lists().find(|(own, _)| *own == name),
            None => lists()
                .find(|(own, _)| *own == "each" || *own == "rows")
                .or_else(|| lists().max_by_key(|(_, v)| v.as_array().map_or(0, Vec::len))),
        };
        let Some((_, list)) = found else {
            return Err(rackmath::Error::unknown("table", name.unwrap_or(""), lists().map(|(own, _)| own.as_str())));
        };
        let (columns, block) = rackmath::table::of_list(list);
        let mut made = Columns::new(columns);
        made.add(&block, &[]);
        Ok(made)
    }
}

#[pymethods]
impl Answer {
    /// The JSON of the terminal, byte for byte.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        self.reply.json().map_err(|e| raised(py, &e))
    }

    /// The page of the terminal.
    #[pyo3(signature = (width=100, *, color=false))]
    fn text(&self, py: Python<'_>, width: usize, color: bool) -> PyResult<String> {
        page(&self.reply, Show::default(), Style { color, width: width.max(40) }).map_err(|e| raised(py, &e))
    }

    /// Its picture, or the one of a name.
    #[pyo3(signature = (figure=None))]
    fn svg(&self, py: Python<'_>, figure: Option<&str>) -> PyResult<String> {
        let show = Show { figure, ..Show::default() };
        picture(&self.reply, show).map(|made| svg::paint(&made.scene())).map_err(|e| raised(py, &e))
    }

    /// The table of the terminal's `--csv`.
    #[pyo3(signature = (figure=None))]
    fn csv(&self, py: Python<'_>, figure: Option<&str>) -> PyResult<String> {
        table(&self.reply, Show { figure, ..Show::default() }).map_err(|e| raised(py, &e))
    }

    /// One of its lists as a table; the requests of a simulation (`each=True`), else the longest, unless named.
    #[pyo3(signature = (name=None))]
    fn table(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Table> {
        self.rows(name).map(Table::of).map_err(|e| raised(py, &e))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = requested_schema;
        let columns = Arc::new(self.rows(None).map_err(|e| raised(py, &e))?);
        capsule(py, arrow::stream(&columns))
    }

    /// All of it as a dict.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.value())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.value().get(name);
        let missing = || {
            let near = rackmath::Error::unknown(
                "figure",
                name,
                self.value().as_object().into_iter().flat_map(|all| all.keys().map(String::as_str)),
            );
            PyKeyError::new_err(near.to_string())
        };
        object(py, found.ok_or_else(missing)?)
    }

    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.value().get(name).map_or(Ok(default), |found| object(py, found).map(Some))
    }

    fn keys(&self) -> Vec<&str> {
        self.value().as_object().into_iter().flat_map(|all| all.keys().map(String::as_str)).collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.keys())?.try_iter()?.into_any())
    }

    fn __contains__(&self, name: &str) -> bool {
        self.value().get(name).is_some()
    }

    fn __len__(&self) -> usize {
        self.value().as_object().map_or(0, serde_json::Map::len)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.reply == other.reply
    }

    fn __repr__(&self) -> String {
        format!("<rackmath {} answer: {}>", self.question.name(), self.keys().join(", "))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, 100, false)
    }

    /// In a notebook: the page, and its picture.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let page = self.text(py, 110, false)?.replace('&', "&amp;").replace('<', "&lt;");
        let drawn = if pictures(self.question).is_empty() { None } else { self.svg(py, None).ok() };
        Ok(format!("<pre style=\"line-height:1.25\">{page}</pre>{}", drawn.unwrap_or_default()))
    }
}

/// JSON as objects of Python.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(yes) => yes.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => n.into_pyobject(py)?.into_any(),
            (_, Some(n)) => n.into_pyobject(py)?.into_any(),
            _ => n.as_f64().unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let all = items.iter().map(|item| object(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, all)?.into_any()
        }
        Value::Object(fields) => {
            let all = PyDict::new(py);
            for (name, field) in fields {
                all.set_item(name, object(py, field)?)?;
            }
            all.into_any()
        }
    })
}
