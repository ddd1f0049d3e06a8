//! Not vacuous: a sweep without a conflict, an unknown result or an audit proves nothing, and neither does
//! one in which no operation of a kind was done.

use shaketable_reports::{Counters, Outcomes};
use shaketable_sim::faults::{Family, Profile};

/// The number of operations of a kind of which one must be done. Of fewer all may be refused by chance.
const CALLS: u64 = 100;

/// The names of the counters that a sweep of `seeds` seeds requires and that are zero, and the kinds of
/// operations of which none was done, with how they ended.
///
/// A few seeds may not draw an unknown result, so a sweep is only required to reach what a sweep of its size
/// cannot miss, and nothing that is switched off: `demands` are the profile of its faults and the families
/// without which it ran. On a real cluster, without demands, only commits and audits are required.
/// `delivered` returns how often a family struck.
pub fn judge<'a>(
    counters: &Counters,
    outcomes: impl IntoIterator<Item = (&'a str, &'a Outcomes)>,
    delivered: impl Fn(Family) -> u64,
    demands: Option<(Profile, &[Family])>,
    seeds: u64,
) -> Vec<String> {
    let profile = demands.map(|(profile, _)| profile);
    let strikes = |family| demands.is_some_and(|(_, without)| !without.contains(&family));
    let mut needed = vec![("commits", counters.committed), ("audits", counters.audits)];
    if seeds >= 10 && profile.is_some() {
        needed.push(("conflicts", counters.conflicts));
    }
    if seeds >= 20 && profile.is_some_and(|profile| profile != Profile::Calm) {
        needed.push(("retries", counters.retries));
        if Family::ALL.iter().any(|family| strikes(*family)) {
            needed.push(("faults", counters.faults));
        }
        if strikes(Family::DroppedOperation) {
            needed.push(("dropped operations", delivered(Family::DroppedOperation)));
        }
        if strikes(Family::UnknownCommitted) {
            needed.push(("unknown results that committed", counters.unknown_committed));
        }
        if strikes(Family::UnknownNotCommitted) {
            needed.push(("unknown results that did not commit", counters.unknown_not_committed));
        }
    }
    let missed = needed.into_iter().filter(|(_, n)| *n == 0).map(|(name, _)| name.to_owned());
    let never_done = |of_kind: &Outcomes| of_kind.done == 0 && of_kind.all() >= CALLS && !of_kind.rare;
    let undone = outcomes.into_iter().filter(|(_, of_kind)| never_done(of_kind));
    let undone = undone.map(|(kind, of_kind)| format!("{kind} that was done ({})", of_kind.others()));
    missed.chain(undone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_sweep_is_vacuous_and_a_small_one_need_not_reach_rare_events() {
        let judge =
            |counters: &Counters, profile, seeds| judge(counters, [], |_| 0, Some((profile, &[])), seeds);
        let mut counters = Counters::default();
        assert_eq!(judge(&counters, Profile::Calm, 1), ["commits", "audits"]);
        assert_eq!(super::judge(&counters, [], |_| 0, None, 100), ["commits", "audits"]);
        counters.committed = 1;
        counters.audits = 1;
        assert!(judge(&counters, Profile::Standard, 5).is_empty());
        assert!(super::judge(&counters, [], |_| 0, None, 100).is_empty());
        assert_eq!(judge(&counters, Profile::Calm, 100), ["conflicts"]);
        assert_eq!(judge(&counters, Profile::Standard, 100).len(), 6);
    }

    #[test]
    fn families_that_are_switched_off_are_not_required() {
        let counters = Counters { committed: 1, audits: 1, conflicts: 1, retries: 1, ..Counters::default() };
        let missed =
            |without: &[Family]| judge(&counters, [], |_| 0, Some((Profile::Standard, without)), 100);
        let all = [
            "faults",
            "dropped operations",
            "unknown results that committed",
            "unknown results that did not commit",
        ];
        assert_eq!(missed(&[]), all);
        assert_eq!(missed(&[Family::UnknownCommitted]), [all[0], all[1], all[3]]);
        assert!(missed(Family::ALL).is_empty());
    }
    #[test]
    fn a_kind_of_operations_that_is_never_done_is_named() {
        let counters = Counters { committed: 1, audits: 1, ..Counters::default() };
        let judge = |of_kind: &Outcomes| super::judge(&counters, [("Pop", of_kind)], |_| 0, None, 100);
        let refused = Outcomes { refused: 1_200, unknown: 3, ..Outcomes::default() };
        assert_eq!(judge(&refused), ["Pop that was done (1,200 refused, 3 unknown)"]);
        assert!(judge(&Outcomes { done: 1, ..refused }).is_empty());
        assert!(judge(&Outcomes { rare: true, ..refused }).is_empty(), "the workload says so");
        assert!(judge(&Outcomes { refused: 99, ..Outcomes::default() }).is_empty(), "by chance");
        assert!(!judge(&Outcomes { failed: 100, ..Outcomes::default() }).is_empty());
    }
}
