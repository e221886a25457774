//! The server as a client meets it: over a socket, byte for byte.

mod common;

use common::{Client, start};
use rackmath::ask::Question;

#[test]
fn refusals_say_what_was_given_and_what_would_do() {
    let mut client = Client::new(start());
    let long = format!(r#"{{"x": "{}"}}"#, "y".repeat(2 << 20));
    for (path, body, status, says) in [
        ("/api/step", r#"{"setting": {"model": "lama-3.1-70b"}}"#, 422, "llama-3.1-70b"),
        ("/api/stepp", "{}", 404, "did you mean \\\"step\\\""),
        ("/api/step", "{", 400, "not JSON"),
        ("/api/plan", r#"{"objective": "throughptu"}"#, 422, "did you mean \\\"throughput\\\"?"),
        ("/api/curve", r#"{"points": 100000}"#, 422, "at most 2000"),
        ("/api/step", &long, 413, "1048576 bytes"),
        ("/export/curve?figure=/tiem&format=svg", "{}", 422, "/tiem"),
        ("/export/curve?figure=/time&format=gif", "{}", 422, "svg, png or csv"),
        ("/export/curve?figure=/time", "{}", 422, "expected ?figure=/time&format=svg"),
        ("/api/step/typed", r#"{"bach": "64"}"#, 422, "batch"),
        ("/api/estimate/typed", r#"{"tpot": "30 apples"}"#, 422, "tpot"),
    ] {
        let reply = client.post(path, body.as_bytes());
        assert!(reply.status == status && reply.text().contains(says), "{path}: {} {}", reply.status, reply.text());
    }
}

#[test]
fn files_come_with_the_request_and_none_is_read_for_it() {
    let mut client = Client::new(start());
    for path in ["/../Cargo.toml", "/..%2f..%2fCargo.toml", "//etc/passwd", "/ui/index.html", "/lib/../style.css"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    // A path in a request is a name like any other.
    let reply = client.post("/api/step", br#"{"setting": {"model": "/etc/passwd"}}"#);
    assert!(reply.status == 422 && !reply.text().contains("root:"), "{}", reply.text());
    let config = include_str!("config.json");
    let body =
        format!(r#"{{"files": {{"config.json": {config}}}, "setting": {{"model": "config.json", "on": "h100"}}}}"#);
    let reply = client.post("/api/step", body.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[test]
fn pictures_come_as_files() {
    let mut client = Client::new(start());
    let mut drawn =
        |format: &str| client.post(&format!("/export/curve?figure=/time&format={format}"), br#"{"points": 20}"#);
    let svg = drawn("svg");
    assert!(svg.text().starts_with("<svg") && svg.header("content-type") == Some("image/svg+xml"));
    assert_eq!(&drawn("png").body[1..4], b"PNG");
    assert!(drawn("csv").text().lines().count() > 20);
    // A figure put together elsewhere; what a logarithm cannot show is left out.
    let figure = r#"{"title": "t", "subtitle": "", "x": {"label": "x", "unit": "count", "scale": "log"}, "y": {"label": "y", "unit": "seconds", "scale": "linear"},
        "series": [{"name": "a", "role": {"choice": 1}, "points": [[0, 1], [1, 2], [10, 3]]}], "marks": []}"#;
    let reply = client.post("/draw?format=svg", figure.as_bytes());
    assert!(reply.text().starts_with("<svg"), "{}", reply.text());
    assert_eq!(&client.post("/draw?format=png", figure.as_bytes()).body[1..4], b"PNG");
    for bad in ["{}", "[]", r#"{"series": []}"#, &figure.replace("[[0, 1], [1, 2], [10, 3]]", "[]")] {
        assert_eq!(client.post("/draw?format=svg", bad.as_bytes()).status, 422, "{bad}");
    }
}

#[test]
fn every_reply_is_guarded() {
    let address = start();
    let mut client = Client::new(address);
    for path in ["/", "/api", "/openapi.json", "/nothing", "/api/step/schema"] {
        let reply = client.get(path);
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
    // Another site's name for this machine, another site's form, another way.
    assert_eq!(client.send("GET", "/api", &[("host", "evil.example")], b"").status, 421);
    assert_eq!(client.send("POST", "/api/step", &[("content-type", "text/plain")], b"{}").status, 415);
    assert_eq!(client.send("GET", "/api/step", &[], b"").status, 405);
    assert_eq!(client.send("DELETE", "/api/step", &[], b"").status, 405);
    // What has not changed is not sent again.
    let page = client.get("/");
    let tag = page.header("etag").expect("a tag").to_owned();
    let again = client.send("GET", "/", &[("if-none-match", &tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    for path in ["/openapi.json", "/api", "/api/step/schema", "/api/step/fields"] {
        let tag = client.get(path).header("etag").unwrap_or_else(|| panic!("{path} has a tag")).to_owned();
        assert_eq!(
            client.send("GET", path, &[("if-none-match", &format!("\"x\", W/{tag}"))], b"").status,
            304,
            "{path}"
        );
    }
    let answer = client.post("/api/step", b"{}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[test]
fn every_question_says_what_can_be_set_and_answers_what_is_typed() {
    let mut client = Client::new(start());
    for question in Question::ALL {
        let fields = client.get(&format!("/api/{}/fields", question.name()));
        assert_eq!(fields.status, 200, "{}", question.name());
        let listed: Vec<serde_json::Value> = serde_json::from_str(fields.text()).expect("a list");
        assert_eq!(listed.len(), question.fields().len(), "{}", question.name());
    }
    let typed =
        client.post("/api/step/typed", br#"{"model": "qwen3-32b", "on": "8xh200", "batch": "1k", "context": "8k"}"#);
    let shown: serde_json::Value = serde_json::from_str(typed.text()).expect("JSON");
    // All of it, the verdict first.
    let text = shown["text"].as_str().expect("words");
    assert!(text.starts_with("Does not fit: ") && text.contains("Qwen3 32B"), "{text}");
    assert!(text.contains("\nassumes\n") && text.contains("\nsources\n") && !text.contains("more: "), "{text}");
    let short = shown["short"].as_str().expect("words");
    assert!(short.lines().count() <= 25 && short.lines().next() == text.lines().next(), "{short}");
    assert!(short.contains("\nmore: --explain ("), "{short}");
    assert_eq!(shown["request"]["batch"], 1000.0, "what was typed, as JSON");
    // Sentences are values; their words come on asking.
    let step: serde_json::Value = serde_json::from_str(client.post("/api/step", b"{}").text()).expect("JSON");
    let said = client.post("/api/words", step["assumptions"].to_string().as_bytes());
    let said: Vec<String> = serde_json::from_str(said.text()).expect("a list of sentences");
    assert!(said.iter().any(|s| s.contains("overlap perfectly")) && said.len() > 4, "{said:?}");
    assert_eq!(client.post("/api/words", b"{}").status, 422);
    let curve = client.post("/api/curve/typed", b"{}");
    assert!(curve.text().contains("\"series\""), "a curve has a picture");
}

#[test]
fn a_long_answer_comes_whole_packed_or_in_parts() {
    let mut client = Client::new(start());
    let body = br#"{"schedule": "1f1b", "stages": 8, "micro_batches": 64}"#;
    let whole = client.post("/api/pipeline", body);
    let cells = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON")["runs"][0]["cells"].clone();
    let all = cells(whole.text());
    let head = [("content-type", "application/json"), ("accept-encoding", "gzip")];
    let packed = client.send("POST", "/api/pipeline", &head, body);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(
        packed.body.starts_with(&[0x1f, 0x8b]) && packed.body.len() * 4 < whole.body.len(),
        "{}",
        packed.body.len()
    );
    let mut rows = Vec::new();
    let mut from = Some(0);
    while let Some(at) = from {
        let part = client.post(&format!("/api/pipeline?of=/runs/0/cells&from={at}&rows=300"), body);
        let part: serde_json::Value = serde_json::from_str(part.text()).expect("JSON");
        rows.extend(part["rows"].as_array().expect("rows").clone());
        from = part["next"].as_u64();
    }
    assert_eq!(serde_json::Value::Array(rows), all);
    for (query, says) in
        [("of=/nothing", "/runs/0/cells"), ("of=/runs&rows=0", "1 to 100000"), ("of=/runs&from=-1", "expected ?of")]
    {
        let reply = client.post(&format!("/api/pipeline?{query}"), body);
        assert!(reply.status == 422 && reply.text().contains(says), "{query}: {} {}", reply.status, reply.text());
    }
    // Too long to be sent whole: the refusal says which list to take in parts, and the part it names can be had.
    let long = br#"{"schedule": "1f1b", "stages": 64, "micro_batches": 256, "virtual_stages": 1}"#;
    let refused = client.post("/api/pipeline", long);
    if refused.status == 422 {
        let said: serde_json::Value = serde_json::from_str(refused.text()).expect("JSON");
        let hint = said["hint"].as_str().expect("a hint");
        let path = hint.split_whitespace().last().expect("a path");
        assert!(path.starts_with("/api/pipeline?of=/runs/0/cells"), "{said}");
        assert_eq!(client.post(path, long).status, 200);
    }
}
