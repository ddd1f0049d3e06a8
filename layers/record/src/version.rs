//! The versions of records: the order in which they were last written.

use foundationdb_tuple::Versionstamp;
use std::fmt;

/// When a record was last written: ten bytes that the commit assigns, and two that number the records of one
/// transaction. Twelve bytes, ordered as the writes were.
///
/// In the transaction that writes it a version is incomplete: only the last two bytes are known. An
/// incomplete version is later than every complete one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordVersion(Versionstamp);

impl RecordVersion {
    /// The version that a commit completes, of the record with this number in its transaction.
    pub fn incomplete(local: u16) -> RecordVersion {
        RecordVersion(Versionstamp::incomplete(local))
    }

    /// A complete version: the ten bytes of the commit, and the record's number in its transaction.
    pub fn complete(global: [u8; 10], local: u16) -> RecordVersion {
        RecordVersion(Versionstamp::complete(global, local))
    }

    /// The version with these twelve bytes.
    pub fn from_bytes(bytes: [u8; 12]) -> RecordVersion {
        RecordVersion(Versionstamp::from(bytes))
    }

    /// Its twelve bytes; the first ten are `0xff` if it is incomplete.
    pub fn as_bytes(&self) -> &[u8; 12] {
        self.0.as_bytes()
    }

    /// Whether its transaction has committed.
    pub fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// The record's number in its transaction.
    pub fn local(&self) -> u16 {
        self.0.user_version()
    }

    /// The version that this one becomes when its transaction commits with this versionstamp.
    pub fn completed(&self, global: [u8; 10]) -> RecordVersion {
        match self.is_complete() {
            true => self.clone(),
            false => RecordVersion::complete(global, self.local()),
        }
    }

    /// As an element of a key.
    pub fn stamp(&self) -> Versionstamp {
        self.0.clone()
    }
}

impl From<Versionstamp> for RecordVersion {
    fn from(stamp: Versionstamp) -> RecordVersion {
        RecordVersion(stamp)
    }
}

impl fmt::Display for RecordVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&crate::value::Shown(&crate::value::Value::Versionstamp(self.stamp())), f)
    }
}
