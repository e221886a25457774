//! Any bytes as a body of any question, through everything between a socket and an answer: a reply that is never a fault, never too long,
//! and whose refusals are sentences. The first byte chooses the question, the second what is asked of its answer.
#![no_main]

use axum::body::{Body, to_bytes};
use axum::http::Request;
use libfuzzer_sys::fuzz_target;
use rackmath::ask::Question;
use rackmath_server::{AnswerRules, Log, MOST_ANSWER, Options, Served, router};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tower::ServiceExt as _;

static SERVED: LazyLock<(tokio::runtime::Runtime, axum::Router)> = LazyLock::new(|| {
    let answers = AnswerRules { patience: Duration::from_secs(3), ..AnswerRules::default() };
    let options = Options { log: Log::None, answers, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("starts");
    (runtime, router(Arc::new(Served::new(rackmath_catalog::embedded(), &options))))
});

fuzz_target!(|data: &[u8]| {
    let [which, how, body @ ..] = data else { return };
    let question = Question::ALL[usize::from(*which) % Question::ALL.len()].name();
    let path = match how % 8 {
        0 => format!("/api/{question}?of=/rows&from=1&rows=3"),
        1 => format!("/api/{question}/typed"),
        2 => format!("/export/{question}?figure=/time&format=svg"),
        3 => "/api/words".to_owned(),
        4 => "/draw?format=png".to_owned(),
        _ => format!("/api/{question}"),
    };
    let request = Request::post(path).header("host", "127.0.0.1").header("content-type", "application/json");
    let request = request.body(Body::from(body.to_vec())).expect("a request");
    let (runtime, router) = &*SERVED;
    let (status, text) = runtime.block_on(async {
        let reply = router.clone().oneshot(request).await.expect("answers");
        (reply.status().as_u16(), to_bytes(reply.into_body(), usize::MAX).await.expect("whole"))
    });
    assert!([200, 400, 413, 422, 503].contains(&status), "{status}");
    assert!(text.len() <= MOST_ANSWER + 1024);
    if status != 200 {
        let said: serde_json::Value = serde_json::from_slice(&text).expect("a refusal is JSON");
        assert!(said["problem"].as_str().is_some_and(|p| p.len() > 4 && p.len() < 6_000), "{said}");
    }
});
