//! The sets: how each is read into runs.

use super::{Open, Set, Tables};
use crate::names::Names;
use crate::replays::{by_run, measured, pieces, repeated};
use crate::routing;
use crate::rows::Record;
use rackmath::validate::replay::{At, Latency, Measured, Run, UNJUDGED, percentiles, segment};
use rackmath_sim::cluster::Router;
use rackmath_sim::engine::{sglang, vllm};
use rackmath_sim::workload::Job;
use rackmath_spec::Dtype;
use rackmath_spec::engine::Reckoning;
use rackmath_units::Chance;
use std::collections::BTreeMap;

pub const ALL: &[Set] = &[
    Set {
        file: routing::FILE,
        name: "8 replicas of Llama-3.1-8B behind routers, A100, vLLM 0.7.0 (engine V0)",
        open: routing::OPEN,
        read: |names, t, way| routing::runs(names, t, "aibrix-v0.2.1", way),
    },
    Set {
        file: routing::FILE,
        name: "8 replicas of Llama-3.1-8B behind routers, H20, vLLM 0.8.5 (engine V1)",
        open: routing::OPEN,
        read: |names, t, way| routing::runs(names, t, "aibrix-v0.3.0", way),
    },
    Set {
        file: "llama405b_mi300x_h100_requests.csv.gz",
        name: "Llama-3.1-405B FP8 on 8 H100 and 8 MI300X, vLLM 0.6.3, open loop, a sweep of flags",
        open: &[
            Open {
                flag: "room of the cache on H100",
                taken: "55,000 tokens where prompts are cut: that many were held when queues began to grow; 40,000 where they are not, \
                        since a step of 91,680 tokens is kept room for: 36,000 to 41,000 were held when a step took in no more",
                other: "91,680, the longest sequence it was told to take",
            },
            Open {
                flag: "format of attention's weights",
                taken: "16 bit, as in Meta's checkpoint",
                other: "8 bit as the networks",
            },
        ],
        read: llama405b,
    },
    Set {
        file: "vllm_h100_blis_requests.csv.gz",
        name: "Llama-2, CodeLlama, Mixtral on H100, vLLM 0.15, open loop, few prompts",
        open: &[],
        read: |names, t, _| repeated(names, &t.rows, &t.facts, &mut BTreeMap::new()),
    },
    Set {
        file: "vllm_h200_llama70b_percentiles.csv.gz",
        name: "Llama-3.1-70B FP8 on one H200, vLLM 0.14.1, open loop, seven sets of flags",
        open: &[
            Open {
                flag: "conversations",
                taken: "75 of five turns on 10 texts, 300 of their turns sent: the middle TTFT at the lowest rate comes out so",
                other: "100",
            },
            Open {
                flag: "answers' lengths",
                taken: "even from 1 to twice the mean; ShareGPT's exponential",
                other: "all alike",
            },
            Open { flag: "what an earlier rate left in the cache", taken: "all that fits", other: "nothing" },
        ],
        read: h200,
    },
    Set {
        file: "sglang_h200_pd_ratio_percentiles.csv.gz",
        name: "gpt-oss-120b on 8 H200, SGLang of September 2025, pools for prompts and answers, closed loop; what a hand-over \
               takes was fitted on its TTFT at 32 users",
        open: &[
            Open {
                flag: "answers' lengths",
                taken: "exponential with the mean that came out, at most the nominal",
                other: "all alike",
            },
            Open { flag: "order in a pool", taken: "round robin, as in its commands", other: "the least loaded" },
            Open {
                flag: "what an earlier run left in the cache",
                taken: "the prompts: the files' names say that 128 users came first, and the same prompts are drawn for all",
                other: "nothing",
            },
        ],
        read: pools,
    },
    Set {
        file: "gb300_multiturn_requests.csv.gz",
        name: "DeepSeek-V4-Pro and Kimi-K2.5 in 4 bits on 4 GB300, vLLM 0.21 and SGLang, multi-turn, closed loop",
        open: &[
            Open {
                flag: "share of a prompt found in the cache",
                taken: "all but 2,048 tokens: the recorded answer before it, which the server did not give, and what is new",
                other: "nothing",
            },
            Open { flag: "the same", taken: "the same", other: "all but 512 tokens" },
        ],
        read: gb300,
    },
];

/// What follows a flag's name: `name=value`, `name value`; `_` reads as `-`.
fn flag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let plain = text.replace('_', "-");
    let at = plain.find(name)? + name.len();
    let rest = text[at..].trim_start_matches('s').trim_start_matches(['=', ' ']);
    rest.split([' ', ';', ',']).next().filter(|word| !word.is_empty())
}

fn number(text: &str, name: &str) -> Option<u32> {
    flag(text, name)?.parse().ok()
}

