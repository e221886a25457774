//! What is where.

use crate::answers::Answers;
use crate::assets;
use crate::error::Refusal;
use crate::limits::MOST_BYTES;
use crate::{guard, openapi};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rackmath::Error;
use rackmath::ask::{self, Question};
use rackmath::field::{self, Field, Unit};
use rackmath::figure::{Figure, Scale};
use rackmath::remark::Remark;
use rackmath_report::reply::{self, Picture, Show};
use rackmath_report::{Style, csv, png, scene, svg};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub struct Served {
    pub answers: Answers,
    pub log: bool,
    /// Whether only this machine is served.
    pub local: bool,
}

type Shared = State<Arc<Served>>;
type Body = Result<Bytes, BytesRejection>;
type Answered = Result<Response, Refusal>;

pub fn router(served: Served) -> Router {
    let served = Arc::new(served);
    Router::new()
        .route("/api", get(list))
        .route("/api/words", post(words))
        .route("/api/{question}", post(ask_one))
        .route("/api/{question}/schema", get(schema))
        .route("/api/{question}/fields", get(fields))
        .route("/api/{question}/typed", post(typed))
        .route("/export/{question}", post(export))
        .route("/draw", post(draw_posted))
        .route("/openapi.json", get(document))
        .fallback(file)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(from_fn_with_state(Arc::clone(&served), guard::around))
        .with_state(served)
}

fn sent(body: impl Into<axum::body::Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}

fn question(name: &str) -> Result<Question, Refusal> {
    Question::find(name).map_err(|error| Refusal { status: StatusCode::NOT_FOUND, error })
}

fn text(body: Body) -> Result<String, Refusal> {
    let too_large =
        |status| Refusal::new(status, "the request cannot be read", format!("expected at most {MOST_BYTES} bytes"));
    let body = body.map_err(|e| too_large(e.status()))?;
    let wrong = |_| Refusal::new(StatusCode::BAD_REQUEST, "the request is not UTF-8 text", "expected JSON");
    String::from_utf8(body.to_vec()).map_err(wrong)
}

async fn ask_one(State(s): Shared, Path(name): Path<String>, body: Body) -> Answered {
    Ok(sent(s.answers.ask(question(&name)?, text(body)?).await?))
}

/// The sentences of an answer, each a value there, in words.
async fn words(State(s): Shared, body: Body) -> Answered {
    let body = text(body)?;
    let said = s.answers.work(move || {
        let remarks: Vec<Remark> = serde_json::from_str(&body).map_err(|e| {
            Error::said(format!("not a list of remarks: {e}")).hint("expected them as answers have them")
        })?;
        ask::json(&remarks.iter().map(rackmath_report::words::words).collect::<Vec<_>>())
    });
    Ok(sent(said.await??))
}

async fn schema(Path(name): Path<String>) -> Answered {
    Ok(sent(ask::json(&question(&name)?.schema())?))
}

/// What can be set, as a page shows it.
async fn fields(Path(name): Path<String>) -> Answered {
    let control = |f: &Field| {
        json!({
            "flag": f.flag, "doc": f.doc, "switch": f.unit == Unit::Switch, "list": f.list, "words": f.words, "file": f.file, "place": f.position,
            "shown": if f.default.is_null() { String::new() } else { f.show(&f.default) }, "none": f.none,
        })
    };
    let all: Vec<Value> = question(&name)?.fields().iter().map(control).collect();
    Ok(sent(ask::json(&all)?))
}

/// An answer to what was typed, flag by flag, as a page shows it: its words and its pictures.
async fn typed(State(s): Shared, Path(name): Path<String>, body: Body) -> Answered {
    let question = question(&name)?;
    let words = ask::parse(&text(body)?)?;
    let request = field::typed(&question.fields(), &words)?;
    let reply = s.answers.reply(question, request.clone()).await?;
    let shown = s.answers.work(move || {
        let show = |figure| Show { figure, ..Show::default() };
        let drawn: Vec<_> =
            reply::pictures(question).iter().map(|name| reply::picture(&reply, show(Some(name)))).collect();
        let figures = drawn.iter().filter_map(|p| if let Ok(Picture::Figure(f)) = p { Some(*f) } else { None });
        let style = Style { color: false, width: WIDTH };
        let words = reply::page(&reply, show(None), style)?;
        ask::json(&json!({ "request": request, "text": words, "figures": figures.collect::<Vec<_>>() }))
    });
    Ok(sent(shown.await??))
}

