//! Which cuts of a training step exist.
//!
//! | choice | must | because |
//! |--------|------|---------|
//! | tp, ep, etp | what [`crate::layout::check_shape`] asks | heads and experts are not cut |
//! | cp | divide half the sequence | halves are paired so that a causal mask loads every rank alike |
//! | p, v | leave every chunk a layer: p v at most the layers, or two more where embedding and head count as one each | - |
//! | ends | with lighter ends: at least three stages, fewer than layers, that divide the layers and two more | embedding and head take a layer's place |
//! | b, d | b d divides the batch | every copy runs the same micro-batches |
//! | e, etp | their product divides the chips of a stage | experts live there |
//! | schedule | what [`crate::pipeline::Plan::check`] asks of micro-batches, stages and chunks | - |
//!
//! The question and the search obey the same rules, so that whatever can be asked for can be found.

use super::{Cut, Job, Spread};
use crate::layout::{Illegal, check_shape};
use crate::pipeline::Schedule;
use rackmath_spec::layout::Degrees;

fn no(degree: &'static str, given: u64, expected: impl Into<String>) -> Result<(), Illegal> {
    Err(Illegal { degree, given, expected: expected.into() })
}

/// Whether a cut exists, on however many chips; micro-batches of a step.
pub fn check(job: &Job<'_>, cut: &Cut) -> Result<u64, Illegal> {
    check_shape(job.shape, &Degrees { pp: 1, virtual_stages: 1, ..cut.degrees })?;
    if cut.cp > 1 && !job.sequence.is_multiple_of(2 * cut.cp) {
        no("cp", cut.cp, format!("a divisor of half the {} tokens of a sequence", job.sequence))?;
    }
    let (stage, each) = (cut.tp * cut.cp * cut.dp, cut.ep * cut.etp);
    if !stage.is_multiple_of(each) {
        no("ep x etp", each, format!("a divisor of the {stage} chips of a stage"))?;
    }
    dealt(cut, job.shape.n_layers())?;
    let Some(m) = cut.micro_batches(job.global_batch) else {
        let each = cut.dp * cut.micro_batch;
        let nearest = (job.global_batch / each).max(1) * each;
        let copies = format!("{} copies times {} sequences", cut.dp, cut.micro_batch);
        return Err(Illegal {
            degree: "global_batch",
            given: job.global_batch,
            expected: format!("a multiple of {copies}, such as {nearest}"),
        });
    };
    ordered(cut, m)?;
    Ok(m)
}

/// Whether every stage and every chunk gets a layer.
pub fn dealt(cut: &Cut, layers: u64) -> Result<(), Illegal> {
    let counted = cut.spread.counted(layers);
    let lighter = cut.spread == Spread::EndsLighter;
    if lighter && (cut.pp <= 2 || cut.pp >= layers || !counted.is_multiple_of(cut.pp)) {
        let most = format!(
            "from 3 to {} stages that divide {counted}, the {layers} layers and two more",
            layers.saturating_sub(1)
        );
        no("pp", cut.pp, format!("{most}, for lighter ends"))?;
    }
    let chunks = cut.pp * if cut.pp > 1 { cut.chunks() } else { 1 };
    if chunks > counted {
        no("pp x virtual_stages", chunks, format!("at most the {layers} layers"))?;
    }
    Ok(())
}

/// Whether passes of so many micro-batches can be run in that order.
pub fn ordered(cut: &Cut, micro_batches: u64) -> Result<(), Illegal> {
    let (p, m, v) = (cut.pp, micro_batches, cut.virtual_stages);
    if p <= 1 {
        return if v > 1 { no("virtual_stages", v, "1: chunks need pipeline stages, {pp}") } else { Ok(()) };
    }
    if let Some(fixed) = cut.schedule.fixed_chunks().filter(|fixed| v > 1 && v != *fixed as u64) {
        no("virtual_stages", v, format!("{fixed} with {}, or interleaved", cut.schedule))?;
    }
    match cut.schedule {
        Schedule::Interleaved if v > 1 && !m.is_multiple_of(p) => {
            let expected = format!(
                "a multiple of the {p} stages, which chunks that take turns need: another batch, {{dp}} or {{micro_batch}}"
            );
            no("micro-batches", m, expected)
        }
        Schedule::DualPipe if !p.is_multiple_of(2) => no("pp", p, "an even number with dualpipe"),
        Schedule::DualPipe if !m.is_multiple_of(2) || m < 2 * p => {
            no("micro-batches", m, format!("an even number, at least twice the {p} stages, with dualpipe"))
        }
        Schedule::DualPipeV if m < 2 * p => {
            no("micro-batches", m, format!("at least twice the {p} stages with dualpipev"))
        }
        _ => Ok(()),
    }
}
