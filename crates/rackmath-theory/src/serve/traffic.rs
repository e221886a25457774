//! What a trace says of traffic: how long requests are, how often they come, how unevenly.
//!
//! $$ \lambda = \frac{n - 1}{t_n - t_1} \qquad c = \frac{\sqrt{\mathrm{Var}\,g}}{E g} \qquad
//!    \hat\lambda = \max_t \frac{N(t, t + w)}{w} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | n, t, g | requests, time, gap | 1, s, s | requests, when each came, and the time to the next |
//! | λ | rate | 1/s | requests per second, mean |
//! | c | gap_cv | 1 | burstiness: 0 like clockwork, 1 at random (Poisson), above 1 in bursts |
//! | λ̂, w | peak_rate, [`PEAK_WINDOW`] | 1/s, s | the busiest minute, wherever it begins |
//!
//! Requests without an answer failed or were cut: they are counted, and left out of everything else. Times that many
//! requests share were rounded by whoever wrote the trace, and c then says more about the rounding. Source: ours.

use crate::lengths::{Drawn, spread};
use crate::stats::ranked;
use crate::steady::Spread;
use rackmath_spec::trace::{Trace, TraceRequest};
use schemars::JsonSchema;
use serde::Serialize;

pub const PEAK_WINDOW: f64 = 60.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    pub requests: usize,
    pub unanswered: usize,
    pub input: Measured,
    pub output: Measured,
    /// Covariance of a prompt and its answer, in square tokens.
    pub covariance: f64,
    /// How they come; none where the trace has no times or all are equal.
    pub arrivals: Option<Arrivals>,
}

/// Lengths, in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    #[serde(skip)]
    pub drawn: Drawn,
    /// Mean.
    pub mean: f64,
    /// Half are shorter.
    pub p50: f64,
    /// 90 % are shorter.
    pub p90: f64,
    /// 99 % are shorter.
    pub p99: f64,
    /// Standard deviation over mean.
    pub cv: f64,
}

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Arrivals {
    /// From the first to the last.
    pub span_s: f64,
    /// Requests per second, mean.
    pub rate_per_s: f64,
    /// Standard deviation of gaps over their mean: 1 at random.
    pub gap_cv: f64,
    /// Share of requests with the time of the one before.
    pub together: f64,
    /// Requests per second of the busiest minute; none where the trace is shorter.
    pub peak_rate_per_s: Option<f64>,
    /// The busiest minute over the mean.
    pub peak_over_mean: Option<f64>,
}

impl Traffic {
    /// Of a trace; none where no request has an answer.
    pub fn of(trace: &Trace) -> Option<Self> {
        let answered: Vec<&TraceRequest> = trace.requests.iter().filter(|r| r.output.get() > 0.0).collect();
        let measured = |length: fn(&TraceRequest) -> f64| {
            let mut values: Vec<f64> = answered.iter().map(|r| length(r)).collect();
            values.sort_by(f64::total_cmp);
            let drawn = Drawn::seen(values.clone())?;
            let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|p| ranked(&values, p));
            Some(Measured { mean: drawn.mean, p50, p90, p99, cv: drawn.cv(), drawn })
        };
        // A prompt has at least a token, whatever was written.
        let input = measured(|r| r.input.get().max(1.0))?;
        let output = measured(|r| r.output.get())?;
        let (i, o) = (input.drawn.mean, output.drawn.mean);
        let both = answered.iter().map(|r| (r.input.get().max(1.0) - i) * (r.output.get() - o)).sum::<f64>();
        let (requests, covariance) = (answered.len(), both / answered.len() as f64);
        let (unanswered, arrivals) = (trace.requests.len() - requests, Arrivals::of(&answered).filter(|_| trace.timed));
        Some(Self { requests, unanswered, input, output, covariance, arrivals })
    }

    pub fn spread(&self) -> Spread {
        spread(&self.input.drawn, &self.output.drawn, self.covariance)
    }
}

