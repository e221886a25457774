//! Worked numbers and laws of the matrix product.

use super::*;
use crate::operator::ideal;
use proptest::prelude::*;
use rackmath_spec::{Fit, GemmFormat};
use rackmath_units::{ByteRate, BytesPerParam, FlopRate};

fn silicon(tflop: f64, tb: f64, cores: f64) -> Silicon {
    Silicon { peak: FlopRate::tflop_per_s(tflop), bandwidth: ByteRate::tb_per_s(tb), cores, l2: Bytes::mb(50.0) }
}

/// A kernel without losses: tiles of one value, no floor, no operand limit, a hard corner.
fn perfect() -> GemmKernel {
    GemmKernel {
        class: "test".into(),
        format: GemmFormat::Bf16,
        backend: "any".into(),
        floor: Seconds::ZERO,
        host: Seconds::ZERO,
        compute: 1.0,
        power: None,
        bandwidth: 1.0,
        corner: f64::INFINITY,
        operand: None,
        wave: Seconds::ZERO,
        quantum: 0.0,
        droop: 0.0,
        droop_time: Seconds::ZERO,
        split: Seconds::ZERO,
        ramp: 0.0,
        ramp_time: Seconds::ZERO,
        resident: 0.0,
        tiles: vec![(1.0, 1.0)],
        splits: vec![1.0],
        dynamic: Vec::new(),
        fixed: Vec::new(),
        fit: Fit { rows: 0, median: 0.0, p90: 0.0 },
        source: "test".into(),
    }
}

fn close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-9, "{got} is not {expected}");
}

#[test]
fn one_wave_of_tiles_by_hand() {
    // 100 cores of 1 TFLOP/s; 200 tiles of 128 x 128 are two waves of 2 * 128 * 128 * 1000 / 0.5e12 = 65.536 us.
    let kernel =
        GemmKernel { tiles: vec![(128.0, 128.0)], compute: 0.5, quantum: 1.0, floor: Seconds::us(3.0), ..perfect() };
    let gemm = Gemm::new(silicon(100.0, 1000.0, 100.0), None, &kernel);
    let product = Product::new(128.0 * 10.0, 128.0 * 20.0, 1000.0);
    close(gemm.time(product, Scaling::Given).time.get(), 3e-6 + 2.0 * 65.536e-6);
    // One more column of tiles opens a third wave: 210 tiles on 100 cores.
    let more = Product { columns: 128.0 * 20.0 + 1.0, ..product };
    close(gemm.time(more, Scaling::Given).time.get(), 3e-6 + 3.0 * 65.536e-6);
}

#[test]
fn a_split_fills_idle_cores() {
    // 10 tiles on 100 cores: split by 8, eighty cores work an eighth as long, and the parts are added up.
    let kernel = GemmKernel { tiles: vec![(64.0, 64.0)], splits: vec![1.0, 8.0], split: Seconds::us(2.0), ..perfect() };
    let gemm = Gemm::new(silicon(100.0, 1000.0, 100.0), None, &kernel);
    let product = Product::new(64.0, 640.0, 65536.0);
    let tile = 2.0 * 64.0 * 64.0 * 65536.0 / 1e12;
    let sums = 8.0 * 8.0 * 64.0 * 640.0 / 1000e12;
    close(gemm.time(product, Scaling::Given).compute.get(), tile / 8.0 + 2e-6 + sums);
}

#[test]
fn a_pass_in_and_out_of_the_cache_by_hand() {
    let pass = Pass {
        width: BytesPerParam::new(2.0),
        floor: Seconds::us(7.0),
        core: ByteRate::gb_per_s(20.0),
        cold_core: None,
        bandwidth: 0.5,
        cached: 0.5,
        row: Seconds::ZERO,
    };
    let chip = silicon(1000.0, 1.0, 100.0);
    // 10 MB stay in 25 MB of cache: 10 MB / 2 TB/s = 5 us. Of 225 MB, 200 MB leave it: 200 MB / 0.5 TB/s = 400 us.
    close(pass_time(chip, &pass, Product::new(5000.0, 1.0, 1000.0)).get(), 12e-6);
    close(pass_time(chip, &pass, Product::new(112_500.0, 1.0, 1000.0)).get(), 407e-6);
}

#[test]
fn more_power_sustains_more_within_its_range() {
    let rule = PowerRule { peak: FlopRate::tflop_per_s(1000.0), tdp: Watts::w(400.0), range: (0.8, 1.15) };
    let factor = |tflop: f64, watts: f64| sustained(rule, silicon(tflop, 1.0, 1.0), Watts::w(watts));
    close(factor(1000.0, 400.0), 1.0);
    close(factor(1000.0, 484.0), 1.1);
    close(factor(1100.0, 400.0), 1.0 / 1.1);
    close(factor(1000.0, 4000.0), 1.15);
    close(factor(5000.0, 400.0), 0.8);
}

