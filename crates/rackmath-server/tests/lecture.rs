//! The lecture in a real browser: the path walked by keyboard and by touch, its numbers the library's, nothing moving under
//! the hand, and what is kept in the browser.

mod common;
#[path = "common/browser.rs"]
mod driver;

use common::start;
use driver::{Browser, charts_are_the_library};
use rackmath::Catalog;
use rackmath::ask::Question;
use serde_json::{Value, json};
use std::sync::LazyLock;

static URL: LazyLock<String> = LazyLock::new(|| format!("http://{}/", start()));
static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

const STEPS: usize = 12;
const NEXT: &str = "document.querySelector('.way-next')";

fn step(n: usize) -> String {
    format!("{}#/lecture?step={n}", *URL)
}

fn quiet(browser: &Browser) {
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Every number of an answer with its place; sentences are words on the page and values in the library.
fn numbers(value: &Value, at: &str, out: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(n) => out.push((at.to_owned(), n.as_f64().expect("a number"))),
        Value::Array(all) => all.iter().enumerate().for_each(|(i, v)| numbers(v, &format!("{at}/{i}"), out)),
        Value::Object(map) if map.contains_key("says") => {}
        Value::Object(map) => map.iter().for_each(|(k, v)| numbers(v, &format!("{at}/{k}"), out)),
        _ => {}
    }
}

/// All that the page was answered is what the library answers to the same requests.
fn answers_are_the_library(browser: &mut Browser) -> usize {
    let (asked, answers) = (browser.eval("rackmath.asked"), browser.eval("rackmath.answers"));
    let mut checked = 0;
    let mut compare = |ask: &Value, shown: &Value| {
        let question = Question::find(ask[0].as_str().expect("a question")).expect("known");
        let text = question.ask(&CATALOG, &ask[1].to_string()).expect("answered");
        let ours: Value = serde_json::from_str(&text).expect("JSON");
        let (mut here, mut there) = (Vec::new(), Vec::new());
        numbers(&ours, "", &mut here);
        numbers(shown, "", &mut there);
        assert_eq!(here, there, "{ask}");
        checked += here.len();
    };
    for (name, ask) in asked.as_object().expect("asked") {
        if ask[0].is_array() {
            let (asks, shown) = (ask.as_array().expect("a list"), answers[name].as_array().expect("answers"));
            assert_eq!(asks.len(), shown.len(), "{name}");
            asks.iter().zip(shown).for_each(|(ask, shown)| compare(ask, shown));
        } else {
            compare(ask, &answers[name]);
        }
    }
    checked
}

/// The page as a reader wants it: no error, no odd word, no wider than the screen.
fn fine(browser: &mut Browser, n: usize) {
    assert_eq!(browser.eval("rackmath.error"), Value::Null, "step {n}");
    assert_eq!(browser.eval("document.querySelectorAll('.katex-error').length"), 0, "step {n}");
    let shown = browser.text("document.body.innerText");
    for bad in ["NaN", "undefined", "[object", "Infinity"] {
        assert!(!shown.contains(bad), "step {n} shows {bad}");
    }
    assert!(shown.contains(&format!("Step {n} of {STEPS}")), "step {n}: {shown}");
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), true, "step {n} is too wide");
}

/// Where every part of the page stands, from its top.
fn places(browser: &mut Browser) -> Value {
    browser.eval("[...document.querySelectorAll('[data-part]')].map((e) => [e.dataset.part, Math.round(e.getBoundingClientRect().top + scrollY)])")
}

fn settled(browser: &mut Browser, before: &Value) {
    browser.until(&format!("rackmath.drawn > {before} && rackmath.settled"));
}

#[test]
fn the_page_opens_with_the_question_of_the_lecture() {
    let mut browser = Browser::start(1440, 900);
    browser.open(&URL);
    let head = browser.text("document.querySelector('h1').textContent");
    assert!(head.contains("fast mode") && head.contains("six times"), "{head}");
    let knobs = browser.eval("[...document.querySelectorAll('.prose .knob')].map((k) => k.textContent)");
    assert_eq!(knobs, json!(["2.5", "6.0"]));
    quiet(&browser);
}

