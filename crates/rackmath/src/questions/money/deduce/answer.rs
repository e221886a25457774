//! The answer as plain data.

use super::closed::KV_FROM_STEP;
use super::{Case, Request};
use crate::desk::prelude::*;
use rackmath_spec::deduce::Seller;
use rackmath_theory::deduce::shapes::{KvShape, shapes};
use rackmath_theory::deduce::{Datum, Evidence, Posterior, Refusal};
pub use rackmath_theory::deduce::{Sampler, Unknown};

/// What the prices say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// What it is about.
    pub title: Remark,
    /// Whose prices: `host of open weights` or `maker of a closed model`.
    pub seller: String,
    /// Why there is no posterior, when there is none.
    pub refused: Option<Remark>,
    /// Why the answer should be read with care.
    pub warnings: Vec<Remark>,
    /// The lecture's closed forms.
    pub closed: Vec<ClosedCard>,
    /// The posterior of every unknown beside its prior.
    pub unknowns: Vec<UnknownCard>,
    /// Bytes per weight.
    pub widths: Vec<ChoiceCard>,
    /// Where the cache is kept.
    pub tiers: Vec<ChoiceCard>,
    /// Chance that the model is dense, before and after.
    pub dense: ChoiceCard,
    /// What each number told.
    pub data: Vec<DatumCard>,
    /// Ratios that say nothing about this model.
    pub policies: Vec<Remark>,
    /// What trades against what.
    pub ridge: RidgeCard,
    /// Which cache size is decoded into shapes, or why none is.
    pub shapes_of: Remark,
    /// Layers, heads and formats that store that much.
    pub shapes: Vec<ShapeCard>,
    /// The model that was hidden.
    pub blind: Option<BlindCard>,
    /// How the points did.
    pub sampler: Sampler,
    /// What no price can tell.
    pub cannot_tell: Vec<Remark>,
    /// What is assumed.
    pub assumptions: Vec<Remark>,
    /// Where the numbers come from.
    pub sources: Vec<Remark>,
    /// Prior and posterior of the active parameters.
    pub figure: Figure,
    /// Active parameters against mark-up: what trades against what.
    pub ridge_figure: Figure,
}

/// A closed form.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClosedCard {
    /// Which.
    pub id: &'static str,
    /// What it gives.
    pub what: Remark,
    /// The formula.
    pub formula: String,
    /// Its value.
    pub value: f64,
    /// The value's unit.
    pub unit: String,
    /// Under which condition.
    pub note: Remark,
}

/// An unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UnknownCard {
    /// Which.
    pub id: Unknown,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// 10 % of the posterior lie below.
    pub p10: f64,
    /// Half of it.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// The same of the prior.
    pub prior_p10: f64,
    /// The same of the prior.
    pub prior_p50: f64,
    /// The same of the prior.
    pub prior_p90: f64,
    /// Information gained.
    pub bits: f64,
    /// The truth, where a model was hidden.
    pub truth: Option<f64>,
    /// Whether it lies between p10 and p90.
    pub inside: Option<bool>,
}

/// One of a few possibilities.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChoiceCard {
    /// Its name.
    pub name: String,
    /// Its chance before.
    pub prior: f64,
    /// Its chance after.
    pub posterior: f64,
}

/// A number of the sheet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DatumCard {
    /// Its name.
    pub name: String,
    /// What it adds to all the others on active parameters, in bits.
    pub bits_active: f64,
    /// What it adds on stored cache bytes.
    pub bits_kv: f64,
    /// Chance that it is policy.
    pub policy: Option<f64>,
    /// What it cannot tell.
    pub cannot_tell: Remark,
}

/// The direction in which the posterior is longest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RidgeCard {
    /// Components of a unit vector in logarithms, by unknown.
    pub axis: Vec<(String, f64)>,
    /// Correlation of active parameters and mark-up.
    pub active_with_markup: f64,
}

/// A cache shape.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShapeCard {
    /// Its layers and heads.
    pub shape: Remark,
    /// Its bytes per token.
    pub kv_bytes_per_token: f64,
}

/// A hidden model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BlindCard {
    /// Its name.
    pub model: String,
    /// Different prices.
    pub hosts: usize,
    /// Hosts that copied the maker's list.
    pub copies: usize,
    /// Median input price.
    pub input_usd_per_mtok: f64,
    /// Median output price.
    pub output_usd_per_mtok: f64,
}

