//! What a probe found on a machine: its processor and its accelerators, each figure with its spread, and what could not be measured and why.
//!
//! Rates are counted in bytes the program asks for: an ordinary store also reads the line it writes to, which `moved` counts and `rate` does not.
//! A multiply-add is two. [`Probe::chip_file`] writes the accelerator, or the processor, as a file of `catalog/chips`.

use crate::{Chip, Math, SpecError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Name and version of the program that measured.
    pub tool: String,
    pub date: String,
    pub quick: bool,
    pub took_s: f64,
    pub processor: Processor,
    pub devices: Vec<Device>,
    /// Libraries and devices that were looked for and are not there.
    pub absent: Vec<Missing>,
}

/// Something that has no figure, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub what: String,
    pub why: String,
}

impl Missing {
    pub fn new(what: impl Into<String>, why: impl ToString) -> Self {
        Self { what: what.into(), why: why.to_string() }
    }
}

/// The middle of several repeats, with the lowest and the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub repeats: usize,
}

impl Reading {
    /// Of figures that are finite; nothing where there is none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut all: Vec<f64> = figures.into_iter().filter(|x| x.is_finite()).collect();
        all.sort_by(f64::total_cmp);
        let (low, high) = (*all.first()?, *all.last()?);
        let (half, n) = (all.len() / 2, all.len());
        let median = if n % 2 == 1 { all[half] } else { f64::midpoint(all[half - 1], all[half]) };
        Some(Self { median, low, high, repeats: n })
    }

    /// Half the distance from lowest to highest, as a share of the middle.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.high - self.low) / 2.0 / self.median } else { 0.0 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    pub name: String,
    pub vendor: String,
    /// x86_64, aarch64.
    pub architecture: String,
    pub kernel: String,
    pub sockets: usize,
    pub cores: usize,
    pub threads: usize,
    pub threads_per_core: usize,
    pub numa_nodes: usize,
    /// Threads this process may run on.
    pub allowed_threads: usize,
    /// Processors' worth of time that a container grants, where it limits it.
    pub quota_cores: Option<f64>,
    pub memory_bytes: f64,
    /// What a container may hold, where it limits it.
    pub memory_limit_bytes: Option<f64>,
    pub caches: Vec<CacheLevel>,
    /// Instruction sets that bear on multiply-adds.
    pub instructions: Vec<String>,
    /// What the kernel says of transparent huge pages.
    pub huge_pages: String,
    pub bandwidth: Vec<StreamRate>,
    pub peaks: Vec<MathRate>,
    pub matmul: Option<Product>,
    pub not_measured: Vec<Missing>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheLevel {
    pub level: u32,
    /// Data, Instruction, Unified.
    pub kind: String,
    pub bytes: f64,
    /// Threads that share one.
    pub shared_by: usize,
    /// How many there are.
    pub count: usize,
}

/// A kernel over long arrays in a processor's memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamRate {
    /// read, copy, triad.
    pub kernel: String,
    /// ordinary, streaming (past the caches), none.
    pub stores: String,
    pub threads: usize,
    pub sockets: usize,
    pub array_bytes: f64,
    /// Bytes per second that the program asks for.
    pub rate: Reading,
    /// The same with the lines that ordinary stores read first.
    pub moved: f64,
}

/// Multiply-adds in registers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MathRate {
    /// fp32, bf16, int8.
    pub math: String,
    pub instructions: String,
    pub threads: usize,
    pub rate: Reading,
}

/// A matrix product of m x k by k x n.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Product {
    pub math: String,
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub seconds: Reading,
    /// FLOP per second.
    pub rate: f64,
    /// Bytes of both factors and the product.
    pub bytes: f64,
    pub threads: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub vendor: String,
    pub index: usize,
    pub name: String,
    /// Whether this program's path to such devices has run on real ones.
    pub verified: bool,
    pub driver: String,
    /// Compute capability, or the name of the architecture.
    pub capability: String,
    pub cores: u64,
    pub memory_bytes: f64,
    pub free_bytes: f64,
    pub l2_bytes: f64,
    pub state: State,
    /// At the end of a second of products.
    pub loaded: Option<State>,
    pub bandwidth: Vec<DeviceRate>,
    pub products: Vec<Product>,
    pub launch: Launch,
    pub copies: Vec<DeviceRate>,
    pub peers: Vec<PeerRate>,
    pub collectives: Vec<Collective>,
    pub not_measured: Vec<Missing>,
}

