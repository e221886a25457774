//! What the catalogue holds, by name: for pickers and completions.

use crate::desk::prelude::*;
use rackmath_spec::Kind;

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {}

/// The names, each kind in the order of its ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer {
    /// Models.
    pub models: Vec<Entry>,
    /// Nodes, racks and pods.
    pub systems: Vec<Entry>,
    /// Chips.
    pub chips: Vec<Entry>,
    /// Price sheets.
    pub prices: Vec<Entry>,
    /// Serving engines.
    pub engines: Vec<String>,
    /// Scaling laws.
    pub laws: Vec<String>,
    /// Published training runs.
    pub runs: Vec<String>,
    /// Training programs.
    pub stacks: Vec<String>,
    /// Memory tiers.
    pub tiers: Vec<String>,
    /// Workloads.
    pub scenarios: Vec<String>,
    /// Sellers whose price habits are counted.
    pub vendors: Vec<String>,
    /// Open models whose hosts' prices are known.
    pub hosted: Vec<String>,
}

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Entry {
    /// What to ask for.
    pub id: String,
    /// What people call it.
    pub name: String,
}

/// Answers.
pub fn answer(catalog: &Catalog, _: &Request) -> Result<Answer, Error> {
    let words = |kind| catalog.ids(kind).map(str::to_owned).collect::<Vec<_>>();
    let entries = |kind, name: &dyn Fn(&str) -> Result<String, Error>| {
        words(kind).into_iter().map(|id| Ok(Entry { name: name(&id)?, id })).collect::<Result<_, Error>>()
    };
    Ok(Answer {
        models: entries(Kind::Models, &|id| Ok(catalog.model(id)?.name.clone()))?,
        systems: entries(Kind::Systems, &|id| Ok(catalog.system(id)?.name.clone()))?,
        chips: entries(Kind::Chips, &|id| Ok(catalog.chip(id)?.name.clone()))?,
        prices: entries(Kind::Prices, &|id| Ok(catalog.price(id)?.name.clone()))?,
        engines: words(Kind::Engines),
        laws: words(Kind::Laws),
        runs: words(Kind::Runs),
        stacks: words(Kind::Training),
        tiers: words(Kind::Tiers),
        scenarios: words(Kind::Scenarios),
        vendors: catalog.policies()?.vendors.keys().cloned().collect(),
        hosted: catalog.hosted_models()?.iter().map(|m| m.id.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_asked_for() {
        let catalog = rackmath_catalog::embedded();
        let names = answer(&catalog, &Request {}).expect("answered");
        assert!(names.models.len() > 20 && names.chips.len() > 50 && names.prices.len() > 10);
        assert!(names.laws.iter().all(|law| catalog.scaling_law(law).is_ok() || law.contains("clark")));
        assert!(names.engines.iter().all(|e| catalog.engine(e).is_ok()));
        assert!(names.vendors.iter().any(|v| v == "anthropic") && names.hosted.iter().any(|m| m == "deepseek-v3.1"));
        assert!(names.scenarios.iter().all(|s| catalog.scenario(s).is_ok()));
    }
}
