//! What a token costs to serve on a machine, in dollars, joules and grams, what a price leaves above it, and which
//! assumption matters most.

use crate::desk::prelude::*;
use crate::serving::{Draw, OwnerRequest, RateCard, RatesCard, RatesRequest, owner, rates};
use rackmath_theory::cost::{Serving, TokenCost, margin};
use rackmath_theory::lifetime::in_tier;

/// A model on a machine, how well it is used, and what is charged.
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
    /// Share of held chip time that serves.
    #[schemars(extend("x-flag" = "utilisation -u utilization", "x-unit" = "share"))]
    #[educe(Default = 0.5)]
    pub utilisation: f64,
    /// Share of input tokens found in the cache.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.5)]
    pub hit: f64,
    /// What reading a cached token costs; from `cache_tier` unless given.
    #[schemars(extend("x-flag" = "cached-cost"))]
    pub cached_usd_per_mtok: Option<f64>,
    /// Memory tier the cache is read from.
    #[educe(Default = "nvme-local")]
    pub cache_tier: String,
    /// How long a cached token is kept there between two uses.
    #[educe(Default = 300.0)]
    pub cache_hold_s: f64,
    /// Tokens accepted per step with speculation.
    #[educe(Default = 1.0)]
    pub accepted: f64,
    /// Extra work of drafting, as a share of a step.
    pub draft: f64,
    /// Input tokens for each output token.
    // 608 billion in and 168 billion out on DeepSeek's published day.
    #[educe(Default = 3.6)]
    pub input_per_output: f64,
    /// All-in power of a chip; the catalogue's unless given.
    pub power_w: Option<f64>,
    /// Power of the building over power of the machines; where given, the machine's own power counts and no figure that has the
    /// building in it.
    #[schemars(extend("x-none" = "1.2, or what is in the catalogue's power of a chip"))]
    pub pue: Option<f64>,
    /// Carbon of the electricity.
    pub carbon_g_per_kwh: Option<f64>,
    /// A price sheet to compare with.
    #[schemars(extend("x-file" = "price"))]
    pub sheet: Option<String>,
    /// Input price to compare with, instead of a sheet's.
    pub input_price_usd_per_mtok: Option<f64>,
    /// Output price to compare with, instead of a sheet's.
    pub output_price_usd_per_mtok: Option<f64>,
}

/// What tokens cost.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model.
    pub model: String,
    /// The machine.
    pub system: String,
    /// An hour of one chip.
    pub chip_usd_per_hour: f64,
    /// Share of the hours paid for that serve.
    pub utilisation: f64,
    /// Whose price that is, and from where.
    pub basis: Remark,
    /// Its parts, for an owner: name and dollars per hour.
    pub hour_parts: Vec<(String, f64)>,
    /// How fast a chip is, without speculation, and where that comes from.
    pub rates: RatesCard,
    /// Prompt tokens per second of one chip.
    pub prefill_tok_s: f64,
    /// Output tokens per second of one chip, speculation included.
    pub decode_tok_s: f64,
    /// Input that has to be computed.
    pub input_usd_per_mtok: f64,
    /// Input found in the cache.
    pub cached_usd_per_mtok: f64,
    /// Input on average.
    pub blended_input_usd_per_mtok: f64,
    /// Output.
    pub output_usd_per_mtok: f64,
    /// All tokens together, in the proportion asked for.
    pub all_usd_per_mtok: f64,
    /// Energy of an input token that has to be computed.
    pub input_j_per_token: f64,
    /// Energy of an output token.
    pub output_j_per_token: f64,
    /// Energy of a thousand output tokens.
    pub output_wh_per_ktok: f64,
    /// Carbon of a million output tokens, if the electricity's is given.
    pub output_g_per_mtok: Option<f64>,
    /// Prefill chips for each decode chip.
    pub prefill_per_decode_chip: f64,
    /// What prices leave above cost.
    pub margins: Vec<MarginCard>,
    /// One assumption at a time, most important first.
    pub tornado: Vec<BarCard>,
    /// Cost against utilisation.
    pub figure: Figure,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// What a price leaves above a cost.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MarginCard {
    /// Of what.
    pub what: Remark,
    /// The price.
    pub price_usd_per_mtok: f64,
    /// The cost.
    pub cost_usd_per_mtok: f64,
    /// Share of the price that is not cost.
    pub gross_margin: f64,
    /// Price over cost.
    pub markup: f64,
    /// Profit over cost, called "cost profit margin".
    pub cost_profit_margin: f64,
}