/// Clocks, power and what holds them back, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub clock_mhz: Option<f64>,
    pub clock_most_mhz: Option<f64>,
    pub memory_clock_mhz: Option<f64>,
    pub power_w: Option<f64>,
    pub power_cap_w: Option<f64>,
    pub temperature_c: Option<f64>,
    /// What slows it down, in the driver's own terms.
    pub throttled_by: Vec<String>,
    pub link_generation: Option<u32>,
    pub link_width: Option<u32>,
    /// Programs that compute on it, this one included.
    pub processes: Option<u32>,
}

/// A kernel or a copy over so many bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceRate {
    pub kernel: String,
    pub bytes: f64,
    /// Bytes per second.
    pub rate: Reading,
}

/// What it takes to start a kernel, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// One of many in a row.
    pub each_s: Option<Reading>,
    /// One, until the host knows that it has ended.
    pub round_trip_s: Option<Reading>,
    /// One node of a graph that is replayed.
    pub graph_node_s: Option<Reading>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerRate {
    pub to: usize,
    /// Whether one may read the other's memory without the host.
    pub direct: bool,
    pub bytes: f64,
    pub rate: Reading,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    pub what: String,
    pub ranks: usize,
    pub bytes: f64,
    pub seconds: Reading,
    /// Bytes over time, as the libraries' own tests count.
    pub algorithm_rate: f64,
    /// The share of a link that this takes: 2(n-1)/n of it for an all-reduce.
    pub bus_rate: f64,
}

/// One measured figure of the probe beside what a data sheet allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Above {
    pub what: String,
    pub measured: f64,
    pub sheet: f64,
}

/// Rates of kernels wobble; a figure this much above the sheet is no longer noise but a cache, or a wrong count.
const SLACK: f64 = 1.005;

impl Processor {
    /// The best reading rate of memory, from most threads.
    pub fn read_rate(&self) -> Option<&StreamRate> {
        let reads = self.bandwidth.iter().filter(|s| s.kernel == "read");
        reads.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
    }

    /// The best rate of an arithmetic.
    pub fn peak(&self, math: &str) -> Option<&MathRate> {
        let own = self.peaks.iter().filter(|p| p.math == math);
        own.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
    }

    fn last_cache(&self) -> f64 {
        let last = self.caches.iter().map(|c| c.level).max().unwrap_or(0);
        self.caches.iter().filter(|c| c.level == last).map(|c| c.bytes * c.count as f64).sum()
    }
}

impl Device {
    /// The best rate at which a kernel reads its memory.
    pub fn read_rate(&self) -> Option<&DeviceRate> {
        let all = self.bandwidth.iter().filter(|b| b.kernel == "read");
        all.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
    }

    /// The best product of each arithmetic.
    pub fn peaks(&self) -> BTreeMap<String, &Product> {
        let mut best: BTreeMap<String, &Product> = BTreeMap::new();
        for product in &self.products {
            let own = best.entry(product.math.clone()).or_insert(product);
            if product.rate > own.rate {
                *own = product;
            }
        }
        best
    }

    /// Figures above what the chip's sheet allows.
    pub fn above(&self, chip: &Chip) -> Vec<Above> {
        let sheet = chip.memory.bandwidth.value.get();
        let mut above: Vec<Above> = self
            .bandwidth
            .iter()
            .map(|b| Above { what: format!("{} bandwidth", b.kernel), measured: b.rate.median, sheet })
            .collect();
        for (math, product) in self.peaks() {
            let known = math.parse::<Math>().ok().and_then(|math| chip.peak.get(&math));
            above.extend(known.map(|peak| Above {
                what: format!("{math} product"),
                measured: product.rate,
                sheet: peak.value.get(),
            }));
        }
        above.retain(|a| a.measured > a.sheet * SLACK);
        above
    }
}

/// What a chip file needs that a probe cannot measure.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The chip of the catalogue that this is, where it is known.
    pub chip: Option<&'a Chip>,
}

