//! Pictures of a placement: memory bars per stage, and a rack with its chips, experts and traffic.

use crate::font;
use crate::scene::{Color, GREY, Scene, Text, WHITE};
use crate::words::words;
use rackmath::layout::{Answer, StageCard};
use rackmath::pipeline;
use rackmath_units::{Bytes, significant};

/// A use of a chip's memory.
pub(crate) struct Part {
    pub name: &'static str,
    pub of: fn(&StageCard) -> f64,
    color: Color,
    /// Its block in a terminal, and its colour there.
    pub letter: char,
    pub tint: u8,
}

pub(crate) const PARTS: [Part; 10] = [
    Part { name: "routed experts", of: |s| s.routed_bytes, color: Color(0, 114, 178), letter: 'E', tint: 39 },
    Part { name: "shared experts", of: |s| s.shared_bytes, color: Color(86, 180, 233), letter: 'S', tint: 45 },
    Part { name: "attention", of: |s| s.attention_bytes, color: Color(0, 158, 115), letter: 'A', tint: 35 },
    Part { name: "dense networks", of: |s| s.dense_bytes, color: Color(0, 110, 80), letter: 'D', tint: 29 },
    Part { name: "embedding, head", of: |s| s.embedding_bytes, color: Color(150, 110, 190), letter: 'V', tint: 141 },
    Part { name: "routers, norms", of: |s| s.other_bytes, color: Color(140, 140, 140), letter: 'n', tint: 245 },
    Part { name: "KV cache", of: |s| s.kv_bytes, color: Color(230, 159, 0), letter: 'K', tint: 214 },
    Part { name: "activations", of: |s| s.activation_bytes, color: Color(213, 94, 0), letter: 'a', tint: 203 },
    Part { name: "buffers", of: |s| s.buffer_bytes, color: Color(204, 121, 167), letter: 'b', tint: 131 },
    Part { name: "reserve", of: |s| s.reserve_bytes, color: Color(215, 215, 215), letter: '.', tint: 240 },
];

const RED: Color = Color(200, 30, 30);
const EMPTY: Color = Color(242, 242, 242);

fn heading(scene: &mut Scene, a: &Answer) {
    scene.write(Text::new((30.0, 34.0), 20.0, format!("{} on {}: {}", a.model, a.system, a.layout)).bold());
    scene.write(Text::new((30.0, 58.0), 13.0, words(&a.verdict)).grey());
}

/// One bar per stage, filled with what each of its chips holds, and a line where the chip is full.
pub fn memory_bars(a: &Answer) -> Scene {
    let shown: Vec<&StageCard> = a.stages.iter().take(16).collect();
    let (width, row) = (960.0, 46.0);
    let height = 150.0 + row * shown.len() as f64 + 60.0;
    let (left, right) = (120.0, 40.0);
    let most = shown.iter().map(|s| s.total_bytes).fold(a.capacity_bytes, f64::max);
    let scale = (width - left - right) / most;
    let mut scene = Scene::new(width, height);
    heading(&mut scene, a);
    for (i, s) in shown.iter().enumerate() {
        let y = 90.0 + row * i as f64;
        scene.write(Text::new((left - 12.0, y + 20.0), 13.0, format!("stage {}", s.stage)).end());
        scene.write(Text::new((left - 12.0, y + 34.0), 10.0, format!("{} chips", s.chips)).end().grey());
        let mut x = left;
        for part in &PARTS {
            let w = (part.of)(s) * scale;
            scene.rect((x, y, w, row - 12.0), part.color);
            x += w;
        }
        scene.write(Text::new((x + 6.0, y + 22.0), 11.0, Bytes::b(s.total_bytes).to_string()).grey());
    }
    let full = left + a.capacity_bytes * scale;
    let bottom = 90.0 + row * shown.len() as f64;
    scene.line(vec![(full, 78.0), (full, bottom)], RED, 2.0, true);
    let capacity = format!("chip: {}", Bytes::b(a.capacity_bytes));
    scene.write(Text::new((full, 74.0), 11.0, capacity).bold().end().colored(RED));
    legend(&mut scene, &shown, bottom + 24.0, width);
    scene
}

