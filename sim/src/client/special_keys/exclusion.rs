//! Exclusion of servers, by address or by locality. The exclusions are stored as FoundationDB stores them;
//! the simulated data distribution does not move data away from excluded servers, so that such an exclusion
//! stays in progress.

use super::{
    parts::{Kind, SpecialKeyRange, part},
    reader::{Reader, named, text},
};
use crate::{
    client::keys::single_key,
    ids::NodeId,
    proto::KeyRange,
    system_keys::{self, CONFIGURATION},
    world::Class,
};
use bytes::Bytes;
use shaketable_tx::{KeyValue, Result, TransactionOption};
use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

/// What a key excludes: a whole address, or one port of it, or what has a locality.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exclusion {
    Address(IpAddr),
    Port(SocketAddr),
    Locality(String, String),
}

/// The localities with a prefix, and the machine's own localities, by FoundationDB's names.
const LOCALITY: &str = "locality_";

impl Exclusion {
    fn parse(kind: Kind, name: &[u8]) -> Option<Exclusion> {
        let name = text(name)?;
        if matches!(kind, Kind::ExcludedLocality | Kind::FailedLocality) {
            let (key, value) = name.strip_prefix(LOCALITY)?.split_once(':')?;
            return Some(Exclusion::Locality(key.to_owned(), value.to_owned()));
        }
        let address = name.parse().map(Exclusion::Address);
        address.or_else(|_| name.parse().map(Exclusion::Port)).ok()
    }

    /// Whether it excludes a storage server of the cluster.
    fn excludes(&self, reader: &Reader, node: NodeId) -> bool {
        let address: Option<SocketAddr> = system_keys::address(node).parse().ok();
        match self {
            Exclusion::Address(ip) => address.is_some_and(|address| address.ip() == *ip),
            Exclusion::Port(one) => address == Some(*one),
            Exclusion::Locality(key, value) => {
                reader.locality(node).iter().any(|(name, its)| name == key && its == value)
            }
        }
    }
}

/// The words in messages about a kind.
fn command(kind: Kind) -> &'static str {
    match kind {
        Kind::Failed | Kind::FailedLocality => "exclude failed",
        _ => "exclude",
    }
}

/// The name of a kind's keys, in special keys and in the configuration.
fn name(part: &SpecialKeyRange) -> &'static str {
    part.begin.trim_start_matches("management/")
}

