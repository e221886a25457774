//! What one event of a streamed answer says: whether it carries tokens, the count so far, the end, an error.
//!
//! A chunk is not a token. By `continuous_usage_stats` the count is exact; otherwise a chunk with text, reasoning or a tool call is at least
//! one, as is one with an empty text and no role (a token that prints nothing). The first chat chunk, which only names the role, is none;
//! neither is the last one of llama.cpp, which brings an empty text, the reason of the end and `usage` together.

use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// Whether it carries something that was generated.
    pub content: bool,
    /// It ended the answer with an empty text: a token for some engines, none for others.
    pub maybe: bool,
    /// Tokens generated so far, where it says so.
    pub output: Option<u64>,
    pub input: Option<u64>,
    pub cached: Option<u64>,
    pub finished: Option<String>,
    pub done: bool,
    pub error: Option<String>,
    /// Bytes that were no UTF-8.
    pub garbled: bool,
    /// No JSON, or not of the shape of a chunk.
    pub malformed: bool,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Chunk {
    pub fn read(data: &[u8]) -> Self {
        if data.trim_ascii() == b"[DONE]" {
            return Self { done: true, ..Self::default() };
        }
        let text = String::from_utf8_lossy(data);
        let garbled = matches!(text, std::borrow::Cow::Owned(_));
        match serde_json::from_str::<Raw>(&text) {
            Ok(raw) => Self { garbled, ..Self::of(raw) },
            Err(_) => Self { garbled, malformed: true, ..Self::default() },
        }
    }

    fn of(raw: Raw) -> Self {
        if let Some(error) = raw.error.filter(|e| !e.is_null()) {
            let said = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
            return Self { error: Some(short(&said)), ..Self::default() };
        }
        if raw.choices.is_none() && raw.usage.is_none() {
            return Self { malformed: true, ..Self::default() };
        }
        let usage = raw.usage.as_ref();
        let mut chunk = Self {
            output: usage.and_then(|u| u.completion_tokens),
            input: usage.and_then(|u| u.prompt_tokens),
            cached: usage.and_then(|u| u.prompt_tokens_details.as_ref()).and_then(|d| d.cached_tokens),
            ..Self::default()
        };
        for choice in raw.choices.into_iter().flatten() {
            let full = |text: &Option<String>| text.as_ref().is_some_and(|t| !t.is_empty());
            let empty = |text: &Option<String>| text.as_ref().is_some_and(String::is_empty);
            let (says, blank) = match &choice.delta {
                Some(d) => {
                    let tools = d.tool_calls.as_ref().and_then(Value::as_array).is_some_and(|t| !t.is_empty());
                    (
                        full(&d.content) || full(&d.reasoning) || full(&d.reasoning_content) || tools,
                        d.role.is_none() && empty(&d.content),
                    )
                }
                None => (full(&choice.text), empty(&choice.text)),
            };
            let ends = choice.finish_reason.is_some();
            chunk.content |= says || (blank && !ends);
            chunk.maybe |= blank && ends && usage.is_none();
            chunk.finished = chunk.finished.or(choice.finish_reason);
        }
        chunk
    }
}

/// The first line of what a server said, cut to a line's length.
pub(super) fn short(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(160).collect();
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse::Events;
    use proptest::prelude::*;

    /// Chunks with content, last count, ends.
    fn summed(stream: &[u8]) -> (usize, usize, Option<u64>, Option<u64>, usize) {
        let (mut events, mut chunks) = (Events::default(), Vec::new());
        events.push(stream, |data| chunks.push(Chunk::read(data))).expect("short");
        assert!(chunks.iter().all(|c| !c.malformed && c.error.is_none()), "{chunks:?}");
        let last = |pick: fn(&Chunk) -> Option<u64>| chunks.iter().rev().find_map(pick);
        (
            chunks.iter().filter(|c| c.content).count(),
            chunks.iter().filter(|c| c.maybe).count(),
            last(|c| c.output),
            last(|c| c.input),
            chunks.iter().filter(|c| c.done).count(),
        )
    }

    #[test]
    fn streams_of_real_servers() {
        // llama.cpp: 11 texts, one of two tokens, 12 by usage. vLLM: eleven empty texts and an empty last one, 12 by usage.
        assert_eq!(
            summed(include_bytes!("../../tests/data/llamacpp_completions_stream.sse")),
            (11, 0, Some(12), Some(29), 1)
        );
        assert_eq!(
            summed(include_bytes!("../../tests/data/vllm_0.32.0_completions_stream.sse")),
            (11, 1, Some(12), Some(16), 1)
        );
        let (content, _, output, _, done) = summed(include_bytes!("../../tests/data/llamacpp_chat_stream.sse"));
        assert!(content >= 6 && output.is_none_or(|n| n == 8) && done == 1, "{content} {output:?}");
        assert_eq!(summed(include_bytes!("../../tests/data/vllm_0.32.0_completions_stream_interval4.sse")).2, Some(18));
    }

    #[test]
    fn errors_and_odd_chunks() {
        assert_eq!(Chunk::read(b"{\"error\":{\"message\":\"no room\\nat all\"}}").error.as_deref(), Some("no room"));
        assert!(Chunk::read(b"<html>").malformed && Chunk::read(b"{}").malformed);
        let half = Chunk::read(b"{\"choices\":[{\"text\":\"\xe2\x82\"}]}");
        assert!(half.garbled && half.content && !half.malformed);
        let reasoning = Chunk::read(b"{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}");
        assert!(reasoning.content);
        assert!(!Chunk::read(b"{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}").content);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Chunk::read(&bytes);
        }
    }
}
