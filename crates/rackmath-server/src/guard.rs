//! What every request passes: whom it was meant for, who may ask, what a browser may do with the reply, and a line in the log.

use crate::door::{Peer, Speech};
use crate::error::Refusal;
use crate::room::Held;
use crate::routes::Served;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use serde_json::json;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

/// The page runs its own scripts and styles and talks to its own server, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

const ID: HeaderName = HeaderName::from_static("x-request-id");
const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");

/// How requests are logged, on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    None,
    Lines,
    Json,
}

/// Who asks, as far as limits are concerned.
#[derive(Clone, Copy, Debug)]
pub struct Asker(pub IpAddr);

pub async fn around(State(served): State<Arc<Served>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let id = id(&served, request.headers());
    let peer = request.extensions().get::<Peer>().map_or(Ipv4Addr::LOCALHOST.into(), |peer| peer.0);
    let asker = if served.proxied { forwarded(request.headers()).unwrap_or(peer) } else { peer };
    request.extensions_mut().insert(Asker(asker));
    let metrics = &served.answers.metrics;
    metrics.requests.fetch_add(1, Ordering::Relaxed);
    let counted = Counted(&metrics.requests);
    let packed = takes_packed(request.headers());
    let speech = request.extensions().get::<Arc<Speech>>().cloned();
    let mut response = match refused(&served, request.method(), request.uri(), request.headers()) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    drop(counted);
    response = paced(&served, asker, speech.as_deref(), packed, response).await;
    let status = response.status().as_u16();
    metrics.replies[usize::from(status / 100).min(5)].fetch_add(1, Ordering::Relaxed);
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(ID, value);
    }
    // A closed standard error is no reason to stop serving.
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let shown: String = path.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect();
    let _ = match served.log {
        Log::None => Ok(()),
        Log::Lines => writeln!(std::io::stderr(), "{method} {shown} {status} {ms:.1} ms {asker} {id}"),
        Log::Json => {
            let line = json!({ "method": method.as_str(), "path": shown, "status": status, "ms": ms, "from": asker, "id": id });
            writeln!(std::io::stderr(), "{line}")
        }
    };
    response
}

/// What packing an answer takes beside it: the state of a deflate stream.
const PACKER: usize = 320 << 10;

/// Most bytes of an answer that leave its room at once.
const PIECE: usize = 32 << 10;

pub fn takes_packed(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().any(|v| v.as_bytes().windows(4).any(|w| w == b"gzip"))
}

/// An answer with room for it until it is gone, piece by piece, as fast as its reader takes it.
async fn paced(served: &Served, asker: IpAddr, speech: Option<&Speech>, packed: bool, response: Response) -> Response {
    let Some(bytes) = response.body().size_hint().exact().filter(|n| *n > 1024) else { return response };
    // What is packed already is only sent.
    let packs = packed && !response.headers().contains_key(header::CONTENT_ENCODING);
    let bytes = bytes as usize + if packs { PACKER } else { 0 };
    let until = Instant::now() + served.saying;
    let held = if let Some(held) = served.replies.now(asker, bytes) {
        Some(held)
    } else {
        // Whoever does not read what there is may not keep others from the door meanwhile.
        speech.into_iter().for_each(Speech::waits);
        // The answer is there while it waits, and takes room for that as well.
        match served.finished.now(asker, bytes) {
            Some(_waits) => served.replies.take(asker, bytes, until).await,
            None => None,
        }
    };
    let Some(held) = held else {
        served.answers.metrics.refused("replies");
        let problem = "too many long answers are on their way at once";
        return Refusal::busy(problem, "read those that you have asked for, or ask again in a moment", 1)
            .into_response();
    };
    response.map(|body| Body::new(Paced { body, rest: Bytes::new(), _held: held }))
}

struct Paced {
    body: Body,
    rest: Bytes,
    _held: Held,
}

impl hyper::body::Body for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let n = self.rest.len().min(PIECE);
        // A copy: what waits in the connection must not hold all of the answer.
        let piece = Bytes::copy_from_slice(&self.rest.split_to(n));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        self.body.size_hint().exact().map_or_else(SizeHint::default, |n| SizeHint::with_exact(n + rest))
    }
}

