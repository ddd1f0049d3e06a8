//! A commit is sent when its read version is about to leave the window, or has just left it.
//!
//! A long run contains no more of them than a short one.

use super::{Dosage, Family, FaultFamily};

/// The family.
pub struct WindowEdge;

impl FaultFamily for WindowEdge {
    fn family(&self) -> Family {
        Family::WindowEdge
    }
    fn promise(&self) -> &'static str {
        "A commit may be sent at any time: it is resolved like any other until its read version has left the \
         window, and fails with transaction_too_old after that."
    }
    fn budget(&self) -> &'static str {
        "At most eight commits in a run, none started after the act."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Rate(0.01)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{faults::Faults, faults::state::tests::rated, ids::ClientId, seed::Seed};

    #[test]
    fn commits_at_the_edge_of_the_window_are_limited_per_run() {
        let faults = Faults::new(Seed(1), &rated(Family::WindowEdge, 0.5));
        faults.switch(true);
        let struck = (0..1_000).filter(|_| faults.occurs(ClientId(0), Family::WindowEdge).is_some()).count();
        assert_eq!(struck as u64, Family::WindowEdge.max_occurrences());
    }
}
