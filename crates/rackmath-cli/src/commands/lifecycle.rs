//! `rackmath scaling`, `lifecycle`, `goodput`, `forensics` and `reversible`.

use crate::args::Common;
use crate::args::lifecycle::{
    FigureArgs, ForensicsArgs, GoodputArgs, GoodputFigure, LawArgs, LifecycleArgs, MachineArgs, ReversibleArgs,
    ReversibleFigure, ScalingArgs, ScalingFigure,
};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::figure::Figure;
use rackmath::laws::{Law, Machine};
use rackmath::{Catalog, forensics, goodput, lifecycle, reversible, scaling};
use rackmath_report::{csv, png, scene, svg, text};
use rackmath_units::{DollarRate, Flop, FlopRate, Fraction, Params, Seconds, Tokens};
use std::time::Instant;

/// Saves a picture as asked; whether that is all there is to do.
pub(super) fn saved(common: &Common, a: &FigureArgs, figure: &Figure) -> Result<bool, Failure> {
    if let Some(path) = &a.svg {
        output::save(path, svg::paint(&scene(figure)).as_bytes())?;
    }
    if let Some(path) = &a.png {
        output::save(path, &png::paint(&scene(figure)))?;
    }
    if let Some(path) = &a.csv {
        output::save(path, csv::figure(figure).as_bytes())?;
    }
    Ok((a.svg.is_some() || a.png.is_some() || a.csv.is_some()) && !common.json)
}

fn no_picture() -> Failure {
    Failure::new("none of these laws has a picture").hint("name one with a loss, such as --law besiroglu-2024")
}

fn law(a: &LawArgs) -> Law {
    Law {
        law: a.law.clone(),
        sparsity: a.sparsity,
        granularity: a.granularity,
        router: a.router.clone(),
        unique_tokens: a.unique_tokens.map(Tokens::get),
        precision_worth: a.precision_worth,
    }
}

fn machine(a: &MachineArgs) -> Machine {
    Machine {
        on: a.on.clone(),
        price_usd_per_chip_hour: a.price.map(DollarRate::as_per_hour),
        train_mfu: a.train_mfu.get(),
        train_format: a.train_format.clone(),
        ..Machine::default()
    }
}

pub fn scaling(common: &Common, catalog: &Catalog, a: &ScalingArgs) -> Result<(), Failure> {
    let request = scaling::Request {
        law: law(&a.law),
        flop: a.flop.map(Flop::get),
        loss: a.loss,
        params: a.params.map(Params::get),
        tokens: a.tokens.map(Tokens::get),
        machine: machine(&a.machine),
    };
    let answer = scaling::answer(catalog, &request)?;
    let figure = match a.figure {
        ScalingFigure::IsoFlop => answer.iso_flop.as_ref(),
        ScalingFigure::IsoLoss => answer.iso_loss.as_ref(),
    };
    let wanted = a.save.svg.is_some() || a.save.png.is_some() || a.save.csv.is_some();
    if wanted && saved(common, &a.save, figure.ok_or_else(no_picture)?)? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::scaling(&answer, figure, style))
}

pub fn lifecycle(common: &Common, catalog: &Catalog, a: &LifecycleArgs) -> Result<(), Failure> {
    let request = lifecycle::Request {
        params: a.params.get(),
        rate_tokens_per_s: a.rate.get(),
        model_share: a.model_share.get(),
        lifetime_days: a.lifetime.get() / 86_400.0,
        served_tokens: a.served.map(Tokens::get),
        survives: a.survives.get(),
        rl_factor: a.rl_factor,
        rl: a.rl.as_deref().map(|text| rl(text, a)).transpose()?,
        eta: a.eta,
        split: a.split.clone(),
        loss: a.loss,
        failures: lifecycle::Failures {
            chip_mtbf_hours: a.chip_mtbf.map(|t| t.get() / 3600.0),
            chips: a.chips,
            stall_s: a.stall.get(),
            restart_s: a.restart.get(),
        },
        law: law(&a.law),
        machine: Machine {
            serve_format: a.serve.format.clone(),
            serve_on: a.serve.chip.clone(),
            serve_price_usd_per_chip_hour: a.serve.price.map(DollarRate::as_per_hour),
            ..machine(&a.machine)
        },
    };
    let answer = lifecycle::answer(catalog, &request)?;
    let wanted = a.save.svg.is_some() || a.save.png.is_some() || a.save.csv.is_some();
    if wanted && saved(common, &a.save, answer.figure.as_ref().ok_or_else(no_picture)?)? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::lifecycle(&answer, style))
}

/// "100M,16,8k,0.5" as prompts, group, tokens and pass rate.
fn rl(text: &str, a: &LifecycleArgs) -> Result<lifecycle::RlRequest, Failure> {
    let bad = || {
        Failure::new(format!("\"{text}\" does not describe RL"))
            .hint("write prompts, samples per prompt, tokens per sample and pass rate, such as 100M,16,8k,0.5")
    };
    let parts: Vec<f64> = text
        .split(',')
        .map(|t| t.trim().parse::<Tokens>().map(Tokens::get))
        .collect::<Result<_, _>>()
        .map_err(|_| bad())?;
    let [prompts, group, sample_tokens, pass_rate] = parts.as_slice() else { return Err(bad()) };
    Ok(lifecycle::RlRequest {
        prompts: *prompts,
        group: *group,
        sample_tokens: *sample_tokens,
        pass_rate: *pass_rate,
        epochs: a.rl_epochs,
        scoring_passes: a.rl_scoring,
    })
}

