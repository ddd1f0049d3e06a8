//! The page of a failing run, for who maintains the program: what it printed, what it asked and was answered,
//! and why FoundationDB may answer so.

use super::{
    Run, Shake, headline,
    history::of_program,
    not_whole,
    why::{injected, why},
};
use crate::command::choose;
use shaketable_reports::{
    Body, Counters, ErrorReport, ProgramReport, RunReport, Scale, Verdict, WitnessEntry,
};
use shaketable_session::{
    Host,
    report::{Report, TOLD, UnknownResult},
    stale::Stale,
};
use shaketable_sim::rt::MILLISECOND;
use std::collections::BTreeSet;

/// How much of the end of what the program printed is in the page, bytes.
const PRINTED: usize = 8_000;

/// What the report points at: the first commit of an unknown result that was run again, and the first
/// transaction that decided by what was no longer true.
fn witness(report: &Report) -> WitnessEntry {
    let again =
        report.unknown_results.iter().find_map(|result| Some([result.attempt, result.again.as_ref()?.0]));
    let again = again.into_iter().flatten().map(|id| id as u32);
    let stale = report.stale.first();
    let attempts = stale.into_iter().flat_map(Stale::attempts).map(|id| id.0);
    let transactions: BTreeSet<u32> = again.chain(attempts).collect();
    WitnessEntry {
        transactions: transactions.into_iter().collect(),
        keys: stale.map(|stale| stale.key().to_owned()).into_iter().collect(),
        ..WitnessEntry::default()
    }
}

/// What FoundationDB did not refuse in the first cluster, in pairs of sentences: what was done again after an
/// unknown result, and what was decided by what was no longer true.
fn suspects(report: &Report) -> Vec<[String; 2]> {
    let again =
        report.unknown_results.iter().filter_map(|UnknownResult { attempt, at, error, again, .. }| {
            let (next, writes) = again.as_ref()?;
            Some([
                format!("T{attempt} committed, and the program was told {error} at {} ms", at / MILLISECOND),
                format!("T{next} ran it again, and committed as well: {}", writes.join(", ")),
            ])
        });
    let stale = report.stale.iter().map(|stale| stale.told(|id| format!("T{}", id.0)));
    again.take(TOLD).chain(stale.take(TOLD)).collect()
}

/// The page's content; `None` if the run has no journal that can be performed again.
pub(super) fn body(shake: &Shake<'_>, seed: u64, run: &Run) -> Option<Body> {
    let performed = Host::perform(run.longest_journal()?, true).ok()??;
    let (report, Some(recording)) = performed.run? else { return None };
    // Those that leave a commit's result unknown first: they explain most.
    let mut errors: Vec<_> = recording.errors.iter().map(|(error, times)| (*error, *times)).collect();
    errors.sort_by_key(|(error, _)| !error.leaves_commit_unknown());
    let command: Vec<_> =
        shake.arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = command.join(" ");
    let ending = run.ending.to_string();
    let mut history = of_program(recording, &report.end, &command, &ending);
    history.witness = witness(&report);
    let all = String::from_utf8_lossy(&run.printed);
    let printed = &*all;
    let from = printed.ceil_char_boundary(printed.len().saturating_sub(PRINTED));
    let printed = printed[from..].trim_end();
    let headline = headline::of(&all).unwrap_or_else(|| headline::last(&all).to_owned());
    let clusters = match report.further.len() {
        0 => String::new(),
        further => format!("Of {} clusters, this page tells of the first.\n", further + 1),
    };
    let lack = not_whole(&performed.text).map(|line| format!("{line}\n")).unwrap_or_default();
    let message = format!("{headline}\n\n{clusters}{lack}The program {ending}, and had printed:\n{printed}");
    let unreliable = run.accused().or(run.unjudged().filter(|_| run.ending.is_success()));
    let verdict = match unreliable {
        Some(line) => Verdict::Harness { judge: "cluster".to_owned(), message: line.to_owned() },
        None => Verdict::Violated { judge: ending, message },
    };
    let errors = errors.into_iter().map(|(error, times)| {
        let (meaning, link) = why(error);
        let injected = injected(error, &report.end.faults);
        ErrorReport { error: error.to_string(), times, injected, meaning: meaning.to_owned(), link }
    });
    let unknown = report.unknown as u64;
    let committed = report.unknown_results.iter().filter(|result| result.is_committed).count() as u64;
    Some(Body::Replay(Box::new(RunReport {
        workload: command,
        seed,
        faults: choose::name_of(shake.faults).to_owned(),
        without: shake.without.iter().map(|family| family.name().to_owned()).collect(),
        scale: Scale::USUAL,
        bug: None,
        repro: None,
        verdict,
        other_findings: Vec::new(),
        event_hash: Some(format!("{:016x}", report.end.hash.0)),
        events: report.end.hash.1,
        virtual_ns: Some(report.end.virtual_time),
        counters: Counters {
            attempts: report.attempts as u64,
            committed: report.committed as u64,
            unknown_committed: committed,
            unknown_not_committed: unknown.saturating_sub(committed),
            faults: report.end.faults.values().sum(),
            ..Counters::default()
        },
        faults_delivered: report.end.faults.iter().map(|(f, n)| (f.name().to_owned(), *n)).collect(),
        configuration: String::new(),
        replay: shake.replay_line(seed, run),
        plan: None,
        shrunk: None,
        history: Some(Box::new(history)),
        program: Some(Box::new(ProgramReport { suspects: suspects(&report), errors: errors.collect() })),
    })))
}
