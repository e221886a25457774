//! Open-weight models with what their hosts charge and what they are, from a folder of tables.

use crate::CalibrateError;
use crate::rows::csv;
use rackmath_spec::deduce::{HostPrice, PRICE_RANGE};
use rackmath_theory::deduce::hosts::Summary;
use rackmath_theory::deduce::level::Known;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The tables that are read.
pub const FILES: [&str; 2] = ["open_host_prices.csv", "open_arch.csv"];

#[derive(Deserialize)]
struct PriceRow {
    open_model: String,
    host: String,
    usd_in: f64,
    usd_out: f64,
    usd_cached_read: Option<f64>,
    first_party: Option<String>,
}

#[derive(Deserialize)]
struct ArchRow {
    model: String,
    total_params_computed: f64,
    active_params_computed: f64,
    kv_elements_per_token_stored: f64,
}

/// Letters and digits only, in lower case.
fn key(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Models sold under a name of their own with the shapes of another, as their published configs say.
const SAME: [(&str, &str); 3] =
    [("Llama-3.3-70B", "Llama-3.1-70B"), ("DeepSeek-V3.1", "DeepSeek-V3"), ("GLM-5.1", "GLM-5")];

/// What may follow a model's name without changing its shapes.
const TRAILS: [&str; 7] = ["", "instruct", "thinking", "exp", "terminus", "it", "chat"];

/// The architecture a priced model has, by name: what is left of the longer name must be a date or a variant of training.
fn architecture<'a>(name: &str, rows: &'a [ArchRow]) -> Option<&'a ArchRow> {
    let bare = name.split('(').next().unwrap_or(name);
    let wanted = key(SAME.iter().find(|(from, _)| *from == bare).map_or(bare, |(_, to)| to));
    let harmless = |trail: &str| {
        let digits = trail.trim_start_matches(|c: char| c.is_ascii_digit());
        TRAILS.contains(&digits) && [0, 4].contains(&(trail.len() - digits.len()))
    };
    rows.iter().find(|row| {
        let known = key(row.model.split(" (").next().unwrap_or(&row.model).trim_start_matches("Meta-"));
        wanted.strip_prefix(&*known).or_else(|| known.strip_prefix(&*wanted)).is_some_and(harmless)
    })
}

/// Every model of the price table whose architecture is known; the others are named.
pub fn known(folder: &Path) -> Result<(Vec<Known>, Vec<String>), CalibrateError> {
    if !FILES.iter().all(|f| folder.join(f).exists()) {
        return Err(CalibrateError::nothing(folder, FILES.to_vec()));
    }
    let arch: Vec<ArchRow> = csv(&folder.join(FILES[1]))?;
    let mut order = Vec::new();
    let mut prices: BTreeMap<String, Vec<HostPrice>> = BTreeMap::new();
    for row in csv::<PriceRow>(&folder.join(FILES[0]))? {
        let believed = |p: f64| (PRICE_RANGE.0..=PRICE_RANGE.1).contains(&p);
        if !(believed(row.usd_in) && believed(row.usd_out)) {
            continue;
        }
        if !prices.contains_key(&row.open_model) {
            order.push(row.open_model.clone());
        }
        prices.entry(row.open_model).or_default().push(HostPrice {
            host: row.host,
            source: FILES[0].into(),
            input: row.usd_in,
            output: row.usd_out,
            cached: row.usd_cached_read,
            maker: row.first_party.as_deref() == Some("yes"),
        });
    }
    let (mut models, mut unknown) = (Vec::new(), Vec::new());
    for name in order {
        let list = prices.remove(&name).unwrap_or_default();
        match (architecture(&name, &arch), Summary::of(&list)) {
            (Some(row), Some(summary)) => {
                let ln = rackmath_units::float::ln;
                models.push(Known {
                    architecture: format!("{}/{}", row.active_params_computed, row.total_params_computed),
                    ln_active: ln(row.active_params_computed),
                    ln_sparsity: ln(row.total_params_computed / row.active_params_computed),
                    ln_kv: ln(row.kv_elements_per_token_stored),
                    name,
                    prices: list,
                    summary,
                });
            }
            _ => unknown.push(name),
        }
    }
    Ok((models, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_architecture_and_no_other() {
        let row = |model: &str| ArchRow {
            model: model.into(),
            total_params_computed: 1.0,
            active_params_computed: 1.0,
            kv_elements_per_token_stored: 1.0,
        };
        let rows: Vec<ArchRow> = [
            "Meta-Llama-3.1-70B",
            "DeepSeek-V3",
            "DeepSeek-V3.2",
            "DeepSeek-R1",
            "Qwen3-235B-A22B",
            "Qwen3-Coder-480B-A35B-Instruct",
            "GLM-5",
            "GLM-5.2",
            "Kimi-K2",
            "Kimi-K2.5",
            "Kimi-K3 (est. from config)",
        ]
        .map(row)
        .into();
        for (name, expected) in [
            ("DeepSeek-V3(-0324)", Some("DeepSeek-V3")),
            ("DeepSeek-V3.1", Some("DeepSeek-V3")),
            ("DeepSeek-V3.2", Some("DeepSeek-V3.2")),
            ("DeepSeek-R1-0528", Some("DeepSeek-R1")),
            ("Llama-3.3-70B", Some("Meta-Llama-3.1-70B")),
            ("Qwen3-235B-A22B-2507", Some("Qwen3-235B-A22B")),
            ("Qwen3-Coder-480B-A35B", Some("Qwen3-Coder-480B-A35B-Instruct")),
            ("GLM-5.1", Some("GLM-5")),
            ("GLM-5.2", Some("GLM-5.2")),
            ("GLM-5.3-Flash", None),
            ("GLM-4.6", None),
            ("Kimi-K2-0905", Some("Kimi-K2")),
            ("Kimi-K2.5", Some("Kimi-K2.5")),
            ("Kimi-K3", Some("Kimi-K3 (est. from config)")),
        ] {
            assert_eq!(architecture(name, &rows).map(|r| r.model.as_str()), expected, "{name}");
        }
    }
}
