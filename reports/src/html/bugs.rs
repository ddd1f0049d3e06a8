//! The page of the planted bugs: a table with what caught each of them, and how many seeds that took.

use super::{badge, chart, command, facts, lines, sweep::class};
use crate::{
    bugs::{BugReport, BugsReport, Shrunk},
    distribution::Distribution,
    text::{self, count, plural, seconds},
};
use maud::{Markup, html};

/// The most characters of what a judge found.
const MOST_CHARACTERS: usize = 1_500;

/// The main part of the page.
pub fn main(report: &BugsReport, commit: &str) -> Markup {
    let verdict = text::bugs::verdict(report);
    let (word, sentence) = verdict.trim_end().split_once(": ").unwrap_or(("", &verdict));
    html! {
        header {
            h1 { (badge(class(report.outcome()), &word.to_lowercase())) " " (sentence) }
            p.note {
                "faults " (report.faults) " · at most " (plural(report.max_runs(), "seed", "seeds"))
                " on each bug · commit " (commit)
            }
        }
        (figures(report))
        (table(report))
        section {
            h2 { "Each bug" }
            @for bug in &report.bugs { (about(bug, report)) }
        }
    }
}

fn figures(report: &BugsReport) -> Markup {
    let seeds: Distribution =
        report.bugs.iter().filter(|bug| bug.caught.is_some()).map(|bug| bug.runs).collect();
    let number = |n: Option<u64>| n.map_or_else(String::new, count);
    let median = |of: fn(&Shrunk) -> u64| {
        format!("median {}", number(report.quantiles_shrunk(of).map(|[median, ..]| median)))
    };
    let sizes = [
        ("operations", median(|s| s.operations)),
        ("clients", median(|s| s.clients)),
        ("faults", median(|s| s.faults)),
        ("runs", median(|s| s.replays)),
    ];
    html! {
        div.columns {
            section {
                h2 { "Seeds to the first catch" }
                (chart::with_ends(&seeds, "seeds to the first catch", count))
                (facts(&[
                    ("median", number(report.median_runs())),
                    ("90 %", if seeds.is_empty() { String::new() } else { count(seeds.percentile(90.0)) }),
                    ("at most", if seeds.is_empty() { String::new() } else { count(seeds.max()) }),
                    ("CPU, median", report.median_cpu_ns().map_or_else(String::new, |ns| format!("{} s", seconds(ns)))),
                    ("CPU, all", format!("{} s", seconds(report.cost.cpu_ns))),
                ]))
            }
            @if report.quantiles_shrunk(|s| s.operations).is_some() {
                section {
                    h2 { "When shrunk" }
                    (facts(&sizes))
                }
            }
        }
    }
}

fn table(report: &BugsReport) -> Markup {
    let is_shrunk = report.quantiles_shrunk(|s| s.operations).is_some();
    html! {
        section {
            h2 { "Planted bugs" }
            div.scrolls tabindex="0" {
                table.named {
                    thead {
                        tr {
                            @for name in ["planted in", "bug", "state", "seeds", "caught in", "judge"] { th scope="col" { (name) } }
                            @if is_shrunk {
                                @for name in ["operations", "clients", "faults", "runs", "CPU s"] { th scope="col" { (name) } }
                            }
                        }
                    }
                    tbody { @for bug in &report.bugs { (row(bug, report, is_shrunk)) } }
                }
            }
        }
    }
}

fn state(bug: &BugReport, report: &BugsReport) -> Markup {
    let class = match bug.caught {
        Some(_) => "passed",
        None if text::bugs::state(bug, report) == "MISSED" => "failed",
        None => "unsure",
    };
    badge(class, &text::bugs::state(bug, report).to_lowercase())
}

fn row(bug: &BugReport, report: &BugsReport, is_shrunk: bool) -> Markup {
    let caught = bug.caught.as_ref();
    let shrunk = caught.and_then(|caught| caught.shrunk.as_ref());
    html! {
        tr {
            th scope="row" { (bug.place) }
            td.text { (bug.bug) }
            td.text { (state(bug, report)) }
            td { (count(bug.runs)) }
            td.text { @if let Some(caught) = caught { (caught.workload) " " (caught.seed) } }
            td.text { @if let Some(caught) = caught { (caught.judge) } }
            @if is_shrunk {
                @for n in shrunk.map_or([const { None }; 4], |s| [s.operations, s.clients, s.faults, s.replays].map(Some)) {
                    td { @if let Some(n) = n { (count(n)) } }
                }
                td { @if let Some(shrunk) = shrunk { (seconds(shrunk.cpu_ns)) } }
            }
        }
    }
}

fn about(bug: &BugReport, report: &BugsReport) -> Markup {
    html! {
        details.bug {
            summary { (state(bug, report)) " " strong { (bug.place) ", " (bug.bug) } span.first-line { (bug.about) } }
            @if let Some(caught) = &bug.caught {
                p.note { "Caught by " (caught.judge) " in " (caught.workload) " with seed " (caught.seed) "." }
                (lines(&caught.message, MOST_CHARACTERS))
                (command("replay", &caught.replay))
            }
            @if let Some(wrong) = &bug.wrong_judge { (lines(wrong, MOST_CHARACTERS)) }
            @if let Some(takes) = &bug.only_simulated { "only a simulated cluster shows it: " (takes) }
        }
    }
}
