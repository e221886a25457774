//! What loss a size and a number of tokens reach, and the best of both for a compute or a loss, under every law.

use crate::desk::prelude::*;
use crate::laws::{self, Law, Machine, Resolved, Spread};
use rackmath_spec::{LawForm, ScalingLaw};
use rackmath_theory::lifecycle::{Costs, optimum};
use rackmath_theory::scaling::{Point, Surface, TRAIN_FLOP, compute_optimum};
use rackmath_theory::sparsity;
use rackmath_units::Flop;

/// A question about a compute, a loss, or a point; a compute of 5.76e23 FLOP (Chinchilla's) when nothing is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Laws and shape.
    pub law: Law,
    /// Training compute: the best size and tokens for it.
    #[schemars(extend("x-flag" = "flop compute flops"))]
    pub flop: Option<f64>,
    /// A loss: the least compute that reaches it.
    pub loss: Option<f64>,
    /// Active parameters: with tokens, a point; alone, the tokens that make it compute-optimal.
    #[schemars(extend("x-flag" = "params -n"))]
    pub params: Option<f64>,
    /// Training tokens.
    #[schemars(extend("x-flag" = "tokens -d"))]
    pub tokens: Option<f64>,
    /// The machine, for dollars.
    #[schemars(extend("x-inner" = {"serve_on": {"x-flag": false}, "serve_format": {"x-flag": false}, "serve_price_usd_per_chip_hour": {"x-flag": false}}))]
    pub machine: Machine,
}

/// What the laws say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// What was asked, in words.
    pub question: Remark,
    /// One card per law.
    pub laws: Vec<LawCard>,
    /// That laws were left out which take repeated data for fresh, where any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Remark>,
    /// Loss against size at equal compute, for the first law with a surface.
    pub iso_flop: Option<Figure>,
    /// Tokens against size at equal loss, for the same law.
    pub iso_loss: Option<Figure>,
    /// What was assumed.
    pub assumptions: Vec<Remark>,
}

/// One law.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LawCard {
    /// Its id.
    pub law: String,
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// The point asked about.
    pub given: Option<PointCard>,
    /// The best point.
    pub optimum: Option<PointCard>,
    /// Compute of the point given over the least that reaches its loss.
    pub compute_over_least: Option<f64>,
    /// What the standard errors make of the best tokens per parameter.
    pub tokens_per_param_spread: Option<Spread>,
    /// What they make of the cost of the best point, where a loss was asked for and a machine given.
    pub usd_spread: Option<Spread>,
    /// Where the point asked about lies outside the range the law was fitted on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_outside: Vec<Remark>,
    /// Where the best point lies outside it.
    pub outside: Vec<Remark>,
    /// What experts are worth at the size given, by router, under a law of routed models.
    pub routers: Vec<RouterCard>,
    /// Why the law has no answer.
    pub left_out: Option<Remark>,
    /// What to watch out for.
    pub notes: Vec<String>,
}

/// A size with as many experts as total over active parameters, one used per token.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RouterCard {
    /// How experts are chosen.
    pub router: String,
    /// Dense parameters of the same loss.
    pub effective_params: f64,
    /// Loss at the tokens the law was fitted on.
    pub loss: f64,
}

/// A model of a size trained on so many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointCard {
    /// Active parameters.
    pub params: f64,
    /// Training tokens.
    pub tokens: f64,
    /// 6 N D.
    pub flop: f64,
    /// Tokens per active parameter.
    pub tokens_per_param: f64,
    /// Loss, where the law knows it.
    pub loss: Option<f64>,
    /// Dollars, where a machine is given.
    pub usd: Option<f64>,
}

#[derive(Clone, Copy)]
enum Asked {
    Compute(Flop),
    Loss(f64),
    Size(Params),
    At(Point),
}

