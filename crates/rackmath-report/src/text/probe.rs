//! A machine on its roofline: what was measured, how far repeats lie apart, what could not be measured and why.

use super::prelude::*;
use crate::reply::Detail;
use crate::style::Style;
use rackmath::figure::{Axis, Mark, Role, Series, Unit};
use rackmath::remark::{Remark, says};
use rackmath_spec::probe::{Above, Device, Missing, Probe, Processor, Product, Reading, State};

/// The page of a probe.
pub fn probe(probe: &Probe, above: &[Above], detail: Detail, style: Style) -> String {
    let mut page = Page::new(style);
    let out = &mut page;
    out.verdict(words(&comes_to(probe)));
    if let Some(said) = busy(probe) {
        out.verdict(words(&said));
    }
    if detail == Detail::Verdict {
        return page.text(detail);
    }
    out.figures();
    processor(out, &probe.processor);
    for device in &probe.devices {
        out.gap();
        accelerator(out, device);
    }
    if let Some(figure) = roofline(probe) {
        out.gap();
        out.draw(&figure);
    }
    for over in above {
        let (measured, sheet) = (significant(over.measured / over.sheet * 100.0, 3), "of the data sheet");
        out.item(format!("{}: {measured} % {sheet}, which cannot be: not saved", over.what));
    }
    let missing: Vec<&Missing> = probe
        .absent
        .iter()
        .chain(&probe.processor.not_measured)
        .chain(probe.devices.iter().flat_map(|d| &d.not_measured))
        .collect();
    if !missing.is_empty() {
        out.part("Not measured");
        for one in missing {
            out.item(format!("{}: {}", one.what, one.why));
        }
    }
    out.gap();
    let short = if probe.quick { ", quick" } else { "" };
    out.dim(format!(
        "{}, {}{short}, {} s; middle of repeats, ± half their range",
        probe.tool,
        probe.date,
        significant(probe.took_s, 2)
    ));
    page.text(Detail::FULL)
}

/// What was found, in a sentence: the memory and the arithmetic that models meet, and the rows from which on the one binds and not the other.
fn comes_to(probe: &Probe) -> Remark {
    let p = &probe.processor;
    let own = || {
        let peak = ["bf16", "fp32"].iter().find_map(|math| p.peak(math));
        Some((p.name.clone(), p.read_rate()?.rate.median, peak.map(|m| (m.math.clone(), m.rate.median))))
    };
    let device = probe.devices.iter().find_map(|d| {
        let peaks = d.peaks();
        let peak = ["bf16", "fp16", "fp32"].iter().find_map(|math| peaks.get(*math));
        Some((d.name.clone(), d.read_rate()?.rate.median, peak.map(|m| (m.math.clone(), m.rate))))
    });
    let Some((name, read, peak)) = device.or_else(own) else { return says("probe_nothing") };
    let said = says("probe_found").with("name", name).with("read", byte_rate(read));
    match peak {
        // A weight is read once, and takes a multiplication and an addition for each row.
        Some((math, rate)) => {
            let bytes = if math == "fp32" { 4.0 } else { 2.0 };
            let rows = rate / 2.0 * bytes / read;
            said.with("rate", flop_rate(rate)).with("math", math).with("rows", rows)
        }
        None => said,
    }
}

/// Whether repeats differ by more than a quiet machine's would.
fn busy(probe: &Probe) -> Option<Remark> {
    let p = &probe.processor;
    let all = p.bandwidth.iter().map(|s| s.rate.spread()).chain(p.peaks.iter().map(|m| m.rate.spread()));
    let worst = all.fold(0.0, f64::max);
    (worst > QUIET).then(|| says("probe_busy").with("spread", worst))
}

/// Repeats on a machine that does nothing else lie within a few hundredths; a fifth is somebody else's work.
const QUIET: f64 = 0.2;

/// The middle, with half the range of repeats.
fn spread(reading: &Reading, show: impl Fn(f64) -> String) -> String {
    format!("{} ± {} %", show(reading.median), significant(100.0 * reading.spread(), 2))
}

