//! A real Chromium, driven over its own protocol.
#![allow(dead_code)] // each test file uses its part

use data_encoding::BASE64;
use rackmath::Catalog;
use rackmath::ask::Question;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};

/// A browser with one page open; gone when dropped.
pub struct Browser {
    child: Child,
    folder: PathBuf,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    next: u64,
    /// Errors the page has reported.
    pub complaints: Vec<String>,
    pub asked: Vec<String>,
}

fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    let found = std::env::split_paths(&path).flat_map(|d| names.map(|n| d.join(n))).find(|p| p.is_file());
    found.expect("the page is tested in a real browser and none was found: apt-get install chromium, or set CHROMIUM to its path")
}

impl Browser {
    pub fn start(width: u32, height: u32) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("browser-{}-{:?}", std::process::id(), std::thread::current().id()).replace(['(', ')'], ""));
        let mut child = Command::new(program())
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--mute-audio",
            ])
            .args(["--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-port=0"])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--user-data-dir={}", folder.display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|l| l.strip_prefix("DevTools listening on ").map(str::to_owned))
            .expect("the browser says where it listens");
        // What it says later is nobody's concern, but it must be able to say it.
        std::thread::spawn(move || lines.for_each(drop));
        let host = url.trim_start_matches("ws://").split('/').next().expect("a host").to_owned();
        let stream = TcpStream::connect(host).expect("connects");
        stream.set_read_timeout(Some(Duration::from_mins(4))).expect("set");
        let (socket, _) = tungstenite::client(url, stream).expect("a web socket");
        let mut browser =
            Self { child, folder, socket, session: None, next: 0, complaints: Vec::new(), asked: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, json!({}));
        }
        browser.size(width, height);
        browser
    }

    pub fn size(&mut self, width: u32, height: u32) {
        let mobile = width < 600;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile }),
        );
    }

    /// Light or dark, as a system would ask for.
    pub fn scheme(&mut self, name: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": name }, { "name": "prefers-reduced-motion", "value": "reduce" }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).expect("sent");
        loop {
            let Message::Text(text) = self.socket.read().expect("the browser answers") else { continue };
            let reply: Value = serde_json::from_str(&text).expect("JSON");
            if reply["id"] == id {
                assert!(reply.get("error").is_none(), "{method}: {}", reply["error"]);
                return reply["result"].clone();
            }
            self.note(&reply);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled")
                if matches!(params["type"].as_str(), Some("error" | "warning" | "assert")) =>
            {
                self.complaints.push(params["args"].to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                self.asked.extend(params["request"]["url"].as_str().map(str::to_owned));
            }
            _ => {}
        }
    }

    /// The value of an expression in the page; promises are waited for.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let reply = self.call("Runtime.evaluate", params);
        assert!(reply.get("exceptionDetails").is_none(), "{expression}: {}", reply["exceptionDetails"]);
        reply["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.eval(expression).as_str().expect("a text").to_owned()
    }

    pub fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().expect("a number")
    }

    /// What axe finds wrong with the page.
    pub fn violations(&mut self) -> Value {
        self.eval(include_str!("../axe/axe.min.js"));
        self.eval("axe.run().then((r) => r.violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`))")
    }

    pub fn until(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != true {
            assert!(begun.elapsed() < Duration::from_mins(4), "never: {expression}; complaints: {:?}", self.complaints);
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    /// Opens an address and waits until the board is drawn, with what comes later.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": url }));
        self.until("document.body?.dataset.drawn > 0 && window.rackmath?.settled");
    }

    /// Runs something and waits until the board is drawn anew.
    pub fn and_redrawn(&mut self, action: &str) {
        let before = self.eval("window.rackmath.drawn");
        self.eval(action);
        self.until(&format!("window.rackmath.drawn > {before} && window.rackmath.settled"));
    }

    /// A picture of the whole page, kept with the other results of the tests.
    pub fn picture(&mut self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("board");
        std::fs::create_dir_all(&folder).expect("writable");
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        let bytes = BASE64.decode(shot["data"].as_str().expect("a picture").as_bytes()).expect("base64");
        assert!(bytes.len() > 5_000, "{name} is empty");
        std::fs::write(folder.join(format!("{name}.png")), bytes).expect("writable");
    }
}

