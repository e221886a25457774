//! The Prometheus text format (0.0.4) of a server's `/metrics`, and what the engines call what in it.
//!
//! A line is `name{label="value",...} number [milliseconds]`; `#` begins a comment; histograms are cumulative `_bucket` lines with `le`,
//! a `_sum` and a `_count`. Lines that are none are counted, not fatal: a proxy may add its own.
//! Series of several engines add up; series of several ranks of one engine (`tp_rank`, `pp_rank`) say the same thing, and rank 0 speaks for all.
//! Names: vLLM 0.32.0, SGLang 0.5.18, TensorRT-LLM's `metrics/collector.py`, llama.cpp 2026-08, TGI 3.3.7, Dynamo 1.4.1, read 2026-11.

use serde::Serialize;
use std::collections::BTreeMap;

/// More series than any server has.
const MOST_SAMPLES: usize = 200_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// One answer of `/metrics`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    pub samples: Vec<Sample>,
    /// Lines that could not be read.
    pub unread: usize,
}

impl Scrape {
    pub fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match sample(line) {
                Some(sample) if scrape.samples.len() < MOST_SAMPLES => scrape.samples.push(sample),
                _ => scrape.unread += 1,
            }
        }
        scrape
    }

    fn of<'a, 'b>(&'a self, name: &'b str) -> impl Iterator<Item = &'a Sample> + use<'a, 'b> {
        let first_rank =
            |s: &Sample| ["tp_rank", "pp_rank"].iter().all(|rank| s.labels.get(*rank).is_none_or(|r| r == "0"));
        self.samples.iter().filter(move |s| s.name == name && first_rank(s))
    }

    /// The sum over a name's series; nothing where there is none.
    pub fn sum(&self, name: &str) -> Option<f64> {
        let mut all = self.of(name).map(|s| s.value).filter(|v| v.is_finite()).peekable();
        all.peek()?;
        Some(all.sum())
    }

    /// The mean over a name's series, for shares.
    pub fn mean(&self, name: &str) -> Option<f64> {
        let all: Vec<f64> = self.of(name).map(|s| s.value).filter(|v| v.is_finite()).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// A label of the first series of a name.
    pub fn label(&self, name: &str, label: &str) -> Option<&str> {
        self.of(name).find_map(|s| s.labels.get(label)).map(String::as_str)
    }

    /// Cumulative counts of a histogram by upper edge, series added, edges in order.
    pub fn buckets(&self, name: &str) -> Vec<(f64, f64)> {
        let mut all: Vec<(f64, f64)> = Vec::new();
        let series = format!("{name}_bucket");
        for s in self.of(&series) {
            let Some(edge) = s.labels.get("le").and_then(|le| number(le)) else { continue };
            match all.iter_mut().find(|(e, _)| *e == edge) {
                Some((_, count)) => *count += s.value,
                None => all.push((edge, s.value)),
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }

    /// The model that an engine's series name, where all name the same.
    fn model(&self, d: &Dialect) -> Option<String> {
        let own = self.samples.iter().filter(|s| s.name.starts_with(d.prefix));
        let mut names = own.filter_map(|s| s.labels.get("model_name").or_else(|| s.labels.get("model")));
        let first = names.next().filter(|name| !name.is_empty())?;
        names.all(|name| name == first).then(|| first.clone())
    }

    /// Whose metrics these are.
    pub fn dialect(&self) -> Option<&'static Dialect> {
        DIALECTS.iter().find(|d| self.samples.iter().any(|s| s.name.starts_with(d.prefix)))
    }
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => text.parse().ok(),
    }
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, mut rest) = line.split_at(end);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = read_labels(inside, &mut labels)?;
    }
    let value = number(rest.split_whitespace().next()?)?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// What stands behind the closing brace.
fn read_labels<'a>(mut rest: &'a str, labels: &mut BTreeMap<String, String>) -> Option<&'a str> {
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        }
        let (name, after) = rest.split_once('=')?;
        let quoted = after.trim_start().strip_prefix('"')?;
        let (mut value, mut end, mut escaped) = (String::new(), None, false);
        for (i, c) in quoted.char_indices() {
            match c {
                _ if escaped => {
                    value.push(if c == 'n' { '\n' } else { c });
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    end = Some(i);
                    break;
                }
                _ => value.push(c),
            }
        }
        labels.insert(name.trim().to_owned(), value);
        rest = &quoted[end? + 1..];
    }
}

