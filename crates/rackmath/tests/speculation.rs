//! Tokens guessed ahead, against counting: from how many requests on they lose, and what must hold whoever guesses.

use rackmath::estimate::{Answer, Drafts, Request, Speculation, answer};
use rackmath::setting::Setting;
use rackmath_catalog::embedded;

fn request(model: &str, on: &str, speculation: Option<Speculation>, c: f64) -> Request {
    let setting = Setting { model: model.into(), on: on.into(), ..Setting::default() };
    let (isl, osl) = (200.0, 200.0);
    let concurrency = Some(c);
    Request {
        setting,
        speculation,
        concurrency,
        isl,
        osl,
        max_num_seqs: Some(48.0),
        changes: false,
        ..Request::default()
    }
}

fn tpot(a: &Answer) -> f64 {
    a.served.as_ref().expect("it fits").tpot_ms.value
}

#[test]
fn the_batch_from_which_drafts_lose_is_the_one_counting_finds() {
    let catalog = embedded();
    let mut lost = 0;
    for (model, on, drafter, drafts, acceptance) in [
        ("llama-3.1-8b", "h100", "eagle3", 3.0, 0.25),
        ("qwen3-8b", "l4", "qwen3-0.6b", 4.0, 0.35),
        ("qwen3-8b", "h100", "ngram", 5.0, 0.2),
    ] {
        let guess = Speculation {
            drafts: Drafts::Number(drafts),
            acceptance: Some(acceptance),
            drafter: Some(drafter.into()),
            ..Speculation::default()
        };
        let with = |c: u32| answer(&catalog, &request(model, on, Some(guess.clone()), f64::from(c))).unwrap();
        let found = with(1).speculation.unwrap();
        let most = u32::try_from(found.looked_up_to).unwrap();
        let wins = |c: u32| tpot(&with(c)) < tpot(&answer(&catalog, &request(model, on, None, f64::from(c))).unwrap());
        let last = (1..=most).rev().find(|c| wins(*c));
        let counted = last.map_or(Some(1), |c| (c < most).then_some(u64::from(c) + 1));
        assert_eq!(found.loses_from, counted, "{model} on {on} by {drafter}");
        lost += usize::from(counted.is_some());
    }
    assert!(lost > 0, "one of them loses");
}

#[test]
fn certain_guesses_that_cost_nothing_never_lose() {
    let catalog = embedded();
    for (model, on) in [("llama-3.1-8b", "h100"), ("qwen3-30b-a3b", "h200"), ("llama-3.1-70b", "4xh100")] {
        for drafts in [1.0, 3.0, 7.0] {
            let drafter = Some("ngram".into());
            let sure = Speculation {
                drafts: Drafts::Number(drafts),
                acceptance: Some(1.0),
                drafter,
                ..Speculation::default()
            };
            let a = answer(&catalog, &request(model, on, Some(sure), 16.0)).unwrap();
            let said = a.speculation.unwrap();
            assert_eq!(said.loses_from, None, "{model} {drafts}");
            assert!(said.speedup > 1.0 && said.speedup <= drafts + 1.0 + 1e-9, "{model} {drafts}: {}", said.speedup);
        }
    }
}

#[test]
fn the_best_number_of_drafts_is_better_than_its_neighbours() {
    let catalog = embedded();
    let ask = |drafts: Drafts| {
        let drafter = Some("eagle3".into());
        let guess = Speculation { drafts, drafter, workload: Some("code".into()), ..Speculation::default() };
        answer(&catalog, &request("llama-3.1-8b", "h100", Some(guess), 8.0)).unwrap()
    };
    let best = ask(Drafts::Auto);
    let k = best.speculation.as_ref().unwrap().drafts;
    for other in [k - 1.0, k + 1.0].into_iter().filter(|k| *k >= 1.0) {
        assert!(tpot(&best) <= tpot(&ask(Drafts::Number(other))), "{k} {other}");
    }
    // A drafter of its own takes memory, and a smaller one less.
    let held = |drafter: &str| {
        let guess = Speculation { drafter: Some(drafter.into()), acceptance: Some(0.6), ..Speculation::default() };
        answer(&catalog, &request("qwen3-32b", "h100", Some(guess), 1.0))
            .unwrap()
            .speculation
            .unwrap()
            .weight_bytes_per_chip
    };
    assert!(held("qwen3-1.7b") > held("qwen3-0.6b") && held("qwen3-0.6b") > 1e9 && held("ngram") == 0.0);
}

#[test]
fn who_cannot_draft_is_refused() {
    let catalog = embedded();
    for (drafter, word) in [("mtp", "eagle3"), ("llama-3.1-405b", "smaller"), ("nobody-1b", "ngram"), ("", "ngram")] {
        let guess = Speculation { drafter: Some(drafter.into()), ..Speculation::default() };
        let said = answer(&catalog, &request("qwen3-8b", "h100", Some(guess), 1.0)).unwrap_err().to_string();
        assert!(said.contains(word), "{drafter}: {said}");
    }
    // Words of another vocabulary are no guesses, and a drafter that has the model's is named.
    let guess = Speculation { drafter: Some("qwen3-0.6b".into()), ..Speculation::default() };
    let said = answer(&catalog, &request("llama-3.1-70b", "4xh100", Some(guess), 1.0)).unwrap_err().to_string();
    assert!(["151,936", "128,256", "llama-3.2-1b"].iter().all(|word| said.contains(word)), "{said}");
    let both = Speculation { drafts: Drafts::Auto, accepted: Some(2.0), ..Speculation::default() };
    let said = answer(&catalog, &request("qwen3-8b", "h100", Some(both), 1.0)).unwrap_err().to_string();
    assert!(said.contains("acceptance"), "{said}");
}

/// A token may come sooner while the request takes longer: beside a drafter memory holds fewer, and the others wait.
#[test]
fn the_verdict_is_of_the_whole_request_at_this_load() {
    let catalog = embedded();
    let guess = |drafts| Speculation {
        drafts: Drafts::Number(drafts),
        drafter: Some("llama-3.1-8b".into()),
        ..Speculation::default()
    };
    let setting = Setting { model: "llama-3.1-70b".into(), on: "4xh100".into(), ..Setting::default() };
    let of = |speculation| Request {
        setting: setting.clone(),
        speculation,
        concurrency: Some(256.0),
        changes: false,
        ..Request::default()
    };
    let whole = |a: &Answer| a.served.as_ref().unwrap().e2e_ms.unwrap().value;
    let plain = answer(&catalog, &of(None)).unwrap();
    for drafts in [1.0, 5.0] {
        let a = answer(&catalog, &of(Some(guess(drafts)))).unwrap();
        let s = a.speculation.as_ref().unwrap();
        assert!((s.request_gain - whole(&plain) / whole(&a)).abs() < 1e-9 && s.request_gain < 1.0, "{s:?}");
        assert!(s.verdict.says != "speculation_wins" && s.best_drafts == 0, "{s:?}");
    }
}
