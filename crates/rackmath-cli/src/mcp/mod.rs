//! `rackmath mcp`: the questions as tools of the Model Context Protocol, over standard input and output.
//!
//! A message is a line of JSON-RPC 2.0. Two manners of speaking are understood: a session opened by `initialize` (revisions 2024-11-05
//! to 2025-11-25), and requests that stand alone with their revision in `_meta` (2026-07-28). Every call is worked on its own thread
//! and can be cancelled; what a call may ask for is what the server over HTTP takes. Nothing is read from files.
//! <https://modelcontextprotocol.io/specification>

mod shelf;
mod tools;

use crate::output::Output;
use clap::ArgMatches;
use rackmath::{Catalog, Error};
use rackmath_server::MOST_BYTES;
use rackmath_units::Cancel;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Read as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Revisions with a handshake, oldest first, and the one without.
const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const STATELESS: &str = "2026-07-28";
/// The fields of `_meta` of the latter.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Codes of JSON-RPC and of the protocol.
const NOT_JSON: i64 = -32700;
const NO_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const BAD_PARAMS: i64 = -32602;
const OUR_FAULT: i64 = -32603;
const NO_RESOURCE: i64 = -32002;
const NO_VERSION: i64 = -32022;

/// How long lists may be kept: the catalogue does not change while the program runs.
const FRESH_MS: u64 = 3_600_000;
/// Calls under way at a time.
const MOST_CALLS: usize = 16;
/// How long calls under way may go on once nobody listens any more.
const GRACE: Duration = Duration::from_secs(5);

/// What went wrong with a message: a code, words, and data where the protocol asks for some.
struct Fault(i64, String, Option<Value>);

impl Fault {
    fn new(code: i64, words: impl Into<String>) -> Self {
        Self(code, words.into(), None)
    }
}

type Outcome = Result<Map<String, Value>, Fault>;

struct Server {
    catalog: Catalog,
    patience: Duration,
    /// Calls under way, by their id as it is written.
    calls: Mutex<BTreeMap<String, Call>>,
    /// Lines are written whole.
    out: Mutex<Box<dyn Write + Send>>,
}

/// A call under way.
struct Call {
    cancel: Cancel,
    until: Instant,
    /// Who wants to hear how far it is, and how far that was when last told.
    progress: Option<(Value, u64)>,
}

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn run(catalog: Catalog, given: &ArgMatches, _: &Output) -> Result<(), Error> {
    let patience = given.get_one::<f64>("patience").copied().unwrap_or(30.0);
    let server = Arc::new(Server {
        catalog,
        patience: Duration::from_secs_f64(patience),
        calls: Mutex::default(),
        out: Mutex::new(Box::new(std::io::stdout())),
    });
    let watch = Arc::clone(&server);
    std::thread::spawn(move || watch.watch());
    let mut input = std::io::stdin().lock();
    let mut workers = Vec::new();
    loop {
        let mut line = Vec::new();
        // One byte more than is taken shows that there is more.
        let most = MOST_BYTES as u64 + 1;
        let read = input.by_ref().take(most).read_until(b'\n', &mut line);
        let n = read.map_err(|e| Error::said(format!("standard input: {e}")))?;
        if n == 0 {
            break;
        }
        if n as u64 == most && !line.ends_with(b"\n") {
            input.skip_until(b'\n').map_err(|e| Error::said(format!("standard input: {e}")))?;
            server.reply(
                &Value::Null,
                Err(Fault::new(NO_REQUEST, format!("a message of more than {MOST_BYTES} bytes"))),
                false,
            );
            continue;
        }
        workers.retain(|worker: &std::thread::JoinHandle<()>| !worker.is_finished());
        workers.extend(server.message(&String::from_utf8_lossy(&line)));
    }
    let end = Instant::now() + GRACE;
    for call in lock(&server.calls).values_mut() {
        call.until = call.until.min(end);
    }
    for worker in workers {
        let _ = worker.join();
    }
    Ok(())
}

impl Server {
    /// Ends calls that take too long, and tells how far the others are.
    fn watch(&self) {
        for turn in 0_u64.. {
            std::thread::sleep(Duration::from_millis(100));
            let now = Instant::now();
            let mut told = Vec::new();
            for call in lock(&self.calls).values_mut() {
                if now > call.until {
                    call.cancel.cancel();
                }
                if let Some((token, said)) = call.progress.as_mut().filter(|_| turn % 10 == 9) {
                    // What is told must grow.
                    *said = (*said + 1).max(call.cancel.done());
                    told.push(json!({ "progressToken": token, "progress": *said }));
                }
            }
            for params in told {
                self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
            }
        }
    }

    fn write(&self, message: &Value) {
        let mut out = lock(&self.out);
        // A client that has gone reads nothing; the end of its messages ends this program.
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    }

