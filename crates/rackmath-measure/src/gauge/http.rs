//! HTTP/1.1 as a client of load tests needs it: connections that are kept, heads by `httparse`, bodies as they come, a time limit on every wait.
//!
//! One request has one connection; none waits for another. A kept connection that the server has closed meanwhile is replaced once, and
//! counted. Ignores: redirects, HTTP/2, compression (asked for as `identity`), trailers.

use super::chunk::short;
use super::target::{Key, Target};
use rackmath_spec::SpecError;
use serde::Serialize;
use std::fmt;
use std::io::{Error as IoError, ErrorKind};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Heads longer than this are refused.
const MOST_HEAD: usize = 64 << 10;
/// Answers that are not streamed are read up to here.
const MOST_BODY: usize = 16 << 20;
/// Servers close what is idle, uvicorn and llama.cpp after 5 s: a connection is not used after this.
const FRESH: Duration = Duration::from_secs(4);

/// What can go wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No connection.
    Connect(String),
    Tls(String),
    /// Nothing came for too long.
    Timeout(Wait),
    Status(u16, String),
    /// A 200 that is no event stream.
    ContentType(String),
    /// The connection ended inside the answer.
    Cut,
    /// No HTTP, or no chunk of an answer.
    Malformed(String),
    /// An error inside the stream.
    Said(String),
    /// More tokens than asked for, without end.
    Endless,
    /// The run was stopped meanwhile: nobody's fault.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    Connect,
    /// Until the head of the answer.
    Head,
    /// Until the next piece of it.
    Stall,
    Total,
}

impl Fault {
    /// Under which it is counted.
    pub fn kind(&self) -> String {
        match self {
            Self::Connect(_) => "connection refused or lost".into(),
            Self::Tls(_) => "TLS failure".into(),
            Self::Timeout(Wait::Connect) => "timeout: no connection".into(),
            Self::Timeout(Wait::Head) => "timeout: no answer".into(),
            Self::Timeout(Wait::Stall) => "timeout: stream stalled".into(),
            Self::Timeout(Wait::Total) => "timeout: answer too long".into(),
            Self::Status(code, _) => format!("status {code}"),
            Self::ContentType(_) => "wrong content type".into(),
            Self::Cut => "stream cut".into(),
            Self::Malformed(_) => "malformed answer".into(),
            Self::Said(_) => "error inside the stream".into(),
            Self::Endless => "endless stream".into(),
            Self::Stopped => "stopped".into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind())?;
        match self {
            Self::Connect(s)
            | Self::Tls(s)
            | Self::ContentType(s)
            | Self::Malformed(s)
            | Self::Said(s)
            | Self::Status(_, s)
                if !s.is_empty() =>
            {
                write!(f, ": {s}")
            }
            _ => Ok(()),
        }
    }
}

/// How long anything may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    pub connect_s: f64,
    /// Until the head of an answer: queueing and the prompt are in it for servers that answer late.
    pub head_s: f64,
    /// Between two pieces of an answer.
    pub stall_s: f64,
    pub total_s: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect_s: 5.0, head_s: 120.0, stall_s: 60.0, total_s: 600.0 }
    }
}

/// Ends a run from outside: no new requests, those under way are given up.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Stop {
    pub fn now(&self) {
        self.0.send_replace(true);
    }

    pub fn stopped(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) fn listen(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}

pub(super) enum Stream {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl Stream {
    async fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(s) => s.read(buffer).await,
            #[cfg(feature = "tls")]
            Self::Tls(s) => s.read(buffer).await,
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(s) => s.write_all(bytes).await,
            #[cfg(feature = "tls")]
            Self::Tls(s) => {
                s.write_all(bytes).await?;
                s.flush().await
            }
        }
    }
}

pub(super) struct Connection {
    stream: Stream,
    /// Read and not yet used.
    pub left: Vec<u8>,
    /// Whether it has served a request before.
    pub used: bool,
    since: Instant,
}

/// The head of an answer.
pub(super) struct Head {
    pub status: u16,
    pub content_type: String,
    pub keep: bool,
    pub framing: Framing,
    pub server: String,
}

/// How a body ends.
#[derive(Debug, PartialEq)]
pub(super) enum Framing {
    Length(u64),
    Chunked(Piece),
    ToEnd,
}

#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// Digits of a size so far, and whether an extension is being skipped.
    Size(u64, u8, bool),
    Data(u64),
    /// The line end behind data.
    After,
    /// Lines behind the last piece; whether the line is empty so far.
    Trailer(bool),
    Done,
}

impl Framing {
    pub fn done(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Piece::Done))
    }

    /// Takes what belongs to the body from `input` into `out`; how much was used.
    pub fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        match self {
            Self::ToEnd => {
                out.extend_from_slice(input);
                Ok(input.len())
            }
            Self::Length(left) => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                out.extend_from_slice(&input[..n]);
                *left -= n as u64;
                Ok(n)
            }
            Self::Chunked(piece) => pieces(piece, input, out),
        }
    }
}