fn fact<'a>(t: &'a Tables, id: &str) -> Result<&'a Record, String> {
    t.facts.iter().find(|f| f.text("run_id") == id).ok_or_else(|| format!("{id}: not in runs.csv"))
}

fn model(names: &Names<'_>, name: &str) -> Result<String, String> {
    names.model(name).ok_or_else(|| format!("no model {name} in the catalogue"))
}

/// So many of the chip that a row names first.
fn system(names: &Names<'_>, n: u64, gpu: &str) -> Result<String, String> {
    let word = gpu.split(' ').next().unwrap_or(gpu);
    names.chip(word).map(|_| names.system(n, word)).ok_or_else(|| format!("no chip {word} in the catalogue"))
}

fn job(r: &Record) -> Result<Job, String> {
    let (prompt, output) = (r.amount("input_tokens")? as u32, r.amount("output_tokens")? as u32);
    Ok(Job { prompt: prompt.max(1), output: output.max(1), ..Job::default() })
}

/// TTFT, time per token and whole time of the rows without an error.
fn met(rows: &[&Record]) -> Vec<Measured> {
    let good: Vec<&Record> = rows.iter().copied().filter(|r| matches!(r.text("error"), "" | "0")).collect();
    let tpot = |r: &&Record| {
        let n = r.number("output_tokens").filter(|n| *n > 1.0)?;
        Some((r.number("e2e_ms")? - r.number("ttft_ms")?) / (n - 1.0))
    };
    let mut all = measured(&good, Latency::Ttft, "ttft_ms", 1.0);
    all.extend(percentiles(0, Latency::Tpot, &good.iter().filter_map(tpot).collect::<Vec<_>>()));
    all.extend(measured(&good, Latency::E2e, "e2e_ms", 1.0));
    all
}

/// V0 cuts prompts by itself when sequences may be longer than 32,768 tokens, 512 tokens to a step; without chunks it refuses to
/// start unless the longest prompt fits in a step. With several steps to a call it refuses prompts beyond a step.
fn llama405b(names: &Names<'_>, t: &Tables, way: Option<usize>) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for (id, rows) in by_run(&t.rows, "run_id") {
        let fact = fact(t, &id)?;
        let (flags, gpu) = (fact.needed("flags")?, fact.needed("gpu")?);
        let longest = number(flags, "max-model-len").unwrap_or(131_072);
        let chunked = flag(flags, "enable-chunked-prefill").is_none_or(|word| word == "True");
        let steps = number(flags, "num-scheduler-step").unwrap_or(1);
        let budget = if chunked { number(flags, "max-num-batched-tokens").unwrap_or(512) } else { longest };
        let most = if chunked && steps > 1 { budget } else { longest };
        let mut jobs = Vec::new();
        for r in &rows {
            let arrival = (r.amount("arrival_ms")? * 1e6) as u64;
            let class = if r.text("error") == "0" { 0 } else { UNJUDGED };
            jobs.push(Job { arrival, class, ..job(r)? });
        }
        jobs.retain(|job| job.prompt <= most);
        let room = match gpu.starts_with("H100") {
            true if way == Some(0) => 91_680,
            true if chunked => 55_000,
            true => 40_000,
            false => 1_500_000,
        };
        runs.push(Run {
            source: "dstack".into(),
            model: model(names, fact.needed("model")?)?,
            name: id,
            system: system(names, 8, gpu)?,
            engine: "vllm@0.6.3".into(),
            // Meta's checkpoint: networks in 8 bits, attention as it was.
            weights: Some("fp8".into()),
            attention: (way != Some(1)).then_some(Dtype::Bf16),
            cache: Some(Dtype::Bf16),
            tp: 8,
            settings: vllm::Settings {
                max_num_seqs: number(flags, "max-num-seqs").unwrap_or(256),
                max_num_batched_tokens: budget,
                max_model_len: longest,
                enable_chunked_prefill: chunked,
                enable_prefix_caching: false,
                prompts_alone: !chunked,
                num_scheduler_steps: steps,
                watermark: 0.01,
                num_blocks: room / 16,
                ..vllm::Settings::default()
            }
            .into(),
            jobs,
            measured: met(&rows),
            ..Run::default()
        });
    }
    Ok(runs)
}

/// Figures of a row of percentiles: `p50_ttft_ms` and so on.
fn stated(r: &Record, metrics: &[(Latency, &str)], ats: &[(At, &str)]) -> Vec<Measured> {
    let mut all = Vec::new();
    for (metric, word) in metrics {
        for (at, prefix) in ats {
            if let Some(ms) = r.number(&format!("{prefix}_{word}_ms")) {
                all.push(Measured { part: 0, metric: *metric, at: *at, ms });
            }
        }
    }
    all
}