/// Chinchilla's own training compute, the usual yardstick (Hoffmann et al. 2022; lecture G60).
const CHINCHILLA_FLOP: f64 = 5.76e23;

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    let asked = asked(request)?;
    let resolved = laws::resolve(catalog, &request.law)?;
    let money = laws::money(catalog, &request.machine)?;
    let usd = money.as_ref().map(|m| m.usd_per_train_flop);
    let card = |law| cancel.check().map(|()| card(&resolved, law, asked, usd));
    let cards: Vec<LawCard> = resolved.laws.iter().map(|law| card(law)).collect::<Result<_, _>>()?;
    // A picture of the law that was named, or of the corrected Chinchilla fit.
    let decides = says_of_repeats(&cards);
    let drawn = cards.iter().zip(&resolved.laws).filter(|(c, _)| c.optimum.is_some_and(|o| o.loss.is_some()));
    let drawn = drawn.min_by_key(|(c, _)| c.law != "besiroglu-2024");
    let figures = drawn.and_then(|(c, law)| Some((c.optimum?, resolved.surface(law).ok()?, law)));
    let mut assumptions = vec![says("training_takes")];
    // Nothing is served here, so only the first line about the machine matters.
    assumptions.extend(money.and_then(|m| m.assumptions.into_iter().next()));
    assumptions.extend(resolved.assumptions(&request.law.router));
    Ok(Answer {
        request: request.clone(),
        question: words(asked),
        iso_flop: figures.as_ref().map(|(best, s, law)| iso_flop(best, s, law)),
        iso_loss: figures.as_ref().map(|(best, s, law)| iso_loss(best, s, law)),
        laws: cards,
        repeats: decides,
        assumptions,
    })
}

/// That laws were left out which take repeats for fresh tokens, and what the first of them would have said.
fn says_of_repeats(cards: &[LawCard]) -> Option<Remark> {
    let left: Vec<_> = cards.iter().filter_map(|c| Some((c, c.left_out.as_ref()?))).collect();
    let left: Vec<_> = left.into_iter().filter(|(_, why)| why.says == "repeats_as_fresh").collect();
    let (first, why) = left.first()?;
    let one = (left.len() == 1).then(|| says("left_out_one").with("law", &first.law).with("why", *why));
    Some(one.unwrap_or_else(|| says("left_out_repeats").with("laws", left.len())))
}

fn asked(r: &Request) -> Result<Asked, Error> {
    let params = if_given("params", r.params, 1e3, 1e18)?.map(Params::new);
    let tokens = if_given("tokens", r.tokens, 1e3, 1e21)?.map(Tokens::new);
    let flop = if_given("flop", r.flop, 1e9, 1e36)?.map(Flop::flop);
    let loss = if_given("loss", r.loss, 0.0, 100.0)?;
    match (flop, loss, params, tokens) {
        (Some(c), None, None, None) => Ok(Asked::Compute(c)),
        (None, Some(l), None, None) => Ok(Asked::Loss(l)),
        (None, None, Some(params), Some(tokens)) => Ok(Asked::At(Point { params, tokens })),
        (None, None, Some(n), None) => Ok(Asked::Size(n)),
        (None, None, None, None) => Ok(Asked::Compute(Flop::flop(CHINCHILLA_FLOP))),
        _ => Err(Error::value("what is asked", "several at once", "one of flop, loss, params, or params with tokens")),
    }
}

fn words(asked: Asked) -> Remark {
    match asked {
        Asked::Compute(c) => says("best_for_flop").with("flop", c),
        Asked::Loss(l) => says("least_for_loss").with("loss", l),
        Asked::Size(n) => says("tokens_for_size").with("params", n),
        Asked::At(p) => says("params_on_tokens").with("params", p.params).with("tokens", p.tokens),
    }
}

