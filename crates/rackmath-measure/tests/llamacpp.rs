//! The load generator against a real llama.cpp server with a tiny model of random weights, started here. Needs a Python with `xllamacpp`, `gguf`
//! and `numpy`, named by RACKMATH_LLAMA_PYTHON (`tests/llama_venv.sh` makes one); without it the test says so and is skipped.

use rackmath_measure::gauge::{
    Arrivals, Ceiling, Client, Ended, Endpoint, Lengths, Limits, Plan, Server, Sharing, Stop, Target, Targets,
};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Llama(Child, u16);

impl Drop for Llama {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn started() -> Option<Llama> {
    let Ok(python) = std::env::var("RACKMATH_LLAMA_PYTHON") else {
        eprintln!("skipped: RACKMATH_LLAMA_PYTHON names no Python with xllamacpp (tests/llama_venv.sh makes one)");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/llama_server.py");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("llama");
    std::fs::create_dir_all(&folder).expect("a folder");
    let child = Command::new(&python)
        .arg(script)
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap_or_else(|e| panic!("{python}: {e}"));
    let out = child.stdout.take().expect("piped");
    let (tell, port) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // The rest is read so that the server does not block on it.
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let Some(port) = line.strip_prefix("port ").and_then(|p| p.parse::<u16>().ok()) {
                let _ = tell.send(port);
            }
        }
    });
    let port = port.recv_timeout(Duration::from_mins(2)).expect("the server starts within two minutes");
    let llama = Llama(child, port);
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_mins(1), "no connection");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(llama)
}

fn found(llama: &Llama, endpoint: Option<Endpoint>) -> Server {
    let target = Target::read(&format!("http://127.0.0.1:{}", llama.1)).expect("good");
    let addresses = target.addresses().expect("good");
    let limits = Limits { total_s: 120.0, ..Limits::default() };
    Server::find(Client::new(target, addresses, None, limits, None).expect("good"), None, endpoint, 3)
        .expect("a server")
}

fn plan() -> Plan {
    Plan {
        arrivals: Arrivals::Open { rate: 8.0, cv: 1.0 },
        lengths: Lengths { input: 48, output: 12, spread: 0.5 },
        sharing: Sharing::default(),
        requests: 24,
        until_s: None,
        ceiling: Ceiling::default(),
        targets: Targets::default(),
        seed: 5,
        keep: rackmath_measure::gauge::KEPT_BYTES,
    }
}

#[test]
fn counts_equal_those_of_llama_cpp() {
    let Some(llama) = started() else { return };
    let server = found(&llama, None);
    let f = &server.found;
    assert_eq!(
        (f.engine.as_deref(), f.model.as_str(), f.vocabulary, f.slots),
        (Some("llamacpp"), "tiny-random", Some(320), Some(4))
    );
    assert_eq!((server.writing.endpoint, f.metrics, f.kv_tokens), (Endpoint::Tokens, true, Some(4096.0)));
    let mut closed = plan();
    closed.arrivals = Arrivals::Closed { concurrency: 4 };
    let mut turns = plan();
    (turns.requests, turns.sharing) = (6, Sharing { prefix: 32, groups: 2, turns: 3, think_s: 0.0 });
    for plan in [plan(), closed, turns] {
        assert_eq!(server.warm(&plan, 2, &Stop::default()), Ok(2));
        let m = server.measure(&plan, plan.schedule().expect("good"), &Stop::default()).expect("a run");
        let (c, own) = (&m.summary.counts, m.counters.expect("metrics"));
        let ended = (m.summary.ended, c.faults.len(), c.answered);
        assert_eq!(ended, (Ended::Complete, 0, c.asked), "{:?}", c.faults);
        // Exactly as many tokens as asked for went in, and as many came out as the server counts.
        assert_eq!((c.exact_inputs, c.short, c.by_server), (c.asked, 0, c.asked));
        assert_eq!(own.output_tokens, Some(c.output_tokens as f64));
        assert_eq!(own.input_tokens, Some(c.input_tokens as f64));
        assert_eq!(own.cached_tokens, Some(c.cached_tokens as f64));
    }
}
