use super::*;

fn overhead(us: f64) -> Overhead {
    let (engine, _) = rackmath_catalog::embedded().engine("vllm").unwrap();
    Overhead { host: Seconds::us(us), ..first(&engine.overhead) }
}

#[test]
fn an_engine_nobody_measured_gets_the_middle_of_the_others() {
    let own = overhead(1.0);
    let kin = |same, us| (same, overhead(us));
    // The geometric mean of 100 and 400; relatives come first.
    let middle = borrowed(&own, &[kin(false, 100.0), kin(false, 400.0)]);
    assert!((middle.host.get() - 200e-6).abs() < 1e-12);
    let relative = borrowed(&own, &[kin(false, 100.0), kin(true, 400.0)]);
    assert!((relative.host.get() - 400e-6).abs() < 1e-12);
    assert_eq!(borrowed(&own, &[]), first(&own));
}

#[test]
fn fits_side_by_side_come_back_in_order_whichever_ends_first() {
    let jobs = [("a", ""), ("b", "x"), ("c", "y")];
    let run = |id: &str, _: &str| Ok(overhead(if id == "a" { 1.0 } else { 2.0 }));
    let found = fitted(&jobs, &|_, _, _| {}, run).unwrap();
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), jobs);
    assert_eq!(found[&("a", "")].host, Seconds::us(1.0));
}
