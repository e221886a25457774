//! `rackmath sweep`: a question over axes of its fields, or every configuration of a plan, as rows written as they come;
//! in shards that are joined again.

use crate::failure::at;
use crate::inputs::{self, Inputs};
use crate::menu::{option, path, switch};
use crate::output::{Whole, print};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rackmath::ask::{self, Question, Terms};
use rackmath::field::{self, Field};
use rackmath::sweep::{Request, Sweep};
use rackmath::table::{self, Checksum, Head, Rows, Tail};
use rackmath::{Catalog, Error, plan};
#[cfg(feature = "parquet")]
use rackmath_report::parquet::ParquetRows;
use rackmath_report::rows::Format;
use rackmath_units::{Cancel, Effort};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Flags of a sweep, which win over a question's own of the same name.
pub fn args(question: Question) -> Vec<Arg> {
    let mut args = vec![
        Arg::new("over")
            .long("over")
            .value_name("NAME=VALUES")
            .action(ArgAction::Append)
            .required(question != Question::Plan)
            .help("An axis: a flag of the question and its values, 1,2,4 or 1..512 or 1..512*2 or 10ms..50ms+10ms; the last axis runs fastest"),
        option("columns", "NAMES", "Columns of the answer by name or the beginning of its path, or all [default: those with a value at the first, middle or last point]")
            .value_delimiter(','),
        path("out", "FILE", "FILE.csv or FILE.jsonl; a folder takes a shard under a name made of its contents [default: standard output]").short('o'),
        option("format", "FORMAT", "How rows are written [default: by the name of the file, else csv]").value_parser(["csv", "jsonl"]),
        option("shard", "I/N", "Only shard i of n, counted from 1: a file for rackmath merge; auto/n asks the scheduler (Kubernetes, Slurm, AWS, Google or PBS arrays)").value_parser(crate::plan::shard_of),
    ];
    if question == Question::Plan {
        args.push(switch("feasible", "Only rows that meet every limit").conflicts_with("over"));
    }
    args
}

/// The fields of a question that can be typed beside the flags of a sweep; others are reached by an axis of one value.
pub fn fields(question: Question) -> Vec<Field> {
    let own = ["over", "columns", "out", "format", "shard", "feasible"];
    let mut fields = question.fields();
    fields.retain(|field| !own.contains(&field.flag.as_str()));
    for field in &mut fields {
        field.aliases.retain(|name| !own.contains(&name.as_str()));
        field.short = field.short.filter(|letter| *letter != 'o');
    }
    fields
}

/// The line `sweep`: every question below it, the chosen one with its flags.
pub fn command(line: Command, chosen: Option<Question>, fields: &[Field]) -> Command {
    let line = line.subcommand_required(true).subcommand_value_name("QUESTION").subcommand_help_heading("Questions");
    let all = Question::ALL.iter().filter(|q| chosen.is_none_or(|c| c == **q));
    line.subcommands(all.map(|question| {
        let one = Command::new(question.name()).about(question.about());
        if chosen == Some(*question) {
            let example = match question {
                Question::Plan => {
                    "Every configuration: rackmath sweep plan llama-3.1-8b --on 4xh100 -o rows.csv".to_owned()
                }
                _ => format!(
                    "Shards: rackmath sweep {} ... --shard 1/4 -o parts/, then rackmath merge parts/",
                    question.name()
                ),
            };
            return one.args(crate::flags::args(fields)).args(args(*question)).after_help(example);
        }
        one
    }))
}

/// How rows are written.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text(Format),
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Kind {
    fn of(given: &ArgMatches, out: Option<&Path>) -> Result<Self, Error> {
        let named = given.try_get_one::<String>("format").ok().flatten().map(String::as_str);
        let Some(path) = out.filter(|path| !is_folder(path) && *path != Path::new("-")) else {
            let lines = named.map_or(given.get_flag("json"), |name| name == "jsonl");
            return Ok(Self::Text(if lines { Format::JsonLines } else { Format::Csv }));
        };
        Self::named(path, named.or_else(|| path.extension().and_then(|x| x.to_str())))
    }

    fn named(path: &Path, name: Option<&str>) -> Result<Self, Error> {
        match name {
            Some("csv") => Ok(Self::Text(Format::Csv)),
            Some("jsonl") => Ok(Self::Text(Format::JsonLines)),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => Err(at(path, "this build writes no Parquet").hint(
                "expected .csv or .jsonl, or build with: cargo install --path crates/rackmath-cli --features parquet",
            )),
            _ => Err(at(path, "a table of no known kind").hint("expected .csv, .jsonl or .parquet")),
        }
    }
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/')
}

