//! `rackmath train` and `rackmath mfu`

use crate::args::{Common, MfuArgs, TrainArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::{Catalog, mfu, train};
use rackmath_report::text;

pub fn run(common: &Common, catalog: &mut Catalog, a: &TrainArgs) -> Result<(), Failure> {
    let request = train::Request {
        model: inputs::model(catalog, &a.model)?,
        on: inputs::machine(catalog, &a.on)?,
        chips: a.chips,
        stack: a.stack.clone(),
        format: a.format.clone(),
        sequence: a.sequence.get() as u64,
        global_batch: a.batch,
        tp: a.tp,
        cp: a.cp,
        pp: a.pp,
        virtual_stages: a.virtual_stages,
        ep: a.ep,
        etp: a.etp,
        micro_batch: a.micro_batch,
        schedule: a.schedule.clone(),
        sharding: a.sharding.clone(),
        recompute: a.recompute.clone(),
        offload: a.offload.clone(),
        host_gb_per_s: a.host_bandwidth.map(|rate| rate.get() / 1e9),
        loss: a.loss,
        law: a.law.clone(),
        chip_mtbf_hours: a.chip_mtbf.map(|t| t.get() / 3600.0),
        stall_s: a.stall.get(),
        restart_s: a.restart.get(),
        wide: a.wide,
        tokens: a.tokens.map(rackmath_units::Tokens::get),
        price_usd_per_chip_hour: a.price.map(rackmath_units::DollarRate::as_per_hour),
        search: a.search,
        keep: a.keep,
    };
    let answer = train::answer(catalog, &request)?;
    let wanted = a.save.svg.is_some() || a.save.png.is_some() || a.save.csv.is_some();
    match &answer.figure {
        Some(figure) if super::lifecycle::saved(common, &a.save, figure)? => return Ok(()),
        None if wanted => {
            return Err(Failure::new("one stage makes no picture")
                .hint("give more with --pp, or --search for time against memory"));
        }
        _ => {}
    }
    output::answer(common, &answer, |style| text::train(&answer, style))
}

pub fn mfu(common: &Common, catalog: &mut Catalog, a: &MfuArgs) -> Result<(), Failure> {
    let request = mfu::Request {
        model: inputs::model(catalog, &a.model)?,
        on: inputs::machine(catalog, &a.on)?,
        format: a.format.clone(),
        sequence: a.sequence.get() as u64,
        tokens_per_s_per_chip: a.tokens_per_s,
        tflop_per_s_per_chip: a.tflops,
        mfu: a.mfu.map(rackmath_units::Fraction::get),
        convention: a.convention.clone(),
        recompute: a.recompute.clone(),
    };
    let answer = mfu::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::mfu(&answer, style))
}
