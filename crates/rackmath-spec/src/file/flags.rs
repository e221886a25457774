//! Layouts as the command lines of vLLM, SGLang, TensorRT-LLM and Megatron, read and printed back.
//!
//! Each tool names the same cut differently, and each can only say some layouts; what it cannot say is refused with the
//! reason. Printing a layout and reading it back gives the same layout.

use crate::SpecError;
use crate::error::one_of;
use crate::layout::{Degrees, Layout};
use crate::line::words::split;
use std::collections::BTreeMap;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Tool {
    Vllm,
    Sglang,
    TrtLlm,
    Megatron,
}

impl FromStr for Tool {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim().to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "tensorrtllm" | "trt" => Ok(Self::TrtLlm),
            "megatronlm" | "nemo" => Ok(Self::Megatron),
            word => one_of("tool", word),
        }
    }
}

/// What a flag sets; the last three are switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
    Tp,
    Pp,
    Dp,
    Cp,
    Ep,
    Etp,
    Dcp,
    Redundant,
    Virtual,
    World,
    Nodes,
    PerNode,
    ExpertParallel,
    AttentionDp,
    SequenceParallel,
}

use Meaning::{
    AttentionDp, Cp, Dcp, Dp, Ep, Etp, ExpertParallel, Nodes, PerNode, Pp, Redundant, SequenceParallel, Tp, Virtual,
    World,
};
use strum::{Display, IntoStaticStr, VariantArray};

/// The flags of a tool that bear on its layout, without leading dashes and with `-` for `_`, in the order they are printed;
/// names of the same together, the printed one first.
fn flags(tool: Tool) -> &'static [(Meaning, &'static str)] {
    match tool {
        Tool::Vllm => &[
            (Tp, "tensor-parallel-size tp"),
            (Pp, "pipeline-parallel-size pp"),
            (Dp, "data-parallel-size dp"),
            (Redundant, "num-redundant-experts"),
            (Dcp, "decode-context-parallel-size dcp"),
            (ExpertParallel, "enable-expert-parallel ep"),
        ],
        Tool::Sglang => &[
            (Tp, "tp-size tensor-parallel-size tp"),
            (Pp, "pp-size pipeline-parallel-size pp"),
            (Dp, "dp-size data-parallel-size dp"),
            (Ep, "ep-size expert-parallel-size ep"),
            (Redundant, "ep-num-redundant-experts"),
            (AttentionDp, "enable-dp-attention"),
        ],
        Tool::TrtLlm => &[
            (Tp, "tp-size tp tensor-parallel-size"),
            (Pp, "pp-size pp pipeline-parallel-size"),
            (Cp, "cp-size context-parallel-size"),
            (Ep, "ep-size ep moe-expert-parallel-size"),
            (AttentionDp, "enable-attention-dp"),
        ],
        Tool::Megatron => &[
            (Tp, "tensor-model-parallel-size"),
            (Pp, "pipeline-model-parallel-size"),
            (Cp, "context-parallel-size"),
            (Ep, "expert-model-parallel-size"),
            (Etp, "expert-tensor-parallel-size"),
            (Virtual, "num-virtual-stages-per-pipeline-rank"),
            (World, "world-size"),
            (Nodes, "nnodes"),
            (PerNode, "nproc-per-node"),
            (SequenceParallel, "sequence-parallel"),
        ],
    }
}

impl Meaning {
    pub(crate) fn is_switch(self) -> bool {
        self >= ExpertParallel
    }
}

/// What a flag of a tool sets, by its name without leading dashes and with `-` for `_`.
pub(crate) fn meaning(tool: Tool, name: &str) -> Option<Meaning> {
    let named = |(_, names): &&(Meaning, &str)| names.split(' ').any(|own| own == name);
    flags(tool).iter().find(named).map(|(meaning, _)| *meaning)
}

/// The flags a command line has, with their numbers; a switch is 1 or 0.
type Said = BTreeMap<Meaning, u64>;

/// Reads a layout from a tool's command line; flags that do not bear on the layout are passed over.
pub fn read(tool: Tool, line: &str) -> Result<Layout, SpecError> {
    cut(tool, &scan(tool, line)?)
}

