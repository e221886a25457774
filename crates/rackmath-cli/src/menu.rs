//! What can be typed after `rackmath`: every question, views of some, and a few tools. Only the chosen one gets its flags.

use crate::output::Output;
use crate::{flags, gauge, tools, watch};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use rackmath::ask::Question;
use rackmath::field::Field;
use rackmath::{Catalog, Error};
use rackmath_report::Style;
use rackmath_report::reply::{Part, pictures};
use std::path::PathBuf;

#[derive(Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    about: &'static str,
    examples: &'static [&'static str],
    pub does: Does,
}

#[derive(Clone, Copy)]
pub enum Does {
    Answer(Question, Part),
    Tool(fn(Catalog, &ArgMatches, &Output) -> Result<(), Error>),
    /// What is measured beside a prediction: its fields are flags as well, and its exit code is a verdict.
    Measure {
        run: fn(Catalog, &ArgMatches, &Output) -> Result<u8, Error>,
        fields: fn() -> Vec<Field>,
        args: fn() -> Vec<Arg>,
    },
    /// A question over axes of its fields, once it is known which.
    Sweep(Option<Question>),
}

const VIEWS: &[Entry] = &[
    Entry {
        name: "memory",
        about: "What each chip holds, and whether it fits",
        examples: &[
            "rackmath memory deepseek-v3 --on hgx-h200 --tp 8 --batch 64 --context 32k",
            "rackmath memory qwen3-32b --on h100 --context 32k",
        ],
        does: Does::Answer(Question::Layout, Part::Memory),
    },
    Entry {
        name: "traffic",
        about: "Where the traffic of a decode step goes, by network",
        examples: &[
            "rackmath traffic deepseek-v3 --on hgx-h800 --chips 128 --dp 128 --ep 128 --batch 16384",
            "rackmath traffic llama-3.1-70b --on 8xh200 --tp 8",
        ],
        does: Does::Answer(Question::Layout, Part::Traffic),
    },
    Entry {
        name: "breakeven",
        about: "The same as own: own machines against a provider",
        examples: &[
            "rackmath breakeven llama-3.1-70b --on 8xh100 --provider-price 0.6/2.4/0.06",
            "rackmath breakeven llama-3.1-70b --on 8xh100 --provider-price 0.6/2.4/0.06 --hit 50%",
        ],
        does: Does::Answer(Question::Own, Part::All),
    },
];

