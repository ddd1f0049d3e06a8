//! The text of a sweep: one table of all workloads, unreached points, a verdict, and failures with their
//! replay lines at the end.

use super::{
    COLUMNS, Details, count, failure, faults, fill, indent, plural, regressions,
    run::wrap,
    seconds,
    table::{Align, Table},
};
use crate::{
    run::Conclusion,
    sweep::{Ending, SweepReport, WorkloadReport},
};
use std::fmt::Write;

/// The maximum number of failures that are printed in full; the report file contains more.
const FAILURES_IN_FULL: usize = 3;
/// The maximum number of failing seeds that are listed by number.
const SEEDS_LISTED: usize = 20;

/// Renders the sweep as text.
pub fn sweep(report: &SweepReport, commit: &str) -> String {
    let total = report.total();
    let head = wrap(&head(report, commit), COLUMNS);
    let mut out = format!("{head}\n\n{}\n{}\n", table(report), other_figures(report));
    let struck: Vec<String> =
        total.faults_delivered.iter().map(|(family, n)| format!("{family} {}", count(*n))).collect();
    if !struck.is_empty() {
        let _ = write!(out, "faults delivered:\n{}\n", indent(&wrap(&struck, COLUMNS - 2), "  "));
    }
    out.push_str(&unreached(report));
    out.push_str(&unjudged(report));
    out.push_str(&cost(report));
    out.push_str(ending(report.ending));
    out.push('\n');
    out.push_str(&verdict(report));
    out.push_str(&failures(report, commit));
    out
}

/// What was requested, and of which commit.
pub(crate) fn head(report: &SweepReport, commit: &str) -> Vec<String> {
    let mut head = vec![
        format!("faults {}", faults(&report.faults, &report.without)),
        format!("seeds {}..{}", report.seeds.start, report.seeds.end),
    ];
    head.extend((!report.scale.is_usual()).then(|| format!("scale {}", report.scale)));
    head.extend(report.fresh.as_ref().map(|text| format!("fresh from {text:?}")));
    head.extend(report.bug.as_ref().map(|bug| format!("planted bug {bug}")));
    head.extend(report.shard.map(|(number, of)| format!("shard {number} of {of}")));
    head.push(format!("commit {commit}"));
    head
}

/// Why a sweep ended before its last seed; empty if it did not.
pub(crate) fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Complete => "",
        Ending::Budget => "The budget ended the sweep before its last seed.\n",
        Ending::Interrupted => "The sweep was interrupted; this is what is known so far.\n",
        Ending::Lost => "The cluster was lost; no further seed was run.\n",
        Ending::Unwritable => {
            "The report could no longer be written, which ended the sweep; this is what is known\nso far.\n"
        }
    }
}

fn table(report: &SweepReport) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("workload", Left),
        ("seeds", Right),
        ("failed", Right),
        ("commits", Right),
        ("conflicts", Right),
        ("unknown\nresults", Right),
        ("retries", Right),
        ("operations\ndone", Right),
    ]);
    let total = (report.workloads.len() > 1).then(|| report.total());
    for w in report.workloads.iter().chain(&total) {
        let c = &w.counters;
        table.row(vec![
            w.workload.clone(),
            count(w.runs),
            count(w.failed()),
            count(c.committed),
            count(c.conflicts),
            count(c.unknown_committed + c.unknown_not_committed),
            count(c.retries),
            w.ended().share(),
        ]);
    }
    table.render()
}

/// Values without a column in the table, for all workloads together. The JSON report has them for each
/// workload.
fn other_figures(report: &SweepReport) -> String {
    let total = &report.total();
    let c = &total.counters;
    let mut facts = vec![
        format!("unknown results: {} committed", count(c.unknown_committed)),
        format!("{} did not", count(c.unknown_not_committed)),
        plural(c.late_landings, "late landing", "late landings"),
        format!("operations not done: {}", others(total)),
        plural(c.faults, "fault", "faults"),
        plural(c.audits, "audit", "audits"),
    ];
    if !report.real {
        facts.push(format!("{} virtual seconds", seconds(total.virtual_ns)));
    }
    let (speed, unit) = report.speed();
    facts.push(format!("{} {unit}", count(speed.round() as u64)));
    wrap(&facts, COLUMNS) + "\n"
}

/// How operations ended that were not done.
pub(crate) fn others(w: &WorkloadReport) -> String {
    let others = w.ended().others();
    if others.is_empty() { "none".to_owned() } else { others }
}

