//! `rackmath pipeline`

use crate::args::{Common, PipelineArgs};
use crate::failure::Failure;
use crate::output;
use rackmath::pipeline;
use rackmath_report::{picture, png, svg, text};

pub fn run(common: &Common, a: &PipelineArgs) -> Result<(), Failure> {
    let request = pipeline::Request {
        schedule: a.schedule.clone(),
        stages: a.stages,
        micro_batches: a.micro_batches,
        virtual_stages: a.virtual_stages,
        forward_s: a.forward.get(),
        input_grad_s: a.input_grad.get(),
        weight_grad_s: a.weight_grad.get(),
        hop_s: a.hop.get(),
        stage_factors: a.stage_factors.clone(),
        activation_bytes: a.activation.get(),
        hidden: a.hidden.get(),
    };
    let answer = pipeline::answer(&request)?;
    if a.svg.is_some() || a.png.is_some() {
        let scene = picture::pipeline(&answer);
        if let Some(path) = &a.svg {
            output::save(path, svg::paint(&scene).as_bytes())?;
        }
        if let Some(path) = &a.png {
            output::save(path, &png::paint(&scene))?;
        }
        if !common.json {
            return Ok(());
        }
    }
    output::answer(common, &answer, |style| text::pipeline(&answer, style))
}
