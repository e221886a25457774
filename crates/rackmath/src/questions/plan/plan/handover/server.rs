//! The servers of a plan: what holds of each, which its tool's templates turn into commands and files.

use crate::plan::offload::gib;
use rackmath_spec::command::{Facts, FlagList, OfVendor, filled, line};
use rackmath_spec::engine::Version;
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Formats;
use rackmath_spec::{Chip, Dtype, Layout, Model};

/// Stands for a draft model nobody named.
pub(super) const DRAFT: &str = "DRAFT_MODEL";
/// Where servers listen.
pub(super) const PORT: u16 = 8000;

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Serve,
    Prefill,
    Decode,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }

    /// Its configuration file, where the engine takes one.
    pub(super) fn config(self) -> &'static str {
        match self {
            Self::Serve => "llm_config.yaml",
            Self::Prefill => "ctx_config.yaml",
            Self::Decode => "gen_config.yaml",
        }
    }
}

/// Servers of one kind.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub role: Role,
    pub layout: Layout,
    pub kv: Dtype,
    /// Sequences of one attention group.
    pub sequences: f64,
    /// Most tokens in a pass.
    pub chunk: f64,
    /// Share of memory used.
    pub memory: f64,
    /// Tokens of the longest request allowed, where the cache does not hold one of the model's own longest.
    pub context: Option<u64>,
    /// How many, over all replicas.
    pub instances: u64,
    /// Bytes of host memory for the caches of one attention group.
    pub host_cache: Option<f64>,
}

/// What all servers of a plan share.
#[derive(Clone, Debug)]
pub(super) struct Site<'a> {
    pub model: &'a Model,
    pub tool: Tool,
    /// What the tool takes, and how it is started.
    pub list: &'a FlagList,
    pub formats: Formats,
    /// Share of prompts cached.
    pub cached: f64,
    /// Tokens drafted for each step.
    pub drafts: f64,
    /// Tokens of the longest prompt foreseen.
    pub longest: f64,
    pub chip: &'a Chip,
    /// The newest release whose runs were compared.
    pub newest: Option<Version>,
    pub per_host: u64,
}

