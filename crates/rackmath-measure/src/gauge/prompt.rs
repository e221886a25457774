//! Prompts of an exact length, and the bodies of requests.
//!
//! A prompt is a list of token numbers where the server takes one (`/v1/completions`): no tokenizer is needed and none can change the count.
//! The numbers come from the middle of the vocabulary, which misses special tokens. For chat the text is a word repeated; how many
//! tokens a word and the template are is asked of the server once (`/tokenize`, or the `usage` of two requests).

use super::schedule::Arrival;
use rackmath_units::Chance;
use serde::Serialize;
use std::fmt::Write as _;

/// Whose way of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// `/v1/completions` with token numbers.
    Tokens,
    /// `/v1/completions` with text.
    Completions,
    /// `/v1/chat/completions`.
    Chat,
}

impl Endpoint {
    pub fn path(self) -> &'static str {
        match self {
            Self::Tokens | Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// How requests are written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Writing {
    pub endpoint: Endpoint,
    pub model: String,
    /// First and one past the last token number that may be used.
    pub ids: (u32, u32),
    /// Tokens of a text of no words (the template), and of each word.
    pub words: (f64, f64),
    /// Whether every chunk is to bring the count so far.
    pub continuous: bool,
    /// Whether the server can be told to write on to the limit (`ignore_eos`).
    pub ignore_eos: bool,
    pub seed: u64,
}

impl Writing {
    /// The body of a request; its answer is at most `output` tokens, and streamed.
    pub fn body(&self, segments: &[(u64, u32)], output: u32) -> Vec<u8> {
        self.written(segments, output, true)
    }

    pub(super) fn written(&self, segments: &[(u64, u32)], output: u32, stream: bool) -> Vec<u8> {
        let mut body = String::with_capacity(256 + 7 * segments.iter().map(|(_, n)| *n as usize).sum::<usize>());
        let model = serde_json::to_string(&self.model).unwrap_or_default();
        let limit = if self.endpoint == Endpoint::Chat { "max_completion_tokens" } else { "max_tokens" };
        // What is not the OpenAI interface's own is left out for hosts that refuse it.
        let limit = if self.ignore_eos { "max_tokens" } else { limit };
        let _ = write!(body, "{{\"model\":{model},\"{limit}\":{output},\"stream\":{stream}");
        if stream {
            let count = if self.continuous { ",\"continuous_usage_stats\":true" } else { "" };
            let _ = write!(body, ",\"stream_options\":{{\"include_usage\":true{count}}}");
        }
        if self.ignore_eos {
            body.push_str(",\"ignore_eos\":true,\"temperature\":0.8");
        }
        match self.endpoint {
            Endpoint::Tokens => {
                body.push_str(",\"prompt\":[");
                self.ids(segments, &mut body);
                body.push_str("]}");
            }
            Endpoint::Completions => {
                body.push_str(",\"prompt\":\"");
                self.text(segments, &mut body);
                body.push_str("\"}");
            }
            Endpoint::Chat => {
                body.push_str(",\"messages\":[{\"role\":\"user\",\"content\":\"");
                self.text(segments, &mut body);
                body.push_str("\"}]}");
            }
        }
        body.into_bytes()
    }

    pub(super) fn of(&self, arrival: &Arrival) -> Vec<u8> {
        self.body(&arrival.segments, arrival.output)
    }

    fn ids(&self, segments: &[(u64, u32)], body: &mut String) {
        let (low, high) = self.ids;
        let span = u64::from(high.saturating_sub(low).max(1));
        let mut first = true;
        for (content, n) in segments {
            let mut chance = Chance::new(self.seed ^ content.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for _ in 0..*n {
                let _ = write!(body, "{}{}", if first { "" } else { "," }, u64::from(low) + chance.below(span));
                first = false;
            }
        }
    }

    /// Words without a sign that JSON would escape. The first of each segment tells it apart from others.
    fn text(&self, segments: &[(u64, u32)], body: &mut String) {
        let (template, word) = self.words;
        let mut left = -template;
        for (content, n) in segments {
            left += f64::from(*n);
            let mut chance = Chance::new(self.seed ^ content.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            while left >= word * 0.5 {
                body.push_str(WORDS[chance.below(WORDS.len() as u64) as usize]);
                left -= word;
            }
        }
    }
}

/// Each with its blank one token in nearly every vocabulary since 2023.
const WORDS: [&str; 16] = [
    " the", " of", " and", " to", " in", " is", " that", " for", " was", " on", " with", " as", " at", " by", " from",
    " or",
];

/// Token numbers from a tenth to six tenths of a vocabulary; those of a small one where its size is not known.
pub fn safe_ids(vocabulary: Option<u64>) -> (u32, u32) {
    match vocabulary {
        Some(n) if n >= 10 => ((n / 10) as u32, (n * 6 / 10).max(n / 10 + 1).min(u64::from(u32::MAX)) as u32),
        _ => (1_000, 20_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writing(endpoint: Endpoint) -> Writing {
        let ids = safe_ids(Some(320));
        Writing {
            endpoint,
            model: "m \"x\"".into(),
            ids,
            words: (12.0, 1.0),
            continuous: true,
            ignore_eos: true,
            seed: 5,
        }
    }

    #[test]
    fn a_prompt_has_exactly_its_tokens_and_equal_segments_are_equal() {
        let w = writing(Endpoint::Tokens);
        let read = |segments: &[(u64, u32)]| -> Vec<u64> {
            let body: serde_json::Value = serde_json::from_slice(&w.body(segments, 9)).expect("json");
            assert_eq!((body["max_tokens"].as_u64(), body["model"].as_str()), (Some(9), Some("m \"x\"")));
            body["prompt"].as_array().expect("ids").iter().map(|id| id.as_u64().expect("id")).collect()
        };
        let (a, b) = (read(&[(1, 40), (2, 10)]), read(&[(1, 40), (3, 10)]));
        assert_eq!((a.len(), a[..40] == b[..40], a[40..] == b[40..]), (50, true, false));
        assert!(a.iter().all(|id| (32..192).contains(id)));
    }

    #[test]
    fn a_chat_has_as_many_words_as_the_template_leaves() {
        let body: serde_json::Value =
            serde_json::from_slice(&writing(Endpoint::Chat).body(&[(1, 40)], 9)).expect("json");
        let text = body["messages"][0]["content"].as_str().expect("text");
        assert_eq!(text.split_whitespace().count(), 28);
    }
}
