//! Training layouts: the search finds what can be asked for, offers only what fits, and what does not fit says what would.

use rackmath::Catalog;
use rackmath::train::{Answer, ChangeCard, Request, answer_on};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

fn asked(r: &Request) -> Answer {
    answer_on(&CATALOG, r, 1).unwrap()
}

fn refused(r: &Request) -> String {
    answer_on(&CATALOG, r, 1).unwrap_err().to_string()
}

/// A model on so many chips of a machine.
fn of(model: &str, on: &str, chips: u64, batch: u64, sequence: u64) -> Request {
    let (model, on) = (Some(model.into()), Some(on.into()));
    let (chips, global_batch, sequence) = (Some(chips), Some(batch), Some(sequence));
    Request { model, on, chips, global_batch, sequence, ..Request::default() }
}

/// The same question with the fields of a layout.
fn with(r: &Request, fields: &serde_json::Map<String, serde_json::Value>, chips: u64) -> Request {
    let mut json = serde_json::to_value(Request { chips: Some(chips), search: false, ..r.clone() }).unwrap();
    for name in ["tp", "cp", "pp", "dp", "virtual_stages", "ep", "etp", "micro_batch", "sharding", "recompute"] {
        json[name] = serde_json::Value::Null;
    }
    for (name, value) in fields {
        json[name] = value.clone();
    }
    serde_json::from_value(json).unwrap()
}

fn llama() -> Request {
    of("llama-3.1-405b", "hgx-h100", 16_384, 2048, 8192)
}

#[test]
fn the_search_is_never_slower_than_a_layout_by_hand() {
    let found = asked(&llama());
    // Pipelines of 16 stages of 8 chips with gradients divided; in 7 chunks, of which one is twice as large, and in 8.
    let by_hand = |virtual_stages, lighter_ends| {
        let (tp, pp, sharding) = (Some(8), Some(16), Some(serde_json::from_value("zero2".into()).unwrap()));
        let (virtual_stages, lighter_ends) = (Some(virtual_stages), Some(lighter_ends));
        asked(&Request { tp, pp, sharding, virtual_stages, lighter_ends, ..llama() })
    };
    let (seven, eight) = (by_hand(7, false), by_hand(8, true));
    assert!(found.fits && found.search.is_some() && seven.search.is_none());
    assert!(found.step_s <= eight.step_s && eight.step_s < seven.step_s, "{} {}", found.step_s, eight.step_s);
    assert!(found.step_s < 5.99, "{}", found.step_s);
    // It can be asked for by its fields, to the bit; so can each of the list.
    let again = asked(&with(&llama(), &found.with, 16_384));
    assert_eq!((again.step_s, again.layout), (found.step_s, found.layout));
    for c in &found.search.unwrap().best {
        let a = asked(&with(&llama(), &c.with, 16_384));
        assert_eq!((a.step_s, a.fits, a.layout), (c.step_s, true, c.layout.clone()));
    }
}

#[test]
fn parts_that_are_given_stay_and_the_rest_is_looked_for() {
    let r = of("llama-3.1-70b", "hgx-h100", 64, 128, 8192);
    let open = asked(&r);
    // No degree is given: what is given of the rest holds.
    let full = asked(&Request { recompute: Some(serde_json::from_value("full".into()).unwrap()), ..r.clone() });
    assert!(full.search.is_some() && full.layout.contains("full recompute") && full.step_s >= open.step_s);
    // A degree alone is a layout; with a search it is the part that stays.
    let by_hand = asked(&Request { tp: Some(4), ..r.clone() });
    assert!(by_hand.search.is_none() && by_hand.layout.starts_with("tp4 dp16"));
    let part = asked(&Request { tp: Some(4), search: true, ..r.clone() });
    assert!(part.layout.starts_with("tp4") && part.search.is_some() && part.step_s >= open.step_s);
    let copies = asked(&Request { dp: Some(2), search: true, ..r });
    assert!(copies.layout.contains("dp2") && copies.fits);
}