impl Probe {
    /// The first accelerator with figures, else the processor, as a file of `catalog/chips`: what was measured stands where the
    /// data sheet's figures usually stand.
    pub fn chip_file(&self, known: Known<'_>) -> Result<String, SpecError> {
        let device = self.devices.iter().find(|d| d.read_rate().is_some() && !d.products.is_empty());
        device.map_or_else(|| self.processor_file(), |device| self.device_file(device, known.chip))
    }

    fn source(&self) -> String {
        format!("probe of this machine, {}, {}", self.date, self.tool)
    }

    fn processor_file(&self) -> Result<String, SpecError> {
        let p = &self.processor;
        let wanting = |what: &str| SpecError::said(format!("no chip file: {what} was not measured"));
        let read = p.read_rate().ok_or_else(|| wanting("memory bandwidth"))?;
        let mut text = head(&p.name, &p.vendor, &p.architecture, p.sockets.max(1), &self.date, &self.source());
        text = text.replacen("as_of", "processor = true\nas_of", 1);
        let memory = p.memory_limit_bytes.map_or(p.memory_bytes, |limit| limit.min(p.memory_bytes));
        let note = format!("read by {} threads, {} to {}", read.threads, rate(read.rate.low), rate(read.rate.high));
        text += &memory_table("system memory", memory, read.rate.median, &note);
        text += "\n[peak]\n";
        let mut any = false;
        for math in ["fp32", "bf16", "int8"] {
            // A product that is tiled is what a program gets; multiply-adds in registers are what the units can do.
            let Some(peak) = p.peak(math) else { continue };
            any = true;
            let product = p.matmul.as_ref().filter(|product| product.math == math);
            let reached =
                product.map_or(String::new(), |product| format!("; a tiled product reached {:.3e}", product.rate));
            let note = format!("{} in registers, {} threads{reached}", peak.instructions, peak.threads);
            let unit = if math == "int8" { "OP/s" } else { "FLOP/s" };
            let _ = writeln!(
                text,
                "{math} = {{ value = \"{} G{unit}\", source = \"probe\", note = {note:?} }}",
                fixed(peak.rate.median / 1e9)
            );
        }
        if !any {
            return Err(wanting("any arithmetic"));
        }
        text += "\n[link]\nkind = \"none\"\ndomain = { value = 1, source = \"probe\" }\n";
        let _ = writeln!(
            text,
            "\n[physical]\nsms = {{ value = {}, source = \"probe\", note = \"cores\" }}",
            p.cores.max(1)
        );
        if p.last_cache() > 0.0 {
            let _ = writeln!(
                text,
                "l3 = {{ value = \"{} MiB\", source = \"probe\" }}",
                fixed(p.last_cache() / 1_048_576.0)
            );
        }
        Ok(text)
    }

