//! The lecture's golden numbers for chapter 1, and the laws its curves obey.

use proptest::prelude::*;
use rackmath_spec::Dtype;
use rackmath_theory::board::{Balance, Board, Counting, Rules, closed};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::roofline::{Binding, Overlap};
use rackmath_theory::{count, curve, kv, roofline};
use rackmath_units::{DollarRate, Seconds, TokenRate, Tokens};
use std::sync::LazyLock;

fn close(got: f64, expected: f64, tolerance: f64) {
    assert!((got / expected - 1.0).abs() <= tolerance, "{got} is not {expected}");
}

fn on(model: &str, system: &str) -> Deployment {
    Deployment { kv: Dtype::Fp8, ..Deployment::named(&rackmath_catalog::embedded(), model, system, "ideal").unwrap() }
}

fn board(model: &str, system: &str, counting: Counting) -> Board {
    let on = on(model, system);
    Board::new(
        &on,
        &Rules { counting, price: DollarRate::per_hour(2.0 * on.system.n_chips as f64), ..Rules::default() },
    )
    .unwrap()
}

fn at(board: &Board, b: f64, l: f64) -> rackmath_theory::board::Step {
    board.step(Tokens::new(b), Tokens::new(l), Tokens::new(1.0))
}

#[test]
fn g7_g8_balance_batches() {
    for (s, expected) in [(1.0, 300.0), (8.0, 2400.0), (671.0 / 37.0, 5440.5), (700.0 / 37.0, 5675.7), (32.0, 9600.0)] {
        close(closed::balance_batch(300.0, s), expected, 1e-4);
    }
    let Balance::At(b) = board("lecture-deepseek-v3", "lecture-nvl72", Counting::Lecture).balance_batch(Tokens::ZERO)
    else {
        panic!("a batch without cache always balances")
    };
    close(b, 5100.5, 1e-4);
}

#[test]
fn g9_tokens_per_expert() {
    for (b, k, expected) in [(2400.0, 8.0, 75.0), (2400.0, 32.0, 300.0), (9600.0, 8.0, 300.0)] {
        assert_eq!(closed::tokens_per_expert(b, k, 256.0), expected);
    }
}

#[test]
fn g12_g13_g14_throughput_and_share() {
    close(closed::throughput(Tokens::new(2000.0), Seconds::s(1.0 / 64.0)).get(), 128_000.0, 1e-12);
    close(closed::throughput(Tokens::new(2000.0), Seconds::ms(15.0)).get(), 133_333.333_333, 1e-9);
    close(closed::throughput(Tokens::new(2000.0), Seconds::ms(20.0)).get(), 100_000.0, 1e-12);
    let rack = TokenRate::per_s(128_000.0);
    close(rack / TokenRate::per_s(128e6), 0.001, 1e-12);
    let racks = closed::machines(TokenRate::per_s(500e6), rack);
    assert_eq!((racks, racks.ceil()), (3906.25, 3907.0));
}

#[test]
fn g17_to_g21_the_frontier_model_on_a_rack() {
    let b = board("lecture-frontier", "lecture-nvl72", Counting::Lecture);
    close(b.weights().as_ms(), 1.7361, 1e-4);
    close(b.compute_per_token().get() * 1e6, 0.61728, 1e-4);
    assert_eq!(b.balance_batch(Tokens::ZERO), Balance::At(b.weights().get() / b.compute_per_token().get()));
    close(b.weights().get() / b.compute_per_token().get(), 2812.5, 1e-4);
    close(b.balanced_context().unwrap().get(), 173_611.0, 1e-4);
    let l = 10_000.0;
    let floor = b.cost_floor(Tokens::new(l));
    close(at(&b, 1.0, l).time.as_ms(), 1.73615, 1e-5);
    close(at(&b, 1.0, l).cost / floor, 2812.56, 1e-5);
    let balanced = at(&b, 2812.5, l);
    close(balanced.time.as_ms(), 1.8361, 1e-4);
    assert_eq!(balanced.binding(), Binding::Weights);
    for (batch, ms) in [(5000.0, 3.0864), (10_000.0, 6.1728)] {
        close(at(&b, batch, l).time.as_ms(), ms, 1e-4);
        close(at(&b, batch, l).cost / floor, 1.0, 1e-4);
    }
}

#[test]
fn d6_penalty_at_batch_one_is_ridge_times_sparsity() {
    let b = board("lecture-frontier", "lecture-nvl72", Counting::Lecture);
    let penalty = at(&b, 1.0, 0.0).cost / b.cost_floor(Tokens::ZERO);
    close(penalty, 281.25 * 10.0, 1e-9);
}

