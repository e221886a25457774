use super::*;
use crate::close;
use crate::goodput::Hazard;
use crate::scaling::{Shape, surface};
use proptest::prelude::*;

const T: f64 = 1e12;
const LECTURE: Rule = Rule { rl_factor: 3.0, eta: 1.0 / 3.0, split: Split::THIRDS };

fn of(name: &str) -> Surface {
    surface(&rackmath_catalog::embedded().scaling_law(name).unwrap(), &Shape::default(), None).unwrap()
}

fn at(n: f64, d: f64) -> Point {
    Point { params: Params::new(n), tokens: Tokens::new(d) }
}

#[test]
fn g50_equal_costs_are_least_only_for_equal_powers() {
    let (x, a, b) = equaliser(1.0, 1.0, 1.0, 1.0);
    assert_eq!((x, a, b), (1.0, 1.0, 1.0));
    let (x, a, b) = equaliser(1.0, 2.0, 1.0, 1.0);
    close(x, 0.7937, 1e-4);
    close(a, 0.62996, 1e-4);
    close(b, 1.25992, 1e-4);
}

#[test]
fn g51_to_g56_the_lectures_numbers() {
    for (f, alpha) in [(2.0, 1.0), (3.0, 1.5), (6.0, 3.0)] {
        let (a, b) = Rule { rl_factor: f, ..LECTURE }.equalities();
        close(a, alpha, 1e-12);
        close(b, 1.0, 1e-12);
    }
    let served_tokens = Tokens::new(200.0 * T);
    let thirds = LECTURE.phases(served_tokens);
    close(thirds.pretrain.get(), 200.0 * T, 1e-12);
    close(thirds.rl.get(), 400.0 / 3.0 * T, 1e-12);
    let quarters = Rule { split: Split::QUARTERS, ..LECTURE }.phases(served_tokens);
    close(quarters.pretrain.get(), 100.0 * T, 1e-12);
    close(quarters.rl.get(), 200.0 / 3.0 * T, 1e-12);
    let sixty_days = Seconds::s(60.0 * 86_400.0);
    close(served(TokenRate::per_s(500e6), sixty_days, Fraction::ONE).get(), 2.592e15, 1e-12);
    close(served(TokenRate::per_s(50e6), sixty_days, Fraction::new(0.5)).get(), 1.296e14, 1e-12);
    for (d, factor) in [(200.0, 100.0), (150.0, 75.0), (259.2, 129.6)] {
        close(over_training(at(1e11, d * T)), factor, 1e-12);
    }
}

#[test]
fn g57_and_g59_the_exact_optimum_beside_the_lectures_point() {
    let lecture = at(1e11, 200.0 * T);
    // No RL: only serving is fixed, 2 D_inf / eta.
    let refit = of("besiroglu-2024");
    let costs = Costs { per_token: 6.0, fixed: 2.0 * 200.0 * T };
    close(refit.loss(lecture), 1.9014, 1e-4);
    let best = optimum(&refit, &costs, refit.loss(lecture)).unwrap();
    close(best.at.params.get(), 1.526e11, 2e-2);
    close(best.at.tokens.get(), 3.99e13, 2e-2);
    close(best.share, 0.374, 2e-2);
    close(costs.of(lecture) / best.cost, 1.64, 2e-2);
    let rounded = of("hoffmann-2022-rounded");
    let costs = Costs { per_token: 6.0, fixed: 6.0 * 200.0 * T };
    let best = optimum(&rounded, &costs, rounded.loss(lecture)).unwrap();
    close(best.at.params.get(), 1.049e11, 2e-2);
    close(best.at.tokens.get(), 1.80e14, 2e-2);
    close(best.at.ratio(), 1719.0, 2e-2);
    close(best.share, 0.474, 2e-2);
}

