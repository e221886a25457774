//! A plan as a Kubernetes manifest: a StatefulSet and a headless Service per pool, a router, and one Service in front.
//!
//! An instance on several hosts is a StatefulSet of its own, a pod per host; a pod's index is its rank. Loading weights takes
//! minutes: a pod is asked for two hours before it is given up. Ranks find each other before they answer; only rank 0 does.

use super::server::{PORT, Pool, Role, Site, facts};
use super::{DISAGG_CONFIG, Router};
use rackmath_spec::command::{Facts, FlagList, filled};

/// The documents of a manifest, in the order of [`Document`]; what follows `#?` must hold for its line.
const TEMPLATE: &str = include_str!("kubernetes.yaml");

#[derive(Clone, Copy)]
enum Document {
    /// Files of the engine, for those that take them.
    Configs,
    Service,
    Servers,
    Router,
}

impl Document {
    fn of(self, facts: &Facts) -> String {
        let part = |line: &'static str| line.split_once("  #? ").map_or(("", line), |(line, when)| (when, line));
        let lines: Vec<_> =
            TEMPLATE.split("---\n").nth(self as usize).into_iter().flat_map(str::lines).map(part).collect();
        format!("---\n{}\n", filled(&lines, facts).join("\n"))
    }
}

/// The whole manifest.
pub(super) fn manifest(site: &Site, pools: &[Pool], router: Option<&Router>) -> String {
    let app = site.name();
    let mut out = format!("# {} for {}: kubectl apply -f kubernetes.yaml\n", site.list.id, site.model_name());
    let data = files(site, pools, router);
    let image = |list: &FlagList| list.image.clone().unwrap_or_else(|| format!("{}:latest", list.id));
    let shared = [("app", true, app.clone()), ("port", true, PORT.to_string())];
    let with = |more: Facts| facts(shared.clone()).into_iter().chain(more).collect::<Facts>();
    if !data.is_empty() {
        out += &Document::Configs.of(&with(facts([("data", true, data.join("\n"))])));
    }
    for pool in pools {
        let (hosts, role) = (site.hosts(pool), pool.role.name());
        if hosts > 1 && !site.list.says("hosts") {
            out += &["# ", role, " spans hosts: start it under MPI, for example with the MPI operator\n"].concat();
            continue;
        }
        let set = format!("{app}-{role}");
        let sets: Vec<(String, u64)> = if hosts > 1 {
            (0..pool.instances).map(|i| (format!("{set}-{i}"), hosts)).collect()
        } else {
            vec![(set, pool.instances)]
        };
        for (set, replicas) in sets {
            let env = site.here().filter(|here| !here.env.is_empty()).map(|here| {
                let one = |(name, value): (&String, &String)| format!("- name: {name}\n  value: \"{value}\"");
                here.env.iter().map(one).collect::<Vec<_>>().join("\n")
            });
            let pod_address = site.list.pod_address.as_ref().filter(|_| pool.role != Role::Serve);
            let facts = with(facts([
                ("service", true, set.clone()),
                ("args", true, start(site, pool, &set)),
                ("set", true, set),
                ("role", true, role.into()),
                ("replicas", true, replicas.to_string()),
                ("image", true, site.image()),
                ("env", env.is_some(), env.clone().unwrap_or_default()),
                ("hosts", hosts > 1, String::new()),
                ("pod_address", pod_address.is_some(), pod_address.cloned().unwrap_or_default()),
                ("device", true, device(&site.chip.vendor).into()),
                ("chips", true, site.chips_on_host(pool).to_string()),
                ("data", site.config(pool).is_some(), String::new()),
            ]));
            out += &(Document::Service.of(&facts) + &Document::Servers.of(&facts));
        }
    }
    if let Some(r) = router {
        let install = r.list.package.as_ref().map_or_else(String::new, |p| format!("pip install {p}\n"));
        let line = r.line.replace(&format!("-c {DISAGG_CONFIG}"), &format!("-c /config/{DISAGG_CONFIG}"));
        out += &Document::Router.of(&with(facts([
            ("image", true, image(&r.list)),
            ("args", true, format!("{install}exec {line}")),
            ("data", r.config.is_some(), String::new()),
        ])));
    }
    let front = if router.is_some() { "router" } else { Role::Serve.name() };
    out + &Document::Service.of(&with(facts([("service", true, app.clone()), ("role", true, front.into())])))
}

/// Lines of the engine's files, as a manifest holds them.
fn files(site: &Site, pools: &[Pool], router: Option<&Router>) -> Vec<String> {
    let own = pools.iter().filter_map(|p| Some((p.role.config(), site.config(p)?)));
    let all = own.chain(router.and_then(|r| Some((DISAGG_CONFIG, r.config.clone()?))));
    let lines = |(name, text): (&str, String)| {
        let text: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
        std::iter::once(format!("  {name}: |")).chain(text).collect::<Vec<_>>()
    };
    all.flat_map(lines).collect()
}

/// The device a pod asks for.
fn device(vendor: &str) -> &'static str {
    match vendor {
        "AMD" => "amd.com/gpu",
        "Intel" => "habana.ai/gaudi",
        "Google" => "google.com/tpu",
        "AWS" => "aws.amazon.com/neuron",
        _ => "nvidia.com/gpu",
    }
}

/// The shell lines a server's container runs.
fn start(site: &Site, pool: &Pool, set: &str) -> String {
    let head = if site.hosts(pool) > 1 { format!("export HEAD={set}-0.{set}\n") } else { String::new() };
    let file = pool.role.config();
    let line = site.command(pool, true).replace(&format!("--config {file}"), &format!("--config /config/{file}"));
    format!("{head}{}exec {line}", site.setup(pool))
}