const TOOLS: &[Entry] = &[
    Entry {
        name: "sweep",
        about: "One question over axes of its fields, a row for every point: CSV or JSON lines, in shards if wanted",
        examples: &[
            "rackmath sweep estimate llama-3.1-70b --on 8xh200 --over concurrency=1..512 --over tp=1,2,4,8 -o rows.csv",
            "rackmath sweep step deepseek-v3 --over batch=1..8192*2 --columns time_s,binding",
            "rackmath sweep plan llama-3.1-8b --on 4xh100 -o rows.csv  # every configuration of a plan",
        ],
        does: Does::Sweep(None),
    },
    Entry {
        name: "merge",
        about: "Join the shards of a plan or of a sweep into the answer of the whole",
        examples: &[
            "for i in 1 2; do rackmath plan llama-3.1-8b --on 4xh100 --shard $i/2 -o part-$i.json; done",
            "rackmath merge part-1.json part-2.json",
            "rackmath sweep step llama-3.1-8b --over batch=1..8 --shard 1/2 -o parts/",
            "rackmath sweep step llama-3.1-8b --over batch=1..8 --shard 2/2 -o parts/",
            "rackmath merge parts/ -o rows.csv",
        ],
        does: Does::Tool(crate::plan::merge),
    },
    Entry {
        name: "schema",
        about: "JSON Schema of a question's request and answer",
        examples: &["rackmath schema step", "rackmath schema --llms > llms.txt"],
        does: Does::Tool(tools::schema),
    },
    Entry {
        name: "ask",
        about: "Any question as JSON: a request in, the answer out, byte for byte as the server gives it",
        examples: &[
            "echo '{\"batch\": 64}' | rackmath ask step",
            "rackmath ask step examples/request.json",
            "A request may bring files by name: {\"files\": {\"config.json\": {...}}, \"setting\": {\"model\": \"config.json\"}}",
        ],
        does: Does::Tool(tools::ask),
    },
    Entry {
        name: "web",
        about: "The blackboard in a browser: every chapter live, the tools, and the questions over HTTP",
        examples: &["rackmath web", "rackmath web --port 9000 --open"],
        does: Does::Tool(tools::web),
    },
    Entry {
        name: "mcp",
        about: "The questions as tools for assistants: Model Context Protocol on standard input and output",
        examples: &[
            "rackmath mcp",
            "rackmath mcp --catalog examples/catalog",
            "In a client's settings: {\"mcpServers\": {\"rackmath\": {\"command\": \"rackmath\", \"args\": [\"mcp\"]}}}",
        ],
        does: Does::Tool(crate::mcp::run),
    },
    Entry {
        name: "probe",
        about: "This machine on its roofline: memory, multiply-adds, accelerators, measured in under a minute",
        examples: &["rackmath probe", "rackmath probe --save my.toml && rackmath estimate llama-3.1-8b --on ./my.toml"],
        does: Does::Tool(crate::probe::run),
    },
    Entry {
        name: "fit",
        about: "Constants of your own server from your own measurements, as a small file for --with",
        examples: &[
            "rackmath fit examples/rows.toml",
            "rackmath fit examples/rows.toml --save my-constants.toml",
            "rackmath estimate llama-3.1-8b --on 1xh200 --with my-constants.toml",
        ],
        does: Does::Tool(crate::fit::run),
    },
    Entry {
        name: "glossary",
        about: "The words of this field in a line each, and the command that goes into them",
        examples: &["rackmath glossary", "rackmath glossary ridge"],
        does: Does::Tool(crate::glossary::run),
    },
    Entry {
        name: "templates",
        about: "Files to begin with: a chip, a world to simulate, a trace, settings; printed by name",
        examples: &["rackmath templates", "rackmath templates my-chip.toml > my-chip.toml"],
        does: Does::Tool(crate::templates::run),
    },
    Entry {
        name: "man",
        about: "Manual page of a command, or of all in a folder",
        examples: &["rackmath man estimate | man -l -", "rackmath man --into ~/.local/share/man/man1"],
        does: Does::Tool(crate::man::run),
    },
    Entry {
        name: "completions",
        about: "Shell completions",
        examples: &[
            "rackmath completions bash > ~/.local/share/bash-completion/completions/rackmath",
            "rackmath completions zsh",
        ],
        does: Does::Tool(tools::completions),
    },
    Entry {
        name: "gauge",
        about: "Is a server as fast as it should be: a load against it, or another tool's result file, with the prediction beside",
        examples: &[
            "rackmath gauge http://127.0.0.1:8000 --rate 4 --isl 1k --osl 256 --on 8xh200 --duration 60s",
            "rackmath gauge http://10.0.0.7:8000 --ladder 1..64 --isl 1k --osl 256 --duration 5min",
            "rackmath gauge --read results.json --on 1xh200 --model llama-3.1-8b",
            gauge::CODES,
        ],
        does: Does::Measure { run: gauge::run, fields: gauge::fields, args: gauge::args },
    },
    Entry {
        name: "watch",
        about: "A running server from its own metrics, beside what it should do",
        examples: &[
            "rackmath watch http://127.0.0.1:8000 --on 8xh200 --model llama-3.1-70b",
            "rackmath watch --replay before.txt after.txt --interval 30s --once",
        ],
        does: Does::Measure { run: watch::run, fields: watch::fields, args: watch::args },
    },
];

