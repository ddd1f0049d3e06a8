//! Pages in a headless browser: nothing complains, the witness is in the first view, keys, wheel and filter
//! work.
//!
//! The browser is driven through chromedriver. Where it is not installed, these tests print that they are
//! skipped; in CI, and with `SHAKETABLE_BROWSER=1`, they fail.

#![expect(clippy::print_stdout, reason = "measured times")]

use crate::samples::pages::{
    bugs, document, failure, failure_in_time, history, large, passing, sweep, watched, whole,
};
use crate::webdriver::{Driver, Window};
use serde_json::{Value, json};
use shaketable_reports::{Body, Stage, html};
use std::path::{Path, PathBuf};

const VIEWS: [(u32, u32); 2] = [(1280, 800), (390, 844)];

/// Writes the page of a report into the folder of this build's tests.
fn written(name: &str, body: Body) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    std::fs::write(&path, html::render(&document(body)).expect("a page")).expect("written");
    path
}

/// The pictures for people are kept beside the pages if this variable names a folder.
fn keep_picture(window: &Window<'_>, name: &str) {
    if let Some(folder) = std::env::var_os("SHAKETABLE_PICTURES") {
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), window.picture()).expect("written");
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(|n| n.as_f64().expect("a number")).collect()
}

/// The bars of the witness that are in view as a whole, and the number of its bars.
const WITNESS: &str = "
    const inside = (box) => box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
    const canvas = document.querySelector('.canvas').getBoundingClientRect();
    const shown = (box) => inside(box) && box.top >= canvas.top && box.bottom <= canvas.bottom;
    const bars = [...document.querySelectorAll('.canvas .transaction.witness .bar')].map((bar) => bar.getBoundingClientRect());
    return [bars.filter(shown).length, bars.length, scrollY];";

#[test]
fn the_witness_is_in_the_first_view_and_nothing_complains() {
    let Some(driver) = Driver::start() else { return };
    let pages = [
        ("shrunk", written("shrunk", Body::Replay(Box::new(failure(large(1_000))))), Some(2)),
        ("when", written("when", Body::Replay(Box::new(failure_in_time()))), Some(2)),
        ("large", written("large", Body::Replay(Box::new(whole(large(5_000))))), Some(2)),
        ("one-failure", written("one-failure", Body::Sweep(sweep(vec![failure(history())]))), None),
        ("sweep", written("sweep", Body::Sweep(sweep(vec![failure(history()), whole(large(1_000))]))), None),
        ("passing", written("passing", Body::Sweep(passing())), None),
        ("bugs", written("bugs", Body::Bugs(bugs())), None),
        ("watch", written("watch", Body::Watch(watched(Stage::Shrinking))), None),
    ];
    for view in VIEWS {
        for is_dark in [false, true] {
            let window = driver.open(view, is_dark);
            for (name, path, witness) in &pages {
                window.load(path);
                let shown = format!("{name} at {view:?}, dark {is_dark}");
                let sizes = numbers(
                    &window.script("return [innerWidth, innerHeight, document.documentElement.scrollWidth]"),
                );
                assert_eq!(sizes[..2], [f64::from(view.0), f64::from(view.1)], "{shown}");
                assert!(sizes[2] <= sizes[0], "{shown}: the page is wider than the view");
                let is_really_dark =
                    window.script("return matchMedia('(prefers-color-scheme: dark)').matches");
                assert_eq!(is_really_dark, json!(is_dark), "{shown}");
                if let Some(bars) = witness {
                    assert_eq!(
                        window.script(WITNESS),
                        json!([bars, bars, 0]),
                        "{shown}: in view, all, scrolled by"
                    );
                }
                assert_eq!(window.complaints(), [""; 0], "{shown}");
                let scheme = if is_dark { "dark" } else { "light" };
                keep_picture(&window, &format!("{name}-{}-{scheme}", view.0));
            }
        }
    }
}

/// Measured and printed: what is asserted does not depend on the speed of the machine.
#[test]
fn a_run_of_5000_events_is_loaded() {
    let Some(driver) = Driver::start() else { return };
    let path = written("load", Body::Replay(Box::new(whole(large(5_000)))));
    let window = driver.open(VIEWS[0], false);
    for _ in 0..3 {
        window.load(&path);
        let time = window.script("return performance.getEntriesByType('navigation')[0].loadEventEnd");
        let drawn = window.script(
            "const from = performance.now(); document.querySelector('[data-do=all]').click();
             return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - from))))",
        );
        let size = std::fs::metadata(&path).expect("written").len();
        println!("{size} bytes: load event after {time} ms, the whole run drawn in {drawn} ms");
    }
    assert_eq!(
        window.script("return document.querySelectorAll('.canvas .transaction').length"),
        json!(2_500)
    );
}

