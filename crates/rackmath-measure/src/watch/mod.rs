//! A running server from its own counters: what happened between two scrapes.
//!
//! $$ r = \frac{\Delta\,\text{finished}}{\Delta t} \qquad
//!    \text{isl} = \frac{\Delta\,\text{prompt tokens}}{\Delta\,\text{requests}} \qquad
//!    \text{tpot} = \frac{\Delta\,\text{sum}}{\Delta\,\text{count}} \qquad
//!    N = r\,(\text{E2E} - \text{queue}) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | r | rate | 1/s | requests that ended |
//! | N | by_littles_law | 1 | requests under way as the rate and their time have it; where the gauge says otherwise, the load is not steady |
//!
//! Means of histograms are exact, percentiles lie between two edges of a bucket. A counter that falls means that the server started anew.
//! Source: Little 1961; names of metrics as in `prometheus`.

use crate::judge;
use crate::prometheus::{Reading, Scrape, between};
use rackmath_spec::SpecError;
use serde::Serialize;

/// A scrape and when it was taken, in seconds of any clock.
#[derive(Clone, Debug)]
pub struct Taken {
    pub at: f64,
    pub reading: Reading,
}

/// What a server did between two scrapes; what its engine does not tell is absent. Times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    pub engine: String,
    /// As the server's series name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub seconds: f64,
    /// Instants that were looked at for running and waiting.
    pub samples: usize,
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    /// Of the last scrape.
    pub waiting_now: Option<f64>,
    pub kv_used: Option<f64>,
    pub kv_tokens: Option<f64>,
    pub rate: Option<f64>,
    pub isl: Option<f64>,
    pub osl: Option<f64>,
    pub hit: Option<f64>,
    pub input_tok_s: Option<f64>,
    pub output_tok_s: Option<f64>,
    pub ttft_ms: Option<f64>,
    pub tpot_ms: Option<f64>,
    pub e2e_ms: Option<f64>,
    pub queue_ms: Option<f64>,
    /// Mean time of a pass, were the engine never idle.
    pub step_ms: Option<f64>,
    /// Between which the middle lies.
    pub ttft_p50_ms: Option<(f64, f64)>,
    pub tpot_p50_ms: Option<(f64, f64)>,
    pub by_littles_law: Option<f64>,
    pub preempted: Option<f64>,
    /// Tokens drafted and kept for each sequence and pass.
    pub drafted: Option<f64>,
    pub accepted: Option<f64>,
    pub restarted: bool,
    pub alerts: Vec<Alert>,
}

/// What somebody should know: in JSON a remark, whose words stand in `report`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "says")]
pub enum Alert {
    #[serde(rename = "watch_restarted")]
    Restarted,
    /// Nothing came out.
    #[serde(rename = "watch_idle")]
    Idle,
    /// More waits at the end than at the beginning.
    #[serde(rename = "watch_queue_grows")]
    QueueGrows { from: f64, to: f64 },
    /// Requests wait although fewer than can run do.
    #[serde(rename = "watch_waiting")]
    Waiting { requests: f64 },
    /// The cache is nearly full.
    #[serde(rename = "watch_cache_full")]
    CacheFull { used: f64 },
    /// Work was thrown away.
    #[serde(rename = "watch_preempted")]
    Preempted { times: f64 },
    /// Waiting is most of the time to the first token.
    #[serde(rename = "watch_queue_is_most")]
    QueueIsMost { queue_ms: f64, ttft_ms: f64, share: f64 },
    /// Requests under way and Little's law differ.
    #[serde(rename = "watch_not_steady")]
    NotSteady { running: f64, law: f64 },
    /// A prefix cache was asked and had nothing.
    #[serde(rename = "watch_never_hits")]
    NeverHits { tokens: f64 },
    /// It finds clearly less than whoever watches expects.
    #[serde(rename = "watch_hits_less")]
    HitsLess { hit: f64, expected: f64 },
}

impl Alert {
    /// Whether something is wrong, not only worth knowing: prompts may share nothing.
    pub fn grave(&self) -> bool {
        !matches!(self, Self::NeverHits { .. })
    }
}

impl View {
    /// Holds the share of hits against the one that is expected, which says more than that nothing is hit.
    pub fn expect_hits(&mut self, expected: f64) {
        if let Some(hit) = self.hit.filter(|hit| *hit < judge::HITS_OF * expected) {
            self.alerts.retain(|alert| !matches!(alert, Alert::NeverHits { .. }));
            self.alerts.push(Alert::HitsLess { hit, expected });
        }
    }
}