/// One bar of a tornado.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BarCard {
    /// The assumption.
    pub name: String,
    /// Its low and high end.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// Cost of all tokens at the low end.
    pub at_low_usd_per_mtok: f64,
    /// And at the high end.
    pub at_high_usd_per_mtok: f64,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let r = resolve(catalog, &request.setting)?;
    let rates = rates(catalog, &request.setting, &r, &request.rates)?;
    let (serving, basis, hour_parts, mut assumptions) = serving(catalog, &r, request, &rates)?;
    let ratio = within("input_per_output", request.input_per_output, 0.0, 1e6)?;
    let all = |s: &Serving| {
        let c = s.cost();
        (c.blended.as_per_mtok() * ratio + c.output.as_per_mtok()) / (1.0 + ratio)
    };
    let cost = serving.cost();
    let (prefill, decode) = serving.chip_hours(Tokens::new(1e6 * ratio), Tokens::new(1e6));
    assumptions.push(says("taxes_left_out"));
    Ok(Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        chip_usd_per_hour: serving.chip_hour.as_per_hour(),
        utilisation: serving.utilisation.get(),
        basis,
        hour_parts,
        tornado: bars(&r, &serving, &rates, all),
        rates,
        prefill_tok_s: serving.rates.prefill.get(),
        decode_tok_s: serving.decode().get(),
        input_usd_per_mtok: cost.input.as_per_mtok(),
        cached_usd_per_mtok: cost.cached.as_per_mtok(),
        blended_input_usd_per_mtok: cost.blended.as_per_mtok(),
        output_usd_per_mtok: cost.output.as_per_mtok(),
        all_usd_per_mtok: all(&serving),
        input_j_per_token: cost.input_energy.get(),
        output_j_per_token: cost.output_energy.get(),
        output_wh_per_ktok: cost.output_energy.get() * 1e3 / 3600.0,
        output_g_per_mtok: carbon(request, cost.output_energy.get())?,
        prefill_per_decode_chip: prefill / decode,
        margins: margins(catalog, request, &cost)?,
        figure: figure(&r, &serving),
        assumptions,
    })
}

fn carbon(request: &Request, joules: f64) -> Result<Option<f64>, Error> {
    let Some(g) = request.carbon_g_per_kwh else { return Ok(None) };
    refuse_if(!(g.is_finite() && (0.0..=5000.0).contains(&g)), "carbon_g_per_kwh", g, "0 to 5,000 grams per kWh")?;
    Ok(Some(joules * 1e6 / 3.6e6 * g))
}

type Parts = Vec<(String, f64)>;

fn serving(
    catalog: &Catalog,
    r: &Resolved,
    q: &Request,
    rates: &RatesCard,
) -> Result<(Serving, Remark, Parts, Vec<Remark>), Error> {
    let mut words = vec![rates.prefill.words.clone(), rates.decode.words.clone()];
    words.extend(rates.supported.iter().cloned());
    let share = |field: &'static str, value: f64, low: f64| {
        let share = Fraction::checked(value).filter(|f| f.get() >= low);
        share.ok_or_else(|| Error::value(field, value, format!("a share from {low} to 1")))
    };
    let (chip_hour, basis, parts) = match &q.owner {
        Some(wanted) => {
            let (_, hour, more) = owner(r, wanted, (q.power_w, q.pue))?;
            words.extend(more);
            let names = ["capital", "energy", "colocation", "staff", "downtime"].map(str::to_owned);
            let rates = [hour.capital, hour.energy, hour.colo, hour.staff, hour.downtime].map(DollarRate::as_per_hour);
            let parts = names.into_iter().zip(rates).collect();
            (hour.total(), says("owner_computed"), parts)
        }
        None if r.priced() => (r.chip_price, r.price_source.remark(), Vec::new()),
        None => return Err(no_price(&r.system.chip, "usual", "{owner} with {capex}")),
    };
    let read = if let Some(usd) = q.cached_usd_per_mtok {
        DollarsPerToken::per_mtok(within("cached_usd_per_mtok", usd, 0.0, 1000.0)?)
    } else {
        let tier = catalog.tier(&q.cache_tier)?;
        let line = in_tier(r.cache.stored_per_token(), &tier)
            .ok_or_else(|| Error::value("cache_tier", &q.cache_tier, "a tier with a price, or cached_usd_per_mtok"))?;
        let hold = Seconds::s(within("cache_hold_s", q.cache_hold_s, 0.0, 1e9)?);
        words.push(says("cached_token").with("hold", hold).with("tier", &tier.name));
        line.cost(hold)
    };
    let draw = Draw::of(r, q.power_w, q.pue)?;
    let utilisation = share("utilisation", q.utilisation, 0.001)?;
    words.extend((utilisation < Fraction::ONE).then(|| says("held_idle").with("share", utilisation)));
    words.push(draw.said("power_drawn"));
    let serving = Serving {
        chip_hour,
        rates: rates.rates(),
        utilisation,
        hit: share("hit", q.hit, 0.0)?,
        read,
        accepted: within("accepted", q.accepted, 1.0, 100.0)?,
        draft: within("draft", q.draft, 0.0, 100.0)?,
        power: draw.fed(),
    };
    Ok((serving, basis, parts, words))
}

