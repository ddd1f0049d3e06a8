//! The limits of a range read: rows, bytes, and the C API's streaming modes.

use shaketable_tx::{Error, KeyValue, RangeOption, Result, StreamingMode};

/// The maximum size of a storage server's reply, bytes (`REPLY_BYTE_LIMIT`).
pub const REPLY_BYTE_LIMIT: i64 = 80_000;

/// The byte limits of the iterations of [`StreamingMode::Iterator`].
const PROGRESSION: [i64; 10] = [4096, 6144, 9216, 13824, 20736, 31104, 46656, 69984, 80000, 120_000];

/// The limits of a range read, decremented as rows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Remaining rows; `None` is unlimited.
    pub rows: Option<i64>,
    /// Rows to return even if the bytes are used up.
    pub min_rows: i64,
    /// Remaining bytes; `None` is unlimited.
    pub bytes: Option<i64>,
}

impl Limits {
    /// One row.
    pub const ONE: Limits = Limits { rows: Some(1), min_rows: 1, bytes: None };

    /// The limits that the C API derives from a range's limit, target bytes, mode and iteration.
    pub fn of(range: &RangeOption, iteration: usize) -> Result<Limits> {
        let rows = range.limit.filter(|n| *n > 0).map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let target = (range.target_bytes > 0).then(|| i64::try_from(range.target_bytes).unwrap_or(i64::MAX));
        if rows.is_none() && target.is_none() && range.mode == StreamingMode::Exact {
            return Err(Error::EXACT_MODE_WITHOUT_LIMITS);
        }
        let mode = match range.mode {
            StreamingMode::Exact => None,
            StreamingMode::Small => Some(256),
            StreamingMode::Medium => Some(1000),
            StreamingMode::Large => Some(4096),
            StreamingMode::Serial | StreamingMode::WantAll => Some(80_000),
            StreamingMode::Iterator if iteration == 0 => return Err(Error::CLIENT_INVALID_OPERATION),
            StreamingMode::Iterator => Some(PROGRESSION[iteration.min(PROGRESSION.len()) - 1]),
        };
        let bytes = match (target, mode) {
            (Some(target), Some(mode)) => Some(target.min(mode)),
            (target, mode) => target.or(mode),
        };
        Ok(Limits { rows, min_rows: 1, bytes })
    }

    /// Counts a row.
    pub fn take(&mut self, row: &KeyValue) {
        self.min_rows = (self.min_rows - 1).max(0);
        if let Some(rows) = &mut self.rows {
            *rows -= 1;
        }
        if let Some(bytes) = &mut self.bytes {
            *bytes = (*bytes - 8 - (row.key.len() + row.value.len()) as i64).max(0);
        }
    }

    /// Whether no more rows may be taken.
    pub fn is_reached(&self) -> bool {
        self.rows == Some(0) || (self.bytes == Some(0) && self.min_rows == 0)
    }

    /// Whether a batch may end early: it is limited in bytes and has its minimum of rows.
    pub fn may_end(&self) -> bool {
        self.bytes.is_some() && self.min_rows == 0
    }

    /// The rows and bytes to request from a storage server.
    pub fn request(&self) -> (usize, usize) {
        if self.bytes == Some(0) {
            return (self.min_rows as usize, REPLY_BYTE_LIMIT as usize);
        }
        let cap = |limit: Option<i64>| limit.map_or(REPLY_BYTE_LIMIT, |n| n.min(REPLY_BYTE_LIMIT)) as usize;
        (cap(self.rows), cap(self.bytes))
    }

    /// The limits of one request to the snapshot for a read with these limits: enough rows for those hidden
    /// by the transaction's own clears and for `offset`, and more bytes with each further request.
    pub fn for_request(&self, additional: i64, offset: i64, requests: u32) -> Limits {
        let enough = |rows: i64| rows.max(1).saturating_add(additional).max(offset).min(i64::from(i32::MAX));
        let mut limits = *self;
        limits.min_rows = (1 + additional).max(offset).min(i64::from(i32::MAX));
        limits.rows = limits.rows.map(enough);
        match limits.bytes {
            Some(0) => {
                limits.bytes = None;
                limits.rows = Some(limits.rows.unwrap_or_else(|| enough(0)));
            }
            Some(bytes) => limits.bytes = Some((bytes << requests.min(20)).min(REPLY_BYTE_LIMIT)),
            None => {}
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_as_many_rows_as_possible_and_those_that_are_hidden_asks_for_all_that_a_reply_can_count()
    {
        let all = Limits { rows: Some(i64::MAX), bytes: None, min_rows: 0 };
        assert_eq!(all.for_request(3, 0, 0).rows, Some(i64::from(i32::MAX)));
    }

    #[test]
    fn modes_limit_bytes_as_the_c_api_does() {
        let bytes =
            |mode, iteration| Limits::of(&RangeOption::new("a", "b").mode(mode), iteration).map(|l| l.bytes);
        assert_eq!(bytes(StreamingMode::Iterator, 1), Ok(Some(4096)));
        assert_eq!(bytes(StreamingMode::Iterator, 99), Ok(Some(120_000)));
        assert_eq!(bytes(StreamingMode::Iterator, 0), Err(Error::CLIENT_INVALID_OPERATION));
        assert_eq!(bytes(StreamingMode::Exact, 1), Err(Error::EXACT_MODE_WITHOUT_LIMITS));
        assert_eq!(bytes(StreamingMode::Small, 1), Ok(Some(256)));
        let exact = RangeOption::new("a", "b").mode(StreamingMode::Exact).limit(3);
        assert_eq!(Limits::of(&exact, 1), Ok(Limits { rows: Some(3), min_rows: 1, bytes: None }));
    }

    #[test]
    fn a_batch_has_at_least_one_row() {
        let mut limits = Limits { rows: None, min_rows: 1, bytes: Some(10) };
        assert!(!limits.is_reached());
        limits.take(&KeyValue::new(vec![0; 50], vec![0; 50]));
        assert!(limits.is_reached());
    }
}
