//! Kernels over arrays at least four times the last cache: read (a sum), copy, triad (a = b + s c), with ordinary stores and with
//! stores that go past the caches.
//!
//! ```text
//! rate  = (reads + writes) / time                    what the program asks for, as STREAM counts
//! moved = (reads + 2 writes) / time                  ordinary stores: the line is read before it is written
//! moved = rate                                       streaming stores, and no stores
//! ```
//!
//! Every thread makes and first touches its own part. Source: McCalpin, STREAM (rules for array sizes and counting).
//! Ignores: processors that notice whole lines being written and spare the read, for which `moved` says too much.

use super::pages::Pages;
use super::team::Team;
use rackmath_spec::probe::{Missing, Processor, Reading, StreamRate};

pub struct Kernel {
    pub name: &'static str,
    what: What,
    streaming: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Read,
    Copy,
    Triad,
}

pub const KERNELS: &[Kernel] = &[
    Kernel { name: "read", what: What::Read, streaming: false },
    Kernel { name: "copy", what: What::Copy, streaming: false },
    Kernel { name: "copy", what: What::Copy, streaming: true },
    Kernel { name: "triad", what: What::Triad, streaming: false },
    Kernel { name: "triad", what: What::Triad, streaming: true },
];

impl Kernel {
    /// Arrays read and written.
    fn arrays(&self) -> (f64, f64) {
        match self.what {
            What::Read => (1.0, 0.0),
            What::Copy => (1.0, 1.0),
            What::Triad => (2.0, 1.0),
        }
    }

    fn stores(&self) -> &'static str {
        match (self.what, self.streaming) {
            (What::Read, _) => "none",
            (_, true) => "streaming",
            _ => "ordinary",
        }
    }
}

/// Bytes of one array: four times the last caches, at least 64 MiB, and no more than a twelfth of the memory, of which three such
/// arrays take a quarter.
fn array_bytes(processor: &Processor) -> Result<f64, String> {
    let last = processor.caches.iter().map(|c| c.level).max().unwrap_or(0);
    let cache: f64 = processor.caches.iter().filter(|c| c.level == last).map(|c| c.bytes * c.count as f64).sum();
    let wanted = (4.0 * cache).max(64.0 * 1_048_576.0);
    let memory = processor.memory_limit_bytes.map_or(processor.memory_bytes, |limit| limit.min(processor.memory_bytes));
    if memory > 0.0 && wanted > memory / 12.0 {
        return Err(format!("arrays of {:.0} MiB do not fit beside what runs here", wanted / 1_048_576.0));
    }
    Ok(wanted)
}

pub fn rate(kernel: &Kernel, team: &Team, processor: &Processor, quick: bool) -> Result<StreamRate, Missing> {
    let what = format!("{} by {} threads, {} stores", kernel.name, team.cpus.len(), kernel.stores());
    if kernel.streaming && !streams() {
        return Err(Missing::new(what, "no streaming stores known for this processor"));
    }
    let wanted = array_bytes(processor).map_err(|why| Missing::new(&what, why))?;
    let part = ((wanted / team.cpus.len() as f64) as usize).next_multiple_of(4096);
    let (reads, writes) = kernel.arrays();
    // About a second at 10 GB/s a thread: caches of hundreds of megabytes make arrays that one thread takes long to read.
    let enough = (10e9 * team.cpus.len() as f64 / ((reads + writes) * wanted)) as usize;
    let repeats = enough.clamp(3, if quick { 6 } else { 14 });
    let n = (reads + writes) as usize;
    let make = |_: usize| -> Option<Vec<Pages>> { (0..n).map(|_| Pages::new(part)).collect() };
    let times = team
        .timed(repeats, make, |arrays| run(kernel, arrays))
        .ok_or_else(|| Missing::new(&what, "the system gave no memory for the arrays"))?;
    let array = (part * team.cpus.len()) as f64;
    let rates = times.iter().map(|s| (reads + writes) * array / s);
    let rate = Reading::of(rates).ok_or_else(|| Missing::new(&what, "no repeat took any time"))?;
    let again = if kernel.streaming { 0.0 } else { writes };
    let moved = rate.median * (reads + writes + again) / (reads + writes);
    Ok(StreamRate {
        kernel: kernel.name.into(),
        stores: kernel.stores().into(),
        threads: team.cpus.len(),
        sockets: team.sockets,
        array_bytes: array,
        rate,
        moved,
    })
}

