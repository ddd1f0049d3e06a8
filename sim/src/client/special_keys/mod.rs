//! Special keys, `\xff\xff/...`: what a transaction, its client and the cluster say about themselves, and the
//! management of the cluster (`fdbclient/SpecialKeySpace.actor.cpp`).
//!
//! The list of [`parts`] has every range of special keys that exists, so that reads across them fail in the
//! same way. Values come from the state of the simulation, and reading them
//! draws nothing at random.

mod actors;
mod cluster;
mod configuration;
mod exclusion;
mod global_config;
mod management;
mod metrics;
mod parts;
mod reader;
mod state;
mod status;
mod tracing;
mod transaction;
mod writes;

use super::{
    keys::{ALL_END, SPECIAL_END, single_key},
    limits::Limits,
    selector::Selector,
    transaction::{Inner, SimTransaction},
};
use crate::proto::KeyRange;
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use parts::{Kind, SpecialKeyRange, module, parts_of};
use reader::Reader;
use shaketable_tx::{Error, KeyValue, RangeBatch, RangeOption, Result, key_after};
use std::sync::Arc;

pub use state::{HealthCache, Span, Writes};
pub use writes::commit;

impl Reader {
    /// The rows of a part within a range, in order.
    async fn rows(&self, part: &SpecialKeyRange, range: &KeyRange) -> Result<Vec<KeyValue>> {
        let all = match part.kind {
            Kind::ActorLineage => self.actor_lineage(range)?,
            Kind::ActorProfiler | Kind::Tenants => Vec::new(),
            Kind::ClusterFilePath | Kind::ClusterId | Kind::ConnectionString => self.cluster(part),
            Kind::Coordinators => self.coordinators(),
            Kind::ClassSource | Kind::ClassType => self.process_classes(part).await?,
            Kind::ErrorMessage => self.error_message(),
            Kind::GlobalConfig => self.global_config().await?,
            Kind::AutoCoordinators => self.auto_coordinators(),
            Kind::ConsistencyCheck => self.consistency_check().await?,
            Kind::DataDistribution => self.data_distribution().await?,
            Kind::Lock => self.lock_holder().await?,
            Kind::Excluded | Kind::ExcludedLocality | Kind::Failed | Kind::FailedLocality => {
                self.excluded(part).await?
            }
            Kind::InProgressExclusion => self.exclusions_in_progress().await?,
            Kind::Maintenance => self.maintenance().await?,
            Kind::MinRequiredVersion | Kind::VersionEpoch => Vec::new(),
            Kind::Options => self.options(),
            Kind::DataDistributionStats => self.shard_stats(),
            Kind::FaultTolerance => self.fault_tolerance(),
            Kind::Health => self.health(range),
            Kind::Status => self.status(),
            Kind::Tracing => self.tracing(),
            Kind::ConflictingKeys | Kind::ReadConflicts | Kind::WriteConflicts => {
                self.conflicts(part).await?
            }
            Kind::WorkerInterfaces => self.worker_interfaces(),
        };
        Ok(all.into_iter().filter(|row| range.contains(&row.key)).collect())
    }

    /// Moves a selector over the rows of a module to the key that it means, and stops at the ends of the
    /// module. Returns how far it would have moved beyond (1 if it did not).
    async fn resolve(&self, selector: &mut Selector, module: &KeyRange) -> Result<i32> {
        let forward = selector.offset > 1;
        let mut parts: Vec<_> = parts_of(module).filter(|_| selector.offset != 1).collect();
        if !forward {
            parts.reverse();
        }
        for (part, mut range) in parts {
            match forward {
                true => range.begin = range.begin.max(selector.key.clone()),
                false => range.end = range.end.min(selector.key.clone()),
            }
            if range.is_empty() {
                continue;
            }
            let rows = self.rows(part, &range).await?;
            let count = rows.len() as i32;
            let (at, edge) = match forward {
                true => (selector.offset - 1, rows.last().map(|row| key_after(&row.key))),
                false => (count + selector.offset - 1, rows.first().map(|row| row.key.clone())),
            };
            let Some(edge) = edge else { continue };
            *selector = match usize::try_from(at).ok().and_then(|at| rows.get(at)) {
                Some(row) => Selector::first_at(row.key.clone()),
                None if forward => Selector { key: edge, offset: selector.offset - count },
                None => Selector { key: edge, offset: selector.offset + count },
            };
            if selector.offset == 1 {
                break;
            }
        }
        let rest = selector.offset;
        if rest != 1 {
            *selector = Selector::first_at(if rest < 1 { module.begin.clone() } else { module.end.clone() });
        }
        Ok(rest)
    }

    /// A batch of the rows between two selectors.
    async fn batch(
        &self,
        mut begin: Selector,
        mut end: Selector,
        mut limits: Limits,
        reverse: bool,
        module: &KeyRange,
    ) -> Result<RangeBatch> {
        let beyond = (self.resolve(&mut begin, module).await?, self.resolve(&mut end, module).await?);
        let mut batch = RangeBatch::default();
        if begin.key >= end.key && beyond.0 >= beyond.1 {
            return Ok(batch);
        }
        let chosen = KeyRange { begin: begin.key, end: end.key };
        let mut parts: Vec<_> = parts_of(module).filter(|(_, range)| range.intersects(&chosen)).collect();
        if reverse {
            parts.reverse();
        }
        for (part, range) in parts {
            let range = KeyRange {
                begin: range.begin.max(chosen.begin.clone()),
                end: range.end.min(chosen.end.clone()),
            };
            let mut rows = self.rows(part, &range).await?;
            if reverse {
                rows.reverse();
            }
            for row in rows {
                limits.take(&row);
                batch.rows.push(row);
                if limits.is_reached() {
                    batch.more = true;
                    return Ok(batch);
                }
            }
        }
        Ok(batch)
    }
}

async fn read(
    inner: Arc<Inner>,
    begin: Selector,
    end: Selector,
    limits: Limits,
    reverse: bool,
) -> Result<RangeBatch> {
    let (relaxed, epoch) = {
        let state = inner.state.lock();
        state.deferred()?;
        (state.options.special_keys_relaxed, state.epoch)
    };
    if begin.offset >= end.offset && begin.key >= end.key {
        return Ok(RangeBatch::default());
    }
    let module = match relaxed {
        true => KeyRange::new(ALL_END, SPECIAL_END),
        false => {
            let (module, is_module) = module(&begin.key);
            if end.key < module.begin || module.end < end.key {
                return Err(Error::SPECIAL_KEYS_CROSS_MODULE_READ);
            }
            if !is_module {
                return Err(Error::SPECIAL_KEYS_NO_MODULE_FOUND);
            }
            module
        }
    };
    Reader { inner, epoch }.batch(begin, end, limits, reverse, &module).await
}

/// Boxed: most reads and commits have nothing to do with special keys, and their futures stay small.
impl SimTransaction {
    pub(super) fn special_get(&self, key: &[u8]) -> BoxFuture<'static, Result<Option<Bytes>>> {
        let KeyRange { begin, end } = single_key(key);
        let (begin, end) = (Selector::first_at(begin), Selector::first_at(end));
        let batch = read(self.0.clone(), begin, end, Limits::ONE, false);
        async move { Ok(batch.await?.rows.pop().map(|row| row.value)) }.boxed()
    }

    pub(super) fn special_range(
        &self,
        range: &RangeOption,
        limits: Limits,
    ) -> BoxFuture<'static, Result<RangeBatch>> {
        let (begin, end) = (Selector::plain(&range.begin), Selector::plain(&range.end));
        read(self.0.clone(), begin, end, limits, range.reverse).boxed()
    }
}