/// Who asks what: the first group is where everybody begins. A command that nobody has put here is listed at the end.
const GROUPS: &[(&str, &[&str])] = &[
    ("Begin here", &["estimate", "plan", "check", "memory", "simulate", "web"]),
    (
        "I serve a model",
        &[
            "gauge",
            "watch",
            "fit",
            "capacity",
            "estimate-sweep",
            "when",
            "trace",
            "validate",
            "layout",
            "traffic",
            "engines",
        ],
    ),
    (
        "I plan hardware",
        &[
            "compare", "frontier", "hardware", "whatif", "outlook", "fleet", "chips", "systems", "racks", "sweep",
            "merge",
        ],
    ),
    (
        "I train",
        &["train", "rl", "pipeline", "scaling", "laws", "lifecycle", "goodput", "forensics", "mfu", "reversible"],
    ),
    ("I read prices", &["price", "cost", "own", "breakeven", "cache", "fastmode", "deduce"]),
    ("I learn", &["step", "curve", "explain", "models", "lecture", "practice", "station", "glossary"]),
    ("Tools", &["probe", "ask", "schema", "mcp", "templates", "man", "completions"]),
];

fn hidden(entry: Entry) -> bool {
    entry.question() == Some(Question::Names)
}

/// The commands by who asks, a line each.
pub fn grouped() -> String {
    // As wide as help is at most.
    let page = Style { color: false, width: 98 };
    let line = |entry: Entry| page.wrapped(&format!("  {:<12} ", entry.name), &" ".repeat(15), entry.about);
    let known = |name: &&str| GROUPS.iter().any(|(_, names)| names.contains(name));
    let group = |(title, names): &(&str, &[&str])| {
        let lines: String = names.iter().filter_map(|name| find(name)).map(line).collect();
        format!("{title}:\n{lines}\n")
    };
    let text = GROUPS.iter().map(group).collect::<Vec<_>>().concat();
    let rest: String = all().filter(|e| !hidden(*e) && !known(&e.name)).map(line).collect();
    if rest.is_empty() { text } else { format!("{text}More:\n{rest}\n") }
}

fn of(question: Question) -> Entry {
    Entry { name: question.name(), about: question.about(), examples: &[], does: Does::Answer(question, Part::All) }
}

/// Every line, in the order of the help.
pub fn all() -> impl Iterator<Item = Entry> {
    Question::ALL.iter().map(|q| of(*q)).chain(VIEWS.iter().copied()).chain(TOOLS.iter().copied())
}

pub fn find(name: &str) -> Option<Entry> {
    all().find(|entry| entry.name == name)
}

/// The first word that names a line; of a sweep with the question after it.
pub fn chosen(typed: &[String]) -> Option<Entry> {
    let mut words = typed.iter().skip(1);
    let entry = words.find_map(|word| find(word))?;
    Some(match entry.does {
        Does::Sweep(_) => {
            let question = words.find_map(|word| find(word)?.question());
            Entry { does: Does::Sweep(question), ..entry }
        }
        _ => entry,
    })
}

/// Flags that are commands of their own now.
pub fn moved(typed: &[String], chosen: Option<Entry>) -> Result<(), Error> {
    let given = |flag: &str| typed.iter().any(|word| word.split('=').next() == Some(flag));
    let (flag, hint) = match chosen.and_then(Entry::question) {
        Some(Question::Estimate) if given("--sweep") => (
            "estimate --sweep",
            "rackmath sweep estimate ... --over concurrency=1..1024*2 writes rows; rackmath estimate-sweep ... draws the curve",
        ),
        Some(Question::Plan) if given("--rows") => ("plan --rows", "rackmath sweep plan ... -o FILE.csv"),
        Some(Question::Plan) if given("--feasible") => {
            ("plan --feasible", "rackmath sweep plan ... --feasible -o FILE.csv")
        }
        _ => return Ok(()),
    };
    Err(Error::said(format!("{flag} is a command of its own now")).hint(format!("expected {hint}")))
}

impl Entry {
    pub fn question(self) -> Option<Question> {
        match self.does {
            Does::Answer(question, _) => Some(question),
            Does::Tool(_) | Does::Measure { .. } | Does::Sweep(_) => None,
        }
    }