fn legend(scene: &mut Scene, stages: &[&StageCard], top: f64, width: f64) {
    let (mut x, mut y) = (30.0, top);
    for part in PARTS.iter().filter(|p| stages.iter().any(|s| (p.of)(s) > 0.0)) {
        let wide = 28.0 + font::width(part.name, 12.0, false) + 16.0;
        if x + wide > width - 20.0 {
            (x, y) = (30.0, y + 20.0);
        }
        sample(scene, (x, y), part.name, part.color);
        x += wide;
    }
}

/// A colour and what it stands for.
fn sample(scene: &mut Scene, (x, y): (f64, f64), name: &str, color: Color) {
    scene.rect((x, y, 16.0, 12.0), color);
    scene.write(Text::new((x + 22.0, y + 10.5), 12.0, name));
}

/// The chips of a stage as boxes filled with what they hold, experts named, and the split of the traffic below.
pub fn rack(a: &Answer) -> Scene {
    let chips = a.stages.first().map_or(1, |s| s.chips).max(1);
    // Idle chips of a single rack are drawn empty.
    let idle = match a.stages.len() {
        1 => a.chips_available.saturating_sub(a.chips).min(144u64.saturating_sub(chips)),
        _ => 0,
    };
    let shown = chips.min(144) + idle;
    let columns = match shown {
        n if n <= 8 => n,
        n if n <= 36 => 9.min(n),
        _ => 12,
    };
    let rows = shown.div_ceil(columns);
    let (width, gap) = (960.0, 8.0);
    let side = (width - 60.0) / columns as f64 - gap;
    let tall = (side * 0.75).clamp(44.0, 110.0);
    let stages = a.stages.len().min(4);
    let block = rows as f64 * (tall + gap) + 34.0;
    let height = 90.0 + block * stages as f64 + 40.0 + 26.0 * a.traffic.len() as f64 + 60.0;
    let mut scene = Scene::new(width, height);
    heading(&mut scene, a);
    for (i, stage) in a.stages.iter().take(stages).enumerate() {
        let top = 84.0 + block * i as f64;
        let layers = match stage.layers {
            0 => String::new(),
            n => format!(", layers {} to {}", stage.first_layer, stage.first_layer + n - 1),
        };
        let name = format!("stage {} of {}{layers}", stage.stage, a.stages.len());
        scene.write(Text::new((30.0, top + 14.0), 13.0, name).bold());
        for chip in 0..shown {
            let x = 30.0 + (chip % columns) as f64 * (side + gap);
            let y = top + 24.0 + (chip / columns) as f64 * (tall + gap);
            scene.rect((x, y, side, tall), EMPTY);
            if chip < chips {
                chip_box(&mut scene, a, stage, chip, (x, y, side, tall));
            } else {
                scene.write(Text::new((x + side / 2.0, y + tall / 2.0 + 4.0), 10.0, "idle").middle().grey());
            }
        }
    }
    let y = 84.0 + block * stages as f64 + 10.0;
    if chips > 144 || a.stages.len() > stages {
        let all = format!("{chips} chips per stage, {} stages in all", a.stages.len());
        scene.write(Text::new((30.0, y), 12.0, all).grey());
    }
    traffic_bars(&mut scene, a, y + 16.0);
    legend(&mut scene, &a.stages.iter().collect::<Vec<_>>(), height - 48.0, width);
    scene
}

fn chip_box(scene: &mut Scene, a: &Answer, s: &StageCard, chip: u64, (x, y, w, h): (f64, f64, f64, f64)) {
    // Filled from the bottom in proportion to its memory.
    let most = a.capacity_bytes.max(s.total_bytes);
    let mut bottom = y + h;
    for part in &PARTS {
        let tall = (part.of)(s) / most * h;
        scene.rect((x, bottom - tall, w, tall), part.color);
        bottom -= tall;
    }
    let edge = if s.total_bytes > a.capacity_bytes { RED } else { GREY };
    scene.line(vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)], edge, 1.2, false);
    if let Some(e) = a.experts.as_ref().filter(|_| w > 40.0) {
        let per = e.slots_per_chip;
        let rank = chip as f64 % (e.slots as f64 / per).max(1.0);
        let (first, last) = ((rank * per).floor(), ((rank + 1.0) * per - 1.0).floor());
        let name = if last > first { format!("e{first:.0}-{last:.0}") } else { format!("e{first:.0}") };
        scene.rect((x + 2.0, y + 2.0, w - 4.0, 14.0), WHITE);
        scene.write(Text::new((x + w / 2.0, y + 13.0), 10.0, name).bold().middle());
    }
}