/// A request that is no longer under way when this is dropped.
struct Counted<'a>(&'a std::sync::atomic::AtomicI64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The asker's own name for a request, if it is one, or the next of ours.
fn id(served: &Served, headers: &HeaderMap) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let sound = |text: &&str| {
        (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let given = headers.get(ID).and_then(|v| v.to_str().ok()).filter(sound);
    given.map_or_else(|| format!("{}-{}", served.run, NEXT.fetch_add(1, Ordering::Relaxed)), str::to_owned)
}

/// Whom a proxy says it asks for: the last of its list, the only one it wrote itself.
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let text = headers.get_all(FORWARDED).iter().next_back()?.to_str().ok()?;
    text.rsplit(',').next()?.trim().parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

fn refused(served: &Served, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Refusal> {
    let text = |name: HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    let path = uri.path();
    // A page elsewhere must not reach a server on the loopback through a name of its own.
    let host = text(header::HOST).or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
    if served.local && !host.is_some_and(is_local) {
        let hint = "open it as http://127.0.0.1, or start it with --host";
        let problem = "this server answers for the loopback only";
        return Some(Refusal::new(StatusCode::MISDIRECTED_REQUEST, problem, hint));
    }
    let watched = ["/healthz", "/readyz"].contains(&path);
    if let Some(token) = served.token.as_deref().filter(|_| !watched) {
        let bearer = text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer "));
        let cookie = text(header::COOKIE).and_then(|v| v.split(';').find_map(|c| c.trim().strip_prefix("rackmath=")));
        if ![bearer, cookie].into_iter().flatten().any(|given| same(given, token)) && path != "/enter" {
            let hint = "send the header authorization: Bearer TOKEN, or open /enter?token=TOKEN in a browser";
            return Some(Refusal::new(StatusCode::UNAUTHORIZED, "this server is private", hint));
        }
    }
    let json =
        text(header::CONTENT_TYPE).is_some_and(|t| t.split(';').next().is_some_and(|t| t.trim() == "application/json"));
    let hint = "expected the header content-type: application/json";
    let wrong = || Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request has another type", hint);
    (method == Method::POST && !json).then(wrong)
}

/// Whether two texts are the same, in a time that does not tell where they differ.
pub fn same(given: &str, token: &str) -> bool {
    given.len() == token.len() && given.bytes().zip(token.bytes()).fold(0, |odd, (a, b)| odd | (a ^ b)) == 0
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine() {
        for host in ["127.0.0.1:7225", "localhost", "[::1]:80", "127.0.0.2"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["evil.example:7225", "127.0.0.1.evil.example", "[::2]", "", "localhost.evil"] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_compared_whole() {
        assert!(same("abc", "abc") && !same("abd", "abc") && !same("ab", "abc") && !same("", "abc"));
    }

    #[test]
    fn a_proxy_names_the_last_hop() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED, HeaderValue::from_static("10.0.0.1, 203.0.113.9"));
        assert_eq!(forwarded(&headers), Some("203.0.113.9".parse().expect("an address")));
        headers.append(FORWARDED, HeaderValue::from_static("nobody"));
        assert_eq!(forwarded(&headers), None);
    }

    #[tokio::test]
    async fn answers_that_nobody_reads_wait_within_their_bound_and_the_rest_are_given_up() {
        const LONG: usize = 3 << 20;
        let door = crate::DoorRules { saying: std::time::Duration::from_mins(1), ..crate::DoorRules::default() };
        let options = crate::Options { door, ..crate::Options::default() };
        let served = Arc::new(Served::new(rackmath_catalog::embedded(), &options));
        let deaf = IpAddr::from([10, 0, 0, 1]);
        let answer = |served: Arc<Served>| async move {
            paced(&served, deaf, None, false, Response::new(Body::from(vec![0; LONG]))).await
        };
        // An address holds at most half of the 24 MiB on their way: four answers. At most half of the 16 MiB wait for those: two.
        let mut unread = Vec::new();
        for _ in 0..4 {
            unread.push(answer(Arc::clone(&served)).await);
        }
        assert!(unread.iter().all(|r| r.status() == StatusCode::OK) && served.replies.taken() == 4 * LONG);
        let mut waiting: Vec<_> = (0..2).map(|_| tokio::spawn(answer(Arc::clone(&served)))).collect();
        while served.finished.taken() < 2 * LONG {
            tokio::task::yield_now().await;
        }
        for _ in 0..20 {
            let refused = answer(Arc::clone(&served)).await;
            assert_eq!((refused.status(), served.finished.taken()), (StatusCode::SERVICE_UNAVAILABLE, 2 * LONG));
        }
        // Somebody else is answered meanwhile; who waits is answered when one has been read.
        let other = IpAddr::from([10, 0, 0, 2]);
        let reply = paced(&served, other, None, false, Response::new(Body::from(vec![0; 1 << 20]))).await;
        assert_eq!(reply.status(), StatusCode::OK);
        unread.truncate(2);
        for wait in waiting.drain(..) {
            assert_eq!(wait.await.expect("ran").status(), StatusCode::OK);
        }
        assert_eq!(served.finished.taken(), 0);
    }
}
