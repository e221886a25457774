//! `rackmath price`, `cost`, `fleet`, `cache` and `fastmode`

use super::setting;
use crate::args::{
    CacheArgs, CacheFigure, Common, CostArgs, FastmodeArgs, FleetArgs, OwnerArgs, PictureArgs, PriceArgs, RatesArgs,
};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::figure::Figure;
use rackmath::layout::DegreesRequest;
use rackmath::serving::{OwnerRequest, RatesRequest};
use rackmath::{Catalog, cache, cost, fastmode, fleet, price};
use rackmath_report::{png, scene, svg, text};
use rackmath_units::{Dollars, DollarsPerToken, Fraction, Seconds, TokenRate, Tokens, Watts};

/// Saves the picture where asked; whether that was all that was asked.
fn saved(common: &Common, a: &PictureArgs, figure: Option<&Figure>) -> Result<bool, Failure> {
    if a.svg.is_none() && a.png.is_none() {
        return Ok(false);
    }
    let figure = figure.ok_or_else(|| {
        Failure::new("there is no picture for this question")
            .hint("ask for one sheet with --uses or --turns, or for a trace")
    })?;
    if let Some(path) = &a.svg {
        output::save(path, svg::paint(&scene(figure)).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene(figure)))?;
    }
    Ok(!common.json)
}

fn rates(a: &RatesArgs) -> RatesRequest {
    RatesRequest {
        prefill_tok_s: a.prefill_tok_s.map(TokenRate::get),
        decode_tok_s: a.decode_tok_s.map(TokenRate::get),
        rates: a.rates.clone(),
        engine: a.engine.clone(),
        degrees: DegreesRequest { tp: a.tp, pp: a.pp, dp: a.dp, ep: a.ep, ..DegreesRequest::default() },
        prefill_efficiency: a.prefill_efficiency.map(Fraction::get),
        decode_efficiency: a.decode_efficiency.map(Fraction::get),
        tpot_ms: a.tpot.get() * 1e3,
        batch: a.batch.map(Tokens::get),
        context: a.context.get(),
        prompt: a.prompt.get(),
    }
}

fn owner(a: &OwnerArgs) -> Option<OwnerRequest> {
    a.owner.then(|| OwnerRequest {
        capex_usd: a.capex.map(Dollars::get),
        years: a.years,
        capital: a.capital.get(),
        power_w: a.power.map(Watts::get),
        pue: a.pue,
        energy_usd_per_kwh: a.energy,
        colo_usd_per_hour: a.colo.as_per_hour(),
        staff_usd_per_hour: a.staff.as_per_hour(),
        availability: a.availability.get(),
    })
}

pub fn price(common: &Common, catalog: &mut Catalog, a: &PriceArgs) -> Result<(), Failure> {
    let sheets = a.names.iter().map(|n| inputs::price(catalog, n)).collect::<Result<_, _>>()?;
    let against = a.against.as_deref().map(|n| inputs::price(catalog, n)).transpose()?;
    let workload = match (a.turns, &a.trace, a.input) {
        (Some(turns), ..) => Some(price::Workload::Conversation {
            system: a.instructions.get(),
            user: a.user.get(),
            answer: a.answer.get(),
            turns,
            gap_s: a.gap.get(),
        }),
        (None, Some(path), _) => {
            Some(price::Workload::Trace { name: path.display().to_string(), text: inputs::trace(path)? })
        }
        (None, None, Some(input)) => Some(match a.uses {
            Some(uses) => price::Workload::Pattern {
                prefix: input.get(),
                suffix: a.suffix.get(),
                output: a.output.get(),
                uses,
                gap_s: a.gap.get(),
            },
            None => price::Workload::Request {
                input: input.get(),
                output: a.output.get(),
                cached: a.cached.get(),
                written: a.written.get(),
                offer: a.offer.clone(),
            },
        }),
        (None, None, None) => None,
    };
    let request = price::Request {
        sheets,
        as_of: a.as_of.clone(),
        at: a.at.clone(),
        mode: Some(a.mode.clone()),
        against,
        workload,
    };
    let answer = price::answer(catalog, &request)?;
    if saved(common, &a.picture, answer.figure.as_ref())? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::price(&answer, style))
}

