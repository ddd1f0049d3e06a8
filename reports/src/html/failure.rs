//! One run: for a failure, the claim that is broken, the time line with the witness, what was expected and
//! found, the story, the plan and the commands; first of the shrunk run, if it was shrunk, and then of the
//! whole one.

use super::{
    badge, command, data, diff, facts, lines,
    room::{Room, Share, cut_lines},
};
use crate::{
    history::{RunHistory, ShrunkRun, WitnessEntry},
    run::{ErrorReport, ProgramReport, RunReport, Verdict},
    text::{self, count, plural, seconds},
    when::{When, milliseconds},
};
use maud::{Markup, PreEscaped, html};

/// The most further findings that are shown.
const FINDINGS_SHOWN: usize = 5;

/// The most lines of a story that is not folded.
const STORY_SHOWN: usize = 250;

/// The page of one run.
pub fn main(run: &RunReport, commit: &str, room: &Room) -> Markup {
    html! {
        header { h1 { (state(run)) } }
        (body(run, commit, room))
    }
}

/// The verdict in a word, the workload and the seed, and the judge.
fn state(run: &RunReport) -> Markup {
    let (class, word) = match &run.verdict {
        Verdict::Passed => ("passed", "passed"),
        Verdict::Violated { .. } => ("failed", "failed"),
        Verdict::Stuck { .. } => ("failed", "stuck"),
        Verdict::Harness { .. } => ("failed", "harness fault"),
    };
    html! {
        (badge(class, word)) " " strong { (run.workload) ", seed " (run.seed) }
        @if let (Some(judge), false) = (run.verdict.judge(), matches!(run.verdict, Verdict::Stuck { .. })) {
            ": " span.judge { (judge) }
        }
    }
}

/// Everything known about a run, without its heading.
pub fn body(run: &RunReport, commit: &str, room: &Room) -> Markup {
    let share = room.of_next_run(run);
    let message = run.verdict.message();
    html! {
        @if run.program.is_some() { (about_program(run)) }
        @if let Some(shrunk) = &run.shrunk {
            (of_shrunk(shrunk, run, room, &share))
            @if run.history.is_some() || run.plan.is_some() || message != Some(shrunk.message.as_str()) {
            details.whole {
                summary { "The whole run: " (shrunk.before) }
                @if let Some(message) = message { (claim(message, room)) }
                @if let Some(history) = &run.history { (history_of(history, None, &share)) }
                @if let Some(plan) = &run.plan { (plan_of(plan, "The plan of the whole run", &share)) }
            }
            }
        } @else {
            @if let Some(message) = message { (claim(message, room)) }
            @if let Some(history) = &run.history {
                @if let Some(program) = &run.program {
                    (suspects(program, &share))
                    (unknown_commits(history, &share))
                }
                (history_of(history, None, &share))
            }
            @if let Some(plan) = &run.plan { (plan_of(plan, "The plan", &share)) }
        }
        @if let Some(program) = &run.program { (errors(program)) }
        @if let (Some(_), Some(history)) = (&run.program, &run.history) { (transcript(history, &share)) }
        (commands(run))
        (others(run, room))
        details.about open[run.history.is_none() && run.shrunk.is_none()] {
            summary { "About the run" }
            (about(run, commit, room))
        }
    }
}

/// What a run of a program is, for who does not know this project.
fn about_program(run: &RunReport) -> Markup {
    html! {
        p.note {
            "The program ran on a simulated FoundationDB cluster, in place of a real one. Machines of such a cluster die, "
            "restart and lose messages, and it gives the errors that FoundationDB's client may give ("
            (run.faults) " faults). The seed repeats all of that. Below are what the program printed, its transactions with what "
            "they read and wrote, and the errors that it was given. Each database that the program opened is a client."
        }
    }
}

/// What FoundationDB does not refuse.
fn suspects(program: &ProgramReport, share: &Share<'_>) -> Markup {
    let length = program.suspects.iter().flatten().map(String::len).sum();
    html! {
        @if !program.suspects.is_empty() && share.take(length) {
            section.chains {
                h3 { "Where to look first" }
                p.note {
                    "FoundationDB refuses a commit if something has changed that the transaction itself has read, and not at "
                    "snapshot. It refuses none of what follows, which a correct program rarely does. T1 is attempt 1 of the story."
                }
                ol { @for [what, why] in &program.suspects { li { (what) div { (why) } } } }
            }
        }
    }
}

/// What followed from commits of which the program was told otherwise.
fn unknown_commits(history: &RunHistory, share: &Share<'_>) -> Markup {
    let chains = text::chains(history);
    let length = chains.iter().flatten().map(String::len).sum();
    html! {
        @if !chains.is_empty() && share.take(length) {
            section.chains {
                h3 { "Commits that took effect although the program was not told so, and what met them" }
                p.note { "T1 is attempt 1 of the story. In brackets is who had written what was read." }
                @for chain in &chains {
                    ol { @for step in chain { li { (step) } } }
                    @if chain.len() == 1 { p.note { "No later transaction met what it wrote." } }
                }
            }
        }
    }
}

