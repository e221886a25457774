//! `rackmath gauge`: a load against a server, or another tool's result file, with the prediction beside it.
//!
//! Exit codes: 0 measured and as it should be, 1 a target was missed, a figure lies outside its interval or the offered rate was not reached,
//! 2 misuse, 3 not to be judged: the client was late, nobody answered, requests failed, a figure cannot be, or the run was cut short.

pub mod beside;
mod page;
mod row;

use crate::failure;
use crate::flags;
use crate::inputs::{self, Inputs};
use crate::menu::{option, path, switch};
use crate::output::{Output, print, save, tell};
use crate::socket::{self, seconds};
use beside::{Beside, Row, Seen};
use clap::{Arg, ArgMatches};
use rackmath::ask::Question;
use rackmath::field::Field;
use rackmath::limit::AtMost;
use rackmath::remark::{Remark, says};
use rackmath::{Catalog, Error, estimate};
use rackmath_measure::gauge::{
    Arrivals, Ceiling, Ended, Endpoint, FOR_P99, Found, KEPT_BYTES, Lengths, Limits, MOST_REQUESTS, Measured, Plan,
    Server, Sharing, Step, Stop, Targets, knee, replayed,
};
use rackmath_measure::read::{self, Observed};
use rackmath_report::words::words;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Fields of an estimate that a measurement answers itself, or that it has no use for.
const NOT_ASKED: [&str; 7] = ["/seek", "/max_load", "/prefix_hit", "/loras", "/media", "/embed", "/changes"];

/// The fields of an estimate as flags of a measurement: the model is named by a flag, as the address has its place.
pub fn fields() -> Vec<Field> {
    let asked = |f: &Field| !NOT_ASKED.iter().any(|path| f.path == *path || f.path.starts_with(&format!("{path}/")));
    let mut fields: Vec<Field> = Question::Estimate.fields().into_iter().filter(asked).collect();
    for field in &mut fields {
        field.position = None;
    }
    fields
}

pub fn args() -> Vec<Arg> {
    let number = |name, value, help| option(name, value, help);
    let own = vec![
        socket::url("read"),
        path("read", "FILE", "Read a result file of vllm bench serve, SGLang, GuideLLM, AIPerf, genai-perf, inference-perf or InferenceX instead")
            .conflicts_with("url"),
        number("duration", "TIME", "How long to send [default: 60s]"),
        number("requests", "N", "How many requests to send, instead"),
        number("arrivals", "HOW", "How requests come: poisson, constant, or bursts=CV").default_value("poisson"),
        path("trace", "FILE", "Replay a trace (Mooncake, Azure, BurstGPT, CSV): its times, lengths and shared prefixes"),
        number("speed", "X", "Replay it so many times as fast").default_value("1").requires("trace"),
        number("ladder", "FROM..TO", "Raise the rate by a factor until it no longer holds, such as 1..64, 1..64x1.5").conflicts_with("trace"),
        number("length-spread", "SHARE", "Lengths lie evenly between this much below and above their mean").default_value("0"),
        number("shared-prefix", "TOKENS", "Leading tokens that prompts have in common").default_value("0"),
        number("prefix-groups", "N", "So many different common prefixes").default_value("1"),
        number("turns", "N", "Turns of a conversation; each prompt begins with the one before").default_value("1"),
        number("think", "TIME", "Time between an answer and the next turn").default_value("0s"),
        option("endpoint", "WHICH", "tokens: /v1/completions with token numbers; completions, chat: with text [default: tokens where the engine takes them]")
            .value_parser(["tokens", "completions", "chat"]),
        number("warmup", "N", "Requests that are sent first and not counted").default_value("8"),
        number("timeout", "TIME", "Longest answer").default_value("600s"),
        number("stall", "TIME", "Longest silence within an answer").default_value("60s"),
        number("seed", "N", "Seed of times and lengths; prompts are new in every run").default_value("1"),
        switch("same-prompts", "The prompts of the seed too: those of the last run, which a prefix cache may hold"),
        number("tokens-at-most", "N", "Stop before more tokens than this can be used, in and out"),
        number("spend-at-most", "DOLLARS", "Stop before more than this can be spent, such as 2$; needs --token-price").requires("token-price"),
        number("token-price", "IN/OUT", "Dollars for a million tokens, in and out, such as 0.5/1.5"),
        path("save", "FILE", "Save the figures as rows in the form of validation/ (needs --on and the model)"),
        path("records", "FILE", "Save every request as JSON lines: when it was due, sent, and each chunk"),
        switch("no-predict", "Only measure"),
    ];
    own.into_iter().chain(socket::args()).collect()
}

