//! Fits the constants of a kind of link, kernel by kernel, and checks what they say about rows they have not seen.
//!
//! The loss is the mean of |ln(predicted / measured)|, each row counting at most [`CAP`], so that a hiccup of the host does not
//! bend a constant. Constants are rounded to three digits before the residual is taken: it belongs to what is printed.
//! Not fitted: the limit above which an engine calls the library, and from how many nodes forwarding slows down. These are
//! read off the tables; the catalogue holds them.

use super::predict::{Machines, SCALE_OUT};
use super::rows::{Row, What};
use crate::simplex;
use crate::table::{self, Errors, Table};
use rackmath_spec::{AllReduceKernel, Copies, ExchangeKernel, Library, Network, Reach, Residual};
use rackmath_theory::network::{Collective, Launch, Phase};
use rackmath_units::{Bytes, Fraction, Seconds};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The most one row adds to the loss.
pub const CAP: f64 = 0.6;

/// Fitted constants by kind of link. Printed, they are the tables of a catalogue file.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// What was fitted, by kind: the catalogue's network with fitted tables in place of its own.
    pub networks: BTreeMap<String, Network>,
}

/// Fits everything the rows can tell.
pub fn all(rows: &[Row], machines: &Machines) -> Fitted {
    let mut machines = machines.clone();
    forget(&mut machines);
    let kinds: BTreeSet<String> = rows.iter().filter_map(|r| machines.kind(&r.system)).map(str::to_owned).collect();
    for kind in kinds {
        collectives(rows, &mut machines, &kind);
        exchanges(rows, &mut machines, &kind);
    }
    reaches(rows, &mut machines);
    Fitted { networks: machines.networks }
}

/// Fits on a part, predicts the rest.
pub fn transfer(rows: &[Row], machines: &Machines) -> Table {
    let mut table = Table::new(&["fitted on", "predicts", "rows"], &BTreeMap::new());
    let collective = |row: &&Row| matches!(row.what, What::Collective { .. });
    let systems: BTreeSet<&str> = rows.iter().filter(collective).map(|r| r.system.as_str()).collect();
    for from in &systems {
        for to in systems.iter().filter(|to| *to != from) {
            let (Some(a), Some(b)) = (machines.kind(from), machines.kind(to)) else { continue };
            let mut fitted = machines.clone();
            let seen: Vec<Row> = rows.iter().filter(|r| r.system == **from).cloned().collect();
            collectives(&seen, &mut fitted, a);
            let mut constants = fitted.networks[a].clone();
            // Whether switches add up is the data sheet's business, how well they do the fit's.
            if machines.networks[b].library.in_network.is_none() {
                constants.library.in_network = None;
            }
            fitted.networks.insert(b.to_owned(), constants);
            let unseen = || rows.iter().filter(collective).filter(|r| r.system == **to);
            let label = |what: &str| vec![(*from).to_owned(), (*to).to_owned(), what.to_owned()];
            let headline = unseen().filter(|r| super::is_long_gather_or_reduce(&r.what));
            table.push(label("all-reduce, all-gather from 16 KiB"), &distances(headline, &fitted));
            // What the data sheet's rate carries over, apart from floors that belong to host and clock.
            let large = |r: &&Row| matches!(r.what, What::Collective { bytes, .. } if bytes >= Bytes::mb(4.0));
            table.push(label("all collectives from 4 MB"), &distances(unseen().filter(large), &fitted));
            table.push(label("all collectives"), &distances(unseen(), &fitted));
        }
    }
    for (limit, beyond) in [(8, 16), (16, 64)] {
        let span = |r: &Row| machines.span(r).filter(|(ranks, per_node)| ranks <= per_node && *per_node > 8);
        ladder(&mut table, rows, machines, "ranks in one domain", &|r| span(r).map(|s| s.0), (limit, beyond));
    }
    for (limit, beyond) in [(2, 8), (4, 8)] {
        let span = |r: &Row| machines.span(r).filter(|(_, per_node)| *per_node == 8);
        ladder(&mut table, rows, machines, "nodes", &|r| span(r).map(|s| s.0.div_ceil(8)), (limit, beyond));
    }
    table
}

