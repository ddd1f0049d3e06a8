//! Planted bugs that every specimen can list: mistakes in the way a client uses a layer.

use super::{
    Answer, Specimen,
    mounted::{Client, Mounted},
    perform::{
        Reads, apply_all, concluded, perform_all, perform_interleaved, ran, ran_all, refused, run_all,
        without_commit,
    },
};
use crate::{
    describe::specimen::Recorded,
    describe::workload::{Bug, Outcome},
};
use futures::future::select;
use serde::{Deserialize, Serialize};
use shaketable_tx::{Database, Transaction};
use std::{collections::BTreeMap, pin::pin, time::Duration};

/// The name of a planted bug that every specimen can list: operations are retried without recording earlier
/// attempts.
pub const UNRECORDED: &str = "unrecorded";
/// [`UNRECORDED`], as the workloads of this crate's macros list it.
pub const UNRECORDED_BUG: Bug = Bug {
    name: UNRECORDED,
    about: "operations are retried after an unknown result without a record of the first attempt",
    source: "the retry loop of every binding",
    only_simulated: None,
};
/// The name of a planted bug that every specimen can list: a write is acknowledged and never committed.
pub const UNWRITTEN: &str = "unwritten";
/// The name of a planted bug that every specimen can list: a write is acknowledged immediately and committed
/// with the client's next write.
pub const DEFERRED: &str = "deferred";
/// The name of a planted bug that every specimen can list: a client that repeats a read-only call returns the
/// answer of the first call.
pub const REMEMBERED: &str = "remembered";
/// The name of a planted bug that every specimen can list: a client reuses a read version for up to a second.
pub const KEPT_VERSION: &str = "kept-version";
/// The name of a planted bug that every specimen can list: reads accept a causally risky read version.
pub const RISKY_READ: &str = "risky-read";
/// The name of a planted bug that every specimen can list: a write is acknowledged without awaiting its
/// commit.
pub const NOT_AWAITED: &str = "not-awaited";
/// The name of a planted bug that every specimen can list: calls that run side by side in one transaction do
/// not take turns.
pub const INTERLEAVED: &str = "interleaved";

/// A planted bug in the way a client uses the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Planted {
    Unrecorded,
    Unwritten,
    Deferred,
    Remembered,
    KeptVersion,
    RiskyRead,
    NotAwaited,
    Interleaved,
}

impl Planted {
    pub(super) fn named(name: &str) -> Option<Planted> {
        Some(match name {
            UNRECORDED => Planted::Unrecorded,
            UNWRITTEN => Planted::Unwritten,
            DEFERRED => Planted::Deferred,
            REMEMBERED => Planted::Remembered,
            KEPT_VERSION => Planted::KeptVersion,
            RISKY_READ => Planted::RiskyRead,
            NOT_AWAITED => Planted::NotAwaited,
            INTERLEAVED => Planted::Interleaved,
            _ => return None,
        })
    }
}

/// The additional state of a client with a planted bug.
pub(super) struct BugState<S: Specimen> {
    /// Acknowledged calls that will be committed with the next ones.
    deferred: Vec<S::Op>,
    /// Earlier calls and their outcomes.
    remembered: BTreeMap<String, Outcome<Answer<S::Answer>>>,
    /// A read version, and when it was obtained.
    kept: Option<(i64, Duration)>,
}

impl<S: Specimen> Default for BugState<S> {
    fn default() -> Self {
        BugState { deferred: Vec::new(), remembered: BTreeMap::new(), kept: None }
    }
}

impl<S: Specimen> Mounted<S> {
    /// Does the calls as a client with a planted bug does. Returns `None` if the bug does not change them.
    pub(super) async fn perform_planted(
        &self,
        planted: &str,
        Client { session, bug_state }: &mut Client<S>,
        ops: &[S::Op],
    ) -> Option<Outcome<Answer<S::Answer>>> {
        let db = session.database().clone();
        let (env, read_only) = (db.env(), ops.iter().all(S::is_read_only));
        match Planted::named(planted) {
            Some(Planted::Unrecorded) => Some(ran_all(self, &db, ops, Reads::Fresh).await),
            Some(Planted::Unwritten) if !read_only => Some(without_commit(self, &db, ops).await),
            Some(Planted::Deferred) if !read_only && bug_state.deferred.is_empty() => {
                let outcome = without_commit(self, &db, ops).await;
                if let Outcome::Answered(Answer::Done(_)) = outcome {
                    bug_state.deferred = ops.to_vec();
                }
                Some(outcome)
            }
            Some(Planted::Deferred) if !read_only => {
                let before = std::mem::take(&mut bug_state.deferred);
                let all = [&before[..], ops].concat();
                let applied = apply_all(self, session, &all).await;
                Some(concluded(
                    applied.map(|Recorded(mut answers)| Recorded(answers.split_off(before.len()))),
                ))
            }
            Some(Planted::Remembered) if read_only => {
                let calls = format!("{ops:?}");
                if let Some(outcome) = bug_state.remembered.get(&calls) {
                    return Some(outcome.clone());
                }
                let outcome = ran_all(self, &db, ops, Reads::Fresh).await;
                bug_state.remembered.insert(calls, outcome.clone());
                Some(outcome)
            }
            Some(Planted::KeptVersion) if read_only => {
                let kept = bug_state.kept.filter(|(_, since)| env.now() < *since + Duration::from_secs(1));
                let kept = kept.map(|(version, _)| version);
                let read = run_all(self, &db, ops, Reads::Kept(kept)).await;
                if let (Ok((Some(version), _)), None) = (&read, kept) {
                    bug_state.kept = Some((*version, env.now()));
                }
                Some(ran(read.map(|(_, answers)| answers)))
            }
            Some(Planted::RiskyRead) if read_only => Some(ran_all(self, &db, ops, Reads::Risky).await),
            Some(Planted::NotAwaited) if !read_only => {
                let tx = db.create_transaction().ok()?;
                let answers = match perform_all(self, tx.clone(), env, ops).await {
                    Ok(answers) => answers,
                    Err(e) => return Some(refused(&e)),
                };
                // Usually long enough to send the commit, and rarely long enough for its reply.
                let wait = Duration::from_micros(env.random_u64() % 2_000);
                drop(select(pin!(tx.commit()), env.sleep(wait)).await);
                Some(Outcome::Answered(Answer::Done(answers)))
            }
            Some(Planted::Interleaved) if ops.len() > 1 => {
                let calls = |tx| async move { perform_interleaved(self, tx, env, ops).await.map(Recorded) };
                Some(concluded(session.apply(calls).await))
            }
            _ => None,
        }
    }
}
