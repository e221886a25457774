//! Fits the constants of a kind of link, kernel by kernel, and checks what they say about rows they have not seen.
//!
//! The loss is the mean of |ln(predicted / measured)|, each row counting at most [`CAP`], so that a hiccup of the host does not
//! bend a constant. Constants are rounded to three digits before the residual is taken: it belongs to what is printed.
//! Not fitted: the limit above which an engine calls the library, and from how many nodes forwarding slows down. These are
//! read off the tables; the catalogue holds them.

use super::{Machines, Row, What};
use crate::search;
use crate::table::{self, Errors, Table, fit_line};
use rackmath_spec::{
    AllReduceKernel, Copies, Evidence, ExchangeKernel, Floor, Leaving, Library, Network, Reach, Span, Tree,
};
use rackmath_theory::network::{Collective, Launch, Phase};
use rackmath_units::{Bytes, Fraction, Seconds};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The most one row adds to the loss.
const CAP: f64 = 0.6;

/// Fits everything the rows can tell: the catalogue's networks by kind, with fitted tables in place of their own.
pub fn all(rows: &[Row], machines: &Machines) -> BTreeMap<String, Network> {
    let mut machines = machines.clone();
    forget(&mut machines);
    for kind in kinds(rows, &machines) {
        collectives(rows, &mut machines, &kind);
        exchanges(rows, &mut machines, &kind);
    }
    reaches(rows, &mut machines);
    machines.networks
}

