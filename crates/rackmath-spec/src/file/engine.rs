//! Reads an engine file.

use super::noun::{noun, within};
use crate::{Engine, SpecError};

pub fn engine(id: &str, text: &str) -> Result<Engine, SpecError> {
    let file = format!("engine {id}");
    let engine: Engine =
        noun(&file, id, text, &["schedule.source", "overhead.fit", "assumed.source", "spread.source"])?;
    let (s, o, a) = (&engine.schedule, &engine.overhead, &engine.assumed);
    within(
        &file,
        &[
            ("schedule.chunk_tokens", s.chunk, 1.0, 1e9),
            ("schedule.max_sequences", s.sequences, 1.0, 1e9),
            ("schedule.graph_sequences", s.graph, 0.0, 1e9),
            ("overhead.mixer_kernels", o.mixer_kernels, 0.0, 100.0),
            ("overhead.ffn_kernels", o.ffn_kernels, 0.0, 100.0),
            ("overhead.hidden_passes", o.hidden_passes, 0.0, 1e3),
            ("overhead.inner_passes", o.inner_passes, 0.0, 1e3),
            ("overhead.small_traffic_divisor", o.small_traffic_divisor, 0.01, 10.0),
            ("overhead.stretch", o.stretch, 0.5, 10.0),
            ("overhead.stretch_long", o.stretch_long, 0.5, 10.0),
            ("overhead.expert_floor", o.expert_floor, 0.0, 10.0),
            ("assumed.sampling_passes", a.sampling_passes, 0.0, 100.0),
            ("assumed.sampling_memory", a.sampling_memory, 0.01, 1.0),
            ("assumed.side_memory", a.side_memory, 0.01, 1.0),
            ("assumed.side_compute", a.side_compute, 0.01, 1.0),
            ("assumed.exchange_hidden", a.exchange_hidden, 0.0, 1.0),
            ("assumed.drafts", a.drafts, 0.0, 64.0),
            ("assumed.acceptance", a.acceptance, 0.0, 1.0),
            ("spread.tpot", engine.spread.tpot, 0.0, 5.0),
            ("spread.ttft", engine.spread.ttft, 0.0, 5.0),
            ("spread.throughput", engine.spread.throughput, 0.0, 5.0),
        ],
    )?;
    if let Some(p) = &engine.plain {
        within(
            &file,
            &[
                ("plain.compute", p.compute, 0.001, 1.0),
                ("plain.memory", p.memory, 0.001, 1.0),
                ("plain.many_dies", p.many_dies, 0.01, 1.0),
                ("plain.expand_flop", p.expand, 0.0, 1e4),
                ("plain.expand_nested_flop", p.expand_nested, 0.0, 1e4),
            ],
        )?;
    }
    Ok(engine)
}
