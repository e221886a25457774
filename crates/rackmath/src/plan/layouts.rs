//! Every layout a model, a machine and an engine allow.
//!
//! Degrees are powers of two, as deployed. A dense model has no attention groups of its own: data parallel copies of it are
//! replicas. Experts fill their stage: cut into ep groups of experts and each expert into what is left.

use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::layout::Degrees;
use rackmath_spec::{Layout, Model, System};
use rackmath_theory::layout::{check, domain};

/// Deepest pipeline tried: serving gains nothing from more, and pays with latency.
const DEEPEST: u64 = 8;

fn powers(most: u64) -> impl Iterator<Item = u64> {
    (0..63).map(|k| 1 << k).take_while(move |n| *n <= most)
}

/// Layouts of one instance on at most `chips` chips, that the engine's command line can say.
pub(super) fn layouts(model: &Model, system: &System, tool: Option<Tool>, chips: u64) -> Vec<Layout> {
    let moe = model.shape().is_some_and(|s| s.moe().is_some());
    let mut all = Vec::new();
    for pp in powers(DEEPEST.min(chips)) {
        for tp in powers(domain(system).min(chips / pp)) {
            let groups = if moe { chips / pp / tp } else { 1 };
            for dp in powers(groups) {
                let stage = tp * dp;
                for ep in powers(if moe { stage } else { 1 }) {
                    let degrees = Degrees { tp, pp, dp, ep, etp: stage / ep, ..Degrees::default() };
                    let Ok(layout) = Layout::new(degrees) else { continue };
                    let said = tool.is_none_or(|tool| flags::print(tool, &layout).is_ok());
                    if said && check(model, system, &layout).is_ok() {
                        all.push(layout);
                    }
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath_spec::Catalog;

    fn count(model: &str, on: &str, tool: Tool, chips: u64) -> usize {
        let c = Catalog::embedded();
        layouts(&c.model(model).unwrap(), &c.system(on).unwrap(), Some(tool), chips).len()
    }

    #[test]
    fn a_dense_model_is_cut_by_tensor_and_pipeline_only() {
        // tp 1 2 4 8 times pp 1 2 4 8, all of which 32 or more chips hold but tp 8 pp 8.
        assert_eq!(count("qwen3-32b", "32xh200", Tool::Vllm, 32), 15);
        assert_eq!(count("qwen3-32b", "h200", Tool::Vllm, 1), 1);
    }

    #[test]
    fn engines_differ_in_what_they_can_say() {
        let vllm = count("deepseek-v3", "64xh200", Tool::Vllm, 64);
        let sglang = count("deepseek-v3", "64xh200", Tool::Sglang, 64);
        assert!(vllm > 30 && sglang > vllm);
    }
}