/// Shown under the help.
pub const CODES: &str = "Exit codes: 0 as it should be; 1 a target (--ttft, --tpot, --e2e) was missed, a figure lies outside its 80 % interval, or\nthe offered rate was not reached; 2 misuse; 3 not to be judged: the client was late, nobody answered, more than 1 % of\nrequests failed, a figure of a file cannot be, or the run was cut short.";

/// A word as a field of an estimate would read it: 1k, 30ms, 50%.
pub fn amount(given: &ArgMatches, name: &str, like: &str) -> Result<Option<f64>, Error> {
    let Some(text) = given.get_one::<String>(name) else { return Ok(None) };
    let fields = Question::Estimate.fields();
    let field = fields.iter().find(|f| f.path == like);
    let value = field.and_then(|f| f.parse(text).ok()).and_then(|v| v.as_f64()).or_else(|| text.parse().ok());
    let wrong = || {
        Error::value(
            name,
            text,
            if like.ends_with("_ms") { "a time such as 30ms, 60s" } else { "a number such as 64 or 1k" },
        )
    };
    value.filter(|v| v.is_finite() && *v >= 0.0).map(Some).ok_or_else(wrong)
}

fn whole(given: &ArgMatches, name: &str) -> Result<Option<u64>, Error> {
    Ok(amount(given, name, "/isl")?.map(|n| n.round() as u64))
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a Found>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<&'a Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<&'a Observed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ladder: Vec<&'a Step>,
    figures: &'a [Row],
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<&'a Beside>,
    missed: &'a [Remark],
    exit_code: u8,
}

/// What is printed as JSON where nothing was measured: standard output is one document whatever happens.
#[derive(Serialize)]
struct Failed {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    exit_code: u8,
}

/// Several results of one file.
#[derive(Serialize)]
struct Several<'a> {
    results: &'a [Value],
    exit_code: u8,
}

pub fn run(catalog: Catalog, given: &ArgMatches, output: &Output) -> Result<u8, Error> {
    let done = answered(catalog, given, output);
    if let (Err(error), true) = (&done, output.json) {
        let shown = error.shown(str::to_owned, |field| format!("--{}", field.replace('_', "-")));
        print(&rackmath::ask::json(&Failed { error: shown.problem, hint: shown.hint, exit_code: 2 })?)?;
    }
    done
}

fn answered(catalog: Catalog, given: &ArgMatches, output: &Output) -> Result<u8, Error> {
    let fields = fields();
    let mut inputs = Inputs::new(&catalog, given);
    let typed = flags::request(&fields, given, &mut inputs)?;
    let request: estimate::Request =
        serde_json::from_value(Value::Object(typed.clone())).map_err(|e| Error::said(e.to_string()))?;
    match given.get_one::<PathBuf>("read") {
        Some(file) => from_file(&catalog, &mut inputs, &typed, &request, file, given, output),
        None => from_server(&catalog, &mut inputs, &typed, &request, given, output),
    }
}

/// Predicts beside, unless that is not wanted or not possible, which is said.
fn predicted(
    catalog: &Catalog,
    inputs: &mut Inputs<'_>,
    typed: &Map<String, Value>,
    o: &Observed,
    seen: Seen<'_>,
    given: &ArgMatches,
) -> Result<Result<Beside, Remark>, Error> {
    if given.get_flag("no-predict") {
        return Ok(Err(Remark::default()));
    }
    beside::beside(catalog, inputs, typed, o, seen)
}