#[test]
fn the_path_is_walked_by_keyboard() {
    let mut browser = Browser::start(1440, 900);
    browser.open(&URL);
    let mut titles = Vec::new();
    for n in 1..=STEPS {
        for width in [1440, 1280] {
            browser.size(width, 900);
            fine(&mut browser, n);
            browser.picture(&format!("lecture-{n}-{width}"));
            assert_eq!(browser.violations(), Value::Array(vec![]), "step {n} at {width}");
        }
        titles.push(browser.text("document.querySelector('h1').textContent"));
        // Every knob is reached by the tab key and moved by an arrow.
        let knobs = browser.number("document.querySelectorAll('.knob').length") as usize;
        assert!(knobs > 0, "step {n} has nothing to drag");
        for knob in 0..knobs {
            let node = format!("document.querySelectorAll('.knob')[{knob}]");
            if knob == 0 {
                browser.eval("document.querySelector('.lecture-head h1').focus()");
                browser.press("Tab");
                assert_eq!(browser.eval(&format!("document.activeElement === {node}")), true, "step {n}");
            }
            let before = browser.eval("rackmath.drawn");
            let value = browser.text(&format!("{node}.getAttribute('aria-valuenow')"));
            browser.eval(&format!("{node}.focus()"));
            browser.press("ArrowRight");
            settled(&mut browser, &before);
            assert_ne!(browser.text(&format!("{node}.getAttribute('aria-valuenow')")), value, "step {n}, knob {knob}");
        }
        assert!(answers_are_the_library(&mut browser) > 0, "step {n}");
        assert!(charts_are_the_library(&mut browser, &CATALOG, &format!("step {n}")) > 0, "step {n} has no figure");
        // Its equations open.
        let opened = browser.number("(() => { const all = [...document.querySelectorAll('.opening > summary')]; all.forEach((s) => s.click()); return all.length; })()");
        assert!(opened > 0.0, "step {n} has no equation");
        assert_eq!(browser.violations(), Value::Array(vec![]), "step {n}, opened");
        // The way on is taken by a key, and the reader is at the head of the next step.
        let before = browser.eval("rackmath.drawn");
        browser.eval(&format!("{NEXT}.focus()"));
        browser.press("Enter");
        settled(&mut browser, &before);
        if n < STEPS {
            browser.until("document.activeElement.tagName === 'H1'");
            assert_eq!(browser.number("scrollY"), 0.0, "step {}", n + 1);
        }
    }
    assert_eq!(browser.eval("rackmath.page"), "practice", "the last step leads to practice");
    titles.dedup();
    assert_eq!(titles.len(), STEPS, "{titles:?}");
    quiet(&browser);
}

#[test]
fn the_path_is_walked_by_touch_on_a_phone() {
    let mut browser = Browser::start(390, 844);
    browser.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true }));
    for scheme in ["light", "dark"] {
        browser.scheme(scheme);
        browser.open(&URL);
        for n in 1..=STEPS {
            fine(&mut browser, n);
            browser.picture(&format!("lecture-{n}-390-{scheme}"));
            assert_eq!(browser.violations(), Value::Array(vec![]), "step {n} in {scheme}");
            // A knob is large enough for a thumb, with what belongs to it around it.
            let small = browser.eval("[...document.querySelectorAll('.knob')].map((k) => k.getBoundingClientRect()).filter((b) => b.height + 14 < 36 || b.width + 8 < 36).length");
            assert_eq!(small, 0, "step {n}");
            let before = browser.eval("rackmath.drawn");
            let value = browser.text("document.querySelector('.knob').getAttribute('aria-valuenow')");
            let (x, y) = browser.middle("document.querySelector('.knob')");
            let to = if x > 195.0 { x - 120.0 } else { x + 120.0 };
            browser.touch((x, y), (to, y));
            settled(&mut browser, &before);
            let moved = browser.text("document.querySelector('.knob').getAttribute('aria-valuenow')");
            if moved == value {
                // The first racks knob stands at its least: the other way.
                let before = browser.eval("rackmath.drawn");
                browser.touch((x, y), (x + x - to, y));
                settled(&mut browser, &before);
            }
            assert_ne!(
                browser.text("document.querySelector('.knob').getAttribute('aria-valuenow')"),
                value,
                "step {n}"
            );
            assert!(browser.text("location.href").contains('?'), "step {n}: the address has the value");
            assert!(answers_are_the_library(&mut browser) > 0, "step {n}");
            // The way on is large enough for a thumb.
            assert!(browser.number(&format!("{NEXT}.getBoundingClientRect().height")) >= 44.0, "step {n}");
            let before = browser.eval("rackmath.drawn");
            let at = browser.middle(NEXT);
            browser.touch(at, at);
            settled(&mut browser, &before);
        }
        assert_eq!(browser.eval("rackmath.page"), "practice");
    }
    quiet(&browser);
}

