//! `rackmath models`, `chips`, `systems` and `lecture`.

use crate::args::{Common, ModelsArgs, NamesArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::{Catalog, chips, lecture, models, systems};
use rackmath_report::text;

pub fn models(common: &Common, catalog: &mut Catalog, a: &ModelsArgs) -> Result<(), Failure> {
    let names = a.names.iter().map(|name| inputs::model(catalog, name)).collect::<Result<_, _>>()?;
    let request = models::Request { names, context: a.context.get(), kv: a.kv_cache_dtype.clone() };
    let answer = models::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::models(&answer, style))
}

pub fn chips(common: &Common, catalog: &Catalog, a: &NamesArgs) -> Result<(), Failure> {
    let answer = chips::answer(catalog, &chips::Request { names: a.names.clone() })?;
    output::answer(common, &answer, |style| text::chips(&answer, style))
}

pub fn systems(common: &Common, catalog: &Catalog, a: &NamesArgs) -> Result<(), Failure> {
    let answer = systems::answer(catalog, &systems::Request { names: a.names.clone() })?;
    output::answer(common, &answer, |style| text::systems(&answer, style))
}

pub fn lecture(common: &Common, catalog: &Catalog, claim: Option<&str>) -> Result<(), Failure> {
    let answer = lecture::answer(catalog, &lecture::Request { claim: claim.map(str::to_owned) })?;
    output::answer(common, &answer, |style| text::lecture(&answer, style))
}
