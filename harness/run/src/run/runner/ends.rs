//! How attempts at transactions and operations ended, in words: with what the log knows of a commit whose
//! client does not know it, and with the write that refused a commit.

use crate::{describe::erased::AnyValue, describe::workload::Outcome, judge::Truth};
use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, History, Reported},
    ids::AttemptId,
    proto::{KeyRange, LoggedTransaction, Mutation, Version},
};
use shaketable_tx::{Error, show};

pub(super) fn outcome(outcome: &Outcome<AnyValue>) -> String {
    match outcome {
        Outcome::Answered(answer) => format!("returns {answer:?}"),
        Outcome::Failed(error) => format!("fails without an effect: {error}"),
        Outcome::Unknown(error) => format!("has an unknown outcome: {error}"),
        Outcome::Violated(why) => format!("violates the layer's promise: {why}"),
    }
}

/// How an attempt ended, in words.
pub(super) fn end(id: usize, attempt: &Attempt, history: &History, truth: &Truth) -> String {
    match attempt.reported {
        Reported::Nothing if attempt.commit_sent.is_some() => {
            format!("dropped during its commit{}", final_outcome(id, truth))
        }
        Reported::Nothing => "dropped".to_owned(),
        Reported::ReadOnly => "committed, read-only".to_owned(),
        Reported::Committed { version, .. } => format!("committed at version {version}"),
        Reported::Failed(Error::NOT_COMMITTED) => {
            format!("failed: {}{}", Error::NOT_COMMITTED, conflict(attempt, history, truth))
        }
        Reported::Failed(error) if error.leaves_commit_unknown() && attempt.commit_sent.is_some() => {
            format!("failed: {error}{}", final_outcome(id, truth))
        }
        Reported::Failed(error) => format!("failed: {error}"),
    }
}

/// The final outcome of a commit whose client does not know it.
fn final_outcome(id: usize, truth: &Truth) -> String {
    match truth.place(AttemptId(id as u32)) {
        Some((version, _)) => format!("; it committed at version {version}"),
        None => "; it did not commit".to_owned(),
    }
}

/// The write that refused a commit.
pub(super) struct Refusal {
    /// What the refused attempt had read.
    read: KeyRange,
    /// The version of the write.
    version: Version,
    /// The attempt that wrote.
    pub(super) by: Option<AttemptId>,
}

/// The write with which an attempt conflicted; `None` if no committed write did.
pub(super) fn refusal(attempt: &Attempt, history: &History, truth: &Truth) -> Option<Refusal> {
    let since = attempt.read_version.unwrap_or(Version::MAX);
    let later = truth.entries.iter().filter(|entry| entry.version > since);
    later.flat_map(|entry| entry.transactions.iter().map(|tx| (entry.version, tx))).find_map(
        |(version, tx)| {
            let hit = |read: &&KeyRange| written(tx, history).iter().any(|write| write.intersects(read));
            let read = attempt.read_ranges.iter().find(hit)?.clone();
            Some(Refusal { read, version, by: tx.attempt })
        },
    )
}

/// The write with which an attempt conflicted, in words.
fn conflict(attempt: &Attempt, history: &History, truth: &Truth) -> String {
    match refusal(attempt, history, truth) {
        Some(Refusal { read, version, by }) => {
            let by = by.map_or_else(String::new, |id| format!(" by attempt {}", id.0));
            format!("; {} was written at version {version}{by}", show::range(&read.begin, &read.end))
        }
        None => "; no committed write explains it: a fault caused it, or a transaction that did not become durable"
            .to_owned(),
    }
}

