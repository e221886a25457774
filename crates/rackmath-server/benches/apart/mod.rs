//! A server in a process of its own, so that its memory and its end can be seen from outside.
//!
//! It is the program that `RACKMATH_BIN` names, as `rackmath web` starts it; without that, the bench itself once more. A bench that
//! was built can be copied elsewhere and run there: it looks for nothing of where it was built.
#![allow(dead_code)] // each bench uses its part

pub mod asks;

use rackmath_server::{Address, Log, Options, serve};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Serves, if this process was started for that: never returns then.
pub fn serves() {
    if std::env::args().nth(1).as_deref() != Some("serve") {
        return;
    }
    let options = Options { port: 0, log: Log::None, ..Options::default() };
    let said = |address| {
        if let Address::Tcp(address) = address {
            println!("{address}");
        }
    };
    serve(rackmath_catalog::embedded(), options, said).expect("serves");
    std::process::exit(0);
}

/// The first line; what is said later is read and dropped, so that who says it is not held up.
fn first_line(mut said: impl BufRead + Send + 'static) -> String {
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    line
}

/// A server as `rackmath web` starts it, until it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start() -> Self {
        let (mut child, line) = if let Some(program) = std::env::var_os("RACKMATH_BIN") {
            let mut web = Command::new(&program);
            web.args(["web", "--port", "0", "--log", "none"]).stderr(Stdio::piped());
            let mut child = web.spawn().unwrap_or_else(|e| panic!("{}: {e}", program.display()));
            let said = BufReader::new(child.stderr.take().expect("piped"));
            (child, first_line(said))
        } else {
            let program = std::env::current_exe().expect("this program");
            let mut child = Command::new(program).arg("serve").stdout(Stdio::piped()).spawn().expect("starts");
            let said = BufReader::new(child.stdout.take().expect("piped"));
            (child, first_line(said))
        };
        let address = line
            .split_whitespace()
            .find_map(|word| word.trim_start_matches("http://").trim_end_matches('/').parse::<SocketAddr>().ok());
        let Some(address) = address else {
            let _ = child.kill();
            panic!("no address in {line:?}");
        };
        Self { child, address }
    }

    fn status(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|l| l.starts_with(field)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1000.0 * 1.024)
    }

    /// Memory now, and the most until now, in MB.
    pub fn memory(&self) -> (f64, f64) {
        (self.status("VmRSS"), self.status("VmHWM"))
    }

    pub fn alive(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// Asks it to end; how long that takes.
    pub fn term(&mut self) -> Duration {
        let begun = Instant::now();
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill runs");
        assert!(told.success());
        let _ = self.child.wait();
        begun.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Times in seconds, as they came.
#[derive(Default)]
pub struct Times(pub Vec<f64>);

impl Times {
    /// p50, p99 and the most, in milliseconds.
    pub fn shown(&mut self) -> String {
        if self.0.is_empty() {
            return "none".into();
        }
        self.0.sort_by(f64::total_cmp);
        let at = |p: f64| 1e3 * self.0[((self.0.len() - 1) as f64 * p) as usize];
        format!("{} requests, p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms", self.0.len(), at(0.5), at(0.99), at(1.0))
    }
}
