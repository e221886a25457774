//! Load tests that would show whether a plan holds: the same lengths, the same rate, the targets as goodput.

use super::server::{PORT, Site, facts};
use super::{Command, Lists};
use rackmath_spec::command::{Facts, line};
use rackmath_units::significant;

/// What is expected of the whole deployment.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    /// Tokens of a prompt, mean, and their standard deviation.
    pub input: (f64, f64),
    /// Tokens of an answer, mean, and their standard deviation.
    pub output: (f64, f64),
    /// Requests per second; else as many at once as `concurrency`.
    pub rate: Option<f64>,
    pub concurrency: f64,
    /// Milliseconds to the first token, as predicted.
    pub ttft_ms: f64,
    /// Milliseconds per token, as predicted.
    pub tpot_ms: f64,
    /// Targets in milliseconds: first token, token.
    pub targets: (Option<f64>, Option<f64>),
    pub replay: Option<String>,
}

/// Tools that load a server, by their lists of flags.
const TOOLS: [&str; 3] = ["vllm-bench", "guidellm", "aiperf"];

/// What to look for in the results.
pub(super) fn words(aim: &Aim) -> Vec<String> {
    let load = match aim.rate {
        Some(rate) => format!("{} requests per second, at random", significant(rate, 3)),
        None => format!("{} requests in flight", streams(aim)),
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
pub(super) fn commands(site: &Site, aim: &Aim, lists: &Lists) -> Vec<Command> {
    let lists = || TOOLS.iter().filter_map(|id| lists.get(*id));
    let facts = aimed(site, aim);
    let command = |role: &str, id: &str, line: String| Command { role: role.into(), flags: id.into(), line };
    let mut all: Vec<Command> = lists().map(|l| command("load test", &l.id, line(&l.lines, &facts))).collect();
    if let Some(path) = aim.replay.as_deref().filter(|p| !p.contains(['\'', '\n'])) {
        let facts: Facts = facts.into_iter().chain([("replay", path.to_owned())]).collect();
        all.extend(lists().filter(|l| l.says("replay")).map(|l| command("replay", &l.id, line(&l.lines, &facts))));
    }
    all
}

/// Whole requests in flight.
fn streams(aim: &Aim) -> f64 {
    aim.concurrency.round().max(1.0)
}

fn aimed(site: &Site, aim: &Aim) -> Facts {
    // A prefix all share, so that the cache finds what the plan says.
    let shared = (aim.input.0 * site.cached).round();
    let ((input, i), (output, o)) = (aim.input, aim.output);
    // Half the width of an even draw with the same standard deviation, over the mean.
    let width = |mean: f64, deviation: f64| (deviation / mean * 3f64.sqrt()).min(0.99);
    let (ttft, tpot) = aim.targets;
    let some = |x: Option<f64>| x.map_or_else(String::new, |x| round(x).to_string());
    facts([
        ("model", true, site.model_name().into()),
        ("url", true, format!("http://{}:{PORT}", site.name())),
        ("new", true, (input.round() - shared).max(1.0).to_string()),
        ("shared", shared > 0.0, shared.to_string()),
        ("output", true, output.round().to_string()),
        ("input_deviation", true, i.round().to_string()),
        ("output_deviation", true, o.round().to_string()),
        ("input_varies", i >= 1.0, String::new()),
        ("output_varies", o >= 1.0, String::new()),
        ("varies", i > 0.0 || o > 0.0, String::new()),
        ("input_width", true, format!("{:.3}", width(input, i))),
        ("output_width", true, format!("{:.3}", width(output, o))),
        // Long enough that its start and end do not matter.
        ("requests", true, (aim.concurrency * 10.0).ceil().max(200.0).to_string()),
        ("rate", aim.rate.is_some(), some(aim.rate)),
        ("streams", true, streams(aim).to_string()),
        ("goals", ttft.is_some() || tpot.is_some(), String::new()),
        ("ttft", ttft.is_some(), some(ttft)),
        ("tpot", tpot.is_some(), some(tpot)),
    ])
}

/// A number a shell and a parser read back, with no more digits than mean anything.
fn round(x: f64) -> f64 {
    if x >= 100.0 { (x * 10.0).round() / 10.0 } else { (x * 1e4).round() / 1e4 }
}