/// What an engine calls what. An empty name: it does not tell. Names of histograms are without `_sum` and `_count`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Dialect {
    pub engine: &'static str,
    pub prefix: &'static str,
    pub running: &'static str,
    pub waiting: &'static str,
    /// Share of the KV cache in use, 0 to 1.
    pub kv_used: &'static str,
    pub hits: &'static str,
    /// What hits are counted of; empty: of the prompt tokens and the hits together.
    pub queries: &'static str,
    pub prompt_tokens: &'static str,
    pub output_tokens: &'static str,
    /// Requests that ended: a counter, or the count of a histogram.
    pub finished: &'static str,
    pub ttft: &'static str,
    pub tpot: &'static str,
    pub e2e: &'static str,
    pub queue: &'static str,
    /// Passes of the engine: a count.
    pub steps: &'static str,
    pub preempted: &'static str,
    pub drafted: &'static str,
    pub accepted: &'static str,
    pub drafts: &'static str,
    /// Seconds of decoding, where only their sum is told.
    pub decode_seconds: &'static str,
    /// Tokens the KV cache holds.
    pub kv_tokens: &'static str,
}

const NONE: Dialect = Dialect {
    engine: "",
    prefix: "",
    running: "",
    waiting: "",
    kv_used: "",
    hits: "",
    queries: "",
    prompt_tokens: "",
    output_tokens: "",
    finished: "",
    ttft: "",
    tpot: "",
    e2e: "",
    queue: "",
    steps: "",
    preempted: "",
    drafted: "",
    accepted: "",
    drafts: "",
    decode_seconds: "",
    kv_tokens: "",
};

/// In the order in which they are looked for: a Dynamo front end stands before engines of other names.
pub static DIALECTS: &[Dialect] = &[
    Dialect {
        engine: "vllm",
        prefix: "vllm:",
        running: "vllm:num_requests_running",
        waiting: "vllm:num_requests_waiting",
        kv_used: "vllm:kv_cache_usage_perc",
        hits: "vllm:prefix_cache_hits_total",
        queries: "vllm:prefix_cache_queries_total",
        prompt_tokens: "vllm:prompt_tokens_total",
        output_tokens: "vllm:generation_tokens_total",
        finished: "vllm:request_success_total",
        ttft: "vllm:time_to_first_token_seconds",
        tpot: "vllm:inter_token_latency_seconds",
        e2e: "vllm:e2e_request_latency_seconds",
        queue: "vllm:request_queue_time_seconds",
        steps: "vllm:iteration_tokens_total_count",
        preempted: "vllm:num_preemptions_total",
        drafted: "vllm:spec_decode_num_draft_tokens_total",
        accepted: "vllm:spec_decode_num_accepted_tokens_total",
        drafts: "vllm:spec_decode_num_drafts_total",
        ..NONE
    },
    Dialect {
        engine: "sglang",
        prefix: "sglang:",
        running: "sglang:num_running_reqs",
        waiting: "sglang:num_queue_reqs",
        kv_used: "sglang:token_usage",
        hits: "sglang:cached_tokens_total",
        queries: "sglang:prompt_tokens_total",
        prompt_tokens: "sglang:prompt_tokens_total",
        output_tokens: "sglang:generation_tokens_total",
        finished: "sglang:num_requests_total",
        ttft: "sglang:time_to_first_token_seconds",
        tpot: "sglang:inter_token_latency_seconds",
        e2e: "sglang:e2e_request_latency_seconds",
        queue: "sglang:queue_time_seconds",
        preempted: "sglang:num_retracted_requests_total",
        kv_tokens: "sglang:max_total_num_tokens",
        ..NONE
    },
    Dialect {
        engine: "trtllm",
        prefix: "trtllm_",
        running: "trtllm_num_active_requests",
        waiting: "trtllm_num_queued_requests",
        kv_used: "trtllm_kv_cache_utilization",
        hits: "trtllm_prompt_cached_tokens_total",
        queries: "trtllm_prompt_tokens_total",
        prompt_tokens: "trtllm_prompt_tokens_total",
        output_tokens: "trtllm_generation_tokens_total",
        finished: "trtllm_request_success_total",
        ttft: "trtllm_time_to_first_token_seconds",
        tpot: "trtllm_time_per_output_token_seconds",
        e2e: "trtllm_e2e_request_latency_seconds",
        queue: "trtllm_request_queue_time_seconds",
        drafted: "trtllm_spec_decode_drafted_tokens_total",
        accepted: "trtllm_spec_decode_accepted_tokens_total",
        ..NONE
    },
    Dialect {
        engine: "llamacpp",
        prefix: "llamacpp:",
        running: "llamacpp:requests_processing",
        waiting: "llamacpp:requests_deferred",
        hits: "llamacpp:prompt_tokens_cached_total",
        prompt_tokens: "llamacpp:prompt_tokens_total",
        output_tokens: "llamacpp:tokens_predicted_total",
        steps: "llamacpp:n_decode_total",
        decode_seconds: "llamacpp:tokens_predicted_seconds_total",
        drafted: "llamacpp:spec_decode_num_draft_tokens_total",
        accepted: "llamacpp:spec_decode_num_accepted_tokens_total",
        drafts: "llamacpp:spec_decode_num_drafts_total",
        ..NONE
    },
    Dialect {
        engine: "tgi",
        prefix: "tgi_",
        running: "tgi_batch_current_size",
        waiting: "tgi_queue_size",
        prompt_tokens: "tgi_request_input_length_sum",
        output_tokens: "tgi_request_generated_tokens_sum",
        finished: "tgi_request_success",
        tpot: "tgi_request_mean_time_per_token_duration",
        e2e: "tgi_request_duration",
        queue: "tgi_request_queue_duration",
        ..NONE
    },
    Dialect {
        engine: "dynamo",
        prefix: "dynamo_",
        running: "dynamo_frontend_inflight_requests",
        waiting: "dynamo_frontend_queued_requests",
        hits: "dynamo_frontend_cached_tokens_sum",
        queries: "dynamo_frontend_input_sequence_tokens_sum",
        prompt_tokens: "dynamo_frontend_input_sequence_tokens_sum",
        output_tokens: "dynamo_frontend_output_tokens_total",
        finished: "dynamo_frontend_requests_total",
        ttft: "dynamo_frontend_time_to_first_token_seconds",
        tpot: "dynamo_frontend_inter_token_latency_seconds",
        e2e: "dynamo_frontend_request_duration_seconds",
        ..NONE
    },
];