    fn device_file(&self, d: &Device, chip: Option<&Chip>) -> Result<String, SpecError> {
        let read = d.read_rate().ok_or_else(|| SpecError::said("no chip file: memory bandwidth was not measured"))?;
        let generation = chip.map_or(d.capability.as_str(), |chip| &chip.generation);
        let mut text = head(&d.name, &d.vendor, generation, 1, &self.date, &self.source());
        let sheet = chip.map(|chip| chip.memory.bandwidth.value.get());
        let found = format!("read, {} to {}", rate(read.rate.low), rate(read.rate.high));
        let (bandwidth, note) = beside(read.rate.median, sheet, &found);
        text += &memory_table(chip.map_or("device memory", |chip| &chip.memory.kind), d.memory_bytes, bandwidth, &note);
        text += "\n[peak]\n";
        for (math, product) in d.peaks() {
            let found = format!("product of {} x {} by {} x {}", product.m, product.k, product.k, product.n);
            let sheet = chip.and_then(|chip| chip.peak.get(&math.parse().ok()?)).map(|peak| peak.value.get());
            let (value, note) = beside(product.rate, sheet, &found);
            let unit = if math == "int8" { "OP/s" } else { "FLOP/s" };
            let value = fixed(value / 1e12);
            let _ = writeln!(text, "{math} = {{ value = \"{value} T{unit}\", source = \"probe\", note = {note:?} }}");
        }
        let _ = writeln!(text, "\n[link]\nkind = {:?}", chip.map_or("none", |chip| &chip.link.kind));
        let peer = d.peers.iter().filter(|peer| peer.direct).map(|peer| peer.rate.median).reduce(f64::min);
        let sheet = chip.and_then(|chip| chip.link.scale_up.as_ref()).map(|c| c.value.get());
        if let Some(peer) = peer {
            let _ = writeln!(
                text,
                "scale_up = {{ value = \"{} GB/s\", source = \"probe\", note = \"copy to a peer, one way\" }}",
                fixed(peer / 1e9)
            );
        } else if let Some(sheet) = sheet {
            let note = "the data sheet's: one card alone was probed";
            let _ = writeln!(text, "scale_up = {{ value = \"{} GB/s\", source = {note:?} }}", fixed(sheet / 1e9));
        }
        let domain =
            if d.peers.is_empty() { chip.map_or(1, |chip| chip.link.domain.value) } else { d.peers.len() as u64 + 1 };
        let _ = writeln!(text, "domain = {{ value = {domain}, source = \"probe\" }}");
        let out = chip.and_then(|chip| chip.link.scale_out.as_ref());
        if let Some(out) = out {
            let _ = writeln!(
                text,
                "scale_out = {{ value = \"{} GB/s\", source = \"the data sheet's: no other machine was probed\" }}",
                fixed(out.value.get() / 1e9)
            );
        }
        let host =
            d.copies.iter().filter(|c| c.kernel == "host to device, pinned").map(|c| c.rate.median).reduce(f64::max);
        if let Some(host) = host {
            let _ = writeln!(
                text,
                "host = {{ value = \"{} GB/s\", source = \"probe\", note = \"from pinned memory\" }}",
                fixed(host / 1e9)
            );
        }
        let _ = writeln!(text, "\n[physical]\nsms = {{ value = {}, source = \"probe\" }}", d.cores.max(1));
        if d.l2_bytes > 0.0 {
            let _ =
                writeln!(text, "l2 = {{ value = \"{} MiB\", source = \"probe\" }}", fixed(d.l2_bytes / 1_048_576.0));
        }
        if let Some(cap) = d.state.power_cap_w {
            let _ = writeln!(
                text,
                "\n[power]\ntdp = {{ value = \"{} W\", source = \"probe\", note = \"power cap\" }}",
                fixed(cap)
            );
        }
        Ok(text)
    }
}

/// Below this share of the sheet a card is held back: its own figure then stands in the file.
const HELD_BACK: f64 = 0.7;

/// The sheet's figure with what was measured beside it, since an engine's shares are shares of the sheet; what was measured alone where
/// no sheet is known, or where the card is far from it.
fn beside(measured: f64, sheet: Option<f64>, found: &str) -> (f64, String) {
    match sheet.map(|sheet| (sheet, measured / sheet)) {
        Some((sheet, share)) if share >= HELD_BACK => {
            (sheet, format!("the data sheet's; {found}: {:.1} % of it was measured", 100.0 * share))
        }
        Some((_, share)) => (measured, format!("{found}; only {:.1} % of the data sheet's: held back", 100.0 * share)),
        None => (measured, found.to_owned()),
    }
}

fn head(name: &str, vendor: &str, generation: &str, dies: usize, date: &str, source: &str) -> String {
    format!(
        "# By rackmath probe. Where no data sheet is known, rates are what kernels got, and an engine takes its shares of that again.\nname = {name:?}\nvendor = {vendor:?}\ngeneration = {generation:?}\ndies = {dies}\nas_of = \"{date}\"\n\n[sources]\nprobe = {source:?}\n"
    )
}

fn memory_table(kind: &str, bytes: f64, bandwidth: f64, note: &str) -> String {
    let (size, speed) = (fixed(bytes / 1_048_576.0), fixed(bandwidth / 1e9));
    format!(
        "\n[memory]\nkind = {kind:?}\ncapacity = {{ value = \"{size} MiB\", source = \"probe\" }}\nusable = {{ value = \"{size} MiB\", source = \"probe\" }}\nbandwidth = {{ value = \"{speed} GB/s\", source = \"probe\", note = {note:?} }}\n"
    )
}

fn rate(bytes_per_s: f64) -> String {
    format!("{} GB/s", fixed(bytes_per_s / 1e9))
}

