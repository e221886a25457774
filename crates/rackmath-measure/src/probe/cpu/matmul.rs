//! A product of two square matrices in fp32, tiled by hand: what a program gets of the units' peak.
//!
//! ```text
//! C[i, j] = sum over k of A[i, k] B[k, j]            2 n^3 FLOP
//! ```
//!
//! Blocks of A (MC x KC) and of B (KC x NC) stay in the second cache and panels of B (KC x NR) in the first, both packed in the order
//! they are read; a tile of MR x NR sums stays in registers. Source: Goto and van de Geijn 2008, "Anatomy of high-performance matrix
//! multiplication". Threads take rectangles of C, as square as their number allows, so that none packs much of B for few rows of A.
//! Ignores: edges; n is a multiple of every block.

use super::pages::Pages;
use super::team::Team;
use rackmath_spec::probe::{Missing, Product, Reading};

/// Depth of a block, rows of a block of A, columns of one of B.
const KC: usize = 256;
const MC: usize = 192;
const NC: usize = 384;
/// Multiples of the rows and of the columns of every tile.
const TILES: (usize, usize) = (12, 32);

/// Rows and columns of a tile, and what computes it: `c` rows lie `ldc` apart.
#[derive(Clone, Copy)]
struct Tile {
    mr: usize,
    nr: usize,
    /// Adds a packed column of A times a packed row of B, for each of `kc`, to a tile of C.
    run: fn(kc: usize, a: &[f32], b: &[f32], c: &mut [f32], ldc: usize),
}

fn tile() -> Tile {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") {
            return Tile { mr: 12, nr: 32, run: x86::tile512 };
        }
        if has!("avx2") && has!("fma") {
            return Tile { mr: 6, nr: 16, run: x86::tile256 };
        }
    }
    Tile { mr: 4, nr: 8, run: plain }
}

fn plain(kc: usize, a: &[f32], b: &[f32], c: &mut [f32], ldc: usize) {
    let mut sums = [[0.0_f32; 8]; 4];
    for k in 0..kc {
        for (row, a) in sums.iter_mut().zip(&a[4 * k..4 * k + 4]) {
            for (sum, b) in row.iter_mut().zip(&b[8 * k..8 * k + 8]) {
                *sum += a * b;
            }
        }
    }
    for (i, row) in sums.iter().enumerate() {
        for (c, sum) in c[i * ldc..i * ldc + 8].iter_mut().zip(row) {
            *c += sum;
        }
    }
}

/// A rectangle of C from rows of A and columns of B, and where they are packed.
struct Part {
    a: Pages,
    c: Pages,
    block: Pages,
    panel: Pages,
    rows: usize,
    /// The first column and how many.
    columns: (usize, usize),
}

impl Part {
    fn new(n: usize, rows: usize, columns: (usize, usize), seed: u32) -> Option<Self> {
        let pages = |numbers: usize| Pages::new(4 * numbers.max(1));
        let mut a = pages(rows * n)?;
        fill(a.all_mut(), seed);
        Some(Self { a, c: pages(rows * columns.1)?, block: pages(rows * KC)?, panel: pages(KC * NC)?, rows, columns })
    }
}

/// Part `at` of `n` in `parts` pieces of whole tiles: where it begins and how much it is, nothing where the pieces before took all.
fn piece(n: usize, parts: usize, tile: usize, at: usize) -> (usize, usize) {
    let each = n.div_ceil(parts).next_multiple_of(tile);
    let from = (at * each).min(n);
    (from, each.min(n - from))
}

pub fn rate(team: &Team, quick: bool) -> Result<Product, Missing> {
    let what = "fp32 product";
    let threads = team.cpus.len().max(1);
    // Rectangles of C: as many across as the largest divisor up to the root.
    let across = (1..=threads.isqrt()).rev().find(|d| threads.is_multiple_of(*d)).unwrap_or(1);
    let down = threads / across;
    let n = (1536 * (threads - 1).isqrt().saturating_add(1)).min(9216);
    let n: usize = if quick { n / 2 } else { n };
    let mut b = Pages::new(4 * n * n).ok_or_else(|| Missing::new(what, "no memory"))?;
    fill(b.all_mut(), 7);
    let b: &[f32] = &b.all::<f32>()[..n * n];
    let tile = tile();
    let make = |at: usize| -> Option<Part> {
        let rows = if at < threads { piece(n, down, TILES.0, at / across).1 } else { 0 };
        Part::new(n, rows, piece(n, across, TILES.1, at % across), at as u32)
    };
    let times = team
        .timed(if quick || n > 3072 { 4 } else { 9 }, make, |part| multiply(tile, n, part, b))
        .ok_or_else(|| Missing::new(what, "no memory"))?;
    let seconds = Reading::of(times).ok_or_else(|| Missing::new(what, "no repeat took any time"))?;
    let n = n as u64;
    let (flop, bytes) = (2.0 * (n * n * n) as f64, 12.0 * (n * n) as f64);
    Ok(Product { math: "fp32".into(), m: n, n, k: n, seconds, rate: flop / seconds.median, bytes, threads })
}

/// Numbers between -1 and 1 that are the same every time.
fn fill(all: &mut [f32], seed: u32) {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    for x in all {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *x = (state >> 8) as f32 / 8_388_608.0 - 1.0;
    }
}

