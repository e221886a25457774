//! One device, measured: memory, products, launches, copies; and the links among several. A measurement that fails says why, and the rest goes on.

use super::blas::{Blas, Factors};
use super::driver::{Argument, Buffer, Context, Driver, Kernel};
use super::library::Finder;
use super::manage::Manager;
use super::{Deadline, Vendor, collective, compiler};
use rackmath_spec::Math;
use rackmath_spec::probe::{Device, DeviceRate, Missing, PeerRate, Product, Reading};
use std::time::Duration;

pub struct Libraries<'a> {
    pub finder: &'a dyn Finder,
    pub driver: &'a Driver,
    pub manager: Result<&'a Manager, &'a String>,
    pub quick: bool,
    pub deadline: Deadline,
}

const NAMES: [&str; 4] = ["empty_kernel", "read_kernel", "copy_kernel", "triad_kernel"];

/// Threads of a block, and bytes it moves of each array: eight vectors of sixteen bytes a thread.
const THREADS: u32 = 256;
const BLOCK: usize = THREADS as usize * 8 * 16;

/// Rows and columns of the weights that products are measured with.
const SIDE: u64 = 8192;

struct Probed<'a> {
    libraries: &'a Libraries<'a>,
    device: Device,
    bus: String,
}

impl Probed<'_> {
    /// Takes a measurement, or why there is none.
    fn attempt<T>(&mut self, what: &str, measure: impl FnOnce(&mut Self) -> Result<T, String>) -> Option<T> {
        if self.libraries.deadline.passed() {
            self.device.not_measured.push(Missing::new(what, "time was up"));
            return None;
        }
        match measure(self) {
            Ok(value) => Some(value),
            Err(why) => {
                self.device.not_measured.push(Missing::new(what, why));
                None
            }
        }
    }
}

pub fn probe(libraries: &Libraries<'_>, index: usize, full: bool, tell: &dyn Fn(&str)) -> Device {
    let vendor = libraries.driver.vendor;
    let device = Device {
        vendor: vendor.name().into(),
        index,
        verified: vendor == Vendor::Nvidia,
        driver: libraries.manager.ok().and_then(Manager::driver).unwrap_or_else(|| libraries.driver.version()),
        ..Device::default()
    };
    let mut probed = Probed { libraries, device, bus: String::new() };
    let context = probed.attempt("the device", |p| {
        let context = p.libraries.driver.context(index)?;
        let about = p.libraries.driver.about(context.device)?;
        let (free, all) = context.memory()?;
        p.bus = about.bus;
        p.device.name = about.name;
        p.device.cores = about.cores;
        p.device.l2_bytes = about.l2_bytes;
        p.device.capability = about.capability;
        p.device.memory_bytes = all as f64;
        p.device.free_bytes = free as f64;
        Ok(context)
    });
    let Some(context) = context else { return probed.device };
    match libraries.manager {
        Ok(manager) => {
            let state = probed.attempt("clocks and power", |p| manager.state(&p.bus));
            probed.device.state = state.unwrap_or_default();
        }
        Err(why) => probed.device.not_measured.push(Missing::new("clocks and power", why)),
    }
    let kernels = probed.attempt("kernels", |p| {
        let carried = compiler::carried(vendor).map(|code| context.kernels(code, NAMES));
        match carried {
            Some(Ok(kernels)) => Ok(kernels),
            other => {
                let first = other.and_then(Result::err).map_or(String::new(), |why| format!("{why}; "));
                let code = compiler::compiled(libraries.finder, vendor, &p.device.capability)
                    .map_err(|why| format!("{first}{why}"))?;
                context.kernels(&code, NAMES).map_err(|why| format!("{first}{why}"))
            }
        }
    });
    if let Some(kernels) = kernels {
        tell("  memory");
        streams(&mut probed, &context, kernels);
        if full {
            tell("  launches");
            launches(&mut probed, &context, kernels[0]);
        }
    }
    if full {
        tell("  copies to and from the host");
        copies(&mut probed, &context);
    }
    products(&mut probed, &context, full, tell);
    probed.device
}

