//! Chapter 5: reinforcement learning and over-training (D37 to D43).

use super::{Claim, claim, times};
use crate::desk::prelude::*;
use crate::lifecycle::{Request, answer_on};
use rackmath_theory::lifecycle::{Rule, Split, equaliser, over_training, served};
use rackmath_theory::scaling::Point;

/// The lecture's factor of RL and its ratio of MFUs.
const RULE: Rule = Rule { rl_factor: 3.0, eta: 1.0 / 3.0, split: Split::THIRDS };

fn trillions(t: Tokens) -> String {
    Params::new(t.get()).to_string()
}

#[rustfmt::skip] // a table
pub(super) fn claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    // 200 T served, as the lecture rounds it.
    let asked = Request { served_tokens: Some(200e12), ..Request::default() };
    let budget = answer_on(catalog, &asked, 1)?;
    let derated = answer_on(catalog, &Request { survives: 0.5, ..asked }, 1)?.rule;
    let (x, a, b) = equaliser(1.0, 1.0, 1.0, 1.0);
    let (y, c, d) = equaliser(1.0, 2.0, 1.0, 1.0);
    let equal = |f: f64| {
        let (alpha, beta) = Rule { rl_factor: f, ..RULE }.equalities();
        format!("D_pt = {} D_rl = {} D_inf", significant(alpha, 2), significant(beta, 2))
    };
    let split = Rule { split: Split::QUARTERS, ..RULE }.phases(Tokens::new(200e12));
    let two_months = |rate: f64| trillions(served(TokenRate::per_s(rate), Seconds::s(60.0 * 86_400.0), Fraction::ONE));
    let over = |d: f64| times(over_training(Point { params: Params::billion(100.0), tokens: Tokens::new(d) }));
    let exact = |id: &str| {
        let law = budget.laws.iter().find(|l| l.law == id).and_then(|l| Some((l.optimum?, l.rule_extra?)));
        law.map_or_else(|| "-".into(), |(o, extra)| {
            let (n, d, factor) = (Params::new(o.params), Params::new(o.tokens), times(o.over_training));
            format!("{n} on {d}, {factor}; the rule costs {:+.1} %", extra * 100.0)
        })
    };
    Ok(vec![
        claim("D37", "Equalise costs", "min a x^m + b x^-n has costs n : m",
            "equal only for equal powers; a heuristic, good to a small factor")
            .exact("x + 1/x", "equal costs", format!("x = {x}, costs {a} and {b}"))
            .own("x^2 + 1/x", format!("x = {y:.4}, costs {c:.5} and {d:.5}"),
                "the falling cost is twice the rising one, not equal"),
        claim("D38", "Three costs", "C_pt = 6 N D_pt; C_rl = (2..6) N D_rl / eta; C_inf = 2 N D_inf / eta",
            "N cancels")
            .number("all of RL trained on, at training speed throughout", "at most 6", "2 generate + 6 train = 8",
                "6 counts the forward pass of training as the one that generated; with decoding separate \
                 it is 2/eta + 6"),
        claim("D39", "Token equalities", "D_pt = (f/6)/eta D_rl = (2/6)/eta D_inf",
            "a model should emit about as much as it read")
            .number("f 3, eta 1/3", "D_pt = 1.5 D_rl = D_inf", equal(3.0), "exact; first written upside down")
            .own("f 2 and f 6", format!("{}; {}", equal(2.0), equal(6.0)), "the ends of the range"),
        claim("D40", "Alternative split", "C_pt + C_rl = C_inf", "a small factor only")
            .number("25/25/50, 200 T served", "\"differs by a small factor\"",
                format!("D_pt {}, D_rl {}", trillions(split.pretrain), trillions(split.rl)),
                "half of the equal thirds"),
        claim("D41", "Inference volume", "D_inf = rate x lifetime",
            "a family's traffic and one model's are two things")
            .number("500 M tok/s for 60 d", "2.6e15, a family", two_months(500e6), "agrees")
            .number("a tenth of it", "\"200 T\"", two_months(50e6),
                "rounded down by a fifth; often quoted without the tenth (X9)"),
        claim("D42", "Over-training", "factor = D_pt / (20 N)",
            "the cost claim survives the exact optimum; the factor depends on the law")
            .exact("100 B, 200 T", "100x", over(200e12))
            .exact("rumour of 150 T", "75x", over(150e12))
            .own("259.2 T, not rounded", over(259.2e12), "D41")
            .number("exact optimum at the same loss, besiroglu-2024", "100x", exact("besiroglu-2024"),
                "shares follow the pulls of size and data, not a third each")
            .number("the same, hoffmann-2022-rounded", "100x", exact("hoffmann-2022-rounded"), "another published fit"),
        claim("D43", "Derating", "D_inf,eff = P(stays frontier) D_inf", "risk argues for less over-training")
            .number("an even chance, 200 T if it ships", "less",
                format!("D_pt {}, {}", Params::new(derated.pretrain_tokens), times(derated.over_training)),
                "half the volume, half the data"),
    ])
}
