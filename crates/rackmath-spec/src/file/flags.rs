//! Layouts as the command lines of vLLM, SGLang, TensorRT-LLM and Megatron, read and printed back.
//!
//! Each tool names the same cut differently, and each can only say some layouts; what it cannot say is refused with the
//! reason. Printing a layout and reading it back gives the same layout.

use crate::SpecError;
use crate::error::nearest;
use crate::layout::{Degrees, Layout};
use std::fmt;
use std::str::FromStr;

/// A tool with a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// vLLM.
    Vllm,
    Sglang,
    /// TensorRT-LLM.
    TrtLlm,
    Megatron,
}

impl Tool {
    pub const ALL: [Self; 4] = [Self::Vllm, Self::Sglang, Self::TrtLlm, Self::Megatron];

    /// Its name in flags and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TrtLlm => "trtllm",
            Self::Megatron => "megatron",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tool {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase().replace(['-', '_'], "");
        match lower.as_str() {
            "tensorrtllm" | "trt" => Ok(Self::TrtLlm),
            "megatronlm" | "nemo" => Ok(Self::Megatron),
            _ => Self::ALL
                .into_iter()
                .find(|t| t.name() == lower)
                .ok_or_else(|| SpecError::unknown("tool", text, Self::ALL.iter().map(|t| t.name()))),
        }
    }
}

/// A flag's meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Tp,
    Pp,
    Dp,
    Cp,
    Ep,
    Etp,
    Redundant,
    Virtual,
    World,
    Nodes,
    PerNode,
    ExpertParallel,
    AttentionDp,
    SequenceParallel,
    Dcp,
}

/// The flags of a tool that bear on its layout, without leading dashes and with `-` for `_`.
fn flags(tool: Tool) -> &'static [(&'static str, Meaning)] {
    use Meaning::{
        AttentionDp, Cp, Dcp, Dp, Ep, Etp, ExpertParallel, Nodes, PerNode, Pp, Redundant, SequenceParallel, Tp,
        Virtual, World,
    };
    match tool {
        Tool::Vllm => &[
            ("tensor-parallel-size", Tp),
            ("tp", Tp),
            ("pipeline-parallel-size", Pp),
            ("pp", Pp),
            ("data-parallel-size", Dp),
            ("dp", Dp),
            ("enable-expert-parallel", ExpertParallel),
            ("ep", ExpertParallel),
            ("num-redundant-experts", Redundant),
            ("decode-context-parallel-size", Dcp),
            ("dcp", Dcp),
        ],
        Tool::Sglang => &[
            ("tensor-parallel-size", Tp),
            ("tp-size", Tp),
            ("tp", Tp),
            ("pipeline-parallel-size", Pp),
            ("pp-size", Pp),
            ("data-parallel-size", Dp),
            ("dp-size", Dp),
            ("dp", Dp),
            ("expert-parallel-size", Ep),
            ("ep-size", Ep),
            ("ep", Ep),
            ("enable-dp-attention", AttentionDp),
            ("ep-num-redundant-experts", Redundant),
        ],
        Tool::TrtLlm => &[
            ("tp-size", Tp),
            ("tp", Tp),
            ("pp-size", Pp),
            ("pp", Pp),
            ("ep-size", Ep),
            ("ep", Ep),
            ("cp-size", Cp),
            ("enable-attention-dp", AttentionDp),
        ],
        Tool::Megatron => &[
            ("tensor-model-parallel-size", Tp),
            ("pipeline-model-parallel-size", Pp),
            ("context-parallel-size", Cp),
            ("expert-model-parallel-size", Ep),
            ("expert-tensor-parallel-size", Etp),
            ("num-virtual-stages-per-pipeline-rank", Virtual),
            ("sequence-parallel", SequenceParallel),
            ("world-size", World),
            ("nnodes", Nodes),
            ("nproc-per-node", PerNode),
        ],
    }
}

/// What a command line says.
#[derive(Default)]
struct Said {
    tp: Option<u64>,
    pp: Option<u64>,
    dp: Option<u64>,
    cp: Option<u64>,
    ep: Option<u64>,
    etp: Option<u64>,
    redundant: Option<u64>,
    virtual_stages: Option<u64>,
    world: Option<u64>,
    nodes: Option<u64>,
    per_node: Option<u64>,
    expert_parallel: bool,
    attention_dp: bool,
    sequence_parallel: bool,
    dcp: Option<u64>,
}

