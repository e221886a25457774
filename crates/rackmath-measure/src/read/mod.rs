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

    /// What a change of units made larger than any number is no figure.
    fn keep_finite(&mut self) {
        for value in [&mut self.mean, &mut self.p50, &mut self.p90, &mut self.p99] {
            *value = value.filter(|v| v.is_finite());
        }
    }

    fn times(self, factor: f64) -> Self {
        let by = |value: Option<f64>| value.map(|v| v * factor);
        Self { mean: by(self.mean), p50: by(self.p50), p90: by(self.p90), p99: by(self.p99) }
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
    pub ttft_ms: Times,
    /// (last - first)/(n - 1).
    pub tpot_ms: Times,
    pub e2e_ms: Times,
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
            requests_per_s: Some(s.requests_per_s),
            output_tok_s: Some(s.output_tok_s),
            ..Self::default()
        }
    }
}

impl Observed {
    fn keep_finite(&mut self) {
        for times in [&mut self.ttft_ms, &mut self.tpot_ms, &mut self.e2e_ms] {
            times.keep_finite();
        }
        for value in [&mut self.isl, &mut self.osl, &mut self.output_tok_s, &mut self.requests_per_s] {
            *value = value.filter(|v| v.is_finite());
        }
    }
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
    all.iter_mut().for_each(Observed::keep_finite);
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
