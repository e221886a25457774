//! The configuration file of a server, for engines that take one.

use super::server::{DRAFT, Pool, Role, Site};
use rackmath_spec::file::flags::Tool;
use std::fmt::Write as _;

/// The configuration file of a role.
pub(super) fn config_name(role: Role) -> &'static str {
    match role {
        Role::Serve => "llm_config.yaml",
        Role::Prefill => "ctx_config.yaml",
        Role::Decode => "gen_config.yaml",
    }
}

impl Site<'_> {
    /// The configuration file of a pool, where its engine wants one.
    pub(super) fn config(&self, pool: &Pool) -> Option<String> {
        if self.tool != Tool::TrtLlm {
            return None;
        }
        let mut text = String::new();
        if pool.layout.degrees().dp > 1 {
            text += "enable_attention_dp: true\n";
        }
        let _ = write!(text, "kv_cache_config:\n  free_gpu_memory_fraction: {}\n", pool.memory);
        let _ = writeln!(text, "  enable_block_reuse: {}", self.cached > 0.0);
        if pool.kv.bits() < 12.0 {
            text += "  dtype: fp8\n";
        }
        if let Some(bytes) = pool.host_cache {
            // Of each rank.
            let d = pool.layout.degrees();
            let _ = writeln!(text, "  host_cache_size: {}", (bytes / (d.tp * d.pp * d.cp) as f64).floor());
        }
        if pool.role != Role::Serve {
            let buffer = self.longest.ceil();
            let _ = write!(text, "cache_transceiver_config:\n  backend: UCX\n  max_tokens_in_buffer: {buffer}\n");
        }
        if pool.role == Role::Prefill {
            text += "disable_overlap_scheduler: true\n";
        }
        if self.drafts > 0.0 {
            text += "speculative_config:\n";
            let _ = if self.mtp() {
                write!(text, "  decoding_type: MTP\n  num_nextn_predict_layers: {}\n", self.drafts)
            } else {
                write!(
                    text,
                    "  decoding_type: Eagle3\n  max_draft_len: {}\n  speculative_model: {DRAFT}\n",
                    self.drafts
                )
            };
        }
        Some(text)
    }
}
