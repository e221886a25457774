//! A reader for each tool.

use super::{Dropped, Observed, Times};
use rackmath_theory::stats::ranked;
use serde_json::Value;

/// One tool: how its files are told, and how they are read.
pub struct Tool {
    pub name: &'static str,
    pub told_by: &'static str,
    pub is: fn(&Value) -> bool,
    pub read: fn(&[Value]) -> Vec<Observed>,
}

/// SGLang before vLLM, whose keys it has as well.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: "SGLang bench_serving",
        told_by: "mean_e2e_latency_ms, total_output_tokens_retokenized",
        is: |v| has(v, "mean_e2e_latency_ms") && has(v, "total_output_tokens_retokenized"),
        read: |all| all.iter().map(sglang).collect(),
    },
    Tool {
        name: "vllm bench serve",
        told_by: "mean_tpot_ms, request_throughput",
        is: |v| has(v, "mean_tpot_ms") && has(v, "request_throughput"),
        read: |all| all.iter().map(vllm).collect(),
    },
    Tool {
        name: "GuideLLM",
        told_by: "metadata.guidellm_version, benchmarks",
        is: |v| {
            let first = v.pointer("/benchmarks/0/metrics/time_to_first_token_ms");
            v.get("benchmarks").is_some_and(Value::is_array)
                && (v.pointer("/metadata/guidellm_version").is_some() || first.is_some())
        },
        read: |all| all.iter().flat_map(guidellm).collect(),
    },
    Tool {
        name: "AIPerf",
        told_by: "lines with metadata.x_request_id, or input_config",
        is: |v| v.pointer("/metadata/x_request_id").is_some() || has(v, "input_config"),
        read: |all| match all.first() {
            Some(v) if has(v, "input_config") => all.iter().map(aiperf).collect(),
            _ => vec![aiperf_lines(all)],
        },
    },
    Tool {
        name: "perf_analyzer",
        told_by: "experiments[].requests[].response_timestamps",
        is: |v| v.pointer("/experiments/0/requests").is_some_and(Value::is_array),
        read: |all| all.iter().filter_map(|v| v.get("experiments")?.as_array()).flatten().map(perf_analyzer).collect(),
    },
    Tool {
        name: "inference-perf",
        told_by: "load_summary, successes",
        is: |v| has(v, "load_summary") && has(v, "successes"),
        read: |all| all.iter().map(inference_perf).collect(),
    },
    Tool {
        name: "InferenceX",
        told_by: "hw, tput_per_gpu",
        is: |v| has(v, "tput_per_gpu") && has(v, "hw"),
        read: |all| all.iter().map(inferencex).collect(),
    },
];

const AT_SEND: &str =
    "its latencies begin when a request is sent, not when it was due: waiting inside the client is not in them";

fn has(v: &Value, key: &str) -> bool {
    v.get(key).is_some()
}

/// A finite number; whether it can be what it says it is, is judged of all figures at once.
fn number(v: &Value, path: &str) -> Option<f64> {
    let found = v.pointer(path)?;
    found.as_f64().or_else(|| found.as_str()?.parse().ok()).filter(|n: &f64| n.is_finite())
}

fn text(v: &Value, path: &str) -> Option<String> {
    v.pointer(path)?.as_str().filter(|t| !t.is_empty()).map(str::to_owned)
}

fn count(v: &Value, path: &str) -> u64 {
    number(v, path).map_or(0, |n| n as u64)
}

fn per(total: Option<f64>, n: u64) -> Option<f64> {
    total.filter(|_| n > 0).map(|total| total / n as f64)
}

/// The four figures of a distribution, under the names tools have for them.
fn figures(at: impl Fn(&str) -> Option<f64>) -> Times {
    let first = |names: &[&str]| names.iter().find_map(|name| at(name));
    Times {
        mean: first(&["mean", "avg"]),
        p50: first(&["median", "p50", "percentiles/p50"]),
        p90: first(&["p90", "percentiles/p90"]),
        p99: first(&["p99", "percentiles/p99"]),
    }
}

/// `mean_x_ms`, `median_x_ms`, `p99_x_ms`.
fn aggregates(v: &Value, what: &str, end: &str) -> Times {
    figures(|stat| number(v, &format!("/{stat}_{what}{end}")))
}

fn serving(v: &Value, tool: &str) -> Observed {
    let completed = count(v, "/completed");
    Observed {
        tool: tool.to_owned(),
        rate: number(v, "/request_rate"),
        concurrency: number(v, "/max_concurrency"),
        isl: per(number(v, "/total_input_tokens"), completed),
        osl: per(number(v, "/total_output_tokens"), completed),
        completed,
        failed: count(v, "/failed"),
        ttft_ms: aggregates(v, "ttft", "_ms"),
        tpot_ms: aggregates(v, "tpot", "_ms"),
        requests_per_s: number(v, "/request_throughput"),
        output_tok_s: number(v, "/output_throughput"),
        notes: vec![AT_SEND.into()],
        ..Observed::default()
    }
}

