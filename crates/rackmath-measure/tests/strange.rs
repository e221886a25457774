//! Readers of what comes from outside against inputs made strange: real streams, metrics and result files with bytes changed, cut, doubled and
//! swapped. RACKMATH_INPUTS says how many (a few thousand unless given); the same readers stand in `fuzz/`.

use rackmath_measure::gauge::Chunk;
use rackmath_measure::prometheus::{Reading, Scrape};
use rackmath_measure::read::read;
use rackmath_measure::sse::Events;
use rackmath_measure::watch::{replayed, view};
use rackmath_units::Chance;

const STREAMS: [&[u8]; 5] = [
    include_bytes!("data/llamacpp_completions_stream.sse"),
    include_bytes!("data/llamacpp_chat_stream.sse"),
    include_bytes!("data/vllm_0.32.0_completions_stream.sse"),
    include_bytes!("data/vllm_0.32.0_chat_stream_continuous_usage.sse"),
    include_bytes!("data/vllm_0.32.0_completions_stream_interval4.sse"),
];
const RESULTS: [&[u8]; 3] = [
    include_bytes!("data/vllm_0.32.0_bench_serve_interval4.json"),
    b"{\"backend\":\"sglang\",\"request_rate\":4.0,\"max_concurrency\":null,\"completed\":2,\"total_input_tokens\":128,\"total_output_tokens\":32,\"total_output_tokens_retokenized\":31,\"mean_e2e_latency_ms\":425.0,\"mean_ttft_ms\":62.8,\"mean_tpot_ms\":24.2,\"server_info\":{\"tp_size\":8}}",
    b"{\"load_summary\":{\"count\":24,\"requested_rate\":4.0,\"achieved_rate\":3.9},\"successes\":{\"count\":24,\"latency\":{\"time_to_first_token\":{\"mean\":0.063}},\"throughput\":{\"output_tokens_per_sec\":62.6}},\"failures\":{\"count\":0},\"benchmarks\":[{\"metrics\":{\"time_to_first_token_ms\":{}}}],\"experiments\":[{\"requests\":[{\"timestamp\":1,\"response_timestamps\":[2,3]}]}],\"tput_per_gpu\":1,\"hw\":\"x\",\"input_config\":{}}",
];
const METRICS: &[u8] = include_bytes!("data/llamacpp_metrics_busy.txt");

fn strange(chance: &mut Chance, from: &[u8]) -> Vec<u8> {
    let mut bytes = from.to_vec();
    // A window of it, so that small parts are met as well.
    if chance.below(2) == 0 && bytes.len() > 8 {
        let start = chance.below(bytes.len() as u64 / 2) as usize;
        let len = 1 + chance.below((bytes.len() - start) as u64) as usize;
        bytes = bytes[start..start + len].to_vec();
    }
    for _ in 0..=chance.below(6) {
        let n = bytes.len() as u64;
        if n == 0 {
            break;
        }
        let (a, b) = (chance.below(n) as usize, chance.below(n) as usize);
        let (low, high) = (a.min(b), a.max(b).min(a.min(b) + 64));
        match chance.below(6) {
            0 => bytes[a] = chance.bits() as u8,
            1 => drop(bytes.drain(low..high)),
            2 => {
                let piece = bytes[low..high].to_vec();
                bytes.splice(a..a, piece);
            }
            3 => bytes.swap(a, b),
            4 => bytes.truncate(a),
            _ => {
                let signs: &[&[u8]] = &[
                    b"{",
                    b"}",
                    b"\"",
                    b"[",
                    b"\n\n",
                    b"\r",
                    b"1e999",
                    b"-1",
                    b"null",
                    b"\xff",
                    b"data: ",
                    b":",
                    b"18446744073709551616",
                ];
                let sign = signs[chance.below(signs.len() as u64) as usize];
                bytes.splice(a..a, sign.iter().copied());
            }
        }
    }
    bytes
}

fn stream(bytes: &[u8], step: usize) -> Vec<Chunk> {
    let (mut events, mut chunks) = (Events::default(), Vec::new());
    for piece in bytes.chunks(step.max(1)) {
        if events.push(piece, |data| chunks.push(Chunk::read(data))).is_err() {
            break;
        }
    }
    chunks
}

#[test]
fn readers_end_and_do_not_fall() {
    let inputs = std::env::var("RACKMATH_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(6_000_u64);
    let mut chance = Chance::new(17);
    let (mut chunks, mut results, mut metrics) = (0, 0, 0);
    for i in 0..inputs {
        match i % 3 {
            0 => {
                let from = STREAMS[chance.below(STREAMS.len() as u64) as usize];
                let bytes = strange(&mut chance, from);
                let step = 1 + chance.below(600) as usize;
                let whole = stream(&bytes, bytes.len());
                assert_eq!(whole, stream(&bytes, step), "where reads end changes nothing");
                chunks += whole.iter().filter(|c| c.content).count();
            }
            1 => {
                let from = RESULTS[chance.below(RESULTS.len() as u64) as usize];
                let bytes = strange(&mut chance, from);
                if let Ok(all) = read("f", &String::from_utf8_lossy(&bytes)) {
                    let sane = |v: Option<f64>| v.is_none_or(|v| v.is_finite() && v >= 0.0);
                    assert!(
                        all.iter().all(|o| sane(o.ttft_ms.mean)
                            && sane(o.tpot_ms.mean)
                            && sane(o.output_tok_s)
                            && sane(o.isl)),
                        "{all:?}"
                    );
                    results += 1;
                }
            }
            _ => {
                let text = String::from_utf8_lossy(&strange(&mut chance, METRICS)).into_owned();
                let scrape = Scrape::read(&text);
                metrics += usize::from(Reading::of(&scrape).is_some());
                if let Ok(mut taken) = replayed("f", &text, 0.0) {
                    taken.extend(replayed("f", &String::from_utf8_lossy(METRICS), 10.0).expect("whole"));
                    let _ = view(&taken);
                }
            }
        }
    }
    println!("{inputs} inputs: {chunks} chunks, {results} results and {metrics} scrapes were read to their end");
    // Most stay near enough to what is real for the readers to go all the way.
    assert!(chunks > 0 && results > 0 && metrics > 0, "{chunks} {results} {metrics}");
}
