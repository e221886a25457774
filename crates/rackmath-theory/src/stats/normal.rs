//! The normal quantile, Student's t with four degrees of freedom, and the densities the likelihood needs.
//!
//! $$ \frac{t_4(q)}{t_4(0)} = \left(1 + \frac{q^2}{4}\right)^{-5/2} \qquad t_4(0) = \frac{3}{8} $$
//!
//! Four degrees of freedom need no power function, and a residual of four scales is not yet absurd.
//! Source: the quantile is Acklam's rational approximation, good to nine digits.

use rackmath_units::float;

/// Density of Student's t with four degrees of freedom at its centre, for scale 1.
pub const T4_PEAK: f64 = 0.375;

pub fn t4_relative(q: f64) -> f64 {
    let x = 1.0 + 0.25 * q * q;
    1.0 / (x * x * x.sqrt())
}

/// A draw of t from a normal draw and two uniform ones: z over the root of a quarter of a chi-square of four.
pub fn t4(z: f64, u: f64, v: f64) -> f64 {
    // A chi-square of four degrees is minus twice the logarithm of a product of two uniforms.
    z / (-0.5 * float::ln(u * v)).sqrt()
}

pub fn normal_density(x: f64, centre: f64, sd: f64) -> f64 {
    let q = (x - centre) / sd;
    float::exp(-0.5 * q * q) / (sd * 2.506_628_274_631_000_2)
}

/// The standard normal quantile of a probability strictly between 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    const LOW: f64 = 0.02425;
    let polynomial = |all: &[f64], x: f64| all.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |q: f64| polynomial(&C, q) / (polynomial(&D, q) * q + 1.0);
    if p < LOW {
        tail((-2.0 * float::ln(p)).sqrt())
    } else if p > 1.0 - LOW {
        -tail((-2.0 * float::ln(1.0 - p)).sqrt())
    } else {
        let (q, r) = (p - 0.5, (p - 0.5) * (p - 0.5));
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}