fn margins(catalog: &Catalog, q: &Request, cost: &TokenCost) -> Result<Vec<MarginCard>, Error> {
    let mut prices = Vec::new();
    if let Some(name) = &q.sheet {
        let sheet = catalog.price(name)?;
        let list = sheet.at(sheet.as_of)?;
        prices.push((says("input_of").with("sheet", &sheet.name), list.input, cost.input));
        if let Some(offer) = list.caches.first() {
            prices.push((says("cached_input_of").with("sheet", &sheet.name), offer.read, cost.cached));
        }
        prices.push((says("output_of").with("sheet", &sheet.name), list.output, cost.output));
    }
    let given = |usd: f64| {
        let price = DollarsPerToken::checked(usd * 1e-6).filter(|p| p.get() > 0.0);
        price.ok_or_else(|| Error::value("price", usd, "dollars per million tokens, above 0"))
    };
    if let Some(usd) = q.input_price_usd_per_mtok {
        prices.push((says("input_price"), given(usd)?, cost.input));
    }
    if let Some(usd) = q.output_price_usd_per_mtok {
        prices.push((says("output_price"), given(usd)?, cost.output));
    }
    let cards = prices.into_iter().filter(|(_, _, cost)| cost.get() > 0.0).map(|(what, price, cost)| {
        let m = margin(price.get(), cost.get());
        MarginCard {
            what,
            price_usd_per_mtok: price.as_per_mtok(),
            cost_usd_per_mtok: cost.as_per_mtok(),
            gross_margin: m.gross,
            markup: m.markup,
            cost_profit_margin: m.cost_profit,
        }
    });
    Ok(cards.collect())
}

type Set = fn(&mut Serving, f64);

/// Each assumption between two ends; the chip's hour between the cheapest and dearest price known for it, a predicted rate
/// between the ends of its interval.
fn bars(r: &Resolved, s: &Serving, rates: &RatesCard, all: impl Fn(&Serving) -> f64) -> Vec<BarCard> {
    let hour = s.chip_hour.as_per_hour();
    let known = r.system.chip.prices.iter().flat_map(|p| {
        let (low, high) = p.range().unwrap_or((p.value, p.value));
        [low.as_per_hour(), high.as_per_hour()]
    });
    let (low, high) = known.fold((hour, hour), |(l, h), p| (l.min(p), h.max(p)));
    let (low, high) = if low < high { (low, high) } else { (hour * 0.7, hour * 1.3) };
    let around = |x: f64, d: f64, floor: f64| ((x - d).max(floor), (x + d).min(1.0));
    let c = s.read.as_per_mtok();
    let ends = |card: &RateCard| match &card.tok_s {
        v if v.low < v.high => (v.low, v.high),
        v => (v.value / 1.5, v.value * 1.5),
    };
    let inputs: [(&str, (f64, f64), Set); 7] = [
        ("$ per chip-hour", (low, high), |s, x| s.chip_hour = DollarRate::per_hour(x)),
        ("prefill tok/s per chip", ends(&rates.prefill), |s, x| s.rates.prefill = TokenRate::per_s(x)),
        ("decode tok/s per chip", ends(&rates.decode), |s, x| s.rates.decode = TokenRate::per_s(x)),
        ("utilisation", around(s.utilisation.get(), 0.2, 0.05), |s, x| s.utilisation = Fraction::new(x)),
        ("cache hit rate", around(s.hit.get(), 0.2, 0.0), |s, x| s.hit = Fraction::new(x)),
        ("tokens accepted per step", (1.0, s.accepted.max(2.5)), |s, x| s.accepted = x),
        ("$ per Mtok read from cache", (c / 3.0, c * 3.0), |s, x| s.read = DollarsPerToken::per_mtok(x)),
    ];
    let mut bars = inputs.map(|(name, (low, high), set)| {
        let [at_low_usd_per_mtok, at_high_usd_per_mtok] = [low, high].map(|x| {
            let mut moved = *s;
            set(&mut moved, x);
            all(&moved)
        });
        BarCard { name: name.into(), low, high, at_low_usd_per_mtok, at_high_usd_per_mtok }
    });
    let swing = |b: &BarCard| (b.at_high_usd_per_mtok - b.at_low_usd_per_mtok).abs();
    bars.sort_by(|a, b| swing(b).total_cmp(&swing(a)));
    bars.into()
}

