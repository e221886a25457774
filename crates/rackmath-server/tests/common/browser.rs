//! A real Chromium, driven over its own protocol.

use data_encoding::BASE64;
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

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
