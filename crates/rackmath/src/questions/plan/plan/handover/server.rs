//! The command that starts one server, and its configuration file.

use super::config::config_name;
use super::line::Line;
use crate::plan::offload::gib;
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::model::Formats;
use rackmath_spec::{Dtype, Layout, Model};

/// Stands for a draft model nobody named.
pub(super) const DRAFT: &str = "DRAFT_MODEL";
/// Where servers listen.
pub(super) const PORT: u16 = 8000;
/// Where SGLang's prompt servers wait for those that decode.
pub(super) const BOOTSTRAP: u16 = 8998;

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::questions::plan::plan) enum Role {
    /// Prompts and answers.
    Serve,
    /// Prompts.
    Prefill,
    /// Answers.
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
}

/// Servers of one kind.
#[derive(Clone, Debug)]
pub(in crate::questions::plan::plan) struct Pool {
    /// What they do.
    pub role: Role,
    /// The cut of one.
    pub layout: Layout,
    /// Cache format.
    pub kv: Dtype,
    /// Sequences of one attention group.
    pub sequences: f64,
    /// Most tokens in a pass.
    pub chunk: f64,
    /// Share of memory used.
    pub memory: f64,
    /// How many, over all replicas.
    pub instances: u64,
    /// Bytes of host memory for the caches of one attention group.
    pub host_cache: Option<f64>,
}

/// What all servers of a plan share.
#[derive(Clone, Debug)]
pub(in crate::questions::plan::plan) struct Site<'a> {
    /// The model.
    pub model: &'a Model,
    /// The engine.
    pub tool: Tool,
    /// Weight formats as run.
    pub formats: Formats,
    /// Share of prompts cached.
    pub cached: f64,
    /// Tokens drafted for each step.
    pub drafts: f64,
    /// Tokens of the longest prompt foreseen.
    pub longest: f64,
    /// Who makes the chip.
    pub vendor: &'a str,
    /// Chips of a host.
    pub per_host: u64,
}

/// Where a command stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a page: no addresses.
    Page,
    /// In a script: with an address and, over several hosts, a rank from the environment.
    Script,
}

