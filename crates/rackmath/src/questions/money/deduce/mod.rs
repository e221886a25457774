//! What a price sheet says about the model behind it, with honest error bars.
//!
//! First the lecture's closed forms, which take prices for costs; then the posterior, which does not. With `blind` the prices
//! are those of an open model's hosts, its architecture is hidden, and the level of prices comes from the other
//! architectures alone; the truth stands beside the posterior.
use crate::desk::prelude::*;

mod answer;
mod closed;

pub use answer::{
    Answer, BlindCard, ChoiceCard, ClosedCard, DatumCard, RidgeCard, Sampler, ShapeCard, Unknown, UnknownCard,
};

use rackmath_spec::deduce::{DeducePriors, HostedModel, Level, PRICE_RANGE, Policies, Ratio, Seller};
use rackmath_spec::file::sheet::{PriceSheet, plain};
use rackmath_spec::price::{List, Ttl};
use rackmath_spec::{Date, SpecError};
use rackmath_theory::deduce::level::{Known, level};
use rackmath_theory::deduce::{Evidence, Posterior, Refusal, Sampling, Sheet, Space};
use rackmath_theory::price::implied_storage;

/// Any subset of a price sheet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// A price sheet of the catalogue, or the path of a .toml file with units; what is given beside it wins over it.
    #[schemars(extend("x-position" = 1, "x-file" = "sheet"))]
    pub sheet: Option<String>,
    /// When the prices of the sheet held, as 2026-08-08.
    #[schemars(extend("x-none" = "the day it was checked"))]
    pub as_of: Option<String>,
    /// What is sold, for the title.
    pub model: Option<String>,
    /// Who sells: a vendor of the catalogue's policies, whose fixed ratios then count as policy. None for a host of open weights.
    pub vendor: Option<String>,
    /// Whether a closed model's maker sells; makers charge more and vary more. Taken from the vendor when left out.
    pub first_party: Option<bool>,
    /// Input price.
    pub input_usd_per_mtok: Option<f64>,
    /// Output price.
    pub output_usd_per_mtok: Option<f64>,
    /// Cached-read price.
    pub cached_usd_per_mtok: Option<f64>,
    /// Price of a cache write kept for five minutes.
    pub write_5m_usd_per_mtok: Option<f64>,
    /// Price of a cache write kept for an hour.
    pub write_1h_usd_per_mtok: Option<f64>,
    /// Storage price.
    pub storage_usd_per_mtok_hour: Option<f64>,
    /// Tokens from which long-context prices apply.
    #[schemars(extend("x-flag" = "long-above"))]
    pub long_above_tokens: Option<f64>,
    /// Input price above.
    pub long_input_usd_per_mtok: Option<f64>,
    /// Output price above.
    pub long_output_usd_per_mtok: Option<f64>,
    /// Price multiple of a fast mode.
    #[schemars(extend("x-flag" = "fast-price"))]
    pub fast_price_multiple: Option<f64>,
    /// Its speed multiple.
    #[schemars(extend("x-flag" = "fast-speed"))]
    pub fast_speed_multiple: Option<f64>,
    /// Measured tokens per second of one user.
    #[schemars(extend("x-flag" = "tokens-per-s"))]
    pub tokens_per_s: Option<f64>,
    /// Hosts whose median the prices are; 1 unless the sheet says more.
    pub hosts: Option<u64>,
    /// An open model to deduce from its hosts' prices with its architecture hidden.
    pub blind: Option<String>,
    /// Binary logarithm of the number of points, 12 to 20.
    #[schemars(extend("x-flag" = "points", "x-most" = [17, "points of the prior, as a power of two"]))]
    #[educe(Default = 16)]
    pub log2_points: u32,
    /// Seed.
    #[educe(Default = 1)]
    pub seed: u64,
}

impl Request {
    /// Takes from a sheet what is not given.
    pub fn fill(&mut self, sheet: PriceSheet) {
        macro_rules! or {
            ($($field:ident = $from:ident),*) => { $(self.$field = self.$field.take().or(sheet.$from);)* };
        }
        or!(model = model, vendor = vendor, input_usd_per_mtok = input, output_usd_per_mtok = output);
        or!(cached_usd_per_mtok = cached, write_5m_usd_per_mtok = write_5m, write_1h_usd_per_mtok = write_1h);
        or!(storage_usd_per_mtok_hour = storage, long_above_tokens = long_above, long_input_usd_per_mtok = long_input);
        or!(long_output_usd_per_mtok = long_output, fast_price_multiple = fast_price, fast_speed_multiple = fast_speed);
        or!(tokens_per_s = tokens_per_s, hosts = hosts);
    }
}

