//! Constants of one's own, on carried rows: half of a server's rows to fit, the other half to check.

use rackmath::case::Bench;
use rackmath::validate::measurements;
use rackmath_calibrate::own;
use rackmath_spec::Catalog;
use rackmath_spec::constants::Constants;
use rackmath_spec::measurement::Measurement;
use rackmath_theory::stats::median;

/// Rows of one engine, with one model on one machine.
fn rows(catalog: &Catalog, table: &str, [engine, model, system]: [&str; 3]) -> Vec<Measurement> {
    let (mut all, _) = measurements(catalog, &catalog.validation(table).unwrap());
    all.retain(|row| row.setup.family() == engine && row.setup.model == model && row.setup.system == system);
    assert!(all.len() >= 12, "{} rows of {model} on {system}", all.len());
    all
}

fn error(catalog: &Catalog, rows: &[Measurement]) -> f64 {
    let mut bench = Bench::new(catalog.clone()).unwrap();
    let distances: Vec<f64> = rows.iter().map(|row| (bench.predict(row).unwrap() / row.value).ln().abs()).collect();
    median(&distances).unwrap()
}

/// Before and after on the half that the fit never saw, through the file that a person would use.
fn halves(catalog: &Catalog, rows: &[Measurement]) -> (f64, f64, Vec<own::Fit>) {
    // Every other load: figures of one run go together.
    let mut loads: Vec<String> = Vec::new();
    let mut place = |row: &Measurement| {
        let load = format!("{:?}", row.load);
        loads.iter().position(|known| *known == load).unwrap_or_else(|| {
            loads.push(load);
            loads.len() - 1
        })
    };
    let places: Vec<usize> = rows.iter().map(&mut place).collect();
    let half = |odd: usize| -> Vec<Measurement> {
        rows.iter().zip(&places).filter(|(_, place)| *place % 2 == odd).map(|(row, _)| row.clone()).collect()
    };
    let (fitted, checked) = (half(0), half(1));
    let fits = own::fit(catalog, &fitted).unwrap();
    let mut with = catalog.clone();
    Constants::read("own.toml", &own::file(&fits)).map_or_else(
        |e| assert!(fits.iter().all(|f| !f.better), "{e}"),
        |constants| constants.lay_over("own.toml", &mut with, None).unwrap(),
    );
    (error(catalog, &checked), error(&with, &checked), fits)
}

#[test]
fn a_server_the_catalogue_predicts_badly_is_predicted_twice_as_well() {
    let catalog = rackmath_catalog::embedded();
    let rows = rows(&catalog, "atom", ["atom", "gpt-oss-120b", "8xmi355x"]);
    let (before, after, fits) = halves(&catalog, &rows);
    assert!(before > 0.3 && after <= before / 2.0, "{before} {after}\n{fits:?}");
}

#[test]
fn a_server_it_predicts_well_is_not_predicted_worse() {
    let catalog = rackmath_catalog::embedded();
    let rows = rows(&catalog, "argonne", ["vllm", "qwen2-7b", "gh200"]);
    let (before, after, fits) = halves(&catalog, &rows);
    assert!(before < 0.12 && after <= before + 1e-9, "{before} {after}\n{fits:?}");
}

#[test]
fn what_single_chips_cannot_tell_is_named_and_stays() {
    let catalog = rackmath_catalog::embedded();
    let rows: Vec<Measurement> = rows(&catalog, "argonne", ["vllm", "qwen2-7b", "gh200"]).into_iter().take(6).collect();
    let fits = own::fit(&catalog, &rows).unwrap();
    let [fit] = &fits[..] else { panic!("{fits:?}") };
    assert!(fit.untold.iter().any(|name| name == "skew_us"), "{:?}", fit.untold);
    assert!(fit.constants.iter().all(|c| c.name != "skew_us"));
}

#[test]
fn too_few_rows_are_refused() {
    let catalog = rackmath_catalog::embedded();
    let rows: Vec<Measurement> = rows(&catalog, "argonne", ["vllm", "qwen2-7b", "gh200"]).into_iter().take(2).collect();
    let error = own::fit(&catalog, &rows).unwrap_err().to_string();
    assert!(error.contains("2 rows") && error.contains("at least 3"), "{error}");
}