fn from_file(
    catalog: &Catalog,
    inputs: &mut Inputs<'_>,
    typed: &Map<String, Value>,
    request: &estimate::Request,
    file: &Path,
    given: &ArgMatches,
    output: &Output,
) -> Result<u8, Error> {
    let name = file.display().to_string();
    let (mut code, mut answers) = (0, Vec::new());
    for mut o in read::read(&name, &inputs::trace(file)?)? {
        // A load that is typed wins over the file's; lengths that the file does not say may be typed.
        if request.rate_per_s.is_some() || request.concurrency.is_some() {
            (o.rate, o.concurrency) = (request.rate_per_s, request.concurrency);
        }
        o.isl = o.isl.or_else(|| typed.contains_key("isl").then_some(request.isl));
        o.osl = o.osl.or_else(|| typed.contains_key("osl").then_some(request.osl));
        let beside = predicted(catalog, inputs, typed, &o, Seen::default(), given)?;
        let missed = missed(request, &o);
        let outside = beside.as_ref().is_ok_and(Beside::outside);
        let doubtful = !page::doubts(&o).is_empty();
        let own = if doubtful { 3 } else { u8::from(!missed.is_empty() || outside || o.unreached().is_some()) };
        code = code.max(own);
        let figures = beside.as_ref().map_or_else(|_| beside::alone(&o), |b| b.rows.clone());
        if output.json {
            let answer = Answer {
                found: None,
                measured: None,
                observed: Some(&o),
                ladder: vec![],
                figures: &figures,
                beside: beside.as_ref().ok(),
                missed: &missed,
                exit_code: own,
            };
            answers.push(serde_json::to_value(&answer).map_err(|e| Error::said(e.to_string()))?);
        } else {
            print(&page::read(&o, &figures, &beside, &missed, output))?;
        }
        saved(given, catalog, typed, &o, None)?;
    }
    match &answers[..] {
        [] => {}
        [one] => print(&rackmath::ask::json(one)?)?,
        all => print(&rackmath::ask::json(&Several { results: all, exit_code: code })?)?,
    }
    Ok(code)
}

/// Targets that the measurement misses.
fn missed(request: &estimate::Request, o: &Observed) -> Vec<Remark> {
    let each =
        [("TTFT", request.ttft_ms, o.ttft_ms), ("TPOT", request.tpot_ms, o.tpot_ms), ("E2E", request.e2e_ms, o.e2e_ms)];
    let miss = |(name, target, times): (&str, Option<AtMost>, read::Times)| {
        let target = target?;
        let (which, value) = match target.percentile {
            None => ("mean".to_owned(), times.mean),
            Some(50.0) => ("p50".to_owned(), times.p50),
            Some(90.0) => ("p90".to_owned(), times.p90),
            Some(99.0) => ("p99".to_owned(), times.p99),
            Some(p) => (format!("p{p}"), None),
        };
        match value {
            Some(value) if value <= target.ms => None,
            Some(value) => Some(
                says("gauge_missed")
                    .with("figure", name)
                    .with("which", which)
                    .with("value", value)
                    .with("target", target.ms),
            ),
            None => Some(says("gauge_unmeasured").with("figure", name).with("which", which).with("least", FOR_P99)),
        }
    };
    each.into_iter().filter_map(miss).collect()
}

fn plan(given: &ArgMatches, typed: &Map<String, Value>, request: &estimate::Request) -> Result<(Plan, f64), Error> {
    let duration = seconds(given, "duration")?.unwrap_or(60.0);
    let word = given.get_one::<String>("arrivals").map_or("poisson", String::as_str);
    let cv = match word.split_once('=') {
        None if word == "poisson" => 1.0,
        None if word == "constant" => 0.0,
        Some(("bursts", cv)) => {
            cv.parse().map_err(|_| Error::value("arrivals", word, "bursts=CV, such as bursts=3"))?
        }
        _ => return Err(Error::value("arrivals", word, "poisson, constant or bursts=CV")),
    };
    let open = |rate| Arrivals::Open { rate, cv };
    let arrivals = match (request.rate_per_s, request.concurrency) {
        (Some(_), Some(_)) => {
            return Err(Error::said("a rate and a concurrency")
                .hint("expected one: --rate for arrivals of their own, --concurrency for a closed loop"));
        }
        (Some(rate), None) => open(rate),
        (None, Some(n)) => Arrivals::Closed { concurrency: n.round().max(0.0) as usize },
        (None, None) => open(1.0),
    };
    let turns = whole(given, "turns")?.unwrap_or(1) as u32;
    let requests = match (whole(given, "requests")?, &arrivals) {
        (Some(n), _) => n as usize,
        (None, Arrivals::Open { rate, .. }) => (rate * duration).ceil().max(1.0) as usize,
        // As many as can be asked in the time; the time ends it.
        (None, _) => MOST_REQUESTS / (turns.max(1) as usize),
    };
    let timed = given.get_one::<String>("requests").is_none() || given.get_one::<String>("duration").is_some();
    let length = |key: &str, n: f64| if typed.contains_key(key) { n } else { n.min(256.0) };
    let plan = Plan {
        until_s: timed.then_some(duration),
        arrivals,
        lengths: Lengths {
            input: length("isl", request.isl).round() as u32,
            output: length("osl", request.osl).round() as u32,
            spread: amount(given, "length-spread", "/isl")?.unwrap_or(0.0),
        },
        sharing: Sharing {
            prefix: whole(given, "shared-prefix")?.unwrap_or(0) as u32,
            groups: whole(given, "prefix-groups")?.unwrap_or(1) as u32,
            turns,
            think_s: seconds(given, "think")?.unwrap_or(0.0),
        },
        requests,
        ceiling: ceiling(given)?,
        targets: Targets {
            ttft: request.ttft_ms.map(|t| t.ms * 1e-3),
            tpot: request.tpot_ms.map(|t| t.ms * 1e-3),
            e2e: request.e2e_ms.map(|t| t.ms * 1e-3),
        },
        seed: whole(given, "seed")?.unwrap_or(1),
        keep: if given.get_one::<PathBuf>("records").is_some() { usize::MAX } else { KEPT_BYTES },
    };
    Ok((plan, duration))
}

