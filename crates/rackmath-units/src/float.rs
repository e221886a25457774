//! Transcendental functions with the same bits on every platform.
//!
//! The standard library hands `ln`, `exp` and `pow` to the platform's C library, whose last digits differ. These go
//! through one portable implementation. `sqrt`, `floor` and the four operations are exact by IEEE 754 and need no help.

pub use libm::{exp, expm1 as exp_m1, log as ln, log1p as ln_1p, log10, pow, sin};

/// The root of a non-decreasing function between `lo` and `hi`, by bisection to the last bit.
///
/// Returns `None` when `f` does not change sign there. Deterministic: the same bits on every platform.
pub fn root(lo: f64, hi: f64, f: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut lo, mut hi) = (lo, hi);
    if f(lo) > 0.0 || f(hi) < 0.0 {
        return None;
    }
    // 2,100 halvings would exhaust the whole range of a double; the loop ends when no double lies between.
    for _ in 0..2_100 {
        let mid = lo + (hi - lo) / 2.0;
        if mid <= lo || mid >= hi {
            break;
        }
        if f(mid) < 0.0 { lo = mid } else { hi = mid }
    }
    Some(hi)
}

/// `n` numbers from one to another at equal factors.
pub fn spaced(low: f64, high: f64, n: usize) -> impl Iterator<Item = f64> {
    let (from, to) = (ln(low), ln(high));
    let steps = n.saturating_sub(1).max(1) as f64;
    (0..n).map(move |i| exp(from + (to - from) * i as f64 / steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bits() {
        // Fixed bit patterns (exp(1) is one unit in the last place above the nearest double): any platform or library change that moves the last digit fails here.
        assert_eq!(ln(2.0).to_bits(), 0x3fe6_2e42_fefa_39ef);
        assert_eq!(exp(1.0).to_bits(), 0x4005_bf0a_8b14_576a);
        assert_eq!(pow(2.0, 0.5).to_bits(), 0x3ff6_a09e_667f_3bcd);
        assert_eq!(log10(1000.0), 3.0);
        assert!((ln_1p(1e-12) - 1e-12).abs() < 1e-23);
        assert!((exp_m1(1e-12) - 1e-12).abs() < 1e-23);
    }

    #[test]
    fn root_of_a_line() {
        assert_eq!(root(0.0, 1e9, |x| x - 1234.5), Some(1234.5));
        assert_eq!(root(0.0, 1.0, |x| x + 1.0), None);
    }
}
