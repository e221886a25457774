//! How a model is cut over chips: tensor, pipeline, data, context and expert parallel degrees.
//!
//! One pipeline stage has `tp x cp x dp` chips. Attention is cut into `tp` shards, the context into `cp`, and `dp` groups
//! work on different sequences. The same chips hold the experts, cut into `ep` groups of experts and each expert into
//! `etp` shards; `tp cp dp / (ep etp)` copies of the experts exist. Where a tensor-parallel group keeps copies of its cache,
//! `dcp` of its chips may each keep a part of every sequence instead: decode context parallel, which takes no chips.
//!
//! | name | here | vLLM | SGLang | TensorRT-LLM | Megatron |
//! |------|------|------|--------|--------------|----------|
//! | tensor | tp | tp | tp / dp with attention-DP | tp, or 1 with attention-DP | tensor-model-parallel |
//! | data | dp | dp | dp with attention-DP | tp with attention-DP | world / (tp cp pp) |
//! | expert | ep, etp | tp dp with expert parallel | ep, tp / ep | ep, tp / ep | expert-model-, expert-tensor-parallel |

use std::fmt;

/// Degrees of a layout, consistent among themselves. Whether a model and a machine allow them is `theory::layout`'s question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout(Degrees);

/// Degrees before they are checked; everything is 1 or off unless set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Degrees {
    /// Tensor parallel: shards of attention and dense networks.
    pub tp: u64,
    pub pp: u64,
    /// Data parallel: groups with their own sequences.
    pub dp: u64,
    /// Context parallel: shards of each sequence.
    pub cp: u64,
    /// Expert parallel: groups of experts.
    pub ep: u64,
    /// Shards of each expert; what is left of the stage's chips, spread as copies, when absent.
    pub etp: u64,
    /// Further copies of experts per layer, to spread load.
    pub redundant: u64,
    /// Chunks of layers on each pipeline rank.
    pub virtual_stages: u64,
    /// Whether norms and dropout are cut along the sequence inside a tensor-parallel group.
    pub sequence_parallel: bool,
    /// Decode context parallel: chips of a tensor-parallel group over which the cache of a sequence is cut along its tokens.
    pub dcp: u64,
}

impl Default for Degrees {
    fn default() -> Self {
        Self {
            tp: 1,
            pp: 1,
            dp: 1,
            cp: 1,
            ep: 1,
            etp: 1,
            redundant: 0,
            virtual_stages: 1,
            sequence_parallel: false,
            dcp: 1,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistent(pub String);

impl Layout {
    /// Checks that the experts' chips are the stage's chips.
    pub fn new(d: Degrees) -> Result<Self, Inconsistent> {
        let Degrees { tp, pp, dp, cp, ep, etp, virtual_stages, dcp, .. } = d;
        let degrees = [("tp", tp), ("pp", pp), ("dp", dp), ("cp", cp), ("ep", ep), ("etp", etp)];
        for (name, degree) in degrees.into_iter().chain([("virtual stages", virtual_stages), ("dcp", dcp)]) {
            if !(1..=100_000).contains(&degree) {
                return Err(Inconsistent(format!("{name} = {degree}; expected 1 to 100,000")));
            }
        }
        let (stage, experts) = (tp.saturating_mul(cp).saturating_mul(dp), ep * etp);
        if stage.saturating_mul(pp) > 10_000_000 {
            return Err(Inconsistent(format!("{} chips; expected at most 10,000,000", stage.saturating_mul(pp))));
        }
        if !stage.is_multiple_of(experts) {
            let expected = format!("a divisor of the {stage} chips of a stage (tp {tp} x cp {cp} x dp {dp})");
            return Err(Inconsistent(format!("ep {ep} x etp {etp} = {experts}; expected {expected}")));
        }
        if !tp.is_multiple_of(dcp) {
            return Err(Inconsistent(format!("dcp {dcp}; expected a divisor of tp {tp}")));
        }
        Ok(Self(d))
    }

    pub fn single() -> Self {
        Self::new(Degrees::default()).expect("one chip is consistent")
    }

    pub fn degrees(&self) -> Degrees {
        self.0
    }

    pub fn stage_chips(&self) -> u64 {
        self.0.tp * self.0.cp * self.0.dp
    }

    pub fn chips(&self) -> u64 {
        self.stage_chips() * self.0.pp
    }

    pub fn expert_copies(&self) -> u64 {
        self.stage_chips() / (self.0.ep * self.0.etp)
    }
}

impl fmt::Display for Layout {
    /// Only what is not 1: "tp8", "dp32 ep32", "tp4 pp2".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("tp", self.0.tp, 1),
            ("pp", self.0.pp, 1),
            ("dp", self.0.dp, 1),
            ("cp", self.0.cp, 1),
            ("ep", self.0.ep, 1),
            ("etp", self.0.etp, 1),
            ("redundant", self.0.redundant, 0),
            ("vpp", self.0.virtual_stages, 1),
            ("dcp", self.0.dcp, 1),
        ];
        let mut words: Vec<String> =
            parts.iter().filter(|(_, n, usual)| n != usual).map(|(name, n, _)| format!("{name}{n}")).collect();
        if self.0.sequence_parallel {
            words.push("sp".into());
        }
        f.pad(&if words.is_empty() { "one chip".to_owned() } else { words.join(" ") })
    }
}
