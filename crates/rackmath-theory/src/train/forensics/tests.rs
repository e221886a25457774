use super::*;
use proptest::prelude::*;

fn known(parts: &[(Variable, f64, f64)]) -> [Option<Interval>; COUNT] {
    let mut given = [None; COUNT];
    for (v, low, high) in parts {
        given[Variable::VARIANTS.iter().position(|x| x == v).unwrap()] = Some((*low, *high));
    }
    given
}

fn of(f: &Findings, v: Variable) -> Finding {
    *f.all.iter().find(|x| x.variable == v).unwrap()
}

#[test]
fn deepseek_v3_from_its_own_figures() {
    // 2.664 M H800-hours, 37 B active, 14.8 T tokens: 343 TFLOP/s per chip, 34.6 % of 989.
    use Variable as V;
    let f = infer(
        &known(&[
            (V::ChipHours, 2.6635e6, 2.6645e6),
            (V::Params, 36.5e9, 37.5e9),
            (V::Tokens, 14.75e12, 14.85e12),
            (V::Peak, 989e12, 989e12),
            (V::Chips, 2048.0, 2048.0),
        ]),
        6.0,
    );
    assert!(f.contradiction.is_none());
    let (mfu, (low, high)) = of(&f, V::Mfu).estimate.unwrap();
    assert!((mfu - 0.346).abs() < 1e-3 && low < 0.346 && high > 0.346, "{mfu} {low} {high}");
    let (days, _) = of(&f, V::Days).estimate.unwrap();
    assert!((days - 54.2).abs() < 0.1, "{days}");
    assert!(of(&f, V::Dollars).estimate.is_none(), "no price was given");
    let bounds = of(&f, V::Mfu).bounds;
    assert!(bounds.0 < low * 1.01 && bounds.1 > high * 0.99);
}

#[test]
fn what_cannot_be_is_said() {
    use Variable as V;
    // Ten times too few chip-hours: MFU would be 346 %.
    let f = infer(
        &known(&[
            (V::ChipHours, 0.2664e6, 0.2664e6),
            (V::Params, 37e9, 37e9),
            (V::Tokens, 14.8e12, 14.8e12),
            (V::Peak, 989e12, 989e12),
        ]),
        6.0,
    );
    let c = f.contradiction.unwrap();
    assert_eq!(c.relation, "FLOP = 3,600 x chip-hours x peak x MFU");
    assert!((c.gap - 3.46).abs() < 0.01, "{c:?}");
}

proptest! {
    #[test]
    fn hiding_a_number_of_a_true_run_brings_it_back(
        hours in 5.0f64..18.0, days in 0.0f64..5.0, n in 20.0f64..28.0, u in -3.0f64..-0.1, f in 30.0f64..36.0, p in -1.0f64..3.0, hide in 0usize..10,
    ) {
        let chips = (hours - float::ln(24.0) - days).max(0.0);
        let hours = chips + days + float::ln(24.0);
        let c = float::ln(3600.0) + hours + f + u;
        let d = c - float::ln(6.0) - n;
        let truth = [hours, chips, days, n, d, c, u, f, p, hours + p].map(float::exp);
        let mut given = truth.map(|x| Some((x * 0.999, x * 1.001)));
        given[hide] = None;
        let found = infer(&given, 6.0);
        prop_assert!(found.contradiction.is_none(), "{:?}", found.contradiction);
        for (finding, x) in found.all.iter().zip(truth) {
            prop_assert!(finding.bounds.0 <= x * (1.0 + 1e-9) && finding.bounds.1 >= x * (1.0 - 1e-9));
            let (estimate, _) = finding.estimate.unwrap();
            prop_assert!((estimate / x - 1.0).abs() < 5e-3, "{} {estimate} {x}", finding.variable);
        }
    }
}
