//! Functions that newer headers do not have. A program has them if it was compiled for a version of the API
//! before the one that removed them; another that calls them ends, as with FoundationDB's library
//! (`fdb_c.cpp`). The modules of tenants and blob granules have those that version 800 has removed.

use super::{
    database::{FDBDatabase, fdb_create_database},
    errors::SUCCESS,
    future::{FDBFuture, borrow, code},
    memory::store,
    selected::demand,
    transaction::FDBTransaction,
    types::{fdb_bool_t, fdb_error_t},
    value::{Handle, Value},
};
use shaketable_tx::Error;
use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr,
};

/// `invalid_database_name`
const INVALID_DATABASE_NAME: Error = Error::from_code(2013);

/// A cluster before version 610: a path, of which databases are made.
pub struct FDBCluster(CString);

/// A future with a cluster, before version 610.
///
/// # Safety
///
/// `cluster_file_path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_create_cluster(cluster_file_path: *const c_char) -> *mut FDBFuture {
    demand("fdb_create_cluster", 610);
    let path = match cluster_file_path.is_null() {
        true => CString::default(),
        // SAFETY: it ends with a zero byte, as the caller promises.
        false => unsafe { CStr::from_ptr(cluster_file_path) }.to_owned(),
    };
    let cluster = Box::into_raw(Box::new(FDBCluster(path)));
    FDBFuture::ready(Ok(Value::Handle(Handle::Cluster(cluster.cast()))))
}

/// Destroys a cluster, before version 610. Its databases remain.
///
/// # Safety
///
/// `c` is a cluster that was not destroyed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_cluster_destroy(c: *mut FDBCluster) {
    demand("fdb_cluster_destroy", 610);
    if !c.is_null() {
        // SAFETY: the handle came from `Box::into_raw`, and this is the one time that it is taken back.
        drop(unsafe { Box::from_raw(c) });
    }
}

/// Sets an option of a cluster, before version 610: there are none, and any is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_cluster_set_option(
    _c: *mut FDBCluster,
    _option: c_int,
    _value: *const u8,
    _value_length: c_int,
) -> fdb_error_t {
    demand("fdb_cluster_set_option", 610);
    SUCCESS
}

/// A future with a database, before version 610: 2013 unless the name is `DB`.
///
/// # Safety
///
/// `c` is a cluster that was not destroyed, and `db_name` is readable for its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_cluster_create_database(
    c: *mut FDBCluster,
    db_name: *const u8,
    db_name_length: c_int,
) -> *mut FDBFuture {
    demand("fdb_cluster_create_database", 610);
    // SAFETY: as the caller promises.
    if !b"DB".starts_with(&unsafe { super::memory::copy(db_name, db_name_length) }) {
        return FDBFuture::ready(Err(INVALID_DATABASE_NAME));
    }
    let mut database: *mut FDBDatabase = ptr::null_mut();
    // SAFETY: the cluster was not destroyed, its path ends with a zero byte, and the pointer is valid for a
    // write.
    let created = unsafe { fdb_create_database((*c).0.as_ptr(), &mut database) };
    FDBFuture::ready(match created {
        SUCCESS => Ok(Value::Handle(Handle::Database(database.cast()))),
        error => Err(Error::from_code(error)),
    })
}

/// The cluster of a future, before version 610.
///
/// # Safety
///
/// `f` is a future that was not destroyed, and `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_get_cluster(f: *mut FDBFuture, out: *mut *mut FDBCluster) -> fdb_error_t {
    demand("fdb_future_get_cluster", 610);
    // SAFETY: as the caller promises.
    code(unsafe { borrow(f) }.pick(|value| match value {
        Value::Handle(Handle::Cluster(cluster)) => {
            // SAFETY: as the caller promises.
            unsafe { store(out, cluster.cast()) };
            Some(())
        }
        _ => None,
    }))
}

/// The database of a future, before version 610.
///
/// # Safety
///
/// `f` is a future that was not destroyed, and `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_get_database(
    f: *mut FDBFuture,
    out: *mut *mut FDBDatabase,
) -> fdb_error_t {
    demand("fdb_future_get_database", 610);
    // SAFETY: as the caller promises.
    code(unsafe { borrow(f) }.pick(|value| match value {
        Value::Handle(Handle::Database(database)) => {
            // SAFETY: as the caller promises.
            unsafe { store(out, database.cast()) };
            Some(())
        }
        _ => None,
    }))
}

/// A version, before version 620.
///
/// # Safety
///
/// `f` is a future that was not destroyed, and `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_get_version(f: *mut FDBFuture, out: *mut i64) -> fdb_error_t {
    demand("fdb_future_get_version", 620);
    // SAFETY: as the caller promises.
    unsafe { super::results::fdb_future_get_int64(f, out) }
}

/// Whether a future failed, before version 23: no program of a version that this library speaks has it.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_future_is_error(_f: *mut FDBFuture) -> fdb_bool_t {
    demand("fdb_future_is_error", 23);
    0
}

/// A range between selectors, before version 14: no program of a version that this library speaks has it.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_transaction_get_range_selector(
    _tr: *mut FDBTransaction,
    _begin: *const u8,
    _begin_length: c_int,
    _begin_or_equal: fdb_bool_t,
    _begin_offset: c_int,
    _end: *const u8,
    _end_length: c_int,
    _end_or_equal: fdb_bool_t,
    _end_offset: c_int,
    _limit: c_int,
) -> *mut FDBFuture {
    demand("fdb_transaction_get_range_selector", 14);
    FDBFuture::ready(Err(Error::CLIENT_INVALID_OPERATION))
}
