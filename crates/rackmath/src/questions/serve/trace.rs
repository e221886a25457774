//! What a trace says: how long its requests are, how they come, what they share, and which named workload they resemble.

use crate::desk::prelude::*;
use rackmath_spec::trace::Trace;
use rackmath_spec::{Kind, Scenario, file};
use rackmath_theory::lengths::Drawn;
use rackmath_theory::reuse::Reuse;
use rackmath_theory::traffic::Traffic;
pub use rackmath_theory::traffic::{Arrivals, Measured};

/// The text of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// What to call it.
    pub name: String,
    /// Its text: Mooncake JSON lines, Azure or BurstGPT CSV, or a CSV with columns for prompts and answers.
    #[schemars(extend("x-file" = "trace", "x-position" = 1))]
    pub text: String,
    /// How long a prefix is kept after its last use; for as long as the trace lasts when absent.
    pub keep_s: Option<f64>,
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The trace.
    pub name: String,
    /// The format it was read as.
    pub format: String,
    /// Requests with an answer.
    pub requests: u64,
    /// Requests without one, left out.
    pub unanswered: u64,
    /// Prompts.
    pub input: Measured,
    /// Answers.
    pub output: Measured,
    /// Correlation of a prompt's length with its answer's; 0 where one of them does not vary.
    pub correlation: f64,
    /// How requests come, where the trace says when.
    pub arrivals: Option<Arrivals>,
    /// What prompts share, where the trace names their blocks.
    pub reuse: Option<ReuseCard>,
    /// The named workload nearest to it.
    pub nearest: Option<NearestCard>,
    /// What planning takes from it.
    pub summary: Summary,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// What prompts share.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReuseCard {
    /// Share of prompt tokens found in a cache that keeps prefixes for so long after their last use.
    pub hits: Vec<HitCard>,
    /// The share planning takes.
    pub taken: f64,
    /// Tokens kept at a time for it, mean.
    pub kept_tokens: Option<f64>,
}

/// A lifetime and what it finds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HitCard {
    /// Kept so long; none for as long as the trace.
    pub keep_s: Option<f64>,
    /// Share of prompt tokens found.
    pub share: f64,
}

/// A named workload like it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NearestCard {
    /// Its name.
    pub scenario: String,
    /// What it is.
    pub about: String,
    /// The trace's mean prompt over its.
    pub input_factor: f64,
    /// The trace's mean answer over its.
    pub output_factor: f64,
    /// Its share of prompts found in a cache.
    pub cached: f64,
}

/// What planning takes from a trace: small enough to be kept with a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The trace.
    pub name: String,
    /// Requests it is made from.
    pub requests: u64,
    /// Prompts.
    pub input: Drawn,
    /// Answers.
    pub output: Drawn,
    /// Covariance of prompts and answers, square tokens.
    pub covariance: f64,
    /// Requests per second, mean.
    pub rate_per_s: Option<f64>,
    /// The busiest minute over the mean.
    pub peak_over_mean: Option<f64>,
    /// Share of prompt tokens found in a prefix cache.
    pub prefix_hit: Option<f64>,
}

/// Lengths that can be, since they may come from a file.
pub(crate) fn checked(field: &'static str, d: &Drawn) -> Result<Drawn, Error> {
    let length = |x: f64| (1.0..=1e9).contains(&x);
    let good = length(d.mean)
        && (0.0..=1e18).contains(&d.variance)
        && (1..=4096).contains(&d.shares.len())
        && d.shares.iter().all(|x| length(*x))
        && d.shares.is_sorted();
    let expected = "a mean of 1 to 1e9 tokens, a variance and ascending shares, as `rackmath trace --json` prints them";
    if good { Ok(d.clone()) } else { Err(Error::value(field, "a summary that cannot be", expected)) }
}

/// Reads and describes.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let keep = request.keep_s;
    let wrong = keep.is_some_and(|s| !(0.0..=1e10).contains(&s));
    refuse_if(wrong, "keep_s", keep.unwrap_or(0.0), "0 to 1e10 seconds")?;
    let trace = file::workload(&request.name, &request.text)?;
    let t = Traffic::of(&trace)
        .ok_or_else(|| Error::value("trace", "no request has an answer", "answers of at least one token"))?;
    let reuse = trace.has_blocks().then(|| shared(&trace, keep));
    let summary = Summary {
        name: request.name.clone(),
        requests: t.requests as u64,
        input: t.input.drawn.clone(),
        output: t.output.drawn.clone(),
        covariance: t.covariance,
        rate_per_s: t.arrivals.map(|a| a.rate_per_s),
        peak_over_mean: t.arrivals.and_then(|a| a.peak_over_mean),
        prefix_hit: reuse.as_ref().map(|r| r.taken),
    };
    let deviation = (t.input.drawn.variance * t.output.drawn.variance).sqrt();
    Ok(Answer {
        name: request.name.clone(),
        format: trace.format.name().into(),
        requests: t.requests as u64,
        unanswered: t.unanswered as u64,
        correlation: if deviation > 0.0 { t.covariance / deviation } else { 0.0 },
        nearest: nearest(catalog, &summary)?,
        assumptions: assumptions(&t, reuse.is_some()),
        arrivals: t.arrivals,
        input: t.input,
        output: t.output,
        reuse,
        summary,
    })
}

