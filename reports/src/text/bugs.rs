//! The text of the results for planted bugs: a table with the line that replays each catch, and a summary.

use super::{
    count, plural, seconds,
    table::{Align, Table},
};
use crate::{
    bugs::{BugReport, BugsReport, Catch, Schedule, Shrunk},
    run::Conclusion,
    sweep::Ending,
};
use std::fmt::Write;

/// Renders the results as text.
pub fn bugs(report: &BugsReport, commit: &str) -> String {
    use Align::{Left, Right};
    let mut out = format!(
        "faults {}, at most {} on each bug, commit {commit}\n\n",
        report.faults,
        plural(report.max_runs(), "seed", "seeds")
    );
    let is_shrunk = report.shrunk().next().is_some();
    let mut columns = vec![
        ("planted in", Left),
        ("bug", Left),
        ("", Left),
        ("seeds", Right),
        ("caught in", Left),
        ("judge", Left),
    ];
    if is_shrunk {
        columns.extend([
            ("ops", Right),
            ("clients", Right),
            ("faults", Right),
            ("runs", Right),
            ("CPU s", Right),
        ]);
    }
    let mut table = Table::new(&columns);
    for bug in &report.bugs {
        let caught = |f: fn(&Catch) -> String| bug.caught.as_ref().map_or(String::new(), f);
        let mut row = vec![
            bug.place.clone(),
            bug.bug.clone(),
            state(bug, report).to_owned(),
            count(bug.runs),
            caught(|c| format!("{} {}", c.workload, c.seed)),
            caught(|c| c.judge.clone()),
        ];
        if is_shrunk {
            let shrunk = bug.caught.as_ref().and_then(|caught| caught.shrunk.as_ref());
            let numbers = shrunk.map(|s| [s.operations, s.clients, s.faults, s.replays].map(count));
            row.extend(numbers.unwrap_or_default());
            row.push(shrunk.map_or_else(String::new, |shrunk| seconds(shrunk.cpu_ns)));
        }
        table.row(row);
    }
    out.push_str(&table.render());
    out.push('\n');
    if let Some((bug, catch)) = report.bugs.iter().find_map(|bug| Some((bug, bug.caught.as_ref()?))) {
        let _ = writeln!(
            out,
            "{} of {} is replayed with\n{}\nand the others likewise.\n",
            bug.bug, bug.place, catch.replay
        );
    }
    for bug in &report.bugs {
        if let Some(wrong_judge) = &bug.wrong_judge {
            let _ = writeln!(out, "{} of {}: {wrong_judge}\n", bug.bug, bug.place);
        }
    }
    for (bug, takes) in report.bugs.iter().filter_map(|bug| Some((bug, bug.only_simulated.as_ref()?))) {
        let _ = writeln!(out, "{} of {}: only a simulated cluster shows it: {takes}\n", bug.bug, bug.place);
    }
    for (bug, difference) in report.different() {
        let _ = writeln!(out, "{} of {}: what remains is another run: {difference}\n", bug.bug, bug.place);
    }
    if is_shrunk {
        out.push_str(&remains(report));
        out.push('\n');
    }
    match report.ending {
        Ending::Complete => {}
        Ending::Lost => out.push_str("The cluster was lost; this is what is known so far.\n"),
        Ending::Interrupted | Ending::Budget | Ending::Unwritable => {
            out.push_str("The sweep ended early; this is what is known so far.\n");
        }
    }
    let _ = write!(out, "{} CPU seconds. ", seconds(report.cost.cpu_ns));
    if let Some(runs) = report.median_runs() {
        let cpu = report.median_cpu_ns().map(|ns| format!(", {} CPU seconds", seconds(ns)));
        let seeds = plural(runs, "seed", "seeds");
        let _ = write!(out, "Median to the first catch: {seeds}{}.", cpu.unwrap_or_default());
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out + &verdict(report)
}

/// The sizes of what remains of the runs that were shrunk, and what its searches took.
fn remains(report: &BugsReport) -> String {
    use Align::{Left, Right};
    let mut table =
        Table::new(&[("what remains", Left), ("median", Right), ("90 %", Right), ("most", Right)]);
    let mut row = |name: &str, number: fn(&Shrunk) -> u64, shown: fn(u64) -> String| {
        let quantiles = report.quantiles_shrunk(number).unwrap_or_default();
        table.row(std::iter::once(name.to_owned()).chain(quantiles.map(shown)).collect());
    };
    row("operations", |shrunk| shrunk.operations, count);
    row("clients", |shrunk| shrunk.clients, count);
    row("faults", |shrunk| shrunk.faults, count);
    row("runs of the search", |shrunk| shrunk.replays, count);
    row("CPU seconds of the search", |shrunk| shrunk.cpu_ns, seconds);
    let all = report.shrunk().count() as u64;
    let of = |schedule| count(report.shrunk().filter(|shrunk| shrunk.schedule == schedule).count() as u64);
    let ended = report.shrunk().filter(|shrunk| !shrunk.is_minimal).count() as u64;
    let mut text = table.render();
    let _ = writeln!(
        text,
        "\nDelays: {} with even ones, {} in an order of read versions and commits, {} drawn.",
        of(Schedule::Even),
        of(Schedule::Ordered),
        of(Schedule::Drawn)
    );
    if ended > 0 {
        let _ = writeln!(
            text,
            "A limit ended {} before nothing more could be taken away.",
            plural(ended, "search", "searches")
        );
    }
    let wider = report.shrunk().filter(|shrunk| !shrunk.left_out.is_empty()).count() as u64;
    if wider > 0 {
        let _ = writeln!(
            text,
            "Of {} the judge names fewer kinds of operations than before: a wider claim.",
            plural(wider, "run", "runs")
        );
    }
    let same = all - report.different().count() as u64;
    let _ = writeln!(
        text,
        "{} of {} give the same run again.",
        count(same),
        plural(all, "repro file", "repro files")
    );
    text
}

/// The verdict in one line.
pub(crate) fn verdict(report: &BugsReport) -> String {
    let total = report.bugs.len() as u64;
    let missed = report.missed() as u64;
    let left = report.left() as u64;
    let different = report.different().count() as u64;
    match (total, missed) {
        _ if different > 0 => format!(
            "FAILED: {} of {} shrunk to another run; no verdict above is reliable.\n",
            count(different),
            plural(total, "planted bug was", "planted bugs were")
        ),
        _ if report.accuses_cluster() > 0 => format!(
            "FAILED: runs of {} accused the cluster, and nothing of the layer explains it.\n",
            plural(report.accuses_cluster() as u64, "planted bug", "planted bugs")
        ),
        (0, _) => "VACUOUS: no bug was planted.\n".to_owned(),
        _ if left > 0 => {
            let missed = if missed > 0 { format!(", {} missed", count(missed)) } else { String::new() };
            let ended = if report.ending == Ending::Interrupted { "INTERRUPTED" } else { "ENDED EARLY" };
            let of = plural(total, "planted bug", "planted bugs");
            let caught = count(report.caught() as u64);
            format!("{ended}: of {of} {caught} caught{missed}, {} not done.\n", count(left))
        }
        (_, 0) if report.caught() as u64 == total => format!("PASSED: {} caught.\n", all(total)),
        _ if report.outcome() == Conclusion::Passed => format!(
            "PASSED: {} of {} caught; of the others, a real cluster cannot show {}.\n",
            count(report.caught() as u64),
            plural(total, "planted bug", "planted bugs"),
            count(report.only_simulated() as u64)
        ),
        _ => format!("FAILED: {} of {} not caught.\n", count(missed), plural(total, "bug", "bugs")),
    }
}

fn all(n: u64) -> String {
    if n == 1 { "the planted bug was".to_owned() } else { format!("all {} planted bugs were", count(n)) }
}

/// What became of a bug, in one or two words.
pub(crate) fn state(bug: &BugReport, report: &BugsReport) -> &'static str {
    match bug.caught {
        Some(_) => "caught",
        None if report.is_left(bug) => "not done",
        None if bug.only_simulated.is_some() => "cannot show",
        None if report.real && bug.wrong_judge.is_none() => "not met",
        None => "MISSED",
    }
}
