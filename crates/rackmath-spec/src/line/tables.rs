//! Which flags of each server bear on memory, layout and schedule, and what they set.

use super::Program;

/// What a flag sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    Model,
    Utilisation,
    Cache,
    Blocks,
    CacheTokens,
    Longest,
    Sequences,
    Pass,
    Part,
    Block,
    Eager,
    /// None, or anything else.
    GraphMode,
    /// 0 is eager.
    Level,
    GraphMost,
    GraphSizes,
    Chunked,
    Prefix,
    NoPrefix,
    Offload,
    /// Pictures, films of a prompt.
    Pictures,
    Films,
    /// Neither, and no tower is loaded.
    TextOnly,
    /// No picture in the dry run.
    NoDryPictures,
    Layers,
    ExpertLayers,
    AllExperts,
    /// Tensors that lie elsewhere, by patterns of their names.
    Tensors,
    /// Whether what was not said is lowered until it fits, what stays free then, and the shortest context.
    Fit,
    FitSpare,
    FitLongest,
    /// Shares of cards, how they are dealt to, and which of them is the main one.
    Shares,
    Dealt,
    MainCard,
    /// Slots share one cache.
    Unified,
    Flash,
    Drafts,
    Drafter,
    Method,
    Lora,
    MostLoras,
    LoraRank,
    Weights,
    Dtype,
    Kv,
    /// Keys or values alone, of llama.cpp.
    KvPart,
    /// A repository with the format behind a colon.
    Repo,
    Depth,
    Prompt,
    Answer,
    /// A file of settings.
    Settings,
    /// Bears on the answer and is not modelled.
    Bears,
}

use Means::{
    AllExperts, Answer, Bears, Block, Blocks, Cache, CacheTokens, Chunked, Depth, Drafter, Drafts, Eager, ExpertLayers,
    Films, Flash, GraphMode, GraphMost, GraphSizes, Kv, KvPart, Layers, Level, Longest, Lora, LoraRank, Method, Model,
    MostLoras, NoDryPictures, NoPrefix, Offload, Part, Pass, Pictures, Prefix, Prompt, Repo, Sequences, Settings,
    TextOnly, Utilisation, Weights,
};

/// Names without leading dashes and with `-` for `_`; parts of a value stand behind dots.
pub(super) fn table(program: Program) -> &'static [(Means, &'static str)] {
    match program {
        Program::Vllm => VLLM,
        Program::Sglang => SGLANG,
        Program::TrtLlm => TRTLLM,
        Program::LlamaCpp => LLAMACPP,
    }
}

const VLLM: &[(Means, &str)] = &[
    (Model, "model"),
    (Utilisation, "gpu-memory-utilization device-memory-utilization"),
    (Cache, "kv-cache-memory-bytes kv-cache-memory"),
    (Blocks, "num-gpu-blocks-override"),
    (Pictures, "limit-mm-per-prompt.image limit-mm-per-prompt.image.count"),
    (Films, "limit-mm-per-prompt.video limit-mm-per-prompt.video.count"),
    (TextOnly, "language-model-only"),
    (NoDryPictures, "skip-mm-profiling"),
    (Longest, "max-model-len"),
    (Sequences, "max-num-seqs"),
    (Pass, "max-num-batched-tokens"),
    (Block, "block-size"),
    (Eager, "enforce-eager"),
    (GraphMode, "compilation-config.cudagraph-mode cc.cudagraph-mode O.cudagraph-mode"),
    (Level, "O optimization-level compilation-config"),
    (
        GraphMost,
        "max-cudagraph-capture-size compilation-config.max-cudagraph-capture-size cc.max-cudagraph-capture-\
         size",
    ),
    (
        GraphSizes,
        "cudagraph-capture-sizes cuda-graph-sizes compilation-config.cudagraph-capture-sizes cc.cudagraph-\
         capture-sizes",
    ),
    (Chunked, "enable-chunked-prefill"),
    (Prefix, "enable-prefix-caching"),
    (Offload, "cpu-offload-gb"),
    (
        Drafts,
        "speculative-config.num-speculative-tokens sc.num-speculative-tokens num-speculative-tokens spec-\
         tokens",
    ),
    (Drafter, "speculative-config.model sc.model speculative-model spec-model"),
    (Method, "speculative-config.method sc.method spec-method"),
    (Lora, "enable-lora"),
    (MostLoras, "max-loras"),
    (LoraRank, "max-lora-rank"),
    (Weights, "quantization q"),
    (Means::Dtype, "dtype"),
    (Kv, "kv-cache-dtype"),
    (Settings, "config"),
    (Bears, VLLM_BEARS),
];

