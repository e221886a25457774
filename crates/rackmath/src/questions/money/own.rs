//! One's own machines against a provider's price per token: from which use, from how many requests a day on they are cheaper, and what
//! sending easy questions to a small model saves. The law stands in `rackmath_theory::own`.

use crate::desk::prelude::*;
use crate::layout::DegreesRequest;
use crate::serving::{OwnerRequest, RatesCard, RatesRequest, owner, rates_of};
use rackmath_theory::fleet::peak_over_mean;
use rackmath_theory::own::{Crossing, DAY, Side, crossings};
use rackmath_theory::steady::{Requests, Spread};

/// A model on machines of one's own, what is asked of it, and who else would serve it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine, with a rental, on-demand or owner's price per hour from the catalogue.
    pub setting: Setting,
    /// How fast a chip is.
    pub rates: RatesRequest,
    /// Compute the hour an owner pays, instead of a price from the catalogue.
    #[schemars(extend("x-flag" = "owner"))]
    pub owner: Option<OwnerRequest>,
    /// All-in power of a chip; the catalogue's unless given.
    pub power_w: Option<f64>,
    /// Power of the building over power of the machines; where given, the machine's own power counts and no figure that has the
    /// building in it.
    #[schemars(extend("x-none" = "1.2, or what is in the catalogue's power of a chip"))]
    pub pue: Option<f64>,
    /// Who else serves it: a price sheet, or a host of this model such as `together`.
    #[schemars(extend("x-flag" = "provider against sheet", "x-file" = "price", "x-none" = "the cheapest host known for the model"))]
    pub provider: Option<String>,
    /// The provider's price instead: dollars per million tokens in, out and cached, such as 0.6/2.4/0.06.
    #[schemars(extend("x-none" = "the sheet's"))]
    pub provider_price: Option<String>,
    /// Reserved capacity at the provider instead: dollars per hour of one unit.
    #[schemars(extend("x-flag" = "reserved provisioned"))]
    pub reserved_usd_per_hour: Option<f64>,
    /// Output tokens per second one reserved unit serves.
    #[schemars(extend("x-flag" = "reserved-tok-s"))]
    pub reserved_tok_s: Option<f64>,
    /// Tokens of an answer.
    #[schemars(extend("x-flag" = "answer osl"))]
    #[educe(Default = 500.0)]
    pub answer: f64,
    /// Share of a prompt found in the cache, here and there.
    #[schemars(extend("x-flag" = "hit prefix-hit", "x-unit" = "share"))]
    pub hit: f64,
    /// Requests of a day, where these are known.
    #[schemars(extend("x-flag" = "requests-per-day requests"))]
    pub requests_per_day: Option<f64>,
    /// The day in equal parts, as any numbers in proportion to traffic.
    pub curve: Vec<f64>,
    /// The busiest hour over the mean, where the day is not given.
    // 278 nodes at the peak, 226.75 on average, on DeepSeek's published day.
    #[educe(Default = 278.0 / 226.75)]
    pub peak: f64,
    /// Share of a machine in use at the busiest hour.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.8)]
    pub target: f64,
    /// A small model that answers a share of the requests, such as `qwen3-8b=60%`.
    #[schemars(extend("x-flag" = "route route-to"))]
    pub route: Option<String>,
    /// Machine of the small model.
    #[schemars(extend("x-none" = "one chip of the same kind"))]
    pub route_on: Option<String>,
}

