//! Real FoundationDB: the contract of [`tx`](crate::tx) over the `foundationdb` crate.
//!
//! Behind the feature `fdb` (the C client of 7.4; with `fdb-7_3` that of 7.3). Building needs libclang, for
//! the C header's bindings, and linking needs `libfdb_c.so` of FoundationDB's client package.
//!
//! # Promise
//!
//! * Every call of the contract reaches the C client, also one on a transaction that is committing or has
//!   failed: the client answers for it, not this module. A read is issued when its method is called.
//! * What was read is not copied: keys and values stay where the client has put them, for as long as one of
//!   them is held. Whoever keeps one row of a large batch keeps the batch.
//! * [`Database::run`](crate::tx::Database::run) is the contract's own retry loop, whose maybe-committed flag is
//!   sticky. The crate's loop overwrites it in each attempt.
//!
//! # What it does not do
//!
//! * The C client's network starts once in a process: a second [`Network::start`] is refused. No transaction
//!   may be in use when the [`Network`] is dropped.
//! * It has no executor. Its futures are woken by the client's network thread and run on any.
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
// These are tested without the C library as well.
mod cluster_file;
mod network_option;
#[cfg(any(test, feature = "fdb-client"))]
mod offsets;

#[cfg(feature = "fdb-client")]
pub use client::*;
pub use cluster_file::{ClusterFile, ClusterFileError};
pub use network_option::NetworkOption;