/// Fits exchanges up to a size and predicts those beyond.
fn ladder(
    table: &mut Table,
    rows: &[Row],
    machines: &Machines,
    unit: &str,
    size: &dyn Fn(&Row) -> Option<u64>,
    (limit, most): (u64, u64),
) {
    let within = |low: u64, high: u64| {
        rows.iter().filter(move |r| size(r).is_some_and(|n| n > low && n <= high)).cloned().collect::<Vec<Row>>()
    };
    let (seen, unseen) = (within(0, limit), within(limit, most));
    let mut fitted = machines.clone();
    forget(&mut fitted);
    // This one was read off the rows to be predicted.
    network(&mut fitted, SCALE_OUT).reach.values_mut().for_each(|r| r.full_rate_nodes = None);
    let kinds: BTreeSet<String> = seen.iter().filter_map(|r| machines.kind(&r.system)).map(str::to_owned).collect();
    for kind in kinds {
        exchanges(&seen, &mut fitted, &kind);
    }
    reaches(&seen, &mut fitted);
    for kernel in unseen.iter().map(|r| r.what.kernel()).collect::<BTreeSet<String>>() {
        let of = unseen.iter().filter(|r| r.what.kernel() == kernel);
        let label = |n: String| format!("{n} {unit}");
        let group = vec![label(format!("up to {limit}")), label(format!("up to {most}")), kernel.clone()];
        table.push(group, &distances(of, &fitted));
    }
}

/// Forgets the catalogue's evidence, so that what carries one afterwards was fitted here.
fn forget(machines: &mut Machines) {
    for network in machines.networks.values_mut() {
        network.library.evidence.fit = None;
        network.all_reduce.values_mut().for_each(|k| k.evidence.fit = None);
        for kernel in network.exchange.values_mut() {
            kernel.evidence.fit = None;
            kernel.loss_per_doubling = Fraction::ZERO;
        }
        network.reach.values_mut().for_each(|r| r.evidence.fit = None);
    }
}

fn collectives(rows: &[Row], machines: &mut Machines, kind: &str) {
    let of_kind = |m: &Machines, r: &Row| m.kind(&r.system) == Some(kind);
    let by = |m: &Machines, name: Option<&str>| -> Vec<Row> {
        let wanted = |r: &&Row| match &r.what {
            What::Collective { engine, .. } => engine.as_ref().map(|(e, _)| e.as_str()) == name,
            What::Exchange { .. } => false,
        };
        rows.iter().filter(|r| of_kind(m, r)).filter(wanted).cloned().collect()
    };
    let library = by(machines, None);
    let start = [8e-6, 1e-6, odds(0.75), odds(0.3), 1e7];
    let in_network = &mut network(machines, kind).library.in_network;
    // A guess, so that the catalogue's value does not steer the fit.
    *in_network = in_network.filter(|_| !library.is_empty()).map(|_| Fraction::new(0.6)).or(*in_network);
    let mut fit = solve(&library, machines, kind, &[start.to_vec()], |n, p| set_library(&mut n.library, p));
    if fit.is_some() && machines.networks[kind].library.in_network.is_some() {
        // Short messages take the ring; what the switch can do shows in the long ones.
        let long: Vec<Row> = library.iter().filter(|r| is_long_all_reduce(&r.what)).cloned().collect();
        solve(&long, machines, kind, &[vec![odds(0.6)]], |n, p| n.library.in_network = Some(share(p[0])));
        fit = solve(&library, machines, kind, &[start.to_vec()], |n, p| set_library(&mut n.library, p));
    }
    if fit.is_some() {
        network(machines, kind).library.evidence.fit = fit;
    }
    let engines: Vec<String> = machines.networks[kind].all_reduce.keys().cloned().collect();
    for engine in engines {
        let rows = by(machines, Some(&engine));
        let two_shot = machines.networks[kind].all_reduce[&engine].second.is_some();
        let is_eager = |r: &Row| matches!(r.what, What::Collective { engine: Some((_, Launch::Eager)), .. });
        let eager = rows.iter().any(is_eager);
        let mut start = vec![4e-6, 1e-7, odds(0.65)];
        start.extend(two_shot.then_some(4e-6));
        start.extend(eager.then_some([3e-5, 8e-6]).into_iter().flatten());
        let fit = solve(&rows, machines, kind, &[start], |n, p| {
            if let Some(kernel) = n.all_reduce.get_mut(&engine) {
                set_all_reduce(kernel, p, eager);
            }
        });
        if let (Some(fit), Some(kernel)) = (fit, network(machines, kind).all_reduce.get_mut(&engine)) {
            kernel.evidence.fit = Some(fit);
        }
    }
}

