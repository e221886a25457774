//! A real server on a free port of the loopback, and a small client for it.
#![allow(dead_code)] // each test file uses its part

use rackmath_server::{Address, AnswerRules, Log, Options, serve};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

/// Starts a server that lives as long as the test.
pub fn start() -> SocketAddr {
    // Unoptimised and beside other tests, the slowest questions take their time.
    let answers = AnswerRules { patience: Duration::from_mins(3), ..AnswerRules::default() };
    start_with(Options { answers, ..Options::default() })
}

/// The same on other terms.
pub fn start_with(options: Options) -> SocketAddr {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let options = Options { port: 0, log: Log::None, ..options };
        serve(rackmath_catalog::embedded(), options, |address| tell.send(address).expect("heard")).expect("serves");
    });
    match told.recv_timeout(Duration::from_secs(10)).expect("starts") {
        Address::Tcp(address) => address,
        Address::Socket(path) => panic!("{} is no address", path.display()),
    }
}

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// One connection, kept open.
pub struct Client {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self::over(address, TcpStream::connect(address).expect("connects")).expect("set")
    }

    fn over(address: SocketAddr, stream: TcpStream) -> std::io::Result<Self> {
        stream.set_read_timeout(Some(Duration::from_mins(4)))?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream: BufReader::new(stream) })
    }

    pub fn post(&mut self, path: &str, body: &[u8]) -> Reply {
        self.send("POST", path, &[("content-type", "application/json")], body)
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.try_send(method, path, headers, body).unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    /// The same where the server may be gone.
    pub fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Reply> {
        let mut head = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(n, _)| *n == "host") {
            head.extend(["host: ", &self.address.to_string(), "\r\n"]);
        }
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let mut bytes = (head + "\r\n").into_bytes();
        bytes.extend_from_slice(body);
        // A server that refuses a large body early may close before all of it is written.
        let _ = self.stream.get_mut().write_all(&bytes);
        // A connection that was quiet for long may have been closed: as every client does, ask on a new one.
        let reply = if let Ok(reply) = self.read() {
            reply
        } else {
            *self = Self::over(self.address, TcpStream::connect(self.address)?)?;
            let _ = self.stream.get_mut().write_all(&bytes);
            self.read()?
        };
        if reply.status == 413 || reply.header("connection") == Some("close") {
            *self = Self::over(self.address, TcpStream::connect(self.address)?)?;
        }
        Ok(reply)
    }

    fn read(&mut self) -> std::io::Result<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no status in {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(n, _)| n == "content-length").and_then(|(_, v)| v.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        if headers.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked") {
            self.chunks(&mut body)?;
        }
        Ok(Reply { status, headers, body })
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> std::io::Result<()> {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let n = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            let mut chunk = vec![0; n + 2];
            self.stream.read_exact(&mut chunk)?;
            if n == 0 {
                return Ok(());
            }
            body.extend_from_slice(&chunk[..n]);
        }
    }
}