/// The layout that flags of a tool make.
pub(crate) fn cut(tool: Tool, said: &Said) -> Result<Layout, SpecError> {
    let or = |meaning, usual| said.get(&meaning).copied().unwrap_or(usual);
    let (tp, pp, dp, cp, ep) = (or(Tp, 1), or(Pp, 1), or(Dp, 1), or(Cp, 1), or(Ep, 1));
    let (expert_parallel, attention_dp) = (or(ExpertParallel, 0) == 1, or(AttentionDp, 0) == 1);
    let one = Degrees {
        redundant: or(Redundant, 0),
        virtual_stages: or(Virtual, 1),
        sequence_parallel: or(SequenceParallel, 0) == 1,
        pp,
        ..Degrees::default()
    };
    let degrees = match tool {
        Tool::Vllm => {
            let all = tp.saturating_mul(dp);
            let (ep, etp) = if expert_parallel { (all, 1) } else { (1, all) };
            Degrees { tp, dp, ep, etp, dcp: or(Dcp, 1), ..one }
        }
        Tool::Sglang => {
            if attention_dp && (dp == 0 || !tp.is_multiple_of(dp)) {
                let why = "attention data parallel splits the tensor-parallel group";
                return Err(refuse(tool, format!("--dp-size {dp} does not divide --tp-size {tp}"), why));
            }
            let etp = divide(tool, "tp-size", tp, "ep-size", ep)?;
            Degrees { tp: if attention_dp { tp / dp } else { tp }, dp, ep, etp, ..one }
        }
        Tool::TrtLlm => {
            let etp = divide(tool, "tp_size x cp_size", tp.saturating_mul(cp), "ep_size", ep)?;
            let (tp, dp) = if attention_dp { (1, tp) } else { (tp, 1) };
            Degrees { tp, dp, cp, ep, etp, ..one }
        }
        Tool::Megatron => {
            let nodes = said.get(&PerNode).map(|n| n.saturating_mul(or(Nodes, 1)));
            let world = said.get(&World).copied().or(nodes).ok_or_else(|| {
                let give = "put WORLD_SIZE=64 in front, or --nnodes and --nproc-per-node";
                refuse(tool, "the number of chips is not stated".into(), give)
            })?;
            let model = tp.saturating_mul(pp).saturating_mul(cp);
            let dp = divide(tool, "WORLD_SIZE", world, "tensor x pipeline x context", model)?;
            // Megatron cuts experts like attention unless told otherwise.
            Degrees { tp, dp, cp, ep, etp: or(Etp, tp), ..one }
        }
    };
    Layout::new(degrees).map_err(|e| refuse(tool, e.0, "check the degrees against each other"))
}

/// Prints a layout as a tool's flags, or says why that tool cannot have it.
pub fn print(tool: Tool, layout: &Layout) -> Result<String, SpecError> {
    let d = layout.degrees();
    let cannot = |what: &str, why: &str| Err(refuse(tool, format!("{layout} has {what}"), why));
    let (serving, all, experts) = (tool != Tool::Megatron, d.tp * d.dp, d.ep * d.etp);
    let cut = format!("ep {} and etp {}", d.ep, d.etp);
    // What only some tools have flags for.
    if serving && d.virtual_stages != 1 {
        return cannot("virtual stages", "serving has no interleaved schedule; use --tool megatron");
    }
    if serving && d.sequence_parallel {
        return cannot("sequence parallel", "this tool has no flag for it; use --tool megatron");
    }
    if matches!(tool, Tool::Vllm | Tool::Sglang) && d.cp != 1 {
        return cannot("context parallel", "this tool has no flag for it here");
    }
    if tool != Tool::Vllm && d.dcp != 1 {
        return cannot("decode context parallel", "only vLLM's is modelled; use --tool vllm");
    }
    if matches!(tool, Tool::TrtLlm | Tool::Megatron) && d.redundant > 0 {
        return cannot("redundant experts", "this tool sets them in a load-balancer file, not by a flag");
    }
    let (tp, dp, switch) = match tool {
        Tool::Vllm => {
            let whole = d.etp == 1 && d.ep == all && d.ep != 1;
            if !(whole || d.ep == 1 && d.etp == all) {
                return cannot(&cut, "vLLM spreads experts over all tp x dp chips, whole or all cut");
            }
            (d.tp, d.dp, whole)
        }
        Tool::Sglang => {
            // With attention data parallel the tensor-parallel size counts all chips of a stage; else each copy by itself.
            let attention_dp = d.dp > 1 && experts == all;
            let size = if attention_dp { all } else { d.tp };
            if experts != size {
                let why =
                    "SGLang cuts experts into tp / ep shards, over tp or, with attention data parallel, over all chips";
                return cannot(&cut, why);
            }
            (size, d.dp, attention_dp)
        }
        Tool::TrtLlm if d.dp > 1 && d.tp > 1 => {
            return cannot("both tp and dp", "TensorRT-LLM's attention is either tensor or data parallel");
        }
        Tool::TrtLlm if experts != layout.stage_chips() => {
            return cannot(&cut, "TensorRT-LLM cuts experts into tp / ep shards");
        }
        Tool::TrtLlm => (all, 1, d.dp > 1),
        Tool::Megatron => (d.tp, d.dp, d.sequence_parallel),
    };
    let mut words: Vec<String> = (!serving).then(|| format!("WORLD_SIZE={}", layout.chips())).into_iter().collect();
    for (meaning, names) in flags(tool) {
        // Its number, and the number it has when it is not given; a switch is on where it is not 0.
        let (n, usual) = match meaning {
            Tp => (tp, 1),
            Pp => (d.pp, 1),
            Dp => (dp, 1),
            Cp => (d.cp, 1),
            Ep => (d.ep, 1),
            Etp => (d.etp, 1),
            Dcp => (d.dcp, 1),
            Redundant => (d.redundant, 0),
            Virtual => (d.virtual_stages, 1),
            World | Nodes | PerNode => continue,
            ExpertParallel | AttentionDp | SequenceParallel => (u64::from(switch), 0),
        };
        // Megatron's own defaults depend on each other, so every degree is written out.
        if n != usual || !serving && *meaning <= Etp {
            let name = names.split(' ').next().unwrap_or_default();
            let name = if tool == Tool::TrtLlm { name.replace('-', "_") } else { name.to_owned() };
            words.push(if *meaning >= ExpertParallel { format!("--{name}") } else { format!("--{name} {n}") });
        }
    }
    Ok(words.join(" "))
}

