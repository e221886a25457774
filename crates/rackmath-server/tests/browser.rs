//! The blackboard in a real browser: every page drawn, its numbers the library's, its controls alive.

mod common;
#[path = "common/browser.rs"]
mod driver;

use common::start;
use driver::{Browser, charts_are_the_library};
use rackmath::Catalog;
use rackmath::ask::Question;
use serde_json::Value;
use std::sync::LazyLock;

static URL: LazyLock<String> = LazyLock::new(|| format!("http://{}/", start()));
static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

fn pages() -> Vec<String> {
    let list = include_str!("../ui/pages/index.js");
    let ids: Vec<String> =
        list.split("id: \"").skip(1).map(|s| s.split('"').next().expect("an id").to_owned()).collect();
    assert!(!ids.is_empty());
    ids
}

fn at(page: &str) -> String {
    format!("{}#/{page}", *URL)
}

fn quiet(browser: &Browser) {
    assert_eq!(browser.complaints, Vec::<String>::new());
    for address in &browser.asked {
        let ours = [URL.as_str(), "data:", "blob:", "about:"].iter().any(|start| address.starts_with(start));
        assert!(ours, "an outside request: {address}");
    }
}

#[test]
fn every_page_draws_the_library_and_is_quiet_and_accessible() {
    let mut browser = Browser::start(1360, 900);
    let mut charts = 0;
    for page in pages() {
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            browser.open(&at(&page));
            assert_eq!(browser.eval("rackmath.error"), Value::Null, "{page}");
            assert_eq!(browser.eval("document.querySelectorAll('.katex-error').length"), 0, "{page}");
            let words = browser.text("document.querySelector('.reading')?.textContent ?? ''");
            assert!(words.len() > 20, "{page} has no reading: {words}");
            let shown = browser.text("document.body.innerText");
            for bad in ["NaN", "undefined", "[object", "Infinity"] {
                assert!(!shown.contains(bad), "{page} shows {bad}");
            }
            browser.picture(&format!("{page}-{scheme}"));
            assert_eq!(browser.violations(), Value::Array(vec![]), "{page} in {scheme}");
        }
        charts += charts_are_the_library(&mut browser, &CATALOG, &page);
    }
    assert!(charts >= pages().len() / 2, "{charts} charts");
    quiet(&browser);
}

#[test]
fn every_page_fits_a_phone() {
    let mut browser = Browser::start(390, 844);
    for page in pages() {
        browser.open(&at(&page));
        let fits = browser.eval("document.documentElement.scrollWidth <= innerWidth");
        assert_eq!(fits, true, "{page} is wider than a phone");
        browser.picture(&format!("{page}-phone"));
    }
    quiet(&browser);
}

#[test]
fn sliders_move_the_numbers_and_links_bring_them_back() {
    let mut browser = Browser::start(1360, 900);
    for page in pages() {
        browser.open(&at(&page));
        // The first slider that is shown.
        let sliders = "[...document.querySelectorAll('.panel input[type=range]')].find((r) => r.offsetParent)";
        if browser.eval(&format!("{sliders} === undefined")) == true {
            continue;
        }
        let seen = |b: &mut Browser| b.eval("document.querySelector('.content').innerText");
        let first = seen(&mut browser);
        let slide = &format!(
            "(() => {{ const r = {sliders}; r.value = Number(r.value) > 500 ? 230 : 770; \
             r.dispatchEvent(new Event('input')); r.dispatchEvent(new Event('change')); }})()"
        );
        browser.and_redrawn(slide);
        let moved = seen(&mut browser);
        assert!(first != moved, "{page}: the slider changes nothing");
        assert_eq!(browser.eval("rackmath.error"), Value::Null, "{page}");
        let link = &browser.text("location.href");
        assert!(link.contains('?'), "{page}: {link}");
        // Whichever came first.
        let answers = "JSON.stringify(Object.entries(rackmath.answers).sort())";
        let there = browser.eval(answers);
        browser.open(link);
        assert!(browser.eval(answers) == there, "{page}: {link} shows something else");
        // Back is undo; the first address had no settings.
        browser.open(&at(&page));
        browser.and_redrawn(slide);
        browser.and_redrawn("document.getElementById('undo').click()");
        assert!(seen(&mut browser) == first, "{page}: undo shows something else");
        browser.and_redrawn("document.getElementById('redo').click()");
        assert!(seen(&mut browser) == moved, "{page}: redo shows something else");
    }
    quiet(&browser);
}

fn drop_config(browser: &mut Browser, text: &str) {
    let text = serde_json::to_string(text).expect("JSON");
    browser.and_redrawn(&format!(
        "(() => {{ const give = new DataTransfer(); give.items.add(new File([{text}], 'config.json', {{ type: 'application/json' }})); \
         const file = document.querySelector('#c-model-file'); file.files = give.files; file.dispatchEvent(new Event('change')); }})()"
    ));
    browser.until("rackmath.values.model === 'config.json' && rackmath.settled");
}

