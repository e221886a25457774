use super::group::*;
use super::print::{Figures, Report};
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{Load, Setup, Way};

fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
}

/// A run of one token a request (the first), so that throughput is concurrency over TTFT, with a TPOT that is only seen.
fn row(tp: u64, concurrency: f64, measured: (f64, f64), ours: (f64, f64)) -> Predicted {
    let degrees = Degrees { tp, etp: tp, ..Degrees::default() };
    let setup = Setup { engine: "none@1".into(), degrees, ..Setup::default() };
    let load = Load::of(Way::Closed { concurrency, rounds: 10.0, fixed: true }, 1.0, 1.0);
    // (tok/s/user, tok/s/chip) as latencies.
    let seen = |(user, rate): (f64, f64)| Seen { ttft: concurrency / (rate * tp as f64) * 1e3, tpot: 1e3 / user };
    let (measured, ours) = (seen(measured), seen(ours));
    let configuration = Configuration { setup, load, concurrency, chips: tp as f64, measured };
    Predicted { configuration, ours, roofline: ours }
}

fn question() -> Question {
    let [model, precision, hardware, engine] = ["maker/model", "fp8", "chip", "engine"].map(String::from);
    Question { model, precision, hardware, engine, lengths: (1, 1), release: String::new() }
}

/// Two layouts whose measured frontiers cross at 40 tok/s/user; `ours` may be off by a factor for the wide one.
fn crossing(bias: f64) -> Group {
    let narrow = [(80.0, 100.0), (40.0, 200.0), (20.0, 400.0)];
    let wide = [(160.0, 50.0), (40.0, 200.0), (20.0, 282.842_712_474_619_f64)];
    let concurrencies = [4.0, 8.0, 12.0];
    let narrow = concurrencies.into_iter().zip(narrow).map(|(c, point)| row(1, c, point, point));
    let wide = concurrencies.into_iter().zip(wide).map(|(c, point)| row(4, c, point, (point.0, point.1 * bias)));
    Group { question: question(), rows: narrow.chain(wide).collect() }
}

#[test]
fn a_frontier_is_interpolated_in_logarithms() {
    // The point in the middle is beaten by the first; half way between 10 and 40 in logarithms is 20.
    let f = Frontier::of(vec![(10.0, 400.0), (15.0, 90.0), (40.0, 100.0)]).unwrap();
    // Users who want less are served by the slowest point; more than the fastest gives, nobody gets.
    for (user, rate) in [(20.0, 200.0), (10.0, 400.0), (40.0, 100.0), (1.0, 400.0)] {
        near(f.at(user).unwrap(), rate);
    }
    assert!(f.at(41.0).is_none());
    assert!(Frontier::of(Vec::new()).is_none());
    // A level that rounding puts above a lone point is still that point's.
    near(Frontier::of(vec![(10.0, 400.0)]).unwrap().at(10.0 + 1e-12).unwrap(), 400.0);
    let levels = ladder(10.0, 40.0, 3);
    near(levels[1], 20.0);
    near(levels[2], 40.0);
    assert_eq!(ladder(5.0, 5.0, 9), [5.0]);
}

#[test]
fn nothing_is_regretted_when_the_best_is_chosen() {
    near(regret(80.0, 100.0), 0.2);
    near(regret(100.0, 100.0), 0.0);
    let group = crossing(1.0);
    let choices = group.choices(Chooser::Ours, Among::Reaching);
    assert_eq!(choices.len(), LEVELS);
    assert!(choices.iter().all(|c| c.regret() < 1e-9), "{choices:?}");
    // Both layouts were measured from 20 to 80.
    near(choices[0].interactivity, 20.0);
    near(choices[8].interactivity, 80.0);
    near(group.correlations(Chooser::Ours).0.unwrap(), 1.0);
}

#[test]
fn a_biased_prediction_costs_what_the_choice_gives_away() {
    // The wide layout is thought to give twice what it does: it is taken everywhere, right from 40 tok/s/user on.
    let choices = crossing(2.0).choices(Chooser::Ours, Among::Reaching);
    assert!(choices.iter().all(|c| c.chosen.0.tp == 4));
    near(choices[0].regret(), 1.0 - 282.842_712_474_619_f64 / 400.0);
    near(choices[4].regret(), 0.0);
    // Between them both frontiers are straight lines in logarithms, at the middle of which the ratio is the root.
    near(choices[2].regret(), 1.0 - (282.842_712_474_619_f64 / 400.0).sqrt());
}

#[test]
fn simple_rules_choose_by_chips_alone() {
    for (chooser, tp) in [(Chooser::MostChips, 4), (Chooser::FewestChips, 1), (Chooser::SmallestTp, 1)] {
        assert!(crossing(1.0).choices(chooser, Among::Reaching).iter().all(|c| c.chosen.0.tp == tp));
    }
}

#[test]
fn who_was_not_measured_on_both_sides_does_not_compete_there() {
    let mut group = crossing(1.0);
    // The wide layout loses its slowest point: from 20 to 40 the narrow one is alone.
    group.rows.pop();
    let all = group.choices(Chooser::Ours, Among::Reaching);
    let both = group.choices(Chooser::Ours, Among::Spanning);
    assert_eq!(all.len(), LEVELS);
    assert!(both.iter().all(|c| c.interactivity >= 40.0 - 1e-6) && both.len() == 5, "{both:?}");
}

#[test]
fn one_layout_leaves_nothing_to_choose() {
    let mut group = crossing(1.0);
    group.rows.truncate(3);
    assert!(group.choices(Chooser::Ours, Among::Reaching).is_empty());
    let figures = Figures::of([&group].into_iter(), Chooser::Ours, Among::Reaching);
    assert!(figures.regrets.is_empty());
    assert_eq!(figures.rates, [1.0]);
}

#[test]
fn the_page() {
    let left = vec!["maker/model, tp1, concurrency 8: 50 % of the data sheet's time per token".into()];
    let other = Group { question: Question { engine: "other".into(), ..question() }, ..crossing(2.0) };
    let report = Report { title: "made up", groups: vec![crossing(1.0), other], left };
    insta::assert_snapshot!(report.to_string());
}
