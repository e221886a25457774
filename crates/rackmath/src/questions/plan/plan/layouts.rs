//! Every layout a model, a machine and an engine allow.
//!
//! Degrees are all that the model, the machine and the engine allow, or powers of two. A dense model has no attention groups of its own: data parallel copies of
//! it are replicas. Experts fill their stage: cut into ep groups of experts and each expert into what is left. The context is
//! cut only over chips that keep copies of the same cache, by vLLM, and where asked for.

use crate::desk::check::up_to;
use crate::desk::prelude::*;
use crate::layout::DegreesRequest;
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::{Model, System};
use rackmath_theory::layout::{check, check_shape, domain};

/// Deepest pipeline tried: serving gains nothing from more, and pays with latency.
const DEEPEST: u64 = 8;

/// Which degrees are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Steps {
    /// Powers of two.
    Powers,
    /// All that the model and the machine allow.
    #[default]
    Any,
}

impl Steps {
    fn up_to(self, most: u64) -> impl Iterator<Item = u64> {
        (1..=most).filter(move |n| self == Self::Any || n.is_power_of_two())
    }
}

/// The sizes of decode context parallel to try beside 1, each once.
pub(super) fn cuts(sizes: &[u64]) -> Result<Vec<u64>, Error> {
    if let Some(bad) = sizes.iter().find(|n| !(1..=1024).contains(*n)) {
        return Err(Error::value("dcp", bad.to_string(), "1 to 1,024"));
    }
    let mut all: Vec<u64> = sizes.iter().copied().filter(|n| *n > 1).collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The degrees of a layout that are fixed, by name.
fn given(fixed: &DegreesRequest) -> impl Iterator<Item = (&'static str, u64)> {
    let all = [("tp", fixed.tp), ("pp", fixed.pp), ("dp", fixed.dp), ("ep", fixed.ep), ("etp", fixed.etp)];
    all.into_iter().filter_map(|(name, n)| Some((name, n?)))
}

fn degree(d: &Degrees, name: &str) -> u64 {
    match name {
        "tp" => d.tp,
        "pp" => d.pp,
        "dp" => d.dp,
        "ep" => d.ep,
        _ => d.etp,
    }
}

/// Degrees to fix, each at least 1; those that a plan does not search are refused.
pub(super) fn fixed(fixed: &DegreesRequest) -> Result<DegreesRequest, Error> {
    let others = [("cp", fixed.cp), ("redundant", fixed.redundant), ("dcp", fixed.dcp)];
    if let Some((name, n)) = others.into_iter().find_map(|(name, n)| Some((name, n?))) {
        return Err(Error::value(
            name,
            n,
            "tp, pp, dp, ep or etp: a plan fixes these; sizes of {dcp} to try are a list",
        ));
    }
    for (name, n) in given(fixed) {
        up_to(name, n, 100_000)?;
    }
    Ok(fixed.clone())
}

/// What is said of the fixed parts.
pub(super) fn fixed_words(fixed: &DegreesRequest, batch: Option<f64>) -> Option<Remark> {
    let degrees: Vec<String> = given(fixed).map(|(name, n)| format!("{name} {n}")).collect();
    let degrees = Some(degrees).filter(|all| !all.is_empty());
    (degrees.is_some() || batch.is_some()).then(|| says("fixed_parts").with("degrees", degrees).with("batch", batch))
}

/// What fixed degrees leave of the layouts.
pub(super) trait Fix {
    /// Powers of two, unless another number is fixed.
    fn steps(&self, steps: Steps) -> Steps;
    fn allows(&self, d: &Degrees) -> bool;
    /// Why no layout is left: the first degree that none has, or all of them together.
    fn check(&self, all: &[Degrees]) -> Result<(), Error>;
}

impl Fix for DegreesRequest {
    fn steps(&self, steps: Steps) -> Steps {
        if given(self).all(|(_, n)| n.is_power_of_two()) { steps } else { Steps::Any }
    }

    fn allows(&self, d: &Degrees) -> bool {
        given(self).all(|(name, n)| degree(d, name) == n)
    }

    fn check(&self, all: &[Degrees]) -> Result<(), Error> {
        let allowed = "that the model, the machine and the engine allow";
        for (name, n) in given(self) {
            let mut has: Vec<u64> = all.iter().map(|d| degree(d, name)).collect();
            has.sort_unstable();
            has.dedup();
            if !has.is_empty() && !has.contains(&n) {
                let has: Vec<String> = has.iter().map(u64::to_string).collect();
                return Err(Error::value(name, n, format!("one {allowed}: {}", has.join(", "))));
            }
        }
        let words: Vec<String> = given(self).map(|(name, n)| format!("{name} {n}")).collect();
        let off = |d: &&Degrees| {
            let far =
                |(name, n): (&str, u64)| (degree(d, name) as f64 / n as f64).max(n as f64 / degree(d, name) as f64);
            given(self).map(far).product::<f64>()
        };
        let Some(near) = all.iter().min_by(|a, b| off(a).total_cmp(&off(b))).filter(|_| !words.is_empty()) else {
            return Ok(());
        };
        let near: Vec<String> = given(self).map(|(name, _)| format!("{name} {}", degree(near, name))).collect();
        let expected = format!("degrees {allowed} together, the nearest {}", near.join(" "));
        Err(Error::value("fixed", words.join(" "), expected))
    }
}

/// Layouts of one instance on at most `chips` chips, that the engine's command line can say; each also with its caches cut
/// over `cuts` chips, where that is possible.
pub(super) fn layouts(
    model: &Model,
    system: &System,
    tool: Option<Tool>,
    chips: u64,
    steps: Steps,
    cuts: &[u64],
) -> Vec<Layout> {
    let moe = model.shape().is_some_and(|s| s.moe().is_some());
    // What no layout can have is seen once, not in each.
    let alone = |d: Degrees| model.shape().is_none_or(|shape| check_shape(shape, &d).is_ok());
    let one = Degrees::default();
    let tps: Vec<u64> = steps.up_to(domain(system).min(chips)).filter(|tp| alone(Degrees { tp: *tp, ..one })).collect();
    let most = if moe { chips } else { 1 };
    let eps: Vec<u64> = steps.up_to(most).filter(|ep| alone(Degrees { ep: *ep, ..one })).collect();
    let mut all = Vec::new();
    for pp in steps.up_to(DEEPEST.min(chips)) {
        for &tp in tps.iter().take_while(|tp| **tp <= chips / pp) {
            let groups = if moe { chips / pp / tp } else { 1 };
            for dp in steps.up_to(groups) {
                let stage = tp * dp;
                for &ep in eps.iter().take_while(|ep| **ep <= stage).filter(|ep| stage.is_multiple_of(**ep)) {
                    let degrees = Degrees { tp, pp, dp, ep, etp: stage / ep, ..Degrees::default() };
                    let Ok(layout) = Layout::new(degrees) else { continue };
                    // What the model allows is quicker to see than what a command line can say.
                    let legal = check(model, system, &layout).is_ok();
                    if legal && tool.is_none_or(|tool| flags::print(tool, &layout).is_ok()) {
                        all.push(layout);
                        if tool == Some(Tool::Vllm) {
                            let cut = |dcp: &u64| Layout::new(Degrees { dcp: *dcp, ..degrees }).ok();
                            all.extend(cuts.iter().filter_map(cut).filter(|l| check(model, system, l).is_ok()));
                        }
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

    fn all(model: &str, on: &str, tool: Tool, chips: u64, steps: Steps) -> Vec<Degrees> {
        let c = rackmath_catalog::embedded();
        let all = layouts(&c.model(model).unwrap(), &c.system(on).unwrap(), Some(tool), chips, steps, &[]);
        all.iter().map(Layout::degrees).collect()
    }

    fn count(model: &str, on: &str, tool: Tool, chips: u64) -> usize {
        all(model, on, tool, chips, Steps::Powers).len()
    }

    #[test]
    fn a_dense_model_is_cut_by_tensor_and_pipeline_only_and_engines_differ_in_what_they_can_say() {
        // tp 1 2 4 8 times pp 1 2 4 8, all of which 32 or more chips hold but tp 8 pp 8.
        assert_eq!(count("qwen3-32b", "32xh200", Tool::Vllm, 32), 15);
        assert_eq!(count("qwen3-32b", "h200", Tool::Vllm, 1), 1);
        let vllm = count("deepseek-v3", "64xh200", Tool::Vllm, 64);
        let sglang = count("deepseek-v3", "64xh200", Tool::Sglang, 64);
        assert!(vllm > 30 && sglang > vllm);
    }

    #[test]
    fn caches_are_cut_where_asked_for_by_vllm_alone() {
        let c = rackmath_catalog::embedded();
        let of = |model: &str, tool: Option<Tool>, cuts: &[u64]| -> Vec<Degrees> {
            let (model, system) = (c.model(model).unwrap(), c.system("hgx-h200").unwrap());
            layouts(&model, &system, tool, 8, Steps::Powers, cuts).iter().map(Layout::degrees).collect()
        };
        let sizes = cuts(&[8, 4, 1, 2, 4]).unwrap();
        assert_eq!(sizes, [2, 4, 8]);
        let plain = of("deepseek-v3", Some(Tool::Vllm), &[]);
        let all = of("deepseek-v3", Some(Tool::Vllm), &sizes);
        // One latent for all heads: every divisor of tp is possible.
        for tp in [1, 2, 4, 8] {
            let alike = all.iter().filter(|d| d.tp == tp && d.pp == 1 && d.ep == 1);
            let mut found: Vec<u64> = alike.map(|d| d.dcp).collect();
            found.dedup();
            assert!(found.iter().all(|dcp| tp % dcp == 0) && found.contains(&tp), "tp {tp}: {found:?}");
        }
        assert!(plain.iter().all(|d| d.dcp == 1));
        assert_eq!(all.iter().filter(|d| d.dcp == 1).copied().collect::<Vec<_>>(), plain);
        // Nobody else, and nothing where eight key-value heads are not copied.
        for tool in [Some(Tool::Sglang), Some(Tool::TrtLlm), None] {
            assert_eq!(of("deepseek-v3", tool, &sizes), of("deepseek-v3", tool, &[]));
        }
        assert_eq!(of("qwen3-32b", Some(Tool::Vllm), &sizes), of("qwen3-32b", Some(Tool::Vllm), &[]));
        assert!(cuts(&[0]).is_err() && cuts(&[4096]).is_err());
    }

    #[test]
    fn any_degree_is_all_powers_and_what_else_divides() {
        // 64 heads and 8 key-value heads leave tp 1 2 4 8; pipelines of 1 to 8; tp 8 on 6 chips is too large.
        let six = all("qwen3-32b", "6xh200", Tool::Vllm, 6, Steps::Any);
        let degrees: Vec<(u64, u64)> = six.iter().map(|d| (d.tp, d.pp)).collect();
        assert_eq!(degrees, [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (1, 3), (2, 3), (1, 4), (1, 5), (1, 6)]);
        // 384 experts: a third of them on each of 3, 6, 12 ... ranks.
        let kimi = all("kimi-k2", "96xh200", Tool::Sglang, 96, Steps::Any);
        assert!(kimi.iter().any(|d| d.ep == 48 && d.dp == 48) && kimi.iter().any(|d| d.ep == 96));
        for (model, on, tool) in [("deepseek-v3", "64xh200", Tool::Sglang), ("gpt-oss-120b", "24xh100", Tool::Vllm)] {
            let (few, many) = (all(model, on, tool, 64, Steps::Powers), all(model, on, tool, 64, Steps::Any));
            assert!(few.iter().all(|d| many.contains(d)) && many.len() > few.len(), "{model}");
        }
    }
}
