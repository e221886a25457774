//! What is where.

use crate::answers::{self, Answers, Caller, Said};
use crate::assets;
use crate::cost::Cost;
use crate::door::Speech;
use crate::error::Refusal;
use crate::guard::{Asker, Log, takes_packed};
use crate::limits::MOST_BYTES;
use crate::part::{MOST_ROWS, Part};
use crate::room::Room;
use crate::{Options, guard, openapi};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rackmath::Error;
use rackmath::ask::{self, Question};
use rackmath::field;
use rackmath_report::page;
use serde::Deserialize;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::timeout_at;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

/// Bytes of requests that are arriving, waiting or being answered.
const BODIES: usize = 16 << 20;

/// Bytes of answers on their way.
const REPLIES: usize = 24 << 20;

/// Bytes of answers that wait for room among those; an answer beyond them is given up.
const FINISHED: usize = 16 << 20;

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
    /// Memory of requests that are arriving or waiting, and of answers on their way.
    pub(crate) bodies: Arc<Room>,
    pub(crate) replies: Arc<Room>,
    /// Memory of answers that cannot go on their way yet.
    pub(crate) finished: Arc<Room>,
    /// The path under which all of it stands, without a slash at its end.
    pub base: String,
    /// This run of the server, in the names of its requests.
    pub run: String,
}

impl Served {
    pub fn new(catalog: rackmath::Catalog, options: &Options) -> Self {
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            answers: Answers::new(catalog, options.answers),
            log: options.log,
            local: options.host.is_loopback() && options.socket.is_none() && !options.proxied,
            token: options.token.clone(),
            proxied: options.proxied,
            base: options.base.clone(),
            saying: options.door.saying,
            bodies: Room::fair(BODIES),
            replies: Room::fair(REPLIES),
            finished: Room::fair(FINISHED),
            run: format!("{:x}", begun.as_millis()),
        }
    }
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
        .layer(CatchPanicLayer::custom(faulted))
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

/// A fault outside of the working threads, which catch their own.
fn faulted(_: Box<dyn std::any::Any + Send>) -> Response {
    crate::answers::fault().into_response()
}

/// A request of fewer bytes has room anyway: connections are counted.
const SMALL: usize = 4 << 10;

/// A body, all of it, within its limits of bytes and time.
impl FromRequest<Arc<Served>> for Said {
    type Rejection = Refusal;

    async fn from_request(request: Request, served: &Arc<Served>) -> Result<Self, Refusal> {
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        let large = || {
            let given = length.map_or("too many".into(), |n| n.to_string());
            let problem = format!("the request has {given} bytes; the most is {MOST_BYTES} bytes");
            let refusal = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, problem, "send less, or ask the command line");
            refusal.of(length.map_or(MOST_BYTES as f64 + 1.0, |n| n as f64), MOST_BYTES as f64, "bytes")
        };
        if length.is_some_and(|n| n > MOST_BYTES as u64) {
            return Err(large());
        }
        if request.headers().get(header::CONTENT_ENCODING).is_some_and(|v| v != "identity") {
            let hint = "expected plain JSON, without content-encoding";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request is compressed", hint));
        }
        let until = Instant::now() + served.saying;
        let speech = request.extensions().get::<Arc<Speech>>().cloned();
        let whose = request.extensions().get::<Asker>().map_or(Ipv4Addr::LOCALHOST.into(), |asker| asker.0);
        let bytes = length.map_or(MOST_BYTES, |n| n as usize);
        let room = if bytes > SMALL {
            let full = || Refusal::busy("too many long requests at once", "send it again in a moment", 1);
            Some(served.bodies.take(whose, bytes, until).await.ok_or_else(full)?)
        } else {
            None
        };
        let within = format!("expected it within {:.0} s", served.saying.as_secs_f64());
        let slow = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request takes too long to arrive", within);
        let body = timeout_at(until.into(), to_bytes(request.into_body(), MOST_BYTES)).await.map_err(slow)?;
        let body = body.map_err(|_| large())?;
        if let Some(speech) = speech {
            speech.is_whole();
        }
        let wrong = |_| Refusal::new(StatusCode::BAD_REQUEST, "the request is not UTF-8 text", "expected JSON");
        let text = String::from_utf8(body.into()).map_err(wrong)?;
        Ok(Self { text, room })
    }
}

