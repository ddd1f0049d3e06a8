//! Reports as Markdown, for the summary of a CI job or the text of an issue.

use crate::{
    bugs::BugsReport,
    document::{Body, Document},
    run::RunReport,
    sweep::SweepReport,
    text::{self, count},
};
use std::fmt::Write;

/// The maximum number of failures that are shown in full.
const FAILURES_IN_FULL: usize = 3;

/// The document as Markdown. Returns `None` for reports other than those of sweeps and of planted bugs.
pub fn render(document: &Document) -> Option<String> {
    match &document.body {
        Body::Sweep(sweep) => Some(of_sweep(sweep, &document.commit)),
        Body::Bugs(bugs) => Some(of_bugs(bugs, &document.commit)),
        Body::Watch(_)
        | Body::Replay(_)
        | Body::Explore(_)
        | Body::Advice(_)
        | Body::Regressions(_)
        | Body::Bench(_)
        | Body::Conformance(_)
        | Body::Contract(_) => None,
    }
}

fn of_sweep(report: &SweepReport, commit: &str) -> String {
    let verdict = text::sweep::verdict(report);
    let (first, more) = verdict.split_once('\n').unwrap_or((&verdict, ""));
    let mut out = format!("## shaketable: {}\n\n", cell(first));
    let _ = writeln!(out, "{}.\n", cell(&text::sweep::head(report, commit).join(", ")));
    for line in text::sweep::ending(report.ending).lines().chain(more.lines()) {
        let _ = writeln!(out, "* {}", cell(line.trim()));
    }
    out.push_str("\n| workload | seeds | failed | commits | conflicts | unknown results | retries |\n");
    out.push_str("|---|--:|--:|--:|--:|--:|--:|\n");
    let total = (report.workloads.len() > 1).then(|| report.total());
    for w in report.workloads.iter().chain(&total) {
        let c = &w.counters;
        let unknown = c.unknown_committed.saturating_add(c.unknown_not_committed);
        let figures = [w.runs, w.failed(), c.committed, c.conflicts, unknown, c.retries].map(count);
        let _ = writeln!(out, "| {} | {} |", cell(&w.workload), figures.join(" | "));
    }
    let again = report.regressions().into_iter().filter_map(|one| Some((one, one.failure()?)));
    for (one, run) in again.take(FAILURES_IN_FULL) {
        let block = text::regressions::failure(one, run, commit, text::Details::All);
        out.push_str(&folded(&text::regressions::headline(one), &block, &run.replay));
    }
    for w in report.workloads.iter().filter(|w| w.failing_seeds.len() > 1) {
        let _ = write!(out, "\n{} fails with seeds {}.\n", cell(&w.workload), text::sweep::seeds(w));
    }
    for run in report.failures().take(FAILURES_IN_FULL) {
        out.push_str(&failure(run, commit));
    }
    out
}

/// A failure: what remained of it when it was shrunk, and everything known about it.
fn failure(run: &RunReport, commit: &str) -> String {
    let story = text::run::shrunk(run).map_or(String::new(), |story| format!("\n{}", fenced(&story)));
    story + &folded(&text::run::headline(run), &text::failure(run, commit, text::Details::All), &run.replay)
}

/// A block, folded, with the line that replays the run outside of the fold.
fn folded(headline: &str, block: &str, replay: &str) -> String {
    // Inside of an element of HTML there is no Markdown.
    let headline = headline.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "\n<details>\n<summary>{headline}</summary>\n\n{}\n</details>\n\n{}",
        fenced(block),
        fenced(&format!("{replay}\n"))
    )
}

fn of_bugs(report: &BugsReport, commit: &str) -> String {
    let mut out = format!("## shaketable bugs: {}\n\n", cell(text::bugs::verdict(report).trim_end()));
    let seeds = text::plural(report.max_runs(), "seed", "seeds");
    let _ = writeln!(out, "faults {}, at most {seeds} on each bug, commit {}.", report.faults, cell(commit));
    let open: Vec<_> = report.bugs.iter().filter(|bug| bug.caught.is_none()).collect();
    if !open.is_empty() {
        out.push_str("\n| planted in | bug | | seeds |\n|---|---|---|--:|\n");
    }
    for bug in open {
        let state = text::bugs::state(bug, report);
        let _ =
            writeln!(out, "| {} | {} | {state} | {} |", cell(&bug.place), cell(&bug.bug), count(bug.runs));
    }
    out
}

/// Text in a code block, whose fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// Text in which Markdown and HTML find nothing of theirs, in one line.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' => out.push(' '),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' | '@' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_those_in_the_text() {
        assert_eq!(fenced("a\n"), "```text\na\n```\n");
        assert_eq!(fenced("````\n"), "`````text\n````\n`````\n");
    }

    #[test]
    fn markup_in_text_is_escaped() {
        assert_eq!(cell("a|b <i> @you\nline_2"), r"a\|b &lt;i> \@you line\_2");
    }
}
