//! Answers: each in the lane of its cost, bounded in number, time and memory, and the latest of them kept.
//!
//! | lane | work of an answer | threads | may wait | memory of all |
//! |------|-------------------|---------|----------|---------------|
//! | quick | below 40 ms | one a core | 512 | 20 MiB |
//! | middle | below 1 s | half of the cores | 64 | 28 MiB |
//! | heavy | up to the limit, or above 20 MiB | half of the cores | 8 | 146 MiB |
//!
//! What a question costs is reckoned from its request ([`crate::cost`]) before anybody works on it, so cheap ones never wait behind dear
//! ones. Equal questions asked at once are worked once, as long as one of the askers is still there; work that nobody waits for ends.
//! Requests are pure, so an answer can be given again: the newest are kept up to a fixed number of bytes. What an answer may take of
//! memory is promised before it is worked on ([`crate::room`]).

use crate::cost::{self, Cost};
use crate::error::Refusal;
use crate::limits;
use crate::metrics::Metrics;
use crate::part::{self, Bounded, Part, Reader};
use crate::room::{Held, Room};
use axum::body::Bytes;
use axum::http::StatusCode;
use flate2::Compression;
use flate2::write::GzEncoder;
use rackmath::Catalog;
use rackmath::ask::{self, Question, Reply, Terms};
use rackmath_units::{Cancel, Effort};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout_at;

/// Bytes of kept answers.
const KEPT: usize = 16 << 20;

/// Most bytes of one answer.
pub const MOST_ANSWER: usize = 8 << 20;

/// What each lane may promise to hold for work under way.
pub const WORK: [usize; 3] = [20 << 20, 28 << 20, 146 << 20];

/// A body of more bytes is taken apart aside, few of them at once: as values it is many times as large. So is what has to be counted.
const LARGE: usize = 64 << 10;

/// What a request says, and the room its bytes have.
#[derive(Debug)]
pub struct Said {
    pub text: String,
    pub room: Option<Held>,
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self { text: text.into(), room: None }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Longest a caller waits, and the most work one question may be, in seconds.
    pub patience: Duration,
    /// Requests of one address under way or waiting.
    pub of_address: usize,
    /// Those of them that are not quick.
    pub slow_of_address: usize,
    /// Called where work that was not quick has ended: what the allocator still holds of it can go back.
    pub tidy: fn(),
}

impl Default for Rules {
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), of_address: 64, slow_of_address: 32, tidy: || {} }
    }
}

/// Who asks, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub address: IpAddr,
    pub since: Instant,
    pub until: Instant,
}

#[derive(Debug)]
struct Lane {
    threads: Arc<Semaphore>,
    room: Arc<Room>,
    width: usize,
    waiting: AtomicUsize,
    most: usize,
    /// Work that is promised, in milliseconds.
    ahead: AtomicU64,
    /// Called after each piece of work.
    tidy: fn(),
}

impl Lane {
    fn new(width: usize, most: usize, bytes: usize, tidy: fn()) -> Self {
        let (threads, room) = (Arc::new(Semaphore::new(width)), Room::new(bytes));
        Self { threads, room, width, waiting: AtomicUsize::new(0), most, ahead: AtomicU64::new(0), tidy }
    }

    /// Seconds until what is promised is done.
    fn wait_s(&self) -> u64 {
        (self.ahead.load(Ordering::Relaxed) / (1000 * self.width as u64)).clamp(1, 60)
    }
}

pub struct Answers {
    catalog: Arc<Catalog>,
    lanes: Arc<[Lane; 3]>,
    /// Large bodies that are taken apart at once.
    large: Semaphore,
    /// What names a request: nobody outside can make two with one name.
    names: [RandomState; 2],
    rules: Rules,
    kept: Mutex<Kept>,
    /// Requests being answered; who asks the same waits for that answer.
    asked: Mutex<HashMap<Key, Weak<Job>>>,
    callers: Arc<Mutex<HashMap<IpAddr, [usize; 2]>>>,
    /// Everything that is not quick ends with it.
    ending: Arc<AtomicBool>,
    slow: Slow,
    pub metrics: Arc<Metrics>,
}

