//! A plan in the words of the tools that run it: commands, configuration files, a Kubernetes manifest, load tests.
//!
//! What a tool is told stands in templates of its list of flags (`catalog/flags`); every flag is in that list, and a test asks
//! it of every command that can come out here.

mod kubernetes;
mod load;
mod server;
#[cfg(test)]
mod tests;

use super::{Choice, Entry, Worked};
use crate::desk::prelude::*;
use load::Aim;
use rackmath_spec::Kind;
use rackmath_spec::command::{FlagList, filled, line};
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::launch::Start;
use rackmath_theory::budget;
use rackmath_theory::deployment::Deployment;
use rackmath_theory::layout::domain;
use rackmath_theory::plan::{Bound, Estimate, Traffic};
use server::{PORT, Pool, Role, Site, facts};
use std::collections::BTreeMap;

/// How a plan is handed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HandoverRequest {
    /// Chips of one host, which are paid together; the machine's unless given.
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

/// Lists of flags by name.
pub(super) type Lists = BTreeMap<String, Arc<FlagList>>;

/// The lists of the engines; with those of routers and load tests where all is asked for.
pub(super) fn lists<'a>(catalog: &Catalog, families: impl Iterator<Item = &'a str>, all: bool) -> Result<Lists, Error> {
    let one = |id: &str| Ok((id.to_owned(), catalog.flag_list(id)?));
    if all {
        return catalog.ids(Kind::Flags).map(one).collect();
    }
    families.filter(|family| catalog.ids(Kind::Flags).any(|id| id == *family)).map(one).collect()
}

/// What stands before several servers and shares requests out.
struct Router {
    list: Arc<FlagList>,
    line: String,
    /// Its file of servers.
    config: Option<String>,
}

/// The router's file of servers.
const DISAGG_CONFIG: &str = "disagg_config.yaml";

/// The router of a plan; none where one server answers alone, or the engine has none for alike replicas.
fn router(site: &Site, pools: &[Pool], lists: &Lists) -> Option<Router> {
    let list = lists.get(site.list.router.as_ref()?)?;
    let urls = |pool: &Pool| site.addresses(pool).iter().map(|a| format!("{a}:{PORT}")).collect::<Vec<_>>().join("\n");
    let one = |role: Role| pools.iter().find(|p| p.role == role);
    let of = |role: Role| (role.name(), one(role).is_some(), one(role).map_or_else(String::new, urls));
    let n = |role: Role| one(role).map_or(0, |p| p.instances).to_string();
    if one(Role::Serve).is_some_and(|p| p.instances < 2) {
        return None;
    }
    let facts = facts([
        of(Role::Serve),
        of(Role::Prefill),
        of(Role::Decode),
        ("n_prefill", true, n(Role::Prefill)),
        ("n_decode", true, n(Role::Decode)),
        ("split", pools.len() > 1, String::new()),
        ("port", true, PORT.to_string()),
        ("policy", true, if site.cached > 0.0 { "cache_aware" } else { "round_robin" }.into()),
        ("config", true, DISAGG_CONFIG.into()),
    ]);
    let line = line(&list.lines, &facts);
    let config = (!list.config.is_empty()).then(|| filled(&list.config, &facts).join("\n") + "\n");
    (!line.is_empty()).then(|| Router { list: list.clone(), line, config })
}