pub fn goodput(common: &Common, catalog: &Catalog, a: &GoodputArgs) -> Result<(), Failure> {
    let hours = |t: Option<Seconds>| t.map(|t| t.get() / 3600.0);
    let request = goodput::Request {
        run: Some(a.run.clone()),
        chips: a.chips,
        chip_mtbf_hours: hours(a.chip_mtbf),
        job_mtbf_hours: hours(a.job_mtbf),
        stall_s: a.stall.get(),
        restart_s: a.restart.get(),
        interval_s: a.interval.map(Seconds::get),
        work_days: a.work.get() / 86_400.0,
        params: a.params.map(Params::get),
        tokens: a.tokens.map(Tokens::get),
        on: a.on.clone(),
        mfu: a.mfu.map(Fraction::get),
        price_usd_per_chip_hour: a.price.map(DollarRate::as_per_hour),
        seed: a.seed,
    };
    let answer = goodput::answer(catalog, &request)?;
    let figure = match a.figure {
        GoodputFigure::Interval => &answer.over_interval,
        GoodputFigure::Chips => &answer.over_chips,
    };
    if saved(common, &a.save, figure)? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::goodput(&answer, figure, style))
}

pub fn forensics(common: &Common, catalog: &Catalog, a: &ForensicsArgs) -> Result<(), Failure> {
    type Read = fn(&str) -> Option<f64>;
    let number: Read = |t| t.parse().ok().map(Tokens::get);
    let share: Read = |t| t.parse().ok().map(Fraction::get);
    let known = |field: &str, text: &Option<String>, read: Read| -> Result<Option<forensics::Known>, Failure> {
        let Some(text) = text else { return Ok(None) };
        let (low, high) = rackmath_spec::rounded(text.trim(), read).ok_or_else(|| {
            Failure::new(format!("--{field} {text} is not a positive number"))
                .hint("write one such as 14.8T, or a range such as 10T..12T")
        })?;
        Ok(Some(forensics::Known { low, high }))
    };
    // What is counted or agreed is meant as written; what is measured is rounded.
    let exact = |field: &str, text: &Option<String>, read: Read| -> Result<Option<forensics::Known>, Failure> {
        let value = text.as_deref().filter(|t| !t.contains("..")).and_then(|t| read(t.trim()));
        Ok(known(field, text, read)?.map(|k| value.map_or(k, |x| forensics::Known { low: x, high: x })))
    };
    let request = forensics::Request {
        run: a.run.clone(),
        on: a.on.clone(),
        format: a.format.clone(),
        chip_hours: known("chip-hours", &a.chip_hours, number)?,
        chips: exact("chips", &a.chips, number)?,
        days: known("days", &a.days, number)?,
        params: known("params", &a.params, |t| t.parse().ok().map(Params::get))?,
        tokens: known("tokens", &a.tokens, number)?,
        flop: known("flop", &a.flop, |t| t.parse().ok().map(Flop::get))?,
        mfu: known("mfu", &a.mfu, share)?,
        peak_flop_per_s: exact("peak", &a.peak, |t| t.parse().ok().map(FlopRate::get))?,
        price_usd_per_chip_hour: exact("price", &a.price, number)?,
        usd: known("usd", &a.usd, number)?,
        flop_per_param: Some(a.flop_per_param),
    };
    let answer = forensics::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::forensics(&answer, style))
}

pub fn reversible(common: &Common, catalog: &mut Catalog, a: &ReversibleArgs) -> Result<(), Failure> {
    let request = reversible::Request {
        model: inputs::model(catalog, &a.model)?,
        tokens: a.tokens.get(),
        depth: a.depth,
        steps: a.steps,
        seed: a.seed,
    };
    let answer = reversible::answer(catalog, &request)?;
    let figure = match a.figure {
        ReversibleFigure::Memory => &answer.memory_figure,
        ReversibleFigure::Drift => &answer.drift_figure,
        ReversibleFigure::Avalanche => &answer.avalanche_figure,
    };
    if saved(common, &a.save, figure)? {
        return Ok(());
    }
    output::answer(common, &answer, |style| text::reversible(&answer, figure, style))?;
    if a.time && !common.json {
        let times: Vec<f64> = (0..answer.ways.len()).map(|way| median_step(&request, way)).collect();
        output::print(&text::reversible_times(&answer, &times, output::style(common)))?;
    }
    Ok(())
}

/// Median time of eleven steps: the only number here that differs from one run to the next.
fn median_step(request: &reversible::Request, way: usize) -> f64 {
    let mut times: Vec<f64> = (0..11)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(reversible::measured_step(request, way));
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[5]
}
