//! Connections: how many there may be, of whom, and how long each may say nothing.
//!
//! | rule | default | why |
//! |------|---------|-----|
//! | connections at once | 512 | a file handle each; beyond it the one that has been quiet longest makes room |
//! | of one address | 128 | nobody fills the house alone |
//! | quiet before a request | 10 s | a caller who sends a header a byte at a time is as quiet as one who sends none |
//! | quiet between requests | 60 s | a page asks again within a minute, or connects anew |
//! | a body to arrive | 10 s | as for the header |
//! | requests of one connection | 10,000 | then it is closed with its last answer |
//! | no byte of an answer taken | 10 s | slow readers hold memory |
//!
//! A connection whose request is worked on is never closed to make room; of those that are quiet or still speaking one of the address with
//! most connections goes first, so that whoever has few keeps them.

use crate::metrics::Metrics;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Sleep, sleep};
use tower::ServiceExt as _;

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub connections: usize,
    pub of_address: usize,
    pub quiet_before: Duration,
    pub quiet_between: Duration,
    pub requests: u64,
    pub stalled: Duration,
    /// Longest a caller takes to say what it wants.
    pub saying: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            connections: 512,
            of_address: 128,
            quiet_before: Duration::from_secs(10),
            quiet_between: Duration::from_mins(1),
            requests: 10_000,
            stalled: Duration::from_secs(10),
            saying: Duration::from_secs(10),
        }
    }
}

/// Where connections come from.
pub enum Listening {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
}

trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

impl Listening {
    async fn accept(&self) -> io::Result<(Box<dyn Wire>, IpAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Small answers leave at once; without it they may wait for the other side's acknowledgement.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), address.ip().to_canonical()))
            }
            // Who may write to the file may ask; all of them are one caller.
            #[cfg(unix)]
            Self::Unix(listener) => Ok((Box::new(listener.accept().await?.0), Ipv4Addr::LOCALHOST.into())),
        }
    }
}

/// Who is at the other end, as requests carry it.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// One connection, as the hall knows it.
#[derive(Debug)]
struct Seat {
    address: IpAddr,
    /// Requests under way, and those of them that are heard to their end.
    busy: AtomicUsize,
    heard_whole: AtomicUsize,
    served: AtomicU64,
    /// Milliseconds from the opening of the hall to the last word of a request.
    heard: AtomicU64,
    out: Notify,
}

struct Hall {
    opened: Instant,
    rules: Rules,
    seats: Mutex<HashMap<u64, Arc<Seat>>>,
    next: AtomicU64,
}