/// Which part of an answer is wanted: `?of=/runs/0/cells&from=0&rows=1000`.
#[derive(Deserialize)]
struct Cut {
    of: Option<String>,
    #[serde(default)]
    from: u64,
    #[serde(default = "usual_rows")]
    rows: u64,
}

fn usual_rows() -> u64 {
    1000
}

impl Cut {
    fn part(query: Result<axum::extract::Query<Self>, QueryRejection>) -> Result<Option<Part>, Error> {
        let hint = "expected ?of=/runs/0/cells&from=0&rows=1000";
        let Self { of, from, rows } = query.map_err(|e| Error::said(e.body_text()).hint(hint))?.0;
        let Some(of) = of else { return Ok(None) };
        if of.len() > 200 {
            return Err(Error::said(format!("of has {} characters", of.len())).at("of").hint(hint));
        }
        if !(1..=MOST_ROWS).contains(&rows) {
            return Err(Error::value("rows", rows, format!("1 to {MOST_ROWS}")));
        }
        Ok(Some(Part { of, from, rows }))
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
        let since = Instant::now();
        Ok(Self { address, since, until: since + patience })
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
    let replies = (s.replies.taken() + s.finished.taken()) as f64;
    now.push(("reply_bytes", "Bytes of answers on their way to readers, or waiting to be.", replies));
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

/// An answer is for who asked: no store on the way keeps it.
fn sent(body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], body.into()).into_response()
}

fn question(name: &str) -> Result<Question, Refusal> {
    Question::find(name).map_err(|error| Refusal::from_error(StatusCode::NOT_FOUND, error))
}

async fn ask_one(
    State(s): Shared,
    Path(name): Path<String>,
    query: Result<axum::extract::Query<Cut>, QueryRejection>,
    headers: HeaderMap,
    caller: Caller,
    said: Said,
) -> Answered {
    let (question, part) = (question(&name)?, Cut::part(query)?);
    let answer = s.answers.ask(caller, question, part, said).await?;
    if answer.plain.len() > SMALLEST && takes_packed(&headers) {
        let mut response = sent(s.answers.packed(caller, answer).await?);
        response.headers_mut().extend(PACKED.map(|(name, value)| (name, HeaderValue::from_static(value))));
        return Ok(response);
    }
    Ok(sent(answer.plain))
}

/// The sentences of an answer, each a value there, in words.
async fn words(State(s): Shared, caller: Caller, said: Said) -> Answered {
    let said = s.answers.work(caller, Cost::SMALL, move |_| Ok(page::spoken(&said.text)?));
    Ok(sent(said.await?))
}

/// What stays the same while the server runs, made when it is first asked for.
struct Document {
    text: Bytes,
    packed: OnceLock<Bytes>,
    tag: String,
}

impl Document {
    fn new(text: String) -> Self {
        let mut hash = DefaultHasher::new();
        text.hash(&mut hash);
        let tag = format!("\"{:016x}\"", hash.finish());
        Self { text: Bytes::from(text), packed: OnceLock::new(), tag }
    }

    /// Kept for the question, by what it says of it.
    fn of(
        question: Question,
        made: impl Fn(Question) -> Result<String, Error>,
        which: usize,
    ) -> Result<&'static Self, Error> {
        static ALL: LazyLock<Vec<[OnceLock<Document>; 2]>> =
            LazyLock::new(|| Question::ALL.iter().map(|_| <[OnceLock<Document>; 2]>::default()).collect());
        let at = Question::ALL.iter().position(|q| *q == question).unwrap_or_default();
        if let Some(kept) = ALL[at][which].get() {
            return Ok(kept);
        }
        let text = made(question)?;
        Ok(ALL[at][which].get_or_init(|| Self::new(text)))
    }

    fn reply(&'static self, headers: &HeaderMap) -> Response {
        unless_known(headers, (&self.tag, "application/json"), self.text.clone(), &self.packed)
    }
}

/// What has not changed is not sent again; what is sent packed is packed once.
fn unless_known(
    headers: &HeaderMap,
    (tag, mime): (&'static str, &'static str),
    bytes: Bytes,
    packed: &'static OnceLock<Bytes>,
) -> Response {
    let kept = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache")];
    let given = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok());
    // Packed on the way, a text is the same text: its tag may come back as a weak one.
    if given.flat_map(|v| v.split(',')).any(|v| v.trim().trim_start_matches("W/") == tag) {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    let text = !mime.starts_with("font") && !mime.starts_with("image");
    if text && bytes.len() > SMALLEST && takes_packed(headers) {
        let packed = packed.get_or_init(|| answers::packed(&bytes)).clone();
        return (kept, [(header::CONTENT_TYPE, mime)], PACKED, packed).into_response();
    }
    (kept, [(header::CONTENT_TYPE, mime)], bytes).into_response()
}

