//! Result files of other load generators, told apart by their keys and brought to one set of words and units.
//!
//! | tool | file | told by |
//! |---|---|---|
//! | vllm bench serve | one object, or one a line | `mean_tpot_ms`, `request_throughput` |
//! | SGLang bench_serving | one object a line | `mean_e2e_latency_ms`, `total_output_tokens_retokenized` |
//! | GuideLLM | `benchmarks.json` | `metadata.guidellm_version` or `benchmarks[].metrics.time_to_first_token_ms` |
//! | AIPerf, genai-perf | aggregates, or one record a line | `input_config`; `metadata.x_request_id` |
//! | perf_analyzer | `profile_export.json` | `experiments[].requests[].response_timestamps` |
//! | inference-perf | summary or stage | `load_summary`, `successes` |
//! | InferenceX | `agg_*.json` | `tput_per_gpu`, `hw` |
//!
//! Times become milliseconds. The words mean what ours do (`gauge::summary`) where the file allows it: GuideLLM's TPOT holds the first token and is
//! replaced by its ITL; AIPerf's ITL is a request's mean and so our TPOT; vLLM's ITL is per chunk, not per token, and is left out.
//! Latencies of most tools begin when a request is sent, not when it was due, which is said. Formats as read 2026-11.

mod tools;

use crate::gauge::{Measured, Summary};
use crate::judge;
use rackmath_spec::SpecError;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
}

impl Times {
    pub fn any(&self) -> bool {
        self.mean.is_some() || self.p50.is_some()
    }

    /// Leaves out what no time can be, and says what that was: below nothing, nothing at all, or made larger than any number by a change of units.
    fn keep_possible(&mut self, figure: &str, least: f64, dropped: &mut Vec<Dropped>) {
        let each = [("", &mut self.mean), (" p50", &mut self.p50), (" p90", &mut self.p90), (" p99", &mut self.p99)];
        for (which, value) in each {
            keep(&format!("{figure}{which}"), "ms", value, |v| v > least, dropped);
        }
    }

    fn times(self, factor: f64) -> Self {
        let by = |value: Option<f64>| value.map(|v| v * factor);
        Self { mean: by(self.mean), p50: by(self.p50), p90: by(self.p90), p99: by(self.p99) }
    }
}

/// A figure of a file that cannot be, and was left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dropped {
    pub figure: String,
    pub value: f64,
    pub unit: &'static str,
    /// In how many requests, where a file tells each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

fn keep(
    figure: &str,
    unit: &'static str,
    value: &mut Option<f64>,
    can_be: impl Fn(f64) -> bool,
    dropped: &mut Vec<Dropped>,
) {
    if let Some(v) = value.filter(|v| !(v.is_finite() && can_be(*v))) {
        // No number of JSON is larger than all.
        let v = if v.is_finite() { v } else { f64::MAX.copysign(v) };
        dropped.push(Dropped { figure: figure.to_owned(), value: v, unit, requests: None });
        *value = None;
    }
}

/// One load on one server and what was measured, whoever did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observed {
    /// Whose file it is.
    pub tool: String,
    pub model: Option<String>,
    pub engine: Option<String>,
    pub engine_version: Option<String>,
    /// Chip as the tool calls it, and how many.
    pub chip: Option<String>,
    pub chips: Option<u64>,
    /// Flags of the server, where the file holds them.
    pub flags: BTreeMap<String, String>,
    /// Requests a second that were offered; nothing where as many as possible were.
    pub rate: Option<f64>,
    pub concurrency: Option<f64>,
    pub isl: Option<f64>,
    pub osl: Option<f64>,
    /// Share of prompts found in a cache.
    pub cached: Option<f64>,
    pub completed: u64,
    pub failed: u64,
    /// Figures that cannot be; none of them is in those below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Dropped>,
    pub ttft_ms: Times,
    /// (last - first)/(n - 1).
    pub tpot_ms: Times,
    pub e2e_ms: Times,
    /// Of TTFT, waiting in the server, where it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<f64>,
    pub requests_per_s: Option<f64>,
    pub output_tok_s: Option<f64>,
    /// What must be known to compare.
    pub notes: Vec<String>,
}

