//! The page of a sweep that goes on: what it shows, and how it takes over what is new.

use crate::samples::pages::{document, run, watched};
use crate::samples::small::{sweep, workload};
use crate::webdriver::Driver;
use insta::assert_snapshot;
use scraper::{Html, Selector};
use serde_json::json;
use shaketable_reports::{
    Body, Conclusion, Document, Reached, ShrinkState, Shrinking, Size, Stage, WatchReport, WatchedFinding,
    WorkloadReport, html,
};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

fn page(report: WatchReport) -> String {
    let document = Document { advice: Vec::new(), ..document(Body::Watch(report)) };
    html::render(&document).expect("a page")
}

fn shown(page: &str, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).expect("a selector");
    let parsed = Html::parse_document(page);
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    parsed.select(&selector).map(|part| part.text().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn it_shows_progress_coverage_failures_and_distributions() {
    for (stage, name) in [(Stage::Runs, "a_sweep_that_goes_on"), (Stage::Ended, "a_watched_sweep_that_ended")]
    {
        let page = page(watched(stage));
        let texts = ["head > title", "header", ".watched section:not(section section)"]
            .map(|part| shown(&page, part).join("\n\n"));
        assert_snapshot!(name, texts.join("\n\n"));
    }
    let page = page(watched(Stage::Regressions));
    assert!(shown(&page, "h1")[0].ends_with("the regressions are replayed"), "{page}");
}

#[test]
fn each_state_of_a_search_has_a_sentence() {
    let size = |operations| Size { operations, clients: 1, faults: 0 };
    let said = |state| {
        let mut report = watched(Stage::Shrinking);
        report.findings.truncate(1);
        report.findings[0].shrinking = Some(Shrinking { runs: 7, before: size(9), now: size(2), state });
        shown(&page(report), ".finding > .note").pop().expect("a sentence")
    };
    assert_eq!(
        [ShrinkState::Searching, ShrinkState::Minimal, ShrinkState::Stopped, ShrinkState::NotRepeated]
            .map(said),
        [
            "Shrinking, 7 runs so far: from 9 operations of 1 client, 0 faults to 2 operations of 1 client, 0 faults.",
            "Shrunk from 9 operations of 1 client, 0 faults to 2 operations of 1 client, 0 faults in 7 runs; nothing more can be taken away.",
            "Shrunk from 9 operations of 1 client, 0 faults to 2 operations of 1 client, 0 faults in 7 runs; the search was ended.",
            "It was not shrunk: it did not fail again.",
        ]
    );
}

/// A sweep that has run so much.
fn at(runs: u64, seeds: u64, budget_ns: Option<u64>) -> WatchReport {
    let empty = WorkloadReport { workload: "empty".into(), ..WorkloadReport::default() };
    WatchReport {
        stage: Stage::Runs,
        elapsed_ns: 30_000_000_000,
        budget_ns,
        seeds,
        sweep: sweep(Conclusion::Interrupted, vec![workload("queue", runs), empty]),
        coverage: vec![Reached { runs: 0, elapsed_ns: 0, points: 0 }],
        findings: Vec::new(),
    }
}

#[test]
fn the_share_is_that_of_the_runs_or_of_the_budget() {
    let second = 1_000_000_000;
    assert_eq!(at(50, 100, None).share(), 0.25);
    assert_eq!(at(50, 100, Some(60 * second)).share(), 0.5);
    assert_eq!(at(50, 100, Some(10 * second)).share(), 1.0);
    assert_eq!((at(0, 0, None).share(), at(0, 0, Some(0)).share()), (0.0, 0.0));
    let endless = at(50, u64::MAX, Some(120 * second));
    assert_eq!((endless.all_runs(), endless.share()), (u64::MAX, 0.25));
    let page = page(endless);
    assert_eq!(shown(&page, "h1"), ["running  50 runs, 0 failed"], "there is no telling of how many");
    assert_eq!(shown(&page, "header .note")[0].split(" · ").next(), Some("30.0 s of a budget of 120.0 s"));
    assert_eq!(shown(&page, "head > title"), ["25 % · shaketable"]);
    assert_eq!(shown(&page, "[role=status]"), ["No run has failed so far."]);
}

#[test]
fn many_failures_fit_and_are_counted() {
    let mut report = watched(Stage::Ended);
    let finding = |seed| WatchedFinding {
        runs: seed + 1,
        elapsed_ns: seed,
        run: run("counter", seed, &"<b>long</b> ".repeat(9_000)),
        shrinking: None,
    };
    report.findings = (0..310).map(finding).collect();
    report.sweep.workloads[2].violated = 70_000;
    let page = page(report);
    assert!(page.len() < html::LIMIT, "{}", page.len());
    assert_eq!(shown(&page, ".finding").len(), 100);
    assert_eq!(shown(&page, "b"), [""; 0]);
    let left_out = shown(&page, ".left-out");
    assert_eq!(left_out.last().map(String::as_str), Some("Left out of this page: 210 failures more."));
    assert_eq!(
        shown(&page, "[role=status]"),
        ["70,000 runs failed; 310 are kept, those with the lowest seeds of each workload."]
    );
}

/// A server of pages: each request gets the page as it is then.
struct Pages {
    page: Arc<Mutex<String>>,
    asked: Arc<AtomicU64>,
    address: String,
}

impl Pages {
    fn serve(page: String) -> Pages {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/?token=1", listener.local_addr().expect("it has one"));
        let pages = Pages { page: Arc::new(Mutex::new(page)), asked: Arc::default(), address };
        let (page, asked) = (pages.page.clone(), pages.asked.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let page = page.lock().expect("no panic").clone();
                // A page without a text: nobody answers any more.
                if page.is_empty() {
                    return;
                }
                if stream.is_ok_and(|stream| answer(stream, &page)) {
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        pages
    }

    fn show(&self, page: String) {
        *self.page.lock().expect("no panic") = page;
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Answers a request, and returns whether there was one: browsers also connect in advance.
fn answer(mut stream: TcpStream, page: &str) -> bool {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
        bytes.push(byte[0]);
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n";
    !bytes.is_empty()
        && stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{page}", page.len()).as_bytes()).is_ok()
}

#[test]
fn the_page_takes_over_what_is_new_and_leaves_the_rest_alone() {
    let Some(driver) = Driver::start() else { return };
    let window = driver.open((390, 844), false);
    let mut report = watched(Stage::Runs);
    report.findings.truncate(1);
    let pages = Pages::serve(page(report.clone()));
    window.visit(&pages.address);
    // Somebody reads a failure.
    window.script(
        "window.isSame = true;
         const finding = document.querySelector('.finding details');
         finding.open = true;
         finding.querySelector('button.copy').focus();
         finding.scrollIntoView();
         window.place = () => document.querySelector('#failure-counter-20').getBoundingClientRect().top;
         window.placed = window.place();
         window.claim = finding.querySelector('.claim pre').firstChild;
         getSelection().selectAllChildren(finding.querySelector('.claim pre'));",
    );
    report.sweep.workloads[0].runs = 234;
    report.sweep.workloads[1] = workload("priority_queue", 234);
    report.stage = Stage::Shrinking;
    report.findings = watched(Stage::Shrinking).findings;
    pages.show(page(report.clone()));
    window.until("return document.querySelector('#watch').dataset.stage === 'shrinking'");
    let kept = window.script(
        "const [finding, other] = document.querySelectorAll('.finding details');
         return [isSame, finding.open, other.open, document.activeElement === finding.querySelector('button.copy'),
                 claim.isConnected && getSelection().containsNode(claim), Math.round(place() - placed),
                 document.querySelector('h1').textContent, document.title,
                 document.querySelector('table.progress tbody td:nth-child(3)').textContent]",
    );
    assert_eq!(
        kept,
        json!([
            true,
            true,
            false,
            true,
            true,
            0,
            "shrinking 668 of 1,200 runs, 2 failed",
            "55 %, 2 failed · shaketable",
            "234 of 400"
        ])
    );
    // A failure of the middle goes, as one with a lower seed comes.
    let mut lower = report.findings[0].clone();
    lower.run.seed = 3;
    report.findings = vec![report.findings[1].clone(), lower];
    pages.show(page(report.clone()));
    window.until("return document.querySelector('#failure-counter-3') !== null");
    let order =
        window.script("return [...document.querySelectorAll('.finding')].map((finding) => finding.id)");
    assert_eq!(order, json!(["failure-counter-17", "failure-counter-3"]));
    pages.show(page(watched(Stage::Ended)));
    window.until("return document.querySelector('.asked').innerText.trim() === 'The sweep has ended.'");
    assert_eq!(window.complaints(), [""; 0]);
    // Nothing is asked for any more.
    let asked = pages.asked();
    window.script("return new Promise((done) => setTimeout(done, 2500))");
    assert_eq!(pages.asked(), asked);
}

#[test]
fn a_page_that_is_paused_hidden_or_left_alone_asks_for_nothing() {
    let Some(driver) = Driver::start() else { return };
    let window = driver.open((1280, 800), true);
    let pages = Pages::serve(page(watched(Stage::Runs)));
    window.visit(&pages.address);
    window.until("return document.querySelector('#asked').textContent.startsWith('As of ')");
    // By the keyboard.
    window.keys("\u{e004} ");
    window.until("return document.querySelector('#pause[aria-pressed=true]') && document.querySelector('#asked').textContent.startsWith('Paused')");
    let wait = || window.script("return new Promise((done) => setTimeout(done, 2500))");
    let quiet = |why: &str| {
        // One that was under way.
        window.script("return new Promise((done) => setTimeout(done, 300))");
        let asked = pages.asked();
        wait();
        assert_eq!(pages.asked(), asked, "{why}");
    };
    quiet("it is paused");
    window.keys(" ");
    let asked = pages.asked();
    wait();
    let more = pages.asked() - asked;
    assert!((1..=4).contains(&more), "once a second: {more}");
    let hide = "Object.defineProperty(document, 'hidden', { configurable: true, get: () => IS });
                document.dispatchEvent(new Event('visibilitychange'));";
    window.script(&hide.replace("IS", "true"));
    quiet("nobody looks");
    let asked = pages.asked();
    window.script(&hide.replace("IS", "false"));
    window.until("return document.querySelector('#asked').textContent.startsWith('As of ')");
    wait();
    assert!(pages.asked() > asked, "somebody looks again");
    assert_eq!(window.complaints(), [""; 0]);
    pages.show(String::new());
    window.until(
        "return document.querySelector('#asked').textContent.startsWith('No answer: the command has ended.')",
    );
    assert_eq!(
        window.script("return document.querySelectorAll('.finding').length"),
        json!(2),
        "the last state stays"
    );
}

#[test]
fn nothing_moves_while_numbers_grow() {
    let Some(driver) = Driver::start() else { return };
    for view in [(1280, 800), (390, 844)] {
        let window = driver.open(view, false);
        // The points of a workload are known before its first run.
        let begun = |name: &str| WorkloadReport {
            workload: name.into(),
            points: workload(name, 0).points,
            ..WorkloadReport::default()
        };
        let mut report = at(0, 200, None);
        report.sweep.workloads = vec![begun("queue"), begun("empty")];
        let pages = Pages::serve(page(report.clone()));
        window.visit(&pages.address);
        let places = "
            const parts = document.querySelectorAll('.watched h2, .watched + *, table.progress th, table.distributions th');
            return [...parts].map((part) => [part.textContent.slice(0, 9), Math.round(part.getBoundingClientRect().top)])";
        let before = window.script(places);
        report = at(199, 200, None);
        report.coverage.push(Reached { runs: 187, elapsed_ns: 123_456_789_000, points: 2 });
        report.sweep.workloads[1] = workload("empty", 200);
        for w in &mut report.sweep.workloads {
            w.latencies = (1..9_000).collect();
            w.attempts = [1, 1, 2, 9].into_iter().collect();
        }
        pages.show(page(report));
        window.until("return document.querySelector('h1').textContent.includes('399 of 400')");
        assert_eq!(window.script(places), before, "{view:?}");
    }
}
