//! How pre-training, reinforcement learning and serving share a budget: the lecture's rule beside the exact optimum.

use crate::desk::prelude::*;
use crate::goodput;
use crate::laws::{self, Law, Machine, Resolved, Spread};
use rackmath_spec::ScalingLaw;
pub use rackmath_theory::lifecycle::Rl;
use rackmath_theory::lifecycle::{self as theory, Costs, Optimum, Phases, Rule, Split, over_training};
use rackmath_theory::scaling::{Point, Surface, TRAIN_FLOP};

/// A model, its traffic, and how its costs relate. The defaults are the lecture's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Active parameters.
    #[schemars(extend("x-flag" = "params -n"))]
    #[educe(Default = 100e9)]
    pub params: f64,
    /// Tokens per second of a whole family of models.
    #[educe(Default = 500e6)]
    pub rate_tokens_per_s: f64,
    /// This model's share of them.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.1)]
    pub model_share: f64,
    /// Days it is served.
    #[educe(Default = 60.0)]
    pub lifetime_days: f64,
    /// Tokens served, instead of rate and lifetime.
    #[schemars(extend("x-flag" = "served"))]
    pub served_tokens: Option<f64>,
    /// Probability that the model is ever served.
    #[schemars(extend("x-flag" = "survives ships", "x-unit" = "share"))]
    #[educe(Default = 1.0)]
    pub survives: f64,
    /// FLOP per parameter and RL token, 2 to 6.
    #[educe(Default = 3.0)]
    pub rl_factor: f64,
    /// RL in detail: prompts, samples per prompt, tokens per sample and pass rate, such as 100M,16,8k,0.5.
    #[schemars(extend("x-flag" = "rl", "x-prefix" = "rl", "x-parts" = ["prompts", "group", "sample_tokens", "pass_rate"]))]
    pub rl: Option<Rl>,
    /// Decode MFU over training MFU.
    #[educe(Default = 1.0 / 3.0)]
    pub eta: f64,
    /// `thirds`, `quarters`, or shares of pre-training, RL and serving such as `40/20/40`.
    #[educe(Default = "thirds")]
    pub split: String,
    /// Loss to reach, instead of that of the rule's point.
    pub loss: Option<f64>,
    /// Failures while training.
    pub failures: Failures,
    /// Laws and shape.
    pub law: Law,
    /// The machine, for dollars and precisions.
    pub machine: Machine,
}

/// Failures while training; none unless a mean time between them is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Failures {
    /// Mean time between failures of one chip.
    pub chip_mtbf_hours: Option<f64>,
    /// Chips that train together.
    #[educe(Default = 16_384.0)]
    pub chips: f64,
    /// Pause for a checkpoint.
    #[educe(Default = 10.0)]
    pub stall_s: f64,
    /// From a failure to work again.
    #[educe(Default = 480.0)]
    pub restart_s: f64,
}

/// The rule and what each law says about it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// Tokens served in expectation.
    pub served_tokens: f64,
    /// The lecture's rule.
    pub rule: RuleCard,
    /// Reinforcement learning in detail, where asked for.
    pub rl: Option<RlCard>,
    /// Progress of all training time, under the failures given.
    pub goodput: f64,
    /// Cost per active parameter and training token, relative to 6 FLOP at the training MFU.
    pub train_cost: f64,
    /// One card per law.
    pub laws: Vec<LawCard>,
    /// Least and greatest over-training of the optima, over all laws.
    pub over_training_over_laws: Option<(f64, f64)>,
    /// Cost against size at equal loss, for one law.
    pub figure: Option<Figure>,
    /// What was assumed.
    pub assumptions: Vec<Remark>,
}

/// The rule of thumb: costs in the given proportion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RuleCard {
    /// D_pt over D_rl at equal costs.
    pub alpha: f64,
    /// D_pt over D_inf at equal costs.
    pub beta: f64,
    /// Training tokens.
    pub pretrain_tokens: f64,
    /// RL tokens.
    pub rl_tokens: f64,
    /// Pre-training FLOP.
    pub pretrain_flop: f64,
    /// RL in FLOP of training speed.
    pub rl_flop: f64,
    /// Serving in FLOP of training speed.
    pub served_flop: f64,
    /// Tokens per active parameter.
    pub tokens_per_param: f64,
    /// Over 20 tokens per parameter.
    pub over_training: f64,
    /// Dollars of everything, where a machine is given.
    pub usd: Option<f64>,
}

/// Reinforcement learning with groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RlCard {
    /// Tokens generated.
    pub generated_tokens: f64,
    /// Share of groups whose samples are not all right or all wrong.
    pub useful: f64,
    /// FLOP per parameter and generated token in the lecture's convention.
    pub factor: f64,
}