/// Whose machines are cheaper, and from where on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// In a sentence.
    pub verdict: Remark,
    /// The model.
    pub model: String,
    /// The machine.
    pub system: String,
    /// Chips of it.
    pub chips: u64,
    /// An hour of one chip.
    pub chip_usd_per_hour: f64,
    /// Whose price that is.
    pub basis: Remark,
    /// A machine's day.
    pub machine_usd_per_day: f64,
    /// How fast a chip is, and where that comes from.
    pub rates: RatesCard,
    /// Tokens of a request, in and out.
    pub request_tokens: [f64; 2],
    /// Requests a day of one machine that always works.
    pub full_requests_per_day: f64,
    /// Requests a day one machine can take, with this day and this target.
    pub machine_requests_per_day: f64,
    /// The provider, in words.
    pub provider: Remark,
    /// Dollars per million tokens in, out and cached; nothing for reserved units.
    pub provider_usd_per_mtok: Option<[f64; 3]>,
    /// What a request costs at the provider.
    pub provider_usd_per_request: f64,
    /// What one costs on a machine that is as full as it may be.
    pub own_usd_per_request: f64,
    /// Requests a day from which on one's own is cheaper for the first time; nothing where it never is.
    pub cheaper_from_requests_per_day: Option<f64>,
    /// Share of all the time of the machines that are held then.
    pub cheaper_from_utilisation: Option<f64>,
    /// Tokens a day there, in and out.
    pub cheaper_from_tokens_per_day: Option<f64>,
    /// Requests a day from which on it always is, within what was looked at.
    pub cheaper_for_good_from: Option<f64>,
    /// Every change of the cheaper side.
    pub changes: Vec<Change>,
    /// At the requests that were named.
    pub there: Option<There>,
    /// Other hosts of the model and where their break-even lies.
    pub hosts: Vec<Host>,
    /// What a small model saves.
    pub route: Option<Routed>,
    /// Dollars a day against requests a day.
    pub figure: Figure,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// Where the cheaper side changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Requests a day.
    pub requests_per_day: f64,
    /// Whether one's own is cheaper above.
    pub own_above: bool,
    /// Whether both cost the same there; otherwise a further machine is bought.
    pub equal: bool,
    /// Machines held just above.
    pub machines: u64,
    /// Dollars a day on one's own machines there.
    pub own_usd_per_day: f64,
    /// Dollars a day at the provider there.
    pub provider_usd_per_day: f64,
}

/// Both at the traffic that was named.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct There {
    /// Requests a day.
    pub requests_per_day: f64,
    /// Machines.
    pub machines: u64,
    /// Share of their time in use, over the day.
    pub utilisation: f64,
    /// Dollars a day on one's own.
    pub own_usd_per_day: f64,
    /// Dollars a day at the provider.
    pub provider_usd_per_day: f64,
    /// In a sentence.
    pub says: Remark,
}

/// Another host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Dollars per million tokens in, out and cached.
    pub usd_per_mtok: [f64; 3],
    /// What a request costs.
    pub usd_per_request: f64,
    /// Requests a day from which on one's own is cheaper.
    pub cheaper_from_requests_per_day: Option<f64>,
}

/// A share of the requests to a small model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Routed {
    /// The small model.
    pub model: String,
    /// Its machine.
    pub system: String,
    /// Share of the requests it answers.
    pub share: f64,
    /// Requests a day at which both were worked out.
    pub requests_per_day: f64,
    /// Dollars a day with the large model alone.
    pub before_usd_per_day: f64,
    /// Dollars a day with both.
    pub after_usd_per_day: f64,
    /// Machines of the large model before and after, and of the small one.
    pub machines: [u64; 3],
    /// In a sentence, with what it does to answers.
    pub says: Remark,
}

/// Machines that are looked at.
const MACHINES: f64 = 64.0;

/// What a request is made of.
#[derive(Clone, Copy)]
struct Shape {
    input: f64,
    output: f64,
    hit: f64,
    /// The busiest hour over the mean, over the share in use then.
    crowd: f64,
    /// Tokens that a decoding sequence holds, where they are given.
    context: Option<f64>,
}

impl Shape {
    /// At so many dollars per million tokens in, out and cached.
    fn price(&self, [input, output, cached]: [f64; 3]) -> f64 {
        (self.input * (1.0 - self.hit) * input + self.input * self.hit * cached + self.output * output) / 1e6
    }

    fn requests(&self) -> Requests {
        let plain = Requests::of(self.input, self.output);
        // A context that is given stands in place of the mean one.
        let more = self.context.map_or(0.0, |given| given - plain.context());
        Requests { cached: self.hit, spread: Spread { context: more, whole: more, ..Spread::default() }, ..plain }
    }

    /// Requests a day of so many chips that always work.
    fn full(&self, card: &RatesCard, chips: u64) -> f64 {
        if let Some(served) = &card.served {
            return DAY * served.requests_per_s;
        }
        let r = card.rates();
        let seconds = self.input * (1.0 - self.hit) / r.prefill.get() + self.output / r.decode.get();
        DAY * chips as f64 / seconds
    }
}

