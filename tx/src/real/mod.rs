//! FoundationDB's own client: what a program needs to run on a real cluster, without the client's library.
//!
//! The crate `shaketable-fdb` implements [`Client`] with that library. Programs take a [`Client`], so that
//! nothing else is compiled or linked for it.

mod cluster_file;

pub use cluster_file::{ClusterFile, ClusterFileError};

use crate::{Database, Db, Error, Result, Transaction, TransactionOption};
use std::{future::Future, time::Duration};

/// FoundationDB's client, whose network starts once in a process.
pub trait Client: Sync {
    /// Starts the network, with or without the client's own fault injection.
    fn start(&self, buggify: Option<Buggify>) -> std::result::Result<Box<dyn Network>, StartError>;
}

/// The running network of a client. It stops when this value is dropped, and cannot be started again in this
/// process: a restriction of the C client.
pub trait Network: Send + Sync {
    /// Opens the database of a cluster, with options of its own. Nothing is sent yet: [`reach`] checks that
    /// the cluster responds.
    fn open(&self, cluster: &ClusterFile) -> Result<Db>;
    /// Whether the C library is shaketable's own, whose cluster is simulated.
    fn is_simulated(&self) -> bool;
}

/// Fault injection of the client itself: each section of its code is switched on with one probability for the
/// whole process, and a section that is switched on then fires with another probability each time it is
/// executed. If a process switches on only some of the sections, nothing can be concluded about faults that
/// did not occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buggify {
    /// The probability that a section of the client is switched on, in percent.
    pub activated: u8,
    /// The probability that a section that is switched on fires, in percent.
    pub fired: u8,
}

/// Why the network did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// It was started before.
    #[error("the FoundationDB client's network was started in this process before, and starts only once")]
    Again,
    /// The C library is older than the version that this crate was built for.
    #[error(
        "the FoundationDB client library supports API version {library} at most; this program requires {wanted}"
    )]
    TooOld {
        /// The highest API version that the library supports.
        library: i32,
        /// The API version that is required.
        wanted: i32,
    },
    /// The C library is shaketable's driver, whose cluster is simulated. Cargo puts the folder of its own
    /// build first on the path of libraries, so that the driver can be found there in place of FoundationDB's
    /// library. The environment variable `SHAKETABLE_PERMIT_SIMULATED` permits it, for tests of this backend.
    #[error(
        "the FoundationDB client library is shaketable's simulated one: remove libfdb_c.so from cargo's target folder"
    )]
    Simulated,
    /// The client returned an error.
    #[error("the FoundationDB client's network does not start: {0}")]
    Refused(Error),
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

/// Requests a read version and waits for it for at most `patience`. If the future is dropped, nothing remains
/// of the request.
pub fn reach<D: Database>(
    db: &D,
    cluster: &ClusterFile,
    patience: Duration,
) -> impl Future<Output = std::result::Result<i64, Unreachable>> + Send {
    async move {
        let coordinators = || cluster.coordinators().to_owned();
        let asked = async {
            let tx = db.create_transaction()?;
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
