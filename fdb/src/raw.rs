//! The calls that the `foundationdb` crate offers only by value, on a shared transaction.
//!
//! The crate consumes a transaction to commit it, and drops it if `on_error` fails. The contract's handle is
//! shared: reads may be outstanding while it commits, and calls made during the commit must reach the client,
//! which rejects them. Therefore these calls are passed to the C client through the transaction's pointer, as
//! are options and atomic operations by code and calls that the crate does not have; everything else uses the
//! crate. This is the backend's only unsafe code.

#![allow(unsafe_code, reason = "the crate offers these calls of the C client only by value")]

use foundationdb::{
    Database, FdbError, FdbResult, Transaction, TransactionMetrics,
    future::{FdbFuture, FdbFutureHandle},
};
use foundationdb_sys as sys;
use std::{ffi::CStr, ops::Deref, ptr, ptr::NonNull, sync::Arc};

/// A database of the C client.
pub struct RawDatabase {
    /// Owns the pointer.
    database: Arc<Database>,
    pointer: NonNull<sys::FDBDatabase>,
}

// SAFETY: the C API's handles may be used from any thread, and from several threads at once (`fdb_c.h`; the
// crate states the same for its own types).
unsafe impl Send for RawDatabase {}
// SAFETY: as above.
unsafe impl Sync for RawDatabase {}

fn checked(code: sys::fdb_error_t) -> FdbResult<()> {
    match code {
        0 => Ok(()),
        code => Err(FdbError::from_code(code)),
    }
}

/// A pointer that the C client has just returned; it is null only if the call failed.
fn made<T>(pointer: *mut T) -> FdbResult<NonNull<T>> {
    const INTERNAL_ERROR: sys::fdb_error_t = 4100;
    NonNull::new(pointer).ok_or(FdbError::from_code(INTERNAL_ERROR))
}

/// The version of the C library, with the revision that it was built from. The version of the API must be
/// selected.
pub fn client_version() -> String {
    // SAFETY: the library returns a text that is never freed, and ends with NUL.
    let version = unsafe { CStr::from_ptr(sys::fdb_get_client_version()) };
    version.to_string_lossy().into_owned()
}

/// An option's value as a pointer and a length, as the C API takes it.
fn parts(value: Option<&[u8]>) -> FdbResult<(*const u8, i32)> {
    const INVALID_OPTION_VALUE: sys::fdb_error_t = 2006;
    match value {
        None => Ok((ptr::null(), 0)),
        Some(value) => match i32::try_from(value.len()) {
            Ok(length) => Ok((value.as_ptr(), length)),
            Err(_) => Err(FdbError::from_code(INVALID_OPTION_VALUE)),
        },
    }
}

/// Sets an option of the network, which must not have been started yet.
pub fn set_network_option(code: i32, value: Option<&[u8]>) -> FdbResult<()> {
    let (value, length) = parts(value)?;
    // SAFETY: the value has this length.
    checked(unsafe { sys::fdb_network_set_option(code as _, value, length) })
}

/// A number of seconds, the result of a future of the C client.
pub struct Seconds(pub f64);

impl TryFrom<FdbFutureHandle> for Seconds {
    type Error = FdbError;
    fn try_from(future: FdbFutureHandle) -> FdbResult<Seconds> {
        let mut seconds = 0.0;
        // SAFETY: the future is owned by its handle, and the result pointer is valid.
        checked(unsafe { sys::fdb_future_get_double(future.as_ptr(), &mut seconds) })?;
        Ok(Seconds(seconds))
    }
}

impl RawDatabase {
    /// Opens the database of a cluster file. The network must have been started.
    pub fn open(cluster_file: &CStr) -> FdbResult<RawDatabase> {
        let mut pointer = ptr::null_mut();
        // SAFETY: the path is null-terminated, and the result pointer is valid.
        checked(unsafe { sys::fdb_create_database(cluster_file.as_ptr(), &mut pointer) })?;
        let pointer = made(pointer)?;
        // SAFETY: the database was just created, and nothing else destroys it.
        let database = unsafe { Database::new_from_pointer(pointer) };
        Ok(RawDatabase { database: Arc::new(database), pointer })
    }

    /// The database as the crate has it, with the same options.
    pub fn database(&self) -> Arc<Database> {
        self.database.clone()
    }

