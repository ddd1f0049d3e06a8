//! The text of one run: the block printed for a failure, and the output of a replay.

use super::{COLUMNS, count, faults, indent, lines, plural, seconds, story};
use crate::{
    history::ShrunkRun,
    run::{LOST, RunReport, Verdict},
    when::{When, milliseconds},
};
use std::fmt::Write;

/// The maximum number of further findings that are printed.
const ALSO_PRINTED: usize = 4;

/// How much of a run is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// What fits on a screen: of a failure the finding, the story, and what names the run.
    Brief,
    /// Also what was drawn, what happened, and which faults struck.
    All,
}

impl Details {
    /// All, if a user asks for more.
    pub fn of(verbose: bool) -> Details {
        if verbose { Details::All } else { Details::Brief }
    }
}

/// A failure's block: what failed, what the judge found, and the replay line at the end.
pub fn failure(run: &RunReport, commit: &str, details: Details) -> String {
    let mut out = format!("{}\n", headline(run));
    if let Some(message) = run.verdict.message() {
        out.push_str(&indent(message, "  "));
    }
    for other in run.other_findings.iter().take(ALSO_PRINTED) {
        out.push_str(&indent(&format!("also {}: {}", other.judge, other.message), "  "));
    }
    if let Some(more @ 1..) = run.other_findings.len().checked_sub(ALSO_PRINTED) {
        let _ = writeln!(out, "  and {} more", count(more as u64));
    }
    if let Some(shrunk) = &run.shrunk {
        out.push_str(&of_shrunk(shrunk, run.verdict.message()));
    }
    out.push('\n');
    out.push_str(&facts(run, commit, details));
    let _ = write!(out, "\nreplay with\n{}\n", run.replay);
    out
}

/// What remained of a failure when it was shrunk: its size, what the judge finds in it if that is something
/// else, and its story.
pub(crate) fn of_shrunk(shrunk: &ShrunkRun, message: Option<&str>) -> String {
    let ShrunkRun { before, after, .. } = shrunk;
    let ended = match shrunk.is_minimal {
        true => "nothing more can be taken away",
        false => "a limit ended the search",
    };
    let runs = plural(shrunk.replays, "run", "runs");
    let mut out = format!("\n  shrunk from {before}\n  to {after} ({runs}; {ended})\n");
    if message != Some(shrunk.message.as_str()) {
        out.push_str(&indent(&shrunk.message, "  "));
    }
    out.push_str(&indent(&left_out(&shrunk.left_out), "  "));
    let when = shrunk.when.as_ref().map_or_else(String::new, of_when);
    format!("{out}\n{}{when}", story(&shrunk.history))
}

/// That what remains contradicts less than the run did, if it does.
pub(crate) fn left_out(kinds: &[String]) -> String {
    match kinds {
        [] => String::new(),
        kinds => format!("what remains is a wider claim: it no longer names {}", kinds.join(", ")),
    }
}

