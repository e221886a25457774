//! Memory that is promised before it is taken.
//!
//! | store | default | of whom |
//! |-------|---------|---------|
//! | work | 20, 28 and 146 MiB | questions under way in each lane, each as much as its request lets it take ([`crate::cost`]) |
//! | bodies | 16 MiB | requests from their first byte until they are answered |
//! | replies | 24 MiB | answers on their way to readers, and what packs them |
//! | finished | 16 MiB | answers for which there is no room among those yet |
//!
//! Of bodies and answers an address holds at most as much as stays free, or one thing where there is nobody else: k that take all they can
//! leave one part of k + 1 free, so that who asks for little is let in at once whoever else does not read. Who finds no room waits, and is
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
    /// Whether each address leaves as much free as it holds.
    fair: bool,
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
    /// Of which anybody takes what is there.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, fair: false, held: Mutex::default(), freed: Notify::new() })
    }

    /// Of which each address leaves as much as it holds.
    pub fn fair(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, fair: true, held: Mutex::default(), freed: Notify::new() })
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that are promised now.
    pub fn taken(&self) -> usize {
        self.ledger().all
    }

    /// So many bytes at once, or nothing.
    pub fn now(self: &Arc<Self>, whose: IpAddr, bytes: usize) -> Option<Held> {
        // More than everything is everything: it waits until it is alone.
        let bytes = bytes.min(self.bytes);
        let mut ledger = self.ledger();
        let own = ledger.of.get(&whose).copied().unwrap_or(0);
        let left = self.bytes.checked_sub(ledger.all + bytes)?;
        if self.fair && ledger.all > 0 && own + bytes > left {
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
    async fn nobody_holds_more_than_is_left_and_there_is_always_some_left() {
        let room = Room::fair(300);
        let address = |n| IpAddr::from([10, 0, 0, n]);
        let first = room.take(address(1), 100, soon()).await.expect("room");
        assert!(room.take(address(1), 60, soon()).await.is_none(), "160 would leave 140");
        let second = room.take(address(1), 50, soon()).await.expect("150 leave 150");
        assert_eq!(room.taken(), 150);
        drop((first, second));
        assert_eq!(room.taken(), 0);
        // Four that take all they can, piece by piece, leave a fifth; whoever asks for little then is let in at once.
        let mut held = Vec::new();
        for _ in 0..100 {
            held.extend([1, 2, 3, 4].into_iter().filter_map(|n| room.now(address(n), 5)));
        }
        assert!((60..80).contains(&(300 - room.taken())), "{}", room.taken());
        held.push(room.now(address(9), 20).expect("room for who has nothing"));
        drop(held);
        // One thing larger than half is let in alone, one larger than everything as everything.
        let large = room.take(address(1), 1000, soon()).await.expect("room");
        assert_eq!(room.taken(), 300);
        drop(large);
        assert!(room.ledger().of.is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_let_in_when_there_is_room() {
        let room = Room::new(100);
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