/// The beginning and the end of the view, from where a transaction is drawn.
fn bar(window: &Window<'_>, name: &str) -> Vec<f64> {
    numbers(&window.script(&format!(
        "const bar = document.querySelector('[data-name={name}] .bar'); return [+bar.getAttribute('x'), +bar.getAttribute('width')]"
    )))
}

fn heading(window: &Window<'_>) -> String {
    window
        .script("return document.querySelector('.panel').firstElementChild.textContent")
        .as_str()
        .expect("text")
        .to_owned()
}

#[test]
fn keys_and_the_wheel_move_through_a_run() {
    let Some(driver) = Driver::start() else { return };
    let path = written("keys", Body::Replay(Box::new(failure(history()))));
    let window = driver.open(VIEWS[0], false);
    window.load(&path);
    assert!(heading(&window).starts_with("T3 of client 1 witness"), "{}", heading(&window));
    window.keys("n");
    assert!(heading(&window).starts_with("T4 of client 0"), "{}", heading(&window));
    window.keys("nn");
    assert!(heading(&window).starts_with("T6 of client 0"), "the conflict, the witness, and the last one");
    window.keys("p");
    assert!(heading(&window).starts_with("T5 of client 1 witness"), "{}", heading(&window));

    let first = bar(&window, "T5");
    window.keys("+");
    let near = bar(&window, "T5");
    assert!(near[1] > first[1] * 1.3, "{first:?} {near:?}");
    window.keys("\u{e014}");
    assert!(bar(&window, "T5")[0] < near[0] - 20.0, "the arrow to the right moves what is drawn to the left");
    window.keys("\u{e012}-");
    assert!(bar(&window, "T5")[1] < near[1] * 0.8);
    window.keys("0");
    assert_eq!(bar(&window, "T5"), first);
    window.keys("a");
    assert!(bar(&window, "T5")[1] < first[1], "the whole run");
    window.keys("0\u{e00c}");
    assert!(heading(&window).starts_with("Select"), "{}", heading(&window));
    assert_eq!(window.script("return document.querySelectorAll('.selected').length"), json!(0));

    // Without the focus, the wheel scrolls the page.
    window.wheel(".canvas", -120);
    assert_eq!(bar(&window, "T5"), first);
    window.script("document.querySelector('.canvas').focus()");
    window.wheel(".canvas", -120);
    assert!(bar(&window, "T5")[1] > first[1]);
    assert_eq!(window.complaints(), [""; 0]);
}

#[test]
fn details_arrows_lanes_and_folded_parts() {
    let Some(driver) = Driver::start() else { return };
    let window = driver.open(VIEWS[0], false);
    window.load(&written("details", Body::Replay(Box::new(failure(history())))));
    let many = |selector: &str| {
        window
            .script(&format!("return document.querySelectorAll('{selector}').length"))
            .as_u64()
            .expect("a number")
    };
    let settle =
        || window.script("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))");
    let panel = || {
        window
            .script("return document.querySelector('.panel').textContent")
            .as_str()
            .expect("text")
            .to_owned()
    };

    assert!(panel().contains("get (\"counter\", 7) → 4 of T0"), "{}", panel());
    window.click(".calls button.link");
    assert!(heading(&window).starts_with("T0 of the setup"), "the writer: {}", heading(&window));
    window.click("[data-name=T5]");
    assert!(heading(&window).starts_with("T5"), "{}", heading(&window));
    window.click("[data-name='O1.0'] .hit");
    assert!(panel().contains("Transactions T3, T5"), "{}", panel());
    window.click("[data-name=E2]");
    assert!(panel().contains("the commit reply is lost"), "{}", panel());

    window.click("[data-name=T5]");
    window.click("[data-show=reads]");
    settle();
    assert_eq!(
        (many(".arrow.reads"), many(".arrow.overwrites")),
        (2, 0),
        "from T3 to T5, and from there to T6"
    );
    window.click("[data-show=overwrites]");
    settle();
    assert_eq!(many(".arrow.overwrites"), 1, "T5 overwrites T3");
    window.keys("\u{e00c}");
    assert_eq!((many(".arrow.reads"), many(".arrow.overwrites")), (4, 2), "of all");

    let lanes = many(".canvas .name");
    window.click("[data-show=machines]");
    settle();
    assert_eq!(many(".canvas .name"), lanes + 1, "a lane for each of two machines");

    assert_eq!(many(".canvas"), 1, "what is folded is not drawn");
    window.click("details.whole > summary");
    settle();
    assert_eq!(many("details.whole .canvas .transaction.witness"), 2);
    window.click(".commands button.copy");
    settle();
    let button = window.script("return document.querySelector('.commands button.copy').textContent");
    assert!(["Copied", "Selected"].contains(&button.as_str().expect("text")), "{button}");
    assert_eq!(window.complaints(), [""; 0]);
}

