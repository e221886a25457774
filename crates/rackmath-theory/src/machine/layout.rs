//! Which layouts a model and a machine allow.
//!
//! | degree | must | because |
//! |--------|------|---------|
//! | tp | divide the query heads; divide or be a multiple of the key-value heads; fit in the scale-up domain, or fill several of them where somebody asks for it | heads are not cut; two reductions a layer cross the slow network only on request |
//! | pp | leave every stage (and virtual stage) a layer | - |
//! | ep | divide the experts and their redundant copies | ranks hold whole experts |
//! | etp | divide the width of an expert | - |
//! | dcp | divide tp; divide the copies of a cached head that tp makes (tp / key-value heads, or tp of a latent) | only copies can be cut along the tokens instead |
//! | all | not need more chips than the machine has | - |
//!
//! A latent cache (MLA) is one vector for all heads: it cannot be cut along heads, so every chip of a tensor-parallel group
//! keeps a copy. That is why such models are served with attention data parallel. Source: lecture D18, D24, D34; the
//! checks of vLLM, SGLang and Megatron. Decode context parallel is for caches of whole contexts: windows, chunks, blocks and
//! indexes pick tokens, and recurrent states have none. vLLM refuses windows, and grouped attention without copies.

use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{Ffn, Linear, Mixer, Shape, Span};
use rackmath_spec::{Layout, Model, System, Topology};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal {
    pub degree: &'static str,
    pub given: u64,
    pub expected: String,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}; expected {}", self.degree, self.given, self.expected)
    }
}

/// Chips of the innermost level of network: the scale-up domain.
pub fn domain(system: &System) -> u64 {
    system.levels.first().map_or(1, |level| level.chips.min(system.n_chips))
}

/// What is worth looking at: tensor parallelism stays in the scale-up domain.
pub fn check(model: &Model, system: &System, layout: &Layout) -> Result<(), Illegal> {
    let (tp, domain) = (layout.degrees().tp, domain(system));
    check_given(model, system, layout)?;
    if tp > domain {
        let expected = format!("at most the {domain} chips of a scale-up domain");
        return Err(Illegal { degree: "tp", given: tp, expected });
    }
    Ok(())
}

/// What can be run: a group of tensor parallelism may fill several domains that a network between hosts joins.
pub fn check_given(model: &Model, system: &System, layout: &Layout) -> Result<(), Illegal> {
    let d = layout.degrees();
    let no = |degree, given, expected: String| Err(Illegal { degree, given, expected });
    // More chips help no degree that the model itself does not allow.
    model.shape().map_or(Ok(()), |shape| check_shape(shape, &d))?;
    if layout.chips() > system.n_chips {
        let (most, n) = (system.n_chips, layout.chips());
        // Chips that are counted in the name can be counted higher.
        let counted = system.id == system.chip.id || system.id == format!("{most}x{}", system.chip.id);
        let more = if counted { format!("; ask for {n}x{}", system.chip.id) } else { String::new() };
        return no("chips", n, format!("at most the {most} of {}{more}", system.id));
    }
    let here = domain(system);
    if d.tp > here {
        // Bridged pairs of one host are no hosts.
        let joined = system.levels.get(1).is_some_and(|out| out.chips >= d.tp && out.topology != Topology::Pcie);
        if !joined {
            return no("tp", d.tp, format!("at most the {here} chips of a scale-up domain: no network joins several"));
        }
        if !d.tp.is_multiple_of(here) {
            return no("tp", d.tp, format!("at most the {here} chips of a scale-up domain, or several of them whole"));
        }
    }
    Ok(())
}

/// Whether a model can be cut so, whatever the machine.
pub fn check_shape(shape: &Shape, d: &Degrees) -> Result<(), Illegal> {
    let no = |degree, given, expected: String| Err(Illegal { degree, given, expected });
    if d.pp * d.virtual_stages > shape.n_layers() {
        return no("pp", d.pp * d.virtual_stages, format!("at most the {} layers", shape.n_layers()));
    }
    for run in &shape.runs {
        if let Some((heads, kv_heads)) = heads(&run.block.mixer) {
            if heads % d.tp != 0 {
                return no("tp", d.tp, format!("a divisor of the {heads} heads: {}", divisors(heads)));
            }
            if let Some(kv) = kv_heads.filter(|kv| !kv.is_multiple_of(d.tp) && !d.tp.is_multiple_of(*kv)) {
                return no("tp", d.tp, format!("a divisor or a multiple of the {kv} key-value heads"));
            }
        }
        if d.dcp > 1 {
            check_cut(&run.block.mixer, d)?;
        }
        match &run.block.ffn {
            Ffn::None => {}
            Ffn::Dense(mlp) if mlp.width % d.tp != 0 => {
                return no("tp", d.tp, format!("a divisor of the network width {}", mlp.width));
            }
            Ffn::Dense(_) => {}
            Ffn::Moe(moe) => {
                let all = moe.experts + d.redundant;
                if !all.is_multiple_of(d.ep) {
                    let these = divisors(all);
                    return no("ep", d.ep, format!("a divisor of the {all} experts with their copies: {these}"));
                }
                if moe.expert.width % d.etp != 0 {
                    return no("etp", d.etp, format!("a divisor of the expert width {}", moe.expert.width));
                }
            }
        }
    }
    if shape.moe().is_none() && d.ep > 1 {
        return no("ep", d.ep, "1: the model has no experts".into());
    }
    if shape.moe().is_none() && d.redundant > 0 {
        return no("redundant", d.redundant, "0: the model has no experts".into());
    }
    Ok(())
}