/// Turns of a conversation, texts that conversations begin with, and tokens of such a text (`dev/vllm-tuning-plan.md` there).
const TURNS: u32 = 5;
const TEXTS: u64 = 10;
const TEXT: u32 = 3_750;
/// Nanoseconds between two rates (the same).
const COOLDOWN: u64 = 30_000_000_000;

/// Turns of conversations, each with all before it, in an order drawn once; Poisson arrivals that end on time, as `vllm bench` makes
/// them. The same were sent at every rate, one rate after another.
fn h200(names: &Names<'_>, t: &Tables, way: Option<usize>) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for r in &t.rows {
        let flags = r.needed("flags")?;
        let (n, rate) = (r.amount("num_prompts")? as u32, r.amount("request_rate")?);
        let (input, output) = (r.amount("total_input_tokens")?, r.amount("total_output_tokens")? as u32 / n);
        let mean = input as u32 / n;
        let talk = mean > TEXT;
        let mut draw = Chance::new(7);
        let conversations: u64 = if way == Some(0) { 100 } else { 75 };
        let mut turns: Vec<(u64, u32)> =
            (0..conversations).flat_map(|c| (0..TURNS).map(move |turn| (c, turn))).collect();
        for i in (1..turns.len()).rev() {
            turns.swap(i, draw.below(i as u64 + 1) as usize);
        }
        let gaps: Vec<f64> = (0..n).map(|_| draw.exponential()).collect();
        let scale = f64::from(n) / rate / gaps.iter().sum::<f64>();
        let longer = (mean.saturating_sub(TEXT)) / (TURNS / 2);
        let mut now = 0.0;
        let mut once = Vec::new();
        for (gap, (c, turn)) in gaps.iter().zip(&turns) {
            now += gap * scale;
            let long = match way {
                Some(1) => output,
                _ if talk => 1 + draw.below(u64::from(2 * output)) as u32,
                _ => 1 + (draw.exponential() * f64::from(output)) as u32,
            };
            let arrival = (now * 1e9) as u64;
            let content = pieces([(c % TEXTS, TEXT), (TEXTS + c, turn * longer)]);
            let prompt = if talk { TEXT + turn * longer } else { mean };
            once.push(Job {
                arrival,
                prompt,
                output: long,
                content: if talk { content } else { vec![] },
                ..Job::default()
            });
        }
        let mut jobs = Vec::new();
        if way != Some(2) {
            jobs.extend(once.iter().map(|j| Job { class: UNJUDGED, ..j.clone() }));
        }
        let begin = if jobs.is_empty() { 0 } else { (now * 1e9) as u64 + 2 * COOLDOWN };
        jobs.extend(once.into_iter().map(|j| Job { arrival: j.arrival + begin, ..j }));
        runs.push(Run {
            source: "DO-Solutions".into(),
            name: r.needed("run_id")?.into(),
            model: model(names, "nvidia/Llama-3.1-70B-Instruct-FP8")?,
            system: system(names, 8, "H200")?,
            engine: "vllm@0.14.1".into(),
            weights: Some("fp8".into()),
            cache: Some(Dtype::Fp8),
            settings: vllm::Settings {
                max_num_seqs: number(flags, "max-num-seqs").unwrap_or(1024),
                max_num_batched_tokens: number(flags, "max-num-batched-tokens").unwrap_or(8192),
                max_model_len: 131_072,
                num_blocks: r.amount("kv_tokens")? as u32 / 16,
                ..vllm::Settings::default()
            }
            .into(),
            jobs,
            measured: stated(
                r,
                &[(Latency::Ttft, "ttft"), (Latency::Tpot, "tpot"), (Latency::E2e, "e2el")],
                &[(At::Percentile(0.5), "p50"), (At::Percentile(0.95), "p95"), (At::Percentile(0.99), "p99")],
            ),
            ..Run::default()
        });
    }
    Ok(runs)
}