/// What was typed: the request of a sweep, with its files read.
pub fn request(
    question: Question,
    given: &ArgMatches,
    inputs: &mut Inputs,
    typed: Map<String, Value>,
) -> Result<Request, Error> {
    let fields = question.fields();
    let mut over = Vec::new();
    for axis in given.get_many::<String>("over").into_iter().flatten() {
        let known = axis.split_once('=').and_then(|(name, values)| Some((name, values, field::named(&fields, name)?)));
        over.push(match known {
            // Models and machines may be files.
            Some((name, values, Field { file: Some(kind), .. })) => {
                format!("{name}={}", inputs.all_named(kind, values)?.join(","))
            }
            _ => axis.clone(),
        });
    }
    let columns = given.get_many::<String>("columns").into_iter().flatten().cloned().collect();
    Ok(Request { question: question.name().into(), request: inputs.with_files(typed), over, columns })
}

pub fn run(
    catalog: &Catalog,
    question: Question,
    given: &ArgMatches,
    mut inputs: Inputs,
    typed: Map<String, Value>,
) -> Result<(), Error> {
    let out = given.get_one::<PathBuf>("out").map(PathBuf::as_path);
    let kind = Kind::of(given, out)?;
    let shard = given.get_one::<(u64, u64)>("shard").copied();
    let one = shard.unwrap_or((1, 1));
    let terms = stoppable();
    let threads = terms.effort.threads;
    let request = request(question, given, &mut inputs, typed)?;
    if question == Question::Plan && request.over.is_empty() {
        let mut whole = request.request;
        let catalog = ask::brought(catalog, &mut whole, &terms)?;
        let asked: plan::Request =
            serde_json::from_value(Value::Object(whole)).map_err(|e| Error::said(e.to_string()))?;
        let feasible = given.get_flag("feasible");
        let sweep = plan::sweep::Sweep::new(&catalog, &asked, one, feasible, &terms.effort)?;
        return Writing { rows: &sweep, kind, shard, threads, what: "configurations" }.to(out);
    }
    let sweep = Sweep::new(catalog, &request, one, &terms)?;
    Writing { rows: &sweep, kind, shard, threads, what: "points" }.to(out)
}

/// All threads, and today, until Ctrl-C.
fn stoppable() -> Terms {
    let (cancel, terms) = (Cancel::open(), inputs::terms());
    let threads = terms.effort.threads;
    let terms = Terms { effort: Effort { threads, cancel: cancel.clone() }, ..terms };
    // A handler that cannot be set leaves Ctrl-C as it is everywhere else.
    let _ = ctrlc::set_handler(move || cancel.cancel());
    terms
}

struct Writing<'a> {
    rows: &'a dyn Rows,
    kind: Kind,
    shard: Option<(u64, u64)>,
    threads: usize,
    what: &'static str,
}

