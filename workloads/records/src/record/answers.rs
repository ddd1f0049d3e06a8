//! What calls tell of records and of lists: short enough for a session's slot.

use super::plain::Record;
use serde::{Deserialize, Serialize};
use shaketable_sim::trace::hash_bytes;
use std::fmt::Debug;

/// A record as answers contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Its primary key, packed.
    pub primary_key: Vec<u8>,
    /// Its type.
    pub of: String,
    /// A hash of the record.
    pub hash: u64,
    /// Its version; the first ten bytes are `0xff` in the transaction that writes it.
    pub version: Option<[u8; 12]>,
    /// How many rows it has, and the bytes of their keys and values.
    pub size: (usize, usize, usize),
}

/// A list of any length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    count: usize,
    hash: u64,
    start: Vec<String>,
}

/// A list as an answer.
pub(super) fn listed<I: Debug>(items: impl IntoIterator<Item = I>) -> Listed {
    let mut list = Listed { count: 0, hash: 0, start: Vec::new() };
    for item in items {
        let item = format!("{item:?}");
        list.count += 1;
        list.hash = hash_bytes(list.hash, item.as_bytes());
        if list.start.len() < 3 {
            list.start.push(item.chars().take(200).collect());
        }
    }
    list
}

/// A hash of a record.
pub(super) fn hash(record: &Record) -> u64 {
    hash_bytes(0, &record.stored())
}