impl Site<'_> {
    /// The name the engine fetches weights by.
    pub(super) fn model_name(&self) -> &str {
        let name = self.model.hf.as_deref().unwrap_or(&self.model.id);
        let plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        // A name a shell would take apart is left for a person to fill in.
        if name.chars().all(plain) && !name.starts_with('-') { name } else { "MODEL" }
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

    /// Weights in a format that is neither the checkpoint's nor made while loading.
    pub(super) fn other_weights(&self) -> Option<String> {
        let own = self.model.formats();
        (self.formats.linear != own.linear && self.quantised().is_none()).then(|| self.formats.linear.to_string())
    }

    /// The word for weights narrowed while loading.
    fn quantised(&self) -> Option<&'static str> {
        let wide = self.model.formats().linear.bits() >= 16.0;
        (wide && self.formats.linear == Dtype::Fp8 && self.tool != Tool::TrtLlm).then_some("fp8")
    }

    /// The page's line for a pool; none for an engine without a command known here.
    pub(in crate::questions::plan::plan) fn shown(&self, pool: &Pool) -> String {
        self.line(pool, Place::Page)
    }

    /// One line.
    pub(super) fn line(&self, pool: &Pool, place: Place) -> String {
        let cut = flags::print(self.tool, &pool.layout).unwrap_or_default();
        match self.tool {
            Tool::Vllm => self.vllm(pool, &cut, place),
            Tool::Sglang => self.sglang(pool, &cut, place),
            Tool::TrtLlm => self.trtllm(pool, &cut, place),
            Tool::Megatron => String::new(),
        }
    }

    fn vllm(&self, pool: &Pool, cut: &str, place: Place) -> String {
        let (n, narrow) = (pool.sequences.ceil(), pool.kv.bits() < 12.0);
        let mut line = Line::new(format!(
            "vllm serve {} {cut} --max-num-seqs {n} --max-num-batched-tokens {} --gpu-memory-utilization {}",
            self.model_name(),
            pool.chunk,
            pool.memory
        ));
        line.when(narrow, "--kv-cache-dtype fp8");
        line.when(self.quantised().is_some(), "--quantization fp8");
        line.when(self.cached > 0.0, "--enable-prefix-caching");
        // The size is that of all ranks of one group. One connector for both ways is left to a person: see the notes.
        if let Some(bytes) = pool.host_cache.filter(|_| pool.role == Role::Serve) {
            line.add(format!(" --kv-offloading-backend native --kv-offloading-size {}", gib(bytes)));
        }
        if self.drafts > 0.0 {
            let method = if self.mtp() {
                "\"method\":\"mtp\"".into()
            } else {
                format!("\"method\":\"eagle3\",\"model\":\"{DRAFT}\"")
            };
            line.add(format!(" --speculative-config '{{{method},\"num_speculative_tokens\":{}}}'", self.drafts));
        }
        let kv_role = match pool.role {
            Role::Serve => None,
            Role::Prefill => Some("kv_producer"),
            Role::Decode => Some("kv_consumer"),
        };
        if let Some(kv_role) = kv_role {
            line.add(format!(
                "--kv-transfer-config '{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"{kv_role}\"}}'"
            ));
        }
        if place == Place::Script {
            line.add(format!(" --host 0.0.0.0 --port {PORT}"));
            let (hosts, d) = (self.hosts(pool), pool.layout.degrees());
            if hosts > 1 && d.tp * d.pp <= self.per_host {
                let local = d.dp.div_ceil(hosts);
                line.add(format!(
                    " --data-parallel-size-local {local} --data-parallel-address \"$HEAD\" --data-parallel-rpc-port 13345 $WORKER"
                ));
            } else if hosts > 1 {
                line.add(format!(" --nnodes {hosts} --node-rank \"$RANK\" --master-addr \"$HEAD\" $WORKER"));
            }
        }
        line.text()
    }

    fn sglang(&self, pool: &Pool, cut: &str, place: Place) -> String {
        let d = pool.layout.degrees();
        let all = pool.sequences.ceil() * d.dp as f64;
        // The engine divides its chunk among attention groups.
        let shared = if cut.contains("--enable-dp-attention") { d.dp as f64 } else { 1.0 };
        let mut line = Line::new(format!(
            "python -m sglang.launch_server --model-path {} {cut} --max-running-requests {all} --chunked-prefill-size {} \
             --mem-fraction-static {}",
            self.model_name(),
            pool.chunk * shared,
            pool.memory
        ));
        line.when(pool.kv.bits() < 12.0, "--kv-cache-dtype fp8_e4m3");
        line.when(self.quantised().is_some(), "--quantization fp8");
        line.when(pool.host_cache.is_some(), "--enable-hierarchical-cache");
        if self.drafts > 0.0 {
            let algorithm =
                if self.mtp() { "EAGLE".into() } else { format!("EAGLE3 --speculative-draft-model-path {DRAFT}") };
            line.add(format!(
                " --speculative-algorithm {algorithm} --speculative-num-steps {} --speculative-eagle-topk 1 \
                 --speculative-num-draft-tokens {}",
                self.drafts,
                self.drafts + 1.0
            ));
        }
        match pool.role {
            Role::Serve => {}
            Role::Prefill => {
                line.add(format!(
                    " --disaggregation-mode prefill --disaggregation-transfer-backend nixl \
                     --disaggregation-bootstrap-port {BOOTSTRAP}"
                ));
            }
            Role::Decode => line.add("--disaggregation-mode decode --disaggregation-transfer-backend nixl"),
        }
        if place == Place::Script {
            line.add(format!(" --host 0.0.0.0 --port {PORT}"));
            let hosts = self.hosts(pool);
            if hosts > 1 {
                line.add(format!(" --nnodes {hosts} --node-rank \"$RANK\" --dist-init-addr \"$HEAD:5000\""));
            }
        }
        line.text()
    }

    fn trtllm(&self, pool: &Pool, cut: &str, place: Place) -> String {
        // Attention data parallel is said in the file, not on the line.
        let cut = cut.replace("--enable_attention_dp", "");
        let mut line = Line::new(format!(
            "trtllm-serve {} {cut} --max_batch_size {} --max_num_tokens {} --kv_cache_free_gpu_memory_fraction {}",
            self.model_name(),
            pool.sequences.ceil(),
            pool.chunk,
            pool.memory
        ));
        line.when(pool.role != Role::Decode, "--enable_chunked_prefill");
        if place == Place::Script || self.config(pool).is_some() {
            line.add(format!(" --config {}", config_name(pool.role)));
        }
        if place == Place::Script {
            line.add(format!(" --host 0.0.0.0 --port {PORT}"));
        }
        line.text()
    }

    /// What a script sets or says before its command.
    pub(super) fn preamble(&self, pool: &Pool) -> Vec<String> {
        let (hosts, chips) = (self.hosts(pool), pool.layout.chips());
        let mut all = vec![format!("{} of these, {chips} chips each, on {hosts} host(s) each", pool.instances)];
        if hosts > 1 && self.tool != Tool::TrtLlm {
            all.push("RANK is the number of this host, from 0; HEAD the address of host 0".into());
        }
        all
    }

    /// Flags of the hosts behind the first one.
    pub(super) fn behind(&self, pool: &Pool) -> Option<String> {
        let (hosts, d) = (self.hosts(pool), pool.layout.degrees());
        if hosts == 1 || self.tool != Tool::Vllm {
            return None;
        }
        let local = d.dp.div_ceil(hosts);
        let start = format!(" --data-parallel-start-rank $((RANK*{local}))");
        Some(format!("--headless{}", if d.tp * d.pp <= self.per_host { start } else { String::new() }))
    }

    /// Shell lines before the command.
    pub(super) fn setup(&self, pool: &Pool) -> String {
        self.behind(pool)
            .map_or_else(String::new, |flags| format!("WORKER=\nif [ \"$RANK\" != 0 ]; then WORKER=\"{flags}\"; fi\n"))
    }
}
