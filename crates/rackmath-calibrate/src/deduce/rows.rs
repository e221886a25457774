//! Open-weight models with what their hosts charge and what they are, from a folder of tables.

use crate::rows::{Record, nothing, table};
use rackmath_spec::SpecError;
use rackmath_spec::deduce::{HostPrice, PRICE_RANGE};
use rackmath_theory::deduce::level::Known;
use rackmath_theory::deduce::level::Summary;
use rackmath_units::float::ln;
use std::path::Path;

const FILES: [&str; 2] = ["open_host_prices.csv", "open_arch.csv"];

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
fn architecture<'a>(name: &str, models: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    let bare = name.split('(').next().unwrap_or(name);
    let wanted = key(SAME.iter().find(|(from, _)| *from == bare).map_or(bare, |(_, to)| to));
    let harmless = |trail: &str| {
        let digits = trail.trim_start_matches(|c: char| c.is_ascii_digit());
        TRAILS.contains(&digits) && [0, 4].contains(&(trail.len() - digits.len()))
    };
    models.into_iter().position(|model| {
        let known = key(model.split(" (").next().unwrap_or(model).trim_start_matches("Meta-"));
        wanted.strip_prefix(&*known).or_else(|| known.strip_prefix(&*wanted)).is_some_and(harmless)
    })
}

/// Every model of the price table whose architecture is known; the others are named.
pub fn known(folder: &Path) -> Result<(Vec<Known>, Vec<String>), SpecError> {
    if !FILES.iter().all(|f| folder.join(f).exists()) {
        return Err(nothing(folder, FILES.into_iter()));
    }
    let [rows, arch] = [table(&folder.join(FILES[0]))?, table(&folder.join(FILES[1]))?];
    let believed = |row: &Record, column| row.number(column).filter(|p| (PRICE_RANGE.0..=PRICE_RANGE.1).contains(p));
    let mut priced: Vec<(String, Vec<HostPrice>)> = Vec::new();
    for row in &rows {
        let (Some(input), Some(output)) = (believed(row, "usd_in"), believed(row, "usd_out")) else { continue };
        let (cached, maker) = (row.number("usd_cached_read"), row.text("first_party") == "yes");
        let (host, source) = (row.text("host").to_owned(), FILES[0].to_owned());
        let price = HostPrice { host, source, input, output, cached, maker };
        let name = row.text("open_model");
        match priced.iter_mut().find(|(model, _)| model == name) {
            Some((_, prices)) => prices.push(price),
            None => priced.push((name.to_owned(), vec![price])),
        }
    }
    let (mut models, mut unknown) = (Vec::new(), Vec::new());
    for (name, prices) in priced {
        let row = architecture(&name, arch.iter().map(|row| row.text("model"))).map(|at| &arch[at]);
        let size = |column| row?.number(column);
        let sizes = ["total_params_computed", "active_params_computed", "kv_elements_per_token_stored"].map(size);
        let ([Some(total), Some(active), Some(kv)], Some(summary)) = (sizes, Summary::of(&prices)) else {
            unknown.push(name);
            continue;
        };
        let (ln_active, ln_sparsity, ln_kv) = (ln(active), ln(total / active), ln(kv));
        let architecture = format!("{active}/{total}");
        models.push(Known { name, architecture, ln_active, ln_sparsity, ln_kv, prices, summary });
    }
    Ok((models, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_architecture_and_no_other() {
        let models = [
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
        ];
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
            assert_eq!(architecture(name, models).map(|at| models[at]), expected, "{name}");
        }
    }
}
