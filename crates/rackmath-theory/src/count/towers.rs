//! Pictures and sound as tokens: how many of them a prompt gains, how many patches an encoder sees, and what its weights are.
//!
//! $$ n = \frac{\bar h\,\bar w}{(p\,m)^2} \qquad \bar h = p\,m\,\Big[\frac{h}{p\,m}\Big] \qquad
//!    \beta = \sqrt{\frac{h w}{A}} \Rightarrow \bar h = p\,m\,\Big\lfloor \frac{h}{\beta\,p\,m} \Big\rfloor
//!    \qquad n_{tiles} = n_1\,(r c + 1) \qquad n_{rows} = \Big\lceil \frac{h}{p m} \Big\rceil \Big(\Big\lceil \frac{w}{p m} \Big\rceil + 1\Big)
//!    \qquad n_{sound} = \Big\lfloor \frac{\lceil 100 s / 2 \rceil}{k} \Big\rfloor $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | h, w | height, width | px | the picture as sent |
//! | p, m | patch, merge | px, 1 | a patch; patches along a side that become one token |
//! | A | least, most | px | limits of the area: where rounding leaves them, both sides are scaled by the same β |
//! | n | tokens | 1 | tokens of the prompt, those that a processor writes between and behind tiles and rows with them |
//! | n_1, r, c | tokens of a tile, rows, columns | 1 | tiles of the best grid, and once the whole picture small |
//! | s, k | seconds, pool | s, 1 | sound, and positions of its encoder that become a token |
//!
//! \[x\] is the nearest whole number, the even one of two as near. Which grid is best differs: LLaVA wastes the fewest pixels,
//! InternVL is nearest in shape, Llama 4 scales least. Source: the rules of the processors that the makers publish with
//! their models; counts of the processors in `transformers` 5.22.2 for 1,000 sizes of each family, of which the test beside
//! this page keeps some. Ignores: tokens a chat template writes around a picture.

use super::params::{Tensor, block_tensors, outer_tensors};
use rackmath_spec::model::Shape;
use rackmath_spec::tower::{Rule, Sense, Tower, Window};
use rackmath_units::Bytes;

/// A picture in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u64,
    pub height: u64,
}

/// What an encoder is given and a prompt gains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub tokens: u64,
    /// Sequences that the encoder takes apart from each other: tiles, pictures, windows.
    pub sequences: u64,
    /// Patches of each.
    pub patches: u64,
}

impl Seen {
    pub fn all_patches(&self) -> u64 {
        self.sequences * self.patches
    }
}

/// Longest side of a picture over its shortest that processors take.
pub const LONGEST: u64 = 200;

/// Steps of a spectrogram in a second of sound, and in the window such encoders were made for.
const STEPS: f64 = 100.0;
const WINDOW: u64 = 3000;

/// A picture by a rule; none of a rule for sound.
pub fn picture(rule: &Rule, p: Picture) -> Seen {
    let Picture { width: w, height: h } = Picture { width: p.width.max(1), height: p.height.max(1) };
    let one = |tokens, patches| Seen { tokens, sequences: 1, patches };
    match rule {
        Rule::Rounded { patch, merge, least, most, frames, .. } => {
            let (rows, columns) = rounded((h, w), patch * merge, (*least, *most), *frames);
            one(rows * columns, rows * columns * merge * merge)
        }
        Rule::Fixed { patches, tokens } => one(*tokens, *patches),
        Rule::AnyRes { tile, side, patches, grids, most } => any_res((h, w), *tile, *side, *patches, grids, *most),
        Rule::Rows { patch, merge, longest } => {
            let (step, longest) = (patch * merge, *longest as f64);
            let ratio = (h as f64 / longest).max(w as f64 / longest);
            let fit = |side: u64| if ratio > 1.0 { (side as f64 / ratio).floor().max(1.0) as u64 } else { side };
            let (rows, columns) = (fit(h).div_ceil(step), fit(w).div_ceil(step));
            one(rows * (columns + 1), rows * columns * merge * merge)
        }
        Rule::Tiles { tile, most, patches, tokens, around } => {
            let n = match nearest_grid((h, w), *tile, *most) {
                1 => 1,
                // And the whole picture small.
                tiles => tiles + 1,
            };
            Seen { tokens: n * tokens + around, sequences: n, patches: *patches }
        }
        Rule::Canvas { tile, most, patches, tokens } => {
            let (rows, columns) = least_scaled((h, w), *tile, *most);
            let tiles = rows * columns;
            // One token behind every tile: between two of a row, or at its end. Around all a begin, the mark of the small picture and an end.
            let (tiles, marks) = if tiles > 1 { (tiles + 1, tiles) } else { (1, 0) };
            Seen { tokens: tiles * tokens + marks + 3, sequences: tiles, patches: *patches }
        }
        Rule::Padded { patch, merge, most, side } => {
            let (rows, columns) = padded((h, w), *patch, *merge, *most, *side);
            one(rows * columns, rows * columns * merge * merge)
        }
        Rule::Filled { patch, pool, tokens } => {
            let (rows, columns) = filled((h, w), *patch, *pool, *tokens);
            one(rows * columns, rows * columns * pool * pool)
        }
        Rule::Sound { .. } => Seen::default(),
    }
}

