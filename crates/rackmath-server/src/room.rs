//! Memory that is promised before it is taken.
//!
//! | store | default | of whom |
//! |-------|---------|---------|
//! | work | 20, 28 and 146 MiB | questions under way in each lane, each as much as its request lets it take ([`crate::cost`]) |
//! | bodies | 16 MiB | requests from their first byte until they are answered |
//! | replies | 24 MiB | answers on their way to readers, and what packs them |
//!
//! Of bodies and replies one address holds at most a third, or one thing where a single one is larger; who finds no room waits, and is
//! told so in the end. Kept answers (16 MiB), the catalogue and what connections buffer stand beside it, so that a process stays below 300 MB.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use tokio::time::timeout_at;

/// A store of so many bytes.
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    /// Most that one address holds of it.
    share: usize,
    held: Mutex<Ledger>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Ledger {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// Some of a store, until it is dropped.
#[derive(Debug)]
pub struct Held {
    room: Arc<Room>,
    whose: IpAddr,
    bytes: usize,
}

impl Room {
    pub fn new(bytes: usize, share: usize) -> Arc<Self> {
        Arc::new(Self { bytes, share, held: Mutex::default(), freed: Notify::new() })
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that are promised now.
    pub fn taken(&self) -> usize {
        self.ledger().all
    }

    /// So many bytes at once, or nothing.
    fn now(self: &Arc<Self>, whose: IpAddr, bytes: usize) -> Option<Held> {
        // More than everything is everything: it waits until it is alone.
        let bytes = bytes.min(self.bytes);
        let mut ledger = self.ledger();
        let own = ledger.of.get(&whose).copied().unwrap_or(0);
        if ledger.all + bytes > self.bytes || (own > 0 && own + bytes > self.share) {
            return None;
        }
        ledger.all += bytes;
        *ledger.of.entry(whose).or_default() += bytes;
        Some(Held { room: Arc::clone(self), whose, bytes })
    }

    /// So many bytes, as soon as there is room for them; nothing if there is none in time.
    pub async fn take(self: &Arc<Self>, whose: IpAddr, bytes: usize, until: Instant) -> Option<Held> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Listens from here on: what is freed after the look is not missed.
            freed.as_mut().enable();
            if let Some(held) = self.now(whose, bytes) {
                return Some(held);
            }
            timeout_at(until.into(), freed).await.ok()?;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut ledger = self.room.ledger();
        ledger.all -= self.bytes;
        if let Some(own) = ledger.of.get_mut(&self.whose) {
            *own -= self.bytes;
            if *own == 0 {
                ledger.of.remove(&self.whose);
            }
        }
        drop(ledger);
        self.room.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn nobody_takes_more_than_a_third_and_all_together_no_more_than_there_is() {
        let room = Room::new(300, 100);
        let [a, b, c, d]: [IpAddr; 4] = [1, 2, 3, 4].map(|n| IpAddr::from([10, 0, 0, n]));
        let first = room.take(a, 60, soon()).await.expect("room");
        assert!(room.take(a, 60, soon()).await.is_none(), "a third is 100");
        let second = room.take(a, 40, soon()).await.expect("room");
        let third = room.take(b, 100, soon()).await.expect("room of another");
        let fourth = room.take(c, 90, soon()).await.expect("room of a third");
        assert!(room.take(d, 20, soon()).await.is_none(), "10 are left");
        assert_eq!(room.taken(), 290);
        drop((first, second, third, fourth));
        assert_eq!(room.taken(), 0);
        // One thing larger than a third is let in alone, one larger than everything as everything.
        let large = room.take(a, 1000, soon()).await.expect("room");
        assert_eq!(room.taken(), 300);
        drop(large);
        assert!(room.ledger().of.is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_let_in_when_there_is_room() {
        let room = Room::new(100, 100);
        let a = IpAddr::from([10, 0, 0, 1]);
        let first = room.take(a, 90, soon()).await.expect("room");
        let later = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.take(IpAddr::from([10, 0, 0, 2]), 50, Instant::now() + Duration::from_secs(20)).await }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(later.await.expect("ran").is_some());
    }
}
