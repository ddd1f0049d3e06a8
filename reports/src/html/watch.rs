//! The page of a sweep that goes on: progress, coverage, failures as they come and how far they are shrunk,
//! distributions. `watch.js` asks for the page again and takes over what has changed, so that Rust writes all
//! of it, and the page can be read without a script.

use super::{badge, chart, failure, room::Room, sweep};
use crate::{
    sweep::{SweepReport, WorkloadReport},
    text::{self, count, plural, seconds},
    watch::{ShrinkState, Shrinking, Stage, WatchReport, WatchedFinding},
};
use maud::{Markup, html};

/// The most failures of a page.
const FINDINGS_SHOWN: usize = 100;

/// More seeds than this are as many as the budget allows: their number says nothing.
const MOST_SEEDS: u64 = 1_000_000_000;

/// The title: how far the sweep is.
pub fn title(report: &WatchReport) -> String {
    let failed = match failed(&report.sweep) {
        0 => String::new(),
        n => format!(", {} failed", count(n)),
    };
    match report.stage {
        Stage::Ended => format!("ended{failed}"),
        Stage::Regressions | Stage::Runs | Stage::Shrinking => {
            format!("{:.0} %{failed}", (report.share() * 100.0).floor())
        }
    }
}

fn failed(sweep: &SweepReport) -> u64 {
    sweep.workloads.iter().map(WorkloadReport::failed).sum()
}

/// The main part of the page.
pub fn main(report: &WatchReport, commit: &str) -> Markup {
    html! {
        p.asked {
            button #pause type="button" aria-pressed="false" hidden { "Pause" }
            span #asked { "Reload the page for what is new." }
        }
        div #watch data-stage=(name(report.stage)) {
            (head(report, commit))
            div.watched {
                div.part {
                    (progress(report))
                    (sweep::distributions(&report.sweep, true))
                }
                div.part {
                    (coverage(report))
                    (findings(report, commit))
                }
            }
            (sweep::counters(&report.sweep))
            (sweep::faults(&report.sweep))
            (sweep::points(&report.sweep, false))
        }
    }
}

/// The name of a stage, as in JSON.
fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Regressions => "regressions",
        Stage::Runs => "runs",
        Stage::Shrinking => "shrinking",
        Stage::Ended => "ended",
    }
}

/// `3 of 200 runs`, or `3 runs` if there is no telling of how many.
fn of_all(done: u64, all: u64) -> String {
    if all > MOST_SEEDS {
        plural(done, "run", "runs")
    } else {
        format!("{} of {}", count(done), plural(all, "run", "runs"))
    }
}

fn head(report: &WatchReport, commit: &str) -> Markup {
    let sweep = &report.sweep;
    let failed = failed(sweep);
    let runs = of_all(sweep.runs(), report.all_runs());
    let class = if failed > 0 { "failed" } else { "going" };
    let going = |word: &str, sentence: &str| {
        html! { h1 { (badge(class, word)) " " (sentence) } }
    };
    let verdict = text::sweep::verdict(sweep);
    let (first, more) = verdict.split_once('\n').unwrap_or((&verdict, ""));
    let (word, sentence) = first.split_once(": ").unwrap_or(("", first));
    let mut figures = vec![match report.budget_ns {
        Some(budget) => format!("{} s of a budget of {} s", seconds(report.elapsed_ns), seconds(budget)),
        None => format!("{} s", seconds(report.elapsed_ns)),
    }];
    let (speed, unit) = sweep.speed();
    figures.push(format!("{} {unit}", count(speed.round() as u64)));
    figures.push(plural(sweep.jobs, "job", "jobs"));
    html! {
        header {
            @match report.stage {
                Stage::Regressions => (going("running", "the regressions are replayed")),
                Stage::Runs => (going("running", &format!("{runs}, {} failed", count(failed)))),
                Stage::Shrinking => (going("shrinking", &format!("{runs}, {} failed", count(failed)))),
                Stage::Ended => h1 { (badge(sweep::class(sweep.outcome), &word.to_lowercase())) " " (sentence) },
            }
            div.whole.(class) aria-hidden="true" { (bar(report.share())) }
            p.note { (figures.join(" · ")) }
            p.note { (text::sweep::head(sweep, commit).join(" · ")) }
            @if report.stage == Stage::Ended {
                @for line in text::sweep::ending(sweep.ending).split_terminator(".\n").chain(more.lines()) {
                    p.note { (line) }
                }
            } @else {
                @for line in text::regressions::summary(&sweep.regressions()).lines() { p.note { (line) } }
            }
        }
    }
}

/// A bar that is full to a share between 0 and 1.
fn bar(share: f64) -> Markup {
    html! { span.bar { span style=(format!("width:{:.1}%", share * 100.0)) {} } }
}

