//! Joules of an output token, against what InferenceX measured of the chips' boards alone, and the constants of what chips draw.
//!
//! A row states the mean power of its chips from the first request to the last, times chips and seconds, over the output
//! tokens (InferenceX, pull request 1558). Predicted is [`rackmath_theory::power`] over predicted output tokens per second and chip.
//!
//! [`fit`] is about watts, not joules: what a row's chips drew is its joules times its measured output tokens per second, and
//! the work behind them is the predicted pass's at the measured speed. How wrong a predicted speed is does not bend a constant. The loss is the mean
//! of |ln(predicted / measured)|, each row counting at most [`CAP`].

use super::{case, inferencex};
use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use crate::search;
use crate::table::{Errors, fit_line, left_out, rounded};
use rackmath::case::Bench;
use rackmath_spec::draw::{PowerDraw, Standing};
use rackmath_spec::measurement::{Measurement, Metric, Origin};
use rackmath_spec::{Catalog, Chip, Residual, SpecError};
use rackmath_theory::power::{Busy, drawn};
use rackmath_theory::stats::median;
use rackmath_units::{Watts, float};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// The most one row adds to the loss.
const CAP: f64 = 0.7;

pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let draw = catalog.power_draw()?;
    Ok(runs(catalog, folder)?.map(|run| {
        let predicted = run.predicted(&draw);
        Ok::<_, String>(Case { predicted, ..run.case })
    }))
}

/// A measured run, and how busy its chips are by our passes.
struct Run {
    /// Of joules, without a prediction.
    case: Case,
    chip: Arc<Chip>,
    busy: Busy,
    /// Output tokens per second and chip, predicted and measured.
    rate: f64,
    measured_rate: Option<f64>,
}

impl Run {
    fn watts(&self, draw: &PowerDraw, busy: Busy) -> f64 {
        drawn(draw, &self.chip, busy).map_or(f64::NAN, Watts::get)
    }

    /// Joules of an output token at the speed we predict.
    fn predicted(&self, draw: &PowerDraw) -> f64 {
        self.watts(draw, self.busy) / self.rate
    }

    /// ln(predicted / measured) of joules at the speed we predict.
    fn error(&self, draw: &PowerDraw) -> f64 {
        float::ln(self.predicted(draw) / self.case.measured)
    }

    /// The same of watts at the speed that was measured, with the work done at that speed.
    fn drawing_error(&self, draw: &PowerDraw) -> Option<f64> {
        let rate = self.measured_rate?;
        let watts = self.watts(draw, self.busy.faster(rate / self.rate));
        Some(float::ln(watts / (self.case.measured * rate)))
    }
}

fn runs(catalog: &Catalog, folder: &Path) -> Result<Rows<Run>, SpecError> {
    let (names, mut bench) = (Names::new(catalog), Bench::new(catalog.clone())?);
    let mut all = Rows::none();
    for file in [inferencex::NEWEST, inferencex::DUMP] {
        for (row, joules) in table_or_none(&folder.join(file))?.iter().filter_map(|row| Some((row, joules(row)?))) {
            match run(catalog, &names, &mut bench, (file, row)) {
                Ok(run) => all.rows.push(Run { case: Case { measured: joules, ..run.case }, ..run }),
                Err(reason) => all.skip(format!("{file}, joules: {reason}")),
            }
        }
    }
    Ok(all)
}

/// Stated, or watts of a chip over its output tokens per second.
fn joules(row: &Record) -> Option<f64> {
    let own = || Some(row.number("avg_power_w")? / row.number("measured_output_tok_s_per_gpu")?);
    row.number("joules_per_output_token").or_else(own).filter(|j| *j > 0.0)
}

/// Output tokens per second and chip: stated, or their part of all tokens.
fn measured_rate(row: &Record) -> Option<f64> {
    let part = || {
        let (isl, osl) = (row.number("isl")?, row.number("osl")?);
        Some(row.number("measured_total_tok_s_per_gpu")? * osl / (isl + osl))
    };
    row.number("measured_output_tok_s_per_gpu").or_else(part).filter(|r| *r > 0.0)
}