impl Arrivals {
    fn of(requests: &[&TraceRequest]) -> Option<Self> {
        let times: Vec<f64> = requests.iter().map(|r| r.time.get()).collect();
        let span = times.last()? - times.first()?;
        // Less than a microsecond is a slip of whoever wrote it, or one moment.
        if span < 1e-6 {
            return None;
        }
        let gaps = times.len() as f64 - 1.0;
        let mean = span / gaps;
        let pairs = || times.windows(2).map(|two| two[1] - two[0]);
        let variance = pairs().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps;
        let rate = gaps / span;
        let peak = (span >= PEAK_WINDOW).then(|| busiest(&times).max(rate));
        let (gap_cv, peak_over_mean) = (variance.sqrt() / mean, peak.map(|peak| peak / rate));
        let together = pairs().filter(|g| *g == 0.0).count() as f64 / gaps;
        Some(Self { span_s: span, rate_per_s: rate, gap_cv, together, peak_rate_per_s: peak, peak_over_mean })
    }
}

/// Requests per second in the busiest window, by sliding its end over the times.
fn busiest(times: &[f64]) -> f64 {
    let (mut first, mut most) = (0, 0);
    for (last, time) in times.iter().enumerate() {
        // Half open: what came a whole window ago is outside.
        while times[first] <= time - PEAK_WINDOW {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    most as f64 / PEAK_WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rackmath_spec::trace::TraceFormat;
    use rackmath_units::{Seconds, Tokens};

    fn trace(rows: &[(f64, f64, f64)]) -> Trace {
        let request = |(time, input, output): &(f64, f64, f64)| TraceRequest {
            time: Seconds::s(*time),
            input: Tokens::new(*input),
            output: Tokens::new(*output),
            blocks: Vec::new(),
            logged: None,
            turn: None,
        };
        let requests = rows.iter().map(request).collect();
        let columns = Default::default();
        Trace { requests, block: Tokens::new(512.0), format: TraceFormat::Csv, timed: true, reversed: 0, columns }
    }

    fn arrivals(rows: &[(f64, f64, f64)]) -> Option<Arrivals> {
        Traffic::of(&trace(rows)).unwrap().arrivals
    }

    #[test]
    fn burstiness_and_peak_of_clockwork_and_of_a_burst() {
        let rows: Vec<_> = (0..241).map(|i| (f64::from(i) * 0.5, 100.0, 10.0)).collect();
        let a = arrivals(&rows).unwrap();
        assert!((a.rate_per_s - 2.0).abs() < 1e-12 && a.gap_cv < 1e-9 && a.together == 0.0, "{a:?}");
        // 120 requests in any half-open minute.
        assert!((a.peak_rate_per_s.unwrap() - 2.0).abs() < 1e-12, "{a:?}");
        // 60 requests within 6 s around 100 s, one every 10 s else: the busiest minute is found wherever it begins.
        let mut rows: Vec<_> = (0..31).map(|i| (f64::from(i) * 10.0, 100.0, 10.0)).collect();
        rows.extend((0..60).map(|i| (97.0 + f64::from(i) * 0.1, 100.0, 10.0)));
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let a = arrivals(&rows).unwrap();
        // Six more of the others fall into a minute that holds the burst.
        assert!((a.peak_rate_per_s.unwrap() - 66.0 / 60.0).abs() < 1e-12 && a.gap_cv > 1.0, "{a:?}");
    }

    #[test]
    fn requests_without_an_answer_are_left_out() {
        let t = Traffic::of(&trace(&[(0.0, 100.0, 10.0), (1.0, 9999.0, 0.0), (2.0, 300.0, 30.0)])).unwrap();
        assert_eq!((t.requests, t.unanswered, t.input.drawn.mean, t.covariance), (2, 1, 200.0, 1000.0));
        assert!(Traffic::of(&trace(&[(0.0, 1.0, 0.0)])).is_none() && arrivals(&[(0.0, 1.0, 5.0)]).is_none());
    }

    proptest! {
        #[test]
        fn a_peak_is_never_below_the_mean_and_never_above_all_in_a_minute(
            mut times in prop::collection::vec(0.0f64..600.0, 2..200)
        ) {
            times.sort_by(f64::total_cmp);
            let rows: Vec<_> = times.iter().map(|t| (*t, 10.0, 2.0)).collect();
            if let Some((a, peak)) = arrivals(&rows).and_then(|a| Some((a, a.peak_rate_per_s?))) {
                prop_assert!(a.peak_over_mean.unwrap() >= 1.0);
                prop_assert!(peak <= (times.len() as f64 / PEAK_WINDOW).max(a.rate_per_s));
            }
        }
    }
}
