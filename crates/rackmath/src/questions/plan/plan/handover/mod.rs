//! A plan in the words of the tools that run it: commands, configuration files, a Kubernetes manifest, load tests.
//!
//! Every flag is in the list of its tool (`catalog/flags`); a test asks that of every command that can come out here.

mod config;
mod kubernetes;
mod line;
mod load;
mod router;
mod server;
#[cfg(test)]
mod tests;

use super::prepare::Entry;
use super::worked::{Choice, Worked};
use load::Aim;
use rackmath_spec::file::flags::{self, Tool};
use rackmath_theory::layout::domain;
use rackmath_theory::plan::{Bound, Estimate, Traffic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::{Pool, Role, Site};

/// How a plan is handed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HandoverRequest {
    /// Chips of one host; the scale-up domain up to 8, and 4 where it is larger, unless given.
    pub chips_per_host: Option<u64>,
    /// A trace in Mooncake's format to replay in load tests.
    pub replay: Option<String>,
}

/// What starts and checks a plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Handover {
    /// Commands, in the order they are run.
    pub commands: Vec<Command>,
    /// Files, by name.
    pub files: Vec<File>,
    /// What to know before using them.
    pub notes: Vec<String>,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Command {
    /// What it is for.
    pub role: String,
    /// The list of flags it keeps to.
    pub flags: String,
    /// The line.
    pub line: String,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The name of a tool's list of flags.
pub(super) fn list(tool: Tool) -> &'static str {
    match tool {
        Tool::Vllm => "vllm",
        Tool::Sglang => "sglang",
        Tool::TrtLlm => "trtllm",
        Tool::Megatron => "megatron",
    }
}

/// Container images and packages by list of flags.
pub(super) type Images = std::collections::BTreeMap<String, (Option<String>, Option<String>)>;

/// Everything for one plan.
fn handover(site: &Site, pools: &[Pool], aim: &Aim, images: &Images) -> Handover {
    let routed = router::router(site, pools);
    let mut commands: Vec<Command> = Vec::new();
    let mut files = Vec::new();
    for pool in pools {
        let line = site.line(pool, server::Place::Script);
        files.push(File {
            name: format!("serve-{}.sh", pool.role.name()),
            text: script(&(site.setup(pool) + &line), &site.preamble(pool)),
        });
        commands.push(Command { role: pool.role.name().into(), flags: list(site.tool).into(), line });
        if let Some(text) = site.config(pool) {
            files.push(File { name: config::config_name(pool.role).into(), text });
        }
    }
    if let Some(r) = &routed {
        files.push(File {
            name: "router.sh".into(),
            text: script(
                &r.command.line,
                &["names are those of kubernetes.yaml; put addresses in their place elsewhere".into()],
            ),
        });
        files.extend(r.config.iter().map(|text| File { name: router::DISAGG_CONFIG.into(), text: text.clone() }));
        commands.push(r.command.clone());
    }
    files.push(File {
        name: "kubernetes.yaml".into(),
        text: kubernetes::manifest(site, pools, routed.as_ref(), images),
    });
    let tests = load::commands(site, aim);
    let arm = |c: &Command| {
        let word = c.flags.trim_end_matches("-bench");
        format!("  {}{word})\n    {}\n    ;;\n", if c.role == "replay" { "replay-" } else { "" }, c.line)
    };
    let arms = tests.iter().map(arm).collect::<Vec<_>>().concat();
    let which = format!("case \"${{1:-vllm}}\" in\n{arms}esac");
    files.push(File { name: "load-test.sh".into(), text: script(&which, &load::words(aim)) });
    commands.extend(tests);
    Handover { commands, files, notes: notes(site, pools, routed.is_some()) }
}

/// A shell script: what to know, then the commands.
fn script(lines: &str, comments: &[String]) -> String {
    let comments: Vec<String> = comments.iter().map(|c| format!("# {c}\n")).collect();
    format!("#!/bin/sh\nset -eu\n{}{lines}\n", comments.concat())
}

