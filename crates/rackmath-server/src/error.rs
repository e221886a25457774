//! A refusal as a caller reads it: what is wrong, and what would do.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// What is wrong and, behind the first semicolon, the remedy.
    pub message: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    error: &'a str,
    hint: Option<&'a str>,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<rackmath::Error> for Refusal {
    fn from(error: rackmath::Error) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (error, hint) = match self.message.split_once("; ") {
            Some((error, hint)) => (error, Some(hint)),
            None => (self.message.as_str(), None),
        };
        let body = serde_json::to_string_pretty(&Shown { error, hint }).unwrap_or_default() + "\n";
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}