/// Four digits, without an exponent.
fn fixed(x: f64) -> String {
    let places = if x > 0.0 { (3.0 - rackmath_units::float::log10(x).floor()).clamp(0.0, 9.0) as usize } else { 0 };
    format!("{x:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_the_middle_and_knows_its_spread() {
        let reading = Reading::of([3.0, 1.0, 2.0, f64::NAN]).unwrap();
        assert_eq!((reading.median, reading.low, reading.high, reading.repeats), (2.0, 1.0, 3.0, 3));
        assert_eq!(Reading::of([1.0, 3.0]).unwrap().median, 2.0);
        assert!((reading.spread() - 0.5).abs() < 1e-12);
        assert_eq!(Reading::of([f64::INFINITY]), None);
    }

    fn probed() -> Probe {
        let reading = |median| Reading { median, low: median * 0.9, high: median * 1.01, repeats: 5 };
        let stream = StreamRate { kernel: "read".into(), threads: 8, rate: reading(50e9), ..StreamRate::default() };
        let math = |math: &str, rate| MathRate {
            math: math.into(),
            instructions: "AVX2".into(),
            threads: 8,
            rate: reading(rate),
        };
        let processor = Processor {
            name: "A processor \"quoted\"".into(),
            vendor: "AMD".into(),
            architecture: "x86_64".into(),
            sockets: 1,
            cores: 8,
            memory_bytes: 64e9,
            bandwidth: vec![stream],
            peaks: vec![math("fp32", 1e12), math("int8", 2e12)],
            ..Processor::default()
        };
        Probe { tool: "rackmath 0.1.0".into(), date: "2026-11-16".into(), processor, ..Probe::default() }
    }

    #[test]
    fn a_probed_processor_is_a_chip_that_reads_back() {
        let text = probed().chip_file(Known { chip: None }).unwrap();
        let chip = crate::chip::read("my", &text).unwrap();
        assert!(chip.processor && (chip.memory.bandwidth.value.get() - 50e9).abs() < 1.0, "{text}");
        assert_eq!(chip.peak[&Math::Fp32].value.get(), 1e12);
        assert!(chip.memory.bandwidth.source.contains("probe of this machine, 2026-11-16"));
    }

    #[test]
    fn a_probed_device_is_a_chip_and_comes_before_the_processor() {
        let mut probe = probed();
        let rate = Reading::of([4.3e12]).unwrap();
        let product = Product { math: "bf16".into(), m: 8192, n: 8192, k: 8192, rate: 7.7e14, ..Product::default() };
        probe.devices.push(Device {
            vendor: "NVIDIA".into(),
            name: "NVIDIA H200".into(),
            capability: "9.0".into(),
            cores: 132,
            memory_bytes: 150e9,
            bandwidth: vec![DeviceRate { kernel: "read".into(), bytes: 4e9, rate }],
            products: vec![product],
            ..Device::default()
        });
        let text = probe.chip_file(Known { chip: None }).unwrap();
        let chip = crate::chip::read("my", &text).unwrap();
        assert!(!chip.processor && chip.peak[&Math::Bf16].value.get() == 7.7e14, "{text}");
        // Where the sheet is known it stands in the file, with what was measured beside it, unless the card is far from it.
        let mut known = chip.clone();
        known.memory.bandwidth.value = known.memory.bandwidth.value * 1.1;
        known.peak.values_mut().for_each(|peak| peak.value = peak.value * 2.0);
        let text = probe.chip_file(Known { chip: Some(&known) }).unwrap();
        let saved = crate::chip::read("my", &text).unwrap();
        assert!(
            (saved.memory.bandwidth.value.get() / 4.73e12 - 1.0).abs() < 1e-3
                && saved.peak[&Math::Bf16].value.get() == 7.7e14,
            "{text}"
        );
        // Held against itself nothing is above the sheet; against half its rate all of it is.
        let mut sheet = chip.clone();
        assert_eq!(probe.devices[0].above(&sheet), []);
        sheet.memory.bandwidth.value = sheet.memory.bandwidth.value * 0.5;
        let above = probe.devices[0].above(&sheet);
        assert!(above.len() == 1 && above[0].what == "read bandwidth", "{above:?}");
    }

    #[test]
    fn a_probe_without_figures_gives_no_file() {
        let empty = Probe::default().chip_file(Known { chip: None });
        assert!(empty.unwrap_err().to_string().contains("was not measured"));
    }
}
