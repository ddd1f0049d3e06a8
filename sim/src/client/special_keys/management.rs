//! Management of the database: its lock, maintenance, the consistency check, data distribution, and the
//! options of these calls.

use super::{
    parts::{Kind, SpecialKeyRange, part, special},
    reader::{Reader, named, row, text},
};
use crate::{
    client::keys::USER_END,
    database_lock,
    proto::{KeyRange, Mutation, Version},
    system_keys::{self, Uid},
};
use bytes::Bytes;
use shaketable_tx::{Error, KeyValue, MutationType, Result};

type Written = Vec<(KeyRange, Option<Bytes>)>;

/// The options, by command.
const OPTIONS: &[&str] = &[
    "excluded/force",
    "excluded_locality/force",
    "failed/force",
    "failed_locality/force",
    "worker_interfaces/verify",
];

/// Versions per second, as maintenance counts them (`CORE_VERSIONSPERSECOND`).
const PER_SECOND: f64 = 1e6;
/// The zone whose maintenance means that failures of storage servers are ignored.
const IGNORE_FAILURES: &[u8] = b"IgnoreSSFailures";
/// An error that FoundationDB's client does not expect: `unknown_error`.
const UNKNOWN_ERROR: Error = Error::from_code(4000);

/// Whether there is this option.
pub(super) fn is_option(name: &[u8]) -> bool {
    OPTIONS.iter().any(|option| option.as_bytes() == name)
}

/// The last value written to a part that is one key.
fn last(written: Written) -> Option<Bytes> {
    written.into_iter().next_back().and_then(|(_, value)| value)
}

impl Reader {
    pub(super) fn options(&self) -> Vec<KeyValue> {
        let state = self.state();
        let set = OPTIONS.iter().filter(|option| state.special.option(option));
        set.map(|option| named(part(Kind::Options), option, Bytes::new())).collect()
    }

    pub(super) fn error_message(&self) -> Vec<KeyValue> {
        let message = self.state().special_error.clone();
        message.map(|message| row(part(Kind::ErrorMessage), message)).into_iter().collect()
    }

    pub(super) fn auto_coordinators(&self) -> Vec<KeyValue> {
        vec![row(part(Kind::AutoCoordinators), system_keys::coordinators(self.world()).join(","))]
    }

    /// Fails a call that manages the cluster.
    pub(super) fn refuse<T>(&self, command: &str, message: impl AsRef<str>) -> Result<T> {
        Err(self.state().special_failure(command, message))
    }

    /// Who has locked the database, or will with this commit.
    pub(super) async fn lock_holder(&self) -> Result<Vec<KeyValue>> {
        let part = part(Kind::Lock);
        self.lock_aware();
        let holder = self.get(database_lock::DATABASE_LOCKED).await?.and_then(|value| uid_of(&value));
        let rows = holder.map(|uid| row(part, uid.to_string())).into_iter().collect();
        Ok(self.with_own_writes(part, rows))
    }

    pub(super) async fn lock(&self, written: Written) -> Result<()> {
        let asked = match last(written) {
            None => None,
            Some(text) => match Uid::parse(&text) {
                Some(uid) => Some(uid),
                None => {
                    let text = String::from_utf8_lossy(&text);
                    return self.refuse("lock", format!("Invalid UID hex string: {text}"));
                }
            },
        };
        self.lock_aware();
        let key = Bytes::from_static(database_lock::DATABASE_LOCKED);
        let found = self.get(&key).await?;
        let mut state = self.state();
        let range = KeyRange::new(key.clone(), shaketable_tx::key_after(&key));
        match (asked, found) {
            (Some(asked), Some(found)) if uid_of(&found) != Some(asked) => {
                return Err(Error::DATABASE_LOCKED);
            }
            (Some(asked), None) => {
                let value = [&[0; 10], &asked.bytes()[..], &[0; 4]].concat();
                let lock = Mutation::Atomic(key, value.into(), MutationType::SetVersionstampedValue);
                state.write_system(lock, range);
                state.native.write_ranges.push(KeyRange::new("", USER_END));
            }
            (None, Some(_)) => state.clear_system(range),
            _ => {}
        }
        Ok(())
    }

    pub(super) async fn consistency_check(&self) -> Result<Vec<KeyValue>> {
        let part = part(Kind::ConsistencyCheck);
        self.lock_aware();
        let suspended = self.get(system_keys::CONSISTENCY_CHECK).await?;
        let rows = match suspended.as_deref() {
            None | Some([0]) => Vec::new(),
            Some(_) => vec![row(part, Bytes::new())],
        };
        Ok(self.with_own_writes(part, rows))
    }

    pub(super) fn suspend_consistency_check(&self, written: Written) -> Result<()> {
        self.lock_aware();
        let suspended = last(written).is_some();
        self.state().set_system(system_keys::CONSISTENCY_CHECK, vec![u8::from(suspended)]);
        Ok(())
    }

    /// The zone under maintenance, with the seconds that remain.
    pub(super) async fn maintenance(&self) -> Result<Vec<KeyValue>> {
        let part = part(Kind::Maintenance);
        self.lock_aware();
        let value = self.get(system_keys::HEALTHY_ZONE).await?;
        let now = self.version().await?;
        let mut rows = Vec::new();
        if let Some((zone, until)) = value.as_deref().and_then(system_keys::parse_healthy_zone) {
            if zone == IGNORE_FAILURES {
                rows.push(named(part, zone, "0"));
            } else if until > now {
                rows.push(named(part, zone, ((until - now) / PER_SECOND as Version).to_string()));
            }
        }
        Ok(self.with_own_writes(part, rows))
    }

