//! `encoding`: county populations are stored under keys of several encodings, and read back by state and by
//! range.
//!
//! The keys of a run have two or three columns, each with one encoding: integers of one to eight bytes, text
//! by code point, text in the order of a language, or floats. Parts are those that weaker encodings confuse
//! or displace: numbers on both sides of zero and of where another byte is needed, numbers with all bits set,
//! text with tabs and zero bytes, code points after the surrogates, names that differ in case or accents,
//! zeros, and NaN. The extremes of every width are used, and the numbers one beyond. A few numbers do not
//! fit, a few parts have the wrong type for their column, a few columns have an impossible width, and a few
//! keys and values are too large.

#[cfg(test)]
mod bounds;
mod columns;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use columns::Kind;
pub use model::Model;
pub use operations::{Answer, Op, Shown};

use bytes::Bytes;
use columns::{POOL, collation, text};
use foundationdb_tuple::Subspace;
use model::{answer, populations};
use operations::large;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{At, Content, Specimen},
    workload::Bug,
};
use shaketable_layers::encoding::{Collation, Column, Distinguishes, Error, Ordered, Part};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Env,
    Isolation::{self, Serializable},
    Transaction, Tx,
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Encoding {
    kinds: Vec<Kind>,
    /// The parts of each column's pool that are used.
    parts: Vec<Vec<u8>>,
    planted: Option<Planted>,
}

fn space() -> Subspace {
    Subspace::from("population")
}

impl Encoding {
    /// Performs a call correctly, a look at this isolation.
    async fn call(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        let map = Ordered::new(space(), self.columns()?)?;
        Ok(match op {
            Op::Set(key, population) => {
                map.set(tx, &self.key(key), population.to_string().as_bytes()).await?;
                Answer::Written
            }
            Op::SetLarge(key, beyond) => {
                map.set(tx, &self.key(key), &large(*beyond)).await?;
                Answer::Written
            }
            Op::Get(key) => {
                let value = map.get(tx, &self.key(key), isolation).await?;
                Answer::Population(value.as_ref().map(Content::from))
            }
            Op::Delete(key) => {
                map.delete(tx, &self.key(key)).await?;
                Answer::Written
            }
            Op::Under(prefix) => answer(&map.under(tx, &self.key(prefix), isolation).await?),
            Op::Between(from, to) => {
                answer(&map.between(tx, &self.key(from), &self.key(to), isolation).await?)
            }
            Op::Page(prefix, after, most) => {
                let (prefix, after) = (self.key(prefix), after.as_ref().map(|after| self.key(after)));
                answer(&map.page(tx, &prefix, after.as_deref(), *most, isolation).await?)
            }
            Op::Width(bytes) => {
                // A read, so that the call has a place in the history.
                tx.reading().await.get(space().bytes(), Serializable).await?;
                let mut out = Vec::new();
                Column::Unsigned(*bytes).encode(&Part::Unsigned(0), &mut out)?;
                Column::Signed(*bytes).encode(&Part::Signed(0), &mut out)?;
                Answer::Encoded(out.len())
            }
            Op::Compare(a, b, tells) => {
                tx.reading().await.get(space().bytes(), Serializable).await?;
                let (collation, a, b) = (collation(*tells)?, text(*a), text(*b));
                Answer::Compared(collation.compare(a, b) as i8, collation.key(a) == collation.key(b))
            }
            Op::NoLanguage => {
                tx.reading().await.get(space().bytes(), Serializable).await?;
                Collation::new("no language", Distinguishes::Case)?;
                Answer::Written
            }
        })
    }

    fn key(&self, numbers: &[u8]) -> Vec<Part> {
        // In a key with too many parts the last column is repeated.
        let kind = |at: usize| self.kinds[at.min(self.kinds.len() - 1)];
        numbers.iter().enumerate().map(|(at, number)| kind(at).part(*number)).collect()
    }

    fn columns(&self) -> Result<Vec<Column>, Error> {
        self.kinds.iter().map(|kind| kind.column()).collect()
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Encoding>>()
}

impl Specimen for Encoding {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "encoding";
    const ABOUT: &'static str =
        "populations under keys whose order is that of integers, text, languages, floats";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn rare_kinds() -> &'static [&'static str] {
        &["NoLanguage"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Encoding {
        let planted = bug.and_then(Planted::named);
        let mut kinds: Vec<Kind> = (0..rng.range(2..4)).map(|_| Kind::draw(rng)).collect();
        if let Some(needed) = planted.map(Planted::kinds) {
            kinds[..needed.len()].copy_from_slice(needed);
        }
        // The layer refuses keys that are too large; a bug with keys of its own does not use the layer.
        let most = if planted.is_some_and(Planted::has_own_keys) { 24 } else { u64::from(POOL) - 1 };
        let mut pool = |_| (0..rng.range(2..9)).map(|_| rng.below(most) as u8).collect();
        Encoding { parts: (0..kinds.len()).map(&mut pool).collect(), kinds, planted }
    }

    fn keys(&self) -> Vec<Bytes> {
        let Ok(columns) = self.columns() else { return Vec::new() };
        let first = |number: &u8| {
            let mut key = space().into_bytes();
            columns[0].encode(&self.kinds[0].part(*number), &mut key).ok().map(|()| Bytes::from(key))
        };
        self.parts[0].iter().filter_map(first).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        !matches!(op, Op::Set(..) | Op::SetLarge(..) | Op::Delete(_))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Set(..) | Op::SetLarge(..) | Op::Delete(_))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Under(_) | Op::Between(..) | Op::Page(..))
            && self.planted.is_none_or(|planted| planted == Planted::PageAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.call(tx, op, isolation).await,
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
        if self.planted.is_some_and(Planted::has_own_keys) {
            return Ok(Ok(Model {
                rows: populations(&planted::under(self, tx, space().into_bytes()).await?),
            }));
        }
        let rows = match self.columns().and_then(|columns| Ordered::new(space(), columns)) {
            Ok(map) => map.under(tx, &[], Serializable).await,
            Err(e) => Err(e),
        };
        match rows {
            Ok(rows) => Ok(Ok(Model { rows: populations(&rows) })),
            Err(Error::Fdb(e)) => Err(e),
            Err(e) => Ok(Err(e.to_string().into())),
        }
    }
}
