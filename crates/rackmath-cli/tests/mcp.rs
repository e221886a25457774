//! An exchange with `rackmath mcp`, line by line, in both manners of speaking; and with a published client library where one is installed.

mod common;

use common::{json as asked, shown};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const META: &str = "io.modelcontextprotocol/protocolVersion";

struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rackmath"))
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("piped")));
        Self { child, to, from, next: 0 }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.to.as_mut().expect("open"), "{line}").expect("sent");
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string());
        self.next
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let reply = self.receive();
        assert_eq!((&reply["id"], &reply["jsonrpc"]), (&json!(id), &json!("2.0")), "{reply}");
        reply
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.ask(method, params);
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].take()
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Closes its input; how it ends.
    fn end(mut self) -> Option<i32> {
        drop(self.to.take());
        self.child.wait().expect("ends").code()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[test]
fn a_session_starts_lists_calls_and_ends_with_its_input() {
    let mut client = Client::start();
    for (wanted, got) in [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")] {
        let params =
            json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let result = client.result("initialize", params);
        assert_eq!((&result["protocolVersion"], &result["serverInfo"]["name"]), (&json!(got), &json!("rackmath")));
        assert!(result.get("resultType").is_none(), "{result}");
    }
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let tools = client.result("tools/list", json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().expect("a list").iter().filter_map(|t| t["name"].as_str()).collect();
    assert!(names.contains(&"estimate") && names.contains(&"ask") && names.len() <= 12, "{names:?}");
    assert!(tools["tools"][0]["inputSchema"]["properties"]["tp"].is_object(), "{}", tools["tools"][0]);

    // The words are those of the terminal, the figures those of its JSON.
    let line = "estimate llama-3.1-70b --on 8xh200 --tp 8 --concurrency 64";
    let arguments = json!({ "model": "llama-3.1-70b", "on": "8xh200", "tp": 8, "concurrency": 64 });
    let brief = client.call("estimate", arguments.clone());
    assert_eq!(brief["isError"], false);
    assert!(shown(line).starts_with(text(&brief).trim_end_matches("(more with detail: full)\n")), "{}", text(&brief));
    assert!(brief.get("structuredContent").is_none());
    let mut full = arguments;
    full["detail"] = json!("full");
    assert_eq!(client.call("estimate", full)["structuredContent"], asked(line));
    let other = client.call("ask", json!({ "question": "goodput", "arguments": { "chips": 4096 } }));
    assert!(text(&other).len() > 100 && text(&other).len() <= 6_100, "{}", text(&other).len());
    assert_eq!(client.result("ping", json!({})), json!({}));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn what_is_wrong_comes_back_in_the_result_with_the_nearest_word() {
    let mut client = Client::start();
    for (name, arguments, says) in [
        ("estimate", json!({ "model": "llama-3.1-7b" }), "the nearest is"),
        ("estimate", json!({ "modle": "x" }), "did you mean \"model\"?"),
        ("estimate", json!({ "tp": "many" }), "not a number"),
        ("plan", json!({ "on": "99999xh200" }), "chips"),
        ("simulate", json!({ "requests": 1_000_000_000_000_u64 }), "takes at most 30 s"),
        ("ask", json!({ "question": "gooput" }), "did you mean \"goodput\"?"),
        ("estimate", json!({ "detail": "long" }), "brief or full"),
    ] {
        let result = client.call(name, arguments.clone());
        assert_eq!(result["isError"], true, "{name} {arguments}: {result}");
        assert!(text(&result).contains(says), "{name} {arguments}: {}", text(&result));
    }
    for (method, params, code) in [
        ("tools/call", json!({ "name": "estimat" }), -32602),
        ("tools/call", json!({ "name": "estimate", "arguments": [1] }), -32602),
        ("resources/read", json!({ "uri": "rackmath://models/nothing-like-it" }), -32002),
        ("prompts/get", json!({ "name": "size-a-deployment" }), -32602),
        ("nothing/here", json!({}), -32601),
    ] {
        assert_eq!(client.ask(method, params)["error"]["code"], code, "{method}");
    }
    for (line, code) in [("{", -32700), ("[]", -32600), ("7", -32600)] {
        client.send(line);
        assert_eq!(client.receive()["error"]["code"], code, "{line}");
    }
    client.send(&"x".repeat(2 << 20));
    assert_eq!(client.receive()["error"]["code"], -32600);
    assert_eq!(client.result("ping", json!({})), json!({}), "it goes on");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_call_that_is_cancelled_gets_no_answer_and_others_go_on() {
    let mut client = Client::start();
    let long = json!({ "name": "simulate", "arguments": { "model": "llama-3.1-8b", "on": "1xh200", "rate": 9, "requests": 3_000_000 } });
    let id = client.begin("tools/call", long);
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string(),
    );
    assert_eq!(client.result("ping", json!({})), json!({}));
    let step = client.call("ask", json!({ "question": "step" }));
    assert_eq!(step["isError"], false);
    assert_eq!(client.end(), Some(0), "nothing was left under way");
}

#[test]
fn requests_that_stand_alone_say_their_revision() {
    let mut client = Client::start();
    let meta = |version: &str| json!({ META: version, "io.modelcontextprotocol/clientCapabilities": {} });
    let found = client.result("server/discover", json!({ "_meta": meta("2026-07-28") }));
    assert_eq!((&found["supportedVersions"], &found["resultType"]), (&json!(["2026-07-28"]), &json!("complete")));
    assert!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["version"].is_string() && found["ttlMs"].is_u64());
    let called = client.result(
        "tools/call",
        json!({ "_meta": meta("2026-07-28"), "name": "chips", "arguments": { "names": ["h100"] } }),
    );
    assert_eq!((&called["resultType"], &called["isError"]), (&json!("complete"), &json!(false)));
    let refused = client.ask("tools/list", json!({ "_meta": meta("2031-01-01") }));
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["supported"]),
        (&json!(-32022), &json!(["2026-07-28"]))
    );
    client.end();
}

