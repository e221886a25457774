//! A refusal as a caller reads it: what is wrong, with which field of the request, and what would do.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rackmath::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub error: Error,
}

impl Refusal {
    pub fn new(status: StatusCode, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, error: Error::said(problem).hint(hint) }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, error }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let shown = self.error.shown(str::to_owned, str::to_owned);
        let body = serde_json::to_string_pretty(&shown).unwrap_or_default() + "\n";
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}
