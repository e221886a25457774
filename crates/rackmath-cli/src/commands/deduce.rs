//! `rackmath deduce`

use crate::args::{Common, DeduceArgs, DeduceFigure};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::{Catalog, deduce};
use rackmath_report::{png, scene, svg, text};
use rackmath_spec::Date;
use rackmath_spec::deduce::PriceSheet;
use rackmath_spec::file::sheet;
use rackmath_units::Tokens;
use std::path::Path;

pub fn run(common: &Common, catalog: &mut Catalog, a: &DeduceArgs) -> Result<(), Failure> {
    let request = request(catalog, a)?;
    let answer = deduce::answer(catalog, &request)?;
    let figure = if a.figure == DeduceFigure::Ridge { &answer.ridge_figure } else { &answer.figure };
    if let Some(path) = &a.svg {
        output::save(path, svg::paint(&scene(figure)).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene(figure)))?;
    }
    if (a.svg.is_some() || a.png.is_some()) && !common.json {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::deduce(&answer, style))
}

/// The sheet named: of the catalogue, a file of the price engine's kind (with lists), or one of plain numbers.
fn read(catalog: &mut Catalog, word: &str, as_of: Option<&str>, today: Option<Date>) -> Result<PriceSheet, Failure> {
    let path = Path::new(word);
    let text = if inputs::looks_like_a_path(word) { Some(inputs::read(path)?) } else { None };
    match text {
        Some(text) if !text.contains("[[list]]") => Ok(sheet::price_sheet(word, &text, today)?),
        _ => {
            let name = inputs::price(catalog, word)?;
            let day = as_of.map(str::parse::<Date>).transpose().map_err(|e| Failure::new(e.to_string()))?;
            Ok(deduce::listed(catalog, &name, day)?)
        }
    }
}

fn request(catalog: &mut Catalog, a: &DeduceArgs) -> Result<deduce::Request, Failure> {
    let today = inputs::today();
    if let Some(date) = &a.as_of {
        sheet::dated("command line", date, today)?;
    }
    let file = match &a.sheet {
        Some(word) => read(catalog, word, a.as_of.as_deref(), today)?,
        None => PriceSheet::default(),
    };
    let price = |flag: &str, given: &Option<String>, other: Option<f64>| match given {
        Some(text) => sheet::price("command line", flag, text).map(Some),
        None => Ok(other),
    };
    let storage = match &a.storage {
        Some(text) => Some(sheet::storage("command line", "--storage", text)?),
        None => file.storage,
    };
    Ok(deduce::Request {
        model: file.model,
        vendor: a.vendor.clone().or(file.vendor),
        first_party: a.first_party.then_some(true),
        input_usd_per_mtok: price("--input", &a.input, file.input)?,
        output_usd_per_mtok: price("--output", &a.output, file.output)?,
        cached_usd_per_mtok: price("--cached", &a.cached, file.cached)?,
        write_5m_usd_per_mtok: price("--write-5m", &a.write_5m, file.write_5m)?,
        write_1h_usd_per_mtok: price("--write-1h", &a.write_1h, file.write_1h)?,
        storage_usd_per_mtok_hour: storage,
        long_above_tokens: a.long_above.map(Tokens::get).or(file.long_above),
        long_input_usd_per_mtok: price("--long-input", &a.long_input, file.long_input)?,
        long_output_usd_per_mtok: price("--long-output", &a.long_output, file.long_output)?,
        fast_price_multiple: a.fast_price.or(file.fast_price),
        fast_speed_multiple: a.fast_speed.or(file.fast_speed),
        tokens_per_s: a.tokens_per_s.or(file.tokens_per_s),
        hosts: a.hosts.or(file.hosts).unwrap_or(1),
        blind: a.blind.clone(),
        log2_points: a.points,
        seed: a.seed,
    })
}
