//! What a request, a conversation or a trace costs at a provider on a day, and which cache offer is the cheapest.

mod work;

pub use work::Workload;

use crate::desk::prelude::*;
use rackmath_spec::price::{CacheOffer, List, Sheet, Ttl};
use rackmath_spec::{Date, Moment};
use rackmath_theory::price::{Bill, When, break_even_gap, break_even_uses, implied_storage};
use rackmath_units::HoldPrice;
use work::Prepared;

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
    pub workload: Option<Remark>,
    /// The mode.
    pub mode: String,
    /// Sheets, cheapest first when something is billed.
    pub cards: Vec<Card>,
    /// Sheets left out, and why.
    pub left_out: Vec<Remark>,
    /// Effective price of a prompt token by policy, for one sheet and a workload that can grow.
    pub figure: Option<Figure>,
}

/// One sheet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Card {
    /// Its id.
    pub id: String,
    /// The model's name.
    pub name: String,
    /// Who charges.
    pub provider: String,
    /// The day asked for.
    pub day: String,
    /// The first day of the list.
    pub list_from: String,
    /// When the sheet was checked.
    pub checked: String,
    /// Where the list comes from.
    pub source: String,
    /// What to know about it.
    pub note: Option<String>,
    /// An input token.
    pub input_usd_per_mtok: f64,
    /// An output token.
    pub output_usd_per_mtok: f64,
    /// Multiples of mode and hour together: input, output, cache.
    pub factors: [f64; 3],
    /// The window of hours that applies.
    pub window: Option<String>,
    /// Cache offers.
    pub caches: Vec<CacheCard>,
    /// Long-context tiers.
    pub tiers: Vec<TierCard>,
    /// Modes and their multiples of input and output.
    pub modes: Vec<(String, f64, f64)>,
    /// Price of keeping that two write prices imply.
    pub implied_storage_usd_per_mtok_hour: Option<f64>,
    /// Where sources disagree.
    pub conflicts: Vec<Remark>,
    /// Policies with their bills, cheapest first; empty without a workload.
    pub policies: Vec<PolicyCard>,
}

/// A cache offer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheCard {
    /// Its name.
    pub name: String,
    /// For how long, in words.
    pub lifetime: Remark,
    /// Writing a token.
    pub write_usd_per_mtok: f64,
    /// Reading a token.
    pub read_usd_per_mtok: f64,
    /// Keeping a token.
    pub storage_usd_per_mtok_hour: Option<f64>,
    /// Uses from which on it is cheaper, at the workload's gap or at once; none when it never is.
    pub break_even_uses: Option<f64>,
    /// Longest gap for which keeping is cheaper than sending again, where keeping is charged.
    pub break_even_gap_s: Option<f64>,
    /// Where the rules come from.
    pub source: String,
}

/// A long-context tier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TierCard {
    /// Tokens of the prompt.
    pub threshold: f64,
    /// Whether that length itself is already dearer.
    pub reached: bool,
    /// An input token.
    pub input_usd_per_mtok: f64,
    /// An output token.
    pub output_usd_per_mtok: f64,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PolicyCard {
    /// `none`, or the cache offer.
    pub policy: String,
    /// All of it.
    pub total_usd: f64,
    /// Fresh input.
    pub fresh_usd: f64,
    /// Cache writes.
    pub written_usd: f64,
    /// Cache reads.
    pub read_usd: f64,
    /// Keeping.
    pub storage_usd: f64,
    /// Output.
    pub output_usd: f64,
    /// Requests billed at a long-context tier.
    pub long_requests: u64,
    /// Whether the provider does not say for how long entries are kept, so that every use is assumed to find them.
    pub lifetime_assumed: bool,
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
    let work = request.workload.as_ref().map(Prepared::new).transpose()?;
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
                left_out.push(error.to_string().into());
                continue;
            }
        };
        let mode_factors = match list.mode(&mode) {
            Ok(factors) => factors,
            Err(error) if one => return Err(error),
            Err(_) => {
                left_out.push(says("no_mode").with("sheet", &sheet.id).with("mode", &mode));
                continue;
            }
        };
        let mut conflicts = list.conflicts.clone();
        if let Some(other) = &against {
            conflicts.extend(other.at(day).map_or_else(|_| Vec::new(), |l| list.disagreements(l)));
        }
        let list = &List { conflicts, ..list.clone() };
        let when = When { mode: mode_factors, start: at };
        let bills = work.as_ref().map(|w| w.bills(list, when)).transpose()?;
        if one && let Some(work) = &work {
            figure = effective(&sheet.name, list, work, when);
        }
        let gap = work.as_ref().and_then(Prepared::gap).unwrap_or(Seconds::ZERO);
        cards.push(card(&sheet, list, day, when, bills.unwrap_or_default(), gap));
    }
    if work.is_some() {
        let total = |c: &Card| c.policies.first().map_or(f64::INFINITY, |p| p.total_usd);
        cards.sort_by(|a, b| total(a).total_cmp(&total(b)));
    }
    Ok(Answer { workload: work.map(|w| w.words()), mode, cards, left_out, figure })
}

