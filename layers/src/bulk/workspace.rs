//! A space that is replaced as a whole: a new build is made beside the current one, readers are switched to
//! it in one transaction, and the old data is cleared in batches.

use super::{
    BuildId, Error,
    keys::{self, Record},
};
use crate::{
    limits::{self, READ_LIMIT},
    reachable, read, sometimes,
    tx::{Database, Isolation, MutationType, RangeOption, RunError, Transaction, key_after},
};
use foundationdb_tuple::Subspace;
use futures::{StreamExt, TryStreamExt, stream};
use std::{future::Future, time::Duration};

/// A space with one current build, in its own subspace.
#[derive(Clone, Debug)]
pub struct Workspace {
    subspace: Subspace,
}

/// The observed state of a build in progress: any claim changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Observed {
    /// The build.
    pub build: BuildId,
    /// The read version at which it began.
    version: i64,
    /// How often it was claimed.
    claims: i64,
}

/// The result of one batch of clearing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The number of rows cleared.
    pub rows: usize,
    /// Whether a retired build may remain.
    pub more: bool,
}

impl Workspace {
    /// The workspace in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Result<Workspace, Error> {
        // A tuple encodes each zero as two bytes: no other id makes a longer key.
        limits::key(&keys::record(&subspace, BuildId([0; 16])))?;
        Ok(Workspace { subspace })
    }

    /// The current build and its space, if one has been published.
    pub async fn current<T: Transaction>(
        &self,
        tx: &T,
        isolation: Isolation,
    ) -> Result<Option<(BuildId, Subspace)>, Error> {
        let tx = &tx.reading().await;
        let key = keys::pointer(&self.subspace);
        let Some(value) = tx.get(&key, isolation).await? else { return Ok(None) };
        let build = keys::pointed(&key, &value)?;
        Ok(Some((build, keys::data(&self.subspace, build))))
    }

    /// The space of a build that must still be the current one: for a reader that uses several transactions.
    pub async fn pinned<T: Transaction>(
        &self,
        tx: &T,
        build: BuildId,
        isolation: Isolation,
    ) -> Result<Subspace, Error> {
        let tx = &tx.reading().await;
        match self.current(tx, isolation).await? {
            Some((found, space)) if found == build => Ok(space),
            current => {
                reachable!("bulk: a reader notices that its build is no longer current");
                Err(Error::Swapped { expected: build, found: current.map(|(build, _)| build) })
            }
        }
    }

    /// Begins a build. Returns the build that it is to replace. Beginning a build that is in progress does
    /// nothing.
    pub async fn begin<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Option<BuildId>, Error> {
        let tx = &tx.writing().await;
        let version = tx.get_read_version().await?;
        let base = self.current(tx, Isolation::Serializable).await?.map(|(build, _)| build);
        if let Some(record) = self.record(tx, build).await? {
            return Ok(record.base);
        }
        let retirement = keys::retirement(&self.subspace, build);
        if base == Some(build) || tx.get(&retirement, Isolation::Serializable).await?.is_some() {
            return Err(Error::NoBuild(build));
        }
        tx.set(&keys::record(&self.subspace, build), &Record { version, base }.encode());
        Ok(base)
    }

    /// The space of a build in progress, to write into. Every transaction that writes must claim the build:
    /// the claim is serializable, so that no rows are added to a build that is published or discarded
    /// meanwhile. The commit shows observers that the builder is at work; several builders of one build do
    /// not conflict through their claims.
    pub async fn claim<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Subspace, Error> {
        let tx = &tx.writing().await;
        self.under_way(tx, build).await?;
        let claims = keys::claims(&self.subspace, build);
        tx.atomic_op(&claims, &1i64.to_le_bytes(), MutationType::Add);
        Ok(keys::data(&self.subspace, build))
    }

    /// Makes a build the current one. The previous one is retired.
    pub async fn publish<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let record = self.under_way(tx, build).await?;
        let current = self.current(tx, Isolation::Serializable).await?.map(|(build, _)| build);
        if current != record.base {
            reachable!("bulk: a build is outdated before it is published");
            return Err(Error::Outdated(build));
        }
        if let Some(current) = current {
            tx.set(&keys::retirement(&self.subspace, current), b"");
        }
        self.end(tx, build);
        tx.set(&keys::pointer(&self.subspace), &keys::point(build));
        Ok(())
    }

    /// Discards a build. Returns whether it was in progress.
    pub async fn discard<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let under_way = self.record(tx, build).await?.is_some();
        if under_way {
            self.end(tx, build);
            tx.set(&keys::retirement(&self.subspace, build), b"");
        }
        Ok(under_way)
    }

    /// The builds in progress, in the order of their ids: up to `most` (at least one) after the build
    /// `after`. If there are fewer than `most`, they are the last ones. Reads at snapshot, with a separate
    /// read for each build: several thousand are refused.
    pub async fn observe<T: Transaction>(
        &self,
        tx: &T,
        after: Option<BuildId>,
        most: usize,
    ) -> Result<Vec<Observed>, Error> {
        let tx = &tx.reading().await;
        let part = keys::records(&self.subspace);
        let (first, end) = part.range();
        let begin = after.map_or(first.into(), |build| key_after(&keys::record(&self.subspace, build)));
        let range = RangeOption::new(begin, end).limit(most.max(1));
        let allowance = read::Allowance::new();
        let rows = allowance.all::<_, Error>(tx, range, Isolation::Snapshot).await?;
        allowance.reads(rows.len())?;
        let part = &part;
        let observed = rows.iter().map(|row| async move {
            let build = keys::build(part, &row.key)?;
            let Record { version, .. } = Record::decode(&row.key, &row.value)?;
            let claims = self.claims(tx, build, Isolation::Snapshot).await?;
            Ok(Observed { build, version, claims })
        });
        let observed: Vec<_> = observed.collect();
        stream::iter(observed).buffered(read::AT_ONCE).try_collect().await
    }

    /// Discards a build if it is still as observed, that is, if it has not been claimed since. Returns
    /// whether it did. For a caller that has observed the build for as long as a builder may be silent;
    /// otherwise use [`discard_unchanged`](Workspace::discard_unchanged).
    pub async fn discard_observed<T: Transaction>(&self, tx: &T, observed: Observed) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let Observed { build, version, claims } = observed;
        let same = self.record(tx, build).await?.is_some_and(|record| record.version == version)
            && self.claims(tx, build, Isolation::Serializable).await? == claims;
        sometimes!(!same, "bulk: a builder at work is left alone");
        Ok(same && self.discard(tx, build).await?)
    }

    /// Observes the builds in progress for `duration`, by this process's own timer, and discards those that
    /// were not claimed in the meantime. Returns the discarded builds; after an unknown result, one may be
    /// missing.
    ///
    /// `duration` must be longer than a live builder takes between the commits of two claims. No clocks or
    /// versions are compared, so that neither inaccurate clocks nor the jump of versions in a recovery
    /// shorten it. Reads `most` builds in one transaction, and discards each in its own transaction: after an
    /// error, or when dropped, some may have been discarded, and it can be called again.
    pub fn discard_unchanged<D: Database>(
        &self,
        db: &D,
        duration: Duration,
        most: usize,
    ) -> impl Future<Output = Result<Vec<BuildId>, RunError<Error>>> + Send {
        async move {
            let mut before: Vec<Observed> = Vec::new();
            loop {
                let after = before.last().map(|observed| observed.build);
                let page = db.run(|tx, _| async move { self.observe(&tx, after, most).await }).await?;
                let ends = page.len() < most.max(1);
                before.extend(page);
                if ends {
                    break;
                }
            }
            if before.is_empty() {
                return Ok(Vec::new());
            }
            // The timer starts after all have been read: an observed claim had committed before that.
            db.env().sleep(duration).await;
            let mut discarded = Vec::new();
            for observed in before {
                if db.run(|tx, _| async move { self.discard_observed(&tx, observed).await }).await? {
                    discarded.push(observed.build);
                }
            }
            Ok(discarded)
        }
    }

    /// Clears up to `most` (at least one) rows of a retired build, and fewer if their total size is large.
    ///
    /// Reads at snapshot: a retired build stays retired until all of it is cleared, and a builder that claims
    /// it can no longer write into it. Two calls conflict if one of them clears the last rows of the build,
    /// because the build may then be begun again.
    pub async fn clear_retired<T: Transaction>(&self, tx: &T, most: usize) -> Result<Cleared, Error> {
        let tx = &tx.writing().await;
        let part = keys::retirements(&self.subspace);
        let retired =
            read::all::<_, Error>(tx, RangeOption::from(part.range()).limit(2), Isolation::Snapshot).await?;
        let Some(first) = retired.first() else { return Ok(Cleared { rows: 0, more: false }) };
        let build = keys::build(&part, &first.key)?;
        tx.get(&first.key, Isolation::Serializable).await?;
        let (begin, end) = keys::data(&self.subspace, build).range();
        let range = RangeOption::new(begin.clone(), end.clone()).limit(most.max(1));
        let (rows, stopped) = read::first(tx, range, READ_LIMIT, Isolation::Snapshot).await?;
        let all = !stopped && rows.len() < most.max(1);
        match rows.last() {
            Some(last) if !all => tx.clear_range(&begin, &key_after(&last.key)),
            _ => {
                tx.clear_range(&begin, &end);
                tx.clear(&first.key);
            }
        }
        sometimes!(!all, "bulk: a retired build is cleared in several batches");
        Ok(Cleared { rows: rows.len(), more: !all || retired.len() > 1 })
    }

    /// Clears all retired builds, `most` rows per transaction. Returns the number of cleared rows, which may
    /// be too high after unknown results.
    ///
    /// Dropping the future: some rows are cleared, and the next call clears the rest.
    pub fn clear_all_retired<D: Database>(
        &self,
        db: &D,
        most: usize,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
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

    /// Removes a build from those in progress.
    fn end<T: Transaction>(&self, tx: &T, build: BuildId) {
        tx.clear(&keys::record(&self.subspace, build));
        tx.clear(&keys::claims(&self.subspace, build));
    }

    async fn under_way<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Record, Error> {
        self.record(tx, build).await?.ok_or(Error::NoBuild(build))
    }

    async fn record<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Option<Record>, Error> {
        let key = keys::record(&self.subspace, build);
        let value = tx.get(&key, Isolation::Serializable).await?;
        value.map(|value| Record::decode(&key, &value)).transpose()
    }

    async fn claims<T: Transaction>(
        &self,
        tx: &T,
        build: BuildId,
        isolation: Isolation,
    ) -> Result<i64, Error> {
        let key = keys::claims(&self.subspace, build);
        keys::claimed(&key, tx.get(&key, isolation).await?.as_deref())
    }
}
