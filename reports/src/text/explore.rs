//! The text of explorations: a table, the failures with the lines that replay them, and a summary.

use super::{
    COLUMNS, count, fill, indent, plural, seconds,
    table::{Align, Table},
};
use crate::{
    bugs::{Schedule, Shrunk},
    explore::{ExploreReport, ExploredWorkload},
    run::Conclusion,
};
use std::fmt::Write;

/// Renders explorations as text.
pub fn explore(report: &ExploreReport, commit: &str) -> String {
    let seeds = &report.seeds;
    let mut out = format!(
        "shaketable, commit {commit}\nexplored the plans of the seeds {} to {}\n\n",
        seeds.start,
        seeds.end.saturating_sub(1)
    );
    if report.bugs {
        out.push_str(&bugs(report));
    } else {
        out.push_str(&workloads(report));
    }
    out
}

/// A number that may be large: operations of several transactions have very many orders.
fn short(n: u64) -> String {
    if n < 10_000_000 { count(n) } else { format!("{n:.1e}") }
}

/// The number of a part's runs.
fn ran(workload: &ExploredWorkload, part: &str) -> String {
    count(workload.part(part).ran)
}

fn workloads(report: &ExploreReport) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("workload", Left),
        ("kinds", Right),
        ("out-\ncomes", Right),
        ("orders", Right),
        ("two\noutcomes", Right),
        ("orders\nof 3", Right),
        ("not run", Right),
        ("failed", Right),
        ("CPU s", Right),
    ]);
    for workload in &report.workloads {
        table.row(vec![
            workload.workload.clone(),
            format!("{}/{}", workload.kinds, workload.kinds_drawn),
            ran(workload, "outcome"),
            ran(workload, "order"),
            ran(workload, "two-outcomes"),
            ran(workload, "order-of-three"),
            short(workload.not_run()),
            count(workload.sum(|part| part.failed)),
            seconds(workload.cpu_ns),
        ]);
    }
    let mut out = table.render();
    out.push('\n');
    for workload in &report.workloads {
        failures(workload, &mut out);
    }
    let sum = |number: fn(&ExploredWorkload) -> u64| report.workloads.iter().map(number).sum::<u64>();
    let known = sum(|workload| workload.sum(|part| part.known));
    let runs = sum(|workload| workload.sum(|part| part.ran));
    let impossible = sum(|workload| workload.sum(|part| part.impossible));
    let failed = sum(|workload| workload.sum(|part| part.failed));
    let _ = writeln!(
        out,
        "{}",
        fill(
            &format!(
                "{} of {} known outcomes and orders were run; in {} of them it could not happen, because the operation was \
                 done before, has no time limit, or waits for one that was held back. Of the orders of operations of several transactions, those with the fewest \
                 switches between them are run. {} CPU seconds.",
                count(runs),
                short(known),
                count(impossible),
                seconds(report.cost.cpu_ns)
            ),
            COLUMNS,
            ""
        )
        .trim_end()
    );
    let _ = match report.outcome() {
        Conclusion::Passed => writeln!(out, "PASSED: none of {} failed.", plural(runs, "run", "runs")),
        Conclusion::Vacuous => writeln!(out, "VACUOUS: nothing could be explored."),
        Conclusion::Interrupted => {
            writeln!(out, "INTERRUPTED: none of {} failed so far.", plural(runs, "run", "runs"))
        }
        _ => writeln!(out, "FAILED: {} of {}.", count(failed), plural(runs, "run", "runs")),
    };
    out
}

fn failures(workload: &ExploredWorkload, out: &mut String) {
    for failure in &workload.failures {
        let bug = workload.bug.as_ref().map_or(String::new(), |bug| format!(" with {bug}"));
        let whose = if failure.harness { " (shaketable is at fault here, not the layer)" } else { "" };
        let _ = writeln!(
            out,
            "FAILED {}{bug}, seed {}: {}{whose}",
            workload.workload, failure.seed, failure.judge
        );
        out.push_str(&fill(&failure.what, COLUMNS - 2, "  "));
        out.push_str(&indent(&failure.message, "  "));
        if let Some(replay) = &failure.replay {
            let _ = writeln!(out, "replay with\n{replay}");
        }
        out.push('\n');
    }
}

