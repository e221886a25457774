//! Bytes are conserved between a placement and its model, for every catalogue model and many layouts.

use proptest::prelude::*;
use rackmath_spec::layout::Degrees;
use rackmath_spec::{Dtype, Layout};
use rackmath_theory::count::{Part, count};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::layout::check;
use rackmath_theory::placement::{Fit, Load, Placement, largest_batch, place};
use rackmath_units::{Fraction, Tokens};
use std::sync::LazyLock;

/// Every model on one rack large enough for any layout below.
static MODELS: LazyLock<Vec<Deployment>> = LazyLock::new(|| {
    let catalog = rackmath_catalog::embedded();
    let mut system = catalog.system("gb200-nvl72").unwrap();
    let own = std::sync::Arc::make_mut(&mut system);
    own.n_chips = 100_000;
    own.levels[0].chips = 256;
    let (engine, _) = catalog.engine("ideal").unwrap();
    let models =
        catalog.ids(rackmath_spec::Kind::Models).map(|id| catalog.model(id).unwrap()).filter(|m| m.shape().is_some());
    models.map(|m| Deployment::of(&catalog, m, system.clone(), engine.clone())).collect()
});

fn load(batch: f64) -> Load {
    Load { batch, context: Tokens::new(5000.0), tokens: 512.0, utilisation: Fraction::new(0.9) }
}

fn cut(on: &Deployment, layout: Layout) -> Deployment {
    Deployment { kv: Dtype::Bf16, layout, ..on.clone() }
}

fn placed(on: &Deployment, layout: Layout, batch: f64) -> Placement {
    place(&cut(on, layout), &load(batch))
}

fn legal(on: &Deployment, layout: &Layout) -> bool {
    check(&on.model, &on.system, layout).is_ok()
}

/// Bytes of a part over all chips of all stages.
fn everywhere(p: &Placement, part: Part) -> f64 {
    p.stages.iter().map(|s| s.held.part(part).get() * s.chips as f64).sum()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[test]
fn bytes_are_conserved_over_ten_thousand_layouts() {
    let (mut legal, mut seen) = (0u32, 0u64);
    for (m, on) in MODELS.iter().enumerate() {
        let model = &on.model;
        let (c, f) = (count(model), model.formats());
        let width = |part: Part| part.dtype(&f).width().get();
        let total = |part: Part| c.part(part).total as f64 * width(part);
        let experts = model.shape().unwrap().moe().map_or(1, |moe| moe.experts);
        for i in 0..1_000u64 {
            // A fixed walk through the degrees, different for each model.
            seen = seen.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407 + m as u64 + i);
            let pick = |shift: u32, most: u64| 1u64 << ((seen >> shift) % most);
            let (tp, dp, cp, ep, etp) = (pick(60 - 3, 5), pick(50, 7), pick(45, 3), pick(40, 9), pick(35, 4));
            let pp = 1 + (seen >> 30) % 8;
            let redundant = if experts > 1 { ((seen >> 25) % 3) * 32 } else { 0 };
            let degrees = Degrees { tp, dp, cp, pp, ep, etp, redundant, ..Degrees::default() };
            let Some(layout) = Layout::new(degrees).ok().filter(|layout| self::legal(on, layout)) else { continue };
            legal += 1;
            let p = placed(on, layout, 64.0);
            let (groups, shape) = ((dp * cp) as f64, model.shape().unwrap());
            for (part, copies) in [
                // Experts: as many copies as there are groups, and the redundant ones.
                (Part::Routed, layout.expert_copies() as f64 * (1.0 + redundant as f64 / experts as f64)),
                // What is cut along tp exists once per data- and context-parallel group.
                (Part::Dense, groups),
                (Part::Embedding, groups * if shape.tied && pp > 1 { 2.0 } else { 1.0 }),
                // A bias of the head is copied along tp.
                (Part::Head, if shape.head_bias { everywhere(&p, Part::Head) / total(Part::Head) } else { groups }),
                // Routers and norms are copied to every chip of the stage that has them.
                (Part::Router, layout.stage_chips() as f64),
            ] {
                assert!(close(everywhere(&p, part), total(part) * copies), "{} {layout} {}", model.id, part.name());
            }
            // Attention lies between cut everywhere and copied everywhere.
            let mixer = everywhere(&p, Part::Mixer) / groups / total(Part::Mixer);
            assert!(mixer >= 1.0 - 1e-9 && mixer <= tp as f64 * (1.0 + 1e-9), "{} {layout}", model.id);
            // Arithmetic: at least every multiplication once.
            let flop: f64 = p.stages.iter().map(|s| s.flop.get() * s.chips as f64).sum();
            assert!(flop >= c.flop_per_token().get() * 64.0 * (1.0 - 1e-9), "{} {layout}", model.id);
        }
    }
    assert!(legal >= 10_000, "only {legal} legal layouts");
}

#[test]
fn on_pipelines_alone_every_byte_is_somewhere_exactly_once() {
    for on in MODELS.iter() {
        let model = &on.model;
        let shape = model.shape().unwrap();
        let f = model.formats();
        for pp in 1..=shape.n_layers().min(12) {
            let p = placed(on, Layout::new(Degrees { pp, ..Degrees::default() }).unwrap(), 1.0);
            let all: f64 = p.stages.iter().map(|s| s.held.all_weights().get()).sum();
            let embedding = count(model).part(Part::Embedding).total as f64 * f.other.width().get();
            let twice = if shape.tied && pp > 1 { embedding } else { 0.0 };
            assert!(close(all, count(model).stored_bytes(&f).get() + twice), "{} pp{pp}", model.id);
            assert_eq!(p.stages.iter().map(|s| s.layers.1).sum::<u64>(), shape.n_layers());
        }
    }
}

proptest! {
    #[test]
    fn filling_the_pipe_keeps_the_cache_per_chip(which in 0usize..1000, pp in 1u64..9, b in 1.0f64..500.0) {
        // D33: with M = P micro-batches of b, the cache per chip does not depend on P, for stages of equal layers.
        let on = &MODELS[which % MODELS.len()];
        let shape = on.model.shape().unwrap();
        prop_assume!(shape.runs.len() == 1 && shape.n_layers().is_multiple_of(pp));
        let one = placed(on, Layout::single(), b).stages[0].held.kv;
        let layout = Layout::new(Degrees { pp, ..Degrees::default() }).unwrap();
        for stage in placed(on, layout, b * pp as f64).stages {
            prop_assert!(close(stage.held.kv, one), "{} pp{}", on.model.id, pp);
        }
    }

    #[test]
    fn the_largest_batch_fits_and_one_more_does_not(which in 0usize..1000, tp in 0u32..4) {
        let on = &MODELS[which % MODELS.len()];
        let layout = Layout::new(Degrees { tp: 1 << tp, ..Degrees::default() }).unwrap();
        prop_assume!(legal(on, &layout));
        let most = largest_batch(&cut(on, layout), &load(1.0));
        prop_assume!(most > 0.0 && most < 1e8);
        let fits = |b: f64| matches!(placed(on, layout, b).fit, Fit::Fits { .. });
        prop_assert!(fits(most * (1.0 - 1e-9)) && !fits(most + 1.0 + most * 1e-9), "{} at {}", on.model.id, most);
    }
}
