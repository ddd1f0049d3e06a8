//! Programs in Rust within a simulation: their calls are performed by the simulated client of the machine
//! whose task is being polled, on the thread of the simulation.
//!
//! A crate that uses `foundationdb` is linked with this library's functions in place of FoundationDB's,
//! because the build script of this package puts an empty `libfdb_c.a` into the path of libraries and the
//! functions come from this crate. Neither FoundationDB nor a variable of the environment is needed; libclang
//! is, for the bindings that `foundationdb-sys` generates, whose feature `embedded-fdb-include` brings the
//! header.
//!
//! There are two ways to a database:
//!
//! * [`pointer()`] makes one for a [`SimDatabase`], and, with the feature `foundationdb`, `database` makes a
//!   `foundationdb::Database` of it.
//! * `fdb_create_database` within a simulation, which `foundationdb::Database::default()` and `from_path`
//!   call, makes one that stands for the client of the machine whose task is being polled. It is looked up
//!   for each transaction, so that the handle may be in a static and survive runs and seeds. Options that are
//!   set on it hold for all of them.
//!
//! Outside of a simulation the same functions are those of the threaded mode
//! ([`abi::network`](crate::abi::network)).
//!
//! # What else differs
//!
//! * `boot()` may be called before a simulation, or not at all. Its network thread then waits for threaded
//!   databases. Within a simulation it fails with one line that says so: there are no threads.
//! * `fdb_future_block_until_ready` on the thread of a simulation is 2026 `blocked_from_network_thread`.
//! * A transaction belongs to the thread of its simulation: on another one its calls are 2000
//!   `client_invalid_operation`.
//! * When a machine dies, its outstanding futures end with 1101 `operation_cancelled`; nobody is left to see
//!   it.
//!
//! # What is simulated
//!
//! Calls of the C library that madsim replaces: the clocks (`std::time`), the random numbers of the operating
//! system (`getrandom`, and with it the seeds of hash maps and of `rand::rng()`, because each run has a
//! thread of its own), host name and number of processors. Threads are refused. Files, sockets and the
//! environment are the real ones. Tasks, timers and sockets of tokio are simulated for a crate that takes
//! tokio from madsim (`tokio = { package = "madsim-tokio", .. }`); those of a tokio runtime of its own are
//! not, and do not work without one. Nothing within a run may block its thread
//! (`futures::executor::block_on`): the run would never go on.
//!
//! A static that survives a run, or an address, can make two runs of a seed differ. Each call is an event of
//! the run: `run --check-determinism` names the first one that differs.

mod clients;
#[cfg(feature = "foundationdb")]
mod database;
mod session;

pub use clients::Clients;
#[cfg(feature = "foundationdb")]
pub use database::database;
pub use session::Embedded;

use crate::abi::database::FDBDatabase;
use shaketable_sim::client::SimDatabase;
use std::ptr::NonNull;

/// A new database handle of a client, for `fdb_database_destroy`. It has options of its own, like every
/// handle. This is for versions of the crate `foundationdb` that `database` is not made for: cast it to their
/// `FDBDatabase` and give it to their `Database::new_from_pointer`.
pub fn pointer(db: &SimDatabase) -> NonNull<FDBDatabase> {
    FDBDatabase::of(db.clone())
}
