//! Which scaling laws, for a model of which shape, and what a FLOP costs: shared by `scaling` and `lifecycle`.

use crate::desk::prelude::*;
use crate::setting::PriceSource;
use rackmath_spec::{ClarkLaw, LawForm, PowerLaw, Router, ScalingLaw, StandardErrors};
pub use rackmath_theory::scaling::Band;
use rackmath_theory::scaling::{NoSurface, Outside, Point, Shape, Surface, Tie, band, draws, outside, surface};
use rackmath_units::FlopRate;

/// Laws and the shape of the model they are asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Law {
    /// A law of the catalogue, or `all`.
    #[educe(Default = "all")]
    pub law: String,
    /// Total over active parameters; 1 is dense.
    #[educe(Default = 1.0)]
    pub sparsity: f64,
    /// How many pieces an expert of full width is cut into.
    #[educe(Default = 1.0)]
    pub granularity: f64,
    /// Whose experts a dense law is extended with (Clark et al. 2022).
    #[schemars(transform = closed::<Router>)]
    #[educe(Default = "s-base")]
    pub router: String,
    /// Fresh tokens available; data repeats beyond them, where the law knows what that is worth.
    pub unique_tokens: Option<f64>,
    /// What parameters trained in a low precision are worth, of what they are in 16 bits.
    #[educe(Default = 1.0)]
    pub precision_worth: f64,
}

/// What the standard errors of a law make of a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// With the published correlations, or as if there were none, which is far too wide.
    pub wide: Band,
    /// With each weight tied to its exponent, as fits have them; absent when correlations are published.
    pub narrow: Option<Band>,
}

/// Laws and shape, resolved.
pub(crate) struct Resolved {
    pub(crate) laws: Vec<Arc<ScalingLaw>>,
    pub(crate) shape: Shape,
    pub(crate) experts: ClarkLaw,
}

pub(crate) fn resolve(catalog: &Catalog, law: &Law) -> Result<Resolved, Error> {
    let laws = if law.law.trim().eq_ignore_ascii_case("all") {
        catalog.ids(rackmath_spec::Kind::Laws).map(|id| catalog.scaling_law(id)).collect::<Result<_, _>>()?
    } else {
        let one = catalog.scaling_law(&law.law)?;
        // Beside a law that takes repeats for fresh tokens stands one that does not.
        let all = || catalog.ids(rackmath_spec::Kind::Laws).filter_map(|id| catalog.scaling_law(id).ok());
        let others = law.unique_tokens.filter(|_| !knows_repetition(&one)).into_iter();
        let others: Vec<_> = others.flat_map(|_| all().filter(|l| knows_repetition(l))).collect();
        std::iter::once(one).chain(others).collect()
    };
    let router = law.router.parse::<Router>()?;
    let experts = catalog.clark_laws()?.into_iter().find(|l| l.router == router);
    let experts = experts.ok_or_else(|| Error::value("router", &law.router, "a router of the Clark law"))?;
    within("sparsity", law.sparsity, 1.0, 1e4)?;
    within("granularity", law.granularity, 1.0, 1e4)?;
    within("precision_worth", law.precision_worth, 1e-3, 1.0)?;
    let unique = if_given("unique_tokens", law.unique_tokens, 1e6, 1e18)?;
    let shape = Shape {
        ratio: law.sparsity,
        granularity: law.granularity,
        worth: law.precision_worth,
        unique: unique.map(Tokens::new),
    };
    Ok(Resolved { laws, shape, experts })
}

/// Whether a law knows what data is worth that a model sees again.
fn knows_repetition(law: &ScalingLaw) -> bool {
    matches!(law.form, LawForm::Chinchilla(_, Some(_)))
}

impl Resolved {
    /// Why a law has nothing to say of so many tokens: it takes repeats for fresh ones, and there are not as many.
    pub(crate) fn repeats(&self, law: &ScalingLaw, at: Point) -> Option<Remark> {
        let unique = self.shape.unique.filter(|unique| at.tokens > *unique && !knows_repetition(law))?;
        let said = says("repeats_as_fresh").with("params", at.params).with("tokens", at.tokens);
        Some(said.with("passes", at.tokens / unique).with("unique", unique))
    }

    pub(crate) fn surface(&self, law: &ScalingLaw) -> Result<Surface, NoSurface> {
        surface(law, &self.shape, Some(&self.experts))
    }

    /// What a law's standard errors make of `answer`; nothing when it has none.
    pub(crate) fn spread(&self, law: &ScalingLaw, answer: impl Fn(&Surface) -> Option<f64>) -> Option<Spread> {
        /// Enough for the ends of the middle 80 % to two digits.
        const DRAWS: usize = 1000;
        let (LawForm::Chinchilla(k, repetition), Some(errors)) = (&law.form, &law.errors) else { return None };
        let of = |tie: Tie, k: &PowerLaw, errors: &StandardErrors| {
            band(&draws(k, errors, tie, DRAWS), |drawn| {
                let drawn = ScalingLaw { form: LawForm::Chinchilla(*drawn, *repetition), ..law.clone() };
                answer(&self.surface(&drawn).ok()?)
            })
        };
        let wide = of(Tie::Independent, k, errors)?;
        let narrow = if errors.correlation.is_some() { None } else { of(Tie::Paired, k, errors) };
        Some(Spread { wide, narrow })
    }