/// What a scrape says, in one vocabulary; what the engine does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reading {
    pub engine: String,
    /// The one model that the series are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    pub kv_used: Option<f64>,
    pub hits: Option<f64>,
    pub queries: Option<f64>,
    pub prompt_tokens: Option<f64>,
    pub output_tokens: Option<f64>,
    pub finished: Option<f64>,
    /// Sum in seconds and count.
    pub ttft: Option<(f64, f64)>,
    pub tpot: Option<(f64, f64)>,
    pub e2e: Option<(f64, f64)>,
    pub queue: Option<(f64, f64)>,
    pub steps: Option<f64>,
    pub preempted: Option<f64>,
    pub drafted: Option<f64>,
    pub accepted: Option<f64>,
    pub drafts: Option<f64>,
    pub kv_tokens: Option<f64>,
    #[serde(skip)]
    pub ttft_buckets: Vec<(f64, f64)>,
    #[serde(skip)]
    pub tpot_buckets: Vec<(f64, f64)>,
}

impl Reading {
    /// Nothing where the metrics are of no engine that is known.
    pub fn of(scrape: &Scrape) -> Option<Self> {
        let d = scrape.dialect()?;
        let sum = |name: &str| if name.is_empty() { None } else { scrape.sum(name) };
        let pair = |name: &str| Some((sum(&format!("{name}_sum"))?, sum(&format!("{name}_count"))?));
        let histogram = |name: &str| if name.is_empty() { None } else { pair(name) };
        let edges = |name: &str| if name.is_empty() { Vec::new() } else { scrape.buckets(name) };
        // Without a prefix cache of its own count, what was computed and what was found make up the prompts.
        let (hits, computed) = (sum(d.hits), sum(d.prompt_tokens));
        let together = || Some(hits? + computed?);
        let decoded = || Some((sum(d.decode_seconds)?, sum(d.output_tokens)?));
        let info = scrape.label("vllm:cache_config_info", "kv_cache_size_tokens").and_then(|t| t.parse().ok());
        let blocks = |label| scrape.label("vllm:cache_config_info", label).and_then(|t| t.parse::<f64>().ok());
        let by_blocks = || Some(blocks("block_size")? * blocks("num_gpu_blocks")?);
        Some(Self {
            engine: d.engine.to_owned(),
            model: scrape.model(d),
            running: sum(d.running),
            waiting: sum(d.waiting),
            kv_used: if d.kv_used.is_empty() { None } else { scrape.mean(d.kv_used) },
            hits,
            queries: if d.queries.is_empty() { together() } else { sum(d.queries) },
            prompt_tokens: computed,
            output_tokens: sum(d.output_tokens),
            finished: sum(d.finished),
            ttft: histogram(d.ttft),
            tpot: histogram(d.tpot).or_else(decoded),
            e2e: histogram(d.e2e),
            queue: histogram(d.queue),
            steps: sum(d.steps),
            preempted: sum(d.preempted),
            drafted: sum(d.drafted),
            accepted: sum(d.accepted),
            drafts: sum(d.drafts),
            kv_tokens: sum(d.kv_tokens).or(info).or_else(by_blocks),
            ttft_buckets: edges(d.ttft),
            tpot_buckets: edges(d.tpot),
        })
    }
}

