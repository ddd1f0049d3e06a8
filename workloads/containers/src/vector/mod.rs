//! `vector`: the rows of a matrix are vectors to which elements are pushed and from which they are popped,
//! swapped, cut and scanned.
//!
//! There are few rows, so that pushes meet. Some indexes leave holes, and the default is not always empty; in
//! few seeds it is too long to be stored. In some seeds an element has so high an index that nothing can be
//! pushed after it, and no scan can return everything.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::{Model, Row};
pub use operations::{Answer, Call, Op};

use crate::shared;
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use operations::{INDEXES, SMALL};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Content, Specimen},
    weakened::Span,
    workload::{Bug, Outcome},
};
use shaketable_layers::vector::{self, Error, MAX_VALUE_BYTES, Matrix};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Db, Env, Isolation, Tx, once::Session};
use std::sync::LazyLock;

/// The subspace of the matrix.
fn space() -> Subspace {
    Subspace::from("vector")
}

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Vector {
    rows: i64,
    /// The length of the value that holes are read as, in bytes.
    default: usize,
    /// How many of [`INDEXES`] are used.
    indexes: usize,
    planted: Option<Planted>,
}

impl Vector {
    fn matrix(&self) -> Matrix {
        match self.default {
            0 => Matrix::new(space()),
            bytes => Matrix::with_default(space(), vec![b'd'; bytes]),
        }
    }

    /// A row of the matrix. If holes are empty, it is opened as a vector, whose key schema is the same.
    fn row(&self, row: i64) -> Result<vector::Vector, Error> {
        let of_matrix = self.matrix().row(row)?;
        Ok(if self.default == 0 { vector::Vector::new(space().subspace(&(row,))) } else { of_matrix })
    }

    fn default(&self) -> Content {
        // The long one is made once, because each call of the model asks for it.
        static LONG: LazyLock<Content> = LazyLock::new(|| Content::of(b'd', MAX_VALUE_BYTES + 1));
        match self.default {
            bytes if bytes > MAX_VALUE_BYTES => LONG.clone(),
            bytes => Content::of(b'd', bytes),
        }
    }

    /// Performs a call correctly.
    async fn right(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        let matrix = self.matrix();
        let row = self.row(op.row)?;
        let value = |byte: &u8, length: &usize| vec![*byte; *length];
        Ok(match &op.call {
            Call::Push(byte, length) => Answer::Number(row.push(tx, &value(byte, length)).await?),
            Call::Pop => Answer::Value(row.pop(tx).await?.as_ref().map(Content::from)),
            Call::Set(index, byte, length) => {
                row.set(tx, *index, &value(byte, length)).await?;
                Answer::Written
            }
            Call::Swap(one, other) => {
                row.swap(tx, *one, *other).await?;
                Answer::Written
            }
            Call::Resize(size) => {
                row.resize(tx, *size).await?;
                Answer::Written
            }
            Call::Truncate(size) => {
                row.truncate(tx, *size).await?;
                Answer::Written
            }
            Call::TruncateRows(rows) => {
                matrix.truncate(tx, *rows).await?;
                Answer::Written
            }
            Call::Get(index) => Answer::Value(Some(Content::from(&row.get(tx, *index, isolation).await?))),
            Call::Back => Answer::Value(row.back(tx, isolation).await?.as_ref().map(Content::from)),
            Call::Size => Answer::Number(row.size(tx, isolation).await?),
            Call::IsEmpty => Answer::Is(row.is_empty(tx, isolation).await?),
            Call::Scan(start, end) => {
                let elements = row.scan(tx, *start, *end, isolation).await?;
                Answer::Scan(elements.iter().map(Content::from).collect())
            }
            Call::Stored(start, end) => {
                let stored = row.stored(tx, *start, *end, isolation).await?.into_iter();
                let contents = stored.map(|(index, value)| (index, Content::from(&value)));
                Answer::Stored(contents.filter(|(_, value)| *value != self.default()).collect())
            }
            Call::Rows => Answer::Number(matrix.rows(tx, isolation).await?),
        })
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Vector>>()
}

impl Specimen for Vector {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "vector";
    const ABOUT: &'static str = "sparse vectors, the rows of a matrix, grow, shrink and are scanned";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "vector: a hole is read",
            "vector: a pop finds nothing",
            "vector: a pop uncovers a hole",
            "vector: a cut uncovers a hole",
            "vector: a scan ends in a hole",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Vector {
        Vector {
            rows: rng.range(1..4) as i64,
            default: if rng.chance(0.03) { MAX_VALUE_BYTES + 1 } else { rng.range(0..3) as usize },
            indexes: *rng.pick(&[3, SMALL, SMALL, SMALL + 2, INDEXES.len()]),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let place = |row| INDEXES[..SMALL].iter().map(move |i| space().pack(&(row, *i)).into());
        (0..self.rows).flat_map(place).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        vec![space().range()]
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        use Call::*;
        matches!(op.call, Get(_) | Back | Size | IsEmpty | Scan(..) | Stored(..) | Rows)
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op.call, Call::Set(..))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::ScanConflicts)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.right(tx, op, isolation).await,
        }
    }

    async fn apply_planted(
        &self,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.planted, ops) {
            (Some(Planted::SizeElsewhere), [Op { row, call: Call::Push(byte, length) }]) => {
                Some(planted::push_elsewhere(self, session, *row, &vec![*byte; *length]).await)
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

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        let rows = shared::rows(tx, &space()).await?;
        Ok(self.read(&rows).map_err(Misfit::from))
    }
}