fn card(r: &Resolved, law: &ScalingLaw, asked: Asked, usd: Option<f64>) -> LawCard {
    let surface = r.surface(law);
    let best = best(r, law, surface.as_ref().ok(), asked);
    let show = |p: Point| PointCard {
        params: p.params.get(),
        tokens: p.tokens.get(),
        flop: p.flop().get(),
        tokens_per_param: p.ratio(),
        loss: surface.as_ref().ok().map(|s| s.loss(p)),
        usd: usd.map(|u| u * p.flop().get()),
    };
    let given = if let Asked::At(p) = asked { surface.is_ok().then(|| show(p)) } else { None };
    let given_outside = || match asked {
        Asked::At(p) if surface.is_ok() => r.outside(law, p),
        _ => Vec::new(),
    };
    let routers = routers(r, law, asked);
    // Of more tokens than there are a law knows nothing that takes repeats for fresh ones.
    let repeats = given_point(asked).or(best).and_then(|p| r.repeats(law, p));
    let best = best.filter(|_| repeats.is_none());
    let given = given.filter(|_| repeats.is_none());
    let why = || surface.as_ref().err().map(|why| why.to_string().into());
    let none = best.is_none() && routers.is_empty();
    let left_out = repeats.or_else(|| none.then(|| why().unwrap_or_else(|| says("loss_out_of_reach"))));
    // The spread of a best point does not depend on where the law itself puts it.
    let spread = best.and_then(|_| r.spread(law, |s| Some(best_on(s, asked)?.ratio())));
    let usd_of_loss = usd.filter(|_| best.is_some() && matches!(asked, Asked::Loss(_)));
    let usd_spread = usd_of_loss.and_then(|u| r.spread(law, |s| Some(best_on(s, asked)?.flop().get() * u)));
    LawCard {
        law: law.id.clone(),
        name: law.name.clone(),
        source: law.source.clone(),
        given,
        compute_over_least: match (asked, best) {
            (Asked::At(p), Some(b)) => Some(p.flop() / b.flop()),
            _ => None,
        },
        optimum: best.map(show),
        tokens_per_param_spread: spread,
        usd_spread,
        given_outside: given_outside(),
        outside: best.map_or(Vec::new(), |b| r.outside(law, b)),
        routers,
        left_out,
        notes: law.notes.clone(),
    }
}

fn given_point(asked: Asked) -> Option<Point> {
    if let Asked::At(p) = asked { Some(p) } else { None }
}

fn routers(r: &Resolved, law: &ScalingLaw, asked: Asked) -> Vec<RouterCard> {
    let (LawForm::Routed(laws), Asked::Size(n) | Asked::At(Point { params: n, .. })) = (&law.form, asked) else {
        return Vec::new();
    };
    let card = |law: &rackmath_spec::ClarkLaw| RouterCard {
        router: law.router.to_string(),
        effective_params: sparsity::effective_params(law, n, r.shape.ratio).get(),
        loss: sparsity::loss(law, n, r.shape.ratio),
    };
    laws.iter().map(card).collect()
}

fn best(r: &Resolved, law: &ScalingLaw, surface: Option<&Surface>, asked: Asked) -> Option<Point> {
    match (surface, asked) {
        (Some(s), asked) => best_on(s, asked),
        (None, Asked::Compute(c)) => compute_optimum(law, &r.shape, None, c).ok(),
        // D = k C^x and C = 6ND: D = (k (6N)^x)^(1/(1-x)).
        (None, Asked::Size(n)) => {
            let LawForm::Frontier { factor, exponent } = law.form else { return None };
            let pow = rackmath_units::float::pow;
            let d = pow(factor * pow(TRAIN_FLOP * n.get(), exponent), 1.0 / (1.0 - exponent));
            Some(Point { params: n, tokens: Tokens::checked(d)? })
        }
        (None, _) => None,
    }
}

fn best_on(s: &Surface, asked: Asked) -> Option<Point> {
    let least = |loss| Some(optimum(s, &Costs { per_token: TRAIN_FLOP, fixed: 0.0 }, loss)?.at);
    match asked {
        Asked::Compute(c) => Some(s.compute_optimum(c)),
        Asked::Size(params) => Some(Point { params, tokens: s.optimal_tokens(params)? }),
        Asked::Loss(loss) => least(loss),
        Asked::At(p) => least(s.loss(p)),
    }
}

/// How far either side of the best size a picture shows.
const REACH: f64 = 30.0;

fn iso_flop(best: &PointCard, s: &Surface, law: &ScalingLaw) -> Figure {
    let n = (Params::new(best.params / REACH), Params::new(best.params * REACH));
    let curve = |factor: f64, role: Role| {
        let c = Flop::flop(best.flop * factor);
        let points = s.iso_flop(c, n, 120).into_iter().map(|(p, loss)| (p.params.get(), loss));
        Series::new(says("iso_flop").with("flop", c), role, points)
    };
    let mark = |factor: f64| {
        let p = s.compute_optimum(Flop::flop(best.flop * factor));
        let label = says("point_of_law").with("params", p.params).with("tokens", p.tokens).with("ratio", p.ratio());
        Mark::at(p.params.get(), s.loss(p), label)
    };
    let axes = (Axis::log("active parameters", Unit::Params), Axis::linear("loss, nats", Unit::Number));
    let series = [curve(0.1, Role::Weights), curve(1.0, Role::Envelope), curve(10.0, Role::Compute)];
    let figure = Figure::of("Loss at equal training compute", &law.name, axes, series);
    figure.marked([0.1, 1.0, 10.0].map(mark))
}