fn kinds(rows: &[Row], machines: &Machines) -> BTreeSet<String> {
    rows.iter().filter_map(|r| machines.kind(&r.system)).map(str::to_owned).collect()
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
            let headline = unseen().filter(|r| super::is_long_gather_or_reduce(&r.what));
            table.push([*from, *to, "all-reduce, all-gather from 16 KiB"], distances(headline, &fitted));
            // What the data sheet's rate carries over, apart from floors that belong to host and clock.
            let large = |r: &&Row| matches!(r.what, What::Collective { bytes, .. } if bytes >= Bytes::mb(4.0));
            table.push([*from, *to, "all collectives from 4 MB"], distances(unseen().filter(large), &fitted));
            table.push([*from, *to, "all collectives"], distances(unseen(), &fitted));
        }
    }
    let in_domain = |r: &Row| machines.span(r).filter(|(n, per_node)| n <= per_node && *per_node > 8).map(|s| s.0);
    let nodes = |r: &Row| machines.span(r).filter(|(_, per_node)| *per_node == 8).map(|s| s.0.div_ceil(8));
    for ends in [(8, 16), (16, 64)] {
        ladder(&mut table, rows, machines, "ranks in one domain", &in_domain, ends);
    }
    for ends in [(2, 8), (4, 8)] {
        ladder(&mut table, rows, machines, "nodes", &nodes, ends);
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
    fitted.networks.values_mut().flat_map(|n| n.reach.values_mut()).for_each(|r| r.full_rate_nodes = None);
    for kind in kinds(&seen, machines) {
        exchanges(&seen, &mut fitted, &kind);
    }
    reaches(&seen, &mut fitted);
    for kernel in unseen.iter().map(|r| r.kernel.as_str()).collect::<BTreeSet<&str>>() {
        let of = unseen.iter().filter(|r| r.kernel == kernel);
        let up_to = |n: u64| format!("up to {n} {unit}");
        table.push([up_to(limit), up_to(most), kernel.to_owned()], distances(of, &fitted));
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
    let by = |m: &Machines, name: Option<&str>| -> Vec<Row> {
        let wanted = |r: &&Row| match &r.what {
            What::Collective { engine, .. } => engine.map(|(e, _)| e) == name,
            What::Exchange { .. } => false,
        };
        rows.iter().filter(|r| m.kind(&r.system) == Some(kind)).filter(wanted).cloned().collect()
    };
    let library = by(machines, None);
    let in_network = &mut network(machines, kind).library.in_network;
    // A guess, so that the catalogue's value does not steer the fit.
    *in_network = in_network.filter(|_| !library.is_empty()).map(|_| Fraction::new(0.6)).or(*in_network);
    let has_switch = in_network.is_some();
    let spans = network(machines, kind).library.tree.as_ref().map_or(0, |tree| tree.spans.len());
    let fit = |machines: &mut Machines| {
        let mut start = vec![8e-6, 1e-6, odds(0.75), odds(0.3), 1e7];
        if spans > 0 {
            start = vec![3e-6, 1.5e-6, 1e-5, 3e-6];
            start.extend((0..spans).flat_map(|_| [odds(0.2), odds(0.4)]));
        }
        solve(&library, machines, kind, &[start], |n| Some(&mut n.library), set_library, |l| &mut l.evidence);
    };
    fit(machines);
    if has_switch {
        // Short messages take the ring; what the switch can do shows in the long ones.
        let long: Vec<Row> = library.iter().filter(|r| is_long_all_reduce(&r.what)).cloned().collect();
        let set = |library: &mut Library, p: &[f64]| library.in_network = Some(share(p[0]));
        solve(&long, machines, kind, &[vec![odds(0.6)]], |n| Some(&mut n.library), set, |l| &mut l.evidence);
        fit(machines);
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
        let set = |kernel: &mut AllReduceKernel, p: &[f64]| set_all_reduce(kernel, p, eager);
        solve(&rows, machines, kind, &[start], |n| n.all_reduce.get_mut(&engine), set, |k| &mut k.evidence);
    }
}

fn is_long_all_reduce(what: &What) -> bool {
    matches!(what, What::Collective { collective: Collective::AllReduce, bytes, .. } if *bytes > Bytes::mb(100.0))
}

fn exchanges(rows: &[Row], machines: &mut Machines, kind: &str) {
    let kernels: Vec<String> = machines.networks[kind].exchange.keys().cloned().collect();
    for name in kernels {
        let one_node = |m: &Machines, r: &Row| m.span(r).is_some_and(|(ranks, per_node)| ranks <= per_node);
        let of = |m: &Machines, r: &Row| m.kind(&r.system) == Some(kind) && r.kernel == name;
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
        let starts = [start(0.95, 0.5), start(0.6, 1.0)];
        solve(&rows, machines, kind, &starts, |n| n.exchange.get_mut(&name), set_exchange, |k| &mut k.evidence);
    }
}

/// The median time of the smallest exchanges.
fn usual_floor(rows: &[Row], phase: Phase) -> f64 {
    let of =
        |r: &&Row| matches!(r.what, What::Exchange { work, .. } if work.phase == phase && work.tokens.get() <= 32.0);
    Errors::of(rows.iter().filter(of).map(|r| r.measured.get())).map_or(2e-5, |times| times.fit.median)
}

fn reaches(rows: &[Row], machines: &mut Machines) {
    let outer: BTreeSet<String> =
        rows.iter().filter_map(|r| machines.kind_between(&r.system)).map(str::to_owned).collect();
    for (kind, copies) in outer.iter().flat_map(|kind| [Copies::PerExpert, Copies::PerRank].map(|c| (kind, c))) {
        let leaves = |m: &Machines, r: &Row| {
            let kernel = m.kind(&r.system).and_then(|kind| m.networks[kind].exchange.get(&r.kernel));
            kernel.is_some_and(|k| k.copies == copies)
                && m.kind_between(&r.system) == Some(kind)
                && m.span(r).is_some_and(|(ranks, per_node)| ranks > per_node)
        };
        let rows: Vec<Row> = rows.iter().filter(|r| leaves(machines, r)).cloned().collect();
        let start = vec![odds(0.9), odds(0.8), 1e-5, 1e-5, 1e-5, 1e-5];
        solve(&rows, machines, kind, &[start], |n| n.reach.get_mut(&copies), set_reach, |r| &mut r.evidence);
    }
}

fn set_library(library: &mut Library, p: &[f64]) {
    library.launch = Seconds::s(p[0]);
    library.hop = Seconds::s(p[1]);
    if let Some(tree) = &mut library.tree {
        (tree.launch, tree.hop) = (Seconds::s(p[2]), Seconds::s(p[3]));
        for (span, pair) in tree.spans.iter_mut().zip(p[4..].chunks(2)) {
            (span.short, span.long) = (share(pair[0]), share(pair[1]));
        }
        return;
    }
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

/// Searches from each start, leaves the best constants of a part of a network in place and tells how far they are from the
/// rows; nothing happens without rows.
fn solve<K>(
    rows: &[Row],
    machines: &mut Machines,
    kind: &str,
    starts: &[Vec<f64>],
    part: impl Fn(&mut Network) -> Option<&mut K>,
    set: impl Fn(&mut K, &[f64]),
    evidence: impl Fn(&mut K) -> &mut Evidence,
) {
    let cell = RefCell::new(machines);
    let turn = |p: &[f64]| {
        if let Some(part) = part(network(&mut cell.borrow_mut(), kind)) {
            set(part, p);
        }
    };
    let loss = |p: &[f64]| {
        turn(p);
        let machines = cell.borrow();
        let capped = rows.iter().map(|r| machines.distance(r).map_or(CAP, |d| d.min(CAP)));
        capped.sum::<f64>() / rows.len() as f64
    };
    let starts = starts.iter().filter(|_| !rows.is_empty());
    let ends = starts.map(|start| search::minimum(start, loss)).map(|end| (loss(&end), end));
    let Some((_, best)) = ends.min_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    turn(&best.into_iter().map(rounded).collect::<Vec<f64>>());
    let machines = cell.into_inner();
    let errors = Errors::of(distances(rows.iter(), machines));
    if let (Some(errors), Some(part)) = (errors, part(network(machines, kind))) {
        evidence(part).fit = Some(errors.fit);
    }
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

/// The tables of catalogue files: what was fitted.
pub fn toml(networks: &BTreeMap<String, Network>) -> String {
    let share = |share: Fraction| share.get().to_string();
    // Three digits were kept; the division may add noise far behind them.
    let us = |time: Seconds| format!("\"{} us\"", format!("{:.4e}", time.get() * 1e6).parse::<f64>().unwrap_or(0.0));
    let pair = |names: [&str; 2], of: [Seconds; 2]| {
        format!("{{ {} = {}, {} = {} }}", names[0], us(of[0]), names[1], us(of[1]))
    };
    let mut out = String::new();
    for (kind, Network { library: l, all_reduce, exchange, reach, .. }) in networks {
        out = out + "# " + kind + "\n";
        let mut section = |name: String, evidence: &Evidence, lines: &[(&str, String)]| {
            let Some(fit) = evidence.fit else { return };
            out += &(table::toml(&format!("[{name}]"), lines) + &fit_line(fit) + "\n");
        };
        let spans = |tree: &Tree| {
            let of =
                |s: &Span| format!("{{ chips = {}, short = {}, long = {} }}", s.chips, share(s.short), share(s.long));
            tree.spans.iter().map(of).collect::<Vec<String>>().join(", ")
        };
        let tree = |t: &Tree| format!("{{ launch = {}, hop = {}, spans = [{}] }}", us(t.launch), us(t.hop), spans(t));
        let lines = [
            ("launch", us(l.launch)),
            ("hop", us(l.hop)),
            ("efficiency", share(l.efficiency)),
            ("own", share(l.own)),
            ("half", format!("\"{} MB\"", l.half.get() / 1e6)),
            ("in_network", l.in_network.map_or(String::new(), share)),
            ("tree", l.tree.as_ref().map_or(String::new(), tree)),
        ];
        section("library".into(), &l.evidence, &lines);
        for (name, k) in all_reduce {
            let lines = [
                ("launch", us(k.launch)),
                ("peer", us(k.peer)),
                ("second", k.second.map_or(String::new(), us)),
                ("efficiency", share(k.efficiency)),
                ("eager_launch", us(k.eager_launch)),
                ("eager_extra", us(k.eager_extra)),
            ];
            section(format!("all_reduce.{name}"), &k.evidence, &lines);
        }
        for (name, k) in exchange {
            let floor = |floor: Floor| pair(["start", "least"], [floor.start, floor.least]);
            let lines = [
                ("efficiency", share(k.efficiency)),
                ("loss_per_doubling", share(k.loss_per_doubling)),
                ("per_copy", format!("\"{:.3} ns\"", k.per_copy.get() * 1e9)),
                ("dispatch", floor(k.dispatch)),
                ("combine", floor(k.combine)),
            ];
            section(format!("exchange.{name}"), &k.evidence, &lines);
        }
        for (copies, r) in reach {
            let leaving = |l: Leaving| pair(["once", "per_doubling"], [l.once, l.per_doubling]);
            let lines = [
                ("efficiency", share(r.efficiency)),
                ("overlap", share(r.overlap)),
                ("dispatch", leaving(r.dispatch)),
                ("combine", leaving(r.combine)),
            ];
            section(format!("reach.{copies}"), &r.evidence, &lines);
        }
    }
    out
}