/// The errors that a program was given, and why.
fn errors(program: &ProgramReport) -> Markup {
    html! {
        @if !program.errors.is_empty() {
            section.errors {
                h3 { "The errors that the program was given, and why FoundationDB gives them" }
                p.note { "All of them are answers that a real cluster may give." }
                dl {
                    @for error in &program.errors {
                        dt { (plural(error.times, "time", "times")) " " code { (error.error) } }
                        dd {
                            (error.meaning) " "
                            @if let Some(injected) = injected(error) { (injected) " " }
                            @if !error.link.is_empty() { a href=(error.link) { "FoundationDB's documentation" } }
                        }
                    }
                }
            }
        }
    }
}

/// How often the simulation gave an error without another cause; `None` if it never does.
fn injected(error: &ErrorReport) -> Option<String> {
    let faults = error.injected.as_ref()?;
    if faults.is_empty() {
        return Some("The simulation injected none: each has a cause of its own.".to_owned());
    }
    let each = faults.iter().map(|(fault, times)| format!("{fault} {}", count(*times)));
    let all = plural(faults.values().sum(), "time", "times");
    Some(format!(
        "The simulation injected it {all}, without another cause ({}).",
        each.collect::<Vec<_>>().join(", ")
    ))
}

/// Everything that happened, by time.
fn transcript(history: &RunHistory, share: &Share<'_>) -> Markup {
    let told = text::transcript(history);
    let shown = cut_lines(&told, share.left() / 2);
    share.take(shown.len());
    html! {
        details.story {
            summary { "Every transaction, by time" }
            pre { (shown) }
            @if shown.len() < told.len() {
                p.left-out {
                    "Left out of this page for its size: "
                    (plural(told[shown.len()..].lines().count() as u64, "line", "lines")) "."
                }
            }
        }
    }
}

/// What remained of the run.
fn of_shrunk(shrunk: &ShrunkRun, run: &RunReport, room: &Room, share: &Share<'_>) -> Markup {
    let end = if shrunk.is_minimal { "nothing more can be taken away" } else { "the search was ended" };
    html! {
        (claim(&shrunk.message, room))
        @if !shrunk.left_out.is_empty() { p.note { (text::run::left_out(&shrunk.left_out)) "." } }
        p.note {
            "Shrunk from " (shrunk.before) " to " (shrunk.after) " in " (plural(shrunk.replays, "run", "runs")) "; " (end)
            ". Event hash " code { (shrunk.event_hash) } "."
        }
        (history_of(&shrunk.history, shrunk.when.as_ref(), share))
        (plan_of(&shrunk.plan, if run.plan.is_some() { "The shrunk plan" } else { "The plan" }, share))
    }
}

/// What a judge found.
fn claim(message: &str, room: &Room) -> Markup {
    html! { div.claim tabindex="0" { (lines(message, room.characters)) } }
}

/// A history: the time line with the witness, when its failure became certain, what differs, and the story.
fn history_of(history: &RunHistory, when: Option<&When>, share: &Share<'_>) -> Markup {
    // The story has a part of the room, so that a time line cannot displace it.
    let told = if share.left() > 0 { text::story(history) } else { String::new() };
    let story = cut_lines(&told, share.left() / 4);
    share.take(story.len());
    html! {
        (time_line(history, when, share))
        @if let Some(when) = when { (certainty(when)) }
        @if !history.is_program { (witness(&history.witness)) }
        @if !story.is_empty() {
            details.story open[told.lines().count() <= STORY_SHOWN] {
                summary { "The story" }
                pre { (story) }
            }
        }
        @if share.left() == 0 {
            p.left-out { "Left out of this page for its size: the story." }
        } @else if story.len() < told.len() {
            p.left-out {
                "Left out of this page for its size: "
                (plural(told[story.len()..].lines().count() as u64, "line", "lines")) " of the story."
            }
        }
    }
}

/// The time line. The scripts of the page draw it.
fn time_line(history: &RunHistory, when: Option<&When>, share: &Share<'_>) -> Markup {
    let Some(data) = data::embed(history, when, share) else {
        return html! {
            p.left-out {
                "Left out of this page for its size: the time line of "
                (plural(history.transactions.len() as u64, "transaction", "transactions")) "."
            }
        };
    };
    html! {
        div.timeline {
            script type="application/json" { (PreEscaped(data.json)) }
            noscript { p.note { "The time line needs JavaScript." } }
        }
        @if !data.left_out.is_empty() {
            p.left-out { "Left out of this page for its size: " (data.left_out) ". The JSON report has them." }
        }
    }
}