#[test]
fn g22_g23_g24_contexts_beyond_balance() {
    let star = Tokens::new(100_000.0);
    assert_eq!(closed::mfu_beyond(star, Tokens::new(200_000.0)).get(), 0.5);
    assert_eq!(closed::mfu_beyond(star, Tokens::new(400_000.0)).get(), 0.25);
    for (ratio, inflation) in [(0.25, 4.0 / 3.0), (0.5, 2.0), (0.75, 4.0), (0.9, 10.0)] {
        close(closed::balance_batch_with_cache(300.0, 8.0, ratio).unwrap() / 2400.0, inflation, 1e-9);
    }
    assert_eq!(closed::balance_batch_with_cache(300.0, 8.0, 1.0), None);
    // The board agrees: no finite balance from L* on, inflated before it, and MFU = L*/L far beyond.
    let b = board("lecture-frontier", "lecture-nvl72", Counting::Lecture);
    let star = b.balanced_context().unwrap();
    assert_eq!(b.balance_batch(star * 1.0001), Balance::NeverComputeBound);
    let Balance::At(half) = b.balance_batch(star * 0.5) else { panic!("balances below L*") };
    close(half, 2.0 * 2812.5, 1e-9);
    close(at(&b, 1e9, 2.0 * star.get()).mfu().get(), 0.5, 1e-5);
}

#[test]
fn g25_g27_deepseek_on_a_rack() {
    let b = board("lecture-deepseek-v3", "lecture-nvl72", Counting::Lecture);
    close(b.weights().as_ms(), 1.16493, 1e-4);
    close(b.compute_per_token().get() * 1e6, 0.228395, 1e-4);
    close(b.balanced_context().unwrap().get(), 3744.2, 1e-4);
    let catalog = rackmath_catalog::embedded();
    let (model, system) = (catalog.model("lecture-deepseek-v3").unwrap(), catalog.system("lecture-nvl72").unwrap());
    let l = Tokens::new(4096.0);
    let room = system.capacity().less(count::count(&model).stored_bytes(&model.formats()));
    let fits = (room / kv::cache(&model, Dtype::Fp8).stored(l)).floor();
    close(fits, 91_392.0, 1e-3);
    let full = b.step(Tokens::new(fits), l, Tokens::new(1.0));
    close(full.terms.memory().as_ms(), 24.0, 1e-3);
    close(full.mfu().get(), 0.8697, 1e-3);
}

#[test]
fn g30_g32_fast_and_slow_mode() {
    close(closed::fast_batch_ratio(6.0, 2.5), 15.0, 1e-12);
    let x = closed::fast_x(6.0, 2.5);
    close(x, 1.8, 1e-12);
    close(closed::fast_speed(6.0, x), 2.5, 1e-12);
    close(closed::fast_speed(1e15, x), 2.8, 1e-12);
    close(closed::fast_price(2.5, x).unwrap(), 6.0, 1e-12);
    assert_eq!(closed::fast_price(2.8, x), None);
    close(closed::slow_saving(x), 0.357_143, 1e-5);
}

#[test]
fn g37_experts_on_a_rack() {
    let (used, each) = closed::experts_on(72, 256);
    assert_eq!((used, each, 72 - used), (64, 4, 8));
}

#[test]
fn v1_deepseek_v3_by_part() {
    let model = rackmath_catalog::embedded().model("deepseek-v3").unwrap();
    let c = count::count(&model);
    assert_eq!(c.total(), 671_026_419_200);
    close(c.active().get(), 37.55e9, 2e-4);
    close(c.total() as f64 / c.active().get(), 17.87, 1e-3);
    // Routed and shared experts, three dense layers, both embeddings, routers.
    let experts = c.part(count::Part::Routed).total + c.part(count::Part::Shared).total;
    close(experts as f64, 656.463e9, 1e-5);
    close(c.part(count::Part::Dense).total as f64, 1.189e9, 1e-3);
    close(c.part(count::Part::Mixer).total as f64, 61.0 * 187_105_280.0, 1e-4);
    close((c.part(count::Part::Embedding).total + c.part(count::Part::Head).total) as f64, 1.853e9, 1e-3);
    close(c.part(count::Part::Router).total as f64, 0.106e9, 1e-2);
}