/// Answers.
pub fn answer(catalog: &Catalog, q: &Request) -> Result<Answer, Error> {
    let r = resolve(catalog, &q.setting)?;
    let shape = shape(q)?;
    let card = rates_of(catalog, &q.setting, &r, &q.rates.answering(shape.output), Some(&shape.requests()))?;
    let (chip_hour, basis, mut assumptions) = hour(&r, q)?;
    match &card.served {
        Some(served) => assumptions.push(served.words.clone()),
        None => assumptions.extend([card.prefill.words.clone(), card.decode.words.clone()]),
    }
    assumptions.extend([says("own_assumes"), says("own_ignores")]);
    let chips = r.system.n_chips;
    let day = chip_hour.as_per_hour() * 24.0 * chips as f64;
    let full = shape.full(&card, chips);
    let own = Side { fixed: day, capacity: full / shape.crowd, each: 0.0 };
    let (side, provider, prices) = provider(catalog, q, &r, shape)?;
    let most = own.capacity * MACHINES;
    let barred = card.nobody_serves().cloned();
    let found = if barred.is_some() { Vec::new() } else { crossings(&own, &side, most) };
    let first = found.iter().find(|c| c.first).map(|c| c.requests);
    let good = found.last().filter(|c| c.first).map(|c| c.requests);
    let machine = own_name(chips, &r.system.chip.name);
    let verdict = barred.clone().unwrap_or_else(|| verdict(&machine, &provider, first, full, &found, own, side));
    let there = q.requests_per_day.map(|x| there(x, own, side, full)).transpose()?.filter(|_| barred.is_none());
    let hosts = hosts(catalog, &r.model.id, own, shape, if barred.is_some() { 0.0 } else { most })?;
    let route = q.route.as_deref().map(|text| route(catalog, q, text, (own, shape, &r, chip_hour))).transpose()?;
    let change = |c: &Crossing| Change {
        requests_per_day: c.requests,
        own_above: c.first,
        equal: c.equal,
        machines: own.units(c.requests * (1.0 + 1e-12) + 1e-9) as u64,
        own_usd_per_day: own.cost(c.requests),
        provider_usd_per_day: side.cost(c.requests),
    };
    Ok(Answer {
        verdict,
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        chips,
        chip_usd_per_hour: chip_hour.as_per_hour(),
        basis,
        machine_usd_per_day: day,
        request_tokens: [shape.input, shape.output],
        full_requests_per_day: full,
        machine_requests_per_day: own.capacity,
        provider,
        provider_usd_per_mtok: prices,
        provider_usd_per_request: side.cost(own.capacity) / own.capacity,
        own_usd_per_request: day / own.capacity,
        cheaper_from_requests_per_day: first,
        cheaper_from_utilisation: first.map(|x| x / (full * own.units(x))),
        cheaper_from_tokens_per_day: first.map(|x| x * (shape.input + shape.output)),
        cheaper_for_good_from: good,
        changes: found.iter().map(change).collect(),
        there,
        hosts,
        route,
        figure: figure(&r, own, side, &found),
        rates: card,
        assumptions,
    })
}

fn own_name(chips: u64, chip: &str) -> String {
    if chips == 1 { chip.to_owned() } else { format!("{chips} x {chip}") }
}

fn shape(q: &Request) -> Result<Shape, Error> {
    let peak = if q.curve.is_empty() { Some(q.peak) } else { peak_over_mean(&q.curve) };
    let peak = peak.filter(|p| p.is_finite() && (1.0..=1000.0).contains(p));
    let peak =
        peak.ok_or_else(|| Error::value("peak or curve", q.peak, "1 to 1,000, or numbers that are not all 0"))?;
    let target = within("target", q.target, 0.01, 1.0)?;
    Ok(Shape {
        input: tokens("prompt", q.rates.prompt, 1.0)?.get(),
        output: tokens("answer", q.answer, 1.0)?.get(),
        hit: within("hit", q.hit, 0.0, 1.0)?,
        crowd: peak / target,
        context: q.rates.context,
    })
}

