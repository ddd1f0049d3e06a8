//! The calls that the `foundationdb` crate has only by value, on a shared transaction.
//!
//! The crate gives a transaction away to commit it, and drops it when `on_error` refuses. The contract's
//! handle is shared: reads are under way while it commits, and a call that comes then must reach the
//! client, which refuses it. So the five calls in question go to the C client by the transaction's
//! pointer, and so do atomic operations, which the crate has only with codes that it knows; everything
//! else is the crate's. This is the backend's only unsafe code.

#![allow(unsafe_code, reason = "the crate offers these calls of the C client only by value")]

use foundationdb::{Database, FdbError, FdbResult, Transaction, TransactionMetrics, future::FdbFuture};
use foundationdb_sys as sys;
use std::{ffi::CStr, ops::Deref, ptr, ptr::NonNull};

/// A database of the C client.
pub struct RawDatabase {
    /// Owns the pointer.
    database: Database,
    pointer: NonNull<sys::FDBDatabase>,
}

// SAFETY: the C API's handles may be used from any thread, by several at once (`fdb_c.h`; the crate says
// the same of its own types).
unsafe impl Send for RawDatabase {}
// SAFETY: as above.
unsafe impl Sync for RawDatabase {}

fn checked(code: sys::fdb_error_t) -> FdbResult<()> {
    match code {
        0 => Ok(()),
        code => Err(FdbError::from_code(code)),
    }
}

/// A pointer that the C client has just made; it makes none only with an error.
fn made<T>(pointer: *mut T) -> FdbResult<NonNull<T>> {
    const INTERNAL_ERROR: sys::fdb_error_t = 4100;
    NonNull::new(pointer).ok_or(FdbError::from_code(INTERNAL_ERROR))
}

impl RawDatabase {
    /// The database of a cluster file. The network must have been started.
    pub fn open(cluster_file: &CStr) -> FdbResult<RawDatabase> {
        let mut pointer = ptr::null_mut();
        // SAFETY: the path ends with a zero byte, and the answer has a place.
        checked(unsafe { sys::fdb_create_database(cluster_file.as_ptr(), &mut pointer) })?;
        let pointer = made(pointer)?;
        // SAFETY: a database that was just made, and that nothing else destroys.
        Ok(RawDatabase { database: unsafe { Database::new_from_pointer(pointer) }, pointer })
    }

    /// A new transaction.
    pub fn create_transaction(&self) -> FdbResult<RawTransaction> {
        let mut pointer = ptr::null_mut();
        // SAFETY: the database lives, and the answer has a place.
        checked(unsafe { sys::fdb_database_create_transaction(self.pointer.as_ptr(), &mut pointer) })?;
        let pointer = made(pointer)?;
        let transaction = Transaction::new_instrumented(pointer, TransactionMetrics::new());
        Ok(RawTransaction { transaction, pointer })
    }
}

impl Deref for RawDatabase {
    type Target = Database;
    fn deref(&self) -> &Database {
        &self.database
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
    /// Begins to commit.
    pub fn commit(&self) -> FdbFuture<()> {
        // SAFETY: the transaction lives; the future is owned by what wraps it.
        FdbFuture::new(unsafe { sys::fdb_transaction_commit(self.pointer.as_ptr()) })
    }

    /// An atomic operation by its code. The client refuses a code that is none, at the next call that
    /// answers.
    pub fn atomic_op_code(&self, key: &[u8], parameter: &[u8], code: u32) {
        // What is longer than this is longer than any limit; its beginning is refused likewise.
        let length = |bytes: &[u8]| i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        // SAFETY: the transaction lives, and the client copies the bytes before it returns.
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

    /// Begins to wait for a retry.
    pub fn on_error(&self, code: i32) -> FdbFuture<()> {
        // SAFETY: the transaction lives; the future is owned by what wraps it.
        FdbFuture::new(unsafe { sys::fdb_transaction_on_error(self.pointer.as_ptr(), code) })
    }

    /// Makes the transaction as new.
    pub fn reset(&self) {
        // SAFETY: the transaction lives.
        unsafe { sys::fdb_transaction_reset(self.pointer.as_ptr()) }
    }

    /// Cancels what is under way.
    pub fn cancel(&self) {
        // SAFETY: the transaction lives.
        unsafe { sys::fdb_transaction_cancel(self.pointer.as_ptr()) }
    }

    /// The version of the commit, -1 if it wrote nothing.
    pub fn committed_version(&self) -> FdbResult<i64> {
        let mut version = 0;
        // SAFETY: the transaction lives, and the answer has a place.
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
