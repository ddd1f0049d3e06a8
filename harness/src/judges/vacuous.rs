//! Not vacuous: a sweep that never met a conflict, an unknown result or an audit has proved
//! nothing.

use crate::{plan::Demands, runner::Counters};
use shaketable_sim::faults::{Family, Profile};

/// The names of the counters that a sweep over `seeds` seeds needed and that are zero.
///
/// A handful of seeds may well draw no unknown result; only what a sweep of that size cannot miss
/// is asked of it, and nothing of what the demands leave out. A real cluster, for which there are no demands,
/// may miss anything.
pub fn judge(counters: &Counters, demands: Option<&Demands>, seeds: u64) -> Vec<&'static str> {
    let profile = demands.map(|demands| demands.profile);
    let strikes = |family| demands.is_some_and(|demands| !demands.without.contains(&family));
    let mut needed = vec![("commits", counters.committed), ("audits", counters.audits)];
    if seeds >= 10 && profile.is_some() {
        needed.push(("conflicts", counters.conflicts));
    }
    if seeds >= 20 && profile.is_some_and(|profile| profile != Profile::Calm) {
        needed.push(("retries", counters.retries));
        if Family::ALL.iter().any(|family| strikes(*family)) {
            needed.push(("faults", counters.faults.values().sum()));
        }
        if strikes(Family::DroppedOperation) {
            let dropped = counters.faults.get(&Family::DroppedOperation).copied().unwrap_or(0);
            needed.push(("dropped operations", dropped));
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
    fn an_empty_sweep_is_vacuous_and_a_small_one_is_not_asked_for_rarities() {
        let demands = |profile| Demands { profile, ..Demands::default() };
        let judge = |counters: &Counters, profile, seeds| judge(counters, Some(&demands(profile)), seeds);
        let mut counters = Counters::default();
        assert_eq!(judge(&counters, Profile::Calm, 1), ["commits", "audits"]);
        assert_eq!(super::judge(&counters, None, 100), ["commits", "audits"]);
        counters.committed = 1;
        counters.audits = 1;
        assert!(judge(&counters, Profile::Standard, 5).is_empty());
        assert!(super::judge(&counters, None, 100).is_empty());
        assert_eq!(judge(&counters, Profile::Calm, 100), ["conflicts"]);
        assert_eq!(judge(&counters, Profile::Standard, 100).len(), 6);
    }

    #[test]
    fn what_is_left_out_is_not_missed() {
        let counters = Counters { committed: 1, audits: 1, conflicts: 1, retries: 1, ..Counters::default() };
        let missed = |without: &[Family]| {
            let demands = Demands { without: without.to_vec(), ..Demands::default() };
            judge(&counters, Some(&demands), 100)
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