/// Workers of two chips; a pool of them for prompts, one for answers.
fn pools(names: &Names<'_>, t: &Tables, way: Option<usize>) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for r in &t.rows {
        let count = |column: &str| r.amount(column).map(|x| x as u32);
        let n = count("num_prompts")?;
        let (input, output, most) =
            (count("total_input_tokens")? / n, count("total_output_tokens")? / n, count("osl")?);
        let mut draw = Chance::new(11);
        let drawn = (0..n).map(|i| {
            let long = if way == Some(0) { f64::from(output) } else { draw.exponential() * f64::from(output) };
            let content = vec![segment(i.into(), input)];
            Job { prompt: input, output: (long as u32).clamp(1, most), content, ..Job::default() }
        });
        let once: Vec<Job> = drawn.collect();
        let users = count("concurrency")?;
        // Each run begins with one request that is not counted.
        let unjudged = |job: &Job| Job { class: UNJUDGED, ..job.clone() };
        let mut jobs = Vec::new();
        for _ in [128, 64].iter().filter(|more| **more > users && way != Some(2)) {
            jobs.extend(once.iter().take(1).chain(&once).map(unjudged));
        }
        jobs.extend(once.first().map(unjudged));
        jobs.extend(once);
        let (prompters, rest) = (count("prefill_workers")?, count("decode_workers")?);
        runs.push(Run {
            source: "dstack".into(),
            name: r.needed("run_id")?.into(),
            model: model(names, "gpt-oss-120b")?,
            system: system(names, 8, "H200")?,
            engine: "sglang".into(),
            tp: 2,
            replicas: (prompters + rest) as usize,
            prompters: prompters as usize,
            router: if way == Some(1) { Router::LeastLoaded } else { Router::RoundRobin },
            settings: sglang::Settings {
                max_running_requests: 1024,
                max_total_tokens: 2_560_000,
                ..sglang::Settings::new(reckoning(names)?)
            }
            .into(),
            jobs,
            users: Some(users as usize),
            measured: stated(
                r,
                &[(Latency::Ttft, "ttft"), (Latency::Tpot, "tpot")],
                &[(At::Mean, "mean"), (At::Percentile(0.5), "median"), (At::Percentile(0.99), "p99")],
            ),
            ..Run::default()
        });
    }
    Ok(runs)
}

/// How SGLang reckons.
fn reckoning(names: &Names<'_>) -> Result<Reckoning, String> {
    let reckoning = names.catalog.engine("sglang").ok().and_then(|(engine, _)| engine.reckoning);
    reckoning.ok_or_else(|| "no engine sglang that reckons in the catalogue".to_owned())
}

/// Turns in the order in which they ended, so many at once. What a turn shares with the one before is not recorded.
fn gb300(names: &Names<'_>, t: &Tables, way: Option<usize>) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for (id, rows) in by_run(&t.rows, "run_id") {
        let fact = fact(t, &id)?;
        let flags = fact.needed("flags")?;
        let users = fact.needed("rate_or_concurrency")?.split(' ').next().and_then(|n| n.parse::<u32>().ok());
        let users = users.ok_or_else(|| format!("{id}: how many sessions?"))?;
        let (room, seqs) = (4_000_000, number(flags, "max-num-seqs").unwrap_or(128));
        let pools = id.rsplit('/').nth(1).and_then(|word| {
            let (p, rest) = word.split_once("p_")?;
            let (d, _) = rest.split_once('d')?;
            Some((p.rsplit('_').next()?.parse::<usize>().ok()? / 4, d.parse::<usize>().ok()? / 4))
        });
        let fresh = match way {
            None => 2_048,
            Some(0) => u32::MAX,
            Some(_) => 512,
        };
        let mut jobs = Vec::new();
        for r in &rows {
            let plain = job(r)?;
            // One stream that all begin with: what is found must be there, whoever put it there.
            let content = pieces([(0, plain.prompt.saturating_sub(fresh))]);
            jobs.push(Job { content, ..plain });
        }
        let longest = rows.iter().filter_map(|r| r.number("input_tokens")).fold(0.0, f64::max) as u32;
        // A first request leaves the stream there.
        jobs.insert(
            0,
            Job { prompt: longest, output: 1, class: UNJUDGED, content: vec![segment(0, longest)], ..Job::default() },
        );
        let sglang = fact.needed("engine")? == "SGLang";
        let one_prompt = 8192;
        runs.push(Run {
            source: "multi-turn".into(),
            model: model(names, fact.needed("model")?)?,
            system: "gb300-nvl72".into(),
            engine: if sglang { "sglang" } else { "vllm@0.21.0" }.into(),
            // DeepSeek's own checkpoint is in 4 bits.
            weights: fact.text("model").contains("NVFP4").then(|| "nvfp4".into()),
            cache: Some(Dtype::Fp8),
            tp: 4,
            replicas: pools.map_or(1, |(p, d)| p + d),
            prompters: pools.map_or(0, |(p, _)| p),
            settings: if sglang {
                sglang::Settings {
                    chunked_prefill_size: Some(number(flags, "chunked-prefill-size").unwrap_or(16_384)),
                    max_running_requests: number(flags, "max-running-requests").unwrap_or(128),
                    max_total_tokens: room,
                    context_length: 1_000_000,
                    ..sglang::Settings::new(reckoning(names)?)
                }
                .into()
            } else {
                vllm::Settings {
                    max_num_seqs: seqs,
                    max_num_batched_tokens: number(flags, "max-num-batched-tokens").unwrap_or(one_prompt),
                    max_model_len: 1_000_000,
                    num_blocks: room / 16,
                    ..vllm::Settings::default()
                }
                .into()
            },
            name: id,
            jobs,
            users: Some(users as usize),
            measured: met(&rows),
            ..Run::default()
        });
    }
    Ok(runs)
}