/// Those of a table that hold, with their values.
pub(super) fn facts(table: impl IntoIterator<Item = (&'static str, bool, String)>) -> Facts {
    table.into_iter().filter(|(_, holds, _)| *holds).map(|(name, _, value)| (name, value)).collect()
}

impl Site<'_> {
    /// What the tool wants on these chips, where that is something else.
    pub(super) fn here(&self) -> Option<&OfVendor> {
        self.list.on(&self.chip.vendor)
    }

    /// The image of its servers.
    pub(super) fn image(&self) -> String {
        let own = self.here().and_then(|here| here.image.clone()).or_else(|| self.list.image.clone());
        own.unwrap_or_else(|| format!("{}:latest", self.list.id))
    }

    /// The release that is started.
    pub(super) fn version(&self) -> &str {
        self.here().map_or(&self.list.version, |here| &here.version)
    }

    /// The newest release whose runs were compared, where the one that is started is later.
    pub(super) fn older(&self) -> Option<Version> {
        let started = self.version().parse::<Version>().ok()?;
        self.newest.filter(|newest| started.is_after(*newest))
    }

    /// A layout as the tool counts it: by devices, of which a chip may hold several.
    fn counted(&self, layout: &Layout) -> Layout {
        let devices = self.here().and_then(|here| here.devices.get(&self.chip.id)).copied().unwrap_or(1);
        let d = layout.degrees();
        let (ep, etp) = if d.ep > 1 { (d.ep * devices, d.etp) } else { (d.ep, d.etp * devices) };
        Layout::new(Degrees { tp: d.tp * devices, ep, etp, ..d }).unwrap_or(*layout)
    }

    /// The name the engine fetches weights by.
    pub(super) fn model_name(&self) -> &str {
        let name = self.model.hf.as_deref().unwrap_or(&self.model.id);
        let plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        // A name a shell would take apart is left for a person to fill in.
        if name.chars().all(plain) && !name.starts_with('-') { name } else { "MODEL" }
    }

    /// The name of the deployment: what Kubernetes allows of the model's.
    pub(super) fn name(&self) -> String {
        let last = self.model_name().rsplit('/').next().unwrap_or("model");
        let clean = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let short: String = last.chars().map(clean).take(30).collect();
        let short = short.trim_matches('-');
        if short.starts_with(|c: char| c.is_ascii_alphabetic()) { short.into() } else { format!("llm-{short}") }
    }

    /// Whether the model drafts for itself.
    pub(super) fn mtp(&self) -> bool {
        self.model.shape().is_some_and(|s| s.mtp.is_some())
    }

    /// Hosts of one instance.
    pub(super) fn hosts(&self, pool: &Pool) -> u64 {
        let d = pool.layout.degrees();
        let group = (d.tp * d.pp * d.cp).max(1);
        if group <= self.per_host {
            // Whole attention groups stay on a host.
            return d.dp.div_ceil((self.per_host / group).max(1));
        }
        pool.layout.chips().div_ceil(self.per_host)
    }

    /// Chips of one host of an instance.
    pub(super) fn chips_on_host(&self, pool: &Pool) -> u64 {
        pool.layout.chips().div_ceil(self.hosts(pool))
    }

    /// Where each instance of a pool answers: a pod's name within its service.
    pub(super) fn addresses(&self, pool: &Pool) -> Vec<String> {
        let base = format!("{}-{}", self.name(), pool.role.name());
        let several = self.hosts(pool) > 1;
        let one = |i: u64| if several { format!("{base}-{i}-0.{base}-{i}") } else { format!("{base}-{i}.{base}") };
        (0..pool.instances).map(one).collect()
    }

    /// Weights in a format that is neither the checkpoint's nor made while loading.
    pub(super) fn other_weights(&self) -> Option<String> {
        let made = self.narrowed() && self.list.says("narrowed_weights");
        (self.formats.linear != self.model.formats().linear && !made).then(|| self.formats.linear.to_string())
    }

    /// Whether weights may be narrowed while loading.
    fn narrowed(&self) -> bool {
        self.model.formats().linear.bits() >= 16.0 && self.formats.linear == Dtype::Fp8
    }

    fn facts(&self, pool: &Pool, script: bool) -> Facts {
        let (d, hosts, none) = (pool.layout.degrees(), self.hosts(pool), String::new);
        let cut = flags::print(self.tool, &self.counted(&pool.layout)).unwrap_or_default();
        let cut: Vec<&str> = cut.split(' ').filter(|word| !self.list.said_in_config.contains(*word)).collect();
        let (all, bytes) = (d.dp as f64, pool.host_cache.unwrap_or(0.0));
        facts([
            ("model", true, self.model_name().into()),
            ("cut", true, cut.join(" ")),
            ("sequences", true, pool.sequences.ceil().to_string()),
            ("all_sequences", true, (pool.sequences.ceil() * all).to_string()),
            ("chunk", true, pool.chunk.to_string()),
            ("all_chunks", true, (pool.chunk * all).to_string()),
            ("memory", true, pool.memory.to_string()),
            ("context", pool.context.is_some(), pool.context.unwrap_or(0).to_string()),
            ("longest", true, self.longest.ceil().to_string()),
            ("config", true, pool.role.config().into()),
            ("port", true, PORT.to_string()),
            ("draft_model", true, DRAFT.into()),
            (pool.role.name(), true, none()),
            ("script", script, none()),
            ("narrow_cache", pool.kv.bits() < 12.0, none()),
            ("narrowed_weights", self.narrowed(), none()),
            ("cached", self.cached > 0.0, none()),
            ("host_cache", pool.host_cache.is_some(), gib(bytes).to_string()),
            ("host_cache_of_rank", true, (bytes / (d.tp * d.pp * d.cp) as f64).floor().to_string()),
            ("drafts", self.drafts > 0.0, self.drafts.to_string()),
            ("drafts_and_one", true, (self.drafts + 1.0).to_string()),
            ("mtp", self.mtp(), none()),
            ("attention_dp", d.dp > 1, none()),
            ("hosts", hosts > 1, hosts.to_string()),
            ("groups_on_host", d.tp * d.pp <= self.per_host, d.dp.div_ceil(hosts).to_string()),
        ])
    }

    /// The command of a pool: on a page, without addresses; in a script, with one and, over several hosts, a rank from the
    /// environment.
    pub(super) fn line(&self, pool: &Pool, script: bool) -> String {
        let set = |(name, value): (&String, &String)| format!("{name}={value} ");
        let variables: String = self.here().iter().flat_map(|here| &here.env).map(set).collect();
        variables + &self.command(pool, script)
    }

    /// The same without the variables before it.
    pub(super) fn command(&self, pool: &Pool, script: bool) -> String {
        line(&self.list.lines, &self.facts(pool, script))
    }

    /// The configuration file of a pool, where its engine wants one.
    pub(super) fn config(&self, pool: &Pool) -> Option<String> {
        let lines = filled(&self.list.config, &self.facts(pool, true));
        (!lines.is_empty()).then(|| lines.join("\n") + "\n")
    }

    /// Flags of the hosts behind the first one; empty where there are none or they need none.
    pub(super) fn behind(&self, pool: &Pool) -> String {
        line(&self.list.behind, &self.facts(pool, true))
    }

    /// What a script says before its command.
    pub(super) fn preamble(&self, pool: &Pool) -> Vec<String> {
        let (hosts, chips) = (self.hosts(pool), pool.layout.chips());
        let mut all = vec![format!("{} of these, {chips} chips each, on {hosts} host(s) each", pool.instances)];
        if hosts > 1 && self.list.says("hosts") {
            all.push("RANK is the number of this host, from 0; HEAD the address of host 0".into());
        }
        if let Some(here) = self.here().filter(|here| !here.container.is_empty()) {
            all.push(format!("in a container: docker run {} {}", here.container, self.image()));
        }
        all
    }

    /// Shell lines before the command.
    pub(super) fn setup(&self, pool: &Pool) -> String {
        let behind = self.behind(pool);
        if behind.is_empty() {
            return behind;
        }
        format!("WORKER=\nif [ \"$RANK\" != 0 ]; then WORKER=\"{behind}\"; fi\n")
    }
}
