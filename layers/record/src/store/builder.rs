//! Opening a store.

use super::{Keyspace, Opened, RebuildPolicy, RecordContext, RecordStore, header::Header, upgrade};
use crate::{
    error::Error,
    index::{Registry, states},
    metadata::RecordMetaData,
};
use foundationdb_tuple::Subspace;
use futures::future::try_join;
use shaketable_tx::{
    Database, RetryError, Transaction,
    once::{self, Answer, Outcome, Session},
    reachable,
};
use std::{future::Future, sync::Arc};

/// How a store is opened; any number of times, in one transaction after another.
pub struct RecordStoreBuilder<T: Transaction> {
    keyspace: Keyspace,
    meta_data: Arc<RecordMetaData>,
    registry: Registry<T>,
    user_version: Option<i32>,
    rebuild: RebuildPolicy,
}

impl<T: Transaction> Clone for RecordStoreBuilder<T> {
    fn clone(&self) -> Self {
        RecordStoreBuilder {
            keyspace: self.keyspace.clone(),
            meta_data: self.meta_data.clone(),
            registry: self.registry.clone(),
            user_version: self.user_version,
            rebuild: self.rebuild,
        }
    }
}

/// Whether there may be a store, or must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Store,
    Nothing,
    Either,
}

impl<T: Transaction> RecordStore<T> {
    /// A builder of the store in this subspace, which must not be used for anything else, with all
    /// maintainers of this crate.
    pub fn builder(subspace: Subspace, meta_data: impl Into<Arc<RecordMetaData>>) -> RecordStoreBuilder<T> {
        RecordStoreBuilder {
            keyspace: Keyspace::new(subspace),
            meta_data: meta_data.into(),
            registry: Registry::standard(),
            user_version: None,
            rebuild: RebuildPolicy::default(),
        }
    }
}

impl<T: Transaction> RecordStoreBuilder<T> {
    /// With these maintainers of indexes.
    pub fn registry(self, registry: Registry<T>) -> Self {
        RecordStoreBuilder { registry, ..self }
    }

    /// With the version of the application's own use of the store. A store that was opened with a later one
    /// refuses to open ([`Error::StaleUserVersion`]); [`RecordStore::previous_versions`] says which one it
    /// was opened with before.
    pub fn user_version(self, version: i32) -> Self {
        RecordStoreBuilder { user_version: Some(version), ..self }
    }

    /// What becomes of indexes that the store does not have yet.
    pub fn rebuild(self, rebuild: RebuildPolicy) -> Self {
        RecordStoreBuilder { rebuild, ..self }
    }

    /// The meta-data.
    pub fn meta_data(&self) -> &Arc<RecordMetaData> {
        &self.meta_data
    }

    /// Creates the store. Fails with [`Error::StoreExists`].
    pub async fn create(&self, context: &RecordContext<T>) -> Result<RecordStore<T>, Error> {
        self.begin(context, Expected::Nothing).await
    }

    /// Opens the store. Fails with [`Error::NoStore`] if there is none.
    ///
    /// # Errors
    ///
    /// Also those of [`create_or_open`](RecordStoreBuilder::create_or_open).
    pub async fn open(&self, context: &RecordContext<T>) -> Result<RecordStore<T>, Error> {
        self.begin(context, Expected::Store).await
    }

    /// Opens the store; creates it if there is none. The header is read serializably, so that a transaction
    /// conflicts with a change of the meta-data or of an index's state.
    ///
    /// If the meta-data is later than that with which the store was last opened, the store becomes one of the
    /// later meta-data: what removed indexes had is cleared, and indexes that are new, or were changed, are
    /// treated as the [`RebuildPolicy`] says.
    ///
    /// # Errors
    ///
    /// [`Error::StaleMetaData`] and [`Error::StaleUserVersion`] if the store was opened with later ones;
    /// [`Error::NewerFormat`]; [`Error::NoHeader`] if the subspace has rows of something else;
    /// [`Error::Foreign`] for a torn header; [`Error::UnknownIndexType`] and [`Error::InvalidIndex`] if an
    /// index cannot be maintained.
    pub async fn create_or_open(&self, context: &RecordContext<T>) -> Result<RecordStore<T>, Error> {
        self.begin(context, Expected::Either).await
    }

    /// Runs `body` on the store in a transaction of a session: exactly once, whatever happens to the commits.
    /// The store is created if there is none. `body` may run several times, and must not have effects outside
    /// its transaction, which other layers can share: [`RecordContext::transaction`]. The context is closed
    /// when `body` returns.
    ///
    /// Dropping the future: the operation is applied once or not at all; request its fate with
    /// [`Session::resolve`] before the session begins another one.
    pub fn run<D, F, Fut, A, E>(
        &self,
        session: &mut Session<D>,
        body: F,
    ) -> impl Future<Output = Outcome<A, E>> + Send
    where
        D: Database<Transaction = T>,
        F: Fn(RecordStore<T>) -> Fut + Send + Sync,
        Fut: Future<Output = Result<A, E>> + Send,
        A: Answer + Send,
        E: RetryError + From<once::Error> + From<Error> + Send,
    {
        let builder = self.clone();
        async move {
            let (builder, body) = (&builder, &body);
            session
                .apply(|tx| async move {
                    let context = RecordContext::within(tx);
                    let answer = body(builder.create_or_open(&context).await?).await?;
                    context.close();
                    Ok(answer)
                })
                .await
        }
    }

    async fn begin(&self, context: &RecordContext<T>, expected: Expected) -> Result<RecordStore<T>, Error> {
        self.registry.validate(&self.meta_data)?;
        let turn = context.writing().await;
        let tx = turn.transaction()?;
        let states = self.keyspace.part(super::Part::States);
        let (header, states) = try_join(Header::read(tx, &self.keyspace), states::read(tx, &states)).await?;
        match (expected, &header) {
            (Expected::Store, None) => return Err(Error::NoStore),
            (Expected::Nothing, Some(_)) => return Err(Error::StoreExists),
            _ => {}
        }
        let store = RecordStore {
            context: turn.clone(),
            keyspace: self.keyspace.clone(),
            meta_data: self.meta_data.clone(),
            registry: self.registry.clone(),
            opened: context.opened(self.keyspace.store()),
            previous: header.as_ref().map(|header| super::PreviousVersions {
                meta_data: header.meta_data_version(),
                user: header.user_version,
            }),
        };
        let given = self.meta_data.version();
        let opened = |states| {
            *store.opened() = Opened { meta_data: given, states };
        };
        let outside = || RecordStore { context: context.clone(), ..store.clone() };
        let Some(header) = header else {
            Header::new(given, self.user_version).write(tx, &self.keyspace);
            opened(states);
            return Ok(outside());
        };
        let before = header.meta_data_version();
        if before > given {
            reachable!("record: a store refuses older meta-data");
            return Err(Error::StaleMetaData { store: before, given });
        }
        if let (Some(user), Some(given)) = (header.user_version, self.user_version)
            && user > given
        {
            return Err(Error::StaleUserVersion { store: user, given });
        }
        opened(states);
        if before < given {
            upgrade::upgrade(&store, before, self.rebuild).await?;
        }
        let user_version = self.user_version.or(header.user_version);
        let now = Header { meta_data_version: Some(given), user_version, ..header.clone() };
        if now != header {
            now.write(tx, &self.keyspace);
        }
        Ok(outside())
    }
}
