//! Callers that come from another address than the tests' own.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection from another address of the loopback, such as 127.0.0.2.
pub fn from_elsewhere(to: SocketAddr, from: u8) -> Option<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().ok()?;
        socket.bind(SocketAddr::from(([127, 0, 0, from], 0))).ok()?;
        let stream = tokio::time::timeout(Duration::from_secs(5), socket.connect(to)).await.ok()?.ok()?;
        let stream = stream.into_std().ok()?;
        stream.set_nonblocking(false).ok()?;
        Some(stream)
    })
}
