//! One module per question: from what was typed to a request, from the answer to a page.

mod catalogue;
mod curve;
mod deduce;
mod economics;
mod estimate;
mod explain;
mod handover;
mod headline;
mod layout;
mod lifecycle;
mod pipeline;
mod plan;
mod practice;
mod rows;
mod schema;
mod shard;
mod station;
mod step;
mod trace;
mod validate;
mod web;

pub use validate::ValidateArgs;
mod compare;
mod hardware;
mod outlook;
mod planfile;
mod train;
mod whatif;

use crate::args::{Args, Command, SettingArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use clap::CommandFactory;
use rackmath::Catalog;
use rackmath::setting::Setting;

/// Runs what was typed.
pub fn run(args: &Args) -> Result<(), Failure> {
    let common = &args.common;
    let mut catalog = inputs::catalog(common.catalog.as_deref())?;
    match &args.command {
        None => headline::run(common, &catalog),
        Some(Command::Step(a)) => step::run(common, &mut catalog, a),
        Some(Command::Curve(a)) => curve::run(common, &mut catalog, a),
        Some(Command::Explain(a)) => explain::run(common, &mut catalog, a),
        Some(Command::Models(a)) => catalogue::models(common, &mut catalog, a),
        Some(Command::Chips(a)) => catalogue::chips(common, &catalog, a),
        Some(Command::Systems(a)) => catalogue::systems(common, &catalog, a),
        Some(Command::Lecture { claim }) => catalogue::lecture(common, &catalog, claim.as_deref()),
        Some(Command::Memory(a)) => layout::run(common, &mut catalog, a, layout::View::Memory),
        Some(Command::Layout(a)) => layout::run(common, &mut catalog, a, layout::View::Layout),
        Some(Command::Traffic(a)) => layout::run(common, &mut catalog, a, layout::View::Traffic),
        Some(Command::Pipeline(a)) => pipeline::run(common, a),
        Some(Command::Racks(a)) => layout::racks(common, &mut catalog, a),
        Some(Command::Station(a)) => station::run(common, a),
        Some(Command::Estimate(a)) => estimate::run(common, &mut catalog, a),
        Some(Command::Validate(a)) => validate::run(common, &catalog, a),
        Some(Command::Price(a)) => economics::price(common, &mut catalog, a),
        Some(Command::Cost(a)) => economics::cost(common, &mut catalog, a),
        Some(Command::Fleet(a)) => economics::fleet(common, &mut catalog, a),
        Some(Command::Cache(a)) => economics::cache(common, &mut catalog, a),
        Some(Command::Fastmode(a)) => economics::fastmode(common, &mut catalog, a),
        Some(Command::Scaling(a)) => lifecycle::scaling(common, &catalog, a),
        Some(Command::Lifecycle(a)) => lifecycle::lifecycle(common, &catalog, a),
        Some(Command::Goodput(a)) => lifecycle::goodput(common, &catalog, a),
        Some(Command::Forensics(a)) => lifecycle::forensics(common, &catalog, a),
        Some(Command::Reversible(a)) => lifecycle::reversible(common, &mut catalog, a),
        Some(Command::Train(a)) => train::run(common, &mut catalog, a),
        Some(Command::Mfu(a)) => train::mfu(common, &mut catalog, a),
        Some(Command::Deduce(a)) => deduce::run(common, &mut catalog, a),
        Some(Command::Plan(a)) => planfile::run(common, &mut catalog, a),
        Some(Command::Whatif(a)) => whatif::run(common, &mut catalog, a),
        Some(Command::Compare(a)) => compare::run(common, &mut catalog, a),
        Some(Command::Frontier(a)) => compare::frontier(common, &mut catalog, a),
        Some(Command::Hardware(a)) => hardware::run(common, &mut catalog, a),
        Some(Command::Outlook(a)) => outlook::run(common, &mut catalog, a),
        Some(Command::Practice(a)) => practice::run(common, &catalog, a),
        Some(Command::Trace(a)) => trace::run(common, &catalog, a),
        Some(Command::Merge(a)) => shard::joined(common, &mut catalog, a),
        Some(Command::Schema { question }) => schema::run(*question),
        Some(Command::Ask { question, request }) => schema::ask(&catalog, *question, request),
        Some(Command::Web(a)) => web::run(catalog, a),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "rackmath", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}

/// The setting as typed, with files read into the catalogue.
fn setting(catalog: &mut Catalog, a: &SettingArgs) -> Result<Setting, Failure> {
    Ok(Setting {
        model: inputs::model(catalog, &a.model)?,
        on: inputs::machine(catalog, &a.on)?,
        chips: a.chips,
        weights: a.quantization.clone(),
        kv: a.kv_cache_dtype.clone(),
        math: a.compute_dtype.clone(),
        counting: a.counting.clone(),
        overlap: a.overlap.clone(),
        price_usd_per_chip_hour: a.price.map(rackmath_units::DollarRate::as_per_hour),
        basis: a.basis.clone(),
    })
}