#[test]
fn the_share_of_runs_that_fail_is_drawn_on_the_axis_of_the_time_line() {
    let Some(driver) = Driver::start() else { return };
    let path = written("certain", Body::Replay(Box::new(failure_in_time())));
    // Where it became certain, where the bar of T3 ends, and the part of the drawing that is in view.
    let places = "
        const line = document.querySelector('.canvas .when .certain'), bar = document.querySelector('[data-name=T3] .bar');
        return [+line.getAttribute('x1'), +bar.getAttribute('x') + +bar.getAttribute('width'), innerWidth]";
    for view in VIEWS {
        let window = driver.open(view, false);
        window.load(&path);
        for keys in ["", "+", "a"] {
            window.keys(keys);
            let [certain, end, width] = numbers(&window.script(places))[..] else { panic!("three numbers") };
            assert!(
                (certain - end).abs() < 0.1,
                "{view:?} after {keys}: certain at {certain}, T3 until {end}"
            );
            assert!(certain < width, "{view:?} after {keys}");
        }
        let named = window.script(
            "const when = document.querySelector('.canvas .when');
             return [when.getAttribute('role'), when.getAttribute('aria-label').length > 20, when.querySelectorAll('title').length]",
        );
        let rows = window.script("return document.querySelectorAll('section.when tbody tr').length");
        assert_eq!(named, json!(["img", true, rows]), "a title for each moment");
        window.click("section.when summary");
        let is_wider = window.script("return document.documentElement.scrollWidth > innerWidth");
        assert_eq!(is_wider, json!(false), "{view:?}: the table is wider than the view");
        assert_eq!(window.complaints(), [""; 0]);
    }
}

#[test]
fn a_filter_leaves_the_transactions_of_a_key() {
    let Some(driver) = Driver::start() else { return };
    let window = driver.open(VIEWS[0], false);
    window.load(&written("filter", Body::Replay(Box::new(whole(large(1_000))))));
    window.click("[data-do=all]");
    window.click("input[type=search]");
    window.keys("WAREHOUSE-3\", 45)");
    let counted = window.script("return document.querySelector('.count').textContent");
    let counted = counted.as_str().expect("text");
    let matching: u64 = counted.split(' ').next().and_then(|n| n.parse().ok()).expect(counted);
    assert!(matching > 0 && matching < 100 && counted.ends_with(" of 500 transactions"), "{counted}");
    let clear = window.script("return document.querySelectorAll('.transaction:not(.dim)').length - document.querySelectorAll('.legend .transaction').length");
    assert_eq!(clear, json!(matching));
    // Enter and, outside of the filter, n go from one of them to the next.
    window.keys("\u{e007}");
    for _ in 0..3 {
        let has_key = "return document.querySelector('.panel').textContent.includes('\"warehouse-3\", 45)')";
        assert_eq!(window.script(has_key), json!(true), "{}", heading(&window));
        window.script("document.activeElement.blur()");
        window.keys("n");
    }
    assert_eq!(window.complaints(), [""; 0]);
}

#[test]
fn a_witness_that_is_a_key_filters_by_it() {
    let Some(driver) = Driver::start() else { return };
    let mut history = history();
    history.witness.operations.clear();
    history.witness.transactions.clear();
    history.transactions[4].calls.clear();
    let window = driver.open(VIEWS[0], false);
    window.load(&written("key", Body::Replay(Box::new(whole(history)))));
    let shown = "return [document.querySelector('input[type=search]').value, document.querySelector('.count').textContent]";
    assert_eq!(window.script(shown), json!(["(\"counter\", 7)", "4 of 5 transactions"]));
    assert_eq!(
        window.script("return document.querySelectorAll('.canvas .transaction.dim').length"),
        json!(1)
    );
    assert_eq!(window.complaints(), [""; 0]);
}

#[test]
fn hostile_texts_stay_texts() {
    let Some(driver) = Driver::start() else { return };
    const HOSTILE: &str = "</script><img src=x onerror=document.title=1>";
    let mut history = history();
    history.operations.iter_mut().for_each(|operation| operation.call += HOSTILE);
    history.events.iter_mut().for_each(|event| event.text += HOSTILE);
    for transaction in &mut history.transactions {
        transaction.end += HOSTILE;
        transaction.calls.iter_mut().for_each(|call| call.at += HOSTILE);
    }
    let window = driver.open(VIEWS[0], false);
    window.load(&written("hostile", Body::Replay(Box::new(whole(history)))));
    for selector in ["[data-name=T4]", "[data-name='O0.0'] .hit", "[data-name=E2]"] {
        window.click(selector);
        let panel = "const panel = document.querySelector('.panel'); return [panel.textContent.includes('<img src=x'), document.querySelectorAll('img').length, document.title]";
        assert_eq!(window.script(panel), json!([true, 0, "orders, seed 90 · shaketable"]), "{selector}");
    }
    assert_eq!(window.complaints(), [""; 0]);
}
