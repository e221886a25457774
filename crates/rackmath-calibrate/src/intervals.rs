//! The tables of `catalog/evidence`, from the rows of `catalog/validation` alone.
//!
//! `fit refits` fits the constants of every engine without each chip, generation, version, model and kind of model; `fit intervals`
//! predicts what was left out with them and prints how wide an 80 % interval has to be, by what is carried over, and an index of what was
//! measured. The second takes seconds, the first minutes.

use crate::Tell;
use crate::serving::overheads;
use rackmath::validate::coverage::{self, Filed, Width};
use rackmath_spec::evidence::{Constants, Differ, Step, kind};
use rackmath_spec::measurement::Measurement;
use rackmath_spec::{Catalog, SpecError};
use rackmath_units::{Cancel, significant};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use strum::VariantArray as _;

/// Rows that constants are fitted on; those of later tables are only predicted.
fn in_a_fit(catalog: &Catalog, f: &Filed) -> bool {
    catalog.validation(&f.table).is_ok_and(|table| !table.source.fitted.starts_with("no"))
}

/// Constants of engines without a group, as TOML; of one step where it is named.
pub fn refits(catalog: &Catalog, only: Option<Step>, tell: Tell<'_>) -> Result<String, SpecError> {
    let filed = coverage::filed(catalog, &Cancel::default())?;
    let kept: Vec<&Filed> = filed.iter().filter(|f| in_a_fit(catalog, f)).collect();
    let rows: Vec<Measurement> = kept.iter().map(|f| f.row.clone()).collect();
    let mut text = format!(
        "# Printed by `rackmath-calibrate fit refits`.\nas_of = \"{}\"\nsource = \"overheads of engines fitted by rackmath-calibrate on the rows of \
         validation/ that are in a fit, without one group at a time, from first values that know no measurement\"\nrefit = [\n",
        catalog.evidence()?.as_of
    );
    let steps = [Step::Chip, Step::Generation, Step::Version, Step::Model, Step::Kind];
    for step in steps.into_iter().filter(|step| only.is_none_or(|one| one == *step)) {
        let group = |f: &Filed| match step {
            Step::Chip => f.chip.id.clone(),
            Step::Generation => f.chip.generation.clone(),
            Step::Version => f.engine.id.clone(),
            Step::Model => f.row.setup.model.clone(),
            _ => f.kind.clone(),
        };
        let folds: Vec<String> = kept.iter().map(|f| group(f)).collect();
        for ((without, engine), overhead) in overheads(catalog, &rows, &folds, tell)? {
            let c = Constants::of(&overhead);
            let n = |x: f64| significant(x, 4).replace(',', "");
            let own =
                c.expert_stretch.map_or(String::new(), |(a, b)| format!(", expert_stretch = [{}, {}]", n(a), n(b)));
            let _ = writeln!(
                text,
                "  {{ step = \"{step}\", without = \"{without}\", engine = \"{engine}\", constants = {{ small_us = {}, skew_us = {}, \
                 stretch = {}, stretch_long = {}, expert_floor = {}, host_us = {}, host_sequence_us = {}, request_ms = {}, \
                 request_concurrent_ms = {}, small_traffic_divisor = {}{own} }} }},",
                n(c.small_us),
                n(c.skew_us),
                n(c.stretch),
                n(c.stretch_long),
                n(c.expert_floor),
                n(c.host_us),
                n(c.host_sequence_us),
                n(c.request_ms),
                n(c.request_concurrent_ms),
                n(c.small_traffic_divisor),
            );
        }
    }
    Ok(text + "]\n")
}

/// Widths and the index, as TOML.
pub fn fit(catalog: &Catalog) -> Result<String, SpecError> {
    let cancel = Cancel::default();
    let filed = coverage::filed(catalog, &cancel)?;
    let held = coverage::held(catalog, &filed, &cancel)?;
    let apart = coverage::apart(catalog, &filed, &cancel)?;
    let evidence = catalog.evidence()?;
    let list = |words: BTreeSet<String>| words.iter().fold(String::new(), |text, w| text + "  " + w + ",\n");
    let chips = filed.iter().map(|f| format!("[{:?}, {:?}, {:?}]", f.chip.id, f.chip.generation, f.chip.vendor));
    let engines = filed.iter().map(|f| format!("[{:?}, {:?}]", f.engine.id, f.engine.family));
    let mut models = BTreeSet::new();
    for f in &filed {
        let model = catalog.model(&f.row.setup.model)?;
        models.insert(format!("[{:?}, {:?}]", model.id, kind(&model)));
    }
    let mut text = format!(
        "# Printed by `rackmath-calibrate fit intervals` from the rows of validation/; a test holds it against them.\nas_of = {:?}\nsource = \
         \"80 % quantiles of |ln(predicted / measured)| over rows of validation/ whose whole group was left out of the fit, by what is carried over; \
         apart: of the difference of two such errors under one load, by what the two differ in\"\nkernels = {:?}\n",
        evidence.as_of, evidence.kernels
    );
    let _ = writeln!(text, "chips = [\n{}]\nmodels = [\n{}]", list(chips.collect()), list(models));
    let _ = writeln!(text, "engines = [\n{}]\nwidth = [", list(engines.collect()));
    for step in Step::VARIANTS {
        let (w, n, groups) = coverage::widths(&held, *step);
        let _ = writeln!(text, "{}", line(*step, [w.tpot, w.ttft, w.throughput], n, groups));
    }
    text += "]\napart = [\n";
    for differ in Differ::VARIANTS {
        let columns = coverage::columns(&apart, *differ);
        let (n, groups) = columns.iter().fold((0, 0), |(n, g), w: &Width| (n + w.n, g.max(w.groups)));
        let _ = writeln!(text, "{}", line(*differ, columns.map(|w| w.width), n, groups));
    }
    text += "]\nseen = \"\"\"\n";
    for seen in coverage::seen(catalog, &filed, &held)? {
        let _ = writeln!(text, "{seen}");
    }
    Ok(text + "\"\"\"\n")
}

fn line(by: impl std::fmt::Display, [tpot, ttft, throughput]: [f64; 3], n: usize, groups: usize) -> String {
    format!(
        "  {{ by = \"{by}\", tpot = {tpot:.3}, ttft = {ttft:.3}, throughput = {throughput:.3}, n = {n}, groups = {groups} }},"
    )
}
