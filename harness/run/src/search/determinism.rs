//! Checks that two runs of one seed are identical: the same events and the same final keyspace.

use crate::{run::plan::Demands, run::runner::RunResult, search::entry::Entry};
use shaketable_sim::{seed::Seed, trace::Event};

/// How many seeds of a sweep are run twice unless it says otherwise, the first ones: what one run leaves
/// behind for the next in a static shows in the second run of the first seed.
pub const USUALLY_TWICE: u64 = 2;

/// Whether two runs have the same events (by hash), findings and counters.
pub fn same(one: &RunResult, other: &RunResult) -> bool {
    (one.event_hash, one.events) == (other.event_hash, other.events)
        && one.findings == other.findings
        && one.counters == other.counters
        && one.faults == other.faults
}

/// Why two runs of a plan were not identical: the first event in which two further ones differ, which `run`
/// makes with their events.
pub(crate) fn explained(run: impl Fn() -> RunResult) -> String {
    let (one, other) = (run(), run());
    first_difference(&one.trace, &other.trace).unwrap_or_else(|| {
        "two further runs had the same events: something outside of the run decides, such as a static"
            .to_owned()
    })
}

/// Runs a seed twice. Returns `None` if both runs are identical, and otherwise the first difference.
pub fn check(entry: &dyn Entry, seed: Seed, demands: &Demands) -> Option<String> {
    let (one, other) = (entry.run(seed, demands, true), entry.run(seed, demands, true));
    if let Some(difference) = first_difference(&one.trace, &other.trace) {
        return Some(difference);
    }
    (!same(&one, &other)).then(|| "the same events, but different findings or counters".to_owned())
}

fn first_difference(one: &[Event], other: &[Event]) -> Option<String> {
    let at = one.iter().zip(other).position(|(a, b)| a != b);
    let at = at.or_else(|| (one.len() != other.len()).then(|| one.len().min(other.len())))?;
    let show = |events: &[Event]| events.get(at).map_or("the end of the run".to_owned(), |e| e.to_string());
    Some(format!("event {at} is `{}` in one run and `{}` in the other", show(one).trim(), show(other).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::{ids::NodeId, trace::Kind};

    #[test]
    fn the_first_difference_is_named() {
        let event = |a| Event { at: 0, node: NodeId(1), kind: Kind::Logged, a, b: 1 };
        assert_eq!(first_difference(&[event(1)], &[event(1)]), None);
        let difference =
            first_difference(&[event(1), event(2)], &[event(1), event(3)]).expect("a difference");
        assert!(difference.starts_with("event 1 is"), "{difference}");
        assert!(difference.contains("version 2") && difference.contains("version 3"), "{difference}");
        let difference = first_difference(&[event(1)], &[event(1), event(3)]).expect("a difference");
        assert!(difference.contains("the end of the run"), "{difference}");
    }
}