fn ceiling(given: &ArgMatches) -> Result<Ceiling, Error> {
    let price = match given.get_one::<String>("token-price") {
        None => (0.0, 0.0),
        Some(text) => {
            let wrong =
                || Error::value("token-price", text, "dollars for a million tokens in and out, such as 0.5/1.5");
            let (a, b) = text.split_once('/').ok_or_else(wrong)?;
            let read = |t: &str| {
                t.trim().trim_matches('$').parse::<f64>().ok().filter(|p| p.is_finite() && *p >= 0.0).ok_or_else(wrong)
            };
            (read(a)?, read(b)?)
        }
    };
    let dollars = match given.get_one::<String>("spend-at-most") {
        None => None,
        Some(text) => {
            let n = text.trim().trim_matches('$').trim().parse::<f64>().ok().filter(|d| d.is_finite() && *d > 0.0);
            Some(n.ok_or_else(|| Error::value("spend-at-most", text, "dollars, such as 2$"))?)
        }
    };
    Ok(Ceiling { tokens: amount(given, "tokens-at-most", "/isl")?, dollars, price })
}

fn from_server(
    catalog: &Catalog,
    inputs: &mut Inputs<'_>,
    typed: &Map<String, Value>,
    request: &estimate::Request,
    given: &ArgMatches,
    output: &Output,
) -> Result<u8, Error> {
    let (mut plan, duration) = plan(given, typed, request)?;
    let limits = Limits {
        total_s: seconds(given, "timeout")?.unwrap_or(600.0),
        stall_s: seconds(given, "stall")?.unwrap_or(60.0),
        ..Limits::default()
    };
    let limits = Limits { head_s: limits.head_s.min(limits.total_s), ..limits };
    let schedule = match given.get_one::<PathBuf>("trace") {
        None => plan.schedule()?,
        Some(file) => {
            let trace = rackmath_spec::trace::read(&file.display().to_string(), &inputs::trace(file)?)?;
            let speed = amount(given, "speed", "/isl")?.unwrap_or(1.0);
            plan.arrivals = Arrivals::Trace { speed };
            plan.until_s = seconds(given, "duration")?;
            replayed(&trace, speed, whole(given, "requests")?.unwrap_or(u64::MAX) as usize)?
        }
    };
    let stop = socket::stopping();
    let endpoint = given.get_one::<String>("endpoint").map(|e| match e.as_str() {
        "tokens" => Endpoint::Tokens,
        "completions" => Endpoint::Completions,
        _ => Endpoint::Chat,
    });
    // A prompt that an earlier run sent would be found in the server's cache.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
    let seed = if given.get_flag("same-prompts") { plan.seed } else { plan.seed ^ now };
    let server = match Server::find(socket::client(given, limits)?, socket::model(given), endpoint, seed) {
        Ok(server) => server,
        Err(error) => return nobody(&error, output),
    };
    let warmup = whole(given, "warmup")?.unwrap_or(8) as usize;
    let engine = server.found.engine.as_ref().map_or_else(|| says("gauge_unknown_engine"), Remark::from);
    let begins =
        says("gauge_begins").with("target", server.client.target.to_string()).with("model", &server.found.model);
    let begins =
        begins.with("engine", engine).with("warmup", warmup).with("load", page::intention(&plan, schedule.len()));
    tell(format_args!("{}", words(&begins)));
    server.warm(&plan, warmup, &stop)?;
    if let Some(rungs) = given.get_one::<String>("ladder") {
        return climbed(&server, &plan, rungs, duration, &stop, output);
    }
    let measured = server.measure(&plan, schedule, &stop)?;
    if let Some(path) = given.get_one::<PathBuf>("records") {
        let lines: Result<Vec<String>, _> = measured.records.iter().map(serde_json::to_string).collect();
        let text = lines.map_err(|e| Error::said(e.to_string()))?.join("\n") + "\n";
        save(path, text.as_bytes())?;
    }
    let mut o = Observed::of(&measured, "rackmath gauge");
    o.model = Some(server.found.model.clone());
    match plan.arrivals {
        Arrivals::Closed { concurrency } => o.concurrency = Some(concurrency as f64),
        _ => o.rate = Some(measured.summary.offered_per_s),
    }
    let seen = Seen { found: Some(&server.found), measured: Some(&measured) };
    let answered = measured.summary.counts.answered > 0;
    let beside = if answered { predicted(catalog, inputs, typed, &o, seen, given)? } else { Err(says("gauge_nobody")) };
    let missed = if answered { missed(request, &o) } else { vec![] };
    let outside = beside.as_ref().is_ok_and(Beside::outside);
    let doubtful = !page::doubts(&o).is_empty();
    let unjudged =
        !answered || doubtful || measured.summary.client.tainted || measured.summary.ended != Ended::Complete;
    let code = if unjudged { 3 } else { u8::from(!missed.is_empty() || outside || o.unreached().is_some()) };
    let figures = beside.as_ref().map_or_else(|_| beside::alone(&o), |b| b.rows.clone());
    if output.json {
        let answer = Answer {
            found: Some(&server.found),
            measured: Some(&measured),
            observed: None,
            ladder: vec![],
            figures: &figures,
            beside: beside.as_ref().ok(),
            missed: &missed,
            exit_code: code,
        };
        print(&rackmath::ask::json(&answer)?)?;
    } else {
        print(&page::measured(&server, &plan, (&measured, &o), &figures, &beside, &missed, output))?;
    }
    if answered {
        saved(given, catalog, typed, &o, Some(&server.found))?;
    }
    Ok(code)
}

