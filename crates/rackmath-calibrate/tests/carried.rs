//! The tables of `catalog/evidence` are what the rows of `catalog/validation` give.

use rackmath_calibrate::answer;
use rackmath_spec::evidence::{Differ, Step, Widths};
use rackmath_spec::file::evidence;
use strum::VariantArray as _;

/// How far a width may move before the table is printed again: a quarter of it, as steps are timed better from day to day.
fn near(a: Widths, b: Widths) -> bool {
    [(a.tpot, b.tpot), (a.ttft, b.ttft), (a.throughput, b.throughput)]
        .iter()
        .all(|(a, b)| (a - b).abs() <= 0.05_f64.max(0.25 * a.max(*b)))
}

#[test]
fn the_carried_table_of_widths_is_what_the_carried_rows_give() {
    let catalog = rackmath_catalog::embedded();
    let text = answer(&catalog, &["fit", "intervals"], &|_, _, _| {}).unwrap().unwrap();
    let (carried, again) = (catalog.evidence().unwrap(), evidence("again", &text).unwrap());
    let how = "print it anew: rackmath-calibrate fit intervals > crates/rackmath-catalog/data/evidence/intervals.toml";
    for step in Step::VARIANTS {
        let (a, b) = (carried.widths(*step), again.widths(*step));
        assert!(near(a, b), "{step}: {a:?} carried, {b:?} now; {how}");
    }
    for differ in Differ::VARIANTS {
        let (a, b) = (carried.apart(*differ), again.apart(*differ));
        assert!(near(a, b), "apart by {differ}: {a:?} carried, {b:?} now; {how}");
    }
    assert_eq!(carried.seen, again.seen, "{how}");
    assert_eq!((&carried.chips, &carried.models), (&again.chips, &again.models), "{how}");
    assert_eq!((&carried.engines, &carried.kernels), (&again.engines, &again.kernels), "{how}");
}
