//! `rackmath watch`: a running server from its own counters, beside what it should do: where it stands on the curve of latency against throughput and
//! under the roofline, what its tokens cost, what twice the load would bring, and what is wrong, in words.

mod page;

use crate::failure;
use crate::gauge::beside::{self, Beside, Seen};
use crate::inputs::{self, Inputs};
use crate::menu::{option, path, switch};
use crate::output::{Output, Whole, print, tell};
use crate::socket::{self, seconds};
use crate::{flags, gauge};
use clap::{Arg, ArgMatches};
use rackmath::ask::{Question, Reply};
use rackmath::estimate::{Answer, sweep};
use rackmath::field::{Field, put};
use rackmath::figure::{Figure, Mark};
use rackmath::remark::{Remark, says};
use rackmath::{Catalog, Error};
use rackmath_measure::gauge::{Client, Found, Limits, Stop, discovered, no_answer, scraped};
use rackmath_measure::prometheus::{Reading, Scrape};
use rackmath_measure::read::{Observed, Times};
use rackmath_measure::watch::{MARK, Taken, View, replayed, view};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Loads and lengths are what is watched.
const MEASURED: [&str; 7] = ["/concurrency", "/rate_per_s", "/isl", "/osl", "/ttft_ms", "/tpot_ms", "/e2e_ms"];
/// Looks within an interval: an instant is a poor mean.
const LOOKS: u32 = 10;

/// The share of hits that somebody expects: held against what is found, not predicted with.
const EXPECTED_HIT: &str = "prefix_hit";

pub fn fields() -> Vec<Field> {
    let expected = Question::Estimate.fields().into_iter().filter(|f| f.path == format!("/{EXPECTED_HIT}"));
    let expected =
        expected.map(|f| Field { doc: "Share of the prompts' tokens that the prefix cache should find".into(), ..f });
    gauge::fields().into_iter().filter(|f| !MEASURED.contains(&f.path.as_str())).chain(expected).collect()
}

pub fn args() -> Vec<Arg> {
    let own = vec![
        socket::url("replay"),
        option("interval", "TIME", "Over how long counters are compared; below 15s the figures jump")
            .default_value("15s"),
        switch("once", "One interval, then end"),
        path(
            "replay",
            "FILE",
            "Show saved scrapes instead: files of --save-scrapes, or plain answers of /metrics an interval apart",
        )
        .num_args(1..)
        .conflicts_with("url"),
        path("save-scrapes", "FILE", "Append every scrape to a file that --replay reads"),
        path(
            "page",
            "FILE",
            "Write the view as a page for a browser too, anew in every interval; it shows the newest by itself",
        ),
    ];
    own.into_iter().chain(socket::args()).collect()
}

/// What is shown, and printed as JSON.
#[derive(Serialize)]
struct Shown {
    view: View,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
    /// The mean step's roofline as a share of it, as predicted, and held against the measured time per token.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_limit: Option<(f64, Option<f64>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    curve: Vec<sweep::Row>,
    chips: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubled: Option<Doubled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_per_hour: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_usd: Option<f64>,
    /// Why there is no prediction beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<Remark>,
    /// The predicted curve with the server on it.
    #[serde(skip)]
    figure: Option<Figure>,
}

/// The prediction at twice the load.
#[derive(Serialize)]
struct Doubled {
    rate: f64,
    tpot_ms: Option<f64>,
    ttft_ms: Option<f64>,
    output_tok_s: Option<f64>,
    problem: Option<Remark>,
}

struct Watch<'a> {
    catalog: &'a Catalog,
    inputs: Inputs<'a>,
    typed: Map<String, Value>,
    expected_hit: Option<f64>,
    found: Option<Found>,
    curve: Vec<sweep::Row>,
    figure: Option<Figure>,
    /// Where the page goes, how often it is written, and what it has shown.
    page: Option<(PathBuf, f64)>,
    past: VecDeque<page::Past>,
    time: f64,
}

pub fn run(catalog: Catalog, given: &ArgMatches, output: &Output) -> Result<u8, Error> {
    let fields = fields();
    let mut inputs = Inputs::new(&catalog, given);
    let mut typed = flags::request(&fields, given, &mut inputs)?;
    let expected_hit = typed.remove(EXPECTED_HIT).and_then(|hit| hit.as_f64());
    let interval = seconds(given, "interval")?.unwrap_or(15.0);
    if !(0.1..=86_400.0).contains(&interval) {
        return Err(Error::value("interval", interval, "0.1 s to a day"));
    }
    let page = given.get_one::<PathBuf>("page").map(|path| (path.clone(), interval));
    let mut watch = Watch {
        catalog: &catalog,
        inputs,
        typed,
        expected_hit,
        found: None,
        curve: Vec::new(),
        figure: None,
        page,
        past: VecDeque::new(),
        time: 0.0,
    };
    if let Some(files) = given.get_many::<PathBuf>("replay") {
        let mut all: Vec<Taken> = Vec::new();
        for (i, file) in files.enumerate() {
            let name = file.display().to_string();
            all.extend(replayed(&name, &inputs::trace(file)?, i as f64 * interval)?);
        }
        if all.len() < 2 {
            return Err(
                Error::said("one scrape says nothing of what happened").hint("expected two or more, an interval apart")
            );
        }
        for pair in all.windows(2) {
            watch.show(pair, output, false)?;
        }
        return Ok(0);
    }
    live(&mut watch, given, interval, output)
}

