//! The command lines that start a plan, in the words of the engine.

use rackmath_spec::engine::Engine;
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::{Dtype, Layout, Model};

/// What a server is started with.
pub(super) struct Server<'a> {
    pub model: &'a Model,
    pub engine: &'a Engine,
    pub layout: &'a Layout,
    pub kv: Dtype,
    /// Sequences of one attention group.
    pub sequences: f64,
}

impl Server<'_> {
    /// One line, or none for an engine without a command line known here.
    pub(super) fn line(&self) -> Option<String> {
        let tool = self.engine.family.parse::<Tool>().ok()?;
        let cut = flags::print(tool, self.layout).ok()?;
        let model = self.model.hf.as_deref().unwrap_or(&self.model.id);
        let (n, s) = (self.sequences.ceil(), &self.engine.schedule);
        let (chunk, memory) = (s.chunk, s.memory.get());
        let all = n * self.layout.degrees().dp as f64;
        let narrow = self.kv.bits() < 12.0;
        let line = match tool {
            Tool::Vllm => format!(
                "vllm serve {model} {cut} --max-num-seqs {n} --max-num-batched-tokens {chunk} \
                 --gpu-memory-utilization {memory}{}",
                if narrow { " --kv-cache-dtype fp8" } else { "" }
            ),
            Tool::Sglang => format!(
                "python -m sglang.launch_server --model-path {model} {cut} --max-running-requests {all} \
                 --chunked-prefill-size {chunk} --mem-fraction-static {memory}{}",
                if narrow { " --kv-cache-dtype fp8_e4m3" } else { "" }
            ),
            Tool::TrtLlm => format!(
                "trtllm-serve {model} {cut} --max_batch_size {n} --max_num_tokens {chunk} \
                 --kv_cache_free_gpu_memory_fraction {memory}"
            ),
            Tool::Megatron => return None,
        };
        Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}