#[test]
fn nothing_moves_while_a_number_is_dragged() {
    let mut browser = Browser::start(1280, 900);
    for width in [1280, 390] {
        browser.size(width, 900);
        for n in 1..=STEPS {
            browser.open(&step(n));
            browser.until("document.querySelector('.problem p').textContent !== ''");
            let first = places(&mut browser);
            let knobs = browser.number("document.querySelectorAll('.knob').length") as usize;
            for knob in 0..knobs {
                for to in [-90.0, 60.0] {
                    let before = browser.eval("rackmath.drawn");
                    let (x, y) = browser.middle(&format!("document.querySelectorAll('.knob')[{knob}]"));
                    let value = browser.text(&format!("document.querySelectorAll('.knob')[{knob}].dataset.value"));
                    browser.drag((x, y), (x + to, y));
                    if browser.text(&format!("document.querySelectorAll('.knob')[{knob}].dataset.value")) != value {
                        settled(&mut browser, &before);
                    }
                    assert_eq!(places(&mut browser), first, "step {n}, knob {knob}, at {width}");
                }
            }
        }
    }
    quiet(&browser);
}

#[test]
fn a_dragged_number_is_in_the_sentence_as_the_library_has_it() {
    let mut browser = Browser::start(1280, 900);
    browser.open(&step(2));
    let before = browser.eval("rackmath.drawn");
    let (x, y) = browser.middle("document.querySelector('[data-knob=batch]')");
    browser.drag((x, y), (x + 77.0, y));
    settled(&mut browser, &before);
    let batch: f64 =
        browser.text("document.querySelector('[data-knob=batch]').dataset.value").parse().expect("a number");
    assert!(batch > 256.0);
    let body = json!({ "setting": { "model": "deepseek-v3", "on": "gb200-nvl72" }, "batch": batch, "context": 4096 });
    let answer: Value =
        serde_json::from_str(&Question::Step.ask(&CATALOG, &body.to_string()).expect("answered")).expect("JSON");
    let ms = answer["time_s"].as_f64().expect("a time") * 1e3;
    let said = browser.text("document.querySelectorAll('.prose')[1].innerText");
    let shown = format!("one step, {} ms.", rackmath_units::significant(ms, 3));
    assert!(said.ends_with(&shown), "{said} does not end with {shown}");
    quiet(&browser);
}

#[test]
fn what_does_not_fit_is_said_in_the_verdict() {
    let mut browser = Browser::start(1280, 900);
    for n in [2, 3, 6, 9, 11] {
        browser.open(&step(n));
        let said = browser.text("document.querySelector('.reading').innerText");
        assert!(!said.contains("fit"), "step {n} as it opens: {said}");
        let batch = if n == 11 { 262_144 } else { 16_384 };
        let context = if n == 9 { 131_072 } else { 262_144 };
        browser.open(&format!("{}&batch={batch}&context={context}", step(n)));
        let said = browser.text("document.querySelector('.reading').innerText");
        assert!(said.contains("does not fit") || said.contains("fits with no"), "step {n}: {said}");
    }
    quiet(&browser);
}

#[test]
fn a_decimal_comma_is_read_and_an_old_verdict_goes() {
    let mut browser = Browser::start(1280, 900);
    browser.open(&step(3));
    browser.until("document.querySelector('.problem p').textContent !== ''");
    let typed = |text: &str| {
        format!(
            "(() => {{ const i = document.querySelector('.problem input'); i.value = '{text}'; \
             i.dispatchEvent(new Event('input')); }})()"
        )
    };
    browser.eval(&typed("11,7"));
    browser.and_redrawn("document.querySelector('.problem form').requestSubmit()");
    browser.until("document.querySelector('.problem [role=status]').textContent !== ''");
    assert_eq!(browser.number("rackmath.answers.practice.problems[0].given"), 11.7);
    browser.eval(&typed("abc"));
    assert_eq!(browser.text("document.querySelector('.problem [role=status]').textContent"), "");
    quiet(&browser);
}

#[test]
fn a_step_that_is_not_there_is_refused() {
    let mut browser = Browser::start(1280, 900);
    browser.open(&step(13));
    let said = browser.text("document.querySelector('.refused').innerText");
    assert!(said.contains("13") && said.contains("1 to 12"), "{said}");
}

