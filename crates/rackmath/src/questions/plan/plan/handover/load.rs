//! Load tests that would show whether a plan holds: the same lengths, the same rate, the targets as goodput.

use super::Command;
use super::line::Line;
use super::router::name;
use super::server::{PORT, Site};
use rackmath_units::significant;
use std::fmt::Write as _;

/// What is expected of the whole deployment.
#[derive(Clone, Debug)]
pub(in crate::questions::plan::plan) struct Aim {
    /// Tokens of a prompt, mean, and their standard deviation.
    pub input: (f64, f64),
    /// Tokens of an answer, mean, and their standard deviation.
    pub output: (f64, f64),
    /// Requests per second; else as many at once as `concurrency`.
    pub rate: Option<f64>,
    /// Requests in flight.
    pub concurrency: f64,
    /// Milliseconds to the first token, as predicted.
    pub ttft_ms: f64,
    /// Milliseconds per token, as predicted.
    pub tpot_ms: f64,
    /// Targets in milliseconds: first token, token.
    pub targets: (Option<f64>, Option<f64>),
    /// A trace to replay.
    pub replay: Option<String>,
}

impl Aim {
    /// Requests of a run: long enough that its start and end do not matter.
    fn requests(&self) -> u64 {
        (self.concurrency * 10.0).ceil().max(200.0) as u64
    }

    /// Whole requests in flight.
    fn streams(&self) -> u64 {
        self.concurrency.round().max(1.0) as u64
    }
}

/// What to look for in the results.
pub(super) fn words(aim: &Aim) -> Vec<String> {
    let load = match aim.rate {
        Some(rate) => format!("{} requests per second, at random", significant(rate, 3)),
        None => format!("{} requests in flight", aim.streams()),
    };
    vec![
        format!("{load}; prompts {}, answers {} tokens", aim.input.0.round(), aim.output.0.round()),
        format!(
            "the plan holds if the mean time to the first token is near {} ms and per token near {} ms",
            significant(aim.ttft_ms, 3),
            significant(aim.tpot_ms, 3)
        ),
        "sh load-test.sh vllm, guidellm or aiperf; any one is enough".into(),
    ]
}

/// One command per tool; more where a trace is replayed.
pub(super) fn commands(site: &Site, aim: &Aim) -> Vec<Command> {
    let model = site.model_name();
    let url = format!("http://{}:{PORT}", name(site));
    let command = |role: &str, flags: &str, line: String| Command {
        role: role.into(),
        flags: flags.into(),
        line: Line::new(line).text(),
    };
    let mut all = vec![
        command("load test", "vllm-bench", vllm(site, aim, model, &url)),
        command("load test", "guidellm", guidellm(site, aim, model, &url)),
        command("load test", "aiperf", aiperf(site, aim, model, &url)),
    ];
    if let Some(path) = aim.replay.as_deref().filter(|p| !p.contains(['\'', '\n'])) {
        all.push(command(
            "replay",
            "vllm-bench",
            format!(
                "vllm bench serve --backend openai --base-url {url} --endpoint /v1/completions --model {model} \
                 --dataset-name timed_trace --dataset-path '{path}' --timed-trace-chunk-hash-size 512 \
                 --timed-trace-sec-multiplier 0.001 --self-timed --ignore-eos --percentile-metrics ttft,tpot,itl,e2el"
            ),
        ));
        all.push(command(
            "replay",
            "aiperf",
            format!(
                "aiperf profile --model {model} --url {url} --endpoint-type chat --streaming --input-file '{path}' \
                 --custom-dataset-type mooncake_trace --fixed-schedule"
            ),
        ));
    }
    all
}

/// Prompt tokens that are new, and those of a prefix all share, so that the cache finds what the plan says.
fn prompt(site: &Site, aim: &Aim) -> (u64, u64) {
    let shared = (aim.input.0 * site.cached).round();
    ((aim.input.0.round() - shared).max(1.0) as u64, shared as u64)
}

