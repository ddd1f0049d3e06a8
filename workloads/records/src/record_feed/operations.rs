//! What operations are given and what they return, as plain data, and how it is drawn.

use super::{
    Feeds,
    schema::{Content, Feed, STORES, Version},
};
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};

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
    /// Draws a call of a client's transaction.
    pub(super) fn act(&self, client: usize) -> BoxedStrategy<Act> {
        let own = self.apart.then(|| client as i64 * self.records..(client as i64 + 1) * self.records);
        let of = (0..STORES, own.unwrap_or(0..self.records)).boxed();
        let content = (option::weighted(0.8, self.topic()), 0..3i64)
            .prop_map(|(topic, value)| Content { topic, value });
        let saved = (of.clone(), content).boxed();
        // Calls that read or change more than one record conflict with those of others.
        let wide = u32::from(!self.apart);
        let act = prop_oneof![
            10 => saved.clone().prop_map(|((store, id), content)| Act::Save(store, id, content)),
            4 => saved.prop_map(|((store, id), content)| Act::Insert(store, id, content)),
            4 => of.clone().prop_map(|(store, id)| Act::Touch(store, id)),
            6 => of.clone().prop_map(|(store, id)| Act::Delete(store, id)),
            2 => of.prop_map(|(store, id)| Act::Version(store, id)),
            wide => (0..STORES).prop_map(Act::Clear),
            wide => self.feed().prop_map(Act::Entries),
            5 => Just(Act::Flush),
        ];
        act.boxed()
    }

    /// Draws a feed.
    pub(super) fn feed(&self) -> BoxedStrategy<Feed> {
        let drawn = (0..STORES, option::weighted(0.4, self.topic()));
        drawn.prop_map(|(store, topic)| Feed { store, topic }).boxed()
    }

    /// Draws the topic of a post, if it has one.
    fn topic(&self) -> BoxedStrategy<Option<String>> {
        option::weighted(0.8, select(&TOPICS[..self.topics]).prop_map(str::to_owned)).boxed()
    }
}