fn pieces(piece: &mut Piece, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let bad = || Fault::Malformed("chunked encoding".into());
    let mut at = 0;
    while at < input.len() {
        let byte = input[at];
        match piece {
            Piece::Done => break,
            Piece::Data(left) => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len() - at);
                out.extend_from_slice(&input[at..at + n]);
                at += n;
                *left -= n as u64;
                if *left == 0 {
                    *piece = Piece::After;
                }
                continue;
            }
            Piece::After => match byte {
                b'\r' => {}
                b'\n' => *piece = Piece::Size(0, 0, false),
                _ => return Err(bad()),
            },
            Piece::Size(size, digits, skip) => match byte {
                b'\n' if *digits > 0 => *piece = if *size == 0 { Piece::Trailer(true) } else { Piece::Data(*size) },
                b'\r' => {}
                _ if *skip => {}
                b';' | b' ' if *digits > 0 => *skip = true,
                _ => {
                    let digit = char::from(byte).to_digit(16).ok_or_else(bad)?;
                    if *digits >= 15 {
                        return Err(bad());
                    }
                    *size = *size << 4 | u64::from(digit);
                    *digits += 1;
                }
            },
            Piece::Trailer(empty) => match byte {
                b'\r' => {}
                b'\n' if *empty => *piece = Piece::Done,
                b'\n' => *empty = true,
                _ => *empty = false,
            },
        }
        at += 1;
    }
    Ok(at)
}

/// Makes and keeps connections to one server.
pub struct Client {
    pub target: Target,
    addresses: Vec<SocketAddr>,
    key: Option<Key>,
    pub limits: Limits,
    idle: Mutex<Vec<Connection>>,
    #[cfg(feature = "tls")]
    tls: Option<super::tls::Connector>,
}

impl Client {
    /// `ca`: a file of certificates in PEM to trust instead of the system's.
    pub fn new(
        target: Target,
        addresses: Vec<SocketAddr>,
        key: Option<Key>,
        limits: Limits,
        ca: Option<&str>,
    ) -> Result<Self, SpecError> {
        #[cfg(not(feature = "tls"))]
        if target.tls {
            let _ = ca;
            return Err(SpecError::said("this build has no TLS")
                .hint("expected an http address, or a build with the feature tls"));
        }
        Ok(Self {
            #[cfg(feature = "tls")]
            tls: if target.tls { Some(super::tls::connector(&target.host, ca)?) } else { None },
            target,
            addresses,
            key,
            limits,
            idle: Mutex::default(),
        })
    }

    /// The bytes of a request.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let key = self.key.as_ref().map_or_else(String::new, Key::header);
        let mut bytes = format!(
            "{method} {}{path} HTTP/1.1\r\nhost: {}\r\nuser-agent: rackmath/{}\r\naccept: */*\r\naccept-encoding: identity\r\n{key}",
            self.target.base,
            self.target.authority(),
            env!("CARGO_PKG_VERSION"),
        )
        .into_bytes();
        if method == "POST" {
            bytes.extend_from_slice(
                format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()).as_bytes(),
            );
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        bytes
    }

    pub(super) fn kept(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if connection.since.elapsed() < FRESH && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }

    pub(super) fn keep(&self, mut connection: Connection) {
        connection.used = true;
        connection.since = Instant::now();
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(connection);
    }

    /// Opens connections ahead of time; how many could be.
    pub(super) async fn ahead(&self, n: usize) -> usize {
        for opened in 0..n {
            match self.open().await {
                // A server may close one that waits, used or not.
                Ok(connection) => self.keep(connection),
                Err(_) => return opened,
            }
        }
        n
    }

    pub(super) async fn open(&self) -> Result<Connection, Fault> {
        let limit = Duration::from_secs_f64(self.limits.connect_s);
        let opened = tokio::time::timeout(limit, self.dialled()).await;
        let stream = opened.map_err(|_| Fault::Timeout(Wait::Connect))??;
        Ok(Connection { stream, left: Vec::new(), used: false, since: Instant::now() })
    }

    async fn dialled(&self) -> Result<Stream, Fault> {
        let mut last = None;
        for address in &self.addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return self.wrapped(stream).await;
                }
                Err(e) => last = Some(e),
            }
        }
        Err(Fault::Connect(last.map_or_else(|| "no address".into(), |e| said(&e))))
    }

    #[cfg(feature = "tls")]
    async fn wrapped(&self, stream: TcpStream) -> Result<Stream, Fault> {
        match &self.tls {
            Some(tls) => tls.wrap(stream).await.map(|s| Stream::Tls(Box::new(s))).map_err(|e| Fault::Tls(said(&e))),
            None => Ok(Stream::Plain(stream)),
        }
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "as with TLS")]
    async fn wrapped(&self, stream: TcpStream) -> Result<Stream, Fault> {
        Ok(Stream::Plain(stream))
    }

    /// A whole answer that is not streamed, whatever its status.
    pub async fn fetch(&self, method: &str, path: &str, body: &[u8]) -> Result<Whole, Fault> {
        let limit = Duration::from_secs_f64(self.limits.head_s.min(self.limits.total_s));
        tokio::time::timeout(limit, self.fetched(method, path, body)).await.map_err(|_| Fault::Timeout(Wait::Head))?
    }

    async fn fetched(&self, method: &str, path: &str, body: &[u8]) -> Result<Whole, Fault> {
        let mut connection = self.open().await?;
        connection.send(&self.request(method, path, body)).await?;
        let mut head = connection.head().await?;
        let (mut out, mut input) = (Vec::new(), std::mem::take(&mut connection.left));
        loop {
            head.framing.take(&input, &mut out)?;
            if head.framing.done() {
                break;
            }
            if out.len() > MOST_BODY {
                return Err(Fault::Malformed(format!("an answer of more than {} MiB", MOST_BODY >> 20)));
            }
            input.resize(64 << 10, 0);
            match connection.read(&mut input).await? {
                0 if head.framing == Framing::ToEnd => break,
                0 => return Err(Fault::Cut),
                n => input.truncate(n),
            }
        }
        Ok(Whole { status: head.status, server: head.server, body: out })
    }
}

