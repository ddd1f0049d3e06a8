//! The list of special keys, with FoundationDB's boundaries.

use crate::{
    client::keys::{ALL_END, SPECIAL_END, single_key},
    proto::KeyRange,
};
use bytes::Bytes;

/// A range of special keys, all relative to `\xff\xff/`.
pub(super) struct SpecialKeyRange {
    pub(super) begin: &'static str,
    /// Whether the range is this key alone, all keys that begin so, or these up to another `\xff\xff`.
    pub(super) extent: Extent,
    pub(super) kind: Kind,
    pub(super) writable: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Extent {
    Key,
    Prefix,
    PrefixToSpecial,
}
use Extent::{Key, Prefix, PrefixToSpecial};

macro_rules! parts {
    ($($kind:ident: $begin:literal, $extent:ident $(, $writable:ident)?;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind { $($kind),* }

        pub(super) const PARTS: &[SpecialKeyRange] = &[
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
pub(super) const MODULES: &[(&str, Extent)] = &[
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
pub(super) fn special(name: &str) -> Bytes {
    [b"\xff\xff/", name.as_bytes()].concat().into()
}

impl Extent {
    /// The range that begins at the special key with this name.
    pub(super) fn range(self, name: &str) -> KeyRange {
        let begin = special(name);
        match self {
            Key => single_key(&begin),
            Prefix => KeyRange::new(begin.clone(), [&begin[..begin.len() - 1], b"0"].concat()),
            PrefixToSpecial => KeyRange::new(begin.clone(), [&begin, &ALL_END[..]].concat()),
        }
    }
}

impl SpecialKeyRange {
    pub(super) fn range(&self) -> KeyRange {
        self.extent.range(self.begin)
    }

    /// The part that takes the writes of a key.
    pub(super) fn written(key: &[u8]) -> Option<&'static SpecialKeyRange> {
        PARTS.iter().find(|part| part.writable && part.range().contains(key))
    }
}

/// The part of a kind.
pub(super) fn part(kind: Kind) -> &'static SpecialKeyRange {
    &PARTS[kind as usize]
}

/// The module that contains `key`, or the gap between modules around it; and whether it is a module.
pub(super) fn module(key: &[u8]) -> (KeyRange, bool) {
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
pub(super) fn parts_of(
    module: &KeyRange,
) -> impl DoubleEndedIterator<Item = (&'static SpecialKeyRange, KeyRange)> {
    PARTS
        .iter()
        .map(|part| (part, part.range()))
        .filter(|(_, range)| module.begin <= range.begin && range.end <= module.end)
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