fn vllm(v: &Value) -> Observed {
    let mut o = Observed {
        model: text(v, "/model_id"),
        e2e_ms: aggregates(v, "e2el", "_ms"),
        ..serving(v, "vllm bench serve")
    };
    let backend = text(v, "/backend").or_else(|| text(v, "/endpoint_type"));
    o.engine = backend.filter(|b| ["vllm", "sglang", "trtllm"].contains(&b.as_str()));
    if let (Some(itl), Some(tpot)) = (number(v, "/mean_itl_ms"), o.tpot_ms.mean)
        && tpot > 0.0
        && itl / tpot > 1.2
    {
        o.notes.push(format!(
            "its ITL is the time between chunks; with {:.1} tokens a chunk it is not a time per token",
            itl / tpot
        ));
    }
    o
}

fn sglang(v: &Value) -> Observed {
    let mut o = Observed {
        e2e_ms: aggregates(v, "e2e_latency", "_ms"),
        engine: text(v, "/backend").filter(|b| b.starts_with("sglang")).map(|_| "sglang".into()),
        engine_version: text(v, "/server_info/version"),
        model: text(v, "/server_info/model_path").or_else(|| text(v, "/model_id")),
        ..serving(v, "SGLang bench_serving")
    };
    if o.concurrency.is_none() && o.rate.is_none() {
        o.concurrency = number(v, "/concurrency");
    }
    for (key, value) in v.get("server_info").and_then(Value::as_object).into_iter().flatten() {
        let plain = value
            .as_str()
            .map(str::to_owned)
            .or_else(|| (value.is_number() || value.is_boolean()).then(|| value.to_string()));
        if let Some(plain) = plain.filter(|p| p.len() < 200) {
            o.flags.insert(key.clone(), plain);
        }
    }
    let size = |key: &str| number(v, &format!("/server_info/{key}")).filter(|n| *n >= 1.0);
    o.chips = size("tp_size").map(|tp| (tp * size("pp_size").unwrap_or(1.0)) as u64);
    o
}

fn guidellm(v: &Value) -> Vec<Observed> {
    let benchmarks = v.get("benchmarks").and_then(Value::as_array).into_iter().flatten();
    let each = benchmarks.map(|b| {
        let stat = |metric: &str| figures(|what| number(b, &format!("/metrics/{metric}/successful/{what}")));
        let strategy = |key: &str| {
            ["/config/strategy/", "/scheduler/strategy/", "/args/strategy/"]
                .iter()
                .find_map(|at| number(b, &format!("{at}{key}")))
        };
        let counted = count(b, "/metrics/request_latency/successful/count");
        let mut o = Observed {
            tool: "GuideLLM".into(),
            engine: None,
            model: text(b, "/config/backend/model").or_else(|| text(v, "/args/model")),
            rate: strategy("rate"),
            concurrency: strategy("streams")
                .or_else(|| strategy("max_concurrency").filter(|_| strategy("rate").is_none())),
            isl: stat("prompt_token_count").mean,
            osl: stat("output_token_count").mean,
            completed: count(b, "/metrics/request_totals/successful").max(counted),
            failed: count(b, "/metrics/request_totals/errored"),
            ttft_ms: stat("time_to_first_token_ms"),
            tpot_ms: stat("inter_token_latency_ms"),
            e2e_ms: stat("request_latency").times(1e3),
            requests_per_s: number(b, "/metrics/requests_per_second/successful/mean"),
            output_tok_s: number(b, "/metrics/output_tokens_per_second/successful/mean"),
            ..Observed::default()
        };
        o.notes.push("its TPOT holds the first token; its ITL, a request's mean over n - 1, is taken".into());
        if let Some(late) = number(b, "/scheduler_metrics/request_targeted_start_delay_avg").filter(|l| *l > 1e-3) {
            o.notes.push(format!("its client was {:.1} ms late in the mean", late * 1e3));
        }
        o
    });
    each.collect()
}

/// Milliseconds of a value with its unit.
fn in_ms(value: f64, unit: &str) -> f64 {
    match unit {
        "ns" | "nanoseconds" => value * 1e-6,
        "us" | "microseconds" => value * 1e-3,
        "s" | "sec" | "seconds" => value * 1e3,
        _ => value,
    }
}

