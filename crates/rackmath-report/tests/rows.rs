//! Rows of a sweep, as each kind of table.

use rackmath::plan::Request;
use rackmath::plan::sweep::Sweep;
use rackmath::setting::Setting;
use rackmath::table::{Rows, run};
use rackmath_report::rows::Format;
use std::convert::Infallible;

fn sweep(feasible: bool) -> Sweep {
    let setting = Setting { model: "llama-3.1-8b".into(), on: "8xh100".into(), ..Setting::default() };
    let request = Request { setting, tpot_ms: Some(5.0.into()), ..Request::default() };
    Sweep::new(&rackmath_catalog::embedded(), &request, (1, 1), feasible, 2).unwrap()
}

fn csv(sweep: &Sweep, threads: usize) -> String {
    let mut text = Format::Csv.header(sweep.columns());
    let done = run(
        sweep,
        threads,
        |block| Format::Csv.lines(&block, sweep.columns(), sweep.words()),
        |lines, _| {
            text.push_str(&lines);
            Ok::<_, Infallible>(true)
        },
    );
    assert_eq!(done, Ok(sweep.looked_at()));
    text
}

#[cfg(feature = "parquet")]
fn parquet(sweep: &Sweep) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut table = rackmath_report::parquet::ParquetRows::new(&mut bytes, sweep.columns(), sweep.words()).unwrap();
    run(sweep, 2, |block| block, |block, _| table.add(block).map(|()| true)).unwrap();
    table.finish().unwrap();
    bytes
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_and_csv_agree_cell_by_cell() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let sweep = sweep(true);
    let text = csv(&sweep, 1);
    let mut lines = text.lines().skip(1);
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("agree.parquet");
    std::fs::write(&path, parquet(&sweep)).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut rows = 0;
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let cells: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert_eq!(cells.len(), rackmath::plan::sweep::COLUMNS.len());
        for ((name, field), cell) in row.get_column_iter().zip(&cells) {
            match field {
                Field::Long(n) => assert_eq!(n.to_string(), *cell, "{name}"),
                Field::Double(x) => assert_eq!(x.to_string(), *cell, "{name}"),
                Field::Str(word) => assert_eq!(word, cell, "{name}"),
                Field::Bool(yes) => assert_eq!(yes.to_string(), *cell, "{name}"),
                other => panic!("{name} is {other:?}"),
            }
        }
        rows += 1;
    }
    assert!(rows > 100 && lines.next().is_none(), "{rows}");
}

#[test]
fn rows_do_not_depend_on_threads() {
    let sweep = sweep(false);
    let one = csv(&sweep, 1);
    assert_eq!(one, csv(&sweep, 3));
    #[cfg(feature = "parquet")]
    assert_eq!(parquet(&sweep), parquet(&sweep));
}

#[test]
fn a_sweep_ends_when_it_is_told_to() {
    let sweep = sweep(false);
    let mut blocks = 0;
    let done = run(
        &sweep,
        3,
        |block| block.rows,
        |_, _| {
            blocks += 1;
            Ok::<_, Infallible>(blocks < 2)
        },
    );
    assert!(done.unwrap() < sweep.looked_at());
    assert_eq!(run(&sweep, 2, |block| block.rows, |_, _| Err::<bool, _>("full")), Err("full"));
}
