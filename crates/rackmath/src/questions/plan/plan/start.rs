//! From a configuration to the servers that make it up.

use super::handover::{Expected, Handover, Pool, Role, Site, handover as written};
use super::prepare::Prepared;
use super::{Ask, offload};
use rackmath_spec::file::flags::{self, Tool};
use rackmath_theory::layout::domain;
use rackmath_theory::plan::{Bound, Configuration, Estimate, Traffic};

/// Chips of a host where the scale-up domain is a node.
const NODE: u64 = 8;
/// Chips of a host where the domain is a rack: a GB200 NVL72 has four to a node (accelerators_per_node in MLPerf Inference
/// 6.1, closed/Crusoe/systems/GB200-NVL72; llm-d's guide for DeepSeek V4 on GB200 says the same, read 2026-11).
const TRAY: u64 = 4;

/// The servers of a configuration, in so many replicas; none for an engine whose commands are not known here.
pub(super) fn site<'a>(
    ask: &'a Ask,
    p: &Prepared,
    c: &Configuration,
    per_group: f64,
    replicas: f64,
) -> Option<(Site<'a>, Vec<Pool>)> {
    let entry = &p.entries[c.row];
    let kind = &p.kinds[p.kind_of[entry.deployment]];
    let tool = kind.engine.family.parse::<Tool>().ok().filter(|t| *t != Tool::Megatron)?;
    let machine = &ask.machines[kind.machine];
    let pool = |role: Role, row: usize, sequences: f64, instances: f64| {
        let d = &p.deployments[p.entries[row].deployment];
        flags::print(tool, &d.deployment.layout).ok()?;
        Some(Pool {
            role,
            layout: d.deployment.layout,
            kv: d.deployment.kv,
            sequences,
            chunk: p.entries[row].chunk,
            memory: d.deployment.engine.schedule.memory.get(),
            instances: (instances * replicas) as u64,
            host_cache: offload::kept(ask, p, row),
        })
    };
    let pools = match c.split {
        None => vec![pool(Role::Serve, c.row, per_group, 1.0)?],
        Some((prefill, ratio)) => {
            let row = p.space.prefills[prefill].row;
            let (np, nd) = p.space.ratios[ratio];
            let own = offload::requests(ask, p.entries[row].offload);
            let prompts = (p.entries[row].chunk / own.new_tokens()).ceil().max(1.0);
            vec![pool(Role::Prefill, row, prompts, np)?, pool(Role::Decode, c.row, per_group, nd)?]
        }
    };
    let scale_up = domain(&machine.system);
    let usual = if scale_up <= NODE { scale_up.max(1) } else { TRAY };
    let asked = ask.handover.as_ref().and_then(|h| h.chips_per_host);
    let longest = ask.workload.input.shares.last().copied().unwrap_or(ask.requests.input);
    let site = Site {
        model: &ask.model,
        tool,
        formats: kind.formats,
        cached: offload::requests(ask, offload::of(p, c)).cached,
        drafts: entry.drafts.0,
        longest,
        vendor: &machine.system.chip.vendor,
        per_host: asked.unwrap_or(usual),
    };
    Some((site, pools))
}

/// Commands, files and load tests, where asked for.
pub(super) fn handover(ask: &Ask, p: &Prepared, c: &Configuration, e: &Estimate, per_group: f64) -> Option<Handover> {
    let asked = ask.handover.as_ref()?;
    let (site, pools) = site(ask, p, c, per_group, e.replicas)?;
    let instances = c.split.map_or(1.0, |(_, ratio)| p.space.ratios[ratio].1);
    let groups = p.deployments[p.entries[c.row].deployment].deployment.layout.degrees().dp as f64;
    let (input, output) = (&ask.workload.input, &ask.workload.output);
    let aim = Expected {
        input: (input.mean, input.variance.sqrt()),
        output: (output.mean, output.variance.sqrt()),
        rate: match ask.question.traffic {
            Traffic::Rate(rate) => Some(rate),
            Traffic::Fill(_) | Traffic::Within { .. } | Traffic::One => None,
        },
        concurrency: per_group * groups * instances * e.replicas,
        ttft_ms: e.ttft * 1e3,
        tpot_ms: e.tpot * 1e3,
        targets: (
            ask.question.limits.get(Bound::Ttft).map(|s| s * 1e3),
            ask.question.limits.get(Bound::Tpot).map(|s| s * 1e3),
        ),
        replay: asked.replay.clone(),
    };
    Some(written(&site, &pools, &aim, &ask.images))
}