/// Rows of what can be judged; of the rest that there are none.
fn saved(
    given: &ArgMatches,
    catalog: &Catalog,
    typed: &Map<String, Value>,
    o: &Observed,
    found: Option<&Found>,
) -> Result<(), Error> {
    let Some(path) = given.get_one::<PathBuf>("save") else { return Ok(()) };
    if !page::doubts(o).is_empty() {
        tell(format_args!("{}", words(&says("gauge_not_saved").with("file", path.display().to_string()))));
        return Ok(());
    }
    row::save(path, catalog, typed, o, found)
}

/// Nobody answered: said as an error is, but what was typed was no misuse.
pub fn nobody(error: &Error, output: &Output) -> Result<u8, Error> {
    tell(failure::text(error, &fields(), &[]).trim_end());
    if output.json {
        let shown = error.shown(str::to_owned, |field| format!("--{}", field.replace('_', "-")));
        print(&rackmath::ask::json(&Failed { error: shown.problem, hint: shown.hint, exit_code: 3 })?)?;
    }
    Ok(3)
}

fn climbed(server: &Server, plan: &Plan, rungs: &str, seconds: f64, stop: &Stop, output: &Output) -> Result<u8, Error> {
    let wrong =
        || Error::value("ladder", rungs, "rates from..to, such as 1..64, or 1..64x1.5 with the factor between them");
    let (from, rest) = rungs.split_once("..").ok_or_else(wrong)?;
    let (to, factor) = rest.split_once('x').unwrap_or((rest, "2"));
    let read = |t: &str| t.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0).ok_or_else(wrong);
    let (from, to, factor) = (read(from)?, read(to)?, read(factor)?);
    if factor <= 1.01 || to < from {
        return Err(wrong());
    }
    let rates: Vec<f64> =
        std::iter::successors(Some(from), |r| Some(r * factor)).take_while(|r| *r <= to * 1.000_001).take(64).collect();
    let each = (seconds / rates.len() as f64).max(2.0);
    let steps = server.ladder(plan, &rates, each, stop, |step| {
        let verdict = says(if step.holds() { "gauge_holds" } else { "gauge_holds_not" });
        tell(format_args!("{}", words(&says("gauge_rung").with("rate", step.rate).with("verdict", verdict))));
    })?;
    let (held, failed) = knee(&steps);
    let tainted = steps.iter().any(|s| s.measured.summary.client.tainted);
    let code = if tainted || stop.stopped() { 3 } else { u8::from(held.is_none()) };
    if output.json {
        let answer = Answer {
            found: Some(&server.found),
            measured: None,
            observed: None,
            ladder: steps.iter().collect(),
            figures: &[],
            beside: None,
            missed: &[],
            exit_code: code,
        };
        print(&rackmath::ask::json(&answer)?)?;
    } else {
        print(&page::ladder(server, &steps, held, failed, output))?;
    }
    Ok(code)
}
