//! The blackboard as files, and a host for them, as the tests and the bench of the page without a server use them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engine for browsers, where it was built.
pub fn engine() -> Option<PathBuf> {
    let named = std::env::var_os("RACKMATH_WASM").map(PathBuf::from);
    let target = Path::new(env!("CARGO_BIN_EXE_rackmath")).ancestors().nth(2).expect("target");
    let found = Some(named.unwrap_or_else(|| target.join("wasm/rackmath.wasm"))).filter(|p| p.is_file());
    if found.is_none() {
        eprintln!("skipped: no engine for browsers; crates/rackmath-wasm/build makes it");
    }
    found
}

/// A file host that knows types and nothing else.
pub fn host(folder: PathBuf) -> SocketAddr {
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

/// The folder that `rackmath web --static` writes.
pub fn written(engine: &Path, folder: &Path) -> PathBuf {
    let folder = folder.join("page");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackmath"));
    command.args(["web", "--static"]).arg(&folder).arg("--wasm").arg(engine);
    assert!(command.output().expect("ran").status.success());
    folder
}