fn multiply(tile: Tile, n: usize, part: &mut Part, b: &[f32]) {
    let (rows, (first, width)) = (part.rows, part.columns);
    let (a, c) = (&part.a.all::<f32>()[..rows * n], &mut part.c.all_mut::<f32>()[..rows * width]);
    let (block, panel) = (part.block.all_mut::<f32>(), part.panel.all_mut::<f32>());
    c.fill(0.0);
    if c.is_empty() {
        return;
    }
    for k in (0..n).step_by(KC) {
        let kc = KC.min(n - k);
        pack_columns(&a[k..], n, (rows, kc), tile.mr, block);
        for from in (0..width).step_by(NC) {
            let nc = NC.min(width - from);
            pack_rows(&b[k * n + first + from..], n, (kc, nc), tile.nr, panel);
            for i in (0..rows).step_by(MC) {
                for j in (0..nc).step_by(tile.nr) {
                    let b = &panel[j * kc..(j + tile.nr) * kc];
                    for r in (i..rows.min(i + MC)).step_by(tile.mr) {
                        (tile.run)(kc, &block[r * kc..(r + tile.mr) * kc], b, &mut c[r * width + from + j..], width);
                    }
                }
            }
        }
    }
}

/// `height` rows of `width` numbers, `ld` apart, in panels of `nr` columns: row after row within a panel.
fn pack_rows(from: &[f32], ld: usize, (height, width): (usize, usize), nr: usize, to: &mut [f32]) {
    for k in 0..height {
        for (j, part) in from[k * ld..][..width].chunks_exact(nr).enumerate() {
            to[(j * height + k) * nr..][..nr].copy_from_slice(part);
        }
    }
}

/// The same by panels of `mr` rows: column after column within a panel.
fn pack_columns(from: &[f32], ld: usize, (height, width): (usize, usize), mr: usize, to: &mut [f32]) {
    for i in (0..height).step_by(mr) {
        for k in 0..width {
            for r in 0..mr {
                to[i * width + k * mr + r] = from[(i + r) * ld + k];
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{
        _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
        _mm512_storeu_ps,
    };

    macro_rules! tile {
        ($safe:ident, $name:ident, $features:literal, $mr:literal x $lanes:literal, $load:ident, $store:ident, $set:ident, $zero:ident, $fma:ident, $add:ident) => {
            pub fn $safe(kc: usize, a: &[f32], b: &[f32], c: &mut [f32], ldc: usize) {
                assert!(a.len() >= kc * $mr && b.len() >= kc * 2 * $lanes && c.len() >= ($mr - 1) * ldc + 2 * $lanes);
                // SAFETY: chosen only where the instructions are, and the lengths were just looked at.
                unsafe { $name(kc, a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), ldc) }
            }

            #[target_feature(enable = $features)]
            unsafe fn $name(kc: usize, mut a: *const f32, mut b: *const f32, c: *mut f32, ldc: usize) {
                // SAFETY: the caller's lengths hold every address below.
                unsafe {
                    let mut sums = [[$zero(); 2]; $mr];
                    // What the sums are added to is on its way meanwhile.
                    for i in 0..$mr {
                        _mm_prefetch::<_MM_HINT_T0>(c.add(i * ldc).cast());
                        _mm_prefetch::<_MM_HINT_T0>(c.add(i * ldc + $lanes).cast());
                    }
                    for _ in 0..kc {
                        let (left, right) = ($load(b), $load(b.add($lanes)));
                        for (i, row) in sums.iter_mut().enumerate() {
                            let x = $set(*a.add(i));
                            row[0] = $fma(x, left, row[0]);
                            row[1] = $fma(x, right, row[1]);
                        }
                        a = a.add($mr);
                        b = b.add(2 * $lanes);
                    }
                    for (i, row) in sums.iter().enumerate() {
                        for (half, sum) in row.iter().enumerate() {
                            let at = c.add(i * ldc + half * $lanes);
                            $store(at, $add($load(at), *sum));
                        }
                    }
                }
            }
        };
    }

    tile!(tile256, inner256, "avx2,fma", 6 x 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_fmadd_ps, _mm256_add_ps);
    tile!(tile512, inner512, "avx512f", 12 x 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_fmadd_ps, _mm512_add_ps);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiled_product_is_the_product() {
        let (n, rows, columns) = (480, 228, (32, 448));
        let mut b = Pages::new(4 * n * n).unwrap();
        fill(b.all_mut(), 3);
        let b = &b.all::<f32>()[..n * n];
        for tile in [tile(), Tile { mr: 4, nr: 8, run: plain }] {
            let mut part = Part::new(n, rows, columns, 5).unwrap();
            multiply(tile, n, &mut part, b);
            let (a, c) = (part.a.all::<f32>(), part.c.all::<f32>());
            for (i, j) in [(0, 0), (1, 17), (191, 383), (192, 384), (227, 447)] {
                let wanted: f64 = (0..n).map(|k| f64::from(a[i * n + k]) * f64::from(b[k * n + columns.0 + j])).sum();
                assert!((f64::from(c[i * columns.1 + j]) - wanted).abs() < 1e-3, "{} x {}: {i} {j}", tile.mr, tile.nr);
            }
        }
    }

    #[test]
    fn pieces_are_whole_tiles_and_cover_everything_once() {
        for (n, parts, tile) in [(768, 1, 32), (1536, 2, 12), (6144, 4, 32), (9216, 61, 12), (768, 96, 12)] {
            let pieces: Vec<_> = (0..parts).map(|at| piece(n, parts, tile, at)).collect();
            assert_eq!(pieces.iter().map(|p| p.1).sum::<usize>(), n);
            assert!(pieces.iter().all(|p| p.1.is_multiple_of(tile)), "{pieces:?}");
            assert!(pieces.windows(2).all(|p| p[0].0 + p[0].1 == p[1].0), "{pieces:?}");
        }
    }

    #[test]
    fn blocks_fit_every_tile() {
        for (mr, nr) in [(12, 32), (6, 16), (4, 8)] {
            assert_eq!([TILES.0 % mr, TILES.1 % nr, MC % mr, NC % nr, 768 % mr, 768 % nr], [0; 6]);
        }
    }
}
