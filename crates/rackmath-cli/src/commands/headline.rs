//! `rackmath` alone: the lecture's central picture for a real model on a real rack.

use crate::args::Common;
use crate::failure::Failure;
use crate::output;
use rackmath::{Catalog, curve, step};
use rackmath_report::text;
use serde::Serialize;

/// Both answers, for `--json`.
#[derive(Serialize)]
struct Headline {
    step: step::Answer,
    curve: curve::Answer,
}

pub fn run(common: &Common, catalog: &Catalog) -> Result<(), Failure> {
    let step = step::answer(catalog, &step::Request::default())?;
    let curve = curve::answer(catalog, &curve::Request::default())?;
    let both = Headline { step, curve };
    output::answer(common, &both, |style| text::headline(&both.step, &both.curve, style))
}
