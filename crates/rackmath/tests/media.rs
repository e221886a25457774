//! Pictures, sound and vectors in an estimate: what they add, what they leave alone, what is refused.

use proptest::prelude::*;
use rackmath::estimate::{Answer, Request, Seek, Unknown, answer};
use rackmath::layout::DegreesRequest;
use rackmath::media::Media;
use rackmath::setting::Setting;

fn request(model: &str, on: &str) -> Request {
    let setting = Setting { model: model.into(), on: on.into(), ..Setting::default() };
    Request { setting, isl: 500.0, osl: 200.0, concurrency: Some(8.0), changes: false, ..Request::default() }
}

fn with(media: Media) -> Request {
    Request { media: Some(media), ..request("qwen2.5-vl-7b", "h100") }
}

fn ask(request: &Request) -> Answer {
    answer(&rackmath_catalog::embedded(), request).unwrap()
}

fn refused(request: &Request) -> String {
    answer(&rackmath_catalog::embedded(), request).unwrap_err().to_string()
}

fn says(answer: &Answer, what: &str) -> bool {
    answer.assumptions.iter().any(|said| said.says == what)
}

fn pictures(images: u64, size: &str) -> Media {
    Media { images, image_size: size.into(), ..Media::default() }
}

#[test]
fn no_picture_is_the_text_answer_and_says_so() {
    let text = ask(&request("qwen2.5-vl-7b", "h100"));
    assert!(says(&text, "pictures_not_counted") && text.media.is_none());
    assert_eq!(text, ask(&with(Media::default())));
    // The text model inside, but for the memory that the tower takes.
    let inside = ask(&request("qwen2.5-7b", "h100"));
    assert!(!says(&inside, "pictures_not_counted"));
    let (a, b) = (text.served.unwrap(), inside.served.unwrap());
    // How sure they are may differ: other models were measured.
    let means = |s: &rackmath::estimate::Served| [s.tpot_ms.value, s.ttft_ms.unwrap().value, s.requests_per_s.value];
    assert_eq!(means(&a), means(&b));
    assert!(a.room < b.room);
    assert!(says(&ask(&request("qwen2-audio-7b", "h100")), "sound_not_counted"));
}

#[test]
fn two_pictures_by_hand() {
    // 1280 x 960: 46 x 34 tokens each, four patches to a token.
    let a = ask(&with(pictures(2, "1280x960")));
    let m = a.media.unwrap();
    assert_eq!((m.text_tokens, m.picture_tokens, m.sound_tokens), (500.0, 2.0 * 1564.0, 0.0));
    assert_eq!((m.patches, a.isl), (2.0 * 4.0 * 1564.0, 500.0 + 2.0 * 1564.0));
    assert_eq!(m.encoder_params, 676_550_144.0);
    // 2 x 0.65 G multiplied parameters x 12,512 patches at 989 TFLOP/s are 16 ms; no kernel reaches that, none is ten times slower.
    assert!((16.0..100.0).contains(&m.encode_ms), "{}", m.encode_ms);
    assert!(says(&Answer { media: None, ..ask(&with(pictures(2, "1280x960"))) }, "encoder_unmeasured"));
    let sound = Media { audio_s: 30.0, ..Media::default() };
    let heard = ask(&Request { media: Some(sound), ..request("qwen2-audio-7b", "h100") });
    assert_eq!(heard.media.unwrap().sound_tokens, 750.0);
}

#[test]
fn chips_that_only_encode() {
    let degrees = DegreesRequest { tp: Some(1), ..DegreesRequest::default() };
    let setting = Setting { on: "16xh100".into(), ..with(Media::default()).setting };
    let ask_with = |chips| {
        let media = Some(Media { encoder_chips: chips, ..pictures(4, "1920x1080") });
        ask(&Request { media, setting: setting.clone(), degrees: degrees.clone(), ..with(Media::default()) })
    };
    let (inside, balanced) = (ask_with(None), ask_with(Some(0)));
    let pool = balanced.media.clone().unwrap().encoders.unwrap();
    assert!(pool.chips >= pool.balanced_chips && pool.busy <= 1.0);
    assert_eq!(balanced.chips, inside.chips + pool.chips as u64);
    // Nobody who decodes waits for an encoder any more.
    let tpot = |a: &Answer| a.served.as_ref().unwrap().tpot_ms.value;
    assert!(tpot(&balanced) < tpot(&inside));
    // A first token waits for the encoder whoever it belongs to.
    let first = balanced.served.as_ref().unwrap().ttft_ms.unwrap().value;
    assert!(first > balanced.media.as_ref().unwrap().encode_ms);
    let many = ask_with(Some(8)).media.unwrap().encoders.unwrap();
    assert!(many.wait_ms <= pool.wait_ms + 1e-9);
    assert!(says(&balanced, "encoder_apart"));
    // Chips that are not there encode nothing.
    let none = ask_with(Some(16));
    assert!(none.served.is_none() && none.problem.unwrap().what.says == "too_few_chips");
}

