//! The answer as plain data.

use super::{Case, Request, figures};
use crate::desk::prelude::*;
use rackmath_spec::deduce::Seller;
use rackmath_theory::deduce::shapes::{KvShape, shapes};
use rackmath_theory::deduce::{Datum, Evidence, Posterior, Refusal, Unknown};
use rackmath_units::float;

/// What the prices say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// What it is about.
    pub title: String,
    /// Whose prices: `host of open weights` or `maker of a closed model`.
    pub seller: String,
    /// Why there is no posterior, when there is none.
    pub refused: Option<String>,
    /// Why the answer should be read with care.
    pub warnings: Vec<String>,
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
    pub policies: Vec<String>,
    /// What trades against what.
    pub ridge: RidgeCard,
    /// Which cache size is decoded into shapes, or why none is.
    pub shapes_of: String,
    /// Layers, heads and formats that store that much.
    pub shapes: Vec<ShapeCard>,
    /// The model that was hidden.
    pub blind: Option<BlindCard>,
    /// How the points did.
    pub sampler: SamplerCard,
    /// What no price can tell.
    pub cannot_tell: Vec<String>,
    /// What is assumed.
    pub assumptions: Vec<String>,
    /// Where the numbers come from.
    pub sources: Vec<String>,
    /// Prior and posterior of the active parameters.
    pub figure: Figure,
    /// Active parameters against mark-up: what trades against what.
    pub ridge_figure: Figure,
}

/// A closed form.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClosedCard {
    /// What it gives.
    pub what: String,
    /// The formula.
    pub formula: String,
    /// Its value.
    pub value: f64,
    /// The value's unit.
    pub unit: String,
    /// Under which condition.
    pub note: String,
}

/// An unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UnknownCard {
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
    pub cannot_tell: String,
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
    /// In words.
    pub shape: String,
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

/// How the points did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SamplerCard {
    /// Points.
    pub points: u64,
    /// Points of equal weight they are worth.
    pub ess: f64,
    /// Shape of the tail of the weights.
    pub pareto_k: f64,
    /// Stages of tempering.
    pub tempered: usize,
}

pub(super) fn build(
    request: &Request,
    case: &Case,
    evidence: &Evidence,
    prior: &Posterior,
    posterior: Result<Posterior, Refusal>,
    closed: Vec<ClosedCard>,
) -> Answer {
    let refused = posterior.as_ref().err().map(|r| {
        format!(
            "the prices contradict each other or everything that is known: only {:.0} of the points carry weight (400 are needed), tail {:.2}; the prior is shown instead",
            r.ess, r.pareto_k
        )
    });
    let seller = case.seller;
    let post = posterior.as_ref().unwrap_or(prior);
    let names = |shares: &[f64], before: &[f64], name: &dyn Fn(usize) -> String| {
        let card = |i: usize| ChoiceCard { name: name(i), prior: before[i], posterior: shares[i] };
        (0..shares.len()).map(card).collect::<Vec<_>>()
    };
    let width = |i: usize| ["4-bit", "8-bit", "16-bit"][i].to_owned();
    let tier = |i: usize| case.space.tier_name(i).to_owned();
    let axis = [Unknown::Active, Unknown::Markup, Unknown::Mfu];
    let (figure, ridge_figure) = figures::both(request, case, prior, post);
    let (shapes_of, shapes) = decoded(&closed, prior, post);
    let unknowns: Vec<UnknownCard> = Unknown::ALL.into_iter().map(|u| unknown(u, case, prior, post)).collect();
    Answer {
        warnings: warnings(&unknowns, post),
        request: request.clone(),
        title: title(request, case),
        seller: if seller == Seller::Host { "host of open weights" } else { "maker of a closed model" }.into(),
        refused,
        closed,
        unknowns,
        widths: names(&post.widths, &prior.widths, &width),
        tiers: names(&post.tiers, &prior.tiers, &tier),
        dense: ChoiceCard { name: "dense".into(), prior: prior.dense, posterior: post.dense },
        data: data(case, evidence, post),
        policies: policies(case, evidence),
        ridge: RidgeCard {
            axis: axis.iter().zip(post.ridge(axis)).map(|(u, x)| (u.name().to_owned(), x)).collect(),
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
        sampler: SamplerCard { points: post.points, ess: post.ess, pareto_k: post.pareto_k, tempered: post.tempered },
        cannot_tell: CANNOT.map(str::to_owned).into(),
        assumptions: assumptions(case, seller),
        sources: vec![
            "priors, level and hosts: catalog/deduce (priors.toml, level.toml, hosts.toml)".into(),
            format!("policies: {}", case.policies.source),
        ],
        figure,
        ridge_figure,
    }
}

/// What no price can tell, however many there are.
const CANNOT: [&str; 4] = [
    "mark-up, chip price, utilisation, MFU and active parameters enter the input price only as a product: without the level of open hosts or a measured speed, twice the model is half the margin",
    "batch and total parameters enter decode as N_t w / B; cache bytes and context enter as a product",
    "precision moves peak and width together, so it hardly shows",
    "if the batch grows with the balance batch, sparsity cancels from the output price",
];

/// Bits beyond which an unknown has left everything the prior holds possible.
const STRANGE_BITS: f64 = 6.0;

fn warnings(unknowns: &[UnknownCard], post: &Posterior) -> Vec<String> {
    let strange: Vec<&str> = unknowns.iter().filter(|u| u.bits > STRANGE_BITS).map(|u| u.name.as_str()).collect();
    let mut warnings = Vec::new();
    if !strange.is_empty() {
        warnings.push(format!(
            "these prices are unlike any that the priors were made from: {} would have to lie where nothing is known; check the prices",
            strange.join(", ")
        ));
    }
    if post.pareto_k > 0.7 {
        warnings
            .push(format!("the weights have a heavy tail (k {:.2}); more points may move the answer", post.pareto_k));
    }
    warnings
}

pub(super) fn title(request: &Request, case: &Case) -> String {
    match (&case.known, &request.model, &case.vendor) {
        (Some(known), ..) => format!("{} from its hosts' prices, architecture hidden", known.name),
        (None, Some(model), Some(vendor)) => format!("{model} by {vendor}, from its prices"),
        (None, Some(model), None) => format!("{model}, from its prices"),
        (None, None, Some(vendor)) => format!("a model by {vendor}, from its prices"),
        (None, None, None) => "a model, from its prices".into(),
    }
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
        name: u.name().into(),
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
    evidence
        .data()
        .map(|datum| {
            let gained = bits.iter().find(|(d, ..)| *d == datum);
            DatumCard {
                name: datum.to_string(),
                bits_active: gained.map_or(0.0, |g| g.1),
                bits_kv: gained.map_or(0.0, |g| g.2),
                policy: datum.ratio().map(|r| case.chance(r)),
                cannot_tell: cannot(datum).into(),
            }
        })
        .collect()
}

fn cannot(datum: Datum) -> &'static str {
    match datum {
        Datum::Input => "size apart from mark-up, chip price, MFU and utilisation",
        Datum::Output => "batch apart from cache and context",
        Datum::Cached => "cache bytes apart from the price of moving them",
        Datum::Storage | Datum::Write => "cache bytes apart from the tier they lie in",
        Datum::LongInput => "attention apart from marketing",
        Datum::LongOutput => "cache bytes apart from context and marketing",
        Datum::Fast => "cache traffic apart from more chips or other drafts",
        Datum::Speed => "size apart from chips per replica and accepted drafts",
    }
}