/// The write conflict ranges of a committed transaction.
#[doc(hidden)]
pub fn written(tx: &LoggedTransaction, history: &History) -> Vec<KeyRange> {
    let attempt = tx.attempt.and_then(|id| history.attempts.get(id.0 as usize)?.as_ref());
    if let Some(ranges) = attempt.and_then(|attempt| attempt.write_ranges.clone()) {
        return ranges;
    }
    let of_key = |key: &Bytes| KeyRange::new(key.clone(), Bytes::from([key, &b"\0"[..]].concat()));
    let range = |mutation: &Mutation| match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => of_key(key),
        Mutation::ClearRange(range) => range.clone(),
    };
    tx.mutations.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::story::Story;
    use shaketable_tx::MutationType;

    /// The end of an attempt.
    fn shown(history: &History, id: AttemptId) -> String {
        let attempt = history.attempts[id.0 as usize].as_ref().expect("an attempt");
        end(id.0 as usize, attempt, history, &Truth::of(history))
    }

    #[test]
    fn the_end_of_an_attempt_is_shown_with_what_the_log_knows_of_it() {
        let (unknown, late) = (Error::COMMIT_UNKNOWN_RESULT, Error::TRANSACTION_TIMED_OUT);
        let too_old = Error::TRANSACTION_TOO_OLD;
        let committed = Reported::Committed { version: 5, batch_index: 0 };
        for (reported, sent, logged, end) in [
            (Reported::Nothing, false, false, "dropped".to_owned()),
            (
                Reported::Nothing,
                true,
                true,
                "dropped during its commit; it committed at version 5".to_owned(),
            ),
            (Reported::Nothing, true, false, "dropped during its commit; it did not commit".to_owned()),
            (Reported::ReadOnly, false, false, "committed, read-only".to_owned()),
            (committed, true, true, "committed at version 5".to_owned()),
            (Reported::Failed(unknown), true, true, format!("failed: {unknown}; it committed at version 5")),
            (Reported::Failed(late), true, false, format!("failed: {late}; it did not commit")),
            // Its reads ran out of time: there is no commit of which anything could be known.
            (Reported::Failed(late), false, false, format!("failed: {late}")),
            (Reported::Failed(too_old), true, false, format!("failed: {too_old}")),
        ] {
            let mut story = Story::default();
            let (id, attempt) = story.attempt(0, Vec::new());
            (attempt.commit_sent, attempt.reported) = (sent.then_some(1), reported);
            if logged {
                story.log(5, vec![(Some(id), 0, Vec::new())]);
            }
            let text = shown(&story.history, id);
            assert_eq!(text, end);
        }
    }

    #[test]
    fn a_conflict_is_shown_with_the_first_later_write_of_what_was_read() {
        let at = |key: &'static str| KeyRange::new(key, format!("{key}\0"));
        let set = |key: &'static str| Mutation::Set(key.into(), "".into());
        let add = Mutation::Atomic("b".into(), "1".into(), MutationType::Add);
        let clear = Mutation::ClearRange(KeyRange::new("a", "c"));
        // Versions and what each of them wrote; the conflicting attempt read at version 10.
        let conflict = |log: Vec<(Version, Mutation)>| {
            let mut story = Story::default();
            let (id, attempt) = story.attempt(10, Vec::new());
            attempt.read_ranges = vec![at("x"), at("b")];
            attempt.reported = Reported::Failed(Error::NOT_COMMITTED);
            for (version, mutation) in log {
                story.log(version, vec![(None, 0, Vec::new()), (None, 1, vec![mutation])]);
            }
            let text = shown(&story.history, id);
            text.rsplit_once("; ").expect("a reason").1.to_owned()
        };
        let unexplained = conflict(Vec::new());
        assert!(unexplained.starts_with("no committed write explains it"), "{unexplained}");
        // The state at the read version contains what was written at it.
        assert_eq!(conflict(vec![(9, set("b")), (10, set("b"))]), unexplained);
        assert_eq!(conflict(vec![(11, set("a"))]), unexplained);
        assert_eq!(conflict(vec![(11, set("b")), (12, set("x"))]), "\"b\" was written at version 11");
        assert_eq!(conflict(vec![(10, set("b")), (12, set("x"))]), "\"x\" was written at version 12");
        assert_eq!(conflict(vec![(11, set("c")), (13, add)]), "\"b\" was written at version 13");
        assert_eq!(conflict(vec![(11, clear)]), "\"b\" was written at version 11");
    }

    #[test]
    fn a_write_without_a_conflict_range_is_not_the_reason_of_a_conflict() {
        let mut story = Story::default();
        let set = |key: &'static str| Mutation::Set(key.into(), "".into());
        let ranges = [None, Some(vec![KeyRange::new("a", "b")]), None];
        let writers = ranges.map(|ranges| {
            let (id, attempt) = story.attempt(1, Vec::new());
            attempt.write_ranges = ranges;
            id
        });
        let (reader, attempt) = story.attempt(1, Vec::new());
        attempt.read_ranges = vec![KeyRange::new("b", "c")];
        attempt.reported = Reported::Failed(Error::NOT_COMMITTED);
        for (version, (writer, key)) in (2..).zip(writers.into_iter().zip(["a", "b", "b"])) {
            story.log(version, vec![(Some(writer), 0, vec![set(key)])]);
        }
        let text = shown(&story.history, reader);
        assert!(text.ends_with("; \"b\" to \"c\" was written at version 4 by attempt 2"), "{text}");
    }

    #[test]
    fn outcomes_are_shown_as_the_client_knows_them() {
        let error = Error::NOT_COMMITTED;
        for (shown, expected) in [
            (Outcome::Answered(AnyValue::new(5)), "returns 5".to_owned()),
            (Outcome::Failed(error), format!("fails without an effect: {error}")),
            (Outcome::Unknown(error), format!("has an unknown outcome: {error}")),
            (Outcome::Violated("a gap".to_owned()), "violates the layer's promise: a gap".to_owned()),
        ] {
            assert_eq!(outcome(&shown), expected);
        }
    }
}