#[test]
fn a_copy_on_every_chip_holds_more_than_a_share() {
    let of = |mode: &str| {
        let media = Media { encoder_tp_mode: mode.into(), ..pictures(4, "1024x1024") };
        ask(&Request { media: Some(media), ..request("qwen2.5-vl-72b", "4xh100") }).media.unwrap()
    };
    let (cut, copied) = (of("weights"), of("data"));
    let weights = 2.0 * cut.encoder_params;
    assert!((copied.encoder_bytes - cut.encoder_bytes - weights * 0.75).abs() < 1.0);
    assert!(cut.encode_ms > 0.0 && copied.encode_ms > 0.0);
}

#[test]
fn vectors_take_one_pass() {
    let embedding = Request { isl: 512.0, concurrency: Some(32.0), ..request("bge-m3", "l4") };
    let a = ask(&embedding);
    let e = a.embedding.as_ref().unwrap();
    assert!(a.served.is_none() && a.problem.is_none());
    // Little: what is in flight leaves at the rate.
    let inside = e.requests_per_s.value * e.latency_ms.unwrap().value / 1e3;
    assert!((inside / 32.0 - 1.0).abs() < 0.02, "{inside}");
    // 2 x 0.31 G multiplied parameters a token at 121 TFLOP/s: at most 195,000 tokens a second.
    assert!(e.input_tok_s.value < 195_000.0 && e.input_tok_s.value > 20_000.0, "{}", e.input_tok_s.value);
    // A decoder gives vectors where asked to, or asked for no answer.
    let decoder = request("qwen3-embedding-8b", "h100");
    let asked = ask(&Request { embed: true, ..decoder.clone() });
    assert_eq!(asked, ask(&Request { osl: 0.0, ..decoder }));
    assert!(asked.embedding.is_some());
    // More arrive than passes take.
    let flood = ask(&Request { concurrency: None, rate_per_s: Some(1e5), ..embedding });
    assert!(flood.problem.is_some() && flood.embedding.unwrap().latency_ms.is_none());
}

/// At a rate a text waits for the pass under way: the page of a solution says what the solution rests on, and a stricter target allows
/// no higher rate.
#[test]
fn vectors_at_a_rate_are_one_sum_for_means_and_percentiles() {
    let base = Request { isl: 512.0, concurrency: None, ..request("bge-m3", "l4") };
    let most = |limit: &str| {
        let seek = Seek { solve: Some(Unknown::Rate), ..Seek::default() };
        let a = ask(&Request { ttft_ms: Some(limit.parse().unwrap()), seek, ..base.clone() });
        let (s, e) = (a.solved.unwrap(), a.embedding.unwrap());
        let (at, slo) = (s.at.unwrap(), e.slo.unwrap());
        assert!(slo.met && at.meets && s.next.is_some_and(|next| !next.meets), "{limit}");
        assert!((at.ttft_ms.unwrap() / e.latency_ms.unwrap().value - 1.0).abs() < 1e-9, "{limit}");
        s.value.unwrap()
    };
    let (mean, p50, p99, tight) = (most("100ms"), most("p50=100ms"), most("p99=100ms"), most("p99=40ms"));
    assert!(tight <= p99 && p99 <= mean && p99 <= p50, "{mean} {p50} {p99} {tight}");
    // A text takes 7.5 ms: 133 a second at most, and a tenth of that is nearly idle.
    assert!(p99 > 60.0 && mean < 140.0, "{mean} {p99}");
    let idle = ask(&Request { rate_per_s: Some(10.0), ..base }).embedding.unwrap();
    let times = idle.percentiles.unwrap();
    assert!(times.times[0].p50_ms < 40.0 && idle.busy < 0.2, "{times:?}");
}

#[test]
fn what_cannot_be_is_refused_with_what_could() {
    let on_text = Request { media: Some(pictures(1, "64x64")), ..request("qwen2.5-7b", "h100") };
    assert!(refused(&on_text).contains("no encoder of pictures"), "{}", refused(&on_text));
    for bad in ["", "1280", "0x5", "axb", "1280x", "-1x4", "9999999x1"] {
        assert!(refused(&with(pictures(1, bad))).contains("1280x960"), "{bad}");
    }
    assert!(refused(&with(pictures(1, "20000x50"))).contains("200 times"));
    assert!(refused(&with(Media { encoder_chips: Some(2), ..Media::default() })).contains("--images"));
    assert!(
        refused(&with(Media { encoder_tp_mode: "both".into(), ..pictures(1, "64x64") })).contains("weights or data")
    );
    assert!(refused(&Request { osl: 1.0, ..request("qwen2.5-7b", "h100") }).contains("0 for vectors"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn more_or_larger_pictures_never_take_less(n in 1_u64..4, more in 1_u64..4, side in 3_u64..40) {
        let of = |n: u64, side: u64| ask(&with(pictures(n, &format!("{0}x{0}", side * 28))));
        let (few, many, large) = (of(n, side), of(n + more, side), of(n, side * 2));
        for other in [&many, &large] {
            let [a, b] = [&few, other].map(|a| (a.media.clone().unwrap(), a.served.clone().unwrap()));
            prop_assert!(a.0.picture_tokens <= b.0.picture_tokens && a.0.encode_ms <= b.0.encode_ms + 1e-9);
            prop_assert!(a.1.ttft_ms.unwrap().value <= b.1.ttft_ms.unwrap().value * (1.0 + 1e-6));
            prop_assert!(a.1.requests_per_s.value * (1.0 + 1e-6) >= b.1.requests_per_s.value);
        }
    }
}
