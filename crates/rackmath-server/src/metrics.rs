//! What the server did, counted, as Prometheus reads it.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the classes of times, in seconds.
const CLASSES: [f64; 10] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1.0, 3.0, 10.0, 30.0];

#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; CLASSES.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    pub fn took(&self, time: Duration) {
        let at = CLASSES.iter().position(|end| time.as_secs_f64() <= *end).unwrap_or(CLASSES.len());
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }

    fn write(&self, text: &mut String, name: &str, labels: &str) {
        let mut sum = 0;
        for (i, count) in self.counts.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let end = CLASSES.get(i).map_or("+Inf".into(), ToString::to_string);
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{end}\"}} {sum}");
        }
        let _ = writeln!(text, "{name}_sum{{{labels}}} {}", self.micros.load(Ordering::Relaxed) as f64 / 1e6);
        let _ = writeln!(text, "{name}_count{{{labels}}} {sum}");
    }
}

#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections now.
    pub connections: AtomicI64,
    /// Connections that found no place.
    pub turned_away: AtomicU64,
    /// Requests under way.
    pub requests: AtomicI64,
    /// Replies by the first digit of their status.
    pub replies: [AtomicU64; 6],
    /// Answers that were kept from before, and those that were worked out.
    pub kept: AtomicU64,
    pub worked: AtomicU64,
    /// Work that nobody wanted any more.
    pub abandoned: AtomicU64,
    /// Panics that were caught.
    pub faults: AtomicU64,
    /// Time of whole requests, by lane.
    pub times: [Histogram; 3],
    /// Refusals by reason.
    refused: Mutex<std::collections::BTreeMap<&'static str, u64>>,
}

pub const LANES: [&str; 3] = ["quick", "middle", "heavy"];

impl Metrics {
    pub fn refused(&self, why: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_default() += 1;
    }

    /// All of it, with what only others know: values that stand now.
    pub fn text(&self, now: &[(&str, &str, f64)]) -> String {
        let mut text = String::new();
        let mut one = |name: &str, kind: &str, help: &str, rows: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP rackmath_{name} {help}\n# TYPE rackmath_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(text, "rackmath_{name}{labels} {value}");
            }
        };
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed) as f64;
        let bare = |value: f64| vec![(String::new(), value)];
        one("connections", "gauge", "Connections now.", &bare(self.connections.load(Ordering::Relaxed) as f64));
        one("turned_away_total", "counter", "Connections that found no place.", &bare(load(&self.turned_away)));
        one("requests_in_flight", "gauge", "Requests under way.", &bare(self.requests.load(Ordering::Relaxed) as f64));
        let replies: Vec<_> = (1..6).map(|i| (format!("{{status=\"{i}xx\"}}"), load(&self.replies[i]))).collect();
        one("replies_total", "counter", "Replies by class of status.", &replies);
        one("answers_kept_total", "counter", "Answers given from the cache.", &bare(load(&self.kept)));
        one("answers_worked_total", "counter", "Answers worked out.", &bare(load(&self.worked)));
        one(
            "answers_abandoned_total",
            "counter",
            "Work ended because nobody waited for it.",
            &bare(load(&self.abandoned)),
        );
        one("faults_total", "counter", "Faults of ours that were caught.", &bare(load(&self.faults)));
        let refused: Vec<_> = {
            let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.iter().map(|(why, n)| (format!("{{why=\"{why}\"}}"), *n as f64)).collect()
        };
        one("refused_total", "counter", "Requests refused for want of room or time, by reason.", &refused);
        for (name, help, value) in now {
            one(name, "gauge", help, &bare(*value));
        }
        let name = "rackmath_answer_seconds";
        let _ = writeln!(text, "# HELP {name} From question to answer, by lane.\n# TYPE {name} histogram");
        for (times, lane) in self.times.iter().zip(LANES) {
            times.write(&mut text, name, &format!("lane=\"{lane}\""));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_add_up_and_every_line_is_a_comment_or_a_value() {
        let metrics = Metrics::default();
        for ms in [0, 1, 3, 40, 99, 2000, 60_000] {
            metrics.times[0].took(Duration::from_millis(ms));
        }
        metrics.refused("queue");
        let text = metrics.text(&[("resident_bytes", "Memory now.", 5.0)]);
        assert!(text.contains("rackmath_answer_seconds_bucket{lane=\"quick\",le=\"0.1\"} 5"), "{text}");
        assert!(text.contains("rackmath_answer_seconds_bucket{lane=\"quick\",le=\"+Inf\"} 7"), "{text}");
        assert!(text.contains("rackmath_answer_seconds_count{lane=\"quick\"} 7"), "{text}");
        assert!(text.contains("rackmath_refused_total{why=\"queue\"} 1"), "{text}");
        for line in text.lines() {
            let value = line.rsplit(' ').next().and_then(|v| v.parse::<f64>().ok());
            assert!(line.starts_with("# ") || (line.starts_with("rackmath_") && value.is_some()), "{line}");
        }
    }
}
