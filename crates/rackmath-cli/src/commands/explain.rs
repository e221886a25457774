//! `rackmath explain`

use super::setting;
use crate::args::{Common, ExplainArgs};
use crate::failure::Failure;
use crate::output;
use rackmath::{Catalog, explain};
use rackmath_report::text;
use rackmath_units::Tokens;

pub fn run(common: &Common, catalog: &mut Catalog, a: &ExplainArgs) -> Result<(), Failure> {
    let request = explain::Request {
        setting: setting(catalog, &a.setting)?,
        what: a.what.clone(),
        batch: a.load.batch.map(Tokens::get),
        context: a.load.context.get(),
    };
    let answer = explain::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::explain(&answer, style))
}
