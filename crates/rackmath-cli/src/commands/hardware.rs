//! `rackmath hardware`

use super::plan::{request, threads};
use crate::args::{Common, HardwareArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::Catalog;
use rackmath::hardware::{self, Request};
use rackmath_report::{csv, png, scene, svg, text};

pub fn run(common: &Common, catalog: &mut Catalog, a: &HardwareArgs) -> Result<(), Failure> {
    let among = a.among.iter().map(|name| inputs::machine(catalog, name)).collect::<Result<Vec<_>, _>>()?;
    let request = Request { plan: request(catalog, &a.plan)?, among, flips: !a.no_flips };
    let answer = hardware::answer_on(catalog, &request, threads())?;
    if let Some(path) = &a.plan.svg {
        output::save(path, svg::paint(&scene(&answer.figure)).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene(&answer.figure)))?;
    }
    if let Some(path) = &a.plan.csv {
        output::save(path, csv::hardware(&answer).as_bytes())?;
    }
    output::answer(common, &answer, |style| text::hardware(&answer, style))
}