#[test]
fn every_figure_is_copied_as_picture_numbers_and_link() {
    let mut browser = Browser::start(1280, 900);
    let origin = URL.trim_end_matches('/');
    browser.call(
        "Browser.grantPermissions",
        json!({ "origin": origin, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }),
    );
    browser.open(&format!("{}&batch=300", step(2)));
    let copied = |browser: &mut Browser, format: &str| {
        browser.eval("document.getElementById('status').textContent = ''");
        browser.eval(&format!("document.querySelector('[aria-label=\"Copy equation-time as {format}\"]').click()"));
        browser.until("document.getElementById('status').textContent !== ''");
        let said = browser.text("document.getElementById('status').textContent");
        assert!(said.contains("is in the clipboard"), "{format}: {said}");
        if format == "PNG" {
            return browser.text("navigator.clipboard.read().then((all) => all[0].types.join())");
        }
        browser.text("navigator.clipboard.readText()")
    };
    let svg = copied(&mut browser, "SVG");
    assert!(svg.starts_with("<svg"), "{}", &svg[..60]);
    let csv = copied(&mut browser, "CSV");
    assert!(csv.lines().count() > 50 && csv.contains(','), "{csv}");
    assert_eq!(copied(&mut browser, "PNG"), "image/png");
    let link = copied(&mut browser, "Link");
    assert!(link.contains("step=2") && link.contains("batch=300") && link.contains("figure=equation-time"), "{link}");
    browser.open(&link);
    assert_eq!(browser.number("rackmath.answers.step.batch"), 300.0);
    quiet(&browser);
}

#[test]
fn what_was_typed_and_learnt_stays_in_the_browser() {
    let mut browser = Browser::start(1280, 900);
    let practice = format!("{}#/practice", *URL);
    browser.open(&practice);
    let type_into = |browser: &mut Browser, id: &str, text: &str| {
        browser.eval(&format!(
            "(() => {{ const i = document.getElementById('{id}'); i.value = '{text}'; i.dispatchEvent(new Event('input')); }})()"
        ));
    };
    // Typed, not checked: still there when another is checked, and after the page was left.
    type_into(&mut browser, "answer-1", "12.5");
    type_into(&mut browser, "answer-0", "7");
    browser.and_redrawn("document.querySelector('#answer-0').form.requestSubmit()");
    assert_eq!(browser.text("document.getElementById('answer-1').value"), "12.5");
    browser.open(&practice);
    assert_eq!(browser.text("document.getElementById('answer-1').value"), "12.5");
    // A card that was known is not due any more; one that was not comes again.
    let waiting = |b: &mut Browser| b.text("document.querySelector('.deck [role=status]').textContent");
    assert!(waiting(&mut browser).starts_with("27 of 27"));
    let press = |b: &mut Browser, name: &str| {
        b.eval(&format!(
            "[...document.querySelectorAll('.deck button')].find((x) => x.textContent === '{name}').click()"
        ));
    };
    let first = browser.text("document.querySelector('.deck-front').textContent");
    press(&mut browser, "Turn the card");
    press(&mut browser, "I knew it");
    assert!(waiting(&mut browser).starts_with("26 of 27"));
    let second = browser.text("document.querySelector('.deck-front').textContent");
    assert_ne!(first, second);
    press(&mut browser, "Turn the card");
    press(&mut browser, "Not yet");
    assert!(waiting(&mut browser).starts_with("26 of 27"), "not known: still to look at");
    assert_ne!(browser.text("document.querySelector('.deck-front').textContent"), second, "behind the others");
    browser.open(&practice);
    assert!(waiting(&mut browser).starts_with("26 of 27"), "kept");
    let kept = browser.eval("JSON.parse(localStorage.getItem('rackmath.cards'))");
    let days = (kept[&first]["due"].as_f64().expect("due") - browser.number("Date.now()")) / 86_400_000.0;
    assert!(days > 0.9 && days <= 1.0, "{days}");
    // The problem of a step: typed, left, found again, checked.
    browser.open(&step(1));
    browser.until("document.querySelector('.problem p').textContent !== ''");
    type_into(&mut browser, "lecture-answer-D7", "15");
    browser.open(&step(1));
    browser.until("document.querySelector('.problem p').textContent !== ''");
    assert_eq!(browser.text("document.getElementById('lecture-answer-D7').value"), "15");
    browser.and_redrawn("document.querySelector('.problem form').requestSubmit()");
    browser.until("document.querySelector('.problem [role=status]').textContent !== ''");
    let answer = browser.eval("rackmath.answers.practice.problems[0]");
    let right = (answer["answer"].as_f64().expect("an answer") - 15.0).abs() <= 0.3;
    assert_eq!(answer["right"], right);
    quiet(&browser);
}