fn progress(report: &WatchReport) -> Markup {
    let row = |w: &WorkloadReport, all: u64| {
        let reached = w.points.iter().filter(|point| point.was_reached()).count() as u64;
        let share = if all == 0 { 0.0 } else { (w.runs as f64 / all as f64).min(1.0) };
        html! {
            tr.(if w.failed() > 0 { "failed" } else { "going" }) {
                th scope="row" { (w.workload) }
                td.share { @if all <= MOST_SEEDS { (bar(share)) } }
                td { (of(w.runs, all)) }
                td.failures { (count(w.failed())) }
                td { @if !w.points.is_empty() { (of(reached, w.points.len() as u64)) } }
            }
        }
    };
    let workloads = &report.sweep.workloads;
    let mut total = report.sweep.total();
    total.points = workloads.iter().flat_map(|w| &w.points).cloned().collect();
    html! {
        section {
            h2 { "Progress" }
            div.scrolls tabindex="0" {
                table.progress {
                    thead {
                        tr {
                            @for name in ["workload", "", "seeds", "failed", "points"] { th scope="col" { (name) } }
                        }
                    }
                    tbody { @for w in workloads { (row(w, report.seeds)) } }
                    @if workloads.len() > 1 { tfoot { (row(&total, report.all_runs())) } }
                }
            }
        }
    }
}

/// `3 of 200`, or `3` if there is no telling of how many.
fn of(n: u64, all: u64) -> String {
    if all > MOST_SEEDS { count(n) } else { format!("{} of {}", count(n), count(all)) }
}

fn coverage(report: &WatchReport) -> Markup {
    let all = report.sweep.workloads.iter().map(|w| w.points.len() as u64).sum::<u64>();
    let last = report.coverage.last();
    let reached = last.map_or(0, |last| last.points);
    html! {
        section {
            h2 { "Coverage points" }
            @if all == 0 {
                p.note { "The code of these workloads names no points." }
            } @else {
                (chart::steps(
                    report.coverage.iter().map(|at| (at.runs, at.points)),
                    report.sweep.runs(),
                    all,
                    &format!("coverage points by the number of runs: {} reached", of(reached, all)),
                ))
                p.note {
                    (of(reached, all)) " reached"
                    @if let Some(last) = last.filter(|last| last.runs > 0) {
                        ", the last one after " (plural(last.runs, "run", "runs")) " and " (seconds(last.elapsed_ns)) " s"
                    }
                    "."
                }
            }
        }
    }
}

fn findings(report: &WatchReport, commit: &str) -> Markup {
    let kept = report.findings.len();
    let room = Room::for_texts(kept.min(FINDINGS_SHOWN));
    html! {
        section {
            h2 { "Failures" }
            p.note role="status" {
                (said(report))
            }
            @for finding in report.findings.iter().take(FINDINGS_SHOWN) {
                div.finding id=(format!("failure-{}-{}", finding.run.workload, finding.run.seed)) {
                    (failure::folded(&finding.run, commit, &room, false))
                    p.note { (found(finding)) }
                    @if let Some(shrinking) = &finding.shrinking { p.note { (shrunk(shrinking)) } }
                }
            }
            @if kept > FINDINGS_SHOWN {
                p.left-out { "Left out of this page: " (plural((kept - FINDINGS_SHOWN) as u64, "failure", "failures")) " more." }
            }
        }
    }
}

/// How many runs failed, and which of them are kept.
fn said(report: &WatchReport) -> String {
    let (all, kept) = (failed(&report.sweep), report.findings.len() as u64);
    match all {
        0 if report.stage == Stage::Ended => "No run failed.".to_owned(),
        0 => "No run has failed so far.".to_owned(),
        all if kept == all => format!("{}.", plural(all, "run failed", "runs failed")),
        all => format!(
            "{}; {} kept, those with the lowest seeds of each workload.",
            plural(all, "run failed", "runs failed"),
            plural(kept, "is", "are")
        ),
    }
}

/// When a failure was found.
fn found(finding: &WatchedFinding) -> String {
    match finding.runs {
        0 => "In the earlier part of the sweep.".to_owned(),
        runs => format!("Found after {} and {} s.", plural(runs, "run", "runs"), seconds(finding.elapsed_ns)),
    }
}

/// How far a failure has been shrunk.
fn shrunk(shrinking: &Shrinking) -> String {
    let Shrinking { runs, before, now, state } = shrinking;
    let runs = plural(*runs, "run", "runs");
    match state {
        ShrinkState::Searching => format!("Shrinking, {runs} so far: from {before} to {now}."),
        ShrinkState::Minimal => {
            format!("Shrunk from {before} to {now} in {runs}; nothing more can be taken away.")
        }
        ShrinkState::Stopped => format!("Shrunk from {before} to {now} in {runs}; the search was ended."),
        ShrinkState::NotRepeated => "It was not shrunk: it did not fail again.".to_owned(),
    }
}