impl Writing<'_> {
    fn to(&self, out: Option<&Path>) -> Result<(), Error> {
        #[cfg_attr(
            not(feature = "parquet"),
            expect(clippy::infallible_destructuring_match, reason = "there is another kind with Parquet")
        )]
        let format = match self.kind {
            Kind::Text(format) => format,
            #[cfg(feature = "parquet")]
            Kind::Parquet => return self.packed(out.unwrap_or(Path::new("-"))),
        };
        let head = self.shard.map(|one| Head::of(self.rows, one, format.name()));
        let path = match (out.filter(|path| *path != Path::new("-")), &head) {
            (Some(folder), Some(head)) if is_folder(folder) => {
                std::fs::create_dir_all(folder).map_err(|e| at(folder, e))?;
                Some(folder.join(head.file_name()))
            }
            (Some(folder), None) if is_folder(folder) => {
                return Err(at(folder, "a folder").hint("expected a file, or --shard i/n for a part of it"));
            }
            (path, _) => path.map(Path::to_owned),
        };
        if let (Some(path), Some(head)) = (&path, &head)
            && path.is_file()
            && Part::open(path).and_then(Part::checked).is_ok_and(|part| part.head == *head)
        {
            eprintln!("{} is there already", path.display());
            return Ok(());
        }
        match path {
            None => {
                let mut lock = BufWriter::new(std::io::stdout().lock());
                let done = self.text(format, head.as_ref(), &mut lock)?;
                // A reader that has seen enough is not an error.
                let _ = lock.flush();
                self.ended(&done, None)
            }
            Some(path) => {
                let mut file = Whole::new(&path)?;
                let mut lines = BufWriter::new(file.file());
                let done = self.text(format, head.as_ref(), &mut lines)?;
                lines.flush().map_err(|e| at(&path, e))?;
                drop(lines);
                self.kept(file, &done, &path)
            }
        }
    }

    /// Whether standard output or a file.
    fn text(&self, format: Format, head: Option<&Head>, out: &mut dyn Write) -> Result<Done, Error> {
        let columns = self.rows.columns();
        let above = match head {
            Some(head) => serde_json::to_string(head).map_err(|e| Error::said(e.to_string()))? + "\n",
            None => format.header(columns),
        };
        let mut done = Done::default();
        let mut progress = Progress::new(self.rows.looked_at(), self.what);
        let mut sum = Checksum::default();
        let mut written = |text: &str| match out.write_all(text.as_bytes()) {
            Ok(()) => Ok(true),
            // A reader that has seen enough.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(e) => Err(Error::said(e.to_string())),
        };
        if !written(&above)? {
            return Ok(Done { left: true, ..done });
        }
        let lines = |block: table::Block| (format.lines(&block, columns, self.rows.words()), block.rows);
        done.looked = table::run(self.rows, self.threads, lines, |(text, n), range| {
            sum.add(&text);
            done.rows += n as u64;
            done.left = !written(&text)?;
            progress.tell(range, done.rows);
            Ok::<_, Error>(!done.left)
        })?;
        progress.end();
        if head.is_some() && done.looked == self.rows.looked_at() {
            let tail = Tail { rows: done.rows, checksum: sum.words() };
            written(&(serde_json::to_string(&tail).map_err(|e| Error::said(e.to_string()))? + "\n"))?;
        }
        Ok(done)
    }

    #[cfg(feature = "parquet")]
    fn packed(&self, path: &Path) -> Result<(), Error> {
        if self.shard.is_some() {
            return Err(at(path, "a shard as Parquet").hint("expected .csv or .jsonl: shards are joined as text"));
        }
        let mut file = Whole::new(path)?;
        let (mut done, mut progress) = (Done::default(), Progress::new(self.rows.looked_at(), self.what));
        let mut table =
            ParquetRows::new(file.file(), self.rows.columns(), self.rows.words()).map_err(|e| at(path, e))?;
        done.looked = table::run(
            self.rows,
            self.threads,
            |block| block,
            |block, range| {
                done.rows += block.rows as u64;
                table.add(block).map_err(|e| at(path, e))?;
                progress.tell(range, done.rows);
                Ok::<_, Error>(true)
            },
        )?;
        table.finish().map_err(|e| at(path, e))?;
        progress.end();
        self.kept(file, &done, path)
    }

    /// A whole table under its name; what was found until it was stopped beside it.
    fn kept(&self, file: Whole, done: &Done, path: &Path) -> Result<(), Error> {
        if done.looked == self.rows.looked_at() {
            file.done()?;
            eprintln!("wrote {}: {} rows of {} {}", path.display(), done.rows, done.looked, self.what);
            return Ok(());
        }
        self.ended(done, Some(&file.partial()?))
    }

    fn ended(&self, done: &Done, aside: Option<&Path>) -> Result<(), Error> {
        let (all, rows) = (self.rows.looked_at(), done.rows);
        if done.looked == all || done.left {
            return Ok(());
        }
        let error = Error::said(format!("stopped after {} of {all} {}", done.looked, self.what));
        Err(match aside {
            Some(path) => error.hint(format!("{} is whole and holds the {rows} rows found until then", path.display())),
            None => error,
        })
    }
}

#[derive(Default)]
struct Done {
    looked: u64,
    rows: u64,
    /// Whether nobody reads any more.
    left: bool,
}

/// A shard in a file.
struct Part {
    path: PathBuf,
    head: Head,
    tail: Option<Tail>,
}

impl Part {
    fn open(path: &Path) -> Result<Self, Error> {
        let mut line = String::new();
        BufReader::new(File::open(path).map_err(|e| at(path, e))?).read_line(&mut line).map_err(|e| at(path, e))?;
        let head = serde_json::from_str(&line);
        let head =
            head.map_err(|e| at(path, e).hint("expected a file written by rackmath sweep --shard i/n -o FILE"))?;
        Ok(Self { path: path.to_owned(), head, tail: None })
    }

