//! How pre-training, reinforcement learning and serving share a budget: the lecture's rule beside the exact optimum.

use crate::desk::check::within;
use crate::figure::{Axis, Figure, Mark, Role, Series, Unit};
use crate::laws::{self, Resolved};
use crate::{Error, goodput};
use rackmath_spec::{Catalog, ScalingLaw};
use rackmath_theory::lifecycle::{self as theory, Costs, Optimum, Phases, Rl, Rule, over_training};
use rackmath_theory::scaling::{Point, Surface, TRAIN_FLOP, outside};
use rackmath_units::{Fraction, Params, Seconds, TokenRate, Tokens};

mod cards;
mod request;

pub use cards::{Answer, LawCard, OptimumCard, RlCard, RuleCard};
pub use request::{Failures, Request, RlRequest};

/// Everything the laws are asked with.
struct Solve {
    params: Params,
    rule_point: Point,
    share: f64,
    costs: Costs,
    loss: Option<f64>,
    usd: Option<f64>,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let r = request;
    request::check(r)?;
    let resolved = laws::resolve(catalog, &r.law)?;
    let money = laws::money(catalog, &r.machine)?;
    let split = request::split(&r.split)?;
    let served = served(r)?;
    let rl = r.rl.map(RlRequest::resolve).transpose()?;
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
    let laws: Vec<LawCard> = resolved.laws.iter().map(|law| card(&resolved, law, &solve)).collect();
    let factors = || laws.iter().filter_map(|l| l.optimum.map(|o| o.over_training));
    let (low, high) = factors().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
    let drawn = laws.iter().zip(&resolved.laws).filter(|(c, _)| c.optimum.is_some());
    let drawn = drawn.min_by_key(|(c, _)| c.law != "besiroglu-2024");
    let figure = drawn.and_then(|(c, law)| figure(&resolved.surface(law).ok()?, law, c, &solve));
    Ok(Answer {
        request: r.clone(),
        served_tokens: served.get(),
        rule: rule_card(&rule, &phases, &solve),
        rl: rl.map(|rl| RlCard {
            generated_tokens: rl.generated().get(),
            useful: rl.useful().get(),
            factor: rl.factor(eta),
        }),
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
    if tokens.get() < 1.0 {
        return Err(Error::value("served tokens", tokens.get(), "more than none: a rate, a lifetime and a chance"));
    }
    Ok(tokens)
}

fn progress(f: &Failures) -> Result<f64, Error> {
    let chips = within("chips", f.chips, 1.0, 1e9)?;
    let Some(hours) = f.chip_mtbf_hours else { return Ok(1.0) };
    let chip = Seconds::s(within("chip_mtbf", hours, 1e-3, 1e12)? * 3600.0);
    let share = goodput::hazard(chip, chips, f.stall_s, f.restart_s)?.best_goodput().get();
    if share > 1e-6 {
        Ok(share)
    } else {
        Err(Error::value("chip_mtbf", hours, "failures rare enough for any progress"))
    }
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
    let mut card = LawCard {
        law: law.id.clone(),
        source: law.source.clone(),
        loss: None,
        own_tokens_per_param: None,
        tokens_at_share: None,
        over_training_at_share: None,
        optimum: None,
        rule_extra: None,
        over_training_spread: None,
        rule_extra_spread: None,
        usd_spread: None,
        outside: Vec::new(),
        left_out: None,
    };
    let surface = match r.surface(law) {
        Ok(surface) => surface,
        Err(why) => {
            card.left_out = Some(why.reason().into());
            return card;
        }
    };
    card.own_tokens_per_param = surface.optimal_tokens(s.params).map(|d| d.get() / s.params.get());
    let at_share = surface.tokens_at_share(s.params, s.share);
    card.tokens_at_share = at_share.map(Tokens::get);
    card.over_training_at_share = at_share.map(|tokens| over_training(Point { params: s.params, tokens }));
    let Some((loss, best)) = solved(&surface, s) else {
        card.left_out = Some("no model reaches this loss under it".into());
        return card;
    };
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
    card.rule_extra_spread =
        s.loss.is_none().then(|| r.spread(law, |surface| Some(extra(&solved(surface, s)?.1)))).flatten();
    // Without a loss to reach, each draw would aim at its own.
    let usd = s.usd.filter(|_| s.loss.is_some());
    card.usd_spread = usd.and_then(|u| r.spread(law, |surface| Some(u * solved(surface, s)?.1.cost)));
    card.outside = outside(&law.fitted, law.counts, &r.shape, best.at);
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
    // Towards the least size the data needed grows without end; a tenfold cost is enough to see that.
    let most = 10.0 * s.costs.of(Point { params: Params::new(best.params), tokens: Tokens::new(best.tokens) });
    let points: Vec<Point> = surface.iso_loss(loss, n, 400).into_iter().filter(|p| s.costs.of(*p) < most).collect();
    let line = |name: &str, role, cost: &dyn Fn(Point) -> f64| {
        Series::new(name, role, points.iter().map(|p| (p.params.get(), unit * cost(*p))))
    };
    let total = |p: Point| s.costs.of(p);
    let at = Point { params: Params::new(best.params), tokens: Tokens::new(best.tokens) };
    let mut marks = vec![Mark { x: best.params, y: unit * total(at), label: "cheapest".into() }];
    if s.loss.is_none() {
        let y = unit * total(s.rule_point);
        marks.push(Mark { x: s.params.get(), y, label: "the rule of thumb".into() });
    }
    Some(Figure {
        title: "Lifetime cost at equal loss".into(),
        subtitle: format!("{}, loss {loss:.3}", law.name),
        x: Axis::log("active parameters", Unit::Params),
        y: if s.usd.is_some() {
            Axis::log("dollars", Unit::Usd)
        } else {
            Axis::log("FLOP at training speed", Unit::Flop)
        },
        series: vec![
            line("pre-training", Role::Compute, &|p| p.params.get() * s.costs.per_token * p.tokens.get()),
            line("RL and serving", Role::Weights, &|p| p.params.get() * s.costs.fixed),
            line("total", Role::Envelope, &total),
        ],
        marks,
    })
}

fn assumptions(r: &Request, resolved: &Resolved, money: Vec<String>) -> Vec<String> {
    let mut all = vec![
        "6 FLOP per active parameter and training token, 2 per generated token; attention is not counted".into(),
        format!("decoding reaches {:.0} % of training's MFU", r.eta * 100.0),
    ];
    if r.failures.chip_mtbf_hours.is_some() {
        all.push(
            "training is paid for all time, serving and RL for time in use; checkpoints at the best interval".into(),
        );
    }
    all.extend(money);
    all.extend(resolved.assumptions(&r.law.router));
    all
}

impl RlRequest {
    fn resolve(self) -> Result<Rl, Error> {
        Ok(Rl {
            prompts: within("prompts", self.prompts, 1.0, 1e15)?,
            group: within("group", self.group, 1.0, 1e6)?,
            sample: Tokens::new(within("sample_tokens", self.sample_tokens, 1.0, 1e9)?),
            pass_rate: Fraction::new(within("pass_rate", self.pass_rate, 0.0, 1.0)?),
            epochs: within("epochs", self.epochs, 0.0, 1e3)?,
            scoring: within("scoring_passes", self.scoring_passes, 0.0, 1e3)?,
        })
    }
}

#[cfg(test)]
mod tests;
