//! Changes as people type them: a name, an equals sign, a value with its unit.

use crate::Error;
use crate::figure::count;
use crate::plan::Request;
use rackmath_spec::SpecError;
use rackmath_units::{DollarRate, Fraction, Seconds, TokenRate, Tokens, Watts};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::str::FromStr;

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// What.
    pub what: String,
    /// Before, in words.
    pub from: String,
    /// After.
    pub to: String,
}

/// Something that can be changed.
struct Key {
    names: &'static [&'static str],
    set: fn(&mut Request, &str) -> Result<(), String>,
    show: fn(&Request) -> String,
}

/// Every name that can be changed, in the words of the command; fields of the request work too.
pub fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().flat_map(|k| k.names.iter().copied())
}

/// Makes one change.
pub(super) fn apply(request: &mut Request, word: &str) -> Result<Changed, Error> {
    let Some((key, value)) = word.split_once('=').map(|(k, v)| (k.trim().trim_start_matches("--"), v.trim())) else {
        return Err(Error::value("set", format!("\"{word}\""), "a name and a value, such as tpot=20ms"));
    };
    let Some(found) = KEYS.iter().find(|k| k.names.contains(&key)) else { return field(request, key, value) };
    let from = (found.show)(request);
    (found.set)(request, value).map_err(|expected| Error::value("set", format!("\"{word}\""), expected))?;
    Ok(Changed { what: found.names[0].into(), from, to: (found.show)(request) })
}

/// A field of the request by its own name, its value as JSON or as a bare word.
fn field(request: &mut Request, key: &str, value: &str) -> Result<Changed, Error> {
    let mut all = serde_json::to_value(&*request).unwrap_or(Value::Null);
    let fields: Vec<String> = all.as_object().map_or_else(Vec::new, |o| o.keys().cloned().collect());
    let Some(slot) = all.get_mut(key) else {
        let mut names: Vec<&str> = keys().collect();
        names.extend(fields.iter().map(String::as_str));
        return Err(SpecError::unknown("setting to change", key, names.into_iter()).into());
    };
    let new = if value == "none" {
        Value::Null
    } else {
        serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))
    };
    let from = std::mem::replace(slot, new).to_string();
    let to = slot.to_string();
    *request = serde_json::from_value(all)
        .map_err(|error| Error::value("set", format!("\"{key}={value}\""), error.to_string()))?;
    Ok(Changed { what: key.into(), from, to })
}

fn parsed<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse::<T>().map_err(|error| error.to_string())
}

/// A value, or nothing for `none`.
fn maybe<T: FromStr>(text: &str, get: impl Fn(T) -> f64) -> Result<Option<f64>, String>
where
    T::Err: ToString,
{
    if text == "none" { Ok(None) } else { parsed::<T>(text).map(|q| Some(get(q))) }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).collect()
}

fn numbers<T: FromStr>(text: &str, get: impl Fn(T) -> f64) -> Result<Vec<f64>, String>
where
    T::Err: ToString,
{
    if text == "none" { Ok(Vec::new()) } else { text.split(',').map(|w| parsed::<T>(w.trim()).map(&get)).collect() }
}

fn yes(text: &str) -> Result<bool, String> {
    match text {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err("true or false".into()),
    }
}

fn per_second(text: &str) -> Result<Option<f64>, String> {
    match text.parse::<f64>() {
        _ if text == "none" => Ok(None),
        Ok(rate) if rate.is_finite() => Ok(Some(rate)),
        _ => Err("requests per second, such as 20".into()),
    }
}

fn some(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "none".into(), show)
}

fn ms(value: Option<f64>) -> String {
    some(value, |x| Seconds::checked(x / 1e3).map_or_else(|| x.to_string(), |s| s.to_string()))
}

fn share(value: Option<f64>) -> String {
    some(value, |x| Fraction::checked(x).map_or_else(|| x.to_string(), |s| s.to_string()))
}

fn hourly(value: Option<f64>) -> String {
    some(value, |x| DollarRate::checked(x / 3600.0).map_or_else(|| x.to_string(), |s| s.to_string()))
}

fn rate(value: Option<f64>) -> String {
    some(value, |x| TokenRate::checked(x).map_or_else(|| x.to_string(), |s| s.to_string()))
}

fn words(all: &[f64]) -> String {
    if all.is_empty() { "the engine's".into() } else { all.iter().map(|c| count(*c)).collect::<Vec<_>>().join(", ") }
}

fn or_none(word: &str) -> Option<String> {
    (word != "none").then(|| word.to_owned())
}

/// Sets a field and succeeds.
macro_rules! put {
    ($field:expr, $value:expr) => {{
        $field = $value;
        Ok(())
    }};
}