impl Observed {
    /// What our own client measured.
    pub fn of(m: &Measured, tool: &str) -> Self {
        let s: &Summary = &m.summary;
        let times = |f: &Option<crate::gauge::Figure>| {
            f.as_ref().map_or_else(Times::default, |f| Times {
                mean: Some(f.mean * 1e3),
                p50: Some(f.p50 * 1e3),
                p90: Some(f.p90 * 1e3),
                p99: f.p99.map(|p| p * 1e3),
            })
        };
        let tpot = times(&s.tpot);
        // Where answers do not tell what was found in a cache, the server's counters may.
        let counted = m.counters.as_ref().and_then(|c| Some(c.cached_tokens? / c.input_tokens.filter(|n| *n > 0.0)?));
        let counted = counted.map(|share| share.min(1.0));
        Self {
            tool: tool.to_owned(),
            isl: Some(s.isl).filter(|n| *n > 0.0),
            osl: Some(s.osl).filter(|n| *n > 0.0),
            cached: s.cached.or(counted),
            completed: s.counts.answered,
            failed: s.counts.faults.values().sum(),
            ttft_ms: times(&s.ttft),
            tpot_ms: Times { mean: s.tpot_over_tokens.map(|t| t * 1e3), ..tpot },
            e2e_ms: times(&s.e2e),
            queue_ms: m.counters.as_ref().and_then(|c| c.queue).map(|q| q * 1e3),
            requests_per_s: Some(s.requests_per_s),
            output_tok_s: Some(s.output_tok_s),
            ..Self::default()
        }
    }
}

impl Observed {
    /// Leaves out figures that cannot be, and keeps what they were.
    fn keep_possible(&mut self) {
        let mut dropped = std::mem::take(&mut self.dropped);
        // An answer of one token has no time per token.
        let at_once = if self.osl.is_some_and(|n| n > 1.0) { 0.0 } else { -f64::MIN_POSITIVE };
        self.ttft_ms.keep_possible("TTFT", 0.0, &mut dropped);
        self.tpot_ms.keep_possible("TPOT", at_once, &mut dropped);
        self.e2e_ms.keep_possible("E2E", 0.0, &mut dropped);
        let rates = [
            ("offered rate", "1/s", &mut self.rate),
            ("concurrency", "", &mut self.concurrency),
            ("prompts", "tokens", &mut self.isl),
            ("answers", "tokens", &mut self.osl),
            ("output", "tok/s", &mut self.output_tok_s),
            ("requests", "1/s", &mut self.requests_per_s),
        ];
        for (name, unit, value) in rates {
            keep(name, unit, value, |v| v >= 0.0, &mut dropped);
        }
        self.dropped = dropped;
    }

    /// Whether answers end before there is a time between two tokens of theirs.
    pub fn too_short(&self) -> bool {
        self.osl.is_some_and(|n| n < 2.0)
    }

    /// The share of requests that failed.
    pub fn failed_share(&self) -> f64 {
        let all = self.completed + self.failed;
        if all == 0 { 0.0 } else { self.failed as f64 / all as f64 }
    }

    /// Requests a second while requests were offered: those that a tool counts to the end of the last answer are spread over one answer too much.
    fn achieved(&self) -> Option<f64> {
        let rate = self.requests_per_s.filter(|r| *r > 0.0)?;
        let decode = || Some(self.ttft_ms.mean? + self.tpot_ms.mean? * (self.osl? - 1.0).max(0.0));
        let last_s = self.e2e_ms.mean.or_else(decode).unwrap_or(0.0) * 1e-3;
        let (n, seconds) = (self.completed as f64, self.completed as f64 / rate);
        Some(if n > 0.0 && seconds > last_s { n / (seconds - last_s) } else { rate })
    }

    /// The offered rate, where it was not reached, and what was instead.
    pub fn unreached(&self) -> Option<(f64, f64)> {
        let (offered, achieved) = (self.rate?, self.achieved()?);
        (achieved < judge::HOLDS * offered).then_some((offered, self.requests_per_s?))
    }

    /// The load that the server had: what was offered, or where that was not reached, what was under way or came through.
    pub fn load(&self) -> Load {
        match (self.unreached(), self.rate, self.concurrency) {
            (Some((_, achieved)), _, Some(most)) => {
                let law = self.e2e_ms.mean.map(|e| achieved * e * 1e-3);
                Load::Concurrency(law.map_or(most, |n| n.min(most)).max(1.0))
            }
            (Some((_, achieved)), _, None) => Load::Rate(achieved),
            (None, Some(rate), _) => Load::Rate(rate),
            (None, None, Some(n)) => Load::Concurrency(n),
            (None, None, None) => Load::Most,
        }
    }
}