fn figure(r: &Resolved, s: &Serving) -> Figure {
    let line = |name: &str, role: Role, of: fn(&TokenCost) -> DollarsPerToken| {
        let at = |u: f64| of(&Serving { utilisation: Fraction::new(u), ..*s }.cost()).as_per_mtok();
        let points = (5..=100).map(|i| f64::from(i) / 100.0).map(|u| (u, at(u)));
        Series::new(name, role, points.filter(|p| p.1 > 0.0))
    };
    let x = Axis::linear("share of held chip time that serves", Unit::Number);
    let axes = (x, Axis::log("dollars per million tokens", Unit::UsdPerMtok));
    let series = [
        line("output", Role::Envelope, |c| c.output),
        line("input, computed", Role::Compute, |c| c.input),
        line("input, with hits", Role::Kv, |c| c.blended),
    ];
    Figure::of(r.titled("cost_over_use"), says("a_chip_and_hour").with("price", s.chip_hour), axes, series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        let catalog = rackmath_catalog::embedded();
        let slow = RatesRequest { decode_tok_s: Some(-3.0), ..RatesRequest::default() };
        for (bad, word) in [
            (Request { utilisation: 0.0, ..Request::default() }, "utilisation"),
            (Request { hit: 1.5, ..Request::default() }, "hit"),
            (Request { accepted: 0.5, ..Request::default() }, "accepted"),
            (Request { carbon_g_per_kwh: Some(-1.0), ..Request::default() }, "carbon"),
            (Request { cache_tier: "nvme-locl".into(), ..Request::default() }, "nvme-local"),
            (Request { rates: slow, ..Request::default() }, "decode_tok_s"),
            (Request { input_per_output: f64::NAN, ..Request::default() }, "input_per_output"),
        ] {
            let error = answer(&catalog, &bad).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_building_is_counted_once() {
        // 1.73 kW of an H100 is what the building is fed; 2.9 kW of a Rubin is the rack's, its cooling comes on top.
        let energy = |on: &str, pue: Option<f64>, power_w: Option<f64>| {
            let setting = Setting { model: "llama-3.1-70b".into(), on: on.into(), ..Setting::default() };
            let setting = Setting { price_usd_per_chip_hour: Some(2.1), ..setting };
            let a = answer(&rackmath_catalog::embedded(), &Request { setting, power_w, pue, ..Request::default() });
            let a = a.unwrap();
            a.output_j_per_token * a.decode_tok_s * a.utilisation
        };
        assert!((energy("8xh100", None, None) / 1730.0 - 1.0).abs() < 1e-9);
        assert!((energy("8xh100", None, Some(1000.0)) / 1200.0 - 1.0).abs() < 1e-9);
        // A factor that is given is not lost on a figure that has one in it: 10.2 kW of the box, an eighth for each chip.
        assert!((energy("hgx-h100", Some(1.5), None) / (1.5 * 10_200.0 / 8.0) - 1.0).abs() < 1e-9);
        assert!((energy("8xvr200", None, None) / (1.2 * 2900.0) - 1.0).abs() < 1e-9);
    }
}