/// Sums up scrapes in order of time; nothing of fewer than two.
pub fn view(taken: &[Taken]) -> Option<View> {
    let (first, last) = (taken.first()?, taken.last()?);
    let seconds = last.at - first.at;
    if taken.len() < 2 || seconds <= 0.0 {
        return None;
    }
    let fell = |pick: fn(&Reading) -> Option<f64>| {
        taken.windows(2).any(|w| matches!((pick(&w[0].reading), pick(&w[1].reading)), (Some(a), Some(b)) if b < a))
    };
    if fell(|r| r.output_tokens) || fell(|r| r.finished) || fell(|r| r.prompt_tokens) {
        return Some(View {
            engine: last.reading.engine.clone(),
            seconds,
            samples: taken.len(),
            restarted: true,
            alerts: vec![Alert::Restarted],
            ..View::default()
        });
    }
    let (a, b) = (&first.reading, &last.reading);
    let grown = |pick: fn(&Reading) -> Option<f64>| Some(pick(b)? - pick(a)?);
    let mean = |pick: fn(&Reading) -> Option<(f64, f64)>| {
        let ((s1, n1), (s0, n0)) = (pick(b)?, pick(a)?);
        (n1 > n0).then(|| (s1 - s0) / (n1 - n0) * 1e3)
    };
    let over = |top: Option<f64>, bottom: Option<f64>| top.zip(bottom).filter(|(_, n)| *n > 0.0).map(|(x, n)| x / n);
    let instants = |pick: fn(&Reading) -> Option<f64>| {
        let all: Vec<f64> = taken.iter().filter_map(|t| pick(&t.reading)).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    // Without a count of requests, the histogram of first tokens counts them.
    let finished = grown(|r| r.finished);
    let begun = grown(|r| r.ttft.map(|(_, n)| n)).or(finished);
    let (e2e_ms, queue_ms) = (mean(|r| r.e2e), mean(|r| r.queue));
    let rate = finished.map(|n| n / seconds);
    let mut view = View {
        engine: b.engine.clone(),
        model: b.model.clone(),
        seconds,
        samples: taken.len(),
        running: instants(|r| r.running),
        waiting: instants(|r| r.waiting),
        waiting_now: b.waiting,
        kv_used: b.kv_used,
        kv_tokens: b.kv_tokens,
        rate,
        isl: over(grown(Reading::prompts), begun),
        osl: over(grown(|r| r.output_tokens), finished),
        hit: over(grown(|r| r.hits), grown(|r| r.queries)),
        input_tok_s: grown(Reading::prompts).map(|n| n / seconds),
        output_tok_s: grown(|r| r.output_tokens).map(|n| n / seconds),
        ttft_ms: mean(|r| r.ttft),
        tpot_ms: mean(|r| r.tpot),
        e2e_ms,
        queue_ms,
        step_ms: grown(|r| r.steps).filter(|n| *n > 0.0).map(|n| seconds / n * 1e3),
        ttft_p50_ms: between(&a.ttft_buckets, &b.ttft_buckets, 0.5).map(|(low, high)| (low * 1e3, high * 1e3)),
        tpot_p50_ms: between(&a.tpot_buckets, &b.tpot_buckets, 0.5).map(|(low, high)| (low * 1e3, high * 1e3)),
        by_littles_law: rate.zip(e2e_ms).map(|(r, e)| r * (e - queue_ms.unwrap_or(0.0)).max(0.0) * 1e-3),
        preempted: grown(|r| r.preempted),
        drafted: over(grown(|r| r.drafted), grown(|r| r.drafts)),
        accepted: over(grown(|r| r.accepted), grown(|r| r.drafts)),
        ..View::default()
    };
    view.alerts = alerts(&view, a.waiting.unwrap_or(0.0));
    if let Some(tokens) = grown(|r| r.queries).filter(|n| *n >= judge::QUERIES && view.hit == Some(0.0)) {
        view.alerts.push(Alert::NeverHits { tokens });
    }
    Some(view)
}

fn alerts(v: &View, waited: f64) -> Vec<Alert> {
    let mut all = Vec::new();
    let waits = v.waiting_now.unwrap_or(0.0);
    if v.output_tok_s == Some(0.0) {
        all.push(Alert::Idle);
    }
    if waits > waited + judge::QUEUE_GROWS * waited.sqrt().max(judge::QUEUE_GROWS) {
        all.push(Alert::QueueGrows { from: waited, to: waits });
    } else if waits >= 1.0 {
        all.push(Alert::Waiting { requests: waits });
    }
    if let Some(used) = v.kv_used.filter(|used| *used > judge::CACHE_FULL) {
        all.push(Alert::CacheFull { used });
    }
    if let Some(times) = v.preempted.filter(|n| *n > 0.0) {
        all.push(Alert::Preempted { times });
    }
    if let (Some(queue_ms), Some(ttft_ms)) = (v.queue_ms, v.ttft_ms)
        && queue_ms > judge::QUEUE_MOST * ttft_ms
        && ttft_ms > 0.0
    {
        all.push(Alert::QueueIsMost { queue_ms, ttft_ms, share: queue_ms / ttft_ms });
    }
    if let (Some(running), Some(law)) = (v.running, v.by_littles_law)
        && v.samples >= judge::LOOKS
        && (running - law).abs() > judge::LITTLE_OFF * running.max(law)
        && running.max(law) > 1.0
    {
        all.push(Alert::NotSteady { running, law });
    }
    all
}

/// Before each scrape of a saved file stands this and the time in seconds.
pub const MARK: &str = "# rackmath scrape at ";

/// Scrapes of a saved file; of one without marks, one, at `at`.
pub fn replayed(name: &str, text: &str, at: f64) -> Result<Vec<Taken>, SpecError> {
    let mut all = Vec::new();
    let mut push = |at: f64, text: &str| -> Result<(), SpecError> {
        let scrape = Scrape::read(text);
        let Some(reading) = Reading::of(&scrape) else {
            let known: Vec<&str> = crate::prometheus::DIALECTS.iter().map(|d| d.prefix).collect();
            let said = format!("metrics of no engine that is known ({} series)", scrape.samples.len());
            return Err(
                SpecError::file(name, said).hint(format!("expected names that begin with {}", known.join(", ")))
            );
        };
        all.push(Taken { at, reading });
        Ok(())
    };
    if text.contains(MARK) {
        for part in text.split(MARK).skip(1) {
            let (time, rest) = part.split_once('\n').unwrap_or((part, ""));
            let time = time.trim().parse::<f64>().ok().filter(|t| t.is_finite());
            let time = time.ok_or_else(|| SpecError::file(name, format!("a mark without a time: {MARK}")))?;
            push(time, rest)?;
        }
    } else {
        push(at, text)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(at: f64, text: &str) -> Taken {
        replayed("f", text, at).expect("metrics").remove(0)
    }

    #[test]
    fn vllm_from_idle_to_busy() {
        let idle = taken(0.0, include_str!("../../tests/data/vllm_0.32.0_metrics_idle.txt"));
        let busy = taken(20.0, include_str!("../../tests/data/vllm_0.32.0_metrics_busy.txt"));
        let after = taken(30.0, include_str!("../../tests/data/vllm_0.32.0_metrics.txt"));
        let v = view(&[idle.clone(), busy.clone()]).expect("a view");
        let near = |value: Option<f64>, wanted: f64| {
            assert!((value.expect("known") / wanted - 1.0).abs() < 1e-6, "{value:?} {wanted}");
        };
        // 27 requests in 20 s; 456 tokens; the means of the histograms.
        near(v.rate, 27.0 / 20.0);
        near(v.output_tok_s, 456.0 / 20.0);
        near(v.ttft_ms, 13.397576093673706 / 43.0 * 1e3);
        near(v.tpot_ms, 14.903312781998466 / 413.0 * 1e3);
        near(v.isl, 2695.0 / 43.0);
        near(v.running, 8.0);
        assert!(v.alerts.iter().any(|a| matches!(a, Alert::QueueGrows { to, .. } if *to == 24.0)), "{:?}", v.alerts);
        let v = view(&[busy.clone(), after]).expect("a view");
        assert!(v.rate.is_some_and(|r| r > 0.0) && !v.restarted);
        let v = view(&[busy, idle].map(|t| Taken { at: 50.0 - t.at, ..t })).expect("a view");
        assert_eq!((v.restarted, v.alerts.as_slice()), (true, &[Alert::Restarted][..]));
    }

    #[test]
    fn a_prefix_cache_that_never_hits_is_worth_a_word_but_is_not_wrong() {
        let scrape = |hits: f64, queries: f64| {
            format!(
                "vllm:prefix_cache_hits_total{{model_name=\"x/y\"}} {hits}\nvllm:prefix_cache_queries_total{{model_name=\"x/y\"}} {queries}\nvllm:generation_tokens_total{{model_name=\"x/y\"}} {queries}\n"
            )
        };
        let seen = |hits, queries| {
            view(&[taken(0.0, &scrape(0.0, 0.0)), taken(10.0, &scrape(hits, queries))]).expect("a view")
        };
        let v = seen(0.0, 5e4);
        assert_eq!((v.alerts.as_slice(), v.model.as_deref()), (&[Alert::NeverHits { tokens: 5e4 }][..], Some("x/y")));
        assert!(v.alerts.iter().all(|a| !a.grave()));
        assert!(seen(100.0, 5e4).alerts.is_empty() && seen(0.0, 10.0).alerts.is_empty());
    }

    #[test]
    fn llama_cpp_tells_less_and_nothing_is_made_up() {
        let busy = taken(0.0, include_str!("../../tests/data/llamacpp_metrics_busy.txt"));
        let after = taken(10.0, include_str!("../../tests/data/llamacpp_metrics.txt"));
        let v = view(&[busy, after]).expect("a view");
        assert_eq!((v.rate, v.ttft_ms, v.kv_used), (None, None, None));
        assert!(v.tpot_ms.is_some_and(|t| t > 0.0) && v.output_tok_s.is_some_and(|t| t > 0.0), "{v:?}");
    }

    #[test]
    fn a_saved_file_is_read_back() {
        let text =
            format!("{MARK}100.5\nvllm:generation_tokens_total 5\n{MARK}110.5\nvllm:generation_tokens_total 25\n");
        let all = replayed("f", &text, 0.0).expect("two");
        assert_eq!((all.len(), view(&all).expect("a view").output_tok_s), (2, Some(2.0)));
        assert!(replayed("f", "up 1\n", 0.0).is_err() && replayed("f", &format!("{MARK}x\n"), 0.0).is_err());
    }
}
