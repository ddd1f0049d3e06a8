//! How large a transaction is, in the bytes FoundationDB counts: the payload and the C++ structures
//! around it.

use crate::proto::{KeyRange, Mutation};

/// The largest transaction, bytes (`TRANSACTION_SIZE_LIMIT`).
pub const TRANSACTION_SIZE_LIMIT: i64 = 10_000_000;

/// `sizeof(MutationRef)`.
const MUTATION: i64 = 44;
/// `sizeof(KeyRangeRef)`.
const RANGE: i64 = 24;

/// A range whose ends have these lengths.
pub fn range(begin: usize, end: usize) -> i64 {
    RANGE + (begin + end) as i64
}

/// The range of a single key.
pub fn single_key(key: usize) -> i64 {
    range(key, key + 1)
}

/// A mutation whose parameters have these lengths.
pub fn mutation(first: usize, second: usize) -> i64 {
    MUTATION + (first + second) as i64
}

/// The size of a commit: mutations and conflict ranges.
pub fn commit(mutations: &[Mutation], reads: &[KeyRange], writes: &[KeyRange]) -> i64 {
    let of = |m: &Mutation| match m {
        Mutation::Set(key, value) | Mutation::Atomic(key, value, _) => mutation(key.len(), value.len()),
        Mutation::ClearRange(r) => mutation(r.begin.len(), r.end.len()),
    };
    let ranges = |list: &[KeyRange]| list.iter().map(|r| range(r.begin.len(), r.end.len())).sum::<i64>();
    mutations.iter().map(of).sum::<i64>() + ranges(reads) + ranges(writes)
}
