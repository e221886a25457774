//! `rackmath curve`

use super::setting;
use crate::args::{Common, CurveArgs, Which};
use crate::failure::Failure;
use crate::output;
use rackmath::{Catalog, curve};
use rackmath_report::{csv, png, scene, svg, text};
use rackmath_units::Tokens;

pub fn run(common: &Common, catalog: &mut Catalog, a: &CurveArgs) -> Result<(), Failure> {
    let request = curve::Request {
        setting: setting(catalog, &a.step.setting)?,
        over: a.over,
        from: a.from.map(Tokens::get),
        to: a.to.map(Tokens::get),
        points: a.points,
        batch: a.step.load.batch.map(Tokens::get),
        context: a.step.load.context.get(),
        pass: a.step.pass.get(),
    };
    let answer = curve::answer(catalog, &request)?;
    let figure = match a.figure {
        Which::Time => &answer.time,
        Which::Cost => answer.cost.as_ref().ok_or_else(|| {
            Failure::new("no price is known for this chip, so there is no cost picture").hint("give one with --price")
        })?,
    };
    let saved = a.svg.is_some() || a.png.is_some() || a.csv.is_some();
    if let Some(path) = &a.svg {
        output::save(path, svg::paint(&scene(figure)).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene(figure)))?;
    }
    if let Some(path) = &a.csv {
        output::save(path, csv::curve(&answer).as_bytes())?;
    }
    if saved && !common.json {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::curve(&answer, style))
}