/// A chip's hour, whose it is, and what it assumes.
fn hour(r: &Resolved, q: &Request) -> Result<(DollarRate, Remark, Vec<Remark>), Error> {
    match &q.owner {
        Some(wanted) => {
            let (_, hour, words) = owner(r, wanted, (q.power_w, q.pue))?;
            Ok((hour.total(), says("owner_computed"), words))
        }
        None if r.priced() => Ok((r.chip_price, r.price_source.remark(), Vec::new())),
        None => Err(no_price(&r.system.chip, "usual", "{owner} with {capex}")),
    }
}

const EXPECTED: &str = "dollars per million tokens in, out and cached, such as 0.6/2.4/0.06";

/// Three prices from a text; a cached token costs as much as a computed one where no third is given.
fn three_prices(text: &str) -> Result<[f64; 3], Error> {
    let wrong = || Error::value("provider_price", format!("\"{text}\""), EXPECTED);
    let read = |part: &str| {
        let bare = part.trim().trim_start_matches('$').trim_end_matches("/Mtok");
        bare.parse::<f64>().ok().filter(|x| x.is_finite() && (0.0..=1000.0).contains(x)).ok_or_else(wrong)
    };
    let all = text.split('/').filter(|p| *p != "Mtok").map(read).collect::<Result<Vec<_>, _>>()?;
    match all[..] {
        [input, output] => Ok([input, output, input]),
        [input, output, cached] => Ok([input, output, cached]),
        _ => Err(wrong()),
    }
}

type Provider = (Side, Remark, Option<[f64; 3]>);

/// What the provider costs: reserved units, prices as given, a sheet, a host, or the cheapest host.
fn provider(catalog: &Catalog, q: &Request, r: &Resolved, shape: Shape) -> Result<Provider, Error> {
    if q.reserved_usd_per_hour.is_some() || q.reserved_tok_s.is_some() {
        let (Some(usd), Some(rate)) = (q.reserved_usd_per_hour, q.reserved_tok_s) else {
            return Err(Error::value("reserved", "one of two", "both {reserved_usd_per_hour} and {reserved_tok_s}"));
        };
        let other = q.provider_price.as_ref().or(q.provider.as_ref());
        let expected = "one other side: reserved units, or a price of tokens";
        refuse_if(
            other.is_some(),
            "provider_price",
            format!("{} beside reserved units", other.map_or("", |o| o)),
            expected,
        )?;
        let usd = within("reserved_usd_per_hour", usd, 0.0, 1e6)?;
        let rate = within("reserved_tok_s", rate, 1e-3, 1e9)?;
        // The busiest hour must fit.
        let capacity = rate * DAY / shape.output / shape.crowd;
        let words = says("reserved_units").with("usd", usd / 3600.0).with("rate", rate);
        return Ok((Side { fixed: usd * 24.0, capacity, each: 0.0 }, words, None));
    }
    let by_token = |prices: [f64; 3]| Side { fixed: 0.0, capacity: f64::INFINITY, each: shape.price(prices) };
    if let Some(text) = &q.provider_price {
        let prices = three_prices(text)?;
        return Ok((by_token(prices), says("prices_as_given"), Some(prices)));
    }
    let known = hosted(catalog, &r.model.id)?;
    if let Some(name) = q.provider.as_deref() {
        if let Some((host, prices)) = known.iter().find(|(host, _)| host.eq_ignore_ascii_case(name.trim())) {
            return Ok((by_token(*prices), host_words(host), Some(*prices)));
        }
        let sheet = catalog.price(name).map_err(|e| {
            let hosts = known.iter().map(|(h, _)| h.as_str()).collect::<Vec<_>>().join(", ");
            let e = e.at("provider");
            if hosts.is_empty() {
                e
            } else {
                e.hint(format!("hosts known for this model: {hosts}; or {{provider_price}}"))
            }
        })?;
        let list = sheet.at(sheet.as_of)?;
        let cached = list.caches.first().map_or(list.input, |offer| offer.read);
        let prices = [list.input, list.output, cached].map(DollarsPerToken::as_per_mtok);
        let words = says("sheet_of").with("name", &sheet.name).with("as_of", sheet.as_of.to_string());
        return Ok((by_token(prices), words, Some(prices)));
    }
    let cheapest = known.iter().min_by(|a, b| shape.price(a.1).total_cmp(&shape.price(b.1)));
    let (host, prices) = cheapest.ok_or_else(|| {
        let expected = "{provider} with a price sheet (see `rackmath price`), or {provider_price} such as 0.6/2.4/0.06";
        Error::value("provider", format!("none, and no host of {} is known", r.model.name), expected)
    })?;
    Ok((by_token(*prices), host_words(host).with("cheapest", known.len() as f64), Some(*prices)))
}