fn traffic_bars(scene: &mut Scene, a: &Answer, top: f64) {
    let most = a.traffic.iter().filter_map(|t| t.seconds).fold(0.0, f64::max);
    for (i, t) in a.traffic.iter().enumerate() {
        let y = top + 26.0 * i as f64;
        let w = t.seconds.filter(|_| most > 0.0).map_or(2.0, |s| (s / most * 380.0).max(2.0));
        scene.write(Text::new((330.0, y + 12.0), 12.0, format!("{} ({})", t.what, t.network)).end());
        scene.rect((340.0, y, w, 16.0), Color(86, 180, 233));
        let time = t.seconds.map_or(String::new(), |s| format!(", {} us at full bandwidth", significant(s * 1e6, 3)));
        scene.write(Text::new((348.0 + w, y + 12.0), 11.0, format!("{}{time}", Bytes::b(t.bytes))).grey());
    }
}

const FORWARD: [Color; 2] = [Color(86, 180, 233), Color(0, 114, 178)];
const BACKWARD: [Color; 2] = [Color(80, 190, 150), Color(0, 140, 100)];
const GRADIENT: Color = Color(230, 159, 0);
const IDLE: Color = Color(225, 225, 225);

/// A grid of passes: one row per stage, time across, idle shaded. Several schedules are drawn below each other.
pub fn pipeline(a: &pipeline::Answer) -> Scene {
    let (width, left) = (1200.0, 90.0);
    let stages = a.request.stages.min(32);
    let row = (320.0 / stages as f64).clamp(12.0, 34.0);
    let block = row * stages as f64 + 74.0;
    let height = 30.0 + block * a.runs.len() as f64 + 40.0;
    let mut scene = Scene::new(width, height);
    let longest = a.runs.iter().map(|r| r.makespan_s).fold(0.0, f64::max);
    let scale = (width - left - 30.0) / longest.max(f64::MIN_POSITIVE);
    for (i, run) in a.runs.iter().enumerate() {
        let top = 60.0 + block * i as f64;
        let title = format!("{}: {} stages, {} micro-batches", run.schedule, a.request.stages, a.request.micro_batches);
        scene.write(Text::new((left, top - 26.0), 16.0, title).bold());
        let [idle, held] = [run.idle * 100.0, run.peak_micro_batches].map(|x| significant(x, 3));
        let idle = format!("idle {idle} %, at most {held} micro-batches held");
        scene.write(Text::new((left, top - 9.0), 12.0, idle).grey());
        for device in 0..stages {
            let y = top + row * device as f64;
            scene.write(Text::new((left - 10.0, y + row * 0.65), 11.0, format!("stage {device}")).end());
            // Idle is what the passes leave uncovered.
            scene.rect((left, y + 1.0, run.makespan_s * scale, row - 2.0), IDLE);
        }
        for cell in run.cells.iter().filter(|c| (c.device as u64) < stages) {
            let (x, y) = (left + cell.start_s * scale, top + row * cell.device as f64);
            let w = ((cell.end_s - cell.start_s) * scale - 0.8).max(0.4);
            let fill = match cell.kind.as_str() {
                "F" | "token" => FORWARD[cell.chunk % 2],
                "B" | "BW" => BACKWARD[cell.chunk % 2],
                _ => GRADIENT,
            };
            // Of a pair, the forward takes the upper half and the backward the lower.
            let (from, tall) = match (cell.paired, cell.kind.as_str()) {
                (false, _) => (1.0, row - 2.0),
                (true, "F") => (1.0, row / 2.0 - 1.0),
                (true, _) => (row / 2.0, row / 2.0 - 1.0),
            };
            scene.rect((x, y + from, w, tall), fill);
            if w > 13.0 && row >= 14.0 && !cell.paired {
                scene.write(Text::new((x + w / 2.0, y + row * 0.68), 10.0, cell.micro_batch.to_string()).middle());
            }
        }
    }
    let mut x = left;
    let kinds = [("forward", FORWARD[0]), ("backward", BACKWARD[0]), ("weight gradient", GRADIENT), ("idle", IDLE)];
    for (name, fill) in kinds {
        sample(&mut scene, (x, height - 28.0), name, fill);
        x += 40.0 + font::width(name, 12.0, false) + 16.0;
    }
    scene
}
