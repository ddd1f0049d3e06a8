//! The context of a case: a database, its own prefix, and helpers shared by most cases.

use super::expect::{Broken, Expectation, same};
use bytes::Bytes;
use shaketable_tx::{
    ConflictRangeType, Database, Db, Isolation, KeySelector, RangeOption, Result, Transaction, Tx, strinc,
};
use std::time::Duration;

/// The reads that take part in conflict detection, and those that do not.
pub(super) use Isolation::{Serializable, Snapshot};

/// The prefix of the special keys that list a transaction's own read conflict ranges.
pub(super) const READ_CONFLICTS: &[u8] = b"\xff\xff/transaction/read_conflict_range/";
/// The prefix of the special keys that list its write conflict ranges.
pub(super) const WRITE_CONFLICTS: &[u8] = b"\xff\xff/transaction/write_conflict_range/";
/// The prefix of the special keys that list the ranges that made a commit fail.
pub(super) const CONFLICTING_KEYS: &[u8] = b"\xff\xff/transaction/conflicting_keys/";

/// A half-open range of keys.
pub(super) type Range = (Bytes, Bytes);

/// A database and a key prefix used by this case only.
#[derive(Clone)]
pub struct Ctx {
    /// The database.
    pub(super) db: Db,
    prefix: Bytes,
    /// The number of calls of a case that makes many.
    pub(super) many: u32,
}

impl Ctx {
    pub(super) fn new(db: Db, prefix: Bytes, many: u32) -> Ctx {
        Ctx { db, prefix, many }
    }

    /// A new transaction.
    pub(super) fn tx(&self) -> Result<Tx> {
        self.db.create_transaction()
    }

    /// The key `suffix` below the prefix.
    pub(super) fn key(&self, suffix: impl AsRef<[u8]>) -> Bytes {
        [&self.prefix, suffix.as_ref()].concat().into()
    }

    /// The first key after all keys with the prefix.
    pub(super) fn end(&self) -> Bytes {
        strinc(&self.prefix).unwrap_or_else(|| Bytes::from_static(b"\xff"))
    }

    /// The range of keys `[begin, end)` below the prefix.
    pub(super) fn range(&self, begin: &str, end: &str) -> RangeOption {
        RangeOption::new(self.key(begin), self.key(end))
    }

    /// All keys of the prefix.
    pub(super) fn everything(&self) -> RangeOption {
        RangeOption::new(self.prefix.clone(), self.end())
    }

    /// A selector whose base lies below the prefix.
    pub(super) fn selector(&self, key: &str, or_equal: bool, offset: i32) -> KeySelector {
        KeySelector::new(self.key(key), or_equal, offset)
    }

    /// `key` without the prefix.
    pub(super) fn strip(&self, key: &[u8]) -> Bytes {
        Bytes::copy_from_slice(key.strip_prefix(self.prefix.as_ref()).unwrap_or(key))
    }

    /// Commits `write` in its own transaction, with retries. `write` may run several times and, where a
    /// commit's result is unknown, take effect several times.
    pub(super) async fn commit(&self, write: impl Fn(&Tx) + Send + Sync) -> Result<i64> {
        let tx = self.tx()?;
        loop {
            write(&tx);
            match tx.commit().await {
                Ok(()) => return tx.get_committed_version(),
                Err(e) => tx.on_error(e).await?,
            }
        }
    }

    /// Sets one key and commits.
    pub(super) async fn put(&self, key: &str, value: impl AsRef<[u8]>) -> Result<i64> {
        let (key, value) = (self.key(key), value.as_ref());
        self.commit(|tx| tx.set(&key, value)).await
    }

    /// Sets each of `keys` to its own name and commits.
    pub(super) async fn put_all(&self, keys: &[&str]) -> Result<i64> {
        self.commit(|tx| {
            for key in keys {
                tx.set(&self.key(key), key.as_bytes());
            }
        })
        .await
    }

    /// Clears the whole prefix and commits.
    pub(super) async fn clear_all(&self) -> Result<i64> {
        let end = self.end();
        self.commit(|tx| tx.clear_range(&self.prefix, &end)).await
    }

    /// The committed value of a key, read in its own transaction.
    pub(super) async fn value(&self, key: &str) -> Result<Option<Bytes>> {
        let key = self.key(key);
        let tx = self.tx()?;
        loop {
            match tx.get(&key, Snapshot).await {
                Ok(value) => return Ok(value),
                Err(e) => tx.on_error(e).await?,
            }
        }
    }

    /// The committed rows of the prefix, without the prefix.
    pub(super) async fn rows(&self) -> Result<Vec<(Bytes, Bytes)>> {
        let tx = self.tx()?;
        loop {
            match tx.get_range_all(self.everything(), Snapshot).await {
                Ok(rows) => {
                    return Ok(rows.into_iter().map(|row| (self.strip(&row.key), row.value)).collect());
                }
                Err(e) => tx.on_error(e).await?,
            }
        }
    }

    /// Waits for this many milliseconds.
    pub(super) async fn pause(&self, milliseconds: u64) {
        self.db.env().sleep(Duration::from_millis(milliseconds)).await;
    }

    /// Makes a transaction not read-only without changing data.
    pub(super) fn touch(&self, tx: &Tx) -> Result<()> {
        tx.add_conflict_key(&self.key("~touch"), ConflictRangeType::Write)
    }

    /// The ranges that the special keys under `module` list, with the prefix stripped where they have it.
    pub(super) async fn listed(&self, tx: &Tx, module: &[u8]) -> std::result::Result<Vec<Range>, Broken> {
        let end = [module, b"\xff\xff"].concat();
        let rows = tx.get_range_all(RangeOption::new(module.to_vec(), end), Serializable).await?;
        let mut ranges = Vec::new();
        let mut open: Option<Bytes> = None;
        for row in rows {
            let key = self.strip(row.key.strip_prefix(module).unwrap_or(&row.key));
            match (row.value.as_ref(), open.take()) {
                (b"1", None) => open = Some(key),
                (b"0", Some(begin)) => ranges.push((begin, key)),
                (value, was) => {
                    return Err(Broken::new(format!(
                        "boundaries alternate between 1 and 0: {key:?} is {value:?} after {was:?}"
                    )));
                }
            }
        }
        match open {
            None => Ok(ranges),
            Some(begin) => Err(Broken::new(format!("the range from {begin:?} has no end"))),
        }
    }

    /// The read conflict ranges must be exactly these, below the prefix.
    pub(super) async fn reads_are(&self, tx: &Tx, promised: &[(&str, &str)]) -> Expectation {
        same("read conflict ranges", self.listed(tx, READ_CONFLICTS).await?, ranges(promised))
    }

    /// The write conflict ranges must be exactly these, below the prefix.
    pub(super) async fn writes_are(&self, tx: &Tx, promised: &[(&str, &str)]) -> Expectation {
        same("write conflict ranges", self.listed(tx, WRITE_CONFLICTS).await?, ranges(promised))
    }
}

/// Ranges from strings.
pub(super) fn ranges(of: &[(&str, &str)]) -> Vec<Range> {
    let own = |s: &str| Bytes::copy_from_slice(s.as_bytes());
    of.iter().map(|(begin, end)| (own(begin), own(end))).collect()
}

/// A value from a string.
pub(super) fn some(value: &str) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(value.as_bytes()))
}