fn processor(out: &mut Page, p: &Processor) {
    out.head(format!("{}, {} cores", p.name, p.cores));
    let many = |n: usize, one: &str| format!("{n} {one}{}", plural(n as u64));
    out.row(
        "threads",
        format!(
            "{} on {}, {}, {}",
            many(p.threads, "thread"),
            many(p.cores, "core"),
            many(p.sockets, "socket"),
            many(p.numa_nodes, "memory node")
        ),
    );
    if p.allowed_threads < p.threads {
        out.more(format!("this process may run on {} of them", p.allowed_threads));
    }
    out.maybe("container grants", p.quota_cores.map(|n| format!("{} processors' time", significant(n, 3))));
    let limit = p.memory_limit_bytes.filter(|limit| *limit < p.memory_bytes);
    let limit = limit.map_or(String::new(), |limit| format!(", of which this container may hold {}", bytes(limit)));
    out.row("memory", format!("{}{limit}; huge pages: {}", bytes(p.memory_bytes), p.huge_pages));
    let caches: Vec<String> = p
        .caches
        .iter()
        .filter(|c| c.kind != "Instruction")
        .map(|c| format!("L{} {} x {}", c.level, c.count, bytes(c.bytes)))
        .collect();
    if !caches.is_empty() {
        out.row("caches", caches.join(", "));
    }
    out.row(
        "instructions",
        if p.instructions.is_empty() { "the architecture's own".to_owned() } else { p.instructions.join(", ") },
    );
    if !p.bandwidth.is_empty() {
        out.gap();
        out.each(&p.bandwidth).columns(&[
            ("memory", &|s| s.kernel.clone()),
            ("stores", &|s| s.stores.clone()),
            ("threads", &|s| s.threads.to_string()),
            ("sockets", &|s| s.sockets.to_string()),
            ("asked for", &|s| spread(&s.rate, byte_rate)),
            ("best", &|s| byte_rate(s.rate.high)),
            ("moved", &|s| byte_rate(s.moved)),
        ]);
    }
    if !p.peaks.is_empty() {
        out.gap();
        out.each(&p.peaks).columns(&[
            ("multiply-adds", &|m| m.math.clone()),
            ("instructions", &|m| m.instructions.clone()),
            ("threads", &|m| m.threads.to_string()),
            ("rate", &|m| spread(&m.rate, flop_rate)),
            ("best", &|m| flop_rate(m.rate.high)),
        ]);
    }
    if let Some(m) = &p.matmul {
        let best = flop_rate(2.0 * (m.m * m.n * m.k) as f64 / m.seconds.low);
        out.gap();
        out.row(
            "product of fp32",
            format!("{} at {} x {} by {} threads, best {best}", flop_rate(m.rate), m.m, m.n, m.threads),
        );
    }
}

fn accelerator(out: &mut Page, d: &Device) {
    let name = if d.name.is_empty() { format!("{} device {}", d.vendor, d.index) } else { d.name.clone() };
    out.head(format!("{name}, device {}", d.index));
    if !d.verified {
        out.item("this path has not run on real hardware yet: figures may be wrong");
    }
    out.row("cores, cache", format!("{} cores, {} of second cache", d.cores, bytes(d.l2_bytes)));
    out.row("memory", format!("{}, {} free", bytes(d.memory_bytes), bytes(d.free_bytes)));
    out.row("driver", format!("{}, capability {}", d.driver, d.capability));
    state(out, "at rest", &d.state);
    if let Some(loaded) = &d.loaded {
        state(out, "under load", loaded);
    }
    for b in &d.bandwidth {
        out.field(&format!("memory, {}", b.kernel), spread(&b.rate, byte_rate));
    }
    let launch = &d.launch;
    out.maybe("launch, in a row", launch.each_s.map(|r| spread(&r, seconds)));
    out.maybe("launch and back", launch.round_trip_s.map(|r| spread(&r, seconds)));
    out.maybe("kernel of a graph", launch.graph_node_s.map(|r| spread(&r, seconds)));
    for c in &d.copies {
        out.row(&c.kernel, spread(&c.rate, byte_rate));
    }
    for peer in &d.peers {
        let way = if peer.direct { "directly" } else { "through the host" };
        out.row(&format!("to device {}", peer.to), format!("{} {way}", spread(&peer.rate, byte_rate)));
    }
    for c in &d.collectives {
        let text = format!("{} in {}, bus {}", bytes(c.bytes), seconds(c.seconds.median), byte_rate(c.bus_rate));
        out.row(&format!("{} of {}", c.what, c.ranks), text);
    }
    if d.products.is_empty() {
        return;
    }
    out.gap();
    let mut rows: Vec<u64> = d.products.iter().map(|p| p.m).collect();
    rows.sort_unstable();
    rows.dedup();
    let maths: Vec<String> = d.peaks().into_keys().collect();
    let header: Vec<String> = ["rows".to_owned()].into_iter().chain(maths.iter().cloned()).collect();
    let cell = |m: u64, math: &str| {
        let found = d.products.iter().find(|p| p.m == m && p.math == math);
        found.map_or_else(|| "-".to_owned(), |p| format!("{} ({})", flop_rate(p.rate), seconds(p.seconds.median)))
    };
    let lines = rows
        .iter()
        .map(|m| [m.to_string()].into_iter().chain(maths.iter().map(|math| cell(*m, math))).collect::<Vec<String>>());
    let (n, k) = d.products.first().map_or((0, 0), |p| (p.n, p.k));
    out.dim(format!("products with weights of {n} x {k}"));
    out.table(&header, lines);
}

