//! Answers: each in the lane of its cost, bounded in number, time and memory, and the latest of them kept.
//!
//! | lane | work of an answer | threads | may wait |
//! |------|-------------------|---------|----------|
//! | quick | below 40 ms | one a core | 512 |
//! | middle | below 1 s | half of the cores | 64 |
//! | heavy | up to the limit | half of the cores | 8 |
//!
//! What a question costs is reckoned from its request ([`crate::cost`]) before anybody works on it, so cheap ones never wait behind dear
//! ones. Equal questions asked at once are worked once, as long as one of the askers is still there; work that nobody waits for ends.
//! Requests are pure, so an answer can be given again: the newest are kept up to a fixed number of bytes.

use crate::cost::{self, Cost};
use crate::error::Refusal;
use crate::limits;
use crate::metrics::Metrics;
use axum::body::Bytes;
use axum::http::StatusCode;
use rackmath::Catalog;
use rackmath::ask::{self, Question, Reply, Terms};
use rackmath_units::{Cancel, Effort};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout_at;

/// Bytes of kept answers.
const KEPT: usize = 32 << 20;

/// Most bytes of one answer.
pub const MOST_ANSWER: usize = 8 << 20;

/// What one process may promise to hold for work under way, in mebibytes.
const ROOMS: usize = 192;

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Longest a caller waits, and the most work one question may be, in seconds.
    pub patience: Duration,
    /// Requests of one address under way or waiting.
    pub of_address: usize,
    /// Those of them that are not quick.
    pub slow_of_address: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), of_address: 64, slow_of_address: 32 }
    }
}

/// Who asks, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub address: IpAddr,
    pub until: Instant,
}

#[derive(Debug)]
struct Lane {
    threads: Arc<Semaphore>,
    width: usize,
    waiting: AtomicUsize,
    most: usize,
    /// Work that is promised, in milliseconds.
    ahead: AtomicU64,
}

impl Lane {
    fn new(width: usize, most: usize) -> Self {
        let threads = Arc::new(Semaphore::new(width));
        Self { threads, width, waiting: AtomicUsize::new(0), most, ahead: AtomicU64::new(0) }
    }

    /// Seconds until what is promised is done.
    fn wait_s(&self) -> u64 {
        (self.ahead.load(Ordering::Relaxed) / (1000 * self.width as u64)).clamp(1, 60)
    }
}

pub struct Answers {
    catalog: Arc<Catalog>,
    lanes: Arc<[Lane; 3]>,
    rooms: Arc<Semaphore>,
    rules: Rules,
    kept: Mutex<Kept>,
    /// Requests being answered; who asks the same waits for that answer.
    asked: Mutex<HashMap<Key, Weak<Job>>>,
    callers: Arc<Mutex<HashMap<IpAddr, [usize; 2]>>>,
    /// Everything that is not quick ends with it.
    ending: Arc<AtomicBool>,
    slow: Mutex<Vec<Weak<Job>>>,
    pub metrics: Arc<Metrics>,
}

type Key = (Question, String);
type Outcome = Result<Bytes, Refusal>;

/// Work on one request; it ends when the last who waits for it leaves.
#[derive(Debug)]
struct Job {
    cancel: Cancel,
    outcome: watch::Receiver<Option<Outcome>>,
    lane: usize,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

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

/// One of a caller's requests, until it ends.
struct Counted {
    callers: Arc<Mutex<HashMap<IpAddr, [usize; 2]>>>,
    address: IpAddr,
    slow: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut callers = lock(&self.callers);
        if let Some(counts) = callers.get_mut(&self.address) {
            counts[0] -= 1;
            counts[1] -= usize::from(self.slow);
            if counts[0] == 0 {
                callers.remove(&self.address);
            }
        }
    }
}

/// A place in a lane's queue, and the work promised with it.
struct Place {
    lanes: Arc<[Lane; 3]>,
    lane: usize,
    ms: u64,
    waits: bool,
}

impl Place {
    fn called(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.lanes[self.lane].waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.called();
        self.lanes[self.lane].ahead.fetch_sub(self.ms, Ordering::Relaxed);
    }
}

