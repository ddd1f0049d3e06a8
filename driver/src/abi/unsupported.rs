//! What the simulated cluster does not have: blob granules, and processes that restart on demand.
//!
//! Calls that return a future, or a result, fail with `unsupported_operation` (2108). Programs of version
//! 800, which has no blob granules, end with the call.

use super::{
    database::{FDBDatabase, FDBTenant},
    future::FDBFuture,
    selected::{NEVER, demand, require_api_version},
    transaction::FDBTransaction,
    types::{FDBKeyValue, FDBReadBlobGranuleContext, fdb_bool_t, fdb_error_t},
    versions::EIGHT,
};
use shaketable_tx::Error;
use std::ffi::{c_int, c_void};

/// The result of a synchronous computation: an error, always.
pub struct FDBResult(Error);

/// A handle of a result that is `unsupported_operation`, from a function of blob granules.
fn unsupported_result(name: &str) -> *mut FDBResult {
    demand(name, EIGHT);
    Box::into_raw(Box::new(FDBResult(Error::UNSUPPORTED_OPERATION)))
}

/// Destroys a result.
///
/// # Safety
///
/// `r` is a result that was not destroyed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_result_destroy(r: *mut FDBResult) {
    if !r.is_null() {
        // SAFETY: the handle came from `Box::into_raw`, and this is the one time that it is taken back.
        drop(unsafe { Box::from_raw(r) });
    }
}

/// The rows of a result: its error.
///
/// # Safety
///
/// `r` is a result that was not destroyed. Nothing is stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_result_get_keyvalue_array(
    r: *mut FDBResult,
    _out: *mut *const FDBKeyValue,
    _out_count: *mut c_int,
    _out_more: *mut fdb_bool_t,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    unsafe { &*r }.0.code()
}

/// The mutations of a result: its error.
///
/// # Safety
///
/// `r` is a result that was not destroyed. Nothing is stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_result_get_bg_mutations_array(
    r: *mut FDBResult,
    _out: *mut *const c_void,
    _out_count: *mut c_int,
) -> fdb_error_t {
    demand("fdb_result_get_bg_mutations_array", EIGHT);
    // SAFETY: as the caller promises.
    unsafe { &*r }.0.code()
}

/// Reads blob granules: 2108.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_transaction_read_blob_granules(
    _: *mut FDBTransaction,
    _: *const u8,
    _: c_int,
    _: *const u8,
    _: c_int,
    _: i64,
    _: i64,
    _: FDBReadBlobGranuleContext,
) -> *mut FDBResult {
    unsupported_result("fdb_transaction_read_blob_granules")
}

/// Reads a snapshot file of blob granules: 2108.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_readbg_parse_snapshot_file(
    _: *const u8,
    _: c_int,
    _: *const c_void,
    _: *const c_void,
) -> *mut FDBResult {
    unsupported_result("fdb_readbg_parse_snapshot_file")
}

/// Reads a delta file of blob granules: 2108.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_readbg_parse_delta_file(
    _: *const u8,
    _: c_int,
    _: *const c_void,
    _: *const c_void,
) -> *mut FDBResult {
    unsupported_result("fdb_readbg_parse_delta_file")
}

/// Defines functions whose future fails with 2108. Programs of the version that has removed them end.
macro_rules! unsupported {
    (until $removed:expr; $($(#[doc = $doc:literal])+ $name:ident($($type:ty),*);)*) => {
        $(
            $(#[doc = $doc])+
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($(_: $type),*) -> *mut FDBFuture {
                demand(stringify!($name), $removed);
                FDBFuture::ready(Err(Error::UNSUPPORTED_OPERATION))
            }
        )*
    };
}

/// Functions of blob granules that databases and tenants have: both in one list.
macro_rules! of_both {
    ($($(#[doc = $doc:literal])+ $database:ident, $tenant:ident($($type:ty),*);)*) => {
        unsupported! {
            until EIGHT;
            $(
                $(#[doc = $doc])+
                $database(*mut FDBDatabase, *const u8, c_int $(, $type)*);
                $(#[doc = $doc])+
                $tenant(*mut FDBTenant, *const u8, c_int $(, $type)*);
            )*
        }
    };
}

of_both! {
    /// Purges blob granules: 2108.
    fdb_database_purge_blob_granules, fdb_tenant_purge_blob_granules(*const u8, c_int, i64, fdb_bool_t);
    /// Waits for a purge: 2108.
    fdb_database_wait_purge_granules_complete, fdb_tenant_wait_purge_granules_complete();
    /// Makes a range one of blob granules: 2108.
    fdb_database_blobbify_range, fdb_tenant_blobbify_range(*const u8, c_int);
    /// Makes a range one of blob granules, and waits for it: 2108.
    fdb_database_blobbify_range_blocking, fdb_tenant_blobbify_range_blocking(*const u8, c_int);
    /// Makes a range one without blob granules: 2108.
    fdb_database_unblobbify_range, fdb_tenant_unblobbify_range(*const u8, c_int);
    /// Lists ranges of blob granules: 2108.
    fdb_database_list_blobbified_ranges, fdb_tenant_list_blobbified_ranges(*const u8, c_int, c_int);
    /// Verifies a range of blob granules: 2108.
    fdb_database_verify_blob_range, fdb_tenant_verify_blob_range(*const u8, c_int, i64);
    /// Flushes a range of blob granules: 2108.
    fdb_database_flush_blob_range, fdb_tenant_flush_blob_range(*const u8, c_int, fdb_bool_t, i64);
}

/// What databases of one cluster share, if several client libraries may be loaded: nothing here.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_set_shared_state(_: *mut FDBDatabase, _: *mut c_void) {}

/// One client library tells another that it speaks a newer protocol: there is one library here.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_use_future_protocol_version() {
    require_api_version("fdb_use_future_protocol_version");
}

/// Ends a read of blob granules: 2108.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_transaction_read_blob_granules_finish(
    _: *mut FDBTransaction,
    _: *mut FDBFuture,
    _: *const u8,
    _: c_int,
    _: *const u8,
    _: c_int,
    _: i64,
    _: i64,
    _: *mut FDBReadBlobGranuleContext,
) -> *mut FDBResult {
    unsupported_result("fdb_transaction_read_blob_granules_finish")
}

unsupported! {
    until NEVER;
    /// What databases of one cluster share: 2108.
    fdb_database_create_shared_state(*mut FDBDatabase);
    /// Restarts a process: 2108.
    fdb_database_reboot_worker(*mut FDBDatabase, *const u8, c_int, fdb_bool_t, c_int);
}

unsupported! {
    until EIGHT;
    /// Begins a read of blob granules: 2108.
    fdb_transaction_read_blob_granules_start(
        *mut FDBTransaction, *const u8, c_int, *const u8, c_int, i64, i64, *mut i64
    );
    /// Lists ranges of blob granules: 2108.
    fdb_transaction_get_blob_granule_ranges(*mut FDBTransaction, *const u8, c_int, *const u8, c_int, c_int);
    /// Summarizes blob granules: 2108.
    fdb_transaction_summarize_blob_granules(
        *mut FDBTransaction, *const u8, c_int, *const u8, c_int, i64, c_int
    );
    /// Describes blob granules: 2108.
    fdb_transaction_read_blob_granules_description(
        *mut FDBTransaction, *const u8, c_int, *const u8, c_int, i64, i64, *mut i64
    );
}