/// Coefficients, D at a third (T), over-training, then N (B), D (T), share and extra cost of the exact optimum.
type Row = (&'static str, f64, f64, f64, f64, f64, f64);

#[test]
fn the_lectures_rule_checked_under_five_laws() {
    let phases = LECTURE.phases(Tokens::new(200.0 * T));
    let costs = Costs { per_token: 6.0, fixed: LECTURE.fixed(&phases) };
    let rule = at(1e11, phases.pretrain.get());
    let table: [Row; 5] = [
        ("hoffmann-2022-rounded", 597.0, 299.0, 88.0, 267.0, 0.40, 0.017),
        ("hoffmann-2022", 331.0, 166.0, 95.0, 229.0, 0.36, 0.003),
        ("besiroglu-2024", 36.0, 18.0, 111.0, 117.0, 0.23, 0.042),
        ("chinchilla-optimum", 35.0, 18.0, 112.0, 115.0, 0.22, 0.044),
        ("muennighoff-2023", 44.0, 22.0, 111.0, 125.0, 0.24, 0.032),
    ];
    for (name, third, factor, n, d, share, extra) in table {
        let s = of(name);
        let tokens = s.tokens_at_share(Params::new(1e11), 1.0 / 3.0).unwrap();
        // The table rounds to whole trillions, billions, percent and tenths of a percent.
        assert!((tokens.get() / T - third).abs() < 0.6, "{name}: {tokens}");
        assert!((over_training(at(1e11, tokens.get())) - factor).abs() < 0.6, "{name}");
        let best = optimum(&s, &costs, s.loss(rule)).unwrap();
        assert!((best.at.params.get() / 1e9 - n).abs() < 0.6, "{name}: {}", best.at.params);
        assert!((best.at.tokens.get() / T - d).abs() < 0.6, "{name}: {}", best.at.tokens);
        assert!((best.share - share).abs() < 0.006, "{name}: {}", best.share);
        assert!((costs.of(rule) / best.cost - 1.0 - extra).abs() < 0.0006, "{name}: {}", costs.of(rule) / best.cost);
    }
}

#[test]
fn serving_more_makes_smaller_models() {
    // Quality of 30 B at 20 tokens per parameter under the refit: served tokens, N (B), D (T), saving.
    let s = of("besiroglu-2024");
    let reference = at(30e9, 600e9);
    for (served, n, d, saving) in [(1e12, 20.6, 0.93, 0.068), (1e13, 11.9, 2.47, 0.41), (1e14, 7.8, 9.6, 0.67)] {
        let costs = Costs { per_token: 6.0, fixed: 2.0 * served };
        let best = optimum(&s, &costs, s.loss(reference)).unwrap();
        close(best.at.params.get() / 1e9, n, 6e-3);
        close(best.at.tokens.get() / T, d, 6e-3);
        assert!((1.0 - best.cost / costs.of(reference) - saving).abs() < 0.006);
    }
}

#[test]
fn groups_that_agree_teach_nothing() {
    let rl = Rl {
        prompts: 1e6,
        group: 8.0,
        sample: Tokens::new(4000.0),
        pass_rate: Fraction::new(0.5),
        epochs: 1.0,
        scoring: 0.0,
    };
    assert_eq!(rl.generated(), Tokens::new(3.2e10));
    // 1 - 2 / 2^8.
    close(rl.useful().get(), 1.0 - 2.0 / 256.0, 1e-12);
    assert_eq!(Rl { pass_rate: Fraction::ONE, ..rl }.useful(), Fraction::ZERO);
    // Everything trained on at equal MFUs is 2 + 6; nothing is 2.
    close(Rl { pass_rate: Fraction::ZERO, ..rl }.factor(1.0), 2.0, 1e-12);
    close(Rl { scoring: 1.0, ..rl }.factor(1.0), 2.0 + 6.0 * 254.0 / 256.0 + 2.0, 1e-12);
}

const LAWS: [&str; 6] =
    ["hoffmann-2022", "hoffmann-2022-rounded", "besiroglu-2024", "muennighoff-2023", "sardana-2024", "abnar-2025"];

proptest! {
    #[test]
    fn the_optimum_is_never_worse_than_the_rule(
        law in 0usize..6, n in 20.0f64..27.0, served in 25.0f64..36.0, f in 2.0f64..6.0, eta in 0.05f64..1.0,
    ) {
        let s = of(LAWS[law]);
        let rule = Rule { rl_factor: f, eta, split: Split::THIRDS };
        let phases = rule.phases(Tokens::new(float::exp(served)));
        let costs = Costs { per_token: 6.0, fixed: rule.fixed(&phases) };
        let point = at(float::exp(n), phases.pretrain.get());
        let best = optimum(&s, &costs, s.loss(point)).unwrap();
        prop_assert!(best.cost <= costs.of(point) * (1.0 + 1e-9));
        prop_assert!((s.loss(best.at) / s.loss(point) - 1.0).abs() < 1e-9);
        // The condition of the optimum: training's share is the ratio of the pulls.
        prop_assert!((best.share / (s.data_pull(best.at.tokens) / s.size_pull(best.at.params)) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn more_failures_never_make_a_lifetime_cheaper(law in 0usize..6, m in 7.0f64..14.0, more in 0.0f64..3.0, served in 25.0f64..34.0) {
        let s = of(LAWS[law]);
        let loss = s.loss(at(30e9, 600e9));
        let cost = |ln_m: f64| {
            let mtbf = Some(Seconds::s(float::exp(ln_m)));
            let progress = Hazard { mtbf, stall: Seconds::s(10.0), restart: Seconds::s(480.0) }.best_goodput();
            let costs = Costs { per_token: 6.0 / progress.get(), fixed: 2.0 * float::exp(served) };
            optimum(&s, &costs, loss).unwrap().cost
        };
        prop_assert!(cost(m) >= cost(m + more) * (1.0 - 1e-9));
    }

    #[test]
    fn more_serving_never_makes_the_model_larger(law in 0usize..6, served in 25.0f64..34.0, more in 0.0f64..3.0) {
        let s = of(LAWS[law]);
        let loss = s.loss(at(30e9, 600e9));
        let size = |ln: f64| optimum(&s, &Costs { per_token: 6.0, fixed: 2.0 * float::exp(ln) }, loss).unwrap().at.params;
        prop_assert!(size(served + more).get() <= size(served).get() * (1.0 + 1e-9));
    }
}
