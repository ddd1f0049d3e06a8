//! Pages of made-up reports: that they are HTML, hold everything, need no network, and stay small.

use crate::samples::pages::{
    bugs, document, failure, failure_in_time, history, large, passing, run, sweep, whole,
};
use insta::assert_snapshot;
use scraper::{Html, Selector};
use shaketable_reports::{Body, Document, RunReport, SweepReport, html, text};

fn page(body: Body) -> String {
    html::render(&document(body)).expect("a report with a page")
}

fn of_run(run: RunReport) -> String {
    page(Body::Replay(Box::new(run)))
}

/// The texts that a reader sees, part by part, without scripts and without the story, which has tests of its
/// own.
fn texts(page: &str) -> String {
    let parsed = Html::parse_document(page);
    let main = parsed.select(&selector("main")).next().expect("a main part");
    let shown = main.descendants().filter_map(|node| {
        let text = node.value().as_text()?;
        let mut around = node.ancestors().filter_map(|parent| parent.value().as_element());
        let is_other = around.any(|e| e.name().contains("script") || e.attr("class") == Some("story"));
        (!is_other && !text.trim().is_empty()).then(|| text.to_string())
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("a selector")
}

fn count(page: &str, selected: &str) -> usize {
    Html::parse_document(page).select(&selector(selected)).count()
}

/// The embedded data of the time lines.
fn embedded(page: &str) -> Vec<serde_json::Value> {
    let parsed = Html::parse_document(page);
    let data = selector(r#"script[type="application/json"]"#);
    let texts = parsed.select(&data).map(|script| script.text().collect::<String>());
    texts.map(|text| serde_json::from_str(&text).expect("JSON")).collect()
}

/// What is wrong with a page, whatever is in it.
fn check(page: &str) {
    let parsed = Html::parse_document(page);
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    assert!(page.len() <= html::LIMIT, "{} bytes", page.len());
    // Attributes that load something, and styles that do; the name of SVG's elements is not an address.
    for attribute in ["src", "srcset", "href", "action", "data", "poster", "background"] {
        assert_eq!(parsed.select(&selector(&format!("[{attribute}]"))).count(), 0, "{attribute}");
    }
    let own: String =
        parsed.select(&selector("style, script:not([type])")).flat_map(|part| part.text()).collect();
    let own = own.replace("http://www.w3.org/2000/svg", "").replace("url(#", "");
    for loads in ["http:", "https:", "url(", "@import", "import(", "fetch(", "XMLHttpRequest"] {
        assert!(!own.contains(loads), "{loads}");
    }
    assert_eq!(parsed.select(&selector(r#"meta[http-equiv="Content-Security-Policy"]"#)).count(), 1);
}

#[test]
fn a_shrunk_failure() {
    let page = of_run(failure(history()));
    check(&page);
    assert_snapshot!(texts(&page));
    let data = embedded(&page);
    assert_eq!(data.len(), 2, "the shrunk run and the whole one");
    assert_eq!(data[0]["witness"]["transactions"], serde_json::json!([3, 5]));
    assert_eq!(data[0]["transactions"].as_array().map(Vec::len), Some(5));
    assert_eq!((count(&page, "div.timeline"), count(&page, "details.whole div.timeline")), (2, 1));
    let parsed = Html::parse_document(&page);
    let stories = selector("details.story > pre");
    let told: Vec<String> = parsed.select(&stories).map(|story| story.text().collect()).collect();
    assert_eq!(told, [text::story(&history()), text::story(&history())]);
    assert!(
        page.contains("shaketable shrink counter 17 --faults standard --without clog --bug retry-unknown")
    );
}

#[test]
fn when_a_failure_became_certain() {
    let page = of_run(failure_in_time());
    check(&page);
    let parsed = Html::parse_document(&page);
    let section = parsed.select(&selector("section.when")).next().expect("a section");
    let shown: Vec<&str> = section.text().map(str::trim).filter(|text| !text.is_empty()).collect();
    assert_snapshot!(shown.join("\n"));
    let data = embedded(&page);
    assert_eq!(data[0]["when"]["runs"], serde_json::json!(25));
    assert_eq!(data[0]["when"]["moments"][0], serde_json::json!([0, 2]));
    assert_eq!(data[1].get("when"), None, "the whole run has none");
    assert_eq!(
        count(&page, "section.when tbody tr"),
        data[0]["when"]["moments"].as_array().map_or(0, Vec::len)
    );
    assert_snapshot!("when_as_text", text::replay(&failure_in_time(), "0123456789ab", text::Details::Brief));
}

#[test]
fn a_sweep() {
    let page = page(Body::Sweep(sweep(vec![failure(history())])));
    check(&page);
    assert_snapshot!(texts(&page));
    assert_eq!(count(&page, "svg.chart"), 6, "latencies and attempts of three workloads");
}

#[test]
fn a_sweep_that_passed() {
    let page = page(Body::Sweep(passing()));
    check(&page);
    assert_eq!(
        (count(&page, ".failure"), count(&page, ".timeline"), count(&page, ".badge.passed")),
        (0, 0, 1)
    );
}

#[test]
fn planted_bugs() {
    let page = page(Body::Bugs(bugs()));
    check(&page);
    assert_snapshot!(texts(&page));
}

#[test]
fn a_run_without_a_history_has_no_time_line() {
    let page = of_run(run("counter", 17, "the counter is 6"));
    check(&page);
    assert_eq!((count(&page, ".timeline"), count(&page, "details.about[open]")), (0, 1));
}

#[test]
fn other_reports_have_no_page() {
    let other = Body::Conformance(shaketable_reports::ConformanceReport { files: Vec::new() });
    assert_eq!(html::render(&document(other)), None);
}

const HOSTILE: &str = "</script></pre><img src=x onerror=alert(1)><!--<script>\"'&amp;\u{2028}\0";

/// Replaces all texts of a report, except for those that only have some values.
fn hostile(value: &mut serde_json::Value) {
    const CHOICES: [&str; 12] = [
        "report",
        "verdict",
        "schedule",
        "kind",
        "fate",
        "access",
        "ending",
        "outcome",
        "latencies",
        "attempts",
        "schedule",
        "severity",
    ];
    match value {
        serde_json::Value::String(text) => *text = format!("{text}{HOSTILE}"),
        serde_json::Value::Array(items) => items.iter_mut().for_each(hostile),
        serde_json::Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let is_outcome_of_operation =
                    name == "outcome" && field.as_str().is_some_and(|o| o.contains("returns"));
                if !CHOICES.contains(&name.as_str()) || is_outcome_of_operation {
                    hostile(field);
                }
            }
        }
        _ => {}
    }
}

fn hostile_pages() -> Vec<String> {
    let bodies = [
        Body::Replay(Box::new(failure(history()))),
        Body::Sweep(sweep(vec![failure(history())])),
        Body::Bugs(bugs()),
    ];
    bodies
        .into_iter()
        .map(|body| {
            let mut value = serde_json::to_value(document(body)).expect("plain data");
            hostile(&mut value);
            let document: Document = serde_json::from_value(value).expect("the same shape");
            html::render(&document).expect("a page")
        })
        .collect()
}

#[test]
fn every_page_has_advice_with_its_source() {
    for body in [Body::Replay(Box::new(failure(history()))), Body::Sweep(passing()), Body::Bugs(bugs())] {
        let page = html::render(&document(body)).expect("a page");
        let (_, advice) = page.split_once("<h2>Advice</h2>").expect("a section");
        assert!(advice.contains("up to 120 writes/s") && advice.contains("Minimizing conflicts"), "{advice}");
        assert!(
            advice.contains("1 note, from 5 runs") && !advice.contains("11 bytes"),
            "only what is noted: {advice}"
        );
    }
    let without = Document { advice: Vec::new(), ..document(Body::Bugs(bugs())) };
    assert!(!html::render(&without).expect("a page").contains("<h2>Advice</h2>"));
}

#[test]
fn texts_cannot_become_elements() {
    for page in hostile_pages() {
        // NUL is an error of HTML wherever it is, and becomes a character that stands for it.
        check(&page.replace('\0', ""));
        assert_eq!(count(&page, "img, pre > *:not(mark)"), 0);
        assert_eq!(count(&page, "script:not([type])"), 1);
    }
    let page = &hostile_pages()[0];
    let keys: Vec<_> = embedded(page)[0]["texts"].as_array().expect("texts").clone();
    assert!(keys.contains(&format!("(\"counter\", 7){HOSTILE}").into()), "{keys:?}");
}

#[test]
fn large_runs_fit_and_say_what_they_left_out() {
    let page = of_run(whole(large(5_000)));
    check(&page);
    assert_eq!(embedded(&page)[0]["transactions"].as_array().map(Vec::len), Some(2_500));
    assert!(!texts(&page).contains("Left out"), "everything fits");

    // Long values and large reads.
    let mut rows = large(5_000);
    for call in rows.transactions.iter_mut().flat_map(|transaction| &mut transaction.calls) {
        call.rows = call.rows.iter().cycle().take(30).cloned().collect();
        call.rows
            .iter_mut()
            .zip(0..)
            .for_each(|(row, n)| row.value = Some(format!("{n}{}", "x".repeat(300))));
    }
    let page = of_run(whole(rows));
    check(&page);
    let left_out = texts(&page).lines().find(|line| line.contains("rows of large reads")).map(str::to_owned);
    let left_out = left_out.expect("it says so");
    assert!(
        left_out.starts_with("Left out") || texts(&page).contains("Left out of this page for its size: "),
        "{left_out}"
    );
    assert_eq!(embedded(&page)[0]["transactions"].as_array().map(Vec::len), Some(2_500));

    let page = of_run(whole(large(60_000)));
    check(&page);
    assert!(texts(&page).contains("Left out of this page for its size"), "{}", texts(&page));
}

/// A sweep over as many workloads as there are, all of which fail, with long messages.
fn many() -> SweepReport {
    let fails = |n: u64| {
        let mut run = failure(large(600));
        run.workload = format!("workload_{n}");
        run.configuration = "drawn ".repeat(3_000);
        run.verdict = shaketable_reports::Verdict::Stuck { message: "a client waits\n".repeat(20_000) };
        run
    };
    let mut report = sweep((0..31).map(fails).collect());
    for workload in &mut report.workloads {
        // As in a sweep, the first failure is kept with its history.
        let other = workload.failures.last().cloned();
        workload.failures.extend(std::iter::repeat_n(other, 8).flatten());
    }
    report
}

#[test]
fn a_sweep_in_which_everything_fails_fits() {
    let page = page(Body::Sweep(many()));
    check(&page);
    assert!(count(&page, ".timeline") > 31, "there is room for most of the time lines");
    let shown = texts(&page);
    assert!(shown.contains("Left out of this page") && shown.contains("The rest of this text was left out"));
    assert_eq!(count(&page, "details.failure"), 31 * 10);
}