    /// What can be typed as a flag of a request.
    pub fn fields(self) -> Vec<Field> {
        match self.does {
            Does::Answer(question, _) => question.fields(),
            Does::Tool(_) => Vec::new(),
            Does::Measure { fields, .. } => fields(),
            Does::Sweep(question) => question.map_or_else(Vec::new, crate::sweep::fields),
        }
    }

    pub fn part(self, given: &ArgMatches) -> Part {
        let on = |id| given.try_contains_id(id).unwrap_or(false) && given.get_flag(id);
        match self.does {
            _ if on("cards") => Part::Cards,
            _ if on("worked") => Part::Worked,
            _ if on("time") => Part::Timed,
            Does::Answer(_, part) => part,
            Does::Tool(_) | Does::Measure { .. } | Does::Sweep(_) => Part::All,
        }
    }
}

/// The command that reads what was typed: its own line with its flags where the first word names one, every line otherwise,
/// because help and slips speak of all of them.
pub fn command(typed: &[String], chosen: Option<Entry>, fields: &[Field]) -> Command {
    let only = match (typed.get(1).map(String::as_str), chosen) {
        (Some("--version" | "-V"), _) => Some(""),
        (Some(word), Some(chosen)) if word == chosen.name => Some(chosen.name),
        _ => None,
    };
    let mut top = Command::new("rackmath")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The maths of how large language models are trained and served.")
        .long_about("The maths of how large language models are trained and served.\n\nWith no command: step time and cost per token against batch size for DeepSeek V3 on a GB200 NVL72 rack, where each line comes from, where the kinks are, and what binds.")
        .after_help("Examples:\n  rackmath                                            the headline picture\n  rackmath step llama-3.1-70b --on 8xh200 --batch 64  one decode step\n  rackmath curve qwen3-235b-a22b --over context       time and cost against context\n  rackmath explain balance ./config.json --on h100    an equation with your numbers in it\n  rackmath chips h100 h200 b200                       chips side by side")
        .max_term_width(110)
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}")
        .before_help(if only.is_none() { grouped() } else { String::new() })
        .args(common());
    for entry in all().filter(|entry| only.is_none_or(|name| name == entry.name)) {
        let mut line = Command::new(entry.name).about(entry.about).hide(hidden(entry));
        if let Some(chosen) = chosen.filter(|c| c.name == entry.name) {
            line = full(line, chosen, fields);
        }
        top = top.subcommand(line);
    }
    top
}

/// A line with its flags and its examples.
pub fn full(line: Command, entry: Entry, fields: &[Field]) -> Command {
    let examples: Vec<&str> = match entry.does {
        Does::Answer(question, Part::All) if entry.examples.is_empty() => question.examples().collect(),
        _ => entry.examples.to_vec(),
    };
    let line = match examples.as_slice() {
        [] => line,
        [one] => line.after_help(format!("Example: {one}")),
        all => line.after_help(format!("Examples:\n  {}", all.join("\n  "))),
    };
    let question = match entry.does {
        Does::Answer(question, _) => question,
        Does::Tool(_) => return tools::arguments(line, entry.name),
        Does::Measure { args, .. } => return line.args(args()).args(flags::args(fields)),
        Does::Sweep(question) => return crate::sweep::command(line, question, fields),
    };
    line.args(flags::args(fields)).args(own(question)).args(pictured(pictures(question)))
}

pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

pub fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).value_parser(value_parser!(PathBuf))
}