impl Answers {
    pub fn new(catalog: Catalog, rules: Rules) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let half = (cores / 2).max(1);
        Self {
            catalog: Arc::new(catalog),
            lanes: Arc::new([Lane::new(cores, 512), Lane::new(half, 64), Lane::new(half, 8)]),
            rooms: Arc::new(Semaphore::new(ROOMS)),
            rules,
            kept: Mutex::default(),
            asked: Mutex::default(),
            callers: Arc::default(),
            ending: Arc::default(),
            slow: Mutex::default(),
            metrics: Arc::default(),
        }
    }

    pub fn patience(&self) -> Duration {
        self.rules.patience
    }

    /// No more slow work: what is under way ends at its next look, and none begins.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        for job in lock(&self.slow).drain(..).filter_map(|job| job.upgrade()) {
            job.cancel.cancel();
        }
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Whether somebody who comes now would be let wait.
    pub fn has_room(&self) -> bool {
        self.lanes[0].waiting.load(Ordering::Relaxed) < self.lanes[0].most && !self.is_ending()
    }

    /// What stands now, for the metrics.
    pub fn gauges(&self) -> Vec<(&'static str, &'static str, f64)> {
        let waiting = |i: usize| self.lanes[i].waiting.load(Ordering::Relaxed) as f64;
        vec![
            ("kept_bytes", "Bytes of answers kept.", lock(&self.kept).bytes as f64),
            ("waiting_quick", "Requests that wait for a thread of the quick lane.", waiting(0)),
            ("waiting_middle", "Requests that wait for a thread of the middle lane.", waiting(1)),
            ("waiting_heavy", "Requests that wait for a thread of the heavy lane.", waiting(2)),
            ("callers", "Addresses with a request under way.", lock(&self.callers).len() as f64),
        ]
    }

    /// The answer to a body, byte for byte as every other face prints it.
    pub async fn ask(&self, caller: Caller, question: Question, body: String) -> Outcome {
        let begun = Instant::now();
        let key = (question, body);
        if let Some(answer) = lock(&self.kept).answers.get(&key) {
            self.metrics.kept.fetch_add(1, Ordering::Relaxed);
            return Ok(answer.clone());
        }
        let fields = ask::parse(&key.1).map_err(|error| Refusal::from_error(StatusCode::BAD_REQUEST, error))?;
        let cost = self.reckoned(question, &fields)?;
        let _counted = self.count(caller, cost)?;
        let job = self.join(&key, fields, cost)?;
        let mut outcome = job.outcome.clone();
        let done = timeout_at(caller.until.into(), outcome.wait_for(Option::is_some)).await;
        self.metrics.times[cost.lane()].took(begun.elapsed());
        let answer = match done {
            Ok(Ok(done)) => done.clone().unwrap_or_else(|| Err(fault())),
            Ok(Err(_)) => Err(fault()),
            Err(_) => Err(self.late(cost)),
        }?;
        lock(&self.kept).keep(key, answer.clone());
        Ok(answer)
    }

    /// What a request costs, if this server takes it.
    fn reckoned(&self, question: Question, fields: &Map<String, Value>) -> Result<Cost, Refusal> {
        limits::check(question, fields)?;
        let cost = cost::of(question, fields);
        let most = self.rules.patience.as_secs_f64();
        if cost.seconds > most {
            self.metrics.refused("cost");
            return Err(cost.refusal(question, most));
        }
        if cost.lane() > 0 && self.is_ending() {
            return Err(Refusal::busy("the server is going down", "ask again in a moment", 2));
        }
        Ok(cost)
    }

    fn count(&self, caller: Caller, cost: Cost) -> Result<Counted, Refusal> {
        let slow = cost.lane() > 0;
        let mut callers = lock(&self.callers);
        let counts = callers.entry(caller.address).or_default();
        let (most, slowest) = (self.rules.of_address, self.rules.slow_of_address);
        if counts[0] >= most || (slow && counts[1] >= slowest) {
            self.metrics.refused("caller");
            let what = if counts[0] >= most { "questions" } else { "long questions" };
            let n = if counts[0] >= most { most } else { slowest };
            let problem = format!("{n} {what} of yours are under way");
            return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, problem, "wait for their answers first").after(1));
        }
        counts[0] += 1;
        counts[1] += usize::from(slow);
        Ok(Counted { callers: Arc::clone(&self.callers), address: caller.address, slow })
    }

    /// The work on a request: what is under way already, or begun now.
    fn join(&self, key: &Key, fields: Map<String, Value>, cost: Cost) -> Result<Arc<Job>, Refusal> {
        let mut asked = lock(&self.asked);
        if let Some(job) = asked.get(key).and_then(Weak::upgrade).filter(|job| job.cancel.check().is_ok()) {
            return Ok(job);
        }
        let place = self.place(cost)?;
        let (tell, outcome) = watch::channel(None);
        let job = Arc::new(Job { cancel: Cancel::open(), outcome, lane: cost.lane() });
        asked.retain(|_, job| job.strong_count() > 0);
        asked.insert(key.clone(), Arc::downgrade(&job));
        if job.lane > 0 {
            let mut slow = lock(&self.slow);
            slow.retain(|job| job.strong_count() > 0);
            slow.push(Arc::downgrade(&job));
        }
        let (catalog, question, cancel) = (Arc::clone(&self.catalog), key.0, job.cancel.clone());
        let effort = Effort { threads: 1, cancel: cancel.clone() };
        let work = move || {
            let reply = question.answer(&catalog, fields, &Terms { effort, ..Terms::default() })?;
            let answer = reply.json()?;
            if answer.len() > MOST_ANSWER {
                return Err(Refusal::too_long(question, answer.len()));
            }
            Ok(Bytes::from(answer))
        };
        let (rooms, metrics) = (Arc::clone(&self.rooms), Arc::clone(&self.metrics));
        tokio::spawn(async move {
            let wanted = run(place, rooms, cost, &metrics, &cancel, tell.closed(), work);
            if let Some(outcome) = wanted.await {
                let _ = tell.send(Some(outcome));
            }
        });
        Ok(job)
    }

    fn place(&self, cost: Cost) -> Result<Place, Refusal> {
        let index = cost.lane();
        let lane = &self.lanes[index];
        if lane.waiting.fetch_add(1, Ordering::Relaxed) >= lane.most + lane.threads.available_permits() {
            lane.waiting.fetch_sub(1, Ordering::Relaxed);
            self.metrics.refused("queue");
            let problem = format!("{} questions as long as this one are waiting", lane.most);
            return Err(Refusal::busy(problem, "try again soon, or ask for less", lane.wait_s()));
        }
        let ms = (cost.seconds * 1e3) as u64;
        lane.ahead.fetch_add(ms, Ordering::Relaxed);
        Ok(Place { lanes: Arc::clone(&self.lanes), lane: index, ms, waits: true })
    }

    fn late(&self, cost: Cost) -> Refusal {
        self.metrics.refused("deadline");
        let wait = self.lanes[cost.lane()].wait_s();
        Refusal::busy(
            "the answer takes longer than you wait",
            "ask for less, wait longer, or ask the command line",
            wait,
        )
    }

    /// An answer that is not shared, as a value.
    pub async fn reply(
        &self,
        caller: Caller,
        question: Question,
        request: Map<String, Value>,
    ) -> Result<Reply, Refusal> {
        let cost = self.reckoned(question, &request)?;
        let catalog = Arc::clone(&self.catalog);
        let work =
            move |effort: Effort| Ok(question.answer(&catalog, request, &Terms { effort, ..Terms::default() })?);
        self.work(caller, cost, work).await
    }

    /// Runs something on one of the working threads, as long as the caller is there.
    pub async fn work<T: Send + 'static>(
        &self,
        caller: Caller,
        cost: Cost,
        job: impl FnOnce(Effort) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _counted = self.count(caller, cost)?;
        let place = self.place(cost)?;
        let cancel = Cancel::open();
        let _wanted = Ends(cancel.clone());
        let effort = Effort { threads: 1, cancel: cancel.clone() };
        let rooms = Arc::clone(&self.rooms);
        let never = std::future::pending();
        let done = run(place, rooms, cost, &self.metrics, &cancel, never, move || job(effort));
        let done = timeout_at(caller.until.into(), done).await.map_err(|_| self.late(cost))?;
        done.unwrap_or_else(|| Err(fault()))
    }
}