fn iso_loss(best: &PointCard, s: &Surface, law: &ScalingLaw) -> Figure {
    let n = (Params::new(best.params / REACH), Params::new(best.params * REACH));
    let loss = best.loss.unwrap_or_default();
    let curve = |above: f64, role: Role| {
        // Towards the least size the data needed grows without end.
        let points = s.iso_loss(loss + above, n, 240).into_iter().filter(|p| p.tokens.get() < best.tokens * 300.0);
        let points = points.map(|p| (p.params.get(), p.tokens.get()));
        Series::new(says("iso_loss").with("loss", loss + above), role, points)
    };
    let series = [curve(0.05, Role::Weights), curve(0.0, Role::Envelope), curve(-0.02, Role::Compute)];
    let axes = (Axis::log("active parameters", Unit::Params), Axis::log("training tokens", Unit::Params));
    let series = series.into_iter().filter(|s| s.points.len() > 1);
    let figure = Figure::of("Tokens at equal loss", &law.name, axes, series);
    figure.marked([Mark::at(best.params, best.tokens, "least compute")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &Request) -> Answer {
        answer_on(&rackmath_catalog::embedded(), request, 1).unwrap()
    }

    #[test]
    fn a_point_far_outside_the_fit_is_said_to_be() {
        // 15 T tokens are 47 times the 318 B that Besiroglu et al. saw at most.
        let law = Law { law: "besiroglu-2024".into(), ..Law::default() };
        let a = ask(&Request { law, params: Some(8e9), tokens: Some(15e12), ..Request::default() });
        let [tokens] = a.laws[0].given_outside.as_slice() else { panic!("{:?}", a.laws[0].given_outside) };
        let times = &tokens.with["times"];
        assert!(matches!(times, crate::remark::Part::Number(x) if (x - 47.2).abs() < 0.1), "{tokens:?}");
    }

    #[test]
    fn a_law_that_takes_repeats_for_fresh_tokens_does_not_decide_where_they_run_out() {
        let of = |law: &str, unique: Option<f64>| {
            let law = Law { law: law.into(), unique_tokens: unique, ..Law::default() };
            ask(&Request { law, flop: Some(5.88e23), ..Request::default() })
        };
        let decides = |a: &Answer| {
            let all = a.laws.iter().filter(|l| l.optimum.is_some());
            all.map(|l| l.law.clone()).collect::<Vec<_>>()
        };
        assert_eq!(decides(&of("all", Some(100e9))), ["muennighoff-2023"]);
        // A law that was named is left out as well, and the one that knows stands in its place.
        let named = of("hoffmann-2022", Some(100e9));
        assert_eq!(decides(&named), ["muennighoff-2023"]);
        assert_eq!(named.repeats.as_ref().unwrap().says, "left_out_one");
        // With more tokens than any law asks for nothing is repeated, and all of them count.
        assert_eq!(decides(&of("all", Some(1e17))), decides(&of("all", None)));
    }

    #[test]
    fn dollars_follow_the_compute_and_carry_its_spread() {
        let machine = Machine { on: Some("h100".into()), price_usd_per_chip_hour: Some(2.0), ..Machine::default() };
        let law = Law { law: "besiroglu-2024".into(), ..Law::default() };
        let a = ask(&Request { law, loss: Some(2.0), machine, ..Request::default() });
        let best = a.laws[0].optimum.unwrap();
        // $2 / 3600 s / (989.5 TFLOP/s x 0.4).
        let expected = best.flop * 2.0 / 3600.0 / (989.5e12 * 0.4);
        assert!((best.usd.unwrap() / expected - 1.0).abs() < 1e-3);
        assert!(a.laws[0].usd_spread.unwrap().wide.low < expected);
    }
}
