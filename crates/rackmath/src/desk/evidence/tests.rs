use super::*;
use crate::setting::ready;
use proptest::prelude::*;
use rackmath_theory::pass::KernelSet;

fn scale() -> Scale {
    Scale::of(&rackmath_catalog::embedded()).unwrap()
}

fn known(model: &str, system: &str, engine: &str) -> Evidence {
    let catalog = rackmath_catalog::embedded();
    let on = Deployment::named(&catalog, model, system, engine).unwrap();
    let ready = ready(&KernelSet::of(&catalog).unwrap(), &on).unwrap();
    scale().card(&ready, false, None).unwrap()
}

fn steps(e: &Evidence) -> Vec<&str> {
    e.steps.iter().map(|s| s.step.as_str()).collect()
}

#[test]
fn what_stands_in_the_rows_is_measured_and_what_does_not_says_from_where_it_was_carried() {
    // InferenceX: gpt-oss-120b on H200 under vLLM 0.16 to 0.19.
    let e = known("gpt-oss-120b", "h200", "vllm");
    assert_eq!(e.grade, Grade::Measured);
    assert!(e.rows > 50 && !steps(&e).contains(&"chip"), "{e:?}");
    // H20 is a Hopper chip that no row names; H100 and H200 are.
    let e = known("llama-3.1-70b", "h20", "vllm");
    assert_eq!((e.grade, steps(&e)), (Grade::Transferred, vec!["chip"]));
    assert!(e.steps[0].from.as_deref().is_some_and(|from| from.starts_with('h')), "{e:?}");
    // AMD's chips were measured under vLLM; their kernels were timed but for attention.
    let e = known("llama-3.1-70b", "mi325x", "vllm");
    assert_eq!((e.grade, steps(&e)), (Grade::Measured, vec!["generation"]));
    let e = known("llama-3.1-70b", "tpu-v6e", "vllm");
    assert_eq!((e.grade, steps(&e)), (Grade::NeverChecked, vec!["vendor"]));
    // Measured in 8 and 16 bits, asked for in a format nobody timed on Hopper.
    let catalog = rackmath_catalog::embedded();
    let mut on = Deployment::named(&catalog, "llama-3.1-70b", "h100-sxm", "vllm").unwrap();
    on.formats = catalog.formats_in(&on.model, rackmath_spec::Dtype::NvFp4);
    let e = scale().card(&ready(&KernelSet::of(&catalog).unwrap(), &on).unwrap(), false, None).unwrap();
    assert!(e.rows > 0 && e.grade == Grade::Transferred, "{e:?}");
    // The roofline is a bound.
    let ideal = Deployment::named(&catalog, "llama-3.1-8b", "h200", "ideal").unwrap();
    assert!(scale().brief(&ideal, &[], false).is_none());
}

#[test]
fn each_part_has_a_grade_of_its_own() {
    let of = |e: &Evidence, part: &str| e.parts.iter().find(|p| p.part == part).map(|p| p.grade);
    let e = known("llama-3.1-8b", "h200", "vllm");
    assert_eq!(of(&e, "matrix products"), Some(Grade::Measured));
    assert_eq!((of(&e, "experts"), of(&e, "links")), (None, None), "a dense model on one chip");
    let e = known("deepseek-v3", "mi300x", "sglang");
    assert_eq!((of(&e, "experts"), of(&e, "attention")), (Some(Grade::Measured), Some(Grade::Transferred)));
    let e = known("llama-3.1-8b", "tpu-v6e", "vllm");
    assert_eq!(of(&e, "matrix products"), Some(Grade::NeverChecked));
    // A version that no family covers.
    let catalog = rackmath_catalog::embedded();
    let on = Deployment::named(&catalog, "llama-3.1-8b", "h200", "vllm").unwrap();
    let ready = ready(&KernelSet::of(&catalog).unwrap(), &on).unwrap();
    let e = scale().card(&ready, true, None).unwrap();
    assert_eq!(of(&e, "scheduler"), Some(Grade::Transferred));
    assert!(e.within.tpot >= known("llama-3.1-8b", "h200", "vllm").within.tpot);
}

