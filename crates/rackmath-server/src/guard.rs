//! What every request passes: whom it was meant for, what a browser may do with the reply, and a line in the log.

use crate::error::Refusal;
use crate::routes::Served;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::io::Write as _;
use std::sync::Arc;
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

pub async fn around(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match refused(&served, &method, request.headers()) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if served.log {
        // A closed standard error is no reason to stop serving.
        let shown: String = path.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect();
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        let _ = writeln!(std::io::stderr(), "{method} {shown} {} {ms:.1} ms", response.status().as_u16());
    }
    response
}

fn refused(served: &Served, method: &Method, headers: &HeaderMap) -> Option<Refusal> {
    let text = |name: HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    // A page elsewhere must not reach a server on the loopback through a name of its own.
    if served.local && !text(header::HOST).is_some_and(is_local) {
        let hint = "open it as http://127.0.0.1, or start it with --host";
        let problem = "this server answers for the loopback only";
        return Some(Refusal::new(StatusCode::MISDIRECTED_REQUEST, problem, hint));
    }
    let json =
        text(header::CONTENT_TYPE).is_some_and(|t| t.split(';').next().is_some_and(|t| t.trim() == "application/json"));
    let hint = "expected the header content-type: application/json";
    let wrong = || Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request has another type", hint);
    (method == Method::POST && !json).then(wrong)
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
    use super::is_local;

    #[test]
    fn names_of_this_machine() {
        for host in ["127.0.0.1:7225", "localhost", "[::1]:80", "127.0.0.2"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["evil.example:7225", "127.0.0.1.evil.example", "[::2]", "", "localhost.evil"] {
            assert!(!is_local(host), "{host}");
        }
    }
}