struct Case {
    sheet: Sheet,
    space: Space,
    policies: Arc<Policies>,
    vendor: Option<String>,
    seller: Seller,
    known: Option<Known>,
}

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    let mut filled = request.clone();
    let day = request.as_of.as_deref().map(str::parse::<Date>).transpose();
    let day = day.map_err(|e| Error::said(e.to_string()).at("as_of"))?;
    match &request.sheet {
        Some(name) => filled.fill(listed(catalog, name, day)?),
        None if day.is_some() => return Err(Error::value("as_of", "a day alone", "a sheet of that day as well")),
        None => {}
    }
    let request = &filled;
    sane(request)?;
    let case = Case::new(catalog, request)?;
    let sampling = Sampling { log2_points: request.log2_points, seed: request.seed };
    let evidence = Evidence::new(&case.space, &case.sheet, |ratio| case.chance(ratio));
    let posterior = Posterior::until(&case.space, &evidence, sampling, &cancel)?;
    // The prior is smooth: more points than this do not change what is shown.
    let few = Sampling { log2_points: request.log2_points.min(16), ..sampling };
    let nothing = Evidence::new(&case.space, &Sheet { hosts: case.sheet.hosts, ..Sheet::default() }, |_| 0.0);
    let prior = Posterior::until(&case.space, &nothing, few, &cancel)?.map_err(|Refusal { ess, .. }| {
        Error::value("log2_points", format!("{ess:.0} effective points of the prior"), "more points")
    })?;
    let closed = closed::cards(catalog, &case.sheet, posterior.as_ref().unwrap_or(&prior))?;
    Ok(answer::build(request, &case, &evidence, &prior, posterior, closed))
}

impl Case {
    fn new(catalog: &Catalog, request: &Request) -> Result<Self, Error> {
        let (priors, policies) = (catalog.deduce_priors()?, catalog.policies()?);
        let vendor = request.vendor.as_deref().map(|v| v.trim().to_ascii_lowercase());
        if let Some(vendor) = &vendor {
            policies.vendor(vendor)?;
        }
        let Some(blind) = &request.blind else {
            let maker = request.first_party.unwrap_or(vendor.is_some());
            let seller = if maker { Seller::FirstParty } else { Seller::Host };
            let space = resolved(&priors, priors.level, seller)?;
            return Ok(Self { sheet: sheet(request), space, policies, vendor, seller, known: None });
        };
        let (known, level) = hidden(catalog, &priors, blind)?;
        let space = resolved(&priors, level, Seller::Host)?;
        let mut sheet = known.summary.sheet();
        sheet.tokens_per_s = request.tokens_per_s;
        Ok(Self { sheet, space, policies, vendor: None, seller: Seller::Host, known: Some(known) })
    }

    /// Chance that a ratio is policy: the vendor's own habit where it is known, 1 where it never moves.
    fn chance(&self, ratio: Ratio) -> f64 {
        let list =
            if self.known.is_some() || self.vendor.is_none() { &self.policies.host } else { &self.policies.pooled };
        let habit = self.vendor.as_ref().and_then(|v| self.policies.vendors.get(v)?.get(&ratio));
        match habit {
            Some(habit) if habit.fixed() => 1.0,
            Some(habit) if habit.models >= 3 => habit.chance(),
            _ => list.get(&ratio).copied().unwrap_or(0.5),
        }
    }
}

fn resolved(priors: &DeducePriors, level: Level, seller: Seller) -> Result<Space, Error> {
    let priors = DeducePriors { level, ..priors.clone() };
    Space::new(&priors, seller)
        .ok_or_else(|| Error::value("chip", "a chip of the priors", "a chip with a peak for every width"))
}

/// An open model with its prices, and the level of prices over all other architectures.
fn hidden(catalog: &Catalog, priors: &DeducePriors, name: &str) -> Result<(Known, Level), Error> {
    let hosted = catalog.hosted_models()?;
    let wanted = name.trim().to_ascii_lowercase();
    let find = |m: &&HostedModel| m.id == wanted;
    let Some(target) = hosted.iter().find(find) else {
        return Err(SpecError::unknown("hosted open model", name, hosted.iter().map(|m| m.id.as_str())));
    };
    let mut all = Vec::new();
    for model in hosted.iter() {
        all.extend(Known::of(model, &*catalog.model(&model.config)?));
    }
    let others: Vec<&Known> = all.iter().filter(|k| k.architecture != target.config).collect();
    let level = level(priors, &others);
    let known = all.into_iter().find(|k| k.name == target.id);
    known.map(|k| (k, level)).ok_or_else(|| Error::value("blind", name, "a model with hosts"))
}

/// The numbers of a sheet by name, on a day; the day it was checked unless given.
pub fn listed(catalog: &Catalog, name: &str, day: Option<Date>) -> Result<PriceSheet, Error> {
    let sheet = catalog.price(name)?;
    let day = day.unwrap_or(sheet.as_of);
    let list = sheet.at(day)?;
    // A seller whose habits nobody has counted is taken for a host of open weights.
    let vendor = catalog.policies()?.vendor(&sheet.provider).is_ok().then(|| sheet.provider.clone());
    let step = list.tiers.first();
    // Modes without a speed are discounts and queues; they say nothing about batches.
    let fast = list.modes.iter().find_map(|m| Some((m.factors.output, m.speed.filter(|s| *s > 1.0)?)));
    let lowest = list.caches.iter().map(|c| per_mtok(c.read)).reduce(f64::min);
    Ok(PriceSheet {
        vendor,
        model: Some(sheet.name.clone()),
        as_of: Some(day.to_string()),
        input: Some(per_mtok(list.input)),
        output: Some(per_mtok(list.output)),
        cached: lowest.filter(|p| *p > 0.0),
        write_5m: write(list, 300.0),
        write_1h: write(list, 3600.0),
        storage: list.caches.iter().find_map(|c| c.storage).map(|h| plain(h.as_per_mtok_hour())),
        long_above: step.map(|t| t.threshold().get()),
        long_input: step.map(|t| per_mtok(t.input)),
        long_output: step.map(|t| per_mtok(t.output)),
        fast_price: fast.map(|f| f.0),
        fast_speed: fast.map(|f| f.1),
        tokens_per_s: None,
        hosts: None,
    })
}