#[test]
fn every_catalogue_chip_has_kernels_in_the_formats_it_computes() {
    let catalog = rackmath_catalog::embedded();
    let kernels = catalog.gemm_kernels().unwrap();
    for id in catalog.ids(rackmath_spec::Kind::Chips) {
        let chip = catalog.chip(id).unwrap();
        for format in GemmFormat::ALL {
            let kernel = kernels.find(&chip, format, "trtllm").unwrap_or_else(|| panic!("{id} has no {format}"));
            assert_eq!(Gemm::of(&chip, kernel).is_some(), chip.peak.contains_key(&format.math()), "{id} {format}");
        }
    }
    let workstation = catalog.chip("rtx-pro-6000").unwrap();
    assert_eq!(kernels.find(&workstation, GemmFormat::Bf16, "vllm").unwrap().class, "blackwell-gddr");
}

/// Chips with constants of their own and a size for each.
fn cases() -> impl Strategy<Value = (usize, f64, f64, f64)> {
    (0..1000_usize, 0.0..15.0_f64, 6.0..16.0_f64, 6.0..14.5_f64)
        .prop_map(|(i, m, n, k)| (i, m.exp2().floor(), n.exp2().floor(), k.exp2().floor()))
}

fn nth(i: usize) -> (Silicon, GemmKernel) {
    let kernels = &rackmath_catalog::embedded().gemm_kernels().unwrap().kernels;
    let kernel = kernels[i % kernels.len()].clone();
    (silicon(500.0 + 37.0 * (i % 50) as f64, 1.0 + 0.1 * (i % 70) as f64, 80.0 + (i % 100) as f64), kernel)
}

const SCALINGS: [Scaling; 3] = [Scaling::Given, Scaling::Static, Scaling::Dynamic];

proptest! {
    #[test]
    fn never_faster_than_the_roofline((i, m, n, k) in cases()) {
        let (silicon, kernel) = nth(i);
        let gemm = Gemm::new(silicon, None, &kernel);
        let product = Product::new(m, n, k);
        let bound = ideal(silicon, product.flop(), gemm.traffic(product));
        let times = SCALINGS.map(|s| gemm.time(product, s).time);
        prop_assert!(times[0] >= bound.time);
        prop_assert!(times[0] <= times[1] && times[1] <= times[2], "{times:?}");
    }

    #[test]
    fn more_work_takes_longer((i, m, n, k) in cases(), more in 1.0..3.0_f64) {
        let (silicon, kernel) = nth(i);
        let gemm = Gemm::new(silicon, None, &kernel);
        let product = Product::new(m, n, k);
        for scaling in SCALINGS {
            let time = |p: Product| gemm.time(p, scaling).time.get() * (1.0 + 1e-12);
            let base = gemm.time(product, scaling).time.get();
            let rows = time(Product { rows: (m * more).ceil(), ..product });
            let columns = time(Product { columns: (n * more).ceil(), ..product });
            let depth = time(Product { depth: (k * more).ceil(), ..product });
            prop_assert!(rows.min(columns).min(depth) >= base);
        }
    }

    #[test]
    fn a_faster_chip_is_not_slower((i, m, n, k) in cases(), more in 1.0..3.0_f64, watts in 100.0..2000.0_f64) {
        let (silicon, kernel) = nth(i);
        let product = Product::new(m, n, k);
        let time = |s: Silicon| Gemm::new(s, Some(Watts::w(watts)), &kernel).time(product, Scaling::Dynamic).time.get();
        let base = time(silicon) * (1.0 + 1e-12);
        let peak = time(Silicon { peak: silicon.peak * more, ..silicon });
        let bandwidth = time(Silicon { bandwidth: silicon.bandwidth * more, ..silicon });
        let cache = time(Silicon { l2: silicon.l2 * more, ..silicon });
        prop_assert!(peak.max(bandwidth).max(cache) <= base);
    }

    #[test]
    fn without_losses_it_is_the_roofline(m in 1.0..5000.0_f64, n in 1.0..9000.0_f64, k in 1.0..9000.0_f64) {
        let kernel = perfect();
        // One core, so that a product of a few values does not leave cores idle.
        let silicon = silicon(989.0, 3.35, 1.0);
        let gemm = Gemm::new(silicon, None, &kernel);
        let product = Product::new(m.floor(), n.floor(), k.floor());
        let bound = ideal(silicon, product.flop(), gemm.traffic(product));
        prop_assert!((gemm.time(product, Scaling::Given).time / bound.time - 1.0).abs() < 1e-12);
    }
}