    /// Where a point lies outside the range a law was fitted on.
    pub(crate) fn outside(&self, law: &ScalingLaw, at: Point) -> Vec<Remark> {
        let one = |o: Outside| {
            let side = if o.above { "above_the_fit" } else { "below_the_fit" };
            says(side).with("what", o.what).with("times", o.times).with("end", o.end)
        };
        outside(&law.fitted, law.counts, &self.shape, at).into_iter().map(one).collect()
    }

    /// What of the shape the laws extend to rather than know.
    pub(crate) fn assumptions(&self, router: &str) -> Vec<Remark> {
        let shape = &self.shape;
        let experts = (shape.ratio > 1.0).then(|| says("worth_of_experts").with("router", router));
        let repeated = shape.unique.is_some().then(|| says("worth_of_repetition"));
        let precision = (shape.worth < 1.0).then(|| says("worth_of_precision"));
        experts.into_iter().chain(repeated).chain(precision).collect()
    }
}

/// The machine whose time is paid for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// A chip of the catalogue; no dollars without one.
    #[schemars(extend("x-flag" = "on chip"))]
    pub on: Option<String>,
    /// Price per chip and hour in dollars, instead of the catalogue's.
    #[schemars(extend("x-none" = "the catalogue's"))]
    pub price_usd_per_chip_hour: Option<f64>,
    /// Share of the dense peak in use while training.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.4)]
    pub train_mfu: f64,
    /// Format trained in.
    #[educe(Default = "bf16")]
    pub train_format: String,
    /// Format served in.
    #[educe(Default = "bf16")]
    pub serve_format: String,
    /// Another chip for serving and RL.
    pub serve_on: Option<String>,
    /// Its price per chip and hour, instead of the catalogue's.
    pub serve_price_usd_per_chip_hour: Option<f64>,
}

/// What arithmetic costs on it.
pub(crate) struct Money {
    pub(crate) usd_per_train_flop: f64,
    /// Peak FLOP a dollar buys for serving, over training's.
    pub(crate) serve_value: f64,
    pub(crate) assumptions: Vec<Remark>,
}

pub(crate) fn money(catalog: &Catalog, m: &Machine) -> Result<Option<Money>, Error> {
    within("train_mfu", m.train_mfu, 1e-3, 1.0)?;
    let Some(name) = &m.on else {
        let stray = m.price_usd_per_chip_hour.or(m.serve_price_usd_per_chip_hour);
        return match (stray, &m.serve_on) {
            (Some(p), _) => Err(Error::value("price", p, "a chip with it; give one with {on}")),
            (None, Some(chip)) => Err(Error::value("serve_on", chip, "a chip to train on as well; give one with {on}")),
            (None, None) => Ok(None),
        };
    };
    let train = rented(catalog, name, &m.train_format, m.price_usd_per_chip_hour)?;
    let (serve_chip, serve_price) = match &m.serve_on {
        Some(chip) => (chip, m.serve_price_usd_per_chip_hour),
        None => (name, m.serve_price_usd_per_chip_hour.or(m.price_usd_per_chip_hour)),
    };
    let serve = rented(catalog, serve_chip, &m.serve_format, serve_price)?;
    let mut assumptions = vec![says("trained_on").with("rented", &train.words).with("mfu", m.train_mfu)];
    if serve.words != train.words {
        assumptions.push(says("served_on").with("rented", &serve.words));
    }
    Ok(Some(Money {
        usd_per_train_flop: train.usd_per_hour / 3600.0 / (train.peak.get() * m.train_mfu),
        serve_value: (serve.peak / train.peak) * (train.usd_per_hour / serve.usd_per_hour),
        assumptions,
    }))
}

/// A chip, its peak in a format, and its price.
struct Rented {
    peak: FlopRate,
    usd_per_hour: f64,
    words: Remark,
}

fn rented(catalog: &Catalog, name: &str, format: &str, price: Option<f64>) -> Result<Rented, Error> {
    let chip = catalog.chip(name)?;
    let (_, peak) = chip.peak_for(format.parse::<Dtype>()?).ok_or_else(|| no_peak(&chip, &chip.id, format))?;
    let (usd_per_hour, source) = if let Some(p) = price {
        (within("price", p, 1e-6, 1e6)?, PriceSource::Given)
    } else {
        let p = chip.usual_price().ok_or_else(|| no_price(&chip, "usual", "another chip"))?;
        (p.value.as_per_hour(), PriceSource::Listed(p.clone()))
    };
    let words = says("rented").with("chip", &chip.name).with("usd_per_hour", usd_per_hour);
    let words = words.with("source", source.remark()).with("peak", peak.value).with("format", format);
    Ok(Rented { peak: peak.value, usd_per_hour, words })
}