    /// Sets an option.
    pub fn set_option(&self, code: i32, value: Option<&[u8]>) -> FdbResult<()> {
        let (value, length) = parts(value)?;
        // SAFETY: the database is alive, and the value has this length.
        checked(unsafe { sys::fdb_database_set_option(self.pointer.as_ptr(), code as _, value, length) })
    }

    /// A new transaction.
    pub fn create_transaction(&self) -> FdbResult<RawTransaction> {
        let mut pointer = ptr::null_mut();
        // SAFETY: the database is alive, and the result pointer is valid.
        checked(unsafe { sys::fdb_database_create_transaction(self.pointer.as_ptr(), &mut pointer) })?;
        let pointer = made(pointer)?;
        let transaction = Transaction::new_instrumented(pointer, TransactionMetrics::new());
        Ok(RawTransaction { transaction, pointer })
    }
}

/// A transaction of the C client.
pub struct RawTransaction {
    /// Owns the pointer.
    transaction: Transaction,
    pointer: NonNull<sys::FDBTransaction>,
}

// SAFETY: as for the database.
unsafe impl Send for RawTransaction {}
// SAFETY: as for the database.
unsafe impl Sync for RawTransaction {}

impl RawTransaction {
    /// Sets an option.
    pub fn set_option(&self, code: i32, value: Option<&[u8]>) -> FdbResult<()> {
        let (value, length) = parts(value)?;
        // SAFETY: the transaction is alive, and the value has this length.
        checked(unsafe { sys::fdb_transaction_set_option(self.pointer.as_ptr(), code as _, value, length) })
    }

    /// How long proxies have delayed the transaction because of a tag.
    pub fn tag_throttled_duration(&self) -> FdbFuture<Seconds> {
        // SAFETY: the transaction is alive; the returned wrapper owns the future.
        FdbFuture::new(unsafe { sys::fdb_transaction_get_tag_throttled_duration(self.pointer.as_ptr()) })
    }

    /// The cost of the transaction so far.
    pub fn total_cost(&self) -> FdbFuture<i64> {
        // SAFETY: the transaction is alive; the returned wrapper owns the future.
        FdbFuture::new(unsafe { sys::fdb_transaction_get_total_cost(self.pointer.as_ptr()) })
    }

    /// Starts the commit.
    pub fn commit(&self) -> FdbFuture<()> {
        // SAFETY: the transaction is alive; the returned wrapper owns the future.
        FdbFuture::new(unsafe { sys::fdb_transaction_commit(self.pointer.as_ptr()) })
    }

    /// An atomic operation by its code. For an unknown code, the next call that returns a result fails.
    pub fn atomic_op_code(&self, key: &[u8], parameter: &[u8], code: u32) {
        // Anything longer exceeds every limit; its first bytes are rejected in the same way.
        let length = |bytes: &[u8]| i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        // SAFETY: the transaction is alive, and the client copies the bytes before it returns.
        unsafe {
            sys::fdb_transaction_atomic_op(
                self.pointer.as_ptr(),
                key.as_ptr(),
                length(key),
                parameter.as_ptr(),
                length(parameter),
                code,
            );
        }
    }

    /// Starts waiting for a retry.
    pub fn on_error(&self, code: i32) -> FdbFuture<()> {
        // SAFETY: the transaction is alive; the returned wrapper owns the future.
        FdbFuture::new(unsafe { sys::fdb_transaction_on_error(self.pointer.as_ptr(), code) })
    }

    /// Resets the transaction to its initial state.
    pub fn reset(&self) {
        // SAFETY: the transaction is alive.
        unsafe { sys::fdb_transaction_reset(self.pointer.as_ptr()) }
    }

    /// Cancels all outstanding operations.
    pub fn cancel(&self) {
        // SAFETY: the transaction is alive.
        unsafe { sys::fdb_transaction_cancel(self.pointer.as_ptr()) }
    }

    /// The commit version; -1 if the transaction wrote nothing.
    pub fn committed_version(&self) -> FdbResult<i64> {
        let mut version = 0;
        // SAFETY: the transaction is alive, and the result pointer is valid.
        checked(unsafe { sys::fdb_transaction_get_committed_version(self.pointer.as_ptr(), &mut version) })?;
        Ok(version)
    }
}

impl Deref for RawTransaction {
    type Target = Transaction;
    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}