#[test]
fn a_price_shows_its_age_and_a_stale_one_says_so() {
    let scale = scale();
    let catalog = rackmath_catalog::embedded();
    let price = catalog.chip("h100-sxm").unwrap().prices[0].clone();
    let dated = |as_of: &str| {
        let mut price = price.clone();
        price.as_of = as_of.into();
        scale.price(&PriceSource::Listed(price))
    };
    let now = scale.tables.as_of.clone();
    let (year, _) = now.split_once('-').unwrap();
    let (fresh, old) = (dated(&now), dated(&format!("{}-01", year.parse::<u32>().unwrap() - 2)));
    assert!(fresh.grade == Grade::Measured && !fresh.says.with.contains_key("stale"));
    assert!(old.grade == Grade::Transferred && old.says.with.contains_key("stale"));
    assert_eq!(scale.price(&PriceSource::Unknown).grade, Grade::NeverChecked);
}

#[test]
fn what_two_sides_share_cancels() {
    let scale = scale();
    let (a, b) = (known("llama-3.1-70b", "mi300x", "vllm"), known("llama-3.1-70b", "mi325x", "vllm"));
    let far = known("llama-3.1-70b", "h200", "vllm");
    // Both carry a vendor over; only one of the other pair does.
    assert!(scale.apart(&a, &b).throughput < scale.apart(&a, &far).throughput);
    assert_eq!(scale.apart(&a, &far), scale.apart(&far, &a));
    assert_eq!(a.missing(&far).chip, a.chip, "the run that is missing is that of the less known side");
}

proptest! {
    #[test]
    fn a_step_more_is_never_narrower(model in 0..40_usize, chip in 0..60_usize, engine in 0..4_usize) {
        let catalog = rackmath_catalog::embedded();
        let pick = |kind, at: usize| {
            let ids: Vec<&str> = catalog.ids(kind).collect();
            ids[at * 7 % ids.len()].to_owned()
        };
        let engine = ["vllm", "sglang", "trtllm", "llamacpp"][engine];
        let (model, chip) = (pick(rackmath_spec::Kind::Models, model), pick(rackmath_spec::Kind::Chips, chip));
        let Ok(on) = Deployment::named(&catalog, &model, &chip, engine) else { return Ok(()) };
        let scale = scale();
        let (plain, further) = (scale.brief(&on, &[], false).unwrap(), scale.brief(&on, &[], true).unwrap());
        let base = scale.tables.widths(Step::Seen);
        for (a, b, least) in [
            (plain.within.tpot, further.within.tpot, base.tpot),
            (plain.within.ttft, further.within.ttft, base.ttft),
            (plain.within.throughput, further.within.throughput, base.throughput),
        ] {
            prop_assert!(a <= b + 1e-12 && a >= float::exp(least) - 1e-12);
        }
        prop_assert_eq!(plain.grade == Grade::Measured, plain.rows > 0);
    }
}

proptest! {
    /// Between both, nearer to a thing's own the more rows it has, and untouched where none has the column.
    #[test]
    fn widths_are_drawn_towards_a_things_own_rows(w in 0.01..2.0_f64, off in 1_u32..300, rows in 1_u64..500) {
        let wide = Widths { tpot: w, ttft: w, throughput: w };
        let of = |rows| Seen { rows, off: [Some(off), None, None], ..Seen::default() };
        let own = f64::from(off) / 100.0;
        let (few, more) = (drawn(wide, &of(rows)), drawn(wide, &of(2 * rows)));
        prop_assert!(few.tpot >= w.min(own) - 1e-12 && few.tpot <= w.max(own) + 1e-12);
        prop_assert!((more.tpot - own).abs() <= (few.tpot - own).abs() + 1e-12);
        prop_assert_eq!(few.ttft, w);
        prop_assert_eq!(few.throughput, few.tpot, "times stand in for rates");
    }
}

/// An interval that is called measured and leaves out what was measured says so, wherever that is.
#[test]
fn figures_outside_their_own_interval_are_said() {
    let catalog = rackmath_catalog::embedded();
    let scale = Scale::of(&catalog).unwrap();
    let mut beyond = 0;
    for seen in &catalog.evidence().unwrap().seen {
        let (Some(own), Ok(mut on)) =
            (seen.widths()[0], Deployment::named(&catalog, &seen.model, &seen.chip, &seen.engine))
        else {
            continue;
        };
        on.kv = rackmath_spec::Dtype::Bf16;
        let Some(known) = scale.brief(&on, &[], false).filter(|known| known.grade == Grade::Measured) else { continue };
        let outside = own > float::ln(known.within.tpot) + 1e-9;
        assert!(!outside || known.off.is_some_and(|off| off >= known.within.tpot), "{} on {}", seen.model, seen.chip);
        beyond += usize::from(outside);
    }
    assert!(beyond > 0, "none left out: the sentence is not needed any more");
}
