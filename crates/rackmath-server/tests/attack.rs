//! A server that is meant harm lives on, stays small, and answers who asks honestly.
//!
//! Everything happens on the loopback: attackers come from 127.0.0.2, honest callers from 127.0.0.1.

mod common;
#[path = "common/elsewhere.rs"]
mod elsewhere;

use common::{Client, start_with};
use rackmath_server::{DoorRules, Options};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A server whose patience with quiet callers is short, so that tests are.
fn start() -> SocketAddr {
    let second = Duration::from_secs(1);
    let door = DoorRules {
        connections: 96,
        of_address: 48,
        quiet_before: second,
        quiet_between: second,
        stalled: second,
        saying: second,
        ..DoorRules::default()
    };
    start_with(Options { door, ..Options::default() })
}

/// A connection from another address of the loopback.
fn from_elsewhere(to: SocketAddr) -> Option<TcpStream> {
    elsewhere::from_elsewhere(to, 2)
}

fn honest(address: SocketAddr) {
    let mut client = Client::new(address);
    for _ in 0..3 {
        let reply = client.post("/api/step", br#"{"setting": {"model": "llama-3.1-8b", "on": "h100"}}"#);
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

fn memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).map_or(0.0, |kb| kb / 1024.0)
}

/// What comes back until the other side closes, or for a while.
fn heard(stream: &mut TcpStream) -> String {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
    let mut all = Vec::new();
    let mut part = [0; 4096];
    while all.len() < 1 << 20 {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => all.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The first of what comes back.
fn heard_briefly(stream: &mut TcpStream) -> String {
    let _ = stream.set_read_timeout(Some(Duration::from_mins(1)));
    let mut part = [0; 1024];
    let n = stream.read(&mut part).unwrap_or(0);
    String::from_utf8_lossy(&part[..n]).into_owned()
}

fn say(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    let _ = stream.write_all(bytes);
    heard(&mut stream)
}

#[test]
fn sockets_that_say_little_or_nothing_lock_nobody_out() {
    let address = start();
    let mut held = Vec::new();
    // 600 that begin a request and never end it, of which 300 are held at a time.
    for i in 0..600 {
        if let Some(mut stream) = from_elsewhere(address) {
            let _ = stream.write_all(if i % 2 == 0 { b"POST /api/plan HTTP/1.1\r\nhost: 127" } else { b"" });
            held.push(stream);
        }
        if held.len() > 300 {
            held.remove(0);
        }
        if i % 100 == 0 {
            honest(address);
        }
    }
    honest(address);
    // Whoever is quiet for longer than a second is shown out.
    let mut one = from_elsewhere(address).expect("connects");
    let begun = Instant::now();
    let _ = one.write_all(b"GET /");
    assert_eq!(heard(&mut one), "");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn five_thousand_sockets_come_and_go() {
    let address = start();
    let mut opened = 0;
    for round in 0..25 {
        let held: Vec<_> = (0..200).filter_map(|_| from_elsewhere(address)).collect();
        opened += held.len();
        if round % 5 == 0 {
            honest(address);
        }
    }
    honest(address);
    assert!(opened > 4000, "{opened}");
    assert!(memory_mb() < 500.0, "{} MB", memory_mb());
}

/// The body that once made a table of 37 GB, a pipeline whose answer had 166 MB, and others that ask for more than there is: each is
/// refused at once, with what was asked, what is allowed and what would fit, or answered within bounds.
#[test]
fn questions_that_ask_for_everything_are_refused_in_numbers() {
    let address = start();
    let mut client = Client::new(address);
    let pairs = r#"{"setting":{"model":"deepseek-v3","on":"100000xh200"},"disaggregated":true,"engines":["vllm","sglang","trtllm"],"weights":["fp8","auto"],"kvs":["fp8","auto"],"chunks":[512,1024,2048,4096],"rate_per_s":100}"#;
    let mut limited = 0;
    for (path, body) in [
        ("/api/plan", pairs.to_owned()),
        ("/api/plan", pairs.replace("100000x", "1024x")),
        ("/api/simulate", r#"{"traffic":{"requests":1000000000000}}"#.into()),
        ("/api/simulate", r#"{"traffic":{"requests":20000000},"each":true}"#.into()),
        ("/api/pipeline", r#"{"schedule":"interleaved","stages":64,"micro_batches":100000,"virtual_stages":8}"#.into()),
        ("/api/pipeline", r#"{"schedule":"interleaved","stages":64,"micro_batches":256,"virtual_stages":8}"#.into()),
        ("/api/curve", r#"{"points":1000000000}"#.into()),
        ("/api/deduce", r#"{"log2_points":60}"#.into()),
        ("/api/station", r#"{"requests":100000000000}"#.into()),
        ("/api/rl", r#"{"prompts":10000000000}"#.into()),
        ("/api/reversible", r#"{"depth":100000,"steps":100000}"#.into()),
    ] {
        let reply = client.post(path, body.as_bytes());
        let said: serde_json::Value = serde_json::from_str(reply.text()).expect("JSON");
        assert!([422, 503].contains(&reply.status), "{path} {body}: {} {said}", reply.status);
        assert!(said["problem"].as_str().is_some_and(|p| p.bytes().any(|b| b.is_ascii_digit())), "{said}");
        assert!(said["hint"].as_str().is_some_and(|h| h.len() > 8), "{said}");
        limited += usize::from(said["limit"]["asked"].as_f64() > said["limit"]["allowed"].as_f64());
    }
    assert!(limited >= 8, "{limited} say it in numbers a program reads");
    honest(address);
    assert!(memory_mb() < 500.0, "{} MB", memory_mb());
}

#[test]
fn names_that_are_paths_lead_nowhere() {
    let address = start();
    let mut client = Client::new(address);
    for path in [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/vendor/../../Cargo.toml",
        "//etc/passwd",
        "/\\..\\..\\x",
    ] {
        let reply = client.get(path);
        assert!([400, 404].contains(&reply.status), "{path}: {} {}", reply.status, reply.text());
    }
    for name in ["../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "..\\..\\x", "\u{0}"] {
        let body = serde_json::json!({ "setting": { "model": name, "on": "h100" } }).to_string();
        let reply = client.post("/api/step", body.as_bytes());
        assert_eq!(reply.status, 422, "{name}: {}", reply.text());
        assert!(!reply.text().contains("root:"), "{}", reply.text());
    }
    // A file that a request brings is not written anywhere, whatever its name.
    let body = br#"{"files": {"../../x.toml": "x"}, "setting": {"model": "llama-3.1-8b", "on": "h100"}}"#;
    let reply = client.post("/api/step", body);
    assert!([200, 422].contains(&reply.status), "{}", reply.text());
}

/// Bodies of the largest size, many at once: they wait for room, and those that come with a pause are heard.
#[test]
fn many_large_bodies_at_once_take_their_turns() {
    let address = start();
    let body = format!("{{\"files\": {{\"x.json\": [{}0]}}}}", "0,".repeat(500_000));
    let head = format!(
        "POST /api/step HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let Some(mut stream) = from_elsewhere(address) else { return };
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(body.as_bytes());
                let reply = heard_briefly(&mut stream);
                assert!(
                    ["", "HTTP/1.1 422", "HTTP/1.1 503", "HTTP/1.1 429", "HTTP/1.1 408"]
                        .contains(&reply.get(..12).unwrap_or("")),
                    "{reply}"
                );
            });
        }
        honest(address);
    });
    honest(address);
    assert!(memory_mb() < 500.0, "{} MB", memory_mb());
}

#[test]
fn heavy_questions_leave_room_for_light_ones_and_end_when_nobody_waits() {
    let address = start();
    let plan =
        br#"{"setting":{"model":"deepseek-v3","on":"1024xh200"},"isl":4000,"osl":500,"rate_per_s":200,"tpot_ms":30}"#;
    let head = format!(
        "POST /api/plan HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        plan.len()
    );
    let mut heavy = Vec::new();
    for _ in 0..12 {
        let mut stream = from_elsewhere(address).expect("connects");
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(plan).expect("sent");
        heavy.push(stream);
    }
    honest(address);
    let metric = |name: &str| {
        let text = Client::new(address).get("/metrics").text().to_owned();
        let line = text.lines().find(|l| l.starts_with(name) && l.as_bytes().get(name.len()) == Some(&b' '));
        line.and_then(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
    };
    drop(heavy);
    let begun = Instant::now();
    while metric("rackmath_requests_in_flight") > 1.0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "work nobody waits for goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    honest(address);
    assert!(memory_mb() < 500.0, "{} MB", memory_mb());
}

#[test]
fn floods_and_forgeries_are_refused() {
    let address = start();
    let host = format!("host: {address}\r\n");
    let post = |headers: &str, body: &[u8]| {
        let mut bytes =
            format!("POST /api/step HTTP/1.1\r\n{host}content-type: application/json\r\n{headers}\r\n").into_bytes();
        bytes.extend_from_slice(body);
        say(address, &bytes)
    };
    let many = (0..20_000).map(|i| format!("x-{i}: y\r\n")).collect::<Vec<_>>().concat();
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    let bomb = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let mut endless = Vec::new();
    for _ in 0..40 {
        endless.extend_from_slice(b"10000\r\n");
        endless.extend(std::iter::repeat_n(b' ', 1 << 16));
        endless.extend_from_slice(b"\r\n");
    }
    for (what, reply, allowed) in [
        ("20,000 headers", post(&many, b""), &["", "HTTP/1.1 431", "HTTP/1.1 400"][..]),
        ("a header of a megabyte", post(&long, b""), &["", "HTTP/1.1 431", "HTTP/1.1 400"]),
        ("a body of a terabyte", post("content-length: 1000000000000\r\n", b"{}"), &["HTTP/1.1 413"]),
        ("an endless body", post("transfer-encoding: chunked\r\n", &endless), &["", "HTTP/1.1 413"]),
        ("two lengths", post("content-length: 2\r\ncontent-length: 3\r\n", b"{}"), &["HTTP/1.1 400"]),
        ("another coding", post("transfer-encoding: cow\r\n", b"{}"), &["HTTP/1.1 400"]),
        ("a negative length", post("content-length: -1\r\n", b"{}"), &["HTTP/1.1 400"]),
        ("a compressed body", post("content-encoding: gzip\r\ncontent-length: 10\r\n", &bomb), &["HTTP/1.1 415"]),
        ("a broken wait", post("prefer: wait=1e999\r\ncontent-length: 2\r\n", b"{}"), &["HTTP/1.1 400"]),
        ("no host", say(address, b"GET /api HTTP/1.1\r\n\r\n"), &["HTTP/1.1 421"]),
        ("another host", say(address, b"GET /api HTTP/1.1\r\nhost: evil.example\r\n\r\n"), &["HTTP/1.1 421"]),
        (
            "no HTTP",
            say(address, &[0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            &["", "HTTP/1.1 400"],
        ),
        (
            "HTTP/2, then noise",
            say(address, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            &[""],
        ),
    ] {
        // What is not HTTP/1 is answered, if at all, in frames.
        let first = if reply.starts_with("HTTP/1") { &reply[..12.min(reply.len())] } else { "" };
        assert!(allowed.contains(&first), "{what}: {}", &reply[..200.min(reply.len())]);
    }
    // Both lengths at once: one of them counts, and what is left over is no second request.
    let smuggled = post(
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        b"2\r\n{}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n",
    );
    assert!(smuggled.matches("HTTP/1.1").count() <= 1, "{smuggled}");
    for upgrade in [
        "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: x\r\nsec-websocket-version: 13\r\n",
        "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk\r\n",
    ] {
        let reply = say(address, format!("GET /api HTTP/1.1\r\n{host}{upgrade}\r\n").as_bytes());
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }
    honest(address);
}

#[test]
fn hostile_json_is_refused_in_words() {
    let address = start();
    let mut client = Client::new(address);
    let wide = (0..60_000).map(|i| format!("\"k{i}\":1,")).collect::<Vec<_>>().concat();
    let deep = "[".repeat(100_000);
    for (body, status) in [
        (format!("{{\"x\": {deep}").into_bytes(), 400),
        (format!("{{{wide}\"z\":1}}").into_bytes(), 422),
        (br#"{"batch": 1e999}"#.to_vec(), 400),
        (br#"{"batch": NaN}"#.to_vec(), 400),
        (br#"{"batch": -Infinity}"#.to_vec(), 400),
        (b"{\"batch\": \"\xff\xfe\"}".to_vec(), 400),
        (b"\xef\xbb\xbf{}".to_vec(), 400),
        (br#"{"batch": 1, "batch": 2}"#.to_vec(), 0),
        (b"[]".to_vec(), 400),
    ] {
        let reply = client.post("/api/step", &body);
        let shown = &reply.text()[..200.min(reply.text().len())];
        assert!(
            status == 0 || reply.status == status,
            "{}: {} {shown}",
            String::from_utf8_lossy(&body[..40.min(body.len())]),
            reply.status
        );
        if reply.status != 200 {
            let said: serde_json::Value = serde_json::from_str(reply.text()).expect("a refusal is JSON");
            assert!(said["problem"].as_str().is_some_and(|p| p.len() > 8), "{said}");
        }
    }
    honest(address);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let address = start();
    let mut bytes = Vec::new();
    for path in ["/healthz", "/readyz", "/nothing"].iter().cycle().take(60) {
        bytes.extend(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").into_bytes());
    }
    let replies = say(address, &bytes);
    let codes: Vec<&str> = replies.match_indices("HTTP/1.1 ").map(|(at, _)| &replies[at + 9..at + 12]).collect();
    let expected: Vec<&str> = ["200", "200", "404"].into_iter().cycle().take(60).collect();
    assert_eq!(codes, expected);
}

#[test]
fn slow_senders_and_slow_readers_are_shown_out() {
    let address = start();
    let mut slow = from_elsewhere(address).expect("connects");
    let head = format!(
        "POST /api/step HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).expect("sent");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut other = slow.try_clone().expect("cloned");
        let stop = &stop;
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) && other.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let reply = heard(&mut slow);
        stop.store(true, Ordering::Relaxed);
        assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
    });
    // Somebody who asks for everything and takes nothing.
    let mut deaf = from_elsewhere(address).expect("connects");
    let ask = format!("GET /openapi.json HTTP/1.1\r\nhost: {address}\r\n\r\n").repeat(200);
    let _ = deaf.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = deaf.write_all(ask.as_bytes());
    let begun = Instant::now();
    let connections = || {
        let text = Client::new(address).get("/metrics").text().to_owned();
        let line = text.lines().find(|l| l.starts_with("rackmath_connections ")).expect("counted").to_owned();
        line.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).expect("a number")
    };
    while connections() > 1.0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "a deaf caller is still served");
        std::thread::sleep(Duration::from_millis(100));
    }
}