/// What the planted bugs need that were not found.
fn needs(report: &ExploreReport) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("not found", Left),
        ("bug", Left),
        ("whole\nplan", Right),
        ("seed", Right),
        ("ops", Right),
        ("clients", Right),
        ("delays", Left),
        ("faults", Left),
    ]);
    let is_left = |bug: &&ExploredWorkload| bug.found().is_none() && bug.sum(|part| part.ran) > 0;
    let left: Vec<&ExploredWorkload> = report.workloads.iter().filter(is_left).collect();
    if left.is_empty() {
        return String::new();
    }
    for bug in left {
        let shrunk = bug.drawn.as_ref().and_then(|drawn| drawn.shrunk.as_ref());
        let number = |of: fn(&Shrunk) -> u64| shrunk.map_or(String::new(), |shrunk| count(of(shrunk)));
        let delays = match shrunk.map(|shrunk| shrunk.schedule) {
            None | Some(Schedule::Even) => "",
            Some(Schedule::Ordered) => "ordered",
            Some(Schedule::Drawn) => "drawn",
        };
        table.row(vec![
            bug.workload.clone(),
            bug.bug.clone().unwrap_or_default(),
            bug.failures.first().map_or(String::new(), |whole| whole.seed.to_string()),
            bug.drawn.as_ref().map_or("not caught".to_owned(), |drawn| drawn.seed.to_string()),
            number(|shrunk| shrunk.operations),
            number(|shrunk| shrunk.clients),
            delays.to_owned(),
            shrunk.map_or(String::new(), |shrunk| shrunk.families.join(", ")),
        ]);
    }
    format!(
        "\n{}\n",
        table.render() + "\n"
            + fill(
                "The seed of the first explored plan that fails as a whole, if one does. Then what remains of the first run with \
                 drawn faults that catches the bug: its operations, with values that \
                 its seed draws, the clients that perform them, and the faults. The delays of its messages matter where \
                 they are drawn, the order of its read versions and commits where they are ordered.",
                COLUMNS,
                "",
            )
            .trim_end()
    )
}

fn bugs(report: &ExploreReport) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("place", Left),
        ("bug", Left),
        ("found by", Left),
        ("seed", Right),
        ("runs", Right),
        ("not run", Right),
        ("judge", Left),
    ]);
    for bug in &report.workloads {
        let first = bug.found();
        let by = match first {
            Some(first) => first.part.replace('-', " "),
            None if bug.sum(|part| part.ran) == 0 => "not done".to_owned(),
            None => "-".to_owned(),
        };
        table.row(vec![
            bug.workload.clone(),
            bug.bug.clone().unwrap_or_default(),
            by,
            first.map_or(String::new(), |first| first.seed.to_string()),
            count(bug.sum(|part| part.ran)),
            if first.is_some() { String::new() } else { short(bug.not_run()) },
            first.map_or(String::new(), |first| first.judge.clone()),
        ]);
    }
    let mut out = table.render();
    out.push('\n');
    let (found, all) = (report.found() as u64, report.workloads.len() as u64);
    let by = |part: &str| {
        let first = report.workloads.iter().filter_map(ExploredWorkload::found);
        first.filter(|first| first.part == part).count() as u64
    };
    let _ = writeln!(
        out,
        "{}",
        fill(
            &format!(
                "Found without chance: {} by an outcome, {} by an order of two operations, {} by two outcomes, {} by an order of \
                 three, {} without any. The others need what was not run, or what is not explored: faults of machines and \
                 of the network, errors of reads, watches that fire early or late, more data, or other values. {} CPU seconds.",
                count(by("outcome")),
                count(by("order")),
                count(by("two-outcomes")),
                count(by("order-of-three")),
                count(by("plain")),
                seconds(report.cost.cpu_ns)
            ),
            COLUMNS,
            ""
        )
        .trim_end()
    );
    out.push_str(&needs(report));
    for bug in report.workloads.iter().filter(|bug| bug.failures.iter().any(|failure| failure.harness)) {
        failures(bug, &mut out);
    }
    let of = plural(all, "planted bug", "planted bugs");
    let _ = match report.outcome() {
        Conclusion::Passed => writeln!(out, "PASSED: {} of {of} found without chance.", count(found)),
        Conclusion::Vacuous => writeln!(out, "VACUOUS: nothing could be explored."),
        Conclusion::Interrupted => writeln!(out, "INTERRUPTED: {} of {of} found so far.", count(found)),
        _ => writeln!(out, "FAILED: a judge accused the simulated cluster."),
    };
    out
}