const SGLANG: &[(Means, &str)] = &[
    (Model, "model-path model"),
    (Utilisation, "mem-fraction-static"),
    (CacheTokens, "max-total-tokens"),
    (Longest, "context-length"),
    (Sequences, "max-running-requests"),
    (Pass, "chunked-prefill-size"),
    (Block, "page-size"),
    (Eager, "disable-cuda-graph"),
    (GraphMost, "cuda-graph-max-bs cuda-graph-max-bs-decode"),
    (GraphSizes, "cuda-graph-bs cuda-graph-bs-decode"),
    (NoPrefix, "disable-radix-cache"),
    (Offload, "cpu-offload-gb"),
    (Drafts, "speculative-num-steps"),
    (Drafter, "speculative-draft-model-path speculative-draft"),
    (Method, "speculative-algorithm speculative-algo"),
    (Lora, "enable-lora"),
    (MostLoras, "max-loras-per-batch"),
    (LoraRank, "max-lora-rank"),
    (Weights, "quantization"),
    (Means::Dtype, "dtype"),
    (Kv, "kv-cache-dtype"),
    (Settings, "config"),
    (Bears, SGLANG_BEARS),
];

const TRTLLM: &[(Means, &str)] = &[
    (Model, "model"),
    (
        Utilisation,
        "kv-cache-free-gpu-memory-fraction free-gpu-memory-fraction kv-cache-config.free-gpu-memory-fraction",
    ),
    (CacheTokens, "kv-cache-config.max-tokens"),
    (Longest, "max-seq-len"),
    (Sequences, "max-batch-size"),
    (Pass, "max-num-tokens"),
    (Block, "kv-cache-config.tokens-per-block"),
    (GraphMode, "cuda-graph-config"),
    (GraphMost, "cuda-graph-config.max-batch-size"),
    (GraphSizes, "cuda-graph-config.batch-sizes"),
    (Chunked, "enable-chunked-prefill"),
    (Prefix, "kv-cache-config.enable-block-reuse"),
    (Drafts, "speculative-config.max-draft-len speculative-config.num-nextn-predict-layers"),
    (Drafter, "speculative-config.speculative-model speculative-config.speculative-model-dir"),
    (Method, "speculative-config.decoding-type"),
    (Kv, "kv-cache-config.dtype"),
    (Means::Dtype, "dtype"),
    (Settings, "extra-llm-api-options config"),
    (
        Bears,
        "backend max-beam-width kv-cache-config.max-attention-window kv-cache-config.host-cache-size moe-\
         config.backend moe-config.max-num-tokens attn-backend enable-autotuner disable-overlap-scheduler \
         cluster-size moe-cluster-parallel-size cache-transceiver-config.backend quant-config.quant-algo \
         lora-config stream-interval attention-dp-config.enable-balance",
    ),
];

const LLAMACPP: &[(Means, &str)] = &[
    (Model, "m model"),
    (Repo, "hf hfr hf-repo"),
    (Longest, "c ctx-size"),
    (Sequences, "np parallel"),
    (Pass, "b batch-size"),
    (Part, "ub ubatch-size"),
    (Layers, "ngl gpu-layers n-gpu-layers"),
    (ExpertLayers, "ncmoe n-cpu-moe"),
    (AllExperts, "cmoe cpu-moe"),
    (Means::Tensors, "ot override-tensor"),
    (Means::Fit, "fit"),
    (Means::FitSpare, "fitt fit-target"),
    (Means::FitLongest, "fitc fit-ctx"),
    (Means::Unified, "kvu kv-unified"),
    (Means::Shares, "ts tensor-split"),
    (Means::Dealt, "sm split-mode"),
    (Means::MainCard, "mg main-gpu"),
    (Flash, "fa flash-attn"),
    (KvPart, "ctk cache-type-k ctv cache-type-v"),
    (Drafts, "draft draft-n draft-max spec-draft-n-max"),
    (Drafter, "md model-draft spec-draft-model"),
    (Prompt, "p n-prompt"),
    (Answer, "n n-gen"),
    (Depth, "d n-depth"),
    (
        Bears,
        "nkvo no-kv-offload swa-\
         full ngld gpu-layers-draft n-gpu-layers-draft cd ctx-size-draft mmproj mm no-mmproj cram cache-ram \
         device dev rpc hff hf-file lora lora-scaled cb cont-batching nocb no-cont-batching \
         threads t threads-batch tb mlock no-mmap mmap load-mode numa rope-scaling rope-\
         scale yarn-orig-ctx hfd hf-repo-draft",
    ),
];

