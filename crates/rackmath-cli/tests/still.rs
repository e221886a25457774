//! The blackboard without a server, in a real browser: its answers are the library's, byte by byte.
//!
//! Needs the engine that `crates/rackmath-wasm/build` makes; without it these tests say so and end.

mod common;
#[path = "../../rackmath-server/tests/common/browser.rs"]
mod driver;
#[path = "../../rackmath-server/tests/common/requests.rs"]
mod requests;

use common::folder;
use driver::Browser;
use rackmath::ask::Question;
use rackmath_units::Chance;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// The engine for browsers, where it was built.
fn engine() -> Option<PathBuf> {
    let named = std::env::var_os("RACKMATH_WASM").map(PathBuf::from);
    let target = Path::new(env!("CARGO_BIN_EXE_rackmath")).ancestors().nth(2).expect("target");
    let found = Some(named.unwrap_or_else(|| target.join("wasm/rackmath.wasm"))).filter(|p| p.is_file());
    if found.is_none() {
        eprintln!("skipped: no engine for browsers; crates/rackmath-wasm/build makes it");
    }
    found
}

/// A file host that knows types and nothing else.
fn host(folder: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let folder = folder.clone();
            std::thread::spawn(move || serve(stream, &folder));
        }
    });
    address
}

fn serve(mut stream: TcpStream, folder: &Path) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    lines.take_while(|l| l.as_ref().is_ok_and(|l| !l.is_empty())).for_each(drop);
    let path = first.split(' ').nth(1)?.trim_start_matches('/');
    let path = folder.join(if path.is_empty() { "index.html" } else { path.split(['?', '#']).next()? });
    let kind = match path.extension()?.to_str()? {
        "html" => "text/html",
        "js" => "text/javascript",
        "css" => "text/css",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let head = |status: &str, n: usize| {
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {n}\r\nconnection: close\r\n\r\n")
    };
    let (status, body) = std::fs::read(&path).map_or(("404 Not Found", Vec::new()), |bytes| ("200 OK", bytes));
    stream.write_all(head(status, body.len()).as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

fn written(engine: &Path) -> SocketAddr {
    let folder = PathBuf::from(folder("still")).join("page");
    let mut command = assert_cmd::Command::cargo_bin("rackmath").expect("built");
    command.args(["web", "--static"]).arg(&folder).arg("--wasm").arg(engine);
    command.assert().success();
    host(folder)
}

#[test]
fn the_page_computes_what_the_library_answers_byte_by_byte() {
    let Some(engine) = engine() else { return };
    let address = written(&engine);
    let mut browser = Browser::start(1280, 900);
    browser.open(&format!("http://{address}/#/latency"));
    assert_eq!(browser.eval("rackmath.error"), Value::Null);
    assert_eq!(browser.complaints, Vec::<String>::new());
    let catalog = rackmath_catalog::embedded();
    let schemas: Vec<(Question, Value)> = Question::ALL
        .iter()
        // These run for long unoptimised, whatever is asked.
        .filter(|q| !matches!(q, Question::Validate | Question::Reversible | Question::Lecture))
        .map(|q| (*q, serde_json::to_value(q.schema().request).expect("JSON")))
        .collect();
    let dice = &mut Chance::new(11);
    let (mut asked, mut answered) = (0, 0);
    // Every question as it is, then at random.
    let plain = schemas.iter().map(|(q, _)| (*q, json!({}))).collect::<Vec<_>>();
    let mut plain = plain.into_iter();
    while asked < 200 {
        let (question, request) = plain.next().unwrap_or_else(|| {
            let (question, schema) = requests::one(dice, &schemas).clone();
            (question, requests::object(dice, &schema, &schema, 0))
        });
        let fields = request.as_object().expect("an object");
        // What a count of 64 bits becomes where memory has addresses of 32 is not compared yet.
        if request.to_string().contains("18446744073709551615") {
            continue;
        }
        if rackmath_server::cost::of(&catalog, question, fields).seconds > 0.15 && !fields.is_empty() {
            continue;
        }
        asked += 1;
        let path = format!("api/{}", question.name());
        let own = rackmath_wasm::respond(&catalog, &path, &request.to_string());
        let there = browser.eval(&format!(
            "import('./lib/transport.js').then(async (t) => {{ const r = await t.send({}, {}); return [r.status, await r.text()]; }})",
            json!(path),
            json!(request.to_string()),
        ));
        let own = json!([own.status, String::from_utf8(own.bytes).expect("UTF-8")]);
        assert!(there == own, "{path} {request}: the page says {there:.300}, the library {own:.300}");
        answered += usize::from(own[0] == 200);
    }
    eprintln!("{asked} requests, {answered} of them answered, the others refused: the same bytes");
    assert!(answered > 60, "only {answered} were answered");
}

#[test]
fn a_page_that_is_asked_something_else_meanwhile_goes_on() {
    let Some(engine) = engine() else { return };
    let address = written(&engine);
    let mut browser = Browser::start(390, 800);
    browser.open(&format!("http://{address}/#/latency"));
    let aborted = browser.eval(
        "import('./lib/transport.js').then(async (t) => { const c = new AbortController();
           const long = t.send('api/validate', '{}', c.signal).then(() => 'answered', (e) => e.name);
           const next = t.send('api/step', '{}'); setTimeout(() => c.abort(), 50);
           return [await long, (await next).status]; })",
    );
    assert_eq!(aborted, json!(["AbortError", 200]));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn an_engine_that_is_none_is_refused() {
    let folder = PathBuf::from(folder("still-none"));
    let wrong = folder.join("wrong.wasm");
    std::fs::write(&wrong, "no engine").expect("writable");
    for (file, expected) in [(wrong, "not a WebAssembly file"), (folder.join("missing.wasm"), "No such file")] {
        let mut command = assert_cmd::Command::cargo_bin("rackmath").expect("built");
        let output =
            command.args(["web", "--static"]).arg(folder.join("page")).arg("--wasm").arg(&file).output().expect("ran");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(expected) && said.contains("hint"), "{said}");
    }
}