impl Reader {
    /// The localities of a process.
    pub(super) fn locality(&self, node: NodeId) -> [(&'static str, String); 3] {
        let uid = system_keys::Uid::of_process(self.world().seed, node).to_string();
        [("machineid", uid.clone()), ("processid", uid.clone()), ("zoneid", uid)]
    }

    /// The exclusions of a kind.
    pub(super) async fn excluded(&self, part: &SpecialKeyRange) -> Result<Vec<KeyValue>> {
        let prefix = [CONFIGURATION, name(part).as_bytes()].concat();
        let rows = self.range(&prefix).await?;
        let rows = rows.into_iter().map(|row| named(part, &row.key[prefix.len()..], row.value));
        Ok(self.with_own_writes(part, rows.collect()))
    }

    async fn stored(&self, part: &SpecialKeyRange) -> Result<Vec<Exclusion>> {
        let prefix = [CONFIGURATION, name(part).as_bytes()].concat();
        let rows = self.range(&prefix).await?;
        Ok(rows.iter().filter_map(|row| Exclusion::parse(part.kind, &row.key[prefix.len()..])).collect())
    }

    /// The servers that are excluded and still have data.
    pub(super) async fn exclusions_in_progress(&self) -> Result<Vec<KeyValue>> {
        self.lock_aware();
        let mut exclusions = Vec::new();
        for kind in [Kind::Excluded, Kind::Failed, Kind::ExcludedLocality, Kind::FailedLocality] {
            exclusions.extend(self.stored(part(kind)).await?);
        }
        let servers = self.world().machines(Class::Storage).into_iter();
        let excluded = servers.filter(|node| exclusions.iter().any(|one| one.excludes(self, *node)));
        let addresses: BTreeSet<String> = excluded.map(system_keys::address).collect();
        let part = part(Kind::InProgressExclusion);
        Ok(addresses.iter().map(|address| named(part, address, Bytes::new())).collect())
    }

    /// Excludes what was set, and includes again what was cleared.
    pub(super) async fn exclude(
        &self,
        part: &SpecialKeyRange,
        written: Vec<(KeyRange, Option<Bytes>)>,
    ) -> Result<()> {
        let (begin, kind) = (part.range().begin, part.kind);
        let own = |key: &[u8]| key[begin.len()..].to_vec();
        let mut exclusions = Vec::new();
        for (range, _) in written.iter().filter(|(_, value)| value.is_some()) {
            let name = own(&range.begin);
            let Some(exclusion) = Exclusion::parse(kind, &name) else {
                let what = match kind {
                    Kind::Excluded | Kind::Failed => "network endpoint address",
                    _ => "locality",
                };
                let message = format!("ERROR: '{}' is not a valid {what}\n", name.escape_ascii());
                return self.refuse(command(kind), message);
            };
            exclusions.push((name, exclusion));
        }
        let forced = self.state().special.option(&format!("{}force", name(part)));
        if !exclusions.is_empty() && !forced {
            self.check(kind, &exclusions.iter().map(|(_, exclusion)| exclusion.clone()).collect::<Vec<_>>())?;
        }
        self.manage();
        let stored: Vec<Vec<u8>> = {
            let prefix = [CONFIGURATION, name(part).as_bytes()].concat();
            self.range(&prefix).await?.iter().map(|row| row.key[prefix.len()..].to_vec()).collect()
        };
        let mut changed = false;
        for (key, _) in exclusions.iter().filter(|(key, _)| !stored.contains(key)) {
            changed = true;
            self.state().set_system(&[CONFIGURATION, name(part).as_bytes(), key].concat(), Bytes::new());
        }
        for (range, _) in written.iter().filter(|(_, value)| value.is_none()) {
            changed = true;
            let system = |key: &[u8]| [CONFIGURATION, name(part).as_bytes(), &own(key)].concat();
            // The end of the part has no name of its own.
            let end = match range.end.starts_with(&begin) {
                true => system(&range.end),
                false => [CONFIGURATION, name(part).trim_end_matches('/').as_bytes(), b"0"].concat(),
            };
            self.state().clear_system(KeyRange::new(system(&range.begin), end));
        }
        if changed {
            // Concurrent changes conflict at this key, and the cluster sees that there is one.
            let version = [CONFIGURATION, name(part).trim_end_matches('/').as_bytes()].concat();
            let unique = self.inner.unique();
            let mut state = self.state();
            state.native.extra_reads.push(single_key(&version));
            state.set_system(&version, unique);
        }
        Ok(())
    }

    /// The options of calls that manage the cluster.
    pub(super) fn manage(&self) {
        let mut state = self.state();
        for option in [TransactionOption::LockAware, TransactionOption::PrioritySystemImmediate] {
            // Options without a value are always accepted.
            let _ = state.options.set(&option);
        }
    }

    /// Whether the cluster could do without what would be excluded.
    fn check(&self, kind: Kind, exclusions: &[Exclusion]) -> Result<()> {
        let servers = self.world().machines(Class::Storage);
        let is_excluded = |node: &NodeId| exclusions.iter().any(|one| one.excludes(self, *node));
        if servers.iter().all(is_excluded) {
            let message = "ERROR: This exclude may cause the total available space in the cluster to drop below 10%.\n\
                           Call set(\"0xff0xff/management/options/exclude/force\", ...) first to exclude without \
                           checking available space.\n";
            return self.refuse(command(kind), message);
        }
        let failed = matches!(kind, Kind::Failed | Kind::FailedLocality);
        let team_is_lost =
            |team: &[u16]| team.iter().all(|server| is_excluded(&servers[usize::from(*server)]));
        if failed && self.world().shards.lock().shards().iter().any(|shard| team_is_lost(&shard.team)) {
            let message = "ERROR: It is unsafe to exclude the specified servers at this time.\n\
                           Please check that this exclusion does not bring down an entire storage team.\n";
            return self.refuse(command(kind), message);
        }
        Ok(())
    }
}