fn live(watch: &mut Watch<'_>, given: &ArgMatches, interval: f64, output: &Output) -> Result<u8, Error> {
    let client = socket::client(given, Limits { total_s: 30.0, head_s: 30.0, ..Limits::default() })?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| Error::said(e.to_string()))?;
    let found = match runtime.block_on(discovered(&client, socket::model(given))) {
        Ok(found) => found,
        Err(fault) => return gauge::nobody(&no_answer(&client, &fault), output),
    };
    if !found.metrics {
        return Err(Error::said(format!(
            "{} shows no metrics of an engine that is known ({})",
            client.target,
            found.asked.join(", ")
        ))
        .hint(
            "expected /metrics: SGLang needs --enable-metrics, llama.cpp --metrics, TensorRT-LLM return_perf_metrics",
        ));
    }
    watch.found = Some(found);
    let stop = socket::stopping();
    let (begun, once) = (Instant::now(), given.get_flag("once"));
    let mut last: Option<Taken> = None;
    while !stop.stopped() {
        let mut taken: Vec<Taken> = last.take().into_iter().collect();
        for look in 0..=LOOKS {
            if look > 0 {
                rested(Duration::from_secs_f64(interval) / LOOKS, &stop);
            }
            if look > 0 || taken.is_empty() {
                taken.extend(look_at(&runtime, &client, begun, given)?);
            }
            if stop.stopped() {
                break;
            }
        }
        watch.show(&taken, output, !once)?;
        if once {
            break;
        }
        last = taken.pop();
    }
    Ok(0)
}

fn rested(time: Duration, stop: &Stop) {
    let until = Instant::now() + time;
    while !stop.stopped() && Instant::now() < until {
        std::thread::sleep(until.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
    }
}

fn look_at(
    runtime: &tokio::runtime::Runtime,
    client: &Client,
    begun: Instant,
    given: &ArgMatches,
) -> Result<Option<Taken>, Error> {
    let scrape: Option<Scrape> = runtime.block_on(scraped(client));
    let at = begun.elapsed().as_secs_f64();
    let Some(scrape) = scrape else {
        tell(format_args!("{}: no metrics this time", client.target));
        return Ok(None);
    };
    if let Some(file) = given.get_one::<PathBuf>("save-scrapes") {
        let mut text = format!("{MARK}{at:.3}\n");
        for s in &scrape.samples {
            let labels: Vec<String> = s.labels.iter().map(|(k, v)| format!("{k}={v:?}")).collect();
            let _ = writeln!(text, "{}{{{}}} {}", s.name, labels.join(","), s.value);
        }
        let appended = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut f| f.write_all(text.as_bytes()));
        appended.map_err(|e| failure::at(file, e))?;
    }
    Ok(Reading::of(&scrape).map(|reading| Taken { at, reading }))
}