/// Ends work when dropped.
struct Ends(Cancel);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Work in its turn, with its room; nothing if nobody wants it any more.
async fn run<T: Send + 'static>(
    mut place: Place,
    rooms: Arc<Semaphore>,
    cost: Cost,
    metrics: &Metrics,
    cancel: &Cancel,
    gone: impl Future<Output = ()>,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Option<Result<T, Refusal>> {
    let threads = Arc::clone(&place.lanes[place.lane].threads);
    let room = cost.room_mib().min(ROOMS) as u32;
    let turn = async { Some((threads.acquire_owned().await.ok()?, rooms.acquire_many_owned(room).await.ok()?)) };
    let held = tokio::select! {
        held = turn => held?,
        () = gone => {
            metrics.abandoned.fetch_add(1, Ordering::Relaxed);
            return None;
        }
    };
    place.called();
    let done = tokio::task::spawn_blocking(move || {
        // Thread and room are taken until the work ends, whether or not somebody still waits.
        let _held = (held, place);
        work()
    });
    match done.await {
        Ok(Err(_)) if cancel.check().is_err() => {
            metrics.abandoned.fetch_add(1, Ordering::Relaxed);
            Some(Err(Refusal::busy("the work was ended", "the server is going down, or the deadline has passed", 2)))
        }
        Ok(done) => {
            metrics.worked.fetch_add(1, Ordering::Relaxed);
            Some(done)
        }
        Err(_) => {
            metrics.faults.fetch_add(1, Ordering::Relaxed);
            Some(Err(fault()))
        }
    }
}