/// Reading, copying and the triad, over arrays ten times the second cache and more.
fn streams(p: &mut Probed<'_>, context: &Context<'_>, [_, read, copy, triad]: [Kernel; 4]) {
    let repeats = if p.libraries.quick { 5 } else { 11 };
    // A gigabyte at least: what is left of the cache between two repeats is then below the noise.
    let wanted = (10.0 * p.device.l2_bytes).max(1_073_741_824.0);
    let bytes = (wanted.min(p.device.free_bytes / 6.0) as usize / BLOCK).max(1) * BLOCK;
    let grid = ((bytes / BLOCK) as u32, THREADS);
    let arrays = p.attempt("memory bandwidth", |p| {
        if (bytes as f64) < 4.0 * p.device.l2_bytes {
            return Err("too little memory is free for arrays beyond the cache".into());
        }
        let filled = || {
            let buffer = context.buffer(bytes)?;
            context.fill(&buffer, &super::data::normal(Math::Fp32, 1_048_573))?;
            Ok::<Buffer<'_>, String>(buffer)
        };
        Ok([filled()?, filled()?, filled()?])
    });
    let Some([a, b, c]) = arrays else { return };
    let address = |buffer: &Buffer<'_>| Argument::Address(buffer.at);
    let kinds: [(&str, Kernel, Vec<Argument>, f64); 3] = [
        ("read", read, vec![address(&a), address(&c)], 1.0),
        ("copy", copy, vec![address(&a), address(&b)], 2.0),
        ("triad", triad, vec![address(&a), address(&b), address(&c), Argument::Float(3.0)], 3.0),
    ];
    for (name, kernel, arguments, arrays) in kinds {
        let rate = p.attempt(&format!("{name} bandwidth"), |_| {
            let least = Duration::from_millis(20);
            let times = context.repeated(repeats, least, |_| context.launch(kernel, grid, &arguments))?;
            let moved = arrays * bytes as f64;
            let rate = Reading::of(times.iter().map(|s| moved / s)).ok_or("no repeat took any time")?;
            Ok(DeviceRate { kernel: name.into(), bytes: bytes as f64, rate })
        });
        p.device.bandwidth.extend(rate);
    }
}

/// What it takes to start a kernel that does nothing.
fn launches(p: &mut Probed<'_>, context: &Context<'_>, empty: Kernel) {
    let one = || context.launch(empty, (1, 32), &[]);
    let read =
        |times: Result<Vec<f64>, String>| Reading::of(times?).ok_or_else(|| "no repeat took any time".to_owned());
    p.device.launch.each_s = p.attempt("launches in a row", |_| {
        let row = |n: usize| context.waited(|| (0..n).try_for_each(|_| one()));
        row(100)?;
        read((0..7).map(|_| Ok(row(1000)? / 1000.0)).collect())
    });
    p.device.launch.round_trip_s =
        p.attempt("one launch and back", |_| read((0..200).map(|_| context.waited(one)).collect()));
    p.device.launch.graph_node_s = p.attempt("launches in a graph", |_| {
        let nodes = 1000;
        let graph = context.graph(|| (0..nodes).try_for_each(|_| one()))?;
        let times = context.repeated(7, Duration::ZERO, |_| context.replay(graph))?;
        read(Ok(times.iter().map(|s| s / f64::from(nodes)).collect()))
    });
}

fn copies(p: &mut Probed<'_>, context: &Context<'_>) {
    let bytes = (256_usize << 20).min((p.device.free_bytes / 4.0) as usize);
    let repeats = if p.libraries.quick { 3 } else { 7 };
    let Some(buffer) = p.attempt("copies", |_| context.buffer(bytes)) else { return };
    let pinned = p.attempt("pinned memory", |_| context.pinned(bytes));
    let mut plain = vec![1_u8; bytes];
    let places = [pinned.as_ref().map(|m| ("pinned", m.at)), Some(("pageable", plain.as_mut_ptr().cast()))];
    for (kind, host) in places.into_iter().flatten() {
        for (way, down) in [("host to device", true), ("device to host", false)] {
            let what = format!("{way}, {kind}");
            let rate = p.attempt(&what, |_| {
                let one = || {
                    if down { context.to_device(&buffer, host, bytes) } else { context.to_host(host, &buffer, bytes) }
                };
                // By the host's clock: copies of pageable memory are half done by the host.
                context.waited(one)?;
                let times: Vec<f64> = (0..repeats).map(|_| context.waited(one)).collect::<Result<_, _>>()?;
                let rate = Reading::of(times.iter().map(|s| bytes as f64 / s)).ok_or("no repeat took any time")?;
                Ok(DeviceRate { kernel: what.clone(), bytes: bytes as f64, rate })
            });
            p.device.copies.extend(rate);
        }
    }
}

