//! What is where.

use crate::answers::{Answers, Caller};
use crate::assets;
use crate::cost::Cost;
use crate::error::Refusal;
use crate::guard::{Asker, Log};
use crate::limits::MOST_BYTES;
use crate::{guard, openapi};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
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
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

pub struct Served {
    pub answers: Answers,
    pub log: Log,
    /// Whether only this machine is served.
    pub local: bool,
    /// What a caller must know to be answered.
    pub token: Option<String>,
    /// Whether the address of a caller is what a proxy in front says.
    pub proxied: bool,
    /// Longest a caller takes to say what it wants.
    pub saying: Duration,
    /// The path under which all of it stands, without a slash at its end.
    pub base: String,
    /// This run of the server, in the names of its requests.
    pub run: String,
}

type Shared = State<Arc<Served>>;
type Answered = Result<Response, Refusal>;

pub fn router(served: Arc<Served>) -> Router {
    let base = served.base.clone();
    let all = Router::new()
        .route("/api", get(list))
        .route("/api/words", post(words))
        .route("/api/{question}", post(ask_one))
        .route("/api/{question}/schema", get(schema))
        .route("/api/{question}/fields", get(fields))
        .route("/api/{question}/typed", post(typed))
        .route("/export/{question}", post(export))
        .route("/draw", post(draw_posted))
        .route("/openapi.json", get(document))
        .route("/enter", get(enter))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(file)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&served), guard::around))
        .layer(CompressionLayer::new().compress_when(SizeAbove::new(1024).and(NotForContentType::IMAGES)))
        .with_state(served);
    if base.is_empty() {
        return all;
    }
    // The page's own links are relative: they need the slash.
    let bare = base.clone();
    let slash = move |request: Request, next: Next| {
        let bare = bare.clone();
        async move {
            if request.uri().path() == bare {
                return (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, format!("{bare}/"))]).into_response();
            }
            next.run(request).await
        }
    };
    Router::new().nest_service(&base, all).layer(from_fn(slash))
}

/// A body, all of it, within its limits of bytes and time.
struct Said(String);

impl FromRequest<Arc<Served>> for Said {
    type Rejection = Refusal;

    async fn from_request(request: Request, served: &Arc<Served>) -> Result<Self, Refusal> {
        let most = || format!("expected at most {MOST_BYTES} bytes");
        let large = || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the request cannot be read", most());
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|n| n > MOST_BYTES as u64) {
            return Err(large());
        }
        if request.headers().get(header::CONTENT_ENCODING).is_some_and(|v| v != "identity") {
            let hint = "expected plain JSON, without content-encoding";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request is compressed", hint));
        }
        let within = format!("expected it within {:.0} s", served.saying.as_secs_f64());
        let slow = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request takes too long to arrive", within);
        let body = timeout(served.saying, to_bytes(request.into_body(), MOST_BYTES)).await.map_err(slow)?;
        let body = body.map_err(|_| large())?;
        let wrong = |_| Refusal::new(StatusCode::BAD_REQUEST, "the request is not UTF-8 text", "expected JSON");
        String::from_utf8(body.to_vec()).map_err(wrong).map(Self)
    }
}

/// Who asks and until when: the header `prefer: wait=5` asks for five seconds.
impl FromRequestParts<Arc<Served>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Refusal> {
        let address = parts.extensions.get::<Asker>().map_or(Ipv4Addr::LOCALHOST.into(), |asker| asker.0);
        let most = served.answers.patience();
        let prefer = parts.headers.get("prefer").and_then(|v| v.to_str().ok()).unwrap_or_default();
        let wait = prefer.split([',', ';']).find_map(|part| part.trim().strip_prefix("wait="));
        let patience = match wait.map(|text| (text, text.trim_matches('"').parse::<f64>())) {
            None => most,
            Some((_, Ok(s))) if s.is_finite() && s > 0.0 => Duration::from_secs_f64(s.min(most.as_secs_f64())),
            Some((text, _)) => {
                let problem = format!("prefer: wait={}", text.chars().take(40).collect::<String>());
                return Err(Refusal::new(StatusCode::BAD_REQUEST, problem, "expected seconds, such as wait=5"));
            }
        };
        Ok(Self { address, until: Instant::now() + patience })
    }
}

