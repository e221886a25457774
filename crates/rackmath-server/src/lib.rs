//! The questions over HTTP, and the blackboard.
//!
//! A thin face: a body goes to `rackmath::ask` and its bytes come back. What is here is what a server owes the world:
//! limits, headers, a log, a document of its interface, and an orderly end. No request reads or writes a file.

mod answers;
mod assets;
pub mod cost;
mod door;
mod error;
mod guard;
mod limits;
mod metrics;
mod openapi;
mod part;
mod room;
mod routes;
pub mod still;

pub use answers::{Answers, MOST_ANSWER, Rules as AnswerRules};
pub use door::Rules as DoorRules;
pub use guard::Log;
pub use limits::MOST_BYTES;
pub use routes::{Served, router};

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Whether a request is one that a server takes from others: within the limits of its fields, within so much work, and
/// within the memory of one question.
pub fn taken(
    catalog: &rackmath::Catalog,
    question: rackmath::ask::Question,
    request: &serde_json::Map<String, serde_json::Value>,
    most: Duration,
) -> Result<(), rackmath::Error> {
    limits::check(question, request).map_err(|refusal| refusal.error)?;
    let cost = cost::of(catalog, question, request);
    let most = most.as_secs_f64();
    let memory = answers::WORK[2] as f64;
    if cost.seconds > most {
        Err(cost.refusal(question, most).error)
    } else if cost.bytes > memory {
        Err(cost.too_large(question, memory).error)
    } else {
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub host: IpAddr,
    /// Port; 0 takes any that is free.
    pub port: u16,
    /// A socket file instead of an address.
    pub socket: Option<PathBuf>,
    pub log: Log,
    pub answers: AnswerRules,
    pub door: DoorRules,
    /// What a caller must know to be answered.
    pub token: Option<String>,
    /// Whether a proxy in front says who asks.
    pub proxied: bool,
    /// The path under which the proxy offers it: `/rackmath`.
    pub base: String,
    /// Longest that those inside are waited for at the end.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 7225,
            socket: None,
            log: Log::Lines,
            answers: AnswerRules::default(),
            door: DoorRules::default(),
            token: None,
            proxied: false,
            base: String::new(),
            grace: Duration::from_secs(2),
        }
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Socket(PathBuf),
}

/// A server that cannot start or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("port {port} of {host} is taken")]
    Taken { host: IpAddr, port: u16, free: u16 },
    #[error("cannot listen on {address}: {problem}")]
    Address { address: SocketAddr, problem: io::Error },
    #[error("cannot listen at {}: {problem}", path.display())]
    Socket { path: PathBuf, problem: io::Error },
    #[error(transparent)]
    System(#[from] io::Error),
}

impl ServeError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Taken { free, .. } => Some(format!("try --port {free}")),
            Self::Address { .. } => Some("the loopback is --host 127.0.0.1".into()),
            Self::Socket { .. } | Self::System(_) => None,
        }
    }
}

/// Serves until interrupted. `ready` is told the address once connections are taken.
pub fn serve(catalog: rackmath::Catalog, options: Options, ready: impl FnOnce(Address)) -> Result<(), ServeError> {
    // Lanes bound what is worked on at once; few threads that are used again keep memory together.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().max_blocking_threads(2 * cores + 4).enable_all().build()?;
    let served = runtime.block_on(async {
        let (listening, address) = if let Some(path) = &options.socket {
            socket(path)?
        } else {
            let listener = listen(options.host, options.port).await?;
            let address = Address::Tcp(listener.local_addr()?);
            (door::Listening::Tcp(listener), address)
        };
        let served = Arc::new(Served::new(catalog, &options));
        let (end, ending) = watch::channel(false);
        let answers = Arc::clone(&served);
        tokio::spawn(async move {
            interrupted().await;
            answers.answers.end();
            let _ = end.send(true);
        });
        ready(address);
        let metrics = Arc::clone(&served.answers.metrics);
        door::serve(listening, router(served), options.door, metrics, ending, options.grace).await;
        if let Some(path) = &options.socket {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    });
    // Work nobody waits for has been told to end; what does not listen is left behind.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served
}

/// A socket file; one that nobody listens at any more is taken over.
#[cfg(unix)]
fn socket(path: &std::path::Path) -> Result<(door::Listening, Address), ServeError> {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    let old = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    if old && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let refused = |problem| ServeError::Socket { path: path.to_owned(), problem };
    let listener = tokio::net::UnixListener::bind(path).map_err(refused)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok((door::Listening::Unix(listener), Address::Socket(path.to_owned())))
}

#[cfg(not(unix))]
fn socket(path: &std::path::Path) -> Result<(door::Listening, Address), ServeError> {
    let problem = io::Error::from(io::ErrorKind::Unsupported);
    Err(ServeError::Socket { path: path.to_owned(), problem })
}

async fn listen(host: IpAddr, port: u16) -> Result<TcpListener, ServeError> {
    match TcpListener::bind((host, port)).await {
        Ok(listener) => Ok(listener),
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
            for free in port.saturating_add(1)..=port.saturating_add(200) {
                if TcpListener::bind((host, free)).await.is_ok() {
                    return Err(ServeError::Taken { host, port, free });
                }
            }
            Err(ServeError::Taken { host, port, free: 0 })
        }
        Err(problem) => Err(ServeError::Address { address: SocketAddr::new(host, port), problem }),
    }
}

/// Ctrl-C, or the signal service managers send.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
