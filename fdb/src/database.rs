//! The contract's [`Database`](shaketable_tx::Database) over the real client.

use super::{
    Network,
    raw::RawDatabase,
    time::RealTime,
    transaction::{FdbTransaction, error},
};
use shaketable_tx::{Database, DatabaseOption, Env, Result, real::ClusterFile};
use std::{fmt, sync::Arc};

/// A database of a real cluster. Clones refer to the same database and share its options; each
/// [`open`](FdbDatabase::open) has its own options.
#[derive(Clone)]
pub struct FdbDatabase {
    raw: Arc<RawDatabase>,
    env: Env,
}

impl FdbDatabase {
    /// Opens the database of a cluster. Nothing is sent yet: use [`reach`](shaketable_tx::real::reach) to
    /// check that the cluster responds.
    pub fn open(_: &Network, cluster: &ClusterFile) -> Result<FdbDatabase> {
        let raw = RawDatabase::open(cluster.path()).map_err(error)?;
        Ok(FdbDatabase { raw: Arc::new(raw), env: Env::new(RealTime::new()) })
    }

    /// The same database, with the same options, as the crate `foundationdb` has it. It may live longer than
    /// this handle, but not than the [`Network`].
    pub fn foundationdb(&self) -> Arc<foundationdb::Database> {
        self.raw.database()
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
