//! A replica's capacity as text: the verdict, what it holds and does, where another is started.

use super::prelude::*;
use rackmath::capacity::{Answer, PoolName, Threshold};

pub(super) fn capacity(out: &mut Page, a: &Answer) {
    out.title(format!("{} on {}, {}", a.model, a.system, a.engine));
    let lengths = format!("prompts {}, answers {} tokens", count(a.isl), count(a.osl));
    out.paragraph("", format!("a replica: {}, {} chip{}; {lengths}", a.layout, a.chips, plural(a.chips)));
    out.judged(a.capacity.is_some(), words(&a.verdict));
    out.figures();
    if let Some(c) = &a.capacity {
        out.above("  start another replica when each has more than");
        out.each(&a.thresholds).columns(&[
            ("pool", &|t| pool(t).into()),
            ("running", &|t| or_dash(t.running, count)),
            ("waiting", &|t| count(t.waiting)),
            ("KV use", &|t| or_dash(t.kv_use, percent)),
            ("tokens in flight", &|t| count(t.tokens)),
            ("requests/s", &|t| or_dash(t.requests_per_s, three)),
        ]);
        out.gap();
        let held = format!("{} tokens, {} requests of these lengths", count(c.cache_tokens), count(c.sequences));
        out.field("cache holds", held);
        let prompts = format!("{}, {} prompts a second", tok_s(c.prefill_tok_s), three(c.prompts_per_s));
        out.field("prompts alone", prompts);
        let at = format!("{} with {} requests running", tok_s(c.decode_tok_s), count(c.running));
        out.field("answers", format!("{at}, within the targets"));
        out.maybe("requests at random", c.requests_per_s.map(|r| format!("{} a second, within the targets", three(r))));
        out.field("kept for a start", format!("{} of it stays free: {}", percent(1.0 - c.kept), starts(c.startup_s)));
        out.maybe("price of a replica", c.usd_per_hour.map(|p| format!("{}/h", usd(p))));
    }
    out.advice();
    let limits = [a.concurrency.as_ref(), a.rate.as_ref()];
    for solved in limits.into_iter().flatten().filter(|_| a.capacity.is_some()) {
        out.paragraph("  ", &solved.verdict);
    }
    out.gap();
    if !a.files.is_empty() {
        let names: Vec<&str> = a.files.iter().map(|f| f.name.as_str()).collect();
        out.paragraph("  ", format!("Values as files with --files DIR: {}.", names.join(", ")));
        out.gap();
    }
    out.assumes(&a.assumptions);
    out.sources(&a.sources);
}

fn starts(startup: f64) -> String {
    format!("a new replica serves after {}", seconds(startup))
}

fn pool(t: &Threshold) -> &'static str {
    match t.pool {
        PoolName::Serve => "all",
        PoolName::Prefill => "prompts",
        PoolName::Decode => "answers",
    }
}