/// One law.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LawCard {
    /// Its id.
    pub law: String,
    /// Where it comes from.
    pub source: String,
    /// The loss aimed at.
    pub loss: Option<f64>,
    /// Tokens per parameter that are compute-optimal at the size given.
    pub own_tokens_per_param: Option<f64>,
    /// Tokens at which pre-training's share of the rule would be an optimum at the size given.
    pub tokens_at_share: Option<f64>,
    /// The same over 20 tokens per parameter.
    pub over_training_at_share: Option<f64>,
    /// The cheapest model of that loss.
    pub optimum: Option<OptimumCard>,
    /// What following the rule costs more than the optimum: 0.017 is 1.7 %.
    pub rule_extra: Option<f64>,
    /// What the standard errors make of the optimum's over-training.
    pub over_training_spread: Option<Spread>,
    /// What they make of the cost of following the rule.
    pub rule_extra_spread: Option<Spread>,
    /// What they make of the optimum's cost in dollars, where a machine and a loss are given.
    pub usd_spread: Option<Spread>,
    /// Where the optimum lies outside the fitted range.
    pub outside: Vec<Remark>,
    /// Why the law has no answer.
    pub left_out: Option<Remark>,
}

/// The cheapest model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OptimumCard {
    /// Active parameters.
    pub params: f64,
    /// Training tokens.
    pub tokens: f64,
    /// Pre-training's share of the cost.
    pub share: f64,
    /// Over 20 tokens per parameter.
    pub over_training: f64,
    /// Dollars of everything, where a machine is given.
    pub usd: Option<f64>,
}

struct Solve {
    params: Params,
    rule_point: Point,
    share: f64,
    costs: Costs,
    loss: Option<f64>,
    usd: Option<f64>,
}

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    let r = request;
    within("params", r.params, 1e3, 1e18)?;
    within("rl_factor", r.rl_factor, 1e-3, 100.0)?;
    within("eta", r.eta, 1e-3, 10.0)?;
    if_given("loss", r.loss, 0.0, 100.0)?;
    let resolved = laws::resolve(catalog, &r.law)?;
    let money = laws::money(catalog, &r.machine)?;
    let split = split(&r.split)?;
    let served = served(r)?;
    let rl = r.rl.map(checked).transpose()?;
    // A lower serving precision or a cheaper chip raises what a dollar of decoding buys.
    let eta = r.eta * money.as_ref().map_or(1.0, |m| m.serve_value);
    let rule = Rule { rl_factor: rl.map_or(r.rl_factor, |rl| rl.factor(eta)), eta, split };
    let mut phases = rule.phases(served);
    if let Some(rl) = rl {
        phases.rl = rl.generated();
    }
    let goodput = progress(&r.failures)?;
    let costs = Costs { per_token: TRAIN_FLOP / goodput, fixed: rule.fixed(&phases) };
    let params = Params::new(r.params);
    let solve = Solve {
        params,
        rule_point: Point { params, tokens: phases.pretrain },
        share: split.pretrain,
        costs,
        loss: r.loss,
        usd: money.as_ref().map(|m| m.usd_per_train_flop),
    };
    let card = |law| cancel.check().map(|()| card(&resolved, law, &solve));
    let laws: Vec<LawCard> = resolved.laws.iter().map(|law| card(law)).collect::<Result<_, _>>()?;
    let factors = laws.iter().filter_map(|l| l.optimum.map(|o| o.over_training));
    let (low, high) = factors.fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
    let drawn = laws.iter().zip(&resolved.laws).filter(|(c, _)| c.optimum.is_some());
    let drawn = drawn.min_by_key(|(c, _)| c.law != "besiroglu-2024");
    let figure = drawn.and_then(|(c, law)| figure(&resolved.surface(law).ok()?, law, c, &solve));
    let rl_card = |rl: Rl| {
        let (generated_tokens, useful) = (rl.generated().get(), rl.useful().get());
        RlCard { generated_tokens, useful, factor: rl.factor(eta) }
    };
    Ok(Answer {
        request: r.clone(),
        served_tokens: served.get(),
        rule: rule_card(&rule, &phases, &solve),
        rl: rl.map(rl_card),
        goodput,
        train_cost: costs.per_token / TRAIN_FLOP,
        over_training_over_laws: (low <= high).then_some((low, high)),
        laws,
        figure,
        assumptions: assumptions(r, &resolved, money.map_or_else(Vec::new, |m| m.assumptions)),
    })
}

