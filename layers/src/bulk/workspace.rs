//! A space that is replaced as a whole: a new build is made beside the current one, readers are switched
//! in one transaction, and what was there before is cleared in batches.

use super::{
    BuildId, Error,
    keys::{self, Record},
};
use crate::{
    limits, reachable, sometimes,
    tx::{Database, Isolation, RangeOption, RunError, Transaction, key_after},
};
use foundationdb_tuple::Subspace;
use std::future::Future;

/// A space with one current build, below a subspace of its own.
#[derive(Clone, Debug)]
pub struct Workspace {
    subspace: Subspace,
}

/// What one batch of clearing has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// How many rows were cleared.
    pub rows: usize,
    /// Whether a retired build may be left.
    pub more: bool,
}

impl Workspace {
    /// The workspace below `subspace`, which nothing else may use.
    pub fn new(subspace: Subspace) -> Result<Workspace, Error> {
        crate::called!();
        limits::key(&keys::record(&subspace, BuildId([0xff; 16])))?;
        Ok(Workspace { subspace })
    }

    /// The current build and its space, if one has been published.
    pub async fn current<T: Transaction>(
        &self,
        tx: &T,
        isolation: Isolation,
    ) -> Result<Option<(BuildId, Subspace)>, Error> {
        crate::called!();
        let key = keys::pointer(&self.subspace);
        let Some(value) = tx.get(&key, isolation).await? else { return Ok(None) };
        let build = keys::pointed(&key, &value)?;
        Ok(Some((build, keys::data(&self.subspace, build))))
    }

    /// The space of a build that must still be the current one: for a reader over many transactions.
    pub async fn pinned<T: Transaction>(
        &self,
        tx: &T,
        build: BuildId,
        isolation: Isolation,
    ) -> Result<Subspace, Error> {
        crate::called!();
        match self.current(tx, isolation).await? {
            Some((found, space)) if found == build => Ok(space),
            current => {
                reachable!("bulk: a reader notices that its build is no longer current");
                Err(Error::Swapped { expected: build, found: current.map(|(build, _)| build) })
            }
        }
    }

    /// Begins a build. Answers which one it is to replace. To begin it again does nothing, as long as it
    /// is under way.
    pub async fn begin<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Option<BuildId>, Error> {
        crate::called!();
        let version = tx.get_read_version().await?;
        let base = self.current(tx, Isolation::Serializable).await?.map(|(build, _)| build);
        match self.record(tx, build).await? {
            Some(record) if !record.retired => Ok(record.base),
            Some(_) => Err(Error::NoBuild(build)),
            None if base == Some(build) => Err(Error::NoBuild(build)),
            None => {
                let record = Record { retired: false, version, base };
                tx.set(&keys::record(&self.subspace, build), &record.encode());
                Ok(base)
            }
        }
    }

    /// The space of a build under way, to write into. Every transaction that writes claims it: serializable,
    /// so that nothing comes to a build that is published or given up meanwhile.
    pub async fn claim<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Subspace, Error> {
        crate::called!();
        self.under_way(tx, build).await?;
        Ok(keys::data(&self.subspace, build))
    }

    /// Makes a build the current one. The one before is retired.
    pub async fn publish<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<(), Error> {
        crate::called!();
        let record = self.under_way(tx, build).await?;
        let current = self.current(tx, Isolation::Serializable).await?.map(|(build, _)| build);
        if current != record.base {
            reachable!("bulk: a build is outdated before it is published");
            return Err(Error::Outdated(build));
        }
        if let Some(current) = current {
            let retired = Record { retired: true, ..record };
            tx.set(&keys::record(&self.subspace, current), &retired.encode());
        }
        tx.clear(&keys::record(&self.subspace, build));
        tx.set(&keys::pointer(&self.subspace), &keys::point(build));
        Ok(())
    }

    /// Gives a build up; whether it was under way.
    pub async fn discard<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<bool, Error> {
        crate::called!();
        match self.record(tx, build).await? {
            Some(record) if !record.retired => {
                let retired = Record { retired: true, ..record };
                tx.set(&keys::record(&self.subspace, build), &retired.encode());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Gives up the builds that began more than `age` versions ago (a cluster counts about a million a
    /// second). Answers which.
    pub async fn discard_old<T: Transaction>(&self, tx: &T, age: i64) -> Result<Vec<BuildId>, Error> {
        crate::called!();
        let before = tx.get_read_version().await?.saturating_sub(age);
        let mut discarded = Vec::new();
        // Only what is given up needs to be as it was: new builds do not conflict.
        for (build, record) in self.records(tx).await? {
            if record.version < before && self.discard(tx, build).await? {
                discarded.push(build);
            }
        }
        Ok(discarded)
    }

    /// Clears up to `most` rows of a retired build.
    ///
    /// At snapshot: a retired build stays retired, and nobody who claims it writes into it any more.
    pub async fn clear_retired<T: Transaction>(&self, tx: &T, most: usize) -> Result<Cleared, Error> {
        crate::called!();
        let records = self.records(tx).await?;
        let mut retired = records.iter().filter(|(_, record)| record.retired).map(|(build, _)| *build);
        let Some(build) = retired.next() else { return Ok(Cleared { rows: 0, more: false }) };
        let (begin, end) = keys::data(&self.subspace, build).range();
        let range = RangeOption::new(begin.clone(), end.clone()).limit(most.max(1));
        let rows = tx.get_range_all(range, Isolation::Snapshot).await?;
        let all = rows.len() < most.max(1);
        match rows.last() {
            Some(last) if !all => tx.clear_range(&begin, &key_after(&last.key)),
            _ => {
                tx.clear_range(&begin, &end);
                tx.clear(&keys::record(&self.subspace, build));
            }
        }
        sometimes!(!all, "bulk: a retired build is cleared in several batches");
        Ok(Cleared { rows: rows.len(), more: !all || retired.next().is_some() })
    }

    /// Clears all retired builds, `most` rows a transaction. Answers how many rows it cleared, or more
    /// after unknown results.
    pub fn clear_all_retired<D: Database>(
        &self,
        db: &D,
        most: usize,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
        crate::called!();
        async move {
            let mut rows = 0;
            loop {
                let cleared = db.run(|tx, _| async move { self.clear_retired(&tx, most).await }).await?;
                rows += cleared.rows;
                if !cleared.more {
                    return Ok(rows);
                }
            }
        }
    }

    async fn under_way<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Record, Error> {
        let record = self.record(tx, build).await?;
        record.filter(|record| !record.retired).ok_or(Error::NoBuild(build))
    }

    async fn record<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Option<Record>, Error> {
        let key = keys::record(&self.subspace, build);
        let value = tx.get(&key, Isolation::Serializable).await?;
        value.map(|value| Record::decode(&key, &value)).transpose()
    }

    /// All records, at snapshot.
    async fn records<T: Transaction>(&self, tx: &T) -> Result<Vec<(BuildId, Record)>, Error> {
        let range = RangeOption::from(keys::records(&self.subspace).range());
        let rows = tx.get_range_all(range, Isolation::Snapshot).await?;
        let record = |row: crate::tx::KeyValue| {
            Ok((keys::build(&self.subspace, &row.key)?, Record::decode(&row.key, &row.value)?))
        };
        rows.into_iter().map(record).collect()
    }
}

once_forms! { impl Workspace, Error {
    publish_once = publish(build: BuildId) -> ();
    discard_once = discard(build: BuildId) -> bool;
} }
