//! How large a transaction is, in the bytes FoundationDB counts: the payload and the C++ structures
//! around it.

use crate::proto::{KeyRange, Mutation};
use shaketable_layers::tx::KeyValue;

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

/// `sizeof(KeyValueRef)`.
const ROW: usize = 24;
/// What costs are rounded up to (`TAG_THROTTLING_PAGE_SIZE`).
const PAGE: usize = 4_096;
/// How much more a write costs than a read (`GLOBAL_TAG_THROTTLING_RW_FUNGIBILITY_RATIO`).
const WRITE_RATIO: i64 = 4;

/// The bytes of rows as storage servers and costs count them.
pub fn rows(rows: &[KeyValue]) -> i64 {
    rows.iter().map(|row| (ROW + row.key.len() + row.value.len()) as i64).sum()
}

/// What it costs to read so many bytes.
pub fn read_cost(bytes: usize) -> i64 {
    (bytes.div_ceil(PAGE).max(1) * PAGE) as i64
}

/// What a mutation costs: a clear one page, an atomic operation its key.
pub fn write_cost(mutation: &Mutation) -> i64 {
    match mutation {
        Mutation::Set(key, value) => WRITE_RATIO * read_cost(key.len() + value.len()),
        Mutation::Atomic(key, ..) => WRITE_RATIO * read_cost(key.len()),
        Mutation::ClearRange(_) => PAGE as i64,
    }
}
