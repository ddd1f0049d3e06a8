//! The real FoundationDB backend: the contract of [`shaketable_tx`] over the `foundationdb` crate.
//!
//! Its feature `fdb-7_4` takes the C client of 7.4, `fdb-7_3` that of 7.3; without one of them there is none.
//! Building requires libclang for the C header's bindings, and linking requires `libfdb_c.so` from
//! FoundationDB's client package.
//!
//! # Promise
//!
//! * Every call of the contract reaches the C client, including calls on a transaction that is committing or
//!   has failed: the result is the client's, not this module's. A read is issued when its method is called.
//! * Read results are not copied: keys and values stay in the client's memory as long as any of them is held.
//!   A caller that keeps one row of a large batch keeps the whole batch.
//! * [`Database::run`](shaketable_tx::Database::run) is the contract's own retry loop, whose maybe-committed
//!   flag stays set once it is set. The crate's loop overwrites the flag in each attempt.
//!
//! # What it does not do
//!
//! * The C client's network can be started only once in a process: a second `Network::start` fails. No
//!   transaction may be in use when the `Network` is dropped.
//! * It has no executor. Its futures are woken by the client's network thread and can run on any executor.
//!
#![cfg_attr(feature = "fdb-client", doc = "```no_run")]
#![cfg_attr(not(feature = "fdb-client"), doc = "```text")]
//! use shaketable_fdb::{ClusterFile, FdbDatabase, Network};
//! use shaketable_tx::{Database, Transaction, real::reach};
//! use std::{error::Error, path::Path, time::Duration};
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     let network = Network::start(None)?;
//!     let cluster = ClusterFile::read(Path::new("/etc/foundationdb/fdb.cluster"))?;
//!     let db = FdbDatabase::open(&network, &cluster)?;
//!     futures::executor::block_on(async {
//!         reach(&db, &cluster, Duration::from_secs(5)).await?;
//!         db.run(|tx, _| async move {
//!             tx.set(b"hello", b"world");
//!             Ok::<_, shaketable_tx::Error>(())
//!         })
//!         .await?;
//!         Ok(())
//!     })
//! }
//! ```

#[cfg(feature = "fdb-client")]
mod database;
#[cfg(feature = "fdb-client")]
mod network;
// These modules are also compiled and tested without the C library.
mod network_option;
#[cfg(any(test, feature = "fdb-client"))]
mod offsets;
#[cfg(feature = "fdb-client")]
mod raw;
#[cfg(feature = "fdb-client")]
mod time;
#[cfg(feature = "fdb-client")]
mod transaction;

#[cfg(feature = "fdb-client")]
pub use database::FdbDatabase;
#[cfg(feature = "fdb-client")]
pub use network::{Client, Network, is_simulated};
pub use network_option::NetworkOption;
pub use shaketable_tx::real::{Buggify, ClusterFile, ClusterFileError, StartError, Unreachable};
#[cfg(feature = "fdb-client")]
pub use time::RealTime;
#[cfg(feature = "fdb-client")]
pub use transaction::FdbTransaction;
