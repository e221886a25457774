//! The closed lists of a table of measurements: engines, modes, metrics.

use crate::SpecError;
use std::fmt;
use std::str::FromStr;

/// A closed list of words with their spelling in files.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $kind:literal, { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word used in files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = SpecError;

            fn from_str(text: &str) -> Result<Self, SpecError> {
                let found = Self::ALL.iter().copied().find(|word| word.name() == text);
                found.ok_or_else(|| SpecError::unknown($kind, text, Self::ALL.iter().map(|word| word.name())))
            }
        }
    };
}

words!(
    /// The software that was measured.
    Engine, "engine", {
        /// vLLM.
        Vllm = "vllm",
        Sglang = "sglang",
        /// TensorRT-LLM.
        TrtLlm = "trtllm",
        /// Plain PyTorch kernels.
        Torch = "torch",
        LlamaCpp = "llamacpp",
        /// DeepSeek's own serving system.
        DeepSeek = "deepseek",
        /// No overhead: for figures that were computed.
        Ideal = "ideal",
        /// Not stated.
        Unknown = "unknown",
    }
);

words!(
    /// What was run.
    Mode, "mode", {
        /// A fixed number of clients.
        Closed = "closed",
        /// Arrivals at a rate.
        Open = "open",
        /// Everything queued at once.
        MaxLoad = "max-load",
        /// One batch from prefill to the last token.
        Static = "static",
        StepDecode = "step-decode",
        StepPrefill = "step-prefill",
        /// One request at a time.
        SingleStream = "single-stream",
        /// One phase on machines of its own.
        Disaggregated = "disaggregated",
    }
);

words!(
    /// What was measured; the unit ends the word.
    Metric, "metric", {
        /// Time per output token after the first.
        TpotMs = "tpot_ms",
        /// Time to the first token.
        TtftMs = "ttft_ms",
        /// Gap between tokens as a client sees them.
        ItlMs = "itl_ms",
        /// From request to last token.
        E2eMs = "e2e_ms",
        /// Generated tokens per second of the whole system.
        OutputTokS = "output_tok_s",
        /// Generated tokens per second and chip.
        OutputTokSPerGpu = "output_tok_s_per_gpu",
        /// Prompt tokens per second and chip.
        InputTokSPerGpu = "input_tok_s_per_gpu",
        /// One forward pass.
        StepMs = "step_ms",
        /// Tokens per second while decoding, all sequences together.
        DecodeTokS = "decode_tok_s",
        /// Tokens per second while prefilling, all sequences together.
        PrefillTokS = "prefill_tok_s",
    }
);

impl Metric {
    /// Tokens generated per second, of a chip or of the whole system.
    pub fn is_output_rate(self) -> bool {
        matches!(self, Self::OutputTokS | Self::OutputTokSPerGpu | Self::DecodeTokS)
    }

    /// Prompt tokens per second, of a chip or of the whole system.
    pub fn is_input_rate(self) -> bool {
        matches!(self, Self::InputTokSPerGpu | Self::PrefillTokS)
    }

    /// Whether it counts all chips together.
    pub fn is_of_system(self) -> bool {
        matches!(self, Self::OutputTokS | Self::DecodeTokS | Self::PrefillTokS)
    }
}