/// What a server had to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Requests a second.
    Rate(f64),
    /// So many under way.
    Concurrency(f64),
    /// As many as it takes.
    Most,
}

/// Reads a result file: one entry for each load in it.
pub fn read(name: &str, text: &str) -> Result<Vec<Observed>, SpecError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let values: Vec<Value> = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(all)) => all,
        Ok(one) => vec![one],
        Err(whole) => {
            let lines = text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str);
            let lines: Result<Vec<Value>, _> = lines.collect();
            match lines {
                Ok(all) if !all.is_empty() => all,
                _ => return Err(unknown(name, &format!("neither JSON nor JSON lines ({whole})"))),
            }
        }
    };
    let Some(first) = values.first() else { return Err(unknown(name, "nothing in it")) };
    let Some(tool) = tools::TOOLS.iter().find(|tool| (tool.is)(first)) else {
        let keys =
            first.as_object().map_or_else(String::new, |o| o.keys().take(8).cloned().collect::<Vec<_>>().join(", "));
        return Err(unknown(
            name,
            &if keys.is_empty() { "no object in it".into() } else { format!("its keys are {keys}") },
        ));
    };
    let mut all = (tool.read)(&values);
    all.iter_mut().for_each(Observed::keep_possible);
    if all.is_empty() || all.iter().all(|o| !o.ttft_ms.any() && !o.tpot_ms.any() && o.output_tok_s.is_none()) {
        return Err(SpecError::file(name, format!("a file of {}, but without a figure in it", tool.name))
            .hint("expected times to the first token, times per token or throughput"));
    }
    Ok(all)
}

