//! Answers, a bounded number at a time, and the latest of them kept.
//!
//! Work runs beside the connections, on as many threads as there are cores; a caller beyond the queue is told to come
//! back. Requests are pure, so an answer can be given again: the newest are kept up to a fixed number of bytes.

use crate::error::Refusal;
use crate::limits;
use axum::body::Bytes;
use axum::http::StatusCode;
use rackmath::Catalog;
use rackmath::ask::{self, Question, Reply, Terms};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Most requests that wait for a thread.
const QUEUE: usize = 256;

const KEPT: usize = 32 << 20;

pub struct Answers {
    catalog: Arc<Catalog>,
    threads: Arc<Semaphore>,
    waiting: AtomicUsize,
    patience: Duration,
    kept: Mutex<Kept>,
    /// Requests being answered; who asks the same waits for that answer.
    asked: Mutex<HashMap<Key, Arc<Gate>>>,
}

type Gate = tokio::sync::Mutex<()>;

type Key = (Question, String);

#[derive(Default)]
struct Kept {
    answers: HashMap<Key, Bytes>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Kept {
    fn keep(&mut self, key: Key, answer: Bytes) {
        let size = key.1.len() + answer.len();
        if size > KEPT / 8 || self.answers.insert(key.clone(), answer).is_some() {
            return;
        }
        self.order.push_back(key);
        self.bytes += size;
        while self.bytes > KEPT {
            let Some(oldest) = self.order.pop_front() else { return };
            let freed = self.answers.remove(&oldest).map_or(0, |a| a.len());
            self.bytes -= freed + oldest.1.len();
        }
    }
}

/// Leaves the queue however the wait ends.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Answers {
    /// Answers from a catalogue; a caller waits no longer than `patience`.
    pub fn new(catalog: Catalog, patience: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            catalog: Arc::new(catalog),
            threads: Arc::new(Semaphore::new(cores)),
            waiting: AtomicUsize::new(0),
            patience,
            kept: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// The answer to a body, byte for byte as every other face prints it.
    pub async fn ask(&self, question: Question, body: String) -> Result<Bytes, Refusal> {
        let key = (question, body);
        if let Some(answer) = lock(&self.kept).answers.get(&key) {
            return Ok(answer.clone());
        }
        let gate = Arc::clone(lock(&self.asked).entry(key.clone()).or_default());
        let passed = gate.lock().await;
        let answer = self.answer(&key).await;
        drop(passed);
        let mut asked = lock(&self.asked);
        // The last to leave takes the gate away: it is held here and in the table.
        if Arc::strong_count(&gate) <= 2 {
            asked.remove(&key);
        }
        answer
    }

    async fn answer(&self, key: &Key) -> Result<Bytes, Refusal> {
        if let Some(answer) = lock(&self.kept).answers.get(key) {
            return Ok(answer.clone());
        }
        let fields = ask::parse(&key.1).map_err(|error| Refusal { status: StatusCode::BAD_REQUEST, error })?;
        let answer = Bytes::from(self.reply(key.0, fields).await?.json()?);
        lock(&self.kept).keep(key.clone(), answer.clone());
        Ok(answer)
    }

    pub async fn reply(&self, question: Question, request: Map<String, Value>) -> Result<Reply, Refusal> {
        limits::check(question, &request)?;
        let catalog = Arc::clone(&self.catalog);
        Ok(self.work(move || question.answer(&catalog, request, &Terms::default())).await??)
    }

    /// Runs something on one of the working threads.
    pub async fn work<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let busy = |problem: String, hint| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem, hint);
        let place = Place(&self.waiting);
        if place.0.fetch_add(1, Ordering::Relaxed) >= QUEUE {
            return Err(busy(format!("{QUEUE} requests are waiting"), "try again soon"));
        }
        let late = || busy("the answer takes too long".into(), "ask for less, or the command line");
        let permit = Arc::clone(&self.threads).acquire_owned();
        let permit = tokio::time::timeout(self.patience, permit).await.map_err(|_| late())?.map_err(|_| late())?;
        let job = tokio::task::spawn_blocking(move || {
            // The thread is taken until the work ends, whether or not the caller is still there.
            let _permit = permit;
            job()
        });
        let fault = (StatusCode::INTERNAL_SERVER_ERROR, "this request met a fault of ours", "please report it");
        let done = tokio::time::timeout(self.patience, job).await.map_err(|_| late())?;
        done.map_err(|_| Refusal::new(fault.0, fault.1, fault.2))
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_request_is_answered_once_and_leaves_nothing_behind() {
        let answers = Answers::new(rackmath_catalog::embedded(), Duration::from_mins(1));
        let one = || answers.ask(Question::Step, "{}".into());
        let (a, b, c) = tokio::join!(one(), one(), one());
        assert!(a.is_ok() && a == b && b == c);
        assert!(answers.ask(Question::Step, "{".into()).await.is_err());
        assert_eq!((lock(&answers.asked).len(), lock(&answers.kept).answers.len()), (0, 1));
    }

    #[test]
    fn what_is_kept_stays_bounded() {
        let mut kept = Kept::default();
        for i in 0..1000 {
            kept.keep((Question::Step, i.to_string()), Bytes::from(vec![0; KEPT / 100]));
            assert!(kept.bytes <= KEPT);
        }
        assert_eq!(kept.answers.len(), kept.order.len());
        let sum: usize = kept.answers.iter().map(|(k, a)| k.1.len() + a.len()).sum();
        assert_eq!(sum, kept.bytes);
        assert!(kept.answers.contains_key(&(Question::Step, "999".into())));
        // One answer never drives out all the others.
        kept.keep((Question::Step, "huge".into()), Bytes::from(vec![0; KEPT / 2]));
        assert!(!kept.answers.contains_key(&(Question::Step, "huge".into())));
    }
}