/// An answer that is not streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    pub status: u16,
    /// What the `server` header says.
    pub server: String,
    pub body: Vec<u8>,
}

fn said(error: &IoError) -> String {
    short(&error.to_string())
}

impl Connection {
    /// Whether a kept connection has neither been closed nor said anything unasked.
    fn is_open(&self) -> bool {
        match &self.stream {
            Stream::Plain(socket) => socket.try_read(&mut [0; 1]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock),
            // Tickets of the session may lie in the socket, unasked.
            #[cfg(feature = "tls")]
            Stream::Tls(_) => true,
        }
    }

    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.write(bytes).await.map_err(|e| Fault::Connect(said(&e)))
    }

    /// 0 at the end of the stream.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        match self.stream.read(buffer).await {
            Ok(n) => Ok(n),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(0),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Err(Fault::Cut),
            Err(e) => Err(Fault::Connect(said(&e))),
        }
    }

    /// Reads up to the end of the head; what came behind it is left.
    pub async fn head(&mut self) -> Result<Head, Fault> {
        loop {
            if let Some((head, used)) = parsed(&self.left)? {
                self.left.drain(..used);
                if (100..200).contains(&head.status) {
                    continue;
                }
                return Ok(head);
            }
            if self.left.len() > MOST_HEAD {
                return Err(Fault::Malformed("a head without end".into()));
            }
            let mut buffer = [0; 8192];
            match self.read(&mut buffer).await? {
                0 => return Err(Fault::Cut),
                n => self.left.extend_from_slice(&buffer[..n]),
            }
        }
    }
}

fn parsed(bytes: &[u8]) -> Result<Option<(Head, usize)>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; 96];
    let mut response = httparse::Response::new(&mut headers);
    let used = match response.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(e) => return Err(Fault::Malformed(format!("no HTTP answer ({e})"))),
    };
    let header = |name: &str| {
        let found = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
        found.map_or_else(String::new, |h| String::from_utf8_lossy(h.value).trim().to_owned())
    };
    let status = response.code.unwrap_or(0);
    let connection = header("connection").to_ascii_lowercase();
    let framing = if header("transfer-encoding").to_ascii_lowercase().contains("chunked") {
        Framing::Chunked(Piece::Size(0, 0, false))
    } else if let Ok(n) = header("content-length").parse::<u64>() {
        Framing::Length(n)
    } else if matches!(status, 204 | 304) {
        Framing::Length(0)
    } else {
        Framing::ToEnd
    };
    let keep = response.version == Some(1) && !connection.contains("close") && framing != Framing::ToEnd;
    Ok(Some((Head { status, content_type: header("content-type"), keep, framing, server: header("server") }, used)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chunked_body_with_extensions_and_trailers() {
        let text = b"5;x=1\r\nhello\r\n1\r\n!\r\n0\r\nx: y\r\n\r\nrest";
        let (mut framing, mut out) = (Framing::Chunked(Piece::Size(0, 0, false)), Vec::new());
        let used = framing.take(text, &mut out).expect("good");
        assert_eq!((out.as_slice(), &text[used..], framing.done()), (&b"hello!"[..], &b"rest"[..], true));
        let mut framing = Framing::Chunked(Piece::Size(0, 0, false));
        assert!(framing.take(b"zz\r\n", &mut out).is_err());
    }

    proptest! {
        #[test]
        fn where_the_reads_end_changes_nothing(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..10), step in 1usize..40) {
            let mut text = Vec::new();
            for part in &parts {
                text.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                text.extend_from_slice(part);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
            let (mut framing, mut out) = (Framing::Chunked(Piece::Size(0, 0, false)), Vec::new());
            for piece in text.chunks(step) {
                prop_assert_eq!(framing.take(piece, &mut out).expect("good"), piece.len());
            }
            prop_assert!(framing.done());
            prop_assert_eq!(out, parts.concat());
        }

        #[test]
        fn no_head_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parsed(&bytes);
            let _ = Framing::Chunked(Piece::Size(0, 0, false)).take(&bytes, &mut Vec::new());
        }
    }
}