#[test]
fn runs_are_asked_for_by_name_and_fit_as_they_did() {
    // 2,048 H800, arXiv 2412.19437: 180 k chip-hours for each trillion tokens, 2.664 M for all.
    let run = |name: &str| Request { run: Some(name.into()), ..Request::default() };
    let a = asked(&run("deepseek-v3"));
    assert!(a.fits && a.search.is_none() && a.chips == 2048, "{:?}", a.stages);
    assert_eq!(a.layout, "pp16 dp128 ep64 b1 zero1 dualpipe cheap recompute");
    let p = a.published.unwrap();
    assert!((p.computed_chip_hours.unwrap() / 2.664e6 - 1.0).abs() < 0.1, "{p:?}");
    // Without what its report says of memory (moments of 16 bits, inputs of 8) it would not have.
    let other = asked(&Request { stack: Some("megatron-core".into()), ..run("deepseek-v3") });
    assert!(!other.fits && other.verdict.is_some());
    // A flag beside a run replaces its value.
    let again = Request { recompute: Some(serde_json::from_value("none".into()).unwrap()), ..run("deepseek-v3") };
    assert!(!asked(&again).fits);
    // 16,384 H100 with 128 copies reached 41 %, Table 4 of arXiv 2407.21783.
    let a = asked(&run("llama-3-405b"));
    assert!(a.fits && (0.37..0.47).contains(&a.mfu) && a.layout.ends_with("lighter ends"), "{}", a.mfu);
    let error = refused(&run("palm-540b"));
    assert!(error.contains("deepseek-v3") && error.contains("llama-3-405b"), "{error}");
    assert!(error.contains("its authors printed no layout"), "{error}");
    // A slip is answered with names that work.
    let error = refused(&run("llama-3"));
    assert!(
        error.contains("llama-3-405b") && !error.contains("llama-3-70b") && !error.contains("llama-3.1-8b"),
        "{error}"
    );
}

/// ZeRO-2 holds no gradient whole: of eight micro-batches each is reduced, with ZeRO-1 only their sum.
#[test]
fn gradients_that_are_divided_are_reduced_after_every_micro_batch() {
    let word = |word: &str| serde_json::from_value(word.into()).unwrap();
    let reduced = |sharding: &str, batch: u64| {
        let (dp, tp, micro_batch) = (Some(64), Some(1), Some(1));
        let r = Request {
            sharding: Some(word(sharding)),
            dp,
            tp,
            micro_batch,
            ..of("llama-3.1-8b", "hgx-h100", 64, batch, 512)
        };
        let a = asked(&r);
        a.parts.iter().find(|p| p.name == "gradient reduction").map_or(0.0, |p| p.time_s)
    };
    let (one, eight) = (reduced("zero1", 64), reduced("zero1", 512));
    assert!(one > 0.0 && (eight / one - 1.0).abs() < 1e-9, "{one} {eight}");
    let (first, all) = (reduced("zero2", 64), reduced("zero2", 512));
    assert!((first / one - 1.0).abs() < 1e-9, "one micro-batch is reduced once either way: {first} {one}");
    // A step ends with a reduction and with updated weights; each of the other seven is a reduction alone.
    assert!(all > 4.0 * first && all < 8.0 * first, "{first} {all}");
}

/// A chip without bf16 trains in fp16, at that peak; and a format is what it is called.
#[test]
fn fp16_is_not_bf16() {
    let format = |name: &str| Some(name.to_owned());
    let v100 = |f: Option<String>| Request { format: f, tp: Some(8), ..of("llama-3.1-8b", "8xv100", 8, 8, 2048) };
    let (usual, given) = (asked(&v100(None)), asked(&v100(format("fp16"))));
    assert_eq!((usual.step_s, usual.mfu), (given.step_s, given.mfu));
    // 125 TFLOP/s of tensor cores, NVIDIA V100 data sheet.
    assert!(
        (given.flop_per_s_per_chip / given.mfu / 125e12 - 1.0).abs() < 0.01,
        "{}",
        given.flop_per_s_per_chip / given.mfu
    );
    let error = refused(&v100(format("bf16")));
    assert!(error.contains("bf16") && error.contains("fp16"), "{error}");
    // Where a chip has both they are as fast.
    let h100 =
        |f: &str| asked(&Request { format: format(f), tp: Some(8), ..of("llama-3.1-8b", "8xh100", 8, 8, 2048) }).step_s;
    assert_eq!(h100("fp16"), h100("bf16"));
}

/// Every change is a layout that fits and takes as long as is said.
fn hold(r: &Request, changes: &[ChangeCard]) {
    assert!(!changes.is_empty());
    for c in changes {
        let a = asked(&with(r, &c.with, c.chips));
        assert!(a.fits, "{c:?}");
        assert_eq!((a.step_s, a.chips), (c.step_s, c.chips), "{c:?}");
    }
}

#[test]
fn what_does_not_fit_says_what_would() {
    let says = |a: &Answer| a.changes.iter().map(|c| c.what.says.to_string()).collect::<Vec<_>>();
    // Too many activations: run more again, or smaller micro-batches.
    let r = of("llama-3.1-70b", "hgx-h100", 64, 128, 8192);
    let layout = Request { tp: Some(8), pp: Some(4), micro_batch: Some(4), ..r.clone() };
    let a = asked(&layout);
    assert!(!a.fits && a.verdict.is_some());
    hold(&layout, &a.changes);
    assert!(
        ["fits_recompute", "fits_micro_batch"].iter().all(|s| says(&a).contains(&(*s).to_string())),
        "{:?}",
        says(&a)
    );
    // Too many weights for a chip: only other degrees help, or more of everything at once.
    let whole = Request { dp: Some(8), ..of("llama-3.1-70b", "hgx-h100", 8, 64, 4096) };
    let a = asked(&whole);
    assert!(!a.fits);
    hold(&whole, &a.changes);
    // What fits needs no change.
    assert!(asked(&Request { tp: Some(8), pp: Some(4), ..r }).changes.is_empty());
}

