//! Multiply-adds a second in registers, by arithmetic and instruction set.
//!
//! ```text
//! rate = threads x repeats x sums x lanes x 2 / time
//! ```
//!
//! As many sums run side by side as hide the latency of an instruction: twelve, of which two start in a cycle and last at most five.
//! A multiply-add is two; a dot product of two bf16 or four int8 values to a lane counts each of them.
//! Ignores: AMX, whose intrinsics are not stable: it is named and not measured.

use super::team::Team;
use rackmath_spec::probe::{MathRate, Missing, Reading};

/// Sums side by side.
const SUMS: usize = 12;

/// How one thread multiplies: instructions, operations of one round of [`SUMS`], and the loop.
#[derive(Clone, Copy)]
struct Unit {
    math: &'static str,
    instructions: &'static str,
    /// Operations in one round.
    each: f64,
    run: fn(u64),
    there: fn() -> bool,
}

/// Instruction sets that bear on multiply-adds and are present.
pub fn instructions() -> Vec<String> {
    let mut all: Vec<&str> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let known = [
            ("AVX2", has!("avx2")),
            ("FMA", has!("fma")),
            ("AVX-VNNI", has!("avxvnni")),
            ("AVX-512F", has!("avx512f")),
            ("AVX-512 VNNI", has!("avx512vnni")),
            ("AVX-512 BF16", has!("avx512bf16")),
            ("AMX", amx()),
        ];
        all.extend(known.iter().filter(|(_, there)| *there).map(|(name, _)| *name));
    }
    #[cfg(target_arch = "aarch64")]
    {
        use std::arch::is_aarch64_feature_detected as has;
        let known = [
            ("NEON", has!("neon")),
            ("DotProd", has!("dotprod")),
            ("BF16", has!("bf16")),
            ("I8MM", has!("i8mm")),
            ("SVE", has!("sve")),
        ];
        all.extend(known.iter().filter(|(_, there)| *there).map(|(name, _)| *name));
    }
    all.into_iter().map(str::to_owned).collect()
}

/// What the kernel says of tiles, since the standard library has no word for them yet.
#[cfg(target_arch = "x86_64")]
fn amx() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("amx_tile"))
}

#[cfg(not(target_arch = "x86_64"))]
fn amx() -> bool {
    false
}

/// The rate of an arithmetic with each instruction set, by one thread and by all; what has none, and why.
pub fn rates(math: &str, teams: &[Team], quick: bool) -> Result<Vec<MathRate>, Vec<Missing>> {
    let units = units();
    let own: Vec<&Unit> = units.iter().filter(|u| u.math == math && (u.there)()).collect();
    let mut missing = Vec::new();
    if math == "bf16" && amx() {
        missing
            .push(Missing::new("bf16 and int8 by AMX", "its instructions are not reachable from here; not measured"));
    }
    if own.is_empty() {
        let why = match math {
            "bf16" => "no bf16 instructions: such weights are widened to fp32 and run at its rate",
            _ => "no instructions known for it here",
        };
        missing.push(Missing::new(format!("{math} multiply-adds"), why));
        return Err(missing);
    }
    let mut rates = Vec::new();
    for unit in own {
        for team in [teams.first(), teams.last().filter(|_| teams.len() > 1)].into_iter().flatten() {
            rates.extend(rate(unit, team, quick));
        }
    }
    Ok(rates)
}

fn rate(unit: &Unit, team: &Team, quick: bool) -> Option<MathRate> {
    // A round is about six cycles: these take some 15 ms.
    let rounds: u64 = 8_000_000;
    let times = team.timed(if quick { 5 } else { 15 }, |_| Some(()), |()| (unit.run)(rounds))?;
    let work = rounds as f64 * unit.each * team.cpus.len() as f64;
    let rate = Reading::of(times.iter().map(|s| work / s))?;
    let (math, instructions) = (unit.math.to_owned(), unit.instructions.to_owned());
    Some(MathRate { math, instructions, threads: team.cpus.len(), rate })
}

