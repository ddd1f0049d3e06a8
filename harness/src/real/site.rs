//! Where a run lives in somebody's cluster: below one prefix, which must be empty before and is afterwards.

use super::{prefixed::Space, recorded::Log};
use bytes::Bytes;
use shaketable_layers::tx::{
    Database, Error, Isolation, KeyValue, RetryError, RunError, StreamingMode, Transaction,
};
use shaketable_sim::history::AttemptId;

/// A prefix for one run.
#[derive(Clone, Debug)]
pub struct Site(Space);

/// Why a prefix cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Something is there.
    #[error("the prefix {prefix} is not empty: it holds {key}")]
    NotEmpty {
        /// The prefix, escaped.
        prefix: String,
        /// The first key there, escaped.
        key: String,
    },
    /// The cluster's answer.
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
    /// The keys that begin with `prefix`; `None` for one that is empty, or begins among the system's keys.
    pub fn new(prefix: impl Into<Bytes>) -> Option<Site> {
        Space::new(prefix).map(Site)
    }

    /// A site of its own below this one, for each name another.
    pub fn below(&self, name: &str) -> Site {
        Site(self.0.below(&format!("{name}/")))
    }

    /// The prefix as a person reads it.
    pub fn name(&self) -> String {
        shown(self.0.prefix())
    }

    /// The prefix.
    pub fn prefix(&self) -> Bytes {
        self.0.prefix().clone()
    }

    /// Where the workload's own keys are.
    pub(super) fn data(&self) -> Space {
        self.0.below("data/")
    }

    /// Where transactions say that they have committed.
    pub(super) fn log(&self) -> Log {
        Log::new(self.0.below("log/"))
    }

    /// The key that says whose the prefix is.
    fn owner(&self) -> Bytes {
        self.0.below("owner").prefix().clone()
    }

    /// The first key of the prefix, if there is one, escaped.
    pub async fn first_key<D: Database>(&self, db: &D) -> Result<Option<String>, Error> {
        let found = db.run(|tx, _| async move { self.first(&tx).await }).await;
        Ok(found.map_err(|e: RunError<Error>| e.error)?.map(|row| shown(&row.key)))
    }

    async fn first<T: Transaction>(&self, tx: &T) -> Result<Option<KeyValue>, Error> {
        let range = self.0.all().limit(1);
        Ok(tx.get_range_all(range, Isolation::Serializable).await?.pop())
    }

    /// Makes the prefix this run's, if it is empty: of two runs that come at once, one is refused.
    pub(super) async fn claim<D: Database>(&self, db: &D) -> Result<(), ClaimError> {
        let (owner, token) = (&self.owner(), &db.env().random_bytes::<16>());
        let claimed = db.run(|tx, _| async move {
            match self.first(&tx).await? {
                // An earlier attempt, whose result was unknown.
                Some(row) if row.key == owner && row.value == token[..] => {}
                Some(row) => {
                    return Err(ClaimError::NotEmpty { prefix: self.name(), key: shown(&row.key) });
                }
                None => tx.set(owner, token),
            }
            Ok(())
        });
        claimed.await.map_err(|e| e.error)
    }

    /// Clears the prefix, and nothing else.
    pub async fn clear<D: Database>(&self, db: &D) -> Result<(), Error> {
        let cleared = db.run(|tx, _| async move {
            let (begin, end) = self.0.range();
            tx.clear_range(&begin, &end);
            Ok::<_, Error>(())
        });
        cleared.await.map_err(|e| e.error)
    }

    /// Everything that the log and the workload's own keys hold, each without its prefix.
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

fn shown(key: &[u8]) -> String {
    format!("\"{}\"", key.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_below_one_another_do_not_meet() {
        let all = Site::new("shaketable/").expect("a prefix");
        let (one, ten) = (all.below("queue/1").0.range(), all.below("queue/10").0.range());
        assert!(one.1 <= ten.0 || ten.1 <= one.0);
        let whole = all.0.range();
        assert!([one, ten].iter().all(|(begin, end)| whole.0 <= begin && end <= &whole.1));
    }

    #[test]
    fn the_parts_of_a_site_do_not_meet() {
        let site = Site::new("shaketable/").expect("a prefix");
        let mut parts = [site.data().range(), site.log().space().range(), site.0.below("owner").range()];
        parts.sort();
        assert!(parts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{parts:?}");
    }

    #[test]
    fn no_site_is_the_whole_keyspace_or_the_system_s() {
        for wrong in [&b""[..], b"\xff", b"\xff/x", b"\xff\xff"] {
            assert!(Site::new(wrong).is_none());
        }
        assert_eq!(Site::new(&b"a\0"[..]).expect("a prefix").name(), "\"a\\x00\"");
    }
}
