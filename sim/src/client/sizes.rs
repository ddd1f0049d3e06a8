//! The size of a transaction in the bytes that FoundationDB counts: the payload and the C++ structures around
//! it.

use crate::proto::{KeyRange, Mutation};
use shaketable_tx::KeyValue;

/// The maximum size of a transaction, bytes (`TRANSACTION_SIZE_LIMIT`).
pub const TRANSACTION_SIZE_LIMIT: i64 = 10_000_000;

/// `sizeof(MutationRef)`.
const MUTATION: i64 = 44;
/// `sizeof(KeyRangeRef)`.
const RANGE: i64 = 24;

/// A range with ends of these lengths.
pub fn range(begin: usize, end: usize) -> i64 {
    RANGE + (begin + end) as i64
}

/// The range of a single key.
pub fn single_key(key: usize) -> i64 {
    range(key, key + 1)
}

/// A mutation with parameters of these lengths.
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

/// `sizeof(KeyValueRef)`.
const ROW: usize = 24;
/// The unit to which costs are rounded up (`TAG_THROTTLING_PAGE_SIZE`).
const PAGE: usize = 4_096;
/// The cost of a write relative to a read (`GLOBAL_TAG_THROTTLING_RW_FUNGIBILITY_RATIO`).
const WRITE_RATIO: i64 = 4;

/// The size of rows as counted by storage servers and for costs.
pub fn rows(rows: &[KeyValue]) -> i64 {
    rows.iter().map(|row| (ROW + row.key.len() + row.value.len()) as i64).sum()
}

/// The cost of reading this many bytes.
pub fn read_cost(bytes: usize) -> i64 {
    (bytes.div_ceil(PAGE).max(1) * PAGE) as i64
}

/// The cost of a mutation: one page for a clear, that of the key for an atomic operation.
pub fn write_cost(mutation: &Mutation) -> i64 {
    match mutation {
        Mutation::Set(key, value) => WRITE_RATIO * read_cost(key.len() + value.len()),
        Mutation::Atomic(key, ..) => WRITE_RATIO * read_cost(key.len()),
        Mutation::ClearRange(_) => PAGE as i64,
    }
}
