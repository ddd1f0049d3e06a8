//! Not vacuous: a sweep without a conflict, an unknown result or an audit proves nothing.

use crate::plan::Demands;
use shaketable_reports::Counters;
use shaketable_sim::faults::{Family, Profile};

/// The names of the counters that a sweep of `seeds` seeds requires and that are zero.
///
/// A few seeds may not draw an unknown result, so a sweep is only required to reach what a sweep of its size
/// cannot miss, and nothing that the demands switch off. On a real cluster, without demands, only commits and
/// audits are required. `delivered` returns how often a family struck.
pub fn judge(
    counters: &Counters,
    delivered: impl Fn(Family) -> u64,
    demands: Option<&Demands>,
    seeds: u64,
) -> Vec<&'static str> {
    let profile = demands.map(|demands| demands.profile);
    let strikes = |family| demands.is_some_and(|demands| !demands.without.contains(&family));
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
    needed.into_iter().filter(|(_, n)| *n == 0).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_sweep_is_vacuous_and_a_small_one_need_not_reach_rare_events() {
        let demands = |profile| Demands { profile, ..Demands::default() };
        let judge =
            |counters: &Counters, profile, seeds| judge(counters, |_| 0, Some(&demands(profile)), seeds);
        let mut counters = Counters::default();
        assert_eq!(judge(&counters, Profile::Calm, 1), ["commits", "audits"]);
        assert_eq!(super::judge(&counters, |_| 0, None, 100), ["commits", "audits"]);
        counters.committed = 1;
        counters.audits = 1;
        assert!(judge(&counters, Profile::Standard, 5).is_empty());
        assert!(super::judge(&counters, |_| 0, None, 100).is_empty());
        assert_eq!(judge(&counters, Profile::Calm, 100), ["conflicts"]);
        assert_eq!(judge(&counters, Profile::Standard, 100).len(), 6);
    }

    #[test]
    fn families_that_are_switched_off_are_not_required() {
        let counters = Counters { committed: 1, audits: 1, conflicts: 1, retries: 1, ..Counters::default() };
        let missed = |without: &[Family]| {
            let demands = Demands { without: without.to_vec(), ..Demands::default() };
            judge(&counters, |_| 0, Some(&demands), 100)
        };
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
}
