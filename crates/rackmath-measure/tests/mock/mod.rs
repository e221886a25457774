//! A server with known delays and faults on demand: a thread for each connection, answers as server-sent events, counters in vLLM's words.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Answer,
    Status(u16),
    /// Some chunks, then silence.
    Stall,
    /// Some chunks, then the connection ends.
    Cut,
    /// Half of a character in every chunk.
    HalfCharacter,
    Html,
    /// More tokens than anybody asked for.
    Endless,
    /// An error inside the stream.
    ErrorEvent,
    /// Bytes that are no HTTP.
    Garbage,
    /// A head and nothing behind it, ever.
    Silent,
    /// A stream that ends without a word.
    Blank,
}

#[derive(Clone)]
pub struct Manner {
    /// First chunk after this, and so much more for each prompt token.
    pub first: Duration,
    pub per_prompt_token: Duration,
    pub gap: Duration,
    /// By how much both delays of the n-th request are longer.
    pub vary: fn(u64) -> f64,
    /// Tokens in a chunk.
    pub per_chunk: u64,
    /// Whether each chunk brings the count.
    pub continuous: bool,
    /// Answers nobody before so many have asked.
    pub hold: u64,
    /// Closes a connection after so many requests.
    pub requests_per_connection: u64,
    pub act: fn(u64) -> Act,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(5),
            per_prompt_token: Duration::ZERO,
            gap: Duration::from_millis(1),
            vary: |_| 1.0,
            per_chunk: 1,
            continuous: true,
            hold: 0,
            requests_per_connection: u64::MAX,
            act: |_| Act::Answer,
        }
    }
}

#[derive(Default)]
pub struct Counters {
    pub requests: AtomicU64,
    pub finished: AtomicU64,
    pub input: AtomicU64,
    pub output: AtomicU64,
    pub truth: Mutex<Truth>,
}

/// What the server itself did to its answers, in seconds; kept from the first look at `/truth` on.
#[derive(Default)]
pub struct Truth {
    kept: bool,
    pub ttft: Vec<f32>,
    pub itl: Vec<f32>,
    pub e2e: Vec<f32>,
}

impl Truth {
    fn keep(&mut self, came: Instant, stamps: &[Instant]) {
        if !self.kept {
            return;
        }
        let since = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f32();
        self.ttft.extend(stamps.first().map(|t| since(came, *t)));
        self.e2e.extend(stamps.last().map(|t| since(came, *t)));
        self.itl.extend(stamps.windows(2).map(|w| since(w[0], w[1])));
    }

    /// All of it as JSON; from now on it begins anew.
    fn told(&mut self) -> String {
        let list = |values: &[f32]| {
            let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
            texts.join(",")
        };
        let text =
            format!("{{\"ttft\":[{}],\"itl\":[{}],\"e2e\":[{}]}}", list(&self.ttft), list(&self.itl), list(&self.e2e));
        *self = Self { kept: true, ..Self::default() };
        text
    }
}

pub struct Mock {
    pub url: String,
    pub counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    port: u16,
}

impl Mock {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (counters, stop) = (Arc::<Counters>::default(), Arc::<AtomicBool>::default());
        let open = Arc::<Mutex<Vec<TcpStream>>>::default();
        let (shared, ended, all) = (Arc::clone(&counters), Arc::clone(&stop), Arc::clone(&open));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let _ = stream.set_nodelay(true);
                if let Ok(copy) = stream.try_clone() {
                    all.lock().expect("lock").push(copy);
                }
                let (manner, counters, ended) = (manner.clone(), Arc::clone(&shared), Arc::clone(&ended));
                let serve = move || {
                    let end = stream.try_clone();
                    let _ = serve(stream, &manner, &counters, &ended);
                    // Another handle to it is kept for killing.
                    let _ = end.map(|end| end.shutdown(Shutdown::Both));
                };
                thread::Builder::new().stack_size(128 << 10).spawn(serve).expect("a thread");
            }
        });
        Self { url: format!("http://127.0.0.1:{port}"), counters, stop, open, port }
    }

    /// Ends every connection and takes no more.
    pub fn kill(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // The listener wakes up, sees that it is over, and is closed.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for stream in self.open.lock().expect("lock").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Request {
    path: String,
    body: String,
}

fn request(stream: &mut TcpStream, left: &mut Vec<u8>) -> Option<Request> {
    let mut buffer = [0; 8 << 10];
    loop {
        if left.first() == Some(&0x16) {
            // The hello of TLS: this server speaks none.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            return None;
        }
        if let Some(end) = left.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&left[..end]).into_owned();
            let length =
                head.lines().find_map(|l| l.strip_prefix("content-length: ")).and_then(|n| n.trim().parse().ok());
            let whole = end + 4 + length.unwrap_or(0);
            if left.len() >= whole {
                let path = head.split(' ').nth(1)?.to_owned();
                let body = String::from_utf8_lossy(&left[end + 4..whole]).into_owned();
                left.drain(..whole);
                return Some(Request { path, body });
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => left.extend_from_slice(&buffer[..n]),
        }
    }
}

fn plain(stream: &mut TcpStream, status: u16, kind: &str, body: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status} Because\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn piece(stream: &mut TcpStream, data: &[u8]) -> std::io::Result<()> {
    let mut bytes = format!("{:x}\r\n", data.len()).into_bytes();
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(b"\r\n");
    stream.write_all(&bytes)
}

