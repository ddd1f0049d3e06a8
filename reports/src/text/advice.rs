//! Advice as text: at most a screen for each workload, the most important entries first, and the guidelines
//! once at the end.

use super::{COLUMNS, count, figure, fill, plural, seconds};
use crate::advice::{AdviceEntry, AdviceReport, Severity, WorkloadAdvice};
use std::fmt::Write;

/// The most entries of a workload, and of a topic of a workload, that are shown.
const MOST: usize = 8;
const MOST_OF_A_TOPIC: usize = 3;

/// The guidelines in the order in which they are first met, with their sources.
#[derive(Default)]
struct Guidelines<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Guidelines<'a> {
    /// The number of an entry's guideline, from 1.
    fn number(&mut self, entry: &'a AdviceEntry) -> usize {
        let of = (entry.guideline.as_str(), entry.source.as_str());
        match self.0.iter().position(|known| *known == of) {
            Some(at) => at + 1,
            None => {
                self.0.push(of);
                self.0.len()
            }
        }
    }
}

/// The advice for each workload, and the guidelines.
pub fn advice(report: &AdviceReport, commit: &str) -> String {
    let mut out = String::new();
    let mut guidelines = Guidelines::default();
    for workload in &report.workloads {
        of_workload(workload, &mut guidelines, &mut out);
    }
    if !guidelines.0.is_empty() {
        out.push_str("Guidelines\n");
    }
    for (number, (text, source)) in guidelines.0.iter().enumerate() {
        hanging(&format!("[{}]", number + 1), 5, &format!("{}. {source}.", capital(text)), &mut out);
    }
    let seeds = &report.seeds;
    let end = format!(
        "Rates are a second of virtual time, and those of the clients of a workload: scale them to yours. {} faults, seeds \
         {}..{}, commit {commit}, {} CPU seconds.",
        capital(&report.faults),
        seeds.start,
        seeds.end,
        seconds(report.cost.cpu_ns)
    );
    out.push('\n');
    out.push_str(&fill(&end, COLUMNS, ""));
    out
}

fn of_workload<'a>(workload: &'a WorkloadAdvice, guidelines: &mut Guidelines<'a>, out: &mut String) {
    let bug = workload.bug.as_ref().map_or(String::new(), |bug| format!(" with {bug}"));
    let (fewest, most) = workload.clients;
    let clients = match fewest == most {
        true => plural(most, "client", "clients"),
        false => format!("{fewest} to {most} clients"),
    };
    let head = format!(
        "{}{bug}: {}, {clients}, {} operations/s, up to {} in a run",
        workload.workload,
        plural(workload.runs, "run", "runs"),
        figure(workload.rates.0),
        figure(workload.rates.1),
    );
    out.push_str(&fill(&head, COLUMNS, ""));
    if workload.failed > 0 {
        let _ = writeln!(out, "  A judge objects to {} of the runs.", count(workload.failed));
    }
    let shown = shown(workload);
    for entry in &shown {
        let text = format!("{} [{}]", entry.measured, guidelines.number(entry));
        hanging(&format!("  {}  {}", entry.severity.name(), entry.topic), 26, &text, out);
    }
    let hidden = workload.noted().count() - shown.len();
    if hidden > 0 {
        let _ = writeln!(out, "  {} more with --json.", count(hidden as u64));
    }
    out.push_str(&fine(workload, !shown.is_empty()));
    out.push('\n');
}

/// The entries that are shown, in their order: the first of each topic before the second of another one.
pub fn shown(workload: &WorkloadAdvice) -> Vec<&AdviceEntry> {
    let noted: Vec<&AdviceEntry> = workload.noted().collect();
    let rank = |at: usize| noted[..at].iter().filter(|other| other.topic == noted[at].topic).count();
    let mut chosen: Vec<usize> = (0..noted.len()).filter(|at| rank(*at) < MOST_OF_A_TOPIC).collect();
    chosen.sort_by_key(|at| (rank(*at), *at));
    chosen.truncate(MOST);
    chosen.sort_unstable();
    chosen.into_iter().map(|at| noted[at]).collect()
}

/// A line with the topics of which nothing is to be noted.
fn fine(workload: &WorkloadAdvice, some_are_noted: bool) -> String {
    let is_noted = |topic: &str| workload.noted().any(|entry| entry.topic == topic);
    let mut topics: Vec<&str> = Vec::new();
    for entry in workload.entries.iter().filter(|entry| entry.severity == Severity::Fine) {
        if !is_noted(&entry.topic) && !topics.contains(&entry.topic.as_str()) {
            topics.push(&entry.topic);
        }
    }
    match (topics.is_empty(), some_are_noted) {
        (true, true) => String::new(),
        (true, false) => "  Nothing was measured.\n".to_owned(),
        (false, true) => fill(&format!("Fine: {}.", topics.join(", ")), COLUMNS - 2, "  "),
        (false, false) => fill(&format!("All is fine: {}.", topics.join(", ")), COLUMNS - 2, "  "),
    }
}

/// A text with a capital at its beginning.
fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// A label in a column of this width, and text beside it.
fn hanging(label: &str, width: usize, text: &str, out: &mut String) {
    for (number, line) in fill(text, COLUMNS - width, "").lines().enumerate() {
        let label = if number == 0 { label } else { "" };
        let _ = writeln!(out, "{label:<width$}{line}");
    }
}