#[test]
fn v8_v9_the_scaling_books_cases() {
    // V8: 70 B int8, batch 32, L 8,192, kv 160 kB on 8 x v5e: weights and cache over bandwidth, 17.28 ms.
    let memory = (70e9 + 32.0 * 8192.0 * 160e3) / (8.0 * 0.81e12);
    close(memory * 1e3, 17.28, 1e-3);
    // V9: 30 B int8, kv 100 kB, L 8,192, 16 x v5e in the KV + max form and the pure max form.
    let (w, kv) = (30e9 / (16.0 * 0.81e12), 8192.0 * 100e3 / (16.0 * 0.81e12));
    // Int8 weights are multiplied in BF16 here.
    let c = 2.0 * 30e9 / (16.0 * 197e12);
    let step = |b: f64, overlap| {
        let terms = roofline::Terms { compute: Seconds::s(b * c), weights: Seconds::s(w), kv: Seconds::s(b * kv) };
        terms.time(overlap).as_ms()
    };
    close(step(4.0, Overlap::KvThenMax), 2.57, 2e-3);
    close(step(256.0, Overlap::KvThenMax), 21.05, 2e-3);
    close(step(256.0, Overlap::Max), 18.49, 2e-3);
}

#[test]
fn x6_x7_x8_what_the_errata_say() {
    // X7: DeepSeek-V3 with L = 1,024 and a full memory computes for 83 ms.
    let catalog = rackmath_catalog::embedded();
    let (model, system) = (catalog.model("lecture-deepseek-v3").unwrap(), catalog.system("lecture-nvl72").unwrap());
    let l = Tokens::new(1024.0);
    let fits = system.capacity().less(count::count(&model).stored_bytes(&model.formats()))
        / kv::cache(&model, Dtype::Fp8).stored(l);
    let b = board("lecture-deepseek-v3", "lecture-nvl72", Counting::Lecture);
    close(at(&b, fits, 1024.0).time.as_ms(), 83.0, 1e-2);
    // X8: at B = 2,400 the step of either preset is 1.2 to 1.8 ms, so a rack passes a million tokens a second.
    for name in ["lecture-deepseek-v3", "lecture-frontier"] {
        let step = at(&board(name, "lecture-nvl72", Counting::Lecture), 2400.0, 0.0);
        assert!((1.1..1.8).contains(&step.time.as_ms()) && step.rate().get() > 1e6);
    }
}

const MODELS: [&str; 8] = [
    "lecture-frontier",
    "deepseek-v3",
    "deepseek-v3.2",
    "deepseek-v4-pro",
    "gpt-oss-120b",
    "qwen3.5-397b-a17b",
    "llama-3.1-8b",
    "hunyuan-large",
];
const SYSTEMS: [&str; 5] = ["gb200-nvl72", "8xh200", "a100-80gb", "tpu-v5e-256", "mi300x-8"];

static BOARDS: LazyLock<Vec<Board>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for model in MODELS {
        for system in SYSTEMS {
            for counting in [Counting::Strict, Counting::Lecture] {
                all.push(board(model, system, counting));
            }
        }
    }
    all
});

static PRESETS: LazyLock<Vec<Deployment>> = LazyLock::new(|| MODELS.iter().map(|name| on(name, "h200")).collect());

