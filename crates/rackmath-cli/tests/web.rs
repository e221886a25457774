//! The server as a service manager meets it: it starts, it is told to stop, it stops.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

fn started(extra: &[&str]) -> (Child, String, BufReader<ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rackmath"))
        .args(["web", "--port", "0", "--log", "json"])
        .args(extra)
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address").to_owned();
    (child, address, said)
}

fn asked(address: &str, path: &str, body: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connects");
    let method = if body.is_empty() { "GET" } else { "POST" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("set");
    stream
}

fn heard(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
#[cfg(unix)]
fn a_server_told_to_stop_answers_who_is_inside_and_stops() {
    let (mut child, address, mut said) = started(&[]);
    let plan =
        r#"{"setting":{"model":"deepseek-v3","on":"512xh200"},"isl":4000,"osl":500,"rate_per_s":200,"tpot_ms":30}"#;
    let heavy: Vec<TcpStream> = (0..3).map(|_| asked(&address, "/api/plan", plan, "")).collect();
    let ready = heard(asked(&address, "/readyz", "", ""));
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    let light = asked(&address, "/api/step", "{}", "x-request-id: the-last\r\n");
    // Its line in the log says that it was heard; the signal must not come before.
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(told.success());
    let reply = heard(light);
    assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("x-request-id: the-last"), "{reply}");
    for stream in heavy {
        let reply = heard(stream);
        assert!(["", "HTTP/1.1 503", "HTTP/1.1 200"].contains(&reply.get(..12).unwrap_or("")), "{reply}");
    }
    let status = child.wait().expect("ends");
    assert!(status.success(), "{status}");
    // Generous: this is an unoptimised build beside other tests; `benches/load.rs` measures it.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let mut log = String::new();
    said.read_to_string(&mut log).expect("a log");
    let line = log.lines().find(|l| l.contains("the-last")).expect("logged");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!((line["status"].as_u64(), line["path"].as_str()), (Some(200), Some("/api/step")));
}

#[test]
fn a_private_server_wants_its_token_and_a_base_path_is_kept() {
    let (mut child, address, _said) = started(&["--token", "open-sesame", "--base", "/rackmath"]);
    let first = |text: String| text.get(..12).unwrap_or("").to_owned();
    let get = |path: &str, headers: &str| heard(asked(&address, path, "", headers));
    assert_eq!(first(get("/rackmath/healthz", "")), "HTTP/1.1 200");
    assert_eq!(first(get("/rackmath/api", "")), "HTTP/1.1 401");
    assert_eq!(first(get("/rackmath/metrics", "")), "HTTP/1.1 401");
    assert_eq!(first(get("/rackmath/api", "authorization: Bearer open-sesamf\r\n")), "HTTP/1.1 401");
    assert_eq!(first(get("/rackmath/api", "authorization: Bearer open-sesame\r\n")), "HTTP/1.1 200");
    assert_eq!(first(get("/rackmath/", "cookie: a=b; rackmath=open-sesame\r\n")), "HTTP/1.1 200");
    let entered = get("/rackmath/enter?token=open-sesame", "");
    assert!(
        entered.starts_with("HTTP/1.1 303")
            && entered.contains("set-cookie: rackmath=open-sesame; Path=/rackmath/; HttpOnly"),
        "{entered}"
    );
    assert_eq!(first(get("/rackmath/enter?token=open", "")), "HTTP/1.1 401");
    let page = get("/rackmath", "authorization: Bearer open-sesame\r\n");
    assert!(page.starts_with("HTTP/1.1 308") && page.contains("location: /rackmath/"), "{page}");
    assert_eq!(first(get("/api", "authorization: Bearer open-sesame\r\n")), "HTTP/1.1 404");
    child.kill().expect("killed");
    let _ = child.wait();
}

#[test]
#[cfg(unix)]
fn a_socket_file_serves_and_a_dead_one_is_taken_over() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("web-{}.sock", std::process::id()));
    for _ in 0..2 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rackmath"))
            .args(["web", "--quiet", "--socket"])
            .arg(&path)
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line).expect("a line");
        assert!(line.contains("listens at"), "{line}");
        let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("connects");
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("heard");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        // Killed, so that the file stays behind.
        child.kill().expect("killed");
        let _ = child.wait();
    }
    let _ = std::fs::remove_file(&path);
}

#[test]
fn bad_terms_are_refused() {
    for (args, says) in [
        (["--token", "short"], "token"),
        (["--base", "nowhere"], "base"),
        (["--patience", "soon"], "patience"),
        (["--log", "loud"], "log"),
    ] {
        let out = Command::new(env!("CARGO_BIN_EXE_rackmath")).arg("web").args(args).output().expect("runs");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.contains(says) && !said.contains("short"), "{said}");
    }
}