/// How often it fails with other chance, as a line of bars, and when it became certain. The highest bar is
/// for all runs, and the lowest for none.
fn of_when(when: &When) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |failed: u64| match failed {
        0 => BARS[0],
        some if some >= when.runs => BARS[7],
        some => BARS[1 + (some * 6 / when.runs) as usize],
    };
    let bars: String = when.moments.iter().map(|moment| bar(moment.failed)).collect();
    let moments = plural(when.moments.len() as u64, "moment", "moments");
    let runs = plural(when.runs, "run", "runs");
    let last = when.moments.last().map_or(0, |moment| moment.at);
    let mut out = format!(
        "\n{bars}  how many of {runs} fail with other chance after each of {moments}, 0 to {} ms\n",
        milliseconds(last)
    );
    for line in when.sentences().iter().flat_map(|sentence| lines(sentence, 108)) {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// The output of a replay: its verdict and what is known about the run; a failure ends with its replay line.
pub fn replay(run: &RunReport, commit: &str, details: Details) -> String {
    match run.verdict {
        Verdict::Passed => format!("{}\n\n{}", headline(run), facts(run, commit, details)),
        _ => failure(run, commit, details),
    }
}

/// What remained of a failing run when it was shrunk: the sizes, what the judge found, and the story; `None`
/// if it was not shrunk.
pub(crate) fn shrunk(run: &RunReport) -> Option<String> {
    let shrunk = run.shrunk.as_ref()?;
    let minimal = if shrunk.is_minimal { "" } else { " (the search was ended)" };
    let message = indent(&shrunk.message, "  ");
    let story = super::story(&shrunk.history);
    Some(format!("shrunk from {} to {}{minimal}:\n{message}\n{story}", shrunk.before, shrunk.after))
}

/// What failed, in one line.
pub(crate) fn headline(run: &RunReport) -> String {
    let place = format!("{}, seed {}", run.workload, run.seed);
    match &run.verdict {
        Verdict::Passed => format!("PASSED {place}"),
        Verdict::Violated { judge, .. } => format!("FAILED {place}: {judge}"),
        Verdict::Stuck { .. } => format!("STUCK {place}: operations are still pending"),
        Verdict::Harness { judge, .. } if judge == LOST => format!("CLUSTER LOST {place}"),
        Verdict::Harness { judge, .. } => {
            format!("HARNESS FAULT {place}: {judge} (shaketable is at fault here, not the layer)")
        }
    }
}

/// The width available for values after the names of facts.
const WIDTH: usize = COLUMNS - 16;

fn facts(run: &RunReport, commit: &str, details: Details) -> String {
    let mut rows = vec![("commit", commit.to_owned()), ("faults", faults(&run.faults, &run.without))];
    if !run.scale.is_usual() {
        rows.push(("scale", run.scale.to_string()));
    }
    if let Some(bug) = &run.bug {
        rows.push(("planted bug", bug.clone()));
    }
    if let Some(repro) = &run.repro {
        rows.push(("repro file", repro.clone()));
    }
    if let Some(hash) = &run.event_hash {
        rows.push(("event hash", format!("{hash} over {} events", count(run.events))));
    }
    if details == Details::All || matches!(run.verdict, Verdict::Passed) {
        rows.extend(circumstances(run));
    }
    if details == Details::All {
        rows.push(("drawn", run.configuration.clone()));
    }

    let mut out = String::new();
    for (name, text) in rows {
        let mut name = name;
        for line in text.lines().flat_map(|line| lines(line, WIDTH)) {
            let _ = writeln!(out, "{}", format!("  {name:<13} {line}").trim_end());
            name = "";
        }
    }
    out
}

/// What happened in a run, and which faults struck.
fn circumstances(run: &RunReport) -> Vec<(&'static str, String)> {
    let happened: Vec<String> = run
        .counters
        .named()
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{name} {}", count(n)))
        .collect();
    let struck: Vec<String> =
        run.faults_delivered.iter().map(|(family, n)| format!("{family} {}", count(*n))).collect();
    let mut rows = Vec::new();
    rows.extend(run.virtual_ns.map(|ns| ("virtual time", format!("{} s", seconds(ns)))));
    rows.push(("happened", listed(happened)));
    // What a real cluster did besides is not known.
    if run.virtual_ns.is_some() || !struck.is_empty() {
        rows.push(("struck", listed(struck)));
    }
    rows
}

fn listed(items: Vec<String>) -> String {
    if items.is_empty() { "nothing".to_owned() } else { wrap(&items, WIDTH) }
}

/// Items separated by commas, in lines of at most `width` characters where the items allow it.
pub(super) fn wrap(items: &[String], width: usize) -> String {
    // A line breaks after a comma, not inside of an item.
    const HELD: char = '\u{a0}';
    let items: Vec<String> = items.iter().map(|item| item.replace(' ', &HELD.to_string())).collect();
    lines(&items.join(", "), width).join("\n").replace(HELD, " ")
}
