//! `shaketable list`: workloads, fault families and planted bugs, by the names that the command
//! takes.

use super::{
    Refusal,
    args::{ListArguments, Listing},
    choose::{self, CLUSTER},
    output, refuse,
};
use shaketable_reports::{
    Outcome,
    text::{self, Align, Table},
};
use shaketable_sim::{config::Sabotage, faults};
use shaketable_workloads::catalogue::Entry;

/// Prints what was asked for.
pub fn list(arguments: &ListArguments) -> Result<Outcome, Refusal> {
    let entries = choose::workloads(&[])?;
    if !arguments.workloads.is_empty() && arguments.what != Some(Listing::Bugs) {
        refuse!("only bugs are listed by workload: `shaketable list bugs {}`", arguments.workloads.join(" "));
    }
    let wanted = choose::places(&arguments.workloads)?;
    output::print(&match arguments.what {
        Some(Listing::Workloads) => workloads(&entries),
        Some(Listing::Faults) => faults(),
        Some(Listing::Bugs) => bugs(&entries, wanted),
        None => [workloads(&entries), faults(), bugs(&entries, wanted)].join("\n"),
    })?;
    Ok(Outcome::Passed)
}

fn workloads(entries: &[Box<dyn Entry>]) -> String {
    let mut table = Table::new(&[("workload", Align::Left), ("what it shakes", Align::Left)]);
    for entry in entries {
        table.row(vec![entry.name().to_owned(), entry.about().to_owned()]);
    }
    table.render()
}

/// Each family with what it does, what FoundationDB promises under it, and what bounds it.
fn faults() -> String {
    let mut out = String::from("fault families\n");
    for family in faults::catalogue() {
        let prose =
            [("", family.family().about()), ("promise: ", family.promise()), ("budget: ", family.budget())];
        out += &format!("  {}\n", family.family().name());
        for (head, text) in prose {
            out += &text::fill(&format!("{head}{text}"), 96, "    ");
        }
    }
    out
}

fn bugs(entries: &[Box<dyn Entry>], wanted: impl Fn(&str) -> bool) -> String {
    let mut table =
        Table::new(&[("planted in", Align::Left), ("bug", Align::Left), ("what is wrong", Align::Left)]);
    for entry in entries.iter().filter(|entry| wanted(entry.name())) {
        for bug in entry.bugs() {
            let about = format!("{} ({})", bug.about, bug.source);
            table.row(vec![entry.name().to_owned(), bug.name.to_owned(), about]);
        }
    }
    for sabotage in Sabotage::ALL.iter().filter(|_| wanted(CLUSTER)) {
        table.row(vec![CLUSTER.to_owned(), sabotage.name().to_owned(), sabotage.about().to_owned()]);
    }
    table.render()
}