fn policies(case: &Case, evidence: &Evidence) -> Vec<String> {
    let Some(vendor) = &case.vendor else { return Vec::new() };
    let habits = case.policies.vendors.get(vendor);
    let flag = |datum: Datum| {
        let habit = habits?.get(&datum.ratio()?).filter(|h| h.fixed())?;
        Some(format!(
            "{}: policy, not physics: {} of {} models by {vendor} have the same ratio, {}, so it says nothing about this one",
            datum, habit.same, habit.models, habit.value
        ))
    };
    evidence.data().filter_map(flag).collect()
}

/// Bits on the cache below which its posterior is not worth decoding.
const KNOWN_BITS: f64 = 0.25;

/// The lecture's cache size where the sheet has a price step, else the posterior's where the prices say anything about it.
fn decoded(closed: &[ClosedCard], prior: &Posterior, post: &Posterior) -> (String, Vec<ShapeCard>) {
    let of = |p: &Posterior| p.of(Unknown::KvStored).clone();
    let bits = of(post).bits_over(&of(prior));
    let (why, kv) = match closed.iter().find(|c| c.unit == "B/token") {
        Some(card) => ("the KV that the price step would mean", card.value),
        None if bits >= KNOWN_BITS => ("the posterior's median KV", float::exp(of(post).quantile(0.5))),
        None => {
            return (
                "none: these prices say nothing about KV bytes, so no size is decoded into shapes".into(),
                Vec::new(),
            );
        }
    };
    let words = |s: &KvShape| {
        let latent = || format!("a latent of {}", s.head_dim);
        let heads = s.heads.map_or_else(latent, |h| format!("{h} KV heads of {}", s.head_dim));
        let shared = if s.sparsity > 1 { format!(", {}:1 shared or compressed", s.sparsity) } else { String::new() };
        format!("{} layers, {heads}, {} B{shared}", s.layers, s.bytes)
    };
    let card = |s: KvShape| ShapeCard { shape: words(&s), kv_bytes_per_token: s.kv() };
    (why.into(), shapes(kv, 0.1).into_iter().take(5).map(card).collect())
}

fn assumptions(case: &Case, seller: Seller) -> Vec<String> {
    let level = match (&case.known, seller) {
        (Some(_), _) => "level of prices above cost: fitted on hosts of the other open architectures only",
        (None, Seller::Host) => "level of prices above cost: as hosts of open models charge it",
        (None, Seller::FirstParty) => {
            "level of prices above cost: open hosts' level, with a maker's mark-up of 2 to 20"
        }
    };
    let hosts = match case.sheet.hosts {
        _ if seller == Seller::FirstParty => "one price list: a maker's own mark-up is in the error bars".into(),
        0 | 1 => "one price list: hosts of one model differ by a factor of two, which is in the error bars".into(),
        n => format!("prices are the median of {n} hosts; copies of the maker's list count once"),
    };
    let mut all = vec![level.into(), hosts, "every interval holds 80 % of the posterior".into()];
    if case.sheet.cached.is_some() {
        // DeepSeek V4-Pro within six months of 2026: 0.145, then 0.0036, then 0.022 dollars.
        all.push(
            "a cached price is the lowest ever listed: launch prices have been 40 times higher, and would not give KV bytes"
                .into(),
        );
    }
    all
}
