//! `rackmath plan --rows`: every configuration as a row of a table, written as it comes.

use crate::failure::at;
use crate::output::Whole;
use rackmath::plan::Request;
use rackmath::plan::sweep::Sweep;
use rackmath::{Catalog, Error};
#[cfg(feature = "parquet")]
use rackmath_report::parquet::ParquetRows;
use rackmath_report::rows::Format;
use std::io::{BufWriter, IsTerminal, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static STOPPED: AtomicBool = AtomicBool::new(false);

/// What a file is, by the end of its name.
enum Kind {
    Text(Format),
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Kind {
    fn of(path: &Path) -> Result<Self, Error> {
        match path.extension().and_then(|x| x.to_str()) {
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

pub fn write(
    catalog: &Catalog,
    request: &Request,
    (shard, threads): (Option<(u64, u64)>, usize),
    path: &Path,
    feasible: bool,
) -> Result<(), Error> {
    let kind = Kind::of(path)?;
    let sweep = Sweep::new(catalog, request, shard.unwrap_or((1, 1)), feasible, threads)?;
    let mut whole = Whole::new(path)?;
    // A handler that cannot be set leaves Ctrl-C as it is everywhere else.
    let _ = ctrlc::set_handler(|| STOPPED.store(true, Ordering::Relaxed));
    let mut progress = Progress::new(sweep.configurations());
    let mut rows = 0;
    let done = match kind {
        Kind::Text(format) => {
            let mut out = BufWriter::new(whole.file());
            out.write_all(format.header().as_bytes()).map_err(|e| at(path, e))?;
            let lines = |block: rackmath::plan::sweep::Block| (format.lines(&block, sweep.words()), block.rows);
            let done = sweep.run(threads, lines, |(text, n), range| {
                out.write_all(text.as_bytes()).map_err(|e| at(path, e))?;
                rows += n;
                Ok::<_, Error>(progress.go_on(range, rows))
            })?;
            out.flush().map_err(|e| at(path, e))?;
            done
        }
        #[cfg(feature = "parquet")]
        Kind::Parquet => {
            let mut table = ParquetRows::new(whole.file(), sweep.words()).map_err(|e| at(path, e))?;
            let done = sweep.run(
                threads,
                |block| block,
                |block, range| {
                    rows += block.rows;
                    table.add(block).map_err(|e| at(path, e))?;
                    Ok::<_, Error>(progress.go_on(range, rows))
                },
            )?;
            table.finish().map_err(|e| at(path, e))?;
            done
        }
    };
    progress.end();
    whole.done()?;
    let (all, path) = (sweep.configurations(), path.display());
    if done < all {
        return Err(Error::said(format!("stopped after {done} of {all} configurations"))
            .hint(format!("{path} is whole and holds the {rows} rows found until then")));
    }
    eprintln!("wrote {path}: {rows} rows of {all} configurations");
    Ok(())
}

/// A line on standard error that says how far it is, where someone can see it.
struct Progress {
    all: u64,
    first: Option<u64>,
    began: Instant,
    said: Instant,
    seen: bool,
    shown: bool,
}

impl Progress {
    fn new(all: u64) -> Self {
        let now = Instant::now();
        Self { all, first: None, began: now, said: now, seen: std::io::stderr().is_terminal(), shown: false }
    }

    /// Says how far it is, twice a second; whether to go on.
    fn go_on(&mut self, range: &Range<u64>, rows: usize) -> bool {
        let first = *self.first.get_or_insert(range.start);
        if self.seen && self.said.elapsed() > Duration::from_millis(500) {
            self.said = Instant::now();
            self.shown = true;
            let done = range.end - first;
            let rate = done as f64 / self.began.elapsed().as_secs_f64();
            let left = (self.all - done) as f64 / rate;
            let percent = done as f64 / self.all as f64 * 100.0;
            eprint!("\r{percent:5.1} %  {rows} rows  {:.1} million a second  {left:.0} s left   ", rate / 1e6);
        }
        !STOPPED.load(Ordering::Relaxed)
    }

    fn end(&self) {
        if self.shown {
            eprintln!();
        }
    }
}
