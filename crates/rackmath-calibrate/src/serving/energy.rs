//! Joules of an output token, against what InferenceX measured of the chips alone.
//!
//! $$ E = \frac{P}{r} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | E | joules | J | energy of a chip for an output token, that of its prompt included |
//! | P | power | W | the chip's design power: no chip's draw under a load is in the catalogue |
//! | r | rate | tok/s | predicted output tokens per second and chip |
//!
//! Ignores: that a chip which waits for memory or links draws less than its design power. Source: ours.

use super::{case, inferencex};
use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use rackmath::case::Bench;
use rackmath_spec::measurement::{Measurement, Metric, Origin};
use rackmath_spec::{Catalog, SpecError};
use std::path::Path;

pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let (names, mut bench) = (Names::new(catalog), Bench::new(catalog.clone())?);
    let mut all = Rows::none();
    for file in [inferencex::NEWEST, inferencex::DUMP] {
        for (row, joules) in table_or_none(&folder.join(file))?.iter().filter_map(|row| Some((row, joules(row)?))) {
            match energy(catalog, &names, &mut bench, (file, row)) {
                Ok(case) => all.rows.push(Case { measured: joules, ..case }),
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

fn energy(
    catalog: &Catalog,
    names: &Names<'_>,
    bench: &mut Bench,
    (file, row): (&str, &Record),
) -> Result<Case, String> {
    let (setup, load) = inferencex::plain(names, row)?;
    let said = |e: SpecError| e.to_string();
    catalog.engine(&setup.engine).map_err(|_| format!("no engine \"{}\"", setup.family()))?;
    let case = case(catalog, file, "joules per token", (&setup, &load)).map_err(said)?;
    let chip = catalog.chip(&case.chip).map_err(said)?;
    let power = chip.power.tdp.as_ref().ok_or_else(|| format!("{}: no design power", chip.id))?.value;
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
    let what = rackmath::validate::ran(&asked).replace(',', ";");
    Ok(Case { what, predicted: power.get() / rate, ..case })
}

#[cfg(test)]
#[test]
fn joules_are_stated_or_watts_over_the_rate() {
    let csv = "joules_per_output_token,avg_power_w,measured_output_tok_s_per_gpu\n4,,\n,600,200\n,600,\n";
    let rows = crate::rows::parse(csv).unwrap();
    assert_eq!(rows.iter().map(joules).collect::<Vec<_>>(), [Some(4.0), Some(3.0), None]);
}