pub(super) fn build(
    request: &Request,
    case: &Case,
    evidence: &Evidence,
    prior: &Posterior,
    posterior: Result<Posterior, Refusal>,
    closed: Vec<ClosedCard>,
) -> Answer {
    let refused = posterior.as_ref().err().map(|r| says("contradicted").with("ess", r.ess).with("tail", r.pareto_k));
    let seller = case.seller;
    let post = posterior.as_ref().unwrap_or(prior);
    let choices = |after: &[f64], before: &[f64], name: &dyn Fn(usize) -> String| -> Vec<ChoiceCard> {
        let both = before.iter().zip(after).enumerate();
        both.map(|(i, (&prior, &posterior))| ChoiceCard { name: name(i), prior, posterior }).collect()
    };
    let axis = [Unknown::Active, Unknown::Markup, Unknown::Mfu];
    let title = title(request, case);
    let (shapes_of, shapes) = decoded(&closed, prior, post);
    let unknowns: Vec<UnknownCard> = Unknown::ALL.into_iter().map(|u| unknown(u, case, prior, post)).collect();
    Answer {
        warnings: warnings(&unknowns, post),
        request: request.clone(),
        figure: active(title.clone(), case, prior, post),
        ridge_figure: ridge(title.clone(), prior, post),
        title,
        seller: if seller == Seller::Host { "host of open weights" } else { "maker of a closed model" }.into(),
        refused,
        closed,
        unknowns,
        widths: choices(&post.widths, &prior.widths, &|i| ["4-bit", "8-bit", "16-bit"][i].into()),
        tiers: choices(&post.tiers, &prior.tiers, &|i| case.space.tier_name(i).into()),
        dense: ChoiceCard { name: "dense".into(), prior: prior.dense, posterior: post.dense },
        data: data(case, evidence, post),
        policies: policies(case, evidence),
        ridge: RidgeCard {
            axis: axis.iter().zip(post.ridge(axis)).map(|(u, x)| (u.to_string(), x)).collect(),
            active_with_markup: post.correlation(Unknown::Active, Unknown::Markup),
        },
        shapes_of,
        shapes,
        blind: case.known.as_ref().map(|k| BlindCard {
            model: k.name.clone(),
            hosts: k.summary.hosts,
            copies: k.summary.copies,
            input_usd_per_mtok: k.summary.input,
            output_usd_per_mtok: k.summary.output,
        }),
        sampler: post.sampler,
        cannot_tell: CANNOT.map(says).into(),
        assumptions: assumptions(case, seller),
        sources: vec![says("prior_files"), says("policies_from").with("source", &case.policies.source)],
    }
}

const CANNOT: [&str; 4] = ["only_a_product", "decode_products", "precision_hidden", "sparsity_cancels"];

/// Bits beyond which an unknown has left everything the prior holds possible.
const STRANGE_BITS: f64 = 6.0;

fn warnings(unknowns: &[UnknownCard], post: &Posterior) -> Vec<Remark> {
    let strange: Vec<&str> = unknowns.iter().filter(|u| u.bits > STRANGE_BITS).map(|u| u.name.as_str()).collect();
    let mut warnings = Vec::new();
    if !strange.is_empty() {
        warnings.push(says("strange_prices").with("unknowns", strange));
    }
    if post.sampler.pareto_k > 0.7 {
        warnings.push(says("heavy_tail").with("k", post.sampler.pareto_k));
    }
    warnings
}

fn title(request: &Request, case: &Case) -> Remark {
    if let Some(known) = &case.known {
        return says("hidden_model").with("model", &known.name);
    }
    let id = if request.model.is_some() { "model_from_prices" } else { "some_model_from_prices" };
    says(id).with("model", request.model.as_ref()).with("vendor", case.vendor.as_ref())
}

