//! Writes of special keys: what a transaction has asked for, and what its commit makes of it.

use super::{
    parts::{Kind, PARTS, SpecialKeyRange},
    reader::Reader,
};
use crate::{
    client::transaction::{Inner, State},
    proto::{KeyRange, Mutation},
    system_keys::Uid,
};
use bytes::Bytes;
use serde_json::json;
use shaketable_tx::{Error, Result, key_after};
use std::sync::Arc;

impl State {
    /// Keeps the reason why a call of special keys fails, and returns the error.
    pub(super) fn special_failure(&mut self, command: &str, message: impl AsRef<str>) -> Error {
        let message = json!({ "retriable": false, "command": command, "message": message.as_ref() });
        self.special_error = Some(message.to_string());
        Error::SPECIAL_KEYS_API_FAILURE
    }

    fn special_writes_enabled(&self) -> Result<()> {
        match self.options.special_keys_writes {
            true => Ok(()),
            false => Err(Error::SPECIAL_KEYS_WRITE_DISABLED),
        }
    }

    /// Sets a special key.
    pub fn special_set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.special_writes_enabled()?;
        let part = SpecialKeyRange::written(key).ok_or(Error::SPECIAL_KEYS_NO_WRITE_MODULE_FOUND)?;
        let name = &key[part.range().begin.len()..];
        let value = Bytes::copy_from_slice(value);
        match part.kind {
            Kind::Tracing => return self.set_tracing(key, name, &value),
            // Unknown options are ignored.
            Kind::Options if !super::management::is_option(name) => {}
            Kind::Excluded | Kind::ExcludedLocality | Kind::Failed | Kind::FailedLocality => {
                self.special.set(key, Some(Bytes::new()));
            }
            _ => self.special.set(key, Some(value)),
        }
        Ok(())
    }

    /// Clears a special key, or a range of them.
    pub fn special_clear(&mut self, range: &KeyRange) -> Result<()> {
        self.special_writes_enabled()?;
        if range.is_empty() {
            return Ok(());
        }
        let last = |part: &&SpecialKeyRange| part.range().begin < range.end && range.end <= part.range().end;
        let begin = SpecialKeyRange::written(&range.begin);
        let end = PARTS.iter().filter(|part| part.writable).find(last);
        let part = match (begin, end) {
            (None, None) => return Err(Error::SPECIAL_KEYS_NO_WRITE_MODULE_FOUND),
            (Some(begin), Some(end)) if begin.kind == end.kind => begin,
            _ => return Err(Error::SPECIAL_KEYS_CROSS_MODULE_CLEAR),
        };
        let forbidden = match part.kind {
            Kind::Tracing => ("clear trace", "clear disabled"),
            Kind::ClassType => ("setclass", "Clear operation is meaningless thus forbidden for setclass"),
            Kind::Coordinators => {
                ("coordinators", "Clear operation is meaningless thus forbidden for coordinators")
            }
            Kind::Options => {
                self.special.forget(range);
                return Ok(());
            }
            _ => {
                self.special.clear(range);
                return Ok(());
            }
        };
        Err(self.special_failure(forbidden.0, forbidden.1))
    }

    /// Sets a system key with the commit.
    pub(super) fn set_system(&mut self, key: &[u8], value: impl Into<Bytes>) {
        let key = Bytes::copy_from_slice(key);
        self.write_system(
            Mutation::Set(key.clone(), value.into()),
            KeyRange { begin: key.clone(), end: key_after(&key) },
        );
    }

    /// Clears system keys with the commit.
    pub(super) fn clear_system(&mut self, range: KeyRange) {
        self.write_system(Mutation::ClearRange(range.clone()), range);
    }

    /// Adds a write of system keys to what is sent with the commit.
    pub(super) fn write_system(&mut self, mutation: Mutation, conflict: KeyRange) {
        self.record.write(mutation.clone());
        self.native.mutations.push(mutation);
        self.native.write_ranges.push(conflict);
    }
}

impl Inner {
    /// A new value of a key that changes whenever others do.
    pub(super) fn unique(&self) -> Bytes {
        self.client.connection.draw(|chance| Uid(chance.u64(), chance.u64())).to_string().into()
    }
}

/// Makes what was written to special keys part of the commit.
pub async fn commit(inner: &Arc<Inner>, epoch: u32) -> Result<()> {
    let reader = Reader { inner: inner.clone(), epoch };
    for part in PARTS.iter().filter(|part| part.writable) {
        let written = reader.state().special.within(&part.range());
        if !written.is_empty() {
            reader.commit_part(part, written).await?;
        }
    }
    Ok(())
}

impl Reader {
    async fn commit_part(
        &self,
        part: &SpecialKeyRange,
        written: Vec<(KeyRange, Option<Bytes>)>,
    ) -> Result<()> {
        match part.kind {
            Kind::ClassType => self.set_classes(part, written).await,
            Kind::ConsistencyCheck => self.suspend_consistency_check(written),
            Kind::Coordinators => self.change_coordinators(part, written),
            Kind::DataDistribution => self.set_data_distribution(part, written),
            Kind::Excluded | Kind::ExcludedLocality | Kind::Failed | Kind::FailedLocality => {
                self.exclude(part, written).await
            }
            Kind::GlobalConfig => self.set_global_config(part, written).await,
            Kind::Lock => self.lock(written).await,
            Kind::Maintenance => self.set_maintenance(part, written).await,
            Kind::MinRequiredVersion => self.advance_version(written).await,
            Kind::VersionEpoch => Err(self.state().special_failure("versionepoch", NO_EPOCH)),
            Kind::ActorProfiler => {
                Err(self.state().special_failure("actor_profiler_conf", "No profiler is running"))
            }
            Kind::Tenants => Err(TENANTS_DISABLED),
            Kind::Tracing => Err(Error::SPECIAL_KEYS_API_FAILURE),
            // Options are for the others.
            _ => Ok(()),
        }
    }
}

/// The cluster has no tenants.
const TENANTS_DISABLED: Error = Error::from_code(2136);
const NO_EPOCH: &str = "The version epoch of this cluster cannot be changed";
