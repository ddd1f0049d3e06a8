//! `table`: cells of a sparse table are set, read and deleted, one at a time, by row and by column.
//!
//! Each run keeps its table by row, by column, both ways, or in three dimensions with two or three of the six
//! orders.
//! Rows and columns have labels that are easily confused. Rows are replaced by others that have some of their
//! columns. Values have lengths from zero to several kilobytes, and sometimes the maximum length or one byte
//! more. A few cells have the wrong number of dimensions, a few labels fit into no key, a few requests have
//! no order or name an axis twice, and a few orders share keys. Looks at snapshot must not conflict.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;
mod shape;

pub use model::Model;
pub use operations::{Answer, Op};
pub use shape::Shape;

use crate::{
    models::labels::{Family, label},
    shared,
};
use bytes::Bytes;
use client::perform;
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Content, Specimen},
    workload::{Bug, Outcome},
};
use shaketable_layers::{label::Label, table::Error};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Db, Env, Isolation, Tx, once::Session};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    shape: Shape,
    /// The labels of each axis.
    families: [Family; 3],
    /// The maximum length of values, in bytes.
    longest: usize,
    planted: Option<Planted>,
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Table>>()
}

impl Specimen for Table {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "table";
    const ABOUT: &'static str = "cells of a sparse table, kept by row, by column, and in other orders";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["table: what is replaced is found in another order"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Table {
        let planted = bug.and_then(Planted::named);
        let drawn = *rng.pick(&[
            Shape::Rows,
            Shape::Columns,
            Shape::Both,
            Shape::Both,
            Shape::Cube,
            Shape::Turned,
            Shape::Turned,
            Shape::Turned,
        ]);
        Table {
            shape: planted.and_then(Planted::shape).unwrap_or(drawn),
            families: [(); 3].map(|()| Family::draw(rng)),
            longest: *rng.pick(&[8, 200, 3_000]),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let orders = self.shape.orders().into_iter();
        let first = |(space, axes): (Subspace, Vec<usize>)| {
            let labels = self.families[axes[0]].all().into_iter().map(label);
            labels.map(|label| Bytes::from(space.pack(&(label,)))).collect::<Vec<_>>()
        };
        orders.flat_map(first).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        !matches!(op, Op::Set(..) | Op::Delete(_) | Op::Replace(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Set(..) | Op::Delete(_))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Slice(_) | Op::Page(..))
            && self.planted.is_none_or(|planted| planted == Planted::SliceAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self.shape, tx, op, isolation).await,
            None => perform(self.shape, tx, op, isolation).await,
        }
    }

    async fn apply_planted(
        &self,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.planted, ops) {
            (Some(Planted::OrderOnItsOwn), [op @ Op::Set(..)]) => {
                planted::order_on_its_own(self.shape, session, op).await
            }
            _ => None,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        self.replayed(model, op)
    }

    /// Reads every order. The inner error is that two orders contain different cells.
    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        let mut first: Option<Model> = None;
        for (space, axes) in self.shape.orders() {
            let mut found = Model::new();
            for row in shared::rows(tx, &space).await? {
                let Ok(labels) = space.unpack::<Vec<Label>>(&row.key) else {
                    return Ok(Err(format!("{} is not the key of a cell", row.key.escape_ascii()).into()));
                };
                let mut cell: Vec<_> = axes.iter().zip(labels).collect();
                cell.sort();
                let cell = cell.into_iter().map(|(_, label)| label).collect();
                found.insert(cell, Content::from(&row.value));
            }
            match &first {
                Some(first) if *first != found => {
                    return Ok(Err(format!("one order contains {first:?}, another one {found:?}").into()));
                }
                _ => first = Some(found),
            }
        }
        Ok(first.ok_or_else(|| "no order".into()))
    }
}