/// Reads a layout from a tool's command line; flags that do not bear on the layout are passed over.
pub fn read(tool: Tool, line: &str) -> Result<Layout, SpecError> {
    let said = scan(tool, line)?;
    let or = |value: Option<u64>| value.unwrap_or(1);
    let (tp, pp) = (or(said.tp), or(said.pp));
    let degrees = match tool {
        Tool::Vllm => {
            let dp = or(said.dp);
            let (ep, etp) = if said.expert_parallel { (tp.saturating_mul(dp), 1) } else { (1, tp.saturating_mul(dp)) };
            Degrees { tp, pp, dp, ep, etp, dcp: or(said.dcp), ..Degrees::default() }
        }
        Tool::Sglang => {
            let ep = or(said.ep);
            if said.attention_dp {
                let dp = or(said.dp);
                if tp % dp != 0 {
                    return Err(refuse(
                        tool,
                        format!("--dp-size {dp} does not divide --tp-size {tp}"),
                        "attention data parallel splits the tensor-parallel group",
                    ));
                }
                Degrees {
                    tp: tp / dp,
                    pp,
                    dp,
                    ep,
                    etp: divide(tool, "tp-size", tp, "ep-size", ep)?,
                    ..Degrees::default()
                }
            } else {
                Degrees {
                    tp,
                    pp,
                    dp: or(said.dp),
                    ep,
                    etp: divide(tool, "tp-size", tp, "ep-size", ep)?,
                    ..Degrees::default()
                }
            }
        }
        Tool::TrtLlm => {
            let (ep, cp) = (or(said.ep), or(said.cp));
            let etp = divide(tool, "tp_size x cp_size", tp.saturating_mul(cp), "ep_size", ep)?;
            if said.attention_dp {
                Degrees { tp: 1, dp: tp, pp, cp, ep, etp, ..Degrees::default() }
            } else {
                Degrees { tp, pp, cp, ep, etp, ..Degrees::default() }
            }
        }
        Tool::Megatron => {
            let (cp, ep) = (or(said.cp), or(said.ep));
            let world = said.world.or(said.per_node.map(|n| n.saturating_mul(or(said.nodes)))).ok_or_else(|| {
                refuse(
                    tool,
                    "the number of chips is not stated".into(),
                    "put WORLD_SIZE=64 in front, or --nnodes and --nproc-per-node",
                )
            })?;
            let model = tp.saturating_mul(pp).saturating_mul(cp);
            let dp = divide(tool, "WORLD_SIZE", world, "tensor x pipeline x context", model)?;
            // Megatron cuts experts like attention unless told otherwise.
            Degrees { tp, pp, dp, cp, ep, etp: said.etp.unwrap_or(tp), ..Degrees::default() }
        }
    };
    let degrees = Degrees {
        redundant: said.redundant.unwrap_or(0),
        virtual_stages: or(said.virtual_stages),
        sequence_parallel: said.sequence_parallel,
        ..degrees
    };
    Layout::new(degrees).map_err(|e| refuse(tool, e.0, "check the degrees against each other"))
}

/// Prints a layout as a tool's flags, or says why that tool cannot have it.
pub fn print(tool: Tool, layout: &Layout) -> Result<String, SpecError> {
    sayable(tool, layout)?;
    let d = layout.degrees();
    let mut line = Line { tool, layout, words: Vec::new() };
    match tool {
        Tool::Vllm => print_vllm(&mut line, &d)?,
        Tool::Sglang => print_sglang(&mut line, &d)?,
        Tool::TrtLlm => print_trtllm(&mut line, &d)?,
        Tool::Megatron => print_megatron(&mut line, &d),
    }
    Ok(line.words.join(" "))
}

/// A command line being written.
struct Line<'a> {
    tool: Tool,
    layout: &'a Layout,
    words: Vec<String>,
}

impl Line<'_> {
    fn add(&mut self, flag: &str, n: u64, usual: u64) {
        if n != usual {
            self.words.push(format!("{flag} {n}"));
        }
    }

    fn switch(&mut self, flag: &str, on: bool) {
        if on {
            self.words.push(flag.to_owned());
        }
    }

    fn cannot(&self, what: &str, why: &str) -> SpecError {
        refuse(self.tool, format!("{} has {what}", self.layout), why)
    }
}

