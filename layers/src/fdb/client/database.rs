//! The contract's [`Database`](crate::tx::Database) over the real client.

use super::{
    Network,
    raw::RawDatabase,
    time::RealTime,
    transaction::{FdbTransaction, error},
};
use crate::{
    fdb::ClusterFile,
    tx::{Database, DatabaseOption, Env, Error, Result, Transaction, TransactionOption},
};
use std::{fmt, future::Future, sync::Arc, time::Duration};

/// A database of a real cluster. Clones refer to the same database and share its options; each
/// [`open`](FdbDatabase::open) has its own options.
#[derive(Clone)]
pub struct FdbDatabase {
    raw: Arc<RawDatabase>,
    env: Env,
}

/// Why a cluster could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// It returned no read version within this time.
    #[error("no answer from {coordinators} within {} s: is the cluster up, and reachable from here?", .waited.as_secs())]
    Silent {
        /// The coordinators that were contacted.
        coordinators: String,
        /// How long the caller waited.
        waited: Duration,
    },
    /// An operator has locked it.
    #[error("the database is locked (its operator holds the lock: `fdbcli --exec unlock`)")]
    Locked,
    /// It returned another error.
    #[error("{coordinators}: {error}")]
    Failed {
        /// The coordinators that were contacted.
        coordinators: String,
        /// The error that it returned.
        error: Error,
    },
}

impl FdbDatabase {
    /// Opens the database of a cluster. Nothing is sent yet: use [`reach`](FdbDatabase::reach) to check that
    /// the cluster responds.
    pub fn open(_: &Network, cluster: &ClusterFile) -> Result<FdbDatabase> {
        let raw = RawDatabase::open(cluster.path()).map_err(error)?;
        Ok(FdbDatabase { raw: Arc::new(raw), env: Env::new(RealTime::new()) })
    }

    /// The same database, with the same options, as the crate `foundationdb` has it. It may live longer than this handle,
    /// but not than the [`Network`].
    pub fn foundationdb(&self) -> Arc<foundationdb::Database> {
        self.raw.database()
    }

    /// Requests a read version and waits for it for at most `patience`.
    pub fn reach(
        &self,
        cluster: &ClusterFile,
        patience: Duration,
    ) -> impl Future<Output = Result<i64, Unreachable>> + Send {
        async move {
            let coordinators = || cluster.coordinators().to_owned();
            let asked = async {
                let tx = self.create_transaction()?;
                let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
                tx.set_option(TransactionOption::Timeout(milliseconds.max(1)))?;
                tx.get_read_version().await
            };
            asked.await.map_err(|error| match error {
                Error::TRANSACTION_TIMED_OUT => {
                    Unreachable::Silent { coordinators: coordinators(), waited: patience }
                }
                Error::DATABASE_LOCKED => Unreachable::Locked,
                error => Unreachable::Failed { coordinators: coordinators(), error },
            })
        }
    }
}

impl Database for FdbDatabase {
    type Transaction = FdbTransaction;

    fn create_transaction(&self) -> Result<FdbTransaction> {
        self.raw.create_transaction().map(FdbTransaction::new).map_err(error)
    }

    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        self.set_option_raw(option.code(), option.value().as_deref())
    }

    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.raw.set_option(code, value).map_err(error)
    }

    fn env(&self) -> &Env {
        &self.env
    }
}

impl fmt::Debug for FdbDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FdbDatabase")
    }
}