const VLLM_BEARS: &str = "kv-transfer-config kv-offloading-size kv-offloading-backend limit-mm-per-prompt mm-processor-kwargs max-seq-\
     len-to-capture hf-overrides rope-scaling rope-theta all2all-backend attention-backend attention-config moe-\
     backend enable-dbo ubatch-size enable-eplb eplb-config enable-sleep-mode mamba-cache-dtype mamba-ssm-cache-\
     dtype mamba-block-size mamba-cache-mode disable-hybrid-kv-cache-manager disable-sliding-window kv-cache-\
     dtype-skip-layers kv-sharing-fast-prefill mm-encoder-only mm-encoder-tp-mode prefill-context-parallel-size pcp num-lookahead-slots num-scheduler-steps async-scheduling \
     scheduling-policy long-prefill-token-threshold max-num-partial-prefills max-long-partial-prefills data-\
     parallel-size-local dpl model-impl runner task convert performance-mode calculate-kv-scales offload-backend \
     offload-group-size offload-params offload-num-in-group offload-prefetch-step additional-config disable-\
     custom-all-reduce compilation-config.pass-config compilation-config.splitting-ops compilation-config.mode \
     compilation-config.level compilation-config.custom-ops compilation-config.use-inductor kernel-config enable-\
     return-routed-experts speculative-config.draft-tensor-parallel-size speculative-config.quantization \
     speculative-config.prompt-lookup-max speculative-config.prompt-lookup-min speculative-config.max-model-len \
     speculative-draft-tensor-parallel-size scheduler-delay-factor preemption-mode use-v2-block-manager guided-\
     decoding-backend dcp-comm-backend max-cpu-loras fully-sharded-loras lora-extra-vocab-size lora-dtype mm-\
     processor-cache-gb enable-prompt-embeds device ngram-prompt-lookup-max ngram-prompt-lookup-min";

const SGLANG_BEARS: &str = "max-prefill-tokens prefill-max-requests enable-mixed-chunk schedule-policy schedule-conservativeness enable-\
     hierarchical-cache hicache-ratio hicache-size hicache-write-policy hicache-io-backend hicache-mem-layout \
     hicache-storage-backend moe-a2a-backend moe-runner-backend attention-backend prefill-attention-backend \
     decode-attention-backend disaggregation-mode enable-torch-compile torch-compile-max-bs enable-two-batch-\
     overlap enable-single-batch-overlap swa-full-tokens-ratio max-mamba-cache-size mamba-ssm-dtype mamba-full-\
     memory-ratio mamba-scheduler-strategy enable-memory-saver disable-overlap-schedule stream-interval enable-\
     piecewise-cuda-graph disable-piecewise-cuda-graph piecewise-cuda-graph-max-tokens cuda-graph-padding \
     disable-cuda-graph-padding json-model-override-args torchao-config enable-multimodal attn-cp-size attention-\
     context-parallel-size moe-dp-size moe-dense-tp-size enable-dp-lm-head speculative-eagle-topk speculative-\
     num-draft-tokens speculative-draft-model-quantization lora-paths enable-eplb deepep-mode enable-deepep-moe \
     fp8-gemm-backend dp-attention-local-control-broadcast load-balance-method num-continuous-decode-steps \
     enable-mla enable-flashinfer-mla enable-nsa-prefill-context-parallel offload-group-size offload-mode \
     offload-num-in-group disable-hybrid-swa-memory enable-ep-moe enable-flashinfer-trtllm-moe max-queued-\
     requests";

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray as _;

    #[test]
    fn no_name_is_cut_where_its_line_ends() {
        for program in Program::VARIANTS {
            let names = table(*program).iter().flat_map(|(_, names)| names.split_whitespace());
            let cut: Vec<&str> = names.filter(|name| name.ends_with('-') || name.starts_with('-')).collect();
            assert!(cut.is_empty(), "{program}: {cut:?}");
        }
        assert_eq!(table(Program::LlamaCpp).iter().filter(|(_, names)| names.contains("swa-full")).count(), 1);
    }
}