fn served(r: &Request) -> Result<Tokens, Error> {
    let survives = Fraction::new(within("survives", r.survives, 0.0, 1.0)?);
    let share = within("model_share", r.model_share, 0.0, 1.0)?;
    let tokens = if let Some(t) = r.served_tokens {
        Tokens::new(within("served_tokens", t, 1.0, 1e21)?) * survives.get()
    } else {
        let rate = within("rate", r.rate_tokens_per_s, 0.0, 1e15)?;
        let days = within("lifetime", r.lifetime_days, 0.0, 1e5)?;
        theory::served(TokenRate::per_s(rate * share), Seconds::s(days * 86_400.0), survives)
    };
    refuse_if(tokens.get() < 1.0, "served tokens", tokens.get(), "more than none: a rate, a lifetime and a chance")?;
    Ok(tokens)
}

fn progress(f: &Failures) -> Result<f64, Error> {
    let chips = within("chips", f.chips, 1.0, 1e9)?;
    let Some(hours) = f.chip_mtbf_hours else { return Ok(1.0) };
    let chip = Seconds::s(within("chip_mtbf", hours, 1e-3, 1e12)? * 3600.0);
    let share = goodput::hazard(chip, chips, f.stall_s, f.restart_s)?.best_goodput().get();
    refuse_if(share <= 1e-6, "chip_mtbf", hours, "failures rare enough for any progress").map(|()| share)
}

fn rule_card(rule: &Rule, phases: &Phases, s: &Solve) -> RuleCard {
    let (alpha, beta) = rule.equalities();
    let n = s.params.get();
    RuleCard {
        alpha,
        beta,
        pretrain_tokens: phases.pretrain.get(),
        rl_tokens: phases.rl.get(),
        pretrain_flop: n * TRAIN_FLOP * phases.pretrain.get(),
        rl_flop: n * rule.rl_factor * phases.rl.get() / rule.eta,
        served_flop: n * 2.0 * phases.served.get() / rule.eta,
        tokens_per_param: s.rule_point.ratio(),
        over_training: over_training(s.rule_point),
        usd: s.usd.map(|u| u * s.costs.of(s.rule_point)),
    }
}

fn card(r: &Resolved, law: &ScalingLaw, s: &Solve) -> LawCard {
    let mut card = LawCard { law: law.id.clone(), source: law.source.clone(), ..LawCard::default() };
    let surface = match r.surface(law) {
        Ok(surface) => surface,
        Err(why) => return LawCard { left_out: Some(why.to_string().into()), ..card },
    };
    card.own_tokens_per_param = surface.optimal_tokens(s.params).map(|d| d.get() / s.params.get());
    let at_share = surface.tokens_at_share(s.params, s.share);
    card.tokens_at_share = at_share.map(Tokens::get);
    card.over_training_at_share = at_share.map(|tokens| over_training(Point { params: s.params, tokens }));
    let Some((loss, best)) = solved(&surface, s) else {
        return LawCard { left_out: Some(says("loss_out_of_reach")), ..card };
    };
    let mut repeated = [best.at, s.rule_point].into_iter().filter(|p| s.loss.is_none() || *p == best.at);
    if let Some(why) = repeated.find_map(|p| r.repeats(law, p)) {
        return LawCard { left_out: Some(why), law: card.law, source: card.source, ..LawCard::default() };
    }
    card.loss = Some(loss);
    card.optimum = Some(OptimumCard {
        params: best.at.params.get(),
        tokens: best.at.tokens.get(),
        share: best.share,
        over_training: over_training(best.at),
        usd: s.usd.map(|u| u * best.cost),
    });
    // With a loss of its own to reach, the rule's point is not comparable.
    let extra = |best: &Optimum| s.costs.of(s.rule_point) / best.cost - 1.0;
    card.rule_extra = s.loss.is_none().then(|| extra(&best));
    card.over_training_spread = r.spread(law, |surface| Some(over_training(solved(surface, s)?.1.at)));
    if s.loss.is_none() {
        card.rule_extra_spread = r.spread(law, |surface| Some(extra(&solved(surface, s)?.1)));
    }
    // Without a loss to reach, each draw would aim at its own.
    let usd = s.usd.filter(|_| s.loss.is_some());
    card.usd_spread = usd.and_then(|u| r.spread(law, |surface| Some(u * solved(surface, s)?.1.cost)));
    card.outside = r.outside(law, best.at);
    card
}

/// The loss aimed at, and the cheapest model of it.
fn solved(surface: &Surface, s: &Solve) -> Option<(f64, Optimum)> {
    let loss = s.loss.unwrap_or_else(|| surface.loss(s.rule_point));
    Some((loss, theory::optimum(surface, &s.costs, loss)?))
}

