//! Scaling laws as data: what loss a model of so many parameters reaches on so many tokens.
//!
//! A law keeps its coefficients, their standard errors where published, the range it was fitted on and its source. What is
//! done with them is `rackmath_theory::scaling`. The law of routed models is lecture D15.

use crate::error::one_of;
use crate::file::noun::{cited, noun, positive, wrong};
use crate::{Cited, SpecError};
use rackmath_units::{Flop, Params, Tokens};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;
use strum::{Display, IntoStaticStr, VariantArray};

#[derive(Clone, Debug, PartialEq)]
pub struct ScalingLaw {
    pub id: String,
    pub name: String,
    pub as_of: String,
    pub source: String,
    pub notes: Vec<String>,
    pub counts: Counts,
    pub form: LawForm,
    pub errors: Option<StandardErrors>,
    pub fitted: Fitted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counts {
    #[default]
    Total,
    Active,
}

#[derive(Clone, Debug, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum LawForm {
    /// L = e + a N^-alpha + b D^-beta, with what repetition of data is worth where known.
    Chinchilla(PowerLaw, Option<Repetition>),
    /// L = e + (g G^-gamma + a) N^-alpha + b D^-beta: G is how finely experts are cut, which removes the term of weight g.
    Granular { base: PowerLaw, g: f64, gamma: f64 },
    /// L = e + a N^-alpha + b D^-beta + c (1-S)^-lambda + d (1-S)^-delta N^-gamma: S is the unused share of experts.
    Sparse {
        base: PowerLaw,
        /// Weight and exponent of the term of sparsity alone.
        alone: (f64, f64),
        /// Weight, exponent of the density and exponent of N of the joint term.
        joint: (f64, f64, f64),
    },
    /// D* = factor C^exponent: only the compute-optimal tokens are known, not the loss.
    Frontier { factor: f64, exponent: f64 },
    /// Clark et al.: the loss with E experts at a fixed number of tokens, one set per router.
    Routed(Vec<ClarkLaw>),
}

impl LawForm {
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// L = e + a N^-alpha + b D^-beta; e is the loss that no size and no data removes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    pub e: f64,
    pub a: f64,
    pub b: f64,
    pub alpha: f64,
    pub beta: f64,
}

/// What repeated data and excess parameters are still worth.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repetition {
    /// Repeats after which a further one is worth 1/e of a fresh pass.
    #[serde(deserialize_with = "positive")]
    pub data: f64,
    /// The same for parameters beyond what the unique data needs.
    #[serde(deserialize_with = "positive")]
    pub params: f64,
    /// Parameters the unique data needs, per token.
    #[serde(deserialize_with = "positive")]
    pub params_per_token: f64,
}

/// One standard error of each coefficient, and how they move together where published.
#[derive(Clone, Debug, PartialEq)]
pub struct StandardErrors {
    /// Of (e, a, b, alpha, beta), in that order; none is negative.
    pub of: [f64; 5],
    /// Correlations in the same order, where published; symmetric with ones on the diagonal.
    pub correlation: Option<[[f64; 5]; 5]>,
}

/// The range of the runs behind a law; nothing where it is not stated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// As the law counts them.
    #[serde(default, deserialize_with = "range::<_, Params>")]
    pub params: Option<(f64, f64)>,
    #[serde(default, deserialize_with = "range::<_, Tokens>")]
    pub tokens: Option<(f64, f64)>,
    #[serde(default, deserialize_with = "range::<_, Flop>")]
    pub flop: Option<(f64, f64)>,
    pub tokens_per_param: Option<(f64, f64)>,
    /// Total over active parameters.
    pub ratio: Option<(f64, f64)>,
    pub source: String,
}

/// How experts were chosen in the runs a law was fitted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr, VariantArray)]
pub enum Router {
    /// Sinkhorn-balanced assignment.
    #[default]
    #[strum(serialize = "s-base")]
    SBase,
    /// Reinforcement learning.
    #[strum(serialize = "rl-r")]
    Rlr,
    /// A fixed hash of the token.
    #[strum(serialize = "hash")]
    Hash,
}