fn aiperf(v: &Value) -> Observed {
    let stat = |metric: &str| {
        let unit = text(v, &format!("/{metric}/unit")).unwrap_or_default();
        figures(|what| number(v, &format!("/{metric}/{what}")).map(|n| in_ms(n, &unit)))
    };
    let mean = |metric: &str| number(v, &format!("/{metric}/avg"));
    let config = |paths: &[&str]| paths.iter().find_map(|p| number(v, &format!("/input_config/{p}")));
    Observed {
        tool: "AIPerf".into(),
        model: [
            "/input_config/endpoint/model_names/0",
            "/input_config/model_names/0",
            "/input_config/model/0",
            "/input_config/model",
        ]
        .iter()
        .find_map(|p| text(v, p)),
        engine: text(v, "/input_config/backend")
            .filter(|b| ["vllm", "sglang", "trtllm", "tensorrtllm"].contains(&b.as_str())),
        rate: config(&["loadgen/request_rate", "perf_analyzer/stimulus/request_rate", "request_rate"]),
        concurrency: config(&["loadgen/concurrency", "perf_analyzer/stimulus/concurrency", "concurrency"]),
        isl: mean("input_sequence_length"),
        osl: mean("output_sequence_length"),
        completed: mean("request_count").map_or(0, |n| n as u64),
        failed: mean("error_request_count").map_or(0, |n| n as u64),
        ttft_ms: stat("time_to_first_token"),
        tpot_ms: stat("inter_token_latency"),
        e2e_ms: stat("request_latency"),
        requests_per_s: mean("request_throughput"),
        output_tok_s: mean("output_token_throughput"),
        notes: vec!["its ITL is a request's mean over n - 1: our TPOT".into(), AT_SEND.into()],
        ..Observed::default()
    }
}