/// What only some tools have flags for.
fn sayable(tool: Tool, layout: &Layout) -> Result<(), SpecError> {
    let d = layout.degrees();
    let line = Line { tool, layout, words: Vec::new() };
    let serving = tool != Tool::Megatron;
    if serving && d.virtual_stages != 1 {
        return Err(line.cannot("virtual stages", "serving has no interleaved schedule; use --tool megatron"));
    }
    if serving && d.sequence_parallel {
        return Err(line.cannot("sequence parallel", "this tool has no flag for it; use --tool megatron"));
    }
    if matches!(tool, Tool::Vllm | Tool::Sglang) && d.cp != 1 {
        return Err(line.cannot("context parallel", "this tool has no flag for it here"));
    }
    if tool != Tool::Vllm && d.dcp != 1 {
        return Err(line.cannot("decode context parallel", "only vLLM's is modelled; use --tool vllm"));
    }
    if matches!(tool, Tool::TrtLlm | Tool::Megatron) && d.redundant > 0 {
        return Err(line.cannot("redundant experts", "this tool sets them in a load-balancer file, not by a flag"));
    }
    Ok(())
}

fn expert_words(d: &Degrees) -> String {
    format!("ep {} and etp {}", d.ep, d.etp)
}

fn print_vllm(line: &mut Line, d: &Degrees) -> Result<(), SpecError> {
    line.add("--tensor-parallel-size", d.tp, 1);
    line.add("--pipeline-parallel-size", d.pp, 1);
    line.add("--data-parallel-size", d.dp, 1);
    line.add("--num-redundant-experts", d.redundant, 0);
    line.add("--decode-context-parallel-size", d.dcp, 1);
    let all = d.tp * d.dp;
    match (d.ep, d.etp) {
        (1, etp) if etp == all => Ok(()),
        (ep, 1) if ep == all => {
            line.switch("--enable-expert-parallel", true);
            Ok(())
        }
        _ => Err(line.cannot(&expert_words(d), "vLLM spreads experts over all tp x dp chips, whole or all cut")),
    }
}

fn print_sglang(line: &mut Line, d: &Degrees) -> Result<(), SpecError> {
    let all = d.tp * d.dp;
    // With attention data parallel the tensor-parallel size counts all chips of a stage; else each copy by itself.
    let attention_dp = d.dp > 1 && d.ep * d.etp == all;
    let size = if attention_dp { all } else { d.tp };
    if d.ep * d.etp != size {
        return Err(line.cannot(
            &expert_words(d),
            "SGLang cuts experts into tp / ep shards, over tp or, with attention data parallel, over all chips",
        ));
    }
    line.add("--tp-size", size, 1);
    line.add("--pp-size", d.pp, 1);
    line.add("--dp-size", d.dp, 1);
    line.add("--ep-size", d.ep, 1);
    line.add("--ep-num-redundant-experts", d.redundant, 0);
    line.switch("--enable-dp-attention", attention_dp);
    Ok(())
}

fn print_trtllm(line: &mut Line, d: &Degrees) -> Result<(), SpecError> {
    if d.dp > 1 && d.tp > 1 {
        return Err(line.cannot("both tp and dp", "TensorRT-LLM's attention is either tensor or data parallel"));
    }
    if d.ep * d.etp != line.layout.stage_chips() {
        return Err(line.cannot(&expert_words(d), "TensorRT-LLM cuts experts into tp / ep shards"));
    }
    line.add("--tp_size", d.tp * d.dp, 1);
    line.add("--pp_size", d.pp, 1);
    line.add("--cp_size", d.cp, 1);
    line.add("--ep_size", d.ep, 1);
    line.switch("--enable_attention_dp", d.dp > 1);
    Ok(())
}

fn print_megatron(line: &mut Line, d: &Degrees) {
    line.words.push(format!("WORLD_SIZE={}", line.layout.chips()));
    // Megatron's own defaults depend on each other, so every degree is written out.
    for (flag, n) in [
        ("--tensor-model-parallel-size", d.tp),
        ("--pipeline-model-parallel-size", d.pp),
        ("--context-parallel-size", d.cp),
        ("--expert-model-parallel-size", d.ep),
        ("--expert-tensor-parallel-size", d.etp),
    ] {
        line.words.push(format!("{flag} {n}"));
    }
    line.add("--num-virtual-stages-per-pipeline-rank", d.virtual_stages, 1);
    line.switch("--sequence-parallel", d.sequence_parallel);
}

fn refuse(tool: Tool, given: String, expected: &str) -> SpecError {
    SpecError::file(format!("{tool} command line"), given).hint(expected)
}

fn divide(tool: Tool, what: &str, n: u64, by: &str, d: u64) -> Result<u64, SpecError> {
    if d == 0 || !n.is_multiple_of(d) {
        return Err(refuse(
            tool,
            format!("{by} {d} does not divide {what} {n}"),
            "choose degrees that divide each other",
        ));
    }
    Ok(n / d)
}