/// Hands: keys, a finger, a mouse.
impl Browser {
    /// The key of a name, pressed and let go where the focus is.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            other => panic!("no code for {other}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            self.call(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code }),
            );
        }
    }

    /// Where the middle of an element is, scrolled into view.
    pub fn middle(&mut self, of: &str) -> (f64, f64) {
        let found = self.eval(&format!(
            "(() => {{ const e = {of}; e.scrollIntoView({{ block: 'center' }}); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        ));
        (found[0].as_f64().expect("a place"), found[1].as_f64().expect("a place"))
    }

    /// A finger put down, moved in steps and lifted. One that has moved rests before it is lifted: lifted on the move it is a flick,
    /// and the browser takes the next touch as one that stops it, not as a tap.
    pub fn touch(&mut self, from: (f64, f64), to: (f64, f64)) {
        let point = |(x, y): (f64, f64)| json!([{ "x": x, "y": y }]);
        self.call("Input.dispatchTouchEvent", json!({ "type": "touchStart", "touchPoints": point(from) }));
        for i in 1..=8 {
            let part = f64::from(i) / 8.0;
            let at = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
            if from != to {
                self.call("Input.dispatchTouchEvent", json!({ "type": "touchMove", "touchPoints": point(at) }));
            }
        }
        if from != to {
            std::thread::sleep(Duration::from_millis(150));
            self.call("Input.dispatchTouchEvent", json!({ "type": "touchMove", "touchPoints": point(to) }));
        }
        self.call("Input.dispatchTouchEvent", json!({ "type": "touchEnd", "touchPoints": [] }));
    }

    /// A mouse button pressed, moved in steps and let go.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let mut mouse = |kind: &str, (x, y): (f64, f64)| {
            let params = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", params);
        };
        mouse("mousePressed", from);
        for i in 1..=8 {
            let part = f64::from(i) / 8.0;
            mouse("mouseMoved", (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part));
        }
        mouse("mouseReleased", to);
    }
}

/// What a chart draws is what the library answers, point by point.
pub fn charts_are_the_library(browser: &mut Browser, catalog: &Catalog, page: &str) -> usize {
    let charts = browser.eval(
        "Object.entries(rackmath.charts).map(([key, c]) => ({ key, source: c.options.source ?? null, data: c.plot.data.map((l) => [...l]) }))",
    );
    let charts = charts.as_array().expect("charts").clone();
    for chart in &charts {
        let data = chart["data"].as_array().expect("data");
        let drawn = data.len() > 1 && !data[0].as_array().expect("abscissae").is_empty();
        assert!(drawn, "{page}: {} is empty", chart["key"]);
        let Some(source) = chart["source"].as_array() else { continue };
        let (question, pointer) = (source[0].as_str().expect("a question"), source[2].as_str().expect("a place"));
        let answer = Question::find(question).and_then(|q| q.ask(catalog, &source[1].to_string())).expect("answered");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let series = answer.pointer(pointer).expect("the figure")["series"].as_array().expect("series").clone();
        assert_eq!(series.len() + 1, data.len(), "{page} {}", chart["key"]);
        let xs = data[0].as_array().expect("abscissae");
        for (line, drawn) in series.iter().zip(&data[1..]) {
            for point in line["points"].as_array().expect("points") {
                let mut all = xs.iter().zip(drawn.as_array().expect("ordinates"));
                // Of two points over one abscissa the second is drawn a hair beside it.
                let near = |x: f64, of: f64| (x - of).abs() <= 1e-11 * of.abs();
                let found = all.any(|(x, y)| {
                    y.as_f64() == point[1].as_f64()
                        && x.as_f64().zip(point[0].as_f64()).is_some_and(|(x, of)| near(x, of))
                });
                assert!(found, "{page} {}: {} has {point}, which is not drawn", chart["key"], line["name"]);
            }
        }
    }
    charts.len()
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
