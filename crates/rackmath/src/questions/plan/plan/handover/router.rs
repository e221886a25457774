//! What stands before several servers and shares requests out.

use super::Command;
use super::line::Line;
use super::server::{BOOTSTRAP, PORT, Pool, Role, Site};
use rackmath_spec::file::flags::Tool;

/// TensorRT-LLM's file of servers.
pub(super) const DISAGG_CONFIG: &str = "disagg_config.yaml";

/// A router.
pub(super) struct Router {
    /// Its command.
    pub command: Command,
    /// Its file.
    pub config: Option<String>,
}

/// The name of the deployment: what Kubernetes allows of the model's.
pub(super) fn name(site: &Site) -> String {
    let last = site.model_name().rsplit('/').next().unwrap_or("model");
    let clean: String =
        last.to_ascii_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let short: String = clean.chars().take(30).collect();
    let short = short.trim_matches('-');
    if short.starts_with(|c: char| c.is_ascii_alphabetic()) { short.into() } else { format!("llm-{short}") }
}

/// Where each instance of a pool answers: a pod's name within its service.
pub(super) fn hosts(site: &Site, pool: &Pool) -> Vec<String> {
    let base = format!("{}-{}", name(site), pool.role.name());
    let one = |i: u64| {
        if site.hosts(pool) > 1 { format!("{base}-{i}-0.{base}-{i}") } else { format!("{base}-{i}.{base}") }
    };
    (0..pool.instances).map(one).collect()
}

/// The router of a plan; none where one server answers alone, or the engine has none for alike replicas.
pub(super) fn router(site: &Site, pools: &[Pool]) -> Option<Router> {
    let urls = |role: Role| -> Vec<String> {
        let pool = pools.iter().find(|p| p.role == role);
        pool.map_or_else(Vec::new, |p| hosts(site, p).into_iter().map(|h| format!("{h}:{PORT}")).collect())
    };
    let policy = if site.cached > 0.0 { "cache_aware" } else { "round_robin" };
    let listen = format!("--host 0.0.0.0 --port {PORT} --policy {policy}");
    let (prefill, decode, serve) = (urls(Role::Prefill), urls(Role::Decode), urls(Role::Serve));
    let split = !prefill.is_empty();
    if !split && serve.len() < 2 {
        return None;
    }
    let all = |flag: &str, urls: &[String], tail: &str| {
        urls.iter().map(|u| format!(" {flag} http://{u}{tail}")).collect::<Vec<_>>().concat()
    };
    let workers = || format!(" --worker-urls{}", all("", &serve, ""));
    let command = |flags: &str, line: String| Command {
        role: "router".into(),
        flags: flags.into(),
        line: Line::new(line).text(),
    };
    match site.tool {
        Tool::Vllm => {
            let servers = if split {
                format!(" --vllm-pd-disaggregation{}{}", all("--prefill", &prefill, ""), all("--decode", &decode, ""))
            } else {
                workers()
            };
            Some(Router { command: command("vllm-router", format!("vllm-router {listen}{servers}")), config: None })
        }
        Tool::Sglang => {
            let servers = if split {
                let tail = format!(" {BOOTSTRAP}");
                format!(" --pd-disaggregation{}{}", all("--prefill", &prefill, &tail), all("--decode", &decode, ""))
            } else {
                workers()
            };
            let line = format!("python -m sglang_router.launch_router {listen}{servers}");
            Some(Router { command: command("sglang-router", line), config: None })
        }
        Tool::TrtLlm if split => {
            let line = format!("trtllm-serve disaggregated -c {DISAGG_CONFIG}");
            let config = Some(disaggregated(&prefill, &decode));
            Some(Router { command: command("trtllm-disaggregated", line), config })
        }
        Tool::TrtLlm | Tool::Megatron => None,
    }
}

fn disaggregated(prefill: &[String], decode: &[String]) -> String {
    let pool = |name: &str, urls: &[String]| {
        let list = urls.iter().map(|u| format!("    - \"{u}\"\n")).collect::<Vec<_>>().concat();
        format!("{name}:\n  num_instances: {}\n  urls:\n{list}", urls.len())
    };
    format!(
        "hostname: 0.0.0.0\nport: {PORT}\nbackend: pytorch\n{}{}",
        pool("context_servers", prefill),
        pool("generation_servers", decode)
    )
}
