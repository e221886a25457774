use super::*;
use crate::laws::Machine;

fn ask(request: &Request) -> Answer {
    answer(&rackmath_catalog::embedded(), request).unwrap()
}

fn of<'a>(a: &'a Answer, law: &str) -> &'a LawCard {
    a.laws.iter().find(|l| l.law == law).unwrap()
}

fn lecture() -> Request {
    Request { served_tokens: Some(200e12), ..Request::default() }
}

#[test]
fn failures_raise_the_price_of_training_and_lower_its_share() {
    let failures = Failures { chip_mtbf_hours: Some(50_677.0), ..Failures::default() };
    let (calm, rough) = (ask(&lecture()), ask(&Request { failures, ..lecture() }));
    assert!(rough.goodput < 0.93 && rough.train_cost > 1.07);
    let tokens = |a: &Answer| of(a, "hoffmann-2022").optimum.unwrap().tokens;
    assert!(tokens(&rough) < tokens(&calm), "dearer training buys fewer tokens");
}

#[test]
fn a_cheaper_way_to_serve_argues_for_less_data() {
    let machine = |serve: f64| Machine {
        on: Some("h100".into()),
        price_usd_per_chip_hour: Some(2.0),
        serve_price_usd_per_chip_hour: Some(serve),
        ..Machine::default()
    };
    let of_price = |serve: f64| ask(&Request { machine: machine(serve), loss: Some(1.95), ..lecture() });
    let (dear, cheap) = (of_price(2.0), of_price(1.0));
    let tokens = |a: &Answer| of(a, "besiroglu-2024").optimum.unwrap().tokens;
    assert!(tokens(&cheap) < tokens(&dear));
    let spread = of(&dear, "besiroglu-2024").usd_spread.unwrap();
    assert!(spread.narrow.unwrap().low < spread.narrow.unwrap().high);
}

#[test]
fn a_loss_out_of_reach_is_an_answer() {
    let a = ask(&Request { loss: Some(1.0), ..lecture() });
    assert_eq!(of(&a, "besiroglu-2024").left_out.as_deref(), Some("no model reaches this loss under it"));
}
