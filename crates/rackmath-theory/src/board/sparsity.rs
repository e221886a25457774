//! What experts buy: the scaling law of routed models.
//!
//! $$ \log L = a \log N + b \log \hat E + c \log N \log \hat E + d \qquad
//!    \frac1{\hat E} = \frac1{E - 1 + \left(\frac1{E_s} - \frac1{E_m}\right)^{-1}} + \frac1{E_m} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N | base | params | parameters of the dense model the experts are added to |
//! | E | experts | 1 | experts, one used per token |
//! | Ê | saturated | 1 | the same with a start and a ceiling |
//! | L | loss | nats | validation loss |
//!
//! Logarithms are base 10. The effective parameter count is the dense N that reaches the same loss. The law is old, fitted
//! on one expert per token and 130 billion tokens; newer techniques do better. Source: Clark et al. 2022 (lecture D15, X27).

use rackmath_spec::ClarkLaw;
use rackmath_units::{Params, float};

pub fn saturated(law: &ClarkLaw, experts: f64) -> f64 {
    let offset = 1.0 / (1.0 / law.e_start - 1.0 / law.e_max);
    1.0 / (1.0 / (experts - 1.0 + offset) + 1.0 / law.e_max)
}

pub fn loss(law: &ClarkLaw, base: Params, experts: f64) -> f64 {
    let (n, e) = (float::log10(base.get()), float::log10(saturated(law, experts)));
    float::pow(10.0, law.a * n + law.b * e + law.c * n * e + law.d)
}

pub fn effective_params(law: &ClarkLaw, base: Params, experts: f64) -> Params {
    let (factor, power) = effective_power(law, experts);
    Params::new(factor * float::pow(base.get(), power))
}

/// The effective count as a power of the base size: N_eff = factor N^power at so many experts.
pub fn effective_power(law: &ClarkLaw, experts: f64) -> (f64, f64) {
    let (e, one) = (float::log10(saturated(law, experts)), float::log10(saturated(law, 1.0)));
    // Solve the law at one expert for log N, given the loss with all experts: linear in log N.
    let slope = law.a + law.c * one;
    (float::pow(10.0, law.b * (e - one) / slope), (law.a + law.c * e) / slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use proptest::prelude::*;
    use rackmath_spec::{Router, VariantArray as _};

    fn law(router: Router) -> ClarkLaw {
        rackmath_catalog::embedded().clark_laws().unwrap().into_iter().find(|l| l.router == router).unwrap()
    }

    #[test]
    fn goldens() {
        let law = law(Router::SBase);
        // G34.
        for (e, expected) in [(1.0, 1.847), (64.0, 53.769), (256.0, 141.381)] {
            close(saturated(&law, e), expected, 1e-4);
        }
        // G33: 370 M with 64 experts; G36: 37 B with 64.
        close(effective_params(&law, Params::new(370e6), 64.0).get(), 1.3686e9, 1e-3);
        close(effective_params(&law, Params::new(37e9), 64.0).get() / 37e9, 1.726, 1e-3);
        // Section 6: 5 M x 128 gives 51.8 M with the rounded coefficients.
        close(effective_params(&law, Params::new(5e6), 128.0).get(), 51.8e6, 2e-3);
    }

    proptest! {
        #[test]
        fn the_effective_count_has_the_same_loss(n in 1e6f64..1e10, e in 1.0f64..512.0, router in 0usize..3) {
            let law = law(Router::VARIANTS[router]);
            let dense = effective_params(&law, Params::new(n), e);
            let one = effective_params(&law, Params::new(n), 1.0).get();
            prop_assert!((one / n - 1.0).abs() < 1e-9, "one expert is the dense model");
            prop_assert!((loss(&law, dense, 1.0) / loss(&law, Params::new(n), e) - 1.0).abs() < 1e-9);
            prop_assert!(dense.get() >= n * (1.0 - 1e-9), "experts never hurt in the fitted range");
        }
    }
}