/// A question, which part of its answer, and the name of the body.
type Key = (Question, Option<Part>, [u64; 2]);
type Outcome = Result<Answer, Refusal>;
type Slow = Arc<Mutex<HashMap<u64, Cancel>>>;

/// An answer, and the same packed, once somebody wants it so.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub plain: Bytes,
    packed: Arc<OnceLock<Bytes>>,
}

impl From<Vec<u8>> for Answer {
    fn from(text: Vec<u8>) -> Self {
        Self { plain: Bytes::from(text), packed: Arc::default() }
    }
}

/// A text as gzip, quickly: answers are tables, which pack well however little one tries.
pub fn packed(text: &[u8]) -> Bytes {
    let mut out = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    // Nothing can go wrong in memory; an empty text would be seen by every test.
    let _ = out.write_all(text);
    Bytes::from(out.finish().unwrap_or_default())
}

/// Work on one request; it ends when the last who waits for it leaves.
#[derive(Debug)]
struct Job {
    wanted: Wanted,
    outcome: watch::Receiver<Option<Outcome>>,
}

/// Work that ends when this is dropped, or, where it is not quick, when the server ends.
#[derive(Debug)]
struct Wanted {
    cancel: Cancel,
    slow: Option<(Slow, u64)>,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some((slow, id)) = &self.slow {
            lock(slow).remove(id);
        }
    }
}

