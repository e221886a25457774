//! Pictures and sound as tokens, held against the processors of their families; towers, against published counts.

use proptest::prelude::*;
use rackmath_spec::tower::{Rule, Sense, Window};
use rackmath_theory::count::towers::{self, Picture, Seen};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::pass::{KernelSet, Senses, Spread, encoding};
use std::sync::Arc;

/// Rules as published with the models, by the names in the table.
fn rules() -> Vec<(&'static str, Rule)> {
    let rounded = |patch, least, most, frames| Rule::Rounded { patch, merge: 2, least, most, frames, pair: 2 };
    let grids = |tile: u64, all: &[(u64, u64)]| all.iter().map(|(h, w)| (h * tile, w * tile)).collect::<Vec<_>>();
    let next = grids(336, &[(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)]);
    let six: Vec<(u64, u64)> = (1..=6).flat_map(|h| (1..=6).map(move |w| (h, w))).collect();
    vec![
        ("qwen2-vl", rounded(14, 3136, 12_845_056, 1)),
        ("qwen2-vl-small", rounded(14, 3136, 1_003_520, 1)),
        ("qwen3-vl", rounded(16, 65_536, 16_777_216, 1)),
        ("glm-4.5v", rounded(14, 12_544, 9_633_792, 2)),
        ("pixtral", Rule::Rows { patch: 16, merge: 1, longest: 1024 }),
        ("mistral-3", Rule::Rows { patch: 14, merge: 2, longest: 1540 }),
        ("llava-next", Rule::AnyRes { tile: 336, side: 24, patches: 577, grids: next, most: None }),
        ("llava-onevision", Rule::AnyRes { tile: 384, side: 27, patches: 729, grids: grids(384, &six), most: Some(9) }),
        ("internvl", Rule::Tiles { tile: 448, most: 12, patches: 1025, tokens: 256, around: 2 }),
        ("llama-4", Rule::Canvas { tile: 336, most: 16, patches: 577, tokens: 144 }),
        ("kimi-k2.5", Rule::Padded { patch: 14, merge: 2, most: 16_384, side: 512 }),
        ("kimi-vl", Rule::Padded { patch: 14, merge: 2, most: 4096, side: 512 }),
        ("gemma-4", Rule::Filled { patch: 16, pool: 3, tokens: 280 }),
    ]
}

/// `data/picture_tokens.py` asked the processors of transformers 5.22.2; with 1,000 rows a family instead of 60 all agree as
/// well.
#[test]
fn pictures_have_as_many_tokens_as_their_processors_count() {
    let table = include_str!("data/picture_tokens.csv");
    let rules = rules();
    let (mut rows, mut wrong) = (0, Vec::new());
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |i: usize| cells[i].parse::<u64>().unwrap();
        let rule = &rules.iter().find(|(name, _)| *name == cells[0]).unwrap().1;
        let ours = towers::picture(rule, Picture { width: number(1), height: number(2) });
        rows += 1;
        if ours.tokens != number(3) {
            wrong.push(format!("{line}: {}", ours.tokens));
        }
    }
    assert!(wrong.is_empty(), "{} of {rows}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows >= 13 * 60);
}

#[test]
fn sizes_of_fixed_families() {
    // LLaVA 1.5: 24 x 24 patches; Gemma 3: 64 x 64 patches, averaged four by four.
    let picture = Picture { width: 1280, height: 960 };
    assert_eq!(towers::picture(&Rule::Fixed { patches: 577, tokens: 576 }, picture).tokens, 576);
    assert_eq!(towers::picture(&Rule::Fixed { patches: 4096, tokens: 256 }, picture).tokens, 256);
    // Qwen2.5-VL: 960 / 28 = 34.3 and 1280 / 28 = 45.7: 34 x 46 tokens of four patches.
    let (_, rule) = &rules()[0];
    let seen = towers::picture(rule, picture);
    assert_eq!((seen.tokens, seen.sequences, seen.patches), (34 * 46, 1, 34 * 46 * 4));
    // A film of 9 frames is five pairs.
    assert_eq!(towers::film(rule, picture, 9).tokens, 5 * 34 * 46);
}

#[test]
fn sound_by_hand() {
    // Whisper and Voxtral: 1,500 positions for thirty seconds, of which Voxtral joins four: 375 tokens. Padded to whole windows.
    let voxtral = Rule::Sound { pool: 4, window: Window::Padded };
    for (seconds, tokens, windows) in [(30.0, 375, 1), (1.0, 375, 1), (31.0, 750, 2), (0.0, 0, 0)] {
        let seen = towers::sound(&voxtral, seconds);
        assert_eq!((seen.tokens, seen.sequences), (tokens, windows), "{seconds}");
    }
    // Qwen2-Audio: (n - 1) / 2 + 1 positions of n steps, then (p - 2) / 2 + 1 tokens: 3,000 give 750, 999 give 250.
    let qwen = Rule::Sound { pool: 2, window: Window::Cut };
    assert_eq!([30.0, 9.99, 60.0, 0.01].map(|s| towers::sound(&qwen, s).tokens), [750, 250, 750, 0]);
    assert_eq!(towers::sound(&Rule::Sound { pool: 2, window: Window::Open }, 60.0).tokens, 1500);
}