const KEYS: &[Key] = &[
    Key { names: &["model"], set: |r, v| put!(r.setting.model, v.into()), show: |r| r.setting.model.clone() },
    Key {
        names: &["on", "system", "hardware"],
        set: |r, v| put!(r.setting.on, v.into()),
        show: |r| r.setting.on.clone(),
    },
    Key {
        names: &["chips", "gpus"],
        set: |r, v| {
            put!(
                r.setting.chips,
                if v == "none" { None } else { Some(v.parse::<u64>().map_err(|_| "a whole number of chips")?) }
            )
        },
        show: |r| r.setting.chips.map_or_else(|| "the machine's".into(), |n| n.to_string()),
    },
    Key {
        names: &["price"],
        set: |r, v| put!(r.setting.price_usd_per_chip_hour, maybe::<DollarRate>(v, DollarRate::as_per_hour)?),
        show: |r| r.setting.price_usd_per_chip_hour.map_or_else(|| "the catalogue's".into(), |p| hourly(Some(p))),
    },
    Key {
        names: &["basis"],
        set: |r, v| put!(r.setting.basis, or_none(v)),
        show: |r| r.setting.basis.clone().unwrap_or_else(|| "the catalogue's".into()),
    },
    Key { names: &["engine", "backend"], set: |r, v| put!(r.engines, list(v)), show: |r| r.engines.join(", ") },
    Key {
        names: &["quantization", "dtype", "weights"],
        set: |r, v| put!(r.weights, list(v)),
        show: |r| r.weights.join(", "),
    },
    Key { names: &["kv-cache-dtype", "kv"], set: |r, v| put!(r.kvs, list(v)), show: |r| r.kvs.join(", ") },
    Key {
        names: &["chunks", "max-num-batched-tokens"],
        set: |r, v| put!(r.chunks, numbers::<Tokens>(v, Tokens::get)?),
        show: |r| words(&r.chunks),
    },
    Key {
        names: &["drafts"],
        set: |r, v| put!(r.drafts, numbers::<Tokens>(v, Tokens::get)?),
        show: |r| words(&r.drafts),
    },
    Key {
        names: &["acceptance"],
        set: |r, v| put!(r.acceptance, maybe::<Fraction>(v, Fraction::get)?),
        show: |r| share(r.acceptance),
    },
    Key {
        names: &["aggregated"],
        set: |r, v| put!(r.disaggregated, !yes(v)?),
        show: |r| (!r.disaggregated).to_string(),
    },
    Key {
        names: &["scenario"],
        set: |r, v| put!(r.scenario, or_none(v)),
        show: |r| r.scenario.clone().unwrap_or_else(|| "none".into()),
    },
    Key {
        names: &["isl", "input-len"],
        set: |r, v| put!(r.isl, maybe::<Tokens>(v, Tokens::get)?),
        show: |r| some(r.isl, count),
    },
    Key {
        names: &["osl", "output-len"],
        set: |r, v| put!(r.osl, maybe::<Tokens>(v, Tokens::get)?),
        show: |r| some(r.osl, count),
    },
    Key {
        names: &["prefix-hit"],
        set: |r, v| put!(r.prefix_hit, maybe::<Fraction>(v, Fraction::get)?),
        show: |r| share(r.prefix_hit),
    },
    Key {
        names: &["offload-hit"],
        set: |r, v| put!(r.offload_hit, maybe::<Fraction>(v, Fraction::get)?),
        show: |r| share(r.offload_hit),
    },
    Key {
        names: &["rate", "request-rate"],
        set: |r, v| put!(r.rate_per_s, per_second(v)?),
        show: |r| some(r.rate_per_s, |x| format!("{}/s", rackmath_units::significant(x, 3))),
    },
    Key {
        names: &["ttft", "ttft-slo"],
        set: |r, v| put!(r.ttft_ms, maybe::<Seconds>(v, Seconds::as_ms)?),
        show: |r| ms(r.ttft_ms),
    },
    Key {
        names: &["tpot", "tpot-slo", "itl"],
        set: |r, v| put!(r.tpot_ms, maybe::<Seconds>(v, Seconds::as_ms)?),
        show: |r| ms(r.tpot_ms),
    },
    Key { names: &["e2e"], set: |r, v| put!(r.e2e_ms, maybe::<Seconds>(v, Seconds::as_ms)?), show: |r| ms(r.e2e_ms) },
    Key {
        names: &["user"],
        set: |r, v| put!(r.user_tok_s, maybe::<TokenRate>(v, TokenRate::get)?),
        show: |r| rate(r.user_tok_s),
    },
    Key {
        names: &["throughput"],
        set: |r, v| put!(r.throughput_tok_s, maybe::<TokenRate>(v, TokenRate::get)?),
        show: |r| rate(r.throughput_tok_s),
    },
    Key {
        names: &["headroom"],
        set: |r, v| put!(r.headroom, maybe::<Fraction>(v, Fraction::get)?),
        show: |r| share(r.headroom),
    },
    Key {
        names: &["budget"],
        set: |r, v| put!(r.budget_usd_per_hour, maybe::<DollarRate>(v, DollarRate::as_per_hour)?),
        show: |r| hourly(r.budget_usd_per_hour),
    },
    Key {
        names: &["power"],
        set: |r, v| put!(r.power_w, maybe::<Watts>(v, Watts::get)?),
        show: |r| some(r.power_w, |w| Watts::checked(w).map_or_else(|| w.to_string(), |w| w.to_string())),
    },
    Key { names: &["objective", "minimize"], set: |r, v| put!(r.objective, v.into()), show: |r| r.objective.clone() },
];
