//! What operations are given and what they return, as plain data, and how it is drawn.

use super::Upload;
use crate::blob::{self, Blob, BlobAnswer, BlobOp, Data};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{Content, Specimen},
    strategies,
};
use shaketable_layers::blob::{Expect, Generation, MAX_PARTS};

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
    /// Draws an upload that goes step by step.
    pub(super) fn life(&self, client: usize) -> BoxedStrategy<Life> {
        let (blob, part) = (self.blob(), self.chunk * self.part);
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
        let life = (self.some_name(), self.data(), Self::wish(), late, steps, calls(), calls()).prop_map(
            |(name, data, wish, late, steps, before, behind)| Life {
                name,
                data,
                wish,
                late,
                steps,
                calls: [before, behind],
            },
        );
        life.boxed()
    }
}

impl Life {
    /// Gives all data that it writes tags of their own.
    pub(super) fn tag(&mut self, client: usize, mut next: impl FnMut() -> usize) {
        self.data.tag(client, next());
        self.calls.iter_mut().flatten().for_each(|call| Blob::number(call, client, next()));
        for deed in self.steps.iter_mut().flatten() {
            if let Deed::PutOther(_, data) = deed {
                data.tag(client, next());
            }
        }
    }
}

/// Draws a number of uploads, around those that a collector observes in one transaction.
pub(super) fn crowds() -> impl Strategy<Value = usize> {
    prop_oneof![2 => strategies::counts(PAGE), 1 => strategies::counts(2 * PAGE), 1 => Just(5 * PAGE / 2)]
}
