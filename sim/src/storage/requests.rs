//! Clients' reads: their versions, replying to them, rejecting them, and those that wait.

use super::state::State;
use crate::{
    proto::{Message, Version},
    rt::{Nanos, SECOND},
};
use shaketable_tx::Error;

/// How long a read waits for its version (`FUTURE_VERSION_DELAY`).
const FUTURE_VERSION_DELAY: Nanos = SECOND;

/// The version at which a request reads; `None` if it is not a read.
pub fn version_of(request: &Message) -> Option<Version> {
    match request {
        Message::GetValue { version, .. }
        | Message::GetKey { version, .. }
        | Message::GetKeyValues { version, .. }
        | Message::WatchValue { version, .. } => Some(*version),
        _ => None,
    }
}

/// Replies to a read whose version is readable, or to a request about sizes, after `work` nanoseconds.
pub fn answer(state: &State, request: Message, work: Nanos) {
    match request {
        Message::GetValue { key, version, reply } => {
            reply.send_after(state.get(&key, version).map(Option::<&_>::cloned), work);
        }
        Message::GetKey { selector, version, reply } => {
            reply.send_after(state.get_key(&selector, version), work);
        }
        Message::GetKeyValues { range, version, limit, limit_bytes, reverse, reply } => {
            reply.send_after(state.get_key_values(&range, version, limit, limit_bytes, reverse), work);
        }
        Message::GetStorageMetrics { range, reply } => reply.send_after(state.storage_metrics(&range), work),
        Message::GetSplitPoints { range, chunk_size, reply } => {
            reply.send_after(state.split_points(&range, chunk_size), work);
        }
        _ => {}
    }
}

/// Replies to a read with an error.
pub fn refuse(request: Message, error: Error) {
    match request {
        Message::GetValue { reply, .. } => reply.send(Err(error)),
        Message::GetKey { reply, .. } => reply.send(Err(error)),
        Message::GetKeyValues { reply, .. } => reply.send(Err(error)),
        Message::WatchValue { reply, .. } => reply.send(Err(error)),
        _ => {}
    }
}

/// Reads that wait for a version to be applied, in the order of arrival.
#[derive(Default)]
pub struct Waiting {
    reads: Vec<(Version, Nanos, Message)>,
}

impl Waiting {
    /// Adds a read received at `now`, at a version that is not applied yet.
    pub fn push(&mut self, now: Nanos, version: Version, read: Message) {
        self.reads.push((version, now + FUTURE_VERSION_DELAY, read));
    }

    /// Takes the reads at versions up to `version`.
    pub fn take_up_to(&mut self, version: Version) -> impl Iterator<Item = Message> + '_ {
        self.reads.extract_if(.., move |read| read.0 <= version).map(|(_, _, read)| read)
    }

    /// Takes the reads that have reached their time limit at `now`.
    pub fn take_expired(&mut self, now: Nanos) -> impl Iterator<Item = Message> + '_ {
        // Deadlines ascend in the order of arrival.
        let expired = self.reads.partition_point(|(_, deadline, _)| *deadline <= now);
        self.reads.drain(..expired).map(|(_, _, read)| read)
    }

    /// When the first of them reaches its time limit.
    pub fn due(&self) -> Option<Nanos> {
        self.reads.first().map(|(_, deadline, _)| *deadline)
    }
}
