//! What questions cost beside what they are reckoned to cost, in time and in memory.
//!
//! `cargo bench -p rackmath-server --bench cost -- 500` asks 500 random requests, works each on one thread, and prints how far the time of
//! the processor is from what was reckoned before, and how much memory the request took of what was promised to it. `-- 500 rows`
//! prints every one of them, `-- 100 only=plan` asks one question, and `-- from=FILE` holds rows that were printed against what is reckoned now,
//! without asking again: after a change of a constant that is a matter of a second; `extents` besides prints what was counted of each.

mod apart;

use apart::asks;
use rackmath::Catalog;
use rackmath::ask::{Question, Terms};
use rackmath::extent::Extent;
use rackmath_server::cost::{self, Cost};
use rackmath_units::{Cancel, Chance, Effort};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Seconds of the processor that this thread has taken.
fn taken() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// Below so many seconds that count is too coarse, which the kernel keeps by its ticks.
const COARSE: f64 = 0.03;

/// Reckoned over real, and memory over what was promised, by question.
type Ratios = BTreeMap<&'static str, Vec<(f64, f64)>>;

/// What takes less than a thousandth of a second is as quick as can be.
fn put(ratios: &mut Ratios, question: Question, reckoned: Cost, real: f64, peak: f64) {
    let ratio = reckoned.seconds.max(0.001) / real.max(0.001);
    ratios.entry(question.name()).or_default().push((ratio, peak / reckoned.bytes));
}

/// Rows that were printed before.
fn again(catalog: &Catalog, file: &str, extents: bool) -> Ratios {
    let mut ratios = Ratios::new();
    for line in std::fs::read_to_string(file).expect("a file of rows").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, _, real, _, peak, _, request] = columns[..] else { continue };
        let (Ok(question), Ok(request)) = (Question::find(name), rackmath::ask::parse(request)) else { continue };
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        if extents {
            let begun = Instant::now();
            let e = question.extent(catalog, &request).unwrap_or_default();
            let us = begun.elapsed().as_secs_f64() * 1e6;
            let Extent { layouts, made, prepared, weighed, simulated, tokens } = e;
            let counts =
                [layouts, made, prepared, weighed, simulated, tokens, us].map(|n| format!("{n:.0}")).join("\t");
            println!("{name}\t{real}\t{counts}\t{}", Value::Object(request.clone()));
        }
        put(&mut ratios, question, cost::of(catalog, question, &request), number(real), number(peak));
    }
    ratios
}

fn shown(ratios: &mut Ratios) {
    let within = |r: &[(f64, f64)]| r.iter().filter(|x| (1.0 / 3.0..=3.0).contains(&x.0)).count();
    let bounded = |r: &[(f64, f64)]| r.iter().filter(|x| x.1 <= 1.0).count();
    let (mut all, mut sum, mut fits) = (0, 0, 0);
    for (name, list) in ratios {
        list.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = |p: f64| list[((list.len() - 1) as f64 * p) as usize].0;
        let fullest = list.iter().map(|x| x.1).fold(0.0, f64::max);
        println!(
            "{name:16} {:4} asked, {:4} within 3x; reckoned over real: {:.2} to {:.2}, middle {:.2}; memory at most {:.2} of what was promised",
            list.len(),
            within(list),
            at(0.0),
            at(1.0),
            at(0.5),
            fullest
        );
        (all, sum, fits) = (all + list.len(), sum + within(list), fits + bounded(list));
    }
    let share = |n: usize| 100.0 * n as f64 / all.max(1) as f64;
    println!(
        "{all} requests: {sum} within 3x ({:.1} %), {fits} within their memory ({:.1} %)",
        share(sum),
        share(fits)
    );
}

pub fn main() {
    let words: Vec<String> = std::env::args().collect();
    let n = words.iter().find_map(|w| w.parse::<usize>().ok()).unwrap_or(50);
    let rows = words.iter().any(|w| w == "rows");
    let only = words.iter().find_map(|w| w.strip_prefix("only="));
    let seed = words.iter().find_map(|w| w.strip_prefix("seed=")?.parse().ok()).unwrap_or(11);
    let catalog = rackmath_catalog::embedded();
    if let Some(file) = words.iter().find_map(|w| w.strip_prefix("from=")) {
        return shown(&mut again(&catalog, file, words.iter().any(|w| w == "extents")));
    }
    let dice = &mut Chance::new(seed);
    let all = asks::questions(only);
    let mut ratios = Ratios::new();
    let (mut done, mut tried, mut refused, mut ended) = (0, 0, 0, 0);
    while done < n && tried < 20 * n {
        tried += 1;
        let (question, request) = asks::random(dice, &all);
        let reckoned = cost::of(&catalog, question, &request);
        if reckoned.seconds > 30.0 {
            refused += 1;
            continue;
        }
        // Nobody waits longer than a server would; what is ended counts as what it took until then.
        let cancel = Cancel::open();
        let terms = Terms { effort: Effort { threads: 1, cancel: cancel.clone() }, ..Terms::default() };
        let (finished, waits) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if waits.recv_timeout(Duration::from_mins(2)).is_err() {
                cancel.cancel();
            }
        });
        let wall = Instant::now();
        let begun = taken();
        let mut length = None;
        let memory = allocation_counter::measure(|| {
            let reply = question.answer(&catalog, request.clone(), &terms);
            length = reply.ok().and_then(|reply| reply.json().ok()).map(|text| text.len());
        });
        let mut real = taken() - begun;
        let _ = finished.send(());
        if real < COARSE {
            // The clock on the wall instead, of the quickest of three: what waited for others is not counted.
            let again = || {
                let wall = Instant::now();
                let _ = question.answer(&catalog, request.clone(), &terms).and_then(|reply| reply.json());
                wall.elapsed().as_secs_f64()
            };
            real = (0..3).map(|_| again()).fold(f64::INFINITY, f64::min);
        }
        let _ = watch.join();
        let Some(length) = length else {
            ended += usize::from(wall.elapsed() > Duration::from_mins(1));
            continue;
        };
        done += 1;
        let peak = memory.bytes_max as f64;
        if rows {
            println!(
                "{}\t{:.6}\t{:.6}\t{:.0}\t{peak:.0}\t{length}\t{}",
                question.name(),
                reckoned.seconds,
                real,
                reckoned.bytes,
                Value::Object(request)
            );
        }
        put(&mut ratios, question, reckoned, real, peak);
    }
    if !rows {
        shown(&mut ratios);
        println!("{refused} were refused for their cost, {ended} ended");
    }
}
