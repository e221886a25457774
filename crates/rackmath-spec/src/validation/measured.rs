//! Measured rows in few words: what ran on a line of its own, under it a line for each load, with the figures met there.
//!
//! ```text
//! llama-3.1-70b fp8 - vllm@0.11 8xh100-sxm 8/1/1/1/8
//!  c64 921.6 7372.8 0:23.407 1:261.4
//! ```
//!
//! | word | meaning |
//! |------|---------|
//! | model, weights, kv, engine, system | words of the catalogue; `-` for the checkpoint's own weights and the engine's usual cache |
//! | tp/pp/dp/ep/etp | degrees |
//! | `chunk=`, `sequences=`, `looks=`, `gather=`, `hold=`, `memory=` | flags of the engine, where the source states them: limits of a pass, steps between two looks at what has come, steps that prompts wait for those of other attention groups, steps that they are held and the share of a pass that ends it (`hold=20,0.9`), share of the memory |
//! | `c64`, `c64=` | so many in a closed loop, lengths drawn or all the same; `rounds` of the table for each, where the line has none of its own (`rounds=50`) |
//! | `o2.5`, `f` | so many requests a second; as many as fit |
//! | `s32`, `d32@1024`, `p4` | a batch that starts and ends together; one decode step at a context; one pass over prompts |
//! | input, output | mean tokens of a request |
//! | `cached=`, `drafts=3,2.1`, `cold` | share of a prompt found in a cache; tokens drafted, and yielded by a step; a server that had answered nobody before |
//! | `0:23.407` | the figure of a part, by its place in `parts`, in the unit of the part's metric |

use super::{Metric, Source};
use crate::SpecError;
use crate::engine::Hold;
use crate::layout::{Degrees, Layout};
use crate::measurement::{Load, Measurement, Origin, Setup, Way};
use serde::Deserialize;
use std::fmt::Write as _;

/// The table of a file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What is scored by itself, and its metric.
    pub parts: Vec<(String, Metric)>,
    /// Requests of each slot of a closed loop.
    #[serde(default)]
    pub rounds: f64,
    pub rows: String,
}

impl Measured {
    /// Reads the rows; a line that is not understood is named.
    pub(super) fn read(&self, file: &str, source: &Source) -> Result<Vec<Measurement>, SpecError> {
        let mut all = Vec::new();
        let mut setup: Option<Setup> = None;
        for (i, line) in self.rows.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |expected: &str| {
                SpecError::file(file, format!("measured row {}: \"{}\"; expected {expected}", i + 1, line.trim()))
            };
            if !line.starts_with(' ') {
                setup = Some(ran(line).ok_or_else(|| wrong("model weights kv engine system tp/pp/dp/ep/etp"))?);
                continue;
            }
            let setup = setup.as_ref().ok_or_else(|| wrong("what ran on a line before it"))?;
            let (load, figures) =
                self.load(line).ok_or_else(|| wrong("a load, two lengths and figures such as 0:12.5"))?;
            for (part, value) in figures {
                let (part, metric) = self.parts.get(part).ok_or_else(|| wrong("the place of a part in parts"))?;
                let source = Origin { name: source.name.clone(), part: part.clone() };
                all.push(Measurement { setup: setup.clone(), load, metric: *metric, value, spread: None, source });
            }
        }
        Ok(all)
    }

    /// The table that reads as these rows of one source, in an order of its own.
    pub fn write(rows: &[Measurement]) -> Self {
        let mut parts = Vec::new();
        let closed =
            |row: &Measurement| if let Way::Closed { rounds, .. } = row.load.way { Some(rounds) } else { None };
        let rounds = rows.iter().find_map(closed).unwrap_or(0.0);
        let mut setups: Vec<(String, Vec<(String, String)>)> = Vec::new();
        for row in rows {
            let part = (row.source.part.clone(), row.metric);
            let place = parts.iter().position(|known| *known == part).unwrap_or_else(|| {
                parts.push(part);
                parts.len() - 1
            });
            let (ran, mut load, figure) =
                (setup_line(&row.setup), load_line(&row.load), format!(" {place}:{}", row.value));
            if let Some(own) = closed(row).filter(|own| *own != rounds) {
                let _ = write!(load, " rounds={own}");
            }
            let at = setups.iter().position(|(known, _)| *known == ran).unwrap_or_else(|| {
                setups.push((ran, Vec::new()));
                setups.len() - 1
            });
            let loads = &mut setups[at].1;
            // Another figure of the same load; the same figure again is another run.
            match loads.last_mut().filter(|(l, f)| *l == load && !f.contains(&format!(" {place}:"))) {
                Some((_, figures)) => figures.push_str(&figure),
                None => loads.push((load, figure)),
            }
        }
        let mut text = String::new();
        for (ran, loads) in setups {
            let _ = writeln!(text, "{ran}");
            for (load, figures) in loads {
                let _ = writeln!(text, " {load}{figures}");
            }
        }
        Self { parts, rounds, rows: text }
    }

    fn load(&self, line: &str) -> Option<(Load, Vec<(usize, f64)>)> {
        let mut words = line.split_whitespace();
        let way = words.next()?;
        let (input, output) = (amount(words.next()?)?, amount(words.next()?)?);
        let mut load = Load::of(self.way(way, input)?, input, output);
        let mut figures = Vec::new();
        for word in words {
            if let Some(share) = word.strip_prefix("cached=") {
                load.cached = amount(share).filter(|share| *share <= 1.0)?;
            } else if let Some(drafts) = word.strip_prefix("drafts=") {
                let (drafts, accepted) = drafts.split_once(',')?;
                (load.drafts, load.accepted) = (amount(drafts)?, amount(accepted)?);
            } else if let Some(own) = word.strip_prefix("rounds=") {
                let Way::Closed { rounds, .. } = &mut load.way else { return None };
                *rounds = amount(own)?;
            } else if word == "cold" {
                load.cold = true;
            } else {
                let (part, value) = word.split_once(':')?;
                figures.push((part.parse().ok()?, amount(value).filter(|value| *value > 0.0)?));
            }
        }
        (!figures.is_empty()).then_some((load, figures))
    }

    fn way(&self, word: &str, input: f64) -> Option<Way> {
        let (kind, rest) = word.split_at_checked(1)?;
        Some(match kind {
            "c" => {
                let (n, fixed) = rest.strip_suffix('=').map_or((rest, false), |n| (n, true));
                Way::Closed { concurrency: amount(n)?, rounds: self.rounds, fixed }
            }
            "o" => Way::Open { rate: amount(rest)? },
            "f" if rest.is_empty() => Way::Full,
            "f" => Way::Queue { requests: amount(rest)? },
            "s" => Way::Static { batch: amount(rest)? },
            "d" => {
                let (batch, context) = rest.split_once('@')?;
                Way::DecodeStep { batch: amount(batch)?, context: amount(context)? }
            }
            "p" => Way::PrefillStep { batch: amount(rest)?, tokens: input },
            _ => return None,
        })
    }
}

