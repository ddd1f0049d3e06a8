//! Reading the results of futures, each type with its function.

use super::{
    future::{FDBFuture, borrow, code},
    memory::store,
    selected::{NEVER, demand},
    types::{FDBKey, FDBKeyRange, FDBKeyValue, FDBMappedKeyValue, fdb_bool_t, fdb_error_t},
    value::{Value, length},
    versions::EIGHT,
};
use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

/// Defines a function that reads results of one type.
macro_rules! getters {
    ($($(#[doc = $doc:literal])+ $name:ident($($out:ident: $type:ty),+), $pattern:pat => ($($part:expr),+);)*) => {
        $(
            $(#[doc = $doc])+
            ///
            /// # Safety
            ///
            /// `f` is a future that was not destroyed, and the other pointers are null or valid for writes.
            /// What is stored there may be used until the future is destroyed or its memory is released.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(f: *mut FDBFuture, $($out: *mut $type),+) -> fdb_error_t {
                let read = |value: &Value| match value {
                    $pattern => {
                        // SAFETY: valid for writes, as the caller promises.
                        $(unsafe { store($out, $part) };)+
                        Some(())
                    }
                    _ => None,
                };
                // SAFETY: as the caller promises.
                code(unsafe { borrow(f) }.pick(read))
            }
        )*
    };
}

getters! {
    /// A number: a version, a size or a cost.
    fdb_future_get_int64(out: i64), Value::Int64(number) => (*number);
    /// A protocol version.
    fdb_future_get_uint64(out: u64), Value::UInt64(number) => (*number);
    /// Seconds.
    fdb_future_get_double(out: f64), Value::Double(seconds) => (*seconds);
    /// A key, a versionstamp or a status.
    fdb_future_get_key(out: *const u8, out_length: c_int), Value::Key(key) => (key.as_ptr(), length(key.len()));
    /// The rows of a range, and whether rows may remain.
    fdb_future_get_keyvalue_array(out: *const FDBKeyValue, out_count: c_int, out_more: fdb_bool_t),
        Value::Rows(batch) => (batch.rows.start(), batch.rows.length(), batch.more);
    /// The rows of a mapped range, and whether rows may remain.
    fdb_future_get_mappedkeyvalue_array(out: *const FDBMappedKeyValue, out_count: c_int, out_more: fdb_bool_t),
        Value::Mapped(batch) => (batch.rows.start(), batch.rows.length(), batch.more);
    /// Keys.
    fdb_future_get_key_array(out: *const FDBKey, out_count: c_int),
        Value::Keys(keys) => (keys.start(), keys.length());
    /// Texts that end with a zero byte.
    fdb_future_get_string_array(out: *const *const c_char, out_count: c_int),
        Value::Strings(texts) => (texts.start(), texts.length());
    /// Streams of changes: none.
    fdb_future_get_cdc_stream_info_array(out: *const c_void, out_count: c_int), Value::Streams => (ptr::null(), 0);
}

/// A value, if the key has one.
///
/// # Safety
///
/// As for [`fdb_future_get_key`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_get_value(
    f: *mut FDBFuture,
    out_present: *mut fdb_bool_t,
    out: *mut *const u8,
    out_length: *mut c_int,
) -> fdb_error_t {
    let read = |value: &Value| {
        let Value::Value(value) = value else { return None };
        // SAFETY: valid for writes, as the caller promises. Without a value only the first is written.
        unsafe { store(out_present, value.is_some().into()) };
        if let Some(value) = value {
            // SAFETY: valid for writes, as the caller promises.
            unsafe { store(out, value.as_ptr()) };
            // SAFETY: valid for writes, as the caller promises.
            unsafe { store(out_length, length(value.len())) };
        }
        Some(())
    };
    // SAFETY: as the caller promises.
    code(unsafe { borrow(f) }.pick(read))
}

/// Defines a function that reads results of a type that no future has here: 2000, unless the future has an
/// error. Programs of the version that has removed it end.
macro_rules! no_such_results {
    (until $removed:expr; $($(#[doc = $doc:literal])+ $name:ident($($type:ty),+);)*) => {
        $(
            $(#[doc = $doc])+
            ///
            /// No future has one here: 2000, or the error of the future.
            ///
            /// # Safety
            ///
            /// `f` is a future that was not destroyed. Nothing is stored.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(f: *mut FDBFuture, $(_: *mut $type),+) -> fdb_error_t {
                demand(stringify!($name), $removed);
                // SAFETY: as the caller promises.
                code(unsafe { borrow(f) }.pick(|_| None))
            }
        )*
    };
}

no_such_results! {
    until NEVER;
    /// A truth value.
    fdb_future_get_bool(fdb_bool_t);
    /// What databases share.
    fdb_future_get_shared_state(*mut c_void);
    /// Ranges of keys.
    fdb_future_get_keyrange_array(*const FDBKeyRange, c_int);
    /// Mutations of a stream of changes, and the position after them.
    fdb_future_get_cdc_versioned_mutations(*const c_void, c_int, i64);
}

no_such_results! {
    until EIGHT;
    /// Summaries of blob granules.
    fdb_future_get_granule_summary_array(*const c_void, c_int);
    /// Descriptions of blob granules.
    fdb_future_readbg_get_descriptions(*mut c_void, c_int);
}