    pub(super) async fn set_maintenance(&self, part: &SpecialKeyRange, written: Written) -> Result<()> {
        self.lock_aware();
        let value = self.get(system_keys::HEALTHY_ZONE).await?;
        let now = self.version().await?;
        let begin = part.range().begin;
        let current = value.as_deref().and_then(system_keys::parse_healthy_zone).map(|(zone, _)| zone);
        let mut set = None;
        for (range, value) in &written {
            match value {
                Some(_) if set.is_some() => {
                    let message = "Multiple zones given for maintenance, only one allowed at the same time";
                    return self.refuse("maintenance", message);
                }
                Some(seconds) => {
                    let seconds = text(seconds).and_then(|text| text.parse::<f64>().ok());
                    set = Some((&range.begin[begin.len()..], seconds.ok_or(UNKNOWN_ERROR)?));
                }
                None => {
                    let its = current.is_some_and(|zone| range.contains(&[&begin, zone].concat()));
                    if set.is_none() && its {
                        let key = system_keys::HEALTHY_ZONE;
                        self.state().clear_system(crate::client::keys::single_key(key));
                    }
                }
            }
        }
        let Some((zone, seconds)) = set else { return Ok(()) };
        if current == Some(IGNORE_FAILURES) {
            let message = "Maintenance mode cannot be used while data distribution is disabled for storage server failures.";
            return self.refuse("maintenance", message);
        }
        if seconds < 0.0 {
            let message = format!("The specified maintenance time {seconds} is a negative value");
            return self.refuse("maintenance", message);
        }
        let until = now.saturating_add((seconds * PER_SECOND) as Version);
        self.state().set_system(system_keys::HEALTHY_ZONE, system_keys::healthy_zone(zone, until));
        Ok(())
    }

    /// What data distribution does: -1 unless it was set.
    pub(super) async fn data_distribution(&self) -> Result<Vec<KeyValue>> {
        let part = part(Kind::DataDistribution);
        let mode = self.get(system_keys::DATA_DISTRIBUTION_MODE).await?;
        let mode = mode.and_then(|value| Some(i32::from_le_bytes(value[..].try_into().ok()?))).unwrap_or(-1);
        let mut rows = vec![named(part, "mode", mode.to_string())];
        if self.get(system_keys::REBALANCE_IGNORED).await?.is_some() {
            rows.push(named(part, "rebalance_ignored", Bytes::new()));
        }
        Ok(self.with_own_writes(part, rows))
    }

    pub(super) fn set_data_distribution(&self, part: &SpecialKeyRange, written: Written) -> Result<()> {
        let names = [
            ("mode", system_keys::DATA_DISTRIBUTION_MODE),
            ("rebalance_ignored", system_keys::REBALANCE_IGNORED),
        ];
        let names = names.map(|(name, key)| ([&special(part.begin), name.as_bytes()].concat(), key));
        for (range, value) in written {
            let Some(value) = value else {
                let cleared = names.iter().find(|(name, _)| range.contains(name));
                if let Some((_, key)) = cleared {
                    self.state().clear_system(crate::client::keys::single_key(key));
                }
                continue;
            };
            match names.iter().position(|(name, _)| range.begin == *name) {
                Some(0) => {
                    let invalid = || format!("Invalid datadistribution mode(int): {}", value.escape_ascii());
                    let Some(mode) = text(&value).and_then(|text| text.parse::<i32>().ok()) else {
                        return self.refuse("datadistribution", invalid());
                    };
                    if !(0..=2).contains(&mode) {
                        let message = "Please set the value of the data_distribution/mode to 0(disable) or 1(enable), \
                                       other values are not allowed";
                        return self.refuse("datadistribution", message);
                    }
                    self.state().set_system(names[0].1, mode.to_le_bytes().to_vec());
                }
                Some(_) => self.state().set_system(names[1].1, value),
                None => {
                    let message = "Changing invalid keys, please read the documentation to check valid keys in the range";
                    return self.refuse("datadistribution", message);
                }
            }
        }
        Ok(())
    }

    /// The cluster's versions cannot be advanced: it answers as one whose versions follow an epoch.
    pub(super) async fn advance_version(&self, written: Written) -> Result<()> {
        let command = "advanceversion";
        let Some(asked) = last(written) else { return Ok(()) };
        let Some(asked) = text(&asked).and_then(|text| text.parse::<Version>().ok()) else {
            return self
                .refuse(command, format!("Invalid version(int64_t) argument: {}", asked.escape_ascii()));
        };
        match self.version().await? > asked {
            true => self.refuse(command, "Current read version is larger than the given version"),
            false => self.refuse(command, "Illegal to modify the version while the version epoch is enabled"),
        }
    }
}

/// Who holds the lock, from the value of its key: a versionstamp and an identifier.
fn uid_of(value: &[u8]) -> Option<Uid> {
    let (first, second) = value.get(10..)?.split_first_chunk()?;
    Some(Uid(u64::from_le_bytes(*first), u64::from_le_bytes(second.try_into().ok()?)))
}
