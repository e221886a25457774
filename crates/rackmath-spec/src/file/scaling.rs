//! Reads a scaling-law file of any form.

use super::{clark_laws, parse_toml};
use crate::{Counts, Fitted, LawForm, PowerLaw, Repetition, ScalingLaw, SpecError, StandardErrors};
use rackmath_units::{Flop, Params, Tokens};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    form: String,
    #[serde(default, rename = "aliases")]
    _aliases: Vec<String>,
    as_of: String,
    source: String,
    #[serde(default = "total")]
    counts: String,
    #[serde(default)]
    notes: Vec<String>,
    coefficients: BTreeMap<String, f64>,
    standard_errors: Option<RawErrors>,
    repetition: Option<RawRepetition>,
    fitted: RawFitted,
}

fn total() -> String {
    "total".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawErrors {
    e: f64,
    a: f64,
    b: f64,
    alpha: f64,
    beta: f64,
    correlation: Option<[[f64; 5]; 5]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRepetition {
    data: f64,
    params: f64,
    params_per_token: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFitted {
    params: Option<(String, String)>,
    tokens: Option<(String, String)>,
    flop: Option<(String, String)>,
    tokens_per_param: Option<(f64, f64)>,
    ratio: Option<(f64, f64)>,
    source: String,
}

const FORMS: [&str; 4] = ["chinchilla", "granular", "sparse", "frontier"];

/// Reads a law; a file with routers is Clark et al.'s.
pub fn scaling_law(id: &str, text: &str) -> Result<ScalingLaw, SpecError> {
    let file = format!("law {id}");
    let table: toml::Table = parse_toml(&file, text)?;
    if table.contains_key("router") {
        return routed(id, text, &table);
    }
    let raw: Raw = parse_toml(&file, text)?;
    let mut reader = Reader { file, left: raw.coefficients };
    let form = reader.form(&raw.form, raw.repetition.as_ref())?;
    reader.nothing_left()?;
    let counts = match raw.counts.as_str() {
        "total" => Counts::Total,
        "active" => Counts::Active,
        other => return Err(reader.field("counts", other, "total or active")),
    };
    let errors = raw.standard_errors.map(|e| reader.errors(&e)).transpose()?;
    if errors.is_some() && !matches!(form, LawForm::Chinchilla(..)) {
        return Err(reader.field("standard_errors", &raw.form, "the form chinchilla"));
    }
    let fitted = reader.fitted(raw.fitted)?;
    Ok(ScalingLaw {
        id: id.to_owned(),
        name: raw.name,
        as_of: raw.as_of,
        source: raw.source,
        notes: raw.notes,
        counts,
        form,
        errors,
        fitted,
    })
}

fn routed(id: &str, text: &str, table: &toml::Table) -> Result<ScalingLaw, SpecError> {
    let laws = clark_laws(id, text)?;
    let word = |key: &str| table.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let (params, source) =
        laws.first().map_or((None, String::new()), |l| (Some(l.fitted.value), l.fitted.source.clone()));
    Ok(ScalingLaw {
        id: id.to_owned(),
        name: word("name"),
        as_of: word("as_of"),
        source: source.clone(),
        notes: vec![
            "Fitted at 130 billion tokens with one expert per token: it says what experts are worth, not what data is."
                .into(),
        ],
        counts: Counts::Active,
        form: LawForm::Routed(laws),
        errors: None,
        fitted: Fitted { params, source, ..Fitted::default() },
    })
}

/// The coefficients not yet read, and the file for messages.
struct Reader {
    file: String,
    left: BTreeMap<String, f64>,
}

impl Reader {
    fn field(&self, field: &str, given: &str, expected: &str) -> SpecError {
        SpecError::field(&self.file, field, given, expected)
    }

    fn number(&mut self, name: &str) -> Result<f64, SpecError> {
        let field = format!("coefficients.{name}");
        match self.left.remove(name) {
            Some(x) if x.is_finite() => Ok(x),
            Some(x) => Err(self.field(&field, &x.to_string(), "a finite number")),
            None => Err(self.field(&field, "nothing", "a number")),
        }
    }

    fn positive(&mut self, name: &str) -> Result<f64, SpecError> {
        let x = self.number(name)?;
        if x > 0.0 { Ok(x) } else { Err(self.field(&format!("coefficients.{name}"), &x.to_string(), "more than 0")) }
    }

    /// A positive coefficient as itself or as its natural logarithm.
    fn or_ln(&mut self, name: &str) -> Result<f64, SpecError> {
        let ln = format!("ln_{name}");
        if self.left.contains_key(&ln) {
            let x = rackmath_units::float::exp(self.number(&ln)?);
            return if x.is_finite() && x > 0.0 { Ok(x) } else { Err(self.field(&ln, "out of range", "at most 700")) };
        }
        self.positive(name)
    }

    fn power(&mut self) -> Result<PowerLaw, SpecError> {
        Ok(PowerLaw {
            e: self.or_ln("e")?,
            a: self.or_ln("a")?,
            b: self.or_ln("b")?,
            alpha: self.positive("alpha")?,
            beta: self.positive("beta")?,
        })
    }

    fn form(&mut self, form: &str, repetition: Option<&RawRepetition>) -> Result<LawForm, SpecError> {
        if repetition.is_some() && form != "chinchilla" {
            return Err(self.field("repetition", form, "the form chinchilla"));
        }
        Ok(match form {
            "chinchilla" => {
                let repetition = repetition.map(|r| self.repetition(r)).transpose()?;
                LawForm::Chinchilla(self.power()?, repetition)
            }
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
                    return Err(self.field("coefficients.tokens_exponent", &exponent.to_string(), "less than 1"));
                }
                LawForm::Frontier { factor, exponent }
            }
            other => return Err(SpecError::unknown("form of a scaling law", other, FORMS.into_iter())),
        })
    }

    fn repetition(&self, r: &RawRepetition) -> Result<Repetition, SpecError> {
        let all = [r.data, r.params, r.params_per_token];
        if all.iter().any(|x| !(x.is_finite() && *x > 0.0)) {
            return Err(self.field("repetition", &format!("{all:?}"), "positive numbers"));
        }
        Ok(Repetition { data: r.data, params: r.params, params_per_token: r.params_per_token })
    }

    fn errors(&self, raw: &RawErrors) -> Result<StandardErrors, SpecError> {
        let of = [raw.e, raw.a, raw.b, raw.alpha, raw.beta];
        if of.iter().any(|x| !(x.is_finite() && *x >= 0.0)) {
            return Err(self.field("standard_errors", &format!("{of:?}"), "numbers from 0"));
        }
        if let Some(c) = &raw.correlation {
            let good =
                (0..5).all(|i| c[i][i] == 1.0 && (0..5).all(|j| c[i][j] == c[j][i] && (-1.0..=1.0).contains(&c[i][j])));
            if !good {
                let expected =
                    "a symmetric table between -1 and 1 with ones on the diagonal, in the order e, a, b, alpha, beta";
                return Err(self.field("standard_errors.correlation", "something else", expected));
            }
        }
        Ok(StandardErrors { of, correlation: raw.correlation })
    }

    fn fitted(&self, raw: RawFitted) -> Result<Fitted, SpecError> {
        let pair = |field: &str, pair: Option<(String, String)>, read: fn(&str) -> Option<f64>| {
            let one = |t: &str| read(t).ok_or_else(|| self.field(field, t, "a quantity such as 70M"));
            pair.map(|(low, high)| Ok::<_, SpecError>((one(&low)?, one(&high)?))).transpose()
        };
        let fitted = Fitted {
            params: pair("fitted.params", raw.params, |t| t.parse().ok().map(Params::get))?,
            tokens: pair("fitted.tokens", raw.tokens, |t| t.parse().ok().map(Tokens::get))?,
            flop: pair("fitted.flop", raw.flop, |t| t.parse().ok().map(Flop::get))?,
            tokens_per_param: raw.tokens_per_param,
            ratio: raw.ratio,
            source: raw.source,
        };
        let ranges = [fitted.params, fitted.tokens, fitted.flop, fitted.tokens_per_param, fitted.ratio];
        for (low, high) in ranges.into_iter().flatten() {
            if !(low.is_finite() && high.is_finite() && low >= 0.0 && low <= high) {
                return Err(self.field("fitted", &format!("{low} to {high}"), "a low end, then a high end"));
            }
        }
        Ok(fitted)
    }

    fn nothing_left(&self) -> Result<(), SpecError> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.field(&format!("coefficients.{name}"), name, "only coefficients of its form")),
        }
    }
}
