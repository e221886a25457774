//! A product of two square matrices in fp32, tiled by hand: what a program gets of the units' peak.
//!
//! ```text
//! C[i, j] = sum over k of A[i, k] B[k, j]            2 n^3 FLOP
//! ```
//!
//! Blocks of A (MC x KC) stay in the second cache and panels of B (KC x NR) in the first, both packed in the order they are read;
//! a tile of MR x NR sums stays in registers. Source: Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication".
//! Threads share packed B and split rows of C. Ignores: edges; n is a multiple of every block.

use super::pages::Pages;
use super::team::Team;
use rackmath_spec::probe::{Missing, Product, Reading};

/// Depth of a block, rows of a block of A.
const KC: usize = 256;
const MC: usize = 96;
/// A multiple of the rows of every tile.
const TILES: usize = 12;

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

/// Rows `from..to` of C, n wide, from a block of rows of A and all of B, packed.
struct Part {
    a: Pages,
    c: Pages,
    block: Pages,
    panel: Pages,
    rows: usize,
}

pub fn rate(team: &Team, quick: bool) -> Result<Product, Missing> {
    let what = "fp32 product";
    let threads = team.cpus.len().max(1);
    // Whole blocks, and rows enough for each thread that packing B is little beside multiplying it.
    let n = (384 * threads).next_multiple_of(1536).min(9216);
    let n: usize = if quick { n / 2 } else { n };
    let rows = n.div_ceil(threads).next_multiple_of(TILES);
    let threads_needed = n.div_ceil(rows);
    let mut b = Pages::new(4 * n * n).ok_or_else(|| Missing::new(what, "no memory"))?;
    fill(b.all_mut(), 7);
    let b: &[f32] = &b.all::<f32>()[..n * n];
    let tile = tile();
    let make = |at: usize| -> Option<Part> {
        let rows = if at < threads_needed { rows.min(n - at * rows) } else { 0 };
        let mut a = Pages::new(4 * rows.max(1) * n)?;
        fill(a.all_mut(), at as u32);
        let (c, block, panel) = (Pages::new(4 * rows.max(1) * n)?, Pages::new(4 * MC * KC)?, Pages::new(4 * KC * n)?);
        Some(Part { a, c, block, panel, rows })
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
    let rows = part.rows;
    let (a, c) = (&part.a.all::<f32>()[..rows * n], &mut part.c.all_mut::<f32>()[..rows * n]);
    c.fill(0.0);
    for k in (0..n).step_by(KC) {
        let kc = KC.min(n - k);
        let panel = part.panel.all_mut::<f32>();
        pack_rows(&b[k * n..], n, (kc, n), tile.nr, panel);
        for i in (0..rows).step_by(MC) {
            let mc = MC.min(rows - i);
            let block = part.block.all_mut::<f32>();
            pack_columns(&a[i * n + k..], n, (mc, kc), tile.mr, block);
            for j in (0..n).step_by(tile.nr) {
                let b = &panel[j * kc..(j + tile.nr) * kc];
                for r in (0..mc).step_by(tile.mr) {
                    (tile.run)(kc, &block[r * kc..(r + tile.mr) * kc], b, &mut c[(i + r) * n + j..], n);
                }
            }
        }
    }
}

/// `height` rows of `width` numbers, `ld` apart, in panels of `nr` columns: row after row within a panel.
fn pack_rows(from: &[f32], ld: usize, (height, width): (usize, usize), nr: usize, to: &mut [f32]) {
    for j in (0..width).step_by(nr) {
        for k in 0..height {
            to[j * height + k * nr..][..nr].copy_from_slice(&from[k * ld + j..][..nr]);
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
        _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps,
        _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
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
        let n = 192;
        let pages = |len: usize, seed| {
            let mut pages = Pages::new(4 * len).unwrap();
            fill(pages.all_mut(), seed);
            pages
        };
        let b = pages(n * n, 3);
        let b = &b.all::<f32>()[..n * n];
        for tile in [tile(), Tile { mr: 4, nr: 8, run: plain }] {
            let zero = |len: usize| Pages::new(4 * len).unwrap();
            let mut part =
                Part { a: pages(n * n, 5), c: zero(n * n), block: zero(MC * KC), panel: zero(KC * n), rows: n };
            multiply(tile, n, &mut part, b);
            let (a, c) = (part.a.all::<f32>(), part.c.all::<f32>());
            for (i, j) in [(0, 0), (1, 17), (95, 31), (96, 190), (191, 191)] {
                let wanted: f64 = (0..n).map(|k| f64::from(a[i * n + k]) * f64::from(b[k * n + j])).sum();
                assert!((f64::from(c[i * n + j]) - wanted).abs() < 1e-3, "{} x {}: {i} {j}", tile.mr, tile.nr);
            }
        }
    }

    #[test]
    fn blocks_fit_every_tile() {
        for (mr, nr) in [(12, 32), (6, 16), (4, 8)] {
            assert_eq!([MC % mr, 768 % nr, 1536 % nr, 768 % MC, 1536 % MC], [0; 5]);
        }
    }
}