/// Of lanes of so many operations.
const fn round(lanes: usize, each: usize) -> f64 {
    (SUMS * lanes * each) as f64
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn units() -> Vec<Unit> {
    use std::arch::is_x86_feature_detected as has;
    // SAFETY, of every `run`: it is called only where `there` says that the instructions are.
    vec![
        Unit {
            math: "fp32",
            instructions: "AVX2 FMA",
            each: round(8, 2),
            run: |n| unsafe { x86::fma256(n) },
            there: || has!("fma") && has!("avx2"),
        },
        Unit {
            math: "fp32",
            instructions: "AVX-512 FMA",
            each: round(16, 2),
            run: |n| unsafe { x86::fma512(n) },
            there: || has!("avx512f"),
        },
        Unit {
            math: "bf16",
            instructions: "AVX-512 BF16",
            each: round(16, 4),
            run: |n| unsafe { x86::bf16(n) },
            there: || has!("avx512bf16") && has!("avx512f"),
        },
        Unit {
            math: "int8",
            instructions: "AVX-512 VNNI",
            each: round(16, 8),
            run: |n| unsafe { x86::vnni512(n) },
            there: || has!("avx512vnni") && has!("avx512f"),
        },
        Unit {
            math: "int8",
            instructions: "AVX-VNNI",
            each: round(8, 8),
            run: |n| unsafe { x86::vnni256(n) },
            there: || has!("avxvnni") && has!("avx2"),
        },
        Unit {
            math: "int8",
            instructions: "AVX2 (three instructions)",
            each: round(8, 8),
            run: |n| unsafe { x86::int8(n) },
            there: || has!("avx2"),
        },
        Unit {
            math: "fp32",
            instructions: "SSE2 (two instructions)",
            each: round(4, 2),
            run: portable,
            there: || !has!("fma"),
        },
    ]
}

#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
fn units() -> Vec<Unit> {
    use std::arch::is_aarch64_feature_detected as has;
    // SAFETY: it is called only where `there` says that the instructions are.
    vec![Unit {
        math: "fp32",
        instructions: "NEON FMA",
        each: round(4, 2),
        run: |n| unsafe { arm::fma(n) },
        there: || has!("neon"),
    }]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn units() -> Vec<Unit> {
    vec![Unit {
        math: "fp32",
        instructions: "what the compiler chose",
        each: round(4, 2),
        run: portable,
        there: || true,
    }]
}

/// Multiplications and additions that the compiler puts in whatever vectors it may assume.
#[cfg(not(target_arch = "aarch64"))]
fn portable(rounds: u64) {
    let mut sums = [[1.0_f32; 4]; SUMS];
    let (a, b) = (std::hint::black_box(0.999_999_f32), std::hint::black_box(1e-6_f32));
    for _ in 0..rounds {
        for sum in &mut sums {
            for x in sum {
                *x = *x * a + b;
            }
        }
    }
    std::hint::black_box(sums);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use super::SUMS;
    use std::arch::x86_64::{
        _mm256_add_epi32, _mm256_dpbusd_avx_epi32, _mm256_fmadd_ps, _mm256_madd_epi16, _mm256_maddubs_epi16,
        _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_ps, _mm256_setzero_si256, _mm512_dpbf16_ps,
        _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_set1_epi8, _mm512_set1_ps, _mm512_setzero_si512,
    };
    use std::hint::black_box;

    /// Sums that stay in registers and depend only on themselves.
    macro_rules! rounds {
        ($n:ident, $zero:expr, |$sum:ident| $next:expr) => {{
            let mut sums = [$zero; SUMS];
            for _ in 0..$n {
                for $sum in &mut sums {
                    *$sum = $next;
                }
            }
            black_box(sums);
        }};
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn fma256(n: u64) {
        let (a, b) = (_mm256_set1_ps(black_box(0.999_999)), _mm256_set1_ps(black_box(1e-6)));
        rounds!(n, _mm256_set1_ps(1.0), |sum| _mm256_fmadd_ps(*sum, a, b));
    }

    #[target_feature(enable = "avx512f")]
    pub fn fma512(n: u64) {
        let (a, b) = (_mm512_set1_ps(black_box(0.999_999)), _mm512_set1_ps(black_box(1e-6)));
        rounds!(n, _mm512_set1_ps(1.0), |sum| _mm512_fmadd_ps(*sum, a, b));
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    pub fn bf16(n: u64) {
        // SAFETY: 0x3c of both bytes is a small bf16; any bits are one.
        let a = unsafe {
            std::mem::transmute::<std::arch::x86_64::__m512i, std::arch::x86_64::__m512bh>(_mm512_set1_epi8(black_box(
                0x3c,
            )))
        };
        rounds!(n, _mm512_set1_ps(0.0), |sum| _mm512_dpbf16_ps(*sum, a, a));
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub fn vnni512(n: u64) {
        let (a, b) = (_mm512_set1_epi8(black_box(1)), _mm512_set1_epi8(black_box(1)));
        rounds!(n, _mm512_setzero_si512(), |sum| _mm512_dpbusd_epi32(*sum, a, b));
    }

    #[target_feature(enable = "avx2,avxvnni")]
    pub fn vnni256(n: u64) {
        let (a, b) = (_mm256_set1_epi8(black_box(1)), _mm256_set1_epi8(black_box(1)));
        rounds!(n, _mm256_setzero_si256(), |sum| _mm256_dpbusd_avx_epi32(*sum, a, b));
    }

    /// Bytes to 16 bits, pairs of those to 32, and their sum: what a product of bytes takes without instructions of its own.
    #[target_feature(enable = "avx2")]
    pub fn int8(n: u64) {
        let (mut a, b, one) = (_mm256_set1_epi8(black_box(1)), _mm256_set1_epi8(black_box(1)), _mm256_set1_epi16(1));
        let mut sums = [_mm256_setzero_si256(); SUMS];
        for _ in 0..n {
            for sum in &mut sums {
                // The product must not be taken out of the loop as always the same.
                a = keep(a);
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), one));
            }
        }
        black_box(sums);
    }

    /// The same value, of which the compiler knows nothing; no instruction.
    #[target_feature(enable = "avx2")]
    fn keep(mut x: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256i {
        // SAFETY: the text is empty.
        unsafe { std::arch::asm!("/* {0} */", inout(ymm_reg) x, options(nomem, nostack, preserves_flags)) };
        x
    }
}

#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
mod arm {
    use super::SUMS;
    use std::arch::aarch64::{vdupq_n_f32, vfmaq_f32};
    use std::hint::black_box;

    #[target_feature(enable = "neon")]
    pub fn fma(n: u64) {
        let (a, b) = (vdupq_n_f32(black_box(0.999_999)), vdupq_n_f32(black_box(1e-6)));
        let mut sums = [vdupq_n_f32(1.0); SUMS];
        for _ in 0..n {
            for sum in &mut sums {
                *sum = vfmaq_f32(b, *sum, a);
            }
        }
        black_box(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_that_is_here_multiplies() {
        for unit in units().iter().filter(|u| (u.there)()) {
            (unit.run)(1000);
            assert!(unit.each >= round(4, 2), "{}", unit.instructions);
        }
        assert!(units().iter().any(|u| u.math == "fp32" && (u.there)()));
    }

    #[test]
    fn an_arithmetic_nobody_knows_is_an_answer() {
        let missing = rates("fp4", &[Team { cpus: vec![0], sockets: 1 }], true).unwrap_err();
        assert!(missing[0].what.contains("fp4") && !missing[0].why.is_empty());
    }
}