fn amount(word: &str) -> Option<f64> {
    word.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0)
}

fn ran(line: &str) -> Option<Setup> {
    let mut words = line.split_whitespace();
    let mut word = || words.next();
    let given = |word: &str| (word != "-").then(|| word.to_owned());
    let (model, weights, kv) = (word()?.to_owned(), given(word()?), given(word()?));
    let (engine, system) = (word()?.to_owned(), word()?.to_owned());
    let degrees: Vec<u64> = word()?.split('/').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let &[tp, pp, dp, ep, etp] = &degrees[..] else { return None };
    let degrees = Degrees { tp, pp, dp, ep, etp, ..Degrees::default() };
    Layout::new(degrees).ok()?;
    let mut setup = Setup { model, weights, kv, engine, system, degrees, ..Setup::default() };
    for word in words {
        let (name, n) = word.split_once('=')?;
        match name {
            "chunk" => setup.chunk = Some(amount(n)?),
            "sequences" => setup.sequences = Some(amount(n)?),
            "looks" => setup.looks = Some(amount(n)?),
            "gather" => setup.gather = Some(amount(n)?),
            "hold" => {
                let (steps, share) = n.split_once(',')?;
                setup.hold = Some(Hold { steps: amount(steps)?, share: amount(share).filter(|share| *share <= 1.0)? });
            }
            "memory" => setup.memory = Some(amount(n).filter(|share| *share <= 1.0)?),
            _ => return None,
        }
    }
    Some(setup)
}

fn setup_line(s: &Setup) -> String {
    let (weights, kv, d) = (s.weights.as_deref().unwrap_or("-"), s.kv.as_deref().unwrap_or("-"), &s.degrees);
    let limits = [
        ("chunk", s.chunk),
        ("sequences", s.sequences),
        ("looks", s.looks),
        ("gather", s.gather),
        ("memory", s.memory),
    ];
    let mut limits = limits.iter().filter_map(|(name, n)| n.map(|n| format!(" {name}={n}"))).collect::<String>();
    if let Some(Hold { steps, share }) = s.hold {
        let _ = write!(limits, " hold={steps},{share}");
    }
    let degrees = format!("{}/{}/{}/{}/{}", d.tp, d.pp, d.dp, d.ep, d.etp);
    format!("{} {weights} {kv} {} {} {degrees}{limits}", s.model, s.engine, s.system)
}