fn metrics(c: &Counters) -> String {
    let get = |n: &AtomicU64| n.load(Ordering::SeqCst);
    format!(
        "vllm:num_requests_running 0\nvllm:prompt_tokens_total {}\nvllm:generation_tokens_total {}\nvllm:request_success_total {}\nvllm:cache_config_info{{block_size=\"16\",num_gpu_blocks=\"1000\"}} 1\n",
        get(&c.input),
        get(&c.output),
        get(&c.finished)
    )
}

fn serve(mut stream: TcpStream, manner: &Manner, counters: &Counters, over: &AtomicBool) -> std::io::Result<()> {
    let (mut left, mut served) = (Vec::new(), 0);
    while let Some(r) = request(&mut stream, &mut left) {
        let came = Instant::now();
        match r.path.as_str() {
            "/v1/models" => plain(
                &mut stream,
                200,
                "application/json",
                "{\"data\":[{\"id\":\"mock\",\"owned_by\":\"vllm\",\"max_model_len\":8192}]}",
            )?,
            "/version" => plain(&mut stream, 200, "application/json", "{\"version\":\"0.0.1\"}")?,
            "/truth" => {
                let told = counters.truth.lock().expect("whole").told();
                plain(&mut stream, 200, "application/json", &told)?;
            }
            "/metrics" => plain(&mut stream, 200, "text/plain", &metrics(counters))?,
            "/v1/completions" | "/v1/chat/completions" => {
                let n = counters.requests.fetch_add(1, Ordering::SeqCst);
                if !answer(&mut stream, &r.body, manner, counters, n, came, over)? {
                    return Ok(());
                }
                served += 1;
                if served >= manner.requests_per_connection {
                    return Ok(());
                }
            }
            _ => plain(&mut stream, 404, "text/plain", "no")?,
        }
    }
    Ok(())
}

fn until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// Whether the connection lives on.
fn answer(
    stream: &mut TcpStream,
    body: &str,
    manner: &Manner,
    counters: &Counters,
    n: u64,
    came: Instant,
    over: &AtomicBool,
) -> std::io::Result<bool> {
    let act = (manner.act)(n);
    let longer = |delay: Duration| delay.mul_f64((manner.vary)(n));
    let number = |key: &str| {
        let rest = &body[body.find(key)? + key.len()..];
        rest.split(|c: char| !c.is_ascii_digit()).find(|w| !w.is_empty())?.parse::<u64>().ok()
    };
    let wanted = number("max_tokens").unwrap_or(16);
    let prompt = match body.find("\"prompt\":[") {
        Some(at) => body[at..].matches(',').count() as u64 + 1,
        // A template of 10 tokens, and a word a token.
        None => 10 + body.rfind("content\":").map_or(0, |at| body[at..].split(' ').count() as u64 - 1),
    };
    if body.contains("\"stream\":false") {
        plain(
            stream,
            200,
            "application/json",
            &format!(
                "{{\"choices\":[{{\"text\":\"x\"}}],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":1}}}}"
            ),
        )?;
        return Ok(true);
    }
    match act {
        Act::Status(code) => {
            plain(stream, code, "application/json", "{\"error\":{\"message\":\"too busy\"}}")?;
            return Ok(true);
        }
        Act::Html => {
            plain(stream, 200, "text/html", "<html>a page</html>")?;
            return Ok(true);
        }
        Act::Garbage => {
            stream.write_all(b"\x16\x03\x01 this is not http\r\n\r\n")?;
            return Ok(false);
        }
        _ => {}
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let asleep = || {
        while !over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    };
    if act == Act::Silent {
        return asleep();
    }
    if act == Act::Blank {
        counters.finished.fetch_add(1, Ordering::SeqCst);
        piece(
            stream,
            b"data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        )?;
        stream.write_all(b"0\r\n\r\n")?;
        return Ok(true);
    }
    while counters.requests.load(Ordering::SeqCst) < manner.hold && !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(2));
    }
    counters.input.fetch_add(prompt, Ordering::SeqCst);
    let first = came + longer(manner.first) + manner.per_prompt_token * u32::try_from(prompt).unwrap_or(u32::MAX);
    let most = if act == Act::Endless { u64::MAX } else { wanted };
    let gap = longer(manner.gap);
    let (mut sent, mut chunks, mut stamps) = (0, 0, Vec::new());
    while sent < most && !over.load(Ordering::Relaxed) {
        until(first + gap * chunks);
        let k = manner.per_chunk.min(most - sent);
        sent += k;
        chunks += 1;
        if act == Act::ErrorEvent && chunks == 3 {
            piece(stream, b"data: {\"error\":{\"message\":\"engine died\"}}\n\n")?;
            return Ok(false);
        }
        if chunks == 3 && act == Act::Stall {
            return asleep();
        }
        if chunks == 3 && act == Act::Cut {
            return Ok(false);
        }
        let finish = if sent == most { "\"length\"" } else { "null" };
        let usage = if manner.continuous {
            format!(",\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{sent}}}")
        } else {
            String::new()
        };
        let mut data = b"data: {\"choices\":[{\"index\":0,\"text\":\"".to_vec();
        data.extend_from_slice(if act == Act::HalfCharacter { b"\xe2\x82" } else { b"word" });
        data.extend_from_slice(format!("\",\"finish_reason\":{finish}}}]{usage}}}\n\n").as_bytes());
        counters.output.fetch_add(k, Ordering::SeqCst);
        if act == Act::Answer {
            stamps.push(Instant::now());
        }
        piece(stream, &data)?;
    }
    counters.finished.fetch_add(1, Ordering::SeqCst);
    counters.truth.lock().expect("whole").keep(came, &stamps);
    piece(stream, format!("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{sent}}}}}\n\ndata: [DONE]\n\n").as_bytes())?;
    stream.write_all(b"0\r\n\r\n")?;
    Ok(true)
}
