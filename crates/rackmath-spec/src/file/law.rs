//! Reads a scaling-law file.

use super::noun::cited;
use crate::{Cited, ClarkLaw, SpecError};
use rackmath_units::Params;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLaw {
    fitted_params: Cited<(Params, Params)>,
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
    let raw: RawLaw = cited(&file, id, text, &["id", "name", "form", "as_of"])?;
    let fitted = raw.fitted_params.map(|(low, high)| (low.get(), high.get()));
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