/// Everything for one plan.
fn handover(site: &Site, pools: &[Pool], aim: &Aim, lists: &Lists) -> Handover {
    let routed = router(site, pools, lists);
    let mut commands: Vec<Command> = Vec::new();
    let mut files = Vec::new();
    let mut file = |name: String, text: String| files.push(File { name, text });
    for pool in pools {
        let (line, role) = (site.line(pool, true), pool.role.name());
        file(format!("serve-{role}.sh"), script(&(site.setup(pool) + &line), &site.preamble(pool)));
        commands.push(Command { role: role.into(), flags: site.list.id.clone(), line });
        if let Some(text) = site.config(pool) {
            file(pool.role.config().into(), text);
        }
    }
    if let Some(r) = &routed {
        let names = "names are those of kubernetes.yaml; put addresses in their place elsewhere".to_owned();
        file("router.sh".into(), script(&r.line, &[names]));
        if let Some(text) = &r.config {
            file(DISAGG_CONFIG.into(), text.clone());
        }
        commands.push(Command { role: "router".into(), flags: r.list.id.clone(), line: r.line.clone() });
    }
    file("kubernetes.yaml".into(), kubernetes::manifest(site, pools, routed.as_ref()));
    let tests = load::commands(site, aim, lists);
    let arm = |c: &Command| {
        let word = c.flags.trim_end_matches("-bench");
        format!("  {}{word})\n    {}\n    ;;\n", if c.role == "replay" { "replay-" } else { "" }, c.line)
    };
    let arms = tests.iter().map(arm).collect::<Vec<_>>().concat();
    file("load-test.sh".into(), script(&format!("case \"${{1:-vllm}}\" in\n{arms}esac"), &load::words(aim)));
    commands.extend(tests);
    Handover { commands, files, notes: notes(site, pools, routed.is_some()) }
}

/// A shell script: what to know, then the commands.
fn script(lines: &str, comments: &[String]) -> String {
    let comments: Vec<String> = comments.iter().map(|c| format!("# {c}\n")).collect();
    format!("#!/bin/sh\nset -eu\n{}{lines}\n", comments.concat())
}

fn notes(site: &Site, pools: &[Pool], routed: bool) -> Vec<String> {
    let any = |holds: &dyn Fn(&Pool) -> bool| pools.iter().any(holds);
    let format = site.other_weights();
    let holding = facts([
        ("pools", pools.len() > 1, String::new()),
        ("host_cache", any(&|p| p.host_cache.is_some()), String::new()),
        ("prompts_fetch", any(&|p| p.role != Role::Serve && p.host_cache.is_some()), String::new()),
        ("draft_model", site.drafts > 0.0 && !site.mtp(), server::DRAFT.into()),
        ("format", format.is_some(), format.unwrap_or_default()),
        ("model", true, site.model_name().into()),
        ("unowned", !site.model_name().contains('/'), String::new()),
        ("tool", true, site.list.tool.clone()),
        ("version", true, site.version().into()),
        ("newest", site.older().is_some(), site.older().map_or_else(String::new, |v| v.to_string())),
        ("several_hosts", any(&|p| site.hosts(p) > 1), String::new()),
        ("replicas", any(&|p| p.instances > 1), String::new()),
        ("routed", routed, String::new()),
    ]);
    let here = site.here().map_or(&[][..], |here| &here.notes);
    let (all, own) = (filled(&NOTES, &holding), filled(&site.list.notes, &holding));
    all.into_iter().chain(own).chain(filled(here, &holding)).collect()
}

/// What to know of every tool.
const NOTES: [(&str, &str); 7] = [
    (
        "",
        "image tags follow the engines' releases and were not pulled; weights are fetched by name when a server starts",
    ),
    (
        "newest",
        "{tool} {version} is started, which is newer than {newest}, the newest version whose runs were compared: figures are those of {newest}",
    ),
    ("pools", "caches travel by NIXL or UCX: hosts need RDMA between pools, and pods the device plugin of the network"),
    (
        "host_cache",
        "host memory for caches is twice that of the chips, at most what the tier has: say less where hosts have less",
    ),
    ("draft_model", "{draft_model}: put the draft model whose acceptance was measured in its place"),
    ("unowned", "{model}: put the id by which its weights are fetched in its place, with its owner"),
    ("format", "weights in {format}: name a checkpoint in that format in place of {model}"),
];

/// Requests are as long as a whole number of these, which are easier to read.
const ROUND: u64 = 1024;

/// The longest request a server may allow, where its cache does not hold one of the model's own longest: as long as it holds, and no
/// shorter than the longest that comes.
fn shorter(on: &Deployment, start: &Start, comes: f64) -> Option<u64> {
    let own = on.model.shape().and_then(|shape| shape.context_max)?;
    let held = budget::told(on, start, None).longest_possible;
    let least = comes.ceil() as u64;
    (held < own).then(|| (held / ROUND * ROUND).max(least).min(own))
}