/// Towers with their projectors as published: of checkpoints that were counted as text only, from the comments and sources of
/// the same files; of the others, what their `tower_params` take off.
#[test]
fn computed_towers_equal_the_published_ones() {
    let catalog = rackmath_catalog::embedded();
    let told = [
        ("gemma-3-4b", 4_300_079_472 - 3_880_263_168),
        ("gemma-3-12b", 12_187_325_040 - 11_766_034_176),
        ("gemma-3-27b", 27_432_406_640 - 27_009_346_304),
        ("gemma-4-31b", 569_550_384 + 6_193_152),
        ("llama-4-scout", 871_932_416),
        ("llama-4-maverick", 871_932_416),
        ("llama-3.2-11b-vision", 895_028_755),
        ("kimi-k2.5", 416_866_032 + 54_277_888),
        ("qwen3.5-0.8b", 100_592_896),
        ("qwen3.5-2b", 331_416_576),
        ("qwen3.5-4b", 333_514_240),
        ("qwen3.5-9b", 456_010_480),
        ("qwen3.5-27b", 460_730_096),
        ("qwen3.5-35b-a3b", 446_571_248),
        ("qwen3.5-122b-a10b", 451_290_864),
        ("qwen3.5-397b-a17b", 456_010_480),
        // Less 476 scales of eight-bit floats.
        ("ministral-3-8b", 428_472_320),
    ];
    let (mut checked, mut wrong) = (0, Vec::new());
    for id in catalog.ids(rackmath_spec::Kind::Models) {
        let model = catalog.model(id).unwrap();
        let Some(shape) = model.shape().filter(|shape| !shape.towers.is_empty()) else { continue };
        let published = model.published.as_ref().filter(|p| p.exact).map(|p| p.towers).filter(|n| *n > 0);
        let told = told.iter().find(|(name, _)| *name == id).map(|(_, n)| *n).or(published);
        let Some(theirs) = told else { continue };
        checked += 1;
        let ours = towers::towers_params(shape);
        if ours != u128::from(theirs) {
            wrong.push(format!("{id}: computed {ours}, published {theirs}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 28, "{checked}");
    let gemma = catalog.model("gemma-3-27b").unwrap();
    assert!(towers::tower(gemma.shape().unwrap(), Sense::Hearing).is_none());
}

/// A plain PyTorch encoder on an H200 (`data/encoders_h200.py`), on one chip as vLLM runs it: half of the passes within 1.6.
#[test]
fn encoders_take_about_as_long_as_measured() {
    let catalog = rackmath_catalog::embedded();
    let mut ratios: Vec<f64> = Vec::new();
    for line in include_str!("data/encoders_h200.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |i: usize| cells[i].parse::<f64>().unwrap();
        let on = Deployment::named(&catalog, cells[0], "h200", "vllm").unwrap();
        let kernels = KernelSet::of_model(&catalog, &on.model).unwrap();
        let (sequences, patches) = (number(1) as u64, number(2) as u64);
        let seen = Seen { tokens: sequences * patches / 4, sequences, patches };
        let senses = Senses { seen: vec![(Sense::Sight, seen)], prompt: 1.0, spread: Spread::Apart, chips: None };
        let on = Deployment { senses: Some(Arc::new(senses)), ..on };
        let ours = encoding(&on, &kernels).unwrap().time().as_ms();
        ratios.push(number(3) / ours);
    }
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[0] > 0.25 && ratios[9] < 1.75, "{ratios:?}");
    let middle = (ratios[4] * ratios[5]).sqrt();
    assert!((1.0 / 1.6..1.6).contains(&middle), "{ratios:?}");
}

proptest! {
    #[test]
    fn a_larger_picture_has_no_fewer_tokens(w in 28_u64..3000, h in 28_u64..3000, by in 2_u64..4) {
        for (name, rule) in rules() {
            // Scaled, so that the shape stays: another shape may fit a grid of fewer tiles.
            let [small, large] = [1, by].map(|k| towers::picture(&rule, Picture { width: w * k, height: h * k }));
            let within = match rule {
                // Beyond its limits a picture is shrunk to whole tokens that fit, which may be fewer than the limit.
                Rule::Rounded { most, frames, .. } => w * h * by * by * frames < most / 2,
                Rule::Rows { longest, .. } => w.max(h) * by <= longest,
                Rule::Padded { patch, most, .. } => w * h * by * by < most * patch * patch / 2,
                _ => false,
            };
            prop_assert!(!within || large.tokens >= small.tokens, "{name} {w}x{h} by {by}: {small:?} {large:?}");
            prop_assert!(small.tokens > 0 && small.patches > 0 && small.sequences > 0, "{name}");
        }
    }

    #[test]
    fn more_sound_has_no_fewer_tokens(a in 0.0_f64..200.0, b in 0.0_f64..200.0) {
        for window in [Window::Padded, Window::Cut, Window::Open] {
            let [x, y] = [a.min(b), a.max(b)].map(|s| towers::sound(&Rule::Sound { pool: 4, window }, s).tokens);
            prop_assert!(x <= y);
        }
    }
}
