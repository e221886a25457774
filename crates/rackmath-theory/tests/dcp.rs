//! Laws of decode context parallel: bytes are conserved, work per chip is as before, and only long contexts gain.

use proptest::prelude::*;
use rackmath_spec::layout::Degrees;
use rackmath_spec::{Catalog, Dtype, Layout};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::kv;
use rackmath_theory::layout::check;
use rackmath_theory::pass::{Chunk, KernelSet, Part, Pass, Work, joined_bytes};
use rackmath_theory::placement::{Load, largest_batch, place};
use rackmath_units::{Fraction, Tokens};
use std::sync::{Arc, LazyLock};

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);
static KERNELS: LazyLock<KernelSet> = LazyLock::new(|| KernelSet::of(&CATALOG).unwrap());

/// A model and a machine on which all chips of a group of so many keep copies of some cached head.
const PLACES: [(&str, &str, u64, u64); 4] = [
    ("deepseek-v3", "hgx-h200", 8, 8),
    ("kimi-k2", "hgx-b200", 8, 8),
    ("llama-3.1-70b", "gb200-nvl72", 16, 2),
    ("qwen3-235b-a22b", "hgx-h200", 8, 2),
];

fn degrees(tp: u64, dcp: u64) -> Degrees {
    Degrees { tp, etp: tp, dcp, ..Degrees::default() }
}

fn cut(on: &Deployment, tp: u64, dcp: u64) -> Deployment {
    Deployment { layout: Layout::new(degrees(tp, dcp)).unwrap(), ..on.clone() }
}

fn pass(on: &Deployment, tp: u64, dcp: u64) -> Pass {
    let on = cut(on, tp, dcp);
    check(&on.model, &on.system, &on.layout).unwrap();
    Pass::prepare(&on, &KERNELS).unwrap()
}

fn found(at: usize) -> (Deployment, u64, u64) {
    let (model, system, tp, most) = PLACES[at];
    (Deployment::named(&CATALOG, model, system, "vllm").unwrap(), tp, most)
}

#[test]
fn without_copies_the_group_stores_every_byte_once_and_holds_more_sequences() {
    for at in 0..PLACES.len() {
        let (mut on, tp, most) = found(at);
        // Room for the weights, whatever their format: what matters is the cache.
        Arc::make_mut(&mut Arc::make_mut(&mut on.system).chip).memory =
            CATALOG.system("gb300-nvl72").unwrap().chip.memory.clone();
        let on = Deployment { kv: Dtype::Bf16, ..on };
        let load =
            Load { batch: 8.0, context: Tokens::new(32_000.0), tokens: 2048.0, utilisation: Fraction::new(0.95) };
        let placed = |dcp: u64| place(&cut(&on, tp, dcp), &load);
        let stored = |dcp: u64| -> f64 { placed(dcp).stages.iter().map(|s| s.held.kv * s.chips as f64).sum() };
        let once = 8.0 * kv::cache(&on.model, Dtype::Bf16).stored(Tokens::new(32_000.0)).get();
        assert!((stored(most) / once - 1.0).abs() < 1e-12, "{}: {} of {once}", on.model.id, stored(most));
        assert!((stored(1) / once - most as f64).abs() < 1e-9, "{}", on.model.id);
        // Weights and arithmetic stay as they were.
        let (parted, whole) = (placed(most), placed(1));
        assert_eq!(parted.stages[0].held.weights, whole.stages[0].held.weights);
        assert_eq!(parted.stages[0].flop, whole.stages[0].flop);
        let (more, fewer) = (largest_batch(&cut(&on, tp, most), &load), largest_batch(&cut(&on, tp, 1), &load));
        assert!(more >= fewer && (fewer == 0.0 || more > 1.5 * fewer), "{}: {fewer} to {more}", on.model.id);
    }
}

#[test]
fn what_a_token_sends() {
    let model = CATALOG.model("deepseek-v3").unwrap();
    let mixer = &model.shape().unwrap().runs[0].block.mixer;
    // 128 heads: queries of 512 + 64 and outputs of 512 values in 2 bytes, 8 log-sum-exps of 4 bytes; 7/8 of it leave.
    let all = 128.0 * (576.0 * 2.0 + 512.0 * 2.0 + 8.0 * 4.0);
    assert_eq!(joined_bytes(mixer, &degrees(8, 8)), all * 7.0 / 8.0);
    assert_eq!(joined_bytes(mixer, &degrees(8, 1)), 0.0);
}

#[test]
fn long_contexts_gain_and_short_ones_lose() {
    for at in 0..PLACES.len() {
        let (on, tp, most) = found(at);
        let (whole, cut) = (pass(&on, tp, 1), pass(&on, tp, most));
        let time = |pass: &Pass, b: f64, context: f64| pass.cost(&Work::decode(b, context)).time().get();
        assert!(time(&cut, 32.0, 128_000.0) < 0.95 * time(&whole, 32.0, 128_000.0), "{} long", on.model.id);
        assert!(time(&cut, 1.0, 256.0) > time(&whole, 1.0, 256.0), "{} short", on.model.id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_chip_reads_its_share_multiplies_as_much_and_beats_no_roofline(
        at in 0..PLACES.len(), b in 1.0..128.0_f64, context in 100.0..100_000.0_f64, prompt in 0.0..4096.0_f64,
        past in 0.0..50_000.0_f64,
    ) {
        let (on, tp, most) = found(at);
        let (whole, cut) = (pass(&on, tp, 1), pass(&on, tp, most));
        let step = |pass: &Pass, context: f64| pass.cost(&Work::decode(b.floor(), context)).roofline();
        // What a longer context adds to either side of the roofline.
        let more = |pass: &Pass| {
            let (near, far) = (step(pass, context), step(pass, context + 100_000.0));
            (far.0.get() - near.0.get(), far.1.get() - near.1.get())
        };
        let (one, part) = (more(&whole), more(&cut));
        prop_assert!((part.0 / one.0 - 1.0).abs() < 1e-6, "arithmetic {} {}", one.0, part.0);
        prop_assert!((part.1 / one.1 * most as f64 - 1.0).abs() < 1e-6, "memory {} {}", one.1, part.1);
        let mixed = Work::decode(b.floor(), context).with(Chunk { tokens: prompt.floor(), prompts: 1.0, past });
        let (a, c) = (whole.cost(&mixed), cut.cost(&mixed));
        prop_assert!(c.time() >= c.ideal() * (1.0 - 1e-12));
        prop_assert!(c.part(Part::Network) > a.part(Part::Network));
        prop_assert_eq!(c.part(Part::Products), a.part(Part::Products));
    }
}
