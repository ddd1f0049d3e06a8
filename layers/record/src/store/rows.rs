//! The rows of one record: its bytes, in one row or split over several, and its version.

use super::{RecordContext, StoredRecord, suffix};
use crate::{error::Error, value::Tuple, version::RecordVersion};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Element, Subspace, VersionstampOffset};
use shaketable_tx::{
    MutationType, Transaction, VALUE_SIZE_LIMIT,
    limits::{self, TooLarge},
    reachable,
};

/// The bytes of a record in each of its rows: more are split.
pub(super) const PART_BYTES: usize = VALUE_SIZE_LIMIT;

/// What a transaction counts for each row that is set, beside its key and value: a mutation and a conflict
/// range.
const SET_OVERHEAD: usize = 44 + 24;

/// The rows of one record that were found, and what is in them.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The parts in order, each with the last element of its key.
    parts: Vec<(i64, Bytes)>,
    /// The record's version.
    pub version: Option<RecordVersion>,
    /// How many rows there are.
    pub rows: usize,
    /// The bytes of their keys.
    pub key_bytes: usize,
    /// The bytes of their values.
    pub value_bytes: usize,
}

impl Found {
    /// Takes a row, by the last element of its key. Fails with [`Error::Torn`] if it is not a row of a
    /// record.
    pub fn row(&mut self, primary_key: &Tuple, last: i64, key: usize, value: Bytes) -> Result<(), Error> {
        self.rows += 1;
        self.key_bytes += key;
        self.value_bytes += value.len();
        match last {
            suffix::VERSION => self.version = Some(version_of(primary_key, &value)?),
            suffix::UNSPLIT.. => self.parts.push((last, value)),
            _ => return Err(torn(primary_key, &format!("it has a row {last}"))),
        }
        Ok(())
    }

    /// Takes a version that the transaction has written and cannot read.
    pub fn written(&mut self, key: usize, version: Option<RecordVersion>) {
        if version.is_some() {
            self.rows += 1;
            self.key_bytes += key;
            self.value_bytes += VERSION_VALUE_BYTES;
        }
        self.version = version;
    }

    /// The bytes of the record; `None` if there are no rows at all. The rows may have come in either order.
    pub fn bytes(&mut self, primary_key: &Tuple) -> Result<Option<Bytes>, Error> {
        self.parts.sort_by_key(|(last, _)| *last);
        match &self.parts[..] {
            [] if self.rows == 0 => Ok(None),
            [] => Err(torn(primary_key, "it has a version only")),
            [(suffix::UNSPLIT, value)] => Ok(Some(value.clone())),
            [(suffix::UNSPLIT, _), ..] => Err(torn(primary_key, "it is in one row and in parts")),
            parts => {
                let in_order =
                    parts.iter().zip(suffix::FIRST_PART..).all(|((last, _), expected)| *last == expected);
                let full = parts[..parts.len() - 1].iter().all(|(_, value)| value.len() == PART_BYTES);
                if !in_order || !full {
                    return Err(torn(primary_key, "a part is missing"));
                }
                let mut bytes = BytesMut::with_capacity(self.value_bytes);
                parts.iter().for_each(|(_, value)| bytes.extend_from_slice(value));
                Ok(Some(bytes.freeze()))
            }
        }
    }
}

fn torn(primary_key: &Tuple, reason: &str) -> Error {
    Error::Torn { primary_key: primary_key.clone(), reason: reason.into() }
}

/// A packed tuple of one versionstamp.
pub(super) const VERSION_VALUE_BYTES: usize = 13;

/// The version in a row's value.
pub(super) fn version_of(primary_key: &Tuple, value: &[u8]) -> Result<RecordVersion, Error> {
    match Tuple::unpack(value).as_ref().map(Tuple::elements) {
        Some([Element::Versionstamp(stamp)]) => Ok(RecordVersion::from(stamp.clone())),
        _ => Err(torn(primary_key, "its version is not a versionstamp")),
    }
}

/// The key of one of a record's rows.
pub(super) fn row_key(record: &Subspace, last: i64) -> Vec<u8> {
    record.pack(&(last,))
}