#[test]
fn a_dropped_config_is_asked_about_and_a_bad_one_gets_the_librarys_words() {
    let mut browser = Browser::start(1360, 900);
    let config = include_str!("config.json");
    browser.open(&at("latency"));
    drop_config(&mut browser, config);
    let weights = "rackmath.answers.step.memory.weights_bytes";
    let shown = browser.number(weights);
    let body =
        format!(r#"{{"files": {{"config.json": {config}}}, "setting": {{"model": "config.json"}}, "batch": 2048}}"#);
    let answer: Value = serde_json::from_str(&Question::Step.ask(&CATALOG, &body).expect("answered")).expect("JSON");
    assert_eq!(answer["memory"]["weights_bytes"].as_f64(), Some(shown));
    // The link carries the file.
    let link = browser.text("location.href");
    browser.open(&link);
    assert_eq!(browser.number(weights), shown);
    quiet(&browser);

    for bad in [r#"{"architectures": ["NoSuchModel"]}"#, r#"{"hidden_size": "wide"}"#, "{", "[]"] {
        browser.open(&at("latency"));
        drop_config(&mut browser, bad);
        let said = browser.text("document.querySelector('.refused')?.innerText ?? ''");
        let catalog = &mut CATALOG.clone();
        let ours = catalog.add(rackmath::Kind::Models, "config.json", bad, None).expect_err("refused");
        let problem = ours.shown(str::to_owned, str::to_owned).problem;
        assert!(said.contains(&problem), "{said:?} does not say {problem:?}");
    }
}

#[test]
fn the_document_of_the_interface_can_be_tried() {
    let mut browser = Browser::start(1360, 900);
    browser.call("Page.navigate", serde_json::json!({ "url": format!("{}docs.html#step", *URL) }));
    browser.until("document.querySelector('textarea') && [...document.querySelectorAll('button')].some((b) => b.textContent === 'Send')");
    browser.eval("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Send').click()");
    browser.until("document.body.innerText.includes('latency_floor_s')");
    assert_eq!(browser.violations(), Value::Array(vec![]));
    browser.picture("docs-light");
    quiet(&browser);
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest() {
    let mut browser = Browser::start(1360, 900);
    browser.open(&format!("{}?model=deepseek-v33", at("latency")));
    let said = browser.text("document.querySelector('.refused').innerText");
    assert!(said.contains("deepseek-v3"), "{said}");
    browser.open(&at("no-such-page"));
    assert_eq!(browser.eval("rackmath.page"), "lecture");
}

#[test]
fn undo_ends_where_the_page_began_and_a_bad_link_says_what_it_ignores() {
    let mut browser = Browser::start(1360, 900);
    browser.open(&at("latency"));
    let buttons = "[document.getElementById('undo').disabled, document.getElementById('redo').disabled]";
    assert_eq!(browser.eval(buttons), serde_json::json!([true, true]));
    let drawn = browser.eval("rackmath.drawn");
    browser.eval("document.getElementById('c-batch').focus()");
    browser.press("ArrowRight");
    browser.until(&format!("rackmath.drawn > {drawn} && rackmath.settled"));
    assert_eq!(browser.eval(buttons), serde_json::json!([false, true]));
    browser.and_redrawn("document.getElementById('undo').click()");
    assert_eq!(browser.eval(buttons), serde_json::json!([true, false]));
    let said = |b: &mut Browser| b.text("document.querySelector('.ignored').innerText");
    assert_eq!(said(&mut browser), "");
    browser.open(&format!("{}?batch=abc", at("latency")));
    assert!(said(&mut browser).contains("batch = \"abc\""), "{}", said(&mut browser));
    assert_eq!(browser.number("rackmath.answers.step.batch"), 2048.0);
    browser.open(&at("no-such-page"));
    assert!(said(&mut browser).contains("no-such-page"), "{}", said(&mut browser));
    quiet(&browser);
}

#[test]
fn the_figure_of_all_sources_shows_every_row() {
    let mut browser = Browser::start(1360, 900);
    browser.open(&at("validation"));
    browser.until("rackmath.charts.scatter");
    let drawn = "rackmath.charts.scatter.figure.series.slice(3).reduce((n, s) => n + s.points.length, 0)";
    let rows = "rackmath.answers.validate.sources.reduce((n, s) => n + s.rows.length, 0)";
    assert_eq!(browser.number(drawn), browser.number(rows));
    quiet(&browser);
}

#[test]
fn the_keyboard_reaches_and_moves_the_controls() {
    let mut browser = Browser::start(1360, 900);
    browser.open(&at("latency"));
    browser.eval("document.getElementById('c-batch').focus()");
    let before = browser.number("rackmath.answers.step.batch");
    let drawn = browser.eval("rackmath.drawn");
    browser.press("ArrowRight");
    browser.until(&format!("rackmath.drawn > {drawn} && rackmath.settled"));
    assert!(browser.number("rackmath.answers.step.batch") > before);
    // The first stop of the tab key leads past the head of the page.
    browser.eval("document.activeElement.blur()");
    quiet(&browser);
}