/// Columns of an answer in words.
const WIDTH: usize = 100;

async fn list() -> Answered {
    let all: Vec<Value> = Question::ALL.iter().map(|q| json!({ "question": q.name(), "about": q.about() })).collect();
    Ok(sent(ask::json(&all)?))
}

async fn document() -> Answered {
    Ok(sent(ask::json(&openapi::document())?))
}

/// Which picture of an answer, as a JSON pointer, and as what.
#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    figure: String,
    format: String,
}

type Query = Result<axum::extract::Query<Wanted>, QueryRejection>;

async fn export(State(s): Shared, Path(name): Path<String>, query: Query, body: Body) -> Answered {
    let (wanted, format) = wanted(query, "expected ?figure=/time&format=svg")?;
    let answer = s.answers.ask(question(&name)?, text(body)?).await?;
    let drawn = s.answers.work(move || pick(&answer, &wanted.figure).map(|f| (format.draw)(&f))).await??;
    Ok(([(header::CONTENT_TYPE, format.mime)], drawn).into_response())
}

/// A picture that a page put together from several answers.
async fn draw_posted(State(s): Shared, query: Query, body: Body) -> Answered {
    let (_, format) = wanted(query, "expected ?format=svg")?;
    let body = text(body)?;
    let drawn = s.answers.work(move || drawable(&body).map(|f| (format.draw)(&f))).await??;
    Ok(([(header::CONTENT_TYPE, format.mime)], drawn).into_response())
}

fn wanted(query: Query, hint: &str) -> Result<(Wanted, &'static Format), Error> {
    let wanted = query.map_err(|e| Error::said(e.body_text()).hint(hint))?.0;
    let known = FORMATS.iter().find(|f| f.name == wanted.format);
    let format = known.ok_or_else(|| Error::value("format", format!("{:?}", wanted.format), "svg, png or csv"))?;
    Ok((wanted, format))
}

/// A figure that can be drawn: numbers that are numbers, and positive ones on a logarithmic axis.
fn drawable(body: &str) -> Result<Figure, Error> {
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

struct Format {
    name: &'static str,
    mime: &'static str,
    draw: fn(&Figure) -> Vec<u8>,
}

const FORMATS: [Format; 3] = [
    Format { name: "svg", mime: "image/svg+xml", draw: |f| svg::paint(&scene(f)).into_bytes() },
    Format { name: "png", mime: "image/png", draw: |f| png::paint(&scene(f)) },
    Format { name: "csv", mime: "text/csv; charset=utf-8", draw: |f| csv::figure(f).into_bytes() },
];

fn pick(answer: &[u8], place: &str) -> Result<Figure, Error> {
    let answer: Value = serde_json::from_slice(answer).map_err(|e| Error::said(e.to_string()))?;
    let found = answer.pointer(place).cloned().unwrap_or_default();
    serde_json::from_value(found).map_err(|_| {
        Error::value("figure", format!("{place:?}"), "the place of a picture in the answer, such as /time")
    })
}

async fn file(uri: Uri, headers: HeaderMap) -> Response {
    let Some(asset) = assets::find(uri.path()) else {
        return Refusal::new(StatusCode::NOT_FOUND, "nothing is here", "the page is at /, the questions under /api")
            .into_response();
    };
    let fresh = headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag.as_bytes() == asset.tag.as_bytes());
    let kept = [(header::ETAG, asset.tag), (header::CACHE_CONTROL, "no-cache")];
    if fresh {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    (kept, [(header::CONTENT_TYPE, asset.mime)], asset.bytes).into_response()
}

async fn wrong_method() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "not this way", "questions are asked by POST, all else by GET")
}