fn times(mut values: Vec<f64>) -> Times {
    if values.is_empty() {
        return Times::default();
    }
    values.sort_by(f64::total_cmp);
    let at = |p: f64| Some(ranked(&values, p));
    let p99 = at(0.99).filter(|_| values.len() >= crate::gauge::FOR_P99);
    Times { mean: mean(&values), p50: at(0.5), p90: at(0.9), p99 }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// One answered request of a file that tells each: when it was sent and ended in nanoseconds, its times in milliseconds, its tokens.
#[derive(Clone, Copy, Default)]
struct One {
    sent: Option<f64>,
    ended: Option<f64>,
    ttft: Option<f64>,
    tpot: Option<f64>,
    e2e: Option<f64>,
    input: Option<f64>,
    output: Option<f64>,
}

/// One of its figures.
type Pick = fn(&One) -> Option<f64>;

/// What requests that are told one by one come to.
fn summed(tool: &str, all: &[One], failed: usize, notes: Vec<String>) -> Observed {
    let each = |pick: Pick| all.iter().filter_map(pick).filter(|v| *v >= 0.0).collect::<Vec<f64>>();
    let impossible = |(figure, unit, pick): (&str, &'static str, Pick)| {
        let below: Vec<f64> = all.iter().filter_map(pick).filter(|v| *v < 0.0).collect();
        let value = *below.first()?;
        Some(Dropped { figure: figure.to_owned(), value, unit, requests: Some(below.len() as u64) })
    };
    let figures: [(&str, &'static str, Pick); 5] = [
        ("TTFT", "ms", |r| r.ttft),
        ("TPOT", "ms", |r| r.tpot),
        ("E2E", "ms", |r| r.e2e),
        ("prompts", "tokens", |r| r.input),
        ("answers", "tokens", |r| r.output),
    ];
    let from = each(|r| r.sent).into_iter().fold(f64::INFINITY, f64::min);
    let seconds = (each(|r| r.ended).into_iter().fold(0.0, f64::max) - from) * 1e-9;
    let rate = |n: f64| (seconds > 0.0 && seconds.is_finite()).then(|| n / seconds);
    Observed {
        tool: tool.into(),
        isl: mean(&each(|r| r.input)),
        osl: mean(&each(|r| r.output)),
        completed: all.len() as u64,
        failed: failed as u64,
        dropped: figures.into_iter().filter_map(impossible).collect(),
        ttft_ms: times(each(|r| r.ttft)),
        tpot_ms: times(each(|r| r.tpot)),
        e2e_ms: times(each(|r| r.e2e)),
        requests_per_s: rate(all.len() as f64),
        output_tok_s: rate(each(|r| r.output).iter().sum()),
        notes,
        ..Observed::default()
    }
}

fn aiperf_lines(all: &[Value]) -> Observed {
    let profiled = |v: &&Value| text(v, "/metadata/benchmark_phase").is_none_or(|p| p == "profiling");
    let good = |v: &&Value| {
        v.get("error").is_none_or(Value::is_null) && v.pointer("/metadata/was_cancelled") != Some(&Value::Bool(true))
    };
    let lines: Vec<&Value> = all.iter().filter(profiled).collect();
    let one = |v: &Value| {
        let metric = |name: &str| {
            let unit = text(v, &format!("/metrics/{name}/unit")).unwrap_or_default();
            number(v, &format!("/metrics/{name}/value")).map(|n| in_ms(n, &unit))
        };
        One {
            sent: number(v, "/metadata/request_start_ns"),
            ended: number(v, "/metadata/request_end_ns"),
            ttft: metric("time_to_first_token"),
            tpot: metric("inter_token_latency"),
            e2e: metric("request_latency"),
            input: metric("input_sequence_length"),
            output: metric("output_sequence_length"),
        }
    };
    let ok: Vec<One> = lines.iter().copied().filter(good).map(one).collect();
    let notes = vec!["its ITL is a request's mean over n - 1: our TPOT".into(), AT_SEND.into()];
    summed("AIPerf", &ok, lines.len() - ok.len(), notes)
}

/// Everything from the stamps; a response is taken as a token.
fn perf_analyzer(v: &Value) -> Observed {
    let requests = v.get("requests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let one = |r: &Value| {
        let stamps: Vec<f64> = r.get("response_timestamps")?.as_array()?.iter().filter_map(Value::as_f64).collect();
        let (sent, first, last) = (r.get("timestamp")?.as_f64()?, *stamps.first()?, *stamps.last()?);
        let n = stamps.len();
        Some(One {
            sent: Some(sent),
            ended: Some(last),
            ttft: Some((first - sent) * 1e-6),
            tpot: (n > 1).then(|| (last - first) * 1e-6 / (n - 1) as f64),
            e2e: Some((last - sent) * 1e-6),
            input: None,
            output: Some(n as f64),
        })
    };
    let ok: Vec<One> = requests.iter().filter_map(one).collect();
    let notes =
        vec!["tokens are counted as responses: it does not say how many a response held".into(), AT_SEND.into()];
    summed("perf_analyzer", &ok, requests.len() - ok.len(), notes)
}

fn inference_perf(v: &Value) -> Observed {
    let stat = |metric: &str| figures(|what| number(v, &format!("/successes/latency/{metric}/{what}"))).times(1e3);
    let (asked, sent) = (number(v, "/load_summary/requested_rate"), number(v, "/load_summary/achieved_rate"));
    let mut o = Observed {
        tool: "inference-perf".into(),
        rate: sent.or(asked),
        isl: number(v, "/successes/prompt_len/mean"),
        osl: number(v, "/successes/output_len/mean"),
        completed: count(v, "/successes/count"),
        failed: count(v, "/failures/count"),
        ttft_ms: stat("time_to_first_token"),
        tpot_ms: stat("time_per_output_token"),
        e2e_ms: stat("request_latency"),
        requests_per_s: number(v, "/successes/throughput/requests_per_sec"),
        output_tok_s: number(v, "/successes/throughput/output_tokens_per_sec"),
        notes: vec![AT_SEND.into()],
        ..Observed::default()
    };
    if let (Some(asked), Some(sent)) = (asked, sent)
        && sent < 0.95 * asked
    {
        o.notes.push(format!(
            "its client sent {sent} requests a second instead of {asked}: the load was not what was asked for"
        ));
    }
    o
}

fn inferencex(v: &Value) -> Observed {
    let stat = |what: &str| aggregates(v, what, "").times(1e3);
    let chips = number(v, "/num_gpus").or_else(|| number(v, "/tp")).map(|n| n as u64);
    let hw = text(v, "/hw").map(|hw| hw.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase());
    let mut o = Observed {
        tool: "InferenceX".into(),
        model: text(v, "/infmax_model_prefix").filter(|m| m.contains('/')).or_else(|| text(v, "/model")),
        engine: text(v, "/framework").map(|f| match f.as_str() {
            "trt" | "trtllm" | "trt-llm" => "trtllm".into(),
            other => other.to_owned(),
        }),
        chip: hw,
        chips,
        concurrency: number(v, "/conc"),
        isl: number(v, "/isl"),
        osl: number(v, "/osl"),
        ttft_ms: stat("ttft"),
        tpot_ms: stat("tpot"),
        e2e_ms: stat("e2el"),
        output_tok_s: number(v, "/output_tput_per_gpu").zip(chips).map(|(rate, n)| rate * n as f64),
        notes: vec![AT_SEND.into()],
        ..Observed::default()
    };
    for key in ["tp", "ep", "dp_attention", "precision", "mtp"] {
        if let Some(value) = v.get(key).filter(|v| !v.is_null()) {
            o.flags.insert(key.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    o
}