fn run(kernel: &Kernel, arrays: &mut [Pages]) {
    match (kernel.what, arrays) {
        (What::Read, [a]) => {
            std::hint::black_box(sum(a.all()));
        }
        (What::Copy, [from, to]) => copy(from.all(), to.all_mut(), kernel.streaming),
        (What::Triad, [b, c, a]) => triad(b.all(), c.all(), a.all_mut(), std::hint::black_box(3.0), kernel.streaming),
        _ => {}
    }
}

fn streams() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn sum(a: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(sum) = x86::sum(a) {
        return sum;
    }
    // Sixteen sums side by side, which any compiler keeps in vector registers.
    let mut sums = [0_u64; 16];
    let blocks = a.chunks_exact(16);
    let rest = blocks.remainder().iter().fold(0, |s: u64, x| s.wrapping_add(*x));
    for block in blocks {
        for (sum, x) in sums.iter_mut().zip(block) {
            *sum = sum.wrapping_add(*x);
        }
    }
    sums.iter().fold(rest, |s, x| s.wrapping_add(*x))
}

fn copy(from: &[f64], to: &mut [f64], streaming: bool) {
    #[cfg(target_arch = "x86_64")]
    if x86::copy(from, to, streaming) {
        return;
    }
    let _ = streaming;
    // Element by element: the library's own copy may choose stores past the caches by itself.
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

fn triad(b: &[f64], c: &[f64], a: &mut [f64], s: f64, streaming: bool) {
    #[cfg(target_arch = "x86_64")]
    if x86::triad(b, c, a, s, streaming) {
        return;
    }
    let _ = streaming;
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + s * c;
    }
}

