//! The questions over HTTP, and the blackboard.
//!
//! A thin face: a body goes to `rackmath::ask` and its bytes come back. What is here is what a server owes the world:
//! limits, headers, a log, a document of its interface, and an orderly end. No request reads or writes a file.

mod answers;
mod assets;
mod connections;
mod error;
mod guard;
mod limits;
mod openapi;
mod routes;

pub use answers::Answers;
pub use limits::MOST_BYTES;
pub use routes::{Served, router};

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub host: IpAddr,
    /// Port; 0 takes any that is free.
    pub port: u16,
    pub log: bool,
    /// Longest a caller waits for an answer.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { host: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 7225, log: true, patience: Duration::from_secs(30) }
    }
}

/// A server that cannot start or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("port {port} of {host} is taken")]
    Taken { host: IpAddr, port: u16, free: u16 },
    #[error("cannot listen on {address}: {problem}")]
    Address { address: SocketAddr, problem: io::Error },
    #[error(transparent)]
    System(#[from] io::Error),
}

impl ServeError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Taken { free, .. } => Some(format!("try --port {free}")),
            Self::Address { .. } => Some("the loopback is --host 127.0.0.1".into()),
            Self::System(_) => None,
        }
    }
}

/// Serves until interrupted. `ready` is told the address once connections are taken.
pub fn serve(catalog: rackmath::Catalog, options: Options, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(options.host, options.port).await?;
        let address = listener.local_addr()?;
        let served = Served {
            answers: Answers::new(catalog, options.patience),
            log: options.log,
            local: options.host.is_loopback(),
        };
        ready(address);
        // Longer than any answer may take.
        let door = connections::Door::new(listener, 2 * options.patience);
        axum::serve(door, router(served)).with_graceful_shutdown(interrupted()).await?;
        Ok(())
    })
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