fn is_long_all_reduce(what: &What) -> bool {
    matches!(what, What::Collective { collective: Collective::AllReduce, bytes, .. } if *bytes > Bytes::mb(100.0))
}

fn exchanges(rows: &[Row], machines: &mut Machines, kind: &str) {
    let kernels: Vec<String> = machines.networks[kind].exchange.keys().cloned().collect();
    for name in kernels {
        let one_node = |m: &Machines, r: &Row| m.span(r).is_some_and(|(ranks, per_node)| ranks <= per_node);
        let of = |m: &Machines, r: &Row| m.kind(&r.system) == Some(kind) && r.what.kernel() == name;
        let rows: Vec<Row> = rows.iter().filter(|r| of(machines, r) && one_node(machines, r)).cloned().collect();
        let wide = rows.iter().any(|r| machines.span(r).is_some_and(|(ranks, _)| ranks > 8));
        // A floor is either added or hidden by a longer transfer; begin with one and with the other.
        let floors = [Phase::Dispatch, Phase::Combine].map(|phase| usual_floor(&rows, phase));
        let start = |added: f64, hidden: f64| {
            let mut start = vec![odds(0.7), 1e-9];
            start.extend(floors.iter().map(|t| t * added));
            start.extend(floors.iter().map(|t| t * hidden));
            start.extend(wide.then_some(odds(0.04)));
            start
        };
        let fit = solve(&rows, machines, kind, &[start(0.95, 0.5), start(0.6, 1.0)], |n, p| {
            if let Some(kernel) = n.exchange.get_mut(&name) {
                set_exchange(kernel, p);
            }
        });
        if let (Some(fit), Some(kernel)) = (fit, network(machines, kind).exchange.get_mut(&name)) {
            kernel.evidence.fit = Some(fit);
        }
    }
}

/// The median time of the smallest exchanges.
fn usual_floor(rows: &[Row], phase: Phase) -> f64 {
    let of = |r: &&Row| matches!(r.what, What::Exchange { phase: p, tokens, .. } if p == phase && tokens.get() <= 32.0);
    let times: Vec<f64> = rows.iter().filter(of).map(|r| r.measured.get()).collect();
    Errors::of(&times).map_or(2e-5, |times| times.median)
}

fn reaches(rows: &[Row], machines: &mut Machines) {
    for copies in [Copies::PerExpert, Copies::PerRank] {
        let leaves = |m: &Machines, r: &Row| {
            let kernel = m.kind(&r.system).and_then(|kind| m.networks[kind].exchange.get(&r.what.kernel()));
            kernel.is_some_and(|k| k.copies == copies) && m.span(r).is_some_and(|(ranks, per_node)| ranks > per_node)
        };
        let rows: Vec<Row> = rows.iter().filter(|r| leaves(machines, r)).cloned().collect();
        let start = [odds(0.9), odds(0.8), 1e-5, 1e-5, 1e-5, 1e-5];
        let fit = solve(&rows, machines, SCALE_OUT, &[start.to_vec()], |n, p| {
            if let Some(reach) = n.reach.get_mut(&copies) {
                set_reach(reach, p);
            }
        });
        if let (Some(fit), Some(reach)) = (fit, network(machines, SCALE_OUT).reach.get_mut(&copies)) {
            reach.evidence.fit = Some(fit);
        }
    }
}