fn unknown(u: Unknown, case: &Case, prior: &Posterior, post: &Posterior) -> UnknownCard {
    let q = |p: &Posterior, share: f64| float::exp(p.of(u).quantile(share));
    let (p10, p90) = (q(post, 0.1), q(post, 0.9));
    let truth = case.known.as_ref().and_then(|k| match u {
        Unknown::Active => Some(float::exp(k.ln_active)),
        Unknown::Total => Some(float::exp(k.ln_active + k.ln_sparsity)),
        Unknown::Sparsity => Some(float::exp(k.ln_sparsity)),
        Unknown::KvStored => Some(float::exp(k.ln_kv)),
        _ => None,
    });
    UnknownCard {
        id: u,
        name: u.to_string(),
        unit: match u {
            Unknown::Active | Unknown::Total => "parameters",
            Unknown::KvStored | Unknown::KvRead => "B/token",
            Unknown::Batch => "sequences",
            Unknown::Sparsity | Unknown::Markup | Unknown::Mfu => "",
        }
        .into(),
        p10,
        p50: q(post, 0.5),
        p90,
        prior_p10: q(prior, 0.1),
        prior_p50: q(prior, 0.5),
        prior_p90: q(prior, 0.9),
        bits: post.of(u).bits_over(prior.of(u)),
        truth,
        inside: truth.map(|t| (p10..=p90).contains(&t)),
    }
}

fn data(case: &Case, evidence: &Evidence, post: &Posterior) -> Vec<DatumCard> {
    // After a refusal the prior stands in, which knows of no data.
    let bits = post.bits_of_data();
    let card = |datum: Datum| {
        let (bits_active, bits_kv) = bits.iter().find(|(d, ..)| *d == datum).map_or((0.0, 0.0), |g| (g.1, g.2));
        let (name, policy) = (datum.to_string(), datum.ratio().map(|r| case.chance(r)));
        DatumCard { name, bits_active, bits_kv, policy, cannot_tell: says(cannot(datum)) }
    };
    evidence.data().map(card).collect()
}

fn cannot(datum: Datum) -> &'static str {
    match datum {
        Datum::Input => "not_size_alone",
        Datum::Output => "not_batch_alone",
        Datum::Cached => "not_bytes_alone",
        Datum::Storage | Datum::Write => "not_bytes_but_tier",
        Datum::LongInput => "not_attention_alone",
        Datum::LongOutput => "not_bytes_but_context",
        Datum::Fast => "not_traffic_alone",
        Datum::Speed => "not_size_but_chips",
    }
}

fn policies(case: &Case, evidence: &Evidence) -> Vec<Remark> {
    let Some(vendor) = &case.vendor else { return Vec::new() };
    let habits = case.policies.vendors.get(vendor);
    let flag = |datum: Datum| {
        let habit = habits?.get(&datum.ratio()?).filter(|h| h.fixed())?;
        let said = says("policy_not_physics").with("of", datum.to_string()).with("same", habit.same);
        Some(said.with("models", habit.models).with("vendor", vendor).with("ratio", habit.value))
    };
    evidence.data().filter_map(flag).collect()
}

/// Bits on the cache below which its posterior is not worth decoding.
const KNOWN_BITS: f64 = 0.25;

/// The lecture's cache size where the sheet has a price step, else the posterior's where the prices say anything about it.
fn decoded(closed: &[ClosedCard], prior: &Posterior, post: &Posterior) -> (Remark, Vec<ShapeCard>) {
    let of = |p: &Posterior| p.of(Unknown::KvStored).clone();
    let bits = of(post).bits_over(&of(prior));
    let (why, kv) = match closed.iter().find(|c| c.id == KV_FROM_STEP) {
        Some(card) => ("kv_of_step", card.value),
        None if bits >= KNOWN_BITS => ("kv_of_posterior", float::exp(of(post).quantile(0.5))),
        None => return (says("kv_unknown"), Vec::new()),
    };
    let words = |s: &KvShape| {
        let of = says(if s.heads.is_some() { "shape_of_heads" } else { "shape_of_latent" });
        let of = of.with("layers", s.layers).with("heads", s.heads).with("width", s.head_dim);
        of.with("bytes", s.bytes).with("shared", Some(s.sparsity).filter(|n| *n > 1))
    };
    let card = |s: KvShape| ShapeCard { shape: words(&s), kv_bytes_per_token: s.kv() };
    (says(why), shapes(kv, 0.1).into_iter().take(5).map(card).collect())
}

