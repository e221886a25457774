//! Pictures of a placement: memory bars per stage, and a rack with its chips, experts and traffic.

use crate::scene::{Anchor, Color, GREY, INK, Scene, WHITE};
use rackmath::layout::{Answer, StageCard};
use rackmath_units::{Bytes, significant};

/// A use of memory: its name, its bytes in a stage, its colour.
type Part = (&'static str, fn(&StageCard) -> f64, Color);

/// What a chip holds, with a colour each.
const PARTS: [Part; 10] = [
    ("routed experts", |s| s.routed_bytes, Color(0, 114, 178)),
    ("shared experts", |s| s.shared_bytes, Color(86, 180, 233)),
    ("attention", |s| s.attention_bytes, Color(0, 158, 115)),
    ("dense networks", |s| s.dense_bytes, Color(0, 110, 80)),
    ("embedding, head", |s| s.embedding_bytes, Color(150, 110, 190)),
    ("routers, norms", |s| s.other_bytes, Color(140, 140, 140)),
    ("KV cache", |s| s.kv_bytes, Color(230, 159, 0)),
    ("activations", |s| s.activation_bytes, Color(213, 94, 0)),
    ("buffers", |s| s.buffer_bytes, Color(204, 121, 167)),
    ("reserve", |s| s.reserve_bytes, Color(215, 215, 215)),
];

fn heading(scene: &mut Scene, a: &Answer) {
    scene.text((30.0, 34.0), 20.0, true, Anchor::Start, INK, format!("{} on {}: {}", a.model, a.system, a.layout));
    scene.text((30.0, 58.0), 13.0, false, Anchor::Start, GREY, a.verdict.clone());
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
        scene.text((left - 12.0, y + 20.0), 13.0, false, Anchor::End, INK, format!("stage {}", s.stage));
        scene.text((left - 12.0, y + 34.0), 10.0, false, Anchor::End, GREY, format!("{} chips", s.chips));
        let mut x = left;
        for (_, of, color) in PARTS {
            let w = of(s) * scale;
            scene.rect((x, y, w, row - 12.0), color);
            x += w;
        }
        scene.text((x + 6.0, y + 22.0), 11.0, false, Anchor::Start, GREY, Bytes::b(s.total_bytes).to_string());
    }
    let full = left + a.capacity_bytes * scale;
    let bottom = 90.0 + row * shown.len() as f64;
    scene.line(vec![(full, 78.0), (full, bottom)], Color(200, 30, 30), 2.0, true);
    scene.text(
        (full, 74.0),
        11.0,
        true,
        Anchor::End,
        Color(200, 30, 30),
        format!("chip: {}", Bytes::b(a.capacity_bytes)),
    );
    legend(&mut scene, &shown, bottom + 24.0, width);
    scene
}

fn legend(scene: &mut Scene, stages: &[&StageCard], top: f64, width: f64) {
    let (mut x, mut y) = (30.0, top);
    for (name, of, color) in PARTS {
        if stages.iter().all(|s| of(s) <= 0.0) {
            continue;
        }
        let wide = 28.0 + crate::font::width(name, 12.0, false) + 16.0;
        if x + wide > width - 20.0 {
            (x, y) = (30.0, y + 20.0);
        }
        scene.rect((x, y, 16.0, 12.0), color);
        scene.text((x + 22.0, y + 10.5), 12.0, false, Anchor::Start, INK, name);
        x += wide;
    }
}

/// The chips of a stage as boxes filled with what they hold, experts named, and the split of the traffic below.
pub fn rack(a: &Answer) -> Scene {
    let chips = a.stages.first().map_or(1, |s| s.chips).max(1);
    // Idle chips of a single rack are drawn empty.
    let idle = if a.stages.len() == 1 {
        a.chips_available.saturating_sub(a.chips).min(144u64.saturating_sub(chips))
    } else {
        0
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
        let layers = if stage.layers > 0 {
            format!(", layers {} to {}", stage.first_layer, stage.first_layer + stage.layers - 1)
        } else {
            String::new()
        };
        scene.text(
            (30.0, top + 14.0),
            13.0,
            true,
            Anchor::Start,
            INK,
            format!("stage {} of {}{layers}", stage.stage, a.stages.len()),
        );
        for chip in 0..shown {
            let x = 30.0 + (chip % columns) as f64 * (side + gap);
            let y = top + 24.0 + (chip / columns) as f64 * (tall + gap);
            if chip < chips {
                chip_box(&mut scene, a, stage, chip, (x, y, side, tall));
            } else {
                scene.rect((x, y, side, tall), Color(242, 242, 242));
                scene.text((x + side / 2.0, y + tall / 2.0 + 4.0), 10.0, false, Anchor::Middle, GREY, "idle");
            }
        }
    }
    let mut y = 84.0 + block * stages as f64 + 10.0;
    if chips > 144 || a.stages.len() > stages {
        scene.text(
            (30.0, y),
            12.0,
            false,
            Anchor::Start,
            GREY,
            format!("{} chips per stage, {} stages in all", chips, a.stages.len()),
        );
    }
    y += 16.0;
    traffic_bars(&mut scene, a, y);
    let cards: Vec<&StageCard> = a.stages.iter().collect();
    legend(&mut scene, &cards, height - 48.0, width);
    scene
}

