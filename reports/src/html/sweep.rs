//! The page of a sweep: the verdict, a table of the workloads, failures, distributions, counters, faults and
//! points.

use super::{badge, chart, facts, failure, glance, room::Room};
use crate::{
    distribution::Distribution,
    run::{Conclusion, PointReport},
    sweep::{SweepReport, WorkloadReport},
    text::{self, count, plural, seconds},
};
use maud::{Markup, html};

/// The main part of the page.
pub fn main(report: &SweepReport, commit: &str, room: &Room) -> Markup {
    let verdict = text::sweep::verdict(report);
    let (first, more) = verdict.split_once('\n').unwrap_or((&verdict, ""));
    let (word, sentence) = first.split_once(": ").unwrap_or(("", first));
    html! {
        header {
            h1 { (badge(class(report.outcome), &word.to_lowercase())) " " (sentence) }
            p.note { (text::sweep::head(report, commit).join(" · ")) }
            @for line in text::sweep::ending(report.ending).split_terminator(".\n").chain(more.lines()) {
                p.note { (line) }
            }
        }
        (glance::section(report))
        div.beside {
            (table(report))
            (faults(report))
        }
        (failures(report, commit, room))
        div.wide.columns { (distributions(report, false)) }
        (counters(report))
        (points(report, true))
    }
}

/// The class of a conclusion's badge.
pub fn class(outcome: Conclusion) -> &'static str {
    match outcome {
        Conclusion::Passed => "passed",
        Conclusion::Vacuous | Conclusion::Interrupted => "unsure",
        Conclusion::Violated | Conclusion::Harness => "failed",
    }
}

fn table(report: &SweepReport) -> Markup {
    let row = |w: &WorkloadReport| {
        let c = &w.counters;
        let unknown = c.unknown_committed.saturating_add(c.unknown_not_committed);
        let state = class(w.outcome());
        html! {
            tr.(state) {
                th scope="row" { (w.workload) }
                td { (count(w.runs)) }
                td.failures { (count(w.failed())) }
                @for n in [c.committed, c.conflicts, unknown, c.retries] { td { (count(n)) } }
                td title=(text::sweep::others(w)) { (w.ended().share()) }
            }
        }
    };
    html! {
        section {
            h2 { "Workloads" }
            div.scrolls tabindex="0" {
                table.workloads {
                    thead {
                        tr {
                            th scope="col" { "workload" }
                            @for name in ["seeds", "failed", "commits", "conflicts", "unknown results", "retries", "operations done"] {
                                th scope="col" { (name) }
                            }
                        }
                    }
                    tbody { @for w in &report.workloads { (row(w)) } }
                    @if report.workloads.len() > 1 { tfoot { (row(&report.total())) } }
                }
            }
        }
    }
}

/// The most failures of a page.
const FAILURES_SHOWN: usize = 400;

fn failures(report: &SweepReport, commit: &str, room: &Room) -> Markup {
    let failing = || report.workloads.iter().filter(|w| !w.failing_seeds.is_empty());
    let most = (FAILURES_SHOWN / failing().count().max(1)).max(1);
    html! {
        @if failing().next().is_some() {
            section {
                h2 { "Failures" }
                @for w in failing() {
                    p.note { (w.workload) " fails with " (plural(w.failing_seeds.len() as u64, "seed", "seeds")) ": " (text::sweep::seeds(w)) }
                    @for (n, run) in w.failures.iter().take(most).enumerate() {
                        (failure::folded(run, commit, room, n == 0 && failing().count() == 1))
                    }
                    @if w.failures.len() > most {
                        p.left-out {
                            "Left out of this page: " (plural((w.failures.len() - most) as u64, "failure", "failures"))
                            " more. The JSON report has them."
                        }
                    }
                }
            }
        }
    }
}

/// A number of microseconds with its unit.
fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..100_000 => format!("{:.1} ms", us as f64 / 1e3),
        100_000..1_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