/// Whether the tokens of a mixer's cache can be cut over the chips that keep copies of it.
fn check_cut(mixer: &Mixer, d: &Degrees) -> Result<(), Illegal> {
    let no = |expected: String| Err(Illegal { degree: "dcp", given: d.dcp, expected });
    let copies = match mixer {
        Mixer::None => return Ok(()),
        Mixer::Attention(a) if matches!(a.span, Span::Full) => d.tp / a.kv_heads.max(1),
        Mixer::Latent(a) if a.indexer.is_none() => d.tp,
        _ => return no("1: only a cache of the whole context is cut along its tokens".into()),
    };
    if copies > 0 && copies.is_multiple_of(d.dcp) {
        return Ok(());
    }
    no(format!("a divisor of the {} copies that tp {} keeps of the cache", copies.max(1), d.tp))
}

/// Heads that tensor parallelism cuts, and key-value heads where there are any.
fn heads(mixer: &Mixer) -> Option<(u64, Option<u64>)> {
    match mixer {
        Mixer::Attention(a) => Some((a.heads, Some(a.kv_heads))),
        Mixer::Latent(a) => Some((a.heads, None)),
        Mixer::Compressed(a) => Some((a.heads, None)),
        Mixer::Linear(a) => Some((
            match *a {
                Linear::GatedDelta { k_heads, .. } => k_heads,
                Linear::Kda { heads, .. } | Linear::Mamba2 { heads, .. } | Linear::Lightning { heads, .. } => heads,
                Linear::Mamba1 { inner, .. } => inner,
            },
            None,
        )),
        Mixer::None => None,
    }
}

fn divisors(n: u64) -> String {
    let all: Vec<String> = (1..=n.min(1024)).filter(|d| n.is_multiple_of(*d)).map(|d| d.to_string()).collect();
    all.join(" ")
}

/// Layers of each stage: as even as can be, with the extra layers in the stages before the last, which also has the head.
pub fn stage_layers(layers: u64, stages: u64) -> Vec<u64> {
    let (each, extra) = (layers / stages, layers % stages);
    (0..stages).map(|stage| each + u64::from(stages > 1 && stage + 1 < stages && stage + 1 + extra >= stages)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legal(model: &str, system: &str, d: Degrees) -> Result<(), Illegal> {
        let catalog = rackmath_catalog::embedded();
        check(&catalog.model(model).unwrap(), &catalog.system(system).unwrap(), &Layout::new(d).unwrap())
    }

    #[test]
    fn what_deployments_run_and_what_they_cannot() {
        let one = Degrees::default();
        assert_eq!(legal("deepseek-v3", "gb200-nvl72", Degrees { dp: 64, ep: 64, ..one }), Ok(()));
        assert_eq!(legal("llama-3.1-70b", "hgx-h100", Degrees { tp: 8, ..one }), Ok(()));
        assert_eq!(legal("deepseek-v3", "gb200-nvl72", Degrees { dp: 72, ep: 72, ..one }).unwrap_err().degree, "ep");
        assert_eq!(legal("deepseek-v3", "gb200-nvl72", Degrees { dp: 72, ep: 72, redundant: 32, ..one }), Ok(()));
        assert_eq!(legal("llama-3.1-70b", "hgx-h100", Degrees { tp: 16, ..one }).unwrap_err().degree, "chips");
        assert_eq!(legal("qwen3-32b", "hgx-h100", Degrees { tp: 8, ep: 8, ..one }).unwrap_err().degree, "ep");
        assert_eq!(legal("llama-3.1-8b", "gb200-nvl72", Degrees { tp: 3, ..one }).unwrap_err().degree, "tp");
        assert_eq!(legal("llama-3.1-8b", "gb200-nvl72", Degrees { pp: 33, ..one }).unwrap_err().degree, "pp");
        // A latent is copied to all chips of the group; eight key-value heads over eight chips are not copied at all.
        assert_eq!(legal("deepseek-v3", "hgx-h200", Degrees { tp: 8, dcp: 8, ..one }), Ok(()));
        assert_eq!(legal("llama-3.1-70b", "hgx-h100", Degrees { tp: 8, dcp: 2, ..one }).unwrap_err().degree, "dcp");
        assert_eq!(legal("llama-3.1-70b", "gb200-nvl72", Degrees { tp: 16, dcp: 2, ..one }), Ok(()));
        assert_eq!(legal("llama-3.1-70b", "gb200-nvl72", Degrees { tp: 16, dcp: 4, ..one }).unwrap_err().degree, "dcp");
        assert_eq!(legal("gpt-oss-120b", "gb200-nvl72", Degrees { tp: 16, dcp: 2, ..one }).unwrap_err().degree, "dcp");
        // Two key-value heads over eight chips: copied four times, which is allowed.
        assert_eq!(legal("qwen3.5-397b-a17b", "hgx-h200", Degrees { tp: 8, ..one }), Ok(()));
    }

    #[test]
    fn stages_are_even_and_complete() {
        assert_eq!(stage_layers(61, 4), [15, 15, 16, 15]);
        assert_eq!(stage_layers(80, 8), [10; 8]);
        assert_eq!(stage_layers(7, 3), [2, 3, 2]);
        assert_eq!(stage_layers(5, 1), [5]);
        for (layers, stages) in [(61, 16), (32, 7), (126, 5)] {
            let all = stage_layers(layers, stages);
            assert_eq!(all.iter().sum::<u64>(), layers);
            assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1);
        }
    }
}
