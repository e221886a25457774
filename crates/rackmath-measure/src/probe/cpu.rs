//! The processor: what it is, how fast its memory streams, how fast its units multiply.

mod host;
mod matmul;
mod pages;
mod peak;
mod stream;
mod team;

use super::{Deadline, Options};
use host::Machine;
use rackmath_spec::probe::{Missing, Processor};

pub fn probe(options: &Options, tell: &dyn Fn(&str)) -> Processor {
    let machine = Machine::found();
    let mut processor = machine.card();
    processor.instructions = peak::instructions();
    // One thread a core: the second one of a core has no units of its own.
    let teams = machine.teams();
    let deadline = Deadline::after(if options.quick { 6.0 } else { 18.0 });
    let late = |what: &str| Missing::new(what, "time was up");
    // All threads first: what they read together is what a roofline stands on, and time may run out before the rest.
    let (all, fewer) = teams.split_last().map_or((None, &[][..]), |(all, fewer)| (Some(all), fewer));
    for team in all.into_iter().chain(fewer) {
        tell(&format!("memory of the processor, {} threads", team.cpus.len()));
        for kernel in stream::KERNELS {
            if deadline.passed() {
                processor.not_measured.push(late(&format!("{} by {} threads", kernel.name, team.cpus.len())));
                continue;
            }
            match stream::rate(kernel, team, &processor, options.quick) {
                Ok(rate) => processor.bandwidth.push(rate),
                Err(missing) => processor.not_measured.push(missing),
            }
        }
    }
    processor.bandwidth.sort_by_key(|rate| rate.threads);
    let all = teams.last().cloned().unwrap_or_default();
    for math in ["fp32", "bf16", "int8"] {
        tell(&format!("multiply-adds in {math}"));
        match peak::rates(math, &teams, options.quick) {
            Ok(rates) => processor.peaks.extend(rates),
            Err(missing) => processor.not_measured.extend(missing),
        }
    }
    tell("a tiled product in fp32");
    match matmul::rate(&all, options.quick) {
        Ok(product) => processor.matmul = Some(product),
        Err(missing) => processor.not_measured.push(missing),
    }
    processor
}
