//! Waits: an answer that was waited for comes soon after it was possible, and "nothing" only once patience
//! has run out.
//!
//! This is no judge of its own: what an operation waits for is the workload's to know. A workload describes
//! each [`Wait`] while it steps its model, and gives it to [`Step::waited`](crate::workload::Step::waited).

use super::Timeline;
use shaketable_sim::{
    history::History,
    proto::Version,
    rt::{Nanos, SECOND},
};

/// How late an answer may be on a cluster without faults. It takes a watch, a read version and a read, all
/// of which take milliseconds, as many times as there are pages to be read.
const PROMPT: Nanos = SECOND;

/// How much later after faults: a watch that is to fire late was drawn while they were on.
const LATE: Nanos = 5 * SECOND;

/// What an operation waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// For how long it was to wait before it answers that nothing came, nanoseconds.
    pub patience: Nanos,
    /// The version whose commit made the answer possible; `None` when the answer is that nothing came.
    pub found: Option<Version>,
}

/// What was known when, over a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    timeline: Timeline,
    /// From when until when faults were on.
    faulty: Option<(Nanos, Nanos)>,
}

impl Timing {
    /// The timing of a run.
    pub(crate) fn of(history: &History, timeline: Timeline) -> Timing {
        Timing { timeline, faulty: history.faulty }
    }

    /// The highest version that was known to be committed at this time.
    pub(crate) fn known_at(&self, now: Nanos) -> Version {
        self.timeline.decided_before(now).map_or(0, |decided| decided.version)
    }

    /// When an answer must be there that is possible since `possible`.
    fn bound(&self, possible: Nanos) -> Nanos {
        let prompt = possible.saturating_add(PROMPT);
        match self.faulty {
            Some((from, until)) if prompt > from => prompt.max(until.saturating_add(LATE + PROMPT)),
            _ => prompt,
        }
    }

    /// Judges a wait of an operation that was called and has returned at these times, and whose answer is
    /// from a look at version `look`, if it only looked.
    pub(crate) fn judge(
        &self,
        called: Nanos,
        returned: Nanos,
        look: Option<Version>,
        wait: Wait,
    ) -> Result<(), String> {
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        let Some(found) = wait.found else {
            let over = called.saturating_add(wait.patience);
            if returned < over {
                return Err(format!(
                    "answered after {:.3} s that nothing came, and was to wait for {:.3} s",
                    seconds(returned.saturating_sub(called)),
                    seconds(wait.patience)
                ));
            }
            let known = self.known_at(over);
            return match look {
                Some(look) if look < known => Err(format!(
                    "answered that nothing came, from a look at version {look}; version {known} was known to be \
                     committed before the patience of {:.3} s had run out",
                    seconds(wait.patience)
                )),
                _ => Ok(()),
            };
        };
        let Some(known) = self.timeline.decided_since(found) else { return Ok(()) };
        let possible = known.max(called);
        if returned > self.bound(possible) {
            return Err(format!(
                "answered {:.3} s after what it waited for, which committed at version {found}",
                seconds(returned - possible)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judges::Decided;

    /// Version 10 is known after one second, version 20 after two.
    fn timing(faulty: Option<(Nanos, Nanos)>) -> Timing {
        let known = [(SECOND, 10), (2 * SECOND, 20)];
        let known = known.map(|(at, version)| (at, Decided { version, by: None }));
        Timing { timeline: Timeline::decided(known.into_iter()), faulty }
    }

    fn found(version: Version) -> Wait {
        Wait { patience: 3 * SECOND, found: Some(version) }
    }

    const NOTHING: Wait = Wait { patience: 3 * SECOND, found: None };

    #[test]
    fn an_answer_comes_soon_after_it_was_possible() {
        let calm = timing(None);
        // Since the commit was known, also by a later one, or since the call.
        for (called, version, possible) in [(0, 10, 1), (0, 11, 2), (3, 5, 3)] {
            let bound = possible * SECOND + PROMPT;
            let judge = |returned| calm.judge(called * SECOND, returned, None, found(version));
            assert_eq!(judge(bound), Ok(()));
            assert!(judge(bound + 1).is_err());
        }
        assert_eq!(calm.judge(0, 60 * SECOND, None, found(21)), Ok(()), "nobody knew of the commit");
    }

    #[test]
    fn faults_give_time_until_they_end_and_late_watches_have_fired() {
        let judge =
            |faulty, called, returned| timing(faulty).judge(called * SECOND, returned, None, found(10));
        let faulty = Some((0, 4 * SECOND));
        assert_eq!(judge(faulty, 0, 4 * SECOND + LATE + PROMPT), Ok(()));
        assert!(judge(faulty, 0, 4 * SECOND + LATE + PROMPT + 1).is_err());
        assert!(judge(faulty, 20, 20 * SECOND + PROMPT + 1).is_err());
        assert!(judge(Some((3 * SECOND, 4 * SECOND)), 0, 3 * SECOND).is_err(), "before the faults");
        assert_eq!(judge(Some((0, Nanos::MAX)), 0, 60 * SECOND), Ok(()), "nobody knows when they end");
    }

    #[test]
    fn nothing_is_answered_when_patience_has_run_out_and_from_a_look_after_that() {
        let judge = |returned, look| timing(None).judge(0, returned, Some(look), NOTHING);
        assert_eq!(judge(3 * SECOND, 20), Ok(()));
        assert_eq!(
            judge(2 * SECOND, 20).unwrap_err(),
            "answered after 2.000 s that nothing came, and was to wait for 3.000 s"
        );
        assert!(judge(3 * SECOND - 1, 20).is_err());
        assert!(judge(3 * SECOND, 19).is_err());
        let early = Wait { patience: SECOND / 2, ..NOTHING };
        assert_eq!(timing(None).judge(SECOND, 2 * SECOND, Some(10), early), Ok(()));
        assert!(timing(None).judge(SECOND, 2 * SECOND, Some(9), early).is_err());
    }
}
