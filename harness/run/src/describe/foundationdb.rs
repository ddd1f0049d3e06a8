//! Functions that are written against the crate `foundationdb`, as workloads: its databases for the clients
//! of a run.
//!
//! With the feature `foundationdb` of this crate, functions such as
//! `async fn buy(db: &foundationdb::Database, ..)` run on the simulated cluster as they are. A workload takes
//! the database of its client in [`Workload::open`] and calls them in [`Workload::apply`]; its audits and
//! checks read with the transactions of this crate. A crate needs this in its `Cargo.toml`, beside the
//! `--cfg madsim` of every workload, and libclang to build the bindings:
//!
//! ```toml
//! foundationdb = { version = "0.11", default-features = false, features = ["fdb-7_4", "embedded-fdb-include"] }
//! shaketable = { version = "0.1", features = ["foundationdb"] }
//! ```
//!
//! Neither FoundationDB nor a setting of the linker is needed: with this feature the program has the
//! functions of the C library from `shaketable-driver`, whose module `embedded` says what else is simulated
//! for such functions, and what makes them differ from run to run. They may also open their database
//! themselves, by `foundationdb::Database::default()` or `from_path`, even into a static: it is that of the
//! client that is running. For another release of the crate, such as 0.10, enable `embedded` in place of
//! `foundationdb`, and give what `pointer` returns to that release's `Database::new_from_pointer`.
//!
//! # On a real cluster
//!
//! With the feature `fdb` a program has the functions of FoundationDB's own library. One program has one of
//! the two: a crate that wants both has a feature for each, and builds twice. (With both, it builds and runs
//! on the simulated cluster; the real backend refuses to start.) [`database()`] then returns the database of
//! an `FdbDatabase`, so that a test over any `Database` of the contract calls the same functions on a real
//! cluster.
//!
//! Runs with `--backend fdb` are another matter: they keep the keys of each run below a prefix and record
//! every call, so that the judges have a history. Calls of the crate `foundationdb` cannot be led there:
//! [`database()`] panics in such a run, which is a finding that says so, and nothing is written outside of
//! the prefix.
//!
//! [`Workload::open`]: crate::describe::workload::Workload::open
//! [`Workload::apply`]: crate::describe::workload::Workload::apply

#[cfg(any(feature = "foundationdb", feature = "fdb-client"))]
mod databases {
    use crate::describe::workload::Outcome;
    use foundationdb::FdbBindingError;
    use shaketable_tx::{Database, Error, downcast};
    use std::sync::Arc;

    /// The database of a client as the crate `foundationdb` has it: a new handle of the same client, with
    /// options of its own. Panics for any other database than a simulated or a real one, such as that of a
    /// recorded run on a real cluster: the panic is a finding of the run.
    pub fn database<D: Database>(db: &D) -> Arc<foundationdb::Database> {
        #[cfg(feature = "foundationdb")]
        if let Some(db) = downcast(db) {
            return Arc::new(fdb_c::embedded::database(db));
        }
        #[cfg(feature = "fdb-client")]
        if let Some(db) = downcast::<shaketable_fdb::FdbDatabase>(db) {
            return db.foundationdb();
        }
        let _ = db;
        panic!(
            "calls of the crate `foundationdb` can be shaken on the simulated cluster only: this run records its own"
        );
    }

    /// How an operation ended that is one call of `foundationdb::Database::run`. An error of FoundationDB
    /// leaves open whether the operation took effect: `run` does not tell whether an earlier attempt had an
    /// unknown result. Any other error is the function's own, whose answer `refused` gives; it returns `None`
    /// for what must not happen.
    pub fn outcome<A>(
        result: Result<A, FdbBindingError>,
        refused: impl FnOnce(&FdbBindingError) -> Option<A>,
    ) -> Outcome<A> {
        match result {
            Ok(answer) => Outcome::Answered(answer),
            Err(error) => match (error.get_fdb_error(), refused(&error)) {
                (Some(fdb), _) => Outcome::Unknown(Error::from_code(fdb.code())),
                (None, Some(answer)) => Outcome::Answered(answer),
                (None, None) => Outcome::Violated(error.to_string()),
            },
        }
    }
}

#[cfg(any(feature = "foundationdb", feature = "fdb-client"))]
pub use databases::{database, outcome};

/// A new database handle of a simulated client, as the C library has it; `None` for another database. To be
/// destroyed with `fdb_database_destroy`, which a `foundationdb::Database` that is made of it does.
#[cfg(feature = "embedded")]
pub fn pointer<D: shaketable_tx::Database>(db: &D) -> Option<std::ptr::NonNull<std::ffi::c_void>> {
    shaketable_tx::downcast(db).map(|db| fdb_c::embedded::pointer(db).cast())
}