    /// Every line of rows, then what stands below them.
    fn rows(&self, mut take: impl FnMut(&str) -> Result<(), Error>) -> Result<Option<Tail>, Error> {
        let wrong = |e: std::io::Error| at(&self.path, e);
        let mut file = BufReader::with_capacity(1 << 16, File::open(&self.path).map_err(wrong)?);
        let (mut line, mut before) = (String::new(), String::new());
        file.read_line(&mut line).map_err(wrong)?;
        loop {
            line.clear();
            if file.read_line(&mut line).map_err(wrong)? == 0 {
                return Ok(serde_json::from_str(&before).ok());
            }
            std::mem::swap(&mut line, &mut before);
            // One behind: the last line is no row.
            if !line.is_empty() {
                take(&line)?;
            }
        }
    }

    /// The same once it is known to be whole.
    fn checked(mut self) -> Result<Self, Error> {
        let mut sum = Checksum::default();
        self.tail = self.rows(|line| {
            sum.add(line);
            Ok(())
        })?;
        match &self.tail {
            Some(tail) if tail.checksum == sum.words() => Ok(self),
            _ => Err(at(&self.path, "not whole, or changed since it was written")
                .hint("expected an untouched file; make it again")),
        }
    }
}

/// The shards in a folder; what is still being written is none.
pub fn parts(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|e| at(folder, e))?;
    let mut all: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    let whole = |path: &PathBuf| path.extension().is_some_and(|x| x == "csv" || x == "jsonl" || x == "json");
    all.retain(|path| path.is_file() && whole(path));
    all.sort();
    if all.is_empty() {
        return Err(at(folder, "no shards").hint("expected files of rackmath sweep --shard i/n -o FOLDER/"));
    }
    Ok(all)
}

/// Whether these are shards of a sweep rather than of a plan.
pub fn is_part(path: &Path) -> bool {
    Part::open(path).is_ok()
}

pub fn merge(paths: &[PathBuf], out: Option<&Path>) -> Result<(), Error> {
    let parts: Vec<Part> = paths.iter().map(|path| Part::open(path)?.checked()).collect::<Result<_, _>>()?;
    let heads: Vec<Head> = parts.iter().map(|part| part.head.clone()).collect();
    let order = table::order(&heads)?;
    let format = if heads[0].format == "jsonl" { Format::JsonLines } else { Format::Csv };
    let header = format.header(&heads[0].columns);
    let all = |take: &mut dyn FnMut(&str) -> Result<(), Error>| {
        take(&header)?;
        order.iter().try_for_each(|i| parts[*i].rows(&mut *take).map(drop))
    };
    match out.filter(|path| *path != Path::new("-")) {
        None => all(&mut |line| print(line)),
        Some(path) => {
            let mut file = Whole::new(path)?;
            let mut lines = BufWriter::new(file.file());
            all(&mut |line| lines.write_all(line.as_bytes()).map_err(|e| at(path, e)))?;
            lines.flush().map_err(|e| at(path, e))?;
            drop(lines);
            file.done()?;
            let rows: u64 = order.iter().filter_map(|i| parts[*i].tail.as_ref()).map(|tail| tail.rows).sum();
            eprintln!("wrote {}: {rows} rows of {} shards", path.display(), order.len());
            Ok(())
        }
    }
}

/// A line on standard error that says how far it is, where someone can see it.
struct Progress {
    all: u64,
    what: &'static str,
    first: Option<u64>,
    began: Instant,
    said: Instant,
    seen: bool,
    shown: bool,
}

impl Progress {
    fn new(all: u64, what: &'static str) -> Self {
        let now = Instant::now();
        Self { all, what, first: None, began: now, said: now, seen: std::io::stderr().is_terminal(), shown: false }
    }

    /// Says how far it is, twice a second.
    fn tell(&mut self, range: &Range<u64>, rows: u64) {
        let first = *self.first.get_or_insert(range.start);
        if self.seen && self.said.elapsed() > Duration::from_millis(500) {
            self.said = Instant::now();
            self.shown = true;
            let done = range.end - first;
            let rate = done as f64 / self.began.elapsed().as_secs_f64();
            let left = (self.all - done) as f64 / rate;
            let percent = done as f64 / self.all as f64 * 100.0;
            eprint!("\r{percent:5.1} %  {rows} rows  {rate:.0} {} a second  {left:.0} s left   ", self.what);
        }
    }

    fn end(&self) {
        if self.shown {
            eprintln!();
        }
    }
}
