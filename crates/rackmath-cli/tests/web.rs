//! The server as the command starts it, and the same bytes from every face.

mod common;

use common::{refused, shown};
use rackmath::ask::Question;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A running server; stopped when dropped.
struct Web {
    child: Child,
    address: String,
    said: BufReader<std::process::ChildStderr>,
}

impl Web {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rackmath"))
            .args(["web", "--port", "0"])
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut said = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("says where it is");
        let address = line.split("http://").nth(1).and_then(|s| s.split('/').next()).expect("an address").to_owned();
        Self { child, address, said }
    }

    fn post(&self, question: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("connects");
        write!(
            stream,
            "POST /api/{question} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("read");
        let (head, body) = reply.split_once("\r\n\r\n").expect("a reply");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
        body.to_owned()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `rackmath ask` prints for a body on standard input.
fn asked(question: &str, body: &str) -> String {
    let output = assert_cmd::Command::cargo_bin("rackmath")
        .expect("built")
        .args(["ask", question])
        .write_stdin(body)
        .output()
        .expect("ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn flags_json_server_and_library_give_the_same_bytes() {
    let web = Web::start(&["--quiet"]);
    let catalog = rackmath_catalog::embedded();
    let cases: &[(&str, &[&str], &str)] = &[
        (
            "step",
            &["step", "llama-3.1-70b", "--on", "8xh200", "-b", "64"],
            r#"{"setting":{"model":"llama-3.1-70b","on":"8xh200"},"batch":64}"#,
        ),
        (
            "curve",
            &["curve", "qwen3-32b", "--on", "h200", "--over", "context"],
            r#"{"setting":{"model":"qwen3-32b","on":"h200"},"over":"context"}"#,
        ),
        ("racks", &["racks"], "{}"),
        ("chips", &["chips", "h100", "h200"], r#"{"names":["h100","h200"]}"#),
        ("lecture", &["lecture", "D9"], r#"{"claim":"D9"}"#),
        ("price", &["price", "gpt-5.5"], r#"{"sheets":["gpt-5.5"]}"#),
        (
            "deduce",
            &["deduce", "--blind", "deepseek-v3.1", "--points", "12"],
            r#"{"blind":"deepseek-v3.1","log2_points":12}"#,
        ),
    ];
    for (question, flags, body) in cases {
        let library = Question::find(question).and_then(|q| q.ask(&catalog, body)).expect("answered");
        assert_eq!(web.post(question, body), library, "{question}: server and library");
        assert_eq!(asked(question, body), library, "{question}: ask and library");
        let flags: Vec<&str> = flags.iter().copied().chain(["--json"]).collect();
        assert_eq!(shown(&flags), library, "{question}: flags and library");
    }
}

#[test]
fn a_taken_port_is_said_with_a_free_one() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let output =
        Command::new(env!("CARGO_BIN_EXE_rackmath")).args(["web", "--port", &port.to_string()]).output().expect("ran");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(&format!("port {port} of 127.0.0.1 is taken")) && said.contains("hint: try --port "),
        "{said}"
    );
    let free: u16 = said.rsplit("--port ").next().and_then(|n| n.trim().parse().ok()).expect("a port");
    assert!(TcpListener::bind(("127.0.0.1", free)).is_ok());
}

#[test]
fn requests_are_logged_and_the_end_is_orderly() {
    let mut web = Web::start(&[]);
    web.post("step", "{}");
    let mut line = String::new();
    web.said.read_line(&mut line).expect("a line");
    assert!(line.starts_with("POST /api/step 200 ") && line.ends_with(" ms\n"), "{line}");
    let stopped = Command::new("kill").args(["-TERM", &web.child.id().to_string()]).status().expect("ran");
    assert!(stopped.success());
    assert_eq!(web.child.wait().expect("ends").code(), Some(0));
}

#[test]
fn practice_in_a_terminal() {
    insta::assert_snapshot!(shown(&["practice", "--seed", "3", "-n", "4", "--answers=22,-,1"]));
    let cards = shown(&["practice", "--cards"]);
    assert!(cards.contains("\n27. ") && !cards.contains("28. "), "{cards}");
    assert!(refused(&["practice", "--topic", "rack"]).contains("racks"));
    assert!(refused(&["practice", "--answers", "many"]).contains("many"));
}

#[test]
fn bad_words_are_refused() {
    let (_, said, code) = common::rackmath(&["web", "--host", "nowhere"]);
    assert!(code == 2 && said.contains("nowhere"), "{said}");
    let said = refused(&["ask", "step", "no-such-file.json"]);
    assert!(said.contains("no-such-file.json"), "{said}");
    let (_, said, code) = common::rackmath(&["ask", "stpe"]);
    assert!(code == 2 && said.contains("step"), "{said}");
}
