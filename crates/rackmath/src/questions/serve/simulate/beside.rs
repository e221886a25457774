//! What a request gives beside something that makes it mean nothing: refused, not passed over.
//!
//! A trace says when requests come and how long they are, classes each have a law of their own, and a law has parts that only
//! count with others.

use super::{Replayed, Request, Scaling, Traffic};
use crate::desk::prelude::*;
use serde_json::Value;

const BY_TRACE: &str = "none beside {replay.trace_text}: the trace says when requests come and how long they are";
const BY_CLASS: &str = "none beside classes: each has a law of its own, which neither swings nor has spikes";

/// Refuses the first field that would do nothing, and says what it needs or what goes without it.
pub(super) fn refused(r: &Request) -> Result<(), Error> {
    let trace = r.replay.trace_text.is_some();
    refuse_if(trace && !r.classes.is_empty(), "classes", r.classes.len(), "none beside {replay.trace_text}")?;
    let replay = || touched(&r.replay, &Replayed::default()).into_iter().find(|(key, _)| key != "trace_name");
    if let Some((key, value)) = (!trace).then(replay).flatten() {
        return Err(Error::value(format!("replay.{key}"), value, "none without {replay.trace_text}"));
    }
    let traffic = touched(&r.traffic, &Traffic::default());
    for (key, value) in traffic {
        let why = if trace {
            beside_trace(&key)
        } else if r.classes.is_empty() {
            in_law(&r.traffic, &key)
        } else {
            (!matches!(key.as_str(), "requests" | "seed")).then_some(BY_CLASS)
        };
        if let Some(why) = why {
            return Err(Error::value(format!("traffic.{key}"), value, why));
        }
    }
    let scaling =
        touched(&r.scaling, &Scaling::default()).into_iter().next().filter(|_| r.scaling.max_replicas.is_none());
    scaling.map_or(Ok(()), |(key, value)| {
        Err(Error::value(format!("scaling.{key}"), value, "none without {scaling.max_replicas}"))
    })
}

/// Fields that differ from the usual.
fn touched<T: Serialize>(given: &T, usual: &T) -> Vec<(String, Value)> {
    let [Ok(Value::Object(given)), Ok(usual)] = [given, usual].map(serde_json::to_value) else { return Vec::new() };
    given.into_iter().filter(|(key, value)| usual.get(key) != Some(value)).collect()
}

/// Conversations of a trace begin at a rate; whether it has some is known when it is read.
fn beside_trace(key: &str) -> Option<&'static str> {
    match key {
        "seed" | "rate_per_s" => None,
        "requests" => Some("none beside {replay.trace_text}: {replay.first} takes so many of its requests"),
        _ => Some(BY_TRACE),
    }
}

/// What a field of a law is missing, or what it cannot stand beside.
fn in_law(t: &Traffic, key: &str) -> Option<&'static str> {
    let (users, spikes, swings) = (t.users.is_some(), t.spike.is_some(), t.swing > 0.0);
    match key {
        "cv" | "swing" | "spike" | "period_s" | "spike_length_s" if users => {
            Some("none beside {traffic.users}: they ask when they have their answers")
        }
        "think_s" if !users && t.turns <= 1 => Some("none without {traffic.users} or {traffic.turns}: nobody waits"),
        "cv" if spikes || swings => {
            Some("none beside {traffic.spike} or {traffic.swing}: requests come at random there")
        }
        "swing" if spikes => Some("none beside {traffic.spike}"),
        "period_s" if !spikes && !swings => Some("none without {traffic.swing} or {traffic.spike}"),
        "spike_length_s" if !spikes => Some("none without {traffic.spike}"),
        "prefix_tokens" if t.prefixes == 0 => {
            Some("none without {traffic.prefixes}: how many different ones there are")
        }
        "prefixes" if t.prefix_tokens == 0.0 => Some("none without {traffic.prefix_tokens}: how long they are"),
        _ => None,
    }
}