fn refuse(tool: Tool, given: String, expected: &str) -> SpecError {
    SpecError::file(format!("{tool} command line"), given).hint(expected)
}

fn divide(tool: Tool, what: &str, n: u64, by: &str, d: u64) -> Result<u64, SpecError> {
    if d == 0 || !n.is_multiple_of(d) {
        let problem = format!("{by} {d} does not divide {what} {n}");
        return Err(refuse(tool, problem, "choose degrees that divide each other"));
    }
    Ok(n / d)
}

/// Collects the flags that matter. `--flag value`, `--flag=value`, `-tp 8`, `_` for `-`, and `WORLD_SIZE=64` are understood.
fn scan(tool: Tool, line: &str) -> Result<Said, SpecError> {
    let mut said = Said::new();
    let all = split(line)?;
    let mut words = all.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        if let Some(world) = word.strip_prefix("WORLD_SIZE=") {
            said.insert(World, number(tool, "WORLD_SIZE", world)?);
            continue;
        }
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        let (flag, attached) = flag.split_once('=').map_or((flag, None), |(f, v)| (f, Some(v)));
        let flag = flag.replace('_', "-");
        let Some(meaning) = meaning(tool, &flag) else {
            misspelt(tool, &flag)?;
            continue;
        };
        let n = if meaning.is_switch() {
            u64::from(attached.is_none_or(|v| !matches!(v, "false" | "False" | "0")))
        } else {
            let missing = || refuse(tool, format!("--{flag} has no value"), "give a positive whole number");
            number(tool, &flag, attached.or_else(|| words.next()).ok_or_else(missing)?)?
        };
        said.insert(meaning, n);
    }
    Ok(said)
}

/// A flag one slip away from one that matters is a slip, not a flag of something else.
fn misspelt(tool: Tool, flag: &str) -> Result<(), SpecError> {
    let close = |name: &&str| name.len() > 6 && strsim::damerau_levenshtein(flag, name) <= 2;
    match flags(tool).iter().flat_map(|(_, names)| names.split(' ')).find(close) {
        None => Ok(()),
        Some(name) => Err(refuse(tool, format!("--{flag} is not a flag"), &format!("did you mean --{name}?"))),
    }
}