fn run(catalog: &Catalog, names: &Names<'_>, bench: &mut Bench, (file, row): (&str, &Record)) -> Result<Run, String> {
    let (setup, load) = inferencex::plain(names, row)?;
    let said = |e: SpecError| e.to_string();
    catalog.engine(&setup.engine).map_err(|_| format!("no engine \"{}\"", setup.family()))?;
    let case = case(catalog, file, "joules per token", (&setup, &load)).map_err(said)?;
    let chip = catalog.chip(&case.chip).map_err(said)?;
    chip.power.tdp.as_ref().ok_or_else(|| format!("{}: no design power", chip.id))?;
    let asked = Measurement {
        setup,
        load,
        metric: Metric::OutputTokSPerGpu,
        value: f64::NAN,
        spread: None,
        source: Origin::default(),
    };
    let rate = bench.predict(&asked).map_err(said)?;
    if !(rate > 0.0 && rate.is_finite()) {
        return Err("predicted not to fit".into());
    }
    let pass = bench.mean_pass(&asked).map_err(said)?.ok_or("no load of requests")?;
    let what = rackmath::validate::ran(&asked).replace(',', ";");
    let (busy, measured_rate) = (Busy::during(&pass), measured_rate(row));
    Ok(Run { case: Case { what, ..case }, chip, busy, rate, measured_rate })
}

/// The constants anew, as `support/power` of the catalogue, and what they do to chips and models they have not seen.
pub fn fit(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let (start, Rows { rows, .. }) = (catalog.power_draw()?, runs(catalog, folder)?);
    let rows: Vec<&Run> = rows.iter().filter(|run| run.measured_rate.is_some()).collect();
    if rows.is_empty() {
        return Err(SpecError::field("energy", "rows", 0, "rows with joules and a rate of output tokens"));
    }
    let found = fitted(&start, &rows);
    let mut text = toml(&found);
    let mut say = |what: &str, errors: [Option<Errors>; 2]| {
        let [watts, joules] = errors.map(|e| {
            e.map_or_else(String::new, |e| format!("{:.3} / {:.3} ({:+.3})", e.fit.median, e.fit.p90, e.bias))
        });
        _ = writeln!(text, "# {what:<34} {watts:>24} {joules:>24}");
    };
    let both = |draw: &PowerDraw| [errors(draw, &rows), Errors::of(rows.iter().map(|r| r.error(draw)))];
    let limit = PowerDraw { standing: 1.0, generations: Vec::new(), ..(*start).clone() };
    say("design power all the time", both(&limit));
    // Joules that watts without any error would give: what is left is the error of the speed.
    let speed = rows.iter().filter_map(|run| Some(float::ln(run.measured_rate? / run.rate)));
    say("watts as measured", [None, Errors::of(speed)]);
    say("as fitted", both(&found));
    let without = |group: fn(&Run) -> &str| -> Result<[Option<Errors>; 2], SpecError> {
        let fit = |kept: &[&Run]| Ok(fitted(&start, kept));
        let watts = left_out(&rows, group, fit, |draw, run| Ok(run.drawing_error(draw).unwrap_or(f64::NAN)))?;
        let joules = left_out(&rows, group, fit, |draw, run| Ok(run.error(draw)))?;
        Ok([watts, joules].map(|all| Errors::of(all.into_iter().map(|(_, e)| e))))
    };
    say("each chip left out", without(|run| &run.case.chip)?);
    say("each generation left out", without(|run| &run.chip.generation)?);
    say("each model left out", without(|run| &run.case.model)?);
    say("each engine left out", without(|run| run.case.family())?);
    let heading =
        "# median / p90 (signed median) of |ln(predicted / measured)|: watts at the measured speed, joules at ours\n";
    let at = text.find("# design power").unwrap_or(text.len());
    text.insert_str(at, heading);
    Ok(text)
}

fn errors(draw: &PowerDraw, rows: &[&Run]) -> Option<Errors> {
    Errors::of(rows.iter().filter_map(|run| run.drawing_error(draw)))
}