#[test]
fn where_no_layout_fits_the_fewest_chips_are_named() {
    for (model, on, chips, batch) in [("llama-3.1-405b", "hgx-h100", 8, 64), ("deepseek-v3", "hgx-h200", 16, 256)] {
        let r = of(model, on, chips, batch, 4096);
        let a = asked(&r);
        assert!(!a.fits && a.search.is_some());
        let more = a.changes.iter().find(|c| c.what.says == "fits_chips").unwrap();
        let text = serde_json::to_value(&more.what).unwrap();
        let n = text["chips"].as_u64().unwrap();
        assert!(n > chips && n.is_multiple_of(8) && more.chips <= n);
        let fits = |chips| asked(&Request { chips: Some(chips), ..r.clone() }).fits;
        assert!(fits(n) && !fits(n - 8), "{model} from {n}");
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let r = of("llama-3.1-8b", "hgx-h100", 16, 32, 4096);
    for (wrong, word) in [
        (Request { tp: Some(3), dp: Some(1), ..r.clone() }, "heads"),
        (Request { tp: Some(3), search: true, ..r.clone() }, "heads"),
        (Request { cp: Some(3), dp: Some(1), ..r.clone() }, "sequence"),
        (Request { pp: Some(2), virtual_stages: Some(17), ..r.clone() }, "layers"),
        (Request { virtual_stages: Some(2), dp: Some(16), ..r.clone() }, "pp"),
        (
            Request {
                pp: Some(16),
                virtual_stages: Some(2),
                micro_batch: Some(2),
                global_batch: Some(34),
                ..r.clone()
            },
            "stages",
        ),
        (Request { ep: Some(2), ..r.clone() }, "experts"),
        (Request { tp: Some(5), dp: Some(4), ..r.clone() }, "copies"),
        (Request { dp: Some(3), ..r.clone() }, "multiple"),
        (Request { pp: Some(3), dp: Some(4), schedule: Some("dualpipe".into()), ..r.clone() }, "even"),
    ] {
        let error = refused(&wrong);
        assert!(error.contains(word), "{error}");
    }
}

/// What fits holds every moment that a run cannot avoid, whatever optimizer updates it.
#[test]
fn what_fits_fits_at_its_first_update_too() {
    let unavoidable = ["peak_loaded_by_layer", "peak_first_update", "peak_steady", "peak_sharded_checkpoint"];
    for (model, on, chips, optimizer) in [
        ("llama-3.1-70b", "hgx-h100", 8, Some("adamw-8bit")),
        ("llama-3.1-70b", "hgx-h100", 16, Some("adamw-bf16")),
        ("llama-3.1-70b", "hgx-h100", 16, None),
        ("llama-3.1-8b", "hgx-h100", 2, Some("adamw")),
    ] {
        let optimizer = optimizer.map(|word| serde_json::from_value(word.into()).unwrap());
        let a = asked(&Request { optimizer, peaks: true, ..of(model, on, chips, 32, 4096) });
        let peaks = a.tuned.as_ref().unwrap().peaks.iter();
        let held = peaks.filter(|p| unavoidable.contains(&&*p.when.says)).all(|p| p.fits);
        assert_eq!(a.fits, held, "{model} on {chips}: {:?}", a.tuned);
    }
}

/// Adapters that are too large beside whole weights are told of narrow ones, which fit.
#[test]
fn adapters_that_do_not_fit_are_offered_weights_in_4_bits() {
    let base = Request { lora: Some(16), ..of("llama-3.1-8b", "rtx-4090", 1, 256, 4096) };
    let a = asked(&base);
    assert!(!a.fits && a.changes.iter().any(|c| c.what.says == "fits_narrow"), "{:?}", a.changes);
    let narrow = asked(&Request { qlora: true, ..base });
    assert!(narrow.fits && narrow.with["lora"] == 16 && narrow.with["qlora"] == true, "{:?}", narrow.with);
}

/// What all weights trained are said to take is what the page of that says, in the program that trains the adapters.
#[test]
fn adapters_are_held_against_the_page_of_all_weights_in_the_same_program() {
    let base = of("llama-3.1-8b", "hgx-h100", 8, 256, 4096);
    let lora = asked(&Request { lora: Some(16), ..base.clone() });
    let tuned = lora.tuned.unwrap();
    let full = asked(&Request { stack: Some("torchtitan".into()), ..base });
    assert_eq!(full.stack, lora.stack);
    assert!(full.fits && tuned.full_step_s == Some(full.step_s) && lora.step_s < full.step_s, "{tuned:?}");
}
