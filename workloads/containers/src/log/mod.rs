//! `log`: entries are appended, read page by page, waited for, and trimmed.
//!
//! The value of an entry contains its client and number, which reveals an entry that is lost, duplicated or
//! out of order. Several entries are appended in one transaction, and pages end in the middle of such a
//! transaction. Values have lengths from zero to several kilobytes. A few are too large, a few pages have no
//! entries, and a few transactions read what they have appended themselves.
//!
//! There are three kinds of runs. In the first, entries are trimmed. In the second, clients follow the log
//! from its first entry on, with tails that wait for further entries. In the third, two clients take turns:
//! each waits for the other's entry and appends its own at once, so that an entry often comes between a read
//! and a watch, and no third client's entry makes up for a lost wake-up. A few of these waits are so long
//! that a late answer cannot be caused by a fault.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::Model;
pub use operations::{Answer, Item, Name, Op};

use crate::shared;
use bytes::Bytes;
use client::perform;
use foundationdb_tuple::{Subspace, Versionstamp};
use operations::item;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Specimen},
    waiting::Wait,
    weakened::Span,
    workload::{Bug, Outcome},
};
use shaketable_layers::log::Error;
use shaketable_sim::{rt::MILLISECOND, seed::Stream};
use shaketable_tx::{
    self as tx, Db, Env,
    Isolation::{self, Serializable},
    Transaction, Tx,
    once::Session,
};

/// The time limit of a few long waits, in milliseconds: longer than faults and late watches delay an answer.
const LONG: u64 = 12_000;

/// How many of a client's first calls wait that long. They are few, because a client whose partner has
/// finished waits in vain, and must still end within a minute.
const LONG_FOLLOWS: usize = 3;

const LONG_TURNS: usize = 4;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Log {
    /// The maximum length of values, in bytes.
    longest: usize,
    /// The maximum number of entries on a page.
    page: usize,
    /// The time limit of tails, in milliseconds.
    patience: u64,
    kind: Kind,
    planted: Option<Planted>,
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Entries are trimmed.
    Trimmed,
    /// The log is followed.
    Followed,
    /// Two clients append in turns.
    Turns,
}

fn space() -> Subspace {
    Subspace::from("log")
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Log>>()
}

impl Specimen for Log {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "log";
    const ABOUT: &'static str = "entries appended without conflicts, read on from a position, waited for";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "log: a tail is woken",
            "log: a tail runs out of patience",
            "log: a transaction comes to its own entries",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Log {
        Log {
            longest: *rng.pick(&[8, 200, 3_000]),
            page: *rng.pick(&[2, 5, 20]),
            patience: *rng.pick(&[50, 500, 3_000]),
            kind: *rng.pick(&[Kind::Trimmed, Kind::Followed, Kind::Turns]),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let entries = (1..8).map(|n| Bytes::from(space().pack(&(0, shared::stamp(n)))));
        entries.chain([Bytes::from(space().pack(&1))]).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        vec![space().range()]
    }

    fn operation(&self, client: usize) -> BoxedStrategy<Op> {
        self.drawn(client)
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        match op {
            Op::Append(name, ..) => *name = Name(client as u32, number as u32),
            Op::Succeed(name) => *name = Name(client as u32, number as u32),
            Op::Turn(name, patience) => {
                *name = Name(client as u32, number as u32);
                if number < LONG_TURNS {
                    *patience = LONG;
                }
            }
            Op::Follow(_, _, patience) if client == 0 && number < LONG_FOLLOWS => *patience = LONG,
            _ => {}
        }
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Page(..) | Op::Follow(..) | Op::Idle(..) | Op::Last)
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Append(..))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::Page(..) | Op::Last)
            && self.planted.is_none_or(|planted| planted == Planted::LastAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, tx, op, isolation).await,
            None => perform(tx, op, isolation).await,
        }
    }

    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        self.perform_alone(session, ops).await
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        self.replayed(model, op, at)
    }

    fn timeout(&self, op: &Op) -> Option<u64> {
        match op {
            Op::Idle(0, _) => Some(0),
            Op::Idle(_, patience) => Some(patience * MILLISECOND),
            _ => None,
        }
    }

    fn wait(&self, model: &Model, op: &Op, answer: &Answer, at: &At) -> Option<Wait> {
        self.waited(model, op, answer, at)
    }

    /// Checks that the entries are in order, and that the head contains the stamp of the last append.
    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        let mut all = Vec::new();
        for row in shared::rows(tx, &space().subspace(&0)).await? {
            let Ok((_, stamp, _)) = space().unpack::<(i64, Versionstamp, i64)>(&row.key) else {
                return Ok(Err(format!("{} is not the key of an entry", row.key.escape_ascii()).into()));
            };
            let mut bytes = [0; 10];
            bytes.copy_from_slice(stamp.transaction_version());
            all.push(item(bytes, &row.value));
        }
        let head = tx.get(&space().pack(&1), Serializable).await?;
        let last = all.last().map(|item: &Item| &item.stamp[..]);
        Ok(match last.is_some() && last != head.as_deref() {
            true => Err(format!("the head is {head:?}, the last entry {last:?}").into()),
            false => Ok(Model { all, trimmed: 0 }),
        })
    }
}
