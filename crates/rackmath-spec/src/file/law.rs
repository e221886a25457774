//! Reads a scaling-law file.

use super::{Place, RawCited, parse_toml};
use crate::{Cited, ClarkLaw, SpecError};
use rackmath_units::Params;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLaw {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "form")]
    _form: String,
    #[serde(rename = "as_of")]
    _as_of: String,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    fitted_params: RawCited<(String, String)>,
    router: BTreeMap<String, RawClark>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClark {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
    e_start: f64,
    e_max: f64,
}

/// Reads the routed-model law, one set of coefficients per router.
pub fn clark_laws(id: &str, text: &str) -> Result<Vec<ClarkLaw>, SpecError> {
    let file = format!("law {id}");
    let raw: RawLaw = parse_toml(&file, text)?;
    let place = Place { file: &file, sources: &raw.sources };
    let fitted: Cited<(f64, f64)> = place.cited("fitted_params", raw.fitted_params, |(low, high)| {
        let read = |t: &String| t.parse::<Params>().map(Params::get).map_err(|e| (t.clone(), e.to_string()));
        Ok((read(low)?, read(high)?))
    })?;
    raw.router
        .into_iter()
        .map(|(router, k)| {
            Ok(ClarkLaw {
                router: router.parse()?,
                a: k.a,
                b: k.b,
                c: k.c,
                d: k.d,
                e_start: k.e_start,
                e_max: k.e_max,
                fitted: fitted.clone(),
            })
        })
        .collect()
}