fn unknown(name: &str, what: &str) -> SpecError {
    let looked: Vec<String> = tools::TOOLS.iter().map(|t| format!("{} ({})", t.name, t.told_by)).collect();
    SpecError::file(name, format!("no result file that is known: {what}"))
        .hint(format!("looked for {}", looked.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Observed {
        let all = read("f", text).expect("a result");
        assert_eq!(all.len(), 1);
        all.into_iter().next().expect("one")
    }

    #[test]
    fn vllm_as_it_writes() {
        let o = one(include_str!("../../tests/data/vllm_0.32.0_bench_serve_detailed.json"));
        assert_eq!((o.tool.as_str(), o.completed, o.rate, o.concurrency), ("vllm bench serve", 24, Some(4.0), None));
        assert_eq!((o.isl, o.osl), (Some(1545.0 / 24.0), Some(16.0)));
        assert!(
            (o.ttft_ms.mean.expect("mean") - 62.803).abs() < 0.01
                && (o.ttft_ms.p99.expect("p99") - 330.148).abs() < 0.01
        );
        assert!(
            (o.tpot_ms.mean.expect("mean") - 24.184).abs() < 0.01
                && (o.e2e_ms.mean.expect("mean") - 425.56).abs() < 0.01
        );
        // With --stream-interval 4 the times between chunks are four times the time per token, which is said.
        let o = one(include_str!("../../tests/data/vllm_0.32.0_bench_serve_interval4.json"));
        assert!((o.tpot_ms.mean.expect("mean") - 3.9246).abs() < 0.001);
        assert!(o.notes.iter().any(|n| n.contains("4.0 tokens a chunk")), "{:?}", o.notes);
    }

    #[test]
    fn guidellm_as_it_writes() {
        let o = one(include_str!("../../tests/data/guidellm_0.8.1_benchmarks.json"));
        assert_eq!((o.tool.as_str(), o.completed, o.rate), ("GuideLLM", 16, Some(4.0)));
        assert!((o.ttft_ms.mean.expect("mean") - 39.7709).abs() < 0.001);
        // The time per token without the first: its ITL, 5.6 ms, not its TPOT, 7.7 ms.
        assert!((5.0..6.5).contains(&o.tpot_ms.mean.expect("mean")), "{:?}", o.tpot_ms);
        assert!(
            o.isl.is_some_and(|n| (n - 76.0).abs() < 1.0) && o.osl.is_some_and(|n| (n - 16.0).abs() < 1.0),
            "{o:?}"
        );
    }

    #[test]
    fn the_smallest_of_each_tool() {
        let vllm = r#"{"endpoint_type":"openai","model_id":"m","request_rate":"inf","max_concurrency":8,"duration":6.1,"completed":2,"failed":1,"total_input_tokens":128,"total_output_tokens":32,"request_throughput":0.33,"output_throughput":5.2,"mean_ttft_ms":62.8,"mean_tpot_ms":24.2,"mean_itl_ms":24.2,"p99_ttft_ms":330.1}"#;
        let o = one(vllm);
        assert_eq!((o.rate, o.concurrency, o.failed, o.isl), (None, Some(8.0), 1, Some(64.0)));
        let sglang = r#"{"backend":"sglang","request_rate":4.0,"max_concurrency":null,"duration":6.1,"completed":2,"total_input_tokens":128,"total_output_tokens":32,"total_output_tokens_retokenized":31,"mean_e2e_latency_ms":425.0,"mean_ttft_ms":62.8,"mean_tpot_ms":24.2,"mean_itl_ms":24.2,"concurrency":1.7,"output_throughput":5.2,"server_info":{"tp_size":8,"version":"0.5.18","model_path":"x/y"}}"#;
        let o = one(sglang);
        assert_eq!(
            (o.tool.as_str(), o.engine.as_deref(), o.e2e_ms.mean, o.flags["tp_size"].as_str()),
            ("SGLang bench_serving", Some("sglang"), Some(425.0), "8")
        );
        assert_eq!((o.model.as_deref(), o.chips), (Some("x/y"), Some(8)));
        let two = format!("{sglang}\n{sglang}\n");
        assert_eq!(read("f", &two).expect("lines").len(), 2);
        let aiperf = r#"{"metadata":{"session_num":0,"x_request_id":"a","request_start_ns":1000,"request_end_ns":425001000,"benchmark_phase":"profiling","was_cancelled":false},"metrics":{"time_to_first_token":{"value":62.8,"unit":"ms"},"inter_token_latency":{"value":24.2,"unit":"ms"},"output_sequence_length":{"value":16,"unit":"tokens"}},"error":null}"#;
        let o = one(aiperf);
        assert_eq!(
            (o.tool.as_str(), o.completed, o.ttft_ms.mean, o.tpot_ms.mean, o.osl),
            ("AIPerf", 1, Some(62.8), Some(24.2), Some(16.0))
        );
        let summed = r#"{"input_config":{"endpoint":{"model_names":["m"]},"loadgen":{"request_rate":4}},"time_to_first_token":{"unit":"ms","avg":62.8,"p99":330.0},"inter_token_latency":{"unit":"ms","avg":24.2},"request_latency":{"unit":"sec","avg":0.4},"output_token_throughput":{"unit":"tokens/sec","avg":62.0},"request_count":{"unit":"requests","avg":24}}"#;
        let o = one(summed);
        assert_eq!(
            (o.model.as_deref(), o.rate, o.e2e_ms.mean, o.completed, o.output_tok_s),
            (Some("m"), Some(4.0), Some(400.0), 24, Some(62.0))
        );
        let inf = r#"{"load_summary":{"count":24,"requested_rate":4.0,"achieved_rate":3.1,"schedule_delay":{"mean":0.001}},"successes":{"count":24,"latency":{"time_to_first_token":{"mean":0.063},"time_per_output_token":{"mean":0.024}},"throughput":{"output_tokens_per_sec":62.6}},"failures":{"count":0}}"#;
        let o = one(inf);
        assert_eq!((o.tool.as_str(), o.completed, o.tpot_ms.mean), ("inference-perf", 24, Some(24.0)));
        assert!(o.notes.iter().any(|n| n.contains("3.1")), "the client was behind: {:?}", o.notes);
        let perf = r#"{"service_kind":"openai","experiments":[{"requests":[{"timestamp":1000000000,"response_timestamps":[1010000000,1020000000,1040000000]},{"timestamp":1500000000,"response_timestamps":[1530000000,1540000000,1550000000]}]}]}"#;
        let o = one(perf);
        assert_eq!(
            (o.tool.as_str(), o.completed, o.ttft_ms.mean, o.tpot_ms.mean),
            ("perf_analyzer", 2, Some(20.0), Some(12.5))
        );
        let x = r#"{"hw":"h200-nb","tp":8,"ep":1,"conc":64,"model":"deepseek-ai/DeepSeek-R1-0528","framework":"sglang","precision":"fp8","tput_per_gpu":900.0,"output_tput_per_gpu":450.0,"mean_ttft":0.3,"mean_tpot":0.02,"mean_intvty":50.0,"mean_e2el":20.0,"isl":1024,"osl":1024}"#;
        let o = one(x);
        assert_eq!(
            (o.tool.as_str(), o.chip.as_deref(), o.chips, o.concurrency),
            ("InferenceX", Some("h200"), Some(8), Some(64.0))
        );
        assert_eq!((o.ttft_ms.mean, o.tpot_ms.mean, o.output_tok_s), (Some(300.0), Some(20.0), Some(3600.0)));
    }

    const PLAIN: &str = r#"{"endpoint_type":"vllm","model_id":"m","request_rate":50.0,"max_concurrency":null,"duration":180,"completed":1000,"failed":0,"total_input_tokens":1000000,"total_output_tokens":200000,"request_throughput":5.55,"output_throughput":1110,"mean_ttft_ms":62.8,"mean_tpot_ms":8.2,"p99_ttft_ms":330.1}"#;

    #[test]
    fn a_figure_that_cannot_be_is_left_out_and_named() {
        let o = one(&PLAIN.replace("\"mean_ttft_ms\":62.8", "\"mean_ttft_ms\":-12"));
        assert_eq!((o.ttft_ms.mean, o.ttft_ms.p99), (None, Some(330.1)));
        assert_eq!(o.dropped, [Dropped { figure: "TTFT".into(), value: -12.0, unit: "ms", requests: None }]);
        assert_eq!(one(&PLAIN.replace("8.2", "0")).dropped[0].figure, "TPOT");
        assert!(one(PLAIN).dropped.is_empty());
        let line = r#"{"metadata":{"x_request_id":"a"},"metrics":{"time_to_first_token":{"value":-5,"unit":"ms"},"inter_token_latency":{"value":24.2,"unit":"ms"}},"error":null}"#;
        let o = one(&format!("{line}\n{}", line.replace("-5", "60")));
        assert_eq!((o.ttft_ms.mean, o.dropped[0].value, o.dropped[0].requests), (Some(60.0), -5.0, Some(1)));
    }

    #[test]
    fn the_load_is_what_was_reached() {
        let o = one(PLAIN);
        assert_eq!((o.unreached(), o.load()), (Some((50.0, 5.55)), Load::Rate(5.55)));
        // No more than the client allows, and no more than there were by Little's law: 5.55/s for 1.7 s.
        let most = PLAIN.replace("\"max_concurrency\":null", "\"max_concurrency\":8");
        assert_eq!(one(&most).load(), Load::Concurrency(8.0));
        let most = most.replace("\"mean_tpot", "\"mean_e2el_ms\":1000.0,\"mean_tpot");
        assert_eq!(one(&most).load(), Load::Concurrency(5.55));
        // The last answers end after the last was offered: 10 at 1/s, 9.5 s and 2 s.
        let short = PLAIN.replace("50.0", "1.0").replace("1000,", "10,").replace("5.55", "0.87");
        let short = short.replace("\"mean_tpot", "\"mean_e2el_ms\":2000.0,\"mean_tpot");
        assert_eq!((one(&short).unreached(), one(&short).load()), (None, Load::Rate(1.0)));
    }

    #[test]
    fn an_unknown_file_is_told_what_was_looked_for() {
        for text in ["", "{}", "[]", "hello", "{\"a\":1}", "[1,2]", "{\"mean_tpot_ms\":\"x\",\"request_throughput\":1}"]
        {
            let error = format!("{:?}", read("f", text).expect_err(text));
            assert!(error.contains("GuideLLM") || error.contains("without a figure"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(text in "\\PC*", deep in 0usize..3) {
            let _ = read("f", &text);
            let keys = ["mean_tpot_ms", "request_throughput", "benchmarks", "load_summary", "successes", "tput_per_gpu", "hw", "experiments"];
            let odd = keys.map(|k| format!("\"{k}\":{}", ["null", "[{}]", "{\"mean\":-1e308}"][deep])).join(",");
            let _ = read("f", &format!("{{{odd}}}"));
        }
    }
}