/// Collects the flags that matter. `--flag value`, `--flag=value`, `-tp 8`, `_` for `-`, and `WORLD_SIZE=64` are understood.
fn scan(tool: Tool, line: &str) -> Result<Said, SpecError> {
    if line.len() > 100_000 {
        return Err(refuse(tool, "longer than 100,000 characters".into(), "a command line is shorter"));
    }
    let mut said = Said::default();
    let mut words = line.split_whitespace().filter(|w| *w != "\\").peekable();
    while let Some(word) = words.next() {
        if let Some(world) = word.strip_prefix("WORLD_SIZE=") {
            said.world = Some(number(tool, "WORLD_SIZE", world)?);
            continue;
        }
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        let (flag, attached) = flag.split_once('=').map_or((flag, None), |(f, v)| (f, Some(v)));
        let flag = flag.replace('_', "-");
        let Some((name, meaning)) = flags(tool).iter().find(|(name, _)| *name == flag) else {
            misspelt(tool, &flag)?;
            continue;
        };
        let on = match meaning {
            Meaning::ExpertParallel => Some(&mut said.expert_parallel),
            Meaning::AttentionDp => Some(&mut said.attention_dp),
            Meaning::SequenceParallel => Some(&mut said.sequence_parallel),
            _ => None,
        };
        if let Some(on) = on {
            *on = attached.is_none_or(|v| !matches!(v, "false" | "False" | "0"));
            continue;
        }
        let value = match attached {
            Some(value) => value,
            None => words
                .next()
                .ok_or_else(|| refuse(tool, format!("--{name} has no value"), "give a positive whole number"))?,
        };
        let n = number(tool, name, value)?;
        *match meaning {
            Meaning::Tp => &mut said.tp,
            Meaning::Pp => &mut said.pp,
            Meaning::Dp => &mut said.dp,
            Meaning::Cp => &mut said.cp,
            Meaning::Ep => &mut said.ep,
            Meaning::Etp => &mut said.etp,
            Meaning::Redundant => &mut said.redundant,
            Meaning::Virtual => &mut said.virtual_stages,
            Meaning::World => &mut said.world,
            Meaning::Nodes => &mut said.nodes,
            Meaning::Dcp => &mut said.dcp,
            _ => &mut said.per_node,
        } = Some(n);
    }
    Ok(said)
}

/// A flag one slip away from one that matters is a slip, not a flag of something else.
fn misspelt(tool: Tool, flag: &str) -> Result<(), SpecError> {
    let close = |name: &&(&str, Meaning)| name.0.len() > 6 && strsim::damerau_levenshtein(flag, name.0) <= 2;
    match flags(tool).iter().find(close) {
        None => Ok(()),
        Some((name, _)) => {
            let near = nearest(flag, std::iter::once(*name));
            Err(refuse(
                tool,
                format!("--{flag} is not a flag"),
                &format!("did you mean --{}?", near.first().map_or(*name, String::as_str)),
            ))
        }
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
        assert_eq!(
            read(
                Tool::Vllm,
                "vllm serve deepseek-ai/DeepSeek-V3 -tp 1 -dp 32 --enable-expert-parallel --num-redundant-experts 32"
            )
            .unwrap(),
            deepseek
        );
        assert_eq!(
            read(Tool::Sglang, "python -m sglang.launch_server --model-path x --tp-size 32 --dp-size=32 --enable-dp-attention --ep-size 32 --ep-num-redundant-experts 32 \\").unwrap(),
            deepseek
        );
        let trt = layout(Degrees { dp: 8, ep: 8, ..one });
        assert_eq!(read(Tool::TrtLlm, "trtllm-serve x --tp_size 8 --ep_size 8 --enable_attention_dp").unwrap(), trt);
        let dense = layout(Degrees { tp: 8, etp: 8, ..one });
        assert_eq!(read(Tool::Vllm, "--tensor-parallel-size 8 --max-num-seqs 256 --port 8000").unwrap(), dense);
        let llama3 = layout(Degrees { tp: 8, pp: 16, cp: 1, dp: 128, etp: 8, sequence_parallel: true, ..one });
        let line =
            "WORLD_SIZE=16384 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --sequence-parallel";
        assert_eq!(read(Tool::Megatron, line).unwrap(), llama3);
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
            let tool = Tool::ALL[tool];
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
            let _ = read(Tool::ALL[tool], &line);
        }
    }
}
