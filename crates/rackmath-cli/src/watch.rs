//! `rackmath watch`: a running server from its own counters, beside what it should do: where it stands on the curve of latency against throughput and
//! under the roofline, what its tokens cost, what twice the load would bring, and what is wrong, in words.

use crate::gauge::beside::{self, Beside, Seen, digits};
use crate::gauge::{client, seconds};
use crate::inputs::{self, Inputs};
use crate::menu::{option, path, switch};
use crate::output::{Output, print};
use crate::{flags, gauge};
use clap::{Arg, ArgMatches};
use rackmath::ask::{Question, Reply};
use rackmath::estimate::{Answer, sweep};
use rackmath::field::{Field, put};
use rackmath::{Catalog, Error};
use rackmath_measure::gauge::{Client, Found, Limits, Stop, discovered, scraped};
use rackmath_measure::prometheus::{Reading, Scrape};
use rackmath_measure::read::{Observed, Times};
use rackmath_measure::watch::{MARK, Taken, View, replayed, view};
use rackmath_report::Style;
use rackmath_report::words::words;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Loads and lengths are what is watched.
const MEASURED: [&str; 7] = ["/concurrency", "/rate_per_s", "/isl", "/osl", "/ttft_ms", "/tpot_ms", "/e2e_ms"];
/// Looks within an interval: an instant is a poor mean.
const LOOKS: u32 = 10;

pub fn fields() -> Vec<Field> {
    gauge::fields().into_iter().filter(|f| !MEASURED.contains(&f.path.as_str())).collect()
}

pub fn args() -> Vec<Arg> {
    vec![
        Arg::new("url")
            .value_name("URL")
            .help("Where the server is, such as http://127.0.0.1:8000")
            .required_unless_present("replay"),
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
        option("served-model-name", "NAME", "Which model, where several are served"),
        option("i-may-load", "HOST", "Says that a host outside this machine and private networks may be asked")
            .action(clap::ArgAction::Append),
        option("key-env", "NAME", "Environment variable with the key; it is neither printed nor saved")
            .default_value("OPENAI_API_KEY"),
        path("ca", "FILE", "Certificates to trust, as PEM, instead of the system's"),
    ]
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
    #[serde(skip_serializing_if = "String::is_empty")]
    without: String,
}

/// The prediction at twice the load.
#[derive(Serialize)]
struct Doubled {
    rate: f64,
    tpot_ms: Option<f64>,
    ttft_ms: Option<f64>,
    output_tok_s: Option<f64>,
    problem: Option<String>,
}

struct Watch<'a> {
    catalog: &'a Catalog,
    inputs: Inputs<'a>,
    typed: Map<String, Value>,
    found: Option<Found>,
    curve: Vec<sweep::Row>,
}

pub fn run(catalog: Catalog, given: &ArgMatches, output: &Output) -> Result<u8, Error> {
    let fields = fields();
    let mut inputs = Inputs::new(&catalog, given);
    let typed = flags::request(&fields, given, &mut inputs)?;
    let interval = seconds(given, "interval")?.unwrap_or(15.0);
    if !(0.1..=86_400.0).contains(&interval) {
        return Err(Error::value("interval", interval, "0.1 s to a day"));
    }
    let mut watch = Watch { catalog: &catalog, inputs, typed, found: None, curve: Vec::new() };
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
    let client = client(given, Limits { total_s: 30.0, head_s: 30.0, ..Limits::default() })?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| Error::said(e.to_string()))?;
    let name = given.get_one::<String>("served-model-name").map(String::as_str);
    let found = runtime
        .block_on(discovered(&client, name))
        .map_err(|fault| Error::said(format!("{}: {fault}", client.target)))?;
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
    let stop = Stop::default();
    let handler = stop.clone();
    let _ = ctrlc::set_handler(move || {
        if handler.stopped() {
            std::process::exit(130);
        }
        handler.now();
    });
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
        eprintln!("{}: no metrics this time", client.target);
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
        appended.map_err(|e| gauge::unwritten(file, e))?;
    }
    Ok(Reading::of(&scrape).map(|reading| Taken { at, reading }))
}

