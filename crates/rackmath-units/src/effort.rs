//! How long work is done: on so many threads, and only while somebody wants the result.
//!
//! There is no clock here: whoever knows that a result is no longer wanted cancels, and long loops ask from time to time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A token that ends work when it is cancelled; its clones are cancelled with it. Work tells it how far it is.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    left: AtomicU64,
    done: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// Not counting.
const OPEN: u64 = u64::MAX;

impl Cancel {
    pub fn never() -> Self {
        Self(None)
    }

    pub fn open() -> Self {
        Self::after(OPEN)
    }

    /// One that cancels itself after so many checks: what tests count with.
    pub fn after(checks: u64) -> Self {
        Self(Some(Arc::new(Shared { left: AtomicU64::new(checks), done: AtomicU64::new(0) })))
    }

    /// So much more is done.
    pub fn did(&self, more: u64) {
        if let Some(shared) = &self.0 {
            shared.done.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// How much is done, of whatever the work counts.
    pub fn done(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.done.load(Ordering::Relaxed))
    }

    pub fn cancel(&self) {
        if let Some(shared) = &self.0 {
            shared.left.store(0, Ordering::Relaxed);
        }
    }

    pub fn check(&self) -> Result<(), Cancelled> {
        let Some(Shared { left, .. }) = self.0.as_deref() else { return Ok(()) };
        match left.load(Ordering::Relaxed) {
            OPEN => Ok(()),
            0 => Err(Cancelled),
            // Somebody may have cancelled in between: nothing is left then.
            _ => left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .map_or(Err(Cancelled), |_| Ok(())),
        }
    }
}

/// What an asker grants: threads, of which no answer depends on the number, and patience.
#[derive(Clone, Debug)]
pub struct Effort {
    pub threads: usize,
    pub cancel: Cancel,
}

impl Effort {
    /// The same on one thread.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { threads: 1, cancel: self.cancel.clone() }
    }

    pub fn check(&self) -> Result<(), Cancelled> {
        self.cancel.check()
    }
}

impl Default for Effort {
    fn default() -> Self {
        1.into()
    }
}

/// So many threads, and no end to patience.
impl From<usize> for Effort {
    fn from(threads: usize) -> Self {
        Self { threads, cancel: Cancel::never() }
    }
}

impl From<&Self> for Effort {
    fn from(effort: &Self) -> Self {
        effort.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_token_stays_cancelled_and_so_do_its_clones() {
        let token = Cancel::open();
        let other = token.clone();
        assert!((0..1000).all(|_| token.check().is_ok()));
        other.cancel();
        assert_eq!((token.check(), other.check()), (Err(Cancelled), Err(Cancelled)));
        token.did(3);
        other.did(4);
        assert_eq!((token.done(), Cancel::never().done()), (7, 0));
        let counted = Cancel::after(2);
        assert_eq!([(); 4].map(|()| counted.check().is_ok()), [true, true, false, false]);
        Cancel::never().cancel();
        assert_eq!(Cancel::never().check(), Ok(()));
    }
}
