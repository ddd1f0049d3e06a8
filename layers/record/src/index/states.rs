//! Whether an index can be read and is written, and how that is stored.

use crate::{error::Error, value::Tuple};
use foundationdb_tuple::{Element, Subspace};
use shaketable_tx::{Isolation, RangeOption, Transaction};
use std::{collections::BTreeMap, fmt};

/// Whether an index is complete and up to date. Stored by the name of the index, as the number it has here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i64)]
pub enum IndexState {
    /// It has the keys of all records.
    #[default]
    Readable = 0,
    /// It is written, but does not have the keys of all older records: it is being built.
    WriteOnly = 1,
    /// It is not written.
    Disabled = 2,
    /// It has the keys of all records, but some records violate its uniqueness.
    ReadableUniquePending = 3,
}

impl IndexState {
    fn from_number(number: i64) -> Option<IndexState> {
        use IndexState::*;
        [Readable, WriteOnly, Disabled, ReadableUniquePending]
            .into_iter()
            .find(|state| *state as i64 == number)
    }

    /// Whether the index has the keys of all records.
    pub fn is_scannable(self) -> bool {
        matches!(self, IndexState::Readable | IndexState::ReadableUniquePending)
    }
}

impl fmt::Display for IndexState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IndexState::Readable => "readable",
            IndexState::WriteOnly => "write-only",
            IndexState::Disabled => "disabled",
            IndexState::ReadableUniquePending => "readable, with violations of its uniqueness",
        })
    }
}

/// The states of the indexes that are not readable, by name.
pub(crate) type States = BTreeMap<String, IndexState>;

/// Reads the states of a store's indexes.
pub(crate) async fn read<T: Transaction>(tx: &T, states: &Subspace) -> Result<States, Error> {
    let rows = tx.get_range_all(RangeOption::from(states.range()), Isolation::Serializable).await?;
    let state = |key: &[u8], value: &[u8]| {
        let name = key.strip_prefix(states.bytes()).and_then(Tuple::unpack)?;
        let number = Tuple::unpack(value)?;
        match (name.elements(), number.elements()) {
            ([Element::String(name)], [Element::Int(number)]) => {
                Some((name.to_string(), IndexState::from_number(*number)?))
            }
            _ => None,
        }
    };
    let read = |row: &shaketable_tx::KeyValue| {
        state(&row.key, &row.value).ok_or_else(|| Error::foreign("the state of an index", &row.key))
    };
    rows.iter().map(read).collect()
}
