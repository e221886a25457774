//! What the blackboard asks for besides answers: lists, controls, words, pages and pictures, as bytes.
//!
//! One place for every face that shows the page: the server gives these over HTTP, the browser computes them itself.

use crate::reply::{self, Detail, Picture, Show};
use crate::{Style, csv, png, scene, svg, words};
use rackmath::Error;
use rackmath::ask::{self, Question, Reply};
use rackmath::field::{Field, Unit};
use rackmath::figure::{Figure, Scale};
use rackmath::remark::Remark;
use serde_json::{Map, Value, json};

/// Columns of an answer in words.
const WIDTH: usize = 100;

/// Every question with a line about it.
pub fn list() -> Result<String, Error> {
    let all: Vec<Value> = Question::ALL.iter().map(|q| json!({ "question": q.name(), "about": q.about() })).collect();
    ask::json(&all)
}

/// What can be set, as a page shows it.
pub fn fields(question: Question) -> Result<String, Error> {
    let control = |f: &Field| {
        json!({
            "flag": f.flag, "doc": f.doc, "switch": f.unit == Unit::Switch, "list": f.list, "words": f.words, "file": f.file, "place": f.position,
            "shown": if f.default.is_null() { String::new() } else { f.show(&f.default) }, "none": f.none,
        })
    };
    ask::json(&question.fields().iter().map(control).collect::<Vec<Value>>())
}

/// The sentences of an answer, each a value there, in words.
pub fn spoken(body: &str) -> Result<String, Error> {
    let remarks: Vec<Remark> = serde_json::from_str(body)
        .map_err(|e| Error::said(format!("not a list of remarks: {e}")).hint("expected them as answers have them"))?;
    ask::json(&remarks.iter().map(words::words).collect::<Vec<_>>())
}

/// An answer to what was typed, as a page shows it: its words, in short and all of them, and its pictures.
pub fn shown(question: Question, request: &Map<String, Value>, reply: &Reply) -> Result<String, Error> {
    let show = |figure| Show { figure, detail: Detail::FULL, ..Show::default() };
    let drawn: Vec<_> = reply::pictures(question).iter().map(|name| reply::picture(reply, show(Some(name)))).collect();
    let figures = drawn.iter().filter_map(|p| if let Ok(Picture::Figure(f)) = p { Some(*f) } else { None });
    let style = Style { color: false, width: WIDTH };
    let words = reply::page(reply, show(None), style)?;
    let short = reply::page(reply, Show::default(), style)?;
    ask::json(&json!({ "request": request, "short": short, "text": words, "figures": figures.collect::<Vec<_>>() }))
}

/// A kind of file a picture is written as.
pub struct Format {
    pub name: &'static str,
    pub mime: &'static str,
    pub draw: fn(&Figure) -> Vec<u8>,
}

const FORMATS: [Format; 3] = [
    Format { name: "svg", mime: "image/svg+xml", draw: |f| svg::paint(&scene(f)).into_bytes() },
    Format { name: "png", mime: "image/png", draw: |f| png::paint(&scene(f)) },
    Format { name: "csv", mime: "text/csv; charset=utf-8", draw: |f| csv::figure(f).into_bytes() },
];

/// The format of a name.
pub fn format(name: &str) -> Result<&'static Format, Error> {
    let known = FORMATS.iter().find(|f| f.name == name);
    known.ok_or_else(|| Error::value("format", format!("{name:?}"), "svg, png or csv"))
}

/// The figure at a place of an answer, given as a JSON pointer.
pub fn picked(answer: &[u8], place: &str) -> Result<Figure, Error> {
    let answer: Value = serde_json::from_slice(answer).map_err(|e| Error::said(e.to_string()))?;
    let found = answer.pointer(place).cloned().unwrap_or_default();
    serde_json::from_value(found).map_err(|_| {
        Error::value("figure", format!("{place:?}"), "the place of a picture in the answer, such as /time")
    })
}

/// A figure that can be drawn: numbers that are numbers, and positive ones on a logarithmic axis.
pub fn drawable(body: &str) -> Result<Figure, Error> {
    let mut figure: Figure = serde_json::from_str(body)
        .map_err(|e| Error::said(format!("not a figure: {e}")).hint("expected one as answers have it"))?;
    let (x, y) = (figure.x.scale == Scale::Log, figure.y.scale == Scale::Log);
    let shown = |p: (f64, f64)| p.0.is_finite() && p.1.is_finite() && (!x || p.0 > 0.0) && (!y || p.1 > 0.0);
    for series in &mut figure.series {
        series.points.retain(|p| shown(*p));
    }
    figure.series.retain(|s| !s.points.is_empty());
    figure.marks.retain(|m| shown((m.x, m.y)));
    if figure.series.is_empty() || figure.series.len() > 64 || figure.marks.len() > 64 {
        return Err(Error::said("a figure of no or of more than 64 lines or marks").hint("expected 1 to 64"));
    }
    Ok(figure)
}