fn state(out: &mut Page, when: &str, s: &State) {
    let mhz = |x: f64| format!("{} MHz", significant(x, 4));
    let mut parts = Vec::new();
    if let Some(clock) = s.clock_mhz {
        parts.push(s.clock_most_mhz.map_or_else(|| mhz(clock), |most| format!("{} of {}", mhz(clock), mhz(most))));
    }
    if let (Some(power), cap) = (s.power_w, s.power_cap_w) {
        let cap = cap.map_or(String::new(), |cap| format!(" of {}", watts(cap)));
        parts.push(format!("{}{cap}", watts(power)));
    }
    parts.extend(s.temperature_c.map(|c| format!("{} °C", significant(c, 3))));
    if let (Some(generation), Some(width)) = (s.link_generation, s.link_width) {
        parts.push(format!("PCIe {generation} x{width}"));
    }
    parts.extend(s.processes.filter(|n| *n > 1).map(|n| format!("{n} programs compute on it")));
    if !s.throttled_by.is_empty() {
        parts.push(format!("held back by {}", s.throttled_by.join(", ")));
    }
    if !parts.is_empty() {
        out.row(when, parts.join(", "));
    }
}

/// The roof by reading and by each arithmetic, and what products reached under it.
pub fn roofline(probe: &Probe) -> Option<Figure> {
    let device = probe.devices.iter().find(|d| d.read_rate().is_some() && !d.products.is_empty());
    let (name, read, peaks, products): (&str, f64, Vec<(String, f64)>, Vec<&Product>) = if let Some(d) = device {
        let peaks = d.peaks().into_iter().map(|(math, p)| (math, p.rate)).collect();
        (&d.name, d.read_rate()?.rate.median, peaks, d.products.iter().collect())
    } else {
        let p = &probe.processor;
        let peaks = ["fp32", "bf16", "int8"].iter().filter_map(|m| Some(((*m).to_owned(), p.peak(m)?.rate.median)));
        (&p.name, p.read_rate()?.rate.median, peaks.collect(), p.matmul.iter().collect())
    };
    let most = peaks.iter().map(|(_, rate)| *rate).reduce(f64::max)?;
    let points: Vec<(f64, f64)> =
        products.iter().map(|p| (2.0 * (p.m * p.n) as f64 * p.k as f64 / p.bytes, p.rate)).collect();
    // From a sixteenth of a FLOP per byte to beyond the last corner and the last product.
    let high = points.iter().fold((most / read * 8.0).max(64.0), |high, (x, _)| high.max(*x));
    let low = 0.0625;
    let mut series: Vec<Series> = Vec::new();
    for (i, (math, peak)) in peaks.iter().enumerate() {
        let corner = peak / read;
        let points = vec![(low, low * read), (corner, *peak), (high, *peak)];
        series.push(Series { name: math.clone().into(), role: Role::Choice(i as u8), points });
    }
    if !points.is_empty() {
        series.push(Series { name: "products".into(), role: Role::Points, points });
    }
    let marks = peaks.iter().map(|(math, peak)| Mark {
        x: peak / read,
        y: *peak,
        label: format!("{math} {}", flop_rate(*peak)).into(),
    });
    Some(Figure {
        title: format!("{name} on its roofline").into(),
        subtitle: format!("measured: memory is read at {}", byte_rate(read)).into(),
        x: Axis::log("FLOP per byte of memory", Unit::FlopPerByte),
        y: Axis::log("FLOP per second", Unit::Flop),
        marks: marks.collect(),
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath_spec::probe::{MathRate, StreamRate};

    /// 20 GB/s are 10 G weights of two bytes a second; 200 GFLOP/s are 100 G multiply-adds: ten rows for each weight.
    #[test]
    fn a_probe_begins_with_what_it_comes_to_and_says_when_the_machine_was_busy() {
        let reading = |rates: [f64; 3]| Reading::of(rates).unwrap();
        let read = |rates| StreamRate { kernel: "read".into(), rate: reading(rates), ..StreamRate::default() };
        let peak = MathRate { math: "bf16".into(), rate: reading([2e11; 3]), ..MathRate::default() };
        let page = |rates: [f64; 3]| {
            let (bandwidth, peaks) = (vec![read(rates)], vec![peak.clone()]);
            let processor = Processor { name: "A chip".into(), bandwidth, peaks, ..Processor::default() };
            let style = Style { color: false, width: 200 };
            probe(&Probe { processor, ..Probe::default() }, &[], Detail::Verdict, style)
        };
        let quiet = page([1.99e10, 2e10, 2.01e10]);
        assert!(
            quiet.starts_with(
                "A chip reads its memory at 20.0 GB/s and multiplies at 200 GFLOP/s in bf16: below 10 rows"
            ),
            "{quiet}"
        );
        assert!(!quiet.contains("Something else ran"), "{quiet}");
        assert!(
            page([1e10, 2e10, 3e10]).contains("Something else ran meanwhile: repeats differ by up to 50"),
            "spread"
        );
    }
}
