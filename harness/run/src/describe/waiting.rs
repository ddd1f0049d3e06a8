//! Waits: an operation that waits returns soon after its answer became possible, or after its retry loop last
//! had to wait, and reports that nothing came only after its time limit. One that names the time within which
//! it returns whatever it finds returns soon after that.
//!
//! This is not a separate judge, because only the workload can determine what an operation waits for. A
//! workload describes each [`Wait`] when it steps its model, and passes it to
//! [`Step::waited`](crate::describe::workload::Step::waited).

use super::misfit::{Cause, Misfit};
use shaketable_sim::{
    history::{History, Reported},
    judges::Timeline,
    proto::Version,
    rt::{Nanos, SECOND},
};
use std::{cell::Cell, collections::BTreeMap};

/// How late an answer may be on a cluster without faults, nanoseconds. It takes a watch, a read version and a
/// read for each page, all of which take milliseconds.
const PROMPT: Nanos = SECOND;

/// How long a retry loop waits at most after an attempt was refused, nanoseconds: the default of
/// `max_retry_delay`.
const BACKOFF: Nanos = SECOND;

/// How much later an answer may be after faults have ended, nanoseconds: a watch may have been delayed while
/// they were on.
const LATE: Nanos = 5 * SECOND;

/// What an operation waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The time limit after which the operation returns that nothing came, nanoseconds.
    pub patience: Nanos,
    /// The version whose commit made the answer possible; `None` if the answer is that nothing came.
    pub found: Option<Version>,
}

/// When versions were known to be committed, and when faults were on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    timeline: Timeline,
    /// The start and the end of the time in which faults were on.
    faulty: Option<(Nanos, Nanos)>,
    /// When an attempt of an operation was last refused, by client and index of the operation.
    refused: BTreeMap<(usize, usize), Nanos>,
    /// The waits that were judged.
    judged: Cell<u64>,
}

impl Timing {
    /// The timing of a run.
    pub(crate) fn of(history: &History, timeline: Timeline) -> Timing {
        let mut refused = BTreeMap::new();
        for attempt in history.attempts.iter().flatten() {
            if let (Reported::Failed(error), Some(operation)) = (attempt.reported, attempt.operation)
                && error.is_retryable()
            {
                let last = refused.entry((usize::from(attempt.client.0), operation as usize)).or_default();
                *last = attempt.ended.max(*last);
            }
        }
        Timing { timeline, faulty: history.faulty, refused, judged: Cell::new(0) }
    }

    /// When versions were known to be committed.
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// How many waits were judged.
    pub(crate) fn judged(&self) -> u64 {
        self.judged.get()
    }

    /// The highest version that was known to be committed before this time.
    pub(crate) fn known_at(&self, now: Nanos) -> Version {
        self.timeline.known_before(now).map_or(0, |decided| decided.version)
    }

    /// The deadline of an answer that was possible from the time `possible` on.
    fn deadline(&self, possible: Nanos) -> Nanos {
        let prompt = possible.saturating_add(PROMPT);
        match self.faulty {
            Some((from, until)) if prompt > from => prompt.max(until.saturating_add(LATE + PROMPT)),
            _ => prompt,
        }
    }

    /// When an attempt of this operation was last refused, and the retry loop had waited after that.
    fn retried(&self, operation: (usize, usize)) -> Nanos {
        self.refused.get(&operation).map_or(0, |refused| refused.saturating_add(BACKOFF))
    }

    /// Judges that an operation, of this client and index, returned soon after its time limit, whatever it
    /// found.
    pub(crate) fn judge_end(
        &self,
        operation: (usize, usize),
        called: Nanos,
        returned: Nanos,
        limit: Nanos,
    ) -> Result<(), Misfit> {
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        let end = called.saturating_add(limit);
        let deadline = self.deadline(end.max(self.retried(operation)));
        if returned <= deadline {
            return Ok(());
        }
        let (late, limit) = (seconds(returned - end), seconds(limit));
        let message = format!("answered {late:.3} s after its time limit of {limit:.3} s");
        let expected = format!("an answer by {:.3} s", seconds(deadline));
        let found = format!("an answer at {:.3} s", seconds(returned));
        Err(Misfit::new(message, expected, found).because_of(Cause::Time))
    }