fn number(tool: Tool, flag: &str, text: &str) -> Result<u64, SpecError> {
    let bad = || refuse(tool, format!("--{flag} {}", crate::error::shorten(text)), "expected a positive whole number");
    text.parse::<u64>().ok().filter(|n| *n <= 10_000_000).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(d: Degrees) -> Layout {
        Layout::new(d).unwrap()
    }

    #[test]
    fn known_deployments() {
        let one = Degrees::default();
        let deepseek = layout(Degrees { dp: 32, ep: 32, redundant: 32, ..one });
        let trt = layout(Degrees { dp: 8, ep: 8, ..one });
        let dense = layout(Degrees { tp: 8, etp: 8, ..one });
        let llama3 = layout(Degrees { tp: 8, pp: 16, cp: 1, dp: 128, etp: 8, sequence_parallel: true, ..one });
        let vllm =
            "vllm serve deepseek-ai/DeepSeek-V3 -tp 1 -dp 32 --enable-expert-parallel --num-redundant-experts 32";
        let sglang = "python -m sglang.launch_server --model-path x --tp-size 32 --dp-size=32 --enable-dp-attention \
                      --ep-size 32 --ep-num-redundant-experts 32 \\";
        let megatron =
            "WORLD_SIZE=16384 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --sequence-parallel";
        for (tool, line, expected) in [
            (Tool::Vllm, vllm, deepseek),
            (Tool::Sglang, sglang, deepseek),
            (Tool::TrtLlm, "trtllm-serve x --tp_size 8 --ep_size 8 --enable_attention_dp", trt),
            (Tool::Vllm, "--tensor-parallel-size 8 --max-num-seqs 256 --port 8000", dense),
            (Tool::Megatron, megatron, llama3),
        ] {
            assert_eq!(read(tool, line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_a_tool_cannot_say_is_refused() {
        let both = layout(Degrees { tp: 2, dp: 4, ep: 8, ..Degrees::default() });
        assert!(print(Tool::TrtLlm, &both).unwrap_err().to_string().contains("either tensor or data"));
        let part = layout(Degrees { tp: 8, ep: 4, etp: 2, ..Degrees::default() });
        assert!(print(Tool::Vllm, &part).is_err());
        assert_eq!(print(Tool::Sglang, &part).unwrap(), "--tp-size 8 --ep-size 4");
        assert!(
            read(Tool::Vllm, "--tensor-paralel-size 8").unwrap_err().to_string().contains("--tensor-parallel-size")
        );
        assert!(read(Tool::Vllm, "-tp eight").is_err());
        assert!(read(Tool::Sglang, "--tp 8 --dp 0 --enable-dp-attention").is_err());
        let cut = read(Tool::Vllm, "-tp 8 -dcp 4").unwrap();
        assert_eq!(cut, layout(Degrees { tp: 8, etp: 8, dcp: 4, ..Degrees::default() }));
        assert_eq!(print(Tool::Vllm, &cut).unwrap(), "--tensor-parallel-size 8 --decode-context-parallel-size 4");
        assert!(print(Tool::Sglang, &cut).unwrap_err().to_string().contains("decode context parallel"));
        assert!(read(Tool::Vllm, "-tp 4 -dcp 8").unwrap_err().to_string().contains("divisor of tp 4"));
        assert!(read(Tool::Megatron, "--tensor-model-parallel-size 8").unwrap_err().to_string().contains("WORLD_SIZE"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn a_printed_layout_reads_back_equal(
            tp in 0u32..5, pp in 1u64..9, dp in 0u32..7, cp in 0u32..3, split in 0u32..12, redundant in 0u64..3,
            vpp in 1u64..4, sp: bool, tool in 0usize..4, dcp in 0u32..4,
        ) {
            let (tp, dp, cp) = (1u64 << tp, 1u64 << dp, 1u64 << cp);
            let ep = 1u64 << split.min((tp * dp * cp).trailing_zeros());
            let tool = Tool::VARIANTS[tool];
            for etp in [1, tp, tp * dp * cp / ep] {
                let degrees = Degrees { tp, pp, dp, cp, ep, etp, redundant: redundant * 16, virtual_stages: vpp, sequence_parallel: sp, dcp: 1 };
                let serving = Degrees { virtual_stages: 1, sequence_parallel: false, ..degrees };
                let cut = Degrees { cp: 1, dcp: 1 << dcp, ..serving };
                for d in [degrees, serving, Degrees { cp: 1, redundant: 0, ..serving }, cut] {
                    let Ok(layout) = Layout::new(d) else { continue };
                    if let Ok(line) = print(tool, &layout) {
                        prop_assert_eq!(read(tool, &line).unwrap(), layout, "{} from {}", tool, line);
                    }
                }
            }
        }

        #[test]
        fn any_line_is_read_or_refused(line in ".{0,200}", tool in 0usize..4) {
            let _ = read(Tool::VARIANTS[tool], &line);
        }
    }
}
