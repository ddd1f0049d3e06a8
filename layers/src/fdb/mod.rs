//! The real FoundationDB backend: the contract of [`tx`](crate::tx) over the `foundationdb` crate.
//!
//! Enabled by the feature `fdb` (the C client of 7.4; with `fdb-7_3` that of 7.3). Building requires libclang
//! for the C header's bindings, and linking requires `libfdb_c.so` from FoundationDB's client package.
//!
//! # Promise
//!
//! * Every call of the contract reaches the C client, including calls on a transaction that is committing or
//!   has failed: the result is the client's, not this module's. A read is issued when its method is called.
//! * Read results are not copied: keys and values stay in the client's memory as long as any of them is held.
//!   A caller that keeps one row of a large batch keeps the whole batch.
//! * [`Database::run`](crate::tx::Database::run) is the contract's own retry loop, whose maybe-committed flag
//!   stays set once it is set. The crate's loop overwrites the flag in each attempt.
//!
//! # What it does not do
//!
//! * The C client's network can be started only once in a process: a second [`Network::start`] fails. No
//!   transaction may be in use when the [`Network`] is dropped.
//! * It has no executor. Its futures are woken by the client's network thread and can run on any executor.
//!
//! ```no_run
//! use shaketable_layers::{fdb::{ClusterFile, FdbDatabase, Network}, tx::{Database, Transaction}};
//! use std::{error::Error, path::Path, time::Duration};
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     let network = Network::start(None)?;
//!     let cluster = ClusterFile::read(Path::new("/etc/foundationdb/fdb.cluster"))?;
//!     let db = FdbDatabase::open(&network, &cluster)?;
//!     futures::executor::block_on(async {
//!         db.reach(&cluster, Duration::from_secs(5)).await?;
//!         db.run(|tx, _| async move {
//!             tx.set(b"hello", b"world");
//!             Ok::<_, shaketable_layers::tx::Error>(())
//!         })
//!         .await?;
//!         Ok(())
//!     })
//! }
//! ```

#[cfg(feature = "fdb-client")]
mod client;
// These modules are also compiled and tested without the C library.
mod cluster_file;
mod network_option;
#[cfg(any(test, feature = "fdb-client"))]
mod offsets;

#[cfg(feature = "fdb-client")]
pub use client::*;
pub use cluster_file::{ClusterFile, ClusterFileError};
pub use network_option::NetworkOption;
