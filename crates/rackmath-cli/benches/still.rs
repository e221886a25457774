//! The page without a server: how long until the first answer is drawn, and until a slider that moved is. Needs a quiet machine.
//!
//! `cargo bench -p rackmath-cli --bench still`. A processor a quarter as fast takes at most four times as long, which is what is held
//! against the limits: a browser's own throttle slows the page, but not the worker in which the engine runs.

#[path = "../../rackmath-server/tests/common/browser.rs"]
mod driver;
#[path = "../tests/common/host.rs"]
mod files;

use driver::Browser;
use serde_json::json;
use std::path::Path;

const ROUNDS: usize = 9;
const SLOWER: f64 = 4.0;

/// Notes when the board was first drawn, on the page's own clock.
const WATCH: &str =
    "new MutationObserver(() => { if (document.body?.dataset.drawn > 0) window.firstDrawn ??= performance.now(); })
    .observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-drawn'] });";

/// Moves the first slider of the board, and waits until that is drawn.
const SLIDE: &str = "new Promise((done) => {
    const slider = document.querySelector('input[type=range]');
    const before = window.rackmath.drawn, began = performance.now();
    slider.value = Number(slider.value) + (Number(slider.value) > Number(slider.max) - 5 ? -5 : 1) * (Number(slider.step) || 1);
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    const look = () => (window.rackmath.drawn > before ? done(performance.now() - began) : setTimeout(look, 1));
    look();
})";

fn told(what: &str, mut times: Vec<f64>, limit: f64) {
    times.sort_by(f64::total_cmp);
    let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{what}: median {median:.0} ms ({least:.0} to {most:.0}), {:.0} ms on a processor a quarter as fast; limit {limit:.0} ms",
        median * SLOWER
    );
}

fn main() {
    let Some(engine) = files::engine() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("still-bench");
    let address = files::host(files::written(&engine, &folder));
    let mut browser = Browser::start(1280, 900);
    browser.call("Network.enable", json!({}));
    browser.call("Network.setCacheDisabled", json!({ "cacheDisabled": true }));
    browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH }));
    for (page, moves) in [("#/lecture", false), ("#/latency", true), ("#/estimate", true)] {
        let mut first = Vec::new();
        for _ in 0..ROUNDS {
            browser.open(&format!("http://{address}/{page}"));
            first.push(browser.number("window.firstDrawn"));
        }
        told(&format!("{page}: first answer"), first, 2000.0);
        if moves {
            let slid = (0..ROUNDS * 3).map(|_| browser.number(SLIDE)).collect();
            told(&format!("{page}: a slider"), slid, 100.0);
        }
    }
}