#[derive(Default)]
struct Kept {
    answers: HashMap<Key, Answer>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Kept {
    fn keep(&mut self, key: Key, answer: Answer) {
        let bytes = size(&key, &answer);
        if bytes > KEPT / 8 || self.answers.insert(key.clone(), answer).is_some() {
            return;
        }
        self.order.push_back(key);
        self.bytes += bytes;
        while self.bytes > KEPT {
            let Some(oldest) = self.order.pop_front() else { return };
            self.bytes -= self.answers.remove(&oldest).map_or(0, |answer| size(&oldest, &answer));
        }
    }
}

/// Bytes of an answer with its key, which stands in two places.
fn size(key: &Key, answer: &Answer) -> usize {
    // Packed beside it, it is below half of its length.
    answer.plain.len() * 3 / 2 + 2 * (size_of::<Key>() + key.1.as_ref().map_or(0, |part| part.of.len()))
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
            lanes: Arc::new([
                Lane::new(cores, 512, WORK[0], || {}),
                Lane::new(half, 64, WORK[1], rules.tidy),
                Lane::new(half, 8, WORK[2], rules.tidy),
            ]),
            large: Semaphore::new(2),
            names: [RandomState::new(), RandomState::new()],
            rules,
            kept: Mutex::default(),
            asked: Mutex::default(),
            callers: Arc::default(),
            ending: Arc::default(),
            slow: Arc::default(),
            metrics: Arc::default(),
        }
    }

    pub fn patience(&self) -> Duration {
        self.rules.patience
    }

    /// No more slow work: what is under way ends at its next look, and none begins.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        lock(&self.slow).values().for_each(Cancel::cancel);
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
            (
                "promised_bytes",
                "Memory promised to work under way.",
                self.lanes.iter().map(|l| l.room.taken()).sum::<usize>() as f64,
            ),
            ("waiting_quick", "Requests that wait for a thread of the quick lane.", waiting(0)),
            ("waiting_middle", "Requests that wait for a thread of the middle lane.", waiting(1)),
            ("waiting_heavy", "Requests that wait for a thread of the heavy lane.", waiting(2)),
            ("callers", "Addresses with a request under way.", lock(&self.callers).len() as f64),
        ]
    }

    /// The answer to a body, byte for byte as every other face prints it, or a part of it.
    pub async fn ask(&self, caller: Caller, question: Question, part: Option<Part>, said: Said) -> Outcome {
        let begun = Instant::now();
        let name = [0, 1].map(|i| self.names[i].hash_one(&said.text));
        let key = (question, part, name);
        if let Some(answer) = lock(&self.kept).answers.get(&key) {
            self.metrics.kept.fetch_add(1, Ordering::Relaxed);
            return Ok(answer.clone());
        }
        let (cost, said) = self.weighed(question, said).await?;
        let _counted = self.count(caller, cost)?;
        let job = self.join(&key, caller, said, cost)?;
        let mut outcome = job.outcome.clone();
        let done = timeout_at(caller.until.into(), outcome.wait_for(Option::is_some)).await;
        self.metrics.times[cost.lane()].took(begun.elapsed());
        let answer = match done {
            Ok(Ok(done)) => done.clone().unwrap_or_else(|| Err(fault())),
            Ok(Err(_)) => Err(fault()),
            Err(_) => Err(self.late(caller, cost)),
        }?;
        lock(&self.kept).keep(key, answer.clone());
        Ok(answer)
    }

    /// What a body costs. It is read for that alone, and again when its turn comes: what waits is small.
    async fn weighed(&self, question: Question, said: Said) -> Result<(Cost, Said), Refusal> {
        let read = |text: &str| ask::parse(text).map_err(|error| Refusal::from_error(StatusCode::BAD_REQUEST, error));
        if said.text.len() <= LARGE && !cost::counts(question) {
            return Ok((self.reckoned(question, &read(&said.text)?)?, said));
        }
        let _turn = self.large.acquire().await.map_err(|_| fault())?;
        let catalog = self.catalog.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let fields = read(&said.text)?;
            limits::check(question, &fields)?;
            Ok::<_, Refusal>((cost::of(&catalog, question, &fields), said))
        });
        let (cost, said) = checked.await.map_err(|_| fault())??;
        Ok((self.taken(question, cost)?, said))
    }

    /// What a request costs, if this server takes it.
    fn reckoned(&self, question: Question, fields: &Map<String, Value>) -> Result<Cost, Refusal> {
        limits::check(question, fields)?;
        self.taken(question, cost::of(&self.catalog, question, fields))
    }

    fn taken(&self, question: Question, cost: Cost) -> Result<Cost, Refusal> {
        let most = self.rules.patience.as_secs_f64();
        if cost.seconds > most {
            self.metrics.refused("cost");
            return Err(cost.refusal(question, most));
        }
        if cost.bytes > WORK[2] as f64 {
            self.metrics.refused("memory");
            return Err(cost.too_large(question, WORK[2] as f64));
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
            let problem = format!("{n} {what} of yours are under way, as many as one caller may have");
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, problem, "wait for their answers first").after(1);
            return Err(refusal.of(n as f64 + 1.0, n as f64, "questions at once"));
        }
        counts[0] += 1;
        counts[1] += usize::from(slow);
        Ok(Counted { callers: Arc::clone(&self.callers), address: caller.address, slow })
    }

    /// The work on a request: what is under way already, or begun now.
    fn join(&self, key: &Key, caller: Caller, said: Said, cost: Cost) -> Result<Arc<Job>, Refusal> {
        let mut asked = lock(&self.asked);
        if let Some(job) = asked.get(key).and_then(Weak::upgrade).filter(|job| job.wanted.cancel.check().is_ok()) {
            return Ok(job);
        }
        let place = self.place(cost)?;
        let (tell, outcome) = watch::channel(None);
        let job = Arc::new(Job { wanted: self.wanted(cost), outcome });
        asked.retain(|_, job| job.strong_count() > 0);
        asked.insert(key.clone(), Arc::downgrade(&job));
        let (catalog, key, cancel) = (Arc::clone(&self.catalog), key.clone(), job.wanted.cancel.clone());
        let effort = Effort { threads: 1, cancel: cancel.clone() };
        let work = move || {
            let fields = ask::parse(&said.text)?;
            drop(said);
            let reply = key.0.answer(&catalog, fields, &Terms { effort, ..Terms::default() })?;
            written(key.0, &reply, key.1.as_ref())
        };
        let metrics = Arc::clone(&self.metrics);
        tokio::spawn(async move {
            let wanted = run(place, caller, cost, &metrics, &cancel, tell.closed(), work);
            if let Some(outcome) = wanted.await {
                let _ = tell.send(Some(outcome));
            }
        });
        Ok(job)
    }

    fn wanted(&self, cost: Cost) -> Wanted {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let cancel = Cancel::open();
        if cost.lane() == 0 {
            return Wanted { cancel, slow: None };
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(&self.slow).insert(id, cancel.clone());
        if self.is_ending() {
            cancel.cancel();
        }
        Wanted { cancel, slow: Some((Arc::clone(&self.slow), id)) }
    }

    fn place(&self, cost: Cost) -> Result<Place, Refusal> {
        let index = cost.lane();
        let lane = &self.lanes[index];
        if lane.waiting.fetch_add(1, Ordering::Relaxed) >= lane.most + lane.threads.available_permits() {
            lane.waiting.fetch_sub(1, Ordering::Relaxed);
            self.metrics.refused("queue");
            let problem = format!("{} questions as long as this one are waiting, as many as may", lane.most);
            let hint = format!("try again in {} s, or ask for less", lane.wait_s());
            let n = lane.most as f64;
            return Err(Refusal::busy(problem, hint, lane.wait_s()).of(n + 1.0, n, "questions waiting"));
        }
        let ms = (cost.seconds * 1e3) as u64;
        lane.ahead.fetch_add(ms, Ordering::Relaxed);
        Ok(Place { lanes: Arc::clone(&self.lanes), lane: index, ms, waits: true })
    }

    fn late(&self, caller: Caller, cost: Cost) -> Refusal {
        self.metrics.refused("deadline");
        let wait = self.lanes[cost.lane()].wait_s();
        let waited = caller.until.saturating_duration_since(caller.since).as_secs_f64();
        let problem = format!("there is no answer after {waited:.1} s; it is about {:.2} s of work", cost.seconds);
        let hint = "ask for less, wait longer (prefer: wait=SECONDS), or ask the command line";
        Refusal::busy(problem, hint, wait).of(cost.seconds, waited, "seconds of work")
    }

    /// An answer packed, by one of the working threads if nobody has wanted it so before.
    pub async fn packed(&self, caller: Caller, answer: Answer) -> Result<Bytes, Refusal> {
        if let Some(packed) = answer.packed.get() {
            return Ok(packed.clone());
        }
        let bytes = answer.plain.len() as f64;
        // A core packs some 50 MB a second.
        let cost = Cost { seconds: bytes / 50e6, bytes: 4e5 + bytes / 2.0, by: None };
        let work = move |_| Ok(answer.packed.get_or_init(|| packed(&answer.plain)).clone());
        self.work(caller, cost, work).await
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
        let wanted = self.wanted(cost);
        let cancel = &wanted.cancel;
        let effort = Effort { threads: 1, cancel: cancel.clone() };
        let never = std::future::pending();
        let done = run(place, caller, cost, &self.metrics, cancel, never, move || job(effort));
        let done = timeout_at(caller.until.into(), done).await.map_err(|_| self.late(caller, cost))?;
        done.unwrap_or_else(|| Err(fault()))
    }
}