fn notes(site: &Site, pools: &[Pool], routed: bool) -> Vec<String> {
    let mut all = vec![
        "image tags follow the engines' releases and were not pulled; weights are fetched by name when a server starts"
            .to_owned(),
    ];
    if pools.len() > 1 {
        all.push(
            "caches travel by NIXL or UCX: hosts need RDMA between pools, and pods the device plugin of the network"
                .into(),
        );
    }
    if pools.iter().any(|p| p.host_cache.is_some()) {
        all.push("host memory for caches is twice that of the chips, at most what the tier has: say less where hosts have less".into());
    }
    let fetches = |p: &Pool| p.role != Role::Serve && p.host_cache.is_some();
    if site.tool == Tool::Vllm && pools.iter().any(fetches) {
        all.push(
            "vLLM's servers of prompts fetch from host memory with a MultiConnector of NixlConnector and \
             OffloadingConnector in --kv-transfer-config, which is not written here"
                .into(),
        );
    }
    if site.drafts > 0.0 && !site.mtp() {
        all.push(format!("{}: put the draft model whose acceptance was measured in its place", server::DRAFT));
    }
    if let Some(format) = site.other_weights() {
        all.push(format!("weights in {format}: name a checkpoint in that format in place of {}", site.model_name()));
    }
    if site.tool == Tool::TrtLlm && pools.iter().any(|p| site.hosts(p) > 1) {
        all.push("TensorRT-LLM over several hosts starts under srun or mpirun with a task for each chip".into());
    }
    if site.tool == Tool::TrtLlm && !routed && pools.iter().any(|p| p.instances > 1) {
        all.push(
            "TensorRT-LLM has no router for alike replicas: the Service of the manifest shares requests out".into(),
        );
    }
    all
}

impl Worked {
    /// The servers of a configuration, in so many replicas; none for an engine whose commands are not known here.
    fn site(&self, choice: &Choice, replicas: f64) -> Option<(Site<'_>, Vec<Pool>)> {
        let (ask, on) = (&*self.ask, self.made.rows[choice.c.row].on());
        let tool = on.engine.family.parse::<Tool>().ok().filter(|t| *t != Tool::Megatron)?;
        let pool = |role: Role, row: &Entry, sequences: f64, instances: f64| {
            let on = row.on();
            flags::print(tool, &on.layout).ok()?;
            Some(Pool {
                role,
                layout: on.layout,
                kv: on.kv,
                sequences,
                chunk: row.chunk,
                memory: on.engine.schedule.memory.get(),
                instances: (instances * replicas) as u64,
                host_cache: row.host_cache(&ask.requests),
            })
        };
        let pools = match &choice.prompts {
            None => vec![pool(Role::Serve, choice.row, choice.per_group, 1.0)?],
            Some(p) => {
                let prompts = (p.row.chunk / ask.fetching(p.row.offload).new_tokens()).ceil().max(1.0);
                vec![
                    pool(Role::Prefill, p.row, prompts, p.instances)?,
                    pool(Role::Decode, choice.row, choice.per_group, choice.instances)?,
                ]
            }
        };
        let usual = on.system.chip.chips_per_host().min(domain(&on.system)).max(1);
        let site = Site {
            model: &ask.model,
            tool,
            formats: on.formats,
            cached: ask.fetching(choice.offload()).cached,
            drafts: choice.row.drafts.0,
            longest: ask.workload.input.shares.last().copied().unwrap_or(ask.requests.input),
            vendor: &on.system.chip.vendor,
            per_host: ask.handover.as_ref().and_then(|h| h.chips_per_host).unwrap_or(usual),
        };
        Some((site, pools))
    }

    /// Command lines that start a replica.
    pub(super) fn launch(&self, choice: &Choice) -> Vec<String> {
        let Some((site, pools)) = self.site(choice, 1.0) else { return Vec::new() };
        match pools.as_slice() {
            [one] => vec![site.shown(one)],
            [prefill, decode] => {
                vec![format!("prefill: {}", site.shown(prefill)), format!("decode: {}", site.shown(decode))]
            }
            _ => Vec::new(),
        }
    }

    /// Commands, files and load tests, where asked for.
    pub(super) fn handover(&self, choice: &Choice, e: &Estimate) -> Option<Handover> {
        let ask = &self.ask;
        let asked = ask.handover.as_ref()?;
        let (site, pools) = self.site(choice, e.replicas)?;
        let (input, output) = (&ask.workload.input, &ask.workload.output);
        let target = |bound: Bound| self.question.limits.get(bound).map(|s| s * 1e3);
        let aim = Aim {
            input: (input.mean, input.variance.sqrt()),
            output: (output.mean, output.variance.sqrt()),
            rate: match self.question.traffic {
                Traffic::Rate(rate) => Some(rate),
                Traffic::Fill(_) | Traffic::Within { .. } | Traffic::One => None,
            },
            concurrency: choice.per_group * choice.row.on().groups() * choice.instances * e.replicas,
            ttft_ms: e.ttft * 1e3,
            tpot_ms: e.tpot * 1e3,
            targets: (target(Bound::Ttft), target(Bound::Tpot)),
            replay: asked.replay.clone(),
        };
        Some(handover(&site, &pools, &aim, &ask.images))
    }
}
