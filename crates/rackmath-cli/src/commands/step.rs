//! `rackmath step`

use super::setting;
use crate::args::{Common, StepArgs};
use crate::failure::Failure;
use crate::output;
use rackmath::{Catalog, step};
use rackmath_report::text;
use rackmath_units::Tokens;

pub fn run(common: &Common, catalog: &mut Catalog, a: &StepArgs) -> Result<(), Failure> {
    let request = step::Request {
        setting: setting(catalog, &a.setting)?,
        batch: a.load.batch.map(Tokens::get),
        context: a.load.context.get(),
        pass: a.pass.get(),
    };
    let answer = step::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::step(&answer, style))
}
