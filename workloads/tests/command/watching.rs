//! `watch`: the report that `run` writes, its page in a browser, its lines, and what it refuses.
//!
//! The browser's tests are skipped where it is not installed, as those of the reports' pages are.

use crate::{
    process::{code, folder, run, shaketable, stderr, stdout},
    webdriver::{Driver, Window},
};
use shaketable_reports::{Body, Document, Ending, ShrinkState, Stage, SweepReport, WatchReport, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
};

/// A sweep whose runs fail: queues lose items.
const FAILING: [&str; 7] = ["queue", "--bug", "snapshot-dequeue", "--seeds", "6", "--jobs", "1"];

/// A sweep that is watched.
struct Watch {
    child: Child,
    errors: BufReader<ChildStderr>,
    address: String,
}

impl Watch {
    /// Starts it, and reads the line with the address of its page.
    fn start(arguments: &[&str]) -> Watch {
        let mut child = shaketable(&["watch"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("text");
        let address = line.trim().strip_prefix("watch at ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Watch { child, errors, address }
    }

    /// The host with its port, and the token.
    fn parts(&self) -> (&str, &str) {
        let parts = self.address.strip_prefix("http://").and_then(|rest| rest.split_once("/?token="));
        parts.unwrap_or_else(|| panic!("{}", self.address))
    }

    /// The answer to a request for a place, by somebody who takes this for the host.
    fn ask(&self, place: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(self.parts().0).expect("it listens");
        stream
            .write_all(format!("GET {place} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
            .expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        String::from_utf8(answer).expect("text")
    }

    /// The data of the page.
    fn data(&self) -> WatchReport {
        let (host, token) = self.parts();
        let answer = self.ask(&format!("/data.json?token={token}"), host);
        watched(answer.split_once("\r\n\r\n").expect("a head").1)
    }

    fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
    }

    /// Its output, once it has ended.
    fn end(mut self) -> Output {
        let mut errors = Vec::new();
        self.errors.read_to_end(&mut errors).expect("it ends");
        Output { stderr: errors, ..self.child.wait_with_output().expect("it ends") }
    }

    /// Ends one that stays.
    fn leave(mut self) -> Output {
        let mut line = String::new();
        while !line.contains("its page stays") {
            line.clear();
            assert!(self.errors.read_line(&mut line).expect("text") > 0, "it does not stay");
        }
        self.signal("-TERM");
        self.end()
    }
}

fn watched(text: &str) -> WatchReport {
    match json::parse(text).expect("a report") {
        Document { body: Body::Watch(report), .. } => report,
        other => panic!("{other:?}"),
    }
}

/// A report of a sweep without what it cost.
fn report(path: &Path) -> SweepReport {
    let document = json::parse(&fs::read_to_string(path).expect("a report")).expect("a report");
    let Body::Sweep(mut sweep) = document.body else { panic!("a sweep") };
    sweep.cost = Default::default();
    sweep.workloads.iter_mut().for_each(|w| w.cpu_ns = 0);
    sweep
}

#[test]
fn it_prints_and_writes_what_run_does() {
    let folder = folder("watching");
    let [one, other] = ["run.json", "watch.json"].map(|name| folder.join(name));
    // Nothing that depends on the speed of the machine.
    let with = |path: &PathBuf| {
        let path = path.to_str().expect("a plain path").to_owned();
        [&FAILING[..], &["--shrink-budget", "10m", "--json", &path]]
            .concat()
            .iter()
            .map(|s| (*s).to_owned())
            .collect::<Vec<_>>()
    };
    let ran = shaketable(&["run"]).args(with(&one)).output().expect("it starts");
    let arguments = with(&other);
    let watch = Watch::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    // Somebody looks all the time.
    while watch.data().stage != Stage::Ended {}
    let watched = watch.end();
    assert_eq!((code(&ran), code(&watched)), (1, 1), "{}", stderr(&watched));
    assert_eq!(report(&one), report(&other));
    let text = |output: &Output| {
        let lines = stdout(output);
        let same = |line: &&str| !line.contains("CPU seconds") && !line.contains("seeds per core minute");
        lines.lines().filter(same).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(text(&ran), text(&watched));
    assert!(text(&ran).len() > 20, "{}", stdout(&ran));
}

#[test]
fn who_has_no_token_gets_nothing_and_nobody_else_can_connect() {
    let watch = Watch::start(&["cycle", "--seeds", "..1000000", "--jobs", "1"]);
    let (host, token) = watch.parts();
    let port = host.strip_prefix("127.0.0.1:").expect("the loopback address").to_owned();
    for (place, host, status) in [
        (format!("/?token={token}"), host, "200 OK"),
        ("/".to_owned(), host, "403 Forbidden"),
        (format!("/?token={}", "0".repeat(token.len())), host, "403 Forbidden"),
        (format!("/?token={token}"), "rebound.example", "403 Forbidden"),
        (format!("/report?token={token}"), host, "404 Not Found"),
    ] {
        let answer = watch.ask(&place, host);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{place} {host}: {answer}");
    }
    if cfg!(target_os = "linux") {
        // One that listens at all addresses listens there as well.
        assert!(TcpStream::connect(format!("127.0.0.2:{port}")).is_err());
    }
    let data = watch.data();
    assert_eq!((data.seeds, data.sweep.ending), (1_000_000, Ending::Interrupted));
    watch.signal("-TERM");
    let output = watch.end();
    assert_eq!(code(&output), 143, "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted after "), "{}", stderr(&output));
}

#[test]
fn lines_of_json_come_as_the_sweep_goes_on() {
    let output = run(&[&["watch"], &FAILING[..], &["--json-lines"]].concat());
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let lines: Vec<WatchReport> = stdout(&output).lines().map(watched).collect();
    let (last, earlier) = lines.split_last().expect("a line");
    assert!(earlier.iter().all(|line| line.stage != Stage::Ended) && !earlier.is_empty());
    assert!(
        lines
            .windows(2)
            .all(|pair| pair[0].sweep.runs() <= pair[1].sweep.runs()
                && pair[0].elapsed_ns < pair[1].elapsed_ns)
    );
    assert_eq!((last.stage, last.sweep.runs(), last.sweep.ending), (Stage::Ended, 6, Ending::Complete));
    let first = last.findings.iter().min_by_key(|finding| finding.run.seed).expect("a failure");
    let shrinking = first.shrinking.expect("it is shrunk");
    assert!(shrinking.now.operations < shrinking.before.operations, "{shrinking:?}");
    assert!(stderr(&output).contains("FAILED: of 6 runs"), "{}", stderr(&output));
}

#[test]
fn what_it_cannot_serve_is_one_line_and_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it has one").port().to_string();
    for (arguments, says) in [
        (&["--port", port.as_str()][..], "cannot listen on port "),
        (&["--port", "65536"], "invalid value '65536' for '--port <PORT>'"),
        (&["--json-lines", "--json", "-"], "--json and --json-lines cannot both use standard output"),
        (&["--json-lines", "--html", "-"], "--html and --json-lines cannot both use standard output"),
        (&["--seeds", "x"], "invalid value 'x' for '--seeds"),
    ] {
        let output = shaketable(&["watch", "cycle"]).args(arguments).output().expect("it starts");
        let errors = stderr(&output);
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{arguments:?}: {errors}");
        assert!(errors.starts_with("shaketable: ") && errors.contains(says), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

/// The pictures for people are kept if this variable names a folder.
fn keep_picture(window: &Window<'_>, name: &str) {
    if let Some(folder) = std::env::var_os("SHAKETABLE_PICTURES") {
        fs::write(Path::new(&folder).join(format!("{name}.png")), window.picture()).expect("written");
    }
}

#[test]
fn the_page_follows_the_sweep_in_a_browser() {
    let Some(driver) = Driver::start() else { return };
    for (view, is_dark) in [((1280, 800), false), ((390, 844), true)] {
        let window = driver.open(view, is_dark);
        let watch = Watch::start(&[
            "queue",
            "--bug",
            "snapshot-dequeue",
            "--seeds",
            "60",
            "--jobs",
            "1",
            "--shrink-budget",
            "3s",
            "--stay",
        ]);
        window.visit(&watch.address);
        window.script("window.isSame = true");
        let runs = "const runs = +document.querySelector('table.progress tbody td:nth-child(3)').textContent.split(' ')[0];";
        window.until(&format!(
            "{runs} return runs > 2 && document.querySelector('#asked').textContent.startsWith('As of')"
        ));
        window.script(&format!("{runs} window.before = runs"));
        window.until(&format!("{runs} return runs > before"));
        keep_picture(&window, &format!("watch-running-{}", view.0));
        window.until_within(300, "return document.querySelector('#watch').dataset.stage !== 'runs'");
        // The search may be over before the page asks.
        if window.script("return document.querySelector('#watch').dataset.stage") == "shrinking" {
            keep_picture(&window, &format!("watch-shrinking-{}", view.0));
        }
        window.until_within(300, "return document.querySelector('#watch').dataset.stage === 'ended'");
        keep_picture(&window, &format!("watch-ended-{}", view.0));
        let data = watch.data();
        let shown = window.script(
            "return [isSame, document.querySelectorAll('.finding').length,
                     document.querySelector('table.progress tbody td:nth-child(3)').textContent,
                     document.querySelector('#asked').textContent, document.documentElement.scrollWidth]",
        );
        let shrunk: Vec<_> = data.findings.iter().filter_map(|finding| finding.shrinking).collect();
        assert!(!shrunk.is_empty() && shrunk.iter().all(|search| search.state != ShrinkState::Searching));
        assert_eq!(
            shown,
            serde_json::json!([true, data.findings.len(), "60 of 60", "The sweep has ended.", view.0])
        );
        window.click(".finding summary");
        keep_picture(&window, &format!("watch-failure-{}", view.0));
        assert_eq!(window.complaints(), [""; 0]);
        let output = watch.leave();
        assert_eq!(code(&output), i32::from(data.sweep.outcome.exit_code()), "{}", stderr(&output));
    }
}
