//! A space that is replaced as a whole: a new build is made beside the current one, readers are switched
//! in one transaction, and what was there before is cleared in batches.

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

/// A space with one current build, below a subspace of its own.
#[derive(Clone, Debug)]
pub struct Workspace {
    subspace: Subspace,
}

/// A build under way as somebody has observed it: any claim makes it another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Observed {
    /// The build.
    pub build: BuildId,
    /// The read version at which it began.
    version: i64,
    /// How often it was claimed.
    claims: i64,
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
        // A tuple takes two bytes for each zero: no id makes a longer key.
        limits::key(&keys::record(&subspace, BuildId([0; 16])))?;
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

    /// The space of a build under way, to write into. Every transaction that writes claims it: serializable,
    /// so that nothing comes to a build that is published or given up meanwhile. The commit shows an observer
    /// that the builder is at work; several builders of one build do not conflict by it.
    pub async fn claim<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<Subspace, Error> {
        crate::called!();
        self.under_way(tx, build).await?;
        let claims = keys::claims(&self.subspace, build);
        tx.atomic_op(&claims, &1i64.to_le_bytes(), MutationType::Add);
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
            tx.set(&keys::retirement(&self.subspace, current), b"");
        }
        self.end(tx, build);
        tx.set(&keys::pointer(&self.subspace), &keys::point(build));
        Ok(())
    }

    /// Gives a build up. Returns whether it was under way.
    pub async fn discard<T: Transaction>(&self, tx: &T, build: BuildId) -> Result<bool, Error> {
        crate::called!();
        let under_way = self.record(tx, build).await?.is_some();
        if under_way {
            self.end(tx, build);
            tx.set(&keys::retirement(&self.subspace, build), b"");
        }
        Ok(under_way)
    }

    /// The builds under way, in the order of their ids: up to `most` (at least one) after the build `after`.
    /// Fewer than `most` are the last ones. Reads at snapshot, each build by itself: some thousands are refused.
    pub async fn observe<T: Transaction>(
        &self,
        tx: &T,
        after: Option<BuildId>,
        most: usize,
    ) -> Result<Vec<Observed>, Error> {
        crate::called!();
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

    /// Gives a build up that is still as it was observed: nobody has claimed it since. Returns whether it
    /// was. To be called by who observed it for as long as a builder may be silent; for anybody else see
    /// [`discard_unchanged`](Workspace::discard_unchanged).
    pub async fn discard_observed<T: Transaction>(&self, tx: &T, observed: Observed) -> Result<bool, Error> {
        crate::called!();
        let Observed { build, version, claims } = observed;
        let same = self.record(tx, build).await?.is_some_and(|record| record.version == version)
            && self.claims(tx, build, Isolation::Serializable).await? == claims;
        sometimes!(!same, "bulk: a builder at work is left alone");
        Ok(same && self.discard(tx, build).await?)
    }

    /// Observes the builds under way for `duration`, by this process's own timer, and gives up those that
    /// nobody has claimed meanwhile. Returns which; after an unknown result one may be missing in the answer.
    ///
    /// `duration` must be longer than a live builder takes from one commit of a claim to the next. No clock or
    /// version is compared, so that neither clocks that are off nor the jump of versions in a recovery shorten
    /// it. Reads `most` builds in one transaction, and gives up each in one of its own: after an error, or when
    /// dropped, some may have been given up, and it can be called again.
    pub fn discard_unchanged<D: Database>(
        &self,
        db: &D,
        duration: Duration,
        most: usize,
    ) -> impl Future<Output = Result<Vec<BuildId>, RunError<Error>>> + Send {
        crate::called!();
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
            // The timer begins when all have been read: a claim that was observed had committed before.
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

    /// Clears up to `most` (at least one) rows of a retired build, and fewer where these are many bytes to read.
    ///
    /// At snapshot: a retired build stays retired until all of it is cleared, and nobody who claims it writes
    /// into it any more. Two conflict if one of them clears the last of the build, which may begin again then.
    pub async fn clear_retired<T: Transaction>(&self, tx: &T, most: usize) -> Result<Cleared, Error> {
        crate::called!();
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

    /// Clears all retired builds, `most` rows a transaction. Answers how many rows it cleared, or more
    /// after unknown results.
    ///
    /// Dropping the future: some rows are cleared, and the next call clears the rest.
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

    /// Takes a build out of those under way.
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