proptest! {
    #[test]
    fn steps_grow_with_batch_context_and_pass_and_cost_falls_with_batch(
        b in 1.0f64..1e5, l in 0.0f64..1e6, q in 1.0f64..1e4, more in 1.0f64..3.0,
    ) {
        for board in BOARDS.iter() {
            let step = |b: f64, l: f64, q: f64| board.step(Tokens::new(b), Tokens::new(l), Tokens::new(q));
            let one = step(b, l, q);
            let slack = 1.0 - 1e-12;
            prop_assert!(step(b * more, l, q).time >= one.time * slack);
            prop_assert!(step(b, l * more, q).time >= one.time * slack);
            prop_assert!(step(b, l, q * more).time >= one.time * slack);
            prop_assert!(step(b * more, l, q).cost.get() * slack <= one.cost.get());
            prop_assert!(step(b, l, 1.0).cost.get() >= board.cost_floor(Tokens::new(l)).get() * slack);
        }
    }

    #[test]
    fn the_envelope_is_continuous(b in 1.0f64..1e5, l in 1.0f64..1e6, q in 2.0f64..1e4) {
        for board in BOARDS.iter() {
            let time = |b: f64, l: f64, q: f64| board.step(Tokens::new(b), Tokens::new(l), Tokens::new(q)).time.get();
            let (here, eps) = (time(b, l, q), 1e-7);
            // No term grows faster than q squared, so a nudge of 1e-7 moves the time by at most a few parts in 1e7.
            for near in [time(b * (1.0 + eps), l, q), time(b, l * (1.0 + eps), q), time(b, l, q * (1.0 + eps))] {
                prop_assert!((near / here - 1.0).abs() < 5.0 * eps, "{near} and {here}");
            }
        }
    }

    #[test]
    fn n_equal_chips_take_one_nth(n in 2u64..2000, b in 1.0f64..1e5, l in 0.0f64..1e5) {
        let many = rackmath_catalog::embedded().system(&format!("{n}xh200")).unwrap();
        for one in PRESETS.iter() {
            let time = |on: &Deployment| {
                let board = Board::new(on, &Rules::default()).unwrap();
                board.step(Tokens::new(b), Tokens::new(l), Tokens::new(1.0)).time.get()
            };
            let wide = Deployment { system: many.clone(), ..one.clone() };
            prop_assert!((time(one) / time(&wide) / n as f64 - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn kinks_are_where_the_lines_cross(b in 1.0f64..1e6, l in 0.0f64..1e6) {
        for board in BOARDS.iter() {
            let terms = |b: f64, l: f64, q: f64| board.step(Tokens::new(b), Tokens::new(l), Tokens::new(q)).terms;
            let gap = |t: roofline::Terms| (t.compute.get() - t.memory().get()) / t.memory().get();
            if let Balance::At(kink) = board.balance_batch(Tokens::new(l)) {
                prop_assert!(gap(terms(kink, l, 1.0)).abs() < 1e-6, "batch {kink}");
            } else {
                prop_assert!(gap(terms(1e12, l, 1.0)) <= 1e-9);
            }
            if let Some(kink) = board.kink_context(Tokens::new(b)) {
                prop_assert!(gap(terms(b, kink.get(), 1.0)).abs() < 1e-6, "context {kink}");
            }
            if let Some(kink) = board.kink_pass(Tokens::new(b), Tokens::new(l)).filter(|q| *q > 1.0) {
                prop_assert!(gap(terms(b, l, kink)).abs() < 1e-6, "pass {kink}");
            }
        }
    }

    #[test]
    fn g29_reading_a_full_memory_takes_its_drain_time(l in 1.0f64..1e6, which in 0usize..5) {
        // Holds where all that is stored is read: lumps, and full attention with a tied or absent lookup table.
        let Deployment { model, system, .. } = on("lecture-deepseek-v3", SYSTEMS[which]);
        let weights = count::count(&model).stored_bytes(&model.formats());
        prop_assume!(system.capacity() > weights);
        let fits = system.capacity().less(weights) / kv::cache(&model, Dtype::Fp8).stored(Tokens::new(l));
        let board = board("lecture-deepseek-v3", SYSTEMS[which], Counting::Lecture);
        let memory = board.step(Tokens::new(fits), Tokens::new(l), Tokens::new(1.0)).terms.memory();
        let drain = roofline::drain(system.capacity(), system.bandwidth());
        prop_assert!((memory / drain - 1.0).abs() < 1e-9);
    }

    #[test]
    fn every_overlap_lies_between_max_and_sum(c in 0.0f64..1.0, w in 0.0f64..1.0, k in 0.0f64..1.0, o in 0.0f64..1.0) {
        let t = roofline::Terms { compute: Seconds::s(c), weights: Seconds::s(w), kv: Seconds::s(k) };
        let (low, high) = (t.time(Overlap::Max), t.time(Overlap::Sum));
        prop_assert!(high.get() <= 2.0 * low.get() + 1e-12);
        for overlap in [Overlap::KvThenMax, Overlap::Partial(rackmath_units::Fraction::new(o))] {
            let time = t.time(overlap).get();
            prop_assert!(time >= low.get() - 1e-12 && time <= high.get() + 1e-12);
        }
    }

    #[test]
    fn distinct_experts_are_between_one_choice_and_all(e in 1.0f64..1000.0, share in 0.001f64..1.0, b in 1.0f64..1e4) {
        let k = (e * share).max(1e-3);
        let touched = curve::distinct(e, k, b);
        prop_assert!(touched >= k.min(e) * (1.0 - 1e-9) && touched <= e * (1.0 + 1e-9));
        prop_assert!(touched <= b * k * (1.0 + 1e-9));
    }
}