impl FromStr for Router {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        one_of("router", text)
    }
}

/// Coefficients of Clark et al.'s law for routed language models, base-10 logarithms.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClarkLaw {
    #[serde(skip)]
    pub router: Router,
    pub a: f64,
    /// Weight of log Ê.
    pub b: f64,
    pub c: f64,
    pub d: f64,
    /// Expert count at which routing starts to help.
    pub e_start: f64,
    /// Expert count at which routing saturates.
    pub e_max: f64,
    #[serde(skip)]
    pub fitted: Cited<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: String,
    name: String,
    form: String,
    as_of: String,
    source: String,
    #[serde(default)]
    counts: Counts,
    #[serde(default)]
    notes: Vec<String>,
    coefficients: BTreeMap<String, f64>,
    #[serde(default, deserialize_with = "errors")]
    standard_errors: Option<StandardErrors>,
    repetition: Option<Repetition>,
    fitted: Fitted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutedFile {
    id: String,
    name: String,
    as_of: String,
    fitted_params: Cited<(Params, Params)>,
    router: BTreeMap<String, ClarkLaw>,
}

/// What tells the two kinds of files apart.
#[derive(Deserialize)]
struct Sign {
    router: Option<serde::de::IgnoredAny>,
}

/// Reads a law; a file with routers is Clark et al.'s.
pub(crate) fn read(id: &str, text: &str) -> Result<ScalingLaw, SpecError> {
    let file = format!("law {id}");
    if crate::file::parse_toml::<Sign>(&file, text)?.router.is_some() {
        return routed(&file, id, text);
    }
    let raw: File = noun(&file, id, text, &[])?;
    let mut left = Coefficients { file, left: raw.coefficients };
    for (field, given) in [("repetition", raw.repetition.is_some()), ("standard_errors", raw.standard_errors.is_some())]
    {
        if given && raw.form != "chinchilla" {
            return Err(left.wrong(field, &raw.form, "the form chinchilla"));
        }
    }
    let form = left.form(&raw.form, raw.repetition)?;
    if let Some(name) = left.left.keys().next() {
        return Err(left.wrong(&format!("coefficients.{name}"), name, "only coefficients of its form"));
    }
    let f = &raw.fitted;
    for (low, high) in [f.params, f.tokens, f.flop, f.tokens_per_param, f.ratio].into_iter().flatten() {
        if !(low.is_finite() && high.is_finite() && low >= 0.0 && low <= high) {
            return Err(left.wrong("fitted", format!("{low} to {high}"), "a low end, then a high end"));
        }
    }
    let File { id, name, as_of, source, counts, notes, standard_errors: errors, fitted, .. } = raw;
    Ok(ScalingLaw { id, name, as_of, source, notes, counts, form, errors, fitted })
}

fn routed(file: &str, id: &str, text: &str) -> Result<ScalingLaw, SpecError> {
    let RoutedFile { id, name, as_of, fitted_params, router } = cited(file, id, text, &["form"])?;
    let fitted = fitted_params.map(|(low, high)| (low.get(), high.get()));
    let each = router.into_iter();
    let laws = each.map(|(router, law)| Ok(ClarkLaw { router: router.parse()?, fitted: fitted.clone(), ..law }));
    let note =
        "Fitted at 130 billion tokens with one expert per token: it says what experts are worth, not what data is.";
    let form = LawForm::Routed(laws.collect::<Result<_, SpecError>>()?);
    let (source, notes, counts) = (fitted.source.clone(), vec![note.into()], Counts::Active);
    let fitted = Fitted { params: Some(fitted.value), source: fitted.source, ..Fitted::default() };
    Ok(ScalingLaw { id, name, as_of, source, notes, counts, form, errors: None, fitted })
}

/// The coefficients not yet read, and the file for messages.
struct Coefficients {
    file: String,
    left: BTreeMap<String, f64>,
}