fn host_words(host: &str) -> Remark {
    says("host_of").with("host", host)
}

/// Hosts of a model with their prices, cheapest input first.
fn hosted(catalog: &Catalog, model: &str) -> Result<Vec<(String, [f64; 3])>, Error> {
    let all = catalog.hosted_models()?;
    let own = all.iter().filter(|m| m.config == model || m.id == model);
    let mut found: Vec<(String, [f64; 3])> = Vec::new();
    for h in own.flat_map(|m| &m.hosts) {
        let prices = [h.input, h.output, h.cached.unwrap_or(h.input)];
        match found.iter_mut().find(|(name, _)| *name == h.host) {
            // Of several versions of a model the cheaper one.
            Some((_, known)) if prices[0] + prices[1] < known[0] + known[1] => *known = prices,
            Some(_) => {}
            None => found.push((h.host.clone(), prices)),
        }
    }
    Ok(found)
}

fn hosts(catalog: &Catalog, model: &str, own: Side, shape: Shape, most: f64) -> Result<Vec<Host>, Error> {
    let mut all: Vec<Host> = hosted(catalog, model)?
        .into_iter()
        .map(|(host, usd_per_mtok)| {
            let each = shape.price(usd_per_mtok);
            let side = Side { fixed: 0.0, capacity: f64::INFINITY, each };
            let from = crossings(&own, &side, most).iter().find(|c| c.first).map(|c| c.requests);
            Host { host, usd_per_mtok, usd_per_request: each, cheaper_from_requests_per_day: from }
        })
        .collect();
    all.sort_by(|a, b| a.usd_per_request.total_cmp(&b.usd_per_request).then_with(|| a.host.cmp(&b.host)));
    Ok(all)
}

fn verdict(
    machine: &str,
    provider: &Remark,
    first: Option<f64>,
    full: f64,
    found: &[Crossing],
    own: Side,
    side: Side,
) -> Remark {
    let Some(first) = first else {
        // Cheaper from the first request, or never.
        let always = own.cost(own.capacity) < side.cost(own.capacity);
        let said = says(if always { "own_always" } else { "own_never" }).with("machine", machine);
        let (mine, theirs) = (own.cost(own.capacity) / own.capacity, side.cost(own.capacity) / own.capacity);
        return said.with("provider", provider.clone()).with("own", mine).with("theirs", theirs);
    };
    let said = says("own_from").with("machine", machine).with("provider", provider.clone());
    let said = said.with("share", first / (full * own.units(first))).with("requests", first);
    let back = found.iter().find(|c| !c.first && c.requests > first);
    let again = back.and_then(|b| found.iter().find(|c| c.first && c.requests > b.requests));
    let said = said.with("machines", (own.units(first) > 1.0).then(|| own.units(first)));
    said.with("back", back.map(|c| c.requests)).with("again", again.map(|c| c.requests))
}

fn there(x: f64, own: Side, side: Side, full: f64) -> Result<There, Error> {
    let x = within("requests_per_day", x, 0.0, 1e15)?;
    let machines = own.units(x);
    let (mine, theirs) = (own.cost(x), side.cost(x));
    let said = says(if mine < theirs { "own_cheaper_there" } else { "provider_cheaper_there" });
    let said = said.with("requests", x).with("own", mine).with("theirs", theirs).with("machines", machines);
    let utilisation = x / (full * machines);
    Ok(There {
        requests_per_day: x,
        machines: machines as u64,
        utilisation,
        own_usd_per_day: mine,
        provider_usd_per_day: theirs,
        says: said.with("share", utilisation),
    })
}