/// The rows of a record that is to be saved.
pub(super) struct Planned {
    pub rows: Vec<(Vec<u8>, Bytes)>,
    pub version: Option<RecordVersion>,
    version_key: Vec<u8>,
}

impl Planned {
    /// The rows of a record in this subspace. Fails if a key is too long, if a record of more than one row
    /// may not be split, or if the rows do not fit into a transaction that has `used` bytes already.
    pub fn new(
        record: &Subspace,
        bytes: &Bytes,
        version: Option<RecordVersion>,
        split: bool,
        used: usize,
    ) -> Result<Planned, TooLarge> {
        let key = |last| row_key(record, last);
        if !split {
            limits::value_up_to(PART_BYTES, &key(suffix::UNSPLIT), bytes)?;
        }
        // Before the bytes are cut: a record of any size is refused at little cost.
        limits::transaction(used.saturating_add(bytes.len()))?;
        let rows: Vec<_> = match bytes.len() {
            ..=PART_BYTES => vec![(key(suffix::UNSPLIT), bytes.clone())],
            length => {
                reachable!("record: a record is split over several rows");
                (0..length)
                    .step_by(PART_BYTES)
                    .zip(suffix::FIRST_PART..)
                    .map(|(begin, last)| (key(last), bytes.slice(begin..length.min(begin + PART_BYTES))))
                    .collect()
            }
        };
        let version_key = key(suffix::VERSION);
        rows.iter().try_for_each(|(key, _)| limits::key(key))?;
        limits::key(&version_key)?;
        let set = |key: &[u8], value: usize| SET_OVERHEAD + 3 * key.len() + value;
        let writes: usize = rows.iter().map(|(key, value)| set(key, value.len())).sum();
        let version_row = version.as_ref().map_or(0, |_| set(&version_key, VERSION_VALUE_BYTES));
        limits::transaction(used.saturating_add(writes + version_row))?;
        Ok(Planned { rows, version, version_key })
    }

    /// How many rows there are, and the bytes of their keys and values.
    pub fn size(&self) -> (usize, usize, usize) {
        let keys: usize = self.rows.iter().map(|(key, _)| key.len()).sum();
        let values: usize = self.rows.iter().map(|(_, value)| value.len()).sum();
        match self.version {
            Some(_) => (self.rows.len() + 1, keys + self.version_key.len(), values + VERSION_VALUE_BYTES),
            None => (self.rows.len(), keys, values),
        }
    }

    /// Writes the rows over those of `old`.
    pub fn write<T: Transaction>(
        self,
        context: &RecordContext<T>,
        old: Option<&StoredRecord>,
        record: &Subspace,
    ) -> Result<(), Error> {
        let tx = context.transaction()?;
        let is_covered = |old: &StoredRecord| {
            let old_parts = old.rows - usize::from(old.version.is_some());
            old_parts == 1 && self.rows.len() == 1 && (old.version.is_none() || self.version.is_some())
        };
        if !old.is_none_or(is_covered) {
            reachable!("record: the rows of the old record are not all overwritten");
            clear(context, record)?;
        }
        self.rows.iter().for_each(|(key, value)| tx.set(key, value));
        if let Some(version) = self.version {
            let (mut packed, offset) = Tuple::from(version.clone()).pack_stamped();
            match offset {
                VersionstampOffset::OneIncomplete { offset } => {
                    packed.extend_from_slice(&offset.to_le_bytes());
                    tx.atomic_op(&self.version_key, &packed, MutationType::SetVersionstampedValue);
                }
                _ => tx.set(&self.version_key, &packed),
            }
            context.note_version(self.version_key, Some(version));
        }
        Ok(())
    }
}

/// All rows of one record: `[begin, end)`.
pub(super) fn rows_of(record: &Subspace) -> (Vec<u8>, Vec<u8>) {
    record.range()
}

/// Removes the rows of a record.
pub(super) fn clear<T: Transaction>(context: &RecordContext<T>, record: &Subspace) -> Result<(), Error> {
    let (begin, end) = rows_of(record);
    context.clear_range(&begin, &end)
}
