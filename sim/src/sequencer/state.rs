//! The next commit version, and the highest version known to be committed.

use crate::{
    proto::Version,
    rt::{Nanos, SECOND},
};

/// The maximum by which FoundationDB lets a version exceed its predecessor.
const LARGEST_STEP: Version = 5_000_000;

/// The sequencer's counters.
#[derive(Debug)]
pub struct Versions {
    last: Version,
    /// When `last` was assigned; `None` before the generation's first version.
    at: Option<Nanos>,
    jump: Version,
    per_second: Version,
    committed: Option<Version>,
}

impl Versions {
    /// Versions after `recovery_version`: the first is `jump` higher.
    pub fn new(recovery_version: Version, jump: Version, per_second: Version) -> Versions {
        Versions { last: recovery_version, at: None, jump: jump.max(1), per_second, committed: None }
    }

    /// The previous version, and the next one at virtual time `now`.
    pub fn next(&mut self, now: Nanos) -> (Version, Version) {
        let step = match self.at {
            None => self.jump,
            Some(at) => {
                let elapsed = u128::from(now.saturating_sub(at)) * self.per_second.unsigned_abs() as u128;
                (elapsed / u128::from(SECOND)).clamp(1, LARGEST_STEP as u128) as Version
            }
        };
        let previous = self.last;
        self.last += step;
        self.at = Some(now);
        (previous, self.last)
    }

    /// Records that a version is durable on every log.
    pub fn committed(&mut self, version: Version) {
        self.committed = self.committed.max(Some(version));
    }

    /// The highest committed version, `None` before this generation's first.
    pub fn live(&self) -> Option<Version> {
        self.committed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_form_a_chain_and_follow_time() {
        let mut versions = Versions::new(500, 1_000, 1_000_000);
        assert_eq!(versions.next(7 * SECOND), (500, 1_500), "the first jumps");
        assert_eq!(versions.next(7 * SECOND), (1_500, 1_501), "each is new");
        assert_eq!(versions.next(8 * SECOND), (1_501, 1_001_501), "a million a second");
        assert_eq!(versions.next(100 * SECOND), (1_001_501, 6_001_501), "idle time does not run away");
    }

    #[test]
    fn the_committed_version_never_goes_back() {
        let mut versions = Versions::new(0, 1, 1);
        assert_eq!(versions.live(), None);
        versions.committed(9);
        versions.committed(4);
        assert_eq!(versions.live(), Some(9));
    }
}
