//! A refusal as a caller reads it: what is wrong, with which field of the request, and what would do.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rackmath::Error;
use rackmath::ask::Question;
use serde_json::json;

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: StatusCode,
    pub error: Error,
    /// Seconds after which it is worth asking again; 0 where that would change nothing.
    pub again: u16,
    /// What was asked, and what is allowed, of what.
    pub limit: Option<Box<(f64, f64, &'static str)>>,
}

impl Refusal {
    pub fn new(status: StatusCode, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::from_error(status, Error::said(problem).hint(hint))
    }

    pub fn from_error(status: StatusCode, error: Error) -> Self {
        Self { status, error, again: 0, limit: None }
    }

    pub fn busy(problem: impl Into<String>, hint: impl Into<String>, again: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, problem, hint).after(again)
    }

    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        Self { again: seconds.min(3600) as u16, ..self }
    }

    #[must_use]
    pub fn of(self, asked: f64, allowed: f64, what: &'static str) -> Self {
        Self { limit: Some(Box::new((asked, allowed, what))), ..self }
    }

    pub fn too_long(question: Question, bytes: usize) -> Self {
        let most = crate::answers::MOST_ANSWER;
        let mb = |n: usize| n as f64 / 1e6;
        let problem = format!("this answer has {:.1} MB; the most is {:.1} MB", mb(bytes), mb(most));
        let hint =
            format!("ask for fewer rows, points or steps, or `rackmath {}` on your own machine", question.name());
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, problem, hint).of(bytes as f64, most as f64, "bytes")
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::from_error(StatusCode::UNPROCESSABLE_ENTITY, error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let shown = self.error.shown(str::to_owned, str::to_owned);
        let mut body = serde_json::to_value(&shown).unwrap_or_default();
        if let Some((asked, allowed, what)) = self.limit.as_deref() {
            body["limit"] = json!({ "asked": asked, "allowed": allowed, "of": what });
        }
        let body = serde_json::to_string_pretty(&body).unwrap_or_default() + "\n";
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if self.again > 0 {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(self.again));
        }
        response
    }
}