/// When the failure became certain, in words and numbers. The time line has the numbers as a line.
fn certainty(when: &When) -> Markup {
    let runs = plural(when.runs, "run", "runs");
    html! {
        section.when {
            h3 { "When it became certain" }
            @for sentence in when.sentences() { p { (sentence) } }
            details {
                summary { "How many of " (runs) " fail with other chance after each moment" }
                div.scrolls {
                    table {
                        thead { tr { th scope="col" { "ms" } th scope="col" { "fail" } th.what scope="col" { "what happens at it" } } }
                        tbody {
                            @for moment in &when.moments {
                                tr {
                                    td { (milliseconds(moment.at)) }
                                    td { (count(moment.failed)) }
                                    td.what { (moment.what) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The witness in words. Scripts make links of the numbers of transactions.
fn witness(witness: &WitnessEntry) -> Markup {
    if witness.is_empty() {
        return html! {};
    }
    let mut rows = Vec::new();
    let operation = |(client, index): &(u16, u32)| format!("{index} of client {client}");
    rows.push(("operations", listed(witness.operations.iter().map(operation))));
    rows.push(("transactions", listed(witness.transactions.iter().map(|id| format!("T{id}")))));
    rows.push(("keys", listed(witness.keys.iter().cloned())));
    html! {
        section.witness-text {
            h3 { "What contradicts" }
            (facts(&rows))
            (diff::sides(witness.expected.as_deref(), witness.found.as_deref()))
        }
    }
}

/// Items with commas between them; many are counted.
fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    const MOST: usize = 12;
    let more = items.len().saturating_sub(MOST);
    let mut listed: Vec<String> = items.take(MOST).collect();
    if more > 0 {
        listed.push(format!("{} more", count(more as u64)));
    }
    listed.join(", ")
}

fn plan_of(plan: &serde_json::Value, title: &str, share: &Share<'_>) -> Markup {
    let json = serde_json::to_string_pretty(plan).unwrap_or_default();
    if !share.take(json.len()) {
        return html! {
            p.left-out {
                "Left out of this page for its size: " (title.to_lowercase()) ", " (count(json.len() as u64)) " bytes."
            }
        };
    }
    html! {
        details.plan {
            summary { (title) }
            button.copy type="button" { "Copy" }
            pre { (json) }
        }
    }
}

/// The commands that repeat the run, and that shrink it.
fn commands(run: &RunReport) -> Markup {
    html! {
        section.commands {
            (command("replay", &run.replay))
            @if let Some(line) = run.shrink_line() { (command("shrink", &line)) }
        }
    }
}

/// Findings in addition to the one that decided.
fn others(run: &RunReport, room: &Room) -> Markup {
    let more = run.other_findings.len().saturating_sub(FINDINGS_SHOWN);
    html! {
        @if !run.other_findings.is_empty() {
            details {
                summary { (plural(run.other_findings.len() as u64, "further finding", "further findings")) }
                @for other in run.other_findings.iter().take(FINDINGS_SHOWN) {
                    h4 { (other.judge) }
                    (lines(&other.message, room.characters))
                }
                @if more > 0 { p.left-out { "Left out of this page: " (count(more as u64)) " more. The JSON report has them." } }
            }
        }
    }
}

/// The facts about a run.
fn about(run: &RunReport, commit: &str, room: &Room) -> Markup {
    let named = |numbers: Vec<(String, u64)>| {
        let seen = numbers.into_iter().filter(|(_, n)| *n > 0);
        seen.map(|(name, n)| format!("{name} {}", count(n))).collect::<Vec<_>>().join(", ")
    };
    let over_events = |hash: &String| format!("{hash} over {}", plural(run.events, "event", "events"));
    let rows = [
        ("commit", commit.to_owned()),
        ("faults", text::faults(&run.faults, &run.without)),
        ("scale", if run.scale.is_usual() { String::new() } else { run.scale.to_string() }),
        ("planted bug", run.bug.clone().unwrap_or_default()),
        ("repro file", run.repro.clone().unwrap_or_default()),
        ("event hash", run.event_hash.as_ref().map(over_events).unwrap_or_default()),
        ("virtual time", run.virtual_ns.map(|ns| format!("{} s", seconds(ns))).unwrap_or_default()),
        ("happened", named(run.counters.named().into_iter().map(|(name, n)| (name.to_owned(), n)).collect())),
        ("struck", named(run.faults_delivered.iter().map(|(name, n)| (name.clone(), *n)).collect())),
    ];
    html! {
        (facts(&rows))
        @if !run.configuration.is_empty() {
            h4 { "Drawn from the seed" }
            (lines(&run.configuration, room.characters))
        }
    }
}

/// A failure of a sweep, folded: its verdict and its claim in the summary.
pub fn folded(run: &RunReport, commit: &str, room: &Room, is_open: bool) -> Markup {
    html! {
        details.failure open[is_open] {
            summary {
                (state(run))
                span.first-line { (first_line(run)) }
            }
            (body(run, commit, room))
        }
    }
}

/// The first line of what the judge found.
fn first_line(run: &RunReport) -> String {
    let line = run.verdict.message().and_then(|message| message.lines().next()).unwrap_or_default();
    crate::text::shortened(line, 200)
}
