//! `shaketable list`: workloads, fault families and planted bugs, with the names that the command accepts.

use super::{
    Refusal,
    choose::{self, CLUSTER},
    output, program, refuse,
};
use crate::search::entry::Entry;
use clap::{Args, ValueEnum};
use shaketable_reports::{Conclusion, text};
use shaketable_sim::{config::ClusterBug, faults};

/// The things that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Listing {
    Workloads,
    Faults,
    Bugs,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ListArguments {
    /// What to list [default: everything]
    pub what: Option<Listing>,
    /// The workloads with the planted bugs; `cluster` for those of the simulated cluster [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
}

/// Prints the selected lists.
pub(super) fn list(arguments: &ListArguments) -> Result<Conclusion, Refusal> {
    let entries = choose::workloads(&[])?;
    if !arguments.workloads.is_empty() && arguments.what != Some(Listing::Bugs) {
        refuse!(
            "only planted bugs are listed by workload: `{} list bugs {}`",
            program().name,
            arguments.workloads.join(" ")
        );
    }
    let wanted = choose::places(&arguments.workloads)?;
    output::print(&match arguments.what {
        Some(Listing::Workloads) => workloads(&entries),
        Some(Listing::Faults) => faults(),
        Some(Listing::Bugs) => bugs(&entries, wanted),
        None => [workloads(&entries), faults(), bugs(&entries, wanted)].join("\n"),
    })?;
    Ok(Conclusion::Passed)
}

fn workloads(entries: &[Box<dyn Entry>]) -> String {
    let mut out = String::from("workloads\n");
    for entry in entries {
        out += &item("  ", entry.name(), entry.about());
    }
    out
}

/// A name, with its description on the lines below.
fn item(indent: &str, name: &str, about: &str) -> String {
    let by = format!("{indent}  ");
    format!("{indent}{name}\n{}", text::fill(about, text::COLUMNS - by.len(), &by))
}

/// Each fault family with what it does, what FoundationDB promises under it, and what bounds it.
fn faults() -> String {
    let mut out = String::from("fault families\n");
    for family in faults::catalogue() {
        let prose =
            [("", family.family().about()), ("promise: ", family.promise()), ("budget: ", family.budget())];
        out += &format!("  {}\n", family.family().name());
        for (head, text) in prose {
            out += &text::fill(&format!("{head}{text}"), text::COLUMNS - 4, "    ");
        }
    }
    out
}

fn bugs(entries: &[Box<dyn Entry>], wanted: impl Fn(&str) -> bool) -> String {
    let mut out = String::from("planted bugs by workload\n");
    for entry in entries.iter().filter(|entry| wanted(entry.name())) {
        out += &format!("  {}\n", entry.name());
        for bug in entry.bugs() {
            let only = bug
                .only_simulated
                .map_or(String::new(), |takes| format!("; only a simulated cluster shows it: {takes}"));
            out += &item("    ", bug.name, &format!("{} ({}){only}", bug.about, bug.source));
        }
    }
    if wanted(CLUSTER) {
        out += &format!("  {CLUSTER}\n");
        let is_shown = |bug: &&ClusterBug| {
            bug.shows_everywhere() || entries.iter().any(|entry| entry.cluster_bugs().contains(bug))
        };
        for bug in ClusterBug::ALL.iter().filter(is_shown) {
            out += &item("    ", bug.name(), bug.about());
        }
    }
    out
}
