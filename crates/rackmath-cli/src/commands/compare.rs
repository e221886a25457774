//! `rackmath compare` and `rackmath frontier`

use super::plan::{request, threads};
use crate::args::{Common, SidesArgs, SidesFigure};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::Catalog;
use rackmath::compare::{self, Request};
use rackmath::figure::Figure;
use rackmath::frontier::{self, Curve};
use rackmath_report::{csv, png, scene, svg, text};

pub fn run(common: &Common, catalog: &mut Catalog, a: &SidesArgs) -> Result<(), Failure> {
    let request = sides(catalog, a)?;
    let answer = compare::answer_on(catalog, &request, threads())?;
    let figure = drawn(a, &answer.figure_chip, answer.figure_dollar.as_ref())?;
    save(a, figure, answer.columns.iter().map(|c| &c.curve))?;
    output::answer(common, &answer, |style| text::compare(&answer, figure, style))
}

pub fn frontier(common: &Common, catalog: &mut Catalog, a: &SidesArgs) -> Result<(), Failure> {
    let Request { plan, systems, models, engines } = sides(catalog, a)?;
    let request = frontier::Request { plan, systems, models, engines };
    let answer = frontier::answer_on(catalog, &request, threads())?;
    let figure = drawn(a, &answer.figure_chip, answer.figure_dollar.as_ref())?;
    save(a, figure, answer.curves.iter())?;
    output::answer(common, &answer, |style| text::frontier(&answer, figure, style))
}

fn sides(catalog: &mut Catalog, a: &SidesArgs) -> Result<Request, Failure> {
    let models = a.models.iter().map(|m| inputs::model(catalog, m)).collect::<Result<Vec<_>, _>>()?;
    Ok(Request { plan: request(catalog, &a.plan)?, systems: Vec::new(), models, engines: a.engines.clone() })
}

fn drawn<'a>(a: &SidesArgs, chip: &'a Figure, dollar: Option<&'a Figure>) -> Result<&'a Figure, Failure> {
    match a.figure {
        SidesFigure::Chip => Ok(chip),
        SidesFigure::Dollar => {
            dollar.ok_or_else(|| Failure::new("no dollars to draw: a price is not known").hint("give one with --price"))
        }
    }
}

fn save<'a>(a: &SidesArgs, figure: &Figure, curves: impl Iterator<Item = &'a Curve>) -> Result<(), Failure> {
    if let Some(path) = &a.plan.svg {
        output::save(path, svg::paint(&scene(figure)).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene(figure)))?;
    }
    if let Some(path) = &a.plan.csv {
        output::save(path, csv::frontiers(curves).as_bytes())?;
    }
    Ok(())
}