fn fault() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "this request met a fault of ours", "please report it")
}

pub fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn caller() -> Caller {
        Caller { address: Ipv4Addr::LOCALHOST.into(), until: Instant::now() + Duration::from_mins(1) }
    }

    #[tokio::test]
    async fn the_same_request_is_answered_once_and_leaves_nothing_behind() {
        let answers = Answers::new(rackmath_catalog::embedded(), Rules::default());
        let one = || answers.ask(caller(), Question::Step, "{}".into());
        let (a, b, c) = tokio::join!(one(), one(), one());
        assert!(a.is_ok() && a == b && b == c);
        assert_eq!(answers.metrics.worked.load(Ordering::Relaxed), 1);
        assert!(answers.ask(caller(), Question::Step, "{".into()).await.is_err());
        assert!(lock(&answers.callers).is_empty());
        assert!(lock(&answers.asked).values().all(|job| job.strong_count() == 0));
        assert_eq!(answers.lanes[0].ahead.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn one_caller_may_not_have_everything_and_a_deadline_ends_the_wait() {
        let rules = Rules { of_address: 2, slow_of_address: 1, ..Rules::default() };
        let answers = Answers::new(rackmath_catalog::embedded(), rules);
        let cost = |seconds| Cost { seconds, bytes: 1e6, by: None };
        let first = answers.count(caller(), cost(2.0)).expect("counted");
        let again = answers.count(caller(), cost(2.0)).map(drop).expect_err("one long one is enough");
        assert_eq!(again.status, StatusCode::TOO_MANY_REQUESTS);
        let second = answers.count(caller(), cost(0.01)).expect("a quick one beside it");
        assert!(answers.count(caller(), cost(0.01)).is_err());
        drop((first, second));
        assert!(answers.count(caller(), cost(2.0)).is_ok());
        let past = Caller { until: Instant::now(), ..caller() };
        let late = answers.work(past, cost(0.01), |_| {
            std::thread::sleep(Duration::from_millis(50));
            Ok(())
        });
        assert_eq!(late.await.expect_err("late").status, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn work_ends_when_nobody_waits_for_it() {
        let answers = Answers::new(rackmath_catalog::embedded(), Rules::default());
        let (tell, told) = std::sync::mpsc::channel();
        let work = answers.work(caller(), Cost { seconds: 0.01, bytes: 1e6, by: None }, move |effort| {
            while effort.check().is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = tell.send(());
            Ok(())
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), work).await.is_err(), "the caller leaves");
        told.recv_timeout(Duration::from_secs(10)).expect("the work has ended");
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
