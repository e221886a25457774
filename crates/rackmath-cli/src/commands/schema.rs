//! `rackmath schema`

use crate::args::Question;
use crate::failure::Failure;
use crate::output;
use rackmath::{
    cache, chips, cost, curve, deduce, estimate, explain, fastmode, fleet, forensics, goodput, layout, lecture,
    lifecycle, mfu, models, pipeline, plan, price, racks, reversible, scaling, station, step, systems, trace, train,
    validate,
};
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
        Question::Estimate => Both { request: schema_for!(estimate::Request), answer: schema_for!(estimate::Answer) },
        Question::EstimateSweep => {
            Both { request: schema_for!(estimate::sweep::Request), answer: schema_for!(estimate::sweep::Answer) }
        }
        Question::Validate => Both { request: schema_for!(validate::Request), answer: schema_for!(validate::Answer) },
        Question::Price => Both { request: schema_for!(price::Request), answer: schema_for!(price::Answer) },
        Question::Cost => Both { request: schema_for!(cost::Request), answer: schema_for!(cost::Answer) },
        Question::Fleet => Both { request: schema_for!(fleet::Request), answer: schema_for!(fleet::Answer) },
        Question::Cache => Both { request: schema_for!(cache::Request), answer: schema_for!(cache::Answer) },
        Question::Fastmode => Both { request: schema_for!(fastmode::Request), answer: schema_for!(fastmode::Answer) },
        Question::Scaling => Both { request: schema_for!(scaling::Request), answer: schema_for!(scaling::Answer) },
        Question::Lifecycle => {
            Both { request: schema_for!(lifecycle::Request), answer: schema_for!(lifecycle::Answer) }
        }
        Question::Goodput => Both { request: schema_for!(goodput::Request), answer: schema_for!(goodput::Answer) },
        Question::Forensics => {
            Both { request: schema_for!(forensics::Request), answer: schema_for!(forensics::Answer) }
        }
        Question::Reversible => {
            Both { request: schema_for!(reversible::Request), answer: schema_for!(reversible::Answer) }
        }
        Question::Train => Both { request: schema_for!(train::Request), answer: schema_for!(train::Answer) },
        Question::Mfu => Both { request: schema_for!(mfu::Request), answer: schema_for!(mfu::Answer) },
        Question::Deduce => Both { request: schema_for!(deduce::Request), answer: schema_for!(deduce::Answer) },
        Question::Plan => Both { request: schema_for!(plan::Request), answer: schema_for!(plan::Answer) },
        Question::Trace => Both { request: schema_for!(trace::Request), answer: schema_for!(trace::Answer) },
        Question::Lecture => Both { request: schema_for!(lecture::Request), answer: schema_for!(lecture::Answer) },
    };
    let json = serde_json::to_string_pretty(&both).map_err(|e| Failure::new(e.to_string()))?;
    output::print(&(json + "\n"))
}