fn figure(surface: &Surface, law: &ScalingLaw, card: &LawCard, s: &Solve) -> Option<Figure> {
    let (loss, best) = (card.loss?, card.optimum?);
    let n = (surface.least_params(loss)? * 1.02, Params::new(best.params * 10.0));
    let unit = s.usd.unwrap_or(1.0);
    let at = Point { params: Params::new(best.params), tokens: Tokens::new(best.tokens) };
    // Towards the least size the data needed grows without end; a tenfold cost is enough to see that.
    let most = 10.0 * s.costs.of(at);
    let points: Vec<Point> = surface.iso_loss(loss, n, 400).into_iter().filter(|p| s.costs.of(*p) < most).collect();
    let line = |name: &str, role, cost: &dyn Fn(Point) -> f64| {
        Series::new(name, role, points.iter().map(|p| (p.params.get(), unit * cost(*p))))
    };
    let total = |p: Point| s.costs.of(p);
    let mut marks = vec![Mark::at(best.params, unit * total(at), "cheapest")];
    if s.loss.is_none() {
        marks.push(Mark::at(s.params.get(), unit * total(s.rule_point), "the rule of thumb"));
    }
    let (label, y) = s.usd.map_or(("FLOP at training speed", Unit::Flop), |_| ("dollars", Unit::Usd));
    let axes = (Axis::log("active parameters", Unit::Params), Axis::log(label, y));
    let series = [
        line("pre-training", Role::Compute, &|p| p.params.get() * s.costs.per_token * p.tokens.get()),
        line("RL and serving", Role::Weights, &|p| p.params.get() * s.costs.fixed),
        line("total", Role::Envelope, &total),
    ];
    let subtitle = says("law_at_loss").with("law", &law.name).with("loss", loss);
    Some(Figure::of("Lifetime cost at equal loss", subtitle, axes, series).marked(marks))
}

fn assumptions(r: &Request, resolved: &Resolved, money: Vec<Remark>) -> Vec<Remark> {
    let mut all = vec![says("lifetime_flop"), says("decoding_reaches").with("eta", r.eta)];
    if r.failures.chip_mtbf_hours.is_some() {
        all.push(says("paid_for_all_time"));
    }
    all.extend(money);
    all.extend(resolved.assumptions(&r.law.router));
    all
}

fn split(text: &str) -> Result<Split, Error> {
    let shares: Vec<f64> = text.split('/').map_while(|t| t.trim().parse().ok()).collect();
    let sum: f64 = shares.iter().sum();
    match (text.trim(), shares.as_slice()) {
        ("thirds", _) => Ok(Split::THIRDS),
        ("quarters", _) => Ok(Split::QUARTERS),
        // Shares in proportion are fine, percentages that come to more than all are a slip.
        (given, [_, _, _]) if sum.is_finite() && sum > 100.5 => {
            let expected = format!("shares that come to at most 100, not {sum}");
            Err(Error::value("split", format!("\"{given}\""), expected))
        }
        (given, [p, r, s]) if given.split('/').count() == 3 && sum.is_finite() && *p > 0.0 && *r >= 0.0 && *s > 0.0 => {
            Ok(Split { pretrain: p / sum, rl: r / sum, served: s / sum })
        }
        _ => {
            let near = near(text, ["thirds", "quarters"].into_iter());
            let expected = format!("thirds, quarters, or shares such as 40/20/40{near}");
            Err(Error::value("split", format!("\"{text}\""), expected))
        }
    }
}

fn checked(rl: Rl) -> Result<Rl, Error> {
    for (field, value, low, high) in [
        ("prompts", rl.prompts, 1.0, 1e15),
        ("group", rl.group, 1.0, 1e6),
        ("sample_tokens", rl.sample_tokens, 1.0, 1e9),
        ("pass_rate", rl.pass_rate, 0.0, 1.0),
        ("epochs", rl.epochs, 0.0, 1e3),
        ("scoring_passes", rl.scoring_passes, 0.0, 1e3),
    ] {
        within(field, value, low, high)?;
    }
    Ok(rl)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &Request) -> Answer {
        answer_on(&rackmath_catalog::embedded(), request, 1).unwrap()
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
        // A loss out of reach is an answer.
        let a = ask(&Request { loss: Some(1.0), ..lecture() });
        assert_eq!(of(&a, "besiroglu-2024").left_out, Some(says("loss_out_of_reach")));
    }

    #[test]
    fn shares_of_more_than_all_are_refused_and_laws_that_count_repeats_as_fresh_do_not_decide() {
        let catalog = rackmath_catalog::embedded();
        let wrong = Request { split: "50/20/40".into(), ..lecture() };
        assert!(answer_on(&catalog, &wrong, 1).is_err_and(|e| format!("{e:?}").contains("110")));
        assert!(ask(&Request { split: "1/1/2".into(), ..lecture() }).rule.pretrain_tokens > 0.0);
        let law = Law { unique_tokens: Some(100e9), ..Law::default() };
        let a = ask(&Request { law, ..lecture() });
        let decide: Vec<_> = a.laws.iter().filter(|l| l.optimum.is_some()).map(|l| l.law.as_str()).collect();
        assert_eq!(decide, ["muennighoff-2023"]);
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
}
