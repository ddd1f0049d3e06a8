//! Special keys, `\xff\xff/...`: what a transaction, its client and the cluster say about themselves, and the
//! management of the cluster (`fdbclient/SpecialKeySpace.actor.cpp`).
//!
//! The list of parts has every range of special keys that exists, with FoundationDB's boundaries, so that
//! reads across them fail in the same way. Values come from the state of the simulation, and reading them
//! draws nothing at random.

mod actors;
mod cluster;
mod configuration;
mod exclusion;
mod global_config;
mod management;
mod metrics;
mod reader;
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
use reader::Reader;
use shaketable_tx::{Error, KeyValue, RangeBatch, RangeOption, Result, key_after};
use std::sync::Arc;

pub use metrics::HealthCache;
pub use tracing::Span;
pub use writes::{Writes, commit};

/// A range of special keys, all relative to `\xff\xff/`.
struct SpecialKeyRange {
    begin: &'static str,
    /// Whether the range is this key alone, all keys that begin so, or these up to another `\xff\xff`.
    extent: Extent,
    kind: Kind,
    writable: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Key,
    Prefix,
    PrefixToSpecial,
}
use Extent::{Key, Prefix, PrefixToSpecial};

macro_rules! parts {
    ($($kind:ident: $begin:literal, $extent:ident $(, $writable:ident)?;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Kind { $($kind),* }

        const PARTS: &[SpecialKeyRange] = &[
            $(SpecialKeyRange {
                begin: $begin,
                extent: $extent,
                kind: Kind::$kind,
                writable: parts!(@ $($writable)?),
            }),*
        ];
    };
    (@) => { false };
    (@ writable) => { true };
}

parts! {
    ActorLineage: "actor_lineage/", Prefix;
    ActorProfiler: "actor_profiler_conf/", Prefix, writable;
    ClusterFilePath: "cluster_file_path", Key;
    ClusterId: "cluster_id", Key;
    Coordinators: "configuration/coordinators/", Prefix, writable;
    ClassSource: "configuration/process/class_source/", Prefix;
    ClassType: "configuration/process/class_type/", Prefix, writable;
    ConnectionString: "connection_string", Key;
    ErrorMessage: "error_message", Key;
    GlobalConfig: "global_config/", Prefix, writable;
    AutoCoordinators: "management/auto_coordinators", Key;
    ConsistencyCheck: "management/consistency_check_suspended", Key, writable;
    DataDistribution: "management/data_distribution/", Prefix, writable;
    Lock: "management/db_locked", Key, writable;
    Excluded: "management/excluded/", Prefix, writable;
    ExcludedLocality: "management/excluded_locality/", Prefix, writable;
    Failed: "management/failed/", Prefix, writable;
    FailedLocality: "management/failed_locality/", Prefix, writable;
    InProgressExclusion: "management/in_progress_exclusion/", Prefix;
    Maintenance: "management/maintenance/", Prefix, writable;
    MinRequiredVersion: "management/min_required_commit_version", Key, writable;
    Options: "management/options/", Prefix, writable;
    Tenants: "management/tenant/", Prefix, writable;
    VersionEpoch: "management/version_epoch", Key, writable;
    DataDistributionStats: "metrics/data_distribution_stats/", PrefixToSpecial;
    FaultTolerance: "metrics/fault_tolerance_metrics_json", Key;
    Health: "metrics/health/", Prefix;
    Status: "status/json", Key;
    Tracing: "tracing/", Prefix, writable;
    ConflictingKeys: "transaction/conflicting_keys/", PrefixToSpecial;
    ReadConflicts: "transaction/read_conflict_range/", PrefixToSpecial;
    WriteConflicts: "transaction/write_conflict_range/", PrefixToSpecial;
    WorkerInterfaces: "worker_interfaces/", Prefix;
}

/// The modules: a read of special keys stays within one. A module is a single key, or all keys that begin so.
const MODULES: &[(&str, Extent)] = &[
    ("actor_lineage/", Prefix),
    ("actor_profiler_conf/", Prefix),
    ("cluster_file_path", Key),
    ("cluster_id", Key),
    ("configuration/", Prefix),
    ("connection_string", Key),
    ("error_message", Key),
    ("global_config/", Prefix),
    ("management/", Prefix),
    ("metrics/", Prefix),
    ("status/json", Key),
    ("tracing/", Prefix),
    ("transaction/", Prefix),
    ("worker_interfaces/", Prefix),
];

/// The special key with this name.
fn special(name: &str) -> Bytes {
    [b"\xff\xff/", name.as_bytes()].concat().into()
}

impl Extent {
    /// The range that begins at the special key with this name.
    fn range(self, name: &str) -> KeyRange {
        let begin = special(name);
        match self {
            Key => single_key(&begin),
            Prefix => KeyRange::new(begin.clone(), [&begin[..begin.len() - 1], b"0"].concat()),
            PrefixToSpecial => KeyRange::new(begin.clone(), [&begin, &ALL_END[..]].concat()),
        }
    }
}

impl SpecialKeyRange {
    fn range(&self) -> KeyRange {
        self.extent.range(self.begin)
    }

    /// The part that takes the writes of a key.
    fn written(key: &[u8]) -> Option<&'static SpecialKeyRange> {
        PARTS.iter().find(|part| part.writable && part.range().contains(key))
    }
}

/// The part of a kind.
fn part(kind: Kind) -> &'static SpecialKeyRange {
    &PARTS[kind as usize]
}

/// The module that contains `key`, or the gap between modules around it; and whether it is a module.
fn module(key: &[u8]) -> (KeyRange, bool) {
    let mut gap = KeyRange::new(ALL_END, SPECIAL_END);
    for (begin, extent) in MODULES {
        let range = extent.range(begin);
        if *key < *range.begin {
            gap.end = range.begin;
            break;
        }
        if range.contains(key) {
            return (range, true);
        }
        gap.begin = range.end;
    }
    (gap, false)
}

/// The parts within a module, or within all special keys.
fn parts_of(module: &KeyRange) -> impl DoubleEndedIterator<Item = (&'static SpecialKeyRange, KeyRange)> {
    PARTS
        .iter()
        .map(|part| (part, part.range()))
        .filter(|(_, range)| module.begin <= range.begin && range.end <= module.end)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_parts_are_ascending_and_disjoint_and_each_part_is_within_a_module() {
        let modules: Vec<_> = MODULES.iter().map(|(begin, extent)| extent.range(begin)).collect();
        let parts: Vec<_> = PARTS.iter().map(SpecialKeyRange::range).collect();
        for ranges in [&modules, &parts] {
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].begin), "{ranges:?}");
        }
        for part in &parts {
            let (module, is_module) = module(&part.begin);
            assert!(is_module && part.end <= module.end, "{part:?}");
        }
        assert_eq!(
            module(&special("metrics0")),
            (KeyRange::new(special("metrics0"), special("status/json")), false)
        );
        assert_eq!(module(&ALL_END), (KeyRange::new(ALL_END, special("actor_lineage/")), false));
    }
}
