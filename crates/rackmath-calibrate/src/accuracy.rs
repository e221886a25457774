//! Everything that was measured against what is predicted, in one table with its targets.
//!
//! Every topic gives its rows as [`Case`]s; a [`Line`] of the table says which of them count in it and what it has to
//! reach. Distance is |ln(predicted / measured)|; a group is a chip with an engine and a model. Constants are the
//! catalogue's: rows that some constant was fitted on are not left out here. What they do to groups that were left out is
//! shown below the table, of the rows that the catalogue carries (`transfer` shows it topic by topic).

mod lines;
mod print;
#[cfg(test)]
mod tests;

use crate::case::Case;
use crate::rows::Rows;
use crate::table::Errors;
use crate::{
    attention, deduce, gemm, launched, moe, network, planner, recurrence, replays, serving, startup, steps, training,
};
use lines::{LINES, Line, Target};
use rackmath::validate::coverage;
use rackmath_spec::evidence::Step;
use rackmath_spec::{Catalog, SpecError};
use rackmath_units::Cancel;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Rows by topic, choices, and what prices say.
pub struct Accuracy {
    pub cases: Vec<Case>,
    /// Rows that could not be predicted, by topic and reason.
    pub refused: Refused,
    decisions: Vec<planner::Decision>,
    /// Carried rows whose group the constants of the engine never saw, by what was left out.
    held: Vec<Scored>,
    /// Models, error in powers of ten, share inside the interval: with the architecture and with the maker left out.
    deduced: Option<[(usize, f64, f64); 2]>,
    /// Tables of the folder that are read.
    tables: usize,
    /// Tables that nothing here reads, and why where that is known.
    unread: Vec<(String, &'static str)>,
}

type Topic = (&'static str, fn(&Catalog, &Path) -> Result<Rows<Case>, SpecError>);

const TOPICS: [Topic; 11] = [
    ("serving", serving::cases),
    ("replayed requests", replays::cases),
    ("products", gemm::cases),
    ("experts", moe::cases),
    ("attention", attention::cases),
    ("links", network::cases),
    ("steps", steps::cases),
    ("training", training::cases),
    ("start-up", startup::cases),
    ("recurrences", recurrence::cases),
    ("launched products", launched::cases),
];

/// All topics whose tables a folder holds; it must hold some.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<Accuracy, SpecError> {
    let (cases, refused) = cases(catalog, folder)?;
    let (decisions, held) = (planner::decisions(catalog, folder)?, held(catalog)?);
    // Prices stand in the folder or beside it.
    let beside = folder.parent().map(|parent| parent.join("economics"));
    let prices = [Some(folder.to_path_buf()), beside].into_iter().flatten();
    let deduced = prices.into_iter().find_map(|prices| deduce::marks(catalog, &prices).ok());
    let unread = unread(folder);
    let tables = tables(folder, "").len() - unread.len();
    Ok(Accuracy { cases, refused, decisions, held, deduced, tables, unread })
}

type Refused = BTreeMap<(&'static str, String), usize>;

/// The rows of all topics, and those that could not be predicted.
fn cases(catalog: &Catalog, folder: &Path) -> Result<(Vec<Case>, Refused), SpecError> {
    let (mut cases, mut refused) = (Vec::new(), BTreeMap::new());
    let mut missing = None;
    for (topic, read) in TOPICS {
        match read(catalog, folder) {
            Ok(Rows { rows, skipped }) => {
                for case in rows {
                    if case.error().is_finite() {
                        cases.push(case);
                    } else {
                        *refused.entry((topic, format!("{}: no such time", case.file))).or_default() += 1;
                    }
                }
                for (reason, n) in skipped {
                    *refused.entry((topic, reason)).or_default() += n;
                }
            }
            Err(error) => missing = Some(error),
        }
    }
    missing.filter(|_| cases.is_empty()).map_or(Ok((cases, refused)), Err)
}

/// Rows of catalog/validation predicted by engines that were fitted without their chip, version, model or kind of model.
fn held(catalog: &Catalog) -> Result<Vec<Scored>, SpecError> {
    let filed = coverage::filed(catalog, &Cancel::default())?;
    let rows = coverage::held(catalog, &filed, &Cancel::default())?;
    let mut all = Vec::new();
    for step in [Step::Seen, Step::Chip, Step::Generation, Step::Version, Step::Model, Step::Kind] {
        for (column, what) in coverage::COLUMNS.iter().enumerate() {
            let of: Vec<_> = rows.iter().filter(|h| h.step == step && h.column == column).collect();
            let groups: BTreeSet<&str> = of.iter().map(|h| h.group.as_str()).collect();
            all.push(Scored {
                what: format!("{what}, {step}"),
                rows: of.len(),
                groups: groups.len(),
                errors: Errors::of(of.iter().map(|h| h.error)),
                other: String::new(),
                target: String::new(),
                met: None,
            });
        }
    }
    all.retain(|scored| scored.rows > 0);
    Ok(all)
}

/// What a line has come to.
pub struct Scored {
    pub what: String,
    pub rows: usize,
    pub groups: usize,
    pub errors: Option<Errors>,
    /// A figure that is not a distance: a mean or a share.
    pub other: String,
    pub target: String,
    /// Nothing where no target is set, or nothing was measured.
    pub met: Option<bool>,
}

impl Accuracy {
    /// The table of what must be shown, then of what broke; each line with the cases in it.
    pub fn lines(&self) -> Vec<(bool, Scored)> {
        let mut all: Vec<(bool, Scored)> = Vec::new();
        for line in &LINES {
            let scored = self.line(line);
            // What broke is shown where there are rows of it.
            if line.must || scored.rows > 0 {
                all.push((line.must, scored));
            }
        }
        all.extend(self.training().into_iter().map(|scored| (true, scored)));
        all.extend(self.starts().into_iter().map(|scored| (true, scored)));
        all.extend(self.deduce().into_iter().map(|scored| (true, scored)));
        all.extend(self.choices().into_iter().map(|scored| (true, scored)));
        all.sort_by_key(|(must, _)| !must);
        all
    }

    /// The cases of a line.
    pub fn of(&self, line: &Line) -> Vec<&Case> {
        self.cases.iter().filter(|case| (line.holds)(case)).collect()
    }

    fn line(&self, line: &Line) -> Scored {
        let cases = self.of(line);
        let errors = Errors::of(cases.iter().map(|case| case.error()));
        let met = |e: Errors| match line.target {
            Target::Open => None,
            Target::Median(median) => Some(e.fit.median <= median),
            Target::Both(median, p90) => Some(e.fit.median <= median && e.fit.p90 <= p90),
        };
        Scored {
            what: line.what.into(),
            rows: cases.len(),
            groups: groups(&cases).len(),
            errors,
            other: String::new(),
            target: line.target.to_string(),
            met: errors.and_then(met),
        }
    }

    /// Step times, table by table: the mean share they are off by.
    fn training(&self) -> Vec<Scored> {
        let mut tables: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
        for case in self.cases.iter().filter(|case| case.metric == "training step") {
            tables.entry(&case.file).or_default().push(case);
        }
        let mean = |cases: &[&Case]| {
            cases.iter().map(|c| (c.predicted / c.measured - 1.0).abs()).sum::<f64>() / cases.len() as f64
        };
        let means: Vec<f64> = tables.values().map(|cases| mean(cases)).collect();
        let mut all = Vec::new();
        if !means.is_empty() {
            let (each, worst) =
                (means.iter().sum::<f64>() / means.len() as f64, means.iter().copied().fold(0.0, f64::max));
            let cases: Vec<&Case> = tables.values().flatten().copied().collect();
            all.push(Scored {
                what: "training: mean of the sources".into(),
                rows: cases.len(),
                groups: groups(&cases).len(),
                errors: Errors::of(cases.iter().map(|case| case.error())),
                other: format!("{:.1} %, worst {:.1} %", each * 100.0, worst * 100.0),
                target: "10 %, worst 15 %".into(),
                met: Some(each <= 0.10 && worst <= 0.15),
            });
        }
        for (file, cases) in tables {
            let off = mean(&cases);
            let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".csv");
            all.push(Scored {
                what: name.replacen("training_", "training: ", 1),
                rows: cases.len(),
                groups: groups(&cases).len(),
                errors: Errors::of(cases.iter().map(|case| case.error())),
                other: format!("{:.1} %", off * 100.0),
                target: "15 %".into(),
                met: Some(off <= 0.15),
            });
        }
        all
    }

    /// Starts and refusals that were called right, whatever else their rows state.
    fn starts(&self) -> Vec<Scored> {
        let line = |(metric, least): (&str, f64)| {
            let cases: Vec<&Case> = self.cases.iter().filter(|case| case.metric.starts_with(metric)).collect();
            let right = cases.iter().filter(|case| case.predicted <= 1.0).count();
            let stated = cases.iter().filter(|case| case.metric == metric);
            let (called, of) = stated.fold((0, 0), |(r, n), case| (r + usize::from(case.predicted <= 1.0), n + 1));
            let share = right as f64 / cases.len().max(1) as f64;
            Scored {
                what: format!("start-up: {metric}"),
                rows: cases.len(),
                groups: groups(&cases).len(),
                errors: None,
                other: format!(
                    "{:.0} %, {right} of {}; all flags stated: {called} of {of}",
                    share * 100.0,
                    cases.len()
                ),
                target: format!("{:.0} %", least * 100.0),
                met: (!cases.is_empty()).then_some(share >= least),
            }
        };
        [(startup::STARTS, 0.95), (startup::REFUSALS, 0.75)].into_iter().map(line).collect()
    }

    fn deduce(&self) -> Vec<Scored> {
        let words = ["deduce from prices, architecture left out", "deduce from prices, maker left out"];
        let line = |(what, (n, error, inside)): (&str, (usize, f64, f64))| Scored {
            what: what.into(),
            rows: n,
            groups: n,
            errors: None,
            other: format!("{error:.3} dex, {:.0} % inside", inside * 100.0),
            target: "0.16 dex, 75-85 %".into(),
            met: Some(error <= 0.16 && (0.75..=0.85).contains(&inside)),
        };
        words.into_iter().zip(self.deduced.into_iter().flatten()).map(line).collect()
    }

    /// Layouts chosen; ours must be right in 85 % of the groups and above the roofline.
    fn choices(&self) -> Vec<Scored> {
        let mut roofline = BTreeMap::new();
        for d in self.decisions.iter().filter(|d| d.chooser == planner::Chooser::Roofline) {
            roofline.insert(&d.table, d.within);
        }
        let line = |d: &planner::Decision| {
            let ours = d.chooser == planner::Chooser::Ours;
            let above = roofline.get(&d.table).is_none_or(|r| d.within > *r);
            let [within, median, mean] = [d.within, d.median, d.mean].map(|share| share * 100.0);
            Scored {
                what: format!("{}: {}", d.table, d.chooser),
                rows: d.each.len(),
                groups: d.each.len(),
                errors: None,
                other: format!("{within:.0} % within 10 %; regret {median:.1} %, mean {mean:.1} %"),
                target: if ours { "85 %, above roofline".into() } else { String::new() },
                met: ours.then_some(d.within >= 0.85 && above),
            }
        };
        self.decisions.iter().map(line).collect()
    }
}

/// Cases by chip, engine and model.
pub fn groups<'a>(cases: &[&'a Case]) -> BTreeMap<[&'a str; 3], Vec<&'a Case>> {
    let mut all: BTreeMap<[&str; 3], Vec<&Case>> = BTreeMap::new();
    for case in cases {
        all.entry(case.group()).or_default().push(case);
    }
    all
}

/// Tables that hold nothing to predict, or not enough to predict it.
const KNOWN: [(&str, &str); 10] = [
    ("hardware_peaks.csv", "facts, not measurements"),
    ("model_arch.csv", "facts, not measurements"),
    ("scaling_laws.csv", "published laws, not measurements"),
    ("reversible.csv", "losses and memory of other networks"),
    ("training_runs_published.csv", "whole runs: catalog/runs"),
    ("training_korthikanti2022_layer.csv", "times of single layers"),
    ("training_korthikanti2022_memory.csv", "memory of single layers"),
    ("vllm_h200/open.csv", "sums of requests.csv.gz, which is replayed"),
    ("amd_tpu/p2p_amd.csv", "copies between two chips: no kernel is timed by itself"),
    ("amd_tpu/micro_tpu.csv", "fourteen rates; no kernel is timed by itself"),
];

/// Tables of a folder and the folders in it that no topic reads.
fn unread(folder: &Path) -> Vec<(String, &'static str)> {
    let mut read: BTreeSet<String> = serving::files().map(str::to_owned).collect();
    let others =
        gemm::files().chain(moe::files()).chain(network::files()).chain(steps::files()).chain(training::files());
    read.extend(others.map(str::to_owned));
    read.extend(attention::tables());
    read.extend(replays::FILES.map(str::to_owned));
    read.extend([startup::FILE, recurrence::FILE, launched::FILE].map(str::to_owned));
    read.extend(["kernel_quantize.csv", "vllm_h200/tokens.csv.gz"].map(str::to_owned));
    let mut found = Vec::new();
    for name in tables(folder, "") {
        let ours = name.starts_with("h200_torch/");
        if !ours && !read.contains(&name) {
            let why = KNOWN.iter().find(|(known, _)| *known == name).map_or("no reader", |(_, why)| why);
            found.push((name, why));
        }
    }
    found
}

/// How names of tables end.
const TABLES: [&str; 3] = [".csv", ".csv.gz", ".json"];

/// Names of the tables under a folder, one folder deep.
fn tables(folder: &Path, before: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if entry.path().is_dir() {
            if before.is_empty() {
                all.extend(tables(&entry.path(), &format!("{name}/")));
            }
        } else if TABLES.iter().any(|end| name.ends_with(end)) {
            all.push(format!("{before}{name}"));
        }
    }
    all.sort();
    all
}
