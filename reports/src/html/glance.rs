//! The first screen of a sweep's page: what was shaken, how hard, how sure the verdict is, and where it is
//! weak.

use super::parts::facts;
use crate::{
    run::PointReport,
    sweep::{SweepReport, WorkloadReport},
    text::{count, plural, seconds},
};
use maud::{Markup, html};

/// A workload of which less is done is a weak place, in per cent.
const FEW_DONE: u128 = 70;

/// A fault family that struck less often in a whole sweep has shown little.
const FEW_STRIKES: u64 = 10;

/// The most lines about one kind of weakness.
const LINES: usize = 5;

/// The section.
pub fn section(report: &SweepReport) -> Markup {
    let total = report.total();
    let counters = &total.counters;
    let points = || report.workloads.iter().flat_map(|w| &w.points);
    let reached = points().filter(|point| point.was_reached()).count() as u64;
    let ended = total.ended();
    let some = |n: u64| if n == 0 { String::new() } else { count(n) };
    let unknown = counters.unknown_committed.saturating_add(counters.unknown_not_committed);
    let faults = total.faults_delivered.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let families = total.faults_delivered.values().filter(|n| **n > 0).count() as u64;
    let shaken = [
        ("workloads", some(report.workloads.len() as u64)),
        ("runs", count(report.runs())),
        ("operations", some(ended.all())),
        ("commits", some(counters.committed)),
        (
            "virtual time",
            if report.real { String::new() } else { format!("{} s", seconds(total.virtual_ns)) },
        ),
    ];
    let hard = [
        ("faults", format!("{}, of {}", count(faults), plural(families, "family", "families"))),
        ("conflicts", count(counters.conflicts)),
        ("unknown results", count(unknown)),
        ("retries", count(counters.retries)),
    ];
    let sure = [
        ("operations done", ended.share()),
        (
            "points reached",
            match points().count() {
                0 => String::new(),
                all => format!("{} of {}", count(reached), count(all as u64)),
            },
        ),
        ("audits", some(counters.audits)),
        ("ran twice", some(total.run_twice)),
    ];
    let weak = weak(report);
    html! {
        section.glance {
            div { h2 { "Shaken" } (facts(&shaken)) }
            div { h2 { "How hard" } (facts(&hard)) }
            div {
                h2 { "How sure" }
                (facts(&sure))
                p.note { "Which bugs such runs catch is what the subcommand bugs says, with planted ones." }
            }
            div {
                h2 { "Where it is weak" }
                @if weak.is_empty() { p.note { "Nowhere that these runs show." } }
                @else { ul { @for line in &weak { li { (line) } } } }
            }
        }
    }
}

/// What these runs have hardly tried.
fn weak(report: &SweepReport) -> Vec<String> {
    let refused = |w: &WorkloadReport| {
        let ended = w.ended();
        let is_few = u128::from(ended.done) * 100 < u128::from(ended.all()) * FEW_DONE;
        is_few.then(|| format!("{}: {} of the operations were done", w.workload, ended.share()))
    };
    let unreached = |w: &WorkloadReport| {
        let never = w.points.iter().filter(|point: &&PointReport| !point.was_reached()).count() as u64;
        (never > 0).then(|| format!("{}: {} never reached", w.workload, plural(never, "point", "points")))
    };
    let total = report.total();
    let rare = total.faults_delivered.iter().filter(|(_, n)| **n < FEW_STRIKES);
    let rare: Vec<String> = rare.map(|(family, n)| format!("{family} {n}")).collect();
    let rare = (!rare.is_empty()).then(|| format!("hardly struck: {}", rare.join(", ")));
    [
        shortened(report.workloads.iter().filter_map(refused).collect()),
        shortened(report.workloads.iter().filter_map(unreached).collect()),
        rare.into_iter().collect(),
    ]
    .concat()
}

/// The first of these lines, and how many more there are.
fn shortened(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > LINES {
        let more = lines.len() - (LINES - 1);
        lines.truncate(LINES - 1);
        lines.push(format!("and {more} more such lines"));
    }
    lines
}
