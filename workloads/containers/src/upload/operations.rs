//! The operations of the workload and their answers as plain data, and how they are drawn.

use super::{Upload, planted::Planted};
use crate::blob::{self, Blob, BlobAnswer, BlobOp, Data};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{Content, Specimen},
    strategies,
};
use shaketable_layers::blob::{Expect, Generation, MAX_PARTS};

/// One operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Op {
    /// Uploads a blob as a whole.
    Upload(usize, Data, Wish),
    /// Uploads a blob step by step.
    Life(Life),
    /// Begins an upload and abandons it after this many parts; waits until it is collected if true.
    Leave(usize, Data, usize, bool),
    /// Begins this many uploads in one transaction, abandons them, and waits until they are collected.
    Crowd(usize),
    /// Collects what was abandoned.
    Collect,
    /// Uploads so many parts more than there may be.
    TooMany(usize),
    /// Performs calls on blobs in one transaction.
    Calls(Vec<BlobOp>),
    /// Reads a blob page by page, with a pause before each page if true.
    Pages(usize, bool),
}

/// What an uploader expects of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// Nothing.
    Anything,
    /// That it does not exist.
    Absent,
    /// That it is as it was before the upload.
    AsSeen,
}

/// The number of uploads that a collector observes in one transaction.
const PAGE: usize = 100;

/// An upload that goes step by step, and ends with this data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Life {
    pub(super) name: usize,
    pub(super) data: Data,
    pub(super) wish: Wish,
    /// Whether another transaction puts the last part again, without its last byte, during the one that ends
    /// the upload.
    pub(super) late: bool,
    /// The steps; those in one list are performed in one transaction.
    pub(super) steps: Vec<Vec<Deed>>,
    /// Calls in the transaction that ends the upload, before and after the end.
    pub(super) calls: [Vec<BlobOp>; 2],
}

/// A step of an upload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Deed {
    /// Begins it, or begins it again.
    Begin,
    /// Begins it, and then again with other sizes of chunks and of parts, and for another blob.
    BeginOther,
    /// Writes the part with this number.
    Put(u64),
    /// Writes other data as the part with this number.
    PutOther(u64, Data),
    /// Reads which parts exist.
    Parts,
    /// Reads which uploads are in progress, in pages of this size.
    List(usize),
    /// Tries to end it, if something is missing.
    Finish,
    /// Gives it up.
    Abandon,
}

/// What a step returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// Done.
    Done,
    /// Whether the upload was in progress.
    Was(bool),
    /// The parts that exist.
    Parts(Vec<(u64, u64)>),
    /// Refused, with this message.
    Refused(String),
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// What the calls returned.
    Calls(Vec<BlobAnswer>),
    /// The expectation, what the calls before the end returned, the new generation, and what the calls after
    /// the end returned.
    Uploaded(Expect, Vec<BlobAnswer>, Generation, Vec<BlobAnswer>),
    /// The last transaction was refused, with this expectation and this message.
    Refused(Expect, String),
    /// The upload has been collected.
    Collected,
    /// What was read page by page, with its generation.
    Content(Option<(Generation, Content)>),
    /// The blob changed while it was read, from this generation to that one.
    Changed(Generation, Option<Generation>),
    /// Nothing visible.
    Unseen,
}

impl Upload {
    /// Draws the operations of a client.
    pub(super) fn drawn(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let (blob, longest, part) = (self.blob(), self.longest, self.chunk * self.part);
        let name = || 0..self.names.1;
        let length = || {
            prop_oneof![
                3 => 0..=longest,
                2 => blob::edge(vec![self.chunk, part], 4).prop_map(move |n| (n as usize).min(longest)),
            ]
        };
        let data = || length().prop_map(Data::of);
        let wish =
            || prop_oneof![2 => Just(Wish::Anything), 1 => Just(Wish::Absent), 4 => Just(Wish::AsSeen)];
        let deed = prop_oneof![
            4 => Just(Deed::Begin),
            1 => Just(Deed::BeginOther),
            8 => (0..6u64).prop_map(Deed::Put),
            3 => (0..6u64, blob::edge(vec![self.chunk, part], 3))
                .prop_map(move |(number, length)| Deed::PutOther(number, Data::of((length as usize).min(part + 1)))),
            1 => select(vec![MAX_PARTS - 1, MAX_PARTS, u64::MAX])
                .prop_map(|number| Deed::PutOther(number, Data::of(1))),
            2 => Just(Deed::Parts),
            1 => (0..4usize).prop_map(Deed::List),
            4 => Just(Deed::Finish),
            1 => Just(Deed::Abandon),
        ];
        let begin = Just(vec![Deed::Begin]);
        let steps = (begin, vec(vec(deed, 1..4), 0..6))
            .prop_map(|(begin, rest)| std::iter::once(begin).chain(rest).collect::<Vec<_>>());
        let late = proptest::bool::weighted(0.2);
        let calls = || vec(blob.operation(client), 0..3);
        let life = (name(), data(), wish(), late, steps, calls(), calls()).prop_map(
            |(name, data, wish, late, steps, before, behind)| {
                Op::Life(Life { name, data, wish, late, steps, calls: [before, behind] })
            },
        );
        let long = prop_oneof![30 => name(), 1 => 1_000..1_002usize];
        // Uploads that reveal the planted bug are drawn more often.
        let uploads = if self.planted.is_some_and(Planted::uploads) { 30 } else { 6 };
        let op = prop_oneof![
            uploads => (long, data(), wish()).prop_map(|(name, data, wish)| Op::Upload(name, data, wish)),
            8 => life,
            2 => (name(), data(), 0..4usize, any::<bool>())
                .prop_map(|(name, data, most, waits)| Op::Leave(name, data, most, waits)),
            2 * u32::from(self.crowded) => prop_oneof![
                2 => strategies::counts(PAGE),
                1 => strategies::counts(2 * PAGE),
                1 => Just(5 * PAGE / 2),
            ]
            .prop_map(Op::Crowd),
            3 => Just(Op::Collect),
            1 => (1..3usize).prop_map(Op::TooMany),
            8 => vec(blob.operation(client), 1..4).prop_map(Op::Calls),
            5 => (name(), any::<bool>()).prop_map(|(name, pauses)| Op::Pages(name, pauses)),
        ];
        let tagged = move |mut ops: Vec<Op>| {
            let mut number = 0;
            let mut next = || {
                number += 1;
                number
            };
            for op in &mut ops {
                match op {
                    Op::Upload(_, data, _) | Op::Leave(_, data, ..) => data.tag(client, next()),
                    Op::Calls(calls) => calls.iter_mut().for_each(|call| Blob::number(call, client, next())),
                    Op::Life(life) => {
                        life.data.tag(client, next());
                        life.calls.iter_mut().flatten().for_each(|call| Blob::number(call, client, next()));
                        for deed in life.steps.iter_mut().flatten() {
                            if let Deed::PutOther(_, data) = deed {
                                data.tag(client, next());
                            }
                        }
                    }
                    Op::Crowd(_) | Op::Collect | Op::TooMany(_) | Op::Pages(..) => {}
                }
            }
            ops
        };
        vec(op, self.operations.clone()).prop_map(tagged).boxed()
    }
}
