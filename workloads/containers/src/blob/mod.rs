//! `blob`: byte strings that are stored in chunks are written, appended to, overwritten, truncated and read
//! in part.
//!
//! There are few blobs and chunks are small, so that most writes begin or end inside a chunk, at its edge, or
//! cover several chunks. Three kinds of writers use chunk sizes of their own. Some blobs are empty and some
//! do not exist. Some offsets are beyond the end, which the layer refuses, or for which it returns nothing.
//! Offsets and lengths are at the edges of chunks and next to them. Names are prefixes of each other; a few
//! are as long as a key allows, or longer. Some transactions contain a blob that no writer writes: it is
//! larger than one transaction reads, and damaged. A slice must read no chunk that it does not need, and a
//! look at snapshot must not conflict.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;
mod stored;

pub use model::{Model, Stored};
pub(crate) use model::{change, writable};
pub use operations::{Answer, Data, Op};
pub(crate) use operations::{edge, is_read_only, tag};
pub(crate) use stored::{places, space, stored};

use bytes::Bytes;
use client::conflicts;
use operations::{LONG, longest, much_too_long, too_long};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{At, Specimen},
    strategies::CONFUSED,
    workload::Bug,
};
use shaketable_layers::blob::Error;
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Env,
    Isolation::{self, Serializable},
    Transaction, Tx, VALUE_SIZE_LIMIT,
};
use std::fmt::Debug;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// The names: the first of [`CONFUSED`], and how many from there on.
    names: (usize, usize),
    /// The chunk sizes of two kinds of writers; the third kind uses
    /// [`Blobs::new`](shaketable_layers::blob::Blobs::new).
    chunks: [usize; 2],
    /// The maximum length of what is written, in bytes.
    longest: usize,
    planted: Option<Planted>,
}

impl Blob {
    /// Blobs with these names and chunk sizes, for another workload.
    pub(crate) fn among(names: (usize, usize), chunks: [usize; 2], longest: usize) -> Blob {
        Blob { names, chunks, longest, planted: None }
    }

    pub(crate) fn name(&self, name: usize) -> &'static [u8] {
        match name {
            _ if name == LONG[0] => longest(),
            _ if name == LONG[1] => too_long(),
            _ if name == LONG[2] => much_too_long(),
            _ => CONFUSED[(self.names.0 + name % self.names.1) % CONFUSED.len()],
        }
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Blob>>()
}

impl Specimen for Blob {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "blob";
    const ABOUT: &'static str = "byte strings in chunks: written, appended to, cut off, read in part";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["blob: a write begins and ends in different chunks"]
    }

    fn rare_kinds() -> &'static [&'static str] {
        &["Sizes", "Foreign"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Blob {
        // In a few seeds a chunk is as large as a value can be.
        let chunk = match rng.chance(0.04) {
            true => VALUE_SIZE_LIMIT,
            false => *rng.pick(&[1, 4, 4, 16, 16, 64, 64, 500, 500]),
        };
        Blob {
            names: (rng.below(CONFUSED.len() as u64) as usize, *rng.pick(&[1, 2, 2, 3, 5])),
            chunks: [chunk, *rng.pick(&[chunk, 7, 100])],
            longest: if chunk == VALUE_SIZE_LIMIT { chunk + 1 } else { 3 * chunk + 1 },
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let place = |name: usize| {
            let (manifest, content) = places(self.name(name));
            [manifest.into(), content.pack(&(self.chunks[0] as u64,)).into()]
        };
        (0..self.names.1).flat_map(place).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.calls()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        tag(op, client, number);
    }

    fn is_read_only(op: &Op) -> bool {
        is_read_only(op)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        let dropped = |planted| [Planted::SliceAtSnapshot, Planted::SnapshotConflicts].contains(&planted);
        is_read_only(op) && self.planted.is_none_or(dropped)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        let (name, bounds) = match op {
            Op::ReadRange(name, start, length) | Op::ReadRangeOf(name, _, start, length) => {
                (*name, Some((*start, start.checked_add(*length))))
            }
            Op::Size(_, name) | Op::Exists(name) | Op::Stat(name) => (*name, Some((0, Some(0)))),
            _ => (0, None),
        };
        // Conflict ranges of keys beyond the size limit are not reported.
        let bounds = bounds.filter(|_| name < LONG[0] && isolation == Serializable);
        let Some((start, Some(end))) = bounds else { return self.do_it(tx, op, isolation).await };
        let tx = &tx.writing().await;
        let name = self.name(name);
        let content = places(name).1;
        let (sizes, before) = (self.chunk(tx, name).await?, conflicts(tx, &content).await?);
        let answer = self.do_it(tx, op, isolation).await?;
        let end = sizes.map_or(0, |(size, _)| end.min(size));
        self.sparing(tx, &content, before, sizes.map(|(_, chunk)| chunk), (start, end)).await?;
        Ok(answer)
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        self.replayed(model, op, at)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        Ok(stored(tx).await?.map_err(Misfit::from))
    }
}