fn vllm(site: &Site, aim: &Aim, model: &str, url: &str) -> String {
    let (new, shared) = prompt(site, aim);
    let mut line = Line::new(format!(
        "vllm bench serve --backend openai --base-url {url} --endpoint /v1/completions --model {model} \
         --dataset-name random --random-input-len {new} --random-output-len {} --num-prompts {} --ignore-eos",
        aim.output.0.round(),
        aim.requests()
    ));
    if shared > 0 {
        line.add(format!(" --random-prefix-len {shared}"));
    }
    // The tool draws evenly within a share of the mean: the share with the same standard deviation, root 3 of it.
    let range = |(mean, deviation): (f64, f64)| (deviation / mean * 3f64.sqrt()).min(0.99);
    let (i, o) = (range(aim.input), range(aim.output));
    if i > 0.0 || o > 0.0 {
        line.add(format!(" --random-range-ratio '{{\"input\":{i:.3},\"output\":{o:.3}}}'"));
    }
    line.add(match aim.rate {
        Some(rate) => format!(" --request-rate {}", round(rate)),
        None => format!(" --max-concurrency {}", aim.streams()),
    });
    line.add("--percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,99");
    let goals = [("ttft", aim.targets.0), ("tpot", aim.targets.1)];
    let goals: Vec<String> = goals.iter().filter_map(|(n, t)| Some(format!("{n}:{}", round((*t)?)))).collect();
    if !goals.is_empty() {
        line.add(format!(" --goodput {}", goals.join(" ")));
    }
    line.text()
}

fn guidellm(site: &Site, aim: &Aim, model: &str, url: &str) -> String {
    let (new, shared) = prompt(site, aim);
    let profile = match aim.rate {
        Some(rate) => format!("kind=poisson,rate={}", round(rate)),
        None => format!("kind=concurrent,streams={}", aim.streams()),
    };
    let mut data = format!("kind=synthetic_text,prompt_tokens={new},output_tokens={}", aim.output.0.round());
    for (name, deviation) in [("prompt_tokens_stdev", aim.input.1), ("output_tokens_stdev", aim.output.1)] {
        if deviation >= 1.0 {
            let _ = write!(data, ",{name}={}", deviation.round());
        }
    }
    if shared > 0 {
        let _ = write!(data, ",prefix_tokens={shared}");
    }
    format!(
        "guidellm run --backend kind=openai_http,target={url},model={model} --profile {profile} --data {data} \
         --constraint kind=max_requests,count={} --output kind=json,path=guidellm.json",
        aim.requests()
    )
}

fn aiperf(site: &Site, aim: &Aim, model: &str, url: &str) -> String {
    let (new, shared) = prompt(site, aim);
    let mut line = Line::new(format!(
        "aiperf profile --model {model} --url {url} --endpoint-type chat --streaming --isl {new} --osl {} \
         --prompt-input-tokens-stddev {} --prompt-output-tokens-stddev {} --request-count {} --extra-inputs ignore_eos:true",
        aim.output.0.round(),
        aim.input.1.round(),
        aim.output.1.round(),
        aim.requests()
    ));
    if shared > 0 {
        line.add(format!(" --shared-system-prompt-length {shared}"));
    }
    line.add(match aim.rate {
        Some(rate) => format!(" --request-rate {} --arrival-pattern poisson", round(rate)),
        None => format!(" --concurrency {}", aim.streams()),
    });
    let goals = [("time_to_first_token", aim.targets.0), ("inter_token_latency", aim.targets.1)];
    let goals: Vec<String> = goals.iter().filter_map(|(n, t)| Some(format!("{n}:{}", round((*t)?)))).collect();
    if !goals.is_empty() {
        line.add(format!(" --goodput '{}'", goals.join(" ")));
    }
    line.text()
}

/// A number a shell and a parser read back, with no more digits than mean anything.
fn round(x: f64) -> f64 {
    if x >= 100.0 { (x * 10.0).round() / 10.0 } else { (x * 1e4).round() / 1e4 }
}