pub fn cost(common: &Common, catalog: &mut Catalog, a: &CostArgs) -> Result<(), Failure> {
    let request = cost::Request {
        setting: setting(catalog, &a.setting)?,
        rates: rates(&a.rates),
        owner: owner(&a.owner),
        utilisation: a.utilisation.get(),
        hit: a.hit.get(),
        cached_usd_per_mtok: a.cached_cost.map(DollarsPerToken::as_per_mtok),
        cache_tier: a.cache_tier.clone(),
        cache_hold_s: a.cache_hold.get(),
        accepted: a.accepted,
        draft: a.draft,
        input_per_output: a.input_per_output,
        power_w: a.owner.power.map(Watts::get),
        pue: a.owner.pue,
        carbon_g_per_kwh: a.carbon,
        sheet: a.sheet.as_deref().map(|n| inputs::price(catalog, n)).transpose()?,
        input_price_usd_per_mtok: a.input_price.map(DollarsPerToken::as_per_mtok),
        output_price_usd_per_mtok: a.output_price.map(DollarsPerToken::as_per_mtok),
    };
    let answer = cost::answer(catalog, &request)?;
    if saved(common, &a.picture, Some(&answer.figure))? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::cost(&answer, style))
}

pub fn fleet(common: &Common, catalog: &mut Catalog, a: &FleetArgs) -> Result<(), Failure> {
    let usual = fleet::Request::default();
    let request = fleet::Request {
        setting: setting(catalog, &a.setting)?,
        rates: rates(&a.rates),
        input_tok_s: a.input_tok_s.map(TokenRate::get),
        output_tok_s: a.output_tok_s.map(TokenRate::get),
        requests_s: a.requests_s,
        answer: a.answer.get(),
        tokens_per_month: a.tokens_per_month.map(Tokens::get),
        input_per_output: a.input_per_output,
        hit: a.hit.get(),
        curve: a.curve.clone(),
        peak: a.peak.unwrap_or(usual.peak),
        target: a.target.get(),
        prefill_chips: a.prefill_chips,
        decode_chips: a.decode_chips,
        world_tok_s: a.world_tok_s.map(TokenRate::get),
        pue: a.pue,
    };
    let answer = fleet::answer(catalog, &request)?;
    if saved(common, &a.picture, Some(&answer.figure))? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::fleet(&answer, style))
}

pub fn cache(common: &Common, catalog: &mut Catalog, a: &CacheArgs) -> Result<(), Failure> {
    let trace_text = a.trace.as_deref().map(inputs::trace).transpose()?;
    let wanted = trace_text.is_some() || !a.gaps.is_empty();
    let request = cache::Request {
        setting: setting(catalog, &a.setting)?,
        rates: rates(&a.rates),
        tiers: a.tiers.clone(),
        durations_s: a.durations.iter().copied().map(Seconds::get).collect(),
        reuse: wanted.then(|| cache::ReuseRequest {
            trace_name: a.trace.as_ref().map_or_else(String::new, |p| p.display().to_string()),
            trace_text,
            gaps: a.gaps.clone(),
        }),
    };
    let answer = cache::answer(catalog, &request)?;
    let figure = if a.figure == CacheFigure::Hits { answer.hit_figure.as_ref() } else { Some(&answer.figure) };
    if saved(common, &a.picture, figure)? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::cache(&answer, style))
}

pub fn fastmode(common: &Common, catalog: &mut Catalog, a: &FastmodeArgs) -> Result<(), Failure> {
    let sheet = a.sheet.as_deref().map(|n| inputs::price(catalog, n)).transpose()?;
    let answer = fastmode::answer(catalog, &fastmode::Request { price: a.price, speed: a.speed, sheet })?;
    if saved(common, &a.picture, Some(&answer.figure))? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::fastmode(&answer, style))
}