/// What the picture of most tokens becomes: large ones of several shapes are tried, as engines do before they serve any.
pub fn largest(rule: &Rule) -> Seen {
    const SIDE: u64 = 8192;
    let shapes =
        [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2), (1, 4), (4, 1), (3, 4), (4, 3), (1, 6), (6, 1)];
    let seen = shapes.map(|(w, h)| picture(rule, Picture { width: SIDE * w, height: SIDE * h }));
    seen.into_iter().max_by_key(|seen| seen.tokens).unwrap_or_default()
}

/// Frames of a film by a rule: pairs of frames are one picture where patches span two, else each is one.
pub fn film(rule: &Rule, p: Picture, frames: u64) -> Seen {
    let pictures = match rule {
        Rule::Rounded { pair, .. } => frames.div_ceil((*pair).max(1)),
        _ => frames,
    };
    let one = picture(rule, p);
    Seen { tokens: one.tokens * pictures, sequences: one.sequences * pictures, patches: one.patches }
}

/// Seconds of sound by a rule; none of a rule for pictures.
pub fn sound(rule: &Rule, seconds: f64) -> Seen {
    let Rule::Sound { pool, window } = rule else { return Seen::default() };
    let steps = (seconds * STEPS).round().max(0.0) as u64;
    if steps == 0 {
        return Seen::default();
    }
    let (sequences, steps) = match window {
        Window::Padded => (steps.div_ceil(WINDOW), WINDOW),
        Window::Cut => (1, steps.min(WINDOW)),
        Window::Open => (1, steps),
    };
    // A convolution takes every other step, and a pool needs all of its positions.
    let patches = steps.div_ceil(2);
    Seen { tokens: sequences * (patches / pool), sequences, patches }
}

/// Rows and columns of tokens where both sides are rounded and the area is kept within limits.
fn rounded((h, w): (u64, u64), step: u64, (least, most): (u64, u64), frames: u64) -> (u64, u64) {
    let (mut height, mut width, unit) = (h as f64, w as f64, step as f64);
    // Where two frames are counted, small pictures are first enlarged to one token.
    if frames > 1 && (height < unit || width < unit) {
        let scale = (unit / height).max(unit / width);
        (height, width) = ((height * scale).floor(), (width * scale).floor());
    }
    let frames = frames as f64;
    let near = |side: f64| (side / unit).round_ties_even();
    let (rows, columns) = (near(height), near(width));
    let area = frames * rows * columns * unit * unit;
    let (rows, columns) = if area > most as f64 {
        let beta = (frames * height * width / most as f64).sqrt();
        let down = |side: f64| (side / beta / unit).floor().max(1.0);
        (down(height), down(width))
    } else if area < least as f64 {
        let beta = (least as f64 / (frames * height * width)).sqrt();
        let up = |side: f64| (side * beta / unit).ceil();
        (up(height), up(width))
    } else {
        (rows, columns)
    };
    (rows as u64, columns as u64)
}

fn any_res((h, w): (u64, u64), tile: u64, side: u64, patches: u64, grids: &[(u64, u64)], most: Option<u64>) -> Seen {
    let (height, width) = best_grid((h, w), grids);
    let (rows, columns) = (height / tile, width / tile);
    let (mut tall, mut wide) = (side * rows, side * columns);
    // Half-filled rows or columns of tokens on both sides are taken off.
    let kept = |length: u64, scale: f64| ((length as f64 * scale * 1e7).round_ties_even() / 1e7).floor() as u64;
    if w as f64 / h as f64 > wide as f64 / tall as f64 {
        tall -= tall.saturating_sub(kept(h, wide as f64 / w as f64)) / 2 * 2;
    } else {
        wide -= wide.saturating_sub(kept(w, tall as f64 / h as f64)) / 2 * 2;
    }
    if let Some(most) = most {
        let ratio = ((tall * wide) as f64 / (most * side * side) as f64).sqrt();
        // A little too many are left as they are.
        if ratio > 1.1 {
            // Exactly the whole times the ratio fits: a quotient just below a whole number must not be rounded up to it.
            let fits = |side: u64| ((side as f64 - side as f64 % ratio) / ratio).round() as u64;
            (tall, wide) = (fits(tall), fits(wide));
        }
    }
    Seen { tokens: side * side + tall * wide + tall, sequences: rows * columns + 1, patches }
}