/// Products in each arithmetic by their number of rows.
fn products(p: &mut Probed<'_>, context: &Context<'_>, full: bool, tell: &dyn Fn(&str)) {
    let vendor = p.libraries.driver.vendor;
    let Some(blas) = p.attempt("matrix products", |p| Blas::load(p.libraries.finder, vendor)) else { return };
    let rows: &[u64] = match (full, p.libraries.quick) {
        (true, false) => &[1, 16, 64, 256, 1024, 4096, SIDE],
        (true, true) => &[16, 1024, SIDE],
        (false, _) => &[SIDE],
    };
    let maths: &[Math] =
        if full { &[Math::Bf16, Math::Fp16, Math::Fp8, Math::Tf32, Math::Int8] } else { &[Math::Bf16] };
    for math in maths {
        tell(&format!("  products in {math}"));
        let l2 = p.device.l2_bytes;
        let made =
            p.attempt(&format!("{math} products"), |_| Factors::new(&blas, context, *math, (SIDE, SIDE, SIDE), l2));
        let Some(factors) = made else { continue };
        if *math == Math::Bf16 {
            warm(p, context, &factors);
        }
        for m in rows {
            let large = *m >= 4096;
            let least = Duration::from_millis(if large { 100 } else { 10 });
            let repeats = if p.libraries.quick { 3 } else { 5 };
            let product: Option<Product> =
                p.attempt(&format!("{math} product of {m} rows"), |_| factors.rate(*m, repeats, least));
            p.device.products.extend(product);
        }
    }
}

/// A second of large products, at the end of which clocks and power are read: what a busy device runs at.
fn warm(p: &mut Probed<'_>, context: &Context<'_>, factors: &Factors<'_>) {
    let seconds = if p.libraries.quick { 0.4 } else { 1.5 };
    p.device.loaded = p.attempt("clocks and power under load", |p| {
        factors.load(SIDE, seconds)?;
        std::thread::sleep(Duration::from_secs_f64(seconds * 0.7));
        let state = p.libraries.manager.map_err(Clone::clone).and_then(|manager| manager.state(&p.bus));
        context.wait()?;
        state
    });
}

/// Copies from the first device to each other, and all-reduces among all.
pub fn links(libraries: &Libraries<'_>, devices: &mut [Device]) {
    let contexts: Result<Vec<Context<'_>>, String> = (0..devices.len()).map(|i| libraries.driver.context(i)).collect();
    let contexts = match contexts {
        Ok(contexts) => contexts,
        Err(why) => {
            devices[0].not_measured.push(Missing::new("links between devices", why));
            return;
        }
    };
    let bytes = 256_usize << 20;
    for to in 1..contexts.len() {
        match peer(&contexts[0], &contexts[to], bytes) {
            Ok((direct, rate)) => devices[0].peers.push(PeerRate { to, direct, bytes: bytes as f64, rate }),
            Err(why) => devices[0].not_measured.push(Missing::new(format!("link to device {to}"), why)),
        }
    }
    let sizes = [8 << 10, 1 << 20, 256 << 20];
    match collective::all_reduces(libraries.finder, libraries.driver.vendor, &contexts, &sizes) {
        Ok(all) => devices[0].collectives = all,
        Err(why) => devices[0].not_measured.push(Missing::new("all-reduce", why)),
    }
}

fn peer(from: &Context<'_>, to: &Context<'_>, bytes: usize) -> Result<(bool, Reading), String> {
    let direct = from.reaches(to);
    to.current()?;
    let target = to.buffer(bytes)?;
    from.current()?;
    let source = from.buffer(bytes)?;
    let times = from.repeated(5, Duration::from_millis(20), |_| from.to_peer((&target, to), &source, bytes))?;
    let rate = Reading::of(times.iter().map(|s| bytes as f64 / s)).ok_or("no repeat took any time")?;
    Ok((direct, rate))
}
