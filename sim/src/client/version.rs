//! The read version: requested once, when it is first needed, for all calls that wait for it.

use super::{
    connection::VersionFlags,
    options::Options,
    record::Record,
    transaction::{Inner, ReadVersion, State},
};
use crate::{
    faults::{Family, Request, Turn},
    history::Aside,
    proto::{Priority, Version},
};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use shaketable_tx::{Error, Result};
use std::{borrow::Cow, future::Future, sync::Arc};

/// A pending or known read version.
#[derive(Clone)]
pub enum Awaited {
    /// It is known.
    Known(Version),
    /// It was requested.
    Requested(Shared<BoxFuture<'static, Result<Version>>>),
}

impl Awaited {
    /// The version.
    pub async fn get(self) -> Result<Version> {
        match self {
            Awaited::Known(version) => Ok(version),
            Awaited::Requested(requested) => requested.await,
        }
    }
}

/// The transaction's read version, which is requested now if it was not before; `risky` specifies, in
/// addition to the options, that it need not be causally consistent, as for a transaction without reads.
pub fn read_version(inner: &Arc<Inner>, state: &mut State, risky: bool) -> Awaited {
    match &state.version {
        ReadVersion::Known(version) => return Awaited::Known(*version),
        ReadVersion::Requested(requested) => return Awaited::Requested(requested.clone()),
        ReadVersion::NotRequested => {}
    }
    let connection = &inner.client.connection;
    let number = state.versions;
    let (record, options) = state.requests();
    let now = connection.world.clock.now();
    if options.use_grv_cache
        && !options.skip_grv_cache
        && let Some(version) = connection.cached_version()
    {
        record.version_requested(now, false);
        record.read_version(&inner.client, version);
        state.version = ReadVersion::Known(version);
        return Awaited::Known(version);
    }
    let causal_read_risky = options.causal_read_risky || risky;
    record.version_requested(now, !causal_read_risky);
    let operation = record.operation();
    let flags =
        VersionFlags { priority: options.priority, causal_read_risky, lock_aware: options.lock_aware };
    let asked = Asked { number, flags, staleness: 0 };
    let stale = |asked| Asked { staleness: staleness(inner, &options), ..asked };
    let requested: BoxFuture<'static, Result<Version>> = match fault(inner, &options) {
        Some(error) => std::future::ready(Err(error)).boxed(),
        None => match connection.turn(operation, Request::ReadVersion) {
            Some(turn) if turn.is_ordered() => in_turn(turn, inner, stale(asked)).boxed(),
            _ => ask(inner, stale(asked)).boxed(),
        },
    };
    let requested = requested.shared();
    state.version = ReadVersion::Requested(requested.clone());
    Awaited::Requested(requested)
}

impl State {
    /// What a read version that is requested now is recorded in, and the options that it is requested with:
    /// those of the next attempt, which are not set again yet, if this one backs off.
    fn requests(&mut self) -> (&mut Record, Cow<'_, Options>) {
        match &mut self.next {
            Some(next) => (next, Cow::Owned(Options::new(1))),
            None => (&mut self.record, Cow::Borrowed(&self.options)),
        }
    }
}

/// How a read version is requested.
struct Asked {
    /// The number of the request.
    number: u32,
    flags: VersionFlags,
    /// By how many versions it is older than the latest one.
    staleness: Version,
}

/// By how many versions a causally risky read version is older than the latest one.
fn staleness(inner: &Inner, options: &Options) -> Version {
    let connection = &inner.client.connection;
    let risky = options.causal_read_risky.then(|| connection.fault(Family::RiskyRead)).flatten();
    match risky {
        Some(mut risky) => {
            let second = connection.world.config.versions_per_second.max(1) as u64;
            connection.world.faults.draw(&mut risky, |chance| chance.below(second)) as Version
        }
        None => 0,
    }
}

/// Asks when it is the request's turn.
fn in_turn(turn: Turn, inner: &Arc<Inner>, asked: Asked) -> impl Future<Output = Result<Version>> + use<> {
    let weak = Arc::downgrade(inner);
    async move {
        turn.come().await;
        match weak.upgrade().map(|inner| ask(&inner, asked)) {
            Some(asked) => asked.await,
            None => Err(Error::TRANSACTION_CANCELLED),
        }
    }
}

fn ask(inner: &Arc<Inner>, asked: Asked) -> impl Future<Output = Result<Version>> + use<> {
    let Asked { number, flags, staleness } = asked;
    let requested = inner.client.connection.read_version(flags);
    let weak = Arc::downgrade(inner);
    async move {
        let reply = requested.await?;
        if reply.locked && !flags.lock_aware {
            return Err(Error::DATABASE_LOCKED);
        }
        let version = (reply.version - staleness).max(1);
        if let Some(inner) = weak.upgrade() {
            let mut state = inner.state.lock();
            if state.versions == number {
                state.version = ReadVersion::Known(version);
                state.requests().0.read_version(&inner.client, version);
            }
        }
        Ok(version)
    }
}

/// Errors that the contract allows when a read version is requested.
fn fault(inner: &Inner, options: &Options) -> Option<Error> {
    let connection = &inner.client.connection;
    if let Some(error) = connection.refusal_of([Family::GrvMemory]) {
        return Some(error);
    }
    // In the simulation, only batch priority and tags are throttled.
    let batch = options.priority == Priority::Batch;
    if (batch || options.tags > 0)
        && let Some(mut throttled) = connection.fault(Family::Throttled)
    {
        let errors: &[Error] = match batch {
            true => &[Error::BATCH_TRANSACTION_THROTTLED],
            false => &[Error::TAG_THROTTLED, Error::PROXY_TAG_THROTTLED],
        };
        return Some(connection.world.faults.draw(&mut throttled, |chance| *chance.pick(errors)));
    }
    None
}

/// Sets the read version explicitly.
pub fn set_read_version(inner: &Inner, state: &mut State, version: Version) -> Result<()> {
    if !matches!(state.version, ReadVersion::NotRequested) {
        return Err(Error::READ_VERSION_ALREADY_SET);
    }
    if version <= 0 {
        return Err(Error::VERSION_INVALID);
    }
    state.version = ReadVersion::Known(version);
    let record = state.requests().0;
    record.aside(Aside::ReadVersion(version));
    record.version_requested(inner.client.connection.world.clock.now(), false);
    record.read_version(&inner.client, version);
    Ok(())
}