#[test]
fn the_catalogue_is_read_and_recipes_are_filled_in() {
    let mut client = Client::start();
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page =
            client.result("resources/list", if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) });
        all.extend(
            page["resources"].as_array().expect("a list").iter().map(|r| r["uri"].as_str().expect("text").to_owned()),
        );
        cursor = page.get("nextCursor").cloned().unwrap_or_default();
        if cursor.is_null() {
            break;
        }
    }
    for uri in ["rackmath://models/qwen3-32b", "rackmath://chips/h200-sxm", "rackmath://schema/estimate"] {
        let kind = uri.rsplit_once('/').expect("a folder").0;
        let uri = all
            .iter()
            .find(|own| *own == uri)
            .or_else(|| all.iter().find(|own| own.starts_with(kind)))
            .expect(uri)
            .clone();
        let read = client.result("resources/read", json!({ "uri": uri }));
        assert!(read["contents"][0]["text"].as_str().is_some_and(|t| t.len() > 100), "{uri}");
    }
    assert_eq!(
        client.result("resources/templates/list", json!({}))["resourceTemplates"].as_array().map(Vec::len),
        Some(7)
    );
    let prompts = client.result("prompts/list", json!({}));
    assert_eq!(prompts["prompts"].as_array().map(Vec::len), Some(3));
    let given =
        json!({ "name": "compare-clouds", "arguments": { "model": "qwen3-32b", "workload": "1M requests a day" } });
    let prompt = client.result("prompts/get", given);
    assert!(
        prompt["messages"][0]["content"]["text"]
            .as_str()
            .is_some_and(|t| t.contains("serve qwen3-32b for 1M requests a day"))
    );
    client.end();
}

/// A Python that has a module: `RACKMATH_PYTHON`, else `python3`.
fn python(module: &str) -> Option<String> {
    let python = std::env::var("RACKMATH_PYTHON").unwrap_or_else(|_| "python3".into());
    let found =
        Command::new(&python).args(["-c", &format!("import {module}")]).output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("skipped: {python} has no module {module}");
    }
    found.then_some(python)
}

#[test]
fn the_published_client_library_starts_lists_calls_and_cancels() {
    let Some(python) = python("mcp") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_client.py");
    let output = Command::new(python).args([script, env!("CARGO_BIN_EXE_rackmath")]).output().expect("ran");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("both manners"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
