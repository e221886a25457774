//! What a request, a conversation or a trace costs at a provider on a day, and which cache offer is the cheapest.

mod card;
mod work;

use crate::desk::prelude::*;
pub use card::{CacheCard, Card, PolicyCard, TierCard};
pub use work::Workload;

use rackmath_spec::price::{CacheOffer, List};
use rackmath_spec::{Date, Moment};
use rackmath_theory::price::{Bill, When};

/// Sheets and a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Price sheets by id or alias; all when empty.
    #[schemars(extend("x-position" = 1, "x-file" = "price"))]
    pub sheets: Vec<String>,
    /// Prices of this day, such as 2026-08-05; each sheet's newest list known when it was checked unless given.
    pub as_of: Option<String>,
    /// The moment of the requests in UTC, of the first one in a trace, for prices by the hour.
    pub at: Option<String>,
    /// `standard`, `batch`, `flex`, `priority`, `fast`.
    pub mode: Option<String>,
    /// Another sheet for the same model: where they disagree is reported with the conflicts.
    #[schemars(extend("x-file" = "price"))]
    pub against: Option<String>,
    /// What is sent; only the lists are shown without it.
    pub workload: Option<Workload>,
}

/// One card per sheet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What is billed, in words.
    pub workload: Option<String>,
    /// The mode.
    pub mode: String,
    /// Sheets, cheapest first when something is billed.
    pub cards: Vec<Card>,
    /// Sheets left out, and why.
    pub left_out: Vec<String>,
    /// Effective price of a prompt token by policy, for one sheet and a workload that can grow.
    pub figure: Option<Figure>,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let wrong = |field: &'static str, like: &str| {
        let like = like.to_owned();
        move |e: rackmath_units::UnitError| Error::value(field, format!("\"{}\"", e.given), like.clone())
    };
    let as_of = request.as_of.as_deref().map(str::parse::<Date>).transpose();
    let as_of = as_of.map_err(wrong("as_of", "a date such as 2026-08-05"))?;
    let at = request.at.as_deref().map(str::parse::<Moment>).transpose();
    let at = at.map_err(wrong("at", "a moment in UTC such as 2026-10-27T02:30"))?;
    let mode = request.mode.clone().unwrap_or_else(|| "standard".into());
    let work = request.workload.as_ref().map(work::Prepared::new).transpose()?;
    let against = request.against.as_deref().map(|name| catalog.price(name)).transpose()?;
    let names = named_or_all(&request.sheets, catalog.ids(rackmath_spec::Kind::Prices));
    let one = names.len() == 1;
    let (mut cards, mut left_out, mut figure) = (Vec::new(), Vec::new(), None);
    for name in &names {
        let sheet = catalog.price(name)?;
        let day = as_of.or(at.map(|m| m.date)).unwrap_or(sheet.as_of);
        let list = match sheet.at(day) {
            Ok(list) => list,
            Err(error) if one => return Err(error),
            Err(error) => {
                left_out.push(error.to_string());
                continue;
            }
        };
        let mode_factors = match list.mode(&mode) {
            Ok(factors) => factors,
            Err(error) if one => return Err(error),
            Err(_) => {
                left_out.push(format!("{}: no {mode} mode", sheet.id));
                continue;
            }
        };
        let mut conflicts = list.conflicts.clone();
        if let Some(other) = &against {
            conflicts.extend(other.at(day).map_or_else(|_| Vec::new(), |l| list.disagreements(l)));
        }
        let list = &List { conflicts, ..list.clone() };
        let when = When { mode: mode_factors, start: at };
        let factors = mode_factors.times(list.hour(at));
        let bills = work.as_ref().map(|w| w.bills(list, when)).transpose()?;
        if one && let Some(work) = &work {
            figure = effective(&sheet.name, list, work, when);
        }
        cards.push(card::card(&sheet, list, day, at, factors, bills.unwrap_or_default(), work.as_ref()));
    }
    if work.is_some() {
        let total = |c: &Card| c.policies.first().map_or(f64::INFINITY, |p| p.total_usd);
        cards.sort_by(|a, b| total(a).total_cmp(&total(b)));
    }
    Ok(Answer { workload: work.map(|w| w.words()), mode, cards, left_out, figure })
}

/// Dollars of input for a million prompt tokens as the workload grows, one line per policy.
fn effective(name: &str, list: &List, work: &work::Prepared, when: When) -> Option<Figure> {
    let (label, most) = work.growth()?;
    let most = most.clamp(10, 1000);
    let offers: Vec<Option<&CacheOffer>> = std::iter::once(None).chain(list.caches.iter().map(Some)).collect();
    let input = |b: &Bill| (b.fresh + b.written + b.read + b.storage) / b.prompt * 1e6;
    let series = offers
        .iter()
        .enumerate()
        .map(|(i, offer)| {
            Series::new(
                offer.map_or("no cache".into(), |o| format!("{} cache", o.name)),
                if offer.is_none() { Role::Envelope } else { Role::Choice(i as u8 - 1) },
                (1..=most)
                    .map(|n| (n as f64, input(&work.grown(list, *offer, when, n))))
                    .filter(|p| p.1.is_finite() && p.1 > 0.0),
            )
        })
        .collect();
    Some(Figure {
        title: format!("{name}: what a million prompt tokens cost by cache offer"),
        subtitle: work.words(),
        x: Axis::linear(label, Unit::Count),
        y: Axis::log("dollars of input per million prompt tokens", Unit::UsdPerMtok),
        series,
        marks: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &Request) -> Answer {
        answer(&rackmath_catalog::embedded(), request).unwrap()
    }

    #[test]
    fn the_cheapest_of_many_stands_first() {
        let workload = Workload { input: Some(100e3), output: 1e3, ..Workload::default() };
        let a = ask(&Request { workload: Some(workload), ..Request::default() });
        assert!(a.cards.len() > 40);
        assert!(a.cards.windows(2).all(|w| w[0].policies[0].total_usd <= w[1].policies[0].total_usd));
    }

    #[test]
    fn a_day_before_a_model_existed_is_refused_or_left_out() {
        let request = |sheets: &[&str]| Request {
            sheets: sheets.iter().map(|s| (*s).to_owned()).collect(),
            as_of: Some("2025-03-01".into()),
            ..Request::default()
        };
        let error = answer(&rackmath_catalog::embedded(), &request(&["opus-4.8"])).unwrap_err().to_string();
        assert!(error.contains("2026-05-28 or later"), "{error}");
        let a = ask(&request(&["opus-4.8", "gpt-4o"]));
        assert_eq!((a.cards.len(), a.left_out.len()), (1, 1));
    }
}
