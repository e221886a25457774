use super::*;
use crate::close;
use crate::goodput::Hazard;
use crate::scaling::tests::{at, of};
use proptest::prelude::*;

const T: f64 = 1e12;
const LECTURE: Rule = Rule { rl_factor: 3.0, eta: 1.0 / 3.0, split: Split::THIRDS };

#[test]
fn g50_to_g56_the_lectures_numbers() {
    // Equal costs are least only for equal powers.
    assert_eq!(equaliser(1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0));
    let (x, a, b) = equaliser(1.0, 2.0, 1.0, 1.0);
    for (got, expected) in [(x, 0.7937), (a, 0.62996), (b, 1.25992)] {
        close(got, expected, 1e-4);
    }
    for (f, alpha) in [(2.0, 1.0), (3.0, 1.5), (6.0, 3.0)] {
        let (a, b) = Rule { rl_factor: f, ..LECTURE }.equalities();
        close(a, alpha, 1e-12);
        close(b, 1.0, 1e-12);
    }
    for (split, pretrain, rl) in [(Split::THIRDS, 200.0, 400.0 / 3.0), (Split::QUARTERS, 100.0, 200.0 / 3.0)] {
        let phases = Rule { split, ..LECTURE }.phases(Tokens::new(200.0 * T));
        close(phases.pretrain.get(), pretrain * T, 1e-12);
        close(phases.rl.get(), rl * T, 1e-12);
    }
    for (rate, survives, tokens) in [(500e6, 1.0, 2.592e15), (50e6, 0.5, 1.296e14)] {
        let sixty_days = Seconds::s(60.0 * 86_400.0);
        close(served(TokenRate::per_s(rate), sixty_days, Fraction::new(survives)).get(), tokens, 1e-12);
    }
    for (d, factor) in [(200.0, 100.0), (150.0, 75.0), (259.2, 129.6)] {
        close(over_training(at(1e11, d * T)), factor, 1e-12);
    }
}

#[test]
fn g57_and_g59_the_exact_optimum_beside_the_lectures_point() {
    // No RL: only serving is fixed, 2 D_inf / eta. Law, what is fixed; N, D, share, cost of the lecture's point over the best.
    let lecture = at(1e11, 200.0 * T);
    close(of("besiroglu-2024").loss(lecture), 1.9014, 1e-4);
    for (law, fixed, n, d, share, extra) in [
        ("besiroglu-2024", 2.0, 1.526e11, 3.99e13, 0.374, Some(1.64)),
        ("hoffmann-2022-rounded", 6.0, 1.049e11, 1.80e14, 0.474, None),
    ] {
        let (s, costs) = (of(law), Costs { per_token: 6.0, fixed: fixed * 200.0 * T });
        let best = optimum(&s, &costs, s.loss(lecture)).unwrap();
        let got = [best.at.params.get(), best.at.tokens.get(), best.share];
        got.into_iter().zip([n, d, share]).for_each(|(got, expected)| close(got, expected, 2e-2));
        if let Some(extra) = extra {
            close(costs.of(lecture) / best.cost, extra, 2e-2);
        }
    }
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
        let tokens = s.tokens_at_share(Params::new(1e11), 1.0 / 3.0).unwrap().get();
        let best = optimum(&s, &costs, s.loss(rule)).unwrap();
        // The table rounds to whole trillions, billions, percent and tenths of a percent.
        for (what, got, expected, off) in [
            ("tokens at a third", tokens / T, third, 0.6),
            ("over-training", over_training(at(1e11, tokens)), factor, 0.6),
            ("parameters", best.at.params.get() / 1e9, n, 0.6),
            ("tokens", best.at.tokens.get() / T, d, 0.6),
            ("share", best.share, share, 0.006),
            ("extra", costs.of(rule) / best.cost - 1.0, extra, 0.0006),
        ] {
            assert!((got - expected).abs() < off, "{name}, {what}: {got} for {expected}");
        }
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
    let rl = Rl { prompts: 1e6, group: 8.0, sample_tokens: 4000.0, ..Rl::default() };
    assert_eq!(rl.generated(), Tokens::new(3.2e10));
    // 1 - 2 / 2^8.
    close(rl.useful().get(), 1.0 - 2.0 / 256.0, 1e-12);
    assert_eq!(Rl { pass_rate: 1.0, ..rl }.useful(), Fraction::ZERO);
    // Everything trained on at equal MFUs is 2 + 6; nothing is 2.
    close(Rl { pass_rate: 0.0, ..rl }.factor(1.0), 2.0, 1e-12);
    close(Rl { scoring_passes: 1.0, ..rl }.factor(1.0), 2.0 + 6.0 * 254.0 / 256.0 + 2.0, 1e-12);
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
    fn more_failures_never_cheapen_a_lifetime_and_more_serving_never_enlarges_the_model(
        law in 0usize..6, m in 7.0f64..14.0, served in 25.0f64..34.0, more in 0.0f64..3.0,
    ) {
        let s = of(LAWS[law]);
        let loss = s.loss(at(30e9, 600e9));
        let best = |ln_m: f64, served: f64| {
            let mtbf = Some(Seconds::s(float::exp(ln_m)));
            let progress = Hazard { mtbf, stall: Seconds::s(10.0), restart: Seconds::s(480.0) }.best_goodput();
            optimum(&s, &Costs { per_token: 6.0 / progress.get(), fixed: 2.0 * float::exp(served) }, loss).unwrap()
        };
        let here = best(m, served);
        prop_assert!(here.cost >= best(m + more, served).cost * (1.0 - 1e-9));
        prop_assert!(best(m, served + more).at.params.get() <= here.at.params.get() * (1.0 + 1e-9));
    }
}
