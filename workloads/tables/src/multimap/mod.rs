//! `multimap`: values are added under indexes, once each or counted, and removed.
//!
//! Each run has a set and a multiset. Indexes and values are drawn from families of labels that are easily
//! confused: a text and a longer text that begins with it; the integer 1, the text "1" and the float 1.0; the
//! zeros; NaN; nil and the empty text; long labels that fill several batches of a range read. A few values
//! make a key as long as a key may be, or one byte longer, and a few labels fit into no key. Copies are added
//! by the billion, and sometimes more copies are removed than there are. Lists are read in pages of any size.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::Model;
pub use operations::{Answer, Op};

use crate::models::labels::{Family, label};
use bytes::Bytes;
use client::perform;
use operations::{copies_space, set_space};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Specimen},
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    label::Label,
    multimap::{self, Error, Multiset},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Db, Env,
    Isolation::{self, Serializable},
    Tx,
    once::Session,
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Multimap {
    indexes: Family,
    values: Family,
    planted: Option<Planted>,
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Multimap>>()
}

impl Specimen for Multimap {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "multimap";
    const ABOUT: &'static str = "values under indexes, as sets and counted";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "multimap: there are fewer copies than are to be removed",
            "multimap: the last copy takes its key along",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Multimap {
        Multimap {
            indexes: Family::draw(rng),
            values: Family::draw(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let under = |i: Label| [set_space(), copies_space()].map(|space| Bytes::from(space.pack(&(&i,))));
        self.indexes.all().into_iter().map(label).flat_map(under).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(
            op,
            Op::IsElement(..)
                | Op::Get(..)
                | Op::All(..)
                | Op::Count(..)
                | Op::Counts(..)
                | Op::AllCounts(..)
        )
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::Add(..) | Op::Remove(..) | Op::RemoveAll(_) | Op::AddCopies(..) | Op::RemoveAllCopies(_)
        )
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::CountConflicts)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, tx, op, isolation).await,
            None => perform(tx, op, isolation).await,
        }
    }

    async fn apply_planted(
        &self,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match self.planted {
            Some(Planted::OwnTransaction) => planted::own_transactions(session, ops).await,
            _ => None,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        self.replayed(model, op)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        let set = multimap::Multimap::new(set_space()).all(tx, None, usize::MAX, Serializable).await;
        let copies = Multiset::new(copies_space()).all(tx, None, usize::MAX, Serializable).await;
        match (set, copies) {
            (Ok(set), Ok(copies)) => {
                Ok(Ok(Model { set: set.into_iter().collect(), copies: copies.into_iter().collect() }))
            }
            (Err(Error::Fdb(e)), _) | (_, Err(Error::Fdb(e))) => Err(e),
            (Err(e), _) | (_, Err(e)) => Ok(Err(e.to_string().into())),
        }
    }
}