impl Worked {
    /// The servers of a configuration, in so many replicas; none for an engine whose commands are not known here.
    fn site(&self, choice: &Choice, replicas: f64) -> Option<(Site<'_>, Vec<Pool>)> {
        let (ask, on) = (&*self.ask, self.made.rows[choice.c.row].on());
        let (tool, list) = (on.engine.family.parse::<Tool>().ok()?, ask.lists.get(&on.engine.family)?);
        let longest = ask.workload.longest();
        let pool = |role: Role, row: &Entry, sequences: f64, instances: f64| {
            let on = row.on();
            flags::print(tool, &on.layout).ok()?;
            let memory = on.utilisation(&on.load(&ask.requests, sequences, row.chunk));
            let start = Start {
                utilisation: Some(memory),
                sequences: Some(sequences.ceil() as u64),
                pass: Some(row.chunk as u64),
                ..Start::default()
            };
            Some(Pool {
                role,
                layout: on.layout,
                kv: on.kv,
                sequences,
                chunk: row.chunk,
                memory: memory.get(),
                context: shorter(on, &start, longest),
                instances: (instances * replicas) as u64,
                host_cache: row.host_cache(&ask.requests),
            })
        };
        let pools = match &choice.prompts {
            None => vec![pool(Role::Serve, choice.row, choice.per_group, 1.0)?],
            Some(p) => {
                vec![
                    pool(Role::Prefill, p.row, ask.prompts_at_once(p.row), p.instances)?,
                    pool(Role::Decode, choice.row, choice.per_group, choice.instances)?,
                ]
            }
        };
        let usual = on.system.chip.chips_per_host().min(domain(&on.system)).max(1);
        let site = Site {
            model: &ask.model,
            tool,
            list,
            formats: on.formats,
            cached: ask.fetching(choice.offload()).cached,
            drafts: choice.row.drafts.0,
            longest: ask.workload.input.shares.last().copied().unwrap_or(ask.requests.input),
            chip: &on.system.chip,
            newest: on.engine.newest,
            per_host: ask.handover.as_ref().and_then(|h| h.chips_per_host).unwrap_or(usual),
        };
        Some((site, pools))
    }

    /// Command lines that start a replica.
    pub(super) fn launch(&self, choice: &Choice) -> Vec<String> {
        let Some((site, pools)) = self.site(choice, 1.0) else { return Vec::new() };
        let shown = |pool: &Pool| match pool.role {
            Role::Serve => site.line(pool, false),
            role => format!("{}: {}", role.name(), site.line(pool, false)),
        };
        pools.iter().map(shown).collect()
    }

    /// Commands, files and load tests, where asked for.
    pub(super) fn handover(&self, choice: &Choice, e: &Estimate) -> Option<Handover> {
        let ask = &self.ask;
        let asked = ask.handover.as_ref()?;
        let (site, pools) = self.site(choice, e.replicas + e.standby)?;
        let (input, output) = (&ask.workload.input, &ask.workload.output);
        let target = |bound: Bound| self.question.limits.get(bound).map(|s| s * 1e3);
        let aim = Aim {
            input: (input.mean, input.variance.sqrt()),
            output: (output.mean, output.variance.sqrt()),
            rate: match self.question.traffic {
                Traffic::Rate(rate) => Some(rate),
                Traffic::Users { .. } => self.coming(e),
                Traffic::Fill(_) | Traffic::Within { .. } | Traffic::One => None,
            },
            concurrency: choice.per_group * choice.row.on().groups() * choice.instances * e.replicas,
            ttft_ms: e.ttft * 1e3,
            tpot_ms: e.tpot * 1e3,
            targets: (target(Bound::Ttft), target(Bound::Tpot)),
            replay: asked.replay.clone(),
        };
        Some(handover(&site, &pools, &aim, &ask.lists))
    }
}