async fn ready(State(s): Shared) -> Response {
    if s.answers.has_room() {
        return "ready\n".into_response();
    }
    Refusal::busy("no room for another question", "ask again in a moment", 1).into_response()
}

async fn metrics(State(s): Shared) -> Response {
    let mut now = s.answers.gauges();
    now.push(("resident_bytes", "Memory of this process.", resident()));
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], s.answers.metrics.text(&now)).into_response()
}

/// Memory of this process, where the system tells; 0 elsewhere.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4096.0
}

#[derive(Deserialize)]
struct Key {
    #[serde(default)]
    token: String,
}

/// Lets a browser in that knows the token, and remembers it there.
async fn enter(State(s): Shared, query: Result<axum::extract::Query<Key>, QueryRejection>) -> Answered {
    let given = query.map_or_else(|_| String::new(), |q| q.0.token);
    let Some(token) = s.token.as_deref().filter(|token| guard::same(&given, token)) else {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "this is not the token", "open /enter?token=TOKEN"));
    };
    let cookie = format!("rackmath={token}; Path={}/; HttpOnly; SameSite=Strict", s.base);
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Error::said("this token cannot be a cookie"))?;
    let to = HeaderValue::from_str(&format!("{}/", s.base)).unwrap_or(HeaderValue::from_static("/"));
    Ok((StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, to)]).into_response())
}

fn sent(body: impl Into<axum::body::Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}

fn question(name: &str) -> Result<Question, Refusal> {
    Question::find(name).map_err(|error| Refusal::from_error(StatusCode::NOT_FOUND, error))
}

async fn ask_one(State(s): Shared, Path(name): Path<String>, caller: Caller, Said(body): Said) -> Answered {
    Ok(sent(s.answers.ask(caller, question(&name)?, body).await?))
}

/// The sentences of an answer, each a value there, in words.
async fn words(State(s): Shared, caller: Caller, Said(body): Said) -> Answered {
    let said = s.answers.work(caller, Cost::SMALL, move |_| {
        let remarks: Vec<Remark> = serde_json::from_str(&body).map_err(|e| {
            Error::said(format!("not a list of remarks: {e}")).hint("expected them as answers have them")
        })?;
        Ok(ask::json(&remarks.iter().map(rackmath_report::words::words).collect::<Vec<_>>())?)
    });
    Ok(sent(said.await?))
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
async fn typed(State(s): Shared, Path(name): Path<String>, caller: Caller, Said(body): Said) -> Answered {
    let question = question(&name)?;
    let words = ask::parse(&body)?;
    let request = field::typed(&question.fields(), &words)?;
    let reply = s.answers.reply(caller, question, request.clone()).await?;
    let shown = s.answers.work(caller, Cost::SMALL, move |_| {
        let show = |figure| Show { figure, ..Show::default() };
        let drawn: Vec<_> =
            reply::pictures(question).iter().map(|name| reply::picture(&reply, show(Some(name)))).collect();
        let figures = drawn.iter().filter_map(|p| if let Ok(Picture::Figure(f)) = p { Some(*f) } else { None });
        let style = Style { color: false, width: WIDTH };
        let words = reply::page(&reply, show(None), style)?;
        Ok(ask::json(&json!({ "request": request, "text": words, "figures": figures.collect::<Vec<_>>() }))?)
    });
    Ok(sent(shown.await?))
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

async fn export(
    State(s): Shared,
    Path(name): Path<String>,
    query: Query,
    caller: Caller,
    Said(body): Said,
) -> Answered {
    let (wanted, format) = wanted(query, "expected ?figure=/time&format=svg")?;
    let answer = s.answers.ask(caller, question(&name)?, body).await?;
    let draw = move |_| Ok(pick(&answer, &wanted.figure).map(|f| (format.draw)(&f))?);
    let drawn = s.answers.work(caller, Cost::SMALL, draw).await?;
    Ok(([(header::CONTENT_TYPE, format.mime)], drawn).into_response())
}

/// A picture that a page put together from several answers.
async fn draw_posted(State(s): Shared, query: Query, caller: Caller, Said(body): Said) -> Answered {
    let (_, format) = wanted(query, "expected ?format=svg")?;
    let drawn = s.answers.work(caller, Cost::SMALL, move |_| Ok(drawable(&body).map(|f| (format.draw)(&f))?)).await?;
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
