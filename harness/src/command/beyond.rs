//! Planted bugs that a real cluster cannot show, because it takes a fault or a judge that only the simulated
//! cluster has.

use super::{
    backend::Backend,
    bugs::{Planted, try_seeds},
    caught,
    interrupt::Interrupt,
};
use crate::{run::plan::Demands, run::real, search::entry::Entry};
use shaketable_sim::faults::Family;
use std::ops::Range;

/// The seeds that are simulated for a bug that a real cluster has not shown.
const SEEDS: Range<u64> = 0..500;

/// What it takes to show a bug that only the simulated cluster has. `None` if a cluster without that shows it
/// as well, or if not even the simulated cluster shows it.
pub(super) fn takes(
    entries: &[Box<dyn Entry>],
    planted: &Planted,
    interrupt: &Interrupt,
    stop: &dyn Fn() -> bool,
) -> Option<String> {
    let caught = |without: Vec<Family>| {
        let demands = Demands { without, ..planted.demands.clone() };
        try_seeds(entries, &planted.with(demands), SEEDS, &Backend::Simulated, interrupt, stop).caught
    };
    let catch = caught(planted.demands.without.clone())?;
    if let Some(known) = planted.only_simulated {
        return Some(known.to_owned());
    }
    let only_here: Vec<Family> = Family::ALL.iter().copied().filter(|family| !family.is_real()).collect();
    let names: Vec<&str> = only_here.iter().map(|family| family.name()).collect();
    match caught(only_here) {
        Some(catch) => {
            let judged_here = real::NOT_JUDGED.iter().any(|kind| kind.name() == catch.judge);
            judged_here.then(|| format!("the judge {}", catch.judge))
        }
        None => {
            let mut needed = caught::shrunk(entries, &planted.demands, &catch, interrupt)?.families;
            needed.retain(|family| names.contains(&&family[..]));
            Some(match needed.is_empty() {
                true => "faults of the simulated cluster".to_owned(),
                false => needed.join(", "),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::fake::fake, describe::workload::Bug, judge::finding::Verdict};

    /// What the fake workload `ends` takes to show its first bug.
    fn taken(ends: fn(u64, &Demands) -> Verdict) -> Option<String> {
        let entries = vec![fake("one", ends)];
        let planted = Planted::of(0, entries[0].as_ref(), &entries[0].bugs()[0], &Demands::default());
        takes(&entries, &planted, &Interrupt::default(), &|| false)
    }

    #[test]
    fn a_bug_that_needs_faults_of_the_simulated_cluster_is_told_from_one_that_was_not_met() {
        // The runs of the fake workload deliver kills.
        assert_eq!(
            taken(|_, demands| match demands.without.contains(&Family::Kill) {
                true => Verdict::Passed,
                false => Verdict::Violated,
            }),
            Some("kill".to_owned())
        );
        assert_eq!(
            taken(|_, demands| match demands.without.contains(&Family::UnknownCommitted) {
                true => Verdict::Passed,
                false => Verdict::Violated,
            }),
            None
        );
        assert_eq!(taken(|_, _| Verdict::Passed), None);
    }

    #[test]
    fn a_bug_that_says_what_it_takes_must_be_shown_by_the_simulated_cluster_all_the_same() {
        let taken = |ends: fn(u64, &Demands) -> Verdict| {
            let entries = vec![fake("one", ends)];
            let bug = Bug { only_simulated: Some("clocks"), ..entries[0].bugs()[0] };
            let planted = Planted::of(0, entries[0].as_ref(), &bug, &Demands::default());
            takes(&entries, &planted, &Interrupt::default(), &|| false)
        };
        assert_eq!(taken(|_, _| Verdict::Violated), Some("clocks".to_owned()));
        assert_eq!(taken(|_, _| Verdict::Passed), None);
    }
}