fn chip_box(scene: &mut Scene, a: &Answer, s: &StageCard, chip: u64, at: (f64, f64, f64, f64)) {
    let (x, y, w, h) = at;
    scene.rect((x, y, w, h), Color(242, 242, 242));
    // Filled from the bottom in proportion to its memory.
    let most = a.capacity_bytes.max(s.total_bytes);
    let mut bottom = y + h;
    for (_, of, color) in PARTS {
        let tall = of(s) / most * h;
        scene.rect((x, bottom - tall, w, tall), color);
        bottom -= tall;
    }
    let edge = if s.total_bytes > a.capacity_bytes { Color(200, 30, 30) } else { GREY };
    scene.line(vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)], edge, 1.2, false);
    if let Some(e) = a.experts.as_ref().filter(|_| w > 40.0) {
        let per = e.slots_per_chip;
        let rank = chip as f64 % (e.slots as f64 / per).max(1.0);
        let (first, last) = ((rank * per).floor(), ((rank + 1.0) * per - 1.0).floor());
        let name = if last > first { format!("e{first:.0}-{last:.0}") } else { format!("e{first:.0}") };
        scene.rect((x + 2.0, y + 2.0, w - 4.0, 14.0), WHITE);
        scene.text((x + w / 2.0, y + 13.0), 10.0, true, Anchor::Middle, INK, name);
    }
}

fn traffic_bars(scene: &mut Scene, a: &Answer, top: f64) {
    let most = a.traffic.iter().filter_map(|t| t.seconds).fold(0.0, f64::max);
    for (i, t) in a.traffic.iter().enumerate() {
        let y = top + 26.0 * i as f64;
        let w = t.seconds.filter(|_| most > 0.0).map_or(2.0, |s| (s / most * 380.0).max(2.0));
        scene.text((330.0, y + 12.0), 12.0, false, Anchor::End, INK, format!("{} ({})", t.what, t.network));
        scene.rect((340.0, y, w, 16.0), Color(86, 180, 233));
        let time = t.seconds.map_or(String::new(), |s| format!(", {} us at full bandwidth", significant(s * 1e6, 3)));
        let label = format!("{}{time}", Bytes::b(t.bytes));
        scene.text((348.0 + w, y + 12.0), 11.0, false, Anchor::Start, GREY, label);
    }
}

/// A grid of passes: one row per stage, time across, idle shaded. Several schedules are drawn below each other.
pub fn pipeline(a: &rackmath::pipeline::Answer) -> Scene {
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
        scene.text((left, top - 26.0), 16.0, true, Anchor::Start, INK, title);
        let idle = format!(
            "idle {} %, at most {} micro-batches held",
            significant(run.idle * 100.0, 3),
            significant(run.peak_micro_batches, 3)
        );
        scene.text((left, top - 9.0), 12.0, false, Anchor::Start, GREY, idle);
        for device in 0..stages {
            let y = top + row * device as f64;
            scene.text((left - 10.0, y + row * 0.65), 11.0, false, Anchor::End, INK, format!("stage {device}"));
            // Idle is what the passes leave uncovered.
            scene.rect((left, y + 1.0, run.makespan_s * scale, row - 2.0), Color(225, 225, 225));
        }
        for cell in run.cells.iter().filter(|c| c.device < stages) {
            let (x, y) = (left + cell.start_s * scale, top + row * cell.device as f64);
            let w = ((cell.end_s - cell.start_s) * scale - 0.8).max(0.4);
            let fill = match (cell.kind.as_str(), cell.chunk % 2) {
                ("F" | "token", 0) => Color(86, 180, 233),
                ("F" | "token", _) => Color(0, 114, 178),
                ("B" | "BW", 0) => Color(80, 190, 150),
                ("B" | "BW", _) => Color(0, 140, 100),
                _ => Color(230, 159, 0),
            };
            // Of a pair, the forward takes the upper half and the backward the lower.
            let (from, tall) = match (cell.paired, cell.kind.as_str()) {
                (false, _) => (1.0, row - 2.0),
                (true, "F") => (1.0, row / 2.0 - 1.0),
                (true, _) => (row / 2.0, row / 2.0 - 1.0),
            };
            scene.rect((x, y + from, w, tall), fill);
            if w > 13.0 && row >= 14.0 && !cell.paired {
                scene.text(
                    (x + w / 2.0, y + row * 0.68),
                    10.0,
                    false,
                    Anchor::Middle,
                    INK,
                    cell.micro_batch.to_string(),
                );
            }
        }
    }
    let mut x = left;
    for (name, fill) in [
        ("forward", Color(86, 180, 233)),
        ("backward", Color(80, 190, 150)),
        ("weight gradient", Color(230, 159, 0)),
        ("idle", Color(225, 225, 225)),
    ] {
        scene.rect((x, height - 28.0, 16.0, 12.0), fill);
        scene.text((x + 22.0, height - 17.5), 12.0, false, Anchor::Start, INK, name);
        x += 40.0 + crate::font::width(name, 12.0, false) + 16.0;
    }
    scene
}