fn card(sheet: &Sheet, list: &List, day: Date, when: When, bills: Vec<(String, Bill)>, gap: Seconds) -> Card {
    let factors = when.mode.times(list.hour(when.start));
    let cache = |o: &CacheOffer| CacheCard {
        name: o.name.clone(),
        lifetime: says("lifetime_of_cache").with("ttl", o.ttl.to_string()).with("restarts", o.restarts),
        write_usd_per_mtok: o.write.unwrap_or(list.input).as_per_mtok(),
        read_usd_per_mtok: o.read.as_per_mtok(),
        storage_usd_per_mtok_hour: o.storage.map(HoldPrice::as_per_mtok_hour),
        break_even_uses: break_even_uses(list.input, o, gap),
        break_even_gap_s: o.storage.map(|s| break_even_gap(list.input, o.read, s).get()),
        source: o.source.clone(),
    };
    let tiers = list.tiers.iter().map(|t| TierCard {
        threshold: t.threshold().get(),
        reached: t.reached(),
        input_usd_per_mtok: t.input.as_per_mtok(),
        output_usd_per_mtok: t.output.as_per_mtok(),
    });
    let conflicts = list.conflicts.iter().map(|c| {
        let both = says("conflict").with("field", &c.field).with("used", &c.used).with("other", &c.other);
        both.with("source", &c.source).with("note", c.note.as_ref())
    });
    let policy = |(policy, b): (String, Bill)| {
        let unstated = list.caches.iter().any(|o| o.name == policy && o.ttl == Ttl::Unstated);
        PolicyCard {
            lifetime_assumed: unstated && b.read > 0.0,
            policy,
            total_usd: b.total().get(),
            fresh_usd: b.fresh,
            written_usd: b.written,
            read_usd: b.read,
            storage_usd: b.storage,
            output_usd: b.output,
            long_requests: b.long,
        }
    };
    Card {
        id: sheet.id.clone(),
        name: sheet.name.clone(),
        provider: sheet.provider.clone(),
        day: day.to_string(),
        list_from: list.from.to_string(),
        checked: sheet.as_of.to_string(),
        source: list.source.clone(),
        note: list.note.clone(),
        input_usd_per_mtok: list.input.as_per_mtok(),
        output_usd_per_mtok: list.output.as_per_mtok(),
        factors: [factors.input, factors.output, factors.cache],
        window: when.start.and_then(|at| list.windows.iter().find(|w| w.holds(at))).map(|w| w.name.clone()),
        caches: list.caches.iter().map(cache).collect(),
        tiers: tiers.collect(),
        modes: list.modes.iter().map(|m| (m.name.clone(), m.factors.input, m.factors.output)).collect(),
        implied_storage_usd_per_mtok_hour: implied(list),
        conflicts: conflicts.collect(),
        policies: bills.into_iter().map(policy).collect(),
    }
}

/// The storage price two priced writes with two lifetimes imply.
fn implied(list: &List) -> Option<f64> {
    let fixed = |o: &CacheOffer| match (o.ttl, o.write) {
        (Ttl::Fixed(ttl), Some(write)) => Some((write, ttl)),
        _ => None,
    };
    let both: Vec<(DollarsPerToken, Seconds)> = list.caches.iter().filter_map(fixed).collect();
    match both.as_slice() {
        [short, long] if short.1 < long.1 => implied_storage(*short, *long).map(|(slope, _)| slope.as_per_mtok_hour()),
        _ => None,
    }
}

/// Dollars of input for a million prompt tokens as the workload grows, one line per policy.
fn effective(name: &str, list: &List, work: &Prepared, when: When) -> Option<Figure> {
    let (label, most) = work.growth()?;
    let most = most.clamp(10, 1000);
    let input = |b: &Bill| (b.fresh + b.written + b.read + b.storage) / b.prompt * 1e6;
    let line = |offer: Option<&CacheOffer>, name: Remark, role| {
        let points = (1..=most).map(|n| (n as f64, input(&work.grown(list, offer, when, n))));
        Series::new(name, role, points.filter(|p| p.1.is_finite() && p.1 > 0.0))
    };
    let named = |o: &CacheOffer| says("cache_offer").with("name", &o.name);
    let offers = list.caches.iter().zip(0..).map(|(o, i)| line(Some(o), named(o), Role::Choice(i)));
    let series = std::iter::once(line(None, "no cache".into(), Role::Envelope)).chain(offers);
    let y = Axis::log("dollars of input per million prompt tokens", Unit::UsdPerMtok);
    let title = says("cost_by_offer").with("sheet", name);
    Some(Figure::of(title, work.words(), (Axis::linear(label, Unit::Count), y), series))
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
        assert!(a.cards.is_sorted_by_key(|c| c.policies[0].total_usd));
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
