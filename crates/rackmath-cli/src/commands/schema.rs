//! `rackmath schema`

use crate::args::Question;
use crate::failure::Failure;
use crate::output;
use rackmath::{chips, curve, deduce, explain, layout, lecture, models, pipeline, racks, station, step, systems};
use schemars::{Schema, schema_for};
use serde::Serialize;

/// What goes in and what comes out.
#[derive(Serialize)]
struct Both {
    request: Schema,
    answer: Schema,
}

pub fn run(question: Question) -> Result<(), Failure> {
    let both = match question {
        Question::Step => Both { request: schema_for!(step::Request), answer: schema_for!(step::Answer) },
        Question::Curve => Both { request: schema_for!(curve::Request), answer: schema_for!(curve::Answer) },
        Question::Explain => Both { request: schema_for!(explain::Request), answer: schema_for!(explain::Answer) },
        Question::Models => Both { request: schema_for!(models::Request), answer: schema_for!(models::Answer) },
        Question::Chips => Both { request: schema_for!(chips::Request), answer: schema_for!(chips::Answer) },
        Question::Systems => Both { request: schema_for!(systems::Request), answer: schema_for!(systems::Answer) },
        Question::Layout => Both { request: schema_for!(layout::Request), answer: schema_for!(layout::Answer) },
        Question::Pipeline => Both { request: schema_for!(pipeline::Request), answer: schema_for!(pipeline::Answer) },
        Question::Racks => Both { request: schema_for!(racks::Request), answer: schema_for!(racks::Answer) },
        Question::Station => Both { request: schema_for!(station::Request), answer: schema_for!(station::Answer) },
        Question::Deduce => Both { request: schema_for!(deduce::Request), answer: schema_for!(deduce::Answer) },
        Question::Lecture => Both { request: schema_for!(lecture::Request), answer: schema_for!(lecture::Answer) },
    };
    let json = serde_json::to_string_pretty(&both).map_err(|e| Failure::new(e.to_string()))?;
    output::print(&(json + "\n"))
}