fn per_mtok(price: DollarsPerToken) -> f64 {
    plain(price.as_per_mtok())
}

/// What writing to a cache of so many seconds costs, where it costs anything.
fn write(list: &List, seconds: f64) -> Option<f64> {
    let lasts = |ttl: Ttl| matches!(ttl, Ttl::Fixed(t) if (t.get() - seconds).abs() < 1.0);
    let offer = list.caches.iter().find(|c| lasts(c.ttl))?;
    offer.write.map(per_mtok).filter(|p| *p > per_mtok(list.input))
}

fn sheet(r: &Request) -> Sheet {
    let ratio = |above: Option<f64>, below: Option<f64>| Some(above? / below?);
    let held = |short: (f64, f64), long: (f64, f64)| {
        let at = |(usd, minutes): (f64, f64)| (DollarsPerToken::per_mtok(usd), Seconds::s(minutes * 60.0));
        implied_storage(at(short), at(long)).map(|(slope, _)| slope.as_per_mtok_hour()).filter(|s| *s > 0.0)
    };
    let write = match (r.write_5m_usd_per_mtok, r.write_1h_usd_per_mtok, r.input_usd_per_mtok) {
        (Some(short), Some(long), _) => held((short, 5.0), (long, 60.0)),
        // One write price alone: what it asks above input, over its time.
        (Some(short), None, Some(input)) => held((input, 0.0), (short, 5.0)),
        (None, Some(long), Some(input)) => held((input, 0.0), (long, 60.0)),
        _ => None,
    };
    Sheet {
        input: r.input_usd_per_mtok,
        output: r.output_usd_per_mtok,
        cached: r.cached_usd_per_mtok,
        storage: r.storage_usd_per_mtok_hour,
        write,
        long: r.long_above_tokens.map(|above| {
            let input = ratio(r.long_input_usd_per_mtok, r.input_usd_per_mtok);
            (above, input, ratio(r.long_output_usd_per_mtok, r.output_usd_per_mtok))
        }),
        fast: r.fast_price_multiple.zip(r.fast_speed_multiple),
        tokens_per_s: r.tokens_per_s,
        hosts: r.hosts.unwrap_or(1) as usize,
    }
}

fn sane(r: &Request) -> Result<(), Error> {
    for (field, price) in [
        ("input", r.input_usd_per_mtok),
        ("output", r.output_usd_per_mtok),
        ("cached", r.cached_usd_per_mtok),
        ("write_5m", r.write_5m_usd_per_mtok),
        ("write_1h", r.write_1h_usd_per_mtok),
        ("storage", r.storage_usd_per_mtok_hour),
        ("long_input", r.long_input_usd_per_mtok),
        ("long_output", r.long_output_usd_per_mtok),
    ] {
        let wrong = |p: f64| !(PRICE_RANGE.0 * 0.999_999..=PRICE_RANGE.1 * 1.000_001).contains(&p);
        let given = price.unwrap_or_default();
        refuse_if(price.is_some_and(wrong), field, given, "between $0.001 and $1,000 per million tokens")?;
    }
    for (field, value, low, high) in [
        ("long_above", r.long_above_tokens, 1e3, 1e9),
        ("fast_price", r.fast_price_multiple, 1.001, 1e3),
        ("fast_speed", r.fast_speed_multiple, 1.001, 1e3),
        ("tokens_per_s", r.tokens_per_s, 0.01, 1e6),
    ] {
        if_given(field, value, low, high)?;
    }
    let one = r.fast_price_multiple.is_some() != r.fast_speed_multiple.is_some();
    refuse_if(one, "fast", "one multiple", "both the price and the speed multiple of the fast mode")?;
    let above = r.long_input_usd_per_mtok.or(r.long_output_usd_per_mtok).is_some() && r.long_above_tokens.is_none();
    refuse_if(above, "long_above", "nothing", "the tokens from which the long-context price applies")?;
    refuse_if(!(12..=20).contains(&r.log2_points), "log2_points", r.log2_points, "12 to 20")?;
    r.hosts.map(|n| up_to("hosts", n, 10_000)).transpose()?;
    let priced = [r.input_usd_per_mtok, r.output_usd_per_mtok, r.cached_usd_per_mtok, r.storage_usd_per_mtok_hour];
    let both = r.blind.is_some() && priced.iter().any(Option::is_some);
    refuse_if(both, "blind", "a model and prices", "either a model whose hosts' prices are known, or prices")
}

#[cfg(test)]
mod tests;
