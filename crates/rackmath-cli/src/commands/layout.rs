//! `rackmath memory`, `layout`, `traffic` and `racks`: one placement, three views of it, and a comparison of domains.

use super::setting;
use crate::args::{Common, LayoutArgs, RacksArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::layout::{self, Answer};
use rackmath::{Catalog, racks};
use rackmath_report::{picture, png, svg, text};
use rackmath_units::Tokens;
use std::path::Path;

/// Which part of the placement to show.
#[derive(Clone, Copy)]
pub enum View {
    Memory,
    Layout,
    Traffic,
}

pub fn run(common: &Common, catalog: &mut Catalog, a: &LayoutArgs, view: View) -> Result<(), Failure> {
    let (routing, histogram) = routing(&a.routing)?;
    let request = layout::Request {
        setting: setting(catalog, &a.setting)?,
        degrees: a.degrees.request(),
        flags: a.flags.clone(),
        tool: Some(a.tool.clone()),
        batch: a.batch.map(Tokens::get),
        context: a.context.get(),
        max_num_batched_tokens: a.max_num_batched_tokens.get(),
        memory_utilisation: a.gpu_memory_utilization.get(),
        routing,
        histogram,
    };
    let answer = layout::answer(catalog, &request)?;
    if a.svg.is_some() || a.png.is_some() {
        save(a, &answer, view)?;
        if !common.json {
            return Ok(());
        }
    }
    output::answer(common, &answer, |style| match view {
        View::Memory => text::memory_view(&answer, style),
        View::Layout => text::layout_view(&answer, style),
        View::Traffic => text::traffic_view(&answer, style),
    })
}

fn save(a: &LayoutArgs, answer: &Answer, view: View) -> Result<(), Failure> {
    let scene = match view {
        View::Memory => picture::memory_bars(answer),
        View::Layout | View::Traffic => picture::rack(answer),
    };
    if let Some(path) = &a.svg {
        output::save(path, svg::paint(&scene).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene))?;
    }
    Ok(())
}

/// A word, or a file with one number per expert.
fn routing(word: &str) -> Result<(String, Option<Vec<f64>>), Failure> {
    let path = Path::new(word);
    if !path.is_file() {
        return Ok((word.to_owned(), None));
    }
    let text = inputs::read(path)?;
    let numbers = text.split(|c: char| c.is_whitespace() || c == ',' || c == '[' || c == ']').filter(|w| !w.is_empty());
    let counts = numbers
        .map(|w| {
            w.parse::<f64>().map_err(|_| {
                Failure::new(format!("{}: \"{w}\" is not a number", path.display()))
                    .hint("expected one count per expert")
            })
        })
        .collect::<Result<Vec<f64>, Failure>>()?;
    Ok(("uniform".into(), Some(counts)))
}

pub fn racks(common: &Common, catalog: &mut Catalog, a: &RacksArgs) -> Result<(), Failure> {
    let mut request = racks::Request {
        model: inputs::model(catalog, &a.model)?,
        weights: a.quantization.clone(),
        ..racks::Request::default()
    };
    if !a.systems.is_empty() {
        request.systems = a.systems.iter().map(|s| inputs::machine(catalog, s)).collect::<Result<_, _>>()?;
    }
    let answer = racks::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::racks(&answer, style))
}