fn assumptions(case: &Case, seller: Seller) -> Vec<Remark> {
    let level = match (&case.known, seller) {
        (Some(_), _) => "level_of_others",
        (None, Seller::Host) => "level_of_hosts",
        (None, Seller::FirstParty) => "level_of_makers",
    };
    let hosts = match case.sheet.hosts {
        _ if seller == Seller::FirstParty => says("one_list_of_maker"),
        0 | 1 => says("one_list_of_host"),
        n => says("median_of_hosts").with("hosts", n),
    };
    let mut all = vec![says(level), hosts, says("intervals_of_posterior")];
    if case.sheet.cached.is_some() {
        // DeepSeek V4-Pro within six months of 2026: 0.145, then 0.0036, then 0.022 dollars.
        all.push(says("lowest_cached_price"));
    }
    all
}

fn active(subtitle: Remark, case: &Case, prior: &Posterior, post: &Posterior) -> Figure {
    let line = |name: &str, role: Role, p: &Posterior| {
        Series::new(name, role, p.of(Unknown::Active).curve().into_iter().map(|(x, y)| (float::exp(x), y)))
    };
    let h = post.of(Unknown::Active);
    let mark = |x: f64, label: Remark| Mark::at(float::exp(x), h.density(x), label);
    let (low, middle, high) = (h.quantile(0.1), h.quantile(0.5), h.quantile(0.9));
    let label = says("median_between").with("median", float::exp(middle));
    let mut marks = vec![mark(middle, label.with("low", float::exp(low)).with("high", float::exp(high)))];
    if let Some(known) = &case.known {
        marks.push(mark(known.ln_active, says("true_size").with("x", float::exp(known.ln_active))));
    }
    let axes = (Axis::log("active parameters", Unit::Count), Axis::linear("density per factor e", Unit::Number));
    let series = [line("prior", Role::Floor, prior), line("posterior", Role::Envelope, post)];
    Figure::of("Active parameters", subtitle, axes, series).marked(marks)
}

/// The ridge: ellipses that hold 80 % of prior and posterior if both were normal in logarithms, and the line along which
/// twice the model is half the margin.
fn ridge(subtitle: Remark, prior: &Posterior, post: &Posterior) -> Figure {
    let (cx, cy) = (post.of(Unknown::Active).quantile(0.5), post.of(Unknown::Markup).quantile(0.5));
    let reach = 1.5 * post.deviation(Unknown::Active);
    let correlation = post.correlation(Unknown::Active, Unknown::Markup);
    let (x, y) = (float::exp(cx), float::exp(cy));
    let trade = [-1.0, 1.0].map(|side| (float::exp(cx + side * reach), float::exp(cy - side * reach)));
    let subtitle = says("with_correlation").with("of", subtitle).with("correlation", correlation);
    let axes = (Axis::log("active parameters", Unit::Count), Axis::log("price over cost", Unit::Number));
    let series = [
        Series::new("prior, 80 %", Role::Floor, ellipse(prior)),
        Series::new("posterior, 80 %", Role::Envelope, ellipse(post)),
        Series::new("same input price", Role::Compute, trade),
    ];
    let median = Mark::at(x, y, says("median_markup").with("active", x).with("markup", y));
    Figure::of("Active parameters against mark-up", subtitle, axes, series).marked([median])
}

/// Radius within which two independent standard normals lie with a chance of 80 %: the root of -2 ln 0.2.
const RADIUS: f64 = 1.794_122_577_994_101_5;

/// One turn in 96 steps by the angle-addition rule: no platform's sine is asked.
const TURN: (f64, f64) = (0.997_858_923_238_603_5, 0.065_403_129_230_143_06);

fn ellipse(p: &Posterior) -> Vec<(f64, f64)> {
    let (a, m) = (Unknown::Active, Unknown::Markup);
    let (cx, cy) = (p.of(a).quantile(0.5), p.of(m).quantile(0.5));
    let (sx, sy, rho) = (p.deviation(a), p.deviation(m), p.correlation(a, m).clamp(-1.0, 1.0));
    let other = (1.0 - rho * rho).max(0.0).sqrt();
    let (mut c, mut s) = (1.0, 0.0);
    (0..=96)
        .map(|_| {
            let at = (float::exp(cx + RADIUS * sx * c), float::exp(cy + RADIUS * sy * (rho * c + other * s)));
            (c, s) = (c * TURN.0 - s * TURN.1, c * TURN.1 + s * TURN.0);
            at
        })
        .collect()
}