/// Latencies and attempts of each workload; with `has_empty` also of those that have none yet.
pub fn distributions(report: &SweepReport, has_empty: bool) -> Markup {
    type Of = fn(&WorkloadReport) -> &Distribution;
    let one = |title: &str, note: &str, of: Of, shown: fn(u64) -> String| {
        let some = |of: &Distribution, n| if of.is_empty() { String::new() } else { shown(n) };
        let rows = || report.workloads.iter().filter(move |w| has_empty || !of(w).is_empty());
        html! {
            @if rows().next().is_some() {
                section {
                    h2 { (title) }
                    p.note { (note) }
                    div.scrolls tabindex="0" {
                        table.distributions {
                            thead {
                                tr {
                                    th scope="col" { "workload" }
                                    @for name in ["operations", "median", "90 %", "99 %", "at most"] { th scope="col" { (name) } }
                                    th scope="col" { "from the least to the most" }
                                }
                            }
                            tbody {
                                @for w in rows() {
                                    tr {
                                        th scope="row" { (w.workload) }
                                        td { (count(of(w).count())) }
                                        @for percent in [50.0, 90.0, 99.0] { td { (some(of(w), of(w).percentile(percent))) } }
                                        td { (some(of(w), of(w).max())) }
                                        td.drawn { (chart::distribution(of(w), title, shown)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        (one("Latencies", "Virtual time from the call of an operation to its answer, within 7 percent.", |w| &w.latencies, time))
        (one("Attempts", "Attempts at transactions of each operation, with those after conflicts and other errors.", |w| &w.attempts, count))
    }
}

/// The faults of all workloads, by family.
pub fn faults(report: &SweepReport) -> Markup {
    let delivered = report.total().faults_delivered;
    html! {
        @if !delivered.is_empty() {
            section { h2 { "Faults delivered" } (chart::named(delivered)) }
        }
    }
}

/// Counters and costs of all workloads.
pub fn counters(report: &SweepReport) -> Markup {
    let total = report.total();
    let counters: Vec<(&str, String)> =
        total.counters.named().into_iter().map(|(name, n)| (name, count(n))).collect();
    let mut cost = vec![
        ("CPU", format!("{} s", seconds(report.cost.cpu_ns))),
        ("wall", format!("{} s", seconds(report.cost.wall_ns))),
        ("jobs", count(report.jobs)),
    ];
    if !report.real {
        cost.push(("virtual time", format!("{} s", seconds(total.virtual_ns))));
    }
    let (speed, unit) = report.speed();
    cost.push((unit, count(speed.round() as u64)));
    if report.cost.peak_memory > 0 {
        cost.push(("memory at most", format!("{} MB", count(report.cost.peak_memory.div_ceil(1_000_000)))));
    }
    html! {
        div.columns {
            section { h2 { "Counters" } (facts(&counters)) }
            section { h2 { "Cost" } (facts(&cost)) }
        }
    }
}

/// The points of each workload, which are unfolded if `unfolds` and some were never reached.
pub fn points(report: &SweepReport, unfolds: bool) -> Markup {
    let with_points = || report.workloads.iter().filter(|w| !w.points.is_empty());
    let missed = |w: &WorkloadReport| w.points.iter().filter(|point| !point.was_reached()).count();
    let point = |point: &PointReport| {
        html! {
            tr.(if point.was_reached() { "passed" } else { "unsure" }) {
                th scope="row" { (point.name) }
                td { (count(point.passed)) }
                td { (count(point.held)) }
            }
        }
    };
    html! {
        @if with_points().next().is_some() {
            section {
                h2 { "Points" }
                p.note { "Claims in the code of layers and workloads: how often each was evaluated, and how often it was true." }
                @for w in with_points() {
                    details.points open[unfolds && missed(w) > 0] {
                        summary {
                            strong { (w.workload) } ": " (count((w.points.len() - missed(w)) as u64)) " of "
                            (count(w.points.len() as u64)) " reached"
                            @if missed(w) > 0 { " " (badge("unsure", &format!("{} never reached", missed(w)))) }
                        }
                        div.scrolls tabindex="0" {
                            table {
                                thead { tr { th scope="col" { "point" } th scope="col" { "evaluated" } th scope="col" { "true" } } }
                                tbody {
                                    @for p in w.points.iter().filter(|p| !p.was_reached()) { (point(p)) }
                                    @for p in w.points.iter().filter(|p| p.was_reached()) { (point(p)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