/// Lifetimes providers and engines keep prefixes for: a minute, five, an hour, all of the trace.
const LIFETIMES: [f64; 3] = [60.0, 300.0, 3600.0];

fn shared(trace: &Trace, keep: Option<f64>) -> ReuseCard {
    let reuse = Reuse::of(trace);
    let span = trace.span().get();
    let share = |keep: Option<f64>| reuse.hit_rate(Seconds::s(keep.unwrap_or(span.max(1.0)))).get();
    let mut lives: Vec<_> = LIFETIMES.into_iter().filter(|s| *s < span).map(Some).chain([keep, None]).collect();
    lives.sort_by(|a, b| a.unwrap_or(f64::INFINITY).total_cmp(&b.unwrap_or(f64::INFINITY)));
    lives.dedup();
    // Token-seconds kept for each token, by tokens per second, are the tokens kept at a time.
    let input = trace.input().get();
    let kept = reuse.kept(Seconds::s(keep.unwrap_or(span).min(span)));
    ReuseCard {
        hits: lives.into_iter().map(|keep_s| HitCard { keep_s, share: share(keep_s) }).collect(),
        taken: share(keep),
        kept_tokens: (span > 0.0).then(|| kept * input / span),
    }
}

/// The scenario nearest in the logarithms of lengths and in the share cached.
fn nearest(catalog: &Catalog, s: &Summary) -> Result<Option<NearestCard>, Error> {
    let cached = s.prefix_hit.unwrap_or(0.0);
    let distance = |c: &Scenario| {
        let (i, o) = (float::ln(s.input.mean / c.input), float::ln(s.output.mean / c.output));
        i * i + o * o + (cached - c.cached) * (cached - c.cached)
    };
    let all = catalog.ids(Kind::Scenarios).map(|id| catalog.scenario(id)).collect::<Result<Vec<_>, _>>()?;
    let best = all.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    Ok(best.map(|c| {
        let (input_factor, output_factor) = (s.input.mean / c.input, s.output.mean / c.output);
        let (scenario, about) = (c.id.clone(), c.about.clone());
        NearestCard { scenario, about, input_factor, output_factor, cached: c.cached }
    }))
}

fn assumptions(t: &Traffic, blocks: bool) -> Vec<Remark> {
    let together = t.arrivals.filter(|a| a.together > 0.2).map(|a| a.together * 100.0);
    let short = t.arrivals.is_some_and(|a| a.peak_over_mean.is_none());
    let all = [
        (t.unanswered > 0).then(|| says("unanswered_left_out").with("requests", t.unanswered)),
        t.arrivals.is_none().then(|| says("no_times")),
        together.map(|percent| says("times_rounded").with("percent", percent)),
        short.then(|| says("shorter_than_a_minute")),
        blocks.then(|| says("prefixes_in_blocks")),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<Answer, Error> {
        answer(&rackmath_catalog::embedded(), &Request { name: "t".into(), text: text.into(), keep_s: None })
    }

    #[test]
    fn a_conversation_that_comes_back_finds_its_prefix() {
        let text = "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 10, \"hash_ids\": [1, 2]}\n\
                    {\"timestamp\": 100000, \"input_length\": 1536, \"output_length\": 10, \"hash_ids\": [1, 2, 3]}\n";
        let a = asked(text).unwrap();
        let r = a.reuse.unwrap();
        // 1024 of 2560 tokens, after 100 s.
        assert_eq!((r.hits[0].keep_s, r.hits[0].share, r.taken), (Some(60.0), 0.0, 0.4));
        assert_eq!((a.summary.prefix_hit, a.correlation), (Some(0.4), 0.0));
    }

    #[test]
    fn the_nearest_workload_is_itself() {
        let c = rackmath_catalog::embedded();
        for id in c.ids(Kind::Scenarios).filter(|id| c.scenario(id).unwrap().cached == 0.0) {
            let s = c.scenario(id).unwrap();
            let a = asked(&format!("input_tokens,output_tokens\n{},{}\n", s.input, s.output)).unwrap();
            let n = a.nearest.unwrap();
            assert_eq!((n.scenario.as_str(), n.input_factor, n.output_factor), (id, 1.0, 1.0));
        }
    }

    #[test]
    fn a_summary_survives_a_file_and_a_damaged_one_is_refused() {
        let mut s = asked("isl,osl\n10,20\n30,5\n").unwrap().summary;
        let text = serde_json::to_string(&s).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), s);
        assert!(checked("draws", &s.input).is_ok());
        s.input.shares.reverse();
        assert!(checked("draws", &s.input).is_err());
        // So is a trace of nothing but failures.
        assert!(asked("isl,osl\n10,0\n").unwrap_err().to_string().contains("no request has an answer"));
    }
}