impl Watch<'_> {
    fn show(&mut self, taken: &[Taken], output: &Output, clear: bool) -> Result<(), Error> {
        let Some(view) = view(taken) else { return Ok(()) };
        let shown = self.held_against(view)?;
        if output.json {
            return print(&rackmath::ask::json(&shown)?);
        }
        let home = if clear && output.style.color { "\x1b[2J\x1b[H" } else { "" };
        print(&format!("{home}{}\n", text(&shown, output.style)))
    }

    fn held_against(&mut self, view: View) -> Result<Shown, Error> {
        let mean = |value: Option<f64>| Times { mean: value, ..Times::default() };
        let o = Observed {
            tool: "its metrics".into(),
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
            without: String::new(),
        };
        if shown.view.restarted || o.output_tok_s.is_none_or(|t| t <= 0.0) || o.isl.is_none() || o.osl.is_none() {
            shown.without = "no prediction beside: the metrics of this interval tell no load with lengths".into();
            return Ok(shown);
        }
        let seen = Seen { found: self.found.as_ref(), measured: None };
        match beside::asked(self.catalog, &mut self.inputs, &self.typed, &o, seen)? {
            Err(why) => shown.without = why,
            Ok((request, answer)) => {
                shown.beside = Some(beside::compared(&answer, &o, seen));
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
                problem: a.problem.as_ref().map(|p| words(&p.what)),
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
                self.curve = a.rows;
            }
        }
        shown.curve.clone_from(&self.curve);
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

fn text(s: &Shown, style: Style) -> String {
    let v = &s.view;
    let mut out = format!("{}\n", style.bold(&format!("{} over {} s", v.engine, digits(v.seconds))));
    let or = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), digits);
    let _ = writeln!(
        out,
        "  running {}, waiting {}, KV cache {} full{}",
        or(v.running),
        or(v.waiting),
        v.kv_used.map_or_else(|| "-".into(), |k| format!("{:.1} %", k * 100.0)),
        v.kv_tokens.map_or_else(String::new, |n| format!(" of {} tokens", digits(n)))
    );
    let _ = writeln!(
        out,
        "  {} requests/s; prompts {}, answers {} tokens; {} tokens/s in, {} out; prefix hits {}",
        or(v.rate),
        or(v.isl),
        or(v.osl),
        or(v.input_tok_s),
        or(v.output_tok_s),
        v.hit.map_or_else(|| "-".into(), |h| format!("{:.1} %", h * 100.0))
    );
    let edges = |range: Option<(f64, f64)>| {
        range.map_or_else(String::new, |(low, high)| format!(" (middle {} to {})", digits(low), digits(high)))
    };
    let _ = writeln!(
        out,
        "  means: TTFT {} ms{}, of it waiting {}; TPOT {} ms{}; E2E {} ms; a pass {} ms",
        or(v.ttft_ms),
        edges(v.ttft_p50_ms),
        or(v.queue_ms),
        or(v.tpot_ms),
        edges(v.tpot_p50_ms),
        or(v.e2e_ms),
        or(v.step_ms)
    );
    for alert in &v.alerts {
        let _ = writeln!(out, "  {} {}", style.bad("!"), alert.words());
    }
    if let Some(b) = &s.beside {
        let _ = writeln!(out, "\n  beside {} on {}, {}:", b.model, b.machine, b.engine);
        for r in b.rows.iter().filter(|r| r.measured.is_some() && r.predicted.is_some()) {
            let (m, p) = (
                r.measured.unwrap_or(0.0),
                r.predicted.unwrap_or(rackmath::estimate::Range { value: 0.0, low: 0.0, high: 0.0 }),
            );
            let verdict = if r.inside == Some(true) { style.good("inside") } else { style.bad("outside") };
            let _ = writeln!(
                out,
                "    {:<9} {:>10} {:<6} predicted {:>10}, {} to {}: {verdict}",
                r.name,
                digits(m),
                r.unit,
                digits(p.value),
                digits(p.low),
                digits(p.high)
            );
        }
        for line in &b.blame {
            let _ = writeln!(out, "    - {line}");
        }
    }
    if let Some((predicted, measured)) = s.of_limit {
        let held =
            measured.map_or_else(String::new, |m| format!("; {:.0} % by the measured time per token", m * 100.0));
        let _ = writeln!(out, "\n  roofline: the mean step should run at {:.0} % of it{held}", predicted * 100.0);
    }
    curve(&mut out, s, style);
    if let (Some(hour), Some(per)) = (s.usd_per_hour, s.tokens_per_usd) {
        let _ = writeln!(
            out,
            "  money: {} $/h for {} chips; {} output tokens a dollar",
            digits(hour),
            s.chips,
            digits(per)
        );
    }
    if let Some(d) = &s.doubled {
        let _ = writeln!(
            out,
            "  at twice the load ({}): TTFT {} ms, TPOT {} ms, {} tokens/s out{}",
            digits(d.rate),
            or(d.ttft_ms),
            or(d.tpot_ms),
            or(d.output_tok_s),
            d.problem.as_ref().map_or_else(String::new, |p| format!("; {p}"))
        );
    }
    if !s.without.is_empty() {
        let _ = writeln!(out, "  {}", style.dim(&s.without));
    }
    out
}

/// The predicted curve, and between which of its points the server stands.
fn curve(out: &mut String, s: &Shown, style: Style) {
    let Some(now) = s.view.output_tok_s.filter(|_| !s.curve.is_empty()) else { return };
    let here = now / s.chips as f64;
    let _ = writeln!(out, "  curve:  {}", style.dim("under way   tok/s a chip   TPOT ms   TTFT ms"));
    let at = s.curve.iter().position(|r| r.output_tok_s_per_chip >= here).unwrap_or(s.curve.len());
    for (i, r) in s.curve.iter().enumerate() {
        if i == at {
            let _ = writeln!(
                out,
                "       {}",
                style.bold(&format!(
                    "-> {:>9}   {:>12}   {:>7}   {:>7}   now",
                    s.view.running.map_or_else(|| "-".into(), digits),
                    digits(here),
                    s.view.tpot_ms.map_or_else(|| "-".into(), digits),
                    s.view.ttft_ms.map_or_else(|| "-".into(), digits)
                ))
            );
        }
        let _ = writeln!(
            out,
            "          {:>9}   {:>12}   {:>7}   {:>7}",
            digits(r.concurrency),
            digits(r.output_tok_s_per_chip),
            digits(r.tpot_ms),
            digits(r.ttft_ms)
        );
    }
    if at == s.curve.len() {
        let _ =
            writeln!(out, "       {}", style.bold(&format!("-> above the curve: {} tokens/s a chip", digits(here))));
    }
}
