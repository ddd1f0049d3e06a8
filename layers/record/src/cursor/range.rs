//! Ranges of tuples.

use crate::value::Tuple;
use foundationdb_tuple::Subspace;

/// One end of a range of tuples. A tuple that begins with the end's elements is at the end, like that tuple
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// No end.
    Open,
    /// Tuples that begin with this one are in the range.
    Inclusive(Tuple),
    /// Tuples that begin with this one are not in the range.
    Exclusive(Tuple),
}

/// A range of tuples, as they are ordered when packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleRange {
    /// Where it begins.
    pub low: Endpoint,
    /// Where it ends.
    pub high: Endpoint,
}

impl TupleRange {
    /// All tuples.
    pub fn all() -> TupleRange {
        TupleRange { low: Endpoint::Open, high: Endpoint::Open }
    }

    /// The tuples that begin with `prefix`.
    pub fn all_of(prefix: impl Into<Tuple>) -> TupleRange {
        let prefix = prefix.into();
        TupleRange { low: Endpoint::Inclusive(prefix.clone()), high: Endpoint::Inclusive(prefix) }
    }

    /// The tuples between two ends.
    pub fn between(low: Endpoint, high: Endpoint) -> TupleRange {
        TupleRange { low, high }
    }

    /// This range of what follows `prefix`.
    pub fn after(self, prefix: &Tuple) -> TupleRange {
        let with = |end| match end {
            Endpoint::Open => Endpoint::Inclusive(prefix.clone()),
            Endpoint::Inclusive(tuple) => Endpoint::Inclusive(prefix.followed_by(&tuple)),
            Endpoint::Exclusive(tuple) => Endpoint::Exclusive(prefix.followed_by(&tuple)),
        };
        match prefix.is_empty() {
            true => self,
            false => TupleRange { low: with(self.low), high: with(self.high) },
        }
    }

    /// The keys of the range in a subspace: `[begin, end)`.
    pub fn keys(&self, space: &Subspace) -> (Vec<u8>, Vec<u8>) {
        let packed = |tuple: &Tuple| [space.bytes(), &tuple.pack()].concat();
        // The least key after all keys that begin with the packed tuple: no element begins with 0xff.
        let after = |mut key: Vec<u8>| {
            key.push(0xff);
            key
        };
        let begin = match &self.low {
            Endpoint::Open => space.bytes().to_vec(),
            Endpoint::Inclusive(tuple) => packed(tuple),
            Endpoint::Exclusive(tuple) => after(packed(tuple)),
        };
        let end = match &self.high {
            // Not the next prefix of the same length: that of the string "a" is followed by that of "a\0".
            Endpoint::Open => after(space.bytes().to_vec()),
            Endpoint::Inclusive(tuple) => after(packed(tuple)),
            Endpoint::Exclusive(tuple) => packed(tuple),
        };
        (begin, end)
    }
}
