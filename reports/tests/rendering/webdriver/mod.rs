//! A headless browser, driven through chromedriver by the WebDriver protocol.

#![expect(clippy::print_stdout, reason = "that a test is skipped")]

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// The variable that makes a missing browser an error, as in CI.
const REQUIRED: &str = "SHAKETABLE_BROWSER";

/// The key of an element in an answer.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A running chromedriver.
pub struct Driver {
    process: Child,
    url: String,
}

impl Driver {
    /// Starts chromedriver. If it is not installed, that is an error where the browser is required, and
    /// printed elsewhere.
    pub fn start() -> Option<Driver> {
        let mut command = Command::new("chromedriver");
        let started = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(error) => {
                let is_required =
                    [REQUIRED, "CI"].iter().any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
                assert!(!is_required, "chromedriver, which this test requires, cannot be started: {error}");
                println!(
                    "SKIPPED: chromedriver is not installed ({error}); {REQUIRED}=1 makes this an error"
                );
                return None;
            }
        };
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        let port = port.expect("chromedriver prints its port");
        Some(Driver { process, url: format!("http://127.0.0.1:{port}") })
    }

    /// Opens a window whose view has this size, in one of the two colour schemes.
    pub fn open(&self, (width, height): (u32, u32), is_dark: bool) -> Window<'_> {
        let profile = tempfile::tempdir().expect("a folder for the browser's profile");
        let mut arguments: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "args": arguments,
                "mobileEmulation": { "deviceMetrics": { "width": width, "height": height, "pixelRatio": 1.0, "touch": false, "mobile": false } },
            },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let session = call(&format!("{}/session", self.url), Some(&capabilities));
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        let window =
            Window { session: format!("{}/session/{id}", self.url), _driver: self, _profile: profile };
        let scheme = if is_dark { "dark" } else { "light" };
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        window.post(
            "goog/cdp/execute",
            &json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": feature } }),
        );
        window
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A window of a browser of its own.
pub struct Window<'a> {
    session: String,
    _driver: &'a Driver,
    _profile: tempfile::TempDir,
}

impl Window<'_> {
    fn post(&self, path: &str, body: &Value) -> Value {
        call(&format!("{}/{path}", self.session), Some(body))
    }

    /// Loads a file, until its load event has ended.
    pub fn load(&self, path: &Path) {
        self.visit(&format!("file://{}", path.display()));
    }

    /// Loads an address, until its load event has ended.
    pub fn visit(&self, address: &str) {
        self.post("url", &json!({ "url": address }));
        self.script("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))");
    }

    /// Waits until a script returns true, and says what the page shows if it does not within ten seconds.
    pub fn until(&self, script: &str) {
        self.until_within(10, script);
    }

    /// Like [`until`](Window::until), within so many seconds. A script of chromedriver has 30 at most.
    pub fn until_within(&self, seconds: u64, script: &str) {
        let waits = format!(
            "const ends = Date.now() + 10000;
             const is = () => {{ {script} }};
             return new Promise((done) => {{
               const look = () => is() ? done(true) : Date.now() > ends ? done(false) : setTimeout(look, 20);
               look();
             }})"
        );
        let is_true = (0..seconds.div_ceil(10)).any(|_| self.script(&waits) == json!(true));
        assert!(
            is_true,
            "not within {seconds} seconds: {script}\n{}",
            self.script("return document.body.innerText")
        );
    }

    /// The result of a script.
    pub fn script(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Presses and releases keys.
    pub fn keys(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
            })
            .collect();
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
        self.settle();
    }

    /// Waits until the page has drawn what it was asked for: an element that is found before may be gone.
    fn settle(&self) {
        self.script("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))");
    }

    /// Clicks on the first element of a selector.
    pub fn click(&self, selector: &str) {
        self.settle();
        let found = self.post("element", &json!({ "using": "css selector", "value": selector }));
        let element = found[ELEMENT].as_str().expect("an element");
        self.post(&format!("element/{element}/click"), &json!({}));
    }

    /// Turns the wheel over the first element of a selector.
    pub fn wheel(&self, selector: &str, delta: i32) {
        let found = self.post("element", &json!({ "using": "css selector", "value": selector }));
        let scroll =
            json!({ "type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": delta, "origin": found });
        self.post(
            "actions",
            &json!({ "actions": [{ "type": "wheel", "id": "wheel", "actions": [scroll] }] }),
        );
        self.script("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))");
    }

    /// What the page and the browser wrote to the console, except for what is not an error or a warning.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "browser" }));
        let entries = log.as_array().cloned().unwrap_or_default();
        let bad = entries
            .iter()
            .filter(|entry| ["SEVERE", "WARNING"].contains(&entry["level"].as_str().unwrap_or("")));
        bad.map(|entry| entry["message"].to_string()).collect()
    }

    /// The view as a picture: the bytes of a PNG.
    pub fn picture(&self) -> Vec<u8> {
        let picture = call(&format!("{}/screenshot", self.session), None);
        base64(picture.as_str().expect("a picture"))
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let _ = ureq::delete(&self.session).call();
    }
}

/// The value of an answer of chromedriver: to a POST with a body, or to a GET without one.
fn call(url: &str, body: Option<&Value>) -> Value {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
    let answer = match body {
        Some(body) => agent.post(url).send_json(body),
        None => agent.get(url).call(),
    };
    let mut answer = answer.unwrap_or_else(|error| panic!("{url}: {error}"));
    let answered: Value = answer.body_mut().read_json().unwrap_or_else(|error| panic!("{url}: {error}"));
    assert!(answer.status().is_success(), "{url}: {}", answered["value"]["message"]);
    answered["value"].clone()
}

/// Decodes base 64.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte));
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_usize, 0);
    for digit in digits {
        (bits, held) = ((bits << 6 | digit) & 0xffff, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}
