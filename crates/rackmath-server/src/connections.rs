//! Connections, a bounded number of them, and none that says nothing for long.

use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Most connections at once; who comes after waits to be let in.
const MOST: usize = 512;

/// A listener that lets so many in at once.
pub struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    idle: Duration,
}

impl Door {
    /// A door on a listener; a connection without a word for `idle` is closed.
    pub fn new(listener: TcpListener, idle: Duration) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(MOST)), idle }
    }
}

impl Listener for Door {
    type Io = Guest;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guest, SocketAddr) {
        loop {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                std::future::pending::<()>().await;
                continue;
            };
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Small answers leave at once; without it they may wait for the other side's acknowledgement.
                    let _ = stream.set_nodelay(true);
                    let guest = Guest { stream, idle: self.idle, until: Box::pin(sleep(self.idle)), _place: place };
                    return (guest, address);
                }
                // Out of file handles, say: those inside leave in time.
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub struct Guest {
    stream: TcpStream,
    idle: Duration,
    until: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Guest {
    /// What was read or written puts off the end.
    fn heard<T>(&mut self, done: Poll<T>) -> Poll<T> {
        if done.is_ready() {
            self.until.as_mut().reset(Instant::now() + self.idle);
        }
        done
    }
}

impl AsyncRead for Guest {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        match self.heard(read) {
            Poll::Pending => self.until.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
            read @ Poll::Ready(_) => read,
        }
    }
}

impl AsyncWrite for Guest {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.heard(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.heard(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn a_silent_guest_is_shown_out_and_a_talking_one_stays() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut door = Door::new(listener, Duration::from_millis(400));
        let mut client = TcpStream::connect(address).await.expect("connects");
        let (mut guest, _) = door.accept().await;
        let mut word = [0; 1];
        for _ in 0..5 {
            sleep(Duration::from_millis(150)).await;
            client.write_all(b"x").await.expect("sent");
            guest.read_exact(&mut word).await.expect("heard");
        }
        let silent = guest.read_exact(&mut word).await.expect_err("shown out");
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
    }
}
