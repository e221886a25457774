//! The blackboard without a server, in a real browser: its answers are the library's, byte by byte.
//!
//! Needs the engine that `crates/rackmath-wasm/build` makes; without it these tests say so and end.

mod common;
#[path = "../../rackmath-server/tests/common/browser.rs"]
mod driver;
#[path = "common/host.rs"]
mod files;
#[path = "../../rackmath-server/tests/common/requests.rs"]
mod requests;

use common::folder;
use driver::Browser;
use files::{engine, host, written};
use rackmath::ask::Question;
use rackmath_units::Chance;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file as a host sends it that packs texts with gzip, which all know; files that are packed stay as they are.
fn compressed(path: &Path) -> usize {
    let bytes = std::fs::read(path).expect("readable");
    let packed = path.extension().is_some_and(|e| e == "bin" || e == "woff2");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&bytes).expect("in memory");
    if packed { bytes.len() } else { gzip.finish().expect("in memory").len() }
}

/// All files of a folder so.
fn sent(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| if path.is_dir() { sent(&path) } else { compressed(&path) }).sum()
}

/// Most that a first visit takes, compressed; and all files together, of which nobody fetches all.
const MOST_FETCHED: usize = 3_000_000;
const MOST_SENT: usize = 3_400_000;

#[test]
fn what_a_host_sends_does_not_grow_unseen() {
    let Some(engine) = engine() else { return };
    let page = written(&engine, Path::new(&folder("still-size")));
    let size = |name: &str| std::fs::metadata(page.join("engine").join(name)).expect("there").len();
    let all = sent(&page);
    let (own, catalogue, measured) = (size("rackmath.wasm.bin"), size("catalogue.json.bin"), size("measured.json.bin"));
    eprintln!("{all} bytes: engine {own}, catalogue {catalogue}, measurements, for one question only, {measured}");
    assert!(all < MOST_SENT, "{all} bytes");
    let address = host(page.clone());
    let mut browser = Browser::start(1280, 900);
    browser.open(&format!("http://{address}/"));
    let fetched = browser.eval("performance.getEntriesByType('resource').map((r) => new URL(r.name).pathname)");
    let mut names: BTreeSet<String> = serde_json::from_value(fetched).expect("names");
    // What a worker fetches its page does not list.
    names.extend(["/index.html", "/engine/rackmath.wasm.bin", "/engine/catalogue.json.bin"].map(str::to_owned));
    names.remove("/engine/measured.json.bin");
    let files = names.iter().map(|name| page.join(name.trim_start_matches('/'))).filter(|path| path.is_file());
    let first: usize = files.map(|path| compressed(&path)).sum();
    eprintln!("{first} bytes for a first visit, {} files", names.len());
    assert!(names.len() > 10 && first < MOST_FETCHED, "{first} bytes: {names:?}");
}

#[test]
fn the_page_computes_what_the_library_answers_byte_by_byte() {
    let Some(engine) = engine() else { return };
    let address = host(written(&engine, Path::new(&folder("still"))));
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
    // Every question as it is, one that reads a file of its own, then at random.
    let measured = (Question::Validate, json!({ "tables": ["argonne"] }));
    let mut plain = schemas.iter().map(|(q, _)| (*q, json!({}))).chain([measured]).collect::<Vec<_>>().into_iter();
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
    let address = host(written(&engine, Path::new(&folder("still-aborted"))));
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