#[cfg(target_arch = "x86_64")]
// Whoever calls looks at the alignment first.
#[allow(unsafe_code, clippy::cast_ptr_alignment)]
mod x86 {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_sfence, _mm256_add_epi64, _mm256_add_pd, _mm256_load_pd, _mm256_load_si256,
        _mm256_mul_pd, _mm256_set1_pd, _mm256_setzero_si256, _mm256_store_pd, _mm256_stream_pd, _mm512_add_epi64,
        _mm512_load_si512, _mm512_setzero_si512,
    };

    /// Whole blocks of 64 numbers at addresses of whole vectors, as pages are.
    fn sound<T>(arrays: &[&[T]]) -> bool {
        let n = arrays.first().map_or(0, |a| a.len());
        arrays.iter().all(|a| a.len() == n && n.is_multiple_of(64) && (a.as_ptr() as usize).is_multiple_of(64))
    }

    pub fn sum(a: &[u64]) -> Option<u64> {
        if !sound(&[a]) {
            return None;
        }
        // SAFETY: the instructions are there, and the array is whole blocks of aligned vectors.
        unsafe {
            match () {
                () if has!("avx512f") => Some(sum512(a)),
                () if has!("avx2") => Some(sum256(a)),
                () => None,
            }
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn sum256(a: &[u64]) -> u64 {
        let mut sums = [_mm256_setzero_si256(); 8];
        for block in a.chunks_exact(32) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: eight vectors of four are the block.
                *sum =
                    _mm256_add_epi64(*sum, unsafe { _mm256_load_si256(block.as_ptr().add(4 * i).cast::<__m256i>()) });
            }
        }
        let all = sums.iter().fold(_mm256_setzero_si256(), |s, x| _mm256_add_epi64(s, *x));
        // SAFETY: a vector is four numbers.
        let parts: [u64; 4] = unsafe { std::mem::transmute(all) };
        parts.iter().fold(0, |s: u64, x| s.wrapping_add(*x))
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn sum512(a: &[u64]) -> u64 {
        let mut sums = [_mm512_setzero_si512(); 8];
        for block in a.chunks_exact(64) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: eight vectors of eight are the block.
                *sum =
                    _mm512_add_epi64(*sum, unsafe { _mm512_load_si512(block.as_ptr().add(8 * i).cast::<__m512i>()) });
            }
        }
        let all = sums.iter().fold(_mm512_setzero_si512(), |s, x| _mm512_add_epi64(s, *x));
        // SAFETY: a vector is eight numbers.
        let parts: [u64; 8] = unsafe { std::mem::transmute(all) };
        parts.iter().fold(0, |s: u64, x| s.wrapping_add(*x))
    }

    /// Whether it was done.
    pub fn copy(from: &[f64], to: &mut [f64], streaming: bool) -> bool {
        if !has!("avx2") || !sound(&[from, to]) {
            return false;
        }
        // SAFETY: the instructions are there, and both arrays are whole blocks of aligned vectors of one length.
        unsafe { if streaming { copy256::<true>(from, to) } else { copy256::<false>(from, to) } }
        true
    }

    #[target_feature(enable = "avx2")]
    unsafe fn copy256<const STREAMING: bool>(from: &[f64], to: &mut [f64]) {
        let (from, n, to) = (from.as_ptr(), from.len(), to.as_mut_ptr());
        for i in (0..n).step_by(16) {
            for at in [i, i + 4, i + 8, i + 12] {
                // SAFETY: whole blocks of sixteen lie before the end.
                unsafe {
                    let x = _mm256_load_pd(from.add(at));
                    if STREAMING { _mm256_stream_pd(to.add(at), x) } else { _mm256_store_pd(to.add(at), x) }
                }
            }
        }
        _mm_sfence();
    }

    /// Whether it was done.
    pub fn triad(b: &[f64], c: &[f64], a: &mut [f64], s: f64, streaming: bool) -> bool {
        if !has!("avx2") || !sound(&[b, c, a]) {
            return false;
        }
        // SAFETY: the instructions are there, and the arrays are whole blocks of aligned vectors of one length.
        unsafe { if streaming { triad256::<true>(b, c, a, s) } else { triad256::<false>(b, c, a, s) } }
        true
    }

    #[target_feature(enable = "avx2")]
    unsafe fn triad256<const STREAMING: bool>(b: &[f64], c: &[f64], a: &mut [f64], s: f64) {
        let s = _mm256_set1_pd(s);
        let (b, n, c, a) = (b.as_ptr(), b.len(), c.as_ptr(), a.as_mut_ptr());
        for i in (0..n).step_by(16) {
            for at in [i, i + 4, i + 8, i + 12] {
                // SAFETY: whole blocks of sixteen lie before the end.
                unsafe {
                    let x = _mm256_add_pd(_mm256_load_pd(b.add(at)), _mm256_mul_pd(s, _mm256_load_pd(c.add(at))));
                    if STREAMING { _mm256_stream_pd(a.add(at), x) } else { _mm256_store_pd(a.add(at), x) }
                }
            }
        }
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(pages: &mut Pages) {
        pages.all_mut::<f64>().iter_mut().enumerate().for_each(|(i, x)| *x = i as f64);
    }

    #[test]
    fn kernels_compute_what_they_say_with_either_store() {
        let [mut b, mut c, mut a] = [0; 3].map(|_| Pages::new(8192).unwrap());
        numbers(&mut b);
        numbers(&mut c);
        for streaming in [false, true] {
            triad(b.all(), c.all(), a.all_mut(), 3.0, streaming);
            assert!(a.all::<f64>().iter().enumerate().all(|(i, x)| *x == 4.0 * i as f64));
            copy(b.all(), a.all_mut(), streaming);
            assert_eq!(a.all::<f64>(), b.all::<f64>());
        }
        let whole = b.all::<u64>().iter().fold(0, |s: u64, x| s.wrapping_add(*x));
        assert_eq!(sum(b.all()), whole);
        // Not a whole block: the plain way.
        assert_eq!(sum(&b.all::<u64>()[..21]), b.all::<u64>()[..21].iter().fold(0, |s: u64, x| s.wrapping_add(*x)));
    }

    #[test]
    fn ordinary_stores_move_more_than_they_count_and_streaming_ones_do_not() {
        let processor = Processor { memory_bytes: 64e9, ..Processor::default() };
        let team = Team { cpus: vec![0], sockets: 1 };
        for kernel in KERNELS {
            let Ok(rate) = rate(kernel, &team, &processor, true) else { continue };
            let (reads, writes) = kernel.arrays();
            let expected = if rate.stores == "ordinary" { (reads + 2.0 * writes) / (reads + writes) } else { 1.0 };
            assert!((rate.moved / rate.rate.median - expected).abs() < 1e-9, "{rate:?}");
            assert!(rate.array_bytes >= 64.0 * 1_048_576.0 && rate.rate.low <= rate.rate.median, "{rate:?}");
        }
    }

    #[test]
    fn arrays_that_would_crowd_the_machine_are_an_answer() {
        let processor = Processor { memory_bytes: 64.0 * 1_048_576.0, ..Processor::default() };
        let missing = rate(&KERNELS[0], &Team { cpus: vec![0], sockets: 1 }, &processor, true).unwrap_err();
        assert!(missing.why.contains("do not fit"), "{missing:?}");
    }
}
