//! The operations of the workload and their answers as plain data, and how they are drawn.

use super::{
    Feeds,
    schema::{Content, Feed, STORES, Version},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Calls in one transaction.
    Write(Vec<Act>),
    /// Reads up to so many further pages of a feed, each in a transaction of its own, until there are no more
    /// entries.
    Poll(Feed, usize),
    /// Reads a whole feed in one transaction, in reverse if true.
    Look(Feed, bool),
}

/// A call of a transaction, with the store and the primary key of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Saves a record.
    Save(usize, i64, Content),
    /// Saves a record if there is none with its primary key.
    Insert(usize, i64, Content),
    /// Adds one to the value of a record.
    Touch(usize, i64),
    /// Deletes a record.
    Delete(usize, i64),
    /// Deletes all records.
    Clear(usize),
    /// The version of a record.
    Version(usize, i64),
    /// The entries of a feed that the transaction sees.
    Entries(Feed),
    /// Gives the entries of what was saved to the transaction: it can neither read there from then on, nor
    /// take them back.
    Flush,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// What the calls of a transaction returned.
    Written(Vec<ActAnswer>),
    /// The reader that has read the pages, and the pages.
    Polled(u64, Vec<Page>),
    /// A whole feed.
    Entries(Vec<Entry>),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActAnswer {
    /// Whether there was a record.
    Was(bool),
    /// All records are deleted.
    Cleared,
    /// The version of a record, if there is one.
    Version(Option<Version>),
    /// Entries of a feed.
    Entries(Vec<Entry>),
    /// The entries were given to the transaction.
    Flushed,
    /// Refused: the entries of the record were given to the transaction.
    TooLate,
}

/// A page of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The read version of its transaction.
    pub read_version: i64,
    /// The version of the last entry before it.
    pub after: Option<Version>,
    /// The entries.
    pub entries: Vec<Entry>,
    /// Whether there are no further entries.
    pub ends: bool,
}

/// An entry of a feed, and the record that was loaded for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// The version.
    pub version: Version,
    /// The primary key.
    pub id: i64,
    /// The version and the value of the record.
    pub record: Option<(Option<Version>, i64)>,
}

const TOPICS: [&str; 3] = ["", "a", "a\0"];

impl Feeds {
    /// Draws the operations of a client.
    pub(super) fn drawn(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let own = self.apart.then(|| client as i64 * self.records..(client as i64 + 1) * self.records);
        let id = own.unwrap_or(0..self.records);
        let store = 0..STORES;
        let topic = option::weighted(0.8, select(&TOPICS[..self.topics]).prop_map(str::to_owned)).boxed();
        let content = (option::weighted(0.8, topic.clone()), 0..3i64)
            .prop_map(|(topic, value)| Content { topic, value });
        let feed =
            (store.clone(), option::weighted(0.4, topic)).prop_map(|(store, topic)| Feed { store, topic });
        let of = (store.clone(), id).boxed();
        let saved = (of.clone(), content).boxed();
        // Calls that read or change more than one record conflict with those of others.
        let wide = u32::from(!self.apart);
        let act = prop_oneof![
            10 => saved.clone().prop_map(|((store, id), content)| Act::Save(store, id, content)),
            4 => saved.prop_map(|((store, id), content)| Act::Insert(store, id, content)),
            4 => of.clone().prop_map(|(store, id)| Act::Touch(store, id)),
            6 => of.clone().prop_map(|(store, id)| Act::Delete(store, id)),
            2 => of.prop_map(|(store, id)| Act::Version(store, id)),
            wide => store.prop_map(Act::Clear),
            wide => feed.clone().prop_map(Act::Entries),
            5 => Just(Act::Flush),
        ];
        let write = vec(act, 1..self.together + 1).prop_map(|mut acts| {
            let mut flushed = false;
            acts.retain(|act| {
                flushed |= *act == Act::Flush;
                !(flushed && matches!(act, Act::Entries(_)))
            });
            Op::Write(acts)
        });
        let [writes, polls] = self.mix;
        let op = prop_oneof![
            4 * writes => write,
            3 * polls => (feed.clone(), 1..5usize).prop_map(|(feed, pages)| Op::Poll(feed, pages)),
            polls => (feed, any::<bool>()).prop_map(|(feed, reverse)| Op::Look(feed, reverse)),
        ];
        vec(op, self.operations.clone()).boxed()
    }
}
