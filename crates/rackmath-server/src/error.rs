//! A refusal as a caller reads it: what is wrong, with which field of the request, and what would do.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rackmath::Error;
use rackmath::ask::Question;
use serde::Serialize;
use serde_json::json;

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: StatusCode,
    pub error: Error,
    /// Seconds after which it is worth asking again; 0 where that would change nothing.
    pub again: u16,
    /// What was asked and what is allowed, for programs.
    pub limit: Option<Box<Limit>>,
}

/// So much was asked, so much is allowed, of what; and which field would do with which value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    pub asked: f64,
    pub allowed: f64,
    pub of: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fits: Option<Fits>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fits {
    pub field: String,
    pub most: f64,
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
    pub fn of(self, asked: f64, allowed: f64, what: impl Into<String>) -> Self {
        Self { limit: Some(Box::new(Limit { asked, allowed, of: what.into(), fits: None })), ..self }
    }

    /// The nearest smaller request.
    #[must_use]
    pub fn fits(mut self, field: impl Into<String>, most: f64) -> Self {
        if let Some(limit) = &mut self.limit {
            limit.fits = Some(Fits { field: field.into(), most });
        }
        self
    }

    /// An answer that is too long to be sent whole, with its longest list: how many rows, and where.
    pub fn too_long(question: Question, bytes: usize, (rows, list): (u64, &str)) -> Self {
        let most = crate::answers::MOST_ANSWER;
        let mb = |n: usize| n as f64 / 1e6;
        let problem = format!("this answer has {:.1} MB; the most is {:.1} MB", mb(bytes), mb(most));
        // Half of what would fit if all of it were this list.
        let fits = (rows as f64 * most as f64 / bytes as f64 / 2.0).floor().max(1.0);
        let name = question.name();
        let hint = format!(
            "ask for fewer rows, points or steps, or take {list} ({rows} rows) in parts: /api/{name}?of={list}&from=0&rows={fits}"
        );
        let refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, problem, hint);
        refusal.of(bytes as f64, most as f64, "bytes").fits("rows", fits)
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
        if let Some(limit) = self.limit.as_deref() {
            body["limit"] = json!(limit);
        }
        let body = serde_json::to_string_pretty(&body).unwrap_or_default() + "\n";
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if self.again > 0 {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(self.again));
        }
        response
    }
}