/// `qwen3-8b=60%`: a model and the share of requests it answers.
fn route(
    catalog: &Catalog,
    q: &Request,
    text: &str,
    (own, shape, r, chip_hour): (Side, Shape, &Resolved, DollarRate),
) -> Result<Routed, Error> {
    let expected = "a model and the share of requests it answers, such as qwen3-8b=60%";
    let wrong = || Error::value("route", format!("\"{text}\""), expected);
    let (model, share) = text.rsplit_once('=').ok_or_else(wrong)?;
    let share = share.trim().parse::<Fraction>().map_err(|_| wrong())?.get();
    let on = q.route_on.clone().unwrap_or_else(|| r.system.chip.id.clone());
    let setting = Setting { model: model.trim().into(), on, chips: None, weights: None, ..q.setting.clone() };
    let small = resolve(catalog, &setting).map_err(|e| if e.given().is_some() { e } else { e.at("route") })?;
    let wanted = RatesRequest {
        degrees: DegreesRequest::default(),
        prefill_tok_s: None,
        decode_tok_s: None,
        batch: None,
        ..q.rates.answering(shape.output)
    };
    let card = rates_of(catalog, &setting, &small, &wanted, Some(&shape.requests()))?;
    let chips = small.system.n_chips;
    // A chip of the same kind costs the same; another what the catalogue says.
    let same = small.system.chip.id == r.system.chip.id;
    let rate = if same || !small.priced() { chip_hour } else { small.chip_price };
    let little = Side {
        fixed: rate.as_per_hour() * 24.0 * chips as f64,
        capacity: shape.full(&card, chips) / shape.crowd,
        each: 0.0,
    };
    let x = match q.requests_per_day {
        Some(x) => within("requests_per_day", x, 0.0, 1e15)?,
        // Where four machines are full, whole machines say little.
        None => own.capacity * 4.0,
    };
    let (large, light) = (x * (1.0 - share), x * share);
    let kept = if share < 1.0 { own.cost(large) } else { 0.0 };
    let (before, after) = (own.cost(x), kept + if share > 0.0 { little.cost(light) } else { 0.0 });
    let said = says(if after < before { "route_saves" } else { "route_costs" });
    let said = said.with("model", &small.model.name).with("share", share).with("requests", x);
    Ok(Routed {
        model: small.model.name.clone(),
        system: small.system.name.clone(),
        share,
        requests_per_day: x,
        before_usd_per_day: before,
        after_usd_per_day: after,
        machines: [own.units(x), if share < 1.0 { own.units(large) } else { 0.0 }, little.units(light)]
            .map(|n| n as u64),
        says: said.with("before", before).with("after", after).with("saved", (1.0 - after / before).abs()),
    })
}

fn figure(r: &Resolved, own: Side, side: Side, found: &[Crossing]) -> Figure {
    let last =
        found.last().map_or(own.capacity * 3.0, |c| (c.requests * 1.5).max(own.capacity * 2.0)).min(own.capacity * 8.0);
    let mut xs: Vec<f64> = (0..=120).map(|i| last * f64::from(i) / 120.0).collect();
    // Both ends of every step.
    for s in [own, side].into_iter().filter(|s| s.capacity.is_finite()) {
        let n = (last / s.capacity).floor().min(64.0) as u32;
        xs.extend((1..=n).flat_map(|i| [1.0 - 1e-9, 1.0 + 1e-9].map(|e| f64::from(i) * s.capacity * e)));
    }
    xs.extend(found.iter().map(|c| c.requests).filter(|x| *x <= last));
    xs.sort_by(f64::total_cmp);
    let line = |name: Remark, role, s: Side| Series::new(name, role, xs.iter().map(|x| (*x, s.cost(*x))));
    let marks = found
        .iter()
        .filter(|c| c.first && c.requests <= last)
        .map(|c| Mark::at(c.requests, own.cost(c.requests), says("own_cheaper_from").with("requests", c.requests)));
    let axes = (Axis::linear("requests a day", Unit::Count), Axis::linear("dollars a day", Unit::Usd));
    let lines = [line(says("own_machines"), Role::Envelope, own), line(says("the_provider"), Role::Kv, side)];
    Figure::of(r.titled("own_title"), says("own_conditions").with("day", own.fixed), axes, lines).marked(marks)
}