    fn reply(&self, id: &Value, outcome: Outcome, stateless: bool) {
        let message = match outcome {
            Ok(mut result) => {
                if stateless {
                    result.entry("resultType").or_insert_with(|| "complete".into());
                    result.insert("_meta".into(), json!({ SERVER_KEY: info() }));
                } else {
                    result.remove("ttlMs");
                    result.remove("cacheScope");
                }
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
            }
            Err(Fault(code, message, data)) => {
                let mut error = json!({ "code": code, "message": message });
                if let Some(data) = data {
                    error["data"] = data;
                }
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        self.write(&message);
    }

    /// Answers a message, on a thread of its own where that may take long.
    fn message(self: &Arc<Self>, line: &str) -> Option<std::thread::JoinHandle<()>> {
        if line.trim().is_empty() {
            return None;
        }
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(e) => {
                self.reply(&Value::Null, Err(Fault::new(NOT_JSON, format!("not JSON: {e}"))), false);
                return None;
            }
        };
        let id = message.get("id").cloned().unwrap_or_default();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // Answers of a client to nothing that was asked are let be.
            if message.get("result").is_none() && message.get("error").is_none() {
                let fault = Fault::new(NO_REQUEST, "expected one object of JSON-RPC 2.0 with a method");
                self.reply(&id, Err(fault), false);
            }
            return None;
        };
        let params = message.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
        if id.is_null() {
            if method == "notifications/cancelled"
                && let Some(call) = params.get("requestId").and_then(|id| lock(&self.calls).remove(&id.to_string()))
            {
                call.cancel.cancel();
            }
            return None;
        }
        let version = params.get("_meta").and_then(|meta| meta.get(VERSION_KEY));
        let stateless = version.is_some();
        if let Some(other) = version.filter(|version| *version != STATELESS) {
            let data = json!({ "supported": [STATELESS], "requested": other });
            let words = format!("revision {other} is not spoken here without initialize");
            self.reply(&id, Err(Fault(NO_VERSION, words, Some(data))), false);
            return None;
        }
        if method == "tools/call" {
            return self.call(id, params, stateless);
        }
        self.reply(&id, self.outcome(method, &params), stateless);
        None
    }

    fn outcome(&self, method: &str, params: &Map<String, Value>) -> Outcome {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        let result = match method {
            "initialize" => {
                let wanted = text("protocolVersion").unwrap_or_default();
                let version = HANDSHAKE.iter().find(|v| **v == wanted).unwrap_or(&HANDSHAKE[3]);
                json!({ "protocolVersion": version, "capabilities": capabilities(), "serverInfo": info(),
                    "instructions": INSTRUCTIONS })
            }
            "server/discover" => json!({ "supportedVersions": [STATELESS], "capabilities": capabilities(),
                "instructions": INSTRUCTIONS, "ttlMs": FRESH_MS, "cacheScope": "public" }),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": tools::list(), "ttlMs": FRESH_MS, "cacheScope": "public" }),
            "resources/list" => shelf::list(&self.catalog, text("cursor"))?,
            "resources/templates/list" => shelf::templates(),
            "resources/read" => shelf::read(&self.catalog, text("uri").unwrap_or_default())?,
            "prompts/list" => json!({ "prompts": shelf::prompts(), "ttlMs": FRESH_MS, "cacheScope": "public" }),
            "prompts/get" => shelf::prompt(text("name").unwrap_or_default(), params.get("arguments"))?,
            _ => return Err(Fault::new(NO_METHOD, format!("no method \"{method}\""))),
        };
        Ok(if let Value::Object(result) = result { result } else { Map::new() })
    }

    /// Works on a call until it is answered, cancelled, or took too long.
    fn call(
        self: &Arc<Self>,
        id: Value,
        params: Map<String, Value>,
        stateless: bool,
    ) -> Option<std::thread::JoinHandle<()>> {
        let (cancel, key) = (Cancel::open(), id.to_string());
        {
            let mut calls = lock(&self.calls);
            if calls.len() >= MOST_CALLS {
                drop(calls);
                let words = format!("{MOST_CALLS} calls are under way; wait for one of them");
                self.reply(&id, Ok(tools::refused(&words)), stateless);
                return None;
            }
            let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
            let until = Instant::now() + self.patience;
            calls.insert(key.clone(), Call { cancel: cancel.clone(), until, progress: token.map(|token| (token, 0)) });
        }
        let server = Arc::clone(self);
        Some(std::thread::spawn(move || {
            let work = || tools::call(&server.catalog, &params, &cancel, server.patience);
            // A fault of ours is an answer as well: nobody waits for ever.
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
                .unwrap_or_else(|_| Err(Fault::new(OUR_FAULT, "this question met a fault of rackmath; others go on")));
            // A call that was cancelled is not there any more, and gets no answer.
            if lock(&server.calls).remove(&key).is_some() {
                server.reply(&id, outcome, stateless);
            }
        }))
    }
}

const INSTRUCTIONS: &str = "The maths of how large language models are trained and served: speed, memory, cost, layouts and \
    plans from published figures. Arguments are typed as in a terminal (isl \"4k\", tpot \"30ms\", on \"8xh200\"). Answers are \
    short; detail \"full\" brings every figure and the working.";

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {} })
}

fn info() -> Value {
    json!({ "name": "rackmath", "title": "rackmath", "version": env!("CARGO_PKG_VERSION") })
}