/// Coverage points that were never reached.
fn unreached(report: &SweepReport) -> String {
    let mut out = String::new();
    for w in &report.workloads {
        for point in w.points.iter().filter(|p| !p.was_reached()) {
            let _ = writeln!(out, "  {}: {}", w.workload, point.name);
        }
    }
    if out.is_empty() { out } else { format!("never reached:\n{out}\n") }
}

/// Workloads that set watches and judge no wait.
fn unjudged(report: &SweepReport) -> String {
    let is_unjudged = |w: &&WorkloadReport| w.counters.watches > 0 && w.counters.waits == 0;
    let names: Vec<&str> = report.workloads.iter().filter(is_unjudged).map(|w| w.workload.as_str()).collect();
    match &names[..] {
        [] => String::new(),
        names => format!(
            "set watches, and no wait was judged (Step::waited), so that a lost wake-up passes:\n  {}\n\n",
            names.join(", ")
        ),
    }
}

fn cost(report: &SweepReport) -> String {
    let mut out = format!(
        "{} CPU seconds, {} s on the wall, {}",
        seconds(report.cost.cpu_ns),
        seconds(report.cost.wall_ns),
        plural(report.jobs, "job", "jobs")
    );
    if report.cost.peak_memory > 0 {
        let _ = write!(out, ", {} MB at most", count(report.cost.peak_memory.div_ceil(1_000_000)));
    }
    out.push_str(".\n");
    out
}

/// The verdict: a sentence with what it is based on, and what was required and not seen.
pub(crate) fn verdict(report: &SweepReport) -> String {
    let total = report.total();
    let runs = plural(total.runs, "run", "runs");
    let mut out = match report.outcome {
        Conclusion::Passed => format!("PASSED: every invariant held in {runs}.\n"),
        Conclusion::Interrupted => {
            format!("INTERRUPTED: every invariant held in {runs}, and no further seed was run.\n")
        }
        Conclusion::Vacuous if total.runs == 0 => "VACUOUS: no seed was run.\n".to_owned(),
        Conclusion::Vacuous => format!("VACUOUS: every invariant held in {runs}, but too little happened.\n"),
        Conclusion::Violated => {
            let mut what = Vec::new();
            if total.violated > 0 {
                what.push(format!("{} violated an invariant", count(total.violated)));
            }
            if total.stuck > 0 {
                what.push(format!("{} got stuck", count(total.stuck)));
            }
            match what.is_empty() {
                true => format!("FAILED: every invariant held in {runs}, but not every regression passed.\n"),
                false => format!("FAILED: of {runs}, {}.\n", what.join(" and ")),
            }
        }
        Conclusion::Harness if total.harness == 0 => {
            "HARNESS FAULT: in a regression shaketable itself failed; rely on none of its other verdicts.\n"
                .to_owned()
        }
        Conclusion::Harness => format!(
            "HARNESS FAULT: in {} of {runs} shaketable itself failed; rely on none of its other verdicts.\n",
            count(total.harness)
        ),
    };
    if total.run_twice > 0 {
        let _ = match total.differing {
            0 => writeln!(
                out,
                "{} twice and did the same both times.",
                plural(total.run_twice, "seed ran", "seeds ran")
            ),
            n => writeln!(
                out,
                "{} twice, {} of them not the same way.",
                plural(total.run_twice, "seed ran", "seeds ran"),
                count(n)
            ),
        };
    }
    out.push_str(&capitalized(&regressions::summary(&report.regressions())));
    for w in &report.workloads {
        for line in w.shortfall() {
            let _ = writeln!(out, "  {} {line}", w.workload);
        }
    }
    out
}

/// The text as the beginning of a sentence.
fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn failures(report: &SweepReport, commit: &str) -> String {
    let mut out = String::new();
    out.push_str(&regressions::failures(&report.regressions(), commit));
    for w in report.workloads.iter().filter(|w| w.failing_seeds.len() > 1) {
        out.push_str(&fill(&format!("{} fails with seeds {}", w.workload, seeds(w)), COLUMNS - 2, "  "));
    }
    for run in report.failures().take(FAILURES_IN_FULL) {
        let _ = write!(out, "\n{}", failure(run, commit, Details::Brief));
    }
    out
}

/// The failing seeds of a workload, the first of them by number.
pub(crate) fn seeds(w: &WorkloadReport) -> String {
    let listed: Vec<String> = w.failing_seeds.iter().take(SEEDS_LISTED).map(u64::to_string).collect();
    match w.failing_seeds.len().saturating_sub(SEEDS_LISTED) {
        0 => listed.join(", "),
        more => format!("{} and {} more", listed.join(", "), count(more as u64)),
    }
}
