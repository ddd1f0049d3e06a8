//! Not vacuous: a sweep that never met a conflict, an unknown result or an audit has proved
//! nothing.

use crate::runner::Counters;
use shaketable_sim::faults::{Family, Profile};

/// The names of the counters that a sweep over `seeds` seeds needed and that are zero.
///
/// A handful of seeds may well draw no unknown result; only what a sweep of that size cannot miss
/// is asked of it. A real cluster, which has no profile, may miss anything: when things happen there
/// is nobody's to say.
pub fn judge(counters: &Counters, profile: Option<Profile>, seeds: u64) -> Vec<&'static str> {
    let mut needed = vec![("commits", counters.committed), ("audits", counters.audits)];
    if seeds >= 10 && profile.is_some() {
        needed.push(("conflicts", counters.conflicts));
    }
    if seeds >= 20 && profile.is_some_and(|profile| profile != Profile::Calm) {
        needed.extend([
            ("faults", counters.faults.values().sum()),
            ("dropped operations", counters.faults.get(&Family::DroppedOperation).copied().unwrap_or(0)),
            ("retries", counters.retries),
            ("unknown results that committed", counters.unknown_committed),
            ("unknown results that did not commit", counters.unknown_not_committed),
        ]);
    }
    needed.into_iter().filter(|(_, n)| *n == 0).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_sweep_is_vacuous_and_a_small_one_is_not_asked_for_rarities() {
        let mut counters = Counters::default();
        assert_eq!(judge(&counters, Some(Profile::Calm), 1), ["commits", "audits"]);
        assert_eq!(judge(&counters, None, 100), ["commits", "audits"]);
        counters.committed = 1;
        counters.audits = 1;
        assert!(judge(&counters, Some(Profile::Standard), 5).is_empty());
        assert!(judge(&counters, None, 100).is_empty());
        assert_eq!(judge(&counters, Some(Profile::Calm), 100), ["conflicts"]);
        assert_eq!(judge(&counters, Some(Profile::Standard), 100).len(), 6);
    }
}
