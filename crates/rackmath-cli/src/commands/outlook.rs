//! `rackmath outlook`

use super::plan::{request, threads};
use super::planfile;
use crate::args::{Common, OutlookArgs};
use crate::failure::Failure;
use crate::output;
use rackmath::Catalog;
use rackmath::outlook::{self, Request};
use rackmath_report::text;

pub fn run(common: &Common, catalog: &mut Catalog, a: &OutlookArgs) -> Result<(), Failure> {
    let plan = match &a.from {
        Some(path) => {
            planfile::alone(catalog, &a.plan, path)?;
            planfile::open(catalog, path)?.request
        }
        None => request(catalog, &a.plan)?,
    };
    let answer = outlook::answer_on(catalog, &Request { plan, vary: a.vary.get() }, threads())?;
    output::answer(common, &answer, |style| text::outlook(&answer, style))
}