fn common() -> [Arg; 11] {
    [
        Arg::new("explained")
            .long("explain")
            .action(ArgAction::SetTrue)
            .help("Show the working, all rows and every assumption as well")
            .global(true),
        switch("sources", "Show where numbers come from as well").global(true),
        switch("quiet", "Only the verdict, and no notes on standard error")
            .global(true)
            .conflicts_with_all(["explained", "sources"]),
        path("config", "FILE", "Settings to begin with [default: rackmath.toml here or in the settings folder]")
            .global(true),
        switch("no-config", "Take no settings from a file").global(true).conflicts_with("config"),
        switch("json", "Print the answer as JSON (its schema: rackmath schema)").global(true),
        option("color", "WHEN", "Use colours: auto respects the terminal and NO_COLOR")
            .global(true)
            .value_parser(["auto", "always", "never"])
            .default_value("auto"),
        option("width", "N", "Columns to use, instead of the terminal's")
            .global(true)
            .value_parser(value_parser!(u16).range(40..)),
        path("catalog", "DIR", "Folder with your own models/, chips/, systems/ and laws/ files").global(true),
        path("with", "FILE", "Constants of your own, as rackmath fit prints them, instead of the catalogue's")
            .global(true),
        switch(
            "fetch",
            "Look up config.json and the index of a model that is not here on Hugging Face (HF_ENDPOINT, HF_TOKEN)",
        )
        .global(true),
    ]
}

fn pictured(names: &'static [&'static str]) -> Vec<Arg> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut args = vec![
        path("svg", "FILE", "Save the picture as SVG (- writes to standard output)"),
        path("png", "FILE", "Save the picture as PNG"),
        path("csv", "FILE", "Save the points as CSV (- writes to standard output)"),
    ];
    if let [first, _, ..] = names {
        args.push(option("figure", "WHICH", "Which picture").default_value(*first).value_parser(names.to_vec()));
    }
    args
}

/// What a command can do beyond its question.
fn own(question: Question) -> Vec<Arg> {
    let keep = "How long a prefix of the trace is kept after its last use [default: all of the trace]";
    let kept = |at: &'static str| option("keep", "TIME", keep).requires(at);
    let save = path("save", "FILE", "Save the question and the plan as a file that --from and whatif read");
    let from = path("from", "FILE", "Take the question from a saved plan, and check its numbers");
    match question {
        Question::Capacity => {
            vec![path("files", "DIR", "Write the values for autoscalers into a folder (- prints them)")]
        }
        Question::Practice => vec![switch("worked", "Show the working"), switch("cards", "The flashcards instead")],
        Question::Reversible => vec![switch("time", "Time a step of each kind on this machine as well")],
        Question::Validate => vec![
            path("folder", "DIR", "Also score a folder of measurements"),
            option(
                "leave-out",
                "GROUP",
                "Fit engines without each group of the folder in turn and predict it (takes minutes)",
            )
            .value_parser(["chip", "model", "engine"])
            .requires("folder"),
            path("svg", "DIR", "Save a chart of predicted against measured for each source into a folder"),
        ],
        Question::Plan => vec![
            kept("/draws/trace"),
            path(
                "handover",
                "DIR",
                "Write commands, configuration files, a Kubernetes manifest and load tests into a folder (- prints them)",
            ),
            path("k8s", "FILE", "Write the Kubernetes manifest (- prints it)").visible_alias("kubernetes"),
            save.conflicts_with("from"),
            from,
            option("shard", "I/N", "Only shard i of n, counted from 1: a file for rackmath merge")
                .conflicts_with_all(["svg", "csv", "png", "save", "from", "handover", "k8s"])
                .value_parser(crate::plan::shard_of),
            path("out", "FILE", "Where the shard goes [default: standard output]").short('o').requires("shard"),
        ],
        Question::Compare | Question::Frontier | Question::Hardware => vec![kept("/plan/draws/trace")],
        Question::Outlook => vec![kept("/plan/draws/trace"), from],
        Question::Simulate => vec![
            path(
                "world",
                "FILE",
                "A world as TOML: the request's own fields, classes of clients, scripts of failures; flags win",
            ),
            path("per-request", "FILE", "Write what each request met as CSV (- writes to standard output)"),
            path("chrome-trace", "FILE", "Write the steps and requests of --window (0..10 s) as a Chrome trace"),
            path("replay", "FILE", "Run a scenario of recorded vLLM schedules by its own clock instead"),
            path("steps", "FILE", "Write the record of its steps as JSON lines (- writes to standard output)")
                .requires("replay"),
        ],
        Question::Whatif => vec![save],
        _ => Vec::new(),
    }
}