impl Reading {
    /// All prompt tokens, found in a cache or not: llama.cpp counts them apart.
    pub fn prompts(&self) -> Option<f64> {
        if self.engine == "llamacpp" { self.queries } else { self.prompt_tokens }
    }
}

/// Between which edges of a histogram the p-th of the values lies that came between two scrapes.
pub fn between(before: &[(f64, f64)], after: &[(f64, f64)], p: f64) -> Option<(f64, f64)> {
    let was = |edge: f64| before.iter().find(|(e, _)| *e == edge).map_or(0.0, |(_, n)| *n);
    let new: Vec<(f64, f64)> = after.iter().map(|(edge, n)| (*edge, (n - was(*edge)).max(0.0))).collect();
    let total = new.last()?.1;
    if total <= 0.0 {
        return None;
    }
    let at = new.iter().position(|(_, n)| *n >= p * total)?;
    Some((if at == 0 { 0.0 } else { new[at - 1].0 }, new[at].0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VLLM: &str = include_str!("../tests/data/vllm_0.32.0_metrics_busy.txt");
    const LLAMA: &str = include_str!("../tests/data/llamacpp_metrics_busy.txt");

    #[test]
    fn a_busy_vllm_is_read() {
        let scrape = Scrape::read(VLLM);
        assert_eq!(scrape.unread, 0);
        let r = Reading::of(&scrape).expect("vllm");
        assert_eq!((r.engine.as_str(), r.running, r.waiting, r.finished), ("vllm", Some(16.0), Some(24.0), Some(27.0)));
        assert_eq!((r.prompt_tokens, r.output_tokens, r.steps), (Some(2695.0), Some(456.0), Some(324.0)));
        assert_eq!(r.ttft, Some((13.397576093673706, 43.0)));
        assert!(r.kv_tokens.is_some_and(|n| n > 1000.0), "{:?}", r.kv_tokens);
        let (low, high) = between(&[], &r.tpot_buckets, 0.5).expect("tokens came");
        assert!(low < high && low >= 0.0);
    }

    #[test]
    fn a_busy_llama_cpp_is_read() {
        let r = Reading::of(&Scrape::read(LLAMA)).expect("llama.cpp");
        assert_eq!((r.engine.as_str(), r.running, r.waiting), ("llamacpp", Some(4.0), Some(4.0)));
        assert!(r.tpot.is_some_and(|(s, n)| s > 0.0 && n > 0.0));
    }

    #[test]
    fn labels_with_escapes_and_lines_that_are_none() {
        let s = Scrape::read("a{x=\"q\\\"\\\\\",y=\"1, }\"} 2 17\nnot a line\nb NaN\nb 1\n<html>\n");
        assert_eq!(s.samples[0].labels["x"], "q\"\\");
        assert_eq!(s.samples[0].labels["y"], "1, }");
        assert_eq!((s.sum("a"), s.sum("b"), s.sum("c"), s.unread), (Some(2.0), Some(1.0), None, 2));
    }

    #[test]
    fn engines_add_up_and_ranks_do_not() {
        let s = Scrape::read("n{engine=\"0\"} 2\nn{engine=\"1\"} 3\nm{tp_rank=\"0\"} 5\nm{tp_rank=\"1\"} 5\n");
        assert_eq!((s.sum("n"), s.sum("m")), (Some(5.0), Some(5.0)));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "\\PC*[{}=\",#\n a-z0-9.]{0,200}") {
            let _ = Reading::of(&Scrape::read(&text));
        }
    }
}
