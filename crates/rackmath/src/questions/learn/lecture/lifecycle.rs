//! Chapter 5: reinforcement learning and over-training (D37 to D43).

use super::{Claim, claim, times};
use crate::Error;
use crate::lifecycle::{Answer, Request, answer};
use rackmath_spec::Catalog;
use rackmath_theory::lifecycle::{Rule, Split, equaliser, over_training, served};
use rackmath_theory::scaling::Point;
use rackmath_units::{Fraction, Params, Seconds, TokenRate, Tokens, significant};

/// The lecture's factor of RL and its ratio of MFUs.
const RULE: Rule = Rule { rl_factor: 3.0, eta: 1.0 / 3.0, split: Split::THIRDS };

fn trillions(t: Tokens) -> String {
    Params::new(t.get()).to_string()
}

pub(super) fn claims(catalog: &Catalog) -> Result<Vec<Claim>, Error> {
    let served_tokens = Tokens::new(200e12);
    // 200 T served, as the lecture rounds it.
    let budget = answer(catalog, &Request { served_tokens: Some(served_tokens.get()), ..Request::default() })?;
    let mut all = vec![equalise(), three_costs(), equalities()];
    all.extend([split(served_tokens), volume(), over_trained(&budget), derated(catalog)?]);
    Ok(all)
}

fn equalise() -> Claim {
    let (x, a, b) = equaliser(1.0, 1.0, 1.0, 1.0);
    let (y, c, d) = equaliser(1.0, 2.0, 1.0, 1.0);
    claim("D37", "Equalise costs")
        .says("min a x^m + b x^-n has costs n : m", "equal only for equal powers; a heuristic, good to a small factor")
        .exact("x + 1/x", "equal costs", format!("x = {x}, costs {a} and {b}"))
        .own(
            "x^2 + 1/x",
            format!("x = {y:.4}, costs {c:.5} and {d:.5}"),
            "the falling cost is twice the rising one, not equal",
        )
}

fn three_costs() -> Claim {
    claim("D38", "Three costs")
        .says("C_pt = 6 N D_pt; C_rl = (2..6) N D_rl / eta; C_inf = 2 N D_inf / eta", "N cancels")
        .number(
            "all of RL trained on, at training speed throughout",
            "at most 6",
            "2 generate + 6 train = 8",
            "6 counts the forward pass of training as the one that generated; with decoding separate it is 2/eta + 6",
        )
}

fn equalities() -> Claim {
    let of = |f: f64| {
        let (alpha, beta) = Rule { rl_factor: f, ..RULE }.equalities();
        format!("D_pt = {} D_rl = {} D_inf", significant(alpha, 2), significant(beta, 2))
    };
    claim("D39", "Token equalities")
        .says("D_pt = (f/6)/eta D_rl = (2/6)/eta D_inf", "a model should emit about as much as it read")
        .number("f 3, eta 1/3", "D_pt = 1.5 D_rl = D_inf", of(3.0), "exact; first written upside down")
        .own("f 2 and f 6", format!("{}; {}", of(2.0), of(6.0)), "the ends of the range")
}

fn split(served_tokens: Tokens) -> Claim {
    let p = Rule { split: Split::QUARTERS, ..RULE }.phases(served_tokens);
    claim("D40", "Alternative split").says("C_pt + C_rl = C_inf", "a small factor only").number(
        "25/25/50, 200 T served",
        "\"differs by a small factor\"",
        format!("D_pt {}, D_rl {}", trillions(p.pretrain), trillions(p.rl)),
        "half of the equal thirds",
    )
}

fn volume() -> Claim {
    let two_months = Seconds::s(60.0 * 86_400.0);
    let of = |rate: f64| trillions(served(TokenRate::per_s(rate), two_months, Fraction::ONE));
    claim("D41", "Inference volume")
        .says("D_inf = rate x lifetime", "a family's traffic and one model's are two things")
        .number("500 M tok/s for 60 d", "2.6e15, a family", of(500e6), "agrees")
        .number("a tenth of it", "\"200 T\"", of(50e6), "rounded down by a fifth; often quoted without the tenth (X9)")
}

fn over_trained(budget: &Answer) -> Claim {
    let factor = |d: f64| over_training(Point { params: Params::billion(100.0), tokens: Tokens::new(d) });
    let law = |id: &str| budget.laws.iter().find(|l| l.law == id).and_then(|l| Some((l.optimum?, l.rule_extra?)));
    let exact = |id: &str| {
        law(id).map_or_else(
            || "-".into(),
            |(o, extra)| {
                format!(
                    "{} on {}, {}; the rule costs {:+.1} %",
                    Params::new(o.params),
                    Params::new(o.tokens),
                    times(o.over_training),
                    extra * 100.0
                )
            },
        )
    };
    claim("D42", "Over-training")
        .says("factor = D_pt / (20 N)", "the cost claim survives the exact optimum; the factor depends on the law")
        .exact("100 B, 200 T", "100x", times(factor(200e12)))
        .exact("rumour of 150 T", "75x", times(factor(150e12)))
        .own("259.2 T, not rounded", times(factor(259.2e12)), "D41")
        .number(
            "exact optimum at the same loss, besiroglu-2024",
            "100x",
            exact("besiroglu-2024"),
            "shares follow the pulls of size and data, not a third each",
        )
        .number("the same, hoffmann-2022-rounded", "100x", exact("hoffmann-2022-rounded"), "another published fit")
}

fn derated(catalog: &Catalog) -> Result<Claim, Error> {
    let request = Request { served_tokens: Some(200e12), survives: 0.5, ..Request::default() };
    let half = answer(catalog, &request)?;
    Ok(claim("D43", "Derating")
        .says("D_inf,eff = P(stays frontier) D_inf", "risk argues for less over-training")
        .number(
            "an even chance, 200 T if it ships",
            "less",
            format!("D_pt {}, {}", Params::new(half.rule.pretrain_tokens), times(half.rule.over_training)),
            "half the volume, half the data",
        ))
}