fn set_library(library: &mut Library, p: &[f64]) {
    library.launch = Seconds::s(p[0]);
    library.hop = Seconds::s(p[1]);
    library.efficiency = share(p[2]);
    library.own = share(p[3]);
    library.half = Bytes::b(p[4]);
}

fn set_all_reduce(kernel: &mut AllReduceKernel, p: &[f64], eager: bool) {
    kernel.launch = Seconds::s(p[0]);
    kernel.peer = Seconds::s(p[1]);
    kernel.efficiency = share(p[2]);
    kernel.second = kernel.second.map(|_| Seconds::s(p[3]));
    if let (true, [.., launch, extra]) = (eager, p) {
        (kernel.eager_launch, kernel.eager_extra) = (Seconds::s(*launch), Seconds::s(*extra));
    }
}

fn set_exchange(kernel: &mut ExchangeKernel, p: &[f64]) {
    kernel.efficiency = share(p[0]);
    kernel.per_copy = Seconds::s(p[1]);
    (kernel.dispatch.start, kernel.combine.start) = (Seconds::s(p[2]), Seconds::s(p[3]));
    // A least time below the added floor never shows.
    let least = |least: f64, start: f64| if least > start { Seconds::s(least) } else { Seconds::ZERO };
    (kernel.dispatch.least, kernel.combine.least) = (least(p[4], p[2]), least(p[5], p[3]));
    kernel.loss_per_doubling = p.get(6).map_or(Fraction::ZERO, |x| share(*x));
}

fn set_reach(reach: &mut Reach, p: &[f64]) {
    (reach.efficiency, reach.overlap) = (share(p[0]), share(p[1]));
    (reach.dispatch.once, reach.combine.once) = (Seconds::s(p[2]), Seconds::s(p[3]));
    (reach.dispatch.per_doubling, reach.combine.per_doubling) = (Seconds::s(p[4]), Seconds::s(p[5]));
}

/// A share as odds, which the search may double without leaving the range.
fn odds(share: f64) -> f64 {
    share / (1.0 - share)
}

fn share(odds: f64) -> Fraction {
    Fraction::new((odds / (1.0 + odds) * 1e3).round() / 1e3)
}

/// Searches from each start, leaves the best constants in place and tells how far they are from the rows; nothing happens without rows.
fn solve(
    rows: &[Row],
    machines: &mut Machines,
    kind: &str,
    starts: &[Vec<f64>],
    set: impl Fn(&mut Network, &[f64]),
) -> Option<Residual> {
    if rows.is_empty() {
        return None;
    }
    let cell = RefCell::new(machines);
    let loss = |p: &[f64]| {
        set(network(&mut cell.borrow_mut(), kind), p);
        let machines = cell.borrow();
        let capped = rows.iter().map(|r| machines.distance(r).map_or(CAP, |d| d.min(CAP)));
        capped.sum::<f64>() / rows.len() as f64
    };
    let ends = starts.iter().map(|start| simplex::minimum(start, loss)).map(|end| (loss(&end), end));
    let best = ends.min_by(|a, b| a.0.total_cmp(&b.0))?.1;
    let best: Vec<f64> = best.into_iter().map(rounded).collect();
    let machines = cell.into_inner();
    set(network(machines, kind), &best);
    let errors = Errors::of(&distances(rows.iter(), machines))?;
    Some(Residual { rows: errors.n as u64, median: errors.median, p90: errors.p90 })
}

fn network<'a>(machines: &'a mut Machines, kind: &str) -> &'a mut Network {
    machines.networks.get_mut(kind).expect("every kind of link was looked up when the machines were")
}

fn distances<'a>(rows: impl Iterator<Item = &'a Row>, machines: &Machines) -> Vec<f64> {
    rows.filter_map(|r| machines.distance(r).ok()).collect()
}

/// Three significant digits; nothing below a tenth of a nanosecond or of a thousandth.
fn rounded(x: f64) -> f64 {
    if x < 1e-10 { 0.0 } else { table::rounded(x) }
}
