//! What operations are given and what they return, as plain data, and how calls about the job are drawn.

use super::Bulk;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};

/// The tag of a build that every client begins again when it is gone, and that is never published.
pub(super) const SHARED: u32 = u32::MAX;

/// The tag of another one, which a client gives up whoever is at work on it.
pub(super) const DISPUTED: u32 = SHARED - 1;

/// One of several calls about the job in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Sets a row or removes it.
    Put(i64, Option<i64>),
    /// Performs a batch of up to this many rows.
    Step(usize),
    /// Performs a batch that ends after its first row, because no time is left if true, otherwise no bytes.
    StepOnce(bool),
    /// Reads whether the job has passed a row.
    Passed(i64),
    /// Reads whether the job has passed the key at its cursor.
    AtCursor,
    /// Reads the progress.
    Progress,
}

/// What such a call returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActAnswer {
    /// The previous value of the row.
    Before(Option<i64>),
    /// Whether the job has passed the row.
    Passed(bool),
    /// The number of rows that are done, whether all are done, and the cursor.
    Progress(u64, bool, Vec<u8>),
}

/// What was observed of a build that was made in one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// The tags of the current build before, of the build to be replaced, and of the current build after.
    pub(super) tags: [Option<u32>; 3],
    /// Whether the build was listed as in progress before it began, after that, after its claim, and when it
    /// had ended.
    pub(super) under_way: [bool; 4],
    /// Whether the claim could be observed.
    pub(super) claim_seen: bool,
    /// Whether another claim was refused after the build had ended, and whether giving it up again did
    /// nothing.
    pub(super) ended: [bool; 2],
    /// Whether it was pinned before it was published, and when it had ended.
    pub(super) pinned: [bool; 2],
    /// Whether it was left alone given the observation from before the claim, and given up given the one from
    /// after.
    pub(super) observed: [bool; 2],
    /// Whether everything that was retired was cleared, if it was to be.
    pub(super) cleared: bool,
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The previous value of the row.
    Before(Option<i64>),
    /// Nothing that the model checks.
    Done,
    /// Whether the job starts again.
    Again(bool),
    /// Published; the build with this tag was replaced.
    Published(Option<u32>),
    /// Refused: another build was published first.
    Outdated,
    /// Refused: the build was given up.
    GivenUp,
    /// The tag of the current build.
    Tag(Option<u32>),
    /// The build that was read is no longer current.
    Swapped,
    /// What each of several calls returned.
    Together(Vec<ActAnswer>),
    /// What was observed of a build that was made in one transaction.
    AtOnce(Looks),
    /// Whether each call was refused.
    Beyond(Vec<bool>),
}

impl Bulk {
    /// Draws several calls about the job.
    pub(super) fn acts(&self) -> BoxedStrategy<Vec<Act>> {
        let row = || 0..self.rows;
        let act = prop_oneof![
            3 => (row(), proptest::option::of(0..self.values)).prop_map(|(row, new)| Act::Put(row, new)),
            2 => (0..6usize).prop_map(Act::Step),
            1 => any::<bool>().prop_map(Act::StepOnce),
            3 => row().prop_map(Act::Passed),
            1 => Just(Act::AtCursor),
            2 => Just(Act::Progress),
        ];
        prop_oneof![3 => vec(act.clone(), 1..6), 1 => vec(act, 7..14)].boxed()
    }
}