/// The grid that keeps the most pixels, of those the one with the fewest to spare.
fn best_grid((h, w): (u64, u64), grids: &[(u64, u64)]) -> (u64, u64) {
    let mut best = (grids[0], 0_u64, u64::MAX);
    for &(height, width) in grids {
        let scale = (width as f64 / w as f64).min(height as f64 / h as f64);
        let fit = |side: u64| (side as f64 * scale) as u64;
        let kept = (fit(w) * fit(h)).min(w * h);
        let spare = width * height - kept;
        if kept > best.1 || (kept == best.1 && spare < best.2) {
            best = ((height, width), kept, spare);
        }
    }
    best.0
}

/// Tiles of the grid nearest in shape; of equally near ones the larger, while the picture has half the pixels of it.
fn nearest_grid((h, w): (u64, u64), tile: u64, most: u64) -> u64 {
    let shape = w as f64 / h as f64;
    let area = (w * h) as f64;
    let mut best = (f64::INFINITY, 1);
    // In the order of their size; of one size, the narrow ones first.
    for tiles in 1..=most {
        for columns in (1..=tiles).filter(|c| tiles % c == 0) {
            let off = (shape - columns as f64 / (tiles / columns) as f64).abs();
            let large = area > 0.5 * (tile * tile * tiles) as f64;
            if off < best.0 || (off == best.0 && large) {
                best = (off, tiles);
            }
        }
    }
    best.1
}

/// Rows and columns of the canvas to which a picture is enlarged least, or shrunk least where none is large enough; of those
/// the smallest.
fn least_scaled((h, w): (u64, u64), tile: u64, most: u64) -> (u64, u64) {
    // (whether it shrinks, by how much it is scaled away from 1, tiles): the least of them.
    let mut best = ((true, f64::INFINITY, u64::MAX), (1, 1));
    for rows in 1..=most {
        for columns in 1..=most / rows {
            // In 32 bits, as it is computed there: ties are ties.
            let scale = ((rows * tile) as f32 / h as f32).min((columns * tile) as f32 / w as f32);
            let shrinks = scale < 1.0;
            let key = (shrinks, if shrinks { -f64::from(scale) } else { f64::from(scale) }, rows * columns);
            if key < best.0 {
                best = (key, (rows, columns));
            }
        }
    }
    best.1
}

fn padded((h, w): (u64, u64), patch: u64, merge: u64, most: u64, side: u64) -> (u64, u64) {
    let count = ((h / patch).max(1) * (w / patch).max(1)) as f64;
    let along = |length: u64| (side * patch) as f64 / length as f64;
    let scale = (most as f64 / count).sqrt().min(along(h)).min(along(w)).min(1.0);
    let fit = |length: u64| ((length as f64 * scale) as u64).clamp(1, side * patch).div_ceil(patch * merge);
    (fit(h), fit(w))
}

fn filled((h, w): (u64, u64), patch: u64, pool: u64, tokens: u64) -> (u64, u64) {
    let (height, width, step) = (h as f64, w as f64, (patch * pool) as f64);
    let pixels = (tokens * pool * pool * patch * patch) as f64;
    let factor = (pixels / (height * width)).sqrt();
    let down = |side: f64| (factor * side / step).floor() as u64;
    match (down(height), down(width)) {
        (0, _) => (1, (w / h).clamp(1, tokens)),
        (_, 0) => ((h / w).clamp(1, tokens), 1),
        both => both,
    }
}

/// Parameters of a tower, exact.
pub fn tower_params(tower: &Tower) -> u128 {
    let shape = &tower.layers;
    let layers: u128 = shape
        .runs
        .iter()
        .map(|run| u128::from(run.n) * block_tensors(shape, &run.block).iter().map(Tensor::params).sum::<u128>())
        .sum();
    let outer: u128 = outer_tensors(shape).iter().map(Tensor::params).sum();
    let products: u128 = tower
        .products
        .iter()
        .map(|p| u128::from(p.d_in) * u128::from(p.d_out) + u128::from(if p.bias { p.d_out } else { 0 }))
        .sum();
    layers + outer + products + u128::from(tower.vectors)
}

/// Those of all towers of a model.
pub fn towers_params(shape: &Shape) -> u128 {
    shape.towers.iter().map(tower_params).sum()
}

/// Bytes of a weight of a tower: checkpoints in narrower formats leave towers in 16 bits.
pub const TOWER_BYTES: f64 = 2.0;

pub fn towers_bytes(shape: &Shape) -> Bytes {
    Bytes::b(towers_params(shape) as f64 * TOWER_BYTES)
}

/// The tower for pictures or for sound.
pub fn tower(shape: &Shape, sense: Sense) -> Option<&Tower> {
    shape.towers.iter().find(|t| t.sense == sense)
}