/// What is shorter is not worth packing.
const SMALLEST: usize = 1024;

const PACKED: [(header::HeaderName, &str); 2] = [(header::CONTENT_ENCODING, "gzip"), (header::VARY, "accept-encoding")];

async fn schema(Path(name): Path<String>, headers: HeaderMap) -> Answered {
    Ok(Document::of(question(&name)?, |q| ask::json(&q.schema()), 0)?.reply(&headers))
}

/// What can be set, as a page shows it.
async fn fields(Path(name): Path<String>, headers: HeaderMap) -> Answered {
    Ok(Document::of(question(&name)?, page::fields, 1)?.reply(&headers))
}

/// An answer to what was typed, flag by flag, as a page shows it: its words and its pictures.
async fn typed(State(s): Shared, Path(name): Path<String>, caller: Caller, said: Said) -> Answered {
    let question = question(&name)?;
    let request = field::typed(&question.fields(), &ask::parse(&said.text)?)?;
    let reply = s.answers.reply(caller, question, request.clone()).await?;
    let shown = s.answers.work(caller, Cost::SMALL, move |_| Ok(page::shown(question, &request, &reply)?));
    Ok(sent(shown.await?))
}

async fn list(headers: HeaderMap) -> Response {
    static LIST: LazyLock<Document> = LazyLock::new(|| Document::new(page::list().unwrap_or_default()));
    LIST.reply(&headers)
}

/// All schemas together take a while to make: aside, so that nobody waits for it who does not want it.
async fn document(headers: HeaderMap) -> Answered {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    if DOCUMENT.get().is_none() {
        let made = tokio::task::spawn_blocking(|| {
            let document = Document::new(ask::json(&openapi::document()).unwrap_or_default());
            document.packed.get_or_init(|| answers::packed(&document.text));
            document
        });
        let made = made.await.map_err(|_| answers::fault())?;
        DOCUMENT.get_or_init(|| made);
    }
    let document = DOCUMENT.get().ok_or_else(answers::fault)?;
    Ok(document.reply(&headers))
}

/// Which picture of an answer, as a JSON pointer, and as what.
#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    figure: String,
    format: String,
}

type Query = Result<axum::extract::Query<Wanted>, QueryRejection>;

async fn export(State(s): Shared, Path(name): Path<String>, query: Query, caller: Caller, said: Said) -> Answered {
    let (wanted, format) = wanted(query, "expected ?figure=/time&format=svg")?;
    let answer = s.answers.ask(caller, question(&name)?, None, said).await?.plain;
    let draw = move |_| Ok(page::picked(&answer, &wanted.figure).map(|f| (format.draw)(&f))?);
    let drawn = s.answers.work(caller, Cost::SMALL, draw).await?;
    Ok(([(header::CONTENT_TYPE, format.mime)], drawn).into_response())
}

/// A picture that a page put together from several answers.
async fn draw_posted(State(s): Shared, query: Query, caller: Caller, said: Said) -> Answered {
    let (_, format) = wanted(query, "expected ?format=svg")?;
    let drawn = s
        .answers
        .work(caller, Cost::SMALL, move |_| Ok(page::drawable(&said.text).map(|f| (format.draw)(&f))?))
        .await?;
    Ok(([(header::CONTENT_TYPE, format.mime)], drawn).into_response())
}

fn wanted(query: Query, hint: &str) -> Result<(Wanted, &'static page::Format), Error> {
    let wanted = query.map_err(|e| Error::said(e.body_text()).hint(hint))?.0;
    let format = page::format(&wanted.format)?;
    Ok((wanted, format))
}

async fn file(uri: Uri, headers: HeaderMap) -> Response {
    static PACKED: LazyLock<Vec<OnceLock<Bytes>>> = LazyLock::new(|| assets::all().map(|_| OnceLock::new()).collect());
    let Some((at, asset)) = assets::find(uri.path()) else {
        return Refusal::new(StatusCode::NOT_FOUND, "nothing is here", "the page is at /, the questions under /api")
            .into_response();
    };
    unless_known(&headers, (asset.tag, asset.mime), Bytes::from_static(asset.bytes), &PACKED[at])
}

async fn wrong_method() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "not this way", "questions are asked by POST, all else by GET")
}