/// Energy of a byte and of arithmetic of all rows, and what chips of each generation draw whenever an engine runs; the middle of these for others.
fn fitted(start: &PowerDraw, rows: &[&Run]) -> PowerDraw {
    let names: BTreeSet<&str> = rows.iter().map(|run| run.chip.generation.as_str()).collect();
    let made = |values: &[f64]| {
        let share = |x: f64| rounded(x.clamp(0.0, 1.0));
        let one = |(name, x): (&&str, &f64)| Standing {
            name: (*name).to_owned(),
            standing: share(*x),
            fit: Residual::default(),
        };
        let standing = share(median(&values[2..]).unwrap_or(start.standing));
        let generations = names.iter().zip(&values[2..]).map(one).collect();
        let (arithmetic, byte_pj) = (rounded(values[0]), rounded(values[1]));
        PowerDraw { arithmetic, byte_pj, standing, generations, ..start.clone() }
    };
    let first: Vec<f64> = [5.0, 100.0].into_iter().chain(names.iter().map(|_| 0.3)).collect();
    let loss = |values: &[f64]| {
        let draw = made(values);
        rows.iter().filter_map(|run| run.drawing_error(&draw)).map(|e| e.abs().min(CAP)).sum::<f64>()
            / rows.len() as f64
    };
    let mut found = made(&search::minimum(&first, loss));
    let residual = |draw: &PowerDraw, rows: &[&Run]| errors(draw, rows).map(|e| e.fit).unwrap_or_default();
    found.fit = residual(&found, rows);
    for at in 0..found.generations.len() {
        let own: Vec<&Run> =
            rows.iter().copied().filter(|run| run.chip.generation == found.generations[at].name).collect();
        found.generations[at].fit = residual(&found, &own);
    }
    found
}

fn toml(draw: &PowerDraw) -> String {
    let PowerDraw { arithmetic, byte_pj, standing, fit, .. } = draw;
    let mut text =
        format!("arithmetic = {arithmetic}\nbyte_pj = {byte_pj:.1}\nstanding = {standing}\n{}", fit_line(*fit));
    for g in &draw.generations {
        _ = write!(text, "\n[[generation]]\nname = \"{}\"\nstanding = {}\n{}", g.name, g.standing, fit_line(g.fit));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joules_are_stated_or_watts_over_the_rate() {
        let csv = "joules_per_output_token,avg_power_w,measured_output_tok_s_per_gpu\n4,,\n,600,200\n,600,\n";
        let rows = crate::rows::parse(csv).unwrap();
        assert_eq!(rows.iter().map(joules).collect::<Vec<_>>(), [Some(4.0), Some(3.0), None]);
    }

    #[test]
    fn output_tokens_are_stated_or_their_part_of_all() {
        let csv = "measured_output_tok_s_per_gpu,measured_total_tok_s_per_gpu,isl,osl\n50,,,\n,900,8192,1024\n,900,,\n";
        let rows = crate::rows::parse(csv).unwrap();
        assert_eq!(rows.iter().map(measured_rate).collect::<Vec<_>>(), [Some(50.0), Some(100.0), None]);
    }

    #[test]
    fn constants_are_found_again_whatever_the_predicted_speed() {
        let catalog = rackmath_catalog::embedded();
        let start = (*catalog.power_draw().unwrap()).clone();
        let standing = |name: &str, standing| Standing { name: name.into(), standing, fit: Residual::default() };
        let generations = vec![standing("blackwell", 0.3), standing("hopper", 0.2)];
        let truth = PowerDraw { arithmetic: 4.0, byte_pj: 120.0, standing: 0.25, generations, ..start.clone() };
        let mut rows = Vec::new();
        for (id, slower) in [("h200", 1.0), ("b200", 0.5)] {
            let chip = catalog.chip(id).unwrap();
            for i in 0..24 {
                let busy = Busy { arithmetic: f64::from(i % 5) * 0.01, memory: f64::from(i % 7) * 0.08 };
                // The chip does the work of our pass at a share of the speed we predict.
                let watts = drawn(&truth, &chip, busy.faster(slower)).unwrap().get();
                let (rate, measured) = (100.0, 100.0 * slower);
                let case = Case { measured: watts / measured, ..Case::on(&chip, "made up", "joules per token") };
                rows.push(Run { case, chip: chip.clone(), busy, rate, measured_rate: Some(measured) });
            }
        }
        let all: Vec<&Run> = rows.iter().collect();
        let found = fitted(&start, &all);
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.02, "{got} is not {want}");
        near(found.arithmetic, 4.0);
        near(found.byte_pj, 120.0);
        near(found.standing, 0.25);
        assert_eq!(found.generations.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(), ["blackwell", "hopper"]);
        near(found.generations[0].standing, 0.3);
        near(found.generations[1].standing, 0.2);
        assert_eq!((found.fit.rows, found.generations[0].fit.rows), (48, 24));
        assert!(found.fit.p90 < 0.02, "{:?}", found.fit);
    }
}
