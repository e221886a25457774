//! What is no question: the headline, schemas, any question as JSON, the server, completions.

use crate::inputs;
use crate::menu::{self, option, path, switch};
use crate::output::{Output, print};
use crate::still;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use rackmath::ask::{self, Question, Reply};
use rackmath::{Catalog, Error, curve, reversible, step};
use rackmath_report::text;
use rackmath_server::{Address, AnswerRules, Log, Options, serve};
use serde::Serialize;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub fn arguments(line: Command, name: &str) -> Command {
    let question = || {
        let names = Question::ALL.iter().map(|q| q.name()).collect::<Vec<_>>();
        Arg::new("question").required(true).value_parser(names).help("Which question")
    };
    let file = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
    };
    match name {
        "schema" => line.args([
            question().required(false).required_unless_present_any(["llms", "python"]),
            switch("llms", "The file llms.txt instead, which names all questions"),
            switch("python", "The stubs of the Python package instead, made of all schemas").conflicts_with("llms"),
        ]),
        "ask" => {
            let request = file("request", "FILE", "File with the request, or - for standard input");
            line.args([question(), request.default_value("-")])
        }
        "merge" => line.args([
            file("parts", "FILES", "Files that rackmath plan --shard or rackmath sweep --shard wrote, or a folder of them: every shard, in any order")
                .required(true)
                .num_args(1..),
            path("svg", "FILE", "Write the frontier as SVG"),
            path("png", "FILE", "Write the frontier as PNG"),
            path("csv", "FILE", "Write the frontier as CSV"),
            path("out", "FILE", "Where the rows of a sweep go [default: standard output]").short('o'),
        ]),
        "web" => line.args([
            option("host", "ADDRESS", "Address to listen on; another than the loopback lets other machines in")
                .default_value("127.0.0.1")
                .value_parser(value_parser!(IpAddr)),
            option("port", "PORT", "Port to listen on; 0 takes any that is free")
                .default_value("7225")
                .value_parser(value_parser!(u16)),
            option("socket", "FILE", "Listen at a socket file instead of an address").value_parser(value_parser!(PathBuf)),
            option("token", "TOKEN", "Answer only who knows it: authorization: Bearer TOKEN, or /enter?token=TOKEN in a browser; RACKMATH_TOKEN unless given"),
            option("base", "PATH", "The path under which a proxy offers it, such as /rackmath"),
            switch("behind-proxy", "Count callers by what the proxy in front says (x-forwarded-for)"),
            option("patience", "SECONDS", "Longest answer, and most work a question may be").default_value("30"),
            option("log", "HOW", "How requests are logged on standard error")
                .default_value("lines")
                .value_parser(["lines", "json", "none"]),
            switch("open", "Open the page in the browser"),
            path("static", "DIR", "Write the whole page into a folder that any file host serves, with the engine in it, and end"),
            path("wasm", "FILE", "With --static: the engine for browsers; the one beside this program unless given"),
        ]),
        "mcp" => line.arg(
            option("patience", "SECONDS", "Longest answer, and most work a question may be")
                .default_value("30")
                .value_parser(seconds),
        ),
        "glossary" => line.arg(Arg::new("word").num_args(0..).help("A word, or a part of one")),
        "templates" => line.arg(Arg::new("name").help("Which file; all by name when empty")),
        "man" => line.args([
            Arg::new("command").help("Which command; the overview when empty"),
            path("into", "DIR", "Write the pages of all commands into a folder instead"),
        ]),
        "fit" => line.args(crate::fit::arguments()),
        "probe" => line.args(crate::probe::arguments()),
        _ => line.arg(Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("Which shell")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.trim_end_matches('s').parse::<f64>().ok().filter(|s| (0.1..=86_400.0).contains(s));
    seconds.ok_or_else(|| "expected seconds, 0.1 to 86,400".to_owned())
}

#[derive(Serialize)]
struct Headline {
    step: step::Answer,
    curve: curve::Answer,
}

/// `rackmath` alone: the lecture's central picture for a real model on a real rack.
pub fn headline(catalog: &Catalog, output: &Output) -> Result<(), Error> {
    let step = step::answer(catalog, &step::Request::default())?;
    let curve = curve::answer(catalog, &curve::Request::default())?;
    let both = Headline { step, curve };
    if output.json {
        return print(&ask::versioned(&both)?);
    }
    print(&text::headline(&both.step, &both.curve, output.detail, output.style))
}

fn question(given: &ArgMatches) -> Result<Question, Error> {
    Question::find(given.get_one::<String>("question").map_or("", String::as_str))
}

pub fn schema(_: Catalog, given: &ArgMatches, _: &Output) -> Result<(), Error> {
    if given.get_flag("llms") {
        return print(&crate::llms::text());
    }
    if given.get_flag("python") {
        return print(&crate::stubs::text());
    }
    print(&ask::json(&question(given)?.schema())?)
}

pub fn ask(catalog: Catalog, given: &ArgMatches, _: &Output) -> Result<(), Error> {
    let request = given.get_one::<PathBuf>("request").map_or(Path::new("-"), PathBuf::as_path);
    let body = if request == Path::new("-") {
        let mut text = String::new();
        let most = rackmath_spec::file::MAX_BYTES;
        let read = std::io::stdin().take(most).read_to_string(&mut text);
        read.map_err(|e| Error::said(format!("standard input: {e}")))?;
        text
    } else {
        inputs::read(request)?
    };
    print(&question(given)?.ask(&catalog, &body)?)
}

pub fn web(catalog: Catalog, given: &ArgMatches, _: &Output) -> Result<(), Error> {
    if let Some(folder) = given.get_one::<PathBuf>("static") {
        return still::write(folder, given.get_one::<PathBuf>("wasm").map(PathBuf::as_path));
    }
    if given.contains_id("wasm") && given.get_one::<PathBuf>("wasm").is_some() {
        return Err(Error::said("--wasm without --static").hint("rackmath web --static DIR --wasm FILE"));
    }
    rackmath_measure::memory::few_arenas();
    let usual = Options::default();
    let text = |name: &str| given.get_one::<String>(name).cloned();
    let patience = text("patience").unwrap_or_default();
    let seconds = seconds(&patience).map_err(|_| Error::value("patience", &patience, "seconds, 0.1 to 86,400"))?;
    let base = text("base").unwrap_or_default();
    let base = base.trim_end_matches('/');
    let sound = base.is_empty()
        || (base.starts_with('/') && base.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-_.".contains(&b)));
    if !sound {
        return Err(Error::value("base", base, "a path such as /rackmath"));
    }
    let token = text("token").or_else(|| std::env::var("RACKMATH_TOKEN").ok()).filter(|token| !token.is_empty());
    if token.as_ref().is_some_and(|t| t.len() < 8 || !t.bytes().all(|b| b.is_ascii_graphic() && !b";,\"".contains(&b)))
    {
        return Err(Error::value("token", "(not shown)", "at least 8 letters, digits or signs, without blanks"));
    }
    let log = match text("log").as_deref() {
        _ if given.get_flag("quiet") => Log::None,
        Some("none") => Log::None,
        Some("json") => Log::Json,
        _ => Log::Lines,
    };
    let options = Options {
        host: given.get_one("host").copied().unwrap_or(usual.host),
        port: given.get_one("port").copied().unwrap_or(usual.port),
        socket: given.get_one::<PathBuf>("socket").cloned(),
        log,
        answers: AnswerRules {
            patience: Duration::from_secs_f64(seconds),
            tidy: rackmath_measure::memory::give_back,
            ..usual.answers
        },
        token,
        proxied: given.get_flag("behind-proxy"),
        base: base.to_owned(),
        ..usual
    };
    let base = options.base.clone();
    let ready = |address: Address| match address {
        Address::Socket(path) => eprintln!("the blackboard listens at {}; Ctrl-C stops", path.display()),
        Address::Tcp(address) => {
            let url = format!("http://{address}{base}/");
            eprintln!(
                "the blackboard is at {url}  (the questions under {url}api, their document at {url}docs.html; Ctrl-C stops)"
            );
            if given.get_flag("open") && !opened(&url) {
                eprintln!("no browser could be opened; open {url} yourself");
            }
        }
    };
    serve(catalog, options, ready).map_err(|e| {
        let error = Error::said(e.to_string());
        if let Some(hint) = e.hint() { error.hint(hint) } else { error }
    })
}

fn opened(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut browser = std::process::Command::new(program);
    browser.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}

/// A script that knows every flag of every command.
pub fn completions(_: Catalog, given: &ArgMatches, _: &Output) -> Result<(), Error> {
    let mut whole = menu::command(&[], None, &[]);
    for entry in menu::all() {
        let fields = entry.fields();
        whole = whole.mut_subcommand(entry.name, |line| menu::full(line, entry, &fields));
    }
    let mut script = Vec::new();
    let shell = given.get_one::<Shell>("shell").copied().unwrap_or(Shell::Bash);
    clap_complete::generate(shell, &mut whole, "rackmath", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// How long a step of each kind takes here: the only numbers that differ from one run to the next.
pub fn times(reply: &Reply, output: &Output) -> Result<(), Error> {
    let Reply::Reversible(answer) = reply else { return Ok(()) };
    if output.json {
        return Ok(());
    }
    let times: Vec<f64> = (0..answer.ways.len()).map(|way| median_step(&answer.request, way)).collect();
    print(&text::reversible_times(answer, &times, output.style))
}

fn median_step(request: &reversible::Request, way: usize) -> f64 {
    let mut times = [0; 11].map(|_| {
        let start = Instant::now();
        std::hint::black_box(reversible::measured_step(request, way));
        start.elapsed().as_secs_f64()
    });
    times.sort_by(f64::total_cmp);
    times[5]
}