fn load_line(load: &Load) -> String {
    let way = match load.way {
        Way::Closed { concurrency, fixed, .. } => format!("c{concurrency}{}", if fixed { "=" } else { "" }),
        Way::Open { rate } => format!("o{rate}"),
        Way::Full => "f".into(),
        Way::Queue { requests } => format!("f{requests}"),
        Way::Static { batch } => format!("s{batch}"),
        Way::DecodeStep { batch, context } => format!("d{batch}@{context}"),
        Way::PrefillStep { batch, .. } => format!("p{batch}"),
    };
    let mut line = format!("{way} {} {}", load.input, load.output);
    if load.cached > 0.0 {
        let _ = write!(line, " cached={}", load.cached);
    }
    if load.drafts > 0.0 {
        let _ = write!(line, " drafts={},{}", load.drafts, load.accepted);
    }
    if load.cold {
        line.push_str(" cold");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn source() -> Source {
        let text = || "x".to_owned();
        Source {
            name: text(),
            title: text(),
            address: text(),
            date: text(),
            licence: text(),
            retrieved: text(),
            fitted: text(),
            note: text(),
        }
    }

    fn read(rows: &str) -> Result<Vec<Measurement>, SpecError> {
        let parts = vec![("A TPOT".to_owned(), Metric::TpotMs), ("A TTFT".to_owned(), Metric::TtftMs)];
        Measured { parts, rounds: 10.0, rows: rows.to_owned() }.read("validation x", &source())
    }

    #[test]
    fn a_setup_stands_above_its_loads_and_a_load_before_its_figures() {
        let rows =
            read("llama-3.1-70b fp8 - vllm@0.11 8xh100 8/1/1/1/8\n c64 921.6 7372.8 0:23.407 1:261.4\n").unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].metric, rows[0].value, rows[1].value), (Metric::TpotMs, 23.407, 261.4));
        assert_eq!(rows[1].load.way, Way::Closed { concurrency: 64.0, rounds: 10.0, fixed: false });
        assert_eq!((rows[0].setup.weights.as_deref(), rows[0].setup.kv.as_deref()), (Some("fp8"), None));
        assert_eq!(rows[0].setup.degrees.etp, 8);
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (rows, part) in [
            (" c64 1 1 0:2", "what ran on a line before"),
            ("m - - e s 8/1/1/1\n", "tp/pp/dp/ep/etp"),
            ("m - - e s 1/1/1/1/1\n c64 1 1\n", "figures such as"),
            ("m - - e s 1/1/1/1/1\n c64 1 1 7:2\n", "the place of a part"),
            ("m - - e s 1/1/1/1/1\n c64 1 1 0:-2\n", "figures such as"),
            ("m - - e s 1/1/1/1/1\n z 1 1 0:2\n", "a load"),
        ] {
            let error = read(rows).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("measured row"), "{rows}: {error}");
        }
    }

    fn way() -> impl Strategy<Value = (Way, f64)> {
        let n = 1.0..5000.0_f64;
        let input = 1.0..9e4_f64;
        (0..7, n.clone(), n, input, any::<bool>()).prop_map(|(kind, n, m, input, fixed)| {
            let way = match kind {
                0 => Way::Closed { concurrency: n, rounds: if fixed { 50.0 } else { 10.0 }, fixed },
                1 => Way::Open { rate: n },
                2 => Way::Full,
                3 => Way::Static { batch: n },
                4 => Way::DecodeStep { batch: n, context: m },
                5 => Way::Queue { requests: n },
                _ => Way::PrefillStep { batch: n, tokens: input },
            };
            (way, input)
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_it_was(
            loads in prop::collection::vec((way(), 1.0..9e4_f64, 0.001..9e6_f64, 0..3_usize), 1..12),
            cached in prop::option::of(0.01..1.0_f64),
        ) {
            let rows: Vec<Measurement> = loads.into_iter().map(|((way, input), output, value, model)| {
                let model = ["a", "b", "c"][model].to_owned();
                let setup = Setup { model, engine: "vllm@0.11".into(), system: "8xh100".into(), chunk: cached, looks: cached, gather: cached, hold: cached.map(|share| Hold { steps: 20.0, share }), memory: cached, ..Setup::default() };
                let load = Load { cached: cached.unwrap_or(0.0), cold: cached.is_some(), ..Load::of(way, input, output) };
                let source = Origin { name: "x".into(), part: "A".into() };
                Measurement { setup, load, metric: Metric::TpotMs, value, spread: None, source }
            }).collect();
            let mut again = Measured::write(&rows).read("x", &source()).unwrap();
            let mut rows = rows;
            let by = |m: &Measurement| (m.setup.model.clone(), m.value.to_bits());
            rows.sort_by_key(by);
            again.sort_by_key(by);
            prop_assert_eq!(rows, again);
        }
    }
}