/// An answer as text, or a part of it; neither longer than one may be.
fn written(question: Question, reply: &Reply, wanted: Option<&Part>) -> Outcome {
    if wanted.is_some() {
        let mut rows = Reader::new(wanted, MOST_ANSWER);
        part::write(reply, &mut rows)?;
        return rows.answer().map(|text| text.into_bytes().into());
    }
    let mut all = Bounded::new(MOST_ANSWER);
    part::write(reply, &mut all)?;
    if all.whole() {
        return Ok(all.text.into());
    }
    let mut lists = Reader::new(None, 0);
    part::write(reply, &mut lists)?;
    Err(Refusal::too_long(question, all.bytes, lists.longest()))
}

/// Work in its turn, with its room; nothing if nobody wants it any more.
async fn run<T: Send + 'static>(
    mut place: Place,
    caller: Caller,
    cost: Cost,
    metrics: &Metrics,
    cancel: &Cancel,
    gone: impl Future<Output = ()>,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Option<Result<T, Refusal>> {
    let lane = &place.lanes[place.lane];
    let (threads, room, tidy) = (Arc::clone(&lane.threads), Arc::clone(&lane.room), lane.tidy);
    let turn = async {
        let thread = threads.acquire_owned().await.ok()?;
        Some((thread, room.take(caller.address, cost.bytes as usize, caller.until).await?))
    };
    let held = tokio::select! {
        held = turn => match held {
            Some(held) => held,
            None => return Some(Err(Refusal::busy("all memory is promised to others", "ask again in a moment", 1))),
        },
        () = gone => {
            metrics.abandoned.fetch_add(1, Ordering::Relaxed);
            return None;
        }
    };
    place.called();
    let done = tokio::task::spawn_blocking(move || {
        // Thread and room are taken until the work ends, whether or not somebody still waits.
        let _held = (held, place);
        let done = work();
        tidy();
        done
    });
    match done.await {
        // What is answered after that may be half of an answer: a simulation keeps what it has.
        Ok(_) if cancel.check().is_err() => {
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

pub fn fault() -> Refusal {
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
        let since = Instant::now();
        Caller { address: Ipv4Addr::LOCALHOST.into(), since, until: since + Duration::from_mins(1) }
    }

    #[tokio::test]
    async fn the_same_request_is_answered_once_and_leaves_nothing_behind() {
        let answers = Answers::new(rackmath_catalog::embedded(), Rules::default());
        let one = || answers.ask(caller(), Question::Step, None, "{}".into());
        let (a, b, c) = tokio::join!(one(), one(), one());
        assert!(a.is_ok() && a == b && b == c);
        assert_eq!(answers.metrics.worked.load(Ordering::Relaxed), 1);
        assert!(answers.ask(caller(), Question::Step, None, "{".into()).await.is_err());
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
        let key = |i: u64| (Question::Step, None, [i, 0]);
        for i in 0..1000 {
            kept.keep(key(i), vec![0; KEPT / 100].into());
            assert!(kept.bytes <= KEPT);
        }
        assert_eq!(kept.answers.len(), kept.order.len());
        let sum: usize = kept.answers.iter().map(|(k, a)| size(k, a)).sum();
        assert_eq!(sum, kept.bytes);
        assert!(kept.answers.contains_key(&key(999)));
        // One answer never drives out all the others.
        kept.keep(key(5000), vec![0; KEPT / 2].into());
        assert!(!kept.answers.contains_key(&key(5000)));
    }

    #[tokio::test]
    async fn parts_of_an_answer_are_rows_of_the_whole() {
        let answers = Answers::new(rackmath_catalog::embedded(), Rules::default());
        let asked = |part| answers.ask(caller(), Question::Pipeline, part, "{}".into());
        let value =
            |outcome: Outcome| serde_json::from_slice::<Value>(&outcome.expect("an answer").plain).expect("JSON");
        let whole = value(asked(None).await);
        let cells = whole["runs"][0]["cells"].as_array().expect("cells");
        let (mut from, mut rows) = (Some(0), Vec::new());
        while let Some(at) = from {
            let part = value(asked(Some(Part { of: "/runs/0/cells".into(), from: at, rows: 7 })).await);
            rows.extend(part["rows"].as_array().expect("rows").clone());
            from = part["next"].as_u64();
        }
        assert_eq!(&rows, cells);
    }

    #[tokio::test]
    async fn slow_work_ends_with_the_server_and_quick_work_does_not() {
        let answers = Answers::new(rackmath_catalog::embedded(), Rules::default());
        let cost = |seconds| Cost { seconds, bytes: 1e6, by: None };
        let (slow, quick) = (answers.wanted(cost(2.0)), answers.wanted(cost(0.01)));
        answers.end();
        assert!(slow.cancel.check().is_err() && quick.cancel.check().is_ok());
        assert!(answers.wanted(cost(2.0)).cancel.check().is_err(), "none begins");
        drop(slow);
        assert!(lock(&answers.slow).is_empty());
    }
}
