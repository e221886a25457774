//! What a chip draws while it serves: something whenever an engine runs, more the more it reads and multiplies, never beyond its limit.
//!
//! $$ P = \min\Bigl(L,\; s L + a L\,\frac{t_c}{t} + e\,W\,\frac{t_m}{t}\Bigr) \qquad E = \frac{P}{r} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | P | [`drawn`] | W | power of the chip's board, averaged over many passes |
//! | L | limit | W | its design power, which its clocks keep |
//! | s | standing | 1 | share of the limit drawn by a chip that waits between short kernels, clocks up |
//! | a | arithmetic | 1 | limits that useful arithmetic at the dense peak would add |
//! | e | `byte_pj` | pJ/B | energy of a byte moved between memory and arithmetic |
//! | W | bandwidth | B/s | of the chip's memory |
//! | t_c / t, t_m / t | [`Busy`] | 1 | seconds of a pass that FLOP at the dense peak and bytes at full bandwidth would take, over those it takes |
//! | E, r | | J, tok/s | energy of an output token, that of its prompt included, and output tokens a second of the chip |
//!
//! Energy follows the work done, so that a pass that takes longer for the same work draws less but costs more. `a` is far above 1: kernels
//! of small batches and of experts do much beside the FLOP that count, and chips reach their limit at a ninth of their peak.
//!
//! Not valid: for `a` of products in 16 bits, since the rows behind it ran in 8 and 4 bits, where the same FLOP take less time at the peak:
//! large batches in 16 bits draw less than this says. Never more than the limit, which is what one would take without it.
//!
//! Ignores: host, network cards and cooling; links; that a chip without work at all draws less than s; spread between boards. Source: ours; constants
//! in the catalogue's `support/power`.

use crate::timer::Cost;
use rackmath_spec::{Chip, draw::PowerDraw};
use rackmath_units::Watts;

/// How busy the two resources of a chip are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    pub arithmetic: f64,
    pub memory: f64,
}

impl Busy {
    /// During a pass; idle where it takes no time.
    pub fn during(pass: &Cost) -> Self {
        let (time, (compute, memory)) = (pass.time().get(), pass.roofline());
        if time > 0.0 {
            Self { arithmetic: compute.get() / time, memory: memory.get() / time }
        } else {
            Self::default()
        }
    }

    /// The same work at another speed.
    #[must_use]
    pub fn faster(self, times: f64) -> Self {
        Self { arithmetic: self.arithmetic * times, memory: self.memory * times }
    }
}

/// Watts of a chip; none where its design power is not known.
pub fn drawn(draw: &PowerDraw, chip: &Chip, busy: Busy) -> Option<Watts> {
    let limit = chip.power.tdp.as_ref()?.value.get();
    let bytes = chip.memory.bandwidth.value.get() * busy.memory;
    let (s, a, e) = (draw.standing(chip), draw.arithmetic, draw.byte_pj * 1e-12);
    Some(Watts::w((s * limit + a * limit * busy.arithmetic + e * bytes).min(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use crate::timer::{Limit, Part};
    use proptest::prelude::*;
    use rackmath_spec::Residual;
    use rackmath_units::Seconds;

    fn draw(standing: f64, arithmetic: f64, byte_pj: f64) -> PowerDraw {
        let (as_of, source) = (String::new(), String::new());
        PowerDraw { as_of, source, arithmetic, byte_pj, standing, fit: Residual::default(), generations: Vec::new() }
    }

    fn h200() -> Chip {
        (*rackmath_catalog::embedded().chip("h200").unwrap()).clone()
    }

    #[test]
    fn watts_by_hand() {
        // 700 W, 4.8 TB/s: 0.25 x 700 standing, half of the bandwidth at 100 pJ is 240 W, 2 % of the peak at 5 limits 70 W.
        let watts = |arithmetic, memory| drawn(&draw(0.25, 5.0, 100.0), &h200(), Busy { arithmetic, memory }).unwrap();
        close(watts(0.02, 0.5).get(), 175.0 + 240.0 + 70.0, 1e-12);
        close(watts(0.0, 0.0).get(), 175.0, 1e-12);
        close(watts(0.5, 0.5).get(), 700.0, 1e-12);
        assert_eq!(Busy::during(&Cost::default()), Busy::default());
        let waits = Cost::of(Part::Host, Limit::Host, Seconds::s(1.0));
        assert_eq!(Busy::during(&waits), Busy::default());
        let mut half = Cost::ideal_of(0.25, 1.0);
        half.add(Part::Host, Limit::Host, 1.0);
        assert_eq!(Busy::during(&half), Busy { arithmetic: 0.125, memory: 0.5 });
        let mut unknown = h200();
        unknown.power.tdp = None;
        assert_eq!(drawn(&draw(0.25, 5.0, 100.0), &unknown, Busy::default()), None);
    }

    #[test]
    fn the_catalogue_draws_more_for_a_measured_generation_that_stands_higher() {
        let catalog = rackmath_catalog::embedded();
        let (draw, idle) = (catalog.power_draw().unwrap(), Busy::default());
        for (id, known) in [("h200", true), ("mi300x", true), ("a100-80gb", false)] {
            let chip = catalog.chip(id).unwrap();
            assert_eq!(draw.measured(&chip).is_some(), known, "{id}");
            let share = drawn(&draw, &chip, idle).unwrap() / chip.power.tdp.as_ref().unwrap().value;
            close(share, draw.standing(&chip), 1e-12);
        }
    }

    #[test]
    fn a_generation_and_a_dense_model_that_no_constant_has_seen() {
        // Llama-2-70B in 16 bits, one sequence, on two, four and eight A100: ms of a token and share of the design power, from
        // Mutinifni/splitwise-sim, data/perf_model.csv. A token reads all 138 GB once and takes 0.138 TFLOP.
        let catalog = rackmath_catalog::embedded();
        let (draw, chip) = (catalog.power_draw().unwrap(), catalog.chip("a100-80gb").unwrap());
        for (tp, ms, share) in [(2.0, 53.679, 0.7356), (4.0, 42.4192, 0.5942), (8.0, 43.0313, 0.4353)] {
            let time = tp * ms * 1e-3;
            let bandwidth = chip.memory.bandwidth.value.get();
            let busy = Busy { arithmetic: 0.138e12 / 312e12 / time, memory: 138e9 / bandwidth / time };
            let drawn = drawn(&draw, &chip, busy).unwrap() / chip.power.tdp.as_ref().unwrap().value;
            close(drawn, share, 0.07);
        }
    }

    proptest! {
        #[test]
        fn power_is_between_standing_and_the_limit_and_work_never_lowers_it(
            s in 0.0..1.0f64, a in 0.0..20.0f64, e in 0.0..500.0f64,
            c in 0.0..1.0f64, m in 0.0..1.0f64, more in 0.0..1.0f64,
        ) {
            let (draw, chip) = (draw(s, a, e), h200());
            let limit = chip.power.tdp.as_ref().unwrap().value.get();
            let watts = |arithmetic, memory| drawn(&draw, &chip, Busy { arithmetic, memory }).unwrap().get();
            let one = watts(c, m);
            prop_assert!(s * limit <= one && one <= limit);
            prop_assert!(watts(c + more, m) >= one && watts(c, m + more) >= one);
            // The same work in more time draws no more, and costs no less.
            let slower = drawn(&draw, &chip, Busy { arithmetic: c, memory: m }.faster(1.0 / (1.0 + more))).unwrap().get();
            prop_assert!(slower <= one && slower * (1.0 + more) >= one * (1.0 - 1e-12));
        }
    }
}