impl Hall {
    fn now(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    fn seats(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Seat>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat, if there is one or another guest makes room.
    fn enter(&self, address: IpAddr) -> Option<(u64, Arc<Seat>)> {
        let mut seats = self.seats();
        let of = seats.values().fold(HashMap::<IpAddr, usize>::new(), |mut of, seat| {
            *of.entry(seat.address).or_default() += 1;
            of
        });
        let own = of.get(&address).copied().unwrap_or(0);
        let crowded = own >= self.rules.of_address;
        if crowded || seats.len() >= self.rules.connections {
            // Whoever has most gives way, even while speaking. Where nobody has more than the newcomer, it gives way to itself with one that
            // is quiet: who has few is never sent away for one who has many.
            let most = of.iter().map(|(whose, n)| (*n, *whose)).max().filter(|(n, _)| !crowded && *n > own);
            let whose = most.map_or(address, |(_, whose)| whose);
            let place = |s: &Seat| (s.busy.load(Ordering::Relaxed) > 0, s.heard.load(Ordering::Relaxed));
            let free = |s: &Seat| {
                let speaks = if crowded || most.is_some() { &s.heard_whole } else { &s.busy };
                s.address == whose && speaks.load(Ordering::Relaxed) == 0
            };
            let quiet = seats.iter().filter(|(_, s)| free(s)).min_by_key(|(id, s)| (place(s), **id));
            let quiet = quiet.map(|(id, _)| *id)?;
            if let Some(seat) = seats.remove(&quiet) {
                seat.out.notify_one();
            }
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let seat = Seat {
            address,
            busy: AtomicUsize::new(0),
            heard_whole: AtomicUsize::new(0),
            served: AtomicU64::new(0),
            heard: AtomicU64::new(self.now()),
            out: Notify::new(),
        };
        let seat = Arc::new(seat);
        seats.insert(id, Arc::clone(&seat));
        Some((id, seat))
    }

    /// How long the guest of a seat may still be quiet; nothing while it is served.
    fn patience(&self, seat: &Seat) -> Option<Duration> {
        if seat.busy.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let new = seat.served.load(Ordering::Relaxed) == 0;
        let most = if new { self.rules.quiet_before } else { self.rules.quiet_between };
        let quiet = Duration::from_millis(self.now().saturating_sub(seat.heard.load(Ordering::Relaxed)));
        Some(most.saturating_sub(quiet))
    }
}

/// Leaves the hall however the connection ends.
struct Inside {
    hall: Arc<Hall>,
    id: u64,
    metrics: Arc<Metrics>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.hall.seats().remove(&self.id);
        self.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request under way.
struct Busy(Arc<Speech>, Arc<Hall>);

/// What a guest says; whoever has heard all of it says so.
#[derive(Debug)]
pub struct Speech {
    seat: Arc<Seat>,
    whole: AtomicBool,
}

impl Speech {
    /// All of the request is there.
    pub fn is_whole(&self) {
        if !self.whole.swap(true, Ordering::Relaxed) {
            self.seat.heard_whole.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Its answer waits until others of the guest are read: the seat may be given to somebody else.
    pub fn waits(&self) {
        if self.whole.swap(false, Ordering::Relaxed) {
            self.seat.heard_whole.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Busy {
    fn new(seat: &Arc<Seat>, hall: &Arc<Hall>) -> Self {
        seat.busy.fetch_add(1, Ordering::Relaxed);
        seat.served.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Speech { seat: Arc::clone(seat), whole: AtomicBool::new(false) }), Arc::clone(hall))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Self(speech, hall) = self;
        speech.seat.heard.store(hall.now(), Ordering::Relaxed);
        speech.seat.busy.fetch_sub(1, Ordering::Relaxed);
        if speech.whole.swap(true, Ordering::Relaxed) {
            speech.seat.heard_whole.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Lets callers in until told to end; then waits `grace` for those inside.
pub async fn serve(
    listening: Listening,
    router: Router,
    rules: Rules,
    metrics: Arc<Metrics>,
    mut ending: watch::Receiver<bool>,
    grace: Duration,
) {
    let opened = Instant::now();
    let hall = Arc::new(Hall { opened, rules, seats: Mutex::default(), next: AtomicU64::new(0) });
    let mut guests = tokio::task::JoinSet::new();
    loop {
        while guests.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listening.accept() => accepted,
            _ = ending.wait_for(|end| *end) => break,
        };
        // Out of file handles, say: those inside leave in time.
        let Ok((wire, address)) = accepted else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some((id, seat)) = hall.enter(address) else {
            metrics.turned_away.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        metrics.connections.fetch_add(1, Ordering::Relaxed);
        let inside = Inside { hall: Arc::clone(&hall), id, metrics: Arc::clone(&metrics) };
        guests.spawn(converse(wire, seat, inside, router.clone(), ending.clone()));
    }
    drop(listening);
    let _ = tokio::time::timeout(grace, async { while guests.join_next().await.is_some() {} }).await;
}

async fn converse(
    wire: Box<dyn Wire>,
    seat: Arc<Seat>,
    inside: Inside,
    router: Router,
    mut ending: watch::Receiver<bool>,
) {
    let hall = &inside.hall;
    let service = service_fn(|request: Request<Incoming>| {
        let (busy, router) = (Busy::new(&seat, hall), router.clone());
        let last = seat.served.load(Ordering::Relaxed) >= hall.rules.requests;
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(busy.0.seat.address));
            request.extensions_mut().insert(Arc::clone(&busy.0));
            let mut response: Response = router.oneshot(request).await?;
            if last {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            drop(busy);
            Ok::<_, Infallible>(response)
        }
    });
    let guest = Guest { wire, stalled: hall.rules.stalled, until: None };
    let mut how = auto::Builder::new(TokioExecutor::new());
    how.http1().timer(TokioTimer::new()).header_read_timeout(hall.rules.quiet_between).max_buf_size(64 << 10);
    how.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(16)
        .max_header_list_size(16 << 10)
        .initial_stream_window_size(32 << 10)
        .initial_connection_window_size(64 << 10)
        .max_send_buf_size(64 << 10);
    let connection = how.serve_connection(TokioIo::new(guest), service);
    tokio::pin!(connection);
    let mut leaving = false;
    loop {
        // While a request is under way there is nothing to wait for; its own limits end it.
        let patience = hall.patience(&seat).unwrap_or(Duration::from_secs(1));
        tokio::select! {
            _ = connection.as_mut() => return,
            () = seat.out.notified() => return,
            () = sleep(patience) => {
                if hall.patience(&seat).is_some_and(|left| left.is_zero()) {
                    return;
                }
            }
            _ = ending.wait_for(|end| *end), if !leaving => {
                leaving = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// A wire whose other side must take what it is sent.
struct Guest {
    wire: Box<dyn Wire>,
    stalled: Duration,
    until: Option<Pin<Box<Sleep>>>,
}

impl Guest {
    /// What could be written puts off the end; what cannot be for long ends it.
    fn progress<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.until = None;
            return done;
        }
        let stalled = self.stalled;
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(stalled)));
        until.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Guest {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(cx, buf)
    }
}

impl AsyncWrite for Guest {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write(cx, buf);
        self.progress(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.wire).poll_flush(cx);
        self.progress(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write_vectored(cx, bufs);
        self.progress(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hall(connections: usize, of_address: usize) -> Hall {
        let rules = Rules { connections, of_address, ..Rules::default() };
        Hall { opened: Instant::now(), rules, seats: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// A request that is heard to its end.
    fn heard(seat: &Arc<Seat>, hall: &Arc<Hall>) -> Busy {
        let busy = Busy::new(seat, hall);
        busy.0.is_whole();
        busy
    }

    #[test]
    fn who_has_most_gives_way_even_while_speaking() {
        let hall = Arc::new(hall(6, 4));
        let [a, b, c]: [IpAddr; 3] = [2, 3, 4].map(|n| IpAddr::from([127, 0, 0, n]));
        let seats: Vec<_> = [a, a, a, a, b, b].map(|who| hall.enter(who).expect("room")).into();
        // All of them have begun to speak, two of the many are heard to their end.
        let speaking: Vec<Busy> = seats.iter().map(|(_, seat)| Busy::new(seat, &hall)).collect();
        speaking[0].0.is_whole();
        speaking[1].0.is_whole();
        let late = [0, 1].map(|_| hall.enter(c).expect("two that still speak make room"));
        let _speaking_too = late.each_ref().map(|(_, seat)| Busy::new(seat, &hall));
        assert!(!hall.seats().contains_key(&seats[2].0) && !hall.seats().contains_key(&seats[3].0));
        assert!(hall.enter(c).is_none(), "nobody has more than a third of them would be");
        drop(speaking);
        assert_eq!(seats[0].1.heard_whole.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_does_not_read_gives_way_to_a_newcomer() {
        let hall = Arc::new(hall(4, 2));
        let [a, b, c]: [IpAddr; 3] = [2, 3, 4].map(|n| IpAddr::from([127, 0, 0, n]));
        let seats: Vec<_> = [a, a, b, b].map(|who| hall.enter(who).expect("room")).into();
        let served: Vec<Busy> = seats.iter().map(|(_, seat)| heard(seat, &hall)).collect();
        assert!(hall.enter(c).is_none(), "all are served");
        served[2].0.waits();
        served[2].0.waits();
        assert!(hall.enter(c).is_some() && !hall.seats().contains_key(&seats[2].0));
        drop(served);
        assert!(seats.iter().all(|(_, seat)| seat.heard_whole.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn who_has_few_is_not_sent_away_for_those_who_have_many() {
        // Two that have as many as each other and speak without end; one that asks now and then and is quiet between.
        let hall = Arc::new(hall(7, 4));
        let [a, b, c]: [IpAddr; 3] = [2, 3, 4].map(|n| IpAddr::from([127, 0, 0, n]));
        let honest = hall.enter(c).expect("room");
        let many: Vec<_> = [a, a, a, b, b, b].map(|who| hall.enter(who).expect("room")).into();
        let _speaking: Vec<Busy> = many.iter().map(|(_, seat)| Busy::new(seat, &hall)).collect();
        for who in [a, b, a, b, a] {
            let entered = hall.enter(who);
            assert!(hall.seats().contains_key(&honest.0), "{entered:?}");
        }
    }

    #[test]
    fn who_is_quiet_longest_makes_room_and_who_is_served_stays() {
        let hall = Arc::new(hall(3, 2));
        let [a, b]: [IpAddr; 2] = ["127.0.0.1", "127.0.0.2"].map(|ip| ip.parse().expect("an address"));
        let (first, seat) = hall.enter(a).expect("room");
        let (second, _) = hall.enter(a).expect("room");
        let busy = heard(&seat, &hall);
        // A third of the same address takes the place of the one that is not served.
        let (third, third_seat) = hall.enter(a).expect("room made");
        let ids = || {
            let mut ids: Vec<u64> = hall.seats().keys().copied().collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(), [first, third]);
        assert!(second != third);
        // All of that address are served: it has to wait, another has not.
        let more = heard(&third_seat, &hall);
        assert!(hall.enter(a).is_none());
        let (fourth, fourth_seat) = hall.enter(b).expect("room");
        let last = heard(&fourth_seat, &hall);
        assert!(hall.enter(b).is_none(), "all are served");
        drop((busy, more, last));
        assert!(hall.enter(b).is_some());
        assert_eq!(ids().len(), 3);
        assert!(ids().contains(&fourth), "the first in goes first: {:?}", ids());
    }

    #[test]
    fn quiet_is_counted_from_the_last_answer() {
        let hall = Arc::new(hall(3, 2));
        let (_, seat) = hall.enter(Ipv4Addr::LOCALHOST.into()).expect("room");
        assert!(hall.patience(&seat).expect("not served") <= hall.rules.quiet_before);
        let busy = Busy::new(&seat, &hall);
        assert_eq!(hall.patience(&seat), None);
        drop(busy);
        assert!(hall.patience(&seat).expect("served") > hall.rules.quiet_before);
    }
}