impl Watch<'_> {
    fn show(&mut self, taken: &[Taken], output: &Output, clear: bool) -> Result<(), Error> {
        let Some(mut view) = view(taken) else { return Ok(()) };
        if let Some(expected) = self.expected_hit {
            view.expect_hits(expected);
        }
        let shown = self.held_against(view)?;
        self.time += shown.view.seconds;
        if let Some((path, interval)) = &self.page {
            self.past.push_back(page::Past::of(self.time, &shown.view));
            if self.past.len() > page::KEPT {
                self.past.pop_front();
            }
            let html = page::html(&shown, self.past.make_contiguous(), *interval);
            let mut whole = Whole::new(path)?;
            whole.file().write_all(html.as_bytes()).map_err(|e| failure::at(path, e))?;
            whole.done()?;
        }
        if output.json {
            // A line for each interval.
            let line = serde_json::to_string(&shown).map_err(|e| Error::said(e.to_string()))?;
            return print(&(line + "\n"));
        }
        let home = if clear && output.style.color { "\x1b[2J\x1b[H" } else { "" };
        print(&format!("{home}{}\n", page::text(&shown, output)))
    }

    fn held_against(&mut self, view: View) -> Result<Shown, Error> {
        let mean = |value: Option<f64>| Times { mean: value, ..Times::default() };
        let o = Observed {
            tool: "its metrics".into(),
            model: view.model.clone(),
            queue_ms: view.queue_ms,
            rate: view.rate.filter(|r| *r > 0.0),
            concurrency: view.running.filter(|n| *n >= 0.5),
            isl: view.isl,
            osl: view.osl,
            cached: view.hit,
            ttft_ms: mean(view.ttft_ms),
            tpot_ms: mean(view.tpot_ms),
            e2e_ms: mean(view.e2e_ms),
            requests_per_s: view.rate,
            output_tok_s: view.output_tok_s,
            engine: Some(view.engine.clone()),
            ..Observed::default()
        };
        let mut shown = Shown {
            view,
            beside: None,
            of_limit: None,
            curve: Vec::new(),
            chips: 1,
            doubled: None,
            usd_per_hour: None,
            tokens_per_usd: None,
            without: None,
            figure: None,
        };
        if shown.view.restarted || o.output_tok_s.is_none_or(|t| t <= 0.0) || o.isl.is_none() || o.osl.is_none() {
            shown.without = Some(says("watch_no_load"));
            return Ok(shown);
        }
        let seen = Seen { found: self.found.as_ref(), measured: None };
        match beside::asked(self.catalog, &mut self.inputs, &self.typed, &o, seen)? {
            Err(why) => shown.without = Some(why),
            Ok((request, answer)) => {
                let limit_ms = beside::limit(self.catalog, &self.inputs, &request, &answer, &o);
                shown.beside = Some(beside::compared(&answer, &o, seen, limit_ms));
                self.placed(&mut shown, request, &answer, &o);
            }
        }
        Ok(shown)
    }

    /// The roofline, the curve, money, and twice the load.
    fn placed(&mut self, shown: &mut Shown, request: Map<String, Value>, answer: &Answer, o: &Observed) {
        shown.chips = answer.chips.max(1);
        if let Some(served) = &answer.served {
            let measured = o.tpot_ms.mean.filter(|t| *t > 0.0).map(|tpot| served.step.ideal_ms / tpot);
            shown.of_limit = Some((served.step.of_limit, measured));
        }
        let asked = |request: Map<String, Value>| {
            Question::Estimate.answer(self.catalog, self.inputs.with_files(request), &inputs::terms())
        };
        let mut twice = request.clone();
        let rate = match (o.rate, o.concurrency) {
            (Some(rate), _) => {
                put(&mut twice, "/rate_per_s", json!(2.0 * rate));
                2.0 * rate
            }
            (None, n) => {
                put(&mut twice, "/concurrency", json!(2.0 * n.unwrap_or(1.0)));
                2.0 * n.unwrap_or(1.0)
            }
        };
        if let Ok(Reply::Estimate(a)) = asked(twice) {
            let s = a.served.as_ref();
            shown.doubled = Some(Doubled {
                rate,
                tpot_ms: s.map(|s| s.tpot_ms.value),
                ttft_ms: s.and_then(|s| s.ttft_ms).map(|t| t.value),
                output_tok_s: s.map(|s| s.output_tok_s.value),
                problem: a.problem.as_ref().map(|p| p.what.clone()),
            });
        }
        if self.curve.is_empty() {
            let mut swept = request.clone();
            for key in ["rate_per_s", "concurrency", "max_load"] {
                swept.remove(key);
            }
            let mut sweep = Map::new();
            sweep.insert("estimate".into(), Value::Object(swept));
            sweep.insert("points".into(), json!(11));
            if let Ok(Reply::EstimateSweep(a)) =
                Question::EstimateSweep.answer(self.catalog, self.inputs.with_files(sweep), &inputs::terms())
            {
                (self.curve, self.figure) = (a.rows, Some(a.figure));
            }
        }
        shown.curve.clone_from(&self.curve);
        shown.figure.clone_from(&self.figure);
        let here = o.tpot_ms.mean.filter(|t| *t > 0.0).zip(o.output_tok_s);
        if let (Some(figure), Some((tpot, output))) = (&mut shown.figure, here) {
            let (x, y) = (1e3 / tpot, output / shown.chips as f64);
            figure.marks = vec![Mark { x, y, label: says("watch_now") }];
        }
        let typed = Value::Object(request);
        let price = typed.pointer("/setting/price_usd_per_chip_hour").and_then(Value::as_f64);
        let listed = || {
            let on = typed.pointer("/setting/on").and_then(Value::as_str)?;
            Some(self.catalog.system(on).ok()?.chip.prices.first()?.value.get() * 3600.0)
        };
        shown.usd_per_hour = price.or_else(listed).map(|p| p * shown.chips as f64);
        shown.tokens_per_usd = shown.usd_per_hour.filter(|p| *p > 0.0).zip(o.output_tok_s).map(|(p, t)| t * 3600.0 / p);
    }
}