impl Coefficients {
    fn wrong(&self, field: &str, given: impl ToString, expected: &str) -> SpecError {
        SpecError::field(&self.file, field, given, expected)
    }

    fn number(&mut self, name: &str) -> Result<f64, SpecError> {
        let field = format!("coefficients.{name}");
        match self.left.remove(name) {
            Some(x) if x.is_finite() => Ok(x),
            Some(x) => Err(self.wrong(&field, x, "a finite number")),
            None => Err(self.wrong(&field, "nothing", "a number")),
        }
    }

    fn positive(&mut self, name: &str) -> Result<f64, SpecError> {
        let x = self.number(name)?;
        if x > 0.0 { Ok(x) } else { Err(self.wrong(&format!("coefficients.{name}"), x, "more than 0")) }
    }

    /// A positive coefficient as itself or as its natural logarithm.
    fn or_ln(&mut self, name: &str) -> Result<f64, SpecError> {
        let ln = format!("ln_{name}");
        if !self.left.contains_key(&ln) {
            return self.positive(name);
        }
        let x = rackmath_units::float::exp(self.number(&ln)?);
        if x.is_finite() && x > 0.0 { Ok(x) } else { Err(self.wrong(&ln, "out of range", "at most 700")) }
    }

    fn power(&mut self) -> Result<PowerLaw, SpecError> {
        let (e, a, b) = (self.or_ln("e")?, self.or_ln("a")?, self.or_ln("b")?);
        Ok(PowerLaw { e, a, b, alpha: self.positive("alpha")?, beta: self.positive("beta")? })
    }

    fn form(&mut self, form: &str, repetition: Option<Repetition>) -> Result<LawForm, SpecError> {
        Ok(match form {
            "chinchilla" => LawForm::Chinchilla(self.power()?, repetition),
            "granular" => {
                LawForm::Granular { base: self.power()?, g: self.positive("g")?, gamma: self.positive("gamma")? }
            }
            "sparse" => LawForm::Sparse {
                base: self.power()?,
                alone: (self.positive("c")?, self.number("lambda")?),
                joint: (self.positive("d")?, self.number("delta")?, self.positive("gamma")?),
            },
            "frontier" => {
                let (factor, exponent) = (self.positive("tokens_factor")?, self.positive("tokens_exponent")?);
                if exponent >= 1.0 {
                    return Err(self.wrong("coefficients.tokens_exponent", exponent, "less than 1"));
                }
                LawForm::Frontier { factor, exponent }
            }
            other => {
                let forms = ["chinchilla", "granular", "sparse", "frontier"];
                return Err(SpecError::unknown("form of a scaling law", other, forms.into_iter()));
            }
        })
    }
}

fn errors<'de, D: Deserializer<'de>>(d: D) -> Result<Option<StandardErrors>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Errors {
        e: f64,
        a: f64,
        b: f64,
        alpha: f64,
        beta: f64,
        correlation: Option<[[f64; 5]; 5]>,
    }
    let Errors { e, a, b, alpha, beta, correlation } = Errors::deserialize(d)?;
    let of = [e, a, b, alpha, beta];
    if of.iter().any(|x| !(x.is_finite() && *x >= 0.0)) {
        return Err(wrong("numbers from 0"));
    }
    let sound = |c: &[[f64; 5]; 5]| {
        (0..5).all(|i| c[i][i] == 1.0 && (0..5).all(|j| c[i][j] == c[j][i] && (-1.0..=1.0).contains(&c[i][j])))
    };
    if correlation.as_ref().is_some_and(|c| !sound(c)) {
        let order = "in the order e, a, b, alpha, beta";
        return Err(wrong(&format!(
            "correlations between -1 and 1 in a symmetric table with ones on the diagonal, {order}"
        )));
    }
    Ok(Some(StandardErrors { of, correlation }))
}

fn range<'de, D: Deserializer<'de>, Q: Deserialize<'de> + Into<f64>>(d: D) -> Result<Option<(f64, f64)>, D::Error> {
    <(Q, Q)>::deserialize(d).map(|(low, high)| Some((low.into(), high.into())))
}
