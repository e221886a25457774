//! `rackmath probe`: this machine measured, shown, and saved as a chip that `--on` takes.

use crate::inputs;
use crate::menu::{path, switch};
use crate::output::{Output, print, save, tell};
use clap::{Arg, ArgAction, ArgMatches};
use rackmath::{Catalog, Error, ask};
use rackmath_measure::probe::{self, Options, Probe};
use rackmath_report::reply::Detail;
use rackmath_report::{png, scene, svg, text};
use rackmath_spec::Chip;
use rackmath_spec::probe::{Above, Device, Known};
use std::path::PathBuf;
use std::sync::Arc;

pub fn arguments() -> [Arg; 6] {
    [
        switch("quick", "Fewer sizes and repeats: about fifteen seconds"),
        switch("processor", "Only the processor, no accelerators"),
        path("cuda-libs", "DIR", "Look for libraries of accelerators in this folder first (RACKMATH_CUDA_LIBS)")
            .action(ArgAction::Append),
        path("save", "FILE", "Save what was measured as a chip file that --on takes"),
        path("svg", "FILE", "Save the roofline as SVG (- writes to standard output)"),
        path("png", "FILE", "Save the roofline as PNG"),
    ]
}

pub fn run(catalog: Catalog, given: &ArgMatches, output: &Output) -> Result<(), Error> {
    let file = |name: &str| given.get_one::<PathBuf>(name);
    let options = Options {
        quick: given.get_flag("quick"),
        processor_only: given.get_flag("processor"),
        libraries: given.get_many::<PathBuf>("cuda-libs").map_or_else(Vec::new, |all| all.cloned().collect()),
        date: inputs::today().map_or_else(|| "unknown day".to_owned(), |day| day.to_string()),
        tool: format!("rackmath {}", env!("CARGO_PKG_VERSION")),
    };
    let quiet = output.detail == Detail::Verdict;
    let begun = |what: &str| {
        if !quiet {
            tell(format_args!("measuring {}", what.trim()));
        }
    };
    let probe = probe::run(&options, &begun);
    let above = above(&catalog, &probe);
    let picture = || text::roofline(&probe).ok_or_else(|| Error::said("too little was measured for a roofline"));
    if let Some(path) = file("svg") {
        save(path, svg::paint(&scene(&picture()?)).as_bytes())?;
    }
    if let Some(path) = file("png") {
        save(path, &png::paint(&scene(&picture()?)))?;
    }
    if output.json {
        print(&ask::versioned(&probe)?)?;
    } else {
        print(&text::probe(&probe, &above, output.detail, output.style))?;
    }
    if let Some(over) = above.first() {
        let share = over.measured / over.sheet * 100.0;
        return Err(Error::said(format!("{} came out at {share:.0} % of the data sheet's peak", over.what)).hint(
            "a cache served it, or something else was counted; nothing was saved. Probe again on a quiet machine",
        ));
    }
    if let Some(path) = file("save") {
        let device = probe.devices.iter().find(|d| d.read_rate().is_some());
        let chip = device.and_then(|d| sheet(&catalog, d));
        save(path, probe.chip_file(Known { chip: chip.as_deref() })?.as_bytes())?;
    }
    Ok(())
}

/// The catalogue's chip that a device is, by its name and its memory.
fn sheet(catalog: &Catalog, device: &Device) -> Option<Arc<Chip>> {
    let slug = device.name.to_ascii_lowercase().replace([' ', '_'], "-");
    let bare =
        ["nvidia-", "amd-", "instinct-", "geforce-"].iter().fold(slug.as_str(), |s, p| s.strip_prefix(p).unwrap_or(s));
    let parts = bare.match_indices('-').map(|(at, _)| &bare[..at]).rev();
    // A driver keeps a part of the memory, and sheets write GB for GiB.
    let same = |chip: &Arc<Chip>| (0.85..1.15).contains(&(device.memory_bytes / chip.memory.size().get()));
    [slug.as_str(), bare].into_iter().chain(parts).filter_map(|name| catalog.chip(name).ok()).find(same)
}

/// Figures beyond what a data sheet allows.
fn above(catalog: &Catalog, probe: &Probe) -> Vec<Above> {
    let of = |device: &Device| sheet(catalog, device).map_or_else(Vec::new, |chip| device.above(&chip));
    probe.devices.iter().flat_map(of).collect()
}