    /// Judges a wait of an operation, of this client and index, that was called and returned at these times.
    /// `read_version` is set if the operation only read.
    pub(crate) fn judge(
        &self,
        operation: (usize, usize),
        called: Nanos,
        returned: Nanos,
        read_version: Option<Version>,
        wait: Wait,
    ) -> Result<(), Misfit> {
        self.judged.set(self.judged.get() + 1);
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        let Some(found) = wait.found else {
            let end = called.saturating_add(wait.patience);
            if returned < end {
                let waited = format!("{:.3} s", seconds(returned.saturating_sub(called)));
                let patience = format!("{:.3} s", seconds(wait.patience));
                let message =
                    format!("answered after {waited} that nothing came, but was to wait for {patience}");
                return Err(Misfit::new(message, patience, waited).because_of(Cause::Time));
            }
            let known = self.known_at(end);
            return match read_version {
                Some(read_version) if read_version < known => {
                    let message = format!(
                        "answered that nothing came, with read version {read_version}, but version {known} was known \
                         to be committed before the time limit of {:.3} s",
                        seconds(wait.patience)
                    );
                    let expected = format!("a read version of at least {known}");
                    let found = format!("read version {read_version}");
                    Err(Misfit::new(message, expected, found).because_of(Cause::Commit(known)))
                }
                _ => Ok(()),
            };
        };
        let Some(known) = self.timeline.decided_since(found) else { return Ok(()) };
        let possible = known.max(called);
        let deadline = self.deadline(possible.max(self.retried(operation)));
        if returned > deadline {
            let message = format!(
                "answered {:.3} s after the commit of version {found} had made the answer possible",
                seconds(returned - possible)
            );
            let expected = format!("an answer by {:.3} s", seconds(deadline));
            let answered = format!("an answer at {:.3} s", seconds(returned));
            return Err(Misfit::new(message, expected, answered).because_of(Cause::Commit(found)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{KnownCommit, story::Story};
    use shaketable_sim::history::Attempt;
    use shaketable_tx::Error;

    const FIRST: (usize, usize) = (0, 0);

    /// Version 10 is known after one second, version 20 after two seconds.
    fn timing(faulty: Option<(Nanos, Nanos)>) -> Timing {
        let known = [(SECOND, 10), (2 * SECOND, 20)];
        let known = known.map(|(at, version)| (at, KnownCommit { version, by: None }));
        let history = History { faulty, ..History::default() };
        Timing::of(&history, Timeline::known(known.into_iter()))
    }

    fn found(version: Version) -> Wait {
        Wait { patience: 3 * SECOND, found: Some(version) }
    }

    const NOTHING: Wait = Wait { patience: 3 * SECOND, found: None };

    #[test]
    fn an_answer_comes_soon_after_it_was_possible() {
        let calm = timing(None);
        // It is possible once the version or a later one is known, and not before the call.
        for (called, version, possible) in [(0, 10, 1), (0, 11, 2), (3, 5, 3)] {
            let deadline = possible * SECOND + PROMPT;
            let judge = |returned| calm.judge(FIRST, called * SECOND, returned, None, found(version));
            assert_eq!(judge(deadline), Ok(()));
            assert!(judge(deadline + 1).is_err());
        }
        assert_eq!(calm.judge(FIRST, 0, 60 * SECOND, None, found(21)), Ok(()), "the commit was not known");
    }

    #[test]
    fn faults_extend_the_deadline_until_they_end_and_late_watches_have_fired() {
        let judge = |faulty, called, returned| {
            timing(faulty).judge(FIRST, called * SECOND, returned, None, found(10))
        };
        let faulty = Some((0, 4 * SECOND));
        assert_eq!(judge(faulty, 0, 4 * SECOND + LATE + PROMPT), Ok(()));
        assert!(judge(faulty, 0, 4 * SECOND + LATE + PROMPT + 1).is_err());
        assert!(judge(faulty, 20, 20 * SECOND + PROMPT + 1).is_err());
        assert!(judge(Some((3 * SECOND, 4 * SECOND)), 0, 3 * SECOND).is_err(), "before the faults");
        let at_once = SECOND + PROMPT;
        assert!(judge(Some((at_once, 4 * SECOND)), 0, at_once + 1).is_err(), "they begin at the deadline");
        assert_eq!(judge(Some((0, Nanos::MAX)), 0, 60 * SECOND), Ok(()), "their end is not known");
    }

    #[test]
    fn a_refused_attempt_of_the_operation_extends_the_deadline_by_its_backoff() {
        let refused_at = |ended, error| {
            let mut story = Story::default();
            let (_, attempt) = story.attempt(0, Vec::new());
            (attempt.ended, attempt.reported) = (ended, Reported::Failed(error));
            // The last of them counts, whichever was recorded last.
            let (_, earlier) = story.attempt(0, Vec::new());
            *earlier = Attempt { operation: Some(0), reported: Reported::Failed(error), ..earlier.clone() };
            Timing { timeline: timing(None).timeline, ..Timing::of(&story.history, Timeline::default()) }
        };
        let conflict = refused_at(3 * SECOND, Error::NOT_COMMITTED);
        let deadline = 3 * SECOND + BACKOFF + PROMPT;
        assert_eq!(conflict.judge(FIRST, 0, deadline, None, found(10)), Ok(()));
        assert!(conflict.judge(FIRST, 0, deadline + 1, None, found(10)).is_err());
        assert!(conflict.judge((0, 1), 0, deadline, None, found(10)).is_err(), "another operation's");
        let ended = refused_at(3 * SECOND, Error::TRANSACTION_CANCELLED);
        assert!(ended.judge(FIRST, 0, deadline, None, found(10)).is_err(), "no retry loop waits after it");
    }

    #[test]
    fn a_time_limit_ends_an_operation_as_promptly_as_an_answer_that_is_possible_then() {
        let judge = |faulty, returned| timing(faulty).judge_end(FIRST, SECOND, returned, 3 * SECOND);
        let deadline = 4 * SECOND + PROMPT;
        assert_eq!((judge(None, SECOND), judge(None, deadline)), (Ok(()), Ok(())));
        let late = judge(None, deadline + 1).unwrap_err().to_string();
        assert_eq!(late, "answered 1.000 s after its time limit of 3.000 s");
        let faulty = Some((0, 9 * SECOND));
        assert_eq!(judge(faulty, 9 * SECOND + LATE + PROMPT), Ok(()));
        assert!(judge(faulty, 9 * SECOND + LATE + PROMPT + 1).is_err());
    }

    #[test]
    fn nothing_may_be_reported_after_the_time_limit_and_from_a_read_after_that() {
        let judge =
            |returned, read_version| timing(None).judge(FIRST, 0, returned, Some(read_version), NOTHING);
        assert_eq!(judge(3 * SECOND, 20), Ok(()));
        assert_eq!(
            judge(2 * SECOND, 20).unwrap_err().to_string(),
            "answered after 2.000 s that nothing came, but was to wait for 3.000 s"
        );
        assert!(judge(3 * SECOND - 1, 20).is_err());
        assert!(judge(3 * SECOND, 19).is_err());
        let early = Wait { patience: SECOND / 2, ..NOTHING };
        assert_eq!(timing(None).judge(FIRST, SECOND, 2 * SECOND, Some(10), early), Ok(()));
        assert!(timing(None).judge(FIRST, SECOND, 2 * SECOND, Some(9), early).is_err());
    }
}
