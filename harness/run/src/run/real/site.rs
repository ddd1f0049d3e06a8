//! The place of a run in a real cluster: the keys with one prefix, which must be empty before the run and is
//! cleared after it.

use super::{log::Log, prefixed::Space, room::Below};
use bytes::Bytes;
use shaketable_sim::ids::AttemptId;
use shaketable_tx::{
    Database, Error, Isolation, KeyValue, RetryError, RunError, StreamingMode, Transaction, show,
};

/// The prefix of a run.
#[derive(Clone, Debug)]
pub struct Site(Space);

/// Why a prefix cannot be claimed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ClaimError {
    /// There are keys with this prefix.
    #[error("the prefix {prefix} is not empty: it holds {key}")]
    NotEmpty {
        /// The prefix, escaped.
        prefix: String,
        /// The first of these keys, escaped.
        key: String,
    },
    /// An error of FoundationDB.
    #[error(transparent)]
    Fdb(#[from] Error),
}

impl RetryError for ClaimError {
    fn fdb(&self) -> Option<Error> {
        match self {
            ClaimError::Fdb(e) => Some(*e),
            ClaimError::NotEmpty { .. } => None,
        }
    }
}

impl Site {
    /// The keys that begin with `prefix`; `None` if the prefix is empty or is a system key.
    pub fn new(prefix: impl Into<Bytes>) -> Option<Site> {
        Space::new(prefix).map(Site)
    }

    /// The site with this name within this one. Sites with different names are disjoint.
    pub fn below(&self, name: &str) -> Site {
        Site(self.0.below(&format!("{name}/")))
    }

    /// Draws a plan whose keys are short enough for this site.
    pub fn drawn<T>(&self, draw: impl FnOnce() -> T) -> T {
        let _below = self.shortens_keys();
        draw()
    }

    /// Keys of runs on this thread are shorter, as long as the result exists.
    pub(super) fn shortens_keys(&self) -> Below {
        Below::prefix(self.data().prefix().len())
    }

    /// The prefix in readable form.
    pub fn name(&self) -> String {
        show::key(self.0.prefix())
    }

    /// The prefix.
    pub fn prefix(&self) -> Bytes {
        self.0.prefix().clone()
    }

    /// The keys of the workload.
    pub(super) fn data(&self) -> Space {
        self.0.below("data/")
    }

    /// The log, in which transactions record that they committed.
    pub(super) fn log(&self) -> Log {
        Log::new(self.0.below("log/"))
    }

    /// The key that identifies the owner of the prefix.
    fn owner(&self) -> Bytes {
        self.0.below("owner").prefix().clone()
    }

    /// The first key of the prefix, if there is one, escaped.
    pub async fn first_key<D: Database>(&self, db: &D) -> Result<Option<String>, Error> {
        let found = db.run(|tx, _| async move { self.first(&tx).await }).await;
        Ok(found.map_err(|e: RunError<Error>| e.error)?.map(|row| show::key(&row.key)))
    }

    async fn first<T: Transaction>(&self, tx: &T) -> Result<Option<KeyValue>, Error> {
        let range = self.0.all().limit(1);
        Ok(tx.get_range_all(range, Isolation::Serializable).await?.pop())
    }

    /// Claims the prefix for this run, if it is empty. Of two concurrent runs one is refused.
    pub(super) async fn claim<D: Database>(&self, db: &D) -> Result<(), ClaimError> {
        let (owner, token) = (&self.owner(), &db.env().random_bytes::<16>());
        let claimed = db.run(|tx, _| async move {
            match self.first(&tx).await? {
                // An earlier attempt with an unknown result committed.
                Some(row) if row.key == owner && row.value == token[..] => {}
                Some(row) => {
                    return Err(ClaimError::NotEmpty { prefix: self.name(), key: show::key(&row.key) });
                }
                None => tx.set(owner, token),
            }
            Ok(())
        });
        claimed.await.map_err(|e| e.error)
    }

    /// Clears the keys with this prefix, and no others.
    pub async fn clear<D: Database>(&self, db: &D) -> Result<(), Error> {
        let cleared = db.run(|tx, _| async move {
            let (begin, end) = self.0.range();
            tx.clear_range(&begin, &end);
            Ok::<_, Error>(())
        });
        cleared.await.map_err(|e| e.error)
    }

    /// The contents of the log and of the workload's keys, without their prefixes.
    #[allow(clippy::type_complexity, reason = "two lists of pairs")]
    pub(super) async fn read<D: Database>(
        &self,
        db: &D,
    ) -> Result<(Vec<([u8; 10], AttemptId)>, Vec<(Bytes, Bytes)>), Error> {
        let (log, data) = (&self.log(), &self.data());
        let read = db.run(|tx, _| async move {
            let all = |of: &Space| of.all().mode(StreamingMode::WantAll);
            let logged = tx.get_range_all(all(log.space()), Isolation::Snapshot).await?;
            let rows = tx.get_range_all(all(data), Isolation::Snapshot).await?;
            Ok::<_, Error>((logged, rows))
        });
        let (logged, rows) = read.await.map_err(|e| e.error)?;
        let entries = logged.iter().filter_map(|row| log.entry(&row.key)).collect();
        Ok((entries, rows.into_iter().map(|row| (data.seen(row.key), row.value)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_sites_are_disjoint() {
        let all = Site::new("shaketable/").expect("a prefix");
        let (one, ten) = (all.below("queue/1").0.range(), all.below("queue/10").0.range());
        assert!(one.1 <= ten.0 || ten.1 <= one.0);
        let whole = all.0.range();
        assert!([one, ten].iter().all(|(begin, end)| whole.0 <= begin && end <= &whole.1));
    }

    #[test]
    fn the_parts_of_a_site_are_disjoint() {
        let site = Site::new("shaketable/").expect("a prefix");
        let mut parts = [site.data().range(), site.log().space().range(), site.0.below("owner").range()];
        parts.sort();
        assert!(parts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{parts:?}");
    }

    #[test]
    fn a_site_is_neither_the_whole_keyspace_nor_in_the_system_keys() {
        for wrong in [&b""[..], b"\xff", b"\xff/x", b"\xff\xff"] {
            assert!(Site::new(wrong).is_none());
        }
        assert_eq!(Site::new(&b"a\0"[..]).expect("a prefix").name(), "\"a\\x00\"");
    }
}
