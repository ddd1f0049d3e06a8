//! The cursors of plans.

mod distinct;
mod in_turn;
mod merge;

#[cfg(test)]
mod tests;

pub(super) use distinct::Distinct;
pub(super) use in_turn::InTurn;
pub(super) use merge::{Keep, Merge};

use crate::{index::IndexEntry, metadata::Index, store::StoredRecord, value::Tuple};
use std::sync::Arc;

/// What a step of a plan finds: an entry, a record, or a record with the entry by which it was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is in the order of its scan: the columns that differ, then the primary key.
    pub order: Tuple,
    /// The record's primary key.
    pub primary_key: Tuple,
    /// The entry, and its index.
    pub entry: Option<(Arc<Index>, IndexEntry)>,
    /// The record.
    pub record: Option<StoredRecord>,
}
